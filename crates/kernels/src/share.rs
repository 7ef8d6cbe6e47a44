//! Owns [`Share`]: the bytes that two elements of a file have in common, as a stream that either
//! side gathers from or scatters to its own memory.
//!
//! ```text
//!  file    0 1 2 3 4 5 6 7 ...    left  takes 0 1 . . 4 5 . .     share  1 5 ...
//!                                 right takes . 1 . 3 . 5 . 7     on left at 1 3, on right at 0 2
//! ```
//!
//! A view and a subfile share bytes; the client holds the view's side, the server the subfile's. Both
//! make the same share, name a range of the *file*, and mean the same bytes in the same order, so
//! nothing but the bytes has to travel.
//!
//! Invariants:
//! * byte n of a file range is the n-th byte of the share in it, ascending, on both sides;
//! * where the meeting is symbolic, finding the ends takes O(depth x log fan-out), and no call allocates, but for copies
//!   of many short rows, which are compiled ([`Program`]) because that is several times faster. A lazy meeting goes by runs: constant memory, time by the number of runs. Whoever did not choose
//!   both sides counts with [`Share::count_at_most`] first; what that allowed, the rest can afford.
//!
//! Left to others: which file range a view range is, and where memory begins (`base`).

use std::ops::Range;

use falls::{MAX_OFFSET, Meeting, OutOfSteps, Periodic, Steps};

use crate::copy::copy_shared;
use crate::disjoint::Disjoint;
use crate::joint::{Hand, compile_joint};
use crate::program::{BoundsError, Program};
use crate::shared::{SharedBytes, SharedBytesMut};
use crate::stream::Stream;

/// The bytes that two elements have in common.
///
/// ```
/// use falls::Periodic;
/// use kernels::Share;
/// // A view of every other pair of bytes, and a subfile of all odd bytes.
/// let view = Periodic::new(0, 4, "{(0,1)}".parse()?)?;
/// let subfile = Periodic::new(0, 2, "{(1,1)}".parse()?)?;
/// let share = Share::new(&view, &subfile);
/// assert_eq!(share.count(0..8), 2);
///
/// let mut packet = [0; 2];
/// share.gather_left(0..8, b"abcd"[..].into(), 0, &mut packet)?;
/// assert_eq!(&packet, b"bd");
/// let mut stored = *b"....";
/// share.scatter_right(0..8, &packet, stored[..].as_mut().into(), 0)?;
/// assert_eq!(&stored, b"b.d.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Share {
    meeting: Meeting,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Symbolic(Box<Streams>),
    /// Everything, from 0 on: copies one run at a time.
    Lazy(Stream),
}

#[derive(Clone, Debug)]
struct Streams {
    file: Stream,
    left: Stream,
    right: Stream,
}

/// Copies from so many bytes on are compiled where rows are short: compiling takes about 5 microseconds.
const COMPILED_FROM: u64 = 32 << 10;
/// Rows are short below so many bytes: finding the next one, some 15 ns, is then worth a loop nest.
const SHORT_ROW: u64 = 1 << 10;
/// Meetings with more nodes take too long to compile for one copy.
const COMPILED_NODES: u64 = 64;

impl Share {
    /// What `left` and `right` have in common.
    pub fn new(left: &Periodic, right: &Periodic) -> Share {
        Share::of(Meeting::new(left, right))
    }

    /// The share of a meeting that exists.
    pub fn of(meeting: Meeting) -> Share {
        let form = match (meeting.file(), meeting.on_left(), meeting.on_right()) {
            (Some(file), Some(left), Some(right)) => Form::Symbolic(Box::new(Streams {
                file: Stream::new(file),
                left: Stream::new(left),
                right: Stream::new(right),
            })),
            _ => Form::Lazy(Stream::new(&Periodic::everything())),
        };
        Share { meeting, form }
    }

    /// The meeting behind it.
    pub fn meeting(&self) -> &Meeting {
        &self.meeting
    }

    /// Bytes in a file range.
    pub fn count(&self, file: Range<u64>) -> u64 {
        match &self.form {
            Form::Symbolic(s) => {
                let positions = s.positions(&file);
                positions.end - positions.start
            }
            Form::Lazy(_) => self.meeting.count(file),
        }
    }

