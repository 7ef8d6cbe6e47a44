//! `pario bench` and the program behind it: found beside this one, else on the path, and given everything. What it
//! measures is tested where it is made.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::scratch_file;

/// A folder with this program alone.
fn installed(name: &str) -> PathBuf {
    let folder = scratch_file(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("bin")).expect("a folder");
    let program = env!("CARGO_BIN_EXE_pario");
    std::fs::copy(program, folder.join("bin/pario")).expect("a copy");
    folder
}

/// Says who it is and what it was given, repeats its input, and ends with 7.
fn put_benchmarks(folder: &Path, who: &str) {
    std::fs::create_dir_all(folder).expect("a folder");
    let path = folder.join("pario-bench");
    let text = format!("#!/bin/sh\necho {who} \"$@\"\nexit 7\n");
    std::fs::write(&path, text).expect("a script");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("one that runs");
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(folder.join("bin/pario"));
    command.arg("bench").args(arguments);
    command.env(
        "PATH",
        format!("{}:/bin:/usr/bin", folder.join("path").display()),
    );
    command.output().expect("pario starts")
}

#[test]
fn benchmarks_get_all_arguments_and_their_exit_code_is_passed_on() {
    let folder = installed("bench-found");
    put_benchmarks(&folder.join("path"), "path");
    for (arguments, said) in [
        (&["move", "--json", "-x"][..], "path move --json -x\n"),
        (&["--help"], "path --help\n"),
        (&["-h"], "path -h\n"),
        (&["kernels", "--help"], "path kernels --help\n"),
        (&["plan", "--", "-f"], "path plan -- -f\n"),
        (&["kernels", "--url", "x"], "path kernels --url x\n"),
        (&[], "path\n"),
    ] {
        let output = run(&folder, arguments);
        assert_eq!(output.status.code(), Some(7), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), said);
    }
    // The one beside the program goes first.
    put_benchmarks(&folder.join("bin"), "beside");
    let output = run(&folder, &["plan"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "beside plan\n");
}

#[test]
fn missing_benchmarks_are_named_with_what_to_build() {
    let folder = installed("bench-missing");
    let output = run(&folder, &["move"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.starts_with("pario: "), "{errors}");
    assert!(errors.contains("`pario-bench`"), "{errors}");
    assert!(
        errors.contains("cargo build --release -p bench"),
        "{errors}"
    );
}
