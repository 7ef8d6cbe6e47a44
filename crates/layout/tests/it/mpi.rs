//! MPI datatypes against type maps written out byte by byte.
//!
//! The seed is fixed; `PROPTEST_CASES` makes the runs longer.

use crate::type_maps::{basic, check, darray_of, map_naive};
use falls::{FallsSet, MAX_OFFSET, Periodic, Reason, Segment};
use layout::mpi::{Datatype, Distribute, FileView};
use layout::sequence::Overlap;
use layout::{AccessDesc, LayoutError, LayoutErrorKind, Order};
use proptest::prelude::*;
use testkit::laws::config;

/// Views of a type against tiles written out.
fn check_view(t: &Datatype, displacement: i64, k: u64) {
    let bytes = map_naive(t).bytes();
    let view = FileView::new(displacement, &basic(1), t).unwrap();
    let n = bytes.len() as u64;
    let at = |k: u64| displacement + (k / n) as i64 * t.extent() + bytes[(k % n) as usize];
    if n == 0 {
        assert_eq!(
            (view.select(k), view.sequence(0..k).unwrap().size()),
            (None, 0)
        );
        assert!(view.to_periodic().unwrap().is_empty());
        return;
    }
    assert_eq!(view.select(k), Some(at(k)));
    let part = view.sequence(k..k + 2 * n + 1).unwrap();
    let part: Vec<i64> = part.runs().flat_map(|r| r.start..r.end()).collect();
    assert_eq!(
        part,
        (k..k + 2 * n + 1).map(at).collect::<Vec<_>>(),
        "{t:?}"
    );
    let two_tiles: Vec<i64> = (0..2 * n).map(at).collect();
    let legal = two_tiles.windows(2).all(|w| w[0] < w[1]) && bytes[0] >= 0;
    match view.to_periodic() {
        Ok(set) => {
            assert!(legal, "{t:?}");
            assert_eq!(set.period() as i64, t.extent());
            let found: Vec<u64> = (k..k + 2 * n).map(|k| set.select(k).unwrap()).collect();
            assert!(
                found.iter().map(|&x| x as i64).eq((k..k + 2 * n).map(at)),
                "{t:?}"
            );
            // Back: the same bytes for ever, extent = period.
            let (displacement, back) = Datatype::from_periodic(&set).unwrap();
            assert_eq!(
                (back.size(), back.lb(), back.extent() as u64),
                (n, 0, set.period())
            );
            let again = FileView::new(displacement, &basic(1), &back)
                .unwrap()
                .to_periodic()
                .unwrap();
            assert!(
                found
                    .iter()
                    .enumerate()
                    .all(|(i, &x)| again.select(k + i as u64) == Some(x))
            );
        }
        Err(e) => {
            assert!(!legal, "{t:?}: {e}");
            assert_eq!(e.argument_name(), "filetype");
        }
    }
}

