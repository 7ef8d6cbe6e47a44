//! Numbered statements of source 000 that lie in this crate, each with the example that shows it.
//!
//! Statement 3 stands with the golden cases, statement 5 and the memory of 11 with the tests that
//! count allocations. Laws over random trees are in `invariants.rs` and `laws.rs`.

use crate::trees::{Element, Tree, check, element_to, meeting_naive, tree, well_formed};
use falls::bytes_naive::{bytes_naive, element_bytes_naive};
use falls::notation::Term;
use falls::{
    Budget, Falls, FallsSet, Limits, MAX_OFFSET, Meeting, Overlay, Periodic, Reason, Segment, lcm,
};
use proptest::prelude::*;

fn set(text: &str) -> FallsSet {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn element(displacement: u64, period: u64, text: &str) -> Periodic {
    Periodic::new(displacement, period, set(text)).unwrap()
}

fn segments(set: &FallsSet) -> Vec<(u64, u64)> {
    set.segments(0..u64::MAX)
        .map(|s| (s.start(), s.last()))
        .collect()
}

#[test]
fn seed000_s01_every_rule_has_its_reason() {
    let reason = |text: &str| text.parse::<FallsSet>().unwrap_err().reason();
    assert_eq!(reason("{(-1,3,8,2)}"), Reason::Range);
    assert_eq!(reason("{(3,2,8,2)}"), Reason::Length);
    assert_eq!(reason("{(0,3,8,0)}"), Reason::Count);
    assert_eq!(reason("{(0,3,2,2)}"), Reason::Overlap);
    assert_eq!(reason("{(0,3,8,2,{(0,4,-,1)})}"), Reason::Nesting);
    assert_eq!(reason("{(0,0,4,2),(1,1,4,2)}"), Reason::Order);
    assert_eq!(reason("{(4,5),(0,1)}"), Reason::Order);
    assert_eq!(reason("{(0,5),(5,6)}"), Reason::Overlap);
    assert_eq!(reason("{(0,0,4611686018427387904,3)}"), Reason::Overflow);
    assert_eq!(reason("{(0,3"), Reason::Syntax);
    let empty_inner = Falls::nested(0, 4, 4, 1, FallsSet::empty()).unwrap_err();
    assert_eq!(empty_inner.reason(), Reason::Nesting);
    assert_eq!(
        Segment::new(MAX_OFFSET, 1).unwrap_err().reason(),
        Reason::Overflow
    );
    assert_eq!(Segment::new(0, 0).unwrap_err().reason(), Reason::Length);
    for (period, reason) in [(0, Reason::Period), (3, Reason::Period)] {
        let refused = Periodic::new(0, period, set("{(0,3)}")).unwrap_err();
        assert_eq!(refused.reason(), reason);
    }
    // The largest offsets that are accepted: the last byte is 2^63 - 2.
    assert_eq!(set("{(0,0,4611686018427387903,3)}").end(), MAX_OFFSET);
}

#[test]
fn seed000_s01_errors_name_the_member() {
    let terms = falls::notation::parse_terms("{(0,1),(4,19,20,3,{(0,0),(3,2)})}").unwrap();
    let error = Term::to_set(&terms).unwrap_err();
    assert_eq!(
        (error.reason(), error.path()),
        (Reason::Length, &[1, 1][..])
    );
    assert!(error.to_string().starts_with("member 1.1: "), "{error}");
}

#[test]
fn seed000_s01_hostile_depth_and_nodes_are_refused() {
    // One level more than the limit, and text that nests without end.
    let nest = |inner: FallsSet| FallsSet::new(vec![Falls::nested(0, 2, 2, 1, inner).unwrap()]);
    let mut deep = set("{(0,1)}");
    for _ in 1..Limits::DEFAULT.depth {
        deep = nest(deep).unwrap();
    }
    assert_eq!(deep.depth(), Limits::DEFAULT.depth);
    assert_eq!(nest(deep).unwrap_err().reason(), Reason::Depth);
    let text = "{(0,1,2,1,".repeat(200_000);
    assert_eq!(
        text.parse::<FallsSet>().unwrap_err().reason(),
        Reason::Depth
    );

    // Shared inner sets: a few dozen allocations that stand for 2^40 nodes.
    let mut wide = set("{(0,0)}");
    let refused = (0..40).find_map(|_| {
        let len = wide.end();
        let twice = [0, len].map(|at| Falls::nested(at, len, len, 1, wide.clone()).unwrap());
        match FallsSet::new(twice.to_vec()) {
            Ok(set) => {
                wide = set;
                None
            }
            Err(error) => Some(error),
        }
    });
    assert_eq!(refused.map(|e| e.reason()), Some(Reason::Nodes));
    let few = Limits { depth: 2, nodes: 3 };
    let members = |n: u64| (0..n).map(|i| Falls::segment(2 * i, 1).unwrap()).collect();
    assert!(FallsSet::with_limits(members(3), few).is_ok());
    let refused = FallsSet::with_limits(members(4), few).unwrap_err();
    assert_eq!(refused.reason(), Reason::Nodes);
}

#[test]
fn seed000_s02_stride_of_one_block_has_no_influence() {
    let plain = Falls::family(5, 3, 3, 1).unwrap();
    for stride in [0, 1, 3, 7, u64::MAX] {
        let falls = Falls::family(5, 3, stride, 1).unwrap();
        assert_eq!(falls, plain);
        let inner = set("{(0,0,2,2)}");
        let nested = Falls::nested(5, 3, stride, 1, inner.clone()).unwrap();
        assert_eq!(nested, Falls::nested(5, 3, 3, 1, inner).unwrap());
        let one = FallsSet::new(vec![falls]).unwrap();
        assert_eq!((one.rank(6), one.select(2), one.end()), (1, Some(7), 8));
    }
    for text in ["{(5,7,0,1)}", "{(5,7,-,1)}", "{(5,7,-3,1)}", "{(5,7)}"] {
        assert_eq!(set(text).to_string(), "{(5,7,-,1)}", "{text}");
    }
}

#[test]
fn seed000_s04_depth_and_displacements_are_covered() {
    // The properties in `invariants.rs` draw from these: the draws must reach what they claim.
    let seen = std::cell::Cell::new((0, false, false, false));
    check(500, crate::trees::element(), |Element(e)| {
        let (depth, before, room, empty) = seen.get();
        seen.set((
            depth.max(e.set().depth()),
            before || e.displacement() > e.period(),
            room || e.set().end() < e.period(),
            empty || e.is_empty(),
        ));
        Ok(())
    });
    assert_eq!(seen.get(), (4, true, true, true));
}

#[test]
fn seed000_s06_next_and_previous_for_every_offset() {
    // Gaps: before the displacement, before the first member, between blocks, inside blocks,
    // between members, at the end of the period.
    let e = element(7, 40, "{(3,8,10,2,{(1,1,3,2)}),(25,26)}");
    let bytes = element_bytes_naive(&e, 200);
    for x in 0..160 {
        let next = bytes.iter().position(|&b| b >= x).map(|k| k as u64);
        let previous = bytes.iter().rposition(|&b| b <= x).map(|k| k as u64);
        assert_eq!((e.map_next(x), e.map_previous(x)), (next, previous), "{x}");
    }
    for d in [0, 1 << 40, MAX_OFFSET - 100, MAX_OFFSET - 1] {
        let e = element(d, 7, "{(2,3)}");
        for x in [0, 1, d, d + 1, MAX_OFFSET / 2, MAX_OFFSET - 1] {
            let inside = x >= d && [2, 3].contains(&((x - d) % 7));
            assert_eq!(e.contains(x), inside, "{x} from {d}");
            let next = e.map_next(x).unwrap();
            let previous = e.map_previous(x).map_or(0, |k| k + 1);
            assert_eq!(next + u64::from(inside), previous, "{x} from {d}");
            if let Some(byte) = e.select(next) {
                assert!(byte >= x && e.rank(byte) == next);
            }
        }
    }
    let nothing = Periodic::new(3, 5, FallsSet::empty()).unwrap();
    assert_eq!((nothing.map_next(9), nothing.map_previous(9)), (None, None));
}

#[test]
fn seed000_s07_cuts_go_through_inner_patterns() {
    let deep = set("{(0,63,70,3,{(4,23,30,2,{(1,6,9,2,{(0,1,4,2)})})})}");
    assert_eq!(deep.depth(), 4);
    let bytes = bytes_naive(&deep);
    for a in 0..deep.end() {
        for b in (a..=deep.end()).step_by(7) {
            let cut = deep.cut(a..b);
            well_formed(&cut).unwrap();
            let inside = bytes.iter().filter(|x| (a..b).contains(x));
            let moved: Vec<u64> = inside.map(|x| x - a).collect();
            assert_eq!(bytes_naive(&cut), moved, "{a}..{b}");
        }
    }
    // An interval inside a block may hold nothing.
    assert!(deep.cut(64..70).is_empty() && deep.cut(0..5).is_empty());
    let paper = set("{(3,5,6,5)}").cut(4..29);
    assert_eq!(
        segments(&paper),
        [(0, 1), (5, 7), (11, 13), (17, 19), (23, 24)]
    );
}

#[test]
fn seed000_s08_elements_align_at_the_larger_displacement() {
    // Figure 6 of the paper, in both readings.
    for (a, b) in [
        (element(5, 3, "{(0,0)}"), element(3, 4, "{(0,1)}")),
        (element(5, 4, "{(0,1)}"), element(3, 3, "{(0,0)}")),
    ] {
        let meeting = Meeting::new(&a, &b);
        let file = meeting.file().unwrap();
        assert_eq!((file.displacement(), file.period()), (5, 12));
        let expected: Vec<u64> = meeting_naive(&a, &b, 60).iter().map(|t| t.0).collect();
        assert_eq!(element_bytes_naive(file, 60), expected);
    }
    // A displacement further by whole periods turns nothing.
    let (a, b) = (element(0, 6, "{(1,2)}"), element(18, 6, "{(2,4)}"));
    let runs: Vec<_> = Meeting::new(&a, &b)
        .runs(0..31)
        .map(|r| (r.file, r.left, r.right))
        .collect();
    assert_eq!(runs, [(20, 7, 0), (26, 9, 3)]);
}

#[test]
fn seed000_s09_empty_inner_intersections_invent_nothing() {
    // E-09: the blocks meet, their inner sets do not.
    let (even, odd) = (
        set("{(0,7,8,4,{(0,0,2,4)})}"),
        set("{(0,7,8,4,{(1,1,2,4)})}"),
    );
    assert!(even.intersect(&odd).is_empty());
    // Some of the blocks: only those stay.
    let some = set("{(0,7,8,2,{(1,1,2,4)}),(16,23,8,2,{(0,0,4,2)})}");
    assert_eq!(bytes_naive(&even.intersect(&some)), [16, 20, 24, 28]);
    // E-11: cutting a cut gives what one cut gives.
    check(
        500,
        (tree(), 0..80u64, 0..40u64, 0..120u64),
        |(Tree(t), a, b, len)| {
            let twice = t.cut(a..a + b + len).cut(b..b + len);
            prop_assert_eq!(bytes_naive(&twice), bytes_naive(&t.cut(a + b..a + b + len)));
            Ok(())
        },
    );
}

#[test]
fn seed000_s10_results_are_in_file_order() {
    // The worked example of E-12: the printed algorithm lists 0,1,16,17,4,5,20,21.
    let (v, s) = (
        element(0, 32, "{(0,7,16,2,{(0,1,4,2)})}"),
        element(0, 32, "{(0,1,4,8)}"),
    );
    let meeting = Meeting::new(&v, &s);
    let joint = meeting.joint(0..32);
    assert_eq!(bytes_naive(&joint.file_set()), [0, 1, 4, 5, 16, 17, 20, 21]);
    assert_eq!(bytes_naive(&joint.left_set()), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(bytes_naive(&joint.right_set()), [0, 1, 2, 3, 8, 9, 10, 11]);
    check(150, crate::trees::grid_pair(), |(from, to)| {
        for a in from.elements() {
            for b in to.elements() {
                let meeting = Meeting::new(&a, &b);
                let joint = meeting.joint(0..from.rows * from.columns);
                for set in [joint.file_set(), joint.left_set(), joint.right_set()] {
                    let bytes = bytes_naive(&set);
                    prop_assert!(bytes.windows(2).all(|w| w[0] < w[1]), "{}", set);
                }
            }
        }
        Ok(())
    });
}

#[test]
fn seed000_s11_overflowing_common_period_goes_by_window() {
    let (a, b) = (
        element(0, (1 << 40) + 1, "{(0,99)}"),
        element(0, (1 << 41) + 1, "{(0,9)}"),
    );
    assert_eq!(lcm(a.period(), b.period()), None);
    let meeting = Meeting::new(&a, &b);
    assert!(!meeting.is_symbolic() && !meeting.is_empty());
    let runs: Vec<_> = meeting.runs(0..1 << 46).map(|r| (r.file, r.len)).collect();
    // Block k of b drifts back by k against block 2k of a.
    let expected: Vec<_> = (0..10).map(|k| (2 * k * a.period(), 10 - k)).collect();
    assert_eq!(runs, expected);
    assert_eq!(meeting.count(0..1 << 46), 55);
    assert_eq!(meeting.joint(0..1 << 46).size(), 55);
    // A common period of 2^62 fits, one of 3 * 2^62 fits only without the sign.
    assert_eq!(lcm(1 << 62, 1 << 61), Some(1 << 62));
    assert_eq!(lcm(1 << 62, 3), None);
}

#[test]
fn seed000_s12_a_billion_blocks_take_no_longer_than_a_thousand() {
    let billion = 1_000_000_000u64;
    let pair = |n: u64| {
        let a = FallsSet::new(vec![Falls::family(0, 3, 7, n).unwrap()]).unwrap();
        let b = FallsSet::new(vec![Falls::family(2, 4, 11, n).unwrap()]).unwrap();
        a.intersect_within(&b, Budget(1000)).expect("a few steps")
    };
    let (small, large) = (pair(77_000), pair(77 * billion));
    assert_eq!(small.node_count(), large.node_count());
    assert!(large.node_count() <= 40, "{large}");
    // 12 bytes in every 77, over the span of the shorter side.
    assert!(small.size().abs_diff(84_000) <= 12, "{small}");
    assert!(large.size().abs_diff(84 * billion) <= 12, "{large}");
    let (a, b) = (element(0, 7, "{(0,2)}"), element(5, 11, "{(0,3)}"));
    let meeting = Meeting::new(&a, &b);
    assert_eq!(meeting.count(5..5 + 77 * billion), 12 * billion);
}

#[test]
fn seed000_s13_projections_have_base_and_period() {
    // The view begins 3 periods and a bit into the subfile's pattern.
    let (v, s) = (element(23, 10, "{(0,3)}"), element(2, 6, "{(1,2),(4,5)}"));
    let meeting = Meeting::new(&v, &s);
    let (file, on_view, on_subfile) = (
        meeting.file().unwrap(),
        meeting.on_left().unwrap(),
        meeting.on_right().unwrap(),
    );
    assert_eq!((file.displacement(), file.period()), (23, 30));
    assert_eq!((on_view.displacement(), on_view.period()), (0, 12));
    assert_eq!(
        (on_subfile.displacement(), on_subfile.period()),
        (s.rank(23), 20)
    );
    let far = 23 + 30 * 1_000_003;
    for (j, (x, l, r)) in meeting_naive(&v, &s, 23 + 90).into_iter().enumerate() {
        let j = j as u64;
        let found = [file, on_view, on_subfile].map(|side| side.select(j).unwrap());
        assert_eq!(found, [x, l, r]);
        // The same a million periods further.
        let j = j + 1_000_003 * file.size();
        let x = x + far - 23;
        let found = [file, on_view, on_subfile].map(|side| side.select(j).unwrap());
        assert_eq!(found, [x, v.rank(x), s.rank(x)]);
    }
}

#[test]
fn seed000_s14_positions_in_the_stream_coincide() {
    let (v, s) = (
        element(0, 32, "{(0,7,16,2,{(0,1,4,2)})}"),
        element(0, 32, "{(0,3,8,4,{(0,0,2,2)})}"),
    );
    let runs: Vec<_> = Meeting::new(&v, &s)
        .runs(0..64)
        .map(|r| (r.file, r.left, r.right, r.len))
        .collect();
    assert_eq!(
        runs,
        [(0, 0, 0, 1), (16, 4, 4, 1), (32, 8, 8, 1), (48, 12, 12, 1)]
    );
    check(
        300,
        (element_to(3), element_to(3)),
        |(Element(v), Element(s))| {
            let limit = v.displacement().max(s.displacement()) + 500;
            for budget in [Budget::DEFAULT, Budget(0)] {
                let joint = Meeting::with_budget(&v, &s, budget).joint(0..limit);
                let (file, left, right) = (joint.file_set(), joint.left_set(), joint.right_set());
                for j in 0..joint.size() {
                    let x = file.select(j).unwrap();
                    prop_assert_eq!(left.select(j), v.map(x));
                    prop_assert_eq!(right.select(j), s.map(x));
                }
            }
            Ok(())
        },
    );
}

#[test]
fn seed000_s15_selection_is_ascending_and_partial() {
    // Figure 8: m = 0, M = 4 of {(0,0,4,2)} selects bytes 0 and 4.
    let figure: Vec<_> = set("{(0,0,4,2)}")
        .segments(0..5)
        .map(|s| s.start())
        .collect();
    assert_eq!(figure, [0, 4]);
    let pattern = set("{(1,6,8,3,{(0,1),(4,5)})}");
    let source: Vec<u8> = (0..30).collect();
    for m in 0..26 {
        for end in m..27 {
            let mut gathered = Vec::new();
            let mut target = vec![0xffu8; 30];
            for s in pattern.segments(m..end) {
                let range = s.start() as usize..s.end() as usize;
                gathered.extend_from_slice(&source[range.clone()]);
                target[range.clone()].copy_from_slice(&source[range]);
            }
            let selected =
                |x: &u8| (m..end).contains(&u64::from(*x)) && pattern.contains((*x).into());
            let expected: Vec<u8> = source.iter().copied().filter(selected).collect();
            assert_eq!(gathered, expected, "{m}..{end}");
            for (x, byte) in target.into_iter().enumerate() {
                assert_eq!(
                    byte != 0xff,
                    expected.contains(&(x as u8)),
                    "{x} of {m}..{end}"
                );
            }
        }
    }
}

#[test]
fn seed000_s27_simplification_changes_nothing_but_nodes() {
    for (from, to) in [
        ("{(0,15,32,2,{(1,3),(4,6)})}", "{(1,6,32,2)}"),
        (
            "{(1,16,32,1,{(0,0,4,2),(8,9,4,2)})}",
            "{(1,1,4,2),(9,10,4,2)}",
        ),
        ("{(0,3,4,2)}", "{(0,7,-,1)}"),
        ("{(0,0),(5,5),(10,10)}", "{(0,0,5,3)}"),
        ("{(0,7,10,3,{(2,5)})}", "{(2,5,10,3)}"),
        ("{(0,7,10,3,{(0,3),(4,7)})}", "{(0,7,10,3)}"),
    ] {
        assert_eq!(set(from).simplify().to_string(), to, "{from}");
    }
    // E-07: several children with one block each are not promoted.
    let kept = set("{(0,15,32,2,{(0,3),(8,11)})}");
    assert_eq!(bytes_naive(&kept.simplify()), bytes_naive(&kept));
    check(600, tree(), |Tree(set)| {
        let simple = set.simplify();
        prop_assert_eq!(bytes_naive(&simple), bytes_naive(&set));
        prop_assert!(simple.node_count() <= set.node_count());
        let own = simple.intersect(&simple);
        prop_assert!(
            own.node_count() <= simple.node_count(),
            "{} of {}",
            own,
            simple
        );
        prop_assert!(set.intersect(&set).simplify().node_count() <= simple.node_count());
        Ok(())
    });
}

/// Row blocks, column blocks and square blocks of an n x n matrix of bytes on four processors.
fn matrix(n: u64, rows: u64, columns: u64) -> Vec<Periodic> {
    let (height, width) = (n / rows, n / columns);
    let mut out = Vec::new();
    for p in 0..rows {
        for q in 0..columns {
            let block = Falls::family(p * height * n + q * width, width, n, height).unwrap();
            let set = FallsSet::new(vec![block]).unwrap().simplify();
            out.push(Periodic::new(0, n * n, set).unwrap());
        }
    }
    out
}

#[test]
fn seed000_s28_meetings_do_not_grow_with_the_matrix() {
    for (rows, columns, pairs) in [(1, 4, 16), (2, 2, 8), (4, 1, 4)] {
        for n in [8, 256, 4096, 1 << 20, 1 << 30] {
            let (views, subfiles) = (matrix(n, 4, 1), matrix(n, rows, columns));
            let mut nodes = 0;
            let mut meet = 0;
            for v in &views {
                for s in &subfiles {
                    let meeting = Meeting::with_budget(v, s, Budget(100));
                    assert!(meeting.is_symbolic(), "{rows} x {columns}, n = {n}");
                    meet += u32::from(!meeting.is_empty());
                    nodes += meeting.node_count();
                }
            }
            assert_eq!((meet, nodes), (pairs, u64::from(pairs)), "n = {n}");
            let sets: Vec<FallsSet> = subfiles.iter().map(|s| s.set().clone()).collect();
            assert_eq!(Overlay::new(&sets).unwrap().first_gap(n * n), None);
        }
    }
}
