//! Teams: processes or threads that open a file together.
//!
//! A member has a rank, counted in the team and nowhere else, and can exchange bytes with the others:
//! each gives some and gets those of all, by rank. How they travel is an [`Exchange`]; threads share
//! memory, processes of one host a small file in memory (`host_team`), other processes have sockets
//! among them (`exchange`), and whatever else a binding has can be one. Members of the first and third kind also send each
//! other messages.
//!
//! Invariants
//! - All members call the same collective operations in the same order.
//! - An exchange ends for everybody: with the bytes of all, or with an error. A member that fails on its
//!   own says so in the exchange, so the others do not wait for it; one that dies or is dropped is
//!   reported at once; one that does not come is given up after the time limit, if there is one.
//! - Nothing spins. A [driving](Team::driving) member calls its driver between short waits.
//!
//! Left to others: what is opened together and what views mean (`together`).

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use wire::{Reader, Status, put_number};

use crate::collective::exchange::mesh::{Mesh, Message};
use crate::error::{Error, Result};
use crate::transport::patience::pause_for;

/// How long members wait for each other, unless told otherwise.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// How long one question to the metadata manager waits.
pub(crate) const WAIT_MS: u64 = 2000;

/// Waits between two calls of a driver: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LAST_PAUSE: Duration = Duration::from_millis(1);

/// Calls of a driver at a time.
const DRIVES: usize = 3;

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
    /// ends for all of them, with an error if a member cannot take part. `drive` is called between waits.
    fn allgather(&self, bytes: &[u8], drive: Drive<'_>) -> Result<Vec<Vec<u8>>>;

    /// Gives each member its part, and gets what each has for this one.
    fn exchange(&self, parts: &[&[u8]], drive: Drive<'_>) -> Result<Vec<Vec<u8>>> {
        let mut mine = Vec::new();
        for part in parts {
            put_number(&mut mine, part.len() as u64);
        }
        mine.extend(parts.concat());
        if mine.len() > self.most_bytes() {
            return Err(Error::argument(
                "parts",
                format!(
                    "{} bytes; a member gives at most {}",
                    mine.len(),
                    self.most_bytes()
                ),
            ));
        }
        let all = self.allgather(&mine, drive)?;
        let take = |bytes: &[u8]| {
            let mut r = Reader::new(bytes);
            let (mut before, mut len, mut sum) = (0usize, 0usize, 0usize);
            for rank in 0..self.size() {
                let n = usize::try_from(r.number()?).unwrap_or(usize::MAX);
                if rank == self.rank() {
                    (before, len) = (sum, n);
                }
                sum = sum.saturating_add(n);
            }
            let rest = r.take(r.left())?;
            let part = rest.get(before..before.saturating_add(len));
            Ok::<_, wire::DecodeError>(part.unwrap_or_default().to_vec())
        };
        let taken = all.iter().map(|bytes| take(bytes));
        let taken: std::result::Result<Vec<_>, _> = taken.collect();
        taken.map_err(|e| Error::argument("team", format!("a member gave something else: {e}")))
    }

    /// Exchanges into memory that the caller keeps, where that can be.
    fn exchange_into(
        &self,
        parts: &[&[u8]],
        got: &mut Vec<Vec<u8>>,
        drive: Drive<'_>,
    ) -> Result<()> {
        *got = self.exchange(parts, drive)?;
        Ok(())
    }

    /// Gets the bytes of one member, which gives them.
    fn broadcast(&self, root: usize, bytes: &[u8], drive: Drive<'_>) -> Result<Vec<u8>> {
        let mine = if root == self.rank() { bytes } else { &[] };
        Ok(self.allgather(mine, drive)?.swap_remove(root))
    }

    /// Gives bytes to one member, which gets those of all by rank.
    fn gather(&self, root: usize, bytes: &[u8], drive: Drive<'_>) -> Result<Option<Vec<Vec<u8>>>> {
        let all = self.allgather(bytes, drive)?;
        Ok((root == self.rank()).then_some(all))
    }

    /// Whether members share memory, so that much can be exchanged.
    fn is_near(&self) -> bool {
        false
    }

    /// Makes sure that all members are there; see [`Team::meet`].
    fn meet(&self, drive: Drive<'_>) -> Result<()> {
        self.allgather(&[], drive).map(drop)
    }
}

/// What is called between waits.
pub type Drive<'a> = Option<&'a dyn Fn()>;

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
#[derive(Clone)]
pub struct Team {
    exchange: Arc<dyn Exchange>,
    post: Post,
    drive: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Through which bytes flow without steps; processes of one host have them.
    lanes: Option<Arc<::direct::Assembly>>,
}

