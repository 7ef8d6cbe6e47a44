//! Programs in C and C++ against a service of several processes, and against a directory that they serve themselves.
//!
//! Each is compiled by another compiler or standard, so that all of them see the header. A program ends with the line that
//! says that all is well.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use system_tests::{ServiceOptions, TempDir};

use crate::build::{compile, is_there, run};

/// Most seconds of a program.
const LIMIT: &str = "100";

fn start(program: &Path, url: &str, arguments: &[&str]) {
    let printed = run(Command::new("timeout")
        .arg(LIMIT)
        .arg(program)
        .arg(url)
        .args(arguments)
        .env_remove("PARIO_URL"));
    assert!(printed.ends_with("all is well\n"), "{printed}");
}

/// Runs a program everywhere.
fn everywhere(compiler: &str, standard: &str, source: &str, arguments: &[&str]) {
    let program = compile(compiler, standard, source);
    let service = ServiceOptions::new(2).start();
    start(&program, &service.url().to_string(), arguments);
    drop(service);
    let dir = TempDir::new();
    let url = format!("dir:{}", dir.path().join("d").display());
    start(&program, &url, arguments);
    fs::remove_file(&program).unwrap();
}

#[test]
fn seed004_s31_files_and_pointers_are_used_from_c99() {
    everywhere("gcc", "c99", "files.c", &[]);
}

#[test]
fn seed004_s24_mistakes_in_c_are_codes_and_never_a_crash() {
    everywhere("gcc", "c11", "mistakes.c", &[]);
}

#[test]
fn seed004_s35_many_requests_go_on_beside_a_program_in_c() {
    everywhere("gcc", "c99", "requests.c", &[]);
}

#[test]
fn teams_of_threads_and_processes_work_together() {
    everywhere("gcc", "c11", "teams.c", &[]);
}

#[test]
fn files_move_while_c_follows() {
    everywhere("gcc", "c11", "moving.c", &[]);
}

#[test]
fn seed004_s22_descriptors_of_the_source_and_random_ones_hold_through_c() {
    let seed = std::env::var("PARIO_SEED").unwrap_or_else(|_| "1".into());
    println!("PARIO_SEED={seed}");
    everywhere("gcc", "c11", "golden.c", &[&seed, "30"]);
}

#[test]
fn a_program_in_cpp_is_as_good() {
    everywhere("g++", "c++17", "plain.cpp", &[]);
}

#[test]
fn two_coupled_programs_exchange_an_array_without_a_file() {
    everywhere("gcc", "c99", "coupled.c", &[]);
}

#[test]
fn every_virtual_processor_has_a_stream_in_c() {
    everywhere("gcc", "c11", "streams.c", &[]);
}

#[test]
fn streams_have_overloads_in_cpp() {
    everywhere("g++", "c++17", "streams.cpp", &[]);
}

#[test]
fn particles_and_their_log_are_written_and_read_by_one_process() {
    everywhere("gcc", "c99", "particles.c", &[]);
}

/// Teams of processes of both MPI libraries: each writes, and the other reads with another number of processes.
#[test]
fn particles_are_read_by_other_numbers_of_processes_of_other_mpi_libraries() {
    let known = ["mpich", "openmpi"];
    let is_there =
        |mpi: &&str| is_there(&format!("mpicc.{mpi}")) && is_there(&format!("mpiexec.{mpi}"));
    if let Some(mpi) = known.iter().find(|mpi| !is_there(mpi)) {
        return testkit::skipped(&format!("{mpi} is not installed"));
    }
    let programs = known.map(|mpi| compile(&format!("mpicc.{mpi}"), "c11", "particles_mpi.c"));
    let service = ServiceOptions::new(2).start();
    let (url, place) = (service.url().to_string(), TempDir::new());
    for (writer, sizes) in [(0, ["3", "2"]), (1, ["2", "4"])] {
        for (mpi, size, side) in [
            (writer, sizes[0], "writes"),
            (1 - writer, sizes[1], "reads"),
        ] {
            let output = over_mpi(known[mpi], size, &programs[mpi], (&url, &place), side)
                .wait_with_output()
                .unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && printed.contains("all is well"),
                "{} {side}: {printed}",
                known[mpi]
            );
        }
    }
    for program in programs {
        fs::remove_file(program).unwrap();
    }
}

/// A program of MPI on its way: so many processes, by an `mpiexec` of their own, which keeps its files in a directory of its own: those
/// of two that begin at once would meet.
fn over_mpi(
    mpi: &str,
    processes: &str,
    program: &Path,
    (url, place): (&str, &TempDir),
    side: &str,
) -> Child {
    let own = place.join(format!("{mpi}-{side}"));
    fs::create_dir_all(&own).unwrap();
    let mut command = Command::new("timeout");
    command.arg(LIMIT).arg(format!("mpiexec.{mpi}"));
    if mpi == "openmpi" {
        command.arg("--oversubscribe");
    }
    command
        .args(["-n", processes])
        .arg(program)
        .args([url, side])
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("TMPDIR", &own)
        .env_remove("PARIO_URL")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Two programs of MPI, by two `mpiexec`: of one MPI library each, and of one and the other.
#[test]
fn two_programs_of_mpi_exchange_an_array_without_a_file() {
    let known = ["mpich", "openmpi"];
    let is_there =
        |mpi: &&str| is_there(&format!("mpicc.{mpi}")) && is_there(&format!("mpiexec.{mpi}"));
    let missing = known.iter().find(|mpi| !is_there(mpi));
    if let Some(mpi) = missing {
        return testkit::skipped(&format!("{mpi} is not installed"));
    }
    let programs = known.map(|mpi| compile(&format!("mpicc.{mpi}"), "c11", "coupled_mpi.c"));
    let service = ServiceOptions::new(1).start();
    let (url, place) = (service.url().to_string(), TempDir::new());
    let at = (&url[..], &place);
    for (giver, taker, sizes) in [(0, 0, ["3", "2"]), (1, 1, ["2", "3"]), (0, 1, ["1", "2"])] {
        let gives = over_mpi(known[giver], sizes[0], &programs[giver], at, "gives");
        let takes = over_mpi(known[taker], sizes[1], &programs[taker], at, "takes");
        for (program, line) in [
            (gives, format!("{} give {}\n", sizes[0], sizes[1])),
            (takes, format!("{} take {}\n", sizes[1], sizes[0])),
        ] {
            let output = program.wait_with_output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{printed}");
            assert!(
                printed.contains(&line) && printed.contains("all is well"),
                "{printed}"
            );
        }
    }
    for program in programs {
        fs::remove_file(program).unwrap();
    }
}

/// The header for MPI has all that a team of its processes needs.
#[test]
fn processes_of_mpi_are_a_team() {
    let (compiler, launcher) = ("mpicc.mpich", "mpiexec.mpich");
    if !is_there(compiler) || !is_there(launcher) {
        return testkit::skipped("MPICH is not installed");
    }
    let program = compile(compiler, "c11", "over_mpi.c");
    let service = ServiceOptions::new(2).start();
    let printed = run(Command::new("timeout")
        .args([LIMIT, launcher, "-n", "3"])
        .arg(&program)
        .arg(service.url().to_string()));
    assert!(printed.ends_with("all is well\n"), "{printed}");
    fs::remove_file(&program).unwrap();
}

#[test]
fn clang_takes_the_header_too() {
    if !is_there("clang") {
        return testkit::skipped("clang is not installed");
    }
    everywhere("clang", "c99", "files.c", &[]);
}
