//! What administrators do is on record, done or refused, and what users do is not.
//! The form of the lines is in the tests of `serving`; where records are is looked at here.

use serde_json::{Value, json};

use crate::scratch::{Scratch, connect};

/// The lines of a record.
#[track_caller]
fn lines(scratch: &Scratch, path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(scratch.path(path)).unwrap_or_default();
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    text.lines().map(read).collect()
}

fn actions(lines: &[Value]) -> Vec<&str> {
    lines
        .iter()
        .filter_map(|line| line["action"].as_str())
        .collect()
}

#[test]
fn administrative_actions_are_on_record() {
    const RECORD: &str = ".pario/audit.jsonl";
    let scratch = Scratch::new("audit");
    let up = scratch.up(&["--servers", "2", "--store", "memory", "--memory", "64MiB"]);
    std::fs::write(scratch.path("source"), vec![7; 70_000]).expect("written");
    scratch.text(&["mkdir", "/results"]);
    scratch.text(&[
        "put",
        "-q",
        "source",
        "/file",
        "--layout",
        "striped(1KiB) over 2",
    ]);
    scratch.text(&["hint", "/file", "access_style=sequential"]);
    assert_eq!(
        lines(&scratch, RECORD),
        Vec::<Value>::new(),
        "that is what users do"
    );

    scratch.text(&["hint", "/results", "access_style=sequential"]);
    scratch.text(&["relayout", "/file", "--layout", "striped(2KiB) over 2"]);
    scratch.text(&["drain", "1"]);
    scratch.text(&["drain", "1", "--undo"]);
    scratch.text(&["rebalance", "--dry-run"]);
    scratch.text(&["rebalance"]);
    scratch.text(&["get", "-q", "/file", "part", "--subfile", "0"]);
    let refusal = scratch.refused(&["drain", "77"]);
    let told = lines(&scratch, RECORD);
    let expected = [
        "hint",
        "relayout",
        "drain",
        "drain_over",
        "rebalance",
        "read_subfile",
        "drain",
    ];
    assert_eq!(actions(&told), expected);
    let user = u64::from(rustix::process::geteuid().as_raw());
    for line in &told {
        assert_eq!(line["version"], json!(1), "{line}");
        assert_eq!(line["by"], json!("manager"), "{line}");
        assert_eq!(line["process"], up["meta"]["pid"], "{line}");
        assert_eq!(line["user"], json!(user), "{line}");
        assert!(line["client"].is_u64(), "{line}");
    }
    assert!(
        told[..6]
            .iter()
            .all(|line| line["outcome"] == json!("done"))
    );
    let hint = json!({ "path": "/results", "set": { "access_style": "sequential" }, "unset": [] });
    assert_eq!(told[0]["arguments"], hint);
    assert_eq!(told[2]["arguments"], json!({ "server": 1 }));
    assert_eq!(
        told[5]["arguments"],
        json!({ "path": "/file", "subfile": 0 })
    );
    assert_eq!(told[6]["outcome"], json!("refused"));
    let why = told[6]["why"].as_str().expect("why");
    assert!(refusal.contains(why), "{refusal}: {why}");

    // Each server by itself, and all by one command.
    let client = connect(up["url"].as_str().expect("a URL"));
    client.clear_failed(client::ServerId(0)).expect("done");
    drop(client);
    let before = lines(&scratch, RECORD).len();
    scratch.text(&["down"]);
    let told = lines(&scratch, RECORD);
    assert_eq!(actions(&told[7..before]), ["clear_failed", "clear_failed"]);
    let by: Vec<&Value> = told[7..before].iter().map(|line| &line["by"]).collect();
    assert!(
        by.contains(&&json!("manager")) && by.contains(&&json!("server 0")),
        "{by:?}"
    );
    assert_eq!(actions(&told[before..]), ["shutdown"]);
}

#[test]
fn records_of_single_servers_are_where_they_are_told() {
    let scratch = Scratch::new("audit-one");
    let refusal = scratch.refused(&["serve", "meta", "--dir", "meta", "--audit", "none/record"]);
    assert!(refusal.contains("--audit none/record: "), "{refusal}");
    assert!(
        !scratch.path("meta").exists(),
        "nothing is made before that is known"
    );
    let (_meta, url) = scratch.serve(&["meta", "--dir", "meta"]);
    let place = [
        "io",
        "--meta",
        &url,
        "--listen",
        "unix:io.sock",
        "--state",
        "state",
    ];
    let serve = |more: &[&str]| {
        let store = ["--disk", "a", "--disk", "b", "--audit", "record"];
        scratch.serve(&[&place[..], &store, more].concat()).0
    };
    serve(&[]).terminate();
    let table = scratch.path("b");
    std::fs::rename(&table, scratch.path("elsewhere")).expect("moved");
    std::fs::create_dir(&table).expect("made");
    let server = serve(&[]);
    let errors = crate::scratch::wait_until("the disk is missed", || {
        let errors = server.errors();
        errors.contains("--forget-disk ").then_some(errors)
    });
    let (_, rest) = errors.split_once("--forget-disk ").expect("there");
    let disk: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    drop(server);
    let mut server = serve(&["--forget-disk", &disk]);
    let told = lines(&scratch, "record");
    assert_eq!(actions(&told), ["forget_disk"]);
    assert_eq!(told[0]["arguments"], json!({ "disk": disk }));
    assert_eq!(told[0]["client"], Value::Null);
    server.terminate();

    // The record of an authority is beside it.
    scratch.text(&["cert", "authority", "--dir", "ca"]);
    scratch.text(&[
        "cert",
        "server",
        "--authority",
        "ca",
        "node1",
        "--out",
        "node1",
    ]);
    scratch.text(&["cert", "renew", "--authority", "ca", "node1/server.pem"]);
    let told = lines(&scratch, "ca/audit.jsonl");
    assert_eq!(actions(&told), ["make_authority", "sign_server", "renew"]);
    assert!(told.iter().all(|line| line["by"] == json!("command")));
}
