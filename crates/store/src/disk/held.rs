//! One open subfile of a disk store: cached extents above a data file.
//!
//! Two locks, always taken in this order: `backing` (the data file; held during disk I/O) and
//! `state` (the extent table; never held during disk I/O). So accesses that find their blocks
//! loaded never wait for the disk, and the thread that holds `backing` knows that the disk's view stands
//! still. Room for extents is made with `state` released.
//!
//! Invariants
//! - What a reader gets pinned was loaded at that moment, or was a hole in both cache and file.
//! - A block becomes dirty when a grant over it is committed, not before: write-back never sees a
//!   block whose bytes are still arriving for the first time.
//! - Dirty bits are cleared before the bytes are copied out, and set again if writing fails. The
//!   checksum is computed over the private copy, so that no late store can make it wrong.
//! - A write-back that failed leaves its blocks dirty, and the subfile *owing*: it takes no more bytes before they are
//!   written, or cut off. So a disk that is full is heard of by those who write, and memory that cannot be freed does not grow.
//! - An extent with writers, dirty blocks, blocks on their way to the disk, or one that a client has
//!   mapped is not evicted.
//! - What was stored through a map counts from the store on, and becomes dirty when the server that handed
//!   the map out says so ([`Subfile::mark_written`]). Until then nothing replaces it: its blocks are
//!   loaded and stay so.
//! - With a ledger, what only memory has is on record before a write is answered, and until the data file has it and says so:
//!   blocks that are dirty, blocks that are written and whose tables are not, all blocks of extents that clients may store into. While
//!   anything is, the length on record counts, not that of the data file.

mod grant_end;
mod write_back;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::file::{DataFile, check_reach};
use super::store::Core;
use crate::aside::Aside;
use crate::blocks::{BLOCK, covered, touched};
use crate::error::{Error, Resource, Result};
use crate::identity::{Domain, Identity, MAX_LEN, SubfileId};
use crate::memory::check_note;
use crate::pins::{Grant, Pins};
use crate::pool::{CHUNK, UNIT};
use crate::store::{Location, Scrub, Subfile, check, rounds};
use crate::table::{BlockState, Fill, Table, TableRange, local};
use parking_lot::{Mutex, MutexGuard};

pub(crate) use write_back::Target;

/// How often room is made for one request. A request for more than there is would otherwise evict
/// its own extents for ever.
const ROOM_TRIES: u32 = 8;

/// The shared part of all handles of one subfile.
#[derive(Debug)]
pub(crate) struct HeldSubfile {
    core: Weak<Core>,
    /// Whether its record is durable.
    pub(crate) is_recorded: Arc<AtomicBool>,
    backing: Mutex<Backing>,
    state: Mutex<State>,
}

/// The data file and what is needed to move blocks.
#[derive(Debug)]
pub(crate) struct Backing {
    pub(crate) file: DataFile,
    /// Which disk of the set it is on.
    pub(crate) disk: usize,
    /// Kept for the next transfer.
    pub(super) staging: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) identity: Identity,
    pub(crate) table: Table,
    pub(crate) len: u64,
    /// Space below this was taken in the data file, also behind the length.
    kept_to: u64,
    /// No block at or behind this byte is in the data file.
    pub(super) stored_end: u64,
    /// Whether what is dirty could not be written.
    pub(super) is_owing: bool,
    removed: bool,
}

/// One handle.
#[derive(Debug)]
pub(crate) struct DiskSubfile {
    pub(crate) held: Arc<HeldSubfile>,
}

/// What stands between a request and its grant.
enum Lack {
    Memory(Error),
    Block(u64),
}

impl HeldSubfile {
    pub(crate) fn new(
        core: &Arc<Core>,
        file: DataFile,
        disk: usize,
        is_recorded: Arc<AtomicBool>,
    ) -> Self {
        let mut table = Table::watched(core.cache.watch());
        if let Some(account) = core.account_for(file.identity().id) {
            table.set_account(account);
        }
        let state = State {
            identity: file.identity().clone(),
            table,
            len: file.len(),
            kept_to: 0,
            stored_end: file.len().next_multiple_of(BLOCK),
            is_owing: false,
            removed: false,
        };
        HeldSubfile {
            core: Arc::downgrade(core),
            is_recorded,
            state: Mutex::new(state),
            backing: Mutex::new(Backing {
                file,
                disk,
                staging: Vec::new(),
            }),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn backing(&self) -> MutexGuard<'_, Backing> {
        self.backing.lock()
    }

    pub(crate) fn try_backing(&self) -> Option<MutexGuard<'_, Backing>> {
        self.backing.try_lock()
    }

