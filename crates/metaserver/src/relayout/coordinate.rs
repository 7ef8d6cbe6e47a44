//! The coordinator of a move: rounds of fencing, fetching and making durable, until everything has moved.
//!
//! ```text
//!  begin    all fenced -> where the bytes end -> two pieces durable -> (with the first fence) servers know
//!  round    windows fenced -> fetched -> durable: moved -> (with the next fence) unfenced, space given back
//!  last     the same, but durable: moved and one piece, unless the owner changes
//!  cancel   all fenced -> where the bytes end -> pieces change their roles, durable -> servers know
//!  finish   (all fenced if the owner changes) -> one piece durable -> servers know
//! ```
//!
//! Invariants
//! - A window is unfenced only after it is durable that it has moved, or after it is sure that it has not.
//! - What is made durable is refused if a server that was fenced has joined again since: it has let accesses in.
//! - Rounds and truncates of a file take turns.
//! - Whatever fails, servers are unfenced, or lift the fence when they join again or hear of a later step.
//!
//! Left to others: how much and how often (`pace`), what moves mean (`control::moves`).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use control::moves::{self, CopyCounter, crash_point};
use meta::catalogue::{Batch, Identity, MemberState, MoveRecord, MoveTarget};
use parking_lot::{Mutex, MutexGuard};
use wire::message::catalogue::MoveState;
use wire::message::cluster::{
    ByteRange, FenceAnswer, FenceWindows, PointerIs, PullWindows, SizeAtRest, TakePointers,
};
use wire::{FileId, LayoutState, Piece, ServerId, Status, Time};

use super::pace::{Pace, Round};
use super::{Move, Next};
use crate::committer::Refused;
use crate::manager::{Manager, now};
use crate::servers::{ServerError, ServerLink};

/// How long servers may take to let accesses end.
const FENCE_LIMIT: Duration = Duration::from_secs(30);
/// Between two looks for a server that is away.
const LOOK: Duration = Duration::from_millis(200);
/// Looks for room before a move pauses by itself.
const ROOM_LOOKS: u32 = 15;
/// How often an owner is asked whether the locks it has given are free, and the pause between.
const HAND_OVER_LOOKS: usize = 100;
const HAND_OVER_PAUSE: Duration = Duration::from_millis(20);
/// Lanes that a move has unless the client says how many.
const LANES: u64 = 4;
/// Bytes of a window of a move that is to use little space.
const IN_PLACE_WINDOW: u64 = 4 << 20;

/// Why a round did not end.
#[derive(Debug)]
pub(super) enum Stop {
    /// There is no such file any more.
    Gone,
    /// Another thread has changed the state.
    Reload,
    /// A server is away.
    Wait(String),
    /// A server has no room for what it fetches. What was freed may take a moment to be there again.
    Room(String),
    /// The administrator has to do something.
    Pause(String),
    /// Bytes are lost.
    Lost(String),
    /// This process ends.
    Ending,
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Stop {
        let text = refused.1.text;
        match refused.0 {
            Status::NotFound => Stop::Gone,
            Status::StaleLayout => Stop::Reload,
            Status::Lost | Status::WrongIncarnation => Stop::Lost(text),
            Status::ShuttingDown => Stop::Ending,
            Status::Busy | Status::Unreachable | Status::TimedOut => Stop::Wait(text),
            Status::NoSpace | Status::NoMemory => Stop::Room(text),
            _ => Stop::Pause(text),
        }
    }
}

impl From<ServerError> for Stop {
    fn from(error: ServerError) -> Stop {
        Refused::new(error.status(), error.to_string()).into()
    }
}

impl Stop {
    /// As an answer to the client that wanted it to begin.
    pub(super) fn refused(self) -> Refused {
        match self {
            Stop::Gone => Refused::new(Status::NotFound, "the file was removed"),
            Stop::Reload => Refused::new(Status::Busy, "the file was changed meanwhile; try again"),
            Stop::Wait(text) => Refused::new(Status::Unreachable, text),
            Stop::Room(text) => Refused::new(Status::NoSpace, text),
            Stop::Pause(text) => Refused::new(Status::Io, text),
            Stop::Lost(text) => Refused::new(Status::Lost, text),
            Stop::Ending => Refused::new(
                Status::ShuttingDown,
                "the metadata manager is shutting down",
            ),
        }
    }
}

