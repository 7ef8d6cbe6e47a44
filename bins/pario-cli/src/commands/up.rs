//! `pario up`: a whole service on this host, watched by this process or by one in the background.
//!
//! Owns the choice of defaults, what is said when the service is there, and how a command in the
//! foreground learns what became of the supervisor it left behind.

use console::notation::{duration_argument, size_argument};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::{Args, ValueEnum};
use layout::ByteSize;
use serde_json::Value;
use wire::url::Endpoint;

use super::keys::{KeyArguments, LeaseArguments, TrustArguments};
use super::limits::Limits;
use super::output::{counted, note};
use super::{Error, ReportedFailure, down, output, serve};
use crate::service::state::State;
use crate::service::supervisor::{Plan, Supervisor, disk_servers_found};
use crate::service::target::DEFAULT_DIRECTORY;
use crate::service::{self, addresses, signals, worker};

/// Arguments of `pario up`.
#[derive(Args)]
#[command(after_help = "\
Starts one metadata manager and several I/O servers, each a process of its own, and prints the URL
of the service once all of them serve. Servers that die are started again. Ctrl-C, SIGTERM or
`pario down` ends the service; with --store disk everything is there again after the next
`pario up` on the same directory.

Clients on this host need no URL if they run where the directory is: without PARIO_URL they look
in .pario and find the service.

Examples:
  pario up
  pario up --detach --servers 4 --store memory --memory 1GiB
  pario up --detach --metrics 127.0.0.1:9100 && curl http://127.0.0.1:9100/metrics
  pario up --dir /data/pario --listen tcp:node1:4711 --secret /etc/pario.secret --detach")]
pub(crate) struct Arguments {
    /// I/O servers [default: one per processor, 4 at most; on disk at least as many as there were]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    servers: Option<u16>,

    /// Where bytes are kept; those in memory are gone when the service ends
    #[arg(long, value_enum, default_value_t = Store::Disk)]
    store: Store,

    /// The directory of the service; made if it does not exist
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,

    /// Where clients connect, unix:PATH or tcp:HOST:PORT (port 0: a free one) [default: unix:DIR/meta.sock]
    #[arg(long, value_name = "URL", value_parser = addresses::parse)]
    listen: Option<Endpoint>,

    /// Memory of each I/O server [default: a quarter of the host's, in memory half of it, shared evenly]
    #[arg(long, value_name = "SIZE", value_parser = size_argument)]
    memory: Option<u64>,

    /// When a write to a disk is answered: when its bytes are in the memory of the server, or in the data file [default: behind]
    #[arg(long, value_enum, value_name = "WHEN")]
    writes: Option<serve::Writes>,

    #[command(flatten)]
    keys: KeyArguments,

    #[command(flatten)]
    trust: TrustArguments,

    #[command(flatten)]
    lease: LeaseArguments,

    #[command(flatten)]
    limits: Limits,

    /// Tell numbers over HTTP (/metrics in the format of Prometheus, /healthz): the metadata manager at this address, the I/O servers at the ports above it
    #[arg(long, value_name = "HOST:PORT", value_parser = metrics_address)]
    metrics: Option<SocketAddr>,

    /// Tell each request in the log that takes at least so long, as in 500ms
    #[arg(long, value_name = "TIME", value_parser = duration_argument)]
    slow: Option<Duration>,

    /// Return when the service is there, and leave it in the background
    #[arg(long)]
    detach: bool,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,

    /// This is the supervisor that a command with --detach has started
    #[arg(long, hide = true)]
    detached: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Store {
    /// In the memory of the servers
    Memory,
    /// In files below the directory of the service
    Disk,
}

/// Most I/O servers that are started unasked.
const MOST_UNASKED: usize = 4;

/// Starts a service.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    if arguments.detach {
        return detach(arguments);
    }
    let outcome = serve_here(arguments);
    match outcome {
        Err(error) if arguments.detached && !error.is::<ReportedFailure>() => {
            // Both to the process that waits, if it still does, and to the log.
            output::print(&format!("{}\n", worker::failure_line(&error.to_string())))?;
            Err(error)
        }
        other => other,
    }
}

