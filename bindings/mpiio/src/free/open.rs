//! `MPI_File_open`: whose file it is, and opening it together.

use std::ffi::c_int;

use crate::entry;
use crate::failure::{Class, Failure};
use crate::ffi::{HandleOut, Text, Word};
use crate::service;

/// `MPI_File_open`.
pub(crate) fn open(comm: Word, filename: Text, amode: c_int, info: Word, fh: HandleOut) -> c_int {
    let name = filename.get().unwrap_or_default();
    if service::path_of(&name).is_none() {
        return entry::theirs("MPI_File_open", |host| {
            // SAFETY: the arguments are the caller's.
            host.files
                .File_open
                .map(|f| unsafe { f(comm, filename, amode, info, fh) })
        });
    }
    entry::of_no_file("MPI_File_open", &name, |_| {
        Err(Failure::new(Class::UnsupportedOperation, "not built yet"))
    })
}
