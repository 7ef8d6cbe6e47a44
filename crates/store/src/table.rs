//! The extents of one subfile: which bytes have memory, and in what state.
//!
//! ```text
//! subfile   0        64K      128K              256K                      512K
//!           | extent | extent |     hole        |        extent           |
//! ```
//!
//! Invariants
//! - Extents are aligned to their size, a power of two from 64 KiB to 2 MiB, and do not overlap.
//! - A block that is not *loaded* has unknown bytes in memory; a *dirty* block is loaded and newer
//!   than what is on disk. In a memory store every block is loaded and none is ever dirty.
//! - An extent with writers stays in the table under the same identity, or their commit is refused.
//!
//! The size of a new extent follows density: it is the largest aligned one that is free, and
//! either half covered by the request or preceded by as much allocated space. So an appended
//! subfile doubles its extents up to 2 MiB, and one that is written here and there stays at 64 KiB.
//!
//! Cost: finding an extent is O(log extents).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::blocks::{BLOCK, Blocks, covered, touched};
use crate::cache::{CacheLink, Uses};
use crate::error::Result;
use crate::identity::{Domain, MAX_LEN};
use crate::pins::Pins;
use crate::pool::{CHUNK, Extent, Pool, UNIT};

/// One extent with the state of its blocks.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) extent: Arc<Extent>,
    pub(crate) loaded: Blocks,
    pub(crate) dirty: Blocks,
    /// Blocks that an abandoned grant may have left in any state; unloaded when no writer is left.
    pub(crate) spoiled: Blocks,
    /// Grants that have not ended.
    pub(crate) writers: u32,
    /// Some of its blocks are on their way to the disk.
    pub(crate) writing: bool,
    /// The last map that names it, until that is void.
    pub(crate) mapped: Option<u64>,
    /// A client may store into it through a map. All its blocks are loaded, and what is in memory
    /// counts although no block need be dirty yet.
    pub(crate) storable: bool,
    /// How it was used lately, for eviction.
    pub(crate) uses: Uses,
}

impl Slot {
    /// Whether nobody uses it and nothing is lost without it.
    pub(crate) fn is_idle(&self) -> bool {
        self.writers == 0
            && !self.writing
            && self.mapped.is_none()
            && self.dirty.is_empty()
            && Arc::strong_count(&self.extent) == 1
    }

    /// Whether all its bytes are there, and none of them about to arrive for the first time.
    pub(crate) fn is_whole(&self) -> bool {
        let blocks = self.extent.len() / BLOCK;
        self.writers == 0 && self.spoiled.is_empty() && self.loaded.count() == blocks
    }

    /// One grant less; the last one lets go of blocks that were left in any state.
    pub(crate) fn release_writer(&mut self) {
        self.writers -= 1;
        if self.writers == 0 {
            self.loaded.subtract_unless(&self.spoiled, &self.dirty);
            self.spoiled = Blocks::NONE;
        }
    }
}

/// The extents of one subfile by first byte.
#[derive(Debug, Default)]
pub(crate) struct Table {
    slots: BTreeMap<u64, Slot>,
    bytes: u64,
    /// Starts of extents with dirty blocks.
    dirty: BTreeSet<u64>,
    /// Who decides what stays in memory, where that is a question.
    watched: Option<CacheLink>,
}

/// What a new extent is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// Zeros that count.
    Loaded,
    /// Nothing yet; it is about to be used.
    Use,
    /// Nothing yet; a write may use it later.
    Ahead,
}

/// What the table knows about one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockState {
    Absent,
    Unloaded { start: u64 },
    Loaded,
}

/// A part of a range: inside an extent (its start), or outside all.
pub(crate) enum TableRange {
    Extent { start: u64, range: Range<u64> },
    Gap(Range<u64>),
}

impl Drop for Table {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Table {
    /// An empty table whose extents can be evicted.
    pub(crate) fn watched(watched: CacheLink) -> Table {
        let mut table = Table::default();
        table.watched = Some(watched);
        table
    }

    /// The cache's number of the subfile.
    pub(crate) fn number(&self) -> Option<u64> {
        self.watched.as_ref().map(|w| w.subfile)
    }

    /// Bytes of all extents.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = (u64, &Slot)> {
        self.slots.iter().map(|(start, slot)| (*start, slot))
    }