/// How messages go.
#[derive(Clone)]
enum Post {
    None,
    Thread(Arc<Thread>),
    Mesh(Arc<Mesh>),
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team")
            .field("exchange", &self.exchange)
            .field("is_driving", &self.drive.is_some())
            .finish()
    }
}

impl Team {
    /// Whatever exchanges.
    pub fn of(exchange: Arc<dyn Exchange>) -> Team {
        Team {
            exchange,
            post: Post::None,
            drive: None,
            lanes: None,
        }
    }

    /// Whatever exchanges, with lanes.
    pub(crate) fn with_lanes(
        exchange: Arc<dyn Exchange>,
        lanes: Option<Arc<::direct::Assembly>>,
    ) -> Team {
        Team {
            lanes,
            ..Team::of(exchange)
        }
    }

    pub(crate) fn lanes(&self) -> Option<&::direct::Assembly> {
        self.lanes.as_deref()
    }

    /// Members with sockets among them.
    pub(crate) fn connected(mesh: Arc<Mesh>) -> Team {
        Team {
            post: Post::Mesh(mesh.clone()),
            ..Team::of(mesh)
        }
    }

    /// A team of one.
    pub fn alone() -> Team {
        Team::of(Arc::new(Alone))
    }

    /// Members for so many threads, by rank.
    pub fn threads(count: usize) -> Vec<Team> {
        Team::threads_for(count, TIMEOUT)
    }

    /// Members that are threads, with another time limit, or none.
    pub fn threads_for(count: usize, timeout: impl Into<Option<Duration>>) -> Vec<Team> {
        let timeout = timeout.into();
        let shared = Arc::new(Room {
            size: count,
            timeout,
            state: Mutex::new(State {
                rounds: HashMap::new(),
                gone: vec![false; count],
                spare: Vec::new(),
                meshes: None,
            }),
            changed: Condvar::new(),
        });
        let member = |rank| {
            let thread = Arc::new(Thread {
                shared: Arc::clone(&shared),
                rank,
                round: Mutex::new(0),
                mesh: OnceLock::new(),
            });
            Team {
                post: Post::Thread(thread.clone()),
                ..Team::of(thread)
            }
        };
        (0..count).map(member).collect()
    }

    /// This member, whose waits call `drive` between waits that are short at first and at most a
    /// millisecond. For a thread that has to keep something else going meanwhile. Members that do not
    /// drive and those that do count the same rounds.
    pub fn driving(&self, drive: Arc<dyn Fn() + Send + Sync>) -> Team {
        Team {
            drive: Some(drive),
            ..self.clone()
        }
    }

