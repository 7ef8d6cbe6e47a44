//! The shared library of this build, and programs compiled against it.
//!
//! The archive stands beside the programs of the workspace; `scripts/test` builds it before. The library is linked once
//! for each archive, by whichever test comes first.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

/// The folder of the crate.
pub(crate) fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command that has to succeed: what it printed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{said}{printed}",
        output.status
    );
    printed.into_owned()
}

/// Whether there is such a program.
pub(crate) fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// The archive of this build.
pub(crate) fn archive() -> PathBuf {
    let programs = system_tests::programs::pario();
    let archive = programs.with_file_name("libpario_c.a");
    assert!(
        archive.is_file(),
        "{} is not there; build it with cargo build -p pario_c",
        archive.display()
    );
    archive
}

/// The folder with the shared library of this build.
pub(crate) fn library() -> PathBuf {
    let archive = archive();
    let about = fs::metadata(&archive).unwrap();
    let changed = about
        .modified()
        .unwrap()
        .duration_since(UNIX_EPOCH)
        .unwrap();
    let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let name = format!("libpario-{}-{}", changed.as_nanos(), about.len());
    let folder = root.join(&name);
    if folder.join("libpario.so").exists() {
        return folder;
    }
    for old in fs::read_dir(root).unwrap().flatten() {
        let old_name = old.file_name().to_string_lossy().into_owned();
        // Those of this build may be under way in another test.
        if old_name.starts_with("libpario-") && !old_name.starts_with(&name) {
            let _ = fs::remove_dir_all(old.path());
        }
    }
    let new = root.join(format!("{name}-{}", std::process::id()));
    let script = home().join("../../scripts/link-c");
    run(Command::new(script).arg(&archive).arg(&new));
    // Another test may have been first; then its library is as good.
    if fs::rename(&new, &folder).is_err() {
        fs::remove_dir_all(&new).unwrap();
    }
    folder
}

/// A program, compiled without a warning.
pub(crate) fn compile(compiler: &str, standard: &str, source: &str) -> PathBuf {
    let library = library();
    let stem = source.replace('.', "-");
    let name = format!("{stem}-{compiler}-{standard}-{}", std::process::id());
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut command = Command::new(compiler);
    command
        .arg(format!("-std={standard}"))
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-g"])
        .arg("-I")
        .arg(home().join("include"))
        .arg(home().join("programs").join(source))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&library)
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .args(["-lpario", "-pthread"]);
    run(&mut command);
    program
}
