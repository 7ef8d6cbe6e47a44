//! What goes wrong and is repaired, and what is told when it is not.
//!
//! Scripts make servers misbehave; limits of time are short, and only their order of magnitude counts.

use std::time::{Duration, Instant};

use client::{Error, OpenOptions, ServerId, Status};
use wire::message::Request;
use wire::message::access::{READ, WRITE};
use wire::message::catalogue::{Close, Reopen};
use wire::message::file::{Release, Sync};

use crate::service::{Toy, Trick};
use crate::{connect, create, pattern};

#[test]
fn whatever_can_be_repaired_is_repaired() {
    let toy = Toy::start(3);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(8) over 3");
    let mut model = pattern(100, 0);
    file.write_at(0, &model).unwrap();
    let mut back = vec![0; 100];
    for (i, trick) in [
        Trick::Refuse(Status::Busy),
        Trick::Refuse(Status::UnknownView),
        Trick::Refuse(Status::ExpiredCapability),
        Trick::Refuse(Status::BadCapability),
        Trick::Refuse(Status::StaleEpoch),
        Trick::Refuse(Status::StaleLayout),
        Trick::Refuse(Status::WrongIncarnation),
        Trick::Refuse(Status::ShuttingDown),
        Trick::Hang,
        Trick::Relayout("striped(5) over 2".into()),
        Trick::Relayout("whole".into()),
        Trick::Relayout("striped(8) over 3".into()),
    ]
    .iter()
    .enumerate()
    {
        for server in 1..=3 {
            model[i * 3 + server as usize] ^= 0x55;
            let times = match trick {
                Trick::Refuse(Status::ExpiredCapability | Status::BadCapability) => 1,
                _ => 2,
            };
            toy.script(server, &vec![trick.clone(); times]);
            file.write_at(0, &model)
                .unwrap_or_else(|e| panic!("{trick:?}: {e}"));
            assert_eq!(toy.bytes("/f"), model, "{trick:?}");
            toy.script(server, std::slice::from_ref(trick));
            let n = file
                .read_at(0, &mut back)
                .unwrap_or_else(|e| panic!("{trick:?}: {e}"));
            assert_eq!(n, 100);
            assert!(back == model, "{trick:?}");
            toy.lock().tricks.clear();
        }
    }
}

#[test]
fn a_truncate_in_between_counts() {
    let toy = Toy::start(2);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(8) over 2");
    file.write_at(0, &pattern(100, 0)).unwrap();
    let mut back = vec![0; 100];
    toy.script(2, &[Trick::Truncate(30)]);
    assert_eq!(file.read_at(0, &mut back).unwrap(), 30);
    assert_eq!(back[..30], pattern(100, 0)[..30]);
    assert!(file.last_access().is_end_of_file);
    // A write that was overtaken is written again: it counts as later.
    toy.script(2, &[Trick::Truncate(3)]);
    file.write_at(10, &pattern(40, 1)).unwrap();
    assert_eq!(toy.bytes("/f")[10..], pattern(40, 1)[..]);
    assert_eq!(
        toy.bytes("/f")[..10],
        [&pattern(100, 0)[..3], &[0; 7]].concat()[..]
    );
}

#[test]
fn an_append_that_is_overtaken_by_a_truncate_goes_to_the_new_end() {
    let toy = Toy::start(2);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(8) over 2");
    assert_eq!(file.append(&pattern(40, 0)).unwrap(), 0);
    toy.script(2, &[Trick::Truncate(10)]);
    assert_eq!(file.append(&pattern(20, 1)).unwrap(), 10);
    assert_eq!(
        toy.bytes("/f"),
        [&pattern(40, 0)[..10], &pattern(20, 1)].concat()
    );
}

