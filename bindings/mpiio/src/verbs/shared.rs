//! Access with the shared pointer, in any order and in the order of ranks.
//!
//! See the table of the standard for which functions these are.

use crate::entry::{Call, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::{Address, StatusOut, Word};

/// `MPI_File_read_shared`.
pub(crate) fn read_shared(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _status: StatusOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_write_shared`.
pub(crate) fn write_shared(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _status: StatusOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_read_ordered`.
pub(crate) fn read_ordered(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _status: StatusOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_write_ordered`.
pub(crate) fn write_ordered(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _status: StatusOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}
