//! `pario serve`: one role of a service in the foreground, for services on several hosts and as the
//! processes of `pario up`.
//!
//! Prints one line when it serves and ends cleanly on SIGTERM, SIGINT, SIGHUP, or when a client asks
//! for a shutdown. Owns the command line of the servers; what they do is in `metaserver` and
//! `ioserver`.

use console::notation::{duration_argument, size_argument};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use serving::{AUDIT_FILE, AuditLog};
use wire::url::Endpoint;

use super::keys::{KeyArguments, LeaseArguments, TrustArguments};
use super::limits::Limits;
use super::{Error, ReportedFailure, output};
use crate::service::metrics::MetricsListener;
use crate::service::{addresses, signals, worker};

/// Arguments of `pario serve`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// The metadata manager: names, attributes, layouts, members
    Meta(Meta),
    /// An I/O server: keeps subfiles in memory or on disks
    Io(Io),
    /// A keeper: holds the memory of an I/O server between the death of its process and its next start
    Keeper(KeeperArguments),
}

/// Arguments of `pario serve keeper`.
#[derive(Args)]
#[command(after_help = "\
I/O servers start their keeper by themselves; nobody else has to. It prints `ready` when it listens at
DIR/keeper.sock, serves processes of its own user, one server at a time, and ends when its server ends in
order, when none has come for the time of --patience, or when its directory is gone.

Example:
  pario serve keeper --dir .pario/memory-0")]
struct KeeperArguments {
    /// The directory of the I/O server: the one of --state, or its first disk
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,

    /// How long it waits for the next start of the server, in seconds
    #[arg(long, value_name = "N", default_value_t = keeper::PATIENCE.as_secs())]
    patience: u64,
}

/// Arguments of `pario serve meta`.
#[derive(Args)]
#[command(after_help = "\
Prints `listening on URL` when it serves. SIGTERM and SIGINT end it; everything it has acknowledged
is on disk already.

Examples:
  pario serve meta --dir /var/lib/pario
  pario serve meta --dir meta --listen tcp:node1:4711 \\
                   --secret /etc/pario.secret --server-secret /etc/pario.server-secret")]
struct Meta {
    /// Where the catalogue is kept; made if it does not exist
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,

    /// Where to listen, unix:PATH or tcp:HOST:PORT; may be given several times [default: unix:DIR/meta.sock]
    #[arg(long, value_name = "URL", value_parser = addresses::parse)]
    listen: Vec<Endpoint>,

    #[command(flatten)]
    shared: SharedArguments,

    #[command(flatten)]
    trust: TrustArguments,

    /// How long clients may use an open file before their rights are looked up again
    #[arg(long, value_name = "N", default_value_t = 86_400, value_parser = clap::value_parser!(u64).range(1..))]
    capability_seconds: u64,

    /// Where the supervisor writes down what it knows about the service, for those who ask
    #[arg(long, hide = true, value_name = "FILE")]
    supervisor_note: Option<PathBuf>,
}

/// Arguments of `pario serve io`.
#[derive(Args)]
#[command(after_help = "\
Prints `listening on URL` when it takes part in the service. SIGTERM and SIGINT end it after what
is in its memory has been written to its disks. With --disk, or --memory and --state, a process that dies in any
other way leaves its memory with a keeper (`pario serve keeper`), and the next start goes on with it.

Examples:
  pario serve io --meta tcp:node1:4711 --listen tcp:node2:0 --disk /data/pario \\
                 --secret /etc/pario.secret --server-secret /etc/pario.server-secret
  pario serve io --meta unix:/var/lib/pario/meta.sock --memory 8GiB
  pario serve io --meta tcp:node1:4711 --listen tcp:0.0.0.0:4712 --advertise tcp:node2:4712 \\
                 --disk /nvme0 --disk /nvme1 --memory 4GiB \\
                 --secret /etc/pario.secret --server-secret /etc/pario.server-secret")]
