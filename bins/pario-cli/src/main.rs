//! One program: every command of Pario is a subcommand of `pario`.
//!
//! Owns the command line and nothing else. Each subcommand is a module of `commands` that turns
//! arguments into calls of the libraries and results into text; pictures are in `draw`,
//! the demo in `demo`, the processes of a service in `service`. Measurements are another program,
//! `pario-bench`, which `pario bench` starts. What both share, exit codes among it, is in `console`.
// Doc comments of arguments are help texts, in which brackets are no links.
#![allow(rustdoc::broken_intra_doc_links)]

mod commands;
mod demo;
mod draw;
mod progress;
mod service;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A parallel file service in which one algebra describes how files are partitioned and seen.
#[derive(Parser)]
#[command(name = "pario", version, about)]
struct Arguments {
    /// The service: unix:PATH, tcp:HOST:PORT, dir:PATH or job: [default: PARIO_URL, else dir:.pario]
    #[arg(long, value_name = "URL", global = true)]
    url: Option<String>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a service on this host: a metadata manager and several I/O servers
    Up(commands::up::Arguments),
    /// Stop a service
    Down(commands::down::Arguments),
    /// Show a service: its servers, their load and space, what is stored
    Status(commands::status::Arguments),
    /// Look for anything that does not fit together, and say what to do about it
    Doctor(commands::doctor::Arguments),
    /// Run one server of a service in the foreground, for services on several hosts
    Serve(commands::serve::Arguments),
    /// Hold a directory for the processes of a job
    #[command(hide = true)]
    Hold(commands::hold::Arguments),
    /// Hold the servers of a job
    #[command(hide = true)]
    HoldJob(commands::hold_job::Arguments),
    /// Run a command with servers that live as long as it does, or with a service
    Run(commands::run::Arguments),
    /// List a directory
    Ls(commands::ls::Arguments),
    /// Show everything about a file or directory
    Stat(commands::stat::Arguments),
    /// Make directories
    Mkdir(commands::mkdir::Arguments),
    /// Give a file or directory another name
    Mv(commands::mv::Arguments),
    /// Remove files and directories
    Rm(commands::rm::Arguments),
    /// Store files of this host
    Put(commands::put::Arguments),
    /// Fetch files onto this host
    Get(commands::get::Arguments),
    /// Store arrays of other programs: .npy, .npz, Zarr, HDF5, raw bytes
    Import(commands::import::Arguments),
    /// Write arrays as files of other programs: .npy, .npz, Zarr, HDF5, raw bytes
    Export(commands::export::Arguments),
    /// Print the bytes of files
    Cat(commands::cat::Arguments),
    /// Show the space that files take
    Du(commands::du::Arguments),
    /// Make a range of a file zero and give its space back
    Punch(commands::punch::Arguments),
    /// Create a file, with the array it will hold and the layout it is cut by
    Create(commands::create::Arguments),
    /// Keep hints with a file or directory, and show which count and what they did
    Hint(commands::hint::Arguments),
    /// Create, lay out and fill the files of a job before it starts
    Prepare(commands::prepare::Arguments),
    /// Move a file into another layout while it is used; pause, limit or cancel a move
    Relayout(commands::relayout::Arguments),
    /// Show what was observed of the use of a file: who accessed what, how much, how
    Profile(commands::profile::Arguments),
    /// Rank layouts by what was observed of the use of a file, and move it into the best
    Advise(commands::advise::Arguments),
    /// Move everything away from a server, so that it can be stopped
    Drain(commands::drain::Arguments),
    /// Start the processes of a service anew, one after the other, while it is used
    Restart(commands::restart::Arguments),
    /// Write the catalogue into one file, while the service is used
    Backup(commands::backup::Arguments),
    /// Make the catalogue of a service again out of a backup
    Restore(commands::restore::Arguments),
    /// Make, renew and show certificates for services between hosts that do not trust each other
    Cert(commands::cert::Arguments),
    /// Even out what servers hold by moving single subfiles
    Rebalance(commands::rebalance::Arguments),
    /// Look at files with a stream for each virtual processor, and convert them
    Stream(commands::stream::Arguments),
    /// Draw a layout: which element holds which part of an array or a stored file
    Layout(commands::layout::Arguments),
    /// Translate a program in HPF, so that its distributed arrays are read and written by Pario
    Hpf(commands::hpf::Arguments),
    /// Show the plan between two layouts, and how well they fit, before any byte moves
    Explain(commands::explain::Arguments),
    /// Measure what copies, messages and stores cost here, for predictions
    Calibrate(commands::calibrate::Arguments),
    /// Measure, with yardsticks taken in the same run
    Bench(commands::bench::Arguments),
    /// Show the service at work, with a service of its own
    #[command(hide = true)]
    Demo(demo::Arguments),
    /// Print what a shell needs to complete commands and options
    Completions(commands::completions::Arguments),
    /// Write the manual pages of all commands to a directory
    #[command(hide = true)]
    Manual(commands::manual::Arguments),
}

