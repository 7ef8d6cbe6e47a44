//! Frames over real sockets, both kinds: whole, in pieces, broken, foreign.
//!
//! Servers are threads of the test on a temporary Unix socket and on a free port of the loopback.

use std::io::Write;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use wire::Status;
use wire::ask::AskError;
use wire::frame::{
    CONTINUED, FrameError, Header, MAX_CONTROL_BYTES, MAX_LONG_CONTROL_BYTES, VERSION,
};
use wire::link::{Link, LinkError, Listener, PeerName, Relay};
use wire::message::session::Ping;
use wire::message::{Refusal, Request};
use wire::seal::{SEALED, Seal};
use wire::url::Endpoint;

pub(crate) const WAIT: Duration = Duration::from_secs(20);

pub(crate) fn header(kind: u16, request: u64) -> Header {
    Header {
        kind,
        status: Status::Ok,
        flags: 0,
        request,
        control_bytes: 0,
        payload_bytes: 0,
    }
}

/// Where a server listens; the socket goes with it.
pub(crate) struct Place(Endpoint);

impl std::ops::Deref for Place {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Endpoint::Unix(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A listener of each kind.
pub(crate) fn listeners() -> Vec<(Listener, Place)> {
    let name = format!(
        "pario-link-{}-{:?}.sock",
        std::process::id(),
        thread::current().id()
    );
    let unix = Endpoint::Unix(std::env::temp_dir().join(name.replace(['(', ')'], "")));
    // Of this process alone: a port that is free again is nobody else's, who may get any port of the usual address.
    let [_, a, b, c] = std::process::id().to_be_bytes();
    let tcp = Endpoint::Tcp {
        host: format!("127.{a}.{b}.{c}"),
        port: 0,
    };
    [unix, tcp]
        .iter()
        .map(|e| {
            let listener = Listener::bind(e).unwrap();
            let endpoint = listener.endpoint().unwrap();
            (listener, Place(endpoint))
        })
        .collect()
}

/// Answers every frame with its own control and payload, reversed.
fn reverser(listener: Listener) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut link = listener.accept().unwrap();
        loop {
            let (head, mut control) = match link.receive() {
                Ok((head, control)) => (head, control.to_vec()),
                Err(LinkError::Closed) => return,
                Err(other) => panic!("{other}"),
            };
            let mut payload = vec![0; head.payload_bytes as usize];
            link.receive_payload(&mut payload).unwrap();
            control.reverse();
            payload.reverse();
            link.send(header(head.kind + 1, head.request), &control, &[&payload])
                .unwrap();
        }
    })
}

#[test]
fn frames_go_both_ways_over_both_kinds() {
    for (listener, endpoint) in listeners() {
        let server = reverser(listener);
        let mut link = Link::connect(&endpoint, WAIT).unwrap();
        link.set_timeout(Some(WAIT)).unwrap();
        for (request, size) in [(1, 0), (2, 1), (3, 70_000), (4, 3 << 20)] {
            let payload: Vec<u8> = (0..size).map(|i| (i * 7) as u8).collect();
            let (a, b) = payload.split_at(payload.len() / 3);
            // The answer can be larger than the socket buffers: send from another thread.
            let mut sender = link.try_clone().unwrap();
            let head = header(40, request);
            let answer = thread::scope(|scope| {
                scope.spawn(|| sender.send(head, b"question", &[a, b]).unwrap());
                let (head, control) = link.receive().unwrap();
                assert_eq!(
                    (head.kind, head.request, control),
                    (41, request, &b"noitseuq"[..])
                );
                let mut answer = vec![0; head.payload_bytes as usize];
                link.receive_payload(&mut answer).unwrap();
                answer
            });
            assert!(answer.iter().rev().eq(payload.iter()));
        }
        drop(link);
        server.join().unwrap();
    }
}

