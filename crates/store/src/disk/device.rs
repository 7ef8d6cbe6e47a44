//! What the disk store asks of an operating system: [`Disk`], a directory of sparse files.
//!
//! Every system call of the disk store goes through these two traits, so that [`super::twin`] can
//! stand in for the machine and fail, tear and forget at any step. [`Directory`] is the real one.
//!
//! Invariants: `write_at` and `read_at` may be short, as the system's are; `sync` makes the file's
//! bytes durable, `sync_names` its existence; nothing else is promised to survive a power cut. After a
//! failed `sync` the bytes written since the last good one may be gone (the kernel drops them).

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lockfile::{LockError, LockFile};
use rustix::fs::{FallocateFlags, SeekFrom};

/// Room on a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes that can still be written.
    pub free_bytes: u64,
    /// Bytes it has in all.
    pub total_bytes: u64,
}

/// A directory that holds data files.
pub trait Disk: fmt::Debug + Send + Sync {
    /// A new file, empty. Fails if the name exists.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// An existing file.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Removes a name.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes the directory if there is none.
    fn make(&self) -> io::Result<()> {
        Ok(())
    }
    /// Gives a file another name, in place of whatever had it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Puts a file into the folder for what is neither served nor removed; its path there.
    fn quarantine(&self, name: &str) -> io::Result<String>;
    /// What is in that folder, as paths.
    fn quarantined(&self) -> io::Result<Vec<String>>;
    /// All names, in any order.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Makes creations and removals durable.
    fn sync_names(&self) -> io::Result<()>;
    /// Room on the device.
    fn space(&self) -> io::Result<Space>;
    /// Takes the directory for this process for as long as the result lives; `WouldBlock` if
    /// another process has it.
    fn lock(&self) -> io::Result<Box<dyn fmt::Debug + Send + Sync>>;
    /// What to call it in messages.
    fn label(&self) -> String;
}

/// One sparse file.
pub trait DiskFile: fmt::Debug + Send + Sync {
    /// Reads some bytes; 0 at or beyond the end.
    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<usize>;
    /// Writes some bytes.
    fn write_at(&self, offset: u64, source: &[u8]) -> io::Result<usize>;
    /// Makes everything written durable.
    fn sync(&self) -> io::Result<()>;
    /// Lets the disk begin with what was written to a range, so that a sync has less to wait for. Promises nothing.
    fn begin_sync(&self, _offset: u64, _len: u64) {}
    /// Frees a range; it reads as zeros.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Reserves room for a range that is still to be written.
    fn reserve(&self, offset: u64, len: u64) -> io::Result<()>;
    /// The first offset at or after `offset` that may hold data; `None` if only holes follow.
    fn next_data(&self, offset: u64) -> io::Result<Option<u64>>;
    /// Bytes of disk space it takes.
    fn allocated(&self) -> io::Result<u64>;
}

/// A directory of the file system.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
}

/// Folder of a directory for what is neither served nor removed.
const QUARANTINE: &str = "quarantine";

impl Directory {
    /// Uses `path`, which is made if it does not exist.
    pub fn new(path: impl AsRef<Path>) -> io::Result<Self> {
        let directory = Directory::at(path)?;
        directory.make()?;
        Ok(directory)
    }

    /// Uses `path`, whether or not it exists.
    pub fn at(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Directory {
            path: std::path::absolute(path)?,
        })
    }

    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        options
    }
}

impl Disk for Directory {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = Self::options()
            .create_new(true)
            .open(self.path.join(name))?;
        Ok(Box::new(RealFile(file)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RealFile(
            Self::options().open(self.path.join(name))?,
        )))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn make(&self) -> io::Result<()> {
        lockfile::make_directory(&self.path, 0o777)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn quarantine(&self, name: &str) -> io::Result<String> {
        let folder = self.path.join(QUARANTINE);
        std::fs::create_dir_all(&folder)?;
        // Nothing that is there already is replaced.
        let free = (0..).map(|n| match n {
            0 => folder.join(name),
            n => folder.join(format!("{name}.{n}")),
        });
        let free = free.into_iter().find(|path| !path.exists());
        let target = free.ok_or(io::ErrorKind::AlreadyExists)?;
        std::fs::rename(self.path.join(name), &target)?;
        File::open(&folder)?.sync_all()?;
        self.sync_names()?;
        Ok(target.display().to_string())
    }

    fn quarantined(&self) -> io::Result<Vec<String>> {
        let folder = self.path.join(QUARANTINE);
        match std::fs::read_dir(folder) {
            Ok(entries) => entries
                .map(|e| Ok(e?.path().display().to_string()))
                .collect(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(e),
        }
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            // A name that is not UTF-8 is none of ours.
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn space(&self) -> io::Result<Space> {
        let stat = rustix::fs::statvfs(&self.path)?;
        Ok(Space {
            free_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
            total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
        })
    }

    fn lock(&self) -> io::Result<Box<dyn fmt::Debug + Send + Sync>> {
        match LockFile::acquire(&self.path.join("lock")) {
            Ok(lock) => Ok(Box::new(lock)),
            Err(LockError::Held(_)) => Err(io::ErrorKind::WouldBlock.into()),
            Err(LockError::Io(_, e)) => Err(e),
        }
    }

    fn label(&self) -> String {
        self.path.display().to_string()
    }
}

/// A file of the file system.
#[derive(Debug)]
struct RealFile(File);

impl DiskFile for RealFile {
    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(&self.0, target, offset)
    }

    fn write_at(&self, offset: u64, source: &[u8]) -> io::Result<usize> {
        FileExt::write_at(&self.0, source, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    /// Linux begins to write what is dirty of a range that is said to be needed no more, and does not wait. Pages on their
    /// way stay in its cache.
    fn begin_sync(&self, offset: u64, len: u64) {
        let len = std::num::NonZeroU64::new(len);
        let _ = rustix::fs::fadvise(self.0.as_fd(), offset, len, rustix::fs::Advice::DontNeed);
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(self.0.as_fd(), flags, offset, len)?)
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(self.0.as_fd(), flags, offset, len)?)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        match rustix::fs::seek(self.0.as_fd(), SeekFrom::Data(offset)) {
            Ok(at) => Ok(Some(at)),
            Err(rustix::io::Errno::NXIO) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    fn allocated(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.blocks() * 512)
    }
}
