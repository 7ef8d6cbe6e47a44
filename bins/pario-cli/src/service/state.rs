//! `DIR/service.json`: which service runs in a directory. Written whole by its supervisor, read by
//! `up`, `down`, `status` and `doctor`.
//!
//! The file is a note, not a lock: it may outlive a supervisor that was killed, so readers ask
//! whether the process it names still runs.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use wire::url::Endpoint;

use crate::commands::Error;
use job::Process;

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
    /// Servers that have died and do not serve yet.
    pub(crate) troubles: Vec<Trouble>,
    /// Whether the supervisor is ending it.
    pub(crate) is_ending: bool,
}

/// A server that has died and does not serve yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// Which, in words.
    pub(crate) who: String,
    /// How often it died without serving for long in between.
    pub(crate) deaths: u64,
    /// How it ended last, and why as far as it said so.
    pub(crate) why: String,
    /// Seconds since 1970 at its next start; nothing while it is starting.
    pub(crate) next_start: Option<u64>,
}

impl Trouble {
    /// What happened, in one line.
    pub(crate) fn what(&self) -> String {
        let times = match self.deaths {
            1 => String::new(),
            n => format!(", {n} times"),
        };
        format!("{} {}{times}", self.who, self.why)
    }

    /// When it is tried again, in words.
    pub(crate) fn next(&self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |d| d.as_secs());
        match self.next_start.map(|at| at.saturating_sub(now)) {
            None => "started again now".into(),
            Some(0) => "started again in a moment".into(),
            Some(seconds) => format!("started again in {seconds} s"),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "who": self.who,
            "deaths": self.deaths,
            "why": self.why,
            "next_start": self.next_start,
        })
    }

    fn from_json(value: &Value) -> Option<Trouble> {
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        Some(Trouble {
            who: text("who")?,
            deaths: value.get("deaths")?.as_u64()?,
            why: text("why")?,
            next_start: value.get("next_start").and_then(Value::as_u64),
        })
    }
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

    /// The service that a metadata manager takes part in, by what its supervisor has written down. None for
    /// servers that were started one by one.
    pub(crate) fn told_by(client: &client::Client) -> Option<State> {
        let text = client.supervisor().ok()??;
        State::from_json(&serde_json::from_str(&text).ok()?)
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
        let process = |p: &Option<Process>| p.map_or(Value::Null, process_to_json);
        json!({
            "version": VERSION,
            "url": self.url.to_string(),
            "host": self.host,
            "host_name": self.host_name,
            "started": self.started,
            "store": self.store,
            "secret": self.secret.as_ref().map(|p| p.display().to_string()),
            "supervisor": process_to_json(self.supervisor),
            "meta": process(&self.meta),
            "servers": self.servers.iter().map(process).collect::<Vec<_>>(),
            "troubles": self.troubles.iter().map(Trouble::to_json).collect::<Vec<_>>(),
            "is_ending": self.is_ending,
        })
    }

    pub(crate) fn from_json(value: &Value) -> Option<State> {
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        if value.get("version")?.as_u64()? != VERSION {
            return None;
        }
        let servers = value.get("servers")?.as_array()?;
        // Absent in what earlier programs wrote.
        let troubles = value.get("troubles").and_then(Value::as_array);
        let is_ending = value.get("is_ending").and_then(Value::as_bool);
        Some(State {
            url: text("url")?.parse().ok()?,
            host: text("host")?,
            host_name: text("host_name")?,
            started: value.get("started")?.as_u64()?,
            store: text("store")?,
            secret: text("secret").map(PathBuf::from),
            supervisor: process_from_json(value.get("supervisor")?)?,
            meta: process_from_json(value.get("meta")?),
            servers: servers.iter().map(process_from_json).collect(),
            troubles: troubles
                .into_iter()
                .flatten()
                .filter_map(Trouble::from_json)
                .collect(),
            is_ending: is_ending.unwrap_or(false),
        })
    }
}

fn process_to_json(process: Process) -> Value {
    json!({ "pid": process.pid, "started_ticks": process.started })
}

fn process_from_json(value: &Value) -> Option<Process> {
    Some(Process {
        pid: u32::try_from(value.get("pid")?.as_u64()?).ok()?,
        started: value.get("started_ticks")?.as_u64()?,
    })
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
            troubles: vec![Trouble {
                who: "I/O server process 1".into(),
                deaths: 7,
                why: "ended with code 1".into(),
                next_start: Some(17),
            }],
            is_ending: false,
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
