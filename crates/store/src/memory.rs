//! Subfiles in memory: extents of a [`Pool`], nothing else.
//!
//! In place, mappable, not durable: after `sync` the bytes survive the death of clients. With a ledger they survive the
//! death of the server too: the next process adopts them ([`MemoryStore::adopt`]). Without one a restarted server has another
//! incarnation, and what was bound to the old one is reported as lost by those who know incarnations; a memory store starts empty.
//!
//! Invariants: every block of every extent is loaded; a byte without an extent is zero; at the time
//! of a truncation everything behind the new length is zeroed or freed, so growth needs no work. With a ledger, every operation has
//! put on record what it changed when it returns, as one batch or as several each of which leaves a state that the running store may
//! have too; dropping the store leaves the record and the memory as they are.

#[cfg(test)]
mod laws;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::aside::Aside;
use crate::error::{Error, Result};
use crate::identity::{Domain, Identity, MAX_LEN, NOTE_BYTES, SubfileId};
use crate::ledger::account::Account;
use crate::ledger::entries::{StoreKind, SubfileEntry};
use crate::ledger::{Batch, Ledger, refuse};
use crate::pins::{Grant, GrantEnd, Pin, Pins};
use crate::pool::{Extent, Pool, UNIT};
use crate::store::{Capabilities, Location, Scrub, Store, Subfile, Usage, check};
use crate::table::{Fill, Table, TableRange};
use parking_lot::{Mutex, MutexGuard};

/// Keeps subfiles in memory.
#[derive(Debug)]
pub struct MemoryStore {
    pool: Pool,
    subfiles: Mutex<BTreeMap<SubfileId, Arc<SharedSubfile>>>,
    record: Option<Record>,
}

/// Where subfiles are on record.
#[derive(Debug)]
struct Record {
    ledger: Ledger,
    /// The number that the next subfile has there.
    next: AtomicU64,
}

/// The shared part of all handles of one subfile.
#[derive(Debug)]
struct SharedSubfile {
    pool: Pool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    identity: Identity,
    table: Table,
    len: u64,
    /// Space below this stays, also behind the length.
    kept_to: u64,
    /// How often it was truncated: what was granted apart before does not count any more.
    cuts: u64,
    removed: bool,
}

/// One handle.
#[derive(Debug)]
struct MemorySubfile {
    held: Arc<SharedSubfile>,
}

impl MemoryStore {
    /// An empty store on a pool that other stores may share.
    pub fn new(pool: Pool) -> Self {
        MemoryStore {
            pool,
            subfiles: Mutex::default(),
            record: None,
        }
    }

    /// An empty store whose subfiles can be adopted by the next process. The pool has the same ledger.
    pub fn with_ledger(pool: Pool, ledger: Ledger) -> Self {
        let record = Record {
            ledger,
            next: AtomicU64::new(0),
        };
        MemoryStore {
            record: Some(record),
            ..MemoryStore::new(pool)
        }
    }

    /// The store of a process that was killed, on the pool that was adopted with the same ledger. Who knows how far clients had
    /// stored says that ([`Subfile::stored_to`]) and calls [`MemoryStore::clear_ahead`] before anybody reads.
    pub fn adopt(pool: Pool, ledger: Ledger) -> Result<Self> {
        let mut states = BTreeMap::new();
        let mut batch = Batch::new();
        let mut current: HashMap<SubfileId, u64> = HashMap::new();
        let entries = ledger.subfiles(StoreKind::Memory)?;
        for SubfileEntry {
            number,
            identity,
            len,
        } in entries
        {
            let account = Account::adopted(ledger.clone(), StoreKind::Memory, number);
            // One that was made again while the one before was being removed: the younger counts.
            if let Some(older) = current.insert(identity.id, number) {
                batch.remove_subfile(older);
            }
            let state = State {
                identity,
                table: Table::with_account(account),
                len: len.unwrap_or(0),
                kept_to: 0,
                cuts: 0,
                removed: false,
            };
            states.insert(number, state);
        }
        let others = ledger.subfiles(StoreKind::Disk)?;
        let others: BTreeSet<u64> = others.into_iter().map(|entry| entry.number).collect();
        for entry in ledger.extents()? {
            let Some(state) = states.get_mut(&entry.subfile) else {
                if others.contains(&entry.subfile) {
                    continue;
                }
                return Err(refuse("has an extent of an unknown subfile"));
            };
            let extent = pool.claim(entry.memory)?;
            let range = entry.start..entry.start + extent.len();
            if entry.blocks.is_some() || state.table.meeting(range).next().is_some() {
                return Err(refuse("has extents of a subfile that overlap"));
            }
            state.table.put_in(entry.start, extent, Fill::Loaded, 0);
        }
        // From here on nothing fails.
        let next = ledger.next_subfile()?;
        for (number, state) in &mut states {
            if current[&state.identity.id] != *number {
                state.table.clear();
            }
        }
        states.retain(|number, state| current[&state.identity.id] == *number);
        ledger.write(&batch);
        let held = |state: State| SharedSubfile {
            pool: pool.clone(),
            state: Mutex::new(state),
        };
        let subfiles = states.into_values();
        let subfiles = subfiles.map(|state| (state.identity.id, Arc::new(held(state))));
        Ok(MemoryStore {
            subfiles: Mutex::new(subfiles.collect()),
            record: Some(Record {
                ledger,
                next: AtomicU64::new(next),
            }),
            pool,
        })
    }

