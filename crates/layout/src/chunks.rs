//! Chunk grids: an array cut into boxes, regular or with lengths of their own along each dimension.
//!
//! Section 8.6 of the specification. A chunk has two sides: the bytes of the array that lie in it,
//! and the places of the same bytes inside the stored chunk. Stored chunks of a regular grid have
//! the full shape, so chunks at the edge are padded. Byte j of one side is byte j of the other.
//!
//! ```text
//! u8[3,5] chunks(2,3)       0 0 0 1 1        stored chunk 1    1 1 .
//!                           0 0 0 1 1                          1 1 .
//!                           2 2 2 3 3
//! ```
//!
//! Chunks are numbered in C order of their indices, whatever the order of the array. They are
//! elements by themselves, or they are dealt round robin over servers ([`ChunkGrid::over`]).
//!
//! Cost: one chunk is a slice, a few nodes. What a server has repeats along every dimension after
//! as many chunks as there are servers at most, so it depends on servers and dimensions, not on the
//! number of chunks of a regular grid.

use std::collections::HashMap;

use falls::{FallsSet, Segment};

use crate::array::{ArrayType, Elements, check_element, counted, product, simplified, spread};
use crate::distribution::{BlockLengths, cyclic};
use crate::error::{LayoutError, LayoutErrorKind};
use crate::slice::{Slice, SliceAxis};
use crate::stripe::Servers;

/// How one dimension is cut.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ChunkAxis {
    /// Chunks of this length; the last one is padded.
    Regular(u64),
    /// A length for every chunk; only the last one may reach over the edge.
    Lengths(BlockLengths),
}

impl ChunkAxis {
    /// Chunks of these lengths.
    pub fn lengths(lengths: &[u64]) -> Result<Self, LayoutError> {
        Ok(ChunkAxis::Lengths(BlockLengths::new(lengths)?))
    }

    fn check(&self, extent: u64) -> Result<(), LayoutError> {
        let refuse = |detail: String| Err(LayoutError::argument("chunks", detail));
        match self {
            ChunkAxis::Regular(0) => refuse("a length of 0; give at least 1".into()),
            ChunkAxis::Regular(_) => Ok(()),
            ChunkAxis::Lengths(lengths) => {
                if let Some(i) = lengths.lengths().position(|len| len == 0) {
                    return refuse(format!("length {i} is 0; give at least 1"));
                }
                if lengths.total() < extent {
                    return refuse(format!(
                        "the lengths add up to {}, less than the extent {extent}",
                        lengths.total()
                    ));
                }
                let begins = lengths.count().checked_sub(1).map(|i| lengths.block(i).0);
                if extent > 0 && begins.is_some_and(|start| start >= extent) {
                    return refuse(format!(
                        "the last chunk begins at {}, outside the extent of {extent}; leave it out",
                        begins.unwrap_or(0)
                    ));
                }
                Ok(())
            }
        }
    }

    /// Number of chunks along an extent.
    fn count(&self, extent: u64) -> u64 {
        match self {
            _ if extent == 0 => 0,
            ChunkAxis::Regular(len) => extent.div_ceil(*len),
            ChunkAxis::Lengths(lengths) => lengths.count(),
        }
    }

    /// Start and stored length of chunk `i < count`.
    fn chunk(&self, i: u64) -> (u64, u64) {
        match self {
            ChunkAxis::Regular(len) => (i * len, *len),
            ChunkAxis::Lengths(lengths) => lengths.block(i),
        }
    }
}

/// How an array is cut into chunks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChunkGrid {
    axes: Vec<ChunkAxis>,
}

impl ChunkGrid {
    /// A grid from its dimensions.
    pub fn new(axes: impl Into<Vec<ChunkAxis>>) -> Self {
        ChunkGrid { axes: axes.into() }
    }

    /// A grid of equal chunks.
    pub fn regular(lengths: &[u64]) -> Self {
        ChunkGrid {
            axes: lengths.iter().map(|&len| ChunkAxis::Regular(len)).collect(),
        }
    }

    /// How every dimension is cut.
    pub fn axes(&self) -> &[ChunkAxis] {
        &self.axes
    }

