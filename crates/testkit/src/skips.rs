//! Tests that cannot run on a machine are *skipped with a reason*; they never pass.
//!
//! The test harness knows passed and failed only. So a test that finds something missing says so here and
//! returns; the line goes to the file that `PARIO_SKIPPED` names, and `scripts/test` takes it from the
//! number that passed, lists it and counts it as skipped. Where nobody counts, the variable is not set
//! and the test fails with its reason: a machine that lacks something must not look like one where
//! all is well. `PARIO_SKIPPED=/dev/stderr cargo test` lets them return.

use std::fs::OpenOptions;
use std::io::Write;

/// Names the file that skips are written to.
pub const VARIABLE: &str = "PARIO_SKIPPED";

/// Says that the test of this thread cannot run here; the caller returns then.
///
/// # Panics
/// If nobody counts what is skipped.
#[track_caller]
pub fn skipped(why: &str) {
    let file = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
    let Some(file) = file else {
        panic!(
            "cannot run here: {why}; `make test` counts it as skipped, and so does {VARIABLE}=/dev/stderr"
        );
    };
    let name = test_name();
    eprintln!("SKIPPED: {name}: {why}");
    // One write, so that lines of several processes do not mix.
    let line = format!("{name}\t{}\n", why.replace(['\n', '\t'], " "));
    let opened = OpenOptions::new().append(true).create(true).open(&file);
    opened
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .unwrap_or_else(|e| panic!("{VARIABLE}={}: {e}", file.display()));
}

/// The test that runs, with the program it is part of where that is known.
fn test_name() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    match (variable("NEXTEST_BINARY_ID"), variable("NEXTEST_TEST_NAME")) {
        (Some(program), Some(test)) => format!("{program} {test}"),
        _ => {
            let thread = std::thread::current();
            let program = std::env::current_exe().unwrap_or_default();
            let program = program.file_stem().unwrap_or_default().to_string_lossy();
            format!("{program} {}", thread.name().unwrap_or("main"))
        }
    }
}
