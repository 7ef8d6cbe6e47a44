//! `pario put`: files of this host into the service. A file that is there keeps its layout and gets
//! other bytes.
//!
//! Directories go with `-r`, name by name: what the service has besides is left alone.

use std::fs;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use client::{Client, File, Kind, OpenOptions, Status};
use serde_json::json;

use super::Error;
use super::connection::{self, refused};
use super::laid_out::LaidOut;
use super::names::{absolute, join, last, shown};
use super::output::{self, counted, note};
use super::transfer::{Mover, Source, Sparse, Stream, Trouble};
use crate::progress::{self, Display, Progress};

/// Arguments of `pario put`.
#[derive(Args)]
#[command(after_help = "\
Onto a file that is there: its bytes are replaced, its layout stays. Onto a directory: into it,
under the name the file has here. Holes of sparse files are not sent. With --sync the bytes
are on the servers' disks when the command ends; without it the servers write them in their time.

Examples:
  pario put matrix.raw /results/matrix --array 'f64[4096,4096]' --layout '(block, *) onto 4'
  tar c src | pario put - /backup/src.tar
  pario put -r results /archive
  pario put --subfile 2 part.raw /results/matrix     onto what one server has, for operators")]
pub(crate) struct Arguments {
    /// File or directory of this host, or - for standard input
    local: PathBuf,

    /// File or directory of the service
    path: String,

    #[command(flatten)]
    laid_out: LaidOut,

    /// Directories with all that is in them
    #[arg(short, long)]
    recursive: bool,

    /// Onto the first bytes of one subfile, from 0 on, of a file that is there; for operators of the service
    #[arg(long, value_name = "N", conflicts_with_all = ["recursive", "array", "layout"])]
    subfile: Option<u64>,

    /// Make the bytes durable
    #[arg(long)]
    sync: bool,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,

    /// Print JSON about what was moved
    #[arg(long)]
    json: bool,
}

struct Put<'a> {
    client: &'a Client,
    arguments: &'a Arguments,
    mover: Mover,
    progress: Progress,
    files: u64,
    /// Links to directories, sockets and the like, which the service cannot have.
    left_out: u64,
    is_volatile: bool,
    /// What to say about a file that does not fill its array.
    misfit: Option<String>,
}

/// Stores files.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    arguments.laid_out.check()?;
    let is_stream = arguments.local.as_os_str() == "-";
    let metadata = match is_stream {
        true => None,
        false => {
            Some(fs::metadata(&arguments.local).map_err(|e| cannot_read(&arguments.local, &e))?)
        }
    };
    if metadata.as_ref().is_some_and(fs::Metadata::is_dir) && !arguments.recursive {
        return Err(format!(
            "{} is a directory; add -r to store it with all that is in it",
            local_name(&arguments.local)
        )
        .into());
    }
    let client = connection::connect()?;
    let label = last(&arguments.path).unwrap_or("/");
    let mut put = Put {
        client: &client,
        arguments,
        mover: Mover::default(),
        progress: Progress::begin(&shown(label), None, Display::unless(arguments.quiet)),
        files: 0,
        left_out: 0,
        is_volatile: false,
        misfit: None,
    };
    match metadata {
        None if arguments.subfile.is_some() => {
            put.onto_subfile(Stream::new(std::io::stdin()), None)?;
        }
        Some(metadata) if arguments.subfile.is_some() => {
            let local = &arguments.local;
            let source = fs::File::open(local).map_err(|e| cannot_read(local, &e))?;
            put.onto_subfile(Stream::new(source), Some(metadata.len()))?;
        }
        None => put.stream()?,
        Some(metadata) if metadata.is_dir() => put.whole_directory(&metadata)?,
        Some(_) => {
            let target = put.target()?;
            put.file(&arguments.local, &target)?;
        }
    }
    put.report()
}

