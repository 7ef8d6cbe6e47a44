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

    pub(crate) fn has(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 == 1
    }

    pub(crate) fn insert(&mut self, range: Range<usize>) {
        range.for_each(|i| self.0[i / 64] |= 1 << (i % 64));
    }

    pub(crate) fn remove(&mut self, range: Range<usize>) {
        range.for_each(|i| self.0[i / 64] &= !(1 << (i % 64)));
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

/// Blocks that `range` touches, as block numbers.
pub(crate) fn touched(range: &Range<u64>) -> Range<u64> {
    range.start / BLOCK..range.end.div_ceil(BLOCK)
}

/// Blocks that lie inside `range` as a whole.
pub(crate) fn covered(range: &Range<u64>) -> Range<u64> {
    let first = range.start.div_ceil(BLOCK);
    first..(range.end / BLOCK).max(first)
}
