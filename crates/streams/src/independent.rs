//! The segment of independent blocks: every VP fills blocks for itself, in any order among VPs (M-03, 1.6 and 3.2 of the
//! specification).
//!
//! ```text
//!  table a | table b | superblock 0 | 1 | 2 | ...      table:      VP -> first entry, last entry, bytes
//!                       data  data    entries  data    entry:      VP, next entry, k pointers to blocks
//! ```
//!
//! A member takes superblocks from a counter at the owner of the file, some at a time, and says nothing to other members; a
//! block is copied into the superblock that is being filled, and its address into the last entry of the VP.
//!
//! Invariants
//! - Blocks and entries never move. A pointer that is set stays; an entry gets its successor once. So whatever an older table
//!   counts is found, whatever was written since.
//! - A record of the table counts only with the root that names its page's home; a page is written to the other home.
//! - All blocks of a VP but the last are full, and have an address; the last has none until it is full or flushed.
//!
//! Cost: 56 bytes of memory for every VP of the member beside its buffer of a block.

use std::ops::Range;

use client::{Error, File, Result, Status};
use random::mix;

use crate::pages::Pages;
use crate::root::{IndependentRoot, RECORD_BYTES};

/// Superblocks that a member takes at once, at most.
const MOST_AT_ONCE: u64 = 16;

/// What is known about one VP of the member.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Vp {
    /// Where its stream is read and written next.
    pub(crate) position: u64,
    /// Bytes that it has in the segment.
    pub(crate) len: u64,
    /// Its first entry; 0: none.
    first: u64,
    /// Its last entry.
    last: u64,
    /// An entry on the way, and its number.
    cursor: u64,
    cursor_ordinal: u32,
    /// Blocks that have an address.
    placed: u32,
    /// One more than the block that is in its buffer; 0: none.
    buffered: u32,
    pub(crate) flags: Flags,
}

/// Marks of a VP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// The buffer has bytes that the file does not have.
    is_dirty: bool,
    /// A read came to the end of the stream.
    pub(crate) is_ended: bool,
    /// Its record has to be written.
    is_changed: bool,
    /// An operation of it failed.
    pub(crate) has_failed: bool,
}

/// A superblock that is being filled.
#[derive(Clone, Copy, Debug, Default)]
struct Filler {
    /// 0: none.
    address: u64,
    used: u64,
}

/// The VP that an operation is about: its place at this member, and its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) local: usize,
    pub(crate) number: u64,
}

/// Where the bytes of a read come from.
pub(crate) enum Source {
    /// From the buffer of the VP.
    Buffer(Range<usize>),
    /// From the file, straight to where they are wanted.
    File(u64),
    /// From the file into the buffer first, as many bytes, and from there.
    Load(u64, Range<usize>, Range<usize>),
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Independent {
    pub(crate) root: IndependentRoot,
    /// VPs of all members.
    vps: u64,
    data: Filler,
    entries: Filler,
    /// Superblocks that were taken and not used.
    spare: Range<u64>,
    /// Superblocks in use when the file was opened: the counter of this opening begins behind them.
    before: u64,
    at_once: u64,
    /// One more than the largest superblock that this member took.
    pub(crate) highest: u64,
    /// The buffers of all VPs of the member, one after the other.
    pub(crate) buffers: Vec<u8>,
}

fn damaged(text: String) -> Error {
    Error::Refused {
        status: Status::Malformed,
        text,
        server: None,
    }
}

impl Independent {
    pub(crate) fn new(root: IndependentRoot, vps: u64, count: usize) -> Independent {
        Independent {
            highest: root.superblocks,
            before: root.superblocks,
            buffers: vec![0; count * root.block as usize],
            root,
            vps,
            data: Filler::default(),
            entries: Filler::default(),
            spare: 0..0,
            at_once: 1,
        }
    }

    pub(crate) fn block(&self) -> u64 {
        self.root.block
    }

    /// Pages that writing takes: the last entries of all VPs, and a few.
    pub(crate) fn pages_to_write(&self, count: usize) -> usize {
        let entries = count as u64 * self.root.entry_bytes();
        (2 * entries / self.root.superblock) as usize + 4
    }

