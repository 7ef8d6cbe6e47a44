//! The homeless protocol, as in TreadMarks: changes stay with who made them, as patches, until a miss asks for them.
//!
//! An interval that ends protects its pages and keeps their twins; the patch is made when another process asks, or when a notice for the page
//! arrives, and may then cover several intervals. A patch goes before another exactly if the other's maker knew the first
//! interval of it: a process that changes a page after that interval has asked for it, which ends the patch.
//!
//! A miss asks the processes whose latest change no other process knew of when it changed the page; they have all older
//! patches, made or applied. What they turn out not to have (their copy began as a whole page) its maker has.

use super::{Machine, Mutation};
use crate::codec::PageBytes;
use crate::message::{Message, Patch};
use crate::page::{PageMemory, Permission, State};
use crate::time::Versions;
use std::sync::Arc;

impl<M: PageMemory> Machine<M> {
    /// Brings a page to those who wait for it.
    pub(super) fn open_homeless(&mut self, page: u32) {
        let entry = self.page(page);
        match entry.state {
            State::ReadOnly | State::Dirty => self.admit(page),
            State::Fetching => {}
            State::Empty => {
                let manager = entry.home;
                self.page_mut(page).state = State::Fetching;
                self.statistics.fetches += 1;
                let epoch = self.barriers.epoch;
                let pages = vec![(page, Versions::default())];
                self.send(manager, Message::PageRequest { epoch, pages });
            }
            State::Invalid => {
                self.page_mut(page).state = State::Fetching;
                self.gather(page);
            }
        }
    }

    /// The whole page for a process that never had it, with what it contains.
    pub(super) fn serve_base(&mut self, from: u16, pages: &[(u32, Versions)]) {
        let page = pages[0].0;
        self.cut(page);
        let have = self.page(page).have.clone();
        let bytes = PageBytes(self.memory.copy_out(page));
        self.send(
            from,
            Message::PageReply {
                pages: vec![(page, have, bytes)],
            },
        );
    }

    pub(super) fn take_base(&mut self, pages: Vec<(u32, Versions, PageBytes)>) {
        for (page, have, PageBytes(bytes)) in pages {
            self.memory.store(page, 0, &bytes);
            let entry = self.page_mut(page);
            entry.have = have;
            entry.fetches += 1;
            self.gather(page);
        }
    }

    /// Asks the maximal writers for what is missing, or opens the page if nothing is.
    fn gather(&mut self, page: u32) {
        let entry = self.page_mut(page);
        let have = entry.have.clone();
        let history = entry.history();
        let asked: Vec<u16> = history.maximal();
        let lacks = |process: &u16| {
            let latest = history
                .notices
                .iter()
                .filter(|n| n.0 == *process)
                .map(|n| n.1)
                .max();
            latest.unwrap_or(0) > have.of(*process)
        };
        let asked: Vec<u16> = asked.into_iter().filter(lacks).collect();
        self.ask_for_patches(page, &asked);
    }

    fn ask_for_patches(&mut self, page: u32, asked: &[u16]) {
        let have = self.page(page).have.clone();
        self.page_mut(page).history().awaited = asked.len();
        for to in asked {
            self.statistics.patch_requests += 1;
            self.send(
                *to,
                Message::DiffRequest {
                    page,
                    have: have.clone(),
                },
            );
        }
        if asked.is_empty() {
            self.apply_patches(page);
        }
    }

    pub(super) fn serve_patches(&mut self, from: u16, page: u32, have: &Versions) {
        self.cut(page);
        let patches = self.page_mut(page).history().patches.iter();
        let patches = patches
            .filter(|patch| patch.to > have.of(patch.process))
            .cloned()
            .collect();
        self.send(from, Message::DiffReply { page, patches });
    }

    pub(super) fn take_patches(&mut self, page: u32, patches: Vec<Patch>) {
        let history = self.page_mut(page).history();
        history.gathered.extend(patches);
        history.awaited -= 1;
        if history.awaited == 0 {
            self.apply_patches(page);
        }
    }

    /// Applies what was gathered if it is all that was noticed; otherwise asks the makers of what is missing.
    fn apply_patches(&mut self, page: u32) {
        let entry = self.page_mut(page);
        let mut would_have = entry.have.clone();
        let mut gathered = std::mem::take(&mut entry.history().gathered);
        gathered.sort_by_key(|patch| (patch.first.weight(), patch.process, patch.to));
        gathered.dedup_by_key(|patch| (patch.process, patch.to));
        // Patches of a process form a chain; one behind a gap would hide the missing one. One that begins after what was noticed may stand
        // on changes that are not known of here, and would be overwritten by them.
        let need = entry.need.clone();
        gathered.retain(|patch| {
            let have = would_have.of(patch.process);
            let is_noticed = patch.after < need.of(patch.process);
            let follows = is_noticed && patch.after <= have && patch.to > have;
            if follows {
                would_have.raise(patch.process, patch.to);
            }
            follows
        });
        if !would_have.covers(&self.page(page).need) {
            let need = &self.page(page).need;
            let makers: Vec<u16> = need
                .iter()
                .filter(|(process, index)| would_have.of(*process) < *index)
                .map(|n| n.0)
                .collect();
            self.page_mut(page).history().gathered = gathered;
            self.statistics.repeated_fetches += 1;
            return self.ask_for_patches(page, &makers);
        }
        if self.setting.mutation == Mutation::ReverseOrder {
            gathered.reverse();
        }
        for patch in gathered {
            for (at, bytes) in patch.diff.runs() {
                self.memory.store(page, at, bytes);
            }
            self.statistics.diffs_applied += 1;
            let entry = self.page_mut(page);
            entry.have.raise(patch.process, patch.to);
            entry.history().patches.push(patch);
        }
        self.page_mut(page).state = State::Invalid;
        if self.barriers.is_collecting() {
            self.note_kept(page);
        } else {
            self.admit(page);
        }
    }

