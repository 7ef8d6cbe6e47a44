//! Running a compiled stream: a whole operation, or a window of its bytes.
//!
//! One walk serves three motions, chosen when compiling the crate: gather, scatter, and filling
//! with zeros. A window costs a few divisions per level, once; whole iterations have none.

use std::ops::Range;

use super::compile::{Body, Group, Lens, Level, List, Nest, Op};
use crate::inner::block::{copy_any, copy_class, copy_const, prefetch};
use crate::inner::stream::{copy_past, past};
use crate::inner::strided::strided;
use crate::program::Dim;
use crate::run::each_between;

/// Where the walk stands in memory and in the packet. The packed side may point before the
/// packet as long as what is moved lies in it.
#[derive(Clone, Copy)]
pub(super) struct At {
    spread: *mut u8,
    packed: *mut u8,
}

impl At {
    pub(super) fn new(spread: *mut u8, packed: *mut u8) -> At {
        At { spread, packed }
    }

    /// Further on, modulo 2^64 on both sides.
    #[inline(always)]
    pub(super) fn moved(self, spread: u64, packed: u64) -> At {
        At {
            spread: self.spread.wrapping_add(spread as usize),
            packed: self.packed.wrapping_add(packed as usize),
        }
    }
}

/// What is done to each block. The functions touch a block at `at.spread` and, unless they fill,
/// one at `at.packed`.
pub(super) trait Motion {
    /// A block of any length.
    ///
    /// # Safety
    /// Both blocks are valid for what the motion does to them, and do not overlap.
    unsafe fn any(at: At, len: usize);

    /// A block of `B` bytes.
    ///
    /// # Safety
    /// As [`Motion::any`].
    unsafe fn exact<const B: usize>(at: At);

    /// A block of `H` to `2 H` bytes.
    ///
    /// # Safety
    /// As [`Motion::any`].
    unsafe fn class<const H: usize>(at: At, len: usize);

    /// Two levels around the block of a nest.
    ///
    /// # Safety
    /// As [`Motion::any`], for every block.
    unsafe fn levels(nest: &Nest, at: At, a: Level, b: Level);
}

fn dim(level: Level, source: u64, target: u64) -> Dim {
    Dim {
        count: level.count as usize,
        source: source as isize,
        target: target as isize,
    }
}

pub(super) struct Gather;

impl Motion for Gather {
    #[inline(always)]
    unsafe fn any(at: At, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { copy_any(at.spread, at.packed, len) };
    }

    #[inline(always)]
    unsafe fn exact<const B: usize>(at: At) {
        // SAFETY: the caller's promise.
        unsafe { copy_const::<B>(at.spread, at.packed) };
    }

    #[inline(always)]
    unsafe fn class<const H: usize>(at: At, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { copy_class::<H>(at.spread, at.packed, len) };
    }

    #[inline(always)]
    unsafe fn levels(nest: &Nest, at: At, a: Level, b: Level) {
        let (a, b) = (dim(a, a.stride, a.unit), dim(b, b.stride, b.unit));
        // SAFETY: the caller's promise; the kernel was chosen for this length and stride, and
        // for blocks that lie end to end in the packet.
        unsafe { (nest.gather)(at.spread, at.packed, a, b, nest.len) };
    }
}

/// As [`Gather`] and [`Scatter`], past the caches where a kernel for large jobs does that.
pub(super) struct PastGather;
pub(super) struct PastScatter;

impl Motion for PastGather {
    #[inline(always)]
    unsafe fn any(at: At, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { copy_past(at.spread, at.packed, len) };
    }

    #[inline(always)]
    unsafe fn exact<const B: usize>(at: At) {
        // SAFETY: the caller's promise.
        unsafe { Gather::exact::<B>(at) };
    }

    #[inline(always)]
    unsafe fn class<const H: usize>(at: At, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { Gather::class::<H>(at, len) };
    }

