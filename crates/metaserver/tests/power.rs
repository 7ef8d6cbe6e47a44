//! The power goes while a manager is begun in a new directory, at each operation of its disk, and any part of what was not
//! synced is lost: the next start makes of what is left a manager that works.
//!
//! Key and catalogue belong together. A catalogue whose key is gone is refused for good, so the key, by its name, is durable
//! before there is a catalogue. What a manager promises after it has begun is in the tests of the whole service.

use std::path::Path;

use lossyfs::{Disk, Loss};
use metaserver::{MetaServer, Options, StartError};
use testkit::TempDir;
use wire::url::Endpoint;

/// Ways to lose what waits, at each operation.
const LOSSES: u64 = 32;

fn start(dir: &Path, socket: &Path) -> Result<MetaServer, StartError> {
    let mut options = Options::new(dir);
    options.listen = vec![Endpoint::Unix(socket.to_owned())];
    metaserver::start(options)
}

#[test]
fn manager_that_lost_power_while_it_was_begun_is_begun_again() {
    if let Some(why) = lossyfs::lacks() {
        testkit::skipped(&why);
        return;
    }
    let place = TempDir::new();
    let (mount, socket) = (place.path().join("disk"), place.path().join("socket"));
    std::fs::create_dir(&mount).unwrap();
    let mut disk = Disk::mount(&mount).unwrap();
    let mut operations = 0;
    let mut is_cut = true;
    while is_cut {
        operations += 1;
        is_cut = false;
        for seed in 0..LOSSES {
            let dir = mount.join(format!("{operations}-{seed}"));
            disk.cut_after(operations);
            let begun = start(&dir, &socket);
            is_cut |= disk.is_cut();
            if let Ok(server) = begun {
                server.stop();
            }
            disk.restart(Loss::Random(operations * LOSSES + seed))
                .unwrap();
            match start(&dir, &socket) {
                Ok(server) => server.stop(),
                Err(error) => panic!("operation {operations}, loss {seed}: {error}"),
            }
        }
    }
    assert!(
        operations > 10,
        "the power went in {operations} places only"
    );
}
