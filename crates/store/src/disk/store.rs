//! All subfiles of a disk store: where they are, which are open, what stays in memory.
//!
//! Invariants
//! - Names of data files say which subfile they hold and records which ones there must be (`found`), so opening a
//!   store reads hardly any data file. What is, or may be, on a disk that is missing is refused, never zeros.
//! - A subfile is open at most once; all handles share its cache. One that is being opened, which may take long after a
//!   crash, keeps those waiting who want the same one, and nobody else.
//! - Memory is made free in the order of the cache's policy ([`crate::policy`]), clean extents first; dirty ones
//!   are written back by the thread that needs the room. If everything is in use, the caller is told.
//! - Dirty bytes are written back disk by disk, subfile by subfile, ascending, and the next round goes on where
//!   the last one stopped: what is written again and again keeps nobody else waiting.
//!
//! A subfile whose disk is full is moved to another one that has room, bytes and checksums compared
//! on the way; only then does a writer hear that there is no space.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::device::Disk;
use super::file::{DataFile, Recovery, is_data_file, name_of, read_header};
use super::found::{At, QuarantinedFile, Standing, find};
use super::held::{Backing, DiskSubfile, HeldSubfile, Target};
use super::legacy::Record;
use super::records::{self, Records};
use super::roster::{DiskId, assemble};
use super::set::{DiskSet, DiskSpec};
use crate::blocks::BLOCK;
use crate::cache::Cache;
use crate::error::{Error, Resource, Result};
use crate::identity::{Identity, SubfileId};
use crate::ledger::Ledger;
use crate::memory::check_note;
use crate::pool::{CHUNK, Pool};
use crate::store::{Capabilities, Store, Subfile, Usage};
use parking_lot::{Condvar, Mutex, MutexGuard};

/// Room on the disks that is not promised to anybody.
const SLACK_BYTES: u64 = 64 << 20;

/// How a disk store behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// Data files kept open; idle ones beyond are closed.
    pub open_files: usize,
}

impl Default for DiskOptions {
    fn default() -> Self {
        DiskOptions { open_files: 256 }
    }
}

/// Where a store comes from, beside its disks.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// How it behaves.
    pub options: DiskOptions,
    /// A directory that is no disk and has a copy of the list of disks.
    pub beside: Option<Arc<dyn Disk>>,
    /// Disks that are missing and declared lost.
    pub forget: Vec<DiskId>,
    /// The last start of the server that the store knows of: what is bound to a later one cannot be on a disk that is
    /// missing now.
    pub last_start: Option<u64>,
    /// Where blocks are put on record that only memory has. What an earlier process has put there is taken over; the pool was
    /// adopted with the same ledger then.
    pub ledger: Option<Ledger>,
}

/// A subfile as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSubfile {
    /// Which.
    pub id: SubfileId,
    /// What there is of it.
    pub standing: Standing,
    /// Its length; 0 if that cannot be read.
    pub len: u64,
    /// Disk space that it takes.
    pub allocated_bytes: u64,
}

/// One data file as a scan found it.
#[derive(Debug)]
pub struct ScannedFile {
    /// Index of the disk.
    pub disk: usize,
    /// Name of the data file there.
    pub name: String,
    /// Who it says it is and how long, or why it cannot be read.
    pub content: Result<(Identity, u64)>,
}

/// Keeps subfiles on disks.
#[derive(Debug)]
pub struct DiskStore {
    core: Arc<Core>,
}

/// What handles need of their store.
pub(crate) struct Core {
    pub(crate) pool: Pool,
    pub(super) set: DiskSet,
    options: DiskOptions,
    known: Mutex<Index>,
    /// A thread has opened a subfile, or could not.
    pub(super) opened: Condvar,
    pub(crate) records: Records,
    /// Subfiles bound to this start or an earlier one may be on disks that are not there; 0 if none.
    pub(super) doubt: u64,
    is_begun_now: bool,
    pub(crate) cache: Arc<Cache>,
    /// What survives the process although no disk has it.
    pub(super) record: Option<Record>,
    /// Where the last write-back stopped, so that the next goes on from there.
    swept: Mutex<Option<Place>>,
    pub(super) reclaim: OnceLock<Reclaim>,
    pub(super) writing: WriteBacks,
}