    unsafe fn levels(nest: &Nest, at: At, a: Level, b: Level) {
        let (a, b) = (dim(a, a.stride, a.unit), dim(b, b.stride, b.unit));
        let kernel = past(nest.len, a, b).unwrap_or(nest.gather);
        // SAFETY: the caller's promise; the kernel was chosen for this length and these levels.
        unsafe { kernel(at.spread, at.packed, a, b, nest.len) };
    }
}

impl Motion for PastScatter {
    #[inline(always)]
    unsafe fn any(at: At, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { copy_past(at.packed, at.spread, len) };
    }

    #[inline(always)]
    unsafe fn exact<const B: usize>(at: At) {
        // SAFETY: the caller's promise.
        unsafe { Scatter::exact::<B>(at) };
    }

    #[inline(always)]
    unsafe fn class<const H: usize>(at: At, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { Scatter::class::<H>(at, len) };
    }

    unsafe fn levels(nest: &Nest, at: At, a: Level, b: Level) {
        let (a, b) = (dim(a, a.unit, a.stride), dim(b, b.unit, b.stride));
        let kernel = past(nest.len, a, b).unwrap_or(nest.scatter);
        // SAFETY: as for `PastGather`, the other way round.
        unsafe { kernel(at.packed, at.spread, a, b, nest.len) };
    }
}

pub(super) struct Scatter;

impl Motion for Scatter {
    #[inline(always)]
    unsafe fn any(at: At, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { copy_any(at.packed, at.spread, len) };
    }

    #[inline(always)]
    unsafe fn exact<const B: usize>(at: At) {
        // SAFETY: the caller's promise.
        unsafe { copy_const::<B>(at.packed, at.spread) };
    }

    #[inline(always)]
    unsafe fn class<const H: usize>(at: At, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { copy_class::<H>(at.packed, at.spread, len) };
    }

    #[inline(always)]
    unsafe fn levels(nest: &Nest, at: At, a: Level, b: Level) {
        let (a, b) = (dim(a, a.unit, a.stride), dim(b, b.unit, b.stride));
        // SAFETY: as for `Gather`, the other way round.
        unsafe { (nest.scatter)(at.packed, at.spread, a, b, nest.len) };
    }
}

/// Blocks up to this length are cleared by copying zeros with the kernels.
const ZEROS: usize = 256;
static NOTHING: [u8; ZEROS] = [0; ZEROS];

pub(super) struct Fill;

impl Motion for Fill {
    #[inline(always)]
    unsafe fn any(at: At, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { at.spread.write_bytes(0, len) };
    }

    #[inline(always)]
    unsafe fn exact<const B: usize>(at: At) {
        // SAFETY: the caller's promise.
        unsafe { at.spread.write_bytes(0, B) };
    }

    #[inline(always)]
    unsafe fn class<const H: usize>(at: At, len: usize) {
        debug_assert!(H <= len && len <= 2 * H);
        // SAFETY: both halves lie within the block, since H <= len.
        unsafe {
            at.spread.write_bytes(0, H);
            at.spread.add(len - H).write_bytes(0, H);
        }
    }

    unsafe fn levels(nest: &Nest, at: At, a: Level, b: Level) {
        if nest.len <= ZEROS {
            let (a, b) = (dim(a, 0, a.stride), dim(b, 0, b.stride));
            // SAFETY: the caller's promise; the source stays at the zeros, which are as long as
            // the block. The kernel is the one for any strides.
            unsafe { strided(nest.len)(NOTHING.as_ptr(), at.spread, a, b, nest.len) };
            return;
        }
        for i in 0..a.count {
            for j in 0..b.count {
                let block = at.moved(i * a.stride + j * b.stride, 0);
                // SAFETY: the caller's promise, for one block.
                unsafe { block.spread.write_bytes(0, nest.len) };
            }
        }
    }
}

