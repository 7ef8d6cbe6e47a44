//! Byte addresses that carry their space in their type.
//!
//! A file, a view of it and a subfile each count their bytes from 0. Mixing the three is the classic
//! mistake of parallel I/O; here it does not compile. Maps are the only way from one to another.

use std::fmt;
use std::ops::Range;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident, $word:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// The bare number, for printing and for the wire.
            pub fn get(self) -> u64 {
                self.0
            }
        }

        impl Span<$name> {
            /// Bare numbers that are known to be of this space: from the wire, from `kernels`, from tests.
            pub fn from_raw(raw: Range<u64>) -> Self {
                Span::new($name(raw.start), $name(raw.end))
            }

            /// Number of bytes.
            pub fn bytes(self) -> u64 {
                self.end.0.saturating_sub(self.start.0)
            }

            /// The bare numbers, for `kernels`, for printing and for the wire.
            pub fn raw(self) -> Range<u64> {
                self.start.0..self.end.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($word, " byte {}"), self.0)
            }
        }
    };
}

address!(
    /// A byte of the file as everybody sees it.
    FileOffset,
    "file"
);
address!(
    /// A byte of one process's view.
    ViewOffset,
    "view"
);
address!(
    /// A byte of one subfile as its server stores it.
    SubfileOffset,
    "subfile"
);

/// Neighbouring bytes of one space, from `start` up to and without `end`. A [`Range`] that can be copied.
///
/// ```
/// use layout::{FileOffset, FileSpan};
/// let (a, b) = (FileSpan::from_raw(0..10), FileSpan::from_raw(6..20));
/// assert_eq!(a.within(b), FileSpan::from_raw(6..10));
/// assert!(a.within(FileSpan::from_raw(10..20)).is_empty());
/// assert!(b.contains(FileOffset(6)) && !b.contains(FileOffset(20)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span<O> {
    /// The first byte.
    pub start: O,
    /// One past the last byte.
    pub end: O,
}

/// Neighbouring bytes of a file.
pub type FileSpan = Span<FileOffset>;
/// Neighbouring bytes of a view.
pub type ViewSpan = Span<ViewOffset>;
/// Neighbouring bytes of a subfile.
pub type SubfileSpan = Span<SubfileOffset>;

impl<O: Copy + Ord> Span<O> {
    /// The bytes from `start` up to `end`; none if `end` is not behind it.
    pub fn new(start: O, end: O) -> Self {
        Span { start, end }
    }

    /// Whether it has no byte.
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// The bytes that are in both.
    pub fn within(self, other: Self) -> Self {
        Span::new(self.start.max(other.start), self.end.min(other.end))
    }

    /// Whether a byte is in it.
    pub fn contains(self, at: O) -> bool {
        self.start <= at && at < self.end
    }
}

impl<O> From<Range<O>> for Span<O> {
    fn from(range: Range<O>) -> Self {
        Span {
            start: range.start,
            end: range.end,
        }
    }
}
