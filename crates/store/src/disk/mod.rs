//! Subfiles on disks, behind a cache of extents: the durable store.
//!
//! | module | owns |
//! |---|---|
//! | `device` | the system calls, as two traits; the real directory |
//! | `limited` | the same, no faster than it is told to be |
//! | `twin` | the same in memory, with faults and power cuts |
//! | `format` | bytes of headers and tables |
//! | `file` | one data file: epochs, checksums, barriers |
//! | `group` | committed and proposed table of a group |
//! | `recover` | what counts after a crash |
//! | `set` | several disks: ranking, failure |
//! | `held` | one open subfile: cached extents above its data file |
//! | `store` | all of them: placement, eviction, write-back |

mod ahead;
mod device;
mod file;
mod format;
mod group;
mod held;
mod limited;
mod recover;
mod set;
mod store;
pub mod twin;
mod watched;

pub use device::{Directory, Disk, DiskFile, Space};
pub use file::Recovery;
pub use limited::Limited;
pub use set::{Characteristics, DiskSet, DiskSpec, measure_speed, rank};
pub use store::{DiskOptions, DiskStore, Found};
pub use watched::{Asked, Watched, Watcher};
