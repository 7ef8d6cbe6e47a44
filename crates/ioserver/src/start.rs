//! Starting and ending an I/O server: store, listener, join, threads.
//!
//! The listener exists before the join, so the address that is announced is the real one; connections
//! that come early wait in its queue. A server with disks has its number and start recorded before
//! the first request.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use control::capability::ClusterKey;
use identity::{Keys, local_host};
use keeper::KeeperOptions;
use parking_lot::{Condvar, Mutex};
use serde_json::json;
use serving::{AuditEntry, AuditLog, Running};
use store::{
    Directory, Disk, DiskId, DiskSpec, DiskStore, LimitedDisk, MemoryStore, MissingDisk, Origin,
    Pool, PoolOptions, Store, WatchedDisk, direct_io, measure_speed,
};
use wire::ServerId;
use wire::ask::AskError;
use wire::link::Listener;
use wire::message::catalogue::{LocalAddress, StoreKind};
use wire::message::cluster::NO_START;
use wire::message::session::Counter;
use wire::url::Endpoint;

use crate::ahead::Ahead;
use crate::applied::AppliedTruncates;
use crate::buffers::Buffers;
use crate::context::{Cluster, Identity, Others, Reports, Storage};
use crate::direct::{Direct, QuarantinedMemory};
use crate::directed::Operations;
use crate::failed_syncs::FailedSyncs;
use crate::files::Files;
use crate::gateway::Stages;
use crate::join::{
    Candidate, OwnIdentity, SavedStart, flush, join, load_identity, load_states, may_succeed_later,
    save_state, stay,
};
use crate::kept::{KeptMemory, OpenError, OpenedMemory, Records};
use crate::limits::Limits;
use crate::links::{Links, Peers, server_role};
use crate::ops::{self, Departures};
use crate::owner::Owner;
use crate::rendezvous;
use crate::service::IoService;
use crate::sessions::Sessions;
use crate::statistics::Statistics;
use crate::stored::SubfileStore;
use crate::verifier;

/// How long a server tries to join before it gives up.
const JOIN_PATIENCE: Duration = Duration::from_secs(30);
/// How long requests may take to end when the server stops.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// How long requests under way may take to end by themselves.
const DRAIN_PATIENCE: Duration = Duration::from_secs(5);

/// Where bytes are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreOptions {
    /// In memory: gone with the process, or with its keeper.
    Memory {
        /// Most memory for subfiles.
        limit_bytes: u64,
    },
    /// On disks, behind memory.
    Disk {
        /// Directories, one per disk.
        dirs: Vec<PathBuf>,
        /// Most memory for what is held of them.
        memory_limit_bytes: u64,
    },
}

/// How an I/O server runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the metadata manager listens.
    pub meta: Endpoint,
    /// Where to listen; port 0 takes a free one.
    pub listen: Endpoint,
    /// The address to announce, if it is not the one that is listened on.
    pub advertise: Option<String>,
    /// A Unix socket to listen on besides, for processes of this host.
    pub listen_local: Option<PathBuf>,
    /// What this server can show to others, and wants to be shown by them.
    pub keys: Keys,
    /// Where bytes are kept.
    pub store: StoreOptions,
    /// Bytes of one staging buffer, from 1 KiB on.
    pub buffer_bytes: u64,
    /// Bytes of all staging buffers.
    pub buffers_bytes: u64,
    /// Writes with a longer payload are announced first; measured if `None`.
    pub rendezvous_bytes: Option<u64>,
    /// Longest payload of one message.
    pub message_bytes: u64,
    /// What clients may take.
    pub limits: Limits,
    /// A write is answered when its bytes are safe from the death of this process.
    pub write_through: bool,
    /// Where it keeps its number, and a copy of the list of its disks, to have them again after the next start.
    /// `None` is each of its disks; a server in memory is a new one each time.
    pub state_dir: Option<PathBuf>,
    /// Disks that are missing and are lost for good.
    pub forget_disks: Vec<DiskId>,
    /// How far it is from the clients, in units that only compare.
    pub distance: u64,
    /// Shares memory with clients of its host. `PARIO_DIRECT=0` in its environment forbids it too.
    pub direct: bool,
    /// How long a client that copies from or to shared memory is waited for before what it copies counts no more.
    pub claim_wait: Duration,
    /// How long a client may hold a range that others wait for; a client that stands still is not waited for.
    pub hold_wait: Duration,
    /// How long the host of a client elsewhere may be silent before its connections count as ended.
    pub client_silence: Duration,
    /// How long a client elsewhere may be without a connection before it counts as dead.
    pub client_grace: Duration,
    /// How long a request may wait for room, which others may make meanwhile.
    pub room_wait: Duration,
    /// What users can do when memory is full; then that counts as a lack of space like that of a disk.
    pub when_full: Option<String>,
    /// The pages that its memory is made of.
    pub pages: store::Pages,
    /// Bytes per second of each disk, at most.
    pub disk_bytes_per_s: Option<u64>,
    /// A process that holds the memory when this one dies, for the next start. Of servers that do not write through.
    pub keeper: Option<KeeperOptions>,
    /// Requests that take so long are told in the log.
    pub slow: Option<Duration>,
    /// Where actions of administrators are put on record.
    pub audit: Option<AuditLog>,
}

