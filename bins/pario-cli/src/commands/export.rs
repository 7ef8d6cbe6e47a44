//! `pario export`: arrays of the service as files of other programs. A file gets its name, and a Zarr array its metadata, when all of it is there.
//!
//! Left to others: what the formats look like (`formats`), moving bytes (`transfer`).

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use client::{Client, Kind, OpenOptions};
use layout::ArrayType;
use serde_json::{Map, Value};

use super::Error;
use super::connection::{self, refused};
use super::formats::entries::DTYPE_VALUE;
use super::formats::npy::Head;
use super::formats::zarr::Grid;
use super::formats::{Format, npz, python, regions};
use super::names::{absolute, join, shown};
use super::put::{local_name, summarize};
use super::transfer::{Mover, Stream, Trouble};
use crate::progress::{Display, Progress};

/// Arguments of `pario export`.
#[derive(Args)]
#[command(after_help = "\
The name says the format: .npy, .npz, .zarr, FILE.h5:/DATASET, and raw bytes otherwise. Zarr arrays are of version 3 and
not compressed. A directory becomes a .npz file with all arrays in it. HDF5 goes through the Python package, in the
interpreter PARIO_PYTHON names or python3.

Examples:
  pario export /runs/7/field field.npy
  pario export /runs/7/field field.zarr --chunks 100,100
  pario export /runs/7/state state.npz
  pario export /runs/7/field field.h5:/data")]
pub(crate) struct Arguments {
    /// Array of the service, or directory of arrays
    path: String,

    /// File of this host
    target: PathBuf,

    /// Lengths of the chunks of a Zarr or HDF5 array [default: the whole array in pieces of about 16 MiB]
    #[arg(long, value_name = "N,N")]
    chunks: Option<String>,

    /// npy, npz, zarr, hdf5 or raw [default: what the name says]
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

/// Bytes of a chunk when nothing is said.
const CHUNK: u64 = 16 << 20;

struct Export<'a> {
    client: &'a Client,
    arguments: &'a Arguments,
    mover: Mover,
    progress: Progress,
    files: u64,
}

/// An array that is open, and what numpy would say about it.
struct OpenArray {
    file: client::File,
    array: ArrayType,
    head: Head,
    attributes: Map<String, Value>,
}

/// Exports.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let Arguments { path, target, .. } = arguments;
    let format = Format::of(target, arguments.format.as_deref())?;
    if let Format::Hdf5 { .. } = format {
        let mut said = vec!["export".into(), absolute(path).into()];
        said.push(target.clone().into_os_string());
        if let Some(chunks) = &arguments.chunks {
            said.extend(["--chunks".into(), chunks.into()]);
        }
        return python::convert(&said);
    }
    if arguments.chunks.is_some() && format != Format::Zarr {
        return Err("--chunks: only Zarr and HDF5 have chunks".into());
    }
    let client = connection::connect_to_existing()?;
    let mut export = Export {
        client: &client,
        arguments,
        mover: Mover::default(),
        progress: Progress::begin(&shown(path), None, Display::unless(arguments.quiet)),
        files: 0,
    };
    match format {
        Format::Npz => export.npz()?,
        Format::Zarr => export.zarr()?,
        Format::Npy => export.file(|opened| opened.head.written())?,
        _ => export.file(|_| Vec::new())?,
    }
    let (bytes, time) = export.progress.so_far();
    drop(export.progress);
    summarize(export.files, bytes, time, Display::unless(arguments.quiet));
    Ok(())
}

