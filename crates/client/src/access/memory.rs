//! The memory of a request, from the call of the user to the copy: one type, whichever way bytes move.
//!
//! ```text
//!  Run      neighbouring bytes, to be read from or written to
//!  Memory   places in a run: byte j of the request is byte `origin + places.select(j)` of it
//! ```
//!
//! Invariants: all places lie in the run, which is checked once; reads refuse memory that is named twice, writes take
//! it.
//!
//! Left to others: where the bytes lie (`places`), how they travel.

use kernels::{SharedBytes, SharedBytesMut};
use wire::Rights;

use crate::access::places::Places;
use crate::error::{Error, Result};

/// Which way the bytes of a request move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the file to the user's memory.
    Read,
    /// From the user's memory to the file.
    Write,
}

impl Direction {
    /// Whether it changes the file.
    pub fn is_write(self) -> bool {
        self == Direction::Write
    }

    /// What a handle needs to be opened for.
    pub(crate) fn right(self) -> Rights {
        match self {
            Direction::Read => Rights::READ,
            Direction::Write => Rights::WRITE,
        }
    }
}

/// Neighbouring bytes of memory, and which way they move.
#[derive(Debug)]
pub(crate) enum Run<'a> {
    /// They are written to the file.
    From(SharedBytes<'a>),
    /// They are read from the file.
    Into(SharedBytesMut<'a>),
}

impl<'a> Run<'a> {
    pub(crate) fn direction(&self) -> Direction {
        match self {
            Run::From(_) => Direction::Write,
            Run::Into(_) => Direction::Read,
        }
    }

    pub(crate) fn is_write(&self) -> bool {
        self.direction().is_write()
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Run::From(bytes) => bytes.len(),
            Run::Into(bytes) => bytes.len(),
        }
    }

    /// What is written to the file; nothing of a read.
    pub(crate) fn to_send(&self) -> SharedBytes<'_> {
        match self {
            Run::From(bytes) => *bytes,
            Run::Into(_) => SharedBytes::from_slice(&[]),
        }
    }

    /// `len` bytes of it from `at` on; `None` if it has fewer.
    fn range(self, at: usize, len: usize) -> Option<Run<'a>> {
        let range = at..at.checked_add(len)?;
        Some(match self {
            Run::From(bytes) => Run::From(bytes.range(range)?),
            Run::Into(bytes) => Run::Into(bytes.range(range)?),
        })
    }

    fn reborrow(&mut self) -> Run<'_> {
        match self {
            Run::From(bytes) => Run::From(*bytes),
            Run::Into(bytes) => Run::Into(bytes.reborrow()),
        }
    }
}

impl<'a> From<&'a [u8]> for Run<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Run::From(bytes.into())
    }
}

impl<'a> From<&'a mut [u8]> for Run<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        Run::Into(bytes.into())
    }
}

/// The memory of a request, as programs and bindings describe it: byte j of the request is byte
/// `origin + places.select(j)` of some bytes, which are read from or written to.
#[derive(Debug)]
pub struct Memory<'a> {
    run: Run<'a>,
    /// The byte of the run that the places count from; 0 without places.
    origin: usize,
    /// Nothing if the bytes are neighbours: then they are the run.
    places: Option<&'a Places>,
    /// The place of the first byte of the request.
    start: u64,
    len: u64,
}

impl<'a> From<&'a [u8]> for Memory<'a> {
    /// To be written to a file.
    fn from(bytes: &'a [u8]) -> Self {
        Memory::of(bytes)
    }
}

impl<'a> From<&'a mut [u8]> for Memory<'a> {
    /// To be read into from a file.
    fn from(bytes: &'a mut [u8]) -> Self {
        Memory::of(bytes)
    }
}

impl<'a> Memory<'a> {
    /// All bytes of a run.
    #[inline]
    pub(crate) fn of(run: impl Into<Run<'a>>) -> Memory<'a> {
        let run = run.into();
        let len = run.len() as u64;
        Memory {
            run,
            origin: 0,
            places: None,
            start: 0,
            len,
        }
    }

    /// Memory to be written to a file.
    #[inline]
    pub fn source(bytes: SharedBytes<'a>, origin: usize, places: &'a Places) -> Result<Memory<'a>> {
        Memory::described(Run::From(bytes), origin, places)
    }

    /// Memory to be read into from a file.
    #[inline]
    pub fn target(
        bytes: SharedBytesMut<'a>,
        origin: usize,
        places: &'a Places,
    ) -> Result<Memory<'a>> {
        Memory::described(Run::Into(bytes), origin, places)
    }

    /// Places in a run, around its byte `origin`.
    #[inline]
    fn described(run: Run<'a>, origin: usize, places: &'a Places) -> Result<Memory<'a>> {
        places.check(run.len(), origin)?;
        if let Some(at) = places.run(origin) {
            let run = run.range(at, places.size() as usize);
            return Ok(Memory::of(run.expect("checked above")));
        }
        Ok(Memory {
            run,
            origin,
            places: Some(places),
            start: 0,
            len: places.size(),
        })
    }

    /// Bytes of the request.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Which way they move.
    pub fn direction(&self) -> Direction {
        self.run.direction()
    }

    /// The first `n` bytes of it.
    pub(crate) fn first(&mut self, n: u64) -> Memory<'_> {
        self.part(0, n)
    }

    /// `len` bytes of it from the `from`-th on.
    pub(crate) fn part(&mut self, from: u64, len: u64) -> Memory<'_> {
        debug_assert!(from + len <= self.len);
        Memory {
            run: self.run.reborrow(),
            origin: self.origin,
            places: self.places,
            start: self.start + from,
            len,
        }
    }

    /// Whether its bytes are neighbours.
    pub(crate) fn is_run(&self) -> bool {
        self.places.is_none()
    }

    /// Its bytes, if they are neighbours.
    #[inline]
    pub(crate) fn run(&mut self) -> Option<Run<'_>> {
        match self.places {
            Some(_) => None,
            None => self
                .run
                .reborrow()
                .range(self.start as usize, self.len as usize),
        }
    }

    /// Refuses memory to be read into that names a byte twice.
    pub(crate) fn check_overlap(&self) -> Result<()> {
        let overlaps = self.places.is_some_and(Places::has_overlap);
        if self.direction() == Direction::Read && overlaps {
            return Err(Error::argument(
                "places",
                "names a byte twice; describe memory to read into without overlap",
            ));
        }
        Ok(())
    }

    /// Copies bytes of a write from the `from`-th on out of their places.
    pub(crate) fn pack(&self, from: u64, packed: SharedBytesMut<'_>) {
        let from = self.start + from;
        match (&self.run, self.places) {
            (Run::From(bytes), Some(places)) => places.gather(*bytes, self.origin, from, packed),
            (Run::From(bytes), None) => {
                let range = from as usize..from as usize + packed.len();
                packed.copy_from(bytes.range(range).expect("no more than there is"));
            }
            (Run::Into(_), _) => {}
        }
    }

    /// Copies bytes of a read to their places, from the `from`-th on.
    pub(crate) fn unpack(&mut self, from: u64, packed: SharedBytes<'_>) {
        let from = self.start + from;
        match (&mut self.run, self.places) {
            (Run::Into(bytes), Some(places)) => {
                places.scatter(packed, bytes.reborrow(), self.origin, from);
            }
            (Run::Into(bytes), None) => {
                let range = from as usize..from as usize + packed.len();
                let target = bytes.reborrow().range(range);
                target.expect("no more than there is").copy_from(packed);
            }
            (Run::From(_), _) => {}
        }
    }
}
