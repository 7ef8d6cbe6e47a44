//! Arbitrary bytes as two small elements: intersection and projections, symbolic and by cursors,
//! against explicit bytes. The harness is shared with the tests of `falls`.
#![no_main]

#[allow(dead_code)] // the other harness
#[path = "../../crates/falls/tests/it/harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::intersect_project(data));