/// Any small type. Types whose maps grow too long are replaced by their old type.
fn types() -> impl Strategy<Value = Datatype> {
    let leaf = prop_oneof![6 => 1..5i64, 1 => Just(0i64)].prop_map(basic);
    leaf.prop_recursive(4, 10, 3, |inner| {
        let displs = || prop::collection::vec(-6..12i64, 0..4);
        let blocks = || prop::collection::vec((0..3i64, -6..12i64), 0..4);
        let array = prop::collection::vec((1..5i64, 0..100i64, 0..100i64), 1..4);
        let grid = prop::collection::vec((1..6i64, 1..4i64, 0..9u32), 1..3);
        let order = || prop_oneof![Just(Order::C), Just(Order::Fortran)];
        let build = |made: Result<Datatype, LayoutError>, old: Datatype| match made {
            Ok(t) if t.size() <= 400 && t.extent().abs() < 100_000 => t,
            Ok(_) => old,
            Err(e) => panic!("{e}"),
        };
        prop_oneof![
            (inner.clone(), 0..4i64).prop_map(move |(o, n)| build(Datatype::contiguous(n, &o), o)),
            (inner.clone(), 0..4i64, 0..3i64, -4..6i64)
                .prop_map(move |(o, c, b, s)| build(Datatype::vector(c, b, s, &o), o)),
            (inner.clone(), 0..4i64, 0..3i64, -20..40i64)
                .prop_map(move |(o, c, b, s)| build(Datatype::hvector(c, b, s, &o), o)),
            (inner.clone(), blocks(), any::<bool>()).prop_map(move |(o, list, bytes)| {
                let (b, d): (Vec<i64>, Vec<i64>) = list.into_iter().unzip();
                let made = if bytes {
                    Datatype::hindexed(&b, &d, &o)
                } else {
                    Datatype::indexed(&b, &d, &o)
                };
                build(made, o)
            }),
            (inner.clone(), displs(), 0..3i64, any::<bool>()).prop_map(move |(o, d, b, bytes)| {
                let made = if bytes {
                    Datatype::hindexed_block(b, &d, &o)
                } else {
                    Datatype::indexed_block(b, &d, &o)
                };
                build(made, o)
            }),
            prop::collection::vec((inner.clone(), 0..3i64, -20..60i64), 1..4).prop_map(
                move |list| {
                    let olds: Vec<Datatype> = list.iter().map(|x| x.0.clone()).collect();
                    let b: Vec<i64> = list.iter().map(|x| x.1).collect();
                    let d: Vec<i64> = list.iter().map(|x| x.2).collect();
                    build(Datatype::structure(&b, &d, &olds), olds[0].clone())
                }
            ),
            (inner.clone(), array, order()).prop_map(move |(o, dims, order)| {
                let sizes: Vec<i64> = dims.iter().map(|d| d.0).collect();
                let subs: Vec<i64> = dims.iter().map(|d| 1 + d.1 % d.0).collect();
                let starts: Vec<i64> = dims.iter().map(|d| d.2 % (d.0 - d.1 % d.0)).collect();
                build(Datatype::subarray(&sizes, &subs, &starts, order, &o), o)
            }),
            (inner.clone(), grid, 0..1000i64, order()).prop_map(move |(o, dims, rank, order)| {
                build(darray_of(&dims, rank, order, &o), o)
            }),
            (inner.clone(), -9..9i64, -3..30i64)
                .prop_map(move |(o, lb, ex)| build(Datatype::resized(lb, ex, &o), o)),
            inner.prop_map(move |o| build(Datatype::dup(&o), o)),
        ]
    })
}

/// Numbers that break arithmetic: small ones, and neighbours of powers of two.
fn extremes() -> impl Strategy<Value = i64> {
    prop_oneof![
        3 => -3..6i64,
        1 => (0..64u32, -2..3i64, any::<bool>()).prop_map(|(bit, off, down)| {
            let x = (1u64 << bit).wrapping_add_signed(off) as i64;
            if down { x.wrapping_neg() } else { x }
        }),
    ]
}

