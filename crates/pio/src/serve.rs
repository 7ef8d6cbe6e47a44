//! One process's part of every call, done in a thread beside its program, or by the calling program itself.
//!
//! Nothing here waits for another process, except for changes of pages that are already on their way here.

use std::collections::BTreeMap;

use client::{Client, File, Hints, OpenOptions};
use dsm::{HomeRun, PAGE_BYTES, Pages, Post};
use layout::{BlockMap, FileOffset, OwnerRuns, View};
use parking_lot::Mutex;

use crate::call::{Answer, PageRun, Question, Save};
use crate::error::{Error, Result};

const BLOCK: u64 = PAGE_BYTES as u64;
/// Pages that are read or written at a time.
const PAGES_AT_A_TIME: u64 = 256;

/// A file as every process has it.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) path: String,
    /// The local handle of a file that is read.
    pub(crate) file: Option<File>,
    pub(crate) bytes: u64,
    /// Whether it was written through this number.
    pub(crate) is_written: bool,
    /// Where in memory it was read to: the first page and bytes.
    pub(crate) region: Option<(u32, u64)>,
}

/// What a process needs for its part.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) pages: Pages,
    pub(crate) client: Client,
    /// Open files by their number, the same at all processes.
    pub(crate) table: Mutex<BTreeMap<u32, OpenFile>>,
}

/// Opening for the whole pages of a process: what it does is no access of the program.
pub(crate) fn quietly(options: OpenOptions) -> client::Result<OpenOptions> {
    Ok(options.hints(Hints::new().with("profile", "off")?))
}

/// The pages of one process among those of a file as a view of it, and their numbers.
fn portion_of(homes: &[HomeRun], me: usize) -> Result<Option<(View, Vec<u32>)>> {
    let mut pages = Vec::new();
    let mut runs = Vec::new();
    let mut at = 0;
    for (count, home) in homes {
        let is_mine = usize::from(*home) == me;
        runs.push((u64::from(is_mine), u64::from(*count)));
        if is_mine {
            pages.extend(at..at + count);
        }
        at += count;
    }
    if pages.is_empty() {
        return Ok(None);
    }
    let wrong = |error: layout::LayoutError| Error::argument("homes", error.to_string());
    let owners = OwnerRuns::from_runs(&runs).map_err(wrong)?;
    let map = BlockMap::new(BLOCK, owners, 2).map_err(wrong)?;
    let set = map.element(1).map_err(wrong)?;
    let view = View::new(FileOffset(0), map.period(), set).map_err(wrong)?;
    Ok(Some((view, pages)))
}

impl Desk {
    /// Answers what others ask, until the desk is closed.
    pub(crate) fn serve(&self) {
        while let Some(post) = self.pages.next_question() {
            let answer = match Question::load(post.bytes()) {
                Some(question) => self.answer(&post, &question),
                None => Answer::Failed {
                    errno: 22,
                    text: "the question is none; all processes need the same version".to_owned(),
                },
            };
            self.pages.answer(post.from(), answer.save());
        }
    }

    /// Does this process's part.
    pub(crate) fn answer(&self, post: &Post, question: &Question) -> Answer {
        let outcome = match question {
            Question::Open { pfd, path, reads } => match reads {
                true => self.open_to_read(*pfd, path),
                false => Ok(self.note_open(*pfd, path, None, 0)),
            },
            Question::Close { pfd } => self.close(*pfd),
            Question::Fill {
                pfd,
                first,
                bytes,
                homes,
            } => self.fill(post, *pfd, *first, *bytes, homes),
            Question::Save(save) => self.save(post, save),
            Question::Accesses { first, count } => Ok(self.accesses(*first, *count)),
            Question::Nearest => Ok(Answer::Open {
                size: 0,
                server: self.nearest(),
            }),
        };
        outcome.unwrap_or_else(|error| Answer::Failed {
            errno: error.errno() as u32,
            text: error.to_string(),
        })
    }

    fn open_to_read(&self, pfd: u32, path: &str) -> Result<Answer> {
        let options = quietly(OpenOptions::new().read())?;
        let file = self.client.open(path, &options)?;
        let bytes = file.size()?;
        Ok(self.note_open(pfd, path, Some(file), bytes))
    }

    fn note_open(&self, pfd: u32, path: &str, file: Option<File>, bytes: u64) -> Answer {
        let open = OpenFile {
            path: path.to_owned(),
            file,
            bytes,
            is_written: false,
            region: None,
        };
        self.table.lock().insert(pfd, open);
        Answer::Open {
            size: bytes,
            server: self.nearest(),
        }
    }

