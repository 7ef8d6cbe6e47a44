//! One request: a range of a view, memory, and a direction; and the ways it can go.
//!
//! ```text
//!  read_at, write_at, ...  ->  Memory  ->  quick?  ->  packed, buffered, appended?  ->  sieved?  ->  access
//!
//!  access   plan (which servers have which parts)  ->  direct?  ->  by message, or all to a gateway
//!             ^                                                          |
//!             +-------------- repair and repeat <------------------------+  stale layout, unknown view, busy, ...
//! ```
//!
//! | way | where | when |
//! |---|---|---|
//! | quick | `direct::quick` | a short access to memory that was found before |
//! | direct | `direct::transfer` | all its bytes are in memory that servers of this host share |
//! | message | `message`, `flow` | otherwise; scattered memory is packed, some MiB at a time |
//! | gateway | `gateway` | by message, whole, to the one server that the client talks to |
//! | sieved | `sieve` | when asked for |
//!
//! Reading and writing have one driver. They differ in what the size of the file means to them: a read ends there,
//! a write moves it.
//!
//! Invariants: a steady access allocates nothing; nothing is half sent when a connection fails.
//!
//! Left to others: the order of bytes (`plan::access`), views, sizes and repairs (`file`).

pub(crate) mod ahead;
pub(crate) mod direct;
pub(crate) mod flow;
pub(crate) mod gateway;
pub(crate) mod memory;
mod message;
pub(crate) mod phases;
pub(crate) mod places;
pub(crate) mod plan;
pub(crate) mod scattered;
pub(crate) mod sieve;
pub(crate) mod work;

use std::ops::Range;
use std::time::Instant;

use kernels::{SharedBytes, SharedBytesMut};
use layout::FileSpan;

use crate::access::direct::transfer::{LONG, Way};
use crate::access::flow::Terms;
use crate::access::memory::{Direction, Memory, Run};
use crate::access::message::Attempt;
use crate::access::phases::{Phases, ServerPhases};
use crate::access::places::Places;
use crate::access::work::Lot;
use crate::error::{Error, Result};
use crate::file::File;
use crate::file::handle::Handle;
use crate::file::view::HandleView;
use crate::transport::lane::Lane;
use crate::transport::patience::Patience;

/// Most bytes of scattered memory that are packed at a time to go by message.
const PACKED_BYTES: u64 = 8 << 20;

/// Bytes up to which scattered memory is packed beside the call.
const SMALL_BYTES: usize = 4096;

/// How an access is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct How {
    /// The lease or lock number of an atomic handle.
    pub(crate) lease: u64,
    /// The write goes to a place that was reserved in this epoch, and grows nothing by itself.
    pub(crate) reserved_epoch: Option<u64>,
    /// It is for the buffer of the handle, and no access of the program.
    pub(crate) is_ahead: bool,
}

