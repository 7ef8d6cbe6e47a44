//! What the service knows about files, but nothing that is in them.
//!
//! Two halves that never call each other. The [`catalogue`] is durable: names, attributes, layout
//! states, named views, sizes, members, on an embedded transactional store. The control logic is
//! volatile and runs at the server that owns a file: [`locks`] and leases, shared [`pointers`] and
//! append reservations, the file's size ([`sizes`]). [`capability`] ties them together: the
//! catalogue's process seals what a client may do, and the servers check the seal.
//!
//! Invariants
//! - No sockets and no clocks: time comes in as an argument, messages come in as events and go out
//!   as effects, so that a simulator runs the shipped code under one seed.
//! - File data never comes here.
//! - A change of the catalogue that was acknowledged survives the death of the process and of the
//!   machine; one that was not is there as a whole or not at all.
//! - Control machines are total: an event that makes no sense is refused by an effect, never a
//!   panic, since clients send what they like.
#![forbid(unsafe_code)]

pub mod capability;
pub mod catalogue;
mod error;
mod id;
pub mod locks;
pub mod pointers;
mod rights;
pub mod sizes;

pub use error::MetaError;
pub use id::{ClientId, FileId, HandleId, ServerId, Time};
pub use rights::Rights;
