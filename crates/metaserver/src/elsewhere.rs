//! The mark in the directory of the manager that says: clients of other hosts may still believe what an earlier start has told them.
//!
//! Such a client notices at once that its manager has gone, if its network says so. If not, or if it sleeps, it believes for
//! `control::recalls::VALID_MS` after its last question. A start that finds the mark changes nothing that can have been told before that time
//! has passed.
//!
//! ```text
//!  start 1   marks the directory -> tells stamps -> dies
//!  client                                    believes until then + VALID_MS at most
//!  start 2   finds the mark -> serves -> a change waits until its start + VALID_MS
//! ```
//!
//! Invariants
//! - Nothing is told to clients elsewhere before the mark is durable.
//! - The mark is removed only by a start that ends in order, and when no client elsewhere holds anything.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use parking_lot::Mutex;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Mark {
    path: PathBuf,
    is_there: Mutex<bool>,
}

impl Mark {
    /// That of a directory, which may have it.
    pub(crate) fn of(path: PathBuf) -> io::Result<Mark> {
        let is_there = Mutex::new(path.try_exists()?);
        Ok(Mark { path, is_there })
    }

    /// Whether it is there.
    pub(crate) fn is_there(&self) -> bool {
        *self.is_there.lock()
    }

    /// Puts it there; whether it is durable.
    pub(crate) fn put(&self) -> bool {
        let mut is_there = self.is_there.lock();
        if !*is_there {
            let made = File::create(&self.path).and_then(|file| file.sync_all());
            *is_there = made.and_then(|()| lockfile::sync_name(&self.path)).is_ok();
        }
        *is_there
    }

    /// Takes it away.
    pub(crate) fn remove(&self) {
        let mut is_there = self.is_there.lock();
        if *is_there {
            // One that stays makes the next start wait in vain.
            let _ = fs::remove_file(&self.path);
            *is_there = false;
        }
    }
}
