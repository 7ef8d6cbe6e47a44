//! A service in memory that lives as long as a value: for benchmarks and the demo, which need real
//! processes and leave nothing behind.
//!
//! Its files are in a temporary directory of its own. The processes end with the value, and also when
//! this process is killed: they follow it as workers follow their supervisor.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::process::Process;
use super::worker::SUPERVISED;
use crate::commands::Error;

/// How clients and servers are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Unix,
    Tcp,
}

impl Transport {
    /// As it stands in names of cases.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Transport::Unix => "unix",
            Transport::Tcp => "tcp",
        }
    }

    /// Where something listens that is called `name`.
    pub(crate) fn address(self, dir: &Path, name: &str) -> String {
        match self {
            Transport::Unix => format!("unix:{}", dir.join(name).display()),
            Transport::Tcp => "tcp:127.0.0.1:0".to_owned(),
        }
    }
}

/// A directory that is removed with the value.
#[derive(Debug)]
pub(crate) struct ScratchDir(pub(crate) PathBuf);

impl ScratchDir {
    /// A new one, for this user only.
    pub(crate) fn new() -> Result<ScratchDir, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pario-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        Ok(ScratchDir(path))
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // Nobody can do more about what cannot be removed.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How long a process may take to end before it is ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// A child process that has said where it listens, and ends with the value.
#[derive(Debug)]
pub(crate) struct Listening {
    child: Child,
    /// Where it listens.
    pub(crate) url: String,
}

impl Listening {
    /// Starts this program with other arguments; it says `{"listening": URL}` when it is ready.
    pub(crate) fn start(arguments: &[&str], log: Option<&Path>) -> Result<Listening, Error> {
        let program = std::env::current_exe()
            .map_err(|e| format!("cannot find the program that is running: {e}"))?;
        Listening::start_as(Command::new(program), arguments, log)
    }

    /// The same by a command that leads to this program, perhaps on another host.
    pub(crate) fn start_as(
        mut command: Command,
        arguments: &[&str],
        log: Option<&Path>,
    ) -> Result<Listening, Error> {
        let errors = match log {
            Some(path) => fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .map_err(|e| format!("cannot write {}: {e}", path.display()))?
                .into(),
            None => Stdio::inherit(),
        };
        let mut child = command
            .args(arguments)
            .env_remove("PARIO_SECRET")
            .env_remove("PARIO_URL")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(|e| format!("cannot start pario {}: {e}", arguments.join(" ")))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.as_mut() {
            // It says something or ends, within its own limits.
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        let started = Listening {
            child,
            url: said["listening"].as_str().unwrap_or("").to_owned(),
        };
        if started.url.is_empty() {
            let why = said["error"].as_str().unwrap_or("it said nothing");
            let what = arguments.join(" ");
            return Err(format!("`pario {what}` does not serve: {why}").into());
        }
        Ok(started)
    }
}

impl Listening {
    /// Its process number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(process) = Process::with_number(self.child.id()) {
            process.terminate();
            process.wait_for_end(PATIENCE);
        }
        // Does nothing to one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One metadata manager and I/O servers with memory stores.
#[derive(Debug)]
pub(crate) struct ShortLived {
    // Dropped in this order: the servers before the manager, the directory last.
    servers: Vec<Listening>,
    meta: Listening,
    _dir: ScratchDir,
}

impl ShortLived {
    /// Starts it; returns when all servers are members.
    pub(crate) fn start(
        transport: Transport,
        servers: usize,
        memory: &str,
    ) -> Result<ShortLived, Error> {
        let dir = ScratchDir::new()?;
        let log = dir.0.join("log");
        let this = std::process::id().to_string();
        let catalogue = dir.0.join("meta").display().to_string();
        let at = transport.address(&dir.0, "meta.sock");
        let arguments = [
            "serve", "meta", "--dir", &catalogue, "--listen", &at, SUPERVISED, &this,
        ];
        let meta = Listening::start(&arguments, Some(&log))?;
        let mut started = Vec::new();
        for index in 0..servers {
            let at = transport.address(&dir.0, &format!("io-{index}.sock"));
            let arguments = [
                "serve", "io", "--meta", &meta.url, "--listen", &at, "--memory", memory,
                SUPERVISED, &this,
            ];
            started.push(Listening::start(&arguments, Some(&log))?);
        }
        Ok(ShortLived {
            servers: started,
            meta,
            _dir: dir,
        })
    }

    /// The process numbers of the I/O servers.
    pub(crate) fn io_pids(&self) -> Vec<u32> {
        self.servers.iter().map(Listening::pid).collect()
    }

    /// Where clients connect.
    pub(crate) fn url(&self) -> &str {
        &self.meta.url
    }
}