    pub(crate) fn id(&self) -> SubfileId {
        self.lock().identity.id
    }

    /// What the header of the data file repeats.
    pub(crate) fn attributes(&self) -> (u64, Identity) {
        let state = self.lock();
        (state.len, state.identity.clone())
    }

    pub(super) fn core(&self) -> Result<Arc<Core>> {
        self.core.upgrade().ok_or(Error::NotFound(self.id()))
    }

    /// The subfile is gone: whatever is still pinned is memory nobody will read.
    pub(crate) fn forget(&self) {
        let mut state = self.lock();
        state.removed = true;
        state.len = 0;
        if let Some(account) = state.table.account() {
            account.note_end();
        }
        state.table.clear();
    }

    /// Drops an extent if nobody uses it and nothing is lost without it; says how many bytes.
    pub(crate) fn evict(&self, start: u64) -> u64 {
        let mut state = self.lock();
        match state.table.slot_mut(start) {
            Some(slot) if slot.is_idle() => state.table.evict(start),
            _ => 0,
        }
    }

    /// Evicts a block, unless it waits for the reader that it was read for.
    pub(crate) fn evict_used(&self, start: u64) -> u64 {
        let mut state = self.lock();
        match state.table.slot_mut(start) {
            Some(slot) if slot.is_idle() && !slot.uses.is_waiting() => state.table.evict(start),
            _ => 0,
        }
    }

    /// What was read ahead of an extent waits no longer; how many bytes that is.
    pub(crate) fn give_up_ahead(&self, start: u64) -> u64 {
        self.lock().table.give_up_ahead(start)
    }

    /// Reads blocks that lack their bytes, as far as they are alike, beginning with `block`; says
    /// whether they have data. Extents are made for data, and for nothing else.
    pub(super) fn load(
        self: &Arc<Self>,
        backing: &mut Backing,
        block: u64,
        end: u64,
    ) -> Result<LoadedRange> {
        let (is_present, count) = backing.file.presence(block, end)?;
        if !is_present {
            return Ok(LoadedRange::Hole(count));
        }
        backing.staging.resize((count * BLOCK) as usize, 0);
        backing.file.read_blocks(block, &mut backing.staging)?;
        Ok(LoadedRange::Data(count))
    }

