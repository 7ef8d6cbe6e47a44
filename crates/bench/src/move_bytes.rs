//! `pario bench move`: an array changes its layout in memory, there and back, by plan and kernels,
//! beside memcpy of the same bytes, plain loops and numpy.

use std::time::Instant;

use clap::Args;
use console::{Error, notation, output};
use layout::{ArrayType, Partition};
use plan::Plan;

use super::contest::{Contestant, Effort, Job, contest, ratios};
use super::redistribution::{FlatCopy, Redistribution, partition};
use super::{Row, Sheet, rounded, yardsticks};

/// Arguments of `pario bench move`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// The layout the bytes are in
    #[arg(long, value_name = "LAYOUT", default_value = "(block, *) onto 4")]
    from: String,

    /// The layout the bytes go to
    #[arg(long, value_name = "LAYOUT", default_value = "(*, block) onto 4")]
    to: String,

    /// The array
    #[arg(long, value_name = "ARRAY", default_value = "f64[4096,4096]")]
    array: String,

    /// Plan and move once and print the rate: the first pass of a fresh process
    #[arg(long, hide = true)]
    first_pass: bool,
}

/// Largest array that is moved: there are five copies of it in memory.
const MOST_BYTES: u64 = 2 << 30;

/// Runs the benchmark; no report if only a first pass was asked for.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    let array = notation::array(&arguments.array)?;
    if array.bytes() > MOST_BYTES {
        return Err(format!(
            "--array: {array} has {} bytes, and five times that is needed in memory; give an array of at most {MOST_BYTES} bytes",
            array.bytes()
        )
        .into());
    }
    let from = partition("--from", &arguments.from, &array)?;
    let to = partition("--to", &arguments.to, &array)?;
    if arguments.first_pass {
        let rate = first_pass(&from.1, &to.1, array.bytes())?;
        return output::print(&format!("{rate}\n"));
    }
    let effort = Effort::new(9, 2e6);
    sheet.begin("move", "GB/s", format!("best of {}", effort.turns));
    let mut numpy = yardsticks::numpy_running(include_str!("../yardsticks/redistribute.py"));
    for (source, target) in [(&from, &to), (&to, &from)] {
        let case = format!("move/{array}/{} -> {}", source.0, target.0);
        let bytes = array.bytes();
        let mut row = measure(case, &source.1, &target.1, bytes, effort, &mut numpy)?;
        let arguments = ["move", "--first-pass", "--from", &source.0, "--to"];
        row.first = super::first_pass(
            &[&arguments[..], &[&target.0, "--array", &array.to_string()]].concat(),
        );
        sheet.say(&described(&row, &source.0, &target.0, &array))?;
        sheet.rows.push(row);
    }
    sheet.say("Every target byte was compared with the byte that belongs there, both ways.")
}

/// A row as a paragraph: rates of Pario and its yardsticks, and what came before them.
fn described(row: &Row, from: &str, to: &str, array: &ArrayType) -> String {
    let column = |name: &str| row.columns[name].to_string();
    let mut text = format!(
        "{from} -> {to}, {array}, {}, {} transfers, {} runs\n",
        output::bytes(array.bytes()),
        column("pairs"),
        column("runs")
    );
    let (rate, spread) = (row.value, 100.0 * row.spread);
    text += &format!("  pario   {rate:>7.2} GB/s   (median {spread:.0}% above the best time)\n");
    for (name, ratio) in &row.ratios {
        let other = rate / ratio;
        text += &format!("  {name:<7} {other:>7.2} GB/s   pario / {name} = {ratio:.2}\n");
    }
    text += &format!(
        "  planned in {} us, compiled in {} us",
        column("plan_us"),
        column("compile_us")
    );
    if let Some(first) = row.first {
        text += &format!("; with both, a fresh process begins at {first:.2} GB/s");
    }
    text + "\n"
}

/// Planning, compiling, page faults of the targets and all.
fn first_pass(from: &Partition, to: &Partition, bytes: u64) -> Result<f64, Error> {
    // The sources are there before anybody plans.
    let mut filled = Redistribution::new(&Plan::between(from, to, bytes))?;
    filled.fill_sources();
    let start = Instant::now();
    let plan = Plan::between(from, to, bytes);
    let fresh = filled.with_fresh_targets(&plan)?;
    fresh.run()?;
    Ok(bytes as f64 / start.elapsed().as_nanos() as f64)
}

fn measure(
    case: String,
    from: &Partition,
    to: &Partition,
    bytes: u64,
    effort: Effort,
    numpy: &mut Option<yardsticks::Yardstick>,
) -> Result<Row, Error> {
    let start = Instant::now();
    let plan = Plan::between(from, to, bytes);
    let plan_us = start.elapsed().as_secs_f64() * 1e6;
    let start = Instant::now();
    let mut job = Redistribution::new(&plan)?;
    let compile_us = start.elapsed().as_secs_f64() * 1e6;
    job.fill();
    job.run_plain()?;
    job.verify()?;
    job.fill();
    job.run()?;
    job.verify()?;

    let mut flat = FlatCopy::new(bytes)?;
    let mut failure: Option<Error> = None;
    let mut own = Job(|| {
        if let Err(error) = job.run() {
            failure = Some(error);
        }
    });
    let mut memcpy = Job(|| flat.run());
    let mut plain = Job(|| {
        let _ = job.run_plain();
    });
    let mut names = vec!["memcpy", "loop"];
    let mut contestants: Vec<&mut dyn Contestant> = vec![&mut own, &mut memcpy, &mut plain];
    if let (Some(numpy), Some(line)) = (numpy, job.numpy_setup())
        && numpy.setup(&line)
    {
        names.push(numpy.name);
        contestants.push(numpy);
    }
    let outcomes = contest(effort, &mut contestants);
    if let Some(error) = failure {
        return Err(error);
    }
    let own = outcomes[0].ok_or("no time measured")?;
    let measures = plan.measures();
    Ok(Row::rate(case, bytes, own)
        .ratios(ratios(names, &outcomes))
        .column("bytes", bytes)
        .column("pairs", measures.pairs)
        .column("runs", measures.runs)
        .column("matching_degree", rounded(measures.matching_degree()))
        .column("plan_us", rounded(plan_us))
        .column("compile_us", rounded(compile_us)))
}
