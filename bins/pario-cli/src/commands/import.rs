//! `pario import`: arrays of other programs into the service, with their type and shape. An array that could not be read to its end does not stay.
//!
//! Left to others: what the formats look like (`formats`), moving bytes (`transfer`).

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use client::{Client, OpenOptions};
use layout::ArrayType;

use super::Error;
use super::connection::{self, refused};
use super::formats::entries::DTYPE_VALUE;
use super::formats::npy::Head;
use super::formats::zarr::{Grid, GridError};
use super::formats::{Format, npz, python, regions};
use super::laid_out::check_layout;
use super::names::{absolute, join};
use super::output::note;
use super::put::{cannot_read, local_name, summarize};
use super::transfer::{Mover, Stream, Trouble};
use crate::progress::{Display, Progress};
use console::notation;

/// Arguments of `pario import`.
#[derive(Args)]
#[command(after_help = "\
The name says the format: .npy, .npz, .zarr, FILE.h5:/DATASET, and raw bytes otherwise. What is there under
the path is replaced. Each array of a .npz file becomes a file below the path. Directories above are made. HDF5 and whatever is compressed
go through the Python package, in the interpreter PARIO_PYTHON names or python3.

Examples:
  pario import field.npy /runs/7/field --layout '(block, *) onto 4'
  pario import state.npz /runs/7/state
  pario import field.zarr /runs/7/field
  pario import field.h5:/data /runs/7/field
  pario import field.bin /runs/7/field --array 'f32[512,512]'")]
pub(crate) struct Arguments {
    /// File or directory of this host
    source: PathBuf,

    /// File of the service, or directory for several arrays
    path: String,

    /// What raw bytes are, such as 'f64[4096,4096]'
    #[arg(long, value_name = "ARRAY")]
    array: Option<String>,

    /// How the array is cut [default: over all servers]
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<String>,

    /// npy, npz, zarr, hdf5 or raw [default: what the name says]
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

struct Import<'a> {
    client: &'a Client,
    arguments: &'a Arguments,
    mover: Mover,
    progress: Progress,
    files: u64,
}

/// Imports.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let Arguments { source, path, .. } = arguments;
    let format = Format::of(source, arguments.format.as_deref())?;
    if let Some(layout) = &arguments.layout {
        layout
            .parse::<layout::Layout>()
            .map_err(|error| format!("--layout: {error}"))?;
    }
    if arguments.array.is_some() && format != Format::Raw {
        return Err(
            "--array: only raw bytes need one; every other format says what it holds".into(),
        );
    }
    if let Format::Hdf5 { file, .. } = &format {
        fs::metadata(file).map_err(|e| cannot_read(file, &e))?;
        return through_python(arguments);
    }
    let about = |error: Error| -> Error { format!("{}: {error}", local_name(source)).into() };
    if format == Format::Zarr {
        return match Grid::read(source) {
            Ok(grid) => begun(arguments, &connection::connect()?)
                .zarr(&grid)
                .map_err(about),
            Err(GridError::Damaged(text)) => Err(about(text.into())),
            Err(GridError::NotPlain(what)) => {
                if !arguments.quiet {
                    note(&format!("pario: {what}: through the Python package"));
                }
                through_python(arguments)
            }
        };
    }
    let mut file = File::open(source).map_err(|e| cannot_read(source, &e))?;
    match format {
        Format::Npz => {
            let members = npz::members(&file).map_err(about)?;
            if members.iter().any(|member| member.is_compressed) {
                return through_python(arguments);
            }
            let client = connection::connect()?;
            client.mkdir_all(path, None).map_err(refused)?;
            let mut import = begun(arguments, &client);
            for member in &members {
                let mut from = npz::opened(&file, member).map_err(about)?;
                let head = Head::read(&mut from).map_err(about)?;
                import.stored(&join(path, &member.name), &head, from)?;
            }
            import.end()
        }
        Format::Npy => {
            let head = Head::read(&mut file).map_err(about)?;
            let client = connection::connect()?;
            let mut import = begun(arguments, &client);
            import.stored(path, &head, file)?;
            import.end()
        }
        _ => {
            let array = arguments.array.as_deref().ok_or_else(|| -> Error {
                format!(
                    "{} says nothing about its array; give --array, such as --array 'f64[100,100]', or \
                     --format",
                    local_name(source)
                )
                .into()
            })?;
            let array = notation::array(array)?;
            let head = Head::of_stored(&array, None)?;
            let size = file.metadata().map_err(|e| cannot_read(source, &e))?.len();
            if size != array.bytes() {
                return Err(about(
                    format!("it has {size} bytes, and {array} takes {}", array.bytes()).into(),
                ));
            }
            let client = connection::connect()?;
            let mut import = begun(arguments, &client);
            import.stored(path, &head, file)?;
            import.end()
        }
    }
}

fn begun<'a>(arguments: &'a Arguments, client: &'a Client) -> Import<'a> {
    Import {
        client,
        arguments,
        mover: Mover::default(),
        progress: Progress::begin(
            &local_name(&arguments.source),
            None,
            Display::unless(arguments.quiet),
        ),
        files: 0,
    }
}

