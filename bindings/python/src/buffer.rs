//! Buffers of Python as memory of a request: where entries lie, whatever their strides.
//!
//! Owns the two places where a pointer of Python becomes memory of the client. A buffer is held, and with it its memory, for as
//! long as the value here lives; the interpreter may run meanwhile, and other threads may write into the buffer: memory of
//! the client is `SharedBytes`, which takes that.
//!
//! Invariants
//! - Read-only buffers are never written to.
//! - All bytes that a request may touch lie in the buffer: numpy and the interpreter say so for shape and strides.

#![allow(unsafe_code)] // memory of Python; see the SAFETY notes

use client::{Places, Sequence, SharedBytes, SharedBytesMut};
use layout::Order;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;

use crate::error::value;

/// What a request does with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It is read into, so it has to be writable.
    Fill,
    /// It is written from.
    Take,
}

/// A buffer, and where its entries lie in the order of an array.
pub(crate) struct Entries {
    buffer: PyUntypedBuffer,
    /// Bytes of all entries.
    len: u64,
    /// The first byte of the memory, from the first entry.
    low: i64,
    /// Bytes of the memory.
    hull: usize,
    /// Where the entries lie in it; nothing if they are neighbours in their order.
    sequence: Option<Sequence>,
}

impl Entries {
    /// The entries of a buffer, the last index fastest in C order, the first in Fortran order.
    pub(crate) fn of(
        object: &Bound<'_, PyAny>,
        order: Order,
        shape: &[u64],
        entry_bytes: u64,
        purpose: Purpose,
    ) -> PyResult<Entries> {
        let buffer = PyUntypedBuffer::get(object)?;
        if purpose == Purpose::Fill && buffer.readonly() {
            return Err(value("out: the buffer is read-only; give a writable one"));
        }
        let fits = buffer.shape().len() == shape.len()
            && std::iter::zip(buffer.shape(), shape).all(|(&has, &wants)| has as u64 == wants)
            && buffer.item_size() as u64 == entry_bytes;
        if !fits {
            return Err(value(format!(
                "the buffer has shape {:?} of {} bytes each; {shape:?} of {entry_bytes} bytes is needed",
                buffer.shape(),
                buffer.item_size()
            )));
        }
        let len = buffer.len_bytes() as u64;
        let is_run = match order {
            Order::C => buffer.is_c_contiguous(),
            Order::Fortran => buffer.is_fortran_contiguous(),
        };
        if is_run || len == 0 {
            return Ok(Entries {
                buffer,
                len,
                low: 0,
                hull: len as usize,
                sequence: None,
            });
        }
        let mut sequence = Sequence::bytes(0, entry_bytes).map_err(|e| value(e.to_string()))?;
        let dimensions = shape.len();
        for i in 0..dimensions {
            let d = match order {
                Order::C => dimensions - 1 - i,
                Order::Fortran => i,
            };
            let stride = buffer.strides()[d] as i64;
            sequence = sequence
                .repeat(shape[d], stride)
                .map_err(|e| value(e.to_string()))?;
        }
        let hull = sequence.hull().unwrap_or(0..0);
        Ok(Entries {
            buffer,
            len,
            low: hull.start,
            hull: hull.start.abs_diff(hull.end) as usize,
            sequence: Some(sequence),
        })
    }

    /// Bytes of all entries.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes `from..from + len` of them: the memory they lie in, where it counts from, and their places.
    pub(crate) fn places(&self, from: u64, len: u64) -> (usize, Places) {
        match &self.sequence {
            None => (from as usize, Places::bytes(len)),
            Some(all) if len == self.len => (self.origin(), Places::new(all)),
            Some(all) => (self.origin(), Places::new(&all.slice(from..from + len))),
        }
    }

    /// The first entry in the memory.
    fn origin(&self) -> usize {
        self.low.unsigned_abs() as usize
    }

    fn first(&self) -> *mut u8 {
        let first: *mut u8 = self.buffer.buf_ptr().cast();
        first.wrapping_offset(self.low as isize)
    }

    /// The memory, to be written to a file.
    pub(crate) fn source(&self) -> SharedBytes<'_> {
        // SAFETY: the buffer is held for as long as the value borrows from it, and its shape and strides keep the hull of
        // all entries inside it. Threads that write it meanwhile change what is copied and nothing else.
        unsafe { SharedBytes::new(self.first(), self.hull) }
    }

    /// The memory, to be read into.
    pub(crate) fn target(&mut self) -> SharedBytesMut<'_> {
        // SAFETY: as for `source`; the buffer was found to be writable before, since `Purpose::Fill` is what calls this.
        unsafe { SharedBytesMut::new(self.first(), self.hull) }
    }
}
