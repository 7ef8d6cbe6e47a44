//! The file that holds the catalogue, for one process at a time.
//!
//! The store's own file back end locks by `flock`, which children inherit: a process that was forked
//! off by a dead manager would keep its successor out. Here the lock beside the file belongs to the
//! process ([`lockfile`]).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use lockfile::{LockError, LockFile};
use parking_lot::Mutex;
use redb::StorageBackend;

use crate::error::MetaError;

/// An open image.
#[derive(Debug)]
pub(crate) struct Image {
    file: File,
    lock: Mutex<Option<LockFile>>,
}

impl Image {
    /// Opens the file, or creates it with mode 0600; its name is durable.
    pub(crate) fn open(path: &Path) -> Result<Image, MetaError> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".lock");
        let lock = LockFile::acquire(beside.as_ref()).map_err(|e| match e {
            LockError::Held(_) => MetaError::AlreadyOpen,
            LockError::Io(..) => MetaError::Store(e.to_string()),
        })?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .and_then(|file| lockfile::sync_name(path).map(|()| file))
            .map_err(|e| MetaError::Store(format!("{}: {e}", path.display())))?;
        Ok(Image {
            file,
            lock: Mutex::new(Some(lock)),
        })
    }
}

impl StorageBackend for Image {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    fn close(&self) -> io::Result<()> {
        drop(self.lock.lock().take());
        Ok(())
    }
}
