//! Nested FALLS and sets of them: representation, validation, size, rank and select.
//!
//! Follows sections 4.2 to 4.7 and 6.1 to 6.2 of the Clusterfile paper with the repairs of its
//! specification: one total function RANK (number of bytes below an offset) replaces MAP with its
//! special cases, and SELECT is its inverse.
//!
//! Invariants (WF1 to WF6): blocks have a byte and a positive count; `stride >= len` when there is
//! more than one block, and `stride == len` when there is one (so a stride is never a stray
//! number); inner sets lie in their block and are not empty; members ascend with disjoint spans;
//! every end is at most [`MAX_OFFSET`].
//!
//! Cost: rank, select and membership descend once, O(depth x log fan-out), without allocation.
//! Sets are reference counted; cloning and sharing inner sets is free.

use std::ops::Range;
use std::sync::Arc;

use crate::checked::{self, MAX_OFFSET};
use crate::common_byte::{Fuel, next_common_node};
use crate::error::{FallsError, Reason};
use crate::segment::Segment;

/// Bounds against hostile or runaway descriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Deepest nesting accepted.
    pub depth: u32,
    /// Most nodes accepted, counted as written (a shared inner set counts each time).
    pub nodes: u64,
}

impl Limits {
    /// What constructors apply unless told otherwise: 64 levels (two per dimension of a
    /// 15-dimensional array, and as many again), 16 million nodes.
    pub const DEFAULT: Limits = Limits {
        depth: 64,
        nodes: 1 << 24,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Limits::DEFAULT
    }
}

/// One nested FALLS: `count` blocks of `len` bytes, `stride` apart, each holding `inner`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Falls {
    start: u64,
    len: u64,
    stride: u64,
    count: u64,
    /// Bytes in one block.
    unit: u64,
    inner: Option<FallsSet>,
}

impl Falls {
    /// A single segment, the FALLS `(start, start+len-1, -, 1)`.
    pub fn segment(start: u64, len: u64) -> Result<Self, FallsError> {
        Falls::family(start, len, len, 1)
    }

    /// A plain FALLS. The stride is ignored when `count` is 1.
    ///
    /// ```
    /// use falls::Falls;
    /// let f = Falls::family(3, 3, 6, 5).unwrap();   // figure 1 of the paper
    /// assert_eq!((f.size(), f.end()), (15, 30));
    /// ```
    pub fn family(start: u64, len: u64, stride: u64, count: u64) -> Result<Self, FallsError> {
        Falls::build(start, len, stride, count, None)
    }

    /// A nested FALLS: `inner` (relative to the start of each block) repeats in every block.
    pub fn nested(
        start: u64,
        len: u64,
        stride: u64,
        count: u64,
        inner: FallsSet,
    ) -> Result<Self, FallsError> {
        Falls::build(start, len, stride, count, Some(inner))
    }

    fn build(
        start: u64,
        len: u64,
        stride: u64,
        count: u64,
        inner: Option<FallsSet>,
    ) -> Result<Self, FallsError> {
        if len == 0 {
            return Err(FallsError::new(
                Reason::Length,
                "a block of 0 bytes; give at least 1",
            ));
        }
        if count == 0 {
            return Err(FallsError::new(Reason::Count, "0 blocks; give at least 1"));
        }
        let stride = if count == 1 { len } else { stride };
        if stride < len {
            return Err(FallsError::new(
                Reason::Overlap,
                format!(
                    "stride {stride} is shorter than the block of {len} bytes; blocks would overlap"
                ),
            ));
        }
        checked::end(start, len, stride, count)?;
        if let Some(set) = &inner {
            if set.is_empty() {
                return Err(FallsError::new(
                    Reason::Nesting,
                    "an empty inner set; leave the inner set out for the whole block, or the FALLS for nothing",
                ));
            }
            if set.end() > len {
                return Err(FallsError::new(
                    Reason::Nesting,
                    format!(
                        "the inner set ends at {} but the block has {len} bytes",
                        set.end()
                    ),
                ));
            }
        }
        Ok(Falls::trusted(start, len, stride, count, inner))
    }

