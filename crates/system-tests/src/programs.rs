//! Where the programs under test are: beside the test's own.
//!
//! A test runs from `target/PROFILE/deps`, programs are in `target/PROFILE`. They are not built by
//! the tests; `scripts/test` does it before.

use std::path::PathBuf;

/// The program `pario`.
pub fn pario() -> PathBuf {
    find("pario", "cargo build -p pario-cli")
}

/// The program [`crate::worker`] drives.
pub fn worker() -> PathBuf {
    find("worker", "cargo build -p system-tests")
}

/// A rank of a parallel program, in one of its roles.
pub fn rank() -> PathBuf {
    find("rank", "cargo build -p system-tests")
}

/// A client that keeps to no rule.
pub fn malicious() -> PathBuf {
    find("malicious", "cargo build -p system-tests")
}

fn find(name: &str, remedy: &str) -> PathBuf {
    let this = std::env::current_exe().expect("the path of this program");
    let found = this
        .ancestors()
        .skip(1)
        .take(2)
        .map(|dir| dir.join(name))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "there is no `{name}` beside {}; build it with {remedy}",
            this.display()
        )
    })
}
