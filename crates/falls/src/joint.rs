//! A tree of blocks that start in three spaces at once: the file, the left and the right side.
//!
//! Intersecting two elements and projecting the result on both gives three sets of equal shape.
//! Kept as one tree, a block is known by its three starts and three strides, which is what a copy
//! between the two sides compiles into: loops over (left, right), no offsets per piece.
//!
//! Invariants
//! - Each of the three sides is a well-formed set: ascending, no byte twice. A `Joint` is therefore
//!   also the proof that its pieces are disjoint on either side.
//! - Byte number `j` in file order is byte `j` of either side: the *stream position*.
//! - A leaf block is contiguous in all three spaces.

use std::ops::Range;
use std::sync::Arc;

use crate::set::{Falls, FallsSet};

/// `count` blocks that advance by three strides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointNode {
    /// Start of the first block in the file, relative to the enclosing block.
    pub file: u64,
    /// Start of the first block on the left side.
    pub left: u64,
    /// Start of the first block on the right side.
    pub right: u64,
    /// Number of blocks.
    pub count: u64,
    /// Distance between block starts in the file.
    pub file_stride: u64,
    /// Distance between block starts on the left.
    pub left_stride: u64,
    /// Distance between block starts on the right.
    pub right_stride: u64,
    /// Bytes in one block.
    pub unit: u64,
    /// What is inside each block; `None` is `unit` contiguous bytes.
    pub inner: Option<Joint>,
}

impl JointNode {
    /// `len` bytes contiguous in all three spaces.
    pub(crate) fn run(file: u64, left: u64, right: u64, len: u64) -> Self {
        JointNode {
            file,
            left,
            right,
            count: 1,
            file_stride: len,
            left_stride: len,
            right_stride: len,
            unit: len,
            inner: None,
        }
    }

    /// Number of bytes.
    pub fn size(&self) -> u64 {
        self.count * self.unit
    }

    fn blocks(&self, first: u64, count: u64) -> JointNode {
        JointNode {
            file: self.file + first * self.file_stride,
            left: self.left + first * self.left_stride,
            right: self.right + first * self.right_stride,
            count,
            ..self.clone()
        }
    }

    fn shifted(&self, file: u64, left: u64, right: u64) -> JointNode {
        JointNode {
            file: self.file + file,
            left: self.left + left,
            right: self.right + right,
            ..self.clone()
        }
    }
}

/// Members in ascending order; see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joint {
    nodes: Arc<[JointNode]>,
    /// Bytes before member `i`, and the total.
    before: Arc<[u64]>,
}

impl Joint {
    pub(crate) fn new(nodes: Vec<JointNode>) -> Self {
        let mut before = Vec::with_capacity(nodes.len() + 1);
        let mut total = 0;
        before.push(0);
        for n in &nodes {
            total += n.size();
            before.push(total);
        }
        Joint {
            nodes: nodes.into(),
            before: before.into(),
        }
    }

    /// Members in file order.
    pub fn nodes(&self) -> &[JointNode] {
        &self.nodes
    }