    /// Cuts an array.
    ///
    /// ```
    /// use layout::ChunkGrid;
    /// let chunks = ChunkGrid::regular(&[2, 3]).on(&"u8[3,5]".parse().unwrap()).unwrap();
    /// assert_eq!(chunks.counts(), [2, 2]);
    /// assert_eq!(chunks.element(1).unwrap().to_string(), "{(3,4,5,2)}");
    /// assert_eq!(chunks.padded(1).unwrap().set.to_string(), "{(0,1,3,2)}");
    /// ```
    pub fn on(&self, array: &ArrayType) -> Result<Chunks, LayoutError> {
        if self.axes.len() != array.dimensions() {
            return Err(LayoutError::argument(
                "chunks",
                format!(
                    "{} for an array of {}; give one for each",
                    counted(self.axes.len(), "length"),
                    counted(array.dimensions(), "dimension")
                ),
            ));
        }
        let mut counts = Vec::with_capacity(self.axes.len());
        for (d, (axis, &extent)) in self.axes.iter().zip(array.extents()).enumerate() {
            axis.check(extent)
                .map_err(|e| LayoutError::argument(format!("chunks[{d}]"), e.detail()))?;
            counts.push(axis.count(extent));
        }
        let count = product(counts.iter().copied(), "chunks")?;
        Ok(Chunks {
            grid: self.clone(),
            array: array.clone(),
            counts,
            count,
        })
    }

    /// Cuts an array and deals the chunks over servers.
    pub fn over(&self, servers: &Servers, array: &ArrayType) -> Result<DealtChunks, LayoutError> {
        Ok(DealtChunks {
            chunks: self.on(array)?,
            servers: servers.clone(),
        })
    }
}

/// The places of a chunk's bytes in the stored chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaddedChunk {
    /// The stored chunk as an array, padding included.
    pub stored: ArrayType,
    /// The bytes of it that are bytes of the array.
    pub set: FallsSet,
}

/// The chunks of an array, each computed when it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunks {
    grid: ChunkGrid,
    array: ArrayType,
    counts: Vec<u64>,
    count: u64,
}

impl Chunks {
    /// Bytes of the array.
    pub fn period(&self) -> u64 {
        self.array.bytes()
    }

    /// Number of chunks along every dimension.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of chunks.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Index of chunk `number` along every dimension; the last varies fastest.
    pub fn index(&self, number: u64) -> Result<Vec<u64>, LayoutError> {
        check_element(number, self.count)?;
        let mut index = vec![0; self.counts.len()];
        let mut rest = number;
        for d in (0..index.len()).rev() {
            index[d] = rest % self.counts[d];
            rest /= self.counts[d];
        }
        Ok(index)
    }

    /// The bytes of the array in chunk `number`.
    pub fn element(&self, number: u64) -> Result<FallsSet, LayoutError> {
        let index = self.index(number)?;
        let mut axes = Vec::with_capacity(index.len());
        for (d, &i) in index.iter().enumerate() {
            let (start, _, len) = self.chunk(d, i);
            axes.push(SliceAxis::counted(start, len, 1)?);
        }
        Slice::new(axes).on(&self.array)
    }

    /// The extents of chunk `number` inside the array.
    pub fn extents(&self, number: u64) -> Result<Vec<u64>, LayoutError> {
        let index = self.index(number)?;
        let along = index.iter().enumerate();
        Ok(along.map(|(d, &i)| self.chunk(d, i).2).collect())
    }

    /// The bytes of all chunks.
    pub fn elements(&self) -> Result<Elements, LayoutError> {
        Elements::collect(self.period(), self.count, |number| self.element(number))
    }

    /// Where the bytes of chunk `number` are in the stored chunk, which has the order of the array.
    pub fn padded(&self, number: u64) -> Result<PaddedChunk, LayoutError> {
        let index = self.index(number)?;
        let (mut extents, mut axes) = (Vec::new(), Vec::new());
        for (d, &i) in index.iter().enumerate() {
            let (_, stored, len) = self.chunk(d, i);
            extents.push(stored);
            axes.push(SliceAxis::counted(0, len, 1)?);
        }
        let stored = ArrayType::new(self.array.element(), extents, self.array.order())?;
        let set = Slice::new(axes).on(&stored)?;
        Ok(PaddedChunk { stored, set })
    }

    /// Start, stored length and length inside the array of chunk `i` along dimension `d`.
    fn chunk(&self, d: usize, i: u64) -> (u64, u64, u64) {
        let (start, stored) = self.grid.axes[d].chunk(i);
        (start, stored, stored.min(self.array.extents()[d] - start))
    }
}

