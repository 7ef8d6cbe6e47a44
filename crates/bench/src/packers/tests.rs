//! Statements 50 to 60 of section 6.7 of the redistribution source, one test each, against an
//! element-by-element permutation.

use std::cell::Cell;
use std::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};

use proptest::prelude::*;

use super::stride::logical_block;
use super::walk::{Index, Walk};
use super::*;
use kernels::{Nest, NestError, Program, copy, copy_naive};

/// The runs a processor holds, as `(global start, count, stride, len)`: the whole ones, and
/// the shorter one at the end.
fn dealt_runs(
    dealt: Distribution,
    elements: u64,
    processors: u64,
    processor: u64,
) -> Vec<(u64, u64, u64, u64)> {
    let (unit, round) = (dealt.unit(), dealt.unit() * processors);
    let local = dealt.local_count(elements, processors, processor);
    let mut runs = Vec::new();
    if local >= unit {
        runs.push((processor * unit, local / unit, round, unit));
    }
    if !local.is_multiple_of(unit) {
        runs.push((
            processor * unit + local / unit * round,
            1,
            round,
            local % unit,
        ));
    }
    runs
}

/// One dimension of a distributed array, seen from one processor. A collapsed dimension is dealt
/// to one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DealtDimension {
    /// Elements along the dimension.
    elements: u64,
    /// How they are dealt.
    distribution: Distribution,
    /// Processors along the dimension.
    processors: u64,
    /// This processor's place among them.
    processor: u64,
}

/// Nests that gather one processor's part of a row-major matrix into its local array.
fn gather_part(
    rows: DealtDimension,
    columns: DealtDimension,
    element_bytes: u64,
) -> Result<Vec<Nest>, NestError> {
    let signed = |value: u64| i64::try_from(value).map_err(|_| NestError::SourceOverflow);
    let runs = |dim: DealtDimension| {
        dealt_runs(
            dim.distribution,
            dim.elements,
            dim.processors,
            dim.processor,
        )
    };
    let row_bytes = columns.elements * element_bytes;
    let local_columns =
        columns
            .distribution
            .local_count(columns.elements, columns.processors, columns.processor);
    let local_row = local_columns * element_bytes;
    let mut within_row = Vec::new();
    let mut target = 0;
    for (start, count, stride, len) in runs(columns) {
        let len = len * element_bytes;
        let (start, stride) = (
            signed(start * element_bytes)?,
            signed(stride * element_bytes)?,
        );
        within_row.push(Nest::strided(
            start,
            signed(target)?,
            count,
            stride,
            signed(len)?,
            len,
        )?);
        target += count * len;
    }
    if within_row.is_empty() {
        return Ok(Vec::new());
    }
    let within_row: std::sync::Arc<[Nest]> = within_row.into();
    let mut nests = Vec::new();
    let mut target = 0;
    for (start, count, stride, len) in runs(rows) {
        let (step, local_step) = (signed(row_bytes)?, signed(local_row)?);
        let block = Nest::nested(
            0,
            0,
            len,
            step,
            local_step,
            std::sync::Arc::clone(&within_row),
        )?;
        let (start, stride) = (signed(start * row_bytes)?, signed(stride * row_bytes)?);
        nests.push(Nest::nested(
            start,
            signed(target)?,
            count,
            stride,
            signed(len * local_row)?,
            vec![block],
        )?);
        target += count * len * local_row;
    }
    Ok(nests)
}

/// Section 3.11: whether going through `Cyclic(lcm(x, y))` pays. Two packings, two unpackings and
/// two exchanges at the rate of long copies against one generic packing: only for elements
/// smaller than `crossover_bytes`, 36 on the machine of the source.
fn two_steps_pay(x: u64, y: u64, element_bytes: u64, crossover_bytes: u64) -> bool {
    !x.is_multiple_of(y) && !y.is_multiple_of(x) && element_bytes < crossover_bytes
}

/// Element g of the test arrays: its number in every byte, mixed with the byte's place.
fn element(g: u64, bytes: u64) -> impl Iterator<Item = u8> {
    (0..bytes).map(move |k| (g.wrapping_mul(31) ^ (g >> 8) ^ k.wrapping_mul(97)) as u8)
}

