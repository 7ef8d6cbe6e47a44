//! Libraries that use MPI-IO underneath: HDF5, h5py, netCDF and PnetCDF, unmodified, over Pario.
//!
//! Names reach MPI-IO as the library passes them on, so files are ours by `PARIO_MPIIO=all`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::launch::{Mode, Site};
use crate::mpi::{Mpi, environment};
use crate::programs;

/// Compiles with another compiler than the MPI's own, runs and looks at the cases.
fn passes(mpi: Mpi, source: &str, compiler: &str, before: &[&str], after: &str) {
    let site = Site::new(Mode::Service);
    let program = programs::with(Path::new(compiler), mpi, source, before, after);
    let run = site.run(mpi, 3, program);
    let run = run.variable("CONFORMANCE_PREFIX", "/");
    run.variable("PARIO_MPIIO", "all").holds();
}

#[test]
fn hdf5_writes_and_reads_collectively() {
    for (mpi, compiler) in [
        (Mpi::DebianMpich, "h5pcc.mpich"),
        (Mpi::DebianOpen, "h5pcc.openmpi"),
    ] {
        passes(mpi, "hdf5.c", compiler, &["-shlib"], "");
    }
}

#[test]
fn pnetcdf_writes_and_reads_collectively() {
    let compiler = "mpicc.openmpi";
    passes(Mpi::DebianOpen, "pnetcdf.c", compiler, &["-g"], "-lpnetcdf");
}

#[test]
fn netcdf_writes_and_reads_collectively() {
    let folder = "/usr/lib/x86_64-linux-gnu/netcdf/mpi";
    let include = format!("-I{folder}/include");
    let after = format!("-L{folder} -lnetcdf_mpi");
    let compiler = "mpicc.openmpi";
    passes(Mpi::DebianOpen, "netcdf.c", compiler, &[&include], &after);
}

#[test]
#[ignore = "needs HDF5's sources: `make test-mpi` runs it"]
fn testphdf5_passes() {
    for (mpi, folder) in [
        (Mpi::DebianMpich, "hdf5-mpich"),
        (Mpi::DebianOpen, "hdf5-openmpi"),
    ] {
        let site = Site::new(Mode::Service);
        let run = site.run(mpi, 4, environment(folder).join("testphdf5"));
        let mut run = run.variable("PARIO_MPIIO", "all");
        // These take a file of the system and one of Pario for the same: the next tests run three of
        // them. calloc makes files anew with calls of the system that the ranks have just read or
        // written through MPI, and a job does not look again at what it has fetched from behind it.
        for other in ["calloc", "atomicity", "fltread", "cmpdsetr"] {
            run = run.argument("-x").argument(other);
        }
        let prefix = site.dir().display().to_string();
        let output = run.variable("HDF5_PARAPREFIX", prefix).limit(900).output();
        let passed = output.text.contains("PHDF5 tests finished with no errors");
        assert!(output.status.success() && passed, "{output}");
    }
}

/// HDF5's test of atomic mode. In between, one rank opens the file with calls of the system, only to see
/// that atomic mode is refused there: an empty file of that name stands in. All the rest is over Pario.
#[test]
#[ignore = "needs HDF5's sources and h5py: `make test-mpi` runs it"]
fn testphdf5_finds_atomic_mode_atomic() {
    for (mpi, folder) in [
        (Mpi::DebianMpich, "hdf5-mpich"),
        (Mpi::DebianOpen, "hdf5-openmpi"),
    ] {
        let site = Site::new(Mode::Service);
        let prefix = site.dir().display().to_string();
        let made = Command::new(Mpi::DebianMpich.python())
            .env("LD_LIBRARY_PATH", environment("debian-mpich/lib"))
            .args([
                "-c",
                "import h5py, sys; h5py.File(sys.argv[1], 'w').close()",
            ])
            .arg(site.dir().join("ParaTest.h5"))
            .status();
        assert!(
            made.expect("an interpreter").success(),
            "no file to stand in"
        );
        let run = site.run(mpi, 4, environment(folder).join("testphdf5"));
        let run = run.argument("-o").argument("atomicity");
        let run = run.variable("PARIO_MPIIO", "all");
        let output = run.variable("HDF5_PARAPREFIX", prefix).output();
        let passed = output.text.contains("PHDF5 tests finished with no errors");
        assert!(output.status.success() && passed, "{output}");
    }
}

/// Files that one rank makes with calls of the system and all read through MPI: a job in front of a
/// directory has them. Paths are the same to both by a link to where the job looks behind its root.
#[test]
#[ignore = "needs HDF5's sources: `make test-mpi` runs it"]
fn testphdf5_reads_files_made_without_mpi_in_front_of_a_directory() {
    for (mpi, folder) in [
        (Mpi::DebianMpich, "hdf5-mpich"),
        (Mpi::DebianOpen, "hdf5-openmpi"),
    ] {
        for test in ["fltread", "cmpdsetr"] {
            let site = Site::new(Mode::Job);
            let behind = site.dir().join("behind");
            let files = site.dir().join("files");
            let inside = behind.join(files.strip_prefix("/").expect("a path from the root"));
            fs::create_dir_all(&inside).expect("a directory");
            symlink(&inside, &files).expect("a link");
            let run = site.run(mpi, 4, environment(folder).join("testphdf5"));
            let run = run.backing(&behind).argument("-o").argument(test);
            let run = run.variable("PARIO_MPIIO", "all");
            let prefix = files.display().to_string();
            let output = run.variable("HDF5_PARAPREFIX", prefix).output();
            let passed = output.text.contains("PHDF5 tests finished with no errors");
            assert!(output.status.success() && passed, "{output}");
        }
    }
}

#[test]
#[ignore = "needs h5py with MPI, which is compiled: `make test-mpi` runs it"]
fn h5py_writes_and_reads_collectively() {
    for mpi in [Mpi::DebianMpich, Mpi::DebianOpen] {
        let site = Site::new(Mode::Service);
        let python = mpi.python();
        let run = site.run(mpi, 3, python);
        let run = run.argument(programs::sources().join("h5py_dataset.py"));
        let libraries = environment("debian-mpich/lib").display().to_string();
        let run = run.variable("LD_LIBRARY_PATH", libraries);
        run.variable("PARIO_MPIIO", "all").holds();
    }
}