    /// For values derived from valid ones by operations that keep the invariants.
    pub(crate) fn trusted(
        start: u64,
        len: u64,
        stride: u64,
        count: u64,
        inner: Option<FallsSet>,
    ) -> Self {
        let stride = if count == 1 { len } else { stride };
        let unit = inner.as_ref().map_or(len, FallsSet::size);
        debug_assert!(len > 0 && count > 0 && stride >= len && unit > 0);
        debug_assert!(checked::end(start, len, stride, count).is_ok());
        debug_assert!(inner.as_ref().is_none_or(|s| s.end() <= len));
        Falls {
            start,
            len,
            stride,
            count,
            unit,
            inner,
        }
    }

    pub(crate) fn trusted_segment(start: u64, len: u64) -> Self {
        Falls::trusted(start, len, len, 1, None)
    }

    /// Start of the first block.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Bytes spanned by one block, holes of the inner set included.
    #[allow(clippy::len_without_is_empty)] // a FALLS is never empty
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Distance from block start to block start; equals the length when there is one block.
    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// Number of blocks.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What is inside each block; `None` is the whole block.
    pub fn inner(&self) -> Option<&FallsSet> {
        self.inner.as_ref()
    }

    /// One past the last byte of the last block.
    pub fn end(&self) -> u64 {
        self.node().end()
    }

    /// Number of bytes.
    pub fn size(&self) -> u64 {
        self.node().size()
    }

    /// The borrowed form.
    pub fn node(&self) -> Node<'_> {
        Node {
            start: self.start,
            len: self.len,
            stride: self.stride,
            count: self.count,
            unit: self.unit,
            inner: self.inner.as_ref(),
        }
    }

    pub(crate) fn shifted(mut self, by: u64) -> Self {
        self.start += by;
        debug_assert!(self.end() <= MAX_OFFSET);
        self
    }

    pub(crate) fn shifted_back(mut self, by: u64) -> Self {
        self.start -= by;
        self
    }
}

/// A member of a set, borrowed: the same five numbers, cheap to copy and to move along the line.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// Start of the first block.
    pub start: u64,
    /// Bytes spanned by one block.
    pub len: u64,
    /// Distance between block starts; the length when there is one block.
    pub stride: u64,
    /// Number of blocks.
    pub count: u64,
    /// Bytes in one block.
    pub unit: u64,
    /// What is inside each block; `None` is the whole block.
    pub inner: Option<&'a FallsSet>,
}

impl<'a> Node<'a> {
    /// One past the last byte.
    pub fn end(self) -> u64 {
        self.start + (self.count - 1) * self.stride + self.len
    }

    /// Number of bytes.
    pub fn size(self) -> u64 {
        self.count * self.unit
    }

    /// Nothing but a segment: whole blocks, one or touching. An inner set that covers its block
    /// counts as none.
    pub fn is_segment(self) -> bool {
        self.unit == self.len && (self.count == 1 || self.stride == self.len)
    }

    /// Same blocks up to where they start.
    pub(crate) fn same_shape(self, other: Node<'_>) -> bool {
        self.len == other.len
            && self.stride == other.stride
            && self.count == other.count
            && self.inner == other.inner
    }

    pub(crate) fn to_falls(self) -> Falls {
        Falls::trusted(
            self.start,
            self.len,
            self.stride,
            self.count,
            self.inner.cloned(),
        )
    }

    pub(crate) fn shifted(mut self, by: u64) -> Self {
        self.start += by;
        self
    }

    /// Block `k` alone.
    pub(crate) fn block(self, k: u64) -> Node<'a> {
        debug_assert!(k < self.count);
        Node {
            start: self.start + k * self.stride,
            stride: self.len,
            count: 1,
            ..self
        }
    }

    /// Bytes of this node below `x`.
    pub(crate) fn rank(self, x: u64) -> u64 {
        if x <= self.start {
            return 0;
        }
        if x >= self.end() {
            return self.size();
        }
        let y = x - self.start;
        let (k, z) = (y / self.stride, y % self.stride);
        if z >= self.len {
            return (k + 1) * self.unit;
        }
        k * self.unit + self.inner.map_or(z, |set| set.rank(z))
    }

    /// Offset of byte number `k < size` of this node.
    pub(crate) fn select(self, k: u64) -> u64 {
        let (block, rest) = (k / self.unit, k % self.unit);
        self.start + block * self.stride + self.inner.map_or(rest, |set| set.select_within(rest))
    }
}

