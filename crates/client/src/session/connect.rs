//! How a service is reached: addresses, limits of waiting, the secret.
//!
//! `PARIO_SECRET` names a file with the secret, `PARIO_TLS_CA`, `PARIO_TLS_CERT` and `PARIO_TLS_KEY` the files of
//! certificates (the URL may name them too), `PARIO_TIMEOUT` the seconds for which a server that
//! cannot be reached is tried again, `PARIO_STRATEGY` the way of accesses through views with gaps
//! and of collective ones (the words of the hint `strategy`), `PARIO_MAPPING` the servers that are talked to,
//! `PARIO_BUDDY` the number of the server to begin with, `PARIO_HINTS` a file with hints of a compiler or a job
//! script, and `PARIO_DIRECT=0` sends everything by message, also to servers of
//! this host. `PARIO_PROFILE=0` records nothing of how files are used, and `PARIO_APPLICATION` names the program in
//! their profiles. All can be given in [`ConnectOptions`] instead; the
//! environment is read only by [`ConnectOptions::from_env`].

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use advise::mapping::Strategy as Mapping;
use identity::{Keys, Secret, Tls, TlsFiles};
use wire::ServerId;
use wire::url::{Endpoint, TlsNames};

use crate::collective::strategy::Strategy;
use crate::error::{Error, Result};
use crate::hints::Hints;
use crate::hints::handle_hints::CompilerHints;
use crate::transport::patience::Patience;

/// Says where the metadata manager is. Asked again whenever the connection has to be made again, so
/// that a directory that is served by changing processes stays reachable.
pub trait Connector: Send + Sync + fmt::Debug {
    /// Where it listens now; may first start a manager.
    fn endpoint(&self) -> Result<Endpoint>;
}

impl Connector for Endpoint {
    fn endpoint(&self) -> Result<Endpoint> {
        Ok(self.clone())
    }
}

/// Limits and credentials of a client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// What proves to servers on other hosts that this client belongs to them, and they to it.
    pub keys: Keys,
    /// How long a server that cannot be reached is tried again, counted from when it was first found away.
    pub timeout: Duration,
    /// How long making one connection may take.
    pub connect_timeout: Duration,
    /// How long a server that says it is busy is asked again.
    pub busy_timeout: Duration,
    /// How long an answer may take once the request was sent. Locks are waited for without limit.
    pub answer_timeout: Duration,
    /// Which servers the client talks to: all that have bytes of a request, or one per file.
    pub mapping: Mapping,
    /// Whether payloads carry checksums on their way; `None` is over networks only.
    pub checksums: Option<bool>,
    /// The server to begin with, if the service's choice is not wanted.
    pub buddy: Option<ServerId>,
    /// How accesses through views with gaps are done, unless a file's hints say otherwise.
    pub strategy: Strategy,
    /// Whether bytes at servers of this host are copied directly, unless a file's hints say otherwise.
    pub direct: bool,
    /// Hints for all files of this client; static ones only.
    pub hints: Hints,
    /// Hints that a compiler or a job script left.
    pub compiler_hints: Arc<CompilerHints>,
    /// Whether the use of files is recorded, unless a file's hints say otherwise.
    pub profile: bool,
    /// The name of the application in profiles; that of the program if not given.
    pub application: Option<String>,
    /// Which process of how many this is; known from the environment of MPI programs.
    pub rank: Option<(u64, u64)>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        ConnectOptions {
            keys: Keys::default(),
            timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            busy_timeout: Duration::from_secs(600),
            answer_timeout: Duration::from_secs(120),
            mapping: Mapping::default(),
            checksums: None,
            buddy: None,
            strategy: Strategy::default(),
            direct: true,
            hints: Hints::new(),
            compiler_hints: Arc::default(),
            profile: true,
            application: None,
            rank: None,
        }
    }
}

impl ConnectOptions {
    /// For one operation.
    pub(crate) fn patience(&self) -> Patience {
        Patience::new(self.timeout, self.busy_timeout)
    }

