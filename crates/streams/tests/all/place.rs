//! What tests connect to, and how members of a team run.
//!
//! Everything lives in a temporary directory, which goes with the place.

use client::{Client, ConnectOptions, Team};
use testkit::TempDir;

/// A directory of a test's own.
pub(crate) struct TestPlace {
    client: Client,
    dir: TempDir,
}

impl TestPlace {
    pub(crate) fn new() -> TestPlace {
        let dir = TempDir::new();
        let client = connect(&dir);
        TestPlace { client, dir }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Another connection to the same files.
    pub(crate) fn connect_again(&self) -> Client {
        connect(&self.dir)
    }

    /// The bytes of a file.
    pub(crate) fn bytes(&self, path: &str) -> Vec<u8> {
        let file = self
            .client
            .open(path, &client::OpenOptions::new().read())
            .unwrap();
        let mut bytes = vec![0; file.size().unwrap() as usize];
        assert_eq!(file.read_at(0, &mut bytes).unwrap(), bytes.len());
        bytes
    }

    /// A file of another program.
    pub(crate) fn put(&self, path: &str, bytes: &[u8]) {
        let options = client::OpenOptions::new().write().create();
        let file = self.client.open(path, &options).unwrap();
        file.resize(0).unwrap();
        file.write_at(0, bytes).unwrap();
        file.close().unwrap();
    }
}

fn connect(dir: &TempDir) -> Client {
    let url = format!("dir:{}", dir.path().join("d").display());
    let options = embedded::Options {
        servers: 2,
        memory_bytes: 256 << 20,
        ..embedded::Options::default()
    };
    embedded::connect(&url.parse().unwrap(), ConnectOptions::default(), &options).unwrap()
}

/// Runs every member in a thread; what each gives, by rank.
pub(crate) fn run<T: Send>(size: usize, member: impl Fn(&Team) -> T + Sync) -> Vec<T> {
    let teams = Team::threads(size);
    std::thread::scope(|scope| {
        let threads: Vec<_> = teams
            .iter()
            .map(|team| scope.spawn(|| member(team)))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}
