//! Two crossed loop levels: the one that is fast in the source (`a`) is slow in the target, the
//! one that is fast in the target (`b`) is slow in the source.
//!
//! Small elements that lie end to end on both sides go through square tiles of one cache line
//! (64 bytes) by one line: the lines of 64 / B source rows are read, transposed in registers
//! into a buffer of at most 4 KiB, and written as whole lines, past the caches if the job is
//! large. So every line of either side is touched once per tile, whatever the strides do to
//! cache sets.
//!
//! ```text
//!   source rows (b)          buffer (L1)          target rows (a)
//!   |line|....               |abcd|               |line|....
//!   |line|....   registers   |efgh|    lines      |line|....
//!   |line|....  ---------->  |ijkl|  --------->   |line|....
//! ```
//!
//! Ragged edges and elements of other sizes or with gaps are copied one by one, in tiles too.
//!
//! Tiles are visited in bands: `BAND` tiles along the source row before the next rows, so that
//! neither side touches more pages than the second TLB holds.

use super::Kernel;
use super::block::{copy_any, copy_class, copy_const};
use super::gather::gather;
use super::stream::stream_crossed;
use super::strided::strided;
use crate::cache::LINE;
use crate::program::Dim;

/// Copies the rectangle of blocks `rows x columns` one by one, columns (b) fastest.
#[inline(always)]
fn one_by_one(
    source: *const u8,
    target: *mut u8,
    (a, a_count): (Dim, usize),
    (b, b_count): (Dim, usize),
    copy: impl Fn(*const u8, *mut u8),
) {
    let (mut row_source, mut row_target) = (source, target);
    for _ in 0..a_count {
        let (mut from, mut to) = (row_source, row_target);
        for _ in 0..b_count {
            copy(from, to);
            from = from.wrapping_offset(b.source);
            to = to.wrapping_offset(b.target);
        }
        row_source = row_source.wrapping_offset(a.source);
        row_target = row_target.wrapping_offset(a.target);
    }
}

/// Visits rectangles of at most `edge x edge` blocks: `visit(source, target, a_count, b_count)`.
#[inline(always)]
fn tiles(
    source: *const u8,
    target: *mut u8,
    (a, b): (Dim, Dim),
    edge: usize,
    mut visit: impl FnMut(*const u8, *mut u8, usize, usize),
) {
    let mut band = 0;
    while band < a.count {
        let band_end = a.count.min(band + BAND * edge);
        let mut j = 0;
        while j < b.count {
            let width = edge.min(b.count - j);
            let mut i = band;
            while i < band_end {
                let height = edge.min(band_end - i);
                let (i_at, j_at) = (i as isize, j as isize);
                let from = source.wrapping_offset(i_at * a.source + j_at * b.source);
                let to = target.wrapping_offset(i_at * a.target + j_at * b.target);
                visit(from, to, height, width);
                i += height;
            }
            j += width;
        }
        band = band_end;
    }
}

/// Tiles per band.
const BAND: usize = 8;

/// Edge of a tile of blocks that are copied one by one: a line's worth, at least 8.
const fn edge(len: usize) -> usize {
    let edge = LINE / len;
    if edge < 8 { 8 } else { edge }
}

unsafe fn tiles_const<const B: usize>(
    source: *const u8,
    target: *mut u8,
    a: Dim,
    b: Dim,
    _len: usize,
) {
    tiles(
        source,
        target,
        (a, b),
        edge(B),
        |from, to, height, width| {
            // SAFETY: the kernel's contract covers every block of a tile.
            one_by_one(from, to, (a, height), (b, width), |from, to| unsafe {
                copy_const::<B>(from, to)
            });
        },
    );
}

unsafe fn tiles_class<const H: usize>(
    source: *const u8,
    target: *mut u8,
    a: Dim,
    b: Dim,
    len: usize,
) {
    tiles(
        source,
        target,
        (a, b),
        edge(H),
        |from, to, height, width| {
            // SAFETY: as above; `crossed` picks the class that holds `len`.
            one_by_one(from, to, (a, height), (b, width), |from, to| unsafe {
                copy_class::<H>(from, to, len)
            });
        },
    );
}

