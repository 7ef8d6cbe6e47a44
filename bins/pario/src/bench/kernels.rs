//! `pario bench kernels`: copies in memory against memcpy, a plain loop nest, numpy and the
//! pack routines of MPI, case by case (`cases`), then the redistributions (`redistribute`).

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use clap::Args;
use kernels::{PageBuffer, Pages, Program, copy, copy_plain};
use serde_json::{Map, json};

use super::cases::{self, Case};
use super::contest::{Contestant, Effort, Job, contest};
use super::yardsticks::{self, Yardstick};
use super::{Report, Row, goals, machine, redistribute};
use crate::commands::Error;

/// Arguments of `pario bench kernels`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Write the report as JSON to this file; without a file to standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,

    /// Only cases whose name contains this; several alternatives are separated by commas
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// Shorter turns, and no fresh process per case for the first pass
    #[arg(long)]
    quick: bool,

    /// Do one pass of one case and print its rate: the first pass of a fresh process
    #[arg(long, hide = true, value_name = "CASE")]
    first_pass: Option<String>,
}

impl Arguments {
    fn wants(&self, case: &str) -> bool {
        let Some(filter) = &self.filter else {
            return true;
        };
        filter.split(',').any(|part| case.contains(part))
    }

    fn effort(&self) -> Effort {
        if self.quick {
            Effort {
                turns: 7,
                turn_ns: 2e5,
            }
        } else {
            Effort {
                turns: 11,
                turn_ns: 1e6,
            }
        }
    }
}

/// Runs the benchmark; no report if only a first pass was asked for.
pub(crate) fn run(arguments: &Arguments) -> Result<Option<Report>, Error> {
    if let Some(name) = &arguments.first_pass {
        let case = cases::all()
            .into_iter()
            .find(|case| case.name == *name)
            .ok_or("no such case")?;
        println!("{}", first_pass(&case)?);
        return Ok(None);
    }
    let effort = arguments.effort();
    let mut machine = machine::facts();
    machine.insert(
        "statistic".to_owned(),
        json!(format!("best of {}", effort.turns)),
    );
    let mut rows = Vec::new();
    let chosen: Vec<Case> = cases::all()
        .into_iter()
        .filter(|case| arguments.wants(&case.name))
        .collect();
    if !chosen.is_empty() {
        let mut yardsticks = Yardsticks::start();
        eprintln!(
            "{:<40} {:>8} {:>7}  ratios (above 1 Pario is better)",
            "case", "GB/s", "spread"
        );
        for case in &chosen {
            let row = measure(case, effort, arguments.quick, &mut yardsticks)?;
            print_row(&row);
            rows.push(row);
        }
    }
    for row in redistribute::run(effort, &|case| arguments.wants(case))? {
        print_row(&row);
        rows.push(row);
    }
    goals::print(&rows);
    Ok(Some(Report {
        bench: "kernels",
        machine,
        rows,
    }))
}

fn print_row(row: &Row) {
    let mut line = format!(
        "{:<40} {:>8.2} {:>6.0}% ",
        row.case,
        row.value,
        row.spread * 100.0
    );
    for (name, ratio) in &row.ratios {
        line += &format!(" {name} {ratio:.2}");
    }
    eprintln!("{line}");
}

struct Yardsticks {
    numpy: Option<Yardstick>,
    packs: Vec<Yardstick>,
}

impl Yardsticks {
    fn start() -> Yardsticks {
        let packs = [
            ("pack-openmpi", "mpicc.openmpi"),
            ("pack-mpich", "mpicc.mpich"),
        ];
        Yardsticks {
            numpy: yardsticks::numpy(),
            packs: packs
                .into_iter()
                .filter_map(|(name, compiler)| yardsticks::pack(name, compiler))
                .collect(),
        }
    }
}

struct Buffers {
    source: PageBuffer,
    target: PageBuffer,
    flat: PageBuffer,
}

impl Buffers {
    fn new(case: &Case) -> Result<Buffers, Error> {
        let pages = if case.huge { Pages::Huge } else { Pages::Small };
        let mut source = PageBuffer::new(case.source_bytes() as usize, pages)?;
        for (index, byte) in source.iter_mut().enumerate() {
            *byte = (index % 251) as u8;
        }
        Ok(Buffers {
            source,
            target: PageBuffer::new(case.target_bytes() as usize, pages)?,
            flat: PageBuffer::new(2 * case.bytes() as usize, pages)?,
        })
    }
}

/// One pass in this process, which has done nothing else: compiling, page faults and all.
fn first_pass(case: &Case) -> Result<f64, Error> {
    let Buffers {
        source, mut target, ..
    } = Buffers::new(case)?;
    let start = Instant::now();
    let program = Program::compile(&[case.nest()?]);
    copy(&program, &source, &mut target)?;
    Ok(case.bytes() as f64 / start.elapsed().as_nanos() as f64)
}

fn first_pass_elsewhere(case: &Case) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new(program)
        .args(["bench", "kernels", "--first-pass", &case.name])
        .output()
        .ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

fn measure(
    case: &Case,
    effort: Effort,
    quick: bool,
    yardsticks: &mut Yardsticks,
) -> Result<Row, Error> {
    let Buffers {
        source,
        mut target,
        mut flat,
    } = Buffers::new(case)?;
    let nests = [case.nest()?];
    let program = Program::compile(&nests);
    copy(&program, &source, &mut target)?;
    verify(case, &nests, &source, &target)?;

    let bytes = case.bytes() as usize;
    let (flat_source, flat_target) = flat.split_at_mut(bytes);
    flat_source.fill(1);
    let target = std::cell::RefCell::new(&mut target[..]);
    let mut pario = Job(|| {
        let _ = copy(&program, &source, &mut target.borrow_mut());
    });
    let mut memcpy = Job(|| flat_target.copy_from_slice(std::hint::black_box(&*flat_source)));
    let mut plain = Job(|| {
        let _ = copy_plain(&nests, &source, &mut target.borrow_mut());
    });

    let mut names = vec!["memcpy", "loop"];
    let mut contestants: Vec<&mut dyn Contestant> = vec![&mut pario, &mut memcpy, &mut plain];
    if let Some(numpy) = &mut yardsticks.numpy
        && numpy.setup(&case.numpy_setup())
    {
        names.push(numpy.name);
        contestants.push(numpy);
    }
    if let Some(line) = case.pack_setup() {
        for pack in &mut yardsticks.packs {
            if pack.setup(&line) {
                names.push(pack.name);
                contestants.push(pack);
            }
        }
    }
    let outcomes = contest(effort, &mut contestants);
    let own = outcomes[0].ok_or("no time measured")?;
    let ratios = names.into_iter().zip(&outcomes[1..]);
    let ratios = ratios
        .filter_map(|(name, outcome)| Some((name, outcome.as_ref()?.best / own.best)))
        .collect();
    let mut columns = Map::new();
    columns.insert("bytes".to_owned(), json!(bytes));
    Ok(Row {
        case: case.name.clone(),
        value: bytes as f64 / own.best,
        unit: "GB/s",
        spread: own.spread(),
        first: if quick {
            None
        } else {
            first_pass_elsewhere(case)
        },
        columns,
        ratios,
    })
}

/// What is measured must be right: the copy is compared with the plain nest's.
fn verify(case: &Case, nests: &[kernels::Nest], source: &[u8], target: &[u8]) -> Result<(), Error> {
    let mut expected = vec![0; target.len()];
    copy_plain(nests, source, &mut expected)?;
    if expected != target {
        return Err(format!("{}: wrong bytes", case.name).into());
    }
    Ok(())
}
