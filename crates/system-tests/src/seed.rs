//! Random numbers from a printed seed, and bytes whose value says where they belong.
//!
//! `PARIO_SEED` names the seed; without it every run is the same. A test that fails prints it.

use random::mix;

pub use random::{Random, seed};

/// What byte `x` of a file holds when it was written with `tag`; never 0.
pub fn pattern_byte(tag: u64, x: u64) -> u8 {
    let word = mix(tag.wrapping_mul(0x9e37_79b9).wrapping_add(x >> 3));
    word.to_le_bytes()[(x & 7) as usize].max(1)
}

/// A number that stands for bytes (FNV-1a).
pub fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Bytes of a view from offset `at` on: the value of each follows its place in the file.
pub fn pattern(view: &layout::View, at: u64, len: usize, tag: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    if len == 0 {
        return bytes;
    }
    let range = layout::ViewOffset(at)..layout::ViewOffset(at + len as u64);
    let range = view.file_range(range).expect("the view has these bytes");
    for segment in view.bytes().segments(range.start.0..range.end.0) {
        bytes.extend((segment.start()..segment.end()).map(|x| pattern_byte(tag, x)));
    }
    assert_eq!(bytes.len(), len, "a view range is a file range");
    bytes
}
