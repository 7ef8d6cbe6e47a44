//! From a set to loops: perfect nests with their kernels, lists of irregular segments, and
//! repetitions around several of those.
//!
//! Levels that continue each other become one, small families between siblings become segments
//! of a list, and short lists that repeat are unrolled, so that what is called once per
//! repetition moves enough to be worth a call.
//!
//! Invariant: operations ascend in memory, and the bytes of each follow those of the one before
//! in the packet.

use std::sync::Arc;

use falls::FallsSet;

use crate::inner::{Kernel, gather, masked, strided};
use crate::program::Dim;

/// One loop level: iterations, and how far each is from the one before, in memory and in the
/// packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) count: u64,
    pub(super) stride: u64,
    pub(super) unit: u64,
    /// The logarithm of `unit`, if it is a power of two.
    pub(super) shift: Option<u8>,
}

impl Level {
    /// The level that does nothing.
    pub(super) const ONCE: Level = Level {
        count: 1,
        stride: 0,
        unit: 0,
        shift: None,
    };

    fn new(count: u64, stride: u64, unit: u64) -> Level {
        Level {
            count,
            stride,
            unit,
            shift: unit.is_power_of_two().then(|| unit.trailing_zeros() as u8),
        }
    }

    /// The iteration that holds byte `position`, and which of its bytes that is. Divisions are
    /// what a short call spends its time with, and most units are powers of two.
    #[inline(always)]
    pub(super) fn split(&self, position: u64) -> (u64, u64) {
        match self.shift {
            Some(shift) => (position >> shift, position & (self.unit - 1)),
            None => (position / self.unit, position % self.unit),
        }
    }
}

/// A perfect nest.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    /// Outermost first.
    pub(super) levels: Box<[Level]>,
    pub(super) len: usize,
    pub(super) gather: Kernel,
    pub(super) scatter: Kernel,
}

/// Lengths of the segments of a list.
#[derive(Clone, Debug)]
pub(super) enum Lens {
    /// All the same.
    Equal(u64),
    /// Bytes before each segment; one more entry than segments.
    Before(Box<[u64]>),
}

/// Irregular segments.
#[derive(Clone, Debug)]
pub(super) struct List {
    pub(super) starts: Box<[u64]>,
    pub(super) lens: Lens,
}

impl List {
    /// The segment that holds byte `position`, and which of its bytes that is; one past the last
    /// segment for the end.
    pub(super) fn find(&self, position: u64) -> (usize, u64) {
        match &self.lens {
            Lens::Equal(len) => ((position / len) as usize, position % len),
            Lens::Before(before) => {
                let index = before.partition_point(|&b| b <= position) - 1;
                (index, position - before[index])
            }
        }
    }

    /// Bytes of segment `index`.
    pub(super) fn len(&self, index: usize) -> u64 {
        match &self.lens {
            Lens::Equal(len) => *len,
            Lens::Before(before) => before[index + 1] - before[index],
        }
    }

    /// Bytes before segment `index`.
    pub(super) fn before(&self, index: usize) -> u64 {
        match &self.lens {
            Lens::Equal(len) => len * index as u64,
            Lens::Before(before) => before[index],
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    Nest(Nest),
    List(List),
    Repeat(Level, Arc<Group>),
}

/// One operation, `start` bytes into what it belongs to.
#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) start: u64,
    pub(super) body: Body,
}

/// A byte of a stream and what follows it regularly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// Where the byte lies.
    pub(super) offset: u64,
    /// Bytes from it to the end of its block.
    pub(super) rest: u64,
    /// Bytes of the whole block.
    pub(super) len: u64,
    /// From this block to the next, if there are more.
    pub(super) stride: u64,
    /// Blocks of the same length that follow at that stride.
    pub(super) more: u64,
}

/// Operations in ascending order.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) ops: Box<[Op]>,
    /// Bytes before each; one more entry than operations.
    pub(super) before: Box<[u64]>,
}

impl Group {
    pub(super) fn bytes(&self) -> u64 {
        self.before[self.ops.len()]
    }

    /// Where byte `position` lies; it is below [`Group::bytes`].
    pub(super) fn place(&self, position: u64) -> u64 {
        let index = match self.ops.len() {
            1 => 0,
            _ => self.before.partition_point(|&b| b <= position) - 1,
        };
        let op = &self.ops[index];
        let mut rest = position - self.before[index];
        let start = op.start;
        match &op.body {
            Body::Nest(nest) => {
                let mut offset = start;
                for level in &nest.levels {
                    let (index, within) = level.split(rest);
                    offset += index * level.stride;
                    rest = within;
                }
                offset + rest
            }
            Body::List(list) => {
                let (index, byte) = list.find(rest);
                start + list.starts[index] + byte
            }
            Body::Repeat(level, body) => {
                let (index, within) = level.split(rest);
                start + index * level.stride + body.place(within)
            }
        }
    }

