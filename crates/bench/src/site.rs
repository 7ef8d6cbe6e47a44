//! Services that a benchmark measures, spread over hosts where it wants that, and files beside them.
//! The services themselves are those of `console`.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;

use client::{Client, ConnectOptions};
use console::{Error, refused};
use testkit::hosts::Hosts;

pub(crate) use console::site::{ListeningChild, ServiceSpec, Site, Spread, Store, Transport};

/// A service on hosts: that of the metadata manager, and that of each server.
pub(crate) fn spread(hosts: &Hosts, meta: usize, servers: Vec<usize>) -> Spread<'_> {
    Spread {
        command: Box::new(|host, program| hosts.command(host, program)),
        address: Hosts::address,
        meta,
        servers,
    }
}

/// Hosts whose links have a rate, in Mbit/s, and one more without a limit, for the metadata manager; if they cannot
/// be made, why.
pub(crate) fn hosts(count: usize, rate: Option<u64>) -> Result<Hosts, String> {
    let mut rates = vec![rate; count];
    rates.push(None);
    Hosts::with_rates(&rates)
}

/// What so many servers want that keep so many bytes.
pub(crate) fn wanted(store: Store, servers: usize, bytes: u64) -> ServiceSpec {
    match store {
        Store::Memory => ServiceSpec::memory(servers, bytes),
        Store::Disk => ServiceSpec::disk(servers),
    }
}

/// A client in this process.
pub(crate) fn connect(url: &str, options: ConnectOptions) -> Result<Client, Error> {
    let url = url.parse().map_err(|e| format!("{url}: {e}"))?;
    Client::connect(&url, options).map_err(refused)
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
        // What cannot be removed stays behind.
        let _ = fs::remove_file(&self.0);
    }
}

/// A directory in the host's memory that is removed with the value, and what is in it.
#[derive(Debug)]
pub(crate) struct SharedDirectory(pub(crate) PathBuf);

impl SharedDirectory {
    /// A new one in `/dev/shm`, for this user only; `None` where there is no such place.
    pub(crate) fn in_memory(name: &str) -> Option<SharedDirectory> {
        let dir = PathBuf::from("/dev/shm");
        let path = dir.join(format!("pario-bench-{}-{name}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path).ok()?;
        Some(SharedDirectory(path))
    }
}

impl Drop for SharedDirectory {
    fn drop(&mut self) {
        // What cannot be removed stays behind.
        let _ = fs::remove_dir_all(&self.0);
    }
}
