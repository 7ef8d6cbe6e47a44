//! Many labelled sets laid over each other: who owns a byte, do two share one, is one left out?
//!
//! Elements of a partition interleave, so looking an owner up by asking each element takes time in
//! proportion to their number, and listing their pieces takes memory in proportion to the file. An
//! overlay merges all of them into one tree of labelled blocks. Where elements repeat with a common
//! period, one period is merged and repeated; so the tree has about as many nodes as the elements
//! together, and a lookup descends it in O(depth x log fan-out).
//!
//! ```text
//! element 0   aa..aa..aa..        one node, period 4:
//! element 1   ..bb..bb..bb          { 0..2 -> 0, 2..4 -> 1 }  x 3
//! ```
//!
//! The same merge finds the first byte that two elements share and the first that none owns, and
//! gives the union of sets that interleave or overlap.

use std::iter::Peekable;
use std::ops::Range;
use std::sync::Arc;
use std::vec::IntoIter;

use crate::checked::{MAX_OFFSET, lcm};
use crate::cut::cut_node;
use crate::intersect::{Exhausted, Work};
use crate::set::{Falls, FallsSet, Node};

/// What is wrong with sets that were to be disjoint or to cover a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Two sets own the same byte.
    Overlap {
        /// Label of the one.
        first: usize,
        /// Label of the other.
        second: usize,
        /// The first byte found in both.
        byte: u64,
    },
    /// No set owns this byte, the first such one.
    Gap {
        /// The byte.
        byte: u64,
    },
    /// A set reaches outside the range.
    Outside {
        /// Its label.
        element: usize,
        /// The first byte outside.
        byte: u64,
    },
    /// The sets have no common period that could be written down within the budget.
    TooComplex,
}

/// Labelled blocks in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlay {
    nodes: Arc<[LabelledNode]>,
}

/// `count` blocks, `stride` apart, all with the same content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledNode {
    /// Start of the first block, relative to the enclosing block.
    pub start: u64,
    /// Bytes spanned by one block.
    pub len: u64,
    /// Distance between block starts.
    pub stride: u64,
    /// Number of blocks.
    pub count: u64,
    /// Who owns what inside a block.
    pub region: Region,
}

/// The content of a labelled block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Region {
    /// One set owns the block, or the part of it that the inner set describes.
    Owned {
        /// Label of the set.
        label: usize,
        /// The part owned; `None` is the whole block.
        inner: Option<FallsSet>,
    },
    /// Several sets share the block.
    Shared(Overlay),
}

impl LabelledNode {
    pub(crate) fn end(&self) -> u64 {
        self.start + (self.count - 1) * self.stride + self.len
    }
}

#[derive(Clone)]
struct Item {
    label: usize,
    falls: Falls,
}

/// What to do when two sets share a byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    Refuse,
    Unite,
}

enum Stop {
    Exhausted,
    Overlap {
        first: usize,
        second: usize,
        byte: u64,
    },
}

impl From<Exhausted> for Stop {
    fn from(_: Exhausted) -> Self {
        Stop::Exhausted
    }
}

impl Overlay {
    /// Merges sets that must not share a byte; labels are their positions.
    pub fn new(sets: &[FallsSet]) -> Result<Self, Flaw> {
        let mut items = Vec::with_capacity(sets.iter().map(FallsSet::len).sum());
        for (label, set) in sets.iter().enumerate() {
            items.extend(set.nodes().map(|n| Item {
                label,
                falls: n.to_falls(),
            }));
        }
        let mut work = Work {
            left: steps_for(items.len()),
        };
        let mut out = Vec::new();
        match merge(items, Sharing::Refuse, &mut work, &mut out) {
            Ok(()) => Ok(Overlay { nodes: out.into() }),
            Err(Stop::Overlap {
                first,
                second,
                byte,
            }) => Err(Flaw::Overlap {
                first: first.min(second),
                second: first.max(second),
                byte,
            }),
            Err(Stop::Exhausted) => Err(Flaw::TooComplex),
        }
    }

    /// Blocks in ascending order.
    pub fn nodes(&self) -> &[LabelledNode] {
        &self.nodes
    }

