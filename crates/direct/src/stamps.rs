//! Stamps in memory that the metadata manager shares with clients of its host.
//!
//! ```text
//! 0     magic (8)  version (4)  slots (4)  liveness (4)
//! 64    the start of the manager (8)
//! 128   the last commit that can be seen (8)
//! 4096  slot 0, slot 1, ...                     8 bytes each
//! ```
//!
//! Only the manager writes. What stands in a slot is said in `control::stamps`; here it is a number that a client compares with
//! the one it was given. The liveness word is that of the manager's process: memory outlives it, and a manager that comes
//! after it has other memory, so what a dead one has said of is not believed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::liveness::Liveness;
use crate::mapping::{Mapping, read_only};

const MAGIC: u64 = u64::from_le_bytes(*b"pariostm");
const VERSION: u32 = 1;
const SLOTS_AT: usize = 12;
const LIVENESS_AT: usize = 16;
const START_AT: usize = 64;
const LAST_AT: usize = 128;
const HEAD_BYTES: usize = 4096;

fn slot_at(slot: u32) -> usize {
    HEAD_BYTES + slot as usize * 8
}

fn bytes_of(slots: u32) -> u64 {
    slot_at(slots) as u64
}

/// The stamps, as the manager has them.
#[derive(Debug)]
pub struct StampPage {
    // Ends before the mapping that it writes into.
    _liveness: Liveness,
    mapping: Arc<Mapping>,
    /// The file itself, which lives as long as anybody maps it.
    _file: OwnedFd,
    reading: OwnedFd,
    slots: u32,
}

impl StampPage {
    /// New stamps, all 0, and a thread whose life the liveness word tells.
    pub fn new(slots: u32, start: u64) -> io::Result<StampPage> {
        let (file, mapping) = Mapping::create(c"pario-stamps", bytes_of(slots))?;
        mapping.word(0).store(MAGIC, Ordering::Relaxed);
        mapping.half_word(8).store(VERSION, Ordering::Relaxed);
        mapping.half_word(SLOTS_AT).store(slots, Ordering::Relaxed);
        mapping.word(START_AT).store(start, Ordering::Relaxed);
        let reading = read_only(file.as_fd())?;
        let mapping = Arc::new(mapping);
        let liveness = Liveness::begin(Arc::clone(&mapping), LIVENESS_AT)?;
        Ok(StampPage {
            _liveness: liveness,
            mapping,
            _file: file,
            reading,
            slots,
        })
    }

    /// For clients: reading only.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.reading.as_fd()
    }

    /// Its bytes.
    pub fn len(&self) -> u64 {
        self.mapping.len() as u64
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// What stands in a slot.
    pub fn stamp(&self, slot: u32) -> u64 {
        assert!(slot < self.slots);
        self.mapping.word(slot_at(slot)).load(Ordering::SeqCst)
    }

    /// Puts a number into a slot.
    pub fn set(&self, slot: u32, stamp: u64) {
        assert!(slot < self.slots);
        let word = self.mapping.word(slot_at(slot));
        word.store(stamp, Ordering::SeqCst);
    }

    /// The last commit that can be seen.
    pub fn last(&self) -> u64 {
        self.mapping.word(LAST_AT).load(Ordering::SeqCst)
    }

    /// Says which commit can be seen.
    pub fn set_last(&self, number: u64) {
        self.mapping.word(LAST_AT).store(number, Ordering::SeqCst);
    }
}

/// The stamps, as a client has them.
#[derive(Debug)]
pub struct StampView {
    mapping: Mapping,
    slots: u32,
    start: u64,
}

impl StampView {
    /// Maps what the manager sent.
    pub fn map(file: BorrowedFd<'_>, len: u64) -> io::Result<StampView> {
        let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
        if len < HEAD_BYTES as u64 {
            return Err(invalid("the page of stamps is too short"));
        }
        let mapping = Mapping::new(file, len, false)?;
        let is_known = mapping.word(0).load(Ordering::Relaxed) == MAGIC
            && mapping.half_word(8).load(Ordering::Relaxed) == VERSION;
        if !is_known {
            return Err(invalid("the page of stamps is of another version"));
        }
        let slots = mapping.half_word(SLOTS_AT).load(Ordering::Relaxed);
        if bytes_of(slots) != len {
            return Err(invalid("the page of stamps has not the slots that it says"));
        }
        let start = mapping.word(START_AT).load(Ordering::Relaxed);
        Ok(StampView {
            mapping,
            slots,
            start,
        })
    }

    /// The start of the manager whose stamps they are.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Whether a slot still has this number; never one that does not exist.
    #[inline]
    pub fn has(&self, slot: u32, stamp: u64) -> bool {
        slot < self.slots && self.mapping.word(slot_at(slot)).load(Ordering::SeqCst) == stamp
    }

    /// Whether the manager lives. To be asked after the slots: memory outlives it.
    #[inline]
    pub fn is_alive(&self) -> bool {
        crate::liveness::is_alive(self.mapping.half_word(LIVENESS_AT).load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_sees_what_the_manager_writes_until_the_manager_has_gone() {
        let page = StampPage::new(64, 9).unwrap();
        let view = StampView::map(page.descriptor(), page.len()).unwrap();
        assert_eq!((view.start(), page.last()), (9, 0));
        assert!(view.has(3, 0) && view.is_alive() && !view.has(64, 0));
        page.set(3, 17);
        page.set_last(8);
        assert!(!view.has(3, 0) && view.has(3, 17) && view.has(4, 0));
        assert_eq!((page.stamp(3), page.last()), (17, 8));
        drop(page);
        assert!(view.has(3, 17) && !view.is_alive());
    }

    #[test]
    fn what_is_no_page_of_stamps_is_refused() {
        let page = StampPage::new(64, 9).unwrap();
        assert!(StampView::map(page.descriptor(), page.len() - 8).is_err());
        assert!(StampView::map(page.descriptor(), 8).is_err());
        let (file, _mapping) = Mapping::create(c"test", page.len()).unwrap();
        assert!(StampView::map(file.as_fd(), page.len()).is_err());
    }
}
