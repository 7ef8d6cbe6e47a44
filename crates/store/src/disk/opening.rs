//! Opening subfiles of a disk store, one at a time each, and saying why one cannot be opened.
//!
//! Recovery of a large subfile takes its time. It runs without the index locked: a thread that wants the same subfile waits for
//! it, everybody else goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::MutexGuard;

use super::file::{DataFile, name_of};
use super::found::{At, clear_away};
use super::held::HeldSubfile;
use super::store::{Core, Index};
use crate::error::{Error, Result};
use crate::identity::SubfileId;

/// A thread opens a subfile; when this ends, others may.
struct OpeningGuard<'a> {
    core: &'a Core,
    id: SubfileId,
}

impl Drop for OpeningGuard<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.core.lock().map.get_mut(&self.id) {
            entry.is_opening = false;
        }
        self.core.opened.notify_all();
    }
}

impl Core {
    /// Why the bytes of a subfile cannot be had.
    pub(super) fn refuse(&self, id: SubfileId, at: &At) -> Error {
        match at {
            At::Disk(_) => Error::Exists(id),
            At::Missing(disk) => Error::DiskMissing {
                id,
                why: self.set.missing()[*disk].to_string(),
            },
            At::Lost(why) => Error::Lost {
                id,
                why: format!("{why}; write the file again, or remove it"),
            },
            At::Conflict(disks) => self.conflict(id, disks),
        }
    }

    pub(super) fn conflict(&self, id: SubfileId, disks: &[usize]) -> Error {
        let name = name_of(id);
        let path = |disk: &usize| format!("{}/{name}", self.set.disk(*disk).label());
        let paths: Vec<String> = disks.iter().map(path).collect();
        Error::Conflict {
            id,
            why: format!(
                "{}; none is removed: stop the server, move all but one out of the way, and start it again",
                paths.join(" and ")
            ),
        }
    }

    /// There is no such subfile; or nobody knows.
    fn absent(&self, id: SubfileId, bound: Option<u64>) -> Error {
        if bound.map_or(self.doubt == 0, |bound| bound > self.doubt) {
            return Error::NotFound(id);
        }
        match self.set.missing() {
            [] => Error::Lost {
                id,
                why: "they may have been on one of the disks that were declared lost together"
                    .to_owned(),
            },
            missing => {
                let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
                Error::DiskMissing {
                    id,
                    why: format!("it may be on one of these: {}", missing.join("; ")),
                }
            }
        }
    }

    /// Waits for the thread that opens a subfile just now.
    pub(super) fn wait_until_open(&self, id: SubfileId) -> MutexGuard<'_, Index> {
        let is_opening = |known: &mut Index| known.map.get(&id).is_some_and(|k| k.is_opening);
        let mut index = self.lock();
        self.opened.wait_while(&mut index, is_opening);
        index
    }

    pub(super) fn held(
        self: &Arc<Self>,
        id: SubfileId,
        bound: Option<u64>,
    ) -> Result<Arc<HeldSubfile>> {
        let mut known = self.wait_until_open(id);
        let Some(entry) = known.map.get_mut(&id) else {
            return Err(self.absent(id, bound));
        };
        if let Some(held) = &entry.open {
            return Ok(Arc::clone(held));
        }
        let At::Disk(disk) = entry.at else {
            return Err(self.refuse(id, &entry.at));
        };
        if let Some(why) = &entry.failed {
            return Err(Error::DiskFailed {
                disk: self.set.disk(disk).label(),
                why: why.clone(),
            });
        }
        let is_recorded = Arc::clone(&entry.is_recorded);
        entry.is_opening = true;
        drop(known);
        // Without the lock: recovery reads what the last process left, which may be much.
        let _opening = OpeningGuard { core: self, id };
        let held = match self.open_file(id, disk, &is_recorded) {
            Err(Error::Unfinished { .. }) if !is_recorded.load(Ordering::Acquire) => {
                // As if the server that began to create it had died a moment before. Unless this removal is made
                // durable the next start finds it again.
                if clear_away(&self.set, disk, id, true) {
                    let stuck = std::io::Error::other("an unfinished data file cannot be removed");
                    return Err(Error::io("opening a data file", stuck, 0));
                }
                let mut known = self.lock();
                known.map.remove(&id);
                known.counts[disk] -= 1;
                return Err(Error::NotFound(id));
            }
            Err(Error::DiskFailed { disk, why }) => {
                // What it has written may be found or not from now on.
                if let Some(entry) = self.lock().map.get_mut(&id) {
                    entry.failed = Some(why.clone());
                }
                return Err(Error::DiskFailed { disk, why });
            }
            held => held?,
        };
        let mut known = self.lock();
        if let Some(entry) = known.map.get_mut(&id) {
            entry.open = Some(Arc::clone(&held));
        }
        self.close_idle(&mut known);
        Ok(held)
    }

    fn open_file(
        self: &Arc<Self>,
        id: SubfileId,
        disk: usize,
        is_recorded: &Arc<AtomicBool>,
    ) -> Result<Arc<HeldSubfile>> {
        let name = name_of(id);
        let file = DataFile::open(self.set.disk(disk), &name)?;
        if file.identity().id != id {
            return Err(Error::Format {
                name,
                why: format!("holds subfile {}", file.identity().id),
            });
        }
        let was_open = file.recovery().was_open;
        let held = Arc::new(HeldSubfile::new(self, file, disk, Arc::clone(is_recorded)));
        if was_open {
            held.cut_behind_length(&mut held.backing())?;
        }
        if let Some(legacy) = self.take_legacy(id) {
            held.inherit(legacy)?;
        }
        Ok(held)
    }
}
