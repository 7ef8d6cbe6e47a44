//! How often a sync of a disk has failed, over restarts of a server.
//!
//! After a sync that failed the kernel calls pages clean that no disk has, and may drop them from the page cache at any moment.
//! While the server runs it refuses what it had asked to be synced; the next one finds older bytes on the same boot of the
//! host and cannot tell. So a note is left, and its number goes into the [verifier](crate::verifier) of the page
//! cache at the next start: what was written before the failure and not synced is reported as lost.
//!
//! The note is a line in the file `failed-syncs` of the state directory and of every disk, so that a disk which cannot be
//! written is not the only place. It is not synced: it has to survive the process, and a boot changes the verifier anyway.
//! One note a start is enough, since all starts after it differ from all before.
//!
//! Memory that a [keeper](crate::kept) keeps outlives the process too, but what was written back from it is in the page cache like
//! anything else. So its ledger counts these starts as well, and the verifier of the memory changes with that number.
//!
//! Until a note is written, which is tried again with every report, answers to writes carry the verifier of the
//! life of the server, and a start that finds a note it cannot read does the same.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::kept::Records;

const NAME: &str = "failed-syncs";

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct FailedSyncs(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    dirs: Vec<PathBuf>,
    /// Notes of earlier starts.
    count: u64,
    standing: Standing,
    /// Where starts with the same memory are counted.
    records: Records,
    has_failed: bool,
}

/// In how many starts before this one a sync has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailedBefore {
    /// As the notes say; `None` if they cannot be read.
    pub(crate) noted: Option<u64>,
    /// As the ledger says, since this memory is there.
    pub(crate) with_memory: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// No sync has failed in this start.
    #[default]
    Sound,
    /// One has, and nothing says so to the next start.
    Unnoted,
    /// One has, and the next start will know.
    Noted,
}

impl FailedSyncs {
    /// Reads the notes in these directories and the number in the ledger, and leaves later ones there.
    pub(crate) fn keep_in(&self, dirs: Vec<PathBuf>, records: Records) -> FailedBefore {
        let found: io::Result<Vec<u64>> = dirs.iter().map(|dir| read(dir)).collect();
        let mut state = self.0.lock();
        state.dirs = dirs;
        let count = found.map(|found| found.into_iter().max().unwrap_or(0));
        match count {
            Ok(count) => state.count = count,
            Err(error) => {
                tracing::error!(%error, "a note about failed syncs cannot be read");
                // A number that no note has had, seeded by the system.
                state.count = RandomState::new().build_hasher().finish() >> 1;
                state.standing = Standing::Unnoted;
            }
        }
        let noted = (state.standing != Standing::Unnoted).then_some(state.count);
        let with_memory = records.failed_syncs();
        state.records = records;
        if state.has_failed {
            state.records.syncs_failed(with_memory + 1);
        }
        state.leave_note();
        FailedBefore { noted, with_memory }
    }

    /// A sync has failed.
    pub(crate) fn failed(&self) {
        let mut state = self.0.lock();
        if state.standing == Standing::Sound {
            state.standing = Standing::Unnoted;
        }
        if !std::mem::replace(&mut state.has_failed, true) {
            state.records.syncs_failed(state.records.failed_syncs() + 1);
        }
        state.leave_note();
    }

    /// Leaves the note that is still to be left, if there is one.
    pub(crate) fn leave_note(&self) {
        self.0.lock().leave_note();
    }

    /// Whether a sync has failed in this start.
    pub(crate) fn has_failed(&self) -> bool {
        self.0.lock().has_failed
    }

    /// Whether the next start would not know that a sync has failed.
    pub(crate) fn is_unnoted(&self) -> bool {
        self.0.lock().standing == Standing::Unnoted
    }
}

impl store::Watcher for FailedSyncs {
    fn sync_failed(&self) {
        self.failed();
    }
}

impl State {
    fn leave_note(&mut self) {
        if self.standing != Standing::Unnoted {
            return;
        }
        let text = format!("pario-failed-syncs 1 {}\n", self.count + 1);
        let mut is_noted = false;
        for dir in &self.dirs {
            match fs::write(dir.join(NAME), &text) {
                Ok(()) => is_noted = true,
                Err(error) => {
                    tracing::error!(dir = %dir.display(), %error, "no note about a failed sync")
                }
            }
        }
        if is_noted {
            self.standing = Standing::Noted;
        }
    }
}

/// The number in a directory; 0 if it has none.
fn read(dir: &Path) -> io::Result<u64> {
    let path = dir.join(NAME);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(e) => return Err(e),
    };
    let count = text.strip_prefix("pario-failed-syncs 1 ");
    let count = count.and_then(|rest| rest.strip_suffix('\n')?.parse().ok());
    count.ok_or_else(|| {
        let what = format!("{}: is no note of version 1", path.display());
        io::Error::new(io::ErrorKind::InvalidData, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(dirs: &[&Path]) -> (FailedSyncs, Option<u64>) {
        let failed = FailedSyncs::default();
        let dirs = dirs.iter().map(|d| d.to_path_buf()).collect();
        let before = failed.keep_in(dirs, Records::default());
        (failed, before.noted)
    }

    #[test]
    fn start_after_a_failed_sync_has_another_number() {
        let (one, other) = (testkit::TempDir::new(), testkit::TempDir::new());
        let both = [one.path(), other.path()];
        let (first, count) = begin(&both);
        assert_eq!(count, Some(0));
        assert_eq!(begin(&both).1, Some(0), "nothing has failed");
        first.failed();
        first.failed();
        assert!(!first.is_unnoted());
        assert_eq!(begin(&both).1, Some(1), "once a start");
        let (later, _) = begin(&both);
        later.failed();
        // One of the directories is enough.
        fs::remove_file(one.path().join(NAME)).unwrap();
        assert_eq!(begin(&both).1, Some(2));
    }

    #[test]
    fn failure_before_the_directories_are_known_is_noted_then() {
        let dir = testkit::TempDir::new();
        let failed = FailedSyncs::default();
        failed.failed();
        assert!(failed.is_unnoted());
        failed.keep_in(vec![dir.path().into()], Records::default());
        assert!(!failed.is_unnoted());
        assert_eq!(begin(&[dir.path()]).1, Some(1));
    }

    #[test]
    fn note_that_cannot_be_written_or_read_is_never_taken_for_none() {
        let dir = testkit::TempDir::new();
        let absent = dir.path().join("absent");
        let (failed, _) = begin(&[&absent]);
        failed.failed();
        assert!(failed.is_unnoted());
        // The place is there again.
        fs::create_dir(&absent).unwrap();
        failed.leave_note();
        assert!(!failed.is_unnoted());
        fs::write(absent.join(NAME), "pario-failed-").unwrap();
        let (_, torn) = begin(&[&absent]);
        assert_eq!(torn, None);
        let (_, after) = begin(&[&absent]);
        assert!(after.is_some_and(|count| count > 1), "{after:?}");
    }
}
