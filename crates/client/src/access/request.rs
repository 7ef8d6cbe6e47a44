//! A request: a range of a view, memory and a direction; and its attempts, way by way, until one has moved the bytes.
//!
//! ```text
//!  Request  ->  how much is there?  ->  Attempt: plan, lots  ->  direct  ->  message  ->  growth  ->  moved
//!                 ^                                                 |           |           |
//!                 |                                     NotThisWay -+->         |           |
//!                 +------------------------------------------------------ Again, cut off ---+
//! ```
//!
//! Reading and writing differ in what the size of the file means to them: a read ends there, a write moves it.
//!
//! Invariants: an attempt is planned with one layout state, one epoch and one size; what servers refuse because of
//! another is attempted again. A request that was packed in parts counts as one.
//!
//! Left to others: moving bytes (the ways), what can be repaired and how (`file::handle`).

use std::sync::Arc;
use std::time::Instant;

use layout::FileSpan;
use wire::Status;
use wire::message::file::SizeIs;

use crate::access::direct::transfer::Directly;
use crate::access::memory::{Direction, Memory};
use crate::access::message::ByMessage;
use crate::access::phases::Phases;
use crate::access::plan::Plan;
use crate::access::{access_packed, file_range};
use crate::error::{Error, Result};
use crate::file::handle::Handle;
use crate::file::view::HandleView;
use crate::session::lane::Lane;

/// How a request is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct How {
    /// The lease or lock number of an atomic handle.
    pub(crate) lease: u64,
    /// The write goes to a place that was reserved in this epoch, and grows nothing by itself.
    pub(crate) reserved_epoch: Option<u64>,
    /// The bytes were collected in this epoch: in another one they are refused, not repeated.
    pub(crate) taken_epoch: Option<u64>,
    /// It is for a buffer of the handle, and no access of the program.
    pub(crate) is_ahead: bool,
}

/// See the [module](self).
pub(crate) struct Request<'a> {
    seen: &'a HandleView,
    /// Its first byte, in view space.
    at: u64,
    /// As many bytes, and which way they move.
    memory: Memory<'a>,
    how: How,
}

impl How {
    /// The epoch that the bytes belong to, if they do not belong to whichever there is.
    pub(super) fn fixed_epoch(&self) -> Option<u64> {
        self.reserved_epoch.or(self.taken_epoch)
    }
}

impl<'a> Request<'a> {
    pub(crate) fn of(seen: &'a HandleView, at: u64, memory: Memory<'a>) -> Request<'a> {
        Request {
            seen,
            at,
            memory,
            how: How::default(),
        }
    }

    pub(crate) fn with(self, how: How) -> Request<'a> {
        Request { how, ..self }
    }
}

/// What an attempt does to the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// It ends inside the file, or where a place was reserved.
    Inside,
    /// It ends beyond the known size, and all its bytes are at the owner of the file: a message tells it at once.
    AtOwner,
    /// It ends beyond the known size; the owner has to be told when it is done, unless it asks the servers that have its bytes.
    Elsewhere,
}

/// One attempt at a request: what it was planned with. What each server has of it are the lots of the lane.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) plan: &'a Arc<Plan>,
    pub(super) seen: &'a HandleView,
    /// View offset and bytes.
    pub(super) lo: u64,
    pub(super) len: u64,
    /// From its first to its last byte in the file.
    pub(super) file: FileSpan,
    /// The truncate epoch, and the bytes of the file in it as far as is known.
    pub(super) epoch: u64,
    pub(super) size: u64,
    pub(super) direction: Direction,
    pub(super) growth: Growth,
    pub(super) how: How,
}

impl<'a> Attempt<'a> {
    pub(super) fn is_write(&self) -> bool {
        self.direction.is_write()
    }

    pub(super) fn grows(&self) -> bool {
        self.growth != Growth::Inside
    }

    /// It in parts of so many bytes at most, each with the bytes of the attempt before it.
    pub(super) fn parts(self, most: u64) -> impl Iterator<Item = (u64, Attempt<'a>)> {
        (0..self.len).step_by(most as usize).map(move |done| {
            let (lo, len) = (self.lo + done, (self.len - done).min(most));
            let file = match len == self.len {
                true => self.file,
                false => file_range(self.seen, lo, len).expect("inside the attempt"),
            };
            let part = Attempt {
                lo,
                len,
                file,
                ..self
            };
            (done, part)
        })
    }
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All its bytes were moved.
    Done,
    /// Something was repaired: another attempt may succeed.
    Again,
    /// The bytes cannot go this way.
    NotThisWay,
}

/// A way for the bytes of an attempt to go.
pub(super) trait Way {
    /// Moves the bytes that the lots of the lane say.
    fn go(
        &mut self,
        handle: &Handle,
        lane: &mut Lane,
        attempt: Attempt<'_>,
        memory: &mut Memory<'_>,
        phases: &mut Phases,
    ) -> Result<Outcome>;

    /// Whether the owner of the file knows of the growth by then.
    fn has_told(&self, growth: Growth) -> bool;
}

impl Handle {
    /// Moves the bytes of a request, directly where that can be, else by message; fewer than asked for only when reading
    /// at the end of the file. Keeps how it went as the last access of the handle.
    pub(crate) fn access(&self, lane: &mut Lane, request: Request<'_>) -> Result<usize> {
        let started = Instant::now();
        let (requested, direction) = (request.memory.len(), request.memory.direction());
        let is_ahead = request.how.is_ahead;
        let mut phases = match is_ahead {
            true => Phases::default(),
            false => self.begin_phases(),
        };
        let moved = self.access_counting(lane, request, &mut phases)?;
        phases.end(requested, moved, started);
        self.record_servers(direction, &phases);
        if !is_ahead {
            self.keep_phases(phases);
        }
        Ok(moved)
    }