    /// Label of the set that owns byte `x`.
    pub fn owner(&self, x: u64) -> Option<usize> {
        let (mut overlay, mut x) = (self, x);
        loop {
            let i = overlay
                .nodes
                .partition_point(|n| n.start <= x)
                .checked_sub(1)?;
            let node = &overlay.nodes[i];
            if x >= node.end() {
                return None;
            }
            let z = (x - node.start) % node.stride;
            if z >= node.len {
                return None;
            }
            match &node.region {
                Region::Owned { label, inner } => {
                    return inner
                        .as_ref()
                        .is_none_or(|set| set.contains(z))
                        .then_some(*label);
                }
                Region::Shared(below) => (overlay, x) = (below, z),
            }
        }
    }

    /// Labels of the sets that own a byte of `range`, ascending.
    ///
    /// Blocks that repeat are looked at once, so the cost is a descent per label found, not per
    /// piece.
    pub fn owners(&self, range: Range<u64>) -> Vec<usize> {
        let mut found = Vec::new();
        self.collect_owners(range, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    fn collect_owners(&self, range: Range<u64>, found: &mut Vec<usize>) {
        if range.start >= range.end {
            return;
        }
        let first = self
            .nodes
            .partition_point(|n| n.start <= range.start)
            .saturating_sub(1);
        for node in &self.nodes[first..] {
            if node.start >= range.end {
                break;
            }
            let lo = range.start.max(node.start) - node.start;
            let hi = range.end.min(node.end()).saturating_sub(node.start);
            if lo >= hi {
                continue;
            }
            node.collect_owners_in_span(lo..hi, found);
        }
    }

    /// The first byte of `0..period` that no set owns.
    pub fn first_gap(&self, period: u64) -> Option<u64> {
        let mut cursor = 0;
        for node in self.nodes.iter() {
            if node.start > cursor {
                return Some(cursor);
            }
            if let Some(gap) = node.first_gap() {
                return Some(node.start + gap);
            }
            cursor = node.end();
        }
        (cursor < period).then_some(cursor)
    }

    /// Number of nodes of the tree.
    pub fn node_count(&self) -> u64 {
        let inside = |n: &LabelledNode| match &n.region {
            Region::Owned { inner, .. } => inner.as_ref().map_or(0, FallsSet::node_count),
            Region::Shared(below) => below.node_count(),
        };
        self.nodes.iter().map(|n| 1 + inside(n)).sum()
    }

    /// All labels dropped: the union.
    fn into_set(self) -> FallsSet {
        let members = self.nodes.iter().map(|n| {
            let inner = match &n.region {
                Region::Owned { inner, .. } => inner.clone(),
                Region::Shared(below) => Some(below.clone().into_set()),
            };
            Falls::trusted(n.start, n.len, n.stride, n.count, inner)
        });
        FallsSet::trusted(members.collect()).simplify()
    }
}

impl LabelledNode {
    pub(crate) fn owned(label: usize, node: Node<'_>) -> Self {
        LabelledNode {
            start: node.start,
            len: node.len,
            stride: node.stride,
            count: node.count,
            region: Region::Owned {
                label,
                inner: node.inner.cloned(),
            },
        }
    }

    /// Labels found in `span`, relative to the start of the first block, over all blocks.
    pub(crate) fn collect_owners_in_span(&self, span: Range<u64>, found: &mut Vec<usize>) {
        let (ka, za) = (span.start / self.stride, span.start % self.stride);
        let (kb, zb) = (
            (span.end - 1) / self.stride,
            (span.end - 1) % self.stride + 1,
        );
        // A whole block in the range has every label; else at most an end of one block and a
        // beginning of the next.
        if kb > ka + 1 || (kb > ka && (za == 0 || zb >= self.len)) {
            self.collect_owners(0..self.len, found);
        } else if kb > ka {
            self.collect_owners(za..self.len, found);
            self.collect_owners(0..zb, found);
        } else {
            self.collect_owners(za..zb.min(self.len), found);
        }
    }

    /// Labels found in `range` of one block.
    fn collect_owners(&self, range: Range<u64>, found: &mut Vec<usize>) {
        match &self.region {
            Region::Shared(below) => below.collect_owners(range, found),
            Region::Owned { label, inner } => {
                let owns = match inner {
                    None => range.start < range.end,
                    Some(set) => set.rank(range.end) > set.rank(range.start),
                };
                if owns {
                    found.push(*label);
                }
            }
        }
    }

    /// First byte, relative to the start, that is not owned; `None` when all are.
    fn first_gap(&self) -> Option<u64> {
        let inside = match &self.region {
            Region::Owned { inner: None, .. } => None,
            Region::Owned {
                inner: Some(set), ..
            } => {
                let first = set.segments(0..self.len).next();
                match first {
                    Some(s) if s.start() == 0 => (s.len() < self.len).then(|| s.len()),
                    _ => Some(0),
                }
            }
            Region::Shared(below) => below.first_gap(self.len),
        };
        inside.or_else(|| (self.count > 1 && self.stride > self.len).then_some(self.len))
    }
}

/// The union of members in any order, interleaved or overlapping; `None` when they have no common
/// period short enough.
pub(crate) fn unite(members: Vec<Falls>) -> Option<FallsSet> {
    let items: Vec<Item> = members
        .into_iter()
        .map(|falls| Item { label: 0, falls })
        .collect();
    let mut work = Work {
        left: steps_for(items.len()),
    };
    let mut out = Vec::new();
    merge(items, Sharing::Unite, &mut work, &mut out).ok()?;
    Some(Overlay { nodes: out.into() }.into_set())
}

/// Steps granted to a merge: generous in the description, independent of the bytes described.
fn steps_for(items: usize) -> u64 {
    (1 << 20) + 64 * items as u64
}

/// What is still to be merged. Tasks lie on a stack, the leftmost on top, so that a long chain of
/// windows takes memory and not call depth.
enum Task {
    /// Items in any order.
    Items(Vec<Item>),
    /// One item that meets no other.
    Alone(Item),
    /// Items whose spans overlap, sorted by start; the largest end.
    Cluster(Vec<Item>, u64),
    /// Items inside one period, to be repeated.
    Body {
        items: Vec<Item>,
        period: u64,
        count: u64,
    },
    /// Repeating items from `cursor` to `end`, with single blocks among them.
    Around {
        repeating: Vec<Item>,
        single: Peekable<IntoIter<Item>>,
        cursor: u64,
        end: u64,
    },
    /// Single blocks that overlap, what of the others lies below them, and where they end.
    Under {
        group: Vec<Item>,
        others: Vec<Item>,
        end: u64,
    },
}

/// Merges items in any order into labelled blocks in ascending order.
///
/// Only bodies recurse, and each has at most half the period of the one around it.
fn merge(
    items: Vec<Item>,
    sharing: Sharing,
    work: &mut Work,
    out: &mut Vec<LabelledNode>,
) -> Result<(), Stop> {
    let mut tasks = vec![Task::Items(items)];
    let mut next = Vec::new();
    while let Some(task) = tasks.pop() {
        match task {
            Task::Items(items) => clusters(items, work, &mut next)?,
            Task::Alone(item) => out.push(LabelledNode::owned(item.label, item.falls.node())),
            Task::Cluster(items, hi) => merge_cluster(items, hi, sharing, work, &mut next, out)?,
            Task::Body {
                items,
                period,
                count,
            } => {
                let mut one = Vec::new();
                merge(items, sharing, work, &mut one)?;
                push_periods(out, one, period, count);
            }
            Task::Around {
                repeating,
                single,
                cursor,
                end,
            } => merge_around(repeating, single, cursor..end, work, &mut next)?,
            Task::Under { group, others, end } => {
                merge_under(group, others, end, sharing, &mut next, out)?;
            }
        }
        tasks.extend(next.drain(..).rev());
    }
    Ok(())
}

/// Groups items whose spans overlap.
fn clusters(mut items: Vec<Item>, work: &mut Work, next: &mut Vec<Task>) -> Result<(), Stop> {
    items.sort_by_key(|i| i.falls.start());
    let mut rest = items.into_iter().peekable();
    while let Some(first) = rest.next() {
        work.spend(1)?;
        let mut end = first.falls.end();
        let Some(second) = rest.next_if(|n| n.falls.start() < end) else {
            next.push(Task::Alone(first));
            continue;
        };
        end = end.max(second.falls.end());
        let mut cluster = vec![first, second];
        while let Some(more) = rest.next_if(|n| n.falls.start() < end) {
            end = end.max(more.falls.end());
            cluster.push(more);
        }
        next.push(Task::Cluster(cluster, end));
    }
    Ok(())
}

/// Merges items whose spans overlap, sorted by start; `hi` is the largest end.
fn merge_cluster(
    items: Vec<Item>,
    hi: u64,
    sharing: Sharing,
    work: &mut Work,
    next: &mut Vec<Task>,
    out: &mut Vec<LabelledNode>,
) -> Result<(), Stop> {
    work.spend(items.len() as u64)?;
    let lo = items[0].falls.start();
    if items.iter().all(|i| i.falls.node().is_segment()) {
        return merge_segments(items, hi, sharing, out);
    }
    if let Some((body, period, count)) = periodic_window(&items, lo, hi) {
        let middle = cut_items(&items, body..body + period);
        next.push(Task::Items(cut_items(&items, lo..body)));
        next.push(Task::Body {
            items: middle,
            period,
            count,
        });
        next.push(Task::Items(cut_items(&items, body + count * period..hi)));
        return Ok(());
    }
    let (repeating, single): (Vec<Item>, Vec<Item>) =
        items.into_iter().partition(|i| repeats(&i.falls));
    if repeating.is_empty() {
        next.push(Task::Items(opened(single)));
        return Ok(());
    }
    if !single.is_empty() {
        next.push(Task::Around {
            repeating,
            single: single.into_iter().peekable(),
            cursor: lo,
            end: hi,
        });
        return Ok(());
    }
    let from = repeating.iter().map(|i| reach(&i.falls).start).max();
    let to = repeating.iter().map(|i| reach(&i.falls).end).min();
    for edge in [from, to].into_iter().flatten() {
        if lo < edge && edge < hi {
            next.push(Task::Items(cut_items(&repeating, lo..edge)));
            next.push(Task::Items(cut_items(&repeating, edge..hi)));
            return Ok(());
        }
    }
    open_longest(repeating, work, next)
}

fn repeats(falls: &Falls) -> bool {
    falls.count() > 1 && !falls.node().is_segment()
}

/// Where an item repeats: from just behind its block before the first to its block after the last,
/// neither of which exists. Single blocks and segments have their span.
fn reach(falls: &Falls) -> Range<u64> {
    if !repeats(falls) {
        return falls.start()..falls.end();
    }
    let from = (falls.start() + falls.len()).saturating_sub(falls.stride());
    // Ends are below 2^63, and so are strides.
    from..falls.end() - falls.len() + falls.stride()
}

/// A window in which all items that reach into it repeat, at least twice: its start, the common
/// period and how often it fits. The longest stretches between the ends of reaches are tried.
///
/// Taking the long regular part out first matters: a cut goes through the blocks of other items,
/// and their remains would be cut again one period further, over and over.
fn periodic_window(items: &[Item], lo: u64, hi: u64) -> Option<(u64, u64, u64)> {
    const TRIED: usize = 4;
    let mut edges = vec![lo, hi];
    for item in items {
        let reach = reach(&item.falls);
        edges.extend([reach.start, reach.end].map(|x| x.clamp(lo, hi)));
    }
    edges.sort_unstable();
    edges.dedup();
    let mut stretches: Vec<(u64, u64)> = edges.windows(2).map(|w| (w[1] - w[0], w[0])).collect();
    stretches.sort_unstable_by(|a, b| b.cmp(a));
    stretches.into_iter().take(TRIED).find_map(|(len, start)| {
        let mut period = 1;
        for item in items {
            let reach = reach(&item.falls);
            if reach.start < start + len && start < reach.end {
                if !repeats(&item.falls) {
                    return None;
                }
                period = lcm(period, item.falls.stride()).filter(|p| len / p >= 2)?;
            }
        }
        (period > 1).then_some((start, period, len / period))
    })
}

fn merge_segments(
    items: Vec<Item>,
    hi: u64,
    sharing: Sharing,
    out: &mut Vec<LabelledNode>,
) -> Result<(), Stop> {
    if sharing == Sharing::Refuse {
        // Sorted by start and connected, so the second begins inside the first.
        return Err(Stop::Overlap {
            first: items[0].label,
            second: items[1].label,
            byte: items[1].falls.start(),
        });
    }
    let lo = items[0].falls.start();
    let united = Falls::trusted_segment(lo, hi - lo);
    out.push(LabelledNode::owned(items[0].label, united.node()));
    Ok(())
}

/// Replaces nested single blocks by their members.
fn opened(items: Vec<Item>) -> Vec<Item> {
    let mut out = Vec::with_capacity(items.len() * 2);
    for item in items {
        match item.falls.inner() {
            Some(inner) if item.falls.count() == 1 => {
                let start = item.falls.start();
                out.extend(inner.nodes().map(|n| Item {
                    label: item.label,
                    falls: n.shifted(start).to_falls(),
                }));
            }
            _ => out.push(item),
        }
    }
    out
}

/// Repeating items with single blocks among them: split where the single blocks begin and end, one
/// group of them at a time.
fn merge_around(
    repeating: Vec<Item>,
    mut single: Peekable<IntoIter<Item>>,
    window: Range<u64>,
    work: &mut Work,
    next: &mut Vec<Task>,
) -> Result<(), Stop> {
    let Some(first) = single.next() else {
        next.push(Task::Items(cut_items(&repeating, window)));
        return Ok(());
    };
    let (start, mut end) = (first.falls.start(), first.falls.end());
    let mut group = vec![first];
    while let Some(more) = single.next_if(|n| n.falls.start() < end) {
        end = end.max(more.falls.end());
        group.push(more);
    }
    work.spend(repeating.len() as u64)?;
    next.push(Task::Items(cut_items(&repeating, window.start..start)));
    next.push(Task::Under {
        group,
        others: cut_items(&repeating, start..end),
        end,
    });
    next.push(Task::Around {
        repeating,
        single,
        cursor: end,
        end: window.end,
    });
    Ok(())
}

/// A group of single blocks that spans a window, and what of the others lies in that window.
fn merge_under(
    group: Vec<Item>,
    others: Vec<Item>,
    end: u64,
    sharing: Sharing,
    next: &mut Vec<Task>,
    out: &mut Vec<LabelledNode>,
) -> Result<(), Stop> {
    if others.is_empty() {
        next.push(Task::Items(group));
        return Ok(());
    }
    if group.iter().all(|i| i.falls.node().is_segment()) {
        let first = others
            .iter()
            .min_by_key(|i| first_byte(&i.falls))
            .expect("not empty");
        let byte = first_byte(&first.falls);
        // The group may overlap itself, but only from the start of its second segment on.
        if sharing == Sharing::Unite || group.get(1).is_some_and(|g| g.falls.start() <= byte) {
            return merge_segments(group, end, sharing, out);
        }
        return Err(Stop::Overlap {
            first: group[0].label,
            second: first.label,
            byte,
        });
    }
    let mut items = opened(group);
    items.extend(others);
    next.push(Task::Items(items));
    Ok(())
}

fn first_byte(falls: &Falls) -> u64 {
    falls.node().select(0)
}

/// No common period fits: open the item with the longest stride block by block.
fn open_longest(mut items: Vec<Item>, work: &mut Work, next: &mut Vec<Task>) -> Result<(), Stop> {
    let longest = (0..items.len())
        .max_by_key(|&i| items[i].falls.stride())
        .expect("not empty");
    let item = items.swap_remove(longest);
    work.spend(item.falls.count())?;
    let node = item.falls.node();
    items.extend((0..node.count).map(|k| Item {
        label: item.label,
        falls: node.block(k).to_falls(),
    }));
    next.push(Task::Items(items));
    Ok(())
}

fn cut_items(items: &[Item], range: Range<u64>) -> Vec<Item> {
    let mut out = Vec::new();
    if range.start >= range.end {
        return out;
    }
    let mut parts = Vec::new();
    for item in items {
        cut_node(item.falls.node(), &range, 0, &mut parts);
        out.extend(parts.drain(..).map(|falls| Item {
            label: item.label,
            falls,
        }));
    }
    out
}

/// `count` copies of the blocks of one period.
fn push_periods(out: &mut Vec<LabelledNode>, mut one: Vec<LabelledNode>, period: u64, count: u64) {
    if one.len() == 1 && one[0].count == 1 {
        let mut node = one.swap_remove(0);
        (node.stride, node.count) = (period, count);
        out.push(node);
        return;
    }
    let (Some(first), Some(last)) = (one.first(), one.last()) else {
        return;
    };
    let (start, end) = (first.start, last.end());
    debug_assert!(end <= MAX_OFFSET);
    for node in &mut one {
        node.start -= start;
    }
    out.push(LabelledNode {
        start,
        len: end - start,
        stride: period,
        count,
        region: Region::Shared(Overlay { nodes: one.into() }),
    });
}