    /// Where byte `position` lies, and the blocks that follow it at one stride.
    pub(super) fn stretch(&self, position: u64) -> Stretch {
        let index = match self.ops.len() {
            1 => 0,
            _ => self.before.partition_point(|&b| b <= position) - 1,
        };
        let op = &self.ops[index];
        let mut rest = position - self.before[index];
        match &op.body {
            Body::Nest(nest) => {
                let mut offset = op.start;
                let mut last = Level::ONCE;
                let mut more = 0;
                for level in &nest.levels {
                    let (index, within) = level.split(rest);
                    offset += index * level.stride;
                    rest = within;
                    last = *level;
                    more = level.count - 1 - index;
                }
                Stretch {
                    offset: offset + rest,
                    rest: nest.len as u64 - rest,
                    len: nest.len as u64,
                    stride: last.stride,
                    more,
                }
            }
            Body::List(list) => {
                let (index, byte) = list.find(rest);
                let len = list.len(index);
                Stretch {
                    offset: op.start + list.starts[index] + byte,
                    rest: len - byte,
                    len,
                    stride: 0,
                    more: 0,
                }
            }
            Body::Repeat(level, body) => {
                let (index, within) = level.split(rest);
                let inner = body.stretch(within);
                Stretch {
                    offset: op.start + index * level.stride + inner.offset,
                    ..inner
                }
            }
        }
    }

    fn new(drafts: Vec<Draft>) -> Group {
        let mut before = Vec::with_capacity(drafts.len() + 1);
        let mut sum = 0;
        before.push(sum);
        for draft in &drafts {
            sum += draft.bytes();
            before.push(sum);
        }
        Group {
            ops: drafts.into_iter().map(Draft::finish).collect(),
            before: before.into(),
        }
    }
}

/// Families up to this many blocks become segments if they have siblings.
const FLAT_BLOCKS: u64 = 8;

/// If their blocks are at most this long.
const FLAT_LEN: u64 = 256;

/// Lists shorter than this are unrolled to about as many segments where they repeat.
const UNROLLED: u64 = 64;

/// Unless their segments have more bytes than this on average.
const UNROLLED_LEN: u64 = 1024;

/// An operation in the making.
enum Draft {
    Nest {
        start: u64,
        levels: Vec<Level>,
        len: u64,
    },
    /// Start and length of each segment, relative to `start`.
    List {
        start: u64,
        segments: Vec<(u64, u64)>,
    },
    Repeat {
        start: u64,
        level: Level,
        body: Arc<Group>,
    },
}

impl Draft {
    fn bytes(&self) -> u64 {
        match self {
            Draft::Nest { levels, len, .. } => levels
                .first()
                .map_or(*len, |outer| outer.count * outer.unit),
            Draft::List { segments, .. } => segments.iter().map(|segment| segment.1).sum(),
            Draft::Repeat { level, .. } => level.count * level.unit,
        }
    }

    fn moved(mut self, by: u64) -> Draft {
        match &mut self {
            Draft::Nest { start, .. } | Draft::List { start, .. } | Draft::Repeat { start, .. } => {
                *start += by;
            }
        }
        self
    }

    /// Appends the segments of the operation if they are few.
    fn flatten(&self, out: &mut Vec<(u64, u64)>) -> bool {
        match self {
            Draft::Nest { start, levels, len } => {
                let blocks = levels
                    .iter()
                    .fold(1u64, |blocks, level| blocks.saturating_mul(level.count));
                if blocks > 1 && (blocks > FLAT_BLOCKS || *len > FLAT_LEN) {
                    return false;
                }
                push_blocks(*start, levels, *len, out);
                true
            }
            Draft::List { start, segments } => {
                for &(at, len) in segments {
                    push_segment(start + at, len, out);
                }
                true
            }
            Draft::Repeat { .. } => false,
        }
    }

    fn finish(self) -> Op {
        match self {
            Draft::Nest { start, levels, len } => {
                let len = len as usize;
                let stride = levels.last().map_or(len, |level| level.stride as usize) as isize;
                let spread = Dim {
                    count: 2,
                    source: len as isize,
                    target: stride,
                };
                let nest = Nest {
                    levels: levels.into(),
                    len,
                    gather: gather::gather(len, stride),
                    scatter: masked::masked(len, spread).unwrap_or(strided::strided(len)),
                };
                Op {
                    start,
                    body: Body::Nest(nest),
                }
            }
            Draft::List { start, segments } => {
                let starts = segments.iter().map(|segment| segment.0).collect();
                let len = segments[0].1;
                let lens = if segments.iter().all(|segment| segment.1 == len) {
                    Lens::Equal(len)
                } else {
                    let mut sum = 0;
                    let mut before = Vec::with_capacity(segments.len() + 1);
                    before.push(sum);
                    before.extend(segments.iter().map(|segment| {
                        sum += segment.1;
                        sum
                    }));
                    Lens::Before(before.into())
                };
                Op {
                    start,
                    body: Body::List(List { starts, lens }),
                }
            }
            Draft::Repeat { start, level, body } => Op {
                start,
                body: Body::Repeat(level, body),
            },
        }
    }
}

