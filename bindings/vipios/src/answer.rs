//! The two kinds of return values of the source, numbers that have to fit, and the functions about errors.
//!
//! Some calls of the source return a truth value, others a number that is 0 for success. Codes below 0 are those of the one table
//! of statuses, so that no caller takes one for a count.

use std::ffi::{CString, c_char, c_int};

use border::entry::{self, Failure, Outcome};
use border::ffi::Out;
use client::Status;

/// The code of a failure.
pub(crate) fn code_of(status: Status) -> c_int {
    -c_int::from(status.code())
}

/// Runs what a call does that returns a truth value.
#[inline]
pub(crate) fn yes(name: &'static str, work: impl FnOnce() -> Outcome) -> bool {
    entry::outcome(name, work).is_ok()
}

/// Runs what a call does that returns 0 or a code.
#[inline]
pub(crate) fn code(name: &'static str, work: impl FnOnce() -> Outcome) -> c_int {
    match entry::outcome(name, work) {
        Ok(()) => 0,
        Err(status) => code_of(status),
    }
}

/// The numbers that calls count in: `int`, and 64 bits.
pub(crate) trait Number: Copy + Into<i64> {
    /// A number, if it fits.
    fn of(value: i64) -> Option<Self>;
}

impl Number for i32 {
    fn of(value: i64) -> Option<i32> {
        value.try_into().ok()
    }
}

impl Number for i64 {
    fn of(value: i64) -> Option<i64> {
        Some(value)
    }
}

/// Stores a result that has to fit.
pub(crate) fn store<N: Number>(out: Out<N>, name: &'static str, value: u64) -> Outcome {
    let fits = i64::try_from(value).ok().and_then(N::of);
    let fits = fits.ok_or_else(|| {
        let text = format!("{name}: {value} does not fit; use the call with 64 in its name");
        Failure::new(Status::TooLarge, text)
    })?;
    out.set(fits);
    Ok(())
}

/// A count or size of a program, which has to be 0 or more.
pub(crate) fn not_negative(name: &'static str, value: i64) -> Outcome<u64> {
    u64::try_from(value).map_err(|_| Failure::argument(name, format!("is {value}; give 0 or more")))
}

/// The number of the last failure of this thread.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Error_code() -> c_int {
    entry::last_status().code().into()
}

/// What was wrong in the last call of this thread that failed.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Error_text() -> *const c_char {
    entry::last_text()
}

/// The version of the library.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Version() -> *const c_char {
    static VERSION: std::sync::OnceLock<CString> = std::sync::OnceLock::new();
    let version = || CString::new(env!("CARGO_PKG_VERSION")).unwrap_or_default();
    VERSION.get_or_init(version).as_ptr()
}
