//! Trees that a client might send to hurt: well formed, short, and describing as much as 63 bits allow.
//!
//! A [`Source`] is any bytes: the input of a fuzzer, or a seed. Equal bytes give equal trees.

use falls::{Falls, FallsSet, MAX_OFFSET, Periodic};
use random::Random;

/// Numbers from bytes; when they are used up, numbers that follow from them.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    bytes: &'a [u8],
    rest: Random,
}

impl<'a> Source<'a> {
    /// From the input of a fuzzer.
    pub fn new(bytes: &'a [u8]) -> Source<'a> {
        let seed = bytes
            .iter()
            .fold(0, |seed, b| random::mix(seed ^ u64::from(*b)));
        let rest = Random::new(seed);
        Source { bytes, rest }
    }

    /// From a seed alone.
    pub fn seeded(seed: u64) -> Source<'static> {
        Source {
            bytes: &[],
            rest: Random::new(seed),
        }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        if let Some((first, rest)) = self.bytes.split_first_chunk::<8>() {
            self.bytes = rest;
            return u64::from_le_bytes(*first);
        }
        self.rest.draw()
    }

    /// A number below `bound`, or 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.number() >> 8) % bound.max(1)
    }

    /// A number up to `most` of any magnitude: as often small as large.
    pub fn any_size(&mut self, most: u64) -> u64 {
        let bits = self.below(64);
        (self.number() >> (63 - bits)).min(most)
    }

    /// One of a list.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

/// A set within `span` bytes, at most `depth` deep.
pub fn set(source: &mut Source<'_>, span: u64, depth: u32) -> FallsSet {
    let mut members: Vec<Falls> = Vec::new();
    let mut at = 0;
    for _ in 0..=source.below(3) {
        let start = at + source.any_size(span / 8);
        let Some(left) = span.checked_sub(start).filter(|left| *left > 0) else {
            break;
        };
        let len = 1 + source.any_size(left - 1);
        let gap = match source.below(4) {
            0 => 0,
            1 => source.below(8),
            2 => source.any_size(left),
            _ => source.pick(&[1, 2, 3, 65_535, 65_537, (1 << 31) - 1, (1 << 61) - 1]),
        };
        let stride = len.saturating_add(gap).min(MAX_OFFSET);
        let most = 1 + (left - len) / stride;
        let count = match source.below(3) {
            0 => 1 + source.below(most.min(4)),
            1 => most,
            _ => 1 + source.any_size(most - 1),
        };
        let inner = (depth > 1 && len > 1 && source.below(2) == 0)
            .then(|| set(source, len, depth - 1))
            .filter(|inner| !inner.is_empty());
        let made = match inner {
            Some(inner) => Falls::nested(start, len, stride, count, inner),
            None => Falls::family(start, len, stride, count),
        };
        let Ok(made) = made else { break };
        at = made.end();
        members.push(made);
    }
    FallsSet::new(members).unwrap_or_default()
}

/// An element with a period that divides nothing, or anything.
pub fn periodic(source: &mut Source<'_>) -> Periodic {
    let period = match source.below(4) {
        0 => (1 << 61) - 1,
        1 => 1 + source.any_size(MAX_OFFSET - 1),
        2 => source.pick(&[7, 4096, 65_537, 1 << 20, (1 << 31) - 1, 1 << 62]),
        _ => 1 + source.below(1 << 20),
    };
    let depth = 1 + source.below(5) as u32;
    let set = set(source, period, depth);
    let displacement = match source.below(2) {
        0 => 0,
        _ => source.any_size(MAX_OFFSET / 2),
    };
    Periodic::new(displacement, period, set).unwrap_or_else(|_| Periodic::everything())
}
