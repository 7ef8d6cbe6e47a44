//! The meeting of two elements: their intersection with its projection on either side.
//!
//! This is MAPPING of the specification (3.9), computed once when a view is set and used by every
//! access after that. Byte number `j` of the intersection, of its projection on the left and of its
//! projection on the right are the same file byte, so a position in that stream is the coordinate
//! on which both ends of a transfer agree.
//!
//! Symbolic where small, lazy where not: if the common period overflows, or writing one period down
//! would exceed the [`Budget`], the meeting keeps only its operands and answers by cursors that
//! solve for the next common byte. The caller does not see which, except through
//! [`Meeting::is_symbolic`].
//!
//! ```
//! use falls::{Meeting, Periodic};
//! let v = Periodic::new(0, 32, "{(0,7,16,2,{(0,1,4,2)})}".parse().unwrap()).unwrap();
//! let s = Periodic::new(0, 32, "{(0,3,8,4,{(0,0,2,2)})}".parse().unwrap()).unwrap();
//! let m = Meeting::new(&v, &s);
//! let runs: Vec<_> = m.runs(0..32).map(|r| (r.file, r.left, r.right, r.len)).collect();
//! assert_eq!(runs, [(0, 0, 0, 1), (16, 4, 4, 1)]);
//! ```

use std::ops::Range;
use std::sync::Arc;

use crate::checked::{MAX_OFFSET, lcm};
use crate::common_byte::{Fuel, next_common_node};
use crate::intersect::{Budget, Work};
use crate::joint::{Joint, JointNode};
use crate::periodic::Periodic;
use crate::project::project;
use crate::segments::Segments;
use crate::set::{Falls, FallsSet, Node};
use crate::steps::{OutOfSteps, Steps};

/// Intersection and both projections of two elements.
#[derive(Clone, Debug)]
pub struct Meeting {
    left: Periodic,
    right: Periodic,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Symbolic(Box<Symbolic>),
    Lazy(Arc<Lazy>),
}

/// The operands as the cursors search them: simplified, and starting at their first byte, so that
/// sparse elements have short blocks and meet where a congruence says.
#[derive(Debug)]
struct Lazy {
    left: Periodic,
    right: Periodic,
    /// Both sides piece by piece, where there are few: a pattern of some far-apart pieces is sparse
    /// only so.
    pieces: (Vec<Periodic>, Vec<Periodic>),
    /// What does not meet within one common period never does.
    period: Option<u64>,
}

#[derive(Clone, Debug)]
struct Symbolic {
    file: Periodic,
    on_left: Periodic,
    on_right: Periodic,
    /// One period; file offsets relative to the common displacement, sides relative to theirs.
    joint: Joint,
}