    fn buffer(&self, who: Who) -> Range<usize> {
        let block = self.root.block as usize;
        who.local * block..(who.local + 1) * block
    }

    /// The address of a new superblock.
    fn take(&mut self, file: &File) -> Result<u64> {
        if self.spare.is_empty() {
            let at = self.before + file.advance_shared(self.at_once)?;
            self.spare = at..at + self.at_once;
            self.at_once = (self.at_once * 2).min(MOST_AT_ONCE);
        }
        let taken = self.spare.start;
        self.spare.start += 1;
        self.highest = self.highest.max(taken + 1);
        let address = self.root.first_superblock(self.vps) + taken * self.root.superblock;
        match address < i64::MAX as u64 - self.root.superblock {
            true => Ok(address),
            false => Err(damaged("the file would be larger than 2^63 bytes".into())),
        }
    }

    /// Room for a block in the superblock that is being filled.
    fn place_block(&mut self, file: &File, pages: &mut Pages) -> Result<u64> {
        if self.data.address == 0 || self.data.used + self.root.block > self.root.superblock {
            if self.data.address > 0 {
                pages.seal(file, self.data.address)?;
            }
            let address = self.take(file)?;
            pages.add_fresh(file, address)?;
            self.data = Filler { address, used: 0 };
        }
        let at = self.data.address + self.data.used;
        self.data.used += self.root.block;
        Ok(at)
    }

    /// Room for a directory entry.
    fn place_entry(&mut self, file: &File, pages: &mut Pages) -> Result<u64> {
        let bytes = self.root.entry_bytes();
        if self.entries.address == 0 || self.entries.used + bytes > self.root.superblock {
            let address = self.take(file)?;
            pages.add_fresh(file, address)?;
            self.entries = Filler { address, used: 0 };
        }
        let at = self.entries.address + self.entries.used;
        self.entries.used += bytes;
        Ok(at)
    }

    /// What marks an entry as one of this VP.
    fn mark(&self, who: Who) -> u64 {
        self.root.stamp ^ who.number
    }

    /// Notes the address of the next block of a VP.
    fn add_pointer(
        &mut self,
        file: &File,
        pages: &mut Pages,
        who: Who,
        vp: &mut Vp,
        address: u64,
    ) -> Result<()> {
        let index = u64::from(vp.placed) % self.root.pointers;
        let placed = vp.placed.checked_add(1).ok_or_else(|| Error::Argument {
            name: "ib_block",
            text: format!(
                "VP {} has 2^32 blocks of {} bytes; give larger ones",
                who.number, self.root.block
            ),
        })?;
        if index == 0 {
            let entry = self.place_entry(file, pages)?;
            pages.write(file, entry, &self.mark(who).to_le_bytes())?;
            match vp.placed {
                0 => vp.first = entry,
                _ => pages.write(file, vp.last + 8, &entry.to_le_bytes())?,
            }
            vp.last = entry;
        }
        pages.write(file, vp.last + 16 + 8 * index, &address.to_le_bytes())?;
        vp.placed = placed;
        vp.flags.is_changed = true;
        Ok(())
    }

    /// A word of an entry, which has to be one of this VP.
    fn word(
        &self,
        file: &File,
        pages: &mut Pages,
        who: Who,
        entry: u64,
        index: usize,
    ) -> Result<u64> {
        self.check_address(who, entry, self.root.entry_bytes())?;
        let bytes = pages.look(file, entry)?;
        let word = |index: usize| {
            let bytes = bytes.get(8 * index..8 * index + 8);
            bytes.map_or(0, |bytes| {
                u64::from_le_bytes(bytes.try_into().unwrap_or_default())
            })
        };
        if word(0) != self.mark(who) {
            return Err(damaged(format!(
                "the directory of VP {} is damaged: no entry of it at byte {entry}; look with `pario stream check`",
                who.number
            )));
        }
        Ok(word(index))
    }

