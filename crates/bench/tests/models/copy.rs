//! The published models of packing and unpacking: address translation (statement 83), cache misses (84, 85),
//! the fit (86), accuracy (87), and redistribution in one or two phases (90).

use crate::gen_phases::Redistributor;
use crate::hops::{Backbone, Message, client_s, message_s};
use crate::packing::{Processor, Redistribution};
use crate::tlb::{
    Replacement, TlbRuns, effective_entries, large_k_share, miss_cost, random_hit_ratio,
    simulate_misses,
};
use crate::unpacking::{
    MB, Memory, Runs, collision_share, collisions, excess_misses, excess_per_period,
};
use advise::cost::{Curve, Excess, Machine};
use advise::mapping::Hop;
use advise::model::accuracy::Accuracy;
use advise::model::fit::{WalkSample, fit_curve, fit_walk, hooke_jeeves, least_squares, left_out};
use random::Random;

#[test]
fn seed002_s83_models_of_address_translation_agree_with_simulated_ones() {
    assert!((random_hit_ratio(64, 256) - 0.0195).abs() < 1e-4);
    assert!((random_hit_ratio(64, 128) - 0.203).abs() < 1e-3);
    // Random: the equation against a simulation of whole rounds.
    for packets in [80, 128, 200] {
        let misses = simulate_misses(Replacement::Random, 64, packets, packets * 40, 7);
        let ratio = 1.0 - misses / (packets * 40) as f64;
        let model = random_hit_ratio(64, packets);
        assert!((ratio - model).abs() < 0.02, "{packets}: {ratio} {model}");
    }
    // LRU: k - k mod P misses when the rest of a round fits, all otherwise.
    for packets in 33..64 {
        let (effective, k) = (27, 64);
        let rest = k % packets;
        let expected = match rest > 0 && rest <= effective {
            true => k - rest,
            false => k,
        };
        let misses = simulate_misses(Replacement::Lru, effective, packets, k, 0);
        assert_eq!(misses, expected as f64, "{packets} packets");
        let share = large_k_share(Replacement::Lru, effective + 5, packets, k);
        assert_eq!(share * k as f64, misses);
    }
    // Pseudo-LRU, theorem 4.2: 2 (P - T_E).
    for (packets, misses) in [(128, 26.0), (160, 90.0), (200, 170.0), (124, 240.0)] {
        let simulated = simulate_misses(Replacement::PseudoLru, 115, packets, 240, 0);
        assert_eq!(simulated, misses, "{packets} packets");
        let share = large_k_share(Replacement::PseudoLru, 120, packets, 240);
        assert!((share * 240.0 - misses).abs() < 1e-9, "{packets} packets");
    }
    assert_eq!(effective_entries(32), 27);
}

#[test]
fn misses_cost_nothing_while_packets_fit_and_rise_beyond() {
    let runs = TlbRuns {
        few: 0.2,
        just_too_many: 0.35,
        many: 0.4,
    };
    for replacement in [
        Replacement::Lru,
        Replacement::PseudoLru,
        Replacement::Random,
    ] {
        let cost = |packets| miss_cost(replacement, 64, &runs, 8.0, packets);
        assert_eq!(cost(59), 0.0);
        assert!((cost(256) - 0.2).abs() < 1e-12, "{replacement:?}");
        assert!(cost(100) <= cost(200));
        let half = miss_cost(replacement, 64, &runs, 16.0, 256);
        assert!(
            (half - 0.1).abs() < 1e-12,
            "per piece, so half at twice the size"
        );
    }
    let processor = Processor {
        curve: Curve {
            a: 1.58,
            b: 1.32,
            c: 0.066,
        },
        replacement: Replacement::Random,
        entries: 64,
        runs,
    };
    let at = |of, p| processor.packing(of, 8.0, p, 1 << 20);
    let regular = Redistribution::Regular { delta: 0.03 };
    assert!((at(regular, 8) - at(Redistribution::Kyy, 8) - 0.03).abs() < 1e-12);
    let general = Redistribution::Gen {
        delta: 0.3,
        shift_saves: 0.2,
    };
    assert_eq!(
        at(general, 100),
        at(general, 255),
        "misses hide behind divisions"
    );
    assert!(
        at(general, 128) < at(general, 127),
        "a shift is cheaper than a division"
    );
    // Only min(k, P) packets are built.
    let narrow = processor.packing(Redistribution::Kyy, 8.0, 256, 16);
    assert_eq!(narrow, processor.packing(Redistribution::Kyy, 8.0, 16, 16));
}

#[test]
fn seed002_s84_misses_of_pieces_that_share_blocks_are_those_of_the_examples() {
    assert_eq!(excess_per_period(12, 32), 7);
    assert_eq!(excess_per_period(56, 32), 3);
    // Theorem 4.3 by counting: pieces of a period against the blocks they touch.
    for n in 1..200u64 {
        for block in [8u64, 32, 64] {
            let period = (1..).find(|k| k * n % block == 0).expect("exists") * n;
            let mut touched = 0;
            for piece in 0..period / n {
                let (first, last) = (piece * n / block, ((piece + 1) * n - 1) / block);
                touched += last - first + 1;
            }
            assert_eq!(
                excess_per_period(n, block),
                touched - period / block,
                "{n} {block}"
            );
        }
    }
    assert_eq!(excess_misses(MB, 8, 32), MB / 32.0 * 3.0);
    assert_eq!(excess_misses(MB, 0, 32), 0.0);
}