    /// One more than the nearest server; 0 if none is.
    fn nearest(&self) -> u64 {
        self.client.buddy().map_or(0, |buddy| buddy.server.0 + 1)
    }

    fn close(&self, pfd: u32) -> Result<Answer> {
        let open = self.table.lock().remove(&pfd).ok_or(Error::NotOpen(pfd))?;
        if let Some(file) = open.file {
            file.close()?;
        }
        Ok(Answer::Done {
            pages: 0,
            is_writing: false,
        })
    }

    /// Takes the pages from the program, and reads those that are at home here.
    fn fill(
        &self,
        post: &Post,
        pfd: u32,
        first: u32,
        bytes: u64,
        homes: &[HomeRun],
    ) -> Result<Answer> {
        let mut table = self.table.lock();
        let open = table.get_mut(&pfd).ok_or(Error::NotOpen(pfd))?;
        let file = open.file.as_ref().ok_or_else(|| {
            Error::argument("file", "it was opened for writing; open it for reading")
        })?;
        self.pages.begin_fill(post, first, homes)?;
        open.region = Some((first, bytes));
        let read = self.read_portion(file, first, bytes, homes);
        // Whatever came of it: who waits for these pages is not to wait for ever.
        let count = homes.iter().map(|(count, _)| count).sum();
        self.pages.end_fill(post, first, count);
        Ok(Answer::Done {
            pages: read?,
            is_writing: false,
        })
    }

    fn read_portion(&self, file: &File, first: u32, bytes: u64, homes: &[HomeRun]) -> Result<u32> {
        let Some((view, pages)) = portion_of(homes, self.pages.rank())? else {
            return Ok(0);
        };
        file.set_view(&view)?;
        let len = view.len_within(bytes);
        let mut buffer = Vec::new();
        let mut at = 0;
        for part in pages.chunks(PAGES_AT_A_TIME as usize) {
            let wanted = (len - at).min(part.len() as u64 * BLOCK) as usize;
            // Behind the end of the file a page is zero.
            buffer.clear();
            buffer.resize(part.len() * PAGE_BYTES, 0);
            let got = file.read_at(at, &mut buffer[..wanted])?;
            if got < wanted {
                return Err(Error::argument(
                    "file",
                    format!(
                        "it has become shorter since it was opened: {got} of {wanted} bytes of a part are there"
                    ),
                ));
            }
            for (page, contents) in part.iter().zip(buffer.chunks(PAGE_BYTES)) {
                self.pages.store(first + page, contents);
            }
            at += wanted as u64;
        }
        Ok(pages.len() as u32)
    }

    /// Waits for changes that are under way, and writes the pages that are at home here.
    fn save(&self, post: &Post, save: &Save) -> Result<Answer> {
        let (first, bytes) = (save.first, save.bytes);
        let count = bytes.div_ceil(BLOCK) as u32;
        let is_writing = self.pages.settle(post, first, count)?;
        let homes = self.pages.homes(first, count);
        let Some((view, pages)) = portion_of(&homes, self.pages.rank())? else {
            return Ok(Answer::Done {
                pages: 0,
                is_writing,
            });
        };
        let file = self
            .client
            .open(&save.path, &quietly(OpenOptions::new().write())?)?;
        file.set_view(&view)?;
        let len = view.len_within(bytes);
        let mut at = 0;
        let mut buffer = Vec::new();
        for part in pages.chunks(PAGES_AT_A_TIME as usize) {
            buffer.clear();
            for page in part {
                buffer.extend(self.pages.load(first + page));
            }
            buffer.truncate((len - at).min(buffer.len() as u64) as usize);
            let mut done = 0;
            while done < buffer.len() {
                done += file.write_at(at + done as u64, &buffer[done..])?;
            }
            at += buffer.len() as u64;
        }
        if save.is_synced {
            file.sync()?;
        }
        file.close()?;
        Ok(Answer::Done {
            pages: pages.len() as u32,
            is_writing,
        })
    }

    fn accesses(&self, first: u32, count: u32) -> Answer {
        let all = self.pages.accesses(first, count);
        let runs = |is_there: fn(&(u64, u64)) -> bool| {
            let mut runs: Vec<PageRun> = Vec::new();
            for (page, bits) in (0..).zip(&all) {
                match runs.last_mut() {
                    _ if !is_there(bits) => {}
                    Some((start, len)) if *start + *len == page => *len += 1,
                    _ => runs.push((page, 1)),
                }
            }
            runs
        };
        Answer::Accesses {
            read: runs(|bits| bits.0 != 0),
            written: runs(|bits| bits.1 != 0),
        }
    }
}
