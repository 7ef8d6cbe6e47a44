//! Owns the two types that carry raw memory: [`SharedBytes`] to read from, [`SharedBytesMut`]
//! to write to. They exist because mapped memory may be written by other processes at any
//! time, so no `&[u8]` to it may ever be formed; copies go through raw pointers only.
//!
//! Invariants: the pointer is valid for `len` bytes for as long as the value lives (promised
//! once, at construction). What other processes do to the bytes meanwhile changes the bytes
//! that are copied and nothing else: no decision is ever taken on copied data.

use std::marker::PhantomData;
use std::ops::Range;

use crate::inner::copy_any;

/// A readable range of memory that others may be writing.
#[derive(Clone, Copy, Debug)]
pub struct SharedBytes<'a> {
    ptr: *const u8,
    len: usize,
    life: PhantomData<&'a u8>,
}

/// A writable range of memory that others may be reading or writing.
#[derive(Debug)]
pub struct SharedBytesMut<'a> {
    ptr: *mut u8,
    len: usize,
    life: PhantomData<&'a mut u8>,
}

// SAFETY: the type is a promise that the range may be read for 'a, from any thread; it holds no
// other state.
unsafe impl Send for SharedBytes<'_> {}
// SAFETY: as above; reading through a shared reference is all it offers.
unsafe impl Sync for SharedBytes<'_> {}
// SAFETY: the type is a promise that the range may be written for 'a, from any thread.
unsafe impl Send for SharedBytesMut<'_> {}

impl<'a> SharedBytes<'a> {
    /// # Safety
    /// `ptr` is valid for reads of `len` bytes during `'a`, and `len` is at most `isize::MAX`.
    /// Threads of this process do not write the range during a copy except through kernels
    /// that write other bytes of it; other processes may.
    pub unsafe fn new(ptr: *const u8, len: usize) -> Self {
        SharedBytes {
            ptr,
            len,
            life: PhantomData,
        }
    }

    /// First byte.
    pub fn as_ptr(&self) -> *const u8 {
        self.ptr
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of a range; `None` if it does not lie in this one.
    ///
    /// ```
    /// use kernels::SharedBytes;
    /// let bytes = SharedBytes::from_slice(b"abcdef");
    /// assert_eq!(bytes.range(2..5).map(|part| part.len()), Some(3));
    /// assert!(bytes.range(2..7).is_none());
    /// ```
    pub fn range(self, range: Range<usize>) -> Option<SharedBytes<'a>> {
        let len = part(&range, self.len)?;
        Some(SharedBytes {
            ptr: self.ptr.wrapping_add(range.start),
            len,
            life: PhantomData,
        })
    }

    /// Shows the bytes as they are now, in order, piece by piece through a copy: others may write them meanwhile.
    ///
    /// ```
    /// use kernels::SharedBytes;
    /// let mut seen = Vec::new();
    /// SharedBytes::from_slice(&[7; 20_000]).each_copy(|bytes| seen.extend_from_slice(bytes));
    /// assert_eq!(seen, [7; 20_000]);
    /// ```
    pub fn each_copy(self, mut show: impl FnMut(&[u8])) {
        let mut copy = [0; 8 << 10];
        let mut at = 0;
        while at < self.len {
            let n = (self.len - at).min(copy.len());
            let from = self.range(at..at + n).expect("inside");
            SharedBytesMut::from_slice(&mut copy[..n]).copy_from(from);
            show(&copy[..n]);
            at += n;
        }
    }

    /// Memory that nobody writes is shared memory too.
    pub fn from_slice(slice: &'a [u8]) -> SharedBytes<'a> {
        slice.into()
    }
}

/// Length of a range, if it lies in `len` bytes.
fn part(range: &Range<usize>, len: usize) -> Option<usize> {
    (range.start <= range.end && range.end <= len).then(|| range.end - range.start)
}

impl<'a> SharedBytesMut<'a> {
    /// # Safety
    /// `ptr` is valid for writes of `len` bytes during `'a`, and `len` is at most `isize::MAX`.
    /// Threads of this process do not touch the bytes a program writes while it runs; other
    /// processes may. The range does not overlap the source of the copy it is used for.
    pub unsafe fn new(ptr: *mut u8, len: usize) -> Self {
        SharedBytesMut {
            ptr,
            len,
            life: PhantomData,
        }
    }

