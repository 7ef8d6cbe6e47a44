//! What tests connect to: a directory of their own, or a metadata manager and I/O servers in threads.
//!
//! Everything lives in a temporary directory, which goes with the service.

use std::time::Duration;

use pario::client::Endpoint;
use pario::{ConnectOptions, DirectoryOptions, Pario};
use testkit::TempDir;

/// Something to connect to.
pub(crate) struct Service {
    servers: Vec<ioserver::IoServer>,
    manager: Option<metaserver::MetaServer>,
    url: String,
    _dir: TempDir,
}

impl Service {
    /// A directory, served by the test itself.
    pub(crate) fn directory() -> Service {
        let dir = TempDir::new();
        Service {
            servers: Vec::new(),
            manager: None,
            url: format!("dir:{}", dir.path().join("d").display()),
            _dir: dir,
        }
    }

    /// Servers that keep bytes in memory.
    pub(crate) fn start(servers: usize) -> Service {
        let dir = TempDir::new();
        let socket = |name: &str| Endpoint::Unix(dir.path().join(name));
        let mut options = metaserver::Options::new(dir.path().join("catalogue"));
        options.listen = vec![socket("meta")];
        options.recovery = Duration::from_millis(300);
        let manager = metaserver::start(options).unwrap();
        let server = |i: usize| {
            let store = ioserver::StoreOptions::Memory {
                limit_bytes: 64 << 20,
            };
            let listen = socket(&format!("io{i}"));
            let mut options = ioserver::Options::new(socket("meta"), listen, store);
            options.buffer_bytes = 64 << 10;
            options.buffers_bytes = 1 << 20;
            ioserver::start(options).unwrap()
        };
        Service {
            servers: (0..servers).map(server).collect(),
            manager: Some(manager),
            url: format!("unix:{}", dir.path().join("meta").display()),
            _dir: dir,
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn connect(&self) -> Pario {
        self.connect_how(true)
    }

    /// With bytes that go directly where they can, or all by message.
    pub(crate) fn connect_how(&self, direct: bool) -> Pario {
        let connection = ConnectOptions::default()
            .with_timeout(Duration::from_secs(5))
            .with_direct(direct);
        let directory = DirectoryOptions {
            servers: 2,
            memory_bytes: 16 << 20,
            ..DirectoryOptions::default()
        };
        pario::connect_with(&self.url, connection, &directory).unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        for server in self.servers.drain(..) {
            server.stop();
        }
        self.manager = None;
    }
}

/// Runs a test against a directory, and against a service directly and by message.
pub(crate) fn everywhere(test: impl Fn(&Pario)) {
    test(&Service::directory().connect());
    let service = Service::start(2);
    test(&service.connect());
    drop(service);
    let service = Service::start(2);
    test(&service.connect_how(false));
}
