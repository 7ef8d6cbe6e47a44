//! Places in memory: where the bytes of an access lie in the user's memory, compiled to be packed and
//! unpacked at speed.
//!
//! ```text
//!  memory   origin
//!   . . . . |a b . . c d . . e f . .       places  2 bytes every 4, three times
//!           0       4       8              stream  a b c d e f
//! ```
//!
//! A [`Sequence`] says what and in which order; [`Places`] is made of it once and kept by callers
//! that use the description again. Bytes in ascending order are a set and go through the kernels of
//! `kernels::Stream`; others are turns of sets and runs, one after the other.
//!
//! Invariants
//! - Memory outside the described bytes is never written, and what is read of it is never used: other
//!   threads may write there meanwhile.
//! - Bounds are compared once per access, by the hull.
//! - Packing and unpacking allocate nothing. Compiling takes time and memory by the nodes of the
//!   sequence, whatever its size.
//!
//! Left to others: which view bytes they are (`file`), how they travel (`access`, `direct`).

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use falls::Periodic;
use kernels::{SharedBytes, SharedBytesMut, Stream};
use layout::Sequence;
use layout::sequence::NodeBody;

use crate::error::{Error, Result};

/// Nodes up to which an unordered sequence is compiled; beyond it goes run by run.
const MOST_NODES: u64 = 1 << 16;

/// Where bytes of an access lie in memory. Cheap to clone; keep it for the next access with the same
/// description.
///
/// ```
/// use client::{Places, Sequence};
/// let every_other = Places::new(&Sequence::bytes(0, 2)?.repeat(3, 4)?);
/// let mut packed = [0; 6];
/// every_other.pack(b"--ab--cd--ef"[..].into(), 2, 0, &mut packed)?;
/// assert_eq!(&packed, b"abcdef");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Places(Form);

#[derive(Clone, Debug)]
enum Form {
    Run { start: i64, len: u64 },
    Shape(Arc<Shape>),
}

#[derive(Debug)]
struct Shape {
    sequence: Sequence,
    hull: Range<i64>,
    order: Order,
    has_overlap: OnceLock<bool>,
}

#[derive(Debug)]
enum Order {
    /// Ascending: a set, whose offset 0 is at `low`.
    Set { low: i64, stream: Stream },
    /// Anything else that is short to write down.
    Turns(Box<[Turn]>),
    /// Anything else.
    Runs,
}

/// Iterations of the same places, one after the other.
#[derive(Debug)]
struct Turn {
    /// Stream position of the first byte, in what it is part of.
    before: u64,
    start: i64,
    count: u64,
    stride: i64,
    /// Bytes of one iteration.
    unit: u64,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Run,
    Set(Stream),
    Turns(Box<[Turn]>),
}

/// What is copied at once: positions of a stream, or one run.
enum Leaf<'a> {
    Run {
        at: i64,
        len: u64,
    },
    Set {
        at: i64,
        stream: &'a Stream,
        positions: Range<u64>,
    },
}

impl Places {
    /// Compiles a description.
    pub fn new(places: &Sequence) -> Places {
        let Some(hull) = places.hull() else {
            return Places::bytes(0);
        };
        if places.is_contiguous() {
            return Places(Form::Run {
                start: hull.start,
                len: places.size(),
            });
        }
        let order = match stream_of(places) {
            Some((low, stream)) => Order::Set { low, stream },
            None if places.node_count() <= MOST_NODES => Order::Turns(turns(places)),
            None => Order::Runs,
        };
        Places(Form::Shape(Arc::new(Shape {
            sequence: places.clone(),
            hull,
            order,
            has_overlap: OnceLock::new(),
        })))
    }

    /// That many neighbouring bytes, from the origin on.
    pub fn bytes(len: u64) -> Places {
        Places(Form::Run { start: 0, len })
    }

