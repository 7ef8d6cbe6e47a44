//! Datatypes of the host as trees of our own.
//!
//! A type is taken apart once by envelope and contents and kept with the host's handle as an attribute, which
//! the host deletes with the type. Bounds are the host's.

use std::sync::Arc;

use layout::mpi::Datatype;

use crate::entry::Outcome;
use crate::ffi::Word;
use crate::host::Host;

/// A datatype of the program.
#[derive(Debug)]
pub(crate) struct Type {
    /// What it means for bytes in memory, and in files whose representation is that of memory.
    pub(crate) native: Datatype,
}

impl Type {
    /// Bytes of the type map.
    pub(crate) fn size(&self) -> u64 {
        self.native.size()
    }
}

/// The datatype behind a handle.
pub(crate) fn of(host: &Host, handle: Word) -> Outcome<Arc<Type>> {
    let size = host.type_size(handle)?;
    let native = Datatype::basic(size as i64)?;
    Ok(Arc::new(Type { native }))
}