/// From this many members on, a set of plain segments is kept as a compact list.
const COMPACT_FROM: usize = 32;

/// Members of a set. Irregular descriptions (an index list of an unstructured mesh) are kept as two
/// numbers per segment; everything else as nodes. Algorithms see [`Node`]s in both cases.
#[derive(Debug)]
enum Members {
    Nodes(Box<[Falls]>),
    Segments(Box<[u64]>),
}

#[derive(Debug)]
struct Data {
    members: Members,
    /// Bytes before member `i`; one more entry than members, the last is the size.
    before: Box<[u64]>,
    depth: u32,
    nodes: u64,
}

/// A well-formed set of nested FALLS: ascending, no byte twice, possibly empty.
#[derive(Clone, Debug)]
pub struct FallsSet(Arc<Data>);

impl PartialEq for FallsSet {
    /// Equality of the trees. Equal trees have equal bytes; unequal trees may too, so questions
    /// about bytes go to [`FallsSet::same_bytes`].
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.before == other.0.before
                && self
                    .nodes()
                    .zip(other.nodes())
                    .all(|(a, b)| a.same_shape(b) && a.start == b.start))
    }
}

impl Eq for FallsSet {}

impl Default for FallsSet {
    fn default() -> Self {
        FallsSet::empty()
    }
}

impl FallsSet {
    /// The set without bytes.
    pub fn empty() -> Self {
        FallsSet::trusted(Vec::new())
    }

    /// A set from members in ascending order.
    pub fn new(members: Vec<Falls>) -> Result<Self, FallsError> {
        FallsSet::with_limits(members, Limits::DEFAULT)
    }

    /// [`FallsSet::new`] under other limits.
    pub fn with_limits(members: Vec<Falls>, limits: Limits) -> Result<Self, FallsError> {
        for (i, pair) in members.windows(2).enumerate() {
            if pair[1].start < pair[0].end() {
                return Err(sibling_error(&pair[0], &pair[1]).inside(i + 1));
            }
        }
        let mut nodes = 0u64;
        for (i, member) in members.iter().enumerate() {
            let inner = member.inner.as_ref();
            if inner.map_or(0, FallsSet::depth) >= limits.depth {
                return Err(FallsError::new(
                    Reason::Depth,
                    format!("nested deeper than {} levels", limits.depth),
                )
                .inside(i));
            }
            nodes = nodes.saturating_add(1 + inner.map_or(0, FallsSet::node_count));
        }
        if nodes > limits.nodes {
            return Err(FallsError::new(
                Reason::Nodes,
                format!("{nodes} nodes, the limit is {}", limits.nodes),
            ));
        }
        Ok(FallsSet::trusted(members))
    }

    /// The segment `start .. start + len`.
    pub fn segment(start: u64, len: u64) -> Result<Self, FallsError> {
        Ok(FallsSet::trusted(vec![Falls::segment(start, len)?]))
    }

    /// A set from ascending, disjoint segments, kept as a compact list of two numbers each.
    pub fn from_segments(segments: &[Segment]) -> Result<Self, FallsError> {
        for (i, pair) in segments.windows(2).enumerate() {
            if pair[1].start() < pair[0].end() {
                let reason = if pair[1].start() >= pair[0].start() {
                    Reason::Overlap
                } else {
                    Reason::Order
                };
                return Err(FallsError::new(
                    reason,
                    format!(
                        "segment at {} does not lie behind the one that ends at {}",
                        pair[1].start(),
                        pair[0].end()
                    ),
                )
                .inside(i + 1));
            }
        }
        Ok(FallsSet::trusted_segments(segments))
    }

