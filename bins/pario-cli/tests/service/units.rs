//! The units for systemd: what they start, started as they say it, and what systemd says of them where it is there.
//! Nothing is installed: options and directories are those of a test.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scratch::Scratch;

fn units() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd")
}

/// The words behind `ExecStart=`, with the directories of a test and the options of the environment file.
#[track_caller]
fn command(scratch: &Scratch, unit: &str, options: &str) -> Vec<String> {
    let text = std::fs::read_to_string(units().join(unit)).expect(unit);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let line = line.unwrap_or_else(|| panic!("{unit} starts nothing"));
    let line = line
        .strip_prefix("@PREFIX@/bin/pario ")
        .expect("the installed program");
    let state = scratch.path("state").display().to_string();
    let line = line
        .replace("/var/lib/pario", &state)
        .replace("%i", "nvme0");
    let words = line.split_whitespace();
    let words = words.flat_map(|word| match word.starts_with("$PARIO_") {
        true => options.split_whitespace(),
        false => word.split_whitespace(),
    });
    words.map(str::to_owned).collect()
}

#[test]
fn units_start_what_serves() {
    let scratch = Scratch::new("units");
    std::fs::create_dir_all(scratch.path("state/io-nvme0")).expect("made");
    let start = |unit: &str, options: &str| {
        let words = command(&scratch, unit, options);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        scratch.start(&words)
    };
    let (mut meta, line) = start("pario-meta.service.in", "--slow 500ms");
    let url = line
        .strip_prefix("listening on ")
        .unwrap_or_else(|| panic!("{line}"));
    let options = format!("--meta {url} --listen unix:io.sock --disk data");
    let (mut io, line) = start("pario-io@.service.in", &options);
    assert!(line.starts_with("listening on "), "{line}");
    scratch.text(&["--url", url, "mkdir", "/d"]);
    io.terminate();
    meta.terminate();
    let (mut whole, line) = start(
        "pario.service.in",
        "--servers 1 --store memory --memory 64MiB",
    );
    assert!(line.starts_with("# service at "), "{line}");
    // As `systemctl reload` does.
    let state = scratch.path("state").display().to_string();
    scratch.text(&["restart", "--dir", &state]);
    whole.terminate();
}

#[test]
fn systemd_takes_the_units() {
    let Ok(version) = Command::new("systemd-analyze").arg("--version").output() else {
        testkit::skipped("there is no systemd-analyze (package systemd)");
        return;
    };
    assert!(version.status.success());
    let scratch = Scratch::new("verify");
    let program = env!("CARGO_BIN_EXE_pario");
    let bin = scratch.path("bin");
    std::fs::create_dir(&bin).expect("made");
    std::os::unix::fs::symlink(program, bin.join("pario")).expect("linked");
    let prefix = scratch.path("").display().to_string();
    let mut found = 0;
    for entry in std::fs::read_dir(units()).expect("units") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_stem()
            .and_then(|n| n.to_str())
            .expect("a name")
            .to_owned();
        let text = std::fs::read_to_string(&path).expect("read");
        let text = text.replace("@PREFIX@", prefix.trim_end_matches('/'));
        let name = name.replace("@.", "@nvme0.");
        std::fs::write(scratch.path(&name), text).expect("written");
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--man=no", "--recursive-errors=no"]);
        let output = verify.arg(scratch.path(&name)).output().expect("started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!errors.contains(&name), "{name}: {errors}");
        found += 1;
    }
    assert_eq!(found, 3);
}
