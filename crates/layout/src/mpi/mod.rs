//! MPI datatypes: every constructor of the standard, as sets, as sequences and as file views.
//!
//! A datatype is a *type map*, an ordered list of bytes relative to a buffer address, with a lower
//! bound and an extent that say how copies are laid side by side. Here it is a shared tree of
//! constructor calls. Each tree knows its type map as a [`Sequence`], which exists for every type,
//! and as a set of nested FALLS where the map ascends without overlap ([`Datatype::to_set`]).
//!
//! ```text
//! vector(3, 2, 4, basic(1))      ##..##..##            size 6, lb 0, extent 10
//! resized(0, 12, that)           ##..##..##..          the next copy begins at 12
//! ```
//!
//! Rules (MPI 4.0 chapter 5, and the golden cases)
//! - Lower and upper bound come from the type map, unless some part has explicit bounds: then only
//!   explicit bounds count ("sticky"). `resized`, `subarray` and `darray` set them, and `resized`
//!   erases older ones.
//! - Zero counts and zero block lengths contribute neither bytes nor bounds.
//! - No alignment padding is added: a basic type is as wide as its bytes, so a caller who mirrors an
//!   MPI library passes the extents of that library through `resized`.
//! - Copies are placed by the extent; the lower bound is not subtracted.
//!
//! Arguments are signed, as MPI has them, and checked: an error names the argument. All arithmetic is
//! 64-bit and checked. The number of nodes does not depend on counts, and cloning is free.
//!
//! Left to others: the meaning of the elements (byte order, conversion), handles, commit and free.

use std::fmt;
use std::sync::Arc;

use falls::{FallsSet, Reason};

use crate::array::Order;
use crate::error::{LayoutError, LayoutErrorKind};
use crate::sequence::{Overlap, Sequence};

mod array_types;
mod back;
mod bounds;
mod calls;
mod construct;
mod view;

use bounds::Bounds;
pub use view::FileView;

/// Deepest tree of constructors.
pub const MAX_DEPTH: u32 = 256;

/// An MPI datatype. Cheap to clone; see the [module](self) for the rules.
///
/// ```
/// use layout::mpi::Datatype;
/// let int = Datatype::basic(4)?;
/// let column = Datatype::vector(4, 1, 4, &int)?;         // a column of a 4 x 4 matrix
/// assert_eq!((column.size(), column.lb(), column.extent()), (16, 0, 52));
/// let (base, set) = column.to_set()?;
/// assert_eq!((base, set.to_string().as_str()), (0, "{(0,3,16,4)}"));
///
/// // Two columns, one after the other: fine in memory, no set.
/// let columns = Datatype::contiguous(2, &Datatype::resized(0, 4, &column)?)?;
/// assert_eq!(columns.size(), 32);
/// assert!(columns.to_set().unwrap_err().to_string().contains("contiguous"));
/// let first: Vec<_> = columns.to_sequence().runs().map(|r| r.start).take(5).collect();
/// assert_eq!(first, [0, 16, 32, 48, 4]);
/// # Ok::<(), layout::LayoutError>(())
/// ```
#[derive(Clone)]
pub struct Datatype(Arc<Inner>);

struct Inner {
    constructor: Constructor,
    bounds: Bounds,
    sequence: Sequence,
    depth: u32,
}

/// How `darray` deals out one dimension. `None` as argument is `MPI_DISTRIBUTE_DFLT_DARG`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribute {
    /// Neighbouring elements; by default as many as it takes to give every process a part.
    Block(Option<i64>),
    /// Blocks dealt out in turn; by default of one element.
    Cyclic(Option<i64>),
    /// Not distributed: the grid has one process in this dimension.
    None,
}

