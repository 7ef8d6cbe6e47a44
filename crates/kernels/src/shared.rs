//! Owns the two types that carry raw memory: [`SharedBytes`] to read from, [`SharedBytesMut`]
//! to write to. They exist because mapped memory may be written by other processes at any
//! time, so no `&[u8]` to it may ever be formed; copies go through raw pointers only.
//!
//! Invariants: the pointer is valid for `len` bytes for as long as the value lives (promised
//! once, at construction). What other processes do to the bytes meanwhile changes the bytes
//! that are copied and nothing else: no decision is ever taken on copied data.

use std::marker::PhantomData;

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
