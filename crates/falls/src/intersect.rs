//! Symbolic intersection of sets (section 7.3, replaced by the order-keeping form of the
//! specification, 3.8).
//!
//! ```text
//! a        ====    ====    ====    ====
//! b        ==  ==  ==  ==  ==  ==  ==
//! a and b  ==      ==      ==      ==         one node
//! ```
//!
//! Where both sides repeat, one common period is intersected and repeated; where they do not, the
//! side with the longer stride is opened block by block. The result is well formed, hence in file
//! order, always; the printed algorithm is not in one of nine pairs of block-cyclic distributions.
//!
//! Cost per pair of nodes: blocks per common period when one fits, else blocks of the longer stride
//! in the overlap. A [`Budget`] bounds the total; when it runs out the caller works with cursors
//! ([`Meeting`](crate::Meeting)) and nothing was allocated for the rest.

use crate::checked::lcm;
use crate::cut::cut_node;
use crate::set::{Falls, FallsSet, Node};

/// How many steps a symbolic operation may take before the lazy form takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(pub u64);

impl Budget {
    /// Large enough for every regular pair of array distributions met in practice, small enough
    /// that running out costs well under a millisecond.
    pub const DEFAULT: Budget = Budget(16_384);

    /// The default, and more for descriptions that are large themselves: intersecting two lists of
    /// a million segments may take steps in proportion to the lists, not to what they describe.
    pub fn for_sets(a: &FallsSet, b: &FallsSet) -> Budget {
        let nodes = a.node_count().saturating_add(b.node_count());
        Budget(Budget::DEFAULT.0 + nodes.saturating_mul(8).min(1 << 26))
    }

    /// No bound: only for inputs whose size the caller controls.
    pub const UNBOUNDED: Budget = Budget(u64::MAX);
}

/// The budget is used up.
pub(crate) struct Exhausted;

impl FallsSet {
    /// The bytes in both sets; `None` when the budget does not suffice.
    pub fn intersect_within(&self, other: &FallsSet, budget: Budget) -> Option<FallsSet> {
        self.intersect_with(other, &mut Work { left: budget.0 })
            .ok()
    }

    pub(crate) fn intersect_with(
        &self,
        other: &FallsSet,
        work: &mut Work,
    ) -> Result<FallsSet, Exhausted> {
        let mut out = Vec::new();
        intersect_sets(self, 0, other, 0, work, &mut out)?;
        Ok(FallsSet::trusted(out))
    }

    /// The bytes in both sets.
    ///
    /// Takes time and memory in proportion to the nodes of the result in the worst case (long
    /// co-prime strides); [`FallsSet::intersect_within`] bounds it, [`crate::Meeting`] avoids it.
    ///
    /// ```
    /// use falls::FallsSet;
    /// let a: FallsSet = "{(0,7,16,2)}".parse().unwrap();
    /// let b: FallsSet = "{(0,3,8,4)}".parse().unwrap();
    /// assert_eq!(a.intersect(&b).to_string(), "{(0,3,16,2)}");
    /// ```
    pub fn intersect(&self, other: &FallsSet) -> FallsSet {
        self.intersect_within(other, Budget::UNBOUNDED)
            .expect("an unbounded budget is not used up")
    }
}

pub(crate) struct Work {
    pub(crate) left: u64,
}

impl Work {
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), Exhausted> {
        self.left = self.left.checked_sub(steps).ok_or(Exhausted)?;
        Ok(())
    }
}

/// Appends the intersection of two sets, each moved by its base.
fn intersect_sets(
    a: &FallsSet,
    a_base: u64,
    b: &FallsSet,
    b_base: u64,
    work: &mut Work,
    out: &mut Vec<Falls>,
) -> Result<(), Exhausted> {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let (f, g) = (a.node(i).shifted(a_base), b.node(j).shifted(b_base));
        // Leap over members that cannot meet: lists of millions against a few nodes stay cheap.
        if f.end() <= g.start {
            i = if i + 1 < a.len() && a.node(i + 1).end() + a_base <= g.start && g.start >= a_base {
                a.members_meeting(g.start - a_base, u64::MAX).start
            } else {
                i + 1
            };
            continue;
        }
        if g.end() <= f.start {
            j = if j + 1 < b.len() && b.node(j + 1).end() + b_base <= f.start && f.start >= b_base {
                b.members_meeting(f.start - b_base, u64::MAX).start
            } else {
                j + 1
            };
            continue;
        }
        intersect_nodes(f, g, work, out)?;
        if f.end() <= g.end() { i += 1 } else { j += 1 }
    }
    Ok(())
}

