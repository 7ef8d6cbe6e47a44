//! All subfiles of a disk store: where they are, which are open, what stays in memory.
//!
//! Invariants
//! - Names of data files say which subfile they hold, so opening a store reads no data file. Where
//!   two disks hold the same subfile (a move was interrupted) the complete copy with the higher
//!   number counts, and the other one is removed.
//! - A data file whose creation was never finished is no subfile: whoever opens it finds nothing, and it is removed.
//! - A subfile is open at most once; all handles share its cache.
//! - Memory is made free in the order of the cache's policy ([`crate::policy`]), clean extents first; dirty ones
//!   are written back by the thread that needs the room. If everything is in use, the caller is told.
//! - Dirty bytes are written back disk by disk, subfile by subfile, ascending, and the next round goes on where
//!   the last one stopped: what is written again and again keeps nobody else waiting.
//!
//! A subfile whose disk is full is moved to another one that has room, bytes and checksums compared
//! on the way; only then does a writer hear that there is no space.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use super::file::{DataFile, Recovery, is_data_file, name_of, read_header};
use super::held::{Backing, DiskSubfile, Held};
use super::set::{DiskSet, DiskSpec};
use crate::blocks::BLOCK;
use crate::cache::Cache;
use crate::error::{Error, Resource, Result};
use crate::identity::{Identity, SubfileId};
use crate::memory::check_note;
use crate::policy::Key;
use crate::pool::{CHUNK, Pool};
use crate::store::{Capabilities, Store, Subfile, Usage};

/// How often those who have mapped extents are asked to give some up, for one request for room.
const RECLAIMS: u32 = 64;
/// How often write-backs of others are waited for, for one request for room.
const WAITS: u32 = 64;
/// One part in so many of memory is for what was read ahead, whatever else is in it.
const AHEAD_SHARE: u64 = 8;

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

/// One data file as a scan found it.
#[derive(Debug)]
pub struct Found {
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
    set: DiskSet,
    options: DiskOptions,
    known: Mutex<BTreeMap<SubfileId, Known>>,
    pub(crate) cache: Arc<Cache>,
    /// Where the last write-back stopped, so that the next goes on from there.
    swept: Mutex<Option<Place>>,
    reclaim: OnceLock<Reclaim>,
    writing: Writing,
}

