//! Moving files between layouts and servers, while they are used.
//!
//! | module | owns |
//! |---|---|
//! | `coordinate` | the rounds of one move: who is asked what, and what is made durable when |
//! | `pace` | how much moves at a time, how long a move rests |
//! | `drain` | taking everything away from a server, moving single subfiles |
//!
//! A move goes on in a thread of its own, whether or not the client that asked is still there, and after a restart of the
//! metadata manager by itself: where it is stands in the layout state of the file, how to go on in a row
//! beside it. How moves ended is remembered for the last [`REMEMBERED`] files.
//!
//! Invariants
//! - Nothing is fenced for a user who may not change the file.
//! - One move per file at a time.

mod coordinate;
mod drain;
mod pace;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use meta::catalogue::{Batch, Caller, Identity, Member, MoveRecord, MoveTarget};
use meta::{FileId, MetaError};
use parking_lot::{Condvar, Mutex, MutexGuard};
use wire::link::Link;
use wire::message::catalogue::{
    ControlRelayout, ListMoves, MoveControl, MoveIs, MoveOptions, MoveState, Progress, Relayout,
    RelayoutProgress,
};
use wire::message::cluster::TakeLayout;
use wire::message::{self, Field};
use wire::{ServerId, Status};

use crate::committer::Refused;
use crate::manager::{Manager, Session, now};
use coordinate::{Coordinator, Idle, Stop};
use drain::{Balancing, Drains};

/// Files whose last move is remembered.
const REMEMBERED: usize = 1024;
/// How long a server may take to serve a file again.
const TELL_LIMIT: Duration = Duration::from_secs(5);
/// Between two attempts to tell.
const RETRY: Duration = Duration::from_millis(500);
/// How often a move that meets something that ends soon tries to begin, and the pause between.
const ATTEMPTS: usize = 40;
const ATTEMPT_PAUSE: Duration = Duration::from_millis(50);

/// What is noted of a request that has begun a move.
fn noted_move(file: FileId) -> Vec<u8> {
    let mut note = Vec::new();
    file.put(&mut note);
    note
}

/// What a coordinator does next.
enum Next {
    /// Others wait for the file: let them in first.
    Unfence,
    Pause(String),
    Cancel,
    Go,
}

/// A move under way.
pub(crate) struct Move {
    file: FileId,
    now: Mutex<Now>,
    changed: Condvar,
    round: AtomicU64,
    was_back: AtomicBool,
}

struct Now {
    progress: Progress,
    /// A client wants it to rest; why.
    paused: Option<String>,
    wants_cancel: bool,
    is_in_round: bool,
    /// Truncates that wait or are made durable.
    cuts: usize,
    has_been_cut: bool,
    /// Connections of the coordinator, to be cut when a server dies.
    links: BTreeMap<ServerId, Link>,
    is_woken: bool,
}

impl Now {
    /// Shows what it does if nobody has to be waited for. One that is cancelled can rest on its way back, too.
    fn show_wanted(&mut self) {
        self.progress.failure = self.paused.clone().unwrap_or_default();
        self.progress.state = match (&self.paused, self.wants_cancel) {
            (Some(_), _) => MoveState::Paused,
            (None, true) => MoveState::Cancelling,
            (None, false) => MoveState::Moving,
        };
    }
}

