//! The data path of one access. Skeleton: what a lane keeps for it.

/// What accesses reuse.
#[derive(Debug, Default)]
pub(crate) struct Work {}
