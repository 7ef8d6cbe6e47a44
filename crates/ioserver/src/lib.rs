//! An I/O server: subfiles behind a socket.
//!
//! Owns registered views, accesses to bytes, buffers, and the role of the owner of files (size, locks,
//! pointers). Path names never come here.
//!
//! ```text
//!  connection thread -> service -> access/{read,write} -> files (gate) -> views (shares) -> store
//!                          |  \-> ops/<verb>                   |
//!                          |   \-> owner (size, locks, ...)    +-- context::Cluster: the manager, members
//!                          +-> gateway, directed, direct, moving
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`start`](fn@start) | options, start and end |
//! | `join` | membership, reports, removals |
//! | `context` | the parts of a server by duty: identity, cluster, storage, files |
//! | `service` | the dispatch: who may send which kind, and which function answers it |
//! | `ops` | one message each, as far as it is of no subject with a module of its own |
//! | `sessions`, `fenced`, `views`, `seen_uses` | who is connected, with which views, and what they were used for |
//! | `files` | per file: layout state, gate, truncates, removals |
//! | `access`, `buffers`, `rendezvous`, `sealed` | moving bytes |
//! | `ahead` | reading ahead for independent readers |
//! | `bounded`, `limits` | what a request may cost, and what a client may keep |
//! | `directed` | collective accesses in the order of the store |
//! | `direct` | memory shared with clients of this host, and taking it back |
//! | `gateway` | whole requests of clients that talk through this server |
//! | `moving` | the part of a server in moving a file |
//! | `stored`, `applied`, `failed_syncs`, `verifier` | the store, what must survive beside it, and what unsynced bytes live with |
//! | `taken_space` | space that clients have taken for files before they write them |
//! | `tended_memory` | the memory of extents, made ready before files need it |
//! | `kept` | what outlives this process: the memory with its keeper, the ledger, and adopting them |
//! | `links` | connections to others |
//! | `refused`, `statistics`, `summary` | why a request is not done, what was counted, and what a request is about |
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
mod failed_syncs;
mod fenced;
mod files;
mod gateway;
mod join;
mod kept;
mod limits;
mod links;
mod moving;
mod ops;
pub mod owner;
mod refused;
mod rendezvous;
mod sealed;
mod seen_uses;
mod service;
mod sessions;
mod start;
mod statistics;
mod stored;
mod summary;
mod taken_space;
mod tended_memory;
mod verifier;
mod views;

pub use identity::{Keys, Secret};
pub use keeper::KeeperOptions;
pub use limits::Limits;
pub use start::{IoServer, Options, StartError, StoreOptions, start, start_on};
pub use store::{DiskId, MissingDisk};
