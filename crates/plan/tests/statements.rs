//! Numbered statements and invariants of the specification that concern plans.
//!
//! Random partitions, views and redistributions against brute force over explicit bytes; the seed
//! is fixed, `PROPTEST_CASES` makes the runs longer.

mod support;

use falls::{Falls, FallsSet, Meeting, compress_offsets};
use layout::{FileOffset, Partition, Pattern, View};
use plan::{Part, Plan};
use proptest::prelude::*;
use support::{Stored, partition};
use testkit::laws::config;

/// Blocks of random lengths dealt to random owners.
fn any_partition() -> impl Strategy<Value = Partition> {
    let blocks = proptest::collection::vec((0usize..4, 1u64..6), 1..9);
    (0u64..7, blocks).prop_map(|(displacement, blocks)| {
        let mut owned = vec![Vec::new(); 4];
        let mut x = 0;
        for (owner, len) in blocks {
            owned[owner].extend(x..x + len);
            x += len;
        }
        let sets = owned
            .iter()
            .map(|bytes| compress_offsets(bytes).unwrap())
            .collect();
        partition(displacement, x, sets)
    })
}

fn any_view() -> impl Strategy<Value = View> {
    let bytes = proptest::collection::btree_set(0u64..20, 1..12);
    (0u64..9, bytes, 0u64..5).prop_map(|(displacement, bytes, extra)| {
        let bytes: Vec<u64> = bytes.into_iter().collect();
        let period = bytes[bytes.len() - 1] + 1 + extra;
        View::new(
            FileOffset(displacement),
            period,
            compress_offsets(&bytes).unwrap(),
        )
        .unwrap()
    })
}

