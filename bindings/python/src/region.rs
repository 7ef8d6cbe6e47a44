//! Choices of indices as Python hands them over, and the bytes of the file that they are.
//!
//! An axis is a start, a number and a step, or a list of ascending indices. A region has one for every dimension; entries
//! anywhere are a region of the array seen as a line. Bytes that are neighbours in the file are found without building a set,
//! since rows, blocks of rows and single entries are what programs ask for most.

use client::View;
use falls::FallsSet;
use layout::{ArrayType, FileOffset, Layout, Order, SliceAxis};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use crate::error::value;

/// Indices of one dimension, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Indices {
    /// `count` indices from `start` on, `step` apart.
    Range { start: u64, count: u64, step: u64 },
    /// These.
    List(Vec<u64>),
}

impl Indices {
    /// From a tuple of three numbers or a buffer of them.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Indices> {
        if let Ok((start, count, step)) = object.extract() {
            return Ok(Indices::Range { start, count, step });
        }
        let list = PyBuffer::<u64>::get(object)?.to_vec(object.py())?;
        Ok(Indices::List(list))
    }

    pub(crate) fn count(&self) -> u64 {
        match self {
            Indices::Range { count, .. } => *count,
            Indices::List(list) => list.len() as u64,
        }
    }

    fn owned(&self, extent: u64) -> PyResult<FallsSet> {
        let axis = match self {
            Indices::Range { count: 0, .. } => return Ok(FallsSet::empty()),
            Indices::Range { start, count, step } => {
                let step = i64::try_from(*step).map_err(|e| value(e.to_string()))?;
                SliceAxis::counted(*start, *count, step)
            }
            Indices::List(list) => SliceAxis::indices(list),
        };
        let owned = axis.and_then(|axis| axis.owned(extent));
        owned.map_err(|e| value(e.to_string()))
    }
}

/// Text as `f64[8,4]`.
pub(crate) fn array_of(text: &str) -> PyResult<ArrayType> {
    text.parse()
        .map_err(|e: layout::LayoutParseError| value(format!("array: {e}")))
}

/// Which entries of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    /// Indices of every dimension.
    Axes(Vec<Indices>),
    /// An element of a layout, and its set.
    Element { shape: Vec<u64>, set: FallsSet },
}

/// Some entries of an array, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    array: ArrayType,
    choice: Choice,
}

impl Region {
    /// One choice of indices for each dimension.
    pub(crate) fn new(array: &ArrayType, axes: Vec<Indices>) -> PyResult<Region> {
        if axes.len() != array.dimensions() {
            return Err(value(format!(
                "{} axes for {array}; give one for each dimension",
                axes.len()
            )));
        }
        for (axis, &extent) in axes.iter().zip(array.extents()) {
            let is_inside = match axis {
                Indices::Range { count: 0, .. } => true,
                Indices::Range { start, count, step } => (count - 1)
                    .checked_mul(*step)
                    .and_then(|span| span.checked_add(*start))
                    .is_some_and(|last| last < extent && (*step > 0 || *count == 1)),
                Indices::List(list) => list.last().is_none_or(|&last| last < extent),
            };
            if !is_inside {
                return Err(value(format!("indices reach outside of {array}")));
            }
        }
        Ok(Region {
            array: array.clone(),
            choice: Choice::Axes(axes),
        })
    }

    /// Element `index` of a layout of the array.
    pub(crate) fn of_layout(array: &ArrayType, layout: &str, index: u64) -> PyResult<Region> {
        let wrong = |e: &dyn std::fmt::Display| value(format!("layout: {e}"));
        let layout: Layout = layout.parse().map_err(|e| wrong(&e))?;
        let applied = layout.on_array(array).map_err(|e| wrong(&e))?;
        let set = applied.element(index).map_err(|e| wrong(&e))?;
        let size = array.element().size();
        let shape = applied.extents(index).map_err(|e| wrong(&e))?;
        let shape = shape.unwrap_or_else(|| vec![set.size() / size.max(1)]);
        if shape.iter().product::<u64>() * size != set.size() {
            return Err(value(format!(
                "layout: `{layout}` cuts entries of {array}; give lengths that are multiples of {size} bytes"
            )));
        }
        Ok(Region {
            array: array.clone(),
            choice: Choice::Element { shape, set },
        })
    }

    /// Entries along every dimension.
    pub(crate) fn shape(&self) -> Vec<u64> {
        match &self.choice {
            Choice::Axes(axes) => axes.iter().map(Indices::count).collect(),
            Choice::Element { shape, .. } => shape.clone(),
        }
    }

    pub(crate) fn order(&self) -> Order {
        self.array.order()
    }

    pub(crate) fn entry_bytes(&self) -> u64 {
        self.array.element().size()
    }

    /// The first byte, if all of them are neighbours in the file.
    pub(crate) fn run(&self) -> Option<u64> {
        let Choice::Axes(axes) = &self.choice else {
            return None;
        };
        let mut unit = self.array.element().size();
        let (mut at, mut is_whole) = (0, true);
        let dimensions = axes.len();
        for i in 0..dimensions {
            let d = match self.array.order() {
                Order::C => dimensions - 1 - i,
                Order::Fortran => i,
            };
            let extent = self.array.extents()[d];
            let Indices::Range { start, count, step } = &axes[d] else {
                return None;
            };
            if *count > 1 && (*step != 1 || !is_whole) {
                return None;
            }
            at += start * unit;
            is_whole &= *count == extent;
            unit *= extent;
        }
        Some(at)
    }

    /// The view that has its bytes, in the order of the file.
    pub(crate) fn view(&self) -> PyResult<View> {
        let set = match &self.choice {
            Choice::Element { set, .. } => set.clone(),
            Choice::Axes(axes) => {
                let sets = axes.iter().zip(self.array.extents());
                let sets: Vec<FallsSet> = sets
                    .map(|(axis, &extent)| axis.owned(extent))
                    .collect::<PyResult<_>>()?;
                let set = self.array.cross(&sets);
                set.map_err(|e| value(e.to_string()))?
            }
        };
        View::new(FileOffset(0), self.array.bytes(), set).map_err(|e| value(e.to_string()))
    }
}
