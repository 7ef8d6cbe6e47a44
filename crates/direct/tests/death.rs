//! The liveness word after the death of a server process that had no time to say anything.
//!
//! The server is this test program itself, started once more in its own process.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};

use direct::{ClientTable, Process, ServerTable};

const ROLE: &str = "PARIO_TEST_DIRECT_SERVER";

/// Not a test by itself: the server of the test below.
#[test]
fn server_process() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let table = ServerTable::new().unwrap();
    let fd = table.descriptor().as_raw_fd();
    println!("\nTABLE {fd} {}", table.len());
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_killed_server_is_noticed_without_a_message() {
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "server_process", "--nocapture"])
        .env(ROLE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = std::io::BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("TABLE") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut out, &mut line).unwrap() > 0);
    }
    let mut words = line.split_whitespace().skip(1);
    let fd: i32 = words.next().unwrap().parse().unwrap();
    let len: u64 = words.next().unwrap().parse().unwrap();
    let file = std::fs::File::open(format!("/proc/{}/fd/{fd}", server.id())).unwrap();
    let table = ClientTable::map(file.as_fd(), len).unwrap();
    assert!(table.is_alive());
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(!table.is_alive());
}

#[test]
fn a_child_is_another_process() {
    let process = Process::this();
    assert!(process.is_this());
    assert_eq!(process.pid(), std::process::id());
}
