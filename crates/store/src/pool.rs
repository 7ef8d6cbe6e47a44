//! Memory for extents: segments per protection domain, recycled warm, never above the limit.
//!
//! ```text
//! segment  |  chunk of 2 MiB  |  chunk  |  chunk  | ...          one domain each
//! chunk    |64K|64K| 128K | 256K     |      1 MiB          |    extents are aligned powers of two
//! unit      used, warm or cold
//! ```
//!
//! A unit is *used* by an extent, *warm* (free, but its memory is kept), *cold* (free, without
//! memory), or *aside* (given back, but a client may still store there). A first touch costs about twelve warm copies, so freed extents stay warm up to
//! [`PoolOptions::keep_warm_bytes`] and are zeroed when they are used again, in the same domain only.
//!
//! Invariants
//! - `used + warm <= limit` whenever no call is running, and whatever calls run at once.
//! - An extent is zero when it is handed out, and its memory is committed; only who says that he stores all of it
//!   himself gets one as it is.
//! - A segment without used, warm or aside units is closed.
//! - Units aside have no memory of this pool, count against no limit and are given to nobody.
//!
//! Cost: allocate and free are O(log chunks). One mutex guards the bookkeeping; zeroing and
//! committing happen outside it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kernels::{SharedBytes, SharedBytesMut};
use parking_lot::{Mutex, MutexGuard};

use crate::error::{Error, Resource, Result};
use crate::identity::Domain;
use crate::segment::Segment;

/// Smallest extent.
pub const UNIT: u64 = 64 << 10;
/// Largest extent.
pub const CHUNK: u64 = 2 << 20;

/// Extent sizes are `UNIT << class`, with classes `0..CLASSES`.
pub(crate) const CLASSES: usize = 6;
/// Whole free chunks with some warm memory; index into the lists of a domain.
const WHOLE_WARM: usize = CLASSES - 1;
/// Whole free chunks without memory.
const WHOLE_COLD: usize = CLASSES;

const _: () = assert!(UNIT << (CLASSES - 1) == CHUNK && CHUNK / UNIT == u32::BITS as u64);

/// Bounds of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// Most memory, extents in use and warm ones together.
    pub limit_bytes: u64,
    /// Free memory kept for recycling; what is above goes back to the system.
    pub keep_warm_bytes: u64,
    /// Address space of one segment; rounded up to whole chunks.
    pub segment_bytes: u64,
    /// Most segments, each of which is an open descriptor.
    pub segments: usize,
}

impl Default for PoolOptions {
    fn default() -> Self {
        PoolOptions {
            limit_bytes: 1 << 30,
            keep_warm_bytes: 256 << 20,
            segment_bytes: 1 << 30,
            segments: 512,
        }
    }
}

/// What a pool holds at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// Bytes of extents in use.
    pub used_bytes: u64,
    /// Free bytes whose memory is kept.
    pub warm_bytes: u64,
    /// Most that both together may be.
    pub limit_bytes: u64,
    /// Bytes of address space that are set aside until nobody can store there.
    pub aside_bytes: u64,
    /// Open segments.
    pub segments: usize,
    /// Extents handed out so far from memory that was warm.
    pub recycled: u64,
    /// Extents handed out so far whose memory had to be committed first.
    pub fresh: u64,
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
    shared: Arc<PoolCore>,
}

#[derive(Debug)]
struct PoolCore {
    options: PoolOptions,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    segments: BTreeMap<u64, SegmentSpace>,
    /// Per domain, chunks with room: by the largest aligned free run, whole ones apart.
    room: HashMap<Domain, [BTreeSet<ChunkName>; CLASSES + 1]>,
    /// Chunks with warm units, of all domains.
    warm_chunks: BTreeSet<ChunkName>,
    used_units: u64,
    warm_units: u64,
    aside_units: u64,
    next_id: u64,
    recycled: u64,
    fresh: u64,
}

/// Segment, and index of the chunk in it.
type ChunkName = (u64, usize);

#[derive(Debug)]
struct SegmentSpace {
    segment: Arc<Segment>,
    domain: Domain,
    chunks: Vec<ChunkSpace>,
    /// Chunks that have used or warm units.
    live_chunks: usize,
}

/// One bit per unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ChunkSpace {
    used: u32,
    /// Free units with memory; never overlaps `used`.
    warm: u32,
    /// Units that nobody may have yet; never overlaps the others.
    aside: u32,
}

