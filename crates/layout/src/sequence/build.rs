//! Building sequences: every constructor comes through [`Builder`], which keeps the invariants.
//!
//! While nodes are pushed, touching blocks join and a node that continues the progression of the one
//! before extends it. At the end a few passes fold groups of nodes that recur at a constant distance,
//! as the compression of sets does, but in any direction. What stays irregular and long is kept as a
//! list of blocks.
//!
//! ```text
//! pushed   0(4) 16(4) 32(4)   2(4) 18(4) 34(4)      -> 0 + 2*2 [ 0 + 3*16 (4) ]
//! ```
//!
//! Sharing is kept: a body used by many nodes is one allocation, however often it occurs. Only bodies
//! of up to [`SPLICE`] nodes are copied into the list around them.

use std::ops::Range;
use std::sync::Arc;

use falls::FallsSet;

use super::{Body, Data, MAX_DEPTH, Node, NodeBody, Part, Parts, Sequence, overflow, too_deep};
use crate::error::LayoutError;

const SPLICE: usize = 4;
/// Bodies of this many nodes are still copied when they are nested deeply, so that a list that grows
/// at its end step by step does not run into the limit.
const SPLICE_DEEP: usize = 4096;
const MAX_GROUP: usize = 16;
const MAX_PASSES: usize = 8;
/// From this many nodes on, a list of plain blocks is kept as a compact list.
const COMPACT_FROM: usize = 32;

/// A sequence made ready to be repeated: its lowest byte, and the program relative to it.
pub(crate) struct Unit {
    low: i64,
    seq: Sequence,
}

impl Unit {
    pub(crate) fn of(seq: &Sequence) -> Result<Self, LayoutError> {
        let low = seq.0.low;
        let down = low.checked_neg().ok_or_else(overflow)?;
        Ok(Unit {
            low,
            seq: seq.shift(down)?,
        })
    }
}

/// Collects nodes in stream order.
pub(crate) struct Builder {
    parts: Vec<Part>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Builder { parts: Vec::new() }
    }

    /// Appends one block; nothing when it is empty.
    pub(crate) fn push_bytes(&mut self, start: i64, len: u64) -> Result<(), LayoutError> {
        if len == 0 {
            return Ok(());
        }
        self.push_part(Part {
            start,
            count: 1,
            stride: 0,
            body: Body::Bytes(len),
        })
    }

    /// Appends `count` copies of `unit`, its offset 0 at `start + i * stride`.
    pub(crate) fn push_repeat(
        &mut self,
        unit: &Unit,
        start: i64,
        count: u64,
        stride: i64,
    ) -> Result<(), LayoutError> {
        if count == 0 || unit.seq.is_empty() {
            return Ok(());
        }
        let start = start.checked_add(unit.low).ok_or_else(overflow)?;
        let deep = unit.seq.depth() > MAX_DEPTH / 2 && unit.seq.len() <= SPLICE_DEEP;
        if count == 1 && (unit.seq.len() <= SPLICE || deep) {
            for node in unit.seq.nodes() {
                self.push_part(Part {
                    start: start.checked_add(node.start).ok_or_else(overflow)?,
                    ..node.owned()
                })?;
            }
            return Ok(());
        }
        let part = repeat_part(&unit.seq, start, count, stride)?;
        self.push_part(part)
    }

    /// Appends a node whose body has its lowest byte at 0.
    pub(super) fn push_part(&mut self, mut part: Part) -> Result<(), LayoutError> {
        if let Body::Bytes(len) = part.body
            && part.count > 1
            && i64::try_from(len) == Ok(part.stride)
        {
            part.body = Body::Bytes(len.checked_mul(part.count).ok_or_else(overflow)?);
            part.count = 1;
        }
        hull_of(&part)?;
        if let Some(last) = self.parts.last_mut()
            && extend(last, &part)
        {
            hull_of(last)?;
            return Ok(());
        }
        self.parts.push(part);
        Ok(())
    }

    /// The sequence of what was pushed, regular stretches folded.
    pub(crate) fn finish(self) -> Result<Sequence, LayoutError> {
        let list = self.parts;
        if list.len() < 2 {
            return sequence_of(list);
        }
        let plain = is_plain(&list);
        let mut folded: Option<Vec<Part>> = None;
        for _ in 0..MAX_PASSES {
            let items = folded.as_deref().unwrap_or(&list);
            match fold(items)? {
                Some(next) => folded = Some(next),
                None => break,
            }
        }
        let Some(folded) = folded else {
            return sequence_of(list);
        };
        let tree = sequence_of(folded)?;
        // A node takes about three times the memory of a list entry.
        if plain && list.len() >= COMPACT_FROM && tree.0.nodes * 3 > list.len() as u64 {
            return sequence_of(list);
        }
        Ok(tree)
    }

    /// The sequence of what was pushed, without looking for regularity again.
    pub(super) fn finish_as_is(self) -> Result<Sequence, LayoutError> {
        sequence_of(self.parts)
    }
}

