//! Layouts made from views, against byte by byte counting.
//!
//! Views are drawn as any process could set them: interleaved, displaced, overlapping, with periods of
//! their own and with gaps; ranks and servers in every relation.

use std::collections::HashMap;

use advise::distribute::{ByViews, DeclineReason, ViewRule, by_views};
use falls::{FallsSet, Periodic};
use layout::{FileOffset, Layout, Partition, View, ViewOffset};
use proptest::prelude::*;

fn view(displacement: u64, period: u64, set: &str) -> View {
    View::new(FileOffset(displacement), period, set.parse().unwrap()).unwrap()
}

/// Rank r of n shows its block of `bytes` of every round.
fn interleaved(ranks: u64, bytes: u64, displacement: u64) -> Vec<View> {
    (0..ranks)
        .map(|r| {
            let set = FallsSet::segment(r * bytes, bytes).unwrap();
            View::new(FileOffset(displacement), ranks * bytes, set).unwrap()
        })
        .collect()
}

fn blocks(text: &str, array: &str) -> Vec<View> {
    let layout: Layout = text.parse().unwrap();
    let applied = layout.on_array(&array.parse().unwrap()).unwrap();
    (0..applied.count())
        .map(|e| View::new(FileOffset(0), applied.period(), applied.element(e).unwrap()).unwrap())
        .collect()
}

fn rule(stripe: u64) -> ViewRule {
    ViewRule {
        stripe,
        ..ViewRule::default()
    }
}

fn partition(by: &ByViews) -> Partition {
    Partition::from_start(by.pattern.clone())
}

/// Bytes below `end` at each server, by whole and striped subfiles.
fn bytes_at(by: &ByViews, servers: usize, end: u64) -> Vec<u64> {
    let partition = partition(by);
    let mut at = vec![0; servers];
    for (i, subfile) in by.subfiles.iter().enumerate() {
        at[subfile.server] += partition.subfile_len(i, end);
    }
    at
}

/// Every byte has one home; it is with the lowest rank that shows it, in the order of that view.
fn check(views: &[View], servers: usize, by: &ByViews, end: u64) {
    let partition = partition(by);
    assert_eq!(partition.len(), by.subfiles.len());
    assert!(by.subfiles.iter().all(|s| s.server < servers));
    let mut whole = HashMap::new();
    for (i, subfile) in by.subfiles.iter().enumerate() {
        if let (Some(rank), true) = (subfile.rank, subfile.is_whole) {
            assert!(
                whole.insert(rank, i).is_none(),
                "two subfiles of rank {rank}"
            );
        }
    }
    let mut next: HashMap<usize, u64> = HashMap::new();
    for x in 0..end {
        let (owner, offset) = partition.owner(FileOffset(x)).unwrap();
        let lowest = views.iter().position(|v| v.bytes().contains(x));
        assert_eq!(by.subfiles[owner].rank, lowest, "byte {x}");
        // Every subfile is filled in file order, without a gap.
        let expected = next.entry(owner).or_default();
        assert_eq!(offset.get(), *expected, "byte {x}");
        *expected += 1;
    }
}

/// View offset and subfile offset of every byte agree.
fn check_identity(views: &[View], by: &ByViews, end: u64) {
    let partition = partition(by);
    for (i, subfile) in by.subfiles.iter().enumerate() {
        let Some(rank) = subfile.rank.filter(|_| subfile.is_whole) else {
            continue;
        };
        for k in 0.. {
            let Some(x) = views[rank]
                .view_to_file(ViewOffset(k))
                .filter(|x| x.get() < end)
            else {
                break;
            };
            let found = partition.file_to_subfile(i, x).map(|k| k.get());
            assert_eq!(found, Some(k), "rank {rank}");
        }
    }
}

#[test]
fn seed001_s62_offset_in_the_view_is_offset_in_the_subfile() {
    for displacement in [0, 5, 64, 1000] {
        let views = interleaved(4, 16, displacement);
        let by = by_views(&views, 2, &rule(64)).unwrap();
        check(&views, 2, &by, 2000);
        check_identity(&views, &by, 2000);
        // Also where files end in practice, and a view meets its own subfile only.
        let partition = partition(&by);
        for (i, subfile) in by.subfiles.iter().enumerate().filter(|(_, s)| s.is_whole) {
            let view = &views[subfile.rank.unwrap()];
            let k = 1 << 40;
            let x = view.view_to_file(ViewOffset(k)).unwrap();
            let found = partition.file_to_subfile(i, x);
            assert_eq!(found.map(|k| k.get()), Some(k));
            let share = view.to_subfile(&partition, i);
            assert!(share.meeting().is_symbolic(), "displacement {displacement}");
        }
    }
}

