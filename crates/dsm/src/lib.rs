//! Memory that processes share without hardware for it: page by page, kept alike by messages.
//!
//! The protocols are machines without sockets, threads and clocks ([`Machine`]); what drives them is either real memory and a team of
//! processes, or the simulator ([`simulation`]), which reorders, delays and repeats messages and lets processes end, all under
//! one seed. The source is S.-C. Mac and others, *Design and implementation of a parallel file subsystem on TreadMarks*, with the errors found in it corrected
//! (`docs/adr/0045-shared-memory-across-processes.md`).
//!
//! | module | owns |
//! |---|---|
//! | `time` | vector time, versions of pages |
//! | `diff` | byte-exact differences |
//! | `codec`, `message` | what travels |
//! | `page` | states of a page; the memory below |
//! | `machine` | one process: three protocols, locks, barriers, conditions, garbage |
//! | `link` | order and once, over ways that promise neither |
//! | `statistics` | counters |
//! | `real` | real memory of the processes of a team, typed arrays, pages for a layer above |
//! | `heap` | memory that any process allocates and frees |
//! | `simulation` | random programs on simulated processes, against one flat memory |
//!
//! Invariants
//! - A program without data races, synchronised by locks, barriers and conditions, sees the memory of one machine.
//! - No byte that a process did not change is sent as changed.
//! - What happened to a process that ends is told to all others; no thread waits for ever.
#![allow(unsafe_code)]

mod codec;
mod diff;
mod heap;
mod link;
mod machine;
mod message;
mod page;
mod real;
pub mod simulation;
mod statistics;
mod time;

pub use codec::{Code, PageBytes, Reader};
pub use diff::Diff;
pub use heap::Heap;
pub use link::Link;
pub use machine::conditions::Wakes;
pub use machine::files::{HomeRun, Letter};
pub use machine::{Machine, Mutation, Output, Protocol, Setting, Trouble};
pub use message::{Message, Patch, Record};
pub use page::{Access, PageMemory, Permission, State};
pub use real::{
    Address, Backing, Element, Epoch, Error, LockGuard, Options, PAGE_BYTES, Pages, Post,
    SharedArray, SharedMemory, View,
};
pub use statistics::Statistics;
pub use time::{VectorTime, Versions};

/// The outcome of what a program asks of a shared memory.
pub type Result<T> = std::result::Result<T, Error>;
