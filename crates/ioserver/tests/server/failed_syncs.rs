//! A sync fails, the page cache forgets what it could not write, and the server starts again on the same boot.
//! The next sync of a client that wrote before says so. What stores keep through it is tested in `store`.

use std::sync::Arc;

use ioserver::{IoServer, Options};
use layout::View;
use store::disk::twin::{Loss, Twin};
use wire::message::file::Sync;
use wire::url::Endpoint;

use crate::rig::{Rig, pattern};

/// A server whose only disk is a twin; its state is in a directory of that name.
fn start(rig: &Rig, twin: &Twin) -> IoServer {
    let socket = Endpoint::Unix(rig.dir.path().join("io-0.sock"));
    let options = Options::new(rig.meta_endpoint.clone(), socket, rig.disk(0));
    ioserver::start_on(options, |_| Arc::new(twin.clone())).unwrap()
}

#[test]
fn writes_before_a_failed_sync_are_not_vouched_for_by_the_next_start() {
    let mut rig = Rig::new(0);
    let dir = rig.dir.path().join("disk-0");
    std::fs::create_dir_all(&dir).unwrap();
    let twin = Twin::named(dir.to_str().unwrap());
    rig.servers.push(Some(start(&rig, &twin)));
    let (mut one, mut other) = (rig.client(), rig.client());
    let whole = View::whole_file();
    let file = one.open("/f", None, Some("striped(4KiB) over 1"));
    let server = rig.number(0);
    one.set_view(&file, 1, &whole);
    let same = other.open("/f", None, None);
    other.set_view(&same, 1, &whole);
    one.write(&file, 1, &whole, 0, &pattern(8192, 1)).unwrap();
    let synced = one.ask(server, &Sync { view: 1 }).unwrap();
    let first = synced.verifiers;

    let written = one.write(&file, 1, &whole, 0, &pattern(8192, 2)).unwrap();
    let verifier = written[0].verifier;
    assert!(first.keep(verifier));
    twin.fail_next_sync();
    assert!(other.ask(server, &Sync { view: 1 }).is_err());

    rig.servers[0].take().unwrap().stop();
    twin.restart(Loss::Evicted);
    rig.servers[0] = Some(start(&rig, &twin));
    one.lanes.clear();
    one.set_view(&file, 1, &whole);
    let (found, _) = one.read(&file, 1, &whole, 0, 8192).unwrap();
    assert!(found == pattern(8192, 1), "the page cache forgot nothing");
    let synced = one.ask(server, &Sync { view: 1 }).unwrap();
    assert!(
        !synced.verifiers.keep(verifier),
        "the server vouches for bytes that are gone"
    );

    // From then on starts vouch for each other again.
    let written = one.write(&file, 1, &whole, 0, &pattern(8192, 3)).unwrap();
    rig.servers[0].take().unwrap().stop();
    twin.restart(Loss::Nothing);
    rig.servers[0] = Some(start(&rig, &twin));
    one.lanes.clear();
    one.set_view(&file, 1, &whole);
    let synced = one.ask(server, &Sync { view: 1 }).unwrap();
    assert!(synced.verifiers.keep(written[0].verifier));
}
