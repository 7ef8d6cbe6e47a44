//! Who a subfile is: what its header on disk says, and which memory it may share.
//!
//! A store treats all of it as opaque numbers. That file 7 is called `/a/b` is the metadata
//! manager's knowledge; it may leave itself a note of up to [`NOTE_BYTES`] with each subfile, which
//! the disk store keeps in the header, so that a directory can be rebuilt from the data files.

use std::fmt;

/// Most bytes of a [`Identity::note`].
pub const NOTE_BYTES: usize = 2048;

/// One past the last byte a subfile may have: offsets are 63-bit everywhere.
pub const MAX_LEN: u64 = i64::MAX as u64;

/// Names one subfile of one generation of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubfileId {
    /// The file.
    pub file: u64,
    /// Generation of the file's layout.
    pub generation: u64,
    /// Index of the subfile in that layout.
    pub index: u32,
}

impl fmt::Display for SubfileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{}.{}", self.file, self.generation, self.index)
    }
}

/// Who may share memory: a segment serves one domain, and space is recycled only inside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Domain {
    /// Owner of the file.
    pub owner: u32,
    /// Its group.
    pub group: u32,
    /// Its permission bits.
    pub mode: u32,
    /// The directory it is in, as a number.
    pub directory: u64,
}

/// What a subfile is created with, and what a header on disk repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its name.
    pub id: SubfileId,
    /// Its protection domain.
    pub domain: Domain,
    /// Incarnation of the server that created it.
    pub incarnation: u64,
    /// Bytes the creator wants to find again, at most [`NOTE_BYTES`].
    pub note: Vec<u8>,
}

impl Identity {
    /// An identity without a note.
    pub fn new(id: SubfileId, domain: Domain, incarnation: u64) -> Self {
        Identity {
            id,
            domain,
            incarnation,
            note: Vec::new(),
        }
    }
}
