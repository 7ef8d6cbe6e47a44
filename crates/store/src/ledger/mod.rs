//! What a server must find again when its process was killed: a small map, kept as a journal in shared memory.
//!
//! ```text
//! memfd   | header | area 0: batch batch batch . . . | area 1: . . . |
//!            life, stamp, which area counts, how far each does
//! ```
//!
//! A *change* sets or removes one entry of the map; entries have a kind, a key and a value. A *batch* of changes is written
//! behind the others, and counts from the store of one word on: a process that is killed at any moment leaves it out as a
//! whole, or not at all. When the journal has grown to several times of what the map holds, the map is written to the other area, and
//! the store of one word makes that the one that counts.
//!
//! The descriptor lies with a keeper that outlives the process ([`Keeping`]). [`Ledger::adopt`] replays the journal, or refuses it
//! as a whole: other version, other stamp (another boot of the host, another server), any damage.
//!
//! Invariants
//! - What [`Ledger::write`] has returned for is found by the process that adopts the descriptor.
//! - The index in the heap says where the value of each live entry is in the area that counts; replaying that area gives the
//!   same index.
//! - Nothing here fails an access. A ledger without room, or without memory from the system, is *void*: it says so in its header,
//!   is adopted by nobody, and everything goes on as without one.
//!
//! Left to others: what the entries mean. Kinds below [`FIRST_FOREIGN_KIND`] belong to this crate.
//!
//! Cost: a batch takes one lock and a copy of its bytes; a compaction takes as long as the map is large, and comes after as many
//! bytes of changes. The format: `docs/formats/ledger.md`; why: ADR 0032.

pub(crate) mod account;
pub(crate) mod entries;
mod format;
mod keeping;
#[cfg(test)]
mod laws;
pub mod twin;

use std::collections::HashMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::segment::{Pages, Segment};
use format::{AREA_AT, Header, Key, PAGE, VOID, Word};

pub(crate) use format::refuse;
pub use format::{Batch, MAX_KEY, MAX_VALUE};
pub use keeping::{Keeping, LEDGER_NAME, segment_name};

/// Kinds from here on belong to who uses the store.
pub const FIRST_FOREIGN_KIND: u8 = 64;

/// Bytes of each of the two areas: address space, most of which never has memory.
const AREA_BYTES: u64 = 1 << 30;
/// Memory is taken from the system in steps of this.
const STEP: u64 = 1 << 20;
/// Memory of the area that does not count that is kept for the next compaction.
const KEPT: u64 = 8 << 20;
/// A journal is compacted when it has so many times the bytes of the map, and [`SLACK`] more.
const TIMES: u64 = 4;
const SLACK: u64 = 4 << 20;
/// A compaction writes batches of about so many bytes.
const PORTION: usize = 64 << 10;

/// What outlives the process. Clones share it.
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<LedgerCore>,
}

struct LedgerCore {
    life: u64,
    keeping: Arc<dyn Keeping>,
    journal: Mutex<Journal>,
}

/// The journal and where everything is in it.
struct Journal {
    memory: Segment,
    life: u64,
    area_bytes: u64,
    /// The area that counts.
    area: u64,
    /// Bytes of it that count.
    head: u64,
    /// Bytes of each area that surely have memory.
    committed: [u64; 2],
    mirror: Mirror,
    /// A batch as it is written.
    scratch: Vec<u8>,
    /// Where the journal is compacted next.
    compact_at: u64,
    compactions: u64,
    is_void: bool,
    /// Told before and after each batch counts.
    #[cfg(test)]
    watcher: Option<Arc<dyn Fn() + Send + Sync>>,
}

/// The map: where each of its values is.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mirror {
    index: HashMap<Key, Place>,
    /// Bytes that its entries take in a journal.
    live: u64,
}

/// Where a value is in the memfd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    at: u64,
    len: u16,
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let journal = self.shared.journal.lock();
        f.debug_struct("Ledger")
            .field("life", &self.shared.life)
            .field("entries", &journal.mirror.index.len())
            .field("head", &journal.head)
            .field("is_void", &journal.is_void)
            .finish_non_exhaustive()
    }
}

