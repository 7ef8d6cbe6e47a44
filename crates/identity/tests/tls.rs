//! Connections under TLS on the loopback: who gets in, what arrives, and how an end comes through.
//!
//! Certificates are made for each test; the far end is a thread of the test.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use certificates::{Authority, CertificateRequest, Validity};
use identity::{Certificate, Holder, Keys, Tls, TlsError, TlsFiles, reach};
use wire::Status;
use wire::frame::Header;
use wire::link::{Link, LinkError, Listener, PeerName};
use wire::message::session::Credentials;
use wire::url::Endpoint;

const WAIT: Duration = Duration::from_secs(30);

/// A directory that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pario-tls-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        Scratch(path)
    }

    fn authority(&self, name: &str) -> Authority {
        Authority::make(&self.0.join(name), name, Validity::days(30)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn server(hosts: &[&str]) -> CertificateRequest {
    CertificateRequest {
        holder: Holder::Server,
        hosts: hosts.iter().map(|h| (*h).into()).collect(),
        validity: Validity::days(30),
    }
}

fn ada() -> CertificateRequest {
    CertificateRequest {
        holder: Holder::User {
            name: "ada".into(),
            credentials: Credentials {
                user: 1000,
                group: 100,
                groups: vec![4, 27],
            },
        },
        hosts: Vec::new(),
        validity: Validity::days(30),
    }
}

/// Of yesterday.
fn over() -> Validity {
    let now = Validity::days(0).to;
    Validity {
        from: now - 200_000,
        to: now - 100_000,
    }
}

fn tls(files: &TlsFiles) -> Tls {
    Tls::read(files.clone()).unwrap()
}

fn listen() -> (Listener, Endpoint) {
    let any: Endpoint = "tcp:127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(&any).unwrap();
    let endpoint = listener.endpoint().unwrap();
    (listener, endpoint)
}

fn keys(files: &TlsFiles) -> Keys {
    Keys {
        tls: Some(tls(files)),
        ..Keys::default()
    }
}

type Accepted = Result<(Link, Holder), TlsError>;

/// Accepts one connection in a thread.
fn accept(listener: Listener, tls: Tls) -> JoinHandle<Accepted> {
    std::thread::spawn(move || tls.accept(listener.accept().unwrap(), WAIT))
}

/// Both ends of a connection between these.
fn met(near: &TlsFiles, far: &TlsFiles) -> (Link, Link, Holder) {
    let (listener, endpoint) = listen();
    let far = accept(listener, tls(far));
    let near = reach(&endpoint, &keys(near), WAIT).unwrap();
    let (far, holder) = far.join().unwrap().unwrap();
    (near, far, holder)
}

fn header(payload_bytes: u64) -> Header {
    Header {
        kind: 7,
        status: Status::Ok,
        flags: 0,
        request: 1,
        control_bytes: 0,
        payload_bytes,
    }
}

/// Files of a server and a user of one authority.
fn site(scratch: &Scratch) -> (Authority, TlsFiles, TlsFiles) {
    let authority = scratch.authority("ca");
    let of_server = authority.issue(
        &server(&["127.0.0.1", "node7"]),
        &scratch.0.join("s"),
        "server",
    );
    let of_user = authority.issue(&ada(), &scratch.0.join("u"), "ada");
    (authority, of_server.unwrap(), of_user.unwrap())
}

#[test]
fn certificates_say_what_they_were_made_for() {
    let scratch = Scratch::new();
    let (_authority, of_server, of_user) = site(&scratch);
    let said = certificates::read(&of_user.cert).unwrap();
    assert_eq!(said.holder, Some(ada().holder));
    assert_eq!((said.subject.as_str(), said.issuer.as_str()), ("ada", "ca"));
    assert!(!said.is_authority && said.names.is_empty());
    let said = certificates::read(&of_server.cert).unwrap();
    assert_eq!(said.holder, Some(Holder::Server));
    assert_eq!(said.names, ["node7"]);
    assert_eq!(
        said.addresses,
        ["127.0.0.1".parse::<std::net::IpAddr>().unwrap()]
    );
    let days = (said.not_after.seconds() - said.not_before.seconds()) / 86_400;
    assert_eq!(days, 30);
    let said = certificates::read(&of_server.ca).unwrap();
    assert!(said.is_authority && said.holder.is_none());
    // Whatever is cut off or changed is an error or says something, and nothing panics.
    let pem = std::fs::read_to_string(&of_user.cert).unwrap();
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"));
    let shown = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&of_user.key).unwrap());
    assert_eq!(shown & 0o777, 0o600);
}

