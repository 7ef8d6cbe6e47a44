//! How the hosts of a job find each other.
//!
//! Either the environment says where the metadata manager is (`pario run --network` puts it there, and
//! launchers carry it along), or they meet in a directory that all of them see:
//!
//! ```text
//! PARIO_JOB_DIR/pario-UID-KEY/         mode 0700
//!     lock         held by the holder of the first host
//!     first        where its metadata manager is, and the secret; mode 0600
//!     host-NAME    one per host: where its I/O servers are; mode 0600
//! ```
//!
//! The host that gets the lock is the first; the others wait for what it writes down.

use std::fs;
use std::net::{TcpListener, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lockfile::LockFile;
use rustix::event::poll;
use wire::link::Link;
use wire::url::Endpoint;

use crate::error::Error;
use crate::identity::{HOST, JOB_DIR, JOB_MANAGER, JOB_SECRET, Job};
use crate::options::Options;
use crate::place::{acquire, make_private, write_private};

/// What the holder of a host is to the others.
#[derive(Debug)]
pub(crate) enum HostRole {
    /// The only one.
    Alone,
    /// The first of several: runs the metadata manager.
    First {
        /// The secret of the job.
        secret: String,
        meeting: Option<Meeting>,
    },
    /// One of several.
    Further {
        /// Where the metadata manager is.
        manager: Endpoint,
        /// The secret of the job.
        secret: String,
        meeting: Option<Meeting>,
    },
}

/// The directory that hosts share.
#[derive(Debug)]
pub(crate) struct Meeting {
    dir: PathBuf,
    /// Held by the first.
    lock: Option<LockFile>,
}

impl HostRole {
    /// Finds out; waits for the first host if this is not it.
    pub(crate) fn find(job: &Job, options: &Options) -> Result<HostRole, Error> {
        let get = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        if let (Some(manager), Some(secret)) = (get(JOB_MANAGER), get(JOB_SECRET)) {
            let manager = manager.parse().map_err(|e| Error::Argument {
                name: JOB_MANAGER.into(),
                text: format!("{e}"),
            })?;
            return Ok(HostRole::Further {
                manager,
                secret,
                meeting: None,
            });
        }
        if let Some(dir) = get(JOB_DIR) {
            return meet(Path::new(&dir), job, options.patience);
        }
        if options.has_network {
            return Ok(HostRole::First {
                secret: new_secret()?,
                meeting: None,
            });
        }
        match job.has_hosts {
            true => Err(Error::SeveralHosts),
            false => Ok(HostRole::Alone),
        }
    }

    /// The secret, if the job has one.
    pub(crate) fn secret(&self) -> Option<&str> {
        match self {
            HostRole::Alone => None,
            HostRole::First { secret, .. } | HostRole::Further { secret, .. } => Some(secret),
        }
    }

    /// The address that other hosts reach this one by.
    pub(crate) fn address(&self, options: &Options) -> Result<String, Error> {
        // What launchers carry along may be the address of the host they come from.
        if let Some(address) = &options.address
            && TcpListener::bind((address.as_str(), 0)).is_ok()
        {
            return Ok(address.clone());
        }
        let own = match self {
            HostRole::Further {
                manager: Endpoint::Tcp { host, port },
                ..
            } => own_address_towards(&format!("[{host}]:{port}"))
                .or_else(|| own_address_towards(&format!("{host}:{port}"))),
            // Nothing is sent: the kernel only says which way it would go.
            _ => own_address_towards("192.0.2.1:9"),
        };
        own.ok_or_else(|| Error::Argument {
            name: "PARIO_JOB_ADDRESS".into(),
            text: "no network leads to other hosts; give the address that they reach this one by"
                .into(),
        })
    }

    /// Says where the servers of this host are.
    pub(crate) fn write_down(&self, manager: &Endpoint, servers: &[Endpoint]) -> Result<(), Error> {
        let (HostRole::First { meeting, .. } | HostRole::Further { meeting, .. }) = self else {
            return Ok(());
        };
        let Some(meeting) = meeting else {
            return Ok(());
        };
        let mut text = String::new();
        for server in servers {
            text += &format!("server: {server}\n");
        }
        meeting.write(&format!("host-{}", host_name()), &text)?;
        if let HostRole::First { secret, .. } = self {
            meeting.write("first", &format!("manager: {manager}\nsecret: {secret}\n"))?;
        }
        Ok(())
    }

    /// Removes what this host wrote down; the first removes all.
    pub(crate) fn remove(&self) {
        match self {
            HostRole::First {
                meeting: Some(meeting),
                ..
            } => {
                let _ = fs::remove_dir_all(&meeting.dir);
            }
            HostRole::Further {
                meeting: Some(meeting),
                ..
            } => {
                let _ = fs::remove_file(meeting.dir.join(format!("host-{}", host_name())));
            }
            _ => {}
        }
    }
}

impl Meeting {
    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let (path, new) = (
            self.dir.join(name),
            self.dir.join(format!("new-{}", host_name())),
        );
        write_private(&new, text.as_bytes())
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|e| Error::Io(path, e))
    }

    fn read_first(&self) -> Option<(Endpoint, String)> {
        let text = fs::read_to_string(self.dir.join("first")).ok()?;
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let manager: Endpoint = field("manager")?.parse().ok()?;
        Some((manager, field("secret")?.to_owned()))
    }
}