#[test]
fn busy_for_good_is_told_and_what_cannot_be_repaired_at_once() {
    let toy = Toy::start(1);
    let mut options = client::ConnectOptions::default();
    options.busy_timeout = Duration::from_millis(20);
    let client = client::Client::connect(&toy.url(), options).unwrap();
    let file = create(&client, "/f", "", "whole");
    toy.script(1, &vec![Trick::Refuse(Status::Busy); 1000]);
    let error = file.write_at(0, &[1]).unwrap_err();
    assert_eq!((error.status(), error.is_retryable()), (Status::Busy, true));
    toy.lock().tricks.clear();
    for status in [
        Status::NoSpace,
        Status::Corrupt,
        Status::Fenced,
        Status::Internal,
    ] {
        toy.script(1, &[Trick::Refuse(status)]);
        let error = file.read_at(0, &mut [0]).err();
        let error = error.or_else(|| file.write_at(0, &[1]).err()).unwrap();
        assert_eq!(error.status(), status);
        assert_eq!(error.errno(), status.errno());
        assert!(error.to_string().starts_with("server 1"), "{error}");
    }
    // A capability that stays bad is renewed once.
    toy.script(1, &vec![Trick::Refuse(Status::BadCapability); 3]);
    assert_eq!(
        file.write_at(0, &[1]).unwrap_err().status(),
        Status::BadCapability
    );
    toy.lock().tricks.clear();
    file.write_at(0, &[1]).unwrap();
}

#[test]
fn seed001_s31_a_failing_server_fails_the_whole_write_and_is_named() {
    let toy = Toy::start(3);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(10) over 3");
    file.write_at(0, &pattern(90, 0)).unwrap();
    toy.script(2, &[Trick::Refuse(Status::NoSpace)]);
    let error = file.write_at(5, &pattern(60, 1)).unwrap_err();
    let Error::Partial {
        confirmed,
        failures,
    } = &error
    else {
        panic!("{error:?}");
    };
    // Server 2 has bytes 10 to 19 first: five bytes before it are safe.
    assert_eq!(*confirmed, 5);
    assert_eq!((failures.len(), failures[0].server), (1, ServerId(2)));
    assert_eq!(failures[0].status, Status::NoSpace);
    assert!(failures[0].address.ends_with("2.sock"), "{error}");
    assert_eq!(error.status(), Status::NoSpace);
    // Nothing outside the range was touched, and repeating it completes it.
    let mut expected = pattern(90, 0);
    assert_eq!(
        toy.bytes("/f")[..10],
        [&expected[..5], &pattern(60, 1)[..5]].concat()[..]
    );
    assert_eq!(toy.bytes("/f")[65..], expected[65..]);
    file.write_at(5, &pattern(60, 1)).unwrap();
    expected[5..65].copy_from_slice(&pattern(60, 1));
    assert_eq!(toy.bytes("/f"), expected);
    // A read has one combined error, too.
    toy.script(3, &[Trick::Refuse(Status::Corrupt)]);
    let error = file.read_at(0, &mut [0; 90]).unwrap_err();
    assert_eq!(error.status(), Status::Corrupt);
    assert!(error.to_string().contains("server 3"));
}

#[test]
fn the_confirmed_prefix_counts_rounds() {
    let toy = Toy::with_limits(2, 4096, 100);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(64) over 2");
    let tricks = [Trick::Serve, Trick::Serve, Trick::Refuse(Status::NoSpace)];
    toy.script(1, &tricks);
    let error = file.write_at(0, &pattern(50_000, 0)).unwrap_err();
    // Two rounds of 4096 bytes at server 1 are 128 of its stripes, and every other stripe is not its.
    assert!(
        matches!(&error, Error::Partial { confirmed: 16384, failures } if failures[0].server == ServerId(1)),
        "{error:?}"
    );
    let written = {
        file.resize(50_000).unwrap();
        toy.bytes("/f")
    };
    assert!(written[..16384] == pattern(50_000, 0)[..16384]);
}

#[test]
fn a_dead_server_is_told_in_bounded_time() {
    let toy = Toy::start(3);
    let options = client::ConnectOptions::default().with_timeout(Duration::from_millis(300));
    let client = client::Client::connect(&toy.url(), options).unwrap();
    let file = create(&client, "/f", "", "striped(10) over 3");
    file.write_at(0, &pattern(90, 0)).unwrap();
    toy.kill(2);
    let started = Instant::now();
    let error = file.read_at(0, &mut [0; 90]).unwrap_err();
    assert_eq!(error.status(), Status::Unreachable);
    assert!(error.to_string().contains("server 2 at unix:"), "{error}");
    let error = file.write_at(0, &pattern(90, 1)).unwrap_err();
    assert!(
        matches!(&error, Error::Partial { confirmed: 10, failures } if failures[0].server == ServerId(2)),
        "{error:?}"
    );
    // Servers that live go on.
    let mut alive = [0; 10];
    assert_eq!(file.read_at(0, &mut alive).unwrap(), 10);
    assert_eq!(alive, pattern(90, 1)[..10]);
    assert!(started.elapsed() < Duration::from_secs(20), "no hang");
}

