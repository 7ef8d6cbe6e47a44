//! The process that starts a service's servers, restarts what dies and ends all in order.
//!
//! Invariants
//! - One supervisor per directory: it holds the directory's lock as long as it lives.
//! - A server that dies is started again for ever: at once the first time, then later and later, at most
//!   [`LONGEST_PAUSE`] apart. One that has served for [`FORGIVEN_AFTER`] begins anew. How often it died, why and
//!   when it is tried next stands in `service.json` and in the log.
//! - Only `pario down` ends a service. A server that says that it was asked to end by a message is not started again;
//!   one that a signal of another process has ended is.
//! - I/O servers end before the metadata manager: what they flush, they report.
//! - Workers are started from one thread only, because the kernel ties them to it (see `worker`).

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use layout::ByteSize;
use serde_json::json;
use serving::{AUDIT_FILE, AuditEntry, AuditLog};
use wire::url::Endpoint;

use super::state::{State, Trouble};
use super::worker::{Event, Role, Worker, ending};
use super::{addresses, log, signals};
use crate::commands::Error;
use crate::commands::keys::{KeyArguments, LeaseArguments, TrustArguments};
use crate::commands::limits::Limits;
use crate::commands::serve::Writes;
use crate::commands::up::slow_arguments;
use job::Process;

/// All servers have to be there within this time.
const START: Duration = Duration::from_secs(30);
/// I/O servers may take so long to flush.
const FLUSH: Duration = Duration::from_secs(120);
/// The metadata manager may take so long to end.
const FAREWELL: Duration = Duration::from_secs(20);
/// A signal that comes so soon after the first is the same wish: `timeout` and terminals tell the process and its group.
const ECHO: Duration = Duration::from_millis(500);
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What to start.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The directory of the service, absolute.
    pub(crate) dir: PathBuf,
    /// Where the metadata manager listens.
    pub(crate) listen: Endpoint,
    /// Whether bytes are kept on disk, or in memory only.
    pub(crate) on_disk: bool,
    /// I/O servers.
    pub(crate) servers: usize,
    /// Memory of each I/O server.
    pub(crate) memory: u64,
    /// When writes to a disk are answered, if not as usual.
    pub(crate) writes: Option<Writes>,
    /// Files with secrets.
    pub(crate) keys: KeyArguments,
    /// Who is believed beyond this host.
    pub(crate) trust: TrustArguments,
    /// When clients that nobody hears of are dead.
    pub(crate) lease: LeaseArguments,
    /// Limits of clients and users.
    pub(crate) limits: Limits,
    /// Where the metadata manager tells numbers; the I/O servers have the ports above.
    pub(crate) metrics: Option<SocketAddr>,
    /// From when on a request is slow and told in the log.
    pub(crate) slow: Option<Duration>,
}

impl Plan {
    /// Where a server tells numbers; nowhere if there are no ports above.
    fn metrics_of(&self, role: Role) -> Option<SocketAddr> {
        let mut address = self.metrics?;
        let above = match role {
            Role::Meta => 0,
            Role::Io(index) => u16::try_from(index + 1).ok()?,
        };
        address.set_port(address.port().checked_add(above)?);
        Some(address)
    }
}

/// Where a process is between its start and its end.
#[derive(Debug)]
enum Stage {
    /// Started, does not listen yet.
    Starting,
    /// Serves.
    Listening,
    /// Dead; to be started again then.
    Due(Instant),
    /// Ended for good.
    Over,
}

#[derive(Debug)]
struct Seat {
    role: Role,
    endpoint: Endpoint,
    worker: Option<Worker>,
    stage: Stage,
    since: Instant,
    deaths: u32,
    /// Whether it said that a message asked it to end.
    was_asked: bool,
    /// What it said about why it cannot serve.
    said: Option<String>,
    /// How it ended last.
    ending: String,
}

/// A service that runs under this process.
#[derive(Debug)]
pub(crate) struct Supervisor {
    plan: Plan,
    program: PathBuf,
    seats: Vec<Seat>,
    events: Receiver<Event>,
    sender: Sender<Event>,
    started: SystemTime,
    is_ending: bool,
    /// The signal that ends the service.
    heard: Option<&'static str>,
}