#[test]
fn seed001_s63_whole_subfiles_go_round_robin_and_the_rest_is_striped() {
    for servers in 1..6usize {
        for ranks in 1..14usize {
            let views = interleaved(ranks as u64, 8 << 10, 0);
            let by = match by_views(&views, servers, &rule(4096)) {
                Ok(by) => by,
                Err(declined) => {
                    // One rank that shows everything.
                    assert_eq!((declined, ranks), (DeclineReason::SayNothing, 1));
                    continue;
                }
            };
            let whole = ranks / servers * servers;
            for subfile in &by.subfiles {
                let rank = subfile.rank.unwrap();
                assert_eq!(
                    subfile.is_whole,
                    rank < whole,
                    "{ranks} ranks, {servers} servers"
                );
                if subfile.is_whole {
                    assert_eq!(subfile.server, rank % servers);
                }
            }
        }
    }
}

#[test]
fn seed001_s64_servers_have_equally_many_whole_subfiles() {
    for (ranks, servers) in [(4, 4), (8, 4), (9, 4), (12, 5), (3, 4), (7, 1)] {
        // Views of very different sizes.
        let period = 1 << 20;
        let mut at = 0;
        let views: Vec<View> = (0..ranks)
            .map(|r| {
                let len = 500 + r * 100;
                let set = FallsSet::segment(at, len).unwrap();
                at += len;
                View::new(FileOffset(0), period, set).unwrap()
            })
            .collect();
        let by = by_views(&views, servers, &rule(4096)).unwrap();
        let mut counts = vec![0; servers];
        for subfile in by.subfiles.iter().filter(|s| s.is_whole) {
            counts[subfile.server] += 1;
        }
        assert_eq!(counts, vec![ranks as usize / servers; servers]);
    }
}

/// L18: whole subfiles are balanced by their bytes.
#[test]
fn seed001_s64_unequal_views_are_balanced_by_bytes() {
    let sizes = [8u64, 8, 7, 7, 1, 1, 2, 2];
    let total: u64 = sizes.iter().sum();
    let mut at = 0;
    let views: Vec<View> = sizes
        .iter()
        .map(|&len| {
            let set = FallsSet::segment(at * 1024, len * 1024).unwrap();
            at += len;
            View::new(FileOffset(0), total * 1024, set).unwrap()
        })
        .collect();
    let by = by_views(&views, 4, &rule(4096)).unwrap();
    assert_eq!(bytes_at(&by, 4, total * 1024), [9 << 10; 4]);
    // Where the two differ: heavy views first, so that no server gets two of them.
    let sizes = [8u64, 1, 1, 1, 8, 1, 1, 1];
    let mut at = 0;
    let views: Vec<View> = sizes
        .iter()
        .map(|&len| {
            let set = FallsSet::segment(at, len).unwrap();
            at += len;
            View::new(FileOffset(0), 22, set).unwrap()
        })
        .collect();
    let by = by_views(&views, 4, &rule(4096)).unwrap();
    let most = bytes_at(&by, 4, 22).into_iter().max();
    assert_eq!(most, Some(9), "in turn by ranks it would be 16");
}

#[test]
fn seed001_s66_overlapping_views_have_one_home_for_each_byte() {
    // Halos: each rank shows its block and one byte of each neighbour.
    let views: Vec<View> = (0..4u64)
        .map(|r| {
            let lo = (r * 8).saturating_sub(1);
            let set = FallsSet::segment(lo, (r * 8 + 9).min(32) - lo).unwrap();
            View::new(FileOffset(0), 32, set).unwrap()
        })
        .collect();
    let by = by_views(&views, 4, &rule(64)).unwrap();
    check(&views, 4, &by, 200);
    assert!(by.why.contains("overlap"), "{}", by.why);
    assert_eq!(bytes_at(&by, 4, 32), [9, 8, 8, 7]);
    // One that shows everything is home to nearly all, and is striped.
    let mut views = interleaved(4, 4096, 0);
    views[0] = View::whole_file();
    let by = by_views(&views, 4, &rule(4096)).unwrap();
    check(&views, 4, &by, 40_000);
    assert_eq!(bytes_at(&by, 4, 16 << 10), [4096; 4]);
    // Every rank from its own displacement on, as programs without a datatype do.
    let views: Vec<View> = (0..4).map(|r| view(r * 100, 1, "{(0,0)}")).collect();
    assert_eq!(
        by_views(&views, 4, &rule(4096)).unwrap_err(),
        DeclineReason::SayNothing
    );
}

