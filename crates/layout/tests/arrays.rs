//! Array constructors against explicit ownership: every entry of a small array is given to its
//! owner by the definition, and the bytes are compared with the sets.

use falls::FallsSet;
use falls::bytes_naive::bytes_naive;
use layout::{
    Alignment, ArrayType, BlockMap, ChunkAxis, ChunkGrid, Distribution, ElementType, Elements,
    Grid, Hpf, NestedStride, Order, OwnerRuns, Pattern, Servers, Slice, SliceAxis, Stripe,
    TemplateAxis, VestaCut, VestaFile, nested_strided,
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

/// All indices of an array, in the order of its bytes.
fn indices_naive(array: &ArrayType) -> Vec<Vec<u64>> {
    let mut all = vec![vec![]];
    // The slowest dimension first, so that it varies slowest.
    let dims: Vec<usize> = match array.order() {
        Order::C => (0..array.dimensions()).collect(),
        Order::Fortran => (0..array.dimensions()).rev().collect(),
    };
    for d in dims {
        let longer = |index: &Vec<u64>| {
            let index = index.clone();
            (0..array.extents()[d]).map(move |i| {
                let mut index = index.clone();
                index.push(i);
                index
            })
        };
        all = all.iter().flat_map(longer).collect();
    }
    if array.order() == Order::Fortran {
        all.iter_mut().for_each(|index| index.reverse());
    }
    all
}

/// Bytes of every owner, where `owner` names those of an index.
fn bytes_of_owners(
    array: &ArrayType,
    count: u64,
    owners: impl Fn(&[u64]) -> Vec<u64>,
) -> Vec<Vec<u64>> {
    let mut bytes = vec![Vec::new(); count as usize];
    let size = array.element().size();
    for (position, index) in indices_naive(array).iter().enumerate() {
        for owner in owners(index) {
            let start = position as u64 * size;
            bytes[owner as usize].extend(start..start + size);
        }
    }
    bytes
}

/// The sets have these bytes, and partition the period.
fn check_elements(elements: &Elements, expected: &[Vec<u64>]) {
    let found: Vec<Vec<u64>> = elements.sets.iter().map(bytes_naive).collect();
    assert_eq!(found, expected);
    if elements.period > 0 {
        Pattern::new(elements.period, elements.sets.clone()).unwrap();
    }
}

fn array(size: u64, extents: &[u64], order: Order) -> ArrayType {
    ArrayType::new(ElementType::Bytes(size), extents, order).unwrap()
}

/// Coordinates to rank, by counting.
fn rank_naive(grid: &[u64], order: Order, coordinates: &[u64]) -> u64 {
    let pairs: Vec<(u64, u64)> = grid
        .iter()
        .copied()
        .zip(coordinates.iter().copied())
        .collect();
    let fold = |rank: u64, (extent, c): &(u64, u64)| rank * extent + c;
    match order {
        Order::C => pairs.iter().fold(0, fold),
        Order::Fortran => pairs.iter().rev().fold(0, fold),
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

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::C), Just(Order::Fortran)]
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
    let chunks = |n: u64| {
        let servers = Servers::first(7, 3).unwrap();
        let dealt =
            ChunkGrid::regular(&[16, 16, 16]).over(&servers, &array(8, &[n, n, n], Order::C));
        dealt.unwrap().element(2).unwrap().node_count()
    };
    // Grids of the same shape modulo the 7 servers.
    assert_eq!(chunks(16 * 15 + 1), chunks(16 * (15 + 7 * 1000) + 1));
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
        "distributions[0]: GEN_BLOCK has 2 lengths for 3 processors; give one for each"
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
        "grid: 2 dimensions for 1 distributed ones; give one for each that is not `*`"
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

    #[test]
    fn seed000_s25_slices_with_steps_and_index_lists(
        axes in proptest::collection::vec(
            (0u64..9, 1i64..5, any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u16>(), 0u8..4), 1..4),
        size in 1u64..4, order in order(),
    ) {
        let extents: Vec<u64> = axes.iter().map(|a| a.0).collect();
        let mut parts = Vec::new();
        let mut chosen: Vec<Vec<u64>> = Vec::new();
        for (extent, step, start, stop, mask, kind) in axes {
            if kind == 0 {
                let list: Vec<u64> = (0..extent).filter(|i| mask >> i & 1 == 1).collect();
                parts.push(SliceAxis::indices(&list).unwrap());
                chosen.push(list);
                continue;
            }
            let start = start.index(extent as usize + 1) as u64;
            let stop = start + stop.index((extent - start) as usize + 1) as u64;
            let list: Vec<u64> = (start..stop).step_by(step as usize).collect();
            parts.push(match kind {
                1 => SliceAxis::counted(start, list.len() as u64, step).unwrap(),
                _ => SliceAxis::range(start, Some(stop), step).unwrap(),
            });
            chosen.push(list);
        }
        let array = array(size, &extents, order);
        let expected = bytes_of_owners(&array, 1, |index| {
            let inside = index.iter().zip(&chosen).all(|(i, list)| list.contains(i));
            if inside { vec![0] } else { vec![] }
        });
        let found = Slice::new(parts).on(&array).unwrap();
        prop_assert_eq!(bytes_naive(&found), expected[0].clone());
    }
}

