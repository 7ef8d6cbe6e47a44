//! One program: every command of Pario is a subcommand of `pario`.
//!
//! Owns the command line and nothing else. Each subcommand is a module of `commands` that turns
//! arguments into calls of the libraries and results into text; measurements are in `bench`.

mod bench;
mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A parallel file service in which one algebra describes how files are partitioned and seen.
#[derive(Parser)]
#[command(name = "pario", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure, with yardsticks taken in the same run
    Bench(commands::bench::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Bench(arguments) => commands::bench::run(arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pario: {error}");
            ExitCode::FAILURE
        }
    }
}
