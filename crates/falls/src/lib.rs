//! Integer geometry on a line: segments, FALLS and nested FALLS.
//!
//! A FALLS is a *fa*mi*l*y of *l*ine *s*egments: `count` blocks of `len` bytes, `stride` apart. A
//! nested FALLS repeats a whole set of FALLS inside each of its blocks, so a few numbers describe
//! millions of pieces:
//!
//! ```text
//! (0,3,8,2,{(0,0,2,2)})     outer blocks   |....    |....    |
//!                           inner bytes     x x      x x          = {0, 2, 8, 10}
//! ```
//!
//! The crate owns the shapes and their algebra: size, rank and select, cut, intersection,
//! projection, complement, normal form and compression. It knows nothing of files, servers or I/O,
//! holds no threads and depends on nothing.
//!
//! | module | owns |
//! |---|---|
//! | `segment`, `set` | segments, nested FALLS and sets of them: size, rank, select |
//! | `periodic`, `pitfalls` | a set that repeats to infinity; one description for many processors |
//! | `cut`, `intersect`, `project`, `complement`, `split` | the algebra |
//! | `normalise`, `simplify`, `compress` | well-formed sets from any list, and smaller ones with the same bytes |
//! | `meeting`, `joint`, `steps` | what two elements have in common, in three spaces at once, and how much searching it may cost |
//! | `common_byte`, `overlay`, `pairs` | where sets share a byte, and who owns it |
//! | `segments`, `run_count` | walking along the pieces of a set, and counting them without that |
//! | `notation` | the text of the literature |
//! | `checked`, `error` | offset arithmetic, and why a set is refused |
//! | `bytes_naive` | the oracle |
//!
//! Invariants
//! - Every [`FallsSet`] is well formed (blocks do not overlap, members ascend, inner sets lie in
//!   their blocks), so tree order is ascending order and no byte occurs twice. Constructors
//!   validate; operations on valid values are total.
//! - A whole block is `inner == None`. An empty inner set does not exist.
//! - All offsets and ends are at most [`MAX_OFFSET`]; inside, ranges are half open. The inclusive
//!   `(l, r, s, n, {..})` of the literature is a text notation only ([`notation`]).
//! - No operation takes memory or time in proportion to the bytes or pieces a set describes, except
//!   iterators, which pay piece by piece, and those that say so ([`FallsSet::intersect`] without a
//!   [`Budget`], [`Meeting::count`] and [`Meeting::joint`] of a lazy meeting). Where a symbolic result
//!   would be large, [`Meeting`] answers by cursors instead. Whoever asks about patterns that he did not
//!   choose bounds what a cursor does by [`Steps`].
//! - The normal form is not canonical: compare sets by their bytes ([`FallsSet::same_bytes`]).
//!
//! ```
//! use falls::FallsSet;
//! let v: FallsSet = "{(0,7,16,2,{(0,1,4,2)})}".parse().unwrap();
//! assert_eq!(v.size(), 8);
//! assert_eq!(v.rank(16), 4);          // four bytes lie below offset 16
//! assert_eq!(v.select(4), Some(16));  // and byte number 4 is there
//! ```
#![forbid(unsafe_code)]

pub mod bytes_naive;
mod checked;
mod common_byte;
mod complement;
mod compress;
mod cut;
mod error;
mod intersect;
mod joint;
mod meeting;
mod normalise;
pub mod notation;
mod overlay;
mod pairs;
mod periodic;
mod pitfalls;
mod project;
mod run_count;
mod segment;
mod segments;
mod set;
mod simplify;
mod split;
mod steps;

pub use checked::{MAX_OFFSET, lcm};
pub use compress::{compress_offsets, compress_segments};
pub use error::{FallsError, Reason};
pub use intersect::Budget;
pub use joint::{Joint, JointNode};
pub use meeting::{Meeting, Run, Runs};
pub use overlay::{Flaw, LabelledNode, Overlay, Region};
pub use periodic::{Periodic, PeriodicSegments};
pub use pitfalls::Pitfalls;
pub use segment::Segment;
pub use segments::Segments;
pub use set::{Falls, FallsSet, Limits, Node};
pub use split::Pieces;
pub use steps::{OutOfSteps, Steps, Watch};
