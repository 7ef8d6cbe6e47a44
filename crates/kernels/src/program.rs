//! Owns [`Program`], the compiled form of a list of nests, and the compiler's front half:
//! flattening and normalising. The back half, which picks loop order, tiling and inner copy, is
//! in `order`; running is in `run`.
//!
//! A program is a list of operations of three kinds:
//! * *loops*: a perfect loop nest, a constant block inside, count and two strides per level;
//! * *list*: irregular pieces, `(source, target, len)` each, in one flat array;
//! * *repeat*: a loop around several operations, for trees whose levels have siblings.
//!
//! Invariants:
//! * operations in order mean what the nests in order mean; where target bytes overlap the
//!   later write wins, unless disjointness was proved (then order is free);
//! * every access lies in `source_span` and `target_span`, which the entry points compare
//!   with the buffers once, so nothing inside checks again;
//! * memory is proportional to the distinct nodes of the input, never to counts: shared
//!   children are compiled once and stay shared.
//!
//! Cost: O(distinct nodes), plus a sort for the proof of disjointness.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::list::{List, Piece};
use crate::nest::{Body, Nest, Span};
use crate::order::{self, Tuning};

/// One loop level: `count` iterations and the step on either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dim {
    pub(crate) count: usize,
    pub(crate) source: isize,
    pub(crate) target: isize,
}

impl Dim {
    /// The level that does nothing: kernels take it where a nest has fewer levels.
    pub(crate) const ONCE: Dim = Dim {
        count: 1,
        source: 0,
        target: 0,
    };
}

/// A perfect nest before its order is chosen: levels outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Perfect {
    pub(crate) source: isize,
    pub(crate) target: isize,
    pub(crate) dims: Vec<Dim>,
    pub(crate) len: usize,
}

/// A loop around several operations.
#[derive(Clone, Debug)]
pub(crate) struct Repeat {
    pub(crate) source: isize,
    pub(crate) target: isize,
    pub(crate) dim: Dim,
    pub(crate) body: Arc<Ops>,
}

/// One operation.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Loops(order::Loops),
    List(List),
    Repeat(Repeat),
}

impl Op {
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Op::Loops(loops) => loops.bytes,
            Op::List(list) => list.bytes(),
            Op::Repeat(repeat) => repeat.dim.count as u64 * repeat.body.bytes(),
        }
    }
}

/// Operations in order, with the number of bytes before each.
#[derive(Clone, Debug)]
pub(crate) struct Ops {
    pub(crate) list: Box<[Op]>,
    /// `starts[i]` is the sum of the bytes of `list[..i]`; one longer than `list`.
    pub(crate) starts: Box<[u64]>,
}

impl Ops {
    fn new(list: Vec<Op>) -> Ops {
        let mut starts = Vec::with_capacity(list.len() + 1);
        let mut sum = 0;
        starts.push(sum);
        for op in &list {
            sum += op.bytes();
            starts.push(sum);
        }
        Ops {
            list: list.into(),
            starts: starts.into(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.starts[self.list.len()]
    }
}

/// A compiled copy: what to move, checked and specialised, ready to run on any two buffers that
/// hold its spans. Building one allocates; running one does not.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) ops: Ops,
    source_span: Span,
    target_span: Span,
    target_disjoint: bool,
}

impl Program {
    /// Compiles a list of nests. Loops are reordered only where the structure shows that no
    /// target byte is written twice.
    pub fn compile(nests: &[Nest]) -> Program {
        Program::compile_for(nests, 0)
    }

    /// Compiles nests that are part of a job of `job_bytes` bytes. Jobs that do not fit the
    /// caches are written past them; a job cut into programs that each would fit, of one
    /// redistribution for example, keeps that only if the programs know of the whole. The hint
    /// changes rates, never results; less than the nests themselves move counts as nothing.
    ///
    /// ```
    /// use kernels::{Nest, Program};
    /// let part = Nest::strided(0, 0, 1 << 14, 1024, 512, 512)?;
    /// assert!(!Program::compile(&[part.clone()]).describe().contains("stream"));
    /// let hinted = Program::compile_for(&[part], 1 << 40);
    /// # if cfg!(target_arch = "x86_64") && std::is_x86_feature_detected!("avx2") {
    /// assert!(hinted.describe().contains("stream"));
    /// # }
    /// # Ok::<(), kernels::NestError>(())
    /// ```
    pub fn compile_for(nests: &[Nest], job_bytes: u64) -> Program {
        Compiler::new(false, job_bytes, Tuning::default()).compile(nests)
    }

