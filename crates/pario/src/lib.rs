//! Pario for Rust programs: files that are n-dimensional arrays, spread over servers, seen by each process as it likes.
//!
//! ```
//! # fn main() -> pario::Result<()> {
//! # let name = format!("pario-doc-{}", std::process::id());
//! # let directory = std::env::temp_dir().join(name);
//! # let url = format!("dir:{}", directory.display());
//! let pario = pario::connect(&url)?; // dir:PATH, job:, unix:PATH or tcp:HOST:PORT
//! pario.make_directory("/results")?;
//! let matrix = pario.create_array::<f64>("/results/matrix", &[6, 8]).layout("(block, *) onto 2").create()?;
//!
//! // Written by rows, as one process of two would ...
//! let upper = matrix.part("(block, *) onto 2 [0]")?;
//! upper.write(&[1.5; 24])?;
//!
//! // ... and read by columns, as one of four others does.
//! let columns = matrix.part("(*, block) onto 4 [2]")?;
//! assert_eq!(columns.shape(), [6, 2]);
//! let values: Vec<f64> = columns.read()?;
//! assert_eq!(values[..6], [1.5; 6]);
//! assert_eq!(values[6..], [0.0; 6]); // nobody has written the lower half
//!
//! matrix.relayout("(*, block) onto 2")?.wait()?; // also while others use it
//! assert_eq!(matrix.region(&[2..4, 0..1])?.read()?, [1.5, 0.0]);
//! matrix.close()?;
//! # drop((pario, matrix, upper, columns));
//! # std::fs::remove_dir_all(&directory).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! | to | there is |
//! |---|---|
//! | connect | [`connect()`], [`connect_default`], [`connect_with`] |
//! | create and open arrays | [`Pario::create_array`], [`Pario::open_array`], [`Pario::read_array`] |
//! | say which entries | [`Array::part`], [`Array::part_of`], [`Array::region`], [`Array::whole`] |
//! | read and write them | [`Part::read`], [`Part::read_into`], [`Part::write`]; as `ndarray` arrays with the feature `ndarray` |
//! | do it together | [`Team::threads`], [`Pario::team`], [`Part::join`], [`Part::read_together`] |
//! | talk to other processes | [`Pario::join_team`], [`Team::send`], [`Team::receive`], [`Team::all_reduce`], [`Team::exchange`], [`Pario::meet_team`] |
//! | give an array to another program | [`Pario::channel`], [`ChannelSource::put`], [`ChannelTarget::get`] |
//! | move arrays between layouts | [`Array::relayout`], [`Pario::relayout`] |
//! | use files of plain bytes | [`Pario::file`], [`File`] |
//! | walk directories | [`Pario::list`], [`Pario::make_directory`], [`Pario::rename`], [`Pario::remove`], [`Pario::stat`] |
//! | do anything else | [`Pario::client`], and the crate [`client`] itself |
//!
//! Everything runs in the caller's threads, and types are shared between them freely. One error type says what went wrong
//! and what would be right; an argument that is wrong is named, and nothing is sent for it.
//!
//! Left to others: how bytes travel (`client`), who serves a directory or a job (`embedded`, `job`), what layouts mean
//! (`layout`).
#![forbid(unsafe_code)]

mod array;
mod axis;
mod channel;
mod connect;
mod create_array;
mod element;
mod handles;
mod open_file;
mod part;
mod service;
#[cfg(feature = "ndarray")]
mod with_ndarray;

pub use array::Array;
pub use axis::{Axis, Region};
pub use channel::{Channel, ChannelSource, ChannelTarget};
pub use connect::{connect, connect_default, connect_with};
pub use create_array::CreateArray;
pub use element::Element;
pub use open_file::OpenFile;
pub use part::Part;
pub use service::Pario;

pub use client;
pub use client::{
    Buffer, ConnectOptions, Entry, Error, File, FileLayout, Hints, JointTeam, Kind, Layout,
    Listing, Message, Metadata, MoveOptions, MoveState, Number, OpenOptions, Operation, Overlap,
    Pending, Progress, Reduction, Relayout, Result, Status, SyncReport, Team, View,
};
pub use embedded::Options as DirectoryOptions;
pub use layout::{ArrayType, ElementType, Order};

/// The page that the registry shows compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
