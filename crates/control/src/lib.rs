//! Control logic that runs at the server that owns a file, and the seals that tie servers together.
//!
//! [`locks`] and leases, shared [`pointers`] and append reservations, the file's size ([`sizes`]):
//! volatile state machines. [`moves`] says how the layout state of a file changes while it is moved.
//! [`capability`] is what the metadata manager seals and the I/O servers
//! check: what a client may do with a file, and who it is. [`hints`] is the one place where hints change between what travels and what is judged.
//!
//! | module | owns |
//! |---|---|
//! | `locks` | atomic mode |
//! | `pointers` | shared file pointers and append reservations |
//! | `sizes` | the size of a file |
//! | `settled` | which files have the size that the catalogue has |
//! | `stamps` | when what was told about names was last changed |
//! | `recalls` | clients that have to be told of such changes |
//! | `moves` | a move as changes of a layout state |
//! | `capability` | what the metadata manager seals |
//! | `hints` | hints between what travels and what is judged |
//! | `crash` | places where a test lets a process die |
//!
//! Invariants
//! - No sockets and no clocks: time comes in as an argument, messages come in as events and go out
//!   as effects, so that a simulator runs the shipped code under one seed.
//! - The machines are total: an event that makes no sense is refused by an effect, never a panic,
//!   since clients send what they like.
//! - Nothing here is durable, and no file data comes here.
#![forbid(unsafe_code)]

pub mod capability;
pub mod crash;
pub mod hints;
pub mod locks;
pub mod moves;
pub mod pointers;
pub mod recalls;
pub mod settled;
pub mod sizes;
pub mod stamps;