fn some_bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251 + 1) as u8).collect()
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn seed000_s21_redistributes_between_any_partitions_and_back(
        p in any_partition(), q in any_partition(), len in 0usize..120,
    ) {
        let bytes = some_bytes(len);
        let stored = Stored::from_bytes(&p, &bytes);
        let (moved, plan) = stored.redistribute(&q);
        prop_assert_eq!(&moved, &Stored::from_bytes(&q, &bytes));
        prop_assert_eq!(plan.volume(), len as u64);
        let (back, _) = moved.redistribute(&p);
        prop_assert_eq!(back, stored);
    }

    #[test]
    fn seed000_i05_every_byte_has_one_owner(p in any_partition(), x in 0u64..200) {
        let owners: Vec<usize> = (0..p.len()).filter(|&e| p.subfile(e).contains(x)).collect();
        match p.owner(FileOffset(x)) {
            None => prop_assert!(x < p.displacement().0 && owners.is_empty()),
            Some((e, at)) => {
                prop_assert_eq!(owners, vec![e]);
                prop_assert_eq!(p.subfile(e).rank(x), at.0);
            }
        }
        let ranks: u64 = p.subfiles().map(|s| s.rank(x)).sum();
        prop_assert_eq!(ranks, x.saturating_sub(p.displacement().0));
    }

    #[test]
    fn seed000_i08_pairs_add_up_to_the_view(p in any_partition(), v in any_view()) {
        let len = p.displacement().0.max(v.bytes().displacement())
            + falls::lcm(p.pattern().period(), v.bytes().period()).unwrap();
        let plan = Plan::for_views(std::slice::from_ref(&v), &p, len);
        prop_assert_eq!(plan.volume(), v.len_within(len));
        let met: Vec<usize> = plan.transfers().iter().filter_map(|t| t.target().element()).collect();
        let expected: Vec<usize> = (0..p.len())
            .filter(|&e| Meeting::new(v.bytes(), &p.subfile(e)).count(0..len) > 0)
            .collect();
        prop_assert_eq!(met, expected);
    }

    #[test]
    fn seed000_i12_a_write_is_read_back_and_touches_nothing_else(
        p in any_partition(), v in any_view(), w in any_view(),
        len in 0usize..60, m in 0u64..40, n in 0usize..40,
    ) {
        let old = some_bytes(len);
        let mut stored = Stored::from_bytes(&p, &old);
        let data: Vec<u8> = (0..n).map(|i| 200u8.wrapping_add(i as u8)).collect();
        stored.write(&v, m, &data);
        let end = m + n as u64;
        prop_assert_eq!(stored.read(&v, m, end), data.clone());
        // Explicit model: which file bytes did the view bytes m..end mean?
        let mut model = old.clone();
        for (i, &b) in data.iter().enumerate() {
            let x = v.view_to_file(layout::ViewOffset(m + i as u64)).unwrap().0 as usize;
            model.resize(model.len().max(x + 1), 0);
            model[x] = b;
        }
        prop_assert_eq!(stored.bytes(), model.clone());
        let through: Vec<u8> = (0..w.len_within(model.len() as u64))
            .map(|k| model[w.view_to_file(layout::ViewOffset(k)).unwrap().0 as usize])
            .collect();
        prop_assert_eq!(stored.read(&w, 0, u64::MAX >> 1), through);
    }

    #[test]
    fn seed000_i14_subfile_lengths_add_up(p in any_partition(), len in 0u64..300) {
        let total: u64 = (0..p.len()).map(|e| p.subfile_len(e, len)).sum();
        prop_assert_eq!(total, len.saturating_sub(p.displacement().0));
    }

    #[test]
    fn seed000_i15_equal_partitions_are_identities(p in any_partition(), len in 1u64..200) {
        let plan = Plan::between(&p, &p, len);
        for t in plan.transfers() {
            prop_assert_eq!(t.source(), t.target());
            for run in t.meeting().runs(0..len) {
                prop_assert_eq!(run.left, run.right);
            }
        }
        prop_assert_eq!(plan.moved_bytes(), 0);
        prop_assert_eq!(plan.messages(), 0);
    }

    #[test]
    fn seed000_i16_there_and_back_restores_every_subfile(
        p in any_partition(), q in any_partition(), r in any_partition(), len in 0usize..150,
    ) {
        let stored = Stored::from_bytes(&p, &some_bytes(len));
        let there = stored.redistribute(&q).0.redistribute(&r).0;
        prop_assert_eq!(there.redistribute(&p).0, stored);
    }

    #[test]
    fn placement_keeps_at_least_as_much_as_any_permutation(
        p in any_partition(), q in any_partition(), len in 1u64..150,
    ) {
        let plan = Plan::between(&p, &q, len);
        let best = plan.placement();
        let relabelled = plan.relabelled(&best);
        let elements = |plan: &Plan| -> u64 {
            let kept = plan.transfers().iter().filter(|t| t.source() == t.target() && t.source() != Part::Header);
            kept.map(|t| t.bytes()).sum()
        };
        prop_assert_eq!(elements(&relabelled), best.kept_bytes());
        prop_assert_eq!(relabelled.volume(), plan.volume());
        let mut nodes = [0usize, 1, 2, 3];
        let mut most = 0;
        permutations(&mut nodes, 0, &mut |order| {
            let kept = plan.transfers().iter().filter(|t| match (t.source(), t.target()) {
                (Part::Element(i), Part::Element(j)) => order[j] == i,
                _ => false,
            });
            most = most.max(kept.map(|t| t.bytes()).sum::<u64>());
        });
        prop_assert_eq!(best.kept_bytes(), most);
        prop_assert!(best.is_exact());
    }
}

fn permutations(items: &mut [usize; 4], from: usize, visit: &mut dyn FnMut(&[usize; 4])) {
    if from == items.len() {
        return visit(items);
    }
    for i in from..items.len() {
        items.swap(from, i);
        permutations(items, from + 1, visit);
        items.swap(from, i);
    }
}

/// The three partitions of the paper's experiment: column, square and row blocks of N x N bytes.
fn matrix(n: u64, kind: char) -> Partition {
    let (h, q) = (n / 2, n / 4);
    let sets: Vec<FallsSet> = (0..4u64)
        .map(|p| match kind {
            'c' => Falls::family(p * q, q, n, n),
            'b' => Falls::family((p / 2) * h * n + (p % 2) * h, h, n, h),
            _ => Falls::segment(p * q * n, q * n),
        })
        .map(|f| FallsSet::new(vec![f.unwrap()]).unwrap())
        .collect();
    Partition::from_start(Pattern::new(n * n, sets).unwrap())
}

fn row_views(n: u64) -> Vec<View> {
    matrix(n, 'r').subfiles().map(View::from).collect()
}

#[test]
fn seed000_s28_the_plan_does_not_depend_on_the_size_of_the_array() {
    for (kind, nodes) in [('c', 16), ('b', 8), ('r', 4)] {
        for n in [256u64, 4096, 1 << 20, 1 << 30] {
            let plan = Plan::for_views(&row_views(n), &matrix(n, kind), n * n);
            let total: u64 = plan
                .transfers()
                .iter()
                .map(|t| t.meeting().node_count())
                .sum();
            assert_eq!(
                (total, plan.transfers().len()),
                (nodes, nodes as usize),
                "{kind} {n}"
            );
        }
    }
}

