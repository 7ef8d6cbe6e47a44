//! Whole programs: translated, compiled, run by the processes they are distributed over, and by one
//! alone. Single statements are in `statements`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hpf::{Arrays, Form, Options, Translation, translate};
use pario_fortran::{compile, compiler, root};
use system_tests::{Service, ServiceOptions, TempDir};

/// Most seconds of a program.
const LIMIT: &str = "100";

/// Translates a text, and compiles it in a folder.
pub(crate) fn built(
    text: &str,
    options: &Options,
    folder: &Path,
    name: &str,
    flags: &[&str],
) -> (Translation, PathBuf) {
    let done = translate(text, options).unwrap_or_else(|e| panic!("{e}"));
    let ending = if options.form == Form::Fixed {
        "f"
    } else {
        "f90"
    };
    let source = folder.join(format!("{name}.pario.{ending}"));
    fs::write(&source, &done.text).unwrap();
    let program = compile(&[&source], folder, name, flags);
    (done, program)
}

/// What all processes of a program print, by rank.
pub(crate) fn run(program: &Path, service: &Service, processes: usize) -> Vec<String> {
    let team = format!(
        "{}-{processes}",
        program.file_name().unwrap().to_string_lossy()
    );
    let start = |rank: usize| {
        Command::new("timeout")
            .arg(LIMIT)
            .arg(program)
            .env("PARIO_URL", service.url().to_string())
            .env("PARIO_HPF_RANK", rank.to_string())
            .env("PARIO_HPF_PROCESSES", processes.to_string())
            .env("PARIO_HPF_TEAM", &team)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let all: Vec<_> = (0..processes).map(start).collect();
    let outputs: Vec<_> = all
        .into_iter()
        .map(|child| child.wait_with_output().unwrap())
        .collect();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // One that fails may do so because of another.
    let failed = outputs.iter().filter(|output| !output.status.success());
    let why = failed.map(|o| format!("{}: {}{}", o.status, text(&o.stderr), text(&o.stdout)));
    let why: Vec<String> = why.collect();
    assert!(why.is_empty(), "{}", why.join("\n"));
    outputs.iter().map(|output| text(&output.stdout)).collect()
}

fn program(name: &str) -> String {
    fs::read_to_string(root().join("crates/hpf/programs").join(name)).unwrap()
}

/// Lines that are in both, in order, as far as they are neither translated nor added.
fn unchanged(before: &str, after: &str, translated: &[usize]) {
    let mut rest = after.lines();
    for (number, line) in before.lines().enumerate() {
        if !translated.contains(&(number + 1)) {
            assert!(
                rest.any(|l| l == line),
                "line {} is gone: {line}",
                number + 1
            );
        }
    }
}

#[test]
fn seed004_s90_a_plate_is_written_in_blocks_and_read_in_turn() {
    if let Err(why) = compiler() {
        return testkit::skipped(&why);
    }
    let dir = TempDir::new();
    let text = program("jacobi.f90");
    let (done, built) = built(&text, &Options::default(), dir.path(), "jacobi", &[]);
    // The lines of statements that were translated, and those they go on in.
    unchanged(&text, &done.text, &[22, 24, 25, 27, 28, 30, 31, 32, 34]);
    let statements: Vec<&str> = done.statements.iter().map(|s| s.statement).collect();
    assert_eq!(
        statements,
        [
            "OPEN", "WRITE", "CLOSE", "INQUIRE", "OPEN", "READ", "READ", "CLOSE"
        ]
    );
    let service = ServiceOptions::new(2).start();
    assert_eq!(run(&built, &service, 4), ["steps: 50\n"; 4]);
    // The file is the whole plate behind a number, whichever process wrote it.
    let bytes = || {
        let mut cat = Command::new(system_tests::programs::pario());
        let output = cat
            .args(["cat", "/plate"])
            .env("PARIO_URL", service.url().to_string())
            .output()
            .unwrap();
        assert!(output.status.success());
        output.stdout
    };
    let by_four = bytes();
    assert_eq!(by_four.len(), 4 + 24 * 24 * 8);
    assert_eq!(by_four[..4], 50i32.to_le_bytes());
    // The first column is the warm side.
    assert_eq!(by_four[4..12], 100f64.to_le_bytes());
    assert_eq!(run(&built, &service, 1), ["steps: 50\n"]);
    assert_eq!(bytes(), by_four);
}

#[test]
fn seed004_s71_fixed_form_with_labels_scratch_files_and_records_runs() {
    if let Err(why) = compiler() {
        return testkit::skipped(&why);
    }
    let dir = TempDir::new();
    let options = Options {
        form: Form::Fixed,
        ..Options::default()
    };
    let text = program("fixed.f");
    let flags = ["-std=legacy", "-Wno-error"];
    let (done, built) = built(&text, &options, dir.path(), "fixed", &flags);
    assert!(
        done.text.lines().all(|line| line.len() <= 72),
        "{}",
        done.text
    );
    assert!(
        done.text.contains("call pario_hpf_will_read(11, A"),
        "{}",
        done.text
    );
    assert!(
        done.text
            .contains("      WRITE (20, '(A)') 'WRITE (11) A'\n")
    );
    let service = ServiceOptions::new(2).start();
    assert_eq!(
        run(&built, &service, 2),
        ["read: WRITE (11) A\n", "read: WRITE (11) A\n"]
    );
    assert_eq!(run(&built, &service, 1), ["read: WRITE (11) A\n"]);
}

#[test]
fn local_parts_are_declared_where_the_option_says_so() {
    if let Err(why) = compiler() {
        return testkit::skipped(&why);
    }
    let dir = TempDir::new();
    let options = Options {
        arrays: Arrays::Local,
        ..Options::default()
    };
    let (_, built) = built(&program("local.f90"), &options, dir.path(), "local", &[]);
    let service = ServiceOptions::new(2).start();
    assert_eq!(run(&built, &service, 2), ["local parts\n"; 2]);
}

#[test]
fn seed004_s90_parts_of_arrays_are_the_same_for_many_processes_and_for_one() {
    if let Err(why) = compiler() {
        return testkit::skipped(&why);
    }
    let dir = TempDir::new();
    let text = program("sections.f90");
    let (done, built) = built(&text, &Options::default(), dir.path(), "sections", &[]);
    assert_eq!(done.notes, []);
    let service = ServiceOptions::new(2).start();
    assert_eq!(run(&built, &service, 4), ["parts\n"; 4]);
    let column = |j: i32| (1..=6).flat_map(move |i: i32| (10 * i + j).to_le_bytes());
    let stream: Vec<u8> = (1..=7)
        .flat_map(|j| column(if j == 2 { 7 } else { j }))
        .collect();
    for processes in [4, 1] {
        let bytes = |path: &str| {
            let mut cat = Command::new(system_tests::programs::pario());
            let output = cat
                .args(["cat", path])
                .env("PARIO_URL", service.url().to_string())
                .output()
                .unwrap();
            assert!(output.status.success());
            output.stdout
        };
        assert_eq!(bytes("/stream"), stream, "{processes} processes");
        assert_eq!(bytes("/sections"), column(5).collect::<Vec<_>>());
        assert_eq!(run(&built, &service, 1), ["parts\n"]);
    }
}
