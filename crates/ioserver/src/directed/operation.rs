//! One collective access: the ranks that have come, the rounds that are in memory, and how it ends.
//!
//! ```text
//!  store thread   prepare 0 | prepare 1 | wait: 0 done | prepare 2 | wait: 1 done | ...
//!  rank threads               0 ......... | 1 .......... | 2
//! ```
//!
//! Two rounds exist at a time: while the ranks send or receive one, the store works at the other. A round is
//! done when every rank that has bytes here is through with it.
//!
//! Invariants
//! - The first failure counts, and every rank hears of it at its next step. No thread waits without looking at
//!   his own connection, at those who have not come, and at the time.
//! - A round holds the gate of the file: the file gets no other size or layout while one is in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use store::{Grant, Pins};
use wire::{ClientId, Status};

use super::distribution::{CompiledViews, Distribution, RoundPart};
use super::prefetch::{PackedBytes, Prefetch};
use crate::context::{Cluster, Storage};
use crate::files::GatePass;
use crate::refused::Refused;
use crate::sessions::{Connection, Sessions};
use crate::statistics::{Statistics, add};

/// How long ranks that have not come are waited for.
const COMING: Duration = Duration::from_secs(20);
/// Between two looks at whether all ranks are still there.
const LOOK: Duration = Duration::from_millis(100);
/// How long a failure is remembered for those who come late.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Collective accesses that one client leads here at a time, or that are remembered of it.
const MOST_OF_LEADER: usize = 256;
/// Those of all clients of a user.
const MOST_OF_USER: usize = MOST_OF_LEADER * serving::CLIENTS_OF_A_USER;
/// A failed one that remembers so many members counts as one more.
const MEMBERS_OF_ONE: usize = 1024;
/// Rounds in memory at a time.
const BUFFERS: usize = 2;

/// Bytes of a round, pinned or granted.
pub(super) enum Memory {
    Read(Vec<Pins>),
    /// Packets that are ready, by rank.
    Packets(Vec<Option<PackedBytes>>),
    Write(Vec<Grant>),
}

/// Blocks in memory, part by part.
pub(super) struct Round {
    pub(super) parts: Vec<RoundPart>,
    pub(super) memory: Memory,
    pub(super) _running: GatePass,
}

impl Round {
    fn bytes(&self) -> u64 {
        let parts = self.parts.iter();
        parts.map(|part| part.subfile.bytes()).sum()
    }
}

/// What the leader has said.
pub(super) struct Plan {
    pub(super) distribution: Distribution,
    pub(super) writes: bool,
    pub(super) by_record: bool,
    /// Ranks that have bytes here.
    takers: usize,
}

impl Plan {
    pub(super) fn new(distribution: Distribution, writes: bool, by_record: bool) -> Plan {
        let takers = distribution.ranks.iter().filter(|rank| rank.has_bytes);
        Plan {
            takers: takers.count(),
            distribution,
            writes,
            by_record,
        }
    }
}

#[derive(Default)]
struct State {
    plan: Option<Arc<Plan>>,
    /// The clients of its ranks, once it has failed and the plan is gone.
    members: Option<Box<[ClientId]>>,
    /// By rank, who has come.
    came: Vec<bool>,
    failed: Option<Refused>,
    /// Rounds in memory, each with the number of ranks that are not through with it.
    rounds: VecDeque<(Arc<Round>, usize)>,
    /// Number of the first of them.
    first: u64,
    /// There are no more.
    is_complete: bool,
    is_done: bool,
}

/// One collective access at this server.
pub(super) struct Operation {
    state: Mutex<State>,
    changed: Condvar,
    began: Instant,
    /// Who its leader works for.
    user: u32,
    pub(super) packets: AtomicU64,
    pub(super) blocks: AtomicU64,
    store_is_busy: AtomicBool,
    ranks_busy: AtomicUsize,
}

impl Operation {
    fn new(user: u32) -> Operation {
        Operation {
            user,
            state: Mutex::default(),
            changed: Condvar::new(),
            began: Instant::now(),
            packets: AtomicU64::new(0),
            blocks: AtomicU64::new(0),
            store_is_busy: AtomicBool::new(false),
            ranks_busy: AtomicUsize::new(0),
        }
    }

