//! The store of this server, with an index of what is in it.
//!
//! Removals name a file and a generation; the index finds their subfiles without reading headers. Of a store on disks
//! that is the store's own, which knows those too whose disk is missing; one in memory has it here.
//!
//! The thread that writes back dirty bytes is here too. Bytes gather for some seconds, or until a quarter of memory is
//! *exposed*: dirty, or open to clients that store without asking. Then they go to the disk in its order while writers go
//! on. Where a third of memory is dirty, who writes by message writes back as much as it has written before it is answered.
//! Where three quarters are exposed, who wants to store directly waits for others to give up what they could store into. So no
//! writer can make bytes faster than the disk takes them for long, and there is memory for readers. What could not be written
//! stays dirty, is tried again, and is reported by the next `sync`. Where disks are nearly full, writes are answered when
//! their bytes are in the data file, so that each of them hears whether there was room.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use store::{DiskStore, Identity, ListedSubfile, MissingDisk, Pool, Store, Subfile, SubfileId};
use wire::FileId;
use wire::message::file::{DiskEntry, DiskList, DiskState};

use crate::statistics::{Statistics, add};
use crate::tended_memory::TendedMemory;

/// Dirty bytes written back at a time.
const BUDGET: u64 = 32 << 20;
/// Dirty bytes gather for so long before they are written back, as in the page cache of the system: what is written again
/// or removed soon need not go to the disk, and writers have the processors to themselves.
const DELAY: Duration = Duration::from_secs(5);
/// After so long what could not be written is tried again.
const AGAIN: Duration = Duration::from_millis(500);
/// One part in so many of memory is exposed: writing back begins at once.
const BEGIN_SHARE: u64 = 4;
/// Fewest bytes that a writer which helps writes back.
const HELP_LEAST: u64 = 1 << 20;
/// One part in so many of memory is dirty: writers help.
const HELP_SHARE: u64 = 3;
/// One part in so many of memory is never exposed.
const KEPT_SHARE: u64 = 4;
/// How often others are asked to give up what they may store into, for one who wants to.
const TRIES: usize = 16;

/// A store and what is in it.
pub(crate) struct SubfileStore {
    store: Arc<dyn Store>,
    disk: Option<Arc<DiskStore>>,
    /// Of a store in memory.
    index: Mutex<BTreeSet<SubfileId>>,
    /// Of a store in memory: whom to ask for memory that nobody has stored into yet.
    reclaim: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
    has_dirty: AtomicBool,
    /// So much is dirty that it shall not gather any longer.
    is_urgent: AtomicBool,
    is_stopping: Mutex<bool>,
    wake: Condvar,
    /// The memory of its extents.
    pub(crate) memory: Arc<TendedMemory>,
}

impl SubfileStore {
    pub(crate) fn memory(store: Arc<dyn Store>, pool: Pool) -> Self {
        SubfileStore::of(store, None, pool)
    }

    pub(crate) fn disk(disk: Arc<DiskStore>, pool: Pool) -> Self {
        SubfileStore::of(Arc::clone(&disk) as Arc<dyn Store>, Some(disk), pool)
    }

    fn of(store: Arc<dyn Store>, disk: Option<Arc<DiskStore>>, pool: Pool) -> Self {
        SubfileStore {
            memory: TendedMemory::new(pool),
            store,
            disk,
            index: Mutex::default(),
            reclaim: OnceLock::new(),
            has_dirty: AtomicBool::new(false),
            is_urgent: AtomicBool::new(false),
            is_stopping: Mutex::new(false),
            wake: Condvar::new(),
        }
    }

    /// The store itself.
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// The store, if it is on disks.
    pub(crate) fn on_disks(&self) -> Option<&DiskStore> {
        self.disk.as_deref()
    }

    /// Whether synced bytes survive everything.
    pub(crate) fn is_durable(&self) -> bool {
        self.disk.is_some()
    }

    pub(crate) fn open(&self, id: SubfileId) -> store::Result<Arc<dyn Subfile>> {
        self.store.open(id)
    }

