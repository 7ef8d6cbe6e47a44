//! `pario bench kernels`: copies in memory against memcpy, a plain loop nest, numpy and the
//! pack routines of MPI, case by case (`cases`), then the redistributions (`redistribute`).

use std::time::Instant;

use clap::Args;
use console::Error;
use kernels::{
    Nest, PageBuffer, Pages, Program, SharedBuffer, SharedBytes, SharedBytesMut, copy_plain_shared,
    copy_shared,
};

use super::cases::{self, Case};
use super::contest::{Contestant, Effort, Job, contest, ratios};
use super::yardsticks::{self, Yardstick};
use super::{Row, Sheet, goals, redistribute};

/// Arguments of `pario bench kernels`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Do one pass of one case and print its rate: the first pass of a fresh process
    #[arg(long, hide = true, value_name = "CASE")]
    first_pass: Option<String>,
}

/// One in so many cases is measured when it is to be quick.
pub(crate) const QUICKLY: usize = 8;

/// Runs the benchmark; no report if only a first pass was asked for. Quickly there is no fresh process per case.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    if let Some(name) = &arguments.first_pass {
        let case = cases::all()
            .into_iter()
            .find(|case| case.name == *name)
            .ok_or("no such case")?;
        println!("{}", first_pass(&case)?);
        return Ok(());
    }
    let effort = match sheet.is_quick() {
        true => Effort::new(7, 2e5),
        false => Effort::new(11, 1e6),
    };
    sheet.begin("kernels", "GB/s", format!("best of {}", effort.turns));
    let mut cases = cases::all();
    cases.retain(|case| sheet.wants(&case.name));
    if !cases.is_empty() {
        let mut yardsticks = Yardsticks::start();
        for case in cases.iter().step_by(sheet.step(QUICKLY)) {
            let mut row = measure(case, effort, &mut yardsticks)?;
            if !sheet.is_quick() {
                row.first = super::first_pass(&["kernels", "--first-pass", &case.name]);
            }
            sheet.push(row)?;
        }
    }
    redistribute::run(effort, sheet)?;
    goals::print(&sheet.rows);
    Ok(())
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
    fn new(bytes: u64, pages: Pages) -> Result<Memory, Error> {
        let bytes = bytes as usize;
        Ok(match pages {
            Pages::Huge => Memory::Huge(PageBuffer::new(bytes, pages)?),
            Pages::Small => Memory::Small(SharedBuffer::new(bytes)?),
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
        let mut source = Memory::new(case.source_bytes(), case.pages)?;
        let target = Memory::new(case.target_bytes(), case.pages)?;
        let pattern: Vec<u8> = (0..case.source_bytes())
            .map(|index| (index % 251) as u8)
            .collect();
        let whole = Program::compile(&[Nest::block(0, 0, case.source_bytes())?]);
        copy_shared(&whole, pattern[..].into(), source.bytes_mut())?;
        Ok(Buffers {
            source,
            target,
            flat: PageBuffer::new(2 * case.bytes() as usize, case.pages)?,
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

fn measure(case: &Case, effort: Effort, yardsticks: &mut Yardsticks) -> Result<Row, Error> {
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
    let row = Row::rate(&case.name, case.bytes(), own);
    Ok(row
        .ratios(ratios(names, &outcomes))
        .column("bytes", case.bytes()))
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
