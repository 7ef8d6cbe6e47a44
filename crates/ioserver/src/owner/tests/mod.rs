//! The owner against a twin of the cluster in memory that delays, reorders and fails.
//!
//! Several owners and servers live in one process; threads are clients. Schedules are random, with a
//! printed seed; nothing waits for time, only for conditions, and every wait has an end.

mod appends;
mod atomic;
mod death;
mod duties;
mod limits;
mod sizes;
mod twin;

use std::thread;
use std::time::{Duration, Instant};

use layout::View;
use wire::{ClientId, Rights};

use super::Asker;
use twin::FILE;

/// Ends a test that would hang.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits for a condition that some other thread makes true.
fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_true() {
        assert!(begin.elapsed() < LIMIT, "{what} did not happen");
        thread::yield_now();
    }
}

/// A number that no other request has.
fn request() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

fn asker<'a>(client: u64, view: &'a View) -> Asker<'a> {
    Asker {
        client: ClientId(client),
        user: 7,
        file: FILE,
        has_expired: false,
        rights: Rights::BOTH,
        view,
        is_connected: &|| true,
        waits_for: &|_| (),
    }
}

/// A file of alternating cells: `of` views, each with every `of`-th byte.
fn every(which: u64, of: u64) -> View {
    let set = format!("{{({which},{which},{of},1)}}");
    View::new(layout::FileOffset(0), of, set.parse().unwrap()).unwrap()
}
