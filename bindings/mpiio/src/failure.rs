//! Why an operation failed, in the classes of MPI, and how the program hears of it.
//!
//! Codes that are returned are the classes themselves, which every MPI accepts as codes. The text that names
//! file, operation and remedy is kept per thread and given out by `MPI_Error_string` for the code that was
//! returned last. A handler that ends the program would lose it: then it is printed first.
//!
//! Left to others: which handler a file has (the host).

use std::cell::RefCell;
use std::ffi::c_int;

use client::Status;

use crate::abi::{ABSENT, Constants};
use crate::ffi::Word;
use crate::free::answer_of;
use crate::host::Host;

/// Makes the classes with their numbers in each ABI.
macro_rules! classes {
    ($($name:ident $number:ident)*) => {
        /// A class of errors of the standard.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Class {
            $($name,)*
        }

        impl Class {
            /// All, in order.
            const ALL: &[Class] = &[$(Class::$name,)*];

            /// Its name in the standard, without `MPI_` and in small letters.
            fn name(self) -> &'static str {
                match self {
                    $(Class::$name => stringify!($number),)*
                }
            }

            /// Its number in an ABI.
            pub(crate) fn number(self, abi: &Constants) -> c_int {
                let number = match self {
                    $(Class::$name => abi.$number,)*
                };
                let number = match number {
                    ABSENT => abi.err_other,
                    number => number,
                };
                number as c_int
            }
        }
    };
}

classes! {
    Access err_access
    Amode err_amode
    Arg err_arg
    BadFile err_bad_file
    Buffer err_buffer
    Comm err_comm
    Conversion err_conversion
    Count err_count
    DupDatarep err_dup_datarep
    File err_file
    FileExists err_file_exists
    FileInUse err_file_in_use
    Info err_info
    InfoKey err_info_key
    InfoValue err_info_value
    Intern err_intern
    Io err_io
    NoMem err_no_mem
    NoSpace err_no_space
    NoSuchFile err_no_such_file
    NotSame err_not_same
    Other err_other
    Quota err_quota
    ReadOnly err_read_only
    Request err_request
    Type err_type
    UnsupportedDatarep err_unsupported_datarep
    UnsupportedOperation err_unsupported_operation
}

impl Class {
    /// Its place among all of them, to tell other processes.
    pub(crate) fn index(self) -> u8 {
        self as u8
    }

    /// The class at a place.
    pub(crate) fn of_index(index: u8) -> Class {
        Class::ALL
            .get(usize::from(index))
            .copied()
            .unwrap_or(Class::Other)
    }
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Failure {
    pub(crate) class: Class,
    pub(crate) text: String,
    /// The host's own code, where the host failed.
    pub(crate) code: Option<c_int>,
    /// A handle to give back once its handler was called.
    pub(crate) closes: Option<Word>,
}

impl Failure {
    /// A failure of ours.
    pub(crate) fn new(class: Class, text: impl Into<String>) -> Failure {
        Failure {
            class,
            text: text.into(),
            code: None,
            closes: None,
        }
    }

    /// A function of the host failed.
    pub(crate) fn host(name: &'static str, code: c_int) -> Failure {
        Failure {
            class: Class::Other,
            text: format!("MPI_{name} of the MPI library failed with code {code}"),
            code: Some(code),
            closes: None,
        }
    }

    /// The host has no such function.
    pub(crate) fn host_lacks(name: &'static str) -> Failure {
        Failure::new(
            Class::UnsupportedOperation,
            format!("the MPI library has no MPI_{name}"),
        )
    }

    /// This failure, with a handle to give back once its handler was called.
    pub(crate) fn closing(mut self, handle: Word) -> Failure {
        self.closes = Some(handle);
        self
    }

    /// The code that the program gets.
    pub(crate) fn number(&self, host: &Host) -> c_int {
        self.code.unwrap_or_else(|| self.class.number(&host.abi))
    }
}

impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Failure {
        Failure::new(class_of(error.status()), error.to_string())
    }
}

impl From<embedded::Error> for Failure {
    fn from(error: embedded::Error) -> Failure {
        client::Error::from(error).into()
    }
}

impl From<layout::LayoutError> for Failure {
    fn from(error: layout::LayoutError) -> Failure {
        Failure::new(Class::Type, error.to_string())
    }
}

/// The class of what the service says, by its name in the table of all statuses; a status that has none is no failure.
fn class_of(status: Status) -> Class {
    let name = status.mpi_class().trim_start_matches("MPI_");
    let is_it = |class: &&Class| class.name().eq_ignore_ascii_case(name);
    Class::ALL
        .iter()
        .find(is_it)
        .copied()
        .unwrap_or(Class::Other)
}

thread_local! {
    /// What was reported last by this thread: the code and the text.
    static LAST: RefCell<Option<(c_int, String)>> = const { RefCell::new(None) };
}

/// Reports a failure to the program through the handler of a file (or of no file); the code to return, which
/// the handler may have changed.
pub(crate) fn raise(host: &Host, handle: Word, name: &str, file: &str, failure: &Failure) -> c_int {
    let code = remember(host, name, file, failure);
    if host.is_fatal(handle) {
        eprintln!("pario: {}", last_text(code).unwrap_or_default());
    }
    let code = answer_of(code, || host.call_handler(handle, code));
    if let Some(handle) = failure.closes {
        let _ = host.close_nothing(handle);
    }
    code
}

/// Keeps what failed for `MPI_Error_string`; the code to return.
pub(crate) fn remember(host: &Host, name: &str, file: &str, failure: &Failure) -> c_int {
    let code = failure.number(host);
    let text = match file {
        "" => format!("{name}: {failure}"),
        file => format!("{name}: {file}: {failure}"),
    };
    LAST.with_borrow_mut(|last| *last = Some((code, text)));
    code
}

/// What was reported last by this thread, if it was with this code.
pub(crate) fn last_text(code: c_int) -> Option<String> {
    LAST.with_borrow(|last| match last {
        Some((last, text)) if *last == code => Some(text.clone()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_class_and_every_class_a_number() {
        for status in Status::ALL {
            let class = class_of(*status);
            assert_eq!(Class::of_index(class.index()), class, "{status}");
            assert_eq!(
                class == Class::Other,
                status.is_ok(),
                "{status}: its class is known"
            );
        }
        for abi in [Constants::mpich(), Constants::standard()] {
            for class in Class::ALL {
                assert!(class.number(&abi) > 0, "{class:?}");
            }
        }
        assert_eq!(Class::of_index(255), Class::Other);
        assert_eq!(class_of(Status::Unreachable), Class::Io);
        assert_eq!(class_of(Status::InUse), Class::FileInUse);
    }
}
