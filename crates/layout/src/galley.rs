//! Nested-strided requests as the Galley file system takes them: one set, for a view.
//!
//! A request starts at an offset and takes `quantity` bytes; each level repeats all that is inside
//! it `count` times, `stride` bytes apart. Levels are given from the innermost to the outermost
//! (section 8.8 of the specification: nested repetition).
//!
//! ```text
//! start 1, quantity 2, levels (3 x 4), (2 x 20)
//! .xx..xx..xx..........xx..xx..xx
//! ```
//!
//! Each level must step over what is inside it; requests that interleave or descend are sequences,
//! not sets, and are refused.

use falls::{Falls, FallsSet};

use crate::error::LayoutError;

/// One level of repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NestedStride {
    /// How often.
    pub count: u64,
    /// Bytes from one repetition to the next.
    pub stride: u64,
}

/// A nested-strided request; it has no bytes when the quantity or a count is 0.
///
/// ```
/// use layout::{NestedStride, StridedRequest};
/// let levels = [NestedStride { count: 3, stride: 4 }, NestedStride { count: 2, stride: 20 }];
/// let request = StridedRequest::new(1, 2, &levels).unwrap();
/// assert_eq!(request.set().to_string(), "{(1,10,20,2,{(0,1,4,3)})}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StridedRequest {
    start: u64,
    quantity: u64,
    levels: Vec<NestedStride>,
    set: FallsSet,
}

impl StridedRequest {
    /// `quantity` bytes at `start`, repeated by every level, innermost first.
    pub fn new(start: u64, quantity: u64, levels: &[NestedStride]) -> Result<Self, LayoutError> {
        let mut set = match quantity {
            0 => FallsSet::empty(),
            _ => FallsSet::segment(start, quantity)?,
        };
        for (i, level) in levels.iter().enumerate() {
            set = set.repeat(level.count, level.stride).map_err(|e| {
                let e = LayoutError::from(e);
                LayoutError::new(e.kind().clone(), format!("levels[{i}]"), e.detail())
            })?;
        }
        // More levels than a tree may have are refused here.
        let members = set.nodes().map(|n| match n.inner {
            None => Falls::family(n.start, n.len, n.stride, n.count),
            Some(inner) => Falls::nested(n.start, n.len, n.stride, n.count, inner.clone()),
        });
        let set = FallsSet::new(members.collect::<Result<_, _>>()?)?;
        Ok(StridedRequest {
            start,
            quantity,
            levels: levels.to_vec(),
            set: set.simplify(),
        })
    }

    /// Where the first repetition begins.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Bytes taken at each place.
    pub fn quantity(&self) -> u64 {
        self.quantity
    }

    /// The repetitions, innermost first.
    pub fn levels(&self) -> &[NestedStride] {
        &self.levels
    }

    /// The bytes.
    pub fn set(&self) -> &FallsSet {
        &self.set
    }
}
