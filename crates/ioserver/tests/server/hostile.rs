//! Wrong input: a clear refusal each, and the server serves on.
//!
//! Forged and expired capabilities, unknown views, ranges and payloads that do not fit, bad
//! descriptions, quotas, fences, random bytes.

use std::io::{Read, Write};

use layout::View;
use wire::Status;
use wire::ask::AskError;
use wire::message::Bytes;
use wire::message::cluster::Fence;
use wire::message::file::{DropView, ListSubfiles, SetView, SetViewPart};
use wire::message::session::{Ping, Role};
use wire::url::Endpoint;

use crate::rig::{Rig, pattern};

fn whole() -> View {
    View::whole_file()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, AskError>, status: Status) -> String {
    match result {
        Err(AskError::Refused(found, refusal)) => {
            assert_eq!(found, status, "{}", refusal.text);
            refusal.text
        }
        other => panic!("expected {status}, got {other:?}"),
    }
}

#[test]
fn capabilities_are_checked() {
    let rig = Rig::new(1);
    let mut client = rig.client();
    let mut file = client.open("/f", None, None);
    let good = file.opened.capability.clone();
    file.opened.capability.0[30] ^= 1;
    let forged = client.set_view_at(rig.number(0), &file, 1, &whole());
    refused(forged, Status::BadCapability);
    file.opened.capability = Bytes(b"no capability".to_vec());
    let short = client.set_view_at(rig.number(0), &file, 1, &whole());
    refused(short, Status::Malformed);
    // Of another client.
    file.opened.capability = good.clone();
    let mut other = rig.client();
    let stolen = other.set_view_at(rig.number(0), &file, 1, &whole());
    refused(stolen, Status::BadCapability);
    client
        .set_view_at(rig.number(0), &file, 1, &whole())
        .unwrap();
    client.write(&file, 1, &whole(), 0, b"fine").unwrap();
}

#[test]
fn accesses_that_do_not_fit_are_refused_and_the_connection_stays_in_step() {
    let rig = Rig::new(1);
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(4KiB) over 1"));
    client.set_view(&file, 1, &whole());
    let data = pattern(5000, 1);
    let unknown = client.write(&file, 77, &whole(), 0, &data).unwrap_err();
    assert_eq!(unknown.0, Status::UnknownView);
    assert!(unknown.1.contains("view 77"), "{}", unknown.1);
    // More bytes said than the range has here, and a payload of another length than said.
    let access = file.access(1, 0, 9000, 5000);
    let wrong = client
        .write_at(rig.number(0), access, &file, &data)
        .unwrap_err();
    assert_eq!(wrong.0, Status::InvalidArgument);
    let access = file.access(1, 0, 5000, 5000);
    let wrong = client
        .write_at(rig.number(0), access, &file, &data[..4000])
        .unwrap_err();
    assert_eq!(wrong.0, Status::InvalidArgument);
    let access = file.access(1, 0, 8 << 20, 8 << 20);
    let wrong = client
        .write_at(rig.number(0), access, &file, &data)
        .unwrap_err();
    assert_eq!(wrong.0, Status::TooLarge);
    client.write(&file, 1, &whole(), 0, &data).unwrap();
    assert_eq!(client.read(&file, 1, &whole(), 0, 5000).unwrap().0, data);
    // An empty view has no bytes anywhere.
    let empty = View::new(layout::FileOffset(0), 8, "{}".parse().unwrap()).unwrap();
    client.set_view(&file, 2, &empty);
    let access = file.access(2, 0, 10, 10);
    let none = client
        .write_at(rig.number(0), access, &file, &data[..10])
        .unwrap_err();
    assert_eq!(none.0, Status::InvalidArgument);
    assert_eq!(client.read(&file, 1, &whole(), 0, 5000).unwrap().0, data);
}

