//! `pario bench ddio`: collective reads directed by the disks. Owns the arguments and the sheet that groups
//! of cases add their rows to: `model` has the published figures as the equations give them, `real` runs every
//! scheme on a service. `goals` are what the source claims of both.
//!
//! A row's ratio `printed` is what the model gives by what the thesis prints, `independent` what was measured by
//! what independent accesses took in the same turns.

mod goals;
mod model;
mod real;

use std::path::{Path, PathBuf};

use clap::Args;

use super::sheet::Sheet;
use super::{Report, machine};
use crate::commands::Error;
use crate::commands::serve::size;

/// Arguments of `pario bench ddio`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Only cases whose name contains this; several alternatives are separated by commas
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// Bytes at each server in real runs
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "32MiB")]
    bytes: u64,

    /// Write the report as JSON to this file; without a file to standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
}

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments) -> Result<Report, Error> {
    let aside = arguments.json.as_deref() == Some(Path::new("-"));
    let mut sheet = Sheet::new(arguments.filter.clone(), aside, "MB/s");
    model::add(&mut sheet)?;
    real::add(&mut sheet, arguments.bytes)?;
    super::claims::print(&goals::judge(&sheet.rows));
    Ok(Report {
        bench: "ddio",
        machine: machine::facts(),
        rows: sheet.rows,
    })
}