/// One more constructor around `old`, whatever the numbers are.
fn wrap(old: &Datatype, kind: u8, n: &[i64]) -> Result<Datatype, LayoutError> {
    let dealt = [
        Distribute::Cyclic(Some(n[3])),
        Distribute::Block(Some(n[4])),
    ];
    match kind {
        0 => Datatype::contiguous(n[0], old),
        1 => Datatype::vector(n[0], n[1], n[2], old),
        2 => Datatype::hvector(n[0], n[1], n[2], old),
        3 => Datatype::indexed(&n[..3], &n[3..6], old),
        4 => Datatype::hindexed(&n[..3], &n[3..6], old),
        5 => Datatype::indexed_block(n[0], &n[1..6], old),
        6 => Datatype::hindexed_block(n[0], &n[1..6], old),
        7 => Datatype::structure(&n[..2], &n[2..4], &[old.clone(), basic(3)]),
        8 => Datatype::subarray(&n[..2], &n[2..4], &n[4..6], Order::C, old),
        9 => Datatype::darray(n[0], n[1], &n[5..7], &dealt, &n[7..9], Order::Fortran, old),
        10 => Datatype::resized(n[0], n[1], old),
        _ => Datatype::dup(old),
    }
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn seed000_s23_extreme_numbers_are_refused_or_right(
        size in 0..9i64,
        calls in prop::collection::vec((0..12u8, prop::collection::vec(extremes(), 9)), 1..6),
        k in any::<u64>(),
        displacement in extremes(),
    ) {
        let mut t = basic(size);
        for (kind, numbers) in calls {
            if let Ok(next) = wrap(&t, kind, &numbers) {
                t = next;
            }
            let (seq, size) = (t.to_sequence(), t.size());
            prop_assert_eq!(i128::from(t.ub()), i128::from(t.lb()) + i128::from(t.extent()));
            let inside = |x: Option<i64>| x.is_some_and(|x| seq.hull().unwrap().contains(&x));
            if size > 0 {
                prop_assert!(inside(seq.select(0)) && inside(seq.select(size - 1)) && inside(seq.select(k % size)));
                prop_assert_eq!(seq.runs_in(k % size..size).next().map(|r| r.start), seq.select(k % size));
                let part = seq.slice(k % size..size);
                prop_assert_eq!(part.size(), size - k % size);
                prop_assert_eq!(part.select(0), seq.select(k % size));
            }
            t.overlap();
            if let Ok((base, set)) = t.to_set() {
                prop_assert_eq!(set.size(), size);
                let back = Datatype::from_set(base, &set).unwrap();
                prop_assert_eq!((back.size(), back.true_lb(), back.true_extent()), (size, t.true_lb(), t.true_extent()));
            }
            if let Ok(view) = FileView::new(displacement, &basic(1), &t) {
                if let Ok(set) = view.to_periodic() {
                    let far = view.select(k).filter(|&x| x < i64::MAX).map(|x| x as u64);
                    prop_assert_eq!(set.select(k), far);
                }
                let _ = view.sequence(k..k.saturating_add(100));
            }
            if let Ok(d) = AccessDesc::from_datatype(&t) {
                prop_assert_eq!((d.actual(), d.extent()), (size, t.extent()));
                if size > 0 {
                    prop_assert_eq!(d.position(k % size), seq.select(k % size));
                }
            }
        }
    }

    #[test]
    fn seed000_s23_all_constructors_agree_with_type_maps(t in types(), k in 0..40u64) {
        check(&t);
        check_view(&t, 7, k);
    }

    #[test]
    fn seed000_s23_sets_become_datatypes_and_come_back(
        list in prop::collection::vec((0..9u64, 1..5u64), 0..40),
        levels in prop::collection::vec((1..4u64, 0..9u64), 0..3),
        tail in 0..9u64,
        at in 0..50u64,
    ) {
        let mut end = 0;
        let segments: Vec<Segment> = list.iter().map(|&(gap, len)| {
            end += gap + len;
            Segment::new(end - len, len).unwrap()
        }).collect();
        let mut set = FallsSet::from_segments(&segments).unwrap();
        for (count, gap) in levels {
            set = set.repeat(count, set.end() + gap).unwrap();
        }
        let periodic = Periodic::new(at, set.end() + tail + 1, set.clone()).unwrap();
        let (displacement, t) = Datatype::from_periodic(&periodic).unwrap();
        prop_assert_eq!((displacement, t.size()), (at as i64, set.size()));
        prop_assert_eq!((t.lb(), t.extent() as u64), (0, periodic.period()));
        let view = FileView::new(displacement, &basic(1), &t).unwrap().to_periodic().unwrap();
        prop_assert!(view.segments(0..3 * periodic.period()).eq(periodic.segments(0..3 * periodic.period())));
        let (base, back) = t.to_set().unwrap();
        prop_assert!(back.shift(base as u64).unwrap().same_bytes(&set));
    }
}