impl Options {
    /// With another time after which a client elsewhere that is not heard of is dead: most of it may pass in
    /// silence, the rest is for coming back.
    pub fn with_client_lease(mut self, lease: Duration) -> Self {
        self.client_grace = lease / 4;
        self.client_silence = lease - lease / 4;
        self
    }

    /// The usual, with a store.
    pub fn new(meta: Endpoint, listen: Endpoint, store: StoreOptions) -> Self {
        Options {
            meta,
            listen,
            advertise: None,
            listen_local: None,
            keys: Keys::default(),
            write_through: matches!(store, StoreOptions::Disk { .. }),
            store,
            buffer_bytes: 1 << 20,
            buffers_bytes: 64 << 20,
            rendezvous_bytes: None,
            message_bytes: 4 << 20,
            limits: Limits::default(),
            state_dir: None,
            forget_disks: Vec::new(),
            distance: 0,
            direct: true,
            claim_wait: Duration::from_millis(150),
            hold_wait: Duration::from_secs(2),
            client_silence: wire::link::SILENCE,
            client_grace: Duration::from_secs(5),
            room_wait: Duration::from_secs(1),
            when_full: None,
            pages: store::Pages::of_host(),
            disk_bytes_per_s: None,
            keeper: None,
            slow: None,
            audit: None,
        }
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An option is out of its range: its name, and what would be right.
    #[error("{0}: {1}")]
    Option(&'static str, String),
    /// The socket cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(Endpoint, io::Error),
    /// The store cannot be opened.
    #[error("the store cannot be opened: {0}")]
    Store(store::Error),
    /// What a keeper has for the disks of this server cannot be brought there.
    #[error(
        "bytes that were written and not synced are with the keeper of this server and cannot be adopted: {0}; repair that and start again: they wait for it"
    )]
    Adoption(String),
    /// The state directory cannot be used.
    #[error("{0}: {1}")]
    State(PathBuf, io::Error),
    /// The metadata manager was not found or refused.
    #[error("cannot join at the metadata manager on {0}: {1}")]
    Join(Endpoint, AskError),
    /// Another process serves with this memory, or it cannot be had for another reason.
    #[error("{0}")]
    Keeper(keeper::Error),
    /// The memory of the process before belongs to another service.
    #[error(
        "the metadata manager does not know what {0} has in the memory that its keeper kept; it is given up: start the server again"
    )]
    GivenUp(ServerId),
    /// No thread or socket could be made.
    #[error("the system refuses: {0}")]
    System(io::Error),
}

impl From<OpenError> for StartError {
    fn from(error: OpenError) -> StartError {
        match error {
            OpenError::Keeper(e) => StartError::Keeper(e),
            OpenError::Ledger(e) => StartError::Store(e),
        }
    }
}