    /// Compiles nests whose target sides are known to be disjoint, so that loops may always be
    /// reordered. Private to the crate: the knowledge comes from a proof.
    pub(crate) fn compile_disjoint(nests: &[Nest], job_bytes: u64) -> Program {
        Compiler::new(true, job_bytes, Tuning::default()).compile(nests)
    }

    /// Compiles as if the job were large, so that small tests meet the streaming kernels.
    #[cfg(test)]
    pub(crate) fn compile_streaming(nests: &[Nest]) -> Program {
        let always = Tuning {
            stream_from: 0,
            stream_kernel_from: 0,
        };
        Compiler::new(false, 0, always).compile(nests)
    }

    /// Source bytes read; empty for the empty program.
    pub fn source_span(&self) -> Span {
        self.source_span
    }

    /// Target bytes written; empty for the empty program.
    pub fn target_span(&self) -> Span {
        self.target_span
    }

    /// Bytes moved.
    pub fn bytes(&self) -> u64 {
        self.ops.bytes()
    }

    /// True if the structure of the nests shows that no target byte is written twice.
    pub(crate) fn target_disjoint(&self) -> bool {
        self.target_disjoint
    }

    /// Checks that both spans lie in buffers of these lengths.
    pub fn check(&self, source_len: usize, target_len: usize) -> Result<(), BoundsError> {
        for (side, span, len) in [
            (Side::Source, self.source_span, source_len),
            (Side::Target, self.target_span, target_len),
        ] {
            let end = u64::try_from(span.end).unwrap_or(0);
            if span.start < 0 || end > len as u64 {
                return Err(BoundsError { side, span, len });
            }
        }
        Ok(())
    }

    /// A line per operation, for people: loop order and kernel that were chosen. Long programs
    /// are cut after 100 lines.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        describe_ops(&self.ops, 0, &mut text);
        text
    }
}

/// Most lines that [`Program::describe`] returns.
const DESCRIBED_LINES: usize = 100;

fn describe_ops(ops: &Ops, indent: usize, text: &mut String) {
    use std::fmt::Write;
    for op in &ops.list {
        if text.lines().count() >= DESCRIBED_LINES {
            return;
        }
        let _ = write!(text, "{:indent$}", "");
        let _ = match op {
            Op::Loops(loops) => writeln!(text, "{loops}"),
            Op::List(list) => writeln!(text, "{list}"),
            Op::Repeat(Repeat {
                source,
                target,
                dim,
                ..
            }) => {
                let Dim {
                    count,
                    source: ss,
                    target: ts,
                } = dim;
                writeln!(
                    text,
                    "repeat {count} x ({ss:+}, {ts:+}) at ({source}, {target})"
                )
            }
        };
        if let Op::Repeat(repeat) = op {
            describe_ops(&repeat.body, indent + 2, text);
        }
    }
}

/// Which buffer an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The buffer read.
    Source,
    /// The buffer written.
    Target,
}

/// A buffer does not hold the bytes that a program touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundsError {
    /// The buffer concerned.
    pub side: Side,
    /// What the program touches there.
    pub span: Span,
    /// What the buffer has.
    pub len: usize,
}

impl fmt::Display for BoundsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (side, verb) = match self.side {
            Side::Source => ("source", "reads"),
            Side::Target => ("target", "writes"),
        };
        let (span, len) = (self.span, self.len);
        write!(
            f,
            "the program {verb} bytes {span} of a {side} of {len} bytes"
        )
    }
}

impl std::error::Error for BoundsError {}

/// Siblings of at most this many bytes, up to three at a time, join one flat list under
/// their loop: a piece costs 24 bytes and some nanoseconds, an operation more of both.
const FLAT_LEN: usize = 256;

