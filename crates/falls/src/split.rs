//! Splitting a set into pieces of equal size.
//!
//! Piece `i` holds bytes `i * bytes .. (i + 1) * bytes` of the set, the last one the rest. Cuts are
//! found by select, so a piece costs a descent and shares inner sets with the whole.

use crate::cut::cut_set;
use crate::set::FallsSet;

impl FallsSet {
    /// Consecutive pieces of `bytes` bytes each (the last may be shorter), in the coordinates of
    /// the set. `bytes` of 0 is treated as 1.
    ///
    /// ```
    /// use falls::FallsSet;
    /// let set: FallsSet = "{(0,3,8,3)}".parse().unwrap();
    /// let pieces: Vec<String> = set.split_by_size(6).map(|p| p.to_string()).collect();
    /// assert_eq!(pieces, ["{(0,3,-,1),(8,9,-,1)}", "{(10,11,-,1),(16,19,-,1)}"]);
    /// ```
    pub fn split_by_size(&self, bytes: u64) -> Pieces {
        Pieces {
            set: self.clone(),
            bytes: bytes.max(1),
            done: 0,
        }
    }

    /// Bytes number `from..to` of the set, in its own coordinates.
    pub fn slice_by_rank(&self, from: u64, to: u64) -> FallsSet {
        let to = to.min(self.size());
        if from >= to {
            return FallsSet::empty();
        }
        let (lo, hi) = (self.select(from), self.select(to - 1));
        let (Some(lo), Some(last)) = (lo, hi) else {
            return FallsSet::empty();
        };
        let mut members = Vec::new();
        cut_set(self, 0, &(lo..last + 1), 0, &mut members);
        FallsSet::trusted(members)
    }
}

/// Iterator of [`FallsSet::split_by_size`].
#[derive(Clone, Debug)]
pub struct Pieces {
    set: FallsSet,
    bytes: u64,
    done: u64,
}

impl Iterator for Pieces {
    type Item = FallsSet;

    fn next(&mut self) -> Option<FallsSet> {
        if self.done >= self.set.size() {
            return None;
        }
        let from = self.done;
        self.done = from.saturating_add(self.bytes);
        Some(self.set.slice_by_rank(from, self.done))
    }
}
