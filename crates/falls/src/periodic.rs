//! A set repeated with a period from a displacement to infinity: the element of section 5.
//!
//! ```text
//! offset   0    d         d+T        d+2T
//!          |    |==  =    |==  =     |==  = ...
//! ```
//!
//! One total function, [`Periodic::rank`], gives map, next and previous for every offset from 0 to
//! `2^63 - 2`, before the displacement and in every kind of gap included.
//!
//! Invariants: the period is at least 1 and the set ends within it; displacement and period are at
//! most [`MAX_OFFSET`]. The set may be empty (an element that owns nothing).

use std::ops::Range;

use crate::checked::{self, MAX_OFFSET};
use crate::cut::{cut_node, cut_set};
use crate::error::{FallsError, Reason};
use crate::segment::Segment;
use crate::segments::Segments;
use crate::set::{Falls, FallsSet, Node};

/// A set of nested FALLS that repeats from a displacement on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Periodic {
    displacement: u64,
    period: u64,
    set: FallsSet,
}

impl Periodic {
    /// `set` repeated every `period` bytes from `displacement` on.
    pub fn new(displacement: u64, period: u64, set: FallsSet) -> Result<Self, FallsError> {
        if period == 0 {
            return Err(FallsError::new(
                Reason::Period,
                "a period of 0 bytes; give at least 1",
            ));
        }
        if set.end() > period {
            return Err(FallsError::new(
                Reason::Period,
                format!(
                    "the set ends at {}, beyond its period of {period} bytes",
                    set.end()
                ),
            ));
        }
        checked::add(displacement, 0)?;
        checked::add(period, 0)?;
        Ok(Periodic {
            displacement,
            period,
            set,
        })
    }

    pub(crate) fn trusted(displacement: u64, period: u64, set: FallsSet) -> Self {
        debug_assert!(period > 0 && set.end() <= period);
        Periodic {
            displacement,
            period,
            set,
        }
    }

    /// Every byte from offset 0 on.
    pub fn everything() -> Self {
        Periodic::trusted(0, 1, FallsSet::trusted(vec![Falls::trusted_segment(0, 1)]))
    }

    /// Where the first period begins.
    pub fn displacement(&self) -> u64 {
        self.displacement
    }

    /// Bytes from one repetition to the next, holes included.
    pub fn period(&self) -> u64 {
        self.period
    }

    /// One period, relative to its start.
    pub fn set(&self) -> &FallsSet {
        &self.set
    }

    /// Bytes per period.
    pub fn size(&self) -> u64 {
        self.set.size()
    }

    /// Whether there is no byte at all.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Whether every byte from the displacement on belongs to it.
    pub fn is_everything(&self) -> bool {
        self.size() == self.period
    }

    /// Number of bytes below `x`.
    pub fn rank(&self, x: u64) -> u64 {
        if x <= self.displacement {
            return 0;
        }
        let y = x - self.displacement;
        (y / self.period) * self.size() + self.set.rank(y % self.period)
    }