    /// Whether the meeting is written down, so that no question about it takes longer than its description says.
    pub fn is_symbolic(&self) -> bool {
        matches!(self.form, Form::Symbolic(_))
    }

    /// Bytes in a file range, as far as `most`, found within `steps`; see [`Meeting::count_at_most`].
    pub fn count_at_most(
        &self,
        file: Range<u64>,
        most: u64,
        steps: &mut Steps,
    ) -> Result<u64, OutOfSteps> {
        match &self.form {
            Form::Symbolic(_) => Ok(self.count(file)),
            Form::Lazy(_) => self.meeting.count_at_most(file, most, steps),
        }
    }

    /// First byte of a file range, found within `steps`.
    pub fn first_within(
        &self,
        file: Range<u64>,
        steps: &mut Steps,
    ) -> Result<Option<u64>, OutOfSteps> {
        self.meeting.next_byte_within(file, steps)
    }

    /// One past the `n`-th byte of a file range, so that the range up to there has exactly `n`; the
    /// end of the range if it has no more than that.
    pub fn after(&self, file: Range<u64>, n: u64) -> u64 {
        if n == 0 {
            return file.start;
        }
        match &self.form {
            Form::Symbolic(s) => {
                let first = s.file.rank(file.start);
                match first.checked_add(n - 1).and_then(|at| s.file.select(at)) {
                    Some(x) if x < file.end => x + 1,
                    _ => file.end,
                }
            }
            Form::Lazy(_) => {
                let mut left = n;
                for run in self.meeting.runs(file.clone()) {
                    if run.len >= left {
                        return run.file + left;
                    }
                    left -= run.len;
                }
                file.end
            }
        }
    }

    /// First byte of a file range.
    pub fn first(&self, file: Range<u64>) -> Option<u64> {
        match &self.form {
            Form::Symbolic(_) => self.meeting.next_byte(file.start).filter(|&x| x < file.end),
            // A search that ends where the range does: what lies behind may be far away.
            Form::Lazy(_) => self.meeting.runs(file).next().map(|run| run.file),
        }
    }

    /// Where the bytes of a file range begin on the left side, if they lie there in one run.
    pub fn left_run(&self, file: Range<u64>) -> Option<u64> {
        self.run(file, Hand::Left)
    }

    /// Where the bytes of a file range begin on the right side, if they lie there in one run.
    pub fn right_run(&self, file: Range<u64>) -> Option<u64> {
        self.run(file, Hand::Right)
    }

    fn run(&self, file: Range<u64>, hand: Hand) -> Option<u64> {
        match &self.form {
            Form::Symbolic(s) => s.side(hand).contiguous(s.positions(&file)),
            Form::Lazy(_) => {
                let mut runs = self.meeting.runs(file).map(|r| match hand {
                    Hand::Left => r.left..r.left + r.len,
                    Hand::Right => r.right..r.right + r.len,
                });
                let first = runs.next()?;
                let mut end = first.end;
                for run in runs {
                    if run.start != end {
                        return None;
                    }
                    end = run.end;
                }
                Some(first.start)
            }
        }
    }

