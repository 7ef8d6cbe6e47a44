//! The pointers of a handle: its own, and the one it shares with other clients.
//!
//! Both count view bytes. The own pointer lives here; the shared one lives at the owner of the file, and a handle takes part
//! in it from its opening to its end. An owner that was started again is told where the pointer was last seen.

use std::io::SeekFrom;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use wire::message::file::{JoinPointer, MovePointer, PointerMove};
use wire::{Rights, Status};

use crate::error::{Error, Result};
use crate::file::File;
use crate::file::handle::Handle;
use crate::session::lane::Lane;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Pointers {
    /// Where the handle's own pointer stands.
    pub(crate) own: Mutex<u64>,
    /// Who shares the other one.
    pub(crate) group: Option<u64>,
    has_joined: AtomicBool,
    has_used: AtomicBool,
    /// Where the shared pointer was last known to stand.
    shared_at: AtomicU64,
}

impl Pointers {
    pub(crate) fn new(group: Option<u64>) -> Pointers {
        Pointers {
            group,
            ..Pointers::default()
        }
    }
}

impl Handle {
    /// Takes part in the shared pointer, with the first use of it.
    pub(crate) fn join_pointer(&self, lane: &mut Lane, group: u64) -> Result<()> {
        if self.pointers.has_joined.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        *self
            .session
            .open_files
            .groups
            .lock()
            .entry((self.identity.file.0, group))
            .or_default() += 1;
        self.ask_owner(lane, &self.views.whole, |view| JoinPointer {
            view,
            group,
            position: 0,
        })
    }

    /// Leaves the shared pointer; its group, if this was the last handle of the client in it.
    pub(crate) fn leave_pointer(&self) -> Option<u64> {
        let group = self.pointers.group?;
        if !self.pointers.has_joined.swap(false, Ordering::AcqRel) {
            return None;
        }
        let mut groups = self.session.open_files.groups.lock();
        let count = groups.get_mut(&(self.identity.file.0, group))?;
        *count -= 1;
        if *count > 0 {
            return None;
        }
        groups.remove(&(self.identity.file.0, group));
        Some(group)
    }
}

impl File {
    /// Reads at the pointer of this handle and moves it.
    pub fn read(&self, buffer: &mut [u8]) -> Result<usize> {
        self.check_right(Rights::READ)?;
        let mut position = self.pointers.own.lock();
        let n = self.read_at(*position, buffer)?;
        *position += n as u64;
        Ok(n)
    }

    /// Writes at the pointer of this handle and moves it. With [`OpenOptions::append`](crate::OpenOptions::append) it goes to the
    /// end, and the pointer behind it.
    pub fn write(&self, bytes: &[u8]) -> Result<usize> {
        self.check_right(Rights::WRITE)?;
        let mut position = self.pointers.own.lock();
        if self.identity.is_append {
            let end = self.append(bytes)? + bytes.len() as u64;
            *position = self.views.current().view.len_within(end);
            return Ok(bytes.len());
        }
        let n = self.write_at(*position, bytes)?;
        *position += n as u64;
        Ok(n)
    }

    /// Moves the pointer of this handle, in view bytes. The end is that of the view in the file.
    pub fn seek(&self, to: SeekFrom) -> Result<u64> {
        self.check()?;
        let mut position = self.pointers.own.lock();
        *position = self.target(to, || Ok(*position))?;
        Ok(*position)
    }

    fn target(&self, to: SeekFrom, current: impl FnOnce() -> Result<u64>) -> Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(at) => (at, 0),
            SeekFrom::Current(by) => (current()?, by),
            SeekFrom::End(by) => {
                let size = self.size()?;
                (self.views.current().view.len_within(size), by)
            }
        };
        from.checked_add_signed(by)
            .filter(|at| *at <= falls::MAX_OFFSET)
            .ok_or_else(|| {
                Error::argument(
                    "offset",
                    format!("{from} moved by {by} is before the beginning or beyond 2^63 - 1"),
                )
            })
    }

    /// Where the pointer of this handle stands, in view bytes.
    pub fn position(&self) -> u64 {
        *self.pointers.own.lock()
    }

    fn group(&self) -> Result<u64> {
        self.pointers.group.ok_or_else(|| {
            Error::argument(
                "shared_pointer",
                "the file was opened without one; say which with OpenOptions::shared_pointer",
            )
        })
    }

    /// Moves the shared pointer and says where it stood.
    fn move_shared(&self, lane: &mut Lane, how: PointerMove, amount: u64) -> Result<u64> {
        let group = self.group()?;
        self.pointers.has_used.store(true, Ordering::Release);
        // The owner answers a question only if none of this client with a higher number came before.
        let _ordered = self.session.open_files.ordered.lock();
        let request = self.session.number();
        let make = |view| MovePointer {
            view,
            group,
            request,
            how,
            amount,
        };
        let mut moved = self.ask_owner(lane, &self.views.whole, make);
        if matches!(&moved, Err(e) if e.status() == Status::BadHandle) {
            // An owner that was restarted knows nobody; the pointer stands where it was last seen.
            let position = self.pointers.shared_at.load(Ordering::Relaxed);
            self.ask_owner(lane, &self.views.whole, |view| JoinPointer {
                view,
                group,
                position,
            })?;
            moved = self.ask_owner(lane, &self.views.whole, make);
        }
        if let Ok(before) = moved {
            let now = match how {
                PointerMove::To => amount,
                PointerMove::Add | PointerMove::Stay => before.saturating_add(amount),
            };
            self.pointers.shared_at.store(now, Ordering::Relaxed);
        }
        moved
    }

    /// Reads at the shared pointer and moves it by the length of the buffer.
    pub fn read_shared(&self, buffer: &mut [u8]) -> Result<usize> {
        self.check_right(Rights::READ)?;
        let len = buffer.len() as u64;
        let at = self
            .session
            .with_lane(|lane| self.move_shared(lane, PointerMove::Add, len))?;
        self.read_at(at, buffer)
    }

    /// Writes at the shared pointer and moves it.
    pub fn write_shared(&self, bytes: &[u8]) -> Result<usize> {
        self.check_right(Rights::WRITE)?;
        let len = bytes.len() as u64;
        let at = self
            .session
            .with_lane(|lane| self.move_shared(lane, PointerMove::Add, len))?;
        self.write_at(at, bytes)
    }

    /// Moves the shared pointer, in view bytes; where it stands then.
    pub fn seek_shared(&self, to: SeekFrom) -> Result<u64> {
        self.check()?;
        let to = self.target(to, || self.position_shared())?;
        self.session
            .with_lane(|lane| self.move_shared(lane, PointerMove::To, to))?;
        Ok(to)
    }

    /// Whether this handle has used the shared pointer. One that no handle has used is at the beginning.
    pub fn has_used_shared_pointer(&self) -> bool {
        self.pointers.has_used.load(Ordering::Acquire)
    }

    /// Where the shared pointer stands.
    pub fn position_shared(&self) -> Result<u64> {
        self.check()?;
        self.session
            .with_lane(|lane| self.move_shared(lane, PointerMove::Stay, 0))
    }

    /// Moves the shared pointer on by so many view bytes; where it stood. What is between is the caller's.
    pub fn advance_shared(&self, by: u64) -> Result<u64> {
        self.check()?;
        self.session
            .with_lane(|lane| self.move_shared(lane, PointerMove::Add, by))
    }
}
