//! Iteration over the maximal segments of a set within a range (SEGMENTS, section 8.1).
//!
//! A cursor with one frame per level of nesting: it seeks to the range by descent and then walks,
//! so memory is O(depth) and each segment costs amortised constant time. Touching blocks are
//! joined, so what comes out is maximal, ascending and independent of the tree.

use std::ops::Range;

use crate::segment::Segment;
use crate::set::{FallsSet, Node};

impl FallsSet {
    /// Maximal segments of the set, clipped to `range`, ascending.
    ///
    /// ```
    /// use falls::FallsSet;
    /// let set: FallsSet = "{(3,5,6,5)}".parse().unwrap();
    /// let found: Vec<_> = set.segments(4..17).map(|s| (s.start(), s.last())).collect();
    /// assert_eq!(found, [(4, 5), (9, 11), (15, 16)]);
    /// ```
    pub fn segments(&self, range: Range<u64>) -> Segments {
        Segments {
            leaves: Leaves::new(self, range),
            held: None,
        }
    }
}

/// Iterator of [`FallsSet::segments`].
#[derive(Clone, Debug)]
pub struct Segments {
    leaves: Leaves,
    held: Option<Segment>,
}

impl Iterator for Segments {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        let mut run = match self.held.take() {
            Some(s) => s,
            None => self.leaves.next()?,
        };
        for s in self.leaves.by_ref() {
            if s.start() != run.end() {
                self.held = Some(s);
                break;
            }
            run = Segment::trusted(run.start(), run.len() + s.len());
        }
        Some(run)
    }
}

/// Leaf blocks in order, not joined.
#[derive(Clone, Debug)]
struct Leaves {
    stack: Vec<Frame>,
    range: Range<u64>,
}

/// Where the walk stands in one set: member `member`, block `block`, all offsets plus `base`.
#[derive(Clone, Debug)]
struct Frame {
    set: FallsSet,
    base: u64,
    member: usize,
    block: u64,
}

impl Leaves {
    fn new(set: &FallsSet, range: Range<u64>) -> Self {
        let mut stack = Vec::with_capacity(set.depth() as usize);
        if range.start < range.end && !set.is_empty() {
            stack.push(Frame::seek(set, 0, range.start));
        }
        Leaves { stack, range }
    }
}

impl Frame {
    /// Stands on the first block of `set` (moved by `base`) that ends after `from`.
    fn seek(set: &FallsSet, base: u64, from: u64) -> Self {
        let from = from.saturating_sub(base);
        let mut member = set.starting_below(from.saturating_add(1)).saturating_sub(1);
        let mut block = 0;
        let node = set.node(member);
        if from >= node.end() {
            member += 1;
        } else if from > node.start && node.count > 1 && !node.is_segment() {
            let y = from - node.start;
            block = y / node.stride + u64::from(y % node.stride >= node.len);
        }
        Frame {
            set: set.clone(),
            base,
            member,
            block,
        }
    }

    fn current(&self) -> Option<Node<'_>> {
        (self.member < self.set.len()).then(|| self.set.node(self.member))
    }
}

impl Iterator for Leaves {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        loop {
            let frame = self.stack.last_mut()?;
            let Some(node) = frame.current() else {
                self.stack.pop();
                continue;
            };
            if node.is_segment() {
                // One run, whatever its number of touching blocks.
                let (start, end) = (frame.base + node.start, frame.base + node.end());
                frame.member += 1;
                frame.block = 0;
                if let Some(s) = clip(start, end, &self.range) {
                    return Some(s);
                }
                if start >= self.range.end {
                    self.stack.clear();
                }
                continue;
            }
            let start = frame.base + node.start + frame.block * node.stride;
            if start >= self.range.end {
                self.stack.clear();
                continue;
            }
            let (len, last) = (node.len, frame.block + 1 == node.count);
            let deeper = node
                .inner
                .map(|inner| Frame::seek(inner, start, self.range.start));
            if last {
                (frame.member, frame.block) = (frame.member + 1, 0);
            } else {
                frame.block += 1;
            }
            match deeper {
                Some(below) => self.stack.push(below),
                None => {
                    if let Some(s) = clip(start, start + len, &self.range) {
                        return Some(s);
                    }
                }
            }
        }
    }
}

fn clip(start: u64, end: u64, range: &Range<u64>) -> Option<Segment> {
    let (lo, hi) = (start.max(range.start), end.min(range.end));
    (lo < hi).then(|| Segment::trusted(lo, hi - lo))
}
