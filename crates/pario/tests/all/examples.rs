//! The examples run, as a user would run them who has just cloned the repository, and each in a directory of its own.
//!
//! The runner of the tests builds them.

use std::path::PathBuf;
use std::process::Command;

use crate::service::Service;
use testkit::TempDir;

/// Runs an example; what it prints.
fn run(name: &str, argument: &str) -> String {
    let tests = std::env::current_exe().unwrap();
    let built: PathBuf = tests
        .ancestors()
        .nth(2)
        .unwrap()
        .join("examples")
        .join(name);
    let out = Command::new(&built)
        .arg(argument)
        .env_remove("PARIO_URL")
        .output()
        .unwrap_or_else(|e| {
            panic!(
                "{}: {e}; `cargo build -p pario --examples`",
                built.display()
            )
        });
    let (said, errors) = (
        out.stdout,
        String::from_utf8_lossy(&out.stderr).into_owned(),
    );
    assert!(out.status.success(), "{name}: {errors}");
    String::from_utf8(said).unwrap()
}

#[test]
fn first_use_runs() {
    let dir = TempDir::new();
    for _ in 0..2 {
        let said = run("first_use", dir.path().to_str().unwrap());
        assert!(said.contains("columns [8, 2]: [0.0, 0.0,"), "{said}");
        assert!(
            said.contains("corner [2, 2]: [0.0, 0.0, 1.0, 1.0]"),
            "{said}"
        );
    }
}

#[test]
fn transpose_runs() {
    for service in [Service::directory(), Service::start(2)] {
        let said = run("transpose", service.url());
        let (rows, columns) = (512u64, 768);
        let sum = (rows * columns - 1) * rows * columns / 2;
        assert!(said.contains(&format!("their sum is {sum}")), "{said}");
    }
}

#[test]
fn checkpoint_runs() {
    for service in [Service::directory(), Service::start(2)] {
        for _ in 0..2 {
            let said = run("checkpoint", service.url());
            assert!(said.contains("laid out as (*, *, block) onto 2"), "{said}");
            assert!(said.contains("last: 262144 bytes"), "{said}");
        }
    }
}

#[test]
fn two_coupled_programs_run() {
    for service in [Service::directory(), Service::start(1)] {
        let said = run("couple", service.url());
        // The mean of all indices, and a tenth more in every step.
        let lines: Vec<&str> = said.lines().collect();
        let wanted = (0..6)
            .map(|step| format!("step {step}: mean {:.3}", 21_599.5 + f64::from(step) / 10.0));
        assert_eq!(lines, wanted.collect::<Vec<_>>());
    }
}
