//! MPI datatypes against type maps written out byte by byte.
//!
//! The seed is fixed; `PROPTEST_CASES` makes the runs longer.

use falls::{FallsSet, MAX_OFFSET, Periodic, Reason, Segment};
use layout::mpi::{Constructor, Datatype, Distribute, FileView};
use layout::sequence::Overlap;
use layout::{LayoutError, LayoutErrorKind, Order};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn config(cases: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|c| c.parse().ok())
        .unwrap_or(cases);
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(20_004),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn basic(size: i64) -> Datatype {
    Datatype::basic(size).unwrap()
}

/// A type map written out: every basic item with its displacement, and the explicit bounds.
#[derive(Clone, Debug, Default)]
struct Map {
    items: Vec<(i64, i64)>,
    lower: Vec<i64>,
    upper: Vec<i64>,
}

impl Map {
    fn lb(&self) -> i64 {
        let natural = self.items.iter().map(|i| i.0).min();
        self.lower.iter().copied().min().or(natural).unwrap_or(0)
    }

    fn ub(&self) -> i64 {
        let natural = self.items.iter().map(|i| i.0 + i.1).max();
        self.upper.iter().copied().max().or(natural).unwrap_or(0)
    }

    fn extent(&self) -> i64 {
        self.ub() - self.lb()
    }

    fn bytes(&self) -> Vec<i64> {
        self.items.iter().flat_map(|&(d, n)| d..d + n).collect()
    }

    /// Appends a copy of `old` at `at`.
    fn place(&mut self, old: &Map, at: i64) {
        self.items
            .extend(old.items.iter().map(|&(d, n)| (d + at, n)));
        self.lower.extend(old.lower.iter().map(|x| x + at));
        self.upper.extend(old.upper.iter().map(|x| x + at));
    }
}

/// Writes out the type map that the constructors describe.
fn map_naive(t: &Datatype) -> Map {
    let mut map = Map::default();
    let olds: Vec<Map> = t.constructor().olds().iter().map(map_naive).collect();
    let old = olds.first().cloned().unwrap_or_default();
    let ex = old.extent();
    match t.constructor() {
        Constructor::Basic { size } => map.items.push((0, *size)),
        Constructor::Contiguous { count, .. } => (0..*count).for_each(|i| map.place(&old, i * ex)),
        Constructor::Vector {
            count,
            blocklen,
            stride,
            ..
        } => {
            for i in 0..*count {
                (0..*blocklen).for_each(|j| map.place(&old, (i * stride + j) * ex));
            }
        }
        Constructor::Hvector {
            count,
            blocklen,
            stride,
            ..
        } => {
            for i in 0..*count {
                (0..*blocklen).for_each(|j| map.place(&old, i * stride + j * ex));
            }
        }
        Constructor::Indexed {
            blocklens, displs, ..
        } => {
            for (b, d) in blocklens.iter().zip(displs.iter()) {
                (0..*b).for_each(|j| map.place(&old, (d + j) * ex));
            }
        }
        Constructor::Hindexed {
            blocklens, displs, ..
        } => {
            for (b, d) in blocklens.iter().zip(displs.iter()) {
                (0..*b).for_each(|j| map.place(&old, d + j * ex));
            }
        }
        Constructor::IndexedBlock {
            blocklen, displs, ..
        } => {
            for d in displs.iter() {
                (0..*blocklen).for_each(|j| map.place(&old, (d + j) * ex));
            }
        }
        Constructor::HindexedBlock {
            blocklen, displs, ..
        } => {
            for d in displs.iter() {
                (0..*blocklen).for_each(|j| map.place(&old, d + j * ex));
            }
        }
        Constructor::Struct {
            blocklens, displs, ..
        } => {
            for ((b, d), old) in blocklens.iter().zip(displs.iter()).zip(&olds) {
                (0..*b).for_each(|j| map.place(old, d + j * old.extent()));
            }
        }
        Constructor::Subarray {
            sizes,
            subsizes,
            starts,
            order,
            ..
        } => {
            let inside = |index: &[i64]| {
                (0..index.len()).all(|d| (starts[d]..starts[d] + subsizes[d]).contains(&index[d]))
            };
            place_array(&mut map, &old, sizes, *order, &inside);
        }
        Constructor::Darray {
            size,
            rank,
            gsizes,
            distribs,
            psizes,
            order,
            ..
        } => {
            let (mut grid, mut rest) = (*size, *rank);
            let coords: Vec<i64> = psizes
                .iter()
                .map(|p| {
                    grid /= p;
                    let c = rest / grid;
                    rest %= grid;
                    c
                })
                .collect();
            let inside = |index: &[i64]| {
                (0..index.len())
                    .all(|d| owner(index[d], gsizes[d], distribs[d], psizes[d]) == coords[d])
            };
            place_array(&mut map, &old, gsizes, *order, &inside);
        }
        Constructor::Resized { lb, extent, .. } => {
            map.items = old.items;
            map.lower = vec![*lb];
            map.upper = vec![lb + extent];
        }
        Constructor::Dup { .. } => map = old,
    }
    map
}

