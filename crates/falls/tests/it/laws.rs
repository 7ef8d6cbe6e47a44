//! Laws of single operations as properties, judged by the naive oracle over explicit bytes.
//!
//! Sets here, elements and meetings in `laws_of_meetings.rs`. The numbered invariants of the
//! specification stand in `invariants.rs`.

use crate::trees::{
    Parts, Tree, both_naive, check, element, runs_naive, runs_of, tree, well_formed,
};
use falls::bytes_naive::{bytes_naive, element_bytes_naive};
use falls::{
    Falls, FallsSet, Flaw, Overlay, Periodic, Segment, compress_offsets, compress_segments,
};
use proptest::prelude::*;

#[test]
fn rank_select_and_membership_count_bytes() {
    check(1200, tree(), |Tree(set)| {
        let bytes = bytes_naive(&set);
        well_formed(&set)?;
        for x in 0..set.end() + 3 {
            let below = bytes.partition_point(|&b| b < x);
            let inside = bytes.get(below) == Some(&x);
            prop_assert_eq!(set.rank(x), below as u64, "rank of {}", x);
            prop_assert_eq!(set.contains(x), inside, "membership of {}", x);
            prop_assert_eq!(set.map(x), inside.then_some(below as u64));
            prop_assert_eq!(set.next_byte(x), bytes.get(below).copied(), "next of {}", x);
        }
        for k in 0..bytes.len() + 2 {
            prop_assert_eq!(set.select(k as u64), bytes.get(k).copied());
        }
        let hull = bytes.first().zip(bytes.last()).map(|(&a, &b)| a..b + 1);
        prop_assert_eq!(set.hull(), hull);
        Ok(())
    });
}

#[test]
fn elements_map_next_and_previous() {
    check(900, element(), |e| {
        let e = e.0;
        let limit = e.displacement() + 2 * e.period() + 5;
        let bytes = element_bytes_naive(&e, limit);
        for x in 0..limit {
            let below = bytes.partition_point(|&b| b < x) as u64;
            let inside = bytes.get(below as usize) == Some(&x);
            prop_assert_eq!(e.rank(x), below);
            prop_assert_eq!(e.contains(x), inside);
            prop_assert_eq!(e.map(x), inside.then_some(below));
            prop_assert_eq!(e.map_next(x), (!e.is_empty()).then_some(below));
            let upto = below + u64::from(inside);
            prop_assert_eq!(e.map_previous(x), upto.checked_sub(1));
        }
        for (k, &x) in bytes.iter().enumerate() {
            prop_assert_eq!(e.select(k as u64), Some(x));
        }
        prop_assert_eq!(e.select(0).is_none(), e.is_empty());
        Ok(())
    });
}

#[test]
fn segments_of_any_range_are_maximal_and_complete() {
    let range = (0..300u64, 0..300u64);
    check(1800, (tree(), range.clone()), |(Tree(set), (lo, len))| {
        let bytes = bytes_naive(&set);
        prop_assert_eq!(runs_of(set.segments(0..u64::MAX)), runs_naive(&bytes));
        for range in [lo..lo + len, lo..lo, lo..set.end(), 0..lo] {
            let inside: Vec<u64> = bytes
                .iter()
                .copied()
                .filter(|x| range.contains(x))
                .collect();
            prop_assert_eq!(runs_of(set.segments(range.clone())), runs_naive(&inside));
            let whole = inside.len() as u64 == range.end.saturating_sub(range.start);
            prop_assert_eq!(set.is_contiguous(range), whole);
        }
        Ok(())
    });
    check(1200, (element(), range), |(e, (lo, len))| {
        let bytes = element_bytes_naive(&e.0, lo + len);
        let inside: Vec<u64> = bytes.into_iter().filter(|&x| x >= lo).collect();
        prop_assert_eq!(runs_of(e.0.segments(lo..lo + len)), runs_naive(&inside));
        let window = e.0.window(lo..lo + len);
        well_formed(&window)?;
        prop_assert_eq!(bytes_naive(&window), inside.clone());
        prop_assert_eq!(e.0.is_contiguous(lo..lo + len), inside.len() as u64 == len);
        Ok(())
    });
}

#[test]
fn cuts_hold_the_bytes_of_their_range() {
    check(
        1800,
        (tree(), 0..200u64, 0..200u64),
        |(Tree(set), a, len)| {
            let cut = set.cut(a..a + len);
            well_formed(&cut)?;
            let inside = bytes_naive(&set)
                .into_iter()
                .filter(|x| (a..a + len).contains(x));
            prop_assert_eq!(bytes_naive(&cut), inside.map(|x| x - a).collect::<Vec<_>>());
            Ok(())
        },
    );
}

