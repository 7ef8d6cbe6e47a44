//! Memory for extents: segments per protection domain, recycled warm, never above the limit.
//!
//! ```text
//! segment  |  chunk of 2 MiB  |  chunk  |  chunk  | ...          one domain each, or none yet
//! chunk    |64K|64K| 128K | 256K     |      1 MiB          |    extents are aligned powers of two
//! unit      used, ready, warm or cold
//! ```
//!
//! A unit is *used* by an extent, *ready* (free, with memory that is zero), *warm* (free, with memory of any content), *cold*
//! (free, without memory), or *aside* (given back, but a client may still store there). Freed extents become warm up to
//! [`PoolOptions::keep_warm_bytes`], and are used again in the same domain only.
//!
//! To give a page its memory costs four to ten copies of it, so that is done before a file needs it: the *reserve* is ready
//! memory in segments that belong to no domain yet, and a domain that grows and has none of its own adopts such a segment.
//! The reserve follows recent growth. Who drives the pool calls [`Pool::tend`] in idle time; it does one small step, and
//! the [module](tend) says which.
//!
//! Invariants
//! - `used + warm + ready <= limit` whenever no call is running, and whatever calls run at once. (A step of tending that is
//!   under way may hold the memory of one chunk more.)
//! - An extent is zero when it is handed out, and its memory is committed; only who says that he stores all of it
//!   himself gets one as it is.
//! - A segment is adopted once, by one domain. A segment without used, warm, ready or aside units is closed.
//! - With a ledger, a segment is kept and on record before it has an extent, and it is off the record before it is closed.
//! - Units aside have no memory of this pool, count against no limit and are given to nobody. They are cold afterwards.
//!
//! Cost: allocate and free are O(log chunks). One mutex guards the bookkeeping; zeroing, committing and giving
//! back happen outside it.

mod adopt;
mod chunk;
#[cfg(test)]
mod laws;
mod tend;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kernels::{SharedBytes, SharedBytesMut};
use parking_lot::{Mutex, MutexGuard};

use crate::error::{Error, Resource, Result};
use crate::identity::Domain;
use crate::ledger::entries::Memory;
use crate::ledger::{Batch, Ledger, segment_name};
use crate::segment::{Pages, Segment};
use chunk::{ChunkSpace, Quality, UNITS, lowest, run_mask, runs};

pub(crate) use chunk::CLASSES;

/// Smallest extent.
pub const UNIT: u64 = 64 << 10;
/// Largest extent.
pub const CHUNK: u64 = 2 << 20;

/// Extents of this class and larger ones are worth a segment of the reserve, and a large page.
const ADOPTING_CLASS: usize = 2;

const _: () = assert!(UNIT << (CLASSES - 1) == CHUNK && CHUNK / UNIT == UNITS as u64);

/// Bounds of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// Most memory: extents in use, warm and ready ones together.
    pub limit_bytes: u64,
    /// Free memory kept for recycling; what is above goes back to the system.
    pub keep_warm_bytes: u64,
    /// Address space of one segment; rounded up to whole chunks.
    pub segment_bytes: u64,
    /// Most segments, each of which is an open descriptor.
    pub segments: usize,
    /// Ready memory of no domain that is kept where nothing has grown lately.
    pub least_reserve_bytes: u64,
    /// The most of it, however much grows.
    pub most_reserve_bytes: u64,
    /// The pages that memory is made of.
    pub pages: Pages,
}

impl PoolOptions {
    /// The usual for a limit: a quarter of it is kept warm, and from a sixteenth to a quarter ready, within bounds.
    pub fn for_limit(limit_bytes: u64) -> Self {
        let usual = PoolOptions::default();
        PoolOptions {
            limit_bytes,
            keep_warm_bytes: usual.keep_warm_bytes.min(limit_bytes),
            least_reserve_bytes: usual.least_reserve_bytes.min(limit_bytes / 16),
            most_reserve_bytes: limit_bytes / 4,
            ..usual
        }
    }
}

impl Default for PoolOptions {
    fn default() -> Self {
        PoolOptions {
            limit_bytes: 1 << 30,
            keep_warm_bytes: 256 << 20,
            segment_bytes: 1 << 30,
            segments: 512,
            least_reserve_bytes: 64 << 20,
            most_reserve_bytes: 256 << 20,
            pages: Pages::of_host(),
        }
    }
}

