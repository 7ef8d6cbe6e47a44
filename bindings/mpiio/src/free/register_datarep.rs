//! `MPI_Register_datarep`: representations that a program brings along.

use std::ffi::c_int;

use crate::entry;
use crate::ffi::{Text, Word};

/// `MPI_Register_datarep`.
pub(crate) fn register_datarep(
    _is_large: bool,
    datarep: Text,
    read: Word,
    write: Word,
    extent: Word,
    state: Word,
) -> c_int {
    entry::theirs("MPI_Register_datarep", |host| {
        // SAFETY: the arguments are the caller's.
        host.files
            .Register_datarep
            .map(|f| unsafe { f(datarep, read, write, extent, state) })
    })
}
