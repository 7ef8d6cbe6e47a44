//! The sequentially consistent protocol: at any time a page has one writer or any number of readers, as in IVY.
//!
//! The home of a page knows who has copies and serves one wish after the other: it recalls what stands against it, then sends the page. There are
//! no twins, diffs and notices. It is the yardstick for the others, and shows what false sharing costs.

use super::Machine;
use crate::codec::PageBytes;
use crate::message::Message;
use crate::page::{Access, Directory, PageMemory, Permission, State};

impl<M: PageMemory> Machine<M> {
    /// Brings a page to those who wait for it.
    pub(super) fn open_sequential(&mut self, page: u32) {
        let entry = self.page_mut(page);
        if entry.state == State::Fetching {
            return;
        }
        let is_write = entry
            .waiters
            .iter()
            .any(|waiter| waiter.kind == Access::Write);
        if entry.state == State::ReadOnly && !is_write {
            return self.admit_as(page, Access::Read);
        }
        entry.state = State::Fetching;
        let home = entry.home;
        self.statistics.fetches += u64::from(home != self.me);
        // What may still be read meanwhile stays mapped; the answer decides.
        let message = if is_write {
            Message::GetExclusive { page }
        } else {
            Message::GetShared { page }
        };
        self.send(home, message);
    }

    fn directory(&mut self, page: u32) -> &mut Directory {
        self.page_mut(page).directory.get_or_insert_default()
    }

    pub(super) fn note_wish(&mut self, from: u16, page: u32, kind: Access) {
        self.directory(page).next.push_back((from, kind));
        self.serve_wish(page);
    }

    fn serve_wish(&mut self, page: u32) {
        let directory = self.directory(page);
        if directory.now.is_some() {
            return;
        }
        let Some((from, kind)) = directory.next.pop_front() else {
            return;
        };
        directory.now = Some((from, kind));
        let mut recalls: Vec<(u16, u8)> = Vec::new();
        if let Some(owner) = directory.owner.take() {
            let keep = u8::from(kind == Access::Read);
            recalls.push((owner, keep));
            directory.readers = if keep == 1 { vec![owner] } else { Vec::new() };
        } else if kind == Access::Write {
            let readers = std::mem::take(&mut directory.readers);
            recalls.extend(
                readers
                    .into_iter()
                    .filter(|reader| *reader != from)
                    .map(|reader| (reader, 0)),
            );
        }
        directory.awaited = recalls.len();
        if recalls.is_empty() {
            return self.grant_page(page);
        }
        for (to, keep) in recalls {
            self.send(to, Message::Recall { page, keep });
        }
    }

    fn grant_page(&mut self, page: u32) {
        let directory = self.directory(page);
        let (to, kind) = directory.now.take().expect("a wish is being granted");
        match kind {
            Access::Read if directory.readers.contains(&to) => {}
            Access::Read => directory.readers.push(to),
            Access::Write => directory.owner = Some(to),
        }
        // The home has the contents in its memory already.
        let bytes = if to == self.me {
            Vec::new()
        } else {
            self.memory.copy_out(page)
        };
        let exclusive = u8::from(kind == Access::Write);
        self.send(
            to,
            Message::Data {
                page,
                exclusive,
                bytes: PageBytes(bytes),
            },
        );
        self.serve_wish(page);
    }

    pub(super) fn take_data(&mut self, page: u32, exclusive: u8, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.memory.store(page, 0, bytes);
            self.page_mut(page).fetches += 1;
        }
        self.admit_as(
            page,
            if exclusive == 1 {
                Access::Write
            } else {
                Access::Read
            },
        );
    }

    /// Lets those go on whom this much suffices; others ask again.
    fn admit_as(&mut self, page: u32, kind: Access) {
        let entry = self.page_mut(page);
        let waiters = std::mem::take(&mut entry.waiters);
        let (served, left): (Vec<_>, Vec<_>) = waiters
            .into_iter()
            .partition(|waiter| kind == Access::Write || waiter.kind == Access::Read);
        entry.waiters = left;
        entry.state = if kind == Access::Write {
            State::Dirty
        } else {
            State::ReadOnly
        };
        let allowed = if kind == Access::Write {
            Permission::Writing
        } else {
            Permission::Reading
        };
        self.memory.allow(page, allowed);
        for waiter in served {
            self.ready(waiter.ticket);
        }
        if !self.page(page).waiters.is_empty() {
            self.open_sequential(page);
        }
    }

    pub(super) fn give_up(&mut self, page: u32, keep: u8) {
        let home = self.page(page).home;
        // Protected first: what is sent is the last that was stored.
        let allowed = if keep == 1 {
            Permission::Reading
        } else {
            Permission::Nothing
        };
        self.memory.allow(page, allowed);
        let bytes = if home == self.me {
            Vec::new()
        } else {
            self.memory.copy_out(page)
        };
        let entry = self.page_mut(page);
        let was_dirty = entry.state == State::Dirty;
        if entry.state != State::Fetching {
            entry.state = if keep == 1 {
                State::ReadOnly
            } else {
                State::Invalid
            };
            self.statistics.invalidations += u64::from(keep == 0);
        }
        let bytes = PageBytes(if was_dirty { bytes } else { Vec::new() });
        self.send(home, Message::Yield { page, bytes });
    }

    pub(super) fn take_back(&mut self, page: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.memory.store(page, 0, bytes);
        }
        let directory = self.directory(page);
        directory.awaited -= 1;
        if directory.awaited == 0 {
            self.grant_page(page);
        }
    }
}