    /// Opens a subfile whose layout binds it to a start of this server.
    pub(crate) fn open_bound(&self, id: SubfileId, bound: u64) -> store::Result<Arc<dyn Subfile>> {
        match &self.disk {
            Some(disk) => disk.open_bound(id, bound),
            None => self.store.open(id),
        }
    }

    pub(crate) fn create(&self, identity: &Identity) -> store::Result<Arc<dyn Subfile>> {
        let made = self.store.create(identity)?;
        if self.disk.is_none() {
            self.index.lock().insert(identity.id);
        }
        Ok(made)
    }

    /// A store in memory was found with these.
    pub(crate) fn has_found(&self, ids: Vec<SubfileId>) {
        self.index.lock().extend(ids);
    }

    /// Subfiles there are.
    pub(crate) fn count(&self) -> usize {
        match &self.disk {
            Some(disk) => disk.count(),
            None => self.index.lock().len(),
        }
    }

    /// Subfiles behind one, at most so many, ascending.
    pub(crate) fn look(&self, after: Option<SubfileId>, most: usize) -> Vec<ListedSubfile> {
        use std::ops::Bound::{Excluded, Unbounded};
        if let Some(disk) = &self.disk {
            return disk.look(after, most);
        }
        let from = after.map_or(Unbounded, Excluded);
        let index = self.index.lock();
        let ids: Vec<SubfileId> = index.range((from, Unbounded)).take(most).copied().collect();
        drop(index);
        let look = |id| {
            let subfile = self.store.open(id).ok();
            ListedSubfile {
                id,
                standing: store::Standing::Here,
                len: subfile.as_ref().map_or(0, |s| s.len()),
                allocated_bytes: subfile.and_then(|s| s.allocated().ok()).unwrap_or(0),
            }
        };
        ids.into_iter().map(look).collect()
    }

    /// The directories of its disks.
    pub(crate) fn disk_dirs(&self) -> Vec<PathBuf> {
        let set = self.disk.as_ref().map(|disk| disk.disks());
        let labels = set.map(|set| (0..set.len()).map(|k| PathBuf::from(set.disk(k).label())));
        labels.into_iter().flatten().collect()
    }

    /// Disks that belong to this server and are not there.
    pub(crate) fn missing(&self) -> &[MissingDisk] {
        self.disk
            .as_ref()
            .map_or(&[], |disk| disk.disks().missing())
    }

    /// All disks of this server, and what was put aside on them.
    pub(crate) fn disk_list(&self) -> DiskList {
        let mut list = DiskList {
            disks: Vec::new(),
            quarantined: Vec::new(),
            conflicts: Vec::new(),
        };
        let Some(disk) = &self.disk else {
            return list;
        };
        let (set, counts) = (disk.disks(), disk.counts());
        for (k, is) in set.characteristics().into_iter().enumerate() {
            list.disks.push(DiskEntry {
                id: set.id(k).0,
                place: set.disk(k).label(),
                state: match is.has_failed {
                    true => DiskState::Failed,
                    false => DiskState::Used,
                },
                why: String::new(),
                subfiles: counts[k],
                free_bytes: is.space.free_bytes,
                total_bytes: is.space.total_bytes,
            });
        }
        let absent = |id: store::DiskId, place: &str, state: DiskState, why: &str| DiskEntry {
            id: id.0,
            place: place.to_owned(),
            state,
            why: why.to_owned(),
            subfiles: 0,
            free_bytes: 0,
            total_bytes: 0,
        };
        let missing = set.missing().iter();
        list.disks
            .extend(missing.map(|m| absent(m.id, &m.place, DiskState::Missing, &m.why)));
        let lost = set.lost().iter();
        list.disks
            .extend(lost.map(|id| absent(*id, "", DiskState::Lost, "it was declared lost")));
        list.quarantined = disk.quarantined().into_iter().map(|q| q.path).collect();
        list.conflicts = disk.conflicts().iter().map(ToString::to_string).collect();
        list
    }

