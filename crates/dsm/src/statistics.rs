//! Counters of one process: what the protocol did, so that tests can assert exact numbers (DSM-27).
//!
//! They only grow. What happened in between is the difference of two of them.

use crate::message::Message;

/// What happened so far at one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Loads that had to wait for the protocol.
    pub read_faults: u64,
    /// Stores that had to.
    pub write_faults: u64,
    /// Misses that asked another process for a page.
    pub fetches: u64,
    /// Pages asked for along with a missing one.
    pub prefetched: u64,
    /// Fetches repeated since something newer was noticed, or a patch was missing.
    pub repeated_fetches: u64,
    /// Processes asked for patches.
    pub patch_requests: u64,
    /// Copies made to compare with.
    pub twins: u64,
    /// Comparisons.
    pub diffs_made: u64,
    /// Bytes that had changed.
    pub diff_bytes: u64,
    /// Diffs of others stored here.
    pub diffs_applied: u64,
    /// Pages taken from the program.
    pub invalidations: u64,
    /// Own intervals.
    pub records: u64,
    /// Barriers left.
    pub barriers: u64,
    /// Pages that came home here.
    pub homes_moved: u64,
    /// Times that patches and copies were dropped (homeless).
    pub collections: u64,
    /// Times that all processes were asked what they know, to drop records without a barrier.
    pub polls: u64,
    /// Messages to others, by kind ([`Message::KINDS`]).
    pub messages: [u64; 26],
}

impl Statistics {
    pub(crate) fn sent(&mut self, message: &Message) {
        self.messages[message.kind()] += 1;
    }

    /// Messages of a kind.
    pub fn messages_of(&self, kind: &str) -> u64 {
        let at = Message::KINDS.iter().position(|name| *name == kind);
        at.map_or(0, |at| self.messages[at])
    }

    /// All messages.
    pub fn all_messages(&self) -> u64 {
        self.messages.iter().sum()
    }
}
