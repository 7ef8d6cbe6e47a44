//! A move of a file from one layout to another, as changes of its layout state.
//!
//! ```text
//!  begun      first  |lane 1     |lane 2     |               second             |E0 .....
//!  advanced   first      |lane 1 |     |lane 2|              second |##|    |###|  |E0 .....
//!  cancelled  first  |##|    |###|           |E0 ..|         second     |   |   |      |E1 ...
//!  finished   one piece
//! ```
//!
//! The first piece governs what has still to move, one range per lane; its start is how far the lane has
//! come. The second piece governs all the rest, the open end included. So the state alone says how to go on
//! after a crash, and a server that has one state and knows what moved has the next one.
//!
//! Invariants
//! - The ranges of both pieces are disjoint and cover everything from 0 to `u64::MAX`.
//! - Each change raises the step by one and moves bytes from the first piece to the second only; except
//!   [`cancel`], which changes their roles and gives new bytes to the piece that is now the second.
//! - The first piece has at most [`MOST_LANES`] ranges, and one more while it moves back.
//!
//! Left to others: when, who copies, what is durable.

pub use crate::crash::crash_point;
use std::ops::Range;

use wire::{LayoutState, Piece, Place};

/// Parts of a file that move at once.
pub const MOST_LANES: usize = 16;

/// Ascending, disjoint ranges without empty ones; those that touch become one.
pub fn normal(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|r| !r.is_empty());
    ranges.sort_unstable_by_key(|r| r.start);
    let mut out: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

/// What lies in both of two lists of ascending, disjoint ranges. Ranges that touch stay apart.
pub fn meeting(a: &[Range<u64>], b: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let both = x.start.max(y.start)..x.end.min(y.end);
        if !both.is_empty() {
            out.push(both);
        }
        if x.end < y.end {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

/// Whether two lists of ascending, disjoint ranges have a byte in common.
pub fn meets(a: &[Range<u64>], b: &[Range<u64>]) -> bool {
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if x.start < y.end && y.start < x.end {
            return true;
        }
        if x.end <= y.end {
            i += 1;
        } else {
            j += 1;
        }
    }
    false
}

/// What of `a` is not in `b`; both ascending and disjoint. Ranges of `a` that touch stay apart.
pub fn without(a: &[Range<u64>], b: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut out = Vec::new();
    for range in a {
        let mut start = range.start;
        for cut in b
            .iter()
            .filter(|c| c.end > range.start && c.start < range.end)
        {
            if cut.start > start {
                out.push(start..cut.start);
            }
            start = start.max(cut.end);
        }
        if start < range.end {
            out.push(start..range.end);
        }
    }
    out
}

fn bytes(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|r| r.end - r.start).sum()
}

/// Cuts `0..end` into lanes, at multiples of `align` where it is long enough.
pub fn lanes(end: u64, count: usize, align: u64) -> Vec<Range<u64>> {
    let count = count.clamp(1, MOST_LANES) as u64;
    let align = align.max(1);
    let step = (end.div_ceil(count)).max(1);
    let step = step.checked_next_multiple_of(align).unwrap_or(step);
    let mut out = Vec::new();
    let mut start = 0;
    while start < end {
        let next = start.saturating_add(step).min(end);
        out.push(start..next);
        start = next;
    }
    out
}

/// Begins a move of the bytes of `lanes`; everything else belongs to `target` from now on. `None` if one is under way.
pub fn begin(state: &LayoutState, target: Piece, lanes: Vec<Range<u64>>) -> Option<LayoutState> {
    let [source] = &state.pieces[..] else {
        return None;
    };
    let rest = without(&whole(), &lanes);
    let source = Piece {
        ranges: lanes,
        ..source.clone()
    };
    let target = Piece {
        ranges: rest,
        ..target
    };
    Some(LayoutState {
        owner: state.owner,
        step: state.step + 1,
        pieces: vec![source, target],
    })
}

fn whole() -> Vec<Range<u64>> {
    std::iter::once(0..u64::MAX).collect()
}

/// These bytes have moved. `None` if not all of them were in the first piece.
pub fn advance(state: &LayoutState, moved: &[Range<u64>]) -> Option<LayoutState> {
    let [source, target] = &state.pieces[..] else {
        return None;
    };
    let moved = normal(moved.to_vec());
    if bytes(&meeting(&moved, &source.ranges)) != bytes(&moved) {
        return None;
    }
    let (mut source, mut target) = (source.clone(), target.clone());
    source.ranges = without(&source.ranges, &moved);
    target.ranges.extend(moved);
    target.ranges = normal(target.ranges);
    Some(LayoutState {
        owner: state.owner,
        step: state.step + 1,
        pieces: vec![source, target],
    })
}

/// The file was cut to `to` bytes: what is behind need not move any more. `None` if that changes nothing.
pub fn cut(state: &LayoutState, to: u64) -> Option<LayoutState> {
    let [source, _] = &state.pieces[..] else {
        return None;
    };
    let behind: Vec<Range<u64>> = meeting(&source.ranges, std::slice::from_ref(&(to..u64::MAX)));
    if behind.is_empty() {
        return None;
    }
    advance(state, &behind)
}

