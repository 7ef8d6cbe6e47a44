//! Arbitrary bytes as a data file, as changes to one, as the identity of a disk and as the log of subfiles. The harness is
//! shared with the tests of `store`.
#![no_main]

#[path = "../../crates/store/tests/bytes/mod.rs"]
mod bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bytes::any_bytes(data));
