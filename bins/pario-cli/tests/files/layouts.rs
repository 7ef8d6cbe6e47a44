//! Layouts of stored files: creating, showing, keeping and changing them. Bytes are the same in every
//! layout, which each test compares.

use std::fs;

use serde_json::json;

use crate::{Service, pattern};

const MATRIX: usize = 64 * 48 * 8;

#[test]
fn files_are_created_with_array_and_layout() {
    let service = Service::start();
    let layout = "(block, block) onto 2x2";
    service.silent(&["create", "/m", "--array", "f64[64,48]", "--layout", layout]);
    let facts = service.json_of(&["layout", "/m", "--json"]);
    assert_eq!(
        (&facts["array"], &facts["layout"]),
        (&json!("f64[64,48]"), &json!(layout))
    );
    assert_eq!(
        (&facts["size"], &facts["generation"]),
        (&json!(0), &json!(1))
    );
    let bytes = pattern(MATRIX, 5);
    service.write("m", &bytes);
    service.silent(&["put", "m", "/m"]);
    let facts = service.json_of(&["layout", "/m", "--json"]);
    assert_eq!(facts["layout"], layout, "put keeps the layout");
    let subfiles = facts["subfiles"].as_array().expect("subfiles");
    assert_eq!(subfiles.len(), 4);
    for (k, subfile) in subfiles.iter().enumerate() {
        assert_eq!(
            (&subfile["subfile"], &subfile["bytes"]),
            (&json!(k), &json!(MATRIX / 4))
        );
        assert_eq!(
            (&subfile["lost"], &subfile["state"]),
            (&json!(false), &json!("alive"))
        );
        assert!(subfile["server"].is_u64() && subfile["incarnation"].is_u64());
        assert!(
            subfile["address"]
                .as_str()
                .is_some_and(|a| a.starts_with("unix:"))
        );
    }
    let text = service.text_of(&["layout", "/m"]);
    for word in [
        "layout     (block, block) onto 2x2\n",
        "chosen     given by its creator\n",
        "24 KiB in 4 subfiles",
        "25.0%",
        "alive",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let one = service.text_of(&["layout", "m", "--element", "2", "--svg", "m.svg"]);
    assert!(one.contains("\n        2 ") || one.contains(" 2 "), "{one}");
    assert!(
        fs::read_to_string(service.local("m.svg"))
            .expect("drawn")
            .contains("</svg>")
    );
    service.refused(
        &["layout", "/m", "--element", "4"],
        &["no subfile 4", "0 to 3"],
    );
    service.refused(&["layout", "/"], &["directory"]);

    let plan = service.json_of(&[
        "explain",
        "/m",
        "--view",
        "(block, block) onto 2x2",
        "--json",
    ]);
    assert!(
        plan.to_string().contains("(block, block) onto 2x2"),
        "{plan}"
    );
    assert!(service.bytes_of(&["cat", "/m"]) == bytes);
}

#[test]
fn what_is_there_keeps_its_layout() {
    let service = Service::start();
    let (long, short) = (pattern(100_000, 1), pattern(60_000, 2));
    service.write("long", &long);
    service.write("short", &short);
    service.silent(&["put", "long", "/f", "--layout", "striped(1000) over 2"]);
    service.silent(&["put", "short", "/f"]);
    assert!(
        service.bytes_of(&["cat", "/f"]) == short,
        "nothing of the old bytes is left"
    );
    service.silent(&["put", "long", "/f", "--layout", "striped( 1000 ) over 2"]);
    let facts = service.json_of(&["stat", "/f", "--json"]);
    assert_eq!(facts["layout"], "striped(1000) over 2");

    // Asking for something else changes nothing.
    let other = ["put", "short", "/f", "--layout", "striped(1000) over 3"];
    service.refused(
        &other,
        &["striped(1000) over 2", "keeps it", "pario relayout"],
    );
    let other = ["put", "short", "/f", "--array", "u8[60000]"];
    service.refused(&other, &["plain bytes", "leave --array away"]);
    let other = ["create", "/f", "--layout", "striped(1000) over 3"];
    service.refused(&other, &["keeps it"]);
    service.refused(&["create", "/f", "--exclusive"], &["/f: exists", "; "]);
    service.silent(&["create", "/f"]);
    assert!(service.bytes_of(&["cat", "/f"]) == long);

    // Sizes grow and are never cut.
    service.silent(&["create", "/f", "--size", "1000"]);
    assert_eq!(service.json_of(&["stat", "/f", "--json"])["size"], 100_000);
    let facts = service.json_of(&["create", "/new", "--size", "1MiB", "--json"]);
    assert_eq!(
        (&facts["created"], &facts["size"]),
        (&json!(true), &json!(1 << 20))
    );
    assert!(service.bytes_of(&["cat", "/new"]) == vec![0; 1 << 20]);
}

#[test]
fn another_layout_keeps_the_bytes() {
    let service = Service::start();
    let bytes = pattern(1024 * 1024 * 8, 9);
    service.write("m", &bytes);
    let first = ["--array", "f64[1024,1024]", "--layout", "(block, *) onto 3"];
    service.silent(&[&["put", "m", "/m"], &first[..]].concat());
    for (generation, layout) in [
        (2, "(*, block) onto 3"),
        (3, "(cyclic(7), block) onto 3x1"),
        (4, "(block, *) onto 2"),
    ] {
        let facts = service.json_of(&["relayout", "/m", "--layout", layout, "--json"]);
        assert_eq!(
            (&facts["to"], &facts["bytes"]),
            (&json!(layout), &json!(bytes.len()))
        );
        assert_eq!(facts["generation"], generation);
        assert!(service.bytes_of(&["cat", "/m"]) == bytes, "{layout}");
        let shown = service.json_of(&["layout", "/m", "--json"]);
        assert_eq!(
            (&shown["layout"], &shown["generations"]),
            (&json!(layout), &json!([generation]))
        );
    }
    let text = service.text_of(&["relayout", "/m", "--layout", "(block, *) onto 3"]);
    assert!(
        text.starts_with("/m: (block, *) onto 2 -> (block, *) onto 3, 8 MiB in "),
        "{text}"
    );

    service.refused(
        &["relayout", "/m", "--layout", "(block) onto 3"],
        &["--layout", "(block) onto 3"],
    );
    service.refused(
        &["relayout", "/m", "--layout", "slice[0:2, 0:2]"],
        &["--layout", "is a view"],
    );
    service.refused(
        &["relayout", "/", "--layout", "striped(1) over 2"],
        &["directory"],
    );
    service.refused(
        &["relayout", "/no", "--layout", "striped(1) over 2"],
        &["no such"],
    );
    assert!(service.bytes_of(&["cat", "/m"]) == bytes);
}

#[test]
fn space_is_summed_by_directory() {
    let service = Service::start();
    service.silent(&["mkdir", "-p", "/d/e"]);
    service.write("a", &pattern(300_000, 1));
    service.write("b", &pattern(5_000, 1));
    service.silent(&["put", "a", "/d/a"]);
    service.silent(&["put", "b", "/d/e/b"]);
    let rows = service.json_of(&["du", "--json"]);
    let rows = rows["rows"].as_array().expect("rows");
    let sizes: Vec<(&str, u64)> = rows
        .iter()
        .map(|row| {
            (
                row["path"].as_str().expect("a path"),
                row["size_bytes"].as_u64().expect("a size"),
            )
        })
        .collect();
    assert_eq!(sizes, [("/d/e", 5_000), ("/d", 305_000), ("/", 305_000)]);
    for row in rows {
        assert!(
            row["allocated_bytes"].as_u64() >= row["size_bytes"].as_u64(),
            "{row}"
        );
    }
    let text = service.text_of(&["du", "-s", "-b", "/d"]);
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0], ["allocated", "size", "path"]);
    assert_eq!((lines.len(), lines[1][1], lines[1][2]), (2, "305000", "/d"));
    assert_eq!(service.text_of(&["du", "-a", "/d"]).lines().count(), 5);
    service.refused(&["du", "/nothing"], &["no such"]);
}

