//! A descriptor at a place of a file, ready for accesses.
//!
//! ```text
//!  descriptor, displacement --all bytes from there on--> plain accesses, further on
//!                           --ascends------------------> a side view, which servers know
//!                           --else--------------------->  ranges of the file, one after the other
//! ```
//!
//! Bytes that a descriptor shows twice are read twice. Writing them twice in one access has no meaning that the source gives, and is
//! refused (VP-Z42).

use std::ops::Range;

use border::entry::{Failure, Outcome};
use client::{
    Direction, File, Memory, Places, Sequence, SharedBytes, SharedBytesMut, SideView, View,
};
use layout::access_desc::AccessDesc;

/// Bytes of the file that go in one request of an access in pieces.
const PORTION: u64 = 1 << 20;

/// Runs that are sorted to see whether a write names a byte twice.
const MOST_RUNS: usize = 1 << 20;

/// Memory of the program.
#[derive(Debug)]
pub(crate) enum Buffer {
    /// It is read into.
    Into(SharedBytesMut<'static>),
    /// It is written to the file.
    From(SharedBytes<'static>),
}

impl Buffer {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Buffer::Into(bytes) => bytes.len() as u64,
            Buffer::From(bytes) => bytes.len() as u64,
        }
    }

    pub(crate) fn direction(&self) -> Direction {
        match self {
            Buffer::Into(_) => Direction::Read,
            Buffer::From(_) => Direction::Write,
        }
    }

    /// Moves it at an offset of the file.
    fn at(self, file: &File, offset: u64) -> Outcome<u64> {
        let moved = match self {
            Buffer::Into(bytes) => file.read_at_shared(offset, bytes)?,
            Buffer::From(bytes) => file.write_at_shared(offset, bytes)?,
        };
        Ok(moved as u64)
    }

