//! What comes next: patterns drawn at random, noise, ends of files, and histories that travel.
//! The seed is fixed; `PROPTEST_CASES` makes the runs longer.

use advise::predict::{MOST_RUNS, NextAccess, Pattern, Predictor, Profile, ProfileError};
use falls::FallsSet;
use layout::{FileOffset, View};
use proptest::prelude::*;
use testkit::laws::check;

fn observed(accesses: &[(u64, u64)]) -> Predictor {
    let mut p = Predictor::new();
    accesses.iter().for_each(|(at, n)| p.observe(*at, *n));
    p
}

/// Offsets of nested loops, outermost first: (count, stride).
fn loops(levels: &[(u64, u64)]) -> Vec<u64> {
    let mut all = vec![0];
    for (count, stride) in levels {
        let steps = 0..*count;
        all = all
            .iter()
            .flat_map(|base| steps.clone().map(move |i| base + i * stride))
            .collect();
    }
    all
}

/// How many of the accesses after the first `from` are predicted, offset and size.
fn hits(accesses: &[(u64, u64)], from: usize) -> usize {
    let mut p = Predictor::new();
    let mut hits = 0;
    for (i, (at, n)) in accesses.iter().enumerate() {
        let next = Some(NextAccess {
            offset: *at,
            size: *n,
        });
        hits += usize::from(i >= from && p.next() == next);
        p.observe(*at, *n);
    }
    hits
}

#[test]
fn seed001_s42_sequential_accesses_are_predicted_after_n_of_them() {
    let cases = (0u64..1000, 1u64..500, 4usize..40);
    check(200, cases, |(start, size, count)| {
        let all: Vec<_> = (0..count as u64)
            .map(|i| (start + i * size, size))
            .collect();
        prop_assert_eq!(hits(&all, 3), count - 3, "n is 2 at first");
        prop_assert_eq!(observed(&all).pattern(), Pattern::Sequential);
        Ok(())
    });
    // Consecutive with sizes that differ: the offset is right, the size is the last one.
    let p = observed(&[(0, 5), (5, 9), (14, 2)]);
    assert_eq!(
        p.next(),
        Some(NextAccess {
            offset: 16,
            size: 2
        })
    );
}

#[test]
fn seed001_s42_strided_and_reverse_accesses_are_predicted_after_n_of_them() {
    let cases = (1u64..500, 1u64..1000, 4u64..40);
    check(200, cases, |(size, gap, count)| {
        let stride = size + gap;
        let mut all: Vec<_> = (0..count).map(|i| (i * stride, size)).collect();
        prop_assert_eq!(hits(&all, 3), all.len() - 3);
        prop_assert_eq!(observed(&all).pattern(), Pattern::Strided);
        all.reverse();
        prop_assert_eq!(hits(&all, 3), all.len() - 3);
        prop_assert_eq!(observed(&all[..all.len() - 1]).pattern(), Pattern::Reverse);
        // Before the first byte of the view there is nothing to predict.
        prop_assert_eq!(observed(&all).next(), None);
        Ok(())
    });
    // Reverse sequential.
    let p = observed(&[(90, 10), (80, 10), (70, 10)]);
    assert_eq!(
        p.next(),
        Some(NextAccess {
            offset: 60,
            size: 10
        })
    );
    assert_eq!(p.pattern(), Pattern::Reverse);
}

/// Three whole segments are enough to know the shape; from then on everything is right, the jumps too.
#[test]
fn seed001_s42_nested_strided_accesses_are_predicted_jumps_included() {
    let cases = (1u64..20, 1u64..9, 2u64..40, 4u64..9, 0u64..500);
    check(300, cases, |(size, gap, inner, outer, more)| {
        let stride = size + gap;
        let segment = inner * stride + 1 + more;
        // A jump that is as long as a step would be one long segment.
        prop_assume!(segment - (inner - 1) * stride != stride);
        let all: Vec<_> = loops(&[(outer, segment), (inner, stride)])
            .into_iter()
            .map(|at| (at, size))
            .collect();
        let known = 3 * inner as usize;
        prop_assert_eq!(hits(&all, known), all.len() - known);
        prop_assert_eq!(observed(&all).pattern(), Pattern::NestedStrided);
        Ok(())
    });
}

#[test]
fn seed001_s42_three_levels_are_predicted_too() {
    let levels = [(5, 10_000), (3, 1000), (4, 100)];
    let all: Vec<_> = loops(&levels).into_iter().map(|at| (at, 10)).collect();
    let known = 3 * 12;
    assert_eq!(hits(&all, known), all.len() - known);
}

#[test]
fn seed001_s42_n_adapts_to_how_regular_a_client_is() {
    let mut p = Predictor::new();
    assert_eq!(p.needed(), 2);
    (0..20).for_each(|i| p.observe(i * 10, 10));
    assert_eq!(p.needed(), 1, "all of them came true");
    // Two steps of a kind and then another: what two steps promise does not come.
    let mut at = 1_000_000;
    for i in 0..40u64 {
        at += (i + 2) * 1000;
        p.observe(at, 10);
        p.observe(at + i + 20, 10);
        p.observe(at + 2 * (i + 20), 10);
    }
    assert_eq!(p.needed(), 3, "two steps of a kind are not enough here");
    // Regular again for long enough, and it is trusted again.
    (0..20).for_each(|i| p.observe(i * 10, 10));
    assert_eq!(p.needed(), 1);
}

#[test]
fn seed001_s42_irregular_accesses_are_not_predicted_often() {
    let cases = proptest::collection::vec((0u64..1_000_000, 1u64..100), 60);
    check(50, cases, |all| {
        prop_assert!(hits(&all, 1) <= 2);
        Ok(())
    });
}

