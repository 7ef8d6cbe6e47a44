//! The end of MPI: what happens first thing in `MPI_Finalize`, while MPI can still be called.
//!
//! Operations that are under way are waited for, those that need other processes for a bounded time, since these
//! may never come; threads end; files that the program left open are closed for this process; the services hear
//! a goodbye before the transport of MPI goes away.
//!
//! A correct program has completed all its operations but those whose request it gave back.

use std::ffi::{c_int, c_void};
use std::time::Duration;

use crate::ffi::Word;
use crate::host::{self, Host};
use crate::{progress, queue, requests, service, table};

/// How long operations are waited for that need other processes and whose requests were given back or forgotten.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long threads that have nothing more to do are waited for.
const PARTING: Duration = Duration::from_secs(1);

/// Has this process told of the end of MPI.
pub(crate) fn prepare(host: &Host) {
    let _ = host.at_finalize(ended);
}

extern "C" fn ended(_comm: Word, _key: c_int, _value: *mut c_void, _extra: *mut c_void) -> c_int {
    crate::entry::guarded(|| {
        if let Some(host) = host::get().filter(|_| !queue::is_over()) {
            end(host);
        }
        0
    })
}

fn end(host: &Host) {
    requests::settle(host, PATIENCE);
    queue::stop(PARTING);
    requests::finish(host);
    for file in table::all() {
        table::remove(file.handle);
        // There is nobody left to hear of a failure.
        let _ = file.file.close();
        let _ = host.close_nothing(file.handle);
    }
    progress::release(host);
    service::disconnect();
}