/// Appends the intersection of two nodes in common coordinates.
pub(crate) fn intersect_nodes(
    f: Node<'_>,
    g: Node<'_>,
    work: &mut Work,
    out: &mut Vec<Falls>,
) -> Result<(), Exhausted> {
    let lo = f.start.max(g.start);
    let hi = f.end().min(g.end());
    if lo >= hi {
        return Ok(());
    }
    work.spend(1)?;
    if f.is_segment() {
        cut_node(g, &(lo..hi), 0, out);
        return Ok(());
    }
    if g.is_segment() {
        cut_node(f, &(lo..hi), 0, out);
        return Ok(());
    }
    if f.start == g.start && f.same_shape(g) {
        out.push(f.to_falls());
        return Ok(());
    }
    if f.count == 1 {
        return intersect_inner(f, g, lo, hi, work, out);
    }
    if g.count == 1 {
        return intersect_inner(g, f, lo, hi, work, out);
    }
    let length = hi - lo;
    match lcm(f.stride, g.stride) {
        Some(period) if period < length => intersect_periods(f, g, lo, hi, period, work, out),
        _ => {
            let (long, short) = if f.stride >= g.stride { (f, g) } else { (g, f) };
            let first = (lo - long.start) / long.stride;
            let last = (hi - 1 - long.start) / long.stride;
            if last - first >= work.left {
                return Err(Exhausted);
            }
            for k in first..=last {
                intersect_nodes(long.block(k), short, work, out)?;
            }
            Ok(())
        }
    }
}

fn intersect_inner(
    single: Node<'_>,
    other: Node<'_>,
    lo: u64,
    hi: u64,
    work: &mut Work,
    out: &mut Vec<Falls>,
) -> Result<(), Exhausted> {
    let inner = single
        .inner
        .expect("a single block without inner set is a segment");
    if other.count == 1 {
        let other_inner = other
            .inner
            .expect("a single block without inner set is a segment");
        return intersect_sets(inner, single.start, other_inner, other.start, work, out);
    }
    for i in inner.members_meeting(lo - single.start, hi - single.start) {
        intersect_nodes(inner.node(i).shifted(single.start), other, work, out)?;
    }
    Ok(())
}

/// Both sides repeat with `period` inside `lo..hi`: intersect one period and repeat the result.
fn intersect_periods(
    f: Node<'_>,
    g: Node<'_>,
    lo: u64,
    hi: u64,
    period: u64,
    work: &mut Work,
    out: &mut Vec<Falls>,
) -> Result<(), Exhausted> {
    let mut one = Vec::new();
    intersect_cuts(f, g, lo, lo + period, work, &mut one)?;
    let length = hi - lo;
    let done = match one.last() {
        None => length / period * period,
        Some(last) => {
            let count = (length - (last.end() - lo)) / period + 1; // periods that fit whole
            push_periods(out, one, period, count);
            count * period
        }
    };
    if done < length {
        intersect_cuts(f, g, lo + done, hi, work, out)?;
    }
    Ok(())
}

/// Intersection of the parts of two nodes inside `lo..hi`.
fn intersect_cuts(
    f: Node<'_>,
    g: Node<'_>,
    lo: u64,
    hi: u64,
    work: &mut Work,
    out: &mut Vec<Falls>,
) -> Result<(), Exhausted> {
    let mut cuts = (Vec::new(), Vec::new());
    cut_node(f, &(lo..hi), 0, &mut cuts.0);
    cut_node(g, &(lo..hi), 0, &mut cuts.1);
    let (a, b) = (FallsSet::trusted(cuts.0), FallsSet::trusted(cuts.1));
    intersect_sets(&a, 0, &b, 0, work, out)
}

/// `count` copies of `one`, `period` apart; no extra level where one block suffices.
pub(crate) fn push_periods(out: &mut Vec<Falls>, one: Vec<Falls>, period: u64, count: u64) {
    if count == 1 {
        out.extend(one);
        return;
    }
    if one.len() == 1 && one[0].count() == 1 {
        let single = &one[0];
        out.push(Falls::trusted(
            single.start(),
            single.len(),
            period,
            count,
            single.inner().cloned(),
        ));
        return;
    }
    let first = one[0].start();
    let inner = FallsSet::trusted(one).shifted_back(first);
    out.push(Falls::trusted(
        first,
        inner.end(),
        period,
        count,
        Some(inner),
    ));
}
