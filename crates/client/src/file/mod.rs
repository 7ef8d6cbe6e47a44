//! An open file: views, pointers, and the operations of users.
//!
//! Offsets are in bytes of the handle's view. Threads may share a handle; accesses run beside each
//! other, each in the thread that asked for it, and only a change of the view, the mode or the hints
//! waits for those under way. State calls ([`File::position`], [`File::view`], [`File::last_access`], ...)
//! send nothing.
//!
//! Left to others: described memory (`memory`), how bytes travel (`access`), threads for non-blocking
//! operations (`nonblocking`).

pub(crate) mod atomic;
pub(crate) mod nonblocking;
pub(crate) mod open;
pub(crate) mod open_options;
pub(crate) mod relayout;
pub(crate) mod seen;
pub(crate) mod unsynced;

use std::io::SeekFrom;
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLockReadGuard, RwLockWriteGuard};

use control::moves::crash_point;
use kernels::{SharedBytes, SharedBytesMut};
use layout::{ArrayType, FileOffset, Layout, View};
use wire::message::file::*;
use wire::{FileId, HandleId, LayoutState, Rights, ServerId, Status};

use crate::access::How;
use crate::access::phases::Phases;
use crate::collective::strategy::Collective;
use crate::error::{Error, Result};
use crate::file::nonblocking::{Buffer, Request};
use crate::file::open::Open;
use crate::file::open_options::OpenOptions;
use crate::file::seen::{Seen, is_whole};
use crate::file::unsynced::Synced;
use crate::hints::Hints;
use crate::transport::lane::Lane;
use crate::transport::session::lock;

/// Times an append reserves a place anew.
const MOST_RESERVATIONS: u32 = 64;

/// An open file. Clones are the same handle, and threads may share it. It is closed when the last
/// clone is dropped, or by [`File::close`], which reports errors.
#[derive(Clone, Debug)]
pub struct File {
    pub(crate) open: Arc<Open>,
}

impl File {
    pub(crate) fn new(open: Arc<Open>) -> File {
        File { open }
    }

