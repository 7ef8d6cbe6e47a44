//! Bytes on the sockets that are no frames, or not the frames they say they are.
//! Both kinds of servers answer with a reason where they can, and go on with everybody else.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use client::{Endpoint, ServerId, Status};
use system_tests::raw::{Raw, access, version_of};
use system_tests::{Random, Service, ServiceOptions, until};
use wire::frame::{HEADER_BYTES, Header, VERSION};
use wire::link::Link;
use wire::message::access::{ANNOUNCED, DATA, READ, WRITE};
use wire::message::session::{Hello, Ping};
use wire::message::{Request, encode};

use crate::{assert_alive, create, read, whole};

/// The sockets of a server of each kind.
fn sockets(service: &mut Service) -> [Endpoint; 2] {
    [
        service.meta().endpoint().clone(),
        service.io(0).endpoint().clone(),
    ]
}

fn stream(endpoint: &Endpoint) -> UnixStream {
    let Endpoint::Unix(path) = endpoint else {
        panic!("Unix sockets only")
    };
    let stream = UnixStream::connect(path).expect("a connection");
    let limit = Some(Duration::from_secs(30));
    stream.set_read_timeout(limit).expect("a limit");
    stream.set_write_timeout(limit).expect("a limit");
    stream
}

/// A header with lengths as they are, whatever is allowed.
fn header(kind: u16, control: &[u8]) -> [u8; HEADER_BYTES] {
    let header = Header {
        kind,
        status: Status::Ok,
        flags: 0,
        request: 1,
        control_bytes: control.len() as u32,
        payload_bytes: 0,
    };
    header.encode(control)
}

/// What a server says before it closes the connection, if it says anything.
fn last_word(endpoint: &Endpoint, bytes: &[u8]) -> Option<Status> {
    let mut link = Link::connect(endpoint, Duration::from_secs(10)).expect("a connection");
    link.set_timeout(Some(Duration::from_secs(30)))
        .expect("a limit");
    let mut rest = bytes;
    while !rest.is_empty() {
        use std::os::fd::AsFd;
        let sent = rustix::net::send(link.as_fd(), rest, rustix::net::SendFlags::NOSIGNAL);
        match sent {
            Ok(n) => rest = &rest[n..],
            Err(_) => break,
        }
    }
    let said = link.receive().ok().map(|(header, _)| header.status);
    assert!(link.receive().is_err(), "the connection goes on");
    said
}

