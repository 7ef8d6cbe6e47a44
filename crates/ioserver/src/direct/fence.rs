//! Keeping direct accesses out of a file for a moment, while windows of it move: maps stay good.
//!
//! ```text
//!  fence     word of the entry raised -> claims of that moment end, each once -> nobody copies
//!  open      the word says with which step of the layout state maps may be used
//! ```
//!
//! A claim that does not end in time is taken back like in any revocation, and then all maps of the file are
//! void.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::direct::Active;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wire::FileId;

use super::revoke::{FIRST_PAUSE, LONGEST_PAUSE, PATIENCE};
use super::{Attached, Direct};
use crate::context::Context;
use crate::files::{FileEntry, lock};
use crate::refused::Refused;
use crate::statistics::add;

/// A client that copies.
struct Copying {
    attached: Arc<Attached>,
    claims: Vec<Active>,
}

impl Direct {
    /// Lets nobody begin to copy, and waits a little for those who do; how many there were, and whether all
    /// have ended.
    fn fence(&self, file: FileId) -> (u64, bool) {
        let Some(table) = self.table() else {
            return (0, true);
        };
        let mut copying: Vec<Copying> = {
            let state = lock(&self.state);
            let Some(maps) = state.files.get(&file) else {
                return (0, true);
            };
            table.fence(maps.entry);
            let clients = maps.clients.values();
            let of = |attached: &Arc<Attached>| Copying {
                attached: Arc::clone(attached),
                claims: attached.page.claims(maps.entry).collect(),
            };
            clients.map(|mapper| of(&mapper.attached)).collect()
        };
        copying.retain(|c| !c.claims.is_empty());
        let found: u64 = copying.iter().map(|c| c.claims.len() as u64).sum();
        add(&self.counters.claims_waited, found);
        let deadline = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        while !copying.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return (found, false);
            }
            wait_for_death(&copying, pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
            copying.retain_mut(|c| {
                let page = &c.attached.page;
                c.claims.retain(|claim| page.is_active(claim));
                !c.claims.is_empty() && !c.attached.is_dead()
            });
        }
        (found, true)
    }

    /// Lets whoever planned with this step of the layout state copy.
    pub(crate) fn open(&self, file: FileId, step: u64) {
        let Some(table) = self.table() else {
            return;
        };
        let state = lock(&self.state);
        if let Some(maps) = state.files.get(&file) {
            table.open(maps.entry, step);
        }
    }
}

/// Waits until a process dies or the time is over. Nothing tells that a claim has ended.
fn wait_for_death(copying: &[Copying], pause: Duration) {
    let mut fds: Vec<PollFd<'_>> = copying
        .iter()
        .map(|c| PollFd::from_borrowed_fd(c.attached.process(), PollFlags::IN))
        .collect();
    let pause = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(pause.subsec_nanos()),
    };
    let _ = poll(&mut fds, Some(&pause));
}

impl Context {
    /// Keeps direct accesses of a file out until [`Direct::open`]; returns when nobody copies. How many
    /// there were at this moment. The gate of the file is open, and closed only for somebody who is stuck.
    pub(crate) fn fence_direct(&self, entry: &FileEntry) -> Result<u64, Refused> {
        let (found, is_over) = self.direct.fence(entry.id());
        if !is_over {
            let file = entry.id();
            entry.alone(&self.hurry(), || self.take_back(file, |_| u64::MAX))?;
        }
        Ok(found)
    }
}
