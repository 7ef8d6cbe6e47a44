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
//! - With an account, the ledger has every extent before anybody finds it, and no memory of an extent goes to anybody else before
//!   the ledger has it no more.
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
use crate::cache::{CacheLink, Uses, Weight};
use crate::error::Result;
use crate::identity::{Domain, MAX_LEN};
use crate::ledger::account::Account;
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
    /// Blocks that were written to the data file, which does not say so yet.
    pub(crate) unflushed: Blocks,
    /// Blocks that are on record as those that only memory has.
    pub(crate) recorded: Blocks,
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
            && self.recorded.is_empty()
            && Arc::strong_count(&self.extent) == 1
    }

    /// What it counts for.
    fn weight(&self) -> Weight {
        let dirty = self.dirty.count();
        Weight {
            dirty,
            exposed: match self.storable {
                true => self.extent.len() / BLOCK,
                false => dirty,
            },
        }
    }

    /// Blocks that are lost with memory.
    fn unstored(&self) -> Blocks {
        let unwritten = self.dirty.union(&self.unflushed);
        match self.storable {
            true => unwritten.union(&self.loaded),
            false => unwritten,
        }
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
    /// Starts of extents with blocks that the data file does not know of yet.
    unflushed: BTreeSet<u64>,
    /// Extents with blocks on record.
    recorded: usize,
    /// Who decides what stays in memory, where that is a question.
    watched: Option<CacheLink>,
    /// What outlives the process, where anything does.
    account: Option<Account>,
}

