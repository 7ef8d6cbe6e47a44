//! The gate of one file: what is known about it, and who may run accesses right now.
//!
//! A [`FileEntry`] is the gate of one file. An access enters, which checks everything that can turn
//! it away, and leaves; in between it is counted. Whoever has to be sure that nothing older runs
//! (truncate, a new lease number) changes what is checked and then *drains*.
//!
//! Invariants
//! - Two counters, used in turn: a drain switches to the other one and waits for the first to reach
//!   zero, so accesses that come later never hold it up. One drain at a time.
//! - [`Known`] is never changed, only replaced; what is derived from it (shares, open subfiles) lives
//!   and dies with it.
//! - The truncate epoch that was applied here only grows.
//!
//! Cost on the hot path: one short mutex when an access enters, one when it leaves.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use control::moves::meets;
use plan::access::Pieces;
use wire::message::cluster::FileStateIs;
use wire::message::file::SizeIs;
use wire::{ClientId, FileId, Reader, ServerId, StateVersion, Status};

use crate::directed::Watch;
use crate::refused::Refused;

use super::{Known, lock};

/// How long a request waits for a gate that is closed.
const CLOSED: Duration = Duration::from_secs(2);
/// How long a drain waits for slow peers before their connections are ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// What accesses of a file are checked against.
#[derive(Default)]
struct Gate {
    known: Option<Arc<Known>>,
    /// What is known may be older than what happened.
    is_stale: bool,
    /// Ranges that nobody but their holders gets into.
    fences: Vec<Held>,
    /// The step of the state with which a move has fenced.
    fenced_at: u64,
    /// Ranges that a move is about to fence.
    wanted: Vec<Range<u64>>,
    /// The generation with which the owner has taken this server among those of the file.
    taken: u64,
    /// The start of this server.
    start: u64,
    /// The owner has told this start who is fenced and which lease numbers are refused.
    is_told: bool,
    /// Steps that were known here, oldest first.
    earlier: VecDeque<Earlier>,
    /// File ranges of accesses that run, where they are known; free ones are empty.
    inside: Vec<Range<u64>>,
    /// The truncate epoch that was applied here.
    epoch: u64,
    /// Size that the last truncate set, told to those who are late.
    cut_to: u64,
    /// Lower lease numbers are refused.
    number: u64,
    /// A truncate is being applied, or maps are taken back.
    is_cutting: bool,
    /// Which counter takes accesses that enter.
    phase: usize,
    running: [u64; 2],
}

/// Ranges that are fenced.
struct Held {
    who: u64,
    /// The client that holds them, if it is one: what other servers forward for it gets in too.
    client: Option<ClientId>,
    ranges: Vec<Range<u64>>,
    since: Instant,
}

/// What requests that were planned with an earlier step looked like.
struct Earlier {
    step: u64,
    pieces: Arc<Pieces>,
}

/// Steps that are remembered.
const REMEMBERED: usize = 256;
/// Who fences windows because they move.
pub(crate) const MOVE: u64 = 0;

impl Gate {
    fn is_fenced(&self, planned: &Planned<'_>) -> bool {
        let Some(file) = &planned.file else {
            return false;
        };
        let meets = |r: &Range<u64>| r.start < file.end && file.start < r.end;
        let mut fences = self.fences.iter();
        fences.any(|held| {
            let is_own = held.who != MOVE
                && (held.who == planned.holder
                    || (held.client.is_some() && held.client == planned.works_for));
            !is_own && held.ranges.iter().any(meets)
        })
    }

    /// Whether a request for a range that was planned with an earlier step has the same parts in the same order now.
    fn is_unchanged(&self, since: u64, file: Option<&Range<u64>>) -> bool {
        let Some(file) = file else {
            return true;
        };
        // A step that was passed over here is not known.
        let (Ok(at), Some(known)) = (
            self.earlier.binary_search_by_key(&since, |e| e.step),
            &self.known,
        ) else {
            return false;
        };
        let earlier = &self.earlier[at].pieces;
        earlier.is_same_within(known.pieces(), file.clone().into())
    }

    /// Takes another state.
    fn replace(&mut self, known: Arc<Known>) {
        if let Some(before) = &self.known
            && before.step() < known.step()
        {
            match known.has_places_of(before) {
                true => self.earlier.push_back(Earlier {
                    step: before.step(),
                    pieces: Arc::clone(before.pieces()),
                }),
                false => self.earlier.clear(),
            }
            if self.earlier.len() > REMEMBERED {
                self.earlier.pop_front();
            }
        }
        // Whoever fenced with an earlier step has made a later one durable since, or has given up.
        if known.step() > self.fenced_at {
            self.fences.retain(|held| held.who != MOVE);
        }
        self.known = Some(known);
        self.is_stale = false;
    }

