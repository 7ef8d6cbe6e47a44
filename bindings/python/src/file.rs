//! An open file: regions of it into buffers and back, and bytes.
//!
//! A view belongs to a handle. Bytes that are neighbours go through one handle that keeps the view of the whole file; every
//! other region takes a handle whose view it becomes, and leaves it there for the next access of the same region.
//!
//! Invariants
//! - A handle serves one access at a time while its view is that of a region.
//! - What nobody has written reads as zeros, also behind the end of the file.
//! - A long access asks for signals now and then, so that Ctrl-C ends it.

use std::sync::Arc;

use client::{Client, Error, File as Opened, OpenOptions, Result, SharedBytesMut, Status};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::buffer::{Entries, Purpose};
use crate::error::{OrRaise, raised, value};
use crate::region::{Indices, Region, array_of};
use crate::team::Team;

/// Bytes after which an access looks for signals.
const STEP_BYTES: u64 = 32 << 20;

/// Handles that are kept for the next region.
const MOST_IDLE: usize = 16;

/// A handle whose view is a region.
struct RegionHandle {
    file: Opened,
    region: Region,
}

struct Inner {
    client: Client,
    path: String,
    /// Its view is the whole file, always.
    whole: Opened,
    idle: Mutex<Vec<RegionHandle>>,
    /// Handles that wrote since the last sync, for they alone hear of losses.
    wrote: Mutex<Vec<Opened>>,
}

/// An open file.
#[pyclass(frozen, module = "pario._native")]
pub(crate) struct File(Arc<Inner>);

/// Which way an access goes, with its memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

impl Way {
    fn purpose(self) -> Purpose {
        match self {
            Way::Read => Purpose::Fill,
            Way::Write => Purpose::Take,
        }
    }
}

impl File {
    pub(crate) fn open(client: &Client, path: &str, options: OpenOptions) -> Result<File> {
        let whole = client.open(path, &options)?;
        Ok(File(Arc::new(Inner {
            client: client.clone(),
            path: path.into(),
            whole,
            idle: Mutex::default(),
            wrote: Mutex::default(),
        })))
    }
}

impl Inner {
    /// A handle whose view is the region.
    fn viewed(&self, region: &Region) -> PyResult<RegionHandle> {
        let found = {
            let mut idle = self.idle.lock();
            let same = idle.iter().rposition(|viewed| viewed.region == *region);
            match same {
                Some(at) => return Ok(idle.remove(at)),
                None => idle.pop(),
            }
        };
        let view = region.view()?;
        let file = match found {
            Some(viewed) => viewed.file,
            None => self.another().or_raise()?,
        };
        file.set_view(&view).or_raise()?;
        Ok(RegionHandle {
            file,
            region: region.clone(),
        })
    }

    fn another(&self) -> Result<Opened> {
        let options = OpenOptions::new();
        let options = match self.whole.rights() {
            rights if rights.allow(client::Rights::BOTH) => options.read().write(),
            rights if rights.allow(client::Rights::WRITE) => options.write(),
            _ => options.read(),
        };
        let options = options.hints(self.whole.hints());
        let file = self.client.open(&self.path, &options)?;
        if file.id() != self.whole.id() {
            return Err(Error::Refused {
                status: Status::NotFound,
                text: format!("{} is another file by now; open it again", self.path),
                server: None,
            });
        }
        Ok(file)
    }

    fn put_back(&self, viewed: RegionHandle) {
        let mut idle = self.idle.lock();
        if idle.len() == MOST_IDLE {
            idle.remove(0);
        }
        idle.push(viewed);
    }

    fn note_write(&self, file: &Opened) {
        let mut wrote = self.wrote.lock();
        if !wrote.iter().any(|known| known.handle() == file.handle()) {
            wrote.push(file.clone());
        }
    }

    /// One access, in steps, with zeros for what the file does not have.
    fn access(
        &self,
        py: Python<'_>,
        file: &Opened,
        offset: u64,
        entries: &mut Entries,
        way: Way,
    ) -> PyResult<()> {
        if way == Way::Write {
            self.note_write(file);
        }
        let len = entries.len();
        let mut done = 0;
        while done < len {
            let step = (len - done).min(STEP_BYTES);
            let moved = py.detach(|| step_of(file, offset + done, entries, (done, step), way));
            if moved.or_raise()? < step && way == Way::Write {
                return Err(value(
                    "the file took less than it was given; write it again",
                ));
            }
            done += step;
            if done < len {
                py.check_signals()?;
            }
        }
        Ok(())
    }
}

