//! The first byte that two sets have in common at or after an offset, in constant memory.
//!
//! This is what stands in for a symbolic intersection when the common period is too long to write
//! down. Two block sequences with strides `s` and `t` meet where a linear congruence has a
//! solution in an interval; Euclid's algorithm finds the first one in O(log t) steps, so patterns
//! that meet once in 2^60 bytes are searched as fast as dense ones. Inside two blocks that meet,
//! the search descends into their inner sets.
//!
//! Cost: O(log stride) per pair of meeting blocks. Pairs whose blocks meet but whose inner sets do
//! not are visited one by one; a caller that must not wait passes fuel.

use crate::set::{FallsSet, Node};
use crate::steps::Watch;

/// Steps between two questions to a watcher: some tens of microseconds.
pub(crate) const ASK_EVERY: u64 = 1 << 12;

/// Steps that a search may take. Ordinary cursors have no bound; constructors do.
///
/// A search that is [watched](Watch) gets its steps a few at a time; before it gets more, the watcher says whether it goes
/// on. A step costs the same with a watcher and without.
#[derive(Clone, Copy)]
pub(crate) struct Fuel<'a> {
    /// Until the watcher is asked; all of them where there is none.
    near: u64,
    beyond: u64,
    watch: Option<&'a dyn Watch>,
    /// The watcher has said no.
    is_ended: bool,
}

impl<'a> Fuel<'a> {
    /// So many steps, the first `near` of them before the watcher is asked.
    pub(crate) fn new(steps: u64, near: u64, watch: Option<&'a dyn Watch>) -> Fuel<'a> {
        let near = match watch {
            Some(_) => near.min(steps),
            None => steps,
        };
        Fuel {
            near,
            beyond: steps - near,
            watch,
            is_ended: false,
        }
    }

    /// So many steps for a search that nobody watches.
    pub(crate) fn alone(steps: u64) -> Fuel<'static> {
        Fuel::new(steps, 0, None)
    }

    pub(crate) fn unbounded() -> Fuel<'static> {
        Fuel::alone(u64::MAX)
    }

    pub(crate) fn left(self) -> u64 {
        self.near + self.beyond
    }

    /// Steps until the watcher is asked.
    pub(crate) fn near(self) -> u64 {
        self.near
    }

    /// Whether the search ended by itself: what it did not find is not there.
    pub(crate) fn is_left(self) -> bool {
        self.left() > 0
    }

    /// At most so many steps of it; what they leave is given back with [`Fuel::give_back`].
    pub(crate) fn take(&mut self, most: u64) -> Fuel<'a> {
        let near = self.near.min(most);
        let beyond = self.beyond.min(most - near);
        self.near -= near;
        self.beyond -= beyond;
        Fuel {
            near,
            beyond,
            ..*self
        }
    }

    /// What a part of it has left: nothing of the whole either, if the watcher has ended it.
    pub(crate) fn give_back(&mut self, part: Fuel<'a>) {
        self.near += part.near;
        self.beyond += part.beyond;
        if part.is_ended {
            self.end();
        }
    }

    fn end(&mut self) {
        (self.near, self.beyond, self.is_ended) = (0, 0, true);
    }

    #[inline]
    pub(crate) fn spend(&mut self) -> Option<()> {
        match self.near.checked_sub(1) {
            Some(near) => self.near = near,
            None => self.ask()?,
        }
        Some(())
    }

    /// The first step of those that the watcher allows.
    #[cold]
    fn ask(&mut self) -> Option<()> {
        let near = self.beyond.min(ASK_EVERY);
        if near == 0 {
            return None;
        }
        if !self.watch.is_none_or(Watch::goes_on) {
            self.end();
            return None;
        }
        (self.near, self.beyond) = (near - 1, self.beyond - near);
        Some(())
    }
}

/// First common byte of two nodes in `lo..hi`.
pub(crate) fn next_common_node(
    f: Node<'_>,
    g: Node<'_>,
    lo: u64,
    hi: u64,
    fuel: &mut Fuel<'_>,
) -> Option<u64> {
    let mut lo = lo.max(f.start).max(g.start);
    let hi = hi.min(f.end()).min(g.end());
    if lo >= hi {
        return None;
    }
    if f.is_segment() {
        return first_byte(g, lo).filter(|&x| x < hi);
    }
    if g.is_segment() {
        return first_byte(f, lo).filter(|&x| x < hi);
    }
    if f.count == 1 {
        return next_common_inner(f, g, lo, hi, fuel);
    }
    if g.count == 1 {
        return next_common_inner(g, f, lo, hi, fuel);
    }
    while lo < hi {
        fuel.spend()?;
        let (i, j) = (block_at(f, lo), block_at(g, lo));
        if i >= f.count || j >= g.count {
            return None;
        }
        let (a, b) = (f.block(i), g.block(j));
        if a.start < b.end() && b.start < a.end() {
            if let Some(x) = next_common_node(a, b, lo, hi, fuel) {
                return Some(x);
            }
            lo = lo.max(a.end().min(b.end()));
        } else {
            // Blocks of g before j end at or before lo, so block i of f can only meet later ones;
            // if it ends before block j begins, the search goes on behind it.
            lo = jump(f, g, i + u64::from(a.end() <= b.start))?;
        }
    }
    None
}

/// First common byte of `set` moved by `base` and a node, in `lo..hi`.
pub(crate) fn next_common_set_node(
    set: &FallsSet,
    base: u64,
    node: Node<'_>,
    lo: u64,
    hi: u64,
    fuel: &mut Fuel<'_>,
) -> Option<u64> {
    let lo = lo.max(node.start).max(base);
    let hi = hi.min(node.end());
    if lo >= hi {
        return None;
    }
    for i in set.members_meeting(lo - base, hi - base) {
        fuel.spend()?;
        if let Some(x) = next_common_node(set.node(i).shifted(base), node, lo, hi, fuel) {
            return Some(x);
        }
    }
    None
}

