//! Starting and stopping the metadata manager.
//!
//! Everything that can be refused is refused before the first connection is accepted, and moves of an
//! earlier start are given up by then. Stopping ends connections, then the catalogue, then gives the
//! directory back.

use std::fmt;
use std::fs;
use std::io;
use std::net::ToSocketAddrs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use identity::Keys;
use meta::MetaError;
use meta::catalogue::{Batch, Catalogue, OpenLimits};
use parking_lot::{Condvar, Mutex};
use serving::{AuditLog, Running, Watch, this_process};
use wire::link::Listener;
use wire::message::session::Counter;
use wire::url::Endpoint;

use crate::backing::Backing;
use crate::committer::{Committer, Refused};
use crate::directory::Directory;
use crate::elsewhere::Mark;
use crate::manager::Manager;
use crate::servers::Connectors;
use crate::stamps::Stamps;
use crate::timer::Timer;
use crate::trust::Trust;

/// How long connections may take to finish what they do.
const PATIENCE: Duration = Duration::from_secs(5);

/// How a metadata manager is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the catalogue, the key and the lock are; made if it does not exist.
    pub dir: PathBuf,
    /// Where to listen.
    pub listen: Vec<Endpoint>,
    /// What peers on TCP have to know; without a secret of users only this host may connect, and without one
    /// of servers only servers of this host may join.
    pub keys: Keys,
    /// Whom clients on other hosts work for.
    pub trust: Trust,
    /// How long capabilities are good.
    pub capability_seconds: u64,
    /// How long clients have to open their files again after a restart.
    pub recovery: Duration,
    /// How long requests of clients that are not back after a restart are remembered: so long a client may try
    /// to repeat one.
    pub remembering: Duration,
    /// How long an I/O server may be silent.
    pub member_timeout: Duration,
    /// How long the host of a client elsewhere may be silent before its connections count as ended.
    pub client_silence: Duration,
    /// How long a client elsewhere may be without a connection before it counts as dead.
    pub client_grace: Duration,
    /// Most connections.
    pub connections: serving::Limits,
    /// Most files that a client has open; all clients of a user together have [`serving::CLIENTS_OF_A_USER`] times as many.
    pub open_files: u64,
    /// What stands behind the catalogue.
    pub backing: Option<Arc<dyn Backing>>,
    /// Where the supervisor that started this process writes down what it knows about the service.
    pub supervisor_note: Option<PathBuf>,
    /// Requests that take so long are told in the log.
    pub slow: Option<Duration>,
    /// Where actions of administrators are put on record.
    pub audit: Option<AuditLog>,
}

/// How long a client elsewhere may be without a connection, unless told otherwise.
const CLIENT_GRACE: Duration = Duration::from_secs(5);

impl Options {
    /// With another time after which a client elsewhere that the servers hear nothing of is dead: most of it may pass in
    /// silence, the rest is for coming back.
    pub fn with_client_lease(mut self, lease: Duration) -> Options {
        self.client_grace = lease / 4;
        self.client_silence = lease - lease / 4;
        self
    }

    /// The usual ones, without anywhere to listen.
    pub fn new(dir: impl Into<PathBuf>) -> Options {
        Options {
            dir: dir.into(),
            listen: Vec::new(),
            keys: Keys::default(),
            trust: Trust::default(),
            capability_seconds: 86_400,
            recovery: Duration::from_secs(3),
            remembering: Duration::from_secs(600),
            member_timeout: Duration::from_secs(10),
            client_silence: wire::link::SILENCE,
            client_grace: CLIENT_GRACE,
            connections: serving::Limits::default(),
            open_files: 1 << 16,
            backing: None,
            supervisor_note: None,
            slow: None,
            audit: None,
        }
    }
}

/// Why a metadata manager was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another process serves the directory.
    #[error("{0}: another metadata manager serves this directory; stop it or use another one")]
    Served(PathBuf),
    /// The directory or a file in it cannot be used.
    #[error("{0}: {1}")]
    Directory(PathBuf, io::Error),
    /// The key is not one.
    #[error("{0}: a key has 32 bytes; restore the file that belongs to the catalogue")]
    BadKey(PathBuf),
    /// The catalogue cannot be opened.
    #[error("{0}: {1}")]
    Catalogue(PathBuf, Box<MetaError>),
    /// There is nowhere to listen.
    #[error("listen: name at least one endpoint")]
    NoListener,
    /// Others than this host could connect, and nothing keeps them out.
    #[error(
        "{0}: listening beyond this host needs a secret (PARIO_SECRET) or certificates \
         (PARIO_TLS_CERT); give one, or listen on a loopback address"
    )]
    NeedsSecret(Endpoint),
    /// It cannot listen there.
    #[error("{0}: {1}")]
    Listen(Endpoint, io::Error),
    /// The system gives no thread or descriptor.
    #[error(transparent)]
    System(io::Error),
    /// The catalogue failed at once.
    #[error("{0}")]
    Failed(String),
}

