//! The gate of one file: what is known about it, and who may run accesses right now.
//!
//! A [`FileEntry`] is the gate of one file. An access enters, which checks everything that can turn
//! it away, and leaves; in between it is counted. A request that has to be sure that nothing older runs
//! (truncate, a new lease number) changes what is checked and then *drains*.
//!
//! It is composed of what is known ([`Version`]), ranges that are kept for a move or a client ([`Fences`]) and accesses that run
//! ([`Drain`]); waiting is done here, on one condition.
//!
//! Invariant: the truncate epoch that was applied here only grows.
//!
//! Cost on the hot path: one short mutex when an access enters, one when it leaves.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use wire::message::cluster::FileStateIs;
use wire::message::file::SizeIs;
use wire::{ClientId, FileId, ServerId, Status};

use super::LocalState;
use super::drain::{Drain, Place};
use super::fences::{Fences, MOVE};
use super::version::{Age, Version};
use crate::directed::Watch;
use crate::refused::Refused;

/// How long a request waits for a gate that is closed.
const CLOSED: Duration = Duration::from_secs(2);
/// How long a drain waits for slow peers before their connections are ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the time of a drain is counted from.
#[derive(Clone, Copy)]
enum Patience {
    /// Its beginning.
    InAll,
    /// The last change at the gate.
    WithoutChange,
}

/// What accesses of a file are checked against.
#[derive(Default)]
struct Gate {
    version: Version,
    fences: Fences,
    drain: Drain,
    /// The truncate epoch that was applied here.
    epoch: u64,
    /// Size that the last truncate set, told to those who are late.
    cut_to: u64,
    /// Lower lease numbers are refused.
    number: u64,
    /// A truncate is being applied, or maps are taken back.
    is_cutting: bool,
}

impl Gate {
    fn keeps_out(&self, planned: &AccessTerms<'_>) -> bool {
        planned.file.as_ref().is_some_and(|file| {
            let (holder, works_for) = (planned.holder, planned.works_for);
            self.fences.keep_out(file, holder, works_for)
        })
    }
}

/// The gate of one file.
pub(crate) struct FileEntry {
    file: FileId,
    gate: Mutex<Gate>,
    changed: Condvar,
    drain: Mutex<()>,
    fetch: Mutex<()>,
    /// Held while windows are fenced or fetched for a move.
    pub(crate) moving: Mutex<crate::moving::MoveRecord>,
    /// The last round of a move that was begun here.
    pub(crate) round: AtomicU64,
    pub(crate) lending: Mutex<crate::moving::Loans>,
    /// Accesses that were let in.
    pub(crate) accesses: AtomicU64,
    /// Clients may have stored behind the ends of subfiles.
    was_stored_directly: AtomicBool,
    announcement: Mutex<Announcement>,
    /// Bytes were written behind the end by message, and counted without a report, since the owner asked last.
    grew: AtomicBool,
    /// Ranges that a prefetch has prepared something of, and whether there are any.
    watched: Mutex<Vec<Weak<Watch>>>,
    is_watched: AtomicBool,
}

/// What the owner of a file knows about growth at this server.
#[derive(Default)]
struct Announcement {
    /// The owner, as it was named when it was told that the file may grow here without a report.
    owner: Option<wire::Place>,
    /// How often an owner was told that it does not. One that was told so while it was told of growth takes the later of
    /// both, and this server cannot say which that was.
    forgotten: u64,
}

/// What an access was planned with.
#[derive(Clone, Default)]
pub(crate) struct AccessTerms<'a> {
    pub(crate) version: &'a [u8],
    /// File range of its bytes; `None` if it touches none.
    pub(crate) file: Option<Range<u64>>,
    /// Under which number it has fenced ranges; 0 if it has not.
    pub(crate) holder: u64,
    /// The client that another server forwards it for.
    pub(crate) works_for: Option<ClientId>,
    pub(crate) epoch: u64,
    pub(crate) number: u64,
    /// Another server, which reads while a file is moved.
    pub(crate) is_server: bool,
    /// It changes nothing.
    pub(crate) only_reads: bool,
}

/// What has to happen before an access can be let in, or a client can have a range for itself.
pub(crate) enum Entrance<T> {
    /// It is in, with what it gets.
    In(T),
    /// This server knows less than the client.
    Behind,
    /// The owner has to take this server among those of the file first.
    New,
    /// Turned away.
    No(Refused),
}

/// An access that was let in: what counts it, what it works with, and whether it was planned with an earlier state.
pub(crate) type Admission = (GatePass, Arc<LocalState>, bool);

