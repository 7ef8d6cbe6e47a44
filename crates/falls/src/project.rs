//! PROJ: where the bytes of an intersection lie inside its two operands (section 7.4, repaired).
//!
//! ```text
//! left    ab..cd..ef..gh..      R = left and right, in the file:  a . c . e . g
//! right   a.. c.. e.. g..       on the left  0 2 4 6 of a b c d ..; on the right 0 1 2 3
//! ```
//!
//! Both sides are projected in lockstep, so the three trees keep one shape (a [`Joint`]). Ranks
//! supply every start and stride; a node is kept whole only where both operands surely repeat with
//! its stride (the printed formula leaves that out), else its blocks are projected one by one.

use crate::intersect::{Exhausted, Work};
use crate::joint::{Joint, JointNode};
use crate::set::FallsSet;

/// Projects `common`, a subset of both operands in common coordinates.
pub(crate) fn project(
    common: &FallsSet,
    left: &FallsSet,
    right: &FallsSet,
    work: &mut Work,
) -> Result<Joint, Exhausted> {
    let mut sides = Sides { left, right, work };
    Ok(Joint::new(sides.project(common, 0, (0, 0, 0))?))
}

struct Sides<'a> {
    left: &'a FallsSet,
    right: &'a FallsSet,
    work: &'a mut Work,
}

impl Sides<'_> {
    /// Projects `set` moved by `offset`; starts are given relative to `base` in each space.
    fn project(
        &mut self,
        set: &FallsSet,
        offset: u64,
        base: (u64, u64, u64),
    ) -> Result<Vec<JointNode>, Exhausted> {
        let mut out = Vec::with_capacity(set.len());
        for node in set.nodes() {
            let start = node.start + offset;
            let periodic = node.count == 1
                || (periodic(self.left, node.stride, start, node.end() + offset)
                    && periodic(self.right, node.stride, start, node.end() + offset));
            if periodic {
                self.project_node(node, offset, base, &mut out)?;
            } else {
                for k in 0..node.count {
                    self.project_node(node.block(k), offset, base, &mut out)?;
                }
            }
        }
        Ok(out)
    }

    fn project_node(
        &mut self,
        node: crate::Node<'_>,
        offset: u64,
        base: (u64, u64, u64),
        out: &mut Vec<JointNode>,
    ) -> Result<(), Exhausted> {
        self.work.spend(1)?;
        let start = node.start + offset;
        if let (1, Some(inner)) = (node.count, node.inner) {
            out.extend(self.project(inner, start, base)?);
            return Ok(());
        }
        let (l, r) = (self.left.rank(start), self.right.rank(start));
        let (left_stride, right_stride) = if node.count == 1 {
            (node.len, node.len)
        } else {
            (
                self.left.rank(start + node.stride) - l,
                self.right.rank(start + node.stride) - r,
            )
        };
        let inner = match node.inner {
            None => None,
            Some(inner) => Some(Joint::new(self.project(inner, start, (start, l, r))?)),
        };
        out.push(JointNode {
            file: start - base.0,
            left: l - base.1,
            right: r - base.2,
            count: node.count,
            file_stride: node.stride,
            left_stride,
            right_stride,
            unit: node.unit,
            inner,
        });
        Ok(())
    }
}

/// Does `set` surely repeat with `stride` inside `lo..hi`? Structural: may say no too often.
fn periodic(set: &FallsSet, stride: u64, lo: u64, hi: u64) -> bool {
    let (mut set, mut lo, mut hi) = (set, lo, hi);
    loop {
        let range = set.members_meeting(lo, hi);
        if range.len() != 1 {
            return false;
        }
        let node = set.node(range.start);
        if lo < node.start || hi > node.end() {
            return false;
        }
        if node.is_segment() {
            return true; // whatever its blocks, it has no holes
        }
        let (a, b) = (
            (lo - node.start) / node.stride,
            (hi - 1 - node.start) / node.stride,
        );
        if a != b {
            return stride.is_multiple_of(node.stride);
        }
        let base = node.start + a * node.stride;
        if hi - base > node.len {
            return false;
        }
        match node.inner {
            None => return true,
            Some(inner) => (set, lo, hi) = (inner, lo - base, hi - base),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes_naive::bytes_naive;

    #[test]
    fn a_node_is_kept_whole_only_where_both_sides_repeat() {
        // Merged siblings: bytes 0, 5, 10 of {0, 1, 5, 10} have ranks 0, 2, 3, no progression.
        let left: FallsSet = "{(0,1),(5,5),(10,10)}".parse().unwrap();
        let right: FallsSet = "{(0,0,5,3)}".parse().unwrap();
        let joint = project(&right, &left, &right, &mut Work { left: 100 });
        let Ok(joint) = joint else {
            panic!("a few steps suffice")
        };
        assert_eq!(bytes_naive(&joint.left_set()), [0, 2, 3]);
        assert_eq!(bytes_naive(&joint.right_set()), [0, 1, 2]);
        assert_eq!(bytes_naive(&joint.file_set()), [0, 5, 10]);
    }
}
