//! A view: what one process sees of a file, as one contiguous stream of bytes.
//!
//! Views may have holes and may overlap other views. [`ViewToSubfile`] composes a view with a
//! subfile: it is computed once when the view is set and translates any interval after that.

use std::ops::Range;

use falls::{FallsSet, Meeting, Periodic};

use crate::address::{FileOffset, SubfileOffset, ViewOffset};
use crate::error::LayoutError;
use crate::partition::Partition;

/// A set of file bytes, repeated from a displacement on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View(Periodic);

impl View {
    /// `set` repeated every `period` bytes from `displacement` on.
    pub fn new(displacement: FileOffset, period: u64, set: FallsSet) -> Result<Self, LayoutError> {
        Ok(View(Periodic::new(displacement.0, period, set)?))
    }

    /// The file as it is.
    pub fn whole_file() -> Self {
        View(Periodic::everything())
    }

    /// The bytes of the view in the file.
    pub fn bytes(&self) -> &Periodic {
        &self.0
    }

    /// File byte at view offset `k`; `None` if the view has no bytes or 2^63 is reached.
    pub fn view_to_file(&self, k: ViewOffset) -> Option<FileOffset> {
        self.0.select(k.0).map(FileOffset)
    }

    /// View offset of file byte `x`, `None` if the view does not show it.
    pub fn file_to_view(&self, x: FileOffset) -> Option<ViewOffset> {
        self.0.map(x.0).map(ViewOffset)
    }

    /// View offset of the first byte shown at or after `x`.
    pub fn file_to_view_next(&self, x: FileOffset) -> Option<ViewOffset> {
        self.0.map_next(x.0).map(ViewOffset)
    }

    /// View offset of the last byte shown at or before `x`.
    pub fn file_to_view_previous(&self, x: FileOffset) -> Option<ViewOffset> {
        self.0.map_previous(x.0).map(ViewOffset)
    }

    /// Bytes the view shows of a file of `file_len` bytes.
    pub fn len_within(&self, file_len: u64) -> u64 {
        self.0.rank(file_len)
    }

    /// Whether the view shows whole units of so many bytes, counted from the first byte of the file: no entry of an array is
    /// cut. Judged by the description, without listing pieces; a set that hides its units is said to cut them.
    ///
    /// ```
    /// use layout::{FileOffset, View};
    /// let view = |set: &str| View::new(FileOffset(0), 32, set.parse().unwrap()).unwrap();
    /// assert!(view("{(0,7,16,2)}").has_whole_units(8));
    /// assert!(!view("{(4,11,16,2)}").has_whole_units(8));
    /// ```
    pub fn has_whole_units(&self, unit_bytes: u64) -> bool {
        let is_whole = |n: u64| n.is_multiple_of(unit_bytes.max(1));
        let (bytes, set) = (&self.0, self.0.set());
        is_whole(bytes.displacement())
            && (set.size() == bytes.period()
                || is_whole(bytes.period()) && is_in_units(&set.simplify(), &is_whole))
    }

    /// The smallest file range that holds the view bytes `range`; `None` when it has none.
    pub fn file_range(&self, range: Range<ViewOffset>) -> Option<Range<FileOffset>> {
        if range.start >= range.end {
            return None;
        }
        let first = self.view_to_file(range.start)?;
        let last = self.view_to_file(ViewOffset(range.end.0 - 1))?;
        Some(first..FileOffset(last.0 + 1))
    }

    /// Composes the view with subfile `element` of a partition.
    pub fn to_subfile(&self, partition: &Partition, element: usize) -> ViewToSubfile {
        ViewToSubfile(Meeting::new(&self.0, &partition.subfile(element)))
    }
}

/// Whether every block of a set, at every depth, begins and ends between units.
fn is_in_units(set: &FallsSet, is_whole: &impl Fn(u64) -> bool) -> bool {
    set.nodes().all(|node| {
        is_whole(node.start)
            && (node.count == 1 || is_whole(node.stride))
            && match node.inner {
                Some(inner) => is_in_units(inner, is_whole),
                None => is_whole(node.len),
            }
    })
}

impl From<Periodic> for View {
    fn from(bytes: Periodic) -> Self {
        View(bytes)
    }
}

/// The bytes that a view and a subfile share, addressed from either side.
#[derive(Clone, Debug)]
pub struct ViewToSubfile(Meeting);

impl ViewToSubfile {
    /// The intersection with its projections; left is the view, right the subfile.
    pub fn meeting(&self) -> &Meeting {
        &self.0
    }

    /// Whether they share no byte.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Subfile offset of view byte `k`; `None` if that byte is not on the subfile.
    pub fn view_to_subfile(&self, k: ViewOffset) -> Option<SubfileOffset> {
        let x = self.0.left().select(k.0)?;
        self.0.right().map(x).map(SubfileOffset)
    }

    /// Subfile offset of the first subfile byte at or after view byte `k` in the file.
    pub fn view_to_subfile_next(&self, k: ViewOffset) -> Option<SubfileOffset> {
        let x = self.0.left().select(k.0)?;
        self.0.right().map_next(x).map(SubfileOffset)
    }

    /// Subfile offset of the last subfile byte at or before view byte `k` in the file.
    pub fn view_to_subfile_previous(&self, k: ViewOffset) -> Option<SubfileOffset> {
        let x = self.0.left().select(k.0)?;
        self.0.right().map_previous(x).map(SubfileOffset)
    }

    /// View offset of subfile byte `k`; `None` if the view does not show it.
    pub fn subfile_to_view(&self, k: SubfileOffset) -> Option<ViewOffset> {
        let x = self.0.right().select(k.0)?;
        self.0.left().map(x).map(ViewOffset)
    }
}
