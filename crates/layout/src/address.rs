//! Byte addresses that carry their space in their type.
//!
//! A file, a view of it and a subfile each count their bytes from 0. Mixing the three is the classic
//! mistake of parallel I/O; here it does not compile. Maps are the only way from one to another.

use std::fmt;

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
