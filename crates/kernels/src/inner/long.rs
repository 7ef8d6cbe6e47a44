//! Blocks of some KiB and more.
//!
//! `memcpy` is left to shorter ones. From 2 KiB or so on the C library uses the processor's string move,
//! which on some processors takes nearly twice as long where the target lies up to a line behind the
//! source, modulo a page: what a buffer on the heap (16 bytes behind its page) is to a mapped file.
//!
//! Measured with four processes on two cores, 16 MiB gathered in blocks at four times their length, in
//! microseconds, target 16 bytes behind a page:
//!
//! ```text
//!  block      memcpy   this loop   and asking for the next block
//!  2 KiB         980         790      645
//!  8 KiB         620         415      370
//!  32 KiB        640         400      380
//!  512 KiB       580         345      307
//!  4 MiB         350         355      304
//! ```
//!
//! In cache the loop is as fast as `memcpy` or faster (8 KiB: 117 GB/s against 108, and against 49 with
//! such a target). Asking for more than the next block would gain some 10 percent far from the caches
//! and lose as much in them.

use super::Kernel;
use super::strided::rows;
use crate::program::Dim;

/// Shortest block that is copied here.
pub(crate) const LONG: usize = 2048;

/// Copies a block of [`LONG`] bytes or more.
///
/// # Safety
/// `len` bytes are readable at `source`, writable at `target`, and do not overlap.
#[inline]
pub(crate) unsafe fn copy_long(source: *const u8, target: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2; the rest is the caller's promise.
        return unsafe { x86::copy(source, target, len) };
    }
    // SAFETY: the caller's promise.
    unsafe { target.copy_from_nonoverlapping(source, len) };
}

/// The kernel for blocks of [`LONG`] bytes or more at any strides, if it is better than `memcpy`.
pub(crate) fn strided_long() -> Option<Kernel> {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        return Some(x86::strided);
    }
    None
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_store_si256, _mm256_storeu_si256};

    use super::super::block::prefetch_far;
    use super::{Dim, rows};

    /// Bytes of a register, and of a round of the loop.
    const WORD: usize = 32;
    const ROUND: usize = 4 * WORD;

    /// How much of the next block is asked for: the hardware follows within a page.
    const AHEAD: usize = 4096;

    /// # Safety
    /// A word is readable at `at`.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn load(at: *const u8) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_si256(at.cast()) }
    }

    /// Copies whole rounds from `at` on until less than a round is left before `end`, where `ask` is
    /// told each place; returns where it stopped.
    ///
    /// # Safety
    /// `end` bytes are readable and writable; `target + at` is a multiple of a word.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn rounds(
        source: *const u8,
        target: *mut u8,
        mut at: usize,
        end: usize,
        ask: impl Fn(usize),
    ) -> usize {
        while at + ROUND <= end {
            ask(at);
            // SAFETY: a round is left before `end`, and `at` moves by whole words.
            unsafe {
                let (from, to) = (source.add(at), target.add(at));
                let one = load(from);
                let two = load(from.add(WORD));
                let three = load(from.add(2 * WORD));
                let four = load(from.add(3 * WORD));
                _mm256_store_si256(to.cast(), one);
                _mm256_store_si256(to.add(WORD).cast(), two);
                _mm256_store_si256(to.add(2 * WORD).cast(), three);
                _mm256_store_si256(to.add(3 * WORD).cast(), four);
            }
            at += ROUND;
        }
        at
    }

    /// A word that may hang over, whole words of the target, a last round that may hang over. Head and
    /// tail are read first: the two ends of a block are often the two ends of a line.
    ///
    /// # Safety
    /// As [`super::copy_long`]; the processor has AVX2.
    #[target_feature(enable = "avx2")]
    unsafe fn copy_and(source: *const u8, target: *mut u8, len: usize, next: Option<*const u8>) {
        debug_assert!(len >= super::LONG);
        // SAFETY: a block is longer than a word and a round, so that head and tail lie within it.
        unsafe {
            let head = load(source);
            let end = source.add(len);
            let tail = [4, 3, 2, 1].map(|i| load(end.sub(i * WORD)));
            _mm256_storeu_si256(target.cast(), head);
            let mut at = WORD - target as usize % WORD;
            match next {
                None => {
                    rounds(source, target, at, len, |_| {});
                }
                Some(next) => {
                    let asking = len.saturating_sub(AHEAD);
                    at = rounds(source, target, at, asking, |_| {});
                    let from = at;
                    rounds(source, target, at, len, |at| {
                        prefetch_far(next.wrapping_add(at - from));
                        prefetch_far(next.wrapping_add(at - from + 64));
                    });
                }
            }
            let end = target.add(len);
            for (i, word) in tail.into_iter().enumerate() {
                _mm256_storeu_si256(end.sub((4 - i) * WORD).cast(), word);
            }
        }
    }

    /// # Safety
    /// As [`super::copy_long`]; the processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn copy(source: *const u8, target: *mut u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { copy_and(source, target, len, None) };
    }

    /// Blocks at any strides; each asks for the beginning of the one behind it.
    ///
    /// # Safety
    /// As every kernel; the processor has AVX2, `len` is at least [`super::LONG`].
    pub(super) unsafe fn strided(source: *const u8, target: *mut u8, a: Dim, b: Dim, len: usize) {
        rows(source, target, a, |mut from, mut to| {
            let row = from;
            for left in (0..b.count).rev() {
                let next = match left {
                    0 => row.wrapping_offset(a.source),
                    _ => from.wrapping_offset(b.source),
                };
                let next = (left > 0 || a.count > 1).then_some(next);
                // SAFETY: the kernel's contract covers the block; asking for any place is harmless.
                unsafe { copy_and(from, to, len, next) };
                from = from.wrapping_offset(b.source);
                to = to.wrapping_offset(b.target);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_blocks_are_copied_at_every_place_and_nothing_beside_them() {
        let source: Vec<u8> = (0..12_000_usize).map(|i| (i * 31 % 251) as u8).collect();
        for len in (LONG..LONG + 140).chain([4096, 4224, 8191]) {
            for (from, to) in [(0, 0), (1, 16), (7, 31), (64, 33), (5, 5)] {
                let mut target = vec![0; 9000];
                // SAFETY: both lie within their memory.
                unsafe { copy_long(source[from..].as_ptr(), target[to..].as_mut_ptr(), len) };
                assert_eq!(target[to..to + len], source[from..from + len], "{len} {to}");
                let beside = target[..to].iter().chain(&target[to + len..]);
                assert!(beside.into_iter().all(|b| *b == 0), "{len} {from} {to}");
            }
        }
    }

    #[test]
    fn long_blocks_at_strides_are_copied_like_plain_ones() {
        let Some(kernel) = strided_long() else { return };
        let len = LONG + 24;
        let source: Vec<u8> = (0..40_000_usize).map(|i| (i * 17 % 253) as u8).collect();
        let (a, b) = (
            Dim {
                count: 2,
                source: 16_000,
                target: 3 * len as isize,
            },
            Dim {
                count: 3,
                source: 5000,
                target: len as isize,
            },
        );
        let mut target = vec![0; 6 * len];
        // SAFETY: all blocks lie within both.
        unsafe { kernel(source.as_ptr(), target.as_mut_ptr(), a, b, len) };
        for i in 0..2 {
            for j in 0..3 {
                let (from, to) = (i * 16_000 + j * 5000, (3 * i + j) * len);
                assert_eq!(target[to..to + len], source[from..from + len]);
            }
        }
    }
}
