//! Two teams that meet by name: members of the one exchange messages with members of the other.
//!
//! Rank 0 of either meets the other at the metadata manager and learns how many they are; then all members of both
//! join one team, in which those of the first to come have the lower ranks.

use std::ops::Range;
use std::os::fd::BorrowedFd;

use super::mesh::Message;
use crate::client::Client;
use crate::collective::team::Team;
use crate::error::{Error, Result};

/// Two teams that have met, as a member of one of them sees them.
#[derive(Clone, Debug)]
pub struct JointTeam {
    all: Team,
    /// Ranks of the other team among all.
    other: Range<usize>,
}

impl Team {
    /// Meets another team that calls this with the same name; all members of both call it. Both teams stay as they are.
    pub fn meet_team(&self, client: &Client, name: &str) -> Result<JointTeam> {
        let told = match self.rank() {
            0 => leaders(client, name, self.size()).map(|words| words.to_vec()),
            _ => Ok(Vec::new()),
        };
        let told = told.map(|words| words.iter().flat_map(|w: &u64| w.to_le_bytes()).collect());
        let told = &self.agree(told)?[0];
        let words: Vec<u64> = (told.as_chunks::<8>().0.iter())
            .map(|bytes| u64::from_le_bytes(*bytes))
            .collect();
        let [is_second, first, second, number] = words[..] else {
            return Err(Error::argument("team", "rank 0 does something else"));
        };
        let (first, second) = (first as usize, second as usize);
        let (own, other) = match is_second {
            0 => (0, first..first + second),
            _ => (first, 0..first),
        };
        let name = format!("{name}, {number:x}");
        let all = Team::processes(client, &name, own + self.rank(), first + second)?;
        Ok(JointTeam { all, other })
    }
}

/// Which of the two this is, the sizes of both, and a number that no other two have.
fn leaders(client: &Client, name: &str, size: usize) -> Result<[u64; 4]> {
    let pair = Team::join(client, name, 2)?;
    let mut mine = (size as u64).to_le_bytes().to_vec();
    mine.extend(&identity::random()[..8]);
    let said = pair.allgather(&mine)?;
    let word = |rank: usize, at: usize| {
        let word = said[rank].get(at..).and_then(|bytes| bytes.first_chunk());
        word.map(|word| u64::from_le_bytes(*word))
    };
    let words = || Some([pair.rank() as u64, word(0, 0)?, word(1, 0)?, word(0, 8)?]);
    words().ok_or_else(|| Error::argument("name", "another kind of team has it"))
}

impl JointTeam {
    /// Members of the other team.
    pub fn other_size(&self) -> usize {
        self.other.len()
    }

    /// All members of both as one team, the ranks of one team behind those of the other.
    pub fn all(&self) -> &Team {
        &self.all
    }

    fn ranks(&self, name: &'static str, rank: Option<usize>) -> Result<Range<usize>> {
        let Some(rank) = rank else {
            return Ok(self.other.clone());
        };
        if rank < self.other.len() {
            return Ok(self.other.start + rank..self.other.start + rank + 1);
        }
        let size = self.other.len();
        let text = format!("{rank}, but the other team has {size}; ranks count from 0");
        Err(Error::argument(name, text))
    }

    fn message(&self, message: Message) -> Message {
        Message {
            from: message.from - self.other.start,
            ..message
        }
    }

    /// Sends a message to a rank of the other team; see [`Team::send`].
    pub fn send(&self, to: usize, tag: u64, bytes: &[u8]) -> Result<()> {
        let to = self.ranks("to", Some(to))?;
        self.all.send(to.start, tag, bytes)
    }

    /// Waits for a message of a rank of the other team, or of any; see [`Team::receive`].
    pub fn receive(
        &self,
        from: impl Into<Option<usize>>,
        tag: impl Into<Option<u64>>,
    ) -> Result<Message> {
        let from = self.ranks("from", from.into())?;
        let message = self.all.receive_of(from, tag.into())?;
        Ok(self.message(message))
    }

    /// The next message of a rank of the other team, or of any, if one has come; see [`Team::try_receive`].
    pub fn try_receive(
        &self,
        from: impl Into<Option<usize>>,
        tag: impl Into<Option<u64>>,
    ) -> Result<Option<Message>> {
        let from = self.ranks("from", from.into())?;
        let message = self.all.mesh()?.try_receive(from, tag.into())?;
        Ok(message.map(|message| self.message(message)))
    }

    /// See [`Team::descriptor`].
    pub fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        self.all.descriptor()
    }
}
