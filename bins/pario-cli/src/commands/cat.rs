//! `pario cat`: the bytes of stored files, one after another, on standard output. A reader that went
//! away is no failure.

use std::io::ErrorKind;
use std::os::fd::AsFd;

use clap::Args;
use client::{Client, OpenOptions};

use super::Error;
use super::connection::{self, refused};
use super::transfer::{Mover, Stream, Trouble};
use crate::progress::{Display, Progress};

/// Arguments of `pario cat`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  pario cat /results/log
  pario cat /parts/0 /parts/1 | sha256sum")]
pub(crate) struct Arguments {
    /// Files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

/// Prints files.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let client = connection::connect_to_existing()?;
    let mut mover = Mover::default();
    for path in &arguments.paths {
        let mut progress = Progress::begin("", None, Display::Hidden);
        if !to_output(&client, path, &mut mover, &mut progress)?.is_wanted {
            break;
        }
    }
    Ok(())
}

/// How a file went to standard output.
pub(crate) struct PrintOutcome {
    pub(crate) bytes: u64,
    /// Whether anybody is still there to read.
    pub(crate) is_wanted: bool,
}

/// Writes a stored file to standard output.
pub(crate) fn to_output(
    client: &Client,
    path: &str,
    mover: &mut Mover,
    progress: &mut Progress,
) -> Result<PrintOutcome, Error> {
    let file = client
        .open(path, &OpenOptions::new().read())
        .map_err(refused)?;
    let size = file.size().map_err(refused)?;
    progress.set_total(Some(size));
    // The descriptor itself: what Rust puts around it looks for ends of lines.
    let out = std::io::stdout().as_fd().try_clone_to_owned();
    let out = out.map_err(|error| cannot_write(&error))?;
    match mover.load(&file, size, Stream::new(std::fs::File::from(out)), progress) {
        Ok(bytes) => Ok(PrintOutcome {
            bytes,
            is_wanted: true,
        }),
        Err(Trouble::Local(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(PrintOutcome {
            bytes: progress.so_far().0,
            is_wanted: false,
        }),
        Err(Trouble::Local(error)) => Err(cannot_write(&error)),
        Err(Trouble::Stored(error)) => Err(refused(error)),
    }
}

fn cannot_write(error: &std::io::Error) -> Error {
    format!("cannot write to standard output: {error}").into()
}
