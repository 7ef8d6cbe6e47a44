//! Atomic writes that a client has died in: half of such a write may be there, until somebody writes the same bytes
//! again.
//!
//! A worker notes that it writes, with its process number; whoever takes its place writes once and counts that.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::Left;

/// See the [module](self).
pub(super) struct Torn<'a> {
    stop: &'a Path,
    me: u64,
}

impl<'a> Torn<'a> {
    pub(super) fn new(stop: &'a Path, me: u64) -> Torn<'a> {
        Torn { stop, me }
    }

    fn path(&self, me: u64) -> PathBuf {
        Left::path(self.stop, "writing", me)
    }

    /// Whether a worker of this number was killed in a write.
    pub(super) fn is_begun(&self) -> bool {
        self.path(self.me).exists()
    }

    /// A write is about to be made.
    pub(super) fn begin(&self) -> std::io::Result<()> {
        if self.is_begun() {
            return Ok(());
        }
        std::fs::write(self.path(self.me), std::process::id().to_string())
    }

    /// It was made; if another process had begun one, its half is gone.
    pub(super) fn end(&self) -> std::io::Result<()> {
        let pid = std::fs::read_to_string(self.path(self.me))?;
        if pid != std::process::id().to_string() {
            let path = Left::path(self.stop, "healed", 0);
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.append(true).create(true).open(path)?;
            file.write_all(b".")?;
        }
        std::fs::remove_file(self.path(self.me))
    }

    /// How often one was gone.
    pub(super) fn healed(&self) -> u64 {
        let path = Left::path(self.stop, "healed", 0);
        std::fs::metadata(path).map_or(0, |found| found.len())
    }

    /// Whether half of a write may have been there since `healed` was asked for.
    pub(super) fn is_excused(&self, all: u64, healed: u64) -> bool {
        let is_torn =
            |me: u64| std::fs::read_to_string(self.path(me)).is_ok_and(|pid| !is_alive(&pid));
        (0..all).any(is_torn) || self.healed() != healed
    }
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}
