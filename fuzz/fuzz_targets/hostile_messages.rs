//! Arbitrary bytes as trees that somebody chose to hurt, inside every message that carries trees: decoders take them as they
//! were or refuse them, also when bytes of the message are changed. The harness is shared with the tests of `wire`.
#![no_main]

#[path = "../../crates/wire/tests/it/harness/mod.rs"]
mod harness;

#[path = "../../crates/wire/tests/it/harness/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::messages_with_trees(data));
