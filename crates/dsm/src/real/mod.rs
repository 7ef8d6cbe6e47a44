//! Real memory below a machine: processes of a team, whose program loads and stores.
//!
//! | module | owns |
//! |---|---|
//! | `region` | one memory file, mapped twice: for the program, and for the protocol |
//! | `userfault` | accesses noticed by userfaultfd |
//! | `protection` | accesses noticed by mprotect and SIGSEGV |
//! | `memory` | threads of a process, and what a program calls |
//! | `pages` | pages for who brings them from files and takes them there |
//! | `array` | typed arrays, and guards that keep views from outliving a point of synchronisation |
//!
//! Invariants
//! - Threads of this crate touch the mapping of the protocol only, so they never fault (I9).
//! - The thread that takes messages sends none and waits for none: what a machine wants sent goes to a thread of its own.

mod array;
mod memory;
mod pages;
mod protection;
mod region;
mod userfault;

pub use array::{Element, SharedArray, View};
pub use memory::{Address, Epoch, Error, LockGuard, Options, SharedMemory};
pub use pages::{Pages, Post};
pub use region::{Backing, PAGE_BYTES};
