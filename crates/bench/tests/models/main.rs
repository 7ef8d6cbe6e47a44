//! The published models are what their authors printed: packing and unpacking, collective reads, prefetch.
//!
//! Those that no benchmark prints are here themselves: packing and unpacking (thesis of J. A. Moore, chapter 4), hops among
//! servers (MEMFS, equations 5.1 to 6.9).
//!
//! Left to others: what Pario's own ways cost (`crates/advise/tests/it/cost.rs`).

mod copy;
mod gen_phases;
mod hops;
mod packing;
mod read;
mod tlb;
mod unpacking;
