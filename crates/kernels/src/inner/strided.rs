//! Two loop levels around a block at any strides, specialised by the length of the block: lengths
//! that are powers of two are one load and one store, the common sums of two or three of them (12, 20, 24,
//! 40, 48, 56) that many, others fall into a class, call `memcpy` or have a loop of their own (`long`). A
//! class stores two halves that overlap, which the processor cannot put together: 24 bytes every 48 in cache
//! took 1.0 ns a block as a class and take 0.6 as 16 and 8; 40 bytes 1.9 and 0.9.
//!
//! [`strided`] is the kernel everything else is measured against; [`plain`] is its relative for
//! jobs that miss the caches.

use super::Kernel;
use super::block::{copy_class, copy_const, prefetch_far};
use super::long::{LONG, strided_long};
use crate::program::Dim;

/// Runs `row` for every iteration of the outer level.
#[inline(always)]
pub(super) fn rows(
    source: *const u8,
    target: *mut u8,
    a: Dim,
    mut row: impl FnMut(*const u8, *mut u8),
) {
    let (mut from, mut to) = (source, target);
    for _ in 0..a.count {
        row(from, to);
        from = from.wrapping_offset(a.source);
        to = to.wrapping_offset(a.target);
    }
}

/// Runs `copy` over both levels, four blocks at a time.
#[inline(always)]
fn walk(source: *const u8, target: *mut u8, a: Dim, b: Dim, copy: impl Fn(*const u8, *mut u8)) {
    rows(source, target, a, |mut from, mut to| {
        for _ in 0..b.count / 4 {
            copy(from, to);
            copy(from.wrapping_offset(b.source), to.wrapping_offset(b.target));
            copy(
                from.wrapping_offset(2 * b.source),
                to.wrapping_offset(2 * b.target),
            );
            copy(
                from.wrapping_offset(3 * b.source),
                to.wrapping_offset(3 * b.target),
            );
            from = from.wrapping_offset(4 * b.source);
            to = to.wrapping_offset(4 * b.target);
        }
        for _ in 0..b.count % 4 {
            copy(from, to);
            from = from.wrapping_offset(b.source);
            to = to.wrapping_offset(b.target);
        }
    });
}

unsafe fn strided_const<const B: usize>(
    source: *const u8,
    target: *mut u8,
    a: Dim,
    b: Dim,
    _len: usize,
) {
    // SAFETY: the kernel's contract covers every block the walk visits.
    walk(source, target, a, b, |from, to| unsafe {
        copy_const::<B>(from, to)
    });
}

unsafe fn strided_class<const H: usize>(
    source: *const u8,
    target: *mut u8,
    a: Dim,
    b: Dim,
    len: usize,
) {
    // SAFETY: as above; `strided` picks the class that holds `len`.
    walk(source, target, a, b, |from, to| unsafe {
        copy_class::<H>(from, to, len)
    });
}

unsafe fn strided_memcpy(source: *const u8, target: *mut u8, a: Dim, b: Dim, len: usize) {
    // SAFETY: as above.
    walk(source, target, a, b, |from, to| unsafe {
        to.copy_from_nonoverlapping(from, len)
    });
}

/// The kernel for blocks of this length at any strides.
pub(crate) fn strided(len: usize) -> Kernel {
    match len {
        1 => strided_const::<1>,
        2 => strided_const::<2>,
        4 => strided_const::<4>,
        8 => strided_const::<8>,
        16 => strided_const::<16>,
        32 => strided_const::<32>,
        64 => strided_const::<64>,
        12 => strided_const::<12>,
        20 => strided_const::<20>,
        24 => strided_const::<24>,
        40 => strided_const::<40>,
        48 => strided_const::<48>,
        56 => strided_const::<56>,
        3 => strided_class::<2>,
        5..=7 => strided_class::<4>,
        9..=15 => strided_class::<8>,
        17..=31 => strided_class::<16>,
        33..=63 => strided_class::<32>,
        65..=128 => strided_class::<64>,
        129..LONG => strided_memcpy,
        _ => strided_long().unwrap_or(strided_memcpy),
    }
}

/// One block after another, not unrolled, asking for sources `AHEAD` and targets `TARGET_AHEAD`
/// bytes further on.
///
/// For jobs that miss the caches: the hardware recognises strides per instruction, and four
/// loads in turn look to it like four strides four times as long. Measured with 8 bytes every
/// 24 on huge pages: 7.7 GB/s against 5.6 unrolled; scattering 8 bytes every 40 on 4 KiB pages:
/// 4.0 with and 3.2 without asking; 16 bytes every 80 on huge pages: 4.9 and 3.1 with and without
/// asking for targets, which only harms where several blocks share a line (3.3 against 4.1).
unsafe fn plain_const<const B: usize, const AHEAD: usize, const TARGET_AHEAD: usize>(
    source: *const u8,
    target: *mut u8,
    a: Dim,
    b: Dim,
    _len: usize,
) {
    rows(source, target, a, |mut from, mut to| {
        for _ in 0..b.count {
            // SAFETY: the kernel's contract, for one block.
            unsafe { copy_const::<B>(from, to) };
            if AHEAD > 0 {
                prefetch_far(from.wrapping_add(AHEAD));
            }
            if TARGET_AHEAD > 0 {
                prefetch_far(to.wrapping_add(TARGET_AHEAD));
            }
            from = from.wrapping_offset(b.source);
            to = to.wrapping_offset(b.target);
            keep_rolled();
        }
    });
}

/// Keeps the compiler from unrolling the loop it stands in.
#[inline(always)]
pub(super) fn keep_rolled() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

/// What a kernel for jobs that miss the caches asks for ahead of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Nothing,
    Sources,
    Both,
}

/// The kernel for blocks of this length in jobs that miss the caches.
pub(crate) fn plain(len: usize, ask: Ask) -> Kernel {
    macro_rules! plain {
        ($b:literal) => {
            match ask {
                Ask::Nothing => plain_const::<$b, 0, 0>,
                Ask::Sources => plain_const::<$b, 1024, 0>,
                Ask::Both => plain_const::<$b, 1024, 4096>,
            }
        };
    }
    match len {
        1 => plain!(1),
        2 => plain!(2),
        4 => plain!(4),
        8 => plain!(8),
        16 => plain!(16),
        32 => plain!(32),
        _ => strided(len),
    }
}
