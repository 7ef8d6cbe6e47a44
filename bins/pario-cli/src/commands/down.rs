//! `pario down`: ends the service that `--dir` or `PARIO_URL` names, and returns when its processes are
//! gone. Never creates anything.
//!
//! A service that this host's `pario up` has started is ended through its supervisor; any other is
//! asked through its metadata manager, which asks the I/O servers. Who gets there by URL is told by the metadata
//! manager which supervisor there is, and waits for that too if it is of this host: the directory is free then. One of
//! another host cannot be waited for, and that is said.
//!
//! Where the supervisor was killed, keepers may wait for the next start of its servers: they are ended.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use wire::url::Endpoint;

use super::output::counted;
use super::{Error, output};
use crate::service::contact;
use crate::service::state::State;
use crate::service::supervisor::end_keepers;
use crate::service::target::Target;

/// Arguments of `pario down`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  pario down
  pario down --dir /data/pario
  PARIO_URL=tcp:node1:4711 pario down")]
pub(crate) struct Arguments {
    /// The directory of the service [default: what PARIO_URL names, else .pario]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// A little more than the supervisor gives its servers.
pub(crate) const PATIENCE: Duration = Duration::from_secs(150);

/// Ends a service.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let target = Target::find(arguments.dir.as_deref())?;
    let (url, end) = match &target {
        Target::Directory(dir) => return end_what_is_left(dir, arguments),
        Target::Service(url, Some(state)) if state.supervisor.terminate() => {
            wait_for_processes(state)?;
            // Of a supervisor that was killed at this moment.
            let beside = match url {
                Endpoint::Unix(path) => path.parent(),
                Endpoint::Tcp { .. } => None,
            };
            if let Some(dir) = arguments.dir.as_deref().or(beside) {
                end_keepers(dir);
            }
            (url.clone(), End::Complete)
        }
        Target::Service(url, _) => (url.clone(), ask(&target, url)?),
    };
    if arguments.json {
        let host = match &end {
            End::Complete => None,
            End::SupervisorOn(host) => Some(host),
        };
        let stopped = json!({ "stopped": url.to_string(), "supervisor_ends_on": host });
        return output::print(&format!("{stopped}\n"));
    }
    output::print(&match end {
        End::Complete => format!("the service at {url} has ended\n"),
        End::SupervisorOn(host) => format!(
            "the servers of the service at {url} have ended; its supervisor on host {host} ends now, which cannot be \
             seen from here: look there with `pario status` before another service starts in its directory\n"
        ),
    })
}

/// Ends the keepers of a service whose supervisor was killed: they would wait for its next start.
fn end_what_is_left(dir: &std::path::Path, arguments: &Arguments) -> Result<(), Error> {
    if let Some(state) = State::read(dir).filter(State::is_here) {
        // Its servers end when they notice that it is gone.
        wait_for_processes(&state)?;
    }
    let ended = end_keepers(dir);
    if ended == 0 {
        return Err(none_there(dir));
    }
    let dir = dir.display();
    if arguments.json {
        let freed = json!({ "stopped": null, "keepers_ended": ended });
        return output::print(&format!("{freed}\n"));
    }
    output::print(&format!(
        "no service ran in {dir}; the memory that {} kept for its next start is free\n",
        counted(ended as u64, "keeper", "keepers")
    ))
}

/// How far the end of a service could be seen.
enum End {
    /// All its processes are gone.
    Complete,
    /// Its servers are gone; its supervisor, on this host, was not waited for.
    SupervisorOn(String),
}

fn none_there(dir: &std::path::Path) -> Error {
    match State::read(dir).filter(|state| !state.is_here()) {
        Some(state) => format!(
            "the service of {} runs on host {}; run `pario down` there, or with PARIO_URL={} if \
             that reaches it",
            dir.display(),
            state.host_name,
            state.url
        )
        .into(),
        None => format!(
            "no service runs in {}; name another directory with --dir, or the service in PARIO_URL",
            dir.display()
        )
        .into(),
    }
}

fn wait_for_processes(state: &State) -> Result<(), Error> {
    let deadline = Instant::now() + PATIENCE;
    let left: Vec<String> = state
        .processes()
        .into_iter()
        .filter(|p| !p.wait_for_end(deadline.saturating_duration_since(Instant::now())))
        .map(|p| p.pid.to_string())
        .collect();
    if left.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} of the service at {} did not end within {} s ({}); wait longer, or end them with `kill -9`",
        counted(left.len() as u64, "process", "processes"),
        state.url,
        PATIENCE.as_secs(),
        left.join(", ")
    )
    .into())
}

fn ask(target: &Target, url: &Endpoint) -> Result<End, Error> {
    let client = contact::connect(target)?;
    let state = State::told_by(&client);
    let members = client.members()?;
    match client.shutdown() {
        // It was there a moment ago: it has ended before its answer came. Whether it is gone is looked at below.
        Err(error) if error.status() == client::Status::Unreachable => {}
        asked => asked?,
    }
    drop(client);
    let alive = members
        .iter()
        .filter(|m| m.state == client::MemberState::Alive);
    let addresses = alive.filter_map(|m| m.address.parse::<Endpoint>().ok());
    let deadline = Instant::now() + PATIENCE;
    for endpoint in [url.clone()].into_iter().chain(addresses) {
        if !contact::wait_for_silence(&endpoint, deadline) {
            return Err(format!(
                "the server at {endpoint} still answers {} s after it was asked to end; look for \
                 it on its host",
                PATIENCE.as_secs()
            )
            .into());
        }
    }
    match state {
        Some(state) if state.is_here() => wait_for_processes(&state).map(|()| End::Complete),
        Some(state) => Ok(End::SupervisorOn(state.host_name)),
        None => Ok(End::Complete),
    }
}