pub(super) struct Peer {
    link: ServerLink,
    token: u64,
}

/// Connections of moves that are over, for the next ones.
#[derive(Default)]
pub(super) struct Idle(Mutex<BTreeMap<u64, Peer>>);

impl Idle {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Peer>> {
        self.0.lock()
    }
}

/// What a message to all servers says besides.
#[derive(Clone, Copy, Debug, Default)]
struct Says {
    is_settling: bool,
    /// Servers that are new are told by the owner what they have to know before they serve.
    owner_first: bool,
    asks_size: bool,
    hands_over: bool,
}

/// See the [module](self).
pub(super) struct Coordinator {
    manager: Arc<Manager>,
    mv: Arc<Move>,
    state: LayoutState,
    counting: CopyCounter,
    pace: Pace,
    total: u64,
    peers: BTreeMap<u64, Peer>,
    /// The step that all servers know.
    told: u64,
    /// What has moved since.
    moved: Vec<Range<u64>>,
    frees: Vec<Range<u64>>,
    is_fenced: bool,
    /// All servers have been told of both pieces.
    is_settled: bool,
    accesses: u64,
    /// What the owner had when everything was fenced, if it hands its duties over.
    pointers: Vec<PointerIs>,
}

fn places(state: &LayoutState) -> Vec<wire::Place> {
    let of = |piece: &Piece| piece.places.iter().flatten().copied().collect::<Vec<_>>();
    let mut all: Vec<wire::Place> = state.pieces.iter().flat_map(of).collect();
    all.push(state.owner);
    all.sort_by_key(|p| (p.server, p.incarnation));
    all.dedup();
    all
}

fn wire_ranges(list: &[Range<u64>]) -> Vec<ByteRange> {
    let range = |r: &Range<u64>| ByteRange {
        start: r.start,
        end: r.end,
    };
    list.iter().map(range).collect()
}

fn everything() -> Vec<Range<u64>> {
    std::iter::once(0..u64::MAX).collect()
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.manager.moves.idle.lock().append(&mut self.peers);
    }
}

impl Coordinator {
    pub(super) fn new(manager: Arc<Manager>, mv: Arc<Move>) -> Result<Coordinator, Stop> {
        let state = load(&manager, mv.file)?;
        let mut made = Coordinator {
            manager,
            mv,
            state,
            counting: CopyCounter::all(),
            pace: Pace::new(0),
            total: 0,
            peers: BTreeMap::new(),
            told: 0,
            moved: Vec::new(),
            frees: Vec::new(),
            is_fenced: false,
            is_settled: false,
            accesses: 0,
            pointers: Vec::new(),
        };
        made.take(made.state.clone())?;
        Ok(made)
    }

    fn file(&self) -> FileId {
        self.mv.file
    }

    /// Whether a move is under way already.
    pub(super) fn is_moving(&self) -> bool {
        self.state.pieces.len() > 1
    }

    /// Goes on with a state that another start of the manager may have made.
    fn take(&mut self, state: LayoutState) -> Result<(), Stop> {
        self.state = state;
        self.told = self.state.step;
        self.moved.clear();
        self.frees.clear();
        if self.state.pieces.len() < 2 {
            return Ok(());
        }
        self.counting = CopyCounter::new(&self.state);
        let record = self.manager.snapshot()?.move_record(self.file());
        let record = record.map_err(Refused::from)?.unwrap_or_default();
        self.pace = Pace::new(record.options.window_bytes);
        self.total = record.total_bytes;
        // What a crash has left of the first piece is given back by the way.
        let end = self.state.pieces[0].ranges.last().map_or(0, |r| r.end);
        let below: Vec<Range<u64>> = std::iter::once(0..end.max(self.total)).collect();
        self.frees = moves::meeting(&self.state.pieces[1].ranges, &below);
        self.show(MoveState::Moving, "");
        Ok(())
    }

