//! The functions of `pario.h` about errors, and the version.
//!
//! Left to others: how failures become codes and texts (`border::entry`).

use std::ffi::{CString, c_char, c_int};

pub(crate) use border::entry::{Failure, Outcome, answer};
use client::Status;

/// Why the last call of this thread that failed did; valid until the next one that does. Never a null pointer.
#[unsafe(no_mangle)]
extern "C" fn pario_last_error() -> *const c_char {
    border::entry::last_text()
}

/// Whether what failed last in this thread may succeed when it is called again.
#[unsafe(no_mangle)]
extern "C" fn pario_last_error_is_retryable() -> c_int {
    c_int::from(border::entry::last_is_retryable())
}

/// What a code means, in one sentence; for any number.
#[unsafe(no_mangle)]
extern "C" fn pario_strerror(code: c_int) -> *const c_char {
    border::entry::meaning(code).as_ptr()
}

/// The `errno` of a code; `EIO` for a number that is none.
#[unsafe(no_mangle)]
extern "C" fn pario_to_errno(code: c_int) -> c_int {
    border::entry::status_of(code).map_or(libc::EIO, Status::errno)
}

/// The version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
extern "C" fn pario_version() -> *const c_char {
    static VERSION: std::sync::OnceLock<CString> = std::sync::OnceLock::new();
    let version = || CString::new(env!("CARGO_PKG_VERSION")).unwrap_or_default();
    VERSION.get_or_init(version).as_ptr()
}
