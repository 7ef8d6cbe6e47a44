//! The predictor itself: runs, confidence, and the step that is expected next.
//!
//! Left to others: bytes that travel (`travel`), what is kept over runs of an application (`profile`).

use layout::View;

/// Runs that are kept.
pub const MOST_RUNS: usize = 32;

/// What confidence begins with.
const START: u8 = 96;

/// From the end of one access to the start of the next, and the size of that next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) gap: i64,
    pub(super) size: u64,
}

impl Step {
    /// Consecutive accesses are one pattern whatever their sizes.
    fn is_like(self, other: Step) -> bool {
        self.gap == other.gap && (self.gap == 0 || self.size == other.size)
    }
}

/// Equal steps in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) step: Step,
    pub(super) count: u64,
}

impl Run {
    fn is_like(self, other: Run) -> bool {
        self.count == other.count && self.step.is_like(other.step)
    }
}

/// What comes next, in view bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextAccess {
    /// Where it begins.
    pub offset: u64,
    /// How long it is; at least 1.
    pub size: u64,
}

/// What a client's accesses look like at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Nothing was accessed yet.
    Nothing,
    /// Too little or too irregular.
    Unknown,
    /// Each begins where the last one ended.
    Sequential,
    /// Equal sizes at equal distances, forwards.
    Strided,
    /// Equal sizes at equal distances, backwards.
    Reverse,
    /// Strided segments at regular distances, or deeper.
    NestedStrided,
}

/// See the [module](super).
///
/// ```
/// use advise::predict::{Pattern, NextAccess, Predictor};
/// let mut p = Predictor::new();
/// assert_eq!(p.next(), Some(NextAccess { offset: 0, size: 1 }), "the first byte of the view");
/// for i in 0..3 {
///     p.observe(30 * i, 10);
/// }
/// assert_eq!(p.pattern(), Pattern::Strided);
/// assert_eq!(p.next(), Some(NextAccess { offset: 90, size: 10 }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predictor {
    /// The last access.
    pub(super) last: Option<NextAccess>,
    /// The first access, and the first runs after it: what a profile keeps.
    pub(super) first: Option<NextAccess>,
    pub(super) head: Vec<Run>,
    /// The latest runs, oldest first; the last one may go on.
    pub(super) runs: Vec<Run>,
    pub(super) confidence: u8,
    /// Steps of an earlier run of the application, and how many of them were made.
    pub(super) script: Vec<Run>,
    pub(super) followed: u64,
}

impl Default for Predictor {
    fn default() -> Self {
        Predictor {
            last: None,
            first: None,
            head: Vec::new(),
            runs: Vec::new(),
            confidence: START,
            script: Vec::new(),
            followed: 0,
        }
    }
}

impl Predictor {
    /// Without history, as straight after a view was set.
    pub fn new() -> Predictor {
        Predictor::default()
    }

    /// Steps that are enough at present (n).
    pub fn needed(&self) -> u64 {
        match self.confidence {
            192.. => 1,
            96.. => 2,
            40.. => 3,
            _ => 5,
        }
    }

    /// How often predictions came true lately, from 0 to 255.
    pub fn confidence(&self) -> u8 {
        self.confidence
    }

    /// An access was made. One without bytes says nothing.
    pub fn observe(&mut self, offset: u64, size: u64) {
        if size == 0 {
            return;
        }
        let Some(last) = self.last else {
            self.last = Some(NextAccess { offset, size });
            self.first = self.last;
            return;
        };
        let expected = self.next();
        if let Some(expected) = expected {
            if expected.offset == offset {
                self.confidence += (255 - self.confidence).div_ceil(4);
            } else {
                self.confidence /= 2;
            }
        }
        self.last = Some(NextAccess { offset, size });
        let Some(gap) = gap(last, offset) else {
            // Farther apart than any pattern.
            self.runs.clear();
            self.script.clear();
            return;
        };
        let step = Step { gap, size };
        match self.scripted() {
            Some(said) if said.is_like(step) => self.followed += 1,
            _ => self.script.clear(),
        }
        self.push(step);
    }