    /// Zeroes what lies behind the length of every subfile, which clients of a process that was killed may have stored
    /// without saying so. For who has adopted a store.
    pub fn clear_ahead(&self) {
        let subfiles: Vec<Arc<SharedSubfile>> = self.lock().values().cloned().collect();
        for held in subfiles {
            let state = held.lock();
            for (start, slot) in state.table.meeting(state.len..MAX_LEN) {
                let from = state.len.max(start) - start;
                slot.extent.zero(from, slot.extent.len() - from);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SubfileId, Arc<SharedSubfile>>> {
        self.subfiles.lock()
    }
}

impl Store for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            in_place: true,
            mappable: true,
            durable: false,
            smallest_extent_bytes: UNIT,
        }
    }

    fn create(&self, identity: &Identity) -> Result<Arc<dyn Subfile>> {
        check_note(&identity.note)?;
        let mut subfiles = self.lock();
        if subfiles.contains_key(&identity.id) {
            return Err(Error::Exists(identity.id));
        }
        let mut table = Table::default();
        if let Some(record) = &self.record {
            let number = record.next.fetch_add(1, Ordering::Relaxed);
            let ledger = record.ledger.clone();
            let mut account = Account::new(ledger, StoreKind::Memory, number);
            account.note_identity(identity);
            account.settle();
            table = Table::with_account(account);
        }
        let held = Arc::new(SharedSubfile {
            pool: self.pool.clone(),
            state: Mutex::new(State {
                identity: identity.clone(),
                table,
                len: 0,
                kept_to: 0,
                cuts: 0,
                removed: false,
            }),
        });
        subfiles.insert(identity.id, Arc::clone(&held));
        Ok(Arc::new(MemorySubfile { held }))
    }

    fn open(&self, id: SubfileId) -> Result<Arc<dyn Subfile>> {
        let held = self.lock().get(&id).cloned().ok_or(Error::NotFound(id))?;
        Ok(Arc::new(MemorySubfile { held }))
    }

    fn remove(&self, id: SubfileId) -> Result<()> {
        let held = self.lock().remove(&id).ok_or(Error::NotFound(id))?;
        let mut state = held.lock();
        state.removed = true;
        state.len = 0;
        if let Some(account) = state.table.account() {
            account.note_end();
        }
        state.table.clear();
        Ok(())
    }

    fn list(&self) -> Result<Vec<Identity>> {
        let subfiles = self.lock();
        Ok(subfiles
            .values()
            .map(|h| h.lock().identity.clone())
            .collect())
    }

    fn write_back(&self, _budget_bytes: u64) -> Result<u64> {
        Ok(0)
    }

    fn usage(&self) -> Usage {
        let pool = self.pool.usage();
        Usage {
            memory_bytes: pool.used_bytes,
            memory_limit_bytes: pool.limit_bytes,
            ..Usage::default()
        }
    }
}

impl SharedSubfile {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn check_alive(&self) -> Result<()> {
        if self.removed {
            return Err(Error::NotFound(self.identity.id));
        }
        Ok(())
    }

    fn put_identity_on_record(&mut self) {
        if let Some(account) = self.table.account() {
            account.note_identity(&self.identity);
            account.settle();
        }
    }

