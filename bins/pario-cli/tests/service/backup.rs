//! The catalogue lost and restored: what is there again, what changed since the backup and is told, and what can be mended.
//! Forms and damage of the file byte by byte are in the tests of `meta`.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use client::{Client, OpenOptions, ServerId};
use serde_json::Value;

use crate::scratch::{Scratch, connect, wait_until};

fn put(client: &Client, path: &str, bytes: &[u8]) {
    let options = OpenOptions::new().read().write().create();
    let file = client.open(path, &options).expect("opened");
    assert_eq!(file.write_at(0, bytes).expect("written"), bytes.len());
    file.sync().expect("synced");
    file.close().expect("closed");
}

#[track_caller]
fn get(client: &Client, path: &str) -> Vec<u8> {
    let file = client.open(path, &OpenOptions::new().read()).expect(path);
    let mut bytes = vec![0; file.size().expect("a size") as usize];
    assert_eq!(file.read_at(0, &mut bytes).expect("read"), bytes.len());
    bytes
}

/// What the doctor finds, however it ends.
#[track_caller]
fn examined(scratch: &Scratch, more: &[&str]) -> Value {
    examined_at(scratch, &[], more)
}

#[track_caller]
fn examined_at(scratch: &Scratch, service: &[&str], more: &[&str]) -> Value {
    let mut command = scratch.pario(&[service, &["doctor", "--json"], more].concat());
    let output = command.output().expect("pario starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text} {}", String::from_utf8_lossy(&output.stderr)))
}

#[track_caller]
fn of_kind(report: &Value, kind: &str) -> Vec<Value> {
    let findings = report["findings"].as_array().expect("findings");
    let mut found = findings
        .iter()
        .filter(|f| f["kind"] == kind)
        .cloned()
        .collect::<Vec<_>>();
    found.sort_by_key(|f| f["what"].to_string());
    found
}

fn files_of(client: &Client, servers: u64) -> usize {
    (0..servers)
        .map(|server| client.subfiles(ServerId(server)).expect("listed").len())
        .sum()
}

#[test]
fn lost_catalogue_comes_back_and_what_changed_since_is_told_and_mended() {
    let scratch = Scratch::new("backup");
    let url = |up: Value| up["url"].as_str().expect("a URL").to_owned();
    let up = || connect(&url(scratch.up(&["--servers", "2"])));
    let client = up();
    client.mkdir("/d", None).expect("made");
    for path in [
        "/kept",
        "/changed",
        "/grown",
        "/removed",
        "/moved",
        "/d/renamed",
    ] {
        put(&client, path, path.repeat(1000).as_bytes());
    }
    scratch.text(&["hint", "/d", "access_style=sequential"]);

    // While others change the catalogue.
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let change = scope.spawn(|| {
            let mut count = 0;
            while !is_over.load(Ordering::SeqCst) {
                let path = format!("/d/{count}");
                client.create(&path, &OpenOptions::new()).expect("made");
                client.unlink(&path).expect("removed");
                count += 1;
            }
            count
        });
        let told = scratch.json(&["backup", "saved", "--json"]);
        assert_eq!(told["directories"], 2);
        is_over.store(true, Ordering::SeqCst);
        assert!(change.join().expect("no panic") > 0);
    });
    let refusal = scratch.refused(&["backup", "saved"]);
    assert!(refusal.contains("writes over nothing"), "{refusal}");
    let text = scratch.text(&["backup", "--check", "saved"]);
    assert!(text.contains("2 directories"), "{text}");
    assert!(!scratch.path("saved.part").exists());
    let mut damaged = fs::read(scratch.path("saved")).expect("read");
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(scratch.path("damaged"), damaged).expect("written");
    let refusal = scratch.refused(&["backup", "--check", "damaged"]);
    assert!(refusal.contains("does not fit its checksum"), "{refusal}");

    // Since then.
    put(&client, "/changed", &b"new".repeat(1000));
    put(&client, "/grown", &b"longer".repeat(100_000));
    put(&client, "/new", &b"new".repeat(50_000));
    client.rename("/d/renamed", "/d/other").expect("renamed");
    scratch.text(&["relayout", "/moved", "--layout", "striped(64KiB) over 2"]);
    client.unlink("/removed").expect("removed");
    wait_until("what was removed is gone", || {
        (client.counts().expect("counted").removals == 0).then_some(())
    });
    let there = files_of(&client, 2);
    drop(client);
    let refusal = scratch.refused(&["restore", "saved"]);
    assert!(refusal.contains("stop it first"), "{refusal}");
    scratch.text(&["down"]);
    let refusal = scratch.refused(&["restore", "saved"]);
    assert!(refusal.contains("nothing was changed"), "{refusal}");
    // Servers are started once more, so they know more than the backup.
    drop(up());
    scratch.text(&["down"]);

    fs::remove_dir_all(scratch.path(".pario/meta")).expect("lost");
    let refusal = scratch.refused(&["restore", "damaged"]);
    assert!(refusal.contains("damaged: "), "{refusal}");
    let text = scratch.text(&["restore", "saved"]);
    assert!(text.contains("pario doctor"), "{text}");

    let client = up();
    assert_eq!(get(&client, "/kept"), "/kept".repeat(1000).as_bytes());
    assert_eq!(
        get(&client, "/d/renamed"),
        "/d/renamed".repeat(1000).as_bytes()
    );
    assert!(get(&client, "/changed").starts_with(b"newnewnew"));
    // The owner of a file asks its servers how far it goes.
    assert_eq!(get(&client, "/grown"), b"longer".repeat(100_000));
    let hints = scratch.text(&["hint", "/d"]);
    assert!(hints.contains("access_style"), "{hints}");

    let report = examined(&scratch, &[]);
    let changed = of_kind(&report, "changed");
    let told: Vec<&str> = changed.iter().filter_map(|f| f["what"].as_str()).collect();
    assert_eq!(told.len(), 2, "{report:#}");
    assert!(
        told[0].starts_with("/moved ") && told[1].starts_with("/removed "),
        "{told:?}"
    );
    let orphans = of_kind(&report, "orphan");
    assert!(!orphans.is_empty(), "{report:#}");
    assert!(
        orphans.iter().all(|f| f["repair"]["state"] == "possible"),
        "{report:#}"
    );
    let kinds = ["changed", "orphan"].map(|kind| of_kind(&report, kind).len());
    let all = report["findings"].as_array().expect("findings").len();
    assert_eq!(all, kinds.iter().sum::<usize>(), "{report:#}");
    assert_eq!(files_of(&client, 2), there, "the doctor changes nothing");

    // A new file has nothing of what was made after the backup.
    put(&client, "/another", b"a");
    let file = client
        .open("/another", &OpenOptions::new().read().write())
        .expect("opened");
    file.resize(200_000).expect("resized");
    file.close().expect("closed");
    let bytes = get(&client, "/another");
    assert!(bytes[1..].iter().all(|&byte| byte == 0));
    client.unlink("/another").expect("removed");

    let report = examined(&scratch, &["--repair"]);
    for orphan in of_kind(&report, "orphan") {
        assert_eq!(orphan["repair"]["state"], "done", "{report:#}");
        for place in orphan["repair"]["places"].as_array().expect("places") {
            let place = place.as_str().expect("a path");
            assert!(
                place.contains("quarantine") && fs::metadata(place).is_ok(),
                "{place}"
            );
        }
    }
    let report = examined(&scratch, &[]);
    assert!(of_kind(&report, "orphan").is_empty(), "{report:#}");
    assert!(!of_kind(&report, "aside").is_empty(), "{report:#}");
    let record = fs::read_to_string(scratch.path(".pario/audit.jsonl")).expect("a record");
    for action in ["\"backup\"", "\"discard\"", "\"restore\""] {
        assert!(
            record.contains(&format!("\"action\":{action}")),
            "{action}: {record}"
        );
    }
    for path in ["/removed", "/moved"] {
        client.unlink(path).expect("removed");
    }
    put(&client, "/removed", b"again");
    assert_eq!(get(&client, "/removed"), b"again");
}

