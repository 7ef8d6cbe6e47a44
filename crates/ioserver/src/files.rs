//! What this server knows about each file: the layout state, and who may run accesses right now.
//!
//! A [`FileEntry`] is the gate of one file. An access enters, which checks everything that can turn
//! it away, and leaves; in between it is counted. Whoever has to be sure that nothing older runs
//! (freeze, truncate, a new lease number) changes what is checked and then *drains*.
//!
//! Invariants
//! - Two counters, used in turn: a drain switches to the other one and waits for the first to reach
//!   zero, so accesses that come later never hold it up. One drain at a time.
//! - [`Known`] is never changed, only replaced; what is derived from it (shares, open subfiles) lives
//!   and dies with it.
//! - The truncate epoch that was applied here only grows.
//!
//! Cost on the hot path: one short mutex when an access enters, one when it leaves.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use falls::Periodic;
use layout::FileOffset;
use store::{Domain, Identity, Subfile, SubfileId};
use wire::message::cluster::FileStateIs;
use wire::message::file::SizeIs;
use wire::{FileId, LayoutState, Place, Reader, ServerId, StateVersion, Status};

use crate::directed::Watch;
use crate::refused::Refused;
use crate::stored::Stored;
use crate::views::Shares;

/// How long a request waits for a file that is frozen.
const FROZEN: Duration = Duration::from_secs(2);
/// How long a drain waits for slow peers before their connections are ended.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One subfile of a layout whose place is this server.
pub(crate) struct Own {
    /// Its index in the layout.
    pub(crate) index: u32,
    /// Its bytes in the file.
    pub(crate) bytes: Periodic,
    place: Place,
    open: OnceLock<Arc<dyn Subfile>>,
}

/// What the metadata manager said about a file, ready for use.
pub(crate) struct Known {
    file: FileId,
    told: FileStateIs,
    version: Vec<u8>,
    /// Of the first piece, ascending by index.
    pub(crate) own: Vec<Own>,
    pub(crate) shares: Mutex<HashMap<Arc<[u8]>, Arc<Shares>>>,
    /// Differs for any two of a process.
    pub(crate) serial: u64,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").field("told", &self.told).finish()
    }
}

impl Known {
    fn new(file: FileId, told: FileStateIs, server: ServerId) -> Known {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        let mut version = Vec::new();
        told.layout.version().put(&mut version);
        let own = own_of(&told.layout, 0, server);
        Known {
            file,
            told,
            version,
            own,
            shares: Mutex::default(),
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The same file with another layout, for whoever prepares it.
    pub(crate) fn with_layout(&self, layout: LayoutState, server: ServerId) -> Known {
        let told = FileStateIs {
            layout,
            ..self.told.clone()
        };
        Known::new(self.file, told, server)
    }

    /// Which file it is.
    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    /// Where the bytes are.
    pub(crate) fn layout(&self) -> &LayoutState {
        &self.told.layout
    }

    /// Visits the positions in `own` of all subfiles that may have a byte of a file range, ascending.
    pub(crate) fn visit_meeting(&self, file: &Range<u64>, mut visit: impl FnMut(usize)) {
        let Some(piece) = self.told.layout.pieces.first() else {
            return;
        };
        let range = FileOffset(file.start)..FileOffset(file.end);
        piece.partition.visit_meeting(range, |index| {
            let slot = self.own.binary_search_by_key(&index, |o| o.index as usize);
            if let Ok(slot) = slot {
                visit(slot);
            }
        });
    }

    /// The server that keeps size, locks and pointers.
    pub(crate) fn owner(&self) -> Place {
        self.told.layout.owner
    }

    /// Generation of the (first) layout.
    pub(crate) fn generation(&self) -> u64 {
        self.told.layout.pieces[0].generation
    }

    /// Who may share memory with its bytes.
    pub(crate) fn domain(&self) -> Domain {
        Domain {
            owner: self.told.owner,
            group: self.told.group,
            mode: self.told.mode,
            directory: self.told.directory.0,
        }
    }

    /// Name of a subfile in the store.
    pub(crate) fn id(&self, own: &Own) -> SubfileId {
        self.subfile_id(own.index)
    }

    /// The subfile if anything was ever written to it.
    pub(crate) fn find<'a>(
        &self,
        own: &'a Own,
        store: &Stored,
    ) -> Result<Option<&'a Arc<dyn Subfile>>, Refused> {
        if let Some(open) = own.open.get() {
            return Ok(Some(open));
        }
        match store.open(self.id(own)) {
            Ok(open) => Ok(Some(own.open.get_or_init(|| open))),
            Err(store::Error::NotFound(_)) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// The subfile if it was used before.
    pub(crate) fn opened(&self, own: &Own) -> Option<Arc<dyn Subfile>> {
        own.open.get().cloned()
    }

    /// The subfile, made if there is none.
    pub(crate) fn make<'a>(
        &self,
        own: &'a Own,
        store: &Stored,
        incarnation: u64,
    ) -> store::Result<&'a Arc<dyn Subfile>> {
        if let Some(open) = own.open.get() {
            return Ok(open);
        }
        let id = self.id(own);
        let made = match store.open(id) {
            Err(store::Error::NotFound(_)) => {
                let mut identity = Identity::new(id, self.domain(), incarnation);
                identity.note = self.told.note.0.clone();
                identity.note.truncate(store::NOTE_BYTES);
                match store.create(&identity) {
                    Err(store::Error::Exists(_)) => store.open(id)?,
                    other => other?,
                }
            }
            other => other?,
        };
        Ok(own.open.get_or_init(|| made))
    }

