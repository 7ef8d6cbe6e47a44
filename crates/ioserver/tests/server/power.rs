//! The power goes while a server with a disk is begun in a new directory, at each operation of its disk, and any part of what
//! was not synced is lost: the next start makes of what is left a server that works, and it is the same server: one that the
//! manager has given a number does not get a second one.
//!
//! What a server keeps for others after it has begun is in the tests of the whole service.

use ioserver::{IoServer, Options, StoreOptions};
use lossyfs::{Disk, Loss};
use wire::url::Endpoint;

use crate::rig::Rig;

/// Ways to lose what waits, at each operation.
const LOSSES: u64 = 8;

#[test]
fn server_that_lost_power_while_it_was_begun_is_begun_again() {
    if let Some(why) = lossyfs::lacks() {
        testkit::skipped(&why);
        return;
    }
    let rig = Rig::new(0);
    let mount = rig.dir.path().join("lossy");
    std::fs::create_dir(&mount).unwrap();
    let mut disk = Disk::mount(&mount).unwrap();
    let socket = Endpoint::Unix(rig.dir.path().join("io.sock"));
    let start = |name: &str| {
        let store = StoreOptions::Disk {
            dirs: vec![mount.join(name)],
            memory_limit_bytes: 8 << 20,
        };
        ioserver::start(Options::new(
            rig.meta_endpoint.clone(),
            socket.clone(),
            store,
        ))
    };
    let (mut operations, mut is_cut, mut begun_servers) = (0, true, 0);
    while is_cut {
        operations += 1;
        is_cut = false;
        for seed in 0..LOSSES {
            let name = format!("{operations}-{seed}");
            disk.cut_after(operations);
            let begun = start(&name);
            is_cut |= disk.is_cut();
            begun.map(IoServer::stop).ok();
            disk.restart(Loss::Random(operations * LOSSES + seed))
                .unwrap();
            let again = start(&name);
            let again = again
                .unwrap_or_else(|error| panic!("operation {operations}, loss {seed}: {error}"));
            again.stop();
            begun_servers += 1;
            let members = rig.client().members();
            assert_eq!(
                members.len(),
                begun_servers,
                "operation {operations}, loss {seed}: a server is two members"
            );
        }
    }
    assert!(
        operations > 10,
        "the power went in {operations} places only"
    );
}
