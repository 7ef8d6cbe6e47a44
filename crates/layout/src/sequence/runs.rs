//! Iteration over the maximal ascending runs of a sequence, in stream order.
//!
//! A cursor with one frame per level of nesting. It seeks to a stream position by descent and then
//! walks, so memory is O(depth) and each block costs amortised constant time. A block that begins
//! where the one before ended is joined to it, so what comes out does not depend on the tree.

use std::ops::Range;

use super::{NodeBody, Sequence};

/// Neighbouring bytes visited in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First byte.
    pub start: i64,
    /// Number of bytes, at least 1.
    pub len: u64,
}

impl Run {
    /// One past the last byte.
    pub fn end(self) -> i64 {
        self.start + self.len as i64
    }
}

/// Iterator of [`Sequence::runs`] and [`Sequence::runs_in`].
#[derive(Clone, Debug)]
pub struct Runs {
    stack: Vec<Frame>,
    /// Bytes of the next block that lie before the range.
    skip: u64,
    /// Stream positions still to come.
    left: u64,
    held: Option<Run>,
}

/// Where the walk stands: iteration `iteration` of node `node`, all offsets plus `base`.
#[derive(Clone, Debug)]
struct Frame {
    seq: Sequence,
    base: i64,
    node: usize,
    iteration: u64,
}

impl Runs {
    pub(super) fn new(seq: &Sequence, range: Range<u64>) -> Self {
        let end = range.end.min(seq.size());
        let mut runs = Runs {
            stack: Vec::with_capacity(seq.depth() as usize),
            skip: 0,
            left: end.saturating_sub(range.start),
            held: None,
        };
        if runs.left > 0 {
            runs.seek(seq, range.start);
        }
        runs
    }

    fn seek(&mut self, seq: &Sequence, position: u64) {
        let (mut seq, mut k, mut base) = (seq.clone(), position, 0i64);
        loop {
            let node_index = seq.0.before.partition_point(|&b| b <= k) - 1;
            let node = seq.node(node_index);
            k -= seq.0.before[node_index];
            let (iteration, rest) = (k / node.unit(), k % node.unit());
            let at = base + node.at(iteration);
            match node.body {
                NodeBody::Bytes(_) => {
                    self.skip = rest;
                    self.stack.push(Frame {
                        seq,
                        base,
                        node: node_index,
                        iteration,
                    });
                    return;
                }
                NodeBody::Nested(inner) => {
                    let inner = inner.clone();
                    // The frame stands behind the iteration that is descended into.
                    let mut frame = Frame {
                        seq,
                        base,
                        node: node_index,
                        iteration,
                    };
                    frame.advance();
                    self.stack.push(frame);
                    (seq, k, base) = (inner, rest, at);
                }
            }
        }
    }

    /// The next block, not joined.
    fn block(&mut self) -> Option<Run> {
        while self.left > 0 {
            let frame = self.stack.last_mut()?;
            if frame.node == frame.seq.len() {
                self.stack.pop();
                continue;
            }
            let node = frame.seq.node(frame.node);
            let at = frame.base + node.at(frame.iteration);
            match node.body {
                NodeBody::Bytes(len) => {
                    frame.advance();
                    let skip = std::mem::take(&mut self.skip);
                    let len = (len - skip).min(self.left);
                    self.left -= len;
                    return Some(Run {
                        start: at + skip as i64,
                        len,
                    });
                }
                NodeBody::Nested(inner) => {
                    let seq = inner.clone();
                    frame.advance();
                    self.stack.push(Frame {
                        seq,
                        base: at,
                        node: 0,
                        iteration: 0,
                    });
                }
            }
        }
        None
    }
}

impl Frame {
    fn advance(&mut self) {
        self.iteration += 1;
        if self.iteration == self.seq.node(self.node).count {
            (self.node, self.iteration) = (self.node + 1, 0);
        }
    }
}

impl Iterator for Runs {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let mut run = match self.held.take() {
            Some(run) => run,
            None => self.block()?,
        };
        while let Some(block) = self.block() {
            if block.start != run.end() {
                self.held = Some(block);
                break;
            }
            run.len += block.len;
        }
        Some(run)
    }
}
