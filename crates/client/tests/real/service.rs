//! A metadata manager and I/O servers in threads of the test.
//!
//! Everything lives in a directory of its own, which goes with the service.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use client::{Client, ConnectOptions, Endpoint, File, OpenOptions, ServiceUrl};
use ioserver::StoreOptions;

/// How long a server that cannot be reached is tried again: longer than one that is there stands still on a busy
/// machine, and no longer, since some of them are gone.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct Service {
    pub(crate) manager: Option<metaserver::MetaServer>,
    pub(crate) servers: Vec<ioserver::IoServer>,
    pub(crate) dir: PathBuf,
}

impl Service {
    /// With servers that keep bytes in memory.
    pub(crate) fn start(servers: usize) -> Service {
        Service::start_how(servers, true)
    }

    /// With servers that share their memory with others of this host, or as if there were none.
    pub(crate) fn start_how(servers: usize, direct: bool) -> Service {
        Service::start_with(servers, |options| {
            options.buffer_bytes = 64 << 10;
            options.buffers_bytes = 1 << 20;
            options.message_bytes = 256 << 10;
            options.rendezvous_bytes = Some(16 << 10);
            options.direct = direct;
        })
    }

    /// Servers in memory with other options than the usual ones.
    pub(crate) fn start_with(servers: usize, set: impl Fn(&mut ioserver::Options)) -> Service {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("pario-real-{}-{n}", std::process::id()));
        // Of a process with the same number that was killed.
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let mut service = Service {
            manager: None,
            servers: Vec::new(),
            dir,
        };
        service.start_manager();
        for i in 0..servers {
            let store = StoreOptions::Memory {
                limit_bytes: 64 << 20,
            };
            let listen = socket(&service.dir, &format!("io{i}"));
            let mut options = ioserver::Options::new(socket(&service.dir, "meta"), listen, store);
            set(&mut options);
            service.servers.push(ioserver::start(options).unwrap());
        }
        service
    }

    pub(crate) fn start_manager(&mut self) {
        let mut options = metaserver::Options::new(self.dir.join("catalogue"));
        // Over TCP a client is like one of another host: no memory is shared with it.
        let elsewhere = "tcp:127.0.0.1:0".parse().unwrap();
        options.listen = vec![socket(&self.dir, "meta"), elsewhere];
        options.recovery = Duration::from_millis(300);
        self.manager = Some(metaserver::start(options).unwrap());
    }

    pub(crate) fn connect(&self) -> Client {
        self.connect_how(true)
    }

    /// A client whose bytes all go by message, or directly where they can.
    pub(crate) fn connect_how(&self, direct: bool) -> Client {
        connect_at(&self.dir, direct)
    }
}

/// A client of the service in a directory, perhaps of another process.
pub(crate) fn connect_at(dir: &Path, direct: bool) -> Client {
    let url = ServiceUrl::At(socket(dir, "meta"));
    let options = ConnectOptions::default()
        .with_timeout(TIMEOUT)
        .with_direct(direct);
    Client::connect(&url, options).unwrap()
}

impl Drop for Service {
    fn drop(&mut self) {
        for server in self.servers.drain(..) {
            server.stop();
        }
        self.manager = None;
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

pub(crate) fn socket(dir: &Path, name: &str) -> Endpoint {
    Endpoint::Unix(dir.join(name))
}

/// A new file for reading and writing.
pub(crate) fn create(client: &Client, path: &str, array: &str, layout: &str) -> File {
    let mut options = OpenOptions::new().read().write().create().layout(layout);
    if !array.is_empty() {
        options = options.array(array);
    }
    client.open(path, &options).unwrap()
}

/// Bytes that tell their place.
pub(crate) fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|i| ((i + seed) * 31 % 251) as u8 + 1)
        .collect()
}
