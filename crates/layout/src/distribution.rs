//! One dimension of an HPF distribution: which indices a coordinate of the processor grid owns.
//!
//! Section 8.1 of the specification. Indices are a set on the line `0..extent`; regular
//! distributions take at most two members, `GEN_BLOCK` one, and `INDIRECT` is compressed where the
//! map is regular and a compact list where it is not ([`OwnerRuns`]).
//!
//! ```text
//! extent 10 on 3            0 1 2 3 4 5 6 7 8 9
//! BLOCK                     0 0 0 0 1 1 1 1 2 2
//! CYCLIC                    0 1 2 0 1 2 0 1 2 0
//! CYCLIC(2)                 0 0 1 1 2 2 0 0 1 1
//! GEN_BLOCK(5,1,4)          0 0 0 0 0 1 2 2 2 2
//! ```

use std::sync::Arc;

use falls::{Falls, FallsSet, MAX_OFFSET};

use crate::error::LayoutError;
use crate::owner_runs::OwnerRuns;

/// How the indices of one dimension go to the coordinates of one dimension of the grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// `*`: not distributed, every coordinate has the whole dimension.
    Collapsed,
    /// Blocks of ceil(extent / processors); late processors may be short or empty.
    Block,
    /// Blocks of this length, one each; refused when they do not hold the extent.
    BlockOf(u64),
    /// Index i to processor i mod P.
    Cyclic,
    /// Blocks of this length dealt round robin.
    CyclicOf(u64),
    /// One block per processor, each of its own length.
    GenBlock(BlockLengths),
    /// A processor for every index.
    Indirect(OwnerRuns),
}

impl Distribution {
    /// `GEN_BLOCK` with one length per processor.
    pub fn gen_block(lengths: &[u64]) -> Result<Self, LayoutError> {
        Ok(Distribution::GenBlock(BlockLengths::new(lengths)?))
    }

    /// `INDIRECT` with one processor per index.
    pub fn indirect(processors: &[u64]) -> Self {
        Distribution::Indirect(OwnerRuns::new(processors))
    }

    /// Whether the dimension takes a dimension of the processor grid.
    pub fn is_distributed(&self) -> bool {
        !matches!(self, Distribution::Collapsed)
    }

    /// Whether it suits a dimension of this extent on this many processors.
    pub fn check(&self, extent: u64, processors: u64) -> Result<(), LayoutError> {
        let refuse = |detail: String| Err(LayoutError::argument("distribution", detail));
        if processors == 0 {
            return refuse("on 0 processors; give at least 1".into());
        }
        match self {
            Distribution::BlockOf(0) => refuse("BLOCK(0); blocks have at least 1 index".into()),
            Distribution::BlockOf(len)
                if u128::from(*len) * u128::from(processors) < u128::from(extent) =>
            {
                refuse(format!(
                    "BLOCK({len}) on {processors} processors holds {} of {extent} indices; the block must be {} or more (or use CYCLIC({}))",
                    len * processors,
                    extent.div_ceil(processors),
                    len
                ))
            }
            Distribution::CyclicOf(0) => refuse("CYCLIC(0); blocks have at least 1 index".into()),
            Distribution::GenBlock(lengths) if lengths.count() != processors => refuse(format!(
                "the lengths of GEN_BLOCK number {}, the processors {processors}; give one for each",
                lengths.count()
            )),
            Distribution::GenBlock(lengths) if lengths.total() != extent => refuse(format!(
                "the lengths of GEN_BLOCK add up to {}; they must add up to the extent {extent}",
                lengths.total()
            )),
            Distribution::Indirect(map) if map.len() != extent => refuse(format!(
                "INDIRECT maps {} indices; it must map all {extent} of the extent",
                map.len()
            )),
            Distribution::Indirect(map) if map.owners() > processors => refuse(format!(
                "INDIRECT names processor {}; they are numbered 0 to {}",
                map.owners() - 1,
                processors - 1
            )),
            _ => Ok(()),
        }
    }

