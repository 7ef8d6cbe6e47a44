//! Owns the walks: a processor goes through its local array in order and learns, run by run,
//! which peer holds each run under the other distribution. Packing walks the old local array
//! towards the new owners; synchronous unpacking walks the new one towards the old owners.
//!
//! The walks are generic over the index type for one reason: the tests run them with a type
//! that counts divisions. KYY, XKX-1, XKX-2 and BCY divide only before their loops; GEN divides
//! twice per element.

use std::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};

/// Integers with the arithmetic that walks use; `u64` outside the tests.
pub(crate) trait Index:
    Copy
    + Ord
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + AddAssign
    + SubAssign
    + From<u8>
{
}

impl Index for u64 {}

/// What a walk needs to know, all counted in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<I> {
    /// Elements of the local array.
    pub(crate) local: I,
    /// Block size of the distribution that is walked.
    pub(crate) x: I,
    /// Block size of the distribution of the peers.
    pub(crate) y: I,
    /// This processor.
    pub(crate) me: I,
    /// Number of processors.
    pub(crate) processors: I,
}

impl<I: Index> Walk<I> {
    /// Cyclic(ky) towards Cyclic(y): every local block goes to the same k peers in turn.
    /// `visit(peer, local start, elements)`.
    #[inline(always)]
    pub(crate) fn kyy(self, mut visit: impl FnMut(I, I, I)) {
        let (zero, one) = (I::from(0), I::from(1));
        let k = self.x / self.y;
        let first = self.me * k % self.processors;
        let mut at = zero;
        while at < self.local {
            let mut peer = first;
            let mut block = zero;
            while block < k && at < self.local {
                visit(peer, at, self.y.min(self.local - at));
                at += self.y;
                block += one;
                peer += one;
                if peer == self.processors {
                    peer = zero;
                }
            }
        }
    }

    /// Cyclic(x) towards Cyclic(kx), k >= P: runs of local blocks share a peer; the next run
    /// goes to the next one.
    #[inline(always)]
    pub(crate) fn xkx_1(self, mut visit: impl FnMut(I, I, I)) {
        let (zero, one) = (I::from(0), I::from(1));
        let k = self.y / self.x;
        let (mut at, mut peer, mut place) = (zero, zero, self.me);
        while at < self.local {
            let start = at;
            while place < k && at < self.local {
                at += self.x;
                place += self.processors;
            }
            visit(peer, start, at.min(self.local) - start);
            if at >= self.local {
                break;
            }
            place -= k;
            peer += one;
            if peer == self.processors {
                peer = zero;
            }
        }
    }

    /// Cyclic(x) towards Cyclic(kx), k < P: one loop, two additions and two conditional
    /// subtractions per block.
    #[inline(always)]
    pub(crate) fn xkx_2(self, mut visit: impl FnMut(I, I, I)) {
        let k = self.y / self.x;
        let (step, rest) = (self.processors / k, self.processors % k);
        let (mut peer, mut place) = (self.me / k, self.me % k);
        let mut at = I::from(0);
        while at < self.local {
            visit(peer, at, self.x.min(self.local - at));
            at += self.x;
            place += rest;
            peer += step;
            if place >= k {
                place -= k;
                peer += I::from(1);
            }
            if peer >= self.processors {
                peer -= self.processors;
            }
        }
    }

    /// Block towards Cyclic: one loop, increment and test.
    #[inline(always)]
    pub(crate) fn bcy(self, mut visit: impl FnMut(I, I, I)) {
        let (zero, one) = (I::from(0), I::from(1));
        let mut peer = self.me * self.x % self.processors;
        let mut at = zero;
        while at < self.local {
            visit(peer, at, one);
            at += one;
            peer += one;
            if peer == self.processors {
                peer = zero;
            }
        }
    }

    /// Cyclic(x) towards Block: one contiguous piece per peer, found by one division each.
    #[inline(always)]
    pub(crate) fn cbl(self, mut visit: impl FnMut(I, I, I)) {
        let zero = I::from(0);
        let (mut peer, mut start) = (zero, zero);
        while start < self.local && peer < self.processors {
            let end = self.before((peer + I::from(1)) * self.y).min(self.local);
            if end > start {
                visit(peer, start, end - start);
            }
            start = end;
            peer += I::from(1);
        }
    }

    /// How many of my elements lie before a global index.
    fn before(&self, global: I) -> I {
        let round = self.x * self.processors;
        let (rounds, rest) = (global / round, global % round);
        let mine = self.me * self.x;
        let part = if rest > mine {
            (rest - mine).min(self.x)
        } else {
            I::from(0)
        };
        rounds * self.x + part
    }

    /// Any x and y, element by element: `(global / y) mod P`. The inner mod and div of the
    /// printed formula are increments; two divisions per element remain.
    #[inline(always)]
    pub(crate) fn generic(self, mut visit: impl FnMut(I, I, I)) {
        let (zero, one) = (I::from(0), I::from(1));
        let jump = self.x * (self.processors - one);
        let (mut at, mut global, mut place) = (zero, self.me * self.x, zero);
        while at < self.local {
            visit(global / self.y % self.processors, at, one);
            at += one;
            global += one;
            place += one;
            if place == self.x {
                place = zero;
                global += jump;
            }
        }
    }
}
