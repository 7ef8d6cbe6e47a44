//! What a handle was opened with: group, mode, hints.
//!
//! See the table of the standard for which functions these are.

use std::ffi::c_int;

use crate::entry::{Call, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::{HandleOut, Out, Word};

/// `MPI_File_get_group`.
pub(crate) fn get_group(_call: &Call, _group: HandleOut) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_get_amode`.
pub(crate) fn get_amode(_call: &Call, _amode: Out<c_int>) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_set_info`.
pub(crate) fn set_info(_call: &Call, _info: Word) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_get_info`.
pub(crate) fn get_info(_call: &Call, _info: HandleOut) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}
