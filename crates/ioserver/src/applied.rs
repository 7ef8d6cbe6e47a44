//! Which truncate epoch was applied to which file, over restarts of a server with disks.
//!
//! The metadata manager keeps the intent of a truncate until all servers have applied it, so a server
//! that comes back cannot tell from the intent alone whether it has: cutting a second time would
//! take bytes that were written since. An append-only log in each state directory tells, so that none of them is
//! missed alone: 24 bytes a record (file, epoch, checksum), the last one of a file counts, a torn tail is
//! ignored ([format](../../../docs/formats/server-state.md)). It is written anew at each start, and when it has more than twice
//! as many records as files, and some thousand besides. A server in memory has it in the [ledger](crate::kept) of its memory.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate};
use wire::FileId;

use crate::kept::Records;

const NAME: &str = "truncated";
const FRESH: &str = "truncated.new";
const RECORD: usize = 24;
/// Records that a log may have beyond twice its files.
const SPARE_RECORDS: usize = 4096;
/// Space that a log has ahead of its end, so that a disk can be full and files on it still be cut.
const AHEAD_BYTES: u64 = 128 << 10;

struct State {
    epochs: HashMap<FileId, u64>,
    logs: Vec<Log>,
    /// In each log.
    records: usize,
    spare_records: usize,
    /// Of a server in memory with a keeper, in place of the logs.
    kept: Records,
}

impl State {
    fn write_anew(&mut self) -> io::Result<()> {
        for log in &mut self.logs {
            *log = Log::replace(log.dir.clone(), &self.epochs)?;
            log.sync_name()?;
        }
        self.records = self.epochs.len();
        Ok(())
    }
}

/// The log in one directory.
struct Log {
    dir: PathBuf,
    file: File,
    /// Up to here the disk has room for it.
    reserved: u64,
    /// Its name was given to it and may not be durable.
    is_name_stale: bool,
}

impl Log {
    /// Writes a log anew, in place of the one that is there.
    fn replace(dir: PathBuf, epochs: &HashMap<FileId, u64>) -> io::Result<Log> {
        let fresh = dir.join(FRESH);
        match fs::remove_file(&fresh) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create_new(true).open(&fresh)?;
        let records: Vec<u8> = epochs.iter().flat_map(|(f, e)| record(*f, *e)).collect();
        file.write_all(&records)?;
        file.sync_all()?;
        fs::rename(&fresh, dir.join(NAME))?;
        let mut log = Log {
            dir,
            file,
            reserved: 0,
            is_name_stale: true,
        };
        log.reserve(records.len() as u64);
        Ok(log)
    }

    /// Takes space ahead of the end, if less than half of it is left. Where there is none, records are written as long as they fit.
    fn reserve(&mut self, end: u64) {
        if end + AHEAD_BYTES / 2 > self.reserved {
            let wanted = end + AHEAD_BYTES;
            let taken = fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, wanted);
            if taken.is_ok() {
                self.reserved = wanted;
            }
        }
    }

    /// Makes its name durable, if it may not be.
    fn sync_name(&mut self) -> io::Result<()> {
        if self.is_name_stale {
            File::open(&self.dir)?.sync_all()?;
            self.is_name_stale = false;
        }
        Ok(())
    }

    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        self.sync_name()?;
        let good = self.file.metadata()?.len();
        let written = self.file.write_all(record);
        let written = written.and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // A torn record would hide all that come behind it.
            self.file.set_len(good)?;
            // The space ahead went with that.
            self.reserved = 0;
            return Err(error);
        }
        self.reserve(good + record.len() as u64);
        Ok(())
    }
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
    /// As long as the memory: in its ledger, or with the process.
    pub(crate) fn of_memory(kept: Records) -> Self {
        AppliedTruncates(Mutex::new(State {
            epochs: kept.applied().into_iter().collect(),
            logs: Vec::new(),
            records: 0,
            spare_records: SPARE_RECORDS,
            kept,
        }))
    }

    /// From the logs in these directories.
    pub(crate) fn load(dirs: &[PathBuf]) -> io::Result<Self> {
        AppliedTruncates::load_with(dirs, SPARE_RECORDS)
    }

    fn load_with(dirs: &[PathBuf], spare_records: usize) -> io::Result<Self> {
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
            // With its name not durable yet it is as good as the one before, until a record is added.
            logs.push(Log::replace(dir.clone(), &epochs)?);
        }
        Ok(AppliedTruncates(Mutex::new(State {
            records: epochs.len(),
            epochs,
            logs,
            spare_records,
            kept: Records::default(),
        })))
    }

    /// The epoch of a file; 0 if none was ever applied here.
    pub(crate) fn epoch(&self, file: FileId) -> u64 {
        self.0.lock().epochs.get(&file).copied().unwrap_or(0)
    }

    /// A truncate is applied; durable when this returns.
    pub(crate) fn put(&self, file: FileId, epoch: u64) -> io::Result<()> {
        let mut state = self.0.lock();
        let state = &mut *state;
        for log in &mut state.logs {
            log.append(&record(file, epoch))?;
        }
        state.kept.applies(file, epoch);
        state.epochs.insert(file, epoch);
        state.records += 1;
        if state.records > 2 * state.epochs.len() + state.spare_records
            && let Err(error) = state.write_anew()
        {
            // It goes on as it is, and is tried again with the next record.
            tracing::warn!(%error, "the log of truncates cannot be written anew");
        }
        Ok(())
    }

    /// The bytes of the file are gone from here.
    pub(crate) fn forget(&self, file: FileId) {
        let mut state = self.0.lock();
        if state.epochs.remove(&file).is_some() {
            state.kept.applied_no_more(file);
        }
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

    /// In the whole service the note of the server's number makes the name durable as well; this log does not rely on it.
    #[test]
    fn power_takes_no_truncate_that_was_noted() {
        if let Some(why) = lossyfs::lacks() {
            testkit::skipped(&why);
            return;
        }
        let place = testkit::TempDir::new();
        let mut disk = lossyfs::Disk::mount(place.path()).unwrap();
        let dirs = [place.path().to_owned()];
        for epoch in 1..=6 {
            // The log of the start before is replaced in each round, and is as good as none by its content alone.
            let applied = AppliedTruncates::load(&dirs).unwrap();
            assert_eq!(applied.epoch(FileId(1)), epoch - 1);
            applied.put(FileId(1), epoch).unwrap();
            drop(applied);
            disk.restart(lossyfs::Loss::Everything).unwrap();
        }
    }

    #[test]
    fn logs_are_written_anew_before_they_grow_for_ever() {
        let (one, other) = (testkit::TempDir::new(), testkit::TempDir::new());
        let dirs = [one.path().to_owned(), other.path().to_owned()];
        let applied = AppliedTruncates::load_with(&dirs, 8).unwrap();
        for epoch in 1..=100 {
            applied.put(FileId(epoch % 3), epoch).unwrap();
            for dir in &dirs {
                let len = fs::metadata(dir.join(NAME)).unwrap().len();
                assert!(len <= (2 * 3 + 8 + 1) * RECORD as u64, "{len} bytes");
            }
        }
        applied.forget(FileId(2));
        drop(applied);
        for dir in dirs {
            let found = AppliedTruncates::load(&[dir]).unwrap();
            assert_eq!(found.epoch(FileId(0)), 99);
            assert_eq!(found.epoch(FileId(1)), 100);
        }
    }
}