/// The coordinate that owns index `i` of a dimension.
fn owner(i: i64, gsize: i64, distribute: Distribute, psize: i64) -> i64 {
    match distribute {
        Distribute::None => 0,
        Distribute::Block(darg) => i / darg.unwrap_or((gsize + psize - 1) / psize),
        Distribute::Cyclic(darg) => i / darg.unwrap_or(1) % psize,
    }
}

fn place_array(
    map: &mut Map,
    old: &Map,
    sizes: &[i64],
    order: Order,
    inside: &dyn Fn(&[i64]) -> bool,
) {
    let total: i64 = sizes.iter().product();
    for element in 0..total {
        let (mut index, mut rest) = (vec![0; sizes.len()], element);
        for step in 0..sizes.len() {
            let d = if order == Order::C {
                sizes.len() - 1 - step
            } else {
                step
            };
            index[d] = rest % sizes[d];
            rest /= sizes[d];
        }
        if inside(&index) {
            map.place(old, element * old.extent());
        }
    }
    map.lower = vec![0];
    map.upper = vec![total * old.extent()];
}

/// Every fact about a type against its written-out map.
fn check(t: &Datatype) {
    let map = map_naive(t);
    let bytes = map.bytes();
    let name = t.constructor().name();
    assert_eq!(t.size(), bytes.len() as u64, "{name} {t:?}");
    assert_eq!(
        (t.lb(), t.ub(), t.extent()),
        (map.lb(), map.ub(), map.extent()),
        "{name} {t:?}"
    );
    let low = bytes.iter().min().copied().unwrap_or(0);
    let reach = bytes.iter().max().map_or(0, |h| h + 1 - low);
    assert_eq!((t.true_lb(), t.true_extent()), (low, reach), "{name} {t:?}");
    assert_eq!(t.has_explicit_bounds(), !map.lower.is_empty());
    let sequence: Vec<i64> = t
        .to_sequence()
        .runs()
        .flat_map(|r| r.start..r.end())
        .collect();
    assert_eq!(sequence, bytes, "{name} {t:?}");
    let ascends = bytes.windows(2).all(|w| w[0] < w[1]);
    assert_eq!(t.is_monotone(), ascends, "{t:?}");
    let mut sorted = bytes.clone();
    sorted.sort_unstable();
    let twice = sorted.windows(2).any(|w| w[0] == w[1]);
    assert_eq!(t.overlap() == Overlap::Certain, twice, "{t:?}");
    assert_eq!(t.overlap() == Overlap::Never, !twice, "{t:?}");
    let dense = ascends && bytes.iter().copied().eq(map.lb()..map.ub());
    assert_eq!(t.has_holes(), !dense, "{t:?}");
    match t.to_set() {
        Ok((base, set)) => {
            assert!(ascends);
            let found: Vec<i64> = (0..set.size())
                .map(|k| base + set.select(k).unwrap() as i64)
                .collect();
            assert_eq!(found, bytes, "{t:?}");
            let back = Datatype::from_set(base, &set).unwrap();
            assert!(back.to_sequence().same_order(&t.to_sequence()), "{t:?}");
        }
        Err(e) => {
            assert!(!ascends);
            assert_eq!(e.kind(), &LayoutErrorKind::NotMonotone);
        }
    }
}

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

