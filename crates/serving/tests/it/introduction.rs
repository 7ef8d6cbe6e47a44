//! Getting acquainted: who is believed, who has to prove what, who is turned away.
//!
//! On a Unix socket and on the loopback, with a service that has a secret and one that has none.

use std::fs;

use crate::toy::{SLOW, Served, challenge, connect, greeted, hello_of, prove, refused, welcome};
use wire::link::LinkError;
use wire::message::session::{Credentials, Hello, Ping, Prove, Role};
use wire::message::{Bytes, Request};
use wire::{ServerId, Status};

const SECRET: &[u8] = b"correct horse battery staple";

/// Whatever the connection says next is its end.
fn is_closed(link: &mut wire::link::Link) {
    let next = link.receive().map(|(header, _)| header);
    assert!(matches!(next, Err(LinkError::Closed)), "{next:?}");
}

#[test]
fn the_kernel_says_who_is_there() {
    let toy = Served::start(None);
    let user = rustix::process::getuid().as_raw();
    let group = rustix::process::getgid().as_raw();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let groups = status.lines().find_map(|l| l.strip_prefix("Groups:"));
    let groups: Vec<u32> = groups
        .unwrap()
        .split_whitespace()
        .map(|g| g.parse().unwrap())
        .collect();

    let _link = greeted(toy.unix(), 7);
    let (peer, hello, is_proven) = toy.hello();
    assert_eq!(hello, hello_of(7));
    assert!(peer.is_local && !is_proven);
    assert_eq!(peer.pid, Some(u64::from(std::process::id())));
    let expected = Credentials {
        user,
        group,
        groups,
    };
    assert_eq!(peer.credentials, Some(expected));

    let _link = greeted(toy.tcp(), 8);
    let (peer, hello, is_proven) = toy.hello();
    assert_eq!(hello, hello_of(8));
    assert!(peer.is_local && !is_proven);
    assert_eq!(peer.pid, None);
    assert_eq!(peer.credentials.map(|c| c.user), Some(user));
    assert_eq!(toy.running.connections(), 2);
}

#[test]
fn a_secret_is_proven_on_tcp_and_not_asked_for_on_unix() {
    let toy = Served::start(Some(SECRET));
    let mut link = connect(toy.tcp());
    let found = prove(&mut link, &hello_of(5), SECRET).unwrap();
    let proof = found.proof.clone();
    assert_eq!(
        found,
        wire::message::session::Welcome {
            proof,
            ..welcome(5)
        }
    );
    assert!(toy.hello().2);
    link.ask(3, &Ping {}, &mut Vec::new()).unwrap();

    let mut link = greeted(toy.unix(), 6);
    assert!(!toy.hello().2);
    link.ask(3, &Ping {}, &mut Vec::new()).unwrap();
}

#[test]
fn a_wrong_secret_is_refused_and_the_connection_ended() {
    let toy = Served::start(Some(SECRET));
    let mut link = connect(toy.tcp());
    let (status, text) = refused(prove(&mut link, &hello_of(5), b"guessed"));
    assert_eq!(status, Status::Unauthenticated);
    assert!(text.contains("secret"), "{text}");
    is_closed(&mut link);

    // A proof for another peer, for an earlier challenge, or of another length is none.
    let secret = serving::Secret::new(SECRET);
    let said = hello_of(5);
    let other = Hello {
        credentials: Credentials::ROOT,
        ..hello_of(5)
    };
    let earlier = challenge(&mut connect(toy.tcp()), &said);
    for case in 0..4 {
        let mut link = connect(toy.tcp());
        let challenge = challenge(&mut link, &said);
        assert_eq!(challenge.len(), 32);
        assert_ne!(challenge, earlier);
        let proof = match case {
            0 => serving::proof(&secret, &challenge, &other).to_vec(),
            1 => serving::proof(&secret, &earlier, &said).to_vec(),
            2 => serving::proof(&secret, &challenge, &said)[..31].to_vec(),
            _ => Vec::new(),
        };
        let prove = Prove {
            proof: Bytes(proof),
        };
        let (status, _) = refused(link.ask(2, &prove, &mut Vec::new()));
        assert_eq!(status, Status::Unauthenticated, "case {case}");
        is_closed(&mut link);
    }
    let events: Vec<_> = toy.events.try_iter().collect();
    assert!(events.is_empty(), "the service heard of {events:?}");
}

#[test]
fn a_secret_that_is_not_proven_is_refused() {
    let toy = Served::start(Some(SECRET));
    let mut link = connect(toy.tcp());
    challenge(&mut link, &hello_of(5));
    let (status, text) = refused(link.ask(2, &Ping {}, &mut Vec::new()));
    assert_eq!(status, Status::Malformed);
    assert!(
        text.contains("the answer to a challenge is Prove"),
        "{text}"
    );
    is_closed(&mut link);
    // Nor does saying hello again help.
    let mut link = connect(toy.tcp());
    challenge(&mut link, &hello_of(5));
    let (status, _) = refused(link.ask(2, &hello_of(5), &mut Vec::new()));
    assert_eq!(status, Status::Malformed);
    // Going away at the challenge harms nobody.
    challenge(&mut connect(toy.tcp()), &hello_of(5));
    let mut link = connect(toy.tcp());
    prove(&mut link, &hello_of(5), SECRET).unwrap();
}

