//! Does a sequence visit a byte twice?
//!
//! Three answers, because the exact one can cost as much as the number of blocks:
//! - by structure: ascending sequences never do; more stream positions than bytes in the hull always
//!   do; a loop nest whose strides, sorted, each step over everything below them never does, which
//!   covers transposes of any size; neither do lists whose parts lie side by side;
//! - otherwise by sorting the runs, when there are at most 65 536 blocks;
//! - otherwise unknown.

use super::{Node, NodeBody, Sequence};

/// Up to this many blocks the answer is exact.
const EXACT_PIECES: u64 = 1 << 16;

/// Up to this many nodes the tree is searched. Shared bodies count each time they occur, and a small
/// program can hold more nodes than anyone can visit.
const STRUCTURE_NODES: u64 = 1 << 20;

/// Whether some byte occurs twice in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// No byte occurs twice.
    Never,
    /// Some byte does.
    Certain,
    /// Too large and too irregular to tell cheaply.
    Unknown,
}

impl Sequence {
    /// Whether some byte is visited twice: exact up to [65 536 blocks](Sequence::piece_count) and
    /// for regular sequences of any size, [`Overlap::Unknown`] for the rest.
    ///
    /// ```
    /// use layout::sequence::{Overlap, Sequence};
    /// // The transpose of a 100 000 x 100 000 matrix of 8-byte elements.
    /// let column = Sequence::bytes(0, 8)?.repeat(100_000, 800_000)?;
    /// assert_eq!(column.repeat(100_000, 8)?.overlap(), Overlap::Never);
    /// assert_eq!(column.repeat(100_000, 4)?.overlap(), Overlap::Certain);
    /// # Ok::<(), layout::LayoutError>(())
    /// ```
    pub fn overlap(&self) -> Overlap {
        let answer = by_structure(self);
        if answer == Overlap::Unknown && self.piece_count() <= EXACT_PIECES {
            return by_sorting(self);
        }
        answer
    }

    /// Whether some byte may be visited twice. `false` is certain; `true` may be an unfounded fear
    /// for large irregular sequences, see [`Sequence::overlap`].
    pub fn has_overlap(&self) -> bool {
        self.overlap() != Overlap::Never
    }
}

fn by_structure(seq: &Sequence) -> Overlap {
    if seq.is_monotone() {
        return Overlap::Never;
    }
    if seq.size() > seq.0.high.abs_diff(seq.0.low) {
        return Overlap::Certain;
    }
    if seq.node_count() > STRUCTURE_NODES {
        return Overlap::Unknown;
    }
    let mut hulls = Vec::new();
    let mut all_never = true;
    for node in seq.nodes() {
        match of_node(&node) {
            Overlap::Certain => return Overlap::Certain,
            Overlap::Unknown => all_never = false,
            Overlap::Never => {}
        }
        if all_never {
            let last = node.at(node.count - 1);
            let low = node.start.min(last);
            hulls.push((low, node.start.max(last) + node.span() as i64));
        }
    }
    hulls.sort_unstable();
    if all_never && hulls.windows(2).all(|w| w[0].1 <= w[1].0) {
        Overlap::Never
    } else {
        Overlap::Unknown
    }
}

/// A node with the chain of single nodes below it is a loop nest over one solid body.
fn of_node(node: &Node<'_>) -> Overlap {
    let mut loops: Vec<(u64, u64)> = Vec::new();
    let mut node = *node;
    let solid = loop {
        if node.count > 1 {
            if node.stride == 0 {
                return Overlap::Certain;
            }
            loops.push((node.stride.unsigned_abs(), node.count));
        }
        match node.body {
            NodeBody::Bytes(len) => break len,
            NodeBody::Nested(inner) if inner.len() == 1 => node = inner.node(0),
            NodeBody::Nested(inner) => match by_structure(inner) {
                Overlap::Never => break node.span(),
                other => return other,
            },
        }
    };
    if let NodeBody::Bytes(len) = node.body {
        // Two iterations of that loop alone share a byte.
        if loops.iter().any(|&(stride, _)| stride < len) {
            return Overlap::Certain;
        }
    }
    loops.sort_unstable();
    let mut reach = u128::from(solid);
    for (stride, count) in loops {
        if u128::from(stride) < reach {
            return Overlap::Unknown;
        }
        reach += u128::from(stride) * u128::from(count - 1);
    }
    Overlap::Never
}

fn by_sorting(seq: &Sequence) -> Overlap {
    let mut runs: Vec<(i64, i64)> = seq.runs().map(|r| (r.start, r.end())).collect();
    runs.sort_unstable();
    if runs.windows(2).all(|w| w[0].1 <= w[1].0) {
        Overlap::Never
    } else {
        Overlap::Certain
    }
}
