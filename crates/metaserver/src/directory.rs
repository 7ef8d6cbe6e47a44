//! The directory of the metadata manager: who may use it, and the key of the cluster in it.
//!
//! ```text
//! DIR/meta.lock    held by the process that serves the directory
//! DIR/key          32 random bytes, mode 0600: seals sessions, servers and capabilities
//! DIR/elsewhere    empty: clients of other hosts may believe what they were told
//! DIR/catalogue    everything else
//! ```
//!
//! The key is durable before anything is sealed with it, so that no seal outlives its key.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use control::capability::ClusterKey;
use lockfile::{LockError, LockFile};

use crate::start::StartError;

const KEY_BYTES: usize = 32;

/// A directory that nobody else serves.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    _lock: LockFile,
}

impl Directory {
    /// Takes a directory, which is made if it does not exist.
    pub(crate) fn take(path: &Path) -> Result<Directory, StartError> {
        let failed = |e: io::Error| StartError::Directory(path.to_owned(), e);
        lockfile::make_directory(path, 0o700).map_err(failed)?;
        let lock = LockFile::acquire(&path.join("meta.lock")).map_err(|e| match e {
            LockError::Held(_) => StartError::Served(path.to_owned()),
            LockError::Io(_, e) => failed(e),
        })?;
        Ok(Directory {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Where the catalogue is.
    pub(crate) fn catalogue(&self) -> PathBuf {
        self.path.join("catalogue")
    }

    /// Where the mark is that clients elsewhere may believe what they were told.
    pub(crate) fn elsewhere(&self) -> PathBuf {
        self.path.join("elsewhere")
    }

    /// The key of the cluster; a new directory gets one.
    pub(crate) fn key(&self) -> Result<ClusterKey, StartError> {
        let path = self.path.join("key");
        let secret = match File::open(&path) {
            Ok(file) => {
                let mut bytes = Vec::new();
                file.take(KEY_BYTES as u64 + 1)
                    .read_to_end(&mut bytes)
                    .map_err(|e| StartError::Directory(path.clone(), e))?;
                <[u8; KEY_BYTES]>::try_from(bytes).map_err(|_| StartError::BadKey(path))?
            }
            // A catalogue whose key is gone would refuse all its clients and servers; a new key
            // would only hide that.
            Err(e) if e.kind() == io::ErrorKind::NotFound && !self.catalogue().exists() => self
                .make_key()
                .map_err(|e| StartError::Directory(path, e))?,
            Err(e) => return Err(StartError::Directory(path, e)),
        };
        Ok(ClusterKey::new(secret))
    }

    /// Written aside and renamed: a crash leaves a whole key or none.
    fn make_key(&self) -> io::Result<[u8; KEY_BYTES]> {
        let secret = random()?;
        let aside = self.path.join("key.new");
        match fs::remove_file(&aside) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&aside)?;
        file.write_all(&secret)?;
        file.sync_all()?;
        fs::rename(&aside, self.path.join("key"))?;
        File::open(&self.path)?.sync_all()?;
        Ok(secret)
    }
}

fn random() -> io::Result<[u8; KEY_BYTES]> {
    let mut bytes = [0; KEY_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(n) => filled += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(bytes)
}
