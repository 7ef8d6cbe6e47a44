//! An open file: views, pointers, and the operations of users.
//!
//! Offsets are in bytes of the handle's view. Threads may share a handle; accesses run beside each
//! other, each in the thread that asked for it, and only a change of the view, the mode or the hints
//! waits for those under way. State calls ([`File::position`], [`File::view`], [`File::last_access`], ...)
//! send nothing.
//!
//! Left to others: described memory and how bytes travel (`access`), threads for non-blocking
//! operations (`nonblocking`).

pub(crate) mod atomic;
pub(crate) mod expected;
pub(crate) mod handle;
pub(crate) mod identity;
pub(crate) mod known;
pub(crate) mod life;
pub(crate) mod nonblocking;
pub(crate) mod options;
pub(crate) mod pointers;
pub(crate) mod punch;
pub(crate) mod relayout;
pub(crate) mod settings;
pub(crate) mod subfile;
pub(crate) mod unsynced;
pub(crate) mod view;

use std::ops::Deref;
use std::sync::Arc;

use control::moves::crash_point;
use kernels::SharedBytes;
use layout::{ArrayType, FileOffset, Layout, View};
use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use wire::message::file::*;
use wire::{FileId, HandleId, LayoutState, Rights, ServerId, Status};

use crate::access::memory::{Direction, Memory, Run};
use crate::access::phases::Phases;
use crate::access::request::{How, Request};
use crate::collective::strategy::Collective;
use crate::error::{Error, Result};
use crate::file::handle::Handle;
use crate::file::nonblocking::{Buffer, Pending};
use crate::file::options::OpenOptions;
use crate::file::unsynced::SyncReport;
use crate::file::view::{HandleView, is_whole};
use crate::hints::Hints;

/// Times an append reserves a place anew.
const MOST_RESERVATIONS: u32 = 64;

/// An open file. Clones are the same handle, and threads may share it. It is closed when the last
/// clone is dropped, or by [`File::close`], which reports errors.
#[derive(Clone, Debug)]
pub struct File(Arc<Handle>);

impl Deref for File {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.0
    }
}

impl File {
    pub(crate) fn new(handle: Arc<Handle>) -> File {
        File(handle)
    }

