//! Decisions that rest on knowledge about accesses: which server a client should talk to, what it
//! will read next, how a team should access a file, and where a new file's bytes should go.
//!
//! Pure: what is known comes in as values, a decision comes out, always the same one for the same
//! values. No I/O, no threads, no clock.
//!
//! Left to others: gathering the knowledge (`ioserver`, `metaserver`, `client`) and acting on it.
#![forbid(unsafe_code)]

pub mod collective;
pub mod cost;
pub mod distribute;
pub mod hints;
pub mod mapping;
pub mod model;
pub mod place;
pub mod predict;
pub mod profile;
pub mod recommend;
