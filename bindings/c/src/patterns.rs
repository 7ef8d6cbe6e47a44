//! Patterns: which bytes, in which order, around a place in memory or from a byte of a file on.
//!
//! They are made as MPI makes its datatypes, in bytes unless said otherwise, and never change. In memory a pattern may go back
//! and name a byte twice (not to read into it); a view of a file has to ascend.
//!
//! Left to others: what a pattern of a file means (`views`).

use std::ffi::c_int;
use std::ops::Range;
use std::sync::OnceLock;

use client::{Memory, Places};
use layout::mpi::{Datatype, Distribute};

use crate::entry::{Failure, Outcome, answer};
use crate::ffi::{Address, ConstAddress, List, Out};
use crate::open::order_of;
use crate::structs::{PARIO_BLOCK, PARIO_COLLAPSED, PARIO_CYCLIC};
use crate::table::Handle;

/// A pattern of the program.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) datatype: Datatype,
    /// Where the bytes of one are; made when it is first used.
    once: OnceLock<Places>,
}

/// Where the bytes of some of a pattern are.
#[derive(Debug)]
pub(crate) struct PatternPlaces {
    places: Places,
    hull: Range<i64>,
}

impl Pattern {
    pub(crate) fn enter(datatype: Datatype) -> Outcome<Handle<Pattern>> {
        let pattern = Pattern {
            datatype,
            once: OnceLock::new(),
        };
        Handle::enter(pattern, Handle::NULL)
    }

    /// Where the bytes of so many of it are, one after the other by its extent.
    pub(crate) fn places(&self, count: u64) -> Outcome<PatternPlaces> {
        let places = match count {
            1 => {
                let make = || Places::new(&self.datatype.to_sequence());
                self.once.get_or_init(make).clone()
            }
            _ => Places::new(&self.datatype.to_sequence_of(count)?),
        };
        let hull = places.hull().unwrap_or(0..0);
        Ok(PatternPlaces { places, hull })
    }
}

impl PatternPlaces {
    /// Bytes in all.
    pub(crate) fn size(&self) -> u64 {
        self.places.size()
    }

    /// The bytes around a base, side by side.
    pub(crate) fn packed(&self, base: ConstAddress) -> Outcome<Vec<u8>> {
        let (before, len) = self.reach(base.number())?;
        let bytes = base.before(before).source("base", len)?;
        let mut packed = Vec::new();
        let count = usize::try_from(self.size()).unwrap_or(usize::MAX);
        packed.try_reserve_exact(count).map_err(|_| {
            Failure::argument(
                "count",
                format!("asks for {count} bytes, more than memory has"),
            )
        })?;
        packed.resize(count, 0);
        self.places.pack(bytes, before, 0, &mut packed)?;
        Ok(packed)
    }

    /// Bytes before the base that are described, and bytes from the first of them to the last, around a base.
    fn reach(&self, base: usize) -> Outcome<(usize, usize)> {
        if base == 0 && !self.hull.is_empty() {
            return Err(Failure::argument("base", "is a null pointer"));
        }
        let before = usize::try_from(self.hull.start.min(0).unsigned_abs());
        let behind = usize::try_from(self.hull.end.max(0));
        let reach = before.ok().zip(behind.ok()).filter(|(before, behind)| {
            base >= *before
                && base.checked_add(*behind).is_some()
                && before.checked_add(*behind).is_some()
        });
        let (before, behind) = reach.ok_or_else(|| {
            Failure::argument("base", "with this pattern and count is beyond memory")
        })?;
        Ok((before, before + behind))
    }

    /// Memory around a base that is read into.
    pub(crate) fn target(&self, base: Address) -> Outcome<Memory<'_>> {
        let (before, len) = self.reach(base.number())?;
        let bytes = base.before(before).target("base", len)?;
        Ok(Memory::target(bytes, before, &self.places)?)
    }

    /// Memory around a base that is written to the file.
    pub(crate) fn source(&self, base: ConstAddress) -> Outcome<Memory<'_>> {
        let (before, len) = self.reach(base.number())?;
        let bytes = base.before(before).source("base", len)?;
        Ok(Memory::source(bytes, before, &self.places)?)
    }
}

