//! Benchmarks as users run them: `pario bench`, real processes of the built programs, a report out. Nothing here
//! looks inside.
//!
//! `pario` has to lie beside `pario-bench`: build it with `cargo build -p pario-cli`.

mod files;
mod memory;
mod streams;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program, with nothing of the caller's terminal in its environment.
#[track_caller]
fn pario() -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_pario-bench")).with_file_name("pario");
    assert!(program.is_file(), "build it with cargo build -p pario-cli");
    let mut command = Command::new(program);
    command.env_remove("COLUMNS").env("RUST_BACKTRACE", "1");
    command
}

#[track_caller]
fn run(arguments: &[&str]) -> Output {
    pario().args(arguments).output().expect("pario starts")
}

/// A file of this test run that no other test uses.
fn scratch_file(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&folder).expect("a folder for test files");
    folder.join(name)
}

#[test]
fn every_benchmark_has_help() {
    for command in [
        &["bench"][..],
        &["bench", "kernels"],
        &["bench", "plan"],
        &["bench", "streams"],
        &["bench", "move"],
        &["bench", "match"],
        &["bench", "fresh"],
    ] {
        let output = run(&[command, &["--help"]].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{command:?}");
        assert!(text.contains("Usage: pario bench "), "{command:?}: {text}");
    }
}

#[test]
fn what_is_no_benchmark_is_wrong_usage() {
    let output = run(&["bench", "no-such-benchmark"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("Usage:") && errors.contains("--help"),
        "{errors}"
    );
}
