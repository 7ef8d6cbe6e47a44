//! Owns running: a whole program, or the part of it that lies in a window of its bytes.
//!
//! A window counts bytes in the order the program moves them. Windows that tile
//! `0..program.bytes()` move every byte exactly once, and run one after another they keep the
//! order, so threads, slices and resumable copies all rest on [`run_window`].
//!
//! Cost: a whole run has no divisions; a window costs a few per level, once.

use std::ops::Range;

use crate::inner::copy_any;
use crate::order::Loops;
use crate::program::{Dim, Op, Ops, Program};

/// Runs a whole program.
///
/// # Safety
/// The program's source span lies in memory valid for reads from `source`, its target span in
/// memory valid for writes from `target`, and the two do not overlap.
pub(crate) unsafe fn run(program: &Program, source: *const u8, target: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { run_ops(&program.ops, source, target) };
}

/// Runs the part of a program that moves bytes `window`, counted in the order of the program.
///
/// # Safety
/// As [`run`].
pub(crate) unsafe fn run_window(
    program: &Program,
    source: *const u8,
    target: *mut u8,
    window: Range<u64>,
) {
    // SAFETY: the caller's promise.
    unsafe { ops_window(&program.ops, source, target, window) };
}

unsafe fn run_ops(ops: &Ops, source: *const u8, target: *mut u8) {
    for op in &ops.list {
        // SAFETY: every op lies within the spans of the program.
        unsafe { run_op(op, source, target) };
    }
}

unsafe fn run_op(op: &Op, source: *const u8, target: *mut u8) {
    // SAFETY: every iteration lies within the spans of the program.
    unsafe {
        match op {
            Op::Loops(loops) => {
                let from = source.wrapping_offset(loops.source);
                let to = target.wrapping_offset(loops.target);
                run_dims(loops, &loops.dims, from, to);
            }
            Op::List(list) => list.run(source, target, 0..list.count()),
            Op::Repeat(repeat) => {
                let mut from = source.wrapping_offset(repeat.source);
                let mut to = target.wrapping_offset(repeat.target);
                for _ in 0..repeat.dim.count {
                    run_ops(&repeat.body, from, to);
                    from = from.wrapping_offset(repeat.dim.source);
                    to = to.wrapping_offset(repeat.dim.target);
                }
            }
        }
    }
}

unsafe fn run_dims(loops: &Loops, dims: &[Dim], source: *const u8, target: *mut u8) {
    let (outer, a, b) = Loops::split(dims);
    // SAFETY: as above.
    unsafe { run_outer(loops, outer, a, b, source, target) };
}

unsafe fn run_outer(
    loops: &Loops,
    outer: &[Dim],
    a: Dim,
    b: Dim,
    source: *const u8,
    target: *mut u8,
) {
    match outer {
        // SAFETY: the kernel's blocks lie within the spans of the program.
        [] => unsafe { (loops.kernel)(source, target, a, b, loops.len) },
        [dim, inner @ ..] => {
            let (mut from, mut to) = (source, target);
            for _ in 0..dim.count {
                // SAFETY: as above.
                unsafe { run_outer(loops, inner, a, b, from, to) };
                from = from.wrapping_offset(dim.source);
                to = to.wrapping_offset(dim.target);
            }
        }
    }
}

unsafe fn ops_window(ops: &Ops, source: *const u8, target: *mut u8, window: Range<u64>) {
    if window.is_empty() {
        return;
    }
    let first = ops.starts.partition_point(|&start| start <= window.start) - 1;
    for (op, bounds) in ops.list.iter().zip(ops.starts.windows(2)).skip(first) {
        if bounds[0] >= window.end {
            break;
        }
        let lo = window.start.max(bounds[0]) - bounds[0];
        let hi = window.end.min(bounds[1]) - bounds[0];
        // SAFETY: a part of an op lies where the op lies.
        unsafe { op_window(op, source, target, lo..hi) };
    }
}

