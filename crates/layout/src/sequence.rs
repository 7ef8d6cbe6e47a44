//! Memory descriptions: bytes in any order, possibly more than once.
//!
//! A [`FallsSet`] says *which* bytes; a [`Sequence`] says in *which order* they are visited. An MPI
//! datatype describes memory this way: columns before rows, descending blocks, the same byte twice.
//! The two are different types, and only [`Sequence::to_set`] leads from one to the other, when the
//! order happens to be ascending.
//!
//! ```text
//! two columns of a 4 x 4 matrix, one after the other
//! offset   0 1 2 3 4 5 6 7 8 9 ..            node {start 0, count 2, stride 1}
//! order    a e . . b f . . c g . . d h       body: node {start 0, count 4, stride 4, 1 byte}
//! ```
//!
//! A sequence is a program of counted loops: a list of nodes `{start, count, stride, body}`, where a
//! body is a block of bytes or another list. Byte number j of the program is *stream position* j.
//! The shape is that of a loop nest with one side, so a memory description compiles into copies node
//! by node.
//!
//! Invariants
//! - No node is empty: `count >= 1`, blocks have a byte, lists have a node. The empty sequence is
//!   the empty list at the top.
//! - Every byte offset fits `i64`, so do the distance between any two bytes and the number of
//!   stream positions.
//! - Inside a nested body the lowest byte is at 0, so `start + i * stride` is always the lowest byte
//!   of iteration i and never leaves the range of real offsets.
//! - Neighbouring blocks that touch in ascending order are one block; regular repetition is one
//!   node; long irregular lists are kept as two numbers per block.
//!
//! Cost: size, hull and monotony are O(1), select is O(depth x log fan-out), iteration takes
//! O(depth) memory. The number of nodes follows the nesting and the length of irregular lists, never
//! the counts of loops. Bodies are shared, so cloning is free.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use falls::{Falls, FallsSet, Reason, Segment};

use crate::error::{LayoutError, LayoutErrorKind};

mod build;
mod overlap;
mod runs;

pub(crate) use build::{Builder, Unit};
pub use overlap::Overlap;
pub use runs::{Run, Runs};

/// Deepest nesting of a sequence.
pub const MAX_DEPTH: u32 = 64;

/// Largest tree, counted as written, that is compared node by node when neighbours are merged.
const COMPARE_NODES: u64 = 4096;

/// An ordered program of byte runs. See the [module](self) for the invariants.
///
/// ```
/// use layout::sequence::Sequence;
/// // Four elements of 4 bytes in descending order: MPI_Type_vector(4, 1, -1, MPI_INT).
/// let s = Sequence::bytes(0, 4)?.repeat(4, -4)?;
/// assert_eq!((s.size(), s.hull()), (16, Some(-12..4)));
/// let runs: Vec<_> = s.runs().map(|r| (r.start, r.len)).collect();
/// assert_eq!(runs, [(0, 4), (-4, 4), (-8, 4), (-12, 4)]);
/// assert_eq!(s.select(5), Some(-3));
/// assert!(!s.is_monotone());
/// # Ok::<(), layout::LayoutError>(())
/// ```
#[derive(Clone)]
pub struct Sequence(Arc<Data>);

struct Data {
    parts: Parts,
    /// Stream positions before node `i`; one more entry than nodes, the last is the size.
    before: Box<[u64]>,
    /// Lowest byte and one past the highest; both 0 when empty.
    low: i64,
    high: i64,
    ascending: bool,
    depth: u32,
    nodes: u64,
    pieces: u64,
}

enum Parts {
    Nodes(Box<[Part]>),
    /// Starts of plain blocks; their lengths are the differences of `before`.
    Blocks(Box<[i64]>),
}

/// A node, owned.
#[derive(Clone, Debug)]
struct Part {
    start: i64,
    count: u64,
    stride: i64,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    Bytes(u64),
    Nested(Sequence),
}

/// One node of a sequence: `count` iterations, the lowest byte of iteration i at
/// `start + i * stride`, relative to the body the node stands in.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// Where the first iteration begins.
    pub start: i64,
    /// Number of iterations, at least 1.
    pub count: u64,
    /// Distance between iterations, of either sign; 0 repeats the same bytes. Meaningless when
    /// there is one iteration.
    pub stride: i64,
    /// What one iteration visits.
    pub body: NodeBody<'a>,
}

/// What one iteration of a [`Node`] visits.
#[derive(Clone, Copy, Debug)]
pub enum NodeBody<'a> {
    /// That many neighbouring bytes.
    Bytes(u64),
    /// The nodes of a sequence in order; its lowest byte is at 0.
    Nested(&'a Sequence),
}

