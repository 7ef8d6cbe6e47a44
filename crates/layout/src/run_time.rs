//! The run-time descriptor of the HPF compiler: a list of integers that says how an array is distributed.
//!
//! ```text
//! dimensions of the grid, extents of the grid, type, bytes of an entry, dimensions of the array,
//! then for each: global extent, local extent, distribution, argument
//! ```
//!
//! Section 2.8 of the specification (7.1.2 of the source), and 3.8 for the access descriptor that is built of it, with the printed
//! errors corrected: the skip of `CYCLIC` when the last blocks lie before the own coordinate, offsets multiplied once, outer levels that
//! count whole sub-patterns, nothing for processors that own nothing. `BLOCK(n)` has to hold the extent.
//!
//! The source gives no numbers for distributions and no place for lists. Here: 0 `*`, 1 `BLOCK`, 2 `CYCLIC`, 3 block-cyclic, 4
//! `GEN_BLOCK`, 5 `INDIRECT`; argument 0 is the default. Lengths of a `GEN_BLOCK` (one for each processor) and owners of an `INDIRECT` (one for
//! each index, from 0 on) stand behind the last dimension, in the order of the dimensions. The grid has an extent for each
//! dimension that is distributed, or one for each dimension, 1 where it is not. Ranks run through it with the first coordinate
//! fastest.
//!
//! Left to others: who has which rank.

use falls::FallsSet;

use crate::access_desc::{AccessDesc, BasicBlock};
use crate::array::{ArrayType, ElementType, MAX_DIMENSIONS, Order};
use crate::distribution::Distribution;
use crate::error::LayoutError;
use crate::hpf::{Grid, Hpf, HpfElements};
use crate::language::{Layout, LayoutForm};

/// A run-time descriptor.
///
/// ```
/// use layout::RunTimeDescriptor;
/// // A(14,17) of 4-byte integers, (CYCLIC(3), BLOCK) onto P(3,4), on processor 3, which is rank 2.
/// let list = [2, 3, 4, 8, 4, 2, 14, 3, 3, 3, 17, 5, 1, 5];
/// let descriptor = RunTimeDescriptor::parse(&list).unwrap();
/// let access = descriptor.access_desc(2).unwrap();
/// assert_eq!((access.extent(), access.actual()), (952, 60));
/// assert_eq!(descriptor.extents(2).unwrap(), [3, 5]);
/// ```
#[derive(Clone, Debug)]
pub struct RunTimeDescriptor {
    elements: HpfElements,
    hpf: Hpf,
    array: ArrayType,
    element_type: i64,
    local: Vec<u64>,
}

/// Takes numbers one after the other.
struct List<'a> {
    values: &'a [i64],
    at: usize,
}

impl List<'_> {
    fn next(&mut self, what: &str) -> Result<i64, LayoutError> {
        let value = self.values.get(self.at).copied();
        let short = || {
            let text = format!("has {} numbers, and {what} is missing", self.values.len());
            LayoutError::argument("descriptor", text)
        };
        let value = value.ok_or_else(short)?;
        self.at += 1;
        Ok(value)
    }

    fn count(&mut self, what: &str, least: u64) -> Result<u64, LayoutError> {
        let value = self.next(what)?;
        let place = self.at - 1;
        u64::try_from(value)
            .ok()
            .filter(|n| *n >= least)
            .ok_or_else(|| {
                let text = format!("has {value} as {what} (number {place}); give {least} or more");
                LayoutError::argument("descriptor", text)
            })
    }

    fn dimensions(&mut self, what: &str) -> Result<usize, LayoutError> {
        let count = self.count(what, 0)?;
        match usize::try_from(count) {
            Ok(count) if count <= MAX_DIMENSIONS => Ok(count),
            _ => {
                let text = format!("has {count} as {what}; there are at most {MAX_DIMENSIONS}");
                Err(LayoutError::argument("descriptor", text))
            }
        }
    }
}

