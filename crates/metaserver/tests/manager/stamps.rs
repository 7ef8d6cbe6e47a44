//! Clients elsewhere that were given stamps: they are told before a change can be seen, and waited
//! for no longer than they believe.

use std::time::{Duration, Instant};

use wire::Status;
use wire::message::catalogue::{Chmod, Mkdir, Stat};
use wire::message::stamps::{AttachStamps, AwaitRecalls, RecallsAre, Stamp};

use crate::fixture::*;

fn ask(path: &str) -> Stat {
    Stat {
        wants_stamps: true,
        ..stat(path)
    }
}

fn directory(path: &str) -> Mkdir {
    Mkdir {
        path: path.into(),
        mode: 0o755,
    }
}

/// Lets a client listen; what it was told first.
fn listen(client: &mut Asker) -> RecallsAre {
    let first = client.ask(&AwaitRecalls { heard: 0 });
    assert!(first.is_first);
    // Lies until nothing has happened for a while.
    let heard = first.number;
    client.ask(&AwaitRecalls { heard })
}

#[test]
fn a_dead_client_elsewhere_is_waited_for_once_and_no_longer_than_it_believes() {
    let scratch = Scratch::new("stamps");
    let manager = scratch.start();
    let mut c = Asker::client(&scratch.socket());
    c.ask(&directory("/d"));
    let mut dead = Asker::user(&manager, BOB);
    assert_eq!(dead.ask(&ask("/d")).stamped, None, "it does not listen");
    listen(&mut dead);
    let stamped = dead.ask(&ask("/d")).stamped.expect("it listens");
    assert!(stamped.stamps.len() >= 3, "{stamped:?}");
    let chmod = |mode| Chmod {
        path: "/d".into(),
        mode,
    };
    for mode in 0..20 {
        c.ask(&chmod(0o700 + mode));
        assert_eq!(c.statistic("changes_not_heard"), 1, "once, the first time");
    }
    // It was not dead: it is told to forget.
    assert!(listen(&mut dead).number > 0);
    assert!(dead.ask(&ask("/d")).stamped.is_some());
}

#[test]
fn a_change_is_told_to_those_who_hold_it_and_goes_on_when_they_have_heard() {
    let scratch = Scratch::new("stamps");
    let manager = scratch.start();
    let mut c = Asker::client(&scratch.socket());
    c.ask(&directory("/d"));
    let mut client = Asker::user(&manager, BOB);
    let heard = listen(&mut client).number;
    let held = client.ask(&ask("/d")).stamped.expect("it listens");
    let missing = client.ask(&ask("/d/none"));
    assert!(missing.found.is_none() && missing.stamped.is_some());
    client.refused(&stat("/d/none"), Status::NotFound);
    std::thread::scope(|scope| {
        let change = scope.spawn(|| c.ask(&directory("/d/none")));
        let told = client.ask(&AwaitRecalls { heard });
        assert!(!told.is_first && !told.changed.is_empty(), "{told:?}");
        assert!(told.changed.iter().all(|s| s.stamp % 2 == 1));
        let of_it = |s: &&Stamp| held.stamps.iter().any(|h| h.slot == s.slot);
        assert!(told.changed.iter().any(|s| of_it(&s)));
        assert!(!change.is_finished(), "it waits until this was heard");
        let heard = told.number;
        let lies = scope.spawn(move || client.ask(&AwaitRecalls { heard }));
        change.join().unwrap();
        assert!(!lies.join().unwrap().is_first);
    });
}

#[test]
fn a_start_waits_until_nobody_elsewhere_believes_the_one_before() {
    let scratch = Scratch::new("stamps");
    let mark = scratch.path().join("meta/elsewhere");
    // Nobody elsewhere was told anything.
    let manager = scratch.start();
    Asker::client(&scratch.socket()).ask(&directory("/d"));
    drop(manager);
    assert!(!mark.exists());
    let manager = scratch.start();
    let mut client = Asker::user(&manager, BOB);
    listen(&mut client);
    assert!(!mark.exists(), "it was told nothing yet");
    assert!(client.ask(&ask("/d")).stamped.is_some());
    assert!(mark.exists());
    let told = Instant::now();
    drop(manager);
    assert!(mark.exists());
    // It sleeps and does not notice. It believes `/d` for as long as it was told that it may.
    let manager = scratch.start();
    let mut c = Asker::client(&scratch.socket());
    let before = c.ask(&stat("/d"));
    c.ask(&Chmod {
        path: "/d".into(),
        mode: 0o700,
    });
    assert_ne!(c.ask(&stat("/d")), before);
    let valid = Duration::from_millis(control::recalls::VALID_MS);
    assert!(told.elapsed() > valid, "{:?}", told.elapsed());
    // Nobody elsewhere believes anything now.
    drop(manager);
    assert!(!mark.exists());
}

#[test]
fn memory_is_shared_over_sockets_only() {
    let scratch = Scratch::new("stamps");
    let manager = scratch.start();
    let mut client = Asker::user(&manager, BOB);
    client.refused(&AttachStamps {}, Status::Unsupported);
}
