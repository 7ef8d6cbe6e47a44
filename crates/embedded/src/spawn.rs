//! A process of its own that holds a directory, for the ranks of an MPI job.
//!
//! A rank that served the others would have to stay until the last of them is done, and would run
//! threads that the MPI library does not expect. The spawned process ends by itself when nobody
//! has been connected for a while.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use std::os::unix::process::CommandExt;

use job::identity::RANK_MARKS;

use crate::error::Error;

/// Starts the process. Who comes too late to get the lock ends at once.
pub(crate) fn holder(dir: &Path) -> Result<(), Error> {
    let program = program();
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
    command
        .spawn()
        .map(drop)
        .map_err(|e| Error::Spawn(format!("{}: {e}", program.display())))
}

/// The `pario` program: as named, beside this one, or on the path.
fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("PARIO_PROGRAM") {
        return named.into();
    }
    std::env::current_exe()
        .ok()
        .map(|here| here.with_file_name("pario"))
        .filter(|beside| beside.is_file())
        .unwrap_or_else(|| "pario".into())
}

fn log(dir: &Path) -> Stdio {
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(dir.join("holder.log"))
        .map_or_else(|_| Stdio::null(), Stdio::from)
}
