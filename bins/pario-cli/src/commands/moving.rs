//! What commands that move stored bytes share: following moves with a bar or with lines, being told to stop
//! following, the limit, and moves in words and in JSON.
//!
//! A move is the service's. A user who interrupts the following of one is told that it goes on.

use console::notation::size_argument;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use client::{MoveOptions, MoveState, Progress as MoveProgress};
use serde_json::{Value, json};

use super::names::shown;
use super::output::bytes;
use super::{Error, ExitWith, output};
use crate::progress::{self, Progress};
use crate::service::signals;

/// Between two questions how far it is; the first ones follow each other quickly.
const SOON: Duration = Duration::from_millis(2);
const LATER: Duration = Duration::from_millis(100);

/// What a process ends with that was interrupted.
const INTERRUPTED: u8 = 130;

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Keeps interrupts for the thread that follows; before anything else is started.
pub(crate) fn catch_interrupts() -> Result<(), Error> {
    signals::block()?;
    let follower = thread::current();
    signals::watch(move |_| {
        if IS_INTERRUPTED.swap(true, Ordering::SeqCst) {
            // Asked twice: the thread that follows does not come back from a question.
            std::process::exit(i32::from(INTERRUPTED));
        }
        follower.unpark();
        true
    })
}

/// Calls `look` until it returns something, with pauses. `goes_on` is said if the user interrupts it.
pub(crate) fn follow<T>(
    goes_on: &str,
    mut look: impl FnMut() -> Result<Option<T>, Error>,
) -> Result<T, Error> {
    let mut pause = SOON;
    loop {
        if let Some(end) = look()? {
            return Ok(end);
        }
        // Nobody else wakes this thread: servers do not call clients.
        thread::park_timeout(pause);
        pause = (pause * 2).min(LATER);
        if IS_INTERRUPTED.load(Ordering::SeqCst) {
            output::note(&format!("pario: {goes_on}"));
            return Err(Box::new(ExitWith(INTERRUPTED)));
        }
    }
}

/// Shows how far a move is, and hands it back when there is nothing to wait for: over, or paused.
pub(crate) fn shown_move(
    bar: &mut Progress,
    label: &str,
    now: MoveProgress,
) -> Option<MoveProgress> {
    bar.set_total(Some(now.total_bytes));
    let label = match now.state {
        MoveState::Waiting => format!("{label} waits"),
        MoveState::Cancelling => format!("{label} back"),
        _ => label.to_owned(),
    };
    bar.set_label(&label);
    bar.set(now.moved_bytes);
    let is_resting = now.state == MoveState::Paused;
    (now.state.is_over() || is_resting).then_some(now)
}

/// `64MiB` or `64MiB/s`; `none` and 0 are no limit.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    let text = text.strip_suffix("/s").unwrap_or(text);
    if matches!(text, "none" | "0") {
        return Ok(0);
    }
    size_argument(text).map_err(|_| {
        "is no rate; give bytes per second such as 64MiB or 1GiB/s, or `none`".to_owned()
    })
}

/// How to move.
pub(crate) fn options(limit: Option<u64>, in_place: bool) -> MoveOptions {
    MoveOptions {
        limit_bytes: limit.unwrap_or(0),
        in_place,
        ..MoveOptions::default()
    }
}

/// The state in one word.
pub(crate) fn state_word(state: MoveState) -> &'static str {
    match state {
        MoveState::Moving => "moving",
        MoveState::Done => "done",
        MoveState::Failed => "failed",
        MoveState::Paused => "paused",
        MoveState::Waiting => "waiting",
        MoveState::Cancelling => "cancelling",
        MoveState::Cancelled => "cancelled",
    }
}

/// Seconds until it is over, at the present rate.
fn left_seconds(moved: &MoveProgress) -> Option<f64> {
    let goes = matches!(moved.state, MoveState::Moving | MoveState::Cancelling);
    let left = moved.total_bytes.saturating_sub(moved.moved_bytes);
    (goes && moved.rate_bytes > 0).then(|| left as f64 / moved.rate_bytes as f64)
}

/// `/m: moving, 40% of 1 GiB, 64 MiB/s, 0:12 left`.
pub(crate) fn described(path: &str, moved: &MoveProgress) -> String {
    let mut text = format!("{}: {}", shown(path), state_word(moved.state));
    if !matches!(moved.state, MoveState::Done | MoveState::Cancelled) {
        let share = match moved.total_bytes {
            0 => 0.0,
            total => 100.0 * moved.moved_bytes as f64 / total as f64,
        };
        text += &format!(", {share:.0}% of {}", bytes(moved.total_bytes));
    }
    if let Some(seconds) = left_seconds(moved) {
        let rate = bytes(progress::rounded(moved.rate_bytes as f64));
        text += &format!(", {rate}/s, {} left", progress::left(seconds));
    }
    if moved.limit_bytes > 0 && !moved.state.is_over() {
        text += &format!(", limited to {}/s", bytes(moved.limit_bytes));
    }
    if !moved.failure.is_empty() {
        text += &format!("; {}", shown(&moved.failure));
    }
    text
}

/// What became of a move, for programs.
pub(crate) fn to_json(path: &str, moved: &MoveProgress) -> Value {
    json!({
        "path": path,
        "file": moved.file.0,
        "generation": moved.generation,
        "state": state_word(moved.state),
        "moved_bytes": moved.moved_bytes,
        "total_bytes": moved.total_bytes,
        "rate_bytes": moved.rate_bytes,
        "left_seconds": left_seconds(moved),
        "lanes": moved.lanes,
        "limit_bytes": Some(moved.limit_bytes).filter(|&n| n > 0),
        "failure": Some(&moved.failure).filter(|text| !text.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_sizes_per_second() {
        assert_eq!(rate("64MiB/s"), Ok(64 << 20));
        assert_eq!(rate("1000"), Ok(1000));
        assert_eq!(rate("none"), Ok(0));
        assert!(rate("fast").is_err_and(|text| text.contains("64MiB")));
    }

    #[test]
    fn a_move_in_words_has_share_rate_and_time_left() {
        let moved = MoveProgress {
            file: wire::FileId(7),
            generation: 2,
            moved_bytes: 256 << 20,
            total_bytes: 1 << 30,
            rate_bytes: 64 << 20,
            lanes: 4,
            limit_bytes: 0,
            state: MoveState::Moving,
            failure: String::new(),
        };
        assert_eq!(
            described("/m", &moved),
            "/m: moving, 25% of 1 GiB, 64.0 MiB/s, 0:12 left"
        );
        let paused = MoveProgress {
            state: MoveState::Paused,
            failure: "no space at server 2".into(),
            ..moved
        };
        assert_eq!(
            described("/m", &paused),
            "/m: paused, 25% of 1 GiB; no space at server 2"
        );
        assert_eq!(to_json("/m", &paused)["left_seconds"], Value::Null);
    }
}
