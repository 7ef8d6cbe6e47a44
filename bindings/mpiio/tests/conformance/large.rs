//! What is large, far apart or far away in memory, with the library preloaded and with it linked before MPI.
//!
//! A linked program needs nothing around it: the same cases run without a preloaded library.

use crate::launch::{Mode, Site};
use crate::mpi::Mpi;
use crate::programs;

#[test]
fn counts_distances_and_addresses_beyond_32_bits() {
    let site = Site::new(Mode::Service);
    for mpi in Mpi::selected() {
        let program = programs::c(mpi, "large.c");
        site.run(mpi, 2, program).holds();
    }
}

#[test]
fn programs_linked_with_the_library_need_no_preload() {
    let site = Site::new(Mode::Service);
    for mpi in Mpi::selected() {
        let arguments = ["-g", "-Wno-unused-function"];
        let program = programs::linked(&mpi.compiler(), mpi, "large.c", &arguments, "");
        site.run(mpi, 2, program).without_pario().holds();
    }
}