/// Makes a pattern, and enters it.
fn make(
    name: &'static str,
    pattern: Out<Handle<Pattern>>,
    datatype: impl FnOnce() -> Outcome<Datatype>,
) -> c_int {
    answer(name, || {
        pattern.required("pattern")?.set(Handle::NULL);
        pattern.set(Pattern::enter(datatype()?)?);
        Ok(())
    })
}

/// The bytes of a pattern that others are made of; one byte for none.
fn old(pattern: Handle<Pattern>) -> Outcome<Datatype> {
    match pattern.is_null() {
        true => Ok(Datatype::basic(1)?),
        false => Ok(pattern.get()?.datatype.clone()),
    }
}

/// So many neighbouring bytes.
#[unsafe(no_mangle)]
extern "C" fn pario_pattern_bytes(bytes: i64, pattern: Out<Handle<Pattern>>) -> c_int {
    make("pario_pattern_bytes", pattern, || {
        Ok(Datatype::basic(bytes)?)
    })
}

/// A pattern so many times, one after the other by its extent.
#[unsafe(no_mangle)]
extern "C" fn pario_pattern_contiguous(
    count: i64,
    of: Handle<Pattern>,
    pattern: Out<Handle<Pattern>>,
) -> c_int {
    make("pario_pattern_contiguous", pattern, || {
        Ok(Datatype::contiguous(count, &old(of)?)?)
    })
}

/// Blocks of a pattern, from the start of one to the start of the next so many extents.
#[unsafe(no_mangle)]
extern "C" fn pario_pattern_vector(
    count: i64,
    block: i64,
    stride: i64,
    of: Handle<Pattern>,
    pattern: Out<Handle<Pattern>>,
) -> c_int {
    make("pario_pattern_vector", pattern, || {
        Ok(Datatype::vector(count, block, stride, &old(of)?)?)
    })
}

/// Blocks of a pattern, from the start of one to the start of the next so many bytes.
#[unsafe(no_mangle)]
extern "C" fn pario_pattern_hvector(
    count: i64,
    block: i64,
    stride_bytes: i64,
    of: Handle<Pattern>,
    pattern: Out<Handle<Pattern>>,
) -> c_int {
    make("pario_pattern_hvector", pattern, || {
        Ok(Datatype::hvector(count, block, stride_bytes, &old(of)?)?)
    })
}

/// Blocks of a pattern, each of its own length, at places counted in extents.
#[unsafe(no_mangle)]
extern "C" fn pario_pattern_indexed(
    count: usize,
    blocks: List<i64>,
    places: List<i64>,
    of: Handle<Pattern>,
    pattern: Out<Handle<Pattern>>,
) -> c_int {
    make("pario_pattern_indexed", pattern, || {
        let (blocks, places) = (blocks.get("blocks", count)?, places.get("places", count)?);
        Ok(Datatype::indexed(&blocks, &places, &old(of)?)?)
    })
}

/// Blocks of a pattern, each of its own length, at places counted in bytes.
#[unsafe(no_mangle)]
extern "C" fn pario_pattern_hindexed(
    count: usize,
    blocks: List<i64>,
    places_bytes: List<i64>,
    of: Handle<Pattern>,
    pattern: Out<Handle<Pattern>>,
) -> c_int {
    make("pario_pattern_hindexed", pattern, || {
        let blocks = blocks.get("blocks", count)?;
        let places = places_bytes.get("places_bytes", count)?;
        Ok(Datatype::hindexed(&blocks, &places, &old(of)?)?)
    })
}

/// Several patterns, each so many times, at places counted in bytes.
#[unsafe(no_mangle)]
extern "C" fn pario_pattern_struct(
    count: usize,
    blocks: List<i64>,
    places_bytes: List<i64>,
    of: List<Handle<Pattern>>,
    pattern: Out<Handle<Pattern>>,
) -> c_int {
    make("pario_pattern_struct", pattern, || {
        let blocks = blocks.get("blocks", count)?;
        let places = places_bytes.get("places_bytes", count)?;
        let olds: Outcome<Vec<Datatype>> = of.get("of", count)?.into_iter().map(old).collect();
        Ok(Datatype::structure(&blocks, &places, &olds?)?)
    })
}