/// `count > 0` copies of `seq` (lowest byte 0, not empty) as one node, levels fused where possible.
fn repeat_part(seq: &Sequence, start: i64, count: u64, stride: i64) -> Result<Part, LayoutError> {
    let nested = |seq: &Sequence| Part {
        start,
        count,
        stride,
        body: Body::Nested(seq.clone()),
    };
    if seq.len() != 1 {
        return Ok(nested(seq));
    }
    let node = seq.node(0);
    let first = start.checked_add(node.start).ok_or_else(overflow)?;
    let fused = i128::from(node.stride) * i128::from(node.count) == i128::from(stride);
    if node.count == 1 || count == 1 || fused {
        let (stride, inner_count) = if node.count == 1 {
            (stride, 1)
        } else {
            (node.stride, node.count)
        };
        return Ok(Part {
            start: first,
            count: count.checked_mul(inner_count).ok_or_else(overflow)?,
            stride,
            ..node.owned()
        });
    }
    Ok(nested(seq))
}

/// Joins `next` to `last` when both are one block, or one progression of equal bodies.
fn extend(last: &mut Part, next: &Part) -> bool {
    if let (1, 1, Body::Bytes(a), Body::Bytes(b)) =
        (last.count, next.count, &mut last.body, &next.body)
    {
        let touches = i128::from(last.start) + i128::from(*a) == i128::from(next.start);
        if let (true, Some(joined)) = (touches, a.checked_add(*b)) {
            *a = joined;
            return true;
        }
        return false;
    }
    let distance = i128::from(next.start) - i128::from(last.start);
    let grown = |part: &Part| i128::from(part.stride) * i128::from(part.count);
    let continues = match (last.count, next.count) {
        (1, 1) => return false,
        (1, _) => distance == i128::from(next.stride),
        (_, 1) => distance == grown(last),
        _ => last.stride == next.stride && distance == grown(last),
    };
    if !continues || !last.body.same(&next.body) {
        return false;
    }
    let Some(count) = last.count.checked_add(next.count) else {
        return false;
    };
    if last.count == 1 {
        last.stride = next.stride;
    }
    last.count = count;
    true
}

fn is_plain(parts: &[Part]) -> bool {
    parts
        .iter()
        .all(|p| p.count == 1 && matches!(p.body, Body::Bytes(_)))
}

