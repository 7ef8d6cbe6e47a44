//! One data file: blocks with their checksums, changed in epochs, recoverable at any step.
//!
//! The rules, and why a crash between any two system calls is harmless:
//!
//! 1. Everything has two places (header, table of a group, block). A *committed* place is never
//!    written; new versions go to the other one. So whatever is synced stays intact until
//!    something newer is synced.
//! 2. Changes belong to the *epoch* after the committed one. A table of an uncommitted epoch is a
//!    proposal: recovery believes it block by block, as far as bytes and checksum match, and
//!    otherwise takes the committed version.
//! 3. Inside an epoch a block may be written again, in the same place. Its table is written first and
//!    accepts both checksums, the new one and (as alternate) the one that is there. Since the page
//!    cache takes a 4 KiB page whole, the death of the *process* leaves one of the two; a power cut
//!    may tear the block, and then rule 2 applies.
//! 4. Sync writes tables and header, then one barrier; only after it are places exchanged. The
//!    note that the epoch is committed follows without a barrier of its own: should it get lost,
//!    recovery finds an uncommitted epoch whose bytes all match.
//! 5. Before the first change after opening, the header is marked open and synced. Only files
//!    marked open are recovered, so no unfinished table is ever met outside recovery, and there
//!    an undecodable table is damage.
//!
//! A failed barrier makes the file unusable for writing: the system may have dropped what it was
//! given. Reading goes on, since every block read is compared with its checksum.
//!
//! Left to others: caching, dirty bytes, and when to write. Cost: a table (4 KiB) per group touched
//! and epoch is written beside the blocks; one barrier per sync.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::device::{Disk, DiskFile};
use super::format::{
    BadHeader, GROUP_BLOCKS, GROUP_BYTES, GroupBits, Header, MAX_GROUPS, PAGE, Side, Table,
    VERSION, block_at, block_crc, group_of, header_at, table_at,
};
use super::group::{Group, WorkingGroup, WorkingOn};
use crate::blocks::BLOCK;
use crate::error::{Error, Result};
use crate::identity::{Identity, SubfileId};
use crate::store::Scrub;

/// Superseded places kept for the next version of their blocks; beyond, or when the disk is full,
/// they are punched. Punching after every sync halves the rate of overwriting: the places come back
/// without their pages (64 MiB again and again: 2.1 GB/s written back instead of 3.7).
const SPARE_BLOCKS: u64 = (128 << 20) / BLOCK;
/// Tables kept in memory per file, about 2.3 KiB each; beyond, unchanged ones are dropped.
const TABLES_KEPT: usize = 4096;

/// An open data file.
#[derive(Debug)]
pub(crate) struct DataFile {
    disk: Arc<dyn Disk>,
    pub(super) name: String,
    pub(super) file: Box<dyn DiskFile>,
    pub(super) header: Header,
    /// The header in memory is newer than any on disk.
    header_stale: bool,
    /// The header place that must not be written; `None` until the first barrier of a new file.
    pub(super) durable_side: Option<Side>,
    /// Whether a barrier of this process stands behind the header on that side. One that was found may be in the page
    /// cache only.
    pub(super) is_header_durable: bool,
    /// Rule 5: the header that says "open" is durable, or nothing is.
    pub(super) session_open: bool,
    /// The name may not survive a power cut yet.
    pub(super) name_stale: bool,
    pub(super) groups: BTreeMap<u64, Group>,
    /// Groups with a working table.
    changed: BTreeSet<u64>,
    /// Something was written since the last barrier that counts.
    pub(super) unsynced: bool,
    /// Superseded places by group and side, and how many there are.
    pub(super) spare: BTreeMap<u64, [GroupBits; 2]>,
    spare_blocks: u64,
    failed: Option<String>,
    /// What the last recovery had to decide.
    pub(super) recovery: Recovery,
}

/// What recovery found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The file had not been closed.
    pub was_open: bool,
    /// Unsynced blocks that were found complete and kept.
    pub kept_blocks: u64,
    /// Unsynced blocks that were incomplete; the version before them counts.
    pub dropped_blocks: u64,
}

/// The name of a subfile's data file.
pub(crate) fn name_of(id: SubfileId) -> String {
    format!("{:016x}-{:x}-{:x}.sub", id.file, id.generation, id.index)
}

