//! Access that begins now and is completed by a request.
//!
//! See the table of the standard for which functions these are.

use crate::entry::{Call, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::{Address, HandleOut, Word};

/// `MPI_File_iread_at`.
pub(crate) fn iread_at(
    _call: &Call,
    _offset: i64,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _request: HandleOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_iread_at_all`.
pub(crate) fn iread_at_all(
    _call: &Call,
    _offset: i64,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _request: HandleOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_iwrite_at`.
pub(crate) fn iwrite_at(
    _call: &Call,
    _offset: i64,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _request: HandleOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_iwrite_at_all`.
pub(crate) fn iwrite_at_all(
    _call: &Call,
    _offset: i64,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _request: HandleOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_iread`.
pub(crate) fn iread(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _request: HandleOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_iread_all`.
pub(crate) fn iread_all(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _request: HandleOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_iwrite`.
pub(crate) fn iwrite(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _request: HandleOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_iwrite_all`.
pub(crate) fn iwrite_all(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _request: HandleOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_iread_shared`.
pub(crate) fn iread_shared(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _request: HandleOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_iwrite_shared`.
pub(crate) fn iwrite_shared(
    _call: &Call,
    _buf: Address,
    _count: i64,
    _datatype: Word,
    _request: HandleOut,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}
