//! How many maximal segments a set has, and how many blocks of memory it touches, without listing
//! either.
//!
//! Both walk the tree once, O(nodes). They are what cost estimates are made of: a copy pays per
//! run, and memory pays per block of bytes it has to bring near.

use std::ops::Range;

use crate::set::{FallsSet, Node};

impl FallsSet {
    /// Number of maximal segments.
    ///
    /// ```
    /// use falls::FallsSet;
    /// let touching: FallsSet = "{(0,7,8,4,{(0,1,-,1),(6,7,-,1)})}".parse().unwrap();
    /// assert_eq!(touching.run_count(), 5);            // 0-1, 6-9, 14-17, 22-25, 30-31
    /// ```
    pub fn run_count(&self) -> u64 {
        runs(self).map_or(0, |(count, _)| count)
    }

    /// Expected number of aligned blocks of `granule` bytes that hold a byte of the set, when the
    /// set lies at a random alignment. A block that several runs share counts once.
    pub fn granules_touched(&self, granule: u64) -> f64 {
        let g = granule.max(1) as f64;
        granules(self, g).map_or(0.0, |(count, _)| count)
    }
}

/// Runs and hull of a set, `None` when it is empty.
fn runs(set: &FallsSet) -> Option<(u64, Range<u64>)> {
    fold(set, node_runs, |a, b, gap| a + b - u64::from(gap == 0))
}

fn node_runs(node: Node<'_>) -> (u64, Range<u64>) {
    let (one, hull) = node.inner.and_then(runs).unwrap_or((1, 0..node.len));
    let gap = node.stride - (hull.end - hull.start);
    let joins = if gap == 0 { node.count - 1 } else { 0 };
    (node.count * one - joins, spread(node, hull))
}

/// Granules and hull of a set.
fn granules(set: &FallsSet, g: f64) -> Option<(f64, Range<u64>)> {
    fold(
        set,
        |n| node_granules(n, g),
        |a, b, gap| a + b - shared(gap, g),
    )
}

fn node_granules(node: Node<'_>, g: f64) -> (f64, Range<u64>) {
    let leaf = (1.0 + (node.len as f64 - 1.0) / g, 0..node.len);
    let (one, hull) = node.inner.and_then(|set| granules(set, g)).unwrap_or(leaf);
    let gap = node.stride - (hull.end - hull.start);
    let total = node.count as f64 * one - (node.count - 1) as f64 * shared(gap, g);
    (total, spread(node, hull))
}

/// Chance that the byte before a gap and the byte behind it lie in one granule.
fn shared(gap: u64, g: f64) -> f64 {
    (1.0 - (gap as f64 + 1.0) / g).max(0.0)
}

/// Hull of all blocks from the hull inside the first.
fn spread(node: Node<'_>, hull: Range<u64>) -> Range<u64> {
    node.start + hull.start..node.start + (node.count - 1) * node.stride + hull.end
}

fn fold<T>(
    set: &FallsSet,
    of: impl Fn(Node<'_>) -> (T, Range<u64>),
    join: impl Fn(T, T, u64) -> T,
) -> Option<(T, Range<u64>)> {
    let mut total: Option<(T, Range<u64>)> = None;
    for node in set.nodes() {
        let (count, hull) = of(node);
        total = Some(match total {
            None => (count, hull),
            Some((sum, before)) => {
                let gap = hull.start - before.end;
                (join(sum, count, gap), before.start..hull.end)
            }
        });
    }
    total
}
