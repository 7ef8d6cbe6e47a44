//! One server process: `pario serve ...`, its log, its end.
//!
//! It is killed when dropped. What it says goes to a log file, which a failing test prints.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};

use client::Endpoint;
use rustix::process::{Pid, Signal, kill_process};

use crate::process::{Stopped, stop};
use crate::waiting::{LIMIT, until};

/// A server of a service.
#[derive(Debug)]
pub struct Server {
    name: String,
    log: PathBuf,
    child: Option<Child>,
    endpoint: Option<Endpoint>,
}

impl Server {
    /// One that is not started yet.
    pub fn new(name: impl Into<String>, log: PathBuf) -> Server {
        Server {
            name: name.into(),
            log,
            child: None,
            endpoint: None,
        }
    }

    /// Starts it, and waits until it says that it listens.
    #[track_caller]
    pub fn start(&mut self, command: &mut Command) {
        if let Err(why) = self.try_start(command) {
            panic!("{}: {why}\n{}", self.name, self.log());
        }
    }

    /// Starts a server that may refuse to start.
    pub fn try_start(&mut self, command: &mut Command) -> Result<(), String> {
        assert!(!self.is_running(), "{} runs already", self.name);
        let mut log = File::options()
            .append(true)
            .create(true)
            .open(&self.log)
            .map_err(|e| format!("{}: {e}", self.log.display()))?;
        let errors = log.try_clone().map_err(|e| e.to_string())?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(|e| format!("cannot be started: {e}"))?;
        let output = child.stdout.take().expect("piped");
        let (said, hear) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = writeln!(log, "{line}");
                let _ = said.send(line);
            }
        });
        self.child = Some(child);
        loop {
            let line = hear.recv_timeout(LIMIT).map_err(|e| {
                let how = match e {
                    RecvTimeoutError::Disconnected => self.wait().map(|s| s.to_string()),
                    RecvTimeoutError::Timeout => None,
                };
                let how = how.unwrap_or_else(|| "it says nothing".into());
                format!("does not listen ({how})")
            })?;
            if let Some(url) = line.strip_prefix("listening on ") {
                let endpoint = url.parse().map_err(|e| format!("listens on {url}: {e}"))?;
                self.endpoint = Some(endpoint);
                return Ok(());
            }
        }
    }

    /// What it is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it listens, or listened last.
    pub fn endpoint(&self) -> &Endpoint {
        self.last_endpoint().expect("it was started")
    }

    /// Where it listens; nothing before its first start.
    pub fn last_endpoint(&self) -> Option<&Endpoint> {
        self.endpoint.as_ref()
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Whether it runs.
    pub fn is_running(&mut self) -> bool {
        match &mut self.child {
            Some(child) => matches!(child.try_wait(), Ok(None)),
            None => false,
        }
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// SIGTERM, and waits for its end, which has to be a clean one.
    #[track_caller]
    pub fn end(&mut self) {
        self.signal(Signal::TERM);
        let status = self.wait();
        let is_clean = status.is_some_and(|s| s.success());
        assert!(is_clean, "{} ended: {status:?}\n{}", self.name, self.log());
    }

    /// Sends a signal, such as STOP and CONT.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid() as i32).expect("a process number");
        kill_process(pid, signal).unwrap_or_else(|e| panic!("{}: {signal:?}: {e}", self.name));
    }

    /// SIGSTOP: from now on it answers nobody, until what is returned is dropped.
    #[track_caller]
    pub fn pause(&self) -> Stopped {
        stop(self.pid())
    }

    /// Waits for its end; how it ended. Nothing if it does not.
    pub fn wait(&mut self) -> Option<ExitStatus> {
        let child = self.child.as_mut()?;
        let end = std::time::Instant::now() + LIMIT / 2;
        let mut status = None;
        until("the end of a server", || {
            status = child.try_wait().ok().flatten();
            status.is_some() || std::time::Instant::now() > end
        });
        if status.is_some() {
            self.child = None;
        }
        status
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        format!("--- {} says:\n{text}", self.name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
