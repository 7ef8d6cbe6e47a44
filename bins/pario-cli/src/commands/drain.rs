//! `pario drain`: moves everything away from an I/O server, so that it can be stopped. Owns how that is followed
//! and told; which file goes where is the metadata manager's decision.

use clap::Args;
use client::{DrainAnswer, ServerId};
use serde_json::json;

use super::connection::{self, refused};
use super::moving::{self, follow};
use super::names::shown;
use super::output::{bytes, counted};
use super::{Error, output};
use crate::progress::{self, Display, Progress};

/// Arguments of `pario drain`.
#[derive(Args)]
#[command(after_help = "\
Files are used as always while their bytes move; the server gets nothing new from the beginning on. When
the command returns the server holds nothing and can be stopped. Ending the command does not end the
draining.

Examples:
  pario drain 3
  pario drain 3 --limit 100MiB/s --detach
  pario drain 3 --status
  pario drain 3 --undo")]
pub(crate) struct Arguments {
    /// The number of the server, as `pario status` shows it
    server: u64,

    /// Move so many bytes a second at most
    #[arg(long, value_name = "RATE", value_parser = moving::rate)]
    limit: Option<u64>,

    /// Return when the draining has begun
    #[arg(long)]
    detach: bool,

    /// Show how far the draining is
    #[arg(long, conflicts_with_all = ["undo", "limit", "detach"])]
    status: bool,

    /// Let the server take part again; what has moved stays where it is
    #[arg(long, conflicts_with_all = ["limit", "detach"])]
    undo: bool,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Drains a server.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    moving::catch_interrupts()?;
    let client = connection::connect_to_existing()?;
    let server = ServerId(arguments.server);
    if arguments.status {
        return arguments.say(&client.drain_progress(server).map_err(refused)?);
    }
    if arguments.undo {
        return arguments.say(&client.end_drain(server).map_err(refused)?);
    }
    let options = moving::options(arguments.limit, false);
    let label = format!("server {}", server.0);
    let mut bar = Progress::follow(
        &label,
        None,
        Display::unless(arguments.quiet || arguments.json),
    );
    let begun = client.drain(server, &options).map_err(refused)?;
    if arguments.detach {
        return arguments.say(&begun);
    }
    let mut most = begun.bytes;
    bar.set_total(Some(most));
    let goes_on = format!(
        "the draining of server {0} goes on; `pario drain {0} --status` shows it, --undo ends it",
        server.0
    );
    let end = follow(&goes_on, || {
        let now = client.drain_progress(server).map_err(refused)?;
        most = most.max(now.bytes);
        bar.set_total(Some(most));
        bar.set(most - now.bytes);
        let is_stuck = now.moves == 0 && !now.failure.is_empty();
        // What has moved is removed a little later.
        let is_empty = now.files == 0 && client.subfiles(server).is_ok_and(|left| left.is_empty());
        let is_over = is_empty || !now.is_draining || is_stuck;
        Ok(is_over.then_some(now))
    })?;
    let time = bar.so_far().1;
    drop(bar);
    if end.files > 0 && end.is_draining {
        return Err(format!(
            "server {} still has {}: {}; give the others room or bring missing servers back, then drain it \
             again",
            server.0,
            counted(end.files, "file", "files"),
            shown(&end.failure)
        )
        .into());
    }
    if arguments.json || !end.is_draining {
        return arguments.say(&end);
    }
    output::print(&format!(
        "server {} holds nothing and can be stopped, {}\n",
        server.0,
        progress::summary(most, time)
    ))
}

impl Arguments {
    fn say(&self, now: &DrainAnswer) -> Result<(), Error> {
        if self.json {
            let facts = json!({
                "server": now.server.0,
                "is_draining": now.is_draining,
                "files": now.files,
                "bytes": now.bytes,
                "moves": now.moves,
                "failure": Some(&now.failure).filter(|text| !text.is_empty()),
            });
            return output::print(&format!("{facts:#}\n"));
        }
        let server = now.server.0;
        let text = match (now.is_draining, now.files) {
            (false, _) => format!("server {server} takes part"),
            (true, 0) => format!("server {server} holds nothing and can be stopped"),
            (true, files) => {
                let why = match now.failure.is_empty() {
                    true => String::new(),
                    false => format!("; {}", shown(&now.failure)),
                };
                format!(
                    "server {server} is being drained: {} left, {}, {}{why}",
                    counted(files, "file", "files"),
                    bytes(now.bytes),
                    counted(now.moves, "move", "moves")
                )
            }
        };
        output::print(&format!("{text}\n"))
    }
}
