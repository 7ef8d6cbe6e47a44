//! Teams: processes or threads that open a file together.
//!
//! A member has a rank, counted in the team and nowhere else, and can exchange bytes with the others:
//! each gives some and gets those of all, by rank. How they travel is an [`Exchange`]; threads share
//! memory, processes go through the metadata manager, and an MPI communicator can be one.
//!
//! Invariants
//! - All members call the same collective operations in the same order.
//! - An exchange ends for everybody: with the bytes of all, or with an error. A member that fails on its
//!   own says so in the exchange, so the others do not wait for it; one that dies or is dropped is
//!   reported at once; whoever does not come is given up after the time limit.
//!
//! Left to others: what is opened together and what views mean (`together`).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use wire::Status;
use wire::message::Bytes;
use wire::message::team::{Gather, LeaveTeam};

use crate::client::Client;
use crate::error::{Error, Result};
use crate::session::{Repeat, lock};

/// How long members wait for each other, unless told otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How long one question to the metadata manager waits.
const WAIT_MS: u64 = 2000;

/// What all contributions of one exchange between processes may take.
const ROUND_BYTES: usize = 960 << 10;

/// In front of a contribution: what follows is one, or is why there is none.
const GIVEN: u8 = 0;
const FAILED: u8 = 1;

/// How members of a team exchange bytes.
pub trait Exchange: Send + Sync + fmt::Debug {
    /// The rank of this member, from 0.
    fn rank(&self) -> usize;

    /// Ranks in all.
    fn size(&self) -> usize;

    /// The most bytes that a member may give.
    fn most_bytes(&self) -> usize {
        usize::MAX
    }

    /// Gives bytes, and gets those of all members by rank. All members call it, in the same order; it
    /// ends for all of them, with an error if somebody cannot take part.
    fn allgather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>>;
}

/// A member of a team. Clones are the same member.
///
/// ```
/// use client::Team;
/// let team = Team::threads(2);
/// let sums: Vec<usize> = std::thread::scope(|scope| {
///     let each = team.iter().map(|member| {
///         scope.spawn(move || member.allgather(&[member.rank() as u8; 3]).unwrap().concat().len())
///     });
///     let each: Vec<_> = each.collect();
///     each.into_iter().map(|thread| thread.join().unwrap()).collect()
/// });
/// assert_eq!(sums, [6, 6]);
/// ```
#[derive(Clone, Debug)]
pub struct Team {
    exchange: Arc<dyn Exchange>,
}

impl Team {
    /// Whatever exchanges.
    pub fn of(exchange: Arc<dyn Exchange>) -> Team {
        Team { exchange }
    }

    /// A team of one.
    pub fn alone() -> Team {
        Team::of(Arc::new(Alone))
    }

    /// Members for so many threads, by rank.
    pub fn threads(count: usize) -> Vec<Team> {
        Team::threads_for(count, TIMEOUT)
    }

    /// The same with another time limit.
    pub fn threads_for(count: usize, timeout: Duration) -> Vec<Team> {
        let shared = Arc::new(Shared {
            size: count,
            timeout,
            state: Mutex::new(State {
                rounds: HashMap::new(),
                gone: vec![false; count],
            }),
            changed: Condvar::new(),
        });
        let member = |rank| {
            Team::of(Arc::new(Thread {
                shared: Arc::clone(&shared),
                rank,
                round: Mutex::new(0),
            }))
        };
        (0..count).map(member).collect()
    }

    /// A member of a team of processes of one user, which all give the same name and size and each
    /// its own rank. They find each other through the service; returns when all are there.
    pub fn processes(client: &Client, name: &str, rank: usize, size: usize) -> Result<Team> {
        Team::processes_for(client, name, rank, size, TIMEOUT)
    }