fn serve_here(arguments: &Arguments) -> Result<(), Error> {
    signals::block()?;
    let dir = make_directory(&arguments.dir)?;
    let claim = claim(&dir)?;
    let plan = arguments.plan(&dir)?;
    if let Some(asked) = arguments.servers
        && plan.servers > usize::from(asked)
    {
        note(&format!(
            "pario: {} keeps bytes of {} servers, so {} are started instead of {asked}",
            dir.display(),
            plan.servers,
            plan.servers
        ));
    }
    let supervisor = Supervisor::start(plan)?;
    let state = supervisor.state();
    state.write(&dir)?;
    claim.announce(&state.url)?;
    announce(&state, arguments.json || arguments.detached)?;
    supervisor.run();
    drop(claim);
    Ok(())
}

impl Arguments {
    fn plan(&self, dir: &Path) -> Result<Plan, Error> {
        let on_disk = self.store == Store::Disk;
        let found = disk_servers_found(dir);
        if !on_disk && found > 0 {
            return Err(format!(
                "{} keeps bytes of {} on disk; use --store disk, or another --dir for a service in \
                 memory",
                dir.display(),
                counted(found as u64, "server", "servers")
            )
            .into());
        }
        let asked = self.servers.map_or_else(unasked, usize::from);
        let servers = asked.max(found);
        let memory = match (self.memory, on_disk) {
            (Some(bytes), _) => bytes,
            (None, true) => serve::disk_memory(serve::host_memory() / 4 / servers as u64),
            (None, false) => (serve::host_memory() / 2 / servers as u64).max(64 << 20),
        };
        let listen = self.listen.clone().unwrap_or_else(|| addresses::meta(dir));
        let listen = addresses::checked(listen)?;
        // The last one has the longest name.
        addresses::checked(addresses::io(&listen, dir, servers))?;
        let keys = self.keys.settled()?;
        self.trust.trust()?;
        if let Endpoint::Tcp { host, .. } = &listen
            && !keys.keep_strangers_out()
            && !addresses::is_loopback(host)
        {
            return Err(format!(
                "--listen {listen}: others than this host could connect; give a secret that clients \
                 have to know (`head -c 32 /dev/urandom | base64 > FILE`, --secret FILE) or certificates (--tls-cert, made with `pario cert`), or listen \
                 on tcp:127.0.0.1:PORT"
            )
            .into());
        }
        Ok(Plan {
            dir: dir.to_owned(),
            listen,
            on_disk,
            servers,
            memory,
            writes: self.writes.filter(|_| on_disk),
            keys,
            trust: self.trust.clone(),
            lease: self.lease,
            limits: self.limits.clone(),
            metrics: self.metrics,
            slow: self.slow,
        })
    }
}

/// Port 0 would be another one for each server, and nobody is told which.
fn metrics_address(text: &str) -> Result<SocketAddr, String> {
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() > 0 => Ok(address),
        _ => Err("is no address with a port, as in 127.0.0.1:9100".into()),
    }
}

/// When a request is slow, for a process that is started.
pub(crate) fn slow_arguments(slow: Duration) -> [String; 2] {
    ["--slow".into(), format!("{}us", slow.as_micros())]
}

/// One server per processor, a few at most.
fn unasked() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get().min(MOST_UNASKED))
}

fn make_directory(dir: &Path) -> Result<PathBuf, Error> {
    let failed = |e: std::io::Error| -> Error { format!("--dir: {}: {e}", dir.display()).into() };
    lockfile::make_directory(dir, 0o755).map_err(failed)?;
    dir.canonicalize().map_err(failed)
}

fn claim(dir: &Path) -> Result<embedded::Claim, Error> {
    let mut taken = embedded::Claim::take(dir);
    if taken.is_err()
        && let Some(state) = State::running(dir).filter(|state| state.is_ending)
        && state.supervisor.wait_for_end(down::PATIENCE)
    {
        taken = embedded::Claim::take(dir);
    }
    match taken {
        Ok(claim) => Ok(claim),
        Err(error) => match State::running(dir) {
            Some(state) => Err(format!(
                "the service at {} runs in {} already (process {}); use it, or stop it with `pario \
                 down --dir {1}`",
                state.url,
                dir.display(),
                state.supervisor.pid
            )
            .into()),
            None => Err(error.into()),
        },
    }
}

