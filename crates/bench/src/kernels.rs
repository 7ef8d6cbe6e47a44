//! `pario bench kernels`: copies in memory against memcpy, a plain loop nest, numpy and the
//! pack routines of MPI, case by case (`cases`), then the redistributions (`redistribute`).
//!
//! `on-openmpi` and `on-mpich` are the pack routines as Pario takes them over with `PARIO_MPI_PACK=on`, and `gain-..` is how many
//! times as fast as the MPI's own they are: the same call of the same program. With `--quick` the slowest contestants have fewer
//! turns, and most cases in memory are left out.

use std::time::Instant;

use clap::Args;
use console::Error;
use kernels::{
    Nest, PageBuffer, Pages, Program, SharedBuffer, SharedBytes, SharedBytesMut, copy_plain_shared,
    copy_shared,
};

use super::cases::{self, Case};
use super::contest::{Contestant, Effort, Job, contest, ratios};
use super::yardsticks::{self, PackedBy, Yardstick};
use super::{Row, Sheet, goals, redistribute};

/// Arguments of `pario bench kernels`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Do one pass of one case and print its rate: the first pass of a fresh process
    #[arg(long, hide = true, value_name = "CASE")]
    first_pass: Option<String>,
}

/// One in so many cases is measured when it is to be quick, of those in memory one in so many: they move 48 MiB in spans of up
/// to 240, which take seconds to prepare.
const QUICKLY: usize = 8;
const QUICKLY_IN_MEMORY: usize = 40;
/// What a contestant has for a case then, in nanoseconds.
const QUICK_NS: f64 = 1.5e8;

/// The pack of an MPI library, the same call with `PARIO_MPI_PACK=on`, and how many times as fast that is.
const PACKS_TAKEN: [(&str, &str, &str); 2] = [
    ("pack-openmpi", "on-openmpi", "gain-openmpi"),
    ("pack-mpich", "on-mpich", "gain-mpich"),
];

/// Jobs of so many bytes miss the caches.
const IN_MEMORY: u64 = 8 << 20;

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
        true => Effort::new(7, 2e5).at_most(QUICK_NS),
        false => Effort::new(11, 1e6),
    };
    sheet.begin("kernels", "GB/s", format!("best of {}", effort.turns));
    let mut cases = cases::all();
    cases.retain(|case| sheet.wants(&case.name));
    if sheet.step(QUICKLY) > 1 {
        let (memory, cache): (Vec<Case>, Vec<Case>) = cases
            .into_iter()
            .partition(|case| case.bytes() >= IN_MEMORY);
        cases = cache.into_iter().step_by(QUICKLY).collect();
        cases.extend(memory.into_iter().step_by(QUICKLY_IN_MEMORY));
    }
    if !cases.is_empty() {
        let mut yardsticks = Yardsticks::start();
        for case in &cases {
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
        use PackedBy::{Host, Pario};
        let packs = [
            ("pack-openmpi", "mpicc.openmpi", Host),
            ("pack-mpich", "mpicc.mpich", Host),
            ("on-openmpi", "mpicc.openmpi", Pario),
            ("on-mpich", "mpicc.mpich", Pario),
        ];
        Yardsticks {
            numpy: yardsticks::numpy(),
            packs: packs
                .into_iter()
                .filter_map(|(name, compiler, by)| yardsticks::pack(name, compiler, by))
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
    let mut ratios = ratios(names, &outcomes);
    let of = |name| ratios.iter().find(|ratio| ratio.0 == name);
    let gains: Vec<_> = PACKS_TAKEN
        .into_iter()
        .filter_map(|(host, taken, gain)| Some((gain, of(host)?.1 / of(taken)?.1)))
        .collect();
    ratios.extend(gains);
    Ok(row.ratios(ratios).column("bytes", case.bytes()))
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
