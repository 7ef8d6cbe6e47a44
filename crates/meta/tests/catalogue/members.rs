//! Servers that join: who keeps its number, and what it keeps with it.
//!
//! Placement on members, and what dies with them, is in `layouts`.

use crate::fixture::{ALICE, Fixture, disk, memory};
use meta::ServerId;
use meta::catalogue::{Join, MemberState};
use wire::message::Bytes;

fn known_as(identity: u8, join: Join) -> Join {
    Join {
        identity: Bytes(vec![identity; 32]),
        ..join
    }
}

/// The server had no time to note its number: the answer to its first join, or the power, was lost.
#[test]
fn a_server_that_does_not_know_its_number_has_it_by_its_identity() {
    let mut f = Fixture::new(0);
    let first = f.join(known_as(1, disk(None, Some(0))));
    let file = f.create(ALICE, "/made-meanwhile").unwrap();
    let other = f.join(known_as(2, disk(None, Some(0))));
    assert_ne!(other.server, first.server);
    let again = f.join(known_as(1, disk(None, Some(0))));
    assert_eq!(again.server, first.server);
    assert!(again.incarnation > first.incarnation);
    let snapshot = f.catalogue.snapshot().unwrap();
    assert_eq!(snapshot.members().unwrap().len(), 2);
    // It has lost nothing: what is bound to the start that it did not note is there.
    assert_eq!(again.kept_since, first.kept_since);
    assert_eq!(snapshot.lost(file).unwrap(), []);
    // Nobody else is taken for it, and those who show nothing are new.
    assert_eq!(f.join(known_as(3, disk(None, Some(0)))).server, ServerId(2));
    assert_eq!(f.join(disk(None, Some(0))).server, ServerId(3));
    assert_eq!(f.join(disk(None, Some(0))).server, ServerId(4));
}

#[test]
fn a_server_that_lost_what_it_had_keeps_its_number_only() {
    let mut f = Fixture::new(0);
    for (identity, join) in [(1, disk(None, None)), (2, memory(None))] {
        let first = f.join(known_as(identity, join.clone()));
        let file = f.create(ALICE, &format!("/{identity}")).unwrap();
        let again = f.join(known_as(identity, join));
        assert_eq!(again.server, first.server);
        assert_eq!(again.kept_since, again.incarnation);
        let lost = f.catalogue.snapshot().unwrap().lost(file).unwrap();
        assert_eq!(lost.len(), 1);
        f.catalogue
            .transact(|b| b.mark_dead(again.server, again.incarnation))
            .unwrap()
            .unwrap();
    }
    // Bytes in memory went with their process, whatever it says, and a number says from when on there is anything.
    let first = f.join(known_as(3, memory(None)));
    let again = f.join(known_as(3, memory(None)));
    assert_eq!(again.kept_since, again.incarnation);
    let claims = Join {
        resumes: Some(0),
        ..known_as(3, memory(None))
    };
    let claims = f.join(claims);
    assert_eq!(claims.kept_since, claims.incarnation);
    let on_disk = f.join(known_as(4, disk(None, None)));
    let number = Some(on_disk.server.0);
    let from_nothing = f.join(known_as(4, disk(number, Some(0))));
    assert_eq!(from_nothing.kept_since, from_nothing.incarnation);
    assert_ne!(first.server, on_disk.server);
}

/// A catalogue in which one server has two numbers, from when its identity did not tell: the later one counts.
#[test]
fn of_two_numbers_of_one_server_the_later_counts() {
    let mut f = Fixture::new(0);
    let (ghost, other) = (f.join(disk(None, None)), f.join(disk(None, None)));
    for member in [&other, &ghost] {
        // As a server of a catalogue from before there were identities shows it.
        f.join(known_as(
            1,
            disk(Some(member.server.0), Some(member.incarnation)),
        ));
    }
    let late = f.join(known_as(
        1,
        disk(Some(other.server.0), Some(other.incarnation)),
    ));
    let found = f.join(known_as(1, disk(None, Some(0))));
    assert_eq!(found.server, late.server);
    let members = f.catalogue.snapshot().unwrap().members().unwrap();
    assert_eq!(members.len(), 2);
    assert!(members.iter().all(|m| m.state == MemberState::Alive));
}