/// Chunks dealt round robin: chunk k belongs to the server at index (start + k) mod count.
///
/// ```
/// use layout::{ChunkGrid, Servers};
/// let dealt = ChunkGrid::regular(&[2, 2]).over(&Servers::first(2, 0).unwrap(), &"u8[4,6]".parse().unwrap());
/// // 0 0 1 1 0 0
/// // 0 0 1 1 0 0
/// // 1 1 0 0 1 1
/// // 1 1 0 0 1 1
/// assert_eq!(dealt.unwrap().element(0).unwrap().size(), 12);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DealtChunks {
    chunks: Chunks,
    servers: Servers,
}

impl DealtChunks {
    /// Bytes of the array.
    pub fn period(&self) -> u64 {
        self.chunks.period()
    }

    /// Number of servers.
    pub fn count(&self) -> u64 {
        self.servers.count()
    }

    /// The chunks.
    pub fn chunks(&self) -> &Chunks {
        &self.chunks
    }

    /// The servers.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// What the server at `index` has of the array.
    pub fn element(&self, index: u64) -> Result<FallsSet, LayoutError> {
        check_element(index, self.count())?;
        if self.period() == 0 {
            return Ok(FallsSet::empty());
        }
        Deal::new(&self.chunks, self.count()).element(self.servers.first_block(index))
    }

    /// What every server has of the array.
    pub fn elements(&self) -> Result<Elements, LayoutError> {
        if self.period() == 0 {
            return Elements::collect(0, self.count(), |_| Ok(FallsSet::empty()));
        }
        let mut deal = Deal::new(&self.chunks, self.count());
        Elements::collect(self.period(), self.count(), |index| {
            deal.element(self.servers.first_block(index))
        })
    }
}

/// Sets of chunks whose number leaves a given rest when divided by `modulus`.
///
/// A chunk's number is the sum of its indices times their weights. Dimension by dimension, from the
/// slowest in the file, chunk `i` contributes `i * weight`, and the faster dimensions must supply
/// what remains. The remainders repeat after `modulus / gcd(modulus, weight)` chunks, and so does
/// the pattern. Sets for equal remainders are computed once and shared.
struct Deal<'a> {
    chunks: &'a Chunks,
    modulus: u64,
    levels: Vec<Level>,
    known: HashMap<(usize, u64), FallsSet>,
    /// Chunks that may still be looked at for the present element.
    visits_left: u64,
}

/// Chunks looked at, at most, for what one server has.
const MAX_VISITS: u64 = 1 << 22;

/// One dimension, in the order of nesting.
#[derive(Clone, Copy)]
struct Level {
    dimension: usize,
    /// Bytes from one index to the next.
    step: u64,
    /// What a chunk counts in the numbering, modulo the number of servers.
    weight: u64,
}

impl<'a> Deal<'a> {
    fn new(chunks: &'a Chunks, modulus: u64) -> Self {
        let dimensions = chunks.counts.len();
        let mut weights = vec![1 % modulus; dimensions];
        for d in (1..dimensions).rev() {
            weights[d - 1] = mul_mod(weights[d], chunks.counts[d], modulus);
        }
        let mut step = chunks.array.element().size();
        let mut levels = Vec::with_capacity(dimensions);
        for d in chunks.array.order().fastest_first(dimensions) {
            levels.push(Level {
                dimension: d,
                step,
                weight: weights[d],
            });
            step *= chunks.array.extents()[d];
        }
        levels.reverse();
        Deal {
            chunks,
            modulus,
            levels,
            known: HashMap::new(),
            visits_left: 0,
        }
    }

    /// The chunks whose numbers leave `rest`.
    fn element(&mut self, rest: u64) -> Result<FallsSet, LayoutError> {
        self.visits_left = MAX_VISITS;
        Ok(simplified(self.set(0, rest)?))
    }

