//! Pages whose contents come from files, and pages whose contents go there (home-based).
//!
//! Replacing pages is an interval of the process that asks for it: its record names all of them, and their homes are where
//! their contents are read. No content travels. Sections 6.3 and 6.4 of the specification of source 003.
//!
//! ```text
//!  asking process            every process (itself included)        homes
//!  announce_fill  -- post --> begin_fill: taken from the program,
//!                             homes change                     ---> contents come, end_fill: all versions are there
//! ```
//!
//! Invariants
//! - A change that happened before pages were replaced never comes after: at its home a replaced page has all versions that the
//!   asking process knew, so a flush that is late is dropped.
//! - A process that changed such a page unknown to the one that replaces it is told, and so are all others: there is no order in which
//!   that could be done.
//!
//! Left to others: what posts say, where contents are.

use super::{Machine, Output, Trouble};
use crate::message::{Message, Record};
use crate::page::{PageMemory, State};
use crate::time::VectorTime;

/// What another process posted, with what happened there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Who.
    pub from: u16,
    /// Whether it wants an answer; else it is one.
    pub is_question: bool,
    /// What it knew.
    pub time: VectorTime,
    /// What of that may be new here.
    pub records: Vec<Record>,
    /// What it says.
    pub bytes: Vec<u8>,
}

/// Pages that follow each other and have one home: how many, and which.
pub type HomeRun = (u32, u16);

impl<M: PageMemory> Machine<M> {
    /// Asks the layer above at another process for something; what was written here goes before.
    pub fn post_question(&mut self, to: u16, bytes: Vec<u8>) {
        self.end_interval();
        let message = Message::Post {
            question: 1,
            epoch: self.barriers.epoch,
            base: self.floor.clone(),
            time: self.time.clone(),
            records: self.records_beyond(&self.floor),
            bytes: crate::codec::PageBytes(bytes),
        };
        self.send(to, message);
    }

    /// Answers the layer above at another process.
    pub fn post_answer(&mut self, to: u16, bytes: Vec<u8>) {
        let none = VectorTime::zero(usize::from(self.setting.processes));
        let message = Message::Post {
            question: 0,
            epoch: 0,
            base: none.clone(),
            time: none,
            records: Vec::new(),
            bytes: crate::codec::PageBytes(bytes),
        };
        self.send(to, message);
    }

    pub(super) fn take_post(&mut self, posted: Letter) {
        self.outputs.push(Output::Letter(posted));
    }

    /// Notes that this process replaces pages, after all that it has written.
    pub fn announce_fill(&mut self, first: u32, count: u32) -> VectorTime {
        self.end_interval();
        if count > 0 {
            let pages: Vec<u32> = (first..first + count).collect();
            self.close_interval(&pages);
            let index = self.time.of(self.me);
            for page in pages {
                let me = self.me;
                self.page_mut(page).need.raise(me, index);
                self.invalidate(page);
            }
        }
        self.time.clone()
    }

    /// Takes over what happened before a post.
    pub fn take_notices(&mut self, posted: &Letter) {
        self.incorporate(posted.records.clone());
    }

    /// Takes pages from the program, whose contents a process of that time replaces, and gives them their homes. What was noted of accesses to
    /// them begins anew.
    ///
    /// # Errors
    ///
    /// If the program here changed them and the process does not know of it.
    pub fn begin_fill(
        &mut self,
        posted: &Letter,
        first: u32,
        homes: &[HomeRun],
    ) -> Result<(), Trouble> {
        if let Some(trouble) = self.trouble {
            return Err(trouble);
        }
        let end = first + homes.iter().map(|(count, _)| count).sum::<u32>();
        let known = posted.time.of(self.me);
        let overlaps = |record: &Record| {
            let mut runs = record.runs.iter();
            runs.any(|(start, count)| *start < end && start + count > first)
        };
        let is_unknown = self.own_records_after(known).iter().any(overlaps);
        if is_unknown || self.dirty.range(first..end).next().is_some() {
            let trouble = Trouble::Unsynchronised { process: self.me };
            self.fail(trouble);
            return Err(trouble);
        }
        self.incorporate(posted.records.clone());
        let mut page = first;
        for (count, home) in homes {
            for _ in 0..*count {
                self.invalidate(page);
                let is_home = *home == self.me;
                let entry = self.page_mut(page);
                entry.home = *home;
                entry.was_read = 0;
                entry.was_written = 0;
                entry.fetches = 0;
                if is_home && entry.state == State::Empty {
                    entry.state = State::Invalid;
                }
                page += 1;
            }
        }
        // Requests for pages that are no longer at home here are sent back.
        self.serve_waiting();
        Ok(())
    }

    /// The contents of those of the pages that are at home here have come.
    pub fn end_fill(&mut self, posted: &Letter, first: u32, count: u32) {
        for page in first..first + count {
            if self.page(page).home != self.me {
                continue;
            }
            let entry = self.page_mut(page);
            for process in 0..posted.time.len() {
                entry.have.raise(process, posted.time.of(process));
            }
            if !entry.waiters.is_empty() && entry.state == State::Invalid {
                self.open_at_home(page);
            }
        }
        self.serve_waiting();
    }

    /// The ticket is ready when the pages among these that are at home here have all that is noticed.
    pub fn settle(&mut self, first: u32, count: u32, ticket: u64) {
        if self.refuses(ticket) {
            return;
        }
        self.settling.push((first, count, ticket));
        self.note_settled();
    }

    /// Lets those go on whose pages have all by now.
    pub(super) fn note_settled(&mut self) {
        let mut at = 0;
        while at < self.settling.len() {
            let (first, count, ticket) = self.settling[at];
            let lacks = |page: &u32| {
                let page = self.page(*page);
                page.home == self.me && !page.have.covers(&page.need)
            };
            if (first..first + count).any(|page| lacks(&page)) {
                at += 1;
            } else {
                self.settling.remove(at);
                self.ready(ticket);
            }
        }
    }

    /// Whether the program here has written any of these pages since its interval began.
    pub fn is_writing(&self, first: u32, count: u32) -> bool {
        self.dirty.range(first..first + count).next().is_some()
    }

    /// Forgets accesses to a page.
    pub fn forget_accesses(&mut self, page: u32) {
        let entry = self.page_mut(page);
        entry.was_read = 0;
        entry.was_written = 0;
    }
}
