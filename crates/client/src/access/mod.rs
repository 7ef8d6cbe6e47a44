//! One request: a range of a view, memory, and a direction; and the ways it can go.
//!
//! ```text
//!  read_at, write_at, ...  ->  Memory  ->  quick?  ->  packed, buffered, appended?  ->  sieved?  ->  Request
//!
//!  Request  ->  Attempt: which servers have which parts  ->  direct?  ->  by message, in parts or whole
//!                 ^                                                            |
//!                 +-------------- repair and repeat <--------------------------+  stale layout, unknown view, busy, ...
//! ```
//!
//! | way | where | when |
//! |---|---|---|
//! | quick | `direct::quick` | a short access to memory that was found before, looked up before a request is described |
//! | direct | `direct::transfer` | all its bytes are in memory that servers of this host share |
//! | message | `message`, `flow` | otherwise; scattered memory is packed, some MiB at a time |
//! | gateway | `gateway`, `envelope` | by message, whole, to the one server that the client talks to |
//! | sieved | `sieve` | when asked for; windows of the file, each a request |
//!
//! `beside` has accesses that do not go through the view of their handle; they take the same ways, but are not sieved.
//!
//! A request and the loop over its attempts are in `request`, with the trait of the ways.
//!
//! Reading and writing have one driver. They differ in what the size of the file means to them: a read ends there,
//! a write moves it.
//!
//! Invariants: a steady access allocates nothing; nothing is half sent when a connection fails.
//!
//! Left to others: the order of bytes (`plan::access`), views, sizes and repairs (`file`).

pub(crate) mod ahead;
pub(crate) mod behind;
pub(crate) mod beside;
pub(crate) mod direct;
mod envelope;
mod flow;
pub(crate) mod gateway;
pub(crate) mod memory;
mod message;
pub(crate) mod phases;
pub(crate) mod places;
pub(crate) mod plan;
pub(crate) mod request;
pub(crate) mod scattered;
pub(crate) mod sieve;
pub(crate) mod work;

use std::ops::Range;
use std::time::Instant;

use kernels::{SharedBytes, SharedBytesMut};
use layout::FileSpan;

use crate::access::memory::{Direction, Memory, Run};
use crate::access::places::Places;
use crate::access::request::Request;
use crate::error::{Error, Result};
use crate::file::File;
use crate::file::view::HandleView;
use crate::session::lane::Lane;

/// Most bytes of scattered memory that are packed at a time to go by message.
const PACKED_BYTES: u64 = 8 << 20;

/// Bytes up to which scattered memory is packed beside the call.
const SMALL_BYTES: usize = 4096;

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
        let appends = direction.is_write() && self.identity.is_append;
        if !direction.is_write() || appends {
            self.send_behind();
        }
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
                _ => {
                    self.send_behind();
                    self.access_now(offset, &mut memory)
                }
            };
        };
        if appends {
            let len = run.len();
            return self.append_run(run.to_send()).map(|_| len);
        }
        if let Run::From(from) = run {
            let len = from.len();
            if self.write_behind(offset, from)? {
                return Ok(len);
            }
            return self.access_now(offset, &mut memory);
        }
        if let (true, Run::Into(into)) = (reads_ahead, run) {
            let len = into.len();
            if self.read_buffered(offset, into) {
                self.record(direction, offset, &Ok(len));
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
        let seen = self.views.current();
        let direction = memory.direction();
        let done = self.session.with_lane(|lane| {
            if self.is_sieved(&seen, direction) {
                let (started, requested) = (Instant::now(), memory.len());
                let mut phases = self.begin_phases();
                let mut sieve = |lane: &mut Lane, at, run: Run<'_>| {
                    self.sieve(lane, &seen, at, run, &mut phases)
                };
                let moved = match memory.run() {
                    Some(run) => sieve(lane, offset, run),
                    None => access_packed(lane, offset, memory, sieve),
                }?;
                phases.end(requested, moved, started);
                self.record_servers(direction, &phases);
                self.keep_phases(phases);
                return Ok(moved);
            }
            let len = memory.len();
            self.guarded(lane, &seen, (offset, len), direction, |lane, how| {
                let memory = memory.first(len);
                let request = Request::of(&seen, offset, memory).with(how);
                self.access(lane, request)
            })
        });
        self.record(direction, offset, &done);
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

/// The smallest file range with `len` view bytes from `lo` on.
pub(crate) fn file_range(seen: &HandleView, lo: u64, len: u64) -> Result<FileSpan> {
    let bytes = seen.view.bytes();
    let last = lo.checked_add(len - 1).and_then(|last| bytes.select(last));
    match (bytes.select(lo), last) {
        (Some(first), Some(last)) => Ok(FileSpan::from_raw(first..last + 1)),
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
