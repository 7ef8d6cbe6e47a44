//! Superblocks of the file in the memory of one member: what it fills, and what it has read.
//!
//! The file is looked at in pages of the size of a superblock. Pages that this member allocated are *fresh* until they are
//! written as a whole, in one request; all others are clean copies, and what is changed in them goes to the file at once, byte
//! by byte of the change: other members may have bytes on the same page.
//!
//! Invariants
//! - Bytes of this member's VPs in a page are those of the file, or newer.
//! - A fresh page is never dropped before it is written.
//!
//! Replacement (G-12): the page that was looked at longest ago among those that are clean and not in use, by the second-chance
//! rule. Pages are found by number, not by a search through all of them.

use std::collections::HashMap;
use std::collections::VecDeque;

use client::{File, Result};

/// What was done to the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageCounts {
    /// Requests that wrote a whole superblock.
    pub(crate) whole_writes: u64,
    /// Requests that wrote less.
    pub(crate) small_writes: u64,
    /// Requests that read a page.
    pub(crate) reads: u64,
}

#[derive(Debug)]
struct Page {
    number: u64,
    bytes: Box<[u8]>,
    state: State,
    was_used: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Clean,
    /// Of this member alone, and written as far as the file knows.
    Owned,
    /// Of this member alone, with something that the file does not have.
    Fresh,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Pages {
    size: u64,
    capacity: usize,
    slots: Vec<Page>,
    by_number: HashMap<u64, usize>,
    clock: VecDeque<u64>,
    /// Where the last two looks ended.
    recent: [(u64, usize); 2],
    pub(crate) counts: PageCounts,
    /// What is read beyond the end of the file.
    pub(crate) pad: u8,
}

const NOWHERE: (u64, usize) = (u64::MAX, 0);

impl Pages {
    pub(crate) fn new(size: u64, capacity: usize) -> Pages {
        Pages {
            size,
            capacity: capacity.max(2),
            slots: Vec::new(),
            by_number: HashMap::new(),
            clock: VecDeque::new(),
            recent: [NOWHERE; 2],
            counts: PageCounts::default(),
            pad: 0,
        }
    }

    /// Has room for at least so many pages from now on.
    pub(crate) fn reserve(&mut self, capacity: usize) {
        self.capacity = self.capacity.max(capacity);
    }

    /// Whether pages have this size.
    pub(crate) fn is_of(&self, size: u64) -> bool {
        self.size == size
    }

    fn slot(&mut self, number: u64) -> Option<usize> {
        for (seen, slot) in self.recent {
            if seen == number {
                return Some(slot);
            }
        }
        let slot = *self.by_number.get(&number)?;
        self.recent = [(number, slot), self.recent[0]];
        Some(slot)
    }

    /// A page that begins here and belongs to this member alone, all zeros.
    pub(crate) fn add_fresh(&mut self, file: &File, address: u64) -> Result<()> {
        let number = address / self.size;
        let bytes = vec![0; self.size as usize].into_boxed_slice();
        match self.slot(number) {
            Some(slot) => {
                self.slots[slot].bytes = bytes;
                self.slots[slot].state = State::Fresh;
            }
            None => self.insert(file, number, bytes, State::Fresh)?,
        }
        Ok(())
    }

    fn insert(&mut self, file: &File, number: u64, bytes: Box<[u8]>, state: State) -> Result<()> {
        let page = Page {
            number,
            bytes,
            state,
            was_used: true,
        };
        let slot = match self.slots.len() < self.capacity {
            true => {
                self.slots.push(page);
                self.slots.len() - 1
            }
            false => {
                let slot = self.make_room(file)?;
                self.by_number.remove(&self.slots[slot].number);
                self.slots[slot] = page;
                slot
            }
        };
        self.by_number.insert(number, slot);
        self.clock.push_back(number);
        self.recent = [(number, slot), NOWHERE];
        Ok(())
    }

    /// The slot of a page that can go; it is written first if the file does not have it.
    fn make_room(&mut self, file: &File) -> Result<usize> {
        loop {
            let Some(number) = self.clock.pop_front() else {
                unreachable!("every page is on the clock");
            };
            let slot = self.by_number[&number];
            let page = &mut self.slots[slot];
            if std::mem::take(&mut page.was_used) {
                self.clock.push_back(number);
                continue;
            }
            if page.state == State::Fresh {
                file.write_at(number * self.size, &page.bytes)?;
                self.counts.whole_writes += 1;
            }
            return Ok(slot);
        }
    }