    pub(crate) fn trusted_segments(segments: &[Segment]) -> Self {
        let mut before = Vec::with_capacity(segments.len() + 1);
        let mut total = 0;
        before.push(0);
        for s in segments {
            total += s.len();
            before.push(total);
        }
        FallsSet(Arc::new(Data {
            depth: u32::from(!segments.is_empty()),
            nodes: segments.len() as u64,
            members: Members::Segments(segments.iter().map(|s| s.start()).collect()),
            before: before.into(),
        }))
    }

    /// For members derived from valid sets by operations that keep order and disjointness.
    pub(crate) fn trusted(members: Vec<Falls>) -> Self {
        debug_assert!(members.windows(2).all(|w| w[0].end() <= w[1].start));
        if members.len() >= COMPACT_FROM
            && members.iter().all(|m| m.count == 1 && m.inner.is_none())
        {
            let list: Vec<Segment> = members
                .iter()
                .map(|m| Segment::trusted(m.start, m.len))
                .collect();
            return FallsSet::trusted_segments(&list);
        }
        let mut before = Vec::with_capacity(members.len() + 1);
        let (mut total, mut depth, mut nodes) = (0, 0, 0u64);
        before.push(0);
        for m in &members {
            total += m.size();
            before.push(total);
            depth = depth.max(1 + m.inner.as_ref().map_or(0, FallsSet::depth));
            nodes = nodes.saturating_add(1 + m.inner.as_ref().map_or(0, FallsSet::node_count));
        }
        FallsSet(Arc::new(Data {
            members: Members::Nodes(members.into()),
            before: before.into(),
            depth,
            nodes,
        }))
    }

    /// Number of members at the top level.
    pub fn len(&self) -> usize {
        self.0.before.len() - 1
    }

    /// Whether the set has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of bytes.
    pub fn size(&self) -> u64 {
        self.0.before[self.len()]
    }

    /// Levels of nesting; 0 for the empty set.
    pub fn depth(&self) -> u32 {
        self.0.depth
    }

    /// Number of nodes of the tree, shared inner sets counted each time.
    pub fn node_count(&self) -> u64 {
        self.0.nodes
    }

    /// Offset of the first byte position spanned by the set (the start of its first block).
    pub fn start(&self) -> u64 {
        if self.is_empty() {
            0
        } else {
            self.node(0).start
        }
    }

    /// One past the last block; 0 for the empty set.
    pub fn end(&self) -> u64 {
        if self.is_empty() {
            0
        } else {
            self.node(self.len() - 1).end()
        }
    }

    /// The smallest range that holds all bytes (tighter than `start..end` when inner sets leave
    /// holes at the edges); `None` for the empty set.
    pub fn hull(&self) -> Option<Range<u64>> {
        Some(self.select(0)?..self.select(self.size() - 1)? + 1)
    }