/// Bytes contiguous in the file and on both sides at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First byte in the file.
    pub file: u64,
    /// Its position on the left side.
    pub left: u64,
    /// Its position on the right side.
    pub right: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Meeting {
    /// Intersects two elements and projects the result on both.
    pub fn new(left: &Periodic, right: &Periodic) -> Self {
        Meeting::with_budget(left, right, Budget::for_sets(left.set(), right.set()))
    }

    /// The meeting inside a window of the file, from 0 to `end`; what it says of later bytes is not
    /// meant.
    ///
    /// An element that does not repeat before `end` needs no common period with the other, so arrays
    /// whose length shares no factor with a stripe stay symbolic.
    pub fn within(left: &Periodic, right: &Periodic, end: u64) -> Self {
        let fit = |side: &Periodic, other: &Periodic| {
            let once = side.displacement().saturating_add(side.period()) >= end;
            let period = if once { stretched(side, other) } else { None };
            period.map_or(side.clone(), |period| {
                Periodic::trusted(side.displacement(), period, side.set().clone())
            })
        };
        let left_fit = fit(left, right);
        let right_fit = fit(right, &left_fit);
        Meeting::new(&left_fit, &right_fit)
    }

    /// [`Meeting::new`] with another budget; `Budget(0)` forces the lazy form.
    pub fn with_budget(left: &Periodic, right: &Periodic, budget: Budget) -> Self {
        // A side that covers everything has any period; where its own is in the way, it goes by bytes.
        let covering = left.is_everything() || right.is_everything();
        let by_bytes = || {
            covering
                .then(|| symbolic(&tightened(left), &tightened(right), budget))
                .flatten()
        };
        let form = match symbolic(left, right, budget).or_else(by_bytes) {
            Some(s) => Form::Symbolic(Box::new(s)),
            None => Form::Lazy(Arc::new(Lazy::new(trimmed(left), trimmed(right)))),
        };
        Meeting {
            left: left.clone(),
            right: right.clone(),
            form,
        }
    }

    /// The left operand.
    pub fn left(&self) -> &Periodic {
        &self.left
    }

    /// The right operand.
    pub fn right(&self) -> &Periodic {
        &self.right
    }

    /// Whether the common period was small enough to write down.
    pub fn is_symbolic(&self) -> bool {
        matches!(self.form, Form::Symbolic(_))
    }

    /// The intersection in the file, when symbolic.
    pub fn file(&self) -> Option<&Periodic> {
        self.symbolic().map(|s| &s.file)
    }

    /// The intersection on the left side (M_V), when symbolic.
    pub fn on_left(&self) -> Option<&Periodic> {
        self.symbolic().map(|s| &s.on_left)
    }

    /// The intersection on the right side (M_S), when symbolic.
    pub fn on_right(&self) -> Option<&Periodic> {
        self.symbolic().map(|s| &s.on_right)
    }

    /// Bytes in one common period, when symbolic.
    pub fn size_per_period(&self) -> Option<u64> {
        self.symbolic().map(|s| s.file.size())
    }

    /// Nodes of the symbolic form; 0 when lazy.
    pub fn node_count(&self) -> u64 {
        self.symbolic().map_or(0, |s| s.joint.node_count())
    }

    /// Whether the two elements have no byte in common.
    ///
    /// Lazy meetings search for the first common byte below `2^63`.
    pub fn is_empty(&self) -> bool {
        match &self.form {
            Form::Symbolic(s) => s.joint.is_empty(),
            Form::Lazy(_) => self.next_byte(0).is_none(),
        }
    }

    /// First common byte at or after file offset `x`.
    pub fn next_byte(&self, x: u64) -> Option<u64> {
        match &self.form {
            Form::Symbolic(s) => s.file.next_byte(x),
            Form::Lazy(lazy) => lazy.next(x, MAX_OFFSET, &mut Fuel::unbounded()),
        }
    }

    /// First common byte inside the file range, found within `steps`.
    ///
    /// A symbolic meeting takes none. Where two patterns interleave without meeting, a lazy one may
    /// have to look at every block; whoever does not trust the patterns gives steps.
    pub fn next_byte_within(
        &self,
        range: Range<u64>,
        steps: &mut Steps,
    ) -> Result<Option<u64>, OutOfSteps> {
        let end = range.end.min(MAX_OFFSET);
        match &self.form {
            Form::Symbolic(s) => Ok(s.file.next_byte(range.start).filter(|&x| x < end)),
            Form::Lazy(lazy) => lazy.next_within(range.start, end, steps),
        }
    }

    /// Common bytes inside the file range, as far as `most`: what is above it is not counted, and
    /// the answer then is some number above it. By rank when symbolic; by runs and within `steps`
    /// when lazy, so that counting costs what the counted bytes are worth and not what the range
    /// describes.
    ///
    /// ```
    /// use falls::{Budget, Meeting, OutOfSteps, Periodic, Steps};
    /// let years = Periodic::new(0, (1 << 61) - 1, "{(0,0,2,576460752303423488)}".parse().unwrap());
    /// let stripes = Periodic::new(0, 131_072, "{(0,65535)}".parse().unwrap());
    /// let meeting = Meeting::with_budget(&years.unwrap(), &stripes.unwrap(), Budget(0));
    /// let mut steps = Steps::new(1 << 16);
    /// assert!(meeting.count_at_most(0..1 << 60, 4096, &mut steps).unwrap() > 4096);
    /// assert_eq!(meeting.count_at_most(0..1 << 60, u64::MAX, &mut steps), Err(OutOfSteps));
    /// ```
    pub fn count_at_most(
        &self,
        range: Range<u64>,
        most: u64,
        steps: &mut Steps,
    ) -> Result<u64, OutOfSteps> {
        if self.is_symbolic() {
            return Ok(self.count(range));
        }
        let mut runs = self.runs(range);
        let mut sum = 0u64;
        while sum <= most
            && let Some(run) = runs.next_within(steps)?
        {
            sum = sum.saturating_add(run.len);
        }
        Ok(sum)
    }

    /// Common bytes inside the file range: by rank when symbolic, by cursor when lazy.
    pub fn count(&self, range: Range<u64>) -> u64 {
        let range = range.start..range.end.min(MAX_OFFSET);
        if range.start >= range.end {
            return 0;
        }
        match &self.form {
            Form::Symbolic(s) => s.file.rank(range.end) - s.file.rank(range.start),
            Form::Lazy(_) => self.runs(range).map(|r| r.len).sum(),
        }
    }

    /// Maximal runs inside the file range, ascending, in constant memory.
    pub fn runs(&self, range: Range<u64>) -> Runs {
        match &self.form {
            Form::Symbolic(s) => Runs {
                left: self.left.clone(),
                right: self.right.clone(),
                cursor: Cursor::Symbolic(s.file.window(range).segments(0..MAX_OFFSET)),
            },
            Form::Lazy(lazy) => Runs {
                left: lazy.left.clone(),
                right: lazy.right.clone(),
                cursor: Cursor::Lazy {
                    lazy: lazy.clone(),
                    at: range.start,
                    end: range.end.min(MAX_OFFSET),
                },
            },
        }
    }

    /// The pieces inside a file range as one tree: absolute file offsets, positions on either side.
    ///
    /// Symbolic meetings cut their period; lazy ones collect the runs of the range, so a caller
    /// with a long range goes window by window.
    pub fn joint(&self, range: Range<u64>) -> Joint {
        match &self.form {
            Form::Symbolic(s) => s.joint_within(range),
            Form::Lazy(_) => {
                let runs = self.runs(range);
                Joint::new(
                    runs.map(|r| JointNode::run(r.file, r.left, r.right, r.len))
                        .collect(),
                )
            }
        }
    }

    fn symbolic(&self) -> Option<&Symbolic> {
        match &self.form {
            Form::Symbolic(s) => Some(s),
            Form::Lazy(_) => None,
        }
    }
}