    pub(crate) fn slot_mut(&mut self, start: u64) -> Option<&mut Slot> {
        self.slots.get_mut(&start)
    }

    /// The extent that holds a byte, with its start.
    pub(crate) fn find(&self, offset: u64) -> Option<(u64, &Slot)> {
        let (start, slot) = self.slots.range(..=offset).next_back()?;
        (offset < start + slot.extent.len()).then_some((*start, slot))
    }

    /// The extents that have a byte of a range, ascending.
    pub(crate) fn meeting(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &Slot)> {
        let first = self
            .find(range.start)
            .map_or(range.start, |(start, _)| start);
        let end = range.end.max(first);
        self.slots
            .range(first..end)
            .map(|(start, slot)| (*start, slot))
    }

    /// From the first to the last byte of the extents that a range meets.
    pub(crate) fn span(&self, range: Range<u64>) -> Range<u64> {
        let mut span = range.clone();
        for (start, slot) in self.meeting(range) {
            span.start = span.start.min(start);
            span.end = span.end.max(start + slot.extent.len());
        }
        span.start..span.end.min(MAX_LEN)
    }

    /// The part of `range` that begins at its start. Callers walk a range by taking parts.
    pub(crate) fn first_part(&self, range: Range<u64>) -> TableRange {
        if let Some((start, slot)) = self.find(range.start) {
            let end = (start + slot.extent.len()).min(range.end);
            return TableRange::Extent {
                start,
                range: range.start..end,
            };
        }
        let next = self.slots.range(range.clone()).next();
        TableRange::Gap(range.start..next.map_or(range.end, |(start, _)| *start))
    }

    /// Start, at least `floor`, and class, at most `largest`, of a new extent for a gap that begins at `gap.start`.
    pub(crate) fn choose(&self, gap: Range<u64>, floor: u64, largest: usize) -> (u64, usize) {
        let fits = |class: usize| {
            let len = UNIT << class;
            let start = gap.start / len * len;
            let end = start + len;
            // Free means: nothing reaches in from before, and nothing begins inside.
            let free = self.find(start).is_none() && self.slots.range(start..end).next().is_none();
            let wanted = gap.end.min(end) - gap.start.max(start);
            let dense =
                wanted * 2 >= len || (start >= len && self.allocated_in(start - len..start) == len);
            start >= floor && free && dense
        };
        let class = (1..=largest).rev().find(|&class| fits(class)).unwrap_or(0);
        let len = UNIT << class;
        (gap.start / len * len, class)
    }

    /// Bytes of a range that extents hold; the range is at most [`CHUNK`] long.
    fn allocated_in(&self, range: Range<u64>) -> u64 {
        debug_assert!(range.end - range.start <= CHUNK);
        let before = self
            .find(range.start)
            .map_or(range.start, |(start, _)| start);
        self.slots
            .range(before..range.end)
            .map(|(start, slot)| {
                let end = (start + slot.extent.len()).min(range.end);
                end.saturating_sub((*start).max(range.start))
            })
            .sum()
    }

    /// Adds an extent.
    pub(crate) fn insert(&mut self, start: u64, extent: Arc<Extent>, fill: Fill, now: u64) {
        let blocks = (extent.len() / BLOCK) as usize;
        let mut loaded = Blocks::NONE;
        if fill == Fill::Loaded {
            loaded.insert(0..blocks);
        }
        let is_ahead = fill == Fill::Ahead;
        if let Some(watched) = &self.watched {
            watched.inserted(start, extent.len(), is_ahead);
        }
        debug_assert_eq!(start % extent.len(), 0);
        self.bytes += extent.len();
        let slot = Slot {
            extent,
            loaded,
            dirty: Blocks::NONE,
            spoiled: Blocks::NONE,
            writers: 0,
            writing: false,
            mapped: None,
            storable: false,
            uses: Uses::new(is_ahead, now),
        };
        let replaced = self.slots.insert(start, slot);
        debug_assert!(replaced.is_none());
    }

    /// Takes an extent out.
    pub(crate) fn remove(&mut self, start: u64) -> Option<Slot> {
        let slot = self.take_out(start)?;
        if let Some(watched) = &self.watched {
            watched.removed(start);
        }
        Some(slot)
    }

