//! Numbers that name things, each of its own type.
//!
//! None is ever used twice: files and servers are counted by the catalogue, handles carry the number
//! of the catalogue's start, and clients are numbered by the manager, which accepts their connections.

use std::fmt;

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident, $word:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($word, " {}"), self.0)
            }
        }
    )*};
}

id! {
    /// A file or directory, for as long as the catalogue exists.
    FileId, "file";
    /// A connected process.
    ClientId, "client";
    /// One opening of a file by a client.
    HandleId, "handle";
    /// An I/O server, over all its starts.
    ServerId, "server";
}

impl ServerId {
    /// The metadata manager, where servers introduce themselves; I/O servers count from 0.
    pub const MANAGER: ServerId = ServerId(u64::MAX);
}

/// Nanoseconds since the beginning of 1970, as a process with a clock saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

/// What is durable about a file's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeState {
    /// The size.
    pub size: u64,
    /// Counts truncates.
    pub epoch: u64,
    /// The truncate of this epoch, to this size, has not been applied everywhere.
    pub truncate_to: Option<u64>,
}
