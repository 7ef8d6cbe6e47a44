//! Arrays: element type, extents and order, and the bytes that a choice of indices takes.
//!
//! An n-dimensional array lies in the file as a line of bytes. What a distribution, a slice or a
//! chunk owns is a choice of indices in every dimension, each a set on the line `0..extent`. This
//! module turns such choices into bytes ([`ArrayType::cross`], section 8.2 of the specification):
//! from the fastest dimension to the slowest, the pattern of one index is put in place of every
//! index of the next set.
//!
//! ```text
//! u8[4,6], rows {1,2}, columns {0,3}
//!                 . . . . . .
//!                 x . . x . .        {(6,6,3,4)}
//!                 x . . x . .
//!                 . . . . . .
//! ```
//!
//! Invariants: an array has at most [`MAX_DIMENSIONS`] dimensions and fewer than 2^63 bytes. An array
//! with an extent of 0, or with elements of 0 bytes, has no bytes, and all its sets are empty.
//!
//! Cost: a few nodes per dimension and per member of the index sets, whatever the extents. Index
//! sets that are lists cost their length; the patterns inside are shared.

use std::collections::HashMap;
use std::fmt;

use falls::{Falls, FallsSet, MAX_OFFSET, Node, Segment};

use crate::error::LayoutError;

/// Most dimensions an array, a grid or a template may have: two levels of nesting for each fit the
/// limit of the algebra.
pub const MAX_DIMENSIONS: usize = 32;

/// Most elements that are listed at once; single elements can always be asked for.
pub const MAX_ELEMENTS: u64 = 1 << 24;

/// Trees up to this size are simplified after construction; larger ones are lists, where sharing
/// inner sets matters more than a node saved.
const SIMPLIFY_UP_TO: u64 = 4096;

/// Which index varies fastest, in the bytes of an array or in the numbers of a processor grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last index varies fastest (row-major).
    #[default]
    C,
    /// The first index varies fastest (column-major).
    Fortran,
}

impl Order {
    /// Positions of the dimensions, fastest first.
    pub(crate) fn fastest_first(self, dimensions: usize) -> impl DoubleEndedIterator<Item = usize> {
        (0..dimensions).map(move |i| match self {
            Order::C => dimensions - 1 - i,
            Order::Fortran => i,
        })
    }
}

/// What one entry of an array is; the algebra only needs its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names say it: kind and bits
pub enum ElementType {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    F32,
    F64,
    C64,
    C128,
    /// Opaque entries of this many bytes.
    Bytes(u64),
}

