//! The published models are what their authors printed: packing and unpacking, collective reads, prefetch.
//!
//! Left to others: what Pario's own ways cost (`crates/advise/tests/cost.rs`).

mod copy;
mod read;