    /// Member `i`, in ascending order.
    ///
    /// # Panics
    /// If `i` is not below [`FallsSet::len`].
    pub fn node(&self, i: usize) -> Node<'_> {
        match &self.0.members {
            Members::Nodes(nodes) => nodes[i].node(),
            Members::Segments(starts) => {
                let len = self.0.before[i + 1] - self.0.before[i];
                Node {
                    start: starts[i],
                    len,
                    stride: len,
                    count: 1,
                    unit: len,
                    inner: None,
                }
            }
        }
    }

    /// Members in ascending order.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = Node<'_>> + '_ {
        (0..self.len()).map(|i| self.node(i))
    }

    /// Whether the members are kept as a compact list of segments.
    pub fn is_segment_list(&self) -> bool {
        matches!(self.0.members, Members::Segments(_))
    }

    pub(crate) fn to_members(&self) -> Vec<Falls> {
        self.nodes().map(Node::to_falls).collect()
    }

    /// Number of members that start below `x`.
    pub(crate) fn starting_below(&self, x: u64) -> usize {
        match &self.0.members {
            Members::Nodes(nodes) => nodes.partition_point(|n| n.start < x),
            Members::Segments(starts) => starts.partition_point(|&s| s < x),
        }
    }

    /// Index range of the members whose span meets `lo..hi`.
    pub(crate) fn members_meeting(&self, lo: u64, hi: u64) -> Range<usize> {
        let last = self.starting_below(hi);
        let mut first = self.starting_below(lo.saturating_add(1));
        // The member that starts at or before `lo` may still reach into the range.
        if first > 0 && self.node(first - 1).end() > lo {
            first -= 1;
        }
        first..last.max(first)
    }

    /// Number of bytes below `x`: the function from which map, next and previous follow.
    ///
    /// ```text
    /// bytes    x x      x x
    /// offset   0 . 2 .  8 . 10 .
    /// rank     0 1 1 2  2 3 3  4
    /// ```
    pub fn rank(&self, x: u64) -> u64 {
        let (mut set, mut x, mut below) = (self, x, 0);
        loop {
            let i = set.starting_below(x);
            if i == 0 {
                return below;
            }
            below += set.0.before[i - 1];
            let node = set.node(i - 1);
            if x >= node.end() {
                return below + node.size();
            }
            let y = x - node.start;
            let (k, z) = if node.count == 1 {
                (0, y)
            } else {
                (y / node.stride, y % node.stride)
            };
            if z >= node.len {
                return below + (k + 1) * node.unit;
            }
            below += k * node.unit;
            match node.inner {
                None => return below + z,
                Some(inner) => (set, x) = (inner, z),
            }
        }
    }

    /// Offset of byte number `k`: the inverse of [`FallsSet::rank`]. `None` when `k >= size`.
    pub fn select(&self, k: u64) -> Option<u64> {
        (k < self.size()).then(|| self.select_within(k))
    }

    fn select_within(&self, k: u64) -> u64 {
        let (mut set, mut k, mut base) = (self, k, 0);
        loop {
            let i = set.0.before.partition_point(|&b| b <= k) - 1;
            let node = set.node(i);
            k -= set.0.before[i];
            let (block, rest) = if node.count == 1 {
                (0, k)
            } else {
                (k / node.unit, k % node.unit)
            };
            base += node.start + block * node.stride;
            match node.inner {
                None => return base + rest,
                Some(inner) => (set, k) = (inner, rest),
            }
        }
    }

    /// Whether byte `x` is in the set.
    pub fn contains(&self, x: u64) -> bool {
        self.leaf_rest(x).is_some()
    }

    /// Bytes from `x` to the end of the leaf block that holds it; `None` if no block does.
    pub(crate) fn leaf_rest(&self, x: u64) -> Option<u64> {
        let (mut set, mut x) = (self, x);
        loop {
            let i = set.starting_below(x.saturating_add(1)).checked_sub(1)?;
            let node = set.node(i);
            if x >= node.end() {
                return None;
            }
            if node.is_segment() {
                return Some(node.end() - x);
            }
            let z = (x - node.start) % node.stride;
            if z >= node.len {
                return None;
            }
            match node.inner {
                None => return Some(node.len - z),
                Some(inner) => (set, x) = (inner, z),
            }
        }
    }

    /// Position of byte `x` among the bytes of the set; `None` if it is not in it.
    pub fn map(&self, x: u64) -> Option<u64> {
        self.contains(x).then(|| self.rank(x))
    }

    /// First byte of the set at or after `x`.
    pub fn next_byte(&self, x: u64) -> Option<u64> {
        self.select(self.rank(x))
    }

    /// Whether every byte of `range` is in the set (section 4.7). Empty ranges are contiguous.
    pub fn is_contiguous(&self, range: Range<u64>) -> bool {
        range.start >= range.end
            || self.rank(range.end) - self.rank(range.start) == range.end - range.start
    }

    /// This set moved up by `by`.
    pub fn shift(&self, by: u64) -> Result<Self, FallsError> {
        if by == 0 {
            return Ok(self.clone());
        }
        checked::add(self.end(), by)?;
        Ok(self.shifted(by))
    }

    pub(crate) fn shifted(&self, by: u64) -> Self {
        if by == 0 || self.is_empty() {
            return self.clone();
        }
        if self.is_segment_list() {
            let moved: Vec<Segment> = self
                .nodes()
                .map(|n| Segment::trusted(n.start + by, n.len))
                .collect();
            return FallsSet::trusted_segments(&moved);
        }
        FallsSet::trusted(self.nodes().map(|n| n.shifted(by).to_falls()).collect())
    }

    /// This set moved down so that offset `by` becomes 0; `by` is at most the start.
    pub(crate) fn shifted_back(&self, by: u64) -> Self {
        debug_assert!(by <= self.start());
        if by == 0 {
            return self.clone();
        }
        FallsSet::trusted(
            self.to_members()
                .into_iter()
                .map(|m| m.shifted_back(by))
                .collect(),
        )
    }

    /// Repetition: `count` copies of the set, `step` apart (the REP of the specification).
    ///
    /// The copies must not interleave: `step` is at least the distance from first to last byte.
    ///
    /// ```
    /// use falls::FallsSet;
    /// let one: FallsSet = "{(0,0,2,2)}".parse().unwrap();
    /// let four = one.repeat(4, 8).unwrap();
    /// assert_eq!(four.to_string(), "{(0,2,8,4,{(0,0,2,2)})}");
    /// ```
    pub fn repeat(&self, count: u64, step: u64) -> Result<Self, FallsError> {
        let Some(hull) = self.hull() else {
            return Ok(FallsSet::empty());
        };
        if count == 0 {
            return Ok(FallsSet::empty());
        }
        if count == 1 {
            return Ok(self.clone());
        }
        let len = hull.end - hull.start;
        if self.len() == 1 && self.node(0).count == 1 {
            let node = self.node(0);
            if step >= node.len {
                let falls = Falls::build(node.start, node.len, step, count, node.inner.cloned())?;
                return Ok(FallsSet::trusted(vec![falls]));
            }
        }
        if step < len {
            return Err(FallsError::new(
                Reason::Order,
                format!("copies {step} bytes apart of a pattern that spans {len} bytes interleave"),
            ));
        }
        let one = self.cut(hull.clone());
        let inner = if one.is_contiguous(0..len) {
            None
        } else {
            Some(one)
        };
        Ok(FallsSet::trusted(vec![Falls::build(
            hull.start, len, step, count, inner,
        )?]))
    }

    /// This set followed by another that begins behind it (the SEQ of the specification).
    pub fn concat(parts: &[FallsSet]) -> Result<Self, FallsError> {
        if parts
            .iter()
            .filter(|p| !p.is_empty())
            .all(FallsSet::is_segment_list)
        {
            let all: Vec<Segment> = parts
                .iter()
                .flat_map(|p| p.nodes().map(|n| Segment::trusted(n.start, n.len)))
                .collect();
            return FallsSet::from_segments(&all);
        }
        FallsSet::new(parts.iter().flat_map(FallsSet::to_members).collect())
    }

    /// Whether both sets hold the same bytes, whatever their trees.
    ///
    /// Two sets of one size are equal exactly when their intersection has that size. Sets without
    /// a usable common period are compared segment by segment.
    pub fn same_bytes(&self, other: &FallsSet) -> bool {
        if self.size() != other.size() {
            return false;
        }
        if self == other || self.is_empty() {
            return true;
        }
        match self.intersect_within(other, crate::Budget::for_sets(self, other)) {
            Some(common) => common.size() == self.size(),
            None => self
                .segments(0..MAX_OFFSET)
                .eq(other.segments(0..MAX_OFFSET)),
        }
    }
}

/// Two members out of order: do they share a byte, or only interleave?
fn sibling_error(a: &Falls, b: &Falls) -> FallsError {
    match next_common_node(a.node(), b.node(), 0, MAX_OFFSET, &mut Fuel::alone(10_000)) {
        Some(byte) => FallsError::new(
            Reason::Overlap,
            format!("byte {byte} is already in the member before"),
        ),
        None => FallsError::new(
            Reason::Order,
            format!(
                "starts at {} before the previous member ends at {}; members must ascend without interleaving (normalise first)",
                b.start,
                a.end()
            ),
        ),
    }
}
