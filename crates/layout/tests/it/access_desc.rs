//! Access descriptors against a file pointer that is moved byte by byte.
//!
//! The seed is fixed; `PROPTEST_CASES` makes the runs longer.

use falls::{FallsSet, Periodic, Reason};
use layout::access_desc::MAX_DEPTH;
use layout::mpi::{Datatype, Distribute, FileView};
use layout::{AccessDesc, BasicBlock, LayoutErrorKind, Order};
use proptest::prelude::*;
use testkit::laws::config;

fn desc(skip: i64, blocks: Vec<BasicBlock>) -> AccessDesc {
    AccessDesc::new(skip, blocks).unwrap()
}

fn bytes(offset: i64, repeat: i64, count: i64, stride: i64) -> BasicBlock {
    BasicBlock::bytes(offset, repeat, count, stride)
}

fn nested(offset: i64, repeat: i64, count: i64, stride: i64, sub: &AccessDesc) -> BasicBlock {
    BasicBlock::nested(offset, repeat, count, stride, sub.clone())
}

/// Moves a pointer exactly as the descriptor says, and notes every byte.
fn walk_naive(desc: &AccessDesc, mut pointer: i64, out: &mut Vec<i64>) -> i64 {
    for block in desc.blocks() {
        pointer += block.offset;
        for i in 0..block.repeat {
            for _ in 0..block.count {
                match &block.subtype {
                    None => {
                        out.push(pointer);
                        pointer += 1;
                    }
                    Some(sub) => pointer = walk_naive(sub, pointer, out),
                }
            }
            if i + 1 < block.repeat {
                pointer += block.stride;
            }
        }
    }
    pointer + desc.skip()
}

fn list(desc: &AccessDesc) -> Vec<i64> {
    desc.walk().flat_map(|r| r.start..r.end()).collect()
}

fn naive(desc: &AccessDesc) -> Vec<i64> {
    let mut out = Vec::new();
    walk_naive(desc, 0, &mut out);
    out
}

/// Moves between `low` and 4 bytes; forward only when `low` is 0.
fn descs(low: i64) -> impl Strategy<Value = AccessDesc> {
    let leaf = prop::collection::vec((low..5i64, 0..4i64, 0..4i64, low..5i64), 0..4);
    let leaf = (leaf, low..5i64).prop_map(|(blocks, skip)| {
        desc(
            skip,
            blocks
                .into_iter()
                .map(|(o, r, c, s)| bytes(o, r, c, s))
                .collect(),
        )
    });
    leaf.prop_recursive(3, 8, 2, move |inner| {
        let sub = prop::option::weighted(0.7, inner);
        let block = (low..5i64, 0..4i64, 0..4i64, low..5i64, sub);
        (prop::collection::vec(block, 1..3), low..5i64).prop_map(|(blocks, skip)| {
            let blocks = blocks
                .into_iter()
                .map(|(offset, repeat, count, stride, subtype)| BasicBlock {
                    offset,
                    repeat,
                    count,
                    stride,
                    subtype,
                });
            desc(skip, blocks.collect())
        })
    })
}

