//! The client library: files, views, reads and writes for programs.
//!
//! ```no_run
//! use client::{Client, ConnectOptions, OpenOptions};
//! let url = "unix:/run/user/1000/pario.sock".parse()?;
//! let client = Client::connect(&url, ConnectOptions::from_env()?)?;
//! let options = OpenOptions::new().read().write().create().array("f64[1024,1024]").layout("(block, *) onto 4");
//! let file = client.open("/results/matrix", &options)?;
//! file.set_view_text("(*, block) onto 4 [2]")?; // the third quarter of the columns
//! file.write_at(0, &vec![1; 2 << 20])?;
//! file.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything runs in the caller's threads; only non-blocking operations and channels with two buffers have threads of their
//! own, started with the first of them. What servers do is known here only through `wire`.
//!
//! | module | owns |
//! |---|---|
//! | `client` | a session with a service, and everything that goes by path names |
//! | `file` | an open file: handle, pointers, view, size |
//! | `access` | one request, and the ways it can go |
//! | `collective` | requests of a team |
//! | `session` | what all threads of a client have in common |
//! | `transport` | connections, outages, patience |
//! | `hints`, `profile` | what a program says about a file, and how it is used |
//! | `error` | why an operation failed |
//!
//! Invariants
//! - A client reads its own writes.
//! - Every wait has a limit, except for locks, which end with the connection to the file's owner.
//! - A steady sequence of reads or writes allocates nothing, but where view and layout meet in many short rows, which
//!   are compiled.
//! - After a fork the child gets [`Error::Forked`] and sends nothing.
//!
//! Left to others: embedded mode (`embedded`), what offsets mean in units other than bytes (bindings).
#![forbid(unsafe_code)]

mod access;
mod client;
mod collective;
mod error;
mod file;
mod hints;
mod profile;
mod session;
mod transport;

pub use ::direct::{CommonBytes, allocate_common, free_common};
pub use access::ahead::PrefetchStatistics;
pub use access::beside::SideView;
pub use access::direct::DirectStatistics;
pub use access::memory::{Direction, Memory};
pub use access::phases::{Phases, ServerPhases};
pub use access::places::Places;
pub use access::scattered::{ScatteredView, type_map_descends};
pub use advise::mapping::Strategy as Mapping;
pub use client::{Client, FileLayout, Listing, Metadata};
pub use collective::CollectiveStatistics;
pub use collective::channel::opening::{ChannelArray, ChannelOptions};
pub use collective::channel::source::{ChannelMode, ChannelSource};
pub use collective::channel::target::ChannelTarget;
pub use collective::exchange::joint::JointTeam;
pub use collective::exchange::mesh::Message;
pub use collective::exchange::reduce::{Number, Reduction};
pub use collective::redistribute::Redistribution;
pub use collective::redistributions::{
    GivesMemory, PartMemory, Parts, Redistributions, SourcePlace,
};
pub use collective::strategy::{Choice, Collective, Reason, Strategy};
pub use collective::team::{Drive, Exchange, Team};
pub use error::{Error, Failure, Result};
pub use file::File;
#[doc(hidden)]
pub use file::handle::Handle;
pub use file::nonblocking::{Buffer, Operation, Overlap, Pending};
pub use file::options::OpenOptions;
pub use file::relayout::Relayout;
pub use file::subfile::Subfile;
pub use file::unsynced::SyncReport;
pub use hints::Hints;
pub use hints::handle_hints::{CompilerHints, HintReport, KeptHints};
pub use profile::FileProfile;
pub use profile::advice::FileAdvice;
pub use profile::calibration::Drift;
pub use session::connect::{ConnectOptions, Connector};
/// Threads beside the caller, for bindings.
pub use transport::jobs::{Job, Jobs};

pub use advise::hints::{AccessStyle, HintVerdicts, Source, SourcedHint, Verdict};
/// What the service's own messages are made of, for those who show them.
pub use identity::{Keys, Secret};
/// Raw memory of users, for bindings.
pub use kernels::{SharedBytes, SharedBytesMut};
pub use layout::{Layout, Sequence, View};
pub use wire::message::calibration::{Calibration, FitIs, Parameter};
pub use wire::message::catalogue::{
    ArrayIs, Counts, DrainAnswer, Entry, Finding, Kind, LayoutSpec, Member, MemberState, MoveIs,
    MoveOptions, MoveState, NamedView, Progress, SetTime, Severity, StoreKind, SubfileMove,
    ViewName,
};
pub use wire::message::file::{
    DiskEntry, DiskList, DiskState, ScrubAnswer, SubfileEntry, SubfileName, SubfileState,
};
pub use wire::message::hints::{FailedServer, HintOutcome};
pub use wire::message::mapping::BuddyIs;
pub use wire::message::session::Counter;
pub use wire::url::{Endpoint, ServiceUrl};
pub use wire::{
    ClientId, FileId, HandleId, LayoutState, Piece, Place, Rights, ServerId, Status, Time,
};
