//! The invariants of source 000 that lie in this crate, each a property over random trees to depth
//! 4, random periods and random displacements, named by number.
//!
//! I-12 and I-16 move data through views and between partitions; they stand with the crate that
//! plans such moves. `docs/statements.md` lists all of them.

use crate::trees::{Element, Tree, check, element, element_to, parts, tree, well_formed};
use falls::bytes_naive::{bytes_naive, element_bytes_naive};
use falls::{Budget, FallsSet, Meeting, Overlay, Periodic};
use proptest::prelude::*;

#[test]
fn seed000_i01_maps_undo_each_other() {
    check(300, (element(), 0..5000u64), |(Element(e), k)| {
        for x in element_bytes_naive(&e, e.displacement() + 2 * e.period()) {
            let position = e.map(x);
            prop_assert_eq!(position.and_then(|k| e.select(k)), Some(x));
        }
        if !e.is_empty() {
            for k in [k, k + 1, k * k, 1 << 40] {
                let x = e.select(k).unwrap();
                prop_assert_eq!(e.map(x), Some(k));
            }
        }
        Ok(())
    });
}

#[test]
fn seed000_i02_maps_increase_and_rank_counts_members() {
    check(300, element(), |Element(e)| {
        let limit = e.displacement() + 2 * e.period() + 3;
        let mut last = None;
        for x in 0..limit {
            prop_assert_eq!(e.rank(x + 1) - e.rank(x), u64::from(e.contains(x)));
            if let Some(k) = e.map(x) {
                prop_assert!(last.is_none_or(|before| before < k));
                last = Some(k);
            }
        }
        let offsets: Vec<_> = (0..2 * e.size()).map_while(|k| e.select(k)).collect();
        prop_assert!(offsets.windows(2).all(|w| w[0] < w[1]));
        Ok(())
    });
}

#[test]
fn seed000_i03_next_and_previous_frame_every_offset() {
    check(300, element(), |Element(e)| {
        if e.is_empty() {
            prop_assert_eq!((e.map_next(0), e.map_previous(99)), (None, None));
            return Ok(());
        }
        for x in 0..e.displacement() + 2 * e.period() + 3 {
            let next = e.map_next(x).unwrap();
            match e.map_previous(x) {
                Some(previous) if e.contains(x) => prop_assert_eq!(previous, next),
                Some(previous) => prop_assert_eq!(previous + 1, next),
                None => prop_assert_eq!(next, 0, "nothing lies before {}", x),
            }
        }
        Ok(())
    });
}

#[test]
fn seed000_i04_rank_grows_by_size_per_period() {
    check(
        500,
        (element(), 0..1000u64, 1..50u64),
        |(Element(e), by, times)| {
            let x = e.displacement() + by;
            prop_assert_eq!(e.rank(x + e.period()), e.rank(x) + e.size());
            prop_assert_eq!(e.rank(x + times * e.period()), e.rank(x) + times * e.size());
            Ok(())
        },
    );
}

#[test]
fn seed000_i05_every_byte_of_a_partition_has_one_owner() {
    check(300, (parts(), 0..30u64), |(parts, displacement)| {
        let elements = parts.elements(displacement);
        let overlay = Overlay::new(&parts.sets()).unwrap();
        for x in 0..displacement + 2 * parts.period + 3 {
            let owners: Vec<usize> = (0..elements.len())
                .filter(|&i| elements[i].contains(x))
                .collect();
            prop_assert_eq!(owners.len(), usize::from(x >= displacement));
            if let Some(y) = x.checked_sub(displacement) {
                prop_assert_eq!(overlay.owner(y % parts.period), owners.first().copied());
            }
            let ranks: u64 = elements.iter().map(|e| e.rank(x)).sum();
            prop_assert_eq!(ranks, x.saturating_sub(displacement));
        }
        Ok(())
    });
}