    /// The chunks of the dimensions from `level` inwards whose numbers leave `rest`.
    fn set(&mut self, level: usize, rest: u64) -> Result<FallsSet, LayoutError> {
        let Some(&Level {
            dimension,
            step,
            weight,
        }) = self.levels.get(level)
        else {
            // An array without dimensions is one chunk, number 0.
            return Ok(match rest {
                0 => self.chunks.array.whole(),
                _ => FallsSet::empty(),
            });
        };
        if level + 1 == self.levels.len() {
            return self.innermost(rest);
        }
        if let Some(set) = self.known.get(&(level, rest)) {
            return Ok(set.clone());
        }
        let count = self.chunks.counts[dimension];
        let round = self.modulus / gcd(self.modulus, weight);
        let whole = match &self.chunks.grid.axes[dimension] {
            // The last chunk may be short; it stands alone unless it fits.
            ChunkAxis::Regular(len) => self.chunks.array.extents()[dimension] / len,
            ChunkAxis::Lengths(_) => 0,
        };
        let rounds = whole / round;
        let mut parts = Vec::new();
        let mut first = 0;
        if rounds > 1 {
            let one = self.chunks_from(level, rest, 0, round)?;
            let (_, len) = self.chunks.grid.axes[dimension].chunk(0);
            first = rounds * round;
            parts.push(one.repeat(rounds, round * len * step)?);
        }
        parts.push(self.chunks_from(level, rest, first, count)?);
        let set = FallsSet::concat(&parts)?;
        self.known.insert((level, rest), set.clone());
        Ok(set)
    }

    /// Those of the chunks `first..last` of this dimension that leave `rest`.
    fn chunks_from(
        &mut self,
        level: usize,
        rest: u64,
        first: u64,
        last: u64,
    ) -> Result<FallsSet, LayoutError> {
        let Level {
            dimension,
            step,
            weight,
        } = self.levels[level];
        if last - first > self.visits_left {
            return Err(LayoutError::new(
                LayoutErrorKind::TooComplex,
                "servers",
                format!(
                    "more than {MAX_VISITS} chunks before they repeat over {} servers; choose fewer servers or larger chunks",
                    self.modulus
                ),
            ));
        }
        self.visits_left -= last - first;
        let mut parts = Vec::new();
        for i in first..last {
            let used = mul_mod(i % self.modulus, weight, self.modulus);
            let left = match rest >= used {
                true => rest - used,
                false => self.modulus - (used - rest),
            };
            let inner = self.set(level + 1, left)?;
            if !inner.is_empty() {
                let (start, _, len) = self.chunks.chunk(dimension, i);
                parts.push(spread(&FallsSet::segment(start, len)?, &inner, step)?);
            }
        }
        Ok(FallsSet::concat(&parts)?)
    }

    /// The chunks of the fastest dimension: every `round`-th from the first that leaves `rest`.
    fn innermost(&self, rest: u64) -> Result<FallsSet, LayoutError> {
        let Some(level) = self.levels.last() else {
            return Ok(FallsSet::empty());
        };
        let divisor = gcd(self.modulus, level.weight);
        if !rest.is_multiple_of(divisor) {
            return Ok(FallsSet::empty());
        }
        let round = self.modulus / divisor;
        let first = mul_mod(
            rest / divisor,
            inverse_mod(level.weight / divisor, round),
            round,
        );
        let d = level.dimension;
        let indices = match &self.chunks.grid.axes[d] {
            ChunkAxis::Regular(len) => cyclic(self.chunks.array.extents()[d], *len, round, first)?,
            ChunkAxis::Lengths(_) => {
                let mut segments = Vec::new();
                let mut i = first;
                while i < self.chunks.counts[d] {
                    let (start, _, len) = self.chunks.chunk(d, i);
                    segments.push(Segment::new(start, len)?);
                    i = i.saturating_add(round);
                }
                FallsSet::from_segments(&segments)?
            }
        };
        let entry = FallsSet::segment(0, level.step)?;
        spread(&indices, &entry, level.step)
    }
}

/// The number that times `a` leaves 1, for `a` and `modulus` without common divisor.
fn inverse_mod(a: u64, modulus: u64) -> u64 {
    let (mut r, mut next_r) = (i128::from(modulus), i128::from(a % modulus.max(1)));
    let (mut t, mut next_t) = (0i128, 1i128);
    while next_r != 0 {
        let q = r / next_r;
        (t, next_t) = (next_t, t - q * next_t);
        (r, next_r) = (next_r, r - q * next_r);
    }
    t.rem_euclid(i128::from(modulus.max(1))) as u64
}

fn mul_mod(a: u64, b: u64, modulus: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(modulus)) as u64
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