    /// Takes an extent out for lack of room; its bytes.
    pub(crate) fn evict(&mut self, start: u64) -> u64 {
        let Some(slot) = self.take_out(start) else {
            return 0;
        };
        if let Some(watched) = &self.watched {
            watched.evicted(start, slot.extent.len());
        }
        slot.extent.len()
    }

    fn take_out(&mut self, start: u64) -> Option<Slot> {
        let mut slot = self.slots.remove(&start)?;
        self.bytes -= slot.extent.len();
        self.dirty.remove(&start);
        self.dirtied(slot.dirty.count(), 0);
        if let Some(watched) = &self.watched {
            watched.wasted(&mut slot.uses, None);
        }
        Some(slot)
    }

    /// Keeps count of dirty blocks.
    fn dirtied(&self, before: u64, now: u64) {
        if let Some(watched) = &self.watched {
            watched.dirtied(before, now);
        }
    }

    /// Puts another extent of the same length in the place of one; the old one.
    pub(crate) fn replace(&mut self, start: u64, fresh: Arc<Extent>) -> Option<Arc<Extent>> {
        let slot = self.slots.get_mut(&start)?;
        debug_assert_eq!(slot.extent.len(), fresh.len());
        Some(std::mem::replace(&mut slot.extent, fresh))
    }

    /// Takes everything out.
    pub(crate) fn clear(&mut self) {
        let starts: Vec<u64> = self.slots.keys().copied().collect();
        for start in starts {
            self.remove(start);
        }
    }

    /// Pins a range as it is: extents, and holes where there are none.
    pub(crate) fn pin(&mut self, range: Range<u64>, pins: &mut Pins, now: u64) {
        let mut at = range.start;
        while at < range.end {
            match self.first_part(at..range.end) {
                TableRange::Extent { start, range } => {
                    let slot = self.slots.get_mut(&start).expect("found above");
                    if let Some(watched) = self.watched.as_ref().filter(|_| !pins.is_again) {
                        watched.used(start, &mut slot.uses, local(start, &range), now);
                    }
                    let memory = (Arc::clone(&slot.extent), range.start - start);
                    pins.push(range.start, range.end - range.start, Some(memory));
                    at = range.end;
                }
                TableRange::Gap(gap) => {
                    pins.push(gap.start, gap.end - gap.start, None);
                    at = gap.end;
                }
            }
        }
    }

    /// Pins what is loaded, from the start of a range up to the first block that is not; says where
    /// that is.
    pub(crate) fn pin_loaded(&mut self, range: Range<u64>, pins: &mut Pins, now: u64) -> u64 {
        let mut at = range.start;
        while at < range.end {
            let TableRange::Extent { start, range: part } = self.first_part(at..range.end) else {
                break;
            };
            let slot = self.slots.get_mut(&start).expect("found above");
            let blocks = local(start, &part);
            let missing = blocks.clone().find(|&i| !slot.loaded.has(i));
            let end = missing.map_or(part.end, |i| (start + i as u64 * BLOCK).max(at));
            if end > at {
                if let Some(watched) = self.watched.as_ref().filter(|_| !pins.is_again) {
                    watched.used(start, &mut slot.uses, local(start, &(at..end)), now);
                }
                pins.push(at, end - at, Some((Arc::clone(&slot.extent), at - start)));
            }
            at = end;
            if missing.is_some() {
                break;
            }
        }
        at
    }

    /// Whether a block is in an extent, and loaded.
    pub(crate) fn block_state(&self, block: u64) -> BlockState {
        match self.find(block * BLOCK) {
            None => BlockState::Absent,
            Some((start, slot)) => {
                if slot.loaded.has(((block * BLOCK - start) / BLOCK) as usize) {
                    BlockState::Loaded
                } else {
                    BlockState::Unloaded { start }
                }
            }
        }
    }

    /// The first loaded block from `block` on; at most `end`.
    pub(crate) fn unloaded_until(&self, block: u64, end: u64) -> u64 {
        let mut at = block;
        while at < end {
            match self.first_part(at * BLOCK..end * BLOCK) {
                TableRange::Gap(gap) => at = gap.end / BLOCK,
                TableRange::Extent { start, range } => {
                    let slot = &self.slots[&start];
                    if let Some(i) = local(start, &range).find(|&i| slot.loaded.has(i)) {
                        return start / BLOCK + i as u64;
                    }
                    at = range.end / BLOCK;
                }
            }
        }
        end
    }

