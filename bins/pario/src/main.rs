//! One program: every command of Pario is a subcommand of `pario`.
//!
//! Owns the command line and nothing else. Each subcommand is a module of `commands` that turns
//! arguments into calls of the libraries and results into text; pictures are in `draw`,
//! measurements in `bench`.
//!
//! Exit codes: 0 on success, 1 on failure with one clear line on standard error, 2 on wrong usage.
// Doc comments of arguments are help texts, in which brackets are no links.
#![allow(rustdoc::broken_intra_doc_links)]

mod bench;
mod commands;
mod draw;
mod notation;
mod subject;

use std::panic::PanicHookInfo;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::output;

/// A parallel file service in which one algebra describes how files are partitioned and seen.
#[derive(Parser)]
#[command(name = "pario", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Draw a layout: which element holds which part of an array
    Layout(commands::layout::Arguments),
    /// Show the plan between two layouts, and how well they fit, before any byte moves
    Explain(commands::explain::Arguments),
    /// Measure, with yardsticks taken in the same run
    Bench(commands::bench::Arguments),
    /// Print what a shell needs to complete commands and options
    Completions(commands::completions::Arguments),
}

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| output::note(&bug_report(panic))));
    let outcome = std::panic::catch_unwind(|| match Arguments::parse().command {
        Command::Layout(arguments) => commands::layout::run(&arguments),
        Command::Explain(arguments) => commands::explain::run(&arguments),
        Command::Bench(arguments) => commands::bench::run(arguments),
        Command::Completions(arguments) => commands::completions::run(&arguments),
    });
    match outcome {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            output::note(&format!("pario: {error}"));
            ExitCode::FAILURE
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// A bug in one line, without its insides.
fn bug_report(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or(payload.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("no details").replace('\n', " ");
    let place = panic.location().map_or(String::new(), |place| {
        format!(" at {}:{}", place.file(), place.line())
    });
    format!(
        "pario: this is a bug in pario ({text}{place}); please report it with the command you gave"
    )
}
