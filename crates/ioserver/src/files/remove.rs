//! Removing bytes that no layout of a file names any more, as the metadata manager asks for in its answer to a report.
//!
//! Invariant: nothing is removed that the file still has. What is known here is refreshed first, and what is being
//! fetched for the file is removed by a later report.

use wire::message::cluster::Removal;
use wire::message::file::{Discard, SubfileName};
use wire::{FileId, Status};

use super::Files;
use crate::refused::Refused;
use crate::statistics::add;

impl Files {
    /// Removes bytes; those that were removed. `gone` hears of files that
    /// are no more.
    pub(crate) fn remove(&self, removals: Vec<Removal>, gone: impl Fn(FileId)) -> Vec<Removal> {
        let mut done = Vec::with_capacity(removals.len());
        for removal in removals {
            let (file, generation) = (removal.file, removal.generation);
            let entry = self.get(file);
            // What is fetched for the file right now is removed afterwards.
            let _still = match &entry {
                Some(entry) => match entry.moving.try_lock() {
                    Some(moving) => Some(moving),
                    None => continue,
                },
                None => None,
            };
            if let Some(entry) = &entry
                && entry
                    .known()
                    .is_none_or(|k| k.names(generation, &removal.subfiles))
            {
                entry.forget();
                match self.refresh_now(entry) {
                    Err(refused) if refused.status == Status::NotFound => {
                        self.applied.forget(file);
                        gone(file);
                    }
                    // It is not to be removed as long as the file has it.
                    Ok(known) if known.names(generation, &removal.subfiles) => continue,
                    _ => {}
                }
            }
            let removed = self.remove_subfiles(file, generation, &removal.subfiles);
            drop(_still);
            drop(entry);
            if removed.is_ok() {
                add(&self.storage.statistics.removals, 1);
                done.push(removal);
                self.entries.drop_unused(file);
            }
        }
        done
    }

    /// Takes a subfile away that no layout of a file names: removes it, or puts its data file aside and says where.
    pub(crate) fn discard(&self, request: &Discard) -> Result<String, Refused> {
        let SubfileName {
            file,
            generation,
            index,
        } = request.subfile;
        let entry = self.entry(file);
        let Some(moving) = entry.moving.try_lock() else {
            let text = format!("{file} is being moved; try again when that has ended");
            return Err(Refused::new(Status::Busy, text));
        };
        entry.forget();
        match self.refresh_now(&entry) {
            Err(refused) if refused.status == Status::NotFound => {}
            Err(refused) => return Err(refused),
            Ok(known) if known.names(generation, &[index]) => {
                let text = format!("subfile {index} of {file} belongs to a file");
                return Err(Refused::new(Status::InvalidArgument, text));
            }
            Ok(_) => {}
        }
        drop(moving);
        drop(entry);
        let place = match (request.is_removed, self.storage.stored.on_disks()) {
            (true, _) => {
                self.remove_subfiles(file, generation, &[index])?;
                String::new()
            }
            (false, Some(disks)) => {
                let id = store::SubfileId {
                    file: file.0,
                    generation,
                    index,
                };
                disks.put_aside(id)?
            }
            (false, None) => {
                let text = "bytes in memory cannot be put aside; copy what is worth it, and have them removed (--remove)";
                return Err(Refused::new(Status::Unsupported, text));
            }
        };
        self.entries.drop_unused(file);
        Ok(place)
    }

    /// Removes the subfiles of a generation. Those of one that clients may have mapped go when no client
    /// can get a map of them.
    fn remove_subfiles(
        &self,
        file: FileId,
        generation: u64,
        subfiles: &[u32],
    ) -> Result<(), Refused> {
        let entry = self.get(file).filter(|_| self.direct.is_in_use());
        match entry {
            None => self.storage.stored.remove(file, generation, subfiles)?,
            Some(entry) => {
                let is_gone = |id: store::SubfileId| {
                    let is_meant = subfiles.is_empty() || subfiles.contains(&id.index);
                    id.generation == generation && is_meant
                };
                let keep = |id| if is_gone(id) { 0 } else { u64::MAX };
                entry.alone(&self.hurry(), || {
                    self.take_back(file, keep)?;
                    Ok(self.storage.stored.remove(file, generation, subfiles)?)
                })?;
                self.direct.forget(file);
            }
        }
        Ok(())
    }
}
