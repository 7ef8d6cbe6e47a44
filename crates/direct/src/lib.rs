//! Memory that a server shares with the clients of its host, and the protocol in it.
//!
//! ```text
//!   control table   one per server, read-only for clients     header: liveness word
//!                                                              entry per file: epoch
//!   client page     one per client and server, written by both slots: who copies right now
//!                                                              marks: extents that were stored into
//!                                                              ends: how far subfiles were stored into
//!   segments        memory of extents, mapped once per process and kept warm
//! ```
//!
//! Beside them, and with no server in it: an [`Assembly`], through which processes of one user on one host
//! exchange bytes.
//!
//! An access: the client *claims* a slot with (entry, epoch), reads the entry's epoch, and if it is
//! the one its map was made with, copies; then it *ends* the claim. A server that wants to change
//! where bytes are raises the epoch and looks at the slots: a client that claimed before is waited for, for
//! a short time; then the slot is *revoked*. Claim, end and revocation are compare-and-swap of one
//! word, so each access either ended before its revocation and counts, or learns of it and is
//! repeated by message. Nobody waits for an answer.
//!
//! Both sides use sequentially consistent operations on slot and epoch: a client stores the slot and
//! reads the epoch, a server stores the epoch and reads the slots, so at least one sees the other.
//!
//! | module | owns |
//! |---|---|
//! | `table`, `page`, `segment` | the control table, the page of a client, and memory of extents as a client maps it |
//! | `mapping` | shared mappings, and atomics in them |
//! | `liveness`, `process` | whether a process lives, and is still the one that it was |
//! | `stamps` | what the metadata manager says of the age of its answers |
//! | `assembly` | bytes that processes of one host exchange, in steps or through lanes |
//! | `commons` | memory of a process that others of its user read in place |
//!
//! Invariants
//! - Nothing a client writes into its page can make the server touch other memory: words are
//!   validated, indices are the server's own.
//! - Epochs never repeat at an entry, also when it goes to another file.
//! - No reference to shared memory is formed except to atomics.
//!
//! Left to others: what extents and files are (`store`, `ioserver`), when to go by message
//! (`client`), how descriptors travel (`wire`).
//!
//! Unsafe code: mappings, and the list that the kernel walks when a process dies.
#![allow(unsafe_code)]

mod assembly;
mod commons;
mod liveness;
mod mapping;
mod page;
mod process;
mod segment;
mod stamps;
mod table;

pub use assembly::{Apart, Assembly, Cargo, Drive, MOST_MEMBERS, Run, SAID_WORDS, Ticket};
pub use commons::{CommonBytes, Loan, allocate_common, free_common, lent_at};
pub use liveness::Liveness;
pub use page::{Active, Claim, ClientPage, ENDS, MARKS, SLOTS, ServerPage};
pub use process::Process;
pub use segment::{MappedSegment, TouchCounts, Touches, UNIT_BYTES, Use};
pub use stamps::{StampPage, StampView};
pub use table::{ClientTable, ENTRIES, FormerTable, ServerTable};