#[test]
fn a_restarted_service_is_found_again() {
    let toy = Toy::start(2);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(10) over 2");
    file.set_view_text("striped(5) over 2 [1]").unwrap();
    file.write_at(0, &pattern(40, 0)).unwrap();
    let handle = file.handle();
    toy.restart();
    let mut back = [0; 40];
    assert_eq!(file.read_at(0, &mut back).unwrap(), 40);
    assert_eq!(back[..], pattern(40, 0));
    client.members().unwrap();
    assert_ne!(file.handle(), handle, "opened again");
    file.close().unwrap();
}

#[test]
fn a_handle_that_is_not_opened_again_says_why_at_every_use_and_at_close() {
    let toy = Toy::start(1);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "whole");
    let other = create(&client, "/g", "", "whole");
    file.write_at(0, &pattern(40, 0)).unwrap();
    let forbid = |status| {
        toy.lock().refused.insert(Reopen::KIND, status);
        toy.restart();
        client.members().unwrap();
        toy.lock().refused.clear();
    };
    forbid(Status::PermissionDenied);
    let denied = |result: client::Result<usize>| {
        let error = result.expect_err("the manager knows no such handle");
        assert_eq!(error.status(), Status::PermissionDenied, "{error}");
    };
    denied(file.write_at(0, &[1]));
    denied(file.read_at(0, &mut [0]));
    denied(file.sync().map(|_| 0));
    denied(file.close().map(|()| 0));
    file.close().unwrap();
    // A later start of the manager may take a handle.
    forbid(Status::NotFound);
    assert_eq!(
        other.write_at(0, &[1]).unwrap_err().status(),
        Status::NotFound
    );
    toy.restart();
    client.members().unwrap();
    other.write_at(0, &[1]).unwrap();
    other.close().unwrap();
}

fn assert_lost(result: client::Result<impl std::fmt::Debug>) {
    let error = result.expect_err("bytes that are gone were called safe");
    assert!(matches!(error, Error::LostWrites { .. }), "{error}");
}

#[test]
fn a_loss_is_told_at_close_whatever_else_fails_there() {
    for kind in [Release::KIND, Close::KIND] {
        let toy = Toy::start(1);
        let client = connect(&toy);
        let file = create(&client, "/f", "", "whole");
        file.write_at(0, &pattern(40, 0)).unwrap();
        toy.lock().boots.insert(1, 1);
        toy.lock().refused.insert(kind, Status::Internal);
        assert_lost(file.close());
        // Without a loss the other failure is told.
        let file = create(&client, "/f", "", "whole");
        file.write_at(0, &pattern(40, 0)).unwrap();
        assert_eq!(file.close().unwrap_err().status(), Status::Internal);
    }
}

#[test]
fn two_threads_that_sync_one_handle_both_hear_of_a_loss() {
    let toy = Toy::start(1);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "whole");
    file.write_at(0, &pattern(40, 0)).unwrap();
    toy.lock().boots.insert(1, 1);
    toy.lock().holds = Some(Sync::KIND);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| file.sync());
        toy.wait_held(1);
        let second = file.sync();
        toy.release();
        assert_lost(second);
        assert_lost(first.join().unwrap());
    });
    // Both have said it; it is not said again.
    file.sync().unwrap();
    // What is written while a sync runs is for the next one.
    file.write_at(0, &[1]).unwrap();
    toy.lock().holds = Some(Sync::KIND);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| file.sync());
        toy.wait_held(2);
        file.write_at(0, &[2]).unwrap();
        toy.release();
        running.join().unwrap().unwrap();
    });
    toy.lock().boots.insert(1, 2);
    assert_lost(file.sync());
}

#[test]
fn a_request_whose_answer_was_lost_is_asked_again_as_the_same() {
    let toy = Toy::start(1);
    let client = connect(&toy);
    create(&client, "/f", "", "whole").close().unwrap();
    toy.script(0, &[Trick::Hang]);
    // The manager knows a request again that it has done; what it refuses was not done before either.
    assert_eq!(
        client.unlink("/nothing").unwrap_err().status(),
        Status::NotFound
    );
    assert_eq!(
        client.unlink("/nothing").unwrap_err().status(),
        Status::NotFound
    );
    let missing = client
        .open("/nothing", &OpenOptions::new().read())
        .unwrap_err();
    assert_eq!(missing.status(), Status::NotFound);
}

