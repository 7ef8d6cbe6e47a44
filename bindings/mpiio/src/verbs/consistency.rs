//! Atomic mode and sync.
//!
//! What one process writes is at the servers when its call returns, so sync has to make it durable and to
//! report what was lost; the order between processes is the program's affair, as the standard says.

use std::ffi::c_int;

use crate::entry::{Call, Outcome};
use crate::ffi::Out;

/// `MPI_File_set_atomicity`.
pub(crate) fn set_atomicity(call: &Call, flag: c_int) -> Outcome {
    let file = &call.file;
    let is_atomic = flag != 0;
    file.agree(file.check_idle(), &[u8::from(is_atomic)], "flag")?;
    let mine = match file.file.is_atomic() == is_atomic {
        true => Ok(()),
        false => file.file.set_atomic(is_atomic).map_err(Into::into),
    };
    file.agree(mine, &[], "")
}

/// `MPI_File_get_atomicity`.
pub(crate) fn get_atomicity(call: &Call, flag: Out<c_int>) -> Outcome {
    flag.set(c_int::from(call.file.file.is_atomic()));
    Ok(())
}

/// `MPI_File_sync`.
pub(crate) fn sync(call: &Call) -> Outcome {
    let file = &call.file;
    let mine = file
        .check_idle()
        .and_then(|()| Ok(file.file.sync().map(drop)?));
    file.agree(mine, &[], "")
}
