//! Random numbers from a printed seed, and bytes whose value says where they belong.
//!
//! `PARIO_SEED` names the seed; without it every run is the same. A test that fails prints it.

/// The seed of this run.
pub fn seed() -> u64 {
    match std::env::var("PARIO_SEED") {
        Ok(text) if !text.is_empty() => {
            let text = text.trim();
            let read = match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => text.parse(),
            };
            read.unwrap_or_else(|_| panic!("PARIO_SEED: '{text}' is no number"))
        }
        _ => 0x5eed_0001,
    }
}

/// A generator of numbers that depend on nothing but its seed (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// From the seed of this run and a number that tells apart what is drawn with it.
    pub fn of_run(what: u64) -> Random {
        Random(mix(seed() ^ mix(what)))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `end`, which is at least 1.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(end)) >> 64) as u64
    }

    /// An index of a list of that length.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A number of a range.
    pub fn within(&mut self, range: std::ops::Range<u64>) -> u64 {
        range.start + self.below(range.end - range.start)
    }

    /// Puts a list into any order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i + 1));
        }
    }

    /// Bytes without zeros, which would pass for holes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        for part in bytes.chunks_mut(8) {
            let drawn = self.draw().to_le_bytes();
            for (byte, drawn) in part.iter_mut().zip(drawn) {
                *byte = drawn.max(1);
            }
        }
        bytes
    }
}

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What byte `x` of a file holds when it was written with `tag`; never 0.
pub fn pattern_byte(tag: u64, x: u64) -> u8 {
    let word = mix(tag.wrapping_mul(0x9e37_79b9).wrapping_add(x >> 3));
    word.to_le_bytes()[(x & 7) as usize].max(1)
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
