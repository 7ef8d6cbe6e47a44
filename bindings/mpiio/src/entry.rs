//! The way from an entry point to a verb, and back with an error code.
//!
//! Whatever happens inside, the program gets a code: failures go through the handler of the file, or of no file,
//! and a panic becomes an internal error.
//!
//! Left to others: which entry points there are (`entries`), what verbs do (`verbs`, `free`).

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::abi::Family;
use crate::failure::{self, Class, Failure};
use crate::ffi::Word;
use crate::host::{self, Host};
use crate::open_file::OpenFile;

/// What a verb came to.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// A call with a handle of ours.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) host: &'static Host,
    pub(crate) file: Arc<OpenFile>,
    /// The name of the function in the standard.
    pub(crate) name: &'static str,
}

/// The code for a process without MPI; the same in every library.
const ERR_INTERN: c_int = 16;

/// Runs a verb on a file of ours and reports its failure through the file's handler.
pub(crate) fn ours(
    file: Arc<OpenFile>,
    name: &'static str,
    verb: impl FnOnce(&Call) -> Outcome,
) -> c_int {
    let Some(host) = host::get() else {
        return ERR_INTERN;
    };
    let call = Call { host, file, name };
    match verb(&call) {
        Ok(()) => 0,
        Err(failure) => {
            let OpenFile {
                handle, name: file, ..
            } = &*call.file;
            failure::raise(host, *handle, name, file, &failure)
        }
    }
}

/// Lets the host do it with a handle that is not ours.
pub(crate) fn of_handle(
    handle: Word,
    name: &'static str,
    function: impl FnOnce(&Host) -> Option<c_int>,
) -> c_int {
    match host::get() {
        // Libraries of the standard ABI look behind the null handle without looking at it.
        Some(host) if host.abi.family == Family::Standard && handle == host.abi.file_null => {
            let failure = Failure::new(
                Class::File,
                "the handle is MPI_FILE_NULL; open a file first",
            );
            failure::raise(host, handle, name, "", &failure)
        }
        _ => theirs(name, function),
    }
}

/// Lets the host do it.
pub(crate) fn theirs(name: &'static str, function: impl FnOnce(&Host) -> Option<c_int>) -> c_int {
    let Some(host) = host::get() else {
        return ERR_INTERN;
    };
    function(host).unwrap_or_else(|| {
        let name = name.strip_prefix("MPI_").unwrap_or(name);
        let failure = Failure::host_lacks(name);
        failure::raise(host, host.abi.file_null, name, "", &failure)
    })
}

/// Runs a function that belongs to no file of ours and reports its failure as those are that belong to no file.
pub(crate) fn of_no_file(
    name: &'static str,
    file: &str,
    function: impl FnOnce(&'static Host) -> Outcome<c_int>,
) -> c_int {
    let Some(host) = host::get() else {
        return ERR_INTERN;
    };
    function(host)
        .unwrap_or_else(|failure| failure::raise(host, host.abi.file_null, name, file, &failure))
}

/// Keeps a panic from crossing into C.
pub(crate) fn guarded(entry: impl FnOnce() -> c_int) -> c_int {
    catch_unwind(AssertUnwindSafe(entry))
        .unwrap_or_else(|_| host::get().map_or(ERR_INTERN, |host| host.abi.err_intern as c_int))
}
