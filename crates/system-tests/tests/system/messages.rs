//! Messages, as the specifications derive them: one per server that holds bytes of an access, none
//! to others, split at the limit, acknowledged when all is written, and no data between servers.

use client::{Error, Status, View};
use system_tests::layouts::view_of;
use system_tests::plain_file::assert_bytes;
use system_tests::{PlainFile, Random, ServiceOptions, pattern, until};

use crate::{create, open};

const LAYOUTS: &[(Option<&str>, &str)] = &[
    (None, "striped(100) over 4"),
    (Some("u8[40,40]"), "(block, block) onto 2x2"),
    (Some("u8[64]"), "(cyclic(5)) onto 4"),
    (None, "falls{(0,9); (10,14,10,3); (15,19,10,3)} period 40"),
    (None, "whole"),
];

const VIEWS: &[(Option<&str>, &str)] = &[
    (None, "whole"),
    (Some("u8[40,40]"), "(*, block) onto 4 [2]"),
    (Some("u8[40,40]"), "(block, *) onto 4 [1]"),
    (None, "strided(3, 2: 4x8)"),
    (None, "falls{(0,9)} period 400"),
];

#[test]
fn seed000_s16_an_access_sends_one_message_to_each_server_that_holds_bytes_of_it() {
    let service = ServiceOptions::new(4).direct(false).start();
    let client = service.client();
    let mut random = Random::of_run(16);
    let ids: Vec<_> = (0..4).map(|i| service.server_id(i)).collect();
    for (number, (array, layout)) in LAYOUTS.iter().enumerate() {
        let file = create(&client, &format!("/file-{number}"), *array, layout);
        file.write_at(0, &random.bytes(5000)).expect("written");
        for (array, text) in VIEWS {
            let view = view_of(*array, 7, text);
            file.set_view(&view).expect("a view");
            // The first access registers the view; what is counted comes after that.
            let there = view.len_within(5000);
            file.read_at(0, &mut vec![0; there as usize]).expect("read");
            for _ in 0..4 {
                let at = random.below(there);
                let len = random.within(1..(there - at).min(300) + 1);
                let state = file.layout();
                let partition = &state.pieces[0].partition;
                // By brute force: who holds the bytes.
                let mut holds = vec![false; service.servers()];
                for k in at..at + len {
                    let x = view.view_to_file(layout::ViewOffset(k)).expect("a byte");
                    let (subfile, _) = partition.owner(x).expect("an owner");
                    let place = state.pieces[0].places[subfile][0];
                    holds[ids
                        .iter()
                        .position(|id| id.0 == place.server)
                        .expect("known")] = true;
                }
                let expected: Vec<u64> = holds.iter().map(|h| u64::from(*h)).collect();
                for (name, is_write) in [("reads", false), ("writes", true)] {
                    let (_, sent) = client.messages_sent();
                    let before = service.counters(&client, name);
                    let (_, sent_by_asking) = client.messages_sent();
                    assert_eq!(sent, sent_by_asking, "questions are no data");
                    match is_write {
                        true => file.write_at(at, &random.bytes(len as usize)),
                        false => file.read_at(at, &mut vec![0; len as usize]),
                    }
                    .expect("done");
                    let after = service.counters(&client, name);
                    let added: Vec<u64> = after.iter().zip(&before).map(|(a, b)| a - b).collect();
                    assert_eq!(
                        added, expected,
                        "{name} of {layout} through {text} {at} {len}"
                    );
                    let (_, now) = client.messages_sent();
                    assert_eq!(now - sent, expected.iter().sum::<u64>(), "{name} sent");
                    let phases = file.last_access();
                    assert_eq!(phases.messages(), now - sent);
                    assert_eq!(phases.servers.iter().map(|s| s.bytes).sum::<u64>(), len);
                }
            }
        }
    }
}