#[test]
fn seed000_i06_cuts_split_without_loss() {
    let cuts = (0..150u64, 0..150u64, 0..150u64);
    check(500, (tree(), cuts), |(Tree(set), (a, b, c))| {
        let (a, b, c) = (a, a + b, a + b + c);
        let expected = bytes_naive(&set).into_iter().filter(|x| (a..b).contains(x));
        let cut = set.cut(a..b);
        prop_assert_eq!(
            bytes_naive(&cut),
            expected.map(|x| x - a).collect::<Vec<_>>()
        );
        prop_assert!(set.cut(0..set.end()).same_bytes(&set));
        prop_assert_eq!(cut.size() + set.cut(b..c).size(), set.cut(a..c).size());
        Ok(())
    });
}

#[test]
fn seed000_i07_intersection_is_an_algebra() {
    check(
        500,
        (tree(), tree(), tree()),
        |(Tree(a), Tree(b), Tree(c))| {
            let ab = a.intersect(&b);
            prop_assert_eq!(bytes_naive(&ab), bytes_naive(&b.intersect(&a)));
            let left = bytes_naive(&ab.intersect(&c));
            prop_assert_eq!(left, bytes_naive(&a.intersect(&b.intersect(&c))));
            prop_assert_eq!(bytes_naive(&a.intersect(&a)), bytes_naive(&a));
            if let Ok(whole) = FallsSet::segment(0, a.end()) {
                prop_assert_eq!(bytes_naive(&a.intersect(&whole)), bytes_naive(&a));
            }
            let rest = a.complement(a.end() + 5).unwrap();
            prop_assert!(a.intersect(&rest).is_empty());
            Ok(())
        },
    );
}

#[test]
fn seed000_i08_meetings_of_a_view_have_its_size() {
    check(
        300,
        (element_to(3), parts(), 0..20u64),
        |(Element(view), parts, at)| {
            let at = at.min(view.displacement());
            let mut total = 0;
            let mut period = 0;
            for element in parts.elements(at) {
                let meeting = Meeting::with_budget(&view, &element, Budget::UNBOUNDED);
                total += meeting.size_per_period().unwrap();
                period = meeting.file().unwrap().period();
            }
            prop_assert_eq!(total, view.size() * (period / view.period()));
            Ok(())
        },
    );
}

#[test]
fn seed000_i09_projections_have_the_size_of_the_intersection() {
    check(
        300,
        (element_to(3), parts(), 0..20u64),
        |(Element(view), parts, at)| {
            let at = at.min(view.displacement());
            let mut on_view = Vec::new();
            let mut period = 1;
            for element in parts.elements(at) {
                let meeting = Meeting::with_budget(&view, &element, Budget::UNBOUNDED);
                let sides = [meeting.on_left().unwrap(), meeting.on_right().unwrap()];
                for side in sides {
                    well_formed(side.set())?;
                    prop_assert_eq!(Some(side.size()), meeting.size_per_period());
                }
                on_view.push(sides[0].set().clone());
                period = sides[0].period();
                // An element projects onto itself as a whole.
                let own = Meeting::new(&element, &element);
                prop_assert!(element.is_empty() || own.on_left().unwrap().is_everything());
            }
            // What the elements have of the view is a partition of the view's own space.
            if !view.is_empty() {
                let overlay = Overlay::new(&on_view).unwrap();
                prop_assert_eq!(overlay.first_gap(period), None);
                prop_assert!(on_view.iter().all(|s| s.end() <= period));
            }
            Ok(())
        },
    );
}

#[test]
fn seed000_i10_stream_positions_coincide() {
    check(
        300,
        (element_to(3), element_to(3)),
        |(Element(v), Element(s))| {
            let meeting = Meeting::with_budget(&v, &s, Budget::UNBOUNDED);
            let (Some(file), Some(on_view), Some(on_subfile)) =
                (meeting.file(), meeting.on_left(), meeting.on_right())
            else {
                return Err(TestCaseError::fail("not symbolic without a bound"));
            };
            for j in 0..(3 * file.size()).min(400) {
                let x = file.select(j).unwrap();
                prop_assert_eq!(on_view.select(j), v.map(x), "byte {} on the view", j);
                prop_assert_eq!(on_subfile.select(j), s.map(x), "byte {} on the subfile", j);
            }
            Ok(())
        },
    );
}