    /// An extent was taken out that a client may still store into.
    fn put_aside_on_record(&mut self, extent: &Extent) {
        if let Some(account) = self.table.account() {
            account.note_aside(extent);
            account.settle();
        }
    }

    /// Notes another length; the caller settles.
    fn set_len(&mut self, len: u64) {
        if self.len != len {
            self.len = len;
            if let Some(account) = self.table.account() {
                account.note_length(len);
            }
        }
    }

    /// Gives back what lies behind the length and behind what is to stay.
    fn trim(&mut self) {
        let end = self.len.max(self.kept_to);
        self.table.trim(end);
    }

    /// Raises the length, on record too.
    fn raise_len(&mut self, end: u64) {
        self.set_len(self.len.max(end));
        self.table.settle();
    }

    /// To where a punch goes: to the end of the last extent, if nothing else of it is below the length. The space behind that belongs to
    /// nobody, and would keep the extent.
    fn end_of_punch(&self, range: &Range<u64>) -> u64 {
        let last = self.len.checked_sub(1).filter(|_| range.end >= self.len);
        match last.and_then(|last| self.table.find(last)) {
            Some((start, slot)) if start >= range.start => range.end.max(start + slot.extent.len()),
            _ => range.end,
        }
    }

    /// Fills the gaps of a range with extents of zeros, or leaves everything as it was: what was asked for in vain is not
    /// kept from others.
    fn reserve(&mut self, range: Range<u64>, pool: &Pool) -> Result<()> {
        check(&range)?;
        self.check_alive()?;
        let starts = |table: &Table| -> BTreeSet<u64> {
            let found = table.meeting(range.clone());
            found.map(|(start, _)| start).collect()
        };
        let before = starts(&self.table);
        let domain = self.identity.domain;
        let filled = self
            .table
            .fill(range.clone(), Fill::Loaded, 0, pool, domain);
        if filled.is_err() {
            let after = starts(&self.table);
            for start in after.into_iter().filter(|start| !before.contains(start)) {
                self.table.remove(start);
            }
            self.table.settle();
        }
        filled
    }

    /// Puts an extent that was apart where it belongs. Should another thread have been faster with one that
    /// overlaps it, its bytes go there.
    fn take_in(&mut self, pin: &Pin, pool: &Pool) -> Result<()> {
        let (extent, at) = pin.memory.as_ref().expect("granted space has memory");
        let start = pin.offset - at;
        if self
            .table
            .meeting(start..start + extent.len())
            .next()
            .is_none()
        {
            self.table
                .insert(start, Arc::clone(extent), Fill::Loaded, 0);
            return Ok(());
        }
        let domain = self.identity.domain;
        self.table
            .fill(pin.range(), Fill::Loaded, 0, pool, domain)?;
        for (found, slot) in self.table.meeting(pin.range()) {
            let lo = pin.offset.max(found);
            let hi = (pin.offset + pin.len).min(found + slot.extent.len());
            slot.extent
                .copy_part_from(lo - found, extent, lo - start, hi - lo);
        }
        Ok(())
    }
}

impl GrantEnd for SharedSubfile {
    fn commit(&self, pins: &Pins) -> Result<()> {
        let mut state = self.lock();
        state.check_alive()?;
        // All or nothing: a piece whose extent is gone was overtaken by a truncation.
        let mut end = 0;
        for pin in &pins.list {
            let (extent, _) = pin.memory.as_ref().expect("granted space has memory");
            let is_current = match pin.apart {
                Some(cuts) => cuts == state.cuts && extent.domain() == state.identity.domain,
                None => {
                    let found = state.table.find(pin.offset);
                    found.is_some_and(|(_, slot)| Arc::ptr_eq(&slot.extent, extent))
                }
            };
            if !is_current {
                return Err(Error::Stale);
            }
            end = end.max(pin.offset + pin.len);
        }
        let mut apart = pins.list.iter().filter(|pin| pin.apart.is_some());
        let taken_in = apart.try_for_each(|pin| state.take_in(pin, &self.pool));
        if taken_in.is_ok() {
            let len = state.len.max(end);
            state.set_len(len);
        }
        state.table.settle();
        taken_in
    }

