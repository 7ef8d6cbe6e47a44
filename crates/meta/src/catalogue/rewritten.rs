//! The disk under a catalogue that was not closed: everything that is found is written again before it is built upon.
//!
//! After a sync that failed the kernel calls the pages clean that it could not write. The next process reads them, the
//! store's repair believes them by their checksums, and no later sync writes them: with the power they are gone, and
//! with them what was acknowledged since. So the first sync after a repair was found to be needed makes every
//! byte of the image dirty again. Writing the same bytes over something durable is harmless at any step (ADR 0020).
//!
//! Cost: one pass over the image after a manager has died, none after one that has ended.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::StorageBackend;

/// Bytes read and written at a time.
const CHUNK: u64 = 1 << 20;

/// A disk whose content is written again when it is told to.
pub(crate) struct RewritingDisk<B> {
    disk: B,
    is_doubtful: Arc<AtomicBool>,
}

impl<B> RewritingDisk<B> {
    /// In front of a disk; set the flag when what is on it may be in the page cache only.
    pub(crate) fn new(disk: B, is_doubtful: Arc<AtomicBool>) -> Self {
        RewritingDisk { disk, is_doubtful }
    }
}

impl<B: StorageBackend> RewritingDisk<B> {
    fn write_again(&self) -> io::Result<()> {
        let len = self.disk.len()?;
        let mut bytes = vec![0; CHUNK.min(len) as usize];
        let mut at = 0;
        while at < len {
            let part = &mut bytes[..CHUNK.min(len - at) as usize];
            self.disk.read(at, part)?;
            self.disk.write(at, part)?;
            at += part.len() as u64;
        }
        Ok(())
    }
}

impl<B: StorageBackend> fmt::Debug for RewritingDisk<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.disk.fmt(f)
    }
}

impl<B: StorageBackend> StorageBackend for RewritingDisk<B> {
    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.is_doubtful.load(Ordering::Acquire) {
            self.write_again()?;
            self.disk.sync_data()?;
            self.is_doubtful.store(false, Ordering::Release);
            return Ok(());
        }
        self.disk.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.disk.close()
    }
}
