//! HPF distributions and alignments against explicit ownership: every entry of a small array is
//! given to its owner by the definition, and the bytes are compared with the sets.

use crate::ownership::{array, bytes_of_owners, check_elements, order, rank_naive};
use falls::FallsSet;
use falls::bytes_naive::bytes_naive;
use layout::{
    Alignment, ArrayType, Distribution, ElementType, Elements, Grid, Hpf, Order, OwnerRuns,
    Pattern, TemplateAxis,
};
use proptest::prelude::*;

/// A distribution as its definition: who owns index `i`.
#[derive(Clone, Debug)]
enum Dist {
    Star,
    Block,
    BlockOf(u64),
    Cyclic,
    CyclicOf(u64),
    Gen(Vec<u64>),
    Map(Vec<u64>),
}

impl Dist {
    fn owner_naive(&self, extent: u64, processors: u64, i: u64) -> u64 {
        match self {
            Dist::Star => 0,
            Dist::Block => i / extent.div_ceil(processors),
            Dist::BlockOf(n) => i / n,
            Dist::Cyclic => i % processors,
            Dist::CyclicOf(n) => (i / n) % processors,
            Dist::Map(owners) => owners[i as usize],
            Dist::Gen(lengths) => {
                let owners = lengths.iter().enumerate();
                let mut all = owners.flat_map(|(p, &n)| std::iter::repeat_n(p as u64, n as usize));
                all.nth(i as usize).unwrap()
            }
        }
    }

    fn real(&self) -> Distribution {
        match self {
            Dist::Star => Distribution::Collapsed,
            Dist::Block => Distribution::Block,
            Dist::BlockOf(n) => Distribution::BlockOf(*n),
            Dist::Cyclic => Distribution::Cyclic,
            Dist::CyclicOf(n) => Distribution::CyclicOf(*n),
            Dist::Gen(lengths) => Distribution::gen_block(lengths).unwrap(),
            Dist::Map(owners) => Distribution::indirect(owners),
        }
    }
}

/// An HPF layout of an array equals explicit ownership, element by element and all at once.
fn check_hpf(array: &ArrayType, dists: &[Dist], grid: &[u64], grid_order: Order) {
    let real: Vec<Distribution> = dists.iter().map(Dist::real).collect();
    let hpf = Hpf::new(real, Grid::new(grid, grid_order).unwrap()).unwrap();
    let applied = hpf.on(array).unwrap();
    let expected = bytes_of_owners(array, applied.count(), |index| {
        let mut along = grid.iter();
        let mut coordinates = Vec::new();
        for (d, dist) in dists.iter().enumerate() {
            if !matches!(dist, Dist::Star) {
                let processors = *along.next().unwrap();
                coordinates.push(dist.owner_naive(array.extents()[d], processors, index[d]));
            }
        }
        vec![rank_naive(grid, grid_order, &coordinates)]
    });
    let elements = applied.elements().unwrap();
    check_elements(&elements, &expected);
    for (rank, set) in elements.sets.iter().enumerate() {
        assert_eq!(&applied.element(rank as u64).unwrap(), set);
    }
}

const ORDERS: [Order; 2] = [Order::C, Order::Fortran];

#[test]
fn seed000_s22_one_dimension_of_every_kind() {
    for extent in 0..20 {
        for processors in 1..6 {
            let array = array(3, &[extent], Order::C);
            let mut dists = vec![Dist::Block, Dist::Cyclic];
            dists.extend((1..8).map(Dist::CyclicOf));
            dists.extend((extent.div_ceil(processors).max(1)..12).map(Dist::BlockOf));
            for dist in dists {
                check_hpf(&array, &[dist], &[processors], Order::C);
            }
            check_hpf(&array, &[Dist::Star], &[], Order::C);
        }
    }
}

#[test]
fn seed000_s22_two_dimensions_in_all_orders() {
    let kinds = || {
        [
            Dist::Star,
            Dist::Block,
            Dist::Cyclic,
            Dist::CyclicOf(2),
            Dist::CyclicOf(3),
        ]
    };
    for (rows, columns) in [(6, 8), (7, 5), (1, 9), (9, 1), (0, 4), (4, 0), (3, 3)] {
        for array_order in ORDERS {
            for grid_order in ORDERS {
                for first in kinds() {
                    for second in kinds() {
                        let mut grid = Vec::new();
                        if !matches!(first, Dist::Star) {
                            grid.push(2);
                        }
                        if !matches!(second, Dist::Star) {
                            grid.push(3);
                        }
                        let array = array(2, &[rows, columns], array_order);
                        let dists = [first.clone(), second];
                        check_hpf(&array, &dists, &grid, grid_order);
                    }
                }
            }
        }
    }
}

