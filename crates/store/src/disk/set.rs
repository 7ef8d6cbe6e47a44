//! Several disks: which one a new subfile goes to, and which ones no longer count.
//!
//! [`rank`] is a pure function of what is known about the disks: speed, distance, room, failure.
//! Equal knowledge gives equal order; changed knowledge changes it. There is no clock and no
//! chance in it; speed is measured by whoever has a clock ([`measure_speed`]) or declared.
//!
//! A disk that failed takes no new subfiles. What is already there gives errors or, where its
//! checksums match, bytes; never anything else.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::device::{Disk, Space};
use crate::error::{Error, Result};

/// What is known about one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Characteristics {
    /// Bytes per second it writes durably, measured or declared.
    pub speed_bytes_per_s: u64,
    /// How far away it is; 0 is attached to this host, each step halves, thirds, ... its speed.
    pub distance: u32,
    /// Room.
    pub space: Space,
    /// Whether it failed, or was said to have.
    pub has_failed: bool,
}

impl Default for Characteristics {
    fn default() -> Self {
        Characteristics {
            speed_bytes_per_s: 100 << 20,
            distance: 0,
            space: Space::default(),
            has_failed: false,
        }
    }
}

/// A disk with what is declared about it.
#[derive(Clone, Debug)]
pub struct DiskSpec {
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// Bytes per second; see [`measure_speed`].
    pub speed_bytes_per_s: u64,
    /// How far away it is.
    pub distance: u32,
}

impl DiskSpec {
    /// A near disk of usual speed.
    pub fn new(disk: impl Disk + 'static) -> Self {
        DiskSpec::of(Arc::new(disk))
    }

    /// The same of a disk that is shared.
    pub fn of(disk: Arc<dyn Disk>) -> Self {
        DiskSpec {
            disk,
            speed_bytes_per_s: Characteristics::default().speed_bytes_per_s,
            distance: 0,
        }
    }
}

/// Disks that can take `wanted_bytes`, best first.
///
/// The weight of a disk is its speed divided by 1 + distance, reduced in proportion once less than
/// an eighth of it is free. Weights that differ by less than about an eighth are equal: then the one
/// with more room (in steps of 64 MiB) comes first, then the one named first. So equal disks fill
/// evenly, and a much faster one is preferred until it is nearly full.
///
/// ```
/// use store::{Characteristics, Space, rank};
/// let disk = |speed_bytes_per_s, free_bytes| Characteristics {
///     speed_bytes_per_s,
///     space: Space { free_bytes, total_bytes: 1 << 40 },
///     ..Characteristics::default()
/// };
/// assert_eq!(rank(&[disk(100 << 20, 1 << 39), disk(900 << 20, 1 << 38)], 4096), [1, 0]);
/// assert_eq!(rank(&[disk(100 << 20, 1 << 38), disk(101 << 20, 1 << 39)], 4096), [1, 0]);
/// assert_eq!(rank(&[disk(100 << 20, 1 << 38), disk(900 << 20, 0)], 4096), [0]);
/// ```
pub fn rank(disks: &[Characteristics], wanted_bytes: u64) -> Vec<usize> {
    let key = |index: &usize| {
        let disk = &disks[*index];
        let Space {
            free_bytes,
            total_bytes,
        } = disk.space;
        let mut weight = u128::from(disk.speed_bytes_per_s) / (1 + u128::from(disk.distance));
        let eighth = u128::from(total_bytes) / 8;
        if u128::from(free_bytes) < eighth {
            weight = weight * u128::from(free_bytes) / eighth;
        }
        // The four leading bits: steps of an eighth to a sixteenth.
        let bits = u128::BITS - weight.leading_zeros();
        let step = (bits, weight >> bits.saturating_sub(4));
        std::cmp::Reverse((step, free_bytes >> 26))
    };
    let mut order: Vec<usize> = (0..disks.len())
        .filter(|&i| !disks[i].has_failed && disks[i].space.free_bytes >= wanted_bytes.max(1))
        .collect();
    order.sort_by_key(key); // stable: equal ones stay in the order they were named
    order
}

/// Bytes per second a disk writes durably, by writing and syncing a small file. `now` is a clock.
pub fn measure_speed(disk: &dyn Disk, now: &dyn Fn() -> Duration) -> io::Result<u64> {
    const PROBE: &str = "probe";
    const BYTES: usize = 4 << 20;
    match disk.remove(PROBE) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let file = disk.create(PROBE)?;
    let data = vec![0x5a; BYTES];
    let began = now();
    let mut done = 0;
    while done < BYTES {
        match file.write_at(done as u64, &data[done..])? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            n => done += n,
        }
    }
    file.sync()?;
    let took = now().saturating_sub(began).as_nanos().max(1);
    drop(file);
    disk.remove(PROBE)?;
    let speed = BYTES as u128 * 1_000_000_000 / took;
    Ok(u64::try_from(speed).unwrap_or(u64::MAX))
}

/// The disks of one store.
#[derive(Debug)]
pub struct DiskSet {
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    disk: Arc<dyn Disk>,
    known: Mutex<Characteristics>,
    /// Keeps other processes out for as long as the set lives.
    _lock: Box<dyn std::fmt::Debug + Send + Sync>,
}

impl DiskSet {
    /// Takes the disks for this process.
    pub fn new(specs: Vec<DiskSpec>) -> Result<Self> {
        if specs.is_empty() {
            return Err(Error::argument("disks", "none given; name at least one"));
        }
        let members = specs.into_iter().map(|spec| {
            let lock = spec.disk.lock().map_err(|e| {
                if e.kind() == io::ErrorKind::WouldBlock {
                    Error::Busy {
                        disk: spec.disk.label(),
                    }
                } else {
                    Error::io("locking a disk directory", e, 0)
                }
            })?;
            Ok(Member {
                known: Mutex::new(Characteristics {
                    speed_bytes_per_s: spec.speed_bytes_per_s,
                    distance: spec.distance,
                    ..Characteristics::default()
                }),
                disk: spec.disk,
                _lock: lock,
            })
        });
        Ok(DiskSet {
            members: members.collect::<Result<_>>()?,
        })
    }

    /// How many disks there are, failed ones included.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Never: a set has disks.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// One disk.
    pub fn disk(&self, index: usize) -> &Arc<dyn Disk> {
        &self.members[index].disk
    }

    /// What is known about all disks, with their room asked anew. One that cannot say has failed.
    pub fn characteristics(&self) -> Vec<Characteristics> {
        let ask = |member: &Member| {
            let space = member.disk.space();
            let mut known = member.lock();
            match space {
                Ok(space) => known.space = space,
                Err(_) => known.has_failed = true,
            }
            *known
        };
        self.members.iter().map(ask).collect()
    }

    /// Changes what is declared about a disk.
    pub fn declare(&self, index: usize, speed_bytes_per_s: u64, distance: u32) {
        let mut known = self.members[index].lock();
        known.speed_bytes_per_s = speed_bytes_per_s;
        known.distance = distance;
    }

    /// Takes a disk out of placement: it failed, or somebody says so.
    pub fn fail(&self, index: usize) {
        self.members[index].lock().has_failed = true;
    }

    /// Lets a disk take new subfiles again.
    pub fn restore(&self, index: usize) {
        self.members[index].lock().has_failed = false;
    }

    /// Disks that can take `wanted_bytes`, best first.
    pub fn order(&self, wanted_bytes: u64) -> Vec<usize> {
        rank(&self.characteristics(), wanted_bytes)
    }
}

impl Member {
    fn lock(&self) -> MutexGuard<'_, Characteristics> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