    /// Bytes of an access; those that are named twice count twice.
    pub fn size(&self) -> u64 {
        match &self.0 {
            Form::Run { len, .. } => *len,
            Form::Shape(c) => c.sequence.size(),
        }
    }

    /// The smallest range around all of them, from the origin; `None` if there are none.
    pub fn hull(&self) -> Option<Range<i64>> {
        match &self.0 {
            Form::Run { len: 0, .. } => None,
            Form::Run { start, len } => Some(*start..start.saturating_add_unsigned(*len)),
            Form::Shape(c) => Some(c.hull.clone()),
        }
    }

    /// Whether they are one run, or none at all.
    pub fn is_contiguous(&self) -> bool {
        matches!(self.0, Form::Run { .. })
    }

    /// Whether every byte lies behind the one before it. `true` is certain.
    pub fn is_ascending(&self) -> bool {
        match &self.0 {
            Form::Run { .. } => true,
            Form::Shape(c) => matches!(c.order, Order::Set { .. }),
        }
    }

    /// Whether a byte may be named twice. `false` is certain; see [`Sequence::has_overlap`]. Found out
    /// once.
    pub fn has_overlap(&self) -> bool {
        match &self.0 {
            Form::Run { .. } => false,
            Form::Shape(c) => *c.has_overlap.get_or_init(|| c.sequence.has_overlap()),
        }
    }

    /// Copies stream bytes from `from` on out of memory: byte j lies at `memory[origin + select(j)]`.
    pub fn pack(
        &self,
        memory: SharedBytes<'_>,
        origin: usize,
        from: u64,
        packed: &mut [u8],
    ) -> Result<()> {
        self.check(memory.len(), origin)?;
        self.check_range(from, packed.len())?;
        self.gather(memory, origin, from, packed.into());
        Ok(())
    }

    /// Copies bytes to the places of stream bytes from `from` on.
    pub fn unpack(
        &self,
        packed: &[u8],
        memory: SharedBytesMut<'_>,
        origin: usize,
        from: u64,
    ) -> Result<()> {
        self.check(memory.len(), origin)?;
        self.check_range(from, packed.len())?;
        self.scatter(packed.into(), memory, origin, from);
        Ok(())
    }

    fn check_range(&self, from: u64, len: usize) -> Result<()> {
        let is_inside = from
            .checked_add(len as u64)
            .is_some_and(|end| end <= self.size());
        if is_inside {
            return Ok(());
        }
        Err(Error::argument(
            "from",
            format!(
                "{len} bytes from {from} on are more than the {} there are",
                self.size()
            ),
        ))
    }

    /// Refuses memory that does not hold all places.
    pub(crate) fn check(&self, len: usize, origin: usize) -> Result<()> {
        let fits = self.hull().is_none_or(|hull| {
            let origin = origin as i128;
            origin + i128::from(hull.start) >= 0 && origin + i128::from(hull.end) <= len as i128
        });
        if fits {
            return Ok(());
        }
        Err(Error::argument(
            "places",
            format!("reaches outside the memory of {len} bytes around byte {origin}"),
        ))
    }

    /// Where they begin in memory that holds them, if they are one run.
    pub(crate) fn run(&self, origin: usize) -> Option<usize> {
        match &self.0 {
            Form::Run { start, .. } => Some(place(origin, *start)),
            Form::Shape(_) => None,
        }
    }

    /// [`Places::pack`] after the checks.
    pub(crate) fn gather(
        &self,
        memory: SharedBytes<'_>,
        origin: usize,
        from: u64,
        mut packed: SharedBytesMut<'_>,
    ) {
        let mut done = 0;
        self.leaves(from..from + packed.len() as u64, &mut |leaf| match leaf {
            Leaf::Run { at, len } => {
                let at = place(origin, at);
                let len = len as usize;
                let source = memory.range(at..at + len).expect("inside the hull");
                let target = packed.reborrow().range(done..done + len);
                target.expect("as many bytes").copy_from(source);
                done += len;
            }
            Leaf::Set {
                at,
                stream,
                positions,
            } => {
                let len = (positions.end - positions.start) as usize;
                let at = place(origin, at);
                let source = memory.range(at..memory.len()).expect("inside the hull");
                let target = packed.reborrow().range(done..done + len);
                stream
                    .gather_shared(positions, source, 0, target.expect("as many bytes"))
                    .expect("inside the hull");
                done += len;
            }
        });
    }

