//! Requests that took long: who asked for what, and how much of the time was waiting.
//!
//! Owns the stopwatch of a request and the line of the log. What a request is about its service says.
//!
//! Invariants
//! - Nothing is measured unless slow requests are told: then a request costs one look at an option.
//! - A wait is counted once, also inside another wait, and only in the thread that serves the request. What other threads do for it
//!   counts as work of the request, unless that thread waits for them in [`waiting`].
//! - A request is told after it was answered. One line is told per slow request: a connection causes no more of them than the limit
//!   fits into the time.

use std::cell::Cell;
use std::time::{Duration, Instant};

use wire::message::Kind;
use wire::message::access::{DATA, READ, WRITE};

thread_local! {
    /// What the request of this thread has waited so far; nothing while that is not asked for.
    static WAITED: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// What a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestSummary {
    /// Who serves it, as people call it.
    pub server: String,
    /// The file, by its number or path; empty if it is about none.
    pub file: String,
    /// Who asks: the number of a client, and its user; nothing for servers.
    pub client: Option<(u64, u32)>,
    /// Bytes of the file that it moves at this server.
    pub bytes: u64,
}

/// Runs what waits for others: for their turn, for locks, room, a commit, or another server.
pub fn waiting<T>(wait: impl FnOnce() -> T) -> T {
    // Taken, so that a wait inside counts once.
    let Some(before) = WAITED.take() else {
        return wait();
    };
    let begun = Instant::now();
    let done = wait();
    WAITED.set(Some(before + begun.elapsed()));
    done
}

/// Runs while a request is served.
pub(crate) struct Stopwatch {
    begun: Instant,
    limit: Duration,
    kind: u16,
    summary: RequestSummary,
}

impl Stopwatch {
    /// Starts with the arrival of a request of a kind.
    pub(crate) fn start(limit: Duration, kind: u16, summary: RequestSummary) -> Stopwatch {
        WAITED.set(Some(Duration::ZERO));
        Stopwatch {
            begun: Instant::now(),
            limit,
            kind,
            summary,
        }
    }

    /// Stops, and tells the request if it was slow.
    pub(crate) fn stop(self) {
        let took = self.begun.elapsed();
        let waited = WAITED.take().unwrap_or_default().min(took);
        if took < self.limit {
            return;
        }
        let RequestSummary {
            server,
            file,
            client,
            bytes,
        } = self.summary;
        let ms = |time: Duration| time.as_micros() as f64 / 1000.0;
        tracing::warn!(
            server,
            verb = verb(self.kind),
            file,
            client = client.map(|(client, _)| client),
            user = client.map(|(_, user)| user),
            bytes,
            took_ms = ms(took),
            waited_ms = ms(waited),
            worked_ms = ms(took - waited),
            "slow request"
        );
    }
}

/// What a request is called.
fn verb(kind: u16) -> &'static str {
    match kind {
        READ => "Read",
        WRITE | DATA => "Write",
        other => Kind::of(other).map_or("unknown", |kind| kind.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the time itself is what is measured"
    )]
    fn waits_are_counted_once_and_only_while_they_are_asked_for() {
        let pause = || std::thread::sleep(Duration::from_millis(20));
        waiting(pause);
        assert_eq!(WAITED.get(), None, "nobody asks");
        let watch = Stopwatch::start(Duration::MAX, READ, RequestSummary::default());
        waiting(|| waiting(pause));
        let waited = WAITED.get().expect("asked for");
        assert!(waited >= Duration::from_millis(20));
        assert!(waited <= watch.begun.elapsed(), "counted once");
        watch.stop();
        assert_eq!(WAITED.get(), None);
    }
}
