//! What the accesses of one kind, reads or writes, came to.
//!
//! Sizes are counted by powers of two, the order of accesses in four kinds, and what they touched as a hull and as a
//! map of 256 blocks in view space, whose length doubles whenever the view turns out to be longer.

use std::ops::Range;

/// Classes of sizes: class `i` has the sizes from `2^(i-1)` to `2^i - 1`, the last one all that are longer.
pub const SIZES: usize = 32;

/// Blocks of a map.
const BLOCKS: u64 = 256;
/// A block has at least `2^12` bytes.
const LEAST_SHIFT: u32 = 12;

/// The class of a size.
///
/// ```
/// use advise::profile::size_class;
/// assert_eq!([0, 1, 2, 3, 4, 4096].map(size_class), [0, 1, 2, 2, 3, 13]);
/// ```
#[inline]
pub fn size_class(bytes: u64) -> usize {
    ((64 - bytes.leading_zeros()) as usize).min(SIZES - 1)
}

/// How an access lies to the one before of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It begins where that one ended.
    Sequential = 0,
    /// It ends where that one began.
    Reverse = 1,
    /// It is as far from it as that one was from its own.
    Strided = 2,
    /// Anything else, the first one included.
    Random = 3,
}

impl Order {
    /// All, by number.
    pub const ALL: [Order; 4] = [
        Order::Sequential,
        Order::Reverse,
        Order::Strided,
        Order::Random,
    ];

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Order::Sequential => "sequential",
            Order::Reverse => "reverse",
            Order::Strided => "strided",
            Order::Random => "random",
        }
    }
}

/// Which blocks of a view were touched.
///
/// ```text
///  bits   1 1 0 0 0 1 ...        one bit for 2^shift bytes of the view; shift grows with what is touched
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TouchedBlocks {
    /// A block has `2^shift` bytes.
    pub shift: u32,
    /// One bit for each block.
    pub bits: [u64; 4],
}

impl Default for TouchedBlocks {
    fn default() -> Self {
        TouchedBlocks {
            shift: LEAST_SHIFT,
            bits: [0; 4],
        }
    }
}

impl TouchedBlocks {
    /// The shift with which a map reaches to `end`.
    pub(super) fn shift_for(end: u64) -> u32 {
        let bits = 64 - end.saturating_sub(1).leading_zeros();
        bits.saturating_sub(8).max(LEAST_SHIFT)
    }

    /// This map with longer blocks.
    pub(super) fn widened(self, shift: u32) -> TouchedBlocks {
        let mut wide = self;
        while wide.shift < shift {
            let mut bits = [0_u64; 4];
            for block in 0..BLOCKS as usize {
                if wide.bits[block / 64] >> (block % 64) & 1 == 1 {
                    let to = block / 2;
                    bits[to / 64] |= 1 << (to % 64);
                }
            }
            wide = TouchedBlocks {
                shift: wide.shift + 1,
                bits,
            };
        }
        wide
    }

    /// With another range of the view.
    pub fn touch(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let shift = TouchedBlocks::shift_for(range.end);
        if shift > self.shift {
            *self = self.widened(shift);
        }
        for block in range.start >> self.shift..=(range.end - 1) >> self.shift {
            self.bits[(block / 64) as usize] |= 1 << (block % 64);
        }
    }

    /// Both.
    pub fn united(self, other: TouchedBlocks) -> TouchedBlocks {
        let shift = self.shift.max(other.shift);
        let (mut one, other) = (self.widened(shift), other.widened(shift));
        for (bits, more) in one.bits.iter_mut().zip(other.bits) {
            *bits |= more;
        }
        one
    }

    /// Whether nothing was touched.
    pub fn is_empty(&self) -> bool {
        self.bits == [0; 4]
    }

    /// Runs of touched blocks as ranges of the view, ascending and apart.
    ///
    /// ```
    /// use advise::profile::TouchedBlocks;
    /// let mut touched = TouchedBlocks::default();
    /// touched.touch(0..5000);
    /// touched.touch(20_000..20_001);
    /// assert_eq!(touched.runs(), [0..8192, 16384..20480]);
    /// ```
    pub fn runs(&self) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for block in 0..BLOCKS {
            if self.bits[(block / 64) as usize] >> (block % 64) & 1 == 0 {
                continue;
            }
            let range = block << self.shift..(block + 1) << self.shift;
            match runs.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => runs.push(range),
            }
        }
        runs
    }
}

/// What the accesses of one kind came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Bytes.
    pub bytes: u64,
    /// Accesses by the class of their size.
    pub sizes: [u64; SIZES],
    /// Accesses by their order.
    pub orders: [u64; 4],
    /// The smallest range of the view that has them all; empty if there were none.
    pub hull: (u64, u64),
    /// Which part of it.
    pub touched: TouchedBlocks,
}

impl Tally {
    /// Accesses.
    pub fn count(&self) -> u64 {
        self.sizes.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.sizes == [0; SIZES]
    }

    /// Adds what another one has.
    pub fn merge(&mut self, other: &Tally) {
        if other.is_empty() {
            return;
        }
        self.hull = match self.is_empty() {
            true => other.hull,
            false => (self.hull.0.min(other.hull.0), self.hull.1.max(other.hull.1)),
        };
        self.bytes = self.bytes.saturating_add(other.bytes);
        for (n, more) in self.sizes.iter_mut().zip(other.sizes) {
            *n = n.saturating_add(more);
        }
        for (n, more) in self.orders.iter_mut().zip(other.orders) {
            *n = n.saturating_add(more);
        }
        self.touched = self.touched.united(other.touched);
    }

    /// Half of everything that is counted; what it touched stays.
    pub(super) fn halve(&mut self) {
        self.bytes /= 2;
        // One access of a class stays one, so that what was seen is not forgotten at once.
        for n in self.sizes.iter_mut().chain(&mut self.orders) {
            *n = n.div_ceil(2);
        }
    }

    /// The ranges of the view that were touched: the map, cut to the hull.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let (low, high) = self.hull;
        self.touched
            .runs()
            .into_iter()
            .map(|run| run.start.max(low)..run.end.min(high))
            .filter(|run| !run.is_empty())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_grows_with_the_view_and_loses_nothing() {
        let mut touched = TouchedBlocks::default();
        touched.touch(0..1);
        touched.touch(1 << 20..(1 << 20) + 10);
        assert_eq!(touched.shift, 13);
        touched.touch((1 << 40) - 1..1 << 40);
        assert_eq!(touched.shift, 32);
        assert_eq!(touched.runs(), [0..1 << 32, 255 << 32..1 << 40]);
        // The whole of it, and not more blocks than there are.
        touched.touch(0..u64::MAX >> 1);
        assert_eq!(touched.runs().len(), 1);
        assert_eq!(touched.runs()[0], 0..1 << 63);
    }

    #[test]
    fn maps_unite_in_any_order() {
        let one = |range: Range<u64>| {
            let mut touched = TouchedBlocks::default();
            touched.touch(range);
            touched
        };
        let (a, b, c) = (one(5..9000), one(1 << 30..1 << 31), one(77_777..77_778));
        assert_eq!(a.united(b).united(c), a.united(c.united(b)));
        assert_eq!(a.united(b), b.united(a));
    }
}