/// Everything below `end` that has moved moves back; bytes from `end` on belong to the piece it came from.
/// `None` if nothing moves, or it moves back already.
pub fn cancel(state: &LayoutState, end: u64) -> Option<LayoutState> {
    let [source, target] = &state.pieces[..] else {
        return None;
    };
    if is_cancelled(state) {
        return None;
    }
    let (mut source, mut target) = (source.clone(), target.clone());
    let below: Vec<Range<u64>> = std::iter::once(0..end).filter(|r| !r.is_empty()).collect();
    target.ranges = meeting(&target.ranges, &below);
    source.ranges = without(&whole(), &target.ranges);
    Some(LayoutState {
        owner: state.owner,
        step: state.step + 1,
        pieces: vec![target, source],
    })
}

/// Places where a metadata manager that moves files can be killed by a test.
pub const COORDINATOR_POINTS: &[&str] = &[
    "coordinator_after_start",
    "coordinator_after_fence",
    "coordinator_after_pull",
    "coordinator_after_frontier",
    "coordinator_after_unfence",
    "coordinator_before_commit",
    "coordinator_after_commit",
    "coordinator_in_cancel",
];

/// Places where an I/O server that takes part in a move can be killed by a test.
pub const SERVER_POINTS: &[&str] = &[
    "server_before_fence",
    "server_after_fence",
    "server_during_pull",
    "server_after_pull",
    "server_before_free",
];

/// Places where a client that uses a file which moves can be killed by a test.
pub const CLIENT_POINTS: &[&str] = &[
    "client_in_copy",
    "client_in_write",
    "client_in_append",
    "client_in_sieve",
    "client_after_lock",
    "client_after_relayout",
];

/// Whether a move is under way, and back.
pub fn is_cancelled(state: &LayoutState) -> bool {
    match &state.pieces[..] {
        [source, target] => target.generation < source.generation,
        _ => false,
    }
}

/// All bytes have moved: one piece is left. Its owner is the one it had if that holds a part of it: a server that
/// owns a file holds a part of it, so that no server that lost its last byte of a file can take the file with
/// it. `None` if bytes are left to move.
pub fn finish(state: &LayoutState) -> Option<LayoutState> {
    let [source, target] = &state.pieces[..] else {
        return None;
    };
    if !source.ranges.is_empty() {
        return None;
    }
    Some(LayoutState {
        owner: owner_of(state.owner, target),
        step: state.step + 1,
        pieces: vec![Piece {
            ranges: whole(),
            ..target.clone()
        }],
    })
}

/// The owner of a file in a piece, if it has one already.
pub fn owner_of(owner: Place, piece: &Piece) -> Place {
    let stays = |place: &&Place| place.server == owner.server;
    let stays = piece.places.iter().flatten().find(stays);
    *stays.unwrap_or(&piece.places[0][0])
}

/// Subfiles of the second piece whose bytes are stored elsewhere than those of the first, ascending; `None` if
/// all are.
pub fn moving_subfiles(state: &LayoutState) -> Option<Vec<usize>> {
    let [source, target] = &state.pieces[..] else {
        return None;
    };
    let stays = |i: usize| stays(source, target, i);
    let count = target.places.len();
    if (0..count).any(stays) {
        return Some((0..count).filter(|&i| !stays(i)).collect());
    }
    None
}

/// Whether a subfile has the same stored bytes in both pieces.
pub fn stays(source: &Piece, target: &Piece, subfile: usize) -> bool {
    let same = |piece: &Piece| {
        let place = piece.places.get(subfile)?.first()?;
        Some((*piece.stores.get(subfile)?, place.server))
    };
    same(source).is_some() && same(source) == same(target)
}

/// Counts the bytes that a move copies.
#[derive(Clone, Debug)]
pub struct CopyCounter {
    /// Those of the subfiles that move; `None` is all.
    moving: Option<Vec<falls::Periodic>>,
}

impl CopyCounter {
    /// All bytes.
    pub fn all() -> CopyCounter {
        CopyCounter { moving: None }
    }

    /// For a state with two pieces.
    pub fn new(state: &LayoutState) -> CopyCounter {
        let subfile = |i: usize| state.pieces[1].partition.subfile(i);
        CopyCounter {
            moving: moving_subfiles(state).map(|list| list.into_iter().map(subfile).collect()),
        }
    }

    /// Bytes in a range.
    pub fn count(&self, range: &Range<u64>) -> u64 {
        let end = range.end.min(falls::MAX_OFFSET);
        let start = range.start.min(end);
        match &self.moving {
            None => end - start,
            Some(list) => {
                let of = |p: &falls::Periodic| p.rank(end) - p.rank(start);
                list.iter().map(of).sum()
            }
        }
    }

    /// Bytes in all of these.
    pub fn count_all(&self, ranges: &[Range<u64>]) -> u64 {
        ranges.iter().map(|r| self.count(r)).sum()
    }

    /// The longest beginning of a range with no more than `most` bytes, and at least one byte of it.
    pub fn window(&self, range: &Range<u64>, most: u64) -> Range<u64> {
        let most = most.max(1);
        if self.count(range) <= most {
            return range.clone();
        }
        if self.moving.is_none() {
            return range.start..range.start + most;
        }
        let (mut good, mut bad) = (range.start + 1, range.end);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match self.count(&(range.start..middle)) <= most {
                true => good = middle,
                false => bad = middle,
            }
        }
        range.start..good
    }
}

#[cfg(test)]
mod tests;
