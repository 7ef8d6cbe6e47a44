//! `MPI_File_close`.
//!
//! Collective: the file is closed at all processes when the call returns, so one that goes with its last handle
//! is gone then. The handle is gone too, also when the service could not be told.

use std::ffi::c_int;

use crate::entry;
use crate::ffi::HandleOut;
use crate::table;

/// `MPI_File_close`.
pub(crate) fn close(fh: HandleOut) -> c_int {
    let handle = fh.file();
    let Some(file) = table::find(handle) else {
        return entry::of_handle(handle, "MPI_File_close", |host| {
            // SAFETY: the argument is the caller's.
            host.files.File_close.map(|f| unsafe { f(fh) })
        });
    };
    entry::ours(file, "MPI_File_close", |call| {
        let file = &call.file;
        file.agree(file.check_idle(), &[], "")?;
        // The file is gone for this process in any case; a service that cannot be reached is still reported.
        let closed = file.file.close().map_err(Into::into);
        // With MPI_MODE_DELETE_ON_CLOSE it is gone when the call returns: all have closed it by then.
        let closed = file.agree(closed, &[], "");
        table::remove(handle);
        let _ = call.host.group_free(file.group);
        file.current().give_back(call.host);
        fh.set_file(call.host.abi.file_null);
        match closed {
            Ok(()) => call.host.close_nothing(handle),
            // The handler of the handle has to hear of it first.
            Err(failure) => Err(failure.closing(handle)),
        }
    })
}