/// Local arrays by dealing out one element after the other.
fn dealt_naive(n: u64, e: u64, p: u64, distribution: Distribution) -> Vec<Vec<u8>> {
    let mut locals = vec![Vec::new(); p as usize];
    for g in 0..n {
        locals[(g / distribution.unit() % p) as usize].extend(element(g, e));
    }
    locals
}

/// Pairs of every kind, none of N, P, x, y dividing another where the kind allows it.
fn pairs(n: u64, p: u64) -> Vec<(Distribution, Distribution)> {
    use Distribution::{Block, Cyclic};
    let block = Distribution::block(n, p);
    vec![
        (Cyclic(6), Cyclic(2)),
        (Cyclic(3), Cyclic(1)),
        (Cyclic(14), Cyclic(7)),
        (Cyclic(2), Cyclic(6)),
        (Cyclic(1), Cyclic(3)),
        (Cyclic(2), Cyclic(34)),
        (Cyclic(1), Cyclic(23)),
        (block, Cyclic(1)),
        (Block(n), Cyclic(1)),
        (Cyclic(1), block),
        (Cyclic(5), block),
        (Cyclic(1), Block(block.unit() + 3)),
        (block, Cyclic(4)),
        (block, Block(block.unit() + 1)),
        (Cyclic(4), Cyclic(6)),
        (Cyclic(7), Cyclic(5)),
        (Cyclic(3), Cyclic(3)),
    ]
}

/// Sizes that leave remainders everywhere.
const SIZES: [(u64, u64); 8] = [
    (1, 1),
    (1, 3),
    (97, 1),
    (97, 3),
    (101, 4),
    (211, 7),
    (1009, 5),
    (1000, 16),
];

fn each_job(mut check: impl FnMut(u64, u64, u64, Distribution, Distribution)) {
    for (n, p) in SIZES {
        for (from, to) in pairs(n, p) {
            for e in [1, 3, 8] {
                check(n, e, p, from, to);
            }
        }
    }
}

fn job(n: u64, e: u64, p: u64, from: Distribution, to: Distribution) -> Redistribution {
    Redistribution::new(n, e, p, from, to).expect("valid")
}

#[test]
fn seed002_s50_distributions_hold_what_dealing_gives() {
    for (n, p) in SIZES {
        for (from, to) in pairs(n, p) {
            for distribution in [from, to, Distribution::Cyclic(1), Distribution::block(n, p)] {
                let locals = dealt_naive(n, 1, p, distribution);
                for (me, local) in locals.iter().enumerate() {
                    assert_eq!(
                        distribution.local_count(n, p, me as u64),
                        local.len() as u64
                    );
                }
                for g in 0..n {
                    assert_eq!(distribution.owner(g, p), g / distribution.unit() % p);
                }
            }
        }
    }
    // Two dimensions: Block-None, Block-Cyclic and Cyclic-Cyclic.
    let (rows, columns, e) = (13, 29, 3);
    let matrix: Vec<u8> = (0..rows * columns).flat_map(|g| element(g, e)).collect();
    let whole = Distribution::Block(columns);
    for (row, column, grid) in [
        (Distribution::block(rows, 4), whole, (4, 1)),
        (
            Distribution::block(rows, 2),
            Distribution::Cyclic(1),
            (2, 3),
        ),
        (Distribution::Cyclic(2), Distribution::Cyclic(5), (3, 2)),
        (Distribution::Cyclic(1), Distribution::Cyclic(1), (2, 2)),
    ] {
        for place in 0..grid.0 * grid.1 {
            let (pr, pc) = (place / grid.1, place % grid.1);
            let mine = |r: u64, c: u64| row.owner(r, grid.0) == pr && column.owner(c, grid.1) == pc;
            let held = (0..rows * columns).filter(|g| mine(g / columns, g % columns));
            let expected: Vec<u8> = held.flat_map(|g| element(g, e)).collect();
            let down = DealtDimension {
                elements: rows,
                distribution: row,
                processors: grid.0,
                processor: pr,
            };
            let across = DealtDimension {
                elements: columns,
                distribution: column,
                processors: grid.1,
                processor: pc,
            };
            let nests = gather_part(down, across, e).expect("small");
            let (mut local, mut naive) = (vec![0; expected.len()], vec![0; expected.len()]);
            copy(&Program::compile(&nests), &matrix, &mut local).expect("in bounds");
            copy_naive(&nests, &matrix, &mut naive);
            assert_eq!(local, expected, "{row} {column} at {pr}, {pc}");
            assert_eq!(naive, expected);
        }
    }
}

