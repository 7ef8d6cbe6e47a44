//! The program as users run it: real processes of the built binary, text in, text out. Nothing here
//! looks inside; one helper runs, the modules compare.

mod bench;
mod demo;
mod errors;
mod explain;
mod hpf;
mod layout;
mod streams;
mod xml;

use std::path::PathBuf;
use std::process::{Command, Output};

/// The program, with nothing of the caller's terminal in its environment.
fn pario() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pario"));
    command.env_remove("COLUMNS").env("RUST_BACKTRACE", "1");
    command
}

fn run(arguments: &[&str]) -> Output {
    pario().args(arguments).output().expect("pario starts")
}

/// Standard output of a run that succeeds and says nothing on standard error.
#[track_caller]
fn text_of(arguments: &[&str]) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    assert_eq!(errors, "", "{arguments:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
fn json_of(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&text_of(arguments)).expect("JSON")
}

#[track_caller]
fn json_line(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

/// Compares texts line by line, blind to blanks at line ends.
#[track_caller]
fn same_text(found: &str, expected: &str) {
    let lines = |text: &str| -> Vec<String> {
        text.trim_matches('\n')
            .lines()
            .map(|l| l.trim_end().to_owned())
            .collect()
    };
    assert_eq!(lines(found), lines(expected), "found:\n{found}");
}

/// A file of this test run that no other test uses.
fn scratch_file(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&folder).expect("a folder for test files");
    folder.join(name)
}
