//! An I/O server: subfiles behind a socket.
//!
//! Owns registered views, accesses to bytes, buffers, and the role of the owner of files (size, locks,
//! pointers). Path names never come here.
//!
//! ```text
//!  connection thread -> service -> access/{read,write} -> files (gate) -> views (shares) -> store
//!                          |  \-> set_view                     |
//!                          |   \-> owner (size, locks, ...)    +-- links to the manager
//!                          +-> what servers ask: context, pull
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`start`](fn@start) | options, start and end |
//! | `join` | membership, reports, removals |
//! | `service`, `sessions`, `set_view` | who is connected, and with which views |
//! | `files`, `views` | per file: layout, gate, compiled shares |
//! | `access`, `buffers`, `rendezvous` | moving bytes |
//! | `bounded`, `limits` | what a request may cost, and what a client may keep |
//! | `directed` | collective accesses in the order of the store |
//! | `direct` | memory shared with clients of this host, and taking it back |
//! | `holds` | ranges that one client keeps others out of |
//! | `gateway` | whole requests of clients that talk through this server |
//! | `pull` | the bytes of a new generation |
//! | `stored`, `applied` | the store, and what must survive beside it |
//! | `links`, `context` | the way to others |
//! | [`owner`] | the owner's role |
#![forbid(unsafe_code)]

mod access;
mod ahead;
mod applied;
mod bounded;
mod buffers;
mod context;
mod direct;
mod directed;
mod fenced;
mod files;
mod gateway;
mod holds;
mod join;
mod known;
mod limits;
mod links;
mod moving;
pub mod owner;
mod refused;
mod rendezvous;
mod sealed;
mod seen_uses;
mod service;
mod sessions;
mod set_view;
mod start;
mod statistics;
mod stored;
mod verifier;
mod views;

pub use identity::{Keys, Secret};
pub use limits::Limits;
pub use start::{IoServer, Options, StartError, StoreOptions, start, start_on};
pub use store::{DiskId, MissingDisk};
