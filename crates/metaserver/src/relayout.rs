//! Moving a file into another layout, while nobody uses it.
//!
//! ```text
//! freeze at its servers -> size durable, second generation durable -> freeze at the new servers
//!   -> new servers pull -> one generation durable -> thaw at all
//! ```
//!
//! Invariants
//! - Nothing is frozen for somebody who may not change the file.
//! - While a file is frozen its bytes do not change, so until the last step the old generation has
//!   everything: whatever fails before that step, the file stays in it.
//! - One move per file at a time.
//! - A server that was frozen is thawed, sooner or later, unless it is dead. After a restart of the
//!   metadata manager moves are given up before anybody connects, and servers are thawed when they
//!   are back.
//!
//! The move goes on in a thread of its own, whether or not whoever asked is still there. How moves
//! ended is remembered for the last [`REMEMBERED`] files.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use meta::catalogue::{Batch, Caller, Member, MemberState, MoveRecord, MoveTarget, Snapshot};
use meta::{FileId, MetaError};
use wire::link::Link;
use wire::message::catalogue::{MoveState, Progress, Relayout, RelayoutProgress};
use wire::message::cluster::{Freeze, Frozen, Pull, PullProgress, Thaw};
use wire::{LayoutState, Piece, Place, ServerId, Status, Time};

use crate::committer::Refused;
use crate::manager::{Manager, Session, now};
use crate::servers::{ServerError, for_all};

/// Files whose last move is remembered.
const REMEMBERED: usize = 1024;
/// How long servers may take to finish what runs.
const FREEZE_LIMIT: Duration = Duration::from_secs(30);
/// How long a server may take to serve a file again.
const THAW_LIMIT: Duration = Duration::from_secs(5);
/// How long one may take to say how far it is.
const PROGRESS_LIMIT: Duration = Duration::from_secs(2);
/// Between two attempts to thaw.
const RETRY: Duration = Duration::from_millis(500);

/// A move under way.
#[derive(Debug, Default)]
struct Move {
    generation: u64,
    total_bytes: u64,
    /// Servers that pull, with what each said last.
    pulling: Vec<(Member, u64)>,
    /// Connections on which servers pull, to be cut when one dies.
    links: Vec<(ServerId, Link)>,
}

#[derive(Debug, Default)]
struct Table {
    under_way: HashMap<FileId, Move>,
    over: HashMap<FileId, Progress>,
    /// Files of `over`, oldest first.
    order: VecDeque<FileId>,
    /// Files that servers may still have frozen since before the restart.
    frozen: HashMap<ServerId, BTreeSet<FileId>>,
}

/// All moves.
#[derive(Debug, Default)]
pub(crate) struct Moves(Mutex<Table>);

/// A move that has begun.
struct Begun {
    file: FileId,
    generation: u64,
    /// Bytes below this are moved: those of writes that have not told their end yet are among them.
    end: u64,
    state: LayoutState,
    /// Servers of the new generation.
    new: Vec<Member>,
    /// All servers that are frozen.
    frozen: Vec<Member>,
    /// The connections on which these are members. One that joins again serves its files again.
    tokens: Vec<(ServerId, u64)>,
}

impl Moves {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a file is being moved.
    pub(crate) fn is_moving(&self, file: FileId) -> bool {
        self.lock().under_way.contains_key(&file)
    }

    /// How many are under way.
    pub(crate) fn len(&self) -> usize {
        self.lock().under_way.len()
    }

    /// Nobody waits any longer for a server that is dead.
    pub(crate) fn server_died(&self, server: ServerId) {
        for (_, link) in self
            .lock()
            .under_way
            .values()
            .flat_map(|m| &m.links)
            .filter(|(s, _)| *s == server)
        {
            link.shutdown();
        }
    }

    /// Nobody waits any longer for anybody.
    pub(crate) fn cut(&self) {
        let table = self.lock();
        for (_, link) in table.under_way.values().flat_map(|m| &m.links) {
            link.shutdown();
        }
    }