/// Whether a name is one of ours.
pub(crate) fn is_data_file(name: &str) -> bool {
    name.ends_with(".sub")
}

impl DataFile {
    /// Creates a data file. It exists for other processes at once and durably after the first sync.
    pub(crate) fn create(
        disk: &Arc<dyn Disk>,
        identity: &Identity,
        tag: u64,
        copy: u64,
    ) -> Result<Self> {
        let name = name_of(identity.id);
        let file = disk.create(&name).map_err(|e| {
            if e.kind() == io::ErrorKind::AlreadyExists {
                Error::Exists(identity.id)
            } else {
                Error::io("creating a data file", e, PAGE as u64)
            }
        })?;
        let header = Header {
            identity: identity.clone(),
            tag,
            revision: 0,
            epoch: 0,
            committed: 0,
            len: 0,
            copy,
            is_open: true,
        };
        let mut data = DataFile::with(disk, name, file, header);
        data.session_open = true;
        data.is_header_durable = true; // there is none that must not be written
        data.name_stale = true;
        data.unsynced = true;
        // Both places, so that a header can be written when the disk is full.
        data.durable_side = Some(Side::Zero);
        let both = data.put_header().and_then(|()| {
            data.durable_side = None;
            data.put_header()
        });
        if let Err(e) = both {
            // Nobody has seen it yet. If this fails too, the empty file is told from a
            // damaged one by its blank header.
            let _ = data.disk.remove(&data.name);
            return Err(e);
        }
        Ok(data)
    }

    /// Opens a data file and recovers it if it was not closed.
    pub(crate) fn open(disk: &Arc<dyn Disk>, name: &str) -> Result<Self> {
        let file = disk
            .open(name)
            .map_err(|e| Error::io("opening a data file", e, 0))?;
        let (header, side) = read_header(name, &*file)?;
        let mut data = DataFile::with(disk, name.to_owned(), file, header);
        data.durable_side = Some(side); // as far as this process knows; see `begin_session`
        // A process that died may have taken room for a file that nobody writes any more.
        let _ = data.file.trim_end();
        if data.header.is_open {
            data.recover()?;
        }
        Ok(data)
    }

    fn with(disk: &Arc<dyn Disk>, name: String, file: Box<dyn DiskFile>, header: Header) -> Self {
        DataFile {
            disk: Arc::clone(disk),
            name,
            file,
            header,
            header_stale: false,
            durable_side: None,
            is_header_durable: false,
            session_open: false,
            name_stale: false,
            groups: BTreeMap::new(),
            changed: BTreeSet::new(),
            unsynced: false,
            spare: BTreeMap::new(),
            spare_blocks: 0,
            failed: None,
            recovery: Recovery::default(),
        }
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.header.identity
    }

    pub(crate) fn len(&self) -> u64 {
        self.header.len
    }

    /// How often it was moved to another disk.
    pub(crate) fn copy(&self) -> u64 {
        self.header.copy
    }

    pub(crate) fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Whether everything written is durable.
    pub(crate) fn is_synced(&self) -> bool {
        !self.unsynced && !self.header_stale && self.changed.is_empty()
    }

    pub(crate) fn allocated(&self) -> Result<u64> {
        self.file
            .allocated()
            .map_err(|e| Error::io("asking for the size of a data file", e, 0))
    }

    /// Reads whole blocks from `first` on and compares them with their checksums; holes are zero.
    pub(crate) fn read_blocks(&mut self, first: u64, target: &mut [u8]) -> Result<()> {
        debug_assert_eq!(target.len() % BLOCK as usize, 0);
        let (tag, id) = (self.header.tag, self.header.identity.id);
        let mut block = first;
        let mut rest = target;
        while !rest.is_empty() {
            let (group, index) = place_of(block);
            let run = (rest.len() / BLOCK as usize).min(GROUP_BLOCKS - index);
            self.load(group)?;
            let table = self.groups[&group].current();
            let mut at = 0;
            while at < run {
                let i = index + at;
                let alike = |j: usize| {
                    table.present.has(j) == table.present.has(i)
                        && (!table.present.has(i) || table.side(j) == table.side(i))
                };
                let count = (i..index + run).take_while(|&j| alike(j)).count();
                let part;
                (part, rest) = rest.split_at_mut(count * BLOCK as usize);
                if table.present.has(i) {
                    read_full(&*self.file, block_at(group, i, table.side(i)), part)?;
                    for (k, bytes) in part.chunks_exact(BLOCK as usize).enumerate() {
                        let number = group * GROUP_BLOCKS as u64 + (i + k) as u64;
                        if block_crc(tag, number, bytes) != table.crc[i + k] {
                            return Err(Error::Corrupt {
                                id,
                                offset: number * BLOCK,
                                why: "the block does not match its checksum",
                            });
                        }
                    }
                } else {
                    part.fill(0);
                }
                at += count;
            }
            block += run as u64;
        }
        Ok(())
    }

