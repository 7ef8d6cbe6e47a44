//! `pario bench kernels`: copies in memory against memcpy, a plain loop nest, numpy and the
//! pack routines of MPI, case by case (`cases`), then the redistributions (`redistribute`).

use std::process::Command;
use std::time::Instant;

use clap::Args;
use kernels::{
    Nest, PageBuffer, Pages, Program, SharedBuffer, SharedBytes, SharedBytesMut, copy_plain_shared,
    copy_shared,
};
use serde_json::{Map, json};

use super::cases::{self, Case};
use super::contest::{Contestant, Effort, Job, contest};
use super::flags::{Filter, ReportTo};
use super::table::Table;
use super::yardsticks::{self, Yardstick};
use super::{Report, Row, goals, machine, redistribute};
use console::Error;

/// Arguments of `pario bench kernels`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) report: ReportTo,

    #[command(flatten)]
    filter: Filter,

    /// Shorter turns, and no fresh process per case for the first pass
    #[arg(long)]
    quick: bool,

    /// Do one pass of one case and print its rate: the first pass of a fresh process
    #[arg(long, hide = true, value_name = "CASE")]
    first_pass: Option<String>,
}

impl Arguments {
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
    let mut table = Table::new(arguments.report.is_on_stdout(), "GB/s");
    let mut rows = Vec::new();
    let chosen: Vec<Case> = cases::all()
        .into_iter()
        .filter(|case| arguments.filter.wants(&case.name))
        .collect();
    if !chosen.is_empty() {
        let mut yardsticks = Yardsticks::start();
        for case in &chosen {
            let row = measure(case, effort, arguments.quick, &mut yardsticks)?;
            table.row(&row)?;
            rows.push(row);
        }
    }
    for row in redistribute::run(effort, &|case| arguments.filter.wants(case))? {
        table.row(&row)?;
        rows.push(row);
    }
    goals::print(&rows);
    Ok(Some(Report {
        bench: "kernels",
        machine,
        rows,
    }))
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

/// Memory of one side: huge pages of our own, or small ones that the yardsticks use too.
enum Memory {
    Huge(PageBuffer),
    Small(SharedBuffer),
}

impl Memory {
    fn new(bytes: u64, huge: bool) -> Result<Memory, Error> {
        let bytes = bytes as usize;
        Ok(if huge {
            Memory::Huge(PageBuffer::new(bytes, Pages::Huge)?)
        } else {
            Memory::Small(SharedBuffer::new(bytes)?)
        })
    }

    fn bytes(&self) -> SharedBytes<'_> {
        match self {
            Memory::Huge(buffer) => buffer[..].into(),
            Memory::Small(buffer) => buffer.bytes(),
        }
    }

    fn bytes_mut(&mut self) -> SharedBytesMut<'_> {
        match self {
            Memory::Huge(buffer) => buffer[..].as_mut().into(),
            Memory::Small(buffer) => buffer.bytes_mut(),
        }
    }
}

struct Buffers {
    source: Memory,
    target: Memory,
    flat: PageBuffer,
}

impl Buffers {
    fn new(case: &Case) -> Result<Buffers, Error> {
        let mut source = Memory::new(case.source_bytes(), case.huge)?;
        let target = Memory::new(case.target_bytes(), case.huge)?;
        let pattern: Vec<u8> = (0..case.source_bytes())
            .map(|index| (index % 251) as u8)
            .collect();
        let whole = Program::compile(&[Nest::block(0, 0, case.source_bytes())?]);
        copy_shared(&whole, pattern[..].into(), source.bytes_mut())?;
        let pages = if case.huge { Pages::Huge } else { Pages::Small };
        Ok(Buffers {
            source,
            target,
            flat: PageBuffer::new(2 * case.bytes() as usize, pages)?,
        })
    }

    /// The pages in the words of the yardsticks.
    fn pages(&self) -> String {
        match (&self.source, &self.target) {
            (Memory::Small(source), Memory::Small(target)) => {
                format!("{}:{}", source.path().display(), target.path().display())
            }
            _ => "huge".to_owned(),
        }
    }
}

/// One pass in this process, which has done nothing else: compiling, page faults and all.
fn first_pass(case: &Case) -> Result<f64, Error> {
    let Buffers {
        source, mut target, ..
    } = Buffers::new(case)?;
    let start = Instant::now();
    let program = Program::compile(&[case.nest()?]);
    copy_shared(&program, source.bytes(), target.bytes_mut())?;
    Ok(case.bytes() as f64 / start.elapsed().as_nanos() as f64)
}

fn first_pass_elsewhere(case: &Case) -> Option<f64> {
    let program = super::this_program().ok()?;
    let output = Command::new(program)
        .args(["kernels", "--first-pass", &case.name])
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
    let buffers = Buffers::new(case)?;
    let pages = buffers.pages();
    let Buffers {
        source,
        mut target,
        mut flat,
    } = buffers;
    let nests = [case.nest()?];
    let program = Program::compile(&nests);
    copy_shared(&program, source.bytes(), target.bytes_mut())?;
    verify(case, &nests, &source, &target)?;

    let bytes = case.bytes() as usize;
    let (flat_source, flat_target) = flat.split_at_mut(bytes);
    flat_source.fill(1);
    let target = std::cell::RefCell::new(target);
    let mut pario = Job(|| {
        let _ = copy_shared(&program, source.bytes(), target.borrow_mut().bytes_mut());
    });
    let mut memcpy = Job(|| flat_target.copy_from_slice(std::hint::black_box(&*flat_source)));
    let mut plain = Job(|| {
        let _ = copy_plain_shared(&nests, source.bytes(), target.borrow_mut().bytes_mut());
    });

    let mut names = vec!["memcpy", "loop"];
    let mut contestants: Vec<&mut dyn Contestant> = vec![&mut pario, &mut memcpy, &mut plain];
    if let Some(numpy) = &mut yardsticks.numpy
        && numpy.setup(&case.numpy_setup(&pages))
    {
        names.push(numpy.name);
        contestants.push(numpy);
    }
    if let Some(line) = case.pack_setup(&pages) {
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
fn verify(case: &Case, nests: &[Nest], source: &Memory, target: &Memory) -> Result<(), Error> {
    let mut expected = vec![0; target.bytes().len()];
    copy_plain_shared(nests, source.bytes(), expected[..].as_mut().into())?;
    let whole = Program::compile(&[Nest::block(0, 0, case.target_bytes())?]);
    let mut reached = vec![0; expected.len()];
    copy_shared(&whole, target.bytes(), reached[..].as_mut().into())?;
    if expected != reached {
        return Err(format!("{}: wrong bytes", case.name).into());
    }
    Ok(())
}
