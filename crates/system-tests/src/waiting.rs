//! Waiting for conditions, with a limit.
//!
//! The limit is generous: it only turns a hang into a failure. Conditions of other processes cannot
//! be waited for otherwise than by asking again after a pause, which here ends by the system's timer.

use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};

/// How long anything may take before a test gives up.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Waits until `holds`, asking again after pauses; panics with `what` after [`LIMIT`].
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    let mut next = Duration::from_millis(1);
    while !holds() {
        assert!(Instant::now() < end, "{what}: not within {LIMIT:?}");
        pause(next);
        next = (next * 2).min(Duration::from_millis(50));
    }
}

/// A pause between two looks at a condition.
pub fn pause(time: Duration) {
    let time = Timespec::try_from(time).expect("a short time");
    // An interrupted pause is a short one.
    let _ = poll(&mut [], Some(&time));
}