    /// Changes bytes within one page.
    pub(crate) fn write(&mut self, file: &File, address: u64, bytes: &[u8]) -> Result<()> {
        let (number, at) = (address / self.size, (address % self.size) as usize);
        let state = match self.slot(number) {
            Some(slot) => {
                let page = &mut self.slots[slot];
                page.bytes[at..at + bytes.len()].copy_from_slice(bytes);
                page.was_used = true;
                if page.state == State::Owned {
                    page.state = State::Fresh;
                }
                Some(page.state)
            }
            None => None,
        };
        if state != Some(State::Fresh) {
            file.write_at(address, bytes)?;
            self.counts.small_writes += 1;
        }
        Ok(())
    }

    /// Changes bytes that may lie on several pages.
    pub(crate) fn write_across(&mut self, file: &File, address: u64, bytes: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let at = address + done as u64;
            let room = (self.size - at % self.size) as usize;
            let n = room.min(bytes.len() - done);
            self.write(file, at, &bytes[done..done + n])?;
            done += n;
        }
        Ok(())
    }

    /// The bytes of one page from an address on, read if they are not here.
    pub(crate) fn look(&mut self, file: &File, address: u64) -> Result<&[u8]> {
        let (number, at) = (address / self.size, (address % self.size) as usize);
        if self.slot(number).is_none() {
            let mut bytes = vec![0; self.size as usize].into_boxed_slice();
            let read = file.read_at(number * self.size, &mut bytes)?;
            bytes[read..].fill(self.pad);
            self.counts.reads += 1;
            self.insert(file, number, bytes, State::Clean)?;
        }
        let slot = self.slot(number).unwrap_or_default();
        self.slots[slot].was_used = true;
        Ok(&self.slots[slot].bytes[at..])
    }

    /// Reads bytes that may lie on several pages.
    pub(crate) fn read(&mut self, file: &File, address: u64, into: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < into.len() {
            let bytes = self.look(file, address + done as u64)?;
            let n = bytes.len().min(into.len() - done);
            into[done..done + n].copy_from_slice(&bytes[..n]);
            done += n;
        }
        Ok(())
    }

    /// Bytes from an address to the end of its page.
    pub(crate) fn left_on_page(&self, address: u64) -> usize {
        (self.size - address % self.size) as usize
    }

    /// Whether any page has something that the file does not have.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.slots.iter().any(|page| page.state == State::Fresh)
    }

    /// Bytes within one page, if it is here and the file does not have them.
    pub(crate) fn unwritten(&mut self, address: u64) -> Option<&[u8]> {
        let slot = self.slot(address / self.size)?;
        let page = &self.slots[slot];
        (page.state == State::Fresh).then(|| &page.bytes[(address % self.size) as usize..])
    }

    /// Writes a page as a whole if the file does not have all of it.
    pub(crate) fn seal(&mut self, file: &File, address: u64) -> Result<()> {
        let number = address / self.size;
        if let Some(slot) = self.slot(number) {
            self.write_slot(file, slot)?;
        }
        Ok(())
    }

    fn write_slot(&mut self, file: &File, slot: usize) -> Result<()> {
        let page = &mut self.slots[slot];
        if page.state == State::Fresh {
            file.write_at(page.number * self.size, &page.bytes)?;
            page.state = State::Owned;
            page.was_used = false;
            self.counts.whole_writes += 1;
        }
        Ok(())
    }

    /// Writes all pages that the file does not have.
    pub(crate) fn write_all(&mut self, file: &File) -> Result<()> {
        (0..self.slots.len()).try_for_each(|slot| self.write_slot(file, slot))
    }

    /// Forgets copies that the file may by now have otherwise.
    pub(crate) fn forget_copies(&mut self) {
        if self.slots.iter().all(|page| page.state != State::Clean) {
            return;
        }
        self.slots.retain(|page| page.state != State::Clean);
        self.clock = self.slots.iter().map(|page| page.number).collect();
        let numbers = self.slots.iter().enumerate();
        self.by_number = numbers.map(|(slot, page)| (page.number, slot)).collect();
        self.recent = [NOWHERE; 2];
    }
}