#[test]
fn seed001_s69_what_no_view_shows_is_striped() {
    // A header of 100 bytes, and every fourth block of 8 KiB is nobody's.
    let views: Vec<View> = (0..3u64)
        .map(|r| {
            let set = FallsSet::segment(r << 13, 1 << 13).unwrap();
            View::new(FileOffset(100), 4 << 13, set).unwrap()
        })
        .collect();
    let by = by_views(&views, 3, &rule(1024)).unwrap();
    check(&views, 3, &by, 100_000);
    check_identity(&views, &by, 100_000);
    assert!(by.why.contains("no view"), "{}", by.why);
    let nobody: Vec<_> = by.subfiles.iter().filter(|s| s.rank.is_none()).collect();
    assert_eq!(nobody.len(), 3);
    assert_eq!(
        partition(&by)
            .owner(FileOffset(99))
            .map(|(i, _)| by.subfiles[i].rank),
        Some(None)
    );
}

#[test]
fn seed001_s72a_ranks_are_those_of_the_opening_team() {
    // Three of eight processes open the file: ranks 0 to 2, whatever they are elsewhere.
    let views = interleaved(3, 8 << 10, 0);
    let by = by_views(&views, 2, &rule(4096)).unwrap();
    let whole: Vec<_> = by.subfiles.iter().filter(|s| s.is_whole).collect();
    assert_eq!(whole.len(), 2);
    assert!(whole.iter().all(|s| s.rank < Some(2)));
    check(&views, 2, &by, 100_000);
}

#[test]
fn seed001_s72b_striped_subfiles_stay_balanced() {
    for rotation in 0..5 {
        for (ranks, servers) in [(3usize, 4usize), (7, 4), (11, 4), (2, 5), (9, 5)] {
            let bytes = 40_000;
            let views = interleaved(ranks as u64, bytes, 0);
            let rule = ViewRule {
                rotation,
                ..rule(4096)
            };
            let by = by_views(&views, servers, &rule).unwrap();
            let end = ranks as u64 * bytes;
            let at = bytes_at(&by, servers, end);
            let (least, most) = (at.iter().min().unwrap(), at.iter().max().unwrap());
            // Each striped subfile is uneven by a stripe, and each starts elsewhere.
            assert!(most - least <= 2 * 4096, "{ranks}, {servers}: {at:?}");
        }
    }
}

/// Short records: stripes are whole periods of the views, so an access of a record meets one server.
#[test]
fn seed001_s72b_short_records_are_striped_in_whole_periods() {
    let views = interleaved(3, 8, 0);
    let by = by_views(&views, 4, &rule(4096)).unwrap();
    check(&views, 4, &by, 5000);
    let end = by.pattern.period() * 3;
    let at = bytes_at(&by, 4, end);
    assert!(at.iter().all(|&b| b == at[0]), "{at:?}");
}

#[test]
fn seed001_s72c_displaced_views_are_cut_as_those_without_displacement() {
    for displacement in [1u64, 24, 64, 4096, 5000] {
        let plain = by_views(&interleaved(4, 16, 0), 4, &rule(64)).unwrap();
        let moved = by_views(&interleaved(4, 16, displacement), 4, &rule(64)).unwrap();
        let (a, b) = (partition(&plain), partition(&moved));
        for x in 0..1000 {
            let (left, left_at) = a.owner(FileOffset(x)).unwrap();
            let (right, right_at) = b.owner(FileOffset(x + displacement)).unwrap();
            assert_eq!(plain.subfiles[left], moved.subfiles[right]);
            assert_eq!(left_at, right_at);
        }
        check(
            &interleaved(4, 16, displacement),
            4,
            &moved,
            displacement + 1000,
        );
    }
}

