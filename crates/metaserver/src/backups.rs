//! The catalogue as one file: its rows handed out as they were at one moment, while the service runs, and a directory made of such a
//! file.
//!
//! ```text
//!  client  Backup 0              -->  snapshot; its number, first rows
//!  client  Backup N, last key    -->  next rows   ... until there are none
//! ```
//!
//! Invariants
//! - What is handed out is one state: the snapshot is kept until its last row was told, or nobody has asked for [`PATIENCE`]. Pages of
//!   the store that change meanwhile are not given back before.
//! - A directory that has a catalogue is never restored into, and one that another process serves neither.
//! - No key is in a backup. A directory that has lost its key with its catalogue gets a new one; servers have it from their next
//!   start.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use meta::catalogue::Snapshot;
use meta::catalogue::backup::{self, BackupError, BackupHead, BackupReader};
use parking_lot::Mutex;
use wire::Status;
use wire::message::Bytes;
use wire::message::backup::{Backup, BackupPart, CatalogueRow};

use crate::committer::Refused;
use crate::directory::Directory;
use crate::manager::{Manager, Session, now};
use crate::start::StartError;

/// How long a snapshot waits for the next question.
const PATIENCE: Duration = Duration::from_secs(60);
/// Snapshots that are kept at a time.
const MOST: usize = 4;

/// Snapshots that are being fetched.
#[derive(Debug, Default)]
pub(crate) struct Backups(Mutex<SnapshotTable>);

#[derive(Debug, Default)]
struct SnapshotTable {
    last: u64,
    snapshots: HashMap<u64, (Arc<(BackupHead, Snapshot)>, Instant)>,
}

impl SnapshotTable {
    fn forget_old(&mut self) {
        self.snapshots
            .retain(|_, (_, asked)| asked.elapsed() < PATIENCE);
    }
}

impl Manager {
    pub(crate) fn backup(&self, session: &mut Session, r: Backup) -> Result<BackupPart, Refused> {
        self.demand_operator(session)?;
        let (number, kept) = match r.backup {
            0 => self.begin_backup()?,
            number => (number, self.kept_backup(number)?),
        };
        let (head, snapshot) = &*kept;
        let after = Some(&r.after.0[..]).filter(|key| !key.is_empty());
        let rows = snapshot.rows_after(after)?;
        if rows.is_empty() {
            self.backups.0.lock().snapshots.remove(&number);
        }
        let row = |(key, value)| CatalogueRow {
            key: Bytes(key),
            value: Bytes(value),
        };
        Ok(BackupPart {
            backup: number,
            catalogue_version: head.catalogue_version,
            at_s: head.at_s,
            files: head.files,
            directories: head.directories,
            rows: rows.into_iter().map(row).collect(),
        })
    }

    fn begin_backup(&self) -> Result<(u64, Arc<(BackupHead, Snapshot)>), Refused> {
        let snapshot = self.snapshot()?;
        let at_s = u64::try_from(now().0 / 1_000_000_000).unwrap_or_default();
        let head = snapshot.backup_head(at_s)?;
        let mut kept = self.backups.0.lock();
        kept.forget_old();
        if kept.snapshots.len() >= MOST {
            let text =
                format!("{MOST} backups are being fetched already; try again when one has ended");
            return Err(Refused::new(Status::Busy, text));
        }
        kept.last += 1;
        let number = kept.last;
        let state = Arc::new((head, snapshot));
        let entry = (Arc::clone(&state), Instant::now());
        kept.snapshots.insert(number, entry);
        drop(kept);
        self.look_after_backup(number);
        Ok((number, state))
    }

    /// Lets go of a snapshot that nobody asks for any more.
    fn look_after_backup(&self, number: u64) {
        let this = self.this();
        self.timer.after(PATIENCE, move || {
            let Some(manager) = this.upgrade() else {
                return;
            };
            let is_left = {
                let mut kept = manager.backups.0.lock();
                kept.forget_old();
                kept.snapshots.contains_key(&number)
            };
            if is_left {
                manager.look_after_backup(number);
            }
        });
    }

    fn kept_backup(&self, number: u64) -> Result<Arc<(BackupHead, Snapshot)>, Refused> {
        let mut kept = self.backups.0.lock();
        kept.forget_old();
        match kept.snapshots.get_mut(&number) {
            Some((state, asked)) => {
                *asked = Instant::now();
                Ok(Arc::clone(state))
            }
            None => Err(Refused::new(
                Status::InvalidArgument,
                format!(
                    "backup {number} is not under way, or nobody has asked for it for a minute; begin another one"
                ),
            )),
        }
    }
}

/// Why a backup was not restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// There is a catalogue.
    #[error(
        "{0} has a catalogue; nothing was changed. Restore into another directory, or move that one away first"
    )]
    HasCatalogue(PathBuf),
    /// The directory cannot be used.
    #[error(transparent)]
    Directory(#[from] StartError),
    /// The backup cannot be read.
    #[error("{0}: {1}")]
    Backup(PathBuf, Box<BackupError>),
}

/// Makes the directory of a metadata manager out of a backup; what it is of, and how many rows it has.
pub fn restore(file: &Path, dir: &Path) -> Result<(BackupHead, u64), RestoreError> {
    let broken = |e: BackupError| RestoreError::Backup(file.to_owned(), Box::new(e));
    let opened = File::open(file).map_err(|e| broken(e.into()))?;
    let mut reader = BackupReader::new(BufReader::new(opened)).map_err(broken)?;
    if dir.join("catalogue").exists() {
        return Err(RestoreError::HasCatalogue(dir.join("catalogue")));
    }
    let directory = Directory::take(dir)?;
    let path = directory.catalogue();
    if path.exists() {
        return Err(RestoreError::HasCatalogue(path));
    }
    directory.key()?;
    // Clients elsewhere may believe what the lost catalogue has told them.
    let mark = directory.elsewhere();
    File::create(&mark)
        .and_then(|mark| mark.sync_all())
        .map_err(|e: io::Error| StartError::Directory(mark, e))?;
    let rows = backup::restore(&path, &mut reader).map_err(broken)?;
    Ok((reader.head().clone(), rows))
}
