//! PITFALLS: one description for the FALLS of many processors.
//!
//! `(l, r, s, n, d, p)` is a family of `p` FALLS, processor `i` having `(l + i*d, r + i*d, s, n)`
//! (section 4.5; the definition is the usual one, the paper gives none). Nested, each level has its
//! own `p` and `d`; an element is chosen by one index per level, the outermost most significant.
//!
//! ```text
//! CYCLIC(2) of 16 on 4:  (0,1,8,2,2,4)     0011223300112233
//! ```
//!
//! All elements have the same shape, so ragged distributions need sets of FALLS of their own.

use crate::error::{FallsError, Reason};
use crate::set::{Falls, FallsSet};

/// A nested PITFALLS list: members share the number of processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pitfalls {
    /// Start of the first block of processor 0.
    pub start: u64,
    /// Bytes per block.
    pub len: u64,
    /// Distance between blocks of one processor.
    pub stride: u64,
    /// Blocks per processor.
    pub count: u64,
    /// Distance from one processor to the next.
    pub distance: u64,
    /// Number of processors at this level.
    pub processors: u64,
    /// What is inside each block; empty for the whole block.
    pub inner: Vec<Pitfalls>,
}

impl Pitfalls {
    /// Number of elements a list describes: the product over its levels.
    pub fn elements(list: &[Pitfalls]) -> Result<u64, FallsError> {
        let Some(first) = list.first() else {
            return Ok(1);
        };
        let inner = Pitfalls::elements(&first.inner)?;
        for (i, member) in list.iter().enumerate() {
            if member.processors == 0 {
                return Err(
                    FallsError::new(Reason::Count, "0 processors; give at least 1").inside(i),
                );
            }
            // The first member's inner list was counted above; again would double the work per level.
            let same = member.processors == first.processors
                && (i == 0 || Pitfalls::elements(&member.inner)? == inner);
            if !same {
                return Err(FallsError::new(
                    Reason::Count,
                    format!(
                        "members of one list share the number of processors, here {} and {}",
                        first.processors, member.processors
                    ),
                )
                .inside(i));
            }
        }
        crate::checked::mul(first.processors, inner)
    }

    /// Element number `index` of a list.
    ///
    /// ```
    /// use falls::Pitfalls;
    /// let cyclic = Pitfalls { start: 0, len: 2, stride: 8, count: 2, distance: 2, processors: 4, inner: vec![] };
    /// assert_eq!(Pitfalls::element(&[cyclic], 3).unwrap().to_string(), "{(6,7,8,2)}");
    /// ```
    pub fn element(list: &[Pitfalls], index: u64) -> Result<FallsSet, FallsError> {
        let total = Pitfalls::elements(list)?;
        if index >= total {
            return Err(FallsError::new(
                Reason::Range,
                format!("element {index} of a list that describes {total}"),
            ));
        }
        expand(list, index)
    }
}

fn expand(list: &[Pitfalls], index: u64) -> Result<FallsSet, FallsError> {
    let mut members = Vec::with_capacity(list.len());
    for (i, p) in list.iter().enumerate() {
        let inside = Pitfalls::elements(&p.inner)?;
        let (processor, rest) = (index / inside, index % inside);
        let start = crate::checked::add(p.start, crate::checked::mul(processor, p.distance)?)?;
        let falls = if p.inner.is_empty() {
            Falls::family(start, p.len, p.stride, p.count)
        } else {
            Falls::nested(start, p.len, p.stride, p.count, expand(&p.inner, rest)?)
        };
        members.push(falls.map_err(|e| e.inside(i))?);
    }
    FallsSet::new(members)
}
