//! The extents that a disk store has in memory, all subfiles together: who goes first, and what is counted.
//!
//! Tables of extents tell it what comes, is used and goes; the thread that makes room asks it for an order. What
//! counts as a use is decided here: a run of short accesses inside one block, and the blocks of an extent
//! one after the other, are one use of the extent, not many. Otherwise a scan in pieces of 64 KiB would
//! make every extent of 2 MiB look hot.
//!
//! Its lock is the innermost of all: nothing is called while it is held.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::blocks::{BLOCK, Blocks};
use crate::policy::{Key, Policy};
use parking_lot::{Mutex, MutexGuard};

/// Uses of one block count as one within so many accesses to the store.
const CORRELATED: u64 = 64;

/// What a cache has counted since its store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// Bytes that were asked for and found in memory.
    pub hit_bytes: u64,
    /// Bytes that were asked for and had to be read from disk.
    pub miss_bytes: u64,
    /// Bytes of extents that were evicted.
    pub evicted_bytes: u64,
    /// Extents that came back soon after they had been evicted.
    pub returned: u64,
    /// Bytes that were read before anybody asked for them.
    pub ahead_bytes: u64,
    /// Those of them that a request asked for.
    pub ahead_hit_bytes: u64,
    /// Those of them that went unused.
    pub ahead_wasted_bytes: u64,
    /// Bytes written back to disk.
    pub written_bytes: u64,
    /// Committed bytes that are in memory only.
    pub dirty_bytes: u64,
}

impl CacheUsage {
    /// Bytes that were read ahead and are still waiting to be asked for.
    pub fn waiting_bytes(&self) -> u64 {
        let gone = self.ahead_hit_bytes + self.ahead_wasted_bytes;
        self.ahead_bytes.saturating_sub(gone)
    }
}

/// Shared by all tables of a store.
#[derive(Debug)]
pub(crate) struct Cache {
    policy: Mutex<Policy>,
    clock: AtomicU64,
    subfiles: AtomicU64,
    pub(crate) hit_bytes: AtomicU64,
    pub(crate) miss_bytes: AtomicU64,
    evicted_bytes: AtomicU64,
    ahead_bytes: AtomicU64,
    ahead_hit_bytes: AtomicU64,
    ahead_wasted_bytes: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    dirty_blocks: AtomicU64,
    exposed_blocks: AtomicU64,
}

/// Blocks of an extent that the disk lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Those that are known to be newer than the disk.
    pub(crate) dirty: u64,
    /// Those that are or may become so without anybody asking: all of an extent that clients may store into.
    pub(crate) exposed: u64,
}

impl Cache {
    pub(crate) fn new(limit_bytes: u64) -> Cache {
        Cache {
            policy: Mutex::new(Policy::new(limit_bytes)),
            clock: AtomicU64::new(0),
            subfiles: AtomicU64::new(0),
            hit_bytes: AtomicU64::new(0),
            miss_bytes: AtomicU64::new(0),
            evicted_bytes: AtomicU64::new(0),
            ahead_bytes: AtomicU64::new(0),
            ahead_hit_bytes: AtomicU64::new(0),
            ahead_wasted_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            dirty_blocks: AtomicU64::new(0),
            exposed_blocks: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Policy> {
        self.policy.lock()
    }

    /// Counts accesses, to tell uses that belong together.
    pub(crate) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// For the table of another subfile.
    pub(crate) fn watch(self: &Arc<Self>) -> CacheLink {
        CacheLink {
            cache: Arc::clone(self),
            subfile: self.subfiles.fetch_add(1, Ordering::Relaxed),
        }
    }

    pub(crate) fn usage(&self) -> CacheUsage {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheUsage {
            hit_bytes: get(&self.hit_bytes),
            miss_bytes: get(&self.miss_bytes),
            evicted_bytes: get(&self.evicted_bytes),
            returned: self.lock().returned(),
            ahead_bytes: get(&self.ahead_bytes),
            ahead_hit_bytes: get(&self.ahead_hit_bytes),
            ahead_wasted_bytes: get(&self.ahead_wasted_bytes),
            written_bytes: get(&self.written_bytes),
            dirty_bytes: self.dirty_bytes(),
        }
    }

    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.dirty_blocks.load(Ordering::Relaxed) * BLOCK
    }

    /// Bytes that are in memory only, or that clients may store into without asking.
    pub(crate) fn exposed_bytes(&self) -> u64 {
        self.exposed_blocks.load(Ordering::Relaxed) * BLOCK
    }

    pub(crate) fn waiting_bytes(&self) -> u64 {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let gone = get(&self.ahead_hit_bytes) + get(&self.ahead_wasted_bytes);
        get(&self.ahead_bytes).saturating_sub(gone)
    }

    /// What should go first, about so many bytes of it.
    pub(crate) fn first(&self, bytes: u64) -> Vec<Key> {
        self.lock().first_bytes(bytes)
    }

    /// Everything, what should go first at the beginning.
    pub(crate) fn order(&self) -> Vec<Key> {
        self.lock().order()
    }

    /// What passes through memory, without what is used again and again.
    pub(crate) fn passing(&self) -> Vec<Key> {
        self.lock().passing()
    }
}

/// The link of one table to the cache.
#[derive(Debug)]
pub(crate) struct CacheLink {
    pub(crate) cache: Arc<Cache>,
    pub(crate) subfile: u64,
}

impl Drop for CacheLink {
    fn drop(&mut self) {
        self.cache.lock().remove_all(self.subfile);
    }
}

/// How an extent was used lately.
#[derive(Debug)]
pub(crate) struct Uses {
    /// Blocks that were used since the last use that counted.
    seen: Blocks,
    /// Blocks that were read ahead and that nobody has used.
    ahead: Blocks,
    last_block: usize,
    counted_at: u64,
    /// Nothing of it was ever used.
    is_unused: bool,
}

impl Uses {
    pub(crate) fn new(is_ahead: bool, now: u64) -> Uses {
        Uses {
            seen: Blocks::NONE,
            ahead: Blocks::NONE,
            last_block: usize::MAX,
            counted_at: now,
            is_unused: is_ahead,
        }
    }