/// Single blocks up to this many bytes join a list too; longer ones stay operations of their
/// own, which threads can share.
const LISTED_BLOCK: usize = 64 << 10;

/// Something the compiler has not decided yet: a perfect nest, or a finished operation.
enum Draft {
    Perfect(Perfect),
    Repeat(Repeat),
}

struct Compiler {
    proved: bool,
    tuning: Tuning,
    job_bytes: u64,
    shared: HashMap<*const Nest, Arc<Ops>>,
}

impl Compiler {
    fn new(proved: bool, job_bytes: u64, tuning: Tuning) -> Compiler {
        Compiler {
            proved,
            tuning,
            job_bytes,
            shared: HashMap::new(),
        }
    }

    fn compile(mut self, nests: &[Nest]) -> Program {
        let empty = Span { start: 0, end: 0 };
        let spans =
            |pick: fn(&Nest) -> Span| nests.iter().map(pick).reduce(Span::join).unwrap_or(empty);
        let (source_span, target_span) = (spans(Nest::source_span), spans(Nest::target_span));
        let bytes = nests
            .iter()
            .fold(0u64, |sum, nest| sum.saturating_add(nest.bytes()));
        self.job_bytes = self.job_bytes.max(bytes);
        let target_disjoint = self.proved || siblings_disjoint(nests, &mut HashMap::new());
        let drafts = self.drafts(nests);
        let ops = self.finish(drafts);
        Program {
            ops,
            source_span,
            target_span,
            target_disjoint,
        }
    }

    fn drafts(&mut self, nests: &[Nest]) -> Vec<Draft> {
        let mut drafts: Vec<Draft> = Vec::with_capacity(nests.len());
        for nest in nests {
            let draft = self.draft(nest);
            // Neighbours that continue each other on both sides are one block.
            if let (Some(Draft::Perfect(last)), Draft::Perfect(next)) = (drafts.last_mut(), &draft)
                && last.dims.is_empty()
                && next.dims.is_empty()
                && last.source + last.len as isize == next.source
                && last.target + last.len as isize == next.target
            {
                last.len += next.len;
                continue;
            }
            drafts.push(draft);
        }
        drafts
    }

    fn draft(&mut self, nest: &Nest) -> Draft {
        let (source, target) = (nest.source() as isize, nest.target() as isize);
        let dim = Dim {
            count: nest.count() as usize,
            source: nest.source_stride() as isize,
            target: nest.target_stride() as isize,
        };
        let children = match nest.body() {
            Body::Bytes(len) => {
                let dims = if dim.count > 1 { vec![dim] } else { vec![] };
                return Draft::Perfect(Perfect {
                    source,
                    target,
                    dims,
                    len: *len as usize,
                });
            }
            Body::Nested(children) => children,
        };
        let key = children.as_ptr();
        if let Some(body) = self.shared.get(&key) {
            return Draft::Repeat(Repeat {
                source,
                target,
                dim,
                body: Arc::clone(body),
            });
        }
        let mut drafts = self.drafts(children);
        if let [Draft::Perfect(_)] = drafts[..] {
            let Some(Draft::Perfect(mut inner)) = drafts.pop() else {
                unreachable!()
            };
            inner.source += source;
            inner.target += target;
            if dim.count > 1 {
                inner.dims.insert(0, dim);
            }
            return Draft::Perfect(inner);
        }
        let body = Arc::new(self.finish(drafts));
        if Arc::strong_count(children) > 1 {
            self.shared.insert(key, Arc::clone(&body));
        }
        Draft::Repeat(Repeat {
            source,
            target,
            dim,
            body,
        })
    }