fn main() -> ExitCode {
    console::failure::end(|| run(Arguments::parse()))
}

/// What servers tell unless `PARIO_LOG` says otherwise: what is out of order, and what becomes of their processes.
const USUAL_OF_SERVERS: &str = "warn,pario=info,job=info";

fn run(arguments: Arguments) -> Result<(), commands::Error> {
    commands::connection::name(arguments.url);
    logging::listen(match arguments.command {
        Command::Up(_) | Command::Serve(_) | Command::Hold(_) | Command::HoldJob(_) => {
            USUAL_OF_SERVERS
        }
        _ => "",
    });
    match arguments.command {
        Command::Up(arguments) => commands::up::run(&arguments),
        Command::Down(arguments) => commands::down::run(&arguments),
        Command::Status(arguments) => commands::status::run(&arguments),
        Command::Doctor(arguments) => commands::doctor::run(&arguments),
        Command::Restart(arguments) => commands::restart::run(&arguments),
        Command::Backup(arguments) => commands::backup::run(&arguments),
        Command::Restore(arguments) => commands::restore::run(&arguments),
        Command::Serve(arguments) => commands::serve::run(&arguments),
        Command::Hold(arguments) => commands::hold::run(&arguments),
        Command::HoldJob(arguments) => commands::hold_job::run(&arguments),
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Ls(arguments) => commands::ls::run(&arguments),
        Command::Stat(arguments) => commands::stat::run(&arguments),
        Command::Mkdir(arguments) => commands::mkdir::run(&arguments),
        Command::Mv(arguments) => commands::mv::run(&arguments),
        Command::Rm(arguments) => commands::rm::run(&arguments),
        Command::Put(arguments) => commands::put::run(&arguments),
        Command::Get(arguments) => commands::get::run(&arguments),
        Command::Import(arguments) => commands::import::run(&arguments),
        Command::Export(arguments) => commands::export::run(&arguments),
        Command::Cat(arguments) => commands::cat::run(&arguments),
        Command::Du(arguments) => commands::du::run(&arguments),
        Command::Punch(arguments) => commands::punch::run(&arguments),
        Command::Create(arguments) => commands::create::run(&arguments),
        Command::Hint(arguments) => commands::hint::run(&arguments),
        Command::Hpf(arguments) => commands::hpf::run(&arguments),
        Command::Prepare(arguments) => commands::prepare::run(&arguments),
        Command::Relayout(arguments) => commands::relayout::run(&arguments),
        Command::Profile(arguments) => commands::profile::run(&arguments),
        Command::Advise(arguments) => commands::advise::run(&arguments),
        Command::Drain(arguments) => commands::drain::run(&arguments),
        Command::Cert(arguments) => commands::cert::run(&arguments),
        Command::Rebalance(arguments) => commands::rebalance::run(&arguments),
        Command::Stream(arguments) => commands::stream::run(&arguments),
        Command::Layout(arguments) => commands::layout::run(&arguments),
        Command::Explain(arguments) => commands::explain::run(&arguments),
        Command::Calibrate(arguments) => commands::calibrate::run(&arguments),
        Command::Bench(arguments) => commands::bench::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Completions(arguments) => commands::completions::run(&arguments),
        Command::Manual(arguments) => commands::manual::run(&arguments),
    }
}