#[test]
fn seed000_s25_slices_that_do_not_fit_are_refused() {
    let message = |start, stop, step| match SliceAxis::range(start, stop, step) {
        Ok(axis) => Slice::new([axis])
            .on(&array(1, &[8], Order::C))
            .unwrap_err()
            .to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(
        message(7, Some(8), -1),
        "step: -1 is negative; take the ascending slice and reverse it in the caller"
    );
    assert_eq!(message(0, Some(8), 0), "step: 0; give 1 or more");
    assert_eq!(
        message(0, Some(9), 1),
        "slice[0]: reaches to index 9, but the extent is 8"
    );
    assert_eq!(
        message(5, Some(3), 1),
        "stop: 3 lies before the start 5; give 5 or more"
    );
    assert!(SliceAxis::indices(&[1, 1]).is_err());
    assert!(SliceAxis::counted(1, u64::MAX, 3).is_err());
    let dimensions = Slice::new([SliceAxis::ALL])
        .on(&array(1, &[2, 2], Order::C))
        .unwrap_err();
    assert!(dimensions.to_string().contains("give `:`"), "{dimensions}");
}

/// Chunk boundaries along one dimension, by counting.
#[derive(Clone, Debug)]
enum Cut {
    Every(u64),
    Lengths(Vec<u64>),
}

impl Cut {
    /// Chunk, position inside it and its stored length, for index `i`.
    fn place_naive(&self, i: u64) -> (u64, u64, u64) {
        match self {
            Cut::Every(n) => (i / n, i % n, *n),
            Cut::Lengths(lengths) => {
                let mut rest = i;
                for (chunk, &n) in lengths.iter().enumerate() {
                    if rest < n {
                        return (chunk as u64, rest, n);
                    }
                    rest -= n;
                }
                unreachable!("lengths cover the extent")
            }
        }
    }

    fn count_naive(&self, extent: u64) -> u64 {
        match extent {
            0 => 0,
            n => self.place_naive(n - 1).0 + 1,
        }
    }

    fn real(&self) -> ChunkAxis {
        match self {
            Cut::Every(n) => ChunkAxis::Regular(*n),
            Cut::Lengths(lengths) => ChunkAxis::lengths(lengths).unwrap(),
        }
    }
}

fn cut(extent: u64) -> impl Strategy<Value = Cut> {
    let lengths = proptest::collection::vec(1u64..4, extent as usize + 1).prop_map(move |all| {
        let mut end = 0;
        let needed = all.into_iter().take_while(|n| {
            let goes_on = end < extent;
            end += n;
            goes_on
        });
        Cut::Lengths(needed.collect())
    });
    prop_oneof![2 => (1u64..6).prop_map(Cut::Every), 1 => lengths]
}

fn cut_array() -> impl Strategy<Value = (Vec<u64>, Vec<Cut>)> {
    proptest::collection::vec(0u64..14, 1..4).prop_flat_map(|extents| {
        let cuts: Vec<_> = extents.iter().map(|&e| cut(e).boxed()).collect();
        (Just(extents), cuts)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn seed000_s25_chunk_grids_with_padded_edges(
        (extents, cuts) in cut_array(), size in 1u64..4, order in order(),
    ) {
        let array = array(size, &extents, order);
        let real: Vec<ChunkAxis> = cuts.iter().map(Cut::real).collect();
        let chunks = ChunkGrid::new(real).on(&array).unwrap();
        let counts: Vec<u64> = cuts.iter().zip(&extents).map(|(c, &e)| c.count_naive(e)).collect();
        prop_assert_eq!(chunks.counts(), &counts[..]);
        let number = |index: &[u64]| {
            let chunk: Vec<u64> = index.iter().zip(&cuts).map(|(&i, c)| c.place_naive(i).0).collect();
            rank_naive(&counts, Order::C, &chunk)
        };
        let expected = bytes_of_owners(&array, chunks.count(), |index| vec![number(index)]);
        check_elements(&chunks.elements().unwrap(), &expected);
        // Byte j of the array side is byte j of the stored side.
        for (k, array_side) in expected.iter().enumerate() {
            let padded = chunks.padded(k as u64).unwrap();
            let places = bytes_of_owners(&padded.stored, 1, |at| {
                let chunk = chunks.index(k as u64).unwrap();
                let inside = (0..at.len()).all(|d| {
                    (0..extents[d]).any(|i| {
                        let (c, position, stored) = cuts[d].place_naive(i);
                        c == chunk[d] && position == at[d] && stored == padded.stored.extents()[d]
                    })
                });
                if inside { vec![0] } else { vec![] }
            });
            prop_assert_eq!(&bytes_naive(&padded.set), &places[0]);
            prop_assert_eq!(array_side.len(), places[0].len());
        }
    }

    #[test]
    fn seed000_s25_chunks_dealt_over_servers(
        (extents, cuts) in cut_array(), servers in 1u64..8, start in any::<prop::sample::Index>(),
        size in 1u64..3, order in order(),
    ) {
        let array = array(size, &extents, order);
        let start = start.index(servers as usize) as u64;
        let real: Vec<ChunkAxis> = cuts.iter().map(Cut::real).collect();
        let dealt = ChunkGrid::new(real).over(&Servers::first(servers, start).unwrap(), &array).unwrap();
        let counts: Vec<u64> = cuts.iter().zip(&extents).map(|(c, &e)| c.count_naive(e)).collect();
        let expected = bytes_of_owners(&array, servers, |index| {
            let chunk: Vec<u64> = index.iter().zip(&cuts).map(|(&i, c)| c.place_naive(i).0).collect();
            vec![(start + rank_naive(&counts, Order::C, &chunk)) % servers]
        });
        let elements = dealt.elements().unwrap();
        check_elements(&elements, &expected);
        for (i, set) in elements.sets.iter().enumerate() {
            prop_assert_eq!(&dealt.element(i as u64).unwrap(), set);
        }
    }
}

#[test]
fn seed000_s25_chunks_that_do_not_fit_are_refused() {
    let message = |axis: ChunkAxis, extent| {
        let array = array(1, &[extent], Order::C);
        ChunkGrid::new([axis]).on(&array).unwrap_err().to_string()
    };
    assert_eq!(
        message(ChunkAxis::Regular(0), 4),
        "chunks[0]: a length of 0; give at least 1"
    );
    let lengths = |list: &[u64]| ChunkAxis::lengths(list).unwrap();
    assert_eq!(
        message(lengths(&[2, 1]), 4),
        "chunks[0]: the lengths add up to 3, less than the extent 4"
    );
    assert_eq!(
        message(lengths(&[2, 0, 2]), 4),
        "chunks[0]: length 1 is 0; give at least 1"
    );
    assert_eq!(
        message(lengths(&[2, 2, 2]), 4),
        "chunks[0]: the last chunk begins at 4, outside the extent of 4; leave it out"
    );
}

#[test]
fn seed000_s25_striping_over_a_subset_from_a_start() {
    for block in [1u64, 3, 4] {
        for count in 1..6u64 {
            for start in 0..count {
                let numbers: Vec<u64> = (0..count).map(|j| 7 * j + 2).collect();
                let servers = Servers::listed(numbers.clone(), start).unwrap();
                let stripe = Stripe::new(block, servers).unwrap();
                let elements = stripe.elements().unwrap();
                for x in 0..3 * stripe.period() {
                    let server = numbers[((start + x / block) % count) as usize];
                    let owner = (0..count)
                        .find(|&j| stripe.servers().number(j) == server)
                        .unwrap();
                    for (j, set) in elements.sets.iter().enumerate() {
                        let owns = set.contains(x % elements.period);
                        assert_eq!(owns, j as u64 == owner, "byte {x}");
                    }
                }
            }
        }
    }
    let error = Servers::first(4, 4).unwrap_err().to_string();
    assert_eq!(
        error,
        "start: index 4, but there are 4 servers; indices run from 0 to 3"
    );
    assert!(
        Servers::listed([1, 2, 1], 0)
            .unwrap_err()
            .to_string()
            .contains("server 1 is listed twice")
    );
    assert!(Servers::listed([], 0).is_err());
    assert!(Stripe::new(0, Servers::first(4, 0).unwrap()).is_err());
    assert!(Stripe::new(1 << 40, Servers::first(1 << 40, 0).unwrap()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn block_maps_equal_brute_force(
        owners in proptest::collection::vec(0u64..5, 1..40), block in 1u64..6,
    ) {
        let map = BlockMap::new(block, OwnerRuns::new(&owners), 6).unwrap();
        let line = array(block, &[owners.len() as u64], Order::C);
        let expected = bytes_of_owners(&line, 6, |index| vec![owners[index[0] as usize]]);
        check_elements(&map.elements().unwrap(), &expected);
    }

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

    #[test]
    fn nested_strides_equal_brute_force(
        start in 0u64..9, quantity in 0u64..5,
        levels in proptest::collection::vec((0u64..4, 0u64..4), 0..4),
    ) {
        let mut expected: Vec<u64> = (start..start + quantity).collect();
        let (mut real, mut span) = (Vec::new(), quantity);
        for (count, gap) in levels {
            let stride = span + gap;
            let copies = (0..count).flat_map(|k| expected.iter().map(move |x| x + k * stride));
            expected = copies.collect();
            real.push(NestedStride { count, stride });
            span += count.saturating_sub(1) * stride;
        }
        let found = nested_strided(start, quantity, &real).unwrap();
        prop_assert_eq!(bytes_naive(&found), expected);
    }

    #[test]
    fn vesta_groups_equal_brute_force(
        (unit, cells) in (1u64..4, 1u64..8), (vbs, vn, hbs, hn) in (1u64..4, 1u64..4, 1u64..4, 1u64..4),
    ) {
        let file = VestaFile::new(unit, cells).unwrap();
        let cut = VestaCut { vertical_block: vbs, vertical_groups: vn, horizontal_block: hbs, horizontal_groups: hn };
        let groups = file.cut(cut).unwrap();
        prop_assert_eq!(groups.period(), unit * cells * vbs * vn);
        let mut expected = vec![Vec::new(); (vn * hn) as usize];
        for x in 0..groups.period() {
            let (row, cell) = (x / unit / cells, x / unit % cells);
            expected[((row / vbs % vn) * hn + cell / hbs % hn) as usize].push(x);
        }
        check_elements(&groups.elements().unwrap(), &expected);
        prop_assert_eq!(bytes_naive(&groups.group(vn - 1, 0).unwrap()), expected[((vn - 1) * hn) as usize].clone());
        let columns = file.cells().unwrap().elements().unwrap();
        for (cell, set) in columns.sets.iter().enumerate() {
            prop_assert!((0..columns.period).all(|x| set.contains(x) == (x / unit % cells == cell as u64)));
        }
    }
}

#[test]
fn nested_strides_that_interleave_are_refused() {
    let level = |count, stride| NestedStride { count, stride };
    let error = nested_strided(0, 4, &[level(3, 8), level(2, 19)]).unwrap_err();
    assert_eq!(error.argument_name(), "levels[1]");
    assert!(nested_strided(0, 4, &[level(u64::MAX, 8)]).is_err());
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
