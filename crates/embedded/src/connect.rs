//! Connecting to whatever `PARIO_URL` names.
//!
//! A directory has no fixed address: the process that holds it serves it. [`Client`] asks again at every
//! reconnect, and that is the moment in which this process may become the holder.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use client::{Client, ConnectOptions, Connector};
use parking_lot::Mutex;
use rustix::event::poll;
use rustix::process::{Pid, test_kill_process};
use wire::link::Link;
use wire::url::{Endpoint, ServiceUrl};

use crate::directory::Directory;
use crate::error::Error;
use crate::holder::Holder;
use crate::spawn;

/// The directory when `PARIO_URL` says nothing.
pub const DEFAULT_DIRECTORY: &str = ".pario";

/// How a directory is served, by the process that comes to serve it.
#[derive(Clone, Debug)]
pub struct Options {
    /// I/O servers at least; those whose bytes lie there are started in any case.
    pub servers: usize,
    /// Memory for hot extents, of each server.
    pub memory_bytes: u64,
    /// How long the holder may take to answer.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            servers: 1,
            memory_bytes: 256 << 20,
            patience: Duration::from_secs(20),
        }
    }
}

impl Options {
    /// As the environment says: `PARIO_SERVERS` is the number of I/O servers.
    pub fn from_env() -> Self {
        let mut options = Options::default();
        if let Some(servers) = std::env::var("PARIO_SERVERS")
            .ok()
            .and_then(|n| n.parse().ok())
        {
            options.servers = servers;
        }
        options
    }
}

/// What `PARIO_URL` names; the directory `.pario` if it names nothing.
pub fn url_here() -> Result<ServiceUrl, Error> {
    let url = match std::env::var("PARIO_URL") {
        Ok(text) if !text.is_empty() => {
            text.parse()
                .map_err(|e: wire::url::UrlError| client::Error::Argument {
                    name: "PARIO_URL",
                    text: e.to_string(),
                })?
        }
        _ => ServiceUrl::Directory(DEFAULT_DIRECTORY.into()),
    };
    Ok(url)
}

/// Connects to what `PARIO_URL` names; to the directory `.pario` if it names nothing.
pub fn connect_here() -> Result<Client, Error> {
    connect(
        &url_here()?,
        ConnectOptions::from_env()?,
        &Options::from_env(),
    )
}

/// Connects to a service, a directory or the servers of the job.
pub fn connect(
    url: &ServiceUrl,
    connection: ConnectOptions,
    options: &Options,
) -> Result<Client, Error> {
    match url {
        ServiceUrl::At(_) | ServiceUrl::Protected(..) => Ok(Client::connect(url, connection)?),
        ServiceUrl::Directory(path) => {
            let connector = InDirectory::new(path, options)?;
            // The first time by hand, so that what is wrong with the directory is said in full.
            connector.find()?;
            Ok(Client::connect_with(Arc::new(connector), connection)?)
        }
        ServiceUrl::Job => Ok(job::connect(connection)?),
    }
}

/// Finds or becomes the holder of a directory.
#[derive(Debug)]
struct InDirectory {
    dir: Directory,
    options: Options,
    /// Set while this process holds it; dropped with the client.
    holder: Mutex<Option<Arc<Holder>>>,
}

impl InDirectory {
    fn new(path: &Path, options: &Options) -> Result<InDirectory, Error> {
        Ok(InDirectory {
            dir: Directory::open(path)?,
            options: options.clone(),
            holder: Mutex::new(None),
        })
    }

    fn find(&self) -> Result<Endpoint, Error> {
        let mut mine = self.holder.lock();
        if let Some(holder) = &*mine {
            return Ok(holder.endpoint().clone());
        }
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        let mut spawned = false;
        loop {
            if job::identity::is_rank() {
                if !spawned && !self.is_held() {
                    spawn::holder(self.dir.path())?;
                    spawned = true;
                }
            } else if let Some(holder) = Holder::take(&self.dir, &self.options)? {
                let endpoint = holder.endpoint().clone();
                *mine = Some(holder);
                return Ok(endpoint);
            }
            let why = match self.try_holder()? {
                Ok(endpoint) => return Ok(endpoint),
                Err(why) => why,
            };
            if start.elapsed() > self.options.patience {
                return Err(Error::NoAnswer {
                    dir: self.dir.path().to_owned(),
                    waited: start.elapsed(),
                    why,
                });
            }
            wait(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    fn is_held(&self) -> bool {
        self.dir.read_note().is_some_and(|note| is_alive(note.pid))
    }

    /// The holder's address, or why it cannot be reached at this moment.
    fn try_holder(&self) -> Result<Result<Endpoint, String>, Error> {
        let Some(note) = self.dir.read_note() else {
            return Ok(Err("nobody has said yet where he listens".into()));
        };
        if note.host != serving::this_process().host {
            return Err(Error::OtherHost {
                dir: self.dir.path().to_owned(),
                host: note.host_name,
            });
        }
        // A child of a dead holder keeps its sockets open but does not serve them.
        if !is_alive(note.pid) {
            return Ok(Err(format!("process {} is gone", note.pid)));
        }
        match Link::connect(&note.endpoint, Duration::from_secs(1)) {
            Ok(_) => Ok(Ok(note.endpoint)),
            Err(e) => Ok(Err(format!("{}: {e}", note.endpoint))),
        }
    }
}

impl Connector for InDirectory {
    fn endpoint(&self) -> Result<Endpoint, client::Error> {
        self.find().map_err(|e| match e {
            Error::Client(e) => e,
            other => client::Error::Unreachable {
                server: None,
                address: String::new(),
                cause: other.to_string(),
            },
        })
    }
}

fn is_alive(pid: u64) -> bool {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Nothing tells when another process has taken a lock; so a little later it is tried again.
fn wait(pause: Duration) {
    let timeout = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: pause.as_nanos() as i64,
    };
    let _ = poll(&mut [], Some(&timeout));
}
