//! `DIR/service.json`: which service runs in a directory. Written whole by its supervisor, read by
//! `up`, `down`, `status` and `doctor`.
//!
//! The file is a note, not a lock: it may outlive a supervisor that was killed, so readers ask
//! whether the process it names still runs.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wire::url::Endpoint;

use super::process::Process;
use crate::commands::Error;

const FILE: &str = "service.json";
const VERSION: u64 = 1;

/// A service of this host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    /// Where clients connect.
    pub(crate) url: Endpoint,
    /// Its host, as the kernel tells hosts apart.
    pub(crate) host: String,
    /// Its host, as people call it.
    pub(crate) host_name: String,
    /// Seconds since 1970 at its start.
    pub(crate) started: u64,
    /// `memory` or `disk`.
    pub(crate) store: String,
    /// The file with the secret, if it has one.
    pub(crate) secret: Option<PathBuf>,
    /// The process that watches all others.
    pub(crate) supervisor: Process,
    /// The metadata manager; nothing while it is being restarted.
    pub(crate) meta: Option<Process>,
    /// The I/O servers, in the order of their directories.
    pub(crate) servers: Vec<Option<Process>>,
}

impl State {
    /// Where it lies.
    pub(crate) fn path(dir: &Path) -> PathBuf {
        dir.join(FILE)
    }

    /// What lies in a directory, whether or not that service still runs.
    pub(crate) fn read(dir: &Path) -> Option<State> {
        let text = fs::read_to_string(State::path(dir)).ok()?;
        State::from_json(&serde_json::from_str(&text).ok()?)
    }

    /// The service that runs in a directory.
    pub(crate) fn running(dir: &Path) -> Option<State> {
        State::read(dir).filter(State::is_running)
    }

    /// Whether it is on this host, and its supervisor is there.
    pub(crate) fn is_running(&self) -> bool {
        self.is_here() && self.supervisor.is_running()
    }

    /// Whether its process numbers mean anything here.
    pub(crate) fn is_here(&self) -> bool {
        self.host == serving::this_process().host
    }

    /// All its processes, the supervisor last.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let servers = self.servers.iter().chain([&self.meta]).flatten().copied();
        servers.chain([self.supervisor]).collect()
    }

    /// Replaces what lies in the directory, whole or not at all.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), Error> {
        let (path, new) = (State::path(dir), dir.join("service.json.new"));
        let write = || {
            let mut file = fs::File::create(&new)?;
            writeln!(file, "{:#}", self.to_json())?;
            fs::rename(&new, &path)
        };
        write().map_err(|e: std::io::Error| format!("cannot write {}: {e}", path.display()).into())
    }

    /// Removes it; one that is not there need not be removed.
    pub(crate) fn remove(dir: &Path) {
        let _ = fs::remove_file(State::path(dir));
    }

    /// The shape of the file, and of `pario up --json`.
    pub(crate) fn to_json(&self) -> Value {
        let process = |p: &Option<Process>| p.map_or(Value::Null, Process::to_json);
        json!({
            "version": VERSION,
            "url": self.url.to_string(),
            "host": self.host,
            "host_name": self.host_name,
            "started": self.started,
            "store": self.store,
            "secret": self.secret.as_ref().map(|p| p.display().to_string()),
            "supervisor": self.supervisor.to_json(),
            "meta": process(&self.meta),
            "servers": self.servers.iter().map(process).collect::<Vec<_>>(),
        })
    }

    pub(crate) fn from_json(value: &Value) -> Option<State> {
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        if value.get("version")?.as_u64()? != VERSION {
            return None;
        }
        let servers = value.get("servers")?.as_array()?;
        Some(State {
            url: text("url")?.parse().ok()?,
            host: text("host")?,
            host_name: text("host_name")?,
            started: value.get("started")?.as_u64()?,
            store: text("store")?,
            secret: text("secret").map(PathBuf::from),
            supervisor: Process::from_json(value.get("supervisor")?)?,
            meta: Process::from_json(value.get("meta")?),
            servers: servers.iter().map(Process::from_json).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_read_as_written_and_nonsense_is_none() {
        let dir = std::env::temp_dir().join(format!("pario-state-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        assert_eq!(State::read(&dir), None);
        let state = State {
            url: "unix:/x/meta.sock".parse().expect("a URL"),
            host: serving::this_process().host,
            host_name: "node7".into(),
            started: 17,
            store: "memory".into(),
            secret: Some("/etc/secret".into()),
            supervisor: Process::this(),
            meta: None,
            servers: vec![Some(Process::this()), None],
        };
        state.write(&dir).expect("written");
        assert_eq!(State::running(&dir), Some(state.clone()));
        let elsewhere = State {
            host: "another".into(),
            ..state
        };
        elsewhere.write(&dir).expect("written");
        assert_eq!(State::running(&dir), None);
        for nonsense in ["", "{}", "[1]", r#"{"version": 2}"#] {
            fs::write(State::path(&dir), nonsense).expect("written");
            assert_eq!(State::read(&dir), None, "{nonsense}");
        }
        fs::remove_dir_all(dir).expect("removed");
    }
}