/// What a pool holds at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// Bytes of extents in use.
    pub used_bytes: u64,
    /// Free bytes whose memory is kept as it is.
    pub warm_bytes: u64,
    /// Free bytes with memory that is zero.
    pub ready_bytes: u64,
    /// The part of them that belongs to no domain yet.
    pub reserve_bytes: u64,
    /// What the reserve grows to.
    pub wanted_reserve_bytes: u64,
    /// Most that used, warm and ready bytes together may be.
    pub limit_bytes: u64,
    /// Bytes of address space that are set aside until nobody can store there.
    pub aside_bytes: u64,
    /// Open segments.
    pub segments: usize,
    /// Extents handed out so far that were ready.
    pub ready: u64,
    /// Extents handed out so far from memory that had to be zeroed first.
    pub recycled: u64,
    /// Extents handed out so far whose memory had to be committed first.
    pub fresh: u64,
    /// The part of them whose memory was only committed, neither cleared nor mapped here, which large pages are.
    pub scarce: u64,
}

/// Memory for extents. Clones share it.
#[derive(Clone, Debug)]
pub struct Pool {
    shared: Arc<PoolCore>,
}

/// A piece of a segment: zeroed and committed when it is born, recycled when it is dropped.
#[derive(Debug)]
pub struct Extent {
    segment: Arc<Segment>,
    at: u64,
    len: u64,
    domain: Domain,
    is_aside: AtomicBool,
    /// Its memory belongs to the process that adopts the ledger.
    is_left: AtomicBool,
    shared: Arc<PoolCore>,
}

#[derive(Debug)]
struct PoolCore {
    options: PoolOptions,
    state: Mutex<State>,
    tending: tend::TendState,
}

#[derive(Debug, Default)]
struct State {
    segments: BTreeMap<u64, SegmentSpace>,
    /// Per domain, and for segments that have none: chunks with room.
    room: HashMap<Option<Domain>, Room>,
    /// Chunks with warm or ready units, of all domains.
    kept_chunks: BTreeSet<ChunkName>,
    /// Chunks with warm units, of all domains.
    warm_chunks: BTreeSet<ChunkName>,
    used_units: u64,
    warm_units: u64,
    ready_units: u64,
    /// Ready units of no domain.
    reserve_units: u64,
    aside_units: u64,
    next_id: u64,
    ready: u64,
    recycled: u64,
    fresh: u64,
    scarce: u64,
    growth: tend::Growth,
    /// Where segments are on record, if they are to outlive the process.
    ledger: Option<Ledger>,
    /// Of an adopted pool, what nobody has taken yet.
    estate: adopt::Estate,
}

/// Chunks by quality and by the largest aligned run of it.
#[derive(Debug, Default)]
struct Room([[BTreeSet<ChunkName>; CLASSES]; Quality::ALL.len()]);

impl Room {
    /// A chunk was one thing and is another.
    fn change(&mut self, name: ChunkName, before: Option<ChunkSpace>, after: Option<ChunkSpace>) {
        for (lists, quality) in self.0.iter_mut().zip(Quality::ALL) {
            let class = |chunk: Option<ChunkSpace>| chunk.and_then(|c| c.largest(quality));
            let (old, new) = (class(before), class(after));
            if old == new {
                continue;
            }
            if let Some(class) = old {
                lists[class].remove(&name);
            }
            if let Some(class) = new {
                lists[class].insert(name);
            }
        }
    }

    /// A chunk with a run of a class, the smallest that will do.
    fn find(&self, class: usize, quality: Quality) -> Option<ChunkName> {
        let lists = &self.0[quality as usize];
        lists[class..].iter().find_map(|list| list.first().copied())
    }

    fn is_empty(&self) -> bool {
        self.0.iter().flatten().all(BTreeSet::is_empty)
    }
}

/// Segment, and index of the chunk in it.
type ChunkName = (u64, usize);

#[derive(Debug)]
struct SegmentSpace {
    segment: Arc<Segment>,
    /// None before it is adopted.
    domain: Option<Domain>,
    chunks: Vec<ChunkSpace>,
    /// Chunks that have units which are not cold.
    live_chunks: usize,
}

