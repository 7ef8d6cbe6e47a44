//! Small patterns without exception: every FALLS with small numbers, every pair of them, and every
//! nesting of one in another, judged by the naive oracle.
//!
//! Random trees seldom meet the corners where blocks touch, a gap is exactly one byte or a period
//! ends with its last block; here all of them occur.

use crate::trees::{both_naive, meeting_naive, runs_naive, runs_of, well_formed};
use falls::bytes_naive::{bytes_naive, element_bytes_naive};
use falls::{Budget, Falls, FallsSet, Flaw, Meeting, Overlay, Periodic};

/// All FALLS that start below `starts`, with blocks of at most `longest`, strides of at most
/// `farthest` and at most `most` blocks.
fn families(starts: u64, longest: u64, farthest: u64, most: u64) -> Vec<FallsSet> {
    let mut out = Vec::new();
    for start in 0..starts {
        for len in 1..=longest {
            for count in 1..=most {
                for stride in len..=farthest.max(len) {
                    if count == 1 && stride > len {
                        break;
                    }
                    let falls = Falls::family(start, len, stride, count).unwrap();
                    out.push(FallsSet::new(vec![falls]).unwrap());
                }
            }
        }
    }
    out
}

/// Families with every small family inside their blocks.
fn nested() -> Vec<FallsSet> {
    let mut out = Vec::new();
    for inner in families(3, 2, 3, 3) {
        for room in 0..2 {
            let len = inner.end() + room;
            for count in 1..=3 {
                for hole in 0..=2 {
                    let falls = Falls::nested(1, len, len + hole, count, inner.clone()).unwrap();
                    out.push(FallsSet::new(vec![falls]).unwrap());
                }
            }
        }
    }
    out
}

fn check_alone(set: &FallsSet) {
    well_formed(set).unwrap();
    let bytes = bytes_naive(set);
    let end = set.end();
    for x in 0..end + 2 {
        let below = bytes.partition_point(|&b| b < x);
        assert_eq!(set.rank(x), below as u64, "rank of {x} in {set}");
        assert_eq!(
            set.contains(x),
            bytes.get(below) == Some(&x),
            "{x} in {set}"
        );
        assert_eq!(set.next_byte(x), bytes.get(below).copied(), "{x} in {set}");
    }
    for (k, &x) in bytes.iter().enumerate() {
        assert_eq!(set.select(k as u64), Some(x), "byte {k} of {set}");
    }
    for period in end..end + 3 {
        let rest = set.complement(period).unwrap();
        well_formed(&rest).unwrap();
        let expected: Vec<u64> = (0..period).filter(|x| !bytes.contains(x)).collect();
        assert_eq!(
            bytes_naive(&rest),
            expected,
            "complement of {set} in {period}"
        );
    }
    let simple = set.simplify();
    well_formed(&simple).unwrap();
    assert_eq!(bytes_naive(&simple), bytes, "{set} simplified");
    assert!(simple.node_count() <= set.node_count(), "{set} to {simple}");
    for a in 0..=end {
        for b in a..end + 2 {
            let inside: Vec<u64> = bytes
                .iter()
                .copied()
                .filter(|x| (a..b).contains(x))
                .collect();
            assert_eq!(
                runs_of(set.segments(a..b)),
                runs_naive(&inside),
                "{set} {a}..{b}"
            );
            let cut = set.cut(a..b);
            let moved: Vec<u64> = inside.iter().map(|x| x - a).collect();
            assert_eq!(bytes_naive(&cut), moved, "{set} cut to {a}..{b}");
        }
    }
}

#[test]
fn every_small_family() {
    let all = families(4, 3, 5, 3);
    assert_eq!(all.len(), 108);
    all.iter().for_each(check_alone);
}

#[test]
fn every_small_nesting() {
    nested().iter().for_each(check_alone);
}