    /// The subfile of an index whose stored bytes carry a generation; it must be here.
    pub(crate) fn own_at(&self, generation: u64, index: u32) -> Result<&Own, Refused> {
        let slot = self.own.binary_search_by_key(&index, |own| own.index).ok();
        let slot = slot.filter(|_| generation == self.generation());
        slot.map(|slot| &self.own[slot]).ok_or_else(|| {
            Refused::new(
                Status::InvalidArgument,
                format!(
                    "subfile {index} of generation {generation} of {} is not at this server",
                    self.file
                ),
            )
        })
    }

    /// The step of the layout state. One as long as a file is frozen while it moves.
    pub(crate) fn step(&self) -> u64 {
        self.told.layout.step
    }

    /// Name of the subfile of an index.
    pub(crate) fn subfile_id(&self, index: u32) -> SubfileId {
        SubfileId {
            file: self.file.0,
            generation: self.generation(),
            index,
        }
    }

    /// Refuses a subfile whose bytes are not those of this start of the server.
    pub(crate) fn check_place(
        &self,
        own: &Own,
        kept_since: u64,
        incarnation: u64,
    ) -> Result<(), Refused> {
        let bound = own.place.incarnation;
        if (kept_since..=incarnation).contains(&bound) {
            return Ok(());
        }
        if bound < kept_since {
            return Err(Refused::new(
                Status::Lost,
                format!(
                    "subfile {} of {} was in the memory of an earlier start of this server and is lost",
                    own.index, self.file
                ),
            ));
        }
        Err(Refused::new(
            Status::WrongIncarnation,
            format!(
                "the layout names start {bound} of this server, which is start {incarnation}; ask again for the layout"
            ),
        ))
    }

    fn stale(&self) -> Refused {
        Refused::with_detail(
            Status::StaleLayout,
            format!("{} has another layout now; the answer has it", self.file),
            &self.told.layout,
        )
    }
}

/// The subfiles of one piece of a state whose place is `server`.
pub(crate) fn own_of(layout: &LayoutState, piece: usize, server: ServerId) -> Vec<Own> {
    let Some(piece) = layout.pieces.get(piece) else {
        return Vec::new();
    };
    let places = piece.places.iter().enumerate();
    places
        .filter_map(|(index, places)| {
            let place = places.iter().find(|p| p.server == server.0)?;
            Some(Own {
                index: u32::try_from(index).ok()?,
                bytes: piece.partition.subfile(index),
                place: *place,
                open: OnceLock::new(),
            })
        })
        .collect()
}

/// What accesses of a file are checked against.
#[derive(Default)]
struct Gate {
    known: Option<Arc<Known>>,
    /// The truncate epoch that was applied here.
    epoch: u64,
    /// Size that the last truncate set, told to those who are late.
    cut_to: u64,
    /// Lower lease numbers are refused.
    number: u64,
    is_frozen: bool,
    /// A truncate is being applied.
    is_cutting: bool,
    /// Which counter takes accesses that enter.
    phase: usize,
    running: [u64; 2],
}

/// The gate of one file.
pub(crate) struct FileEntry {
    file: FileId,
    gate: Mutex<Gate>,
    changed: Condvar,
    drain: Mutex<()>,
    fetch: Mutex<()>,
    /// Bytes that a pull has moved.
    pub(crate) pulled: AtomicU64,
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
#[derive(Clone, Copy)]
pub(crate) struct Planned<'a> {
    pub(crate) version: &'a [u8],
    pub(crate) epoch: u64,
    pub(crate) number: u64,
    /// Another server, which reads while a file is moved.
    pub(crate) is_server: bool,
}

/// What has to happen before an access can be let in.
pub(crate) enum Entering {
    /// It is in.
    In(Running, Arc<Known>),
    /// This server knows less than the client.
    Behind,
    /// Turned away.
    No(Refused),
}