/// Room that was found for an extent.
#[derive(Debug)]
struct Taken {
    segment: Arc<Segment>,
    name: ChunkName,
    /// Its first unit in the chunk.
    first: u32,
    /// Its units that have to be zeroed, and those that have memory; both counted from its first.
    warm: u32,
    kept: u32,
    /// Units of the chunk beside it that get memory together with it, where pages are as large as the chunk.
    beside: u32,
    /// What has to be given back before it gets memory.
    cooling: Vec<UnitsAtWork>,
}

/// Units that a thread works on without the lock.
#[derive(Debug)]
struct UnitsAtWork {
    segment: Arc<Segment>,
    name: ChunkName,
    units: u32,
}

impl UnitsAtWork {
    /// Their places in the segment: where each run begins, and its bytes.
    fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let base = self.name.1 as u64 * CHUNK;
        runs(self.units).map(move |(first, count)| (base + first * UNIT, count * UNIT))
    }

    /// Gives their memory back.
    fn punch(&self) {
        for (at, len) in self.ranges() {
            // A range that cannot be punched keeps its memory; it is counted as given back,
            // since the alternative is to refuse work for ever. Memfds always can.
            let punched = self.segment.punch(at, len);
            debug_assert!(punched.is_ok(), "{punched:?}");
        }
    }
}

impl Pool {
    /// An empty pool.
    pub fn new(options: PoolOptions) -> Self {
        let segment_bytes = options.segment_bytes.max(1).next_multiple_of(CHUNK);
        let options = PoolOptions {
            segment_bytes,
            ..options
        };
        Pool {
            shared: Arc::new(PoolCore {
                options,
                state: Mutex::default(),
                tending: tend::TendState::default(),
            }),
        }
    }

    /// What it holds.
    pub fn usage(&self) -> PoolUsage {
        let state = self.shared.lock();
        PoolUsage {
            used_bytes: state.used_units * UNIT,
            warm_bytes: state.warm_units * UNIT,
            ready_bytes: state.ready_units * UNIT,
            reserve_bytes: state.reserve_units * UNIT,
            wanted_reserve_bytes: state.wanted_reserve(&self.shared.options) * UNIT,
            aside_bytes: state.aside_units * UNIT,
            limit_bytes: self.shared.options.limit_bytes,
            segments: state.segments.len(),
            ready: state.ready,
            recycled: state.recycled,
            fresh: state.fresh,
            scarce: state.scarce,
        }
    }

    /// The bounds it was made with.
    pub fn options(&self) -> &PoolOptions {
        &self.shared.options
    }

    /// The largest class that leaves a small pool room for at least sixteen extents.
    pub(crate) fn largest_class(&self) -> usize {
        let share = self.shared.options.limit_bytes / 16;
        (0..CLASSES)
            .rev()
            .find(|&class| UNIT << class <= share)
            .unwrap_or(0)
    }

    /// Gives all free memory back to the system.
    pub fn cool(&self) {
        let cooling = self.shared.lock().begin_cooling(0);
        self.shared.end_cooling(&cooling);
    }

    /// An extent of `UNIT << class` zero bytes.
    pub(crate) fn allocate(&self, domain: Domain, class: usize) -> Result<Arc<Extent>> {
        self.allocate_around(domain, class, 0..0)
    }

