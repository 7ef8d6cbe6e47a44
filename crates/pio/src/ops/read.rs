//! Reading a whole file into shared memory: every page is read by the process that is its home from then on.
//!
//! Where blocks go is decided here; who has them reads them (`serve`).

use advise::profile::template::Template;
use client::OpenOptions;
use dsm::{Element, Epoch, PAGE_BYTES, SharedArray};

use super::{Pfd, Pio};
use crate::accesses::Accesses;
use crate::call::Question;
use crate::error::{Error, Result};
use crate::homes;
use crate::serve::quietly;

impl Pio<'_> {
    /// Reads a file, or its first `bytes` bytes if it is longer, to the beginning of an array. How many were read. This process sees them at
    /// once, others after the next point of synchronisation with it.
    ///
    /// # Errors
    ///
    /// If the array is too short, or a process cannot read its part. Then the array has any values.
    pub fn read<T: Element>(
        &self,
        file: Pfd,
        array: SharedArray<T>,
        bytes: u64,
        epoch: &mut Epoch,
    ) -> Result<u64> {
        self.alone(epoch, |nearest, epoch| {
            let (path, size) = {
                let table = self.desk.table.lock();
                let open = table.get(&file.0).ok_or(Error::NotOpen(file.0))?;
                if open.file.is_none() {
                    let text = "it was opened for writing; open it for reading";
                    return Err(Error::argument("file", text));
                }
                (open.path.clone(), open.bytes)
            };
            if self.options.is_strict && bytes < size {
                let text = format!("{bytes} of {size}; in strict mode a file is read as a whole");
                return Err(Error::argument("bytes", text));
            }
            let bytes = bytes.min(size);
            if bytes == 0 {
                return Ok(0);
            }
            if bytes > array.bytes() as u64 {
                let text = format!("has {} bytes, {bytes} are to be read", array.bytes());
                return Err(Error::argument("array", text));
            }
            // Where the array goes on behind the file in a page, that page is not replaced but stored into.
            let whole = match bytes < array.bytes() as u64 {
                true => bytes / PAGE_BYTES as u64,
                false => bytes.div_ceil(PAGE_BYTES as u64),
            };
            let owners = self.owners(&path, size, nearest)?;
            let first = array.first_page();
            let pages = u32::try_from(whole).expect("an array of the memory");
            let post = self.desk.pages.announce_fill(first, pages);
            let question = Question::Fill {
                pfd: file.0,
                first,
                bytes,
                homes: homes::runs_of(&owners[..whole as usize]),
            };
            let answers = self.ask_all(&post, &question)?;
            let read = Pio::pages_done(&answers);
            if read != whole {
                let text = format!(
                    "{read} of {whole} blocks were read; all processes need the same version"
                );
                return Err(Error::argument("file", text));
            }
            let tail = bytes - whole.min(bytes / PAGE_BYTES as u64) * PAGE_BYTES as u64;
            if whole * (PAGE_BYTES as u64) < bytes {
                let mut contents = vec![0; tail as usize];
                let options = quietly(OpenOptions::new().read())?;
                let reader = self.desk.client.open(&path, &options)?;
                reader.read_at(bytes - tail, &mut contents)?;
                reader.close()?;
                let view = self.memory.view(epoch, array.as_bytes());
                view.copy_from((bytes - tail) as usize, &contents);
                self.desk.pages.forget_accesses(first + pages);
            }
            Ok(bytes)
        })
    }

    /// The process of each block of a file.
    fn owners(&self, path: &str, bytes: u64, nearest: &mut Vec<Option<u64>>) -> Result<Vec<usize>> {
        let size = self.memory.size();
        let blocks = bytes.div_ceil(PAGE_BYTES as u64);
        // Who may not see what is kept with a file reads it all the same.
        if self.options.follows_accesses
            && let Ok(Some(accesses)) = self.learned(path, bytes)
        {
            return Ok(self.options.planner.place(&accesses));
        }
        if nearest.len() != size {
            // Another process opened the file, and was told.
            let answers = self.ask_all(&self.desk.pages.now(), &Question::Nearest)?;
            *nearest = Pio::servers(&answers);
        }
        let layout = self.desk.client.layout(path)?;
        Ok(homes::of_layout(&layout.state, blocks, nearest))
    }

    /// What an earlier run of this application accessed, if that is kept with the file.
    pub(super) fn learned(&self, path: &str, bytes: u64) -> Result<Option<Accesses>> {
        let profile = self.desk.client.profile(path)?.profile;
        if profile.is_empty() {
            return Ok(None);
        }
        let array = self.desk.client.layout(path)?.array;
        let template = Template {
            array: array.clone().unwrap_or_default(),
            file_bytes: bytes,
            profile,
        };
        let array = array.and_then(|text| text.parse().ok());
        Ok(Accesses::of_template(
            &template,
            &self.options.application,
            array.as_ref(),
            bytes,
            self.memory.size(),
        ))
    }
}
