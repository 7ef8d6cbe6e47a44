//! `MPI_File_close`.

use std::ffi::c_int;

use crate::entry;
use crate::ffi::HandleOut;
use crate::table;

/// `MPI_File_close`.
pub(crate) fn close(fh: HandleOut) -> c_int {
    let handle = fh.file();
    let Some(file) = table::find(handle) else {
        return entry::theirs("MPI_File_close", |host| {
            // SAFETY: the argument is the caller's.
            host.files.File_close.map(|f| unsafe { f(fh) })
        });
    };
    entry::ours(file, "MPI_File_close", |call| {
        call.file.check_idle()?;
        call.file.file.close()?;
        table::remove(handle);
        call.host.close_nothing(handle)?;
        fh.set_file(call.host.abi.file_null);
        Ok(())
    })
}