impl Symbolic {
    fn joint_within(&self, range: Range<u64>) -> Joint {
        let lo = range.start.max(self.file.displacement());
        let hi = range.end.min(MAX_OFFSET);
        let size = self.joint.size();
        if lo >= hi || size == 0 {
            return Joint::new(Vec::new());
        }
        let (c0, c1) = (self.file.rank(lo), self.file.rank(hi));
        if c0 == c1 {
            return Joint::new(Vec::new());
        }
        // Parts of periods are cut before they are moved, so a short range costs what it holds.
        let place = |part: Joint, k: u64, count: u64| {
            let start = [&self.file, &self.on_left, &self.on_right]
                .map(|side| side.displacement() + k * side.period());
            let step = [&self.file, &self.on_left, &self.on_right].map(Periodic::period);
            part.repeated(
                count,
                (start[0], start[1], start[2]),
                (step[0], step[1], step[2]),
            )
        };
        let (k0, k1) = (c0 / size, (c1 - 1) / size);
        let (first, last) = (c0 - k0 * size, c1 - k1 * size);
        if k0 == k1 {
            return place(self.joint.cut(first..last), k0, 1);
        }
        let whole = k0 + u64::from(first > 0)..k1 + u64::from(last == size);
        let mut nodes = Vec::new();
        if first > 0 {
            nodes.extend_from_slice(place(self.joint.cut(first..size), k0, 1).nodes());
        }
        if whole.start < whole.end {
            let middle = place(self.joint.clone(), whole.start, whole.end - whole.start);
            nodes.extend_from_slice(middle.nodes());
        }
        if last < size {
            nodes.extend_from_slice(place(self.joint.cut(0..last), k1, 1).nodes());
        }
        Joint::new(nodes)
    }
}

/// A period for `side`, not shorter than its own, that the period of `other` divides.
fn stretched(side: &Periodic, other: &Periodic) -> Option<u64> {
    let times = side.period().div_ceil(other.period());
    times
        .checked_mul(other.period())
        .filter(|&period| period <= MAX_OFFSET)
}

