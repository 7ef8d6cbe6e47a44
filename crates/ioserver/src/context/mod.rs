//! The parts of a server by duty. A function gets the ones that it needs, and reaches what they stand on through them.
//!
//! | part | what it is |
//! |---|---|
//! | [`Identity`] | who this server is |
//! | [`Cluster`] | the way to the metadata manager and to members |
//! | [`Storage`] | the store, memory that bytes pass through, and its limits |
//! | [`Files`](crate::files::Files) | the files here: their gates, states and maps |
//!
//! ```text
//!  IoService -> Owner -> Others -> Files -> Cluster, Storage -> Sessions, Identity
//! ```
//!
//! Invariant: the arrows are all there are, so nothing here holds itself. The owner's role asks the files of this
//! server through [`Others`], without a socket; what has to ask the owner's role is given it as an argument.

mod cluster;
mod identity;
mod others;
mod reports;
mod storage;

use std::time::SystemTime;

use wire::Time;

pub(crate) use cluster::Cluster;
pub(crate) use identity::Identity;
pub(crate) use others::Others;
pub(crate) use reports::Reports;
pub(crate) use storage::Storage;

/// The time, in milliseconds since 1970: what capabilities end by.
pub(crate) fn now_ms() -> u64 {
    u64::try_from(now().0 / 1_000_000).unwrap_or(0)
}

/// The time, in nanoseconds since 1970.
pub(crate) fn now() -> Time {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Time(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
