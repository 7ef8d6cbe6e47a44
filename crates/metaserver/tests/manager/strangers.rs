//! Peers that are not expected: other protocols, other versions, forged seals, a second manager.
//!
//! Each gets a clear answer, and the manager goes on.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use metaserver::{Endpoint, Keys, Options, StartError};
use wire::ask::AskError;
use wire::frame::{HEADER_BYTES, Header};
use wire::message::cluster::{FileState, ReportSize};
use wire::message::session::{Credentials, Hello, Ping, Role};
use wire::message::{Bytes, Request};
use wire::{ClientId, FileId, ServerId, Status, Time};

use crate::fixture::*;

/// What comes back for raw bytes, before the connection is closed.
fn answer_to(socket: &Endpoint, bytes: &[u8]) -> Option<Header> {
    let Endpoint::Unix(path) = socket else {
        unreachable!("tests use Unix sockets for this")
    };
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let header: &[u8; HEADER_BYTES] = answer.first_chunk()?;
    Some(Header::decode(header).unwrap())
}

fn hello_frame() -> Vec<u8> {
    let mut control = Vec::new();
    wire::message::encode(&hello(Role::NewClient, Credentials::ROOT), &mut control);
    let header = Header {
        kind: Hello::KIND,
        status: Status::Ok,
        flags: 0,
        request: 1,
        control_bytes: control.len() as u32,
        payload_bytes: 0,
    };
    [&header.encode(&control)[..], &control].concat()
}

#[test]
fn other_versions_and_random_bytes_are_answered_and_closed() {
    let (scratch, _manager, _members) = with_members("noise", 1);
    let socket = scratch.socket();
    let mut c = Asker::client(&socket);
    let mut newer = hello_frame();
    newer[4] = 99;
    assert_eq!(
        answer_to(&socket, &newer).unwrap().status,
        Status::WrongVersion
    );
    let mut damaged = hello_frame();
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(
        answer_to(&socket, &damaged).unwrap().status,
        Status::Malformed
    );
    assert_eq!(
        answer_to(
            &socket,
            b"GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n"
        )
        .unwrap()
        .status,
        Status::Malformed
    );
    let mut state = 0x2545_f491_4f6c_dd1du64;
    for round in 0..200 {
        let mut bytes = hello_frame();
        for _ in 0..1 + round % 7 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = (state >> 16) as usize % bytes.len();
            bytes[at] = state as u8;
        }
        bytes.truncate(1 + (state >> 33) as usize % bytes.len());
        answer_to(&socket, &bytes);
    }
    c.ask(&Ping {});
}

#[test]
fn bad_requests_on_a_good_connection_are_refused() {
    let (scratch, _manager, _members) = with_members("bad", 1);
    let mut c = Asker::client(&scratch.socket());
    for (kind, control, status) in [
        (0x10, &[1u8, 2, 3][..], Status::Malformed),
        (0x10, &[], Status::Malformed),
        (0x90, &[], Status::Unsupported),
        (0x70, &[], Status::Unsupported),
        (0xffff, &[], Status::Unsupported),
        (0x01, &[], Status::Unsupported),
    ] {
        let header = Header {
            kind,
            status: Status::Ok,
            flags: 0,
            request: 9,
            control_bytes: 0,
            payload_bytes: 0,
        };
        c.link.send(header, control, &[b"payload"]).unwrap();
        let (answer, _) = c.link.receive().unwrap();
        assert_eq!((answer.status, answer.request), (status, 9), "{kind:#x}");
    }
    c.ask(&Ping {});
}

#[test]
fn forged_sessions_and_seals_are_refused() {
    let (scratch, _manager, members) = with_members("forged", 2);
    let socket = scratch.socket();
    let c = Asker::client(&socket);
    let mut refused = Vec::new();
    let mut session = c.welcome.session.clone();
    session.0[10] ^= 1;
    refused.push(Role::Client {
        client: c.id(),
        session,
    });
    refused.push(Role::Client {
        client: ClientId(c.id().0 + 1),
        session: c.welcome.session.clone(),
    });
    refused.push(Role::Client {
        client: c.id(),
        session: Bytes(Vec::new()),
    });
    let Role::Server { seal, .. } = members[0].role() else {
        unreachable!("a server has a server's role")
    };
    refused.push(Role::Server {
        server: members[1].server(),
        seal,
    });
    refused.push(Role::Server {
        server: ServerId(0),
        seal: Bytes(vec![0; 32]),
    });
    for role in refused {
        let error = Asker::as_role(&socket, role.clone()).unwrap_err();
        assert_eq!(error.status(), Status::Unauthenticated, "{role:?}: {error}");
    }
    Asker::as_role(&socket, members[1].role()).unwrap();
    c.again(&socket).unwrap().ask(&Ping {});
}

#[test]
fn session_of_another_user_is_refused() {
    let (_scratch, manager, _members) = with_members("thief", 1);
    let alice = Asker::user(&manager, ALICE);
    let tcp = &manager.endpoints()[1];
    let as_bob = hello(alice.role(), Credentials::new(BOB, BOB));
    let error = Asker::hello(tcp, &as_bob).unwrap_err();
    assert_eq!(error.status(), Status::PermissionDenied, "{error}");
    let as_alice = hello(alice.role(), Credentials::new(ALICE, ALICE));
    Asker::hello(tcp, &as_alice).unwrap();
}

