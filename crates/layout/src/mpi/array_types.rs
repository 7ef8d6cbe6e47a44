//! The array types: `subarray` and `darray`.
//!
//! Both choose indices in every dimension and place the old type at each chosen element, walking the
//! elements in the order in which they lie; their bounds are those of the whole array, so copies
//! follow each other array by array.
//!
//! ```text
//! subarray, sizes 4 x 6, subsizes 2 x 3, starts 1 x 2, order C
//!           ......
//!           ..###.          lb 0, extent 24
//!           ..###.
//!           ......
//! ```
//!
//! From the fastest dimension to the slowest, the sequence of one index replaces every index of the
//! next dimension: at most two nodes for each dimension, whatever its length. The grid of processes
//! is row-major for either order of the array, as the standard demands.

use super::construct::{count_of, repeat, same_length};
use super::{Bounds, Constructor, Datatype, Distribute};
use crate::array::{MAX_DIMENSIONS, Order};
use crate::distribution::Distribution;
use crate::error::LayoutError;
use crate::sequence::{Builder, Sequence, Unit};

use falls::FallsSet;

impl Datatype {
    /// A rectangular part of an array (`MPI_Type_create_subarray`).
    ///
    /// Refused unless there is a dimension, sizes and subsizes are at least 1, subsizes are at most
    /// the sizes, and `0 <= start <= size - subsize`.
    ///
    /// ```
    /// use layout::{Order, mpi::Datatype};
    /// let t = Datatype::subarray(&[4, 6], &[2, 3], &[1, 2], Order::C, &Datatype::basic(1)?)?;
    /// assert_eq!((t.size(), t.lb(), t.extent(), t.true_lb()), (6, 0, 24, 8));
    /// # Ok::<(), layout::LayoutError>(())
    /// ```
    pub fn subarray(
        sizes: &[i64],
        subsizes: &[i64],
        starts: &[i64],
        order: Order,
        old: &Datatype,
    ) -> Result<Self, LayoutError> {
        check_dimensions("sizes", sizes.len())?;
        same_length("sizes", sizes.len(), "subsizes", subsizes.len())?;
        same_length("sizes", sizes.len(), "starts", starts.len())?;
        let mut chosen = Vec::with_capacity(sizes.len());
        for (i, ((&size, &subsize), &start)) in sizes.iter().zip(subsizes).zip(starts).enumerate() {
            at_least_one(&format!("sizes[{i}]"), size)?;
            at_least_one(&format!("subsizes[{i}]"), subsize)?;
            if subsize > size {
                return Err(LayoutError::argument(
                    format!("subsizes[{i}]"),
                    format!("{subsize} is more than the size {size}"),
                ));
            }
            if !(0..=size - subsize).contains(&start) {
                return Err(LayoutError::argument(
                    format!("starts[{i}]"),
                    format!(
                        "{start} leaves no room for {subsize} of {size}; give 0 to {}",
                        size - subsize
                    ),
                ));
            }
            chosen.push(FallsSet::segment(
                start.unsigned_abs(),
                subsize.unsigned_abs(),
            )?);
        }
        let (bounds, sequence) = nest(sizes, order, &chosen, old, "sizes")?;
        let constructor = Constructor::Subarray {
            sizes: sizes.into(),
            subsizes: subsizes.into(),
            starts: starts.into(),
            order,
            old: old.clone(),
        };
        Datatype::build(constructor, bounds, sequence)
    }

