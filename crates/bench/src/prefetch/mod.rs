//! `pario bench prefetch`: collective reads that were prefetched while the program computed. Owns the
//! arguments and the sheet that groups of cases add their rows to: `model` has the published figures as the
//! equations give them, `real` the same forms as they run here. `goals` are what the source claims of both.
//!
//! A row's ratio `printed` is what the model gives by what the thesis prints; the ratio `none` of a real run is
//! the time without prefetch by the time with it.

mod goals;
mod model;
mod real;

use clap::Args;

use super::flags::{Filter, ReportTo};
use super::sheet::Sheet;
use super::{Report, machine};
use console::Error;

/// Arguments of `pario bench prefetch`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    filter: Filter,

    #[command(flatten)]
    pub(crate) report: ReportTo,

    /// Run the ranks of a real run
    #[arg(long, hide = true, value_name = "JSON")]
    inside: Option<String>,
}

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments) -> Result<Report, Error> {
    let aside = arguments.report.is_on_stdout();
    let mut sheet = Sheet::new(arguments.filter.clone(), aside, "MB/s");
    match &arguments.inside {
        Some(order) => real::inside(order)?,
        None => {
            model::add(&mut sheet)?;
            real::add(&mut sheet)?;
            super::claims::print(&goals::judge(&sheet.rows));
        }
    }
    Ok(Report {
        bench: "prefetch",
        machine: machine::facts(),
        rows: sheet.rows,
    })
}