#[test]
fn seed000_s23_bounds_stick_once_they_are_explicit() {
    let byte = basic(1);
    let marked = Datatype::resized(-2, 10, &byte).unwrap();
    let mixed = Datatype::structure(&[1, 1], &[100, 0], &[basic(4), marked.clone()]).unwrap();
    assert_eq!((mixed.lb(), mixed.ub(), mixed.true_extent()), (-2, 8, 104));
    // An unused part with explicit bounds contributes nothing.
    let unused = Datatype::structure(&[1, 0], &[100, 0], &[basic(4), marked.clone()]).unwrap();
    assert_eq!(
        (unused.lb(), unused.extent(), unused.has_explicit_bounds()),
        (100, 4, false)
    );
    // resized erases older explicit bounds.
    let again = Datatype::resized(0, 3, &mixed).unwrap();
    assert_eq!((again.lb(), again.extent()), (0, 3));
    let array = Datatype::subarray(&[4], &[1], &[2], Order::C, &byte).unwrap();
    let moved = Datatype::hindexed(&[1], &[10], &array).unwrap();
    assert_eq!((moved.lb(), moved.ub(), moved.true_lb()), (10, 14, 12));
    for t in [mixed, unused, again, array, moved] {
        check(&t);
    }
}

#[test]
fn seed000_s23_views_tile_by_the_extent() {
    let three = Datatype::contiguous(3, &basic(1)).unwrap();
    // The lower bound is not subtracted.
    let shifted = Datatype::resized(-2, 8, &three).unwrap();
    let view = FileView::new(20, &basic(1), &shifted)
        .unwrap()
        .to_periodic()
        .unwrap();
    assert_eq!(
        (view.displacement(), view.period(), view.select(3)),
        (20, 8, Some(28))
    );
    // Tiles that interleave are refused, and still there as a sequence.
    let column = Datatype::resized(0, 1, &Datatype::vector(2, 1, 4, &basic(1)).unwrap()).unwrap();
    let view = FileView::new(0, &basic(1), &column).unwrap();
    let error = view.to_periodic().unwrap_err();
    assert_eq!(
        (error.kind(), error.argument_name()),
        (&LayoutErrorKind::NotMonotone, "filetype")
    );
    let order: Vec<i64> = view
        .sequence(0..6)
        .unwrap()
        .runs()
        .map(|r| r.start)
        .collect();
    assert_eq!(order, [0, 4, 1, 5, 2, 6]);
    // Negative displacements, wrong order, and etypes that do not fit.
    let below = Datatype::hindexed(&[1], &[-4], &basic(4)).unwrap();
    assert!(
        FileView::new(100, &basic(4), &below)
            .unwrap()
            .to_periodic()
            .is_err()
    );
    let descending = Datatype::indexed(&[1, 1], &[1, 0], &basic(4)).unwrap();
    let error = FileView::new(0, &basic(4), &descending)
        .unwrap()
        .to_periodic()
        .unwrap_err();
    assert!(error.to_string().contains("indexed"), "{error}");
    let refused = |d, e: &Datatype, f: &Datatype| FileView::new(d, e, f).unwrap_err();
    assert_eq!(
        refused(-1, &basic(1), &three).argument_name(),
        "displacement"
    );
    assert_eq!(refused(0, &basic(2), &three).argument_name(), "filetype");
    assert_eq!(refused(0, &basic(0), &three).argument_name(), "etype");
    // A filetype without bytes is a view of nothing.
    let nothing = Datatype::resized(0, 12, &Datatype::contiguous(0, &three).unwrap()).unwrap();
    let view = FileView::new(5, &basic(4), &nothing)
        .unwrap()
        .to_periodic()
        .unwrap();
    assert_eq!(
        (view.displacement(), view.period(), view.is_empty()),
        (5, 12, true)
    );
    assert!(
        FileView::new(i64::MAX, &basic(1), &three)
            .unwrap()
            .to_periodic()
            .is_ok()
    );
    let far = Datatype::hindexed(&[1], &[4], &three).unwrap();
    let error = FileView::new(i64::MAX, &basic(1), &far)
        .unwrap()
        .to_periodic()
        .unwrap_err();
    assert_eq!(error.kind(), &LayoutErrorKind::Overflow);
}

