//! Decisions that rest on knowledge about accesses: which server a client should talk to, what it
//! will read next, how a team should access a file, and where a new file's bytes should go.
//!
//! Pure: what is known comes in as values, a decision comes out, always the same one for the same
//! values. No I/O, no threads, no clock.
//!
//! | module | owns |
//! |---|---|
//! | `profile`, `hints` | what was observed of the use of a file, and what was said about it in advance |
//! | `cost`, `collective`, `model` | what an access costs, each way; packets of collective accesses; the published models |
//! | `predict`, `mapping` | what a client will access next, and which server it should talk to |
//! | `distribute`, `place`, `recommend` | where the bytes of a new file go, and which layout would suit a file |
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
