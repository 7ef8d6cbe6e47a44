//! Who is who between processes of a service: [secrets](Secret), proofs, and how a connection begins.
//!
//! | file | what it owns |
//! |---|---|
//! | `secret` | secrets, the files they come from, the proofs made with them |
//! | `channel` | how keys travel where others could read the connection |
//! | `acquaint` | the caller's side of an introduction |
//! | `process` | how a process names itself and its host |
//!
//! Left to others: the listening side (`serving`), and what somebody may do (`metaserver`, `ioserver`).
#![forbid(unsafe_code)]

mod acquaint;
mod channel;
mod process;
mod secret;

pub use acquaint::{Acquainted, connect, introduce, reach};
pub use channel::Channel;
pub use process::{boot, local_host, this_process};
pub use secret::{KEY_BYTES, Keys, Secret, proof, proof_of_server, random, read_private};
