//! How much moves at a time, and how long a move rests in between.
//!
//! A window is as large as moves in some ten milliseconds, so that a client that meets it waits little and what a round
//! costs besides weighs little. The first one is small: it shows whether clients use the file, and how long a
//! round takes. A move that meets clients works a small part of the time; a limit is kept on the average.
//!
//! Left to others: clocks, who is asked. Times come in as arguments.

use std::time::Duration;

/// How long a round is to fetch.
const ROUND: Duration = Duration::from_millis(25);
/// How long a round may take while clients use the file: they wait at most so long, and the move rests often enough.
const BUSY_ROUND: Duration = Duration::from_millis(3);
/// Bytes of a window, over all lanes: at first, at least, at most.
const FIRST: u64 = 4 << 20;
const LEAST: u64 = 1 << 20;
const MOST: u64 = 128 << 20;
/// How much larger a window is at most than the one before.
const GROWTH: f64 = 16.0;
/// How often a move rests for each time it works while clients use the file.
const REST: u32 = 8;
/// Rounds without clients before a move works all the time again.
const CALM: u32 = 4;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// Fixed by the client that asked.
    fixed: u64,
    window: u64,
    is_first: bool,
    calm: u32,
    /// Bytes a second, on the average of the last rounds.
    rate: f64,
}

/// What a round has shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) bytes: u64,
    pub(super) took: Duration,
    /// The part of it in which bytes were fetched.
    pub(super) fetched: Duration,
    /// Accesses of clients since the last one.
    pub(super) accesses: u64,
}

impl Pace {
    pub(super) fn new(window_bytes: u64) -> Pace {
        Pace {
            fixed: window_bytes,
            window: FIRST,
            is_first: true,
            calm: CALM,
            rate: 0.0,
        }
    }

    /// Bytes of the next window.
    pub(super) fn window(&self, limit_bytes: u64) -> u64 {
        let window = match self.fixed {
            0 => self.window,
            fixed => fixed,
        };
        match limit_bytes {
            0 => window,
            // A quarter of a second's worth at a time at most, so that a limit is not kept in long fits.
            limit => window.min((limit / 4).max(LEAST / 16)),
        }
    }

    /// Whether nothing is known yet about who uses the file.
    pub(super) fn is_first(&self) -> bool {
        self.is_first
    }

    /// Bytes a second, lately.
    pub(super) fn rate(&self) -> u64 {
        self.rate as u64
    }

    /// There was no room for a window: the next ones are smaller.
    pub(super) fn had_no_room(&mut self) {
        self.window = (self.window / 4).max(LEAST);
    }

    /// Learns from a round; how long to rest before the next one.
    pub(super) fn after(&mut self, round: Round, limit_bytes: u64) -> Duration {
        let seconds = round.took.as_secs_f64().max(1e-6);
        self.is_first = false;
        self.calm = match round.accesses {
            0 => self.calm.saturating_add(1),
            _ => 0,
        };
        let is_busy = self.calm < CALM;
        let aim = if is_busy { BUSY_ROUND } else { ROUND };
        if round.bytes >= self.window / 2 {
            let fetched = round.fetched.as_secs_f64().max(1e-6);
            let fit = self.window as f64 * aim.as_secs_f64() / fetched;
            let next = fit.min(self.window as f64 * GROWTH);
            self.window = (next as u64).clamp(LEAST, MOST);
        }
        let mut rest = Duration::ZERO;
        if is_busy {
            rest = round.took * REST;
        }
        if limit_bytes > 0 {
            let due = round.bytes as f64 / limit_bytes as f64;
            let due = Duration::try_from_secs_f64(due).unwrap_or(Duration::from_secs(3600));
            rest = rest.max(due.saturating_sub(round.took));
        }
        let whole = seconds + rest.as_secs_f64();
        let now = round.bytes as f64 / whole;
        self.rate = match self.rate == 0.0 {
            true => now,
            false => self.rate * 0.7 + now * 0.3,
        };
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn round(bytes: u64, ms: u32, accesses: u64) -> Round {
        Round {
            bytes,
            took: MS * ms,
            fetched: MS * ms,
            accesses,
        }
    }

    #[test]
    fn windows_follow_the_time_that_rounds_take() {
        let mut pace = Pace::new(0);
        let first = pace.window(0);
        assert!(pace.is_first());
        assert_eq!(pace.after(round(first, 1, 0), 0), Duration::ZERO);
        assert!(!pace.is_first());
        assert_eq!(pace.window(0), 16 * first, "at most so much more");
        for _ in 0..20 {
            pace.after(round(pace.window(0), 1, 0), 0);
        }
        assert_eq!(pace.window(0), MOST);
        for _ in 0..20 {
            pace.after(round(pace.window(0), 1000, 0), 0);
        }
        assert_eq!(pace.window(0), LEAST);
        assert_eq!(Pace::new(77).window(0), 77);
    }

    #[test]
    fn windows_shrink_where_there_is_no_room() {
        let mut pace = Pace::new(0);
        pace.after(round(pace.window(0), 1, 0), 0);
        let before = pace.window(0);
        pace.had_no_room();
        assert_eq!(pace.window(0), before / 4);
        for _ in 0..9 {
            pace.had_no_room();
        }
        assert_eq!(pace.window(0), LEAST);
    }

    #[test]
    fn clients_get_most_of_the_time_until_they_are_gone() {
        let mut pace = Pace::new(0);
        assert_eq!(pace.after(round(1 << 20, 10, 5), 0), MS * 10 * REST);
        for _ in 1..CALM {
            assert_eq!(pace.after(round(1 << 20, 10, 0), 0), MS * 10 * REST);
        }
        assert_eq!(pace.after(round(1 << 20, 10, 0), 0), Duration::ZERO);
    }

    #[test]
    fn limits_are_kept_on_the_average() {
        let mut pace = Pace::new(0);
        let limit = 10 << 20;
        let (mut bytes, mut time) = (0, Duration::ZERO);
        for _ in 0..50 {
            let round = round(pace.window(limit), 3, 0);
            assert!(round.bytes <= limit / 4, "from the first one on");
            time += round.took + pace.after(round, limit);
            bytes += round.bytes;
        }
        let rate = bytes as f64 / time.as_secs_f64();
        assert!((rate / limit as f64 - 1.0).abs() < 0.05, "{rate}");
        assert!((pace.rate() as f64 / limit as f64 - 1.0).abs() < 0.05);
    }
}