#[test]
fn a_link_that_reads_ahead_takes_frames_apart_that_came_together() {
    for (listener, endpoint) in listeners() {
        let mut near = Link::connect(&endpoint, WAIT).unwrap();
        let mut far = listener.accept().unwrap();
        far.set_timeout(Some(WAIT)).unwrap();
        assert!(far.ahead().is_empty());
        far.read_ahead(256);
        // Shorter and longer than what is read ahead, in header, control part and payload.
        let sizes = [(0, 0), (3, 100), (0, 300), (400, 1000), (10, 5)];
        for (request, (control, payload)) in sizes.into_iter().enumerate() {
            let payload: Vec<u8> = (0..payload).map(|i| i as u8).collect();
            let head = header(7, request as u64);
            near.send(head, &vec![9; control], &[&payload]).unwrap();
        }
        drop(near);
        for (request, (control, payload)) in sizes.into_iter().enumerate() {
            let (head, found) = far.receive().unwrap();
            assert_eq!(
                (head.request, found),
                (request as u64, &vec![9; control][..])
            );
            // Some is taken from what is there, the rest received.
            let mut bytes = vec![0; head.payload_bytes as usize];
            let there = far.ahead().len().min(bytes.len()) / 2;
            bytes[..there].copy_from_slice(&far.ahead()[..there]);
            far.take_ahead(there);
            far.receive_payload(&mut bytes[there..]).unwrap();
            assert!(bytes.iter().copied().eq((0..payload).map(|i| i as u8)));
        }
        assert!(matches!(far.receive(), Err(LinkError::Closed)));
    }
}

#[test]
fn broken_and_foreign_peers_give_typed_errors() {
    for (listener, endpoint) in listeners() {
        let mut cases: Vec<(Vec<u8>, &str)> = Vec::new();
        let whole = Header {
            control_bytes: 3,
            ..header(1, 1)
        }
        .encode(b"abc");
        cases.push((Vec::new(), "closed"));
        cases.push((whole[..20].to_vec(), "failed"));
        cases.push((whole.to_vec(), "failed"));
        cases.push((
            b"GET / HTTP/1.1\r\nHost: example\r\nAccept: */*\r\n\r\n".to_vec(),
            "does not speak",
        ));
        let mut damaged = whole.to_vec();
        damaged.extend(b"abd");
        cases.push((damaged, "checksum"));
        // A program of the release before, and one of the next.
        for (other, expected) in [(VERSION - 1, "version 4"), (VERSION + 1, "version 6")] {
            let mut frame = whole.to_vec();
            frame[4..6].copy_from_slice(&other.to_le_bytes());
            cases.push((frame, expected));
        }
        for (bytes, expected) in cases {
            match &*endpoint {
                Endpoint::Unix(path) => UnixStream::connect(path)
                    .unwrap()
                    .write_all(&bytes)
                    .unwrap(),
                Endpoint::Tcp { host, port } => {
                    TcpStream::connect((host.as_str(), *port))
                        .unwrap()
                        .write_all(&bytes)
                        .unwrap();
                }
            }
            let mut link = listener.accept().unwrap();
            let error = link.receive().map(|(h, _)| h).unwrap_err();
            assert!(
                error.to_string().contains(expected),
                "{error} for {expected}"
            );
            assert!(!error.status().is_ok());
        }
    }
}

#[test]
fn frames_beyond_the_bounds_are_not_sent() {
    let (listener, endpoint) = listeners().swap_remove(1);
    let mut link = Link::connect(&endpoint, WAIT).unwrap();
    let long = vec![0; MAX_LONG_CONTROL_BYTES + 1];
    let error = link.send(header(1, 1), &long, &[]).unwrap_err();
    assert!(matches!(error, LinkError::Frame(FrameError::TooLarge)));
    drop((link, listener));
}

