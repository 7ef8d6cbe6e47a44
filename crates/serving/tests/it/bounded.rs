//! What peers may take of a service before it knows them and after: connections that say nothing, long messages, answers that are
//! not read.

use std::time::Duration;

use crate::toy::{LONG_ANSWER, Served, connect, greeted, hello_of, refused};
use serving::Limits;
use wire::Status;
use wire::frame::{CONTINUED, Header, MAX_CONTROL_BYTES};
use wire::link::{Link, LinkError};
use wire::message::Request;
use wire::message::catalogue::Check;
use wire::message::session::{Hello, Ping, Role};
use wire::{ServerId, message};

const PART: usize = MAX_CONTROL_BYTES as usize;

fn header(kind: u16, flags: u16) -> Header {
    Header {
        kind,
        status: Status::Ok,
        flags,
        request: 5,
        control_bytes: 0,
        payload_bytes: 0,
    }
}

fn ping(link: &mut Link) {
    link.ask(9, &Ping {}, &mut Vec::new()).unwrap();
}

#[test]
fn connections_that_say_nothing_leave_room_for_others() {
    let limits = Limits::of(64);
    let toy = Served::start_with(None, limits);
    for endpoint in toy.both() {
        let silent: Vec<Link> = (0..100).map(|_| connect(&endpoint)).collect();
        ping(&mut greeted(&endpoint, 1));
        // A server gets as far as being judged.
        let hello = Hello {
            role: Role::Server {
                server: ServerId(3),
                seal: Default::default(),
            },
            ..hello_of(3)
        };
        let answer = connect(&endpoint).ask(1, &hello, &mut Vec::new());
        assert_eq!(refused(answer).0, Status::PermissionDenied);
        drop(silent);
    }
    // The oldest went first.
    let mut old = connect(toy.unix());
    let silent: Vec<Link> = (0..16).map(|_| connect(toy.unix())).collect();
    assert!(matches!(old.receive(), Err(LinkError::Closed)));
    drop(silent);
}

#[test]
fn long_messages_share_a_pool() {
    let limits = Limits {
        // A user has half of it: one part behind the first.
        long_message_bytes: 2 * PART,
        ..Limits::default()
    };
    let toy = Served::start_with(None, limits);
    let mut link = greeted(toy.tcp(), 1);
    for (parts, is_taken) in [(2, true), (3, false), (40, false), (2, true), (1, true)] {
        let control = vec![0; parts * PART];
        link.send(header(Ping::KIND, 0), &control, &[&[7; 5000]])
            .unwrap();
        let answer = link.take_answer::<Ping>(5);
        if is_taken {
            answer.unwrap();
        } else {
            let (status, text) = refused(answer);
            assert_eq!(status, Status::QuotaExceeded);
            assert!(text.contains("--long-message-bytes"), "{text}");
        }
    }
    // Answers count as well.
    const { assert!(LONG_ANSWER > 2 * PART) };
    link.send(header(Check::KIND, 0), &[], &[]).unwrap();
    assert_eq!(
        refused(link.take_answer::<Check>(5)).0,
        Status::QuotaExceeded
    );
    ping(&mut link);
    // What one user has under way is not there for another, beyond what they share.
    let mut attempts = 0;
    let (mut first, mut second) = loop {
        let mut others = (greeted(toy.tcp(), 2), greeted(toy.tcp(), 3));
        begin_long(&mut others.0);
        begin_long(&mut others.1);
        link.send(header(Ping::KIND, 0), &vec![0; 2 * PART], &[])
            .unwrap();
        if let Err(error) = link.take_answer::<Ping>(5) {
            assert_eq!(refused::<()>(Err(error)).0, Status::QuotaExceeded);
            break others;
        }
        // The server had not heard both of them yet, and one may have found no room beside this message: once more.
        attempts += 1;
        assert!(attempts < 100, "users do not keep room from each other");
        drop(others);
        assert_eq!(toy.ended() + toy.ended(), 2 + 3);
    };
    for link in [&mut first, &mut second] {
        link.send(header(Ping::KIND, 0), &[0; 10], &[]).unwrap();
        link.take_answer::<Ping>(5).unwrap();
    }
}

/// Sends the first part of a message and no more.
fn begin_long(link: &mut Link) {
    let part = vec![0; PART];
    let first = Header {
        control_bytes: MAX_CONTROL_BYTES,
        ..header(Ping::KIND, CONTINUED)
    };
    let mut frame = first.encode(&part).to_vec();
    frame.extend(part);
    let mut sent = 0;
    while sent < frame.len() {
        sent += rustix::io::write(&*link, &frame[sent..]).unwrap();
    }
}

#[test]
fn a_peer_that_stops_inside_a_message_or_does_not_read_loses_its_connection() {
    let limits = Limits {
        patience: Duration::from_millis(100),
        ..Limits::default()
    };
    let toy = Served::start_with(None, limits);
    for endpoint in toy.both() {
        // Waiting for the next request takes as long as it likes, also behind a long one.
        let mut idle = greeted(&endpoint, 1);
        idle.send(header(Ping::KIND, 0), &vec![0; 3 * PART], &[])
            .unwrap();
        idle.take_answer::<Ping>(5).unwrap();
        let mut begun = greeted(&endpoint, 2);
        begin_long(&mut begun);
        assert_eq!(toy.ended(), 2);
        // A part that trickles in is no progress.
        let mut trickling = greeted(&endpoint, 3);
        let head = Header {
            control_bytes: MAX_CONTROL_BYTES,
            ..header(Ping::KIND, 0)
        };
        rustix::io::write(&trickling, &head.encode(&vec![0; PART])).unwrap();
        while rustix::net::send(&trickling, &[0], rustix::net::SendFlags::NOSIGNAL).is_ok() {
            std::thread::yield_now();
        }
        assert_eq!(toy.ended(), 3);
        drop(trickling.receive().map(drop));
        let mut deaf = greeted(&endpoint, 4);
        let mut out = Vec::new();
        message::encode(&Check {}, &mut out);
        while deaf.send(header(Check::KIND, 0), &out, &[]).is_ok() {}
        assert_eq!(toy.ended(), 4);
        ping(&mut idle);
        drop(idle);
        assert_eq!(toy.ended(), 1);
    }
}
