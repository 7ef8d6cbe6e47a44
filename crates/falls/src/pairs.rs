//! Which elements of two overlays meet.
//!
//! A plan between partitions of thousands of elements cannot intersect every element with every
//! other. Walking both overlays at once finds the pairs that have a byte in common: where both
//! repeat, one common period is walked; where one side is a single owner, the owners of the other
//! on that range are its partners. Cost: about the pairs found times the depth, bounded by a budget.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use crate::checked::lcm;
use crate::intersect::{Budget, Exhausted, Work};
use crate::overlay::{LabelledNode, Overlay, Region};

impl Overlay {
    /// Label pairs that share a byte when this overlay repeats every `period` bytes from
    /// `displacement` on and the other one likewise, ascending. Only bytes inside `window` count.
    ///
    /// `None` when the budget does not suffice.
    pub fn pairs(
        &self,
        placed: (u64, u64),
        other: &Overlay,
        other_placed: (u64, u64),
        window: Range<u64>,
        budget: Budget,
    ) -> Option<Vec<(usize, usize)>> {
        let lo = window.start.max(placed.0).max(other_placed.0);
        let mut found = HashSet::new();
        if lo < window.end {
            let a = unrolled(self, placed, window.end);
            let b = unrolled(other, other_placed, window.end);
            let mut walk = Walk {
                work: Work { left: budget.0 },
                found: &mut found,
            };
            walk.nodes(At(&a, 0), At(&b, 0), lo..window.end).ok()?;
        }
        let mut pairs: Vec<_> = found.into_iter().collect();
        pairs.sort_unstable();
        Some(pairs)
    }
}

fn unrolled(overlay: &Overlay, (displacement, period): (u64, u64), end: u64) -> LabelledNode {
    let count = (end - 1 - displacement) / period + 1;
    LabelledNode {
        start: displacement,
        len: period,
        stride: period,
        count,
        region: Region::Shared(overlay.clone()),
    }
}

/// A node moved by a base.
#[derive(Clone, Copy)]
struct At<'a>(&'a LabelledNode, u64);

impl At<'_> {
    fn start(self) -> u64 {
        self.0.start + self.1
    }

    /// Start of the block whose stride holds the whole window, if one does.
    fn single_block(self, window: &Range<u64>) -> Option<u64> {
        let (k, z) = self.block_at(window.start);
        let single = window.end - window.start <= self.0.stride - z || self.0.count == 1;
        single.then(|| self.start() + k * self.0.stride)
    }

    fn block_at(self, x: u64) -> (u64, u64) {
        let y = x - self.start();
        (y / self.0.stride, y % self.0.stride)
    }
}

struct Walk<'a> {
    work: Work,
    found: &'a mut HashSet<(usize, usize)>,
}

impl Walk<'_> {
    /// Pairs of two nodes inside a window that lies in the span of both.
    fn nodes(&mut self, f: At<'_>, g: At<'_>, window: Range<u64>) -> Result<(), Exhausted> {
        if window.start >= window.end {
            return Ok(());
        }
        self.work.spend(1)?;
        if let Some(block) = f.single_block(&window) {
            return self.descend(f, block, g, &window, Order::Kept);
        }
        if let Some(block) = g.single_block(&window) {
            return self.descend(g, block, f, &window, Order::Swapped);
        }
        // Both repeat with the common stride: one period has all pairs.
        let len = window.end - window.start;
        let end = match lcm(f.0.stride, g.0.stride) {
            Some(t) if t < len => window.start + t,
            _ => window.end,
        };
        // Open the longer stride block by block; inside each of its blocks it is single.
        let long = if f.0.stride >= g.0.stride { f } else { g };
        let mut at = window.start;
        while at < end {
            let next = (at + long.0.stride - long.block_at(at).1).min(end);
            self.nodes(f, g, at..next)?;
            at = next;
        }
        Ok(())
    }

    /// One block of `single`, found by its start, against all of `other` inside the window.
    fn descend(
        &mut self,
        single: At<'_>,
        block: u64,
        other: At<'_>,
        window: &Range<u64>,
        order: Order,
    ) -> Result<(), Exhausted> {
        let end = window.end.min(block + single.0.len);
        if window.start >= end {
            return Ok(()); // in the gap behind the block
        }
        match Content::of(single.0) {
            Content::Owner(label) => {
                let mut partners = Vec::new();
                let from = other.start();
                other
                    .0
                    .collect_owners_in_span(window.start - from..end - from, &mut partners);
                self.work.spend(partners.len() as u64)?;
                self.found.extend(partners.into_iter().map(|p| match order {
                    Order::Kept => (label, p),
                    Order::Swapped => (p, label),
                }));
            }
            Content::Nodes(nodes) => {
                let first = nodes.partition_point(|n| n.end() + block <= window.start);
                for node in &nodes[first..] {
                    let child = At(node, block);
                    if child.start() >= end {
                        break;
                    }
                    let lo = window.start.max(child.start());
                    let inside = lo..end.min(node.end() + block);
                    match order {
                        Order::Kept => self.nodes(child, other, inside)?,
                        Order::Swapped => self.nodes(other, child, inside)?,
                    }
                }
            }
        }
        Ok(())
    }
}

