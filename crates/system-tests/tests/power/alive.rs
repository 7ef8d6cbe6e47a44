//! Clients that outlive the power of their servers' host: what they wrote and had not synced may be gone, and
//! their next sync says so.

use client::Status;
use lossyfs::Loss;
use system_tests::files::{create, read, whole};

use crate::Host;

const LEN: usize = 50_000;

#[test]
fn sync_does_not_vouch_for_bytes_that_were_lost_with_the_power_of_the_servers() {
    let Some(mut host) = Host::start(2) else {
        return;
    };
    let client = host.service.client();
    let file = create(&client, "/f", "striped(4KiB) over 2");
    file.write_at(0, &whole(0, LEN, 1)).unwrap();
    assert!(file.sync().unwrap().is_durable);
    file.write_at(0, &whole(0, LEN, 2)).unwrap();
    host.lose_power(Loss::Everything);
    assert!(read(&file, 0, LEN) == whole(0, LEN, 1), "the synced bytes");
    let error = file
        .sync()
        .expect_err("sync vouches for bytes that are gone");
    assert_eq!(error.status(), Status::Lost, "{error}");
    // Said once: from here on the handle is as good as any other.
    file.write_at(0, &whole(0, LEN, 3)).unwrap();
    assert!(file.sync().unwrap().is_durable);
    host.lose_power(Loss::Everything);
    assert!(read(&file, 0, LEN) == whole(0, LEN, 3), "the synced bytes");
    host.assert_well();
}

/// Processes die, the host and its page cache live on: nothing that was acknowledged is gone.
#[test]
fn sync_vouches_for_bytes_that_outlived_their_server() {
    let Some(mut host) = Host::start(2) else {
        return;
    };
    let client = host.service.client();
    let file = create(&client, "/f", "striped(4KiB) over 2");
    file.write_at(0, &whole(0, LEN, 2)).unwrap();
    host.service.kill_all();
    host.service.start_all();
    assert!(read(&file, 0, LEN) == whole(0, LEN, 2));
    assert!(file.sync().unwrap().is_durable);
    host.lose_power(Loss::Everything);
    assert!(read(&file, 0, LEN) == whole(0, LEN, 2), "the synced bytes");
    host.assert_well();
}
