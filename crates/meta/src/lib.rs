//! What the service knows about files, but nothing that is in them.
//!
//! The [`catalogue`] is durable: names, attributes, layout states, named views, sizes, members, on an
//! embedded transactional store. What is volatile about a file (locks, the size while it grows, shared
//! pointers) runs in crate `control` at the server that owns the file.
//!
//! | module | owns |
//! |---|---|
//! | `catalogue` | what is durable: names, attributes, layouts, views, sizes, members |
//! | `error` | why it refuses |
//!
//! Invariants
//! - No sockets and no clocks: time comes in as an argument, so that a simulator runs the shipped
//!   code under one seed.
//! - File data never comes here.
//! - A change of the catalogue that was acknowledged survives the death of the process and of the
//!   machine; one that was not is there as a whole or not at all.
#![forbid(unsafe_code)]

pub mod catalogue;
mod error;

pub use error::MetaError;
pub use wire::{ClientId, FileId, HandleId, Rights, ServerId, Time};
