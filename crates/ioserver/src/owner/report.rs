//! What the catalogue is told about sizes: at close and sync, every second, and at the end.
//!
//! A size is dirty from the first write that was counted until the catalogue has it; a report that
//! fails leaves it dirty. One report of a file runs at a time, and those who come meanwhile find
//! their writes covered by it or report once more.

use control::sizes::Event;
use wire::Status;
use wire::message::cluster::ReportSize;

use super::file::{OwnedFile, Phase};
use super::{Asker, Owner, Refused};

impl Owner {
    /// Makes the size durable, for [`Release`](wire::message::file::Release) and for
    /// [`Sync`](wire::message::file::Sync) at the owner.
    pub fn release(&self, asker: &Asker<'_>) -> Result<(), Refused> {
        let file = self.file(asker.file)?;
        self.settle_doubt(&file)?;
        self.gather(&file, asker)?;
        let state = file.enter(self, asker)?;
        let (state, size) = self.known(&file, state, asker);
        drop(state);
        size?;
        self.report(&file)
    }

    /// Reports all sizes that have changed, and asks again where something was not done. Called about
    /// every second and at shutdown; returns how many files are still dirty.
    pub fn flush_dirty_sizes(&self) -> usize {
        let mut dirty = 0;
        for file in self.files() {
            if !matches!(file.lock().phase, Phase::Ready) {
                continue;
            }
            // Whatever fails is tried again the next time.
            let _ = self.settle_doubt(&file);
            self.do_again(&file);
            self.review_handing_over(&file);
            let _ = self.gather_once(&file);
            dirty += usize::from(self.report(&file).is_err());
        }
        dirty
    }

    fn report(&self, file: &OwnedFile) -> Result<(), Refused> {
        let mut state = file.lock();
        while state.is_reporting {
            file.changed.wait(&mut state);
        }
        let (written, modified) = (state.written, state.modified);
        let Some((epoch, size)) = state.sizes.report().filter(|_| written != state.reported) else {
            return Ok(());
        };
        state.is_reporting = true;
        drop(state);
        let answer = self.cluster.report_size(&ReportSize {
            file: file.id,
            epoch,
            size,
            modified,
        });
        self.heed(file.id, &answer);
        let mut work = Vec::new();
        let mut state = file.lock();
        state.is_reporting = false;
        file.changed.notify_all();
        let outcome = match answer {
            Ok(durable) => {
                state.reported = written;
                state.size_event(Event::Overtaken(durable), &mut work);
                Ok(())
            }
            // The manager does not need the size of a file that is no longer.
            Err(Refused {
                status: Status::NotFound,
                ..
            }) => {
                state.reported = written;
                Ok(())
            }
            Err(refused) => Err(refused),
        };
        drop(state);
        self.drive(file, work);
        outcome
    }
}