fn next_common_inner(
    single: Node<'_>,
    other: Node<'_>,
    lo: u64,
    hi: u64,
    fuel: &mut Fuel<'_>,
) -> Option<u64> {
    let inner = single
        .inner
        .expect("a single block without inner set is a segment");
    next_common_set_node(inner, single.start, other, lo, hi, fuel)
}

fn first_byte(node: Node<'_>, x: u64) -> Option<u64> {
    let k = node.rank(x);
    (k < node.size()).then(|| node.select(k))
}

/// First block that ends after `x`.
fn block_at(node: Node<'_>, x: u64) -> u64 {
    if x < node.start {
        return 0;
    }
    let y = x - node.start;
    y / node.stride + u64::from(y % node.stride >= node.len)
}

/// Blocks `i` of `f` and after it: where does the first of them meet a block of `g`?
fn jump(f: Node<'_>, g: Node<'_>, i: u64) -> Option<u64> {
    if i >= f.count {
        return None;
    }
    let start = f.start + i * f.stride;
    // Block i + k meets a block of g iff (start + k*s_f - g.start) mod s_g lies in
    // [-(len_f - 1), len_g - 1].
    let m = g.stride;
    if u128::from(f.len) + u128::from(g.len) > u128::from(m) {
        // Every block of f meets one of g, or touches its neighbour: step to the next block start.
        return Some(start.max(g.start + block_at(g, start) * g.stride));
    }
    let phase = i128::from(start) - i128::from(g.start);
    let phase = phase.rem_euclid(i128::from(m)) as u64;
    let low = (u128::from(m) - u128::from(f.len - 1) % u128::from(m) + u128::from(m - phase))
        % u128::from(m);
    let k = first_in_interval(f.stride % m, m, low as u64, f.len + g.len - 2)?;
    let meets = u128::from(start) + u128::from(k) * u128::from(f.stride);
    if meets >= u128::from(f.end()) {
        return None;
    }
    let a = meets as u64;
    let b = g.start + block_at(g, a.max(g.start)) * g.stride;
    Some(a.max(b.min(g.end())))
}

/// Smallest `k >= 0` with `(a * k) mod m` in `low ..= low + width`, the interval taken modulo `m`.
fn first_in_interval(a: u64, m: u64, low: u64, width: u64) -> Option<u64> {
    let high = low + width;
    if low == 0 || high >= m {
        return Some(0); // the interval holds 0
    }
    first_multiple(a, m, low, high)
}

/// Smallest `k` with `low <= (a * k) mod m <= high`, for `0 < low <= high < m` and `a < m`.
fn first_multiple(a: u64, m: u64, low: u64, high: u64) -> Option<u64> {
    if a == 0 {
        return None;
    }
    let k = low.div_ceil(a);
    if u128::from(k) * u128::from(a) <= u128::from(high) {
        return Some(k);
    }
    // No multiple of `a` in [low, high]: a*k - m*y in [low, high] needs m*y mod a in the reflected
    // interval, a smaller problem of the same kind.
    let reflect = |x: u64| (a - x % a) % a;
    let y = first_in_interval_exact(m % a, a, reflect(high), reflect(low))?;
    let k = (u128::from(low) + u128::from(m) * u128::from(y)).div_ceil(u128::from(a));
    u64::try_from(k).ok()
}

fn first_in_interval_exact(a: u64, m: u64, low: u64, high: u64) -> Option<u64> {
    if low == 0 {
        Some(0)
    } else {
        first_multiple(a, m, low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::Falls;

    #[test]
    fn first_multiple_agrees_with_a_scan() {
        for m in 1..40u64 {
            for a in 0..m {
                for low in 1..m {
                    for high in low..m {
                        let scan = (0..m).find(|k| (low..=high).contains(&(a * k % m)));
                        assert_eq!(
                            first_multiple(a, m, low, high),
                            scan,
                            "{a} {m} {low} {high}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn common_bytes_of_plain_families_agree_with_a_scan() {
        for (s, t) in [(5, 7), (6, 9), (4, 4), (10, 3), (12, 18)] {
            for p in 1..=3 {
                for q in 1..=3 {
                    for (l, r) in [(0, 0), (1, 5), (7, 2), (20, 0)] {
                        let f = Falls::family(l, p, s, 9).unwrap();
                        let g = Falls::family(r, q, t, 11).unwrap();
                        let inside = |n: Node<'_>, x| n.rank(x + 1) > n.rank(x);
                        for lo in 0..120 {
                            let scan =
                                (lo..140).find(|&x| inside(f.node(), x) && inside(g.node(), x));
                            let found = next_common_node(
                                f.node(),
                                g.node(),
                                lo,
                                140,
                                &mut Fuel::unbounded(),
                            );
                            assert_eq!(found, scan, "{f:?} {g:?} {lo}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn coprime_strides_near_two_to_the_31_meet_at_once() {
        let (s, t) = ((1u64 << 31) - 1, (1u64 << 31) + 11);
        let f = Falls::family(5, 1, s, 1 << 31).unwrap();
        let g = Falls::family(0, 1, t, (1 << 31) - 64).unwrap();
        let x = next_common_node(f.node(), g.node(), 0, u64::MAX, &mut Fuel::alone(1000)).unwrap();
        assert_eq!((x % t, x % s), (0, 5));
    }
}