    /// Refuses an address where nothing can be.
    fn check_address(&self, who: Who, address: u64, unit: u64) -> Result<()> {
        let first = self.root.first_superblock(self.vps);
        let used = self.highest.max(self.root.superblocks);
        let end = first + used * self.root.superblock;
        let fits = (first..end).contains(&address)
            && ((address - first) % self.root.superblock).is_multiple_of(unit);
        fits.then_some(()).ok_or_else(|| {
            damaged(format!(
                "the directory of VP {} is damaged: it leads to byte {address}; look with `pario stream check`",
                who.number
            ))
        })
    }

    /// The address of a block that has one.
    fn address(
        &self,
        file: &File,
        pages: &mut Pages,
        who: Who,
        vp: &mut Vp,
        block: u32,
    ) -> Result<u64> {
        let pointers = self.root.pointers as u32;
        let ordinal = block / pointers;
        if ordinal == (vp.placed - 1) / pointers {
            (vp.cursor, vp.cursor_ordinal) = (vp.last, ordinal);
        } else if vp.cursor == 0 || vp.cursor_ordinal > ordinal {
            (vp.cursor, vp.cursor_ordinal) = (vp.first, 0);
        }
        while vp.cursor_ordinal < ordinal {
            vp.cursor = self.word(file, pages, who, vp.cursor, 1)?;
            vp.cursor_ordinal += 1;
        }
        let index = 2 + (block % pointers) as usize;
        let address = self.word(file, pages, who, vp.cursor, index)?;
        self.check_address(who, address, self.root.block)?;
        Ok(address)
    }

    /// Puts a block where it is, or where there is room.
    fn store(
        &mut self,
        file: &File,
        pages: &mut Pages,
        who: Who,
        vp: &mut Vp,
        (block, bytes): (u32, &[u8]),
    ) -> Result<()> {
        if block < vp.placed {
            let address = self.address(file, pages, who, vp, block)?;
            return pages.write(file, address, bytes);
        }
        let address = self.place_block(file, pages)?;
        pages.write(file, address, bytes)?;
        self.add_pointer(file, pages, who, vp, address)
    }

    /// Stores what the buffer of a VP has that the file does not have. The buffer keeps it.
    pub(crate) fn settle(
        &mut self,
        file: &File,
        pages: &mut Pages,
        who: Who,
        vp: &mut Vp,
    ) -> Result<()> {
        if !vp.flags.is_dirty {
            return Ok(());
        }
        let block = vp.buffered - 1;
        let begin = u64::from(block) * self.root.block;
        let valid = (vp.len - begin).min(self.root.block) as usize;
        let range = self.buffer(who);
        // The buffer is lent out, so that `self` can be used meanwhile.
        let buffers = std::mem::take(&mut self.buffers);
        let bytes = &buffers[range][..valid];
        let stored = self.store(file, pages, who, vp, (block, bytes));
        self.buffers = buffers;
        stored?;
        vp.flags.is_dirty = false;
        Ok(())
    }

    /// Number of the block at an offset in the segment.
    fn block_of(&self, who: Who, at: u64) -> Result<u32> {
        u32::try_from(at / self.root.block).map_err(|_| Error::Argument {
            name: "position",
            text: format!(
                "VP {} has at most 2^32 blocks of {} bytes",
                who.number, self.root.block
            ),
        })
    }

    /// Writes bytes of a VP at an offset in the segment; what lies between its end and them becomes zeros.
    pub(crate) fn write(
        &mut self,
        file: &File,
        pages: &mut Pages,
        who: Who,
        vp: &mut Vp,
        (at, bytes): (u64, &[u8]),
    ) -> Result<()> {
        const ZEROS: [u8; 4096] = [0; 4096];
        while vp.len < at {
            let n = (at - vp.len).min(ZEROS.len() as u64) as usize;
            self.write_within(file, pages, who, vp, (vp.len, &ZEROS[..n]))?;
        }
        self.write_within(file, pages, who, vp, (at, bytes))
    }

