//! Which server a client talks to, for a client that sends whole requests to one server.
//!
//! ```text
//!  request (view, offset, size)  --layout-->  bytes at each server  --max-->  the server to talk to
//!     s0 |##....##....|  4 of 8                g(r, s0) = 0.5
//!     s1 |..##....##..|  4 of 8                g(r, s1) = 0.5     both are best, s0 is chosen
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`Matching`] | the bytes of a request at each server, exactly, and what follows from them |
//! | [`RoundRobin`] | the counter that goes on from file to file |
//! | [`Hop`] | the model of what a request costs in the cluster of the servers |
//! | [`choose_buddy`] | the server that a client begins with |
//! | [`Strategy`] | the names of the ways to choose |
//!
//! Invariants
//! - Every decision is total and deterministic: the same values give the same server, ties included.
//! - Nothing here costs time by the bytes of a request.
//!
//! Sections 2.6 to 2.8 of the specification of source 001, with its corrections D-3, D-4 and D-16 to D-20.

mod buddy;
mod cost;
mod matching;
mod round_robin;
mod strategy;

pub use buddy::{Candidate, choose_buddy};
pub use cost::Hop;
pub use matching::Matching;
pub use round_robin::RoundRobin;
pub use strategy::{Strategy, UnknownStrategy};