/// A side with the shortest period, where that is evident: every byte from somewhere on.
fn tightened(side: &Periodic) -> Periodic {
    if !side.is_everything() {
        return side.clone();
    }
    let byte = FallsSet::trusted(vec![Falls::trusted_segment(0, 1)]);
    Periodic::trusted(side.displacement(), 1, byte)
}

/// `None` when the common period or its description is too large.
fn symbolic(left: &Periodic, right: &Periodic, budget: Budget) -> Option<Symbolic> {
    let start = left.displacement().max(right.displacement());
    let period = lcm(left.period(), right.period())?;
    let (a, b) = (left.align(start)?, right.align(start)?);
    let (ka, kb) = (period / a.period(), period / b.period());
    let (a_set, b_set) = (a.extended(ka), b.extended(kb));
    let mut work = Work { left: budget.0 };
    let common = a_set.intersect_with(&b_set, &mut work).ok()?;
    let joint = project(&common, &a_set, &b_set, &mut work).ok()?;
    let left_period = ka.checked_mul(left.size()).filter(|&p| p <= MAX_OFFSET)?;
    let right_period = kb.checked_mul(right.size()).filter(|&p| p <= MAX_OFFSET)?;
    Some(Symbolic {
        file: Periodic::trusted(start, period, common.simplify()),
        on_left: Periodic::trusted(
            left.rank(start),
            left_period.max(1),
            joint.left_set().simplify(),
        ),
        on_right: Periodic::trusted(
            right.rank(start),
            right_period.max(1),
            joint.right_set().simplify(),
        ),
        joint,
    })
}

/// Pieces of one side that a lazy meeting searches one by one.
const FEW_PIECES: usize = 64;

impl Lazy {
    fn new(left: Periodic, right: Periodic) -> Self {
        Lazy {
            period: lcm(left.period(), right.period()),
            pieces: (pieces(&left), pieces(&right)),
            left,
            right,
        }
    }

    /// First common byte in `lo..hi`.
    ///
    /// Dense patterns meet after a few blocks. Where that fails, pairs of pieces are searched, each
    /// by its own congruence; both with growing fuel, since either may be the slow way. Without any
    /// fuel left the answer says nothing.
    fn next(&self, lo: u64, hi: u64, fuel: &mut Fuel<'_>) -> Option<u64> {
        let (a, b) = (&self.left, &self.right);
        let lo = lo.max(a.displacement()).max(b.displacement());
        if lo >= hi || a.is_empty() || b.is_empty() {
            return None;
        }
        if a.is_everything() {
            return b.next_byte(lo).filter(|&x| x < hi);
        }
        if b.is_everything() {
            return a.next_byte(lo).filter(|&x| x < hi);
        }
        let end = self.period.and_then(|p| lo.checked_add(p));
        let hi = end.map_or(hi, |end| hi.min(end));
        let pairs = (self.pieces.0.len() * self.pieces.1.len()) as u64;
        if pairs == 1 {
            return next_common(a, b, lo, hi, fuel);
        }
        let mut steps = 64u64;
        loop {
            let mut part = fuel.take(steps);
            let found = next_common(a, b, lo, hi, &mut part);
            fuel.give_back(part);
            if part.is_left() {
                return found;
            }
            if steps >= 8 * pairs {
                let mut part = fuel.take(steps);
                let mut first = hi;
                for a in &self.pieces.0 {
                    for b in &self.pieces.1 {
                        first = next_common(a, b, lo, first, &mut part).unwrap_or(first);
                    }
                }
                fuel.give_back(part);
                if part.is_left() {
                    return (first < hi).then_some(first);
                }
            }
            if !fuel.is_left() {
                return None;
            }
            steps = steps.saturating_mul(8);
        }
    }

    /// The next byte of both sides, found within steps.
    fn next_within(&self, lo: u64, hi: u64, steps: &mut Steps) -> Result<Option<u64>, OutOfSteps> {
        steps.search(|fuel| self.next(lo, hi, fuel))
    }
}

