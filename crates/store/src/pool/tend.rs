//! What is done to free memory before a file needs it.
//!
//! In this order, a chunk at a time:
//! 1. Warm memory above what is kept goes back to the system.
//! 2. Warm memory is zeroed, and is ready then: in its domain, since clients of that have it mapped.
//! 3. The reserve is filled with memory from the system, which is zero, in segments of no domain, up to what has grown
//!    lately, between [`PoolOptions::least_reserve_bytes`] and [`PoolOptions::most_reserve_bytes`].
//!
//! A reserve of several segments serves several domains: each is filled to about a quarter of what is wanted. A reserve that is
//! larger than twice what is wanted goes back to the system; so do all free units when files need their memory.
//!
//! Left to others: when to do it, and how time passes ([`Pool::let_time_pass`]).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::chunk::{ChunkSpace, lowest};
use super::{CHUNK, Pool, PoolOptions, State, UNIT, UNITS, UnitsAtWork};

/// A segment of the reserve holds at least so much, if it can.
const LEAST_PORTION: u64 = (16 << 20) / UNIT;
/// Segments that the reserve leaves to those who need new ones, as a part of all.
const SEGMENTS_SHARE: usize = 2;

/// Who is told that there is something to do.
#[derive(Default)]
pub(super) struct TendState {
    is_done: AtomicBool,
    wake: Mutex<Option<Waker>>,
}

type Waker = Arc<dyn Fn() + Send + Sync>;

impl fmt::Debug for TendState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TendState").field(&self.is_done).finish()
    }
}

impl TendState {
    /// Whether anybody tends the pool.
    pub(super) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Relaxed)
    }

    /// Wakes the one who tends, if there is one and something to do. Nothing may be locked.
    pub(super) fn look(&self, has_work: impl FnOnce() -> bool) {
        if !self.is_done() || !has_work() {
            return;
        }
        let wake = self.wake.lock().clone();
        if let Some(wake) = wake {
            wake();
        }
    }
}

/// How much memory has come from the system for files lately, in units.
#[derive(Debug, Default)]
pub(super) struct Growth {
    before: u64,
    now: u64,
    /// The system had no memory for the reserve.
    is_refused: bool,
}

impl Growth {
    pub(super) fn grew(&mut self, units: u64) {
        self.now = self.now.saturating_add(units);
    }

    fn lately(&self) -> u64 {
        self.before.max(self.now)
    }
}

enum Step {
    Cool(Vec<UnitsAtWork>),
    Zero(UnitsAtWork),
    Commit(UnitsAtWork),
}

impl Pool {
    /// A thread will tend the pool: `wake` is called when there is something to do, by threads that are in a hurry.
    pub fn tended_by(&self, wake: impl Fn() + Send + Sync + 'static) {
        *self.shared.tending.wake.lock() = Some(Arc::new(wake));
        self.shared.tending.is_done.store(true, Ordering::SeqCst);
    }

    /// Nobody tends the pool any more.
    pub fn is_left_alone(&self) {
        self.shared.tending.is_done.store(false, Ordering::SeqCst);
        *self.shared.tending.wake.lock() = None;
    }

    /// Does one small step ahead of need; false if there is nothing to do.
    pub fn tend(&self) -> bool {
        let shared = &self.shared;
        let step = shared.lock().next_step(&shared.options);
        match step {
            None => return false,
            Some(Step::Cool(cooling)) => shared.end_cooling(&cooling),
            Some(Step::Zero(at_work)) => {
                for (at, len) in at_work.ranges() {
                    at_work.segment.zero(at, len);
                }
                shared.end_commit(&at_work, true);
            }
            Some(Step::Commit(at_work)) => {
                let mut ranges = at_work.ranges();
                let done = ranges.try_for_each(|(at, len)| {
                    at_work.segment.commit(at, len)?;
                    at_work.segment.clear(at, len);
                    Ok::<_, std::io::Error>(())
                });
                shared.lock().growth.is_refused |= done.is_err();
                shared.end_commit(&at_work, done.is_ok());
            }
        }
        true
    }

    /// Some time has passed: growth that was earlier counts half.
    pub fn let_time_pass(&self) {
        let mut state = self.shared.lock();
        let growth = &mut state.growth;
        growth.before = growth.lately() / 2;
        growth.now = 0;
        growth.is_refused = false;
    }
}