    /// The indices that `coordinate` of `processors` owns.
    ///
    /// ```
    /// use layout::Distribution;
    /// let owned = |d: Distribution, c| d.owned(10, 3, c).unwrap().to_string();
    /// assert_eq!(owned(Distribution::Block, 2), "{(8,9,-,1)}");
    /// assert_eq!(owned(Distribution::CyclicOf(2), 1), "{(2,3,6,2)}");
    /// assert_eq!(owned(Distribution::gen_block(&[5, 1, 4]).unwrap(), 1), "{(5,5,-,1)}");
    /// ```
    pub fn owned(
        &self,
        extent: u64,
        processors: u64,
        coordinate: u64,
    ) -> Result<FallsSet, LayoutError> {
        self.check(extent, processors)?;
        if coordinate >= processors {
            return Err(LayoutError::argument(
                "coordinate",
                format!("{coordinate} on {processors} processors"),
            ));
        }
        match self {
            Distribution::Collapsed => segment(0, extent),
            Distribution::Block => block(extent, extent.div_ceil(processors), coordinate),
            Distribution::BlockOf(len) => block(extent, *len, coordinate),
            Distribution::Cyclic => cyclic(extent, 1, processors, coordinate),
            Distribution::CyclicOf(len) => cyclic(extent, *len, processors, coordinate),
            Distribution::GenBlock(lengths) => {
                let (start, len) = lengths.block(coordinate);
                segment(start, len)
            }
            Distribution::Indirect(map) => map.set(coordinate, 1),
        }
    }
}

fn segment(start: u64, len: u64) -> Result<FallsSet, LayoutError> {
    if len == 0 {
        return Ok(FallsSet::empty());
    }
    Ok(FallsSet::segment(start, len)?)
}

fn block(extent: u64, len: u64, coordinate: u64) -> Result<FallsSet, LayoutError> {
    let start = len.saturating_mul(coordinate);
    segment(start, len.min(extent.saturating_sub(start)))
}

/// Whole blocks as one family, and a short last block if it is this coordinate's.
pub(crate) fn cyclic(
    extent: u64,
    len: u64,
    processors: u64,
    coordinate: u64,
) -> Result<FallsSet, LayoutError> {
    let blocks = extent.div_ceil(len);
    if coordinate >= blocks {
        return Ok(FallsSet::empty());
    }
    let count = (blocks - coordinate).div_ceil(processors);
    let last = coordinate + (count - 1) * processors;
    let tail = len.min(extent - last * len);
    let whole = if tail == len { count } else { count - 1 };
    let mut members = Vec::new();
    if whole > 0 {
        let stride = processors.saturating_mul(len); // without meaning when there is one block
        members.push(Falls::family(coordinate * len, len, stride, whole)?);
    }
    if tail < len {
        members.push(Falls::segment(last * len, tail)?);
    }
    Ok(FallsSet::new(members)?.simplify())
}

/// Lengths of consecutive blocks, with their starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockLengths {
    /// Start of every block, and the end of the last.
    bounds: Arc<[u64]>,
}

impl BlockLengths {
    /// Blocks of these lengths, one behind the other; a block may be empty.
    pub fn new(lengths: &[u64]) -> Result<Self, LayoutError> {
        let mut bounds = Vec::with_capacity(lengths.len() + 1);
        let mut end = 0u64;
        bounds.push(0);
        for &len in lengths {
            end = end
                .checked_add(len)
                .filter(|&e| e <= MAX_OFFSET)
                .ok_or_else(|| LayoutError::overflow("lengths"))?;
            bounds.push(end);
        }
        Ok(BlockLengths {
            bounds: bounds.into(),
        })
    }

    /// Number of blocks.
    pub fn count(&self) -> u64 {
        self.bounds.len() as u64 - 1
    }

    /// Sum of the lengths.
    pub fn total(&self) -> u64 {
        self.bounds.last().copied().unwrap_or(0)
    }

    /// Start and length of block `i < count`.
    pub fn block(&self, i: u64) -> (u64, u64) {
        let i = i as usize;
        (self.bounds[i], self.bounds[i + 1] - self.bounds[i])
    }

    /// The lengths.
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.bounds.windows(2).map(|w| w[1] - w[0])
    }
}
