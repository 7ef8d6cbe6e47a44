//! Requests of non-blocking access under every call that completes them, and what happens at the end of MPI.
//!
//! Failures, lists with messages and null requests, order of collective operations: `conformance/requests.c`.

use crate::launch::{Mode, Site};
use crate::mpi::Mpi;
use crate::programs;

#[test]
fn requests_complete_under_every_call() {
    let site = Site::new(Mode::Service);
    for mpi in Mpi::selected() {
        site.run(mpi, 2, programs::c(mpi, "requests.c")).holds();
    }
}

#[test]
fn threads_complete_requests_at_once() {
    let site = Site::new(Mode::Service);
    for mpi in Mpi::selected() {
        site.run(mpi, 2, programs::c(mpi, "threads.c")).holds();
    }
}

#[test]
fn the_end_of_mpi_waits_for_what_runs_and_children_are_left_alone() {
    let site = Site::new(Mode::Service);
    for mpi in Mpi::selected() {
        for how in ["free", "forget", "fork"] {
            let run = site.run(mpi, 2, programs::c(mpi, "ends.c"));
            run.argument(how).holds();
        }
    }
}