    /// Lets everybody see how far it is.
    fn show(&self, state: MoveState, why: &str) {
        let left = match &self.state.pieces[..] {
            [source, _] => self.counting.count_all(&source.ranges),
            _ => 0,
        };
        self.mv.show(|p| {
            p.state = state;
            p.failure = why.to_owned();
            p.total_bytes = self.total;
            p.moved_bytes = self.total.saturating_sub(left);
            p.rate_bytes = self.pace.rate();
            if let [source, target] = &self.state.pieces[..] {
                p.lanes = source.ranges.len() as u64;
                p.generation = target.generation;
            }
        });
    }

    /// Connections to all servers of the file.
    fn connect(&mut self) -> Result<(), Stop> {
        if self.manager.is_ending() {
            return Err(Stop::Ending);
        }
        let manager = &*self.manager;
        let mut members = None;
        for place in places(&self.state) {
            let server = ServerId(place.server);
            if let Some(peer) = self.peers.get(&place.server) {
                if manager.members.is_token(server, peer.token) {
                    continue;
                }
                self.peers.remove(&place.server);
            }
            let idle = manager.moves.idle.lock().remove(&place.server);
            if let Some(peer) = idle
                && let Some(second) = peer.link.second()
            {
                self.mv.watch(server, second);
                // A death before the link was noted did not cut it.
                if manager.members.is_token(server, peer.token) {
                    self.peers.insert(place.server, peer);
                    continue;
                }
            }
            if members.is_none() {
                members = Some(manager.snapshot()?.members().map_err(Refused::from)?);
            }
            let list = members.as_deref().unwrap_or_default();
            let Some(member) = list.iter().find(|m| m.server == server) else {
                return Err(Stop::Lost(format!("{server} never joined")));
            };
            if !member.keeps(place.incarnation) {
                let text = format!("bytes of the file are lost with {server}");
                return Err(Stop::Lost(text));
            }
            let token = manager.members.token(server, member.incarnation);
            let Some(token) = token.filter(|_| member.state != MemberState::Dead) else {
                return Err(Stop::Wait(format!("{server} is away")));
            };
            let link = manager.connect(member)?;
            if let Some(second) = link.second() {
                self.mv.watch(server, second);
            }
            // A death before the link was noted did not cut it.
            if !manager.members.is_token(server, token) {
                return Err(Stop::Wait(format!("{server} is away")));
            }
            self.peers.insert(place.server, Peer { link, token });
        }
        Ok(())
    }

    /// As [`Coordinator::tell_those`], in a round of their own.
    fn tell_some(
        &mut self,
        servers: &[u64],
        windows: &[Range<u64>],
        says: Says,
    ) -> Result<Vec<(u64, FenceAnswer)>, Stop> {
        self.mv.next_round(&self.manager);
        self.tell_those(servers, windows, says)
    }

    /// Tells servers the state and fences windows; what they say. All are asked before any is waited for.
    fn tell_those(
        &mut self,
        servers: &[u64],
        windows: &[Range<u64>],
        says: Says,
    ) -> Result<Vec<(u64, FenceAnswer)>, Stop> {
        let request = FenceWindows {
            file: self.file(),
            round: self.mv.round(),
            from: self.told,
            step: self.state.step,
            moved: wire_ranges(&self.moved),
            windows: wire_ranges(windows),
            frees: wire_ranges(&self.frees),
            is_settling: says.is_settling,
            asks_size: says.asks_size,
            hands_over: says.hands_over,
        };
        let answers = ask_all(&mut self.peers, servers, &request, Some(FENCE_LIMIT));
        let mut told = Vec::with_capacity(answers.len());
        let mut failed = None;
        for (server, answer) in answers {
            match answer {
                Ok(fenced) => {
                    self.accesses += fenced.accesses;
                    told.push((server, fenced));
                }
                Err(error) => {
                    failed.get_or_insert(Stop::from(error));
                }
            }
        }
        match failed {
            Some(stop) => Err(stop),
            None => Ok(told),
        }
    }

    fn tell(
        &mut self,
        windows: &[Range<u64>],
        says: Says,
    ) -> Result<Vec<(u64, FenceAnswer)>, Stop> {
        let all: Vec<u64> = self.peers.keys().copied().collect();
        if !windows.is_empty() {
            self.is_fenced = true;
        }
        let owner = self.state.owner.server;
        // One for all, since what they fetch is fetched in one.
        self.mv.next_round(&self.manager);
        let mut told = Vec::new();
        if says.owner_first && all.contains(&owner) {
            told = self.tell_those(&[owner], windows, says)?;
            let others: Vec<u64> = all.into_iter().filter(|s| *s != owner).collect();
            told.extend(self.tell_those(&others, windows, says)?);
        } else {
            told.extend(self.tell_those(&all, windows, says)?);
        }
        self.told = self.state.step;
        self.moved.clear();
        self.frees.clear();
        self.is_fenced = !windows.is_empty();
        Ok(told)
    }