/// An I/O server that runs.
pub struct IoServer {
    running: Running<IoService>,
    state_dirs: Vec<PathBuf>,
    /// What it leaves there when it has ended in order.
    at_end: SavedStart,
    endpoint: Endpoint,
    local: Option<PathBuf>,
    threads: Vec<JoinHandle<()>>,
}

impl fmt::Debug for IoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoServer")
            .field("endpoint", &self.endpoint)
            .field("server", &self.server())
            .finish_non_exhaustive()
    }
}

/// Joins at the metadata manager, waiting for it if need be, and serves.
pub fn start(options: Options) -> Result<IoServer, StartError> {
    start_on(options, |directory| Arc::new(directory))
}

/// Starts like [`start`] on disks that `disk` makes of the directories, for tests that look at what a disk has to do.
pub fn start_on(
    mut options: Options,
    disk: impl Fn(Directory) -> Arc<dyn Disk>,
) -> Result<IoServer, StartError> {
    check(&options)?;
    if let Some(dir) = &options.state_dir {
        let made = lockfile::make_directory(dir, 0o777);
        made.map_err(|e| StartError::State(dir.clone(), e))?;
    }
    // Before the disks are judged: what was bound to a later start cannot be on one that is missing.
    let states = load_states(&state_dirs(&options));
    let found = states.map_err(|(dir, e)| StartError::State(dir, e))?;
    let last_start = found.map(|saved| saved.incarnation);
    let failed_syncs = Arc::<FailedSyncs>::default();
    let (mut kept, shown) = open_kept(&options)?;
    if let (Some(kept), Some(last), StoreOptions::Disk { .. }) =
        (&mut kept, last_start, &options.store)
    {
        kept.give_up_older_than(last).map_err(StartError::from)?;
    }
    let lacks_keeper = kept.is_none() && options.keeper.is_some() && !options.write_through;
    if lacks_keeper && matches!(options.store, StoreOptions::Disk { .. }) {
        // What was answered from memory would die with this process, and disks are there to be written to.
        options.write_through = true;
        tracing::warn!(
            "writes through: a write is answered when its bytes are in the data file, although it was to write behind; \
             mend what keeps a keeper from starting, and start the server again"
        );
    }
    let OpenedStore {
        stored,
        quarantined,
        next_page,
    } = open_store(&options, last_start, &disk, &failed_syncs, &mut kept)?;
    let kept = kept.map(Arc::new);
    let records = kept
        .as_ref()
        .map_or_else(Records::default, |kept| kept.records());
    let disk_dirs = stored.disk_dirs();
    let notes = options.state_dir.iter().chain(&disk_dirs).cloned();
    let failed_before = failed_syncs.keep_in(notes.collect(), records.clone());
    let state_dirs = options.state_dir.clone().map_or(disk_dirs, |dir| vec![dir]);
    let own = load_identity(&state_dirs).map_err(|(dir, e)| StartError::State(dir, e))?;
    // It may have been made for the keeper.
    let own = match shown {
        Some(OwnIdentity::Made(_)) => OwnIdentity::Made(own.bytes()),
        _ => own,
    };
    let number = found.map(|saved| saved.server);
    let resumes = match &kept {
        Some(kept) if !stored.is_durable() => kept.last_start(),
        _ => resumed_start(&stored, last_start, &own),
    };
    let applied = match stored.is_durable() {
        true => {
            let loaded = AppliedTruncates::load(&state_dirs);
            loaded.map_err(|e| StartError::State(state_dirs[0].clone(), e))?
        }
        false => AppliedTruncates::of_memory(records.clone()),
    };
    let listener = listen(&options.listen)?;
    let endpoint = listener.endpoint().map_err(StartError::System)?;
    let mut listeners = vec![listener];
    let local = options.listen_local.clone().map(Endpoint::Unix);
    if let Some(local) = &local {
        listeners.push(listen(local)?);
    }
    let candidate = Candidate {
        manager: options.meta.clone(),
        keys: options.keys.clone(),
        identity: own.bytes(),
        address: options.advertise.clone().unwrap_or(endpoint.to_string()),
        local: local.as_ref().map(|local| LocalAddress {
            host: local_host(),
            address: local.to_string(),
        }),
        store: match options.store {
            StoreOptions::Memory { .. } => StoreKind::Memory,
            StoreOptions::Disk { .. } => StoreKind::Disk,
        },
        distance: options.distance,
    };
    let (link, joined) = join_patiently(&candidate, number, resumes, stored.room())?;
    let member = joined.member;
    // A manager of another directory, or of an earlier version: it would give out the names of what is here again.
    let is_unknown =
        |kept: &KeptMemory| kept.last_start().is_some_and(|start| !member.keeps(start));
    let given_up = kept.as_deref().filter(|kept| is_unknown(kept));
    if let (Some(kept), None) = (&kept, given_up) {
        // Before the state has it: memory must not seem older than the disks.
        kept.starts(member.incarnation);
    }
    let this_start = SavedStart {
        server: member.server,
        incarnation: member.incarnation,
        life: None,
    };
    for dir in &state_dirs {
        let saved = save_state(dir, this_start);
        saved.map_err(|e| StartError::State(dir.clone(), e))?;
    }
    if let Some(kept) = given_up {
        kept.give_up();
        return Err(StartError::GivenUp(member.server));
    }
    let Ok(key) = <[u8; 32]>::try_from(&joined.key.0[..]) else {
        let error = AskError::Answer(wire::DecodeError::BadNumber);
        return Err(StartError::Join(options.meta, error));
    };
    let key = ClusterKey::new(key);
    let keys = options.keys.clone();
    let role = server_role(member.server, &key);
    let manager = Links::new(options.meta.clone(), role, keys.clone(), Arc::default());
    let peers = Peers::new(member.server, &key, keys);
    let reports = Arc::<Reports>::default();
    let cluster = Cluster::new(manager, peers, joined.members.clone(), Arc::clone(&reports));
    let (cluster, statistics) = (Arc::new(cluster), Arc::<Statistics>::default());
    let sessions = Arc::<Sessions>::default();
    let handed_on = found.and_then(|saved| saved.life);
    let memory_life = match &kept {
        Some(kept) => Some(kept.life(handed_on)),
        None => handed_on,
    };
    let life = verifier::life_of_this_start(failed_before, memory_life);
    let verifiers = verifier::of_this_start(failed_before, life);
    let identity = Arc::new(Identity::new(key, &member, verifiers));
    let storage = Arc::new(Storage {
        identity: Arc::clone(&identity),
        stored,
        kept,
        space_takers: Arc::default(),
        failed_syncs,
        buffers: Buffers::new(
            options.buffer_bytes as usize,
            options.buffers_bytes,
            options.limits.buffer_wait,
        ),
        stages: Stages::new(
            options.message_bytes,
            options.buffers_bytes,
            options.limits.buffer_wait,
        ),
        ahead: Ahead::default(),
        limits: options.limits,
        rendezvous_bytes: options.rendezvous_bytes.unwrap_or_else(rendezvous::measure),
        message_bytes: options.message_bytes,
        write_through: options.write_through,
        lacks_keeper,
        when_full: options.when_full,
        room_wait: options.room_wait,
        reports: Arc::clone(&reports),
        sessions: Arc::clone(&sessions),
        statistics: Arc::clone(&statistics),
    });
    let is_direct = options.direct && std::env::var_os("PARIO_DIRECT").is_none_or(|v| v != "0");
    let direct = Direct::new(is_direct, options.claim_wait);
    let direct = direct.with_records(records, quarantined, next_page);
    let hold_wait = options.hold_wait;
    let files = Files::new(&cluster, &storage, &sessions, direct, applied, hold_wait);
    let files = Arc::new(files);
    let direct = Arc::downgrade(&files.direct);
    let is_durable = storage.stored.is_durable();
    storage.stored.reclaim_with(move || {
        let direct = direct.upgrade();
        direct.is_some_and(|direct| match is_durable {
            true => direct.reclaim(),
            false => direct.reclaim_ahead(),
        })
    });
    let owner = Owner::new(Arc::new(Others(Arc::clone(&files))));
    let owner = Arc::new(owner.with_most_claims(storage.limits.locks));
    owner.members_are(&joined.members);
    let operations = Arc::new(Operations::new(&cluster, &storage));
    let (silence, grace) = (options.client_silence, options.client_grace);
    let departures = Departures::new(grace, silence + grace).map_err(StartError::System)?;
    let service = IoService::new(
        Arc::clone(&files),
        Arc::clone(&owner),
        Arc::clone(&operations),
        departures,
        silence,
    );
    if let Some(audit) = &options.audit {
        for disk in &options.forget_disks {
            audit.note(&AuditEntry {
                by: &member.server.to_string(),
                action: "forget_disk",
                user: rustix::process::geteuid().as_raw(),
                client: None,
                arguments: json!({ "disk": disk.to_string() }),
                refusal: None,
            });
        }
    }
    let service = service.telling(options.slow, options.audit);
    let service = Arc::new(service);
    let mut threads = Vec::new();
    let mut spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
        let spawned = thread::Builder::new().name(name.into()).spawn(run);
        spawned
            .map(|thread| threads.push(thread))
            .map_err(StartError::System)
    };
    let theirs = Arc::clone(&owner);
    spawn("sizes", Box::new(move || flush(&reports, &theirs)))?;
    let theirs = Arc::clone(&files);
    let report = move || stay(&theirs, &owner, &candidate, link);
    spawn("report", Box::new(report))?;
    spawn("prefetch", Box::new(move || operations.prefetch.run()))?;
    let memory = Arc::clone(&storage.stored.memory);
    spawn("memory", Box::new(move || memory.run()))?;
    if storage.stored.is_durable() {
        let write_back = move || {
            let collect = || files.direct.collect_all();
            let storage = &files.storage;
            storage.stored.write_back(&storage.statistics, collect);
        };
        spawn("write back", Box::new(write_back))?;
        spawn("read ahead", Box::new(move || storage.ahead.run(&storage)))?;
    }
    let running = serving::start(service, listeners, options.keys);
    Ok(IoServer {
        running: running.map_err(StartError::System)?,
        state_dirs,
        at_end: SavedStart {
            life: Some(life),
            ..this_start
        },
        endpoint,
        local: options.listen_local,
        threads,
    })
}