#[test]
fn seed000_s29_the_seven_measures_of_the_paper_s_experiment() {
    let expected = [
        ('c', 16, 4.0, 1024, 64.0, 0.996, 0.25),
        ('b', 8, 2.0, 512, 128.0, 0.992, 0.5),
        ('r', 4, 1.0, 4, 16384.0, 0.0, 1.0),
    ];
    let mut degrees = Vec::new();
    for (kind, pairs, contention, runs, mean_run, fragmentation, locality) in expected {
        let m = Plan::for_views(&row_views(256), &matrix(256, kind), 256 * 256).measures();
        assert_eq!((m.pairs, m.runs, m.bytes), (pairs, runs, 65536), "{kind}");
        assert_eq!(
            (m.contention, m.fan_out),
            (contention, contention),
            "{kind}"
        );
        assert_eq!((m.mean_run, m.locality), (mean_run, locality), "{kind}");
        assert!(
            (m.fragmentation - fragmentation).abs() < 5e-4,
            "{kind} {}",
            m.fragmentation
        );
        assert!(m.exact);
        degrees.push(m.matching_degree());
    }
    assert!(
        degrees[0] < degrees[1] && degrees[1] < degrees[2],
        "{degrees:?}"
    );
    assert_eq!(degrees[2], 1.0);
}

#[test]
fn measures_of_lazy_meetings_are_extrapolated_and_say_so() {
    let (a, b) = ((1u64 << 31) - 1, (1u64 << 31) + 11);
    let half = |period: u64| {
        let low = FallsSet::segment(0, period / 2).unwrap();
        let high = low.complement(period).unwrap();
        Partition::from_start(Pattern::new(period, vec![low, high]).unwrap())
    };
    let plan = Plan::between(&half(a), &half(b), 1 << 52);
    assert_eq!(plan.transfers().len(), 4);
    assert!(plan.transfers().iter().all(|t| !t.meeting().is_symbolic()));
    let m = plan.measures();
    assert!(!m.exact);
    let share = m.bytes as f64 / (1u64 << 52) as f64;
    assert!((share - 1.0).abs() < 0.05, "{share}");
}

#[test]
fn arrays_without_a_common_factor_with_the_stripes_stay_symbolic() {
    let n = 1_000_003u64;
    let rows = |p: u64| FallsSet::segment(p * n * (n / 4), n * (n / 4)).unwrap();
    let mut sets: Vec<FallsSet> = (0..3).map(rows).collect();
    sets.push(FallsSet::segment(3 * n * (n / 4), n * n - 3 * n * (n / 4)).unwrap());
    let array = partition(0, n * n, sets);
    let stripe = |p: u64| FallsSet::segment(p << 16, 1 << 16).unwrap();
    let stripes = partition(0, 4 << 16, (0..4).map(stripe).collect());
    let plan = Plan::between(&array, &stripes, n * n);
    assert_eq!(plan.transfers().len(), 16);
    assert!(
        plan.transfers()
            .iter()
            .all(|t| t.meeting().is_symbolic() && t.is_exact())
    );
    assert_eq!(
        plan.transfers().iter().map(|t| t.bytes()).sum::<u64>(),
        n * n
    );
    assert_eq!(plan.volume(), n * n);
}

#[test]
fn sums_over_overlapping_views_do_not_wrap() {
    let halves = partition(
        0,
        2,
        vec!["{(0,0)}".parse().unwrap(), "{(1,1)}".parse().unwrap()],
    );
    let views = vec![View::whole_file(); 3];
    let plan = Plan::for_views(&views, &halves, u64::MAX >> 1);
    assert_eq!(plan.volume(), u64::MAX);
    assert_eq!(plan.measures().bytes, u64::MAX);
}

#[test]
fn plans_beyond_a_limit_of_pairs_are_refused() {
    let dealt = |count: u64| {
        let part = |p: u64| FallsSet::segment(p, 1).unwrap();
        partition(0, count, (0..count).map(part).collect())
    };
    let (a, b) = (dealt(1009), dealt(1013));
    let refused = Plan::between_within(&a, &b, 1 << 40, 1000).unwrap_err();
    assert_eq!(refused.most, 1000);
    assert_eq!(
        Plan::between_within(&a, &a, 1 << 40, 1009)
            .unwrap()
            .transfers()
            .len(),
        1009
    );
}
