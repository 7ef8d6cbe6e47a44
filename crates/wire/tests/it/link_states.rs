//! What a link knows of itself and of its peer, the bounds of what it takes, and what a listener leaves alone.
//!
//! How frames travel, whole and broken, is in `link`.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use wire::frame::{
    CONTINUED, HEADER_BYTES, Header, MAX_CONTROL_BYTES, MAX_LONG_CONTROL_BYTES, REPEATED,
};
use wire::link::{Link, LinkError, Listener};
use wire::seal::SEALED;
use wire::url::Endpoint;

use crate::link::{WAIT, header, listeners};

/// Both ends of a link of each kind.
fn links() -> Vec<(Link, Link)> {
    let made = listeners().into_iter().map(|(listener, place)| {
        let near = Link::connect(&place, WAIT).unwrap();
        near.set_timeout(Some(WAIT)).unwrap();
        let far = listener.accept().unwrap();
        far.set_timeout(Some(WAIT)).unwrap();
        (near, far)
    });
    made.collect()
}

fn unix_links() -> (Link, Link) {
    links().swap_remove(0)
}

/// A plain socket and the link at its other end.
fn plain_and_link() -> (UnixStream, Link) {
    let (listener, place) = listeners().swap_remove(0);
    let Endpoint::Unix(path) = &*place else {
        unreachable!()
    };
    let near = UnixStream::connect(path).unwrap();
    (near, listener.accept().unwrap())
}

/// Waits until something has come.
fn until_input(link: &Link) {
    let deadline = Instant::now() + WAIT;
    while !link.has_input() {
        assert!(Instant::now() < deadline, "nothing has come");
        thread::yield_now();
    }
}

#[test]
fn every_flag_of_frames_is_a_bit_of_its_own() {
    let flags = [CONTINUED, REPEATED, SEALED];
    assert!(flags.iter().all(|f| f.count_ones() == 1));
    assert_eq!(flags.iter().fold(0, |all, f| all | f).count_ones(), 3);
}

#[test]
fn a_link_says_whether_it_has_input() {
    for (mut near, mut far) in links() {
        assert!(!far.has_input());
        near.send(header(1, 1), b"one", &[]).unwrap();
        until_input(&far);
        far.receive().unwrap();
        assert!(!far.has_input(), "all of it was received");
        // What was read ahead is not in the socket any more.
        far.read_ahead(4096);
        let both = |request| {
            let head = Header {
                control_bytes: 3,
                ..header(1, request)
            };
            [&head.encode(b"two")[..], b"two"].concat()
        };
        let sent = [both(2), both(3)].concat();
        assert_eq!(rustix::io::write(&near, &sent).unwrap(), sent.len());
        assert_eq!(far.receive().unwrap().0.request, 2);
        if far.ahead().is_empty() {
            // The network has brought them one by one.
            until_input(&far);
        }
        assert!(far.has_input());
        assert_eq!(far.receive().unwrap().0.request, 3);
        assert!(!far.has_input());
        // The end is to be received too.
        drop(near);
        until_input(&far);
        assert!(matches!(far.receive(), Err(LinkError::Closed)));
    }
}

#[test]
fn frames_that_come_together_are_read_ahead_at_once() {
    let (mut plain, mut far) = plain_and_link();
    far.read_ahead(4096);
    let frame = header(7, 1).encode(b"");
    plain.write_all(&[frame, frame].concat()).unwrap();
    far.receive().unwrap();
    assert_eq!(far.ahead(), frame);
}

#[test]
fn only_a_tcp_link_with_nothing_read_ahead_is_given_away() {
    let mut links = links();
    let (mut near, far) = links.pop().unwrap();
    assert!(near.is_tcp() && far.is_tcp());
    let mut stream = far.into_tcp().unwrap();
    near.send(header(1, 1), b"", &[]).unwrap();
    let mut came = [0; HEADER_BYTES];
    stream.read_exact(&mut came).unwrap();
    assert_eq!(Header::decode(&came).unwrap().request, 1);
    let (near, far) = links.pop().unwrap();
    assert!(!near.is_tcp() && !far.is_tcp());
    let error = far.into_tcp().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    drop(near);
    // Bytes that were read ahead would be lost with the link.
    let (near, mut far) = self::links().pop().unwrap();
    far.read_ahead(4096);
    let frame = header(1, 2).encode(b"");
    let sent = [&frame[..], &frame[..HEADER_BYTES / 2]].concat();
    assert_eq!(rustix::io::write(&near, &sent).unwrap(), sent.len());
    far.receive().unwrap();
    if !far.ahead().is_empty() {
        assert!(far.into_tcp().is_err());
    }
}