    /// What direct clients compare: twice the step, and one more while something is fenced, there may be a later
    /// step, or the owner does not know of this server.
    fn word(&self) -> u64 {
        let step = self.known.as_ref().map_or(0, |known| known.step());
        let is_closed = !self.fences.is_empty() || self.is_stale || self.is_new_here();
        step << 1 | u64::from(is_closed)
    }

    /// Whether the owner has still to take this server among those of the file: until then a truncate or a lease
    /// number would not come here.
    fn is_new_here(&self) -> bool {
        let known = self.known.as_ref();
        known.is_some_and(|known| {
            known.newcomer().is_some_and(|g| g != self.taken) || self.is_untold(known)
        })
    }

    /// Whether an earlier start of this server was told fences and lease numbers, which this one does not know yet.
    fn is_untold(&self, known: &Known) -> bool {
        !self.is_told && known.earliest < self.start
    }
}

/// The gate of one file.
pub(crate) struct FileEntry {
    file: FileId,
    gate: Mutex<Gate>,
    changed: Condvar,
    drain: Mutex<()>,
    fetch: Mutex<()>,
    /// Held by whoever fences or fetches for a move.
    pub(crate) moving: Mutex<crate::moving::Moving>,
    /// The last round of a move that was begun here.
    pub(crate) round: AtomicU64,
    pub(crate) lending: Mutex<crate::moving::Lending>,
    /// Accesses that were let in.
    pub(crate) accesses: AtomicU64,
    /// Clients may have stored behind the ends of subfiles.
    was_stored_directly: AtomicBool,
    /// Ranges that somebody has prepared something of, and whether there are any.
    watched: Mutex<Vec<Weak<Watch>>>,
    is_watched: AtomicBool,
}

impl std::fmt::Debug for FileEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileEntry")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// What an access was planned with.
#[derive(Clone)]
pub(crate) struct Planned<'a> {
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

/// What has to happen before an access can be let in.
pub(crate) enum Entering {
    /// It is in; whether it was planned with an earlier state.
    In(Running, Arc<Known>, bool),
    /// This server knows less than the client.
    Behind,
    /// The owner has to take this server among those of the file first.
    New,
    /// Turned away.
    No(Refused),
}

/// Whether a client has got a range for itself.
pub(crate) enum Holding {
    Held,
    /// This server knows less than the client.
    Behind,
    /// The owner has to take this server among those of the file first.
    New,
    /// Turned away.
    No(Refused),
}