#[test]
fn intersections_hold_what_both_hold() {
    check(
        4500,
        (tree(), tree(), 0..20u64),
        |(Tree(a), Tree(b), by)| {
            let b = b.shift(by).unwrap();
            let common = a.intersect(&b);
            well_formed(&common)?;
            let expected = both_naive(&bytes_naive(&a), &bytes_naive(&b));
            prop_assert_eq!(bytes_naive(&common), expected.clone());
            prop_assert_eq!(bytes_naive(&b.intersect(&a)), expected);
            Ok(())
        },
    );
}

#[test]
fn same_bytes_sees_through_trees() {
    check(1500, (tree(), tree()), |(Tree(a), Tree(b))| {
        let (x, y) = (bytes_naive(&a), bytes_naive(&b));
        prop_assert_eq!(a.same_bytes(&b), x == y);
        let flat: Vec<Segment> = a.segments(0..u64::MAX).collect();
        prop_assert!(a.same_bytes(&FallsSet::from_segments(&flat).unwrap()));
        prop_assert!(a.simplify().same_bytes(&a));
        if let Some((&last, rest)) = x.split_last() {
            let other: Vec<u64> = rest.iter().copied().chain([last + 1]).collect();
            prop_assert!(!a.same_bytes(&compress_offsets(&other).unwrap()));
        }
        Ok(())
    });
}

#[test]
fn complement_is_the_rest() {
    check(1800, (tree(), 0..9u64), |(Tree(set), room)| {
        let period = set.end() + room;
        let rest = set.complement(period).unwrap();
        well_formed(&rest)?;
        let bytes = bytes_naive(&set);
        let expected = (0..period).filter(|x| bytes.binary_search(x).is_err());
        prop_assert_eq!(bytes_naive(&rest), expected.collect::<Vec<_>>());
        if let Some(short) = set.end().checked_sub(1) {
            prop_assert!(set.complement(short).is_err());
        }
        Ok(())
    });
}

#[test]
fn simplify_keeps_bytes_and_order_and_adds_no_node() {
    check(3000, tree(), |Tree(set)| {
        let simple = set.simplify();
        well_formed(&simple)?;
        prop_assert_eq!(bytes_naive(&simple), bytes_naive(&set));
        prop_assert!(
            simple.node_count() <= set.node_count(),
            "{} nodes grew",
            simple
        );
        let again = simple.simplify();
        prop_assert!(again.node_count() <= simple.node_count());
        Ok(())
    });
}

#[test]
fn union_takes_members_in_any_order() {
    let sets = prop::collection::vec((tree(), 0..40u64), 0..4);
    check(2400, sets, |sets| {
        let moved: Vec<FallsSet> = sets.iter().map(|(t, by)| t.0.shift(*by).unwrap()).collect();
        let mut bytes: Vec<u64> = moved.iter().flat_map(bytes_naive).collect();
        let written = bytes.len();
        bytes.sort_unstable();
        bytes.dedup();
        for order in [moved.clone(), moved.into_iter().rev().collect()] {
            let (union, twice) = FallsSet::union(&order).unwrap();
            well_formed(&union)?;
            prop_assert_eq!(bytes_naive(&union), bytes.clone());
            prop_assert_eq!(twice, bytes.len() < written);
        }
        Ok(())
    });
}

#[test]
fn normalise_orders_interleaved_families() {
    let family = (0..12u64, 1..4u64, 0..8u64, 1..9u64);
    check(4500, prop::collection::vec(family, 1..5), |families| {
        let members: Vec<Falls> = families
            .iter()
            .map(|&(start, len, hole, count)| Falls::family(start, len, len + hole, count).unwrap())
            .collect();
        let one = |f: &Falls| bytes_naive(&FallsSet::new(vec![f.clone()]).unwrap());
        let mut bytes: Vec<u64> = members.iter().flat_map(one).collect();
        let written = bytes.len();
        bytes.sort_unstable();
        bytes.dedup();
        let (set, twice) = FallsSet::normalise(members).unwrap();
        well_formed(&set)?;
        prop_assert_eq!(bytes_naive(&set), bytes.clone());
        prop_assert_eq!(twice, bytes.len() < written);
        Ok(())
    });
}