impl RunTimeDescriptor {
    /// Reads a descriptor. What stands behind its end is left alone: programs give whole arrays.
    pub fn parse(values: &[i64]) -> Result<RunTimeDescriptor, LayoutError> {
        let mut list = List { values, at: 0 };
        let axes = list.dimensions("dimensions of the grid")?;
        let mut grid = Vec::with_capacity(axes);
        for _ in 0..axes {
            grid.push(list.count("processors of a dimension", 1)?);
        }
        let element_type = list.next("the type of an entry")?;
        let element = ElementType::Bytes(list.count("bytes of an entry", 1)?);
        let dimensions = list.dimensions("dimensions of the array")?;
        let (mut global, mut local, mut how) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..dimensions {
            global.push(list.count("global extent", 0)?);
            local.push(list.count("local extent", 0)?);
            let distribution = list.next("a distribution")?;
            how.push((distribution, list.count("argument of a distribution", 0)?));
        }
        let is_distributed = |(kind, _): &&(i64, u64)| *kind != 0;
        let count = how.iter().filter(is_distributed).count();
        if grid.len() == dimensions && count < dimensions {
            // One for each dimension: those that are not distributed have one processor.
            let mut kept = Vec::with_capacity(count);
            for (d, (extent, (kind, _))) in grid.iter().zip(&how).enumerate() {
                match (*kind, *extent) {
                    (0, 1) => {}
                    (0, extent) => {
                        let text = format!(
                            "has {extent} processors for dimension {d}, which is not distributed; give 1"
                        );
                        return Err(LayoutError::argument("descriptor", text));
                    }
                    _ => kept.push(*extent),
                }
            }
            grid = kept;
        }
        let mut processors = grid.iter().copied();
        let mut distributions = Vec::with_capacity(dimensions);
        for (d, ((kind, argument), extent)) in how.iter().zip(&global).enumerate() {
            let along = match *kind {
                0 => 1,
                _ => processors.next().unwrap_or(1),
            };
            distributions.push(match (*kind, *argument) {
                (0, _) => Distribution::Collapsed,
                (1, 0) => Distribution::Block,
                (1, n) => Distribution::BlockOf(n),
                (2, 0 | 1) | (3, 0) => Distribution::Cyclic,
                (2 | 3, n) => Distribution::CyclicOf(n),
                (4, _) => {
                    let lengths: Result<Vec<u64>, _> = (0..along).map(|_| list.count("a length of GEN_BLOCK", 0)).collect();
                    Distribution::gen_block(&lengths?)?
                }
                (5, _) => {
                    let owners: Result<Vec<u64>, _> = (0..*extent).map(|_| list.count("an owner of INDIRECT", 0)).collect();
                    Distribution::indirect(&owners?)
                }
                (other, _) => {
                    let text = format!("has {other} as distribution of dimension {d}; give 0 for *, 1 BLOCK, 2 CYCLIC, 3 block-cyclic, 4 GEN_BLOCK or 5 INDIRECT");
                    return Err(LayoutError::argument("descriptor", text));
                }
            });
        }
        let array = ArrayType::new(element, global, Order::Fortran)?;
        let hpf = Hpf::new(distributions, Grid::new(grid, Order::Fortran)?)?;
        let elements = hpf.on(&array)?;
        Ok(RunTimeDescriptor {
            elements,
            hpf,
            array,
            element_type,
            local,
        })
    }

    /// The array.
    pub fn array(&self) -> &ArrayType {
        &self.array
    }

    /// What the compiler calls the type of an entry.
    pub fn element_type(&self) -> i64 {
        self.element_type
    }

    /// Local extents as they are given, of the process that gives them.
    pub fn local(&self) -> &[u64] {
        &self.local
    }

    /// Number of processors.
    pub fn count(&self) -> u64 {
        self.elements.count()
    }

    /// Extents of what a rank owns.
    pub fn extents(&self, rank: u64) -> Result<Vec<u64>, LayoutError> {
        self.elements.extents(rank)
    }

    /// The distribution in the layout language.
    pub fn layout(&self) -> Layout {
        Layout::from(LayoutForm::Hpf(self.hpf.clone()))
    }