/// A socket that every user may connect to; what a client may do, its session and its capabilities say.
fn listen(endpoint: &Endpoint) -> Result<Listener, StartError> {
    let failed = |e| StartError::Listen(endpoint.clone(), e);
    let listener = Listener::bind(endpoint).map_err(failed)?;
    if let Endpoint::Unix(path) = endpoint {
        fs::set_permissions(path, fs::Permissions::from_mode(0o666)).map_err(failed)?;
    }
    Ok(listener)
}

fn check(options: &Options) -> Result<(), StartError> {
    let refuse = |name, why: String| Err(StartError::Option(name, why));
    if !(1 << 10..=1 << 30).contains(&options.buffer_bytes) {
        return refuse(
            "buffer_bytes",
            format!("{} is not between 1 KiB and 1 GiB", options.buffer_bytes),
        );
    }
    if options.buffers_bytes < options.buffer_bytes {
        return refuse(
            "buffers_bytes",
            format!(
                "{} bytes hold no buffer of {}",
                options.buffers_bytes, options.buffer_bytes
            ),
        );
    }
    if !(4 << 10..=wire::frame::MAX_PAYLOAD_BYTES).contains(&options.message_bytes) {
        return refuse(
            "message_bytes",
            format!("{} is not between 4 KiB and 1 GiB", options.message_bytes),
        );
    }
    match &options.store {
        StoreOptions::Memory { limit_bytes: limit }
        | StoreOptions::Disk {
            memory_limit_bytes: limit,
            ..
        } if *limit < store::CHUNK => refuse(
            "memory limit",
            format!("{limit} bytes; at least {} are needed", store::CHUNK),
        ),
        StoreOptions::Disk { dirs, .. } if dirs.is_empty() => {
            refuse("dirs", "a disk store needs at least one directory".into())
        }
        _ => Ok(()),
    }
}

