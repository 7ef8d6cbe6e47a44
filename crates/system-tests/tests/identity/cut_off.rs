//! Hosts that vanish, and come back.
//!
//! What a vanished client held is free after its lease; when it comes back it is told what happened, and
//! can go on as a new client.

use system_tests::programs;
use system_tests::waiting::until;
use system_tests::worker::{OpenHow, Worker};

use crate::site::{Site, good};

const LAYOUT: &str = "striped(64KiB) over 1";
/// Short, so that the tests are.
const LEASE: [&str; 2] = ["--client-lease", "4"];

#[test]
fn a_vanished_host_loses_its_locks_and_goes_on_as_a_new_client() {
    let Some(mut site) = Site::new(2) else { return };
    let secret = site.secret("secret");
    let user = secret.display().to_string();
    let catalogue = site.dir.join("meta").display().to_string();
    let meta = ["meta", "--dir", &catalogue, "--secret", &user];
    let url = site.start(0, &[&meta[..], &LEASE].concat());
    let io = ["io", "--meta", &url, "--memory", "64MiB"];
    site.start(0, &[&io[..], &["--secret", &user], &LEASE].concat());

    let mut near = site.client(0, &url, &secret);
    let create = OpenHow::new("rwc").layout(Some(LAYOUT));
    near.open(0, "/file", &create);
    near.ask("chmod\t/file\t666");
    let mut far = site.client(1, &url, &secret);
    far.open(0, "/file", &OpenHow::new("rwa"));
    far.fill(0, 0, 4096, 1);
    far.open(1, "/read", &create);
    far.open(2, "/written", &create);
    far.fill(2, 0, 4096, 3);
    far.open(3, "/synced", &create);
    far.fill(3, 0, 4096, 4);
    far.ask("sync\t3");
    // It holds a range, as a program does that reads, changes and writes.
    far.ask("hold\t/file\t4096");

    site.hosts.cut(1);
    // Waits for the lock of the one that is gone, and gets it.
    near.open(1, "/file", &OpenHow::new("rwa"));
    near.fill(1, 0, 4096, 2);
    assert_eq!(near.check(1, 0, 4096, 2), 4096);
    // Its other sessions end about the same time.
    until("nobody is left but the near client", || {
        let mut status = site.pario(0, &["status", "--json"]);
        status.env("PARIO_URL", &url).env("PARIO_SECRET", &user);
        good(&mut status).contains("\"clients\": 1,")
    });

    site.hosts.mend(1);
    let why = far.try_ask("fill\t0\t0\t4096\t5").unwrap_err();
    assert!(why.contains("Fenced") && why.contains("lease"), "{why}");
    assert!(why.contains("open the file"), "{why}");
    // Nothing of it reached the file.
    assert_eq!(near.check(1, 0, 4096, 2), 4096);
    // What was written and not synced is in doubt, and that is said; what was synced is not.
    for line in ["sync\t2", "close\t2"] {
        let why = far.try_ask(line).unwrap_err();
        assert!(why.contains("Fenced"), "{line}: {why}");
    }
    far.ask("close\t3");
    far.ask("close\t1");
    // The same process goes on, as a new client.
    far.open(5, "/file", &OpenHow::new("rwa"));
    far.fill(5, 0, 4096, 6);
    far.ask("sync\t5");
    assert_eq!(near.check(1, 0, 4096, 6), 4096);
    far.ask("close\t5");
}

/// The kernel of the server ends a connection to a process that takes nothing, although the kernel of that process answers.
#[test]
fn a_reader_that_stands_still_within_its_lease_reads_on() {
    const LEN: u64 = 32 << 20;
    let Some(mut site) = Site::new(2) else { return };
    let secret = site.secret("secret");
    let user = secret.display().to_string();
    let catalogue = site.dir.join("meta").display().to_string();
    // Three quarters of it in silence, and time enough to come back.
    let lease = ["--client-lease", "6"];
    let meta = ["meta", "--dir", &catalogue, "--secret", &user];
    let url = site.start(0, &[&meta[..], &lease].concat());
    let io = ["io", "--meta", &url, "--memory", "64MiB"];
    site.start(0, &[&io[..], &["--secret", &user], &lease].concat());
    let mut near = site.client(0, &url, &secret);
    near.open(0, "/file", &OpenHow::new("rwc").layout(Some(LAYOUT)));
    near.fill(0, 0, LEN, 1);
    near.ask("chmod\t/file\t666");

    let go_on = site.dir.join("go-on");
    let mut command = site.on(1, &programs::worker());
    command.arg(&url).env("PARIO_SECRET", &secret);
    command.env("PARIO_STAY_AT", "client_in_payload");
    command.env("PARIO_STAY_UNTIL", &go_on);
    let mut far = Worker::of(&mut command);
    far.answered();
    far.open(0, "/file", &OpenHow::new("r"));
    far.send(&format!("check\t0\t0\t{LEN}\t1"));
    let clients = || {
        let mut status = site.pario(0, &["status", "--json"]);
        status.env("PARIO_URL", &url).env("PARIO_SECRET", &user);
        let text = good(&mut status);
        let servers = text
            .split("\"servers\"")
            .nth(1)
            .expect("servers")
            .to_owned();
        let count = servers.split("\"clients\": ").nth(1).expect("clients");
        count
            .split(',')
            .next()
            .and_then(|n| n.trim().parse::<u64>().ok())
    };
    // Both, and the one that asks.
    until("a reader that stands still", || {
        site.dir.join("go-on.reached").exists() && clients() == Some(3)
    });
    until("the end of its connection", || clients() == Some(2));
    std::fs::write(&go_on, "").expect("a file");
    assert_eq!(far.answered(), LEN.to_string());
    far.ask("close\t0");
}

#[test]
fn a_short_cut_costs_nothing() {
    let Some(mut site) = Site::new(2) else { return };
    let secret = site.secret("secret");
    let user = secret.display().to_string();
    let catalogue = site.dir.join("meta").display().to_string();
    // A lease that no cut of this test outlasts.
    let lease = ["--client-lease", "600"];
    let meta = ["meta", "--dir", &catalogue, "--secret", &user];
    let url = site.start(0, &[&meta[..], &lease].concat());
    let io = ["io", "--meta", &url, "--memory", "64MiB"];
    site.start(0, &[&io[..], &["--secret", &user], &lease].concat());
    let mut far = site.client(1, &url, &secret);
    far.open(0, "/file", &OpenHow::new("rwc").layout(Some(LAYOUT)));
    far.fill(0, 0, 4096, 1);
    site.hosts.cut(1);
    // Sent into the void until the cable is back.
    far.send("fill\t0\t4096\t4096\t1");
    site.hosts.mend(1);
    far.answered();
    assert_eq!(far.check(0, 0, 8192, 1), 8192);
    far.ask("sync\t0");
    far.ask("close\t0");
}