impl Export<'_> {
    fn opened(&self, path: &str) -> Result<OpenArray, Error> {
        let file = self.client.open(path, &OpenOptions::new().read());
        let file = file.map_err(refused)?;
        let attributes = self.client.attributes(path).map_err(refused)?;
        let array = attributes.array.as_deref().ok_or_else(|| -> Error {
            format!(
                "{} holds plain bytes and no array; `pario get` fetches it",
                shown(&absolute(path))
            )
            .into()
        })?;
        let array: ArrayType = array.parse().map_err(|e| format!("{array}: {e}"))?;
        let values = self.client.values(path).map_err(refused)?;
        let said = values.iter().find(|(name, _)| name == DTYPE_VALUE);
        let head = Head::of_stored(&array, said.map(|(_, text)| text.as_slice()))?;
        let plain = values
            .iter()
            .filter(|(name, _)| !name.starts_with("pario."));
        let attributes = plain.filter_map(|(name, text)| {
            let value = serde_json::from_slice(text).ok()?;
            Some((name.clone(), value))
        });
        Ok(OpenArray {
            file,
            attributes: attributes.collect(),
            array,
            head,
        })
    }

    /// A file of one array, behind what stands before the entries.
    fn file(&mut self, before: impl FnOnce(&OpenArray) -> Vec<u8>) -> Result<(), Error> {
        let opened = self.opened(&self.arguments.path)?;
        self.progress.set_total(Some(opened.array.bytes()));
        let partial = Partial::beside(&self.arguments.target);
        let mut file = partial.created()?;
        file.write_all(&before(&opened))
            .map_err(|e| partial.cannot_write(&e))?;
        self.entries(&opened, file, &partial)?;
        self.files += 1;
        partial.kept()
    }

    /// All entries; what the file does not have of its array is zero.
    fn entries<W: Write + Send + 'static>(
        &mut self,
        opened: &OpenArray,
        out: W,
        partial: &Partial,
    ) -> Result<(), Error> {
        let bytes = opened.array.bytes();
        let sink = PaddingWriter {
            inner: out,
            len: 0,
            bytes,
        };
        let moved = self
            .mover
            .load(&opened.file, bytes, Stream::new(sink), &mut self.progress);
        moved.map(drop).map_err(|trouble| match trouble {
            Trouble::Local(error) => partial.cannot_write(&error),
            Trouble::Stored(error) => refused(error),
        })
    }

    fn npz(&mut self) -> Result<(), Error> {
        let path = &self.arguments.path;
        let found = self.client.attributes(path).map_err(refused)?;
        let mut arrays = Vec::new();
        if found.kind == Kind::Directory {
            let listing = self.client.list_with_attributes(path).map_err(refused)?;
            for entry in listing {
                let entry = entry.map_err(refused)?;
                if entry.attributes.is_some_and(|found| found.array.is_some()) {
                    arrays.push((join(path, &entry.name), entry.name));
                }
            }
            if arrays.is_empty() {
                return Err(format!("{} has no arrays in it", shown(&absolute(path))).into());
            }
        } else {
            let name = super::names::last(path).unwrap_or("array").to_owned();
            arrays.push((path.clone(), name));
        }
        let partial = Partial::beside(&self.arguments.target);
        let mut writer = npz::Writer::new(partial.created()?);
        for (path, name) in arrays {
            let opened = self.opened(&path)?;
            let progress = &mut self.progress;
            writer
                .member(&name, |to| -> Result<(), Failure> {
                    to.write_all(&opened.head.written())?;
                    let mut buffer = vec![0; 1 << 20];
                    let mut left = opened.array.bytes();
                    let mut at = 0;
                    while left > 0 {
                        let step = left.min(buffer.len() as u64) as usize;
                        let read = opened.file.read_at(at, &mut buffer[..step]);
                        let read = read.map_err(|e| Failure(refused(e)))?;
                        buffer[read..step].fill(0);
                        to.write_all(&buffer[..step])?;
                        at += step as u64;
                        left -= step as u64;
                        progress.add(step as u64);
                    }
                    Ok(())
                })
                .map_err(|Failure(error)| error)?;
            self.files += 1;
        }
        writer.end().map_err(|e| partial.cannot_write(&e))?;
        partial.kept()
    }

    fn zarr(&mut self) -> Result<(), Error> {
        let opened = self.opened(&self.arguments.path)?;
        let target = &self.arguments.target;
        let array = &opened.array;
        let shape = array.extents();
        let chunks = match &self.arguments.chunks {
            None => default_chunks(shape, array.element().size()),
            Some(text) => {
                let all = text.split(',').map(|n| n.trim().parse::<u64>());
                let all = all.collect::<Result<Vec<u64>, _>>();
                all.ok()
                    .filter(|all| all.len() == shape.len() && !all.contains(&0))
                    .ok_or_else(|| -> Error {
                        format!("--chunks: '{text}' does not fit {array}; give one length of at least 1 per dimension").into()
                    })?
            }
        };
        let attributes = Value::Object(opened.attributes);
        let grid = Grid::new(opened.head, chunks, attributes)?;
        let cannot = |e: &std::io::Error| -> Error {
            format!("cannot write {}: {e}", local_name(target)).into()
        };
        if target.exists() {
            return Err(format!("{} is there already; remove it first", local_name(target)).into());
        }
        let len = grid.chunk_bytes()?;
        let entry = array.element().size() as usize;
        self.progress.set_total(Some(array.bytes()));
        fs::create_dir_all(target).map_err(|e| cannot(&e))?;
        for at in grid.all() {
            let region = grid.region(&at);
            let part_len = region.iter().map(|&(_, n)| n as usize).product::<usize>() * entry;
            let mut part = vec![0; part_len];
            regions::read(&opened.file, array, &region, &mut part)?;
            let mut chunk = vec![0; len];
            let order = grid.head.order;
            regions::copy(
                regions::Cut::Put,
                (&mut chunk, &grid.chunks),
                (&mut part, &region),
                order,
                entry,
            );
            let file = grid.file(target, &at);
            if let Some(parent) = file.parent() {
                fs::create_dir_all(parent).map_err(|e| cannot(&e))?;
            }
            fs::write(&file, &chunk).map_err(|e| cannot(&e))?;
            self.progress.add(part_len as u64);
        }
        // Last, so that what is half there is no array yet.
        let text = format!("{:#}\n", grid.metadata());
        fs::write(target.join("zarr.json"), text).map_err(|e| cannot(&e))?;
        self.files += 1;
        Ok(())
    }
}

