//! The table of kinds at an I/O server: every kind is answered or refused, and only its sender may send it.
//!
//! What is sent cannot be decoded, so a kind that is answered says so and does nothing.

use wire::link::Link;
use wire::message::access::{READ, WRITE};
use wire::message::{KINDS, Kind, Receiver, Refusal, Sender};
use wire::{ServerId, Status};

use crate::rig::{Rig, header};

/// Parts of a conversation that another kind begins.
const INSIDE: [&str; 3] = ["Hello", "Prove", "Packet"];

/// Sends bytes that are no request of any kind; the status of the refusal.
fn refused(link: &mut Link, kind: u16) -> Status {
    link.send(header(kind, 0), &[0xff; 3], &[]).unwrap();
    let (answer, said) = link.receive().unwrap();
    let refusal: Refusal = wire::message::decode(said).unwrap();
    assert!(!refusal.text.is_empty(), "{kind:#x}");
    answer.status
}

/// What a sender of one role may hear.
fn expected(kind: &Kind, senders: &[Sender]) -> Status {
    if kind.to == Receiver::Manager {
        Status::Unsupported
    } else if !senders.contains(&kind.from) {
        Status::PermissionDenied
    } else if INSIDE.contains(&kind.name) {
        Status::Unsupported
    } else {
        Status::Malformed
    }
}

#[test]
fn every_kind_has_a_handler_or_is_refused_and_its_sender_alone_may_send_it() {
    let rig = Rig::new(1);
    let mut client = rig.client();
    let (client, _) = client.connect_as_itself(rig.number(0)).unwrap();
    let server = rig.connect_as_server(ServerId(7), 0);
    let manager = rig.connect_as_server(ServerId::MANAGER, 0);
    let (any, of_servers) = (Sender::Anyone, Sender::Server);
    let roles: [(Link, &[Sender]); 3] = [
        (client, &[any, Sender::Client, Sender::Rank]),
        (server, &[any, of_servers]),
        (manager, &[any, of_servers, Sender::Manager]),
    ];
    for (mut link, senders) in roles {
        for kind in KINDS {
            let status = refused(&mut link, kind.number);
            let name = kind.name;
            assert_eq!(status, expected(kind, senders), "{name} of {senders:?}");
        }
        for number in (0..0x100).filter(|n| Kind::of(*n).is_none() && ![READ, WRITE].contains(n)) {
            assert_eq!(
                refused(&mut link, number),
                Status::Unsupported,
                "{number:#x}"
            );
        }
    }
}
