//! Blocks at a stride in the source, end to end in the target. What limits a plain loop is one
//! store per block, so small blocks are put together in a register and stored 8 or 16 bytes at
//! a time.
//!
//! Bytes (and 2 or 4 of them) at strides below 16 are picked out of a 16-byte load by a
//! shuffle; stores then overlap, the later one repairing what the one before wrote too far,
//! which is why the last blocks of a row are copied one by one:
//!
//! ```text
//!  stride 5:  load  a....b....c....d   shuffle  abcd____________   store at 0, 4, 8, ..
//! ```
//!
//! Measured in cache against one store per block: 1 byte at stride 5, 14 against 4.2 GB/s.

use super::Kernel;
use super::block::copy_const;
use super::strided::{rows, strided};
use crate::program::Dim;

/// The kernel for blocks of this length that lie end to end in the target.
pub(crate) fn gather(len: usize, source_stride: isize) -> Kernel {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("ssse3") {
        match (len, source_stride) {
            (1, 2..=15) => return x86::picked::<1>,
            (2, 3..=14) => return x86::picked::<2>,
            (4, 5..=12) => return x86::picked::<4>,
            _ => {}
        }
    }
    match len {
        1 => packed::<1>,
        2 => packed::<2>,
        4 => packed::<4>,
        #[cfg(target_arch = "x86_64")]
        8 => x86::packed_8,
        _ => strided(len),
    }
}

/// Puts 8 / B blocks into a word and stores that.
unsafe fn packed<const B: usize>(source: *const u8, target: *mut u8, a: Dim, b: Dim, _len: usize) {
    let word = 8 / B;
    rows(source, target, a, |mut from, mut to| {
        for _ in 0..b.count / word {
            let mut value = 0;
            for index in 0..word {
                let mut block = [0; 8];
                // SAFETY: the kernel's contract: block `index` of this word is readable.
                unsafe {
                    copy_const::<B>(
                        from.wrapping_offset(index as isize * b.source),
                        block.as_mut_ptr(),
                    );
                }
                value |= u64::from_le_bytes(block) << (8 * B * index);
            }
            // SAFETY: the kernel's contract: the next `word` blocks are writable.
            unsafe { to.cast::<[u8; 8]>().write_unaligned(value.to_le_bytes()) };
            from = from.wrapping_offset(word as isize * b.source);
            to = to.wrapping_add(8);
        }
        for _ in 0..b.count % word {
            // SAFETY: the kernel's contract, for one block.
            unsafe { copy_const::<B>(from, to) };
            from = from.wrapping_offset(b.source);
            to = to.wrapping_add(B);
        }
    });
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, _mm_castpd_si128, _mm_castsi128_pd, _mm_loadh_pd, _mm_loadl_epi64,
        _mm_loadu_si128, _mm_shuffle_epi8, _mm_storeu_si128,
    };

    use super::{Dim, copy_const, rows};

    /// Blocks of 8 bytes, two to a store.
    pub(super) unsafe fn packed_8(source: *const u8, target: *mut u8, a: Dim, b: Dim, _len: usize) {
        rows(source, target, a, |mut from, mut to| {
            let pair = |from: *const u8, to: *mut u8| {
                // SAFETY: the kernel's contract: two blocks readable, 16 bytes writable.
                unsafe {
                    let low = _mm_loadl_epi64(from.cast());
                    let both =
                        _mm_loadh_pd(_mm_castsi128_pd(low), from.wrapping_offset(b.source).cast());
                    _mm_storeu_si128(to.cast(), _mm_castpd_si128(both));
                }
            };
            for _ in 0..b.count / 4 {
                pair(from, to);
                pair(from.wrapping_offset(2 * b.source), to.wrapping_add(16));
                from = from.wrapping_offset(4 * b.source);
                to = to.wrapping_add(32);
            }
            for _ in 0..b.count % 4 {
                // SAFETY: the kernel's contract, for one block.
                unsafe { copy_const::<8>(from, to) };
                from = from.wrapping_offset(b.source);
                to = to.wrapping_add(8);
            }
        });
    }

    /// Blocks of B bytes at a small positive stride, picked out of 16-byte loads.
    ///
    /// # Safety
    /// As every kernel; the processor has SSSE3, and `B < b.source <= 16 - B`.
    #[target_feature(enable = "ssse3")]
    pub(super) unsafe fn picked<const B: usize>(
        source: *const u8,
        target: *mut u8,
        a: Dim,
        b: Dim,
        _len: usize,
    ) {
        let stride = b.source as usize;
        let per_load = (16 - B) / stride + 1;
        let mut mask = [0x80u8; 16];
        for block in 0..per_load {
            for byte in 0..B {
                mask[block * B + byte] = (block * stride + byte) as u8;
            }
        }
        // SAFETY: the mask is 16 bytes.
        let mask = unsafe { _mm_loadu_si128(mask.as_ptr().cast::<__m128i>()) };
        // A step may load 16 bytes of the row's extent and store 16 bytes of its target.
        let enough = (16usize.div_ceil(B)).max((16 - B).div_ceil(stride) + 1);
        let (step_source, step_target) = (per_load * stride, per_load * B);
        rows(source, target, a, |mut from, mut to| {
            let mut left = b.count;
            while left >= enough + 3 * per_load {
                // SAFETY: `left` blocks remain after `from` and `to`, three steps further at
                // least `enough`: every load and store below stays within them.
                unsafe {
                    for step in 0..4 {
                        let load = _mm_loadu_si128(from.add(step * step_source).cast());
                        _mm_storeu_si128(
                            to.add(step * step_target).cast(),
                            _mm_shuffle_epi8(load, mask),
                        );
                    }
                }
                left -= 4 * per_load;
                from = from.wrapping_add(4 * step_source);
                to = to.wrapping_add(4 * step_target);
            }
            while left >= enough.max(per_load) {
                // SAFETY: as above for one step.
                unsafe {
                    let load = _mm_loadu_si128(from.cast());
                    _mm_storeu_si128(to.cast(), _mm_shuffle_epi8(load, mask));
                }
                left -= per_load;
                from = from.wrapping_add(step_source);
                to = to.wrapping_add(step_target);
            }
            for _ in 0..left {
                // SAFETY: the kernel's contract, for one block.
                unsafe { copy_const::<B>(from, to) };
                from = from.wrapping_add(stride);
                to = to.wrapping_add(B);
            }
        });
    }
}