#[test]
fn seed001_s32_servers_exchange_no_bytes_of_files() {
    let service = ServiceOptions::new(3).direct(false).start();
    let client = service.client();
    let file = create(&client, "/file", Some("u8[30,30]"), "(block, *) onto 3");
    let mut model = PlainFile::new();
    let mut random = Random::of_run(32);
    for text in ["(block, *) onto 3 [1]", "(*, block) onto 3 [2]", "whole"] {
        let view = view_of(Some("u8[30,30]"), 0, text);
        file.set_view(&view).expect("a view");
        let bytes = random.bytes(2000);
        file.write_at(3, &bytes).expect("written");
        model.write(&view, 3, &bytes);
        assert_bytes(&crate::read_all(&file), &model.seen(&view), text);
    }
    file.append(&random.bytes(500)).expect("appended");
    file.resize(100).expect("resized");
    assert_eq!(service.counters(&client, "bytes_to_servers"), [0, 0, 0]);
    assert_eq!(service.counters(&client, "pulled_bytes"), [0, 0, 0]);
}

#[test]
fn seed000_s17_a_contiguous_subfile_is_not_copied_and_others_are_scattered() {
    let service = ServiceOptions::new(2).direct(false).start();
    let client = service.client();
    let mut random = Random::of_run(17);
    let straight = |name: &str| service.counters(&client, name).iter().sum::<u64>();
    // Contiguous on both sides, on the subfile only (from all servers, and from one), on neither.
    let cases = [
        ("striped(1MiB) over 2", "whole", true),
        ("striped(3) over 2", "whole", true),
        ("striped(3) over 2", "striped(3) over 2 [1]", true),
        ("striped(3) over 2", "strided(0, 2: 4x5)", false),
    ];
    for (number, (layout, view, is_straight)) in cases.into_iter().enumerate() {
        let file = create(&client, &format!("/file-{number}"), None, layout);
        let view = view_of(None, 0, view);
        file.set_view(&view).expect("a view");
        let bytes = random.bytes(60_000);
        let before = straight("straight_accesses");
        file.write_at(0, &bytes).expect("written");
        let mut model = PlainFile::new();
        model.write(&view, 0, &bytes);
        assert_bytes(&crate::read_all(&file), &bytes, layout);
        let went_straight = straight("straight_accesses") > before;
        assert_eq!(went_straight, is_straight, "{layout} at the server");
        crate::check_whole(&file, model.bytes());
    }
}

#[test]
fn seed001_s29_transfers_beyond_the_message_limit_are_split_and_put_together() {
    let limit = 256 << 10;
    let service = ServiceOptions::new(2)
        .direct(false)
        .io_arguments(["--message", "256KiB"])
        .start();
    let client = service.client();
    let file = create(&client, "/file", None, "striped(10000) over 2");
    let len: usize = 3 << 20;
    let whole = View::whole_file();
    file.write_at(0, &pattern(&whole, 0, 100, 1))
        .expect("written");
    for tag in [1, 2] {
        let bytes = pattern(&whole, 0, len, tag);
        file.write_at(0, &bytes).expect("written");
        let sent = file.last_access();
        for server in &sent.servers {
            let least = server.bytes.div_ceil(limit);
            assert!(server.messages >= least, "{server:?}: split at {limit}");
            assert!(
                server.messages <= least + 2,
                "{server:?}: no more than needed"
            );
        }
        assert_bytes(&crate::read_all(&file), &bytes, "after a long write");
    }
}

#[test]
fn seed001_s30_a_long_write_is_announced_and_returns_when_all_servers_have_it() {
    let mut service = ServiceOptions::new(2)
        .direct(false)
        .io_arguments(["--rendezvous", "64KiB"])
        .start();
    let client = service.client();
    let file = create(&client, "/file", None, "striped(1000) over 2");
    let short = pattern(&View::whole_file(), 0, 2000, 1);
    file.write_at(0, &short).expect("written");
    assert_eq!(service.counters(&client, "announced_writes"), [0, 0]);
    let long = pattern(&View::whole_file(), 0, 1 << 20, 2);
    file.write_at(0, &long).expect("written");
    let announced = service.counters(&client, "announced_writes");
    assert!(announced.iter().all(|n| *n >= 1), "{announced:?}");
    // One server does not answer: the write is not done, whatever the other has written.
    let first = file.write_at_nonblocking(0, long.clone()).wait().0;
    assert_eq!(first.expect("written"), 1 << 20);
    let observer = service.client();
    for stopped in 0..2 {
        let other = 1 - stopped;
        let before = service.counter(&observer, other, "written_bytes");
        let paused = service.io(stopped).pause();
        let tag = 3 + stopped as u64;
        let bytes = pattern(&View::whole_file(), 0, 1 << 20, tag);
        let request = file.write_at_nonblocking(0, bytes.clone());
        until("the other server's part", || {
            service.counter(&observer, other, "written_bytes") >= before + 500_000
        });
        assert!(!request.test(), "not before all servers have it");
        drop(paused);
        assert_eq!(request.wait().0.expect("written"), 1 << 20);
        assert_bytes(&crate::read_all(&file), &bytes, "after both");
    }
}

