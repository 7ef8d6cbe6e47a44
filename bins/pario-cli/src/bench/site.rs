//! Services that a benchmark measures: a metadata manager and I/O servers, on this host or spread over
//! [`Hosts`], for as long as a value lives.
//!
//! On this host they are reached by Unix sockets, between hosts by TCP with a secret of their own. The
//! metadata manager has a host without a limit, so that only data waits for links.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

use super::hosts::{Hosts, address};
use crate::commands::Error;
use crate::service::short_lived::{Listening, ScratchDir};
use crate::service::worker::SUPERVISED;

/// Where bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Memory,
    Disk,
}

impl Store {
    /// As it stands in names of cases.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Store::Memory => "memory",
            Store::Disk => "disk",
        }
    }
}

/// What a service consists of.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// I/O servers.
    pub(crate) servers: usize,
    pub(crate) store: Store,
    /// Of each server, in bytes.
    pub(crate) memory: u64,
    /// More arguments of each server.
    pub(crate) options: Vec<String>,
}

impl Wanted {
    /// Servers in memory that together hold so many bytes, and then some: extents are not always full.
    pub(crate) fn memory(servers: usize, bytes: u64) -> Wanted {
        Wanted {
            servers,
            store: Store::Memory,
            memory: (bytes / servers as u64) * 5 / 4 + (128 << 20),
            options: Vec::new(),
        }
    }

    /// Servers on disks below the temporary directory.
    pub(crate) fn disk(servers: usize) -> Wanted {
        Wanted {
            store: Store::Disk,
            ..Wanted::memory(servers, 1 << 30)
        }
    }
}

/// Where the processes of a service and its clients are.
#[derive(Clone, Debug)]
pub(crate) struct Spread<'a> {
    pub(crate) hosts: &'a Hosts,
    /// The host of the metadata manager.
    pub(crate) meta: usize,
    /// The host of each server.
    pub(crate) servers: Vec<usize>,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Site {
    // Dropped in this order: the servers before the manager, the directory last.
    servers: Vec<Listening>,
    meta: Listening,
    /// What clients on other hosts need.
    pub(crate) secret: Option<PathBuf>,
    dir: ScratchDir,
}

impl Site {
    /// Starts a service; returns when all servers are members.
    pub(crate) fn start(wanted: &Wanted, spread: Option<&Spread<'_>>) -> Result<Site, Error> {
        let program = std::env::current_exe()
            .map_err(|e| format!("cannot find the program that is running: {e}"))?;
        let dir = ScratchDir::new()?;
        let log = dir.0.join("log");
        let secret = match spread {
            Some(_) => {
                make_secret(&dir, "secret.servers")?;
                Some(make_secret(&dir, "secret")?)
            }
            None => None,
        };
        let on = |host: Option<usize>| match (spread, host) {
            (Some(spread), Some(host)) => spread.hosts.command(host, &program),
            _ => Command::new(&program),
        };
        let at = |name: &str, host: Option<usize>| match host {
            Some(host) => format!("tcp:{}:0", address(host)),
            None => format!("unix:{}", dir.0.join(name).display()),
        };
        let this = std::process::id().to_string();
        let common = |arguments: &mut Vec<String>, listen: String| {
            arguments.extend(["--listen".into(), listen, SUPERVISED.into(), this.clone()]);
            if let Some(path) = &secret {
                arguments.extend(["--secret".into(), path.display().to_string()]);
                let of_servers = path.with_extension("servers").display().to_string();
                arguments.extend(["--server-secret".into(), of_servers]);
            }
        };
        let start = |host: Option<usize>, arguments: Vec<String>| {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            Listening::start_as(on(host), &arguments, Some(&log))
        };
        let host = spread.map(|spread| spread.meta);
        let catalogue = dir.0.join("meta").display().to_string();
        let mut arguments: Vec<String> = ["serve", "meta", "--dir", &catalogue]
            .map(Into::into)
            .to_vec();
        if spread.is_some() {
            arguments.extend(["--trust-uids".into(), "0.0.0.0/0".into()]);
        }
        common(&mut arguments, at("meta.sock", host));
        let meta = start(host, arguments)?;
        let mut servers = Vec::new();
        for index in 0..wanted.servers {
            let host = spread.map(|spread| spread.servers[index]);
            let memory = wanted.memory.to_string();
            let mut arguments: Vec<String> =
                ["serve", "io", "--meta", &meta.url, "--memory", &memory]
                    .map(Into::into)
                    .to_vec();
            if wanted.store == Store::Disk {
                let disk = dir.0.join(format!("disk-{index}")).display().to_string();
                arguments.extend(["--disk".into(), disk]);
            }
            arguments.extend(wanted.options.iter().cloned());
            common(&mut arguments, at(&format!("io-{index}.sock"), host));
            servers.push(start(host, arguments)?);
        }
        Ok(Site {
            servers,
            meta,
            secret,
            dir,
        })
    }

    /// Where clients connect.
    pub(crate) fn url(&self) -> &str {
        &self.meta.url
    }

    /// Where its I/O servers listen.
    pub(crate) fn server_urls(&self) -> Vec<&str> {
        self.servers.iter().map(|s| s.url.as_str()).collect()
    }

    /// A file name in the directory of the service, which goes with it.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.dir.0.join(name)
    }
}

fn make_secret(dir: &ScratchDir, name: &str) -> Result<PathBuf, Error> {
    use std::io::{Read, Write};
    let path = dir.0.join(name);
    let mut bytes = [0u8; 24];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    file.write_all(text.as_bytes())?;
    Ok(path)
}

/// A file in the host's memory that is removed with the value.
#[derive(Debug)]
pub(crate) struct SharedFile(pub(crate) PathBuf);

impl SharedFile {
    /// A new one in `/dev/shm`; `None` where there is no such place.
    pub(crate) fn in_memory(name: &str) -> Option<SharedFile> {
        let dir = PathBuf::from("/dev/shm");
        let path = dir.join(format!("pario-bench-{}-{name}", std::process::id()));
        fs::File::create(&path).ok()?;
        // Whatever the mask: others have no business here.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).ok()?;
        Some(SharedFile(path))
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        // Nobody can do more about what cannot be removed.
        let _ = fs::remove_file(&self.0);
    }
}
