//! Blocking access with explicit offsets and the individual pointer, alone and together.
//!
//! See the table of the standard for which functions these are.

use crate::entry::{Call, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::{Address, StatusOut, Word};

/// `MPI_File_read_at`.
pub(crate) fn read_at(
    _call: &Call,
    _offset: i64,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _status: StatusOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_read_at_all`.
pub(crate) fn read_at_all(
    _call: &Call,
    _offset: i64,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _status: StatusOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_write_at`.
pub(crate) fn write_at(
    _call: &Call,
    _offset: i64,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _status: StatusOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_write_at_all`.
pub(crate) fn write_at_all(
    _call: &Call,
    _offset: i64,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _status: StatusOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_read`.
pub(crate) fn read(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _status: StatusOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_read_all`.
pub(crate) fn read_all(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _status: StatusOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_write`.
pub(crate) fn write(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _status: StatusOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_write_all`.
pub(crate) fn write_all(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _status: StatusOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}
