//! `pario bench move`: an array changes its layout in memory, there and back, by plan and kernels,
//! beside memcpy of the same bytes, plain loops and numpy.

use std::process::Command;
use std::time::Instant;

use clap::Args;
use kernels::{PageBuffer, Pages};
use layout::{ArrayType, Partition};
use plan::Plan;
use serde_json::{Map, json};

use super::contest::{Contestant, Effort, Job, contest};
use super::flags::ReportTo;
use super::redistribution::Redistribution;
use super::{Report, Row, machine, table, yardsticks};
use console::Error;
use console::notation;
use console::subject::Elements;

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

    #[command(flatten)]
    pub(crate) report: ReportTo,

    /// Plan and move once and print the rate: the first pass of a fresh process
    #[arg(long, hide = true)]
    first_pass: bool,
}

/// Largest array that is moved: there are five copies of it in memory.
const MOST_BYTES: u64 = 2 << 30;

/// Runs the benchmark; no report if only a first pass was asked for.
pub(crate) fn run(arguments: &Arguments) -> Result<Option<Report>, Error> {
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
        console::output::print(&format!("{rate}\n"))?;
        return Ok(None);
    }
    let effort = Effort {
        turns: 9,
        turn_ns: 2e6,
    };
    let mut machine = machine::facts();
    machine.insert(
        "statistic".to_owned(),
        json!(format!("best of {}", effort.turns)),
    );
    let quiet = arguments.report.is_on_stdout();
    let lines = table::Lines { aside: quiet };
    let mut numpy = yardsticks::numpy_running(include_str!("../yardsticks/redistribute.py"));
    let mut rows = Vec::new();
    for (source, target) in [(&from, &to), (&to, &from)] {
        let case = format!("move/{array}/{} -> {}", source.0, target.0);
        let mut row = measure(
            case,
            &source.1,
            &target.1,
            array.bytes(),
            effort,
            &mut numpy,
        )?;
        row.first = first_pass_elsewhere(&source.0, &target.0, &array);
        lines.write(&described(&row, &source.0, &target.0, &array))?;
        rows.push(row);
    }
    lines.write("Every target byte was compared with the byte that belongs there, both ways.")?;
    Ok(Some(Report {
        bench: "move",
        machine,
        rows,
    }))
}

/// A row as a paragraph: rates of Pario and its yardsticks, and what came before them.
fn described(row: &Row, from: &str, to: &str, array: &ArrayType) -> String {
    let column = |name: &str| row.columns[name].to_string();
    let mut text = format!(
        "{from} -> {to}, {array}, {}, {} transfers, {} runs\n",
        console::output::bytes(array.bytes()),
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

/// The layout's canonical text and the partition.
fn partition(role: &str, text: &str, array: &ArrayType) -> Result<(String, Partition), Error> {
    let subject = notation::partition(role, text, array)?;
    match subject.elements {
        Elements::Partition(partition) => Ok((subject.text, partition)),
        Elements::Views(_) => unreachable!("read as a partition"),
    }
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

fn first_pass_elsewhere(from: &str, to: &str, array: &ArrayType) -> Option<f64> {
    let output = Command::new(super::this_program().ok()?)
        .args(["move", "--first-pass", "--from", from, "--to", to])
        .args(["--array", &array.to_string()])
        .output()
        .ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
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

    let len = usize::try_from(bytes)?;
    let mut flat = (
        PageBuffer::new(len, Pages::Huge)?,
        PageBuffer::new(len, Pages::Huge)?,
    );
    flat.0.fill(1);
    flat.1.fill(2);
    let mut failure: Option<Error> = None;
    let mut own = Job(|| {
        if let Err(error) = job.run() {
            failure = Some(error);
        }
    });
    let mut memcpy = Job(|| flat.1.copy_from_slice(std::hint::black_box(&flat.0)));
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
    let ratios = names.into_iter().zip(&outcomes[1..]);
    let measures = plan.measures();
    let mut columns = Map::new();
    columns.insert("bytes".to_owned(), json!(bytes));
    columns.insert("pairs".to_owned(), json!(measures.pairs));
    columns.insert("runs".to_owned(), json!(measures.runs));
    columns.insert(
        "matching_degree".to_owned(),
        json!(super::rounded(measures.matching_degree())),
    );
    columns.insert("plan_us".to_owned(), json!(super::rounded(plan_us)));
    columns.insert("compile_us".to_owned(), json!(super::rounded(compile_us)));
    Ok(Row {
        case,
        value: bytes as f64 / own.best,
        unit: "GB/s",
        spread: own.spread(),
        first: None,
        columns,
        ratios: ratios
            .filter_map(|(name, outcome)| Some((name, outcome.as_ref()?.best / own.best)))
            .collect(),
    })
}
