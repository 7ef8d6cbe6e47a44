//! The shared library of this build, and programs compiled against it.
//!
//! Left to others: how they are made (`system_tests::native`).

use std::path::{Path, PathBuf};

use system_tests::native::Interface;
pub(crate) use system_tests::native::{is_there, run};

const PARIO: Interface = Interface {
    package: "pario_c",
    archive: "libpario_c.a",
    library: "pario",
    home: env!("CARGO_MANIFEST_DIR"),
    scratch: env!("CARGO_TARGET_TMPDIR"),
};

/// The folder of the crate.
pub(crate) fn home() -> &'static Path {
    Path::new(PARIO.home)
}

/// The archive of this build.
pub(crate) fn archive() -> PathBuf {
    PARIO.archive()
}

/// The folder with the shared library of this build.
pub(crate) fn library() -> PathBuf {
    PARIO.folder()
}

/// A program, compiled without a warning.
pub(crate) fn compile(compiler: &str, standard: &str, source: &str) -> PathBuf {
    PARIO.compile(compiler, standard, source)
}