#[command(group(clap::ArgGroup::new("store").args(["memory", "disk"]).required(true).multiple(true)))]
struct Io {
    /// The metadata manager
    #[arg(long, value_name = "URL", value_parser = addresses::parse)]
    meta: Endpoint,

    /// Where to listen [default: beside the metadata manager if that is on this host]
    #[arg(long, value_name = "URL", value_parser = addresses::parse)]
    listen: Option<Endpoint>,

    /// Where clients and servers reach this server, if that differs from --listen
    #[arg(long, value_name = "URL", value_parser = addresses::parse)]
    advertise: Option<Endpoint>,

    /// Keep bytes on a disk, in this directory; several are used together
    #[arg(long, value_name = "DIR")]
    disk: Vec<PathBuf>,

    /// With --disk memory for what is in use [default: an eighth of the host's, 64MiB at least]; else keep bytes in memory, so much at most
    #[arg(long, value_name = "SIZE", value_parser = size_argument)]
    memory: Option<u64>,

    /// When a write is answered, with --disk: when its bytes are in memory, or in the data file [default: behind, and through where there is
    /// no place for a keeper: with --no-keeper, or with several disks and no --state]
    #[arg(long, value_enum, value_name = "WHEN", requires = "disk")]
    writes: Option<Writes>,

    /// Keep the number of the server here, and a copy of the list of its disks, so that it has them again after a restart [default: on each of its disks]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    /// Declare a disk lost that is missing for good; its bytes are lost from then on, and its directory may hold a new one
    #[arg(long, value_name = "ID", requires = "disk")]
    forget_disk: Vec<ioserver::DiskId>,

    /// Use each disk for no more than so many bytes per second
    #[arg(long, value_name = "SIZE", value_parser = size_argument, requires = "disk")]
    disk_rate: Option<u64>,

    /// Memory for all transfers under way
    #[arg(long, value_name = "SIZE", value_parser = size_argument)]
    buffers: Option<u64>,

    /// Memory for one transfer
    #[arg(long, value_name = "SIZE", value_parser = size_argument)]
    buffer: Option<u64>,

    /// Writes longer than this are announced before they are sent [default: measured at the start]
    #[arg(long, value_name = "SIZE", value_parser = size_argument)]
    rendezvous: Option<u64>,

    /// Longest payload of one message
    #[arg(long, value_name = "SIZE", value_parser = size_argument)]
    message: Option<u64>,

    /// Let what is in memory die with this process; otherwise a server with --memory and --state, or with --disk that writes behind,
    /// leaves it with a keeper, from which the next start has it. A server with --disk writes through then
    #[arg(long)]
    no_keeper: bool,

    /// How far this server is from the clients, in any unit; nearer ones are preferred
    #[arg(long, value_name = "N", default_value_t = 0)]
    distance: u64,

    #[command(flatten)]
    shared: SharedArguments,
}

/// When a server on disks answers a write. `sync` makes bytes durable either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Writes {
    /// When the bytes are in its memory; they are written back later, at a sync at the latest
    Behind,
    /// When the bytes are in the data file
    Through,
}

impl Writes {
    /// As it stands on a command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Writes::Behind => "behind",
            Writes::Through => "through",
        }
    }
}

#[derive(Args)]
struct SharedArguments {
    #[command(flatten)]
    keys: KeyArguments,

    #[command(flatten)]
    lease: LeaseArguments,

    #[command(flatten)]
    limits: Limits,

    /// Tell numbers over HTTP at this address: /metrics in the format of Prometheus, /healthz for those who look after services
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<SocketAddr>,

    /// Tell each request in the log that takes at least so long, as in 500ms: its verb, file, client, bytes, time waited and worked
    #[arg(long, value_name = "TIME", value_parser = duration_argument)]
    slow: Option<Duration>,

    /// Put what administrators do on record in this file, a line of JSON each [default: audit.jsonl in the directory of --dir or --state]
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,