/// Numbers that break arithmetic: small ones, and neighbours of powers of two.
fn extremes() -> impl Strategy<Value = i64> {
    prop_oneof![
        3 => -2..6i64,
        1 => (0..64u32, -2..3i64).prop_map(|(bit, off)| (1u64 << bit).wrapping_add_signed(off) as i64),
    ]
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn seed004_s24_extreme_numbers_are_refused_or_right(
        numbers in prop::collection::vec((extremes(), extremes(), extremes(), extremes(), extremes()), 1..6),
        k in any::<u64>(),
    ) {
        let mut d = desc(0, vec![bytes(0, 1, 1, 0)]);
        for (offset, repeat, count, stride, skip) in numbers {
            let blocks = vec![nested(offset, repeat, count, stride, &d), bytes(stride, count, repeat, offset)];
            let Ok(next) = AccessDesc::new(skip, blocks) else { continue };
            // Extent and size by the formulas of section 3.3, in more bits.
            let part = |repeat: i64, count: i64, unit: i64, gap: i64| match repeat {
                0 => 0,
                _ => i128::from(repeat) * (i128::from(count) * i128::from(unit) + i128::from(gap)) - i128::from(gap),
            };
            let extent = i128::from(offset) + part(repeat, count, d.extent(), stride)
                + i128::from(stride) + part(count, repeat, 1, offset) + i128::from(skip);
            prop_assert_eq!(i128::from(next.extent()), extent);
            let actual = i128::from(repeat) * i128::from(count) * (i128::from(d.actual()) + 1);
            prop_assert_eq!(i128::from(next.actual()), actual);
            if let Ok(set) = next.to_periodic(3) {
                let position = next.position(k).and_then(|x| x.checked_add(3)).filter(|&x| x < i64::MAX);
                prop_assert_eq!(set.select(k).map(|x| x as i64), position);
            }
            d = next;
        }
    }

    #[test]
    fn seed004_s19_descriptors_agree_with_a_list_of_bytes(d in descs(-3), offsets in prop::collection::vec(0..500u64, 5)) {
        let mut model = Vec::new();
        let end = walk_naive(&d, 0, &mut model);
        prop_assert_eq!(list(&d), model.clone());
        prop_assert_eq!(d.extent(), end);
        prop_assert_eq!(d.actual(), model.len() as u64);
        prop_assert_eq!(d.is_monotone(), model.windows(2).all(|w| w[0] < w[1]));
        for k in offsets {
            let n = model.len() as u64;
            let expected = (n > 0).then(|| (k / n) as i64 * end + model[(k % n) as usize]);
            prop_assert_eq!(d.position(k), expected);
        }
        let again = AccessDesc::from_sequence(&d.to_sequence(), end).unwrap();
        prop_assert_eq!(list(&again), model);
        prop_assert_eq!(again.extent(), end);
    }

    #[test]
    fn seed004_s21_positions_ascend_and_repeat_by_the_extent(d in descs(0), k in 0..1000u64) {
        let positions: Vec<i64> = (0..d.actual()).map(|k| d.position(k).unwrap()).collect();
        prop_assert!(positions.windows(2).all(|w| w[0] < w[1]));
        if let Some(x) = d.position(k) {
            prop_assert_eq!(d.position(k + d.actual()), Some(x + d.extent()));
        } else {
            prop_assert_eq!(d.actual(), 0);
        }
    }

    #[test]
    fn seed000_s24_descriptors_become_periodic_sets_and_come_back(d in descs(0), at in 0..20u64, k in 0..400u64) {
        let model = naive(&d);
        let set = d.to_set().unwrap();
        prop_assert_eq!((0..set.size()).map(|k| set.select(k).unwrap() as i64).collect::<Vec<_>>(), model);
        let circular = d.to_periodic(at).unwrap();
        prop_assert_eq!(circular.period() as i64, d.extent().max(1));
        prop_assert_eq!(circular.displacement(), at);
        prop_assert_eq!(circular.select(k), d.position(k).map(|x| at + x as u64));
        let (displacement, back) = AccessDesc::from_periodic(&circular).unwrap();
        prop_assert_eq!(displacement, at);
        prop_assert_eq!(list(&back), list(&d));
        prop_assert_eq!(back.extent(), d.extent().max(1));
        prop_assert!(back.to_set().unwrap().same_bytes(&set));
    }
}

#[test]
fn seed004_s20_stride_is_a_gap_and_skip_comes_once() {
    // The stride is the gap, counted between repetitions only.
    let d = desc(0, vec![bytes(0, 3, 2, 1)]);
    assert_eq!((list(&d), d.extent()), (vec![0, 1, 3, 4, 6, 7], 8));
    let once = desc(0, vec![bytes(0, 1, 2, 100)]);
    assert_eq!((list(&once), once.extent()), (vec![0, 1], 2));
    // So the gap of a single repetition is never formed, however long.
    assert_eq!(desc(0, vec![bytes(3, 1, 5, i64::MAX)]).extent(), 8);
    // The offset comes before each block, relative to where the block before ended.
    let two = desc(0, vec![bytes(1, 2, 1, 1), bytes(2, 1, 1, 9)]);
    assert_eq!((list(&two), two.extent()), (vec![1, 3, 6], 7));
    // The skip comes once after all blocks, and again in every pass of a subtype.
    let inner = desc(3, vec![bytes(0, 2, 1, 1), bytes(0, 1, 1, 0)]);
    assert_eq!((list(&inner), inner.extent()), (vec![0, 2, 3], 7));
    let outer = desc(5, vec![nested(0, 1, 2, 0, &inner)]);
    assert_eq!(
        (list(&outer), outer.extent()),
        (vec![0, 2, 3, 7, 9, 10], 19)
    );
    // An offset counts even where nothing is repeated.
    let idle = desc(0, vec![bytes(4, 0, 9, 9), bytes(0, 1, 1, 0)]);
    assert_eq!((list(&idle), idle.extent()), (vec![4], 5));
}