impl ElementType {
    /// All types of a fixed size, with their names.
    pub(crate) const NAMED: &'static [(&'static str, ElementType)] = &[
        ("bool", ElementType::Bool),
        ("u8", ElementType::U8),
        ("u16", ElementType::U16),
        ("u32", ElementType::U32),
        ("u64", ElementType::U64),
        ("i8", ElementType::I8),
        ("i16", ElementType::I16),
        ("i32", ElementType::I32),
        ("i64", ElementType::I64),
        ("f16", ElementType::F16),
        ("f32", ElementType::F32),
        ("f64", ElementType::F64),
        ("c64", ElementType::C64),
        ("c128", ElementType::C128),
    ];

    /// Bytes of one entry.
    pub fn size(self) -> u64 {
        match self {
            ElementType::Bool | ElementType::U8 | ElementType::I8 => 1,
            ElementType::U16 | ElementType::I16 | ElementType::F16 => 2,
            ElementType::U32 | ElementType::I32 | ElementType::F32 => 4,
            ElementType::U64 | ElementType::I64 | ElementType::F64 | ElementType::C64 => 8,
            ElementType::C128 => 16,
            ElementType::Bytes(n) => n,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let ElementType::Bytes(n) = self {
            return write!(f, "bytes({n})");
        }
        let named = ElementType::NAMED.iter().find(|(_, t)| t == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

/// The elements of a layout: one period and the sets inside it, in the order of their numbers.
///
/// Not yet checked to be a partition; [`Pattern::new`](crate::Pattern::new) does that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elements {
    /// Bytes of one repetition; 0 for an array without bytes.
    pub period: u64,
    /// What each element owns of it.
    pub sets: Vec<FallsSet>,
}

impl Elements {
    /// Asks for all of `count` elements, one after the other.
    pub(crate) fn collect(
        period: u64,
        count: u64,
        element: impl FnMut(u64) -> Result<FallsSet, LayoutError>,
    ) -> Result<Self, LayoutError> {
        check_listable(count)?;
        let sets = (0..count).map(element).collect::<Result<_, _>>()?;
        Ok(Elements { period, sets })
    }
}

/// The refusal of more than [`MAX_ELEMENTS`] at once.
pub(crate) fn check_listable(count: u64) -> Result<(), LayoutError> {
    if count <= MAX_ELEMENTS {
        return Ok(());
    }
    Err(LayoutError::argument(
        "elements",
        format!(
            "{count} elements are too many to list; the limit is {MAX_ELEMENTS}, ask for single ones"
        ),
    ))
}

/// The refusal of an element number outside `0..count`.
pub(crate) fn check_element(index: u64, count: u64) -> Result<(), LayoutError> {
    if index < count {
        return Ok(());
    }
    Err(LayoutError::argument(
        "element",
        match count {
            0 => format!("{index}, but there is none"),
            1 => format!("{index}, but there is only element 0"),
            _ => format!("{index}, but elements are numbered 0 to {}", count - 1),
        },
    ))
}

/// A number and what it counts, with an s unless it is 1.
pub(crate) fn counted(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

/// The product, refused from 2^63 on; 0 if any factor is 0, whatever the others are.
pub(crate) fn product(
    factors: impl IntoIterator<Item = u64>,
    argument: &str,
) -> Result<u64, LayoutError> {
    let (mut all, mut overflow) = (1u64, false);
    for factor in factors {
        if factor == 0 {
            return Ok(0);
        }
        match all.checked_mul(factor) {
            Some(p) if p <= MAX_OFFSET => all = p,
            _ => overflow = true,
        }
    }
    if overflow {
        return Err(LayoutError::overflow(argument));
    }
    Ok(all)
}

/// Element type, extents and order of an array; reads and prints as `f64[6,8]`, in Fortran order
/// `f64[6,8]:fortran`.
///
/// ```
/// use layout::{ArrayType, Order};
/// let array: ArrayType = "f64[6,8]".parse().unwrap();
/// assert_eq!((array.element().size(), array.extents(), array.order()), (8, &[6, 8][..], Order::C));
/// assert_eq!(array.bytes(), 384);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayType {
    element: ElementType,
    extents: Vec<u64>,
    order: Order,
    bytes: u64,
}

impl ArrayType {
    /// An array of these extents, slowest index first in C order.
    pub fn new(
        element: ElementType,
        extents: impl Into<Vec<u64>>,
        order: Order,
    ) -> Result<Self, LayoutError> {
        let extents = extents.into();
        if extents.len() > MAX_DIMENSIONS {
            return Err(LayoutError::argument(
                "extents",
                format!(
                    "{} dimensions; give at most {MAX_DIMENSIONS}",
                    extents.len()
                ),
            ));
        }
        if extents.iter().any(|&extent| extent > MAX_OFFSET) {
            return Err(LayoutError::overflow("extents"));
        }
        let factors = std::iter::once(element.size()).chain(extents.iter().copied());
        let bytes = product(factors, "extents")?;
        Ok(ArrayType {
            element,
            extents,
            order,
            bytes,
        })
    }

    /// What an entry is.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Extent of every dimension, as written.
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// Number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.extents.len()
    }

    /// Which index varies fastest.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Bytes of the whole array, the period of its layouts.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All bytes of the array.
    pub fn whole(&self) -> FallsSet {
        match self.bytes {
            0 => FallsSet::empty(),
            n => FallsSet::segment(0, n).unwrap_or_default(),
        }
    }

    /// The bytes of all entries whose index in every dimension is in that dimension's set.
    ///
    /// ```
    /// use falls::FallsSet;
    /// let array: layout::ArrayType = "u8[4,6]".parse().unwrap();
    /// let rows: FallsSet = "{(1,2)}".parse().unwrap();
    /// let columns: FallsSet = "{(0,0,3,2)}".parse().unwrap();
    /// let set = array.cross(&[rows, columns]).unwrap();
    /// assert_eq!(set.to_string(), "{(6,6,3,4)}");
    /// ```
    pub fn cross(&self, indices: &[FallsSet]) -> Result<FallsSet, LayoutError> {
        if indices.len() != self.dimensions() {
            return Err(LayoutError::argument(
                "indices",
                format!(
                    "{} for an array of {}; give one for each",
                    counted(indices.len(), "set"),
                    counted(self.dimensions(), "dimension")
                ),
            ));
        }
        for (d, (set, &extent)) in indices.iter().zip(&self.extents).enumerate() {
            if set.end() > extent {
                return Err(LayoutError::argument(
                    format!("indices[{d}]"),
                    format!("index {} is outside the extent of {extent}", set.end() - 1),
                ));
            }
        }
        if self.bytes == 0 || indices.iter().any(FallsSet::is_empty) {
            return Ok(FallsSet::empty());
        }
        let mut step = self.element.size();
        let mut set = FallsSet::segment(0, step)?;
        for d in self.order.fastest_first(self.dimensions()) {
            set = spread(&indices[d], &set, step)?;
            step *= self.extents[d];
        }
        Ok(simplified(set))
    }
}

/// The set with fewer nodes, if it is small enough to look at.
pub(crate) fn simplified(set: FallsSet) -> FallsSet {
    match set.node_count() <= SIMPLIFY_UP_TO {
        true => set.simplify(),
        false => set,
    }
}

impl fmt::Display for ArrayType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.element)?;
        for (d, extent) in self.extents.iter().enumerate() {
            write!(f, "{}{extent}", if d == 0 { "" } else { "," })?;
        }
        f.write_str(match self.order {
            Order::C => "]",
            Order::Fortran => "]:fortran",
        })
    }
}

