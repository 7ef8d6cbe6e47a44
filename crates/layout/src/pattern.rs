//! A partitioning pattern: sets that start at 0, are disjoint and cover their period.
//!
//! Section 5 of the Clusterfile paper, with the condition it leaves out (the pattern starts at 0,
//! E-21). Checking and looking up share one structure, the [`Overlay`] of all elements, which is
//! built once; so validation costs about the nodes of the elements, not their pieces.

use std::ops::Range;
use std::sync::Arc;

use falls::{FallsSet, Flaw, Overlay};

use crate::error::LayoutError;

/// Validated elements with a common period.
#[derive(Clone, Debug)]
pub struct Pattern(Arc<Data>);

#[derive(Debug)]
struct Data {
    period: u64,
    elements: Vec<FallsSet>,
    owners: Overlay,
}

impl Pattern {
    /// Checks that `elements` partition `0..period`.
    ///
    /// Elements may be empty. The error names the two elements that overlap, or the first byte that
    /// is left out or lies beyond the period.
    ///
    /// ```
    /// use layout::Pattern;
    /// let set = |s: &str| s.parse::<falls::FallsSet>().unwrap();
    /// assert!(Pattern::new(6, vec![set("{(0,1)}"), set("{(2,5)}")]).is_ok());
    /// let error = Pattern::new(6, vec![set("{(0,3)}"), set("{(3,5)}")]).unwrap_err();
    /// assert_eq!(error.to_string(), "elements: elements 0 and 1 both own byte 3 of the pattern");
    /// ```
    pub fn new(period: u64, elements: Vec<FallsSet>) -> Result<Self, LayoutError> {
        if period == 0 {
            return Err(LayoutError::argument(
                "period",
                "is 0 bytes; give at least 1",
            ));
        }
        if let Some(element) = elements.iter().position(|e| e.end() > period) {
            let byte = elements[element].next_byte(period).unwrap_or(period);
            return Err(LayoutError::flaw(Flaw::Outside { element, byte }));
        }
        let owners = Overlay::new(&elements).map_err(LayoutError::flaw)?;
        if let Some(byte) = owners.first_gap(period) {
            return Err(LayoutError::flaw(Flaw::Gap { byte }));
        }
        Ok(Pattern(Arc::new(Data {
            period,
            elements,
            owners,
        })))
    }

    /// Bytes of one repetition.
    pub fn period(&self) -> u64 {
        self.0.period
    }

    /// The elements, by number.
    pub fn elements(&self) -> &[FallsSet] {
        &self.0.elements
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.0.elements.len()
    }

    /// Whether there is no element; never true, since a period has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.0.elements.is_empty()
    }

    /// Number of the element that owns byte `x` of the period.
    pub(crate) fn owner_within(&self, x: u64) -> usize {
        self.0.owners.owner(x).expect("a pattern covers its period")
    }

    /// Numbers of the elements that own a byte of `range` of the period, ascending.
    pub(crate) fn owners_within(&self, range: Range<u64>) -> Vec<usize> {
        self.0.owners.owners(range)
    }

    /// The elements merged into one labelled tree; labels are element numbers.
    pub fn owners(&self) -> &Overlay {
        &self.0.owners
    }

    /// Nodes of the owner index: what a lookup structure for this pattern costs.
    pub fn index_nodes(&self) -> u64 {
        self.0.owners.node_count()
    }
}

impl PartialEq for Pattern {
    /// Equality of the trees; equal patterns may still be unequal here (see [`falls`]).
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.period() == other.period() && self.elements() == other.elements())
    }
}

impl Eq for Pattern {}