    /// Number of bytes.
    pub fn size(&self) -> u64 {
        self.before[self.nodes.len()]
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Nodes of the whole tree.
    pub fn node_count(&self) -> u64 {
        self.nodes
            .iter()
            .map(|n| 1 + n.inner.as_ref().map_or(0, Joint::node_count))
            .sum()
    }

    /// The bytes at stream positions `range`, in the same coordinates.
    ///
    /// Per level a head, a middle that shares its inner tree, and a tail.
    pub fn cut(&self, range: Range<u64>) -> Joint {
        if range.start == 0 && range.end >= self.size() {
            return self.clone();
        }
        let mut out = Vec::new();
        self.cut_into(&range, (0, 0, 0), &mut out);
        Joint::new(out)
    }

    fn cut_into(&self, range: &Range<u64>, base: (u64, u64, u64), out: &mut Vec<JointNode>) {
        if range.start >= range.end {
            return;
        }
        let first = self
            .before
            .partition_point(|&b| b <= range.start)
            .saturating_sub(1);
        for (i, node) in self.nodes.iter().enumerate().skip(first) {
            if self.before[i] >= range.end {
                break;
            }
            let lo = range.start.saturating_sub(self.before[i]);
            let hi = (range.end - self.before[i]).min(node.size());
            if lo < hi {
                cut_node(&node.shifted(base.0, base.1, base.2), lo..hi, out);
            }
        }
    }

    /// The set of bytes on the left side.
    pub fn left_set(&self) -> FallsSet {
        self.side(&|n| (n.left, n.left_stride))
    }

    /// The set of bytes on the right side.
    pub fn right_set(&self) -> FallsSet {
        self.side(&|n| (n.right, n.right_stride))
    }

    /// The set of bytes in the file.
    pub fn file_set(&self) -> FallsSet {
        self.side(&|n| (n.file, n.file_stride))
    }

    fn side(&self, axis: &dyn Fn(&JointNode) -> (u64, u64)) -> FallsSet {
        let members = self.nodes.iter().map(|n| {
            let (start, stride) = axis(n);
            let inner = n.inner.as_ref().map(|j| j.side(axis));
            let len = inner.as_ref().map_or(n.unit, FallsSet::end);
            let inner = inner.filter(|set| set.size() < len);
            Falls::trusted(start, len, stride, n.count, inner)
        });
        FallsSet::trusted(members.collect())
    }

    /// `count` copies that advance by the given distances.
    pub(crate) fn repeated(
        &self,
        count: u64,
        start: (u64, u64, u64),
        step: (u64, u64, u64),
    ) -> Joint {
        if self.is_empty() || count == 0 {
            return Joint::new(Vec::new());
        }
        if count == 1 {
            let moved = self
                .nodes
                .iter()
                .map(|n| n.shifted(start.0, start.1, start.2));
            return Joint::new(moved.collect());
        }
        if let [one] = &*self.nodes
            && one.count == 1
        {
            let mut wide = one.shifted(start.0, start.1, start.2);
            (wide.file_stride, wide.left_stride, wide.right_stride) = step;
            wide.count = count;
            return Joint::new(vec![wide]);
        }
        let first = &self.nodes[0];
        let (f, l, r) = (first.file, first.left, first.right);
        let inner = self.nodes.iter().map(|n| JointNode {
            file: n.file - f,
            left: n.left - l,
            right: n.right - r,
            ..n.clone()
        });
        Joint::new(vec![JointNode {
            file: start.0 + f,
            left: start.1 + l,
            right: start.2 + r,
            count,
            file_stride: step.0,
            left_stride: step.1,
            right_stride: step.2,
            unit: self.size(),
            inner: Some(Joint::new(inner.collect())),
        }])
    }

    /// This tree with left and right exchanged.
    pub fn mirrored(&self) -> Joint {
        let nodes = self.nodes.iter().map(|n| JointNode {
            left: n.right,
            right: n.left,
            left_stride: n.right_stride,
            right_stride: n.left_stride,
            inner: n.inner.as_ref().map(Joint::mirrored),
            ..n.clone()
        });
        Joint::new(nodes.collect())
    }
}

/// Appends bytes `range` of one node.
fn cut_node(node: &JointNode, range: Range<u64>, out: &mut Vec<JointNode>) {
    let (mut ka, za) = (range.start / node.unit, range.start % node.unit);
    let (kb, zb) = (range.end / node.unit, range.end % node.unit);
    let part = |k: u64, z: Range<u64>, out: &mut Vec<JointNode>| {
        let block = node.blocks(k, 1);
        match &node.inner {
            None => out.push(JointNode::run(
                block.file + z.start,
                block.left + z.start,
                block.right + z.start,
                z.end - z.start,
            )),
            Some(inner) => inner.cut_into(&z, (block.file, block.left, block.right), out),
        }
    };
    if ka == kb {
        return part(ka, za..zb, out);
    }
    if za > 0 {
        part(ka, za..node.unit, out);
        ka += 1;
    }
    if kb > ka {
        out.push(node.blocks(ka, kb - ka));
    }
    if zb > 0 {
        part(kb, 0..zb, out);
    }
}
