//! Patterns, partitions and views against brute force over explicit bytes.
//!
//! The seed is fixed; `PROPTEST_CASES` makes the runs longer.

use falls::{Falls, FallsSet, Flaw, compress_offsets};
use layout::{
    FileOffset, LayoutError, LayoutErrorKind, Partition, Pattern, SubfileOffset, View, ViewOffset,
};
use proptest::prelude::*;
use testkit::laws::config;

fn set(text: &str) -> FallsSet {
    text.parse().unwrap()
}

fn flaw(result: Result<Pattern, LayoutError>) -> Flaw {
    match result.unwrap_err().kind() {
        LayoutErrorKind::Pattern(flaw) => flaw.clone(),
        other => panic!("{other:?}"),
    }
}

fn refused(period: u64, elements: &[&str]) -> Flaw {
    let sets = elements.iter().map(|e| set(e)).collect();
    flaw(Pattern::new(period, sets))
}

#[test]
fn seed000_s26_bad_partitions_are_refused_with_the_bytes_at_fault() {
    use Flaw::{Gap, Outside, Overlap};
    assert_eq!(
        refused(6, &["{(0,3)}", "{(3,5)}"]),
        Overlap {
            first: 0,
            second: 1,
            byte: 3
        }
    );
    assert_eq!(refused(6, &["{(0,1)}", "{(3,5)}"]), Gap { byte: 2 });
    assert_eq!(refused(6, &["{(1,2)}", "{(3,5)}"]), Gap { byte: 0 });
    assert_eq!(refused(6, &["{(0,2)}", "{(3,4)}"]), Gap { byte: 5 });
    assert_eq!(
        refused(6, &["{(0,2)}", "{(3,6)}"]),
        Outside {
            element: 1,
            byte: 6
        }
    );
    // Interleaved, a billion blocks each: the first fault is named without listing any.
    let many = 1_000_000_000u64;
    let column = |start: u64, len: u64| {
        FallsSet::new(vec![Falls::family(start, len, 16, many).unwrap()]).unwrap()
    };
    let parts = |b: FallsSet| Pattern::new(16 * many, vec![column(0, 4), column(4, 8), b]);
    assert!(parts(column(12, 4)).is_ok());
    let overlap = parts(column(11, 5)).unwrap_err();
    assert_eq!(
        *overlap.kind(),
        LayoutErrorKind::Pattern(Overlap {
            first: 1,
            second: 2,
            byte: 11
        })
    );
    assert_eq!(
        overlap.to_string(),
        "elements: elements 1 and 2 both own byte 11 of the pattern"
    );
    assert_eq!(flaw(parts(column(13, 3))), Gap { byte: 12 });
    let late = FallsSet::new(vec![Falls::family(12, 4, 16, many - 1).unwrap()]).unwrap();
    assert_eq!(
        flaw(parts(late)),
        Gap {
            byte: 16 * many - 4
        }
    );
}

/// A random owner for every byte of a small period.
fn owners() -> impl Strategy<Value = Vec<usize>> {
    let blocks = proptest::collection::vec((0usize..5, 1usize..7), 1..10);
    let repeat = 1usize..4;
    (blocks, repeat).prop_map(|(blocks, times)| {
        let one: Vec<usize> = blocks
            .iter()
            .flat_map(|&(o, n)| std::iter::repeat_n(o, n))
            .collect();
        one.repeat(times)
    })
}

