//! Split collective access: a call that begins and a call that ends.
//!
//! See the table of the standard for which functions these are.

use crate::entry::{Call, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::{Address, StatusOut, Word};

/// `MPI_File_read_at_all_begin`.
pub(crate) fn read_at_all_begin(
    _call: &Call,
    _offset: i64,
    _buf: Address,
    _count: i64,
    _datatype: Word,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_read_at_all_end`.
pub(crate) fn read_at_all_end(_call: &Call, _buf: Address, _status: StatusOut) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_write_at_all_begin`.
pub(crate) fn write_at_all_begin(
    _call: &Call,
    _offset: i64,
    _buf: Address,
    _count: i64,
    _datatype: Word,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_write_at_all_end`.
pub(crate) fn write_at_all_end(_call: &Call, _buf: Address, _status: StatusOut) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_read_all_begin`.
pub(crate) fn read_all_begin(_call: &Call, _buf: Address, _count: i64, _datatype: Word) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_read_all_end`.
pub(crate) fn read_all_end(_call: &Call, _buf: Address, _status: StatusOut) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_write_all_begin`.
pub(crate) fn write_all_begin(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_write_all_end`.
pub(crate) fn write_all_end(_call: &Call, _buf: Address, _status: StatusOut) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_read_ordered_begin`.
pub(crate) fn read_ordered_begin(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_read_ordered_end`.
pub(crate) fn read_ordered_end(_call: &Call, _buf: Address, _status: StatusOut) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_write_ordered_begin`.
pub(crate) fn write_ordered_begin(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_write_ordered_end`.
pub(crate) fn write_ordered_end(_call: &Call, _buf: Address, _status: StatusOut) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}
