//! The oracle: sets and elements as explicit lists of bytes.
//!
//! Slow and meant to be obviously correct. Tests of every crate judge the algebra by it; nothing
//! else uses it. No lcm, no cutting, no tree tricks.

use crate::notation::Term;
use crate::periodic::Periodic;
use crate::set::FallsSet;

/// All bytes of a set in tree order.
pub fn bytes_naive(set: &FallsSet) -> Vec<u64> {
    let mut out = Vec::new();
    collect(set, 0, &mut out);
    out
}

fn collect(set: &FallsSet, base: u64, out: &mut Vec<u64>) {
    for node in set.nodes() {
        for k in 0..node.count {
            let start = base + node.start + k * node.stride;
            match node.inner {
                None => out.extend(start..start + node.len),
                Some(inner) => collect(inner, start, out),
            }
        }
    }
}

/// All bytes of a list as written, in tree order, with repetitions where it overlaps itself.
pub fn term_bytes_naive(terms: &[Term]) -> Vec<i64> {
    fn walk(terms: &[Term], base: i64, out: &mut Vec<i64>) {
        for t in terms {
            for k in 0..t.n {
                let start = base + t.l + if t.n > 1 { k * t.s.unwrap_or(0) } else { 0 };
                if t.inner.is_empty() {
                    out.extend(start..=start + t.r - t.l);
                } else {
                    walk(&t.inner, start, out);
                }
            }
        }
    }
    let mut out = Vec::new();
    walk(terms, 0, &mut out);
    out
}

/// The bytes of an element below `limit`, ascending.
pub fn element_bytes_naive(element: &Periodic, limit: u64) -> Vec<u64> {
    let one = bytes_naive(element.set());
    let mut out = Vec::new();
    let mut base = element.displacement();
    while base < limit {
        out.extend(one.iter().map(|x| base + x).filter(|&x| x < limit));
        base += element.period();
    }
    out
}