/// The write-backs of all subfiles that run now, for those who need the room that these are about to make.
#[derive(Debug, Default)]
pub(super) struct WriteBacks {
    now: Mutex<WritingNow>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WritingNow {
    running: u64,
    /// Those that wrote something.
    ended: u64,
}

impl WriteBacks {
    pub(super) fn lock(&self) -> MutexGuard<'_, WritingNow> {
        self.now.lock()
    }

    /// Waits until one has ended since `before`; `false` if none runs that could. Nobody who writes back waits for
    /// room, so this ends.
    pub(super) fn wait(&self, before: WritingNow) -> bool {
        let mut now = self.lock();
        let runs = |now: &mut WritingNow| now.ended == before.ended && now.running > 0;
        self.changed.wait_while(&mut now, runs);
        now.ended != before.ended
    }
}

/// A write-back that runs.
pub(crate) struct WritingBack {
    core: Option<Arc<Core>>,
    /// Whether it has written anything.
    pub(crate) has_written: bool,
}

impl WritingBack {
    pub(crate) fn new(core: Option<Arc<Core>>) -> WritingBack {
        if let Some(core) = &core {
            core.writing.lock().running += 1;
        }
        WritingBack {
            core,
            has_written: false,
        }
    }
}

impl Drop for WritingBack {
    fn drop(&mut self) {
        if let Some(core) = &self.core {
            let mut now = core.writing.lock();
            now.running -= 1;
            now.ended += u64::from(self.has_written);
            drop(now);
            core.writing.changed.notify_all();
        }
    }
}

/// Where a subfile stands in the order of a write-back: its disk first.
type Place = (usize, SubfileId);

/// Makes those who have mapped extents give some up; whether any did.
pub(super) type Reclaim = Box<dyn Fn() -> bool + Send + Sync>;

/// All subfiles, and how many are on each disk.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) map: BTreeMap<SubfileId, IndexEntry>,
    pub(super) counts: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct IndexEntry {
    pub(super) at: At,
    copy: u64,
    pub(super) open: Option<Arc<HeldSubfile>>,
    /// A thread opens it just now.
    pub(super) is_opening: bool,
    /// Why it is not opened again in this life of the store: a barrier of its recovery failed.
    pub(super) failed: Option<String>,
    /// Its record is durable.
    pub(super) is_recorded: Arc<AtomicBool>,
}

impl DiskStore {
    /// Takes the disks and finds what is on them.
    pub fn new(pool: Pool, disks: Vec<DiskSpec>, options: DiskOptions) -> Result<Self> {
        let origin = Origin {
            options,
            ..Origin::default()
        };
        DiskStore::start(pool, disks, origin)
    }

    /// Opens a store with what the server knows. Disks that are absent or empty although they belong to the store are missing
    /// from then on; disks of another store are an error.
    pub fn start(pool: Pool, disks: Vec<DiskSpec>, origin: Origin) -> Result<Self> {
        if disks.is_empty() {
            return Err(Error::argument("disks", "none given; name at least one"));
        }
        let beside = origin.beside.as_ref();
        let mut assembled = assemble(disks, beside, &origin.forget)?;
        let is_begun_now = assembled.is_begun();
        assembled.make()?;
        let (missing, lost) = (assembled.missing.clone(), assembled.lost.clone());
        let set = DiskSet::take(&assembled.present, missing, lost)?;
        let store = assembled.roster.store;
        let disks = assembled.present.iter();
        let disks: Vec<_> = disks.map(|(s, id)| (Arc::clone(&s.disk), *id)).collect();
        let plain: Vec<Arc<dyn Disk>> = disks.iter().map(|(disk, _)| Arc::clone(disk)).collect();
        let mut read = records::read(&plain, store)?;
        // With one disk gone the others have its records; with two, or with a log that is gone too, they may not.
        let gone = assembled.missing.len() + origin.forget.len();
        let is_sound = |k: usize| read.is_sound(k) || assembled.is_new(disks[k].1);
        let is_doubtful = gone > 1 || gone == 1 && !(0..disks.len()).all(is_sound);
        let now = match is_doubtful {
            true => origin.last_start.unwrap_or(u64::MAX),
            false => 0,
        };
        if !origin.forget.is_empty() {
            assembled.roster.doubt = assembled.roster.doubt.max(now);
        }
        let doubt = assembled.roster.doubt.max(now);
        assembled.write(beside)?;
        let found = find(&set, &mut read);
        let records = Records::begin(disks, store, &read)?;
        let mut index = Index {
            map: BTreeMap::new(),
            counts: vec![0; set.len()],
        };
        for (id, subfile) in found {
            if let At::Disk(disk) = subfile.at {
                index.counts[disk] += 1;
            }
            let known = IndexEntry {
                at: subfile.at,
                copy: subfile.copy,
                open: None,
                is_opening: false,
                failed: None,
                is_recorded: Arc::new(AtomicBool::new(subfile.is_recorded)),
            };
            index.map.insert(id, known);
        }
        let record = match origin.ledger {
            Some(ledger) => Some(Record::new(ledger, &pool)?),
            None => None,
        };
        let core = Core {
            record,
            cache: Arc::new(Cache::new(pool.usage().limit_bytes)),
            swept: Mutex::default(),
            pool,
            set,
            options: origin.options,
            known: Mutex::new(index),
            opened: Condvar::new(),
            records,
            doubt,
            is_begun_now,
            reclaim: OnceLock::new(),
            writing: WriteBacks::default(),
        };
        let core = Arc::new(core);
        core.adopt_all()?;
        Ok(DiskStore { core })
    }

