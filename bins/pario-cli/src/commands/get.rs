//! `pario get`: files of the service onto this host. Blocks of zeros become holes.
//!
//! Names of the service are names of this host, and never lead out of the directory they are put
//! into.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::Args;
use client::{Client, File, Kind, Metadata, OpenOptions};
use serde_json::json;

use super::connection::{self, refused};
use super::names::{absolute, join, last, shown};
use super::put::{local_name, summarize};
use super::transfer::{Mover, Sink, Sparse, Stream, Trouble};
use super::{Error, cat, output, stream};
use crate::progress::{Display, Progress};

/// Arguments of `pario get`.
#[derive(Args)]
#[command(after_help = "\
Onto a directory means into it, under the name the file has in the service. A file that is there
is replaced. What says whose bytes a stream file has comes beside it, as NAME.pario-stream; put
takes it along. Long runs of zeros take no space where the file system knows holes.

Examples:
  pario get /results/matrix matrix.raw
  pario get /backup/src.tar - | tar x
  pario get -r /archive/results .
  pario get --subfile 2 /results/matrix part.raw     what one server has, for operators")]
pub(crate) struct Arguments {
    /// File or directory of the service
    path: String,

    /// File or directory of this host, or - for standard output
    #[arg(default_value = ".")]
    local: PathBuf,

    /// Directories with all that is in them
    #[arg(short, long)]
    recursive: bool,

    /// One subfile alone, from 0 on, as the layout has it; for operators of the service
    #[arg(long, value_name = "N", conflicts_with = "recursive")]
    subfile: Option<u64>,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,

    /// Print JSON about what was moved
    #[arg(long)]
    json: bool,
}

struct Get<'a> {
    client: &'a Client,
    mover: Mover,
    progress: Progress,
    files: u64,
    /// Which subfile, if not the file.
    subfile: Option<u64>,
}

/// Fetches files.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let is_stream = arguments.local.as_os_str() == "-";
    if is_stream && arguments.json {
        return Err("--json and - both want standard output; leave one of them away".into());
    }
    let client = connection::connect_to_existing()?;
    let path = &arguments.path;
    let attributes = client.attributes(path).map_err(refused)?;
    if attributes.kind == Kind::Directory && (is_stream || !arguments.recursive) {
        let shown = shown(&absolute(path));
        return Err(match is_stream {
            true => {
                format!("{shown} is a directory; name a file, or a directory of this host for it")
            }
            false => format!("{shown} is a directory; add -r to fetch it with all that is in it"),
        }
        .into());
    }
    let label = shown(last(path).unwrap_or("/"));
    let mut get = Get {
        client: &client,
        mover: Mover::default(),
        progress: Progress::begin(&label, None, Display::unless(arguments.quiet)),
        files: 0,
        subfile: arguments.subfile,
    };
    if is_stream && arguments.subfile.is_some() {
        let stdout = std::io::stdout();
        get.subfile_to(path, Stream::new(stdout))?;
        let (bytes, time) = get.progress.so_far();
        drop(get);
        summarize(1, bytes, time, Display::unless(arguments.quiet));
        return Ok(());
    }
    if is_stream {
        let printed = cat::to_output(&client, path, &mut get.mover, &mut get.progress)?;
        let time = get.progress.so_far().1;
        drop(get);
        summarize(1, printed.bytes, time, Display::unless(arguments.quiet));
        return Ok(());
    }
    let target = match last(path).filter(|_| arguments.local.is_dir()) {
        Some(name) => arguments.local.join(safe_name(name)?),
        None => arguments.local.clone(),
    };
    match attributes.kind {
        Kind::Directory => get.directory(path, &target, &attributes)?,
        Kind::File => {
            get.progress.set_total(None);
            get.file(path, &target, true)?;
        }
    }
    let (bytes, time) = get.progress.so_far();
    let files = get.files;
    drop(get);
    if arguments.json {
        let facts = json!({ "files": files, "bytes": bytes, "seconds": time.as_secs_f64() });
        return output::print(&format!("{facts:#}\n"));
    }
    summarize(files, bytes, time, Display::unless(arguments.quiet));
    Ok(())
}

