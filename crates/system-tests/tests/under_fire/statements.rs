//! Numbered statements about changing layouts and servers, by the program as its users see it: one move each, and
//! nothing dies.

use client::OpenOptions;
use system_tests::plain_file::assert_bytes;
use system_tests::{Random, ServiceOptions, until};

use crate::{contents, seeded};

/// What a command prints; it has to succeed.
#[track_caller]
fn said(service: &system_tests::Service, arguments: &[&str]) -> String {
    let output = service.pario().args(arguments).output().expect("pario");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "pario {arguments:?}:\n{text}{errors}"
    );
    text
}

#[test]
fn seed004_s37_a_server_is_drained_while_clients_read_and_write_and_then_stopped() {
    let mut random = seeded(6);
    let mut service = ServiceOptions::new(3).start();
    let client = service.client();
    let bytes = random.bytes(3_000_000);
    let how = OpenOptions::new().read().write().exclusive();
    let file = client
        .open("/file", &how.layout("striped(10000) over 3"))
        .expect("a new file");
    file.write_at(0, &bytes).expect("written");
    let drained = service.server_id(1);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut random = Random::of_run(9777);
            let mut buffer = vec![0; 20_000];
            let mut reads = 0;
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) || reads == 0 {
                let at = random.index(bytes.len() - buffer.len());
                let n = file.read_at(at as u64, &mut buffer).expect("read");
                assert_bytes(&buffer[..n], &bytes[at..at + n], "while it moves");
                file.write_at(at as u64, &bytes[at..at + 500])
                    .expect("written");
                reads += 1;
            }
        });
        let text = said(&service, &["drain", &drained.0.to_string()]);
        assert!(text.contains("holds nothing and can be stopped"), "{text}");
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        reader.join().expect("a reader");
    });
    let left = client.subfiles(drained).expect("subfiles");
    assert!(left.is_empty(), "{left:?}");
    let now = client.layout("/file").expect("a layout");
    assert_ne!(now.state.owner.server, drained.0);
    // A handle hears of it with its next access at the latest.
    let n = file.read_at(0, &mut [0; 10]).expect("read");
    assert_eq!(
        (n, file.layout().owner.server),
        (10, now.state.owner.server)
    );
    service.io(1).end();
    assert_bytes(&contents(&client, "/file"), &bytes, "without the server");
    file.write_at(5, &bytes[5..100]).expect("written");
    // New files do not miss it.
    let new = OpenOptions::new().read().write().create();
    let other = client.open("/other", &new).expect("a new file");
    other.write_at(0, &bytes[..100_000]).expect("written");
    assert_bytes(
        &contents(&client, "/other"),
        &bytes[..100_000],
        "a new file",
    );
}

#[test]
fn seed004_s82_the_administrator_lists_what_there_is_and_moves_parts_and_data_stay_identical() {
    let mut random = seeded(7);
    let mut service = ServiceOptions::new(2).disk().start();
    let client = service.client();
    let files: Vec<(String, Vec<u8>)> = (0..4)
        .map(|i| {
            let path = format!("/file-{i}");
            let bytes = random.bytes(400_000 + i * 7777);
            let how = OpenOptions::new().read().write().exclusive();
            let layout = "striped(4000) over 4";
            let file = client.open(&path, &how.layout(layout)).expect("a new file");
            file.write_at(0, &bytes).expect("written");
            file.close().expect("closed");
            (path, bytes)
        })
        .collect();
    let compare = |what: &str| {
        for (path, bytes) in &files {
            assert_bytes(&contents(&client, path), bytes, &format!("{path} {what}"));
        }
    };
    // Servers with their disks and what they hold, files, and where their parts are.
    let status = said(&service, &["status"]);
    assert_eq!(status.matches(" disk ").count(), 2, "{status}");
    let listed = said(&service, &["ls", "/"]);
    assert!(
        files.iter().all(|(path, _)| listed.contains(&path[1..])),
        "{listed}"
    );
    let shown = said(&service, &["layout", "/file-0", "--json"]);
    assert!(shown.contains("striped(4000) over 4"), "{shown}");
    // A part of one file goes where it is told to, and nothing else moves.
    let third = service.add_io();
    let third = service.server_id(third);
    let trial = said(&service, &["rebalance", "--dry-run"]);
    assert!(trial.contains(&format!("to server {}", third.0)), "{trial}");
    assert!(
        client.subfiles(third).expect("subfiles").is_empty(),
        "only a trial"
    );
    compare("before");
    let text = said(&service, &["rebalance", "/file-1"]);
    assert!(text.contains("/file-1 moved subfile"), "{text}");
    let there = client.subfiles(third).expect("subfiles");
    let ids: Vec<_> = there.iter().map(|s| s.file).collect();
    let one = client.stat("/file-1").expect("stat").file;
    assert!(
        !ids.is_empty() && ids.iter().all(|f| *f == one),
        "{there:?}"
    );
    compare("after one was evened out");
    said(&service, &["rebalance"]);
    let count = |server| client.subfiles(server).expect("subfiles").len();
    // What has moved is removed a little later.
    until("equal shares", || {
        let counts: Vec<usize> = (0..3).map(|i| count(service.server_id(i))).collect();
        counts.iter().sum::<usize>() == 16 && counts.iter().all(|n| (4..=7).contains(n))
    });
    compare("after all were");
    let again = said(&service, &["rebalance"]);
    assert!(again.contains("equal shares already"), "{again}");
    until("no move", || client.moves().expect("moves").is_empty());
}