impl Move {
    fn new(file: FileId, record: &MoveRecord) -> Move {
        Move {
            file,
            now: Mutex::new(Now {
                progress: Progress {
                    file,
                    generation: 0,
                    moved_bytes: 0,
                    total_bytes: record.total_bytes,
                    rate_bytes: 0,
                    lanes: 0,
                    limit_bytes: record.options.limit_bytes,
                    state: MoveState::Moving,
                    failure: String::new(),
                },
                paused: record.is_paused.then(|| record.why.clone()),
                wants_cancel: record.wants_cancel,
                is_in_round: false,
                cuts: 0,
                has_been_cut: false,
                links: BTreeMap::new(),
                is_woken: false,
            }),
            changed: Condvar::new(),
            round: AtomicU64::new(0),
            was_back: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock()
    }

    fn wake(&self) {
        self.lock().is_woken = true;
        self.changed.notify_all();
    }

    /// What to do next; a round has begun with `Go`. Waits while a truncate is made durable.
    fn next(&self, is_fenced: bool) -> Next {
        let mut now = self.lock();
        while now.cuts > 0 {
            if is_fenced {
                return Next::Unfence;
            }
            self.changed.wait(&mut now);
        }
        if let Some(why) = &now.paused {
            return Next::Pause(why.clone());
        }
        now.is_in_round = true;
        match now.wants_cancel {
            true => Next::Cancel,
            false => Next::Go,
        }
    }

    fn end_round(&self) {
        self.lock().is_in_round = false;
        self.changed.notify_all();
    }

    /// Waits for that long, or until a client wants something.
    fn wait(&self, time: Duration) {
        let mut now = self.lock();
        let is_quiet = |now: &mut Now| !now.is_woken && now.cuts == 0;
        self.changed.wait_while_for(&mut now, is_quiet, time);
        now.is_woken = false;
    }

    /// Shows how far it is. What is wanted may have changed since the coordinator has looked.
    fn show(&self, change: impl FnOnce(&mut Progress)) {
        let mut now = self.lock();
        change(&mut now.progress);
        if now.progress.state != MoveState::Waiting {
            now.show_wanted();
        }
    }

    fn progress(&self) -> Progress {
        self.lock().progress.clone()
    }

    fn limit(&self) -> u64 {
        self.lock().progress.limit_bytes
    }

    fn watch(&self, server: ServerId, link: Link) {
        self.lock().links.insert(server, link);
    }

    fn next_round(&self, manager: &Manager) {
        let round = manager.moves.rounds.fetch_add(1, Ordering::SeqCst) + 1;
        // Higher than those of every start before.
        let round = manager.starts << 40 | round;
        self.round.store(round, Ordering::SeqCst);
    }

    fn round(&self) -> u64 {
        self.round.load(Ordering::SeqCst)
    }

    fn has_been_cut(&self) -> bool {
        std::mem::take(&mut self.lock().has_been_cut)
    }

    fn pause(&self, why: &str) {
        self.lock().paused = Some(why.to_owned());
    }

    /// It is over, and where it came from if it was cancelled.
    fn ended(&self, is_back: bool) {
        self.was_back.store(is_back, Ordering::SeqCst);
    }

    fn is_back(&self) -> bool {
        self.was_back.load(Ordering::SeqCst)
    }
}

/// A truncate that is being made durable: no round runs meanwhile.
pub(crate) struct Cutting(Arc<Move>);

impl Drop for Cutting {
    fn drop(&mut self) {
        let mut now = self.0.lock();
        now.cuts -= 1;
        now.has_been_cut = true;
        drop(now);
        self.0.changed.notify_all();
    }
}

#[derive(Default)]
struct Table {
    under_way: HashMap<FileId, Arc<Move>>,
    over: HashMap<FileId, Progress>,
    /// Files of `over`, oldest first.
    order: VecDeque<FileId>,
}

/// All moves.
#[derive(Default)]
pub(crate) struct Moves {
    table: Mutex<Table>,
    rounds: AtomicU64,
    drains: Drains,
    balancing: Balancing,
    idle: Idle,
}

impl Moves {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    fn find(&self, file: FileId) -> Option<Arc<Move>> {
        self.lock().under_way.get(&file).cloned()
    }

    fn all(&self) -> Vec<Arc<Move>> {
        self.lock().under_way.values().cloned().collect()
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
        for mv in self.all() {
            if let Some(link) = mv.lock().links.remove(&server) {
                link.shutdown();
            }
            mv.wake();
        }
    }

    /// A server is there: moves that wait look again.
    pub(crate) fn server_joined(&self) {
        self.all().iter().for_each(|mv| mv.wake());
    }

    /// Nobody waits any longer for anybody.
    pub(crate) fn cut(&self) {
        for mv in self.all() {
            mv.lock().links.values().for_each(Link::shutdown);
            mv.wake();
        }
    }

