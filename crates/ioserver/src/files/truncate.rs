//! Cutting the subfiles of a file at this server, and how far their bytes reach.
//!
//! A truncate closes the gate, takes back maps, cuts, and is recorded with its epoch before the gate opens; one that
//! was applied before does nothing. Serves [`ApplyTruncate`] and `AskEnd`.

use std::sync::Arc;

use wire::message::cluster::{ApplyTruncate, EndIs};
use wire::{FileId, Status};

use super::{FileEntry, Files, LocalState};
use crate::refused::Refused;

impl Files {
    /// Cuts the subfiles of a file here, unless it was done before.
    pub(super) fn cut(
        &self,
        entry: &Arc<FileEntry>,
        known: &LocalState,
        epoch: u64,
        to: u64,
    ) -> Result<(), Refused> {
        entry.truncate(epoch, to, &self.hurry(), || {
            let keep = |id: store::SubfileId| {
                let own = known.own_at(id.generation, id.index);
                own.map_or(u64::MAX, |own| own.bytes.rank(to))
            };
            self.take_back(entry.id(), keep)?;
            for own in &known.own {
                let Some(subfile) = known.find(own, &self.storage.stored)? else {
                    continue;
                };
                let len = own.bytes.rank(to);
                if subfile.len() > len || entry.was_stored_directly() {
                    let cut = subfile.truncate(len);
                    let cut = cut.and_then(|()| match self.storage.stored.is_durable() {
                        true => subfile.sync(),
                        false => Ok(()),
                    });
                    match cut {
                        // Removed meanwhile: there is nothing left to cut.
                        Err(store::Error::NotFound(_)) => {}
                        cut => cut?,
                    }
                }
            }
            let put = self.applied.put(entry.id(), epoch);
            put.map_err(|e| {
                Refused::new(
                    Status::Io,
                    format!("recording the truncate of {}: {e}", entry.id()),
                )
            })
        })
    }

    /// Serves [`ApplyTruncate`].
    pub(crate) fn apply_truncate(&self, request: &ApplyTruncate) -> Result<(), Refused> {
        let entry = self.entry(request.file);
        let mut known = self.known(&entry)?;
        // What is cut off of a file that moves need not move any more.
        if known.layout().pieces.len() > 1 {
            known = self.refresh_now(&entry)?;
        }
        self.cut(&entry, &known, request.epoch, request.to)
    }

    /// How far the bytes of a file reach here, in one truncate epoch.
    pub(crate) fn ask_end(&self, file: FileId) -> Result<EndIs, Refused> {
        let entry = self.entry(file);
        let known = self.known(&entry)?;
        end_in_one_epoch(
            || entry.epoch(),
            || {
                let grows = self.direct.fold_for_owner(&entry);
                Ok((self.end_now(&known)?, grows))
            },
        )
    }

    /// How far the bytes of a file reach here at this moment.
    fn end_now(&self, known: &LocalState) -> Result<u64, Refused> {
        let mut end = 0;
        for own in &known.own {
            if known.check_place(own, &self.identity).is_err() {
                continue;
            }
            let len = known
                .find(own, &self.storage.stored)?
                .map_or(0, |s| s.len());
            if let Some(last) = len.checked_sub(1).and_then(|k| own.bytes.select(k)) {
                end = end.max(last + 1);
            }
        }
        Ok(end)
    }
}

/// Looks how far bytes reach, again while a truncate is applied meanwhile. An end from before it that is told with the
/// epoch after it would bring the size back that was cut off; one from after it that is told with the epoch before it
/// would not be counted. While a truncate is being applied its epoch has not begun: the owner caps what it hears.
fn end_in_one_epoch(
    epoch: impl Fn() -> u64,
    mut end: impl FnMut() -> Result<(u64, bool), Refused>,
) -> Result<EndIs, Refused> {
    for _ in 0..8 {
        let before = epoch();
        let (end, grows) = end()?;
        if epoch() == before {
            return Ok(EndIs {
                epoch: before,
                end,
                grows,
            });
        }
    }
    Err(Refused::new(
        Status::Busy,
        "the file is truncated again and again; repeat later",
    ))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A truncate that is applied between two reads, whichever comes first.
    #[test]
    fn end_is_told_with_the_epoch_it_was_read_in() {
        let epoch = Cell::new(2);
        let mut looks = 0;
        // The bytes reach to 500 when they are looked at; then everything behind 10 is cut, and one grows to 25.
        let found = end_in_one_epoch(
            || epoch.get(),
            || {
                looks += 1;
                let end = if epoch.get() == 2 { 500 } else { 25 };
                epoch.set(3);
                Ok((end, false))
            },
        );
        let found = found.unwrap();
        assert_eq!((found.epoch, found.end, looks), (3, 25, 2));
        let never = end_in_one_epoch(
            || epoch.get(),
            || {
                epoch.set(epoch.get() + 1);
                Ok((500, false))
            },
        );
        assert_eq!(never.unwrap_err().status, Status::Busy);
    }
}
