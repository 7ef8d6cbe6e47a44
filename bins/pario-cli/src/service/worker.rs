//! One server process as its supervisor sees it: started, listening, ended.
//!
//! A worker says in one line of JSON on its standard output that it listens, why it cannot, or that a message
//! has asked it to end;
//! everything else goes to standard error, which it shares with the supervisor. It ends by itself
//! when the supervisor dies (the kernel sends it SIGTERM), so a service never outlives its lock.
//!
//! Workers have a process group each: an interrupt from the terminal is meant for the supervisor,
//! which ends them in order.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};
use wire::url::Endpoint;

use crate::commands::Error;
use console::site::SUPERVISED;
use job::Process;

/// What a process of the service does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The metadata manager.
    Meta,
    /// An I/O server, counted from 0 in the order of their directories.
    Io(usize),
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Meta => f.write_str("the metadata manager"),
            Role::Io(index) => write!(f, "I/O server process {index}"),
        }
    }
}

/// What the threads around a supervisor tell it.
#[derive(Debug)]
pub(crate) enum Event {
    /// It was told to end.
    Signal(&'static str),
    /// A worker listens.
    Listening(Role, Endpoint),
    /// A message has asked a worker to end.
    Asked(Role),
    /// A worker cannot serve, and why.
    Failed(Role, String),
    /// A worker has ended.
    Ended(Role, Option<ExitStatus>),
}

/// The line of a worker that listens.
pub(crate) fn listening_line(url: &Endpoint) -> String {
    json!({ "listening": url.to_string(), "pid": std::process::id() }).to_string()
}

/// The line of a worker that a message has asked to end.
pub(crate) fn asked_line() -> String {
    json!({ "asked_to_end": true }).to_string()
}

/// The line of a worker or supervisor that cannot start.
pub(crate) fn failure_line(error: &str) -> String {
    json!({ "error": error }).to_string()
}

/// A running worker.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) process: Process,
    handle: OwnedFd,
}

impl Worker {
    /// Starts a process, whose news come as events. The calling thread must live as long as the
    /// worker is to.
    pub(crate) fn start(
        role: Role,
        mut command: Command,
        events: Sender<Event>,
    ) -> Result<Worker, Error> {
        let mut child = command
            .arg(SUPERVISED)
            .arg(std::process::id().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|e| format!("cannot start {role}: {e}"))?;
        let give_up = |child: &mut Child, why: String| -> Error {
            let _ = child.kill();
            let _ = child.wait();
            format!("cannot watch {role}: {why}").into()
        };
        // Nobody has waited for it yet, so its number is its own.
        let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let handle = number.ok_or(rustix::io::Errno::SRCH);
        let handle = match handle.and_then(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            Ok(handle) => handle,
            Err(e) => return Err(give_up(&mut child, e.to_string())),
        };
        let process = Process::with_number(child.id());
        let Some(stdout) = child.stdout.take() else {
            return Err(give_up(&mut child, "no pipe".into()));
        };
        let id = child.id();
        let watcher = thread::Builder::new()
            .name(format!("watch {id}"))
            .spawn(move || watch(role, child, stdout, &events));
        if let Err(e) = watcher {
            let _ = pidfd_send_signal(&handle, Signal::KILL);
            return Err(format!("cannot watch {role}: {e}").into());
        }
        Ok(Worker {
            // One that ended at once has no more to be known by than its number.
            process: process.unwrap_or(Process::ended(id)),
            handle,
        })
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        // One that is gone need not be told.
        let _ = pidfd_send_signal(&self.handle, Signal::TERM);
    }

    /// Ends it.
    pub(crate) fn kill(&self) {
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }
}

fn watch(role: Role, mut child: Child, stdout: ChildStdout, events: &Sender<Event>) {
    // Longer lines are not written by workers.
    let mut lines = BufReader::new(stdout.take(1 << 20)).lines();
    while let Some(Ok(line)) = lines.next() {
        let Ok(said) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let text = |name: &str| said.get(name).and_then(Value::as_str).map(str::to_owned);
        let was_asked = said.get("asked_to_end").and_then(Value::as_bool);
        let event = match (text("listening"), text("error")) {
            _ if was_asked == Some(true) => Event::Asked(role),
            (Some(url), _) => match url.parse() {
                Ok(url) => Event::Listening(role, url),
                Err(e) => Event::Failed(role, format!("{role} listens at no address: {e}")),
            },
            (None, Some(error)) => Event::Failed(role, error),
            (None, None) => continue,
        };
        // Nobody listens any more when the supervisor is about to end.
        let _ = events.send(event);
    }
    let _ = events.send(Event::Ended(role, child.wait().ok()));
}

/// How a process ended, in words.
pub(crate) fn ending(status: Option<ExitStatus>) -> String {
    match status.map(|s| (s.code(), s.signal())) {
        Some((Some(code), _)) => format!("ended with code {code}"),
        Some((None, Some(signal))) => {
            let name = nix::sys::signal::Signal::try_from(signal);
            format!("was killed by {}", name.map_or("a signal", |s| s.as_str()))
        }
        _ => "ended".into(),
    }
}

/// The signal that a worker gets when its supervisor dies. It comes with the thread that started the worker, when the rest of the
/// process may still be there; so it is another one than that of an orderly end.
pub(crate) const DEATH_OF_SUPERVISOR: &str = "SIGHUP";

/// Ties this process to the supervisor that started it: when that dies, this one is asked to end.
/// False if it is dead already.
pub(crate) fn follow(supervisor: u32) -> bool {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::HUP));
    is_child_of(supervisor)
}

/// Whether the process that started this one is that supervisor, and lives.
pub(crate) fn is_child_of(supervisor: u32) -> bool {
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    parent == i32::try_from(supervisor).ok()
}