/// Which side of a pair the node that is descended into stands on.
#[derive(Clone, Copy)]
enum Order {
    Kept,
    Swapped,
}

/// What a block holds: one owner throughout, or nodes to descend into.
enum Content<'a> {
    Owner(usize),
    Nodes(Cow<'a, [LabelledNode]>),
}

impl<'a> Content<'a> {
    fn of(node: &'a LabelledNode) -> Self {
        match &node.region {
            Region::Owned { label, inner: None } => Content::Owner(*label),
            Region::Owned {
                label,
                inner: Some(set),
            } => Content::Nodes(
                set.nodes()
                    .map(|n| LabelledNode::owned(*label, n))
                    .collect(),
            ),
            Region::Shared(below) => Content::Nodes(below.nodes().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FallsSet, Meeting, Periodic};

    fn columns(rows: u64, width: u64, parts: u64) -> Vec<FallsSet> {
        let each = width / parts;
        let part = |p| format!("{{({},{},{width},{rows})}}", p * each, (p + 1) * each - 1);
        (0..parts).map(|p| part(p).parse().unwrap()).collect()
    }

    fn stripes(block: u64, parts: u64, period: u64) -> Vec<FallsSet> {
        let count = period / (block * parts);
        let part = |p| {
            let start = p * block;
            format!(
                "{{({start},{},{},{count})}}",
                start + block - 1,
                block * parts
            )
        };
        (0..parts).map(|p| part(p).parse().unwrap()).collect()
    }

    #[test]
    fn pairs_agree_with_meeting_every_pair() {
        let period = 24 * 24;
        let layouts = [
            columns(24, 24, 4),
            columns(24, 24, 3),
            stripes(16, 3, period),
            stripes(9, 4, period),
            stripes(144, 4, period),
        ];
        for a in &layouts {
            for b in &layouts {
                for (da, db) in [(0, 0), (3, 0), (5, 17)] {
                    let placed =
                        |d: u64, set: &FallsSet| Periodic::new(d, period, set.clone()).unwrap();
                    let mut expected = Vec::new();
                    for (i, x) in a.iter().enumerate() {
                        for (j, y) in b.iter().enumerate() {
                            if !Meeting::new(&placed(da, x), &placed(db, y)).is_empty() {
                                expected.push((i, j));
                            }
                        }
                    }
                    let (oa, ob) = (Overlay::new(a).unwrap(), Overlay::new(b).unwrap());
                    let window = 0..40 * period;
                    let found = oa
                        .pairs((da, period), &ob, (db, period), window, Budget::DEFAULT)
                        .unwrap();
                    assert_eq!(found, expected);
                }
            }
        }
    }

    #[test]
    fn one_set_with_holes_meets_only_its_partners() {
        let view: FallsSet = "{(0,15,64,4,{(0,0,4,4)})}".parse().unwrap();
        let stripes = stripes(4, 64, 256);
        let a = Overlay::new(std::slice::from_ref(&view)).unwrap();
        let b = Overlay::new(&stripes).unwrap();
        let found = a
            .pairs((0, 256), &b, (0, 256), 0..256, Budget::DEFAULT)
            .unwrap();
        let expected: Vec<(usize, usize)> =
            (0..64).filter(|s| s % 16 < 4).map(|s| (0, s)).collect();
        assert_eq!(found, expected);
    }
}
