//! Accesses between the file and described memory.
//!
//! ```text
//!  memory ------------------------ pack -------------------> extents    directly, where they lie in long runs
//!  memory --pack--> some 10^5 bytes, in the cache --copy--> extents    directly, where they do not
//!  memory ------------------------------- message -----> servers    where direct access cannot be, and it is one run
//!  memory --pack--> up to 8 MiB ------------ message -----> servers    where it is not
//! ```
//!
//! Directly a described access is one access like any other: it is planned, claimed and grows the file
//! as a whole. Only where view and extent meet in short pieces does copying go through a small packet, so
//! that compiled loops meet runs on one side.
//!
//! Invariants: reads refuse memory that is named twice, writes take it; a steady access allocates
//! nothing.
//!
//! Left to others: where the bytes lie (`places`), claims (`direct`), messages (`access`).

use kernels::{SharedBytes, SharedBytesMut};
use wire::Rights;

use crate::access::How;
use crate::access::direct::transfer::LONG;
use crate::access::flow::Memory;
use crate::access::places::Places;
use crate::error::{Error, Result};
use crate::file::File;
use crate::file::seen::Seen;
use crate::transport::lane::Lane;

/// Most bytes of described memory that are packed at a time to go by message.
const DESCRIBED_BYTES: u64 = 8 << 20;

/// Bytes up to which described memory is packed beside the call.
const SMALL_BYTES: usize = 4096;

/// The user's memory of an access; byte 0 is the first byte of the access.
#[derive(Debug)]
pub(crate) enum User<'a> {
    Bytes(Memory<'a>),
    From(Described<'a, SharedBytes<'a>>),
    Into(Described<'a, SharedBytesMut<'a>>),
}

/// Described memory, which holds all places.
#[derive(Debug)]
pub(crate) struct Described<'a, M> {
    pub(crate) memory: M,
    pub(crate) origin: usize,
    pub(crate) places: &'a Places,
    /// Bytes of the access, from the first place on.
    pub(crate) len: u64,
}

impl User<'_> {
    pub(crate) fn len(&self) -> u64 {
        match self {
            User::Bytes(memory) => memory.len() as u64,
            User::From(from) => from.len,
            User::Into(into) => into.len,
        }
    }

    /// The first `n` bytes of it.
    pub(crate) fn first(&mut self, n: u64) -> User<'_> {
        match self {
            User::Bytes(Memory::From(bytes)) => {
                let first = bytes.range(0..n as usize);
                User::Bytes(Memory::From(first.expect("no more than there is")))
            }
            User::Bytes(Memory::Into(bytes)) => {
                let first = bytes.reborrow().range(0..n as usize);
                User::Bytes(Memory::Into(first.expect("no more than there is")))
            }
            User::From(from) => User::From(Described {
                memory: from.memory,
                origin: from.origin,
                places: from.places,
                len: n,
            }),
            User::Into(into) => User::Into(Described {
                memory: into.memory.reborrow(),
                origin: into.origin,
                places: into.places,
                len: n,
            }),
        }
    }
}

/// The places in memory that holds them, if they are one run.
pub(crate) fn one_run<'a>(
    memory: SharedBytes<'a>,
    origin: usize,
    places: &Places,
) -> Option<SharedBytes<'a>> {
    let at = places.run(origin)?;
    memory.range(at..at + places.size() as usize)
}

/// The same for memory to be written.
pub(crate) fn one_run_mut<'a>(
    memory: SharedBytesMut<'a>,
    origin: usize,
    places: &Places,
) -> Option<SharedBytesMut<'a>> {
    let at = places.run(origin)?;
    memory.range(at..at + places.size() as usize)
}

impl File {
    /// Reads at an offset in view bytes into memory that is one run.
    pub fn read_at_shared(&self, offset: u64, memory: SharedBytesMut<'_>) -> Result<usize> {
        let places = Places::bytes(memory.len() as u64);
        self.read_at_memory(offset, memory, 0, &places)
    }

    /// Writes at an offset in view bytes from memory that is one run.
    pub fn write_at_shared(&self, offset: u64, memory: SharedBytes<'_>) -> Result<usize> {
        let places = Places::bytes(memory.len() as u64);
        self.write_at_memory(offset, memory, 0, &places)
    }