#[test]
fn every_pair_of_small_families() {
    let all = families(4, 3, 5, 3);
    let bytes: Vec<Vec<u64>> = all.iter().map(bytes_naive).collect();
    for (a, x) in all.iter().zip(&bytes) {
        for (b, y) in all.iter().zip(&bytes) {
            let common = a.intersect(b);
            well_formed(&common).unwrap();
            let expected = both_naive(x, y);
            assert_eq!(bytes_naive(&common), expected, "{a} and {b}");
            let (union, twice) = FallsSet::union(&[a.clone(), b.clone()]).unwrap();
            well_formed(&union).unwrap();
            let mut either: Vec<u64> = x.iter().chain(y).copied().collect();
            either.sort_unstable();
            either.dedup();
            assert_eq!(bytes_naive(&union), either, "{a} or {b}");
            assert_eq!(twice, !expected.is_empty(), "{a} and {b} overlap");
            match Overlay::new(&[a.clone(), b.clone()]) {
                Ok(overlay) => {
                    assert!(expected.is_empty(), "{a} and {b} overlap");
                    for byte in 0..a.end().max(b.end()) + 1 {
                        let owner = [a, b].iter().position(|s| s.contains(byte));
                        assert_eq!(overlay.owner(byte), owner, "{byte} of {a} and {b}");
                    }
                }
                Err(flaw) => {
                    let overlap = Flaw::Overlap {
                        first: 0,
                        second: 1,
                        byte: expected[0],
                    };
                    assert_eq!(flaw, overlap, "{a} and {b}");
                }
            }
            assert_eq!(a.same_bytes(b), x == y, "{a} and {b}");
        }
    }
}

#[test]
fn every_small_nesting_against_small_families() {
    let nested = nested();
    for b in families(2, 2, 4, 3) {
        let y = bytes_naive(&b);
        for a in &nested {
            let expected = both_naive(&bytes_naive(a), &y);
            let common = a.intersect(&b);
            well_formed(&common).unwrap();
            assert_eq!(bytes_naive(&common), expected, "{a} and {b}");
            assert_eq!(bytes_naive(&b.intersect(a)), expected, "{b} and {a}");
        }
    }
}

/// Byte triples of a meeting (file, left, right) over `0..limit`, read from its runs.
fn triples(meeting: &Meeting, limit: u64) -> Vec<(u64, u64, u64)> {
    meeting
        .runs(0..limit)
        .flat_map(|r| (0..r.len).map(move |i| (r.file + i, r.left + i, r.right + i)))
        .collect()
}

#[test]
fn every_meeting_of_small_elements() {
    let mut elements = Vec::new();
    for set in families(2, 2, 4, 2) {
        for room in 0..2 {
            for displacement in [0, 3] {
                elements.push(Periodic::new(displacement, set.end() + room, set.clone()).unwrap());
            }
        }
    }
    for a in &elements {
        for b in &elements {
            let limit = 3 + a.period() * b.period() + 5;
            let expected = meeting_naive(a, b, limit);
            for budget in [Budget::DEFAULT, Budget(0)] {
                let meeting = Meeting::with_budget(a, b, budget);
                assert_eq!(triples(&meeting, limit), expected, "{a:?} and {b:?}");
                let joint = meeting.joint(0..limit);
                let left: Vec<u64> = expected.iter().map(|t| t.1).collect();
                assert_eq!(bytes_naive(&joint.left_set()), left, "{a:?} and {b:?}");
                let right: Vec<u64> = expected.iter().map(|t| t.2).collect();
                assert_eq!(bytes_naive(&joint.right_set()), right, "{a:?} and {b:?}");
                assert_eq!(meeting.is_empty(), expected.is_empty());
                for x in 0..limit {
                    let next = expected.iter().map(|t| t.0).find(|&y| y >= x);
                    let found = meeting.next_byte(x).filter(|&y| y < limit);
                    assert_eq!(found, next, "from {x} in {a:?} and {b:?}");
                }
            }
        }
    }
}

#[test]
fn every_rotation_of_small_elements() {
    for set in families(3, 2, 4, 3).into_iter().chain(nested()) {
        for room in 0..2 {
            let e = Periodic::new(2, set.end() + room, set.clone()).unwrap();
            let limit = 3 * e.period() + 4;
            let bytes = element_bytes_naive(&e, limit);
            for from in 2..2 + e.period() + 1 {
                let turned = e.align(from).unwrap();
                well_formed(turned.set()).unwrap();
                let expected: Vec<u64> = bytes.iter().copied().filter(|&x| x >= from).collect();
                assert_eq!(
                    element_bytes_naive(&turned, limit),
                    expected,
                    "{e:?} at {from}"
                );
            }
        }
    }
}
