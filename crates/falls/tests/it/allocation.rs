//! What allocates nothing, and what allocates no more than so much whatever the sizes.
//!
//! Allocations of the calling thread are counted. Also here, because memory is what they are about:
//! meetings of patterns whose common period cannot be written down.

use allocation_counter::{AllocationInfo, measure};
use falls::{Falls, FallsSet, MAX_OFFSET, Meeting, Periodic, Segment};

/// A million irregular segments.
fn list() -> FallsSet {
    let mut at = 0;
    let segments: Vec<Segment> = (0..1_000_000u64)
        .map(|i| {
            at += 3 + i * 2_654_435_761 % 11;
            Segment::new(at - 2, 1 + i % 2).unwrap()
        })
        .collect();
    FallsSet::from_segments(&segments).unwrap()
}

/// Sixty levels, each with a hole of its own.
fn deep() -> FallsSet {
    (0..60).fold(FallsSet::segment(0, 1).unwrap(), |inner, _| {
        let len = inner.end();
        FallsSet::new(vec![Falls::nested(0, len, len + 1, 2, inner).unwrap()]).unwrap()
    })
}

fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

#[test]
fn seed000_s05_rank_membership_and_select_allocate_nothing() {
    let wide = "{(0,3,8,1000,{(0,0,2,2)}),(9000,9099),(10000,10001,4,7)}";
    for set in [list(), deep(), wide.parse().unwrap()] {
        let period = set.end() + 5;
        let element = Periodic::new(3, period, set.clone()).unwrap();
        let step = set.end() / 1000 + 1;
        let mut seen = 0u64;
        let count = allocations(|| {
            for x in (0..set.end()).step_by(step as usize) {
                seen = seen.wrapping_add(set.rank(x));
                seen += u64::from(set.contains(x)) + u64::from(element.contains(x));
                seen = seen.wrapping_add(set.next_byte(x).unwrap_or(1));
                seen = seen.wrapping_add(element.map_next(x).unwrap_or(1));
                seen = seen.wrapping_add(element.map_previous(x).unwrap_or(1));
                let k = set.rank(x);
                seen = seen.wrapping_add(set.select(k).unwrap_or(1));
                seen = seen.wrapping_add(element.select(k).unwrap_or(1));
                seen += u64::from(set.is_contiguous(x..x + 2));
            }
        });
        assert_eq!(count, 0, "{} members, {} levels", set.len(), set.depth());
        assert_ne!(seen, 0);
    }
}

#[test]
fn seed000_s05_rank_and_select_descend() {
    // 200 000 questions to a million members: walking the members would take 10^11 steps.
    let set = list();
    for k in (0..set.size()).step_by(7) {
        let x = set.select(k).unwrap();
        assert_eq!((set.rank(x), set.contains(x)), (k, true));
    }
}

#[test]
fn cursors_allocate_by_depth_only() {
    let element: FallsSet = "{(0,3,8,1000000000,{(0,0,2,2)})}".parse().unwrap();
    let info = measure(|| {
        let mut far = element.segments(4_000_000_000..MAX_OFFSET);
        let start = far.nth(1_000_000).map(|s| s.start());
        assert_eq!(start, Some(4_000_000_000 + 8 * 500_000));
    });
    assert!(info.bytes_total < 4096, "{} bytes", info.bytes_total);
}

/// Chinese remainder: the first byte at or after both displacements with `x = a mod s = b mod t`.
fn first_common_naive(a: u64, s: u64, b: u64, t: u64) -> u128 {
    // s * u = b - a (mod t), by the extended algorithm of Euclid.
    let (mut r, mut q) = ((s as i128, 1i128), (t as i128, 0i128));
    while q.0 != 0 {
        let n = r.0 / q.0;
        (r, q) = (q, (r.0 - n * q.0, r.1 - n * q.1));
    }
    assert_eq!(r.0, 1, "co-prime");
    let u = ((b as i128 - a as i128) * r.1).rem_euclid(t as i128);
    a as u128 + s as u128 * u as u128
}

