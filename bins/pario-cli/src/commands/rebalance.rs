//! `pario rebalance`: moves single subfiles to servers that have less, of one file or of all. Owns how that is
//! followed and told; which subfiles go where is the metadata manager's decision.

use std::collections::BTreeMap;

use clap::Args;
use client::{MoveState, SubfileMove};
use serde_json::{Value, json};

use super::connection::{self, refused};
use super::moving::{self, follow};
use super::names::shown;
use super::output::{bytes, counted};
use super::{Error, output};
use crate::progress::{self, Display, Progress};

/// Arguments of `pario rebalance`.
#[derive(Args)]
#[command(after_help = "\
Files keep their layouts; only subfiles that go to another server move, and files are used as always
meanwhile. Servers that joined later get their share this way.

Examples:
  pario rebalance --dry-run
  pario rebalance
  pario rebalance /results/matrix --limit 100MiB/s")]
pub(crate) struct Arguments {
    /// The file [default: all files]
    path: Option<String>,

    /// Only show what would move
    #[arg(long)]
    dry_run: bool,

    /// Move so many bytes a second at most
    #[arg(long, value_name = "RATE", value_parser = moving::rate)]
    limit: Option<u64>,

    /// Return when the moves have begun
    #[arg(long)]
    detach: bool,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Evens servers out.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    moving::catch_interrupts()?;
    let client = connection::connect_to_existing()?;
    let path = arguments.path.as_deref();
    if arguments.dry_run {
        let moves = client.rebalance_trial(path).map_err(refused)?;
        return arguments.say(&moves, "would move");
    }
    let options = moving::options(arguments.limit, false);
    let mut bar = Progress::follow(
        "rebalance",
        None,
        Display::unless(arguments.quiet || arguments.json),
    );
    let moves = client.rebalance(path, &options).map_err(refused)?;
    if arguments.detach || moves.is_empty() {
        return arguments.say(&moves, "moves");
    }
    let total: u64 = moves.iter().map(|m| m.bytes).sum();
    bar.set_total(Some(total));
    let mut files: BTreeMap<u64, (&SubfileMove, u64)> = BTreeMap::new();
    for one in &moves {
        files.entry(one.file.0).or_insert((one, 0)).1 += one.bytes;
    }
    let mut done = 0;
    let mut failures: Vec<String> = Vec::new();
    let goes_on = "the moves go on; `pario status` shows them";
    follow(goes_on, || {
        let mut part = 0;
        let mut over = Vec::new();
        for (&file, (one, of_file)) in &files {
            // A file that was removed meanwhile has nothing to move.
            let now = match client.relayout_progress(one.file) {
                Ok(now) => now,
                Err(error) if error.status() == client::Status::NotFound => {
                    over.push(file);
                    continue;
                }
                Err(error) => return Err(refused(error)),
            };
            let rests = now.state == MoveState::Paused && !now.failure.is_empty();
            if now.state == MoveState::Failed || rests {
                failures.push(format!("{}: {}", shown(&one.path), shown(&now.failure)));
            }
            match now.state.is_over() || rests {
                true => over.push(file),
                false => part += now.moved_bytes.min(*of_file),
            }
        }
        for file in over {
            done += files.remove(&file).map_or(0, |(_, of_file)| of_file);
        }
        bar.set(done + part);
        Ok(files.is_empty().then_some(()))
    })?;
    let time = bar.so_far().1;
    drop(bar);
    if let Some(first) = failures.first() {
        return Err(format!(
            "{} of {} could not be moved, the first is {first}",
            failures.len(),
            counted(moves.len() as u64, "subfile", "subfiles")
        )
        .into());
    }
    if !arguments.json {
        arguments.say(&moves, "moved")?;
        return output::print(&format!("{}\n", progress::summary(total, time)));
    }
    arguments.say(&moves, "moved")
}

impl Arguments {
    fn say(&self, moves: &[SubfileMove], verb: &str) -> Result<(), Error> {
        if self.json {
            let rows: Vec<Value> = moves
                .iter()
                .map(|m| {
                    json!({
                        "path": m.path,
                        "file": m.file.0,
                        "subfile": m.subfile,
                        "from": m.from.0,
                        "to": m.to.0,
                        "bytes": m.bytes,
                    })
                })
                .collect();
            return output::print(&format!("{:#}\n", json!({ "moves": rows })));
        }
        if moves.is_empty() {
            return output::print(
                "servers have equal shares already, as far as whole subfiles can\n",
            );
        }
        let mut text = String::new();
        for m in moves {
            text += &format!(
                "{} {verb} subfile {} ({}) from server {} to server {}\n",
                shown(&m.path),
                m.subfile,
                bytes(m.bytes),
                m.from.0,
                m.to.0
            );
        }
        output::print(&text)
    }
}
