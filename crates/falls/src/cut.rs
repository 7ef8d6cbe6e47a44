//! CUT: the part of a set inside a range (section 7.2, repaired to cut through inner sets).
//!
//! ```text
//! set      |===   ===   ===   ===|
//! range        [-----------)
//! result       |= ===   ==|           relative to the start of the range
//! ```
//!
//! Per level at most a head, a middle that keeps its inner set by reference, and a tail; cost
//! O(depth x log fan-out + members copied).

use std::ops::Range;

use crate::segment::Segment;
use crate::set::{Falls, FallsSet, Node};

impl FallsSet {
    /// The bytes inside `range`, relative to its start.
    ///
    /// ```
    /// use falls::FallsSet;
    /// let set: FallsSet = "{(3,5,6,5)}".parse().unwrap();
    /// assert_eq!(set.cut(4..29).to_string(), "{(0,1,-,1),(5,7,6,3),(23,24,-,1)}");
    /// ```
    pub fn cut(&self, range: Range<u64>) -> FallsSet {
        if range.start == 0 && range.end >= self.end() {
            return self.clone();
        }
        if self.is_segment_list() {
            let part: Vec<Segment> = self
                .segments(range.clone())
                .map(|s| Segment::trusted(s.start() - range.start, s.len()))
                .collect();
            return FallsSet::trusted_segments(&part);
        }
        let mut out = Vec::new();
        cut_set(self, 0, &range, range.start, &mut out);
        FallsSet::trusted(out)
    }
}

/// Appends the part of `set`, moved by `base`, inside `range`; offsets are given less `origin`.
pub(crate) fn cut_set(
    set: &FallsSet,
    base: u64,
    range: &Range<u64>,
    origin: u64,
    out: &mut Vec<Falls>,
) {
    if range.start >= range.end || range.end <= base {
        return;
    }
    for i in set.members_meeting(range.start.saturating_sub(base), range.end - base) {
        cut_node(set.node(i).shifted(base), range, origin, out);
    }
}

/// Appends the part of `node` inside `range`; offsets are given less `origin`.
pub(crate) fn cut_node(node: Node<'_>, range: &Range<u64>, origin: u64, out: &mut Vec<Falls>) {
    let lo = range.start.max(node.start);
    let hi = range.end.min(node.end());
    if lo >= hi {
        return;
    }
    let (mut ka, mut za) = (
        (lo - node.start) / node.stride,
        (lo - node.start) % node.stride,
    );
    let (kb, mut zb) = (
        (hi - 1 - node.start) / node.stride,
        (hi - 1 - node.start) % node.stride,
    );
    if za >= node.len {
        (ka, za) = (ka + 1, 0);
    }
    zb = (zb + 1).min(node.len); // exclusive end within block kb
    if ka > kb {
        return;
    }
    let part = |k: u64, z0: u64, z1: u64, out: &mut Vec<Falls>| {
        let base = node.start + k * node.stride;
        match node.inner {
            None => out.push(Falls::trusted_segment(base + z0 - origin, z1 - z0)),
            Some(inner) => cut_set(inner, base, &(base + z0..base + z1), origin, out),
        }
    };
    let whole = |k: u64, count: u64, out: &mut Vec<Falls>| {
        out.push(Falls::trusted(
            node.start + k * node.stride - origin,
            node.len,
            node.stride,
            count,
            node.inner.cloned(),
        ));
    };
    if ka == kb {
        if za == 0 && zb == node.len {
            whole(ka, 1, out);
        } else {
            part(ka, za, zb, out);
        }
        return;
    }
    if za > 0 {
        part(ka, za, node.len, out);
        ka += 1;
    }
    let full = if zb == node.len { kb + 1 } else { kb };
    if full > ka {
        whole(ka, full - ka, out);
    }
    if zb < node.len {
        part(kb, 0, zb, out);
    }
}