impl Get<'_> {
    /// The file, or its subfile, and how long it is.
    fn open(&self, path: &str) -> Result<(File, u64), Error> {
        let options = OpenOptions::new().read();
        let file = match self.subfile {
            None => self.client.open(path, &options),
            Some(index) => self.client.open_subfile(path, index, &options),
        };
        let file = file.map_err(refused)?;
        let size = file.view_len().map_err(refused)?;
        Ok((file, size))
    }

    /// A subfile to something that has no name.
    fn subfile_to<S: Sink>(&mut self, path: &str, sink: S) -> Result<(), Error> {
        let (file, size) = self.open(path)?;
        let moved = self.mover.load(&file, size, sink, &mut self.progress);
        moved.map(drop).map_err(|trouble| match trouble {
            Trouble::Local(error) => format!("cannot write standard output: {error}").into(),
            Trouble::Stored(error) => refused(error),
        })
    }

    fn file(&mut self, path: &str, target: &Path, is_alone: bool) -> Result<(), Error> {
        // Before anything is made here: it may not be there, or not be readable.
        let (file, size) = self.open(path)?;
        if is_alone {
            self.progress.set_total(Some(size));
        }
        let mode = self
            .client
            .attributes(path)
            .map_or(0o666, |found| found.mode & 0o777);
        // What is there is replaced when all bytes have come, and not before.
        let is_regular = fs::metadata(target).map_or(true, |found| found.is_file());
        let begun = match is_regular {
            true => beside(target),
            false => target.to_owned(),
        };
        let local = fs::OpenOptions::new()
            .write(true)
            .create(is_regular)
            .truncate(is_regular)
            .mode(mode)
            .open(&begun)
            .map_err(|e| cannot_write(target, &e))?;
        let moved = match is_regular {
            true => self
                .mover
                .load(&file, size, Sparse::new(local), &mut self.progress),
            false => self
                .mover
                .load(&file, size, Stream::new(local), &mut self.progress),
        };
        let moved = match moved {
            Ok(_) if is_regular => fs::rename(&begun, target).map_err(Trouble::Local),
            Ok(_) => Ok(()),
            Err(trouble) => Err(trouble),
        };
        match moved {
            Ok(()) => {
                self.files += 1;
                match is_regular {
                    true => stream::fetch_root(self.client, path, target),
                    false => Ok(()),
                }
            }
            Err(trouble) => {
                if is_regular {
                    // It has a part only, which nobody asked for.
                    let _ = fs::remove_file(&begun);
                }
                Err(match trouble {
                    Trouble::Local(error) => cannot_write(target, &error),
                    Trouble::Stored(error) => refused(error),
                })
            }
        }
    }

    fn directory(&mut self, path: &str, target: &Path, found: &Metadata) -> Result<(), Error> {
        // Its owner has to be able to put files into it.
        let mode = found.mode & 0o777 | 0o700;
        match fs::DirBuilder::new().mode(mode).create(target) {
            Err(_) if target.is_dir() => {}
            other => other.map_err(|e| cannot_write(target, &e))?,
        }
        let entries = self.client.list_with_attributes(path).map_err(refused)?;
        for entry in entries {
            let entry = entry.map_err(refused)?;
            let (from, to) = (
                join(path, &entry.name),
                target.join(safe_name(&entry.name)?),
            );
            match (entry.kind, &entry.attributes) {
                (Kind::Directory, Some(found)) => self.directory(&from, &to, found)?,
                _ => {
                    self.progress.set_label(&shown(&entry.name));
                    self.file(&from, &to, false)?;
                }
            }
        }
        Ok(())
    }
}

/// A name in the same directory for a file that is not complete; links are followed.
fn beside(target: &Path) -> PathBuf {
    let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".part-{}", std::process::id()));
    target.with_file_name(name)
}

/// Refuses what would lead elsewhere, whatever the service says.
fn safe_name(name: &str) -> Result<&str, Error> {
    let is_one = !name.is_empty() && !name.contains(['/', '\0']);
    match is_one && name != "." && name != ".." {
        true => Ok(name),
        false => Err(format!(
            "'{}' cannot be a name on this host; fetch it alone",
            shown(name)
        )
        .into()),
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    format!("cannot write {}: {error}", local_name(path)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_never_lead_elsewhere() {
        for name in ["", ".", "..", "a/b", "/etc/passwd", "a\0b"] {
            safe_name(name).expect_err(name);
        }
        for name in ["a", "..a", "a b", "a\nb", "🦀"] {
            assert_eq!(safe_name(name).expect("a name"), name);
        }
    }
}