/// The bytes of `indices`, where one index takes the bytes `slab` out of `step`.
///
/// Nothing here overflows: every index is below the extent and extent times step is at most the
/// size of the array.
pub(crate) fn spread(
    indices: &FallsSet,
    slab: &FallsSet,
    step: u64,
) -> Result<FallsSet, LayoutError> {
    if slab.size() == step {
        return scale(indices, step);
    }
    let unit = as_one_falls(slab)?;
    Spread {
        unit,
        step,
        runs: HashMap::new(),
    }
    .set(indices)
}

/// Every index becomes `step` bytes.
fn scale(indices: &FallsSet, step: u64) -> Result<FallsSet, LayoutError> {
    if indices.is_segment_list() {
        let scaled: Vec<Segment> = indices
            .nodes()
            .map(|n| Segment::new(n.start * step, n.len * step))
            .collect::<Result<_, _>>()?;
        return Ok(FallsSet::from_segments(&scaled)?);
    }
    let mut members = Vec::with_capacity(indices.len());
    for n in indices.nodes() {
        let inner = n.inner.map(|set| scale(set, step)).transpose()?;
        members.push(build(
            n.start * step,
            n.len * step,
            n.stride * step,
            n.count,
            inner,
        )?);
    }
    Ok(FallsSet::new(members)?)
}

/// A set of bytes put in place of every index of a set.
struct Spread {
    unit: Falls,
    step: u64,
    /// `len` neighbouring indices from index 0 on; shared by all members of that length.
    runs: HashMap<u64, Falls>,
}

impl Spread {
    fn set(&mut self, indices: &FallsSet) -> Result<FallsSet, LayoutError> {
        let mut members = Vec::with_capacity(indices.len());
        for node in indices.nodes() {
            members.push(self.node(node)?);
        }
        Ok(FallsSet::new(members)?)
    }

    fn node(&mut self, node: Node<'_>) -> Result<Falls, LayoutError> {
        let step = self.step;
        let (start, len, stride) = (node.start * step, node.len * step, node.stride * step);
        if let Some(inner) = node.inner {
            return build(start, len, stride, node.count, Some(self.set(inner)?));
        }
        let (len, count) = match node.is_segment() {
            true => (node.len * node.count, 1),
            false => (node.len, node.count),
        };
        let run = match self.runs.get(&len) {
            Some(run) => run.clone(),
            None => {
                let run = repeat(&self.unit, len, step)?;
                self.runs.insert(len, run.clone());
                run
            }
        };
        let all = repeat(&run, count, stride)?;
        let (len, stride, count) = (all.len(), all.stride(), all.count());
        build(
            start + all.start(),
            len,
            stride,
            count,
            all.inner().cloned(),
        )
    }
}

fn build(
    start: u64,
    len: u64,
    stride: u64,
    count: u64,
    inner: Option<FallsSet>,
) -> Result<Falls, LayoutError> {
    Ok(match inner {
        None => Falls::family(start, len, stride, count)?,
        Some(set) => Falls::nested(start, len, stride, count, set)?,
    })
}

/// A set as one FALLS: its only member, or one block that holds all members.
fn as_one_falls(set: &FallsSet) -> Result<Falls, LayoutError> {
    if set.len() == 1 {
        let n = set.node(0);
        return build(n.start, n.len, n.stride, n.count, n.inner.cloned());
    }
    let (start, end) = (set.start(), set.end());
    build(start, end - start, 0, 1, Some(set.cut(start..end)))
}

/// `times` copies of a FALLS, `distance` apart; copies never overlap here.
fn repeat(unit: &Falls, times: u64, distance: u64) -> Result<Falls, LayoutError> {
    let (start, len) = (unit.start(), unit.len());
    if times == 1 {
        return Ok(unit.clone());
    }
    if unit.count() == 1 {
        return build(start, len, distance, times, unit.inner().cloned());
    }
    if unit.stride().checked_mul(unit.count()) == Some(distance) {
        let inner = unit.inner().cloned();
        return build(start, len, unit.stride(), unit.count() * times, inner);
    }
    let at_zero = build(0, len, unit.stride(), unit.count(), unit.inner().cloned())?;
    let inner = FallsSet::new(vec![at_zero])?;
    build(start, unit.end() - start, distance, times, Some(inner))
}