#[test]
fn seed004_s22_golden_descriptors() {
    // G1, G2
    let g1 = desc(0, vec![bytes(0, 3, 2, 1)]);
    assert_eq!(list(&g1), [0, 1, 3, 4, 6, 7]);
    assert_eq!((g1.extent(), g1.actual()), (8, 6));
    let g2 = desc(0, vec![bytes(0, 3, 2, 1), bytes(7, 3, 5, 2)]);
    let runs: Vec<_> = g2.walk().skip(3).map(|r| (r.start, r.end() - 1)).collect();
    assert_eq!(runs, [(15, 19), (22, 26), (29, 33)]);
    assert_eq!((g2.extent(), g2.actual()), (34, 21));
    // G3
    let g3 = desc(
        0,
        vec![nested(0, 3, 2, 20, &desc(0, vec![bytes(0, 2, 5, 5)]))],
    );
    assert_eq!((g3.extent(), g3.actual()), (130, 60));
    assert_eq!((g3.position(23), g3.position(143)), (Some(53), Some(313)));
    // G4, from the datatypes too
    let level1 = desc(0, vec![bytes(0, 2, 5, 5)]);
    let g4 = desc(0, vec![nested(0, 3, 2, 15, &level1)]);
    assert_eq!((g4.extent(), g4.actual()), (120, 60));
    let first: Vec<_> = g4.walk().take(4).map(|r| (r.start, r.end() - 1)).collect();
    // 10-14 and 15-19 touch, so they are one run.
    assert_eq!(first, [(0, 4), (10, 19), (25, 29), (45, 49)]);
    assert_eq!(
        g4.walk().last().map(|r| (r.start, r.end() - 1)),
        Some((115, 119))
    );
    let byte = Datatype::basic(1).unwrap();
    let level1 = Datatype::vector(2, 5, 10, &byte).unwrap();
    let level2 = Datatype::vector(3, 2, 3, &level1).unwrap();
    let from_type = AccessDesc::from_datatype(&level2).unwrap();
    assert_eq!((list(&from_type), from_type.extent()), (list(&g4), 120));
    // G5, G6: INTEGER B(14,17), (CYCLIC(3),BLOCK) onto 3 x 4
    let inner = desc(20, vec![bytes(24, 1, 12, 0)]);
    let g5 = desc(672, vec![nested(0, 1, 5, 0, &inner)]);
    assert_eq!((g5.extent(), g5.actual()), (952, 15 * 4));
    let first: Vec<_> = [0, 4, 8, 12, 16, 20]
        .iter()
        .map(|&k| g5.position(k).unwrap())
        .collect();
    assert_eq!(first, [24, 28, 32, 80, 84, 88]);
    let inner = desc(0, vec![bytes(12, 1, 12, 0), bytes(24, 1, 8, 0)]);
    let g6 = desc(392, vec![nested(280, 1, 5, 0, &inner)]);
    assert_eq!((g6.extent(), g6.actual()), (952, 25 * 4));
    assert_eq!(g6.position(0), Some(292));
    // The same two parts by way of distributed arrays, coordinates (2,0) and (1,1).
    let int = Datatype::basic(4).unwrap();
    let dealt = [Distribute::Cyclic(Some(3)), Distribute::Block(None)];
    for (rank, golden) in [(8, &g5), (5, &g6)] {
        let t = Datatype::darray(12, rank, &[14, 17], &dealt, &[3, 4], Order::Fortran, &int);
        let d = AccessDesc::from_datatype(&t.unwrap()).unwrap();
        assert_eq!((list(&d), d.extent()), (list(golden), 952));
    }
    // G10: read 10 INT through a view of vector(10,2,10,INT)
    let view = FileView::new(0, &int, &Datatype::vector(10, 2, 10, &int).unwrap()).unwrap();
    let items: Vec<_> = (0..10).map(|i| view.select(4 * i).unwrap() / 4).collect();
    assert_eq!(items, [0, 1, 10, 11, 20, 21, 30, 31, 40, 41]);
    // G11: displacement 200, INT, vector(25,1,2)
    let view = FileView::new(200, &int, &Datatype::vector(25, 1, 2, &int).unwrap()).unwrap();
    let items: Vec<_> = (0..4).map(|i| view.select(4 * i).unwrap() / 4).collect();
    assert_eq!(items, [50, 52, 54, 56]);
    // G12: 10 items into slots 0-4 and 50-54 of 55
    let buffer = Datatype::vector(2, 5, 50, &int).unwrap();
    assert_eq!((buffer.size(), buffer.extent()), (40, 220));
    let slots: Vec<_> = buffer
        .to_sequence()
        .runs()
        .map(|r| (r.start / 4, r.len / 4))
        .collect();
    assert_eq!(slots, [(0, 5), (50, 5)]);
}