    /// First byte.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.ptr
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// First byte, for callers within the crate that hold the value alone.
    pub(crate) fn ptr(&self) -> *mut u8 {
        self.ptr
    }

    /// These bytes for a while, to write them several times.
    pub fn reborrow(&mut self) -> SharedBytesMut<'_> {
        SharedBytesMut {
            ptr: self.ptr,
            len: self.len,
            life: PhantomData,
        }
    }

    /// These bytes to read, while nothing is written through this value.
    pub fn as_shared(&self) -> SharedBytes<'_> {
        SharedBytes {
            ptr: self.ptr,
            len: self.len,
            life: PhantomData,
        }
    }

    /// The bytes of a range; `None` if it does not lie in this one. For several ranges in turn,
    /// [`reborrow`](SharedBytesMut::reborrow) first.
    ///
    /// ```
    /// use kernels::SharedBytesMut;
    /// let mut memory = *b"abcdef";
    /// let mut bytes = SharedBytesMut::from_slice(&mut memory);
    /// assert_eq!(bytes.reborrow().range(2..5).map(|part| part.len()), Some(3));
    /// assert!(bytes.range(4..3).is_none());
    /// ```
    pub fn range(self, range: Range<usize>) -> Option<SharedBytesMut<'a>> {
        let len = part(&range, self.len)?;
        Some(SharedBytesMut {
            ptr: self.ptr.wrapping_add(range.start),
            len,
            life: PhantomData,
        })
    }

    /// The first `middle` bytes and the rest; `None` if there are not so many. Two places to
    /// receive into at once.
    ///
    /// ```
    /// use kernels::SharedBytesMut;
    /// let mut memory = *b"abcdef";
    /// let halves = SharedBytesMut::from_slice(&mut memory).split_at(4);
    /// assert_eq!(halves.map(|(low, high)| (low.len(), high.len())), Some((4, 2)));
    /// ```
    pub fn split_at(self, middle: usize) -> Option<(SharedBytesMut<'a>, SharedBytesMut<'a>)> {
        let rest = self.len.checked_sub(middle)?;
        let half = |start, len| SharedBytesMut {
            ptr: self.ptr.wrapping_add(start),
            len,
            life: PhantomData,
        };
        Some((half(0, middle), half(middle, rest)))
    }

    /// Copies all of `source`, which is as long.
    ///
    /// ```
    /// use kernels::{SharedBytes, SharedBytesMut};
    /// let mut memory = [0; 3];
    /// SharedBytesMut::from_slice(&mut memory).copy_from(SharedBytes::from_slice(b"abc"));
    /// assert_eq!(&memory, b"abc");
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline]
    pub fn copy_from(self, source: SharedBytes<'_>) {
        assert_eq!(self.len, source.len, "a copy between unequal lengths");
        // SAFETY: the constructors of both promise that they are valid and apart.
        unsafe { copy_any(source.ptr, self.ptr, source.len) };
    }

    /// Memory that nobody else uses is shared memory too.
    pub fn from_slice(slice: &'a mut [u8]) -> SharedBytesMut<'a> {
        slice.into()
    }
}

impl<'a> From<&'a [u8]> for SharedBytes<'a> {
    fn from(slice: &'a [u8]) -> Self {
        SharedBytes {
            ptr: slice.as_ptr(),
            len: slice.len(),
            life: PhantomData,
        }
    }
}

impl<'a> From<&'a mut [u8]> for SharedBytesMut<'a> {
    fn from(slice: &'a mut [u8]) -> Self {
        SharedBytesMut {
            ptr: slice.as_mut_ptr(),
            len: slice.len(),
            life: PhantomData,
        }
    }
}
