//! Arguments of C interfaces, each with what may be done with it.
//!
//! The types are laid out as the C types they stand for. What the headers demand of their caller (a pointer is valid for what
//! the call reads or writes there, a text ends with a zero) is the ground of every unsafe block here; null pointers,
//! counts beyond memory and texts that are not UTF-8 are refused.
//!
//! Left to others: what handles stand for.

use std::ffi::{CStr, c_char, c_void};

use client::{SharedBytes, SharedBytesMut, Status};

use crate::entry::{Failure, Outcome};

/// Most bytes of memory that one argument describes.
const MOST_BYTES: usize = isize::MAX as usize;

/// Most bytes of an options struct; what says more is no size.
const MOST_OPTIONS: usize = 1 << 16;

/// A text of the program.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Text(*const c_char);

impl Text {
    /// No text, for the default of an options struct.
    pub const NONE: Text = Text(std::ptr::null());

    /// The text; nothing if the pointer is null.
    pub fn get(self, name: &'static str) -> Outcome<Option<String>> {
        if self.0.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller gives a text that ends with a zero.
        let text = unsafe { CStr::from_ptr(self.0) };
        match text.to_str() {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(Failure::argument(name, "is not UTF-8")),
        }
    }

    /// The text, which has to be there.
    pub fn required(self, name: &'static str) -> Outcome<String> {
        self.get(name)?
            .ok_or_else(|| Failure::argument(name, "is a null pointer; give a text"))
    }
}

/// Where bytes of the program are that are read or written.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Address(*mut c_void);

/// Where bytes of the program are that are only read.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct ConstAddress(*const c_void);

fn checked(address: usize, name: &'static str, bytes: usize) -> Outcome {
    if bytes > MOST_BYTES {
        let text = format!("of {bytes} bytes is more than memory has");
        return Err(Failure::argument(name, text));
    }
    if address == 0 && bytes > 0 {
        let text = format!("is a null pointer; give {bytes} bytes");
        return Err(Failure::argument(name, text));
    }
    Ok(())
}

impl Address {
    /// Memory that a call fills. It is the caller's for as long as the header says.
    pub fn target<'a>(self, name: &'static str, bytes: usize) -> Outcome<SharedBytesMut<'a>> {
        checked(self.0 as usize, name, bytes)?;
        if bytes == 0 {
            return Ok(SharedBytesMut::from_slice(&mut []));
        }
        // SAFETY: the caller gives so many bytes, for this call or until its request is complete, and leaves them alone
        // meanwhile; the length was checked.
        Ok(unsafe { SharedBytesMut::new(self.0.cast(), bytes) })
    }

    /// Memory that a call fills, as a slice, for what moves a pointer.
    pub fn slice<'a>(self, name: &'static str, bytes: usize) -> Outcome<&'a mut [u8]> {
        checked(self.0 as usize, name, bytes)?;
        if bytes == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the caller gives so many bytes for this call and leaves them alone meanwhile; the length was checked.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.0.cast(), bytes) })
    }

    /// An address so many bytes before.
    pub fn before(self, bytes: usize) -> Address {
        Address(self.0.cast::<u8>().wrapping_sub(bytes).cast())
    }

    /// As a number.
    pub fn number(self) -> usize {
        self.0 as usize
    }

    /// As it came, to be given back.
    pub fn pointer(self) -> *mut c_void {
        self.0
    }
}

// SAFETY: it is a number; what may be done with the bytes there is said where they are taken.
unsafe impl Send for Address {}

impl ConstAddress {
    /// Memory that a call reads.
    pub fn source<'a>(self, name: &'static str, bytes: usize) -> Outcome<SharedBytes<'a>> {
        checked(self.0 as usize, name, bytes)?;
        if bytes == 0 {
            return Ok(SharedBytes::from_slice(&[]));
        }
        // SAFETY: as for what is filled; the bytes are not changed meanwhile.
        Ok(unsafe { SharedBytes::new(self.0.cast(), bytes) })
    }

    /// Memory that a call reads, as a slice.
    pub fn slice<'a>(self, name: &'static str, bytes: usize) -> Outcome<&'a [u8]> {
        checked(self.0 as usize, name, bytes)?;
        if bytes == 0 {
            return Ok(&[]);
        }
        // SAFETY: the caller gives so many bytes, which do not change during this call; the length was checked.
        Ok(unsafe { std::slice::from_raw_parts(self.0.cast(), bytes) })
    }

    /// An address so many bytes before.
    pub fn before(self, bytes: usize) -> ConstAddress {
        ConstAddress(self.0.cast::<u8>().wrapping_sub(bytes).cast())
    }

    /// As a number.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

// SAFETY: as for what is filled.
unsafe impl Send for ConstAddress {}

