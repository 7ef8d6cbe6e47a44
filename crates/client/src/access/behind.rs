//! Writing behind: short writes of a handle that is far from its servers are collected, and go in one message.
//!
//! ```text
//!  program   write  write  write  write ...  write | read, size, sync, close, another place
//!  buffer      |      +------ collected ------+    |
//!  servers     +-- one message                     +-- one message
//! ```
//!
//! The hint `write_behind=on` turns it on, since others see such bytes later than without: when they are sent. What MPI-IO says about
//! non-atomic mode holds, and no less:
//! - They are sent before this process reads or writes the file in any other way through any of its handles, asks for or sets its size, sets
//!   a view, mode or hints; before a collective access, `sync` and `close`.
//! - A write that goes on where the one before ended is collected, or one into what is collected. Others go as ever.
//! - Atomic handles have no buffer, and none has one where a server shares its memory with this client.
//! - What could not be sent is reported by the next write, by `sync` or by `close`, once, and those bytes are written again by the
//!   program or not at all.
//!
//! Invariants: collected bytes are at most `write_behind_bytes`, of one view and one truncate epoch. If the file was truncated since, they are
//! an error and not repeated: bytes that were cut off would come back. Nothing is sent from a forked child.
//!
//! Left to others: how bytes travel (`request`), which bytes servers have lost (`file::unsynced`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kernels::{SharedBytes, SharedBytesMut};
use parking_lot::Mutex;
use wire::FileId;

use crate::access::file_range;
use crate::access::memory::{Direction, Memory};
use crate::access::phases::Phases;
use crate::access::request::{How, Request};
use crate::error::{Error, Result};
use crate::file::File;
use crate::file::handle::Handle;
use crate::file::view::HandleView;
use crate::hints::Hints;
use crate::session::Session;

/// Bytes that are collected unless hints say otherwise.
const MOST_BYTES: u64 = 4 << 20;
/// Longer writes go by themselves: a message is no burden to them.
const SHORT: u64 = 64 << 10;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Behind {
    is_on: AtomicBool,
    most_bytes: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    run: Option<Run>,
    /// Where the last write ended, in view bytes.
    next: u64,
    /// Memory for the next run.
    spare: Vec<u8>,
    /// Why bytes could not be sent.
    failed: Option<Error>,
}

/// Bytes that are collected.
#[derive(Debug)]
struct Run {
    seen: Arc<HandleView>,
    /// View offset of the first.
    lo: u64,
    bytes: Vec<u8>,
    /// The truncate epoch in which the first was written.
    epoch: u64,
}

impl Run {
    /// Whether bytes of a view at an offset go on here, or lie inside, and there is room for them.
    fn takes(&self, seen: &Arc<HandleView>, offset: u64, len: u64, most: u64) -> bool {
        let end = self.lo + self.bytes.len() as u64;
        Arc::ptr_eq(&self.seen, seen)
            && (self.lo..=end).contains(&offset)
            && offset + len <= self.lo + most
    }

    fn put(&mut self, offset: u64, from: SharedBytes<'_>) {
        let at = (offset - self.lo) as usize;
        let end = at + from.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let into: SharedBytesMut<'_> = (&mut self.bytes[at..end]).into();
        into.copy_from(from);
    }
}

impl Handle {
    /// Takes what hints say about writing behind.
    pub(crate) fn set_behind(&self, hints: &Hints) {
        self.send_own_behind();
        let most = hints.number("write_behind_bytes").unwrap_or(MOST_BYTES);
        let wanted = hints.get("write_behind").and_then(crate::hints::is_on);
        let is_on = wanted == Some(true) && most > 0;
        if is_on {
            self.session.open_files.uses_behind();
        }
        self.behind.most_bytes.store(most, Ordering::Relaxed);
        self.behind.is_on.store(is_on, Ordering::Relaxed);
    }

    /// Sends what any handle of this process has collected of the file.
    pub(crate) fn send_behind(&self) {
        self.session.send_behind(self.identity.file, None);
    }

    /// Sends what this handle has collected.
    pub(crate) fn send_own_behind(&self) {
        if self.behind.is_on.load(Ordering::Relaxed) {
            self.send_run(&mut self.behind.state.lock());
        }
    }