/// Moves the bytes of a window of a group that stands at `at`.
///
/// # Safety
/// The window lies in the group; its bytes are valid on both sides for what the motion does to
/// them, and do not overlap.
pub(super) unsafe fn group_window<M: Motion>(group: &Group, at: At, window: Range<u64>) {
    if window.is_empty() {
        return;
    }
    if let [op] = &group.ops[..] {
        // SAFETY: the window lies in the only operation.
        unsafe { op_window::<M>(op, at.moved(op.start, 0), window) };
        return;
    }
    let first = group.before.partition_point(|&b| b <= window.start) - 1;
    for (op, bounds) in group.ops[first..]
        .iter()
        .zip(group.before[first..].windows(2))
    {
        if bounds[0] >= window.end {
            break;
        }
        let lo = window.start.max(bounds[0]) - bounds[0];
        let hi = window.end.min(bounds[1]) - bounds[0];
        let at = at.moved(op.start, bounds[0]);
        // SAFETY: the part of the window that lies in this operation.
        unsafe {
            if lo == 0 && hi == bounds[1] - bounds[0] {
                whole::<M>(op, at);
            } else {
                op_window::<M>(op, at, lo..hi);
            }
        }
    }
}

unsafe fn whole_group<M: Motion>(group: &Group, at: At) {
    for (op, before) in group.ops.iter().zip(&group.before) {
        // SAFETY: all of the group, by the caller's promise.
        unsafe { whole::<M>(op, at.moved(op.start, *before)) };
    }
}

unsafe fn whole<M: Motion>(op: &Op, at: At) {
    // SAFETY: all of the operation, by the caller's promise.
    unsafe {
        match &op.body {
            Body::Nest(nest) => whole_nest::<M>(nest, &nest.levels, at),
            Body::List(list) => segments::<M>(list, at, 0..list.starts.len()),
            Body::Repeat(level, body) => iterations::<M>(level, body, at, level.count),
        }
    }
}

unsafe fn iterations<M: Motion>(level: &Level, body: &Group, mut at: At, count: u64) {
    for _ in 0..count {
        // SAFETY: one iteration, by the caller's promise.
        unsafe { whole_group::<M>(body, at) };
        at = at.moved(level.stride, level.unit);
    }
}

unsafe fn whole_nest<M: Motion>(nest: &Nest, levels: &[Level], at: At) {
    // SAFETY: all blocks of these levels, by the caller's promise.
    unsafe {
        match levels {
            [] => M::any(at, nest.len),
            [b] => M::levels(nest, at, Level::ONCE, *b),
            [a, b] => M::levels(nest, at, *a, *b),
            [outer, inner @ ..] => {
                let mut at = at;
                for _ in 0..outer.count {
                    whole_nest::<M>(nest, inner, at);
                    at = at.moved(outer.stride, outer.unit);
                }
            }
        }
    }
}

unsafe fn op_window<M: Motion>(op: &Op, at: At, window: Range<u64>) {
    // SAFETY: parts of the window, by the caller's promise.
    unsafe {
        match &op.body {
            Body::Nest(nest) => nest_window::<M>(nest, &nest.levels, at, window),
            Body::List(list) => list_window::<M>(list, at, window),
            Body::Repeat(level, body) => {
                let ends = (level.split(window.start), level.split(window.end));
                each_between(ends.0, ends.1, level.unit, |count, index, part| {
                    let at = at.moved(index * level.stride, index * level.unit);
                    if part == (0..level.unit) {
                        iterations::<M>(level, body, at, count);
                    } else {
                        group_window::<M>(body, at, part);
                    }
                });
            }
        }
    }
}

