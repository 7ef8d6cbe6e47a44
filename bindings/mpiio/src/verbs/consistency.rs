//! Atomic mode and sync.
//!
//! See the table of the standard for which functions these are.

use std::ffi::c_int;

use crate::entry::{Call, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::Out;

/// `MPI_File_set_atomicity`.
pub(crate) fn set_atomicity(_call: &Call, _flag: c_int) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_get_atomicity`.
pub(crate) fn get_atomicity(_call: &Call, _flag: Out<c_int>) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_sync`.
pub(crate) fn sync(_call: &Call) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}
