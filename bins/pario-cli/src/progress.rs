//! How far a long transfer has come: one line on standard error that is written again and again, with
//! the rate and the time that is left.
//!
//! Only where a user watches: nothing is written unless standard error is a terminal, and nothing
//! with `--quiet`. Nothing is written for what takes less than a moment either. What others do and this process
//! only follows is told in plain lines, now and then, where there is no terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::commands::output::bytes;

/// Between two writings of the line.
const INTERVAL: Duration = Duration::from_millis(100);
/// Between two plain lines.
const LINES: Duration = Duration::from_secs(5);
/// What is shorter goes without a line.
const MOMENT: Duration = Duration::from_millis(300);
/// Weight of the last interval in the rate, so that it neither jumps nor lags.
const FRESH: f64 = 0.1;
/// Characters of the bar.
const BAR: usize = 20;
/// Most characters of the label.
const LABEL: usize = 28;

/// Whether a user is told how far something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Display {
    Shown,
    Hidden,
}

impl Display {
    /// Shown unless `--quiet` or its like says otherwise.
    pub(crate) fn unless(is_quiet: bool) -> Display {
        match is_quiet {
            true => Display::Hidden,
            false => Display::Shown,
        }
    }
}

/// A transfer that a user may watch.
#[derive(Debug)]
pub(crate) struct Progress {
    label: String,
    total: Option<u64>,
    done: u64,
    started: Instant,
    shown: Option<Instant>,
    last: (Instant, u64),
    rate: Option<f64>,
    is_watched: bool,
    /// In lines of their own, for a log.
    is_plain: bool,
}

impl Progress {
    /// Begins; `total` is in bytes, if it is known. The label has to be safe for a terminal.
    pub(crate) fn begin(label: &str, total: Option<u64>, display: Display) -> Progress {
        let now = Instant::now();
        Progress {
            label: super::commands::output::shortened(label, LABEL),
            total,
            done: 0,
            started: now,
            shown: None,
            last: (now, 0),
            rate: None,
            is_watched: display == Display::Shown && std::io::stderr().is_terminal(),
            is_plain: false,
        }
    }

    /// Shows how something goes on that a server does, which may take long.
    pub(crate) fn follow(label: &str, total: Option<u64>, display: Display) -> Progress {
        let mut progress = Progress::begin(label, total, display);
        let is_shown = display == Display::Shown;
        progress.is_plain = is_shown && !progress.is_watched;
        progress.is_watched = is_shown;
        progress
    }

    /// So many more bytes are done.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.set(self.done + bytes);
    }

    /// So many bytes are done in all.
    pub(crate) fn set(&mut self, done: u64) {
        self.done = done;
        if !self.is_watched {
            return;
        }
        let now = Instant::now();
        let since = now.duration_since(self.last.0);
        let interval = if self.is_plain { LINES } else { INTERVAL };
        if since < interval || now.duration_since(self.started) < MOMENT {
            return;
        }
        let fresh = done.saturating_sub(self.last.1) as f64 / since.as_secs_f64();
        self.rate = Some(match self.rate {
            None => done as f64 / now.duration_since(self.started).as_secs_f64(),
            Some(rate) => rate + FRESH * (fresh - rate),
        });
        self.last = (now, done);
        let line = line(&self.label, done, self.total, self.rate.unwrap_or(0.0));
        if self.is_plain {
            let _ = writeln!(std::io::stderr(), "{line}");
            return;
        }
        self.shown = Some(now);
        // Nobody there is no failure.
        let _ = write!(std::io::stderr(), "\r{line}\x1b[K");
    }

    /// Other totals become known while one goes.
    pub(crate) fn set_total(&mut self, total: Option<u64>) {
        self.total = total;
    }

    /// What is moved now.
    pub(crate) fn set_label(&mut self, label: &str) {
        self.label = super::commands::output::shortened(label, LABEL);
    }

    /// Bytes so far, and the time they took.
    pub(crate) fn so_far(&self) -> (u64, Duration) {
        (self.done, self.started.elapsed())
    }
}

impl Drop for Progress {
    /// Gives the line back.
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(label: &str, done: u64, total: Option<u64>, rate: f64) -> String {
    let rate_text = format!("{}/s", bytes(rounded(rate)));
    let Some(total) = total.filter(|&total| total > 0) else {
        return format!("{label}  {}  {rate_text}", bytes(rounded(done as f64)));
    };
    let share = (done as f64 / total as f64).min(1.0);
    let full = (share * BAR as f64) as usize;
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(BAR - full));
    let left = match rate > 0.0 {
        true => left(total.saturating_sub(done) as f64 / rate),
        false => "?".to_owned(),
    };
    format!(
        "{label}  {:3.0}% [{bar}] {} of {}  {rate_text}  {left} left",
        share * 100.0,
        bytes(rounded(done as f64)),
        bytes(rounded(total as f64)),
    )
}

/// Three digits are enough for something that changes ten times a second.
pub(crate) fn rounded(value: f64) -> u64 {
    let exact = value as u64;
    match exact.checked_ilog2() {
        // Not a number that a small unit divides, which would be shown in full.
        Some(bits) if bits >= 17 => exact | 1,
        _ => exact,
    }
}

/// `0:07`, `12:00`, `3 h 20 min`.
pub(crate) fn left(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match seconds {
        0..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        3600..360_000 => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
        _ => "days".to_owned(),
    }
}

/// `128 MiB in 0.31 s, 413 MiB/s`.
pub(crate) fn summary(moved: u64, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let rate = rounded(moved as f64 / seconds.max(1e-6));
    format!("{} in {seconds:.2} s, {}/s", bytes(moved), bytes(rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_share_rate_and_time_left() {
        let text = line("matrix", 256 << 20, Some(1 << 30), f64::from(64 << 20));
        assert_eq!(
            text,
            "matrix   25% [#####...............] 256 MiB of 1.00 GiB  64.0 MiB/s  0:12 left"
        );
        assert_eq!(line("-", 100, None, 50.0), "-  100 B  50 B/s");
        assert!(line("x", 5, Some(10), 0.0).ends_with("? left"));
        // More than was expected is all.
        assert!(line("x", 20, Some(10), 1.0).contains("100% [####################]"));
    }

    #[test]
    fn times_left_are_short() {
        assert_eq!(left(6.2), "0:07");
        assert_eq!(left(720.0), "12:00");
        assert_eq!(left(12_000.0), "3 h 20 min");
        assert_eq!(left(1e18), "days");
    }

    #[test]
    fn summaries_have_a_rate_even_of_nothing() {
        assert_eq!(summary(0, Duration::ZERO), "0 B in 0.00 s, 0 B/s");
        let text = summary(128 << 20, Duration::from_secs(2));
        assert_eq!(text, "128 MiB in 2.00 s, 64.0 MiB/s");
    }
}
