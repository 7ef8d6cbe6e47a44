//! Whether two locks exclude each other, decided in stages from cheap to dear.
//!
//! ```text
//! spans in the file apart?          -> no        two numbers compared
//! the same view?                    -> by the ranges in view space
//! the views disjoint?               -> no        remembered per pair of views
//! first common byte in both spans?  -> by the symbolic meeting of the views, remembered
//! the meeting over its budget?      -> yes       safe, and as cheap as the budget says
//! ```
//!
//! A view's bytes between the file offsets of its range are exactly the bytes of the range, so the
//! test with the meeting is exact. Views are kept as long as a handle or a lock uses them.

use std::collections::HashMap;
use std::ops::Range;

use falls::{Budget, Meeting};
use layout::{FileOffset, View, ViewOffset};

use super::{Mode, Ticket, ViewKey};

/// A descriptor that a client wants or has.
#[derive(Clone, Debug)]
pub(crate) struct Lock {
    pub(crate) ticket: Ticket,
    pub(crate) view: ViewKey,
    /// In view space.
    pub(crate) range: Range<u64>,
    /// In the file; empty for an empty range.
    pub(crate) span: Range<u64>,
    pub(crate) mode: Mode,
}

#[derive(Debug)]
enum Relation {
    Disjoint,
    Meets(Box<Meeting>),
    /// Over budget.
    Unknown,
}

/// Views in use, and what is known of pairs of them.
#[derive(Debug)]
pub(crate) struct Views {
    budget: Option<Budget>,
    used: HashMap<ViewKey, (View, usize)>,
    pairs: HashMap<(ViewKey, ViewKey), Relation>,
}

impl Views {
    /// With the budget that suits the descriptions, or another.
    pub(crate) fn new(budget: Option<Budget>) -> Self {
        Views {
            budget,
            used: HashMap::new(),
            pairs: HashMap::new(),
        }
    }

    /// One more use. `false` if the key stands for another view already.
    pub(crate) fn acquire(&mut self, key: ViewKey, view: &View) -> bool {
        let (known, uses) = self.used.entry(key).or_insert_with(|| (view.clone(), 0));
        if known != view {
            return false;
        }
        *uses += 1;
        true
    }

    /// One more use of a view that is in use.
    pub(crate) fn acquire_known(&mut self, key: ViewKey) {
        if let Some((_, uses)) = self.used.get_mut(&key) {
            *uses += 1;
        }
    }

    /// One use less; with the last one everything about the view is forgotten.
    pub(crate) fn release(&mut self, key: ViewKey) {
        let Some((_, uses)) = self.used.get_mut(&key) else {
            return;
        };
        *uses -= 1;
        if *uses == 0 {
            self.used.remove(&key);
            self.pairs.retain(|(a, b), _| *a != key && *b != key);
        }
    }

    /// The span in the file of a range of a view; `None` if it reaches beyond the largest offset.
    pub(crate) fn span(&self, key: ViewKey, range: &Range<u64>) -> Option<Range<u64>> {
        if range.is_empty() {
            return Some(0..0);
        }
        let (view, _) = self.used.get(&key)?;
        let span = view.file_range(ViewOffset(range.start)..ViewOffset(range.end))?;
        let (FileOffset(start), FileOffset(end)) = (span.start, span.end);
        Some(start..end)
    }

    /// Whether two views have a byte in common, or may have.
    pub(crate) fn overlap(&mut self, a: ViewKey, b: ViewKey) -> bool {
        if a == b {
            return self
                .used
                .get(&a)
                .is_some_and(|(v, _)| !v.bytes().is_empty());
        }
        !matches!(self.relation(a, b), Relation::Disjoint)
    }

    /// Whether two locks exclude each other, or may.
    pub(crate) fn conflict(&mut self, a: &Lock, b: &Lock) -> bool {
        if a.mode == Mode::Shared && b.mode == Mode::Shared {
            return false;
        }
        let common = a.span.start.max(b.span.start)..a.span.end.min(b.span.end);
        if common.is_empty() {
            return false;
        }
        if a.view == b.view {
            return a.range.start < b.range.end && b.range.start < a.range.end;
        }
        match self.relation(a.view, b.view) {
            Relation::Disjoint => false,
            Relation::Unknown => true,
            Relation::Meets(meeting) => meeting
                .next_byte(common.start)
                .is_some_and(|byte| byte < common.end),
        }
    }

    fn relation(&mut self, a: ViewKey, b: ViewKey) -> &Relation {
        let pair = (a.min(b), a.max(b));
        let (used, budget) = (&self.used, self.budget);
        self.pairs.entry(pair).or_insert_with(|| {
            let (Some((left, _)), Some((right, _))) = (used.get(&pair.0), used.get(&pair.1)) else {
                return Relation::Unknown;
            };
            let (left, right) = (left.bytes(), right.bytes());
            let budget = budget.unwrap_or_else(|| Budget::for_sets(left.set(), right.set()));
            let meeting = Meeting::with_budget(left, right, budget);
            if !meeting.is_symbolic() {
                Relation::Unknown
            } else if meeting.is_empty() {
                Relation::Disjoint
            } else {
                Relation::Meets(Box::new(meeting))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(set: &str) -> View {
        View::new(FileOffset(0), 8, set.parse().unwrap()).unwrap()
    }

    #[test]
    fn key_that_is_used_again_stands_for_its_new_view() {
        let mut views = Views::new(None);
        let (one, two) = (ViewKey(1), ViewKey(2));
        for (first, second) in [(one, two), (two, one)] {
            assert!(views.acquire(first, &view("{(0,3,8,1)}")));
            assert!(views.acquire(second, &view("{(4,7,8,1)}")));
            assert!(!views.overlap(one, two) && !views.overlap(two, one));
            views.release(first);
            assert!(views.acquire(first, &view("{(2,5,8,1)}")));
            assert!(views.overlap(one, two) && views.overlap(two, one));
            views.release(first);
            views.release(second);
        }
        assert!(views.used.is_empty() && views.pairs.is_empty());
    }
}
