//! What peers do to a service once they can reach it: noise, old protocols, payloads nobody wants,
//! crowds; and what a handler that panics does.
//!
//! After everything the service is alive and nobody else has noticed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use crate::toy::{Served, WAIT, connect, greeted, hello_of, refused};
use wire::FileId;
use wire::Status;
use wire::ask::AskError;
use wire::frame::{HEADER_BYTES, Header, VERSION};
use wire::link::{Link, LinkError};
use wire::message::catalogue::{Count, Members, Rmdir};
use wire::message::cluster::AskEnd;
use wire::message::session::{Ping, Refusal, Statistics};
use wire::message::{self, Request};
use wire::url::Endpoint;

trait Both: Read + Write {}
impl<T: Read + Write> Both for T {}

/// A bare socket.
fn bare(endpoint: &Endpoint) -> Box<dyn Both> {
    match endpoint {
        Endpoint::Unix(path) => {
            let socket = UnixStream::connect(path).unwrap();
            socket.set_read_timeout(Some(WAIT)).unwrap();
            Box::new(socket)
        }
        Endpoint::Tcp { host, port } => {
            let socket = TcpStream::connect((host.as_str(), *port)).unwrap();
            socket.set_read_timeout(Some(WAIT)).unwrap();
            Box::new(socket)
        }
    }
}

/// Sends bytes to a stranger and reads all he says: the refusal, if he says one.
fn told(endpoint: &Endpoint, bytes: &[u8]) -> Option<(Header, Refusal)> {
    let mut socket = bare(endpoint);
    // It may be closed before all is written.
    let _ = socket.write_all(bytes);
    let mut answer = Vec::new();
    let mut head = [0; HEADER_BYTES];
    socket.read_exact(&mut head).ok()?;
    let header = Header::decode(&head).unwrap();
    // The end of the connection follows, so the answer is all there is. What could not be written by then makes
    // an error of the end.
    let _ = socket.read_to_end(&mut answer);
    Header::verify(&head, &answer).unwrap();
    Some((header, message::decode(&answer).unwrap()))
}

fn header(kind: u16) -> Header {
    Header {
        kind,
        status: Status::Ok,
        flags: 0,
        request: 5,
        control_bytes: 0,
        payload_bytes: 0,
    }
}

/// A frame of another version.
fn newer(behind: usize) -> Vec<u8> {
    let mut frame = header(1).encode(&[]).to_vec();
    frame[4..6].copy_from_slice(&(VERSION + 8).to_le_bytes());
    frame.resize(HEADER_BYTES + behind, 0x55);
    frame
}

#[test]
fn random_bytes_do_not_harm_the_service() {
    let toy = Served::start(None);
    let mut numbers = random::Random::new(1);
    let mut random = move || numbers.draw();
    for endpoint in toy.both() {
        for round in 0..100 {
            let length = 40 + random() as usize % 400;
            let mut bytes: Vec<u8> = (0..length).map(|_| random() as u8).collect();
            if round % 2 == 1 {
                // The beginning of a frame, so that more of it is looked at.
                bytes[..4].copy_from_slice(b"PARI");
                bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
                bytes[8..10].fill(0);
                bytes[12..16].copy_from_slice(&(random() as u32 % 300).to_le_bytes());
                bytes[36..40].fill(0);
                bytes.resize(400, 0);
            }
            let (header, refusal) = told(&endpoint, &bytes).expect("an answer");
            assert!(!header.status.is_ok() && !refusal.text.is_empty());
            assert_eq!((header.kind, header.request), (0, 0));
        }
    }
    toy.is_alive();
    assert_eq!(toy.running.panics(), 0);
}

#[test]
fn another_version_is_answered_with_wrong_version() {
    let toy = Served::start(None);
    for endpoint in toy.both() {
        // With much behind it, which nobody can read: the answer is not lost with it.
        for behind in [0, 1, 300 << 10] {
            let (header, refusal) = told(&endpoint, &newer(behind)).expect("an answer");
            assert_eq!(header.status, Status::WrongVersion);
            assert_eq!(
                refusal.text,
                "the peer speaks version 13 of the protocol, this is version 5"
            );
        }
        // Also in the middle of a conversation.
        let mut link = greeted(&endpoint, 3);
        link.ask(2, &Ping {}, &mut Vec::new()).unwrap();
        rustix::io::write(&link, &newer(0)).unwrap();
        let (status, _) = refused(link.take_answer::<Ping>(5));
        assert_eq!(status, Status::WrongVersion);
        assert!(matches!(
            link.receive().map(|(h, _)| h),
            Err(LinkError::Closed)
        ));
        assert_eq!(toy.ended(), 3);
    }
    toy.is_alive();
}

#[test]
fn a_handler_that_panics_ends_its_connection_and_no_other() {
    let toy = Served::start(None);
    let mut out = Vec::new();
    for (count, endpoint) in toy.both().iter().enumerate() {
        let mut bystander = greeted(endpoint, 1);
        let mut victim = greeted(endpoint, 2);
        let answer = victim.ask(3, &Members {}, &mut out);
        assert!(matches!(answer, Err(AskError::Link(_))), "{answer:?}");
        assert_eq!(toy.ended(), 2, "its session is given back");
        assert_eq!(toy.running.panics(), count as u64 + 1);
        bystander.ask(4, &Ping {}, &mut out).unwrap();
        drop(bystander);
        assert_eq!(toy.ended(), 1);
    }
    toy.is_alive();
}

