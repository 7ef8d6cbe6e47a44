//! Clients that hold a lock and are silent, and clients that hold one for long.
//!
//! ```text
//!  holder   |-- lock ... (stopped) ------------------------- goes on: fenced, opens anew --|
//!  other          |-- waits -------- a lease -------- lock --|
//!
//!  holder   |-- lock ... its caller does not move, beats go on ------- writes --|
//!  other          |-- waits ------ leases ------------------------------------- lock --|
//! ```
//!
//! The same over Unix sockets and over TCP of this host, where the kernel tells of the deaths of processes and of
//! nothing else.

use std::path::PathBuf;
use std::process::Command;

use system_tests::process::stop;
use system_tests::service::Transport;
use system_tests::{OpenHow, Service, ServiceOptions, Worker, programs, until};

use crate::{make, sum};

/// As short as one may be.
const LEASE: [&str; 2] = ["--client-lease", "2"];
const LAYOUT: &str = "striped(64KiB) over 1";
const LEN: u64 = 4096;

/// A service, a client that holds a lock in the middle of a write and stays there, and one beside it. The
/// holder goes on when the file is made.
fn scene(transport: Transport) -> (Service, Worker, Worker, PathBuf) {
    let options = ServiceOptions::new(1).transport(transport);
    let service = options.io_arguments(LEASE).meta_arguments(LEASE).start();
    let mut other = service.worker();
    other.open(0, "/file", &OpenHow::new("rwca").layout(Some(LAYOUT)));
    let go_on = service.dir().join("go-on");
    let mut command = Command::new(programs::worker());
    command.arg(service.url().to_string());
    command.env("PARIO_STAY_AT", "client_after_lock");
    command.env("PARIO_STAY_UNTIL", &go_on);
    let mut holder = Worker::of(&mut command);
    holder.answered();
    holder.open(0, "/file", &OpenHow::new("rwa"));
    holder.open(1, "/unsynced", &OpenHow::new("rwc").layout(Some(LAYOUT)));
    holder.fill(1, 0, LEN, 3);
    holder.open(2, "/synced", &OpenHow::new("rwc").layout(Some(LAYOUT)));
    holder.fill(2, 0, LEN, 4);
    holder.ask("sync\t2");
    holder.send(&format!("fill\t0\t0\t{LEN}\t1"));
    let reached = service.dir().join("go-on.reached");
    until("a lock that is held", || reached.exists());
    (service, holder, other, go_on)
}

fn a_stopped_holder(transport: Transport) {
    let (_service, mut holder, mut other, go_on) = scene(transport);
    let stopped = stop(holder.pid());
    // It waits for the one that stands still, and gets the lock.
    other.fill(0, 0, LEN, 2);
    make(&go_on);
    drop(stopped);
    let why = holder.answer().unwrap_err();
    assert!(why.contains("Fenced") && why.contains("lease"), "{why}");
    assert!(why.contains("open the file"), "{why}");
    assert_eq!(other.check(0, 0, LEN, 2), LEN);
    // What was written and not synced is in doubt, and that is said; what was synced is not.
    for line in ["sync\t1", "close\t1"] {
        let why = holder.try_ask(line).unwrap_err();
        assert!(why.contains("Fenced"), "{line}: {why}");
    }
    holder.ask("close\t2");
    // The same process goes on, as a new client.
    holder.open(3, "/file", &OpenHow::new("rwa"));
    holder.fill(3, 0, LEN, 5);
    holder.ask("sync\t3");
    assert_eq!(other.check(0, 0, LEN, 5), LEN);
}

fn a_holder_that_takes_its_time(transport: Transport) {
    let (service, mut holder, mut other, go_on) = scene(transport);
    let client = service.client();
    let waiting = sum(&service, &client, "lock_waits");
    other.send(&format!("fill\t0\t0\t{LEN}\t2"));
    until("a client that waits", || {
        sum(&service, &client, "lock_waits") > waiting
    });
    // Two leases pass.
    let beats = sum(&service, &client, "beats");
    until("beats", || sum(&service, &client, "beats") >= beats + 8);
    make(&go_on);
    holder.answered();
    other.answered();
    // In their order.
    assert_eq!(holder.check(0, 0, LEN, 2), LEN);
    assert_eq!(sum(&service, &client, "fences"), 0);
}

#[test]
fn a_stopped_process_loses_its_lock_after_its_lease_over_unix_sockets() {
    a_stopped_holder(Transport::Unix);
}

#[test]
fn a_stopped_process_loses_its_lock_after_its_lease_over_tcp() {
    a_stopped_holder(Transport::Tcp);
}

#[test]
fn a_process_that_holds_a_lock_for_leases_keeps_it_over_unix_sockets() {
    a_holder_that_takes_its_time(Transport::Unix);
}

#[test]
fn a_process_that_holds_a_lock_for_leases_keeps_it_over_tcp() {
    a_holder_that_takes_its_time(Transport::Tcp);
}
