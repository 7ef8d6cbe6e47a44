//! Views: setting, asking, and where their offsets are in the file.
//!
//! See the table of the standard for which functions these are.

use std::ffi::c_char;

use crate::entry::{Call, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::{HandleOut, Out, Text, Word};

/// `MPI_File_set_view`.
pub(crate) fn set_view(
    _call: &Call,
    _disp: i64,
    _etype: Word,
    _filetype: Word,
    _datarep: Text,
    _info: Word,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_get_view`.
pub(crate) fn get_view(
    _call: &Call,
    _disp: Out<i64>,
    _etype: HandleOut,
    _filetype: HandleOut,
    _datarep: Out<c_char>,
) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_get_type_extent`.
pub(crate) fn get_type_extent(_call: &Call, _datatype: Word, _extent: Out<i64>) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}

/// `MPI_File_get_byte_offset`.
pub(crate) fn get_byte_offset(_call: &Call, _offset: i64, _disp: Out<i64>) -> Outcome {
    Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
}
