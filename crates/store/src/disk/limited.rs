//! A disk that is no faster than it is told to be: for experiments with slower disks than there are, and for
//! servers that leave some of a disk to others.
//!
//! Reads and writes of bytes take their turn: each occupies the disk for its bytes divided by the rate. What
//! the disk does not do with bytes (names, holes, syncs) takes what it takes.
//!
//! Left to others: caches above it, which it does not see.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::device::Disk;
use super::watched::{WatchedDisk, Watcher};
use parking_lot::{Condvar, Mutex};

/// When the disk is free again.
#[derive(Debug)]
pub struct Turn {
    bytes_per_s: u64,
    free_at: Mutex<Instant>,
    never: Condvar,
}

impl Turn {
    /// Occupies the disk for so many bytes, and waits until it has done them.
    fn take(&self, bytes: usize) {
        let nanos = bytes as u128 * 1_000_000_000 / u128::from(self.bytes_per_s.max(1));
        let lasts = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let mut free_at = self.free_at.lock();
        let end = (*free_at).max(Instant::now()) + lasts;
        *free_at = end;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            // Others take their turns meanwhile, behind this one.
            self.never.wait_for(&mut free_at, left);
        }
    }
}

impl Watcher for Turn {
    fn moved(&self, bytes: usize) {
        self.take(bytes);
    }
}

/// A disk that is no faster than it is told to be: for experiments, and for servers that leave some of a disk to others.
pub type LimitedDisk = WatchedDisk<Turn>;

impl LimitedDisk {
    /// At most `bytes_per_s`, reads and writes together.
    pub fn new(disk: Arc<dyn Disk>, bytes_per_s: u64) -> LimitedDisk {
        let turn = Turn {
            bytes_per_s,
            free_at: Mutex::new(Instant::now()),
            never: Condvar::new(),
        };
        WatchedDisk::by(disk, Arc::new(turn))
    }
}
