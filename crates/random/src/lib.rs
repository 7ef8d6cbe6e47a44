//! Numbers that look like chance and depend on nothing but a seed: the same on every machine, in every run.
//!
//! For models, twins of disks, tests and benchmarks. `PARIO_SEED` names the seed of a run; without it every run is the
//! same. Not for secrets: one number tells all that follow.
#![forbid(unsafe_code)]

/// The seed of this run. A test that fails prints it.
pub fn seed() -> u64 {
    match std::env::var("PARIO_SEED") {
        Ok(text) if !text.is_empty() => {
            let text = text.trim();
            let read = match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => text.parse(),
            };
            read.unwrap_or_else(|_| panic!("PARIO_SEED: '{text}' is no number"))
        }
        _ => 0x5eed_0001,
    }
}

/// A generator of such numbers (splitmix64).
///
/// ```
/// let (mut one, mut other) = (random::Random::new(7), random::Random::new(7));
/// assert_eq!(one.draw(), other.draw());
/// assert!(one.below(10) < 10);
/// ```
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed; any will do.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// From the seed of this run and a number that tells apart what is drawn with it.
    pub fn of_run(what: u64) -> Random {
        Random(mix(seed() ^ mix(what)))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(end)) >> 64) as u64
    }

    /// An index of a list of that length.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// One of a list.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }

    /// A number of a range.
    pub fn within(&mut self, range: std::ops::Range<u64>) -> u64 {
        range.start + self.below(range.end - range.start)
    }

    /// From 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponentially distributed with a mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Puts a list into any order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i + 1));
        }
    }

    /// Bytes without zeros, which would pass for holes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        for part in bytes.chunks_mut(8) {
            let drawn = self.draw().to_le_bytes();
            for (byte, drawn) in part.iter_mut().zip(drawn) {
                *byte = drawn.max(1);
            }
        }
        bytes
    }
}

/// A number in which every bit depends on all bits of another.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_published_generator() {
        let mut random = Random::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(expected.map(|_| random.draw()), expected);
    }

    #[test]
    fn what_is_drawn_keeps_within_its_bounds() {
        let mut random = Random::new(1);
        assert_eq!(random.below(0), 0);
        let mut seen = [0; 5];
        for _ in 0..5000 {
            seen[random.index(5)] += 1;
            assert!((10..12).contains(&random.within(10..12)));
            assert!((0.0..1.0).contains(&random.unit()));
        }
        assert!(
            seen.iter().all(|count| (800..1200).contains(count)),
            "{seen:?}"
        );
        let mean = (0..5000).map(|_| random.exponential(2.0)).sum::<f64>() / 5000.0;
        assert!((1.8..2.2).contains(&mean), "{mean}");
        let mut list: Vec<u64> = (0..50).collect();
        random.shuffle(&mut list);
        assert_ne!(list, (0..50).collect::<Vec<_>>());
        list.sort_unstable();
        assert_eq!(list, (0..50).collect::<Vec<_>>());
        assert!(random.bytes(1001).iter().all(|byte| *byte != 0));
    }
}