#[test]
fn seed000_s22_ragged_blocks_leave_late_ranks_short_or_empty() {
    let sizes = |dists: &[Dist], extents: &[u64], grid: &[u64]| -> Vec<u64> {
        let real: Vec<Distribution> = dists.iter().map(Dist::real).collect();
        let hpf = Hpf::new(real, Grid::new(grid, Order::C).unwrap()).unwrap();
        let elements = hpf
            .on(&array(1, extents, Order::C))
            .unwrap()
            .elements()
            .unwrap();
        elements.sets.iter().map(FallsSet::size).collect()
    };
    assert_eq!(sizes(&[Dist::Block], &[9], &[4]), [3, 3, 3, 0]);
    assert_eq!(sizes(&[Dist::Block], &[2], &[4]), [1, 1, 0, 0]);
    assert_eq!(sizes(&[Dist::CyclicOf(4)], &[14], &[2]), [8, 6]);
    let both = [Dist::CyclicOf(2), Dist::CyclicOf(2)];
    assert_eq!(sizes(&both, &[9, 10], &[2, 2]), [30, 20, 24, 16]);
}

#[test]
fn seed000_s22_cyclic_by_block_on_a_fortran_grid() {
    // INTEGER B(14,17), (CYCLIC(3), BLOCK) onto 3x4: processor 5 counted from 1 has rows 3-5 and
    // 12-13 of columns 5-9.
    let array = array(4, &[14, 17], Order::Fortran);
    let grid = Grid::new([3, 4], Order::Fortran).unwrap();
    let hpf = Hpf::new([Distribution::CyclicOf(3), Distribution::Block], grid).unwrap();
    let fifth = hpf.on(&array).unwrap().element(4).unwrap();
    let rows_and_columns = |index: &[u64]| {
        let owned = [3, 4, 5, 12, 13].contains(&index[0]) && (5..10).contains(&index[1]);
        if owned { vec![0] } else { vec![] }
    };
    assert_eq!(
        bytes_naive(&fifth),
        bytes_of_owners(&array, 1, rows_and_columns)[0]
    );
}

/// A distribution for an extent with its number of processors; 1 for `*`.
fn distribution(extent: u64) -> impl Strategy<Value = (Dist, u64)> {
    (1u64..5).prop_flat_map(move |p| {
        let fits = extent.div_ceil(p).max(1);
        prop_oneof![
            2 => Just((Dist::Star, 1)),
            1 => Just((Dist::Block, p)),
            1 => (fits..fits + 4).prop_map(move |n| (Dist::BlockOf(n), p)),
            1 => Just((Dist::Cyclic, p)),
            3 => (1u64..5).prop_map(move |n| (Dist::CyclicOf(n), p)),
            1 => gen_block(extent, p).prop_map(move |lengths| (Dist::Gen(lengths), p)),
            1 => proptest::collection::vec(0..p, extent as usize)
                .prop_map(move |owners| (Dist::Map(owners), p)),
        ]
    })
}

/// `processors` lengths that add up to `extent`.
fn gen_block(extent: u64, processors: u64) -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(0..=extent, processors as usize - 1).prop_map(move |mut cuts| {
        cuts.push(0);
        cuts.push(extent);
        cuts.sort_unstable();
        cuts.windows(2).map(|w| w[1] - w[0]).collect()
    })
}

fn crossed(
    dimensions: std::ops::Range<usize>,
) -> impl Strategy<Value = (Vec<u64>, Vec<(Dist, u64)>)> {
    proptest::collection::vec(0u64..8, dimensions).prop_flat_map(|extents| {
        let dists: Vec<_> = extents.iter().map(|&e| distribution(e).boxed()).collect();
        (Just(extents), dists)
    })
}

