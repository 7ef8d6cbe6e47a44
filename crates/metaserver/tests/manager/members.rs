//! I/O servers come, report, go and come back.
//!
//! A server here is the connection that it joined on; nothing is stored anywhere.

use std::time::{Duration, Instant};

use metaserver::Options;
use wire::message::catalogue::*;
use wire::message::cluster::{BeginTruncate, FinishTruncate, Join, Report, ReportSize};
use wire::{Rights, ServerId, Status};

use crate::fixture::*;

fn state_of(members: &[Member], server: ServerId) -> MemberState {
    let found = members.iter().find(|m| m.server == server);
    found.expect("it joined").state
}

/// Asks until a member is in this state.
fn wait_for(c: &mut Asker, server: ServerId, state: MemberState) {
    let _ = c.wait(&Members {}, |members| {
        state_of(members.as_ref().unwrap(), server) == state
    });
}

#[test]
fn member_dies_with_its_connection() {
    let (scratch, _manager, mut members) = with_members("death", 2);
    let mut c = Asker::client(&scratch.socket());
    let gone = members.remove(0);
    let (server, address) = (gone.server(), gone.joined.member.address.clone());
    // Other connections of the server do not count.
    let mut lane = Asker::as_role(&scratch.socket(), gone.role()).unwrap();
    drop(gone);
    wait_for(&mut c, server, MemberState::Dead);
    lane.ask(&wire::message::session::Ping {});
    c.wait_for_statistic("members_alive", 1);
    c.create("/f");
    let layout = c.ask(&GetLayout { path: "/f".into() });
    assert_eq!(layout.state.pieces[0].places.len(), 1);
    // It starts again: in memory everything is new.
    let again = Joiner::with(
        &scratch.socket(),
        Join {
            server: Some(server),
            ..join(&address)
        },
    );
    assert_eq!(again.server(), server);
    wait_for(&mut c, server, MemberState::Alive);
}

#[test]
fn silent_member_is_declared_dead_and_disconnected() {
    let scratch = Scratch::new("silent");
    let options = Options {
        member_timeout: Duration::from_millis(300),
        ..scratch.options()
    };
    let _manager = metaserver::start(options).unwrap();
    let mut c = Asker::client(&scratch.socket());
    let mut member = Joiner::new(&scratch.socket());
    wait_for(&mut c, member.server(), MemberState::Dead);
    let error = member.asker.try_ask(&report()).unwrap_err();
    assert_eq!(error.status(), Status::Unreachable, "{error}");
    // Its process lives: it goes on as what it was, with all its bytes.
    let before = member.joined.member.clone();
    let again = Joiner::with(
        &scratch.socket(),
        Join {
            server: Some(before.server),
            continues: Some(before.incarnation),
            ..join(&before.address)
        },
    );
    assert_eq!(again.joined.member, before);
}

#[test]
fn reports_carry_room_and_removals() {
    let (scratch, _manager, mut members) = with_members("reports", 1);
    let mut c = Asker::client(&scratch.socket());
    let file = c.create("/f").file;
    c.ask(&Unlink {
        path: "/f".into(),
        how: UnlinkHow::UnlessOpen,
    });
    let member = &mut members[0];
    let told = member.report();
    assert_eq!(told.members.len(), 1);
    assert_eq!(told.removals.len(), 1);
    assert_eq!(told.removals[0].file, file);
    assert_eq!(
        told.removals[0].incarnation,
        member.joined.member.incarnation
    );
    // Not confirmed: told again.
    assert_eq!(member.report().removals, told.removals);
    let confirmed = member.asker.ask(&Report {
        capacity_bytes: 1000,
        used_bytes: 999,
        load: 0,
        removed: told.removals,
    });
    assert_eq!(confirmed.removals, []);
    assert_eq!(confirmed.members[0].used_bytes, 999);
    c.refused(&create("/g"), Status::NoSpace);
}

#[test]
fn replaced_server_cannot_go_on() {
    let (scratch, _manager, mut members) = with_members("replaced", 1);
    let mut old = members.remove(0);
    let before = old.joined.member.clone();
    let same_number = |continues| Join {
        server: Some(before.server),
        continues,
        ..join(&before.address)
    };
    let mut new = Joiner::with(&scratch.socket(), same_number(None));
    assert!(new.joined.member.incarnation > before.incarnation);
    assert!(old.asker.try_ask(&report()).is_err());
    let mut late = Asker::as_role(&scratch.socket(), old.role()).unwrap();
    late.refused(
        &same_number(Some(before.incarnation)),
        Status::WrongIncarnation,
    );
    drop(old);
    new.report();
    let mut c = Asker::client(&scratch.socket());
    let list = c.ask(&Members {});
    assert_eq!(state_of(&list, before.server), MemberState::Alive);
}

