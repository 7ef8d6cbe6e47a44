//! A *keeper*: a process that holds the descriptors of a server's memory, so that the memory outlives the server.
//!
//! ```text
//!   server ---- keep NAME fd, forget NAME ----> keeper          DIR/keeper.sock, packets with descriptors
//!     x  killed                                   |  holds them, maps nothing
//!   server, next start ---- take ---------------->|
//!          <--------------- NAME fd, NAME fd, ----+
//!          ---- end, in order -------------------> ends
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `packet` | what travels, one packet per verb |
//! | `process` | the keeper itself: its loop, whom it serves, when it ends |
//! | `contact` | one connection to a keeper: taking, looking, ending |
//! | `client` | what a server has: it starts a keeper where there is none, and another one when that dies |
//!
//! Invariants
//! - A keeper serves processes of its own user only, and one server at a time: the next one gets the descriptors when the
//!   process of the one before is over, never while it may still use them.
//! - One keeper per directory: it holds a lock there as long as it lives.
//! - It ends when its server says so, when no server has come for a while, and when its directory is gone. So memory is
//!   never kept for ever.
//! - It knows nothing about what it keeps and touches none of it. What is not in it cannot fail in it.
//!
//! Left to others: what the descriptors are (`store`, `direct`), what a server makes of them (`ioserver`).
#![forbid(unsafe_code)]

mod client;
mod contact;
mod packet;
mod process;

pub use client::{HELD_WAIT, Keeper, KeeperOptions};
pub use contact::{Glance, KeptDescriptor, end, look};
pub use process::{PATIENCE, run, serve};

use std::io;
use std::path::PathBuf;

/// The socket in the directory of a server.
pub const SOCKET: &str = "keeper.sock";
/// The lock beside it, which a keeper holds.
pub const LOCK: &str = "keeper.lock";

/// What a keeper prints when it listens.
pub const READY: &str = "ready";
/// What it prints before the reason if it cannot.
pub const FAILED: &str = "failed: ";

/// Why a keeper could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none.
    #[error("no keeper runs in {0}")]
    None(PathBuf),
    /// It serves another process.
    #[error("the keeper in {0} serves process {1}, which still runs; end that server first")]
    Held(PathBuf, u32),
    /// It refuses to serve this process at all.
    #[error("the keeper in {0} refuses: {1}")]
    Refused(PathBuf, String),
    /// It could not be started.
    #[error("no keeper could be started in {0}: {1}")]
    Start(PathBuf, String),
    /// It does not answer, or not in words that are known.
    #[error("the keeper in {0}: {1}")]
    Io(PathBuf, io::Error),
}