#[test]
fn long_control_parts_travel_in_parts_and_come_whole() {
    let part = MAX_CONTROL_BYTES as usize;
    for (listener, endpoint) in listeners() {
        let lengths = [part, part + 1, 2 * part, 3 * part + 17, 5];
        let sender = thread::spawn(move || {
            let mut link = listener.accept().unwrap();
            for (n, len) in lengths.into_iter().enumerate() {
                let control: Vec<u8> = (0..len).map(|i| (i * 7 + n) as u8).collect();
                // Lengths are those of what is sent, whatever the header says.
                let header = Header {
                    payload_bytes: 1,
                    ..header(9, n as u64)
                };
                link.send(header, &control, &[b"and a payload"]).unwrap();
            }
        });
        let mut link = Link::connect(&endpoint, WAIT).unwrap();
        for (n, len) in lengths.into_iter().enumerate() {
            let (found, control) = link.receive().unwrap();
            assert_eq!((found.kind, found.request, found.flags), (9, n as u64, 0));
            assert_eq!(control.len(), len);
            assert!(
                control
                    .iter()
                    .enumerate()
                    .all(|(i, b)| *b == (i * 7 + n) as u8)
            );
            let mut payload = [0; 13];
            link.receive_payload(&mut payload).unwrap();
            assert_eq!(&payload, b"and a payload");
        }
        sender.join().unwrap();
    }
}

/// A frame as it travels.
fn frame(kind: u16, request: u64, flags: u16, control: &[u8]) -> Vec<u8> {
    let header = Header {
        flags,
        control_bytes: control.len() as u32,
        ..header(kind, request)
    };
    [&header.encode(control)[..], control].concat()
}

/// A peer that sends parts for ever, or parts that do not belong together, is not listened to.
#[test]
fn parts_without_end_or_of_another_message_are_refused() {
    let whole = vec![1; MAX_CONTROL_BYTES as usize];
    let endless = MAX_LONG_CONTROL_BYTES / whole.len() + 1;
    type Sent<'a> = Box<dyn Fn(usize) -> Option<Vec<u8>> + Send + 'a>;
    let senders: [Sent<'_>; 3] = [
        Box::new(|n| (n < endless).then(|| frame(9, 1, CONTINUED, &whole))),
        Box::new(|n| (n < 2).then(|| frame(9, n as u64, CONTINUED, &whole))),
        Box::new(|n| (n < 1).then(|| frame(9, 1, CONTINUED, b"short"))),
    ];
    for sent in senders {
        let (listener, endpoint) = listeners().swap_remove(1);
        let Endpoint::Tcp { host, port } = &*endpoint else {
            unreachable!()
        };
        let mut stream = TcpStream::connect((host.as_str(), *port)).unwrap();
        let mut link = listener.accept().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                let frames = (0..).map_while(sent);
                for bytes in frames {
                    // The receiver may have had enough.
                    if stream.write_all(&bytes).is_err() {
                        break;
                    }
                }
            });
            let error = link.receive().unwrap_err();
            assert!(matches!(error, LinkError::Frame(_)), "{error}");
            link.shutdown();
        });
    }
}

#[test]
fn what_is_not_admitted_is_received_to_its_end_and_bounded_too() {
    let whole = vec![1; MAX_CONTROL_BYTES as usize];
    let most = MAX_LONG_CONTROL_BYTES / whole.len();
    // The last part brings the message to the limit, or one byte above it.
    for (parts, last, is_long) in [
        (1, 5, false),
        (most - 1, whole.len(), false),
        (most, 1, true),
    ] {
        let (listener, endpoint) = listeners().swap_remove(0);
        let Endpoint::Unix(path) = &*endpoint else {
            unreachable!()
        };
        let mut near = UnixStream::connect(path).unwrap();
        let mut far = listener.accept().unwrap();
        let whole = &whole;
        thread::scope(|scope| {
            scope.spawn(move || {
                let parts = (0..parts).map(|_| frame(9, 1, CONTINUED, whole));
                for bytes in parts.chain([frame(9, 1, 0, &whole[..last])]) {
                    // The receiver may have had enough.
                    if near.write_all(&bytes).is_err() {
                        break;
                    }
                }
            });
            let mut asked = 0;
            let received = far.receive_if(|| {
                asked += 1;
                false
            });
            match received {
                Ok((_, control)) => assert!(!is_long && control.is_empty()),
                Err(LinkError::Frame(FrameError::TooLarge)) => assert!(is_long),
                Err(error) => panic!("{parts} parts: {error}"),
            }
            assert_eq!(asked, 1, "nobody is asked again who has said no");
            far.shutdown();
        });
    }
}

