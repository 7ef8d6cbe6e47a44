//! `MPI_File_delete`.
//!
//! Of one process alone. A file that another process has open stays.

use std::ffi::c_int;

use crate::entry;
use crate::ffi::{Text, Word};
use crate::service::Target;

/// `MPI_File_delete`.
pub(crate) fn delete(filename: Text, info: Word) -> c_int {
    let name = filename.get().unwrap_or_default();
    let Some(target) = Target::of(&name).filter(|target| !target.is_of_host()) else {
        return entry::theirs("MPI_File_delete", |host| {
            // SAFETY: the arguments are the caller's.
            host.files.File_delete.map(|f| unsafe { f(filename, info) })
        });
    };
    entry::of_no_file("MPI_File_delete", &name, |_| {
        target.client()?.unlink_unless_open(&target.path)?;
        Ok(0)
    })
}
