//! A service that died: who has waited for it once does not wait again, and finds it when it is back.
//! The bound of time is a fraction of waiting at every call, and leaves room for a busy machine.

use std::time::{Duration, Instant};

use client::{Error, Status};
use system_tests::Store;

use crate::{create, impatient_client, service, whole};

/// Calls after the first; each waited its time out before.
const CALLS: u64 = 10;

/// The error of a service that is away.
#[track_caller]
fn assert_away<T: std::fmt::Debug>(what: &str, done: Result<T, Error>) {
    let error = done.expect_err(what);
    let status = error.status();
    let is_away = matches!(status, Status::Unreachable | Status::Lost);
    assert!(is_away, "{what}: {error}");
}

#[test]
fn a_dead_service_is_waited_for_once_and_found_when_it_is_back() {
    let mut service = service(2, Store::Disk);
    let seconds = 2;
    let client = impatient_client(&service, seconds);
    let files = [0, 1].map(|i| create(&client, &format!("/f{i}"), "striped(4KiB) over 2"));
    for file in &files {
        file.write_at(0, &whole(0, 30_000, 1)).unwrap();
        file.sync().unwrap();
    }
    service.kill_all();
    let file = &files[0];
    let started = Instant::now();
    assert_away("the first read", file.read_at(0, &mut [0; 30_000]));
    for i in 0..CALLS {
        assert_away("read", file.read_at(i, &mut [0; 9000]));
        assert_away("write", file.write_at(i, &[1; 9000]));
        assert_away("size", file.size());
        assert_away("sync", file.sync());
        assert_away("names", client.mkdir(&format!("/d{i}"), None));
    }
    assert_away("close", files[1].close());
    let spent = started.elapsed();
    // The servers and the manager may be found away one after the other.
    let at_every_call = Duration::from_secs(5 * CALLS * seconds);
    assert!(spent < at_every_call / 3, "{spent:?}");
    service.start_all();
    service.wait_for_members(2);
    // At the first attempt, however long it was away.
    let mut have = vec![0; 30_000];
    assert_eq!(file.read_at(0, &mut have).unwrap(), have.len());
    assert!(have == whole(0, 30_000, 1));
    assert_eq!(file.write_at(0, &whole(0, 30_000, 2)).unwrap(), have.len());
    client.mkdir("/there", None).unwrap();
    file.close().unwrap();
}