    /// Behind the length everything is zero, so what was stored there has to go; unless a client with a
    /// map may have stored there too, and it counts.
    fn abandon(&self, pins: &Pins) {
        let state = self.lock();
        for pin in pins.list.iter().filter(|pin| pin.apart.is_none()) {
            let (extent, at) = pin.memory.as_ref().expect("granted space has memory");
            let of = state.table.find(pin.offset).map(|(_, slot)| slot);
            if of.is_some_and(|slot| slot.storable && Arc::ptr_eq(&slot.extent, extent)) {
                continue;
            }
            let behind = state.len.clamp(pin.offset, pin.offset + pin.len) - pin.offset;
            extent.zero(at + behind, pin.len - behind);
        }
    }
}

impl Subfile for MemorySubfile {
    fn identity(&self) -> Identity {
        self.held.lock().identity.clone()
    }

    fn len(&self) -> u64 {
        self.held.lock().len
    }

    fn pin(&self, range: Range<u64>, pins: &mut Pins) -> Result<()> {
        check(&range)?;
        let mut state = self.held.lock();
        state.check_alive()?;
        state.table.pin(range, pins, 0);
        Ok(())
    }

    fn grant(&self, range: Range<u64>, grant: &mut Grant) -> Result<()> {
        check(&range)?;
        let mut state = self.held.lock();
        state.check_alive()?;
        let domain = state.identity.domain;
        let pool = &self.held.pool;
        state
            .table
            .fill(range.clone(), Fill::Loaded, 0, pool, domain)?;
        state.table.pin(range, &mut grant.pins, 0);
        grant.own(&self.held);
        Ok(())
    }

    /// Where there is no extent yet: those that there are may be mapped.
    fn grant_apart(&self, range: Range<u64>, grant: &mut Grant) -> Result<()> {
        check(&range)?;
        if !grant.is_empty() {
            // Ranges of one grant may want the same extent.
            return self.grant(range, grant);
        }
        let mut state = self.held.lock();
        state.check_alive()?;
        let (domain, cuts) = (state.identity.domain, state.cuts);
        let pool = &self.held.pool;
        let (mut at, mut floor) = (range.start, 0);
        while at < range.end {
            let gap = match state.table.first_part(at..range.end) {
                TableRange::Extent { range: part, .. } => {
                    at = part.end;
                    state.table.pin(part, &mut grant.pins, 0);
                    continue;
                }
                TableRange::Gap(gap) => gap,
            };
            let part_of = |start: u64, class: usize| {
                let end = range.end.min(start + (UNIT << class));
                at - start..end - start
            };
            let (start, class) = state.table.choose(gap, floor, pool.largest_class());
            let (start, extent) = match pool.allocate_around(domain, class, part_of(start, class)) {
                Ok(extent) => (start, extent),
                Err(_) if class > 0 => {
                    let start = at / UNIT * UNIT;
                    let part = part_of(start, 0);
                    (start, pool.allocate_around(domain, 0, part)?)
                }
                Err(e) => return Err(e),
            };
            floor = start + extent.len();
            let end = range.end.min(floor);
            let memory = (extent, at - start);
            grant.pins.push_apart(at, end - at, memory, cuts);
            at = end;
        }
        grant.own(&self.held);
        Ok(())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        check(&(0..len))?;
        let mut state = self.held.lock();
        state.check_alive()?;
        state.cuts += 1;
        state.set_len(len);
        state.table.punch(len..MAX_LEN);
        let kept_to = state.kept_to;
        if kept_to > len && state.reserve(len..kept_to, &self.held.pool).is_err() {
            // Others were faster.
            state.kept_to = len;
        }
        Ok(())
    }

    fn punch(&self, range: Range<u64>) -> Result<()> {
        check(&range)?;
        let mut state = self.held.lock();
        state.check_alive()?;
        let range = range.start..state.end_of_punch(&range);
        state.table.punch(range);
        Ok(())
    }

    fn release(&self, range: Range<u64>) -> Result<()> {
        check(&range)?;
        let mut state = self.held.lock();
        state.check_alive()?;
        state.table.release(range);
        Ok(())
    }

    fn preallocate(&self, range: Range<u64>) -> Result<()> {
        let end = range.end;
        let mut state = self.held.lock();
        state.reserve(range, &self.held.pool)?;
        state.raise_len(end);
        Ok(())
    }