/// An access that runs; leaves the gate when dropped.
pub(crate) struct Running {
    entry: Arc<FileEntry>,
    phase: usize,
    inside: Option<usize>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut gate = lock(&self.entry.gate);
        gate.running[self.phase] -= 1;
        if let Some(slot) = self.inside {
            gate.inside[slot] = 0..0;
        }
        let is_waited_for = self.inside.is_some() && !gate.fences.is_empty();
        if is_waited_for || (gate.running[self.phase] == 0 && self.phase != gate.phase) {
            drop(gate);
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
                epoch,
                start,
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
            watched: Mutex::default(),
            is_watched: AtomicBool::new(false),
        }
    }

    /// Whether a gate that is made anew with this epoch would let in and keep out the same.
    pub(super) fn is_like_new(&self, epoch: u64) -> bool {
        let gate = lock(&self.gate);
        gate.epoch == epoch
            && gate.number == 0
            && gate.taken == 0
            && gate.fences.is_empty()
            && gate.wanted.is_empty()
            && gate.running == [0, 0]
            && !gate.is_cutting
            && self.round.load(Ordering::SeqCst) == 0
            && !self.was_stored_directly()
    }

    /// Tells of writes into a range from now on.
    pub(crate) fn watch(&self, watch: &Arc<Watch>) {
        let mut watched = lock(&self.watched);
        watched.retain(|old| old.strong_count() > 0);
        watched.push(Arc::downgrade(watch));
        self.is_watched.store(true, Ordering::SeqCst);
    }

    /// Bytes of a file range were written, and nobody has been told yet.
    pub(crate) fn wrote(&self, range: &Range<u64>) {
        if !self.is_watched.load(Ordering::SeqCst) {
            return;
        }
        let mut watched = lock(&self.watched);
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

    /// Which file it is.
    pub(crate) fn id(&self) -> FileId {
        self.file
    }

    /// What is known about the file, if anything was asked yet.
    pub(crate) fn known(&self) -> Option<Arc<Known>> {
        let gate = lock(&self.gate);
        gate.known.clone().filter(|_| !gate.is_stale)
    }

    /// What direct clients compare.
    pub(crate) fn word(&self) -> u64 {
        lock(&self.gate).word()
    }

    /// The truncate epoch that was applied here.
    pub(crate) fn epoch(&self) -> u64 {
        lock(&self.gate).epoch
    }

    /// The lease number that was told.
    pub(crate) fn number(&self) -> u64 {
        lock(&self.gate).number
    }

    /// Held while the metadata manager is asked, so that many who wait ask once.
    pub(crate) fn fetching(&self) -> MutexGuard<'_, ()> {
        lock(&self.fetch)
    }

    /// Takes what the metadata manager said, unless it is older than what is known.
    pub(crate) fn learn(&self, told: FileStateIs, server: ServerId) -> Arc<Known> {
        let mut gate = lock(&self.gate);
        if let Some(known) = &gate.known
            && (known.is(&told) || told.layout.step < known.step())
        {
            let known = Arc::clone(known);
            gate.is_stale = false;
            return known;
        }
        let known = Arc::new(Known::new(self.file, told, server, gate.known.as_deref()));
        gate.replace(Arc::clone(&known));
        drop(gate);
        self.changed.notify_all();
        known
    }

    /// The owner knows of this server, in what is known now.
    pub(crate) fn taken(&self, known: &Known) {
        if let Some(generation) = known.newcomer() {
            lock(&self.gate).taken = generation;
        }
    }

    /// The owner has told this start everything that earlier ones knew, this lease number included.
    pub(crate) fn told(&self, number: u64) {
        let mut gate = lock(&self.gate);
        // No atomic handle was let in before.
        gate.number = gate.number.max(number);
        gate.is_told = true;
    }

    /// The start of this server, if an earlier one had bytes of the file and was told things that are not known here.
    pub(crate) fn untold_start(&self, known: &Known) -> Option<u64> {
        let gate = lock(&self.gate);
        gate.is_untold(known).then_some(gate.start)
    }

    /// Forgets the layout; the next access asks for it.
    pub(crate) fn forget(&self) {
        lock(&self.gate).is_stale = true;
    }

    /// Keeps accesses out of ranges, in place of what `who` kept them out of before; empty lets all in. Nobody is
    /// waited for.
    pub(crate) fn fence(&self, who: u64, ranges: Vec<Range<u64>>) {
        let mut gate = lock(&self.gate);
        gate.fences.retain(|held| held.who != who);
        if !ranges.is_empty() {
            gate.fences.push(Held {
                who,
                client: None,
                ranges,
                since: Instant::now(),
            });
        }
        if who == MOVE {
            gate.fenced_at = gate.known.as_ref().map_or(0, |known| known.step());
        }
        drop(gate);
        self.changed.notify_all();
    }

    /// Keeps everybody but `who` out of a range, unless somebody has fenced or waits for bytes of it or they have
    /// moved since it was planned.
    pub(crate) fn hold(
        &self,
        who: u64,
        client: ClientId,
        range: &Range<u64>,
        version: &[u8],
    ) -> Holding {
        let busy = || {
            let Range { start, end } = range;
            let text = format!("bytes {start}..{end} are held by another client or move; repeat");
            Holding::No(Refused::new(Status::Busy, text))
        };
        let mut gate = lock(&self.gate);
        if gate.is_cutting {
            return busy();
        }
        let known = match &gate.known {
            Some(known) if !gate.is_stale => known,
            _ => return Holding::Behind,
        };
        if gate.is_new_here() {
            return Holding::New;
        }
        match step_of(version) {
            None => return Holding::No(known.stale()),
            Some(step) if step > known.step() => return Holding::Behind,
            Some(step) if step < known.step() && !gate.is_unchanged(step, Some(range)) => {
                return Holding::No(known.stale());
            }
            Some(_) => {}
        }
        let one = std::slice::from_ref(range);
        let is_taken = gate.fences.iter().any(|held| meets(&held.ranges, one));
        if is_taken || meets(&gate.wanted, one) {
            return busy();
        }
        gate.fences.push(Held {
            who,
            client: Some(client),
            ranges: one.to_vec(),
            since: Instant::now(),
        });
        Holding::Held
    }

    /// Keeps accesses out of ranges for a move, in place of those it kept them out of before. Clients that hold bytes
    /// of them are waited for, and no other gets to: what a holder has read stays where it is until it has
    /// written.
    pub(crate) fn fence_for_move(
        &self,
        ranges: &[Range<u64>],
        hold_wait: Duration,
    ) -> Result<(), Refused> {
        let mut gate = lock(&self.gate);
        gate.fences.retain(|held| held.who != MOVE);
        self.changed.notify_all();
        gate.wanted = ranges.to_vec();
        let is_held = |gate: &mut Gate| gate.fences.iter().any(|held| meets(&held.ranges, ranges));
        let (mut gate, _) = self
            .changed
            .wait_timeout_while(gate, hold_wait, is_held)
            .unwrap_or_else(PoisonError::into_inner);
        gate.wanted.clear();
        if gate.fences.iter().any(|held| meets(&held.ranges, ranges)) {
            let text = format!("bytes of {} are held by a client", self.file);
            return Err(Refused::new(Status::Busy, text));
        }
        if !ranges.is_empty() {
            gate.fences.push(Held {
                who: MOVE,
                client: None,
                ranges: ranges.to_vec(),
                since: Instant::now(),
            });
        }
        gate.fenced_at = gate.known.as_ref().map_or(0, |known| known.step());
        Ok(())
    }

    /// The client that has held bytes of ranges for too long, if one has.
    pub(crate) fn slow_holder(
        &self,
        ranges: &[Range<u64>],
        hold_wait: Duration,
    ) -> Option<ClientId> {
        let gate = lock(&self.gate);
        let mut fences = gate.fences.iter();
        let slow = fences.find(|held| {
            meets(&held.ranges, ranges) && held.since.elapsed() >= hold_wait && held.who != MOVE
        });
        slow.and_then(|held| held.client)
    }

    /// Lets accesses in that a round of a move keeps out, unless another one has begun; whether it did. The round may
    /// have been made durable, so the first of them asks for the state.
    pub(crate) fn lift(&self, round: u64) -> bool {
        let mut gate = lock(&self.gate);
        let is_held = gate.fences.iter().any(|held| held.who == MOVE);
        if !is_held || self.round.load(Ordering::SeqCst) != round {
            return false;
        }
        gate.fences.retain(|held| held.who != MOVE);
        gate.is_stale = true;
        drop(gate);
        self.changed.notify_all();
        true
    }

    /// Whether a move has fenced.
    pub(crate) fn is_fenced(&self) -> bool {
        lock(&self.gate).fences.iter().any(|held| held.who == MOVE)
    }

    /// Waits until every access has left that meets ranges which are fenced.
    pub(crate) fn drain_ranges(
        &self,
        ranges: &[Range<u64>],
        hurry: &dyn Fn(FileId),
    ) -> Result<(), Refused> {
        let mut gate = lock(&self.gate);
        let mut hurried = 0;
        let runs = |gate: &Gate| {
            let meets = |a: &Range<u64>, b: &Range<u64>| a.start < b.end && b.start < a.end;
            let mut inside = gate.inside.iter();
            inside.any(|a| ranges.iter().any(|b| meets(a, b)))
        };
        let mut since = Instant::now();
        while runs(&gate) {
            gate = self
                .changed
                .wait_timeout(gate, PATIENCE)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            if since.elapsed() >= PATIENCE && runs(&gate) {
                drop(gate);
                hurried += 1;
                if hurried > 3 {
                    return Err(slow(self.file));
                }
                hurry(self.file);
                since = Instant::now();
                gate = lock(&self.gate);
            }
        }
        Ok(())
    }

    /// Lets an access in, or says what is in its way. Waits while the gate is closed.
    pub(crate) fn enter(self: &Arc<Self>, planned: &Planned<'_>) -> Entering {
        if !planned.is_server {
            // Whoever waits counts: a move has to know of him.
            self.accesses.fetch_add(1, Ordering::Relaxed);
        }
        let mut gate = lock(&self.gate);
        let mut deadline = None;
        loop {
            let is_held = !planned.is_server && gate.is_fenced(planned);
            // Whoever knows more than this server need not wait for what it is about to learn.
            let is_newer = gate.known.as_ref().is_some_and(|known| {
                step_of(planned.version).is_some_and(|step| step > known.step())
            });
            if !gate.is_cutting && (!is_held || is_newer) {
                break;
            }
            let now = Instant::now();
            let until = *deadline.get_or_insert(now + CLOSED);
            if now >= until {
                return Entering::No(Refused::new(
                    Status::Busy,
                    format!(
                        "{} is being given another layout or size; repeat later",
                        self.file
                    ),
                ));
            }
            gate = self
                .changed
                .wait_timeout(gate, until - now)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        let known = match &gate.known {
            Some(known) if !gate.is_stale => known,
            _ => return Entering::Behind,
        };
        let Some(step) = step_of(planned.version) else {
            return Entering::No(known.stale());
        };
        if step > known.step() {
            return Entering::Behind;
        }
        if planned.is_server {
            // A round is of one step: in another one the bytes may come in another order.
            if step < known.step() {
                return Entering::No(known.stale());
            }
            let known = Arc::clone(known);
            return self.count(gate, known, None, false);
        }
        // What only reads and is not atomic needs neither fences nor numbers, and may be here before the owner.
        let is_plain_read = planned.only_reads && planned.number == 0 && known.newcomer().is_none();
        if !is_plain_read && gate.is_new_here() {
            return Entering::New;
        }
        let is_older = step < known.step();
        if is_older && !gate.is_unchanged(step, planned.file.as_ref()) {
            return Entering::No(known.stale());
        }
        if planned.epoch > gate.epoch {
            return Entering::Behind;
        }
        if planned.epoch < gate.epoch {
            let now = SizeIs {
                size: gate.cut_to,
                epoch: gate.epoch,
            };
            return Entering::No(Refused::with_detail(
                Status::StaleEpoch,
                format!(
                    "{} was truncated since; ask its owner for the size",
                    self.file
                ),
                &now,
            ));
        }
        if planned.number != 0 && planned.number < gate.number {
            return Entering::No(Refused::new(
                Status::StaleLease,
                "the lease of this atomic handle is over; ask to be admitted again",
            ));
        }
        let known = Arc::clone(known);
        self.count(gate, known, planned.file.clone(), is_older)
    }

    fn count(
        self: &Arc<Self>,
        mut gate: MutexGuard<'_, Gate>,
        known: Arc<Known>,
        file: Option<Range<u64>>,
        is_older: bool,
    ) -> Entering {
        let phase = gate.phase;
        gate.running[phase] += 1;
        let inside = file.map(|file| match gate.inside.iter().position(Range::is_empty) {
            Some(slot) => {
                gate.inside[slot] = file;
                slot
            }
            None => {
                gate.inside.push(file);
                gate.inside.len() - 1
            }
        });
        let running = Running {
            entry: Arc::clone(self),
            phase,
            inside,
        };
        Entering::In(running, known, is_older)
    }

    /// Waits until every access has left that entered before. `hurry` ends the connections of those
    /// that take too long.
    fn drain(&self, hurry: &dyn Fn(FileId)) -> Result<(), Refused> {
        let _one = lock(&self.drain);
        let mut gate = lock(&self.gate);
        let before = gate.phase;
        gate.phase = 1 - before;
        let mut hurried = 0;
        while gate.running[before] > 0 {
            let (next, timeout) = self
                .changed
                .wait_timeout(gate, PATIENCE)
                .unwrap_or_else(PoisonError::into_inner);
            gate = next;
            if timeout.timed_out() && gate.running[before] > 0 {
                drop(gate);
                hurried += 1;
                if hurried > 3 {
                    return Err(slow(self.file));
                }
                hurry(self.file);
                gate = lock(&self.gate);
            }
        }
        Ok(())
    }

    /// Runs something while no access runs. Accesses that come meanwhile wait.
    pub(crate) fn alone(
        &self,
        hurry: &dyn Fn(FileId),
        run: impl FnOnce() -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        self.close_gate(|_| true);
        let done = self.drain(hurry).and_then(|()| run());
        lock(&self.gate).is_cutting = false;
        self.changed.notify_all();
        done
    }

    /// Closes the gate, after whoever has closed it, if `is_wanted` still; whether it did.
    fn close_gate(&self, is_wanted: impl FnOnce(&Gate) -> bool) -> bool {
        let mut gate = lock(&self.gate);
        while gate.is_cutting {
            gate = self
                .changed
                .wait(gate)
                .unwrap_or_else(PoisonError::into_inner);
        }
        gate.is_cutting = is_wanted(&gate);
        gate.is_cutting
    }

    /// Whether accesses have to wait.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.gate).is_cutting
    }

    /// Refuses lower lease numbers; returns when nothing older runs.
    pub(crate) fn tell(&self, number: u64, hurry: &dyn Fn(FileId)) -> Result<(), Refused> {
        {
            let mut gate = lock(&self.gate);
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
        let mut gate = lock(&self.gate);
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
        let mut gate = lock(&self.gate);
        if epoch > gate.epoch {
            gate.epoch = epoch;
            gate.cut_to = size;
        }
    }
}

fn slow(file: FileId) -> Refused {
    Refused::new(Status::TimedOut, format!("accesses to {file} do not end"))
}

fn step_of(version: &[u8]) -> Option<u64> {
    let version = StateVersion::read(&mut Reader::new(version));
    version.ok().map(|version| version.step)
}
