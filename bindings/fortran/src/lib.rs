//! The Fortran interface of Pario, as tests use it: the library built once, programs compiled against it.
//!
//! The interface itself is in Fortran and C (`module/`), made into a library by `scripts/link-fortran`. It stands on `pario.h` alone.
//!
//! | file | owns |
//! |---|---|
//! | `module/pario.f90` | the module `pario`: files, views, layouts, teams, for arrays of any type, kind and rank |
//! | `module/pario_hpf.f90` | the module `pario_hpf`: the calls of the HPF compiler, and what `pario hpf` writes |
//! | `module/pario_out_of_core.f90` | the module `pario_out_of_core`: arrays larger than memory, slab by slab |
//! | `module/pario_irregular.f90` | the module `pario_irregular`: entries by lists of indices, with plans that are used again |
//! | `module/pario_streams.f90` | the module `pario_streams`: a stream for every virtual processor |
//! | `module/pario_fortran.c` | arrays with their descriptors as memory of the C interface |
//!
//! Invariants
//! - Programs are compiled with every warning and every check there is.
//! - Where there is no Fortran compiler, [`compiler`] says so, and tests are skipped with that reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

/// The Fortran compiler, if there is one that can be used with a C compiler.
pub fn compiler() -> Result<&'static str, String> {
    for tool in ["gfortran", "cc"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return Err(format!("{tool} is not installed"));
        }
    }
    Ok("gfortran")
}

/// The top of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
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

/// The folder with `libpario_fortran.so`, `libpario.so` and the modules of this build; made by whichever test comes first.
pub fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(made_library)
}

fn made_library() -> PathBuf {
    let program = system_tests::programs::pario();
    let archive = program.with_file_name("libpario_c.a");
    assert!(
        archive.is_file(),
        "{} is not there; build it with cargo build -p pario_c",
        archive.display()
    );
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut stamp = 0u128;
    let mut sources: Vec<PathBuf> = fs::read_dir(home.join("module"))
        .expect("the sources of the modules")
        .map(|entry| entry.expect("a source").path())
        .collect();
    sources.push(archive.clone());
    for path in sources {
        let about = fs::metadata(&path).expect("a file");
        let changed = about.modified().expect("a time").duration_since(UNIX_EPOCH);
        stamp = stamp.max(changed.map_or(0, |age| age.as_nanos()));
    }
    let parent = archive.parent().expect("a folder").join("fortran");
    fs::create_dir_all(&parent).expect("a folder for libraries");
    let name = format!("lib-{stamp}");
    let folder = parent.join(&name);
    if folder.join("libpario_fortran.so").exists() {
        return folder;
    }
    for old in fs::read_dir(&parent).expect("libraries").flatten() {
        let old_name = old.file_name().to_string_lossy().into_owned();
        // Those of this build may be under way in another test.
        if old_name.starts_with("lib-") && !old_name.starts_with(&name) {
            let _ = fs::remove_dir_all(old.path());
        }
    }
    let new = parent.join(format!("{name}-{}", std::process::id()));
    let scripts = root().join("scripts");
    run(Command::new(scripts.join("link-c")).arg(&archive).arg(&new));
    run(Command::new(scripts.join("link-fortran"))
        .arg(&new)
        .arg(&new));
    // Another test may have been first; then its library is as good.
    if fs::rename(&new, &folder).is_err() {
        fs::remove_dir_all(&new).expect("what was made twice");
    }
    folder
}

/// Compiles sources, of which one may be in C, to a program in a folder, with all checks and without a warning.
pub fn compile(sources: &[&Path], folder: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let library = library();
    let program = folder.join(name);
    let objects = sources.iter().map(|source| match source.extension() {
        Some(ending) if ending == "c" => {
            let object = folder.join(format!("{name}-c.o"));
            run(Command::new("cc")
                .args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-c"])
                .arg("-I")
                .arg(root().join("bindings/c/include"))
                .arg(source)
                .arg("-o")
                .arg(&object));
            object
        }
        _ => source.to_path_buf(),
    });
    let objects: Vec<PathBuf> = objects.collect();
    let mut command = Command::new("gfortran");
    command
        .args([
            "-fcheck=all",
            "-g",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-maybe-uninitialized",
            "-Wno-function-elimination",
            "-Wno-compare-reals",
        ])
        .args(flags)
        .arg("-J")
        .arg(folder)
        .arg("-I")
        .arg(library)
        .args(&objects)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(library)
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .args(["-lpario_fortran", "-lpario"]);
    run(&mut command);
    program
}