    fn finish(&self, progress: Progress) {
        let (file, bytes, why) = (progress.file.0, progress.moved_bytes, &progress.failure);
        match progress.state {
            MoveState::Failed => tracing::warn!(file, bytes, why, "re-layout failed"),
            state => tracing::info!(file, bytes, ?state, "re-layout ended"),
        }
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

    /// Waits for the round of a file, and lets no other begin.
    pub(crate) fn cutting(&self, file: FileId) -> Option<Cutting> {
        let mv = self.find(file)?;
        let mut now = mv.lock();
        now.cuts += 1;
        mv.changed.notify_all();
        while now.is_in_round {
            mv.changed.wait(&mut now);
        }
        drop(now);
        Some(Cutting(mv))
    }
}

impl Manager {
    /// Starts a move; it goes on when this has returned.
    pub(crate) fn relayout(&self, session: &mut Session, r: Relayout) -> Result<Progress, Refused> {
        let asked = session.asked()?;
        if let Some(progress) = self.begun_before(asked)? {
            return Ok(progress);
        }
        let target = MoveTarget {
            layout: r.layout.clone(),
            servers: r.servers.clone(),
            subfiles: Vec::new(),
        };
        let file = self
            .read(session)?
            .may_relayout(&session.credentials, &r.path, &target)?;
        let client = session.client()?;
        let credentials = Arc::clone(&session.credentials);
        let path = r.path.clone();
        let check = move |b: &mut Batch<'_>| {
            let caller = Caller {
                client,
                credentials: &credentials,
                now: now(),
            };
            // Names may have changed since the file was found.
            match b.find(&caller, &path)? == file {
                true => Ok(()),
                false => Err(MetaError::Busy("the file was changed meanwhile; try again").into()),
            }
        };
        let note = (asked, noted_move(file));
        self.begin_move(file, &target, &r.options, Some(note), check)
    }

    /// The move that a request has begun when it came before.
    fn begun_before(&self, asked: Identity) -> Result<Option<Progress>, Refused> {
        let note = self.asked_before(asked)?;
        let file = note.and_then(|note| message::decode::<FileId>(&note).ok());
        Ok(file.map(|file| self.progress_since(file, MoveState::Done)))
    }

    /// How far the move of a file is that a request was about when it came before. How moves ended is not remembered over
    /// restarts; one that is not under way has come to this end.
    fn progress_since(&self, file: FileId, end: MoveState) -> Progress {
        if let Some(mv) = self.moves.find(file) {
            return mv.progress();
        }
        let over = self.moves.lock().over.get(&file).cloned();
        over.unwrap_or_else(|| Progress {
            state: end,
            ..Move::new(file, &MoveRecord::default()).progress()
        })
    }