    /// Gives an unloaded block its bytes; `None` is a hole.
    pub(crate) fn install(&mut self, block: u64, bytes: Option<&[u8]>) {
        let BlockState::Unloaded { start } = self.block_state(block) else {
            return; // another thread was faster, and may have written since
        };
        let slot = self.slots.get_mut(&start).expect("found above");
        let at = block * BLOCK - start;
        match bytes {
            Some(bytes) => slot.extent.copy_in(at, bytes),
            None => slot.extent.zero(at, BLOCK),
        }
        let index = (at / BLOCK) as usize;
        slot.loaded.insert(index..index + 1);
    }

    /// Fills the gaps of a range with extents. On failure what was added stays: it
    /// is zero, and costs memory that a truncation or an eviction gives back.
    pub(crate) fn fill(
        &mut self,
        range: Range<u64>,
        fill: Fill,
        now: u64,
        pool: &Pool,
        domain: Domain,
    ) -> Result<()> {
        let allocate = |class| pool.allocate(domain, class);
        let mut at = range.start;
        while at < range.end {
            match self.first_part(at..range.end) {
                TableRange::Extent { range, .. } => at = range.end,
                TableRange::Gap(gap) => {
                    let (start, class) = self.choose(gap, 0, pool.largest_class());
                    // Under a tight limit a small extent may fit where a large one does not.
                    let (start, extent) = match allocate(class) {
                        Ok(extent) => (start, extent),
                        Err(_) if class > 0 => (at / UNIT * UNIT, allocate(0)?),
                        Err(e) => return Err(e),
                    };
                    self.insert(start, extent, fill, now);
                }
            }
        }
        Ok(())
    }

