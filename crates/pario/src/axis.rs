//! The indices that a region takes: of every dimension all, a range, every so many of a range, or one.
//!
//! Whether they are inside an array is said when they meet one, in [`Array::region`](crate::Array::region).

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive};

use client::{Error, Result};
use layout::SliceAxis;

/// Indices of one dimension. Ranges and single indices turn into it; a dimension of which one index is taken stays, with an
/// extent of 1.
///
/// ```
/// use pario::Axis;
/// let rows = Axis::from(0..10).step_by(2);
/// let columns = Axis::from(3..);
/// # let _ = (rows, columns, Axis::from(..), Axis::from(7), Axis::ALL);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    start: u64,
    stop: Option<u64>,
    step: u64,
}

impl Axis {
    /// The whole dimension.
    pub const ALL: Axis = Axis {
        start: 0,
        stop: None,
        step: 1,
    };

    /// The first of these indices and every `step`-th after it.
    pub fn step_by(self, step: u64) -> Axis {
        Axis {
            step: self.step.saturating_mul(step),
            ..self
        }
    }

    /// As a dimension of a slice; `dimension` is what errors call it.
    pub(crate) fn slice_axis(self, dimension: usize, extent: u64) -> Result<SliceAxis> {
        let wrong = |text: String| {
            Err(Error::Argument {
                name: "region",
                text: format!("dimension {dimension}: {text}"),
            })
        };
        let Axis { start, stop, step } = self;
        let stop = stop.unwrap_or(extent);
        if stop > extent || start > extent {
            return wrong(format!(
                "{start}..{stop} reaches outside; indices are 0..{extent}"
            ));
        }
        if stop < start {
            return wrong(format!(
                "{start}..{stop} runs backwards; give {stop}..{start}"
            ));
        }
        if step == 0 {
            return wrong("a step of 0; give 1 or more".into());
        }
        Ok(SliceAxis::Range {
            start,
            stop: Some(stop),
            step,
        })
    }
}

impl From<RangeFull> for Axis {
    fn from(_: RangeFull) -> Self {
        Axis::ALL
    }
}

impl From<Range<u64>> for Axis {
    fn from(range: Range<u64>) -> Self {
        Axis {
            start: range.start,
            stop: Some(range.end),
            step: 1,
        }
    }
}

impl From<RangeInclusive<u64>> for Axis {
    fn from(range: RangeInclusive<u64>) -> Self {
        let (start, last) = range.into_inner();
        Axis::from(start..last.saturating_add(1))
    }
}

impl From<RangeFrom<u64>> for Axis {
    fn from(range: RangeFrom<u64>) -> Self {
        Axis {
            start: range.start,
            ..Axis::ALL
        }
    }
}

impl From<u64> for Axis {
    fn from(index: u64) -> Self {
        Axis::from(index..=index)
    }
}

/// What says a region: one axis for every dimension. A tuple of anything that is an [`Axis`], a slice or an array of one kind, or a
/// range for an array of one dimension.
///
/// ```
/// use pario::{Axis, Region};
/// assert_eq!((0..10, 3, ..).axes(), [Axis::from(0..10), Axis::from(3), Axis::ALL]);
/// assert_eq!([0..10, 3..4].axes(), [Axis::from(0..10), Axis::from(3..4)]);
/// assert_eq!((2..9).axes(), [Axis::from(2..9)]);
/// ```
pub trait Region {
    /// The axes, slowest index first in C order, as in the shape.
    fn axes(&self) -> Vec<Axis>;
}

impl<A: Into<Axis> + Clone> Region for [A] {
    fn axes(&self) -> Vec<Axis> {
        self.iter().cloned().map(Into::into).collect()
    }
}

impl<A: Into<Axis> + Clone, const N: usize> Region for [A; N] {
    fn axes(&self) -> Vec<Axis> {
        self[..].axes()
    }
}

impl<R: Region + ?Sized> Region for &R {
    fn axes(&self) -> Vec<Axis> {
        (**self).axes()
    }
}

impl Region for Range<u64> {
    fn axes(&self) -> Vec<Axis> {
        vec![self.clone().into()]
    }
}

macro_rules! tuples {
    ($($axis:ident)+) => {
        impl<$($axis: Into<Axis> + Clone),+> Region for ($($axis,)+) {
            fn axes(&self) -> Vec<Axis> {
                #[allow(non_snake_case)] // they are types and values at once
                let ($($axis,)+) = self.clone();
                vec![$($axis.into()),+]
            }
        }
    };
}

tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
