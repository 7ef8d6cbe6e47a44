//! The bytes of `0..period` that a set leaves out.
//!
//! ```text
//! set          ===   ===   ===
//! complement  x   xxx   xxx   xxxx      up to the period
//! ```
//!
//! A node with many blocks gives one node of gaps with as many blocks less one, so the complement
//! has at most about twice the nodes of the set, whatever the counts.

use crate::error::{FallsError, Reason};
use crate::segment::Segment;
use crate::set::{Falls, FallsSet};

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
        Ok(complement(self, period))
    }
}

fn gap(gaps: &mut Vec<Segment>, from: u64, to: u64) {
    if from < to {
        gaps.push(Segment::trusted(from, to - from));
    }
}

fn complement(set: &FallsSet, period: u64) -> FallsSet {
    let mut out: Vec<Falls> = Vec::with_capacity(set.len() * 2 + 1);
    let mut cursor = 0;
    for node in set.nodes() {
        if cursor < node.start {
            out.push(Falls::trusted_segment(cursor, node.start - cursor));
        }
        cursor = node.end();
        let inside = node.inner.map(|inner| complement(inner, node.len));
        let inside = inside.unwrap_or_else(FallsSet::empty);
        let between = node.stride - node.len;
        if node.count > 1 {
            // Every block but the last is followed by the gap to the next.
            let mut body = inside.to_members();
            if between > 0 {
                body.push(Falls::trusted_segment(node.len, between));
            }
            push_repeated(&mut out, body, node.start, node.stride, node.count - 1);
        }
        let last = node.start + (node.count - 1) * node.stride;
        out.extend(inside.to_members().into_iter().map(|m| m.shifted(last)));
    }
    if cursor < period {
        out.push(Falls::trusted_segment(cursor, period - cursor));
    }
    FallsSet::trusted(out).simplify()
}

/// `count` copies of `body`, `stride` apart, the first moved to `start`.
fn push_repeated(out: &mut Vec<Falls>, body: Vec<Falls>, start: u64, stride: u64, count: u64) {
    if body.is_empty() {
        return;
    }
    if body.len() == 1 && body[0].count() == 1 {
        let one = &body[0];
        out.push(Falls::trusted(
            start + one.start(),
            one.len(),
            stride,
            count,
            one.inner().cloned(),
        ));
        return;
    }
    let first = body[0].start();
    let inner = FallsSet::trusted(body).shifted_back(first);
    out.push(Falls::trusted(
        start + first,
        inner.end(),
        stride,
        count,
        Some(inner),
    ));
}