impl From<Refused> for StartError {
    fn from(refused: Refused) -> Self {
        StartError::Failed(refused.to_string())
    }
}

/// A metadata manager that serves. Dropping it stops it.
pub struct MetaServer {
    manager: Arc<Manager>,
    running: Running<Manager>,
    /// Given back last.
    _directory: Directory,
}

impl fmt::Debug for MetaServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetaServer")
            .field("endpoints", &self.running.endpoints())
            .finish_non_exhaustive()
    }
}

/// Opens the catalogue and listens; returns when it serves.
pub fn start(options: Options) -> Result<MetaServer, StartError> {
    if options.listen.is_empty() {
        return Err(StartError::NoListener);
    }
    for endpoint in &options.listen {
        if options.keys.user.is_none() && options.keys.tls.is_none() && !is_of_this_host(endpoint)?
        {
            return Err(StartError::NeedsSecret(endpoint.clone()));
        }
    }
    let directory = Directory::take(&options.dir)?;
    let key = directory.key()?;
    let path = directory.catalogue();
    let opened = |e| StartError::Catalogue(path.clone(), Box::new(e));
    let mut catalogue = Catalogue::open(&path).map_err(opened)?;
    let client = usize::try_from(options.open_files).unwrap_or(usize::MAX);
    catalogue.limit_open(OpenLimits {
        client,
        user: client.saturating_mul(serving::CLIENTS_OF_A_USER),
    });
    let starts = catalogue.starts().map_err(opened)?;
    let is_recovering = catalogue.is_recovering();
    let settled = catalogue.settled();
    // Where memory cannot be shared, clients ask each time.
    let stamps = match options.backing {
        Some(_) => None,
        None => Mark::of(directory.elsewhere())
            .and_then(|mark| Stamps::new(starts, mark))
            .ok()
            .map(Arc::new),
    };
    if let Some(stamps) = &stamps {
        catalogue.stamp_changes(Arc::clone(stamps) as _);
    }
    let committer = Committer::start(catalogue).map_err(StartError::System)?;
    let timer = Timer::start().map_err(StartError::System)?;
    let watch = Watch::start().map_err(StartError::System)?;
    let connectors = Connectors::start().map_err(StartError::System)?;
    let manager = Arc::new_cyclic(|this| Manager {
        this: this.clone(),
        key,
        keys: options.keys.clone(),
        trust: options.trust.clone(),
        backing: options.backing.clone(),
        supervisor_note: options.supervisor_note.clone(),
        user: rustix::process::geteuid().as_raw(),
        host: this_process().host,
        starts,
        since: Instant::now(),
        capability_ms: options.capability_seconds.saturating_mul(1000),
        member_timeout: options.member_timeout,
        client_silence: options.client_silence,
        client_grace: options.client_grace,
        connection_limits: options.connections,
        connections: serving::PerUser::new(
            "connections",
            "--connections-per-user",
            options.connections.connections_per_user,
        ),
        committer,
        clients: Arc::default(),
        next_client: AtomicU64::new(1),
        next_own_request: AtomicU64::new(1),
        members: Default::default(),
        moves: Default::default(),
        teams: Default::default(),
        profiles: Default::default(),
        judging: Mutex::default(),
        round_robin: Default::default(),
        timer,
        trees: Default::default(),
        connectors,
        watch,
        settled,
        stamps,
        looks_again: AtomicU64::new(0),
        idle_links: Default::default(),
        backups: Default::default(),
        requests: Default::default(),
        slow: options.slow,
        audit: options.audit.clone(),
        noted: AtomicU64::new(0),
        is_ending: AtomicBool::new(false),
        asked_to_end: Mutex::new(false),
        ended: Condvar::new(),
    });
    let this = Arc::downgrade(&manager);
    manager.committer.when_failed(move || {
        if let Some(manager) = this.upgrade() {
            manager.end();
        }
    });
    let running = serve(&manager, &options, is_recovering);
    match running {
        Ok(running) => Ok(MetaServer {
            manager,
            running,
            _directory: directory,
        }),
        Err(e) => {
            end(&manager);
            Err(e)
        }
    }
}