    /// Makes extents for a range, making room as often as that helps.
    fn fill(
        self: &Arc<Self>,
        range: &Range<u64>,
        mut backing: Option<&mut Backing>,
    ) -> Result<MutexGuard<'_, State>> {
        let core = self.core()?;
        let mut tries = ROOM_TRIES;
        loop {
            let mut state = self.lock();
            state.check_alive()?;
            match state.fill(&core, range) {
                Ok(()) => return Ok(state),
                Err(e) => {
                    drop(state);
                    let own = backing.as_deref_mut().map(|b| (self, b));
                    if tries == 0 || core.make_room(wanted(&e, range), (self, range), own)? == 0 {
                        return Err(e);
                    }
                    tries -= 1;
                }
            }
        }
    }

    /// Loads one block, whatever it takes.
    fn load_block(self: &Arc<Self>, backing: &mut Backing, block: u64) -> Result<()> {
        let range = block * BLOCK..(block + 1) * BLOCK;
        match self.load(backing, block, block + 1)? {
            LoadedRange::Hole(_) => {
                let mut state = self.lock();
                state.table.install(block, None);
            }
            LoadedRange::Data(_) => {
                let bytes = std::mem::take(&mut backing.staging);
                let filled = self.fill(&range, Some(backing));
                let filled = filled.map(|mut s| s.table.install(block, Some(&bytes)));
                backing.staging = bytes;
                filled?;
            }
        }
        Ok(())
    }

    /// Frees or zeros a range in cache and file. The caller holds `backing`.
    pub(super) fn cut(self: &Arc<Self>, backing: &mut Backing, range: Range<u64>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        // Blocks that are cut in two keep a part: they have to be there.
        let inner = covered(&range);
        let mut edges = vec![range.start / BLOCK, (range.end - 1) / BLOCK];
        edges.dedup();
        edges.retain(|block| !inner.contains(block));
        for &block in &edges {
            self.load_block(backing, block)?;
        }
        backing.file.clear_blocks(inner)?;
        let mut state = self.lock();
        state.check_alive()?;
        // Eviction in between has only taken edges that are clean, and they are loaded again
        // when a request asks; then they must be cut again.
        if edges
            .iter()
            .any(|&b| state.table.block_state(b) != BlockState::Loaded)
        {
            let lost: Vec<u64> = edges.clone();
            drop(state);
            return self.cut_edges(backing, range, &lost);
        }
        state.cut(range, &edges);
        Ok(())
    }

    /// After a crash blocks may be there that the length does not reach: growing over them must show
    /// zeros. Durable before anything can grow, since a second crash could otherwise show what this
    /// recovery has decided against; on a full disk that has to wait for the next sync.
    pub(crate) fn cut_behind_length(self: &Arc<Self>, backing: &mut Backing) -> Result<()> {
        let len = self.lock().len;
        let whole = len.next_multiple_of(BLOCK);
        self.cut(backing, whole..MAX_LEN.next_multiple_of(BLOCK))?;
        match self.cut(backing, len..whole) {
            // A damaged last block stays what it is, for its reader to hear.
            Ok(()) | Err(Error::Corrupt { .. }) => {}
            Err(e) => return Err(e),
        }
        match self
            .write_back(backing, u64::MAX, Target::Disk)
            .and_then(|_| backing.file.sync())
        {
            Err(e) if e.is_disk_full() => Ok(()),
            done => done,
        }
    }

    /// The rare case: an edge was evicted between loading and cutting, or is a hole.
    fn cut_edges(
        self: &Arc<Self>,
        backing: &mut Backing,
        range: Range<u64>,
        edges: &[u64],
    ) -> Result<()> {
        for &block in edges {
            let whole = block * BLOCK..(block + 1) * BLOCK;
            let part = whole.start.max(range.start)..whole.end.min(range.end);
            let data = match self.load(backing, block, block + 1)? {
                LoadedRange::Data(_) => Some(std::mem::take(&mut backing.staging)),
                LoadedRange::Hole(_) => None,
            };
            let is_cached = self.lock().table.block_state(block) != BlockState::Absent;
            if data.is_none() && !is_cached {
                continue; // a hole stays a hole
            }
            let mut state = self.fill(&whole, Some(backing))?;
            state.table.install(block, data.as_deref());
            state.cut(part, &[block]);
        }
        let mut state = self.lock();
        let inner = covered(&range);
        state.cut(inner.start * BLOCK..inner.end * BLOCK, &[]);
        Ok(())
    }
}

/// What [`HeldSubfile::load`] found.
pub(super) enum LoadedRange {
    Hole(u64),
    Data(u64),
}

impl State {
    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.removed {
            return Err(Error::NotFound(self.identity.id));
        }
        Ok(())
    }

    fn fill(&mut self, core: &Core, range: &Range<u64>) -> Result<()> {
        let domain = self.identity.domain;
        let now = core.cache.tick();
        let fill = Fill::Use {
            zeros_from: self.stored_end,
        };
        self.table
            .fill(range.clone(), fill, now, &core.pool, domain)
    }

    /// Zeros a range of the cache; blocks at its edges become dirty.
    fn cut(&mut self, range: Range<u64>, edges: &[u64]) {
        self.table.punch(range);
        for &block in edges {
            let at = block * BLOCK;
            if let Some((start, _)) = self.table.find(at) {
                self.table.mark_dirty(start, &(at..at + BLOCK));
            }
        }
        self.put_on_record();
    }

    /// Everything a write of `range` needs, at once; or what is missing.
    fn grant(
        &mut self,
        core: &Core,
        range: &Range<u64>,
        keeps: bool,
        pins: &mut Pins,
    ) -> Option<Lack> {
        if let Err(e) = self.fill(core, range) {
            return Some(Lack::Memory(e));
        }
        // Blocks that are stored as a whole need not be loaded.
        let inner = if keeps { 0..0 } else { covered(range) };
        for block in touched(range).filter(|b| !inner.contains(b)) {
            if self.table.block_state(block) == BlockState::Loaded {
                continue;
            }
            if block * BLOCK < self.stored_end {
                return Some(Lack::Block(block));
            }
            self.table.install(block, None); // never stored: zeros, without asking the disk
        }
        let mut at = range.start;
        while at < range.end {
            let TableRange::Extent { start, range: part } = self.table.first_part(at..range.end)
            else {
                unreachable!("filled above");
            };
            let slot = self.table.slot_mut(start).expect("found above");
            slot.writers += 1;
            slot.loaded.insert(local(start, &part));
            self.table.note_overwritten(start, &part);
            at = part.end;
        }
        self.table.pin(range.clone(), pins, core.cache.tick());
        None
    }

    /// The extent of a pin, if it is still in the table.
    fn is_current(&self, pins: &Pins, index: usize) -> Option<u64> {
        let pin = &pins.list[index];
        let (extent, _) = pin.memory.as_ref().expect("granted space has memory");
        let (start, slot) = self.table.find(pin.offset)?;
        Arc::ptr_eq(&slot.extent, extent).then_some(start)
    }
}

