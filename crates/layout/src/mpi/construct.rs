//! The constructors that repeat or list: everything but the array types.
//!
//! Each computes the bounds and the sequence of the new type from those of the old one, in time that
//! does not depend on counts, and refuses what does not fit 64 bits with the name of the argument.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::{Bounds, Constructor, Datatype, Inner};
use crate::error::{LayoutError, LayoutErrorKind};
use crate::sequence::{Builder, Sequence, Unit};

impl Datatype {
    /// A predefined type of `size` bytes; 0 is an empty type.
    pub fn basic(size: i64) -> Result<Self, LayoutError> {
        let bytes = count_of("size", size)?;
        Datatype::build(
            Constructor::Basic { size },
            Bounds::natural(0, size),
            Sequence::bytes(0, bytes)?,
        )
    }

    /// `count` copies side by side (`MPI_Type_contiguous`).
    pub fn contiguous(count: i64, old: &Datatype) -> Result<Self, LayoutError> {
        let copies = count_of("count", count)?;
        let old = old.clone();
        let mut bounds = Bounds::default();
        place_copies(&mut bounds, &old, 0, copies);
        let sequence = repeat(&old.0.sequence, copies, old.extent().into(), "count")?;
        Datatype::build(Constructor::Contiguous { count, old }, bounds, sequence)
    }

    /// `count` blocks of `blocklen` copies, `stride` extents apart (`MPI_Type_vector`).
    ///
    /// ```
    /// use layout::mpi::Datatype;
    /// let t = Datatype::vector(3, 2, -3, &Datatype::basic(1)?)?;
    /// assert_eq!((t.size(), t.lb(), t.extent()), (6, -6, 8));
    /// # Ok::<(), layout::LayoutError>(())
    /// ```
    pub fn vector(
        count: i64,
        blocklen: i64,
        stride: i64,
        old: &Datatype,
    ) -> Result<Self, LayoutError> {
        let bytes = i128::from(stride) * i128::from(old.extent());
        let (bounds, sequence) = strided(count, blocklen, bytes, old)?;
        let constructor = Constructor::Vector {
            count,
            blocklen,
            stride,
            old: old.clone(),
        };
        Datatype::build(constructor, bounds, sequence)
    }

    /// `count` blocks of `blocklen` copies, `stride` bytes apart (`MPI_Type_create_hvector`).
    pub fn hvector(
        count: i64,
        blocklen: i64,
        stride: i64,
        old: &Datatype,
    ) -> Result<Self, LayoutError> {
        let (bounds, sequence) = strided(count, blocklen, stride.into(), old)?;
        let constructor = Constructor::Hvector {
            count,
            blocklen,
            stride,
            old: old.clone(),
        };
        Datatype::build(constructor, bounds, sequence)
    }

    /// Blocks of `blocklens[i]` copies at `displs[i]` extents (`MPI_Type_indexed`).
    pub fn indexed(blocklens: &[i64], displs: &[i64], old: &Datatype) -> Result<Self, LayoutError> {
        same_length("blocklens", blocklens.len(), "displs", displs.len())?;
        let (bounds, sequence) = listed(blocklens, displs, old.extent(), old)?;
        let constructor = Constructor::Indexed {
            blocklens: blocklens.into(),
            displs: displs.into(),
            old: old.clone(),
        };
        Datatype::build(constructor, bounds, sequence)
    }

    /// Blocks of `blocklens[i]` copies at `displs[i]` bytes (`MPI_Type_create_hindexed`).
    pub fn hindexed(
        blocklens: &[i64],
        displs: &[i64],
        old: &Datatype,
    ) -> Result<Self, LayoutError> {
        same_length("blocklens", blocklens.len(), "displs", displs.len())?;
        let (bounds, sequence) = listed(blocklens, displs, 1, old)?;
        let constructor = Constructor::Hindexed {
            blocklens: blocklens.into(),
            displs: displs.into(),
            old: old.clone(),
        };
        Datatype::build(constructor, bounds, sequence)
    }

