//! A line segment: the bytes `start .. start + len`, never empty.
//!
//! Section 4.1 of the paper, half open. What iterators over sets give, and what irregular sets are
//! made of.

use crate::error::Reason;
use crate::{FallsError, checked};

/// A non-empty run of consecutive bytes, half open.
///
/// ```text
///        start        end
///          |-----len---|
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    start: u64,
    len: u64,
}

impl Segment {
    /// The segment of `len` bytes at `start`.
    pub fn new(start: u64, len: u64) -> Result<Self, FallsError> {
        if len == 0 {
            return Err(FallsError::new(
                Reason::Length,
                "a segment of 0 bytes; give at least 1",
            ));
        }
        checked::add(start, len)?;
        Ok(Segment { start, len })
    }

    /// For offsets that come out of a valid set.
    pub(crate) fn trusted(start: u64, len: u64) -> Self {
        debug_assert!(len > 0 && start + len <= checked::MAX_OFFSET);
        Segment { start, len }
    }

    /// First byte.
    pub fn start(self) -> u64 {
        self.start
    }

    /// Number of bytes, at least 1.
    #[allow(clippy::len_without_is_empty)] // a segment is never empty
    pub fn len(self) -> u64 {
        self.len
    }

    /// One past the last byte.
    pub fn end(self) -> u64 {
        self.start + self.len
    }

    /// Last byte: the `r` of the inclusive notation.
    pub fn last(self) -> u64 {
        self.start + self.len - 1
    }
}
