//! Two crossed loop levels: the one that is fast in the source is slow in the target. Run in
//! square tiles, so that the lines of both sides stay in the first cache while a tile lasts.

use super::Kernel;
use super::block::{copy_class, copy_const};
use crate::program::Dim;

/// Runs `copy` over tiles of `rows x columns` blocks, `b` fastest within a tile.
#[inline(always)]
unsafe fn tiles(
    source: *const u8,
    target: *mut u8,
    a: Dim,
    b: Dim,
    (rows, columns): (usize, usize),
    copy: impl Fn(*const u8, *mut u8),
) {
    let mut i = 0;
    while i < a.count {
        let height = rows.min(a.count - i);
        let mut j = 0;
        while j < b.count {
            let width = columns.min(b.count - j);
            let at = |dim: fn(&Dim) -> isize| i as isize * dim(&a) + j as isize * dim(&b);
            let mut row_source = source.wrapping_offset(at(|dim| dim.source));
            let mut row_target = target.wrapping_offset(at(|dim| dim.target));
            for _ in 0..height {
                let (mut from, mut to) = (row_source, row_target);
                for _ in 0..width {
                    copy(from, to);
                    from = from.wrapping_offset(b.source);
                    to = to.wrapping_offset(b.target);
                }
                row_source = row_source.wrapping_offset(a.source);
                row_target = row_target.wrapping_offset(a.target);
            }
            j += width;
        }
        i += height;
    }
}

/// Tile edge in blocks: a line's worth of small blocks, at least 8 so that pages are shared.
const fn edge(len: usize) -> usize {
    let edge = 64 / len;
    if edge < 8 { 8 } else { edge }
}

unsafe fn tiles_const<const B: usize>(
    source: *const u8,
    target: *mut u8,
    a: Dim,
    b: Dim,
    _len: usize,
) {
    let edges = (edge(B), edge(B));
    // SAFETY: the kernel's contract covers every block the tiles visit.
    unsafe {
        tiles(source, target, a, b, edges, |from, to| {
            copy_const::<B>(from, to)
        })
    };
}

unsafe fn tiles_class<const H: usize>(
    source: *const u8,
    target: *mut u8,
    a: Dim,
    b: Dim,
    len: usize,
) {
    let edges = (edge(H), edge(H));
    // SAFETY: as above; `crossed` picks the class that holds `len`.
    unsafe {
        tiles(source, target, a, b, edges, |from, to| {
            copy_class::<H>(from, to, len)
        })
    };
}

unsafe fn tiles_long(source: *const u8, target: *mut u8, a: Dim, b: Dim, len: usize) {
    // SAFETY: as above.
    unsafe {
        tiles(source, target, a, b, (8, 8), |from, to| {
            to.copy_from_nonoverlapping(from, len)
        })
    };
}

/// The kernel for crossed levels and blocks of this length.
pub(crate) fn crossed(len: usize) -> Kernel {
    match len {
        1 => tiles_const::<1>,
        2 => tiles_const::<2>,
        4 => tiles_const::<4>,
        8 => tiles_const::<8>,
        16 => tiles_const::<16>,
        32 => tiles_const::<32>,
        64 => tiles_const::<64>,
        3 => tiles_class::<2>,
        5..=7 => tiles_class::<4>,
        9..=15 => tiles_class::<8>,
        17..=31 => tiles_class::<16>,
        33..=63 => tiles_class::<32>,
        65..=128 => tiles_class::<64>,
        _ => tiles_long,
    }
}