#[test]
fn seed002_s85_the_collision_of_the_worked_example_is_found() {
    let found = collisions(1 << 20, 262_144, 208, 32);
    assert_eq!(found.len(), 1);
    let first = found[0];
    assert_eq!((first.round, first.element, first.distance), (3, 3781, 16));
    assert!(!first.is_left);
    // A quarter of the copies, 0.96 us each, on top of 0.0828 s.
    let misses = collision_share(1 << 20, 262_144, 208, 32) * MB / 8.0;
    assert!((misses - 32768.0).abs() < 8.0, "{misses}");
    assert!((0.0828 + misses * 0.96e-6 - 0.1138).abs() < 6e-4);
    // Whatever divides the cache collides at once and always.
    assert_eq!(collisions(1 << 20, 262_144, 64, 32)[0].distance, 0);
    assert!(collisions(1 << 20, 0, 64, 32).is_empty());
    assert!(collisions(1 << 20, 262_144, 0, 32).is_empty());
}

#[test]
fn unpacking_parameters_come_back_from_runs_made_of_them() {
    let known = Memory {
        theta_s: 0.5e-6,
        kappa_s: 0.76e-6,
        efficient: Curve {
            a: 3.04,
            b: 1.674,
            c: 0.0661,
        },
        page: 4096,
        block: 32,
        entries: 59,
    };
    // Eight packets of a power of two collide in the cache, 124 do not.
    let runs = Runs {
        v8_8: known.unpacking_s(MB, 8, 8, false),
        v8_124: known.unpacking_s(MB, 8, 124, true),
        v32_8: known.unpacking_s(MB, 32, 8, true),
        v32_124: known.unpacking_s(MB, 32, 124, true),
        v1024_8: known.unpacking_s(MB, 1024, 8, true),
    };
    let got = Memory::from_runs(&runs, 4096, 32, 59).expect("three points");
    assert!((got.theta_s / known.theta_s - 1.0).abs() < 1e-9);
    assert!((got.kappa_s / known.kappa_s - 1.0).abs() < 1e-6);
    for n in [8.0, 32.0, 100.0] {
        let off = got.efficient.at(n) / known.efficient.at(n) - 1.0;
        assert!(off.abs() < 0.02, "{n}: {off}");
    }
}

#[test]
fn seed002_s86_the_fit_recovers_the_curve_it_was_given() {
    let table = [
        (0.579, 1.44, 0.067),
        (1.58, 1.32, 0.066),
        (1.46, 1.11, 0.083),
    ];
    for (a, b, c) in table {
        let known = Curve { a, b, c };
        let points = [8.0, 40.0, 1024.0].map(|n| (n, known.at(n)));
        let found = fit_curve(&points).expect("three points");
        for (got, given) in [(found.a, a), (found.b, b), (found.c, c)] {
            assert!(
                (got / given - 1.0).abs() < 1e-6,
                "{found:?} instead of {known:?}"
            );
        }
    }
    // Noise of some percent moves predictions by no more than that.
    let known = Curve {
        a: 2e-9,
        b: 1.1,
        c: 1e-10,
    };
    let mut random = Random::new(3);
    let noisy: Vec<(f64, f64)> = (0..10)
        .map(|i| {
            let n = f64::from(1 << i) * 4.0;
            (
                n,
                known.at(n) * (0.97 + 0.06 * random.below(1000) as f64 / 1000.0),
            )
        })
        .collect();
    let found = fit_curve(&noisy).expect("points");
    for n in [6.0, 100.0, 3000.0] {
        assert!((found.at(n) / known.at(n) - 1.0).abs() < 0.06, "{found:?}");
    }
    // What cannot be fitted is not divided by.
    assert!(fit_curve(&[]).is_none());
    assert!(fit_curve(&[(8.0, 0.0), (0.0, 1.0), (f64::NAN, 1.0)]).is_none());
    let constant = fit_curve(&[(8.0, 0.5)]).expect("one point");
    assert!((constant.at(1e6) - 0.5).abs() < 1e-9 && constant.a == 0.0);
    let rising = fit_curve(&[(8.0, 0.1), (64.0, 0.5)]).expect("points");
    assert!(rising.a >= 0.0 && rising.c >= 0.0);
}

#[test]
fn the_direct_search_finds_a_valley() {
    let banana = |x: &[f64; 2]| 100.0 * (x[1] - x[0] * x[0]).powi(2) + (1.0 - x[0]).powi(2);
    let (at, value) = hooke_jeeves(banana, [-1.2, 1.0], [0.5, 0.5], 1e-9, 100_000);
    assert!(value < 1e-8 && (at[0] - 1.0).abs() < 1e-3, "{at:?} {value}");
}

