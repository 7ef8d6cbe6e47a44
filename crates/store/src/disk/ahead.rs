//! Reading blocks before anybody asks for them.
//!
//! What is read ahead is in the cache as if it had been asked for, checksums compared, and invalidated by
//! writes and cuts like everything there; so it can be useless, never wrong. It takes memory that is free, or
//! that extents take which pass through; it never makes anybody write back, and never evicts what is used
//! again and again or what was read ahead and still waits.

use std::ops::Range;
use std::sync::Arc;

use super::held::{HeldSubfile, LoadedRange};
use crate::blocks::{BLOCK, touched};
use crate::error::{Error, Resource, Result};
use crate::pool::UNIT;
use crate::table::Fill;

impl HeldSubfile {
    /// Loads what a range lacks, as far as there is room; the bytes that were read.
    ///
    /// The data file is locked for one read of at most a group of blocks at a time, so a request that needs
    /// a block waits for no more than that.
    pub(crate) fn read_ahead(self: &Arc<Self>, range: Range<u64>) -> Result<u64> {
        let core = self.core()?;
        let mut read = 0;
        let mut at = range.start / BLOCK;
        loop {
            let next = {
                let state = self.lock();
                state.check_alive()?;
                // Behind the length there is nothing to load.
                let last = touched(&(range.start..range.end.min(state.len).max(range.start))).end;
                let missing = state.table.first_unloaded(at..last.max(at));
                missing.map(|first| (first, state.table.unloaded_until(first, last)))
            };
            let Some((first, end)) = next else {
                return Ok(read);
            };
            let mut backing = self.backing();
            let count = match self.load(&mut backing, first, end.max(first + 1))? {
                LoadedRange::Hole(count) => {
                    at = first + count;
                    continue;
                }
                LoadedRange::Data(count) => count,
            };
            let span = first * BLOCK..(first + count) * BLOCK;
            let mut is_filled = self.fill_ahead(&core, &span)?;
            if !is_filled {
                core.make_room_ahead((span.end - span.start).max(UNIT));
                is_filled = self.fill_ahead(&core, &span)?;
            }
            if !is_filled {
                return Ok(read);
            }
            let mut state = self.lock();
            for (k, part) in backing.staging.chunks_exact(BLOCK as usize).enumerate() {
                state.table.install(first + k as u64, Some(part));
            }
            state.table.note_ahead(span.clone());
            read += count * BLOCK;
            at = first + count;
        }
    }

    /// Makes extents; whether there was room.
    fn fill_ahead(&self, core: &super::store::Core, span: &Range<u64>) -> Result<bool> {
        let mut state = self.lock();
        state.check_alive()?;
        let domain = state.identity.domain;
        let now = core.cache.tick();
        match state
            .table
            .fill(span.clone(), Fill::Ahead, now, &core.pool, domain)
        {
            Ok(()) => Ok(true),
            Err(Error::NoSpace {
                resource: Resource::Memory | Resource::Segments,
                ..
            }) => Ok(false),
            Err(e) => Err(e),
        }
    }
}
