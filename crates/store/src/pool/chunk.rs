//! One chunk of a segment: a bit per unit, and where runs of units are.
//!
//! Invariant: no unit has two of the bits; a unit without one is cold.

/// Units of a chunk.
pub(super) const UNITS: u32 = u32::BITS;

/// Extent sizes are `UNIT << class`, with classes `0..CLASSES`.
pub(crate) const CLASSES: usize = 6;

const _: () = assert!(1 << (CLASSES - 1) == UNITS);

/// One bit per unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkSpace {
    pub(super) used: u32,
    /// Free units with memory of any content.
    pub(super) warm: u32,
    /// Free units with memory that is zero.
    pub(super) ready: u32,
    /// Units that a thread works on without the lock: they are given to nobody.
    pub(super) busy: u32,
    /// Units that nobody may have yet, since a client may store there.
    pub(super) aside: u32,
}

/// What a free run must be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quality {
    /// Zero, with memory.
    Ready,
    /// With memory.
    Kept,
    /// Free.
    Any,
}

impl Quality {
    /// All of them, the best first.
    pub(super) const ALL: [Quality; 3] = [Quality::Ready, Quality::Kept, Quality::Any];
}

impl ChunkSpace {
    /// Units that cannot be given out.
    pub(super) fn taken(self) -> u32 {
        self.used | self.aside | self.busy
    }

    /// Free units with memory.
    pub(super) fn kept(self) -> u32 {
        self.warm | self.ready
    }

    /// Whether its segment is needed for it.
    pub(super) fn is_live(self) -> bool {
        self.taken() | self.kept() != 0
    }

    fn of(self, quality: Quality) -> u32 {
        match quality {
            Quality::Ready => self.ready,
            Quality::Kept => self.kept(),
            Quality::Any => !self.taken(),
        }
    }

    /// The class of the largest aligned run of a quality.
    pub(super) fn largest(self, quality: Quality) -> Option<usize> {
        let mut starts = self.of(quality);
        let mut found = None;
        for class in 0..CLASSES {
            if starts == 0 {
                break;
            }
            found = Some(class);
            // Two runs beside each other, the first of which is aligned for the next class, make one of it.
            let both = starts & starts.checked_shr(1 << class).unwrap_or(0);
            starts = both & aligned(class + 1);
        }
        found
    }

    /// Where an aligned run of a class and a quality begins: with the most memory, the lowest among equals.
    pub(super) fn choose(self, class: usize, quality: Quality) -> Option<u32> {
        let (mask, free) = (run_mask(class), self.of(quality));
        (0..UNITS)
            .step_by(1 << class)
            .filter(|first| free & (mask << first) == mask << first)
            .max_by_key(|first| {
                let kept = (self.kept() & (mask << first)).count_ones();
                (kept, std::cmp::Reverse(*first))
            })
    }
}

/// The units at which aligned runs of a class begin.
fn aligned(class: usize) -> u32 {
    let step = 1u32.checked_shl(class as u32).unwrap_or(UNITS).min(UNITS);
    (0..UNITS)
        .step_by(step as usize)
        .fold(0, |bits, unit| bits | 1 << unit)
}

/// The bits of an aligned run of `1 << class` units that starts at unit 0.
pub(super) fn run_mask(class: usize) -> u32 {
    (((1u64 << (1u32 << class)) - 1) & u64::from(u32::MAX)) as u32
}

/// Maximal runs of set bits: first and count.
pub(super) fn runs(mut bits: u32) -> impl Iterator<Item = (u64, u64)> {
    let mut base = 0;
    std::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let first = bits.trailing_zeros();
        let count = (bits >> first).trailing_ones();
        let run = (base + u64::from(first), u64::from(count));
        base += u64::from(first + count);
        bits = bits.checked_shr(first + count).unwrap_or(0);
        Some(run)
    })
}

/// The lowest set bits, at most so many.
pub(super) fn lowest(bits: u32, most: u64) -> u32 {
    let mut left = bits;
    let mut found = 0;
    for _ in 0..most.min(u64::from(UNITS)) {
        let bit = left & left.wrapping_neg();
        found |= bit;
        left &= !bit;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_run_is_the_largest_class_that_can_be_chosen() {
        let mut word = 0x9e37_79b9u32;
        let mut random = || {
            word ^= word << 13;
            word ^= word >> 17;
            word ^= word << 5;
            word
        };
        for round in 0..2000 {
            let dense = match round % 3 {
                0 => random(),
                1 => random() | random() | random(),
                _ => u32::MAX << (random() % 33).min(31),
            };
            let chunk = ChunkSpace {
                ready: dense,
                ..ChunkSpace::default()
            };
            let naive = (0..CLASSES)
                .rev()
                .find(|&class| chunk.choose(class, Quality::Ready).is_some());
            assert_eq!(chunk.largest(Quality::Ready), naive, "{dense:#034b}");
        }
        let empty = ChunkSpace::default();
        assert_eq!(empty.largest(Quality::Any), Some(CLASSES - 1));
        assert_eq!(empty.largest(Quality::Ready), None);
    }

    #[test]
    fn lowest_bits_are_taken_first() {
        assert_eq!(lowest(0b1011_0100, 2), 0b0001_0100);
        assert_eq!(lowest(u32::MAX, 99), u32::MAX);
        assert_eq!(lowest(0, 3), 0);
    }
}