/// Bytes `from..from + len` of the entries at an offset of the view; how many were moved.
fn step_of(
    file: &Opened,
    offset: u64,
    entries: &mut Entries,
    (from, len): (u64, u64),
    way: Way,
) -> Result<u64> {
    let (origin, places) = entries.places(from, len);
    let moved = match way {
        Way::Write => file.write_at_memory(offset, entries.source(), origin, &places)?,
        Way::Read => file.read_at_memory(offset, entries.target(), origin, &places)?,
    } as u64;
    if way == Way::Read && moved < len {
        fill_with_zeros(entries, from + moved, len - moved)?;
    }
    Ok(moved)
}

/// What a file does not have is zero.
fn fill_with_zeros(entries: &mut Entries, from: u64, len: u64) -> Result<()> {
    let zeros = [0; 64 << 10];
    let mut done = 0;
    while done < len {
        let step = (len - done).min(zeros.len() as u64);
        let (origin, places) = entries.places(from + done, step);
        places.unpack(&zeros[..step as usize], entries.target(), origin, 0)?;
        done += step;
    }
    Ok(())
}

fn axes_of(axes: &Bound<'_, PyAny>) -> PyResult<Vec<Indices>> {
    axes.try_iter()?.map(|axis| Indices::of(&axis?)).collect()
}

pub(crate) fn region_of(array: &str, axes: &Bound<'_, PyAny>) -> PyResult<Region> {
    Region::new(&array_of(array)?, axes_of(axes)?)
}

#[pymethods]
impl File {
    /// The array that the file holds, as text.
    #[getter]
    fn array(&self) -> Option<String> {
        self.0.whole.array().map(ToString::to_string)
    }

    #[getter]
    fn path(&self) -> &str {
        &self.0.path
    }

    #[getter]
    fn number(&self) -> u64 {
        self.0.whole.id().0
    }

    #[getter]
    fn is_new(&self) -> bool {
        self.0.whole.is_new()
    }

    #[getter]
    fn is_writable(&self) -> bool {
        self.0.whole.rights().allow(client::Rights::WRITE)
    }

    /// Reads a region of an array into a buffer of its shape.
    fn read_region(
        &self,
        py: Python<'_>,
        array: &str,
        axes: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.region(py, array, axes, out, Way::Read)
    }

    /// Writes a region of an array from a buffer of its shape.
    fn write_region(
        &self,
        py: Python<'_>,
        array: &str,
        axes: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.region(py, array, axes, values, Way::Write)
    }

    /// Reads the part of an array that is one element of a layout; with a team all members do, each its own.
    #[pyo3(signature = (array, layout, index, out, team = None))]
    fn read_part(
        &self,
        py: Python<'_>,
        array: &str,
        layout: &str,
        index: u64,
        out: &Bound<'_, PyAny>,
        team: Option<&Team>,
    ) -> PyResult<()> {
        let region = Region::of_layout(&array_of(array)?, layout, index)?;
        self.part(py, &region, out, team, Way::Read)
    }

    /// Writes the part of an array that is one element of a layout; with a team all members do, each its own.
    #[pyo3(signature = (array, layout, index, values, team = None))]
    fn write_part(
        &self,
        py: Python<'_>,
        array: &str,
        layout: &str,
        index: u64,
        values: &Bound<'_, PyAny>,
        team: Option<&Team>,
    ) -> PyResult<()> {
        let region = Region::of_layout(&array_of(array)?, layout, index)?;
        self.part(py, &region, values, team, Way::Write)
    }