impl Ledger {
    /// An empty ledger of a new memory life, whose descriptor is kept. `stamp` says for whom and for which boot of the host.
    pub fn new(keeping: Arc<dyn Keeping>, stamp: &[u8]) -> Result<Ledger> {
        Ledger::with_area(keeping, stamp, AREA_BYTES)
    }

    /// As [`Ledger::new`], with areas of another size.
    pub fn with_area(keeping: Arc<dyn Keeping>, stamp: &[u8], area_bytes: u64) -> Result<Ledger> {
        let area_bytes = area_bytes.max(1).next_multiple_of(PAGE);
        let life = draw_life()?;
        let header = Header { life, area_bytes };
        let page = header.encode(stamp)?;
        let memory = Segment::new(0, AREA_AT + 2 * area_bytes, Pages::Small)?;
        let committed = memory.commit(0, AREA_AT);
        committed.map_err(|e| Error::io("taking memory for the ledger", e, AREA_AT))?;
        memory.copy_in(0, &page);
        let mut journal = Journal::new(memory, &header);
        journal.store(Word::Head(0), 0);
        journal.store(Word::Head(1), 0);
        journal.store(Word::Area, 0);
        let kept = keeping.keep(LEDGER_NAME, journal.memory.descriptor());
        kept.map_err(|e| Error::io("giving the ledger to its keeper", e, 0))?;
        Ok(Ledger::of(journal, keeping))
    }

    /// The ledger of an earlier process, which must have the same stamp. Refused is what another version wrote, what belongs to
    /// another stamp, what was given up, and what is damaged anywhere.
    pub fn adopt(descriptor: OwnedFd, keeping: Arc<dyn Keeping>, stamp: &[u8]) -> Result<Ledger> {
        let memory = Segment::adopt(0, descriptor, Pages::Small)?;
        if memory.len() < AREA_AT {
            return Err(format::refuse("is shorter than its header"));
        }
        let mut page = vec![0; PAGE as usize];
        memory.copy_out(0, &mut page);
        let header = Header::decode(&page, stamp)?;
        if memory.len() != AREA_AT + 2 * header.area_bytes {
            return Err(format::refuse("has another length than its header says"));
        }
        let mut journal = Journal::new(memory, &header);
        journal.replay()?;
        Ok(Ledger::of(journal, keeping))
    }

    fn of(journal: Journal, keeping: Arc<dyn Keeping>) -> Ledger {
        Ledger {
            shared: Arc::new(LedgerCore {
                life: journal.life,
                keeping,
                journal: Mutex::new(journal),
            }),
        }
    }

    /// The number of the memory life: the same for as long as the memory is adopted, another one after it was lost.
    pub fn life(&self) -> u64 {
        self.shared.life
    }

    /// Who keeps the descriptors.
    pub fn keeping(&self) -> &Arc<dyn Keeping> {
        &self.shared.keeping
    }

    /// Makes all changes of a batch, in their order, or none of them if the process is killed meanwhile. When it
    /// returns they are made, or the ledger is void.
    pub fn write(&self, batch: &Batch) {
        if !batch.is_empty() {
            self.shared.journal.lock().write(batch);
        }
    }

    /// Whether nobody can adopt it any more: the system had no memory for it, or it had no room.
    pub fn is_void(&self) -> bool {
        self.shared.journal.lock().is_void
    }

    /// Gives the ledger up: nothing of it is ever adopted. For who finds that what it says cannot be kept.
    pub fn give_up(&self) {
        self.shared.journal.lock().give_up();
    }

    /// All entries of a kind with their values, ascending by key.
    pub fn entries(&self, kind: u8) -> Vec<(Vec<u8>, Vec<u8>)> {
        let journal = self.shared.journal.lock();
        let of_kind = journal
            .mirror
            .index
            .iter()
            .filter(|(key, _)| key.kind() == kind);
        let mut entries: Vec<(Vec<u8>, Vec<u8>)> = of_kind
            .map(|(key, place)| (key.bytes().to_vec(), journal.value(*place)))
            .collect();
        entries.sort_unstable();
        entries
    }

    /// The value of an entry.
    pub fn get(&self, kind: u8, key: &[u8]) -> Option<Vec<u8>> {
        let journal = self.shared.journal.lock();
        let place = journal.mirror.index.get(&Key::new(kind, key))?;
        Some(journal.value(*place))
    }

