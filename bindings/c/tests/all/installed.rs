//! What `make install` installs, and projects of others that are built against it.
//!
//! The programs of this build are installed below a folder, once, so nothing is compiled but the consumer.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use system_tests::TempDir;

use crate::build::{archive, home, is_there, run};

/// Runs the script that installs, with a folder in front of the prefix.
fn install(destdir: &Path, arguments: &[&str]) -> String {
    let script = home().join("../../scripts/install");
    let built = archive().parent().expect("a folder").to_owned();
    run(Command::new(script)
        .args(arguments)
        .env("PREFIX", "/pario")
        .env("DESTDIR", destdir)
        .env("BUILT", built)
        .env_remove("LIBDIR")
        .env_remove("INCLUDEDIR"))
}

fn files_below(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files_below(&entry.path())),
            false => {
                found.insert(entry.path());
            }
        }
    }
    found
}

/// Builds the consumer by both ways, and uses it.
fn consume(dir: &Path, prefix: &Path) {
    let consumer = home().join("programs/consumer");
    let library = prefix.join("lib");
    let url = format!("dir:{}", dir.join("d").display());
    let uses = |program: &Path| {
        let printed = run(Command::new(program)
            .arg(&url)
            .env("LD_LIBRARY_PATH", &library));
        assert_eq!(printed, "all is well\n", "{}", program.display());
    };
    let flags = run(Command::new("pkg-config")
        .arg(format!("--define-variable=prefix={}", prefix.display()))
        .args(["--cflags", "--libs", "pario >= 0.1"])
        .env("PKG_CONFIG_PATH", library.join("pkgconfig")));
    let program = dir.join("by-pkg-config");
    run(Command::new("cc")
        .arg(consumer.join("consumer.c"))
        .args(flags.split_whitespace())
        .arg("-o")
        .arg(&program));
    uses(&program);
    if !is_there("cmake") {
        return testkit::skipped("cmake is not installed");
    }
    let build = dir.join("by-cmake");
    run(Command::new("cmake")
        .arg("-S")
        .arg(&consumer)
        .arg("-B")
        .arg(&build)
        .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
    run(Command::new("cmake").arg("--build").arg(&build));
    uses(&build.join("consumer"));
}

/// Builds the quick start of ViPIOS by both ways, and runs it.
fn consume_vipios(dir: &Path, prefix: &Path) {
    let source = home().join("../vipios/programs/quick_start.c");
    let library = prefix.join("lib");
    let url = format!("dir:{}", dir.join("v").display());
    let uses = |program: &Path| {
        let printed = run(Command::new(program)
            .env("PARIO_URL", &url)
            .env("LD_LIBRARY_PATH", &library));
        assert!(printed.ends_with("all is well\n"), "{printed}");
    };
    let flags = run(Command::new("pkg-config")
        .arg(format!("--define-variable=prefix={}", prefix.display()))
        .args(["--cflags", "--libs", "vipios >= 0.1"])
        .env("PKG_CONFIG_PATH", library.join("pkgconfig")));
    let program = dir.join("vipios-by-pkg-config");
    run(Command::new("cc")
        .arg(&source)
        .args(flags.split_whitespace())
        .arg("-o")
        .arg(&program));
    uses(&program);
    if !is_there("cmake") {
        return testkit::skipped("cmake is not installed");
    }
    let project = dir.join("vipios-by-cmake");
    fs::create_dir(&project).unwrap();
    let text = format!(
        "cmake_minimum_required(VERSION 3.13)\nproject(client C)\nfind_package(vipios 0.1 REQUIRED)\n\
         add_executable(client {})\ntarget_link_libraries(client vipios::vipios)\n",
        source.display()
    );
    fs::write(project.join("CMakeLists.txt"), text).unwrap();
    let build = project.join("build");
    run(Command::new("cmake")
        .arg("-S")
        .arg(&project)
        .arg("-B")
        .arg(&build)
        .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
    run(Command::new("cmake").arg("--build").arg(&build));
    uses(&build.join("client"));
}

/// Translates a program in HPF, builds it, and runs it, with what is installed alone.
fn consume_fortran(dir: &Path, prefix: &Path) {
    if !is_there("gfortran") {
        return testkit::skipped("gfortran is not installed");
    }
    let library = prefix.join("lib");
    let (pario, url) = (
        prefix.join("bin/pario"),
        format!("dir:{}", dir.join("f").display()),
    );
    let translated = dir.join("jacobi.pario.f90");
    run(Command::new(&pario)
        .arg("hpf")
        .arg(home().join("../../crates/hpf/programs/jacobi.f90"))
        .arg("--output")
        .arg(&translated));
    let flags = run(Command::new("pkg-config")
        .arg(format!("--define-variable=prefix={}", prefix.display()))
        .args(["--cflags", "--libs", "pario-fortran >= 0.1"])
        .env("PKG_CONFIG_PATH", library.join("pkgconfig")));
    let program = dir.join("jacobi");
    run(Command::new("gfortran")
        .arg("-fcheck=all")
        .arg(&translated)
        .args(flags.split_whitespace())
        .arg("-o")
        .arg(&program));
    let printed = run(Command::new(&program)
        .env("PARIO_URL", &url)
        .env("LD_LIBRARY_PATH", &library));
    assert_eq!(printed, "steps: 50\n");
    let size = run(Command::new(&pario)
        .args(["stat", "/plate", "--json"])
        .env("PARIO_URL", &url));
    assert!(size.contains("4612"), "{size}");
}

#[test]
fn others_build_against_what_is_installed_and_it_goes_again() {
    for file in ["pario-bench", "libpario_mpiio.so"] {
        if !archive().with_file_name(file).is_file() {
            let why = format!("{file} is not built; cargo build -p bench -p mpiio");
            return testkit::skipped(&why);
        }
    }
    let dir = TempDir::new();
    let root = dir.path().join("root");
    let prefix = root.join("pario");
    install(&root, &[]);
    let listed = install(&root, &["--list"]);
    let listed = listed
        .lines()
        .map(|line| root.join(line.trim_start_matches('/')));
    let manual = prefix.join("share/man/man1");
    let mut found = files_below(&root);
    let pages = files_below(&manual);
    found.retain(|path| !pages.contains(path));
    assert_eq!(found, listed.collect::<BTreeSet<PathBuf>>());
    for page in ["pario.1", "pario-up.1", "pario-serve-io.1"] {
        let text = fs::read_to_string(manual.join(page)).unwrap();
        assert!(
            text.contains(".TH") && text.contains("pario"),
            "{page}: {text}"
        );
    }
    consume(dir.path(), &prefix);
    consume_vipios(dir.path(), &prefix);
    consume_fortran(dir.path(), &prefix);
    // The program finds the MPI-IO library under the prefix.
    let shown = run(Command::new(prefix.join("bin/pario"))
        .args(["run", "--", "printenv", "LD_PRELOAD"])
        .env(
            "PARIO_URL",
            format!("dir:{}", dir.path().join("d").display()),
        )
        .env_remove("LD_PRELOAD"));
    let ours = prefix.join("lib/libpario_mpiio.so");
    assert!(shown.contains(ours.to_str().unwrap()), "{shown}");
    // What is not ours stays.
    let other = manual.join("other.1");
    fs::write(&other, "").unwrap();
    install(&root, &["--uninstall"]);
    assert_eq!(files_below(&root), BTreeSet::from([other]));
}