#[test]
fn seed001_s09_every_relation_of_ranks_to_servers_gives_a_partition() {
    for servers in 1..6 {
        for ranks in 1..12u64 {
            for bytes in [3, 5000] {
                let views = interleaved(ranks, bytes, 7);
                match by_views(&views, servers, &rule(4096)) {
                    Ok(by) => check(&views, servers, &by, 7 + 2 * ranks * bytes),
                    Err(declined) => assert_eq!((declined, ranks), (DeclineReason::SayNothing, 1)),
                }
            }
        }
    }
}

/// The blocks of an array are its views; a large array costs no more than a small one.
#[test]
fn seed001_s71_blocks_of_arrays_become_subfiles_whatever_their_size() {
    let views = blocks("(block, cyclic(3)) onto 2x3", "u8[12,20]");
    let by = by_views(&views, 3, &rule(4096)).unwrap();
    check(&views, 3, &by, 480);
    check_identity(&views, &by, 480);
    let views = blocks("(block, block) onto 4x4", "f64[1048576,1048576]");
    let by = by_views(&views, 5, &rule(1 << 20)).unwrap();
    assert!(
        by.pattern.index_nodes() < 100_000,
        "{}",
        by.pattern.index_nodes()
    );
    let at = bytes_at(&by, 5, 8 << 40);
    let (least, most) = (at.iter().min().unwrap(), at.iter().max().unwrap());
    assert!((most - least) * 20 < *most, "{at:?}");
}

/// Maps between a view and all subfiles undo each other, also where views overlap.
#[test]
fn seed001_s71_maps_between_views_and_subfiles_are_inverse() {
    let views = [
        view(3, 20, "{(0,4),(7,9)}"),
        view(0, 10, "{(2,5)}"),
        view(11, 30, "{(1,4,6,3,{(0,0,2,2)})}"),
    ];
    let by = by_views(&views, 2, &rule(64)).unwrap();
    check(&views, 2, &by, 600);
    let partition = partition(&by);
    for view in &views {
        for k in 0..200 {
            let x = view.view_to_file(ViewOffset(k)).unwrap();
            let (home, at) = partition.owner(x).unwrap();
            let map = view.to_subfile(&partition, home);
            assert_eq!(map.view_to_subfile(ViewOffset(k)), Some(at));
            assert_eq!(map.subfile_to_view(at), Some(ViewOffset(k)));
        }
    }
}

#[test]
fn views_that_say_nothing_or_have_no_common_period_are_declined() {
    let whole = vec![View::whole_file(); 3];
    assert_eq!(
        by_views(&whole, 2, &rule(64)).unwrap_err(),
        DeclineReason::SayNothing
    );
    assert_eq!(
        by_views(&[], 2, &rule(64)).unwrap_err(),
        DeclineReason::Nobody
    );
    let primes = [(1 << 40) + 15, (1 << 41) + 27];
    let odd: Vec<View> = primes
        .iter()
        .map(|&p| View::new(FileOffset(0), p, FallsSet::segment(0, 1).unwrap()).unwrap())
        .collect();
    assert_eq!(
        by_views(&odd, 2, &rule(64)).unwrap_err(),
        DeclineReason::TooComplex
    );
    let empty = View::from(Periodic::new(0, 1, FallsSet::empty()).unwrap());
    assert_eq!(
        by_views(&[empty], 2, &rule(64)).unwrap_err(),
        DeclineReason::SayNothing
    );
}

fn any_view() -> impl Strategy<Value = View> {
    let bytes = proptest::collection::btree_set(0u64..24, 0..12);
    (0u64..30, bytes, 0u64..5).prop_map(|(displacement, bytes, extra)| {
        let bytes: Vec<u64> = bytes.into_iter().collect();
        let set = falls::compress_offsets(&bytes).unwrap();
        let period = (set.end() + extra).max(1);
        View::new(FileOffset(displacement), period, set).unwrap()
    })
}

proptest! {
    #![proptest_config(testkit::laws::config(80))]

    #[test]
    fn seed001_s51_any_views_give_every_byte_one_home(
        views in proptest::collection::vec(any_view(), 1..6),
        servers in 1usize..5,
        rotation in 0u64..9,
    ) {
        let rule = ViewRule { rotation, ..rule(64) };
        match by_views(&views, servers, &rule) {
            Ok(by) => check(&views, servers, &by, 1500),
            Err(declined) => prop_assert_ne!(declined, DeclineReason::Nobody),
        }
    }
}
