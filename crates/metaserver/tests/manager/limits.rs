//! What a client and a user may take of the manager: the refusal names the limit and the option, and there is room again
//! when something was given back.

use wire::ask::AskError;
use wire::{Rights, Status};

use crate::fixture::*;

#[test]
fn connections_of_a_user_are_limited_and_others_find_room() {
    let scratch = Scratch::new("connections");
    let mut options = scratch.options();
    options.connections.connections_per_user = 4;
    let manager = metaserver::start(options).unwrap();
    let mut mine: Vec<Asker> = (0..4).map(|_| Asker::client(&scratch.socket())).collect();
    let refused = mine[0].again(&scratch.socket());
    let Err(AskError::Refused(Status::QuotaExceeded, refusal)) = refused else {
        panic!("a fifth: {refused:?}");
    };
    assert!(
        refusal.text.contains("--connections-per-user"),
        "{}",
        refusal.text
    );
    // Another user has his own, and what is there goes on.
    Asker::user(&manager, BOB).ask(&stat("/"));
    mine[3].ask(&stat("/"));
    drop(mine.pop());
    let start = std::time::Instant::now();
    while mine[0].again(&scratch.socket()).is_err() {
        assert!(start.elapsed() < PATIENCE, "what was closed is free again");
        std::thread::yield_now();
    }
}

#[test]
fn files_that_a_client_has_open_are_limited() {
    let scratch = Scratch::new("open-files");
    let mut options = scratch.options();
    options.open_files = 3;
    let _manager = metaserver::start(options).unwrap();
    let _member = Joiner::new(&scratch.socket());
    let mut client = Asker::client(&scratch.socket());
    client.create("/f");
    let opened: Vec<_> = (0..3).map(|_| client.open("/f", Rights::READ)).collect();
    let text = client.refused(&open("/f", Rights::READ), Status::QuotaExceeded);
    assert!(text.contains("--open-files"), "{text}");
    // What fails does not count, and another client has its own.
    Asker::client(&scratch.socket()).open("/f", Rights::READ);
    client.ask(&close(opened[0].handle));
    client.refused(&open("/no-such-file", Rights::READ), Status::NotFound);
    client.open("/f", Rights::READ);
    client.refused(&open("/f", Rights::READ), Status::QuotaExceeded);
}
