//! Size and space of a file.
//!
//! See the table of the standard for which functions these are.

use crate::entry::{Call, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::Out;
use crate::operation::Direction;

/// `MPI_File_set_size`.
pub(crate) fn set_size(call: &Call, size: i64) -> Outcome {
    let size = agreed(call, size)?;
    call.file.by_rank_0(|| Ok(call.file.file.resize(size)?))
}

/// `MPI_File_preallocate`.
pub(crate) fn preallocate(call: &Call, size: i64) -> Outcome {
    let size = agreed(call, size)?;
    call.file
        .by_rank_0(|| Ok(call.file.file.preallocate(size)?))
}

/// `MPI_File_get_size`.
pub(crate) fn get_size(call: &Call, size: Out<i64>) -> Outcome {
    size.set(call.file.file.size()? as i64);
    Ok(())
}

/// The size that all processes give; anything else is reported to all of them.
fn agreed(call: &Call, size: i64) -> Outcome<u64> {
    let file = &call.file;
    let mine = || {
        file.check_direction(Direction::Write)?;
        if file.mode.is_sequential {
            return Err(Failure::new(
                Class::UnsupportedOperation,
                "a file opened with MPI_MODE_SEQUENTIAL keeps the size that its writes give it",
            ));
        }
        file.check_idle()?;
        u64::try_from(size)
            .map_err(|_| Failure::new(Class::Arg, format!("size is {size}; give 0 or more")))
    };
    file.agree(mine(), &size.to_le_bytes(), "size")
}