    /// Blocks of `blocklen` copies at `displs[i]` extents (`MPI_Type_create_indexed_block`).
    pub fn indexed_block(
        blocklen: i64,
        displs: &[i64],
        old: &Datatype,
    ) -> Result<Self, LayoutError> {
        count_of("blocklen", blocklen)?;
        let (bounds, sequence) = listed(&[blocklen], displs, old.extent(), old)?;
        let constructor = Constructor::IndexedBlock {
            blocklen,
            displs: displs.into(),
            old: old.clone(),
        };
        Datatype::build(constructor, bounds, sequence)
    }

    /// Blocks of `blocklen` copies at `displs[i]` bytes (`MPI_Type_create_hindexed_block`).
    pub fn hindexed_block(
        blocklen: i64,
        displs: &[i64],
        old: &Datatype,
    ) -> Result<Self, LayoutError> {
        count_of("blocklen", blocklen)?;
        let (bounds, sequence) = listed(&[blocklen], displs, 1, old)?;
        let constructor = Constructor::HindexedBlock {
            blocklen,
            displs: displs.into(),
            old: old.clone(),
        };
        Datatype::build(constructor, bounds, sequence)
    }

    /// Blocks of `blocklens[i]` copies of `olds[i]` at `displs[i]` bytes
    /// (`MPI_Type_create_struct`).
    ///
    /// ```
    /// use layout::mpi::Datatype;
    /// let (int, double) = (Datatype::basic(4)?, Datatype::basic(8)?);
    /// let t = Datatype::structure(&[1, 2], &[0, 8], &[int, double])?;
    /// assert_eq!((t.size(), t.extent()), (20, 24));
    /// # Ok::<(), layout::LayoutError>(())
    /// ```
    pub fn structure(
        blocklens: &[i64],
        displs: &[i64],
        olds: &[Datatype],
    ) -> Result<Self, LayoutError> {
        same_length("blocklens", blocklens.len(), "displs", displs.len())?;
        same_length("blocklens", blocklens.len(), "olds", olds.len())?;
        let mut bounds = Bounds::default();
        let mut builder = Builder::new();
        // A type used by many blocks is made ready once.
        let mut units: HashMap<*const Inner, Unit> = HashMap::new();
        for (i, ((&blocklen, &displ), old)) in blocklens.iter().zip(displs).zip(olds).enumerate() {
            let copies = count_of(&format!("blocklens[{i}]"), blocklen)?;
            place_copies(&mut bounds, old, displ.into(), copies);
            let unit = match units.entry(Arc::as_ptr(&old.0)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(Unit::of(&old.0.sequence)?),
            };
            push_copies(&mut builder, unit, old, displ.into(), copies)
                .map_err(|e| renamed(e, &format!("displs[{i}]")))?;
        }
        let sequence = builder.finish().map_err(|e| renamed(e, "displs"))?;
        let constructor = Constructor::Struct {
            blocklens: blocklens.into(),
            displs: displs.into(),
            olds: olds.into(),
        };
        Datatype::build(constructor, bounds, sequence)
    }

    /// A type map with other bounds (`MPI_Type_create_resized`). Older explicit bounds are
    /// forgotten.
    pub fn resized(lb: i64, extent: i64, old: &Datatype) -> Result<Self, LayoutError> {
        let old = old.clone();
        let bounds = Bounds::explicit_at(lb.into(), i128::from(lb) + i128::from(extent));
        let sequence = old.to_sequence();
        Datatype::build(Constructor::Resized { lb, extent, old }, bounds, sequence)
    }

    /// A type again (`MPI_Type_dup`).
    pub fn dup(old: &Datatype) -> Result<Self, LayoutError> {
        let old = old.clone();
        let (bounds, sequence) = (old.0.bounds, old.to_sequence());
        Datatype::build(Constructor::Dup { old }, bounds, sequence)
    }
}

/// A count as it comes from MPI: refused when negative.
pub(super) fn count_of(argument: &str, value: i64) -> Result<u64, LayoutError> {
    u64::try_from(value).map_err(|_| {
        LayoutError::argument(argument, format!("{value} is negative; give 0 or more"))
    })
}