    /// Ends the interval: notes the pages, keeps their twins. No diff is made.
    pub(super) fn end_interval_homeless(&mut self) {
        if self.dirty.is_empty() {
            return;
        }
        let dirty: Vec<u32> = std::mem::take(&mut self.dirty).into_iter().collect();
        let is_late = self.setting.mutation == Mutation::ProtectLate;
        for page in &dirty {
            if !is_late {
                self.memory.allow(*page, Permission::Reading);
            }
            self.page_mut(*page).state = State::ReadOnly;
        }
        let time = self.close_interval(&dirty);
        let me = self.me;
        for page in dirty {
            let entry = self.page_mut(page);
            entry.have.raise(me, time.of(me));
            entry
                .history()
                .unpatched
                .get_or_insert_with(|| Arc::clone(&time));
            if is_late {
                self.make_patch(page);
                self.memory.allow(page, Permission::Reading);
            }
        }
    }

    /// Makes the patch of a page up to now, so that what is sent ends where an interval ends.
    fn cut(&mut self, page: u32) {
        if self.dirty.contains(&page) {
            self.end_interval();
        }
        self.make_patch(page);
    }

    /// Makes the patch of intervals that have ended, if there is none yet, and drops the twin.
    pub(super) fn make_patch(&mut self, page: u32) {
        let me = self.me;
        let Some(first) = self.page_mut(page).history().unpatched.take() else {
            return;
        };
        assert!(
            !self.dirty.contains(&page),
            "a patch ends where an interval ends"
        );
        let twin = self
            .page_mut(page)
            .twin
            .take()
            .expect("a page without patch has its twin");
        let diff = Arc::new(self.compare(&twin, page));
        let to = self.page(page).have.of(me);
        let history = self.page_mut(page).history();
        let after = std::mem::replace(&mut history.patched_to, to);
        history.patches.push(Patch {
            process: me,
            after,
            to,
            first,
            diff,
        });
    }

    /// Bytes that patches and twins take here.
    pub(super) fn kept_bytes(&self) -> u64 {
        let of_page = |page: &crate::page::Page| {
            let twin = page.twin.as_ref().map_or(0, Vec::len);
            let patches = page
                .history
                .as_ref()
                .map_or(0, |h| h.patches.iter().map(|p| p.diff.size_bytes()).sum());
            (twin + patches) as u64
        };
        self.pages.iter().map(of_page).sum()
    }

    /// Who keeps a page when garbage is collected, and who writes it to a file: the latest writer, the highest of several; the manager of a page
    /// that nobody wrote.
    pub(super) fn keeper_of(&self, page: u32) -> u16 {
        let entry = self.page(page);
        let maximal = entry.history.as_ref().map(|history| history.maximal());
        maximal
            .and_then(|maximal| maximal.last().copied())
            .unwrap_or(entry.home)
    }

    /// Begins to collect garbage: brings every page that is kept here up to date. All processes know the same by now.
    pub(super) fn begin_collection(&mut self) {
        let mine: Vec<u32> = (0..self.setting.pages)
            .filter(|page| {
                self.keeper_of(*page) == self.me
                    && !self.page(*page).have.covers(&self.page(*page).need)
            })
            .collect();
        self.barriers.collecting = Some(mine.len());
        for page in &mine {
            self.open_homeless(*page);
        }
        if mine.is_empty() {
            self.send(0, Message::CollectDone {});
        }
    }

    fn note_kept(&mut self, _page: u32) {
        let left = self
            .barriers
            .collecting
            .as_mut()
            .expect("garbage is being collected");
        *left -= 1;
        if *left == 0 {
            self.send(0, Message::CollectDone {});
        }
    }

    /// Process 0: one more process has its pages up to date.
    pub(super) fn note_collected(&mut self) {
        self.barriers.collected += 1;
        if self.barriers.collected < usize::from(self.setting.processes) {
            return;
        }
        self.barriers.collected = 0;
        for to in (0..self.setting.processes).rev() {
            self.send(to, Message::CollectGo {});
        }
    }

    /// Drops patches, notices and all copies but those that are kept, and leaves the barrier.
    pub(super) fn drop_garbage(&mut self) {
        for page in 0..self.setting.pages {
            let keeper = self.keeper_of(page);
            let entry = self.page_mut(page);
            entry.history = None;
            entry.twin = None;
            entry.home = keeper;
            // Intervals go on being counted; none before this point is asked for again.
            entry.need.clear();
            if keeper == self.me {
                if self.page(page).state == State::Empty {
                    self.page_mut(page).state = State::Invalid;
                }
            } else {
                self.invalidate(page);
                let entry = self.page_mut(page);
                entry.have.clear();
                entry.state = State::Empty;
            }
        }
        self.barriers.collecting = None;
        self.statistics.collections += 1;
        self.leave_barrier();
    }
}