impl Node<'_> {
    /// Stream positions of one iteration.
    pub fn unit(&self) -> u64 {
        match self.body {
            NodeBody::Bytes(len) => len,
            NodeBody::Nested(inner) => inner.size(),
        }
    }

    /// Stream positions of the node.
    pub fn size(&self) -> u64 {
        self.unit() * self.count
    }

    /// Bytes from the lowest to the highest of one iteration, holes included.
    pub fn span(&self) -> u64 {
        match self.body {
            NodeBody::Bytes(len) => len,
            NodeBody::Nested(inner) => inner.0.high.unsigned_abs(),
        }
    }

    /// Start of iteration `i < count`.
    fn at(&self, i: u64) -> i64 {
        // Exact modulo 2^64, and the result is a byte of the sequence, which fits.
        self.start
            .wrapping_add((i as i64).wrapping_mul(self.stride))
    }

    fn owned(&self) -> Part {
        Part {
            start: self.start,
            count: self.count,
            stride: self.stride,
            body: match self.body {
                NodeBody::Bytes(len) => Body::Bytes(len),
                NodeBody::Nested(inner) => Body::Nested(inner.clone()),
            },
        }
    }
}

impl Part {
    fn node(&self) -> Node<'_> {
        Node {
            start: self.start,
            count: self.count,
            stride: self.stride,
            body: match &self.body {
                Body::Bytes(len) => NodeBody::Bytes(*len),
                Body::Nested(inner) => NodeBody::Nested(inner),
            },
        }
    }

    /// Equal up to where it starts. Large trees count as equal only when they are shared.
    fn same_shape(&self, other: &Part) -> bool {
        self.count == other.count
            && (self.count == 1 || self.stride == other.stride)
            && self.body.same(&other.body)
    }
}

impl Body {
    fn same(&self, other: &Body) -> bool {
        match (self, other) {
            (Body::Bytes(a), Body::Bytes(b)) => a == b,
            (Body::Nested(a), Body::Nested(b)) => a.same_tree(b),
            _ => false,
        }
    }
}

impl Sequence {
    /// The sequence without bytes.
    pub fn empty() -> Self {
        Sequence(Arc::new(Data {
            parts: Parts::Nodes(Box::new([])),
            before: Box::new([0]),
            low: 0,
            high: 0,
            ascending: true,
            depth: 0,
            nodes: 0,
            pieces: 0,
        }))
    }

    /// `len` neighbouring bytes from `start` on; the empty sequence when `len` is 0.
    pub fn bytes(start: i64, len: u64) -> Result<Self, LayoutError> {
        let mut builder = Builder::new();
        builder.push_bytes(start, len)?;
        builder.finish()
    }

    /// Blocks of (start, length) in the given order. Blocks of length 0 are left out; regular
    /// stretches are recognised.
    ///
    /// ```
    /// use layout::sequence::Sequence;
    /// let s = Sequence::from_blocks((0..1000).map(|i| (i * 24 % 8000, 8)))?;
    /// assert_eq!(s.size(), 8000);
    /// assert!(s.node_count() < 20);
    /// # Ok::<(), layout::LayoutError>(())
    /// ```
    pub fn from_blocks(blocks: impl IntoIterator<Item = (i64, u64)>) -> Result<Self, LayoutError> {
        let mut builder = Builder::new();
        for (start, len) in blocks {
            builder.push_bytes(start, len)?;
        }
        builder.finish()
    }

    /// The bytes of a set in ascending order, offset 0 of the set at `base`.
    pub fn from_set(base: i64, set: &FallsSet) -> Result<Self, LayoutError> {
        build::of_set(set)?.shift(base)
    }

    /// `count` repetitions, each `stride` bytes after the one before: the tile of a datatype.
    pub fn repeat(&self, count: u64, stride: i64) -> Result<Self, LayoutError> {
        if count == 1 {
            return Ok(self.clone());
        }
        let mut builder = Builder::new();
        builder.push_repeat(&Unit::of(self)?, 0, count, stride)?;
        builder.finish()
    }

    /// This program `by` bytes further up.
    pub fn shift(&self, by: i64) -> Result<Self, LayoutError> {
        if by == 0 || self.is_empty() {
            return Ok(self.clone());
        }
        let mut builder = Builder::new();
        for node in self.nodes() {
            let start = node.start.checked_add(by).ok_or_else(overflow)?;
            builder.push_part(Part {
                start,
                ..node.owned()
            })?;
        }
        builder.finish_as_is()
    }

    /// One sequence after the other.
    pub fn concat(parts: &[Sequence]) -> Result<Self, LayoutError> {
        let mut builder = Builder::new();
        for part in parts {
            builder.push_repeat(&Unit::of(part)?, 0, 1, 0)?;
        }
        builder.finish()
    }

    /// Number of stream positions: bytes, each counted as often as it is visited.
    pub fn size(&self) -> u64 {
        self.0.before[self.len()]
    }