#[test]
fn seed002_s87_accuracy_is_as_defined() {
    let perfect = Accuracy::of(&[(1.0, 1.0), (2.0, 2.0), (5.0, 5.0)]);
    assert_eq!(
        (perfect.r_squared, perfect.max_error, perfect.error_90),
        (1.0, 0.0, 0.0)
    );
    let mean = Accuracy::of(&[(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)]);
    assert_eq!(mean.r_squared, 0.0, "no better than the mean");
    let worse = Accuracy::of(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]);
    assert_eq!(worse.r_squared, -3.0, "worse than the mean");
    assert_eq!(worse.max_error, 2.0);
    // Ten errors of 1 to 10 percent: nine are within 9.
    let ten: Vec<(f64, f64)> = (1..=10).map(|i| (100.0, 100.0 + f64::from(i))).collect();
    let accuracy = Accuracy::of(&ten);
    assert!((accuracy.error_90 - 0.09).abs() < 1e-12 && (accuracy.max_error - 0.1).abs() < 1e-12);
    assert_eq!(accuracy.count, 10);
    let none = Accuracy::of(&[(0.0, 1.0), (f64::NAN, 1.0)]);
    assert_eq!((none.count, none.max_error), (0, 0.0));
}

#[test]
fn seed002_s90_two_phases_stop_paying_at_elements_of_36_bytes() {
    let cs2 = Redistributor::CS2;
    assert!((cs2.two_phase() - 0.364).abs() < 1e-12);
    let crossing = (1..200).find(|&e| !cs2.two_phase_pays(f64::from(e)));
    let crossing = crossing.expect("one phase wins in the end");
    assert!((35..=37).contains(&crossing), "{crossing}");
    assert!(cs2.two_phase_pays(8.0) && !cs2.two_phase_pays(64.0));
    // A slower exchange, of which two phases have one more, moves it down.
    let slow = Redistributor {
        exchange: 0.2,
        ..cs2
    };
    assert!(!slow.two_phase_pays(30.0));
}

#[test]
fn hops_add_up_as_equations_5_1_to_6_9_say() {
    let between = Backbone {
        latency_s: 1e-4,
        bytes_per_s: 1e8,
    };
    let hop = Hop {
        latency_s: 2e-5,
        bytes_per_s: 5e8,
        fixed_s: 1e-5,
        per_byte_s: 1e-9,
    };
    let messages: Vec<Message> = (0..=10)
        .map(|i| Message {
            bytes: 1_000_000,
            matching: f64::from(i) / 10.0,
        })
        .collect();
    let one = |hops| message_s(&between, &hop, 1_000_000, hops);
    for m in &messages {
        let got = client_s(&between, &hop, std::slice::from_ref(m));
        assert!((got - one(2.0 - m.matching)).abs() < 1e-12);
    }
    let sum: f64 = messages.iter().map(|m| one(2.0 - m.matching)).sum();
    assert!((client_s(&between, &hop, &messages) - sum).abs() < 1e-12);
}

#[test]
fn a_walk_with_lines_and_pages_is_fitted_and_predicted() {
    let known = |w: &WalkSample| {
        w.bytes * (3e-9 / w.n.powf(0.9) + 8e-11)
            + w.excess.lines * 1.2e-9
            + w.excess.pages * 7e-9
            + w.excess.far_bytes * 5e-11
    };
    let mut walks = Vec::new();
    for n in [4.0, 8.0, 32.0, 64.0, 256.0, 4096.0] {
        for (lines, pages, far) in [(0.0, 0.0, 0.0), (1.0, 0.0, 1.0), (1.0, 1.0, 1.0)] {
            let bytes = 1e6;
            let excess = Excess {
                lines: lines * bytes / n,
                far_lines: 0.0,
                pages: pages * bytes / n / 3.0,
                far_bytes: far * bytes,
                odd_pieces: 0.0,
                jumps: 0.0,
            };
            let mut walk = WalkSample {
                n,
                bytes,
                transfers: 4.0,
                excess,
                seconds: 0.0,
            };
            walk.seconds = known(&walk);
            walks.push(walk);
        }
    }
    let sizes = Machine::HOST.walk;
    let fit = fit_walk(&walks, &sizes).expect("walks");
    assert!(fit.accuracy.max_error < 0.01, "{fit:?}");
    let unseen = WalkSample {
        n: 100.0,
        ..walks[1]
    };
    assert!((fit.predict(&unseen) / known(&unseen) - 1.0).abs() < 0.02);
    assert!(fit_walk(&[], &sizes).is_none());
    // Lengths that were left out are predicted as well by such a law; the ends stay in.
    let left = left_out(&walks, &sizes, 2);
    assert_eq!(left.len(), 3 * 4);
    assert!(
        left.iter().all(|(y, p)| (p / y - 1.0).abs() < 0.05),
        "{left:?}"
    );
    assert!(left_out(&walks[..2], &sizes, 4).is_empty());
    // Columns that are not there, and nothing to fit to.
    assert_eq!(least_squares(&[([0.0, 2.0], 4.0)]), [0.0, 2.0]);
    assert_eq!(least_squares::<2>(&[]), [0.0, 0.0]);
    assert_eq!(least_squares(&[([1.0], 0.0)]), [0.0]);
}
