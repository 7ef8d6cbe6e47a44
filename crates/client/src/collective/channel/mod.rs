//! Channels: two programs exchange an array, each in its own distribution, and no file is stored.
//!
//! ```text
//!  program that gives                          program that takes
//!  rank 0   its rows     --put-->  DATA  ---+    +--->  get  its columns   rank 0
//!  rank 1   its rows     --put-->  DATA  ---+----+--->  get  its columns   rank 1
//!              ^                                 |                         rank 2
//!              +--------  STATE: ready for turn n, taken turn m  ----------+
//! ```
//!
//! The programs meet by name (`opening`), learn each other's parts, and plan once: what a source gives a target is the meeting
//! of their parts, in the order of the array. Then turn after turn goes from member to member, by sockets.
//!
//! Invariants
//! - A turn is sent to a member only after it has said that it is ready for it, so neither side keeps more than two turns.
//! - Turns are taken whole and in their order; the end of the channel comes behind the last turn.
//! - Every member hears of the end: one whose part is empty talks to one member of the other program all the same.
//! - Of a byte that several sources give the lowest rank's counts; a byte that nobody gives keeps its value.
//! - The death of a member of either program ends every wait of all others. What failed once fails for good.
//!
//! Left to others: meeting and messages (`exchange`), what parts have in common (`plan::exchange`).

pub(crate) mod opening;
pub(crate) mod source;
pub(crate) mod target;

use std::ops::Range;

use parking_lot::Mutex;
use plan::exchange::MemberShares;
use wire::Status;

use crate::client::Client;
use crate::collective::exchange::joint::JointTeam;
use crate::collective::exchange::mesh::Message;
use crate::error::{Error, Result};

/// Longest message with bytes of a turn.
const PIECE_BYTES: u64 = 1 << 20;

/// What a message is about; its tag has the turn above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Of a target: how many turns it is ready for, and how many it has taken.
    State,
    /// Of a source: bytes of a turn.
    Data,
    /// Of a source: there are no more turns than this.
    End,
    /// Of a target: it takes no more turns than this.
    Closed,
}

impl Kind {
    fn tag(self, turn: u64) -> u64 {
        (turn << 2) | self as u64
    }

    fn of(tag: u64) -> (Kind, u64) {
        let kind = [Kind::State, Kind::Data, Kind::End, Kind::Closed][(tag & 3) as usize];
        (kind, tag >> 2)
    }
}

/// What both ends of a channel have.
#[derive(Debug)]
struct Link {
    name: String,
    client: Client,
    joint: JointTeam,
    shares: MemberShares,
    /// Ranks among all: of the program that gives, and of the one that takes.
    givers: Range<usize>,
    takers: Range<usize>,
    /// Ranks among all that this member talks to.
    partners: Vec<usize>,
    /// Bytes of this member's part.
    part_bytes: u64,
    buffering: source::ChannelMode,
    /// Why nothing goes on.
    broken: Mutex<Option<Error>>,
}

impl Link {
    /// Whether it goes on.
    fn check(&self) -> Result<()> {
        if !self.client.session().is_ours() {
            return Err(Error::Forked);
        }
        self.broken.lock().clone().map_or(Ok(()), Err)
    }

    fn check_memory(&self, name: &'static str, len: usize) -> Result<()> {
        if len as u64 == self.part_bytes {
            return Ok(());
        }
        let text = format!(
            "has {len} bytes, and this member's part of channel '{}' has {}; give as many",
            self.name, self.part_bytes
        );
        Err(Error::argument(name, text))
    }

    /// Keeps why the channel goes on no more, and says which channel it is.
    fn fail<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| {
            if error == Error::Forked {
                return error;
            }
            let named = self.named(error);
            self.broken.lock().get_or_insert(named).clone()
        })
    }

    fn named(&self, error: Error) -> Error {
        let status = error.status();
        let mut text = error.to_string();
        if !text.starts_with("channel '") {
            let ranks = |of: &Range<usize>| match of.len() {
                1 => format!("rank {} is", of.start),
                _ => format!("ranks {} to {} are", of.start, of.end - 1),
            };
            text = format!(
                "channel '{}': {text} ({} the program that gives, {} the one that takes)",
                self.name,
                ranks(&self.givers),
                ranks(&self.takers)
            );
        }
        Error::Refused {
            status,
            text,
            server: None,
        }
    }

    /// An error of the other program.
    fn odd(&self, text: impl std::fmt::Display) -> Error {
        Error::Refused {
            status: Status::Malformed,
            text: format!("channel '{}': {text}", self.name),
            server: None,
        }
    }

    fn closed(&self, text: impl std::fmt::Display) -> Error {
        Error::Refused {
            status: Status::Unreachable,
            text: format!("channel '{}': {text}; open it again", self.name),
            server: None,
        }
    }

    fn send(&self, to: usize, kind: Kind, turn: u64, bytes: &[u8]) -> Result<()> {
        self.joint.all().send(to, kind.tag(turn), bytes)
    }

    /// The next message of a member of the other program.
    fn receive(&self, from: usize) -> Result<(Kind, u64, Message)> {
        let message = self.joint.all().receive_of(from..from + 1, None)?;
        let (kind, turn) = Kind::of(message.tag);
        Ok((kind, turn, message))
    }

    /// Ends the waits of this member, and lets the others know that it has left too early.
    fn give_up(&self, role: &str) {
        if !self.client.session().is_ours() {
            return;
        }
        let all = self.joint.all();
        let text = format!(
            "rank {} of the program that {role} dropped it without closing it",
            all.rank()
        );
        if let Ok(mesh) = all.mesh() {
            mesh.give_up(self.closed(text));
        }
    }
}
