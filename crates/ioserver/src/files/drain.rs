//! Accesses that run inside a gate, counted so that it can be waited until all have left that entered before.
//!
//! Invariant: two counters, used in turn. A drain switches to the other one and waits for the first to reach zero, so
//! accesses that come later never hold it up. One drain at a time, which the gate sees to.

use std::ops::Range;

use control::moves::meets;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Drain {
    /// Which counter takes accesses that enter.
    phase: usize,
    running: [u64; 2],
    /// File ranges of accesses that run, where they are known; free ones are empty.
    inside: Vec<Range<u64>>,
}

/// Where an access is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    phase: usize,
    slot: Option<usize>,
}

impl Place {
    /// Whether the range of the access is known.
    pub(super) fn has_range(self) -> bool {
        self.slot.is_some()
    }
}

impl Drain {
    /// An access enters.
    pub(super) fn enter(&mut self, range: Option<Range<u64>>) -> Place {
        self.running[self.phase] += 1;
        let slot = range.map(|range| match self.inside.iter().position(Range::is_empty) {
            Some(slot) => {
                self.inside[slot] = range;
                slot
            }
            None => {
                self.inside.push(range);
                self.inside.len() - 1
            }
        });
        let phase = self.phase;
        Place { phase, slot }
    }

    /// An access leaves; whether a drain may be over.
    pub(super) fn leave(&mut self, place: Place) -> bool {
        self.running[place.phase] -= 1;
        if let Some(slot) = place.slot {
            self.inside[slot] = 0..0;
        }
        self.running[place.phase] == 0 && place.phase != self.phase
    }

    /// A drain begins: the counter that it waits for.
    pub(super) fn begin(&mut self) -> usize {
        let before = self.phase;
        self.phase = 1 - before;
        before
    }

    /// Whether all have left that a counter has counted.
    pub(super) fn is_over(&self, phase: usize) -> bool {
        self.running[phase] == 0
    }

    /// Whether nothing runs.
    pub(super) fn is_idle(&self) -> bool {
        self.running == [0, 0]
    }

    /// Whether an access runs that meets ranges.
    pub(super) fn runs_in(&self, ranges: &[Range<u64>]) -> bool {
        let mut inside = self.inside.iter().filter(|range| !range.is_empty());
        inside.any(|range| meets(std::slice::from_ref(range), ranges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_waits_for_what_entered_before_and_nothing_else() {
        let mut drain = Drain::default();
        let early = [drain.enter(None), drain.enter(Some(0..10))];
        let phase = drain.begin();
        let late = drain.enter(Some(10..20));
        assert!(!drain.is_over(phase) && !drain.leave(early[0]));
        assert!(drain.leave(early[1]) && drain.is_over(phase) && !drain.is_idle());
        // The next one waits for the late one.
        let phase = drain.begin();
        assert!(!drain.is_over(phase) && drain.leave(late) && drain.is_idle());
    }

    #[test]
    fn ranges_are_known_while_their_accesses_run() {
        let mut drain = Drain::default();
        let (first, second) = (drain.enter(Some(0..10)), drain.enter(Some(20..30)));
        drain.enter(None);
        assert!(drain.runs_in(&[5..6, 100..200]) && drain.runs_in(&[15..21, 40..50]));
        assert!(!drain.runs_in(&[10..20, 30..u64::MAX]));
        drain.leave(first);
        assert!(!drain.runs_in(&[0..10, 12..13]));
        // Its slot is used again.
        let third = drain.enter(Some(2..4));
        assert_eq!((third.slot, second.slot), (first.slot, Some(1)));
    }
}