    /// An extent that is zero except for a part of it, which has any bytes of the domain: the subfile that gets it
    /// stores there before anybody else can find it, or drops it.
    pub(crate) fn allocate_around(
        &self,
        domain: Domain,
        class: usize,
        part: Range<u64>,
    ) -> Result<Arc<Extent>> {
        assert!(class < CLASSES);
        let run = run_mask(class);
        let len = UNIT << class;
        let shared = &self.shared;
        let taken = shared.lock().take(&shared.options, domain, class)?;
        let at = taken.name.1 as u64 * CHUNK + u64::from(taken.first) * UNIT;
        let extent = Extent {
            segment: Arc::clone(&taken.segment),
            at,
            len,
            domain,
            is_aside: AtomicBool::new(false),
            is_left: AtomicBool::new(false),
            shared: Arc::clone(shared),
        };
        // Before there is more memory: what makes room for it.
        shared.end_cooling(&taken.cooling);
        // Only this extent's owner knows the range now: zero and commit without the lock.
        for units in runs(taken.warm) {
            let range = units.0 * UNIT..(units.0 + units.1) * UNIT;
            let before = range.start..range.end.min(part.start.max(range.start));
            let behind = range.start.max(part.end.min(range.end))..range.end;
            let around = match part.is_empty() {
                true => [range, 0..0],
                false => [before, behind],
            };
            for zeros in around.into_iter().filter(|zeros| !zeros.is_empty()) {
                extent.zero(zeros.start, zeros.end - zeros.start);
            }
        }
        let committed = match taken.beside {
            0 => runs(!taken.kept & run)
                .map(|(first, count)| extent.segment.commit(at + first * UNIT, count * UNIT))
                .try_fold(Pages::Huge, |all, pages| match pages? {
                    Pages::Small => Ok(Pages::Small),
                    _ => Ok::<_, std::io::Error>(all),
                }),
            _ => {
                let chunk = taken.name.1 as u64 * CHUNK;
                extent.segment.commit(chunk, CHUNK)
            }
        };
        if taken.beside != 0 {
            let beside = UnitsAtWork {
                segment: Arc::clone(&taken.segment),
                name: taken.name,
                units: taken.beside,
            };
            shared.end_commit(&beside, committed.is_ok());
        }
        if let Ok(Pages::Small) = committed {
            shared.lock().scarce += 1;
        }
        if committed.is_err() {
            // The system has less than the limit. What is not there must not count as warm.
            extent.set_aside();
            drop(extent);
            self.cool();
            return Err(no_memory(len));
        }
        shared
            .tending
            .look(|| shared.lock().has_work(&shared.options));
        Ok(Arc::new(extent))
    }
}

impl PoolCore {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Gives the memory of units back, without the lock, and lets others have their places.
    fn end_cooling(&self, cooling: &[UnitsAtWork]) {
        for at_work in cooling {
            at_work.punch();
            self.lock().end_work(at_work, |_| {});
        }
    }

    /// Units have got memory that is zero, and are ready; or not, or files have taken the room meanwhile, and then
    /// they have none.
    fn end_commit(&self, at_work: &UnitsAtWork, is_done: bool) {
        let mut state = self.lock();
        let count = u64::from(at_work.units.count_ones());
        if is_done && state.free_units(&self.options) >= count {
            return state.end_work(at_work, |chunk| chunk.ready |= at_work.units);
        }
        drop(state);
        at_work.punch();
        self.lock().end_work(at_work, |_| {});
    }
}

impl State {
    /// Finds room and marks it used.
    fn take(&mut self, options: &PoolOptions, domain: Domain, class: usize) -> Result<Taken> {
        let len = UNIT << class;
        // Before a segment is opened for nothing: extents in use alone must leave room.
        if (self.used_units * UNIT).saturating_add(len) > options.limit_bytes {
            return Err(no_memory(len));
        }
        let (name, quality) = self.find_room(options, domain, class)?;
        let before = self.chunk(name);
        let first = before.choose(class, quality);
        let first = first.expect("the list says that there is a run");
        let mask = run_mask(class) << first;
        let (warm, kept) = (before.warm & mask, before.kept() & mask);
        // A large page has memory as a whole or not at all. A domain of few bytes, as a small directory is, gets none.
        let free_units = (options.limit_bytes / UNIT)
            .saturating_sub(self.used_units + self.warm_units + self.ready_units);
        let is_large = options.pages.are_large()
            && (class >= ADOPTING_CLASS || name.1 > 0)
            && !before.is_live()
            && free_units >= u64::from(UNITS)
            && mask != u32::MAX;
        let beside = if is_large { !mask } else { 0 };
        self.set_chunk(
            name,
            ChunkSpace {
                used: before.used | mask,
                warm: before.warm & !mask,
                ready: before.ready & !mask,
                busy: before.busy | beside,
                ..before
            },
        );
        match () {
            () if kept != mask => self.fresh += 1,
            () if warm != 0 => self.recycled += 1,
            () => self.ready += 1,
        }
        self.growth.grew(u64::from((mask & !kept).count_ones()));
        let room = options.limit_bytes / UNIT - self.used_units;
        let cooling = self.begin_cooling(room);
        Ok(Taken {
            segment: Arc::clone(&self.segments[&name.0].segment),
            name,
            first,
            warm: warm >> first,
            kept: kept >> first,
            beside,
            cooling,
        })
    }