    /// It is known how far clients of an earlier process had stored ([`Subfile::stored_to`]): what they stored is dirty, and what lies behind
    /// the lengths is zero. For who has taken over a ledger, before anybody reads.
    pub fn clear_ahead(&self) {
        for held in self.core.open_subfiles() {
            held.end_adoption();
        }
    }

    /// Whether there was no store on its disks before: they are new, or have lost what they had.
    pub fn is_begun_now(&self) -> bool {
        self.core.is_begun_now
    }

    /// An existing subfile that the file's layout has bound to a start of the server: one that is bound to a later
    /// start than the last before disks went missing is not on them.
    pub fn open_bound(&self, id: SubfileId, bound: u64) -> Result<Arc<dyn Subfile>> {
        let held = self.core.held(id, Some(bound))?;
        Ok(Arc::new(DiskSubfile { held }))
    }

    /// Subfiles behind one, at most so many, ascending, whatever became of them. Nothing is opened or recovered.
    pub fn look(&self, after: Option<SubfileId>, most: usize) -> Vec<ListedSubfile> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        let list: Vec<(SubfileId, At, Option<Arc<HeldSubfile>>)> = {
            let known = self.core.lock();
            let range = known.map.range((from, Unbounded)).take(most);
            range
                .map(|(id, k)| (*id, k.at.clone(), k.open.clone()))
                .collect()
        };
        let look = |(id, at, open): (SubfileId, At, Option<Arc<HeldSubfile>>)| {
            let (len, allocated_bytes) = match (&at, open) {
                (_, Some(held)) => {
                    let len = held.lock().len;
                    (len, held.backing().file.allocated().unwrap_or(0))
                }
                (At::Disk(disk), None) => self.core.measure(*disk, id),
                _ => (0, 0),
            };
            ListedSubfile {
                id,
                standing: match at {
                    At::Disk(_) => Standing::Here,
                    At::Missing(_) => Standing::Missing,
                    At::Lost(_) => Standing::Lost,
                    At::Conflict(_) => Standing::Conflict,
                },
                len,
                allocated_bytes,
            }
        };
        list.into_iter().map(look).collect()
    }

    /// Numbers of subfiles of a generation of a file, whatever became of them.
    pub fn of_generation(&self, file: u64, generation: u64) -> Vec<SubfileId> {
        let of = |index| SubfileId {
            file,
            generation,
            index,
        };
        let known = self.core.lock();
        let range = known.map.range(of(0)..=of(u32::MAX));
        range.map(|(id, _)| *id).collect()
    }

    /// How many subfiles there are, whatever became of them.
    pub fn count(&self) -> usize {
        self.core.lock().map.len()
    }

    /// Subfiles on each disk.
    pub fn counts(&self) -> Vec<u64> {
        self.core.lock().counts.clone()
    }

    /// Data files that were put aside, on all disks.
    pub fn quarantined(&self) -> Vec<QuarantinedFile> {
        let disks = (0..self.core.set.len()).map(|k| self.core.set.disk(k));
        let paths = disks.flat_map(|disk| disk.quarantined().unwrap_or_default());
        paths.map(|path| QuarantinedFile { path }).collect()
    }

    /// Takes a subfile away and puts its data file aside, with all that was written; where it is then.
    pub fn put_aside(&self, id: SubfileId) -> Result<String> {
        self.open(id)?.sync()?;
        let mut place = String::new();
        self.core.discard(id, |disk, name| {
            let aside = disk.quarantine(name);
            place = aside.map_err(|e| Error::io("putting a data file aside", e, 0))?;
            Ok(())
        })?;
        Ok(place)
    }

    /// Subfiles with several data files that contradict each other, and where these are.
    pub fn conflicts(&self) -> Vec<Error> {
        let known = self.core.lock();
        let conflicts = known.map.iter().filter_map(|(id, k)| match &k.at {
            At::Conflict(disks) => Some(self.core.conflict(*id, disks)),
            _ => None,
        });
        conflicts.collect()
    }

    /// The disks, to declare, fail and restore them.
    pub fn disks(&self) -> &DiskSet {
        &self.core.set
    }

    /// Whom to ask for mapped extents ([`Subfile::unmap`]) when there is nothing else to evict. It is
    /// called in the middle of an access, and answers soon.
    pub fn reclaim_with(&self, reclaim: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.core.reclaim.set(Box::new(reclaim));
    }

    /// Which disk a subfile is on.
    pub fn disk_of(&self, id: SubfileId) -> Result<usize> {
        let known = self.core.lock();
        match known.map.get(&id).map(|k| &k.at) {
            Some(At::Disk(disk)) => Ok(*disk),
            Some(at) => Err(self.core.refuse(id, at)),
            None => Err(Error::NotFound(id)),
        }
    }

    /// Every data file on every disk with what its header says: enough to rebuild a directory.
    pub fn scan(&self) -> Vec<ScannedFile> {
        let mut found = Vec::new();
        for disk in 0..self.core.set.len() {
            let names = self.core.set.disk(disk).names().unwrap_or_default();
            for name in names.into_iter().filter(|n| is_data_file(n)) {
                let content = self.core.read_identity(disk, &name);
                found.push(ScannedFile {
                    disk,
                    name,
                    content,
                });
            }
        }
        found
    }

    /// What recovery decided when a subfile was opened.
    pub fn recovery(&self, id: SubfileId) -> Result<Recovery> {
        let held = self.core.held(id, None)?;
        let recovery = held.backing().file.recovery();
        Ok(recovery)
    }

    /// Drops cached extents that need no writing back; the next access reads from disk.
    pub fn evict(&self) -> u64 {
        let order = self.core.cache.order();
        self.core.evict(&order, u64::MAX, HeldSubfile::evict)
    }

    /// Committed bytes that are in memory only; costs nothing to ask.
    pub fn dirty_bytes(&self) -> u64 {
        self.core.cache.dirty_bytes()
    }

    /// Bytes that are in memory only, or that clients may store into without asking; costs nothing to ask.
    pub fn exposed_bytes(&self) -> u64 {
        self.core.cache.exposed_bytes()
    }

    /// Whether the disks may not have room for `bytes` more, beside all that is in memory only or may become so.
    pub fn is_short_of(&self, bytes: u64) -> bool {
        let disks = self.core.set.characteristics();
        let good = disks.iter().filter(|d| !d.has_failed);
        let (free, total) = good.fold((0u64, 0u64), |(free, total), d| {
            (free + d.space.free_bytes, total + d.space.total_bytes)
        });
        // Tables, and what others put on the same disks meanwhile.
        let slack = SLACK_BYTES.min(total / 16);
        free < self.exposed_bytes() + bytes + slack
    }

    /// Most memory that extents may take; costs nothing to ask.
    pub fn memory_limit_bytes(&self) -> u64 {
        self.core.pool.options().limit_bytes
    }

    /// What was read ahead and waits to be asked for.
    pub fn waiting_bytes(&self) -> u64 {
        self.core.cache.waiting_bytes()
    }

    /// Stops waiting for those who were to ask for the oldest of what was read ahead, about so many bytes of
    /// it. It stays in memory until that is needed for something else.
    pub fn give_up_ahead(&self, bytes: u64) -> u64 {
        let passing = self.core.cache.passing();
        self.core.evict(&passing, bytes, HeldSubfile::give_up_ahead)
    }

    /// Syncs and closes every data file, so that the next start has nothing to recover. Dropping
    /// a store does not: it is as if the process had died.
    pub fn close(&self) -> Result<()> {
        let mut result = Ok(());
        for held in self.core.open_subfiles() {
            let closed = self.core.guarded(&held, |held, backing| {
                held.write_back(backing, u64::MAX, Target::Disk)?;
                backing.file.close()?;
                self.core.note_kept(held, backing);
                Ok(())
            });
            result = result.and(closed);
        }
        result.and(self.core.records.settle())
    }
}

