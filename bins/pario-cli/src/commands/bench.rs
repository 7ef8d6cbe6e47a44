//! `pario bench`: one subcommand per benchmark, one shape of report. What is measured, the
//! tables for people and where the report goes are in `bench`.

use clap::{Args, Subcommand};

use super::Error;
use crate::bench::{
    advise, contiguous, ddio, kernels, matching, matrix, move_bytes, mpiio, plan, prefetch,
    profile, relayout, small, socket, strided, vipios, worker,
};

/// Arguments of `pario bench`.
#[derive(Args)]
pub(crate) struct Arguments {
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

/// Runs one benchmark and writes its report.
pub(crate) fn run(arguments: Arguments) -> Result<(), Error> {
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
