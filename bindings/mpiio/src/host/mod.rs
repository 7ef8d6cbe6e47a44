//! The MPI library of this process: found at run time, asked through its own functions.
//!
//! Invariants
//! - Functions are looked up in the library that was found, never in the global scope, where the names may
//!   be ours.
//! - Nothing here is called from threads of ours.
//!
//! Left to others: what differs between ABIs (`abi`).

mod calls;
mod find;
mod fortran;

use std::sync::OnceLock;

use crate::abi::Abi;
use crate::entries::HostFiles;
use crate::ffi::Word;

pub(crate) use calls::{Calls, Envelope};

/// The MPI library.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) abi: Abi,
    /// Functions that this library takes over.
    pub(crate) files: HostFiles,
    /// All others that it needs.
    pub(crate) calls: Calls,
    /// Where it was loaded from.
    pub(crate) path: String,
}

static HOST: OnceLock<Host> = OnceLock::new();

/// The MPI library of the process; nothing if there is none.
#[inline(always)]
pub(crate) fn get() -> Option<&'static Host> {
    match HOST.get() {
        Some(host) => Some(host),
        None => look(),
    }
}

#[cold]
fn look() -> Option<&'static Host> {
    // A call that comes before the library is loaded (a constructor) must not settle it for ever.
    let found = find::find()?;
    Some(HOST.get_or_init(|| found))
}

/// Whether handles are 32 bits wide.
pub(crate) fn is_narrow() -> bool {
    get().is_some_and(|host| host.abi.is_narrow())
}

/// A handle that came in a register: where handles are 32 bits wide, the rest of it is undefined.
pub(crate) fn trimmed(word: Word) -> Word {
    match is_narrow() {
        true => Word(word.0 & 0xffff_ffff),
        false => word,
    }
}