#[test]
fn seed000_s23_refusals_name_the_innermost_constructor() {
    let int = basic(4);
    let named = |t: &Datatype| {
        let error = t.to_set().unwrap_err();
        assert_eq!(error.kind(), &LayoutErrorKind::NotMonotone);
        error.detail().split(' ').nth(1).unwrap().to_string()
    };
    let backwards = Datatype::vector(3, 1, -1, &int).unwrap();
    assert_eq!(named(&backwards), "vector");
    assert_eq!(
        named(&Datatype::contiguous(2, &Datatype::dup(&backwards).unwrap()).unwrap()),
        "vector"
    );
    let column = Datatype::resized(0, 4, &Datatype::vector(4, 1, 4, &int).unwrap()).unwrap();
    assert!(column.to_set().is_ok());
    assert_eq!(
        named(&Datatype::contiguous(2, &column).unwrap()),
        "contiguous"
    );
    let twice = Datatype::structure(&[1, 1], &[0, 3], &[int.clone(), int.clone()]).unwrap();
    assert_eq!(named(&twice), "struct");
    assert_eq!(
        named(&Datatype::hindexed_block(1, &[8, 0], &int).unwrap()),
        "hindexed_block"
    );
    // A part that is not used does no harm.
    let idle = Datatype::structure(&[0, 1], &[0, 3], &[backwards, int]).unwrap();
    assert!(idle.to_set().is_ok());
}

#[test]
fn seed000_s23_size_follows_the_nesting() {
    let double = basic(8);
    let n = 1 << 20;
    let column = Datatype::vector(n, 1, n, &double).unwrap();
    let columns = Datatype::contiguous(n, &Datatype::resized(0, 8, &column).unwrap()).unwrap();
    assert_eq!(
        (columns.size(), columns.overlap()),
        (8 << 40, Overlap::Never)
    );
    assert!(columns.to_sequence().node_count() <= 2);
    assert!(!columns.is_monotone());
    let part = Datatype::subarray(
        &[n, n, 64],
        &[n / 2, n / 4, 16],
        &[7, 9, 48],
        Order::C,
        &double,
    )
    .unwrap();
    let (base, set) = part.to_set().unwrap();
    assert_eq!(
        (base, part.extent()),
        (8 * (48 + 64 * (9 + 7 * n)), 8 * 64 * n * n)
    );
    assert!(set.node_count() <= 2, "{set}");
    let dealt = [
        Distribute::Cyclic(Some(3)),
        Distribute::Block(None),
        Distribute::Cyclic(Some(5)),
    ];
    for rank in [0, 17, 63] {
        let t = Datatype::darray(
            64,
            rank,
            &[n - 1, n, n + 1],
            &dealt,
            &[4, 4, 4],
            Order::Fortran,
            &basic(2),
        )
        .unwrap();
        let (_, set) = t.to_set().unwrap();
        assert_eq!(set.size(), t.size());
        assert!(set.node_count() <= 30, "{}", set.node_count());
    }
    // A long regular index list folds; an irregular one is a list of segments.
    let displs: Vec<i64> = (0..500_000).map(|i| 3 * i).collect();
    let regular = Datatype::indexed_block(2, &displs, &double).unwrap();
    assert_eq!(regular.to_sequence().node_count(), 1);
    let mut at = 0;
    let displs: Vec<i64> = (0..500_000i64)
        .map(|i| {
            at += 2
                + i.wrapping_mul(i).wrapping_mul(2_654_435_761).rem_euclid(11)
                + (i % 7) * (i % 5);
            at
        })
        .collect();
    let irregular = Datatype::indexed_block(1, &displs, &double).unwrap();
    assert!(irregular.is_monotone());
    let (base, set) = irregular.to_set().unwrap();
    assert!(set.is_segment_list());
    assert_eq!((set.size(), base), (4_000_000, displs[0] * 8));
    // Copies share it.
    let many = Datatype::contiguous(1_000_000, &irregular).unwrap();
    assert_eq!(many.to_set().unwrap().1.size(), 4_000_000_000_000);
}

