//! What the owner of files asks of others, as a trait: the metadata manager and the servers of a file.
//!
//! The server implements it with links (and with plain calls for itself); tests implement it with a
//! twin in memory that delays, reorders and fails. Every method blocks until there is an answer or
//! a time limit has passed; none is called while a lock of the owner is held.
//!
//! What the status of a failure means to the owner
//! - `Unreachable`: no server is there. Nothing of the server's runs any more, as far as locks go.
//! - anything else: it is there and did not do it. It is asked again later; until then no client is
//!   granted what depends on it.

use wire::message::cluster::{
    ApplyTruncate, BeginTruncate, EndIs, Fence, FileStateIs, FinishTruncate, ReportSize, Tell,
};
use wire::{FileId, ServerId, SizeState, Time};

use crate::refused::Refused;

/// The others, as the owner needs them.
pub trait Cluster: Send + Sync {
    /// The number of this server.
    fn own_server(&self) -> ServerId;

    /// Which start of it this is.
    fn incarnation(&self) -> u64;

    /// The time, for what is reported as last change.
    fn now(&self) -> Time;

    /// Asks the metadata manager what is durable about a file.
    fn file_state(&self, file: FileId) -> Result<FileStateIs, Refused>;

    /// Tells the metadata manager a size.
    fn report_size(&self, request: &ReportSize) -> Result<SizeState, Refused>;

    /// Asks the metadata manager for the intent to truncate.
    fn begin_truncate(&self, request: &BeginTruncate) -> Result<SizeState, Refused>;

    /// Tells the metadata manager that all servers have applied a truncate.
    fn finish_truncate(&self, request: &FinishTruncate) -> Result<SizeState, Refused>;

    /// Lets a server, possibly this one, cut a file.
    fn apply_truncate(&self, server: ServerId, request: &ApplyTruncate) -> Result<(), Refused>;

    /// Asks a server how far its bytes of a file reach.
    fn ask_end(&self, server: ServerId, file: FileId) -> Result<EndIs, Refused>;

    /// Lets a server refuse a client; returns when nothing of the client runs there.
    fn fence(&self, server: ServerId, request: &Fence) -> Result<(), Refused>;

    /// Lets a server refuse lower lease numbers; returns when nothing older runs there.
    fn tell(&self, server: ServerId, request: &Tell) -> Result<(), Refused>;

    /// Asks a server what lease number it was told.
    fn ask_number(&self, server: ServerId, file: FileId) -> Result<u64, Refused>;
}
