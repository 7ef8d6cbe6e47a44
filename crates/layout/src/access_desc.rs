//! ViPIOS access descriptors: `Access_Desc` and `basic_block`.
//!
//! A descriptor moves a file pointer. For each block: advance by `offset`; then `repeat` times
//! transfer `count` units (bytes, or whole sub-descriptors) and, *between* repetitions only, jump over
//! `stride` bytes. After all blocks the pointer advances by `skip`. Then the pattern starts again.
//!
//! ```text
//! offset 1, repeat 3, count 2, stride 3, skip 2
//!        .##...##...##..|.##...##...##..|       extent 15, actual 6
//! ```
//!
//! *Extent* is how far one pass moves the pointer, holes included; *actual* is how many bytes it
//! transfers (sections 3.3 and 3.4 of the specification).
//!
//! Repetitions and counts are at least 0. The moves, `offset`, `stride` and `skip`, may be negative:
//! then the pointer goes back, as memory descriptions need it, and the descriptor is a sequence but
//! perhaps no set. Where the pointer only moves forward, a descriptor converts to nested FALLS and
//! back.
//!
//! Invariants: extent, actual and every position fit 64 bits; at most [`MAX_DEPTH`] levels. A
//! descriptor owns its sub-descriptors and cannot be changed once built, so cyclic nesting cannot be
//! expressed; what reads descriptors from elsewhere meets the limit on depth. Zero repeats, zero counts
//! and empty lists of blocks are legal and transfer nothing.
//!
//! Cost: one node for each block and level, whatever the counts; positions are found by descent.

use std::fmt;
use std::sync::Arc;

use falls::{FallsSet, Limits, Periodic, Reason};

use crate::error::{LayoutError, LayoutErrorKind};
use crate::mpi::Datatype;
use crate::sequence::{Builder, NodeBody, Runs, Sequence, Unit};

/// Deepest nesting of descriptors.
pub const MAX_DEPTH: u32 = 64;

/// One regular part of a descriptor. Plain numbers; [`AccessDesc::new`] checks them.
#[derive(Clone, Debug)]
pub struct BasicBlock {
    /// Bytes the pointer moves before the first repetition.
    pub offset: i64,
    /// Repetitions, at least 0.
    pub repeat: i64,
    /// Units transferred in each repetition, at least 0.
    pub count: i64,
    /// Gap in bytes from the end of one repetition to the start of the next.
    pub stride: i64,
    /// What a unit is; `None` is one byte.
    pub subtype: Option<AccessDesc>,
}

impl BasicBlock {
    /// `repeat` times `count` bytes, `stride` bytes between them.
    pub fn bytes(offset: i64, repeat: i64, count: i64, stride: i64) -> Self {
        BasicBlock {
            offset,
            repeat,
            count,
            stride,
            subtype: None,
        }
    }

    /// `repeat` times `count` passes of a sub-descriptor, `stride` bytes between them.
    pub fn nested(offset: i64, repeat: i64, count: i64, stride: i64, subtype: AccessDesc) -> Self {
        BasicBlock {
            subtype: Some(subtype),
            ..BasicBlock::bytes(offset, repeat, count, stride)
        }
    }

    /// Bytes one unit spans, holes included (`sub_count`).
    pub fn sub_count(&self) -> i64 {
        self.subtype.as_ref().map_or(1, AccessDesc::extent)
    }

    /// Bytes one unit transfers (`sub_actual`).
    pub fn sub_actual(&self) -> u64 {
        self.subtype.as_ref().map_or(1, AccessDesc::actual)
    }
}

/// A checked access descriptor. Cheap to clone; see the [module](self) for the meaning.
///
/// ```
/// use layout::access_desc::{AccessDesc, BasicBlock};
/// // The worked example of the source: (3,2,20) over (2,5,5).
/// let inner = AccessDesc::new(0, vec![BasicBlock::bytes(0, 2, 5, 5)])?;
/// let outer = AccessDesc::new(0, vec![BasicBlock::nested(0, 3, 2, 20, inner)])?;
/// assert_eq!((outer.extent(), outer.actual()), (130, 60));
/// assert_eq!((outer.position(23), outer.position(143)), (Some(53), Some(313)));
/// assert_eq!(outer.to_set()?.to_string(), "{(0,29,50,3,{(0,14,15,2,{(0,4,10,2)})})}");
/// # Ok::<(), layout::LayoutError>(())
/// ```
#[derive(Clone)]
pub struct AccessDesc(Arc<Inner>);

struct Inner {
    skip: i64,
    blocks: Box<[BasicBlock]>,
    extent: i64,
    depth: u32,
    sequence: Sequence,
}