    /// [`Places::unpack`] after the checks.
    pub(crate) fn scatter(
        &self,
        packed: SharedBytes<'_>,
        mut memory: SharedBytesMut<'_>,
        origin: usize,
        from: u64,
    ) {
        let mut done = 0;
        let end = memory.len();
        self.leaves(from..from + packed.len() as u64, &mut |leaf| match leaf {
            Leaf::Run { at, len } => {
                let at = place(origin, at);
                let len = len as usize;
                let target = memory.reborrow().range(at..at + len);
                let source = packed.range(done..done + len).expect("as many bytes");
                target.expect("inside the hull").copy_from(source);
                done += len;
            }
            Leaf::Set {
                at,
                stream,
                positions,
            } => {
                let len = (positions.end - positions.start) as usize;
                let target = memory.reborrow().range(place(origin, at)..end);
                let source = packed.range(done..done + len).expect("as many bytes");
                let target = target.expect("inside the hull");
                stream
                    .scatter_shared(positions, source, target, 0)
                    .expect("inside the hull");
                done += len;
            }
        });
    }

    /// Hands out what lies at a range of stream positions, in order.
    fn leaves(&self, range: Range<u64>, visit: &mut dyn FnMut(Leaf<'_>)) {
        if range.is_empty() {
            return;
        }
        match &self.0 {
            Form::Run { start, .. } => visit(Leaf::Run {
                at: start + range.start as i64,
                len: range.end - range.start,
            }),
            Form::Shape(c) => match &c.order {
                Order::Set { low, stream } => visit(Leaf::Set {
                    at: *low,
                    stream,
                    positions: range,
                }),
                Order::Turns(turns) => walk(turns, 0, range, visit),
                Order::Runs => {
                    for run in c.sequence.runs_in(range) {
                        visit(Leaf::Run {
                            at: run.start,
                            len: run.len,
                        });
                    }
                }
            },
        }
    }
}

/// A byte of memory that was found inside it.
fn place(origin: usize, at: i64) -> usize {
    origin.wrapping_add_signed(at as isize)
}

/// The stream of an ascending sequence, and where its offset 0 is.
fn stream_of(places: &Sequence) -> Option<(i64, Stream)> {
    if !places.is_monotone() {
        return None;
    }
    let hull = places.hull()?;
    let (low, set) = places.to_set().ok()?;
    let periodic = Periodic::new(0, hull.end.abs_diff(hull.start), set).ok()?;
    Some((low, Stream::new(&periodic)))
}

fn turns(places: &Sequence) -> Box<[Turn]> {
    let mut before = 0;
    let turn = |node: layout::sequence::Node<'_>| {
        let (by, body) = match node.body {
            NodeBody::Bytes(_) => (0, Body::Run),
            NodeBody::Nested(inner) => match stream_of(inner) {
                Some((low, stream)) => (low, Body::Set(stream)),
                None => (0, Body::Turns(turns(inner))),
            },
        };
        let turn = Turn {
            before,
            start: node.start + by,
            count: node.count,
            stride: node.stride,
            unit: node.unit(),
            body,
        };
        before += node.size();
        turn
    };
    places.nodes().map(turn).collect()
}

