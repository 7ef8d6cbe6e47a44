//! The file that holds the catalogue, for one process at a time.
//!
//! The store's own file back end locks by `flock`, which children inherit: a process that was forked
//! off by a dead manager would keep its successor out. Here the lock beside the file belongs to the
//! process ([`lockfile`]).
//!
//! A new image has another name until the catalogue in it is whole: one that the power cut in two would be refused ever
//! after.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

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
    /// Opens the file, whose name is durable then. One that does not exist is created with mode 0600 beside it, and gets
    /// its name from [`NewImage::finish`].
    pub(crate) fn open(path: &Path) -> Result<(Image, Option<NewImage>), MetaError> {
        let failed = |e: io::Error| MetaError::Store(format!("{}: {e}", path.display()));
        let beside = |ending: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        let lock = LockFile::acquire(&beside(".lock")).map_err(|e| match e {
            LockError::Held(_) => MetaError::AlreadyOpen,
            LockError::Io(..) => MetaError::Store(e.to_string()),
        })?;
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let (file, new) = match options.open(path) {
            Ok(file) => {
                lockfile::sync_name(path).map_err(failed)?;
                (file, None)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let aside = beside(".new");
                match fs::remove_file(&aside) {
                    Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
                    _ => {}
                }
                let made = options.create_new(true).mode(0o600).open(&aside);
                let new = NewImage {
                    aside,
                    path: path.to_owned(),
                };
                (made.map_err(failed)?, Some(new))
            }
            Err(e) => return Err(failed(e)),
        };
        let lock = Mutex::new(Some(lock));
        Ok((Image { file, lock }, new))
    }
}

/// An image that has not got its name yet.
#[must_use]
pub(crate) struct NewImage {
    aside: PathBuf,
    path: PathBuf,
}

impl NewImage {
    /// What is in it is whole and durable: it gets its name, durably.
    pub(crate) fn finish(self) -> Result<(), MetaError> {
        fs::rename(&self.aside, &self.path)
            .and_then(|()| lockfile::sync_name(&self.path))
            .map_err(|e| MetaError::Store(format!("{}: {e}", self.path.display())))
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