#[test]
fn whoever_is_signed_gets_in_and_is_known() {
    let scratch = Scratch::new();
    let (_authority, of_server, of_user) = site(&scratch);
    let (near, far, holder) = met(&of_user, &of_server);
    assert_eq!(holder, ada().holder);
    assert!(near.is_relayed() && far.is_relayed());
    // The addresses are those of the TCP connection.
    let (PeerName::Tcp { peer, .. }, PeerName::Tcp { here, .. }) =
        (near.peer().unwrap(), far.peer().unwrap())
    else {
        panic!("not over TCP")
    };
    assert_eq!(peer, here);
    let (_near, _far, holder) = met(&of_server, &of_server);
    assert_eq!(holder, Holder::Server);
}

#[test]
fn bytes_arrive_as_they_were_sent_in_both_directions_at_once() {
    let scratch = Scratch::new();
    let (_authority, of_server, of_user) = site(&scratch);
    let (mut near, mut far, _) = met(&of_user, &of_server);
    let bytes: Vec<u8> = (0..9_000_017_u32).map(|i| (i ^ (i >> 7)) as u8).collect();
    let theirs = bytes.clone();
    let far = std::thread::spawn(move || {
        let mut second = far.try_clone().unwrap();
        let sent = theirs.clone();
        let sending =
            std::thread::spawn(move || second.send(header(0), b"back", &[&sent]).unwrap());
        let (found, control) = far.receive().unwrap();
        assert_eq!(
            (found.payload_bytes, control),
            (theirs.len() as u64, &b"forth"[..])
        );
        let mut got = vec![0; theirs.len()];
        far.receive_payload(&mut got).unwrap();
        assert!(got == theirs);
        sending.join().unwrap();
    });
    let mut second = near.try_clone().unwrap();
    let sent = bytes.clone();
    let sending = std::thread::spawn(move || second.send(header(0), b"forth", &[&sent]).unwrap());
    let (_, control) = near.receive().unwrap();
    assert_eq!(control, b"back");
    let mut got = vec![0; bytes.len()];
    near.receive_payload(&mut got).unwrap();
    assert!(got == bytes);
    sending.join().unwrap();
    far.join().unwrap();
}

#[test]
fn ends_and_timeouts_come_through() {
    let scratch = Scratch::new();
    let (_authority, of_server, of_user) = site(&scratch);
    // What was said before a close arrives before it.
    let (mut near, mut far, _) = met(&of_user, &of_server);
    near.send(header(0), b"last", &[&[5; 300_000]]).unwrap();
    drop(near);
    let (found, _) = far.receive().unwrap();
    far.skip_payload(found.payload_bytes).unwrap();
    assert!(matches!(far.receive(), Err(LinkError::Closed)));
    // One who has nothing more to say still hears.
    let (mut near, mut far, _) = met(&of_user, &of_server);
    let finishing = std::thread::spawn(move || {
        near.send(header(0), b"bye", &[]).unwrap();
        near.finish(WAIT);
    });
    far.receive().unwrap();
    assert!(matches!(far.receive(), Err(LinkError::Closed)));
    far.send(header(0), b"and bye", &[]).unwrap();
    drop(far);
    finishing.join().unwrap();
    // A shutdown wakes both ends.
    let (near, mut far, _) = met(&of_user, &of_server);
    let waiting = std::thread::spawn(move || far.receive().map(drop));
    near.shutdown();
    assert!(waiting.join().unwrap().is_err());
    // Silence is a timeout, and the connection is good after it.
    let (mut near, mut far, _) = met(&of_user, &of_server);
    near.set_timeout(Some(Duration::from_millis(20))).unwrap();
    let late = near.receive().map(drop).unwrap_err();
    assert_eq!(late.status(), Status::TimedOut);
    near.set_timeout(Some(WAIT)).unwrap();
    far.send(header(0), b"late", &[]).unwrap();
    assert_eq!(near.receive().unwrap().1, b"late");
}

