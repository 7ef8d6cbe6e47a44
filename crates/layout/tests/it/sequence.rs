//! Sequences against plain lists of offsets.
//!
//! The seed is fixed; `PROPTEST_CASES` makes the runs longer.

use falls::{FallsSet, MAX_OFFSET};
use layout::LayoutErrorKind;
use layout::sequence::{NodeBody, Overlap, Sequence};
use proptest::prelude::*;
use testkit::laws::config;

/// How a sequence was made; the oracle follows the same steps byte by byte.
#[derive(Clone, Debug)]
enum Plan {
    Block(i64, u64),
    Blocks(Vec<(i64, u64)>),
    Repeat(Box<Plan>, u64, i64),
    Shift(Box<Plan>, i64),
    Concat(Vec<Plan>),
}

impl Plan {
    fn build(&self) -> Sequence {
        match self {
            Plan::Block(start, len) => Sequence::bytes(*start, *len),
            Plan::Blocks(list) => Sequence::from_blocks(list.iter().copied()),
            Plan::Repeat(plan, count, stride) => plan.build().repeat(*count, *stride),
            Plan::Shift(plan, by) => plan.build().shift(*by),
            Plan::Concat(plans) => {
                Sequence::concat(&plans.iter().map(Plan::build).collect::<Vec<_>>())
            }
        }
        .unwrap()
    }

    fn bytes_naive(&self) -> Vec<i64> {
        let block = |&(start, len): &(i64, u64)| start..start + len as i64;
        match self {
            Plan::Block(start, len) => block(&(*start, *len)).collect(),
            Plan::Blocks(list) => list.iter().flat_map(block).collect(),
            Plan::Repeat(plan, count, stride) => {
                let one = plan.bytes_naive();
                (0..*count as i64)
                    .flat_map(|i| one.iter().map(move |x| x + i * stride))
                    .collect()
            }
            Plan::Shift(plan, by) => plan.bytes_naive().iter().map(|x| x + by).collect(),
            Plan::Concat(plans) => plans.iter().flat_map(Plan::bytes_naive).collect(),
        }
    }
}

fn plans() -> impl Strategy<Value = Plan> {
    let blocks = prop::collection::vec((-40..40i64, 0..5u64), 0..9);
    let regular = (0..9i64, 1..7i64, 1..4u64, 2..70i64).prop_map(|(start, step, len, n)| {
        Plan::Blocks((0..n).map(|i| (start + i % 3 + i * step, len)).collect())
    });
    let leaf = prop_oneof![
        3 => (-9..9i64, 0..6u64).prop_map(|(s, l)| Plan::Block(s, l)),
        2 => blocks.prop_map(Plan::Blocks),
        1 => regular,
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            4 => (inner.clone(), 0..5u64, -20..40i64)
                .prop_map(|(p, n, s)| Plan::Repeat(p.into(), n, s)),
            1 => (inner.clone(), -30..30i64).prop_map(|(p, by)| Plan::Shift(p.into(), by)),
            2 => prop::collection::vec(inner, 0..4).prop_map(Plan::Concat),
        ]
    })
}

fn runs_naive(bytes: &[i64]) -> Vec<(i64, u64)> {
    let mut runs: Vec<(i64, u64)> = Vec::new();
    for &x in bytes {
        match runs.last_mut() {
            Some((start, len)) if *start + *len as i64 == x => *len += 1,
            _ => runs.push((x, 1)),
        }
    }
    runs
}

fn runs(seq: &Sequence) -> Vec<(i64, u64)> {
    seq.runs().map(|r| (r.start, r.len)).collect()
}

