//! How much searching a caller allows: lazy meetings of patterns that somebody else has chosen.
//!
//! A pair of trees of some hundred bytes may meet once in 2^60 bytes, or never, and there is no formula
//! for every nesting that says where. A search counts its steps instead: one for every pair of blocks
//! or members it looks at, each O(log stride). The caller says how many all its searches together may
//! take and gets [`OutOfSteps`] when they do not suffice; no clock is involved, so the same question has
//! the same answer everywhere.

use crate::common_byte::Fuel;

/// Steps that searches in lazy meetings may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    left: u64,
    /// Of one search.
    most: u64,
}

/// The steps did not suffice: nothing is known about what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfSteps;

impl std::fmt::Display for OutOfSteps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("two patterns were not found to meet, or not to, within the steps allowed")
    }
}

impl std::error::Error for OutOfSteps {}

impl Steps {
    /// So many, for one search or many.
    pub fn new(steps: u64) -> Steps {
        Steps {
            left: steps,
            most: steps,
        }
    }

    /// These steps, of which one search may take at most `most`: between two searches the caller can look
    /// around.
    #[must_use]
    pub fn with_search(self, most: u64) -> Steps {
        Steps { most, ..self }
    }

    /// How many are left.
    pub fn left(self) -> u64 {
        self.left
    }

    /// Runs one search. Every search takes a step, so that one that finds something at once is not free.
    pub(crate) fn search<T>(
        &mut self,
        run: impl FnOnce(&mut Fuel) -> Option<T>,
    ) -> Result<Option<T>, OutOfSteps> {
        let given = self.left.min(self.most);
        let mut fuel = Fuel(given);
        let found = run(&mut fuel);
        self.left -= (given - fuel.0).max(1).min(given);
        match fuel.is_left() {
            true => Ok(found),
            false => Err(OutOfSteps),
        }
    }
}