/// Periods until 63 bits are full, from up to `early` periods before offset 0 on. The last one may reach
/// beyond them; `None` if its end does not fit 64.
pub(super) fn periods(period: u64, early: u64) -> Option<u64> {
    let count = i64::MAX as u64 / period + 1 + early;
    count.checked_mul(period).map(|_| count)
}

/// A set repeated `count` times.
pub(super) fn endless(set: &FallsSet, period: u64, count: u64) -> Group {
    Group::new(repeated(drafts(set), 0, count, period))
}

/// The operations of a set.
fn drafts(set: &FallsSet) -> Vec<Draft> {
    if set.is_segment_list() {
        let mut segments = Vec::with_capacity(set.len());
        for node in set.nodes() {
            push_segment(node.start, node.len, &mut segments);
        }
        return list(segments).into_iter().collect();
    }
    let mut all = Vec::with_capacity(set.len());
    for node in set.nodes() {
        let inner = match node.inner {
            Some(inner) if node.unit < node.len => drafts(inner),
            _ => vec![Draft::Nest {
                start: 0,
                levels: Vec::new(),
                len: node.len,
            }],
        };
        all.extend(repeated(inner, node.start, node.count, node.stride));
    }
    if all.len() > 1 { siblings(all) } else { all }
}

/// Collects small siblings into lists.
fn siblings(drafts: Vec<Draft>) -> Vec<Draft> {
    let mut out = Vec::new();
    let mut segments = Vec::new();
    for draft in drafts {
        if !draft.flatten(&mut segments) {
            out.extend(list(std::mem::take(&mut segments)));
            out.push(draft);
        }
    }
    out.extend(list(segments));
    out
}

/// Segments as one operation, if there are any.
fn list(segments: Vec<(u64, u64)>) -> Option<Draft> {
    match segments[..] {
        [] => None,
        [(start, len)] => Some(Draft::Nest {
            start,
            levels: Vec::new(),
            len,
        }),
        _ => Some(Draft::List { start: 0, segments }),
    }
}

/// Appends a segment, or lengthens the last one if they touch.
fn push_segment(start: u64, len: u64, out: &mut Vec<(u64, u64)>) {
    match out.last_mut() {
        Some(last) if last.0 + last.1 == start => last.1 += len,
        _ => out.push((start, len)),
    }
}

fn push_blocks(start: u64, levels: &[Level], len: u64, out: &mut Vec<(u64, u64)>) {
    let [level, inner @ ..] = levels else {
        return push_segment(start, len, out);
    };
    for index in 0..level.count {
        push_blocks(start + index * level.stride, inner, len, out);
    }
}

/// Operations repeated `count` times, `stride` apart, the first time at `start`.
fn repeated(mut drafts: Vec<Draft>, start: u64, count: u64, stride: u64) -> Vec<Draft> {
    if count == 1 || drafts.is_empty() {
        return drafts.into_iter().map(|draft| draft.moved(start)).collect();
    }
    let unit = drafts.iter().map(Draft::bytes).sum();
    let level = Level::new(count, stride, unit);
    match &mut drafts[..] {
        [Draft::Nest { levels, len, .. }] => {
            match levels.first_mut() {
                None if stride == *len => *len *= count,
                Some(outer) if outer.count * outer.stride == stride => outer.count *= count,
                _ => levels.insert(0, level),
            }
            drafts.into_iter().map(|draft| draft.moved(start)).collect()
        }
        [Draft::Repeat { level: outer, .. }] if outer.count * outer.stride == stride => {
            outer.count *= count;
            drafts.into_iter().map(|draft| draft.moved(start)).collect()
        }
        [
            Draft::List {
                start: at,
                segments,
            },
        ] if (segments.len() as u64) < UNROLLED / 2
            && unit / segments.len() as u64 <= UNROLLED_LEN =>
        {
            unrolled(segments, start + *at, level)
        }
        _ => vec![Draft::Repeat {
            start,
            level,
            body: Arc::new(Group::new(drafts)),
        }],
    }
}

/// A short list repeated: a longer list repeated less often, and a list of what is left.
fn unrolled(segments: &[(u64, u64)], start: u64, level: Level) -> Vec<Draft> {
    let times = UNROLLED.div_ceil(segments.len() as u64);
    let copies = |count: u64| {
        let mut out = Vec::with_capacity(segments.len() * count as usize);
        for index in 0..count {
            for &(at, len) in segments {
                push_segment(index * level.stride + at, len, &mut out);
            }
        }
        out
    };
    if level.count < 2 * times {
        let all = list(copies(level.count));
        return all.into_iter().map(|draft| draft.moved(start)).collect();
    }
    let turns = level.count / times;
    let body = list(copies(times)).into_iter().collect();
    let mut out = vec![Draft::Repeat {
        start,
        level: Level::new(turns, level.stride * times, level.unit * times),
        body: Arc::new(Group::new(body)),
    }];
    let rest = list(copies(level.count % times));
    out.extend(rest.map(|draft| draft.moved(start + turns * times * level.stride)));
    out
}