impl Supervisor {
    /// Starts everything and returns when all servers take part. What was started is ended again
    /// if that fails.
    pub(crate) fn start(plan: Plan) -> Result<Supervisor, Error> {
        let program = std::env::current_exe()
            .map_err(|e| format!("cannot find the program that is running: {e}"))?;
        let (sender, events) = channel();
        let tell = sender.clone();
        signals::watch(move |signal| tell.send(Event::Signal(signal)).is_ok())?;
        let mut supervisor = Supervisor {
            seats: Vec::with_capacity(plan.servers + 1),
            plan,
            program,
            events,
            sender,
            started: SystemTime::now(),
            is_ending: false,
            heard: None,
        };
        let outcome = supervisor.start_all();
        if outcome.is_err() {
            supervisor.stop();
        }
        outcome.map(|()| supervisor)
    }

    /// What is written down about it.
    pub(crate) fn state(&self) -> State {
        let this = serving::this_process();
        let process = |seat: &Seat| seat.worker.as_ref().map(|w| w.process);
        let started = self.started.duration_since(UNIX_EPOCH);
        State {
            url: self.url(),
            host: this.host,
            host_name: addresses::host_name(),
            started: started.map_or(0, |d| d.as_secs()),
            store: self.store().into(),
            secret: self.plan.keys.secret_file().map(Into::into),
            supervisor: Process::this(),
            meta: self.seats.first().and_then(process),
            servers: self.seats.iter().skip(1).map(process).collect(),
            troubles: self.seats.iter().filter_map(Seat::trouble).collect(),
            is_ending: self.is_ending,
        }
    }

    /// Where clients connect.
    pub(crate) fn url(&self) -> Endpoint {
        let meta = self.seats.first().map(|seat| &seat.endpoint);
        addresses::reached(meta.unwrap_or(&self.plan.listen))
    }

    /// Watches until it is told to end; then ends all.
    pub(crate) fn run(mut self) {
        let why = self.supervise();
        tracing::info!(why, "stopping the service");
        if let Some(signal) = self.heard {
            AuditLog::at(self.plan.dir.join(AUDIT_FILE)).note(&AuditEntry {
                by: "supervisor",
                action: "shutdown",
                user: rustix::process::geteuid().as_raw(),
                client: None,
                arguments: json!({ "signal": signal }),
                refusal: None,
            });
        }
        self.is_ending = true;
        self.write_down();
        self.stop();
        State::remove(&self.plan.dir);
    }