    /// The supervisor that started this process, and with which it ends
    #[arg(long, hide = true, value_name = "PID")]
    supervised_by: Option<u32>,
}

/// Serves until told to end.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let shared = match &arguments.role {
        Role::Meta(meta) => &meta.shared,
        Role::Io(io) => &io.shared,
        Role::Keeper(keeper) => return keeper.serve(),
    };
    signals::block()?;
    if let Some(supervisor) = shared.supervised_by
        && !worker::follow(supervisor)
    {
        return Err("the supervisor is gone".into());
    }
    let outcome = match &arguments.role {
        Role::Meta(meta) => meta.serve(),
        Role::Io(io) => io.serve(),
        Role::Keeper(_) => unreachable!("served above"),
    };
    match outcome {
        // The supervisor says it in its own words.
        Err(error) if shared.supervised_by.is_some() => {
            output::print(&format!("{}\n", worker::failure_line(&error.to_string())))?;
            Err(ReportedFailure.into())
        }
        other => other,
    }
}

impl Meta {
    fn serve(&self) -> Result<(), Error> {
        let options = metaserver::Options::new(&self.dir);
        let mut options = options.with_client_lease(self.shared.lease.lease());
        options.listen = match &self.listen[..] {
            [] => vec![addresses::checked(addresses::meta(&self.dir))?],
            many => many
                .iter()
                .cloned()
                .map(addresses::checked)
                .collect::<Result<_, _>>()?,
        };
        options.keys = self.shared.keys.keys()?;
        options.trust = self.trust.trust()?;
        options.capability_seconds = self.capability_seconds;
        options.supervisor_note = self.supervisor_note.clone();
        options.slow = self.shared.slow;
        options.audit = self.shared.audit_log(Some(&self.dir))?;
        let metrics = self.shared.metrics_listener()?;
        make_parents(&options.listen)?;
        raise_open_files();
        self.shared.limits.apply_to_meta(&mut options);
        let server = metaserver::start(options)?;
        if let Some(metrics) = metrics {
            metrics.tell("meta", server.reporter())?;
        }
        self.shared.say_listening(server.endpoints())?;
        let was_told = tell_of_signals("metadata manager", server.stopper())?;
        server.wait();
        let failure = server.failure();
        server.stop();
        match failure {
            Some(why) => Err(format!("{why}; start it again when that is mended").into()),
            None => self.shared.say_asked(&was_told),
        }
    }
}

impl KeeperArguments {
    /// Says why it cannot where the server that started it reads: what goes to standard error may be read by nobody.
    fn serve(&self) -> Result<(), Error> {
        match keeper::run(&self.dir, Duration::from_secs(self.patience)) {
            Ok(()) => Ok(()),
            Err(error) => {
                output::print(&format!(
                    "{}--dir: {}: {error}\n",
                    keeper::FAILED,
                    self.dir.display()
                ))?;
                Err(ReportedFailure.into())
            }
        }
    }
}

