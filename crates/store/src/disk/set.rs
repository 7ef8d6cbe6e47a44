//! Several disks: which one a new subfile goes to, and which ones no longer count.
//!
//! [`rank`] is a pure function of what is known about the disks: speed, distance, room, failure.
//! Equal knowledge gives equal order; changed knowledge changes it. There is no clock and no
//! chance in it; speed is measured by a caller that has a clock ([`measure_speed`]) or declared.
//!
//! A disk that failed takes no new subfiles. What is already there gives errors or, where its
//! checksums match, bytes; never anything else.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::device::{Disk, Space};
use super::roster::{DiskId, MissingDisk};
use crate::error::{Error, Result};
use parking_lot::{Mutex, MutexGuard};

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

    /// The specification of a disk that is shared.
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

/// Disks that can take a new subfile, best first, where `subfiles` are on each already.
///
/// Subfiles are spread in proportion to room and to the root of the speed: of two equal disks each gets every other
/// one, one with twice the room twice as many, one that is four times as fast twice as many. The root, since speed is measured
/// once and in a hurry. Disks that are equally loaded come as [`rank`] has them.
///
/// ```
/// use store::{Characteristics, Space, spread};
/// let disk = |free_bytes| Characteristics {
///     space: Space { free_bytes, total_bytes: 1 << 40 },
///     ..Characteristics::default()
/// };
/// let mut subfiles = [0, 0];
/// for _ in 0..6 {
///     subfiles[spread(&[disk(1 << 39), disk(1 << 39)], &subfiles, 4096)[0]] += 1;
/// }
/// assert_eq!(subfiles, [3, 3]);
/// ```
pub fn spread(disks: &[Characteristics], subfiles: &[u64], wanted_bytes: u64) -> Vec<usize> {
    let load = |index: &usize| {
        let disk = &disks[*index];
        let speed = disk.speed_bytes_per_s / (1 + u64::from(disk.distance));
        let room = u128::from((disk.space.free_bytes >> 20).max(1));
        let share = u128::from(speed.isqrt().max(1)) * room;
        let count = u128::from(subfiles[*index].min(u64::from(u32::MAX)) + 1);
        (count << 90) / share.min(1 << 90)
    };
    let mut order = rank(disks, wanted_bytes);
    order.sort_by_key(load);
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
    missing: Vec<MissingDisk>,
    lost: Vec<DiskId>,
}

#[derive(Debug)]
struct Member {
    disk: Arc<dyn Disk>,
    id: DiskId,
    known: Mutex<Characteristics>,
    /// Keeps other processes out for as long as the set lives.
    _lock: Box<dyn std::fmt::Debug + Send + Sync>,
}

impl DiskSet {
    /// Takes disks for this process; those that are missing are known as such.
    pub(crate) fn take(
        disks: &[(DiskSpec, DiskId)],
        missing: Vec<MissingDisk>,
        lost: Vec<DiskId>,
    ) -> Result<Self> {
        let members = disks.iter().map(|(spec, id)| {
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
                disk: Arc::clone(&spec.disk),
                id: *id,
                _lock: lock,
            })
        });
        Ok(DiskSet {
            members: members.collect::<Result<_>>()?,
            missing,
            lost,
        })
    }

    /// Disks that belong to the store and are not there.
    pub fn missing(&self) -> &[MissingDisk] {
        &self.missing
    }

    /// Disks that were declared lost.
    pub fn lost(&self) -> &[DiskId] {
        &self.lost
    }

    /// The number of a disk.
    pub fn id(&self, index: usize) -> DiskId {
        self.members[index].id
    }

    /// Which disk has a number, if it is there.
    pub(crate) fn find(&self, id: DiskId) -> Option<usize> {
        self.members.iter().position(|m| m.id == id)
    }

    /// How many disks there are, failed ones included and missing ones not.
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

    /// Takes a disk out of placement: it failed, or the administrator says so.
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

    /// Disks in the order in which a new subfile tries them, where so many subfiles are on each already.
    pub(crate) fn order_new(&self, wanted_bytes: u64, subfiles: &[u64]) -> Vec<usize> {
        spread(&self.characteristics(), subfiles, wanted_bytes)
    }
}

impl Member {
    fn lock(&self) -> MutexGuard<'_, Characteristics> {
        self.known.lock()
    }
}
