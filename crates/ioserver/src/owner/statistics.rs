//! Numbers about the role of owner, counted since the start of the server.
//!
//! They only count; nothing is decided by them.

use std::sync::atomic::{AtomicU64, Ordering};

use wire::message::session::Counter;

use super::Owner;

/// Counted as it happens.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) locks_granted: AtomicU64,
    pub(super) lock_waits: AtomicU64,
    pub(super) fences: AtomicU64,
    pub(super) leases: AtomicU64,
    pub(super) truncates: AtomicU64,
    /// Times a server said that a file may grow there without a report.
    pub(super) announcements: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Owner {
    /// Files owned, and what happened to them so far.
    pub fn statistics(&self) -> Vec<Counter> {
        let counters = &self.counters;
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("owned_files", self.files().len() as u64),
            ("locks_granted", value(&counters.locks_granted)),
            ("lock_waits", value(&counters.lock_waits)),
            ("fences", value(&counters.fences)),
            ("leases", value(&counters.leases)),
            ("truncates", value(&counters.truncates)),
            ("announcements", value(&counters.announcements)),
        ]
        .into_iter()
        .map(|(name, value)| Counter {
            name: name.to_owned(),
            value,
        })
        .collect()
    }
}