#[test]
fn seed004_s22_golden_numbers_of_filetypes() {
    let (int, double, char) = (
        Datatype::basic(4).unwrap(),
        Datatype::basic(8).unwrap(),
        Datatype::basic(1).unwrap(),
    );
    let blocks = |t: &Datatype| -> Vec<(i64, i64, i64, i64)> {
        let d = AccessDesc::from_datatype(t).unwrap();
        d.blocks()
            .iter()
            .map(|b| (b.offset, b.repeat, b.count, b.stride))
            .collect()
    };
    assert_eq!(
        blocks(&Datatype::hvector(2, 5, 40, &int).unwrap()),
        [(0, 2, 20, 20)]
    );
    assert_eq!(
        blocks(&Datatype::contiguous(10, &double).unwrap()),
        [(0, 1, 80, 0)]
    );
    let indexed = Datatype::hindexed(&[3, 2, 4], &[0, 20, 40], &int).unwrap();
    let offsets: Vec<_> = blocks(&indexed).iter().map(|b| b.0).collect();
    assert_eq!(offsets, [0, 8, 12]);
    let mixed = Datatype::structure(&[3, 2, 16], &[0, 20, 60], &[int, double, char]).unwrap();
    assert_eq!(
        blocks(&mixed),
        [(0, 1, 12, 0), (8, 1, 16, 0), (24, 1, 16, 0)]
    );
    // The order of a type is kept, with signed moves.
    let back = Datatype::hindexed(&[1, 1], &[8, 0], &Datatype::basic(4).unwrap()).unwrap();
    let d = AccessDesc::from_datatype(&back).unwrap();
    assert_eq!(list(&d), [8, 9, 10, 11, 0, 1, 2, 3]);
    assert_eq!((d.blocks()[1].offset, d.extent()), (-12, 12));
    assert_eq!(
        d.to_set().unwrap_err().kind(),
        &LayoutErrorKind::NotMonotone
    );
}

#[test]
fn seed004_s23_nothing_to_transfer_is_legal() {
    for d in [
        desc(0, vec![]),
        desc(7, vec![]),
        desc(0, vec![bytes(3, 0, 5, 1)]),
        desc(0, vec![bytes(3, 5, 0, 1)]),
        desc(2, vec![nested(1, 2, 2, 1, &desc(3, vec![]))]),
        desc(
            2,
            vec![nested(1, 2, 0, 1, &desc(3, vec![bytes(0, 1, 1, 0)]))],
        ),
    ] {
        assert_eq!(d.actual(), 0, "{d:?}");
        assert_eq!(d.extent(), walk_naive(&d, 0, &mut Vec::new()));
        assert_eq!(d.position(0), None);
        assert_eq!(d.walk().count(), 0);
        assert!(d.to_set().unwrap().is_empty());
        assert!(d.to_periodic(9).unwrap().is_empty());
    }
    // Parts that transfer nothing leave the others alone.
    let d = desc(
        0,
        vec![bytes(2, 0, 5, 1), bytes(3, 4, 0, 2), bytes(1, 2, 1, 1)],
    );
    assert_eq!(list(&d), naive(&d));
    assert_eq!(d.extent(), 15);
}

