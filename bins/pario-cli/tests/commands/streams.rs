//! Standard output that is closed or full, and the help texts. A closed pipe ends the program in
//! silence, a full disk with a message.

use std::process::Stdio;

use crate::{pario, run};

/// Runs with a reader that goes away before it has read anything.
fn into_closed_pipe(arguments: &[&str]) -> (Option<i32>, String) {
    let mut child = pario()
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pario starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("pario ends");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    for arguments in [
        &["layout", "chunks(2,2)", "--array", "u8[400,400]", "--json"][..],
        &["layout", "(block, *) onto 4", "--array", "u8[40,40]"],
        &[
            "explain",
            "--from",
            "(block) onto 40",
            "--to",
            "(cyclic) onto 40",
            "--array",
            "u8[40000]",
            "--json",
        ],
        &["--help"],
        &["--version"],
    ] {
        let (code, errors) = into_closed_pipe(arguments);
        assert_eq!((code, errors.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_reported() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("there");
    let output = pario()
        .args(["layout", "(block, *) onto 4", "--array", "u8[8,8]"])
        .stdout(full)
        .output()
        .expect("pario starts");
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.starts_with("pario: cannot write to standard output: "),
        "{errors}"
    );
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn every_command_has_help() {
    for command in [
        &["ls"][..],
        &["stat"],
        &["mkdir"],
        &["mv"],
        &["rm"],
        &["put"],
        &["get"],
        &["cat"],
        &["du"],
        &["punch"],
        &["create"],
        &["relayout"],
        &["layout"],
        &["explain"],
    ] {
        let output = run(&[command, &["--help"]].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{command:?}");
        assert!(text.contains("Usage: pario "), "{command:?}: {text}");
        let is_learned_from =
            text.contains("Examples:\n  pario ") || text.contains("Examples:\n  tar ");
        assert!(is_learned_from, "{command:?}: {text}");
    }
    let text = String::from_utf8(run(&["explain", "--help"]).stdout).expect("text");
    for word in [
        "--from",
        "--to",
        "--view",
        "--array",
        "--json",
        "--svg",
        "Examples:",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
}