fn serve(
    manager: &Arc<Manager>,
    options: &Options,
    is_recovering: bool,
) -> Result<Running<Manager>, StartError> {
    let members = manager.snapshot()?.members().map_err(Refused::from)?;
    let mut listeners = Vec::new();
    for endpoint in &options.listen {
        let failed = |e| StartError::Listen(endpoint.clone(), e);
        listeners.push(Listener::bind(endpoint).map_err(failed)?);
        if let Endpoint::Unix(path) = endpoint {
            // Everybody may connect: the kernel says who it is, and the catalogue what he may do.
            fs::set_permissions(path, fs::Permissions::from_mode(0o666)).map_err(failed)?;
        }
    }
    let running = serving::start(Arc::clone(manager), listeners, options.keys.clone())
        .map_err(StartError::System)?;
    manager.expect_members(&members);
    manager.resume_moves()?;
    let this = manager.this();
    manager.trees.start(this).map_err(StartError::System)?;
    if is_recovering {
        let this = manager.this();
        manager.timer.after(options.remembering, move || {
            if let Some(manager) = this.upgrade() {
                let clients = Arc::clone(&manager.clients);
                let forget = move |b: &mut Batch<'_>| {
                    b.forget_absent(|client| clients.has(client));
                    Ok(())
                };
                // A store that failed remembers nothing.
                let _ = manager.committer.run(forget);
            }
        });
        let this = manager.this();
        manager.timer.after(options.recovery, move || {
            if let Some(manager) = this.upgrade() {
                // A store that failed has no files to clear away.
                let _ = manager.committer.run(|b| Ok(b.end_recovery()?));
            }
        });
    }
    Ok(running)
}

fn is_of_this_host(endpoint: &Endpoint) -> Result<bool, StartError> {
    match endpoint {
        Endpoint::Unix(_) => Ok(true),
        Endpoint::Tcp { host, port } => {
            let mut addresses = (host.as_str(), *port)
                .to_socket_addrs()
                .map_err(|e| StartError::Listen(endpoint.clone(), e))?;
            Ok(addresses.all(|address| address.ip().is_loopback()))
        }
    }
}

/// Ends the threads and closes the catalogue.
fn end(manager: &Manager) {
    manager.is_ending.store(true, Ordering::SeqCst);
    manager.end();
    manager.moves.cut();
    manager.timer.stop();
    manager.trees.stop();
    manager.connectors.stop();
    manager.keep_profiles();
    manager.committer.stop();
    if let Some(stamps) = &manager.stamps {
        stamps.end();
    }
}

impl MetaServer {
    /// Where it listens, with the ports it was given.
    pub fn endpoints(&self) -> &[Endpoint] {
        self.running.endpoints()
    }

    /// Returns when a client has asked for a shutdown.
    pub fn wait(&self) {
        let mut asked = self.manager.asked_to_end.lock();
        self.manager.ended.wait_while(&mut asked, |asked| !*asked);
    }

    /// Lets [`MetaServer::wait`] return, from another thread: a signal has come.
    pub fn stopper(&self) -> impl Fn() + Send + Sync + use<> {
        let manager = Arc::downgrade(&self.manager);
        move || {
            if let Some(manager) = manager.upgrade() {
                manager.end();
            }
        }
    }

    /// Why it cannot go on, if the catalogue's store has failed: then [`MetaServer::wait`] returns,
    /// and another start finds what is durable.
    pub fn failure(&self) -> Option<String> {
        self.manager.committer.failure()
    }

    /// Tells what was counted from another thread, as long as the manager serves and its catalogue can be read.
    pub fn reporter(&self) -> impl Fn() -> Option<Vec<Counter>> + Send + Sync + use<> {
        let manager = Arc::downgrade(&self.manager);
        move || {
            let manager = manager.upgrade()?;
            let can_write = manager.committer.failure().is_none();
            manager.statistics().ok().filter(|_| can_write)
        }
    }

    /// Clients that are connected.
    pub fn clients(&self) -> usize {
        self.manager.clients.len()
    }

    /// Ends all connections, closes the catalogue and gives the directory back. I/O servers go on
    /// and join the next metadata manager of the directory.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for MetaServer {
    fn drop(&mut self) {
        // What was asked is answered; moves of files go on from where they are.
        self.running.drain(PATIENCE);
        self.manager.is_ending.store(true, Ordering::SeqCst);
        self.running.stop(PATIENCE);
        end(&self.manager);
        for endpoint in self.running.endpoints() {
            if let Endpoint::Unix(path) = endpoint {
                // It may be gone with its directory.
                let _ = fs::remove_file(path);
            }
        }
    }
}
