//! `pario bench plan`: how long planning takes as arrays and numbers of elements grow.
//!
//! Groups of cases:
//! * `view/<view>-<subfiles>/N=<n>`: one view of an N x N byte matrix against four subfiles, intersection and
//!   both projections for each; the experiment of the Clusterfile paper (its times, of a machine
//!   of its day, are cited in `paper_us` and are no yardstick);
//! * `lazy/...`: patterns without a common period that could be written down: setting up, and the
//!   cost of one run afterwards;
//! * `elements/<question>/<layout>/E=<count>`: partitions of many elements.
//!
//! Yardsticks: `list` merges two ready lists of segments, the flattened form of the same work; `scan`
//! asks every element; `all-pairs` meets every element with every other. They grow with what Pario's
//! answer does not grow with, and are left out where they would take too long.

use std::hint::black_box;
use std::ops::Range;

use console::{Error, notation};
use falls::{FallsSet, Meeting, Periodic};
use layout::{FileOffset, Partition, Pattern, View};
use plan::Plan;
use serde_json::{Value, json};

use super::contest::{Contestant, Effort, Job, contest, ratios};
use super::{Row, Sheet, redistribution, rounded};

const EFFORT: Effort = Effort {
    turns: 11,
    turn_ns: 2e5,
    most_ns: f64::INFINITY,
};