    /// Whether no byte is visited.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The smallest range that holds every byte visited; `None` when there is none.
    pub fn hull(&self) -> Option<Range<i64>> {
        (!self.is_empty()).then_some(self.0.low..self.0.high)
    }

    /// Whether offsets strictly ascend along the stream, so that the sequence is a set in its
    /// natural order. Exact.
    pub fn is_monotone(&self) -> bool {
        self.0.ascending
    }

    /// Whether the stream is one block of neighbouring bytes, or empty.
    pub fn is_contiguous(&self) -> bool {
        self.0.ascending && self.size() == self.0.high.abs_diff(self.0.low)
    }

    /// Number of nodes at the top level.
    pub fn len(&self) -> usize {
        self.0.before.len() - 1
    }

    /// Levels of nesting; 0 for the empty sequence.
    pub fn depth(&self) -> u32 {
        self.0.depth
    }

    /// Number of nodes of the tree; a shared body counts each time, and the count saturates.
    pub fn node_count(&self) -> u64 {
        self.0.nodes
    }

    /// Number of blocks the loops visit, at most `u64::MAX`. At least the number of [`Runs`].
    pub fn piece_count(&self) -> u64 {
        self.0.pieces
    }

    /// Node `i` of the top level, in stream order.
    ///
    /// # Panics
    /// When `i` is not below [`Sequence::len`].
    pub fn node(&self, i: usize) -> Node<'_> {
        match &self.0.parts {
            Parts::Nodes(parts) => parts[i].node(),
            Parts::Blocks(starts) => {
                let len = self.0.before[i + 1] - self.0.before[i];
                Node {
                    start: starts[i],
                    count: 1,
                    stride: 0,
                    body: NodeBody::Bytes(len),
                }
            }
        }
    }

    /// The nodes of the top level in stream order. Bodies are walked the same way, which is how a
    /// loop nest is made:
    ///
    /// ```
    /// use layout::sequence::{NodeBody, Sequence};
    /// fn blocks(s: &Sequence, base: i64, visit: &mut dyn FnMut(i64, u64)) {
    ///     for node in s.nodes() {
    ///         for i in 0..node.count {
    ///             let at = base + node.start + i as i64 * node.stride;
    ///             match node.body {
    ///                 NodeBody::Bytes(len) => visit(at, len),
    ///                 NodeBody::Nested(inner) => blocks(inner, at, visit),
    ///             }
    ///         }
    ///     }
    /// }
    /// let column = Sequence::bytes(0, 1)?.repeat(2, 4)?;
    /// let mut seen = Vec::new();
    /// blocks(&column.repeat(2, 1)?, 0, &mut |at, _| seen.push(at));
    /// assert_eq!(seen, [0, 4, 1, 5]);
    /// # Ok::<(), layout::LayoutError>(())
    /// ```
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = Node<'_>> + '_ {
        (0..self.len()).map(|i| self.node(i))
    }

    /// Offset of the byte at stream position `k`; `None` when `k >= size`.
    pub fn select(&self, k: u64) -> Option<i64> {
        if k >= self.size() {
            return None;
        }
        let (mut seq, mut k, mut base) = (self, k, 0i64);
        loop {
            let (node, rest) = seq.find(k);
            let (i, rest) = (rest / node.unit(), rest % node.unit());
            base += node.at(i);
            match node.body {
                NodeBody::Bytes(_) => return Some(base + rest as i64),
                NodeBody::Nested(inner) => (seq, k) = (inner, rest),
            }
        }
    }

    /// The node that holds stream position `k < size`, and the position within it.
    fn find(&self, k: u64) -> (Node<'_>, u64) {
        let i = self.0.before.partition_point(|&b| b <= k) - 1;
        (self.node(i), k - self.0.before[i])
    }

    /// The part of the program that visits stream positions `range`, in the same offsets. Positions
    /// beyond the end are left out.
    ///
    /// ```
    /// use layout::sequence::Sequence;
    /// let s = Sequence::bytes(0, 4)?.repeat(1_000_000, -8)?;
    /// let part = s.slice(2..3_999_999);
    /// assert_eq!((part.size(), part.node_count()), (3_999_997, 3));
    /// assert_eq!((part.select(0), part.select(2)), (Some(2), Some(-8)));
    /// # Ok::<(), layout::LayoutError>(())
    /// ```
    pub fn slice(&self, range: Range<u64>) -> Sequence {
        if range.start == 0 && range.end >= self.size() {
            return self.clone();
        }
        build::slice(self, range)
    }

    /// Maximal ascending runs in stream order.
    pub fn runs(&self) -> Runs {
        self.runs_in(0..self.size())
    }

    /// The runs of stream positions `range`, found by descent.
    pub fn runs_in(&self, range: Range<u64>) -> Runs {
        Runs::new(self, range)
    }

    /// Whether both visit the same bytes in the same order, whatever their trees. Costs a walk.
    pub fn same_order(&self, other: &Sequence) -> bool {
        self.size() == other.size() && (self.same_tree(other) || self.runs().eq(other.runs()))
    }

    /// Equality of the trees; `false` for large ones that are not shared.
    fn same_tree(&self, other: &Sequence) -> bool {
        if Arc::ptr_eq(&self.0, &other.0) {
            return true;
        }
        let (a, b) = (&*self.0, &*other.0);
        a.nodes <= COMPARE_NODES
            && a.nodes == b.nodes
            && (a.low, a.high, a.pieces) == (b.low, b.high, b.pieces)
            && a.before == b.before
            && self.nodes().zip(other.nodes()).all(|(x, y)| {
                let same_body = match (x.body, y.body) {
                    (NodeBody::Bytes(p), NodeBody::Bytes(q)) => p == q,
                    (NodeBody::Nested(p), NodeBody::Nested(q)) => p.same_tree(q),
                    _ => false,
                };
                same_body
                    && (x.start, x.count) == (y.start, y.count)
                    && (x.count == 1 || x.stride == y.stride)
            })
    }

    /// The bytes as a set when they are visited in ascending order, each once: the offset of the
    /// lowest byte, which may be negative, and the set relative to it.
    ///
    /// ```
    /// use layout::sequence::Sequence;
    /// let s = Sequence::bytes(-6, 2)?.repeat(3, 4)?;
    /// let (base, set) = s.to_set()?;
    /// assert_eq!((base, set.to_string().as_str()), (-6, "{(0,1,4,3)}"));
    /// assert!(s.repeat(2, 1)?.to_set().is_err());
    /// # Ok::<(), layout::LayoutError>(())
    /// ```
    pub fn to_set(&self) -> Result<(i64, FallsSet), LayoutError> {
        if !self.is_monotone() {
            return Err(LayoutError::new(
                LayoutErrorKind::NotMonotone,
                "sequence",
                "visits bytes out of ascending order or more than once; a set has no order, so use the sequence itself",
            ));
        }
        let set = set_of(self, &mut HashMap::new())?;
        let set = if set.node_count() <= COMPARE_NODES {
            set.simplify()
        } else {
            set
        };
        Ok((self.0.low, set))
    }
}

