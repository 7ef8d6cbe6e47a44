//! Owns [`Nest`], the input of the compiler: a tree of counted loops over bytes, each with a
//! step on the source side and one on the target side.
//!
//! ```text
//!  Nest::strided(2, 0, 3, 8, 4, 4): source 2, target 0, count 3, strides 8 and 4, 4 bytes
//!
//!  source  ..AAAA....BBBB....CCCC      target  AAAABBBBCCCC
//!          0 2       10      18                0   4   8
//! ```
//!
//! Invariants, established by the constructors and relied on by everything that follows:
//! * no loop runs zero times, no block is empty, no list of children is empty;
//! * every offset the tree can reach, relative to the enclosing block, fits an `i64`, and so
//!   does every span; the number of bytes fits a `u64`;
//! * the tree is at most [`MAX_DEPTH`] levels deep.
//!
//! Strides may be zero (replication on the source side, overwriting on the target side) or
//! negative (sequences in any order). What the offsets mean is left to the caller.
//!
//! Cost: constructors are O(1) for leaves and O(children) for inner nodes, because spans and
//! sizes are kept in every node. Children are shared (`Arc`), never copied.

use std::fmt;
use std::sync::Arc;

/// Deepest tree a constructor accepts; recursion anywhere in the crate is bounded by it.
pub const MAX_DEPTH: u32 = 64;

/// A half-open range of byte offsets; empty spans do not occur in valid trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: i64,
    /// One past the last byte.
    pub end: i64,
}

impl Span {
    /// Number of bytes between the ends.
    pub fn len(self) -> u64 {
        self.end.abs_diff(self.start)
    }

    /// True if no byte lies between the ends.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// True if the two spans share no byte.
    pub fn is_disjoint(self, other: Span) -> bool {
        self.end <= other.start || other.end <= self.start
    }

    /// The smallest span that holds both.
    pub(crate) fn join(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// The span of `count` copies of `self`, `stride` apart, the first one moved by `base`.
    pub(crate) fn repeat(self, base: i64, count: u64, stride: i64) -> Option<Span> {
        let base = i128::from(base);
        let last = i128::from(count - 1) * i128::from(stride);
        let start = base + i128::from(self.start) + last.min(0);
        let end = base + i128::from(self.end) + last.max(0);
        // The length must fit too, so that distances between any two bytes are representable.
        i64::try_from(end - start).ok()?;
        Some(Span {
            start: i64::try_from(start).ok()?,
            end: i64::try_from(end).ok()?,
        })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// Why a [`Nest`] was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NestError {
    /// A block of zero bytes: leave the node out instead.
    #[error("a block has zero bytes; leave it out instead")]
    EmptyBlock,
    /// A loop that runs zero times: leave the node out instead.
    #[error("a loop runs zero times; leave it out instead")]
    ZeroCount,
    /// An inner node without children: leave the node out instead.
    #[error("an inner node has no children; leave it out instead")]
    NoChildren,
    /// An offset on the source side does not fit 63 bits.
    #[error("an offset on the source side exceeds 63 bits")]
    SourceOverflow,
    /// An offset on the target side does not fit 63 bits.
    #[error("an offset on the target side exceeds 63 bits")]
    TargetOverflow,
    /// The number of bytes moved does not fit 64 bits.
    #[error("the number of bytes moved exceeds 64 bits")]
    BytesOverflow,
    /// More than [`MAX_DEPTH`] levels.
    #[error("the tree is deeper than 64 levels")]
    TooDeep,
}

/// What one iteration of a loop moves.
#[derive(Clone, Debug)]
pub enum Body {
    /// A contiguous block of that many bytes.
    Bytes(u64),
    /// The children in order, their offsets relative to the start of the iteration.
    Nested(Arc<[Nest]>),
}

/// One loop: `count` blocks, each `source_stride` further in the source and `target_stride`
/// further in the target than the one before. See the module text for the invariants.
///
/// ```
/// use kernels::{copy, Nest, Program};
/// // Columns 2..4 of a 3 x 5 byte matrix, packed.
/// let columns = Nest::strided(2, 0, 3, 5, 2, 2)?;
/// let mut packed = [0; 6];
/// copy(&Program::compile(&[columns]), b"abcdefghijklmno", &mut packed)?;
/// assert_eq!(&packed, b"cdhimn");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Nest {
    source: i64,
    target: i64,
    count: u64,
    source_stride: i64,
    target_stride: i64,
    body: Body,
    bytes: u64,
    source_span: Span,
    target_span: Span,
    depth: u32,
}

impl Nest {
    /// One contiguous block of `len` bytes.
    pub fn block(source: i64, target: i64, len: u64) -> Result<Nest, NestError> {
        Nest::strided(source, target, 1, 0, 0, len)
    }

    /// `count` contiguous blocks of `len` bytes, at constant strides.
    pub fn strided(
        source: i64,
        target: i64,
        count: u64,
        source_stride: i64,
        target_stride: i64,
        len: u64,
    ) -> Result<Nest, NestError> {
        if len == 0 {
            return Err(NestError::EmptyBlock);
        }
        let end = i64::try_from(len).map_err(|_| NestError::SourceOverflow)?;
        let block = Span { start: 0, end };
        let strides = (source_stride, target_stride);
        Nest::new(
            source,
            target,
            count,
            strides,
            Body::Bytes(len),
            (len, block, block, 1),
        )
    }

