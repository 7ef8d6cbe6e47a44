//! `pario hold`: holds a directory for the ranks of an MPI job, which `embedded` starts it for. Ends when
//! nobody has been connected for a while, or when told to.

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

use clap::Args;

use super::Error;
use crate::service::inherited::close_inherited;
use crate::service::signals;

const IDLE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(500);

/// Arguments of `pario hold`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The directory
    dir: PathBuf,
}

/// Serves a directory until nobody needs it.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    close_inherited();
    signals::block()?;
    let (tell, told) = channel();
    signals::watch(move |_| tell.send(()).is_ok())?;
    let options = embedded::Options::from_env();
    // Another process that holds it serves as well.
    embedded::hold(&arguments.dir, &options, IDLE, STEP, &mut |step| {
        told.recv_timeout(step).is_ok()
    })?;
    Ok(())
}
