//! What a client and a user may take of the manager: the refusal names the limit and the option, and there is room again
//! when something was given back.

use wire::ask::AskError;
use wire::frame::{CONTINUED, Header, MAX_CONTROL_BYTES};
use wire::message::catalogue::Reopen;
use wire::message::session::Ping;
use wire::message::team::{Gather, LeaveTeam, WatchTeam};
use wire::message::{Bytes, Request};
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

#[test]
fn open_files_are_counted_once_however_often_a_close_comes() {
    let scratch = Scratch::new("closes");
    let mut options = scratch.options();
    options.open_files = 2;
    let _manager = metaserver::start(options).unwrap();
    let _member = Joiner::new(&scratch.socket());
    let mut client = Asker::client(&scratch.socket());
    client.create("/f");
    let opened = client.open("/f", Rights::READ);
    client.open("/f", Rights::READ);
    // One close, sent three times.
    for is_repeated in [false, true, true] {
        client
            .try_ask_as(7, is_repeated, &close(opened.handle))
            .unwrap();
    }
    client.open("/f", Rights::READ);
    client.refused(&open("/f", Rights::READ), Status::QuotaExceeded);
}

#[test]
fn files_that_a_user_has_open_are_limited_over_all_his_clients() {
    let scratch = Scratch::new("user-files");
    let mut options = scratch.options();
    options.open_files = 2;
    let manager = metaserver::start(options).unwrap();
    let _member = Joiner::new(&scratch.socket());
    let mut first = Asker::client(&scratch.socket());
    first.create("/f");
    let opened = first.open("/f", Rights::READ);
    let mut clients = Vec::new();
    let most = 2 * serving::CLIENTS_OF_A_USER;
    for _ in 1..most {
        let mut client = Asker::client(&scratch.socket());
        client.open("/f", Rights::READ);
        clients.push(client);
    }
    let mut last = Asker::client(&scratch.socket());
    let text = last.refused(&open("/f", Rights::READ), Status::QuotaExceeded);
    assert!(
        text.contains("--open-files") && text.contains("user"),
        "{text}"
    );
    // Another user has his own, and what was closed is free.
    Asker::user(&manager, BOB).open("/f", Rights::READ);
    first.ask(&close(opened.handle));
    last.open("/f", Rights::READ);
    last.refused(&open("/f", Rights::READ), Status::QuotaExceeded);
}

#[test]
fn a_reopening_whose_answer_was_lost_leaves_one_handle() {
    let (scratch, _manager, _members) = with_members("reopens", 1);
    let mut client = Asker::client(&scratch.socket());
    client.create("/f");
    let opened = client.open("/f", Rights::READ);
    let reopen = Reopen {
        capability: opened.capability.clone(),
        unique: None,
    };
    let first = client.try_ask_as(9, false, &reopen).unwrap();
    let second = client.try_ask_as(9, true, &reopen).unwrap();
    assert_eq!(first.handle, second.handle);
    client.ask(&close(opened.handle));
    client.ask(&close(first.handle));
    // No handle is left: another client gets the file alone.
    let mut alone = open("/f", Rights::READ);
    alone.options.unique = Some(0);
    Asker::client(&scratch.socket()).ask(&alone);
}

fn gather(member: u64, bytes: usize) -> Gather {
    Gather {
        team: "t".into(),
        member,
        rank: 0,
        size: 1,
        round: 0,
        contribution: Bytes(vec![0; bytes]),
        wait_ms: 0,
    }
}

#[test]
fn what_a_user_has_in_teams_is_limited() {
    let scratch = Scratch::new("teams");
    let manager = scratch.start();
    let mut client = Asker::client(&scratch.socket());
    // One name, many teams: each member is one, and what it says stays as long as it does.
    let refused = (0..1000).find_map(|member| {
        let answer = client.try_ask(&gather(member, 900 << 10));
        answer.err().map(|no| (member, no))
    });
    let Some((count, AskError::Refused(status, refusal))) = refused else {
        panic!("nothing is refused: {refused:?}");
    };
    assert_eq!(status, Status::QuotaExceeded);
    assert!(refusal.text.contains("bytes of teams"), "{}", refusal.text);
    // Another user has his own, and what was given back is free.
    Asker::user(&manager, BOB).ask(&gather(0, 900 << 10));
    client.ask(&LeaveTeam {
        team: "t".into(),
        member: 0,
    });
    client.ask(&gather(count, 900 << 10));
}

#[test]
fn teams_of_a_user_are_limited_by_whichever_verb_they_are_made() {
    let scratch = Scratch::new("watched");
    let _manager = scratch.start();
    let mut client = Asker::client(&scratch.socket());
    let watch = |member: u64| WatchTeam {
        team: format!("t{member}"),
        member,
        rank: 0,
        size: 1,
        wait_ms: 0,
        failed: String::new(),
        gone: None,
    };
    let refused = (0..20_000).find_map(|member| client.try_ask(&watch(member)).err());
    let Some(AskError::Refused(Status::QuotaExceeded, refusal)) = refused else {
        panic!("nothing is refused: {refused:?}");
    };
    assert!(refusal.text.contains("teams"), "{}", refusal.text);
}

#[test]
fn a_client_that_stops_inside_a_message_or_does_not_read_loses_its_connection() {
    let scratch = Scratch::new("patience");
    let mut options = scratch.options();
    options.connections.patience = std::time::Duration::from_millis(100);
    let _manager = metaserver::start(options).unwrap();
    let mut other = Asker::client(&scratch.socket());
    let header = |flags| Header {
        kind: Ping::KIND,
        status: Status::Ok,
        flags,
        request: 5,
        control_bytes: MAX_CONTROL_BYTES,
        payload_bytes: 0,
    };
    let mut begun = Asker::client(&scratch.socket());
    let part = vec![0; MAX_CONTROL_BYTES as usize];
    let head = header(CONTINUED).encode(&part);
    for bytes in [&head[..], &part] {
        let mut sent = 0;
        while sent < bytes.len() {
            sent += rustix::io::write(&begun.link, &bytes[sent..]).unwrap();
        }
    }
    assert_eq!(
        begun.link.receive().unwrap_err().status(),
        Status::Unreachable
    );
    let mut deaf = Asker::client(&scratch.socket());
    let stopped = loop {
        if let Err(no) = deaf.link.send(header(0), &[], &[]) {
            break no;
        }
    };
    assert_eq!(stopped.status(), Status::Unreachable, "{stopped}");
    other.ask(&Ping {});
}