impl ChunkSpace {
    /// Units that cannot be given out.
    fn taken(self) -> u32 {
        self.used | self.aside
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
            }),
        }
    }

    /// What it holds.
    pub fn usage(&self) -> PoolUsage {
        let state = self.shared.lock();
        PoolUsage {
            used_bytes: state.used_units * UNIT,
            warm_bytes: state.warm_units * UNIT,
            aside_bytes: state.aside_units * UNIT,
            limit_bytes: self.shared.options.limit_bytes,
            segments: state.segments.len(),
            recycled: state.recycled,
            fresh: state.fresh,
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

    /// Gives all warm memory back to the system.
    pub fn cool(&self) {
        self.shared.lock().cool_to(0);
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
        let (segment, at, warm) = self
            .shared
            .lock()
            .take(&self.shared.options, domain, class)?;
        let extent = Extent {
            segment,
            at,
            len,
            domain,
            is_aside: AtomicBool::new(false),
            shared: Arc::clone(&self.shared),
        };
        // Only this extent's owner knows the range now: zero and commit without the lock.
        for units in runs(warm & run) {
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
        for units in runs(!warm & run) {
            let committed = extent
                .segment
                .populate(at + units.0 * UNIT, units.1 * UNIT)
                .is_ok();
            if !committed {
                // The system has less than the limit. Nobody may zero what is not there, so
                // the extent must not count as warm.
                drop(extent);
                self.cool();
                return Err(no_memory(len));
            }
        }
        Ok(Arc::new(extent))
    }
}

impl PoolCore {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// Finds room and marks it used: segment, place, and which units of the run were warm.
    fn take(
        &mut self,
        options: &PoolOptions,
        domain: Domain,
        class: usize,
    ) -> Result<(Arc<Segment>, u64, u32)> {
        let len = UNIT << class;
        // Before a segment is opened for nothing: extents in use alone must leave room.
        if (self.used_units * UNIT).saturating_add(len) > options.limit_bytes {
            return Err(no_memory(len));
        }
        let name = match self.find(domain, class) {
            Some(name) => name,
            None => self.open_segment(options, domain, len)?,
        };
        let before = self.chunk(name);
        let first = choose_run(before, class).expect("the list says that there is a run");
        let mask = run_mask(class) << first;
        let warm = before.warm & mask;
        self.set_chunk(
            name,
            ChunkSpace {
                used: before.used | mask,
                warm: before.warm & !mask,
                ..before
            },
        );
        if warm == mask {
            self.recycled += 1;
        } else {
            self.fresh += 1;
        }
        let room = options.limit_bytes - self.used_units * UNIT;
        if self.warm_units * UNIT > room {
            self.cool_to(room);
        }
        let segment = Arc::clone(&self.segments[&name.0].segment);
        let at = name.1 as u64 * CHUNK + u64::from(first) * UNIT;
        Ok((segment, at, warm >> first))
    }

    fn find(&self, domain: Domain, class: usize) -> Option<ChunkName> {
        let lists = self.room.get(&domain)?;
        (class..=WHOLE_COLD).find_map(|list| lists[list].first().copied())
    }

    fn open_segment(
        &mut self,
        options: &PoolOptions,
        domain: Domain,
        wanted_bytes: u64,
    ) -> Result<ChunkName> {
        if self.segments.len() >= options.segments {
            self.cool_to(0); // closes segments that are only warm
        }
        if self.segments.len() >= options.segments {
            return Err(Error::NoSpace {
                resource: Resource::Segments,
                wanted_bytes,
            });
        }
        let id = self.next_id;
        let segment = Arc::new(Segment::new(id, options.segment_bytes)?);
        self.next_id += 1;
        let count = (options.segment_bytes / CHUNK) as usize;
        let lists = self.room.entry(domain).or_default();
        lists[WHOLE_COLD].extend((0..count).map(|chunk| (id, chunk)));
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

    fn chunk(&self, name: ChunkName) -> ChunkSpace {
        self.segments[&name.0].chunks[name.1]
    }

    /// Changes one chunk and everything that is counted or listed about it.
    fn set_chunk(&mut self, name: ChunkName, after: ChunkSpace) {
        let space = self.segments.get_mut(&name.0).expect("a live segment");
        let before = std::mem::replace(&mut space.chunks[name.1], after);
        let lists = self.room.entry(space.domain).or_default();
        let (old, new) = (list_of(before), list_of(after));
        if old != new {
            if let Some(list) = old {
                lists[list].remove(&name);
            }
            if let Some(list) = new {
                lists[list].insert(name);
            }
        }
        if after.warm == 0 {
            self.warm_chunks.remove(&name);
        } else {
            self.warm_chunks.insert(name);
        }
        let units = |bits: u32| u64::from(bits.count_ones());
        self.used_units = self.used_units + units(after.used) - units(before.used);
        self.warm_units = self.warm_units + units(after.warm) - units(before.warm);
        self.aside_units = self.aside_units + units(after.aside) - units(before.aside);
        let is_live = |c: ChunkSpace| usize::from(c.taken() | c.warm != 0);
        space.live_chunks = space.live_chunks + is_live(after) - is_live(before);
        if space.live_chunks == 0 && is_live(before) == 1 {
            let gone = self.segments.remove(&name.0).expect("a live segment");
            let lists = self.room.get_mut(&gone.domain).expect("its lists");
            for chunk in 0..gone.chunks.len() {
                lists[WHOLE_COLD].remove(&(name.0, chunk));
            }
            if lists.iter().all(BTreeSet::is_empty)
                && self.segments.values().all(|s| s.domain != gone.domain)
            {
                self.room.remove(&gone.domain);
            }
        }
    }

    /// Punches warm units until at most `bytes` of them are left.
    fn cool_to(&mut self, bytes: u64) {
        while self.warm_units * UNIT > bytes {
            let Some(&name) = self.warm_chunks.first() else {
                unreachable!("warm units are in warm chunks");
            };
            let mut chunk = self.chunk(name);
            let segment = Arc::clone(&self.segments[&name.0].segment);
            let mut excess = (self.warm_units - bytes / UNIT).min(32) as u32;
            for (first, count) in runs(chunk.warm) {
                let count = count.min(u64::from(excess));
                if count == 0 {
                    break;
                }
                let at = name.1 as u64 * CHUNK + first * UNIT;
                // A range that cannot be punched keeps its memory; it is counted as given back,
                // since the alternative is to refuse work for ever. Memfds always can.
                let punched = segment.punch(at, count * UNIT);
                debug_assert!(punched.is_ok(), "{punched:?}");
                excess -= count as u32;
                let mask = ((((1u64 << count) - 1) << first) & u64::from(u32::MAX)) as u32;
                chunk.warm &= !mask;
            }
            self.set_chunk(name, chunk);
        }
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
        let is_aside = self.is_aside.load(Ordering::SeqCst);
        if is_aside {
            // What was stored since is nobody's.
            let _ = self.segment.punch(self.at, self.len);
        }
        let (name, mask) = self.place();
        let mut state = self.shared.lock();
        let before = state.chunk(name);
        if is_aside {
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
        let keep = self.shared.options.keep_warm_bytes;
        if state.warm_units * UNIT > keep {
            state.cool_to(keep);
        }
    }
}

fn no_memory(wanted_bytes: u64) -> Error {
    Error::NoSpace {
        resource: Resource::Memory,
        wanted_bytes,
    }
}

/// The bits of an aligned run of `1 << class` units that starts at unit 0.
fn run_mask(class: usize) -> u32 {
    (((1u64 << (1u32 << class)) - 1) & u64::from(u32::MAX)) as u32
}

/// Maximal runs of set bits: first and count.
fn runs(mut bits: u32) -> impl Iterator<Item = (u64, u64)> {
    let mut base = 0;
    std::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let first = bits.trailing_zeros();
        let count = (bits >> first).trailing_ones();
        let run = (base + u64::from(first), u64::from(count));
        base += u64::from(first + count);
        bits = bits.checked_shr(first + count).unwrap_or(0);
        Some(run)
    })
}

/// Which list a chunk stands in: the largest class it has room for, whole chunks by warmth.
fn list_of(chunk: ChunkSpace) -> Option<usize> {
    if chunk.taken() == 0 {
        return Some(if chunk.warm != 0 {
            WHOLE_WARM
        } else {
            WHOLE_COLD
        });
    }
    (0..WHOLE_WARM)
        .rev()
        .find(|&class| choose_run(chunk, class).is_some())
}

/// The aligned free run of a class with the most warm units, lowest first among equals.
fn choose_run(chunk: ChunkSpace, class: usize) -> Option<u32> {
    let mask = run_mask(class);
    (0..32u32)
        .step_by(1 << class)
        .filter(|first| chunk.taken() & (mask << first) == 0)
        .max_by_key(|first| {
            let warm = (chunk.warm & (mask << first)).count_ones();
            (warm, std::cmp::Reverse(*first))
        })
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