    /// Begins a move, or says why not; the note of the request is made with it. What ends soon is waited for.
    fn begin_move(
        &self,
        file: FileId,
        target: &MoveTarget,
        options: &MoveOptions,
        note: Option<(Identity, Vec<u8>)>,
        check: impl Fn(&mut Batch<'_>) -> Result<(), Refused> + Clone + Send + Sync + 'static,
    ) -> Result<Progress, Refused> {
        let record = MoveRecord {
            options: options.clone(),
            ..MoveRecord::default()
        };
        let mv = Arc::new(Move::new(file, &record));
        {
            let mut table = self.moves.lock();
            if table.under_way.contains_key(&file) {
                return Err(MetaError::Busy("a re-layout of the file is under way").into());
            }
            table.under_way.insert(file, Arc::clone(&mv));
        }
        let mut attempts = 0;
        let this = self.this().upgrade();
        let begun = loop {
            let Some(this) = &this else {
                break Err(Stop::Ending);
            };
            attempts += 1;
            let made = Coordinator::new(Arc::clone(this), Arc::clone(&mv));
            let begun = made.and_then(|mut coordinator| {
                if coordinator.is_moving() {
                    // One that an earlier manager has begun is resumed by this one; the client is told to come again.
                    return Err(Stop::Reload);
                }
                coordinator.begin(target.clone(), record.clone(), note.clone(), check.clone())?;
                Ok(coordinator)
            });
            match begun {
                Err(Stop::Wait(_) | Stop::Reload) if attempts < ATTEMPTS => {
                    if !self.timer.pause(ATTEMPT_PAUSE) {
                        break Err(Stop::Ending);
                    }
                }
                begun => break begun,
            }
        };
        let coordinator = match begun {
            Ok(coordinator) => coordinator,
            Err(stop) => {
                self.moves.lock().under_way.remove(&file);
                return Err(stop.refused());
            }
        };
        let progress = mv.progress();
        tracing::info!(
            file = file.0,
            bytes = progress.total_bytes,
            "re-layout begun"
        );
        self.run_move(mv, Some(coordinator))?;
        Ok(progress)
    }

    /// Lets a move go on in a thread, with the coordinator that has begun it if there is one.
    fn run_move(&self, mv: Arc<Move>, begun: Option<Coordinator>) -> Result<(), Refused> {
        let Some(this) = self.this().upgrade() else {
            return Ok(());
        };
        let file = mv.file;
        let again = Arc::clone(&mv);
        let spawned = thread::Builder::new()
            .name(format!("relayout {}", file.0))
            .spawn(move || {
                let mut looks = 0;
                let mut begun = begun;
                let mut coordinator = loop {
                    if let Some(begun) = begun.take() {
                        break begun;
                    }
                    match Coordinator::new(Arc::clone(&this), Arc::clone(&mv)) {
                        Ok(coordinator) => break coordinator,
                        Err(Stop::Ending) => return,
                        Err(Stop::Wait(_)) if looks < 100 => {
                            looks += 1;
                            mv.wait(RETRY);
                        }
                        Err(stop) => {
                            let refused = stop.refused();
                            return this.moves.finish(Progress {
                                state: MoveState::Failed,
                                failure: refused.1.text,
                                ..mv.progress()
                            });
                        }
                    }
                };
                let Some((state, failure)) = coordinator.run() else {
                    return;
                };
                let progress = mv.progress();
                let moved_bytes = match state {
                    MoveState::Failed => progress.moved_bytes,
                    _ => progress.total_bytes,
                };
                this.moves.finish(Progress {
                    state,
                    failure,
                    moved_bytes,
                    lanes: 0,
                    ..progress
                });
            });
        match spawned {
            Ok(_) => Ok(()),
            Err(e) => {
                // The state is durable: the next start of the metadata manager, or the client that resumes it, goes on.
                if let Some(this) = self.this().upgrade()
                    && let Ok(mut coordinator) = Coordinator::new(this, again)
                {
                    let _ = coordinator.settle();
                }
                self.moves.lock().under_way.remove(&file);
                let text = format!("no thread for the move, which waits to be resumed: {e}");
                Err(Refused::new(Status::NoMemory, text))
            }
        }
    }

    /// Goes on with the moves of an earlier start.
    pub(crate) fn resume_moves(&self) -> Result<(), Refused> {
        let snapshot = self.snapshot()?;
        for file in snapshot.moving_files()? {
            tracing::info!(file = file.0, "re-layout of an earlier start goes on");
            self.resume_move(file)?;
        }
        self.resume_drains()
    }

    fn resume_move(&self, file: FileId) -> Result<Arc<Move>, Refused> {
        let record = self.snapshot()?.move_record(file)?.unwrap_or_default();
        let mv = Arc::new(Move::new(file, &record));
        {
            let mut table = self.moves.lock();
            if let Some(found) = table.under_way.get(&file) {
                return Ok(Arc::clone(found));
            }
            table.under_way.insert(file, Arc::clone(&mv));
        }
        self.run_move(Arc::clone(&mv), None)?;
        Ok(mv)
    }

    /// How far a move has come.
    pub(crate) fn relayout_progress(
        &self,
        session: &mut Session,
        r: RelayoutProgress,
    ) -> Result<Progress, Refused> {
        self.read(session)?;
        if let Some(mv) = self.moves.find(r.file) {
            return Ok(mv.progress());
        }
        let found = self.moves.lock().over.get(&r.file).cloned();
        found.ok_or_else(|| {
            let text = format!("{} has not been moved to another layout", r.file);
            Refused::new(Status::NotFound, text)
        })
    }

    /// Pauses, resumes, cancels or limits a move; durable when this returns. One that comes again is told how far the
    /// file is now.
    pub(crate) fn control_relayout(
        &self,
        session: &mut Session,
        r: ControlRelayout,
    ) -> Result<Progress, Refused> {
        let asked = session.asked()?;
        let end = match r.what {
            MoveControl::Cancel => MoveState::Cancelled,
            _ => MoveState::Done,
        };
        if self.asked_before(asked)?.is_some() {
            return Ok(self.progress_since(r.file, end));
        }
        let snapshot = self.read(session)?;
        let operator = self.demand_operator(session);
        if operator.is_err() {
            snapshot.may_write(&session.credentials, r.file)?;
        }
        let user = session.credentials.user;
        let why = format!("paused by user {user}");
        let text = why.clone();
        let (file, what, limit) = (r.file, r.what, r.limit_bytes);
        let change = move |record: &mut MoveRecord| match what {
            MoveControl::Pause => {
                record.is_paused = true;
                record.why.clone_from(&text);
            }
            MoveControl::Resume => {
                record.is_paused = false;
                record.why.clear();
            }
            MoveControl::Cancel => {
                record.wants_cancel = true;
                record.is_paused = false;
                record.why.clear();
            }
            MoveControl::Limit => record.options.limit_bytes = limit,
        };
        let is_new = self.committer.run(move |b| {
            let work = |b: &mut Batch<'_>| {
                b.change_move(file, &change)?;
                Ok((true, Vec::new()))
            };
            Ok(b.once(asked, work, |_, _| Ok(false))?)
        })?;
        if !is_new {
            return Ok(self.progress_since(file, end));
        }
        // It may have come to its end meanwhile: nothing is left to be paused.
        if self.moves.find(file).is_none()
            && self.snapshot()?.layout(file)?.decode()?.pieces.len() < 2
            && let Some(over) = self.moves.lock().over.get(&file)
        {
            return Ok(over.clone());
        }
        // One that had failed goes on, or fails again.
        let mv = self.resume_move(file)?;
        let mut now = mv.lock();
        match what {
            MoveControl::Pause => now.paused = Some(why),
            MoveControl::Resume => now.paused = None,
            MoveControl::Cancel => {
                now.paused = None;
                now.wants_cancel = true;
            }
            MoveControl::Limit => now.progress.limit_bytes = limit,
        }
        if what != MoveControl::Limit {
            now.show_wanted();
        }
        let progress = now.progress.clone();
        drop(now);
        mv.wake();
        Ok(progress)
    }

