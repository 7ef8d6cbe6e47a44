//! The control table of a server: a liveness word, and an epoch per file with maps.
//!
//! ```text
//! 0    magic (8)  version (4)  entries (4)  liveness (4)  ... 24 scarcity (8)  32 kept (4) ...
//! 64   entry 0: epoch (8)  fence (8) ...                   64 bytes each
//! 128  entry 1
//! ```
//!
//! Only the server writes. An entry belongs to one file at a time; its epoch only grows, also from
//! one file to the next, so a map of an earlier file can never match.
//!
//! The epoch says whether maps are good, the fence with which step of the layout state they may be used: it
//! is twice the step, and one more while a window of the file moves. Maps outlive a fence.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::liveness::Liveness;
use crate::mapping::{Mapping, read_only};
use parking_lot::Mutex;

/// Files that can have maps at a server at a time.
pub const ENTRIES: u32 = 16384;

const MAGIC: u64 = u64::from_le_bytes(*b"pariotab");
const VERSION: u32 = 2;
const FENCE_AT: usize = 8;
const HEAD_BYTES: usize = 64;
const ENTRY_BYTES: usize = 64;
pub(crate) const LIVENESS_AT: usize = 16;
const SCARCITY_AT: usize = 24;
const KEPT_AT: usize = 32;

fn entry_at(entry: u32) -> usize {
    HEAD_BYTES + entry as usize * ENTRY_BYTES
}

/// The table, as its server has it.
#[derive(Debug)]
pub struct ServerTable {
    // Ends before the mapping that it writes into.
    _liveness: Liveness,
    mapping: std::sync::Arc<Mapping>,
    file: OwnedFd,
    reading: OwnedFd,
    free: Mutex<Free>,
}

#[derive(Debug)]
struct Free {
    /// Entries that were given back.
    list: Vec<u32>,
    /// Entries from here on were never given out.
    fresh: u32,
}

impl ServerTable {
    /// A new table, and a thread whose life the liveness word tells.
    pub fn new() -> io::Result<ServerTable> {
        let bytes = entry_at(ENTRIES) as u64;
        let (file, mapping) = Mapping::create(c"pario-table", bytes)?;
        mapping.word(0).store(MAGIC, Ordering::Relaxed);
        mapping.half_word(8).store(VERSION, Ordering::Relaxed);
        mapping.half_word(12).store(ENTRIES, Ordering::Relaxed);
        let reading = read_only(file.as_fd())?;
        let mapping = std::sync::Arc::new(mapping);
        let liveness = Liveness::begin(std::sync::Arc::clone(&mapping), LIVENESS_AT)?;
        Ok(ServerTable {
            _liveness: liveness,
            mapping,
            file,
            reading,
            free: Mutex::new(Free {
                list: Vec::new(),
                fresh: 0,
            }),
        })
    }

