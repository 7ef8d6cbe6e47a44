//! Slices of arrays: in every dimension a range with a step, or a list of indices.
//!
//! Section 8.3 of the specification. A slice is one set, for a view.
//!
//! ```text
//! u8[4,8]  slice[1:3, 0:8:3]      . . . . . . . .
//!                                 x . . x . . x .
//!                                 x . . x . . x .
//!                                 . . . . . . . .
//! ```
//!
//! Steps are positive: a set has no order of its own, so a descending slice has the bytes of the
//! ascending one, and whoever wants them descending reverses them in memory. For the same reason
//! index lists ascend, each index once.

use std::sync::Arc;

use falls::{Falls, FallsSet, MAX_OFFSET, compress_offsets};

use crate::array::{ArrayType, counted};
use crate::error::LayoutError;

/// The indices taken of one dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SliceAxis {
    /// Every `step`-th index from `start` up to, without, `stop`; without `stop` to the end.
    Range {
        /// The first index.
        start: u64,
        /// One past the last index considered; `None` is the extent.
        stop: Option<u64>,
        /// Distance between indices, at least 1.
        step: u64,
    },
    /// These indices, ascending, each once.
    Indices(Arc<[u64]>),
}

impl SliceAxis {
    /// The whole dimension.
    pub const ALL: SliceAxis = SliceAxis::Range {
        start: 0,
        stop: None,
        step: 1,
    };

    /// `count` indices from `start` on, `step` apart.
    ///
    /// The step is signed so that a negative one gets an answer instead of a conversion error.
    pub fn counted(start: u64, count: u64, step: i64) -> Result<Self, LayoutError> {
        let step = positive(step)?;
        let len = match count {
            0 => Some(0),
            n => (n - 1).checked_mul(step).and_then(|d| d.checked_add(1)),
        };
        let stop = len
            .and_then(|len| start.checked_add(len))
            .filter(|&stop| stop <= MAX_OFFSET)
            .ok_or_else(|| LayoutError::overflow("slice"))?;
        Ok(SliceAxis::Range {
            start,
            stop: Some(stop),
            step,
        })
    }

    /// Indices `start..stop`, `step` apart.
    pub fn range(start: u64, stop: Option<u64>, step: i64) -> Result<Self, LayoutError> {
        let step = positive(step)?;
        if let Some(stop) = stop.filter(|&stop| stop < start) {
            return Err(LayoutError::argument(
                "stop",
                format!("{stop} lies before the start {start}; give {start} or more"),
            ));
        }
        Ok(SliceAxis::Range { start, stop, step })
    }

    /// A list of indices.
    pub fn indices(list: &[u64]) -> Result<Self, LayoutError> {
        if let Some(i) = list.windows(2).position(|w| w[0] >= w[1]) {
            return Err(LayoutError::argument(
                format!("indices[{}]", i + 1),
                format!(
                    "{} follows {}; indices must ascend, each once: sort them in the caller",
                    list[i + 1],
                    list[i]
                ),
            ));
        }
        Ok(SliceAxis::Indices(list.into()))
    }

    /// The indices as a set on `0..extent`.
    pub fn owned(&self, extent: u64) -> Result<FallsSet, LayoutError> {
        match self {
            SliceAxis::Range { step: 0, .. } => {
                Err(LayoutError::argument("step", "0; give 1 or more"))
            }
            SliceAxis::Range { start, stop, step } => {
                let stop = stop.unwrap_or(extent);
                if stop > extent || *start > extent {
                    return Err(LayoutError::argument(
                        "slice",
                        format!(
                            "reaches to index {}, but the extent is {extent}",
                            stop.saturating_sub(1).max(*start)
                        ),
                    ));
                }
                if stop <= *start {
                    return Ok(FallsSet::empty());
                }
                let (len, count) = match step {
                    1 => (stop - start, 1),
                    _ => (1, (stop - start).div_ceil(*step)),
                };
                let family = Falls::family(*start, len, *step, count)?;
                Ok(FallsSet::new(vec![family])?)
            }
            SliceAxis::Indices(list) => {
                if let Some(&last) = list.last().filter(|&&last| last >= extent) {
                    return Err(LayoutError::argument(
                        "indices",
                        format!("index {last} is outside the extent of {extent}"),
                    ));
                }
                Ok(compress_offsets(list)?)
            }
        }
    }
}

fn positive(step: i64) -> Result<u64, LayoutError> {
    match step {
        1.. => Ok(step as u64),
        0 => Err(LayoutError::argument("step", "0; give 1 or more")),
        _ => Err(LayoutError::argument(
            "step",
            format!("{step} is negative; take the ascending slice and reverse it in the caller"),
        )),
    }
}

/// One choice of indices per dimension.
///
/// ```
/// use layout::Slice;
/// let slice = Slice::counted(&[1, 0], &[2, 3], &[1, 3]).unwrap();
/// let set = slice.on(&"u8[4,8]".parse().unwrap()).unwrap();
/// assert_eq!(set.to_string(), "{(8,14,8,2,{(0,0,3,3)})}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    axes: Vec<SliceAxis>,
}

impl Slice {
    /// A slice from its dimensions.
    pub fn new(axes: impl Into<Vec<SliceAxis>>) -> Self {
        Slice { axes: axes.into() }
    }

    /// `counts[d]` indices from `starts[d]` on, `steps[d]` apart, in every dimension d.
    pub fn counted(starts: &[u64], counts: &[u64], steps: &[i64]) -> Result<Self, LayoutError> {
        if starts.len() != counts.len() || starts.len() != steps.len() {
            return Err(LayoutError::argument(
                "slice",
                format!(
                    "{} starts, {} counts and {} steps; give one of each per dimension",
                    starts.len(),
                    counts.len(),
                    steps.len()
                ),
            ));
        }
        let mut axes = Vec::with_capacity(starts.len());
        for d in 0..starts.len() {
            let axis = SliceAxis::counted(starts[d], counts[d], steps[d]);
            axes.push(axis.map_err(|e| {
                let argument = format!("{}[{d}]", e.argument_name());
                LayoutError::new(e.kind().clone(), argument, e.detail())
            })?);
        }
        Ok(Slice { axes })
    }

    /// One entry per dimension.
    pub fn axes(&self) -> &[SliceAxis] {
        &self.axes
    }

    /// The bytes of the slice.
    pub fn on(&self, array: &ArrayType) -> Result<FallsSet, LayoutError> {
        array.cross(&self.indices(array)?)
    }

    /// How many indices it takes of every dimension.
    pub fn extents(&self, array: &ArrayType) -> Result<Vec<u64>, LayoutError> {
        Ok(self.indices(array)?.iter().map(FallsSet::size).collect())
    }

    /// The indices of every dimension, each as a set.
    fn indices(&self, array: &ArrayType) -> Result<Vec<FallsSet>, LayoutError> {
        if self.axes.len() != array.dimensions() {
            return Err(LayoutError::argument(
                "slice",
                format!(
                    "{} of an array of {}; give `:` where all indices are meant",
                    counted(self.axes.len(), "dimension"),
                    array.dimensions()
                ),
            ));
        }
        let mut indices = Vec::with_capacity(self.axes.len());
        for (d, (axis, &extent)) in self.axes.iter().zip(array.extents()).enumerate() {
            let owned = axis.owned(extent);
            indices
                .push(owned.map_err(|e| LayoutError::argument(format!("slice[{d}]"), e.detail()))?);
        }
        Ok(indices)
    }
}