#[test]
fn a_connection_that_is_cut_is_no_orderly_end() {
    let scratch = Scratch::new();
    let (_authority, of_server, of_user) = site(&scratch);
    let (listener, endpoint) = listen();
    let (outside, at) = listen();
    // A relay in between that ends the connection in the middle without a farewell.
    let between = std::thread::spawn(move || {
        let near = outside.accept().unwrap().into_tcp().unwrap();
        let Endpoint::Tcp { host, port } = endpoint else {
            panic!("not TCP")
        };
        let far = TcpStream::connect((host.as_str(), port)).unwrap();
        let (mut from, mut to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        let there = std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        let (mut from, mut to) = (far.try_clone().unwrap(), near.try_clone().unwrap());
        let mut left = 2500;
        let mut byte = [0; 500];
        while left > 0 {
            let n = from.read(&mut byte).unwrap().min(left);
            to.write_all(&byte[..n]).unwrap();
            left -= n;
        }
        let _ = near.shutdown(std::net::Shutdown::Both);
        let _ = far.shutdown(std::net::Shutdown::Both);
        let _ = there.join();
    });
    let far = accept(listener, tls(&of_server));
    let mut near = reach(&at, &keys(&of_user), WAIT).unwrap();
    let (mut far, _) = far.join().unwrap().unwrap();
    let sending = std::thread::spawn(move || {
        let _ = far.send(header(0), b"", &[&[7; 1_000_000]]);
    });
    let read = near.receive().map(|(header, _)| header);
    let mut all = vec![0; 1_000_000];
    let cut = read.and_then(|_| near.receive_payload(&mut all));
    assert!(matches!(cut, Err(LinkError::Io(_))), "{cut:?}");
    between.join().unwrap();
    sending.join().unwrap();
}

/// What the caller is told, and what the one who listens.
fn refused(near: &TlsFiles, far: &TlsFiles) -> (String, String) {
    let (listener, endpoint) = listen();
    let far = accept(listener, tls(far));
    let near = match reach(&endpoint, &keys(near), WAIT) {
        Err(e) => e.to_string(),
        Ok(link) => {
            // Certificates of callers are looked at after theirs.
            let role = wire::message::session::Role::NewClient;
            let own = Credentials::new(1, 1);
            let met = identity::introduce(link, &endpoint, role, own, &keys(near), WAIT);
            let error = met.unwrap_err();
            assert_eq!(error.status(), Status::Unauthenticated, "{error}");
            error.to_string()
        }
    };
    match far.join().unwrap() {
        Err(TlsError::Refused(why)) => (near, why),
        Err(TlsError::Io(e)) => (near, e.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nobody_else_gets_in() {
    let scratch = Scratch::new();
    let (authority, of_server, of_user) = site(&scratch);
    let other = scratch.authority("other");
    let stranger = other.issue(&ada(), &scratch.0.join("x"), "ada").unwrap();
    // Of another authority: neither end believes the other.
    let (near, far) = refused(&stranger, &of_server);
    assert!(near.contains("authority"), "{near}");
    assert!(!far.is_empty());
    // One that believes the server's authority, but is not signed by it.
    let half = TlsFiles {
        ca: of_server.ca.clone(),
        ..stranger
    };
    let (near, far) = refused(&half, &of_server);
    assert!(far.contains("authority"), "{far}");
    assert!(near.contains("authority"), "{near}");
    // A user is no server, whatever he listens on.
    let (near, _) = refused(&of_user, &of_user);
    assert!(near.contains("certificate"), "{near}");
    // A server is the one that was meant.
    let elsewhere = authority.issue(&server(&["node8"]), &scratch.0.join("e"), "server");
    let (near, _) = refused(&of_user, &elsewhere.unwrap());
    assert!(near.contains("other names and addresses"), "{near}");
    // What is over is over, at both ends.
    let old = CertificateRequest {
        validity: over(),
        ..ada()
    };
    let old = authority.issue(&old, &scratch.0.join("o"), "ada").unwrap();
    let (near, far) = refused(&old, &of_server);
    assert!(far.contains("expired"), "{far}");
    assert!(near.contains("expired"), "{near}");
    let old = CertificateRequest {
        validity: over(),
        ..server(&["127.0.0.1"])
    };
    let old = authority
        .issue(&old, &scratch.0.join("p"), "server")
        .unwrap();
    let (near, _) = refused(&of_user, &old);
    assert!(
        near.contains("expired") && near.contains("pario cert renew"),
        "{near}"
    );
}

#[test]
fn plain_and_protected_ends_tell_each_other() {
    let scratch = Scratch::new();
    let (_authority, of_server, of_user) = site(&scratch);
    let (listener, endpoint) = listen();
    let far = accept(listener, tls(&of_server));
    let mut plain = Link::connect(&endpoint, WAIT).unwrap();
    plain.send(header(0), b"hello", &[]).unwrap();
    let Err(TlsError::Plain(mut link)) = far.join().unwrap() else {
        panic!("taken for TLS")
    };
    // Nothing of what it said is lost.
    assert_eq!(link.receive().unwrap().1, b"hello");
    let (listener, endpoint) = listen();
    let far = std::thread::spawn(move || {
        let mut link = listener.accept().unwrap();
        let _ = link.send(header(0), b"what?", &[]);
        link.finish(WAIT);
    });
    let error = reach(&endpoint, &keys(&of_user), WAIT).unwrap_err();
    assert!(error.to_string().contains("TLS"), "{error}");
    far.join().unwrap();
}

#[test]
fn a_renewed_certificate_counts_for_the_next_connection() {
    let scratch = Scratch::new();
    let authority = scratch.authority("ca");
    let old = CertificateRequest {
        validity: over(),
        ..server(&["127.0.0.1"])
    };
    let of_server = authority
        .issue(&old, &scratch.0.join("s"), "server")
        .unwrap();
    let of_user = authority
        .issue(&ada(), &scratch.0.join("u"), "ada")
        .unwrap();
    // Both are read once, as processes do that go on.
    let (near, far) = (keys(&of_user), tls(&of_server));
    let meet = || {
        let (listener, endpoint) = listen();
        let far = accept(listener, far.clone());
        let near = reach(&endpoint, &near, WAIT);
        (near, far.join().unwrap())
    };
    assert!(meet().0.unwrap_err().to_string().contains("expired"));
    // A half-written file changes nothing.
    let text = std::fs::read_to_string(&of_server.cert).unwrap();
    std::fs::write(&of_server.cert, &text[..text.len() / 2]).unwrap();
    assert!(meet().0.unwrap_err().to_string().contains("expired"));
    std::fs::write(&of_server.cert, &text).unwrap();
    let said = authority.renew(&of_server.cert, Validity::days(9)).unwrap();
    assert_eq!(said.holder, Some(Holder::Server));
    assert_eq!(said.addresses.len(), 1);
    let (near, far) = meet();
    assert_eq!(far.unwrap().1, ada().holder);
    near.unwrap();
    // The authority renews its own in the same way, and what it has signed stays good.
    let ca = authority.certificate();
    let before = certificates::read(&ca).unwrap().not_after;
    let after = authority.renew(&ca, Validity::days(90)).unwrap().not_after;
    assert!(after > before);
}

#[test]
fn files_that_do_not_fit_are_refused_by_name() {
    let scratch = Scratch::new();
    let (_authority, of_server, of_user) = site(&scratch);
    let refused = |files: &TlsFiles, names: &Path, why: &str| {
        let error = Tls::read(files.clone()).unwrap_err().to_string();
        assert!(error.contains(&names.display().to_string()), "{error}");
        assert!(error.contains(why), "{error}");
    };
    let mixed = TlsFiles {
        key: of_server.key.clone(),
        ..of_user.clone()
    };
    refused(&mixed, &of_user.cert, "does not fit");
    let no_authority = TlsFiles {
        ca: of_user.cert.clone(),
        ..of_user.clone()
    };
    refused(&no_authority, &of_user.cert, "authority");
    let absent = TlsFiles {
        cert: scratch.0.join("absent"),
        ..of_user.clone()
    };
    refused(&absent, &scratch.0.join("absent"), "");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&of_user.key, mode).unwrap();
    refused(&of_user, &of_user.key, "chmod 600");
    assert!(Certificate::parse(&[]).is_err());
}

/// Sums up what a relay costs; `cargo test -p identity --release -- --ignored --nocapture`.
#[test]
#[ignore = "long: a measurement"]
fn throughput() {
    let scratch = Scratch::new();
    let (_authority, of_server, of_user) = site(&scratch);
    let block = vec![9; 4 << 20];
    let run = |mut near: Link, far: Link| {
        let rounds = 256;
        let started = std::time::Instant::now();
        let size = block.len();
        let reading = std::thread::spawn(move || {
            let mut far = far;
            let mut into = vec![0; size];
            for _ in 0..rounds {
                far.receive_payload(&mut into).unwrap();
            }
            far.send(header(0), b"", &[]).unwrap();
        });
        // As those do who send payloads by themselves.
        let mut raw = std::fs::File::from(near.as_fd().try_clone_to_owned().unwrap());
        for _ in 0..rounds {
            Write::write_all(&mut raw, &block).unwrap();
        }
        near.receive().unwrap();
        let _ = reading.join();
        (rounds * size) as f64 / started.elapsed().as_secs_f64() / f64::from(1 << 30)
    };
    for _ in 0..3 {
        let (listener, endpoint) = listen();
        let far = std::thread::spawn(move || listener.accept().unwrap());
        let near = Link::connect(&endpoint, WAIT).unwrap();
        let plain = run(near, far.join().unwrap());
        let (near, far, _) = met(&of_user, &of_server);
        let protected = run(near, far);
        println!("plain {plain:.2} GiB/s, TLS {protected:.2} GiB/s");
    }
}