    /// The access descriptor of what a rank owns: one level for each dimension, the last outermost, the whole array as its extent. Nothing
    /// is transferred for a rank that owns nothing.
    pub fn access_desc(&self, rank: u64) -> Result<AccessDesc, LayoutError> {
        let extents = self.extents(rank)?;
        let whole =
            i64::try_from(self.array.bytes()).map_err(|_| LayoutError::overflow("descriptor"))?;
        if extents.contains(&0) {
            return AccessDesc::new(whole, Vec::new());
        }
        let mut along = self.hpf.grid().extents().iter();
        let mut coordinates = self.hpf.grid().coordinates(rank).into_iter();
        let mut unit = Unit {
            bytes: self.array.element().size(),
            inner: None,
        };
        for ((distribution, &global), &local) in self
            .hpf
            .distributions()
            .iter()
            .zip(self.array.extents())
            .zip(&extents)
        {
            let (processors, coordinate) = match distribution.is_distributed() {
                true => (
                    along.next().copied().unwrap_or(1),
                    coordinates.next().unwrap_or(0),
                ),
                false => (1, 0),
            };
            let desc = match distribution {
                Distribution::Collapsed => unit.level(&[(0, 1, global, 0)], 0)?,
                Distribution::Block => {
                    let block = global.div_ceil(processors);
                    unit.block(block * coordinate, local, global)?
                }
                Distribution::BlockOf(block) => unit.block(block * coordinate, local, global)?,
                Distribution::GenBlock(lengths) => {
                    unit.block(lengths.block(coordinate).0, local, global)?
                }
                Distribution::Cyclic => unit.cyclic(Deal {
                    global,
                    local,
                    block: 1,
                    processors,
                    coordinate,
                })?,
                Distribution::CyclicOf(block) => unit.cyclic(Deal {
                    global,
                    local,
                    block: *block,
                    processors,
                    coordinate,
                })?,
                Distribution::Indirect(map) => unit.listed(&map.set(coordinate, 1)?, global)?,
            };
            let bytes = unit
                .bytes
                .checked_mul(global)
                .ok_or_else(|| LayoutError::overflow("descriptor"))?;
            unit = Unit {
                bytes,
                inner: Some(desc),
            };
        }
        match unit.inner {
            Some(desc) => Ok(desc),
            None => AccessDesc::new(0, vec![BasicBlock::bytes(0, 1, whole, 0)]),
        }
    }
}

/// What one index of a level is: bytes, or a pattern of the levels inside.
struct Unit {
    /// Bytes of one index, holes included: F * w.
    bytes: u64,
    inner: Option<AccessDesc>,
}

/// How one dimension is dealt out, as the source names it: g, l, k, P and c.
struct Deal {
    global: u64,
    local: u64,
    block: u64,
    processors: u64,
    coordinate: u64,
}

impl Unit {
    /// A level of blocks `(offset, repeat, count, stride)` and a skip, in indices.
    fn level(&self, blocks: &[(u64, u64, u64, u64)], skip: u64) -> Result<AccessDesc, LayoutError> {
        let times = |n: u64, by: u64| {
            let bytes = n.checked_mul(by).and_then(|n| i64::try_from(n).ok());
            bytes.ok_or_else(|| LayoutError::overflow("descriptor"))
        };
        let mut all = Vec::with_capacity(blocks.len());
        for &(offset, repeat, count, stride) in blocks {
            let (offset, stride) = (times(offset, self.bytes)?, times(stride, self.bytes)?);
            let repeat = times(repeat, 1)?;
            all.push(match &self.inner {
                None => BasicBlock::bytes(offset, repeat, times(count, self.bytes)?, stride),
                Some(inner) => {
                    BasicBlock::nested(offset, repeat, times(count, 1)?, stride, inner.clone())
                }
            });
        }
        AccessDesc::new(times(skip, self.bytes)?, all)
    }

    /// BLOCK: one block, and what is behind it.
    fn block(&self, start: u64, local: u64, global: u64) -> Result<AccessDesc, LayoutError> {
        self.level(&[(start, 1, local, 0)], global - start - local)
    }

    /// CYCLIC(k), by the formulas of 3.8.
    fn cyclic(&self, deal: Deal) -> Result<AccessDesc, LayoutError> {
        let Deal {
            global: g,
            local: l,
            block: k,
            processors: p,
            coordinate: c,
        } = deal;
        let first = k.saturating_mul(c);
        if l < k {
            return self.level(&[(first, 1, l, 0)], g - first - l);
        }
        let blocks = g.div_ceil(k);
        let has_tail = g % k > 0 && (g / k) % p == c;
        let repeat = (blocks - c - 1) / p + 1 - u64::from(has_tail);
        let stride = if repeat > 1 { (p - 1) * k } else { 0 };
        let regular = (first, repeat, k, stride);
        if has_tail {
            // The gap to the tail takes the place of the skip.
            return self.level(&[regular, ((p - 1) * k, 1, l % k, 0)], 0);
        }
        let skip = if l == k {
            g - (c + 1) * k
        } else {
            let t = (g / k) % p;
            let behind = match c.cmp(&t) {
                std::cmp::Ordering::Less => t - c - 1,
                std::cmp::Ordering::Equal => p - 1,
                std::cmp::Ordering::Greater => p - c - 1 + t,
            };
            behind * k + g % k
        };
        self.level(&[regular], skip)
    }

    /// INDIRECT: a block for each run of indices.
    fn listed(&self, owned: &FallsSet, global: u64) -> Result<AccessDesc, LayoutError> {
        let mut end = 0;
        let mut blocks = Vec::new();
        for run in owned.segments(0..global) {
            blocks.push((run.start() - end, 1, run.end() - run.start(), 0));
            end = run.end();
        }
        self.level(&blocks, global - end)
    }
}
