//! File views: displacement, etype and filetype.
//!
//! Tile i of the filetype lies at `displacement + i * extent`; the lower bound is not subtracted.
//!
//! ```text
//! filetype   .##.      true lb 1, extent 4, displacement 3
//! file       ....##..##..##..                 periodic set: from 4 on, {0,1} of every 4
//! ```
//!
//! A view is a set when its bytes ascend without end: no negative displacement, a type map that
//! ascends, and tiles that do not interleave (true extent at most the extent). What does not is refused
//! by [`FileView::to_periodic`] and still available piece by piece as a sequence.

use std::ops::Range;

use falls::{FallsSet, Periodic};

use super::Datatype;
use crate::error::{LayoutError, LayoutErrorKind};
use crate::sequence::Sequence;

/// What `MPI_File_set_view` is given.
///
/// ```
/// use layout::mpi::{Datatype, FileView};
/// let int = Datatype::basic(4)?;
/// let filetype = Datatype::vector(25, 1, 2, &int)?;
/// let view = FileView::new(200, &int, &filetype)?;
/// let set = view.to_periodic()?;
/// assert_eq!((set.displacement(), set.period(), set.size()), (200, 196, 100));
/// assert_eq!(view.select(4), Some(208));
/// # Ok::<(), layout::LayoutError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileView {
    displacement: i64,
    etype: Datatype,
    filetype: Datatype,
}

impl FileView {
    /// A view. The displacement must not be negative, the etype must have bytes, and the filetype a
    /// whole number of etypes (0 is legal: a view of nothing).
    pub fn new(
        displacement: i64,
        etype: &Datatype,
        filetype: &Datatype,
    ) -> Result<Self, LayoutError> {
        if displacement < 0 {
            return Err(LayoutError::argument(
                "displacement",
                format!("{displacement} is negative; a file begins at 0"),
            ));
        }
        if etype.size() == 0 {
            return Err(LayoutError::argument(
                "etype",
                "has no bytes; offsets in the view count etypes",
            ));
        }
        if !filetype.size().is_multiple_of(etype.size()) {
            return Err(LayoutError::argument(
                "filetype",
                format!(
                    "{} bytes are no multiple of the {} bytes of the etype",
                    filetype.size(),
                    etype.size()
                ),
            ));
        }
        Ok(FileView {
            displacement,
            etype: etype.clone(),
            filetype: filetype.clone(),
        })
    }

    /// Where the first tile lies.
    pub fn displacement(&self) -> i64 {
        self.displacement
    }

    /// The unit of offsets in the view.
    pub fn etype(&self) -> &Datatype {
        &self.etype
    }

    /// The tile.
    pub fn filetype(&self) -> &Datatype {
        &self.filetype
    }

    /// The view as a periodic set: displacement plus true lower bound, period = extent.
    ///
    /// A filetype without bytes gives the empty set with the filetype's extent as period, 1 if that
    /// is not positive. Refused: bytes before the displacement, a type map that does not ascend
    /// (naming the constructor), tiles that interleave.
    pub fn to_periodic(&self) -> Result<Periodic, LayoutError> {
        let extent = self.filetype.extent();
        let start = self.displacement.unsigned_abs();
        if self.filetype.size() == 0 {
            let period = extent.max(1).unsigned_abs();
            return Ok(Periodic::new(start, period, FallsSet::empty())?);
        }
        if !self.filetype.is_monotone() {
            return Err(self.filetype.not_monotone("filetype"));
        }
        let low = self.filetype.true_lb();
        if low < 0 {
            return Err(LayoutError::argument(
                "filetype",
                format!(
                    "its lowest byte is at {low}; displacements in a filetype must not be negative"
                ),
            ));
        }
        let reach = self.filetype.true_extent();
        if extent < reach {
            return Err(LayoutError::new(
                LayoutErrorKind::NotMonotone,
                "filetype",
                format!(
                    "tiles {extent} bytes apart interleave, because the bytes of one reach over {reach}; resize it to at least that extent"
                ),
            ));
        }
        let (_, set) = self.filetype.to_set()?;
        let start = start
            .checked_add(low.unsigned_abs())
            .ok_or_else(|| LayoutError::overflow("displacement"))?;
        Ok(Periodic::new(start, extent.unsigned_abs(), set)?)
    }

    /// The file offset of byte `k` of the view; `None` when there is none or it leaves 64 bits.
    /// Defined for every filetype.
    pub fn select(&self, k: u64) -> Option<i64> {
        let size = self.filetype.size();
        let within = self.filetype.0.sequence.select(k.checked_rem(size)?)?;
        let tile = i64::try_from(k / size).ok()?;
        tile.checked_mul(self.filetype.extent())?
            .checked_add(within)?
            .checked_add(self.displacement)
    }

    /// The file offsets of the view's bytes `range`, in view order. Defined for every filetype, also
    /// where [`FileView::to_periodic`] refuses.
    pub fn sequence(&self, range: Range<u64>) -> Result<Sequence, LayoutError> {
        let (size, tile) = (self.filetype.size(), &self.filetype.0.sequence);
        if range.start >= range.end || size == 0 {
            return Ok(Sequence::empty());
        }
        let place = |part: Sequence, index: u64| {
            let far = i128::from(index) * i128::from(self.filetype.extent())
                + i128::from(self.displacement);
            let far = i64::try_from(far).map_err(|_| LayoutError::overflow("range"))?;
            part.shift(far)
        };
        let (first, head) = (range.start / size, range.start % size);
        let (last, tail) = (range.end / size, range.end % size);
        if first == last {
            return place(tile.slice(head..tail), first);
        }
        let whole = if head == 0 { first } else { first + 1 };
        let mut parts = Vec::with_capacity(3);
        if head > 0 {
            parts.push(place(tile.slice(head..size), first)?);
        }
        if whole < last {
            let tiles = tile.repeat(last - whole, self.filetype.extent())?;
            parts.push(place(tiles, whole)?);
        }
        if tail > 0 {
            parts.push(place(tile.slice(0..tail), last)?);
        }
        Sequence::concat(&parts)
    }
}