/// Where a value goes.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// Stores the value; who gives a null pointer does not want it.
    pub fn set(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: the caller gives a place for one value.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Stores the value of a list at an index.
    pub fn set_at(self, index: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: the caller gives a place for as many values as it counts.
            unsafe { self.0.add(index).write_unaligned(value) }
        }
    }

    /// Refuses a null pointer.
    pub fn required(self, name: &'static str) -> Outcome<Self> {
        match self.0.is_null() {
            true => Err(Failure::argument(
                name,
                "is a null pointer; give a place for the result",
            )),
            false => Ok(self),
        }
    }

    /// What is there.
    pub fn get(self, name: &'static str) -> Outcome<T> {
        self.required(name)?;
        // SAFETY: the caller gives a value there.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// What is there at an index of a list.
    pub fn get_at(self, name: &'static str, index: usize) -> Outcome<T> {
        self.required(name)?;
        // SAFETY: the caller gives as many values as it counts.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// Where it is.
    pub fn address(self) -> *mut T {
        self.0
    }
}

impl Out<*mut c_char> {
    /// Stores a text that the program gives back with the library's function for it, which is `free`.
    pub fn set_text(self, text: &str) -> Outcome {
        let bytes = text.as_bytes();
        // A zero inside would end it early.
        let end = bytes.iter().position(|b| *b == 0);
        self.set_bytes(&bytes[..end.unwrap_or(bytes.len())])
    }

    /// Stores bytes, with a zero behind them, that the program gives back with the library's function for it, which is `free`.
    pub fn set_bytes(self, bytes: &[u8]) -> Outcome {
        let len = bytes.len();
        // SAFETY: allocating has no demands; what it gives is checked below.
        let copy = unsafe { libc::malloc(len + 1) }.cast::<u8>();
        if copy.is_null() {
            let text = format!("no memory for {len} bytes");
            return Err(Failure::new(Status::NoMemory, text));
        }
        // SAFETY: the new memory has room for the bytes and the zero.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), copy, len);
            copy.add(len).write(0);
        }
        self.set(copy.cast());
        Ok(())
    }
}

/// Values side by side that are only read.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct List<T>(*const T);

impl<T: Copy> List<T> {
    /// No list, for the default of an options struct.
    pub const NONE: List<T> = List(std::ptr::null());

    /// The values, copied.
    pub fn get(self, name: &'static str, count: usize) -> Outcome<Vec<T>> {
        let bytes = count.saturating_mul(size_of::<T>());
        checked(self.0 as usize, name, bytes)?;
        let mut values: Vec<T> = Vec::new();
        values.try_reserve_exact(count).map_err(|_| {
            let text = format!("has {count} entries, more than memory has");
            Failure::argument(name, text)
        })?;
        for index in 0..count {
            // SAFETY: the caller gives so many values.
            values.push(unsafe { self.0.add(index).read_unaligned() });
        }
        Ok(values)
    }

    /// Whether there is none.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// A struct of options: its first member is its size, and what a program compiled with an older header leaves out has its
/// default, which is zero everywhere.
///
/// # Safety
/// The type is laid out as C has it, begins with its size, and is good whatever its bytes are.
pub unsafe trait Options: Copy {
    /// What counts where nothing is given.
    const DEFAULT: Self;
}

/// Where options are.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct In<T>(*const T);

impl<T: Options> In<T> {
    /// The options; the defaults if the pointer is null.
    pub fn get(self, name: &'static str) -> Outcome<T> {
        let mut options = T::DEFAULT;
        if self.0.is_null() {
            return Ok(options);
        }
        let bytes = self.0.cast::<u8>();
        // SAFETY: options begin with their size.
        let given = unsafe { bytes.cast::<usize>().read_unaligned() };
        if !(size_of::<usize>()..=MOST_OPTIONS).contains(&given) {
            let text = format!("says that it has {given} bytes; set `size` to sizeof it");
            return Err(Failure::argument(name, text));
        }
        let known = size_of::<T>();
        // SAFETY: the caller gives as many bytes as it says.
        let is_more = (known..given).any(|at| unsafe { bytes.add(at).read() } != 0);
        if is_more {
            let text = format!("{name} has members that this version of the library does not know");
            return Err(Failure::new(Status::Unsupported, text));
        }
        // SAFETY: both have so many bytes, and the type is good whatever they are.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes, (&raw mut options).cast::<u8>(), given.min(known));
        }
        Ok(options)
    }
}

/// Stores a struct whose first member is its size, as far as the program's header knows it; the size stays as it is.
pub fn set_struct<T: Options>(out: Out<T>, name: &'static str, value: &T) -> Outcome {
    out.required(name)?;
    let bytes = out.address().cast::<u8>();
    // SAFETY: such a struct begins with its size.
    let given = unsafe { bytes.cast::<usize>().read_unaligned() };
    if !(size_of::<usize>()..=MOST_OPTIONS).contains(&given) {
        let text = format!("says that it has {given} bytes; set `size` to sizeof it");
        return Err(Failure::argument(name, text));
    }
    let len = given.min(size_of::<T>()) - size_of::<usize>();
    // SAFETY: the program has so many bytes behind the size, and so has the value.
    unsafe {
        let from = std::ptr::from_ref(value).cast::<u8>();
        std::ptr::copy_nonoverlapping(
            from.add(size_of::<usize>()),
            bytes.add(size_of::<usize>()),
            len,
        );
    }
    Ok(())
}