impl File {
    /// Reads at an offset in view bytes; less than asked for only at the end of the file.
    #[inline]
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if self.move_quickly(offset, (&mut *buffer).into()) {
            return Ok(buffer.len());
        }
        self.access_slowly(offset, Memory::of(buffer))
    }

    /// Writes at an offset in view bytes. With [`OpenOptions::append`](crate::OpenOptions::append) it goes to the end
    /// instead.
    #[inline]
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<usize> {
        if self.move_quickly(offset, bytes.into()) {
            return Ok(bytes.len());
        }
        self.access_slowly(offset, Memory::of(bytes))
    }

    /// Reads at an offset in view bytes into memory that is one run.
    pub fn read_at_shared(&self, offset: u64, memory: SharedBytesMut<'_>) -> Result<usize> {
        self.access_at(offset, Memory::of(Run::Into(memory)))
    }

    /// Writes at an offset in view bytes from memory that is one run.
    pub fn write_at_shared(&self, offset: u64, memory: SharedBytes<'_>) -> Result<usize> {
        self.access_at(offset, Memory::of(Run::From(memory)))
    }

    /// Reads into described memory: byte j goes to `memory[origin + places.select(j)]`. What lies
    /// between the places is not touched.
    pub fn read_at_memory(
        &self,
        offset: u64,
        memory: SharedBytesMut<'_>,
        origin: usize,
        places: &Places,
    ) -> Result<usize> {
        self.access_at(offset, Memory::target(memory, origin, places)?)
    }

    /// Writes from described memory: byte j comes from `memory[origin + places.select(j)]`.
    pub fn write_at_memory(
        &self,
        offset: u64,
        memory: SharedBytes<'_>,
        origin: usize,
        places: &Places,
    ) -> Result<usize> {
        self.access_at(offset, Memory::source(memory, origin, places)?)
    }

    /// Reads or writes at an offset in view bytes, as the memory says; less than asked for only when reading at the end
    /// of the file.
    #[inline]
    pub fn access_at(&self, offset: u64, mut memory: Memory<'_>) -> Result<usize> {
        let len = memory.len() as usize;
        if let Some(run) = memory.run()
            && self.move_quickly(offset, run)
        {
            return Ok(len);
        }
        self.access_slowly(offset, memory)
    }

    /// Reads or writes piece by piece, each a range of view bytes, in whatever order they come: for patterns that go back
    /// or repeat, which are no view. How many bytes were moved; reading ends with the first piece that is short.
    pub fn access_in_pieces(
        &self,
        pieces: impl IntoIterator<Item = Range<u64>>,
        mut memory: Memory<'_>,
    ) -> Result<u64> {
        let mut moved = 0;
        for piece in pieces {
            let len = (piece.end - piece.start).min(memory.len() - moved);
            let n = self.access_at(piece.start, memory.part(moved, len))? as u64;
            moved += n;
            if n < len || moved == memory.len() {
                break;
            }
        }
        Ok(moved)
    }

    #[inline(never)]
    fn access_slowly(&self, offset: u64, mut memory: Memory<'_>) -> Result<usize> {
        let direction = memory.direction();
        self.check_right(direction.right())?;
        memory.check_overlap()?;
        let appends = direction.is_write() && self.is_append;
        let reads_ahead = !direction.is_write() && self.ahead.is_on();
        let Some(run) = memory.run() else {
            // What is short, goes to one place behind the end or comes from a buffer goes in one piece.
            return match memory.len() as usize {
                len @ ..=SMALL_BYTES => {
                    self.access_as_run(offset, &mut memory, &mut [0; SMALL_BYTES][..len])
                }
                len if appends || reads_ahead => {
                    self.access_as_run(offset, &mut memory, &mut vec![0; len])
                }
                _ => self.access_now(offset, &mut memory),
            };
        };
        if appends {
            let len = run.len();
            return self.append_run(run.to_send()).map(|_| len);
        }
        if let (true, Run::Into(into)) = (reads_ahead, run) {
            let len = into.len();
            if self.read_buffered(offset, into) {
                self.record(false, offset, &Ok(len));
                return Ok(len);
            }
            let read = self.access_now(offset, &mut memory)?;
            self.read_was_made(offset, read as u64);
            return Ok(read);
        }
        self.access_now(offset, &mut memory)
    }

    /// Moves the bytes of scattered memory by way of a run of as many bytes.
    fn access_as_run(
        &self,
        offset: u64,
        memory: &mut Memory<'_>,
        packed: &mut [u8],
    ) -> Result<usize> {
        match memory.direction() {
            Direction::Write => {
                memory.pack(0, (&mut *packed).into());
                self.write_at(offset, packed)
            }
            Direction::Read => {
                let read = self.read_at(offset, packed)?;
                memory.unpack(0, packed[..read].into());
                Ok(read)
            }
        }
    }

    /// Moves the bytes of a request by the strategy and in the mode of the handle.
    fn access_now(&self, offset: u64, memory: &mut Memory<'_>) -> Result<usize> {
        let _gate = self.beside();
        let seen = self.current();
        let direction = memory.direction();
        let done = self.session.with_lane(|lane| {
            if self.is_sieved(&seen, direction) {
                if let Some(run) = memory.run() {
                    return self.sieve(lane, &seen, offset, run);
                }
                return access_packed(lane, offset, memory, |lane, offset, run| {
                    self.sieve(lane, &seen, offset, run)
                });
            }
            let range = (offset, memory.len());
            self.guarded(lane, &seen, range, direction.is_write(), |lane, how| {
                self.access(lane, &seen, offset, memory, how)
            })
        });
        self.record(direction.is_write(), offset, &done);
        done
    }
}

