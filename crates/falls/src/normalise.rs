//! NORMALISE: a well-formed set from any list of nested FALLS (3.12 of the specification).
//!
//! ```text
//! (0,0,4,3) and (2,2,4,3), interleaved   x.x.x.x.x.x   ->  {(0,0,2,6)}
//! ```
//!
//! Members may be unsorted, interleave or overlap, at every level, and blocks of one member may
//! overlap each other. Where strides have a common period inside the common span, one period is
//! merged and repeated; otherwise blocks are opened one by one, within a budget. Overlap is an
//! error for partitions and views that are written and harmless for views that are read, so it is
//! reported and not judged.

use crate::checked;
use crate::error::{FallsError, Reason};
use crate::notation::Term;
use crate::overlay::unite;
use crate::set::{Falls, FallsSet};

/// Most blocks that are opened because they overlap each other.
const MAX_OPENED: u64 = 1 << 20;

impl FallsSet {
    /// The union of members in any order, interleaved or overlapping, and whether any byte occurs
    /// twice.
    ///
    /// ```
    /// use falls::{Falls, FallsSet};
    /// let odd = Falls::family(1, 1, 4, 1000).unwrap();
    /// let even = Falls::family(0, 1, 4, 1000).unwrap();
    /// let (set, overlap) = FallsSet::normalise(vec![odd, even]).unwrap();
    /// assert_eq!((set.to_string().as_str(), overlap), ("{(0,1,4,1000)}", false));
    /// ```
    pub fn normalise(members: Vec<Falls>) -> Result<(FallsSet, bool), FallsError> {
        let written: u128 = members.iter().map(|m| u128::from(m.size())).sum();
        let set = unite(members).ok_or_else(|| {
            FallsError::new(
                Reason::Nodes,
                "the members interleave without a short common period; their union needs too many nodes",
            )
        })?;
        let overlap = u128::from(set.size()) < written;
        Ok((set, overlap))
    }

    /// The union of sets that may interleave and overlap, and whether any byte occurs twice.
    pub fn union(sets: &[FallsSet]) -> Result<(FallsSet, bool), FallsError> {
        FallsSet::normalise(sets.iter().flat_map(FallsSet::to_members).collect())
    }
}

impl Term {
    /// The set that a list denotes as a union of bytes, whatever its order, and whether any byte
    /// occurs twice. Refuses what has no meaning: negative starts, blocks that end before they
    /// start, no blocks, inner FALLS outside their block.
    pub fn normalise(terms: &[Term]) -> Result<(FallsSet, bool), FallsError> {
        let mut members = Vec::with_capacity(terms.len());
        let mut twice = false;
        for (i, term) in terms.iter().enumerate() {
            twice |= term.members(&mut members).map_err(|e| e.inside(i))?;
        }
        let (set, overlap) = FallsSet::normalise(members)?;
        Ok((set, twice || overlap))
    }

    /// Appends the term as well-formed members; whether its own blocks share bytes.
    fn members(&self, out: &mut Vec<Falls>) -> Result<bool, FallsError> {
        let (inner, twice) = match self.inner.is_empty() {
            true => (None, false),
            false => {
                let (set, twice) = Term::normalise(&self.inner)?;
                (Some(set), twice)
            }
        };
        let block = Term {
            n: 1,
            inner: Vec::new(),
            ..self.clone()
        }
        .to_falls()?;
        let (start, len) = (block.start(), block.len());
        let build = |start, stride, count| match &inner {
            None => Falls::family(start, len, stride, count),
            Some(set) => Falls::nested(start, len, stride, count, set.clone()),
        };
        let stride = self.s.unwrap_or(0);
        if self.n <= 1 || stride < 0 || stride as u64 >= len {
            // Well formed, or refused for the same reason as anywhere.
            let whole = Term {
                inner: Vec::new(),
                ..self.clone()
            }
            .to_falls()?;
            out.push(build(start, whole.stride(), whole.count())?);
            return Ok(twice);
        }
        let (stride, count) = (stride as u64, self.n as u64);
        let end = checked::add(start, checked::add(checked::mul(count - 1, stride)?, len)?)?;
        match &inner {
            None => {
                out.push(Falls::segment(start, end - start)?);
                return Ok(true);
            }
            Some(_) if count > MAX_OPENED => {
                return Err(FallsError::new(
                    Reason::Nodes,
                    format!("{count} nested blocks overlap each other; the limit is {MAX_OPENED}"),
                ));
            }
            Some(_) => {
                for k in 0..count {
                    out.push(build(start + k * stride, len, 1)?);
                }
            }
        }
        Ok(twice)
    }
}