    /// Ends it for all; the first reason counts.
    pub(super) fn fail(&self, refused: Refused) {
        let mut state = self.state.lock();
        if state.failed.is_none() && !state.is_done {
            state.failed = Some(refused);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The leader has come.
    pub(super) fn begin(&self, plan: Plan) -> Result<Arc<Plan>, Refused> {
        let mut state = self.state.lock();
        if let Some(refused) = &state.failed {
            return Err(refused.clone());
        }
        if state.plan.is_some() {
            let text = "operation: there was one with this number";
            return Err(Refused::new(Status::InvalidArgument, text));
        }
        let plan = Arc::new(plan);
        state.came = vec![false; plan.distribution.ranks.len()];
        state.plan = Some(Arc::clone(&plan));
        drop(state);
        self.changed.notify_all();
        Ok(plan)
    }

    /// What the leader has said, or why nothing came of it. That is told to members only.
    pub(super) fn plan(&self, client: ClientId) -> Result<Arc<Plan>, Refused> {
        let state = self.state.lock();
        if state.members.as_ref().is_some_and(|m| !m.contains(&client)) {
            let text = format!("{client} is not a rank of this operation");
            return Err(Refused::new(Status::PermissionDenied, text));
        }
        match (&state.plan, &state.failed) {
            (Some(plan), _) => Ok(Arc::clone(plan)),
            (None, Some(refused)) => Err(refused.clone()),
            (None, None) => Err(Refused::new(
                Status::Busy,
                "rank 0 has not said what is accessed yet",
            )),
        }
    }

    /// Whether the leader has said what is accessed, or that nothing comes of it.
    fn is_told(&self) -> bool {
        let state = self.state.lock();
        state.plan.is_some() || state.failed.is_some()
    }

    /// The leader's own rank takes part.
    pub(super) fn came(&self, rank: usize) {
        if let Some(came) = self.state.lock().came.get_mut(rank) {
            *came = true;
        }
    }

    /// Whether it has failed.
    pub(super) fn is_failed(&self) -> bool {
        self.state.lock().failed.is_some()
    }

    /// Rounds that were taken out.
    pub(super) fn rounds(&self) -> u64 {
        self.state.lock().first
    }

    /// A rank has come.
    pub(super) fn join(&self, rank: usize) -> Result<(), Refused> {
        let mut state = self.state.lock();
        // Where there are none it has failed meanwhile, which the next step of the rank says.
        let came = state.came.get_mut(rank);
        if came.is_some_and(|came| std::mem::replace(came, true)) {
            let text = format!("rank {rank} is here already");
            return Err(Refused::new(Status::InvalidArgument, text));
        }
        Ok(())
    }

    /// Waits until `ready` has something, looking after everything that could keep it from ever coming.
    fn wait<T>(
        &self,
        sessions: &Sessions,
        who: Waiter<'_>,
        mut ready: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<T, Refused> {
        let mut state = self.state.lock();
        loop {
            if let Some(refused) = &state.failed {
                return Err(refused.clone());
            }
            if let Some(found) = ready(&mut state) {
                return Ok(found);
            }
            let timeout = serving::waiting(|| self.changed.wait_for(&mut state, LOOK));
            if timeout.timed_out() && state.failed.is_none() {
                let trouble = self.look(sessions, &who, &state);
                if let Some(refused) = trouble {
                    state.failed = Some(refused.clone());
                    drop(state);
                    self.changed.notify_all();
                    return Err(refused);
                }
            }
        }
    }

    fn look(&self, sessions: &Sessions, who: &Waiter<'_>, state: &State) -> Option<Refused> {
        let gone = |text: String| Some(Refused::new(Status::Unreachable, text));
        if let Waiter::Rank { connection, file } = who {
            connection.busy_with(*file);
            if !connection.is_open() {
                return gone("a rank has ended its connection".into());
            }
        }
        let Some(plan) = &state.plan else {
            if self.began.elapsed() > COMING {
                return gone("rank 0 has not come to direct the operation".into());
            }
            return None;
        };
        let ranks = plan.distribution.ranks.iter().enumerate();
        let mut missing = ranks.filter(|(i, rank)| rank.has_bytes && !state.came[*i]);
        let is_late = self.began.elapsed() > COMING;
        let lost = missing.find(|(_, rank)| is_late || sessions.is_fenced(rank.client));
        lost.and_then(|(i, rank)| gone(format!("rank {i} ({}) has not come", rank.client)))
    }

    /// Waits for a round; nothing when there are no more.
    pub(super) fn round(
        &self,
        sessions: &Sessions,
        who: Waiter<'_>,
        number: u64,
    ) -> Result<Option<Arc<Round>>, Refused> {
        self.wait(sessions, who, |state| state.round(number))
    }

    /// The round if it is there.
    pub(super) fn round_now(&self, number: u64) -> Result<Option<Arc<Round>>, Refused> {
        let mut state = self.state.lock();
        match &state.failed {
            Some(refused) => Err(refused.clone()),
            None => Ok(state.round(number).flatten()),
        }
    }

    /// A rank is through with a round.
    pub(super) fn through(&self, number: u64) {
        let mut state = self.state.lock();
        let Some(at) = number.checked_sub(state.first) else {
            return;
        };
        let Some((_, left)) = state.rounds.get_mut(at as usize) else {
            return;
        };
        *left -= 1;
        if *left == 0 {
            drop(state);
            self.changed.notify_all();
        }
    }

    /// The store has prepared a round.
    pub(super) fn publish(&self, statistics: &Statistics, round: Round) {
        let mut state = self.state.lock();
        let takers = state.plan.as_ref().map_or(0, |plan| plan.takers);
        state.rounds.push_back((Arc::new(round), takers));
        let bytes = state.rounds.iter().map(|(round, _)| round.bytes()).sum();
        drop(state);
        let most = &statistics.directed_most_bytes;
        most.fetch_max(bytes, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Waits until a round is to be taken out: the oldest one when all ranks are through with it, or nothing
    /// when there is room for another. `is_last`: until there are none.
    pub(super) fn oldest(
        &self,
        sessions: &Sessions,
        is_last: bool,
    ) -> Result<Option<Arc<Round>>, Refused> {
        self.wait(sessions, Waiter::Store, |state| {
            match state.rounds.front() {
                Some((_, 0)) => {
                    let (round, _) = state.rounds.pop_front().expect("looked at");
                    state.first += 1;
                    Some(Some(round))
                }
                Some(_) if is_last || state.rounds.len() == BUFFERS => None,
                _ => Some(None),
            }
        })
    }

    /// There are no more rounds.
    pub(super) fn complete(&self) {
        self.state.lock().is_complete = true;
        self.changed.notify_all();
    }

    /// Everything is stored.
    pub(super) fn done(&self) {
        self.state.lock().is_done = true;
        self.changed.notify_all();
    }

    /// Waits until everything is stored, or sent by all.
    pub(super) fn wait_until_done(
        &self,
        sessions: &Sessions,
        who: Waiter<'_>,
    ) -> Result<(), Refused> {
        self.wait(sessions, who, |state| state.is_done.then_some(()))
    }

    /// Lets go of the rounds and the plan of an operation that has failed: only why, and who may hear it, is remembered.
    pub(super) fn clear(&self) {
        let mut state = self.state.lock();
        let (rounds, plan) = (std::mem::take(&mut state.rounds), state.plan.take());
        state.came = Vec::new();
        if let Some(plan) = &plan {
            let mut members: Vec<ClientId> =
                plan.distribution.ranks.iter().map(|r| r.client).collect();
            members.sort_unstable();
            members.dedup();
            state.members = Some(members.into());
        }
        drop(state);
        drop((rounds, plan));
    }

    /// What it takes of what a client may have: one, and one more for so many members that are remembered.
    fn weight(&self) -> usize {
        let state = self.state.lock();
        1 + state
            .members
            .as_ref()
            .map_or(0, |m| m.len() / MEMBERS_OF_ONE)
    }

    /// Runs a step of the store, and counts whether ranks were served at the same time.
    pub(super) fn store_step<T>(&self, statistics: &Statistics, run: impl FnOnce() -> T) -> T {
        self.store_is_busy.store(true, Ordering::SeqCst);
        if self.ranks_busy.load(Ordering::SeqCst) > 0 {
            add(&statistics.directed_overlaps, 1);
        }
        let done = run();
        self.store_is_busy.store(false, Ordering::SeqCst);
        done
    }

    /// Runs a transfer, and counts whether the store was at work at the same time.
    pub(super) fn rank_step<T>(&self, statistics: &Statistics, run: impl FnOnce() -> T) -> T {
        self.ranks_busy.fetch_add(1, Ordering::SeqCst);
        if self.store_is_busy.load(Ordering::SeqCst) {
            add(&statistics.directed_overlaps, 1);
        }
        let done = run();
        self.ranks_busy.fetch_sub(1, Ordering::SeqCst);
        done
    }
}

impl State {
    fn round(&mut self, number: u64) -> Option<Option<Arc<Round>>> {
        let at = number.checked_sub(self.first)?;
        match self.rounds.get(at as usize) {
            Some((round, _)) => Some(Some(Arc::clone(round))),
            None if self.is_complete => Some(None),
            None => None,
        }
    }
}

/// Who waits.
#[derive(Clone, Copy)]
pub(super) enum Waiter<'a> {
    Rank {
        connection: &'a Connection,
        file: wire::FileId,
    },
    Store,
}

/// Collective accesses by leader and number.
#[derive(Default)]
struct Table(HashMap<(ClientId, u64), Arc<Operation>>);

impl Table {
    /// What the operations of a leader take.
    fn of_leader(&self, leader: ClientId) -> usize {
        let own = self.0.iter().filter(|((who, _), _)| *who == leader);
        own.map(|(_, operation)| operation.weight()).sum()
    }

    /// What those of a user take, whichever of his clients leads them.
    fn of_user(&self, user: u32) -> usize {
        let own = self.0.values().filter(|operation| operation.user == user);
        own.map(|operation| operation.weight()).sum()
    }

    /// The operation that a leader begins.
    fn lead(
        &mut self,
        leader: ClientId,
        user: u32,
        number: u64,
    ) -> Result<Arc<Operation>, Refused> {
        self.0.retain(|_, operation| {
            Arc::strong_count(operation) > 1 || operation.began.elapsed() < REMEMBERED
        });
        if self.of_leader(leader) >= MOST_OF_LEADER {
            // What has ended is forgotten before its time; those who come late hear that there is no leader.
            self.0
                .retain(|(who, _), operation| *who != leader || Arc::strong_count(operation) > 1);
        }
        if self.of_leader(leader) >= MOST_OF_LEADER {
            let text = format!(
                "{leader} leads {MOST_OF_LEADER} collective accesses here already, the most that one client may"
            );
            return Err(Refused::new(Status::QuotaExceeded, text));
        }
        if self.of_user(user) >= MOST_OF_USER {
            self.0
                .retain(|_, operation| operation.user != user || Arc::strong_count(operation) > 1);
        }
        if self.of_user(user) >= MOST_OF_USER {
            let text = format!(
                "user {user} leads {MOST_OF_USER} collective accesses here already, the most that all his clients may"
            );
            return Err(Refused::new(Status::QuotaExceeded, text));
        }
        let operation = self.0.entry((leader, number));
        Ok(Arc::clone(
            operation.or_insert_with(|| Arc::new(Operation::new(user))),
        ))
    }
}

/// All collective accesses at this server.
pub(crate) struct Operations {
    table: Mutex<Table>,
    /// The table has changed, or a leader in it has said something.
    told: Condvar,
    pub(super) compiled: Arc<CompiledViews>,
    /// What comes next.
    pub(crate) prefetch: Prefetch,
}

impl Operations {
    pub(crate) fn new(cluster: &Arc<Cluster>, storage: &Arc<Storage>) -> Self {
        let compiled = Arc::<CompiledViews>::default();
        Operations {
            table: Mutex::default(),
            told: Condvar::new(),
            prefetch: Prefetch::new(cluster, storage, &compiled),
            compiled,
        }
    }

    /// The operation that a leader begins. Only leaders make operations, so no client fills the table with some that
    /// have no leader.
    pub(super) fn lead(
        &self,
        leader: ClientId,
        user: u32,
        number: u64,
    ) -> Result<Arc<Operation>, Refused> {
        self.table.lock().lead(leader, user, number)
    }

    /// Waits until the leader has said what is accessed. Nothing is kept for those who wait, so a client that names
    /// an operation which does not exist costs a thread for a while and no other client anything.
    pub(super) fn wait_for(
        &self,
        sessions: &Sessions,
        connection: &Connection,
        file: Option<wire::FileId>,
        leader: ClientId,
        number: u64,
    ) -> Result<Arc<Operation>, Refused> {
        let gone = |text: String| Err(Refused::new(Status::Unreachable, text));
        let began = Instant::now();
        let mut table = self.table.lock();
        loop {
            if let Some(found) = table.0.get(&(leader, number))
                && found.is_told()
            {
                return Ok(Arc::clone(found));
            }
            let timeout = serving::waiting(|| self.told.wait_for(&mut table, LOOK));
            if !timeout.timed_out() {
                continue;
            }
            if let Some(file) = file {
                connection.busy_with(file);
            }
            if !connection.is_open() {
                return gone("a rank has ended its connection".into());
            }
            if sessions.is_fenced(leader) {
                return gone(format!("rank 0 ({leader}) has died"));
            }
            if began.elapsed() > COMING {
                return gone("rank 0 has not come to direct the operation".into());
            }
        }
    }

    /// A leader has said something.
    pub(super) fn tell(&self) {
        drop(self.table.lock());
        self.told.notify_all();
    }

    /// One that went well is not asked for again.
    pub(super) fn forget(&self, leader: ClientId, number: u64) {
        self.table.lock().0.remove(&(leader, number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEADER: ClientId = ClientId(7);
    const USER: u32 = 1000;

    fn refused(table: &mut Table, number: u64) -> Refused {
        match table.lead(LEADER, USER, number) {
            Ok(_) => panic!("operation {number} was begun"),
            Err(refused) => refused,
        }
    }

    #[test]
    fn client_leads_no_more_collective_accesses_than_the_limit() {
        let mut table = Table::default();
        let lead = |table: &mut Table, number| table.lead(LEADER, USER, number).ok().unwrap();
        let mut running: Vec<_> = (0..256).map(|n| lead(&mut table, n)).collect();
        let refusal = refused(&mut table, 256);
        assert_eq!(refusal.status, Status::QuotaExceeded);
        let text = refusal.refusal.text;
        assert!(text.contains("leads 256 collective"), "{text}");
        // Others have their own.
        assert!(table.lead(ClientId(8), USER, 0).is_ok());
        // One that has ended makes room.
        running.pop();
        assert!(table.lead(LEADER, USER, 256).is_ok());
        assert!(table.0.len() <= 258, "{}", table.0.len());
    }

    #[test]
    fn user_leads_no_more_collective_accesses_than_the_limit_by_all_his_clients() {
        let mut table = Table::default();
        let mut running = Vec::new();
        // Collectives of another user that run, and some of the user that have failed.
        running.push(table.lead(ClientId(1), USER + 1, 0).ok().unwrap());
        for number in 0..100 {
            let operation = table.lead(ClientId(2), USER, number).ok().unwrap();
            operation.fail(Refused::new(Status::Unreachable, "a rank has not come"));
        }
        let most = MOST_OF_USER as u64;
        for client in 0..most {
            let led = table.lead(ClientId(100 + client), USER, 0);
            running.push(led.ok().unwrap());
        }
        let refused = table.lead(LEADER, USER, 0).err().expect("one too many");
        assert_eq!(refused.status, Status::QuotaExceeded);
        let text = refused.refusal.text;
        assert!(text.contains("user 1000 leads 4096 collective"), "{text}");
        // The other user goes on, and one that has ended makes room.
        assert!(table.lead(ClientId(1), USER + 1, 1).is_ok());
        running.pop();
        assert!(table.lead(LEADER, USER, 0).is_ok());
    }

    #[test]
    fn failures_that_are_remembered_make_room_for_what_runs() {
        let mut table = Table::default();
        for number in 0..1000 {
            let operation = table.lead(LEADER, USER, number).ok().unwrap();
            operation.fail(Refused::new(Status::Unreachable, "a rank has not come"));
            operation.clear();
            assert!(table.0.len() <= MOST_OF_LEADER);
        }
        // Those with many members sooner.
        for number in 0..1000 {
            let operation = table.lead(LEADER, USER, number).ok().unwrap();
            let members = vec![LEADER; 64 * MEMBERS_OF_ONE];
            operation.state.lock().members = Some(members.into());
        }
        assert!(table.0.len() <= 4, "{}", table.0.len());
    }

    #[test]
    fn failure_is_told_to_members_only() {
        let operation = Operation::new(USER);
        operation.fail(Refused::new(Status::Unreachable, "a rank has not come"));
        operation.state.lock().members = Some([LEADER].into());
        let told = |client| operation.plan(client).err().unwrap().status;
        assert_eq!(told(LEADER), Status::Unreachable);
        assert_eq!(told(ClientId(8)), Status::PermissionDenied);
    }
}