    /// A chunk of the domain with a run of the class: ready, kept, out of the reserve, cold, or new.
    fn find_room(
        &mut self,
        options: &PoolOptions,
        domain: Domain,
        class: usize,
    ) -> Result<(ChunkName, Quality)> {
        let find = |state: &State, of, quality| {
            let name = state.room.get(&of)?.find(class, quality)?;
            Some((name, quality))
        };
        for quality in [Quality::Ready, Quality::Kept] {
            if let Some(found) = find(self, Some(domain), quality) {
                return Ok(found);
            }
        }
        if class >= ADOPTING_CLASS
            && let Some((name, _)) = find(self, None, Quality::Ready)
        {
            self.adopt(name.0, domain);
            return Ok((name, Quality::Ready));
        }
        if let Some(found) = find(self, Some(domain), Quality::Any) {
            return Ok(found);
        }
        let wanted_bytes = UNIT << class;
        let name = self.open_segment(options, Some(domain), wanted_bytes)?;
        Ok((name, Quality::Any))
    }

    /// Gives a segment of the reserve to a domain, with all that is ready in it.
    fn adopt(&mut self, id: u64, domain: Domain) {
        let space = self.segments.get_mut(&id).expect("a live segment");
        assert_eq!(space.domain, None, "a segment is adopted once");
        space.domain = Some(domain);
        let chunks = space.chunks.clone();
        self.put_on_record(|batch| batch.set_segment(id, Some(domain)));
        let mut ready = 0;
        for (index, chunk) in chunks.into_iter().enumerate() {
            let of = |state: &mut State, domain, before, after| {
                let room = state.room.entry(domain).or_default();
                room.change((id, index), before, after);
            };
            of(self, None, Some(chunk), None);
            of(self, Some(domain), None, Some(chunk));
            ready += u64::from(chunk.ready.count_ones());
        }
        self.reserve_units -= ready;
        self.growth.grew(ready);
    }

    fn open_segment(
        &mut self,
        options: &PoolOptions,
        domain: Option<Domain>,
        wanted_bytes: u64,
    ) -> Result<ChunkName> {
        if self.segments.len() >= options.segments {
            // Closes segments in which nothing is used. Seldom, and nobody can go on before it is done.
            for at_work in self.begin_cooling(0) {
                at_work.punch();
                self.end_work(&at_work, |_| {});
            }
        }
        if self.segments.len() >= options.segments {
            return Err(Error::NoSpace {
                resource: Resource::Segments,
                wanted_bytes,
            });
        }
        let id = self.next_id;
        let segment = Arc::new(Segment::new(id, options.segment_bytes, options.pages)?);
        if let Some(ledger) = &self.ledger {
            let kept = ledger
                .keeping()
                .keep(&segment_name(id), segment.descriptor());
            kept.map_err(|e| Error::io("giving a segment to its keeper", e, 0))?;
        }
        self.next_id += 1;
        self.put_on_record(|batch| {
            batch.set_segment(id, domain);
            batch.set_next_segment(id + 1);
        });
        let count = (options.segment_bytes / CHUNK) as usize;
        let room = self.room.entry(domain).or_default();
        for chunk in 0..count {
            room.change((id, chunk), None, Some(ChunkSpace::default()));
        }
        self.segments.insert(
            id,
            SegmentSpace {
                segment,
                domain,
                chunks: vec![ChunkSpace::default(); count],
                live_chunks: 0,
            },
        );
        Ok((id, 0))
    }

    /// Changes the ledger, if there is one.
    fn put_on_record(&self, change: impl FnOnce(&mut Batch)) {
        if let Some(ledger) = &self.ledger {
            let mut batch = Batch::new();
            change(&mut batch);
            ledger.write(&batch);
        }
    }

    fn chunk(&self, name: ChunkName) -> ChunkSpace {
        self.segments[&name.0].chunks[name.1]
    }