#[test]
fn seed000_s23_numbers_that_do_not_fit_are_refused() {
    let int = basic(4);
    let overflow = |made: Result<Datatype, LayoutError>| {
        let error = made.unwrap_err();
        assert_eq!(error.kind(), &LayoutErrorKind::Overflow, "{error}");
        error.argument_name().to_string()
    };
    assert_eq!(overflow(Datatype::contiguous(i64::MAX, &int)), "count");
    assert_eq!(overflow(Datatype::vector(2, 1, i64::MAX, &int)), "stride");
    assert_eq!(
        overflow(Datatype::hvector(i64::MAX, i64::MAX, i64::MIN, &int)),
        "blocklen"
    );
    assert_eq!(overflow(Datatype::hvector(3, 1, i64::MIN, &int)), "stride");
    assert_eq!(
        overflow(Datatype::indexed(&[1, 1], &[0, i64::MAX], &int)),
        "displs[1]"
    );
    assert_eq!(
        overflow(Datatype::hindexed(&[1], &[i64::MAX], &int)),
        "displs[0]"
    );
    assert_eq!(
        overflow(Datatype::indexed(&[i64::MAX], &[i64::MIN], &int)),
        "displs[0]"
    );
    let marked = Datatype::resized(i64::MIN, i64::MAX, &int).unwrap();
    overflow(Datatype::vector(i64::MAX, i64::MAX, i64::MIN, &marked));
    overflow(Datatype::indexed(&[i64::MAX], &[i64::MIN], &marked));
    overflow(Datatype::structure(
        &[1, 1],
        &[i64::MIN, i64::MAX - 9],
        &[int.clone(), int.clone()],
    ));
    assert_eq!(overflow(Datatype::resized(i64::MAX, 1, &int)), "ub");
    let huge = [i64::MAX, i64::MAX];
    assert_eq!(
        overflow(Datatype::subarray(&huge, &[1, 1], &[0, 0], Order::C, &int)),
        "sizes"
    );
    let dealt = [Distribute::None; 2];
    assert_eq!(
        overflow(Datatype::darray(
            1,
            0,
            &huge,
            &dealt,
            &[1, 1],
            Order::C,
            &int
        )),
        "gsizes"
    );
    // A stride that no second block uses is no reason to refuse.
    assert_eq!(Datatype::vector(1, 2, i64::MAX, &int).unwrap().size(), 8);
    // Right up to the limit.
    let whole = Datatype::contiguous(MAX_OFFSET as i64, &basic(1)).unwrap();
    assert_eq!(whole.extent(), i64::MAX);
    assert_eq!(whole.to_set().unwrap().1.size(), MAX_OFFSET);
    // Negative counts and arrays of different length are the caller's mistakes.
    let argument = |made: Result<Datatype, LayoutError>| {
        let error = made.unwrap_err();
        assert_eq!(error.kind(), &LayoutErrorKind::Argument, "{error}");
        error.argument_name().to_string()
    };
    assert_eq!(argument(Datatype::basic(-1)), "size");
    assert_eq!(argument(Datatype::contiguous(-1, &int)), "count");
    assert_eq!(argument(Datatype::vector(1, -1, 0, &int)), "blocklen");
    assert_eq!(
        argument(Datatype::indexed(&[1, -2], &[0, 9], &int)),
        "blocklens[1]"
    );
    assert_eq!(argument(Datatype::hindexed(&[1, 2], &[0], &int)), "displs");
    assert_eq!(
        argument(Datatype::indexed_block(-1, &[0], &int)),
        "blocklen"
    );
    assert_eq!(argument(Datatype::structure(&[1], &[0], &[])), "olds");
    assert_eq!(
        argument(Datatype::structure(&[-1], &[0], &[int])),
        "blocklens[0]"
    );
    // Constructors inside each other have a limit, too.
    let mut deep = basic(1);
    let error = loop {
        match Datatype::dup(&deep) {
            Ok(next) => deep = next,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), &LayoutErrorKind::Falls(Reason::Depth));
}

