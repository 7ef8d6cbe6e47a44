//! Why the catalogue refuses: one error type, with the status for the wire.
//!
//! Three kinds. The caller's mistakes name the path or the argument and what would be right; the
//! state of the world (in use, no space, no server) says what to wait for; trouble with the store
//! ends the catalogue's life until it is opened again.

use std::fmt;

use layout::{LayoutError, LayoutParseError};
use wire::{DecodeError, Status};

use crate::{FileId, HandleId, ServerId};

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetaError {
    /// Nothing has this path.
    NotFound(String),
    /// No file has this number (any more).
    NoSuchFile(FileId),
    /// The path is taken.
    Exists(String),
    /// Something on the way is no directory.
    NotDirectory(String),
    /// The path is a directory.
    IsDirectory(String),
    /// The directory has entries.
    NotEmpty(String),
    /// The credentials do not allow it.
    PermissionDenied {
        /// On what.
        path: String,
        /// What was missing, as in "write permission on the directory".
        needs: &'static str,
    },
    /// An argument is out of its range.
    Argument {
        /// Which.
        name: &'static str,
        /// What is wrong and what would be right.
        detail: String,
    },
    /// The text of a layout or array cannot be read.
    LayoutText(LayoutParseError),
    /// The layout cannot be applied.
    Layout(LayoutError),
    /// Somebody uses the file in a way that excludes this.
    InUse {
        /// The file.
        file: FileId,
        /// How it is used.
        how: &'static str,
    },
    /// Possible only while the file has no bytes.
    NotEmptyFile(FileId),
    /// The handle was closed, belongs to another client or never existed.
    BadHandle(HandleId),
    /// The handle lacks a right.
    HandleLacks(HandleId, &'static str),
    /// No view of the file has this name.
    NoView(String),
    /// Something else has to end first.
    Busy(&'static str),
    /// Whether the request was done before is not known any more.
    Forgotten,
    /// The meaning of a layout text was not found out before the transaction.
    Unprepared,
    /// No I/O server can take subfiles.
    NoServer,
    /// All I/O servers are full.
    NoSpace,
    /// A disk of every server that is alive has failed.
    AllFailed,
    /// The layout names a server whose disk has failed.
    ServerFailed(ServerId),
    /// The layout names a server that is not alive.
    ServerNotAlive(ServerId),
    /// The server is being drained and takes nothing new.
    ServerDraining(ServerId),
    /// No server has this number.
    NoSuchServer(ServerId),
    /// Somebody else joined under this number.
    NotThatServer(ServerId),
    /// The report is about an earlier start of the server.
    StaleIncarnation(ServerId),
    /// The file's layout is not in the state that the call continues.
    WrongStep {
        /// The file.
        file: FileId,
        /// What the call says.
        given: u64,
    },
    /// More than the catalogue takes.
    TooLarge(&'static str),
    /// The image was written by a newer version.
    NewerFormat {
        /// Its version.
        found: u64,
        /// The newest version this program reads.
        known: u64,
    },
    /// The image is no catalogue.
    NotACatalogue,
    /// Another process has the image open.
    AlreadyOpen,
    /// A row cannot be read.
    Corrupt {
        /// Which.
        row: String,
        /// Why.
        why: DecodeError,
    },
    /// The store failed; the catalogue has to be opened again.
    Store(String),
}

impl MetaError {
    /// An argument that is wrong.
    pub(crate) fn argument(name: &'static str, detail: impl Into<String>) -> Self {
        MetaError::Argument {
            name,
            detail: detail.into(),
        }
    }

    /// The status with which to answer.
    pub fn status(&self) -> Status {
        match self {
            MetaError::NotFound(_) | MetaError::NoSuchFile(_) | MetaError::NoView(_) => {
                Status::NotFound
            }
            MetaError::Exists(_) => Status::Exists,
            MetaError::NotDirectory(_) => Status::NotDirectory,
            MetaError::IsDirectory(_) => Status::IsDirectory,
            MetaError::NotEmpty(_) => Status::NotEmpty,
            MetaError::PermissionDenied { .. } => Status::PermissionDenied,
            MetaError::Argument { .. }
            | MetaError::LayoutText(_)
            | MetaError::Layout(_)
            | MetaError::NoSuchServer(_) => Status::InvalidArgument,
            MetaError::InUse { .. } | MetaError::NotEmptyFile(_) => Status::InUse,
            MetaError::BadHandle(_) | MetaError::HandleLacks(..) => Status::BadHandle,
            MetaError::Busy(_) | MetaError::Unprepared => Status::Busy,
            MetaError::Forgotten => Status::Forgotten,
            MetaError::NoServer | MetaError::ServerNotAlive(_) => Status::Unreachable,
            MetaError::ServerDraining(_) => Status::InUse,
            MetaError::NoSpace => Status::NoSpace,
            MetaError::AllFailed => Status::Io,
            MetaError::ServerFailed(_) => Status::InvalidArgument,
            MetaError::NotThatServer(_) => Status::PermissionDenied,
            MetaError::StaleIncarnation(_) => Status::WrongIncarnation,
            MetaError::WrongStep { .. } => Status::StaleLayout,
            MetaError::TooLarge(_) => Status::TooLarge,
            MetaError::NewerFormat { .. } | MetaError::NotACatalogue => Status::Unsupported,
            MetaError::AlreadyOpen => Status::InUse,
            MetaError::Corrupt { .. } => Status::Corrupt,
            MetaError::Store(_) => Status::Io,
        }
    }

    /// Whether the catalogue itself is in trouble, not the request.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(self, MetaError::Store(_))
    }
}

impl fmt::Display for MetaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetaError::NotFound(path) => write!(f, "{path}: no such file or directory"),
            MetaError::NoSuchFile(file) => write!(f, "{file} does not exist"),
            MetaError::Exists(path) => write!(f, "{path}: exists already"),
            MetaError::NotDirectory(path) => write!(f, "{path}: not a directory"),
            MetaError::IsDirectory(path) => write!(f, "{path}: is a directory"),
            MetaError::NotEmpty(path) => write!(f, "{path}: the directory is not empty"),
            MetaError::PermissionDenied { path, needs } => {
                write!(f, "{path}: permission denied; it needs {needs}")
            }
            MetaError::Argument { name, detail } => write!(f, "{name}: {detail}"),
            MetaError::LayoutText(e) => e.fmt(f),
            MetaError::Layout(e) => e.fmt(f),
            MetaError::InUse { file, how } => write!(f, "{file} is in use: {how}"),
            MetaError::NotEmptyFile(file) => write!(f, "{file} has bytes; use relayout"),
            MetaError::BadHandle(handle) => write!(f, "{handle} is not open"),
            MetaError::HandleLacks(handle, right) => {
                write!(f, "{handle} was not opened for {right}")
            }
            MetaError::NoView(name) => write!(f, "the file keeps no view called {name}"),
            MetaError::Busy(what) => write!(f, "busy: {what}"),
            MetaError::Forgotten => f.write_str(
                "whether this was done before is not known any more; look, and ask anew",
            ),
            MetaError::Unprepared => f.write_str("busy: what the layout means is not known yet"),
            MetaError::NoServer => f.write_str("no I/O server is alive"),
            MetaError::NoSpace => f.write_str("all I/O servers are full"),
            MetaError::AllFailed => f.write_str(
                "the disks of all I/O servers have failed; `pario hint --clear-failed SERVER` lets one \
                 take files again",
            ),
            MetaError::ServerFailed(server) => write!(
                f,
                "a disk of {server} has failed, so it takes no new subfiles; name others, or clear it \
                 with `pario hint --clear-failed {}`",
                server.0
            ),
            MetaError::ServerNotAlive(server) => write!(f, "{server} is not alive"),
            MetaError::ServerDraining(server) => {
                write!(f, "{server} is being drained and takes nothing new")
            }
            MetaError::NoSuchServer(server) => write!(f, "{server} never joined"),
            MetaError::NotThatServer(server) => write!(
                f,
                "{server} joined with another identity; start it on the directory that it had (file \
                 `identity`), or without its number (file `server`) to join as a new server"
            ),
            MetaError::StaleIncarnation(server) => {
                write!(f, "{server} has started again since")
            }
            MetaError::WrongStep { file, given } => {
                write!(f, "{file} is not being moved in step {given}")
            }
            MetaError::TooLarge(what) => write!(f, "too large: {what}"),
            MetaError::NewerFormat { found, known } => write!(
                f,
                "the catalogue has format version {found}, this program reads up to {known}; use a \
                 newer program"
            ),
            MetaError::NotACatalogue => f.write_str("the file is no catalogue"),
            MetaError::AlreadyOpen => f.write_str("another process has the catalogue open"),
            MetaError::Corrupt { row, why } => write!(f, "{row} cannot be read: {why}"),
            MetaError::Store(e) => write!(f, "the catalogue's store failed: {e}"),
        }
    }
}

impl std::error::Error for MetaError {}

impl From<LayoutError> for MetaError {
    fn from(e: LayoutError) -> Self {
        MetaError::Layout(e)
    }
}

impl From<LayoutParseError> for MetaError {
    fn from(e: LayoutParseError) -> Self {
        MetaError::LayoutText(e)
    }
}

macro_rules! from_store {
    ($($error:ty),*) => {$(
        impl From<$error> for MetaError {
            fn from(e: $error) -> Self {
                MetaError::Store(e.to_string())
            }
        }
    )*};
}

from_store!(
    redb::StorageError,
    redb::TableError,
    redb::TransactionError,
    redb::CommitError
);

impl From<redb::DatabaseError> for MetaError {
    fn from(e: redb::DatabaseError) -> Self {
        match e {
            redb::DatabaseError::DatabaseAlreadyOpen => MetaError::AlreadyOpen,
            e => MetaError::Store(e.to_string()),
        }
    }
}
