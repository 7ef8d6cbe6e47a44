//! Programs written for TreadMarks: several processes over a directory or a service, started by themselves or by MPI.
//!
//! Their results are compared with those of one process, and what they fetch with what the source publishes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use client::OpenOptions;
use system_tests::{ServiceOptions, TempDir};

use crate::build::{compile, is_there};

const ROWS: usize = 2000;
const COLUMNS: usize = 1000;
const ITERATIONS: usize = 2;

fn input() -> Vec<f32> {
    let value = |at: usize| (at.wrapping_mul(2_654_435_761) >> 7 & 0xffff) as f32;
    (0..ROWS * COLUMNS).map(value).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// What one process without shared memory makes of it.
fn relaxed() -> Vec<f32> {
    let mut grid = input();
    for half in 0..2 * ITERATIONS {
        for row in 1..ROWS - 1 {
            for column in (1 + (row + half % 2) % 2..COLUMNS - 1).step_by(2) {
                let at = row * COLUMNS + column;
                let neighbours = [at - COLUMNS, at - 1, at + 1, at + COLUMNS];
                let sum: f64 = neighbours.iter().map(|at| f64::from(grid[*at])).sum();
                grid[at] = (sum / 4.0) as f32;
            }
        }
    }
    grid
}

fn connect(url: &str) -> client::Client {
    let url = url.parse().unwrap();
    embedded::connect(
        &url,
        client::ConnectOptions::default(),
        &embedded::Options {
            servers: 2,
            ..embedded::Options::default()
        },
    )
    .unwrap()
}

fn put(client: &client::Client, path: &str, contents: &[u8]) {
    let options = OpenOptions::new()
        .write()
        .create()
        .layout("striped(64KiB) over 2");
    let file = client.open(path, &options).unwrap();
    let mut done = 0;
    while done < contents.len() {
        done += file.write_at(done as u64, &contents[done..]).unwrap();
    }
    file.close().unwrap();
}

fn get(client: &client::Client, path: &str) -> Vec<u8> {
    let file = client.open(path, &OpenOptions::new().read()).unwrap();
    let mut contents = vec![0; file.size().unwrap() as usize];
    assert_eq!(file.read_at(0, &mut contents).unwrap(), contents.len());
    file.close().unwrap();
    contents
}

fn printed(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{out}\n{err}");
    out.into_owned()
}

/// Pages that all processes fetched up to the first barrier.
fn fetches(output: &Output, processes: usize) -> u64 {
    let text = printed(output);
    let counts: Vec<u64> = text
        .lines()
        .filter_map(|line| line.split_once(" fetched "))
        .map(|(_, count)| count.parse().unwrap())
        .collect();
    assert_eq!(counts.len(), processes, "{text}");
    counts.iter().sum()
}

/// Two runs of the program: what the first one learns, the second one uses.
fn two_runs(url: &str, processes: usize, learned: u64, mut run: impl FnMut(&str) -> Output) {
    let client = connect(url);
    put(&client, "/in", &bytes(&input()));
    let expected = bytes(&relaxed());
    for (turn, out) in ["/first", "/second"].into_iter().enumerate() {
        let output = run(out);
        let count = fetches(&output, processes);
        assert!(
            get(&client, out) == expected,
            "{out} of {processes} processes"
        );
        match turn {
            0 => assert!(
                count > 10 * learned,
                "{count} of {processes} processes, before"
            ),
            _ => assert_eq!(count, learned, "{processes} processes, after learning"),
        }
    }
}

fn by_themselves(program: &Path, url: &str, processes: usize, arguments: &[&str]) -> Output {
    Command::new("timeout")
        .arg("100")
        .arg(program)
        .args(arguments)
        .env("PARIO_URL", url)
        .env("PARIO_TMK_PROCESSES", processes.to_string())
        .env("PARIO_TMK_MEBIBYTES", "16")
        .output()
        .unwrap()
}

#[test]
fn seed003_pio16_a_program_in_c_fetches_what_is_shared_after_learning() {
    let program = compile("gcc", "c99", "sor_tmk.c");
    let dir = TempDir::new();
    let url = format!("dir:{}", dir.path().join("d").display());
    two_runs(&url, 4, 9, |out| {
        by_themselves(&program, &url, 4, &["/in", out])
    });
    let service = ServiceOptions::new(2).start();
    let url = service.url().to_string();
    two_runs(&url, 2, 3, |out| {
        by_themselves(&program, &url, 2, &["/in", out])
    });
    // Alone it works too.
    let client = connect(&url);
    assert_eq!(
        fetches(&by_themselves(&program, &url, 1, &["/in", "/alone"]), 1),
        0
    );
    assert!(get(&client, "/alone") == bytes(&relaxed()));
    drop(service);
    fs::remove_file(&program).unwrap();
}

#[test]
fn a_launcher_of_mpi_programs_starts_programs_for_treadmarks() {
    let mpi = "mpiexec.mpich";
    if !is_there(mpi) {
        return testkit::skipped("MPICH is not installed");
    }
    // Another standard, so that it is another program than that of the test beside.
    let program = compile("gcc", "c11", "sor_tmk.c");
    let service = ServiceOptions::new(2).start();
    let url = service.url().to_string();
    two_runs(&url, 2, 3, |out| {
        Command::new("timeout")
            .args(["100", mpi, "-n", "2"])
            .arg(&program)
            .args(["/in", out])
            .env("PARIO_URL", &url)
            .env("PARIO_TMK_MEBIBYTES", "16")
            .output()
            .unwrap()
    });
    drop(service);
    fs::remove_file(&program).unwrap();
}

#[test]
fn seed003_dsm25_variables_are_distributed_before_the_next_barrier_is_left() {
    let program = compile("gcc", "c99", "distribute_tmk.c");
    let dir = TempDir::new();
    let url = format!("dir:{}", dir.path().join("d").display());
    for processes in [1, 2, 5] {
        let text = printed(&by_themselves(&program, &url, processes, &[]));
        assert_eq!(text.matches("all is well").count(), processes, "{text}");
    }
    fs::remove_file(&program).unwrap();
}

#[test]
fn processes_of_which_one_dies_end_and_say_which() {
    let program = compile("gcc", "c99", "mistakes_tmk.c");
    let dir = TempDir::new();
    let url = format!("dir:{}", dir.path().join("d").display());
    let output = by_themselves(&program, &url, 3, &["die"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    // Both others say why, and who ends next may be the first that the last one misses.
    let said = text
        .lines()
        .filter(|line| line.starts_with("Tmk_barrier: "));
    let said: Vec<&str> = said.collect();
    assert_eq!(said.len(), 2, "by both others: {text}");
    let names = |line: &&&str| line.contains("process 2 of") || line.contains("rank 2 of");
    assert!(said.iter().any(|line| names(&line)), "{text}");
    fs::remove_file(&program).unwrap();
}

#[test]
fn numbers_of_processes_that_are_none_are_refused() {
    let program = compile("gcc", "c11", "distribute_tmk.c");
    let dir = TempDir::new();
    let url = format!("dir:{}", dir.path().join("d").display());
    for (name, value, words) in [
        (
            "PARIO_TMK_RANK",
            "2",
            "PARIO_TMK_RANK: is '2'; give a number up to 1",
        ),
        (
            "PARIO_TMK_PROCESSES",
            "0",
            "PARIO_TMK_PROCESSES: is 0; give at least 1",
        ),
        (
            "PARIO_TMK_PROCESSES",
            "many",
            "PARIO_TMK_PROCESSES: is 'many'",
        ),
        ("PARIO_TMK_MEBIBYTES", "-1", "PARIO_TMK_MEBIBYTES: is '-1'"),
    ] {
        let mut command = Command::new("timeout");
        command.arg("100").arg(&program).env("PARIO_URL", &url);
        if name == "PARIO_TMK_RANK" {
            command.env("PARIO_TMK_PROCESSES", "2");
        }
        let output = command.env(name, value).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(words), "{text}");
    }
    fs::remove_file(&program).unwrap();
}

#[test]
fn mistakes_in_programs_for_treadmarks_are_told_and_never_a_crash() {
    let program = compile("gcc", "c11", "mistakes_tmk.c");
    let dir = TempDir::new();
    let url = format!("dir:{}", dir.path().join("d").display());
    let output = by_themselves(&program, &url, 1, &[]);
    assert!(printed(&output).ends_with("all is well\n"));
    for (mistake, words) in [
        (
            "early",
            "Tmk_barrier: the shared memory is not there; call Tmk_startup",
        ),
        ("twice", "Tmk_startup: the shared memory is there already"),
        (
            "release",
            "Tmk_lock_release: lock 3 is released but not held",
        ),
        ("free", "Tmk_free: memory: is not what Tmk_malloc gave"),
        ("local", "Tmk_distribute: variable: is no global variable"),
        (
            "number",
            "Tmk_barrier: id: is 2147483648; give a number below",
        ),
    ] {
        let output = by_themselves(&program, &url, 1, &[mistake]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{mistake}: {text}");
        assert!(text.contains(words), "{mistake}: {text}");
    }
    fs::remove_file(&program).unwrap();
}
