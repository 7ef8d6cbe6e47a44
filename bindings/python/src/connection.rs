//! A connection: names, attributes, named values, layouts, and opening files.
//!
//! Paths are of the service, with `/` between names. What a service tells about a file comes as tuples and dictionaries, in the
//! words of the commands' `--json`.

use client::{
    Client, ConnectOptions, Hints, Kind, Metadata, MoveOptions, OpenOptions, ServerId, ServiceUrl,
};
use embedded::Options as DirectoryOptions;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::{OrRaise, raised_by_directory, value};
use crate::file::File;
use crate::relayout::Relayout;
use crate::reports;

/// A connection to a service, a directory or the servers of a job.
#[pyclass(frozen, module = "pario._native")]
pub(crate) struct Connection {
    client: Mutex<Option<Client>>,
    #[pyo3(get)]
    url: String,
}

impl Connection {
    pub(crate) fn client(&self) -> PyResult<Client> {
        let client = self.client.lock().clone();
        client.ok_or_else(|| value("the connection is closed; connect again"))
    }
}

/// What `stat` tells.
fn told<'py>(py: Python<'py>, a: &Metadata) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    let is_file = a.kind == Kind::File;
    facts.set_item("kind", if is_file { "file" } else { "directory" })?;
    facts.set_item("id", a.file.0)?;
    facts.set_item("size", a.size)?;
    facts.set_item("mode", a.mode)?;
    facts.set_item("owner", a.owner)?;
    facts.set_item("group", a.group)?;
    facts.set_item("modified_ns", a.modified.0)?;
    facts.set_item("accessed_ns", a.accessed.0)?;
    facts.set_item("changed_ns", a.changed.0)?;
    facts.set_item("array", a.array.clone())?;
    facts.set_item("layout", a.layout.clone())?;
    Ok(facts)
}

#[pymethods]
impl Connection {
    /// Connects to a URL; to what `PARIO_URL` names without one, and to the directory `.pario` if that names nothing.
    #[new]
    #[pyo3(signature = (url = None, application = None))]
    fn new(py: Python<'_>, url: Option<&str>, application: Option<String>) -> PyResult<Self> {
        let url: ServiceUrl = match url {
            Some(text) => text.parse().map_err(|e| {
                value(format!(
                    "url: {e}; give dir:PATH, job:, unix:PATH or tcp:HOST:PORT"
                ))
            })?,
            None => embedded::url_here().map_err(raised_by_directory)?,
        };
        let mut options = ConnectOptions::from_env().or_raise()?;
        if options.application.is_none() {
            options.application = application;
        }
        let directory = DirectoryOptions::from_env();
        let client = py.detach(|| embedded::connect(&url, options, &directory));
        Ok(Connection {
            client: Mutex::new(Some(client.map_err(raised_by_directory)?)),
            url: url.to_string(),
        })
    }

    /// Ends it; files that are open keep theirs.
    fn close(&self, py: Python<'_>) {
        let client = self.client.lock().take();
        py.detach(|| drop(client));
    }

    /// Opens a file, or creates it.
    #[pyo3(signature = (path, mode, *, array = None, layout = None, permissions = None, values = Vec::new(), hints = Vec::new()))]
    #[allow(clippy::too_many_arguments)] // they have names in Python
    fn open(
        &self,
        py: Python<'_>,
        path: &str,
        mode: &str,
        array: Option<String>,
        layout: Option<String>,
        permissions: Option<u32>,
        values: Vec<(String, Vec<u8>)>,
        hints: Vec<(String, String)>,
    ) -> PyResult<File> {
        let options = OpenOptions::new();
        let mut options = match mode {
            "r" => options.read(),
            "r+" => options.read().write(),
            "a" => options.read().write().create(),
            "x" => options.read().write().exclusive(),
            other => {
                return Err(value(format!(
                    "mode: '{other}' is unknown; give 'r', 'r+', 'a' or 'x'"
                )));
            }
        };
        if let Some(array) = array {
            options = options.array(array);
        }
        if let Some(layout) = layout {
            options = options.layout(layout);
        }
        if let Some(permissions) = permissions {
            options = options.mode(permissions);
        }
        for (name, value) in values {
            options = options.value(name, value);
        }
        let mut given = Hints::new();
        for (name, value) in &hints {
            given = given.with(name, value).or_raise()?;
        }
        let options = options.hints(given);
        let client = self.client()?;
        py.detach(|| File::open(&client, path, options)).or_raise()
    }

    fn stat<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyDict>> {
        let client = self.client()?;
        let found = py.detach(|| client.stat(path)).or_raise()?;
        told(py, &found)
    }