    /// What the environment says; the defaults where it says nothing.
    pub fn from_env() -> Result<ConnectOptions> {
        ConnectOptions::default().and_env()
    }

    /// With what the environment says in place of what is here.
    pub fn and_env(self) -> Result<ConnectOptions> {
        let mut options = self;
        if let Some(path) = std::env::var_os("PARIO_SECRET").filter(|v| !v.is_empty()) {
            options = options.with_secret_file(Path::new(&path))?;
        }
        let names = tls_names_of_environment();
        if names != TlsNames::default() {
            options = options.with_tls(&names)?;
        }
        if let Ok(text) = std::env::var("PARIO_TIMEOUT")
            && !text.is_empty()
        {
            let timeout = text
                .parse()
                .ok()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .filter(|t| !t.is_zero())
                .ok_or_else(|| {
                    Error::argument("PARIO_TIMEOUT", format!("'{text}' is no number of seconds"))
                })?;
            options = options.with_timeout(timeout);
        }
        if let Ok(text) = std::env::var("PARIO_STRATEGY")
            && !text.is_empty()
        {
            options.strategy = Strategy::of(&text).ok_or_else(|| {
                let why = format!("'{text}' is no strategy; give one of {}", Strategy::words());
                Error::argument("PARIO_STRATEGY", why)
            })?;
        }
        if let Ok(text) = std::env::var("PARIO_DIRECT")
            && !text.is_empty()
        {
            options.direct = crate::hints::is_on(&text).ok_or_else(|| {
                let why = format!("is '{text}'; give 1 or 0");
                Error::argument("PARIO_DIRECT", why)
            })?;
        }
        if let Some(path) = std::env::var_os("PARIO_HINTS").filter(|v| !v.is_empty()) {
            options.compiler_hints = Arc::new(CompilerHints::read(Path::new(&path))?);
        }
        if let Ok(text) = std::env::var("PARIO_PROFILE")
            && !text.is_empty()
        {
            options.profile = crate::hints::is_on(&text).ok_or_else(|| {
                let why = format!("is '{text}'; give 1 or 0");
                Error::argument("PARIO_PROFILE", why)
            })?;
        }
        if let Ok(name) = std::env::var("PARIO_APPLICATION")
            && !name.is_empty()
        {
            options.application = Some(name);
        }
        options.rank = options.rank.or_else(rank_of_environment);
        if let Ok(text) = std::env::var("PARIO_CHECKSUMS")
            && !text.is_empty()
        {
            let is_on = crate::hints::is_on(&text).ok_or_else(|| {
                let why = format!("is '{text}'; give 1 or 0");
                Error::argument("PARIO_CHECKSUMS", why)
            })?;
            options.checksums = Some(is_on);
        }
        if let Ok(text) = std::env::var("PARIO_MAPPING")
            && !text.is_empty()
        {
            let parsed = text.parse::<Mapping>();
            options.mapping =
                parsed.map_err(|e| Error::argument("PARIO_MAPPING", e.to_string()))?;
        }
        if let Ok(text) = std::env::var("PARIO_BUDDY")
            && !text.is_empty()
        {
            let number = text.parse().map_err(|_| {
                let why = format!("'{text}' is no number of a server; `pario status` lists them");
                Error::argument("PARIO_BUDDY", why)
            })?;
            options.buddy = Some(ServerId(number));
        }
        Ok(options)
    }