    /// The part of process `rank` of `size` in an array dealt out over a grid of processes
    /// (`MPI_Type_create_darray`).
    ///
    /// Refused unless there is a dimension, `0 <= rank < size`, all sizes are at least 1, the
    /// product of `psizes` is `size`, arguments of distributions are at least 1, blocks hold the
    /// dimension (`darg * psize >= gsize`), and dimensions that are not distributed have one process.
    ///
    /// ```
    /// use layout::{Order, mpi::{Datatype, Distribute}};
    /// let int = Datatype::basic(4)?;
    /// let t = Datatype::darray(2, 1, &[12], &[Distribute::Cyclic(Some(4))], &[2], Order::C, &int)?;
    /// assert_eq!((t.size(), t.true_lb(), t.extent()), (16, 16, 48));
    /// # Ok::<(), layout::LayoutError>(())
    /// ```
    pub fn darray(
        size: i64,
        rank: i64,
        gsizes: &[i64],
        distribs: &[Distribute],
        psizes: &[i64],
        order: Order,
        old: &Datatype,
    ) -> Result<Self, LayoutError> {
        check_dimensions("gsizes", gsizes.len())?;
        same_length("gsizes", gsizes.len(), "distribs", distribs.len())?;
        same_length("gsizes", gsizes.len(), "psizes", psizes.len())?;
        at_least_one("size", size)?;
        if !(0..size).contains(&rank) {
            return Err(LayoutError::argument(
                "rank",
                format!("{rank} of {size} processes; give 0 to {}", size - 1),
            ));
        }
        let mut processes = 1i128;
        for (i, &psize) in psizes.iter().enumerate() {
            at_least_one(&format!("psizes[{i}]"), psize)?;
            processes = processes.saturating_mul(psize.into());
        }
        if processes != i128::from(size) {
            return Err(LayoutError::argument(
                "psizes",
                format!("their product is {processes}; it must be the size, {size}"),
            ));
        }
        let (mut grid, mut rest) = (size, rank);
        let mut chosen = Vec::with_capacity(gsizes.len());
        for (i, ((&gsize, &psize), distribute)) in
            gsizes.iter().zip(psizes).zip(distribs).enumerate()
        {
            let extent = at_least_one(&format!("gsizes[{i}]"), gsize)?;
            grid /= psize;
            let coordinate = (rest / grid).unsigned_abs();
            rest %= grid;
            let distribution = distribute.resolve(i, gsize, psize)?;
            chosen.push(distribution.owned(extent, psize.unsigned_abs(), coordinate)?);
        }
        let (bounds, sequence) = nest(gsizes, order, &chosen, old, "gsizes")?;
        let constructor = Constructor::Darray {
            size,
            rank,
            gsizes: gsizes.into(),
            distribs: distribs.into(),
            psizes: psizes.into(),
            order,
            old: old.clone(),
        };
        Datatype::build(constructor, bounds, sequence)
    }
}

impl Distribute {
    /// The distribution of dimension `i`, its argument checked.
    fn resolve(self, i: usize, gsize: i64, psize: i64) -> Result<Distribution, LayoutError> {
        let argument = format!("dargs[{i}]");
        match self {
            Distribute::None if psize != 1 => Err(LayoutError::argument(
                format!("psizes[{i}]"),
                format!("{psize}, but the dimension is not distributed; give 1"),
            )),
            Distribute::None => Ok(Distribution::Collapsed),
            Distribute::Block(None) => Ok(Distribution::Block),
            Distribute::Cyclic(None) => Ok(Distribution::Cyclic),
            Distribute::Cyclic(Some(darg)) => {
                Ok(Distribution::CyclicOf(at_least_one(&argument, darg)?))
            }
            Distribute::Block(Some(darg)) => {
                let len = at_least_one(&argument, darg)?;
                if i128::from(darg) * i128::from(psize) < i128::from(gsize) {
                    return Err(LayoutError::argument(
                        argument,
                        format!(
                            "{psize} blocks of {darg} do not hold {gsize} elements; give at least {}",
                            gsize.unsigned_abs().div_ceil(psize.unsigned_abs())
                        ),
                    ));
                }
                Ok(Distribution::BlockOf(len))
            }
        }
    }
}

fn check_dimensions(argument: &str, dimensions: usize) -> Result<(), LayoutError> {
    if (1..=MAX_DIMENSIONS).contains(&dimensions) {
        return Ok(());
    }
    Err(LayoutError::argument(
        argument,
        format!("{dimensions} dimensions; give 1 to {MAX_DIMENSIONS}"),
    ))
}

fn at_least_one(argument: &str, value: i64) -> Result<u64, LayoutError> {
    if value < 1 {
        return Err(LayoutError::argument(
            argument,
            format!("{value} is less than 1"),
        ));
    }
    count_of(argument, value)
}

/// The old type at every chosen element of the array, and the bounds of the whole array.
fn nest(
    sizes: &[i64],
    order: Order,
    chosen: &[FallsSet],
    old: &Datatype,
    argument: &str,
) -> Result<(Bounds, Sequence), LayoutError> {
    let overflow = || LayoutError::overflow(argument);
    let mut whole = i128::from(old.extent());
    for &size in sizes {
        whole = whole.checked_mul(size.into()).ok_or_else(overflow)?;
    }
    let bounds = Bounds::explicit_at(0, whole);
    bounds.check().map_err(|_| overflow())?;
    if old.size() == 0 {
        return Ok((bounds, Sequence::empty()));
    }
    let mut sequence = old.to_sequence();
    // Every step below divides the whole, which fits.
    let mut step = i128::from(old.extent());
    for d in order.fastest_first(sizes.len()) {
        let mut builder = Builder::new();
        for node in chosen[d].nodes() {
            let block = repeat(&sequence, node.len, step, argument)?;
            let start = i64::try_from(step * i128::from(node.start)).map_err(|_| overflow())?;
            let apart = step.saturating_mul(i128::from(node.stride));
            let apart = if node.count == 1 { 0 } else { apart };
            let apart = i64::try_from(apart).map_err(|_| overflow())?;
            builder.push_repeat(&Unit::of(&block)?, start, node.count, apart)?;
        }
        sequence = builder.finish()?;
        step *= i128::from(sizes[d]);
    }
    Ok((bounds, sequence))
}
