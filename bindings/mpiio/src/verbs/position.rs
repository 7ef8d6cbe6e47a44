//! Pointers: moving and asking.
//!
//! See the table of the standard for which functions these are.

use std::ffi::c_int;

use crate::entry::{Call, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::Out;

/// `MPI_File_seek`.
pub(crate) fn seek(_call: &Call, _offset: i64, _whence: c_int) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_get_position`.
pub(crate) fn get_position(_call: &Call, _offset: Out<i64>) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_seek_shared`.
pub(crate) fn seek_shared(_call: &Call, _offset: i64, _whence: c_int) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_get_position_shared`.
pub(crate) fn get_position_shared(_call: &Call, _offset: Out<i64>) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}