/// The write-backs of all subfiles that run now, for those who need the room that these are about to make.
#[derive(Debug, Default)]
struct Writing {
    now: Mutex<WritingNow>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct WritingNow {
    running: u64,
    /// Those that wrote something.
    ended: u64,
}

impl Writing {
    fn lock(&self) -> MutexGuard<'_, WritingNow> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one has ended since `before`; `false` if none runs that could. Nobody who writes back waits for
    /// room, so this ends.
    fn wait(&self, before: WritingNow) -> bool {
        let now = self.lock();
        let runs = |now: &mut WritingNow| now.ended == before.ended && now.running > 0;
        let now = self
            .changed
            .wait_while(now, runs)
            .unwrap_or_else(PoisonError::into_inner);
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
type Reclaim = Box<dyn Fn() -> bool + Send + Sync>;

#[derive(Debug)]
struct Known {
    disk: usize,
    open: Option<Arc<Held>>,
}

impl DiskStore {
    /// Takes the disks and finds what is on them.
    pub fn new(pool: Pool, disks: Vec<DiskSpec>, options: DiskOptions) -> Result<Self> {
        let core = Core {
            cache: Arc::new(Cache::new(pool.usage().limit_bytes)),
            swept: Mutex::default(),
            pool,
            set: DiskSet::new(disks)?,
            options,
            known: Mutex::default(),
            reclaim: OnceLock::new(),
            writing: Writing::default(),
        };
        let mut known: BTreeMap<SubfileId, Known> = BTreeMap::new();
        for disk in 0..core.set.len() {
            let Ok(names) = core.set.disk(disk).names() else {
                core.set.fail(disk);
                continue;
            };
            for id in names.iter().filter_map(|name| parse_name(name)) {
                let at = match known.get(&id) {
                    Some(other) => core.choose_copy(id, other.disk, disk)?,
                    None => disk,
                };
                known.insert(
                    id,
                    Known {
                        disk: at,
                        open: None,
                    },
                );
            }
        }
        core.lock().append(&mut known);
        Ok(DiskStore {
            core: Arc::new(core),
        })
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
        known.get(&id).map(|k| k.disk).ok_or(Error::NotFound(id))
    }

    /// Every data file on every disk with what its header says: enough to rebuild a directory.
    pub fn scan(&self) -> Vec<Found> {
        let mut found = Vec::new();
        for disk in 0..self.core.set.len() {
            let names = self.core.set.disk(disk).names().unwrap_or_default();
            for name in names.into_iter().filter(|n| is_data_file(n)) {
                let content = self.core.read_identity(disk, &name);
                found.push(Found {
                    disk,
                    name,
                    content,
                });
            }
        }
        found
    }

    /// Removes a data file that a scan found unfinished, unless it is used by now. What fails is left to whoever
    /// opens it.
    pub fn remove_unfinished(&self, name: &str) {
        if let Some(id) = parse_name(name) {
            let _ = self.core.held(id);
        }
    }

    /// What recovery decided when a subfile was opened.
    pub fn recovery(&self, id: SubfileId) -> Result<Recovery> {
        let held = self.core.held(id)?;
        let recovery = held.backing().file.recovery();
        Ok(recovery)
    }

    /// Drops cached extents that need no writing back; the next access reads from disk.
    pub fn evict(&self) -> u64 {
        let order = self.core.cache.order();
        self.core.evict(&order, u64::MAX, Held::evict)
    }

    /// Committed bytes that are in memory only; costs nothing to ask.
    pub fn dirty_bytes(&self) -> u64 {
        self.core.cache.dirty_bytes()
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
        self.core.evict(&passing, bytes, Held::give_up_ahead)
    }

    /// Syncs and closes every data file, so that the next start has nothing to recover. Dropping
    /// a store does not: it is as if the process had died.
    pub fn close(&self) -> Result<()> {
        let mut result = Ok(());
        for held in self.core.open_subfiles() {
            let closed = self.core.guarded(&held, |held, backing| {
                held.write_back(backing, u64::MAX)?;
                backing.file.close()
            });
            result = result.and(closed);
        }
        result
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
        if known.contains_key(&identity.id) {
            return Err(Error::Exists(identity.id));
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
        for disk in core.set.order(wanted_bytes) {
            match DataFile::create(core.set.disk(disk), identity, random_tag(), 0) {
                Ok(file) => {
                    let held = Arc::new(Held::new(core, file, disk));
                    let open = Some(Arc::clone(&held));
                    known.insert(identity.id, Known { disk, open });
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
        let held = self.core.held(id)?;
        Ok(Arc::new(DiskSubfile { held }))
    }

    fn remove(&self, id: SubfileId) -> Result<()> {
        let mut known = self.core.lock();
        let entry = known.get(&id).ok_or(Error::NotFound(id))?;
        let removed = self.core.set.disk(entry.disk).remove(&name_of(id));
        removed.map_err(|e| Error::io("removing a data file", e, 0))?;
        let entry = known.remove(&id).expect("found above");
        drop(known);
        if let Some(held) = entry.open {
            held.forget();
        }
        Ok(())
    }

    fn list(&self) -> Result<Vec<Identity>> {
        let known: Vec<(SubfileId, usize, Option<Arc<Held>>)> = {
            let known = self.core.lock();
            let entry = |(id, k): (&SubfileId, &Known)| (*id, k.disk, k.open.clone());
            known.iter().map(entry).collect()
        };
        let identity = |(id, disk, open): (SubfileId, usize, Option<Arc<Held>>)| match open {
            Some(held) => Ok(held.lock().identity.clone()),
            None => Ok(self.core.read_identity(disk, &name_of(id))?.0),
        };
        known.into_iter().map(identity).collect()
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
            let done = core.guarded(&held, |held, backing| held.write_back(backing, left));
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
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SubfileId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_subfiles(&self) -> Vec<Arc<Held>> {
        let known = self.lock();
        known.values().filter_map(|k| k.open.clone()).collect()
    }

    fn swept(&self) -> MutexGuard<'_, Option<Place>> {
        self.swept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All open subfiles in the order of the disks, from the one behind the last that was written back on
    /// round to that one.
    fn sweep(&self) -> Vec<(Place, Arc<Held>)> {
        let mut all: Vec<(Place, Arc<Held>)> = self
            .lock()
            .iter()
            .filter_map(|(id, known)| Some(((known.disk, *id), known.open.clone()?)))
            .collect();
        all.sort_unstable_by_key(|(place, _)| *place);
        let last = *self.swept();
        let first = last.map_or(0, |last| all.partition_point(|(place, _)| *place <= last));
        all.rotate_left(first);
        all
    }

    fn held(self: &Arc<Self>, id: SubfileId) -> Result<Arc<Held>> {
        let mut known = self.lock();
        let entry = known.get_mut(&id).ok_or(Error::NotFound(id))?;
        if let Some(held) = &entry.open {
            return Ok(Arc::clone(held));
        }
        let disk = entry.disk;
        let name = name_of(id);
        let file = match DataFile::open(self.set.disk(disk), &name) {
            // As if whoever began to create it had died a moment before. Unless this removal is made durable the
            // next start finds it again.
            Err(Error::Unfinished { .. }) => {
                let removed = self.set.disk(disk).remove(&name);
                removed.map_err(|e| Error::io("removing an unfinished data file", e, 0))?;
                known.remove(&id);
                return Err(Error::NotFound(id));
            }
            file => file?,
        };
        if file.identity().id != id {
            return Err(Error::Format {
                name,
                why: format!("holds subfile {}", file.identity().id),
            });
        }
        let was_open = file.recovery().was_open;
        let held = Arc::new(Held::new(self, file, disk));
        // Whoever opens it too waits for its blocks until recovery is complete.
        let mut backing = held.backing();
        entry.open = Some(Arc::clone(&held));
        self.close_idle(&mut known);
        drop(known);
        if was_open && let Err(e) = held.cut_behind_length(&mut backing) {
            if let Some(entry) = self.lock().get_mut(&id) {
                entry.open = None;
            }
            return Err(e);
        }
        drop(backing);
        Ok(held)
    }

    /// Closes data files that nobody uses and that have nothing to lose.
    fn close_idle(&self, known: &mut BTreeMap<SubfileId, Known>) {
        let open = known.values().filter(|k| k.open.is_some()).count();
        let mut excess = open.saturating_sub(self.options.open_files);
        for entry in known.values_mut() {
            if excess == 0 {
                return;
            }
            let Some(held) = &entry.open else { continue };
            let is_used = |held: &Held| {
                let state = held.lock();
                state.table.is_dirty() || state.table.is_mapped()
            };
            if Arc::strong_count(held) > 1 || is_used(held) {
                continue;
            }
            let closed = held.try_backing().is_some_and(|mut backing| {
                let (len, identity) = held.attributes();
                let noted = backing.file.set_attributes(len, &identity);
                noted.is_ok() && backing.file.is_synced() && backing.file.close().is_ok()
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

    /// Of two data files of one subfile the one that counts; the other is removed.
    fn choose_copy(&self, id: SubfileId, one: usize, other: usize) -> Result<usize> {
        let name = name_of(id);
        let version = |disk: usize| -> Result<Option<u64>> {
            let file = self.set.disk(disk).open(&name);
            let file = file.map_err(|e| Error::io("opening a data file", e, 0))?;
            match read_header(&name, &*file) {
                // A copy counts once it is committed; the original counts always.
                Ok((h, _)) => Ok((h.copy == 0 || h.committed > 0).then_some(h.copy)),
                Err(Error::Format { .. } | Error::Unfinished { .. }) => Ok(None),
                Err(e) => Err(e),
            }
        };
        let (winner, loser) = match (version(one)?, version(other)?) {
            (a, b) if a >= b => (one, other),
            _ => (other, one),
        };
        if version(winner)?.is_some() {
            let removed = self.set.disk(loser).remove(&name);
            removed.map_err(|e| Error::io("removing a superseded data file", e, 0))?;
        }
        Ok(winner)
    }

    /// Runs something that writes to a data file. A full disk moves the subfile and runs it again;
    /// any other failure of the disk takes it out of placement.
    pub(crate) fn guarded<T>(
        &self,
        held: &Arc<Held>,
        run: impl Fn(&Held, &mut Backing) -> Result<T>,
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
            if self.relocate(&mut backing)? {
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
    fn relocate(&self, backing: &mut Backing) -> Result<bool> {
        let id = backing.file.identity().id;
        let wanted_bytes = backing.file.allocated()? + CHUNK;
        for disk in self.set.order(wanted_bytes) {
            if disk == backing.disk {
                continue;
            }
            match backing.file.copy_to(self.set.disk(disk), random_tag()) {
                Ok(copy) => {
                    let old = std::mem::replace(&mut backing.file, copy);
                    let old_disk = std::mem::replace(&mut backing.disk, disk);
                    drop(old);
                    if let Some(entry) = self.lock().get_mut(&id) {
                        entry.disk = disk;
                    }
                    // Failing leaves an older copy, which the next start removes.
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

    /// Frees memory: clean extents, oldest first; then dirty ones after writing them back. Says
    /// how many bytes. `own` is what the caller holds and nobody else can lock; what lies in `keep` of a
    /// subfile is what he makes room for.
    pub(crate) fn make_room(
        &self,
        wanted_bytes: u64,
        keep: (&Held, &Range<u64>),
        mut own: Option<(&Arc<Held>, &mut Backing)>,
    ) -> Result<u64> {
        if wanted_bytes == 0 {
            return Ok(0);
        }
        // In small batches: what is evicted without need may be wanted next.
        let limit = self.pool.options().limit_bytes;
        let wanted_bytes = wanted_bytes.min(limit / 4);
        let goal = wanted_bytes.max(limit / 128);
        let freed = self.evict_some(goal, keep);
        if freed >= wanted_bytes {
            return Ok(freed);
        }
        // An extent is free once all its blocks are written, so one round may free nothing.
        let mut reclaims = RECLAIMS;
        let mut waits = WAITS;
        loop {
            let (written, result) = self.write_back_some(goal, &mut own);
            let before = *self.writing.lock();
            let freed = freed + self.evict_some(goal, keep);
            if freed > 0 {
                return Ok(freed);
            }
            if written == 0 {
                // What others write back can go neither before nor twice, and may be all that can.
                if waits > 0 && self.writing.wait(before) {
                    waits -= 1;
                    continue;
                }
                let reclaim = self.reclaim.get().filter(|_| reclaims > 0);
                if !reclaim.is_some_and(|reclaim| reclaim()) {
                    return result.map(|()| 0);
                }
                reclaims -= 1;
            }
        }
    }

    /// Writes back about `goal` bytes of whatever can be locked; says how many.
    fn write_back_some(
        &self,
        goal: u64,
        own: &mut Option<(&Arc<Held>, &mut Backing)>,
    ) -> (u64, Result<()>) {
        let mut written = 0;
        let mut result = Ok(());
        for held in self.open_subfiles() {
            if written >= goal {
                break;
            }
            let done = match own {
                Some((mine, backing)) if Arc::ptr_eq(mine, &held) => {
                    held.write_back(backing, goal - written)
                }
                _ => match held.try_backing() {
                    Some(mut backing) => held.write_back(&mut backing, goal - written),
                    None => continue,
                },
            };
            match done {
                Ok(bytes) => written += bytes,
                Err(e) => result = Err(e),
            }
        }
        (written, result)
    }

    /// Frees about `goal` bytes of what should go first and can.
    fn evict_some(&self, goal: u64, keep: (&Held, &Range<u64>)) -> u64 {
        let number = keep.0.lock().table.number();
        let can_go = |key: &Key| Some(key.0) != number || !keep.1.contains(&key.1);
        let mut first = self.cache.first(goal.saturating_mul(2));
        first.retain(can_go);
        let freed = self.evict(&first, goal, Held::evict);
        if freed >= goal {
            return freed;
        }
        // What stands first is in use or dirty.
        let mut order = self.cache.order();
        order.retain(can_go);
        freed + self.evict(&order, goal - freed, Held::evict)
    }

    /// Frees room for what nobody has asked for yet: from what passes through memory, and not from what waits itself. What
    /// is used again and again is left alone, but for so much that one part in [`AHEAD_SHARE`] of memory can wait: where
    /// little passes through, nothing could be read ahead otherwise.
    pub(crate) fn make_room_ahead(&self, wanted_bytes: u64) -> u64 {
        let passing = self.cache.passing();
        let freed = self.evict(&passing, wanted_bytes, Held::evict_used);
        let waiting = self.cache.usage().waiting_bytes();
        if freed >= wanted_bytes || waiting >= self.pool.usage().limit_bytes / AHEAD_SHARE {
            return freed;
        }
        let order = self.cache.order();
        freed + self.evict(&order, wanted_bytes - freed, Held::evict_used)
    }

    fn evict(&self, order: &[Key], goal: u64, evict: impl Fn(&Held, u64) -> u64) -> u64 {
        if order.is_empty() {
            return 0;
        }
        let open: HashMap<u64, Arc<Held>> = self
            .open_subfiles()
            .into_iter()
            .filter_map(|held| {
                let number = held.lock().table.number()?;
                Some((number, held))
            })
            .collect();
        let mut freed = 0;
        for (number, start) in order {
            if freed >= goal {
                break;
            }
            if let Some(held) = open.get(number) {
                freed += evict(held, *start);
            }
        }
        freed
    }
}

/// A number that no other data file is likely to have.
fn random_tag() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Which subfile a name stands for.
fn parse_name(name: &str) -> Option<SubfileId> {
    let mut parts = name.strip_suffix(".sub")?.split('-');
    let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
    let id = SubfileId {
        file: number()?,
        generation: number()?,
        index: u32::try_from(number()?).ok()?,
    };
    (name_of(id) == name).then_some(id)
}