    /// Reads into described memory: byte j goes to `memory[origin + places.select(j)]`. What lies
    /// between the places is not touched.
    pub fn read_at_memory(
        &self,
        offset: u64,
        mut memory: SharedBytesMut<'_>,
        origin: usize,
        places: &Places,
    ) -> Result<usize> {
        places.check(memory.len(), origin)?;
        if let Some(run) = one_run_mut(memory.reborrow(), origin, places)
            && self.open.read_quickly(offset, run)
        {
            return Ok(places.size() as usize);
        }
        self.open.check_right(Rights::READ)?;
        if places.has_overlap() {
            return Err(Error::argument(
                "places",
                "names a byte twice; describe memory to read into without overlap",
            ));
        }
        let size = places.size();
        if size <= SMALL_BYTES as u64 {
            let mut packed = [0; SMALL_BYTES];
            let n = self.read_at(offset, &mut packed[..size as usize])?;
            places.scatter(packed[..n].into(), memory, origin, 0);
            return Ok(n);
        }
        if self.open.ahead.is_on() {
            let mut packed = vec![0; size as usize];
            let n = self.read_at(offset, &mut packed)?;
            places.scatter(packed[..n].into(), memory, origin, 0);
            return Ok(n);
        }
        let _gate = self.beside();
        let seen = self.open.current();
        let done = self.open.session.with_lane(|lane| {
            if self.is_read_sieved(&seen) {
                let user = (memory.reborrow(), origin, places);
                return self.read_packed(lane, &seen, offset, user, None);
            }
            self.guarded(lane, &seen, (offset, size), false, |lane, how| {
                if let Some(run) = one_run_mut(memory.reborrow(), origin, places) {
                    let mut user = User::Bytes(Memory::Into(run));
                    let read = self.open.read_user(lane, &seen, offset, &mut user, how)?;
                    return Ok(read.expect("one run goes by message where it has to"));
                }
                if size >= LONG {
                    let mut user = User::Into(Described {
                        memory: memory.reborrow(),
                        origin,
                        places,
                        len: size,
                    });
                    let read = self.open.read_user(lane, &seen, offset, &mut user, how)?;
                    if let Some(read) = read {
                        return Ok(read);
                    }
                }
                let user = (memory.reborrow(), origin, places);
                self.read_packed(lane, &seen, offset, user, Some(how))
            })
        });
        self.open.record(false, offset, &done);
        done
    }

    /// Writes from described memory: byte j comes from `memory[origin + places.select(j)]`.
    pub fn write_at_memory(
        &self,
        offset: u64,
        memory: SharedBytes<'_>,
        origin: usize,
        places: &Places,
    ) -> Result<usize> {
        places.check(memory.len(), origin)?;
        if let Some(run) = one_run(memory, origin, places)
            && self.open.write_quickly(offset, run)
        {
            self.open.void_ahead();
            return Ok(places.size() as usize);
        }
        self.open.check_right(Rights::WRITE)?;
        let size = places.size();
        if size <= SMALL_BYTES as u64 {
            let mut packed = [0; SMALL_BYTES];
            let packed = &mut packed[..size as usize];
            places.gather(memory, origin, 0, packed.into());
            return self.write_at(offset, packed);
        }
        if self.open.is_append {
            // It goes to one place behind the end, and so in one piece.
            let mut packed = vec![0; size as usize];
            places.gather(memory, origin, 0, packed[..].as_mut().into());
            return self.append(&packed).map(|_| packed.len());
        }
        let _gate = self.beside();
        let seen = self.open.current();
        let done = self.open.session.with_lane(|lane| {
            let user = (memory, origin, places);
            if self.is_write_sieved() {
                return self.write_packed(lane, &seen, offset, user, None);
            }
            self.guarded(lane, &seen, (offset, size), true, |lane, how| {
                if let Some(run) = one_run(memory, origin, places) {
                    let mut user = User::Bytes(Memory::From(run));
                    let written = self.open.write_user(lane, &seen, offset, &mut user, how)?;
                    return Ok(written.expect("one run goes by message where it has to"));
                }
                if size >= LONG {
                    let mut user = User::From(Described {
                        memory,
                        origin,
                        places,
                        len: size,
                    });
                    let written = self.open.write_user(lane, &seen, offset, &mut user, how)?;
                    if let Some(written) = written {
                        return Ok(written);
                    }
                }
                self.write_packed(lane, &seen, offset, user, Some(how))
            })
        });
        self.open.record(true, offset, &done);
        done
    }

    /// Reads by way of packed memory; sieved if it is not said how.
    fn read_packed(
        &self,
        lane: &mut Lane,
        seen: &Seen,
        offset: u64,
        (mut memory, origin, places): (SharedBytesMut<'_>, usize, &Places),
        how: Option<How>,
    ) -> Result<usize> {
        let mut done = 0;
        while done < places.size() {
            let n = (places.size() - done).min(DESCRIBED_BYTES);
            let mut packed = take_packed(lane, n);
            let part = &mut packed[..n as usize];
            let read = match how {
                Some(how) => self.open.read_range(lane, seen, offset + done, part, how),
                None => self.read_sieved(lane, seen, offset + done, part),
            };
            if let Ok(read) = read {
                places.scatter(part[..read].into(), memory.reborrow(), origin, done);
            }
            lane.work.described = packed;
            let read = read? as u64;
            done += read;
            if read < n {
                break;
            }
        }
        Ok(done as usize)
    }

    /// Writes by way of packed memory; sieved if it is not said how.
    fn write_packed(
        &self,
        lane: &mut Lane,
        seen: &Seen,
        offset: u64,
        (memory, origin, places): (SharedBytes<'_>, usize, &Places),
        how: Option<How>,
    ) -> Result<usize> {
        let mut done = 0;
        while done < places.size() {
            let n = (places.size() - done).min(DESCRIBED_BYTES);
            let mut packed = take_packed(lane, n);
            let part = &mut packed[..n as usize];
            places.gather(memory, origin, done, part.into());
            let written = match how {
                Some(how) => self.open.write_range(lane, seen, offset + done, part, how),
                None => self.write_sieved(lane, seen, offset + done, part),
            };
            lane.work.described = packed;
            match written {
                Ok(_) => done += n,
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
}

/// The lane's memory for described buffers, at least so long.
pub(crate) fn take_packed(lane: &mut Lane, len: u64) -> Vec<u8> {
    let mut packed = std::mem::take(&mut lane.work.described);
    if (packed.len() as u64) < len {
        packed.resize(len as usize, 0);
    }
    packed
}