/// The set of an ascending sequence, relative to its lowest byte. `seen` keeps shared bodies shared.
fn set_of(
    seq: &Sequence,
    seen: &mut HashMap<*const Data, FallsSet>,
) -> Result<FallsSet, LayoutError> {
    let low = seq.0.low;
    if let Parts::Blocks(_) = &seq.0.parts {
        let segments = seq
            .nodes()
            .map(|n| Segment::new(n.start.abs_diff(low), n.unit()))
            .collect::<Result<Vec<_>, _>>()?;
        return Ok(FallsSet::from_segments(&segments)?);
    }
    let mut members = Vec::with_capacity(seq.len());
    for node in seq.nodes() {
        let (start, stride) = (node.start.abs_diff(low), node.stride.unsigned_abs());
        members.push(match node.body {
            NodeBody::Nested(inner) if !inner.is_contiguous() => {
                let key = Arc::as_ptr(&inner.0);
                let set = match seen.get(&key) {
                    Some(set) => set.clone(),
                    None => {
                        let set = set_of(inner, seen)?;
                        seen.insert(key, set.clone());
                        set
                    }
                };
                Falls::nested(start, node.span(), stride, node.count, set)?
            }
            _ => Falls::family(start, node.span(), stride, node.count)?,
        });
    }
    Ok(FallsSet::new(members)?)
}

impl Default for Sequence {
    fn default() -> Self {
        Sequence::empty()
    }
}

impl fmt::Debug for Sequence {
    /// The program on one line: `[start+count*stride(body), ..]`, long lists cut short.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, node) in self.nodes().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            if i == 16 {
                write!(f, "and {} more", self.len() - i)?;
                break;
            }
            write!(f, "{}", node.start)?;
            if node.count > 1 {
                write!(f, "+{}*{}", node.count, node.stride)?;
            }
            match node.body {
                NodeBody::Bytes(len) => write!(f, "({len})")?,
                NodeBody::Nested(inner) => inner.fmt(f)?,
            }
        }
        f.write_str("]")
    }
}

fn overflow() -> LayoutError {
    LayoutError::overflow("offsets")
}

fn too_deep() -> LayoutError {
    LayoutError::new(
        LayoutErrorKind::Falls(Reason::Depth),
        "nesting",
        format!("deeper than {MAX_DEPTH} levels"),
    )
}