/// Where its number may be.
fn state_dirs(options: &Options) -> Vec<PathBuf> {
    match (&options.state_dir, &options.store) {
        (Some(dir), _) => vec![dir.clone()],
        (None, StoreOptions::Disk { dirs, .. }) => dirs.clone(),
        (None, StoreOptions::Memory { .. }) => Vec::new(),
    }
}

/// The start from which on this server has what it took. Memory that was not adopted has nothing of the last start, neither
/// bytes nor what was done to them, nor have disks on which a server that was a member finds no store.
fn resumed_start(stored: &SubfileStore, noted: Option<u64>, identity: &OwnIdentity) -> Option<u64> {
    let disks = stored.on_disks()?;
    match (noted, identity) {
        (Some(start), _) => Some(start),
        (None, OwnIdentity::Found(_)) if disks.is_begun_now() => None,
        (None, _) => Some(NO_START),
    }
}

/// Reaches the keeper of a server that answers writes from memory, or the one that a start before has left, which did. A server for which
/// there can be none goes on without.
/// Whom it shows itself as to the keeper is returned too.
fn open_kept(options: &Options) -> Result<(Option<KeptMemory>, Option<OwnIdentity>), StartError> {
    let has_memory =
        |keeper: &&KeeperOptions| keeper::look(&keeper.dir).is_ok_and(|k| k.descriptors > 0);
    let is_needed = |keeper: &&KeeperOptions| !options.write_through || has_memory(keeper);
    let Some(keeper) = options.keeper.as_ref().filter(is_needed) else {
        return Ok((None, None));
    };
    let mut dirs = state_dirs(options);
    // Disks that are missing are found out later. A server that has none yet begins with the first.
    if !dirs.iter().any(|dir| dir.is_dir()) {
        dirs.truncate(1);
        for dir in &dirs {
            let made = lockfile::make_directory(dir, 0o777);
            made.map_err(|e| StartError::State(dir.clone(), e))?;
        }
    }
    dirs.retain(|dir| dir.is_dir());
    let identity = load_identity(&dirs).map_err(|(dir, e)| StartError::State(dir, e))?;
    // What was kept of another server, or before a boot, is none of this one's.
    let seal = control::capability::seal(b"pario memory", &[&identity.bytes()]);
    let stamp = [identity::boot().as_bytes(), &seal[..]].concat();
    match KeptMemory::open(keeper, &stamp) {
        Ok(kept) => Ok((Some(kept), Some(identity))),
        Err(OpenError::Keeper(error @ keeper::Error::Held(..))) => Err(StartError::Keeper(error)),
        // Disks are not served without what is newer than they are.
        Err(OpenError::Keeper(error))
            if has_memory(&keeper) && matches!(options.store, StoreOptions::Disk { .. }) =>
        {
            Err(StartError::Keeper(error))
        }
        Err(error) => {
            tracing::warn!(%error, "no keeper: what is in memory dies with this process");
            Ok((None, Some(identity)))
        }
    }
}

