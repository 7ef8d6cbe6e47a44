//! Requests that are split or were split already, sent by those who may not.
//!
//! Clients do not forward, servers are not forwarded for twice, and a view of a client is of use for nothing
//! else; the bytes of the dead are refused wherever they come from.

use layout::View;
use wire::link::Link;
use wire::message::access::{Access, FORWARDED, READ, WHOLE};
use wire::message::cluster::Fence;
use wire::message::file::SetView;
use wire::message::mapping::{Choose, Whole};
use wire::message::{self, Bytes, Refusal};
use wire::{ServerId, Status, describe};

use crate::rig::{File, Rig, header, pattern};

/// A connection as a server of the cluster.
fn as_server(rig: &Rig, to: usize) -> Link {
    rig.connect_as_server(ServerId(7), to)
}

fn set_view(link: &mut Link, file: &File, view: u64, capability: Bytes) {
    let mut description = Vec::new();
    describe::put_view(&mut description, &View::whole_file());
    let request = SetView {
        view,
        file: file.id,
        capability,
        description_bytes: description.len() as u64,
        description: Bytes(description),
    };
    link.ask(1, &request, &mut Vec::new()).unwrap();
}

/// Sends a read and takes the answer: status, text or bytes.
fn read(link: &mut Link, flags: u16, control: &[u8]) -> (Status, String, Vec<u8>) {
    let header = wire::frame::Header {
        flags,
        ..header(READ, 0)
    };
    link.send(header, control, &[]).unwrap();
    let (answer, said) = link.receive().unwrap();
    let text = match answer.status.is_ok() {
        true => String::new(),
        false => message::decode::<Refusal>(said).unwrap().text,
    };
    let mut bytes = vec![0; answer.payload_bytes as usize];
    link.receive_payload(&mut bytes).unwrap();
    (answer.status, text, bytes)
}

fn part(access: &Access<'_>) -> Vec<u8> {
    let mut control = Vec::new();
    access.encode(&mut control);
    control
}

fn whole(access: Access<'_>) -> Vec<u8> {
    let mut control = Vec::new();
    let whole = Whole {
        by: Choose::Keep,
        size: falls::MAX_OFFSET,
        ends: None,
        upcoming: None,
        history: &[],
        access,
    };
    whole.encode(&mut control);
    control
}

#[test]
fn seed004_s04_requests_are_split_once_and_forwarded_by_servers_only() {
    let rig = Rig::new(2);
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(10) over 2"));
    let view = View::whole_file();
    client.set_view(&file, 1, &view);
    let data = pattern(100, 3);
    client.write(&file, 1, &view, 0, &data).unwrap();
    let number = rig.number(0);

    // A client asks for everything, and forwards nothing.
    let all = file.access(1, 0, 100, 100);
    let link = client.lane(number);
    let (status, _, bytes) = read(link, WHOLE, &whole(all));
    assert!(status.is_ok() && bytes == data);
    let half = file.access(1, 0, 100, 50);
    let (status, text, _) = read(link, FORWARDED, &part(&half));
    assert_eq!(status, Status::PermissionDenied, "{text}");
    let (status, text, _) = read(link, WHOLE | FORWARDED, &whole(half));
    assert_eq!(status, Status::InvalidArgument, "{text}");

    // A server gets its part for a client, and nothing is split for it.
    let mut server = as_server(&rig, 0);
    set_view(&mut server, &file, 5, file.opened.capability.clone());
    let theirs = file.access(5, 0, 100, 50);
    let (status, _, bytes) = read(&mut server, FORWARDED, &part(&theirs));
    assert!(status.is_ok() && bytes.len() == 50);
    let (status, text, _) = read(&mut server, WHOLE, &whole(file.access(5, 0, 100, 100)));
    assert_eq!(status, Status::PermissionDenied, "{text}");
    let too_much = file.access(5, 0, 100, 100);
    let (status, text, _) = read(&mut server, FORWARDED, &part(&too_much));
    assert_eq!(status, Status::InvalidArgument, "{text}");
    // Not without the flag, and not through a view that is nobody's.
    let (status, text, _) = read(&mut server, 0, &part(&theirs));
    assert_eq!(status, Status::PermissionDenied, "{text}");
    set_view(&mut server, &file, 6, Bytes::default());
    let (status, text, _) = read(&mut server, FORWARDED, &part(&file.access(6, 0, 100, 50)));
    assert_eq!(status, Status::PermissionDenied, "{text}");
    let mut forged = file.opened.capability.clone();
    forged.0[30] ^= 1;
    let request = SetView {
        view: 8,
        file: file.id,
        capability: forged,
        description_bytes: 0,
        description: Bytes::default(),
    };
    assert!(server.ask(2, &request, &mut Vec::new()).is_err());

    // Whoever was declared dead is refused behind a gateway as well.
    let fence = Fence {
        client: client.welcome.client,
    };
    as_server(&rig, 0).ask(1, &fence, &mut Vec::new()).unwrap();
    let (status, text, _) = read(&mut server, FORWARDED, &part(&theirs));
    assert_eq!(status, Status::Fenced, "{text}");
}
