//! A service that dies while ranks use it: errors of the class for I/O on every rank, and no hang.
//!
//! The ranks access a file until that fails, and judge the error themselves; here is who kills.

use system_tests::until;

use crate::launch::{Mode, Site};
use crate::mpi::Mpi;
use crate::programs;

#[test]
fn a_service_that_dies_in_collective_use_is_an_error_on_all_ranks() {
    for mpi in Mpi::selected() {
        let mut site = Site::new(Mode::Service);
        let run = site.run(mpi, 3, programs::c(mpi, "service_lost.c"));
        let running = run.limit(60).start();
        until("ranks that access a file", || {
            running.said().contains("under way")
        });
        site.service().kill_all();
        let output = running.output();
        let fine = output.lines("ok ").count() == 1 && output.lines("FAIL").count() == 0;
        assert!(output.status.success() && fine, "{output}");
    }
}
