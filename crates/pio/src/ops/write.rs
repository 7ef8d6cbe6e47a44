//! Writing a whole file from shared memory: every page is written by its home, once, into a file that then takes the place of the one before.
//!
//! Until the last step the file is as before.

use client::OpenOptions;
use dsm::{Element, Epoch, PAGE_BYTES, SharedArray};
use layout::{BlockMap, Layout, LayoutForm, OwnerRuns};

use super::{Pfd, Pio};
use crate::call::{Answer, Question, Save};
use crate::error::{Error, Result};
use crate::serve::quietly;

/// A layout with more runs of blocks is none that a service is asked to keep; then the service chooses one.
const MOST_RUNS: usize = 1 << 14;

impl Pio<'_> {
    /// Writes the first `bytes` bytes of an array as the whole contents of a file. How many were written.
    ///
    /// What this process knows is written: its own changes, and those of others before the last point of synchronisation with them.
    ///
    /// # Errors
    ///
    /// If the array is shorter, or a process cannot write its part. Then the file is as before.
    pub fn write<T: Element>(
        &self,
        file: Pfd,
        array: SharedArray<T>,
        bytes: u64,
        epoch: &mut Epoch,
    ) -> Result<u64> {
        self.alone(epoch, |nearest, _| {
            let path = {
                let table = self.desk.table.lock();
                let open = table.get(&file.0).ok_or(Error::NotOpen(file.0))?;
                if open.file.is_some() {
                    let text = "it was opened for reading; open it to be created or replaced";
                    return Err(Error::argument("file", text));
                }
                if open.is_written && self.options.is_strict {
                    let text = "it was written; in strict mode files do not change";
                    return Err(Error::argument("file", text));
                }
                open.path.clone()
            };
            if bytes > array.bytes() as u64 {
                let text = format!("has {} bytes, {bytes} are to be written", array.bytes());
                return Err(Error::argument("array", text));
            }
            let (first, blocks) = (array.first_page(), bytes.div_ceil(PAGE_BYTES as u64));
            let new = format!("{path}.pio-{}-{}", self.desk.client.id().0, file.0);
            self.create(&new, first, blocks as u32, bytes, nearest)?;
            let post = self.desk.pages.now();
            let question = Question::Save(Save {
                path: new.clone(),
                first,
                bytes,
                is_synced: self.options.is_synced,
            });
            let written = self.ask_all(&post, &question).and_then(|answers| {
                let written = Pio::pages_done(&answers);
                if written != blocks {
                    let text = format!(
                        "{written} of {blocks} blocks were written; let no home move meanwhile"
                    );
                    return Err(Error::argument("array", text));
                }
                let is_writing = |answer: &Answer| matches!(answer, Answer::Done { is_writing: true, .. });
                if let Some(process) = answers.iter().position(is_writing)
                    && self.options.is_strict
                {
                    let text = format!(
                        "process {process} has written to it and not come to a barrier; in strict mode all do before"
                    );
                    return Err(Error::argument("array", text));
                }
                // From here on the file is the new one.
                self.desk.client.rename(&new, &path)?;
                if let Some(open) = self.desk.table.lock().get_mut(&file.0) {
                    open.is_written = true;
                }
                Ok(bytes)
            });
            if written.is_err() {
                // What failed tells more than that its remains are still there.
                let _ = self.desk.client.unlink(&new);
            }
            written
        })
    }

    /// The file that is written, in whose subfile of each process are the blocks that are at home there.
    fn create(
        &self,
        path: &str,
        first: u32,
        blocks: u32,
        bytes: u64,
        nearest: &[Option<u64>],
    ) -> Result<()> {
        let homes = self.desk.pages.homes(first, blocks);
        let mut options = OpenOptions::new().write().exclusive().expected_size(bytes);
        if let Some(layout) = layout_of(&homes, self.memory.size(), nearest) {
            options = options.layout(layout);
        }
        let options = quietly(options)?;
        let made = match self.desk.client.open(path, &options) {
            Err(error) if error.status() == client::Status::Exists => {
                // Of a run that died while it wrote.
                self.desk.client.unlink(path)?;
                self.desk.client.open(path, &options)
            }
            other => other,
        };
        made?.close()?;
        Ok(())
    }
}

/// The block map of homes, with the servers that are nearest to them where all are known.
pub(super) fn layout_of(
    homes: &[dsm::HomeRun],
    processes: usize,
    nearest: &[Option<u64>],
) -> Option<String> {
    if homes.is_empty() || homes.len() > MOST_RUNS {
        return None;
    }
    let runs: Vec<(u64, u64)> = homes
        .iter()
        .map(|(count, home)| (u64::from(*home), u64::from(*count)))
        .collect();
    let owners = OwnerRuns::from_runs(&runs).ok()?;
    let map = BlockMap::new(PAGE_BYTES as u64, owners, processes as u64).ok()?;
    let layout: Layout = LayoutForm::Blocks(map).into();
    let servers: Option<Vec<u64>> = nearest.iter().copied().collect();
    let placed = match servers {
        Some(servers) if servers.len() == processes => layout.with_places(servers).ok()?,
        _ => layout,
    };
    Some(placed.to_string())
}
