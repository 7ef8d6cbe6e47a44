//! The MPI-IO library around a command: where it is, and how programs come to load it.
//!
//! It is loaded before everything else (`LD_PRELOAD`), in front of what is named there already, so that
//! unmodified programs find its `MPI_File_*` first. Where it is missing the command runs without it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file.
const LIBRARY: &str = "libpario_mpiio.so";
/// Names it where it is neither beside the program nor in the library folder next to it.
const NAMED: &str = "PARIO_MPIIO_LIBRARY";
/// Which files of MPI programs are Pario's; `off` leaves the library out.
const SWITCH: &str = "PARIO_MPIIO";

/// The library, if it is there.
pub fn library() -> Option<PathBuf> {
    if std::env::var_os(SWITCH).is_some_and(|value| value == "off") {
        return None;
    }
    if let Some(named) = std::env::var_os(NAMED).filter(|name| !name.is_empty()) {
        return Some(named.into());
    }
    let here = std::env::current_exe().ok()?;
    candidates(&here).into_iter().find(|path| path.is_file())
}

/// Where it may be for a program: beside it as built, or in the library folder of the same prefix.
fn candidates(program: &Path) -> Vec<PathBuf> {
    let Some(folder) = program.parent() else {
        return Vec::new();
    };
    let mut list = vec![folder.join(LIBRARY)];
    if let Some(prefix) = folder.parent() {
        list.push(prefix.join("lib").join(LIBRARY));
        list.push(prefix.join("lib/pario").join(LIBRARY));
    }
    list
}

/// The list of libraries to load first, with ours in front once.
fn with_library(list: Option<&OsStr>, library: &Path) -> OsString {
    let mut all = OsString::from(library);
    let list = list.map(OsStr::to_string_lossy).unwrap_or_default();
    for other in list.split([':', ' ']).filter(|part| !part.is_empty()) {
        if Path::new(other) != library {
            all.push(":");
            all.push(other);
        }
    }
    all
}

/// Has a command, and what it starts, load the library.
pub fn load(command: &mut Command) {
    if let Some(library) = library() {
        let list = std::env::var_os("LD_PRELOAD");
        command.env("LD_PRELOAD", with_library(list.as_deref(), &library));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_comes_first_and_once_and_others_stay() {
        let ours = Path::new("/opt/pario/lib/libpario_mpiio.so");
        assert_eq!(with_library(None, ours), ours.as_os_str());
        assert_eq!(
            with_library(Some(OsStr::new("/lib/a.so /lib/b.so")), ours),
            "/opt/pario/lib/libpario_mpiio.so:/lib/a.so:/lib/b.so"
        );
        let again = with_library(
            Some(OsStr::new("/opt/pario/lib/libpario_mpiio.so:/lib/a.so")),
            ours,
        );
        assert_eq!(again, "/opt/pario/lib/libpario_mpiio.so:/lib/a.so");
    }

    #[test]
    fn it_is_looked_for_beside_the_program_and_under_its_prefix() {
        let found = candidates(Path::new("/opt/pario/bin/pario"));
        assert_eq!(found[0], Path::new("/opt/pario/bin/libpario_mpiio.so"));
        assert_eq!(found[1], Path::new("/opt/pario/lib/libpario_mpiio.so"));
    }
}