fn sets_of(owners: &[usize]) -> Vec<FallsSet> {
    let bytes_of = |e: usize| -> Vec<u64> {
        (0..owners.len())
            .filter(|&x| owners[x] == e)
            .map(|x| x as u64)
            .collect()
    };
    (0..5)
        .map(|e| compress_offsets(&bytes_of(e)).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn maps_owners_and_ranges_agree_with_a_list(
        owners in owners(), displacement in 0u64..9, lo in 0u64..150, len in 0u64..90,
    ) {
        let pattern = Pattern::new(owners.len() as u64, sets_of(&owners)).unwrap();
        let p = Partition::new(FileOffset(displacement), pattern).unwrap();
        let owner = |x: u64| x.checked_sub(displacement).map(|y| owners[y as usize % owners.len()]);
        let mut positions = [0u64; 5];
        for x in 0..240 {
            let found = p.owner(FileOffset(x));
            prop_assert_eq!(found.map(|f| f.0), owner(x));
            if let Some((e, at)) = found {
                prop_assert_eq!(at, SubfileOffset(positions[e]));
                prop_assert_eq!(p.file_to_subfile(e, FileOffset(x)), Some(at));
                prop_assert_eq!(p.subfile_to_file(e, at), Some(FileOffset(x)));
                positions[e] += 1;
            }
            for (e, &position) in positions.iter().enumerate() {
                let previous = position.checked_sub(1).map(SubfileOffset);
                prop_assert_eq!(p.file_to_subfile_previous(e, FileOffset(x)), previous);
                let mine = owner(x) == Some(e);
                let next = owners.contains(&e).then_some(SubfileOffset(position - u64::from(mine)));
                prop_assert_eq!(p.file_to_subfile_next(e, FileOffset(x)), next);
            }
        }
        let mut expected: Vec<usize> = (lo..lo + len).filter_map(owner).collect();
        expected.sort_unstable();
        expected.dedup();
        prop_assert_eq!(p.elements_meeting(FileOffset(lo)..FileOffset(lo + len)), expected);
        let lens: Vec<u64> = (0..5).map(|e| p.subfile_len(e, lo)).collect();
        if let Some(shortest) = p.file_len(&lens) {
            prop_assert!(shortest <= lo);
            prop_assert_eq!((0..5).map(|e| p.subfile_len(e, shortest)).collect::<Vec<_>>(), lens);
        }
    }

    #[test]
    fn flaws_are_named_exactly(owners in owners(), at in 0usize..200, to in 0usize..5) {
        let period = owners.len() as u64;
        let at = at % owners.len();
        // Give one byte away: its owner loses it, another may gain it.
        let mut sets = sets_of(&owners);
        let mut bytes = falls::bytes_naive::bytes_naive(&sets[owners[at]]);
        bytes.retain(|&b| b != at as u64);
        sets[owners[at]] = compress_offsets(&bytes).unwrap();
        prop_assert_eq!(flaw(Pattern::new(period, sets)), Flaw::Gap { byte: at as u64 });
        if to != owners[at] {
            let mut sets = sets_of(&owners);
            let mut bytes = falls::bytes_naive::bytes_naive(&sets[to]);
            bytes.push(at as u64);
            bytes.sort_unstable();
            sets[to] = compress_offsets(&bytes).unwrap();
            let overlap = flaw(Pattern::new(period, sets));
            let (first, second) = (to.min(owners[at]), to.max(owners[at]));
            let expected = Flaw::Overlap { first, second, byte: at as u64 };
            prop_assert_eq!(overlap, expected);
        }
    }

    #[test]
    fn views_compose_with_subfiles(
        owners in owners(), bytes in proptest::collection::btree_set(0u64..30, 1..20),
        displacement in 0u64..9,
    ) {
        let p = Partition::from_start(Pattern::new(owners.len() as u64, sets_of(&owners)).unwrap());
        let bytes: Vec<u64> = bytes.into_iter().collect();
        let view = View::new(FileOffset(displacement), 31, compress_offsets(&bytes).unwrap()).unwrap();
        for e in 0..p.len() {
            let map = view.to_subfile(&p, e);
            for k in 0..60 {
                let x = view.view_to_file(ViewOffset(k)).unwrap();
                prop_assert_eq!(view.file_to_view(x), Some(ViewOffset(k)));
                let at = map.view_to_subfile(ViewOffset(k));
                prop_assert_eq!(at, p.file_to_subfile(e, x));
                if let Some(at) = at {
                    prop_assert_eq!(map.subfile_to_view(at), Some(ViewOffset(k)));
                }
                prop_assert_eq!(map.view_to_subfile_next(ViewOffset(k)), p.file_to_subfile_next(e, x));
                prop_assert_eq!(
                    map.view_to_subfile_previous(ViewOffset(k)),
                    p.file_to_subfile_previous(e, x)
                );
            }
        }
    }
}

#[test]
fn a_hundred_thousand_elements_are_looked_up_by_descent() {
    let count = 100_000u64;
    let stripes = (0..count)
        .map(|p| FallsSet::segment(p * 4096, 4096).unwrap())
        .collect();
    let p = Partition::from_start(Pattern::new(count * 4096, stripes).unwrap());
    assert!(p.pattern().index_nodes() <= count);
    let x = FileOffset(7 * count * 4096 + 12_345 * 4096 + 17);
    assert_eq!(p.owner(x), Some((12_345, SubfileOffset(7 * 4096 + 17))));
    let range = FileOffset(x.0)..FileOffset(x.0 + 8192);
    assert_eq!(p.elements_meeting(range), vec![12_345, 12_346, 12_347]);
    // A grid of 300 x 300 blocks of a matrix of a million rows: the index is as large as the grid.
    let (side, n) = (300u64, 300u64 * 3500);
    let block = n / side;
    let element = |e: u64| {
        let start = e / side * block * n + e % side * block;
        FallsSet::new(vec![Falls::family(start, block, n, block).unwrap()]).unwrap()
    };
    let grid = Pattern::new(n * n, (0..side * side).map(element).collect()).unwrap();
    assert!(
        grid.index_nodes() <= 2 * side * side,
        "{}",
        grid.index_nodes()
    );
    let p = Partition::from_start(grid);
    let x = FileOffset((17 * block + 3) * n + 250 * block + 5);
    assert_eq!(
        p.owner(x),
        Some((17 * 300 + 250, SubfileOffset(3 * block + 5)))
    );
}