    fn store(&self) -> &'static str {
        if self.plan.on_disk { "disk" } else { "memory" }
    }

    fn start_all(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + START;
        self.open_seat(Role::Meta, self.plan.listen.clone())?;
        self.wait_until_all_listen(deadline)?;
        let meta = self.seats[0].endpoint.clone();
        for index in 0..self.plan.servers {
            let endpoint = addresses::checked(addresses::io(&meta, &self.plan.dir, index))?;
            let is_new = !self.kept_dir(index).is_dir();
            self.open_seat(Role::Io(index), endpoint)?;
            // One after the other the first time, so that their numbers follow their order.
            if is_new {
                self.wait_until_all_listen(deadline)?;
            }
        }
        self.wait_until_all_listen(deadline)
    }

    fn open_seat(&mut self, role: Role, endpoint: Endpoint) -> Result<(), Error> {
        self.seats.push(Seat {
            role,
            endpoint,
            worker: None,
            stage: Stage::Over,
            since: Instant::now(),
            deaths: 0,
            was_asked: false,
            said: None,
            ending: String::new(),
        });
        self.occupy(self.seats.len() - 1)
    }

    fn occupy(&mut self, index: usize) -> Result<(), Error> {
        let command = self.command(&self.seats[index]);
        let seat = &mut self.seats[index];
        seat.worker = Some(Worker::start(seat.role, command, self.sender.clone())?);
        seat.stage = Stage::Starting;
        seat.since = Instant::now();
        seat.was_asked = false;
        seat.said = None;
        Ok(())
    }

    fn command(&self, seat: &Seat) -> Command {
        let plan = &self.plan;
        let mut command = Command::new(&self.program);
        command.arg("serve");
        match seat.role {
            Role::Meta => {
                command.args(["meta", "--dir"]).arg(plan.dir.join("meta"));
                command.arg("--supervisor-note").arg(State::path(&plan.dir));
                command.args(plan.trust.arguments());
            }
            Role::Io(index) => {
                let meta = addresses::from_here(&self.seats[0].endpoint).to_string();
                command.args(["io", "--meta", &meta]);
                let flag = if plan.on_disk { "--disk" } else { "--state" };
                command.arg(flag).arg(self.kept_dir(index));
                command
                    .arg("--memory")
                    .arg(ByteSize(plan.memory).to_string());
                if let Some(writes) = plan.writes {
                    command.args(["--writes", writes.word()]);
                }
            }
        }
        command.arg("--listen").arg(seat.endpoint.to_string());
        command.args(plan.keys.arguments());
        command.args(plan.lease.arguments());
        if let Some(address) = plan.metrics_of(seat.role) {
            command.args(["--metrics", &address.to_string()]);
        }
        if let Some(slow) = plan.slow {
            command.args(slow_arguments(slow));
        }
        command.arg("--audit").arg(plan.dir.join(AUDIT_FILE));
        plan.limits.hand_on(&mut command);
        command
    }

    /// Where a server keeps what it has: its subfiles, or in memory nothing but its number.
    fn kept_dir(&self, index: usize) -> PathBuf {
        match self.plan.on_disk {
            true => disk_dir(&self.plan.dir, index),
            false => memory_dir(&self.plan.dir, index),
        }
    }

    fn wait_until_all_listen(&mut self, deadline: Instant) -> Result<(), Error> {
        loop {
            let waiting = self
                .seats
                .iter()
                .find(|s| matches!(s.stage, Stage::Starting));
            let Some(role) = waiting.map(|s| s.role) else {
                return Ok(());
            };
            match self.next_event(Some(deadline)) {
                Some(Event::Listening(role, endpoint)) => self.listens(role, endpoint),
                Some(Event::Asked(role)) => self.was_asked(role),
                Some(Event::Failed(role, why)) => {
                    // It has said why it ends.
                    self.retire(role);
                    return Err(why.into());
                }
                Some(Event::Ended(role, status)) => {
                    self.vacate(role);
                    return Err(format!(
                        "{role} {} before it listened; the lines above, or the log, say why",
                        ending(status)
                    )
                    .into());
                }
                Some(Event::Signal(signal)) => {
                    return Err(format!("{signal} while starting").into());
                }
                None => {
                    let seconds = START.as_secs();
                    return Err(format!("{role} does not listen after {seconds} s").into());
                }
            }
        }
    }

    /// The next event, or nothing when the time is over.
    fn next_event(&self, deadline: Option<Instant>) -> Option<Event> {
        let Some(deadline) = deadline else {
            return self.events.recv().ok();
        };
        let left = deadline.saturating_duration_since(Instant::now());
        // This process holds a sender, so the channel does not end.
        self.events.recv_timeout(left).ok()
    }

    /// Why the service is to end.
    fn supervise(&mut self) -> String {
        loop {
            let due = self.seats.iter().filter_map(|seat| match seat.stage {
                Stage::Due(at) => Some(at),
                _ => None,
            });
            let look = Instant::now() + log::LOOK;
            match self.next_event(Some(due.min().unwrap_or(look).min(look))) {
                Some(Event::Signal(signal)) => {
                    self.heard = Some(signal);
                    return signal.into();
                }
                Some(Event::Asked(role)) => self.was_asked(role),
                Some(Event::Listening(role, endpoint)) => {
                    self.listens(role, endpoint);
                    // First: a process that hears of it looks there.
                    self.write_down();
                    tracing::info!(%role, "serves again");
                }
                Some(Event::Failed(role, why)) => {
                    tracing::warn!(%role, why, "cannot serve");
                    if let Some(seat) = self.seats.iter_mut().find(|s| s.role == role) {
                        seat.said = Some(why);
                    }
                }
                Some(Event::Ended(role, status)) => {
                    if let Some(why) = self.has_ended(role, status) {
                        return why;
                    }
                    self.write_down();
                }
                None => self.restart_due(),
            }
            if let Err(error) = log::turn(&self.plan.dir) {
                tracing::warn!(%error, "the log cannot be begun anew");
            }
        }
    }

    fn listens(&mut self, role: Role, endpoint: Endpoint) {
        if let Some(seat) = self.seats.iter_mut().find(|s| s.role == role) {
            // The same address after a restart: who knows it finds it again.
            seat.endpoint = endpoint;
            seat.stage = Stage::Listening;
        }
    }

    fn was_asked(&mut self, role: Role) {
        if let Some(seat) = self.seats.iter_mut().find(|s| s.role == role) {
            seat.was_asked = true;
        }
    }

    fn retire(&mut self, role: Role) {
        if let Some(seat) = self.seats.iter_mut().find(|s| s.role == role) {
            seat.stage = Stage::Over;
        }
    }

    fn vacate(&mut self, role: Role) {
        if let Some(seat) = self.seats.iter_mut().find(|s| s.role == role) {
            seat.worker = None;
            seat.stage = Stage::Over;
        }
    }

    /// Says why the service ends, if it does.
    fn has_ended(&mut self, role: Role, status: Option<ExitStatus>) -> Option<String> {
        self.vacate(role);
        let index = self.seats.iter().position(|s| s.role == role)?;
        let how = ending(status);
        if self.seats[index].was_asked {
            if role == Role::Meta {
                return Some("it was asked to shut down".into());
            }
            let left = self.seats.iter().skip(1);
            if left.clone().all(|s| matches!(s.stage, Stage::Over)) {
                return Some("all I/O servers were asked to shut down".into());
            }
            tracing::info!(%role, "ended as asked");
            return None;
        }
        let lost = match role {
            Role::Io(index) => match keeper::look(&self.kept_dir(index)) {
                Ok(_) => "; its keeper has its memory",
                Err(_) if self.plan.on_disk => "",
                Err(_) => "; the bytes in its memory are lost",
            },
            _ => "",
        };
        let seat = &mut self.seats[index];
        if seat.since.elapsed() > FORGIVEN_AFTER {
            seat.deaths = 0;
        }
        let next = seat.died(&how);
        tracing::warn!(%role, "{how}{lost}; {next}");
        None
    }

    fn restart_due(&mut self) {
        let now = Instant::now();
        let is_due = |seat: &Seat| matches!(seat.stage, Stage::Due(at) if at <= now);
        if !self.seats.iter().any(is_due) {
            return;
        }
        for index in 0..self.seats.len() {
            if !is_due(&self.seats[index]) {
                continue;
            }
            if let Err(error) = self.occupy(index) {
                tracing::warn!(role = %self.seats[index].role, %error, "cannot be started");
                self.seats[index].died("cannot be started");
                self.seats[index].said = Some(error.to_string());
            }
        }
        self.write_down();
    }

    fn write_down(&self) {
        if let Err(error) = self.state().write(&self.plan.dir) {
            tracing::warn!(%error, "state of the service not written down");
        }
    }

    /// Ends all workers: I/O servers first, then the metadata manager. A second signal ends them
    /// without ceremony.
    fn stop(&mut self) {
        let begun = Instant::now();
        let io: Vec<Role> = self.seats.iter().skip(1).map(|s| s.role).collect();
        self.stop_these(&io, FLUSH, begun);
        // Of servers that were dead, or had to be killed.
        end_keepers(&self.plan.dir);
        self.stop_these(&[Role::Meta], FAREWELL, begun);
    }

    fn stop_these(&mut self, roles: &[Role], patience: Duration, begun: Instant) {
        for seat in self.seats.iter().filter(|s| roles.contains(&s.role)) {
            if let Some(worker) = &seat.worker {
                worker.terminate();
            }
        }
        let mut deadline = Instant::now() + patience;
        let mut killed = false;
        loop {
            let left = self
                .seats
                .iter()
                .filter(|s| roles.contains(&s.role) && s.worker.is_some());
            if left.clone().next().is_none() {
                return;
            }
            let why = match self.next_event(Some(deadline)) {
                Some(Event::Ended(role, status)) => {
                    let seat = self.seats.iter().find(|s| s.role == role);
                    let is_news = seat.is_some_and(|s| matches!(s.stage, Stage::Listening));
                    self.vacate(role);
                    if is_news && !status.is_some_and(|s| s.success()) {
                        tracing::warn!(%role, "{}", ending(status));
                    }
                    continue;
                }
                Some(Event::Signal(_)) if begun.elapsed() < ECHO => continue,
                Some(Event::Signal(signal)) => signal.to_owned(),
                Some(_) => continue,
                None if killed => return,
                None => format!("no end after {} s", patience.as_secs()),
            };
            for seat in left {
                if let Some(worker) = &seat.worker {
                    tracing::warn!(role = %seat.role, why, "is killed");
                    worker.kill();
                }
            }
            killed = true;
            deadline = Instant::now() + FAREWELL;
        }
    }
}

