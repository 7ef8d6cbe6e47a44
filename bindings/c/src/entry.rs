//! The way from an entry point to what it does, and back with a code.
//!
//! Codes are the numbers of the one table of statuses, 0 for success. The text that names the function, what is wrong
//! and what to do is kept per thread, until the next call of the thread that fails.
//!
//! Invariants
//! - No panic crosses into C: it becomes `PARIO_ERR_INTERNAL`.
//! - A call that succeeds leaves the text of the last failure as it is, as `errno` does.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use client::Status;

/// What a call came to.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) text: String,
    /// Whether the same call may succeed later.
    pub(crate) is_retryable: bool,
}

impl Failure {
    /// A failure of ours.
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Failure {
        Failure {
            status,
            text: text.into(),
            is_retryable: false,
        }
    }

    /// An argument is wrong.
    pub(crate) fn argument(name: &str, text: impl AsRef<str>) -> Failure {
        let text = format!("{name}: {}", text.as_ref());
        Failure::new(Status::InvalidArgument, text)
    }
}

impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Failure {
        Failure {
            status: error.status(),
            text: error.to_string(),
            is_retryable: error.is_retryable(),
        }
    }
}

impl From<embedded::Error> for Failure {
    fn from(error: embedded::Error) -> Failure {
        client::Error::from(error).into()
    }
}

impl From<layout::LayoutError> for Failure {
    fn from(error: layout::LayoutError) -> Failure {
        client::Error::from(error).into()
    }
}

impl From<layout::LayoutParseError> for Failure {
    fn from(error: layout::LayoutParseError) -> Failure {
        client::Error::from(error).into()
    }
}

/// The last failure of a thread: its text, and whether it may help to try again.
type LastError = Option<(CString, bool)>;

thread_local! {
    static LAST: RefCell<LastError> = const { RefCell::new(None) };
}

/// Runs what an entry point does; the code to return.
#[inline]
pub(crate) fn answer(name: &'static str, work: impl FnOnce() -> Outcome) -> c_int {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => failed(name, &failure),
        Err(_) => failed(
            name,
            &Failure::new(
                Status::Internal,
                "a bug of the library; standard error has more",
            ),
        ),
    }
}

/// Keeps why a call failed; its code.
#[cold]
#[inline(never)]
fn failed(name: &'static str, failure: &Failure) -> c_int {
    let text = format!("{name}: {}", failure.text).replace('\0', " ");
    // A thread that is ending has no place for it any more.
    let _ = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = Some((CString::new(text).unwrap_or_default(), failure.is_retryable));
        }
    });
    c_int::from(failure.status.code())
}

/// Why the last call of this thread that failed did; valid until the next one that does. Never a null pointer.
#[unsafe(no_mangle)]
extern "C" fn pario_last_error() -> *const c_char {
    let kept = LAST.try_with(|last| Some(last.try_borrow().ok()?.as_ref()?.0.as_ptr()));
    kept.ok().flatten().unwrap_or(c"".as_ptr())
}

/// Whether what failed last in this thread may succeed when it is called again.
#[unsafe(no_mangle)]
extern "C" fn pario_last_error_is_retryable() -> c_int {
    let kept = LAST.try_with(|last| Some(last.try_borrow().ok()?.as_ref()?.1));
    c_int::from(kept.ok().flatten().unwrap_or(false))
}

fn status_of(code: c_int) -> Option<Status> {
    u16::try_from(code).ok().and_then(Status::from_code)
}

/// What a code means, in one sentence; for any number.
#[unsafe(no_mangle)]
extern "C" fn pario_strerror(code: c_int) -> *const c_char {
    static TEXTS: std::sync::OnceLock<Vec<CString>> = std::sync::OnceLock::new();
    let texts = TEXTS.get_or_init(|| {
        let text = |status: &Status| CString::new(status.meaning()).unwrap_or_default();
        Status::ALL.iter().map(text).collect()
    });
    let known = usize::try_from(code).ok().and_then(|code| texts.get(code));
    known.map_or(c"An unknown code.".as_ptr(), |text| text.as_ptr())
}

/// The `errno` of a code; `EIO` for a number that is none.
#[unsafe(no_mangle)]
extern "C" fn pario_to_errno(code: c_int) -> c_int {
    status_of(code).map_or(libc::EIO, Status::errno)
}

/// The version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
extern "C" fn pario_version() -> *const c_char {
    static VERSION: std::sync::OnceLock<CString> = std::sync::OnceLock::new();
    let version = || CString::new(env!("CARGO_PKG_VERSION")).unwrap_or_default();
    VERSION.get_or_init(version).as_ptr()
}