    /// The moves that are under way.
    pub(crate) fn list_moves(
        &self,
        session: &mut Session,
        _: ListMoves,
    ) -> Result<Vec<MoveIs>, Refused> {
        let snapshot = self.read(session)?;
        let mut list = Vec::new();
        for mv in self.moves.all() {
            let path = snapshot.path_of(mv.file).ok().flatten();
            list.push(MoveIs {
                path: path.unwrap_or_default(),
                progress: mv.progress(),
            });
        }
        list.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(list)
    }

    /// Lets servers look at a layout that was replaced while the file was empty. Those that cannot be told now are
    /// told later, as long as they live.
    pub(crate) fn send_layout(&self, file: FileId, members: Vec<Member>) {
        let left = self.send_layout_once(file, members);
        let Some(this) = self.this().upgrade().filter(|_| !left.is_empty()) else {
            return;
        };
        let mut left = left;
        // Without a thread the clients that come with the new layout tell them.
        let _ = thread::Builder::new()
            .name(format!("tell {}", file.0))
            .spawn(move || {
                while !left.is_empty() && this.timer.pause(RETRY) {
                    left.retain(|m| this.members.has(m.server, m.incarnation));
                    left = this.send_layout_once(file, std::mem::take(&mut left));
                }
            });
    }

    /// Those that were not told.
    fn send_layout_once(&self, file: FileId, members: Vec<Member>) -> Vec<Member> {
        if self.is_ending() {
            return Vec::new();
        }
        let answers = self.ask_all(&members, &TakeLayout { file }, TELL_LIMIT);
        let failed = members.into_iter().zip(answers).filter(|(_, a)| a.is_err());
        failed.map(|(member, _)| member).collect()
    }
}
