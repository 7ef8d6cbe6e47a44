//! Services that a benchmark measures, spread over hosts where it wants that, and files beside them.
//! The services themselves are those of `console`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use testkit::hosts::Hosts;

pub(crate) use console::site::{Listening, Site, Spread, Store, Transport, Wanted};

/// A service on hosts: that of the metadata manager, and that of each server.
pub(crate) fn spread(hosts: &Hosts, meta: usize, servers: Vec<usize>) -> Spread<'_> {
    Spread {
        command: Box::new(|host, program| hosts.command(host, program)),
        address: Hosts::address,
        meta,
        servers,
    }
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