    /// Turns drafts into operations: small irregular ones are collected into lists.
    fn finish(&self, drafts: Vec<Draft>) -> Ops {
        let mut ops = Vec::new();
        let mut pieces: Vec<Piece> = Vec::new();
        let alone = drafts.len() == 1;
        for draft in drafts {
            match draft {
                Draft::Perfect(perfect) if !alone && is_flat(&perfect) => {
                    push_pieces(&perfect, &mut pieces);
                }
                Draft::Perfect(perfect) => {
                    flush(&mut pieces, &mut ops);
                    let proved = self.proved;
                    ops.push(Op::Loops(order::Loops::choose(
                        perfect,
                        proved,
                        self.job_bytes,
                        self.tuning,
                    )));
                }
                Draft::Repeat(repeat) => {
                    flush(&mut pieces, &mut ops);
                    let plain = repeat.dim.count == 1 && repeat.source == 0 && repeat.target == 0;
                    // Inlining a shared body again and again could multiply the program.
                    if plain && Arc::strong_count(&repeat.body) == 1 {
                        ops.extend(repeat.body.list.iter().cloned());
                    } else {
                        ops.push(Op::Repeat(repeat));
                    }
                }
            }
        }
        flush(&mut pieces, &mut ops);
        Ops::new(ops)
    }
}

/// A single block that is not long, or a handful of them.
fn is_flat(perfect: &Perfect) -> bool {
    match perfect.dims[..] {
        [] => perfect.len <= LISTED_BLOCK,
        [dim] => perfect.len <= FLAT_LEN && dim.count <= 3,
        _ => false,
    }
}

fn push_pieces(perfect: &Perfect, pieces: &mut Vec<Piece>) {
    let dim = perfect.dims.first().copied().unwrap_or(Dim::ONCE);
    for index in 0..dim.count as isize {
        pieces.push(Piece {
            source: perfect.source + index * dim.source,
            target: perfect.target + index * dim.target,
            len: perfect.len,
        });
    }
}

fn flush(pieces: &mut Vec<Piece>, ops: &mut Vec<Op>) {
    if !pieces.is_empty() {
        ops.push(Op::List(List::new(std::mem::take(pieces))));
    }
}

/// True if the structure shows that no target byte is written twice: siblings have disjoint
/// spans, and every stride is at least the extent of what it repeats once levels are sorted.
///
/// ```text
///  proved:      AAAA BB AAAA BB AAAA BB      siblings A and B apart, stride over both
///  not proved:  ABABAB                       interleaved siblings (disjoint all the same)
/// ```
/// Sound, not complete: interleaved siblings come with the proof of `falls` instead.
/// `known` remembers lists of children that several nodes share.
fn siblings_disjoint(nests: &[Nest], known: &mut HashMap<*const Nest, bool>) -> bool {
    if let Some(answer) = known.get(&nests.as_ptr()) {
        return *answer;
    }
    let answer = nests
        .iter()
        .all(|nest| nest_disjoint(nest, &mut Vec::new(), known))
        && spans_disjoint(nests);
    known.insert(nests.as_ptr(), answer);
    answer
}

fn spans_disjoint(nests: &[Nest]) -> bool {
    let mut spans: Vec<Span> = nests.iter().map(Nest::target_span).collect();
    if !spans.windows(2).all(|pair| pair[0].end <= pair[1].start) {
        spans.sort_unstable_by_key(|span| span.start);
    }
    spans.windows(2).all(|pair| pair[0].end <= pair[1].start)
}

/// As above for one nest; `levels` holds the loops around it that have a single child each.
fn nest_disjoint(
    nest: &Nest,
    levels: &mut Vec<(u64, u64)>,
    known: &mut HashMap<*const Nest, bool>,
) -> bool {
    if nest.count() > 1 {
        levels.push((nest.target_stride().unsigned_abs(), nest.count()));
    }
    let extent = match nest.body() {
        Body::Bytes(len) => *len,
        Body::Nested(children) => match &children[..] {
            [child] => return nest_disjoint(child, levels, known),
            siblings => {
                if !siblings_disjoint(siblings, known) {
                    return false;
                }
                let spans = siblings.iter().map(Nest::target_span);
                spans.reduce(Span::join).map_or(0, Span::len)
            }
        },
    };
    levels.sort_unstable();
    let mut reached = u128::from(extent);
    for &(stride, count) in levels.iter() {
        if u128::from(stride) < reached {
            return false;
        }
        reached += u128::from(stride) * u128::from(count - 1);
    }
    true
}
