//! The meaning of sets: patterns, partitions and views of a file, and how to describe them.
//!
//! A *pattern* is a family of sets, its elements, that are disjoint and cover a range; repeated from
//! a *displacement* on it is a *partition* of the file, and each element is a *subfile*. A *view* is
//! one element alone and may have holes. The crate owns these types, the maps between file, view
//! and subfile offsets, and the constructors: HPF distributions, MPI datatypes, slices, chunk
//! grids, striping, access descriptors, block maps and the layout language.
//!
//! It knows no server and no network, does no I/O, and flattens nothing: the size of a description
//! follows the nesting of the pattern, not the number of pieces.
//!
//! | module | owns |
//! |---|---|
//! | `address`, `array` | offsets with their space, and arrays |
//! | `pattern`, `partition`, `view`, `sequence` | what sets mean: patterns, subfiles, views, memory in any order |
//! | `distribution`, `hpf`, `align` | HPF |
//! | `directives`, `run_time` | HPF as text, and as the numbers of a compiler |
//! | `owner_runs`, `owner_tree` | lists of owners, and what is regular about them |
//! | `mpi`, `slice`, `chunks`, `stripe`, `block_map`, `access_desc`, `galley`, `vesta` | other ways to say which bytes |
//! | `language` | the layout language |
//! | `error` | why a layout is refused |
//!
//! Invariants
//! - Every byte address carries its space in its type: [`FileOffset`], [`ViewOffset`],
//!   [`SubfileOffset`].
//! - A [`Partition`] was checked when it was built: starting at 0, disjoint, covering, gap-free.
//!   Views are free to have holes and to overlap.
//! - The owner of a byte and the elements that meet a range are found by descent, never by asking
//!   every element.
#![forbid(unsafe_code)]

pub mod access_desc;
mod address;
mod align;
mod array;
mod block_map;
mod chunks;
mod directives;
mod distribution;
mod error;
mod galley;
mod hpf;
mod language;
pub mod mpi;
mod owner_runs;
mod owner_tree;
mod partition;
mod pattern;
mod run_time;
pub mod sequence;
mod slice;
mod stripe;
mod vesta;
mod view;

pub use access_desc::{AccessDesc, BasicBlock};
pub use address::{FileOffset, FileSpan, Span, SubfileOffset, SubfileSpan, ViewOffset, ViewSpan};
pub use align::{AlignedElements, Alignment, TemplateAxis};
pub use array::{ArrayType, ElementType, Elements, MAX_DIMENSIONS, MAX_ELEMENTS, Order};
pub use block_map::BlockMap;
pub use chunks::{ChunkAxis, ChunkGrid, Chunks, DealtChunks, PaddedChunk};
pub use directives::{DirectiveError, Directives};
pub use distribution::{BlockLengths, Distribution};
pub use error::{LayoutError, LayoutErrorKind};
pub use galley::{NestedStride, StridedRequest};
pub use hpf::{Grid, Hpf, HpfElements};
pub use language::{AppliedLayout, ByteSize, Layout, LayoutForm, LayoutParseError, MAX_TEXT};
pub use owner_runs::{OwnerRun, OwnerRuns};
pub use partition::Partition;
pub use pattern::Pattern;
pub use run_time::RunTimeDescriptor;
pub use sequence::Sequence;
pub use slice::{Slice, SliceAxis};
pub use stripe::{Servers, Stripe};
pub use vesta::{VestaCut, VestaFile, VestaGroups};
pub use view::{View, ViewToSubfile};
