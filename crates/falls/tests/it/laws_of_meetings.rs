//! Laws of meetings as properties: intersection and both projections of two elements, symbolic and
//! by cursors, judged by the naive oracle over explicit bytes.
//!
//! Two kinds of pairs: random trees with random periods and displacements, and regular
//! two-dimensional block-cyclic distributions, on which the printed algorithm loses file order.

use crate::trees::{Element, check, element_to, meeting_naive, well_formed};
use falls::bytes_naive::{bytes_naive, element_bytes_naive};
use falls::{Budget, Meeting, Overlay, Periodic, Run};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// Everything a meeting says about `0..limit`, against bytes.
fn judge(
    left: &Periodic,
    right: &Periodic,
    budget: Budget,
    limit: u64,
    ranges: &[(u64, u64)],
) -> Result<Meeting, TestCaseError> {
    let meeting = Meeting::with_budget(left, right, budget);
    let all = meeting_naive(left, right, limit);
    for &(lo, hi) in ranges.iter().chain(&[(0, limit)]) {
        let hi = hi.min(limit);
        let inside: Vec<_> = all
            .iter()
            .copied()
            .filter(|t| (lo..hi).contains(&t.0))
            .collect();
        prop_assert_eq!(meeting.count(lo..hi), inside.len() as u64);
        prop_assert_eq!(
            meeting.runs(lo..hi).collect::<Vec<_>>(),
            runs_naive(&inside),
            "runs in {}..{}",
            lo,
            hi
        );
        let joint = meeting.joint(lo..hi);
        prop_assert_eq!(joint.size(), inside.len() as u64);
        prop_assert_eq!(joint.is_empty(), inside.is_empty());
        for (set, side) in [
            (joint.file_set(), 0),
            (joint.left_set(), 1),
            (joint.right_set(), 2),
        ] {
            well_formed(&set)?;
            let expected: Vec<u64> = inside.iter().map(|t| [t.0, t.1, t.2][side]).collect();
            prop_assert_eq!(
                bytes_naive(&set),
                expected,
                "side {} of {}..{}",
                side,
                lo,
                hi
            );
        }
        let (a, b) = (joint.size() / 3, joint.size() - joint.size() / 4);
        let part = joint.cut(a..b);
        let expected = &inside[a as usize..b.max(a) as usize];
        prop_assert_eq!(part.size(), expected.len() as u64);
        let left_bytes = bytes_naive(&part.left_set());
        prop_assert_eq!(left_bytes, expected.iter().map(|t| t.1).collect::<Vec<_>>());
        let right_bytes = bytes_naive(&part.right_set());
        prop_assert_eq!(
            right_bytes,
            expected.iter().map(|t| t.2).collect::<Vec<_>>()
        );
        let mirrored = part.mirrored();
        prop_assert!(mirrored.left_set().same_bytes(&part.right_set()));
        prop_assert!(mirrored.right_set().same_bytes(&part.left_set()));
    }
    for x in [0, 1, limit / 3, limit / 2] {
        let next = all.iter().map(|t| t.0).find(|&b| b >= x);
        let found = meeting.next_byte(x).filter(|&b| b < limit);
        prop_assert_eq!(found, next, "next common byte from {}", x);
    }
    if meeting.is_empty() {
        prop_assert!(all.is_empty());
    }
    Ok(meeting)
}

/// Maximal runs contiguous in all three spaces.
fn runs_naive(bytes: &[(u64, u64, u64)]) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for &(file, left, right) in bytes {
        match out.last_mut() {
            Some(r) if r.file + r.len == file && r.left + r.len == left => r.len += 1,
            _ => out.push(Run {
                file,
                left,
                right,
                len: 1,
            }),
        }
    }
    out
}