/// The call that made a datatype, with its arguments.
#[derive(Clone, Debug)]
pub enum Constructor {
    /// A predefined type of so many bytes.
    Basic {
        /// Bytes.
        size: i64,
    },
    /// `MPI_Type_contiguous`.
    Contiguous {
        /// Copies.
        count: i64,
        /// What is copied.
        old: Datatype,
    },
    /// `MPI_Type_vector`: the stride counts extents of `old`.
    Vector {
        /// Blocks.
        count: i64,
        /// Copies in a block.
        blocklen: i64,
        /// From block to block, in extents.
        stride: i64,
        /// What is copied.
        old: Datatype,
    },
    /// `MPI_Type_create_hvector`: the stride counts bytes.
    Hvector {
        /// Blocks.
        count: i64,
        /// Copies in a block.
        blocklen: i64,
        /// From block to block, in bytes.
        stride: i64,
        /// What is copied.
        old: Datatype,
    },
    /// `MPI_Type_indexed`: displacements count extents of `old`.
    Indexed {
        /// Copies in each block.
        blocklens: Arc<[i64]>,
        /// Where each block begins, in extents.
        displs: Arc<[i64]>,
        /// What is copied.
        old: Datatype,
    },
    /// `MPI_Type_create_hindexed`: displacements count bytes.
    Hindexed {
        /// Copies in each block.
        blocklens: Arc<[i64]>,
        /// Where each block begins, in bytes.
        displs: Arc<[i64]>,
        /// What is copied.
        old: Datatype,
    },
    /// `MPI_Type_create_indexed_block`.
    IndexedBlock {
        /// Copies in every block.
        blocklen: i64,
        /// Where each block begins, in extents.
        displs: Arc<[i64]>,
        /// What is copied.
        old: Datatype,
    },
    /// `MPI_Type_create_hindexed_block`.
    HindexedBlock {
        /// Copies in every block.
        blocklen: i64,
        /// Where each block begins, in bytes.
        displs: Arc<[i64]>,
        /// What is copied.
        old: Datatype,
    },
    /// `MPI_Type_create_struct`.
    Struct {
        /// Copies in each block.
        blocklens: Arc<[i64]>,
        /// Where each block begins, in bytes.
        displs: Arc<[i64]>,
        /// What is copied in each block.
        olds: Arc<[Datatype]>,
    },
    /// `MPI_Type_create_subarray`.
    Subarray {
        /// Elements of the array in each dimension.
        sizes: Arc<[i64]>,
        /// Elements of the part.
        subsizes: Arc<[i64]>,
        /// First index of the part.
        starts: Arc<[i64]>,
        /// Order of the elements.
        order: Order,
        /// One element.
        old: Datatype,
    },
    /// `MPI_Type_create_darray`.
    Darray {
        /// Processes.
        size: i64,
        /// The process whose part this is.
        rank: i64,
        /// Elements of the array in each dimension.
        gsizes: Arc<[i64]>,
        /// Distribution of each dimension.
        distribs: Arc<[Distribute]>,
        /// Processes in each dimension.
        psizes: Arc<[i64]>,
        /// Order of the elements; the grid of processes is always row-major.
        order: Order,
        /// One element.
        old: Datatype,
    },
    /// `MPI_Type_create_resized`.
    Resized {
        /// New lower bound.
        lb: i64,
        /// New extent.
        extent: i64,
        /// What is resized.
        old: Datatype,
    },
    /// `MPI_Type_dup`.
    Dup {
        /// What is duplicated.
        old: Datatype,
    },
}

impl Constructor {
    /// The word of the constructor: `vector` for `MPI_Type_vector`, `struct` for
    /// `MPI_Type_create_struct`.
    pub fn name(&self) -> &'static str {
        match self {
            Constructor::Basic { .. } => "basic",
            Constructor::Contiguous { .. } => "contiguous",
            Constructor::Vector { .. } => "vector",
            Constructor::Hvector { .. } => "hvector",
            Constructor::Indexed { .. } => "indexed",
            Constructor::Hindexed { .. } => "hindexed",
            Constructor::IndexedBlock { .. } => "indexed_block",
            Constructor::HindexedBlock { .. } => "hindexed_block",
            Constructor::Struct { .. } => "struct",
            Constructor::Subarray { .. } => "subarray",
            Constructor::Darray { .. } => "darray",
            Constructor::Resized { .. } => "resized",
            Constructor::Dup { .. } => "dup",
        }
    }

    /// The types it is made of: none for a basic type, several for a struct, else one.
    pub fn olds(&self) -> &[Datatype] {
        match self {
            Constructor::Basic { .. } => &[],
            Constructor::Struct { olds, .. } => olds,
            Constructor::Contiguous { old, .. }
            | Constructor::Vector { old, .. }
            | Constructor::Hvector { old, .. }
            | Constructor::Indexed { old, .. }
            | Constructor::Hindexed { old, .. }
            | Constructor::IndexedBlock { old, .. }
            | Constructor::HindexedBlock { old, .. }
            | Constructor::Subarray { old, .. }
            | Constructor::Darray { old, .. }
            | Constructor::Resized { old, .. }
            | Constructor::Dup { old } => std::slice::from_ref(old),
        }
    }
}