#[test]
fn a_socket_left_behind_is_replaced_and_a_live_one_is_not() {
    let (listener, endpoint) = listeners().swap_remove(0);
    let taken = Listener::bind(&endpoint).unwrap_err();
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    drop(listener);
    let again = Listener::bind(&endpoint).unwrap();
    assert_eq!(again.endpoint().unwrap(), *endpoint);
}

/// A killed process may hold its sockets longer than its locks.
#[test]
fn an_address_whose_process_is_ending_is_waited_for() {
    let (listener, endpoint) = listeners().swap_remove(0);
    let ended = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&ended);
    let ending = thread::spawn(move || {
        // The successor connects twice and finds a listener; then there is none.
        drop((listener.accept(), listener.accept()));
        ends.store(true, Ordering::SeqCst);
        drop(listener);
    });
    let again = Listener::bind(&endpoint).unwrap();
    assert!(ended.load(Ordering::SeqCst), "bound while another listened");
    assert_eq!(again.endpoint().unwrap(), *endpoint);
    ending.join().unwrap();
}

#[test]
fn a_silent_peer_times_out() {
    let (listener, endpoint) = listeners().swap_remove(1);
    let mut link = Link::connect(&endpoint, WAIT).unwrap();
    link.set_timeout(Some(Duration::from_millis(20))).unwrap();
    let error = link.receive().map(|(h, _)| h).unwrap_err();
    assert_eq!(error.status(), Status::TimedOut);
    drop(listener);
}

#[test]
fn a_peer_that_stops_inside_a_long_message_times_out() {
    let whole = vec![1; MAX_CONTROL_BYTES as usize];
    let long = frame(9, 1, 0, &whole);
    let between_parts = frame(9, 1, CONTINUED, &whole);
    for sent in [&long[..long.len() / 2], &between_parts] {
        let (listener, endpoint) = listeners().swap_remove(0);
        let Endpoint::Unix(path) = &*endpoint else {
            unreachable!()
        };
        let mut near = UnixStream::connect(path).unwrap();
        let mut far = listener.accept().unwrap();
        far.set_patience(Duration::from_millis(50)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| near.write_all(sent));
            // The connection stays open, and nothing more comes.
            let error = far.receive().map(drop).unwrap_err();
            assert!(matches!(error, LinkError::Io(_)), "{error}");
        });
    }
    // One that sends all of it in time is heard, and its control part can be taken away.
    for (listener, endpoint) in listeners() {
        let mut near = Link::connect(&endpoint, WAIT).unwrap();
        let mut far = listener.accept().unwrap();
        far.set_patience(WAIT).unwrap();
        let control = [&whole[..], b"end"].concat();
        thread::scope(|scope| {
            scope.spawn(|| near.send(header(9, 1), &control, &[]));
            assert_eq!(far.receive().unwrap().1.len(), control.len());
        });
        assert!(far.take_control() == control);
        assert!(far.take_control().is_empty(), "it is no longer there");
    }
}

#[test]
fn finishing_ends_when_the_peer_has_closed() {
    for (listener, endpoint) in listeners() {
        let near = Link::connect(&endpoint, WAIT).unwrap();
        let mut far = listener.accept().unwrap();
        drop(near);
        // Far longer than any test may take.
        far.finish(Duration::from_secs(24 * 3600));
    }
    // And when the time is over, if the peer does not.
    for (listener, endpoint) in listeners() {
        let _near = Link::connect(&endpoint, WAIT).unwrap();
        let mut far = listener.accept().unwrap();
        far.finish(Duration::from_millis(20));
    }
}