fn through_python(arguments: &Arguments) -> Result<(), Error> {
    let mut said = vec!["import".into(), arguments.source.clone().into_os_string()];
    said.push(absolute(&arguments.path).into());
    if let Some(layout) = &arguments.layout {
        said.extend(["--layout".into(), layout.into()]);
    }
    python::convert(&said)
}

impl Import<'_> {
    /// An empty array, in place of what is there.
    fn created(&self, path: &str, head: &Head) -> Result<(client::File, ArrayType), Error> {
        head.bytes()?;
        let text = head.array();
        let array: ArrayType = text.parse().map_err(|e| format!("{text}: {e}"))?;
        let mut options = OpenOptions::new().read().write().exclusive().array(text);
        if let Some(layout) = &self.arguments.layout {
            check_layout(layout, Some(&array))?;
            options = options.layout(layout.as_str());
        }
        if let Some(said) = &head.entries.said {
            options = options.value(DTYPE_VALUE, said.to_string().into_bytes());
        }
        if let Some((parent, _)) = absolute(path).rsplit_once('/')
            && !parent.is_empty()
        {
            self.client.mkdir_all(parent, None).map_err(refused)?;
        }
        match self.client.open(path, &options) {
            Ok(file) => Ok((file, array)),
            Err(error) if error.status() == client::Status::Exists => {
                self.client.unlink(path).map_err(refused)?;
                let file = self.client.open(path, &options).map_err(refused)?;
                Ok((file, array))
            }
            Err(error) => Err(refused(error)),
        }
    }

    /// Entries in their order.
    fn stored(
        &mut self,
        path: &str,
        head: &Head,
        from: impl Read + Send + 'static,
    ) -> Result<(), Error> {
        let bytes = head.bytes()?;
        let (file, _) = self.created(path, head)?;
        let source = Stream::new(from.take(bytes));
        let moved = self
            .mover
            .store(source, Some(bytes), &file, &mut self.progress);
        let outcome = match moved {
            Ok(moved) if moved < bytes => Err(format!(
                "{} ends after {moved} of {bytes} bytes of its array",
                local_name(&self.arguments.source)
            )
            .into()),
            Ok(_) => Ok(()),
            Err(Trouble::Local(error)) => Err(cannot_read(&self.arguments.source, &error)),
            Err(Trouble::Stored(error)) => Err(refused(error)),
        };
        self.closed(path, &file, outcome)
    }

    /// Half an array under a good name would be taken for a whole one.
    fn closed(
        &mut self,
        path: &str,
        file: &client::File,
        outcome: Result<(), Error>,
    ) -> Result<(), Error> {
        let outcome = outcome.and_then(|()| file.close().map_err(refused));
        match &outcome {
            Ok(()) => self.files += 1,
            Err(_) => {
                let _ = file.close();
                let _ = self.client.unlink(path);
            }
        }
        outcome
    }

    fn zarr(mut self, grid: &Grid) -> Result<(), Error> {
        let path = &self.arguments.path;
        let (file, array) = self.created(path, &grid.head)?;
        self.progress.set_total(Some(array.bytes()));
        let outcome = self.chunks(grid, &file, &array);
        self.closed(path, &file, outcome)?;
        let attributes = grid.attributes.as_object();
        let values: Vec<(String, Vec<u8>)> = attributes
            .into_iter()
            .flatten()
            .filter(|(name, _)| is_plain_name(name))
            .map(|(name, value)| (name.clone(), value.to_string().into_bytes()))
            .collect();
        if !values.is_empty() {
            self.client
                .change_values(path, &values, &[])
                .map_err(refused)?;
        }
        self.end()
    }

    fn chunks(&mut self, grid: &Grid, file: &client::File, array: &ArrayType) -> Result<(), Error> {
        if array.bytes() == 0 {
            return Ok(());
        }
        let entry = grid.head.entries.element.size() as usize;
        let len = grid.chunk_bytes()?;
        for at in grid.all() {
            let region = grid.region(&at);
            let from = grid.file(&self.arguments.source, &at);
            let mut chunk =
                read_chunk(&from, len)?.unwrap_or_else(|| grid.fill.repeat(len / entry));
            let part_len = region.iter().map(|&(_, n)| n as usize).product::<usize>() * entry;
            let mut part = vec![0; part_len];
            let order = grid.head.order;
            regions::copy(
                regions::Cut::Take,
                (&mut chunk, &grid.chunks),
                (&mut part, &region),
                order,
                entry,
            );
            regions::write(file, array, &region, &part)?;
            self.progress.add(part_len as u64);
        }
        Ok(())
    }

    fn end(self) -> Result<(), Error> {
        let (bytes, time) = self.progress.so_far();
        drop(self.progress);
        summarize(
            self.files,
            bytes,
            time,
            Display::unless(self.arguments.quiet),
        );
        Ok(())
    }
}

/// Whether the service takes a name of a value as it is.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '%']) && !name.starts_with("pario.") && name.is_ascii()
}

/// A chunk, if it is there.
fn read_chunk(path: &Path, len: usize) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) if bytes.len() == len => Ok(Some(bytes)),
        Ok(bytes) => Err(format!(
            "chunk {} has {} bytes, and {len} is a chunk",
            local_name(path),
            bytes.len()
        )
        .into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_read(path, &error)),
    }
}
