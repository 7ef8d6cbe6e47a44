//! Recovery: what counts in a data file whose last process ended without closing it.
//!
//! Applies rule 2 of [`super::file`]: a proposal is believed block by block, as far as bytes and
//! checksum match. It can be interrupted at any step and begun again: nothing committed is
//! written with other bytes, and a table that is rewritten in place was never synced.
//!
//! Whatever is believed is written again before it counts (ADR 0020). What a process reads may be in the page cache and
//! nowhere else: after a barrier that failed the kernel calls such pages clean, and no later barrier writes them. So
//! the header that was found, the tables of the unfinished epoch, the blocks they propose and the places where a
//! table was erased are made dirty again with the bytes they have. Writing the same bytes over something durable is harmless
//! at any step. Tables and blocks up to the committed epoch are durable: a header that says so was written after
//! the barrier.
//!
//! Left to others: cutting what lies behind the recovered length (the cache does it).
//!
//! Cost: reads both tables of every group that exists; reads and writes every block of the unfinished epoch.

use std::ops::Range;

use super::file::{DataFile, is_blank, read_full, write_full};
use super::format::{
    GROUP_BLOCKS, GROUP_BYTES, GroupBits, MAX_GROUPS, PAGE, Side, Table, block_at, block_crc,
    table_at,
};
use super::group::Group;
use crate::blocks::BLOCK;
use crate::error::{Error, Result};

impl DataFile {
    /// Decides what counts after the last process ended without closing the file.
    pub(super) fn recover(&mut self) -> Result<()> {
        self.recovery.was_open = true;
        self.rewrite_found_header()?;
        let mut next = 0;
        while let Some(group) = self.next_group(next)? {
            next = group + 1;
            if group >= MAX_GROUPS {
                break;
            }
            self.recover_group(group)?;
        }
        self.barrier()?;
        self.is_header_durable = true;
        if self.header.committed == 0 {
            // The server that created it may have died before making the name durable; what counts as committed has one.
            self.sync_name()?;
        }
        self.header.committed = self.header.epoch;
        self.header.is_open = true;
        self.put_header()?;
        self.barrier()?;
        self.durable_side = Some(self.scratch_side());
        self.session_open = true;
        self.name_stale = true;
        self.unsynced = false;
        tracing::info!(name = self.name, recovery = ?self.recovery, "subfile recovered");
        Ok(())
    }

    fn recover_group(&mut self, group: u64) -> Result<()> {
        let pages = self.read_tables(group)?;
        let sides = [Side::Zero, Side::One];
        let decode = |k: usize| {
            Table::decode(&pages[k], self.header.tag, group)
                .filter(|t| t.epoch <= self.header.epoch)
        };
        let mut found: Vec<(Side, Table)> = Vec::new();
        for k in 0..2 {
            let at = table_at(group, sides[k]);
            match decode(k) {
                Some(table) => found.push((sides[k], table)),
                // Torn, or of an epoch whose header never became durable: it must not come to
                // life when that epoch number is reached. One that is blank may have been erased by a
                // recovery whose barrier failed; one that was never written is a hole.
                None if !is_blank(&pages[k]) || self.has_data_at(at)? => {
                    write_full(&*self.file, at, &[0; PAGE])?;
                }
                None => {}
            }
        }
        found.sort_by_key(|(_, table)| table.epoch);
        let Some((side, mut newest)) = found.pop() else {
            return Ok(());
        };
        if newest.epoch > self.header.committed {
            let before = found.pop().map_or_else(Table::empty, |(_, table)| table);
            self.settle(group, &mut newest, &before)?;
            // In the same place: should this be torn, the committed table still stands, and a table that
            // needed settling was never synced.
            let page = newest.encode(self.header.tag, group);
            write_full(&*self.file, table_at(group, side), &page[..])?;
        }
        // Places that nothing uses may hold what unfinished epochs wrote; `close` frees them.
        self.spare.insert(group, [GroupBits::ALL; 2]);
        self.groups.insert(
            group,
            Group {
                committed: newest,
                side: Some(side),
                working: None,
            },
        );
        Ok(())
    }

    /// Whether a place was ever written, as far as the file system knows.
    fn has_data_at(&self, at: u64) -> Result<bool> {
        let next = self.file.next_data(at);
        let next = next.map_err(|e| Error::io("looking for data in a data file", e, 0))?;
        Ok(next == Some(at))
    }

    /// Believes a proposal block by block (rule 2), and writes what it believes again.
    fn settle(&mut self, group: u64, proposal: &mut Table, before: &Table) -> Result<()> {
        let mut changed = false;
        let mut bytes = vec![0; GROUP_BYTES as usize];
        let is_proposed = |proposal: &Table, i: usize| {
            let same = before.present.has(i)
                && before.side(i) == proposal.side(i)
                && before.crc[i] == proposal.crc[i];
            proposal.present.has(i) && !same
        };
        let mut i = 0;
        while i < GROUP_BLOCKS {
            let side = proposal.side(i);
            let alike = |&j: &usize| is_proposed(proposal, j) && proposal.side(j) == side;
            let run = (i..GROUP_BLOCKS).take_while(alike).count();
            if run == 0 {
                i += 1;
                continue;
            }
            let run_bytes = &mut bytes[..run * BLOCK as usize];
            read_full(&*self.file, block_at(group, i, side), run_bytes)?;
            let mut kept = i; // of the run, what is to be written again begins here
            for (k, block) in run_bytes.chunks_exact(BLOCK as usize).enumerate() {
                let number = group * GROUP_BLOCKS as u64 + (i + k) as u64;
                let crc = block_crc(self.header.tag, number, block);
                match believe(proposal, before, i + k, crc) {
                    Belief::Kept => {
                        self.recovery.kept_blocks += 1;
                        continue;
                    }
                    Belief::Alternate => {
                        self.recovery.kept_blocks += 1;
                        changed = true;
                        continue;
                    }
                    Belief::Dropped => {
                        self.recovery.dropped_blocks += 1;
                        changed = true;
                    }
                }
                self.write_again(group, i, side, kept..i + k, run_bytes)?;
                kept = i + k + 1;
            }
            self.write_again(group, i, side, kept..i + run, run_bytes)?;
            i += run;
        }
        if changed {
            proposal.has_alternate = GroupBits::default();
            proposal.emptied = GroupBits::default();
        }
        Ok(())
    }

    /// Writes blocks of a run that begins with block `first`, with the bytes that were read.
    fn write_again(
        &self,
        group: u64,
        first: usize,
        side: Side,
        blocks: Range<usize>,
        run: &[u8],
    ) -> Result<()> {
        let at = |i: usize| (i - first) * BLOCK as usize;
        let bytes = &run[at(blocks.start)..at(blocks.end)];
        write_full(&*self.file, block_at(group, blocks.start, side), bytes)
    }
}

/// What became of a block of a proposal.
enum Belief {
    Kept,
    Alternate,
    Dropped,
}

/// Decides about one block whose bytes have this checksum; a proposal that is not believed gets the entry before it.
fn believe(proposal: &mut Table, before: &Table, i: usize, crc: u32) -> Belief {
    if crc == proposal.crc[i] {
        return Belief::Kept;
    }
    if proposal.has_alternate.has(i) && crc == proposal.alternate[i] {
        proposal.crc[i] = crc;
        return Belief::Alternate;
    }
    let stays = before.present.has(i) && !proposal.emptied.has(i);
    proposal.present.set(i, stays);
    proposal.set_side(i, before.side(i));
    proposal.crc[i] = before.crc[i];
    Belief::Dropped
}
