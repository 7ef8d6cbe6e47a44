//! A service that dies while ranks use it: errors of the class for I/O on every rank, within seconds, and no hang.
//!
//! The ranks access a file until that fails, then make every kind of call, and judge errors and times themselves;
//! here is who kills.

use system_tests::until;

use crate::launch::{Mode, Site};
use crate::mpi::Mpi;
use crate::programs;

/// A service is killed while so many ranks make calls of this kind.
#[track_caller]
fn check(ranks: usize, call: &str) {
    for mpi in Mpi::selected() {
        let mut site = Site::new(Mode::Service);
        let program = programs::c(mpi, "service_lost.c");
        let running = site.run(mpi, ranks, program).argument(call).start();
        until("ranks that access a file", || {
            running.said().contains("under way")
        });
        site.service().kill_all();
        let output = running.output();
        let fine = output.lines("ok ").count() == 1 && output.lines("FAIL").count() == 0;
        assert!(output.status.success() && fine, "{output}");
    }
}

#[test]
fn a_service_that_dies_in_collective_use_is_an_error_on_all_ranks() {
    check(3, "collective");
}

#[test]
fn a_service_that_dies_in_independent_use_is_an_error_on_all_ranks() {
    check(2, "independent");
}

#[test]
fn a_service_that_dies_in_nonblocking_use_is_an_error_on_all_ranks() {
    check(2, "nonblocking");
}

/// Servers hear of a view when it is used, so without any other access nobody but this call can notice.
#[test]
fn a_service_that_dies_while_views_are_set_is_an_error_on_all_ranks() {
    check(2, "set_view");
}

#[test]
fn a_service_that_dies_in_split_use_is_an_error_on_all_ranks() {
    check(4, "split");
}
