//! Programs against the byte-by-byte meaning of their nests.
//!
//! `KERNELS_CASES` reduces or raises the number of cases (valgrind runs with few).

use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::copy::{copy_shared, copy_split, copy_window};
use crate::nest::{Nest, Span, copy_naive};
use crate::plain::copy_plain;
use crate::program::Program;
use crate::shared::{SharedBytes, SharedBytesMut};

pub(crate) fn config(cases: u32) -> Config {
    let cases = std::env::var("KERNELS_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(cases);
    Config {
        cases,
        ..testkit::laws::config(cases)
    }
}

/// Moves nests so that their spans start at 0.
fn rebase(nests: Vec<Nest>) -> Vec<Nest> {
    let start =
        |pick: fn(&Nest) -> Span| nests.iter().map(|nest| pick(nest).start).min().unwrap_or(0);
    let (source, target) = (start(Nest::source_span), start(Nest::target_span));
    let moved = |nest| Nest::nested(-source, -target, 1, 0, 0, vec![nest]).expect("small");
    nests.into_iter().map(moved).collect()
}

/// Any tree: strides of either sign, targets that overlap.
fn any_nests() -> impl Strategy<Value = Vec<Nest>> {
    let head = || (-40i64..40, -40i64..40, 1u64..6, -30i64..30, -30i64..30);
    let leaf =
        (head(), prop_oneof![1u64..20, 1u64..140]).prop_map(|((s, t, count, ss, ts), len)| {
            Nest::strided(s, t, count, ss, ts, len).expect("small")
        });
    let tree = leaf.prop_recursive(4, 24, 4, move |inner| {
        (head(), prop::collection::vec(inner, 1..4)).prop_map(|((s, t, count, ss, ts), list)| {
            Nest::nested(s, t, count, ss, ts, list).expect("small")
        })
    });
    prop::collection::vec(tree, 1..4).prop_map(rebase)
}

/// Perfect nests whose target is disjoint by structure, levels in any order, source strides
/// that favour permutations of the same array: transposes, columns, dealt packets.
fn permuted_nests() -> impl Strategy<Value = Vec<Nest>> {
    let len = prop_oneof![Just(1u64), Just(2), Just(4), Just(8), Just(16), 1u64..=40];
    let dims = prop::collection::vec((1u64..50, 0i64..3, any::<bool>(), any::<bool>()), 1..4);
    (
        len,
        dims,
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        0i64..2,
    )
        .prop_map(|(len, mut dims, turn_source, turn_target, loose)| {
            while dims.iter().map(|dim| dim.0).product::<u64>() * len > 60_000 {
                for dim in &mut dims {
                    dim.0 = dim.0.div_ceil(2);
                }
            }
            // Strides bottom up, in two different orders for the two sides.
            let strides = |turn: &prop::sample::Index, gap: &dyn Fn(i64) -> i64| {
                let mut strides = vec![0i64; dims.len()];
                let mut extent = len as i64;
                for k in 0..dims.len() {
                    let at = (k + turn.index(dims.len())) % dims.len();
                    strides[at] = extent + gap(dims[at].1);
                    extent = strides[at] * dims[at].0 as i64;
                }
                strides
            };
            let source = strides(&turn_source, &|gap| gap * loose);
            let target = strides(&turn_target, &|gap| gap * (1 - loose));
            let signed = |value: i64, negative: bool| if negative { -value } else { value };
            let mut nest: Option<Nest> = None;
            for (k, dim) in dims.iter().enumerate() {
                let (ss, ts) = (signed(source[k], dim.2), signed(target[k], dim.3 && dim.2));
                nest = Some(
                    match nest {
                        None => Nest::strided(0, 0, dim.0, ss, ts, len),
                        Some(inner) => Nest::nested(0, 0, dim.0, ss, ts, vec![inner]),
                    }
                    .expect("small"),
                );
            }
            rebase(vec![nest.expect("at least one level")])
        })
}

pub(crate) fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|i| ((i + seed).wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

/// Runs a program every way there is, at odd addresses, and compares with the nests' meaning.
fn check(nests: &[Nest], skew: usize) {
    let program = Program::compile(nests);
    let source_len = nests
        .iter()
        .map(|nest| nest.source_span().end)
        .max()
        .unwrap_or(0) as usize;
    let target_len = nests
        .iter()
        .map(|nest| nest.target_span().end)
        .max()
        .unwrap_or(0) as usize;
    assert_eq!(program.bytes(), nests.iter().map(Nest::bytes).sum::<u64>());
    let source = pattern(source_len + skew, 1);
    let source = &source[skew..];
    // Guard bytes on both sides must survive.
    let (before, after) = (3 + skew, 67);
    let blank = pattern(before + target_len + after, 99);
    let mut expected = blank.clone();
    copy_naive(nests, source, &mut expected[before..before + target_len]);

    let run = |how: &str, copy: &dyn Fn(SharedBytes, SharedBytesMut)| {
        let mut target = blank.clone();
        copy(
            source.into(),
            (&mut target[before..before + target_len]).into(),
        );
        assert!(
            target == expected,
            "{how}: {nests:?}\n{}",
            program.describe()
        );
    };
    let streaming = Program::compile_streaming(nests);
    run("streaming", &|source, target| {
        copy_shared(&streaming, source, target).expect("in bounds");
    });
    run("plain", &|_, mut target| {
        // SAFETY: the range is a slice that nothing else uses meanwhile.
        let target = unsafe { std::slice::from_raw_parts_mut(target.as_mut_ptr(), target.len()) };
        copy_plain(nests, source, target).expect("in bounds");
    });
    run("whole", &|source, target| {
        copy_shared(&program, source, target).expect("in bounds")
    });
    for parts in [2u64, 3, 7] {
        run("windows", &|source, mut target| {
            for part in 0..parts {
                let cut = |index| program.bytes() * index / parts;
                // SAFETY: one range, used by one copy at a time.
                let again = unsafe { SharedBytesMut::new(target.as_mut_ptr(), target.len()) };
                copy_window(&program, source, again, cut(part)..cut(part + 1)).expect("in bounds");
            }
        });
    }
    if let Ok(proved) = program.clone().prove_disjoint() {
        for threads in 1..=3 {
            run("threads", &|source, target| {
                copy_split(&proved, source, target, threads).expect("in bounds")
            });
        }
    }
    let short = program.check(source_len - 1, target_len);
    assert!(short.is_err());
    assert!(program.check(source_len, target_len - 1).is_err());
}

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn any_tree_means_what_its_nests_mean(nests in any_nests(), skew in 0usize..9) {
        check(&nests, skew);
    }

    #[test]
    fn permuted_levels_mean_what_their_nests_mean(nests in permuted_nests(), skew in 0usize..9) {
        check(&nests, skew);
    }

    #[test]
    fn irregular_lists_mean_what_their_nests_mean(
        pieces in prop::collection::vec((0i64..2000, 0i64..2000, prop_oneof![Just(4u64), 1u64..200]), 1..200),
        uniform in prop::option::of(1u64..140),
        skew in 0usize..9,
    ) {
        let nests: Vec<Nest> = pieces
            .iter()
            .map(|&(source, target, len)| Nest::block(source, target, uniform.unwrap_or(len)).expect("small"))
            .collect();
        check(&rebase(nests), skew);
    }
}

/// Every block size in gathers, scatters and strided copies, at several counts.
#[test]
fn every_block_size_is_copied_exactly() {
    for len in 1..=130i64 {
        for count in [1, 2, 3, 5, 17, 64] {
            for (ss, ts) in [
                (len, len + 3),
                (len + 5, len),
                (2 * len, 3 * len),
                (-len - 1, len),
                (len, -len),
            ] {
                let nest = Nest::strided(0, 0, count, ss, ts, len as u64).expect("small");
                check(&rebase(vec![nest]), (len % 9) as usize);
            }
        }
    }
}

/// Overlapping targets: the later write wins, whatever the strides suggest.
#[test]
fn later_writes_win_where_the_target_overlaps() {
    for (ts, len) in [(0, 4), (1, 4), (-1, 4), (3, 4), (-3, 16), (7, 8)] {
        let nest = Nest::strided(0, 0, 9, 5, ts, len).expect("small");
        check(&rebase(vec![nest]), 1);
    }
    let rows = Nest::strided(0, 0, 8, 1, 16, 1).expect("small");
    let columns = Nest::nested(0, 0, 8, 8, 15, vec![rows]).expect("small");
    check(&rebase(vec![columns]), 0);
}

/// Trees that share children many times over compile and prove in time proportional to their
/// distinct nodes: this one has 2^40 leaves.
#[test]
fn shared_children_are_compiled_once() {
    let mut nest = Nest::block(0, 0, 1).expect("valid");
    for level in 0..20 {
        let step = 1i64 << (2 * level);
        let pair = vec![
            Nest::nested(0, 0, 2, step, step, vec![nest.clone()]).expect("valid"),
            Nest::nested(2 * step, 2 * step, 2, step, step, vec![nest.clone()]).expect("valid"),
        ];
        nest = Nest::nested(0, 0, 1, 0, 0, pair).expect("valid");
    }
    let program = Program::compile(&[nest]);
    assert_eq!(program.bytes(), 1 << 40);
    assert!(program.describe().lines().count() <= 100);
    assert!(program.prove_disjoint().is_ok());
}
