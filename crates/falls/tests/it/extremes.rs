//! The ends of the range: offsets next to 2^63, a billion blocks, deep trees, many elements, and
//! arguments that no set can reach. Nothing panics, nothing wraps, nothing takes time in proportion
//! to what is described.
//!
//! Overflow checks are on in the test profile. Where something would take time in proportion to
//! the pieces, these tests do not end.

use falls::bytes_naive::bytes_naive;
use falls::{
    Budget, Falls, FallsSet, Flaw, MAX_OFFSET, Meeting, Overlay, Periodic, Pitfalls, Reason,
    Segment, compress_offsets, compress_segments,
};

const BILLION: u64 = 1_000_000_000;

fn set(text: &str) -> FallsSet {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn family(start: u64, len: u64, stride: u64, count: u64) -> FallsSet {
    FallsSet::new(vec![Falls::family(start, len, stride, count).unwrap()]).unwrap()
}

#[test]
fn rank_and_select_at_the_end_of_the_line() {
    let top = family(MAX_OFFSET - 10, 1, 3, 4);
    assert_eq!(top.end(), MAX_OFFSET);
    assert_eq!(top.select(3), Some(MAX_OFFSET - 1));
    let wide = family(1, 1, (MAX_OFFSET - 2) / 2, 3);
    for s in [&top, &wide] {
        for k in 0..s.size() {
            let x = s.select(k).unwrap();
            assert_eq!((s.rank(x), s.rank(x + 1), s.map(x)), (k, k + 1, Some(k)));
        }
        for x in [MAX_OFFSET, MAX_OFFSET + 1, u64::MAX - 1, u64::MAX] {
            assert_eq!(s.rank(x), s.size());
            assert!(!s.contains(x) && s.next_byte(x).is_none());
            assert!(s.segments(x..u64::MAX).next().is_none());
            assert!(s.cut(x..u64::MAX).is_empty());
        }
        assert_eq!(s.segments(0..u64::MAX).count() as u64, s.size());
        assert_eq!(
            s.complement(MAX_OFFSET).unwrap().size(),
            MAX_OFFSET - s.size()
        );
        assert_eq!(s.shift(1).is_ok(), s.end() < MAX_OFFSET);
        assert_eq!(s.shift(u64::MAX).unwrap_err().reason(), Reason::Overflow);
        assert_eq!(
            s.repeat(2, MAX_OFFSET).unwrap_err().reason(),
            Reason::Overflow
        );
        assert_eq!(
            s.complement(u64::MAX).unwrap_err().reason(),
            Reason::Overflow
        );
        let inside = s.intersect(&FallsSet::segment(0, MAX_OFFSET).unwrap());
        assert!(inside.same_bytes(s));
    }
    assert_eq!(bytes_naive(&top.cut(MAX_OFFSET - 8..u64::MAX)), [1, 4, 7]);
}

#[test]
fn constructors_refuse_what_does_not_fit() {
    let overflow = |result: Result<Falls, falls::FallsError>| {
        assert_eq!(result.unwrap_err().reason(), Reason::Overflow);
    };
    overflow(Falls::segment(MAX_OFFSET, 1));
    overflow(Falls::segment(u64::MAX, 1));
    overflow(Falls::segment(1, u64::MAX));
    overflow(Falls::family(0, 1, 2, u64::MAX));
    overflow(Falls::family(0, 1, u64::MAX, 2));
    overflow(Falls::family(0, u64::MAX, u64::MAX, u64::MAX));
    assert!(Falls::segment(0, MAX_OFFSET).is_ok());
    let one = FallsSet::segment(0, 1).unwrap();
    for (d, t) in [
        (MAX_OFFSET + 1, 5),
        (u64::MAX, 5),
        (0, u64::MAX),
        (0, MAX_OFFSET + 1),
    ] {
        let refused = Periodic::new(d, t, one.clone()).unwrap_err();
        assert_eq!(refused.reason(), Reason::Overflow, "{d} {t}");
    }
    assert!(Periodic::new(MAX_OFFSET, MAX_OFFSET, one).is_ok());
    assert_eq!(
        compress_offsets(&[MAX_OFFSET]).unwrap_err().reason(),
        Reason::Overflow
    );
    assert_eq!(
        compress_offsets(&[u64::MAX]).unwrap_err().reason(),
        Reason::Overflow
    );
    assert_eq!(compress_offsets(&[0, MAX_OFFSET - 1]).unwrap().size(), 2);
    assert_eq!(
        compress_offsets(&[5, 4]).unwrap_err().reason(),
        Reason::Order
    );
    assert_eq!(
        compress_offsets(&[5, 5]).unwrap_err().reason(),
        Reason::Overlap
    );
}

#[test]
fn elements_at_the_end_of_the_line() {
    for (d, t) in [
        (MAX_OFFSET - 40, 7),
        (MAX_OFFSET - 1, 1),
        (MAX_OFFSET, 1),
        (0, MAX_OFFSET),
        (MAX_OFFSET - 3, MAX_OFFSET),
        (5, MAX_OFFSET / 2),
        (3, MAX_OFFSET / 3),
    ] {
        let e = Periodic::new(d, t, FallsSet::segment(0, 1).unwrap()).unwrap();
        for x in [0, d, MAX_OFFSET - 1, MAX_OFFSET, u64::MAX] {
            let inside = x >= d && (x - d) % t == 0;
            assert_eq!(e.contains(x), inside, "{x} of {d} {t}");
            e.map_previous(x);
            if let Some(y) = e.next_byte(x) {
                assert!(y >= x && y < MAX_OFFSET && e.contains(y));
            }
        }
        for k in [0, 1, 2, 1 << 40, MAX_OFFSET, u64::MAX] {
            if let Some(x) = e.select(k) {
                assert_eq!((e.map(x), x < MAX_OFFSET), (Some(k), true));
            }
        }
        let window = e.window(MAX_OFFSET - 50..u64::MAX);
        let expected: Vec<u64> = (MAX_OFFSET - 50..MAX_OFFSET)
            .filter(|&x| e.contains(x))
            .collect();
        assert_eq!(bytes_naive(&window), expected, "{d} {t}");
        assert_eq!(
            e.segments(MAX_OFFSET - 50..u64::MAX)
                .map(|s| s.len())
                .sum::<u64>(),
            window.size()
        );
        assert!(e.window(u64::MAX..u64::MAX).is_empty());
        for from in [d, MAX_OFFSET - 1] {
            if let Some(turned) = e.align(from) {
                let end = from.saturating_add(100).min(MAX_OFFSET);
                assert_eq!(turned.window(from..end), e.window(from..end), "{d} {t}");
            }
        }
    }
}

#[test]
fn meetings_at_the_end_of_the_line() {
    let elements: Vec<Periodic> = [
        (MAX_OFFSET - 40, 7, "{(0,0),(2,3)}"),
        (MAX_OFFSET - 43, 5, "{(1,2)}"),
        (MAX_OFFSET - 1, 1, "{(0,0)}"),
        (MAX_OFFSET, 3, "{(0,1)}"),
        (0, 3, "{(1,1)}"),
        (1, MAX_OFFSET, "{(9223372036854775800,9223372036854775805)}"),
        (7, MAX_OFFSET / 2, "{(0,3)}"),
        (0, 1 << 62, "{(5,9)}"),
    ]
    .into_iter()
    .map(|(d, t, text)| Periodic::new(d, t, set(text)).unwrap())
    .collect();
    for a in &elements {
        for b in &elements {
            for budget in [Budget::DEFAULT, Budget(0)] {
                let meeting = Meeting::with_budget(a, b, budget);
                let top = MAX_OFFSET - 60..MAX_OFFSET;
                let expected: Vec<u64> = top
                    .clone()
                    .filter(|&x| a.contains(x) && b.contains(x))
                    .collect();
                let joint = meeting.joint(top.start..u64::MAX);
                assert_eq!(bytes_naive(&joint.file_set()), expected, "{a:?} {b:?}");
                let left: Vec<u64> = expected.iter().map(|&x| a.rank(x)).collect();
                assert_eq!(bytes_naive(&joint.left_set()), left);
                let right: Vec<u64> = expected.iter().map(|&x| b.rank(x)).collect();
                assert_eq!(bytes_naive(&joint.right_set()), right);
                assert_eq!(meeting.count(top.start..u64::MAX), expected.len() as u64);
                let next = meeting.next_byte(top.start);
                assert_eq!(next, expected.first().copied());
                assert_eq!(meeting.next_byte(u64::MAX), None);
                meeting.is_empty();
            }
        }
    }
}

#[test]
fn overlays_at_the_end_of_the_line() {
    let low = FallsSet::segment(0, MAX_OFFSET - 4).unwrap();
    let high = FallsSet::segment(MAX_OFFSET - 4, 4).unwrap();
    let overlay = Overlay::new(&[high.clone(), low.clone()]).unwrap();
    assert_eq!(overlay.first_gap(MAX_OFFSET), None);
    assert_eq!(overlay.owner(MAX_OFFSET - 1), Some(0));
    assert_eq!(overlay.owner(MAX_OFFSET - 5), Some(1));
    assert_eq!(
        (overlay.owner(MAX_OFFSET), overlay.owner(u64::MAX)),
        (None, None)
    );
    assert_eq!(overlay.owners(0..u64::MAX), [0, 1]);
    // All even bytes, all odd bytes.
    let half = MAX_OFFSET / 2;
    let (even, odd) = (family(0, 1, 2, half), family(1, 1, 2, half));
    let overlay = Overlay::new(&[even.clone(), odd.clone()]).unwrap();
    assert_eq!(overlay.owner(MAX_OFFSET - 3), Some(0));
    assert_eq!(overlay.first_gap(MAX_OFFSET - 1), None);
    assert_eq!(overlay.first_gap(MAX_OFFSET), Some(MAX_OFFSET - 1));
    assert_eq!(
        FallsSet::union(&[odd, even.clone()]).unwrap().0.size(),
        2 * half
    );
    let clash = Overlay::new(&[even, family(MAX_OFFSET - 3, 1, 1, 1)]).unwrap_err();
    let byte = MAX_OFFSET - 3;
    assert_eq!(
        clash,
        Flaw::Overlap {
            first: 0,
            second: 1,
            byte
        }
    );
}

#[test]
fn a_billion_blocks_are_a_few_numbers() {
    let a = set("{(0,15,64,1000000000,{(0,1,4,3)})}");
    let size = 6 * BILLION;
    assert_eq!(a.size(), size);
    assert_eq!(a.select(size - 1), Some(64 * (BILLION - 1) + 9));
    assert_eq!(a.rank(32 * BILLION), size / 2);
    let rest = a.complement(64 * BILLION).unwrap();
    assert_eq!(rest.size(), 58 * BILLION);
    assert!(rest.node_count() < 12, "{rest}");
    let overlay = Overlay::new(&[a.clone(), rest.clone()]).unwrap();
    assert!(overlay.node_count() < 30, "{} nodes", overlay.node_count());
    assert_eq!(overlay.first_gap(64 * BILLION), None);
    let (union, twice) = FallsSet::union(&[a.clone(), rest.clone()]).unwrap();
    assert_eq!(
        (union.to_string(), twice),
        ("{(0,63999999999,-,1)}".into(), false)
    );
    assert!(a.intersect(&rest).is_empty());
    assert!(a.same_bytes(&a.simplify()));
    let piece = a.split_by_size(BILLION).nth(3).unwrap();
    assert_eq!(
        (piece.size(), piece.select(0)),
        (BILLION, a.select(3 * BILLION))
    );
    let far = a.segments(63 * BILLION..u64::MAX).next().unwrap();
    assert_eq!(a.rank(far.start()) % 6, 0);
    let e = Periodic::new(7, 64 * BILLION + 1, a).unwrap();
    let turned = e.align(7 + 32 * BILLION).unwrap();
    assert_eq!(turned.size(), size);
    assert!(turned.set().node_count() < 20, "{}", turned.set());
    // Blocks that touch, with inner sets that cover them: one segment.
    let touching = set("{(0,3,4,1000000000,{(0,1),(2,3,-,1,{(0,0),(1,1)})})}");
    let one = touching.segments(5..u64::MAX).next().unwrap();
    assert_eq!((one.start(), one.end()), (5, 4 * BILLION));
}

#[test]
fn an_overlay_does_not_unroll_what_repeats() {
    // A set and its complement, whose last block is written apart: cutting there goes through
    // blocks, and their remains must not be cut again one period further, over and over.
    let counts = [8, 64, 4096, BILLION];
    let nodes = counts.map(|count| {
        let inner = set("{(0,1,2,2,{(1,1,-,1)})}");
        let falls = Falls::nested(645, 4, 1276, count, inner).unwrap();
        let one = FallsSet::new(vec![falls]).unwrap();
        let rest = one.complement(one.end()).unwrap();
        let overlay = Overlay::new(&[one.clone(), rest.clone()]).unwrap();
        assert_eq!(overlay.first_gap(one.end()), None);
        let (union, _) = FallsSet::union(&[one.clone(), rest]).unwrap();
        assert_eq!(union.size(), one.end());
        overlay.node_count()
    });
    assert_eq!(nodes, [nodes[0]; 4]);
}

#[test]
fn long_coprime_strides_end_in_an_answer() {
    // No common period inside the span: refused within the budget, never unrolled without end.
    let (a, b) = (
        family(0, 1, 1_000_003, BILLION),
        family(0, 1, 1_000_033, BILLION),
    );
    assert!(a.intersect_within(&b, Budget::DEFAULT).is_none());
    assert_eq!(Overlay::new(&[a.clone(), b.clone()]), Err(Flaw::TooComplex));
    let refused = FallsSet::union(&[a.clone(), b.clone()]).unwrap_err();
    assert_eq!(refused.reason(), Reason::Nodes);
    let element = |s: &FallsSet| Periodic::new(0, s.end(), s.clone()).unwrap();
    let meeting = Meeting::new(&element(&a), &element(&b));
    let first: Vec<u64> = meeting
        .runs(0..MAX_OFFSET)
        .take(3)
        .map(|r| r.file)
        .collect();
    assert_eq!(first, [0, 1_000_003 * 1_000_033, 2 * 1_000_003 * 1_000_033]);
}

/// `depth` levels, each two blocks with a hole of `hole` between them.
fn nest(depth: u32, hole: u64) -> FallsSet {
    (1..depth).fold(family(0, 1, 1 + hole, 2), |inner, _| {
        let len = inner.end();
        FallsSet::new(vec![Falls::nested(0, len, len + hole, 2, inner).unwrap()]).unwrap()
    })
}

#[test]
fn deep_trees_stay_small() {
    let deep = nest(60, 1);
    assert_eq!((deep.depth(), deep.size()), (60, 1 << 60));
    assert_eq!(deep.rank(deep.select(12345).unwrap()), 12345);
    assert!(deep.simplify().node_count() <= 60);
    let rest = deep.complement(deep.end()).unwrap();
    assert_eq!(rest.size(), deep.end() - deep.size());
    assert!(rest.node_count() < 20_000, "{} nodes", rest.node_count());
    let e = Periodic::new(0, deep.end() + 1, deep.clone()).unwrap();
    let meeting = Meeting::new(&e, &e);
    assert_eq!(meeting.size_per_period(), Some(1 << 60));
    assert!(e.align(12345).unwrap().set().node_count() < 5000);
    assert!(deep.cut(1000..deep.end() - 1000).node_count() < 10_000);
    // Gaps that are larger inside than outside: the complement may be refused, in bounded time.
    let mut tight = family(0, 1, 60, 2);
    for level in 2..55 {
        let len = tight.end();
        let hole = 60 - level;
        tight = FallsSet::new(vec![Falls::nested(0, len, len + hole, 2, tight).unwrap()]).unwrap();
    }
    match tight.complement(tight.end()) {
        Ok(rest) => assert_eq!(rest.size(), tight.end() - tight.size()),
        Err(error) => assert_eq!(error.reason(), Reason::Nodes),
    }
    let levels = (0..200).fold(Vec::new(), |inner, _| {
        vec![Pitfalls {
            start: 0,
            len: 8,
            stride: 8,
            count: 1,
            distance: 0,
            processors: 1,
            inner,
        }]
    });
    assert_eq!(Pitfalls::elements(&levels).unwrap(), 1);
    assert_eq!(
        Pitfalls::element(&levels, 0).unwrap_err().reason(),
        Reason::Depth
    );
}

#[test]
fn an_array_of_fifteen_dimensions_has_a_small_complement() {
    let mut slice = FallsSet::segment(0, 1).unwrap();
    let mut extent = 1;
    for dimension in 0..15 {
        slice = slice.repeat(2, extent).unwrap().shift(extent).unwrap();
        extent *= 4 + dimension % 3;
    }
    assert_eq!(slice.size(), 1 << 15);
    let rest = slice.complement(extent).unwrap();
    assert!(rest.node_count() <= 40, "{} nodes", rest.node_count());
    let overlay = Overlay::new(&[slice, rest]).unwrap();
    assert_eq!(overlay.first_gap(extent), None);
    assert!(
        overlay.node_count() <= 100,
        "{} nodes",
        overlay.node_count()
    );
}

#[test]
fn a_hundred_thousand_elements_have_owners() {
    let count = 100_000;
    // Dealt round robin, the last round cut short.
    let rounds = |i: u64| if i < count / 3 { 8 } else { 7 };
    let sets: Vec<FallsSet> = (0..count)
        .map(|i| family(4 * i, 4, 4 * count, rounds(i)))
        .collect();
    let overlay = Overlay::new(&sets).unwrap();
    let end = 4 * count * 7 + 4 * (count / 3);
    assert_eq!(overlay.first_gap(end), None);
    for x in (0..end).step_by(9973) {
        assert_eq!(overlay.owner(x), Some((x / 4 % count) as usize));
    }
    assert_eq!(overlay.owners(4 * 77..4 * 79 + 1), [77, 78, 79]);
    assert!(overlay.node_count() < 4 * count);
}

#[test]
fn a_million_offsets_compress_or_stay_a_list() {
    let regular: Vec<u64> = (0..1_000_000)
        .map(|i| i / 1000 * 5000 + i % 1000 * 3)
        .collect();
    let set = compress_offsets(&regular).unwrap();
    assert!(set.node_count() <= 4, "{set}");
    let mut at = 0;
    let irregular: Vec<Segment> = (0..300_000u64)
        .map(|i| {
            at += 2 + i.wrapping_mul(i).wrapping_mul(2_654_435_761) % 97;
            Segment::new(at - 1, 1).unwrap()
        })
        .collect();
    let set = compress_segments(&irregular).unwrap();
    assert_eq!(set.size(), 300_000);
    assert!(set.is_segment_list() && set.node_count() <= 300_000);
}
