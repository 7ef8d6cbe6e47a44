//! Numbers over HTTP: asked as Prometheus and those who look after services ask, of every process of a service. Texts and types of
//! single numbers are in the unit tests of the program.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use crate::scratch::Scratch;

/// The first of three free ports.
fn free_ports() -> SocketAddr {
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let bound = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let first = || bound().local_addr().expect("bound").port();
    let fits = |port: &u16| (1..3).all(|above| port.checked_add(above).is_some_and(is_free));
    let port = std::iter::repeat_with(first).take(100).find(fits);
    SocketAddr::from((Ipv4Addr::LOCALHOST, port.expect("three free ports")))
}

fn above(address: SocketAddr, n: u16) -> SocketAddr {
    SocketAddr::new(address.ip(), address.port() + n)
}

/// The whole answer to a question.
#[track_caller]
fn ask(address: SocketAddr, question: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.write_all(question.as_bytes()).expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}

#[track_caller]
fn get(address: SocketAddr, path: &str) -> String {
    ask(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: pario\r\n\r\n"),
    )
}

/// A number of an answer.
#[track_caller]
fn number(answer: &str, name: &str) -> u64 {
    let mut lines = answer.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let value = value.unwrap_or_else(|| panic!("no {name} in {answer}"));
    value.parse().expect("a number")
}

#[test]
fn every_process_of_a_service_tells_its_numbers() {
    let scratch = Scratch::new("metrics");
    let meta = free_ports();
    let address = meta.to_string();
    scratch.up(&["--servers", "2", "--metrics", &address]);
    std::fs::write(scratch.path("source"), [7; 70_000]).expect("written");
    scratch.text(&[
        "put",
        "-q",
        "source",
        "/file",
        "--layout",
        "striped(1KiB) over 2",
    ]);
    let told = get(meta, "/metrics");
    assert!(told.starts_with("HTTP/1.1 200 OK\r\n"), "{told}");
    assert!(
        told.contains("Content-Type: text/plain; version=0.0.4"),
        "{told}"
    );
    assert_eq!(number(&told, "pario_meta_files"), 1);
    assert_eq!(number(&told, "pario_meta_members_alive"), 2);
    assert!(
        told.contains("pario_meta_requests_of_kind_total{kind=\"open\"} 1\n"),
        "{told}"
    );
    for server in [above(meta, 1), above(meta, 2)] {
        let told = get(server, "/metrics");
        assert_eq!(number(&told, "pario_io_subfiles"), 1, "{told}");
        assert!(
            told.contains("# TYPE pario_io_requests_total counter\n"),
            "{told}"
        );
        assert!(number(&told, "pario_io_used_bytes") >= 35_000, "{told}");
        assert!(get(server, "/healthz").ends_with("\r\n\r\nok\n"));
    }
    // What is asked wrongly, or never, is nobody else's trouble.
    let silent = TcpStream::connect(meta).expect("connected");
    assert!(get(meta, "/").starts_with("HTTP/1.1 404"));
    assert!(ask(meta, "DELETE /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(ask(meta, "HEAD /healthz HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
    // A question without an end is cut off, answered or not.
    let mut long = TcpStream::connect(meta).expect("connected");
    let _ = long.write_all(&vec![b'x'; 1 << 20]);
    assert!(get(meta, "/healthz").starts_with("HTTP/1.1 200"));
    drop(long);
    drop(silent);
    // The address is taken.
    let refusal = scratch.refused(&["serve", "meta", "--dir", "other", "--metrics", &address]);
    assert!(
        refusal.contains(&format!("--metrics {address}: ")),
        "{refusal}"
    );
    assert!(
        !scratch.path("other").exists(),
        "nothing is made before that is known"
    );
    scratch.text(&["down"]);
    assert!(TcpStream::connect(meta).is_err(), "it ends with its server");
}

#[test]
fn a_server_with_a_missing_disk_is_not_well() {
    let scratch = Scratch::new("metrics-disk");
    let (_meta, url) = scratch.serve(&["meta", "--dir", "meta"]);
    let address = free_ports();
    let at = address.to_string();
    let serve = || {
        let place = [
            "io",
            "--meta",
            &url,
            "--listen",
            "unix:io.sock",
            "--state",
            "state",
        ];
        let more = ["--disk", "a", "--disk", "b", "--metrics", &at];
        scratch.serve(&[&place[..], &more].concat()).0
    };
    let mut server = serve();
    assert!(get(address, "/healthz").starts_with("HTTP/1.1 200"));
    server.terminate();
    std::fs::rename(scratch.path("b"), scratch.path("elsewhere")).expect("moved");
    std::fs::create_dir(scratch.path("b")).expect("made");
    let _server = serve();
    let told = get(address, "/healthz");
    assert!(
        told.starts_with("HTTP/1.1 503") && told.contains("a disk is missing"),
        "{told}"
    );
    assert_eq!(
        number(&get(address, "/metrics"), "pario_io_disks_missing"),
        1
    );
}
