//! `pario restart`: starts the processes of a service anew, one after the other, while programs use it.
//!
//! ```text
//!  server 0: told to end -> answers what was asked -> ends -> started by the supervisor -> alive again
//!  server 1: ...
//!  the metadata manager, last
//! ```
//!
//! Invariants
//! - One process at a time: the next one is told to end when all servers that took part before take part again.
//! - A server in memory leaves its memory with its keeper, and its next process has it.
//! - What does not come back stops the restart, and the others are left as they are.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use client::{Client, MemberState, ServerId};
use job::Process;
use rustix::process::Signal;
use serde_json::json;
use serving::{AUDIT_FILE, AuditEntry, AuditLog};
use wire::url::Endpoint;

use super::output::{self, note};
use super::{Error, connection};
use crate::service::contact;
use crate::service::state::State;
use crate::service::target::Target;

/// Arguments of `pario restart`.
#[derive(Args)]
#[command(after_help = "\
For a service of `pario up` on this host: each I/O server is told to end, which it does when what was asked of it is answered, and
is started again by the supervisor, from the program as it is on disk now; then the metadata manager. Programs that
use the service notice a pause. Servers in memory keep what they have. The supervisor itself goes on; it and the
command line of the servers change with `pario down` and `pario up` only.

Servers that were started by hand or by systemd are restarted one after the other in the same order, see docs/operations.md.

Examples:
  pario restart
  pario restart --dir /data/pario --servers-only
  pario restart --json | jq '.processes[].seconds'")]
pub(crate) struct Arguments {
    /// The directory of the service [default: what PARIO_URL names, else .pario]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Leave the metadata manager alone
    #[arg(long)]
    servers_only: bool,

    /// Seconds that one process may take to end and to serve again
    #[arg(long, value_name = "N", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Between two looks at a process that comes back.
const LOOK: Duration = Duration::from_millis(50);

/// Which process of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seat {
    Manager,
    Server(usize),
}

impl Seat {
    fn name(self) -> String {
        match self {
            Seat::Manager => "the metadata manager".into(),
            Seat::Server(index) => format!("I/O server {index}"),
        }
    }

    fn process(self, state: &State) -> Option<Process> {
        match self {
            Seat::Manager => state.meta,
            Seat::Server(index) => state.servers.get(index).copied().flatten(),
        }
    }

    /// The signal after which a process that is watched ends in order and leaves its memory with its keeper.
    fn signal(self) -> Signal {
        match self {
            Seat::Manager => Signal::TERM,
            Seat::Server(_) => Signal::HUP,
        }
    }
}

/// Restarts a service.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let target = Target::find(arguments.dir.as_deref())?;
    let state = match &target {
        Target::Service(_, Some(state)) => Some((**state).clone()),
        Target::Service(..) => State::told_by(&contact::connect(&target)?),
        Target::Directory(dir) => {
            let text = format!(
                "no service runs in {}; start one with `pario up`",
                dir.display()
            );
            return Err(text.into());
        }
    };
    let Some(state) = state.filter(State::is_running) else {
        return Err("this is for services that `pario up` has started on this host; restart other servers one after the \
                    other, I/O servers first, where they were started"
            .into());
    };
    put_on_record(arguments, &state);
    let servers = (0..state.servers.len()).map(Seat::Server);
    let manager = (!arguments.servers_only).then_some(Seat::Manager);
    let patience = Duration::from_secs(arguments.patience);
    let mut restarted = Vec::new();
    for seat in servers.chain(manager) {
        let begun = Instant::now();
        let (before, after) = restart(&target, seat, patience)?;
        let seconds = begun.elapsed().as_secs_f64();
        if !arguments.json {
            note(&format!(
                "{} serves again after {seconds:.1} s",
                seat.name()
            ));
        }
        restarted.push(json!({
            "process": seat.name(), "before": before.pid, "after": after.pid, "seconds": seconds,
        }));
    }
    if arguments.json {
        return output::print(&format!("{}\n", json!({ "processes": restarted })));
    }
    output::print(&format!(
        "restarted: {}\n",
        output::counted(restarted.len() as u64, "process", "processes")
    ))
}

/// Notes it where the servers note what administrators do.
fn put_on_record(arguments: &Arguments, state: &State) {
    let beside = match &state.url {
        Endpoint::Unix(path) => path.parent(),
        Endpoint::Tcp { .. } => None,
    };
    if let Some(dir) = arguments.dir.as_deref().or(beside) {
        AuditLog::at(dir.join(AUDIT_FILE)).note(&AuditEntry {
            by: "command",
            action: "restart",
            user: rustix::process::geteuid().as_raw(),
            client: None,
            arguments: json!({ "servers_only": arguments.servers_only }),
            refusal: None,
        });
    }
}

/// Servers that take part, with the start of each.
fn alive(client: &Client) -> Result<BTreeMap<ServerId, u64>, Error> {
    let members = client.members().map_err(connection::refused)?;
    let alive = members.iter().filter(|m| m.state == MemberState::Alive);
    Ok(alive.map(|m| (m.server, m.incarnation)).collect())
}

/// Has one process end and waits until its next one serves; the two.
fn restart(target: &Target, seat: Seat, patience: Duration) -> Result<(Process, Process), Error> {
    let deadline = Instant::now() + patience;
    let client = contact::connect(target)?;
    let taking_part = alive(&client)?;
    let state = State::told_by(&client);
    let Some(before) = state.as_ref().and_then(|state| seat.process(state)) else {
        let text = format!(
            "{} does not run at the moment; `pario status` says why",
            seat.name()
        );
        return Err(text.into());
    };
    // The manager ends all connections; another one is made then.
    drop(client);
    if !before.signal(seat.signal()) {
        let text = format!(
            "{} (process {}) cannot be told to end; run this as the user who runs the service",
            seat.name(),
            before.pid
        );
        return Err(text.into());
    }
    if !before.wait_for_end(patience) {
        let text = format!(
            "{} (process {}) has not ended after {} s; the log of the service says what it does",
            seat.name(),
            before.pid,
            patience.as_secs()
        );
        return Err(text.into());
    }
    loop {
        if let Some(after) = came_back(target, seat, before, &taking_part) {
            return Ok((before, after));
        }
        if Instant::now() > deadline {
            let text = format!(
                "{} does not serve again after {} s; `pario status` and the log of the service say why, and the \
                 processes behind it were left alone",
                seat.name(),
                patience.as_secs()
            );
            return Err(text.into());
        }
        std::thread::park_timeout(LOOK);
    }
}

/// The next process of a seat, if it serves and all servers take part that did.
fn came_back(
    target: &Target,
    seat: Seat,
    before: Process,
    taking_part: &BTreeMap<ServerId, u64>,
) -> Option<Process> {
    let client = contact::connect(target).ok()?;
    let state = State::told_by(&client)?;
    let after = seat.process(&state).filter(|after| *after != before)?;
    let now = alive(&client).ok()?;
    let is_there = |server: &ServerId| now.contains_key(server);
    let is_later =
        |(server, start): (&ServerId, &u64)| taking_part.get(server).is_some_and(|b| b < start);
    let has_joined = match seat {
        Seat::Manager => true,
        Seat::Server(_) => now.iter().any(is_later),
    };
    (taking_part.keys().all(is_there) && has_joined).then_some(after)
}