/// The periods of the issue: their product has 62 bits.
const PERIODS: (u64, u64) = ((1 << 31) - 1, (1 << 31) + 11);

fn meet(left: &str, right: &str) -> (Meeting, AllocationInfo) {
    let a = Periodic::new(5, PERIODS.0, left.parse().unwrap()).unwrap();
    let b = Periodic::new(77, PERIODS.1, right.parse().unwrap()).unwrap();
    let mut meeting = None;
    let info = measure(|| meeting = Some(Meeting::new(&a, &b)));
    (meeting.unwrap(), info)
}

#[test]
fn seed000_s11_coprime_periods_meet_at_once_in_constant_memory() {
    for (left, right) in [
        ("{(0,0)}", "{(0,0)}"),
        ("{(0,1000)}", "{(17,4096)}"),
        ("{(0,3,16,1000)}", "{(0,7,24,77)}"),
        (
            "{(0,7),(1073741824,1073741831)}",
            "{(3,4),(2000000000,2000000003)}",
        ),
        ("{(0,1000000000)}", "{(0,1500000000)}"),
        (
            "{(0,3,8,250000000,{(0,0,2,2)})}",
            "{(0,99,1000,2000000,{(1,2,5,10)})}",
        ),
        (
            "{(100,163,128,10000000,{(3,3,7,9)}),(2000000000,2147483000)}",
            "{(0,0,3,715827885)}",
        ),
    ] {
        let (meeting, made) = meet(left, right);
        assert!(!meeting.is_symbolic(), "{left} and {right}");
        assert!(
            made.bytes_max < 256 << 10,
            "{} bytes to meet",
            made.bytes_max
        );
        let mut found = Vec::with_capacity(200);
        let info = measure(|| found.extend(meeting.runs(0..MAX_OFFSET).take(200)));
        assert!(
            info.bytes_max < 16 << 10,
            "{} bytes at once",
            info.bytes_max
        );
        assert!(!found.is_empty(), "{left} and {right}");
        for pair in found.windows(2) {
            assert!(pair[0].file + pair[0].len <= pair[1].file, "{pair:?}");
        }
        for run in &found {
            for x in [run.file, run.file + run.len - 1] {
                let delta = x - run.file;
                assert_eq!(meeting.left().map(x), Some(run.left + delta), "{run:?}");
                assert_eq!(meeting.right().map(x), Some(run.right + delta), "{run:?}");
            }
            let behind = run.file + run.len;
            assert!(!(meeting.left().contains(behind) && meeting.right().contains(behind)));
        }
    }
}

#[test]
fn seed000_s11_the_first_common_byte_of_sparse_patterns_is_the_first() {
    // Bytes at 5 + 0, 5 + 10^9 and 77 + 9, 77 + 2 * 10^9: four congruences.
    let (meeting, _) = meet(
        "{(0,0),(1000000000,1000000000)}",
        "{(9,9),(2000000000,2000000000)}",
    );
    let first = [5, 1_000_000_005]
        .into_iter()
        .flat_map(|a| [86, 2_000_000_077].map(|b| first_common_naive(a, PERIODS.0, b, PERIODS.1)))
        .min();
    let run = meeting.runs(0..MAX_OFFSET).next().unwrap();
    assert_eq!((Some(u128::from(run.file)), run.len), (first, 1));
    assert_eq!(meeting.next_byte(0), Some(run.file));
    assert_eq!(meeting.count(0..run.file), 0);
}

#[test]
fn patterns_that_never_meet_are_known_at_once() {
    // Periods 2 * 10^9 and 2 * (10^9 + 7) with bytes of different parity.
    let even = Periodic::new(0, 2_000_000_000, "{(0,0),(1000,1000)}".parse().unwrap()).unwrap();
    let odd = Periodic::new(0, 2_000_000_014, "{(1,1),(777,777)}".parse().unwrap()).unwrap();
    let meeting = Meeting::new(&even, &odd);
    assert!(meeting.is_empty());
    assert_eq!(meeting.runs(0..MAX_OFFSET).next(), None);
}
