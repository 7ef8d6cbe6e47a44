//! Space of a data file that was taken before there are bytes for it.
//!
//! Reserved is the place of a block on side zero, where the first version of it goes. What is reserved is no data: nothing on the disk says
//! that it was, and a process that is killed leaves it behind. Opening the file gives back what of it lies behind the end of the data file; what
//! lies before that, in groups that have bytes, stays until the bytes there come or the file goes.
//!
//! Left to others: which space is to be kept for how long (`held`).

use std::ops::Range;

use super::file::{DataFile, check_reach, place_of};
use super::format::{GROUP_BLOCKS, MAX_GROUPS, Side, block_at};
use crate::blocks::BLOCK;
use crate::error::{Error, Result};

impl DataFile {
    /// Reserves disk space for blocks that have none.
    pub(crate) fn reserve(&mut self, blocks: Range<u64>) -> Result<()> {
        self.check_usable()?;
        check_reach(blocks.end * BLOCK)?;
        let mut at = blocks.start;
        while at < blocks.end {
            let (group, index) = place_of(at);
            let count = (blocks.end - at).min((GROUP_BLOCKS - index) as u64);
            let doing = "reserving disk space";
            // Side zero is where blocks of holes go. A block that has data has its space.
            self.file
                .reserve(block_at(group, index, Side::Zero), count * BLOCK)
                .map_err(|e| Error::io(doing, e, count * BLOCK))?;
            at += count;
        }
        Ok(())
    }

    /// Gives back what was reserved for blocks that have no data, and room behind the end of the data file. Failing costs space and
    /// nothing else.
    pub(crate) fn give_back(&mut self, blocks: Range<u64>) {
        let mut at = blocks.start;
        while at < blocks.end {
            let (group, index) = place_of(at);
            let next = match self.next_group(group) {
                Ok(next) => next.unwrap_or(MAX_GROUPS),
                Err(_) => break,
            };
            if next > group {
                // Nothing of the groups up to that one is written.
                let until = blocks.end.min(next * GROUP_BLOCKS as u64);
                let (last, last_index) = place_of(until - 1);
                let from = block_at(group, index, Side::Zero);
                let to = block_at(last, last_index, Side::Zero) + BLOCK;
                let _ = self.file.punch(from, to - from);
                at = until;
                continue;
            }
            let end = (GROUP_BLOCKS as u64).min(index as u64 + (blocks.end - at)) as usize;
            at += (end - index) as u64;
            if self.load(group).is_err() {
                continue;
            }
            let entry = &self.groups[&group];
            let is_free = |i: usize| {
                let working = entry.working.as_ref().map(|w| &w.table);
                !entry.committed.present.has(i) && !working.is_some_and(|t| t.present.has(i))
            };
            let mut i = index;
            while i < end {
                let run = (i..end).take_while(|&j| is_free(j)).count();
                if run > 0 {
                    let place = block_at(group, i, Side::Zero);
                    let _ = self.file.punch(place, run as u64 * BLOCK);
                }
                i += run.max(1);
            }
        }
        let _ = self.file.trim_end();
    }
}
