//! `pario restore`: the directory of a metadata manager out of a backup of its catalogue. Changes nothing that exists.
//!
//! Left to others: what becomes of files that changed after the backup is found by `doctor`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use serving::{AUDIT_FILE, AuditEntry, AuditLog};

use super::output::{self, counted};
use super::{Error, backup};
use crate::service::state::State;
use crate::service::target::DEFAULT_DIRECTORY;

/// Arguments of `pario restore`.
#[derive(Args)]
#[command(after_help = "\
Makes the catalogue of a service again that has lost it. The service must not run, and a directory that has a catalogue is
refused. I/O servers are started on the directories that they had, after the restore also those that never stopped, and take
part again: the bytes are theirs.

The catalogue is as old as the backup. `pario doctor` finds what changed since:
  orphan    files that were made since: their bytes are there and have no name; `pario doctor --rebuild` brings them back from
            the directories of the I/O servers, and `pario doctor --repair` puts them aside
  changed   files that were removed, or moved to another layout, since: they have a name and no bytes
What was renamed since has its old name. What was written since is as it was written, and files that have grown since are as long as
their servers say.

Examples:
  pario restore /backup/catalogue-2026-11-19 --dir /data/pario && pario up --detach --dir /data/pario && pario doctor
  pario restore /backup/catalogue-2026-11-19 --meta /var/lib/pario        for `pario serve meta --dir /var/lib/pario`")]
pub(crate) struct Arguments {
    /// A file that `pario backup` has written
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The directory of a service of `pario up`
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY, conflicts_with = "meta")]
    dir: PathBuf,

    /// The directory of a metadata manager that is started by `pario serve meta`
    #[arg(long, value_name = "DIR")]
    meta: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Restores a catalogue.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let (dir, _claim) = match &arguments.meta {
        Some(meta) => (meta.clone(), None),
        None => {
            let dir = &arguments.dir;
            if let Some(state) = State::running(dir) {
                return Err(format!(
                    "the service at {} runs in {}; stop it first (`pario down`), or restore into another directory",
                    state.url,
                    dir.display()
                )
                .into());
            }
            if dir.join("meta/catalogue").exists() {
                return Err(
                    metaserver::RestoreError::HasCatalogue(dir.join("meta/catalogue")).into(),
                );
            }
            (dir.join("meta"), Some(embedded::Claim::take(dir)?))
        }
    };
    let (head, rows) = metaserver::restore(&arguments.file, &dir)?;
    let beside = match &arguments.meta {
        Some(meta) => meta,
        None => &arguments.dir,
    };
    AuditLog::at(beside.join(AUDIT_FILE)).note(&AuditEntry {
        by: "command",
        action: "restore",
        user: rustix::process::geteuid().as_raw(),
        client: None,
        arguments: json!({ "file": arguments.file, "as_of": serving::utc(head.at_s) }),
        refusal: None,
    });
    if arguments.json {
        let mut told = backup::to_json(&head, rows);
        told["directory"] = json!(dir);
        return output::print(&format!("{told}\n"));
    }
    output::print(&format!(
        "{}: {}, {}, as of {}\nstart the service, and all its I/O servers anew; then `pario doctor` says what changed since\n",
        dir.display(),
        counted(head.files, "file", "files"),
        counted(head.directories, "directory", "directories"),
        serving::utc(head.at_s),
    ))
}
