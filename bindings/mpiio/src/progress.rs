//! Driving the host while a thread of the program waits inside a call of ours.
//!
//! A peer may be in a receive that needs this process to make progress before it comes to the collective call
//! that is waited for here. A probe on a private communicator is progress in every MPI.

use std::sync::OnceLock;

use crate::ffi::Word;
use crate::host;

/// A private communicator with this process alone.
static PRIVATE: OnceLock<Word> = OnceLock::new();

/// Makes the private communicator; called when the first file is opened.
pub(crate) fn prepare() {
    if let Some(host) = host::get()
        && PRIVATE.get().is_none()
        && let Ok(comm) = host.comm_dup(host.abi.comm_self)
    {
        // A thread that came later keeps its communicator to itself; MPI frees it at the end.
        let _ = PRIVATE.set(comm);
    }
}

/// Lets the host make progress. For threads of the program, inside a call to MPI.
pub(crate) fn drive() {
    if let (Some(host), Some(comm)) = (host::get(), PRIVATE.get()) {
        host.probe(*comm);
    }
}
