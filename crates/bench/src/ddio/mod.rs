//! `pario bench ddio`: collective reads directed by the disks. Owns the arguments and the sheet that groups
//! of cases add their rows to: `model` has the published figures as the equations give them, `real` runs every
//! scheme on a service. `goals` are what the source claims of both.
//!
//! A row's ratio `printed` is what the model gives by what the thesis prints, `independent` what was measured by
//! what independent accesses took in the same turns.

mod goals;
mod model;
mod real;

use clap::Args;

use super::flags::{Filter, ReportTo};
use super::sheet::Sheet;
use super::{Report, machine};
use console::Error;
use console::notation::size_argument;

/// Arguments of `pario bench ddio`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    filter: Filter,

    /// Bytes at each server in real runs
    #[arg(long, value_name = "SIZE", value_parser = size_argument, default_value = "32MiB")]
    bytes: u64,

    /// Turns per scheme in real runs; without it 7, and 35 where bytes are in memory and a turn takes milliseconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    turns: Option<u64>,

    #[command(flatten)]
    pub(crate) report: ReportTo,
}

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments) -> Result<Report, Error> {
    let aside = arguments.report.is_on_stdout();
    let mut sheet = Sheet::new(arguments.filter.clone(), aside, "MB/s");
    model::add(&mut sheet)?;
    real::add(&mut sheet, arguments.bytes, arguments.turns)?;
    super::claims::print(&goals::judge(&sheet.rows));
    Ok(Report {
        bench: "ddio",
        machine: machine::facts(),
        rows: sheet.rows,
    })
}
