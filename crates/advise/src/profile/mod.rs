//! What was observed of the use of a file: who accessed what, how much, in which sizes and order.
//!
//! ```text
//!  access path            hand-over                    the file's profile
//!  Recorder (counters) -> Entry per (application, rank, view) -> merge -> Profile (bounded, durable)
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`Recorder`] | plain counters that an access path updates; a few nanoseconds, no lock, no clock |
//! | [`Tally`], [`TouchedBlocks`] | what the accesses of one kind came to, and which part of the view they touched |
//! | [`Profile`], [`Entry`], [`Key`] | the record of a file, and how records are merged |
//! | [`travel`] | a profile as bytes, with a version (`docs/formats/profile.md`) |
//! | [`origin`] | which element of which distribution a view is, and the same for another number of processes |
//! | [`template`] | a profile with the shape of its file, for other files |
//! | [`blocks`] | which processes accessed which block: exclusive and shared blocks |
//!
//! Invariants
//! - Merging is associative and commutative: counters are added, hulls and maps united, and of entries those with the
//!   least keys by a fixed order are kept. An entry that is kept has all that was ever recorded for its key.
//! - A profile is bounded: [`MOST_ENTRIES`] entries, each of bounded size, and at most [`MOST_BYTES`] bytes in all.
//!   What is not kept is in the totals.
//! - Bytes that are no profile are refused; nothing is allocated that they do not pay for.
//!
//! Left to others: when counters are handed over (`client`, `ioserver`), where profiles are kept (`meta`), what
//! follows from them (`recommend`).

pub mod blocks;
pub mod origin;
mod record;
mod recorder;
mod tally;
pub mod template;
pub mod travel;

pub use record::{
    Entry, Key, MOST_BYTES, MOST_ENTRIES, MOST_SERVERS, MOST_VIEW_BYTES, Profile, ServerUse,
    Summary,
};
pub use recorder::{Recorder, SERVER_SLOTS};
pub use tally::{Order, SIZES, Tally, TouchedBlocks, size_class};
