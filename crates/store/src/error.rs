//! What can go wrong with stored bytes, and whether it helps to try again.
//!
//! Three kinds, as everywhere: a bug asserts; the caller gets [`Error::Argument`] with the name of
//! the argument; the world gets one of the rest. [`Error::advice`] is for servers that have to
//! choose between waiting, repeating and giving up; nothing here waits by itself.

use std::io;

use crate::identity::SubfileId;

/// What ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The memory limit of the pool.
    Memory,
    /// Room on every disk that could take the bytes.
    Disk,
    /// Segments, each of which is an open descriptor.
    Segments,
}

/// Whether to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Repeating can succeed at once: another access was in the way.
    Now,
    /// Repeating can succeed after something was freed, written back or released.
    Later,
    /// Repeating gives the same result.
    Never,
}

/// Why an operation of a store failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such subfile.
    #[error("there is no subfile {0}")]
    NotFound(SubfileId),
    /// A subfile of that identity exists already.
    #[error("subfile {0} exists already")]
    Exists(SubfileId),
    /// The caller's argument is wrong: its name, and what would be right.
    #[error("{name}: {why}")]
    Argument {
        /// Name of the argument.
        name: &'static str,
        /// What is wrong and what would be right.
        why: String,
    },
    /// Nothing left of a bounded resource. Accepted bytes are kept; this request was not accepted.
    #[error("{} for {wanted_bytes} bytes", match .resource {
        Resource::Memory => "the memory limit leaves no room",
        Resource::Disk => "no disk has room",
        Resource::Segments => "the limit of open segments leaves no room",
    })]
    NoSpace {
        /// What ran out.
        resource: Resource,
        /// Bytes that were asked for.
        wanted_bytes: u64,
    },
    /// Bytes on a disk do not match their checksum. Nothing was returned in their place.
    #[error("subfile {id} is damaged at byte {offset}: {why}")]
    Corrupt {
        /// Subfile they belong to.
        id: SubfileId,
        /// First subfile byte of the block, or of the group whose table is damaged.
        offset: u64,
        /// What did not match.
        why: &'static str,
    },
    /// A file that is not a data file of this format, or of another version.
    #[error("{name}: {why}")]
    Format {
        /// Name of the file.
        name: String,
        /// What was found and what was expected.
        why: String,
    },
    /// A data file whose creation a process did not live to finish: nothing was ever stored in it.
    #[error("{name}: no header: its creation was never finished")]
    Unfinished {
        /// Name of the file.
        name: String,
    },
    /// The disk failed at a point after which it cannot be trusted with further writes.
    #[error("disk {disk} failed: {why}")]
    DiskFailed {
        /// Which one.
        disk: String,
        /// What it was doing.
        why: String,
    },
    /// The disks that were given are not those of this store: which, what was expected, and what to do.
    #[error("{0}")]
    Disks(String),
    /// The subfile is, or may be, on a disk that is missing.
    #[error("subfile {id} cannot be reached: {why}")]
    DiskMissing {
        /// The subfile.
        id: SubfileId,
        /// The disk, what was found in its place, and what to do.
        why: String,
    },
    /// Bytes of the subfile were durable and are gone.
    #[error("the bytes of subfile {id} are lost: {why}")]
    Lost {
        /// The subfile.
        id: SubfileId,
        /// Where they were.
        why: String,
    },
    /// Several data files say that they are this subfile, and none of them counts for certain.
    #[error("subfile {id} is there more than once: {why}")]
    Conflict {
        /// The subfile.
        id: SubfileId,
        /// The data files, and what to do.
        why: String,
    },
    /// The space of a grant was taken away (truncation, removal) before it was committed.
    #[error("the space of this write was taken away by a truncation; repeat the write")]
    Stale,
    /// The directory is used by another process.
    #[error("{disk} is used by another process")]
    Busy {
        /// Which directory.
        disk: String,
    },
    /// Any other system error.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The error itself.
        source: io::Error,
    },
}

/// Result of an operation of a store.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Whether to try again.
    pub fn advice(&self) -> Advice {
        match self {
            Error::Stale => Advice::Now,
            Error::NoSpace { .. } | Error::Busy { .. } => Advice::Later,
            Error::Io { source, .. } if source.kind() == io::ErrorKind::Interrupted => Advice::Now,
            _ => Advice::Never,
        }
    }

    /// Whether room on a disk ran out.
    pub(crate) fn is_disk_full(&self) -> bool {
        matches!(
            self,
            Error::NoSpace {
                resource: Resource::Disk,
                ..
            }
        )
    }

    /// Whether the disk itself is to blame, and not a limit of this process or of memory.
    pub(crate) fn is_of_the_disk(&self) -> bool {
        use rustix::io::Errno;
        let limits = [Errno::MFILE, Errno::NFILE, Errno::NOMEM].map(Errno::raw_os_error);
        match self {
            Error::Io { source, .. } => source
                .raw_os_error()
                .is_none_or(|code| !limits.contains(&code)),
            Error::DiskFailed { .. } => true,
            _ => false,
        }
    }

    /// A system error while doing `doing`; a full disk becomes [`Error::NoSpace`].
    pub(crate) fn io(doing: &'static str, source: io::Error, wanted_bytes: u64) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Error::NoSpace {
                resource: Resource::Disk,
                wanted_bytes,
            },
            _ => Error::Io { doing, source },
        }
    }

    pub(crate) fn argument(name: &'static str, why: impl Into<String>) -> Self {
        Error::Argument {
            name,
            why: why.into(),
        }
    }
}
