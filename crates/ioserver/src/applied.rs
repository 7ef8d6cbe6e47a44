//! Which truncate epoch was applied to which file, over restarts of a server with disks.
//!
//! The metadata manager keeps the intent of a truncate until all servers have applied it, so a server
//! that comes back cannot tell from the intent alone whether it has: cutting a second time would
//! take bytes that were written since. An append-only log in each state directory tells, so that none of them is
//! missed alone: 24 bytes a record (file, epoch, checksum), the last one of a file counts, a torn tail is
//! ignored. It is written anew at each start.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use parking_lot::Mutex;
use wire::FileId;

const NAME: &str = "truncated";
const RECORD: usize = 24;

struct State {
    epochs: HashMap<FileId, u64>,
    logs: Vec<File>,
}

/// The epochs that were applied.
pub(crate) struct AppliedTruncates(Mutex<State>);

fn record(file: FileId, epoch: u64) -> [u8; RECORD] {
    let mut out = [0; RECORD];
    out[..8].copy_from_slice(&file.0.to_le_bytes());
    out[8..16].copy_from_slice(&epoch.to_le_bytes());
    let check = file.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ !epoch.rotate_left(17);
    out[16..].copy_from_slice(&check.to_le_bytes());
    out
}

impl AppliedTruncates {
    /// In memory only.
    pub(crate) fn volatile() -> Self {
        AppliedTruncates(Mutex::new(State {
            epochs: HashMap::new(),
            logs: Vec::new(),
        }))
    }

    /// From the logs in these directories.
    pub(crate) fn load(dirs: &[PathBuf]) -> io::Result<Self> {
        let mut epochs: HashMap<FileId, u64> = HashMap::new();
        for dir in dirs {
            let bytes = match fs::read(dir.join(NAME)) {
                Ok(bytes) => bytes,
                Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
                Err(e) => return Err(e),
            };
            for found in bytes.chunks_exact(RECORD) {
                let word =
                    |at: usize| u64::from_le_bytes(found[at..at + 8].try_into().expect("eight"));
                let (file, epoch) = (FileId(word(0)), word(8));
                if record(file, epoch) != found {
                    break;
                }
                let known = epochs.entry(file).or_default();
                *known = epoch.max(*known);
            }
        }
        let mut logs = Vec::new();
        for dir in dirs {
            let fresh = dir.join("truncated.new");
            let mut log = File::create(&fresh)?;
            for (&file, &epoch) in &epochs {
                log.write_all(&record(file, epoch))?;
            }
            log.sync_all()?;
            fs::rename(&fresh, dir.join(NAME))?;
            File::open(dir)?.sync_all()?;
            logs.push(OpenOptions::new().append(true).open(dir.join(NAME))?);
        }
        Ok(AppliedTruncates(Mutex::new(State { epochs, logs })))
    }

    /// The epoch of a file; 0 if none was ever applied here.
    pub(crate) fn epoch(&self, file: FileId) -> u64 {
        self.0.lock().epochs.get(&file).copied().unwrap_or(0)
    }

    /// A truncate is applied; durable when this returns.
    pub(crate) fn put(&self, file: FileId, epoch: u64) -> io::Result<()> {
        let mut state = self.0.lock();
        for log in &mut state.logs {
            let good = log.metadata()?.len();
            if let Err(error) = log
                .write_all(&record(file, epoch))
                .and_then(|()| log.sync_data())
            {
                // A torn record would hide all that come behind it.
                log.set_len(good)?;
                return Err(error);
            }
        }
        state.epochs.insert(file, epoch);
        Ok(())
    }

    /// The bytes of the file are gone from here.
    pub(crate) fn forget(&self, file: FileId) {
        self.0.lock().epochs.remove(&file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_found_again_and_torn_tails_ignored() {
        let dir = std::env::temp_dir().join(format!("pario-applied-{}", std::process::id()));
        // Of a process with the same number that was killed.
        let _ = std::fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let applied = AppliedTruncates::load(std::slice::from_ref(&dir)).unwrap();
        assert_eq!(applied.epoch(FileId(1)), 0);
        applied.put(FileId(1), 3).unwrap();
        applied.put(FileId(2), 1).unwrap();
        applied.put(FileId(1), 4).unwrap();
        drop(applied);
        let mut torn = OpenOptions::new()
            .append(true)
            .open(dir.join(NAME))
            .unwrap();
        torn.write_all(&record(FileId(1), 9)[..20]).unwrap();
        let applied = AppliedTruncates::load(std::slice::from_ref(&dir)).unwrap();
        assert_eq!(applied.epoch(FileId(1)), 4);
        assert_eq!(applied.epoch(FileId(2)), 1);
        fs::remove_dir_all(&dir).unwrap();
    }
}