/// A rectangular part of an array of a pattern.
#[unsafe(no_mangle)]
extern "C" fn pario_pattern_subarray(
    dimensions: usize,
    shape: List<i64>,
    part: List<i64>,
    start: List<i64>,
    order: c_int,
    of: Handle<Pattern>,
    pattern: Out<Handle<Pattern>>,
) -> c_int {
    make("pario_pattern_subarray", pattern, || {
        let shape = shape.get("shape", dimensions)?;
        let part = part.get("part", dimensions)?;
        let start = start.get("start", dimensions)?;
        Ok(Datatype::subarray(
            &shape,
            &part,
            &start,
            order_of(order)?,
            &old(of)?,
        )?)
    })
}

/// The part of one process in an array that is dealt out over a grid of processes, as `MPI_Type_create_darray` has it.
#[unsafe(no_mangle)]
extern "C" fn pario_pattern_darray(
    processes: i64,
    rank: i64,
    dimensions: usize,
    shape: List<i64>,
    kinds: List<c_int>,
    arguments: List<i64>,
    grid: List<i64>,
    order: c_int,
    of: Handle<Pattern>,
    pattern: Out<Handle<Pattern>>,
) -> c_int {
    make("pario_pattern_darray", pattern, || {
        let shape = shape.get("shape", dimensions)?;
        let kinds = kinds.get("kinds", dimensions)?;
        let arguments = arguments.get("arguments", dimensions)?;
        let grid = grid.get("grid", dimensions)?;
        let one = |(kind, argument): (&c_int, &i64)| {
            let argument = Some(*argument).filter(|n| *n != 0);
            match *kind {
                PARIO_COLLAPSED => Ok(Distribute::None),
                PARIO_BLOCK => Ok(Distribute::Block(argument)),
                PARIO_CYCLIC => Ok(Distribute::Cyclic(argument)),
                other => Err(Failure::argument(
                    "kinds",
                    format!("has {other}; give PARIO_COLLAPSED, PARIO_BLOCK or PARIO_CYCLIC"),
                )),
            }
        };
        let kinds: Outcome<Vec<Distribute>> = kinds.iter().zip(&arguments).map(one).collect();
        let (kinds, order) = (kinds?, order_of(order)?);
        let old = old(of)?;
        Ok(Datatype::darray(
            processes, rank, &shape, &kinds, &grid, order, &old,
        )?)
    })
}

/// A pattern with another beginning and extent.
#[unsafe(no_mangle)]
extern "C" fn pario_pattern_resized(
    begin: i64,
    extent: i64,
    of: Handle<Pattern>,
    pattern: Out<Handle<Pattern>>,
) -> c_int {
    make("pario_pattern_resized", pattern, || {
        Ok(Datatype::resized(begin, extent, &old(of)?)?)
    })
}

/// Bytes of a pattern, where it begins, and how far it is to the next.
#[unsafe(no_mangle)]
extern "C" fn pario_pattern_size(
    pattern: Handle<Pattern>,
    bytes: Out<u64>,
    begin: Out<i64>,
    extent: Out<i64>,
) -> c_int {
    answer("pario_pattern_size", || {
        let pattern = pattern.get()?;
        bytes.set(pattern.datatype.size());
        begin.set(pattern.datatype.lb());
        extent.set(pattern.datatype.extent());
        Ok(())
    })
}

/// Where a byte of a pattern lies, counting only bytes that it has; behind its end it begins again.
#[unsafe(no_mangle)]
extern "C" fn pario_pattern_place(pattern: Handle<Pattern>, byte: u64, place: Out<i64>) -> c_int {
    answer("pario_pattern_place", || {
        let datatype = pattern.get()?.datatype.clone();
        let turn = byte.checked_div(datatype.size());
        let within = byte.checked_rem(datatype.size());
        let within = within.and_then(|byte| datatype.to_sequence().select(byte));
        let before = turn.and_then(|turn| i64::try_from(turn).ok()?.checked_mul(datatype.extent()));
        let found = within.zip(before).and_then(|(a, b)| a.checked_add(b));
        let text = || Failure::argument("byte", format!("{byte} has no place in the pattern"));
        place.required("place")?.set(found.ok_or_else(text)?);
        Ok(())
    })
}

/// Ends a pattern; what was made of it stays.
#[unsafe(no_mangle)]
extern "C" fn pario_pattern_free(pattern: Handle<Pattern>) -> c_int {
    answer("pario_pattern_free", || pattern.close().map(drop))
}
