//! Programs in C and C++ against a service of several processes, and against a directory that they serve themselves.
//!
//! Each is compiled by another compiler or standard, so that all of them see the header. A program ends with the line that
//! says that all is well.

use std::fs;
use std::path::Path;
use std::process::Command;

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
