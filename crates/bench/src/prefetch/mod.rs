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
use console::Error;

use super::{Sheet, claims};

/// Arguments of `pario bench prefetch`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Run the ranks of a real run
    #[arg(long, hide = true, value_name = "JSON")]
    inside: Option<String>,
}

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    if let Some(order) = &arguments.inside {
        return real::inside(order);
    }
    sheet.begin("prefetch", "MB/s", "");
    model::add(sheet)?;
    real::add(sheet)?;
    claims::print(&goals::judge(&sheet.rows));
    Ok(())
}
