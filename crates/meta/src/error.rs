//! Why the catalogue refuses: one error type, with the status for the wire.
//!
//! Three kinds. The caller's mistakes name the path or the argument and what would be right; the
//! state of the world (in use, no space, no server) says what to wait for; trouble with the store
//! ends the catalogue's life until it is opened again.

use layout::{LayoutError, LayoutParseError};
use wire::{DecodeError, Status};

use crate::{FileId, HandleId, ServerId};

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetaError {
    /// Nothing has this path.
    #[error("{0}: no such file or directory")]
    NotFound(String),
    /// No file has this number (any more).
    #[error("{0} does not exist")]
    NoSuchFile(FileId),
    /// The path is taken.
    #[error("{0}: exists already")]
    Exists(String),
    /// Something on the way is no directory.
    #[error("{0}: not a directory")]
    NotDirectory(String),
    /// The path is a directory.
    #[error("{0}: is a directory")]
    IsDirectory(String),
    /// The directory has entries.
    #[error("{0}: the directory is not empty")]
    NotEmpty(String),
    /// The credentials do not allow it.
    #[error("{path}: permission denied; it needs {needs}")]
    PermissionDenied {
        /// On what.
        path: String,
        /// What was missing, as in "write permission on the directory".
        needs: &'static str,
    },
    /// An argument is out of its range.
    #[error("{name}: {detail}")]
    Argument {
        /// Which.
        name: &'static str,
        /// What is wrong and what would be right.
        detail: String,
    },
    /// The text of a layout or array cannot be read.
    #[error(transparent)]
    LayoutText(#[from] LayoutParseError),
    /// The layout cannot be applied.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A client uses the file in a way that excludes this.
    #[error("{file} is in use: {how}")]
    InUse {
        /// The file.
        file: FileId,
        /// How it is used.
        how: &'static str,
    },
    /// Possible only while the file has no bytes.
    #[error("{0} has bytes; use relayout")]
    NotEmptyFile(FileId),
    /// The handle was closed, belongs to another client or never existed.
    #[error("{0} is not open")]
    BadHandle(HandleId),
    /// The handle lacks a right.
    #[error("{0} was not opened for {1}")]
    HandleLacks(HandleId, &'static str),
    /// No view of the file has this name.
    #[error("the file keeps no view called {0}")]
    NoView(String),
    /// Something else has to end first.
    #[error("busy: {0}")]
    Busy(&'static str),
    /// Whether the request was done before is not known any more.
    #[error("whether this was done before is not known any more; look, and ask anew")]
    Forgotten,
    /// The meaning of a layout text was not found out before the transaction.
    #[error("busy: what the layout means is not known yet")]
    Unprepared,
    /// A client or a user has as many files open as he may.
    #[error(
        "{who} has {open} files open, as many as one may; close some, or start the metadata manager with more \
         --open-files"
    )]
    TooManyOpen {
        /// Who.
        who: String,
        /// How many.
        open: usize,
    },
    /// No I/O server can take subfiles.
    #[error("no I/O server is alive")]
    NoServer,
    /// All I/O servers are full.
    #[error("all I/O servers are full")]
    NoSpace,
    /// A disk of every server that is alive has failed.
    #[error(
        "the disks of all I/O servers have failed; `pario hint --clear-failed SERVER` lets one \
         take files again"
    )]
    AllFailed,
    /// The layout names a server whose disk has failed.
    #[error("a disk of {server} has failed, so it takes no new subfiles; name others, or clear it \
             with `pario hint --clear-failed {}`", .0.0, server = .0)]
    ServerFailed(ServerId),
    /// The layout names a server that is not alive.
    #[error("{0} is not alive")]
    ServerNotAlive(ServerId),
    /// The server is being drained and takes nothing new.
    #[error("{0} is being drained and takes nothing new")]
    ServerDraining(ServerId),
    /// No server has this number.
    #[error("{0} never joined")]
    NoSuchServer(ServerId),
    /// Another server joined under this number.
    #[error(
        "{0} joined with another identity; start it on the directory that it had (file \
         `identity`), or without its files `identity` and `server` to join as a new server"
    )]
    NotThatServer(ServerId),
    /// The report is about an earlier start of the server.
    #[error("{0} has started again since")]
    StaleIncarnation(ServerId),
    /// The file's layout is not in the state that the call continues.
    #[error("{file} is not being moved in step {given}")]
    WrongStep {
        /// The file.
        file: FileId,
        /// What the call says.
        given: u64,
    },
    /// More than the catalogue takes.
    #[error("too large: {0}")]
    TooLarge(&'static str),
    /// The image was written by a newer version.
    #[error(
        "the catalogue has format version {found}, this program reads up to {known}; use a \
         newer program"
    )]
    NewerFormat {
        /// Its version.
        found: u64,
        /// The newest version this program reads.
        known: u64,
    },
    /// The image is no catalogue.
    #[error("the file is no catalogue")]
    NotACatalogue,
    /// Another process has the image open.
    #[error("another process has the catalogue open")]
    AlreadyOpen,
    /// A row cannot be read.
    #[error("{row} cannot be read: {why}")]
    Corrupt {
        /// Which.
        row: String,
        /// Why.
        why: DecodeError,
    },
    /// The store failed; the catalogue has to be opened again.
    #[error("the catalogue's store failed: {0}")]
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
            MetaError::TooManyOpen { .. } => Status::QuotaExceeded,
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