    pub(crate) fn drive(&self) -> Drive<'_> {
        self.drive.as_ref().map(|drive| &**drive as &dyn Fn())
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
        self.agree(Ok(Vec::new())).map(drop)
    }

    /// Makes sure that all members are there and can be watched; the same answer at all. For members
    /// that were made without waiting for each other.
    pub fn meet(&self) -> Result<()> {
        self.exchange.meet(self.drive())
    }

    /// Gives each member its part, and gets what each has for this one.
    pub fn exchange(&self, parts: &[&[u8]]) -> Result<Vec<Vec<u8>>> {
        let mut got = Vec::new();
        self.exchange_into(parts, &mut got)?;
        Ok(got)
    }

    /// Exchanges into memory that the caller keeps from exchange to exchange: new memory is dear. What was there is
    /// replaced; after an error it is anything.
    pub fn exchange_into(&self, parts: &[&[u8]], got: &mut Vec<Vec<u8>>) -> Result<()> {
        if parts.len() != self.size() {
            return Err(Error::argument(
                "parts",
                format!("{} of them for {} members", parts.len(), self.size()),
            ));
        }
        self.exchange.exchange_into(parts, got, self.drive())
    }

    /// Gets the bytes that rank `root` gives; those of the others do not count.
    pub fn broadcast(&self, root: usize, bytes: &[u8]) -> Result<Vec<u8>> {
        self.check_root(root)?;
        self.exchange.broadcast(root, bytes, self.drive())
    }

    /// Gives bytes to rank `root`, which gets those of all by rank.
    pub fn gather(&self, root: usize, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        self.check_root(root)?;
        self.exchange.gather(root, bytes, self.drive())
    }

    fn check_root(&self, root: usize) -> Result<()> {
        if root < self.size() {
            return Ok(());
        }
        let text = format!(
            "{root}, but the team has {}; ranks count from 0",
            self.size()
        );
        Err(Error::argument("root", text))
    }

    /// Sends bytes with a tag to a member. Returns when they are on their way: a long message is, when the other member
    /// waits for anything in this team. Messages to one member arrive in the order in which they were sent.
    ///
    /// ```
    /// use client::Team;
    /// let team = Team::threads(2);
    /// team[0].send(1, 7, b"hello")?;
    /// team[0].send(1, 8, b"again")?;
    /// assert_eq!(team[1].receive(0, 8)?.bytes, b"again");
    /// let any = team[1].try_receive(None, None)?.expect("it was sent first");
    /// assert_eq!((any.from, any.tag, &any.bytes[..]), (0, 7, &b"hello"[..]));
    /// assert_eq!(team[1].try_receive(None, None)?, None);
    /// # Ok::<(), client::Error>(())
    /// ```
    pub fn send(&self, to: usize, tag: u64, bytes: &[u8]) -> Result<()> {
        self.mesh()?.send(to, tag, bytes, self.drive())
    }

    /// Waits for a message of a rank, or of any, with a tag, or with any. Others that come meanwhile are kept.
    pub fn receive(
        &self,
        from: impl Into<Option<usize>>,
        tag: impl Into<Option<u64>>,
    ) -> Result<Message> {
        self.receive_of(self.ranks(from.into()), tag.into())
    }

    /// The next message of a rank, or of any, with a tag, or with any, if one has come.
    pub fn try_receive(
        &self,
        from: impl Into<Option<usize>>,
        tag: impl Into<Option<u64>>,
    ) -> Result<Option<Message>> {
        self.mesh()?
            .try_receive(self.ranks(from.into()), tag.into())
    }

    pub(crate) fn receive_of(&self, from: Range<usize>, tag: Option<u64>) -> Result<Message> {
        self.mesh()?.receive(from, tag, self.drive())
    }

    fn ranks(&self, rank: Option<usize>) -> Range<usize> {
        rank.map_or(0..self.size(), |rank| rank..rank.saturating_add(1))
    }

    /// For `poll` and its like: readable when a message may have come, or the team has an error to tell. Then
    /// [`Team::try_receive`] takes it, or makes the descriptor quiet again.
    pub fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        Ok(self.mesh()?.descriptor())
    }

    pub(crate) fn mesh(&self) -> Result<&Mesh> {
        match &self.post {
            Post::Mesh(mesh) => Ok(mesh),
            Post::Thread(thread) => thread.mesh(),
            Post::None => Err(Error::argument(
                "team",
                "its members exchange bytes and send no messages; use one that was joined by name",
            )),
        }
    }

    /// Whether members share memory: threads, or processes of one host that attached to each other.
    pub fn is_near(&self) -> bool {
        self.exchange.is_near()
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
            Err(error) => {
                let status = error.status().code().to_le_bytes();
                [&[FAILED], &status[..], error.to_string().as_bytes()].concat()
            }
        };
        given.truncate(self.exchange.most_bytes());
        let gathered = self.exchange.allgather(&given, self.drive());
        // What is wrong here says more than that others heard of it.
        mine?;
        let gathered = gathered?;
        for (rank, bytes) in gathered.iter().enumerate() {
            if bytes.first() != Some(&GIVEN) {
                let code = bytes
                    .get(1..3)
                    .map(|code| u16::from_le_bytes([code[0], code[1]]));
                let why = String::from_utf8_lossy(bytes.get(3..).unwrap_or_default());
                return Err(Error::Refused {
                    status: code
                        .and_then(Status::from_code)
                        .filter(|status| !status.is_ok())
                        .unwrap_or(Status::InvalidArgument),
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

    fn allgather(&self, bytes: &[u8], _: Drive<'_>) -> Result<Vec<Vec<u8>>> {
        Ok(vec![bytes.to_vec()])
    }

    fn is_near(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct Room {
    size: usize,
    timeout: Option<Duration>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    rounds: HashMap<u64, Round>,
    /// Ranks that were dropped.
    gone: Vec<bool>,
    /// Memory of earlier exchanges.
    spare: Vec<Vec<u8>>,
    /// What messages go through, made with the first of them; each taken by its member.
    meshes: Option<Vec<Option<Mesh>>>,
}

#[derive(Debug)]
struct Round {
    given: Vec<Option<Gift>>,
    taken: usize,
}

/// What a member gives.
#[derive(Debug)]
enum Gift {
    /// To all of them.
    All(Vec<u8>),
    /// To each its own.
    Each(Vec<Vec<u8>>),
}

/// A member that shares memory with the others.
#[derive(Debug)]
struct Thread {
    shared: Arc<Room>,
    rank: usize,
    round: Mutex<u64>,
    mesh: OnceLock<Mesh>,
}

impl Exchange for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.size
    }

    fn allgather(&self, bytes: &[u8], drive: Drive<'_>) -> Result<Vec<Vec<u8>>> {
        self.round(Gift::All(bytes.to_vec()), drive, |gift| match gift {
            Gift::All(bytes) => Some(bytes.clone()),
            Gift::Each(_) => None,
        })
    }

    fn exchange(&self, parts: &[&[u8]], drive: Drive<'_>) -> Result<Vec<Vec<u8>>> {
        let mut got = Vec::new();
        self.exchange_into(parts, &mut got, drive)?;
        Ok(got)
    }

    /// Every part is copied once, by who gives it, into memory that the team keeps.
    fn exchange_into(
        &self,
        parts: &[&[u8]],
        got: &mut Vec<Vec<u8>>,
        drive: Drive<'_>,
    ) -> Result<()> {
        let mut memory = {
            let mut state = self.shared.state.lock();
            state.spare.append(got);
            let keep = state.spare.len().saturating_sub(parts.len());
            state.spare.split_off(keep)
        };
        memory.resize_with(parts.len(), Vec::new);
        for (memory, part) in memory.iter_mut().zip(parts) {
            memory.clear();
            memory.extend_from_slice(part);
        }
        *got = self.round(Gift::Each(memory), drive, |gift| match gift {
            Gift::Each(parts) => parts.get_mut(self.rank).map(std::mem::take),
            Gift::All(_) => None,
        })?;
        Ok(())
    }

    fn is_near(&self) -> bool {
        true
    }
}

/// Waits of an exchange: how long at a time, and until when.
pub(crate) struct Waits<'a> {
    drive: Drive<'a>,
    began: Instant,
    until: Option<Instant>,
    pause: Duration,
}

impl<'a> Waits<'a> {
    pub(crate) fn new(timeout: Option<Duration>, drive: Drive<'a>) -> Waits<'a> {
        let began = Instant::now();
        Waits {
            drive,
            began,
            until: timeout.and_then(|timeout| began.checked_add(timeout)),
            pause: FIRST_PAUSE,
        }
    }

    /// How long to wait now; `None` if the time is over.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let pause = match self.drive {
            Some(_) => self.pause,
            None => Duration::from_millis(WAIT_MS),
        };
        match self.until {
            None => Some(pause),
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                (!left.is_zero()).then(|| pause.min(left))
            }
        }
    }

    /// Whether it has taken so long already.
    pub(crate) fn has_waited(&self, time: Duration) -> bool {
        self.began.elapsed() >= time
    }

    pub(crate) fn drive(&mut self) {
        self.pause = (self.pause * 2).min(LAST_PAUSE);
        if let Some(drive) = self.drive {
            for _ in 0..DRIVES {
                drive();
            }
        }
    }

    /// Alone among the threads of this member, of which another may be in a round.
    pub(crate) fn turn<'m>(&mut self, round: &'m Mutex<u64>) -> MutexGuard<'m, u64> {
        loop {
            if let Some(guard) = round.try_lock() {
                return guard;
            }
            pause_for(self.pause);
            self.drive();
        }
    }
}

