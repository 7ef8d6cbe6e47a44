//! The way from an entry point to what it does, and back with a code.
//!
//! Codes are the numbers of the one table of statuses, 0 for success. The text that names the function, what is wrong
//! and what to do is kept per thread, until the next call of the thread that fails.
//!
//! Invariants
//! - No panic crosses into C: it becomes the status `Internal`.
//! - A call that succeeds leaves the text of the last failure as it is, as `errno` does.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use client::Status;

/// What a call came to.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure.
    pub status: Status,
    /// What is wrong, and what to do.
    pub text: String,
    /// Whether the same call may succeed later.
    pub is_retryable: bool,
}

impl Failure {
    /// A failure of ours.
    pub fn new(status: Status, text: impl Into<String>) -> Failure {
        Failure {
            status,
            text: text.into(),
            is_retryable: false,
        }
    }

    /// An argument is wrong.
    pub fn argument(name: &str, text: impl AsRef<str>) -> Failure {
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

/// The last failure of a thread.
#[derive(Debug)]
struct Last {
    status: Status,
    text: CString,
    is_retryable: bool,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// Runs what an entry point does; the code to return.
#[inline]
pub fn answer(name: &'static str, work: impl FnOnce() -> Outcome) -> c_int {
    match outcome(name, work) {
        Ok(()) => 0,
        Err(status) => c_int::from(status.code()),
    }
}

/// Runs what an entry point does: its result, or what kind of failure, whose text is kept.
#[inline]
pub fn outcome<T>(name: &'static str, work: impl FnOnce() -> Outcome<T>) -> Result<T, Status> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(failure)) => Err(failed(name, &failure)),
        Err(_) => Err(failed(name, &a_bug())),
    }
}

#[cold]
fn a_bug() -> Failure {
    Failure::new(
        Status::Internal,
        "a bug of the library; standard error has more",
    )
}

/// Keeps why a call failed.
#[cold]
#[inline(never)]
fn failed(name: &'static str, failure: &Failure) -> Status {
    let text = format!("{name}: {}", failure.text).replace('\0', " ");
    // A thread that is ending has no place for it any more.
    let _ = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = Some(Last {
                status: failure.status,
                text: CString::new(text).unwrap_or_default(),
                is_retryable: failure.is_retryable,
            });
        }
    });
    failure.status
}

/// Why the last call of this thread that failed did; valid until the next one that does. Never a null pointer.
pub fn last_text() -> *const c_char {
    let kept = LAST.try_with(|last| Some(last.try_borrow().ok()?.as_ref()?.text.as_ptr()));
    kept.ok().flatten().unwrap_or(c"".as_ptr())
}

/// What kind of failure the last one of this thread was; `Ok` before the first.
pub fn last_status() -> Status {
    let kept = LAST.try_with(|last| Some(last.try_borrow().ok()?.as_ref()?.status));
    kept.ok().flatten().unwrap_or(Status::Ok)
}

/// Whether what failed last in this thread may succeed when it is called again.
pub fn last_is_retryable() -> bool {
    let kept = LAST.try_with(|last| Some(last.try_borrow().ok()?.as_ref()?.is_retryable));
    kept.ok().flatten().unwrap_or(false)
}

/// What a code means, in one sentence; for any number.
pub fn meaning(code: c_int) -> &'static CStr {
    static TEXTS: std::sync::OnceLock<Vec<CString>> = std::sync::OnceLock::new();
    let texts = TEXTS.get_or_init(|| {
        let text = |status: &Status| CString::new(status.meaning()).unwrap_or_default();
        Status::ALL.iter().map(text).collect()
    });
    let known = usize::try_from(code).ok().and_then(|code| texts.get(code));
    known.map_or(c"An unknown code.", CString::as_c_str)
}

/// The status of a code.
pub fn status_of(code: c_int) -> Option<Status> {
    u16::try_from(code).ok().and_then(Status::from_code)
}