/// The three elements of a symbolic meeting, byte by byte.
fn judge_symbolic(meeting: &Meeting, limit: u64) -> Result<(), TestCaseError> {
    let (Some(file), Some(on_left), Some(on_right)) =
        (meeting.file(), meeting.on_left(), meeting.on_right())
    else {
        return Err(TestCaseError::fail("a small pair was not written down"));
    };
    for side in [file, on_left, on_right] {
        well_formed(side.set())?;
        prop_assert_eq!(side.size(), file.size());
    }
    let all = meeting_naive(meeting.left(), meeting.right(), limit);
    for (j, &(x, l, r)) in all.iter().enumerate() {
        let found = [file, on_left, on_right].map(|side| side.select(j as u64));
        prop_assert_eq!(found, [x, l, r].map(Some), "stream position {}", j);
    }
    prop_assert_eq!(file.rank(limit), all.len() as u64);
    Ok(())
}

#[test]
fn meetings_of_random_elements() {
    let ranges = prop::collection::vec((0..400u64, 0..600u64), 0..3);
    check(
        2500,
        (element_to(3), element_to(3), ranges),
        |(Element(a), Element(b), ranges)| {
            let start = a.displacement().max(b.displacement());
            let limit = start + (4 * a.period().max(b.period())).min(600) + 7;
            let symbolic = judge(&a, &b, Budget::UNBOUNDED, limit, &ranges)?;
            judge_symbolic(&symbolic, limit)?;
            let lazy = judge(&a, &b, Budget(0), limit, &ranges)?;
            prop_assert!(!lazy.is_symbolic() || lazy.is_empty());
            prop_assert_eq!(lazy.is_empty(), symbolic.is_empty());
            let other_way = Meeting::new(&b, &a);
            prop_assert_eq!(other_way.count(0..limit), symbolic.count(0..limit));
            Ok(())
        },
    );
}

#[test]
fn meetings_of_deep_elements() {
    check(
        800,
        (crate::trees::element(), crate::trees::element()),
        |(Element(a), Element(b))| {
            let limit = a.displacement().max(b.displacement()) + 900;
            judge(&a, &b, Budget::DEFAULT, limit, &[(100, 333)])?;
            judge(&a, &b, Budget(0), limit, &[(100, 333)])?;
            Ok(())
        },
    );
}

#[test]
fn meetings_of_block_cyclic_distributions() {
    check(
        400,
        (crate::trees::grid_pair(), 0..9u64),
        |((from, to), moved)| {
            let bytes = from.rows * from.columns;
            let (sources, targets) = (from.elements(), to.elements());
            for (set, owned) in sources.iter().zip(from.owners_naive()) {
                prop_assert_eq!(bytes_naive(set.set()), owned);
            }
            let overlay =
                Overlay::new(&targets.iter().map(|t| t.set().clone()).collect::<Vec<_>>());
            prop_assert_eq!(overlay.unwrap().first_gap(bytes), None);
            for source in &sources {
                let mut total = 0;
                for target in &targets {
                    let meeting = judge(
                        source,
                        target,
                        Budget::DEFAULT,
                        2 * bytes + 3,
                        &[(5, bytes)],
                    )?;
                    judge_symbolic(&meeting, 2 * bytes + 3)?;
                    total += meeting.size_per_period().unwrap_or(0);
                    judge(source, target, Budget(0), 2 * bytes + 3, &[(5, bytes)])?;
                    let displaced = Periodic::new(moved, bytes, target.set().clone()).unwrap();
                    judge(source, &displaced, Budget::DEFAULT, 2 * bytes + 3, &[])?;
                }
                prop_assert_eq!(total, source.size());
            }
            Ok(())
        },
    );
}

#[test]
fn meetings_with_everything_are_the_other_side() {
    let whole = (1..30u64, 0..9u64);
    check(300, (element_to(3), whole), |(Element(e), (period, at))| {
        let set = falls::FallsSet::segment(0, period).unwrap();
        let whole = Periodic::new(at, period, set).unwrap();
        let limit = e.displacement().max(at) + 3 * e.period().max(period);
        let expected: Vec<u64> = element_bytes_naive(&e, limit)
            .into_iter()
            .filter(|&x| x >= at)
            .collect();
        for (l, r) in [(&e, &whole), (&whole, &e)] {
            for budget in [Budget::DEFAULT, Budget(0)] {
                let meeting = judge(l, r, budget, limit, &[(3, 40)])?;
                let file = bytes_naive(&meeting.joint(0..limit).file_set());
                prop_assert_eq!(&file, &expected);
            }
        }
        Ok(())
    });
}
