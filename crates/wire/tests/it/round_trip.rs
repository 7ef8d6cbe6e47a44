//! Descriptions: what is encoded decodes to an equal value, and no bytes make a decoder panic.
//!
//! The seed is fixed; `PROPTEST_CASES` makes the runs longer.

use falls::{FallsSet, Periodic, Segment, compress_offsets};
use layout::{FileOffset, Partition, Pattern};
use proptest::prelude::*;
use testkit::laws::config;
use wire::{LayoutState, Piece, Place, Reader, StateVersion, describe};

fn any_set() -> impl Strategy<Value = FallsSet> {
    let leaf = proptest::collection::btree_set(0u64..40, 0..12)
        .prop_map(|s| compress_offsets(&s.into_iter().collect::<Vec<_>>()).unwrap());
    leaf.prop_recursive(3, 24, 2, |inner| {
        (inner, 1u64..5, 0u64..9, 0u64..1 << 40).prop_map(|(set, count, gap, shift)| {
            let step = set.end() + gap;
            set.repeat(count, step.max(1))
                .unwrap()
                .shift(shift)
                .unwrap()
        })
    })
}

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
        Partition::new(FileOffset(displacement), Pattern::new(x, sets).unwrap()).unwrap()
    })
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn sets_and_elements_round_trip(set in any_set(), displacement in 0u64..1 << 50, extra in 1u64..99) {
        let element = Periodic::new(displacement, set.end() + extra, set).unwrap();
        let mut out = Vec::new();
        describe::put_periodic(&mut out, &element);
        let mut r = Reader::new(&out);
        prop_assert_eq!(describe::periodic(&mut r).unwrap(), element);
        prop_assert_eq!(r.finish(), Ok(()));
        for cut in 0..out.len() {
            let mut r = Reader::new(&out[..cut]);
            prop_assert!(describe::periodic(&mut r).is_err(), "cut at {}", cut);
        }
    }

    #[test]
    fn layout_states_round_trip(
        p in any_partition(), q in any_partition(), two in any::<bool>(), e0 in 0u64..1 << 40,
        step in 1u64..1 << 40, server in 0u64..9,
    ) {
        let piece = |partition: &Partition, generation, (from, to): (u64, u64)| Piece {
            ranges: std::iter::once(from..to).collect(),
            generation,
            stores: (0..partition.len() as u64).map(|s| generation - s % 3).collect(),
            partition: partition.clone(),
            places: (0..partition.len() as u64)
                .map(|s| vec![Place { server: s + server, incarnation: s * 3 + 1 }])
                .collect(),
        };
        let mut pieces = vec![piece(&p, 7, (0, u64::MAX))];
        if two {
            pieces = vec![piece(&p, 7, (0, e0 + 1)), piece(&q, 8, (e0 + 1, u64::MAX))];
        }
        let owner = Place { server, incarnation: 4 };
        let state = LayoutState { owner, step, pieces };
        let mut out = Vec::new();
        state.put(&mut out);
        let mut r = Reader::new(&out);
        prop_assert_eq!(&LayoutState::read(&mut r).unwrap(), &state);
        prop_assert_eq!(r.finish(), Ok(()));
        let mut out = Vec::new();
        state.version().put(&mut out);
        prop_assert_eq!(StateVersion::read(&mut Reader::new(&out)).unwrap(), state.version());
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = describe::set(&mut Reader::new(&bytes));
        let _ = describe::periodic(&mut Reader::new(&bytes));
        let _ = describe::partition(&mut Reader::new(&bytes));
        let _ = LayoutState::read(&mut Reader::new(&bytes));
        let _ = StateVersion::read(&mut Reader::new(&bytes));
    }

    #[test]
    fn damaged_descriptions_decode_to_valid_values_or_errors(
        set in any_set(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut out = Vec::new();
        describe::put_set(&mut out, &set);
        let at = at.index(out.len());
        out[at] = byte;
        if let Ok(found) = describe::set(&mut Reader::new(&out)) {
            // Whatever came out keeps the invariants: ranks invert.
            for k in [0, found.size() / 2, found.size().saturating_sub(1)] {
                if let Some(x) = found.select(k) {
                    prop_assert_eq!(found.rank(x), k);
                    prop_assert!(found.contains(x));
                }
            }
        }
    }
}

#[test]
fn seed000_s30_trees_are_compact_and_validated_on_receipt() {
    // A list of a million irregular segments takes a few bytes each and comes back as a list.
    let segments: Vec<Segment> = (0..1_000_000u64)
        .map(|i| Segment::new(i * 100 + i * i % 37, 1 + i % 50).unwrap())
        .collect();
    let set = FallsSet::from_segments(&segments).unwrap();
    let mut out = Vec::new();
    describe::put_set(&mut out, &set);
    assert!(out.len() < 3_000_000, "{}", out.len());
    let back = describe::set(&mut Reader::new(&out)).unwrap();
    assert!(back.is_segment_list());
    assert_eq!(back, set);
    // Two bytes for each segment are enough, where each is near the one before, and no others follow.
    let near: Vec<Segment> = (0..32).map(|i| Segment::new(i * 9, 1).unwrap()).collect();
    let near = FallsSet::from_segments(&near).unwrap();
    out.clear();
    describe::put_set(&mut out, &near);
    assert_eq!(out.len(), 1 + 2 * 32);
    assert_eq!(describe::set(&mut Reader::new(&out)), Ok(near));
    // Overlapping members cannot be expressed; a partition that is none is refused.
    let halves = ["{(0,3)}", "{(4,6)}"].map(|s| s.parse::<FallsSet>().unwrap());
    let mut bytes = vec![0, 8, 2];
    for half in &halves {
        describe::put_set(&mut bytes, half);
    }
    let error = describe::partition(&mut Reader::new(&bytes)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a layout is not valid: elements: no element owns byte 7 of the pattern"
    );
}