    /// Writes whole blocks of one group, ascending by index; `data` holds them one after the other.
    pub(crate) fn write_blocks(
        &mut self,
        group: u64,
        indexes: &[usize],
        data: &[u8],
    ) -> Result<()> {
        debug_assert_eq!(data.len(), indexes.len() * BLOCK as usize);
        debug_assert!(group < MAX_GROUPS);
        self.begin_epoch()?;
        let tag = self.header.tag;
        let mut working = self.work_on(group)?;
        for (&i, bytes) in indexes.iter().zip(data.chunks_exact(BLOCK as usize)) {
            working.propose(
                i,
                block_crc(tag, group * GROUP_BLOCKS as u64 + i as u64, bytes),
            );
        }
        let sides: Vec<Side> = indexes.iter().map(|&i| working.table().side(i)).collect();
        self.put_table(group)?;
        let mut at = 0;
        while at < indexes.len() {
            let run = (at..indexes.len())
                .take_while(|&k| indexes[k] == indexes[at] + (k - at) && sides[k] == sides[at])
                .count();
            let bytes = &data[at * BLOCK as usize..(at + run) * BLOCK as usize];
            self.unsynced = true;
            write_full(&*self.file, block_at(group, indexes[at], sides[at]), bytes)?;
            let working = self.groups.get_mut(&group).and_then(|g| g.working.as_mut());
            let working = working.expect("made above");
            indexes[at..at + run]
                .iter()
                .for_each(|&i| working.uncertain.set(i, false));
            at += run;
        }
        Ok(())
    }

    /// Lets the disk begin with what was written to groups.
    pub(crate) fn begin_sync(&self, groups: Range<u64>) {
        let first = table_at(groups.start, Side::Zero);
        let end = table_at(groups.end, Side::Zero);
        self.file.begin_sync(first, end - first);
    }

    /// Whether block `first` holds data, and how many blocks of its group up to `end` are alike.
    pub(crate) fn presence(&mut self, first: u64, end: u64) -> Result<(bool, u64)> {
        let (group, index) = place_of(first);
        if !self.groups.contains_key(&group) {
            // Long holes are skipped without reading tables that do not exist.
            let next = if group < MAX_GROUPS {
                self.next_group(group)?
            } else {
                None
            };
            if next != Some(group) {
                let until = next.map_or(end, |g| (g * GROUP_BLOCKS as u64).min(end));
                return Ok((false, until - first));
            }
        }
        let table = self.load(group)?.current();
        let last = (GROUP_BLOCKS as u64).min(index as u64 + (end - first)) as usize;
        let is_present = table.present.has(index);
        let alike = (index..last).take_while(|&i| table.present.has(i) == is_present);
        Ok((is_present, alike.count() as u64))
    }

    /// Makes blocks holes. Nothing is written before the next flush.
    pub(crate) fn clear_blocks(&mut self, blocks: Range<u64>) -> Result<()> {
        self.check_usable()?;
        if blocks.is_empty() {
            return Ok(());
        }
        let (first, last) = (place_of(blocks.start).0, place_of(blocks.end - 1).0);
        // Whatever can fail comes first, so that all blocks are cleared or none.
        let mut group = first;
        while let Some(found) = self.next_group(group)?.filter(|&g| g <= last) {
            self.load(found)?;
            group = found + 1;
        }
        let loaded: Vec<u64> = self.groups.range(first..=last).map(|(g, _)| *g).collect();
        for group in loaded {
            let base = group * GROUP_BLOCKS as u64;
            let from = blocks.start.saturating_sub(base) as usize;
            let to = (blocks.end - base).min(GROUP_BLOCKS as u64) as usize;
            let current = self.groups[&group].current();
            if (from..to).any(|i| current.present.has(i)) {
                let mut working = self.work_on(group)?;
                (from..to).for_each(|i| working.empty(i));
            }
        }
        Ok(())
    }

