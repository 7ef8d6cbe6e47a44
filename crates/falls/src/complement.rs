//! The bytes of `0..period` that a set leaves out.
//!
//! ```text
//! set          ===   ===   ===
//! complement  x   xxx   xxx   xxxx      up to the period
//! ```
//!
//! The gaps of a node repeat with its blocks. Each block takes the free bytes on its sides along, as
//! far as there are any, so that block and gap together fill a stride and every inner set is visited
//! once: the complement has about twice the nodes of the set, whatever the counts. Where a node has
//! no room on either side, its last block has to be written apart from the others; nested often
//! enough that doubles the tree at each level, so the work is bounded.

use crate::error::{FallsError, Reason};
use crate::intersect::{Exhausted, Work};
use crate::segment::Segment;
use crate::set::{Falls, FallsSet, Node};
use crate::simplify::push;

impl FallsSet {
    /// Bytes of `0..period` not in the set. The set must end at or before `period`.
    ///
    /// ```
    /// use falls::FallsSet;
    /// let set: FallsSet = "{(1,2,4,3)}".parse().unwrap();
    /// assert_eq!(set.complement(12).unwrap().to_string(), "{(0,0,-,1),(3,4,4,2),(11,11,-,1)}");
    /// ```
    pub fn complement(&self, period: u64) -> Result<FallsSet, FallsError> {
        if self.end() > period {
            return Err(FallsError::new(
                Reason::Period,
                format!("the set ends at {}, beyond the period {period}", self.end()),
            ));
        }
        crate::checked::add(period, 0)?;
        if self.is_segment_list() {
            let mut gaps = Vec::with_capacity(self.len() + 1);
            let mut cursor = 0;
            for s in self.segments(0..period) {
                gap(&mut gaps, cursor, s.start());
                cursor = s.end();
            }
            gap(&mut gaps, cursor, period);
            return Ok(FallsSet::trusted_segments(&gaps));
        }
        let mut work = Work {
            left: (1 << 20) + 64 * self.node_count(),
        };
        match rest(self, 0, period, &mut work) {
            Ok(members) => Ok(FallsSet::trusted(members).simplify()),
            Err(Exhausted) => Err(FallsError::new(
                Reason::Nodes,
                "the gaps nest so tightly that their description needs too many nodes",
            )),
        }
    }
}

fn gap(gaps: &mut Vec<Segment>, from: u64, to: u64) {
    if from < to {
        gaps.push(Segment::trusted(from, to - from));
    }
}

fn push_gap(out: &mut Vec<Falls>, from: u64, to: u64) {
    if from < to {
        push(out, Falls::trusted_segment(from, to - from));
    }
}

/// The bytes of `0..window` that `set`, moved by `shift`, leaves out.
fn rest(set: &FallsSet, shift: u64, window: u64, work: &mut Work) -> Result<Vec<Falls>, Exhausted> {
    let mut out: Vec<Falls> = Vec::with_capacity(set.len() + 1);
    let mut cursor = 0;
    for i in 0..set.len() {
        work.spend(1)?;
        let node = set.node(i).shifted(shift);
        let next = if i + 1 < set.len() {
            set.node(i + 1).start + shift
        } else {
            window
        };
        let between = node.stride - node.len;
        if node.unit == node.len {
            push_gap(&mut out, cursor, node.start);
            if node.count > 1 && between > 0 {
                let first = node.start + node.len;
                push(
                    &mut out,
                    Falls::trusted(first, between, node.stride, node.count - 1, None),
                );
            }
            cursor = node.end();
            continue;
        }
        let before = between.min(node.start - cursor);
        let after = (between - before).min(next - node.end());
        if node.count > 1 && before + after == between {
            push_gap(&mut out, cursor, node.start - before);
            let body = rest_of_block(node, before, node.stride, work)?;
            push_repeated(&mut out, body, node.start - before, node.stride, node.count);
            cursor = node.end() + after;
            continue;
        }
        let last = node.start + (node.count - 1) * node.stride;
        if node.count > 1 {
            push_gap(&mut out, cursor, node.start);
            let body = rest_of_block(node, 0, node.stride, work)?;
            push_repeated(&mut out, body, node.start, node.stride, node.count - 1);
            cursor = last;
        }
        // The last block with all the room it has.
        let tail = rest_of_block(node, last - cursor, next - cursor, work)?;
        for member in tail {
            push(&mut out, member.shifted(cursor));
        }
        cursor = next;
    }
    push_gap(&mut out, cursor, window);
    Ok(out)
}

/// The bytes of `0..window` that one block of a nested node, moved to `shift`, leaves out.
fn rest_of_block(
    node: Node<'_>,
    shift: u64,
    window: u64,
    work: &mut Work,
) -> Result<Vec<Falls>, Exhausted> {
    match node.inner {
        Some(inner) => rest(inner, shift, window, work),
        None => {
            let mut out = Vec::with_capacity(2);
            push_gap(&mut out, 0, shift);
            push_gap(&mut out, shift + node.len, window);
            Ok(out)
        }
    }
}

/// `count` copies of `body`, `stride` apart, the first moved to `start`.
fn push_repeated(out: &mut Vec<Falls>, body: Vec<Falls>, start: u64, stride: u64, count: u64) {
    if count == 1 {
        for member in body {
            push(out, member.shifted(start));
        }
        return;
    }
    match body.as_slice() {
        [] => {}
        [one] if one.count() == 1 => push(
            out,
            Falls::trusted(
                start + one.start(),
                one.len(),
                stride,
                count,
                one.inner().cloned(),
            ),
        ),
        [first, ..] => {
            let first = first.start();
            let inner = FallsSet::trusted(body).shifted_back(first);
            push(
                out,
                Falls::trusted(start + first, inner.end(), stride, count, Some(inner)),
            );
        }
    }
}
