//! A quota that is exhausted while bytes wait in the memory of a server, before it has written them back: who wrote them hears it at the
//! sync at the latest, again and again, and what was synced outlives the power. A disk that is full is in `faults/full_disk.rs`.

use client::{Client, Status};
use lossyfs::Loss;
use system_tests::files::{create, open, read, whole};

use crate::Host;

const LEN: usize = 1 << 20;
const LAYOUT: &str = "striped(64KiB) over 1";

/// How the bytes go to the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    Message,
}

/// Everything that does not fit is written before the first is written back.
fn exhaust(way: Way) {
    let Some(mut host) = Host::start_behind() else {
        return;
    };
    let options = host.impatient().with_direct(way == Way::Direct);
    let client = Client::connect(&host.service.url(), options).unwrap();
    let kept = create(&client, "/kept", LAYOUT);
    kept.write_at(0, &whole(0, LEN, 1)).unwrap();
    assert!(kept.sync().unwrap().is_durable);
    let full = create(&client, "/full", LAYOUT);
    full.write_at(0, &whole(0, 1000, 1)).unwrap();
    full.sync().unwrap();
    // A quarter of what is written next, tables included.
    host.disk.set_quota(Some(LEN as u64 / 4096 / 4));
    let written = full.write_at(0, &whole(0, LEN, 2));
    let heard = written.map(drop).and_then(|()| full.sync().map(drop));
    assert_eq!(heard.unwrap_err().status(), Status::NoSpace);
    // Not once only, and those who have nothing to do with it are not told.
    assert_eq!(full.sync().unwrap_err().status(), Status::NoSpace);
    assert!(kept.sync().unwrap().is_durable);
    // With room again nothing is lost that was written.
    host.disk.set_quota(None);
    if full.size().unwrap() == LEN as u64 {
        assert!(read(&full, 0, LEN) == whole(0, LEN, 2));
    }
    full.write_at(0, &whole(0, LEN, 3)).unwrap();
    assert!(full.sync().unwrap().is_durable);
    host.lose_power(Loss::Everything);
    let client = host.client();
    for (path, tag) in [("/kept", 1), ("/full", 3)] {
        let file = open(&client, path);
        assert!(read(&file, 0, LEN + 9) == whole(0, LEN, tag), "{path}");
        assert_eq!(file.scrub().unwrap().damaged, 0, "{path}");
    }
    host.assert_well();
}

#[test]
fn an_exhausted_quota_is_heard_by_those_who_store_directly() {
    exhaust(Way::Direct);
}

#[test]
fn an_exhausted_quota_is_heard_by_those_who_write_by_message() {
    exhaust(Way::Message);
}
