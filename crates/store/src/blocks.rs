//! One bit per block of an extent: which blocks are loaded, which are dirty.
//!
//! The largest extent has [`BLOCKS`] blocks of [`BLOCK`] bytes, so a fixed array serves every
//! extent and an extent table costs nothing on the heap per entry beyond the entry itself.

use std::ops::Range;

/// Bytes that share one checksum, and the smallest thing a disk store reads or writes.
///
/// 4 KiB because a block must be written whole or not at all when the *process* dies (the page
/// cache takes a page whole), because a small overwrite should not cost a large one, and because
/// smaller checksummed blocks cost next to nothing: CRC-32C over blocks of 4, 16 and 64 KiB runs at
/// 45, 54 and 57 GB/s in cache, where memcpy out of cache reaches 8 (`examples/figures.rs`).
pub const BLOCK: u64 = 4096;

/// Blocks of the largest extent.
pub(crate) const BLOCKS: usize = (crate::pool::CHUNK / BLOCK) as usize;

/// A set of blocks of one extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks([u64; BLOCKS / 64]);

impl Blocks {
    pub(crate) const NONE: Blocks = Blocks([0; BLOCKS / 64]);

    /// Bytes of a set, a bit per block.
    pub(crate) const BYTES: usize = BLOCKS / 8;

    pub(crate) fn to_bytes(self) -> [u8; Blocks::BYTES] {
        let mut bytes = [0; Blocks::BYTES];
        for (part, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// A set whose last bytes may be left out.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Blocks {
        let mut blocks = Blocks::NONE;
        for (i, byte) in bytes.iter().enumerate() {
            blocks.0[i / 8] |= u64::from(*byte) << (i % 8 * 8);
        }
        blocks
    }

    /// The members of either.
    pub(crate) fn union(mut self, other: &Blocks) -> Blocks {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
        self
    }

    pub(crate) fn has(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 == 1
    }

    pub(crate) fn insert(&mut self, range: Range<usize>) {
        for (word, bits) in words(range) {
            self.0[word] |= bits;
        }
    }

    pub(crate) fn remove(&mut self, range: Range<usize>) {
        for (word, bits) in words(range) {
            self.0[word] &= !bits;
        }
    }

    /// Adds the members of `other` that are in a range.
    pub(crate) fn insert_from(&mut self, other: &Blocks, range: Range<usize>) {
        for (word, bits) in words(range) {
            self.0[word] |= other.0[word] & bits;
        }
    }

    /// The members in a range, as ranges that do not touch, ascending.
    pub(crate) fn runs(self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let mut at = range.start;
        std::iter::from_fn(move || {
            let first = (at..range.end).find(|&i| self.has(i))?;
            let end = (first..range.end).find(|&i| !self.has(i));
            at = end.unwrap_or(range.end);
            Some(first..at)
        })
    }

    /// Takes out the members of `gone` that are not in `kept`.
    pub(crate) fn subtract_unless(&mut self, gone: &Blocks, kept: &Blocks) {
        for (word, (gone, kept)) in self.0.iter_mut().zip(gone.0.iter().zip(&kept.0)) {
            *word &= !gone | kept;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|w| u64::from(w.count_ones())).sum()
    }
}

/// The bits of a range, word by word.
fn words(range: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    let Range { mut start, end } = range;
    std::iter::from_fn(move || {
        if start >= end {
            return None;
        }
        let (word, first) = (start / 64, start % 64);
        let count = (64 - first).min(end - start);
        start += count;
        let bits = match count {
            64 => u64::MAX,
            _ => ((1 << count) - 1) << first,
        };
        Some((word, bits))
    })
}

/// Blocks that `range` touches, as block numbers.
pub(crate) fn touched(range: &Range<u64>) -> Range<u64> {
    range.start / BLOCK..range.end.div_ceil(BLOCK)
}

/// Blocks that lie inside `range` as a whole.
pub(crate) fn covered(range: &Range<u64>) -> Range<u64> {
    let first = range.start.div_ceil(BLOCK);
    first..(range.end / BLOCK).max(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn sets_of_blocks_are_as_sets_of_numbers() {
        let mut random = random::Random::new(7);
        let (mut blocks, mut naive) = (Blocks::NONE, BTreeSet::new());
        for _ in 0..2000 {
            let start = random.below(BLOCKS as u64 + 1) as usize;
            let range = start..start + random.below((BLOCKS - start) as u64 + 1) as usize;
            match random.below(2) {
                0 => {
                    blocks.insert(range.clone());
                    naive.extend(range.clone());
                }
                _ => {
                    blocks.remove(range.clone());
                    naive.retain(|i| !range.contains(i));
                }
            }
            assert_eq!(blocks.count(), naive.len() as u64);
            let mut found = BTreeSet::new();
            let mut last = None;
            for run in blocks.runs(0..BLOCKS) {
                assert!(last.is_none_or(|end| end < run.start) && !run.is_empty());
                last = Some(run.end);
                found.extend(run);
            }
            assert_eq!(found, naive);
            let mut some = Blocks::NONE;
            some.insert_from(&blocks, range.clone());
            assert!((0..BLOCKS).all(|i| some.has(i) == (blocks.has(i) && range.contains(&i))));
        }
    }
}