/// What a new extent is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// Zeros that count.
    Loaded,
    /// Nothing yet; it is about to be used. What is at or behind this byte of the subfile is zero wherever it is not in
    /// memory, as the memory of a new extent is.
    Use { zeros_from: u64 },
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
        if let Some(account) = self.account.take() {
            let is_all = account.has_all_extents();
            // The ledger says whose memory it is.
            let of_ledger = |slot: &&Slot| is_all || !slot.recorded.is_empty();
            for slot in self.slots.values().filter(of_ledger) {
                slot.extent.leave();
            }
        }
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

    /// An empty table whose extents are on record.
    pub(crate) fn with_account(account: Account) -> Table {
        let mut table = Table::default();
        table.account = Some(account);
        table
    }

    /// The account of the subfile, for what else it has on record.
    pub(crate) fn account(&mut self) -> Option<&mut Account> {
        self.account.as_mut()
    }

    /// Puts on record what was changed, all at once; before that no memory of it goes to anybody else. A caller that changes one
    /// extent at a time calls this at the end; operations on ranges do it themselves.
    pub(crate) fn settle(&mut self) {
        if let Some(account) = &mut self.account {
            account.settle();
        }
    }

    /// Begins to put blocks on record. Extents that are on record already are in the table.
    pub(crate) fn set_account(&mut self, account: Account) {
        self.account = Some(account);
    }

    /// Notes what of an extent is lost with memory, if that has changed.
    fn note_unstored(&mut self, start: u64) {
        let (Some(account), Some(slot)) = (&mut self.account, self.slots.get_mut(&start)) else {
            return;
        };
        let unstored = slot.unstored();
        if account.has_all_extents() || unstored == slot.recorded {
            return;
        }
        let was_recorded = !slot.recorded.is_empty();
        slot.recorded = unstored;
        self.recorded += usize::from(!unstored.is_empty());
        self.recorded -= usize::from(was_recorded);
        match unstored.is_empty() {
            true => account.note_gone(start),
            false => account.note_blocks(start, &slot.extent, &unstored),
        }
    }

    /// A client may store into an extent from now on; the caller settles.
    pub(crate) fn let_store(&mut self, start: u64) {
        let slot = self.slots.get_mut(&start).expect("an extent of the table");
        let before = slot.weight();
        slot.storable = true;
        let now = slot.weight();
        self.weighed(before, now);
        self.note_unstored(start);
    }

    /// Dirty blocks are taken to be written: clean, but on record until the data file says that it has them.
    pub(crate) fn take_dirty(&mut self, start: u64, blocks: Range<usize>) {
        let slot = self.slots.get_mut(&start).expect("an extent of the table");
        if self.account.is_some() {
            for i in blocks.clone().filter(|&i| slot.dirty.has(i)) {
                slot.unflushed.insert(i..i + 1);
            }
            self.unflushed.insert(start);
        }
        self.mark_clean(start, blocks);
    }

    /// The data file has all blocks that were taken, and says so.
    pub(crate) fn note_flushed(&mut self) {
        for start in std::mem::take(&mut self.unflushed) {
            if let Some(slot) = self.slots.get_mut(&start) {
                slot.unflushed = Blocks::NONE;
                self.note_unstored(start);
            }
        }
    }

    /// Whether extents are on record.
    pub(crate) fn is_on_record(&self) -> bool {
        self.recorded > 0
    }

    /// Puts in an extent of which only memory has some blocks, as the record says. All that is loaded counts until
    /// [`Table::end_adoption`].
    pub(crate) fn put_adopted(&mut self, start: u64, extent: Arc<Extent>, blocks: Blocks) {
        self.put_in(
            start,
            extent,
            Fill::Use {
                zeros_from: u64::MAX,
            },
            0,
        );
        let slot = self.slots.get_mut(&start).expect("put in above");
        slot.loaded = blocks;
        slot.recorded = blocks;
        slot.storable = true;
        self.recorded += usize::from(!blocks.is_empty());
    }

    /// It is known how far clients had stored: what lies before that is dirty, and what lies behind it is zero.
    pub(crate) fn end_adoption(&mut self, len: u64) {
        let starts: Vec<u64> = self.slots.keys().copied().collect();
        for start in starts {
            let slot = self.slots.get_mut(&start).expect("listed above");
            if slot.recorded.is_empty() || slot.mapped.is_some() {
                continue;
            }
            let end = start + slot.extent.len();
            let from = len.clamp(start, end) - start;
            slot.extent.zero(from, slot.extent.len() - from);
            slot.storable = false;
            self.mark_stored(start..end.min(len.next_multiple_of(BLOCK)).max(start));
            self.note_unstored(start);
        }
        self.settle();
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
        if let Some(account) = &mut self.account
            && account.has_all_extents()
        {
            account.note_extent(start, &extent);
        }
        self.put_in(start, extent, fill, now);
    }

    /// Adds an extent that is on record already.
    pub(crate) fn put_in(&mut self, start: u64, extent: Arc<Extent>, fill: Fill, now: u64) {
        let blocks = (extent.len() / BLOCK) as usize;
        let mut loaded = Blocks::NONE;
        match fill {
            Fill::Loaded => loaded.insert(0..blocks),
            Fill::Use { zeros_from } => {
                let first = zeros_from.saturating_sub(start).div_ceil(BLOCK);
                loaded.insert((first as usize).min(blocks)..blocks);
            }
            Fill::Ahead => {}
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
            unflushed: Blocks::NONE,
            recorded: Blocks::NONE,
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
        if let Some(account) = &mut self.account
            && (account.has_all_extents() || !slot.recorded.is_empty())
        {
            account.note_gone(start);
            account.hold(&slot.extent);
        }
        self.recorded -= usize::from(!slot.recorded.is_empty());
        self.bytes -= slot.extent.len();
        self.dirty.remove(&start);
        self.weighed(slot.weight(), Weight::default());
        if let Some(watched) = &self.watched {
            watched.wasted(&mut slot.uses, None);
        }
        Some(slot)
    }

    /// Keeps count of blocks that are in memory only, or may be.
    fn weighed(&self, before: Weight, now: Weight) {
        if let Some(watched) = &self.watched {
            watched.weighed(before, now);
        }
    }

    /// Puts another extent of the same length in the place of one; the old one.
    pub(crate) fn replace(&mut self, start: u64, fresh: Arc<Extent>) -> Option<Arc<Extent>> {
        let slot = self.slots.get_mut(&start)?;
        debug_assert_eq!(slot.extent.len(), fresh.len());
        if let Some(account) = &mut self.account {
            account.note_extent(start, &fresh);
            account.hold(&slot.extent);
        }
        Some(std::mem::replace(&mut slot.extent, fresh))
    }

    /// Takes everything out.
    pub(crate) fn clear(&mut self) {
        let starts: Vec<u64> = self.slots.keys().copied().collect();
        for start in starts {
            self.remove(start);
        }
        self.settle();
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
        let filled = self.fill_gaps(range, fill, now, pool, domain);
        self.settle();
        filled
    }

    fn fill_gaps(
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
    ///
    /// What is zeroed is zeroed last: a process that is killed before has cut nothing, and one that is killed then has cut what
    /// lies behind the length on record.
    pub(crate) fn punch(&mut self, range: Range<u64>) {
        let mut zeros = Vec::new();
        let mut at = range.start;
        while at < range.end {
            match self.first_part(at..range.end) {
                TableRange::Gap(gap) => at = gap.end,
                TableRange::Extent { start, range: part } => {
                    let slot = self.slots.get_mut(&start).expect("found above");
                    if part.start == start && part.end == start + slot.extent.len() {
                        self.remove(start);
                    } else {
                        zeros.push((
                            Arc::clone(&slot.extent),
                            part.start - start..part.end - start,
                        ));
                        let blocks = covered(&(part.start - start..part.end - start));
                        let blocks = blocks.start as usize..blocks.end as usize;
                        slot.loaded.insert(blocks.clone());
                        self.mark_clean(start, blocks);
                    }
                    at = part.end;
                }
            }
        }
        self.settle();
        for (extent, part) in zeros {
            extent.zero(part.start, part.end - part.start);
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
        self.settle();
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
        self.settle();
    }

    /// Marks blocks dirty and loaded.
    pub(crate) fn mark_dirty(&mut self, start: u64, range: &Range<u64>) {
        let slot = self.slots.get_mut(&start).expect("an extent of the table");
        let blocks = local(start, range);
        let before = slot.weight();
        slot.loaded.insert(blocks.clone());
        slot.dirty.insert(blocks);
        let now = slot.weight();
        self.dirty.insert(start);
        self.weighed(before, now);
        self.note_unstored(start);
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
                    let before = slot.weight();
                    slot.dirty.insert_from(&loaded, local(start, &part));
                    let now = slot.weight();
                    if now.dirty > 0 {
                        self.dirty.insert(start);
                    }
                    self.weighed(before, now);
                    self.note_unstored(start);
                    part.end
                }
            };
        }
    }

    /// Marks blocks clean.
    pub(crate) fn mark_clean(&mut self, start: u64, blocks: Range<usize>) {
        let slot = self.slots.get_mut(&start).expect("an extent of the table");
        let before = slot.weight();
        slot.dirty.remove(blocks);
        let now = slot.weight();
        if now.dirty == 0 {
            self.dirty.remove(&start);
        }
        self.weighed(before, now);
        self.note_unstored(start);
    }

    /// Starts of extents with dirty blocks, from `from` on.
    pub(crate) fn dirty_from(&self, from: u64) -> impl Iterator<Item = u64> + '_ {
        self.dirty.range(from..).copied()
    }

    /// Lets go of extents that only maps below a number name.
    pub(crate) fn unmap(&mut self, before: u64) {
        let mut freed = Vec::new();
        for (start, slot) in &mut self.slots {
            if slot.mapped.take_if(|map| *map < before).is_some()
                && let Some(watched) = &self.watched
            {
                watched.used_unseen(*start);
            }
            if slot.storable && slot.mapped.is_none() {
                let before = slot.weight();
                slot.storable = false;
                if let Some(watched) = &self.watched {
                    watched.weighed(before, slot.weight());
                }
                freed.push(*start);
            }
        }
        for start in freed {
            self.note_unstored(start);
        }
        self.settle();
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