    /// The same with another time limit.
    pub fn processes_for(
        client: &Client,
        name: &str,
        rank: usize,
        size: usize,
        timeout: Duration,
    ) -> Result<Team> {
        if rank >= size {
            return Err(Error::argument(
                "rank",
                format!("{rank}, but the team has {size}; ranks count from 0"),
            ));
        }
        let team = Team::of(Arc::new(Process {
            client: client.clone(),
            name: name.into(),
            member: client.session.number(),
            rank,
            size,
            timeout,
            round: Mutex::new(0),
        }));
        team.barrier()?;
        Ok(team)
    }

    /// The rank of this member, from 0.
    pub fn rank(&self) -> usize {
        self.exchange.rank()
    }

    /// Ranks in all.
    pub fn size(&self) -> usize {
        self.exchange.size()
    }

    /// Gives bytes, and gets those of all members by rank.
    pub fn allgather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.agree(Ok(bytes.to_vec()))
    }

    /// Waits until all members are here.
    pub fn barrier(&self) -> Result<()> {
        self.allgather(&[]).map(drop)
    }

    /// The most bytes that a member may give to an exchange.
    pub fn most_bytes(&self) -> usize {
        self.exchange.most_bytes().saturating_sub(1)
    }

    /// Gives what this member has, or says that it failed; then all fail.
    pub(crate) fn agree(&self, mine: Result<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let mine = mine.and_then(|bytes| match bytes.len() <= self.most_bytes() {
            true => Ok(bytes),
            false => Err(Error::argument(
                "bytes",
                format!(
                    "{} of them; a member of a team of {} gives at most {}",
                    bytes.len(),
                    self.size(),
                    self.most_bytes()
                ),
            )),
        });
        let mut given = match &mine {
            Ok(bytes) => [&[GIVEN], &bytes[..]].concat(),
            Err(error) => [&[FAILED], error.to_string().as_bytes()].concat(),
        };
        given.truncate(self.exchange.most_bytes());
        let gathered = self.exchange.allgather(&given);
        // What is wrong here says more than that others heard of it.
        mine?;
        let gathered = gathered?;
        for (rank, bytes) in gathered.iter().enumerate() {
            if bytes.first() != Some(&GIVEN) {
                let why = String::from_utf8_lossy(bytes.get(1..).unwrap_or_default());
                return Err(Error::Refused {
                    status: Status::InvalidArgument,
                    text: format!("rank {rank} of the team failed: {why}"),
                    server: None,
                });
            }
        }
        let mut gathered = gathered;
        for bytes in &mut gathered {
            bytes.remove(0);
        }
        Ok(gathered)
    }
}

#[derive(Debug)]
struct Alone;

impl Exchange for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn allgather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![bytes.to_vec()])
    }
}

#[derive(Debug)]
struct Shared {
    size: usize,
    timeout: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    rounds: HashMap<u64, Round>,
    /// Ranks that were dropped.
    gone: Vec<bool>,
}

#[derive(Debug)]
struct Round {
    given: Vec<Option<Vec<u8>>>,
    taken: usize,
}

/// A member that shares memory with the others.
#[derive(Debug)]
struct Thread {
    shared: Arc<Shared>,
    rank: usize,
    round: Mutex<u64>,
}

impl Exchange for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.size
    }

    fn allgather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut number = lock(&self.round);
        let (size, round) = (self.shared.size, *number);
        *number += 1;
        let deadline = Instant::now() + self.shared.timeout;
        let mut state = lock(&self.shared.state);
        let found = state.rounds.entry(round).or_insert_with(|| Round {
            given: vec![None; size],
            taken: 0,
        });
        found.given[self.rank] = Some(bytes.to_vec());
        self.shared.changed.notify_all();
        loop {
            let State { rounds, gone } = &mut *state;
            let found = rounds.get_mut(&round).expect("kept until all have taken");
            let missing = found.given.iter().position(Option::is_none);
            let Some(missing) = missing else {
                let all = found.given.iter().flatten().cloned().collect();
                found.taken += 1;
                if found.taken == size {
                    rounds.remove(&round);
                }
                return Ok(all);
            };
            let dead = (0..size).find(|&r| gone[r] && found.given[r].is_none());
            if let Some(rank) = dead {
                return Err(absent(rank, "has ended"));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(late(missing, self.shared.timeout));
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(|e| e.into_inner()).0;
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        lock(&self.shared.state).gone[self.rank] = true;
        self.shared.changed.notify_all();
    }
}