/// A store, and what is left of clients of the process before.
struct OpenedStore {
    stored: SubfileStore,
    quarantined: Option<QuarantinedMemory>,
    next_page: u64,
}

impl OpenedStore {
    fn new(stored: SubfileStore) -> OpenedStore {
        OpenedStore {
            stored,
            quarantined: None,
            next_page: 0,
        }
    }
}

fn open_store(
    options: &Options,
    last_start: Option<u64>,
    make: &dyn Fn(Directory) -> Arc<dyn Disk>,
    failed_syncs: &Arc<FailedSyncs>,
    kept: &mut Option<KeptMemory>,
) -> Result<OpenedStore, StartError> {
    let pool_options = |limit_bytes: u64| PoolOptions {
        pages: options.pages,
        ..PoolOptions::for_limit(limit_bytes)
    };
    let pool = |limit_bytes: u64| Pool::new(pool_options(limit_bytes));
    match &options.store {
        StoreOptions::Memory { limit_bytes } => {
            let Some(kept) = kept else {
                let pool = pool(*limit_bytes);
                let store = Arc::new(MemoryStore::new(pool.clone()));
                return Ok(OpenedStore::new(SubfileStore::memory(store, pool)));
            };
            let opened = kept.open_memory(&pool_options(*limit_bytes), options.claim_wait);
            let opened = opened.map_err(StartError::from)?;
            let found = opened.store.list().map_err(StartError::Store)?;
            let ids = found.into_iter().map(|identity| identity.id).collect();
            let stored = SubfileStore::memory(Arc::new(opened.store), opened.pool);
            stored.has_found(ids);
            Ok(OpenedStore {
                stored,
                quarantined: opened.quarantined,
                next_page: opened.next_page,
            })
        }
        StoreOptions::Disk {
            dirs,
            memory_limit_bytes,
        } => {
            let mut disks = Vec::with_capacity(dirs.len());
            for dir in dirs {
                let in_dir = |e| StartError::State(dir.clone(), e);
                let io = direct_io::kept(dir).map_err(in_dir)?;
                let directory = Directory::at(dir).map_err(in_dir)?.with_io(io);
                let watched = WatchedDisk::by(make(directory), Arc::clone(failed_syncs));
                let mut disk: Arc<dyn Disk> = Arc::new(watched);
                if let Some(rate) = options.disk_bytes_per_s {
                    disk = Arc::new(LimitedDisk::new(disk, rate));
                }
                disks.push(DiskSpec::of(disk));
            }
            let beside = match &options.state_dir {
                Some(dir) => {
                    let directory = Directory::at(dir);
                    let directory = directory.map_err(|e| StartError::State(dir.clone(), e))?;
                    Some(Arc::new(directory) as Arc<dyn Disk>)
                }
                None => None,
            };
            let origin = Origin {
                beside,
                forget: options.forget_disks.clone(),
                last_start,
                ..Origin::default()
            };
            let opened = match kept {
                Some(kept) => {
                    let start = |pool: Pool, ledger| {
                        let ledger = Some(ledger);
                        DiskStore::start(pool, disks, Origin { ledger, ..origin })
                    };
                    let options_of_pool = pool_options(*memory_limit_bytes);
                    let opened = kept.open_disks(&options_of_pool, options.claim_wait, start);
                    opened.map_err(StartError::Adoption)?
                }
                None => {
                    let pool = pool(*memory_limit_bytes);
                    let store = DiskStore::start(pool.clone(), disks, origin);
                    OpenedMemory {
                        store: store.map_err(StartError::Store)?,
                        pool,
                        quarantined: None,
                        next_page: 0,
                    }
                }
            };
            let set = opened.store.disks();
            for k in (0..set.len()).filter(|_| set.len() > 1) {
                let started = Instant::now();
                let speed = measure_speed(&**set.disk(k), &|| started.elapsed());
                // One that cannot be measured is declared failed when it is used.
                set.declare(k, speed.unwrap_or(1), 0);
            }
            Ok(OpenedStore {
                stored: SubfileStore::disk(Arc::new(opened.store), opened.pool),
                quarantined: opened.quarantined,
                next_page: opened.next_page,
            })
        }
    }
}

