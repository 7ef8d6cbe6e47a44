//! Why an operation failed, in the classes of MPI, and how the program hears of it.
//!
//! Codes that are returned are the classes themselves, which every MPI accepts as codes. The text that names
//! file, operation and remedy is kept per thread and given out by `MPI_Error_string` for the code that was
//! returned last. A handler that ends the program would lose it: then it is printed first.
//!
//! Left to others: which handler a file has (the host).

use std::cell::RefCell;
use std::ffi::c_int;
use std::fmt;

use client::Status;

use crate::abi::{ABSENT, Constants};
use crate::ffi::Word;
use crate::host::Host;

/// A class of errors of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Access,
    Amode,
    Arg,
    BadFile,
    Buffer,
    Comm,
    Conversion,
    Count,
    DupDatarep,
    File,
    FileExists,
    FileInUse,
    Info,
    InfoKey,
    InfoValue,
    Intern,
    Io,
    NoMem,
    NoSpace,
    NoSuchFile,
    NotSame,
    Other,
    Quota,
    ReadOnly,
    Request,
    Type,
    UnsupportedDatarep,
    UnsupportedOperation,
}

impl Class {
    /// Its number in an ABI.
    pub(crate) fn number(self, abi: &Constants) -> c_int {
        let number = match self {
            Class::Access => abi.err_access,
            Class::Amode => abi.err_amode,
            Class::Arg => abi.err_arg,
            Class::BadFile => abi.err_bad_file,
            Class::Buffer => abi.err_buffer,
            Class::Comm => abi.err_comm,
            Class::Conversion => abi.err_conversion,
            Class::Count => abi.err_count,
            Class::DupDatarep => abi.err_dup_datarep,
            Class::File => abi.err_file,
            Class::FileExists => abi.err_file_exists,
            Class::FileInUse => abi.err_file_in_use,
            Class::Info => abi.err_info,
            Class::InfoKey => abi.err_info_key,
            Class::InfoValue => abi.err_info_value,
            Class::Intern => abi.err_intern,
            Class::Io => abi.err_io,
            Class::NoMem => abi.err_no_mem,
            Class::NoSpace => abi.err_no_space,
            Class::NoSuchFile => abi.err_no_such_file,
            Class::NotSame => abi.err_not_same,
            Class::Other => abi.err_other,
            Class::Quota => abi.err_quota,
            Class::ReadOnly => abi.err_read_only,
            Class::Request => abi.err_request,
            Class::Type => abi.err_type,
            Class::UnsupportedDatarep => abi.err_unsupported_datarep,
            Class::UnsupportedOperation => abi.err_unsupported_operation,
        };
        let number = if number == ABSENT {
            abi.err_other
        } else {
            number
        };
        number as c_int
    }
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) class: Class,
    pub(crate) text: String,
    /// The host's own code, where the host failed.
    pub(crate) code: Option<c_int>,
}

impl Failure {
    /// A failure of ours.
    pub(crate) fn new(class: Class, text: impl Into<String>) -> Failure {
        Failure {
            class,
            text: text.into(),
            code: None,
        }
    }

    /// A function of the host failed.
    pub(crate) fn host(name: &'static str, code: c_int) -> Failure {
        Failure {
            class: Class::Other,
            text: format!("MPI_{name} of the MPI library failed with code {code}"),
            code: Some(code),
        }
    }

    /// The host has no such function.
    pub(crate) fn host_lacks(name: &'static str) -> Failure {
        Failure::new(
            Class::UnsupportedOperation,
            format!("the MPI library has no MPI_{name}"),
        )
    }

    /// The code that the program gets.
    pub(crate) fn number(&self, host: &Host) -> c_int {
        self.code.unwrap_or_else(|| self.class.number(&host.abi))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Failure {
        Failure::new(class_of(error.status()), error.to_string())
    }
}

impl From<layout::LayoutError> for Failure {
    fn from(error: layout::LayoutError) -> Failure {
        Failure::new(Class::Type, error.to_string())
    }
}

/// The class of what the service says.
fn class_of(status: Status) -> Class {
    match status {
        Status::NotFound => Class::NoSuchFile,
        Status::Exists => Class::FileExists,
        Status::PermissionDenied => Class::Access,
        Status::InUse => Class::FileInUse,
        Status::NoSpace => Class::NoSpace,
        Status::InvalidArgument => Class::Arg,
        _ => Class::Io,
    }
}

thread_local! {
    /// What was reported last by this thread: the code and the text.
    static LAST: RefCell<Option<(c_int, String)>> = const { RefCell::new(None) };
}

/// Reports a failure to the program through the handler of a file (or of no file); the code to return.
pub(crate) fn raise(host: &Host, handle: Word, name: &str, file: &str, failure: &Failure) -> c_int {
    let code = failure.number(host);
    let text = match file {
        "" => format!("{name}: {failure}"),
        file => format!("{name}: {file}: {failure}"),
    };
    if host.is_fatal(handle) {
        eprintln!("pario: {text}");
    }
    LAST.with_borrow_mut(|last| *last = Some((code, text)));
    host.call_handler(handle, code);
    code
}

/// What was reported last by this thread, if it was with this code.
pub(crate) fn last_text(code: c_int) -> Option<String> {
    LAST.with_borrow(|last| match last {
        Some((last, text)) if *last == code => Some(text.clone()),
        _ => None,
    })
}
