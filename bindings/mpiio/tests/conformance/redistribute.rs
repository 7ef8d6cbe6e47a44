//! Redistribution in the memory of MPI processes, from C and Fortran, and beside ScaLAPACK's own.
//!
//! These programs call functions of Pario, so they are linked with the library before MPI.

use crate::launch::{Mode, Site};
use crate::mpi::Mpi;
use crate::programs;

#[test]
fn arrays_change_their_distribution_in_memory() {
    let site = Site::new(Mode::Embedded);
    for mpi in Mpi::selected() {
        let compiler = mpi.compiler();
        let arguments = ["-g", "-Wall", "-Wno-unused-function"];
        let program = programs::linked(&compiler, mpi, "redistribute.c", &arguments, "");
        for ranks in [1, 3, 4] {
            site.run(mpi, ranks, &program).holds();
        }
    }
}

#[test]
fn fortran_programs_redistribute_with_either_kind_of_handle() {
    let site = Site::new(Mode::Embedded);
    for mpi in Mpi::selected() {
        let Some(compiler) = mpi.fortran() else {
            continue;
        };
        let module = programs::sources().join("../include/pario_mpi.f90");
        let module = module.display().to_string();
        let program = programs::linked(&compiler, mpi, "redistribute.f90", &[&module], "");
        site.run(mpi, 4, &program).holds();
    }
}

#[test]
fn block_cyclic_matrices_move_as_scalapack_moves_them() {
    let site = Site::new(Mode::Embedded);
    for (mpi, scalapack) in [
        (Mpi::DebianMpich, "-lscalapack-mpich"),
        (Mpi::DebianOpen, "-lscalapack-openmpi"),
    ] {
        let arguments = ["-g", "-Wno-unused-function"];
        let program = programs::linked(&mpi.compiler(), mpi, "scalapack.c", &arguments, scalapack);
        site.run(mpi, 4, &program).holds();
    }
}