#[test]
fn members_survive_a_restart_of_the_manager() {
    let (scratch, manager, mut members) = with_members("restart", 2);
    let mut c = Asker::client(&scratch.socket());
    c.create("/f");
    let file = stat_found(c.ask(&stat("/f"))).attributes.file;
    manager.stop();
    assert!(members[0].asker.try_ask(&report()).is_err());
    let options = Options {
        member_timeout: IN_TIME,
        ..scratch.options()
    };
    let _manager = metaserver::start(options).unwrap();
    let mut c = c.again(&scratch.socket()).unwrap();
    for member in &members {
        let state = state_of(&c.ask(&Members {}), member.server());
        assert_eq!(state, MemberState::Alive);
    }
    let before = members[0].joined.member.clone();
    let mut lane = Asker::as_role(&scratch.socket(), members[0].role()).unwrap();
    let joined = lane.ask(&Join {
        server: Some(before.server),
        continues: Some(before.incarnation),
        ..join(&before.address)
    });
    assert_eq!(joined.member, before);
    // The other one never comes back.
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "the other one is still alive");
        lane.ask(&report());
        let list = c.ask(&Members {});
        assert_eq!(state_of(&list, before.server), MemberState::Alive);
        if state_of(&list, members[1].server()) == MemberState::Dead {
            break;
        }
        std::thread::park_timeout(PAUSE);
    }
    let layout = c.ask(&GetLayout { path: "/f".into() });
    assert_eq!((layout.file, layout.lost), (file, vec![]));
}

#[test]
fn truncates_are_asked_by_the_owner_for_a_client() {
    let (scratch, _manager, mut members) = with_members("truncate", 1);
    let mut c = Asker::client(&scratch.socket());
    c.create("/f");
    let reader = c.open("/f", Rights::READ);
    let writer = c.open("/f", Rights::WRITE);
    let begin_as = |handle, client, request| BeginTruncate {
        client,
        handle,
        to: 10,
        request,
    };
    let begin = |handle, client| begin_as(handle, client, 1000);
    let owner = &mut members[0].asker;
    owner.ask(&ReportSize {
        file: writer.attributes.file,
        epoch: 0,
        size: 77,
        modified: wire::Time(1),
    });
    owner.refused(&begin(reader.handle, c.id()), Status::BadHandle);
    let other = wire::ClientId(c.id().0 + 1);
    owner.refused(&begin(writer.handle, other), Status::BadHandle);
    let state = owner.ask(&begin(writer.handle, c.id()));
    assert_eq!(
        (state.size, state.epoch, state.truncate_to),
        (10, 1, Some(10))
    );
    // No other client is told the new size before the servers have cut.
    let mut second = Asker::client(&scratch.socket());
    assert_eq!(stat_found(second.ask(&stat("/f"))).attributes.size, 77);
    let opened = second.open("/f", Rights::READ).attributes;
    assert_eq!((opened.size, opened.epoch), (77, 0));
    let again = owner.ask(&begin(writer.handle, c.id()));
    assert_eq!(again.epoch, 1, "it is the one that was begun before");
    let next = begin_as(writer.handle, c.id(), 1001);
    owner.refused(&next, Status::Busy);
    let state = owner.ask(&FinishTruncate {
        file: writer.attributes.file,
        epoch: 1,
    });
    assert_eq!((state.size, state.truncate_to), (10, None));
    assert_eq!(stat_found(second.ask(&stat("/f"))).attributes.size, 10);
}

/// The answer to its first join was lost, so that it does not know its number and joins as it did before.
#[test]
fn server_that_joins_twice_is_one_member() {
    let (scratch, _manager, mut members) = with_members("joins-twice", 1);
    let first = members.remove(0);
    let mut again = Joiner::with(&scratch.socket(), join(&first.joined.member.address));
    assert_eq!(again.server(), first.server());
    drop(first);
    // The end of the connection that it replaced is not its end.
    again.report();
    let mut c = Asker::client(&scratch.socket());
    wait_for(&mut c, again.server(), MemberState::Alive);
    assert_eq!(c.ask(&Members {}).len(), 1);
}