unsafe fn op_window(op: &Op, source: *const u8, target: *mut u8, window: Range<u64>) {
    if window == (0..op.bytes()) {
        // SAFETY: the caller's promise.
        unsafe { run_op(op, source, target) };
        return;
    }
    // SAFETY: the caller's promise; parts of an op lie where the op lies.
    unsafe {
        match op {
            Op::Loops(loops) => {
                let from = source.wrapping_offset(loops.source);
                let to = target.wrapping_offset(loops.target);
                dims_window(loops, &loops.dims, from, to, window);
            }
            Op::List(list) => {
                // By pieces, not bytes: piece i belongs to the window that holds the i-th of
                // `count` equal shares. Lists hold no long blocks.
                let (count, bytes) = (list.count() as u128, u128::from(list.bytes()));
                let index = |byte: u64| (u128::from(byte) * count).div_ceil(bytes) as usize;
                list.run(source, target, index(window.start)..index(window.end));
            }
            Op::Repeat(repeat) => {
                let from = source.wrapping_offset(repeat.source);
                let to = target.wrapping_offset(repeat.target);
                each_in_window(
                    repeat.dim.count as u64,
                    repeat.body.bytes(),
                    window,
                    |count, index, part| {
                        let index = index as isize;
                        let mut from = from.wrapping_offset(index * repeat.dim.source);
                        let mut to = to.wrapping_offset(index * repeat.dim.target);
                        for _ in 0..count {
                            ops_window(&repeat.body, from, to, part.clone());
                            from = from.wrapping_offset(repeat.dim.source);
                            to = to.wrapping_offset(repeat.dim.target);
                        }
                    },
                );
            }
        }
    }
}

unsafe fn dims_window(
    loops: &Loops,
    dims: &[Dim],
    source: *const u8,
    target: *mut u8,
    window: Range<u64>,
) {
    let [dim, inner @ ..] = dims else {
        let (lo, len) = (window.start as usize, (window.end - window.start) as usize);
        // SAFETY: the window lies within the block.
        unsafe {
            copy_any(source.wrapping_add(lo), target.wrapping_add(lo), len);
        };
        return;
    };
    let per = inner
        .iter()
        .fold(loops.len as u64, |bytes, dim| bytes * dim.count as u64);
    each_in_window(dim.count as u64, per, window, |count, index, part| {
        let (count, index) = (count as usize, index as isize);
        let from = source.wrapping_offset(index * dim.source);
        let to = target.wrapping_offset(index * dim.target);
        if part == (0..per) {
            let whole = Dim { count, ..*dim };
            // SAFETY: whole iterations of this level, within the loops.
            unsafe {
                match Loops::split(dims) {
                    (&[], _, b) if inner.is_empty() => {
                        run_outer(loops, &[], Dim::ONCE, Dim { count, ..b }, from, to)
                    }
                    (&[], _, b) => run_outer(loops, &[], whole, b, from, to),
                    (outer, a, b) => {
                        let (mut from, mut to) = (from, to);
                        for _ in 0..count {
                            run_outer(loops, &outer[1..], a, b, from, to);
                            from = from.wrapping_offset(dim.source);
                            to = to.wrapping_offset(dim.target);
                        }
                    }
                }
            }
        } else {
            // SAFETY: part of one iteration.
            unsafe { dims_window(loops, inner, from, to, part) };
        }
    });
}

/// Cuts a window of a level of `count` iterations that move `per` bytes each into at most three:
/// the end of an iteration, whole iterations, the beginning of an iteration. `visit(count, index
/// of the first, part of each)`.
fn each_in_window(
    count: u64,
    per: u64,
    window: Range<u64>,
    visit: impl FnMut(u64, u64, Range<u64>),
) {
    debug_assert!(window.end <= per * count);
    let start = (window.start / per, window.start % per);
    let end = (window.end / per, window.end % per);
    each_between(start, end, per, visit);
}

/// As [`each_in_window`], for a window given as iteration and byte within it.
#[inline(always)]
pub(crate) fn each_between(
    (first, head): (u64, u64),
    (last, tail): (u64, u64),
    per: u64,
    mut visit: impl FnMut(u64, u64, Range<u64>),
) {
    if first == last {
        visit(1, first, head..tail);
        return;
    }
    let whole = if head == 0 { first } else { first + 1 };
    if head != 0 {
        visit(1, first, head..per);
    }
    if whole < last {
        visit(last - whole, whole, 0..per);
    }
    if tail != 0 {
        visit(1, last, 0..tail);
    }
}