impl Io {
    fn serve(&self) -> Result<(), Error> {
        let listen = match &self.listen {
            Some(endpoint) => endpoint.clone(),
            None => addresses::io_alone(&self.meta)?,
        };
        let mut listen = addresses::checked(listen)?;
        let mut advertise = self.advertise.clone();
        if let (None, Endpoint::Tcp { host, .. }) = (&advertise, &listen)
            && addresses::is_unspecified(host)
        {
            listen = addresses::with_port(listen)?;
            advertise = Some(addresses::reached(&listen));
        }
        let meta = addresses::checked(self.meta.clone())?;
        let metrics = self.shared.metrics_listener()?;
        make_parents(std::slice::from_ref(&listen))?;
        let store = match (&self.disk[..], self.memory) {
            ([], Some(limit_bytes)) => ioserver::StoreOptions::Memory { limit_bytes },
            (dirs, memory) => ioserver::StoreOptions::Disk {
                dirs: dirs.to_vec(),
                memory_limit_bytes: memory.unwrap_or_else(|| disk_memory(host_memory() / 8)),
            },
        };
        let options = ioserver::Options::new(meta, listen, store);
        let mut options = options.with_client_lease(self.shared.lease.lease());
        options.advertise = advertise.map(|endpoint| endpoint.to_string());
        options.keys = self.shared.keys.keys()?;
        options.state_dir = self.state.clone();
        options.forget_disks = self.forget_disk.clone();
        options.slow = self.shared.slow;
        options.audit = self.shared.audit_log(self.state.as_deref())?;
        options.distance = self.distance;
        options.keeper = self.keeper()?;
        options.disk_bytes_per_s = self.disk_rate;
        if self.writes == Some(Writes::Behind) && self.no_keeper {
            tracing::warn!(
                "--no-keeper: writes through, although --writes behind is given; without a keeper the death of this \
                 process would lose what was answered from memory"
            );
        }
        options.write_through = !self.disk.is_empty() && self.answers_writes() == Writes::Through;
        let set = |field: &mut u64, given: Option<u64>| {
            if let Some(bytes) = given {
                *field = bytes;
            }
        };
        set(&mut options.buffers_bytes, self.buffers);
        set(&mut options.buffer_bytes, self.buffer);
        set(&mut options.message_bytes, self.message);
        options.rendezvous_bytes = self.rendezvous.or(options.rendezvous_bytes);
        raise_open_files();
        self.shared.limits.apply_to_io(&mut options);
        let server = ioserver::start(options)?;
        if let Some(metrics) = metrics {
            metrics.tell("io", server.reporter())?;
        }
        for missing in server.missing_disks() {
            let server = server.server().0;
            tracing::warn!(server, "{missing}; what is on it is refused until then");
        }
        self.shared.say_listening(&[server.endpoint().clone()])?;
        // The kernel says so with this signal, before the whole supervisor is gone.
        let is_left = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&is_left);
        let heed = move |signal| {
            if signal == worker::DEATH_OF_SUPERVISOR {
                heard.store(true, Ordering::SeqCst);
            }
        };
        let name = server.server().to_string();
        let was_told = tell_of_signals_and(&name, server.stopper(), heed)?;
        server.wait();
        let is_left = self.shared.supervised_by.is_some() && is_left.load(Ordering::SeqCst);
        match was_told.load(Ordering::SeqCst) && (is_left || self.shared.is_orphan()) {
            // Nobody has asked for the end of the service.
            true => server.leave(),
            false => server.stop(),
        }
        self.shared.say_asked(&was_told)
    }

    /// When it answers writes to its disks. What it answers from memory needs a keeper.
    fn answers_writes(&self) -> Writes {
        let has_place = self.state.is_some() || self.disk.len() == 1;
        match self.writes {
            _ if self.no_keeper => Writes::Through,
            Some(writes) => writes,
            None if has_place => Writes::Behind,
            None => Writes::Through,
        }
    }

    /// The keeper of its memory, in its directory.
    fn keeper(&self) -> Result<Option<ioserver::KeeperOptions>, Error> {
        let dir = match (&self.state, &self.disk[..]) {
            // A server on disks writes through then, and a start before may have left a keeper.
            (_, []) if self.no_keeper => return Ok(None),
            (None, [_, _, ..]) if self.writes == Some(Writes::Behind) && !self.no_keeper => {
                return Err("--writes behind with several --disk needs --state DIR: a place for its keeper that is there when one of the disks is not".into());
            }
            // Of a server on one disk that disk, which has a place for it as long as it has data files.
            (Some(dir), _) | (None, [dir, ..]) => dir.clone(),
            (None, []) => return Ok(None),
        };
        Ok(Some(ioserver::KeeperOptions {
            dir,
            program: Some(
                std::env::current_exe()
                    .map_err(|e| format!("cannot find the program that is running: {e}"))?,
            ),
            arguments: vec!["serve".into(), "keeper".into()],
            patience: match self.disk.is_empty() {
                true => keeper::PATIENCE,
                false => DEBT_PATIENCE,
            },
            held_wait: keeper::HELD_WAIT,
        }))
    }
}

