//! Servers that live with a job: brought up by its first process on a host, found by the others, gone
//! with it.
//!
//! ```text
//!   rank   rank   pario put ...        processes of the job: clients, and nothing else
//!     \      |      /
//!      unix sockets in RUN/KEY          RUN is /dev/shm/pario-UID, KEY names the job
//!     /      |      \
//!   holder: I/O servers (first host: metadata manager, backing)      one process per host
//!     |
//!    tcp, with the job's secret         holders and clients of other hosts
//! ```
//!
//! What a job is, is found out in [`identity`]; where its servers are, in [`find`]; the process that
//! runs them is [`hold()`]. Bytes are moved in and out by [`stage`], all at once before it works by [`prepare`], and between the job and a directory
//! that outlives it by [`backing`].
//!
//! | module | owns |
//! |---|---|
//! | `identity`, `life`, `process` | which job this is, which processes it has here, and what is known about those |
//! | `find`, `place`, `rendezvous` | where its servers are, on a host and among hosts |
//! | `hold`, `spawn`, `options`, `program` | running the servers: the process for it, how it is started, and with what |
//! | `stage`, `copy`, `prepare`, `backing` | bytes in and out, and the directory behind |
//! | `error` | why the servers of a job cannot be used |
//!
//! Invariants
//! - Servers run in a process that was spawned for them, never in a process of the job.
//! - A holder ends when the job's processes have, whatever became of them, and leaves no process,
//!   file or memory.
//! - Jobs are told apart by their key and user; what they share has mode 0700 and 0600.
//! - File content reaches a disk only through staging, backing or spilling, which are asked for.
#![forbid(unsafe_code)]

pub mod backing;
mod copy;
mod error;
pub mod find;
pub mod hold;
pub mod identity;
mod life;
mod options;
mod place;
pub mod prepare;
mod process;
pub mod program;
mod rendezvous;
mod spawn;
pub mod stage;

pub use error::Error;
pub use find::{connect, find_running};
pub use hold::{Outcome, hold};
pub use identity::Job;
pub use options::Options;
pub use process::Process;
pub use spawn::{StartedHolder, start};