    fn finish(&self, progress: Progress) {
        let file = progress.file;
        let mut table = self.lock();
        table.under_way.remove(&file);
        if table.over.insert(file, progress).is_none() {
            table.order.push_back(file);
        }
        if table.order.len() > REMEMBERED
            && let Some(oldest) = table.order.pop_front()
        {
            table.over.remove(&oldest);
        }
    }
}

fn target_of(r: &Relayout) -> MoveTarget {
    MoveTarget {
        layout: r.layout.clone(),
        servers: r.servers.clone(),
        subfiles: Vec::new(),
    }
}

/// Nothing was served from the new generation: the file stays in the old one.
fn give_up(b: &mut Batch<'_>, file: FileId, state: &LayoutState) -> Result<(), MetaError> {
    let back = b.cancel_relayout(file, state.step, 0)?.decode()?;
    b.finish_relayout(file, back.step).map(drop)
}

fn unreachable(e: &ServerError) -> Refused {
    Refused::new(e.status(), e.to_string())
}

fn servers_of(piece: &Piece) -> impl Iterator<Item = Place> + '_ {
    piece.places.iter().flatten().copied()
}

/// The members behind places, each once; all have to be there.
fn members_at(
    snapshot: &Snapshot,
    places: impl Iterator<Item = Place>,
) -> Result<Vec<Member>, Refused> {
    let members = snapshot.members()?;
    let mut found: Vec<Member> = Vec::new();
    for place in places {
        let server = ServerId(place.server);
        let member = members
            .iter()
            .find(|m| m.server == server)
            .ok_or(MetaError::NoSuchServer(server))?;
        if !member.keeps(place.incarnation) {
            let text = format!("bytes of the file are lost with {server}");
            return Err(Refused::new(Status::Lost, text));
        }
        if member.state != MemberState::Alive {
            return Err(MetaError::ServerNotAlive(server).into());
        }
        if !found.iter().any(|m| m.server == server) {
            found.push(member.clone());
        }
    }
    Ok(found)
}

impl Manager {
    /// Starts a move; it goes on when this has returned.
    pub(crate) fn relayout(&self, session: &mut Session, r: Relayout) -> Result<Progress, Refused> {
        let file =
            self.read(session)?
                .may_relayout(&session.credentials, &r.path, &target_of(&r))?;
        {
            let mut table = self.moves.lock();
            if table.under_way.contains_key(&file) {
                return Err(MetaError::Busy("a re-layout of the file is under way").into());
            }
            table.under_way.insert(file, Move::default());
        }
        let begun = match self.begin_move(session, file, r) {
            Ok(begun) => begun,
            Err(refused) => {
                self.moves.lock().under_way.remove(&file);
                return Err(refused);
            }
        };
        let progress = Progress {
            file,
            generation: begun.generation,
            moved_bytes: 0,
            total_bytes: begun.end,
            rate_bytes: 0,
            lanes: 0,
            limit_bytes: 0,
            state: MoveState::Moving,
            failure: String::new(),
        };
        let Some(this) = self.this().upgrade() else {
            return Ok(progress);
        };
        let moving = progress.clone();
        let begun = Arc::new(begun);
        let theirs = Arc::clone(&begun);
        let spawned = thread::Builder::new()
            .name(format!("relayout {}", file.0))
            .spawn(move || this.finish_move(&theirs, moving));
        if let Err(e) = spawned {
            let text = format!("no thread for the move: {e}");
            self.give_up(&begun, progress, &text);
            return Err(Refused::new(Status::NoMemory, text));
        }
        Ok(progress)
    }