/// How long a keeper waits for the next server on disks: these are owed what was not written back, and nobody else has it.
const DEBT_PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// A server has a descriptor per connection and per data file that is open; the usual limit is made
/// for programs that have few. A limit that cannot be raised is told where it is reached.
pub(crate) fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Memory of a disk server unless told otherwise, of a share of the host. What is not used is not taken.
pub(crate) fn disk_memory(share_bytes: u64) -> u64 {
    (share_bytes >> 20 << 20).max(64 << 20)
}

/// The memory of this host.
pub(crate) fn host_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.map_or(1 << 30, |n| n << 10)
}

impl SharedArguments {
    /// Where numbers are asked for, bound before the server starts: an address in use is told at once.
    fn metrics_listener(&self) -> Result<Option<MetricsListener>, Error> {
        self.metrics.map(MetricsListener::bind).transpose()
    }

    /// Where actions of administrators are put on record: where the command line says, else in a directory of the server.
    fn audit_log(&self, dir: Option<&Path>) -> Result<Option<AuditLog>, Error> {
        match &self.audit {
            Some(path) => match AuditLog::open(path) {
                Ok(log) => Ok(Some(log)),
                Err(e) => Err(format!(
                    "--audit {}: {e}; give a file that can be written to",
                    path.display()
                )
                .into()),
            },
            None => Ok(dir.map(|dir| AuditLog::at(dir.join(AUDIT_FILE)))),
        }
    }

    /// Whether the supervisor that started this process is dead.
    fn is_orphan(&self) -> bool {
        self.supervised_by
            .is_some_and(|supervisor| !worker::is_child_of(supervisor))
    }

    fn say_listening(&self, endpoints: &[Endpoint]) -> Result<(), Error> {
        let mut text = String::new();
        for endpoint in endpoints {
            if self.supervised_by.is_some() {
                text += &worker::listening_line(endpoint);
            } else if self.json {
                text += &json!({ "listening": endpoint.to_string() }).to_string();
            } else {
                text += &format!("listening on {endpoint}");
            }
            text.push('\n');
        }
        output::print(&text)
    }

    /// Tells the supervisor that a message has asked for the end, not a signal: then it is meant.
    fn say_asked(&self, was_told: &AtomicBool) -> Result<(), Error> {
        if self.supervised_by.is_none() || was_told.load(Ordering::SeqCst) {
            return Ok(());
        }
        output::print(&format!("{}\n", worker::asked_line()))
    }
}

/// Ends the server when a signal says so; the answer says whether one has come.
fn tell_of_signals(name: &str, stop: impl Fn() + Send + 'static) -> Result<Arc<AtomicBool>, Error> {
    tell_of_signals_and(name, stop, |_| {})
}

/// Does so, and calls `heed` with each of them before.
fn tell_of_signals_and(
    name: &str,
    stop: impl Fn() + Send + 'static,
    heed: impl Fn(&'static str) + Send + 'static,
) -> Result<Arc<AtomicBool>, Error> {
    let name = name.to_owned();
    let was_told = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&was_told);
    signals::watch(move |signal| {
        heed(signal);
        told.store(true, Ordering::SeqCst);
        tracing::info!(name, "{signal}, ending");
        stop();
        true
    })?;
    Ok(was_told)
}

/// Makes the directories of sockets.
fn make_parents(endpoints: &[Endpoint]) -> Result<(), Error> {
    for endpoint in endpoints {
        if let Endpoint::Unix(path) = endpoint
            && let Some(parent) = path.parent()
        {
            std::fs::create_dir_all(parent)
                .map_err(|e| format!("--listen: {}: {e}", parent.display()))?;
        }
    }
    Ok(())
}