impl Seat {
    /// Notes another death, and says when it is started again.
    fn died(&mut self, how: &str) -> String {
        self.deaths = self.deaths.saturating_add(1);
        self.ending = how.to_owned();
        let pause = pause_after(self.deaths);
        self.stage = Stage::Due(Instant::now() + pause);
        match self.deaths {
            1 => "it is started again".into(),
            times => format!(
                "{times} times now; the next start is in {:.1} s",
                pause.as_secs_f64()
            ),
        }
    }

    /// What is wrong with it, if anything is.
    fn trouble(&self) -> Option<Trouble> {
        let is_serving = matches!(self.stage, Stage::Listening | Stage::Over);
        if self.deaths == 0 || is_serving {
            return None;
        }
        let next_start = match self.stage {
            Stage::Due(at) => {
                let at = SystemTime::now() + at.saturating_duration_since(Instant::now());
                at.duration_since(UNIX_EPOCH).ok().map(|d| d.as_secs())
            }
            _ => None,
        };
        let why = match &self.said {
            Some(said) => format!("{} ({said})", self.ending),
            None => self.ending.clone(),
        };
        Some(Trouble {
            who: self.role.to_string(),
            deaths: u64::from(self.deaths),
            why,
            next_start,
        })
    }
}

/// Where a disk server keeps its subfiles; the same as without a service.
pub(crate) fn disk_dir(dir: &Path, index: usize) -> PathBuf {
    dir.join(format!("io-{index}"))
}