/// Elements that make up `p`: members opened as long as there are few; `p` itself if there are many.
fn pieces(p: &Periodic) -> Vec<Periodic> {
    if p.set().len() > FEW_PIECES {
        return vec![p.clone()];
    }
    let mut parts = p.set().to_members();
    let opened = |f: &Falls| {
        f.count()
            .saturating_mul(f.inner().map_or(1, |s| s.len() as u64))
    };
    let openable = |f: &Falls| f.count() > 1 || f.inner().is_some();
    while let Some(i) = (0..parts.len())
        .filter(|&i| openable(&parts[i]))
        .min_by_key(|&i| opened(&parts[i]))
    {
        if (parts.len() as u64).saturating_add(opened(&parts[i])) > FEW_PIECES as u64 + 1 {
            break;
        }
        let falls = parts.swap_remove(i);
        for k in 0..falls.count() {
            let block = falls.node().block(k);
            match block.inner {
                None => parts.push(block.to_falls()),
                Some(set) => {
                    parts.extend(set.nodes().map(|n| n.shifted(block.start).to_falls()));
                }
            }
        }
    }
    let alone = |falls: Falls| {
        let start = falls.start();
        // Below the period, so the sum fits; beyond the largest offset it owns no byte.
        let displacement = (p.displacement() + start).min(MAX_OFFSET);
        let set = FallsSet::trusted(vec![falls.shifted_back(start)]);
        Periodic::trusted(displacement, p.period(), set)
    };
    parts.into_iter().map(alone).collect()
}

/// First common byte of two elements in `lo..hi`.
fn next_common(a: &Periodic, b: &Periodic, lo: u64, hi: u64, fuel: &mut Fuel<'_>) -> Option<u64> {
    if lo >= hi {
        return None;
    }
    next_common_node(unrolled(a, hi)?, unrolled(b, hi)?, lo, hi, fuel)
}

/// A set from its first byte on: displacement moved up, set moved down. Ranks are equal.
fn trimmed(p: &Periodic) -> Periodic {
    let set = p.set().simplify();
    let first = set.start();
    match p
        .displacement()
        .checked_add(first)
        .filter(|&d| d <= MAX_OFFSET)
    {
        Some(start) => Periodic::trusted(start, p.period(), set.shifted_back(first)),
        None => p.clone(),
    }
}

/// The element as one node that reaches `hi`. Its last period may lie beyond; sums still fit.
fn unrolled(p: &Periodic, hi: u64) -> Option<Node<'_>> {
    let last = (hi - 1).checked_sub(p.displacement())? / p.period();
    Some(Node {
        start: p.displacement(),
        len: p.set().end(),
        stride: if last == 0 { p.set().end() } else { p.period() },
        count: last + 1,
        unit: p.size(),
        inner: Some(p.set()),
    })
}

/// Iterator of [`Meeting::runs`].
#[derive(Clone, Debug)]
pub struct Runs {
    left: Periodic,
    right: Periodic,
    cursor: Cursor,
}

#[derive(Clone, Debug)]
enum Cursor {
    Symbolic(Segments),
    Lazy { lazy: Arc<Lazy>, at: u64, end: u64 },
}

impl Runs {
    /// The next run, found within `steps`. Once these are used up the cursor stands where it stood
    /// and may be asked again with others.
    pub fn next_within(&mut self, steps: &mut Steps) -> Result<Option<Run>, OutOfSteps> {
        let found = match &self.cursor {
            Cursor::Symbolic(_) => return Ok(self.next()),
            Cursor::Lazy { lazy, at, end } => lazy.next_within(*at, *end, steps)?,
        };
        Ok(found.map(|x| self.lazy_run(x)))
    }

    /// The run that begins at a common byte, which the cursor then stands behind.
    fn lazy_run(&mut self, x: u64) -> Run {
        let Cursor::Lazy { at, end, .. } = &mut self.cursor else {
            unreachable!("symbolic runs come from segments");
        };
        let (left, right) = (self.left.run_from(x, *end), self.right.run_from(x, *end));
        let len = left.min(right);
        *at = x + len;
        self.run(x, len)
    }

    fn run(&self, file: u64, len: u64) -> Run {
        Run {
            file,
            left: self.left.rank(file),
            right: self.right.rank(file),
            len,
        }
    }
}

impl Iterator for Runs {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        match &mut self.cursor {
            Cursor::Symbolic(segments) => {
                let s = segments.next()?;
                Some(self.run(s.start(), s.len()))
            }
            Cursor::Lazy { lazy, at, end } => {
                let x = lazy.next(*at, *end, &mut Fuel::unbounded())?;
                Some(self.lazy_run(x))
            }
        }
    }
}
