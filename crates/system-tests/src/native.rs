//! C interfaces of this build: their shared libraries, and programs compiled against them.
//!
//! The archives stand beside the programs of the workspace; `scripts/test` builds them before. A library is linked once
//! for each archive, by whichever test comes first.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

/// A C interface.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    /// The crate that makes the archive.
    pub package: &'static str,
    /// The file of the archive.
    pub archive: &'static str,
    /// The library, as `-l` has it.
    pub library: &'static str,
    /// The folder of the crate, with `include` and `programs` in it.
    pub home: &'static str,
    /// Where libraries and programs are made.
    pub scratch: &'static str,
}

/// Runs a command that has to succeed: what it printed.
pub fn run(command: &mut Command) -> String {
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
pub fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

impl Interface {
    /// The archive of this build.
    pub fn archive(&self) -> PathBuf {
        let archive = crate::programs::pario().with_file_name(self.archive);
        assert!(
            archive.is_file(),
            "{} is not there; build it with cargo build -p {}",
            archive.display(),
            self.package
        );
        archive
    }

    /// The folder with the shared library of this build.
    pub fn folder(&self) -> PathBuf {
        let archive = self.archive();
        let about = fs::metadata(&archive).unwrap();
        let changed = about
            .modified()
            .unwrap()
            .duration_since(UNIX_EPOCH)
            .unwrap();
        let (root, prefix) = (Path::new(self.scratch), format!("lib{}-", self.library));
        let name = format!("{prefix}{}-{}", changed.as_nanos(), about.len());
        let folder = root.join(&name);
        if folder.join(format!("lib{}.so", self.library)).exists() {
            return folder;
        }
        for old in fs::read_dir(root).unwrap().flatten() {
            let old_name = old.file_name().to_string_lossy().into_owned();
            // Those of this build may be under way in another test.
            if old_name.starts_with(&prefix) && !old_name.starts_with(&name) {
                let _ = fs::remove_dir_all(old.path());
            }
        }
        let new = root.join(format!("{name}-{}", std::process::id()));
        let script = Path::new(self.home).join("../../scripts/link-c");
        run(Command::new(script).arg(&archive).arg(&new));
        // Another test may have been first; then its library is as good.
        if fs::rename(&new, &folder).is_err() {
            fs::remove_dir_all(&new).unwrap();
        }
        folder
    }

    /// Adds what a compiler needs to find header and library.
    pub fn link(&self, command: &mut Command) {
        let folder = self.folder();
        command
            .arg("-I")
            .arg(Path::new(self.home).join("include"))
            .arg("-L")
            .arg(&folder)
            .arg(format!("-Wl,-rpath,{}", folder.display()))
            .arg(format!("-l{}", self.library));
    }

    /// A program of the folder `programs`, compiled without a warning. With other interfaces beside this one.
    pub fn compile_with(
        &self,
        others: &[Interface],
        compiler: &str,
        standard: &str,
        source: &str,
    ) -> PathBuf {
        let stem = source.replace(['.', '/'], "-");
        let name = format!("{stem}-{compiler}-{standard}-{}", std::process::id());
        let program = Path::new(self.scratch).join(name);
        let mut command = Command::new(compiler);
        command
            .arg(format!("-std={standard}"))
            .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-g"])
            .arg(Path::new(self.home).join("programs").join(source))
            .arg("-o")
            .arg(&program);
        self.link(&mut command);
        for other in others {
            other.link(&mut command);
        }
        run(command.arg("-pthread"));
        program
    }

    /// A program of the folder `programs`, compiled without a warning.
    pub fn compile(&self, compiler: &str, standard: &str, source: &str) -> PathBuf {
        self.compile_with(&[], compiler, standard, source)
    }
}
