//! `pario bench match`: does the matching degree predict how fast a redistribution runs?
//!
//! Many pairs of layouts are carried out in memory. Predictors known before any byte moves (the
//! matching degree, the number of joint runs and of copy runs, their mean lengths) are set beside two
//! rates of the same run: relative to memcpy of the same bytes, and relative to `perfect`, the same
//! bytes moved by the same means between layouts that match. A summary row for each predictor says
//! how well it does:
//! * the value is the rank correlation over all cases;
//! * `rank_within_arrays` is the mean of the rank correlations among the pairs of one array, which is
//!   what counts for a choice of layout;
//! * `r2_log_line` and `r2_rising` are the shares of the variation (of the logarithm of the relative
//!   rate) that a straight line and a rising curve explain, for points they were not fitted to.
//!
//! Runs slow down and therefore enter with their sign changed.

use std::collections::BTreeMap;

use console::{Error, notation, output};
use layout::Partition;
use plan::{Measures, Plan};

use super::contest::{Contestant, Effort, Job, contest};
use super::redistribution::{FlatCopy, Redistribution, partition};
use super::{Row, Sheet, prediction, rounded};

/// A redistribution to measure.
struct Case {
    array: String,
    from: String,
    to: String,
}

impl Case {
    fn new(array: &str, from: &str, to: &str) -> Case {
        let [array, from, to] = [array, from, to].map(str::to_owned);
        Case { array, from, to }
    }

    fn name(&self) -> String {
        format!("match/{}/{} -> {}", self.array, self.from, self.to)
    }
}

/// Lines: blocks, packs and stripes of many lengths, from 64 KiB to 64 MiB.
fn lines() -> Vec<Case> {
    let mut cases = Vec::new();
    let case = Case::new;
    for array in ["u8[65536]", "f32[262144]", "f64[1000000]", "f64[8388608]"] {
        for k in [
            "cyclic",
            "cyclic(3)",
            "cyclic(8)",
            "cyclic(31)",
            "cyclic(128)",
            "cyclic(1000)",
        ] {
            let dealt = format!("({k}) onto 4");
            cases.push(case(array, "(block) onto 4", &dealt));
            cases.push(case(array, &dealt, "(block) onto 6"));
        }
        cases.push(case(array, "(cyclic) onto 4", "(cyclic(4)) onto 4"));
        cases.push(case(array, "(cyclic(4)) onto 8", "(cyclic(32)) onto 4"));
        cases.push(case(array, "(cyclic(16)) onto 4", "(cyclic(24)) onto 4"));
        cases.push(case(array, "(cyclic(64)) onto 16", "(cyclic(1024)) onto 4"));
        cases.push(case(array, "(block) onto 4", "(block) onto 5"));
        cases.push(case(array, "(block) onto 64", "(block) onto 4"));
        cases.push(case(array, "striped(4KiB) over 4", "striped(16KiB) over 4"));
        cases.push(case(array, "striped(512) over 8", "striped(4KiB) over 3"));
        cases.push(case(array, "striped(1000) over 4", "striped(1500) over 4"));
    }
    cases
}

/// Matrices: rows, columns, blocks, packs and chunks against each other.
fn matrices() -> Vec<Case> {
    let layouts = [
        "(block, *) onto 4",
        "(*, block) onto 4",
        "(block, block) onto 2x2",
        "(cyclic, *) onto 4",
        "(*, cyclic) onto 4",
        "(cyclic(2), cyclic(4)) onto 2x2",
        "(cyclic(16), cyclic(16)) onto 2x2",
        "(block, cyclic(64)) onto 2x2",
        "(*, block) onto 32",
        "chunks(32,32) over 4",
    ];
    let arrays = [
        "u8[256,256]",
        "f32[512,256]",
        "f64[500,700]",
        "u8[4096,2048]",
        "f64[1024,1024]",
        "c128[1000,1000]",
        "f64[2048,4096]",
    ];
    let mut cases = Vec::new();
    for (a, array) in arrays.into_iter().enumerate() {
        for (i, from) in layouts.into_iter().enumerate() {
            for (j, to) in layouts.into_iter().enumerate() {
                // A third of the pairs of each array, another third for the next; some match,
                // though the file changes hands at every row.
                let wanted = i != j || layouts[i].starts_with("(*, ");
                if wanted && (i + 2 * j + a) % 3 == 0 {
                    cases.push(Case::new(array, from, to));
                }
            }
        }
    }
    cases
}

/// One measured redistribution.
struct Point {
    array: String,
    measures: Measures,
    /// Rate relative to each yardstick.
    relative: [f64; 2],
}

/// memcpy of the same bytes, and the same means between layouts that match.
const YARDSTICKS: [&str; 2] = ["memcpy", "perfect"];

/// Runs the benchmark; quickly only every fourth case, and each once.
pub(crate) fn run(sheet: &mut Sheet) -> Result<(), Error> {
    let effort = Effort::new(7, 2e6);
    let statistic = format!("best of {ROUNDS} x {}", effort.turns);
    sheet.begin("match", "GB/s", statistic);
    let mut cases = lines();
    cases.extend(matrices());
    cases.retain(|case| sheet.wants(&case.name()));
    let (step, rounds) = match sheet.is_quick() {
        true => (4, 1),
        false => (1, ROUNDS),
    };
    let cases: Vec<&Case> = cases.iter().step_by(step).collect();
    let mut times = vec![Times::default(); cases.len()];
    for round in 0..rounds {
        output::note(&format!("round {} of {rounds}", round + 1));
        for (case, times) in cases.iter().zip(&mut times) {
            times.improve(measure(case, effort)?);
        }
    }
    let mut points = Vec::new();
    for (case, times) in cases.into_iter().zip(times) {
        let (row, point) = evaluated(case, &times)?;
        sheet.push(row)?;
        points.push(point);
    }
    // A summary is about all cases that were wanted.
    sheet.keep(summary(&points))
}

