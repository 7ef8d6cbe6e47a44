//! The laboratory: all benchmarks of Pario with their yardsticks, as the program `pario-bench`, which `pario bench`
//! starts. One module per benchmark, one shape of report, and what benchmarks share.
//!
//! | module | owns |
//! |---|---|
//! | `report`, `sheet`, `flags`, `machine` | rows, where they go, and what belongs beside them |
//! | `contest`, `claims`, `goals`, `yardsticks` | turns of Pario and its yardsticks, and what is held against them |
//! | `packers` | redistribution as chapter 4 of the data-parallel source packs it, beside the engine that accesses run on |
//! | [`models`] | the published cost models, beside the one that decides |
//! | `site`, `workers`, `worker`, `ranks`, `parallel`, `content` | services, client processes, and the bytes they check |
//! | `kernels`, `cases`, `redistribute`, `redistribution`, `move_bytes`, `plan`, `matching`, `prediction` | benchmarks in memory |
//! | `between_processes` | redistribution in the memory of MPI processes |
//! | `socket`, `contiguous`, `strided`, `streams`, `matrix`, `small`, `many_files`, `fresh`, `mpiio`, `vipios`, `relayout`, `python` | benchmarks of services |
//! | `mpi` | MPI libraries and programs for them |
//! | `advise`, `profile`, `ddio`, `prefetch` | benchmarks of what a service decides |
//!
//! Nothing that ships depends on it. Left to others: how a service is started and how a program ends (`console`).
#![forbid(unsafe_code)]
// Doc comments of arguments are help texts, in which brackets are no links.
#![allow(rustdoc::broken_intra_doc_links)]

mod advise;
mod between_processes;
mod cases;
mod claims;
mod content;
mod contest;
mod contiguous;
mod ddio;
mod flags;
mod fresh;
mod goals;
mod kernels;
mod machine;
mod many_files;
mod matching;
mod matrix;
pub mod models;
mod move_bytes;
mod mpi;
mod mpiio;
mod packers;
mod parallel;
mod plan;
mod prediction;
mod prefetch;
mod profile;
mod python;
mod ranks;
mod redistribute;
mod redistribution;
mod relayout;
mod report;
mod sheet;
mod site;
mod small;
mod socket;
mod streams;
mod strided;
mod vipios;
mod worker;
mod workers;
mod yardsticks;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};
use console::Error;

use report::{Row, digits, rounded};
use sheet::Sheet;

/// Measure, with yardsticks taken in the same run
#[derive(Parser)]
#[command(name = "pario-bench", bin_name = "pario bench", version)]
struct Arguments {
    #[command(flatten)]
    flags: flags::Flags,

    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Copies in memory: gather, scatter, transposes, redistribution
    Kernels(kernels::Arguments),
    /// Planning times as arrays and numbers of elements grow
    Plan,
    /// An array changes its layout in memory, there and back
    Move(move_bytes::Arguments),
    /// How well the matching degree predicts the rate of a redistribution
    Match,
    /// Reads and writes through a server, against bare sockets
    Socket(socket::Arguments),
    /// A matrix in blocks of rows, on files in columns, blocks and rows
    Matrix(matrix::Arguments),
    /// One shared file, a contiguous part of it for every process
    Contiguous(contiguous::Arguments),
    /// A cube of integers, a block of it for every process, against data sieving
    Strided(strided::Arguments),
    /// The experiments of ViPIOS: servers, hosts, overhead, buffers
    Vipios(vipios::Arguments),
    /// An array through MPI_File_*, against the MPI library's own
    Mpiio(mpiio::Arguments),
    /// An array changes its distribution in the memory of MPI processes, against MPI_Alltoallw
    Redistribute(between_processes::Arguments),
    /// What recording the use of a file costs an access
    Profile(profile::Arguments),
    /// Whether advised layouts are the best, and strategies ranked as measured
    Advise(advise::Arguments),
    /// A stored file changes its layout, alone and beside a busy client
    Relayout(relayout::Arguments),
    /// Latency of small accesses, and many files
    Small(small::Arguments),
    /// New files: written, written again, opened again and read, against the MPI library's own and plain files
    Fresh(fresh::Arguments),
    /// Collective reads directed by the disks: record sizes, disk, network and packing speeds
    Ddio(ddio::Arguments),
    /// Collective reads that are prefetched while the program computes
    Prefetch(prefetch::Arguments),
    /// Data-parallel streams in their modes, against ways of writing without them
    Streams(streams::Arguments),
    /// Slices of an array in Python, against zarr-python, h5py, tensorstore and numpy.memmap
    Python(python::Arguments),
    /// Be a client process of a benchmark
    #[command(hide = true)]
    Worker(worker::Arguments),
}

/// Runs the program to its end: one benchmark, and its report.
pub fn main() -> ExitCode {
    console::failure::end(|| run(Arguments::parse()))
}

fn run(arguments: Arguments) -> Result<(), Error> {
    logging::listen("");
    let sheet = &mut Sheet::new(arguments.flags);
    match arguments.bench {
        Bench::Kernels(arguments) => kernels::run(&arguments, sheet),
        Bench::Move(arguments) => move_bytes::run(&arguments, sheet),
        Bench::Plan => plan::run(sheet),
        Bench::Match => matching::run(sheet),
        Bench::Socket(arguments) => socket::run(&arguments, sheet),
        Bench::Matrix(arguments) => matrix::run(&arguments, sheet),
        Bench::Contiguous(arguments) => contiguous::run(&arguments, sheet),
        Bench::Strided(arguments) => strided::run(&arguments, sheet),
        Bench::Vipios(arguments) => vipios::run(&arguments, sheet),
        Bench::Mpiio(arguments) => mpiio::run(&arguments, sheet),
        Bench::Redistribute(arguments) => between_processes::run(&arguments, sheet),
        Bench::Profile(arguments) => profile::run(&arguments, sheet),
        Bench::Advise(arguments) => advise::run(&arguments, sheet),
        Bench::Relayout(arguments) => relayout::run(&arguments, sheet),
        Bench::Small(arguments) => small::run(&arguments, sheet),
        Bench::Fresh(arguments) => fresh::run(&arguments, sheet),
        Bench::Ddio(arguments) => ddio::run(&arguments, sheet),
        Bench::Prefetch(arguments) => prefetch::run(&arguments, sheet),
        Bench::Streams(arguments) => streams::run(&arguments, sheet),
        Bench::Python(arguments) => python::run(&arguments, sheet),
        Bench::Worker(arguments) => worker::run(&arguments),
    }?;
    sheet.finish()
}

/// What another process of this program prints as a number, as the first pass of a fresh process does.
fn first_pass(arguments: &[&str]) -> Option<f64> {
    let output = Command::new(this_program().ok()?).args(arguments).output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    text.trim().parse().ok()
}

/// The program that runs, which starts itself again for whatever has to be a process of its own.
fn this_program() -> Result<PathBuf, Error> {
    let program = std::env::current_exe();
    program.map_err(|e| format!("cannot find the program that is running: {e}").into())
}