/// Moves the bytes of scattered memory through packed memory of the lane, run by run.
fn access_packed(
    lane: &mut Lane,
    offset: u64,
    memory: &mut Memory<'_>,
    mut access: impl FnMut(&mut Lane, u64, Run<'_>) -> Result<usize>,
) -> Result<usize> {
    let mut done = 0;
    while done < memory.len() {
        let n = (memory.len() - done).min(PACKED_BYTES) as usize;
        let mut packed = std::mem::take(&mut lane.work.packed);
        if packed.len() < n {
            packed.resize(n, 0);
        }
        let part = &mut packed[..n];
        let moved = match memory.direction() {
            Direction::Write => {
                memory.pack(done, (&mut *part).into());
                access(lane, offset + done, (&*part).into())
            }
            Direction::Read => {
                let read = access(lane, offset + done, (&mut *part).into());
                if let Ok(read) = read {
                    memory.unpack(done, part[..read].into());
                }
                read
            }
        };
        lane.work.packed = packed;
        match moved {
            Ok(moved) => {
                done += moved as u64;
                if moved < n {
                    break;
                }
            }
            Err(Error::Partial {
                confirmed,
                failures,
            }) => {
                return Err(Error::Partial {
                    confirmed: done + confirmed,
                    failures,
                });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(done as usize)
}

impl Handle {
    /// Moves the bytes of a request, directly where that can be, else by message; fewer than asked for only when reading
    /// at the end of the file.
    pub(crate) fn access(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        lo: u64,
        memory: &mut Memory<'_>,
        how: How,
    ) -> Result<usize> {
        let is_write = memory.direction().is_write();
        if is_write {
            self.void_ahead();
        }
        let moved = self.access_anyhow(lane, seen, lo, memory, how);
        if is_write {
            self.void_ahead();
        }
        moved
    }

    fn access_anyhow(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        lo: u64,
        memory: &mut Memory<'_>,
        how: How,
    ) -> Result<usize> {
        let wanted = memory.len();
        let is_write = memory.direction().is_write();
        let may_ask = self.may_go_directly(&how);
        let access_run = |lane: &mut Lane, lo, run: Run<'_>| {
            self.access_anyhow(lane, seen, lo, &mut Memory::of(run), how)
        };
        let may_be_scattered = may_ask && wanted >= LONG;
        if !may_be_scattered && !memory.is_run() {
            return access_packed(lane, lo, memory, access_run);
        }
        let started = Instant::now();
        let mut phases = Phases {
            requested: wanted,
            servers: match how.is_ahead {
                true => Vec::new(),
                false => self.take_servers(),
            },
            ..Phases::default()
        };
        let mut patience = Patience::new(&self.session.options);
        lane.work.forget_progress();
        let mut planned = None;
        let mut may_go_directly = may_ask;
        let moved = loop {
            let mut size = self.known_size();
            let mut len = wanted;
            if !is_write {
                let shown = |size| seen.view.len_within(size).saturating_sub(lo);
                if shown(size.size) < wanted {
                    size = self.ask_size(lane)?;
                }
                len = wanted.min(shown(size.size));
            }
            if len == 0 {
                break 0;
            }
            let file = file_range(seen, lo, len)?;
            let epoch = how.reserved_epoch.unwrap_or(size.epoch);
            let must_grow = is_write && how.reserved_epoch.is_none() && file.end.0 > size.size;
            let through = self.through(lane, seen)?;
            let plan = through.plan(seen, &self.state());
            lane.work.replan(&mut planned, &plan, epoch, len);
            let is_owner_only = lane.work.spread(&plan, seen, lo, len, file, &mut phases)?
                && lane.work.lots()[0].place.server == plan.state.owner.server;
            let hints = self.limits();
            let size_told = if is_write {
                falls::MAX_OFFSET
            } else {
                size.size
            };
            let terms = Terms {
                plan: &plan,
                view: &seen.view,
                view_number: seen.number,
                base: lo,
                epoch,
                lease: how.lease,
                grows: must_grow && is_owner_only,
                is_reserved: how.reserved_epoch.is_some(),
                message_bytes: hints.0,
                rendezvous_bytes: hints.1,
                whole: through.terms(lo, len, size_told),
            };
            let way = Way {
                plan: &plan,
                seen,
                lo,
                len,
                epoch,
                writes: is_write,
                grows: must_grow,
            };
            let mut part = memory.first(len);
            let is_direct = std::mem::take(&mut may_go_directly)
                && self.time_directly(lane, way, &mut part, &mut phases);
            if !is_direct {
                let Some(mut run) = part.run() else {
                    return access_packed(lane, lo, memory, access_run);
                };
                match self.attempt(lane, seen, &terms, &mut run, &mut patience, &mut phases) {
                    Ok(Attempt::Done) => {}
                    Ok(Attempt::Again) => continue,
                    Err(error) if is_write && how.reserved_epoch.is_none() => {
                        return Err(self.settle(lane, seen, lo, epoch, error));
                    }
                    Err(error) => return Err(error),
                }
            }
            if must_grow {
                let is_told = is_owner_only && !is_direct;
                if !is_told && !self.grow(lane, seen, epoch, file.end.0)? {
                    // Cut off by another client before its end was known: it counts as written after that.
                    lane.work.forget_progress();
                    continue;
                }
                self.grown(epoch, file.end.0);
            }
            if may_ask && !is_direct {
                self.ask_afterwards(lane, way);
            }
            break len;
        };
        phases.moved = moved;
        self.record_servers(is_write, &phases);
        phases.is_end_of_file = moved < wanted;
        phases.total_ns = started.elapsed().as_nanos() as u64;
        if !how.is_ahead {
            self.keep_phases(phases);
        }
        Ok(moved as usize)
    }

    /// Goes directly if that can be, and notes how it went.
    fn time_directly(
        &self,
        lane: &mut Lane,
        way: Way<'_>,
        memory: &mut Memory<'_>,
        phases: &mut Phases,
    ) -> bool {
        let started = Instant::now();
        if !self.go_directly(lane, way, memory) {
            return false;
        }
        let spent = started.elapsed().as_nanos() as u64;
        match way.writes {
            true => phases.gather_ns += spent,
            false => phases.scatter_ns += spent,
        }
        phases.is_direct = true;
        phases
            .servers
            .extend(lane.work.lots().iter().map(Lot::phases));
        true
    }

    /// The list of the last access, to be filled again.
    fn take_servers(&self) -> Vec<ServerPhases> {
        let mut list = std::mem::take(&mut self.phases.lock().servers);
        list.clear();
        list
    }

    pub(crate) fn keep_phases(&self, phases: Phases) {
        self.direct.quick.was_not_last();
        self.session.calibrated.compare(&phases);
        *self.phases.lock() = phases;
    }
}

/// The smallest file range with `len` view bytes from `lo` on.
pub(crate) fn file_range(seen: &HandleView, lo: u64, len: u64) -> Result<FileSpan> {
    let bytes = seen.view.bytes();
    let last = lo.checked_add(len - 1).and_then(|last| bytes.select(last));
    match (bytes.select(lo), last) {
        (Some(first), Some(last)) => Ok(FileSpan::from(first..last + 1)),
        _ if bytes.is_empty() => Err(Error::argument(
            "view",
            "shows no byte; set another before reading or writing",
        )),
        _ => Err(Error::argument(
            "offset",
            "is beyond the largest offset of a file, 2^63 - 1",
        )),
    }
}
