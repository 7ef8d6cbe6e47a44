//! The laboratory: all benchmarks of Pario with their yardsticks, as the program `pario-bench`, which `pario bench`
//! starts. One module per benchmark, one shape of report, and what benchmarks share.
//!
//! | modules | own |
//! |---|---|
//! | `report`, `sheet`, `table`, `flags`, `machine` | rows, where they go, and what belongs beside them |
//! | `contest`, `claims`, `goals`, `yardsticks` | turns of Pario and its yardsticks, and what is held against them |
//! | `site`, `workers`, `worker`, `ranks`, `parallel`, `content` | services, client processes, and the bytes they check |
//!
//! Nothing that ships depends on it. Left to others: how a service is started and how a program ends (`console`).
#![forbid(unsafe_code)]
// Doc comments of arguments are help texts, in which brackets are no links.
#![allow(rustdoc::broken_intra_doc_links)]

mod advise;
mod cases;
mod claims;
mod content;
mod contest;
mod contiguous;
mod ddio;
mod flags;
mod goals;
mod kernels;
mod machine;
mod matching;
mod matrix;
mod move_bytes;
mod mpiio;
mod parallel;
mod plan;
mod prediction;
mod prefetch;
mod profile;
mod ranks;
mod redistribute;
mod redistribution;
mod relayout;
mod report;
mod sheet;
mod site;
mod small;
mod socket;
mod strided;
mod table;
mod vipios;
mod worker;
mod workers;
mod yardsticks;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use console::Error;

use report::{Report, Row, rounded};

/// Measure, with yardsticks taken in the same run
#[derive(Parser)]
#[command(name = "pario-bench", bin_name = "pario bench", version)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Copies in memory: gather, scatter, transposes, redistribution
    Kernels(kernels::Arguments),
    /// Planning times as arrays and numbers of elements grow
    Plan(plan::Arguments),
    /// An array changes its layout in memory, there and back
    Move(move_bytes::Arguments),
    /// How well the matching degree predicts the rate of a redistribution
    Match(matching::Arguments),
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
    /// What recording the use of a file costs an access
    Profile(profile::Arguments),
    /// Whether advised layouts are the best, and strategies ranked as measured
    Advise(advise::Arguments),
    /// A stored file changes its layout, beside nobody and beside a busy client
    Relayout(relayout::Arguments),
    /// Latency of small accesses, and many files
    Small(small::Arguments),
    /// Collective reads directed by the disks: record sizes, disk, network and packing speeds
    Ddio(ddio::Arguments),
    /// Collective reads that are prefetched while the program computes
    Prefetch(prefetch::Arguments),
    /// Be a client process of a benchmark
    #[command(hide = true)]
    Worker(worker::Arguments),
}

/// Runs the program to its end: one benchmark, and its report.
pub fn main() -> ExitCode {
    console::failure::end(|| run(Arguments::parse()))
}

fn run(arguments: Arguments) -> Result<(), Error> {
    let (report, to) = match arguments.bench {
        Bench::Kernels(arguments) => (kernels::run(&arguments)?, arguments.report),
        Bench::Move(arguments) => (move_bytes::run(&arguments)?, arguments.report),
        Bench::Plan(arguments) => (Some(plan::run(&arguments)?), arguments.report),
        Bench::Match(arguments) => (Some(matching::run(&arguments)?), arguments.report),
        Bench::Socket(arguments) => (socket::run(&arguments)?, arguments.report),
        Bench::Matrix(arguments) => (Some(matrix::run(&arguments)?), arguments.report),
        Bench::Contiguous(arguments) => (Some(contiguous::run(&arguments)?), arguments.report),
        Bench::Strided(arguments) => (Some(strided::run(&arguments)?), arguments.report),
        Bench::Vipios(arguments) => (Some(vipios::run(&arguments)?), arguments.report),
        Bench::Mpiio(arguments) => (Some(mpiio::run(&arguments)?), arguments.report),
        Bench::Profile(arguments) => (Some(profile::run(&arguments)?), arguments.report),
        Bench::Advise(arguments) => (Some(advise::run(&arguments)?), arguments.report),
        Bench::Relayout(arguments) => (Some(relayout::run(&arguments)?), arguments.report),
        Bench::Small(arguments) => (Some(small::run(&arguments)?), arguments.report),
        Bench::Ddio(arguments) => (Some(ddio::run(&arguments)?), arguments.report),
        Bench::Prefetch(arguments) => (Some(prefetch::run(&arguments)?), arguments.report),
        Bench::Worker(arguments) => return worker::run(&arguments),
    };
    // What is run by another process of the same benchmark has none.
    report.map_or(Ok(()), |report| to.write(&report))
}

/// The program that runs, which starts itself again for whatever has to be a process of its own.
fn this_program() -> Result<PathBuf, Error> {
    let program = std::env::current_exe();
    program.map_err(|e| format!("cannot find the program that is running: {e}").into())
}
