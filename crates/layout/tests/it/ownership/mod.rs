//! Explicit ownership: every entry of a small array goes to its owners one by one, so that sets can
//! be compared with the definition they were made from.
#![allow(dead_code)] // each test file takes what it needs

use falls::bytes_naive::bytes_naive;
use layout::{ArrayType, ElementType, Elements, Order, Pattern};
use proptest::prelude::*;

/// All indices of an array, in the order of its bytes.
pub(crate) fn indices_naive(array: &ArrayType) -> Vec<Vec<u64>> {
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
pub(crate) fn bytes_of_owners(
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
pub(crate) fn check_elements(elements: &Elements, expected: &[Vec<u64>]) {
    let found: Vec<Vec<u64>> = elements.sets.iter().map(bytes_naive).collect();
    assert_eq!(found, expected);
    if elements.period > 0 {
        Pattern::new(elements.period, elements.sets.clone()).unwrap();
    }
}

pub(crate) fn array(size: u64, extents: &[u64], order: Order) -> ArrayType {
    ArrayType::new(ElementType::Bytes(size), extents, order).unwrap()
}

/// Coordinates to rank, by counting.
pub(crate) fn rank_naive(grid: &[u64], order: Order, coordinates: &[u64]) -> u64 {
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

pub(crate) fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::C), Just(Order::Fortran)]
}
