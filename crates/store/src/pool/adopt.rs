//! A pool from the memory of a process that was killed: what the ledger says is used, all else is given back.
//!
//! Invariants
//! - Every extent of the ledger lies in a segment of the ledger that has a domain, and no unit has two owners; otherwise nothing is
//!   adopted.
//! - What no extent owns has no memory afterwards, whatever it held: nothing that is handed out later shows old bytes.
//! - Each extent is claimed once, by its subfile. Memory that was aside stays so until the server, which knows the clients of the process before,
//!   drops it.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::chunk::{ChunkSpace, run_mask};
use super::{CHUNK, Extent, Pool, PoolOptions, SegmentSpace, State, UNIT};
use crate::aside::Aside;
use crate::error::Result;
use crate::identity::Domain;
use crate::ledger::entries::Memory;
use crate::ledger::{Batch, Ledger, refuse, segment_name};
use crate::segment::Segment;

/// What is left to be taken of an adopted pool.
#[derive(Debug, Default)]
pub(super) struct Estate {
    /// Extents of subfiles: segment and place in it, to the length.
    owned: BTreeMap<(u64, u64), u64>,
    aside: Vec<Memory>,
}

/// A segment that is not in the pool yet.
struct FoundSegment {
    segment: Arc<Segment>,
    domain: Option<Domain>,
    chunks: Vec<ChunkSpace>,
}

impl Pool {
    /// An empty pool whose segments are kept, and in the ledger.
    pub fn with_ledger(options: PoolOptions, ledger: Ledger) -> Pool {
        let pool = Pool::new(options);
        pool.shared.lock().ledger = Some(ledger);
        pool
    }

    /// The pool of a process that was killed: its ledger, and the segments that were kept, by their numbers. Fails if they do not
    /// fit together; then nothing has changed, and nothing can be adopted.
    pub fn adopt(
        options: PoolOptions,
        ledger: Ledger,
        segments: Vec<(u64, OwnedFd)>,
    ) -> Result<Pool> {
        let mut given: BTreeMap<u64, OwnedFd> = segments.into_iter().collect();
        let mut found = HashMap::new();
        for (id, domain) in ledger.segments()? {
            let descriptor = given.remove(&id);
            let descriptor =
                descriptor.ok_or_else(|| refuse("names a segment that is not kept"))?;
            let segment = Arc::new(Segment::adopt(id, descriptor, options.pages)?);
            if !segment.len().is_multiple_of(CHUNK) {
                return Err(refuse("names a segment of an impossible length"));
            }
            let chunks = vec![ChunkSpace::default(); (segment.len() / CHUNK) as usize];
            let space = FoundSegment {
                segment,
                domain,
                chunks,
            };
            found.insert(id, space);
        }
        let (mut estate, mut used) = (Estate::default(), 0);
        for entry in ledger.extents()? {
            let memory = entry.memory;
            take(&mut found, memory, |chunk, units| chunk.used |= units)?;
            estate.owned.insert((memory.segment, memory.at), memory.len);
            used += memory.len;
        }
        for memory in ledger.asides()? {
            take(&mut found, memory, |chunk, units| chunk.aside |= units)?;
            estate.aside.push(memory);
        }
        let next_id = ledger.next_segment()?;
        if found.keys().any(|&id| id >= next_id) {
            return Err(refuse("names a segment that was never opened"));
        }
        // From here on nothing fails.
        let pool = Pool::with_ledger(options, ledger.clone());
        let mut state = pool.shared.lock();
        state.next_id = next_id;
        state.estate = estate;
        let mut batch = Batch::new();
        let mut gone: Vec<u64> = given.into_keys().collect();
        for (id, space) in found {
            if !space.chunks.iter().any(|chunk| chunk.is_live()) {
                batch.remove_segment(id);
                gone.push(id);
                continue;
            }
            space.punch_unowned();
            state.take_over(id, space);
        }
        drop(state);
        ledger.write(&batch);
        for id in gone {
            ledger.keeping().forget(&segment_name(id));
        }
        tracing::info!(used, "adopted the memory of an earlier process");
        Ok(pool)
    }