#[test]
fn seed002_s51_redistribution_equals_the_element_by_element_permutation() {
    let mut seen = Vec::new();
    each_job(|n, e, p, from, to| {
        let job = job(n, e, p, from, to);
        seen.push(job.kind());
        let result = job
            .run(&dealt_naive(n, e, p, from), UnpackOrder::Synchronous)
            .expect("valid");
        assert!(
            result == dealt_naive(n, e, p, to),
            "N={n} e={e} P={p} {from} to {to}, {:?}",
            job.kind()
        );
    });
    for kind in Kind::ALL {
        assert!(seen.contains(&kind), "{kind:?} is not tested");
    }
}

#[test]
fn seed002_s52_there_and_back_is_the_identity() {
    each_job(|n, e, p, from, to| {
        let before = dealt_naive(n, e, p, from);
        let there = job(n, e, p, from, to)
            .run(&before, UnpackOrder::Asynchronous)
            .expect("valid");
        let back = job(n, e, p, to, from)
            .run(&there, UnpackOrder::Asynchronous)
            .expect("valid");
        assert!(back == before, "N={n} e={e} P={p} {from} to {to}");
    });
}

#[test]
fn seed002_s53_special_kinds_agree_with_gen() {
    each_job(|n, e, p, from, to| {
        let special = job(n, e, p, from, to);
        let generic = special.clone().generic();
        assert_eq!(generic.kind(), Kind::Gen);
        let before = dealt_naive(n, e, p, from);
        for unpacking in [UnpackOrder::Synchronous, UnpackOrder::Asynchronous] {
            let one = special.run(&before, unpacking).expect("valid");
            let other = generic.run(&before, unpacking).expect("valid");
            assert!(
                one == other,
                "N={n} e={e} P={p} {from} to {to}, {:?}",
                special.kind()
            );
        }
    });
}

#[test]
fn seed002_s54_two_steps_through_the_lcm_equal_one() {
    let mut steps = 0;
    each_job(|n, e, p, from, to| {
        if Kind::of(n, p, from, to) != Kind::Gen {
            return;
        }
        steps += 1;
        let middle = between(from.unit(), to.unit()).expect("small");
        let before = dealt_naive(n, e, p, from);
        let first = job(n, e, p, from, middle);
        let second = job(n, e, p, middle, to);
        assert!(first.kind() != Kind::Gen && second.kind() != Kind::Gen);
        let halfway = first
            .run(&before, UnpackOrder::Asynchronous)
            .expect("valid");
        let two = second
            .run(&halfway, UnpackOrder::Asynchronous)
            .expect("valid");
        let one = job(n, e, p, from, to)
            .run(&before, UnpackOrder::Synchronous)
            .expect("valid");
        assert!(two == one, "N={n} e={e} P={p} {from} to {to}");
    });
    assert!(steps > 20);
    assert!(
        two_steps_pay(4, 6, 8, 36) && !two_steps_pay(4, 6, 36, 36) && !two_steps_pay(4, 8, 8, 36)
    );
}

#[test]
fn seed002_s55_unpacking_in_order_and_by_arrival_agree() {
    each_job(|n, e, p, from, to| {
        let job = job(n, e, p, from, to);
        let before = dealt_naive(n, e, p, from);
        let in_order = job.run(&before, UnpackOrder::Synchronous).expect("valid");
        assert!(job.run(&before, UnpackOrder::Asynchronous).expect("valid") == in_order);
        // Packets may arrive in any order: the last processor's first.
        let packets: Vec<Packets> = (0..p as usize)
            .map(|me| job.pack(me, &before[me]).expect("valid"))
            .collect();
        for (me, expected) in in_order.iter().enumerate() {
            let placements = job.placements(me);
            let mut local = vec![0; expected.len()];
            for peer in (0..p as usize).rev() {
                for (_, place) in packets[peer]
                    .places()
                    .iter()
                    .filter(|(target, _)| *target == me)
                {
                    let packet = packets[peer].bytes(&before[peer], place);
                    job.unpack_packet(&placements[peer], packet, &mut local)
                        .expect("in bounds");
                }
            }
            assert!(local == *expected, "N={n} e={e} P={p} {from} to {to}");
        }
    });
}

