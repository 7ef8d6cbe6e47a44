//! Two teams that meet by name: members of the one exchange messages with members of the other.
//!
//! Rank 0 of either meets the other at the metadata manager and learns how many they are; then all members of both
//! join one team, in which those of the first to come have the lower ranks.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use wire::Status;
use wire::message::team::ANY_RANK;

use super::meeting::Arrival;
use super::mesh::Message;
use crate::client::Client;
use crate::collective::team::{TIMEOUT, Team};
use crate::error::{Error, Result};

/// Two teams that have met, as a member of one of them sees them.
#[derive(Clone, Debug)]
pub struct JointTeam {
    all: Team,
    /// Ranks of the other team among all.
    other: Range<usize>,
}

/// A word in front of what the leaders tell: whether the other team has come.
const NOT_YET: u64 = 0;
const COME: u64 = 1;

/// How long a leader looks out for the other team before it tells its own that it still does.
const LOOKOUT: Duration = Duration::from_secs(2);

impl Team {
    /// Meets another team that calls this with the same name; all members of both call it. Both teams stay as they are.
    pub fn meet_team(&self, client: &Client, name: &str) -> Result<JointTeam> {
        self.meet_team_for(client, name, Some(TIMEOUT), Some(TIMEOUT))
    }

    /// Meets another team; waits for it no longer than `patience`. In the joint team members wait for each other no longer than
    /// `timeout`.
    pub(crate) fn meet_team_for(
        &self,
        client: &Client,
        name: &str,
        patience: Option<Duration>,
        timeout: Option<Duration>,
    ) -> Result<JointTeam> {
        let began = Instant::now();
        let mut leader = match self.rank() {
            0 => Some(Arrival::new(client, name, ANY_RANK, 2)),
            _ => None,
        };
        // The members hear of each other while the leader looks out, so the death of one ends it.
        let words = loop {
            let told = match leader.take() {
                None => Ok(Vec::new()),
                Some(arrival) => {
                    let left = patience.map(|all| all.saturating_sub(began.elapsed()));
                    let found = arrival.and_then(|arrival| look_out(arrival, left, self.size()));
                    found.map(|found| match found {
                        Ok(words) => words.to_vec(),
                        Err(arrival) => {
                            leader = Some(Ok(arrival));
                            vec![NOT_YET]
                        }
                    })
                }
            };
            let told = told.map(|words| words.iter().flat_map(|w: &u64| w.to_le_bytes()).collect());
            let told = &self.agree(told)?[0];
            let words: Vec<u64> = (told.as_chunks::<8>().0.iter())
                .map(|bytes| u64::from_le_bytes(*bytes))
                .collect();
            match words[..] {
                [NOT_YET] => {}
                [COME, is_second, first, second, number] => {
                    break [is_second, first, second, number];
                }
                _ => return Err(Error::argument("team", "rank 0 does something else")),
            }
        };
        let [is_second, first, second, number] = words;
        let (first, second) = (first as usize, second as usize);
        let (own, other) = match is_second {
            0 => (0, first..first + second),
            _ => (first, 0..first),
        };
        let name = format!("{name}, {number:x}");
        let rank = (own + self.rank()) as u64;
        let arrival = Arrival::new(client, &name, rank, first + second)?;
        let all = arrival.wait(Some(TIMEOUT))?;
        let all = arrival.meet(&all, timeout)?;
        Ok(JointTeam { all, other })
    }
}

/// Looks out for the leader of the other team for a while: [`COME`], which of the two this is, the sizes of both, and a
/// number that no other two have; or the arrival again if the other has not come yet.
fn look_out(
    arrival: Arrival,
    left: Option<Duration>,
    size: usize,
) -> Result<std::result::Result<[u64; 5], Arrival>> {
    let all = match arrival.wait(Some(left.map_or(LOOKOUT, |left| left.min(LOOKOUT)))) {
        Ok(all) => all,
        Err(e) if e.status() == Status::TimedOut && left.is_none_or(|left| left > LOOKOUT) => {
            return Ok(Err(arrival));
        }
        Err(error) => return Err(error),
    };
    let pair = arrival.meet(&all, Some(TIMEOUT))?;
    let mut mine = (size as u64).to_le_bytes().to_vec();
    mine.extend(&identity::random()[..8]);
    let said = pair.allgather(&mine)?;
    let word = |rank: usize, at: usize| {
        let word = said[rank].get(at..).and_then(|bytes| bytes.first_chunk());
        word.map(|word| u64::from_le_bytes(*word))
    };
    let words = || {
        Some([
            COME,
            pair.rank() as u64,
            word(0, 0)?,
            word(1, 0)?,
            word(0, 8)?,
        ])
    };
    let words = words().ok_or_else(|| Error::argument("name", "another kind of team has it"))?;
    Ok(Ok(words))
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

    /// Ranks of the other team among all.
    pub(crate) fn others(&self) -> Range<usize> {
        self.other.clone()
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
