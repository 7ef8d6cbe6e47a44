//! The bytes of subfiles: in memory, and on disks behind memory.
//!
//! ```text
//!   Store --create, open--> Subfile --pin, grant--> pieces of extents --kernels--> user's bytes
//!                              |
//!   MemoryStore                | extents            segments (memfds) of a Pool
//!   DiskStore                  | extents as cache   + one data file each, checksums per block
//! ```
//!
//! The crate owns extents and their recycling ([`Pool`]), the contract of a store ([`Store`],
//! [`Subfile`]), the two stores, the format of data files, and the suite that every store must pass
//! ([`conformance`]). It knows neither clients nor layouts: a subfile is a sequence of bytes.
//!
//! | module | owns |
//! |---|---|
//! | `store`, `conformance`, `error` | the contract of a store, the checks that every store passes, and what can go wrong |
//! | `memory`, `disk` | the two stores |
//! | `pool`, `segment` | memory for extents, and the files of the kernel that it is |
//! | `table`, `blocks`, `pins`, `aside` | the extents of a subfile, the state of their blocks, access to them in place, and those that a client may still store into |
//! | `ledger` | what has to be found again when the process was killed: a map in shared memory |
//! | `cache`, `policy` | which extents of disks are in memory, and which of them go first |
//! | `identity` | who a subfile is |
//!
//! Invariants
//! - No thread, no clock, no waiting: write-back happens inside calls of those who drive it, and a
//!   store without room says so.
//! - Memory never exceeds the limit of the pool, and memory never crosses protection domains.
//! - Bytes are returned as they were written, or an error is. What a hole reads as is zero; what
//!   was lost or damaged never reads as zero.
//! - No reference to extent memory is formed; other processes may write it.
//!
//! Unsafe code stands in [`segment`] only.

mod aside;
mod blocks;
mod cache;
pub mod conformance;
pub mod disk;
mod error;
mod identity;
pub mod ledger;
mod memory;
mod pins;
pub mod policy;
mod pool;
#[allow(unsafe_code)]
pub mod segment;
mod store;
mod table;

pub use aside::Aside;
pub use blocks::BLOCK;
pub use cache::CacheUsage;
pub use disk::{
    Characteristics, Directory, Disk, DiskFile, DiskId, DiskOptions, DiskRequest, DiskSet,
    DiskSpec, DiskStore, FileIo, LimitedDisk, ListedSubfile, MissingDisk, Origin, QuarantinedFile,
    Recovery, ScannedFile, Space, Standing, WatchedDisk, Watcher, direct_io, measure_speed, rank,
    spread,
};
pub use error::{Advice, Error, Resource, Result};
pub use identity::{Domain, Identity, MAX_LEN, NOTE_BYTES, SubfileId};
pub use ledger::{Batch, Keeping, Ledger};
pub use memory::MemoryStore;
pub use pins::{Grant, Pins, StoredPiece};
pub use pool::{CHUNK, Extent, Pool, PoolOptions, PoolUsage, UNIT};
pub use segment::{Pages, Segment};
pub use store::{Capabilities, Location, Scrub, Store, Subfile, Usage};
