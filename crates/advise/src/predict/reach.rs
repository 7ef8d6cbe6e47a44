//! How far ahead to read: predictions one after the other, farther while they come true.
//!
//! The reach begins short and doubles with every access that came as predicted, up to a bound; an access that
//! came otherwise voids what was planned and begins anew. A hint can fix it in accesses.
//!
//! Left to others: loading, memory, and what is done about ranges that are void.

use std::collections::VecDeque;
use std::ops::Range;

use super::predictor::{NextAccess, Pattern, Predictor};

/// Accesses that are predicted at a time, at most.
const MOST_STEPS: u64 = 256;

/// What to read next, for one reader.
///
/// ```
/// use advise::predict::Reach;
/// let mut reach = Reach::new(100..1000);
/// let mut ranges = Vec::new();
/// for i in 0..4 {
///     ranges.extend(reach.observe(i * 100, (i + 1) * 100).ranges);
/// }
/// assert_eq!(ranges[0].start, 300, "predicted after three");
/// assert!(reach.observe(777_777, 777_877).is_void);
/// ```
#[derive(Clone, Debug)]
pub struct Reach {
    predictor: Predictor,
    /// Accesses that were planned for and have not come, in order.
    planned: VecDeque<NextAccess>,
    bounds: Range<u64>,
    reach: u64,
    depth: Option<u64>,
}

/// What follows from an access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// What should be read now, in view bytes; neighbours are one range.
    pub ranges: Vec<Range<u64>>,
    /// Whether what was planned before is void.
    pub is_void: bool,
}

impl Reach {
    /// From `bounds.start` bytes ahead up to `bounds.end`.
    pub fn new(bounds: Range<u64>) -> Reach {
        Reach {
            predictor: Predictor::new(),
            planned: VecDeque::new(),
            reach: bounds.start,
            bounds,
            depth: None,
        }
    }

    /// Fixes the reach in accesses, none at all for 0, or lets it follow success again.
    pub fn set_depth(&mut self, depth: Option<u64>) {
        self.depth = depth;
        self.forget();
    }

    /// Bounds the reach anew.
    pub fn set_bounds(&mut self, bounds: Range<u64>) {
        self.bounds = bounds;
        self.forget();
    }

    /// Whether anything is ever planned.
    pub fn is_on(&self) -> bool {
        self.depth != Some(0)
    }

    /// What was planned is void.
    pub fn forget(&mut self) {
        self.planned.clear();
        self.reach = self.bounds.start;
    }

    /// What the accesses look like.
    pub fn pattern(&self) -> Pattern {
        self.predictor.pattern()
    }

    /// An access was made.
    pub fn observe(&mut self, lo: u64, hi: u64) -> Ahead {
        if !self.is_on() || lo >= hi {
            return Ahead::default();
        }
        let is_void = self.planned.front().is_some_and(|next| next.offset != lo);
        if is_void {
            self.forget();
        } else if self.planned.pop_front().is_some() {
            self.reach = (self.reach * 2).min(self.bounds.end);
        }
        self.predictor.observe(lo, hi - lo);
        Ahead {
            ranges: self.plan(hi - lo),
            is_void,
        }
    }

    /// Predicts as far as the reach goes, unless half of it is planned already.
    fn plan(&mut self, size: u64) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        if matches!(self.pattern(), Pattern::Nothing | Pattern::Unknown) {
            return ranges;
        }
        let steps = self.depth.unwrap_or(self.reach.div_ceil(size.max(1)));
        let steps = steps.clamp(1, MOST_STEPS) as usize;
        if self.planned.len() > steps / 2 {
            return ranges;
        }
        let mut ahead = self.predictor.clone();
        for planned in &self.planned {
            ahead.observe(planned.offset, planned.size);
        }
        while self.planned.len() < steps {
            let Some(next) = ahead.next() else { break };
            ahead.observe(next.offset, next.size);
            self.planned.push_back(next);
            let end = next.offset.saturating_add(next.size);
            match ranges.last_mut() {
                Some(last) if last.end == next.offset => last.end = end,
                _ => ranges.push(next.offset..end),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u64 = 8 << 20;

    fn reach(depth: Option<u64>) -> Reach {
        let mut reach = Reach::new(256 << 10..MOST);
        reach.set_depth(depth);
        reach
    }

    #[test]
    fn the_reach_grows_while_predictions_come_true_and_begins_anew_when_not() {
        let mut reach = reach(None);
        let size = 64 << 10;
        let mut planned_to = 0;
        for i in 0..40u64 {
            let ahead = reach.observe(i * size, (i + 1) * size);
            assert!(!ahead.is_void);
            for range in ahead.ranges {
                assert!(range.start >= planned_to, "nothing is planned twice");
                planned_to = range.end;
            }
        }
        let ahead = planned_to - 40 * size;
        assert!((MOST / 2..=MOST).contains(&ahead), "{ahead}");
        assert!(reach.observe(1 << 40, (1 << 40) + size).is_void);
        assert!(reach.planned.is_empty());
        assert_eq!(reach.reach, reach.bounds.start);
    }

    #[test]
    fn a_hint_says_how_many_accesses() {
        let mut reach = reach(Some(3));
        let mut got = Vec::new();
        for i in 0..6u64 {
            got.extend(reach.observe(1000 * i, 1000 * i + 100).ranges);
        }
        assert!(reach.planned.len() <= 3);
        assert!(got.contains(&(5000..5100)), "{got:?}");
        assert!(got.iter().all(|r| r.start <= 5000 + 3000), "{got:?}");
        reach.set_depth(Some(0));
        assert_eq!(reach.observe(6000, 6100), Ahead::default());
    }

    #[test]
    fn chance_is_not_followed() {
        let mut reach = reach(None);
        let mut random = random::Random::new(7);
        let mut planned = 0;
        for _ in 0..200 {
            let at = random.draw() >> 30;
            planned += reach.observe(at, at + 4096).ranges.len();
        }
        assert!(planned < 10, "{planned} ranges for random accesses");
    }
}