    /// Moves the bytes of a request, and adds to the phases how it went.
    pub(crate) fn access_counting(
        &self,
        lane: &mut Lane,
        mut request: Request<'_>,
        phases: &mut Phases,
    ) -> Result<usize> {
        let is_write = request.memory.direction().is_write();
        if is_write {
            self.void_ahead();
        }
        let moved = self.attempt_all(lane, &mut request, phases);
        if is_write {
            self.void_ahead();
        }
        moved
    }

    fn attempt_all(
        &self,
        lane: &mut Lane,
        request: &mut Request<'_>,
        phases: &mut Phases,
    ) -> Result<usize> {
        let mut direct = Directly::new(self, &request.how, request.memory.direction());
        if !request.memory.is_run() && !direct.takes_scattered(request.memory.len()) {
            return self.attempt_packed(lane, request, phases);
        }
        let mut message = ByMessage::new(self, lane);
        loop {
            let (len, size) = self.bytes_there(lane, request)?;
            if len == 0 {
                return Ok(0);
            }
            let plan = message.plan(self, lane, request.seen)?;
            self.check_subfile(&plan.state)?;
            let attempt = self.plan_attempt(lane, request, &plan, len, size, phases)?;
            let mut memory = request.memory.first(len);
            let mut way: &mut dyn Way = &mut direct;
            let mut outcome = way.go(self, lane, attempt, &mut memory, phases)?;
            if outcome == Outcome::NotThisWay {
                way = &mut message;
                outcome = way.go(self, lane, attempt, &mut memory, phases)?;
            }
            match outcome {
                Outcome::Done => {}
                Outcome::Again => continue,
                Outcome::NotThisWay => return self.attempt_packed(lane, request, phases),
            }
            if !self.end_growth(lane, attempt, way)? {
                // Cut off by another client before its end was known: it counts as written after that.
                message.forget_progress(lane);
                continue;
            }
            direct.ask_afterwards(self, lane, attempt);
            return Ok(len as usize);
        }
    }

    /// Moves the bytes of scattered memory through packed memory.
    fn attempt_packed(
        &self,
        lane: &mut Lane,
        request: &mut Request<'_>,
        phases: &mut Phases,
    ) -> Result<usize> {
        let Request {
            seen,
            at,
            memory,
            how,
        } = request;
        access_packed(lane, *at, memory, |lane, at, run| {
            let mut packed = Request::of(seen, at, Memory::of(run)).with(*how);
            self.attempt_all(lane, &mut packed, phases)
        })
    }

    /// How many bytes of a request there are, and the size and epoch that say so.
    fn bytes_there(&self, lane: &mut Lane, request: &Request<'_>) -> Result<(u64, SizeIs)> {
        let (size, wanted) = (self.known.size(), request.memory.len());
        if request.memory.direction().is_write() {
            return Ok((wanted, size));
        }
        let view = &request.seen.view;
        let shown = |size: &SizeIs| view.len_within(size.size).saturating_sub(request.at);
        let size = match shown(&size) < wanted {
            true => self.ask_size(lane)?,
            false => size,
        };
        Ok((wanted.min(shown(&size)), size))
    }

    /// Plans an attempt, and gives every server its lot.
    fn plan_attempt<'a>(
        &self,
        lane: &mut Lane,
        request: &Request<'a>,
        plan: &'a Arc<Plan>,
        len: u64,
        size: SizeIs,
        phases: &mut Phases,
    ) -> Result<Attempt<'a>> {
        let &Request { seen, at, how, .. } = request;
        let direction = request.memory.direction();
        let file = file_range(seen, at, len)?;
        lane.work.spread(plan, len, file, phases)?;
        let is_beyond = file.end.0 > size.size && how.reserved_epoch.is_none();
        let growth = match lane.work.lots() {
            _ if direction == Direction::Read || !is_beyond => Growth::Inside,
            [lot] if lot.place.server == plan.state.owner.server => Growth::AtOwner,
            _ => Growth::Elsewhere,
        };
        Ok(Attempt {
            plan,
            seen,
            lo: at,
            len,
            file,
            epoch: how.fixed_epoch().unwrap_or(size.epoch),
            size: size.size,
            direction,
            growth,
            how,
        })
    }

    /// Takes note of where a write has ended, and tells the owner if the way has not; false if the file was cut off
    /// meanwhile.
    fn end_growth(&self, lane: &mut Lane, attempt: Attempt<'_>, way: &dyn Way) -> Result<bool> {
        let Attempt {
            seen, epoch, file, ..
        } = attempt;
        if !attempt.grows() {
            return Ok(true);
        }
        if !way.has_told(attempt.growth) && !self.grow(lane, seen, epoch, file.end.0)? {
            return match attempt.how.taken_epoch {
                None => Ok(false),
                Some(_) => Err(Error::Refused {
                    status: Status::StaleEpoch,
                    text:
                        "the file was truncated after these bytes were collected; write them again"
                            .into(),
                    server: None,
                }),
            };
        }
        self.known.grown(epoch, file.end.0);
        Ok(true)
    }

    /// Phases to be filled, with the list of the last access.
    pub(super) fn begin_phases(&self) -> Phases {
        let mut servers = std::mem::take(&mut self.phases.lock().servers);
        servers.clear();
        Phases {
            servers,
            ..Phases::default()
        }
    }

    pub(crate) fn keep_phases(&self, phases: Phases) {
        self.direct.quick.was_not_last();
        self.session.open_files.calibrated.compare(&phases);
        *self.phases.lock() = phases;
    }
}