    /// `count` repetitions of a list of children, at constant strides. The children run in
    /// order within each repetition; where target bytes overlap, the later one wins.
    pub fn nested(
        source: i64,
        target: i64,
        count: u64,
        source_stride: i64,
        target_stride: i64,
        children: impl Into<Arc<[Nest]>>,
    ) -> Result<Nest, NestError> {
        let children: Arc<[Nest]> = children.into();
        let Some(first) = children.first() else {
            return Err(NestError::NoChildren);
        };
        let (mut bytes, mut source_span, mut target_span, mut depth) =
            (0u64, first.source_span, first.target_span, 0);
        for child in children.iter() {
            bytes = bytes
                .checked_add(child.bytes)
                .ok_or(NestError::BytesOverflow)?;
            source_span = source_span.join(child.source_span);
            target_span = target_span.join(child.target_span);
            depth = depth.max(child.depth);
        }
        if depth >= MAX_DEPTH {
            return Err(NestError::TooDeep);
        }
        let strides = (source_stride, target_stride);
        let facts = (bytes, source_span, target_span, depth + 1);
        Nest::new(
            source,
            target,
            count,
            strides,
            Body::Nested(children),
            facts,
        )
    }

    fn new(
        source: i64,
        target: i64,
        count: u64,
        (source_stride, target_stride): (i64, i64),
        body: Body,
        (bytes, source_span, target_span, depth): (u64, Span, Span, u32),
    ) -> Result<Nest, NestError> {
        if count == 0 {
            return Err(NestError::ZeroCount);
        }
        Ok(Nest {
            source,
            target,
            count,
            source_stride,
            target_stride,
            body,
            bytes: bytes.checked_mul(count).ok_or(NestError::BytesOverflow)?,
            source_span: source_span
                .repeat(source, count, source_stride)
                .ok_or(NestError::SourceOverflow)?,
            target_span: target_span
                .repeat(target, count, target_stride)
                .ok_or(NestError::TargetOverflow)?,
            depth,
        })
    }

    /// Offset of the first iteration in the source, relative to the enclosing block.
    pub fn source(&self) -> i64 {
        self.source
    }

    /// Offset of the first iteration in the target, relative to the enclosing block.
    pub fn target(&self) -> i64 {
        self.target
    }

    /// Number of iterations, at least 1.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Distance between iterations in the source.
    pub fn source_stride(&self) -> i64 {
        self.source_stride
    }

    /// Distance between iterations in the target.
    pub fn target_stride(&self) -> i64 {
        self.target_stride
    }

    /// What one iteration moves.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Bytes moved by all iterations.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Source bytes read, relative to the enclosing block.
    pub fn source_span(&self) -> Span {
        self.source_span
    }

    /// Target bytes written, relative to the enclosing block.
    pub fn target_span(&self) -> Span {
        self.target_span
    }
}

/// Runs a list of nests block by block in the order they are written: the meaning of a nest, and
/// the oracle of the tests. Offsets outside the slices panic.
pub fn copy_naive(nests: &[Nest], source: &[u8], target: &mut [u8]) {
    for nest in nests {
        run_naive(nest, 0, 0, source, target);
    }
}

fn run_naive(nest: &Nest, source_base: i64, target_base: i64, source: &[u8], target: &mut [u8]) {
    for index in 0..nest.count {
        let index = i64::try_from(index).expect("validated");
        let from = source_base + nest.source + index * nest.source_stride;
        let to = target_base + nest.target + index * nest.target_stride;
        match &nest.body {
            Body::Bytes(len) => {
                let (from, to) = (usize::try_from(from), usize::try_from(to));
                let (from, to) = (from.expect("in bounds"), to.expect("in bounds"));
                let len = usize::try_from(*len).expect("in bounds");
                target[to..to + len].copy_from_slice(&source[from..from + len]);
            }
            Body::Nested(children) => {
                for child in children.iter() {
                    run_naive(child, from, to, source, target);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_trees_are_refused_with_their_reason() {
        assert_eq!(Nest::block(0, 0, 0).unwrap_err(), NestError::EmptyBlock);
        assert_eq!(
            Nest::strided(0, 0, 0, 1, 1, 1).unwrap_err(),
            NestError::ZeroCount
        );
        assert_eq!(
            Nest::nested(0, 0, 1, 0, 0, vec![]).unwrap_err(),
            NestError::NoChildren
        );
        assert_eq!(
            Nest::block(i64::MAX, 0, 1).unwrap_err(),
            NestError::SourceOverflow
        );
        assert_eq!(
            Nest::block(0, i64::MAX - 1, 2).unwrap_err(),
            NestError::TargetOverflow
        );
        let far = Nest::strided(0, 0, 1 << 40, 1 << 40, 1, 1);
        assert_eq!(far.unwrap_err(), NestError::SourceOverflow);
        let wide = Nest::strided(-(1 << 62), 0, 2, i64::MAX, 1, 1);
        assert_eq!(wide.unwrap_err(), NestError::SourceOverflow);
        let many = Nest::strided(0, 0, u64::MAX, 0, 0, 2);
        assert_eq!(many.unwrap_err(), NestError::BytesOverflow);
        let mut deep = Nest::block(0, 0, 1).expect("valid");
        for _ in 1..MAX_DEPTH {
            deep = Nest::nested(0, 0, 1, 0, 0, vec![deep]).expect("valid");
        }
        assert_eq!(
            Nest::nested(0, 0, 1, 0, 0, vec![deep]).unwrap_err(),
            NestError::TooDeep
        );
    }

    #[test]
    fn spans_follow_the_sign_of_the_stride() {
        let nest = Nest::strided(10, 0, 3, -4, 2, 2).expect("valid");
        assert_eq!(nest.source_span(), Span { start: 2, end: 12 });
        assert_eq!(nest.target_span(), Span { start: 0, end: 6 });
        assert_eq!(nest.bytes(), 6);
    }
}
