//! Precedence of hints against a plain search: for every name the strongest value that makes sense
//! counts, and every other one says why it does not.
//!
//! Sources, names and values are drawn at random, sensible and not.

use advise::hints::{Life, Source, SourcedHint, Verdict, canonical, check, judge, known};
use proptest::prelude::*;

const NAMES: &[(&str, &[&str])] = &[
    ("striping_unit", &["64KiB", "1", "0", "many", ""]),
    ("io_node_list", &["0,1", "[2]", "all"]),
    ("server_list", &["1", "x"]),
    ("access_style", &["random", "read_once,sequential", "odd"]),
    ("auto_layout", &["off", "apply", "perhaps"]),
    ("upcoming", &["0:10", "ten"]),
    ("disk_failed", &["1", "none"]),
    ("cb_nodes", &["4", "", "anything"]),
];

fn given() -> impl Strategy<Value = SourcedHint> {
    (0..NAMES.len(), any::<usize>(), 0..7usize, 0..3u32).prop_map(|(name, value, source, near)| {
        let (name, values) = NAMES[name];
        let source = Source::ALL[source];
        let distance = u32::from(source == Source::Directory) * near;
        SourcedHint::new(source, name, values[value % values.len()]).at("here", distance)
    })
}

/// The index that counts for a name, found by looking at all.
fn strongest_naive(all: &[SourcedHint], name: &str) -> Option<usize> {
    let makes_sense = |g: &SourcedHint| {
        let life = known(&g.name).is_none_or(|k| g.source.may_give(k.life));
        life && check(&g.name, &g.value).is_ok()
    };
    let mut best: Option<usize> = None;
    for (i, g) in all.iter().enumerate() {
        if canonical(&g.name) != name || !makes_sense(g) {
            continue;
        }
        let beats = best.is_none_or(|b| {
            let b = &all[b];
            g.source > b.source || (g.source == b.source && g.distance <= b.distance)
        });
        if beats {
            best = Some(i);
        }
    }
    best
}

proptest! {
    #![proptest_config(testkit::laws::config(400))]

    #[test]
    fn seed004_s78_the_strongest_hint_that_makes_sense_counts(all in proptest::collection::vec(given(), 0..14)) {
        let mut standing = judge(all.clone(), |_, _| Ok(()));
        prop_assert_eq!(standing.hints.len(), all.len());
        for (name, _) in NAMES {
            let name = canonical(name);
            let wanted = strongest_naive(&all, name);
            prop_assert_eq!(standing.get(name), wanted.map(|i| &all[i]));
            for (i, (g, verdict)) in standing.hints.iter().enumerate() {
                if canonical(&g.name) != name {
                    continue;
                }
                match verdict {
                    Verdict::Counts | Verdict::Unknown => prop_assert_eq!(Some(i), wanted),
                    Verdict::Overridden(by) => prop_assert_eq!(Some(*by), wanted),
                    Verdict::Ignored(why) => prop_assert!(!why.is_empty()),
                }
            }
        }
        // What is passed over makes room for the next one.
        if let Some(first) = strongest_naive(&all, "striping_unit") {
            let mut rest = all.clone();
            rest[first].value = "many".into();
            let next = strongest_naive(&rest, "striping_unit");
            standing.pass_over("striping_unit", "not now");
            prop_assert_eq!(standing.get("striping_unit"), next.map(|i| &all[i]));
            prop_assert_eq!(&standing.hints[first].1, &Verdict::Ignored("not now".into()));
        }
    }
}

#[test]
fn seed004_s77_dynamic_hints_come_from_running_programs_and_static_ones_from_everybody() {
    for source in Source::ALL {
        let of = |name: &str, value: &str| {
            let standing = judge(vec![SourcedHint::new(source, name, value)], |_, _| Ok(()));
            standing.get(name).is_some()
        };
        let is_dynamic = source == Source::Dynamic;
        assert_eq!(of("disk_failed", "1"), is_dynamic, "{source:?}");
        assert_eq!(of("upcoming", "0:1"), is_dynamic, "{source:?}");
        assert_eq!(of("striping_unit", "1"), !is_dynamic, "{source:?}");
        assert_eq!(source.may_give(Life::Static), !is_dynamic);
        let number = u64::from(source.precedence());
        assert_eq!(Source::from_precedence(number), Some(source));
    }
    let mut order = Source::ALL;
    order.sort();
    order.reverse();
    assert_eq!(order, Source::ALL);
}
