//! A list that names an owner for every position, kept as runs: the map of `INDIRECT` and of block
//! maps.
//!
//! ```text
//! positions   0 1 2 3 4 5 6
//! owners      0 0 1 2 2 2 1      runs of 0: 0-1    of 1: 2, 6    of 2: 3-5
//! ```
//!
//! Invariants: runs are maximal, so equal lists are equal values; runs of one owner stand together,
//! so what one owner has is found without looking at the others.
//!
//! Cost: three numbers per run, O(runs log runs) to build, O(log owners + own runs) for one owner. A
//! list of millions of entries is fine, and so is a run of 2^60. Where the list is regular the sets
//! are small trees; where it is not they are compact lists of segments.

use std::sync::Arc;

use falls::{FallsSet, MAX_OFFSET, Segment};

use crate::error::LayoutError;
use crate::owner_tree::OwnerTree;

/// Owners of the positions `0..len`, as runs.
#[derive(Clone, Debug)]
pub struct OwnerRuns {
    /// Sorted by owner, then by start.
    runs: Arc<[OwnerRun]>,
    len: u64,
    /// The list folded, where it is regular.
    tree: Option<Arc<OwnerTree>>,
}

impl PartialEq for OwnerRuns {
    fn eq(&self, other: &Self) -> bool {
        self.runs == other.runs
    }
}

impl Eq for OwnerRuns {}

/// Neighbouring positions with one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerRun {
    /// Who owns them.
    pub owner: u64,
    /// The first position.
    pub start: u64,
    /// How many.
    pub len: u64,
}

impl OwnerRuns {
    /// One owner per position.
    pub fn new(owners: &[u64]) -> Self {
        let mut runs = Vec::new();
        let mut len = 0;
        for &owner in owners {
            push(&mut runs, &mut len, owner, 1);
        }
        OwnerRuns::sorted(runs, len)
    }

    /// Runs of (owner, positions), one behind the other.
    ///
    /// ```
    /// use layout::OwnerRuns;
    /// let short = OwnerRuns::from_runs(&[(0, 2), (1, 1), (2, 3), (1, 1)]).unwrap();
    /// assert_eq!(short, OwnerRuns::new(&[0, 0, 1, 2, 2, 2, 1]));
    /// assert_eq!(short.set(1, 1).unwrap().to_string(), "{(2,2,-,1),(6,6,-,1)}");
    /// ```
    pub fn from_runs(list: &[(u64, u64)]) -> Result<Self, LayoutError> {
        let mut runs = Vec::new();
        let mut len = 0u64;
        for &(owner, positions) in list {
            if len
                .checked_add(positions)
                .is_none_or(|end| end > MAX_OFFSET)
            {
                return Err(LayoutError::overflow("owners"));
            }
            push(&mut runs, &mut len, owner, positions);
        }
        Ok(OwnerRuns::sorted(runs, len))
    }

    fn sorted(mut runs: Vec<OwnerRun>, len: u64) -> Self {
        let tree = OwnerTree::new(runs.iter().map(|r| (r.owner, r.len)));
        runs.sort_unstable_by_key(|r| (r.owner, r.start));
        OwnerRuns {
            runs: runs.into(),
            len,
            tree: tree.map(Arc::new),
        }
    }

    /// Number of positions.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no position.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One more than the highest owner; 0 when there is no position.
    pub fn owners(&self) -> u64 {
        self.runs.last().map_or(0, |r| r.owner.saturating_add(1))
    }

    /// All runs in the order of their positions.
    pub fn runs(&self) -> Vec<OwnerRun> {
        let mut runs = self.runs.to_vec();
        runs.sort_unstable_by_key(|r| r.start);
        runs
    }

    /// What `owner` has, where one position is `step` bytes.
    pub fn set(&self, owner: u64, step: u64) -> Result<FallsSet, LayoutError> {
        if self
            .len
            .checked_mul(step)
            .is_none_or(|end| end > MAX_OFFSET)
        {
            return Err(LayoutError::overflow("owners"));
        }
        if let Some(tree) = &self.tree {
            return tree.set(owner, step);
        }
        let first = self.runs.partition_point(|r| r.owner < owner);
        let count = self.runs[first..].partition_point(|r| r.owner == owner);
        let mut segments = Vec::with_capacity(count);
        for run in &self.runs[first..first + count] {
            segments.push(Segment::new(run.start * step, run.len * step)?);
        }
        Ok(FallsSet::from_segments(&segments)?)
    }
}

/// Appends a run, joined with the one before if that has the same owner.
fn push(runs: &mut Vec<OwnerRun>, end: &mut u64, owner: u64, len: u64) {
    if len == 0 {
        return;
    }
    match runs.last_mut() {
        Some(last) if last.owner == owner => last.len += len,
        _ => runs.push(OwnerRun {
            owner,
            start: *end,
            len,
        }),
    }
    *end += len;
}