    /// Writes bytes that begin at the end of a stream or before.
    fn write_within(
        &mut self,
        file: &File,
        pages: &mut Pages,
        who: Who,
        vp: &mut Vp,
        (mut at, mut bytes): (u64, &[u8]),
    ) -> Result<()> {
        let size = self.root.block;
        while !bytes.is_empty() {
            let block = self.block_of(who, at)?;
            let within = (at % size) as usize;
            let n = (size as usize - within).min(bytes.len());
            let (now, rest) = bytes.split_at(n);
            let is_buffered = vp.buffered == block + 1;
            if n == size as usize && !is_buffered {
                self.store(file, pages, who, vp, (block, now))?;
            } else {
                if !is_buffered {
                    self.settle(file, pages, who, vp)?;
                    self.load(file, pages, who, vp, block)?;
                }
                let start = self.buffer(who).start + within;
                self.buffers[start..start + n].copy_from_slice(now);
                vp.flags.is_dirty = true;
            }
            at += n as u64;
            vp.len = vp.len.max(at);
            vp.flags.is_changed = true;
            if vp.buffered == block + 1 && within + n == size as usize {
                self.settle(file, pages, who, vp)?;
                vp.buffered = 0;
            }
            bytes = rest;
        }
        Ok(())
    }

    /// Brings a block into the buffer of a VP, which has nothing that would be lost.
    fn load(
        &mut self,
        file: &File,
        pages: &mut Pages,
        who: Who,
        vp: &mut Vp,
        block: u32,
    ) -> Result<()> {
        let range = self.buffer(who);
        vp.buffered = 0;
        if block < vp.placed {
            let address = self.address(file, pages, who, vp, block)?;
            let begin = u64::from(block) * self.root.block;
            let valid = (vp.len - begin).min(self.root.block) as usize;
            pages.read(file, address, &mut self.buffers[range][..valid])?;
        }
        vp.buffered = block + 1;
        Ok(())
    }

    /// Where bytes of a VP are in its buffer, if they are there: nothing else has to be looked at.
    pub(crate) fn buffered(
        &self,
        local: usize,
        vp: &Vp,
        at: u64,
        n: usize,
    ) -> Option<Range<usize>> {
        let begin = u64::from(vp.buffered.checked_sub(1)?) * self.root.block;
        let within = at.checked_sub(begin)?;
        let is_there = within + n as u64 <= self.root.block && at + n as u64 <= vp.len;
        is_there.then(|| {
            let start = local * self.root.block as usize + within as usize;
            start..start + n
        })
    }

    /// Puts bytes into the block that is in the buffer of a VP, if they are of it, end within it and leave no gap; whether they were.
    pub(crate) fn write_buffered(
        &mut self,
        local: usize,
        vp: &mut Vp,
        (at, bytes): (u64, &[u8]),
    ) -> bool {
        let Some(block) = vp.buffered.checked_sub(1) else {
            return false;
        };
        let Some(within) = at.checked_sub(u64::from(block) * self.root.block) else {
            return false;
        };
        // A block that becomes full is stored at once.
        let end = at + bytes.len() as u64;
        if within + bytes.len() as u64 >= self.root.block || at > vp.len {
            return false;
        }
        let start = local * self.root.block as usize + within as usize;
        self.buffers[start..start + bytes.len()].copy_from_slice(bytes);
        vp.len = vp.len.max(end);
        (vp.flags.is_dirty, vp.flags.is_changed) = (true, true);
        true
    }

    /// Says where the next bytes of a read come from, at most `most` of them, and how many those are. What has to be loaded
    /// counts as loaded.
    pub(crate) fn find(
        &mut self,
        file: &File,
        pages: &mut Pages,
        who: Who,
        vp: &mut Vp,
        (at, most): (u64, usize),
    ) -> Result<(usize, Source)> {
        let size = self.root.block as usize;
        let block = self.block_of(who, at)?;
        let within = (at % self.root.block) as usize;
        let n = (size - within).min(most);
        let buffer = self.buffer(who);
        let wanted = buffer.start + within..buffer.start + within + n;
        if vp.buffered == block + 1 {
            return Ok((n, Source::Buffer(wanted)));
        }
        if block >= vp.placed {
            return Err(damaged(format!("VP {} has no block {block}", who.number)));
        }
        let address = self.address(file, pages, who, vp, block)?;
        if within + n == size {
            // Nothing of the block is wanted later.
            return Ok((n, Source::File(address + within as u64)));
        }
        self.settle(file, pages, who, vp)?;
        vp.buffered = block + 1;
        let begin = u64::from(block) * self.root.block;
        let valid = (vp.len - begin).min(self.root.block) as usize;
        let load = buffer.start..buffer.start + valid;
        Ok((n, Source::Load(address, load, wanted)))
    }