    /// Lets accesses in wherever that can be told.
    fn unfence(&mut self) {
        if !self.is_fenced {
            return;
        }
        let all: Vec<u64> = self.peers.keys().copied().collect();
        for server in all {
            // One that does not hear it joins again, or hears of a later step.
            let _ = self.tell_some(&[server], &[], Says::default());
        }
        self.is_fenced = false;
    }

    /// Makes a change durable, if every server that was fenced still is.
    fn commit<T: Send + 'static>(
        &self,
        change: impl Fn(&mut Batch<'_>) -> Result<T, Refused> + Send + Sync + 'static,
    ) -> Result<T, Stop> {
        let tokens: Vec<(u64, u64)> = self.peers.iter().map(|(s, p)| (*s, p.token)).collect();
        let this = self.manager.this();
        let done = self.manager.committer.run(move |b| {
            let Some(manager) = this.upgrade() else {
                return Err(Refused::new(Status::ShuttingDown, "it ends"));
            };
            for &(server, token) in &tokens {
                let server = ServerId(server);
                if !manager.members.is_token(server, token) {
                    let text = format!("{server} has joined again or is away");
                    return Err(Refused::new(Status::Busy, text));
                }
            }
            change(b)
        });
        Ok(done?)
    }

    /// Where the bytes of the file end, and what the owner says, while nothing runs.
    fn fence_everything(&mut self, says: Says) -> Result<SizeAtRest, Stop> {
        self.connect()?;
        // Twice: the owner counts what servers have when it is asked, and in the first round some of them may still have taken bytes
        // after that. A server that leaves the file with the move is not asked again.
        self.tell(&everything(), says)?;
        let told = self.tell(&everything(), says)?;
        let mut found = SizeAtRest {
            size: 0,
            epoch: 0,
            end: 0,
        };
        self.pointers.clear();
        for (server, fenced) in told {
            let end = found.end.max(fenced.size.end).max(fenced.size.size);
            if server == self.state.owner.server {
                found = fenced.size;
                self.pointers = fenced.pointers;
            }
            found.end = end;
        }
        Ok(found)
    }