/// One pass: at each place take the group whose repetition removes most nodes. `None` when there is
/// nothing to fold.
fn fold(items: &[Part]) -> Result<Option<Vec<Part>>, LayoutError> {
    let mut out = Builder::new();
    let (mut i, mut changed) = (0, false);
    while i < items.len() {
        let best = (1..=MAX_GROUP.min((items.len() - i) / 2))
            .map(|group| (group, repeats(items, i, group)))
            .filter(|&(group, times)| {
                let single = items[i].count == 1 && matches!(items[i].body, Body::Bytes(_));
                times > 1 && (group > 1 || times > 2 || !single)
            })
            .max_by_key(|&(group, times)| ((times - 1) * group, std::cmp::Reverse(group)));
        let Some((group, times)) = best else {
            out.push_part(items[i].clone())?;
            i += 1;
            continue;
        };
        let one = sequence_of(items[i..i + group].to_vec())?;
        let stride = i64::try_from(distance(items, i, group)).map_err(|_| overflow())?;
        let unit = Unit::of(&one)?;
        out.push_part(repeat_part(&unit.seq, unit.low, times as u64, stride)?)?;
        changed = true;
        i += group * times;
    }
    // Joins made on the way shorten the list too.
    Ok((changed || out.parts.len() < items.len()).then_some(out.parts))
}

fn distance(items: &[Part], i: usize, group: usize) -> i128 {
    i128::from(items[i + group].start) - i128::from(items[i].start)
}

/// How often the `group` nodes at `i` occur in a row, at a constant distance.
fn repeats(items: &[Part], i: usize, group: usize) -> usize {
    let distance = distance(items, i, group);
    let mut times = 1;
    while i + (times + 1) * group <= items.len() {
        let at = i + times * group;
        let same = (0..group).all(|g| {
            let (a, b) = (&items[at + g - group], &items[at + g]);
            i128::from(b.start) - i128::from(a.start) == distance && a.same_shape(b)
        });
        if !same {
            break;
        }
        times += 1;
    }
    times
}

/// Lowest byte and one past the highest of a node; refused when they or their distance exceed `i64`,
/// or when the node visits 2^63 bytes.
fn hull_of(part: &Part) -> Result<(i64, i64), LayoutError> {
    let node = part.node();
    let far = i128::from(part.count - 1) * i128::from(part.stride);
    let far = if part.count == 1 { 0 } else { far };
    let low = i128::from(part.start) + far.min(0);
    let high = i128::from(part.start) + far.max(0) + i128::from(node.span());
    let visited = u128::from(node.unit()) * u128::from(part.count);
    i64::try_from(visited).map_err(|_| overflow())?;
    i64::try_from(high - low).map_err(|_| overflow())?;
    match (i64::try_from(low), i64::try_from(high)) {
        (Ok(low), Ok(high)) => Ok((low, high)),
        _ => Err(overflow()),
    }
}

/// A sequence from nodes that went through [`Builder::push_part`].
fn sequence_of(parts: Vec<Part>) -> Result<Sequence, LayoutError> {
    if parts.is_empty() {
        return Ok(Sequence::empty());
    }
    if let [part] = parts.as_slice() {
        // One body, once, where it stands: the body is the sequence.
        if let (0, 1, Body::Nested(inner)) = (part.start, part.count, &part.body) {
            return Ok(inner.clone());
        }
    }
    let mut before = Vec::with_capacity(parts.len() + 1);
    let mut data = Data {
        parts: Parts::Nodes(Box::new([])),
        before: Box::new([]),
        low: i64::MAX,
        high: i64::MIN,
        ascending: true,
        depth: 0,
        nodes: 0,
        pieces: 0,
    };
    let mut total = 0u64;
    before.push(0);
    for part in &parts {
        let node = part.node();
        let (low, high) = hull_of(part)?;
        let forward = part.count == 1 || i128::from(part.stride) >= i128::from(node.span());
        let (inner_ascending, depth, nodes, pieces) = match node.body {
            NodeBody::Bytes(_) => (true, 0, 0, 1),
            NodeBody::Nested(inner) => {
                let d = &inner.0;
                (d.ascending, d.depth, d.nodes, d.pieces)
            }
        };
        // `high` is where the nodes before end, as long as they ascend.
        data.ascending &= inner_ascending && forward && (before.len() == 1 || low >= data.high);
        data.low = data.low.min(low);
        data.high = data.high.max(high);
        data.depth = data.depth.max(1 + depth);
        data.nodes = data.nodes.saturating_add(1).saturating_add(nodes);
        data.pieces = data
            .pieces
            .saturating_add(pieces.saturating_mul(part.count));
        total = total
            .checked_add(node.size())
            .filter(|&t| i64::try_from(t).is_ok())
            .ok_or_else(overflow)?;
        before.push(total);
    }
    data.high.checked_sub(data.low).ok_or_else(overflow)?;
    if data.depth > MAX_DEPTH {
        return Err(too_deep());
    }
    data.before = before.into();
    data.parts = if parts.len() >= COMPACT_FROM && is_plain(&parts) {
        Parts::Blocks(parts.iter().map(|p| p.start).collect())
    } else {
        Parts::Nodes(parts.into())
    };
    Ok(Sequence(Arc::new(data)))
}