    /// Has it moved as the memory of a request.
    fn with<R>(self, work: impl FnOnce(Memory<'_>) -> Outcome<R>) -> Outcome<R> {
        let places = Places::bytes(self.len());
        work(match self {
            Buffer::Into(bytes) => Memory::target(bytes, 0, &places)?,
            Buffer::From(bytes) => Memory::source(bytes, 0, &places)?,
        })
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Pattern {
    actual: u64,
    seen: Way,
}

#[derive(Debug)]
enum Way {
    From(u64),
    Through(SideView),
    Scattered(u64, AccessDesc),
}

impl Pattern {
    /// The file as it is.
    pub(crate) const WHOLE: Pattern = Pattern {
        actual: 0,
        seen: Way::From(0),
    };

    pub(crate) fn new(file: &File, displacement: u64, desc: AccessDesc) -> Outcome<Pattern> {
        let actual = desc.actual();
        let seen = match desc.to_periodic(displacement) {
            Ok(bytes) if bytes.is_everything() => Way::From(bytes.displacement()),
            Ok(bytes) => Way::Through(file.side_view(&View::from(bytes))?),
            Err(error) if *error.kind() == layout::LayoutErrorKind::NotMonotone => {
                Way::Scattered(displacement, desc)
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Pattern { actual, seen })
    }

    /// Bytes of the descriptor once.
    pub(crate) fn actual(&self) -> u64 {
        self.actual
    }

    /// Moves memory at a place that counts bytes shown; fewer than asked for only when reading at the end of the file.
    pub(crate) fn access(&self, file: &File, at: u64, buffer: Buffer) -> Outcome<u64> {
        if buffer.len() == 0 {
            // Whether it may is asked all the same.
            return buffer.at(file, 0);
        }
        match &self.seen {
            Way::From(displacement) => match displacement.checked_add(at) {
                Some(offset) => buffer.at(file, offset),
                None => Err(beyond()),
            },
            Way::Through(_) | Way::Scattered(..) if self.actual == 0 => Err(Failure::argument(
                "desc",
                "transfers nothing; give len 0, or a descriptor that shows bytes",
            )),
            Way::Through(side) => buffer.with(|memory| Ok(side.access_at(at, memory)? as u64)),
            Way::Scattered(displacement, desc) => {
                let end = at.checked_add(buffer.len()).ok_or_else(beyond)?;
                let sequence = sequence_of(desc, *displacement, at..end)?;
                if sequence.hull().is_some_and(|hull| hull.start < 0) {
                    let text = "goes back to before the first byte of the file";
                    return Err(Failure::argument("desc", text));
                }
                if buffer.direction().is_write() && shows_twice(&sequence) {
                    let text = "shows a byte of the file twice, which can be read and not written";
                    return Err(Failure::argument("desc", text));
                }
                let ranges = sequence.runs().flat_map(|run| {
                    let start = run.start.unsigned_abs();
                    let end = start + run.len;
                    (start..end)
                        .step_by(PORTION as usize)
                        .map(move |at| at..end.min(at + PORTION))
                });
                buffer.with(|memory| Ok(file.access_ranges(ranges, memory)?))
            }
        }
    }

    /// Bytes shown of a file of so many bytes.
    pub(crate) fn bytes_within(&self, file_bytes: u64) -> Outcome<u64> {
        match &self.seen {
            Way::From(displacement) => Ok(file_bytes.saturating_sub(*displacement)),
            Way::Through(side) => Ok(side.view().len_within(file_bytes)),
            Way::Scattered(..) => Err(Failure::argument(
                "desc",
                "shows bytes out of their order, so none of them is the last; seek from the beginning",
            )),
        }
    }
}

fn beyond() -> Failure {
    Failure::argument("at", "is beyond the largest offset of a file, 2^63 - 1")
}

/// Where the bytes of a descriptor are that a range of it shows, in its order.
fn sequence_of(desc: &AccessDesc, displacement: u64, range: Range<u64>) -> Outcome<Sequence> {
    let (size, tile) = (desc.actual(), desc.to_sequence());
    let pass = |part: Sequence, index: u64| -> Outcome<Sequence> {
        let far = i128::from(index) * i128::from(desc.extent()) + i128::from(displacement);
        let far = i64::try_from(far).map_err(|_| beyond())?;
        Ok(part.shift(far)?)
    };
    let (first, last) = (range.start / size, range.end / size);
    let (head, tail) = (range.start % size, range.end % size);
    if first == last {
        return pass(tile.slice(head..tail), first);
    }
    let mut parts = vec![pass(tile.slice(head..size), first)?];
    if last > first + 1 {
        let passes = tile.repeat(last - first - 1, desc.extent())?;
        parts.push(pass(passes, first + 1)?);
    }
    if tail > 0 {
        parts.push(pass(tile.slice(0..tail), last)?);
    }
    Ok(Sequence::concat(&parts)?)
}

/// Whether a byte is shown twice. Where there are too many runs to compare, it may be.
fn shows_twice(sequence: &Sequence) -> bool {
    if !sequence.has_overlap() {
        return false;
    }
    let mut runs: Vec<Range<i64>> = Vec::new();
    for run in sequence.runs() {
        if runs.len() == MOST_RUNS {
            return true;
        }
        runs.push(run.start..run.end());
    }
    runs.sort_unstable_by_key(|run| run.start);
    runs.windows(2).any(|pair| pair[1].start < pair[0].end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use layout::access_desc::BasicBlock;

    /// Positions of a descriptor, one by one.
    fn positions_naive(desc: &AccessDesc, displacement: u64, range: Range<u64>) -> Vec<i64> {
        range
            .map(|k| desc.position(k).unwrap() + displacement as i64)
            .collect()
    }

    #[test]
    fn ranges_of_a_descriptor_are_its_positions() {
        let back = AccessDesc::new(
            3,
            vec![
                BasicBlock::bytes(10, 1, 4, 0),
                BasicBlock::bytes(-12, 2, 2, 3),
            ],
        );
        let back = back.unwrap();
        assert!(!back.is_monotone() && back.actual() == 8);
        for start in 0..20 {
            for end in start + 1..40 {
                let sequence = sequence_of(&back, 100, start..end).unwrap();
                let mut found = Vec::new();
                for run in sequence.runs() {
                    found.extend(run.start..run.end());
                }
                assert_eq!(found, positions_naive(&back, 100, start..end));
                let mut sorted = found.clone();
                sorted.sort_unstable();
                sorted.dedup();
                assert_eq!(
                    shows_twice(&sequence),
                    sorted.len() < found.len(),
                    "{start}..{end}"
                );
            }
        }
    }
}