/// An access that runs; leaves the gate when dropped.
pub(crate) struct GatePass {
    entry: Arc<FileEntry>,
    place: Place,
}

impl Drop for GatePass {
    fn drop(&mut self) {
        let mut gate = self.entry.gate.lock();
        let may_end_drain = gate.drain.leave(self.place);
        let is_waited_for = self.place.has_range() && !gate.fences.is_empty();
        drop(gate);
        if is_waited_for || may_end_drain {
            self.entry.changed.notify_all();
        }
    }
}

impl FileEntry {
    /// The gate of a file at a start of the server, with the truncate epoch that was applied at earlier ones.
    pub(crate) fn new(file: FileId, epoch: u64, start: u64) -> Self {
        FileEntry {
            file,
            gate: Mutex::new(Gate {
                version: Version::new(start),
                epoch,
                ..Gate::default()
            }),
            changed: Condvar::new(),
            drain: Mutex::default(),
            fetch: Mutex::default(),
            moving: Mutex::default(),
            round: AtomicU64::new(0),
            lending: Mutex::default(),
            accesses: AtomicU64::new(0),
            was_stored_directly: AtomicBool::new(false),
            announcement: Mutex::default(),
            grew: AtomicBool::new(false),
            watched: Mutex::default(),
            is_watched: AtomicBool::new(false),
        }
    }

    /// Whether a gate that is made anew with this epoch would let in and keep out the same.
    pub(super) fn is_like_new(&self, epoch: u64) -> bool {
        let gate = self.gate.lock();
        gate.epoch == epoch
            && gate.number == 0
            && gate.version.is_untaken()
            && gate.fences.is_unused()
            && gate.drain.is_idle()
            && !gate.is_cutting
            && self.round.load(Ordering::SeqCst) == 0
            && !self.was_stored_directly()
    }

    /// Tells of writes into a range from now on.
    pub(crate) fn watch(&self, watch: &Arc<Watch>) {
        let mut watched = self.watched.lock();
        watched.retain(|old| old.strong_count() > 0);
        watched.push(Arc::downgrade(watch));
        self.is_watched.store(true, Ordering::SeqCst);
    }

    /// Bytes of a file range were written, and the client has not been told yet.
    pub(crate) fn wrote(&self, range: &Range<u64>) {
        if !self.is_watched.load(Ordering::SeqCst) {
            return;
        }
        let mut watched = self.watched.lock();
        watched.retain(|watch| match watch.upgrade() {
            Some(watch) => {
                watch.wrote(range);
                true
            }
            None => false,
        });
        self.is_watched.store(!watched.is_empty(), Ordering::SeqCst);
    }

    /// A client may store into extents of the file by itself from now on.
    pub(crate) fn stored_directly(&self) {
        self.was_stored_directly.store(true, Ordering::SeqCst);
    }

    /// Whether one ever could: the ends of subfiles say nothing then.
    pub(crate) fn was_stored_directly(&self) -> bool {
        self.was_stored_directly.load(Ordering::SeqCst)
    }

    /// Whether an owner of the file knows that it may grow here without a report.
    pub(crate) fn is_announced(&self) -> bool {
        self.announcement.lock().owner.is_some()
    }

    /// Begins to announce to an owner that the file may grow here without a report; `None` if it knows.
    pub(super) fn begin_announcement(&self, owner: wire::Place) -> Option<u64> {
        let announcement = self.announcement.lock();
        (announcement.owner != Some(owner)).then_some(announcement.forgotten)
    }

    /// This owner knows, unless it was told the contrary since [`begin_announcement`](Self::begin_announcement). Whether
    /// it does.
    pub(super) fn end_announcement(&self, owner: wire::Place, begun: u64) -> bool {
        let mut announcement = self.announcement.lock();
        let is_known = announcement.forgotten == begun;
        if is_known {
            announcement.owner = Some(owner);
        }
        is_known
    }

    /// The owner is about to be told that the file does not grow here for now.
    pub(crate) fn forget_announcement(&self) {
        let mut announcement = self.announcement.lock();
        announcement.owner = None;
        announcement.forgotten += 1;
    }

    /// Bytes were written by message behind the end, and nobody reports them.
    pub(super) fn grew(&self) {
        self.grew.store(true, Ordering::SeqCst);
    }

    /// Whether that happened since this was asked last.
    pub(crate) fn take_grew(&self) -> bool {
        self.grew.swap(false, Ordering::SeqCst)
    }

    /// Which file it is.
    pub(crate) fn id(&self) -> FileId {
        self.file
    }

