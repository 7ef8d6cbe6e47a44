//! Intervals and their records: ending an interval, taking over those of others, and forgetting what all know.
//!
//! A record says which pages changed, never how. It is kept as long as a process may exist that does not know it: until a barrier, or,
//! in programs without barriers, until a poll of all times shows that all know it.

use std::sync::Arc;

use super::{Machine, Mutation, Protocol, SharedTime};
use crate::message::{Message, Record, runs_of};
use crate::page::{PageMemory, State};
use crate::time::VectorTime;

impl<M: PageMemory> Machine<M> {
    /// Ends the running interval, if it changed anything.
    pub(super) fn end_interval(&mut self) {
        match self.setting.protocol {
            Protocol::HomeBased => self.end_interval_at_home(),
            Protocol::Homeless => self.end_interval_homeless(),
            Protocol::Sequential => {}
        }
    }

    /// Counts an interval that changed these pages, in ascending order, and notes its record.
    pub(super) fn close_interval(&mut self, pages: &[u32]) -> SharedTime {
        let index = self.time.of(self.me) + 1;
        self.time.set(self.me, index);
        let time = Arc::new(self.time.clone());
        let record = Record {
            process: self.me,
            index,
            time: time.clone(),
            runs: runs_of(pages),
        };
        if self.setting.protocol == Protocol::Homeless {
            for page in pages {
                self.page_mut(*page).history().note(&record);
            }
        }
        self.log[usize::from(self.me)].push_back(record);
        self.statistics.records += 1;
        self.poll_when_long();
        time
    }

    /// Takes over records: their pages become invalid.
    pub(super) fn incorporate(&mut self, records: Vec<Record>) {
        let is_new = |time: &VectorTime, record: &Record| time.of(record.process) < record.index;
        let touches_dirty = |record: &Record| record.pages().any(|page| self.dirty.contains(&page));
        if records
            .iter()
            .any(|record| is_new(&self.time, record) && touches_dirty(record))
        {
            self.end_interval();
        }
        for record in records {
            if !is_new(&self.time, &record) {
                continue;
            }
            let process = record.process;
            assert_eq!(
                record.index,
                self.time.of(process) + 1,
                "records of a process come in order"
            );
            self.time.set(process, record.index);
            let skip = usize::from(self.setting.mutation == Mutation::DropNotice);
            for page in record.pages().skip(skip) {
                self.notice(page, &record);
            }
            self.log[usize::from(process)].push_back(record);
        }
        self.poll_when_long();
    }

    fn notice(&mut self, page: u32, record: &Record) {
        if self.setting.protocol == Protocol::Homeless {
            // Own changes become a patch of their own before they meet those of others.
            self.make_patch(page);
            self.page_mut(page).history().note(record);
        }
        let entry = self.page_mut(page);
        entry.need.raise(record.process, record.index);
        if !entry.have.covers(&entry.need) && entry.state != State::Fetching {
            self.invalidate(page);
        }
    }

    /// Known records that are not covered by a time, ascending for each process.
    pub(super) fn records_beyond(&self, time: &VectorTime) -> Vec<Record> {
        let beyond = |record: &&Record| time.of(record.process) < record.index;
        self.log.iter().flatten().filter(beyond).cloned().collect()
    }

    /// Own records later than an index.
    pub(super) fn own_records_after(&self, index: u32) -> Vec<Record> {
        let own = self.log[usize::from(self.me)].iter();
        own.filter(|record| record.index > index).cloned().collect()
    }

    /// Forgets records that all processes know.
    pub(super) fn drop_records(&mut self, floor: &VectorTime) {
        for (process, log) in self.log.iter_mut().enumerate() {
            while log
                .front()
                .is_some_and(|record| record.index <= floor.of(process as u16))
            {
                log.pop_front();
            }
        }
        self.floor.raise(floor);
    }

    /// Asks all what they know, when the log has grown long.
    fn poll_when_long(&mut self) {
        let most = usize::try_from(self.setting.kept_most).unwrap_or(usize::MAX);
        let others = usize::from(self.setting.processes) - 1;
        if self.poll.is_some() || self.kept_records() <= most || others == 0 {
            return;
        }
        self.poll = Some((self.time.clone(), others));
        let me = self.me;
        for to in (0..self.setting.processes).filter(|to| *to != me) {
            self.send(to, Message::TimePoll {});
        }
    }

    pub(super) fn take_time(&mut self, time: &VectorTime) {
        let Some((floor, awaited)) = &mut self.poll else {
            return;
        };
        floor.lower(time);
        *awaited -= 1;
        if *awaited == 0 {
            let (floor, _) = self.poll.take().expect("a poll that was just counted");
            self.drop_records(&floor);
            self.statistics.polls += 1;
        }
    }
}