#[test]
fn a_peer_that_trickles_times_out_as_a_whole() {
    for (listener, endpoint) in listeners() {
        let mut link = Link::connect(&endpoint, WAIT).unwrap();
        // So long that it would take a minute.
        let control = vec![7; 6000];
        let head = Header {
            control_bytes: 6000,
            ..header(1, 1)
        };
        let whole = [&head.encode(&control)[..], &control].concat();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let server = listener.accept().unwrap();
        let trickle = thread::spawn(move || {
            // A byte at a time, each long before the client has waited enough.
            for byte in whole {
                let _ = stopped.recv_timeout(Duration::from_millis(10));
                if rustix::io::write(&server, &[byte]).is_err() {
                    return;
                }
            }
            let _ = stopped.recv_timeout(WAIT);
        });
        let patience = Duration::from_millis(100);
        let error = link.receive_within(patience).map(|(h, _)| h).unwrap_err();
        assert_eq!(error.status(), Status::TimedOut);
        drop((link, stop));
        trickle.join().unwrap();
    }
}

#[test]
fn a_last_answer_is_not_lost_with_bytes_that_were_not_read() {
    for (listener, endpoint) in listeners() {
        let mut link = Link::connect(&endpoint, WAIT).unwrap();
        link.set_timeout(Some(WAIT)).unwrap();
        let server = thread::spawn(move || {
            let mut link = listener.accept().unwrap();
            link.receive().unwrap();
            link.send(header(2, 1), b"no", &[]).unwrap();
            link.finish(WAIT);
        });
        // More than the buffers of both sockets hold.
        link.send(header(1, 1), b"", &[&vec![0; 16 << 20]]).unwrap();
        assert_eq!(link.receive().unwrap().1, b"no");
        let end = link.receive().map(|(h, _)| h);
        assert!(matches!(end, Err(LinkError::Closed)), "{end:?}");
        drop(link);
        server.join().unwrap();
    }
}

#[test]
fn a_closed_listener_wakes_whoever_accepts() {
    for (listener, endpoint) in listeners() {
        thread::scope(|scope| {
            let accepting = scope.spawn(|| listener.accept().map(drop));
            listener.close();
            assert!(accepting.join().unwrap().is_err());
        });
        assert!(Link::connect(&endpoint, WAIT).is_err());
    }
}