    /// Reads bytes at an offset; fewer at the end of the file.
    fn read_bytes<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        len: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut read = Ok(0);
        let bytes = PyBytes::new_with(py, len, |bytes| {
            read = py.detach(|| self.0.whole.read_at(offset, bytes));
            Ok(())
        })?;
        match read.or_raise()? {
            n if n == len => Ok(bytes),
            n => Ok(PyBytes::new(py, &bytes.as_bytes()[..n])),
        }
    }

    /// Reads bytes at an offset into a buffer; how many there were.
    fn read_into(&self, py: Python<'_>, offset: u64, out: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut entries = bytes_of(out, Purpose::Fill)?;
        py.detach(|| {
            let target: SharedBytesMut<'_> = entries.target();
            self.0.whole.read_at_shared(offset, target)
        })
        .or_raise()
    }

    /// Writes bytes at an offset.
    fn write_bytes(
        &self,
        py: Python<'_>,
        offset: u64,
        bytes: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let mut entries = bytes_of(bytes, Purpose::Take)?;
        let len = entries.len() as usize;
        self.0
            .access(py, &self.0.whole, offset, &mut entries, Way::Write)?;
        Ok(len)
    }

    /// Appends bytes; where they begin.
    fn append(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<u64> {
        self.0.note_write(&self.0.whole);
        py.detach(|| self.0.whole.append(bytes)).or_raise()
    }

    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.0.whole.size()).or_raise()
    }

    fn resize(&self, py: Python<'_>, bytes: u64) -> PyResult<()> {
        py.detach(|| self.0.whole.resize(bytes)).or_raise()
    }

    /// Makes what was written durable, where the stores can; whether they can.
    fn sync(&self, py: Python<'_>) -> PyResult<bool> {
        let wrote = std::mem::take(&mut *self.0.wrote.lock());
        let all: Vec<Opened> = match wrote.is_empty() {
            true => vec![self.0.whole.clone()],
            false => wrote,
        };
        let synced = py.detach(|| {
            let synced = all.iter().map(Opened::sync);
            synced.collect::<Vec<_>>()
        });
        let mut is_durable = true;
        for one in synced {
            is_durable &= one.or_raise()?.is_durable;
        }
        Ok(is_durable)
    }

    /// Closes all handles; the first error is told after all were tried.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let idle = std::mem::take(&mut *self.0.idle.lock());
        let wrote = std::mem::take(&mut *self.0.wrote.lock());
        let files = idle.into_iter().map(|viewed| viewed.file);
        let files: Vec<Opened> = files.chain(wrote).chain([self.0.whole.clone()]).collect();
        let closed = py.detach(|| {
            let closed = files.iter().map(Opened::close);
            closed.collect::<Vec<Result<()>>>()
        });
        let failed = closed
            .into_iter()
            .filter_map(Result::err)
            .find(|e| *e != Error::Closed);
        failed.map_or(Ok(()), |e| Err(raised(e)))
    }

    /// How the last access through the whole file went: bytes moved, and whether they were copied directly.
    fn last_access(&self) -> (u64, bool) {
        let last = self.0.whole.last_access();
        (last.moved, last.is_direct)
    }
}

impl File {
    fn part(
        &self,
        py: Python<'_>,
        region: &Region,
        buffer: &Bound<'_, PyAny>,
        team: Option<&Team>,
        way: Way,
    ) -> PyResult<()> {
        let (order, size) = (region.order(), region.entry_bytes());
        let mut entries = Entries::of(buffer, order, &region.shape(), size, way.purpose())?;
        let Some(team) = team else {
            return self.moved(py, region, &mut entries, way);
        };
        let view = match entries.len() {
            // A member without entries takes part all the same.
            0 => client::View::whole_file(),
            _ => region.view()?,
        };
        let team = team.team()?;
        let whole = &self.0;
        py.detach(|| -> Result<()> {
            let file = whole.another()?;
            file.set_view_together(&team, &view)?;
            let len = entries.len();
            let (origin, places) = entries.places(0, len);
            match way {
                Way::Write => {
                    file.write_at_all(&team, 0, entries.source(), origin, &places)?;
                    whole.note_write(&file);
                }
                Way::Read => {
                    let target = entries.target();
                    let moved = file.read_at_all(&team, 0, target, origin, &places)? as u64;
                    fill_with_zeros(&mut entries, moved, len - moved)?;
                }
            }
            Ok(())
        })
        .or_raise()
    }

    fn region(
        &self,
        py: Python<'_>,
        array: &str,
        axes: &Bound<'_, PyAny>,
        buffer: &Bound<'_, PyAny>,
        way: Way,
    ) -> PyResult<()> {
        let region = region_of(array, axes)?;
        let purpose = way.purpose();
        let (order, size) = (region.order(), region.entry_bytes());
        let mut entries = Entries::of(buffer, order, &region.shape(), size, purpose)?;
        self.moved(py, &region, &mut entries, way)
    }

    fn moved(
        &self,
        py: Python<'_>,
        region: &Region,
        entries: &mut Entries,
        way: Way,
    ) -> PyResult<()> {
        if entries.len() == 0 {
            return Ok(());
        }
        if let Some(at) = region.run() {
            return self.0.access(py, &self.0.whole, at, entries, way);
        }
        let viewed = py.detach(|| self.0.viewed(region))?;
        let done = self.0.access(py, &viewed.file, 0, entries, way);
        self.0.put_back(viewed);
        done
    }
}

/// A buffer as neighbouring bytes, whatever its entries are.
pub(crate) fn bytes_of(object: &Bound<'_, PyAny>, purpose: Purpose) -> PyResult<Entries> {
    let buffer = pyo3::buffer::PyUntypedBuffer::get(object)?;
    let shape: Vec<u64> = buffer.shape().iter().map(|&n| n as u64).collect();
    let size = buffer.item_size() as u64;
    if !buffer.is_c_contiguous() {
        return Err(value("the buffer has gaps; give one that is contiguous"));
    }
    Entries::of(object, layout::Order::C, &shape, size, purpose)
}