#[test]
fn orphans_are_removed_by_the_word_of_the_operator() {
    let scratch = Scratch::new("orphans");
    let place = ["--servers", "1", "--store", "memory", "--memory", "64MiB"];
    let up = scratch.up(&place);
    let client = connect(up["url"].as_str().expect("a URL"));
    scratch.text(&["backup", "saved"]);
    put(&client, "/new", &b"new".repeat(1000));
    let subfile = client.subfiles(ServerId(0)).expect("listed")[0].clone();
    let name = client::SubfileName {
        file: subfile.file,
        generation: subfile.generation,
        index: subfile.index,
    };
    // What a file has is no orphan, also if an operator says so.
    let refused = [
        client
            .remove_subfile(ServerId(0), name)
            .expect_err("refused"),
        client.put_aside(ServerId(0), name).expect_err("refused"),
    ];
    for error in refused {
        assert!(error.to_string().contains("belongs to a file"), "{error}");
    }
    drop(client);

    // The manager alone comes back from the backup; the memory of the server stays with its keeper.
    let (meta, url) = scratch.serve(&["meta", "--dir", "meta"]);
    let io = [
        "io", "--meta", &url, "--state", "state", "--memory", "64MiB",
    ];
    let (mut server, _) = scratch.serve(&io);
    scratch.text(&["--url", &url, "backup", "before"]);
    let client = connect(&url);
    put(&client, "/new", &b"new".repeat(1000));
    drop(client);
    drop(meta);
    fs::remove_dir_all(scratch.path("meta")).expect("lost");
    scratch.text(&["restore", "before", "--meta", "meta"]);
    let (_meta, url) = scratch.serve(&["meta", "--dir", "meta"]);
    server.kill();
    let (_server, _) = scratch.serve(&io);
    let doctor = |more: &[&str]| examined_at(&scratch, &["--url", &url], more);
    let report = doctor(&["--repair"]);
    let orphan = &of_kind(&report, "orphan")[0];
    assert_eq!(orphan["repair"]["state"], "failed", "{report:#}");
    let why = orphan["repair"]["why"].as_str().expect("why");
    assert!(why.contains("--remove"), "{why}");
    let report = doctor(&["--repair", "--remove"]);
    assert_eq!(
        of_kind(&report, "orphan")[0]["repair"]["state"],
        "done",
        "{report:#}"
    );
    assert_eq!(doctor(&[])["is_well"], true);
    assert!(
        connect(&url)
            .subfiles(ServerId(0))
            .expect("listed")
            .is_empty()
    );
}