impl AccessDesc {
    /// A descriptor of these blocks in order, followed by a move over `skip` bytes.
    pub fn new(skip: i64, blocks: Vec<BasicBlock>) -> Result<Self, LayoutError> {
        let mut builder = Builder::new();
        let (mut cursor, mut depth) = (0i64, 0);
        for (i, block) in blocks.iter().enumerate() {
            if let Some(sub) = &block.subtype {
                depth = depth.max(sub.0.depth);
            }
            cursor = push_block(&mut builder, cursor, block, &format!("blocks[{i}]"))?;
        }
        if depth >= MAX_DEPTH {
            return Err(LayoutError::new(
                LayoutErrorKind::Falls(Reason::Depth),
                "blocks",
                format!("descriptors nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        Ok(AccessDesc(Arc::new(Inner {
            skip,
            blocks: blocks.into(),
            extent: fit("skip", i128::from(cursor) + i128::from(skip))?,
            depth: depth + 1,
            sequence: builder.finish()?,
        })))
    }

    /// Bytes the pointer moves after all blocks.
    pub fn skip(&self) -> i64 {
        self.0.skip
    }

    /// The blocks in order (`basics`; their number is `no_blocks`).
    pub fn blocks(&self) -> &[BasicBlock] {
        &self.0.blocks
    }

    /// Levels of nesting, 1 without subtypes.
    pub fn depth(&self) -> u32 {
        self.0.depth
    }

    /// How far one pass moves the pointer, holes and skip included.
    pub fn extent(&self) -> i64 {
        self.0.extent
    }

    /// Bytes one pass transfers.
    pub fn actual(&self) -> u64 {
        self.0.sequence.size()
    }

    /// Whether the bytes are transferred in ascending order, each once.
    pub fn is_monotone(&self) -> bool {
        self.0.sequence.is_monotone()
    }

    /// The runs of one pass in the order they are transferred, joined where they touch; offsets are
    /// relative to where the pointer starts.
    pub fn walk(&self) -> Runs {
        self.0.sequence.runs()
    }

    /// One pass as an ordered program, relative to where the pointer starts.
    pub fn to_sequence(&self) -> Sequence {
        self.0.sequence.clone()
    }

    /// Where byte `offset` of the descriptor lies, counting only bytes transferred; past the end the
    /// descriptor starts again. `None` when nothing is ever transferred or the position leaves 64
    /// bits.
    pub fn position(&self, offset: u64) -> Option<i64> {
        let within = self.0.sequence.select(offset.checked_rem(self.actual())?)?;
        let pass = i64::try_from(offset / self.actual()).ok()?;
        pass.checked_mul(self.extent())?.checked_add(within)
    }

    /// The bytes of one pass, relative to where the pointer starts. Refused when the pointer goes
    /// back over them, or before its start.
    pub fn to_set(&self) -> Result<FallsSet, LayoutError> {
        let (low, set) = self.monotone()?;
        match u64::try_from(low) {
            Ok(low) => Ok(set.shift(low)?),
            Err(_) => Err(LayoutError::argument(
                "offset",
                format!("the pointer goes back to {low}, before its start"),
            )),
        }
    }

    fn monotone(&self) -> Result<(i64, FallsSet), LayoutError> {
        if !self.is_monotone() {
            return Err(LayoutError::new(
                LayoutErrorKind::NotMonotone,
                "blocks",
                "the pointer goes back over bytes; use the descriptor in memory, as a sequence",
            ));
        }
        self.0.sequence.to_set()
    }

    /// The descriptor used circularly from `displacement` on, period = extent. One that transfers
    /// nothing has no bytes and a period of at least 1. Refused when the bytes do not ascend from pass
    /// to pass.
    pub fn to_periodic(&self, displacement: u64) -> Result<Periodic, LayoutError> {
        if self.actual() == 0 {
            let period = self.extent().max(1).unsigned_abs();
            return Ok(Periodic::new(displacement, period, FallsSet::empty())?);
        }
        let (low, set) = self.monotone()?;
        let period = u64::try_from(self.extent()).unwrap_or(0);
        if set.end() > period {
            return Err(LayoutError::new(
                LayoutErrorKind::NotMonotone,
                "skip",
                format!(
                    "one pass reaches over {} bytes but moves the pointer by {}; passes would interleave",
                    set.end(),
                    self.extent()
                ),
            ));
        }
        // Keep the period where the pointer starts if one pass lies inside it.
        match u64::try_from(low) {
            Ok(low) if low <= period - set.end() => {
                Ok(Periodic::new(displacement, period, set.shift(low)?)?)
            }
            _ => {
                let first = displacement.checked_add_signed(low).ok_or_else(|| {
                    LayoutError::argument(
                        "displacement",
                        format!("{displacement}, but the first byte lies {low} from it"),
                    )
                })?;
                Ok(Periodic::new(first, period, set)?)
            }
        }
    }

    /// The descriptor that transfers `set` and moves the pointer by `extent` in all.
    ///
    /// One block for each member; an inner set becomes a sub-descriptor as long as the block of its
    /// parent.
    ///
    /// ```
    /// use layout::access_desc::AccessDesc;
    /// let desc = AccessDesc::from_set(&"{(3,5,6,5)}".parse().unwrap(), 32)?;
    /// let b = &desc.blocks()[0];
    /// assert_eq!((b.offset, b.repeat, b.count, b.stride, desc.skip()), (3, 5, 3, 3, 2));
    /// # Ok::<(), layout::LayoutError>(())
    /// ```
    pub fn from_set(set: &FallsSet, extent: u64) -> Result<Self, LayoutError> {
        if extent < set.end() {
            return Err(LayoutError::argument(
                "extent",
                format!("{extent} is less than the end of the set, {}", set.end()),
            ));
        }
        AccessDesc::from_sequence(&Sequence::from_set(0, set)?, fit("extent", extent.into())?)
    }

