//! Redistribution in the memory of MPI processes, from C and Fortran, and beside ScaLAPACK's own.
//!
//! These programs call functions of Pario, so they are linked with the library before MPI.

use crate::launch::{Mode, Site};
use crate::mpi::Mpi;
use crate::programs;

/// What links a program with the library.
fn linked() -> String {
    let library = programs::library();
    let folder = library.parent().expect("a folder").display().to_string();
    format!("-L{folder} -lpario_mpiio -Wl,-rpath,{folder}")
}

#[test]
fn arrays_change_their_distribution_in_memory() {
    let site = Site::new(Mode::Embedded);
    for mpi in Mpi::selected() {
        let compiler = mpi.compiler();
        let arguments = ["-g", "-Wall", "-Wno-unused-function"];
        let program = programs::with(&compiler, mpi, "redistribute.c", &arguments, &linked());
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
        let program = programs::with(&compiler, mpi, "redistribute.f90", &[&module], &linked());
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
        let after = format!("{} {scalapack}", linked());
        let arguments = ["-g", "-Wno-unused-function"];
        let program = programs::with(&mpi.compiler(), mpi, "scalapack.c", &arguments, &after);
        site.run(mpi, 4, &program).holds();
    }
}
