//! Compiles the programs of `conformance/`, once for each MPI and each state of their sources.
//!
//! Tests run in processes of their own, several at a time: a lock on the folder lets one compile while
//! the others wait for it.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::mpi::Mpi;

/// Where the sources are.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance")
}

/// A program in C.
pub(crate) fn c(mpi: Mpi, name: &str) -> PathBuf {
    let arguments = ["-g", "-O1", "-Wall", "-Wextra", "-Wno-unused-function"];
    built(&mpi.compiler(), mpi.name(), name, &arguments, "")
}

/// A program in Fortran, if the MPI has a compiler for it.
pub(crate) fn fortran(mpi: Mpi, name: &str) -> Option<PathBuf> {
    let compiler = mpi.fortran()?;
    Some(built(&compiler, mpi.name(), name, &["-g", "-O1"], ""))
}

/// A program that needs further libraries.
pub(crate) fn with(
    compiler: &Path,
    mpi: Mpi,
    name: &str,
    arguments: &[&str],
    after: &str,
) -> PathBuf {
    built(compiler, mpi.name(), name, arguments, after)
}

/// A program that is linked with the library under test, before MPI.
pub(crate) fn linked(
    compiler: &Path,
    mpi: Mpi,
    name: &str,
    arguments: &[&str],
    after: &str,
) -> PathBuf {
    let library = library();
    let folder = library.parent().expect("a folder").display();
    let after = format!("-L{folder} -lpario_mpiio -Wl,-rpath,{folder} {after}");
    // Named apart from the same program without it.
    let mut all = arguments.to_vec();
    all.push("-DLINKED");
    built(compiler, mpi.name(), name, &all, &after)
}

/// The library that makes MPICH give the processor away.
pub(crate) fn yielding() -> PathBuf {
    let arguments = ["-O2", "-shared", "-fPIC"];
    built(Path::new("cc"), "any", "yield.c", &arguments, "-ldl")
}

/// The library under test, beside the programs.
pub(crate) fn library() -> PathBuf {
    let pario = system_tests::programs::pario();
    let path = pario.with_file_name("libpario_mpiio.so");
    let there = path.is_file();
    assert!(
        there,
        "{} is not there; build it with cargo build -p mpiio",
        path.display()
    );
    path
}

fn built(compiler: &Path, kind: &str, name: &str, arguments: &[&str], after: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("mpi")
        .join(kind);
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let lock = File::create(folder.join("lock")).expect("a lock");
    lock.lock().expect("the lock");
    let mut hasher = DefaultHasher::new();
    for source in [name, "check.h", "fortran.inc", "typemap.h"] {
        let path = sources().join(source);
        let text = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        text.hash(&mut hasher);
    }
    (compiler, arguments, after).hash(&mut hasher);
    let program = folder.join(format!("{name}-{:016x}", hasher.finish()));
    if program.exists() {
        return program;
    }
    let part = folder.join(format!("{name}.part"));
    let mut command = Command::new(compiler);
    command.args(arguments).arg("-o").arg(&part);
    command
        .arg(sources().join(name))
        .args(after.split_whitespace());
    // Modules of Fortran are written where the compiler runs.
    command.current_dir(&folder);
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}; scripts/setup installs it", compiler.display()));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{said}");
    fs::rename(&part, &program).expect("a program in its place");
    program
}
