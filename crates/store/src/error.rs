//! What can go wrong with stored bytes, and whether it helps to try again.
//!
//! Three kinds, as everywhere: a bug asserts; the caller gets [`Error::Argument`] with the name of
//! the argument; the world gets one of the rest. [`Error::advice`] is for servers that have to
//! choose between waiting, repeating and giving up; nothing here waits by itself.

use std::fmt;
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
#[derive(Debug)]
pub enum Error {
    /// No such subfile.
    NotFound(SubfileId),
    /// A subfile of that identity exists already.
    Exists(SubfileId),
    /// The caller's argument is wrong: its name, and what would be right.
    Argument {
        /// Name of the argument.
        name: &'static str,
        /// What is wrong and what would be right.
        why: String,
    },
    /// Nothing left of a bounded resource. Accepted bytes are kept; this request was not accepted.
    NoSpace {
        /// What ran out.
        resource: Resource,
        /// Bytes that were asked for.
        wanted_bytes: u64,
    },
    /// Bytes on a disk do not match their checksum. Nothing was returned in their place.
    Corrupt {
        /// Subfile they belong to.
        id: SubfileId,
        /// First subfile byte of the block, or of the group whose table is damaged.
        offset: u64,
        /// What did not match.
        why: &'static str,
    },
    /// A file that is not a data file of this format, or of another version.
    Format {
        /// Name of the file.
        name: String,
        /// What was found and what was expected.
        why: String,
    },
    /// A data file whose creation a process did not live to finish: nothing was ever stored in it.
    Unfinished {
        /// Name of the file.
        name: String,
    },
    /// The disk failed at a point after which it cannot be trusted with further writes.
    DiskFailed {
        /// Which one.
        disk: String,
        /// What it was doing.
        why: String,
    },
    /// The disks that were given are not those of this store: which, what was expected, and what to do.
    Disks(String),
    /// The subfile is, or may be, on a disk that is missing.
    DiskMissing {
        /// The subfile.
        id: SubfileId,
        /// The disk, what was found in its place, and what to do.
        why: String,
    },
    /// Bytes of the subfile were durable and are gone.
    Lost {
        /// The subfile.
        id: SubfileId,
        /// Where they were.
        why: String,
    },
    /// Several data files say that they are this subfile, and none of them counts for certain.
    Conflict {
        /// The subfile.
        id: SubfileId,
        /// The data files, and what to do.
        why: String,
    },
    /// The space of a grant was taken away (truncation, removal) before it was committed.
    Stale,
    /// The directory is used by another process.
    Busy {
        /// Which directory.
        disk: String,
    },
    /// Any other system error.
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound(id) => write!(f, "there is no subfile {id}"),
            Error::Exists(id) => write!(f, "subfile {id} exists already"),
            Error::Argument { name, why } => write!(f, "{name}: {why}"),
            Error::NoSpace {
                resource,
                wanted_bytes,
            } => {
                let what = match resource {
                    Resource::Memory => "the memory limit leaves no room",
                    Resource::Disk => "no disk has room",
                    Resource::Segments => "the limit of open segments leaves no room",
                };
                write!(f, "{what} for {wanted_bytes} bytes")
            }
            Error::Corrupt { id, offset, why } => {
                write!(f, "subfile {id} is damaged at byte {offset}: {why}")
            }
            Error::Format { name, why } => write!(f, "{name}: {why}"),
            Error::Unfinished { name } => {
                write!(f, "{name}: no header: its creation was never finished")
            }
            Error::DiskFailed { disk, why } => write!(f, "disk {disk} failed: {why}"),
            Error::Disks(why) => f.write_str(why),
            Error::DiskMissing { id, why } => write!(f, "subfile {id} cannot be reached: {why}"),
            Error::Lost { id, why } => write!(f, "the bytes of subfile {id} are lost: {why}"),
            Error::Conflict { id, why } => write!(f, "subfile {id} is there more than once: {why}"),
            Error::Stale => write!(
                f,
                "the space of this write was taken away by a truncation; repeat the write"
            ),
            Error::Busy { disk } => write!(f, "{disk} is used by another process"),
            Error::Io { doing, source } => write!(f, "{doing}: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
