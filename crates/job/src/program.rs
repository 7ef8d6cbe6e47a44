//! The `pario` program, for a process that has to start it: where it is, and what it must not inherit.
//!
//! A library that is loaded into programs of others says where it lies ([`say_beside`]); the program is
//! looked for there as well.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Loaded into MPI programs; servers have no use for it.
const LIBRARY: &str = "libpario_mpiio.so";

static BESIDE: OnceLock<PathBuf> = OnceLock::new();

/// Says which file of this installation is loaded into this process.
pub fn say_beside(file: PathBuf) {
    // Who says it first is as right as any other.
    let _ = BESIDE.set(file);
}

/// The program: as `PARIO_PROGRAM` names it, this one, beside this one or in the same installation, or on the path.
pub fn find() -> PathBuf {
    if let Some(named) = std::env::var_os("PARIO_PROGRAM") {
        return named.into();
    }
    let here = std::env::current_exe().ok();
    if let Some(here) = here.as_ref().filter(|p| p.ends_with("pario")) {
        return here.clone();
    }
    let beside = here.map(|here| here.with_file_name("pario"));
    let installed = BESIDE
        .get()
        .into_iter()
        .flat_map(|file| beside_library(file));
    beside
        .into_iter()
        .chain(installed)
        .find(|program| program.is_file())
        .unwrap_or_else(|| "pario".into())
}

/// Where the program may be for a library: beside it as built, or in the folder of programs of the same prefix.
fn beside_library(library: &Path) -> Vec<PathBuf> {
    let folders = library.ancestors().skip(1).take(3);
    let candidates = folders.flat_map(|folder| [folder.join("pario"), folder.join("bin/pario")]);
    candidates.collect()
}

/// Keeps our own library out of what a command loads first.
pub fn without_library(command: &mut Command) {
    let Some(list) = std::env::var_os("LD_PRELOAD") else {
        return;
    };
    match others(&list) {
        Some(rest) => command.env("LD_PRELOAD", rest),
        None => command.env_remove("LD_PRELOAD"),
    };
}

/// What else is in a list of libraries.
fn others(list: &OsStr) -> Option<OsString> {
    let list = list.to_str()?;
    let rest = list
        .split([':', ' '])
        .filter(|part| !part.is_empty() && !part.ends_with(LIBRARY));
    let rest = rest.collect::<Vec<_>>().join(":");
    (!rest.is_empty()).then(|| rest.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_library_goes_and_others_stay() {
        let of = |list: &str| others(OsStr::new(list));
        assert_eq!(of("/opt/lib/libpario_mpiio.so"), None);
        assert_eq!(
            of("/a.so:/opt/lib/libpario_mpiio.so /b.so"),
            Some("/a.so:/b.so".into())
        );
    }

    #[test]
    fn the_program_is_looked_for_beside_the_library_and_in_its_prefix() {
        let found = beside_library(Path::new("/opt/pario/lib/pario/libpario_mpiio.so"));
        assert!(found.contains(&"/opt/pario/bin/pario".into()));
        assert!(found.contains(&"/opt/pario/lib/pario/pario".into()));
    }
}