    /// Freezes, and makes size and second generation durable. Thaws if that fails.
    fn begin_move(&self, session: &Session, file: FileId, r: Relayout) -> Result<Begun, Refused> {
        let snapshot = self.snapshot()?;
        let state = snapshot.layout(file)?.decode()?;
        let [old] = &state.pieces[..] else {
            return Err(MetaError::Busy("a re-layout of the file is under way").into());
        };
        let places = servers_of(old).chain([state.owner]);
        let mut frozen = members_at(&snapshot, places)?;
        drop(snapshot);
        let mut tokens = self.tokens_of(&frozen)?;
        let begun = self
            .freeze(file, &frozen, state.owner)
            .and_then(|size| self.record_move(session, file, r, old.generation, size));
        let (size, state) = match begun {
            Ok(begun) => begun,
            Err(refused) => {
                self.thaw(file, frozen);
                return Err(refused);
            }
        };
        let generation = state.pieces[1].generation;
        let mut begun = Begun {
            file,
            generation,
            end: size.end,
            state,
            new: Vec::new(),
            frozen: Vec::new(),
            tokens: Vec::new(),
        };
        let result = self
            .snapshot()
            .and_then(|s| members_at(&s, servers_of(&begun.state.pieces[1])))
            .and_then(|new| {
                let also: Vec<Member> = new
                    .iter()
                    .filter(|m| frozen.iter().all(|f| f.server != m.server))
                    .cloned()
                    .collect();
                begun.new = new;
                tokens.extend(self.tokens_of(&also)?);
                frozen.extend(also.iter().cloned());
                self.freeze(file, &also, begun.state.owner).map(drop)
            });
        begun.frozen = frozen;
        begun.tokens = tokens;
        let mut table = self.moves.lock();
        table.under_way.insert(
            file,
            Move {
                generation,
                total_bytes: begun.end,
                pulling: begun.new.iter().map(|m| (m.clone(), 0)).collect(),
                links: Vec::new(),
            },
        );
        drop(table);
        match result {
            Ok(()) => Ok(begun),
            Err(refused) => {
                self.abort_move(&begun);
                self.thaw(file, begun.frozen);
                Err(refused)
            }
        }
    }

    /// The connections of these members. After a restart of the metadata manager they come back one by
    /// one, and whoever comes back serves what it was told to freeze before: so all have to be here first.
    fn tokens_of(&self, members: &[Member]) -> Result<Vec<(ServerId, u64)>, Refused> {
        let token = |member: &Member| {
            let found = self.members.token(member.server, member.incarnation);
            found.map(|token| (member.server, token)).ok_or_else(|| {
                let text = format!(
                    "{} has not come back since the metadata manager was started; try again",
                    member.server
                );
                Refused::new(Status::Busy, text)
            })
        };
        members.iter().map(token).collect()
    }

    /// What the owner says, once nothing runs at any of these servers.
    fn freeze(&self, file: FileId, members: &[Member], owner: Place) -> Result<Frozen, Refused> {
        let answers = self.ask_all(members, &Freeze { file }, FREEZE_LIMIT);
        let mut found = Frozen {
            size: 0,
            epoch: 0,
            end: 0,
        };
        for (member, answer) in members.iter().zip(answers) {
            let answer = answer.map_err(|e| unreachable(&e))?;
            let end = found.end.max(answer.end).max(answer.size);
            if member.server.0 == owner.server {
                found = answer;
            }
            found.end = end;
        }
        Ok(found)
    }

    /// Size and second generation in one transaction.
    fn record_move(
        &self,
        session: &Session,
        file: FileId,
        r: Relayout,
        generation: u64,
        frozen: Frozen,
    ) -> Result<(Frozen, LayoutState), Refused> {
        let client = session.client()?;
        let credentials = Arc::clone(&session.credentials);
        let now = now();
        let size = frozen.size;
        let frozen_end = frozen.end;
        let epoch = frozen.epoch;
        let state = self.committer.run(move |b| {
            let caller = Caller {
                client,
                credentials: &credentials,
                now,
            };
            // Names and layouts may have changed since the file was frozen.
            let busy = || MetaError::Busy("the file was changed meanwhile; try again");
            if b.find(&caller, &r.path)? != file {
                return Err(busy().into());
            }
            b.report_size(file, epoch, size, Time(0))?;
            let record = MoveRecord {
                options: r.options.clone(),
                ..MoveRecord::default()
            };
            let state = b
                .begin_relayout(file, &target_of(&r), frozen_end, record, now)?
                .decode()?;
            if state.pieces[0].generation != generation {
                give_up(b, file, &state)?;
                return Err(busy().into());
            }
            Ok(state)
        })?;
        Ok((frozen, state))
    }

