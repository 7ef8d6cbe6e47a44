//! The messages: what a client asks of the metadata manager and of the I/O servers, and what these
//! ask of each other.
//!
//! Every request is a struct with a kind and an answer ([`Request`]); the kind stands in the frame's
//! header and the struct is the control part. An answer repeats kind and request number and
//! carries [`Status::Ok`](crate::Status), or another status and a [`Refusal`]. File data is the
//! payload of [`access`] frames only.
//!
//! | module | who asks whom |
//! |---|---|
//! | [`session`] | anybody: who are you, are you there |
//! | [`catalogue`] | a client the metadata manager |
//! | [`backup`] | a client the metadata manager, for all rows of the catalogue |
//! | [`trees`] | a client the metadata manager, about directories with all that is in them |
//! | [`hints`] | a client the metadata manager, about hints and failed disks |
//! | [`mod@file`] | a client an I/O server, about a file through a registered view |
//! | [`access`] | a client an I/O server, for bytes |
//! | [`direct`] | a client an I/O server of its host, for shared memory |
//! | [`directed`] | the ranks of a team an I/O server, for bytes in the order of its store |
//! | [`cluster`] | servers each other |
//! | [`team`] | clients each other, through the metadata manager |
//! | [`ahead`] | a client an I/O server, about reads to come |
//! | [`mapping`] | a client, about talking through one server |
//! | [`profile`] | a client or an I/O server the metadata manager, about the use of a file |

#[macro_use]
mod macros;
pub mod access;
pub mod ahead;
pub mod backup;
pub mod calibration;
pub mod catalogue;
pub mod cluster;
pub mod direct;
pub mod directed;
mod field;
pub mod file;
pub mod hints;
mod kinds;
pub mod mapping;
pub mod profile;
pub mod session;
pub mod stamps;
pub mod team;
pub mod trees;

pub use field::{Bytes, Field};
pub use kinds::KINDS;
pub use session::Refusal;

use crate::reader::{DecodeError, Reader};

/// A request with its kind and its answer.
pub trait Request: Field {
    /// Number in the frame's header.
    const KIND: u16;
    /// Name, for logs and tests.
    const NAME: &'static str;
    /// What comes back when it is done.
    type Answer: Field;
}

/// Who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Clients and servers.
    Anyone,
    /// Clients.
    Client,
    /// Clients that are ranks of a team, in one collective access.
    Rank,
    /// Servers of the cluster, the metadata manager among them.
    Server,
    /// The metadata manager.
    Manager,
}

/// Who answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// The metadata manager and I/O servers.
    AnyServer,
    /// The metadata manager.
    Manager,
    /// I/O servers.
    IoServer,
}

/// One row of the table of kinds.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Number in the frame's header.
    pub number: u16,
    /// Name of the request.
    pub name: &'static str,
    /// Who sends it.
    pub from: Sender,
    /// Who answers it.
    pub to: Receiver,
    /// Whether bytes are such a request.
    pub check_request: fn(&[u8]) -> Result<(), DecodeError>,
    /// Whether bytes are its answer.
    pub check_answer: fn(&[u8]) -> Result<(), DecodeError>,
    /// Reads such a request and writes it again, which gives the same bytes.
    pub recode_request: fn(&[u8]) -> Result<Vec<u8>, DecodeError>,
    /// Reads its answer and writes it again, which gives the same bytes.
    pub recode_answer: fn(&[u8]) -> Result<Vec<u8>, DecodeError>,
}

impl Kind {
    /// The row of a number.
    pub fn of(number: u16) -> Option<&'static Kind> {
        let found = KINDS.binary_search_by_key(&number, |kind| kind.number);
        found.ok().map(|at| &KINDS[at])
    }
}

/// Replaces `out` by a message.
pub fn encode<T: Field>(message: &T, out: &mut Vec<u8>) {
    out.clear();
    message.put(out);
}

/// A message of a whole control part.
pub fn decode<T: Field>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut r = Reader::new(bytes);
    let message = T::read(&mut r)?;
    r.finish()?;
    Ok(message)
}

fn recode<T: Field>(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::new();
    decode::<T>(bytes)?.put(&mut out);
    Ok(out)
}