fn absent(rank: usize, how: &str) -> Error {
    Error::Refused {
        status: Status::Unreachable,
        text: format!("rank {rank} of the team {how}"),
        server: None,
    }
}

fn late(rank: usize, timeout: Duration) -> Error {
    Error::Refused {
        status: Status::TimedOut,
        text: format!(
            "rank {rank} of the team did not come within {} s; all members have to call this",
            timeout.as_secs_f64()
        ),
        server: None,
    }
}

/// A member that finds the others through the metadata manager.
#[derive(Debug)]
struct Process {
    client: Client,
    name: String,
    member: u64,
    rank: usize,
    size: usize,
    timeout: Duration,
    round: Mutex<u64>,
}

impl Exchange for Process {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn most_bytes(&self) -> usize {
        (ROUND_BYTES / self.size).saturating_sub(8)
    }

    fn allgather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut number = lock(&self.round);
        let round = *number;
        *number += 1;
        let deadline = Instant::now() + self.timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let wait_ms = u64::try_from(left.as_millis()).unwrap_or(WAIT_MS);
            let gathered = self.client.session.manager(Repeat::Same, || Gather {
                team: self.name.clone(),
                member: self.member,
                rank: self.rank as u64,
                size: self.size as u64,
                round,
                contribution: Bytes(bytes.to_vec()),
                wait_ms: wait_ms.min(WAIT_MS),
            })?;
            if let Some(all) = gathered.contributions {
                return Ok(all.into_iter().map(|bytes| bytes.0).collect());
            }
            if left.is_zero() {
                return Err(Error::Refused {
                    status: Status::TimedOut,
                    text: format!(
                        "not all {} members of team '{}' came within {} s; give all the same name \
                         and size, and each its own rank",
                        self.size,
                        self.name,
                        self.timeout.as_secs_f64()
                    ),
                    server: None,
                });
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.client.session.is_ours() {
            // Whoever cannot be told notices the end of the client.
            let _ = self.client.session.manager(Repeat::Same, || LeaveTeam {
                team: self.name.clone(),
                member: self.member,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T: Send>(team: &[Team], work: impl Fn(&Team) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let each = team.iter().map(|member| scope.spawn(|| work(member)));
            let each: Vec<_> = each.collect();
            each.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }

    #[test]
    fn threads_exchange_round_by_round() {
        let team = Team::threads(3);
        let found = run(&team, |member| {
            (0..50u8)
                .map(|i| member.allgather(&[i, member.rank() as u8]).unwrap())
                .collect::<Vec<_>>()
        });
        for rounds in found {
            for (i, round) in rounds.into_iter().enumerate() {
                let i = i as u8;
                assert_eq!(round, [[i, 0], [i, 1], [i, 2]]);
            }
        }
        assert_eq!(Team::alone().allgather(b"x").unwrap(), [b"x"]);
    }

    #[test]
    fn a_member_that_fails_or_ends_is_reported_to_all() {
        let team = Team::threads(3);
        let errors = run(&team, |member| {
            let mine = match member.rank() {
                1 => Err(Error::argument("view", "is wrong")),
                _ => Ok(Vec::new()),
            };
            member.agree(mine).unwrap_err().to_string()
        });
        assert_eq!(errors[1], "view: is wrong");
        for error in [&errors[0], &errors[2]] {
            assert_eq!(error, "rank 1 of the team failed: view: is wrong");
        }
        let mut team = Team::threads(3);
        drop(team.remove(1));
        for error in run(&team, |member| member.barrier().unwrap_err()) {
            assert_eq!(error.to_string(), "rank 1 of the team has ended");
        }
    }

    #[test]
    fn nobody_waits_for_ever() {
        let team = Team::threads_for(2, Duration::from_millis(20));
        let error = team[0].barrier().unwrap_err();
        assert_eq!(error.status(), Status::TimedOut);
    }
}
