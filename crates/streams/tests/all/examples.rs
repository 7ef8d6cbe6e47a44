//! The examples run, as a user would run them, each in a directory of its own.
//!
//! The runner of the tests builds them.

use std::path::PathBuf;
use std::process::Command;

use testkit::TempDir;

#[test]
fn particles_are_written_by_three_members_and_read_by_two() {
    let dir = TempDir::new();
    let tests = std::env::current_exe().unwrap();
    let built: PathBuf = tests.ancestors().nth(2).unwrap().join("examples/particles");
    let out = Command::new(&built)
        .arg(dir.path().join("d"))
        .env_remove("PARIO_URL")
        .output()
        .unwrap_or_else(|e| {
            panic!(
                "{}: {e}; `cargo build -p streams --examples`",
                built.display()
            )
        });
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{errors}");
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(
        said.contains("of 120 cells, written by 3 members and read by 2"),
        "{said}"
    );
}