    /// Changes one chunk and everything that is counted or listed about it.
    fn set_chunk(&mut self, name: ChunkName, after: ChunkSpace) {
        let space = self.segments.get_mut(&name.0).expect("a live segment");
        let before = std::mem::replace(&mut space.chunks[name.1], after);
        let domain = space.domain;
        let is_live = |c: ChunkSpace| usize::from(c.is_live());
        space.live_chunks = space.live_chunks + is_live(after) - is_live(before);
        let is_closed = space.live_chunks == 0 && before.is_live();
        let room = self.room.entry(domain).or_default();
        room.change(name, Some(before), Some(after));
        let list = |set: &mut BTreeSet<ChunkName>, units: u32| match units {
            0 => set.remove(&name),
            _ => set.insert(name),
        };
        list(&mut self.kept_chunks, after.kept());
        list(&mut self.warm_chunks, after.warm);
        let count = |total: &mut u64, old: u32, new: u32| {
            *total = *total + u64::from(new.count_ones()) - u64::from(old.count_ones());
        };
        count(&mut self.used_units, before.used, after.used);
        count(&mut self.warm_units, before.warm, after.warm);
        count(&mut self.ready_units, before.ready, after.ready);
        count(&mut self.aside_units, before.aside, after.aside);
        if domain.is_none() {
            count(&mut self.reserve_units, before.ready, after.ready);
        }
        if is_closed {
            self.close_segment(name.0);
        }
    }

    fn close_segment(&mut self, id: u64) {
        let gone = self.segments.remove(&id).expect("a live segment");
        let room = self.room.get_mut(&gone.domain).expect("its lists");
        for (index, chunk) in gone.chunks.into_iter().enumerate() {
            room.change((id, index), Some(chunk), None);
        }
        if room.is_empty() && self.segments.values().all(|s| s.domain != gone.domain) {
            self.room.remove(&gone.domain);
        }
        self.put_on_record(|batch| batch.remove_segment(id));
        if let Some(ledger) = &self.ledger {
            ledger.keeping().forget(&segment_name(id));
        }
    }

    /// Takes free units with memory until at most `most` of them are left. The caller that gets them gives their memory
    /// back without the lock, and says so with [`State::end_work`].
    fn begin_cooling(&mut self, most: u64) -> Vec<UnitsAtWork> {
        let mut cooling = Vec::new();
        while self.warm_units + self.ready_units > most {
            let Some(&name) = self.kept_chunks.first() else {
                unreachable!("units with memory are in chunks that are listed");
            };
            let excess = self.warm_units + self.ready_units - most;
            let units = lowest(self.chunk(name).kept(), excess);
            cooling.push(self.begin_work(name, units));
        }
        cooling
    }

    /// Keeps free units from everybody while a thread works on them.
    fn begin_work(&mut self, name: ChunkName, units: u32) -> UnitsAtWork {
        let before = self.chunk(name);
        debug_assert_eq!(before.taken() & units, 0);
        self.set_chunk(
            name,
            ChunkSpace {
                warm: before.warm & !units,
                ready: before.ready & !units,
                busy: before.busy | units,
                ..before
            },
        );
        UnitsAtWork {
            segment: Arc::clone(&self.segments[&name.0].segment),
            name,
            units,
        }
    }

    /// The work is done: the units are cold, unless `then` makes them something else.
    fn end_work(&mut self, at_work: &UnitsAtWork, then: impl FnOnce(&mut ChunkSpace)) {
        let mut chunk = self.chunk(at_work.name);
        debug_assert_eq!(chunk.busy & at_work.units, at_work.units);
        chunk.busy &= !at_work.units;
        then(&mut chunk);
        self.set_chunk(at_work.name, chunk);
    }
}

impl Extent {
    /// The segment it is in.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Where it begins in the segment.
    pub fn segment_offset(&self) -> u64 {
        self.at
    }

    /// Its bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Never: extents have at least [`UNIT`] bytes.
    pub fn is_empty(&self) -> bool {
        false
    }

    pub(crate) fn zero(&self, at: u64, len: u64) {
        self.check(at, len);
        self.segment.zero(self.at + at, len);
    }

    pub(crate) fn copy_in(&self, at: u64, source: &[u8]) {
        self.check(at, source.len() as u64);
        self.segment.copy_in(self.at + at, source);
    }

    pub(crate) fn copy_out(&self, at: u64, target: &mut [u8]) {
        self.check(at, target.len() as u64);
        self.segment.copy_out(self.at + at, target);
    }

