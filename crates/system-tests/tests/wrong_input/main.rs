//! Wrong input of every kind: one clear error each, the service stays alive, and others notice nothing.
//!
//! Every test ends by using the service as a second client would ([`assert_alive`]).

mod arguments;
mod capabilities;
mod frames;
mod space;
mod stalled;

use std::time::Duration;

use client::Client;
use system_tests::Service;
use system_tests::files::{create, open, read, whole};

/// A client that has no patience with anybody, so that what blocks others is seen.
#[track_caller]
fn second(service: &Service) -> Client {
    let mut options = service.connect_options();
    options.timeout = Duration::from_secs(10);
    options.busy_timeout = Duration::from_secs(10);
    options.answer_timeout = Duration::from_secs(20);
    Client::connect(&service.url(), options).expect("a second client")
}

/// A second client creates, writes, reads and removes a file over all servers.
#[track_caller]
fn assert_alive(service: &mut Service) {
    for index in 0..service.servers() {
        assert!(service.io(index).is_running(), "io-{index} has ended");
    }
    assert!(service.meta().is_running(), "the manager has ended");
    let client = second(service);
    let text = format!("striped(1000) over {}", service.servers());
    let file = create(&client, "/alive", &text);
    file.write_at(0, &whole(0, 50_000, 1)).expect("a write");
    assert!(read(&file, 0, 60_000) == whole(0, 50_000, 1));
    file.close().expect("a close");
    client.unlink("/alive").expect("an unlink");
}
