//! mpi4py's own tests of files, with everything on Pario, and what the same MPI skips by itself.
//!
//! They take a minute for each number of ranks, so `make test` runs the basic ones; `PARIO_MPI=all`
//! runs all of them with 1, 2 and 4 ranks.

use std::collections::BTreeSet;
use std::fs;

use crate::launch::{Launch, Mode, Output, Site};
use crate::mpi::{Mpi, environment};

fn run<'a>(site: &'a Site, mpi: Mpi, ranks: usize, modules: &[&str]) -> Launch<'a> {
    let tests = environment("mpi4py/test/main.py");
    let temporary = site.dir().join("temporary");
    fs::create_dir_all(&temporary).expect("a directory");
    let mut run = site.run(mpi, ranks, mpi.python());
    run = run.argument(tests).argument("-v");
    for module in modules {
        run = run.argument("-i").argument(module);
    }
    if mpi == Mpi::DebianMpich {
        // The wheel asks for a name that Debian does not have.
        let libraries = environment("debian-mpich/lib").display().to_string();
        run = run.variable("LD_LIBRARY_PATH", libraries);
    }
    run = run.variable("TMPDIR", temporary.display().to_string());
    run.variable("PARIO_MPIIO", "all").limit(900)
}

/// Names of the tests that were skipped.
fn skipped(output: &Output) -> BTreeSet<&str> {
    let lines = output.text.lines().filter(|l| l.contains("skipped '"));
    lines.filter_map(|l| l.split_whitespace().next()).collect()
}

fn passes(site: &Site, mpi: Mpi, ranks: usize, modules: &[&str]) {
    let output = run(site, mpi, ranks, modules).output();
    let fine = output.lines("OK").count() == ranks && output.lines("FAILED").count() == 0;
    assert!(output.status.success() && fine, "{output}");
    // One rank is enough to know what the MPI itself leaves out.
    if ranks == 1 {
        let alone = run(site, mpi, ranks, modules).without_pario().output();
        assert_eq!(skipped(&output), skipped(&alone), "{output}");
    }
}

#[test]
fn mpi4py_file_tests_pass() {
    let site = Site::new(Mode::Service);
    for mpi in Mpi::selected() {
        passes(&site, mpi, 1, &["test_file"]);
        passes(&site, mpi, 2, &["test_file"]);
    }
}

#[test]
#[ignore = "takes many minutes: `make test-mpi` runs it"]
fn mpi4py_io_tests_pass_with_one_two_and_four_ranks() {
    let site = Site::new(Mode::Service);
    for mpi in Mpi::all() {
        for ranks in [1, 2, 4] {
            passes(&site, mpi, ranks, &["test_io", "test_file"]);
        }
    }
}