impl State {
    /// Units that may still get memory.
    pub(super) fn free_units(&self, options: &PoolOptions) -> u64 {
        let taken = self.used_units + self.warm_units + self.ready_units;
        (options.limit_bytes / UNIT).saturating_sub(taken)
    }

    /// Units that the reserve should have.
    pub(super) fn wanted_reserve(&self, options: &PoolOptions) -> u64 {
        if self.growth.is_refused {
            return 0;
        }
        let most = options.most_reserve_bytes / UNIT;
        let least = (options.least_reserve_bytes / UNIT).min(most);
        self.growth.lately().clamp(least, most) / u64::from(UNITS) * u64::from(UNITS)
    }

    /// Free units with memory in segments of domains.
    fn kept_by_domains(&self) -> u64 {
        self.warm_units + self.ready_units - self.reserve_units
    }

    /// Whether there is anything to do.
    pub(super) fn has_work(&self, options: &PoolOptions) -> bool {
        let wanted = self.wanted_reserve(options);
        self.warm_units > 0
            || self.kept_by_domains() > options.keep_warm_bytes / UNIT
            || self.reserve_units > wanted.saturating_mul(2)
            || self.may_fill(options, wanted)
    }

    /// Whether the reserve lacks a chunk, and may have it.
    fn may_fill(&self, options: &PoolOptions, wanted: u64) -> bool {
        self.reserve_units + u64::from(UNITS) <= wanted
            && self.free_units(options) >= u64::from(UNITS)
    }

    fn next_step(&mut self, options: &PoolOptions) -> Option<Step> {
        let keep = options.keep_warm_bytes / UNIT;
        let excess = self.kept_by_domains().saturating_sub(keep);
        if excess > 0 {
            return Some(Step::Cool(
                self.cool_some(excess, |domain| domain.is_some()),
            ));
        }
        if let Some(&name) = self.warm_chunks.first() {
            let warm = self.chunk(name).warm;
            return Some(Step::Zero(self.begin_work(name, warm)));
        }
        let wanted = self.wanted_reserve(options);
        if self.reserve_units > wanted.saturating_mul(2) {
            let excess = self.reserve_units - wanted;
            return Some(Step::Cool(
                self.cool_some(excess, |domain| domain.is_none()),
            ));
        }
        if !self.may_fill(options, wanted) {
            return None;
        }
        let name = self.next_of_reserve(options, wanted)?;
        Some(Step::Commit(self.begin_work(name, u32::MAX)))
    }

    /// Begins to give back what domains keep above a number of units.
    pub(super) fn begin_cooling_domains(&mut self, most: u64) -> Vec<UnitsAtWork> {
        let mut cooling = Vec::new();
        while self.kept_by_domains() > most {
            let excess = self.kept_by_domains() - most;
            cooling.extend(self.cool_some(excess, |domain| domain.is_some()));
        }
        cooling
    }

    /// Begins to give back units of one chunk of a segment whose domain is right.
    fn cool_some(
        &mut self,
        units: u64,
        is_right: impl Fn(Option<super::Domain>) -> bool,
    ) -> Vec<UnitsAtWork> {
        let is_right = |name: &&super::ChunkName| is_right(self.segments[&name.0].domain);
        let Some(&name) = self.kept_chunks.iter().find(is_right) else {
            unreachable!("there are units too many");
        };
        let units = lowest(self.chunk(name).kept(), units);
        vec![self.begin_work(name, units)]
    }

    /// A cold chunk of no domain, for one more step; of a new segment, if those there are hold their portion.
    fn next_of_reserve(&mut self, options: &PoolOptions, wanted: u64) -> Option<super::ChunkName> {
        let portion = (wanted / 4).max(LEAST_PORTION);
        let held = |chunk: &ChunkSpace| u64::from((chunk.ready | chunk.busy).count_ones());
        let cold = |(&id, space): (&u64, &super::SegmentSpace)| {
            let chunks = Some(&space.chunks).filter(|_| space.domain.is_none())?;
            let is_full = chunks.iter().map(held).sum::<u64>() >= portion;
            let cold = chunks.iter().position(|chunk| !chunk.is_live());
            cold.filter(|_| !is_full).map(|chunk| (id, chunk))
        };
        if let Some(found) = self.segments.iter().find_map(cold) {
            return Some(found);
        }
        if self.segments.len() >= options.segments / SEGMENTS_SHARE {
            return None;
        }
        self.open_segment(options, None, CHUNK).ok()
    }
}
