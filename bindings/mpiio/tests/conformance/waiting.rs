//! Waiting inside file access drives the program's own messages, under every MPI that is installed.
//!
//! The ranks exchange 64 MiB that move only while both sides call MPI; a wait that does not drive the
//! host's progress never ends.

use crate::launch::{Mode, Site};
use crate::mpi::Mpi;
use crate::programs;

#[test]
fn messages_move_while_ranks_wait_in_collective_access() {
    let site = Site::new(Mode::Service);
    for mpi in Mpi::all() {
        let run = site.run(mpi, 2, programs::c(mpi, "waiting.c"));
        run.holds();
    }
}