    /// Offset of byte number `k`; `None` when the set is empty or the offset reaches `2^63 - 1`.
    pub fn select(&self, k: u64) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        let within = self.set.select(k % self.size())?;
        let base = (k / self.size()).checked_mul(self.period)?;
        let x = base.checked_add(within)?.checked_add(self.displacement)?;
        (x < MAX_OFFSET).then_some(x)
    }

    /// Whether byte `x` belongs to it.
    pub fn contains(&self, x: u64) -> bool {
        x >= self.displacement && self.set.contains((x - self.displacement) % self.period)
    }

    /// MAP: the position of byte `x`, `None` if `x` does not belong to it.
    ///
    /// ```
    /// # use falls::Periodic;
    /// // element 1 of figure 4 of the paper
    /// let e = Periodic::new(2, 6, "{(2,3,-,1)}".parse().unwrap()).unwrap();
    /// assert_eq!(e.map(10), Some(2));
    /// assert_eq!((e.map(8), e.map_next(8), e.map_previous(8)), (None, Some(2), Some(1)));
    /// ```
    pub fn map(&self, x: u64) -> Option<u64> {
        self.contains(x).then(|| self.rank(x))
    }

    /// Position of the first byte at or after `x`; `None` only when there is no byte at all.
    pub fn map_next(&self, x: u64) -> Option<u64> {
        (!self.is_empty()).then(|| self.rank(x))
    }

    /// Position of the last byte at or before `x`; `None` when there is none.
    pub fn map_previous(&self, x: u64) -> Option<u64> {
        self.rank(x.saturating_add(1)).checked_sub(1)
    }

    /// First byte at or after `x`.
    pub fn next_byte(&self, x: u64) -> Option<u64> {
        self.select(self.rank(x))
    }

    /// Whether every byte of `range` belongs to it.
    pub fn is_contiguous(&self, range: Range<u64>) -> bool {
        range.start >= range.end
            || self.rank(range.end) - self.rank(range.start) == range.end - range.start
    }

    /// Length of the run of consecutive bytes that starts at byte `x`, up to `end`; 0 if `x` does
    /// not belong to it.
    pub(crate) fn run_from(&self, x: u64, end: u64) -> u64 {
        if x < self.displacement || x >= end {
            return 0;
        }
        if self.is_everything() {
            return end - x;
        }
        match self.set.leaf_rest((x - self.displacement) % self.period) {
            None => 0,
            // Mostly the leaf block is the run; where another touches it, walk.
            Some(rest) if end - x > rest && self.contains(x + rest) => {
                self.segments(x..end).next().map_or(0, |s| s.len())
            }
            Some(rest) => rest.min(end - x),
        }
    }

    /// One period as seen from offset `from >= displacement` (ALIGN: a rotation).
    ///
    /// ```text
    /// set       |==  =   |        rotated by 2   |  =   ==|
    /// ```
    pub fn align(&self, from: u64) -> Option<Periodic> {
        let distance = from.checked_sub(self.displacement)?;
        let turn = distance % self.period;
        if turn == 0 {
            return Some(Periodic::trusted(from, self.period, self.set.clone()));
        }
        let mut members = Vec::with_capacity(self.set.len() + 1);
        cut_set(&self.set, 0, &(turn..self.period), turn, &mut members);
        let mut wrapped = Vec::new();
        cut_set(&self.set, 0, &(0..turn), 0, &mut wrapped);
        members.extend(wrapped.into_iter().map(|m| m.shifted(self.period - turn)));
        Some(Periodic::trusted(
            from,
            self.period,
            FallsSet::trusted(members),
        ))
    }

    /// The bytes inside `range` as a set in absolute offsets; head, middle and tail, never a list
    /// of periods.
    pub fn window(&self, range: Range<u64>) -> FallsSet {
        let mut out = Vec::new();
        let (lo, hi) = (
            range.start.max(self.displacement),
            range.end.min(MAX_OFFSET),
        );
        if lo < hi && !self.is_empty() {
            let first = (lo - self.displacement) / self.period;
            let last = (hi - 1 - self.displacement) / self.period;
            let node = Node {
                start: self.displacement + first * self.period,
                len: self.period,
                stride: self.period,
                count: last - first + 1,
                unit: self.size(),
                inner: (!self.is_everything()).then_some(&self.set),
            };
            cut_node(node, &(lo..hi), 0, &mut out);
        }
        FallsSet::trusted(out)
    }

    /// Maximal segments inside `range`, ascending.
    pub fn segments(&self, range: Range<u64>) -> PeriodicSegments {
        let window = self.window(range);
        PeriodicSegments(window.segments(0..MAX_OFFSET))
    }

    /// The set repeated `count` times as one set (EXTEND): one extra level, nothing copied.
    pub(crate) fn extended(&self, count: u64) -> FallsSet {
        if count == 1 || self.is_empty() {
            return self.set.clone();
        }
        let inner = (!self.is_everything()).then(|| self.set.clone());
        FallsSet::trusted(vec![Falls::trusted(
            0,
            self.period,
            self.period,
            count,
            inner,
        )])
    }
}

/// Iterator of [`Periodic::segments`].
#[derive(Clone, Debug)]
pub struct PeriodicSegments(Segments);

impl Iterator for PeriodicSegments {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        self.0.next()
    }
}
