//! From the arguments of a constructor to a datatype of the algebra.
//!
//! Constructors in the large form give their numbers as large counts, with the few that are still `int` beside
//! them; the others give `int` and addresses. Which it was is seen by whether there are large counts.

use std::ffi::c_int;

use layout::Order;
use layout::mpi::{Constructor, Datatype, Distribute};

use crate::abi::Constants;
use crate::entry::Outcome;
use crate::failure::{Class, Failure};

/// How a datatype was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combiner {
    Named,
    Dup,
    Contiguous,
    Vector,
    Hvector,
    Indexed,
    Hindexed,
    IndexedBlock,
    HindexedBlock,
    Struct,
    Subarray,
    Darray,
    F90Real,
    F90Complex,
    F90Integer,
    Resized,
    /// The three of Fortran 77, whose byte displacements are `int`.
    HvectorInteger,
    HindexedInteger,
    StructInteger,
    /// A value and an index, of `MPI_Type_get_value_index`.
    ValueIndex,
}

impl Combiner {
    /// The combiner behind a number of an ABI.
    pub(crate) fn of(number: c_int, abi: &Constants) -> Option<Combiner> {
        use Combiner::*;
        let table = [
            (abi.combiner_named, Named),
            (abi.combiner_dup, Dup),
            (abi.combiner_contiguous, Contiguous),
            (abi.combiner_vector, Vector),
            (abi.combiner_hvector, Hvector),
            (abi.combiner_indexed, Indexed),
            (abi.combiner_hindexed, Hindexed),
            (abi.combiner_indexed_block, IndexedBlock),
            (abi.combiner_hindexed_block, HindexedBlock),
            (abi.combiner_struct, Struct),
            (abi.combiner_subarray, Subarray),
            (abi.combiner_darray, Darray),
            (abi.combiner_f90_real, F90Real),
            (abi.combiner_f90_complex, F90Complex),
            (abi.combiner_f90_integer, F90Integer),
            (abi.combiner_resized, Resized),
            (abi.combiner_hvector_integer, HvectorInteger),
            (abi.combiner_hindexed_integer, HindexedInteger),
            (abi.combiner_struct_integer, StructInteger),
            (abi.combiner_value_index, ValueIndex),
        ];
        let number = i64::from(number);
        let found = table.iter().find(|(known, _)| *known == number);
        found.map(|(_, combiner)| *combiner)
    }
}

/// The numbers among the arguments, taken from the front.
pub(crate) struct Arguments<'a> {
    pub(crate) ints: &'a [c_int],
    pub(crate) addresses: &'a [i64],
    pub(crate) counts: &'a [i64],
    pub(crate) is_large: bool,
}

