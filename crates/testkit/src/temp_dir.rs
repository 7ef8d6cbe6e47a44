//! A directory that ends with its test.
//!
//! Its path is short, since sockets lie in it and the kernel takes 107 bytes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static MADE: AtomicU64 = AtomicU64::new(0);

/// A directory of its own, removed when dropped unless `PARIO_KEEP` is set.
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    /// Makes it.
    pub fn new() -> TempDir {
        TempDir::inside(&std::env::temp_dir())
    }

    /// Makes it in another directory, such as one of another file system.
    pub fn inside(place: &Path) -> TempDir {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("pario-t-{}-{number}", std::process::id());
        let path = place.join(name);
        // What a process of the same number left behind is of no use.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        TempDir(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Something in it.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }
}

impl Default for TempDir {
    fn default() -> Self {
        TempDir::new()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if std::env::var_os("PARIO_KEEP").is_some() {
            eprintln!("left behind: {}", self.0.display());
            return;
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