/// All cases are measured so many times over, minutes apart: what disturbs a shared machine for a
/// while does not disturb all rounds.
const ROUNDS: usize = 3;

/// What a case and its yardsticks took at best, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    own: f64,
    yardsticks: [f64; 2],
    spread: f64,
}

impl Default for Times {
    fn default() -> Self {
        Times {
            own: f64::INFINITY,
            yardsticks: [f64::INFINITY; 2],
            spread: f64::INFINITY,
        }
    }
}

impl Times {
    fn improve(&mut self, other: Times) {
        self.own = self.own.min(other.own);
        self.spread = self.spread.min(other.spread);
        for (mine, other) in self.yardsticks.iter_mut().zip(other.yardsticks) {
            *mine = mine.min(other);
        }
    }
}

fn planned(case: &Case) -> Result<(Partition, Plan), Error> {
    let array = notation::array(&case.array)?;
    let partition = |text| Ok::<_, Error>(partition("layout", text, &array)?.1);
    let (from, to) = (partition(&case.from)?, partition(&case.to)?);
    let plan = Plan::between(&from, &to, array.bytes());
    Ok((from, plan))
}

fn measure(case: &Case, effort: Effort) -> Result<Times, Error> {
    let (from, plan) = planned(case)?;
    let bytes = plan.volume();
    let mut job = Redistribution::new(&plan)?;
    job.fill();
    job.run()?;
    job.verify()?;
    // The same bytes by the same means between layouts that match.
    let same = Plan::between(&from, &from, bytes);
    let mut perfect = Redistribution::new(&same)?;
    perfect.fill();
    let mut flat = FlatCopy::new(bytes)?;
    let mut own = Job(|| {
        let _ = job.run();
    });
    let mut memcpy = Job(|| flat.run());
    let mut perfect = Job(|| {
        let _ = perfect.run();
    });
    let mut contestants: [&mut dyn Contestant; 3] = [&mut own, &mut memcpy, &mut perfect];
    let outcomes = contest(effort, &mut contestants);
    let (Some(own), Some(memcpy), Some(perfect)) = (outcomes[0], outcomes[1], outcomes[2]) else {
        return Err("no time measured".into());
    };
    Ok(Times {
        own: own.best,
        yardsticks: [memcpy.best, perfect.best],
        spread: own.spread(),
    })
}

fn evaluated(case: &Case, times: &Times) -> Result<(Row, Point), Error> {
    let measures = planned(case)?.1.measures();
    let relative = times.yardsticks.map(|time| time / times.own);
    let row = Row::new(case.name(), measures.bytes as f64 / times.own, "GB/s")
        .spread(times.spread)
        .ratios(YARDSTICKS.into_iter().zip(relative))
        .column("bytes", measures.bytes)
        .column("pairs", measures.pairs)
        .column("runs", measures.runs)
        .column("copy_runs", measures.copy_runs)
        .column("least_runs", measures.least_runs)
        .column("mean_run", rounded(measures.mean_run))
        .column("excess_lines", rounded(measures.excess_lines))
        .column("matching_degree", rounded(measures.matching_degree()));
    let array = case.array.clone();
    let point = Point {
        array,
        measures,
        relative,
    };
    Ok((row, point))
}

/// A predictor: its name and its value for a plan, larger for faster.
type Predictor = (&'static str, fn(&Measures) -> f64);

const PREDICTORS: [Predictor; 5] = [
    ("matching-degree", |m| m.matching_degree()),
    ("runs", |m| -(m.runs as f64)),
    ("copy-runs", |m| -(m.copy_runs as f64)),
    ("mean-run", |m| m.mean_run),
    ("mean-copy-run", |m| m.bytes as f64 / m.copy_runs as f64),
];

/// One row per yardstick and predictor.
fn summary(points: &[Point]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (yardstick, name) in YARDSTICKS.iter().enumerate() {
        let outcome: Vec<f64> = points.iter().map(|p| p.relative[yardstick].ln()).collect();
        for (predictor, value) in PREDICTORS {
            let x: Vec<f64> = points.iter().map(|p| value(&p.measures)).collect();
            // Rates follow ratios of runs and lengths, not differences: fitted on logarithms.
            let log: Vec<f64> = x.iter().map(|x| x.signum() * x.abs().ln()).collect();
            let line = prediction::linear_r2(&log, &outcome);
            let rising = prediction::rising_r2(&x, &outcome);
            let within = within_arrays(points, &x, &outcome);
            let case = format!("summary/{name}/{predictor}");
            let value = prediction::spearman(&x, &outcome);
            let row = Row::new(case, value, "rank correlation").column("cases", points.len());
            rows.push(
                row.column("rank_within_arrays", rounded(within))
                    .column("r2_log_line", rounded(line))
                    .column("r2_rising", rounded(rising)),
            );
        }
    }
    rows
}

/// Mean rank correlation over the arrays: which layout suits an array is asked for one array.
fn within_arrays(points: &[Point], x: &[f64], outcome: &[f64]) -> f64 {
    let mut groups: BTreeMap<&str, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for ((point, x), y) in points.iter().zip(x).zip(outcome) {
        let (xs, ys) = groups.entry(&point.array).or_default();
        xs.push(*x);
        ys.push(*y);
    }
    let ranks: Vec<f64> = groups
        .values()
        .filter(|(xs, _)| xs.len() > 2)
        .map(|(xs, ys)| prediction::spearman(xs, ys))
        .collect();
    ranks.iter().sum::<f64>() / ranks.len().max(1) as f64
}