    /// Sets length and note; written with the next flush.
    pub(crate) fn set_attributes(&mut self, len: u64, identity: &Identity) -> Result<()> {
        if self.header.len != len || self.header.identity != *identity {
            self.begin_epoch()?;
            self.header.len = len;
            self.header.identity = identity.clone();
            self.header_stale = true;
        }
        Ok(())
    }

    /// Writes tables and header that are only in memory. Afterwards nothing is lost when this
    /// process dies.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.check_usable()?;
        let stale: Vec<u64> = self
            .changed
            .iter()
            .copied()
            .filter(|g| self.groups[g].working.as_ref().is_some_and(|w| w.stale))
            .collect();
        for group in stale {
            self.begin_epoch()?;
            self.put_table(group)?;
        }
        if self.header_stale {
            self.put_header()?;
        }
        Ok(())
    }

    /// Makes everything durable: flush, barrier, exchange places.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.flush()?;
        if self.is_synced() && !self.name_stale {
            return Ok(());
        }
        let uncertain = self.changed.iter().find(|g| {
            let working = self.groups[g].working.as_ref();
            working.is_some_and(|w| !w.uncertain.is_empty())
        });
        if let Some(group) = uncertain {
            return Err(Error::Io {
                doing: "syncing a data file",
                source: io::Error::other(format!(
                    "a write in group {group} failed and was not repeated"
                )),
            });
        }
        self.barrier()?;
        if self.name_stale {
            self.sync_name()?;
        }
        let mut emptied = false;
        for group in std::mem::take(&mut self.changed) {
            let entry = self
                .groups
                .get_mut(&group)
                .expect("changed groups are loaded");
            let working = entry.working.take().expect("changed groups have a table");
            let spare = self.spare.entry(group).or_default();
            for i in 0..GROUP_BLOCKS {
                let now = working.table.present.has(i).then(|| working.table.side(i));
                let had = entry.committed.present.has(i);
                emptied |= had && now.is_none();
                let old = had.then(|| entry.committed.side(i));
                let used = working.written.has(i).then(|| working.place(i, old));
                for side in [old, used]
                    .into_iter()
                    .flatten()
                    .filter(|s| Some(*s) != now)
                {
                    self.spare_blocks += 1;
                    spare[side.index() as usize].set(i, true);
                }
            }
            entry.side = Some(entry.table_side());
            entry.committed = working.table;
        }
        self.unsynced = false;
        self.durable_side = Some(self.scratch_side());
        self.header.committed = self.header.epoch;
        // Rule 4: this note needs no barrier, and failing to write it is no failure to sync.
        self.header_stale = self.put_header().is_err();
        self.unsynced = false;
        if emptied || self.spare_blocks > SPARE_BLOCKS {
            self.trim();
        }
        self.drop_tables();
        Ok(())
    }

    /// Syncs and notes that nothing is left to recover. More changes may follow.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.sync()?;
        self.trim();
        if self.session_open {
            self.header.is_open = false;
            let done = self.put_header();
            // Whatever the note's fate, the next change opens the session anew.
            self.header.is_open = true;
            done?;
            self.session_open = false;
            self.unsynced = false;
        }
        Ok(())
    }

    /// Frees superseded places and says whether there were any. Failing costs space and nothing
    /// else.
    pub(crate) fn trim(&mut self) -> bool {
        let mut freed = false;
        for (group, spare) in std::mem::take(&mut self.spare) {
            let Some(entry) = self.groups.get(&group) else {
                continue;
            };
            for side in [Side::Zero, Side::One] {
                let is_free = |i: usize| {
                    let uses = |t: &Table| t.present.has(i) && t.side(i) == side;
                    let working = entry.working.as_ref().map(|w| &w.table);
                    spare[side.index() as usize].has(i)
                        && !uses(&entry.committed)
                        && !working.is_some_and(uses)
                };
                let mut i = 0;
                while i < GROUP_BLOCKS {
                    let run = (i..GROUP_BLOCKS).take_while(|&j| is_free(j)).count();
                    if run > 0 {
                        let place = block_at(group, i, side);
                        freed |= self.file.punch(place, run as u64 * BLOCK).is_ok();
                    }
                    i += run.max(1);
                }
            }
        }
        self.spare_blocks = 0;
        freed
    }

    /// Reads everything that is stored and compares.
    pub(crate) fn scrub(&mut self) -> Result<Scrub> {
        let mut found = Scrub::default();
        let mut buffer = vec![0; BLOCK as usize];
        let mut next = 0;
        while let Some(group) = self.next_group(next)? {
            next = group + 1;
            let present = match self.load(group) {
                Ok(entry) => entry.current().present,
                Err(Error::Corrupt { offset, .. }) => {
                    found.damaged.push(offset);
                    continue;
                }
                Err(e) => return Err(e),
            };
            for i in (0..GROUP_BLOCKS).filter(|&i| present.has(i)) {
                let block = group * GROUP_BLOCKS as u64 + i as u64;
                found.blocks += 1;
                if self.read_blocks(block, &mut buffer).is_err() {
                    found.damaged.push(block * BLOCK);
                }
            }
        }
        Ok(found)
    }

    /// A complete, durable copy on another disk. The original is as it was.
    pub(crate) fn copy_to(&mut self, disk: &Arc<dyn Disk>, tag: u64) -> Result<DataFile> {
        let identity = self.header.identity.clone();
        let mut copy = DataFile::create(disk, &identity, tag, self.header.copy + 1)?;
        let copied = self.copy_blocks(&mut copy);
        match copied {
            Ok(()) => Ok(copy),
            Err(e) => {
                let _ = disk.remove(&copy.name);
                Err(e)
            }
        }
    }

    fn copy_blocks(&mut self, copy: &mut DataFile) -> Result<()> {
        let mut next = 0;
        let mut data = vec![0; GROUP_BYTES as usize];
        while let Some(group) = self.next_group(next)? {
            next = group + 1;
            let entry = self.load(group)?;
            // A block whose last write failed is still dirty above us, and will be written again;
            // until then its committed version is what must survive.
            let version = |i: usize| match &entry.working {
                Some(working) if !working.uncertain.has(i) => &working.table,
                _ => &entry.committed,
            };
            let indexes: Vec<usize> = (0..GROUP_BLOCKS)
                .filter(|&i| version(i).present.has(i))
                .collect();
            let places: Vec<(Side, u32)> = indexes
                .iter()
                .map(|&i| (version(i).side(i), version(i).crc[i]))
                .collect();
            for (k, (&i, &(side, crc))) in indexes.iter().zip(&places).enumerate() {
                let target = &mut data[k * BLOCK as usize..(k + 1) * BLOCK as usize];
                read_full(&*self.file, block_at(group, i, side), target)?;
                let number = group * GROUP_BLOCKS as u64 + i as u64;
                if block_crc(self.header.tag, number, target) != crc {
                    return Err(Error::Corrupt {
                        id: self.header.identity.id,
                        offset: number * BLOCK,
                        why: "the block does not match its checksum",
                    });
                }
            }
            if !indexes.is_empty() {
                let used = indexes.len() * BLOCK as usize;
                copy.write_blocks(group, &indexes, &data[..used])?;
            }
        }
        copy.set_attributes(self.header.len, &self.header.identity.clone())?;
        // An epoch of its own even for an empty subfile: a copy counts once it is committed.
        copy.begin_epoch()?;
        copy.sync()?;
        copy.barrier()
    }

    /// The first group from `group` on that is loaded or may be on disk.
    pub(super) fn next_group(&self, group: u64) -> Result<Option<u64>> {
        let loaded = self.groups.range(group..).next().map(|(g, _)| *g);
        if group >= MAX_GROUPS {
            return Ok(loaded);
        }
        let at = self
            .file
            .next_data(table_at(group, Side::Zero))
            .map_err(|e| Error::io("looking for data in a data file", e, 0))?;
        let stored = at.and_then(group_of);
        Ok(match (loaded, stored) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        })
    }

    pub(super) fn check_usable(&self) -> Result<()> {
        match &self.failed {
            Some(why) => Err(Error::DiskFailed {
                disk: self.disk.label(),
                why: why.clone(),
            }),
            None => Ok(()),
        }
    }

    pub(super) fn barrier(&mut self) -> Result<()> {
        self.check_usable()?;
        if let Err(e) = self.file.sync() {
            tracing::error!(disk = self.disk.label(), name = self.name, error = %e, "sync failed");
            self.failed = Some(format!("syncing {}: {e}", self.name));
            self.check_usable()?;
        }
        Ok(())
    }

    /// Rule 5, then opens the epoch after the committed one.
    fn begin_epoch(&mut self) -> Result<()> {
        self.check_usable()?;
        if !self.session_open {
            // The header found when opening may not be durable; it must be before the other
            // place is written.
            self.rewrite_found_header()?;
            self.barrier()?;
            self.is_header_durable = true;
            self.header.is_open = true;
            self.put_header()?;
            self.barrier()?;
            self.durable_side = Some(self.scratch_side());
            self.session_open = true;
        }
        if self.header.epoch == self.header.committed {
            self.header.epoch += 1;
            self.header_stale = true;
        }
        if self.header_stale {
            self.put_header()?;
        }
        Ok(())
    }

    /// Makes the header that was found dirty, with the bytes it has: a barrier alone does not write what an earlier
    /// one failed to.
    pub(super) fn rewrite_found_header(&mut self) -> Result<()> {
        if let (false, Some(side)) = (self.is_header_durable, self.durable_side) {
            let page = self.header.encode();
            write_full(&*self.file, header_at(side), &page[..])?;
        }
        Ok(())
    }

    /// Makes the name durable.
    pub(super) fn sync_name(&mut self) -> Result<()> {
        let synced = self.disk.sync_names();
        synced.map_err(|e| Error::io("syncing a directory", e, 0))?;
        self.name_stale = false;
        Ok(())
    }

    pub(super) fn scratch_side(&self) -> Side {
        self.durable_side.map_or(Side::Zero, Side::other)
    }

    pub(super) fn put_header(&mut self) -> Result<()> {
        self.header_stale = true;
        self.header.revision += 1;
        self.unsynced = true;
        let page = self.header.encode();
        write_full(&*self.file, header_at(self.scratch_side()), &page[..])?;
        self.header_stale = false;
        Ok(())
    }

    fn put_table(&mut self, group: u64) -> Result<()> {
        let (tag, epoch) = (self.header.tag, self.header.epoch);
        let entry = self.groups.get_mut(&group).expect("a loaded group");
        let side = entry.table_side();
        let working = entry.working.as_mut().expect("a changed group");
        working.table.epoch = epoch;
        working.stale = true;
        let page = working.table.encode(tag, group);
        self.unsynced = true;
        write_full(&*self.file, table_at(group, side), &page[..])?;
        working.stale = false;
        Ok(())
    }

    /// The working table of a group, made from the committed one if there is none.
    fn work_on(&mut self, group: u64) -> Result<WorkingOn<'_>> {
        self.load(group)?;
        self.changed.insert(group);
        let entry = self.groups.get_mut(&group).expect("loaded above");
        let working = entry.working.get_or_insert_with(|| {
            let mut table = entry.committed.clone();
            table.has_alternate = GroupBits::default();
            table.emptied = GroupBits::default();
            Box::new(WorkingGroup {
                table,
                written: GroupBits::default(),
                uncertain: GroupBits::default(),
                stale: true,
            })
        });
        Ok(WorkingOn {
            committed: &entry.committed,
            working,
        })
    }

    pub(super) fn load(&mut self, group: u64) -> Result<&Group> {
        if !self.groups.contains_key(&group) {
            let pages = self.read_tables(group)?;
            let entry = self.choose_committed(group, &pages)?;
            self.groups.insert(group, entry);
        }
        Ok(&self.groups[&group])
    }

    pub(super) fn read_tables(&self, group: u64) -> Result<[Box<[u8; PAGE]>; 2]> {
        let mut both = vec![0; 2 * PAGE];
        read_full(&*self.file, table_at(group, Side::Zero), &mut both)?;
        let page = |k: usize| -> Box<[u8; PAGE]> {
            both[k * PAGE..(k + 1) * PAGE]
                .to_vec()
                .try_into()
                .expect("one page")
        };
        Ok([page(0), page(1)])
    }

    /// The committed table outside recovery: the newer one, and whatever is not a table is damage.
    fn choose_committed(&self, group: u64, pages: &[Box<[u8; PAGE]>; 2]) -> Result<Group> {
        let mut best = Group::empty();
        for (side, page) in [Side::Zero, Side::One].into_iter().zip(pages) {
            if is_blank(page) {
                continue;
            }
            let table = Table::decode(page, self.header.tag, group);
            let Some(table) = table.filter(|t| t.epoch <= self.header.committed) else {
                return Err(Error::Corrupt {
                    id: self.header.identity.id,
                    offset: group * GROUP_BYTES,
                    why: "the table of checksums is damaged",
                });
            };
            if best.side.is_none() || table.epoch > best.committed.epoch {
                best.committed = table;
                best.side = Some(side);
            }
        }
        Ok(best)
    }

    /// Forgets tables that can be read again.
    fn drop_tables(&mut self) {
        if self.groups.len() > TABLES_KEPT {
            let spare = &self.spare;
            self.groups
                .retain(|group, entry| entry.working.is_some() || spare.contains_key(group));
        }
    }
}