/// Two argument arrays that belong together.
pub(super) fn same_length(
    first: &str,
    first_len: usize,
    second: &str,
    second_len: usize,
) -> Result<(), LayoutError> {
    if first_len == second_len {
        return Ok(());
    }
    Err(LayoutError::argument(
        second,
        format!("{second_len} entries, but {first} has {first_len}; give one for each"),
    ))
}

/// An overflow found below, with the argument of this level that caused it.
pub(super) fn renamed(error: LayoutError, argument: &str) -> LayoutError {
    match error.kind() {
        LayoutErrorKind::Overflow => LayoutError::overflow(argument),
        _ => error,
    }
}

/// Bounds of `copies` of `old` from `displ` on, an extent apart.
fn place_copies(bounds: &mut Bounds, old: &Datatype, displ: i128, copies: u64) {
    if copies > 0 {
        let far = i128::from(copies - 1) * i128::from(old.extent());
        let (first, last) = (far.min(0), far.max(0));
        bounds.place(
            &old.0.bounds,
            displ.saturating_add(first),
            displ.saturating_add(last),
        );
    }
}

fn push_copies(
    builder: &mut Builder,
    unit: &Unit,
    old: &Datatype,
    displ: i128,
    copies: u64,
) -> Result<(), LayoutError> {
    if copies == 0 {
        return Ok(());
    }
    let start = i64::try_from(displ).map_err(|_| LayoutError::overflow("displs"))?;
    builder.push_repeat(unit, start, copies, old.extent())
}

/// `count` copies; a stride that does not fit matters only when there are two.
pub(super) fn repeat(
    sequence: &Sequence,
    count: u64,
    stride: i128,
    argument: &str,
) -> Result<Sequence, LayoutError> {
    if count == 0 || sequence.is_empty() {
        return Ok(Sequence::empty());
    }
    if count == 1 {
        return Ok(sequence.clone());
    }
    let stride = i64::try_from(stride).map_err(|_| LayoutError::overflow(argument))?;
    sequence
        .repeat(count, stride)
        .map_err(|e| renamed(e, argument))
}

/// Vector and hvector, the stride in bytes.
fn strided(
    count: i64,
    blocklen: i64,
    stride: i128,
    old: &Datatype,
) -> Result<(Bounds, Sequence), LayoutError> {
    let blocks = count_of("count", count)?;
    let copies = count_of("blocklen", blocklen)?;
    let mut bounds = Bounds::default();
    if blocks > 0 && copies > 0 {
        let block_far = i128::from(copies - 1) * i128::from(old.extent());
        let far = i128::from(blocks - 1).saturating_mul(stride);
        bounds.place(
            &old.0.bounds,
            far.min(0).saturating_add(block_far.min(0)),
            far.max(0).saturating_add(block_far.max(0)),
        );
    }
    let block = repeat(&old.0.sequence, copies, old.extent().into(), "blocklen")?;
    Ok((bounds, repeat(&block, blocks, stride, "stride")?))
}

/// Indexed and its relatives: one block length for all, or one for each displacement; displacements
/// in multiples of `scale` bytes.
fn listed(
    blocklens: &[i64],
    displs: &[i64],
    scale: i64,
    old: &Datatype,
) -> Result<(Bounds, Sequence), LayoutError> {
    let unit = Unit::of(&old.0.sequence)?;
    let mut bounds = Bounds::default();
    let mut builder = Builder::new();
    let one_for_all = blocklens.len() != displs.len();
    for (i, &displ) in displs.iter().enumerate() {
        let blocklen = blocklens[if one_for_all { 0 } else { i }];
        let copies =
            u64::try_from(blocklen).or_else(|_| count_of(&format!("blocklens[{i}]"), blocklen))?;
        let at = i128::from(displ) * i128::from(scale);
        place_copies(&mut bounds, old, at, copies);
        push_copies(&mut builder, &unit, old, at, copies)
            .map_err(|e| renamed(e, &format!("displs[{i}]")))?;
    }
    let sequence = builder.finish().map_err(|e| renamed(e, "displs"))?;
    Ok((bounds, sequence))
}
