//! Recovery: what counts in a data file whose last process ended without closing it.
//!
//! Applies rule 2 of [`super::file`]: a proposal is believed block by block, as far as bytes and
//! checksum match. It can be interrupted at any step and begun again: nothing committed is
//! written, and a table that is rewritten in place was never synced.
//!
//! Left to others: cutting what lies behind the recovered length (the cache does it).
//!
//! Cost: reads both tables of every group that exists, and every block of the unfinished epoch.

use super::file::{DataFile, is_blank, read_full, write_full};
use super::format::{
    GROUP_BLOCKS, GroupBits, MAX_GROUPS, PAGE, Side, Table, block_at, block_crc, table_at,
};
use super::group::Group;
use crate::blocks::BLOCK;
use crate::error::Result;

impl DataFile {
    /// Decides what counts after the last process ended without closing the file.
    pub(super) fn recover(&mut self) -> Result<()> {
        self.recovery.was_open = true;
        // What is found must not vanish while it is being relied upon.
        self.barrier()?;
        let mut wrote = false;
        let mut next = 0;
        while let Some(group) = self.next_group(next)? {
            next = group + 1;
            if group >= MAX_GROUPS {
                break;
            }
            wrote |= self.recover_group(group)?;
        }
        if wrote {
            self.barrier()?;
        }
        self.header.committed = self.header.epoch;
        self.header.is_open = true;
        self.put_header()?;
        self.barrier()?;
        self.durable_side = Some(self.scratch_side());
        self.session_open = true;
        // Whoever created it may have died before making the name durable.
        self.name_stale = true;
        self.unsynced = false;
        Ok(())
    }

    /// Says whether it wrote something.
    fn recover_group(&mut self, group: u64) -> Result<bool> {
        let pages = self.read_tables(group)?;
        let sides = [Side::Zero, Side::One];
        let decode = |k: usize| {
            Table::decode(&pages[k], self.header.tag, group)
                .filter(|t| t.epoch <= self.header.epoch)
        };
        let mut wrote = false;
        let mut found: Vec<(Side, Table)> = Vec::new();
        for k in 0..2 {
            match decode(k) {
                Some(table) => found.push((sides[k], table)),
                // Torn, or of an epoch whose header never became durable: it must not come to
                // life when that epoch number is reached.
                None if !is_blank(&pages[k]) => {
                    write_full(&*self.file, table_at(group, sides[k]), &[0; PAGE])?;
                    wrote = true;
                }
                None => {}
            }
        }
        found.sort_by_key(|(_, table)| table.epoch);
        let Some((side, mut newest)) = found.pop() else {
            return Ok(wrote);
        };
        if newest.epoch > self.header.committed {
            let before = found.pop().map_or_else(Table::empty, |(_, table)| table);
            if self.settle(group, &mut newest, &before)? {
                // In the same place: should this be torn, the committed table still stands,
                // and a table that needs settling was never synced.
                let page = newest.encode(self.header.tag, group);
                write_full(&*self.file, table_at(group, side), &page[..])?;
                wrote = true;
            }
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
        Ok(wrote)
    }

    /// Believes a proposal block by block (rule 2); says whether it had to be changed.
    fn settle(&mut self, group: u64, proposal: &mut Table, before: &Table) -> Result<bool> {
        let mut changed = false;
        let mut bytes = vec![0; BLOCK as usize];
        for i in 0..GROUP_BLOCKS {
            let same = before.present.has(i)
                && before.side(i) == proposal.side(i)
                && before.crc[i] == proposal.crc[i];
            if !proposal.present.has(i) || same {
                continue;
            }
            read_full(
                &*self.file,
                block_at(group, i, proposal.side(i)),
                &mut bytes,
            )?;
            let number = group * GROUP_BLOCKS as u64 + i as u64;
            let crc = block_crc(self.header.tag, number, &bytes);
            if crc == proposal.crc[i] {
                self.recovery.kept_blocks += 1;
                continue;
            }
            changed = true;
            if proposal.has_alternate.has(i) && crc == proposal.alternate[i] {
                self.recovery.kept_blocks += 1;
                proposal.crc[i] = crc;
                continue;
            }
            self.recovery.dropped_blocks += 1;
            let stays = before.present.has(i) && !proposal.emptied.has(i);
            proposal.present.set(i, stays);
            proposal.set_side(i, before.side(i));
            proposal.crc[i] = before.crc[i];
        }
        if changed {
            proposal.has_alternate = GroupBits::default();
            proposal.emptied = GroupBits::default();
        }
        Ok(changed)
    }
}