#[test]
fn a_service_that_is_not_there_is_told() {
    let url = "unix:/nowhere/at/all.sock".parse().unwrap();
    let options = client::ConnectOptions::default().with_timeout(Duration::from_millis(30));
    let error = client::Client::connect(&url, options.clone()).unwrap_err();
    assert_eq!(error.status(), Status::Unreachable);
    assert!(
        error.to_string().contains("/nowhere/at/all.sock"),
        "{error}"
    );
    let error = client::Client::connect(&"dir:/tmp".parse().unwrap(), options).unwrap_err();
    assert!(error.to_string().contains("no running service"), "{error}");
}

#[test]
fn repeated_parts_go_only_where_they_failed() {
    let toy = Toy::start(3);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(10) over 3");
    file.write_at(0, &pattern(30, 0)).unwrap();
    let before = toy.count(&[WRITE]);
    toy.script(2, &[Trick::Refuse(Status::Busy)]);
    file.write_at(0, &pattern(30, 1)).unwrap();
    assert_eq!(toy.count(&[WRITE]) - before, 4);
    let before = toy.count(&[READ]);
    toy.script(
        1,
        &[Trick::Refuse(Status::Busy), Trick::Refuse(Status::Busy)],
    );
    let mut back = [0; 30];
    file.read_at(0, &mut back).unwrap();
    assert_eq!(toy.count(&[READ]) - before, 5);
    assert_eq!(back[..], pattern(30, 1));
    // Registered once, however often it is used.
    let registered = toy.count(&[wire::message::file::SetView::KIND]);
    file.read_at(0, &mut back).unwrap();
    assert_eq!(toy.count(&[wire::message::file::SetView::KIND]), registered);
}

#[test]
fn seed001_s13_a_punch_is_repeated_until_all_servers_have_cleared_their_part() {
    let toy = Toy::start(3);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(8) over 3");
    let mut model = pattern(100, 0);
    file.write_at(0, &model).unwrap();
    // A connection that breaks before the answer, another epoch, a file that has moved.
    for (k, trick) in [Trick::Hang, Trick::Hang].iter().enumerate() {
        toy.script(2, std::slice::from_ref(trick));
        file.punch(k as u64 * 20..k as u64 * 20 + 15).unwrap();
        model[k * 20..k * 20 + 15].fill(0);
        assert_eq!(toy.bytes("/f"), model);
    }
    let other = connect(&toy);
    let same = other
        .open("/f", &OpenOptions::new().read().write())
        .unwrap();
    same.resize(90).unwrap();
    model.truncate(90);
    file.punch(80..1000).unwrap();
    model[80..].fill(0);
    assert_eq!(toy.bytes("/f"), model);
    // What is refused for good is told, and what is no range is not asked for.
    toy.lock()
        .refused
        .insert(wire::message::file::Punch::KIND, Status::PermissionDenied);
    let error = file.punch(0..10).unwrap_err();
    assert_eq!(error.status(), Status::PermissionDenied);
    let before = toy.count_all();
    for range in [std::ops::Range { start: 5, end: 4 }, 0..u64::MAX] {
        let error = file.punch(range).unwrap_err();
        assert!(error.to_string().contains("range"), "{error}");
    }
    file.punch(7..7).unwrap();
    assert_eq!(toy.count_all(), before);
    let reader = other.open("/f", &OpenOptions::new().read()).unwrap();
    assert_eq!(
        reader.punch(0..1).unwrap_err().status(),
        Status::PermissionDenied
    );
}

#[test]
fn bytes_that_were_punched_and_not_synced_are_lost_with_their_server() {
    let toy = Toy::start(2);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(8) over 2");
    file.write_at(0, &pattern(100, 0)).unwrap();
    file.sync().unwrap();
    file.punch(0..50).unwrap();
    toy.lock().boots.insert(1, 7);
    let error = file.sync().unwrap_err();
    assert!(matches!(error, Error::LostWrites { .. }), "{error}");
    file.sync().unwrap();
}
