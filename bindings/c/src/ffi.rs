//! Arguments of `pario.h`, and texts that programs give back.
//!
//! Left to others: what may be done with arguments (`border::ffi`).

use std::ffi::c_char;

pub(crate) use border::ffi::{Address, ConstAddress, In, List, Options, Out, Text, set_struct};

/// Gives back a text that a call has given.
#[unsafe(no_mangle)]
extern "C" fn pario_text_free(text: *mut c_char) {
    // SAFETY: the caller gives a text of this library, which came from the same allocator, or a null pointer.
    unsafe { libc::free(text.cast()) }
}
