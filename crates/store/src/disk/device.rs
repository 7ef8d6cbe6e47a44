//! What the disk store asks of an operating system: [`Disk`], a directory of sparse files.
//!
//! Every system call of the disk store goes through these two traits, so that [`super::twin`] can
//! stand in for the machine and fail, tear and forget at any step. [`Directory`] is the real one.
//!
//! Invariants: `write_at` and `read_at` may be short, as the system's are; `sync` makes the file's
//! bytes durable, `sync_names` its existence; nothing else is promised to survive a power cut. After a
//! failed `sync` the bytes written since the last good one may be gone (the kernel drops them).
//!
//! Of the file system nothing is assumed beyond POSIX: files that are read and written at offsets, `fsync`, names that are
//! exclusive and replaced in one step. What a parallel or network file system may lack is done without:
//!
//! ```text
//!  lacks                     then
//!  holes that are punched    superseded places stay allocated until their file goes or they are written again
//!  space that is reserved    there is room if the file system says so now; a disk that fills up is noticed by the write
//!  SEEK_DATA                 all of a file counts as data
//!  fsync of directories      names are as durable as the file system makes them by itself
//!  record locks              one in memory of this host: see `lockfile`
//! ```

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockfile::{LockError, LockFile};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;

use super::direct_io::DirectIo;

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
    /// How bytes go to and from its files.
    fn io(&self) -> FileIo {
        FileIo::Buffered
    }
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
    /// Gives back room that was reserved behind the end of the file.
    fn trim_end(&self) -> io::Result<()> {
        Ok(())
    }
    /// The first offset at or after `offset` that may hold data; `None` if only holes follow.
    fn next_data(&self, offset: u64) -> io::Result<Option<u64>>;
    /// Bytes of disk space it takes.
    fn allocated(&self) -> io::Result<u64>;
}

/// A directory of the file system.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    lacks: Arc<Lacks>,
    io: FileIo,
}

/// How bytes go to and from the files of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileIo {
    /// Through the page cache.
    #[default]
    Buffered,
    /// Past it (`O_DIRECT`), where the file system can.
    Direct,
}

/// What a file system was found to lack, at the first use.
#[derive(Debug, Default)]
struct Lacks {
    punching: AtomicBool,
    reserving: AtomicBool,
    seeking_data: AtomicBool,
    syncing_names: AtomicBool,
}

impl Lacks {
    /// Runs what needs a feature, unless it is known to be missing; nothing if it is missing.
    fn with<T>(
        &self,
        lacks: &AtomicBool,
        what: &'static str,
        run: impl FnOnce() -> rustix::io::Result<T>,
    ) -> io::Result<Option<T>> {
        // Of these two an invalid argument says that there is no such thing; of others it is a mistake.
        let is_told_by_argument =
            std::ptr::eq(lacks, &self.seeking_data) || std::ptr::eq(lacks, &self.syncing_names);
        if lacks.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match run() {
            Ok(done) => Ok(Some(done)),
            Err(e)
                if matches!(e, Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY)
                    || e == Errno::INVAL && is_told_by_argument =>
            {
                lacks.store(true, Ordering::Relaxed);
                tracing::info!(
                    what,
                    "the file system of a disk has no such thing; the store does without"
                );
                Ok(None)
            }
            Err(e) => Err(e.into()),
        }
    }
}