fn join_patiently(
    candidate: &Candidate,
    server: Option<ServerId>,
    resumes: Option<u64>,
    room: (u64, u64),
) -> Result<(wire::link::Link, wire::message::cluster::JoinAnswer), StartError> {
    let deadline = Instant::now() + JOIN_PATIENCE;
    let mut pause = Duration::from_millis(10);
    loop {
        match join(candidate, server, resumes, None, room) {
            Ok(joined) => return Ok(joined),
            Err(e) if may_succeed_later(&e) && Instant::now() < deadline => {
                wait(pause);
                pause = (pause * 2).min(Duration::from_millis(500));
            }
            Err(e) => return Err(StartError::Join(candidate.manager.clone(), e)),
        }
    }
}

/// Nothing tells when a peer that is not there comes: a manager that is to listen, a client that is
/// to connect again.
pub(crate) fn wait(pause: Duration) {
    let (never, condition) = (Mutex::new(()), Condvar::new());
    condition.wait_for(&mut never.lock(), pause);
}

impl IoServer {
    /// Where it listens.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Its number in the service.
    pub fn server(&self) -> ServerId {
        self.running.service().files.identity.server
    }

    /// Disks that belong to it and are not there: what is on them is refused.
    pub fn missing_disks(&self) -> &[MissingDisk] {
        self.running.service().files.storage.stored.missing()
    }

