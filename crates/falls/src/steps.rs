//! How much searching a caller allows: lazy meetings of patterns that somebody else has chosen.
//!
//! A pair of trees of some hundred bytes may meet once in 2^60 bytes, or never, and there is no formula
//! for every nesting that says where. A search counts its steps instead: one for every pair of blocks
//! or members it looks at, each O(log stride). The caller says how many all its searches together may
//! take and gets [`OutOfSteps`] when they do not suffice; no clock is involved, so the same question has
//! the same answer everywhere.

use crate::common_byte::{ASK_EVERY, Fuel};

/// The peer for which a search runs.
///
/// One search may take long where its steps are many. Every few thousand of them, also in the middle of a search, it asks
/// whether there still is a peer that waits for what it finds.
pub trait Watch: Sync {
    /// Whether the search goes on; if not it ends as if there were no steps left.
    fn goes_on(&self) -> bool;
}

/// Steps that searches in lazy meetings may take.
#[derive(Clone, Copy)]
pub struct Steps<'a> {
    left: u64,
    /// Of one search.
    most: u64,
    /// Until the watcher is asked.
    near: u64,
    watch: Option<&'a dyn Watch>,
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

impl<'a> Steps<'a> {
    /// So many, for one search or many.
    pub fn new(steps: u64) -> Steps<'static> {
        Steps {
            left: steps,
            most: steps,
            near: ASK_EVERY,
            watch: None,
        }
    }

    /// These steps, of which one search may take at most `most`.
    #[must_use]
    pub fn with_search(self, most: u64) -> Steps<'a> {
        Steps { most, ..self }
    }

    /// These steps, as long as `watch` lets searches go on.
    ///
    /// ```
    /// use falls::{Budget, Meeting, OutOfSteps, Periodic, Steps, Watch};
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// /// Goes away at the third question.
    /// struct Caller(AtomicU64);
    /// impl Watch for Caller {
    ///     fn goes_on(&self) -> bool {
    ///         self.0.fetch_add(1, Ordering::Relaxed) < 2
    ///     }
    /// }
    /// // The blocks of both meet all the time, their bytes never do: one is even, the other odd.
    /// let even = Periodic::new(0, 1 << 20, "{(0,999,1000,1048,{(0,0,2,500)})}".parse().unwrap()).unwrap();
    /// let odd = Periodic::new(1, (1 << 20) + 2, "{(0,999,1002,1046,{(0,0,2,500)})}".parse().unwrap()).unwrap();
    /// let meeting = Meeting::with_budget(&even, &odd, Budget(0));
    /// let caller = Caller(AtomicU64::new(0));
    /// let mut steps = Steps::new(u64::MAX).watched(&caller);
    /// assert_eq!(meeting.next_byte_within(0..1 << 60, &mut steps), Err(OutOfSteps));
    /// assert_eq!(caller.0.into_inner(), 3);
    /// ```
    #[must_use]
    pub fn watched(self, watch: &'a dyn Watch) -> Steps<'a> {
        Steps {
            watch: Some(watch),
            ..self
        }
    }

    /// How many are left.
    pub fn left(self) -> u64 {
        self.left
    }

    /// Runs one search. Every search takes a step, so that one that finds something at once is not free.
    pub(crate) fn search<T>(
        &mut self,
        run: impl FnOnce(&mut Fuel<'a>) -> Option<T>,
    ) -> Result<Option<T>, OutOfSteps> {
        let given = self.left.min(self.most);
        let mut fuel = Fuel::new(given, self.near, self.watch);
        let found = run(&mut fuel);
        let is_over = fuel.is_left();
        if fuel.left() == given {
            let _ = fuel.spend();
        }
        self.left -= given - fuel.left();
        if self.watch.is_some() {
            self.near = self.near - self.near.min(given) + fuel.near();
        }
        match is_over {
            true => Ok(found),
            false => Err(OutOfSteps),
        }
    }
}
