//! A disk in front of another with a watcher: it hears of every access of bytes, before it begins and when
//! it has ended, and may hold it up or refuse it; and of every sync that fails.
//!
//! What else a disk does (names, holes) goes through unseen.

use std::fmt;
use std::io;
use std::sync::Arc;

use super::device::{Disk, DiskFile, FileIo, Space};

/// What a data file is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskRequest {
    /// To read so many bytes from an offset on.
    Read(u64, u64),
    /// To write so many bytes from an offset on.
    Write(u64, u64),
    /// To reserve room for so many bytes from an offset on.
    Reserve(u64, u64),
}

/// Watches a disk.
pub trait Watcher: fmt::Debug + Send + Sync {
    /// A file is asked something; an error is the answer.
    fn asked(&self, _file: &str, _what: DiskRequest) -> io::Result<()> {
        Ok(())
    }

    /// So many bytes were read or written.
    fn moved(&self, _bytes: usize) {}

    /// A sync of bytes or of names failed: what was written since the last one may be gone.
    fn sync_failed(&self) {}
}

/// A disk in front of another, with a watcher.
#[derive(Debug)]
pub struct WatchedDisk<W> {
    disk: Arc<dyn Disk>,
    watcher: Arc<W>,
}

impl<W: Watcher + 'static> WatchedDisk<W> {
    /// A disk with a watcher.
    pub fn by(disk: Arc<dyn Disk>, watcher: Arc<W>) -> WatchedDisk<W> {
        WatchedDisk { disk, watcher }
    }

    fn file(&self, name: &str, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(WatchedFile {
            file,
            name: name.to_owned(),
            watcher: Arc::clone(&self.watcher),
        })
    }
}

impl<W: Watcher + 'static> Disk for WatchedDisk<W> {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.create(name).map(|file| self.file(name, file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(name).map(|file| self.file(name, file))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn make(&self) -> io::Result<()> {
        self.disk.make()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn quarantine(&self, name: &str) -> io::Result<String> {
        self.disk.quarantine(name)
    }

    fn quarantined(&self) -> io::Result<Vec<String>> {
        self.disk.quarantined()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.disk.names()
    }

    fn sync_names(&self) -> io::Result<()> {
        let synced = self.disk.sync_names();
        synced.inspect_err(|_| self.watcher.sync_failed())
    }

    fn space(&self) -> io::Result<Space> {
        self.disk.space()
    }

    fn lock(&self) -> io::Result<Box<dyn fmt::Debug + Send + Sync>> {
        self.disk.lock()
    }

    fn label(&self) -> String {
        self.disk.label()
    }

    fn io(&self) -> FileIo {
        self.disk.io()
    }
}

#[derive(Debug)]
struct WatchedFile<W> {
    file: Box<dyn DiskFile>,
    name: String,
    watcher: Arc<W>,
}

impl<W: Watcher> DiskFile for WatchedFile<W> {
    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<usize> {
        let asked = DiskRequest::Read(offset, target.len() as u64);
        self.watcher.asked(&self.name, asked)?;
        let n = self.file.read_at(offset, target)?;
        self.watcher.moved(n);
        Ok(n)
    }

    fn write_at(&self, offset: u64, source: &[u8]) -> io::Result<usize> {
        let asked = DiskRequest::Write(offset, source.len() as u64);
        self.watcher.asked(&self.name, asked)?;
        let n = self.file.write_at(offset, source)?;
        self.watcher.moved(n);
        Ok(n)
    }

    fn begin_sync(&self, offset: u64, len: u64) {
        self.file.begin_sync(offset, len);
    }

    fn sync(&self) -> io::Result<()> {
        let synced = self.file.sync();
        synced.inspect_err(|_| self.watcher.sync_failed())
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.punch(offset, len)
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        self.watcher
            .asked(&self.name, DiskRequest::Reserve(offset, len))?;
        self.file.reserve(offset, len)
    }

    fn trim_end(&self) -> io::Result<()> {
        self.file.trim_end()
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        self.file.next_data(offset)
    }

    fn allocated(&self) -> io::Result<u64> {
        self.file.allocated()
    }
}