    /// Whether something that was read ahead waits here to be used.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.ahead.is_empty()
    }
}

impl CacheLink {
    pub(crate) fn inserted(&self, start: u64, bytes: u64, is_ahead: bool) {
        let mut policy = self.cache.lock();
        match is_ahead {
            true => policy.insert_ahead((self.subfile, start), bytes),
            false => policy.insert((self.subfile, start), bytes),
        }
    }

    /// Blocks of an extent were used.
    pub(crate) fn used(&self, start: u64, uses: &mut Uses, blocks: Range<usize>, now: u64) {
        let first = blocks.start;
        if uses.is_waiting() {
            let found = blocks.clone().filter(|&i| uses.ahead.has(i)).count() as u64;
            uses.ahead.remove(blocks.clone());
            let counter = &self.cache.ahead_hit_bytes;
            counter.fetch_add(found * BLOCK, Ordering::Relaxed);
        }
        let is_again = uses.seen.has(first)
            && (uses.last_block != first || now.saturating_sub(uses.counted_at) > CORRELATED);
        if is_again || std::mem::take(&mut uses.is_unused) {
            self.cache.lock().touch((self.subfile, start));
            uses.seen = Blocks::NONE;
            uses.counted_at = now;
        } else if !uses.seen.has(first) {
            uses.counted_at = now;
        }
        uses.last_block = blocks.end.saturating_sub(1);
        uses.seen.insert(blocks);
    }

    /// Blocks were read that nobody has asked for.
    pub(crate) fn read_ahead(&self, uses: &mut Uses, blocks: Range<usize>) {
        let bytes = (blocks.end - blocks.start) as u64 * BLOCK;
        uses.ahead.insert(blocks);
        self.cache.ahead_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// An extent was used without anybody seeing how, through a map.
    pub(crate) fn used_unseen(&self, start: u64) {
        self.cache.lock().touch((self.subfile, start));
    }

    pub(crate) fn evicted(&self, start: u64, bytes: u64) {
        self.cache.lock().evicted((self.subfile, start));
        let counter = &self.cache.evicted_bytes;
        counter.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn removed(&self, start: u64) {
        self.cache.lock().remove((self.subfile, start));
    }

    /// Blocks that were read ahead are no more, or are written over.
    pub(crate) fn wasted(&self, uses: &mut Uses, blocks: Option<Range<usize>>) -> u64 {
        if !uses.is_waiting() {
            return 0;
        }
        let found = match blocks {
            None => std::mem::replace(&mut uses.ahead, Blocks::NONE).count(),
            Some(blocks) => {
                let found = blocks.clone().filter(|&i| uses.ahead.has(i)).count() as u64;
                uses.ahead.remove(blocks);
                found
            }
        };
        let counter = &self.cache.ahead_wasted_bytes;
        counter.fetch_add(found * BLOCK, Ordering::Relaxed);
        found * BLOCK
    }

    /// An extent counts for so much now.
    pub(crate) fn weighed(&self, before: Weight, now: Weight) {
        let change = |counter: &AtomicU64, before: u64, now: u64| {
            if now > before {
                counter.fetch_add(now - before, Ordering::Relaxed);
            } else if now < before {
                counter.fetch_sub(before - now, Ordering::Relaxed);
            }
        };
        change(&self.cache.dirty_blocks, before.dirty, now.dirty);
        change(&self.cache.exposed_blocks, before.exposed, now.exposed);
    }
}
