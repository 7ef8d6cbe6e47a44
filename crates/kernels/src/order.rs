//! Owns the compiler's back half: given one perfect nest, which order its levels run in and
//! which kernel moves the innermost two.
//!
//! Without disjointness the order is kept and only neighbouring levels fuse. With it (proved,
//! or evident from the strides) levels are turned so that target strides are positive, fused
//! wherever one continues another, and sorted: the larger the target stride the further out.
//! If the level with the smallest source stride is not the one with the smallest target
//! stride, the two are crossed and run in tiles.
//!
//! ```text
//!  crossed: source  a b c d   target  a e i     |source stride| smallest along a row,
//!                   e f g h           b f j     target stride smallest along a column
//!                   i j k l           c g k
//!                                     d h l
//! ```
//!
//! Invariant: whatever is chosen, the same bytes go to the same places.

use std::fmt;

use crate::cache::streaming_threshold;
use crate::inner::{Kernel, gather, masked, stream, strided, transpose};
use crate::program::{Dim, Perfect};

/// From which sizes on kernels write past the caches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    /// Smallest job that streams, in bytes.
    pub(crate) stream_from: u64,
    /// Smallest call of a kernel that streams, in bytes: each ends with a fence.
    pub(crate) stream_kernel_from: usize,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            stream_from: streaming_threshold() as u64,
            stream_kernel_from: 64 << 10,
        }
    }
}

/// A perfect nest with its order and kernel chosen.
#[derive(Clone, Debug)]
pub(crate) struct Loops {
    pub(crate) source: isize,
    pub(crate) target: isize,
    /// Outermost first; the last two (or fewer) belong to the kernel.
    pub(crate) dims: Box<[Dim]>,
    pub(crate) len: usize,
    pub(crate) bytes: u64,
    pub(crate) kernel: Kernel,
    name: &'static str,
}

impl Loops {
    /// Chooses. `proved` says that the caller knows the target to be disjoint; `job_bytes` is
    /// the size of the whole program.
    pub(crate) fn choose(
        mut perfect: Perfect,
        proved: bool,
        job_bytes: u64,
        tuning: Tuning,
    ) -> Loops {
        let bytes = perfect
            .dims
            .iter()
            .fold(perfect.len as u64, |bytes, dim| bytes * dim.count as u64);
        let free = proved || is_disjoint(&perfect);
        if free {
            turn_forward(&mut perfect);
            fuse_any(&mut perfect);
            perfect.dims.sort_by_key(|dim| {
                (
                    std::cmp::Reverse(dim.target),
                    std::cmp::Reverse(dim.source.unsigned_abs()),
                )
            });
        }
        fuse_neighbours(&mut perfect);
        let stream_from = (job_bytes >= tuning.stream_from).then_some(tuning.stream_kernel_from);
        let (kernel, name) = choose_kernel(&mut perfect, free, stream_from);
        Loops {
            source: perfect.source,
            target: perfect.target,
            dims: perfect.dims.into(),
            len: perfect.len,
            bytes,
            kernel,
            name,
        }
    }

    /// The levels outside the kernel, and the two inside (padded with [`Dim::ONCE`]).
    pub(crate) fn split(dims: &[Dim]) -> (&[Dim], Dim, Dim) {
        match dims {
            [] => (&[], Dim::ONCE, Dim::ONCE),
            [b] => (&[], Dim::ONCE, *b),
            [outer @ .., a, b] => (outer, *a, *b),
        }
    }
}

/// The kernel for the innermost two levels, which it may put in order.
/// `stream_from` is the smallest kernel that streams, if the job does.
fn choose_kernel(
    perfect: &mut Perfect,
    free: bool,
    stream_from: Option<usize>,
) -> (Kernel, &'static str) {
    let len = perfect.len;
    if free && cross(&mut perfect.dims) {
        let (_, a, b) = Loops::split(&perfect.dims);
        return (
            transpose::crossed(len, a, b, stream_from.is_some()),
            "crossed",
        );
    }
    let (_, a, b) = Loops::split(&perfect.dims);
    if free
        && stream_from.is_some_and(|least| a.count * b.count * len >= least)
        && let Some(chosen) = stream::stream(len, a, b)
    {
        return chosen;
    }
    let Some(b) = perfect.dims.last() else {
        return (strided::strided(len), "block");
    };
    if b.target == len as isize {
        return (gather::gather(len, b.source), "gather");
    }
    match masked::masked(len, *b) {
        Some(kernel) if free => (kernel, "masked"),
        _ => (strided::strided(len), "strided"),
    }
}