    /// What is known about the file, if anything was asked yet.
    pub(crate) fn known(&self) -> Option<Arc<LocalState>> {
        self.gate.lock().version.known().cloned()
    }

    /// What direct clients compare: twice the step, and one more while something is fenced, there may be a later
    /// step, or the owner does not know of this server.
    pub(crate) fn word(&self) -> u64 {
        let gate = self.gate.lock();
        let is_closed = !gate.fences.is_empty() || gate.version.is_closed();
        gate.version.step() << 1 | u64::from(is_closed)
    }

    /// The truncate epoch that was applied here.
    pub(crate) fn epoch(&self) -> u64 {
        self.gate.lock().epoch
    }

    /// The lease number that was told.
    pub(crate) fn number(&self) -> u64 {
        self.gate.lock().number
    }

    /// Held while the metadata manager is asked, so that many who wait ask once.
    pub(crate) fn fetching(&self) -> MutexGuard<'_, ()> {
        self.fetch.lock()
    }

    /// Takes what the metadata manager said, unless it is older than what is known.
    pub(crate) fn learn(&self, told: FileStateIs, server: ServerId) -> Arc<LocalState> {
        let mut gate = self.gate.lock();
        let is_new = gate.version.learn(self.file, told, server);
        let known = Arc::clone(gate.version.known().expect("just learnt"));
        if is_new {
            gate.fences.reach(known.step());
            self.changed.notify_all();
        }
        known
    }

    /// The owner knows of this server, in what is known now.
    pub(crate) fn taken(&self, known: &LocalState) {
        self.gate.lock().version.taken(known);
    }

    /// The owner has told this start everything that earlier ones knew, this lease number included.
    pub(crate) fn told(&self, number: u64) {
        let mut gate = self.gate.lock();
        // No atomic handle was let in before.
        gate.number = gate.number.max(number);
        gate.version.told();
    }

    /// The start of this server, if an earlier one had bytes of the file and was told things that are not known here.
    pub(crate) fn untold_start(&self, known: &LocalState) -> Option<u64> {
        self.gate.lock().version.untold_start(known)
    }

    /// Forgets the layout; the next access asks for it.
    pub(crate) fn forget(&self) {
        self.gate.lock().version.forget();
    }

    /// Keeps accesses out of ranges, in place of what `who` kept them out of before; empty lets all in. Accesses that
    /// run are not waited for.
    pub(crate) fn fence(&self, who: u64, ranges: &[Range<u64>]) {
        let mut gate = self.gate.lock();
        gate.fences.lift(who);
        gate.fences.put(who, None, ranges);
        if who == MOVE {
            let step = gate.version.step();
            gate.fences.moves_at(step);
        }
        drop(gate);
        self.changed.notify_all();
    }

    /// Keeps all but `who` out of a range, unless bytes of it are fenced, a move waits for them, or they have moved
    /// since it was planned.
    pub(crate) fn hold(
        &self,
        who: u64,
        client: ClientId,
        range: &Range<u64>,
        version: &[u8],
    ) -> Entrance<()> {
        let busy = || {
            let Range { start, end } = range;
            let text = format!("bytes {start}..{end} are held by another client or move; repeat");
            Entrance::No(Refused::new(Status::Busy, text))
        };
        let mut gate = self.gate.lock();
        if gate.is_cutting {
            return busy();
        }
        let Some(known) = gate.version.known() else {
            return Entrance::Behind;
        };
        if gate.version.is_new_here() {
            return Entrance::New;
        }
        match gate.version.age(version, Some(range)) {
            Age::Newer => return Entrance::Behind,
            Age::Changed => return Entrance::No(known.stale()),
            Age::Same | Age::Older => {}
        }
        if gate.fences.is_taken(range) {
            return busy();
        }
        let ranges = std::slice::from_ref(range);
        gate.fences.put(who, Some(client), ranges);
        Entrance::In(())
    }

    /// Keeps accesses out of ranges for a move, in place of those it kept them out of before. Clients that hold bytes
    /// of them are waited for, and no other gets to: what a holder has read stays where it is until it has
    /// written.
    pub(crate) fn fence_for_move(
        &self,
        ranges: &[Range<u64>],
        hold_wait: Duration,
    ) -> Result<(), Refused> {
        let mut gate = self.gate.lock();
        gate.fences.lift(MOVE);
        self.changed.notify_all();
        gate.fences.want(ranges);
        let is_held = |gate: &mut Gate| gate.fences.meet(ranges);
        let waited =
            serving::waiting(|| self.changed.wait_while_for(&mut gate, is_held, hold_wait));
        gate.fences.want(&[]);
        if waited.timed_out() {
            let text = format!("bytes of {} are held by a client", self.file);
            return Err(Refused::new(Status::Busy, text));
        }
        gate.fences.put(MOVE, None, ranges);
        let step = gate.version.step();
        gate.fences.moves_at(step);
        Ok(())
    }

    /// The client that has held bytes of ranges for too long, if one has.
    pub(crate) fn slow_holder(
        &self,
        ranges: &[Range<u64>],
        hold_wait: Duration,
    ) -> Option<ClientId> {
        self.gate.lock().fences.slow_holder(ranges, hold_wait)
    }

    /// Lets accesses in that a round of a move keeps out, unless another one has begun; whether it did. The round may
    /// have been made durable, so the first of them asks for the state.
    pub(crate) fn lift(&self, round: u64) -> bool {
        let mut gate = self.gate.lock();
        if self.round.load(Ordering::SeqCst) != round || !gate.fences.lift(MOVE) {
            return false;
        }
        gate.version.forget();
        drop(gate);
        self.changed.notify_all();
        true
    }

    /// Whether a move has fenced.
    pub(crate) fn is_fenced(&self) -> bool {
        self.gate.lock().fences.has_move()
    }

    /// Waits until every access has left that meets ranges which are fenced.
    pub(crate) fn drain_ranges(
        &self,
        ranges: &[Range<u64>],
        hurry: &dyn Fn(FileId),
    ) -> Result<(), Refused> {
        let runs = |gate: &Gate| gate.drain.runs_in(ranges);
        self.wait_patiently(self.gate.lock(), hurry, Patience::InAll, runs)
    }

    /// Waits while accesses run. `hurry` ends the connections of those that take too long.
    fn wait_patiently<'a>(
        &'a self,
        mut gate: MutexGuard<'a, Gate>,
        hurry: &dyn Fn(FileId),
        patience: Patience,
        runs: impl Fn(&Gate) -> bool,
    ) -> Result<(), Refused> {
        let mut since = Instant::now();
        let mut hurried = 0;
        while runs(&gate) {
            let timeout = serving::waiting(|| self.changed.wait_for(&mut gate, PATIENCE));
            let is_late = match patience {
                Patience::InAll => since.elapsed() >= PATIENCE,
                Patience::WithoutChange => timeout.timed_out(),
            };
            if is_late && runs(&gate) {
                drop(gate);
                hurried += 1;
                if hurried > 3 {
                    let text = format!("accesses to {} do not end", self.file);
                    return Err(Refused::new(Status::TimedOut, text));
                }
                hurry(self.file);
                since = Instant::now();
                gate = self.gate.lock();
            }
        }
        Ok(())
    }

    /// Lets an access in, or says what is in its way. Waits while the gate is closed.
    pub(crate) fn enter(self: &Arc<Self>, planned: &AccessTerms<'_>) -> Entrance<Admission> {
        if !planned.is_server {
            // An access that waits counts: a move has to know of it.
            self.accesses.fetch_add(1, Ordering::Relaxed);
        }
        let mut gate = self.gate.lock();
        let mut deadline = None;
        loop {
            let is_held = !planned.is_server && gate.keeps_out(planned);
            // A client that knows more than this server need not wait for what it is about to learn.
            let is_newer = gate.version.age(planned.version, None) == Age::Newer;
            if !gate.is_cutting && (!is_held || is_newer) {
                break;
            }
            let now = Instant::now();
            let until = *deadline.get_or_insert(now + CLOSED);
            if now >= until {
                return Entrance::No(Refused::new(
                    Status::Busy,
                    format!(
                        "{} is being given another layout or size; repeat later",
                        self.file
                    ),
                ));
            }
            serving::waiting(|| self.changed.wait_for(&mut gate, until - now));
        }
        let Some(known) = gate.version.known().cloned() else {
            return Entrance::Behind;
        };
        let age = gate.version.age(planned.version, planned.file.as_ref());
        if age == Age::Newer {
            return Entrance::Behind;
        }
        if planned.is_server {
            // A round is of one step: in another one the bytes may come in another order.
            return match age == Age::Same {
                true => self.count(gate, known, None, false),
                false => Entrance::No(known.stale()),
            };
        }
        // What only reads and is not atomic needs neither fences nor numbers, and may be here before the owner.
        let is_plain_read = planned.only_reads && planned.number == 0 && known.newcomer().is_none();
        if !is_plain_read && gate.version.is_new_here() {
            return Entrance::New;
        }
        if age == Age::Changed {
            return Entrance::No(known.stale());
        }
        if planned.epoch > gate.epoch {
            return Entrance::Behind;
        }
        if planned.epoch < gate.epoch {
            let now = SizeIs {
                size: gate.cut_to,
                epoch: gate.epoch,
            };
            return Entrance::No(Refused::with_detail(
                Status::StaleEpoch,
                format!(
                    "{} was truncated since; ask its owner for the size",
                    self.file
                ),
                &now,
            ));
        }
        if planned.number != 0 && planned.number < gate.number {
            return Entrance::No(Refused::new(
                Status::StaleLease,
                "the lease of this atomic handle is over; ask to be admitted again",
            ));
        }
        self.count(gate, known, planned.file.clone(), age == Age::Older)
    }

    fn count(
        self: &Arc<Self>,
        mut gate: MutexGuard<'_, Gate>,
        known: Arc<LocalState>,
        file: Option<Range<u64>>,
        is_older: bool,
    ) -> Entrance<Admission> {
        let running = GatePass {
            entry: Arc::clone(self),
            place: gate.drain.enter(file),
        };
        Entrance::In((running, known, is_older))
    }

    /// Waits until every access has left that entered before. `hurry` ends the connections of those
    /// that take too long.
    fn drain(&self, hurry: &dyn Fn(FileId)) -> Result<(), Refused> {
        let _one = self.drain.lock();
        let mut gate = self.gate.lock();
        let phase = gate.drain.begin();
        let runs = |gate: &Gate| !gate.drain.is_over(phase);
        self.wait_patiently(gate, hurry, Patience::WithoutChange, runs)
    }

    /// Runs something while no access runs. Accesses that come meanwhile wait.
    pub(crate) fn alone(
        &self,
        hurry: &dyn Fn(FileId),
        run: impl FnOnce() -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        self.close_gate(|_| true);
        let done = self.drain(hurry).and_then(|()| run());
        self.gate.lock().is_cutting = false;
        self.changed.notify_all();
        done
    }

    /// Runs something while no access runs, unless requests of these terms would be refused by now; whether it did.
    pub(crate) fn alone_with(
        &self,
        planned: &AccessTerms<'_>,
        hurry: &dyn Fn(FileId),
        run: impl FnOnce() -> Result<(), Refused>,
    ) -> Result<bool, Refused> {
        let is_good = |gate: &Gate| {
            planned.epoch == gate.epoch && (planned.number == 0 || planned.number >= gate.number)
        };
        if !self.close_gate(is_good) {
            return Ok(false);
        }
        let done = self.drain(hurry).and_then(|()| run());
        self.gate.lock().is_cutting = false;
        self.changed.notify_all();
        done.map(|()| true)
    }

    /// Closes the gate, after another thread has opened it again, if `is_wanted` still; whether it did.
    fn close_gate(&self, is_wanted: impl FnOnce(&Gate) -> bool) -> bool {
        let mut gate = self.gate.lock();
        while gate.is_cutting {
            serving::waiting(|| self.changed.wait(&mut gate));
        }
        gate.is_cutting = is_wanted(&gate);
        gate.is_cutting
    }

    /// Whether accesses have to wait.
    pub(crate) fn is_closed(&self) -> bool {
        self.gate.lock().is_cutting
    }

    /// Refuses lower lease numbers; returns when nothing older runs.
    pub(crate) fn tell(&self, number: u64, hurry: &dyn Fn(FileId)) -> Result<(), Refused> {
        {
            let mut gate = self.gate.lock();
            gate.number = gate.number.max(number);
        }
        self.drain(hurry)
    }

    /// Runs `cut` while no access runs, and counts it as the truncate of `epoch`. Does nothing if
    /// that was applied before.
    pub(crate) fn truncate(
        &self,
        epoch: u64,
        to: u64,
        hurry: &dyn Fn(FileId),
        cut: impl FnOnce() -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        if !self.close_gate(|gate| epoch > gate.epoch) {
            return Ok(());
        }
        let done = self.drain(hurry).and_then(|()| cut());
        let mut gate = self.gate.lock();
        gate.is_cutting = false;
        if done.is_ok() {
            gate.epoch = epoch;
            gate.cut_to = to;
        }
        drop(gate);
        self.changed.notify_all();
        done
    }

    /// Takes over an epoch that all servers have applied.
    pub(crate) fn raise_epoch(&self, epoch: u64, size: u64) {
        let mut gate = self.gate.lock();
        if epoch > gate.epoch {
            gate.epoch = epoch;
            gate.cut_to = size;
        }
    }
}