#[test]
fn a_payload_that_nobody_reads_is_skipped() {
    let toy = Served::start(None);
    let payload = vec![0xa5; 1 << 20];
    for endpoint in toy.both() {
        let mut link = greeted(&endpoint, 1);
        let mut out = Vec::new();
        for length in [0, 1, 99, 100, 101, 65_536, payload.len()] {
            // Not touched; read in part; not even answered.
            link.send(header(Ping::KIND), &[], &[&payload[..length]])
                .unwrap();
            link.take_answer::<Ping>(5).unwrap();
            link.send(header(Statistics::KIND), &[], &[&payload[..length]])
                .unwrap();
            let left = link.take_answer::<Statistics>(5).unwrap();
            let taken = if length < 100 { 0 } else { 100 };
            assert_eq!(left[0].value, (length - taken) as u64);
            link.send(header(Count::KIND), &[], &[&payload[..length]])
                .unwrap();
            link.ask(6, &Ping {}, &mut out).unwrap();
        }
        // A refusal skips it as well.
        link.send(header(Rmdir::KIND), &[1, b'/'], &[&payload])
            .unwrap();
        let (status, text) = refused(link.take_answer::<Rmdir>(5));
        assert_eq!((status, &text[..]), (Status::Unsupported, "not by a toy"));
        link.ask(7, &Ping {}, &mut out).unwrap();
    }
}

#[test]
fn two_hundred_connections_at_once() {
    let toy = Served::start(None);
    let mut out = Vec::new();
    let mut links: Vec<Link> = (0..200)
        .map(|i| {
            let mut link = connect(&toy.both()[i % 2]);
            link.put_question(1, &hello_of(i as u64), &mut out).unwrap();
            link
        })
        .collect();
    for (i, link) in links.iter_mut().enumerate() {
        let found = link.take_answer::<message::session::Hello>(1).unwrap();
        assert_eq!(found, crate::toy::welcome(i as u64));
    }
    assert_eq!(toy.running.connections(), 200);
    for round in 2..20 {
        for link in &mut links {
            link.put_question(round, &Ping {}, &mut out).unwrap();
        }
        for link in &mut links {
            link.take_answer::<Ping>(round).unwrap();
        }
    }
    drop(links);
    let mut ended: Vec<u64> = (0..200).map(|_| toy.ended()).collect();
    ended.sort_unstable();
    assert!(ended.into_iter().eq(0..200));
    toy.is_alive();
}

#[test]
fn stop_ends_all_connections_and_accepts_nobody() {
    let toy = Served::start(None);
    let mut waiting: Vec<Link> = toy.both().iter().map(|e| greeted(e, 1)).collect();
    // One that has not introduced itself, too.
    waiting.push(connect(toy.tcp()));
    let mut busy = greeted(toy.unix(), 2);
    let question = AskEnd { file: FileId(1) };
    busy.put_question(1, &question, &mut Vec::new()).unwrap();
    toy.waits();
    thread::scope(|scope| {
        let stopping = scope.spawn(|| toy.running.stop(WAIT));
        // Those who wait are woken, while one handler is still at work.
        for link in &mut waiting {
            let seen = link.receive().map(|(h, _)| h);
            assert!(seen.is_err(), "{seen:?}");
        }
        assert!(!stopping.is_finished());
        toy.running.service().open_gate();
        stopping.join().unwrap();
    });
    assert_eq!(toy.running.connections(), 0);
    for endpoint in toy.both() {
        assert!(Link::connect(&endpoint, WAIT).is_err(), "{endpoint}");
    }
    // Once more has nothing to do.
    toy.running.stop(WAIT);
}

#[test]
fn draining_answers_what_was_asked_and_tells_others_to_come_again() {
    let toy = Served::start(None);
    let mut busy = greeted(toy.unix(), 2);
    let mut other = greeted(toy.tcp(), 3);
    let question = AskEnd { file: FileId(1) };
    busy.put_question(1, &question, &mut Vec::new()).unwrap();
    toy.waits();
    assert!(
        !toy.running.drain(Duration::from_millis(20)),
        "a handler is at work"
    );
    let told = other.ask(1, &Ping {}, &mut Vec::new());
    assert_eq!(refused(told).0, Status::ShuttingDown);
    // Those who come now, too.
    let told = greeted(toy.tcp(), 4).ask(1, &Ping {}, &mut Vec::new());
    assert_eq!(refused(told).0, Status::ShuttingDown);
    thread::scope(|scope| {
        let draining = scope.spawn(|| toy.running.drain(WAIT));
        toy.running.service().open_gate();
        assert!(draining.join().unwrap());
    });
    let (answered, _) = busy.receive().unwrap();
    assert_eq!(answered.status, Status::Ok);
    toy.running.stop(WAIT);
    assert_eq!(toy.running.connections(), 0);
}

#[test]
fn stop_does_not_wait_for_ever() {
    let toy = Served::start(None);
    let mut busy = greeted(toy.tcp(), 2);
    let question = AskEnd { file: FileId(1) };
    busy.put_question(1, &question, &mut Vec::new()).unwrap();
    toy.waits();
    toy.running.stop(Duration::from_millis(20));
    assert_eq!(toy.running.connections(), 1, "the handler is still at work");
    toy.running.service().open_gate();
    toy.running.stop(WAIT);
    assert_eq!(toy.running.connections(), 0);
}

#[test]
fn the_place_is_free_after_a_stop() {
    let toy = Served::start(None);
    let endpoints = toy.both();
    let _left_open = greeted(toy.unix(), 1);
    toy.running.stop(WAIT);
    for endpoint in &endpoints {
        let again = wire::link::Listener::bind(endpoint).unwrap();
        assert_eq!(&again.endpoint().unwrap(), endpoint);
    }
}
