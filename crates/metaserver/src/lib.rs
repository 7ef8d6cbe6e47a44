//! The metadata manager: the catalogue behind a socket.
//!
//! Owns sessions of clients, membership of I/O servers, capabilities, and the coordination of
//! re-layouts. What is durable is the affair of `meta`; file data never comes here.
//!
//! Invariants
//! - One process serves a directory at a time.
//! - What was answered with success is durable. All changes go through one thread, which runs
//!   everything that waits in one transaction; reads come from snapshots and wait for nobody.
//! - A number of a client is never given out twice. What a client has open ends with it, whatever
//!   way it ends, and nothing is opened for it afterwards.
//! - An I/O server takes part as long as the connection it joined on.
//! - When the store of the catalogue fails nothing is acknowledged and nothing is shown any more.
//!
//! | module | owns |
//! |---|---|
//! | `start` | starting and stopping |
//! | `directory` | the lock and the key |
//! | `committer` | changes of the catalogue, many in one transaction |
//! | `manager` | introductions, and which request goes where |
//! | `requests`, `cluster` | what clients and what servers ask |
//! | `clients`, `members` | who is there, and what happens when he goes |
//! | `backups` | the catalogue as one file, while it is used, and out of one |
//! | `backing` | what is asked of a directory behind the catalogue |
//! | `mapping` | which server a client begins with |
//! | `domain` | who may use a file, told to its servers |
//! | `relayout` | moving a file into another layout |
//! | `servers` | asking I/O servers |
//! | `sizes` | the latest sizes, for those who ask for attributes |
//! | `stamps`, `elsewhere` | for how long answers about names are so, telling clients elsewhere, and what a start owes to those of the one before |
//! | `audited` | what administrators ask for, on record |
//! | `trees` | clearing what directories have left that were removed with all that is in them |
//! | `trust` | whom clients on other hosts work for |
//! | `hints`, `profiles`, `calibration` | what files were hinted, how they were used, what hosts have measured |
//! | `auto_layout` | layouts that follow the use of a file by themselves |
//! | `teams` | processes that open files together |
//! | `note` | what I/O servers keep with a subfile, to rebuild a directory from the stores |
//! | `timer`, `statistics` | things to do later; what was counted |
#![forbid(unsafe_code)]

mod audited;
mod auto_layout;
mod backing;
mod backups;
mod calibration;
mod clients;
mod cluster;
mod committer;
mod directory;
mod domain;
mod elsewhere;
mod hints;
mod manager;
mod mapping;
mod members;
pub mod note;
mod profiles;
mod relayout;
mod requests;
mod servers;
mod sizes;
mod stamps;
mod start;
mod statistics;
mod teams;
mod timer;
mod trees;
mod trust;

pub use backing::{Backing, BackingError};
pub use backups::{RestoreError, restore};
pub use meta::catalogue::backup;
pub use serving::{Keys, Secret};
pub use start::{MetaServer, Options, StartError, start};
pub use trust::{Network, NetworkError, Trust};
pub use wire::url::Endpoint;