    /// Why bytes could not be sent, once.
    pub(crate) fn take_behind_failure(&self) -> Result<()> {
        match self.behind.state.lock().failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn send_run(&self, state: &mut State) {
        let Some(mut run) = state.run.take() else {
            return;
        };
        let how = How {
            taken_epoch: Some(run.epoch),
            is_ahead: true,
            ..How::default()
        };
        let request = Request::of(&run.seen, run.lo, Memory::of(&run.bytes[..])).with(how);
        let sent = self.session.with_lane(|lane| self.access(lane, request));
        if let Err(error) = sent {
            tracing::warn!(path = self.identity.path, %error, "collected writes were not sent");
            state.failed.get_or_insert(error);
        }
        run.bytes.clear();
        state.spare = run.bytes;
    }
}

impl File {
    /// Collects a short write that goes on where the one before ended. False if it has to go by itself; what was collected is
    /// sent then.
    pub(crate) fn write_behind(&self, offset: u64, from: SharedBytes<'_>) -> Result<bool> {
        let len = from.len() as u64;
        if !self.behind.is_on.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let most = self.behind.most_bytes.load(Ordering::Relaxed);
        let gate = self.beside();
        let seen = self.views.current();
        let file = self.identity.file;
        // What other handles have collected was written before.
        self.session.send_behind(file, Some(self));
        let mut state = self.behind.state.lock();
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        let is_next = std::mem::replace(&mut state.next, offset.saturating_add(len)) == offset;
        let is_short = len > 0 && len <= SHORT.min(most);
        let may_collect = is_short && !self.is_atomic() && self.is_far();
        let run = state.run.as_ref();
        if !may_collect || !run.is_some_and(|run| run.takes(&seen, offset, len, most)) {
            self.send_run(&mut state);
            if let Some(error) = state.failed.take() {
                return Err(error);
            }
            if !may_collect || !is_next {
                return Ok(false);
            }
            file_range(&seen, offset, len)?;
            // An epoch that this client has not heard of has begun before these bytes were written.
            let size = self.session.with_lane(|lane| self.ask_size(lane))?;
            state.run = Some(Run {
                seen: Arc::clone(&seen),
                lo: offset,
                bytes: std::mem::take(&mut state.spare),
                epoch: size.epoch,
            });
        } else {
            file_range(&seen, offset, len)?;
        }
        // What was read ahead is older.
        self.void_ahead();
        if let Some(run) = &mut state.run {
            run.put(offset, from);
            let is_full = run.bytes.len() as u64 == most;
            // A server may have come near meanwhile, and other handles may go there directly.
            if is_full || !self.is_far() {
                self.send_run(&mut state);
            }
        }
        drop((state, gate));
        self.keep_phases(Phases {
            requested: len,
            moved: len,
            ..Phases::default()
        });
        self.record(Direction::Write, offset, &Ok(len as usize));
        Ok(true)
    }

    /// Whether everything this client does goes by message.
    fn is_far(&self) -> bool {
        let sharing = &self.session.open_files.sharing;
        // A server that was not asked yet may be near.
        let is_known = !self.session.options.direct || sharing.has_tried();
        is_known && !sharing.has_near() && !self.settings.is_sieving()
    }
}

impl Session {
    /// Sends what handles have collected, of all files: a thread asks for sizes by path.
    pub(crate) fn send_all_behind(&self) {
        self.send_behind_of(|_| true);
    }

    /// Sends what handles of a file have collected, but for one of them.
    fn send_behind(&self, file: FileId, except: Option<&Handle>) {
        self.send_behind_of(|open| {
            open.identity.file == file && !except.is_some_and(|except| std::ptr::eq(except, open))
        });
    }

    fn send_behind_of(&self, is_wanted: impl Fn(&Handle) -> bool) {
        if !self.open_files.has_behind() {
            return;
        }
        let open: Vec<_> = {
            let files = self.open_files.handles.lock();
            files.iter().filter_map(|open| open.upgrade()).collect()
        };
        let wanted = open.iter().filter(|open| is_wanted(open));
        wanted.for_each(|open| open.send_own_behind());
    }
}