unsafe fn tiles_long(source: *const u8, target: *mut u8, a: Dim, b: Dim, len: usize) {
    tiles(source, target, (a, b), 8, |from, to, height, width| {
        // SAFETY: as above.
        one_by_one(from, to, (a, height), (b, width), |from, to| unsafe {
            copy_any(from, to, len);
        });
    });
}

/// Few columns (packets): a chunk of the source that stays in the first cache is read once per
/// column, each time as an ordinary gather.
unsafe fn few(source: *const u8, target: *mut u8, a: Dim, b: Dim, len: usize) {
    let copy = if b.target == len as isize {
        gather(len, b.source)
    } else {
        strided(len)
    };
    let chunk = (FEW_CHUNK / b.source.unsigned_abs().max(1)).max(16);
    let mut j = 0;
    while j < b.count {
        let count = chunk.min(b.count - j);
        let from = source.wrapping_offset(j as isize * b.source);
        let to = target.wrapping_offset(j as isize * b.target);
        // SAFETY: the kernel's contract covers `count` blocks of every column.
        unsafe { copy(from, to, a, Dim { count, ..b }, len) };
        j += count;
    }
}

/// Source bytes read at a time by [`few`].
const FEW_CHUNK: usize = 8 << 10;

/// Whether a level of `count` blocks of `len` bytes has too few columns for tiles: less than a
/// line or, in cache, 512 bytes of blocks that tiles cannot put together. Measured in cache:
/// 7 columns of 8 bytes 31 GB/s against 17 in tiles, 16 of 16 bytes 48 against 24, but 7 of 4
/// bytes 14 against 18.
fn is_few(len: usize, count: usize, stream: bool) -> bool {
    (len >= 8 && count * len < LINE) || (len >= 16 && !stream && count * len <= 512)
}

