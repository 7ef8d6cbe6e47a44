//! Arbitrary bytes as rows of a catalogue: no decoder panics, and none takes memory without bound. The first byte is the kind of
//! the row, sixteen more are its numbers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (key, value) = data.split_at(data.len().min(17));
    let _ = meta::catalogue::read_row(key, value);
});