/// A set, offset 0 at 0, as a sequence with one node for each node.
pub(super) fn of_set(set: &FallsSet) -> Result<Sequence, LayoutError> {
    let mut builder = Builder::new();
    for node in set.nodes() {
        let start = signed(node.start)?;
        let stride = signed(node.stride)?;
        match node.inner {
            None => builder.push_part(Part {
                start,
                count: node.count,
                stride,
                body: Body::Bytes(node.len),
            })?,
            Some(inner) => {
                let unit = Unit::of(&of_set(inner)?)?;
                builder.push_repeat(&unit, start, node.count, stride)?;
            }
        }
    }
    builder.finish_as_is()
}

fn signed(x: u64) -> Result<i64, LayoutError> {
    i64::try_from(x).map_err(|_| overflow())
}

/// Stream positions `range` of `seq`: at each level a head, a middle that keeps its body, a tail.
pub(super) fn slice(seq: &Sequence, range: Range<u64>) -> Sequence {
    let mut builder = Builder::new();
    // A part of a valid sequence breaks no limit: it visits fewer bytes at the same depth.
    let cut = slice_into(&mut builder, seq, 0, range).and_then(|()| builder.finish_as_is());
    debug_assert!(cut.is_ok());
    cut.unwrap_or_default()
}

fn slice_into(
    out: &mut Builder,
    seq: &Sequence,
    base: i64,
    range: Range<u64>,
) -> Result<(), LayoutError> {
    let (lo, hi) = (range.start, range.end.min(seq.size()));
    if lo >= hi {
        return Ok(());
    }
    let first = seq.0.before.partition_point(|&b| b <= lo) - 1;
    for i in first..seq.len() {
        let (from, to) = (seq.0.before[i], seq.0.before[i + 1]);
        if from >= hi {
            break;
        }
        slice_node(
            out,
            &seq.node(i),
            base,
            lo.max(from) - from..hi.min(to) - from,
        )?;
    }
    Ok(())
}

/// Stream positions `range`, not empty and inside the node.
fn slice_node(
    out: &mut Builder,
    node: &Node<'_>,
    base: i64,
    range: Range<u64>,
) -> Result<(), LayoutError> {
    let unit = node.unit();
    let (mut first, head) = (range.start / unit, range.start % unit);
    let (last, tail) = (range.end / unit, range.end % unit);
    let mut piece = |i: u64, part: Range<u64>, count: u64| -> Result<(), LayoutError> {
        let start = base.checked_add(node.at(i)).ok_or_else(overflow)?;
        match node.body {
            _ if part == (0..unit) => out.push_part(Part {
                start,
                count,
                ..node.owned()
            }),
            NodeBody::Bytes(_) => {
                let start = start
                    .checked_add_unsigned(part.start)
                    .ok_or_else(overflow)?;
                out.push_bytes(start, part.end - part.start)
            }
            NodeBody::Nested(inner) => slice_into(out, inner, start, part),
        }
    };
    if head > 0 {
        let end = if last > first { unit } else { tail };
        piece(first, head..end, 1)?;
        first += 1;
    }
    if last > first {
        piece(first, 0..unit, last - first)?;
        first = last;
    }
    if tail > 0 && first == last {
        piece(last, 0..tail, 1)?;
    }
    Ok(())
}