    /// The long part of a move.
    fn finish_move(&self, begun: &Begun, progress: Progress) {
        let file = begun.file;
        let moved = self.pull_all(begun).and_then(|()| self.commit_move(begun));
        // The next start of the metadata manager decides, and may have moved the file again by now.
        if self.is_ending() {
            return;
        }
        match moved {
            Ok(()) => {
                // Before the move counts as over: a thaw that came after the freeze of the next
                // move would let accesses into a file that is being copied.
                self.thaw(file, begun.frozen.clone());
                self.moves.finish(Progress {
                    moved_bytes: begun.end,
                    state: MoveState::Done,
                    ..progress
                });
            }
            Err(refused) => self.give_up(begun, progress, &refused.1.text),
        }
    }

    /// Lets the old generation go, if everybody who has the new one is still there, and nobody has served
    /// the file since it was frozen: who joins again does.
    fn commit_move(&self, begun: &Begun) -> Result<(), Refused> {
        let (file, state) = (begun.file, begun.state.clone());
        let new = begun.new.clone();
        let tokens = begun.tokens.clone();
        let this = self.this();
        self.committer.run(move |b| {
            let is_there = |m: &Member| {
                this.upgrade()
                    .is_some_and(|manager| manager.members.has(m.server, m.incarnation))
            };
            let has_served = |server: ServerId, token: u64| {
                this.upgrade()
                    .is_none_or(|manager| manager.members.has_joined_since(server, token))
            };
            if let Some((server, _)) = tokens.iter().find(|(s, t)| has_served(*s, *t)) {
                let text = format!("{server} has joined again meanwhile");
                return Err(Refused::new(Status::Busy, text));
            }
            match new.iter().find(|m| !is_there(m)) {
                Some(gone) => Err(MetaError::ServerNotAlive(gone.server).into()),
                None => {
                    let moved = state.pieces[0].ranges.clone();
                    let state = b.advance_relayout(file, state.step, &moved)?.decode()?;
                    Ok(b.finish_relayout(file, state.step).map(drop)?)
                }
            }
        })
    }

    fn give_up(&self, begun: &Begun, progress: Progress, why: &str) {
        self.abort_move(begun);
        self.thaw(begun.file, begun.frozen.clone());
        self.moves.finish(Progress {
            state: MoveState::Failed,
            failure: why.to_owned(),
            ..progress
        });
    }

    fn abort_move(&self, begun: &Begun) {
        let (file, state) = (begun.file, begun.state.clone());
        // A file that was removed meanwhile has no move left to give up.
        let _ = self.committer.run(move |b| Ok(give_up(b, file, &state)?));
    }

    /// All servers of the new generation pull at once. Waits for all, also when one has failed:
    /// bytes that arrive after their removal would stay.
    fn pull_all(&self, begun: &Begun) -> Result<(), Refused> {
        let pull = Pull {
            file: begun.file,
            state: begun.state.clone(),
            size: begun.end,
        };
        let pull_one = |member: &Member| -> Result<(), ServerError> {
            let mut link = self.connect(member)?;
            let mut table = self.moves.lock();
            if let (Some(found), Some(second)) =
                (table.under_way.get_mut(&begun.file), link.second())
            {
                found.links.push((member.server, second));
            }
            drop(table);
            // A death before the link was in the table did not cut it.
            if !self.members.has(member.server, member.incarnation) {
                let text = "it is not alive";
                return Err(ServerError::new(member.server, Status::Unreachable, text));
            }
            link.ask(&pull, None)
        };
        let results = for_all(&begun.new, pull_one);
        results
            .into_iter()
            .collect::<Result<(), ServerError>>()
            .map_err(|e| unreachable(&e))
    }

    /// Lets servers serve the file again. Those that cannot be told now are told later, as long as
    /// they live.
    pub(crate) fn thaw(&self, file: FileId, members: Vec<Member>) {
        let left = self.thaw_once(file, members);
        let Some(this) = self.this().upgrade().filter(|_| !left.is_empty()) else {
            return;
        };
        let mut left = left;
        // Without a thread they stay frozen until this process starts again.
        let _ = thread::Builder::new()
            .name(format!("thaw {}", file.0))
            .spawn(move || {
                while !left.is_empty() && this.timer.pause(RETRY) {
                    // The next move freezes and thaws them itself.
                    if this.moves.lock().under_way.contains_key(&file) {
                        return;
                    }
                    left.retain(|m| this.members.has(m.server, m.incarnation));
                    left = this.thaw_once(file, std::mem::take(&mut left));
                }
            });
    }