#[test]
fn the_first_message_is_hello() {
    let toy = Served::start(None);
    for endpoint in toy.both() {
        let mut link = connect(&endpoint);
        let (status, text) = refused(link.ask(1, &Ping {}, &mut Vec::new()));
        assert_eq!(status, Status::Malformed);
        assert_eq!(text, "the first message of a connection is Hello");
        is_closed(&mut link);

        // The right kind, but nothing that can be read.
        let mut link = connect(&endpoint);
        let header = wire::frame::Header {
            kind: Hello::KIND,
            status: Status::Ok,
            flags: 0,
            request: 1,
            control_bytes: 0,
            payload_bytes: 0,
        };
        link.send(header, &[0xff; 50], &[]).unwrap();
        let (status, _) = refused(link.take_answer::<Hello>(1));
        assert_eq!(status, Status::Malformed);
        is_closed(&mut link);

        // Strangers have nobody read their payloads.
        let mut link = connect(&endpoint);
        let mut control = Vec::new();
        wire::message::encode(&hello_of(1), &mut control);
        link.send(header, &control, &[&[0; 4096]]).unwrap();
        let (status, text) = refused(link.take_answer::<Hello>(1));
        assert_eq!(status, Status::Malformed);
        assert_eq!(text, "Hello has no payload");
        is_closed(&mut link);
    }
    toy.is_alive();
}

#[test]
fn the_service_may_refuse_an_introduction() {
    let toy = Served::start(None);
    for endpoint in toy.both() {
        for role in [
            Role::NewServer,
            Role::Server {
                server: ServerId(1),
                seal: Bytes::default(),
            },
        ] {
            let mut link = connect(&endpoint);
            let hello = Hello {
                role,
                ..hello_of(0)
            };
            let (status, text) = refused(link.ask(1, &hello, &mut Vec::new()));
            assert_eq!(status, Status::PermissionDenied);
            assert_eq!(text, "servers are not served");
            is_closed(&mut link);
        }
    }
    toy.is_alive();
}

#[test]
fn a_client_that_goes_before_its_welcome_is_ended_all_the_same() {
    let toy = Served::start(None);
    let mut link = connect(toy.unix());
    let mut hello = hello_of(33);
    hello.process.pid = SLOW;
    link.put_question(1, &hello, &mut Vec::new()).unwrap();
    toy.waits();
    drop(link);
    toy.running.service().open_gate();
    assert_eq!(toy.ended(), 33);
}

#[test]
fn both_ends_prove_that_they_know_the_secret() {
    use identity::{Channel, proof_of_server};
    let toy = Served::start(Some(SECRET));
    let secret = serving::Secret::new(SECRET);
    let said = hello_of(5);
    let mut link = connect(toy.tcp());
    let challenge = challenge(&mut link, &said);
    let prove = Prove {
        proof: Bytes(serving::proof(&secret, &challenge, &said).to_vec()),
    };
    let found = link.ask(2, &prove, &mut Vec::new()).unwrap();
    assert_eq!(found.proof.0, proof_of_server(&secret, &challenge, &said));
    // What the caller said cannot be sent back to him as the server's proof.
    assert_ne!(found.proof, prove.proof);
    let other = Hello {
        nonce: Bytes(vec![4; 32]),
        ..hello_of(5)
    };
    assert_ne!(found.proof.0, proof_of_server(&secret, &challenge, &other));
    let here = Channel::wrapped(&secret, &challenge, &said);
    let there = Channel::wrapped(&secret, &challenge, &other);
    let key = [0x5a; 32];
    let sent = here.wrap("cluster", &key);
    assert_eq!(here.unwrap("cluster", &sent), Some(key));
    assert_eq!(here.unwrap("identity", &sent), None);
    assert_eq!(there.unwrap("cluster", &sent), None);
    for bit in 0..sent.len() * 8 {
        let mut changed = sent.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(here.unwrap("cluster", &changed), None, "bit {bit}");
    }
    assert_eq!(here.unwrap("cluster", &sent[..63]), None);
}

#[test]
fn servers_have_a_secret_of_their_own() {
    let toy = Served::start(Some(SECRET));
    let said = Hello {
        role: Role::NewServer,
        ..hello_of(0)
    };
    let (status, text) = refused(prove(&mut connect(toy.tcp()), &said, SECRET));
    assert_eq!(status, Status::Unauthenticated);
    assert!(text.contains("PARIO_SERVER_SECRET"), "{text}");
    let proven = prove(&mut connect(toy.tcp()), &said, crate::toy::SERVER_SECRET);
    assert_eq!(refused(proven).0, Status::PermissionDenied);
    assert!(toy.hello().2);
}
