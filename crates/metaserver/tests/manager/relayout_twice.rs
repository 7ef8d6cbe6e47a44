//! Requests about moves that come twice, because their answer was lost: they are done once, and what others have asked
//! since stays.

use wire::message::catalogue::*;
use wire::message::hints::{ClearFailed, DiskFailed, ListFailed};
use wire::{FileId, Status};

use crate::fixture::*;
use crate::relayout::*;
use crate::twice::loser;

fn pull(s: &Setting, pulls: Pulls) {
    s.servers.iter().for_each(|server| server.set(pulls));
}

#[test]
fn draining_that_is_repeated_leaves_what_others_asked_since() {
    let mut s = setting("drained-twice");
    pull(&s, Pulls::Waits);
    let server = s.servers[0].joiner.joined.member.server;
    let drain = |is_over| Drain {
        server,
        is_over,
        options: MoveOptions::default(),
    };
    let mut a = loser(&s.scratch);
    let (first, second) = a.twice(&s.scratch, &drain(false), || {});
    assert!(first.is_draining && second.is_draining);
    let (first, second) = a.twice(&s.scratch, &drain(true), || {
        assert!(s.c.ask(&drain(false)).is_draining);
    });
    assert!(!first.is_draining);
    assert!(second.is_draining, "what another operator began was ended");
    let (first, second) = a.twice(&s.scratch, &drain(false), || {
        assert!(!s.c.ask(&drain(true)).is_draining);
    });
    assert!(first.is_draining);
    assert!(!second.is_draining, "what another operator ended was begun");
    assert!(!s.c.ask(&DrainProgress { server }).is_draining);
}

#[test]
fn draining_that_was_begun_is_not_refused_when_no_other_server_is_left() {
    let mut s = setting("drained-alone");
    pull(&s, Pulls::Waits);
    let number = |s: &Setting, i: usize| s.servers[i].joiner.joined.member.server;
    let drain = |server| Drain {
        server,
        is_over: false,
        options: MoveOptions::default(),
    };
    let (first, second) = (number(&s, 0), number(&s, 1));
    s.c.ask(&drain(second));
    let mut last = s.servers.pop();
    let mut a = loser(&s.scratch);
    let (_, again) = a.twice(&s.scratch, &drain(first), || {
        drop(last.take());
        let _ = s.c.wait(&Members {}, |members| {
            let members = members.as_ref().unwrap().iter();
            members.filter(|m| m.state == MemberState::Alive).count() == 2
        });
    });
    assert!(again.is_draining);
    pull(&s, Pulls::AtOnce);
}

/// A manager that was started again does not know how a server was to be drained; who repeats the request says so.
#[test]
fn draining_that_is_repeated_after_a_restart_has_its_options() {
    let mut s = setting("drained-options");
    let server = s.servers[0].joiner.joined.member.server;
    let mut drain = Drain {
        server,
        is_over: false,
        options: MoveOptions::default(),
    };
    drain.options.limit_bytes = 7 << 30;
    pull(&s, Pulls::Waits);
    s.servers[0].refuse(Some(s.file));
    let mut a = loser(&s.scratch);
    let mut manager = None;
    a.twice(&s.scratch, &drain, || {
        s.manager.take().unwrap().stop();
        manager = Some(s.scratch.start());
    });
    // Only what was not known is taken from it.
    drain.options.limit_bytes = 9 << 30;
    a.asker.try_ask_as(a.number, true, &drain).unwrap();
    s.servers[0].refuse(None);
    for server in &mut s.servers {
        server.join_again(&s.scratch);
    }
    let mut c = s.c.again(&s.scratch.socket()).unwrap();
    let moves = c.wait(&ListMoves {}, |moves| !moves.as_ref().unwrap().is_empty());
    assert_eq!(moves.unwrap()[0].progress.limit_bytes, 7 << 30);
    pull(&s, Pulls::AtOnce);
    manager.unwrap().stop();
}

#[test]
fn control_of_a_move_that_is_repeated_leaves_what_others_asked_since() {
    let mut s = setting("controlled-twice");
    pull(&s, Pulls::Waits);
    s.c.ask(&relayout(NEW));
    let mut a = loser(&s.scratch);
    let (file, scratch) = (s.file, &s.scratch);
    let (first, second) = a.twice(scratch, &control(file, MoveControl::Pause), || {
        s.c.ask(&control(file, MoveControl::Resume));
    });
    assert_eq!(first.state, MoveState::Paused);
    assert_eq!(second.state, MoveState::Moving, "it was paused twice");
    let limit = |limit_bytes| ControlRelayout {
        limit_bytes,
        ..control(file, MoveControl::Limit)
    };
    let (_, second) = a.twice(scratch, &limit(7 << 30), || {
        s.c.ask(&limit(9 << 30));
    });
    assert_eq!(second.limit_bytes, 9 << 30, "an old limit came back");

    // It is over when the request comes again, and another one is under way.
    let servers = &s.servers;
    let all = |pulls| servers.iter().for_each(|server| server.set(pulls));
    let (_, second) = a.twice(scratch, &control(file, MoveControl::Cancel), || {
        all(Pulls::AtOnce);
        ended(&mut s.c, file, MoveState::Cancelled);
    });
    assert_eq!(second.state, MoveState::Cancelled);
    all(Pulls::Waits);
    s.c.ask(&relayout(NEW));
    let (_, second) = a.twice(scratch, &control(file, MoveControl::Cancel), || {
        all(Pulls::AtOnce);
        ended(&mut s.c, file, MoveState::Cancelled);
        all(Pulls::Waits);
        s.c.ask(&relayout(NEW));
    });
    assert_eq!(second.state, MoveState::Moving);
    all(Pulls::AtOnce);
    ended(&mut s.c, file, MoveState::Done);
    assert_eq!(layout_of(&mut s.c).text, NEW);
}