    /// What the options want done right after opening.
    pub(crate) fn begin(&self, options: &OpenOptions) -> Result<()> {
        if let Some(group) = self.open.pointer_group {
            self.open
                .session
                .with_lane(|lane| self.open.join_pointer(lane, group))?;
        }
        if options.atomic {
            self.set_atomic(true)?;
        }
        self.act_on(&options.hints);
        if self.open.gateway.is_some() {
            self.open.session.with_lane(|lane| {
                self.open.remap(lane);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The file's number.
    pub fn id(&self) -> FileId {
        self.open.file
    }

    /// The path it was opened by; it may have another by now.
    pub fn path(&self) -> &str {
        &self.open.path
    }

    /// The handle, as the metadata manager knows it at present.
    pub fn handle(&self) -> HandleId {
        self.open.handle()
    }

    /// What the handle is for.
    pub fn rights(&self) -> Rights {
        self.open.rights
    }

    /// Whether the file was created by this opening.
    pub fn is_new(&self) -> bool {
        self.open.is_new
    }

    /// The array the file holds, if its creator said so.
    pub fn array(&self) -> Option<&ArrayType> {
        self.open.array.as_ref()
    }

    /// Where the bytes of the file are, as last heard.
    pub fn layout(&self) -> Arc<LayoutState> {
        self.open.state()
    }

    /// Sets the view of this handle. Its cost does not depend on the size of the file. The pointer of
    /// the handle goes to the beginning.
    pub fn set_view(&self, view: &View) -> Result<()> {
        self.open.check()?;
        let _gate = self.alone();
        self.set_view_alone(view)
    }

    /// The same for whoever is alone with the handle.
    pub(crate) fn set_view_alone(&self, view: &View) -> Result<()> {
        let seen = match is_whole(view) {
            true => self.open.whole.clone(),
            false => Seen::new(&self.open.session, view),
        };
        self.open.session.with_lane(|lane| {
            if self.is_atomic() {
                self.admit(lane, &seen)?;
            }
            self.open.replace_view(lane, seen);
            self.open.void_own_ahead();
            *lock(&self.open.position) = 0;
            self.open.remap(lane);
            Ok(())
        })
    }

    /// Sets a view in the layout language, applied to the file's array or to plain bytes, from the
    /// first byte of the file on: `(block, *) onto 4 [2]`, `slice[0:10, 3]`.
    pub fn set_view_text(&self, text: &str) -> Result<()> {
        self.set_view_text_at(0, text)
    }

    /// The same from another byte on.
    pub fn set_view_text_at(&self, displacement: u64, text: &str) -> Result<()> {
        self.open.check()?;
        let view = view_of_text(self.array(), displacement, text)?;
        let _gate = self.alone();
        self.set_view_alone(&view)?;
        if displacement == 0 {
            self.open.recording.set_text(text);
        }
        Ok(())
    }

    /// Says what the next operation will access, in view bytes. A client that talks through one server asks
    /// it which one is best for that, and uses it from the next operation on. Others send nothing. An access
    /// that comes otherwise is as right as ever.
    pub fn hint_next(&self, offset: u64, size: u64) -> Result<()> {
        self.open.check()?;
        let _gate = self.beside();
        self.open
            .session
            .with_lane(|lane| self.open.hint_next(lane, offset, size))
    }

    /// Says what the operation after the next one will access. It travels with the next one, without a message
    /// of its own.
    pub fn hint_following(&self, offset: u64, size: u64) -> Result<()> {
        self.open.check()?;
        self.open.hint_following(offset, size);
        Ok(())
    }

    /// The server that the next operation goes to, for a client that talks through one.
    pub fn server(&self) -> Option<ServerId> {
        self.open.server_now()
    }

    /// The view of this handle.
    pub fn view(&self) -> View {
        self.open.current().view.clone()
    }

    /// Reads at an offset in view bytes; less than asked for only at the end of the file.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if self
            .open
            .read_quickly(offset, SharedBytesMut::from_slice(buffer))
        {
            return Ok(buffer.len());
        }
        self.open.check_right(Rights::READ)?;
        if self.open.ahead.is_on() {
            if self.read_buffered(offset, buffer) {
                self.open.record(false, offset, &Ok(buffer.len()));
                return Ok(buffer.len());
            }
            let read = self.read_now(offset, buffer)?;
            self.read_was_made(offset, read as u64);
            return Ok(read);
        }
        self.read_now(offset, buffer)
    }

    fn read_now(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let _gate = self.beside();
        let seen = self.open.current();
        let done = self.open.session.with_lane(|lane| {
            if self.is_read_sieved(&seen) {
                return self.read_sieved(lane, &seen, offset, buffer);
            }
            let range = (offset, buffer.len() as u64);
            self.guarded(lane, &seen, range, false, |lane, how| {
                self.open.read_range(lane, &seen, offset, buffer, how)
            })
        });
        self.open.record(false, offset, &done);
        done
    }

    /// Writes at an offset in view bytes. With [`OpenOptions::append`] it goes to the end instead.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<usize> {
        if self
            .open
            .write_quickly(offset, SharedBytes::from_slice(bytes))
        {
            self.open.void_ahead();
            return Ok(bytes.len());
        }
        self.open.check_right(Rights::WRITE)?;
        if self.open.is_append {
            return self.append(bytes).map(|_| bytes.len());
        }
        let _gate = self.beside();
        let seen = self.open.current();
        let done = self.open.session.with_lane(|lane| {
            if self.is_write_sieved() {
                return self.write_sieved(lane, &seen, offset, bytes);
            }
            let range = (offset, bytes.len() as u64);
            self.guarded(lane, &seen, range, true, |lane, how| {
                self.open.write_range(lane, &seen, offset, bytes, how)
            })
        });
        self.open.record(true, offset, &done);
        done
    }

    /// Reads at the pointer of this handle and moves it.
    pub fn read(&self, buffer: &mut [u8]) -> Result<usize> {
        self.open.check_right(Rights::READ)?;
        let mut position = lock(&self.open.position);
        let n = self.read_at(*position, buffer)?;
        *position += n as u64;
        Ok(n)
    }

    /// Writes at the pointer of this handle and moves it. With [`OpenOptions::append`] it goes to the
    /// end, and the pointer behind it.
    pub fn write(&self, bytes: &[u8]) -> Result<usize> {
        self.open.check_right(Rights::WRITE)?;
        let mut position = lock(&self.open.position);
        if self.open.is_append {
            let end = self.append(bytes)? + bytes.len() as u64;
            *position = self.open.current().view.len_within(end);
            return Ok(bytes.len());
        }
        let n = self.write_at(*position, bytes)?;
        *position += n as u64;
        Ok(n)
    }

    /// Moves the pointer of this handle, in view bytes. The end is that of the view in the file.
    pub fn seek(&self, to: SeekFrom) -> Result<u64> {
        self.open.check()?;
        let mut position = lock(&self.open.position);
        *position = self.target(to, || Ok(*position))?;
        Ok(*position)
    }

    fn target(&self, to: SeekFrom, current: impl FnOnce() -> Result<u64>) -> Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(at) => (at, 0),
            SeekFrom::Current(by) => (current()?, by),
            SeekFrom::End(by) => {
                let size = self.size()?;
                (self.open.current().view.len_within(size), by)
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
        *lock(&self.open.position)
    }

    fn group(&self) -> Result<u64> {
        self.open.pointer_group.ok_or_else(|| {
            Error::argument(
                "shared_pointer",
                "the file was opened without one; say which with OpenOptions::shared_pointer",
            )
        })
    }

    /// Moves the shared pointer and says where it stood.
    fn move_shared(&self, lane: &mut Lane, how: PointerMove, amount: u64) -> Result<u64> {
        let group = self.group()?;
        self.open.has_used_pointer.store(true, Ordering::Release);
        // The owner answers a question only if none of this client with a higher number came before.
        let _ordered = lock(&self.open.session.ordered);
        let request = self.open.session.number();
        let make = |view| MovePointer {
            view,
            group,
            request,
            how,
            amount,
        };
        let mut moved = self.open.ask_owner(lane, &self.open.whole, make);
        if matches!(&moved, Err(e) if e.status() == Status::BadHandle) {
            // An owner that was restarted knows nobody; the pointer stands where it was last seen.
            let position = self.open.pointer_at.load(Ordering::Relaxed);
            self.open
                .ask_owner(lane, &self.open.whole, |view| JoinPointer {
                    view,
                    group,
                    position,
                })?;
            moved = self.open.ask_owner(lane, &self.open.whole, make);
        }
        if let Ok(before) = moved {
            let now = match how {
                PointerMove::To => amount,
                PointerMove::Add | PointerMove::Stay => before.saturating_add(amount),
            };
            self.open.pointer_at.store(now, Ordering::Relaxed);
        }
        moved
    }

    /// Reads at the shared pointer and moves it by the length of the buffer.
    pub fn read_shared(&self, buffer: &mut [u8]) -> Result<usize> {
        self.open.check_right(Rights::READ)?;
        let len = buffer.len() as u64;
        let at = self
            .open
            .session
            .with_lane(|lane| self.move_shared(lane, PointerMove::Add, len))?;
        self.read_at(at, buffer)
    }

    /// Writes at the shared pointer and moves it.
    pub fn write_shared(&self, bytes: &[u8]) -> Result<usize> {
        self.open.check_right(Rights::WRITE)?;
        let len = bytes.len() as u64;
        let at = self
            .open
            .session
            .with_lane(|lane| self.move_shared(lane, PointerMove::Add, len))?;
        self.write_at(at, bytes)
    }

    /// Moves the shared pointer, in view bytes; where it stands then.
    pub fn seek_shared(&self, to: SeekFrom) -> Result<u64> {
        self.open.check()?;
        let to = self.target(to, || self.position_shared())?;
        self.open
            .session
            .with_lane(|lane| self.move_shared(lane, PointerMove::To, to))?;
        Ok(to)
    }

    /// Whether this handle has used the shared pointer. One that no handle has used is at the beginning.
    pub fn has_used_shared_pointer(&self) -> bool {
        self.open.has_used_pointer.load(Ordering::Acquire)
    }

    /// Where the shared pointer stands.
    pub fn position_shared(&self) -> Result<u64> {
        self.open.check()?;
        self.open
            .session
            .with_lane(|lane| self.move_shared(lane, PointerMove::Stay, 0))
    }

    /// Moves the shared pointer on by so many view bytes; where it stood. What is between is the caller's.
    pub fn advance_shared(&self, by: u64) -> Result<u64> {
        self.open.check()?;
        self.open
            .session
            .with_lane(|lane| self.move_shared(lane, PointerMove::Add, by))
    }

    /// Writes behind the end of the file, wherever that is by then; the offset in the file.
    pub fn append(&self, bytes: &[u8]) -> Result<u64> {
        self.open.check_right(Rights::WRITE)?;
        let _gate = self.beside();
        let whole = &self.open.whole;
        self.open.session.with_lane(|lane| {
            // A truncate voids what was reserved before it; then the end is elsewhere.
            for _ in 0..MOST_RESERVATIONS {
                let (request, reserved) = {
                    let _ordered = lock(&self.open.session.ordered);
                    let request = self.open.session.number();
                    let make = |view| Reserve {
                        view,
                        request,
                        len: bytes.len() as u64,
                    };
                    (request, self.open.ask_owner(lane, whole, make)?)
                };
                crash_point("client_in_append");
                let how = How {
                    reserved_epoch: Some(reserved.epoch),
                    ..How::default()
                };
                let written = self
                    .open
                    .write_range(lane, whole, reserved.offset, bytes, how);
                let end = match &written {
                    Ok(n) => reserved.offset + *n as u64,
                    Err(Error::Partial { confirmed, .. }) => reserved.offset + confirmed,
                    Err(_) => reserved.offset,
                };
                let is_counted = self.open.tell_size(lane, whole, |view| Appended {
                    view,
                    request,
                    epoch: reserved.epoch,
                    end,
                });
                match written {
                    Err(e) if e.status() == Status::StaleEpoch => {
                        self.open.ask_size(lane)?;
                        continue;
                    }
                    other => other?,
                };
                if is_counted? {
                    if Arc::ptr_eq(&self.open.current(), whole) {
                        self.open.record(true, reserved.offset, &Ok(bytes.len()));
                    }
                    return Ok(reserved.offset);
                }
            }
            Err(Error::Refused {
                status: Status::Busy,
                text: "the file is truncated all the time; append again".into(),
                server: None,
            })
        })
    }

    /// Begins to read; the buffer comes back with the [`Request`].
    pub fn read_at_nonblocking(&self, offset: u64, buffer: Vec<u8>) -> Request {
        nonblocking::read(self, offset, buffer)
    }

    /// Begins to write; the buffer comes back with the [`Request`].
    pub fn write_at_nonblocking(&self, offset: u64, bytes: impl Into<Buffer>) -> Request {
        nonblocking::write(self, offset, bytes.into())
    }

    /// The size of the file, from the server that owns it.
    pub fn size(&self) -> Result<u64> {
        self.open.check()?;
        self.open
            .session
            .with_lane(|lane| Ok(self.open.ask_size(lane)?.size))
    }

    /// Sets the size. What is cut off is gone; what is added reads as zeros.
    pub fn resize(&self, size: u64) -> Result<()> {
        self.open.check_right(Rights::WRITE)?;
        check_size(size)?;
        let whole = &self.open.whole;
        // All attempts have one number: what others have written after the first is not cut by the second.
        let request = self.open.session.number();
        self.open.session.with_lane(|lane| {
            let heard = self.open.ask_owner(lane, whole, |view| Truncate {
                view,
                handle: self.open.handle(),
                to: size,
                request,
            })?;
            self.open.heard_size(heard);
            self.open.void_ahead();
            Ok(())
        })
    }

    /// Commits space for the bytes below `size`, and grows the file to it if it is shorter.
    pub fn preallocate(&self, size: u64) -> Result<()> {
        self.open.check_right(Rights::WRITE)?;
        check_size(size)?;
        let whole = &self.open.whole;
        self.open.session.with_lane(|lane| {
            loop {
                let epoch = self.open.ask_size(lane)?.epoch;
                let make = |view| Preallocate { view, epoch, size };
                match self.open.ask_all(lane, whole, make, |_, ()| {}) {
                    Err(e) if e.status() == Status::StaleEpoch => continue,
                    other => other?,
                }
                if self.open.grow(lane, whole, epoch, size)? {
                    return Ok(());
                }
            }
        })
    }

    /// Makes everything written to the file so far durable, where the stores can; says whether they
    /// can. Bytes written by this handle that died with a server or its host since are reported as
    /// [`Error::LostWrites`], once, as by `fsync`: whoever wrote them has to do it again. Each handle hears of its own
    /// writes; what other handles have written is made durable as far as the servers have it.
    pub fn sync(&self) -> Result<Synced> {
        self.open.check()?;
        self.open.void_own_ahead();
        self.open.session.with_lane(|lane| {
            let synced = self.open.sync(lane);
            self.open.hand_over_at_sync(lane);
            synced
        })
    }

    /// Enters or leaves atomic mode.
    pub fn set_atomic(&self, is_atomic: bool) -> Result<()> {
        self.open.check()?;
        let _gate = self.alone();
        self.open.void_own_ahead();
        self.open.quick.clear();
        let seen = self.open.current();
        self.open.session.with_lane(|lane| {
            if is_atomic {
                return self.admit(lane, &seen);
            }
            if lock(&self.open.lease).take().is_none() {
                return Ok(());
            }
            self.open.ask_owner(lane, &seen, |view| LeaveAtomic {
                view,
                handle: self.open.handle(),
            })
        })
    }

    /// Whether the handle is in atomic mode.
    pub fn is_atomic(&self) -> bool {
        lock(&self.open.lease).is_some()
    }

    /// The hints of this handle.
    pub fn hints(&self) -> Hints {
        lock(&self.open.hints).clone()
    }

    /// Adds hints, replacing those of the same name. Waits for accesses under way. Those that count, of
    /// these and of others, are [`File::hints`]; what became of each tells [`File::hint_report`].
    pub fn set_hints(&self, hints: &Hints) -> Result<()> {
        self.open.check()?;
        let gate = self.alone();
        self.open.set_hints(hints);
        drop(gate);
        self.act_on(hints);
        Ok(())
    }

    /// Makes sure that the service is there, as far as the connection to its metadata manager says; sends nothing while
    /// that stands, and waits for a service that is away as any access does.
    pub fn check_service(&self) -> Result<()> {
        let session = &self.open.session;
        session.with_lane(|lane| session.demand_manager(lane))
    }

    /// How the last access of this handle went: bytes, end of file, phases. Sends nothing.
    pub fn last_access(&self) -> Phases {
        let collective = Collective::of(self.open.quick.last_collective());
        match self.open.quick.last_bytes() {
            0 => Phases {
                collective,
                ..lock(&self.open.phases).clone()
            },
            bytes => Phases {
                requested: bytes,
                moved: bytes,
                is_direct: true,
                collective,
                ..Phases::default()
            },
        }
    }

    /// Space that the file takes at all its servers.
    pub fn allocated(&self) -> Result<u64> {
        self.open.check()?;
        let mut sum = 0;
        self.open.session.with_lane(|lane| {
            self.open.ask_all(
                lane,
                &self.open.whole,
                |view| Allocated { view },
                |_, bytes| sum += bytes,
            )
        })?;
        Ok(sum)
    }

    /// Compares everything that is stored of the file with its checksums.
    pub fn scrub(&self) -> Result<Scrubbed> {
        self.open.check_right(Rights::READ)?;
        let mut all = Scrubbed {
            blocks: 0,
            damaged: 0,
        };
        self.open.session.with_lane(|lane| {
            self.open.ask_all(
                lane,
                &self.open.whole,
                |view| Scrub { view },
                |_, part: Scrubbed| {
                    all.blocks += part.blocks;
                    all.damaged += part.damaged;
                },
            )
        })?;
        Ok(all)
    }

    /// Closes the file after its non-blocking operations are done. Everything fails after that;
    /// closing again does nothing. Nothing is made durable but the size. Bytes that were not synced and died with a server
    /// or its host are reported as [`Error::LostWrites`], as far as the servers can be asked.
    pub fn close(&self) -> Result<()> {
        self.open.close()
    }

    pub(crate) fn beside(&self) -> RwLockReadGuard<'_, ()> {
        self.open.gate.read().unwrap_or_else(|e| e.into_inner())
    }

    /// Alone with the handle, once non-blocking operations and accesses of other threads are done.
    pub(crate) fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.open.pending.wait();
        self.open.gate.write().unwrap_or_else(|e| e.into_inner())
    }
}

/// A view in the layout language, for an array or plain bytes.
pub(crate) fn view_of_text(
    array: Option<&ArrayType>,
    displacement: u64,
    text: &str,
) -> Result<View> {
    let layout: Layout = text.parse()?;
    let applied = match array {
        Some(array) => layout.on_array(array)?,
        None => layout.on_bytes()?,
    };
    if applied.count() != 1 {
        return Err(Error::argument(
            "view",
            format!(
                "`{layout}` has {} elements; pick one, as in `{layout} [0]`",
                applied.count()
            ),
        ));
    }
    let view = View::new(
        FileOffset(displacement),
        applied.period(),
        applied.element(0)?,
    )?;
    Ok(view)
}

fn check_size(size: u64) -> Result<()> {
    if size <= falls::MAX_OFFSET {
        return Ok(());
    }
    Err(Error::argument("size", "is beyond 2^63 - 1"))
}