#[test]
fn seed004_s24_malformed_descriptors_are_refused() {
    let refused = |skip, blocks| AccessDesc::new(skip, blocks).unwrap_err();
    let negative = refused(0, vec![bytes(0, 1, 1, 0), bytes(0, -1, 1, 0)]);
    assert_eq!(negative.kind(), &LayoutErrorKind::Argument);
    assert_eq!(negative.argument_name(), "blocks[1].repeat");
    assert_eq!(
        refused(0, vec![bytes(0, 1, -5, 0)]).argument_name(),
        "blocks[0].count"
    );
    // Overflow, wherever it arises.
    for blocks in [
        vec![bytes(i64::MAX, 1, 1, 0)],
        vec![bytes(0, i64::MAX, 2, 0)],
        vec![bytes(0, 3, 1, i64::MAX)],
        vec![bytes(0, 2, i64::MAX, 1)],
        vec![bytes(i64::MAX, 0, 0, 0), bytes(1, 0, 0, 0)],
        vec![bytes(i64::MIN, 1, 1, 0), bytes(0, 3, 1, i64::MIN)],
        vec![nested(0, 1, i64::MAX, 0, &desc(1, vec![bytes(0, 1, 1, 0)]))],
    ] {
        assert_eq!(refused(0, blocks).kind(), &LayoutErrorKind::Overflow);
    }
    let skip = refused(i64::MAX, vec![bytes(1, 1, 1, 0)]);
    assert_eq!(
        (skip.kind(), skip.argument_name()),
        (&LayoutErrorKind::Overflow, "skip")
    );
    // A descriptor owns what it is made of, so a cycle cannot be written; depth is bounded.
    let mut deep = desc(0, vec![bytes(0, 1, 1, 0)]);
    for _ in 1..MAX_DEPTH {
        deep = desc(0, vec![nested(0, 1, 1, 0, &deep)]);
    }
    let deeper = refused(0, vec![nested(0, 1, 1, 0, &deep)]);
    assert_eq!(deeper.kind(), &LayoutErrorKind::Falls(Reason::Depth));
    // Moves may go back, but then there is no set.
    let back = desc(0, vec![bytes(8, 1, 2, 0), bytes(-9, 1, 2, 0)]);
    assert_eq!(list(&back), [8, 9, 1, 2]);
    assert_eq!(
        back.to_set().unwrap_err().kind(),
        &LayoutErrorKind::NotMonotone
    );
    assert!(back.to_periodic(0).is_err());
    let before = desc(4, vec![bytes(-2, 1, 2, 0)]);
    assert_eq!(
        before.to_set().unwrap_err().kind(),
        &LayoutErrorKind::Argument
    );
    assert!(before.to_periodic(0).is_err());
    assert_eq!(before.to_periodic(5).unwrap().select(0), Some(3));
    let interleaved = desc(-3, vec![bytes(0, 2, 1, 3)]);
    assert_eq!(
        interleaved.to_periodic(0).unwrap_err().kind(),
        &LayoutErrorKind::NotMonotone
    );
    assert!(AccessDesc::from_set(&"{(0,9)}".parse().unwrap(), 9).is_err());
}

#[test]
fn seed000_s24_size_follows_the_nesting() {
    let many = 1_000_000_000;
    let inner = desc(2, vec![bytes(1, 1000, 4, 4)]);
    let d = desc(100, vec![nested(7, many, 3, 11, &inner)]);
    assert_eq!(d.actual(), 4000 * 3 * many as u64);
    let set = d.to_set().unwrap();
    assert!(set.node_count() <= 3);
    let k = 123_456_789_012;
    assert_eq!(d.position(k), set.select(k).map(|x| x as i64));
    let circular = d.to_periodic(5).unwrap();
    let far = d.actual() + k;
    assert_eq!(circular.select(far), d.position(far).map(|x| 5 + x as u64));
    // And back: one block for each node.
    let (_, back) = AccessDesc::from_periodic(&circular).unwrap();
    assert_eq!(back.extent(), d.extent());
    assert_eq!(back.blocks().len(), 1);
    assert_eq!(back.position(far), d.position(far));
    // Positions that leave 64 bits are not given.
    assert_eq!(d.position(u64::MAX), None);
}

#[test]
fn seed000_s24_sets_become_descriptors() {
    let set: FallsSet = "{(0,15,32,2,{(0,0,4,2),(8,9,4,2)}),(100,107,50,3)}"
        .parse()
        .unwrap();
    let d = AccessDesc::from_set(&set, 256).unwrap();
    assert_eq!((d.extent(), d.actual(), d.depth()), (256, set.size(), 2));
    assert!(d.to_set().unwrap().same_bytes(&set));
    assert_eq!(d.blocks().len(), 2);
    let last = &d.blocks()[1];
    assert_eq!(
        (last.offset, last.repeat, last.count, last.stride),
        (52 + 2, 3, 8, 42)
    );
    assert_eq!((last.sub_count(), last.sub_actual()), (1, 1));
    assert_eq!(
        (d.blocks()[0].sub_count(), d.blocks()[0].sub_actual()),
        (14, 6)
    );
    let empty = Periodic::new(4, 9, FallsSet::empty()).unwrap();
    let (displacement, d) = AccessDesc::from_periodic(&empty).unwrap();
    assert_eq!((displacement, d.extent(), d.actual()), (4, 9, 0));
}