    fn keep_ahead(&self, end: u64) -> Result<()> {
        let mut state = self.held.lock();
        if end > state.kept_to {
            state.reserve(0..end, &self.held.pool)?;
        }
        state.kept_to = end;
        state.trim();
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// Space behind the length belongs to nobody yet, unless it was asked for.
    fn allocated(&self) -> Result<u64> {
        let state = self.held.lock();
        let ahead = state
            .table
            .behind(state.len.max(state.kept_to))
            .map(|(_, slot)| slot.extent.len());
        Ok(state.table.bytes() - ahead.sum::<u64>())
    }

    fn scrub(&self) -> Result<Scrub> {
        Ok(Scrub::default())
    }

    fn set_domain(&self, domain: Domain) -> Result<()> {
        let mut state = self.held.lock();
        state.check_alive()?;
        let starts: Vec<u64> = state.table.slots().map(|(start, _)| start).collect();
        for start in starts {
            // One by one, so that room for one is enough; what was moved before a failure has moved.
            let old = Arc::clone(&state.table.find(start).expect("listed above").1.extent);
            if old.domain() != domain {
                let copy = copy_of(&old, &self.held.pool, domain)?;
                state.table.replace(start, copy);
                state.table.settle();
            }
        }
        state.identity.domain = domain;
        state.put_identity_on_record();
        Ok(())
    }

    fn set_note(&self, note: &[u8]) -> Result<()> {
        check_note(note)?;
        let mut state = self.held.lock();
        state.check_alive()?;
        state.identity.note = note.to_vec();
        state.put_identity_on_record();
        Ok(())
    }

    fn extents(&self, range: Range<u64>, most: usize, _map: u64) -> Result<Vec<Location>> {
        check(&range)?;
        let state = self.held.lock();
        state.check_alive()?;
        let found = state.table.meeting(range).take(most);
        Ok(found
            .map(|(start, slot)| Location::of(start, &slot.extent))
            .collect())
    }

    fn is_mappable(&self, range: Range<u64>) -> bool {
        self.held.lock().table.covers(range, |_| true)
    }

    fn unmap(&self, before: u64) {
        self.held.lock().table.unmap(before);
    }

    /// Nothing is evicted here, so only maps to store with are of interest.
    fn let_store(&self, start: u64, map: u64) -> bool {
        let mut state = self.held.lock();
        let Some(slot) = state.table.slot_mut(start) else {
            return false;
        };
        slot.mapped = slot.mapped.max(Some(map));
        slot.storable = true;
        true
    }

    fn reserve(&self, range: Range<u64>) -> Result<()> {
        self.held.lock().reserve(range, &self.held.pool)
    }

    fn stored_to(&self, end: u64) -> Result<()> {
        check(&(0..end))?;
        let mut state = self.held.lock();
        state.check_alive()?;
        state.raise_len(end);
        Ok(())
    }

    fn trim(&self) {
        self.held.lock().trim();
    }

    fn set_aside(&self, range: Range<u64>, keep: u64, aside: &mut Aside) -> Result<()> {
        check(&range)?;
        let mut state = self.held.lock();
        state.check_alive()?;
        let starts: Vec<u64> = state.table.meeting(range).map(|(s, _)| s).collect();
        // What is not kept makes room for the copies of the rest.
        for &start in starts.iter().filter(|&&start| start >= keep) {
            let slot = state.table.remove(start).expect("listed above");
            state.put_aside_on_record(&slot.extent);
            aside.push(slot.extent, false);
        }
        let domain = state.identity.domain;
        for &start in starts.iter().filter(|&&start| start < keep) {
            let (_, slot) = state.table.find(start).expect("listed above");
            let copy = copy_of(&slot.extent, &self.held.pool, domain)?;
            let old = state.table.replace(start, copy).expect("listed above");
            state.put_aside_on_record(&old);
            aside.push(old, true);
        }
        Ok(())
    }

    fn mark_written(&self, range: Range<u64>) -> Result<()> {
        check(&range)?;
        self.held.lock().check_alive()
    }
}

/// A fresh extent with the same bytes.
fn copy_of(extent: &Extent, pool: &Pool, domain: Domain) -> Result<Arc<Extent>> {
    let class = (extent.len() / UNIT).trailing_zeros() as usize;
    let copy = pool.allocate(domain, class)?;
    copy.copy_from(extent);
    Ok(copy)
}

/// A note must fit its place in a header.
pub(crate) fn check_note(note: &[u8]) -> Result<()> {
    if note.len() > NOTE_BYTES {
        return Err(Error::argument(
            "note",
            format!("{} bytes; at most {NOTE_BYTES} fit", note.len()),
        ));
    }
    Ok(())
}
