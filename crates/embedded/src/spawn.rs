//! A process of its own that holds a directory, for the ranks of an MPI job.
//!
//! A rank that served the others would have to stay until the last of them is done, and would run
//! threads that the MPI library does not expect. The spawned process ends by itself when nobody
//! has been connected for a while.

use std::path::Path;
use std::process::{Command, Stdio};

use std::os::unix::process::CommandExt;

use job::identity::RANK_MARKS;
use job::program;

use crate::error::Error;

/// Starts the process. Who comes too late to get the lock ends at once.
pub(crate) fn holder(dir: &Path) -> Result<(), Error> {
    let program = program::find();
    let mut command = Command::new(&program);
    command
        .arg("hold")
        .arg(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log(dir))
        // Signals to the job's group are not meant for it.
        .process_group(0);
    for name in RANK_MARKS {
        command.env_remove(name);
    }
    program::without_library(&mut command);
    command
        .spawn()
        .map(drop)
        .map_err(|e| Error::Spawn(format!("{}: {e}", program.display())))
}

fn log(dir: &Path) -> Stdio {
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(dir.join("holder.log"))
        .map_or_else(|_| Stdio::null(), Stdio::from)
}
