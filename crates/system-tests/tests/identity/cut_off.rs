//! Hosts that vanish, and come back.
//!
//! What a vanished client held is free after its lease; when it comes back it is told what happened, and
//! can go on as a new client.

use system_tests::waiting::until;
use system_tests::worker::OpenHow;

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
