//! Errors of the client as exceptions of Python.
//!
//! The one table of statuses has an errno for each, and `OSError` makes the right class of it (`FileNotFoundError`,
//! `PermissionError`, `TimeoutError`, ...). What is wrong with an argument is a `ValueError`, in the words of the client, which
//! point at the character in a layout; a service that cannot be reached is a `ConnectionError`.

use client::{Error, Status};
use pyo3::exceptions::{PyConnectionError, PyOSError, PyValueError};
use pyo3::prelude::*;

/// A `ValueError`.
pub(crate) fn value(text: impl Into<String>) -> PyErr {
    PyValueError::new_err(text.into())
}

/// The exception for an error of the client.
pub(crate) fn raised(error: Error) -> PyErr {
    let text = error.to_string();
    match &error {
        Error::Argument { .. } | Error::Closed => value(text),
        Error::Unreachable { .. } => PyConnectionError::new_err((error.errno(), text)),
        _ => match error.status() {
            Status::InvalidArgument => value(text),
            Status::WrongVersion => PyConnectionError::new_err((error.errno(), text)),
            _ => PyOSError::new_err((error.errno(), text)),
        },
    }
}

/// The exception for an error of a directory that this process would serve, or of its job.
pub(crate) fn raised_by_directory(error: embedded::Error) -> PyErr {
    raised(error.into())
}

/// Results of the client with exceptions instead of its errors.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for client::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(raised)
    }
}
