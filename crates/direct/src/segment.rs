//! A segment of a server, mapped by a client once and kept.
//!
//! A first touch of a page through a fresh mapping costs a fault; whole units are mapped at once
//! before they are first used, which costs about a fifth of that. Which units were is remembered, so a
//! warm access costs a load.
//!
//! Invariant: a range is handed out only from inside the mapping. Which ranges may be touched, and
//! when, is said by maps and claims, not here.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use kernels::{SharedBytes, SharedBytesMut};
use rustix::mm::Advice;

use crate::mapping::Mapping;

/// Bytes that are made ready at a time; the smallest extent.
pub const UNIT_BYTES: u64 = 64 << 10;

/// A mapped segment.
#[derive(Debug)]
pub struct MappedSegment {
    mapping: Mapping,
    /// One bit per unit that was made ready.
    ready: Box<[AtomicU64]>,
}

impl MappedSegment {
    /// Maps what the server sent.
    pub fn map(file: BorrowedFd<'_>, len: u64, is_writable: bool) -> io::Result<MappedSegment> {
        let mapping = Mapping::new(file, len, is_writable)?;
        let units = len.div_ceil(UNIT_BYTES).div_ceil(64);
        let ready = (0..units).map(|_| AtomicU64::new(0)).collect();
        Ok(MappedSegment { mapping, ready })
    }

    /// Bytes of address space.
    pub fn len(&self) -> u64 {
        self.mapping.len() as u64
    }

    /// Never: a segment has address space.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Whether it may be stored into.
    pub fn is_writable(&self) -> bool {
        self.mapping.is_writable()
    }

    /// Whether a range lies inside.
    pub fn holds(&self, at: u64, len: u64) -> bool {
        at.checked_add(len).is_some_and(|end| end <= self.len())
    }

    /// Maps the pages of a range that were not used yet. A range that is ready costs a load per unit.
    #[inline]
    pub fn make_ready(&self, at: u64, len: u64) {
        debug_assert!(self.holds(at, len));
        let mut unit = at / UNIT_BYTES;
        let end = (at + len).div_ceil(UNIT_BYTES);
        while unit < end {
            if self.is_ready(unit) {
                unit += 1;
            } else {
                unit = self.make_ready_from(unit, end);
            }
        }
    }

    #[inline]
    fn is_ready(&self, unit: u64) -> bool {
        let word = self.ready[(unit / 64) as usize].load(Ordering::Relaxed);
        word & (1 << (unit % 64)) != 0
    }

    /// Makes the next units ready up to one that is; where it stopped.
    #[cold]
    fn make_ready_from(&self, first: u64, end: u64) -> u64 {
        let next = (first..end)
            .find(|unit| self.is_ready(*unit))
            .unwrap_or(end);
        let at = first * UNIT_BYTES;
        let len = (next * UNIT_BYTES).min(self.len()) - at;
        let advice = match self.is_writable() {
            true => Advice::LinuxPopulateWrite,
            false => Advice::LinuxPopulateRead,
        };
        // Where the kernel does not know it, the pages come one by one.
        let _ = self.mapping.advise(at as usize, len as usize, advice);
        for unit in first..next {
            self.ready[(unit / 64) as usize].fetch_or(1 << (unit % 64), Ordering::Relaxed);
        }
        next
    }

    /// A range to copy from.
    ///
    /// # Panics
    /// If it is not inside.
    #[inline]
    pub fn bytes(&self, at: u64, len: u64) -> SharedBytes<'_> {
        let address = self.mapping.address(at as usize, len as usize);
        // SAFETY: the range is inside the mapping, which outlives the borrow. A thread that copies
        // overlapping ranges at once, here or in another process, gets a mixture of bytes.
        unsafe { SharedBytes::new(address.as_ptr(), len as usize) }
    }

    /// A range to copy into.
    ///
    /// # Panics
    /// If it is not inside, or the segment is mapped for reading only.
    #[inline]
    pub fn bytes_mut(&self, at: u64, len: u64) -> SharedBytesMut<'_> {
        assert!(self.is_writable(), "mapped for reading only");
        let address = self.mapping.address(at as usize, len as usize);
        // SAFETY: as for `bytes`; no reference to the memory exists, so none is aliased.
        unsafe { SharedBytesMut::new(address.as_ptr(), len as usize) }
    }
}