#[test]
fn connecting_to_a_socket_that_accepts_nobody_ends_in_time() {
    let dir = std::env::temp_dir().join(format!("link-full-{}", std::process::id()));
    // Of a process with the same number that was killed.
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let endpoint = Endpoint::Unix(dir.join("s"));
    let _listener = Listener::bind(&endpoint).unwrap();
    let limit = Duration::from_millis(50);
    let mut waiting = Vec::new();
    // The queue of a listener is as long as the system allows; behind its end nobody waits for ever.
    let error = loop {
        match Link::connect(&endpoint, limit) {
            Ok(link) => waiting.push(link),
            Err(error) => break error,
        }
        assert!(waiting.len() < 100_000);
    };
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{error}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn descriptors_travel_with_the_frame_they_belong_to() {
    use std::os::fd::AsFd;
    let (listener, endpoint) = listeners().swap_remove(0);
    // Lengths are those of what is sent, whatever the header says.
    let header = |request| Header {
        control_bytes: 5,
        payload_bytes: 9,
        ..header(0x86, request)
    };
    let mut client = Link::connect(&endpoint, WAIT).unwrap();
    client.set_timeout(Some(WAIT)).unwrap();
    client.expect_descriptors();
    let mut server = listener.accept().unwrap();
    let file = std::fs::File::open("/proc/self/status").unwrap();
    server.send(header(1), b"none", &[]).unwrap();
    let two = [file.as_fd(), file.as_fd()];
    server
        .send_with_descriptors(header(2), b"two", &two)
        .unwrap();
    server.send_with_descriptors(header(3), b"", &[]).unwrap();
    assert_eq!(client.receive().unwrap().0.request, 1);
    assert!(client.take_descriptors().is_empty());
    let (answer, control) = client.receive().unwrap();
    assert_eq!((answer.request, control), (2, &b"two"[..]));
    assert_eq!(answer.payload_bytes, 0);
    let found = client.take_descriptors();
    assert_eq!(found.len(), 2);
    let mut text = String::new();
    std::io::Read::read_to_string(
        &mut std::fs::File::from(found.into_iter().next().unwrap()),
        &mut text,
    )
    .unwrap();
    assert!(text.starts_with("Name:"));
    assert_eq!(client.receive().unwrap().0.request, 3);
    let most = vec![file.as_fd(); wire::MOST_DESCRIPTORS];
    server.send_with_descriptors(header(4), b"", &most).unwrap();
    assert_eq!(client.receive().unwrap().0.request, 4);
    assert_eq!(client.take_descriptors().len(), most.len());
    let many = vec![file.as_fd(); wire::MOST_DESCRIPTORS + 1];
    assert!(server.send_with_descriptors(header(4), b"", &many).is_err());
}

#[test]
fn sealed_payloads_are_believed_only_with_their_seal() {
    for (listener, endpoint) in listeners() {
        let mut near = Link::connect(&endpoint, WAIT).unwrap();
        let mut far = listener.accept().unwrap();
        far.set_timeout(Some(WAIT)).unwrap();
        let sealed = Header {
            flags: SEALED,
            ..header(7, 1)
        };
        assert!(!header(7, 1).is_sealed(), "without the flag");
        let empty = Header {
            payload_bytes: 0,
            ..sealed
        };
        assert!(!empty.is_sealed(), "without a payload");
        near.send(sealed, b"control", &[b"some ", b"bytes"])
            .unwrap();
        // The same once more, with a byte that turned on the way.
        let mut seal = Seal::new();
        seal.add(&b"some bytes"[..]);
        let whole = Header {
            control_bytes: 0,
            payload_bytes: 10,
            ..sealed
        };
        let mut damaged = whole.encode(&[]).to_vec();
        damaged.extend(b"some bites");
        damaged.extend(seal.bytes());
        let sent = rustix::net::send(near.as_fd(), &damaged, rustix::net::SendFlags::empty());
        assert_eq!(sent, Ok(damaged.len()));
        near.send(header(8, 2), b"behind", &[]).unwrap();
        let (found, _) = far.receive().unwrap();
        assert!(found.is_sealed());
        let mut bytes = [0; 10];
        far.receive_sealed(&found, &mut bytes).unwrap();
        assert_eq!(&bytes, b"some bytes");
        let (found, _) = far.receive().unwrap();
        let refused = far.receive_sealed(&found, &mut bytes);
        assert!(matches!(refused, Err(LinkError::Damaged)), "{refused:?}");
        // The connection is in step.
        let (found, control) = far.receive().unwrap();
        assert_eq!((found.kind, control), (8, &b"behind"[..]));
    }
}

#[test]
fn questions_are_answered_over_both_kinds() {
    for (listener, endpoint) in listeners() {
        let mut near = Link::connect(&endpoint, WAIT).unwrap();
        near.set_timeout(Some(WAIT)).unwrap();
        let mut far = listener.accept().unwrap();
        far.set_timeout(Some(WAIT)).unwrap();
        let server = thread::spawn(move || {
            let (asked, _) = far.receive().unwrap();
            assert_eq!((asked.kind, asked.request), (Ping::KIND, 5));
            far.send(header(asked.kind, asked.request), &[], &[])
                .unwrap();
        });
        near.ask(5, &Ping {}, &mut Vec::new()).unwrap();
        server.join().unwrap();
    }
}

#[test]
fn answers_to_other_questions_are_not_taken() {
    let answer = |kind, request, status| Header {
        status,
        ..header(kind, request)
    };
    let ping = Ping::KIND;
    for (answer, is_taken) in [
        (answer(ping, 5, Status::Ok), true),
        (answer(ping, 6, Status::Ok), false),
        (answer(ping + 1, 5, Status::Ok), false),
        (answer(ping + 1, 6, Status::Ok), false),
        (answer(0, 6, Status::Ok), false),
    ] {
        for (listener, endpoint) in listeners() {
            let mut near = Link::connect(&endpoint, WAIT).unwrap();
            near.set_timeout(Some(WAIT)).unwrap();
            let mut far = listener.accept().unwrap();
            far.send(answer, &[], &[]).unwrap();
            let taken = near.take_answer::<Ping>(5);
            assert_eq!(taken.is_ok(), is_taken, "{answer:?}: {taken:?}");
        }
    }
    // A peer that could not read the question says why.
    for (listener, endpoint) in listeners() {
        let mut near = Link::connect(&endpoint, WAIT).unwrap();
        near.set_timeout(Some(WAIT)).unwrap();
        let mut far = listener.accept().unwrap();
        let mut text = Vec::new();
        wire::message::encode(&Refusal::new("what?"), &mut text);
        let complaint = answer(0, 0, Status::Malformed);
        far.send(complaint, &text, &[]).unwrap();
        match near.take_answer::<Ping>(5) {
            Err(AskError::Refused(Status::Malformed, refusal)) => assert_eq!(refusal.text, "what?"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn payloads_are_skipped_and_ends_in_the_middle_are_told() {
    for is_ahead in [false, true] {
        for (listener, endpoint) in listeners() {
            let mut near = Link::connect(&endpoint, WAIT).unwrap();
            let mut far = listener.accept().unwrap();
            far.set_timeout(Some(WAIT)).unwrap();
            if is_ahead {
                far.read_ahead(256);
            }
            // Less and more than what is dropped at a time.
            for bytes in [0, 1, 100, 40_000] {
                near.send(header(1, 1), &[], &[&vec![7; bytes]]).unwrap();
                near.send(header(2, 2), b"behind", &[]).unwrap();
                let (head, _) = far.receive().unwrap();
                far.skip_payload(head.payload_bytes).unwrap();
                let (head, control) = far.receive().unwrap();
                assert_eq!((head.kind, control), (2, &b"behind"[..]), "{bytes}");
            }
            near.send(header(1, 1), &[], &[&[7; 100]]).unwrap();
            far.receive().unwrap();
            drop(near);
            let mut bytes = [0; 101];
            match far.receive_payload(&mut bytes) {
                Err(LinkError::Io(e)) => assert_eq!(e.kind(), std::io::ErrorKind::UnexpectedEof),
                other => panic!("{other:?}"),
            }
            assert_eq!(bytes[..100], [7; 100]);
        }
    }
}

#[test]
fn a_relayed_link_names_the_far_peer_and_says_why_its_relay_failed() {
    let address = "192.0.2.1:7".parse().unwrap();
    let peer = PeerName::Tcp {
        peer: address,
        here: address,
    };
    let why = Some("the certificate is over");
    // With bytes that the relay has not taken, too: its end is then a reset to the kernel.
    for (trouble, has_untaken) in [(None, false), (None, true), (why, false), (why, true)] {
        let (near, far) = UnixStream::pair().unwrap();
        let relay = Arc::new(Relay::new(peer));
        let mut link = Link::relayed(near, Arc::clone(&relay));
        assert!(link.is_relayed() && !link.is_tcp());
        assert_eq!(link.peer().unwrap(), peer);
        if has_untaken {
            link.send(header(1, 1), b"", &[]).unwrap();
        }
        if let Some(text) = trouble {
            relay.fail(std::io::Error::new(std::io::ErrorKind::InvalidData, text));
        }
        drop(far);
        let read = link.receive().map(|(h, _)| h).unwrap_err();
        let written = link.send(header(1, 1), b"", &[]).unwrap_err();
        match trouble {
            Some(text) => {
                assert!(read.to_string().contains(text), "{read}");
                assert!(written.to_string().contains(text), "{written}");
            }
            None => {
                assert!(matches!(read, LinkError::Closed), "{read}");
                assert!(matches!(written, LinkError::Io(_)), "{written}");
            }
        }
    }
    for (listener, endpoint) in listeners() {
        let link = Link::connect(&endpoint, WAIT).unwrap();
        assert!(!link.is_relayed());
        drop((link, listener));
    }
}

#[test]
fn the_kernel_of_the_own_host_is_not_asked_whether_it_lives() {
    let (listener, endpoint) = listeners().swap_remove(1);
    let near = Link::connect(&endpoint, WAIT).unwrap();
    let far = listener.accept().unwrap();
    for link in [&near, &far] {
        assert!(!rustix::net::sockopt::socket_keepalive(link).unwrap());
    }
}