    /// Hands out the bytes of a file range as runs: where each begins on the left and on the right side, and
    /// how many bytes it has. They ascend; two that touch may be handed out one by one. Stops when `take`
    /// says no.
    ///
    /// ```
    /// use falls::Periodic;
    /// use kernels::Share;
    /// let view = Periodic::new(0, 4, "{(0,1)}".parse()?)?;
    /// let subfile = Periodic::new(0, 8, "{(0,4)}".parse()?)?;
    /// let mut runs = Vec::new();
    /// Share::new(&view, &subfile).each_run(0..16, |left, right, len| {
    ///     runs.push((left, right, len));
    ///     true
    /// });
    /// assert_eq!(runs, [(0, 0, 2), (2, 4, 1), (4, 5, 2), (6, 9, 1)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn each_run(&self, file: Range<u64>, mut take: impl FnMut(u64, u64, u64) -> bool) {
        match &self.form {
            Form::Symbolic(s) => {
                let Range { mut start, end } = s.positions(&file);
                while start < end {
                    let (Some((left, n)), Some((right, m))) =
                        (s.left.block(start), s.right.block(start))
                    else {
                        return;
                    };
                    let len = n.min(m).min(end - start);
                    if !take(left, right, len) {
                        return;
                    }
                    start += len;
                }
            }
            Form::Lazy(_) => {
                for run in self.meeting.runs(file) {
                    if !take(run.left, run.right, run.len) {
                        return;
                    }
                }
            }
        }
    }

    /// Hands out the bytes of a file range as runs of the left side alone: where each begins there, and how many
    /// bytes it has. They ascend; two that touch may be handed out one by one. Stops when `take` says no.
    pub fn each_left_run(&self, file: Range<u64>, mut take: impl FnMut(u64, u64) -> bool) {
        match &self.form {
            Form::Symbolic(s) => {
                let Range { mut start, end } = s.positions(&file);
                while start < end {
                    let Some((left, n)) = s.left.block(start) else {
                        return;
                    };
                    let len = n.min(end - start);
                    if !take(left, len) {
                        return;
                    }
                    start += len;
                }
            }
            Form::Lazy(_) => {
                for run in self.meeting.runs(file) {
                    if !take(run.left, run.len) {
                        return;
                    }
                }
            }
        }
    }

    /// Packs the bytes of a file range from memory of the left side that begins at its byte `base`.
    pub fn gather_left(
        &self,
        file: Range<u64>,
        source: SharedBytes<'_>,
        base: u64,
        packed: &mut [u8],
    ) -> Result<(), BoundsError> {
        self.gather(file, Hand::Left, source, base, packed)
    }

    /// As [`Share::gather_left`], for the right side.
    pub fn gather_right(
        &self,
        file: Range<u64>,
        source: SharedBytes<'_>,
        base: u64,
        packed: &mut [u8],
    ) -> Result<(), BoundsError> {
        self.gather(file, Hand::Right, source, base, packed)
    }

    /// Unpacks the bytes of a file range into memory of the left side that begins at its byte
    /// `base`.
    pub fn scatter_left(
        &self,
        file: Range<u64>,
        packed: &[u8],
        target: SharedBytesMut<'_>,
        base: u64,
    ) -> Result<(), BoundsError> {
        self.scatter(file, Hand::Left, packed, target, base)
    }

    /// As [`Share::scatter_left`], for the right side.
    pub fn scatter_right(
        &self,
        file: Range<u64>,
        packed: &[u8],
        target: SharedBytesMut<'_>,
        base: u64,
    ) -> Result<(), BoundsError> {
        self.scatter(file, Hand::Right, packed, target, base)
    }

    /// As [`Share::gather_left`], into a packet that other processes see.
    pub fn gather_left_shared(
        &self,
        file: Range<u64>,
        source: SharedBytes<'_>,
        base: u64,
        packed: SharedBytesMut<'_>,
    ) -> Result<(), BoundsError> {
        self.gather_to(file, Hand::Left, source, base, packed)
    }

    /// As [`Share::scatter_right`], from a packet that other processes see.
    pub fn scatter_right_shared(
        &self,
        file: Range<u64>,
        packed: SharedBytes<'_>,
        target: SharedBytesMut<'_>,
        base: u64,
    ) -> Result<(), BoundsError> {
        self.scatter_from(file, Hand::Right, packed, target, base)
    }

    /// Copies the bytes of a file range from memory of the left side to memory of the right side, which
    /// begin at their bytes `source_base` and `target_base`. Nothing lies in between.
    pub fn copy_left_to_right(
        &self,
        file: Range<u64>,
        source: SharedBytes<'_>,
        source_base: u64,
        target: SharedBytesMut<'_>,
        target_base: u64,
    ) -> Result<(), BoundsError> {
        let (from, to) = ((source, source_base), (target, target_base));
        self.copy::<false>(file, Hand::Left, from, to)
    }

    /// As [`Share::copy_left_to_right`], the other way.
    pub fn copy_right_to_left(
        &self,
        file: Range<u64>,
        source: SharedBytes<'_>,
        source_base: u64,
        target: SharedBytesMut<'_>,
        target_base: u64,
    ) -> Result<(), BoundsError> {
        let (from, to) = ((source, source_base), (target, target_base));
        self.copy::<false>(file, Hand::Right, from, to)
    }

    /// As [`Share::copy_right_to_left`], as part of a job so large that its targets have left the caches before they are
    /// read: they are written past them. See [`writes_past`](crate::writes_past).
    pub fn stream_right_to_left(
        &self,
        file: Range<u64>,
        source: SharedBytes<'_>,
        source_base: u64,
        target: SharedBytesMut<'_>,
        target_base: u64,
    ) -> Result<(), BoundsError> {
        let (from, to) = ((source, source_base), (target, target_base));
        self.copy::<true>(file, Hand::Right, from, to)
    }

    /// As [`Share::copy_left_to_right`], past the caches; see [`Share::stream_right_to_left`].
    pub fn stream_left_to_right(
        &self,
        file: Range<u64>,
        source: SharedBytes<'_>,
        source_base: u64,
        target: SharedBytesMut<'_>,
        target_base: u64,
    ) -> Result<(), BoundsError> {
        let (from, to) = ((source, source_base), (target, target_base));
        self.copy::<true>(file, Hand::Left, from, to)
    }

    fn copy<const PAST: bool>(
        &self,
        file: Range<u64>,
        from: Hand,
        (source, source_base): (SharedBytes<'_>, u64),
        (mut target, target_base): (SharedBytesMut<'_>, u64),
    ) -> Result<(), BoundsError> {
        match &self.form {
            Form::Symbolic(s) => {
                let positions = s.positions(&file);
                let bases = (source_base, target_base);
                if let Some(program) = self.program::<PAST>(s, &file, &positions, from, bases) {
                    return copy_shared(&program, source, target);
                }
                let (from, to) = s.sides(from);
                match PAST {
                    true => from.copy_past(positions, source, source_base, to, target, target_base),
                    false => from.copy_to(positions, source, source_base, to, target, target_base),
                }
            }
            Form::Lazy(whole) => {
                for run in self.meeting.runs(file) {
                    let at = from.of(run.left, run.right);
                    let to = from.of(run.right, run.left);
                    let start = to.checked_sub(target_base);
                    let inside = start.and_then(|start| {
                        let start = usize::try_from(start).ok()?;
                        let end = start.checked_add(run.len as usize)?;
                        target.reborrow().range(start..end)
                    });
                    match inside {
                        Some(part) => {
                            whole.gather_shared(at..at + run.len, source, source_base, part)?
                        }
                        // Refused by the copy itself, which says what is wrong.
                        None => {
                            whole.fill_zeros(to..to + run.len, target.reborrow(), target_base)?
                        }
                    }
                }
                Ok(())
            }
        }
    }

    /// The copy of a file range as a program, where that is faster than walking along both sides: neither of them lies
    /// in one run, and what they have in common falls into many short rows.
    fn program<const PAST: bool>(
        &self,
        streams: &Streams,
        file: &Range<u64>,
        positions: &Range<u64>,
        from: Hand,
        bases: (u64, u64),
    ) -> Option<Disjoint<Program>> {
        let bytes = positions.end - positions.start;
        if bytes < COMPILED_FROM || self.meeting.node_count() > COMPILED_NODES {
            return None;
        }
        let (source, target) = streams.sides(from);
        let is_short = |thirds: u64| {
            let position = positions.start + bytes / 3 * thirds;
            !source.reaches(target, position, SHORT_ROW)
        };
        let is_run = |side: &Stream| side.contiguous(positions.clone()).is_some();
        if !is_short(1) || !is_short(2) || is_run(source) || is_run(target) {
            return None;
        }
        self.compile::<PAST>(file, from, bases)
    }

    fn compile<const PAST: bool>(
        &self,
        file: &Range<u64>,
        from: Hand,
        bases: (u64, u64),
    ) -> Option<Disjoint<Program>> {
        let job_bytes = if PAST { u64::MAX } else { 0 };
        let joint = self.meeting.joint(file.clone());
        compile_joint(&joint, from, bases, job_bytes).ok()
    }

    fn gather(
        &self,
        file: Range<u64>,
        hand: Hand,
        source: SharedBytes<'_>,
        base: u64,
        packed: &mut [u8],
    ) -> Result<(), BoundsError> {
        self.gather_to(file, hand, source, base, packed.into())
    }

    fn gather_to(
        &self,
        file: Range<u64>,
        hand: Hand,
        source: SharedBytes<'_>,
        base: u64,
        packed: SharedBytesMut<'_>,
    ) -> Result<(), BoundsError> {
        match &self.form {
            Form::Symbolic(s) => {
                let positions = s.positions(&file);
                s.side(hand).gather_shared(positions, source, base, packed)
            }
            Form::Lazy(whole) => {
                let mut rest = packed;
                for run in self.meeting.runs(file) {
                    let at = hand.of(run.left, run.right);
                    let n = (run.len as usize).min(rest.len());
                    let Some((part, behind)) = rest.split_at(n) else {
                        break;
                    };
                    // A packet that is too short is refused by the copy itself.
                    whole.gather_shared(at..at + run.len, source, base, part)?;
                    rest = behind;
                }
                Ok(())
            }
        }
    }

    fn scatter(
        &self,
        file: Range<u64>,
        hand: Hand,
        packed: &[u8],
        target: SharedBytesMut<'_>,
        base: u64,
    ) -> Result<(), BoundsError> {
        self.scatter_from(file, hand, packed.into(), target, base)
    }

    fn scatter_from(
        &self,
        file: Range<u64>,
        hand: Hand,
        packed: SharedBytes<'_>,
        mut target: SharedBytesMut<'_>,
        base: u64,
    ) -> Result<(), BoundsError> {
        match &self.form {
            Form::Symbolic(s) => {
                let positions = s.positions(&file);
                s.side(hand).scatter_shared(positions, packed, target, base)
            }
            Form::Lazy(whole) => {
                let mut from = 0;
                for run in self.meeting.runs(file) {
                    let at = hand.of(run.left, run.right);
                    let n = (run.len as usize).min(packed.len() - from);
                    let Some(part) = packed.range(from..from + n) else {
                        break;
                    };
                    whole.scatter_shared(at..at + run.len, part, target.reborrow(), base)?;
                    from += n;
                }
                Ok(())
            }
        }
    }
}

impl Hand {
    fn of(self, left: u64, right: u64) -> u64 {
        match self {
            Hand::Left => left,
            Hand::Right => right,
        }
    }
}

impl Streams {
    fn positions(&self, file: &Range<u64>) -> Range<u64> {
        let end = file.end.min(MAX_OFFSET);
        let first = self.file.rank(file.start.min(end));
        first..self.file.rank(end)
    }

    /// The side that is read, and the other.
    fn sides(&self, from: Hand) -> (&Stream, &Stream) {
        match from {
            Hand::Left => (&self.left, &self.right),
            Hand::Right => (&self.right, &self.left),
        }
    }

    fn side(&self, hand: Hand) -> &Stream {
        match hand {
            Hand::Left => &self.left,
            Hand::Right => &self.right,
        }
    }
}

#[cfg(test)]
mod tests {
    use falls::Budget;
    use proptest::prelude::*;

    use super::*;

    fn any_element() -> impl Strategy<Value = Periodic> {
        (
            0u64..9,
            proptest::collection::btree_set(0u64..24, 1..12),
            0u64..5,
        )
            .prop_map(|(displacement, bytes, extra)| {
                let bytes: Vec<u64> = bytes.into_iter().collect();
                let set = falls::compress_offsets(&bytes).unwrap();
                Periodic::new(displacement, set.end() + extra, set).unwrap()
            })
    }

    /// Positions of the common bytes of a range on both sides, byte by byte.
    fn common_naive(left: &Periodic, right: &Periodic, file: Range<u64>) -> Vec<(u64, u64, u64)> {
        file.filter_map(|x| Some((x, left.map(x)?, right.map(x)?)))
            .collect()
    }

    /// Columns dealt by eights against columns dealt one by one: rows of two bytes each.
    #[test]
    fn copies_of_many_short_rows_are_compiled_and_right() {
        let element = |set: &str| Periodic::new(0, 4096, set.parse().unwrap()).unwrap();
        let (eights, ones) = (element("{(0,63,256,16)}"), element("{(8,15,32,128)}"));
        let share = Share::new(&eights, &ones);
        let file = 100..1 << 20;
        let Form::Symbolic(streams) = &share.form else {
            panic!("it is small");
        };
        let positions = streams.positions(&file);
        let program = share.program::<false>(streams, &file, &positions, Hand::Left, (0, 0));
        let program = program.expect("rows are short");
        assert_eq!(program.bytes(), share.count(file.clone()));
        let source: Vec<u8> = (0..1usize << 18).map(|i| (i * 7 % 253) as u8).collect();
        let mut target = vec![0; 1 << 18];
        let (from, to) = (source[..].into(), target[..].as_mut().into());
        share
            .copy_left_to_right(file.clone(), from, 0, to, 0)
            .unwrap();
        let mut expected = vec![0; 1 << 18];
        share.each_run(file, |left, right, len| {
            let (l, r, n) = (left as usize, right as usize, len as usize);
            expected[r..r + n].copy_from_slice(&source[l..l + n]);
            true
        });
        assert!(target == expected);
        let short = share.copy_left_to_right(
            100..1 << 20,
            source[..1 << 17].into(),
            0,
            target[..].as_mut().into(),
            0,
        );
        assert!(short.is_err(), "memory that is too short is refused");
        // Long rows are walked.
        let rows = Share::new(&element("{(0,2047)}"), &element("{(1024,4095)}"));
        let Form::Symbolic(streams) = &rows.form else {
            panic!("it is small");
        };
        let positions = streams.positions(&(0..1 << 20));
        let program = rows.program::<false>(streams, &(0..1 << 20), &positions, Hand::Left, (0, 0));
        assert!(program.is_none());
    }

    proptest! {
        #![proptest_config(testkit::laws::config(400))]

        #[test]
        fn both_forms_agree_with_bytes(
            left in any_element(),
            right in any_element(),
            lo in 0u64..120,
            len in 0u64..150,
            n in 0u64..40,
        ) {
            let file = lo..lo + len;
            let naive = common_naive(&left, &right, file.clone());
            let symbolic = Share::new(&left, &right);
            let lazy = Share::of(Meeting::with_budget(&left, &right, Budget(0)));
            prop_assert!(matches!(symbolic.form, Form::Symbolic(_)));
            for share in [symbolic, lazy] {
                prop_assert_eq!(share.count(file.clone()), naive.len() as u64);
                prop_assert_eq!(share.first(file.clone()), naive.first().map(|b| b.0));
                let after = match n {
                    0 => lo,
                    n => naive.get(n as usize - 1).map_or(file.end, |b| b.0 + 1),
                };
                prop_assert_eq!(share.after(file.clone(), n), after);

                let mut runs = Vec::new();
                share.each_run(file.clone(), |left, right, len| {
                    runs.extend((0..len).map(|i| (left + i, right + i)));
                    true
                });
                let expected: Vec<_> = naive.iter().map(|b| (b.1, b.2)).collect();
                prop_assert_eq!(runs, expected);
                let mut runs = Vec::new();
                share.each_left_run(file.clone(), |left, len| {
                    runs.extend(left..left + len);
                    true
                });
                let expected: Vec<_> = naive.iter().map(|b| b.1).collect();
                prop_assert_eq!(runs, expected);

                let memory: Vec<u8> = (0..=255).collect();
                let mut packet = vec![0; naive.len()];
                share.gather_left(file.clone(), memory[..].into(), 0, &mut packet).unwrap();
                let expected: Vec<u8> = naive.iter().map(|b| b.1 as u8).collect();
                prop_assert_eq!(&packet, &expected);
                let mut stored = vec![0u8; 256];
                share.scatter_right(file.clone(), &packet, stored[..].as_mut().into(), 0).unwrap();
                let mut expected = vec![0u8; 256];
                for b in &naive {
                    expected[b.2 as usize] = b.1 as u8;
                }
                prop_assert_eq!(&stored, &expected);
                let mut shared = vec![0u8; naive.len()];
                share.gather_left_shared(file.clone(), memory[..].into(), 0, shared[..].as_mut().into()).unwrap();
                prop_assert_eq!(&shared, &packet);
                let mut again = vec![0u8; 256];
                share.scatter_right_shared(file.clone(), shared[..].into(), again[..].as_mut().into(), 0).unwrap();
                prop_assert_eq!(&again, &stored);
                let mut again = vec![0u8; 256];
                share.stream_left_to_right(file.clone(), memory[..].into(), 0, again[..].as_mut().into(), 0).unwrap();
                prop_assert_eq!(&again, &stored);
                let mut copied = vec![0u8; 256];
                share.copy_left_to_right(file.clone(), memory[..].into(), 0, copied[..].as_mut().into(), 0).unwrap();
                prop_assert_eq!(&copied, &stored);
                if share.is_symbolic() {
                    for compiled in [
                        share.compile::<false>(&file, Hand::Left, (0, 0)).unwrap(),
                        share.compile::<true>(&file, Hand::Left, (0, 0)).unwrap(),
                    ] {
                        let mut by_program = vec![0u8; 256];
                        copy_shared(&compiled, memory[..].into(), by_program[..].as_mut().into()).unwrap();
                        prop_assert_eq!(&by_program, &stored);
                    }
                    if let (Some(first), Some(last)) = (naive.first(), naive.last()) {
                        let bases = (first.1, first.2);
                        let compiled = share.compile::<false>(&file, Hand::Left, bases).unwrap();
                        let mut part = vec![0u8; (last.2 - first.2 + 1) as usize];
                        let source = &memory[first.1 as usize..];
                        copy_shared(&compiled, source.into(), part[..].as_mut().into()).unwrap();
                        prop_assert_eq!(&part[..], &stored[first.2 as usize..=last.2 as usize]);
                    }
                }
                let mut back = vec![0u8; 256];
                share.copy_right_to_left(file.clone(), copied[..].into(), 0, back[..].as_mut().into(), 0).unwrap();
                let mut expected = vec![0u8; 256];
                for b in &naive {
                    expected[b.1 as usize] = b.1 as u8;
                }
                prop_assert_eq!(&back, &expected);
                let mut past = vec![0u8; 256];
                share.stream_right_to_left(file.clone(), copied[..].into(), 0, past[..].as_mut().into(), 0).unwrap();
                prop_assert_eq!(&past, &back);
                if let Some(last) = naive.last() {
                    let short = copied[..last.2 as usize].as_mut();
                    prop_assert!(share.copy_left_to_right(file.clone(), memory[..].into(), 0, short.into(), 0).is_err());
                    let short = &memory[..last.1 as usize];
                    prop_assert!(share.copy_left_to_right(file.clone(), short.into(), 0, copied[..].as_mut().into(), 0).is_err());
                    let first = naive[0];
                    // Memory that begins elsewhere.
                    let mut part = vec![0u8; (last.2 - first.2 + 1) as usize];
                    let source = &memory[first.1 as usize..];
                    share.copy_left_to_right(file.clone(), source.into(), first.1, part[..].as_mut().into(), first.2).unwrap();
                    prop_assert_eq!(&part[..], &stored[first.2 as usize..=last.2 as usize]);
                }
                let mut back = vec![0; naive.len()];
                share.gather_right(file.clone(), stored[..].into(), 0, &mut back).unwrap();
                prop_assert_eq!(&back, &packet);
                if let (Some(first), Some(run)) = (naive.first(), share.left_run(file.clone())) {
                    prop_assert_eq!(run, first.1);
                    prop_assert!(naive.windows(2).all(|w| w[0].1 + 1 == w[1].1));
                } else if !naive.is_empty() {
                    prop_assert!(naive.windows(2).any(|w| w[0].1 + 1 != w[1].1));
                }
                if !naive.is_empty() {
                    let short = naive.len() - 1;
                    prop_assert!(share.scatter_right(file.clone(), &packet[..short], stored[..].as_mut().into(), 0).is_err());
                }
            }
        }
    }
}