    /// Those that were not told.
    fn thaw_once(&self, file: FileId, members: Vec<Member>) -> Vec<Member> {
        if self.is_ending() {
            return Vec::new();
        }
        let answers = self.ask_all(&members, &Thaw { file }, THAW_LIMIT);
        let failed = members.into_iter().zip(answers).filter(|(_, a)| a.is_err());
        failed.map(|(member, _)| member).collect()
    }

    /// How far a move has come.
    pub(crate) fn relayout_progress(
        &self,
        session: &mut Session,
        r: RelayoutProgress,
    ) -> Result<Progress, Refused> {
        self.read(session)?;
        let file = r.file;
        let pulling: Vec<Member> = {
            let table = self.moves.lock();
            match table.under_way.get(&file) {
                Some(found) => found.pulling.iter().map(|(m, _)| m.clone()).collect(),
                None => return over(&table, file),
            }
        };
        let answers = self.ask_all(&pulling, &PullProgress { file }, PROGRESS_LIMIT);
        let mut table = self.moves.lock();
        let Some(found) = table.under_way.get_mut(&file) else {
            return over(&table, file);
        };
        for (member, answer) in pulling.iter().zip(answers) {
            let known = found.pulling.iter_mut().find(|(m, _)| m == member);
            if let (Some((_, bytes)), Ok(now)) = (known, answer) {
                *bytes = now.max(*bytes);
            }
        }
        let moved: u64 = found.pulling.iter().map(|(_, bytes)| bytes).sum();
        Ok(Progress {
            file,
            generation: found.generation,
            moved_bytes: moved.min(found.total_bytes),
            total_bytes: found.total_bytes,
            rate_bytes: 0,
            lanes: 0,
            limit_bytes: 0,
            state: MoveState::Moving,
            failure: String::new(),
        })
    }

    /// Gives up the moves that a start before this one began. Nobody is connected yet.
    pub(crate) fn give_up_old_moves(&self) -> Result<(), Refused> {
        let snapshot = self.snapshot()?;
        for file in snapshot.moving_files()? {
            let state = snapshot.layout(file)?.decode()?;
            let [old, new] = &state.pieces[..] else {
                continue;
            };
            let (generation, size) = (new.generation, 0);
            let known = state.clone();
            self.committer.run(move |b| Ok(give_up(b, file, &known)?))?;
            let places = servers_of(old).chain(servers_of(new)).chain([state.owner]);
            let mut table = self.moves.lock();
            for place in places {
                let files = table.frozen.entry(ServerId(place.server)).or_default();
                files.insert(file);
            }
            drop(table);
            self.moves.finish(Progress {
                file,
                generation,
                moved_bytes: 0,
                total_bytes: size,
                rate_bytes: 0,
                lanes: 0,
                limit_bytes: 0,
                state: MoveState::Failed,
                failure: "the metadata manager was started again during the move".into(),
            });
        }
        Ok(())
    }

    /// A server is back: what it froze before the restart is to be served.
    pub(crate) fn thaw_after_join(&self, server: ServerId) {
        let Some(files) = self.moves.lock().frozen.remove(&server) else {
            return;
        };
        let Some(this) = self.this().upgrade() else {
            return;
        };
        let _ = thread::Builder::new()
            .name(format!("thaw {}", server.0))
            .spawn(move || {
                let member = this
                    .snapshot()
                    .ok()
                    .and_then(|s| s.members().ok())
                    .and_then(|list| list.into_iter().find(|m| m.server == server));
                for (file, member) in files.into_iter().zip(std::iter::repeat(member)) {
                    this.thaw(file, member.into_iter().collect());
                }
            });
    }
}

fn over(table: &Table, file: FileId) -> Result<Progress, Refused> {
    table.over.get(&file).cloned().ok_or_else(|| {
        let text = format!("{file} has not been moved to another layout");
        Refused::new(Status::NotFound, text)
    })
}