fn grid_of(dists: &[(Dist, u64)]) -> Vec<u64> {
    let distributed = dists.iter().filter(|(d, _)| !matches!(d, Dist::Star));
    distributed.map(|(_, p)| *p).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn seed000_s22_crosses_of_one_to_four_dimensions(
        (extents, dists) in crossed(1..5), size in 1u64..4, orders in (order(), order()),
    ) {
        let array = array(size, &extents, orders.0);
        let only: Vec<Dist> = dists.iter().map(|(d, _)| d.clone()).collect();
        check_hpf(&array, &only, &grid_of(&dists), orders.1);
    }

    #[test]
    fn seed004_s72_gen_block_and_indirect_equal_brute_force(
        (extent, p) in (0u64..60, 1u64..7), seed in any::<u64>(), size in 1u64..5,
    ) {
        let line = array(size, &[extent], Order::C);
        let random = |i: u64| (seed ^ i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(29) % 11;
        let map: Vec<u64> = (0..extent).map(|i| random(i / (1 + seed % 4)) % p).collect();
        check_hpf(&line, &[Dist::Map(map)], &[p], Order::C);
        let mut lengths = vec![0; p as usize];
        for i in 0..extent {
            lengths[(random(i) % p) as usize] += 1;
        }
        check_hpf(&line, &[Dist::Gen(lengths)], &[p], Order::C);
    }
}

#[test]
fn seed004_s72_gen_block_of_the_source_and_indirect_in_a_matrix() {
    // The source's example sizes, beside a second dimension.
    let gen_block = Dist::Gen(vec![10, 7, 154]);
    check_hpf(
        &array(2, &[171, 2], Order::C),
        &[gen_block.clone(), Dist::Star],
        &[3],
        Order::C,
    );
    check_hpf(
        &array(1, &[2, 171], Order::C),
        &[Dist::Cyclic, gen_block],
        &[2, 3],
        Order::C,
    );
    let map = Dist::Map(vec![2, 0, 0, 1, 2, 2, 0]);
    check_hpf(
        &array(4, &[7, 3], Order::C),
        &[map.clone(), Dist::Star],
        &[3],
        Order::C,
    );
    check_hpf(
        &array(4, &[3, 7], Order::C),
        &[Dist::Block, map.clone()],
        &[2, 3],
        Order::C,
    );
    check_hpf(
        &array(4, &[7, 7], Order::Fortran),
        &[map.clone(), map],
        &[3, 4],
        Order::Fortran,
    );
}

#[test]
fn seed002_s50_layout_one_dimensional_kinds() {
    for extent in [1, 7, 24, 25] {
        for processors in [1, 3, 4, 8] {
            let line = array(8, &[extent], Order::C);
            let fits = extent.div_ceil(processors);
            for dist in [
                Dist::BlockOf(fits + 1),
                Dist::Block,
                Dist::CyclicOf(3),
                Dist::Cyclic,
            ] {
                check_hpf(&line, &[dist], &[processors], Order::C);
            }
        }
    }
}

#[test]
fn seed002_s50_layout_two_dimensional_kinds() {
    for (rows, columns) in [(8, 8), (9, 10), (5, 3)] {
        let matrix = array(8, &[rows, columns], Order::C);
        check_hpf(&matrix, &[Dist::Block, Dist::Star], &[4], Order::C);
        for k in [1, 2, 3] {
            check_hpf(
                &matrix,
                &[Dist::Block, Dist::CyclicOf(k)],
                &[2, 3],
                Order::C,
            );
            check_hpf(
                &matrix,
                &[Dist::CyclicOf(k), Dist::CyclicOf(2)],
                &[2, 3],
                Order::C,
            );
        }
    }
}

#[test]
fn fifteen_dimensions_fit() {
    for array_order in ORDERS {
        let dists: Vec<Dist> = (0..15)
            .map(|d| match d % 3 {
                0 => Dist::CyclicOf(1),
                1 => Dist::Block,
                _ => Dist::Star,
            })
            .collect();
        let grid = vec![2; 10];
        // 3^15 bytes in total; one element has few enough to list.
        let array = array(1, &[3; 15], array_order);
        let real: Vec<Distribution> = dists.iter().map(Dist::real).collect();
        let applied = Hpf::new(real, Grid::new(grid, Order::C).unwrap()).unwrap();
        let applied = applied.on(&array).unwrap();
        assert_eq!(applied.count(), 1024);
        let last = applied.element(1023).unwrap();
        // The cyclic ones give index 1, the blocks index 2, to the second coordinate.
        assert_eq!(last.size(), 3u64.pow(5));
        let total: u64 = (0..1024).map(|r| applied.element(r).unwrap().size()).sum();
        assert_eq!(total, 3u64.pow(15));
        let weight = |d: u32| match array_order {
            Order::C => 3u64.pow(14 - d),
            Order::Fortran => 3u64.pow(d),
        };
        let first: u64 = (0..15).map(|d| [1, 2, 0][d as usize % 3] * weight(d)).sum();
        assert_eq!(last.select(0), Some(first));
        assert!(last.depth() <= 30, "{}", last.depth());
    }
}

#[test]
fn description_does_not_grow_with_the_array() {
    let nodes = |n: u64| -> Vec<u64> {
        let array = array(8, &[n, n, n], Order::C);
        let kinds = [
            Distribution::CyclicOf(5),
            Distribution::Block,
            Distribution::CyclicOf(3),
        ];
        let hpf = Hpf::new(kinds, Grid::new([2, 2, 2], Order::C).unwrap()).unwrap();
        let sets = hpf.on(&array).unwrap().elements().unwrap().sets;
        sets.iter().map(FallsSet::node_count).collect()
    };
    assert_eq!(nodes(1001), nodes(100_001));
}

#[test]
fn indirect_takes_millions_of_entries() {
    let owners: Vec<u64> = (0u64..2_000_000)
        .map(|i| i.wrapping_mul(i) / 7 % 5)
        .collect();
    let line = ArrayType::new(ElementType::F64, [2_000_000], Order::C).unwrap();
    let hpf = Hpf::new(
        [Distribution::indirect(&owners)],
        Grid::new([5], Order::C).unwrap(),
    );
    let sets = hpf.unwrap().on(&line).unwrap().elements().unwrap().sets;
    assert_eq!(sets.iter().map(FallsSet::size).sum::<u64>(), 16_000_000);
    for i in (0..2_000_000usize).step_by(9973) {
        assert!(sets[owners[i] as usize].contains(8 * i as u64));
    }
    // Beside a distributed dimension the rows share what is inside them.
    let table = ArrayType::new(ElementType::F64, [2_000_000, 6], Order::C).unwrap();
    let kinds = [Distribution::indirect(&owners), Distribution::Cyclic];
    let hpf = Hpf::new(kinds, Grid::new([5, 2], Order::C).unwrap()).unwrap();
    let one = hpf.on(&table).unwrap().element(3).unwrap();
    assert_eq!(
        one.size(),
        owners.iter().filter(|&&o| o == 1).count() as u64 * 24
    );
}

#[test]
fn irregular_maps_still_partition() {
    // Every owner recurs at a distance of its own, so that sets compressed one by one would have no
    // common period.
    let owners: Vec<u64> = (0u64..100_000).map(|i| i * 7919 % 100_003 % 100).collect();
    let line = array(8, &[100_000], Order::C);
    let grid = Grid::new([100], Order::C).unwrap();
    let hpf = Hpf::new([Distribution::indirect(&owners)], grid).unwrap();
    let elements = hpf.on(&line).unwrap().elements().unwrap();
    let pattern = Pattern::new(elements.period, elements.sets).unwrap();
    assert_eq!(pattern.len(), 100);
}

#[test]
fn regular_maps_become_small() {
    let owners: Vec<u64> = (0u64..600_000).map(|i| i / 3 % 1000).collect();
    let runs = OwnerRuns::new(&owners);
    for owner in [0, 1, 999] {
        let set = runs.set(owner, 8).unwrap();
        assert_eq!((set.node_count(), set.size()), (1, 600 * 8));
        assert_eq!(set.select(0), Some(owner * 3 * 8));
    }
}

/// Lists of owners with repetitions inside repetitions.
fn nested_repetitions() -> impl Strategy<Value = Vec<u64>> {
    let leaf = proptest::collection::vec(0u64..4, 1..6);
    let part = leaf.prop_recursive(3, 400, 4, |inner| {
        let parts = proptest::collection::vec((inner, 1usize..6), 1..4);
        parts.prop_map(|parts| {
            let repeated = parts.into_iter().map(|(part, times)| part.repeat(times));
            repeated.flatten().take(600).collect()
        })
    });
    part.boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn seed004_s72_indirect_with_repetitions(owners in nested_repetitions(), step in 1u64..4) {
        let runs = OwnerRuns::new(&owners);
        let line = array(step, &[owners.len() as u64], Order::C);
        let expected = bytes_of_owners(&line, 5, |index| vec![owners[index[0] as usize]]);
        let sets: Vec<FallsSet> = (0..5).map(|owner| runs.set(owner, step).unwrap()).collect();
        check_elements(&Elements { period: line.bytes(), sets }, &expected);
    }
}

/// What is wrong, as users read it.
fn refusal(distribution: Distribution, extent: u64, processors: u64) -> String {
    let grid = Grid::new([processors], Order::C).unwrap();
    let array = array(1, &[extent], Order::C);
    let error = Hpf::new([distribution], grid)
        .unwrap()
        .on(&array)
        .unwrap_err();
    error.to_string()
}

#[test]
fn distributions_that_do_not_suit_are_refused() {
    assert_eq!(
        refusal(Distribution::BlockOf(3), 10, 3),
        "distributions[0]: BLOCK(3) on 3 processors holds 9 of 10 indices; the block must be 4 or more (or use CYCLIC(3))"
    );
    assert_eq!(
        refusal(Distribution::gen_block(&[3, 4]).unwrap(), 8, 2),
        "distributions[0]: the lengths of GEN_BLOCK add up to 7; they must add up to the extent 8"
    );
    assert_eq!(
        refusal(Distribution::gen_block(&[3, 4]).unwrap(), 7, 3),
        "distributions[0]: the lengths of GEN_BLOCK number 2, the processors 3; give one for each"
    );
    assert_eq!(
        refusal(Distribution::indirect(&[0, 1]), 3, 2),
        "distributions[0]: INDIRECT maps 2 indices; it must map all 3 of the extent"
    );
    assert_eq!(
        refusal(Distribution::indirect(&[0, 2]), 2, 2),
        "distributions[0]: INDIRECT names processor 2; they are numbered 0 to 1"
    );
    assert_eq!(
        refusal(Distribution::CyclicOf(0), 2, 2),
        "distributions[0]: CYCLIC(0); blocks have at least 1 index"
    );
    let grid = Grid::new([2, 2], Order::C).unwrap();
    let error = Hpf::new([Distribution::Block, Distribution::Collapsed], grid).unwrap_err();
    assert_eq!(
        error.to_string(),
        "grid: 2 dimensions for 1 distributed; give one for each that is not `*`"
    );
    assert!(Grid::new([2, 0], Order::C).is_err());
    assert!(Grid::new([1 << 40, 1 << 40], Order::C).is_err());
    assert!(ArrayType::new(ElementType::F64, [1 << 40, 1 << 30], Order::C).is_err());
    let empty = ArrayType::new(ElementType::F64, [1 << 40, 1 << 40, 0], Order::C).unwrap();
    assert!(empty.whole().is_empty());
}

#[test]
fn arrays_near_the_limit_work() {
    let array = array(1, &[(1 << 31) - 1, 1 << 32], Order::C);
    let hpf = Hpf::new(
        [Distribution::Cyclic, Distribution::Block],
        Grid::new([3, 5], Order::C).unwrap(),
    );
    let elements = hpf.unwrap().on(&array).unwrap().elements().unwrap();
    let total: u64 = elements.sets.iter().map(FallsSet::size).sum();
    assert_eq!(total, array.bytes());
    Pattern::new(elements.period, elements.sets).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Template and array in up to three dimensions, with every kind of axis.
    #[test]
    fn alignments_equal_brute_force(
        extents in proptest::collection::vec(0u64..7, 1..4),
        wanted in proptest::collection::vec(
            (0u8..6, 1u64..5, 0u64..4, 0u64..3, any::<prop::sample::Index>(), any::<u64>()), 1..4),
        size in 1u64..3, orders in (order(), order()),
    ) {
        let (mut template, mut axes, mut dists) = (Vec::new(), Vec::new(), Vec::new());
        let mut free: Vec<usize> = (0..extents.len()).collect();
        for (kind, stride, offset, beyond, which, seed) in wanted {
            let axis = match kind {
                0 => TemplateAxis::Replicated,
                1 => TemplateAxis::At(offset),
                _ if free.is_empty() => TemplateAxis::At(offset),
                _ => TemplateAxis::Along { dimension: free.remove(which.index(free.len())), stride, offset },
            };
            let extent = match axis {
                TemplateAxis::Along { dimension, .. } => stride * extents[dimension] + offset + beyond,
                _ => offset + 1 + beyond,
            };
            let p = 1 + seed % 4;
            let dist = match seed / 4 % 6 {
                0 => Dist::Star,
                1 => Dist::Block,
                2 => Dist::Cyclic,
                3 => Dist::CyclicOf(1 + seed / 24 % 4),
                4 => Dist::BlockOf(extent.div_ceil(p).max(1) + 1),
                _ => Dist::Map((0..extent).map(|i| (seed >> (i % 50)) % p).collect()),
            };
            template.push(extent);
            axes.push(axis);
            dists.push((dist, p));
        }
        let grid = grid_of(&dists);
        let array = array(size, &extents, orders.0);
        let real: Vec<Distribution> = dists.iter().map(|(d, _)| d.real()).collect();
        let onto = Hpf::new(real, Grid::new(&grid[..], orders.1).unwrap()).unwrap();
        let alignment = Alignment::new(template.clone(), onto, axes.clone()).unwrap();
        let applied = alignment.on(&array).unwrap();
        let expected = bytes_of_owners(&array, applied.count(), |index| {
            // Every coordinate along every grid dimension at which the entry lies.
            let mut places = vec![vec![]];
            for (t, (dist, p)) in dists.iter().enumerate() {
                let at: Vec<u64> = match axes[t] {
                    TemplateAxis::Replicated => (0..template[t]).collect(),
                    TemplateAxis::At(x) => vec![x],
                    TemplateAxis::Along { dimension, stride, offset } => vec![stride * index[dimension] + offset],
                };
                if matches!(dist, Dist::Star) {
                    continue;
                }
                let mut owners: Vec<u64> = at.iter().map(|&x| dist.owner_naive(template[t], *p, x)).collect();
                owners.sort_unstable();
                owners.dedup();
                places = places.iter().flat_map(|c: &Vec<u64>| owners.iter().map(move |&o| {
                    let mut c = c.clone();
                    c.push(o);
                    c
                })).collect();
            }
            places.iter().map(|c| rank_naive(&grid, orders.1, c)).collect()
        });
        let elements = applied.elements().unwrap();
        let found: Vec<Vec<u64>> = elements.sets.iter().map(bytes_naive).collect();
        prop_assert_eq!(found, expected);
        if !alignment.is_replicated() && elements.period > 0 {
            Pattern::new(elements.period, elements.sets).unwrap();
        }
    }
}

#[test]
fn aligned_cyclic_stays_small_whatever_the_extent() {
    let nodes = |extent: u64| {
        let onto = Hpf::new(
            [Distribution::CyclicOf(8)],
            Grid::new([4], Order::C).unwrap(),
        )
        .unwrap();
        let axis = TemplateAxis::Along {
            dimension: 0,
            stride: 3,
            offset: 5,
        };
        let aligned = Alignment::new([3 * extent + 5], onto, [axis]).unwrap();
        let array = ArrayType::new(ElementType::F64, [extent], Order::C).unwrap();
        aligned.on(&array).unwrap().element(1).unwrap().node_count()
    };
    assert_eq!(nodes(32 * 1000), nodes(32 * 1_000_000_000));
    assert!(nodes(32 * 1000) < 40);
}

#[test]
fn alignments_that_do_not_fit_are_refused() {
    let onto = || Hpf::new([Distribution::Block], Grid::new([2], Order::C).unwrap()).unwrap();
    let along = |stride, offset| TemplateAxis::Along {
        dimension: 0,
        stride,
        offset,
    };
    let message = |axis| match Alignment::new([10], onto(), [axis]) {
        Ok(aligned) => aligned
            .on(&array(1, &[5], Order::C))
            .unwrap_err()
            .to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(
        message(along(0, 0)),
        "axes[0]: a stride of 0; give 1 or more"
    );
    assert_eq!(
        message(along(2, 2)),
        "axes[0]: array index 4 lies at 10, outside the template's extent of 10"
    );
    assert_eq!(
        message(TemplateAxis::At(10)),
        "axes[0]: index 10 is outside the template's extent of 10"
    );
    assert!(message(along(u64::MAX, 1)).contains("outside the template"));
    let twice = Alignment::new(
        [10, 10],
        Hpf::new(
            [Distribution::Block, Distribution::Collapsed],
            Grid::new([2], Order::C).unwrap(),
        )
        .unwrap(),
        [along(1, 0), along(1, 0)],
    );
    assert!(twice.unwrap_err().to_string().contains("aligned twice"));
}