/// Reads both headers and takes the newer one. Refuses what is not a data file of this version.
pub(crate) fn read_header(name: &str, file: &dyn DiskFile) -> Result<(Header, Side)> {
    let mut best: Option<(Header, Side)> = None;
    let mut blank = 0;
    for side in [Side::Zero, Side::One] {
        let mut page = [0; PAGE];
        read_full(file, header_at(side), &mut page)?;
        match Header::decode(&page) {
            Ok(header) => {
                if best
                    .as_ref()
                    .is_none_or(|(b, _)| header.revision > b.revision)
                {
                    best = Some((header, side));
                }
            }
            Err(BadHeader::Blank) => blank += 1,
            Err(BadHeader::Damaged) => {}
            Err(BadHeader::Version(found)) => {
                return Err(Error::Format {
                    name: name.to_owned(),
                    why: format!("format version {found}; this program reads version {VERSION}"),
                });
            }
        }
    }
    let name = name.to_owned();
    best.ok_or_else(|| match blank {
        2 => Error::Unfinished { name },
        _ => Error::Format {
            name,
            why: "both headers are damaged".to_owned(),
        },
    })
}

/// Refuses subfile bytes that a data file could not hold, with two places for each.
pub(crate) fn check_reach(end: u64) -> Result<()> {
    if end > MAX_GROUPS * GROUP_BYTES {
        return Err(Error::argument(
            "range",
            format!(
                "ends at {end}; a data file holds {}",
                MAX_GROUPS * GROUP_BYTES
            ),
        ));
    }
    Ok(())
}

