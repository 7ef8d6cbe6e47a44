//! Memory that any process allocates and frees, inside a shared memory: what has to be known of it lies in the memory itself, under a lock.
//!
//! ```text
//!  | bump, freed | length of what begins on each page | pages that are handed out ...        |
//!    first page    table                                first                          bump
//! ```
//!
//! An allocation begins on a page and has all of its pages, so that neighbours are never falsely shared. Cost: a lock, and the pages of
//! the table that it is in.

use crate::real::{Epoch, Error, PAGE_BYTES, SharedArray, SharedMemory};

/// What stands in the table on pages that belong to what begins before.
const GOES_ON: u64 = u64::MAX;
/// Words of the first page.
const BUMP: usize = 0;
const FREED: usize = 1;

/// Memory that any process allocates and frees, in whole pages.
#[derive(Clone, Copy, Debug)]
pub struct Heap {
    /// Managed by process 0, and not that of parallel files.
    lock: u32,
    head: SharedArray<u64>,
    table: SharedArray<u64>,
    /// Where what is handed out begins, and how many pages it may have.
    pages: SharedArray<u8>,
}

impl Heap {
    /// Takes so many bytes of a memory. All processes do, in the order of their arrays.
    ///
    /// # Errors
    ///
    /// If there is no room.
    pub fn new(memory: &SharedMemory, bytes: usize) -> Result<Heap, Error> {
        let pages = bytes.div_ceil(PAGE_BYTES).max(1);
        let size = memory.size() as u32;
        Ok(Heap {
            lock: (u32::MAX / size - 1) * size,
            head: memory.array(PAGE_BYTES / 8)?,
            table: memory.array(pages)?,
            pages: memory.array(pages * PAGE_BYTES)?,
        })
    }

    /// How many bytes of a memory a heap needs for so many of its own.
    pub fn bytes_for(bytes: usize) -> usize {
        let pages = bytes.div_ceil(PAGE_BYTES).max(1);
        PAGE_BYTES + (pages * 8).next_multiple_of(PAGE_BYTES) + pages * PAGE_BYTES
    }

    /// Allocates bytes, which have any values. Others may use them once they were told where they are.
    ///
    /// # Errors
    ///
    /// If there is no room, or a process has ended.
    pub fn allocate(
        &self,
        memory: &SharedMemory,
        bytes: usize,
        epoch: &mut Epoch,
    ) -> Result<SharedArray<u8>, Error> {
        let wanted = bytes.div_ceil(PAGE_BYTES).max(1);
        let guard = memory.lock(self.lock, epoch)?;
        let (head, table) = (
            memory.view(&guard, self.head),
            memory.view(&guard, self.table),
        );
        let (bump, freed) = (head.get(BUMP) as usize, head.get(FREED) as usize);
        // Free pages that follow each other, up to the one that is looked at.
        let mut free = 0;
        let mut end = 0;
        while freed > 0 && end < bump && free < wanted {
            free = if table.get(end) == 0 { free + 1 } else { 0 };
            end += 1;
        }
        // They may go on in pages that were never used.
        let first = match free < wanted {
            true => bump - free,
            false => end - free,
        };
        if wanted > self.table.len() - first {
            let left = (self.table.len() - first) * PAGE_BYTES;
            return Err(Error::Full { bytes, left });
        }
        head.set(FREED, (freed - free) as u64);
        head.set(BUMP, bump.max(first + wanted) as u64);
        // One more than the length, so that nothing is not free.
        table.set(first, bytes as u64 + 1);
        for page in first + 1..first + wanted {
            table.set(page, GOES_ON);
        }
        Ok(self.pages.bytes_from(first * PAGE_BYTES, bytes))
    }

    /// The rest of an allocation from a place of the memory on, counted in bytes from its beginning; nothing if the place is in none.
    ///
    /// # Errors
    ///
    /// If a process has ended.
    pub fn at(
        &self,
        memory: &SharedMemory,
        place: usize,
        epoch: &mut Epoch,
    ) -> Result<Option<SharedArray<u8>>, Error> {
        let guard = memory.lock(self.lock, epoch)?;
        let table = memory.view(&guard, self.table);
        let Some(within) = place
            .checked_sub(self.pages.start())
            .filter(|within| *within < self.pages.bytes())
        else {
            return Ok(None);
        };
        let mut page = within / PAGE_BYTES;
        while page > 0 && table.get(page) == GOES_ON {
            page -= 1;
        }
        let len = table.get(page).saturating_sub(1) as usize;
        let from = within - page * PAGE_BYTES;
        Ok((from < len).then(|| self.pages.bytes_from(within, len - from)))
    }

    /// Gives back what was allocated at a place. Whether anything was.
    ///
    /// # Errors
    ///
    /// If a process has ended.
    pub fn free(
        &self,
        memory: &SharedMemory,
        place: usize,
        epoch: &mut Epoch,
    ) -> Result<bool, Error> {
        let guard = memory.lock(self.lock, epoch)?;
        let (head, table) = (
            memory.view(&guard, self.head),
            memory.view(&guard, self.table),
        );
        let Some(page) = place
            .checked_sub(self.pages.start())
            .filter(|within| within.is_multiple_of(PAGE_BYTES) && *within < self.pages.bytes())
            .map(|within| within / PAGE_BYTES)
        else {
            return Ok(false);
        };
        let len = match table.get(page) {
            0 | GOES_ON => return Ok(false),
            len => len as usize - 1,
        };
        let count = len.div_ceil(PAGE_BYTES).max(1);
        for page in page..page + count {
            table.set(page, 0);
        }
        head.set(FREED, head.get(FREED) + count as u64);
        Ok(true)
    }
}