    /// What the options want done right after opening.
    pub(crate) fn begin(&self, options: &OpenOptions) -> Result<()> {
        if let Some(group) = self.pointers.group {
            self.session
                .with_lane(|lane| self.join_pointer(lane, group))?;
        }
        if options.atomic {
            self.set_atomic(true)?;
        }
        self.act_on(&options.hints);
        if self.gateway.is_some() {
            self.session.with_lane(|lane| {
                self.remap(lane);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The file's number.
    pub fn id(&self) -> FileId {
        self.identity.file
    }

    /// The path it was opened by; it may have another by now.
    pub fn path(&self) -> &str {
        &self.identity.path
    }

    /// The handle, as the metadata manager knows it at present.
    pub fn handle(&self) -> HandleId {
        self.handle_id()
    }

    /// What the handle is for.
    pub fn rights(&self) -> Rights {
        self.identity.rights
    }

    /// Whether the file was created by this opening.
    pub fn is_new(&self) -> bool {
        self.identity.is_new
    }

    /// The array the file holds, if its creator said so.
    pub fn array(&self) -> Option<&ArrayType> {
        self.identity.array.as_ref()
    }

    /// Where the bytes of the file are, as last heard.
    pub fn layout(&self) -> Arc<LayoutState> {
        self.known.state()
    }

    /// Sets the view of this handle. Its cost does not depend on the size of the file. The pointer of
    /// the handle goes to the beginning.
    pub fn set_view(&self, view: &View) -> Result<()> {
        self.check()?;
        self.check_whole("view")?;
        let _gate = self.alone();
        self.set_view_alone(view)
    }

    /// Sets the view for a caller that is alone with the handle.
    pub(crate) fn set_view_alone(&self, view: &View) -> Result<()> {
        self.send_own_behind();
        let seen = match is_whole(view) {
            true => self.views.whole.clone(),
            false => HandleView::new(&self.session, view),
        };
        self.session.with_lane(|lane| {
            if self.is_atomic() {
                self.admit(lane, &seen)?;
            }
            self.replace_view(lane, seen);
            self.void_own_ahead();
            *self.pointers.own.lock() = 0;
            self.remap(lane);
            Ok(())
        })
    }

    /// Sets a view in the layout language, applied to the file's array or to plain bytes, from the
    /// first byte of the file on: `(block, *) onto 4 [2]`, `slice[0:10, 3]`.
    pub fn set_view_text(&self, text: &str) -> Result<()> {
        self.set_view_text_at(0, text)
    }

    /// Sets a view in the layout language, from byte `displacement` of the file on.
    pub fn set_view_text_at(&self, displacement: u64, text: &str) -> Result<()> {
        self.check()?;
        self.check_whole("view")?;
        let view = view_of_text(self.array(), displacement, text)?;
        let _gate = self.alone();
        self.set_view_alone(&view)?;
        if displacement == 0 {
            self.recording.set_text(text);
        }
        Ok(())
    }

    /// Says what the next operation will access, in view bytes. A client that talks through one server asks
    /// it which one is best for that, and uses it from the next operation on. Others send nothing. An access
    /// that comes otherwise is as right as ever.
    pub fn hint_next(&self, offset: u64, size: u64) -> Result<()> {
        self.check()?;
        let _gate = self.beside();
        self.session
            .with_lane(|lane| self.choose_for(lane, offset, size))
    }

    /// Says what the operation after the next one will access. It travels with the next one, without a message
    /// of its own.
    pub fn hint_following(&self, offset: u64, size: u64) -> Result<()> {
        self.check()?;
        self.expect_following(offset, size);
        Ok(())
    }

    /// The server that the next operation goes to, for a client that talks through one.
    pub fn server(&self) -> Option<ServerId> {
        self.server_now()
    }

    /// The view of this handle.
    pub fn view(&self) -> View {
        self.views.current().view.clone()
    }

    /// Writes behind the end of the file, wherever that is by then; the offset in the file.
    pub fn append(&self, bytes: &[u8]) -> Result<u64> {
        self.append_run(bytes.into())
    }

    pub(crate) fn append_run(&self, bytes: SharedBytes<'_>) -> Result<u64> {
        self.check_right(Rights::WRITE)?;
        self.send_behind();
        let _gate = self.beside();
        let whole = &self.views.whole;
        self.session.with_lane(|lane| {
            // A truncate voids what was reserved before it; then the end is elsewhere.
            for _ in 0..MOST_RESERVATIONS {
                let (request, reserved) = {
                    let _ordered = self.session.open_files.ordered.lock();
                    let request = self.session.number();
                    let make = |view| Reserve {
                        view,
                        request,
                        len: bytes.len() as u64,
                    };
                    (request, self.ask_owner(lane, whole, make)?)
                };
                crash_point("client_in_append");
                let how = How {
                    reserved_epoch: Some(reserved.epoch),
                    ..How::default()
                };
                let memory = Memory::of(Run::From(bytes));
                let access = Request::of(whole, reserved.offset, memory).with(how);
                let written = self.access(lane, access);
                let end = match &written {
                    Ok(n) => reserved.offset + *n as u64,
                    Err(Error::Partial { confirmed, .. }) => reserved.offset + confirmed,
                    Err(_) => reserved.offset,
                };
                let is_counted = self.tell_size(lane, whole, |view| FinishAppend {
                    view,
                    request,
                    epoch: reserved.epoch,
                    end,
                });
                match written {
                    Err(e) if e.status() == Status::StaleEpoch => {
                        self.ask_size(lane)?;
                        continue;
                    }
                    other => other?,
                };
                if is_counted? {
                    if Arc::ptr_eq(&self.views.current(), whole) {
                        self.record(Direction::Write, reserved.offset, &Ok(bytes.len()));
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

    /// Begins to read; the buffer comes back with the [`Pending`] operation.
    pub fn read_at_nonblocking(&self, offset: u64, buffer: Vec<u8>) -> Pending {
        nonblocking::read(self, offset, buffer)
    }

    /// Begins to write; the buffer comes back with the [`Pending`] operation.
    pub fn write_at_nonblocking(&self, offset: u64, bytes: impl Into<Buffer>) -> Pending {
        nonblocking::write(self, offset, bytes.into())
    }

    /// The size of the file, from the server that owns it.
    pub fn size(&self) -> Result<u64> {
        self.check()?;
        self.send_behind();
        self.session.with_lane(|lane| Ok(self.ask_size(lane)?.size))
    }

    /// Sets the size. What is cut off is gone; what is added reads as zeros.
    pub fn resize(&self, size: u64) -> Result<()> {
        self.check_whole("size")?;
        self.check_right(Rights::WRITE)?;
        check_size(size)?;
        self.send_behind();
        let whole = &self.views.whole;
        // All attempts have one number: what others have written after the first is not cut by the second.
        let request = self.session.number();
        self.session.with_lane(|lane| {
            let heard = self.ask_owner(lane, whole, |view| Truncate {
                view,
                handle: self.handle_id(),
                to: size,
                request,
            })?;
            self.known.heard_size(heard);
            self.void_ahead();
            Ok(())
        })
    }

    /// Commits space for the bytes below `size`, and grows the file to it if it is shorter.
    pub fn preallocate(&self, size: u64) -> Result<()> {
        self.check_whole("size")?;
        self.check_right(Rights::WRITE)?;
        check_size(size)?;
        self.send_behind();
        let whole = &self.views.whole;
        self.session.with_lane(|lane| {
            loop {
                let epoch = self.ask_size(lane)?.epoch;
                let make = |view| Preallocate { view, epoch, size };
                match self.ask_all(lane, whole, make, |_, ()| {}) {
                    Err(e) if e.status() == Status::StaleEpoch => continue,
                    other => other?,
                }
                if self.grow(lane, whole, epoch, size)? {
                    return Ok(());
                }
            }
        })
    }

    /// Makes everything written to the file so far durable, where the stores can; says whether they
    /// can. Bytes written by this handle that died with a server or its host since are reported as
    /// [`Error::LostWrites`], once, as by `fsync`: the program has to write them again. Each handle hears of its own
    /// writes, also of those that another rank of its team has sent to the servers; what other handles have written is
    /// made durable as far as the servers have it.
    pub fn sync(&self) -> Result<SyncReport> {
        self.check()?;
        self.send_behind();
        self.take_behind_failure()?;
        self.void_own_ahead();
        self.session.with_lane(|lane| {
            let synced = self.sync_servers(lane);
            self.hand_over_at_sync(lane);
            synced
        })
    }

    /// Enters or leaves atomic mode.
    pub fn set_atomic(&self, is_atomic: bool) -> Result<()> {
        self.check()?;
        let _gate = self.alone();
        self.send_own_behind();
        self.void_own_ahead();
        self.direct.quick.clear();
        let seen = self.views.current();
        self.session.with_lane(|lane| {
            if is_atomic {
                return self.admit(lane, &seen);
            }
            if self.lease.lock().take().is_none() {
                return Ok(());
            }
            self.ask_owner(lane, &seen, |view| LeaveAtomic {
                view,
                handle: self.handle_id(),
            })
        })
    }

    /// Whether the handle is in atomic mode.
    pub fn is_atomic(&self) -> bool {
        self.lease.lock().is_some()
    }

    /// The hints of this handle.
    pub fn hints(&self) -> Hints {
        self.settings.hints.lock().clone()
    }

    /// Adds hints, replacing those of the same name. Waits for accesses under way. Those that count, of
    /// these and of others, are [`File::hints`]; what became of each tells [`File::hint_report`].
    pub fn set_hints(&self, hints: &Hints) -> Result<()> {
        self.check()?;
        let gate = self.alone();
        self.take_hints(hints);
        drop(gate);
        self.act_on(hints);
        Ok(())
    }

    /// Makes sure that the service is there, as far as the connection to its metadata manager says; sends nothing while
    /// that stands, and waits for a service that is away as any access does.
    pub fn check_service(&self) -> Result<()> {
        let session = &self.session;
        session.with_lane(|lane| session.demand_manager(lane))
    }

    /// How the last access of this handle went: bytes, end of file, phases. Sends nothing.
    pub fn last_access(&self) -> Phases {
        let collective = Collective::of(self.direct.quick.last_collective());
        match self.direct.quick.last_bytes() {
            0 => Phases {
                collective,
                ..self.phases.lock().clone()
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
        self.check()?;
        self.send_behind();
        let mut sum = 0;
        self.session.with_lane(|lane| {
            self.ask_all(
                lane,
                &self.views.whole,
                |view| Allocation { view },
                |_, bytes| sum += bytes,
            )
        })?;
        Ok(sum)
    }

    /// Compares everything that is stored of the file with its checksums.
    pub fn scrub(&self) -> Result<ScrubAnswer> {
        self.check_right(Rights::READ)?;
        let mut all = ScrubAnswer {
            blocks: 0,
            damaged: 0,
        };
        self.session.with_lane(|lane| {
            self.ask_all(
                lane,
                &self.views.whole,
                |view| Scrub { view },
                |_, part: ScrubAnswer| {
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
        self.finish()
    }

    pub(crate) fn beside(&self) -> RwLockReadGuard<'_, ()> {
        self.life.gate.read()
    }

    /// Alone with the handle, once non-blocking operations and accesses of other threads are done.
    pub(crate) fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.life.operations.wait();
        self.life.gate.write()
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
