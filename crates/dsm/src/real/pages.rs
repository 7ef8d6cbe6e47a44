//! The pages of one process, for a layer above that brings them from files and takes them there.
//!
//! What it says to itself at other processes goes as post, in the order of all messages and with what happened before.
//! A question is for who serves (any thread), an answer for who asked.

use std::sync::Arc;

use super::memory::{Core, Error, SharedMemory};
use super::region::PAGE_BYTES;
use crate::machine::Protocol;
use crate::machine::files::{HomeRun, Letter};
use crate::page::PageMemory;

type Result<T> = std::result::Result<T, Error>;

/// Something that a process said to the layer above here.
#[derive(Clone, Debug)]
pub struct Post {
    posted: Letter,
}

impl Post {
    /// Who said it.
    pub fn from(&self) -> usize {
        usize::from(self.posted.from)
    }

    /// What.
    pub fn bytes(&self) -> &[u8] {
        &self.posted.bytes
    }
}

/// The pages of one process, for a layer above. Clones are the same pages.
#[derive(Clone, Debug)]
pub struct Pages {
    core: Arc<Core>,
}

impl SharedMemory {
    /// The pages of this process. All clones are to be gone before the memory is left.
    pub fn pages(&self) -> Pages {
        Pages {
            core: self.core.clone(),
        }
    }

    /// How copies are kept alike.
    pub fn protocol(&self) -> Protocol {
        self.core.state.lock().machine.protocol()
    }
}

impl Pages {
    /// The number of this process.
    pub fn rank(&self) -> usize {
        self.core.team.rank()
    }

    /// How many processes there are.
    pub fn size(&self) -> usize {
        self.core.team.size()
    }

    /// Asks a process for something. What this one wrote, and what it knows, goes before.
    pub fn ask(&self, to: usize, bytes: Vec<u8>) {
        self.core
            .enter(|state| state.machine.post_question(to as u16, bytes));
    }

    /// Answers a process.
    pub fn answer(&self, to: usize, bytes: Vec<u8>) {
        self.core
            .enter(|state| state.machine.post_answer(to as u16, bytes));
    }

    /// Waits for the next question; nothing once the desk is closed or the memory broken.
    pub fn next_question(&self) -> Option<Post> {
        let mut state = self.core.state.lock();
        loop {
            if let Some(posted) = state.questions.pop_front() {
                return Some(Post { posted });
            }
            if state.is_desk_closed || state.machine.trouble().is_some() {
                return None;
            }
            self.core.changed.wait(&mut state);
        }
    }

    /// Waits for the next answer.
    ///
    /// # Errors
    ///
    /// If the memory is broken.
    pub fn next_answer(&self) -> Result<Post> {
        let mut state = self.core.state.lock();
        loop {
            if let Some(posted) = state.answers.pop_front() {
                return Ok(Post { posted });
            }
            if let Some(trouble) = state.machine.trouble() {
                return Err(self.core.explain(&state, trouble));
            }
            self.core.changed.wait(&mut state);
        }
    }

    /// Takes questions, until the desk is closed.
    pub fn open_desk(&self) {
        self.core.enter(|state| state.is_desk_closed = false);
    }

    /// Takes no more questions: those that come get an empty answer.
    pub fn close_desk(&self) {
        self.core.enter(|state| {
            state.is_desk_closed = true;
            for posted in std::mem::take(&mut state.questions) {
                state.machine.post_answer(posted.from, Vec::new());
            }
        });
        self.core.changed.notify_all();
    }

    /// Notes that this process replaces pages, as if it wrote them all now. What is asked of others afterwards goes with it; the post that is
    /// given out is this process's own.
    pub fn announce_fill(&self, first: u32, count: u32) -> Post {
        self.core.enter(|state| {
            let time = state.machine.announce_fill(first, count);
            Post {
                posted: Letter {
                    from: self.rank() as u16,
                    is_question: true,
                    time,
                    records: Vec::new(),
                    bytes: Vec::new(),
                },
            }
        })
    }

    /// Takes pages from the program here and gives them homes, for the one that posted that it replaces them.
    ///
    /// # Errors
    ///
    /// If the program here writes them without having come to a point of synchronisation with that process, or the memory is broken.
    pub fn begin_fill(&self, post: &Post, first: u32, homes: &[HomeRun]) -> Result<()> {
        self.core.enter(|state| {
            let begun = state.machine.begin_fill(&post.posted, first, homes);
            begun.map_err(|trouble| self.core.explain(state, trouble))
        })
    }

    /// Stores contents of pages from the first byte of one on. The program does not see them before [`end_fill`](Pages::end_fill).
    pub fn store(&self, first: u32, bytes: &[u8]) {
        for (page, part) in (first..).zip(bytes.chunks(PAGE_BYTES)) {
            self.core
                .enter(|state| state.machine.memory.store(page, 0, part));
        }
    }

    /// Contents of those of the pages that are at home here have been stored.
    pub fn end_fill(&self, post: &Post, first: u32, count: u32) {
        self.core
            .enter(|state| state.machine.end_fill(&post.posted, first, count));
    }

    /// Takes over what the one that posted knew, and waits until those of the pages that are at home here have all of it. Whether the program
    /// here is writing any of them.
    ///
    /// # Errors
    ///
    /// If the memory is broken.
    pub fn settle(&self, post: &Post, first: u32, count: u32) -> Result<bool> {
        self.core.complete(|state, ticket| {
            state.machine.take_notices(&post.posted);
            state.machine.settle(first, count, ticket);
            Ok(())
        })?;
        Ok(self
            .core
            .enter(|state| state.machine.is_writing(first, count)))
    }

    /// This process's own post about now: what it knows, after all that it has written.
    pub fn now(&self) -> Post {
        self.announce_fill(0, 0)
    }

    /// Where pages are at home, as runs.
    pub fn homes(&self, first: u32, count: u32) -> Vec<HomeRun> {
        let mut runs: Vec<HomeRun> = Vec::new();
        self.core.enter(|state| {
            for page in first..first + count {
                let home = state.machine.home_of(page);
                match runs.last_mut() {
                    Some((len, last)) if *last == home => *len += 1,
                    _ => runs.push((1, home)),
                }
            }
        });
        runs
    }

    /// The contents of a page as they are here.
    pub fn load(&self, page: u32) -> Vec<u8> {
        self.core.enter(|state| state.machine.memory.copy_out(page))
    }

    /// In which phases the program here has read and written each page: one bit per phase.
    pub fn accesses(&self, first: u32, count: u32) -> Vec<(u64, u64)> {
        self.core.enter(|state| {
            (first..first + count)
                .map(|page| state.machine.accesses_of(page))
                .collect()
        })
    }

    /// Forgets that the program here has accessed a page.
    pub fn forget_accesses(&self, page: u32) {
        self.core.enter(|state| state.machine.forget_accesses(page));
    }
}
