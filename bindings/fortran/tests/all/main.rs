//! Programs in Fortran against a service of several processes, and against a directory that they serve themselves.
//!
//! They are compiled with all checks that the compiler has. A program ends with the line that says that all is well.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use pario_fortran::{compile, compiler, root, run};
use system_tests::{Service, ServiceOptions, TempDir};

/// Most seconds of a program.
const LIMIT: &str = "100";

fn source(name: &str) -> PathBuf {
    root().join("bindings/fortran/programs").join(name)
}

/// Starts so many processes of an HPF program, and waits: what they printed.
fn together(
    program: &Path,
    arguments: &[&str],
    service: &Service,
    processes: usize,
    team: &str,
) -> String {
    let start = |rank: usize| {
        Command::new("timeout")
            .arg(LIMIT)
            .arg(program)
            .args(arguments)
            .env("PARIO_URL", service.url().to_string())
            .env("PARIO_HPF_RANK", rank.to_string())
            .env("PARIO_HPF_PROCESSES", processes.to_string())
            .env("PARIO_HPF_TEAM", team)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process")
    };
    let all: Vec<Child> = (0..processes).map(start).collect();
    let mut printed = String::new();
    for (rank, child) in all.into_iter().enumerate() {
        let output = child.wait_with_output().expect("a process");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "rank {rank}: {}\n{said}",
            output.status
        );
        printed += &String::from_utf8_lossy(&output.stdout);
    }
    printed
}

#[test]
fn seed004_s68_arrays_of_every_type_kind_and_rank_and_their_sections_move() {
    if let Err(why) = compiler() {
        return testkit::skipped(&why);
    }
    let dir = TempDir::new();
    let program = compile(
        &[&source("arrays.f90")],
        dir.path(),
        "arrays",
        &["-std=f2018"],
    );
    let start = |url: &str| {
        let printed = run(Command::new("timeout").args([LIMIT]).arg(&program).arg(url));
        assert!(printed.ends_with("all is well\n"), "{printed}");
    };
    let service = ServiceOptions::new(2).start();
    start(&service.url().to_string());
    drop(service);
    start(&format!("dir:{}", dir.path().join("d").display()));
}

#[test]
fn seed004_s71_calls_of_the_hpf_compiler_open_write_and_read_by_run_time_descriptors() {
    if let Err(why) = compiler() {
        return testkit::skipped(&why);
    }
    let dir = TempDir::new();
    let program = compile(
        &[&source("compiler_calls.f90")],
        dir.path(),
        "calls",
        &["-std=f2018"],
    );
    let service = ServiceOptions::new(2).start();
    let url = service.url().to_string();
    let printed = together(&program, &[&url], &service, 6, "calls");
    assert_eq!(printed, "all is well\n");
}

#[test]
fn matrices_are_multiplied_slab_by_slab_and_checked_by_a_list_of_indices() {
    if let Err(why) = compiler() {
        return testkit::skipped(&why);
    }
    let dir = TempDir::new();
    let source = source("matrix_product.f90");
    let program = compile(&[&source], dir.path(), "product", &["-std=f2018"]);
    let service = ServiceOptions::new(2).start();
    let printed = run(Command::new("timeout")
        .arg(LIMIT)
        .arg(&program)
        .arg(service.url().to_string()));
    assert_eq!(printed, "all is well\n");
}

/// The particle code of `bindings/c/programs/particles.c` in Fortran: three processes write, two others read.
#[test]
fn particles_and_their_log_are_written_by_three_processes_and_read_by_two() {
    if let Err(why) = compiler() {
        return testkit::skipped(&why);
    }
    let dir = TempDir::new();
    let source = source("particles.f90");
    let program = compile(&[&source], dir.path(), "particles", &["-std=f2018"]);
    let service = ServiceOptions::new(2).start();
    let url = service.url().to_string();
    for (side, size) in [("writes", "3"), ("reads", "2")] {
        let start = |rank: usize| {
            Command::new("timeout")
                .arg(LIMIT)
                .arg(&program)
                .args([&url, side, &rank.to_string(), size])
                .stdout(Stdio::piped())
                .spawn()
                .expect("a process")
        };
        let all: Vec<Child> = (0..size.parse().expect("a number")).map(start).collect();
        let mut printed = String::new();
        for (rank, child) in all.into_iter().enumerate() {
            let output = child.wait_with_output().expect("a process");
            assert!(output.status.success(), "{side}, rank {rank}");
            printed += &String::from_utf8_lossy(&output.stdout);
        }
        assert_eq!(printed, "all is well\n", "{side}");
    }
}

/// The benchmark of sections is compiled, and does its work on one round of small ones.
#[test]
fn what_sections_are_compared_with_in_c_does_the_same() {
    if let Err(why) = compiler() {
        return testkit::skipped(&why);
    }
    let dir = TempDir::new();
    let sources = [source("strided.f90"), source("strided.c")];
    let program = compile(&[&sources[0], &sources[1]], dir.path(), "strided", &[]);
    let url = format!("dir:{}", dir.path().join("d").display());
    let printed = run(Command::new("timeout")
        .arg(LIMIT)
        .arg(&program)
        .args([&url, "1"]));
    assert_eq!(printed.lines().count(), 4, "{printed}");
}
