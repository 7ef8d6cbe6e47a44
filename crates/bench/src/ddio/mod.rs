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
use console::Error;
use console::notation::size_argument;

use super::{Sheet, claims};

/// Arguments of `pario bench ddio`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Bytes at each server in real runs [default: 32MiB, with --quick 2MiB]
    #[arg(long, value_name = "SIZE", value_parser = size_argument)]
    bytes: Option<u64>,

    /// Turns per scheme in real runs; without it 7, and 35 where bytes are in memory and a turn takes milliseconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    turns: Option<u64>,
}

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    sheet.begin("ddio", "MB/s", "");
    let usual = if sheet.is_quick() { 2 << 20 } else { 32 << 20 };
    model::add(sheet)?;
    real::add(sheet, arguments.bytes.unwrap_or(usual), arguments.turns)?;
    claims::print(&goals::judge(&sheet.rows));
    Ok(())
}