    /// Reads bytes of a VP that are there, through pages.
    pub(crate) fn read(
        &mut self,
        file: &File,
        pages: &mut Pages,
        who: Who,
        vp: &mut Vp,
        (mut at, mut into): (u64, &mut [u8]),
    ) -> Result<()> {
        while !into.is_empty() {
            let (n, source) = self.find(file, pages, who, vp, (at, into.len()))?;
            let (now, rest) = into.split_at_mut(n);
            match source {
                Source::Buffer(range) => now.copy_from_slice(&self.buffers[range]),
                Source::File(address) => pages.read(file, address, now)?,
                Source::Load(address, load, wanted) => {
                    let loaded = pages.read(file, address, &mut self.buffers[load]);
                    if loaded.is_err() {
                        vp.buffered = 0;
                    }
                    loaded?;
                    now.copy_from_slice(&self.buffers[wanted]);
                }
            }
            at += n as u64;
            into = rest;
        }
        Ok(())
    }

    /// Goes through all blocks of a VP in their order, and says where each is.
    pub(crate) fn walk(
        &self,
        file: &File,
        pages: &mut Pages,
        who: Who,
        vp: &mut Vp,
        mut see: impl FnMut(u64),
    ) -> Result<()> {
        (0..vp.placed).try_for_each(|block| {
            see(self.address(file, pages, who, vp, block)?);
            Ok(())
        })
    }

    /// Takes a VP's record of the table.
    pub(crate) fn take_record(&self, who: Who, vp: &mut Vp, record: &[u8]) -> Result<()> {
        let word = |i: usize| {
            let bytes = record.get(8 * i..8 * i + 8).unwrap_or_default();
            u64::from_le_bytes(bytes.try_into().unwrap_or_default())
        };
        let (first, last, len) = (word(0), word(1), word(2));
        if word(3) != self.seal_of(who, [first, last, len]) {
            return Err(damaged(format!(
                "the record of VP {} is damaged; look with `pario stream check`",
                who.number
            )));
        }
        let placed = len.div_ceil(self.root.block);
        let placed = u32::try_from(placed)
            .map_err(|_| damaged(format!("VP {} has too many blocks", who.number)))?;
        if placed > 0 {
            self.check_address(who, first, self.root.entry_bytes())?;
            self.check_address(who, last, self.root.entry_bytes())?;
        }
        *vp = Vp {
            first,
            last,
            len,
            placed,
            position: vp.position,
            ..Vp::default()
        };
        Ok(())
    }

    /// The record of a VP, for the table.
    pub(crate) fn put_record(&self, who: Who, vp: &Vp, record: &mut [u8]) {
        let words = [vp.first, vp.last, vp.len];
        let seal = self.seal_of(who, words);
        for (bytes, word) in record
            .chunks_exact_mut(8)
            .zip([words[0], words[1], words[2], seal])
        {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        debug_assert_eq!(record.len() as u64, RECORD_BYTES);
    }

    /// What tells a record that was torn, or that is another file's, from a good one.
    fn seal_of(&self, who: Who, words: [u64; 3]) -> u64 {
        let all = words
            .iter()
            .fold(self.mark(who), |sum, word| mix(sum ^ word));
        mix(all)
    }
}

impl Vp {
    /// Whether its record has to be written; from now on it has not.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.flags.is_changed)
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.flags.is_changed
    }

    pub(crate) fn has_unwritten(&self) -> bool {
        self.flags.is_dirty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookkeeping_of_a_vp_is_at_most_64_bytes() {
        assert!(size_of::<Vp>() <= 64, "{}", size_of::<Vp>());
    }
}