/// What stands for something that a file system lacks.
fn unsupported() -> io::Error {
    io::ErrorKind::Unsupported.into()
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
            lacks: Arc::default(),
            io: FileIo::Buffered,
        })
    }

    /// With bytes that go this way; through the page cache where the file system knows no other.
    pub fn with_io(self, io: FileIo) -> Self {
        Directory { io, ..self }
    }

    /// As if the file system had nothing beyond POSIX, for tests on those that have it.
    #[doc(hidden)]
    pub fn lacking_all(self) -> Self {
        let lacks = &self.lacks;
        for feature in [
            &lacks.punching,
            &lacks.reserving,
            &lacks.seeking_data,
            &lacks.syncing_names,
        ] {
            feature.store(true, Ordering::Relaxed);
        }
        self
    }

    /// A file of this name as the store uses it.
    fn file(&self, name: &str, options: &OpenOptions) -> io::Result<Box<dyn DiskFile>> {
        let path = self.path.join(name);
        let file = options.open(&path)?;
        let direct = match self.io {
            FileIo::Buffered => None,
            FileIo::Direct => DirectIo::open(&path)?,
        };
        Ok(Box::new(RealFile {
            file,
            direct,
            lacks: Arc::clone(&self.lacks),
        }))
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let lacks = &self.lacks;
        let sync = || rustix::fs::fsync(File::open(folder).map_err(as_errno)?);
        lacks.with(&lacks.syncing_names, "fsync of directories", sync)?;
        Ok(())
    }

    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        options
    }
}

impl Disk for Directory {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.file(name, Self::options().create_new(true))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.file(name, &Self::options())
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
        self.sync_folder(&folder)?;
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
        self.sync_folder(&self.path)
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

    fn io(&self) -> FileIo {
        self.io
    }
}

/// What the system said of a failed call.
fn as_errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// A file of the file system.
#[derive(Debug)]
struct RealFile {
    file: File,
    /// The way past the page cache, if it is used.
    direct: Option<DirectIo>,
    lacks: Arc<Lacks>,
}

impl DiskFile for RealFile {
    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<usize> {
        if let Some(direct) = &self.direct
            && let Some(read) = direct.read_at(offset, target)?
        {
            return Ok(read);
        }
        FileExt::read_at(&self.file, target, offset)
    }

    fn write_at(&self, offset: u64, source: &[u8]) -> io::Result<usize> {
        if let Some(direct) = &self.direct
            && let Some(written) = direct.write_at(offset, source)?
        {
            return Ok(written);
        }
        FileExt::write_at(&self.file, source, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Linux begins to write what is dirty of a range that is said to be needed no more, and does not wait. Pages on their
    /// way stay in its cache.
    fn begin_sync(&self, offset: u64, len: u64) {
        let len = std::num::NonZeroU64::new(len);
        let _ = rustix::fs::fadvise(self.file.as_fd(), offset, len, rustix::fs::Advice::DontNeed);
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let lacks = &self.lacks;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let punch = || rustix::fs::fallocate(self.file.as_fd(), flags, offset, len);
        let punched = lacks.with(&lacks.punching, "punched holes", punch)?;
        punched.ok_or_else(unsupported)
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        let lacks = &self.lacks;
        let flags = FallocateFlags::KEEP_SIZE;
        let reserve = || rustix::fs::fallocate(self.file.as_fd(), flags, offset, len);
        if let Some(()) = lacks.with(&lacks.reserving, "reserved space", reserve)? {
            return Ok(());
        }
        // As good as it gets: whether there is room now.
        let stat = rustix::fs::fstatvfs(self.file.as_fd())?;
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        match stat.f_blocks > 0 && free < len {
            true => Err(Errno::NOSPC.into()),
            false => Ok(()),
        }
    }

    /// Some file systems punch no holes behind the end, but all cut there.
    fn trim_end(&self) -> io::Result<()> {
        let about = self.file.metadata()?;
        match about.blocks() * 512 > about.len() {
            true => self.file.set_len(about.len()),
            false => Ok(()),
        }
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        let lacks = &self.lacks;
        let seek = || match rustix::fs::seek(self.file.as_fd(), SeekFrom::Data(offset)) {
            Ok(at) => Ok(Some(at)),
            Err(Errno::NXIO) => Ok(None),
            Err(e) => Err(e),
        };
        match lacks.with(&lacks.seeking_data, "finding data in holes", seek)? {
            Some(found) => Ok(found),
            None => Ok((offset < self.file.metadata()?.len()).then_some(offset)),
        }
    }

    fn allocated(&self) -> io::Result<u64> {
        let about = self.file.metadata()?;
        Ok(match about.blocks() {
            // It does not count them.
            0 if self.lacks.seeking_data.load(Ordering::Relaxed) => about.len(),
            blocks => blocks * 512,
        })
    }
}