    /// Frees extents inside a range and zeros the rest of it. Blocks that are zeroed as a whole are
    /// loaded and clean: a disk store forgets the same blocks on disk. Blocks at the edges must be
    /// loaded, or absent, and are the caller's to mark.
    pub(crate) fn punch(&mut self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            match self.first_part(at..range.end) {
                TableRange::Gap(gap) => at = gap.end,
                TableRange::Extent { start, range: part } => {
                    let slot = self.slots.get_mut(&start).expect("found above");
                    if part.start == start && part.end == start + slot.extent.len() {
                        self.remove(start);
                    } else {
                        slot.extent.zero(part.start - start, part.end - part.start);
                        let blocks = covered(&(part.start - start..part.end - start));
                        let blocks = blocks.start as usize..blocks.end as usize;
                        slot.loaded.insert(blocks.clone());
                        self.mark_clean(start, blocks);
                    }
                    at = part.end;
                }
            }
        }
    }

    /// Whether every byte of a range is in an extent that is as wanted.
    pub(crate) fn covers(&self, range: Range<u64>, is_wanted: impl Fn(&Slot) -> bool) -> bool {
        let mut at = range.start;
        for (start, slot) in self.meeting(range.clone()) {
            if start > at || !is_wanted(slot) {
                return false;
            }
            at = start + slot.extent.len();
        }
        at >= range.end
    }

    /// Extents that lie behind a length as a whole.
    pub(crate) fn behind(&self, len: u64) -> impl Iterator<Item = (u64, &Slot)> {
        self.slots.range(len..).map(|(start, slot)| (*start, slot))
    }

    /// Frees extents that lie behind a length as a whole and that nobody uses.
    pub(crate) fn trim(&mut self, len: u64) {
        let idle = self.behind(len).filter(|(_, slot)| slot.is_idle());
        let idle: Vec<u64> = idle.map(|(start, _)| start).collect();
        for start in idle {
            self.remove(start);
        }
    }

    /// Frees extents inside a range, and leaves the others as they are.
    pub(crate) fn release(&mut self, range: Range<u64>) {
        let is_inside = |(start, slot): &(u64, &Slot)| {
            range.start <= *start && start + slot.extent.len() <= range.end
        };
        let inside = self.meeting(range.clone()).filter(is_inside);
        let inside: Vec<u64> = inside.map(|(start, _)| start).collect();
        for start in inside {
            self.remove(start);
        }
    }

    /// Marks blocks dirty and loaded.
    pub(crate) fn mark_dirty(&mut self, start: u64, range: &Range<u64>) {
        let slot = self.slots.get_mut(&start).expect("an extent of the table");
        let blocks = local(start, range);
        let before = slot.dirty.count();
        slot.loaded.insert(blocks.clone());
        slot.dirty.insert(blocks);
        let now = slot.dirty.count();
        self.dirty.insert(start);
        self.dirtied(before, now);
    }

    /// Marks the blocks of a range that a client with a map may have stored into. Blocks that are not
    /// loaded are none of these.
    pub(crate) fn mark_stored(&mut self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            at = match self.first_part(at..range.end) {
                TableRange::Gap(gap) => gap.end,
                TableRange::Extent { start, range: part } => {
                    let slot = self.slots.get_mut(&start).expect("found above");
                    let loaded = slot.loaded;
                    let before = slot.dirty.count();
                    for i in local(start, &part).filter(|&i| loaded.has(i)) {
                        slot.dirty.insert(i..i + 1);
                    }
                    let now = slot.dirty.count();
                    if now > 0 {
                        self.dirty.insert(start);
                    }
                    self.dirtied(before, now);
                    part.end
                }
            };
        }
    }

    /// Marks blocks clean.
    pub(crate) fn mark_clean(&mut self, start: u64, blocks: Range<usize>) {
        let slot = self.slots.get_mut(&start).expect("an extent of the table");
        let before = slot.dirty.count();
        slot.dirty.remove(blocks);
        let now = slot.dirty.count();
        if now == 0 {
            self.dirty.remove(&start);
        }
        self.dirtied(before, now);
    }

    /// Starts of extents with dirty blocks, from `from` on.
    pub(crate) fn dirty_from(&self, from: u64) -> impl Iterator<Item = u64> + '_ {
        self.dirty.range(from..).copied()
    }

    /// Lets go of extents that only maps below a number name.
    pub(crate) fn unmap(&mut self, before: u64) {
        for (start, slot) in &mut self.slots {
            if slot.mapped.take_if(|map| *map < before).is_some()
                && let Some(watched) = &self.watched
            {
                watched.used_unseen(*start);
            }
            slot.storable &= slot.mapped.is_some();
        }
    }

    /// Whether a client has mapped an extent.
    pub(crate) fn is_mapped(&self) -> bool {
        self.slots.values().any(|slot| slot.mapped.is_some())
    }

    /// Whether any block is dirty.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// The first block of a range of blocks that is not loaded.
    pub(crate) fn first_unloaded(&self, blocks: Range<u64>) -> Option<u64> {
        let mut at = blocks.start;
        while at < blocks.end {
            match self.first_part(at * BLOCK..blocks.end * BLOCK) {
                TableRange::Gap(_) => return Some(at),
                TableRange::Extent { start, range } => {
                    let slot = &self.slots[&start];
                    if let Some(i) = local(start, &range).find(|&i| !slot.loaded.has(i)) {
                        return Some(start / BLOCK + i as u64);
                    }
                    at = range.end / BLOCK;
                }
            }
        }
        None
    }

    /// A request is about to write over bytes of an extent: what was read ahead there was in vain.
    pub(crate) fn note_overwritten(&mut self, start: u64, part: &Range<u64>) {
        if let (Some(slot), Some(watched)) = (self.slots.get_mut(&start), &self.watched) {
            watched.wasted(&mut slot.uses, Some(local(start, part)));
        }
    }

    /// Nobody is expected any more to ask for what was read ahead of an extent; how many bytes that is.
    pub(crate) fn give_up_ahead(&mut self, start: u64) -> u64 {
        match (self.slots.get_mut(&start), &self.watched) {
            (Some(slot), Some(watched)) => watched.wasted(&mut slot.uses, None),
            _ => 0,
        }
    }

    /// Notes blocks that were installed although nobody asked for them.
    pub(crate) fn note_ahead(&mut self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            at = match self.first_part(at..range.end) {
                TableRange::Gap(gap) => gap.end,
                TableRange::Extent { start, range: part } => {
                    let slot = self.slots.get_mut(&start).expect("found above");
                    if let Some(watched) = &self.watched {
                        watched.read_ahead(&mut slot.uses, local(start, &part));
                    }
                    part.end
                }
            };
        }
    }
}

/// Blocks of an extent that a range of the subfile touches, counted from the extent's start.
pub(crate) fn local(start: u64, range: &Range<u64>) -> Range<usize> {
    let blocks = touched(&(range.start - start..range.end - start));
    blocks.start as usize..blocks.end as usize
}
