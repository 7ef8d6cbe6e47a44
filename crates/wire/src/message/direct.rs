//! Sharing memory with an I/O server of the same host.
//!
//! ```text
//! Attach  ------>  AttachAnswer + descriptors: control table (reading), client page
//! Map     ------>  MapAnswer    + descriptors: segments that this connection was not given yet
//! ```
//!
//! Only over a Unix socket, which carries the descriptors; the connection is of its own, and the client that
//! receives on it expects descriptors ([`crate::link::Link::expect_descriptors`]). What the memory
//! means is in `direct`.
//!
//! A map is good for one epoch of one entry, and used by clients that planned with the step that the entry stands at.
//! Within an epoch extents are only added, so maps of the same epoch add up. A byte without an extent is not known to be a hole: it goes by message.

use super::field::Bytes;

/// Instead of the mark of an extent: it may be read only.
pub const READ_ONLY: u32 = u32::MAX;

record! {
    /// Asks for control table and client page. Asked again, it gives the same page.
    pub struct Attach {}

    /// Two descriptors come with it: the control table, for reading, and the page of this client.
    pub struct AttachAnswer {
        /// Bytes of the control table.
        pub table_bytes: u64,
        /// Bytes of the client page.
        pub page_bytes: u64,
        /// What bytes that the client stores live and die with until they are synced.
        pub verifier: u64,
    }

    /// Asks where bytes of a file are in shared memory.
    pub struct Map {
        /// A view of the file, with the right to read or to write.
        pub view: u64,
        /// The encoded version of the layout state it was planned with.
        pub version: Bytes,
        /// The truncate epoch the client knows.
        pub epoch: u64,
        /// For storing: extents that are missing are made, and more behind a range that reaches beyond what is stored;
        /// descriptors allow writing.
        pub writes: bool,
        /// Which bytes.
        pub ranges: Vec<SubfileRange>,
    }

    /// Bytes of a subfile.
    pub struct SubfileRange {
        /// The generation under which it is stored.
        pub store: u64,
        /// Index in the layout.
        pub subfile: u32,
        /// First byte.
        pub start: u64,
        /// One past the last.
        pub end: u64,
    }

    /// Where bytes are: extents that meet what was asked for, and perhaps others beside them.
    pub struct MapAnswer {
        /// Entry of the file in the control table.
        pub entry: u32,
        /// The epoch of the entry for which this is so.
        pub epoch: u64,
        /// The step of the layout state with which it may be used; later ones when the entry says so.
        pub step: u64,
        /// Counts maps of this server, above 0.
        pub number: u64,
        /// Ascending by store, subfile and offset. Whatever was asked for and is missing goes by message.
        pub extents: Vec<MappedExtent>,
        /// Where the client says how far it stores, for each subfile it may store into.
        pub ends: Vec<SubfileEnd>,
        /// Segments whose descriptors come with this answer, in this order.
        pub segments: Vec<SegmentIs>,
        /// Segments that this connection was given and that no longer hold anything.
        pub gone: Vec<u64>,
    }

    /// The word of the client page that says how far the client has stored into a subfile. It is raised inside a claim, before
    /// anything is stored; without one nothing may be stored.
    pub struct SubfileEnd {
        /// The generation under which the subfile is stored.
        pub store: u64,
        /// Index in the layout.
        pub subfile: u32,
        /// The word.
        pub end: u32,
    }

    /// A run of a subfile in shared memory.
    pub struct MappedExtent {
        /// The generation under which it is stored.
        pub store: u64,
        /// Index in the layout.
        pub subfile: u32,
        /// First subfile byte.
        pub offset: u64,
        /// Bytes.
        pub len: u64,
        /// The segment.
        pub segment: u64,
        /// Where it begins there.
        pub at: u64,
        /// The mark in the client page to be set before storing, with 1 added; 0 if none is needed,
        /// [`READ_ONLY`] if nothing may be stored, whatever the descriptor allows.
        pub mark: u32,
    }

    /// A segment that is handed over.
    pub struct SegmentIs {
        /// Its number at this server.
        pub segment: u64,
        /// Bytes of address space.
        pub bytes: u64,
        /// Whether the descriptor allows writing.
        pub is_writable: bool,
    }
}
