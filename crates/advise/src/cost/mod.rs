//! What an access costs, each way it could be done, before it is done.
//!
//! ```text
//!  views and ranges  --+                        +--> direct      0.8 ms    0 messages
//!  where subfiles are -+-> counts per pair  ----+--> packed      2.1 ms    8 messages
//!  machine (measured) -+   (from the algebra)   +--> two_phase   3.0 ms   ...        best first
//! ```
//!
//! Bytes, pieces, lines and pages come from the meetings of views and subfiles (`plan::Counts`), in time
//! that follows the nesting of the patterns, never the length of the file. Seconds come from a
//! [`Machine`] that calibration measured, or from [`Machine::HOST`].
//!
//! The time of a way is that of the slowest of three: the busiest process, the busiest server, and all
//! work of a host on its cores. Processes and servers overlap when an access takes several messages, and
//! follow one another when it takes one.
//!
//! Invariants
//! - Total: every access has at least one way, every number is finite and not negative.
//! - Every way moves the same bytes of the user; `bytes` counts what travels, holes included.
//!
//! Left to others: measuring (`pario calibrate`), doing it (`client`), which layout would be better
//! (`advise`'s profile and candidates).

mod access;
mod machine;
mod ways;

pub use access::{Access, Home, Op, Process, StoreKind};
pub use machine::{Curve, Excess, JUMP_BYTES, Link, Machine, StoreCost, Walk};
pub use ways::{DirectedWay, Prediction, ServerLoad, Way, alternatives, matching};
