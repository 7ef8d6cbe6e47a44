//! Learning: who accessed which block of a file that was read, kept with it for the next run, and the file laid out accordingly.
//!
//! What processes note of accesses is theirs (`dsm`); how it is written down is told by `accesses`.

use advise::profile::Profile;
use client::Relayout;
use dsm::{Access, Epoch, PAGE_BYTES};

use super::{Pfd, Pio};
use crate::accesses::Accesses;
use crate::call::{Answer, Question};
use crate::error::{Error, Result};
use crate::homes;

impl Pio<'_> {
    /// Which process's program has read and written each block of a file since it was read into memory. That the file was read is no access.
    ///
    /// # Errors
    ///
    /// If it is not open or was not read.
    pub fn accesses(&self, file: Pfd, epoch: &mut Epoch) -> Result<Accesses> {
        self.alone(epoch, |_, _| {
            let region = {
                let table = self.desk.table.lock();
                table.get(&file.0).ok_or(Error::NotOpen(file.0))?.region
            };
            let (first, bytes) = region.ok_or_else(|| {
                Error::argument("file", "it was not read, so nobody has accessed its blocks")
            })?;
            let question = Question::Accesses {
                first,
                count: bytes.div_ceil(PAGE_BYTES as u64) as u32,
            };
            let mut accesses = Accesses::none(self.memory.size(), bytes);
            let answers = self.ask_all(&self.desk.pages.now(), &question)?;
            for (process, answer) in answers.iter().enumerate() {
                if let Answer::Accesses { read, written } = answer {
                    accesses.note(process, read, Access::Read);
                    accesses.note(process, written, Access::Write);
                }
            }
            Ok(accesses)
        })
    }

    /// Keeps accesses with a file, in place of what was kept of this application: the next run that opens it places its blocks by them, and `pario profile`
    /// and `pario advise` see them.
    ///
    /// # Errors
    ///
    /// If the service refuses it.
    pub fn keep(&self, path: &str, accesses: &Accesses) -> Result<()> {
        let client = &self.desk.client;
        let mut profile = Profile::default();
        for (key, entry) in client.profile(path)?.profile.entries() {
            if key.application != self.options.application {
                profile.add(&key.application, key.rank, entry.clone());
            }
        }
        profile.merge(&accesses.profile(&self.options.application));
        client.replace_profile(path, &profile)?;
        Ok(())
    }

    /// Moves the blocks of a file to the servers that are nearest to the processes which have them by what is kept with it. Nothing if that is how it
    /// lies already, or nothing is kept.
    ///
    /// # Errors
    ///
    /// If the service refuses it.
    pub fn redistribute(&self, path: &str, epoch: &mut Epoch) -> Result<Option<Relayout>> {
        // To open it tells which servers are near.
        let file = self.open(path, super::OpenMode::Read, epoch)?;
        let moved = self.alone(epoch, |nearest, _| {
            let table = self.desk.table.lock();
            let bytes = table.get(&file.0).ok_or(Error::NotOpen(file.0))?.bytes;
            drop(table);
            let Some(accesses) = self.learned(path, bytes)? else {
                return Ok(None);
            };
            let place = self.options.planner.place(&accesses);
            let runs = homes::runs_of(&place);
            let layout = super::write::layout_of(&runs, self.memory.size(), nearest);
            let Some(layout) = layout else {
                return Ok(None);
            };
            if self.desk.client.layout(path)?.text == layout {
                return Ok(None);
            }
            Ok(Some(self.desk.client.relayout(path, &layout)?))
        });
        self.close(file, epoch)?;
        moved
    }
}