#[test]
fn a_link_that_is_shut_down_ends_at_both_ends() {
    for (mut near, mut far) in links() {
        near.shutdown();
        assert!(matches!(far.receive(), Err(LinkError::Closed)));
        assert!(near.send(header(1, 1), b"", &[]).is_err());
    }
}

#[test]
fn a_frame_that_comes_in_time_is_received_within_it() {
    for (mut near, mut far) in links() {
        near.send(header(1, 5), b"there", &[]).unwrap();
        let (head, control) = far.receive_within(WAIT).unwrap();
        assert_eq!((head.request, control), (5, &b"there"[..]));
    }
}

/// Only a long control part has to be there in time: the patience is for those who take memory.
#[test]
fn a_control_part_that_is_not_long_may_take_its_time() {
    let patience = Duration::from_millis(30);
    for len in [1, 64 << 10] {
        let (mut plain, mut far) = plain_and_link();
        far.set_patience(patience).unwrap();
        let control = vec![3; len];
        let head = Header {
            control_bytes: len as u32,
            ..header(1, 1)
        };
        let head = head.encode(&control);
        let (sender, sent) = mpsc::channel::<()>();
        let slow = thread::spawn(move || {
            plain.write_all(&head).unwrap();
            // Longer than the patience, whatever the receiver does meanwhile.
            let _ = sent.recv_timeout(4 * patience);
            plain.write_all(&control).unwrap();
            plain
        });
        assert_eq!(far.receive().unwrap().1.len(), len);
        drop((sender, slow.join().unwrap()));
    }
}

#[test]
fn the_longest_control_part_travels() {
    let (mut near, mut far) = unix_links();
    let control = vec![1; MAX_LONG_CONTROL_BYTES];
    let sender = thread::spawn(move || near.send(header(9, 1), &control, &[]));
    assert_eq!(far.receive().unwrap().1.len(), MAX_LONG_CONTROL_BYTES);
    sender.join().unwrap().unwrap();
}

#[test]
fn a_control_part_that_fits_travels_in_one_frame() {
    let (mut plain, mut far) = plain_and_link();
    let control = vec![1; MAX_CONTROL_BYTES as usize];
    let sender = thread::spawn(move || far.send(header(9, 1), &control, &[]).map(|()| far));
    let mut head = [0; HEADER_BYTES];
    plain.read_exact(&mut head).unwrap();
    let head = Header::decode(&head).unwrap();
    assert_eq!((head.flags, head.control_bytes), (0, MAX_CONTROL_BYTES));
    let mut rest = vec![0; MAX_CONTROL_BYTES as usize];
    plain.read_exact(&mut rest).unwrap();
    drop(sender.join().unwrap().unwrap());
    assert_eq!(plain.read(&mut [0]).unwrap(), 0, "nothing follows");
}

#[test]
fn the_memory_of_a_long_message_is_given_back_and_that_of_others_kept() {
    let (mut near, mut far) = unix_links();
    let part = MAX_CONTROL_BYTES as usize;
    let lengths = [3 * part, 5, 1000, 5];
    let sender = thread::spawn(move || {
        for len in lengths {
            near.send(header(9, 1), &vec![1; len], &[]).unwrap();
        }
        near
    });
    far.receive().unwrap();
    far.receive().unwrap();
    let after_long = far.take_control().capacity();
    assert!(after_long < 2 * part, "{after_long} bytes are kept");
    far.receive().unwrap();
    far.receive().unwrap();
    assert!(far.take_control().capacity() >= 1000);
    sender.join().unwrap();
}

/// Only a socket is a socket that was left behind.
#[test]
fn a_listener_removes_nothing_but_a_dead_socket() {
    let dir = testkit::TempDir::new();
    let file = dir.path().join("results");
    std::fs::write(&file, b"of a year").unwrap();
    let error = Listener::bind(&Endpoint::Unix(file.clone())).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert_eq!(std::fs::read(&file).unwrap(), b"of a year");
    // A name that no socket can have.
    let long = dir.path().join("r".repeat(150));
    std::fs::write(&long, b"too").unwrap();
    let error = Listener::bind(&Endpoint::Unix(long.clone())).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert_eq!(std::fs::read(&long).unwrap(), b"too");
}