fn announce(state: &State, as_json: bool) -> Result<(), Error> {
    if as_json {
        return output::print(&format!("{}\n", state.to_json()));
    }
    output::print(&greeting(state))
}

fn greeting(state: &State) -> String {
    let servers = counted(state.servers.len() as u64, "I/O server", "I/O servers");
    // Fit for `eval "$(pario up --detach)"`.
    let mut text = format!(
        "# service at {}: {servers}, bytes {}\nexport PARIO_URL={}\n",
        state.url,
        match state.store.as_str() {
            "memory" => "in memory (gone when the service ends)",
            _ => "on disk",
        },
        quoted(&state.url.to_string())
    );
    if let (Some(secret), Endpoint::Tcp { .. }) = (&state.secret, &state.url) {
        let path = secret.display().to_string();
        text += &format!("export PARIO_SECRET={}\n", quoted(&path));
    }
    text
}

/// A word of the shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/:._-+,@%=".contains(c);
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Starts the same service under a supervisor in the background, and reports what becomes of it.
fn detach(arguments: &Arguments) -> Result<(), Error> {
    let dir = make_directory(&arguments.dir)?;
    let log = dir.join(service::log::NAME);
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(&log)
        .map_err(|e| format!("cannot write {}: {e}", log.display()))?;
    let program = std::env::current_exe()
        .map_err(|e| format!("cannot find the program that is running: {e}"))?;
    let mut command = Command::new(program);
    command
        .arg("up")
        .arg("--detached")
        .arg("--dir")
        .arg(&dir)
        .args(["--store", arguments.store.word()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(file)
        // A terminal's interrupt, and its end, are not meant for it.
        .process_group(0);
    if let Some(servers) = arguments.servers {
        command.arg("--servers").arg(servers.to_string());
    }
    if let Some(listen) = &arguments.listen {
        command.arg("--listen").arg(listen.to_string());
    }
    if let Some(memory) = arguments.memory {
        command.arg("--memory").arg(ByteSize(memory).to_string());
    }
    if let Some(writes) = arguments.writes {
        command.args(["--writes", writes.word()]);
    }
    if let Some(metrics) = arguments.metrics {
        command.arg("--metrics").arg(metrics.to_string());
    }
    if let Some(slow) = arguments.slow {
        command.args(slow_arguments(slow));
    }
    command.args(arguments.keys.arguments());
    command.args(arguments.trust.arguments());
    command.args(arguments.lease.arguments());
    arguments.limits.hand_on(&mut command);
    let mut child = command
        .spawn()
        .map_err(|e| format!("cannot start the supervisor: {e}"))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        // Bounded: the supervisor bounds its start, and its end closes the pipe.
        BufReader::new(stdout).read_line(&mut line)?;
    }
    let said: Value = serde_json::from_str(&line).unwrap_or_default();
    if let Some(error) = said.get("error").and_then(Value::as_str) {
        return Err(error.into());
    }
    let Some(state) = State::from_json(&said) else {
        return Err(format!(
            "the supervisor ended before the service was there; {} says why",
            log.display()
        )
        .into());
    };
    if arguments.json {
        return output::print(&format!("{}\n", state.to_json()));
    }
    let dir = dir.display();
    output::print(&format!(
        "{}# in the background, log in {dir}/log; ends with: pario down --dir {}\n",
        greeting(&state),
        quoted(&dir.to_string())
    ))
}

impl Store {
    fn word(self) -> &'static str {
        match self {
            Store::Memory => "memory",
            Store::Disk => "disk",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_shell_are_quoted_where_needed() {
        assert_eq!(quoted("unix:/a/b.sock"), "unix:/a/b.sock");
        assert_eq!(quoted("tcp:[::1]:7"), "'tcp:[::1]:7'");
        assert_eq!(quoted("unix:/it's"), r"'unix:/it'\''s'");
    }
}