/// The kernel for crossed levels and blocks of this length; `stream` says that the job is large.
pub(crate) fn crossed(len: usize, a: Dim, b: Dim, stream: bool) -> Kernel {
    if stream && let Some(kernel) = stream_crossed(len, a, b) {
        return kernel;
    }
    if is_few(len, a.count, stream) {
        return few;
    }
    let dense = a.source == len as isize && b.target == len as isize;
    #[cfg(target_arch = "x86_64")]
    if dense && std::is_x86_feature_detected!("avx2") {
        match (len, stream) {
            (1, false) => return x86::lines::<1, false>,
            (2, false) => return x86::lines::<2, false>,
            (4, false) => return x86::lines::<4, false>,
            (8, false) => return x86::lines::<8, false>,
            (16, false) => return x86::lines::<16, false>,
            (1, true) => return x86::lines::<1, true>,
            (2, true) => return x86::lines::<2, true>,
            (4, true) => return x86::lines::<4, true>,
            (8, true) => return x86::lines::<8, true>,
            (16, true) => return x86::lines::<16, true>,
            _ => {}
        }
    }
    let _ = (dense, stream);
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

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_loadu_si128, _mm_sfence, _mm_storeu_si128, _mm_unpackhi_epi8,
        _mm_unpackhi_epi16, _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi8,
        _mm_unpacklo_epi16, _mm_unpacklo_epi32, _mm_unpacklo_epi64, _mm256_castsi256_si128,
        _mm256_extracti128_si256, _mm256_load_si256, _mm256_loadu_si256, _mm256_setzero_si256,
        _mm256_storeu_si256, _mm256_stream_si256, _mm256_unpackhi_epi8, _mm256_unpackhi_epi16,
        _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi8, _mm256_unpacklo_epi16,
        _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
    };

    use super::{Dim, LINE, copy_const, one_by_one, tiles};
    use crate::inner::block::prefetch;

    /// A buffer of up to 64 lines.
    #[repr(align(64))]
    struct Tile([u8; LINE * LINE]);

    /// Interleaves elements of B bytes of two registers: the lower and the upper halves.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn zip<const B: usize>(one: __m256i, two: __m256i) -> (__m256i, __m256i) {
        match B {
            1 => (
                _mm256_unpacklo_epi8(one, two),
                _mm256_unpackhi_epi8(one, two),
            ),
            2 => (
                _mm256_unpacklo_epi16(one, two),
                _mm256_unpackhi_epi16(one, two),
            ),
            4 => (
                _mm256_unpacklo_epi32(one, two),
                _mm256_unpackhi_epi32(one, two),
            ),
            _ => (
                _mm256_unpacklo_epi64(one, two),
                _mm256_unpackhi_epi64(one, two),
            ),
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn zip_narrow<const B: usize>(one: __m128i, two: __m128i) -> (__m128i, __m128i) {
        match B {
            1 => (_mm_unpacklo_epi8(one, two), _mm_unpackhi_epi8(one, two)),
            2 => (_mm_unpacklo_epi16(one, two), _mm_unpackhi_epi16(one, two)),
            4 => (_mm_unpacklo_epi32(one, two), _mm_unpackhi_epi32(one, two)),
            _ => (_mm_unpacklo_epi64(one, two), _mm_unpackhi_epi64(one, two)),
        }
    }

    /// Transposes 16 / B rows of 32 bytes: row `k` of the result is column `k` (16 bytes each).
    ///
    /// Interleaving row i with row i + M/2, log2(M) times, is the transposition of an M x M
    /// square; both 128-bit lanes do one square each.
    ///
    /// # Safety
    /// 16 / B rows of 32 bytes at `stride` are readable, 32 / B rows of 16 bytes at `step`
    /// writable.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn wide<const B: usize>(source: *const u8, stride: isize, target: *mut u8, step: isize) {
        let rows = 16 / B;
        let mut row = [_mm256_setzero_si256(); 16];
        for (k, row) in row.iter_mut().enumerate().take(rows) {
            // SAFETY: the caller's promise.
            *row =
                unsafe { _mm256_loadu_si256(source.wrapping_offset(k as isize * stride).cast()) };
        }
        let mut done = 1;
        while done < rows {
            let old = row;
            for k in 0..rows / 2 {
                (row[2 * k], row[2 * k + 1]) = zip::<B>(old[k], old[k + rows / 2]);
            }
            done *= 2;
        }
        for (k, row) in row.iter().enumerate().take(rows) {
            let low = target.wrapping_offset(k as isize * step);
            let high = target.wrapping_offset((k + rows) as isize * step);
            // SAFETY: the caller's promise.
            unsafe {
                _mm_storeu_si128(low.cast(), _mm256_castsi256_si128(*row));
                _mm_storeu_si128(high.cast(), _mm256_extracti128_si256::<1>(*row));
            }
        }
    }

    /// Transposes 16 / B rows of 16 bytes and stores the first `columns` columns.
    ///
    /// # Safety
    /// 16 / B rows of 16 bytes at `stride` are readable, `columns` rows of 16 bytes at `step`
    /// writable.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn narrow<const B: usize>(
        source: *const u8,
        stride: isize,
        target: *mut u8,
        step: isize,
        columns: usize,
    ) {
        let rows = 16 / B;
        // SAFETY: zero is a value of the type.
        let mut row: [__m128i; 16] = unsafe { std::mem::zeroed() };
        for (k, row) in row.iter_mut().enumerate().take(rows) {
            // SAFETY: the caller's promise.
            *row = unsafe { _mm_loadu_si128(source.wrapping_offset(k as isize * stride).cast()) };
        }
        let mut done = 1;
        while done < rows {
            let old = row;
            for k in 0..rows / 2 {
                (row[2 * k], row[2 * k + 1]) = zip_narrow::<B>(old[k], old[k + rows / 2]);
            }
            done *= 2;
        }
        for (k, row) in row.iter().enumerate().take(rows) {
            if k < columns {
                // SAFETY: the caller's promise.
                unsafe { _mm_storeu_si128(target.wrapping_offset(k as isize * step).cast(), *row) };
            }
        }
    }

    /// The kernel for dense elements of B bytes.
    ///
    /// # Safety
    /// As every kernel; the processor has AVX2, `a.source` and `b.target` are B.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn lines<const B: usize, const STREAM: bool>(
        source: *const u8,
        target: *mut u8,
        a: Dim,
        b: Dim,
        _len: usize,
    ) {
        let mut tile = Tile([0; LINE * LINE]);
        let edge = LINE / B;
        // Reads may run past a row as long as they end before the last byte of the last row.
        let extent_end = source
            .wrapping_offset((b.count as isize - 1) * b.source.max(0))
            .wrapping_add(a.count * B) as usize;
        tiles(source, target, (a, b), edge, |from, to, height, width| {
            if height == edge && width == edge {
                // SAFETY: a full tile: edge lines on both sides; the buffer has as many.
                unsafe {
                    fill::<B>(from, b.source, &mut tile);
                    flush::<B, STREAM>(&tile, to, a.target);
                }
            } else {
                // SAFETY: the kernel's contract covers the tile; `extent_end` bounds reads.
                unsafe { ragged::<B>(from, to, (a, height), (b, width), extent_end) };
            }
        });
        if STREAM {
            // Streaming stores are not ordered with what follows: make them so.
            _mm_sfence();
        }
    }

    /// Reads a full tile of lines and transposes it into the buffer, one line per column.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn fill<const B: usize>(source: *const u8, stride: isize, tile: &mut Tile) {
        let tile = tile.0.as_mut_ptr();
        let rows = 16 / B;
        for group in 0..4 {
            let row = source.wrapping_offset((group * rows) as isize * stride);
            for k in 0..rows {
                prefetch(
                    row.wrapping_offset(k as isize * stride)
                        .wrapping_add(2 * LINE),
                );
            }
            for half in 0..2 {
                let columns = half * 2 * rows;
                let from = row.wrapping_add(half * 32);
                // SAFETY: the caller's promise for the source; the tile has 64 / B lines.
                unsafe {
                    let to = tile.add(columns * LINE + group * 16);
                    wide::<B>(from, stride, to, LINE as isize);
                }
            }
        }
    }

    /// Writes the buffer as lines.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn flush<const B: usize, const STREAM: bool>(
        tile: &Tile,
        target: *mut u8,
        stride: isize,
    ) {
        let tile = tile.0.as_ptr();
        for k in 0..LINE / B {
            let to = target.wrapping_offset(k as isize * stride);
            // SAFETY: the caller's promise for the target; the tile has 64 / B aligned lines.
            unsafe {
                let low = _mm256_load_si256(tile.add(k * LINE).cast());
                let high = _mm256_load_si256(tile.add(k * LINE + 32).cast());
                if STREAM && (to as usize).is_multiple_of(LINE) {
                    _mm256_stream_si256(to.cast(), low);
                    _mm256_stream_si256(to.add(32).cast(), high);
                } else {
                    _mm256_storeu_si256(to.cast(), low);
                    _mm256_storeu_si256(to.add(32).cast(), high);
                }
            }
        }
    }

    /// An incomplete tile: squares of 16 bytes as far as they go, single elements beyond.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn ragged<const B: usize>(
        source: *const u8,
        target: *mut u8,
        (a, height): (Dim, usize),
        (b, width): (Dim, usize),
        extent_end: usize,
    ) {
        let square = 16 / B;
        let mut j = 0;
        while j < width {
            let from_row = source.wrapping_offset(j as isize * b.source);
            let to_row = target.wrapping_add(j * B);
            let mut i = 0;
            if width - j >= square {
                while i < height {
                    let from = from_row.wrapping_add(i * B);
                    let last =
                        from.wrapping_offset((square as isize - 1) * b.source.max(0)) as usize;
                    if b.source < 0 && height - i < square || last + 16 > extent_end {
                        break;
                    }
                    let columns = square.min(height - i);
                    let to = to_row.wrapping_offset(i as isize * a.target);
                    // SAFETY: the rows end before the last byte that the kernel reads; the
                    // columns stored are columns of the tile.
                    unsafe { narrow::<B>(from, b.source, to, a.target, columns) };
                    i += columns;
                }
            }
            let columns = square.min(width - j);
            let from = from_row.wrapping_add(i * B);
            let to = to_row.wrapping_offset(i as isize * a.target);
            // SAFETY: the kernel's contract covers every element of the tile.
            one_by_one(from, to, (a, height - i), (b, columns), |from, to| unsafe {
                copy_const::<B>(from, to)
            });
            j += columns;
        }
    }
}
