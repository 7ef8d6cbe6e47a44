//! Holding a directory for others: what `pario hold` does.
//!
//! Ends when nobody has been connected for a while; ends at once when another process holds it.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::connect::Options;
use crate::directory::Directory;
use crate::error::Error;
use crate::holder::Holder;

/// Serves a directory until no client has been connected for `idle`, or `is_told_to_stop` says so,
/// which is asked every `step`. Returns whether it held it at all.
pub fn hold(
    path: &Path,
    options: &Options,
    idle: Duration,
    step: Duration,
    is_told_to_stop: &mut dyn FnMut(Duration) -> bool,
) -> Result<bool, Error> {
    let dir = Directory::open(path)?;
    let Some(holder) = Holder::take(&dir, options)? else {
        return Ok(false);
    };
    let mut last = Instant::now();
    while last.elapsed() < idle && !is_told_to_stop(step) {
        if holder.clients() > 0 {
            last = Instant::now();
        }
    }
    Ok(true)
}