/// Where a server in memory keeps its number, and its keeper.
fn memory_dir(dir: &Path, index: usize) -> PathBuf {
    dir.join(format!("memory-{index}"))
}

/// Ends the keepers of servers that are dead; how many there were. What they kept is gone.
pub(crate) fn end_keepers(dir: &Path) -> usize {
    let dirs = (0..)
        .map(|index| memory_dir(dir, index))
        .take_while(|dir| dir.is_dir());
    dirs.filter(|dir| keeper::end(dir).is_ok()).count()
}

/// Disk servers that have kept something in a directory.
pub(crate) fn disk_servers_found(dir: &Path) -> usize {
    (0..)
        .take_while(|&index| fs::metadata(disk_dir(dir, index)).is_ok_and(|found| found.is_dir()))
        .count()
}

/// The first time at once, then a tenth of a second, and twice as long each time.
fn pause_after(deaths: u32) -> Duration {
    match deaths {
        0 | 1 => Duration::ZERO,
        n => (Duration::from_millis(100) * (1 << (n - 2).min(10))).min(LONGEST_PAUSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_are_further_and_further_apart() {
        let pauses: Vec<u128> = (1..12).map(|n| pause_after(n).as_millis()).collect();
        assert_eq!(
            pauses,
            [
                0, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000
            ]
        );
        assert_eq!(pause_after(u32::MAX), Duration::from_secs(30));
    }
}
