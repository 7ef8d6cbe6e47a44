//! Two loop levels around a block at any strides, specialised by the length of the block.

use super::Kernel;
use super::block::{copy_class, copy_const};
use crate::program::Dim;

/// Runs `row` for every iteration of the outer level.
#[inline(always)]
pub(super) fn rows(source: *const u8, target: *mut u8, a: Dim, row: impl Fn(*const u8, *mut u8)) {
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

unsafe fn strided_long(source: *const u8, target: *mut u8, a: Dim, b: Dim, len: usize) {
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
        3 => strided_class::<2>,
        5..=7 => strided_class::<4>,
        9..=15 => strided_class::<8>,
        17..=31 => strided_class::<16>,
        33..=63 => strided_class::<32>,
        65..=128 => strided_class::<64>,
        _ => strided_long,
    }
}
