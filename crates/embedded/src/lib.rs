//! No service: the processes that use a directory serve it themselves.
//!
//! ```text
//! DIR/lock       held by the process that serves
//! DIR/holder     who that is, and where it listens
//! DIR/meta/      the catalogue        (as `pario up` would make it)
//! DIR/io-0/ ...  the subfiles
//! ```
//!
//! The process that uses the directory first takes the lock and serves it from threads of its own, to itself
//! and to every other process of the host. When he goes or dies, the clients that are left find their
//! connection broken, and the first that gets the lock serves the rest. Nothing that a write
//! returned for is lost by that: the servers answer when bytes and checksums are in the data file
//! (`write_through`), which the kernel keeps.
//!
//! Invariants
//! - One process serves a directory; a child that was forked off by a dead holder holds nothing.
//! - Only the holder runs threads, and they block all signals: those are the program's affair.
//! - Under MPI no rank holds: a process is spawned for it, so that no rank has to outlive the others.
//! - The directory belongs to one host at a time; from another one it is refused.
#![forbid(unsafe_code)]

mod claim;
mod connect;
mod directory;
mod error;
mod hold;
mod holder;
mod spawn;

pub use claim::Claim;
pub use connect::{DEFAULT_DIRECTORY, Options, connect, connect_here, url_here};
pub use error::Error;
pub use hold::hold;
/// Says which file of this installation is loaded into this process, so that the program is found beside it.
pub use job::program::say_beside;