impl DiskSubfile {
    /// Writes what could not be written before, or says why it still cannot be: nothing more is taken until then.
    fn pay(&self) -> Result<()> {
        let is_owing = self.held.lock().is_owing;
        match is_owing {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Grants a range; what it keeps is loaded first.
    fn grant_blocks(&self, range: Range<u64>, keeps: bool, grant: &mut Grant) -> Result<()> {
        check(&range)?;
        check_reach(range.end)?;
        if range.is_empty() {
            return Ok(());
        }
        let core = self.held.core()?;
        let mut tries = ROOM_TRIES;
        self.pay()?;
        loop {
            let lack = {
                let mut state = self.held.lock();
                state.check_alive()?;
                state.grant(&core, &range, keeps, &mut grant.pins)
            };
            match lack {
                None => break,
                Some(Lack::Memory(e)) => {
                    if tries == 0
                        || core.make_room(wanted(&e, &range), (&self.held, &range), None)? == 0
                    {
                        return Err(e);
                    }
                    tries -= 1;
                }
                Some(Lack::Block(block)) => {
                    let mut backing = self.held.backing();
                    self.held.load_block(&mut backing, block)?;
                }
            }
        }
        grant.own(&self.held);
        Ok(())
    }
}

impl Subfile for DiskSubfile {
    fn identity(&self) -> Identity {
        self.held.lock().identity.clone()
    }

    fn len(&self) -> u64 {
        self.held.lock().len
    }

    fn pin(&self, range: Range<u64>, pins: &mut Pins) -> Result<()> {
        check(&range)?;
        if range.is_empty() {
            return Ok(());
        }
        let core = self.held.core()?;
        let mut at = {
            let mut state = self.held.lock();
            state.check_alive()?;
            state
                .table
                .pin_loaded(range.clone(), pins, core.cache.tick())
        };
        let count = |counter: &AtomicU64, bytes: u64| {
            counter.fetch_add(bytes, Ordering::Relaxed);
        };
        if !pins.is_again {
            count(&core.cache.hit_bytes, at - range.start);
        }
        if at == range.end {
            return Ok(());
        }
        let mut backing = self.held.backing();
        let last = range.end.div_ceil(BLOCK);
        while at < range.end {
            let block = at / BLOCK;
            let end = self.held.lock().table.unloaded_until(block, last);
            let loaded = self.held.load(&mut backing, block, end.max(block + 1))?;
            let mut state = match loaded {
                LoadedRange::Hole(_) => self.held.lock(),
                LoadedRange::Data(count) => {
                    let bytes = std::mem::take(&mut backing.staging);
                    let span = block * BLOCK..(block + count) * BLOCK;
                    let filled = self.held.fill(&span, Some(&mut backing));
                    let filled = filled.map(|mut state| {
                        for (k, part) in bytes.chunks_exact(BLOCK as usize).enumerate() {
                            state.table.install(block + k as u64, Some(part));
                        }
                        state
                    });
                    backing.staging = bytes;
                    filled?
                }
            };
            state.check_alive()?;
            if let LoadedRange::Hole(count) = loaded {
                let hole_end = (block + count) * BLOCK;
                match state.table.first_part(at..range.end) {
                    TableRange::Gap(gap) => {
                        let end = gap.end.min(hole_end);
                        pins.push(at, end - at, None);
                        at = end;
                    }
                    TableRange::Extent { range: part, .. } => {
                        let blocks = touched(&(part.start..part.end.min(hole_end)));
                        blocks.for_each(|b| state.table.install(b, None));
                    }
                }
            }
            let from = at;
            at = state
                .table
                .pin_loaded(at..range.end, pins, core.cache.tick());
            if !pins.is_again {
                // What lay between is counted as it was found.
                let read = match loaded {
                    LoadedRange::Data(count) => ((block + count) * BLOCK).clamp(from, at) - from,
                    LoadedRange::Hole(_) => 0,
                };
                count(&core.cache.miss_bytes, read);
                count(&core.cache.hit_bytes, at - from - read);
            }
        }
        Ok(())
    }

    fn read_ahead(&self, range: Range<u64>) -> Result<u64> {
        check(&range)?;
        self.held.read_ahead(range)
    }

    fn grant(&self, range: Range<u64>, grant: &mut Grant) -> Result<()> {
        self.grant_blocks(range, false, grant)
    }

    fn grant_gaps(&self, range: Range<u64>, grant: &mut Grant) -> Result<()> {
        self.grant_blocks(range, true, grant)
    }

    fn truncate(&self, len: u64) -> Result<()> {
        check(&(0..len))?;
        self.held.truncate(len)
    }

    fn punch(&self, range: Range<u64>) -> Result<()> {
        check(&range)?;
        let mut backing = self.held.backing();
        self.held.lock().check_alive()?;
        self.held.cut(&mut backing, range)?;
        self.held.flush_cut(&mut backing)
    }

    fn preallocate(&self, range: Range<u64>) -> Result<()> {
        check(&range)?;
        let end = range.end;
        let mut backing = self.held.backing();
        self.held.lock().check_alive()?;
        backing.file.reserve(touched(&range))?;
        self.held.lock().raise_len(end);
        Ok(())
    }

    fn keep_ahead(&self, end: u64) -> Result<()> {
        check(&(0..end))?;
        check_reach(end)?;
        let mut backing = self.held.backing();
        let (len, before) = {
            let state = self.held.lock();
            state.check_alive()?;
            (state.len, state.kept_to)
        };
        let mut taken = Ok(());
        let mut stays = end;
        if end > before {
            taken = backing.file.reserve(touched(&(0..end)));
            if taken.is_err() {
                // What was taken in vain is for others.
                stays = before;
            }
        }
        let spare = stays.max(len)..end.max(before);
        if !spare.is_empty() {
            let spare = spare.start.div_ceil(BLOCK)..spare.end.div_ceil(BLOCK);
            backing.file.give_back(spare);
            // All behind the end of the data file went with it.
            let again = backing.file.reserve(touched(&(0..stays)));
            if let Err(error) = again {
                tracing::debug!(%error, "others were faster with space that was to stay");
            }
        }
        if taken.is_ok() {
            self.held.lock().kept_to = end;
        }
        taken
    }

    fn flush(&self) -> Result<()> {
        let core = self.held.core()?;
        core.guarded(&self.held, |held, backing| {
            held.write_back(backing, u64::MAX, Target::System)
                .map(|_| ())
        })
    }

    fn sync(&self) -> Result<()> {
        self.sync_bytes()?;
        self.held.core()?.records.settle()
    }

    fn sync_bytes(&self) -> Result<()> {
        let core = self.held.core()?;
        core.guarded(&self.held, |held, backing| {
            held.write_back(backing, u64::MAX, Target::Disk)?;
            backing.file.sync()?;
            core.note_kept(held, backing);
            Ok(())
        })
    }

    fn allocated(&self) -> Result<u64> {
        self.held.backing().file.allocated()
    }

    fn scrub(&self) -> Result<Scrub> {
        self.held.backing().file.scrub()
    }

    fn set_domain(&self, domain: Domain) -> Result<()> {
        loop {
            self.flush()?;
            let _backing = self.held.backing();
            let mut state = self.held.lock();
            state.check_alive()?;
            if !state.table.is_dirty() {
                // Everything is on disk: let go of the old domain's memory and load anew.
                state.table.clear();
                state.identity.domain = domain;
                state.put_identity_on_record();
                return Ok(());
            }
        }
    }

    fn set_note(&self, note: &[u8]) -> Result<()> {
        check_note(note)?;
        let mut state = self.held.lock();
        state.check_alive()?;
        state.identity.note = note.to_vec();
        state.put_identity_on_record();
        Ok(())
    }

    /// Only what is in memory as a whole.
    fn extents(&self, range: Range<u64>, most: usize, map: u64) -> Result<Vec<Location>> {
        check(&range)?;
        let mut state = self.held.lock();
        state.check_alive()?;
        let found = state.table.meeting(range);
        let whole = found.filter(|(_, slot)| slot.is_whole()).take(most);
        let list: Vec<Location> = whole
            .map(|(start, slot)| Location::of(start, &slot.extent))
            .collect();
        for location in &list {
            let slot = state.table.slot_mut(location.offset).expect("found above");
            slot.mapped = slot.mapped.max(Some(map));
        }
        Ok(list)
    }

    fn is_mappable(&self, range: Range<u64>) -> bool {
        self.held.lock().table.covers(range, |slot| slot.is_whole())
    }

    fn unmap(&self, before: u64) {
        self.held.lock().table.unmap(before);
    }

    fn let_store(&self, start: u64, map: u64) -> bool {
        let mut state = self.held.lock();
        let may_take = !state.removed && !state.is_owing;
        let slot = state.table.slot_mut(start);
        // Grants that come later find all blocks loaded and leave them so.
        let may_store =
            slot.is_some_and(|s| may_take && s.mapped >= Some(map) && (s.storable || s.is_whole()));
        if may_store {
            state.table.let_store(start);
            state.put_on_record();
        }
        may_store
    }

    fn reserve(&self, range: Range<u64>) -> Result<()> {
        check(&range)?;
        check_reach(range.end)?;
        self.pay()?;
        for part in rounds(range, CHUNK) {
            let span = self.held.fill(&part, None)?.table.span(part);
            // All blocks of the extents, holes as zeros.
            self.pin(span, &mut Pins::new())?;
        }
        self.held.lock().check_alive()
    }

    fn stored_to(&self, end: u64) -> Result<()> {
        check_reach(end)?;
        let mut state = self.held.lock();
        state.check_alive()?;
        state.raise_len(end);
        Ok(())
    }

    fn trim(&self) {
        let mut state = self.held.lock();
        let len = state.len;
        state.table.trim(len);
    }

    /// Dirty bytes are written back first, so that nothing has to be copied.
    fn set_aside(&self, range: Range<u64>, _keep: u64, aside: &mut Aside) -> Result<()> {
        check(&range)?;
        loop {
            self.flush()?;
            let _backing = self.held.backing();
            let mut state = self.held.lock();
            state.check_alive()?;
            if state
                .table
                .meeting(range.clone())
                .any(|(_, s)| !s.dirty.is_empty())
            {
                continue;
            }
            let starts: Vec<u64> = state.table.meeting(range).map(|(s, _)| s).collect();
            for start in starts {
                let slot = state.table.remove(start).expect("listed above");
                if let Some(account) = state.table.account() {
                    account.note_aside(&slot.extent);
                    account.settle();
                }
                aside.push(slot.extent, false);
            }
            return Ok(());
        }
    }

    fn mark_written(&self, range: Range<u64>) -> Result<()> {
        check(&range)?;
        let mut state = self.held.lock();
        state.check_alive()?;
        // Whatever lies behind the length is zero, and no block on disk.
        let end = range.end.min(state.len.next_multiple_of(BLOCK));
        state.table.mark_stored(range.start..end);
        state.put_on_record();
        Ok(())
    }
}

/// Bytes to make room for; none if memory is not what is missing. Room for all of a range is made at once:
/// a piece at a time it would not be there before the tries are over.
fn wanted(e: &Error, range: &Range<u64>) -> u64 {
    match e {
        Error::NoSpace {
            resource: Resource::Memory | Resource::Segments,
            wanted_bytes,
        } => (*wanted_bytes).max(UNIT).max(range.end - range.start),
        _ => 0,
    }
}