/// An access that runs; leaves the gate when dropped.
pub(crate) struct Running {
    entry: Arc<FileEntry>,
    phase: usize,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut gate = lock(&self.entry.gate);
        gate.running[self.phase] -= 1;
        if gate.running[self.phase] == 0 && self.phase != gate.phase {
            drop(gate);
            self.entry.changed.notify_all();
        }
    }
}

impl FileEntry {
    fn new(file: FileId, epoch: u64) -> Self {
        FileEntry {
            file,
            gate: Mutex::new(Gate {
                epoch,
                ..Gate::default()
            }),
            changed: Condvar::new(),
            drain: Mutex::default(),
            fetch: Mutex::default(),
            pulled: AtomicU64::new(0),
            was_stored_directly: AtomicBool::new(false),
            watched: Mutex::default(),
            is_watched: AtomicBool::new(false),
        }
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
        lock(&self.gate).known.clone()
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
            && (known.told == told || told.layout.step < known.told.layout.step)
        {
            return Arc::clone(known);
        }
        let known = Arc::new(Known::new(self.file, told, server));
        gate.known = Some(Arc::clone(&known));
        known
    }

    /// Forgets the layout; the next access asks for it.
    pub(crate) fn forget(&self) {
        lock(&self.gate).known = None;
    }

    /// Lets an access in, or says what is in its way. Waits while the file is frozen.
    pub(crate) fn enter(self: &Arc<Self>, planned: &Planned<'_>) -> Entering {
        let mut gate = lock(&self.gate);
        let mut deadline = None;
        while (gate.is_frozen && !planned.is_server) || gate.is_cutting {
            let now = Instant::now();
            let until = *deadline.get_or_insert(now + FROZEN);
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
        let Some(known) = &gate.known else {
            return Entering::Behind;
        };
        if planned.is_server {
            let known = Arc::clone(known);
            return self.count(gate, known);
        }
        if known.version != planned.version {
            let theirs = StateVersion::read(&mut Reader::new(planned.version));
            return match theirs {
                Ok(theirs) if theirs > known.told.layout.version() => Entering::Behind,
                _ => Entering::No(known.stale()),
            };
        }
        if known.told.layout.pieces.len() > 1 {
            return Entering::No(Refused::new(
                Status::Busy,
                format!("{} is being given another layout; repeat later", self.file),
            ));
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
        self.count(gate, known)
    }

    fn count(self: &Arc<Self>, mut gate: MutexGuard<'_, Gate>, known: Arc<Known>) -> Entering {
        let phase = gate.phase;
        gate.running[phase] += 1;
        let running = Running {
            entry: Arc::clone(self),
            phase,
        };
        Entering::In(running, known)
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
                    return Err(Refused::new(
                        Status::TimedOut,
                        format!("accesses to {} do not end", self.file),
                    ));
                }
                hurry(self.file);
                gate = lock(&self.gate);
            }
        }
        Ok(())
    }

    /// Serves nobody until [`FileEntry::thaw`]; returns when nothing runs and `run` is done.
    pub(crate) fn freeze(
        &self,
        hurry: &dyn Fn(FileId),
        run: impl FnOnce() -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        lock(&self.gate).is_frozen = true;
        let drained = self.alone(hurry, run);
        if drained.is_err() {
            self.thaw();
        }
        drained
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
        let gate = lock(&self.gate);
        gate.is_frozen || gate.is_cutting
    }

    /// Whether nobody is served.
    pub(crate) fn is_frozen(&self) -> bool {
        lock(&self.gate).is_frozen
    }

    /// Serves again.
    pub(crate) fn thaw(&self) {
        lock(&self.gate).is_frozen = false;
        self.changed.notify_all();
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

/// All files that this server has to do with.
#[derive(Default)]
pub(crate) struct Files {
    entries: Mutex<HashMap<FileId, Arc<FileEntry>>>,
}

impl Files {
    /// The gate of a file, made if there is none; `epoch` is what was applied at earlier starts.
    pub(crate) fn entry(&self, file: FileId, epoch: impl FnOnce() -> u64) -> Arc<FileEntry> {
        let mut entries = lock(&self.entries);
        let entry = entries
            .entry(file)
            .or_insert_with(|| Arc::new(FileEntry::new(file, epoch())));
        Arc::clone(entry)
    }

    /// The gate of a file that was used before.
    pub(crate) fn get(&self, file: FileId) -> Option<Arc<FileEntry>> {
        lock(&self.entries).get(&file).cloned()
    }

    /// All gates.
    pub(crate) fn all(&self) -> Vec<Arc<FileEntry>> {
        lock(&self.entries).values().cloned().collect()
    }

    /// Forgets a file that nobody here uses any more.
    pub(crate) fn drop_unused(&self, file: FileId) {
        let mut entries = lock(&self.entries);
        if entries
            .get(&file)
            .is_some_and(|e| Arc::strong_count(e) == 1)
        {
            entries.remove(&file);
        }
    }
}