#[test]
fn other_versions_and_random_bytes_are_refused() {
    let mut service = ServiceOptions::new(1).start();
    let mut random = Random::of_run(20);
    for endpoint in sockets(&mut service) {
        let mut hello = Vec::new();
        let mut bytes = header(Hello::KIND, &hello);
        bytes[4..6].copy_from_slice(&(VERSION + 1).to_le_bytes());
        assert_eq!(last_word(&endpoint, &bytes), Some(Status::WrongVersion));
        // A control part of four gigabytes is not waited for, and no memory is taken for it.
        let mut bytes = header(Hello::KIND, &hello);
        bytes[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(last_word(&endpoint, &bytes), Some(Status::TooLarge));
        let mut bytes = header(Hello::KIND, &hello);
        bytes[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(last_word(&endpoint, &bytes), Some(Status::TooLarge));
        // A checksum that does not match.
        encode(&Ping {}, &mut hello);
        let mut bytes = header(Ping::KIND, b"abc").to_vec();
        bytes.extend_from_slice(b"abd");
        assert_eq!(last_word(&endpoint, &bytes), Some(Status::Malformed));
        // Something else than an introduction.
        let said = last_word(&endpoint, &header(Ping::KIND, &[]));
        assert!(said.is_some_and(|s| !s.is_ok()), "{said:?}");
        for _ in 0..20 {
            let len = 1 + random.index(300);
            let noise = random.bytes(len.max(HEADER_BYTES));
            assert_eq!(last_word(&endpoint, &noise), Some(Status::Malformed));
        }
    }
    assert_alive(&mut service);
}

#[test]
fn half_frames_hold_nobody_up() {
    let mut service = ServiceOptions::new(1).start();
    let mut random = Random::of_run(21);
    let mut open = Vec::new();
    for endpoint in sockets(&mut service) {
        for cut in [1, 7, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 3] {
            let control = random.bytes(50);
            let mut bytes = header(Hello::KIND, &control).to_vec();
            bytes.extend_from_slice(&control);
            let mut gone = stream(&endpoint);
            gone.write_all(&bytes[..cut]).unwrap();
            drop(gone);
            let mut stays = stream(&endpoint);
            stays.write_all(&bytes[..cut]).unwrap();
            open.push(stays);
        }
    }
    assert_alive(&mut service);
    // Strangers that do not get on with it are sent away.
    for mut stream in open {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    assert_alive(&mut service);
}

#[test]
fn thousand_silent_connections_are_borne() {
    let mut service = ServiceOptions::new(1).start();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let mut count = 1000;
    if limit.current.is_some_and(|n| n < 2500) {
        let _ = rustix::process::setrlimit(
            rustix::process::Resource::Nofile,
            rustix::process::Rlimit {
                current: limit.maximum,
                ..limit
            },
        );
        let now = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        if now.is_some_and(|n| n < 1200) {
            count = 300;
            eprintln!("this host allows {now:?} open files; {count} connections instead of 1000");
        }
    }
    for endpoint in sockets(&mut service) {
        let silent: Vec<UnixStream> = (0..count).map(|_| stream(&endpoint)).collect();
        assert_alive(&mut service);
        drop(silent);
    }
    assert_alive(&mut service);
}

#[test]
fn payloads_that_are_not_what_the_request_says_change_nothing() {
    let mut service = ServiceOptions::new(1).start();
    let client = service.client();
    let file = create(&client, "/f", "striped(4KiB) over 1");
    let len = 1 << 16;
    file.write_at(0, &whole(0, len, 1)).unwrap();
    let mut manager = Raw::client(&service.meta().endpoint().clone());
    let opened = manager.open("/f");
    let index = service.index_of(ServerId(opened.layout.owner.server));
    let endpoint = service.io(index).endpoint().clone();
    let version = version_of(&opened);
    let epoch = opened.attributes.epoch;
    let good = access(1, 100, 500, epoch, &version);
    let connect = || {
        let mut server = manager.beside(&endpoint);
        server.set_view(1, &opened).unwrap();
        server
    };
    // Longer and shorter than the request says; the connection stays usable.
    for sent in [0, 1, 499, 501, 5000] {
        let mut server = connect();
        server.begin(WRITE, 0, &good, sent).unwrap();
        server.send(&vec![0xdd; sent as usize]).unwrap();
        let (header, _) = server.answer().unwrap();
        assert_eq!(header.status, Status::InvalidArgument, "{sent} bytes");
        server.ask(&Ping {}).unwrap();
    }
    // Announced, with another length or another frame behind.
    for (kind, sent) in [(DATA, 499), (DATA, 501), (READ, 0)] {
        let mut server = connect();
        server.begin(WRITE, ANNOUNCED, &good, 0).unwrap();
        assert!(server.answer().unwrap().0.status.is_ok());
        server.begin(kind, 0, &good, sent).unwrap();
        server.send(&vec![0xdd; sent as usize]).unwrap();
        let refused = server.answer().map(|(header, _)| header.status);
        assert!(refused.is_err() || refused.is_ok_and(|s| !s.is_ok()));
    }
    // Data that nobody has announced; requests that are none; ranges that do not add up.
    let mut server = connect();
    server.begin(DATA, 0, &good, 500).unwrap();
    server.send(&[0xdd; 500]).unwrap();
    let said = server.answer().map(|(header, _)| header.status);
    assert!(said.is_err() || said.is_ok_and(|s| !s.is_ok()));
    let mut wrong = good;
    wrong.bytes = 499;
    let status = connect().write(&wrong, &[0xdd; 499]).unwrap();
    assert_eq!(status, Status::InvalidArgument);
    let mut wrong = good;
    wrong.epoch = epoch + 1000;
    let said = connect().write(&wrong, &[0xdd; 500]);
    assert!(said.is_ok_and(|s| !s.is_ok()), "an epoch of the future");
    let mut raw = connect();
    for kind in [0, 0x3f, 0x90, 0x91, 0xffff] {
        let bytes = header(kind, b"nonsense, all of it");
        raw.send(&bytes).unwrap();
        raw.send(b"nonsense, all of it").unwrap();
        let (header, refusal) = raw.answer().unwrap();
        assert!(!header.status.is_ok(), "kind {kind:#x}");
        assert!(!refusal.unwrap().text.is_empty());
    }
    // A payload where none belongs is dropped, and does not become the next frame.
    let (mut control, payload) = (Vec::new(), [0x50; 300]);
    encode(&Ping {}, &mut control);
    let header = raw.header(Ping::KIND, 0, control.len(), payload.len() as u64);
    raw.send(&header.encode(&control)).unwrap();
    raw.send(&payload).unwrap();
    assert!(raw.answer().unwrap().0.status.is_ok());
    raw.ask(&Ping {}).unwrap();
    assert!(
        read(&file, 0, len + 1) == whole(0, len, 1),
        "something was changed"
    );
    drop(raw);
    until("the end of a connection", || client.members().is_ok());
    assert_alive(&mut service);
}
