//! Arbitrary text through the parser of the notation; what parses comes back as it went and answers
//! questions. The harness is shared with the tests of `falls`.
#![no_main]

#[allow(dead_code)] // the other harness
#[path = "../../crates/falls/tests/it/harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|text: &str| harness::notation(text));
