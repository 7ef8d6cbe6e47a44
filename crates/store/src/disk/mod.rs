//! Subfiles on disks, behind a cache of extents: the durable store.
//!
//! | module | owns |
//! |---|---|
//! | `device` | the system calls, as two traits; the real directory |
//! | `direct_io` | the way past the page cache, and whether it pays |
//! | `limited` | the same, no faster than it is told to be |
//! | `twin` | the same in memory, with faults and power cuts |
//! | `format` | bytes of headers and tables |
//! | `file` | one data file: epochs, checksums, barriers |
//! | `group` | committed and proposed table of a group |
//! | `recover` | what counts after a crash |
//! | `roster` | which disks belong together |
//! | `records` | which subfiles exist |
//! | `set` | several disks: ranking, failure |
//! | `found` | what is on the disks when a store opens |
//! | `held` | one open subfile: cached extents above its data file |
//! | `legacy` | what a process that was killed had in memory only |
//! | `unstored` | what of an open subfile only memory has, on record |
//! | `opening` | one at a time, and why not |
//! | `reserved` | space that is taken before there are bytes for it |
//! | `room` | what leaves memory when it is needed |
//! | `store` | all of them: placement, write-back |

mod ahead;
mod device;
pub mod direct_io;
mod file;
mod format;
mod found;
mod group;
mod held;
#[cfg(test)]
mod laws;
mod legacy;
mod limited;
mod opening;
mod records;
mod recover;
mod reserved;
mod room;
mod roster;
mod set;
mod store;
pub mod twin;
mod unstored;
mod watched;

pub use device::{Directory, Disk, DiskFile, FileIo, Space};
pub use file::Recovery;
pub(crate) use format::crc32c;
pub use found::{QuarantinedFile, Standing};
pub use limited::LimitedDisk;
pub use roster::{DiskId, MissingDisk};
pub use set::{Characteristics, DiskSet, DiskSpec, measure_speed, rank, spread};
pub use store::{DiskOptions, DiskStore, ListedSubfile, Origin, ScannedFile};
pub use watched::{DiskRequest, WatchedDisk, Watcher};