/// True if no target byte is written twice: sorted by stride, each level steps over all that
/// the ones below it reach.
fn is_disjoint(perfect: &Perfect) -> bool {
    let mut levels: Vec<(usize, usize)> = perfect
        .dims
        .iter()
        .map(|dim| (dim.target.unsigned_abs(), dim.count))
        .collect();
    levels.sort_unstable();
    let mut reached = perfect.len as u128;
    for (stride, count) in levels {
        if (stride as u128) < reached {
            return false;
        }
        reached += stride as u128 * (count as u128 - 1);
    }
    true
}

/// Turns levels that walk the target backwards; needs freedom of order.
fn turn_forward(perfect: &mut Perfect) {
    for dim in &mut perfect.dims {
        if dim.target < 0 {
            perfect.source += (dim.count as isize - 1) * dim.source;
            perfect.target += (dim.count as isize - 1) * dim.target;
            dim.source = -dim.source;
            dim.target = -dim.target;
        }
    }
}

/// True if `outer` continues where `inner` ends, on both sides.
fn continues(outer: Dim, inner: Dim) -> bool {
    let inner_count = inner.count as i128;
    outer.source as i128 == inner_count * inner.source as i128
        && outer.target as i128 == inner_count * inner.target as i128
}

/// Fuses levels in any position; needs freedom of order.
fn fuse_any(perfect: &mut Perfect) {
    loop {
        if let Some(at) = perfect
            .dims
            .iter()
            .position(|dim| is_step(*dim, perfect.len))
        {
            perfect.len *= perfect.dims.remove(at).count;
            continue;
        }
        let dims = &perfect.dims;
        let pairs = (0..dims.len()).flat_map(|i| (0..dims.len()).map(move |j| (i, j)));
        let Some((i, j)) = pairs
            .into_iter()
            .find(|&(i, j)| i != j && continues(dims[i], dims[j]))
        else {
            return;
        };
        perfect.dims[j].count *= perfect.dims[i].count;
        perfect.dims.remove(i);
    }
}

/// Fuses neighbouring levels, which keeps the order of writes.
fn fuse_neighbours(perfect: &mut Perfect) {
    let mut fused: Vec<Dim> = Vec::with_capacity(perfect.dims.len());
    for dim in perfect.dims.drain(..).rev() {
        match fused.last_mut() {
            None if is_step(dim, perfect.len) => perfect.len *= dim.count,
            Some(inner) if continues(dim, *inner) => inner.count *= dim.count,
            _ => fused.push(dim),
        }
    }
    fused.reverse();
    perfect.dims = fused;
}

/// True if the level repeats a block of `len` bytes without a gap on either side.
fn is_step(dim: Dim, len: usize) -> bool {
    dim.source == len as isize && dim.target == len as isize
}

/// Brings the level that is fastest in the source next to the one that is fastest in the target
/// (already last). True if the two are crossed.
fn cross(dims: &mut [Dim]) -> bool {
    let Some(last) = dims.len().checked_sub(1) else {
        return false;
    };
    let fast = |index: &usize| {
        (
            dims[*index].source.unsigned_abs(),
            std::cmp::Reverse(*index),
        )
    };
    let Some(at) = (0..last).min_by_key(fast) else {
        return false;
    };
    if dims[at].source.unsigned_abs() >= dims[last].source.unsigned_abs() {
        return false;
    }
    dims[at..last].rotate_left(1);
    true
}

impl fmt::Display for Loops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} bytes", self.name, self.len)?;
        for dim in self.dims.iter().rev() {
            write!(f, " x {} ({:+}, {:+})", dim.count, dim.source, dim.target)?;
        }
        write!(f, " at ({}, {})", self.source, self.target)
    }
}
