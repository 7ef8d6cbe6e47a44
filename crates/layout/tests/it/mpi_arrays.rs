//! The array types, `subarray` and `darray`, against ownership element by element: which bytes, in
//! which order, with the whole array as tile; and the arguments they refuse.

use crate::type_maps::{basic, check, darray_of};
use layout::mpi::{Datatype, Distribute};
use layout::{LayoutError, LayoutErrorKind, Order};

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
