//! The home-based protocol: changes go to a page's home when an interval ends, and a miss fetches the page from there.
//!
//! A flush is not acknowledged and nobody waits for it: a request says which versions the page has to contain, and the home answers
//! when it has them. The home itself waits in the same way before its own program may touch the page.

use std::collections::BTreeMap;

use super::{Machine, Mutation, Protocol};
use crate::codec::PageBytes;
use crate::diff::Diff;
use crate::message::Message;
use crate::page::{PageMemory, Permission, State};
use crate::time::Versions;

impl<M: PageMemory> Machine<M> {
    /// Brings a page to those who wait for it.
    pub(super) fn open_at_home(&mut self, page: u32) {
        let entry = self.page(page);
        match entry.state {
            State::ReadOnly | State::Dirty => self.admit(page),
            State::Fetching => {}
            State::Invalid if entry.have.covers(&entry.need) => self.admit(page),
            State::Empty | State::Invalid => {
                let home = entry.home;
                // What is missing at home is on its way.
                if home != self.me {
                    self.request(page, home);
                }
            }
        }
    }

    /// Asks for a page, and for those behind it that are missing too.
    pub(super) fn request(&mut self, page: u32, from: u16) {
        let home = self.page(page).home;
        let last = (page.saturating_add(self.setting.prefetch)).min(self.setting.pages - 1);
        let mut pages = vec![(page, self.wanted(page))];
        self.page_mut(page).state = State::Fetching;
        if from == home {
            for beside in page + 1..=last {
                let entry = self.page(beside);
                if entry.home != home || !matches!(entry.state, State::Empty | State::Invalid) {
                    break;
                }
                pages.push((beside, self.wanted(beside)));
                self.page_mut(beside).state = State::Fetching;
                self.statistics.prefetched += 1;
            }
        }
        self.statistics.fetches += 1;
        let epoch = self.barriers.epoch;
        self.send(from, Message::PageRequest { epoch, pages });
    }

    /// The versions that a fetched copy must have: those noticed, and what was flushed from here.
    fn wanted(&self, page: u32) -> Versions {
        let entry = self.page(page);
        let mut need = entry.need.clone();
        need.raise(self.me, entry.have.of(self.me));
        need
    }

    pub(super) fn serve_pages(&mut self, from: u16, mut pages: Vec<(u32, Versions)>) {
        if self.setting.protocol == Protocol::Homeless {
            return self.serve_base(from, &pages);
        }
        let (first, need) = &pages[0];
        let entry = self.page(*first);
        // Who asks at a home of before, and is not the home to which the page moves, has to ask again: what is needed comes here no more.
        let comes_here = entry.home == self.me || entry.home == from;
        if comes_here && !entry.have.covers(need) {
            return self.unserved.push((from, pages));
        }
        // Pages that were only welcome and lack something are left out by an empty answer.
        let answer = pages.drain(..).map(|(page, need)| {
            let have = self.page(page).have.clone();
            let twin = self.page(page).twin.clone();
            let bytes = match twin {
                _ if !have.covers(&need) => Vec::new(),
                // A home of before that writes again: what is not published might be taken back, in no diff.
                Some(twin) => twin,
                None => self.memory.copy_out(page),
            };
            (page, have, PageBytes(bytes))
        });
        let answer = answer.collect();
        self.send(from, Message::PageReply { pages: answer });
    }

    pub(super) fn take_pages(&mut self, from: u16, pages: Vec<(u32, Versions, PageBytes)>) {
        if self.setting.protocol == Protocol::Homeless {
            return self.take_base(pages);
        }
        for (page, have, PageBytes(bytes)) in pages {
            let entry = self.page(page);
            if entry.state != State::Fetching {
                continue;
            }
            let source = if entry.is_moving { from } else { entry.home };
            if bytes.is_empty() {
                self.page_mut(page).state = State::Invalid;
                if !self.page(page).waiters.is_empty() {
                    self.request(page, source);
                }
                continue;
            }
            if !have.covers(&self.wanted(page)) && self.setting.mutation != Mutation::AcceptStale {
                // Something newer was noticed meanwhile, or this is a late answer from a home before, without what was written here since.
                self.statistics.repeated_fetches += 1;
                self.request(page, source);
                continue;
            }
            self.memory.store(page, 0, &bytes);
            let entry = self.page_mut(page);
            entry.have = have;
            entry.fetches += 1;
            entry.state = State::Invalid;
            if std::mem::take(&mut entry.is_moving) {
                self.note_moved();
            } else {
                // Pages that came along are read without a fault.
                self.admit(page);
            }
        }
    }

    pub(super) fn take_flush(&mut self, from: u16, index: u32, diffs: Vec<(u32, Diff)>) {
        for (page, diff) in diffs {
            if self.page(page).have.of(from) >= index {
                // Late, at a home of before that has fetched the page since, and may have written it.
                continue;
            }
            for (at, bytes) in diff.runs() {
                self.memory.store(page, at, bytes);
            }
            self.statistics.diffs_applied += 1;
            self.page_mut(page).have.raise(from, index);
            let entry = self.page(page);
            if !entry.waiters.is_empty() && entry.state == State::Invalid && entry.home == self.me {
                self.open_at_home(page);
            }
        }
        self.serve_waiting();
        self.note_settled();
    }

    /// Answers requests whose versions have come.
    pub(super) fn serve_waiting(&mut self) {
        for (from, pages) in std::mem::take(&mut self.unserved) {
            self.serve_pages(from, pages);
        }
    }

    /// Ends the interval: protects what was written, sends what changed to the homes, and notes the record.
    pub(super) fn end_interval_at_home(&mut self) {
        if self.dirty.is_empty() {
            return;
        }
        let dirty = std::mem::take(&mut self.dirty);
        let is_late = self.setting.mutation == Mutation::ProtectLate;
        if !is_late {
            // First protected, then compared: a store in between would be lost.
            for page in &dirty {
                self.memory.allow(*page, Permission::Reading);
            }
        }
        let index = self.time.of(self.me) + 1;
        let mut pages = Vec::new();
        let mut flushes: BTreeMap<u16, Vec<(u32, Diff)>> = BTreeMap::new();
        for page in dirty {
            self.page_mut(page).state = State::ReadOnly;
            if let Some(twin) = self.page_mut(page).twin.take() {
                let diff = self.compare(&twin, page);
                if is_late {
                    self.memory.allow(page, Permission::Reading);
                }
                if diff.is_empty() {
                    continue;
                }
                flushes
                    .entry(self.page(page).home)
                    .or_default()
                    .push((page, diff));
            } else if is_late {
                self.memory.allow(page, Permission::Reading);
            }
            let me = self.me;
            self.page_mut(page).have.raise(me, index);
            pages.push(page);
        }
        if pages.is_empty() {
            return;
        }
        self.close_interval(&pages);
        let epoch = self.barriers.epoch;
        for (home, diffs) in flushes {
            self.send(
                home,
                Message::Flush {
                    epoch,
                    index,
                    diffs,
                },
            );
        }
        // Who waits for what was written here at home can have it.
        self.serve_waiting();
    }

    /// What the program changed since the twin was made.
    pub(super) fn compare(&mut self, twin: &[u8], page: u32) -> Diff {
        let bytes = self.memory.copy_out(page);
        let gap = if self.setting.mutation == Mutation::MergeRuns {
            8
        } else {
            0
        };
        let diff = Diff::bridging(twin, &bytes, gap);
        self.statistics.diffs_made += 1;
        self.statistics.diff_bytes += diff.changed_bytes() as u64;
        diff
    }
}
