//! Reading the working tree: every text file that belongs to the project, in a fixed order.
//!
//! Build products, the private virtual environment and hidden folders are left out by name, not by
//! asking a version control program: the checks also run from an unpacked archive.

use crate::File;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The root of the repository, found from the folder of this crate.
pub fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder
        .ancestors()
        .nth(2)
        .unwrap_or(crate_folder)
        .to_owned()
}

/// All text files below `root`, sorted by path. Files that are not UTF-8 are data and left out.
pub fn read(root: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    visit(root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn visit(folder: &Path, prefix: &str, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if belongs(&path, &name) {
                visit(&entry.path(), &format!("{path}/"), files)?;
            }
        } else if kind.is_file() {
            match fs::read(entry.path()) {
                Ok(bytes) => {
                    if let Ok(text) = String::from_utf8(bytes) {
                        files.push(File { path, text });
                    }
                }
                // An editor's or a compiler's temporary file may vanish between listing and reading.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Whether a folder holds sources. Hidden folders do not, except the one with the CI entry point.
fn belongs(path: &str, name: &str) -> bool {
    let hidden = name.starts_with('.') && path != ".ci" && path != ".config";
    let products =
        name == "target" || name.starts_with("target-") || name == "proptest-regressions";
    let fuzz_data = matches!(path, "fuzz/corpus" | "fuzz/artifacts");
    !(hidden || products || fuzz_data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_products_are_left_out() {
        for path in [
            "target",
            "target-asan",
            ".git",
            ".venv",
            "fuzz/corpus",
            "fuzz/target",
        ] {
            assert!(!belongs(path, path.rsplit('/').next().unwrap()), "{path}");
        }
        for path in [
            "bindings", "bins", "crates", ".ci", "docs/adr", "fuzz", "testdata",
        ] {
            assert!(belongs(path, path.rsplit('/').next().unwrap()), "{path}");
        }
    }

    #[test]
    fn tree_holds_this_file() {
        let files = read(&root()).unwrap();
        assert!(files.iter().any(|f| f.path == "crates/tidy/src/tree.rs"));
        assert!(files.iter().all(|f| !f.path.contains("target/debug")));
    }
}