#[test]
fn seed004_s84_answers_may_come_in_any_order_and_all_bytes_are_accounted_for() {
    let mut service = ServiceOptions::new(3).direct(false).start();
    let client = service.client();
    let file = create(&client, "/file", None, "striped(10) over 3");
    let whole = View::whole_file();
    let mut model = PlainFile::new();
    // With a hole in the middle and an end in the middle of a stripe.
    for at in [0, 5000] {
        let bytes = pattern(&whole, at, 1234, 1);
        file.write_at(at, &bytes).expect("written");
        model.write(&whole, at, &bytes);
    }
    // Connections are made, and views registered, by the first access of a thread.
    let (_, found) = file.read_at_nonblocking(0, vec![0; 10_000]).wait();
    assert_bytes(
        &found.as_ref()[..model.bytes().len()],
        model.bytes(),
        "before",
    );
    let observer = service.client();
    let owner = service.index_of(client::ServerId(file.layout().owner.server));
    for stopped in 0..3 {
        let before = service.counters(&observer, "reads");
        let paused = service.io(stopped).pause();
        let read = file.read_at_nonblocking(100, vec![0xEE; 10_000]);
        let others: Vec<usize> = (0..3).filter(|i| *i != stopped).collect();
        // A read that seems short asks the owner for the size before anything else.
        if stopped != owner {
            until("the others' answers", || {
                others
                    .iter()
                    .all(|i| service.counter(&observer, *i, "reads") > before[*i])
            });
        }
        assert!(!read.test(), "not before all have answered");
        drop(paused);
        let (n, found) = read.wait();
        let n = n.expect("read");
        assert_bytes(
            &found.as_ref()[..n],
            &model.bytes()[100..],
            "short, with a hole",
        );
        assert!(file.last_access().is_end_of_file);
    }
}

#[test]
fn seed001_s31_a_server_that_fails_makes_the_access_fail_and_is_named() {
    let mut service = ServiceOptions::new(3).direct(false).start();
    // Soon tired of one that is away, but not of one that is slow.
    let mut options = service.connect_options();
    options.timeout = std::time::Duration::from_millis(300);
    let client = client::Client::connect(&service.url(), options).expect("a client");
    let file = create(&client, "/file", None, "striped(100) over 3");
    file.write_at(0, &[1; 1000]).expect("written");
    let dead = (0..3)
        .find(|i| service.server_id(*i).0 != file.layout().owner.server)
        .expect("one that does not own the file");
    let id = service.server_id(dead);
    service.kill_io(dead);
    let names = |error: &Error| match error {
        Error::Partial { failures, .. } => failures.iter().any(|f| f.server == id),
        Error::Unreachable { server, .. } => *server == Some(id),
        Error::Lost { server } => *server == id,
        Error::Refused { server, .. } => *server == Some(id),
        _ => false,
    };
    let error = file.write_at(0, &[2; 1000]).expect_err("a server is gone");
    assert!(names(&error), "{error}");
    let error = file
        .read_at(0, &mut [0; 1000])
        .expect_err("a server is gone");
    assert!(names(&error), "{error}");
    assert_ne!(error.status(), Status::Ok);
    // With its keeper its memory is gone, and that is said for ever; other files go on.
    service.kill_keeper(dead);
    service.start_io(dead);
    let late = service.client();
    let error = open(&late, "/file").read_at(0, &mut [0; 1000]);
    assert_eq!(error.expect_err("lost").status(), Status::Lost);
    let other = create(&late, "/other", None, "striped(100) over 3");
    other.write_at(0, &[3; 1000]).expect("written");
    assert_bytes(&crate::read_all(&other), &[3; 1000], "a new file");
}
