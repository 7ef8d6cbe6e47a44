//! Arguments of the C interface, each with what may be done with it.
//!
//! The types are laid out as the C types they stand for, so the entry points take them as they come. What
//! MPI demands of its caller (pointers are valid for what the call is to read or write there) is the
//! ground of every unsafe block here; nothing else is assumed.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::host;

/// A handle, or whatever else is a machine word. Handles of 32 bits have their upper half cleared.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Word(pub(crate) usize);

/// Where a buffer of the program begins; possibly null or relative to nothing (MPI_BOTTOM).
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) *mut c_void);

impl Address {
    /// As a number.
    pub(crate) fn number(self) -> usize {
        self.0 as usize
    }
}

/// Where a value goes.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out<T>(pub(crate) *mut T);

impl<T: Copy> Out<T> {
    /// Stores the value; a null pointer is left alone.
    pub(crate) fn set(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: the caller of MPI gives a place for one value.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Stores the value of a list at an index.
    pub(crate) fn set_at(self, index: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: the caller of MPI gives a place for as many values as it counts.
            unsafe { self.0.add(index).write_unaligned(value) }
        }
    }

    /// What is there at an index of a list.
    pub(crate) fn get_at(self, index: usize) -> T {
        // SAFETY: the caller of MPI gives a place for as many values as a call of the host has filled.
        unsafe { self.0.add(index).read_unaligned() }
    }

    /// What is there.
    pub(crate) fn get(self) -> T {
        // SAFETY: the caller of MPI gives a place for one value, which a call of the host has filled.
        unsafe { self.0.read_unaligned() }
    }
}

/// A count that goes in and out, in the width of the call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CountOut {
    Small(Out<c_int>),
    Large(Out<i64>),
}

impl From<Out<c_int>> for CountOut {
    fn from(place: Out<c_int>) -> CountOut {
        CountOut::Small(place)
    }
}

impl From<Out<i64>> for CountOut {
    fn from(place: Out<i64>) -> CountOut {
        CountOut::Large(place)
    }
}

impl CountOut {
    /// What is there; nothing if there is no place.
    pub(crate) fn get(self) -> Option<i64> {
        match self {
            CountOut::Small(place) => (!place.0.is_null()).then(|| i64::from(place.get())),
            CountOut::Large(place) => (!place.0.is_null()).then(|| place.get()),
        }
    }

    /// Has a function that counts in `int` go on from here, where the count fits one.
    pub(crate) fn through_small(
        self,
        run: impl FnOnce(Out<c_int>) -> Option<c_int>,
    ) -> Option<c_int> {
        let mut count = c_int::try_from(self.get()?).ok()?;
        let code = run(Out(&raw mut count))?;
        self.set(i64::from(count));
        Some(code)
    }

    /// Stores a count; whether it fits.
    pub(crate) fn set(self, count: i64) -> bool {
        match self {
            CountOut::Small(place) => match c_int::try_from(count) {
                Ok(count) => place.set(count),
                Err(_) => return false,
            },
            CountOut::Large(place) => place.set(count),
        }
        true
    }
}

impl Out<c_char> {
    /// Stores a text with its terminator, cut to `room` bytes in all; the length without terminator.
    pub(crate) fn set_text(self, text: &str, room: usize) -> usize {
        let mut len = text.len().min(room.saturating_sub(1));
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        for (i, byte) in text.as_bytes()[..len].iter().chain(&[0]).enumerate() {
            self.set_at(i, *byte as c_char);
        }
        len
    }
}

/// A text of the program.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text(pub(crate) *const c_char);

impl Text {
    /// The text; nothing if the pointer is null.
    pub(crate) fn get(self) -> Option<String> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: the caller of MPI gives a terminated text.
        let text = unsafe { CStr::from_ptr(self.0) };
        Some(text.to_string_lossy().into_owned())
    }
}

/// Where a handle goes, or handles side by side. Their width is the host's.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandleOut(pub(crate) *mut c_void);

impl HandleOut {
    /// Stores a handle of 32 bits or of a word, as the host has them. Files are words everywhere: see
    /// [`HandleOut::set_file`].
    pub(crate) fn set(self, handle: Word) {
        self.set_at(0, handle);
    }

    /// Stores a handle of a list.
    pub(crate) fn set_at(self, index: usize, handle: Word) {
        if self.0.is_null() {
            return;
        }
        if host::is_narrow() {
            // SAFETY: the caller of MPI gives a place for as many handles as it counts.
            unsafe {
                self.0
                    .cast::<u32>()
                    .add(index)
                    .write_unaligned(handle.0 as u32)
            }
        } else {
            // SAFETY: the same.
            unsafe { self.0.cast::<usize>().add(index).write_unaligned(handle.0) }
        }
    }

    /// A handle of a list.
    pub(crate) fn at(self, index: usize) -> Word {
        if host::is_narrow() {
            // SAFETY: the caller of MPI gives as many handles as it counts.
            Word(unsafe { self.0.cast::<u32>().add(index).read_unaligned() } as usize)
        } else {
            // SAFETY: the same.
            Word(unsafe { self.0.cast::<usize>().add(index).read_unaligned() })
        }
    }

    /// Stores a file handle, which is a pointer in every ABI.
    pub(crate) fn set_file(self, handle: Word) {
        if !self.0.is_null() {
            // SAFETY: the caller of MPI gives a place for a handle.
            unsafe { self.0.cast::<usize>().write_unaligned(handle.0) }
        }
    }

    /// The file handle that is there.
    pub(crate) fn file(self) -> Word {
        // SAFETY: the caller of MPI gives a handle.
        Word(unsafe { self.0.cast::<usize>().read_unaligned() })
    }
}

/// Where a status goes, or statuses side by side, unless it is to be ignored.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatusOut(pub(crate) *mut c_void);