/// Hands out the stream positions `range` of turns that begin at `base`.
fn walk(turns: &[Turn], base: i64, range: Range<u64>, visit: &mut dyn FnMut(Leaf<'_>)) {
    let first = turns.partition_point(|turn| turn.before <= range.start) - 1;
    for turn in &turns[first..] {
        if turn.before >= range.end {
            return;
        }
        let size = turn.unit * turn.count;
        let mut position = range.start.saturating_sub(turn.before);
        let end = (range.end - turn.before).min(size);
        while position < end {
            let (i, from) = (position / turn.unit, position % turn.unit);
            let to = turn.unit.min(from + (end - position));
            let at = base + turn.start + (i as i64).wrapping_mul(turn.stride);
            match &turn.body {
                Body::Run => visit(Leaf::Run {
                    at: at + from as i64,
                    len: to - from,
                }),
                Body::Set(stream) => visit(Leaf::Set {
                    at,
                    stream,
                    positions: from..to,
                }),
                Body::Turns(inner) => walk(inner, at, from..to, visit),
            }
            position += to - from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequences() -> Vec<Sequence> {
        let bytes = |start, len| Sequence::bytes(start, len).unwrap();
        let column = bytes(0, 3).repeat(7, 20).unwrap();
        let blocks = [(5, 4), (40, 1), (20, 9), (-6, 2), (60, 3)];
        vec![
            Sequence::empty(),
            bytes(-4, 9),
            bytes(2, 8).repeat(9, 16).unwrap(),
            column.repeat(4, 3).unwrap(),
            column.repeat(4, 5).unwrap(),
            bytes(30, 2).repeat(8, -4).unwrap(),
            Sequence::from_blocks(blocks).unwrap(),
            Sequence::from_blocks(blocks)
                .unwrap()
                .repeat(5, 70)
                .unwrap(),
            Sequence::from_blocks([(0, 4), (2, 4), (0, 1)]).unwrap(),
            bytes(3, 5).repeat(3, 0).unwrap(),
        ]
    }

    #[test]
    fn packs_and_unpacks_what_the_sequence_says_from_any_byte_on() {
        for sequence in sequences() {
            let places = Places::new(&sequence);
            assert_eq!(places.size(), sequence.size(), "{sequence:?}");
            assert_eq!(places.hull(), sequence.hull());
            assert_eq!(places.is_ascending(), sequence.is_monotone());
            let memory: Vec<u8> = (0..512).map(|i| (i * 7 % 251) as u8).collect();
            let origin = 50;
            let at = |j| (origin as i64 + sequence.select(j).unwrap()) as usize;
            for from in 0..sequence.size() {
                for to in [
                    from,
                    from + 1,
                    (from + sequence.size()) / 2,
                    sequence.size(),
                ] {
                    let want: Vec<u8> = (from..to).map(|j| memory[at(j)]).collect();
                    let mut packed = vec![0; want.len()];
                    let source = SharedBytes::from_slice(&memory);
                    places.pack(source, origin, from, &mut packed).unwrap();
                    assert_eq!(packed, want, "{sequence:?} {from}..{to}");
                    let mut model = vec![0; 512];
                    for (j, byte) in (from..to).zip(&packed) {
                        model[at(j)] = *byte;
                    }
                    let mut back = vec![0; 512];
                    let target = SharedBytesMut::from_slice(&mut back);
                    places.unpack(&packed, target, origin, from).unwrap();
                    assert_eq!(back, model, "{sequence:?} {from}..{to}");
                }
            }
        }
    }

    #[test]
    fn memory_that_is_too_short_is_refused() {
        let places = Places::new(&Sequence::bytes(-2, 2).unwrap().repeat(3, 4).unwrap());
        let memory = [0; 10];
        let mut packed = [0; 6];
        let mut pack = |origin, from, n: usize| {
            let source = SharedBytes::from_slice(&memory);
            places.pack(source, origin, from, &mut packed[..n])
        };
        assert_eq!(pack(2, 0, 6), Ok(()));
        assert_eq!(pack(2, 4, 2), Ok(()));
        assert!(pack(1, 0, 6).is_err(), "before the memory");
        assert!(pack(3, 0, 6).is_err(), "behind it");
        assert!(pack(2, 4, 3).is_err(), "more than there is");
    }
}
