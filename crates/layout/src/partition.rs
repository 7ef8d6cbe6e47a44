//! A physical partition: a pattern repeated from a displacement on, each element a subfile.
//!
//! Maps, lengths and owners follow from RANK and SELECT of the element (sections 6.1, 6.2; 3.13 of
//! the specification). Bytes before the displacement belong to no subfile; layouts that are to hold
//! every byte have displacement 0 or give the header to an element of its own.
//!
//! Methods that take an element number panic if there is no such element, as indexing does.
//!
//! Cost: O(depth x log fan-out) per map, per owner, and per element found on a range.

use std::ops::Range;

use falls::{MAX_OFFSET, Periodic};

use crate::address::{FileOffset, SubfileOffset};
use crate::error::LayoutError;
use crate::pattern::Pattern;

/// From this many elements on, those that meet a range are looked up instead of tried in turn.
const MANY: usize = 64;

/// A pattern with its displacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    displacement: FileOffset,
    pattern: Pattern,
}

impl Partition {
    /// The pattern repeated from `displacement` to the end of the file, whatever that is.
    pub fn new(displacement: FileOffset, pattern: Pattern) -> Result<Self, LayoutError> {
        if displacement.0 > MAX_OFFSET {
            return Err(LayoutError::overflow("displacement"));
        }
        Ok(Partition {
            displacement,
            pattern,
        })
    }

    /// The pattern repeated from the first byte of the file on.
    pub fn from_start(pattern: Pattern) -> Self {
        Partition {
            displacement: FileOffset(0),
            pattern,
        }
    }

    /// Where the pattern begins.
    pub fn displacement(&self) -> FileOffset {
        self.displacement
    }

    /// The pattern.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Number of subfiles.
    pub fn len(&self) -> usize {
        self.pattern.len()
    }

    /// Whether there are no subfiles; never true for a valid pattern.
    pub fn is_empty(&self) -> bool {
        self.pattern.is_empty()
    }

    /// Subfile `element` as a set of file bytes.
    ///
    /// # Panics
    /// If `element` is not below [`Partition::len`].
    pub fn subfile(&self, element: usize) -> Periodic {
        Periodic::new(
            self.displacement.0,
            self.pattern.period(),
            self.pattern.elements()[element].clone(),
        )
        .expect("checked when the pattern was built")
    }

    /// All subfiles, by number.
    pub fn subfiles(&self) -> impl ExactSizeIterator<Item = Periodic> + '_ {
        (0..self.len()).map(|e| self.subfile(e))
    }

    /// The element that owns a byte and its offset there; `None` before the displacement.
    ///
    /// ```
    /// use layout::{FileOffset, Partition, Pattern, SubfileOffset};
    /// let set = |s: &str| s.parse::<falls::FallsSet>().unwrap();
    /// let pattern = Pattern::new(6, vec![set("{(0,1)}"), set("{(2,3)}"), set("{(4,5)}")]).unwrap();
    /// let p = Partition::new(FileOffset(2), pattern).unwrap();       // figure 4 of the paper
    /// assert_eq!(p.owner(FileOffset(10)), Some((1, SubfileOffset(2))));
    /// assert_eq!(p.owner(FileOffset(1)), None);
    /// ```
    pub fn owner(&self, x: FileOffset) -> Option<(usize, SubfileOffset)> {
        let y = x.0.checked_sub(self.displacement.0)?;
        let (k, z) = (y / self.pattern.period(), y % self.pattern.period());
        let element = self.pattern.owner_within(z);
        let set = &self.pattern.elements()[element];
        Some((element, SubfileOffset(k * set.size() + set.rank(z))))
    }

    /// Numbers of the elements that own a byte of the file range, ascending.
    pub fn elements_meeting(&self, range: Range<FileOffset>) -> Vec<usize> {
        let lo = range.start.0.max(self.displacement.0) - self.displacement.0;
        let hi = range.end.0.saturating_sub(self.displacement.0);
        if lo >= hi {
            return Vec::new();
        }
        let period = self.pattern.period();
        if hi - lo >= period {
            return self.pattern.owners_within(0..period);
        }
        let (a, b) = (lo % period, (hi - 1) % period + 1);
        if a < b {
            return self.pattern.owners_within(a..b);
        }
        let mut found = self.pattern.owners_within(a..period);
        found.extend(self.pattern.owners_within(0..b));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Visits all elements that may own a byte of the file range, ascending. Where there are few, all
    /// are visited, which needs no list; where there are many, they are found by descent.
    pub fn visit_meeting(&self, range: Range<FileOffset>, visit: impl FnMut(usize)) {
        if self.len() < MANY {
            (0..self.len()).for_each(visit);
        } else {
            self.elements_meeting(range).into_iter().for_each(visit);
        }
    }

    /// Offset of file byte `x` in subfile `element`, `None` if the subfile does not own it.
    pub fn file_to_subfile(&self, element: usize, x: FileOffset) -> Option<SubfileOffset> {
        self.subfile(element).map(x.0).map(SubfileOffset)
    }

    /// Offset in subfile `element` of its first byte at or after `x`; `None` if it has no bytes.
    pub fn file_to_subfile_next(&self, element: usize, x: FileOffset) -> Option<SubfileOffset> {
        self.subfile(element).map_next(x.0).map(SubfileOffset)
    }

    /// Offset in subfile `element` of its last byte at or before `x`; `None` if there is none.
    pub fn file_to_subfile_previous(&self, element: usize, x: FileOffset) -> Option<SubfileOffset> {
        self.subfile(element).map_previous(x.0).map(SubfileOffset)
    }

    /// File byte at offset `k` of subfile `element`; `None` if the subfile has no bytes or the
    /// file offset would reach 2^63.
    pub fn subfile_to_file(&self, element: usize, k: SubfileOffset) -> Option<FileOffset> {
        self.subfile(element).select(k.0).map(FileOffset)
    }

    /// Length of subfile `element` when the file is `file_len` bytes long.
    pub fn subfile_len(&self, element: usize, file_len: u64) -> u64 {
        self.subfile(element).rank(file_len)
    }

    /// The shortest file that has subfiles of these lengths; at least the displacement unless all
    /// are empty. `None` when a length belongs to an empty element or the file would reach 2^63.
    ///
    /// The length of a file is metadata: subfile lengths cannot tell trailing holes.
    pub fn file_len(&self, subfile_lens: &[u64]) -> Option<u64> {
        let mut len = 0;
        for (element, &bytes) in subfile_lens.iter().enumerate() {
            if bytes > 0 {
                let last = self.subfile_to_file(element, SubfileOffset(bytes - 1))?;
                len = len.max(last.0 + 1);
            }
        }
        Some(len)
    }
}