#[test]
fn bytes_that_do_not_fill_the_array_are_noted() {
    let service = Service::start();
    service.write("in", &pattern(1000, 3));
    for (array, is_noted) in [("f64[5,5]", false), ("f64[10,10]", true), ("f64[3]", true)] {
        let target = format!("/{}", array.len());
        let mut put = service.pario(&["put", "in", &target, "--array", array]);
        let output = put.output().expect("it runs");
        assert!(output.status.success());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            said.contains("the array takes"),
            is_noted,
            "{array}: {said}"
        );
    }
}

#[test]
fn lost_bytes_are_shown_and_can_be_stored_again() {
    let service = Service::start();
    let bytes = pattern(300_000, 7);
    service.write("in", &bytes);
    service.silent(&["put", "in", "/f", "--layout", "striped(1000) over 3"]);
    let state = fs::read_to_string(service.dir.join("service/service.json")).expect("there");
    let state: serde_json::Value = serde_json::from_str(&state).expect("JSON");
    let pid = state["servers"][1]["pid"].as_i64().expect("a number") as i32;
    let signal = |pid: i32, signal| {
        let pid = rustix::process::Pid::from_raw(pid).expect("a process");
        rustix::process::kill_process(pid, signal).expect("there");
    };
    // With its keeper, which has its memory; it would start another one.
    signal(pid, rustix::process::Signal::STOP);
    let look = || keeper::look(&service.dir.join("service/memory-1"));
    let keeper = look().expect("a keeper");
    signal(keeper.process as i32, rustix::process::Signal::KILL);
    while look().is_ok() {
        std::thread::yield_now();
    }
    signal(pid, rustix::process::Signal::KILL);

    // The service notices by itself, and starts another.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let lost = loop {
        let facts = service.json_of(&["layout", "/f", "--json"]);
        let subfiles = facts["subfiles"].as_array().expect("subfiles").clone();
        let lost: Vec<serde_json::Value> =
            subfiles.into_iter().filter(|s| s["lost"] == true).collect();
        let members = service.json_of(&["status", "--json"]);
        let servers = members["servers"].as_array().expect("servers");
        if !lost.is_empty() && servers.iter().all(|s| s["state"] == "alive") {
            break lost;
        }
        assert!(std::time::Instant::now() < deadline, "{facts} {members}");
    };
    assert_eq!((lost.len(), &lost[0]["bytes"]), (1, &json!(100_000)));
    assert_eq!(lost[0]["state"], "lost");
    let text = service.text_of(&["layout", "/f"]);
    assert!(text.contains("97.7 KiB of the file are lost"), "{text}");
    service.refused(&["cat", "/f"], &["died", "; "]);
    // What it was to replace is still there.
    service.write("keep", b"precious");
    service.refused(&["get", "/f", "keep"], &["died", "; "]);
    assert_eq!(service.read("keep"), b"precious");
    let left = fs::read_dir(service.local("")).expect("there");
    let is_part = |e: fs::DirEntry| e.file_name().to_string_lossy().contains(".part-");
    assert!(!left.flatten().any(is_part), "nothing half done stays");

    // The same layout, other places.
    service.silent(&["put", "in", "/f"]);
    assert!(service.bytes_of(&["cat", "/f"]) == bytes);
    let facts = service.json_of(&["layout", "/f", "--json"]);
    assert_eq!(facts["layout"], "striped(1000) over 3");
    let any_lost = |s: &serde_json::Value| s["lost"] == true;
    assert!(
        !facts["subfiles"]
            .as_array()
            .expect("subfiles")
            .iter()
            .any(any_lost)
    );
}

/// Which distribution a file has, and why, is kept with it and shown.
#[test]
fn the_distribution_of_a_file_is_shown_with_its_reason() {
    let service = Service::start();
    service.silent(&["create", "/plain"]);
    let facts = service.json_of(&["layout", "/plain", "--json"]);
    let why = facts["distribution"].as_str().expect("a text").to_owned();
    assert!(
        why.starts_with("by rule: nothing known of its use"),
        "{why}"
    );
    let stat = service.text_of(&["stat", "/plain"]);
    assert!(stat.contains(&format!("chosen     {why}\n")), "{stat}");
    service.json_of(&["relayout", "/plain", "--layout", "whole", "--json"]);
    let facts = service.json_of(&["stat", "/plain", "--json"]);
    assert_eq!(facts["distribution"], "given by a re-layout");
}
