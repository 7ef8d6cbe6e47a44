//! `pario rm`: removes files and directories of the service. Bytes of a file that is open go with its
//! last handle.

use clap::Args;
use client::{Client, Kind, Status};

use super::Error;
use super::connection::{self, refused};
use super::names::{join, last, shown};

/// Arguments of `pario rm`.
#[derive(Args)]
#[command(after_help = "\
Directories without entries are removed like files; others need -r. Their names
are gone when this ends; space follows, and `pario status` says how far it is.

Examples:
  pario rm /results/old
  pario rm -r /scratch
  pario rm -f /results/maybe")]
pub(crate) struct Arguments {
    /// What to remove
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,

    /// Directories with all that is in them
    #[arg(short, long)]
    recursive: bool,

    /// What is not there is fine
    #[arg(short, long)]
    force: bool,
}

/// Removes.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let client = connection::connect_to_existing()?;
    for path in &arguments.paths {
        if last(path).is_none() {
            return Err(format!(
                "'{}' cannot be removed; name what is in it, as `pario ls` shows it",
                shown(path)
            )
            .into());
        }
        match arguments.remove(&client, path) {
            Err(error) if arguments.force && error.status() == Status::NotFound => {}
            other => other.map_err(refused)?,
        }
    }
    Ok(())
}

impl Arguments {
    fn remove(&self, client: &Client, path: &str) -> client::Result<()> {
        match client.attributes(path)?.kind {
            Kind::File => client.unlink(path),
            Kind::Directory if self.recursive => match client.remove_tree(path) {
                Err(error) if error.status() == Status::Unsupported => remove_all(client, path),
                removed => removed,
            },
            Kind::Directory => client.rmdir(path),
        }
    }
}

/// Removes a directory and what is in it, name by name. Others may remove from it at the same time.
fn remove_all(client: &Client, path: &str) -> client::Result<()> {
    for entry in client.list(path)? {
        let entry = entry?;
        let below = join(path, &entry.name);
        let removed = match entry.kind {
            Kind::Directory => remove_all(client, &below),
            Kind::File => client.unlink(&below),
        };
        match removed {
            Err(error) if error.status() == Status::NotFound => {}
            other => other?,
        }
    }
    client.rmdir(path)
}