    /// The name of the application in profiles.
    pub(crate) fn application(&self) -> String {
        if let Some(name) = &self.application {
            return name.clone();
        }
        let program = std::env::args_os().next().unwrap_or_default();
        let name = Path::new(&program).file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// With or without recording how files are used.
    pub fn with_profile(mut self, profile: bool) -> ConnectOptions {
        self.profile = profile;
        self
    }

    /// With a name in profiles.
    pub fn with_application(mut self, name: &str) -> ConnectOptions {
        self.application = Some(name.to_owned());
        self
    }

    /// As one of several processes.
    pub fn with_rank(mut self, rank: u64, processes: u64) -> ConnectOptions {
        self.rank = Some((rank, processes));
        self
    }

    /// With or without checksums of payloads on their way, whatever the transport.
    pub fn with_checksums(mut self, checksums: bool) -> ConnectOptions {
        self.checksums = Some(checksums);
        self
    }

    /// With or without direct access.
    pub fn with_direct(mut self, direct: bool) -> ConnectOptions {
        self.direct = direct;
        self
    }

    /// With hints for all files. Dynamic ones are refused: they are about a moment of a run.
    pub fn with_hints(mut self, hints: Hints) -> Result<ConnectOptions> {
        if let Some(name) = hints.dynamic() {
            let why = format!("{name} is dynamic; give it to an open file with File::set_hints");
            return Err(Error::argument("hints", why));
        }
        self.hints = hints;
        Ok(self)
    }

    /// With hints that a compiler or a job script left.
    pub fn with_compiler_hints(mut self, hints: CompilerHints) -> ConnectOptions {
        self.compiler_hints = Arc::new(hints);
        self
    }

    /// Talking to servers in another way.
    pub fn with_mapping(mut self, mapping: Mapping) -> ConnectOptions {
        self.mapping = mapping;
        self
    }

    /// With a buddy of one's own choice.
    pub fn with_buddy(mut self, server: ServerId) -> ConnectOptions {
        self.buddy = Some(server);
        self
    }

    /// With the secret in a file.
    pub fn with_secret_file(mut self, path: &Path) -> Result<ConnectOptions> {
        let secret = Secret::read(path).map_err(|e| {
            let (text, name) = (e.to_string(), path.display().to_string());
            let is_named = text.contains(&name);
            let why = if is_named {
                text
            } else {
                format!("{name}: {text}")
            };
            Error::argument("PARIO_SECRET", why)
        })?;
        self.keys.user = Some(secret);
        Ok(self)
    }

    /// Under TLS, with files that are named here and, where they are not, by the environment.
    pub fn with_tls(mut self, names: &TlsNames) -> Result<ConnectOptions> {
        let other = tls_names_of_environment();
        let pick = |name, here: &Option<PathBuf>, there: Option<PathBuf>| {
            let found = here.clone().or(there);
            found.ok_or_else(|| {
                let why = "names no file; TLS needs those of the authority (ca), of the own certificate \
                           (cert) and of its key (key)";
                Error::argument(name, why)
            })
        };
        let files = TlsFiles {
            ca: pick("PARIO_TLS_CA", &names.ca, other.ca)?,
            cert: pick("PARIO_TLS_CERT", &names.cert, other.cert)?,
            key: pick("PARIO_TLS_KEY", &names.key, other.key)?,
        };
        let tls = Tls::read(files).map_err(|e| Error::argument("TLS", e.to_string()))?;
        self.keys.tls = Some(tls);
        Ok(self)
    }

    /// With another limit for servers that cannot be reached, also for one connection to them.
    pub fn with_timeout(mut self, timeout: Duration) -> ConnectOptions {
        self.timeout = timeout;
        self.connect_timeout = timeout;
        self
    }
}

/// Files for TLS that the environment names.
fn tls_names_of_environment() -> TlsNames {
    let file = |name: &str| {
        let found = std::env::var_os(name).filter(|v| !v.is_empty());
        found.map(PathBuf::from)
    };
    TlsNames {
        ca: file("PARIO_TLS_CA"),
        cert: file("PARIO_TLS_CERT"),
        key: file("PARIO_TLS_KEY"),
    }
}

/// Rank and number of processes, as the launchers of MPI programs tell them.
fn rank_of_environment() -> Option<(u64, u64)> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    [
        ("PMI_RANK", "PMI_SIZE"),
        ("PMIX_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
    ]
    .iter()
    .find_map(|(rank, size)| Some((number(rank)?, number(size)?)))
    .filter(|(rank, size)| rank < size)
}