/// Walks the nodes as a loop nest would.
fn walk(seq: &Sequence, base: i64, depth: u32, out: &mut Vec<i64>) {
    for node in seq.nodes() {
        assert!(node.count >= 1 && node.unit() >= 1);
        for i in 0..node.count as i64 {
            let at = base + node.start + i * node.stride;
            match node.body {
                NodeBody::Bytes(len) => out.extend(at..at + len as i64),
                NodeBody::Nested(inner) => {
                    assert_eq!(inner.hull().unwrap().start, 0);
                    assert!(inner.depth() < depth);
                    walk(inner, at, inner.depth(), out);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn every_answer_agrees_with_the_list_of_bytes(plan in plans(), cuts in (0..400u64, 0..400u64)) {
        let (seq, bytes) = (plan.build(), plan.bytes_naive());
        prop_assert_eq!(seq.size(), bytes.len() as u64);
        prop_assert_eq!(seq.is_empty(), bytes.is_empty());
        let hull = bytes.iter().min().map(|&low| low..bytes.iter().max().unwrap() + 1);
        prop_assert_eq!(seq.hull(), hull);
        prop_assert_eq!(runs(&seq), runs_naive(&bytes));
        prop_assert!(seq.piece_count() >= runs_naive(&bytes).len() as u64);
        let mut walked = Vec::new();
        walk(&seq, 0, seq.depth(), &mut walked);
        prop_assert_eq!(&walked, &bytes);
        for (k, &x) in bytes.iter().enumerate() {
            prop_assert_eq!(seq.select(k as u64), Some(x));
        }
        prop_assert_eq!(seq.select(seq.size()), None);

        let (a, b) = (cuts.0.min(cuts.1), cuts.0.max(cuts.1));
        let part = &bytes[(a as usize).min(bytes.len())..(b as usize).min(bytes.len())];
        let cut: Vec<_> = seq.runs_in(a..b).map(|r| (r.start, r.len)).collect();
        prop_assert_eq!(&cut, &runs_naive(part));
        let slice = seq.slice(a..b);
        prop_assert_eq!(runs(&slice), cut);
        prop_assert_eq!(slice.size(), part.len() as u64);

        let ascends = bytes.windows(2).all(|w| w[0] < w[1]);
        prop_assert_eq!(seq.is_monotone(), ascends);
        let mut sorted = bytes.clone();
        sorted.sort_unstable();
        let twice = sorted.windows(2).any(|w| w[0] == w[1]);
        prop_assert_eq!(seq.overlap(), if twice { Overlap::Certain } else { Overlap::Never });
        prop_assert_eq!(seq.has_overlap(), twice);
        match seq.to_set() {
            Ok((base, set)) => {
                prop_assert!(ascends);
                let back: Vec<i64> = (0..set.size()).map(|k| base + set.select(k).unwrap() as i64).collect();
                prop_assert_eq!(&back, &bytes);
                prop_assert!(Sequence::from_set(base, &set).unwrap().same_order(&seq));
            }
            Err(e) => {
                prop_assert!(!ascends);
                prop_assert_eq!(e.kind(), &LayoutErrorKind::NotMonotone);
            }
        }
    }
}

#[test]
fn counts_do_not_cost_nodes() {
    let element = Sequence::bytes(0, 8).unwrap();
    let n = 1_000_000;
    // Columns of a matrix of a million by a million, and its rows backwards.
    let column = element.repeat(n, 8 * n as i64).unwrap();
    let transposed = column.repeat(n, 8).unwrap();
    assert!(transposed.node_count() <= 2);
    assert_eq!(transposed.size(), 8 * n * n);
    assert_eq!(transposed.overlap(), Overlap::Never);
    assert!(!transposed.is_monotone());
    assert_eq!(transposed.select(8 * n + 9), Some(8 + 8 * n as i64 + 1));
    let row = element.repeat(n, -8).unwrap();
    assert_eq!(row.repeat(n, -8 * n as i64).unwrap().node_count(), 1);
    // Rows one after the other are one run.
    let rows = element
        .repeat(n, 8)
        .unwrap()
        .repeat(n, 8 * n as i64)
        .unwrap();
    assert!(rows.is_contiguous());
    assert_eq!(rows.node_count(), 1);
    let part = transposed.slice(1_000_001..7_000_000_000_000);
    assert_eq!(part.size(), 7_000_000_000_000 - 1_000_001);
    assert!(part.node_count() < 10);
    assert_eq!(part.select(5), transposed.select(1_000_006));
}

#[test]
fn regular_lists_fold_and_irregular_ones_stay_compact() {
    let every_third = Sequence::from_blocks((0..100_000).rev().map(|i| (3 * i, 2))).unwrap();
    assert_eq!(every_third.node_count(), 1);
    // Groups of three that recur: a stretch, a gap, two stretches, descending as a whole.
    let grouped = (0..30_000i64).map(|i| (-100 * (i / 3) + [0, 7, 40][i as usize % 3], 3));
    let grouped = Sequence::from_blocks(grouped).unwrap();
    assert!(grouped.node_count() <= 4, "{}", grouped.node_count());
    // A pseudo-random walk has one entry per block, and a list can still be asked anything.
    let mut state = 12345u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as i64
    };
    let blocks: Vec<(i64, u64)> = (0..200_000)
        .map(|_| (next(), 1 + next() as u64 % 9))
        .collect();
    let list = Sequence::from_blocks(blocks.iter().copied()).unwrap();
    assert_eq!((list.depth(), list.len()), (1, blocks.len()));
    assert_eq!(list.select(0), Some(blocks[0].0));
    assert_eq!(list.overlap(), Overlap::Unknown);
    assert!(list.has_overlap());
    let doubled = list.repeat(1000, 1 << 40).unwrap();
    assert_eq!(doubled.len(), 1);
    assert_eq!(doubled.select(list.size()), Some(blocks[0].0 + (1 << 40)));
}

#[test]
fn overlap_is_unknown_only_for_large_irregular_sequences() {
    let block = Sequence::bytes(0, 4).unwrap();
    assert_eq!(Sequence::empty().overlap(), Overlap::Never);
    assert_eq!(block.repeat(2, 0).unwrap().overlap(), Overlap::Certain);
    let fan = |n: u64, step: i64| block.repeat(n, 6).unwrap().repeat(n, step).unwrap();
    // 4 bytes every 6: copies moved by 3 collide, by 6 n they do not.
    assert_eq!(fan(1000, 3).overlap(), Overlap::Certain);
    assert_eq!(fan(1 << 20, 3).overlap(), Overlap::Certain);
    assert_eq!(fan(1 << 20, 6 << 20).overlap(), Overlap::Never);
    // Two combs of even and odd bytes: told exactly while small.
    let comb = |n: u64| {
        let one = Sequence::bytes(0, 1).unwrap().repeat(n, 2).unwrap();
        Sequence::concat(&[one.clone(), one.shift(1).unwrap()]).unwrap()
    };
    assert_eq!(comb(1000).overlap(), Overlap::Never);
    let two_strides = |n: u64| {
        let one = Sequence::bytes(0, 1).unwrap();
        let parts = [
            one.repeat(n, 6).unwrap(),
            one.shift(3).unwrap().repeat(n, 10).unwrap(),
        ];
        Sequence::concat(&parts).unwrap()
    };
    assert_eq!(two_strides(1000).overlap(), Overlap::Never);
    assert_eq!(two_strides(1_000_000).overlap(), Overlap::Unknown);
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    let overflow = |r: Result<Sequence, layout::LayoutError>| {
        assert_eq!(r.unwrap_err().kind(), &LayoutErrorKind::Overflow);
    };
    overflow(Sequence::bytes(i64::MAX, 1));
    overflow(Sequence::bytes(0, u64::MAX));
    overflow(Sequence::bytes(0, 1 << 63));
    let block = Sequence::bytes(0, 8).unwrap();
    overflow(block.repeat(1 << 62, 8));
    overflow(block.repeat(u64::MAX, 0));
    overflow(block.repeat(3, i64::MAX));
    overflow(block.repeat(3, i64::MIN));
    overflow(block.shift(i64::MAX - 3));
    overflow(Sequence::from_blocks([(i64::MIN, 1), (0, 1)]));
    let low = Sequence::bytes(i64::MIN, 1).unwrap();
    assert_eq!(low.hull(), Some(i64::MIN..i64::MIN + 1));
    overflow(low.shift(-1));
    overflow(low.repeat(2, 5));
    // Just inside.
    let all = Sequence::bytes(0, MAX_OFFSET).unwrap();
    assert_eq!(all.select(MAX_OFFSET - 1), Some(i64::MAX - 1));
    let edge = Sequence::bytes(i64::MAX - 8, 8)
        .unwrap()
        .repeat(2, -8)
        .unwrap();
    assert_eq!(edge.hull(), Some(i64::MAX - 16..i64::MAX));
    assert_eq!(edge.select(8), Some(i64::MAX - 16));
    let (base, set) = low.to_set().unwrap();
    assert_eq!((base, set.size()), (i64::MIN, 1));
}

#[test]
fn nesting_has_a_limit() {
    // A list that grows at its end step by step does not nest without end.
    let mut seq = Sequence::empty();
    for i in 0..200i64 {
        let end = 1200 * i;
        let more =
            [2, 5, 9, 14].map(|gap| (end + gap * gap * (1 + i * i % 5), 1 + (gap + i) as u64 % 3));
        seq = Sequence::concat(&[seq, Sequence::from_blocks(more).unwrap()]).unwrap();
    }
    assert_eq!(seq.runs().count(), 800);
    let half = layout::sequence::MAX_DEPTH / 2;
    assert!((half..half + 2).contains(&seq.depth()), "{}", seq.depth());
    // Real loops inside each other do: each level repeats the one below and adds a block.
    let level = |seq: &Sequence| {
        Sequence::concat(&[
            seq.repeat(2, 1)?,
            Sequence::bytes(-3, 1)?,
            Sequence::bytes(-6, 2)?,
        ])
    };
    let mut depth = seq.depth();
    let refused = loop {
        match level(&seq) {
            Ok(next) => seq = next,
            Err(error) => break error,
        }
        assert_eq!(seq.depth(), depth + 1);
        depth = seq.depth();
    };
    assert_eq!(depth, layout::sequence::MAX_DEPTH);
    assert_eq!(
        refused.kind(),
        &LayoutErrorKind::Falls(falls::Reason::Depth)
    );
}

#[test]
fn a_set_keeps_its_tree() {
    let set: FallsSet = "{(0,15,32,2,{(0,0,4,2),(8,9,4,2)}),(100,107,50,3)}"
        .parse()
        .unwrap();
    let seq = Sequence::from_set(-7, &set).unwrap();
    assert_eq!(seq.node_count(), set.node_count());
    assert_eq!(seq.select(0), Some(-7));
    let (base, back) = seq.to_set().unwrap();
    assert_eq!(base, -7);
    assert!(back.same_bytes(&set));
}