    /// The extents that the process before had set aside. Clients of that may store there until they are over or know better; the
    /// server drops it then.
    pub fn take_aside(&self) -> Aside {
        let memory = std::mem::take(&mut self.shared.lock().estate.aside);
        let extents = memory.into_iter().map(|memory| {
            let extent = self.extent(memory);
            extent
                .is_aside
                .store(true, std::sync::atomic::Ordering::SeqCst);
            Arc::new(extent)
        });
        Aside::of(extents.collect())
    }

    /// The extent that an entry of the ledger names, for its subfile.
    pub(crate) fn claim(&self, memory: Memory) -> Result<Arc<Extent>> {
        let place = (memory.segment, memory.at);
        let owned = self.shared.lock().estate.owned.remove(&place);
        match owned {
            Some(len) if len == memory.len => Ok(Arc::new(self.extent(memory))),
            _ => Err(refuse("names an extent that the pool does not have")),
        }
    }

    /// An extent of units that are marked already.
    fn extent(&self, memory: Memory) -> Extent {
        let state = self.shared.lock();
        let space = &state.segments[&memory.segment];
        Extent {
            segment: Arc::clone(&space.segment),
            at: memory.at,
            len: memory.len,
            domain: space.domain.expect("a segment with extents has a domain"),
            is_aside: AtomicBool::new(false),
            is_left: AtomicBool::new(false),
            shared: Arc::clone(&self.shared),
        }
    }
}

impl FoundSegment {
    /// Gives back the memory of all units that are not used.
    fn punch_unowned(&self) {
        let mut from = 0;
        let end = self.chunks.len() as u64 * 32;
        let is_used = |unit: u64| self.chunks[(unit / 32) as usize].used >> (unit % 32) & 1 == 1;
        while from < end {
            let next = (from..end).find(|&unit| is_used(unit)).unwrap_or(end);
            if next > from {
                let punched = self.segment.punch(from * UNIT, (next - from) * UNIT);
                debug_assert!(punched.is_ok(), "{punched:?}");
            }
            from = (next..end).find(|&unit| !is_used(unit)).unwrap_or(end);
        }
    }
}

impl State {
    /// Puts a segment into the pool, with its units as they are.
    fn take_over(&mut self, id: u64, space: FoundSegment) {
        let count = space.chunks.len();
        let room = self.room.entry(space.domain).or_default();
        for chunk in 0..count {
            room.change((id, chunk), None, Some(ChunkSpace::default()));
        }
        self.segments.insert(
            id,
            SegmentSpace {
                segment: space.segment,
                domain: space.domain,
                chunks: vec![ChunkSpace::default(); count],
                live_chunks: 0,
            },
        );
        for (index, chunk) in space.chunks.into_iter().enumerate() {
            if chunk.is_live() {
                self.set_chunk((id, index), chunk);
            }
        }
    }
}

/// Marks the units of a piece of memory, which nobody may have yet.
fn take(
    found: &mut HashMap<u64, FoundSegment>,
    memory: Memory,
    mark: impl FnOnce(&mut ChunkSpace, u32),
) -> Result<()> {
    let space = found.get_mut(&memory.segment);
    let space = space.ok_or_else(|| refuse("names an extent of an unknown segment"))?;
    if space.domain.is_none() {
        return Err(refuse("names an extent of a segment without a domain"));
    }
    let chunk = space.chunks.get_mut((memory.at / CHUNK) as usize);
    let chunk = chunk.ok_or_else(|| refuse("names an extent behind its segment"))?;
    let class = (memory.len / UNIT).trailing_zeros() as usize;
    let units = run_mask(class) << (memory.at % CHUNK / UNIT);
    if chunk.taken() & units != 0 {
        return Err(refuse("names memory that has two owners"));
    }
    mark(chunk, units);
    Ok(())
}