#[test]
fn wrong_secret_is_refused() {
    let (_scratch, manager, _members) = with_members("secret", 1);
    let mut link = wire::link::Link::connect(&manager.endpoints()[1], PATIENCE).unwrap();
    link.set_timeout(Some(PATIENCE)).unwrap();
    let mut out = Vec::new();
    let hello = hello(Role::NewClient, Credentials::ROOT);
    let Err(AskError::Refused(Status::Unauthenticated, refusal)) = link.ask(1, &hello, &mut out)
    else {
        panic!("the secret is asked for")
    };
    let wrong = metaserver::Secret::new(b"something else");
    let proof = serving::proof(&wrong, &refusal.detail.0, &hello);
    let prove = wire::message::session::Prove {
        proof: Bytes(proof.to_vec()),
    };
    let error = link.ask(2, &prove, &mut out).unwrap_err();
    assert_eq!(error.status(), Status::Unauthenticated, "{error}");
}

#[test]
fn each_role_has_its_messages() {
    let (scratch, _manager, mut members) = with_members("roles", 1);
    let mut c = Asker::client(&scratch.socket());
    let file = c.create("/f").file;
    c.refused(&FileState { file }, Status::PermissionDenied);
    let size = ReportSize {
        file,
        epoch: 0,
        size: 5,
        modified: Time(1),
    };
    c.refused(&size, Status::PermissionDenied);
    c.refused(&join("unix:/x"), Status::PermissionDenied);
    c.refused(&report(), Status::PermissionDenied);
    let mut newcomer = Asker::as_role(&scratch.socket(), Role::NewServer).unwrap();
    newcomer.refused(&FileState { file }, Status::PermissionDenied);
    newcomer.refused(&report(), Status::PermissionDenied);
    newcomer.refused(&create("/g"), Status::PermissionDenied);
    newcomer.refused(&join("somewhere"), Status::InvalidArgument);
    let member = &mut members[0];
    member
        .asker
        .refused(&create("/g"), Status::PermissionDenied);
    member.asker.refused(&stat("/f"), Status::PermissionDenied);
    member
        .asker
        .refused(&join("unix:/x"), Status::InvalidArgument);
    let mut lane = Asker::as_role(&scratch.socket(), member.role()).unwrap();
    assert_eq!(lane.ask(&size).size, 5);
    lane.refused(&report(), Status::PermissionDenied);
    lane.refused(&FileState { file: FileId(99) }, Status::NotFound);
}

#[test]
fn second_manager_on_a_directory_is_refused() {
    let scratch = Scratch::new("second");
    let manager = scratch.start();
    let second = Options {
        listen: vec![Endpoint::Unix(scratch.path().join("other.sock"))],
        ..scratch.options()
    };
    let error = metaserver::start(second.clone()).unwrap_err();
    assert!(matches!(error, StartError::Served(_)), "{error}");
    let dir = scratch.path().join("meta").display().to_string();
    assert!(error.to_string().contains(&dir), "{error}");
    Asker::client(&scratch.socket()).ask(&Ping {});
    manager.stop();
    metaserver::start(second).unwrap().stop();
}

#[test]
fn unsafe_and_impossible_listeners_are_refused() {
    let scratch = Scratch::new("listen");
    let with = |listen: Vec<&str>, secret| Options {
        listen: listen.iter().map(|l| l.parse().unwrap()).collect(),
        keys: Keys::of_user(secret),
        ..scratch.options()
    };
    let error = metaserver::start(with(vec!["tcp:0.0.0.0:0"], None)).unwrap_err();
    assert!(error.to_string().contains("PARIO_SECRET"), "{error}");
    metaserver::start(with(vec!["tcp:0.0.0.0:0"], Some(secret()))).unwrap();
    metaserver::start(with(vec!["tcp:127.0.0.1:0"], None)).unwrap();
    let error = metaserver::start(with(vec![], None)).unwrap_err();
    assert!(matches!(error, StartError::NoListener), "{error}");
    let error = metaserver::start(with(vec!["unix:/nowhere/x/y"], None)).unwrap_err();
    assert!(matches!(error, StartError::Listen(..)), "{error}");
    // A refused start gave everything back.
    scratch.start();
}

#[test]
fn key_is_private_found_again_and_never_replaced() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("key");
    let path = scratch.path().join("meta/key");
    let manager = scratch.start();
    let first = Joiner::new(&scratch.socket()).joined.key;
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    manager.stop();
    let manager = scratch.start();
    assert_eq!(Joiner::new(&scratch.socket()).joined.key, first);
    manager.stop();
    let key = std::fs::read(&path).unwrap();
    std::fs::write(&path, &key[1..]).unwrap();
    let error = metaserver::start(scratch.options()).unwrap_err();
    assert!(matches!(error, StartError::BadKey(_)), "{error}");
    std::fs::remove_file(&path).unwrap();
    let error = metaserver::start(scratch.options()).unwrap_err();
    assert!(matches!(error, StartError::Directory(..)), "{error}");
}