unsafe fn nest_window<M: Motion>(nest: &Nest, levels: &[Level], at: At, window: Range<u64>) {
    let [level, inner @ ..] = levels else {
        let len = (window.end - window.start) as usize;
        // SAFETY: part of a block, by the caller's promise.
        unsafe { M::any(at.moved(window.start, window.start), len) };
        return;
    };
    let ends = (level.split(window.start), level.split(window.end));
    each_between(ends.0, ends.1, level.unit, |count, index, part| {
        let at = at.moved(index * level.stride, index * level.unit);
        let some = Level { count, ..*level };
        // SAFETY: parts of the window, by the caller's promise.
        unsafe {
            if part != (0..level.unit) {
                nest_window::<M>(nest, inner, at, part);
                return;
            }
            match inner {
                [] => M::levels(nest, at, Level::ONCE, some),
                [b] => M::levels(nest, at, some, *b),
                _ => {
                    let mut at = at;
                    for _ in 0..count {
                        whole_nest::<M>(nest, inner, at);
                        at = at.moved(level.stride, level.unit);
                    }
                }
            }
        }
    });
}

unsafe fn list_window<M: Motion>(list: &List, at: At, window: Range<u64>) {
    let (mut first, head) = list.find(window.start);
    let (last, tail) = list.find(window.end);
    let part = |index: usize, part: Range<u64>| {
        let at = at.moved(
            list.starts[index] + part.start,
            list.before(index) + part.start,
        );
        // SAFETY: part of a segment, in the window by the caller's promise.
        unsafe { M::any(at, (part.end - part.start) as usize) };
    };
    if first == last {
        return part(first, head..tail);
    }
    if head > 0 {
        part(first, head..list.len(first));
        first += 1;
    }
    // SAFETY: whole segments, in the window by the caller's promise.
    unsafe { segments::<M>(list, at, first..last) };
    if tail > 0 {
        part(last, 0..tail);
    }
}

/// How many segments ahead memory is asked for.
const AHEAD: usize = 16;

/// Moves whole segments of a list.
unsafe fn segments<M: Motion>(list: &List, at: At, range: Range<usize>) {
    let at = at.moved(0, list.before(range.start));
    // SAFETY: every segment, by the caller's promise; classes hold the length.
    unsafe {
        match &list.lens {
            Lens::Equal(len) => {
                let starts = &list.starts[range];
                let len = *len as usize;
                match len {
                    1 => equal(starts, at, 1, |at| M::exact::<1>(at)),
                    2 => equal(starts, at, 2, |at| M::exact::<2>(at)),
                    4 => equal(starts, at, 4, |at| M::exact::<4>(at)),
                    8 => equal(starts, at, 8, |at| M::exact::<8>(at)),
                    16 => equal(starts, at, 16, |at| M::exact::<16>(at)),
                    32 => equal(starts, at, 32, |at| M::exact::<32>(at)),
                    64 => equal(starts, at, 64, |at| M::exact::<64>(at)),
                    3 => equal(starts, at, len, |at| M::class::<2>(at, len)),
                    5..=7 => equal(starts, at, len, |at| M::class::<4>(at, len)),
                    9..=15 => equal(starts, at, len, |at| M::class::<8>(at, len)),
                    17..=31 => equal(starts, at, len, |at| M::class::<16>(at, len)),
                    33..=63 => equal(starts, at, len, |at| M::class::<32>(at, len)),
                    _ => equal(starts, at, len, |at| M::any(at, len)),
                }
            }
            Lens::Before(before) => {
                let before = &before[range.start..range.end + 1];
                let mut packed = at;
                for (start, bounds) in list.starts[range].iter().zip(before.windows(2)) {
                    let len = bounds[1] - bounds[0];
                    M::any(packed.moved(*start, 0), len as usize);
                    packed = packed.moved(0, len);
                }
            }
        }
    }
}

/// Visits segments of one length.
#[inline(always)]
fn equal(starts: &[u64], mut at: At, len: usize, visit: impl Fn(At)) {
    for (index, start) in starts.iter().enumerate() {
        if let Some(next) = starts.get(index + AHEAD) {
            prefetch(at.moved(*next, 0).spread);
        }
        visit(at.moved(*start, 0));
        at = at.moved(0, len as u64);
    }
}