    pub(crate) fn bytes(&self, at: u64, len: u64) -> SharedBytes<'_> {
        self.check(at, len);
        self.segment.bytes(self.at + at, len)
    }

    pub(crate) fn bytes_mut(&self, at: u64, len: u64) -> SharedBytesMut<'_> {
        self.check(at, len);
        self.segment.bytes_mut(self.at + at, len)
    }

    /// The domain whose memory it is.
    pub(crate) fn domain(&self) -> Domain {
        self.domain
    }

    /// Copies all of another extent of the same length.
    pub(crate) fn copy_from(&self, other: &Extent) {
        assert_eq!(self.len, other.len);
        self.segment
            .copy_within_process(self.at, &other.segment, other.at, self.len);
    }

    /// Copies a part of another extent.
    pub(crate) fn copy_part_from(&self, at: u64, other: &Extent, other_at: u64, len: u64) {
        self.check(at, len);
        other.check(other_at, len);
        let (to, from) = (self.at + at, other.at + other_at);
        self.segment
            .copy_within_process(to, &other.segment, from, len);
    }

    /// Gives the memory back although a client may still store there: no subfile gets the place before the
    /// extent is dropped.
    pub(crate) fn set_aside(&self) {
        if self.is_aside.swap(true, Ordering::SeqCst) {
            return;
        }
        let punched = self.segment.punch(self.at, self.len);
        debug_assert!(punched.is_ok(), "{punched:?}");
        let (name, mask) = self.place();
        let mut state = self.shared.lock();
        let before = state.chunk(name);
        debug_assert_eq!(before.used & mask, mask);
        state.set_chunk(
            name,
            ChunkSpace {
                used: before.used & !mask,
                aside: before.aside | mask,
                ..before
            },
        );
    }

    /// Leaves the memory as it is when this is dropped: it is in the ledger, and the process that adopts that has it.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::SeqCst);
    }

    /// Its chunk, and its units there.
    fn place(&self) -> (ChunkName, u32) {
        let name = (self.segment.id(), (self.at / CHUNK) as usize);
        let class = (self.len / UNIT).trailing_zeros() as usize;
        (name, run_mask(class) << ((self.at % CHUNK) / UNIT))
    }

    fn check(&self, at: u64, len: u64) {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len));
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        if self.is_left.load(Ordering::SeqCst) {
            return;
        }
        let is_aside = self.is_aside.load(Ordering::SeqCst);
        if is_aside {
            // What was stored since is nobody's.
            let _ = self.segment.punch(self.at, self.len);
        }
        let (name, mask) = self.place();
        let mut state = self.shared.lock();
        let before = state.chunk(name);
        if is_aside {
            state.put_on_record(|batch| batch.remove_aside(Memory::of(self)));
            let aside = before.aside & !mask;
            state.set_chunk(name, ChunkSpace { aside, ..before });
            return;
        }
        debug_assert_eq!(before.used & mask, mask);
        state.set_chunk(
            name,
            ChunkSpace {
                used: before.used & !mask,
                warm: before.warm | mask,
                ..before
            },
        );
        let cooling = match self.shared.tending.is_done() {
            // Who tends the pool gives back what is too much.
            true => Vec::new(),
            false => {
                let keep = self.shared.options.keep_warm_bytes / UNIT;
                state.begin_cooling_domains(keep)
            }
        };
        drop(state);
        self.shared.end_cooling(&cooling);
        self.shared.tending.look(|| true);
    }
}

fn no_memory(wanted_bytes: u64) -> Error {
    Error::NoSpace {
        resource: Resource::Memory,
        wanted_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent_of_two_units(pool: &Pool) -> Arc<Extent> {
        pool.allocate(Domain::default(), 1).unwrap()
    }

    #[test]
    fn memory_set_aside_is_counted_apart_until_its_extent_is_dropped() {
        let pool = Pool::new(PoolOptions::default());
        let (aside, used) = (extent_of_two_units(&pool), extent_of_two_units(&pool));
        aside.set_aside();
        let usage = pool.usage();
        assert_eq!((usage.used_bytes, usage.aside_bytes), (2 * UNIT, 2 * UNIT));
        drop((aside, used));
        let usage = pool.usage();
        assert_eq!((usage.used_bytes, usage.aside_bytes), (0, 0));
        assert_eq!(usage.warm_bytes, 2 * UNIT, "what was aside is not warm");
    }

    #[test]
    #[should_panic(expected = "end <= self.len")]
    fn a_part_that_ends_behind_its_extent_is_a_bug() {
        let pool = Pool::new(PoolOptions::default());
        let (to, from) = (extent_of_two_units(&pool), extent_of_two_units(&pool));
        to.copy_part_from(UNIT, &from, 0, UNIT);
        to.copy_part_from(UNIT, &from, 0, UNIT + 1);
    }
}