impl Put<'_> {
    /// Where the file or directory goes: into a directory that is there, else to the path itself.
    fn target(&self) -> Result<String, Error> {
        let Arguments { local, path, .. } = self.arguments;
        let into = match self.client.attributes(path) {
            Ok(found) => found.kind == Kind::Directory,
            Err(error) if error.status() == Status::NotFound => false,
            Err(error) => return Err(refused(error)),
        };
        // What is in a directory goes without its name: `put -r results/. /archive`.
        let is_content = local.as_os_str().as_bytes().ends_with(b"/.");
        match local.file_name().filter(|_| into && !is_content) {
            Some(name) => Ok(join(path, stored_name(name, local)?)),
            None => Ok(absolute(path)),
        }
    }

    /// Bytes onto a subfile, whose others stay.
    fn onto_subfile<S: Source>(&mut self, source: S, size: Option<u64>) -> Result<(), Error> {
        let Arguments {
            local,
            path,
            subfile,
            sync,
            ..
        } = self.arguments;
        self.progress.set_total(size);
        let options = OpenOptions::new().write();
        let file = self
            .client
            .open_subfile(path, subfile.unwrap_or(0), &options);
        let file = file.map_err(refused)?;
        let moved = self.mover.store(source, size, &file, &mut self.progress);
        moved.map_err(|trouble| match trouble {
            Trouble::Local(error) => cannot_read(local, &error),
            Trouble::Stored(error) => refused(error),
        })?;
        if *sync {
            self.is_volatile |= !file.sync().map_err(refused)?.is_durable;
        }
        self.files += 1;
        file.close().map_err(refused)
    }

    fn stream(&mut self) -> Result<(), Error> {
        let path = &self.arguments.path;
        if matches!(self.client.attributes(path), Ok(found) if found.kind == Kind::Directory) {
            return Err(format!(
                "{} is a directory, and standard input has no name to go by; name a file in it",
                shown(&absolute(path))
            )
            .into());
        }
        let file = self.open(path, None)?;
        let source = Stream::new(std::io::stdin());
        let moved = self.mover.store(source, None, &file, &mut self.progress);
        self.finish(&file, path, Path::new("standard input"), moved)
    }

    fn file(&mut self, local: &Path, target: &str) -> Result<(), Error> {
        let source = fs::File::open(local).map_err(|e| cannot_read(local, &e))?;
        let metadata = source.metadata().map_err(|e| cannot_read(local, &e))?;
        let size = metadata
            .is_file()
            .then_some(metadata.len())
            .filter(|&size| size > 0);
        if !self.arguments.recursive {
            self.progress.set_total(size);
        }
        let file = self.open(target, Some(metadata.permissions().mode()))?;
        let moved = match (metadata.is_file(), size) {
            (true, Some(_)) => {
                let source = Sparse::new(source);
                self.mover.store(source, size, &file, &mut self.progress)
            }
            // Some files of the kernel have bytes in spite of their size.
            (is_file, _) => {
                let size = is_file.then_some(0);
                self.mover
                    .store(Stream::new(source), size, &file, &mut self.progress)
            }
        };
        self.finish(&file, target, local, moved)
    }

    /// An empty file to write to.
    fn open(&mut self, target: &str, mode: Option<u32>) -> Result<File, Error> {
        let options = OpenOptions::new().write().create();
        let mut options = self.arguments.laid_out.apply(options);
        if let Some(mode) = mode {
            options = options.mode(mode & 0o777);
        }
        let file = self.client.open(target, &options).map_err(refused)?;
        if file.is_new() {
            return Ok(file);
        }
        self.arguments.laid_out.compare(self.client, target)?;
        let layout = self.client.layout(target).map_err(refused)?;
        if layout.lost.is_empty() {
            file.resize(0).map_err(refused)?;
            return Ok(file);
        }
        // What lies at a server that died cannot be written either: the same file anew.
        let mode = self.client.attributes(target).map_err(refused)?.mode;
        let mut options = options.exclusive().mode(mode).layout(layout.text);
        if let Some(array) = layout.array {
            options = options.array(array);
        }
        let _ = file.close();
        self.client.unlink(target).map_err(refused)?;
        self.client.open(target, &options).map_err(refused)
    }

    fn finish(
        &mut self,
        file: &File,
        target: &str,
        local: &Path,
        moved: Result<u64, Trouble>,
    ) -> Result<(), Error> {
        if let (Ok(bytes), Some(array)) = (&moved, file.array())
            && array.bytes() > 0
            && bytes % array.bytes() != 0
        {
            // Records may follow each other, but a part of one is more often a wrong dimension.
            let whole = array.bytes();
            self.misfit = Some(format!(
                "pario: {} has {bytes} bytes, the array takes {whole}; look at --array if that is not meant",
                shown(&absolute(target))
            ));
        }
        let mut outcome = moved.map(drop).map_err(|trouble| match trouble {
            Trouble::Local(error) => cannot_read(local, &error),
            Trouble::Stored(error) => refused(error),
        });
        if outcome.is_ok() && self.arguments.sync {
            outcome = file.sync().map_err(refused).map(|synced| {
                self.is_volatile |= !synced.is_durable;
            });
        }
        let outcome = outcome.and_then(|()| super::stream::store_root(self.client, target, local));
        let outcome = outcome.and_then(|()| file.close().map_err(refused));
        let Err(error) = outcome else {
            self.files += 1;
            return Ok(());
        };
        if file.is_new() {
            // Half a file under a good name would be taken for a whole one.
            let _ = file.close();
            let _ = self.client.unlink(target);
            return Err(error);
        }
        Err(format!(
            "{error}; {} has only a part of it now",
            shown(&absolute(target))
        )
        .into())
    }

    /// Makes the directory, and stores what is in it.
    fn whole_directory(&mut self, metadata: &fs::Metadata) -> Result<(), Error> {
        let target = self.target()?;
        self.directory(&self.arguments.local.clone(), &target, metadata)
    }

    fn directory(
        &mut self,
        local: &Path,
        target: &str,
        metadata: &fs::Metadata,
    ) -> Result<(), Error> {
        let mode = metadata.permissions().mode() & 0o777;
        match self.client.mkdir(target, Some(mode)) {
            Err(error) if error.status() == Status::Exists => {
                let found = self.client.attributes(target).map_err(refused)?;
                if found.kind != Kind::Directory {
                    return Err(refused(error));
                }
            }
            // The root is always there.
            Err(_) if last(target).is_none() => {}
            other => other.map_err(refused)?,
        }
        let entries = fs::read_dir(local).map_err(|e| cannot_read(local, &e))?;
        let mut names = entries
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| cannot_read(local, &e))?;
        names.sort();
        // Roots of stream files go with their files.
        let is_beside = |name: &std::ffi::OsString| {
            let base = name
                .to_str()
                .and_then(|n| n.strip_suffix(super::stream::BESIDE));
            base.is_some_and(|base| names.iter().any(|other| other == base))
        };
        for name in names.iter().filter(|name| !is_beside(name)) {
            let from = local.join(name);
            let to = join(target, stored_name(name, &from)?);
            let plain = fs::symlink_metadata(&from).map_err(|e| cannot_read(&from, &e))?;
            let followed = match plain.is_symlink() {
                true => fs::metadata(&from).ok(),
                false => Some(plain.clone()),
            };
            if plain.is_dir() {
                self.directory(&from, &to, &plain)?;
            } else if followed.is_some_and(|found| found.is_file()) {
                self.progress.set_label(&shown(&name.to_string_lossy()));
                self.file(&from, &to)?;
            } else {
                note(&format!(
                    "pario: {} is left out: it is no file and no directory",
                    local_name(&from)
                ));
                self.left_out += 1;
            }
        }
        Ok(())
    }

    fn report(self) -> Result<(), Error> {
        let (bytes, time) = self.progress.so_far();
        drop(self.progress);
        if self.is_volatile {
            note("pario: the servers keep bytes in memory: they survive no end of a server");
        }
        if let Some(misfit) = &self.misfit {
            note(misfit);
        }
        if self.arguments.json {
            let facts = json!({
                "files": self.files,
                "bytes": bytes,
                "seconds": time.as_secs_f64(),
                "left_out": self.left_out,
            });
            output::print(&format!("{facts:#}\n"))?;
        } else {
            summarize(
                self.files,
                bytes,
                time,
                Display::unless(self.arguments.quiet),
            );
        }
        match self.left_out {
            0 => Ok(()),
            n => Err(format!(
                "{} left out; everything else is stored",
                counted(n, "entry was", "entries were")
            )
            .into()),
        }
    }
}

/// Says what was moved to a user who watches, if it took a while.
pub(crate) fn summarize(files: u64, bytes: u64, time: std::time::Duration, display: Display) {
    let took_a_while = time >= std::time::Duration::from_secs(1);
    if took_a_while && display == Display::Shown && std::io::stderr().is_terminal() {
        let files = counted(files, "file", "files");
        note(&format!("{files}, {}", progress::summary(bytes, time)));
    }
}

/// A name of this host as the service takes it.
fn stored_name<'n>(name: &'n std::ffi::OsStr, path: &Path) -> Result<&'n str, Error> {
    name.to_str().ok_or_else(|| {
        format!(
            "{} has a name that is no UTF-8, which the service cannot keep; rename it",
            local_name(path)
        )
        .into()
    })
}

/// A local path as a terminal may show it.
pub(crate) fn local_name(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

/// Why a local file cannot be read, or written to.
pub(crate) fn cannot_read(path: &Path, error: &std::io::Error) -> Error {
    format!("cannot read {}: {error}", local_name(path)).into()
}
