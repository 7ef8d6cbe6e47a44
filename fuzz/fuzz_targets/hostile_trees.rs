//! Arbitrary bytes as a view and a layout that somebody chose to hurt: everything a server does with them before bytes
//! move ends within the steps it was given, and what was counted is what the runs say. The harness is shared with the
//! tests of `kernels`.
#![no_main]

#[path = "../../crates/kernels/tests/harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::hostile_trees(data));
