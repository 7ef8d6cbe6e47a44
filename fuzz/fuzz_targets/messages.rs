//! Arbitrary bytes as frames, control parts and descriptions: no decoder panics, and what one accepts
//! is what the encoder writes. The harness is shared with the tests of `wire`.
#![no_main]

#[path = "../../crates/wire/tests/it/harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::messages(data));
