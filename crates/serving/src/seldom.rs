//! Lines of the log that a peer can cause as often as it likes: one in a second from each place, with the number of those that
//! were left out.

use std::time::{Duration, Instant};

use parking_lot::{Mutex, const_mutex};

const PAUSE: Duration = Duration::from_secs(1);

/// A place that writes such lines.
pub(crate) struct Seldom(Mutex<State>);

struct State {
    last: Option<Instant>,
    left_out: u64,
}

impl Seldom {
    pub(crate) const fn new() -> Seldom {
        Seldom(const_mutex(State {
            last: None,
            left_out: 0,
        }))
    }

    /// If a line may be written now: how many were left out since the last.
    pub(crate) fn line(&self) -> Option<u64> {
        let mut state = self.0.lock();
        if state.last.is_some_and(|last| last.elapsed() < PAUSE) {
            state.left_out += 1;
            return None;
        }
        state.last = Some(Instant::now());
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted() {
        let place = Seldom::new();
        assert_eq!(place.line(), Some(0));
        let written = (0..100).filter_map(|_| place.line()).count() as u64;
        // A machine that stands still for a second writes one more.
        place.0.lock().last = Instant::now().checked_sub(PAUSE);
        let left_out = place.line().expect("the pause is over");
        assert!(left_out <= 100 && (written > 0 || left_out == 100));
    }
}