impl Store for DiskStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            in_place: true,
            mappable: true,
            durable: true,
            smallest_extent_bytes: BLOCK,
        }
    }

    fn create(&self, identity: &Identity) -> Result<Arc<dyn Subfile>> {
        check_note(&identity.note)?;
        let core = &self.core;
        let mut known = core.lock();
        match known.map.get(&identity.id).map(|k| &k.at) {
            None => {}
            Some(At::Disk(_)) => return Err(Error::Exists(identity.id)),
            Some(at) => return Err(core.refuse(identity.id, at)),
        }
        // A header, a table and some blocks: less is not worth beginning with.
        let wanted_bytes = 64 << 10;
        let mut last = match core.set.characteristics().iter().all(|d| d.has_failed) {
            true => Error::DiskFailed {
                disk: core.set.disk(0).label(),
                why: "no disk of this server can be used".into(),
            },
            false => Error::NoSpace {
                resource: Resource::Disk,
                wanted_bytes,
            },
        };
        for disk in core.set.order_new(wanted_bytes, &known.counts) {
            match DataFile::create(core.set.disk(disk), identity, random_number(), 0) {
                Ok(file) => {
                    let is_recorded = Arc::new(AtomicBool::new(false));
                    let held =
                        Arc::new(HeldSubfile::new(core, file, disk, Arc::clone(&is_recorded)));
                    let entry = IndexEntry {
                        at: At::Disk(disk),
                        copy: 0,
                        open: Some(Arc::clone(&held)),
                        is_opening: false,
                        failed: None,
                        is_recorded,
                    };
                    known.map.insert(identity.id, entry);
                    known.counts[disk] += 1;
                    core.records.begun(identity.id, disk);
                    core.close_idle(&mut known);
                    return Ok(Arc::new(DiskSubfile { held }));
                }
                Err(e) => {
                    if e.is_of_the_disk() {
                        core.set.fail(disk);
                    }
                    last = e;
                }
            }
        }
        Err(last)
    }

    fn open(&self, id: SubfileId) -> Result<Arc<dyn Subfile>> {
        let held = self.core.held(id, None)?;
        Ok(Arc::new(DiskSubfile { held }))
    }

    fn remove(&self, id: SubfileId) -> Result<()> {
        self.core.discard(id, |disk, name| {
            let removed = disk.remove(name);
            removed.map_err(|e| Error::io("removing a data file", e, 0))
        })
    }

    fn list(&self) -> Result<Vec<Identity>> {
        let known: Vec<(SubfileId, usize, Option<Arc<HeldSubfile>>)> = {
            let known = self.core.lock();
            let entry = |(id, k): (&SubfileId, &IndexEntry)| match k.at {
                At::Disk(disk) => Some((*id, disk, k.open.clone())),
                _ => None,
            };
            known.map.iter().filter_map(entry).collect()
        };
        let identity = |(id, disk, open): (SubfileId, usize, Option<Arc<HeldSubfile>>)| match open {
            Some(held) => Ok(held.lock().identity.clone()),
            None => Ok(self.core.read_identity(disk, &name_of(id))?.0),
        };
        known.into_iter().map(identity).collect()
    }

    fn settle(&self) -> Result<()> {
        self.core.records.settle()
    }

    fn write_back(&self, budget_bytes: u64) -> Result<u64> {
        let core = &self.core;
        let mut written = 0;
        let mut result = Ok(());
        for (place, held) in core.sweep() {
            if written >= budget_bytes {
                break;
            }
            *core.swept() = Some(place);
            if !held.lock().table.is_dirty() {
                continue;
            }
            let left = budget_bytes - written;
            let done = core.guarded(&held, |held, backing| {
                held.write_back(backing, left, Target::Disk)
            });
            match done {
                Ok(bytes) => written += bytes,
                Err(e) => result = result.and(Err(e)),
            }
        }
        result.map(|()| written)
    }

    fn usage(&self) -> Usage {
        let pool = self.core.pool.usage();
        let disks = self.core.set.characteristics();
        let cache = self.core.cache.usage();
        Usage {
            memory_bytes: pool.used_bytes,
            memory_limit_bytes: pool.limit_bytes,
            dirty_bytes: cache.dirty_bytes,
            disk_free_bytes: disks
                .iter()
                .filter(|d| !d.has_failed)
                .map(|d| d.space.free_bytes)
                .sum(),
            cache,
        }
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Core {
    /// Takes a subfile out of the index, and does with its data file what is to be done with it.
    fn discard(
        &self,
        id: SubfileId,
        away: impl FnOnce(&dyn Disk, &str) -> Result<()>,
    ) -> Result<()> {
        let mut known = self.wait_until_open(id);
        let entry = known.map.get(&id).ok_or(Error::NotFound(id))?;
        let home = match &entry.at {
            At::Disk(disk) => {
                self.records
                    .removed(id, Some(self.set.id(*disk)), entry.copy);
                away(&**self.set.disk(*disk), &name_of(id))?;
                Some(*disk)
            }
            // It is removed when its disk is back.
            at @ At::Missing(_) => return Err(self.refuse(id, at)),
            At::Lost(_) => {
                self.records.removed(id, None, entry.copy);
                None
            }
            At::Conflict(disks) => {
                for disk in disks {
                    let aside = self.set.disk(*disk).quarantine(&name_of(id));
                    aside.map_err(|e| Error::io("putting a data file aside", e, 0))?;
                }
                self.records.removed(id, None, entry.copy);
                None
            }
        };
        let entry = known.map.remove(&id).expect("found above");
        if let Some(disk) = home {
            known.counts[disk] -= 1;
        }
        drop(known);
        if let Some(held) = entry.open {
            held.forget();
        }
        Ok(())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Index> {
        self.known.lock()
    }

    pub(super) fn open_subfiles(&self) -> Vec<Arc<HeldSubfile>> {
        let known = self.lock();
        known.map.values().filter_map(|k| k.open.clone()).collect()
    }

    fn swept(&self) -> MutexGuard<'_, Option<Place>> {
        self.swept.lock()
    }

    /// All open subfiles in the order of the disks, from the one behind the last that was written back on
    /// round to that one.
    fn sweep(&self) -> Vec<(Place, Arc<HeldSubfile>)> {
        let place = |(id, known): (&SubfileId, &IndexEntry)| match known.at {
            At::Disk(disk) => Some(((disk, *id), known.open.clone()?)),
            _ => None,
        };
        let mut all: Vec<(Place, Arc<HeldSubfile>)> =
            self.lock().map.iter().filter_map(place).collect();
        all.sort_unstable_by_key(|(place, _)| *place);
        let last = *self.swept();
        let first = last.map_or(0, |last| all.partition_point(|(place, _)| *place <= last));
        all.rotate_left(first);
        all
    }

    /// A subfile is durable: it is put on record with the next [`Records::settle`], unless it is already.
    pub(crate) fn note_kept(&self, held: &HeldSubfile, backing: &Backing) {
        if !held.is_recorded.load(Ordering::Acquire) {
            let copy = backing.file.copy();
            self.records
                .add(held.id(), backing.disk, copy, &held.is_recorded);
        }
    }

    /// Length and space of a data file that is not open.
    fn measure(&self, disk: usize, id: SubfileId) -> (u64, u64) {
        let name = name_of(id);
        let Ok(file) = self.set.disk(disk).open(&name) else {
            return (0, 0);
        };
        let len = read_header(&name, &*file).map_or(0, |(header, _)| header.len);
        (len, file.allocated().unwrap_or(0))
    }

    /// Closes data files that nobody uses and that have nothing to lose.
    pub(super) fn close_idle(&self, known: &mut Index) {
        let open = known.map.values().filter(|k| k.open.is_some()).count();
        let mut excess = open.saturating_sub(self.options.open_files);
        for entry in known.map.values_mut() {
            if excess == 0 {
                return;
            }
            let Some(held) = &entry.open else { continue };
            let is_used = |held: &HeldSubfile| {
                let state = held.lock();
                state.table.is_dirty() || state.table.is_mapped() || state.table.is_on_record()
            };
            if Arc::strong_count(held) > 1 || is_used(held) {
                continue;
            }
            let closed = held.try_backing().is_some_and(|mut backing| {
                let (len, identity) = held.attributes();
                let noted = backing.file.set_attributes(len, &identity);
                let closed =
                    noted.is_ok() && backing.file.is_synced() && backing.file.close().is_ok();
                if closed {
                    held.lock().forget_record(len, &identity);
                }
                closed
            });
            if closed {
                entry.open = None;
                excess -= 1;
            }
        }
    }

    fn read_identity(&self, disk: usize, name: &str) -> Result<(Identity, u64)> {
        let file = self.set.disk(disk).open(name);
        let file = file.map_err(|e| Error::io("opening a data file", e, 0))?;
        let (header, _) = read_header(name, &*file)?;
        Ok((header.identity, header.len))
    }

    /// Runs something that writes to a data file. A full disk moves the subfile and runs it again;
    /// any other failure of the disk takes it out of placement.
    pub(crate) fn guarded<T>(
        &self,
        held: &Arc<HeldSubfile>,
        run: impl Fn(&HeldSubfile, &mut Backing) -> Result<T>,
    ) -> Result<T> {
        let mut backing = held.backing();
        held.lock().check_alive()?;
        let mut result = run(held, &mut backing);
        if result.as_ref().is_err_and(Error::is_disk_full) && backing.file.trim() {
            result = run(held, &mut backing);
        }
        for _ in 1..self.set.len() {
            match &result {
                Err(e) if e.is_disk_full() => {}
                _ => break,
            }
            if self.relocate(&mut backing, &held.is_recorded)? {
                result = run(held, &mut backing);
            } else {
                break;
            }
        }
        if result.as_ref().is_err_and(Error::is_of_the_disk) {
            self.set.fail(backing.disk);
        }
        result
    }

    /// Moves a subfile to the best other disk that has room; says whether it did.
    fn relocate(&self, backing: &mut Backing, is_recorded: &Arc<AtomicBool>) -> Result<bool> {
        let id = backing.file.identity().id;
        let wanted_bytes = backing.file.allocated()? + CHUNK;
        for disk in self.set.order(wanted_bytes) {
            if disk == backing.disk {
                continue;
            }
            match backing.file.copy_to(self.set.disk(disk), random_number()) {
                Ok(copy) => {
                    // On record before it counts: should its disk go missing, the old one is known to be old.
                    let number = copy.copy();
                    self.records.add(id, disk, number, is_recorded);
                    if let Err(e) = self.records.settle() {
                        let _ = self.set.disk(disk).remove(&name_of(id));
                        return Err(e);
                    }
                    let old = std::mem::replace(&mut backing.file, copy);
                    let old_disk = std::mem::replace(&mut backing.disk, disk);
                    drop(old);
                    let mut known = self.lock();
                    if let Some(entry) = known.map.get_mut(&id) {
                        entry.at = At::Disk(disk);
                        entry.copy = number;
                        known.counts[old_disk] -= 1;
                        known.counts[disk] += 1;
                    }
                    drop(known);
                    // Failing leaves an older copy, which the next start puts aside.
                    let _ = self.set.disk(old_disk).remove(&name_of(id));
                    return Ok(true);
                }
                Err(e) if e.is_disk_full() => {}
                Err(Error::Corrupt { id, offset, why }) => {
                    return Err(Error::Corrupt { id, offset, why });
                }
                Err(_) => self.set.fail(disk),
            }
        }
        Ok(false)
    }
}

/// A number that no other data file or disk is likely to have.
pub(crate) fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Which subfile a name stands for.
pub(crate) fn parse_name(name: &str) -> Option<SubfileId> {
    let mut parts = name.strip_suffix(".sub")?.split('-');
    let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
    let id = SubfileId {
        file: number()?,
        generation: number()?,
        index: u32::try_from(number()?).ok()?,
    };
    (name_of(id) == name).then_some(id)
}