fn meet(dir: &Path, job: &Job, patience: Duration) -> Result<HostRole, Error> {
    let user = rustix::process::geteuid().as_raw();
    let dir = dir.join(format!("pario-{user}-{}", job.shared_key));
    let deadline = Instant::now() + patience;
    let mut pause = Duration::from_millis(5);
    loop {
        make_private(&dir)?;
        let mut meeting = Meeting {
            dir: dir.clone(),
            lock: None,
        };
        match acquire(&dir.join("lock")) {
            Ok(Some(lock)) => {
                // What a first host left that was killed.
                let _ = fs::remove_file(dir.join("first"));
                meeting.lock = Some(lock);
                return Ok(HostRole::First {
                    secret: new_secret()?,
                    meeting: Some(meeting),
                });
            }
            Ok(None) => {}
            // Removed in this moment by a first host that ends.
            Err(Error::Io(_, e)) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        if let Some((manager, secret)) = meeting.read_first()
            && Link::connect(&manager, Duration::from_secs(1)).is_ok()
        {
            return Ok(HostRole::Further {
                manager,
                secret,
                meeting: Some(meeting),
            });
        }
        if Instant::now() > deadline {
            return Err(Error::NoAnswer {
                job: job.shared_key.clone(),
                waited: patience.as_secs(),
            });
        }
        wait(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

/// Nothing tells when another host writes a file; so a little later it is looked for again.
pub(crate) fn wait(pause: Duration) {
    let timeout = rustix::event::Timespec::try_from(pause).ok();
    let _ = poll(&mut [], timeout.as_ref());
}

/// What this host calls itself, as a file can be called.
fn host_name() -> String {
    let name = std::env::var(HOST).ok().filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    });
    name.chars()
        .map(|c| if c == '/' || c == '\0' { '_' } else { c })
        .collect()
}

fn own_address_towards(other: &str) -> Option<String> {
    let other = other.to_socket_addrs().ok()?.next()?;
    let any = if other.is_ipv6() {
        "[::]:0"
    } else {
        "0.0.0.0:0"
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(other).ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_unspecified()).then(|| own.to_string())
}

fn new_secret() -> Result<String, Error> {
    let mut bytes = [0; 32];
    let mut have = 0;
    while have < bytes.len() {
        let flags = rustix::rand::GetRandomFlags::empty();
        have += rustix::rand::getrandom(&mut bytes[have..], flags)
            .map_err(|e| Error::Io("/dev/urandom".into(), e.into()))?;
    }
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}
