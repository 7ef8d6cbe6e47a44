//! Redistribution of one-dimensional arrays between processors that hold them in blocks dealt
//! in turn: packing, exchange, unpacking (sections 3.7 to 3.11 of the source, chapter 4 of
//! "High-Performance Data-Parallel Input/Output").
//!
//! `Cyclic(k)` gives k elements at a time to the processors in turn; `Block(m)` is the same with
//! m elements and one turn only. A pair of distributions has a *kind*, which names the loop that
//! packs it:
//!
//! | kind | from, to | loop |
//! | --- | --- | --- |
//! | KYY | Cyclic(ky), Cyclic(y) | k copies of y elements per local block, packets in turn |
//! | XKX-1 | Cyclic(x), Cyclic(kx), k >= P | runs of local blocks, packets in turn |
//! | XKX-2 | Cyclic(x), Cyclic(kx), k < P | one loop, conditional subtractions |
//! | BCY | Block, Cyclic | one loop, increment and test |
//! | CBL | Cyclic(x), Block | none: contiguous pieces are sent from place |
//! | GEN | Cyclic(x), Cyclic(y) | element by element, two divisions each |
//!
//! Decisions where the source is silent: XKX-1 is taken when k >= P, since only then does every
//! run of local blocks go to the next processor; asynchronous unpacking is always legal here,
//! because a packet's places repeat with the period lcm(x, y) of the local array whatever the
//! kind, but for GEN it needs the runs of one period.
//!
//! The engine that accesses run on ([`kernels::Share`]) is 2 to 20 times as fast where copies are short and level where
//! they are long ([ADR 0029](../../../docs/adr/0029-one-engine.md)), so nothing but the benchmark and the numbered
//! statements call this.
//!
//! Invariants: a packet holds the common elements of two local arrays in global order; packets
//! that would be empty are not built; lengths come from the same walks that fill them.

mod run;
mod stride;
mod walk;

#[cfg(test)]
mod tests;

use std::fmt;

pub(crate) use run::{Packets, Redistribution, UnpackOrder};
use stride::gcd;
pub(crate) use stride::{CacheLevel, cache_optimal_stride};

/// How one dimension is dealt to processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distribution {
    /// The first m elements to processor 0, the next m to 1, and so on; m x P must reach the
    /// whole array.
    Block(u64),
    /// k elements at a time, in turn.
    Cyclic(u64),
}

impl Distribution {
    /// Equal blocks: `Block(ceil(elements / processors))`.
    pub(crate) fn block(elements: u64, processors: u64) -> Distribution {
        Distribution::Block(elements.div_ceil(processors.max(1)).max(1))
    }

    /// Elements dealt at a time.
    pub(crate) fn unit(self) -> u64 {
        match self {
            Distribution::Block(unit) | Distribution::Cyclic(unit) => unit,
        }
    }

    /// The processor that holds an element.
    #[cfg(test)]
    pub(crate) fn owner(self, element: u64, processors: u64) -> u64 {
        element / self.unit() % processors
    }

    /// How many elements a processor holds.
    pub(crate) fn local_count(self, elements: u64, processors: u64, processor: u64) -> u64 {
        let round = self.unit() * processors;
        let (rounds, rest) = (elements / round, elements % round);
        rounds * self.unit()
            + rest
                .saturating_sub(processor * self.unit())
                .min(self.unit())
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Block(m) => write!(f, "Block({m})"),
            Distribution::Cyclic(k) => write!(f, "Cyclic({k})"),
        }
    }
}

/// Which loop packs a redistribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Cyclic(ky) to Cyclic(y).
    Kyy,
    /// Cyclic(x) to Cyclic(kx), k >= P.
    Xkx1,
    /// Cyclic(x) to Cyclic(kx), k < P.
    Xkx2,
    /// Block to Cyclic.
    Bcy,
    /// Cyclic(x) to Block.
    Cbl,
    /// Any to any.
    Gen,
}

impl Kind {
    /// All kinds.
    pub(crate) const ALL: [Kind; 6] = [
        Kind::Kyy,
        Kind::Xkx1,
        Kind::Xkx2,
        Kind::Bcy,
        Kind::Cbl,
        Kind::Gen,
    ];

    /// The name the source gives it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Kyy => "kyy",
            Kind::Xkx1 => "xkx-1",
            Kind::Xkx2 => "xkx-2",
            Kind::Bcy => "bcy",
            Kind::Cbl => "cbl",
            Kind::Gen => "gen",
        }
    }

    /// The most special kind of a pair of distributions.
    pub(crate) fn of(elements: u64, processors: u64, from: Distribution, to: Distribution) -> Kind {
        let (x, y) = (from.unit(), to.unit());
        let one_turn =
            |unit: u64| u128::from(unit) * u128::from(processors) >= u128::from(elements);
        if one_turn(y) {
            Kind::Cbl
        } else if one_turn(x) && y == 1 {
            Kind::Bcy
        } else if x % y == 0 {
            Kind::Kyy
        } else if y % x == 0 && y / x >= processors {
            Kind::Xkx1
        } else if y % x == 0 {
            Kind::Xkx2
        } else {
            Kind::Gen
        }
    }
}

/// Why a redistribution was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RedistributeError {
    /// No processors, or an element of no bytes, or a distribution that deals no elements.
    #[error("processors, element bytes and blocks must be at least 1")]
    Zero,
    /// `Block(m)` on P processors does not reach the whole array: m must be at least
    /// `ceil(elements / processors)`.
    #[error("Block({block}) does not reach the whole array on this many processors")]
    BlockTooSmall {
        /// The m given.
        block: u64,
    },
    /// Offsets do not fit 63 bits.
    #[error("offsets exceed 63 bits")]
    TooLarge,
    /// The number of local arrays is not the number of processors, or one has another length
    /// than its distribution says.
    #[error(
        "the local array of processor {processor} does not have the length of its distribution"
    )]
    Shape {
        /// The first processor concerned.
        processor: usize,
    },
}

/// The distribution between the two steps.
pub(crate) fn between(x: u64, y: u64) -> Option<Distribution> {
    (x / gcd(x, y)).checked_mul(y).map(Distribution::Cyclic)
}
