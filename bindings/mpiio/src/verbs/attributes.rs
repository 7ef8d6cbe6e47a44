//! What a handle was opened with: group, mode, hints.
//!
//! See the table of the standard for which functions these are.

use std::ffi::c_int;

use crate::entry::{Call, Outcome};
use crate::ffi::{HandleOut, Out, Word};
use crate::info;

/// `MPI_File_get_group`.
pub(crate) fn get_group(call: &Call, group: HandleOut) -> Outcome {
    group.set(call.host.group_copy(call.file.group)?);
    Ok(())
}

/// `MPI_File_get_amode`.
pub(crate) fn get_amode(call: &Call, amode: Out<c_int>) -> Outcome {
    amode.set(call.file.mode.number);
    Ok(())
}

/// `MPI_File_set_info`.
pub(crate) fn set_info(call: &Call, info: Word) -> Outcome {
    info::add_together(call, info)
}

/// `MPI_File_get_info`.
pub(crate) fn get_info(call: &Call, info: HandleOut) -> Outcome {
    info.set(call.host.new_info(&info::in_force(&call.file))?);
    Ok(())
}