    /// For clients: reading only.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.reading.as_fd()
    }

    /// For a keeper: the table itself.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Its bytes.
    pub fn len(&self) -> u64 {
        self.mapping.len() as u64
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// An entry for a file; `None` if all are taken, and then the file goes by message.
    pub fn take(&self) -> Option<u32> {
        let mut free = self.free.lock();
        let entry = match free.list.pop() {
            Some(entry) => entry,
            None if free.fresh < ENTRIES => {
                free.fresh += 1;
                free.fresh - 1
            }
            None => return None,
        };
        drop(free);
        // Epoch 0 stands for no map.
        self.raise(entry);
        Some(entry)
    }

    /// Gives an entry back. Maps that name it are void.
    pub fn give(&self, entry: u32) {
        self.raise(entry);
        let mut free = self.free.lock();
        debug_assert!(!free.list.contains(&entry));
        free.list.push(entry);
    }

    /// The epoch that maps are made with now.
    pub fn epoch(&self, entry: u32) -> u64 {
        self.word(entry).load(Ordering::SeqCst)
    }

    /// Makes all maps of an entry void; the epoch from now on. Who copies at this moment is found in
    /// the slots afterwards.
    pub fn raise(&self, entry: u32) -> u64 {
        self.word(entry).fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Says who may use maps of an entry, which stay good: those who planned with the step that the word is twice
    /// of, and nobody if it is odd. Who copies at this moment is found in the slots afterwards
    /// ([`crate::ServerPage::claims`]).
    pub fn set_fence(&self, entry: u32, word: u64) {
        self.fence_word(entry).store(word, Ordering::SeqCst);
    }

    /// Says how often memory was not ready when it was needed. To be said before an answer about such memory.
    pub fn set_scarcity(&self, count: u64) {
        let word = self.mapping.word(SCARCITY_AT);
        word.store(count, Ordering::Release);
    }

    /// Says that the memory outlives this process: the next start of the server has it.
    pub fn set_kept(&self) {
        self.mapping.half_word(KEPT_AT).store(1, Ordering::Release);
    }

    fn word(&self, entry: u32) -> &AtomicU64 {
        assert!(entry < ENTRIES);
        self.mapping.word(entry_at(entry))
    }

    fn fence_word(&self, entry: u32) -> &AtomicU64 {
        assert!(entry < ENTRIES);
        self.mapping.word(entry_at(entry) + FENCE_AT)
    }
}

/// The table of a server that is dead, as its next start has it. Clients may still look at it.
#[derive(Debug)]
pub struct FormerTable {
    mapping: Mapping,
}

impl FormerTable {
    /// Maps what a keeper has kept.
    pub fn map(file: BorrowedFd<'_>) -> io::Result<FormerTable> {
        let mapping = Mapping::new(file, entry_at(ENTRIES) as u64, true)?;
        let is_known = mapping.word(0).load(Ordering::Relaxed) == MAGIC
            && mapping.half_word(8).load(Ordering::Relaxed) == VERSION;
        match is_known {
            true => Ok(FormerTable { mapping }),
            false => {
                let text = "the control table is of another version";
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
        }
    }

    /// Makes all maps void. Who copies at this moment is found in the slots afterwards.
    pub fn raise_all(&self) {
        for entry in 0..ENTRIES {
            let epoch = self.mapping.word(entry_at(entry));
            // One that was never taken has no maps, and need not come into being.
            if epoch.load(Ordering::SeqCst) != 0 {
                epoch.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

/// The table, as a client has it.
#[derive(Debug)]
pub struct ClientTable {
    mapping: Mapping,
}

impl ClientTable {
    /// Maps what the server sent.
    pub fn map(file: BorrowedFd<'_>, len: u64) -> io::Result<ClientTable> {
        let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
        if len < entry_at(ENTRIES) as u64 {
            return Err(invalid("the control table is too short"));
        }
        let mapping = Mapping::new(file, len, false)?;
        let is_known = mapping.word(0).load(Ordering::Relaxed) == MAGIC
            && mapping.half_word(8).load(Ordering::Relaxed) == VERSION;
        if !is_known {
            return Err(invalid("the control table is of another version"));
        }
        Ok(ClientTable { mapping })
    }

    /// Whether maps of this epoch are good and may be used with this step of the layout state. To be asked
    /// after a claim.
    #[inline]
    pub fn is_current(&self, entry: u32, epoch: u64, step: u64) -> bool {
        self.is_good(entry, epoch)
            && self
                .mapping
                .word(entry_at(entry) + FENCE_AT)
                .load(Ordering::SeqCst)
                == step << 1
    }

    /// Whether maps of this epoch are good, if only for another step.
    #[inline]
    pub fn is_good(&self, entry: u32, epoch: u64) -> bool {
        entry < ENTRIES && self.mapping.word(entry_at(entry)).load(Ordering::SeqCst) == epoch
    }

    /// How often memory was not ready when it was needed. If an answer has changed it, the memory that came with
    /// that may be only committed.
    pub fn scarcity(&self) -> u64 {
        self.mapping.word(SCARCITY_AT).load(Ordering::Acquire)
    }

    /// Whether the memory is meant to outlive the server's process.
    pub fn is_kept(&self) -> bool {
        self.mapping.half_word(KEPT_AT).load(Ordering::Acquire) != 0
    }

    /// Whether the server lives. To be asked after every access: memory outlives its server.
    #[inline]
    pub fn is_alive(&self) -> bool {
        crate::liveness::is_alive(self.mapping.half_word(LIVENESS_AT).load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientPage, ServerPage};

    #[test]
    fn next_process_voids_all_maps_and_finds_who_copies() {
        let table = ServerTable::new().unwrap();
        let page = ServerPage::new().unwrap();
        let theirs = ClientTable::map(table.descriptor(), table.len()).unwrap();
        let at_client = ClientPage::map(page.descriptor(), page.len()).unwrap();
        let entries: Vec<u32> = (0..3).map(|_| table.take().unwrap()).collect();
        let epochs: Vec<u64> = entries.iter().map(|&e| table.epoch(e)).collect();
        let is_good = |i: usize| theirs.is_good(entries[i], epochs[i]);
        assert!((0..3).all(is_good) && !theirs.is_kept());
        table.set_kept();
        let claim = at_client.claim(entries[1], epochs[1], true).unwrap();
        at_client.raise_end(7, 4711);
        // The server dies; the next one has what was kept of it.
        let kept = table.file().try_clone_to_owned().unwrap();
        let kept_page = page.descriptor().try_clone_to_owned().unwrap();
        drop((table, page));
        assert!(!theirs.is_alive() && theirs.is_kept());
        FormerTable::map(kept.as_fd()).unwrap().raise_all();
        assert!(!(0..3).any(is_good));
        assert!(
            !theirs.is_good(entries[2] + 1, 1),
            "one that was never taken"
        );
        let adopted = ServerPage::adopt(kept_page).unwrap();
        let found: Vec<_> = adopted.all_claims().collect();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].entry(), found[0].writes()), (entries[1], true));
        assert_eq!(adopted.end(7), 4711);
        assert!(adopted.revoke(&found[0]));
        assert_eq!(
            adopted.revoked_slots().collect::<Vec<_>>(),
            [found[0].slot()]
        );
        assert!(!claim.end(), "it does not count");
        assert_eq!(adopted.revoked_slots().count(), 0);
    }
}