#[test]
fn seed002_s56_only_min_k_p_packets_are_built() {
    for (k, p) in [(1, 5), (2, 5), (3, 16), (5, 5), (9, 4), (15, 16)] {
        let (y, n) = (3, 10_000);
        let job = job(
            n,
            8,
            p,
            Distribution::Cyclic(k * y),
            Distribution::Cyclic(y),
        );
        assert_eq!(job.kind(), Kind::Kyy);
        for me in 0..p as usize {
            let packets = job.pack(me, &vec![1; job.source_len(me)]).expect("valid");
            assert_eq!(packets.places().len() as u64, k.min(p), "k={k} P={p}");
            assert!(packets.places().iter().all(|(_, place)| !place.is_empty()));
        }
    }
}

thread_local! {
    static DIVISIONS: Cell<u64> = const { Cell::new(0) };
}

/// An integer that counts its divisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DivisionCounter(u64);

fn count_divisions(more: u64) {
    DIVISIONS.set(DIVISIONS.get() + more);
}

/// A function that is told of runs: peer, start, elements.
type Visitor<'a> = &'a mut dyn FnMut(DivisionCounter, DivisionCounter, DivisionCounter);

macro_rules! arithmetic {
    ($($name:ident $method:ident $cost:expr;)*) => {
        $(impl $name for DivisionCounter {
            type Output = DivisionCounter;
            fn $method(self, other: DivisionCounter) -> DivisionCounter {
                count_divisions($cost);
                DivisionCounter($name::$method(self.0, other.0))
            }
        })*
    };
}

arithmetic! { Add add 0; Sub sub 0; Mul mul 0; Div div 1; Rem rem 1; }

impl AddAssign for DivisionCounter {
    fn add_assign(&mut self, other: DivisionCounter) {
        self.0 += other.0;
    }
}

impl SubAssign for DivisionCounter {
    fn sub_assign(&mut self, other: DivisionCounter) {
        self.0 -= other.0;
    }
}

impl From<u8> for DivisionCounter {
    fn from(value: u8) -> DivisionCounter {
        DivisionCounter(u64::from(value))
    }
}

impl Index for DivisionCounter {}

#[test]
fn seed002_s57_special_kinds_do_not_divide_in_their_loops() {
    let walk = |local, x, y| Walk {
        local: DivisionCounter(local),
        x: DivisionCounter(x),
        y: DivisionCounter(y),
        me: DivisionCounter(2),
        processors: DivisionCounter(7),
    };
    let count = |run: &dyn Fn(Visitor)| {
        DIVISIONS.set(0);
        let mut visited = 0;
        run(&mut |_, _, elements| visited += elements.0);
        (DIVISIONS.get(), visited)
    };
    for local in [10, 1000, 50_000] {
        let (kyy, elements) = count(&|visit| walk(local, 12, 4).kyy(visit));
        assert_eq!(elements, local);
        assert!(kyy <= 4, "KYY divides {kyy} times for {local} elements");
        let (xkx_1, _) = count(&|visit| walk(local, 2, 30).xkx_1(visit));
        assert!(xkx_1 <= 4, "XKX-1 divides {xkx_1} times");
        let (xkx_2, _) = count(&|visit| walk(local, 2, 6).xkx_2(visit));
        assert!(xkx_2 <= 6, "XKX-2 divides {xkx_2} times");
        let (bcy, _) = count(&|visit| walk(local, local, 1).bcy(visit));
        assert!(bcy <= 2, "BCY divides {bcy} times");
        let (generic, elements) = count(&|visit| walk(local, 4, 6).generic(visit));
        assert_eq!(elements, local);
        assert!(
            generic <= 2 * local + 4,
            "GEN divides {generic} times for {local} elements"
        );
        assert!(generic >= local, "the counter does not count");
    }
}