impl Thread {
    fn mesh(&self) -> Result<&Mesh> {
        if let Some(mesh) = self.mesh.get() {
            return Ok(mesh);
        }
        let mut state = self.shared.state.lock();
        if state.meshes.is_none() {
            let made = Mesh::local(self.shared.size, self.shared.timeout)?;
            let there = made.into_iter().enumerate();
            let there = there.map(|(rank, mesh)| (!state.gone[rank]).then_some(mesh));
            state.meshes = Some(there.collect());
        }
        let mine = state.meshes.as_mut().and_then(|all| all[self.rank].take());
        if let Some(mesh) = mine {
            // The lock is held, so it is the first.
            let _ = self.mesh.set(mesh);
        }
        Ok(self.mesh.get().expect("taken by this member only"))
    }

    /// One round: gives, waits for all, and takes from what each has given.
    fn round(
        &self,
        gift: Gift,
        drive: Drive<'_>,
        take: impl FnMut(&mut Gift) -> Option<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>> {
        let mut waits = Waits::new(self.shared.timeout, drive);
        let mut number = waits.turn(&self.round);
        let (size, round) = (self.shared.size, *number);
        *number += 1;
        let mut state = self.shared.state.lock();
        let found = state.rounds.entry(round).or_insert_with(|| Round {
            given: (0..size).map(|_| None).collect(),
            taken: 0,
        });
        found.given[self.rank] = Some(gift);
        // The last one wakes the others.
        if found.given.iter().all(Option::is_some) {
            self.shared.changed.notify_all();
        }
        loop {
            let State { rounds, gone, .. } = &mut *state;
            let found = rounds.get_mut(&round).expect("kept until all have taken");
            let missing = found.given.iter().position(Option::is_none);
            let Some(missing) = missing else {
                let all: Option<Vec<_>> = found.given.iter_mut().flatten().map(take).collect();
                found.taken += 1;
                if found.taken == size {
                    rounds.remove(&round);
                }
                return all.ok_or_else(|| {
                    Error::argument("team", "members are in different collective operations")
                });
            };
            let dead = (0..size).find(|&r| gone[r] && found.given[r].is_none());
            if let Some(rank) = dead {
                return Err(absent(rank, "has ended"));
            }
            let Some(pause) = waits.pause() else {
                let timeout = self.shared.timeout.unwrap_or_default();
                return Err(late(missing, timeout));
            };
            let waited = self.shared.changed.wait_for(&mut state, pause);
            if waited.timed_out() && drive.is_some() {
                drop(state);
                waits.drive();
                state = self.shared.state.lock();
            }
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.gone[self.rank] = true;
        if let Some(meshes) = &mut state.meshes {
            meshes[self.rank] = None;
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

pub(crate) fn absent(rank: usize, how: &str) -> Error {
    Error::Refused {
        status: Status::Unreachable,
        text: format!("rank {rank} of the team {how}"),
        server: None,
    }
}

pub(crate) fn late(rank: usize, timeout: Duration) -> Error {
    Error::Refused {
        status: Status::TimedOut,
        text: format!(
            "rank {rank} of the team did not come within {} s; all members have to call this",
            timeout.as_secs_f64()
        ),
        server: None,
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
    fn parts_go_to_whom_they_are_for() {
        let team = Team::threads(3);
        let found = run(&team, |member| {
            let parts = [0, 1, 2].map(|to| vec![member.rank() as u8; 10 * member.rank() + to]);
            let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
            member.exchange(&parts).unwrap()
        });
        for (to, got) in found.iter().enumerate() {
            for (from, part) in got.iter().enumerate() {
                assert_eq!(*part, vec![from as u8; 10 * from + to]);
            }
        }
        assert!(team[0].exchange(&[]).is_err(), "a part for every member");
    }

    #[test]
    fn memory_of_exchanges_is_used_again_and_holds_only_what_was_given_last() {
        let team = Team::threads(2);
        run(&team, |member| {
            let mut got = Vec::new();
            for round in 0..20usize {
                let parts = [0, 1].map(|to| vec![round as u8; 1000 - 40 * round + to]);
                let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
                member.exchange_into(&parts, &mut got).unwrap();
                let mine = vec![round as u8; 1000 - 40 * round + member.rank()];
                assert_eq!(got, [mine.clone(), mine]);
            }
            // Shorter parts came in the memory of longer ones.
            assert!(got.iter().all(|part| part.capacity() >= 1000 - 40));
        });
    }

    #[test]
    fn members_in_different_operations_are_told() {
        let team = Team::threads(2);
        let errors = run(&team, |member| match member.rank() {
            0 => member.exchange(&[b"a", b"b"]).unwrap_err().status(),
            _ => member.allgather(b"c").unwrap_err().status(),
        });
        assert_eq!(errors, [Status::InvalidArgument; 2]);
    }

    #[test]
    fn a_driving_member_drives_while_it_waits_and_counts_the_same_rounds() {
        use std::sync::atomic::{AtomicU64, Ordering};
        let team = Team::threads_for(2, None);
        let count = Arc::new(AtomicU64::new(0));
        let counter = count.clone();
        let driving = team[0].driving(Arc::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        }));
        std::thread::scope(|scope| {
            let other = &team[1];
            let count = &count;
            scope.spawn(move || {
                // Comes only once it was driven.
                while count.load(Ordering::SeqCst) < 10 {
                    pause_for(Duration::from_millis(1));
                }
                other.allgather(b"b").unwrap();
                other.allgather(b"d").unwrap();
            });
            assert_eq!(driving.allgather(b"a").unwrap(), [b"a", b"b"]);
            assert_eq!(team[0].allgather(b"c").unwrap(), [b"c", b"d"]);
        });
    }

    #[test]
    fn nobody_waits_for_ever() {
        let team = Team::threads_for(2, Duration::from_millis(20));
        let error = team[0].barrier().unwrap_err();
        assert_eq!(error.status(), Status::TimedOut);
    }
}