fn every_other(size: u64) -> View {
    let set: FallsSet = format!("{{(0,{})}}", size - 1).parse().unwrap();
    View::new(FileOffset(0), 2 * size, set).unwrap()
}

#[test]
fn seed001_s43_predictions_stay_in_the_view_and_in_the_file() {
    let view = every_other(10);
    let p = observed(&[(0, 10), (10, 10), (20, 10)]);
    // View byte 30 is file byte 60, the first that the view shows after 49.
    let next = |size| p.next_in(&view, size);
    assert_eq!(
        next(1000),
        Some(NextAccess {
            offset: 30,
            size: 10
        })
    );
    assert_eq!(
        next(64),
        Some(NextAccess {
            offset: 30,
            size: 4
        })
    );
    assert_eq!(next(60), None);
    assert_eq!(next(50), None);
    let cases = (1u64..30, 0u64..400, 1u64..40, 2u64..20);
    check(200, cases, |(block, size, step, count)| {
        let view = every_other(block);
        let all: Vec<_> = (0..count).map(|i| (i * step, step)).collect();
        if let Some(next) = observed(&all).next_in(&view, size) {
            prop_assert!(next.size >= 1);
            prop_assert!(next.offset + next.size <= view.len_within(size));
        }
        Ok(())
    });
    // Nothing before the view, nothing beyond the largest offset.
    assert_eq!(observed(&[(8, 4), (4, 4), (0, 4)]).next(), None);
    let end = falls::MAX_OFFSET;
    assert_eq!(
        observed(&[(end - 30, 10), (end - 20, 10), (end - 10, 10)]).next(),
        None
    );
    let mut p = observed(&[(0, 1)]);
    p.observe(u64::MAX, u64::MAX);
    p.observe(0, u64::MAX);
    assert_eq!(p.next(), None);
}

#[test]
fn seed001_s44_a_new_view_begins_with_its_first_byte() {
    let p = Predictor::new();
    assert_eq!(p.pattern(), Pattern::Nothing);
    assert_eq!(p.next(), Some(NextAccess { offset: 0, size: 1 }));
    assert_eq!(p.next_in(&every_other(4), 100), p.next());
    assert_eq!(
        p.next_in(&every_other(4), 0),
        None,
        "an empty file shows nothing"
    );
}

#[test]
fn seed001_s50a_a_history_goes_on_where_it_arrives() {
    let cases = (
        proptest::collection::vec((0u64..5000, 1u64..300), 0..80),
        0usize..80,
    );
    check(300, cases, |(all, cut)| {
        let cut = cut.min(all.len());
        let stayed = &mut observed(&all[..cut]);
        let moved = &mut Predictor::import(&stayed.export()).unwrap();
        prop_assert!(stayed.export().len() < 16 + 12 * MOST_RUNS);
        for (at, n) in &all[cut..] {
            prop_assert_eq!(stayed.next(), moved.next());
            stayed.observe(*at, *n);
            moved.observe(*at, *n);
        }
        prop_assert_eq!(stayed.next(), moved.next());
        prop_assert_eq!(stayed.confidence(), moved.confidence());
        Ok(())
    });
}

#[test]
fn seed001_s50a_bytes_that_are_no_history_are_refused() {
    let good = observed(&[(0, 5), (9, 5), (18, 5), (100, 1)]).export();
    for cut in 0..good.len() {
        assert_eq!(Predictor::import(&good[..cut]), None, "{cut}");
    }
    check(
        500,
        proptest::collection::vec(any::<u8>(), 0..60),
        |bytes| {
            if let Some(p) = Predictor::import(&bytes) {
                prop_assert!(p.next().is_none_or(|next| next.size > 0));
            }
            Ok(())
        },
    );
}

#[test]
fn seed001_s50_profiles_are_saved_and_loaded_in_relative_terms() {
    // 3 blocks, a jump, over again: what takes three segments to learn is known at once the next time.
    let all: Vec<_> = loops(&[(4, 1000), (3, 50)])
        .into_iter()
        .map(|at| (at, 10))
        .collect();
    let mut profile = Profile::new(4);
    profile.keep(2, &observed(&all));
    let profile = Profile::load(&profile.save()).unwrap();
    let mut p = profile.predictor(2, 4).unwrap();
    // The next run begins elsewhere: only steps are kept.
    for (i, (at, n)) in all.iter().enumerate() {
        let next = NextAccess {
            offset: at + 7,
            size: *n,
        };
        if i > 0 {
            assert_eq!(p.next(), Some(next), "access {i}");
        }
        p.observe(at + 7, *n);
    }
    // Once the steps are others it goes by what it sees.
    let mut p = profile.predictor(2, 4).unwrap();
    for at in [0, 7, 14, 21] {
        p.observe(at, 7);
    }
    assert_eq!(
        p.next(),
        Some(NextAccess {
            offset: 28,
            size: 7
        })
    );
    let unknown = profile.predictor(3, 4).unwrap();
    assert_eq!(unknown, Predictor::new());
}

#[test]
fn seed001_s50_another_number_of_clients_is_noticed() {
    let profile = Profile::load(&Profile::new(4).save()).unwrap();
    let error = profile.predictor(0, 5).unwrap_err();
    assert_eq!(error, ProfileError::ClientsChanged { then: 4, now: 5 });
    assert!(error.to_string().contains("clients"), "{error}");
    let mut bytes = Profile::new(4).save();
    bytes.pop();
    assert_eq!(Profile::load(&bytes), Err(ProfileError::Malformed));
    assert_eq!(Profile::load(b""), Err(ProfileError::Malformed));
}
