//! `pario relayout`: moves a stored file into another layout, and follows the move to its end. The
//! service moves it whether or not anybody follows.

use std::thread;
use std::time::Duration;

use clap::Args;
use client::{Kind, MoveState};
use serde_json::json;

use super::connection::{self, refused};
use super::laid_out::check_layout;
use super::names::{absolute, last, shown};
use super::{Error, output};
use crate::progress::{self, Progress};

/// Arguments of `pario relayout`.
#[derive(Args)]
#[command(after_help = "\
Reads and writes of the file wait while it moves. A move that fails leaves the file in its old
layout. Ending the command does not end the move.

Examples:
  pario relayout /results/matrix --layout '(*, block) onto 4'
  pario relayout /results/log --layout 'striped(1MiB) over 8' --json")]
pub(crate) struct Arguments {
    /// The file
    path: String,

    /// The layout it gets
    #[arg(long, value_name = "LAYOUT")]
    layout: String,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Between two questions how far it is; the first ones follow each other quickly.
const SOON: Duration = Duration::from_millis(2);
const LATER: Duration = Duration::from_millis(100);

/// Moves a file.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let Arguments { path, layout, .. } = arguments;
    // What cannot be read is refused with the character, before anybody is asked.
    if let Err(error) = layout.parse::<layout::Layout>() {
        return Err(format!("--layout: {error}").into());
    }
    let client = connection::connect_to_existing()?;
    let before = client.attributes(path).map_err(refused)?;
    let shown_path = shown(&absolute(path));
    if before.kind == Kind::Directory {
        return Err(
            format!("{shown_path} is a directory, which has no layout; name a file").into(),
        );
    }
    let array = before.array.as_deref().and_then(|text| text.parse().ok());
    check_layout(layout, array.as_ref())?;
    let label = shown(last(path).unwrap_or("/"));
    let mut progress = Progress::begin(&label, None, arguments.quiet);
    let mut moving = client.relayout(path, layout).map_err(refused)?;
    let mut pause = SOON;
    let end = loop {
        let now = moving.progress().map_err(refused)?;
        progress.set_total(Some(now.total_bytes));
        progress.set(now.moved_bytes);
        if now.state != MoveState::Moving {
            break now;
        }
        // Nobody wakes this thread: servers do not call clients.
        thread::park_timeout(pause);
        pause = (pause * 2).min(LATER);
    };
    let time = progress.so_far().1;
    drop(progress);
    if end.state == MoveState::Failed {
        return Err(format!(
            "{shown_path} stays in its old layout, the move failed: {}; `pario status` shows whether \
             all servers are there",
            shown(&end.failure)
        )
        .into());
    }
    if arguments.json {
        let facts = json!({
            "path": absolute(path),
            "from": before.layout,
            "to": layout,
            "generation": end.generation,
            "bytes": end.total_bytes,
            "seconds": time.as_secs_f64(),
        });
        return output::print(&format!("{facts:#}\n"));
    }
    output::print(&format!(
        "{shown_path}: {} -> {layout}, {}\n",
        before.layout.as_deref().unwrap_or("none"),
        progress::summary(end.total_bytes, time)
    ))
}