#[test]
fn overlay_of_parts_knows_every_owner() {
    check(
        1200,
        (crate::trees::parts(), 0..40u64, 0..40u64),
        |(parts, lo, len)| {
            let Parts { period, .. } = parts;
            let sets = parts.sets();
            let overlay = Overlay::new(&sets).unwrap();
            let owner = |x: u64| sets.iter().position(|s| s.contains(x));
            for x in 0..period + 3 {
                prop_assert_eq!(overlay.owner(x), owner(x), "byte {}", x);
            }
            prop_assert_eq!(overlay.first_gap(period), None);
            prop_assert_eq!(overlay.first_gap(period + 1), Some(period));
            for range in [lo..lo + len, 0..period, lo..lo] {
                let mut expected: Vec<usize> = range.clone().filter_map(owner).collect();
                expected.sort_unstable();
                expected.dedup();
                prop_assert_eq!(overlay.owners(range), expected);
            }
            // Without one of its sets there is a gap, at that set's first byte.
            for left_out in 0..sets.len() {
                let mut fewer = sets.clone();
                let gone = std::mem::take(&mut fewer[left_out]);
                let gap = Overlay::new(&fewer).unwrap().first_gap(period);
                prop_assert_eq!(gap, gone.select(0));
            }
            Ok(())
        },
    );
}

#[test]
fn overlay_of_any_sets_finds_the_first_shared_byte() {
    let sets = prop::collection::vec((crate::trees::tree_to(3), 0..30u64), 0..5);
    check(4500, sets, |sets| {
        let sets: Vec<FallsSet> = sets.iter().map(|(t, by)| t.0.shift(*by).unwrap()).collect();
        let end = sets.iter().map(FallsSet::end).max().unwrap_or(0);
        let owners = |x: u64| {
            let all = 0..sets.len();
            all.filter(|&i| sets[i].contains(x)).collect::<Vec<_>>()
        };
        let shared = (0..end).find(|&x| owners(x).len() > 1);
        match Overlay::new(&sets) {
            Ok(overlay) => {
                prop_assert_eq!(shared, None);
                for x in 0..end + 2 {
                    prop_assert_eq!(overlay.owner(x), owners(x).first().copied());
                }
                let gap = (0..end + 2).find(|&x| owners(x).is_empty());
                prop_assert_eq!(overlay.first_gap(end + 2), gap);
                for lo in (0..end).step_by(5) {
                    for hi in (lo..end + 5).step_by(7) {
                        let mut expected: Vec<usize> = (lo..hi).flat_map(&owners).collect();
                        expected.sort_unstable();
                        expected.dedup();
                        prop_assert_eq!(overlay.owners(lo..hi), expected, "{}..{}", lo, hi);
                    }
                }
            }
            Err(Flaw::Overlap {
                first,
                second,
                byte,
            }) => {
                prop_assert_eq!(Some(byte), shared, "first shared byte");
                prop_assert!(first < second);
                let both = owners(byte);
                prop_assert!(both.contains(&first) && both.contains(&second));
            }
            Err(flaw) => prop_assert!(false, "{:?}", flaw),
        }
        Ok(())
    });
}

#[test]
fn compression_keeps_bytes_and_does_not_grow() {
    check(1500, tree(), |Tree(set)| {
        let bytes = bytes_naive(&set);
        let segments: Vec<Segment> = set.segments(0..u64::MAX).collect();
        for compressed in [
            compress_offsets(&bytes).unwrap(),
            compress_segments(&segments).unwrap(),
        ] {
            well_formed(&compressed)?;
            prop_assert_eq!(bytes_naive(&compressed), bytes.clone());
            prop_assert!(compressed.node_count() <= segments.len().max(1) as u64);
        }
        Ok(())
    });
    let irregular = prop::collection::vec(1..40u64, 0..200);
    check(600, irregular, |gaps| {
        let offsets: Vec<u64> = gaps
            .iter()
            .scan(0, |at, gap| {
                *at += gap;
                Some(*at)
            })
            .collect();
        let set = compress_offsets(&offsets).unwrap();
        well_formed(&set)?;
        prop_assert_eq!(bytes_naive(&set), offsets);
        Ok(())
    });
}

#[test]
fn pieces_have_their_size_and_make_the_whole() {
    check(1500, (tree(), 0..40u64), |(Tree(set), bytes)| {
        let pieces: Vec<FallsSet> = set.split_by_size(bytes).collect();
        let mut all = Vec::new();
        for (i, piece) in pieces.iter().enumerate() {
            well_formed(piece)?;
            let wanted = bytes.max(1);
            let last = i + 1 == pieces.len();
            prop_assert!(piece.size() == wanted || (last && piece.size() < wanted));
            prop_assert!(!piece.is_empty());
            all.extend(bytes_naive(piece));
        }
        prop_assert_eq!(all, bytes_naive(&set));
        Ok(())
    });
}