impl<'a> Arguments<'a> {
    /// The numbers that came with a datatype.
    pub(crate) fn new(ints: &'a [c_int], addresses: &'a [i64], counts: &'a [i64]) -> Arguments<'a> {
        Arguments {
            ints,
            addresses,
            counts,
            is_large: !counts.is_empty(),
        }
    }

    fn int(&mut self) -> Outcome<i64> {
        let (first, rest) = self.ints.split_first().ok_or_else(too_few)?;
        self.ints = rest;
        Ok(i64::from(*first))
    }

    fn ints(&mut self, len: usize) -> Outcome<Vec<i64>> {
        let (first, rest) = self.ints.split_at_checked(len).ok_or_else(too_few)?;
        self.ints = rest;
        Ok(first.iter().map(|n| i64::from(*n)).collect())
    }

    /// A number that is an `int` or a large count.
    fn number(&mut self) -> Outcome<i64> {
        Ok(self.numbers(1)?[0])
    }

    fn numbers(&mut self, len: usize) -> Outcome<Vec<i64>> {
        if !self.is_large {
            return self.ints(len);
        }
        let (first, rest) = self.counts.split_at_checked(len).ok_or_else(too_few)?;
        self.counts = rest;
        Ok(first.to_vec())
    }

    /// Numbers of bytes: addresses, or large counts.
    fn bytes(&mut self, len: usize) -> Outcome<Vec<i64>> {
        if self.is_large && self.addresses.is_empty() {
            return self.numbers(len);
        }
        let (first, rest) = self.addresses.split_at_checked(len).ok_or_else(too_few)?;
        self.addresses = rest;
        Ok(first.to_vec())
    }

    fn len(&mut self) -> Outcome<usize> {
        usize::try_from(self.number()?).map_err(|_| too_few())
    }
}

/// The datatype that a constructor makes of others.
pub(crate) fn make(
    combiner: Combiner,
    mut arguments: Arguments<'_>,
    olds: &[Datatype],
    abi: &Constants,
) -> Outcome<Datatype> {
    let first = || olds.first().ok_or_else(too_few);
    let a = &mut arguments;
    let made = match combiner {
        Combiner::Dup => first()?.clone(),
        Combiner::Contiguous => Datatype::contiguous(a.number()?, first()?)?,
        Combiner::Vector => {
            let (count, blocklen, stride) = (a.number()?, a.number()?, a.number()?);
            Datatype::vector(count, blocklen, stride, first()?)?
        }
        Combiner::Hvector => {
            let (count, blocklen) = (a.number()?, a.number()?);
            Datatype::hvector(count, blocklen, a.bytes(1)?[0], first()?)?
        }
        Combiner::HvectorInteger => {
            let (count, blocklen, stride) = (a.int()?, a.int()?, a.int()?);
            Datatype::hvector(count, blocklen, stride, first()?)?
        }
        Combiner::Indexed => {
            let count = a.len()?;
            let (blocklens, displs) = (a.numbers(count)?, a.numbers(count)?);
            Datatype::indexed(&blocklens, &displs, first()?)?
        }
        Combiner::Hindexed => {
            let count = a.len()?;
            let (blocklens, displs) = (a.numbers(count)?, a.bytes(count)?);
            Datatype::hindexed(&blocklens, &displs, first()?)?
        }
        Combiner::HindexedInteger => {
            let count = a.len()?;
            let (blocklens, displs) = (a.ints(count)?, a.ints(count)?);
            Datatype::hindexed(&blocklens, &displs, first()?)?
        }
        Combiner::IndexedBlock => {
            let (count, blocklen) = (a.len()?, a.number()?);
            Datatype::indexed_block(blocklen, &a.numbers(count)?, first()?)?
        }
        Combiner::HindexedBlock => {
            let (count, blocklen) = (a.len()?, a.number()?);
            Datatype::hindexed_block(blocklen, &a.bytes(count)?, first()?)?
        }
        Combiner::Struct | Combiner::StructInteger => {
            let count = a.len()?;
            let blocklens = a.numbers(count)?;
            let displs = match combiner {
                Combiner::Struct => a.bytes(count)?,
                _ => a.ints(count)?,
            };
            Datatype::structure(&blocklens, &displs, olds)?
        }
        Combiner::Resized => {
            let bounds = a.bytes(2)?;
            Datatype::resized(bounds[0], bounds[1], first()?)?
        }
        Combiner::Subarray => {
            let dimensions = usize::try_from(a.int()?).map_err(|_| too_few())?;
            let (sizes, subsizes, starts) = (
                a.numbers(dimensions)?,
                a.numbers(dimensions)?,
                a.numbers(dimensions)?,
            );
            let order = order_of(a.int()?, abi)?;
            Datatype::subarray(&sizes, &subsizes, &starts, order, first()?)?
        }
        Combiner::Darray => {
            let (size, rank, dimensions) = (a.int()?, a.int()?, a.int()?);
            let dimensions = usize::try_from(dimensions).map_err(|_| too_few())?;
            let gsizes = a.numbers(dimensions)?;
            let (distribs, dargs, psizes) = (
                a.ints(dimensions)?,
                a.ints(dimensions)?,
                a.ints(dimensions)?,
            );
            let order = order_of(a.int()?, abi)?;
            let distributes = distribs
                .iter()
                .zip(dargs)
                .map(|(distrib, darg)| distribute_of(*distrib, darg, abi))
                .collect::<Outcome<Vec<_>>>()?;
            Datatype::darray(size, rank, &gsizes, &distributes, &psizes, order, first()?)?
        }
        Combiner::Named
        | Combiner::F90Real
        | Combiner::F90Complex
        | Combiner::F90Integer
        | Combiner::ValueIndex => return Err(too_few()),
    };
    Ok(made)
}

/// A constructor applied to other types: what the type is where those are as wide as these.
pub(crate) fn remake(constructor: &Constructor, olds: &[Datatype]) -> Outcome<Datatype> {
    use Constructor as C;
    let first = || olds.first().ok_or_else(too_few);
    let made = match constructor {
        C::Basic { size } => Datatype::basic(*size)?,
        C::Contiguous { count, .. } => Datatype::contiguous(*count, first()?)?,
        C::Vector {
            count,
            blocklen,
            stride,
            ..
        } => Datatype::vector(*count, *blocklen, *stride, first()?)?,
        C::Hvector {
            count,
            blocklen,
            stride,
            ..
        } => Datatype::hvector(*count, *blocklen, *stride, first()?)?,
        C::Indexed {
            blocklens, displs, ..
        } => Datatype::indexed(blocklens, displs, first()?)?,
        C::Hindexed {
            blocklens, displs, ..
        } => Datatype::hindexed(blocklens, displs, first()?)?,
        C::IndexedBlock {
            blocklen, displs, ..
        } => Datatype::indexed_block(*blocklen, displs, first()?)?,
        C::HindexedBlock {
            blocklen, displs, ..
        } => Datatype::hindexed_block(*blocklen, displs, first()?)?,
        C::Struct {
            blocklens, displs, ..
        } => Datatype::structure(blocklens, displs, olds)?,
        C::Subarray {
            sizes,
            subsizes,
            starts,
            order,
            ..
        } => Datatype::subarray(sizes, subsizes, starts, *order, first()?)?,
        C::Darray {
            size,
            rank,
            gsizes,
            distribs,
            psizes,
            order,
            ..
        } => Datatype::darray(*size, *rank, gsizes, distribs, psizes, *order, first()?)?,
        C::Resized { lb, extent, .. } => Datatype::resized(*lb, *extent, first()?)?,
        C::Dup { .. } => first()?.clone(),
    };
    Ok(made)
}

fn order_of(number: i64, abi: &Constants) -> Outcome<Order> {
    match number {
        n if n == abi.order_c => Ok(Order::C),
        n if n == abi.order_fortran => Ok(Order::Fortran),
        _ => Err(Failure::new(
            Class::Type,
            format!("an array type has the unknown order {number}"),
        )),
    }
}

fn distribute_of(distrib: i64, darg: i64, abi: &Constants) -> Outcome<Distribute> {
    let darg = (darg != abi.distribute_dflt_darg).then_some(darg);
    match distrib {
        d if d == abi.distribute_block => Ok(Distribute::Block(darg)),
        d if d == abi.distribute_cyclic => Ok(Distribute::Cyclic(darg)),
        d if d == abi.distribute_none => Ok(Distribute::None),
        _ => Err(Failure::new(
            Class::Type,
            format!("an array type has the unknown distribution {distrib}"),
        )),
    }
}

fn too_few() -> Failure {
    Failure::new(
        Class::Type,
        "the MPI library describes a datatype in a way that is not known",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abi() -> Constants {
        Constants::mpich()
    }

    /// Size, lower bound and extent of what the arguments say, over a type of 4 bytes.
    fn shape(
        combiner: Combiner,
        ints: &[c_int],
        addresses: &[i64],
        counts: &[i64],
    ) -> (u64, i64, i64) {
        let int = Datatype::basic(4).unwrap();
        let double = Datatype::basic(8).unwrap();
        let arguments = Arguments::new(ints, addresses, counts);
        let made = make(combiner, arguments, &[int, double], &abi()).unwrap();
        (made.size(), made.lb(), made.extent())
    }

    #[test]
    fn every_constructor_reads_its_small_and_its_large_arguments() {
        use Combiner::*;
        let both = |combiner, ints: &[c_int], addresses: &[i64], rest: &[c_int], counts: &[i64]| {
            let small = shape(combiner, ints, addresses, &[]);
            let large = shape(combiner, rest, &[], counts);
            assert_eq!(small, large, "{combiner:?}");
            small
        };
        assert_eq!(both(Contiguous, &[3], &[], &[], &[3]), (12, 0, 12));
        assert_eq!(both(Vector, &[3, 1, 2], &[], &[], &[3, 1, 2]), (12, 0, 20));
        assert_eq!(
            both(Hvector, &[3, 1], &[-6], &[], &[3, 1, -6]),
            (12, -12, 16)
        );
        assert_eq!(
            both(Indexed, &[2, 1, 2, 0, 4], &[], &[], &[2, 1, 2, 0, 4]),
            (12, 0, 24)
        );
        assert_eq!(
            both(Hindexed, &[2, 1, 2], &[-8, 4], &[], &[2, 1, 2, -8, 4]),
            (12, -8, 20)
        );
        assert_eq!(
            both(IndexedBlock, &[2, 1, 1, 4], &[], &[], &[2, 1, 1, 4]),
            (8, 4, 16)
        );
        assert_eq!(
            both(HindexedBlock, &[2, 1], &[0, 9], &[], &[2, 1, 0, 9]),
            (8, 0, 13)
        );
        assert_eq!(
            both(Struct, &[2, 1, 1], &[0, 8], &[], &[2, 1, 1, 0, 8]),
            (12, 0, 16)
        );
        assert_eq!(both(Resized, &[], &[-4, 20], &[], &[-4, 20]), (4, -4, 20));
        let subarray = [2, 4, 6, 2, 3, 1, 2, 56];
        let counts = [4, 6, 2, 3, 1, 2];
        assert_eq!(
            both(Subarray, &subarray, &[], &[2, 56], &counts),
            (24, 0, 96)
        );
        let darray = [4, 1, 2, 5, 6, 121, 122, -49767, 2, 2, 2, 57];
        let ints = [4, 1, 2, 121, 122, -49767, 2, 2, 2, 57];
        assert_eq!(both(Darray, &darray, &[], &ints, &[5, 6]), (24, 0, 120));
    }

    #[test]
    fn constructors_of_fortran_77_have_byte_numbers_that_are_int() {
        use Combiner::*;
        assert_eq!(shape(HvectorInteger, &[2, 1, 10], &[], &[]), (8, 0, 14));
        assert_eq!(
            shape(HindexedInteger, &[2, 1, 1, 0, 10], &[], &[]),
            (8, 0, 14)
        );
        assert_eq!(
            shape(StructInteger, &[2, 1, 1, 0, 8], &[], &[]),
            (12, 0, 16)
        );
    }

    #[test]
    fn arguments_that_are_missing_are_refused() {
        let int = Datatype::basic(4).unwrap();
        for (combiner, ints) in [
            (Combiner::Vector, &[3, 1][..]),
            (Combiner::Indexed, &[2, 1, 1, 0]),
            (Combiner::Indexed, &[-1]),
            (Combiner::Subarray, &[1, 4, 2, 0]),
            (Combiner::Subarray, &[1, 4, 2, 0, 99]),
            (Combiner::Named, &[]),
        ] {
            let arguments = Arguments::new(ints, &[], &[]);
            let made = make(combiner, arguments, std::slice::from_ref(&int), &abi());
            assert_eq!(made.unwrap_err().class, Class::Type, "{combiner:?}");
        }
    }

    #[test]
    fn a_constructor_over_wider_types_scales_what_counts_elements_only() {
        let (int, wide) = (Datatype::basic(4).unwrap(), Datatype::basic(8).unwrap());
        let vector = Datatype::vector(3, 1, 2, &int).unwrap();
        let scaled = remake(vector.constructor(), std::slice::from_ref(&wide)).unwrap();
        assert_eq!((scaled.size(), scaled.extent()), (24, 40));
        let hvector = Datatype::hvector(3, 1, 16, &int).unwrap();
        let kept = remake(hvector.constructor(), &[wide]).unwrap();
        assert_eq!((kept.size(), kept.extent()), (24, 40));
    }
}
