//! When the next report to the metadata manager is due: at its interval, or at once if a request needs its answer.
//!
//! The thread that reports waits here; a request that lacks room or does not find a member asks for a report and
//! waits for the answer. Left to others: what is reported (`join`).

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Reports {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_wanted: bool,
    is_stopping: bool,
    done: u64,
}

impl Reports {
    /// Has a report sent at once and waits for its answer, or for the time to pass.
    pub(crate) fn report_now(&self, patience: Duration) {
        let mut state = self.state.lock();
        let wanted = state.done + 2; // one that is under way began too early
        state.is_wanted = true;
        self.changed.notify_all();
        let deadline = Instant::now() + patience;
        while state.done < wanted && !state.is_stopping {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            if !state.is_wanted {
                state.is_wanted = true;
                self.changed.notify_all();
            }
            self.changed.wait_for(&mut state, left);
        }
    }

    /// Waits until the next report is due; `false` when the server stops.
    pub(crate) fn wait_until_due(&self, interval: Duration) -> bool {
        let mut state = self.state.lock();
        let is_early = |s: &mut State| !s.is_wanted && !s.is_stopping;
        self.changed.wait_while_for(&mut state, is_early, interval);
        state.is_wanted = false;
        !state.is_stopping
    }

    /// Waits so long; `false` when the server stops.
    pub(crate) fn wait_unless_stopping(&self, pause: Duration) -> bool {
        let mut state = self.state.lock();
        self.changed
            .wait_while_for(&mut state, |s| !s.is_stopping, pause);
        !state.is_stopping
    }

    /// A report was answered.
    pub(crate) fn answered(&self) {
        self.state.lock().done += 1;
        self.changed.notify_all();
    }

    /// Ends the thread that reports.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.changed.notify_all();
    }
}