    /// Begins to move a file that is in one piece.
    pub(super) fn begin(
        &mut self,
        target: MoveTarget,
        mut record: MoveRecord,
        note: Option<(Identity, Vec<u8>)>,
        check: impl Fn(&mut Batch<'_>) -> Result<(), Refused> + Send + Sync + 'static,
    ) -> Result<(), Stop> {
        let asks = Says {
            asks_size: true,
            ..Says::default()
        };
        let options = &mut record.options;
        // Space is always given back as it goes; what lies between is lanes times window, and an extent each.
        let (lanes, window) = match options.in_place {
            true => (1, IN_PLACE_WINDOW),
            false => (LANES, 0),
        };
        if options.lanes == 0 {
            options.lanes = lanes;
        }
        if options.window_bytes == 0 {
            options.window_bytes = window;
        }
        let begun = self.fence_everything(asks).and_then(|at_rest| {
            let (file, step) = (self.file(), self.state.step);
            self.commit(move |b| {
                check(b)?;
                let (epoch, end) = (at_rest.epoch, at_rest.end);
                // What was stored counts, although the owner may not have asked for it yet.
                b.report_size(file, epoch, end, Time(0))?;
                let state = b
                    .begin_relayout(file, &target, end, record.clone(), now())?
                    .decode()?;
                if state.step != step + 1 {
                    let why = "the file was changed meanwhile";
                    return Err(Refused::new(Status::Busy, why));
                }
                if let Some((asked, bytes)) = &note {
                    b.note(*asked, bytes.clone());
                }
                Ok(state)
            })
        });
        match begun {
            Ok(state) => {
                crash_point("coordinator_after_start");
                let before = self.told;
                self.take(state)?;
                self.told = before;
                self.frees.clear();
                self.is_fenced = true;
                // What was counted has been there before.
                self.accesses = 0;
                Ok(())
            }
            Err(stop) => {
                self.unfence();
                Err(stop)
            }
        }
    }

    /// Lets the servers know a state with another set of servers.
    pub(super) fn settle(&mut self) -> Result<(), Stop> {
        self.connect()?;
        self.tell(&[], self.settles())?;
        self.is_settled = true;
        Ok(())
    }

    /// What is said besides until all have heard of both pieces.
    fn settles(&self) -> Says {
        Says {
            is_settling: !self.is_settled,
            owner_first: !self.is_settled,
            ..Says::default()
        }
    }

    /// Lets accesses in while nothing moves.
    fn rest(&mut self) {
        if self.is_settled || self.settle().is_err() {
            self.unfence();
        }
    }

    /// Runs until the move is over. Returns how it ended, or `None` if this process ends.
    pub(super) fn run(&mut self) -> Option<(MoveState, String)> {
        let mut without_room = 0;
        loop {
            if self.manager.is_ending() {
                return None;
            }
            let done = match self.mv.next(self.is_fenced) {
                Next::Unfence => self.connect().map(|()| self.rest()).map(|()| false),
                // A client that pauses a move at its very end has come too late.
                Next::Pause(_) if !self.is_moving() => Ok(true),
                Next::Pause(why) => {
                    self.rest();
                    self.show(MoveState::Paused, &why);
                    self.mv.wait(LOOK * 5);
                    self.look()
                }
                Next::Cancel if !moves::is_cancelled(&self.state) => self.cancel().map(|()| false),
                Next::Cancel | Next::Go => self.round(),
            };
            self.mv.end_round();
            let stop = match done {
                Ok(true) => {
                    let is_back = self.mv.is_back();
                    let state = match is_back {
                        true => MoveState::Cancelled,
                        false => MoveState::Done,
                    };
                    return Some((state, String::new()));
                }
                Ok(false) => {
                    without_room = 0;
                    continue;
                }
                Err(stop) => stop,
            };
            if !matches!(stop, Stop::Ending) {
                self.unfence();
            }
            match stop {
                Stop::Gone => {
                    return Some((MoveState::Failed, "the file was removed".into()));
                }
                Stop::Ending => return None,
                Stop::Lost(why) => return Some((MoveState::Failed, why)),
                Stop::Reload => {}
                Stop::Wait(why) => {
                    self.peers.clear();
                    self.is_settled = false;
                    self.show(MoveState::Waiting, &why);
                    self.mv.wait(LOOK);
                }
                Stop::Room(why) if without_room < ROOM_LOOKS => {
                    without_room += 1;
                    self.pace.had_no_room();
                    self.show(MoveState::Waiting, &why);
                    self.mv.wait(LOOK);
                }
                Stop::Room(why) | Stop::Pause(why) => {
                    without_room = 0;
                    let _ = self.manager.pause_move(&self.mv, &why);
                }
            }
            if let Err(Stop::Gone) = self.reload() {
                return Some((MoveState::Failed, "the file was removed".into()));
            }
        }
    }

    /// Looks whether the file is still there.
    fn look(&mut self) -> Result<bool, Stop> {
        load(&self.manager, self.file()).map(|_| false)
    }

    fn reload(&mut self) -> Result<(), Stop> {
        let state = load(&self.manager, self.file())?;
        if state.step != self.state.step {
            self.take(state)?;
        }
        Ok(())
    }

    /// One round; whether the move is over.
    fn round(&mut self) -> Result<bool, Stop> {
        if self.mv.has_been_cut() {
            self.reload()?;
        }
        self.connect()?;
        let [source, _] = &self.state.pieces[..] else {
            return Ok(true);
        };
        if source.ranges.is_empty() {
            return self.finish().map(|()| true);
        }
        let started = Instant::now();
        let lanes = source.ranges.len() as u64;
        let each = (self.pace.window(self.mv.limit()) / lanes).max(1);
        let window = |range: &Range<u64>| self.counting.window(range, each);
        let windows: Vec<Range<u64>> = source.ranges.iter().map(window).collect();
        let is_last = windows == source.ranges;
        self.tell(&windows, self.settles())?;
        self.is_settled = true;
        crash_point("coordinator_after_fence");
        let fetching = Instant::now();
        let bytes = self.pull(&windows)?;
        let fetched = fetching.elapsed();
        crash_point("coordinator_after_pull");
        if is_last && !self.changes_owner() {
            self.moved = windows.clone();
            self.frees = windows.clone();
            return self.end(windows, None).map(|()| true);
        }
        let (file, step, moved) = (self.file(), self.state.step, windows.clone());
        let state =
            self.commit(move |b| Ok(b.advance_relayout(file, step, &moved)?.decode()?))?;
        crash_point("coordinator_after_frontier");
        self.state = state;
        self.moved = windows.clone();
        self.frees = windows;
        if self.pace.is_first() {
            // Before it takes more at once it lets in the accesses that wait, and hears of them.
            self.tell(&[], Says::default())?;
            crash_point("coordinator_after_unfence");
        }
        let round = Round {
            bytes,
            took: started.elapsed(),
            fetched,
            accesses: std::mem::take(&mut self.accesses),
        };
        let rest = self.pace.after(round, self.mv.limit());
        self.show(MoveState::Moving, "");
        if !rest.is_zero() && self.is_fenced {
            self.tell(&[], Says::default())?;
            crash_point("coordinator_after_unfence");
        }
        if !rest.is_zero() {
            self.mv.end_round();
            self.mv.wait(rest);
        }
        Ok(false)
    }

    /// All servers of the second piece fetch their bytes at once.
    fn pull(&mut self, windows: &[Range<u64>]) -> Result<u64, Stop> {
        let request = PullWindows {
            file: self.file(),
            round: self.mv.round(),
            step: self.state.step,
            windows: wire_ranges(windows),
        };
        let target = &self.state.pieces[1];
        let mut servers: Vec<u64> = target
            .places
            .iter()
            .enumerate()
            .filter(|(i, _)| !moves::stays(&self.state.pieces[0], target, *i))
            .flat_map(|(_, places)| places.iter().map(|p| p.server))
            .collect();
        servers.sort_unstable();
        servers.dedup();
        let mut sum = 0;
        let mut failed = None;
        for (_, answer) in ask_all(&mut self.peers, &servers, &request, None) {
            match answer {
                Ok(bytes) => sum += bytes,
                Err(error) => {
                    failed.get_or_insert(Stop::from(error));
                }
            }
        }
        failed.map_or(Ok(sum), Err)
    }

    fn cancel(&mut self) -> Result<(), Stop> {
        let asks = Says {
            asks_size: true,
            ..Says::default()
        };
        let at_rest = self.fence_everything(asks)?;
        crash_point("coordinator_in_cancel");
        let (file, step, end) = (self.file(), self.state.step, at_rest.end);
        let state = self.commit(move |b| Ok(b.cancel_relayout(file, step, end)?.decode()?))?;
        let before = self.told;
        self.take(state)?;
        self.told = before;
        self.frees.clear();
        self.is_fenced = true;
        self.is_settled = false;
        self.settle()
    }

    /// Whether the owner has no part in what the file moves to.
    fn changes_owner(&self) -> bool {
        let owner = moves::owner_of(self.state.owner, &self.state.pieces[1]);
        owner.server != self.state.owner.server
    }

    /// Everything has moved.
    fn finish(&mut self) -> Result<(), Stop> {
        let mut at_rest = None;
        if self.changes_owner() {
            let owner = moves::owner_of(self.state.owner, &self.state.pieces[1]);
            at_rest = Some(self.hand_over(owner.server)?);
        }
        self.end(Vec::new(), at_rest)
    }

    /// One piece is made durable, with what has been fetched just now.
    fn end(&mut self, windows: Vec<Range<u64>>, at_rest: Option<SizeAtRest>) -> Result<(), Stop> {
        crash_point("coordinator_before_commit");
        let (file, step) = (self.file(), self.state.step);
        let is_back = moves::is_cancelled(&self.state);
        let hands_over = at_rest.is_some();
        let done = self.commit(move |b| {
            let mut step = step;
            if !windows.is_empty() {
                step = b.advance_relayout(file, step, &windows)?.decode()?.step;
            }
            if let Some(SizeAtRest { size, epoch, .. }) = at_rest {
                b.report_size(file, epoch, size, Time(0))?;
            }
            Ok(b.finish_relayout(file, step)?.decode()?)
        });
        let state = match done {
            Ok(state) => state,
            Err(stop) => {
                self.moved.clear();
                self.frees.clear();
                if hands_over {
                    self.keep_owner();
                }
                return Err(stop);
            }
        };
        crash_point("coordinator_after_frontier");
        crash_point("coordinator_after_commit");
        self.mv.ended(is_back);
        self.state = state;
        // A server that does not hear it now hears it from the clients that come with the new state.
        let settles = Says {
            is_settling: true,
            ..Says::default()
        };
        if self.connect().is_ok() && self.tell(&[], settles).is_err() {
            self.is_fenced = true;
            self.unfence();
        }
        Ok(())
    }

    /// The owner gives its duties up: first it takes no new ones and those that it has end, then everything rests
    /// and the next one gets what is not durable, before anybody can ask it.
    fn hand_over(&mut self, next: u64) -> Result<SizeAtRest, Stop> {
        let hands = Says {
            hands_over: true,
            ..Says::default()
        };
        let owner = self.state.owner.server;
        let mut looks = 0;
        while let Err(stop) = self.tell_some(&[owner], &[], hands) {
            looks += 1;
            match &stop {
                Stop::Wait(why) if looks < HAND_OVER_LOOKS && !self.manager.is_ending() => {
                    self.show(MoveState::Waiting, why);
                    self.mv.wait(HAND_OVER_PAUSE);
                }
                _ => {
                    self.keep_owner();
                    return Err(stop);
                }
            }
        }
        let at_rest = self.fence_everything(hands).and_then(|at_rest| {
            let request = TakePointers {
                file: self.file(),
                pointers: std::mem::take(&mut self.pointers),
            };
            let told = ask_all(&mut self.peers, &[next], &request, Some(FENCE_LIMIT));
            for (_, answer) in told {
                answer?;
            }
            Ok(at_rest)
        });
        if at_rest.is_err() {
            self.keep_owner();
        }
        at_rest
    }

    /// The owner goes on as it was.
    fn keep_owner(&mut self) {
        let settles = Says {
            is_settling: true,
            ..Says::default()
        };
        let owner = self.state.owner.server;
        let _ = self.tell_some(&[owner], &[], settles);
    }
}

fn load(manager: &Manager, file: FileId) -> Result<LayoutState, Stop> {
    let layout = manager.snapshot()?.layout(file).map_err(Refused::from)?;
    Ok(layout.decode().map_err(Refused::from)?)
}

/// Asks several servers at once and waits for all; those that fail are connected to again the next time.
fn ask_all<R: wire::message::Request>(
    peers: &mut BTreeMap<u64, Peer>,
    servers: &[u64],
    request: &R,
    limit: Option<Duration>,
) -> Vec<(u64, Result<R::Answer, ServerError>)> {
    let mut begun = Vec::with_capacity(servers.len());
    for &server in servers {
        let sent = match peers.get_mut(&server) {
            Some(peer) => peer.link.begin(request, limit),
            None => Err(ServerError::new(
                ServerId(server),
                Status::Unreachable,
                "it is away",
            )),
        };
        begun.push((server, sent));
    }
    let mut answers = Vec::with_capacity(servers.len());
    for (server, sent) in begun {
        let answer = sent.and_then(|()| match peers.get_mut(&server) {
            Some(peer) => peer.link.end::<R>(),
            None => Err(ServerError::new(
                ServerId(server),
                Status::Unreachable,
                "it is away",
            )),
        });
        if answer.as_ref().is_err_and(ServerError::is_broken) {
            peers.remove(&server);
        }
        answers.push((server, answer));
    }
    answers
}

impl Manager {
    /// A move cannot go on by itself.
    fn pause_move(&self, mv: &Move, why: &str) -> Result<(), Refused> {
        let (file, text) = (mv.file, why.to_owned());
        mv.pause(why);
        self.committer
            .run(move |b| {
                Ok(b.change_move(file, |record| {
                    record.is_paused = true;
                    record.why.clone_from(&text);
                })?)
            })
            .map(drop)
    }
}
