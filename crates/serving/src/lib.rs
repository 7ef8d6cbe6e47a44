//! What the metadata manager and the I/O servers have in common: connections, peers, farewell.
//!
//! A server is a [`Service`] behind one or more listeners. Every connection has a thread that blocks
//! on its socket; nothing spins and nothing is polled. (Measured for few connections per core:
//! threads carry more than an event loop; see `docs/adr/0007`.)
//!
//! | module | owns |
//! |---|---|
//! | `server` | listeners, introductions, threads, the end |
//! | `connection` | one request and its answer |
//! | `peer` | who is at the other end, as the kernel says it |
//! | `limits` | how many connections there may be |
//! | `seldom` | lines of the log that a peer can cause as often as it likes |
//! | `slow` | requests that took long, in the log |
//! | `audit` | what administrators did, in a file |
//! | `watch` | noticing the death of processes of this host |
//!
//! Invariants
//! - Nothing a peer sends ends a server: a frame that is not one is answered with a status and the
//!   connection is closed; a panic in a handler closes the connection and is counted.
//! - A connection says [`Hello`](wire::message::session::Hello) first and is nobody before.
//! - A peer that dies is noticed by its pidfd on the same host, and by the end of its connections
//!   elsewhere.
//! - There are no more connections than the service takes; who finds no room is told why. Those that have not introduced themselves
//!   are an eighth at most.
//! - A peer that has begun a long message, or is told something, makes progress or loses its connection; what all long messages
//!   take together is bounded.
//! - What a peer can cause as often as it likes is logged once in a second.
//! - Buffers of a connection are reused: a steady exchange allocates nothing.
#![forbid(unsafe_code)]

mod audit;
mod connection;
mod limits;
mod peer;
mod seldom;
mod server;
mod slow;
mod watch;

pub use audit::{AUDIT_FILE, AUDIT_VERSION, AuditEntry, AuditLog, utc};
pub use connection::{Exchange, Outcome};
pub use identity::{Channel, Holder, Keys, Secret, local_host, proof, this_process};
pub use limits::{CLIENTS_OF_A_USER, Limits, PerUser, Taken};
pub use peer::Peer;
pub use server::{Proven, Running, Service, start};
pub use slow::{RequestSummary, waiting};
pub use watch::Watch;