    /// Displacement and descriptor of a periodic set: extent = period.
    pub fn from_periodic(set: &Periodic) -> Result<(u64, Self), LayoutError> {
        let desc = AccessDesc::from_set(set.set(), set.period())?;
        Ok((set.displacement(), desc))
    }

    /// The descriptor that transfers what `sequence` visits, in its order, and moves the pointer by
    /// `extent` in all.
    pub fn from_sequence(sequence: &Sequence, extent: i64) -> Result<Self, LayoutError> {
        let named = "sequence";
        if sequence.node_count() > Limits::DEFAULT.nodes {
            return Err(LayoutError::new(
                LayoutErrorKind::Falls(Reason::Nodes),
                named,
                format!(
                    "{} nodes, the limit is {}",
                    sequence.node_count(),
                    Limits::DEFAULT.nodes
                ),
            ));
        }
        let mut blocks = Vec::with_capacity(sequence.len());
        let mut cursor = 0i128;
        for node in sequence.nodes() {
            let span = fit(named, node.span().into())?;
            let (count, subtype) = match node.body {
                NodeBody::Bytes(_) => (span, None),
                NodeBody::Nested(inner) => (1, Some(AccessDesc::from_sequence(inner, span)?)),
            };
            let stride = if node.count == 1 { span } else { node.stride };
            blocks.push(BasicBlock {
                offset: fit(named, i128::from(node.start) - cursor)?,
                repeat: fit(named, node.count.into())?,
                count,
                stride: fit(named, i128::from(stride) - i128::from(span))?,
                subtype,
            });
            let far = i128::from(node.count - 1) * i128::from(stride);
            cursor = i128::from(node.start) + far + i128::from(span);
        }
        let skip = fit("extent", i128::from(extent) - cursor)?;
        AccessDesc::new(skip, blocks)
    }

    /// The descriptor of an MPI datatype: the type map in its order, tiled by the extent.
    ///
    /// ```
    /// use layout::{AccessDesc, mpi::Datatype};
    /// let t = Datatype::hvector(2, 5, 40, &Datatype::basic(4)?)?;
    /// let d = AccessDesc::from_datatype(&t)?;
    /// let b = &d.blocks()[0];
    /// assert_eq!((b.offset, b.repeat, b.count, b.stride), (0, 2, 20, 20));
    /// # Ok::<(), layout::LayoutError>(())
    /// ```
    pub fn from_datatype(datatype: &Datatype) -> Result<Self, LayoutError> {
        AccessDesc::from_sequence(&datatype.to_sequence(), datatype.extent())
    }
}

/// Appends what one block transfers from `cursor` on; gives where it leaves the pointer.
fn push_block(
    builder: &mut Builder,
    cursor: i64,
    block: &BasicBlock,
    named: &str,
) -> Result<i64, LayoutError> {
    let repeat = not_negative(named, "repeat", block.repeat)?;
    let count = not_negative(named, "count", block.count)?;
    let cursor = fit(named, i128::from(cursor) + i128::from(block.offset))?;
    if repeat == 0 {
        return Ok(cursor);
    }
    let one = i128::from(count) * i128::from(block.sub_count());
    let one = i128::from(fit(named, one)?);
    // The gap is counted between repetitions only, so a single one does not form it.
    let step = if repeat == 1 {
        0
    } else {
        fit(named, one + i128::from(block.stride))?
    };
    let moved = i128::from(repeat - 1) * i128::from(step) + one;
    let end = fit(named, i128::from(cursor) + moved)?;
    let unit = match &block.subtype {
        Some(sub) => sub.0.sequence.repeat(count, sub.extent())?,
        None => Sequence::bytes(0, count)?,
    };
    builder
        .push_repeat(&Unit::of(&unit)?, cursor, repeat, step)
        .map_err(|e| match e.kind() {
            LayoutErrorKind::Overflow => LayoutError::overflow(named),
            _ => e,
        })?;
    Ok(end)
}

impl fmt::Debug for AccessDesc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessDesc")
            .field("skip", &self.0.skip)
            .field("blocks", &self.0.blocks)
            .finish()
    }
}

fn not_negative(block: &str, field: &str, value: i64) -> Result<u64, LayoutError> {
    u64::try_from(value).map_err(|_| {
        LayoutError::argument(
            format!("{block}.{field}"),
            format!("{value} is negative; give 0 or more"),
        )
    })
}

fn fit(argument: &str, value: i128) -> Result<i64, LayoutError> {
    i64::try_from(value).map_err(|_| LayoutError::overflow(argument))
}
