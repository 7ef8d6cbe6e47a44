//! Pointers: moving and asking.
//!
//! See the table of the standard for which functions these are.

use std::ffi::c_int;
use std::io::SeekFrom;

use crate::entry::{Call, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::Out;

/// Where a move leads, in etypes.
fn target(call: &Call, offset: i64, whence: c_int, current: u64) -> Outcome<u64> {
    let abi = &call.host.abi;
    let whence = i64::from(whence);
    let from = if whence == abi.seek_set {
        0
    } else if whence == abi.seek_cur {
        current
    } else if whence == abi.seek_end {
        let view = call.file.current();
        let size = call.file.file.size()?;
        view.len_within(size).div_ceil(view.etype_bytes)
    } else {
        return Err(Failure::new(
            Class::Arg,
            format!("whence is {whence}; give MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END"),
        ));
    };
    from.checked_add_signed(offset)
        .filter(|to| i64::try_from(*to).is_ok())
        .ok_or_else(|| {
            Failure::new(
                Class::Arg,
                format!("offset {offset} from etype {from} leads before the beginning of the view or beyond 2^63 - 1"),
            )
        })
}

/// `MPI_File_seek`.
pub(crate) fn seek(call: &Call, offset: i64, whence: c_int) -> Outcome {
    call.file.check_random("MPI_File_seek_shared")?;
    let to = target(call, offset, whence, call.file.position())?;
    call.file.set_position(to);
    Ok(())
}

/// `MPI_File_get_position`.
pub(crate) fn get_position(call: &Call, offset: Out<i64>) -> Outcome {
    call.file.check_random("MPI_File_get_position_shared")?;
    offset.set(call.file.position() as i64);
    Ok(())
}

/// `MPI_File_seek_shared`.
pub(crate) fn seek_shared(call: &Call, offset: i64, whence: c_int) -> Outcome {
    let file = &call.file;
    let mine = match file.mode.is_sequential {
        true => Err(Failure::new(
            Class::UnsupportedOperation,
            "the pointer of a file opened with MPI_MODE_SEQUENTIAL moves with reads and writes only",
        )),
        false => file.check_idle(),
    };
    let said = [&offset.to_le_bytes()[..], &whence.to_le_bytes()].concat();
    file.agree(mine, &said, "offset or whence")?;
    file.by_rank_0(|| {
        let view = file.current();
        let current = match i64::from(whence) == call.host.abi.seek_cur {
            true => file.file.position_shared()? / view.etype_bytes,
            false => 0,
        };
        let to = target(call, offset, whence, current)?;
        let to = to.saturating_mul(view.etype_bytes);
        file.file.seek_shared(SeekFrom::Start(to))?;
        Ok(())
    })
}

/// `MPI_File_get_position_shared`.
pub(crate) fn get_position_shared(call: &Call, offset: Out<i64>) -> Outcome {
    call.file
        .check_random("what the reads and writes before have moved")?;
    let at = call.file.file.position_shared()?;
    offset.set((at / call.file.current().etype_bytes) as i64);
    Ok(())
}