#[test]
fn control_of_a_move_that_ended_with_the_manager_gets_its_answer() {
    let mut s = setting("controlled-restart");
    pull(&s, Pulls::Waits);
    s.c.ask(&relayout(NEW));
    let mut a = loser(&s.scratch);
    let cancel = control(s.file, MoveControl::Cancel);
    let mut manager = None;
    let (first, second) = a.twice(&s.scratch, &cancel, || {
        s.servers
            .iter()
            .for_each(|server| server.set(Pulls::AtOnce));
        ended(&mut s.c, s.file, MoveState::Cancelled);
        s.manager.take().unwrap().stop();
        manager = Some(s.scratch.start());
    });
    assert_eq!(first.state, MoveState::Cancelling);
    assert_eq!(second.state, MoveState::Cancelled);
    manager.unwrap().stop();
}

/// A file with four subfiles of one server.
fn crowded(s: &mut Setting, path: &str) -> FileId {
    let mut create = create(path);
    create.options.layout.layout = Some("striped(1KiB) over [0,1]".into());
    let file = s.c.ask(&create).file;
    for (layout, servers) in [("striped(64) over 4", vec![]), ("", vec![0])] {
        s.c.ask(&Relayout {
            path: path.into(),
            servers,
            ..relayout(layout)
        });
        ended(&mut s.c, file, MoveState::Done);
    }
    file
}

fn rebalance(path: &str) -> Rebalance {
    Rebalance {
        path: path.into(),
        is_trial: false,
        options: MoveOptions::default(),
    }
}

fn moving(c: &mut Asker) -> Vec<FileId> {
    let moves = c.ask(&ListMoves {});
    moves.iter().map(|m| m.progress.file).collect()
}

#[test]
fn rebalancing_that_is_repeated_moves_nothing_else() {
    let mut s = setting("balanced-twice");
    let one = crowded(&mut s, "/one");
    crowded(&mut s, "/two");
    let mut a = loser(&s.scratch);
    pull(&s, Pulls::Waits);
    // While it is under way, and when it is over and another client has moved everything back.
    let (first, second) = a.twice(&s.scratch, &rebalance("/one"), || {});
    assert_eq!(first.len(), 2);
    assert_eq!(first, second);
    pull(&s, Pulls::AtOnce);
    ended(&mut s.c, one, MoveState::Done);
    let back = Relayout {
        path: "/one".into(),
        servers: vec![0],
        ..relayout("")
    };
    s.c.ask(&back);
    ended(&mut s.c, one, MoveState::Done);
    let (first, second) = a.twice(&s.scratch, &rebalance("/one"), || {
        ended(&mut s.c, one, MoveState::Done);
        s.c.ask(&back);
        ended(&mut s.c, one, MoveState::Done);
    });
    assert_eq!(first, second);
    assert_eq!(moving(&mut s.c), []);

    // With those of the first time under way the servers look as if others had to move.
    pull(&s, Pulls::Waits);
    let mut begun = Vec::new();
    let (first, second) = a.twice(&s.scratch, &rebalance(""), || begun = moving(&mut s.c));
    assert!(!first.is_empty());
    assert_eq!(first, second);
    assert_eq!(moving(&mut s.c), begun);
    assert_eq!(s.c.ask(&Check {}), []);
}

#[test]
fn rebalancing_goes_on_where_it_was_when_it_is_repeated() {
    let mut s = setting("balanced-on");
    let (one, two) = (crowded(&mut s, "/one"), crowded(&mut s, "/two"));
    let mut a = loser(&s.scratch);
    s.servers[0].refuse(Some(two));
    let refused = a.asker.try_ask_as(7, false, &rebalance("")).unwrap_err();
    assert_eq!(refused.status(), Status::Io, "{refused}");
    // The first has begun; another client does not want that.
    ended(&mut s.c, one, MoveState::Done);
    let back = Relayout {
        path: "/one".into(),
        servers: vec![0],
        ..relayout("")
    };
    s.c.ask(&back);
    ended(&mut s.c, one, MoveState::Done);
    s.servers[0].refuse(None);
    pull(&s, Pulls::Waits);
    // Also after a restart.
    s.manager.take().unwrap().stop();
    let manager = s.scratch.start();
    s.c = s.c.again(&s.scratch.socket()).unwrap();
    for server in &mut s.servers {
        server.join_again(&s.scratch);
    }
    a.asker = a.asker.again(&s.scratch.socket()).unwrap();
    let plan = a.asker.try_ask_as(7, true, &rebalance("")).unwrap();
    assert!(
        plan.iter()
            .any(|step| step.file == one && step.path == "/one")
    );
    assert!(plan.iter().any(|step| step.file == two));
    assert_eq!(moving(&mut s.c), [two]);
    assert_eq!(a.asker.try_ask_as(7, true, &rebalance("")).unwrap(), plan);
    pull(&s, Pulls::AtOnce);
    ended(&mut s.c, two, MoveState::Done);
    manager.stop();
}

#[test]
fn failure_that_came_after_the_first_clearing_stays() {
    let mut s = setting("cleared-twice");
    let server = s.servers[0].joiner.joined.member.server;
    let failed = || DiskFailed {
        server,
        why: "it clicks".into(),
        handle: None,
    };
    s.servers[0].joiner.asker.ask(&failed());
    let mut a = loser(&s.scratch);
    let joiner = &mut s.servers[0].joiner;
    a.twice(&s.scratch, &ClearFailed { server }, || {
        joiner.asker.ask(&failed());
    });
    assert_eq!(s.c.ask(&ListFailed {}).len(), 1);
}