impl Datatype {
    fn build(
        constructor: Constructor,
        bounds: Bounds,
        sequence: Sequence,
    ) -> Result<Self, LayoutError> {
        let depth = constructor.olds().iter().map(|o| o.0.depth).max();
        let depth = depth.unwrap_or(0) + 1;
        if depth > MAX_DEPTH {
            return Err(LayoutError::new(
                LayoutErrorKind::Falls(Reason::Depth),
                "oldtype",
                format!("types nested deeper than {MAX_DEPTH} constructors"),
            ));
        }
        bounds.check()?;
        Ok(Datatype(Arc::new(Inner {
            constructor,
            bounds,
            sequence,
            depth,
        })))
    }

    /// The call that made this type; its arguments lead to the types below.
    pub fn constructor(&self) -> &Constructor {
        &self.0.constructor
    }

    /// Number of bytes of the type map (`MPI_Type_size`).
    pub fn size(&self) -> u64 {
        self.0.sequence.size()
    }

    /// Lower bound.
    pub fn lb(&self) -> i64 {
        self.0.bounds.lb()
    }

    /// Upper bound: `lb + extent`.
    pub fn ub(&self) -> i64 {
        self.0.bounds.ub()
    }

    /// Distance from one copy to the next; negative only when `resized` says so.
    pub fn extent(&self) -> i64 {
        self.ub() - self.lb()
    }

    /// Whether the bounds were set by `resized`, `subarray` or `darray`, here or in a part.
    pub fn has_explicit_bounds(&self) -> bool {
        self.0.bounds.explicit()
    }

    /// Lowest byte of the type map; 0 when there is none.
    pub fn true_lb(&self) -> i64 {
        self.0.sequence.hull().map_or(0, |h| h.start)
    }

    /// Bytes from the lowest to the highest byte of the type map.
    pub fn true_extent(&self) -> i64 {
        self.0.sequence.hull().map_or(0, |h| h.end - h.start)
    }

    /// Whether copies leave bytes out or in disorder: the type map is not exactly the bytes from
    /// `lb` to `ub`, ascending.
    pub fn has_holes(&self) -> bool {
        if self.size() == 0 {
            return self.extent() > 0;
        }
        !self.0.sequence.is_contiguous()
            || (self.true_lb(), self.true_extent()) != (self.lb(), self.extent())
    }

    /// Whether the type map strictly ascends, so that [`Datatype::to_set`] succeeds.
    pub fn is_monotone(&self) -> bool {
        self.0.sequence.is_monotone()
    }

    /// Whether the type map holds a byte twice, as far as can be told cheaply
    /// ([`Sequence::overlap`]).
    pub fn overlap(&self) -> Overlap {
        self.0.sequence.overlap()
    }

    /// The type map as an ordered program of runs. Exists for every type.
    pub fn to_sequence(&self) -> Sequence {
        self.0.sequence.clone()
    }

    /// The type map of `count` copies, tiled by the extent: what a buffer argument
    /// `(address, count, datatype)` means.
    pub fn to_sequence_of(&self, count: u64) -> Result<Sequence, LayoutError> {
        self.0.sequence.repeat(count, self.extent())
    }

    /// The bytes as a set: the offset of the lowest byte ([`true_lb`](Datatype::true_lb), possibly
    /// negative) and the set relative to it.
    ///
    /// Refused ([`LayoutErrorKind::NotMonotone`], naming the constructor) when the type map does not
    /// ascend or visits a byte twice. Long irregular index lists become compact segment lists.
    pub fn to_set(&self) -> Result<(i64, FallsSet), LayoutError> {
        if !self.is_monotone() {
            return Err(self.not_monotone("datatype"));
        }
        self.0.sequence.to_set()
    }

    /// The refusal of `argument` for its order, with the innermost constructor that breaks it.
    fn not_monotone(&self, argument: &str) -> LayoutError {
        let mut blamed = self;
        while let Some(deeper) = blamed
            .0
            .constructor
            .olds()
            .iter()
            .find(|o| !o.is_monotone())
        {
            blamed = deeper;
        }
        LayoutError::new(
            LayoutErrorKind::NotMonotone,
            argument,
            format!(
                "the {} in it visits bytes out of ascending order or more than once; use it in memory, as a sequence",
                blamed.0.constructor.name()
            ),
        )
    }
}

impl fmt::Debug for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.constructor.fmt(f)
    }
}