#[test]
fn seed000_s23_datatypes_print_as_calls() {
    let set: FallsSet = "{(0,15,32,2,{(0,0,4,2),(8,9,4,2)}),(100,107,50,3)}"
        .parse()
        .unwrap();
    let (_, t) = Datatype::from_periodic(&Periodic::new(0, 300, set).unwrap()).unwrap();
    assert_eq!(
        t.calls(),
        [
            "MPI_Datatype t0, t1, t2, t3, t4, t5, t6;",
            "MPI_Type_create_hvector(2, 1, 4, MPI_BYTE, &t0);",
            "MPI_Type_create_hvector(2, 2, 4, MPI_BYTE, &t1);",
            "MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){t0, t1}, &t2);",
            "MPI_Type_create_hvector(2, 1, 32, t2, &t3);",
            "MPI_Type_create_hvector(3, 8, 50, MPI_BYTE, &t4);",
            "MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 100}, (MPI_Datatype[]){t3, t4}, &t5);",
            "MPI_Type_create_resized(t5, 0, 300, &t6);",
            "MPI_Type_commit(&t6);",
        ]
    );
    // Shared types are made once; large counts use the large-count calls.
    let int = basic(4);
    let pair = Datatype::structure(&[1, 1], &[0, 8], &[int.clone(), int.clone()]).unwrap();
    assert_eq!(pair.calls().len(), 4);
    let large = Datatype::hvector(1 << 40, 2, 8, &int).unwrap();
    assert_eq!(
        large.calls()[2],
        "MPI_Type_create_hvector_c(1099511627776, 2, 8, t0, &t1);"
    );
    let list = Datatype::hindexed(&[1, 1 << 40], &[0, 8], &int).unwrap();
    assert!(list.calls()[2].contains("(MPI_Count[]){1, 1099511627776}, (MPI_Count[]){0, 8}"));
    let dealt = [Distribute::Block(None), Distribute::Cyclic(Some(2))];
    let array =
        Datatype::darray(4, 1, &[8, 8], &dealt, &[2, 2], Order::Fortran, &basic(1)).unwrap();
    assert!(array.calls()[1].contains("MPI_DISTRIBUTE_DFLT_DARG, 2}"));
    assert!(array.calls()[1].ends_with("MPI_ORDER_FORTRAN, MPI_BYTE, &t0);"));
    assert!(basic(1).calls().is_empty());
}

#[test]
fn seed000_s23_shared_types_stay_small() {
    // Each level holds the one below three times, at uneven distances: 3^39 blocks in 40 types.
    let tower = |step: &dyn Fn(u32, &Datatype) -> i64| {
        (0..39).fold(basic(1), |t, level| {
            let step = step(level, &t);
            let olds = [t.clone(), t.clone(), t];
            Datatype::structure(&[1, 1, 1], &[0, step, 2 * step + 1], &olds).unwrap()
        })
    };
    let ascending = tower(&|_, t| t.extent());
    let interleaved = tower(&|level, _| 3i64.pow(level));
    assert!(ascending.is_monotone() && !interleaved.is_monotone());
    assert_eq!(ascending.overlap(), Overlap::Never);
    assert_eq!(interleaved.overlap(), Overlap::Unknown);
    let nodes = LayoutErrorKind::Falls(Reason::Nodes);
    assert_eq!(ascending.to_set().unwrap_err().kind(), &nodes);
    for t in [ascending, interleaved] {
        let seq = t.to_sequence();
        assert_eq!(t.size(), 3u64.pow(39));
        assert_eq!(seq.select(t.size() - 1), seq.hull().map(|h| h.end - 1));
        assert_eq!(AccessDesc::from_datatype(&t).unwrap_err().kind(), &nodes);
        // Each type is made once, in one call.
        assert_eq!(t.calls().len(), 41);
    }
}