    /// Removes what is stored under a generation of a file, or some subfiles of it; what is already gone is as
    /// good. What is on a disk that is missing cannot be removed before it is back.
    pub(crate) fn remove(
        &self,
        file: FileId,
        generation: u64,
        subfiles: &[u32],
    ) -> store::Result<()> {
        let of = |index| SubfileId {
            file: file.0,
            generation,
            index,
        };
        let found: Vec<SubfileId> = match &self.disk {
            Some(disk) => disk.of_generation(file.0, generation),
            None => {
                let index = self.index.lock();
                index.range(of(0)..=of(u32::MAX)).copied().collect()
            }
        };
        let is_meant = |id: &SubfileId| subfiles.is_empty() || subfiles.contains(&id.index);
        for id in found.into_iter().filter(is_meant) {
            match self.store.remove(id) {
                Ok(()) | Err(store::Error::NotFound(_)) => {
                    self.index.lock().remove(&id);
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Whom to ask for memory that others have mapped, when there is no other.
    pub(crate) fn reclaim_with(&self, reclaim: impl Fn() -> bool + Send + Sync + 'static) {
        match &self.disk {
            Some(disk) => disk.reclaim_with(reclaim),
            None => drop(self.reclaim.set(Box::new(reclaim))),
        }
    }

    /// Takes memory back that nobody has stored into yet, where memory is all there is; whether there was any.
    pub(crate) fn reclaim(&self) -> bool {
        self.reclaim.get().is_some_and(|reclaim| reclaim())
    }

    /// Room in all and room taken, in bytes.
    pub(crate) fn room(&self) -> (u64, u64) {
        match &self.disk {
            None => {
                let usage = self.store.usage();
                (usage.memory_limit_bytes, usage.memory_bytes)
            }
            Some(disk) => {
                let disks = disk.disks().characteristics();
                let good = disks.iter().filter(|d| !d.has_failed);
                good.fold((0, 0), |(total, used), d| {
                    let taken = d.space.total_bytes.saturating_sub(d.space.free_bytes);
                    (total + d.space.total_bytes, used + taken)
                })
            }
        }
    }

    /// How many disks there are, and how many of them have failed.
    pub(crate) fn disks(&self) -> (u64, u64) {
        let disks = self.disk.as_ref().map(|d| d.disks().characteristics());
        let disks = disks.unwrap_or_default();
        let failed = disks.iter().filter(|d| d.has_failed).count();
        (disks.len() as u64, failed as u64)
    }

    /// How many disks are read and written past the page cache.
    pub(crate) fn direct_disks(&self) -> u64 {
        let Some(store) = &self.disk else {
            return 0;
        };
        let disks = store.disks();
        let direct = (0..disks.len()).filter(|&k| disks.disk(k).io() == store::FileIo::Direct);
        direct.count() as u64
    }

    /// Lets all disks take subfiles again.
    pub(crate) fn restore_disks(&self) {
        if let Some(disk) = &self.disk {
            let disks = disk.disks();
            (0..disks.len()).for_each(|i| disks.restore(i));
        }
    }

    /// Whether more may be read before a client asks: what waits already is less than one part in `share` of
    /// memory.
    pub(crate) fn may_read_ahead(&self, share: u64) -> bool {
        let Some(disk) = &self.disk else {
            return false;
        };
        let most = disk.memory_limit_bytes() / share;
        if disk.waiting_bytes() < most {
            return true;
        }
        // Those it was read for may never come: what waits longest does not count any more.
        disk.give_up_ahead(most / 4);
        false
    }

    /// Something was written.
    pub(crate) fn wrote(&self) {
        let Some(disk) = &self.disk else { return };
        let is_new =
            !self.has_dirty.load(Ordering::Relaxed) && !self.has_dirty.swap(true, Ordering::SeqCst);
        let is_much = disk.exposed_bytes() > disk.memory_limit_bytes() / BEGIN_SHARE
            && !self.is_urgent.swap(true, Ordering::SeqCst);
        if is_new || is_much {
            let _waiting = self.is_stopping.lock();
            self.wake.notify_all();
        }
    }

    /// Bytes that may be exposed beside those that are.
    pub(crate) fn exposable(&self) -> u64 {
        let Some(disk) = &self.disk else {
            return u64::MAX;
        };
        let limit = disk.memory_limit_bytes();
        let most = limit - limit / KEPT_SHARE;
        most.saturating_sub(disk.exposed_bytes())
    }

    /// Whether the disks may not have room for `bytes` more beside all that is promised.
    pub(crate) fn is_short_of(&self, bytes: u64) -> bool {
        let disk = self.disk.as_ref();
        disk.is_some_and(|disk| disk.is_short_of(bytes))
    }

    /// Makes it so that `bytes` more may be exposed, if that can be: dirty bytes are written back, and `reclaim` has clients
    /// give up what they may store into. The caller is in no file's gate.
    pub(crate) fn expose(
        &self,
        statistics: &Statistics,
        bytes: u64,
        reclaim: impl Fn() -> bool,
    ) -> bool {
        for _ in 0..TRIES {
            if self.exposable() >= bytes {
                return true;
            }
            add(&statistics.write_behind_waits, 1);
            let has_given_up = reclaim();
            match self.store.write_back(bytes.max(BUDGET)) {
                Ok(0) if !has_given_up => break,
                Ok(_) => {}
                Err(_) => {
                    add(&statistics.write_back_errors, 1);
                    break;
                }
            }
        }
        self.exposable() >= bytes
    }

    /// Writes back about `bytes` if too much is dirty, for a client that has just written so many. Failures
    /// are those of other bytes, and are for the client that syncs them.
    pub(crate) fn help(&self, statistics: &Statistics, bytes: u64) {
        let Some(disk) = &self.disk else { return };
        if disk.dirty_bytes() > disk.memory_limit_bytes() / HELP_SHARE {
            add(&statistics.write_behind_waits, 1);
            if self.store.write_back(bytes.max(HELP_LEAST)).is_err() {
                add(&statistics.write_back_errors, 1);
            }
        }
    }

    /// Writes back in the background until [`SubfileStore::stop`]. `collect` makes dirty what clients have
    /// stored by themselves, and says whether there was anything.
    pub(crate) fn write_back(&self, statistics: &Statistics, collect: impl Fn() -> bool) {
        let mut is_stopping = self.is_stopping.lock();
        let mut delay = DELAY;
        loop {
            while !*is_stopping && !self.has_dirty.load(Ordering::SeqCst) {
                self.wake.wait(&mut is_stopping);
            }
            if *is_stopping {
                return;
            }
            let may_wait = |stop: &mut bool| !*stop && !self.is_urgent.load(Ordering::SeqCst);
            self.wake.wait_while_for(&mut is_stopping, may_wait, delay);
            delay = DELAY;
            drop(is_stopping);
            self.has_dirty.store(false, Ordering::SeqCst);
            self.is_urgent.store(false, Ordering::SeqCst);
            if collect() {
                // Nothing says when they go on.
                self.has_dirty.store(true, Ordering::SeqCst);
            }
            loop {
                match self.store.write_back(BUDGET) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(_) => {
                        // What could not be written stays dirty and is tried again; the client that syncs is
                        // told why.
                        add(&statistics.write_back_errors, 1);
                        self.has_dirty.store(true, Ordering::SeqCst);
                        delay = AGAIN;
                        break;
                    }
                }
                if *self.is_stopping.lock() {
                    return;
                }
            }
            is_stopping = self.is_stopping.lock();
        }
    }

    /// Ends the background threads.
    pub(crate) fn stop(&self) {
        self.memory.stop();
        *self.is_stopping.lock() = true;
        self.wake.notify_all();
    }

    /// Makes everything durable, where the store can.
    pub(crate) fn close(&self) -> store::Result<()> {
        self.disk.as_ref().map_or(Ok(()), |disk| disk.close())
    }
}