#[test]
fn seed000_i11_scatter_undoes_gather() {
    check(
        500,
        (tree(), 0..200u64, 0..200u64),
        |(Tree(set), m, len)| {
            let range = m..m + len;
            let size = (set.end().max(range.end) + 1) as usize;
            let source: Vec<u32> = (0..size as u32).collect();
            let mut stream = Vec::new();
            for s in set.segments(range.clone()) {
                stream.extend_from_slice(&source[s.start() as usize..s.end() as usize]);
            }
            prop_assert_eq!(
                stream.len() as u64,
                set.rank(range.end) - set.rank(range.start)
            );
            let mut target = vec![u32::MAX; size];
            let mut rest = stream.as_slice();
            for s in set.segments(range.clone()) {
                let (now, later) = rest.split_at(s.len() as usize);
                target[s.start() as usize..s.end() as usize].copy_from_slice(now);
                rest = later;
            }
            for x in 0..size as u64 {
                let touched = range.contains(&x) && set.contains(x);
                let expected = if touched { x as u32 } else { u32::MAX };
                prop_assert_eq!(target[x as usize], expected, "byte {}", x);
            }
            Ok(())
        },
    );
}

#[test]
fn seed000_i13_every_result_is_well_formed() {
    check(
        300,
        (element(), element(), 1..40u64),
        |(Element(a), Element(b), bytes)| {
            let (x, y) = (a.set(), b.set());
            let period = x.end() + bytes;
            let mut results = vec![
                x.cut(bytes / 2..bytes * 2),
                x.intersect(y),
                x.complement(period).unwrap(),
                x.simplify(),
                x.shift(bytes).unwrap(),
                x.repeat(3, period).unwrap(),
                x.slice_by_rank(bytes / 3, bytes),
                FallsSet::union(&[x.clone(), y.clone()]).unwrap().0,
                falls::compress_offsets(&bytes_naive(x)).unwrap(),
                a.window(bytes..bytes * 9),
                a.align(a.displacement() + bytes).unwrap().set().clone(),
            ];
            results.extend(x.split_by_size(bytes));
            let joint = Meeting::new(&a, &b).joint(0..bytes * 5);
            results.extend([joint.left_set(), joint.right_set(), joint.file_set()]);
            for set in &results {
                well_formed(set)?;
                let simple = set.simplify();
                well_formed(&simple)?;
                prop_assert_eq!(bytes_naive(&simple), bytes_naive(set));
                prop_assert!(simple.node_count() <= set.node_count());
            }
            Ok(())
        },
    );
}

#[test]
fn seed000_i14_subfile_lengths_add_up() {
    check(
        300,
        (parts(), 0..30u64, 0..300u64),
        |(parts, displacement, length)| {
            let lengths: u64 = parts
                .elements(displacement)
                .iter()
                .map(|e| e.rank(length))
                .sum();
            prop_assert_eq!(lengths, length.saturating_sub(displacement));
            Ok(())
        },
    );
}

#[test]
fn seed000_i15_equal_partitions_meet_in_equal_elements() {
    check(200, (parts(), 0..30u64), |(parts, displacement)| {
        let elements: Vec<Periodic> = parts.elements(displacement);
        for (i, v) in elements.iter().enumerate() {
            for (j, s) in elements.iter().enumerate() {
                let meeting = Meeting::new(v, s);
                if i != j {
                    prop_assert!(meeting.is_empty(), "elements {} and {}", i, j);
                    continue;
                }
                prop_assert_eq!(meeting.size_per_period(), Some(v.size()));
                for run in meeting.runs(0..displacement + 2 * parts.period) {
                    prop_assert_eq!(run.left, run.right);
                }
            }
        }
        Ok(())
    });
}