proptest! {
    #[test]
    fn seed002_s58_packet_starts_fall_on_distinct_cache_blocks(
        packet in 1u64..200_000,
        packets in 1u64..300,
        line in prop_oneof![Just(32u64), Just(64)],
        blocks in prop_oneof![(9u32..15).prop_map(|bits| 1u64 << bits), 300u64..20_000],
    ) {
        let cache = CacheLevel { bytes: blocks * line, block: line };
        let stride = cache_optimal_stride(packet, packets, 8, cache);
        prop_assert!(stride.bytes >= packet);
        prop_assert_eq!(stride.bytes % line, 0);
        prop_assert_eq!(stride.logical_block, line);
        let mut starts: Vec<u64> = (0..packets).map(|k| k * stride.bytes / line % blocks).collect();
        starts.sort_unstable();
        prop_assert!(starts.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn seed002_s59_copies_longer_than_a_block_use_the_logical_block(
        copy_bytes in 65u64..2000,
        packet in 1u64..100_000,
        packets in 1u64..64,
    ) {
        let cache = CacheLevel { bytes: 1 << 20, block: 64 };
        let logical = logical_block(copy_bytes, 64);
        // 2^ceil(log2(ceil(n / b) + 1)) * b, by searching.
        let mut expected = 64;
        while expected < (copy_bytes.div_ceil(64) + 1) * 64 {
            expected *= 2;
        }
        prop_assert_eq!(logical, expected);
        let stride = cache_optimal_stride(packet, packets, copy_bytes, cache);
        prop_assert_eq!(stride.logical_block, logical);
        prop_assert_eq!(stride.bytes % logical, 0);
        // A copy at any alignment lies within one logical block at an aligned start, so packet
        // starts on distinct logical blocks never share a cache block.
        let blocks = cache.bytes / logical;
        let mut starts: Vec<u64> = (0..packets).map(|k| k * stride.bytes / logical % blocks).collect();
        starts.sort_unstable();
        prop_assert!(starts.windows(2).all(|pair| pair[0] != pair[1]));
    }
}

#[test]
fn seed002_s60_cyclic_to_block_sends_from_place() {
    for (n, p) in SIZES {
        for from in [Distribution::Cyclic(1), Distribution::Cyclic(5)] {
            let job = job(n, 4, p, from, Distribution::block(n, p));
            assert_eq!(job.kind(), Kind::Cbl);
            for me in 0..p as usize {
                let local = vec![7; job.source_len(me)];
                let packets = job.pack(me, &local).expect("valid");
                assert!(packets.in_place(), "nothing is packed");
                let sent: usize = packets.places().iter().map(|(_, place)| place.len()).sum();
                assert_eq!(sent, local.len());
                for (_, place) in packets.places() {
                    assert!(std::ptr::eq(
                        packets.bytes(&local, place).as_ptr(),
                        &raw const local[place.start]
                    ));
                }
            }
        }
    }
}

#[test]
fn bad_redistributions_are_refused() {
    use Distribution::{Block, Cyclic};
    assert_eq!(
        Redistribution::new(10, 0, 2, Cyclic(1), Cyclic(2)),
        Err(RedistributeError::Zero)
    );
    assert_eq!(
        Redistribution::new(10, 1, 0, Cyclic(1), Cyclic(2)),
        Err(RedistributeError::Zero)
    );
    assert_eq!(
        Redistribution::new(10, 1, 2, Cyclic(0), Cyclic(2)),
        Err(RedistributeError::Zero)
    );
    let small = Redistribution::new(10, 1, 2, Block(4), Cyclic(2));
    assert_eq!(small, Err(RedistributeError::BlockTooSmall { block: 4 }));
    let large = Redistribution::new(u64::MAX, 8, 2, Cyclic(1), Cyclic(2));
    assert_eq!(large, Err(RedistributeError::TooLarge));
    let job = job(10, 2, 2, Cyclic(1), Cyclic(2));
    assert_eq!(
        job.pack(0, &[0; 9]).err(),
        Some(RedistributeError::Shape { processor: 0 })
    );
    assert_eq!(
        job.pack(2, &[]).err(),
        Some(RedistributeError::Shape { processor: 2 })
    );
    let mut packets = job.pack(0, &[0; 10]).expect("valid");
    assert!(
        job.clone()
            .generic()
            .pack_again(0, &[0; 10], &mut packets)
            .is_err()
    );
    let received: [&[u8]; 2] = [&[0; 3], &[0; 3]];
    assert!(
        job.unpack(0, &received, &mut [0; 12], UnpackOrder::Synchronous)
            .is_err()
    );
}