    /// Waits until an operator asks for the end.
    pub fn wait(&self) {
        self.running.service().wait();
    }

    /// What was counted since the start.
    pub fn statistics(&self) -> Vec<Counter> {
        let service = self.running.service();
        ops::statistics(&service.files, &service.owner)
    }

    /// Tells what was counted from another thread, as long as the server serves.
    pub fn reporter(&self) -> impl Fn() -> Option<Vec<Counter>> + Send + Sync + use<> {
        let service = Arc::downgrade(self.running.service());
        move || {
            let service = service.upgrade()?;
            Some(ops::statistics(&service.files, &service.owner))
        }
    }

    /// Handlers that panicked; each is a bug.
    pub fn panics(&self) -> u64 {
        self.running.panics()
    }

    /// Lets [`IoServer::wait`] return.
    pub fn end(&self) {
        self.running.service().end();
    }

    /// Does the same from another thread: a signal has come.
    pub fn stopper(&self) -> impl Fn() + Send + Sync + use<> {
        let service = Arc::downgrade(self.running.service());
        move || {
            if let Some(service) = service.upgrade() {
                service.end();
            }
        }
    }

    /// Ends all connections, makes everything durable, and leaves. Memory ends with it, unless its bytes could not be brought to the disks.
    pub fn stop(self) {
        if let Ending::Nothing(Some(kept)) | Ending::Memory(Some(kept)) = self.end_all() {
            kept.end();
        }
    }

    /// Does the same, but leaves a memory store that a keeper keeps for the next start.
    pub fn leave(self) {
        if let Ending::Nothing(Some(kept)) = self.end_all() {
            kept.end();
        }
    }

    fn end_all(self) -> Ending {
        let service = Arc::clone(self.running.service());
        if !self.running.drain(DRAIN_PATIENCE) {
            tracing::warn!(
                "requests under way are cut off: they did not end in {DRAIN_PATIENCE:?}"
            );
        }
        self.running.stop(STOP_PATIENCE);
        let (files, storage) = (&service.files, &service.files.storage);
        service.owner.flush_dirty_sizes();
        storage.stored.stop();
        storage.ahead.stop();
        service.operations.prefetch.stop();
        files.cluster.reports.stop();
        for thread in self.threads {
            let _ = thread.join();
        }
        files.direct.end();
        let closed = storage.stored.close();
        if let Endpoint::Unix(path) = &self.endpoint {
            let _ = fs::remove_file(path);
        }
        if let Some(path) = &self.local {
            let _ = fs::remove_file(path);
        }
        let kept = storage.kept.clone();
        if storage.stored.is_durable() && closed.is_ok() && !storage.failed_syncs.has_failed() {
            for dir in &self.state_dirs {
                // The next start vouches for less then.
                if let Err(error) = save_state(dir, self.at_end) {
                    tracing::warn!(%error, dir = %dir.display(), "the end of this start is not on record");
                }
            }
        }
        match closed {
            _ if !storage.stored.is_durable() => Ending::Memory(kept),
            Ok(()) => Ending::Nothing(kept),
            Err(error) => {
                let lost = match kept {
                    Some(_) => "its keeper has it for the next start, for a while",
                    None => "it is lost, and who synced it was told",
                };
                tracing::error!(%error, "not everything could be written to the disks; {lost}");
                Ending::Disks
            }
        }
    }
}

/// What a server leaves that has ended in order.
enum Ending {
    /// Nothing but what is on its disks.
    Nothing(Option<Arc<KeptMemory>>),
    /// Its memory, which is its store.
    Memory(Option<Arc<KeptMemory>>),
    /// Bytes in memory that its disks have not.
    Disks,
}