/// Group of a block, and its index there.
pub(super) fn place_of(block: u64) -> (u64, usize) {
    (
        block / GROUP_BLOCKS as u64,
        (block % GROUP_BLOCKS as u64) as usize,
    )
}

pub(super) fn is_blank(page: &[u8; PAGE]) -> bool {
    page.iter().all(|&b| b == 0)
}

/// Reads all of `target`; what lies behind the end of the file is zero.
pub(super) fn read_full(file: &dyn DiskFile, mut at: u64, mut target: &mut [u8]) -> Result<()> {
    while !target.is_empty() {
        match file.read_at(at, target) {
            Ok(0) => {
                target.fill(0);
                return Ok(());
            }
            Ok(n) => {
                target = &mut target[n..];
                at += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("reading a data file", e, 0)),
        }
    }
    Ok(())
}

/// Writes all of `source`.
pub(super) fn write_full(file: &dyn DiskFile, mut at: u64, mut source: &[u8]) -> Result<()> {
    while !source.is_empty() {
        let doing = "writing a data file";
        match file.write_at(at, source) {
            Ok(0) => {
                let stuck = io::Error::from(io::ErrorKind::WriteZero);
                return Err(Error::io(doing, stuck, source.len() as u64));
            }
            Ok(n) => {
                source = &source[n..];
                at += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io(doing, e, source.len() as u64)),
        }
    }
    Ok(())
}
