//! From sets back to datatypes: nested FALLS as MPI constructor calls.
//!
//! | set | datatype over bytes |
//! |---|---|
//! | one segment | `contiguous` |
//! | a family | `hvector` with the block as block length |
//! | a nested family | `hvector` of the inner type |
//! | several segments | `hindexed`, `hindexed_block` when all are equally long |
//! | several members | `struct` |
//! | a period | `resized(0, period)` around it |
//!
//! One constructor for each node, so the number of calls does not depend on counts. The type map of
//! the result is the set in ascending order.

use falls::{FallsSet, Periodic};

use super::Datatype;
use crate::error::LayoutError;

impl Datatype {
    /// A datatype whose type map is the set in ascending order, offset 0 of the set at `base`: what
    /// [`Datatype::to_set`] undoes.
    ///
    /// ```
    /// use layout::mpi::Datatype;
    /// let set = "{(0,7,16,2,{(0,1,4,2)})}".parse().unwrap();
    /// let t = Datatype::from_set(0, &set)?;
    /// assert_eq!((t.size(), t.extent()), (8, 22));
    /// assert!(t.to_set()?.1.same_bytes(&set));
    /// # Ok::<(), layout::LayoutError>(())
    /// ```
    pub fn from_set(base: i64, set: &FallsSet) -> Result<Self, LayoutError> {
        let byte = Datatype::basic(1)?;
        if set.is_empty() {
            return Datatype::contiguous(0, &byte);
        }
        of_set(base, set, &byte)
    }

    /// Displacement and filetype of a periodic set: lower bound 0, extent = period.
    ///
    /// ```
    /// use falls::Periodic;
    /// use layout::mpi::{Datatype, FileView};
    /// let set = Periodic::new(2, 6, "{(2,3,-,1)}".parse().unwrap()).unwrap();
    /// let (displacement, filetype) = Datatype::from_periodic(&set)?;
    /// assert_eq!((displacement, filetype.size(), filetype.extent()), (2, 2, 6));
    /// let view = FileView::new(displacement, &Datatype::basic(1)?, &filetype)?.to_periodic()?;
    /// assert_eq!((view.map(10), view.map(8)), (set.map(10), set.map(8)));
    /// # Ok::<(), layout::LayoutError>(())
    /// ```
    pub fn from_periodic(set: &Periodic) -> Result<(i64, Self), LayoutError> {
        let displacement = signed("displacement", set.displacement())?;
        let tile = Datatype::from_set(0, set.set())?;
        let period = signed("period", set.period())?;
        Ok((displacement, Datatype::resized(0, period, &tile)?))
    }
}

fn of_set(base: i64, set: &FallsSet, byte: &Datatype) -> Result<Datatype, LayoutError> {
    let mut blocklens = Vec::with_capacity(set.len());
    let mut displs = Vec::with_capacity(set.len());
    let mut olds = Vec::with_capacity(set.len());
    for node in set.nodes() {
        let start = signed("set", node.start)?;
        displs.push(
            base.checked_add(start)
                .ok_or_else(|| LayoutError::overflow("base"))?,
        );
        let (len, count) = (signed("set", node.len)?, signed("set", node.count)?);
        let (blocklen, old) = match node.inner {
            None if count == 1 => (len, byte.clone()),
            None => (
                1,
                Datatype::hvector(count, len, signed("set", node.stride)?, byte)?,
            ),
            Some(inner) => {
                let inner = of_set(0, inner, byte)?;
                let stride = signed("set", node.stride)?;
                (
                    1,
                    if count == 1 {
                        inner
                    } else {
                        Datatype::hvector(count, 1, stride, &inner)?
                    },
                )
            }
        };
        blocklens.push(blocklen);
        olds.push(old);
    }
    let segments = set.nodes().all(|n| n.count == 1 && n.inner.is_none());
    match (blocklens.as_slice(), displs.as_slice()) {
        (&[1], &[0]) => Ok(olds[0].clone()),
        (&[len], &[0]) => Datatype::contiguous(len, byte),
        (&[first, ..], _) if segments && blocklens.iter().all(|&b| b == first) => {
            Datatype::hindexed_block(first, &displs, byte)
        }
        _ if segments => Datatype::hindexed(&blocklens, &displs, byte),
        (&[1], _) => Datatype::hindexed_block(1, &displs, &olds[0]),
        _ => Datatype::structure(&blocklens, &displs, &olds),
    }
}

fn signed(argument: &str, value: u64) -> Result<i64, LayoutError> {
    i64::try_from(value).map_err(|_| LayoutError::overflow(argument))
}