    /// Names in a directory with what `stat` tells of each.
    fn list<'py>(
        &self,
        py: Python<'py>,
        path: &str,
    ) -> PyResult<Vec<(String, Bound<'py, PyDict>)>> {
        let client = self.client()?;
        let entries = py
            .detach(|| {
                let listing = client.list_with_attributes(path)?;
                listing.collect::<client::Result<Vec<_>>>()
            })
            .or_raise()?;
        let mut all = Vec::with_capacity(entries.len());
        for entry in entries {
            if let Some(attributes) = &entry.attributes {
                all.push((entry.name.clone(), told(py, attributes)?));
            }
        }
        Ok(all)
    }

    /// Makes a directory in one that is there.
    fn make_directory(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        let client = self.client()?;
        py.detach(|| client.mkdir(path, None)).or_raise()
    }

    /// Makes a directory and those above it; one that exists is fine.
    fn make_directories(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        let client = self.client()?;
        py.detach(|| client.mkdir_all(path, None)).or_raise()
    }

    fn remove_file(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        let client = self.client()?;
        py.detach(|| client.unlink(path)).or_raise()
    }

    fn remove_directory(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        let client = self.client()?;
        py.detach(|| client.rmdir(path)).or_raise()
    }

    fn rename(&self, py: Python<'_>, from: &str, to: &str) -> PyResult<()> {
        let client = self.client()?;
        py.detach(|| client.rename(from, to)).or_raise()
    }

    /// Named values of a file.
    fn values<'py>(
        &self,
        py: Python<'py>,
        path: &str,
    ) -> PyResult<Vec<(String, Bound<'py, PyBytes>)>> {
        let client = self.client()?;
        let values = py.detach(|| client.values(path)).or_raise()?;
        let told = |(name, value): (String, Vec<u8>)| (name, PyBytes::new(py, &value));
        Ok(values.into_iter().map(told).collect())
    }

    fn change_values(
        &self,
        py: Python<'_>,
        path: &str,
        put: Vec<(String, Vec<u8>)>,
        remove: Vec<String>,
    ) -> PyResult<()> {
        let client = self.client()?;
        py.detach(|| client.change_values(path, &put, &remove))
            .or_raise()
    }

    /// Gives an array another extent, if it is still `from`: whether it was changed, and what it is.
    fn change_array(
        &self,
        py: Python<'_>,
        path: &str,
        from: &str,
        to: &str,
    ) -> PyResult<(bool, String)> {
        let client = self.client()?;
        let is = py
            .detach(|| client.change_array(path, from, to))
            .or_raise()?;
        Ok((is.is_changed, is.array))
    }

    fn layout<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyDict>> {
        let client = self.client()?;
        let found = py.detach(|| client.layout(path)).or_raise()?;
        reports::layout(py, &found)
    }

    fn profile<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyDict>> {
        let client = self.client()?;
        let found = py.detach(|| client.profile(path)).or_raise()?;
        reports::profile(py, &found)
    }

    #[pyo3(signature = (path, budget = None))]
    fn advise<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        budget: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let client = self.client()?;
        let budget = budget
            .map(std::time::Duration::try_from_secs_f64)
            .transpose()
            .map_err(|e| value(format!("budget: {e}")))?;
        let advice = py.detach(|| client.advise(path, budget)).or_raise()?;
        reports::advice(py, &advice)
    }

    /// Where the bytes of a region of an array lie.
    fn explain<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        array: &str,
        axes: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let client = self.client()?;
        let view = crate::file::region_of(array, axes)?.view()?;
        let end = crate::region::array_of(array)?.bytes();
        let found = py.detach(|| client.layout(path)).or_raise()?;
        reports::explained(py, &found, &view, end)
    }

    /// Begins to move a file into another layout.
    #[pyo3(signature = (path, layout, limit = 0))]
    fn relayout(&self, py: Python<'_>, path: &str, layout: &str, limit: u64) -> PyResult<Relayout> {
        let client = self.client()?;
        let options = MoveOptions {
            limit_bytes: limit,
            ..MoveOptions::default()
        };
        let begun = py.detach(|| client.relayout_with(path, layout, &options));
        Ok(Relayout::of(begun.or_raise()?))
    }

    /// Numbers and addresses of the I/O servers, and whether each is alive.
    fn servers(&self, py: Python<'_>) -> PyResult<Vec<(u64, String, bool)>> {
        let client = self.client()?;
        let members = py.detach(|| client.members()).or_raise()?;
        let one = |m: client::Member| {
            let ServerId(number) = m.server;
            (number, m.address, m.state == client::MemberState::Alive)
        };
        Ok(members.into_iter().map(one).collect())
    }

    /// Accesses that went directly to memory of servers of this host, and messages that were sent.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let client = self.client()?;
        let direct = client.direct_statistics();
        let (messages, messages_of_bytes) = client.messages_sent();
        let facts = PyDict::new(py);
        facts.set_item("messages", messages)?;
        facts.set_item("messages_of_bytes", messages_of_bytes)?;
        facts.set_item("direct_reads", direct.reads)?;
        facts.set_item("direct_writes", direct.writes)?;
        Ok(facts)
    }
}
