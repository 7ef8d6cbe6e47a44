//! Who holds descriptors for a process that may be killed.
//!
//! Left to others: who that is. The twin in this crate ([`super::twin`]) is for tests.

use std::io;
use std::os::fd::BorrowedFd;

/// The ledger's descriptor lies under this name.
pub const LEDGER_NAME: &str = "ledger";

/// The name under which the descriptor of a segment lies.
pub fn segment_name(id: u64) -> String {
    format!("segment-{id}")
}

/// Holds descriptors by name, beyond the life of the process that gives them.
pub trait Keeping: Send + Sync + std::fmt::Debug {
    /// Holds a descriptor from when this returns on. A name that is there already gets the new one.
    fn keep(&self, name: &str, descriptor: BorrowedFd<'_>) -> io::Result<()>;

    /// Lets go of a descriptor, if it can. One that stays costs memory; the process that adopts finds that nothing refers to it.
    fn forget(&self, name: &str);
}