/// Whole rows first, as many as fit.
fn default_chunks(shape: &[u64], entry_bytes: u64) -> Vec<u64> {
    let mut room = (CHUNK / entry_bytes.max(1)).max(1);
    let mut chunks = vec![1; shape.len()];
    for (chunk, &extent) in chunks.iter_mut().zip(shape).rev() {
        *chunk = extent.clamp(1, room);
        room = (room / *chunk).max(1);
    }
    chunks
}

/// A failure of a writer, with what it says.
struct Failure(Error);

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure(format!("cannot write: {error}").into())
    }
}

/// A file that gets its name when it is whole.
struct Partial {
    path: PathBuf,
    target: PathBuf,
}

impl Partial {
    fn beside(target: &Path) -> Partial {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".partial-{}", std::process::id()));
        Partial {
            path: name.into(),
            target: target.into(),
        }
    }

    fn created(&self) -> Result<File, Error> {
        File::create(&self.path).map_err(|e| self.cannot_write(&e))
    }

    fn cannot_write(&self, error: &std::io::Error) -> Error {
        format!("cannot write {}: {error}", local_name(&self.target)).into()
    }

    fn kept(&self) -> Result<(), Error> {
        fs::rename(&self.path, &self.target).map_err(|e| self.cannot_write(&e))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Adds zeros at the end, for what the file does not have.
struct PaddingWriter<W> {
    inner: W,
    len: u64,
    bytes: u64,
}

impl<W: Write> Write for PaddingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = self.bytes - self.len;
        let taken = (bytes.len() as u64).min(room) as usize;
        let written = self.inner.write(&bytes[..taken])?;
        self.len += written as u64;
        // Bytes behind the array are not its entries.
        Ok(if taken < bytes.len() && written == taken {
            bytes.len()
        } else {
            written
        })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let zeros = [0; 64 << 10];
        while self.len < self.bytes {
            let step = (self.bytes - self.len).min(zeros.len() as u64) as usize;
            self.inner.write_all(&zeros[..step])?;
            self.len += step as u64;
        }
        self.inner.flush()
    }
}