#[test]
fn repetition_and_shift_move_bytes() {
    check(
        1500,
        (tree(), 0..5u64, 0..9u64, 0..50u64),
        |(Tree(set), count, room, by)| {
            let bytes = bytes_naive(&set);
            let moved = set.shift(by).unwrap();
            well_formed(&moved)?;
            prop_assert_eq!(
                bytes_naive(&moved),
                bytes.iter().map(|x| x + by).collect::<Vec<_>>()
            );
            let hull = set.hull().map_or(0, |h| h.end - h.start);
            let step = hull + room;
            let repeated = set.repeat(count, step).unwrap();
            well_formed(&repeated)?;
            let copies = (0..count).flat_map(|k| bytes.iter().map(move |x| x + k * step));
            prop_assert_eq!(bytes_naive(&repeated), copies.collect::<Vec<_>>());
            if hull > 1 && count > 1 {
                prop_assert!(set.repeat(count, hull - 1).is_err());
            }
            Ok(())
        },
    );
}

#[test]
fn concatenation_puts_sets_behind_each_other() {
    check(
        1200,
        (tree(), tree(), 0..9u64),
        |(Tree(a), Tree(b), room)| {
            let b = b.shift(a.end() + room).unwrap();
            let both = FallsSet::concat(&[a.clone(), b.clone()]).unwrap();
            well_formed(&both)?;
            prop_assert_eq!(
                bytes_naive(&both),
                [bytes_naive(&a), bytes_naive(&b)].concat()
            );
            if !a.is_empty() && !b.is_empty() {
                prop_assert!(FallsSet::concat(&[b, a]).is_err());
            }
            Ok(())
        },
    );
}

#[test]
fn alignment_rotates() {
    check(1500, (element(), 0..200u64), |(e, by)| {
        let e = e.0;
        let from = e.displacement() + by;
        let aligned = e.align(from).unwrap();
        well_formed(aligned.set())?;
        prop_assert_eq!(aligned.displacement(), from);
        let limit = from + 2 * e.period();
        let expected = element_bytes_naive(&e, limit)
            .into_iter()
            .filter(|&x| x >= from);
        prop_assert_eq!(
            element_bytes_naive(&aligned, limit),
            expected.collect::<Vec<_>>()
        );
        if let Some(before) = e.displacement().checked_sub(1) {
            prop_assert!(e.align(before).is_none());
        }
        Ok(())
    });
}

#[test]
fn notation_comes_back_as_it_went() {
    check(1500, tree(), |Tree(set)| {
        let text = set.to_string();
        let read: FallsSet = text.parse().unwrap();
        prop_assert_eq!(&read, &set);
        prop_assert_eq!(read.to_string(), text);
        Ok(())
    });
}

#[test]
fn long_lists_of_segments_behave_like_trees() {
    // Above a certain length sets are kept as compact lists: every operation again on such ones.
    let gaps = prop::collection::vec((1..6u64, 1..4u64), 40..90);
    check(600, (gaps, tree(), 0..200u64), |(gaps, Tree(other), a)| {
        let mut at = 0;
        let mut segments = Vec::new();
        for (gap, len) in gaps {
            segments.push(Segment::new(at + gap - 1, len).unwrap());
            at += gap - 1 + len;
        }
        let set = FallsSet::from_segments(&segments).unwrap();
        prop_assert!(set.is_segment_list());
        well_formed(&set)?;
        let bytes = bytes_naive(&set);
        for x in 0..set.end() + 2 {
            let below = bytes.partition_point(|&b| b < x);
            prop_assert_eq!(set.rank(x), below as u64);
            prop_assert_eq!(set.contains(x), bytes.get(below) == Some(&x));
        }
        prop_assert_eq!(bytes_naive(&set.simplify()), bytes.clone());
        let cut = bytes_naive(&set.cut(a..a + 50));
        let inside = bytes
            .iter()
            .filter(|x| (a..a + 50).contains(x))
            .map(|x| x - a);
        prop_assert_eq!(cut, inside.collect::<Vec<_>>());
        let rest = set.complement(set.end() + 3).unwrap();
        let expected = (0..set.end() + 3).filter(|x| bytes.binary_search(x).is_err());
        prop_assert_eq!(bytes_naive(&rest), expected.collect::<Vec<_>>());
        let common = both_naive(&bytes, &bytes_naive(&other));
        prop_assert_eq!(bytes_naive(&set.intersect(&other)), common.clone());
        prop_assert_eq!(bytes_naive(&other.intersect(&set)), common);
        let element = Periodic::new(0, set.end(), set.clone()).unwrap();
        let turned = element.align(a).unwrap();
        well_formed(turned.set())?;
        let expected = element_bytes_naive(&element, a + 300)
            .into_iter()
            .filter(|&x| x >= a);
        prop_assert_eq!(
            element_bytes_naive(&turned, a + 300),
            expected.collect::<Vec<_>>()
        );
        Ok(())
    });
}
