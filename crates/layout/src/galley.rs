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

use falls::FallsSet;

use crate::error::LayoutError;

/// One level of repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NestedStride {
    /// How often.
    pub count: u64,
    /// Bytes from one repetition to the next.
    pub stride: u64,
}

/// The bytes of a nested-strided request; empty when the quantity or a count is 0.
///
/// ```
/// use layout::{NestedStride, nested_strided};
/// let levels = [NestedStride { count: 3, stride: 4 }, NestedStride { count: 2, stride: 20 }];
/// let set = nested_strided(1, 2, &levels).unwrap();
/// assert_eq!(set.to_string(), "{(1,10,20,2,{(0,1,4,3)})}");
/// ```
pub fn nested_strided(
    start: u64,
    quantity: u64,
    levels: &[NestedStride],
) -> Result<FallsSet, LayoutError> {
    if quantity == 0 {
        return Ok(FallsSet::empty());
    }
    let mut set = FallsSet::segment(start, quantity)?;
    for (i, level) in levels.iter().enumerate() {
        set = set.repeat(level.count, level.stride).map_err(|e| {
            let e = LayoutError::from(e);
            LayoutError::new(e.kind().clone(), format!("levels[{i}]"), e.detail())
        })?;
    }
    Ok(set.simplify())
}
