//! Size and space of a file.
//!
//! See the table of the standard for which functions these are.

use crate::entry::{Call, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::Out;

/// `MPI_File_set_size`.
pub(crate) fn set_size(_call: &Call, _size: i64) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_preallocate`.
pub(crate) fn preallocate(_call: &Call, _size: i64) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_get_size`.
pub(crate) fn get_size(_call: &Call, _size: Out<i64>) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}