    /// Calls a test before and after each batch counts.
    #[cfg(test)]
    pub(crate) fn watch(&self, watcher: impl Fn() + Send + Sync + 'static) {
        self.shared.journal.lock().watcher = Some(Arc::new(watcher));
    }

    /// How often the journal was compacted in this life of the process.
    pub fn compactions(&self) -> u64 {
        self.shared.journal.lock().compactions
    }
}

impl Journal {
    fn new(memory: Segment, header: &Header) -> Journal {
        Journal {
            memory,
            life: header.life,
            area_bytes: header.area_bytes,
            area: 0,
            head: 0,
            committed: [0; 2],
            mirror: Mirror::default(),
            scratch: Vec::new(),
            compact_at: SLACK,
            compactions: 0,
            is_void: false,
            #[cfg(test)]
            watcher: None,
        }
    }

    #[cfg(test)]
    fn tell_watcher(&self) {
        if let Some(watcher) = &self.watcher {
            watcher();
        }
    }

    /// Where an area begins in the memfd.
    fn base(&self, area: u64) -> u64 {
        AREA_AT + area * self.area_bytes
    }

    /// Makes a word of the header say something, with everything that was stored before.
    fn store(&mut self, word: Word, value: u64) {
        self.memory.publish(word.at(), word.seal(value, self.life));
    }

    fn load(&self, word: Word) -> Result<u64> {
        let found = self.memory.look(word.at());
        word.open(found, self.life)
            .ok_or_else(|| format::refuse("has a damaged word in its header"))
    }

    fn value(&self, place: Place) -> Vec<u8> {
        let mut value = vec![0; usize::from(place.len)];
        self.memory.copy_out(place.at, &mut value);
        value
    }

    fn write(&mut self, batch: &Batch) {
        if self.is_void {
            return;
        }
        let len = batch.encoded_len();
        let fits = |journal: &mut Journal| journal.reserve(journal.area, journal.head + len);
        let has_room = fits(self) || self.compact() && fits(self);
        if !has_room {
            return self.give_up();
        }
        let at = self.append(self.area, self.head, batch);
        #[cfg(test)]
        self.tell_watcher();
        self.head += len;
        self.store(Word::Head(self.area), self.head);
        #[cfg(test)]
        self.tell_watcher();
        self.mirror.apply(at, batch.body());
        if self.head >= self.compact_at && !self.compact() {
            // The system has no memory for it now. Go on, and look again later.
            self.compact_at = self.head + SLACK;
        }
    }

    /// Makes sure that the first bytes of an area have memory.
    fn reserve(&mut self, area: u64, end: u64) -> bool {
        let committed = self.committed[area as usize];
        if end <= committed {
            return true;
        }
        if end > self.area_bytes {
            return false;
        }
        let to = end.next_multiple_of(STEP).min(self.area_bytes);
        let at = self.base(area) + committed;
        let done = self.memory.commit(at, to - committed).is_ok();
        if done {
            self.committed[area as usize] = to;
        }
        done
    }

    /// Writes a batch into an area, where it does not count yet; where its body begins in the memfd.
    fn append(&mut self, area: u64, head: u64, batch: &Batch) -> u64 {
        let at = self.base(area) + head;
        batch.encode(at, self.life, &mut self.scratch);
        self.memory.copy_in(at, &self.scratch);
        at + format::PREFIX
    }

    /// Writes the map to the other area and makes that the one that counts; whether there was room.
    fn compact(&mut self) -> bool {
        let mirror = std::mem::take(&mut self.mirror);
        let other = 1 - self.area;
        let Some((head, fresh)) = self.copy_to(other, &mirror) else {
            self.mirror = mirror;
            return false;
        };
        self.mirror = fresh;
        self.store(Word::Head(other), head);
        self.store(Word::Area, other);
        let old = std::mem::replace(&mut self.area, other);
        self.head = head;
        self.set_next_compaction();
        self.compactions += 1;
        let committed = &mut self.committed[old as usize];
        if *committed > KEPT {
            let gone = *committed - KEPT;
            *committed = KEPT;
            // What cannot be given back is used again by the next compaction.
            let _ = self.memory.punch(self.base(old) + KEPT, gone);
        }
        true
    }

