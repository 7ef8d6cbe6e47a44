//! Two layouts in, transfers out: which bytes go from whom to whom.
//!
//! Given two partitions of a file, or views and a partition, a [`Plan`] holds one [`Transfer`] for
//! every pair of elements that meet, as the intersection with its projections on both. From it
//! follow volumes, message counts, contention, the seven [`Measures`] of a match and the
//! [matching degree](Measures::matching_degree); and a [placement](Placement) of target elements that
//! moves the fewest bytes.
//!
//! What runs is an [`access::AccessPlan`]: the parts of one access, in the order in which their bytes travel. Clients,
//! servers, gateways and moves all walk it. What members of a team give each other is in [`exchange`].
//!
//! The crate does not know how bytes travel, does no I/O and reads no clock.
//!
//! Invariants
//! - Transfers are ordered by (source, target) and never empty.
//! - Every byte of the window that lies on both sides is in exactly one transfer when both sides are
//!   partitions; overlapping views may fetch a byte several times.
//! - Planning takes time in proportion to the pairs that meet and the nodes of their trees, not to
//!   bytes or pieces. Numbers that need the pieces of a lazy meeting are computed when asked for.
#![forbid(unsafe_code)]

pub mod access;
pub mod exchange;
mod measures;
mod placement;
mod plan;
mod transfer;

pub use measures::{Counts, EndCounts, Measures};
pub use placement::Placement;
pub use plan::{Plan, Side, TooManyPairs};
pub use transfer::{Part, Transfer};