/// A legal darray from (extent, processes, choice of distribution) per dimension.
fn darray_of(
    dims: &[(i64, i64, u32)],
    rank: i64,
    order: Order,
    old: &Datatype,
) -> Result<Datatype, LayoutError> {
    let gsizes: Vec<i64> = dims.iter().map(|d| d.0).collect();
    let distribs: Vec<Distribute> = dims
        .iter()
        .map(|&(g, p, choice)| match choice {
            0 | 1 => Distribute::None,
            2 | 3 => Distribute::Block(None),
            4 => Distribute::Block(Some((g + p - 1) / p + 1)),
            5 | 6 => Distribute::Cyclic(None),
            n => Distribute::Cyclic(Some(i64::from(n) - 5)),
        })
        .collect();
    let psizes: Vec<i64> = dims.iter().map(|d| if d.2 < 2 { 1 } else { d.1 }).collect();
    let size = psizes.iter().product();
    Datatype::darray(size, rank % size, &gsizes, &distribs, &psizes, order, old)
}

proptest! {
    #![proptest_config(config(3000))]

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

/// Whether the parts of all ranks are disjoint and cover the array.
fn covers(ranks: &[Datatype], elements: u64) {
    let mut seen = vec![0u8; elements as usize];
    for t in ranks {
        let sequence = t.to_sequence();
        assert!(sequence.is_monotone());
        assert_eq!(
            (t.lb(), t.extent() as u64),
            (0, elements),
            "the tile is the whole array"
        );
        for run in sequence.runs() {
            for x in run.start..run.end() {
                seen[x as usize] += 1;
            }
        }
    }
    assert!(seen.iter().all(|&n| n == 1));
}

#[test]
fn seed004_s59_array_types_own_what_brute_force_says() {
    // Distributed arrays: every choice in two dimensions, sizes that do not divide.
    let byte = basic(1);
    let element = Datatype::resized(0, 3, &basic(2)).unwrap();
    for order in [Order::C, Order::Fortran] {
        for first in 0..9 {
            for second in 0..9 {
                for dims in [
                    [(9, 2, first), (10, 3, second)],
                    [(5, 3, first), (4, 2, second)],
                    [(1, 2, first), (7, 3, second)],
                ] {
                    let ranks: i64 = dims.iter().map(|d| if d.2 < 2 { 1 } else { d.1 }).product();
                    let made = |old: &Datatype| -> Vec<Datatype> {
                        (0..ranks)
                            .map(|r| darray_of(&dims, r, order, old).unwrap())
                            .collect()
                    };
                    let all = made(&byte);
                    all.iter().for_each(check);
                    covers(&all, dims.iter().map(|d| d.0 as u64).product());
                    made(&element).iter().for_each(check);
                }
            }
        }
    }
    // One dimension, every length and argument; four dimensions.
    for g in 1..14 {
        for p in 1..5 {
            for choice in 0..9 {
                let dims = [(g, p, choice)];
                let ranks = if choice < 2 { 1 } else { p };
                let all: Vec<Datatype> = (0..ranks)
                    .map(|r| darray_of(&dims, r, Order::C, &byte).unwrap())
                    .collect();
                all.iter().for_each(check);
                covers(&all, g as u64);
            }
        }
    }
    let dims = [(3, 2, 5), (4, 3, 2), (2, 1, 0), (5, 2, 7)];
    for order in [Order::C, Order::Fortran] {
        let all: Vec<Datatype> = (0..12)
            .map(|r| darray_of(&dims, r, order, &byte).unwrap())
            .collect();
        all.iter().for_each(check);
        covers(&all, 3 * 4 * 2 * 5);
    }
}

#[test]
fn seed004_s59_subarrays_own_what_brute_force_says() {
    let element = Datatype::resized(-1, 3, &basic(2)).unwrap();
    for order in [Order::C, Order::Fortran] {
        for sizes in [[4i64, 3, 5], [1, 6, 2]] {
            for code in 0..216i64 {
                let pick = [code % 6, code / 6 % 6, code / 36];
                let subs: Vec<i64> = (0..3).map(|d| 1 + pick[d] % sizes[d]).collect();
                let starts: Vec<i64> = (0..3)
                    .map(|d| pick[(d + 1) % 3] % (sizes[d] - subs[d] + 1))
                    .collect();
                let t = Datatype::subarray(&sizes, &subs, &starts, order, &element).unwrap();
                check(&t);
                assert_eq!((t.lb(), t.extent()), (0, 3 * sizes.iter().product::<i64>()));
            }
        }
    }
    // Fifteen dimensions stay small.
    let t = Datatype::subarray(&[8; 15], &[3; 15], &[2; 15], Order::Fortran, &basic(1)).unwrap();
    let (_, set) = t.to_set().unwrap();
    assert_eq!((set.size(), set.node_count()), (3u64.pow(15), 14));
}

#[test]
fn seed004_s59_examples_of_the_source() {
    let byte = basic(1);
    let sizes = |gsizes: &[i64], distribs: &[Distribute], psizes: &[i64], order| -> Vec<u64> {
        let size = psizes.iter().product();
        (0..size)
            .map(|r| {
                Datatype::darray(size, r, gsizes, distribs, psizes, order, &byte)
                    .unwrap()
                    .size()
            })
            .collect()
    };
    let cyclic = |k| Distribute::Cyclic(Some(k));
    let block = |k| Distribute::Block(Some(k));
    let c = Order::C;
    assert_eq!(
        sizes(&[9, 10], &[cyclic(2), cyclic(2)], &[2, 2], c),
        [30, 20, 24, 16]
    );
    assert_eq!(sizes(&[12], &[cyclic(4)], &[2], c), [8, 4]);
    assert_eq!(sizes(&[14], &[cyclic(4)], &[2], c), [8, 6]);
    assert_eq!(sizes(&[6], &[block(4)], &[2], c), [4, 2]);
    assert_eq!(
        sizes(&[9], &[Distribute::Cyclic(None)], &[4], c),
        [3, 2, 2, 2]
    );
    assert_eq!(sizes(&[4, 6], &[block(2), block(3)], &[2, 2], c), [6; 4]);
    assert_eq!(sizes(&[16], &[block(4)], &[4], c), [4; 4]);
    assert_eq!(sizes(&[8, 8], &[block(4), cyclic(2)], &[2, 2], c), [16; 4]);
    let three = sizes(&[4, 5, 6], &[block(2), cyclic(3), cyclic(2)], &[2, 2, 2], c);
    assert_eq!(three, [24, 12, 16, 8, 24, 12, 16, 8]);
    // Local sizes of A(14,17), (CYCLIC(3),BLOCK) on 3 x 4.
    let local = sizes(
        &[14, 17],
        &[cyclic(3), Distribute::Block(None)],
        &[3, 4],
        Order::Fortran,
    );
    let expected: Vec<u64> = [6, 5, 3]
        .iter()
        .flat_map(|a| [5, 5, 5, 2].map(|b| a * b))
        .collect();
    assert_eq!(local, expected);
    // Rank 2 of a 2 x 2 grid has the coordinates (1, 0).
    let t = Datatype::darray(4, 2, &[4, 4], &[block(2), block(2)], &[2, 2], c, &byte).unwrap();
    assert_eq!(t.true_lb(), 8);
}

#[test]
fn seed004_s60_bad_arguments_of_array_types_are_refused() {
    let int = basic(4);
    let named = |made: Result<Datatype, LayoutError>| {
        let error = made.unwrap_err();
        assert_eq!(error.kind(), &LayoutErrorKind::Argument, "{error}");
        error.argument_name().to_string()
    };
    let sub = |sizes: &[i64], subs: &[i64], starts: &[i64]| {
        named(Datatype::subarray(sizes, subs, starts, Order::C, &int))
    };
    assert_eq!(sub(&[], &[], &[]), "sizes");
    assert_eq!(sub(&[1; 33], &[1; 33], &[0; 33]), "sizes");
    assert_eq!(sub(&[4, 4], &[1], &[0, 0]), "subsizes");
    assert_eq!(sub(&[4, 4], &[1, 1], &[0]), "starts");
    assert_eq!(sub(&[4, 0], &[1, 1], &[0, 0]), "sizes[1]");
    assert_eq!(sub(&[-4], &[1], &[0]), "sizes[0]");
    assert_eq!(sub(&[4], &[0], &[0]), "subsizes[0]");
    assert_eq!(sub(&[4, 4], &[2, 5], &[0, 0]), "subsizes[1]");
    assert_eq!(sub(&[4], &[2], &[-1]), "starts[0]");
    assert_eq!(sub(&[4], &[2], &[3]), "starts[0]");
    assert!(Datatype::subarray(&[4], &[2], &[2], Order::C, &int).is_ok());

    let dar = |size, rank, gsizes: &[i64], distribs: &[Distribute], psizes: &[i64]| {
        named(Datatype::darray(
            size,
            rank,
            gsizes,
            distribs,
            psizes,
            Order::C,
            &int,
        ))
    };
    let block = Distribute::Block(None);
    assert_eq!(dar(1, 0, &[], &[], &[]), "gsizes");
    assert_eq!(dar(4, 0, &[8, 8], &[block], &[2, 2]), "distribs");
    assert_eq!(dar(4, 0, &[8, 8], &[block; 2], &[4]), "psizes");
    assert_eq!(dar(0, 0, &[8], &[block], &[1]), "size");
    assert_eq!(dar(4, 4, &[8], &[block], &[4]), "rank");
    assert_eq!(dar(4, -1, &[8], &[block], &[4]), "rank");
    assert_eq!(dar(4, 0, &[0], &[block], &[4]), "gsizes[0]");
    assert_eq!(dar(4, 0, &[8, 8], &[block; 2], &[4, 0]), "psizes[1]");
    assert_eq!(dar(4, 0, &[8, 8], &[block; 2], &[2, 3]), "psizes");
    assert_eq!(
        dar(4, 0, &[8, 8], &[block; 2], &[1 << 62, 1 << 62]),
        "psizes"
    );
    assert_eq!(
        dar(4, 0, &[8], &[Distribute::Block(Some(1))], &[4]),
        "dargs[0]"
    );
    assert_eq!(
        dar(4, 0, &[8], &[Distribute::Block(Some(0))], &[4]),
        "dargs[0]"
    );
    assert_eq!(
        dar(4, 0, &[8], &[Distribute::Cyclic(Some(0))], &[4]),
        "dargs[0]"
    );
    assert_eq!(
        dar(4, 0, &[8], &[Distribute::Cyclic(Some(-3))], &[4]),
        "dargs[0]"
    );
    assert_eq!(dar(4, 0, &[8], &[Distribute::None], &[4]), "psizes[0]");
    // CYCLIC arguments need not hold the array, and BLOCK ones may exceed it.
    let made = |d| {
        Datatype::darray(4, 3, &[8], &[d], &[4], Order::C, &int)
            .unwrap()
            .size()
    };
    assert_eq!(made(Distribute::Cyclic(Some(1))), 8);
    assert_eq!(made(Distribute::Block(Some(i64::MAX))), 0);
    assert_eq!(made(Distribute::Cyclic(Some(i64::MAX))), 0);
}