    fn set_next_compaction(&mut self) {
        self.compact_at = self.mirror.live * TIMES + SLACK;
    }

    /// Writes a map into an area that does not count: how many bytes, and where everything is then.
    fn copy_to(&mut self, area: u64, mirror: &Mirror) -> Option<(u64, Mirror)> {
        let mut fresh = Mirror::default();
        fresh.index.reserve(mirror.index.len());
        let (mut head, mut batch, mut value) = (0, Batch::new(), Vec::new());
        let mut entries = mirror.index.iter().peekable();
        while let Some((key, place)) = entries.next() {
            value.resize(usize::from(place.len), 0);
            self.memory.copy_out(place.at, &mut value);
            batch.set(key.kind(), key.bytes(), &value);
            if batch.body().len() < PORTION && entries.peek().is_some() {
                continue;
            }
            let len = batch.encoded_len();
            if !self.reserve(area, head + len) {
                return None;
            }
            let at = self.append(area, head, &batch);
            fresh.apply(at, batch.body());
            head += len;
            batch.clear();
        }
        Some((head, fresh))
    }

    fn give_up(&mut self) {
        self.store(Word::Area, VOID);
        self.is_void = true;
        tracing::warn!(
            "the ledger has no room: should this process be killed, what is in its memory is lost"
        );
    }

    /// Reads the area that counts, from its begin to its head.
    fn replay(&mut self) -> Result<()> {
        self.area = self.load(Word::Area)?;
        match self.area {
            0 | 1 => {}
            VOID => return Err(format::refuse("was given up by the process that wrote it")),
            _ => return Err(format::refuse("has a damaged word in its header")),
        }
        self.head = self.load(Word::Head(self.area))?;
        if self.head > self.area_bytes {
            return Err(format::refuse("ends behind its area"));
        }
        let base = self.base(self.area);
        let (mut at, mut body) = (0, Vec::new());
        while at < self.head {
            let mut prefix = [0; format::PREFIX as usize];
            let left = self.head - at;
            if left < format::PREFIX {
                return Err(format::refuse("ends inside a batch"));
            }
            self.memory.copy_out(base + at, &mut prefix);
            let len = format::body_len(&prefix);
            if len == 0 || !len.is_multiple_of(8) || len > left - format::PREFIX {
                return Err(format::refuse("has a batch of a wrong length"));
            }
            body.resize(len as usize, 0);
            self.memory.copy_out(base + at + format::PREFIX, &mut body);
            if prefix != format::prefix(&body, base + at, self.life) {
                return Err(format::refuse(
                    "has a batch that does not match its checksum",
                ));
            }
            if format::changes(&body).any(|change| change.is_none()) {
                return Err(format::refuse("has a batch with a malformed change"));
            }
            self.mirror.apply(base + at + format::PREFIX, &body);
            at += format::PREFIX + len;
        }
        // What has memory is not known; taking it again does no harm.
        self.committed = [0; 2];
        self.set_next_compaction();
        Ok(())
    }
}

impl Mirror {
    /// Notes what the changes of a batch mean. Its body lies at `at` and is sound.
    fn apply(&mut self, at: u64, body: &[u8]) {
        for change in format::changes(body) {
            let change = change.expect("made by a batch, or checked by the replay");
            let key_len = change.key.bytes().len();
            let size = |len: u16| format::change_len(key_len, len);
            let old = match change.value {
                Some((offset, len)) => {
                    let at = at + offset as u64;
                    self.live += size(len);
                    self.index.insert(change.key, Place { at, len })
                }
                None => self.index.remove(&change.key),
            };
            self.live -= old.map_or(0, |place| size(place.len));
        }
    }
}

/// A number that no other life has.
fn draw_life() -> Result<u64> {
    let mut bytes = [0; 8];
    let mut filled = 0;
    while filled < bytes.len() {
        let flags = rustix::rand::GetRandomFlags::empty();
        match rustix::rand::getrandom(&mut bytes[filled..], flags) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(Error::io("drawing a number for the ledger", e.into(), 0)),
        }
    }
    Ok(u64::from_le_bytes(bytes))
}