/// Measures a job and its yardstick, in microseconds per pass divided by `parts`; the columns
/// may depend on that value.
fn add(
    sheet: &mut Sheet,
    case: String,
    parts: f64,
    columns: impl FnOnce(f64) -> Vec<(&'static str, Value)>,
    mut job: impl FnMut(),
    yardstick: Option<(&'static str, &mut dyn FnMut())>,
) -> Result<(), Error> {
    let mut own = Job(&mut job);
    let mut names = Vec::new();
    let mut other = yardstick.map(|(name, work)| {
        names.push(name);
        Job(work)
    });
    let mut contestants: Vec<&mut dyn Contestant> = vec![&mut own];
    if let Some(other) = &mut other {
        contestants.push(other);
    }
    let outcomes = contest(EFFORT, &mut contestants);
    let own = outcomes[0].ok_or("no time measured")?;
    let mut row = Row::new(case, own.best / 1e3 / parts, "us")
        .spread(own.spread())
        .ratios(ratios(names, &outcomes));
    for (name, value) in columns(row.value) {
        row.set(name, value);
    }
    sheet.push(row)
}

/// Runs the benchmark.
pub(crate) fn run(sheet: &mut Sheet) -> Result<(), Error> {
    sheet.begin("plan", "us", format!("best of {}", EFFORT.turns));
    views(sheet)?;
    lazy(sheet)?;
    elements(sheet)
}

/// A layout of the language as a partition.
fn partition(text: &str, array: &str) -> Result<Partition, Error> {
    Ok(redistribution::partition("layout", text, &notation::array(array)?)?.1)
}

/// What the paper measured for one view and four subfiles, by N: columns, blocks, rows (table 1).
const PAPER_US: [(u64, [u64; 3]); 5] = [
    (256, [1229, 514, 310]),
    (512, [1096, 506, 333]),
    (1024, [1136, 518, 318]),
    (2048, [1222, 503, 296]),
    (4096, [1118, 506, 321]),
];

/// The list yardstick is left out for longer lists.
const LONGEST_LIST: u64 = 1 << 17;

fn views(sheet: &mut Sheet) -> Result<(), Error> {
    let kinds = [
        ("rows-cols", "(*, block) onto 4"),
        ("rows-blocks", "(block, block) onto 2x2"),
        ("rows-rows", "(block, *) onto 4"),
        ("rows-cyclic", "(cyclic(16), cyclic(16)) onto 2x2"),
    ];
    for (kind, (name, subfiles)) in kinds.into_iter().enumerate() {
        for power in 8..=20 {
            let case = format!("view/{name}/N=2^{power}");
            if !sheet.wants(&case) {
                continue;
            }
            let n = 1u64 << power;
            let array = format!("u8[{n},{n}]");
            let rows = partition("(block, *) onto 4", &array)?;
            let target = partition(subfiles, &array)?;
            let view = View::from(rows.subfile(1));
            let work = || {
                for element in 0..target.len() {
                    black_box(view.to_subfile(&target, element));
                }
            };
            let (mut nodes, mut text) = (0, 0);
            for element in 0..target.len() {
                let meeting = view.to_subfile(&target, element);
                nodes += meeting.meeting().node_count();
                let sides = [meeting.meeting().on_left(), meeting.meeting().on_right()];
                for side in sides.into_iter().flatten().filter(|side| !side.is_empty()) {
                    text += side.set().to_string().len();
                }
            }
            let first = sheet
                .rows
                .iter()
                .find(|row| row.case == format!("view/{name}/N=2^8"))
                .map(|row| row.value);
            let mut columns = vec![("nodes", json!(nodes)), ("notation_bytes", json!(text))];
            if let Some((_, paper)) = PAPER_US.iter().find(|(size, _)| *size == n)
                && let Some(us) = paper.get(kind)
            {
                columns.push(("paper_us", json!(us)));
            }
            let lists = (target.subfile(0).set().run_count() <= LONGEST_LIST).then(|| {
                let list = |set: &Periodic| set.segments(0..n * n).map(|s| (s.start(), s.len()));
                let view: Vec<(u64, u64)> = list(view.bytes()).collect();
                let subfiles: Vec<Vec<(u64, u64)>> =
                    target.subfiles().map(|s| list(&s).collect()).collect();
                (view, subfiles)
            });
            let mut merge = lists.map(|(view, subfiles)| {
                move || {
                    for subfile in &subfiles {
                        black_box(merged(&view, subfile));
                    }
                }
            });
            let yardstick = merge.as_mut().map(|m| ("list", m as &mut dyn FnMut()));
            let columns = |value: f64| {
                columns.extend(first.map(|first| ("times_of_2^8", json!(rounded(value / first)))));
                columns
            };
            add(sheet, case, 1.0, columns, work, yardstick)?;
        }
    }
    Ok(())
}

/// The intersection of two lists of (start, len) with positions on both sides, piece by piece.
fn merged(left: &[(u64, u64)], right: &[(u64, u64)]) -> Vec<[u64; 4]> {
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    let (mut left_before, mut right_before) = (0, 0);
    while let (Some(&(a, alen)), Some(&(b, blen))) = (left.get(i), right.get(j)) {
        let (lo, hi) = (a.max(b), (a + alen).min(b + blen));
        if lo < hi {
            out.push([lo, left_before + lo - a, right_before + lo - b, hi - lo]);
        }
        if a + alen <= b + blen {
            left_before += alen;
            i += 1;
        } else {
            right_before += blen;
            j += 1;
        }
    }
    out
}

fn lazy(sheet: &mut Sheet) -> Result<(), Error> {
    let (p, q) = ((1u64 << 31) - 1, (1u64 << 31) + 11);
    let element = |period: u64, text: &str| -> Result<Periodic, Error> {
        Ok(Periodic::new(0, period, text.parse::<FallsSet>()?)?)
    };
    let pairs = [
        (
            "coarse",
            element(p, "{(0,1000000,-,1)}")?,
            element(q, "{(0,500000,-,1)}")?,
        ),
        (
            "fine",
            element(p, "{(0,99,300,7000000)}")?,
            element(q, "{(50,249,700,3000000)}")?,
        ),
    ];
    for (name, left, right) in pairs {
        let case = format!("lazy/{name}/setup/P=2^31-1/Q=2^31+11");
        if sheet.wants(&case) {
            let symbolic = json!(Meeting::new(&left, &right).is_symbolic());
            let columns = vec![("symbolic", symbolic)];
            let work = || {
                black_box(Meeting::new(&left, &right));
            };
            add(sheet, case, 1.0, |_| columns, work, None)?;
        }
        let case = format!("lazy/{name}/run/P=2^31-1/Q=2^31+11");
        if sheet.wants(&case) {
            let meeting = Meeting::new(&left, &right);
            // Far out, where nothing is aligned any more.
            let window = || 1u64 << 50..1 << 62;
            let count = meeting.runs(window()).take(1000).count();
            let work = || {
                black_box(meeting.runs(window()).take(1000).last());
            };
            let columns = vec![("runs", json!(count))];
            add(sheet, case, count as f64, |_| columns, work, None)?;
        }
    }
    Ok(())
}

/// Deterministic file offsets, spread over the file.
fn spread(index: u64, len: u64) -> u64 {
    random::Random::new(index).below(len)
}

fn elements(sheet: &mut Sheet) -> Result<(), Error> {
    for count in [10u64, 100, 1000, 10_000, 100_000] {
        for (name, text) in [
            ("block", format!("(block) onto {count}")),
            ("cyclic", format!("(cyclic(3)) onto {count}")),
        ] {
            let array = format!("u8[{}]", count * 3000);
            let partition = partition(&text, &array)?;
            questions(sheet, name, count, &partition)?;
        }
        between(sheet, count)?;
    }
    Ok(())
}

/// What is asked of one partition.
fn questions(
    sheet: &mut Sheet,
    name: &str,
    count: u64,
    partition: &Partition,
) -> Result<(), Error> {
    let len = partition.pattern().period();
    let case = |question: &str| format!("elements/{question}/{name}/E={count}");

    let validate = case("validate");
    if sheet.wants(&validate) {
        let sets = partition.pattern().elements().to_vec();
        let per_element = partition.pattern().index_nodes() as f64 / count as f64;
        let columns = vec![("index_nodes_per_element", json!(rounded(per_element)))];
        let work = || {
            let _ = black_box(Pattern::new(len, sets.clone()));
        };
        add(sheet, validate, 1.0, |_| columns, work, None)?;
    }

    let owner = case("owner");
    if sheet.wants(&owner) {
        let mut at = 0;
        let work = || {
            at += 1;
            black_box(partition.owner(FileOffset(spread(at, len))));
        };
        let subfiles: Vec<Periodic> = partition.subfiles().collect();
        let mut turn = 0;
        let mut scan = || {
            turn += 1;
            let x = spread(turn, len);
            black_box(subfiles.iter().position(|subfile| subfile.contains(x)));
        };
        let none = |_| Vec::new();
        add(sheet, owner, 1.0, none, work, Some(("scan", &mut scan)))?;
    }

    let meeting = case("range");
    if sheet.wants(&meeting) {
        let range = |index: u64| -> Range<FileOffset> {
            let from = spread(index, len.saturating_sub(40));
            FileOffset(from)..FileOffset(from + 30)
        };
        let found = partition.elements_meeting(range(1)).len();
        let mut at = 0;
        let work = || {
            at += 1;
            black_box(partition.elements_meeting(range(at)));
        };
        let subfiles: Vec<Periodic> = partition.subfiles().collect();
        let mut turn = 0;
        let mut scan = || {
            turn += 1;
            let range = range(turn);
            let meets = |s: &Periodic| s.rank(range.end.0) > s.rank(range.start.0);
            black_box(subfiles.iter().filter(|s| meets(s)).count());
        };
        let columns = vec![("found", json!(found))];
        add(
            sheet,
            meeting,
            1.0,
            |_| columns,
            work,
            Some(("scan", &mut scan)),
        )?;
    }

    let view = case("view");
    if sheet.wants(&view) {
        // 30 bytes, as many elements at most, whatever the number of elements.
        let set = FallsSet::segment(len / 2, 30)?;
        let views = [View::new(FileOffset(0), len, set)?];
        let pairs = Plan::for_views(&views, partition, len).transfers().len();
        let work = || {
            black_box(Plan::for_views(&views, partition, len));
        };
        add(
            sheet,
            view,
            1.0,
            |_| vec![("pairs", json!(pairs))],
            work,
            None,
        )?;
    }
    Ok(())
}

/// A whole redistribution between blocks of slightly different length.
fn between(sheet: &mut Sheet, count: u64) -> Result<(), Error> {
    let case = format!("elements/between/block/E={count}");
    if !sheet.wants(&case) {
        return Ok(());
    }
    let array = format!("u8[{}]", count * 3000);
    let from = partition(&format!("(block) onto {count}"), &array)?;
    let to = partition(&format!("(block) onto {}", count + count / 10), &array)?;
    let len = from.pattern().period();
    let pairs = Plan::between(&from, &to, len).transfers().len();
    let work = || {
        black_box(Plan::between(&from, &to, len));
    };
    let (sources, targets): (Vec<Periodic>, Vec<Periodic>) =
        (from.subfiles().collect(), to.subfiles().collect());
    let mut all = || {
        for a in &sources {
            for b in &targets {
                black_box(Meeting::new(a, b));
            }
        }
    };
    let few = count <= 1000;
    let yardstick = few.then_some(("all-pairs", &mut all as &mut dyn FnMut()));
    let columns = |value: f64| {
        let per_pair = json!(rounded(value / pairs as f64));
        vec![("pairs", json!(pairs)), ("us_per_pair", per_pair)]
    };
    add(sheet, case, 1.0, columns, work, yardstick)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_yardstick_finds_what_a_meeting_finds() {
        let rows = partition("(cyclic(3), *) onto 2", "u8[16,10]").expect("valid");
        let columns = partition("(*, cyclic(2)) onto 3", "u8[16,10]").expect("valid");
        let (a, b) = (rows.subfile(1), columns.subfile(2));
        let list = |s: &Periodic| -> Vec<(u64, u64)> {
            s.segments(0..160).map(|s| (s.start(), s.len())).collect()
        };
        let meeting = Meeting::new(&a, &b);
        let runs: Vec<[u64; 4]> = meeting
            .runs(0..160)
            .map(|run| [run.file, run.left, run.right, run.len])
            .collect();
        assert_eq!(merged(&list(&a), &list(&b)), runs);
    }
}
