//! Slices, chunk grids, striping, block maps, nested strides and Vesta groups against explicit
//! ownership.

use crate::ownership::{array, bytes_of_owners, check_elements, order, rank_naive};
use falls::bytes_naive::bytes_naive;
use layout::{
    BlockMap, ChunkAxis, ChunkGrid, NestedStride, Order, OwnerRuns, Servers, Slice, SliceAxis,
    StridedRequest, Stripe, VestaCut, VestaFile,
};
use proptest::prelude::*;

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
        "slice[0]: reaches to index 8, but the extent is 8"
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
        "start: index 4, but the servers number 4; indices run from 0 to 3"
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

#[test]
fn nested_strides_that_interleave_are_refused() {
    let level = |count, stride| NestedStride { count, stride };
    let error = StridedRequest::new(0, 4, &[level(3, 8), level(2, 19)]).unwrap_err();
    assert_eq!(error.argument_name(), "levels[1]");
    assert!(StridedRequest::new(0, 4, &[level(u64::MAX, 8)]).is_err());
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
        let found = StridedRequest::new(start, quantity, &real).unwrap();
        prop_assert_eq!(bytes_naive(found.set()), expected);
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
fn dealt_chunks_stay_small_whatever_the_extent() {
    let chunks = |n: u64| {
        let servers = Servers::first(7, 3).unwrap();
        let dealt =
            ChunkGrid::regular(&[16, 16, 16]).over(&servers, &array(8, &[n, n, n], Order::C));
        dealt.unwrap().element(2).unwrap().node_count()
    };
    // Grids of the same shape modulo the 7 servers.
    assert_eq!(chunks(16 * 15 + 1), chunks(16 * (15 + 7 * 1000) + 1));
}
