//! A disk that is no faster than it is told to be: for experiments with slower disks than there are, and for
//! servers that leave some of a disk to others.
//!
//! Reads and writes of bytes take their turn: each occupies the disk for its bytes divided by the rate. What
//! the disk does not do with bytes (names, holes, syncs) takes what it takes.
//!
//! Left to others: caches above it, which it does not see.

use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::device::{Disk, DiskFile, Space};

/// When the disk is free again.
#[derive(Debug)]
struct Turn {
    bytes_per_s: u64,
    free_at: Mutex<Instant>,
    never: Condvar,
}

impl Turn {
    /// Occupies the disk for so many bytes, and waits until it has done them.
    fn take(&self, bytes: usize) {
        let nanos = bytes as u128 * 1_000_000_000 / u128::from(self.bytes_per_s.max(1));
        let lasts = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let end = (*free_at).max(Instant::now()) + lasts;
        *free_at = end;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            // Others take their turns meanwhile, behind this one.
            free_at = self
                .never
                .wait_timeout(free_at, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

/// A disk that is no faster than it is told to be: for experiments, and for servers that leave some of a disk to others.
#[derive(Debug)]
pub struct Limited {
    disk: Arc<dyn Disk>,
    turn: Arc<Turn>,
}

impl Limited {
    /// At most `bytes_per_s`, reads and writes together.
    pub fn new(disk: Arc<dyn Disk>, bytes_per_s: u64) -> Limited {
        Limited {
            disk,
            turn: Arc::new(Turn {
                bytes_per_s,
                free_at: Mutex::new(Instant::now()),
                never: Condvar::new(),
            }),
        }
    }

    fn file(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(LimitedFile {
            file,
            turn: Arc::clone(&self.turn),
        })
    }
}

impl Disk for Limited {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.create(name).map(|file| self.file(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(name).map(|file| self.file(file))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.disk.names()
    }

    fn sync_names(&self) -> io::Result<()> {
        self.disk.sync_names()
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
}

#[derive(Debug)]
struct LimitedFile {
    file: Box<dyn DiskFile>,
    turn: Arc<Turn>,
}

impl DiskFile for LimitedFile {
    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(offset, target)?;
        self.turn.take(n);
        Ok(n)
    }

    fn write_at(&self, offset: u64, source: &[u8]) -> io::Result<usize> {
        let n = self.file.write_at(offset, source)?;
        self.turn.take(n);
        Ok(n)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.punch(offset, len)
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.reserve(offset, len)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        self.file.next_data(offset)
    }

    fn allocated(&self) -> io::Result<u64> {
        self.file.allocated()
    }
}
