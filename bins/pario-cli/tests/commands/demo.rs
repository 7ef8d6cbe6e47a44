//! The demo of the service, with small matrices.
//!
//! It checks every byte itself and ends with a failure if one is wrong; here it is seen that it runs, and
//! leaves nothing behind.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::{json_line, pario, run};

#[test]
fn the_demo_writes_reads_and_prints_the_tables() {
    let output = run(&[
        "demo", "service", "--side", "50", "--tables", "16,33", "--repeat", "2",
    ]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(text.matches("every byte right").count(), 4, "{text}");
    assert!(text.ends_with("All processes have ended.\n"), "{text}");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.contains(" r | "))
        .map(|line| line.split_whitespace().filter(|w| *w != "|").collect())
        .collect();
    let heads: Vec<[&str; 3]> = rows.iter().map(|row| [row[0], row[1], row[7]]).collect();
    // Contention as in the paper: all, half, one. Of 33 rows one block lies in both halves.
    let expected = [
        ["16", "c", "4.0"],
        ["16", "b", "2.0"],
        ["16", "r", "1.0"],
        ["33", "c", "4.0"],
        ["33", "b", "2.5"],
        ["33", "r", "1.0"],
    ];
    assert_eq!(heads, expected, "{text}");
}

#[test]
fn a_process_of_the_demo_finds_wrong_bytes() {
    let dir = crate::scratch_file("demo-worker");
    let _ = std::fs::remove_dir_all(&dir);
    let url = format!("dir:{}", dir.display());
    let mut child = pario()
        .args(["demo", "worker", "--service", &url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("pario starts");
    let mut input = child.stdin.take().expect("a pipe");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut tell = |what: &str, cut: &str, rank: u64| {
        let order = serde_json::json!({ "do": what, "path": "/m", "array": "f64[8,8]",
            "layout": "(block, block) onto 2x2", "cut": cut, "rank": rank });
        writeln!(input, "{order}").expect("sent");
        let mut line = String::new();
        output.read_line(&mut line).expect("an answer");
        json_line(&line)
    };
    assert_eq!(tell("write", "r", 0)["wrong"], 0);
    assert_eq!(tell("read", "r", 0)["wrong"], 0);
    // Nobody has written the rest of the columns.
    let wrong = tell("read", "c", 1)["wrong"].as_u64().expect("a number");
    assert!((90..=96).contains(&wrong), "{wrong}");
    assert!(tell("dance", "c", 1)["error"].is_string());
    assert!(tell("read", "x", 1)["error"].is_string());
    drop(input);
    assert!(child.wait().expect("it ends").success());
}
