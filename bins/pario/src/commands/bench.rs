//! `pario bench`: one subcommand per benchmark, one shape of report. Owns where the report goes;
//! what is measured, and the tables for people, are in `bench`.

use std::fs;
use std::path::Path;

use clap::{Args, Subcommand};

use super::Error;
use crate::bench::{
    Report, advise, contiguous, ddio, kernels, matching, matrix, move_bytes, mpiio, plan, prefetch,
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
    match arguments.bench {
        Bench::Kernels(arguments) => {
            let json = arguments.json.clone();
            if let Some(report) = kernels::run(&arguments)? {
                write(&report, json.as_deref())?;
            }
        }
        Bench::Move(arguments) => {
            if let Some(report) = move_bytes::run(&arguments)? {
                write(&report, arguments.json.as_deref())?;
            }
        }
        Bench::Plan(arguments) => {
            let report = plan::run(&arguments)?;
            write(&report, arguments.json.as_deref())?;
        }
        Bench::Match(arguments) => {
            let report = matching::run(&arguments)?;
            write(&report, arguments.json.as_deref())?;
        }
        Bench::Socket(arguments) => {
            if let Some(report) = socket::run(&arguments)? {
                write(&report, arguments.json.as_deref())?;
            }
        }
        Bench::Matrix(arguments) => {
            let report = matrix::run(&arguments)?;
            write(&report, arguments.json.as_deref())?;
        }
        Bench::Contiguous(arguments) => {
            let report = contiguous::run(&arguments)?;
            write(&report, arguments.json.as_deref())?;
        }
        Bench::Strided(arguments) => {
            let report = strided::run(&arguments)?;
            write(&report, arguments.json.as_deref())?;
        }
        Bench::Vipios(arguments) => {
            let report = vipios::run(&arguments)?;
            write(&report, arguments.json.as_deref())?;
        }
        Bench::Mpiio(arguments) => {
            let report = mpiio::run(&arguments)?;
            write(&report, arguments.json.as_deref())?;
        }
        Bench::Profile(arguments) => {
            let report = profile::run(&arguments)?;
            write(&report, arguments.json.as_deref())?;
        }
        Bench::Advise(arguments) => {
            let report = advise::run(&arguments)?;
            write(&report, arguments.json.as_deref())?;
        }
        Bench::Relayout(arguments) => {
            let report = relayout::run(&arguments)?;
            write(&report, arguments.json.as_deref())?;
        }
        Bench::Small(arguments) => {
            let report = small::run(&arguments)?;
            write(&report, arguments.json.as_deref())?;
        }
        Bench::Ddio(arguments) => {
            let report = ddio::run(&arguments)?;
            write(&report, arguments.json.as_deref())?;
        }
        Bench::Prefetch(arguments) => {
            let report = prefetch::run(&arguments)?;
            write(&report, arguments.json.as_deref())?;
        }
        Bench::Worker(arguments) => worker::run(&arguments)?,
    }
    Ok(())
}

/// Writes the JSON form where asked; `-` is standard output.
fn write(report: &Report, json: Option<&Path>) -> Result<(), Error> {
    let Some(path) = json else {
        return Ok(());
    };
    let text = format!("{}\n", report.to_json());
    if path == Path::new("-") {
        super::output::print(&text)?;
    } else {
        fs::write(path, text)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(())
}
