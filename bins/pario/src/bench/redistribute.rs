//! The redistribution sweep of `pario bench kernels`.

use super::Row;
use super::contest::Effort;
use crate::commands::Error;

/// Runs the sweep.
pub(crate) fn run(_effort: Effort, _wants: &dyn Fn(&str) -> bool) -> Result<Vec<Row>, Error> {
    Ok(Vec::new())
}