#[test]
fn seed000_s30_descriptions_are_validated_and_counted() {
    let rig = Rig::new(1);
    let mut client = rig.client();
    let file = client.open("/f", None, None);
    let set_view = |view, description_bytes, description: Vec<u8>| SetView {
        view,
        file: file.id,
        capability: file.opened.capability.clone(),
        description_bytes,
        description: Bytes(description),
    };
    // A tree whose inner set reaches outside its block, and bytes that are no tree.
    for bad in [
        vec![0, 9, 2, 0, 0, 1, 2, 5, 0, 0],
        vec![0xff; 40],
        vec![0, 0, 0],
    ] {
        let result = client.ask(rig.number(0), &set_view(1, bad.len() as u64, bad));
        refused(result, Status::InvalidArgument);
    }
    refused(
        client.ask(rig.number(0), &set_view(1, 2, vec![0; 3])),
        Status::InvalidArgument,
    );
    refused(
        client.ask(rig.number(0), &set_view(1, (16 << 20) + 1, vec![0])),
        Status::QuotaExceeded,
    );
    // Descriptions on their way count, and are bounded in number.
    client
        .ask(rig.number(0), &set_view(2, 15 << 20, vec![0]))
        .unwrap();
    refused(
        client.ask(rig.number(0), &set_view(3, 2 << 20, vec![0])),
        Status::QuotaExceeded,
    );
    client
        .ask(rig.number(0), &DropView { view: 2, maps: 0 })
        .unwrap();
    for view in 10..26 {
        client
            .ask(rig.number(0), &set_view(view, 1000, vec![0]))
            .unwrap();
    }
    refused(
        client.ask(rig.number(0), &set_view(99, 1000, vec![0])),
        Status::QuotaExceeded,
    );
    refused(
        client.ask(
            rig.number(0),
            &SetViewPart {
                view: 10,
                part: Bytes(vec![0; 5000]),
            },
        ),
        Status::Malformed,
    );
    refused(
        client.ask(rig.number(0), &DropView { view: 10, maps: 0 }),
        Status::UnknownView,
    );
    // A long one in parts is as good as a short one.
    let mut description = Vec::new();
    let segments: Vec<u64> = (0..4000).map(|i| i * i).collect();
    let set = falls::compress_offsets(&segments).unwrap();
    let view = View::new(layout::FileOffset(0), set.end(), set).unwrap();
    wire::describe::put_view(&mut description, &view);
    let (head, tail) = description.split_at(100);
    client
        .ask(
            rig.number(0),
            &set_view(5, description.len() as u64, head.to_vec()),
        )
        .unwrap();
    for part in tail.chunks(1500) {
        client
            .ask(
                rig.number(0),
                &SetViewPart {
                    view: 5,
                    part: Bytes(part.to_vec()),
                },
            )
            .unwrap();
    }
    let data = pattern(4000, 3);
    client.write(&file, 5, &view, 0, &data).unwrap();
    assert_eq!(client.read(&file, 5, &view, 0, 4000).unwrap().0, data);
}

#[test]
fn strangers_and_fenced_clients_are_refused() {
    let rig = Rig::new(1);
    let mut client = rig.client();
    let file = client.open("/f", None, None);
    client.set_view(&file, 1, &whole());
    client.write(&file, 1, &whole(), 0, b"before").unwrap();
    refused(
        client.connect(rig.number(0), Role::NewClient),
        Status::Unauthenticated,
    );
    refused(
        client.connect(rig.number(0), Role::NewServer),
        Status::Unauthenticated,
    );
    let mut forged = client.welcome.session.clone();
    forged.0[10] ^= 1;
    let role = Role::Client {
        client: client.welcome.client,
        session: forged,
    };
    refused(client.connect(rig.number(0), role), Status::Unauthenticated);
    let role = Role::Server {
        server: wire::ServerId(1),
        seal: Bytes(vec![0; 32]),
    };
    refused(client.connect(rig.number(0), role), Status::Unauthenticated);
    // A client cannot do what servers do.
    let fence = Fence {
        client: client.welcome.client,
    };
    refused(client.ask(rig.number(0), &fence), Status::PermissionDenied);
    let all = ListSubfiles {
        after: None,
        most: u64::MAX,
    };
    client.ask(rig.number(0), &all).unwrap();

    // A server of the cluster can.
    let mut manager = rig.connect_as_server(wire::ServerId::MANAGER, 0);
    manager.ask(1, &fence, &mut Vec::new()).unwrap();
    let lane = client.lanes.get_mut(&rig.number(0)).unwrap();
    assert!(lane.ask(1, &Ping {}, &mut Vec::new()).is_err());
    let role = client.role();
    refused(client.connect(rig.number(0), role), Status::Fenced);
    manager.ask(2, &fence, &mut Vec::new()).unwrap();
}

#[test]
fn random_bytes_hurt_nobody() {
    let rig = Rig::new(1);
    let mut client = rig.client();
    let file = client.open("/f", None, None);
    client.set_view(&file, 1, &whole());
    let Endpoint::Unix(path) = rig.servers[0].as_ref().unwrap().endpoint().clone() else {
        panic!("a Unix socket");
    };
    for salt in 0..50 {
        let mut socket = std::os::unix::net::UnixStream::connect(&path).unwrap();
        socket
            .set_read_timeout(Some(std::time::Duration::from_secs(20)))
            .unwrap();
        let _ = socket.write_all(&pattern(salt * 7 + 1, salt));
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
    }
    // Random control parts of every kind, on a connection that is somebody.
    // What hostile views, ranges and collectives do is in `hostile_views`.
    for (kind, salt) in (0..0x100).flat_map(|kind| (0..4).map(move |salt| (kind, salt))) {
        if kind == 6 {
            continue;
        }
        let lane = client.lane(rig.number(0));
        let len = (u64::from(kind) * 7 + salt * 131) % 700;
        let control = pattern(len, u64::from(kind) + salt);
        let sent = lane.send(crate::rig::header(kind, 0), &control, &[&[1; 100]]);
        match sent.and_then(|()| lane.receive().map(|(answer, _)| answer)) {
            Ok(answer) => assert!(!answer.status.is_ok() || [3, 4, 5, 0x84].contains(&kind)),
            Err(_) => client.lanes.clear(),
        }
    }
    client.lanes.clear();
    client.set_view(&file, 1, &whole());
    client.write(&file, 1, &whole(), 0, b"alive").unwrap();
}