    fn push(&mut self, step: Step) {
        // The first runs as they were, while they are still all here.
        let is_head = self.head.len() < MOST_RUNS && self.head == self.runs;
        match self.runs.last_mut() {
            Some(run) if run.step.is_like(step) => {
                run.step = step;
                run.count += 1;
            }
            _ => {
                if self.runs.len() == MOST_RUNS {
                    self.runs.remove(0);
                }
                self.runs.push(Run { step, count: 1 });
            }
        }
        if is_head {
            self.head.clone_from(&self.runs);
        }
    }

    /// The step that a profile expects now.
    fn scripted(&self) -> Option<Step> {
        let mut at = self.followed;
        for run in &self.script {
            if at < run.count {
                return Some(run.step);
            }
            at -= run.count;
        }
        None
    }

    /// The step that follows if the latest runs repeat with some period of runs. Of several periods the one
    /// counts that holds longest into the past, and of those the shortest: inside a middle loop a short
    /// period fits as well, but only as long as that loop.
    fn nested(&self) -> Option<Step> {
        let runs = &self.runs;
        let now = runs.len().checked_sub(1)?;
        let mut found: Option<(usize, Step)> = None;
        for period in 2..=now / 2 + 1 {
            let Some(before) = now.checked_sub(period) else {
                break;
            };
            let (present, past) = (runs[now], runs[before]);
            if !present.step.is_like(past.step) || present.count > past.count {
                continue;
            }
            // Whole runs that are as they were one period before, from the latest back. The oldest of all
            // may have begun before what is kept.
            let same = (1..=before).take_while(|j| runs[now - j].is_like(runs[before - j]));
            let (mut matched, mut steps) = (0, present.count);
            for j in same {
                matched += 1;
                steps += runs[now - j].count;
            }
            let is_enough = matched + 1 >= period && steps >= self.needed();
            if is_enough && found.is_none_or(|(most, _)| matched > most) {
                let step = match present.count < past.count {
                    true => past.step,
                    false => runs[before + 1].step,
                };
                found = Some((matched, step));
            }
        }
        found.map(|(_, step)| step)
    }

    fn step(&self) -> Option<Step> {
        if let Some(step) = self.scripted() {
            return Some(step);
        }
        if let Some(step) = self.nested() {
            return Some(step);
        }
        let run = self.runs.last()?;
        (run.count >= self.needed()).then_some(run.step)
    }

    /// What comes next, as far as that can be said.
    pub fn next(&self) -> Option<NextAccess> {
        let Some(last) = self.last else {
            return Some(self.first.unwrap_or(NextAccess { offset: 0, size: 1 }));
        };
        let step = self.step()?;
        let end = i128::from(last.offset) + i128::from(last.size);
        let offset = u64::try_from(end + i128::from(step.gap)).ok()?;
        let size = step.size;
        (offset <= falls::MAX_OFFSET - size.min(falls::MAX_OFFSET))
            .then_some(NextAccess { offset, size })
    }

    /// The next access, cut at the end of what a view shows of a file of `file_size` bytes; `None` if nothing of
    /// it is shown. A writer, which may grow the file, asks with the largest size.
    pub fn next_in(&self, view: &View, file_size: u64) -> Option<NextAccess> {
        let next = self.next()?;
        let shown = view.len_within(file_size.min(falls::MAX_OFFSET));
        let end = next.offset.saturating_add(next.size).min(shown);
        (end > next.offset).then(|| NextAccess {
            size: end - next.offset,
            ..next
        })
    }

    /// What the accesses look like at present.
    pub fn pattern(&self) -> Pattern {
        if self.last.is_none() {
            return Pattern::Nothing;
        }
        if self.nested().is_some() {
            return Pattern::NestedStrided;
        }
        match self.runs.last() {
            Some(run) if run.count >= self.needed() => match run.step {
                Step { gap: 0, .. } => Pattern::Sequential,
                // Backwards is from start to start: the gap also spans the size.
                Step { gap, size } if gap < 0 && gap.unsigned_abs() > size => Pattern::Reverse,
                _ => Pattern::Strided,
            },
            _ => Pattern::Unknown,
        }
    }
}

fn gap(last: NextAccess, offset: u64) -> Option<i64> {
    let end = i128::from(last.offset) + i128::from(last.size);
    i64::try_from(i128::from(offset) - end).ok()
}
