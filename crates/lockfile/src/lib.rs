//! A file that one process at a time may hold, and that nobody holds after its death.
//!
//! Record locks of the kernel (`fcntl`), since they belong to the process: a child that was forked off
//! does not inherit them, so the lock is free when its holder dies even if children live on with
//! its descriptors. Locks by `flock` would stay with the children.
//!
//! Invariants
//! - Record locks do not keep a process from itself, so a table of this process does.
//! - The kernel drops a record lock when *any* descriptor of the file is closed by the holder; the
//!   file is opened here only, and only after the table has said that it is free.
//!
//! A file system without record locks (some parallel and network file systems) gets one in the directory for temporary files, which
//! keeps processes of this host apart; those of other hosts are not kept apart there.
//!
//! Beside it, for the directories that are held: names that last ([`make_directory`]).
#![forbid(unsafe_code)]

mod lasting;

pub use lasting::{make_directory, sync_name};

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;

/// A lock that is held until this is dropped or the process ends.
#[derive(Debug)]
pub struct LockFile {
    key: Key,
    process: u32,
    /// Closing it gives the lock back.
    file: Option<File>,
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("{0} is held by another process")]
    Held(PathBuf),
    /// The file cannot be opened or locked.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
}

/// Device and inode.
type Key = (u64, u64);

/// What this process holds. Entries that a parent made are not ours and count for nothing.
static HELD: Mutex<Option<HashMap<Key, u32>>> = Mutex::new(None);

impl LockFile {
    /// Takes the lock of a file, which is created with mode 0600 if it is not there. Does not wait.
    pub fn acquire(path: &Path) -> Result<LockFile, LockError> {
        LockFile::acquire_by(path, |file| {
            fcntl_lock(file, FlockOperation::NonBlockingLockExclusive)
        })
    }

    /// Takes it by what locks a file.
    fn acquire_by(
        path: &Path,
        lock: impl Fn(&File) -> rustix::io::Result<()>,
    ) -> Result<LockFile, LockError> {
        let failed = |e: io::Error| LockError::Io(path.to_owned(), e);
        let mut table = HELD.lock();
        let table = table.get_or_insert_default();
        let process = std::process::id();
        if let Ok(found) = path.metadata() {
            let key = (found.dev(), found.ino());
            if table.get(&key) == Some(&process) {
                return Err(LockError::Held(path.to_owned()));
            }
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        let key = (found.dev(), found.ino());
        let locked = match lock(&file) {
            // There is no such thing here: a file of this host stands for it.
            Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => {
                let beside = of_this_host(key).map_err(failed)?;
                lock(&beside).map(|()| beside)
            }
            locked => locked.map(|()| file),
        };
        match locked {
            Ok(file) => {
                table.insert(key, process);
                Ok(LockFile {
                    key,
                    process,
                    file: Some(file),
                })
            }
            Err(Errno::AGAIN | Errno::ACCESS) => Err(LockError::Held(path.to_owned())),
            Err(e) => Err(failed(e.into())),
        }
    }

    /// Whether the file of this name is the one that is locked: it may have been removed, and made
    /// again by another process.
    pub fn is_of(&self, path: &Path) -> bool {
        path.metadata()
            .is_ok_and(|found| (found.dev(), found.ino()) == self.key)
    }
}

/// What stands on this host for a file that cannot be locked.
fn of_this_host((device, inode): Key) -> io::Result<File> {
    let user = rustix::process::geteuid().as_raw();
    let name = format!("pario-lock-{user}-{device:x}-{inode:x}");
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(std::env::temp_dir().join(name))
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let mut table = HELD.lock();
        let is_ours = self.process == std::process::id();
        if let (true, Some(table)) = (is_ours, table.as_mut()) {
            table.remove(&self.key);
        }
        // Inside the table's lock: closing must not meet an acquisition.
        drop(self.file.take());
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn path(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("lockfile-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        dir.join(name)
    }

    #[test]
    fn one_holder_at_a_time_in_one_process() {
        let path = path("one");
        let first = LockFile::acquire(&path).unwrap();
        assert!(matches!(LockFile::acquire(&path), Err(LockError::Held(_))));
        drop(first);
        let again = LockFile::acquire(&path).unwrap();
        // A second look must not have given the first lock away.
        assert!(matches!(LockFile::acquire(&path), Err(LockError::Held(_))));
        assert!(again.is_of(&path));
        std::fs::remove_file(&path).unwrap();
        assert!(!again.is_of(&path), "it has no name any more");
        drop(again);
    }

    #[test]
    fn other_process_is_kept_out_until_the_lock_is_given_back() {
        let path = path("two");
        let lock = LockFile::acquire(&path).unwrap();
        let try_it = || {
            Command::new("python3")
                .arg("-c")
                .arg("import fcntl,sys\nf=open(sys.argv[1],'r+')\ntry: fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB)\nexcept OSError: sys.exit(3)")
                .arg(&path)
                .status()
                .unwrap()
                .code()
        };
        assert_eq!(try_it(), Some(3));
        drop(lock);
        assert_eq!(try_it(), Some(0));
    }

    #[test]
    fn where_files_cannot_be_locked_processes_of_the_host_are_kept_apart() {
        let path = path("three");
        let cannot = |file: &File| {
            // Those of the host lie elsewhere.
            let found = file.metadata().unwrap();
            match path.metadata().is_ok_and(|own| own.ino() == found.ino()) {
                true => Err(Errno::NOLCK),
                false => fcntl_lock(file, FlockOperation::NonBlockingLockExclusive),
            }
        };
        let lock = LockFile::acquire_by(&path, cannot).unwrap();
        assert!(lock.is_of(&path));
        assert!(matches!(
            LockFile::acquire_by(&path, cannot),
            Err(LockError::Held(_))
        ));
        drop(lock);
        drop(LockFile::acquire_by(&path, cannot).unwrap());
    }

    #[test]
    fn path_that_cannot_be_opened_is_named() {
        let error = LockFile::acquire(Path::new("/proc/none/lock")).unwrap_err();
        assert!(error.to_string().contains("/proc/none/lock"));
    }
}
