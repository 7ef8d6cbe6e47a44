//! Moves as their users see them: followed, detached, paused, limited, cancelled; servers drained and evened
//! out.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{Service, pattern};

/// A file of 4 MiB in rows on three servers.
fn stored(service: &Service) -> Vec<u8> {
    let bytes = pattern(4 << 20, 5);
    service.write("m", &bytes);
    service.silent(&[
        "put",
        "m",
        "/m",
        "--array",
        "u8[1024,4096]",
        "--layout",
        "(block, *) onto 3",
    ]);
    bytes
}

/// Begins a move that takes a while.
fn begin_slowly(service: &Service) -> Value {
    service.json_of(&[
        "relayout",
        "/m",
        "--layout",
        "(*, block) onto 3",
        "--limit",
        "200KiB/s",
        "--detach",
        "--json",
    ])
}

#[test]
fn a_move_is_paused_limited_and_followed() {
    let service = Service::start();
    let bytes = stored(&service);
    service.refused(&["relayout", "/m", "--status"], &["/m", "not been moved"]);
    let begun = begin_slowly(&service);
    assert_eq!(begun["state"], "moving");
    assert_eq!(begun["limit_bytes"], 200 << 10);
    assert_eq!(begun["total_bytes"], bytes.len());
    let text = service.text_of(&["relayout", "/m", "--pause"]);
    assert!(text.starts_with("/m: paused, "), "{text}");
    let status = service.json_of(&["status", "--json"]);
    assert_eq!(status["moves"][0]["path"], "/m");
    assert_eq!(status["moves"][0]["state"], "paused");
    let text = service.text_of(&["status"]);
    assert!(text.contains("moves     /m: paused"), "{text}");
    assert!(service.bytes_of(&["cat", "/m"]) == bytes, "while it rests");
    let limited = service.json_of(&["relayout", "/m", "--limit", "none", "--json"]);
    assert_eq!(
        (&limited["state"], &limited["limit_bytes"]),
        (&json!("paused"), &Value::Null)
    );
    let text = service.text_of(&["relayout", "/m", "--resume"]);
    assert!(text.starts_with("/m: done"), "{text}");
    let text = service.text_of(&["relayout", "/m", "--status"]);
    assert!(text.starts_with("/m: done"), "{text}");
    assert!(service.bytes_of(&["cat", "/m"]) == bytes);
    let shown = service.json_of(&["layout", "/m", "--json"]);
    assert_eq!(shown["layout"], "(*, block) onto 3");
}

#[test]
fn a_cancelled_move_brings_everything_back() {
    let service = Service::start();
    let bytes = stored(&service);
    begin_slowly(&service);
    // With the limit it takes 20 s: it is under way whenever this comes, and held back before it may go faster.
    let text = service.text_of(&["relayout", "/m", "--cancel", "--limit", "none"]);
    assert!(text.starts_with("/m: cancelled"), "{text}");
    assert!(service.bytes_of(&["cat", "/m"]) == bytes);
    let shown = service.json_of(&["layout", "/m", "--json"]);
    assert_eq!(shown["layout"], "(block, *) onto 3");
    assert_eq!(service.json_of(&["status", "--json"])["moves"], json!([]));
    for flag in ["--pause", "--resume", "--limit=1MiB"] {
        service.refused(
            &["relayout", "/m", flag],
            &["/m", "over already", "cancelled"],
        );
    }
}

#[test]
fn a_move_that_is_paused_with_a_limit_goes_on_with_the_next() {
    let service = Service::start();
    let bytes = stored(&service);
    begin_slowly(&service);
    let paused = service.json_of(&["relayout", "/m", "--limit=none", "--pause", "--json"]);
    assert_eq!(
        (&paused["state"], &paused["limit_bytes"]),
        (&json!("paused"), &Value::Null)
    );
    // It does not run off before it is limited: there is time to cancel it.
    let line = [
        "relayout",
        "/m",
        "--resume",
        "--limit=200KiB",
        "--detach",
        "--json",
    ];
    let resumed = service.json_of(&line);
    assert_eq!(
        (&resumed["state"], &resumed["limit_bytes"]),
        (&json!("moving"), &json!(200 << 10))
    );
    let text = service.text_of(&["relayout", "/m", "--limit=none", "--follow"]);
    assert!(text.starts_with("/m: done"), "{text}");
    assert!(service.bytes_of(&["cat", "/m"]) == bytes);
    service.refused(
        &["relayout", "/m", "--cancel", "--limit=none"],
        &["/m", "over already", "done", "cancelled"],
    );
}

#[test]
fn whoever_is_interrupted_is_told_that_the_move_goes_on() {
    let service = Service::start();
    let bytes = stored(&service);
    let arguments = [
        "relayout",
        "/m",
        "--layout",
        "(*, block) onto 3",
        "--limit",
        "200KiB",
    ];
    let child = service
        .pario(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    // It is asked for soon; each question takes a while.
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let status = service.json_of(&["status", "--json"]);
        if status["moves"].as_array().is_some_and(|m| !m.is_empty()) {
            break;
        }
        assert!(Instant::now() < end, "no move");
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("sent");
    let output = child.wait_with_output().expect("ended");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(
        said.contains("the move of /m goes on") && said.contains("--cancel"),
        "{said}"
    );
    let now = service.json_of(&["relayout", "/m", "--status", "--json"]);
    assert_eq!(now["state"], "moving");
    service.text_of(&["relayout", "/m", "--limit", "none"]);
    let text = service.text_of(&["relayout", "/m", "--follow"]);
    assert!(text.starts_with("/m: done"), "{text}");
    assert!(service.bytes_of(&["cat", "/m"]) == bytes);
}

#[test]
fn a_drained_server_holds_nothing_until_it_takes_part_again() {
    let service = Service::start();
    let bytes = stored(&service);
    let servers = service.json_of(&["status", "--json"]);
    let first = servers["servers"][0]["server"].to_string();
    service.refused(&["drain", "77"], &["77"]);
    let text = service.text_of(&["drain", &first]);
    assert!(text.contains("holds nothing and can be stopped"), "{text}");
    let now = service.json_of(&["drain", &first, "--status", "--json"]);
    assert_eq!(
        (&now["is_draining"], &now["files"]),
        (&json!(true), &json!(0))
    );
    let status = service.json_of(&["status", "--json"]);
    assert_eq!(status["servers"][0]["state"], "draining");
    assert_eq!(status["servers"][0]["counters"]["subfiles"], 0);
    assert!(service.bytes_of(&["cat", "/m"]) == bytes);
    let text = service.text_of(&["drain", &first, "--undo"]);
    assert!(text.contains("takes part"), "{text}");
    let moves = service.json_of(&["rebalance", "--json"]);
    assert_eq!(moves["moves"][0]["to"].to_string(), first, "{moves}");
    assert!(service.bytes_of(&["cat", "/m"]) == bytes);
    let wrong = service
        .pario(&["relayout", "/m", "--pause", "--cancel"])
        .output();
    assert_eq!(wrong.expect("pario starts").status.code(), Some(2));
}
