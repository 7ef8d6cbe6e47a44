//! A directory behind the job: files are fetched from it when they are first opened, written back to
//! it in the background, and evicted from memory when that is short.
//!
//! Lives in the holder of the first host, beside the metadata manager, which asks it around requests
//! ([`metaserver::Backing`]), and works as one more client of the job. Names and bytes go different ways:
//!
//! - *Names* are taken over when they are asked for, a directory when it is listed: the file exists
//!   from then on with its size, and holds nothing (it is a *stub*). Removing, renaming and making
//!   directories happens in the directory behind at once.
//! - *Bytes* come when a stub is opened, once, by the first client; the others wait. A file that was
//!   open for writing is written back when it is synced or closed, and at the latest at the end.
//!   One that is written back and not open can become a stub again, least recently opened first.
//!
//! Invariants
//! - Nobody has a file open while it is fetched or evicted: opens wait, and eviction gives up when it
//!   finds the file open.
//! - A file behind is replaced as a whole, when all bytes have come.
//! - What could not be written back stays in the job, is tried again at the end, and is named then.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use client::{Client, MemberState, OpenOptions, Status};
use metaserver::{Backing, BackingError};
use parking_lot::{Condvar, Mutex, MutexGuard};
use wire::{ClientId, FileId};

use crate::copy::Copier;
use crate::error::Error;

/// Eviction begins when a server has less than this part of its room left, ...
const SHORT: u64 = 6;
/// ... and goes on until this part is free.
const EASY: u64 = 3;

/// Between two looks whether there is room for a new file.
const MOMENT: Duration = Duration::from_millis(50);

/// The directory behind a job.
#[derive(Debug)]
pub struct Directory {
    dir: PathBuf,
    client: OnceLock<Client>,
    state: Mutex<State>,
    changed: Condvar,
    worker: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct State {
    files: HashMap<u64, Entry>,
    /// Paths that are being taken over.
    coming: HashSet<String>,
    /// Directories whose names are all known.
    listed: HashSet<String>,
    /// Files to write back.
    queue: VecDeque<u64>,
    /// Some server is short of room.
    is_short: bool,
    is_stopping: bool,
    /// Counts openings: the order in which files are evicted.
    tick: u64,
    failures: HashMap<u64, String>,
}

/// Where the bytes of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bytes {
    /// In the job.
    Here,
    /// Behind only.
    Behind,
    /// On their way, or being given up.
    Moving,
}

#[derive(Debug)]
struct Entry {
    path: String,
    bytes: Bytes,
    /// Written since it was last written back, or open for writing.
    is_dirty: bool,
    used: u64,
    /// Counts up when this client begins to hold the file alone, and when it ends: odd in between.
    holds: u64,
}

impl Directory {
    /// A directory that is not used yet.
    pub(crate) fn new(dir: &Path) -> Directory {
        Directory {
            dir: dir.to_owned(),
            client: OnceLock::new(),
            state: Mutex::default(),
            changed: Condvar::new(),
            worker: Mutex::new(None),
        }
    }

    /// Begins to work, as this client.
    pub(crate) fn start(self: &Arc<Self>, client: Client) -> Result<(), Error> {
        // Set once, right after the servers are there.
        let _ = self.client.set(client);
        let this = Arc::downgrade(self);
        let worker = std::thread::Builder::new()
            .name("backing".into())
            .spawn(move || work(&this))
            .map_err(|e| Error::Io(self.dir.clone(), e))?;
        *self.worker.lock() = Some(worker);
        Ok(())
    }

    /// Writes back everything that is not; what could not be.
    pub(crate) fn finish(&self) -> Vec<String> {
        self.state().is_stopping = true;
        self.changed.notify_all();
        let worker = self.worker.lock().take();
        if let Some(worker) = worker {
            let _ = worker.join();
        }
        let dirty: Vec<u64> = {
            let state = self.state();
            let dirty = state.files.iter().filter(|(_, entry)| entry.is_dirty);
            dirty.map(|(file, _)| *file).collect()
        };
        let mut copier = Copier::default();
        for file in dirty {
            self.write_back(file, &mut copier);
        }
        let mut failures: Vec<String> = self.state().failures.values().cloned().collect();
        failures.sort();
        failures
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn client(&self) -> Result<&Client, BackingError> {
        self.client
            .get()
            .ok_or((Status::Busy, "the servers are being started".into()))
    }

    /// The file behind a path of the job.
    fn behind(&self, path: &str) -> PathBuf {
        self.dir.join(path.trim_start_matches('/'))
    }

    /// Makes the name of something behind known to the catalogue.
    fn take_over(&self, path: &str) -> Result<(), BackingError> {
        let local = self.behind(path);
        let found = match fs::metadata(&local) {
            Ok(found) => found,
            Err(e) if is_absence(&e) => return Ok(()),
            Err(e) => return Err(trouble(&local, &e)),
        };
        let client = self.client()?;
        if let Some((parent, _)) = path.rsplit_once('/')
            && !parent.is_empty()
        {
            client.mkdir_all(parent, None).map_err(refused)?;
        }
        let mode = found.permissions().mode() & 0o777;
        if found.is_dir() {
            return match client.mkdir(path, Some(mode)) {
                Err(e) if e.status() != Status::Exists => Err(refused(e)),
                _ => Ok(()),
            };
        }
        if !found.is_file() {
            return Ok(());
        }
        let options = OpenOptions::new().write().exclusive().mode(mode);
        let file = match client.open(path, &options) {
            Err(e) if e.status() == Status::Exists => return Ok(()),
            other => other.map_err(refused)?,
        };
        self.state().files.insert(
            file.id().0,
            Entry {
                path: path.into(),
                bytes: Bytes::Behind,
                is_dirty: false,
                used: 0,
                holds: 0,
            },
        );
        file.resize(found.len()).map_err(refused)?;
        file.close().map_err(refused)
    }

    /// Brings the bytes of a file.
    fn fetch(&self, path: &str) -> Result<(), BackingError> {
        let local = self.behind(path);
        let source = fs::File::open(&local).map_err(|e| trouble(&local, &e))?;
        let client = self.client()?;
        let file = client
            .open(path, &OpenOptions::new().write())
            .map_err(refused)?;
        let filled = Copier::default().fill(&file, &source, &local, &mut |_| {});
        let closed = file.close();
        match filled {
            Ok(_) => closed.map_err(refused),
            Err(Error::Client(e)) => Err(refused(e)),
            Err(e) => Err((Status::Io, e.to_string())),
        }
    }

    /// Copies a file to the directory behind, unless its name is gone.
    fn write_back(&self, file: u64, copier: &mut Copier) {
        let path = match self.state().files.get(&file) {
            Some(entry) if entry.is_dirty && entry.bytes == Bytes::Here => entry.path.clone(),
            _ => return,
        };
        let outcome = self.try_write_back(file, &path, copier);
        let mut state = self.state();
        match outcome {
            Ok(()) => {
                state.failures.remove(&file);
            }
            Err(why) => {
                if let Some(entry) = state.files.get_mut(&file) {
                    entry.is_dirty = true;
                }
                state.failures.insert(file, format!("{path}: {why}"));
            }
        }
    }

    fn try_write_back(&self, file: u64, path: &str, copier: &mut Copier) -> Result<(), String> {
        let client = self.client().map_err(|(_, text)| text)?;
        match client.attributes(path) {
            Ok(found) if found.file.0 == file => {}
            // Another file has the name now, or none.
            Ok(_) => {
                self.state().files.remove(&file);
                return Ok(());
            }
            Err(e) if e.status() == Status::NotFound => {
                self.state().files.remove(&file);
                return Ok(());
            }
            Err(e) => return Err(e.to_string()),
        }
        // A client that opens it for writing from now on makes it dirty again; one that has it open may
        // write without a word, so it stays dirty.
        if let Some(entry) = self.state().files.get_mut(&file) {
            entry.is_dirty = false;
        }
        self.held(file);
        let is_open = client
            .open(path, &OpenOptions::new().read().unique())
            .is_err();
        self.held(file);
        if is_open && let Some(entry) = self.state().files.get_mut(&file) {
            entry.is_dirty = true;
        }
        let local = self.behind(path);
        if let Some(parent) = local.parent() {
            fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
        }
        copier
            .copy_out(client, path, &local, &mut |_| {})
            .map(drop)
            .map_err(|e| e.to_string())
    }

    /// This client begins to hold a file alone, or ends to.
    fn held(&self, file: u64) {
        if let Some(entry) = self.state().files.get_mut(&file) {
            entry.holds += 1;
        }
        self.changed.notify_all();
    }

    /// Gives up the bytes of files that lie behind as well, until there is room.
    fn evict(&self) {
        let Ok(client) = self.client() else { return };
        let Ok(members) = client.members() else {
            return;
        };
        let alive = members.iter().filter(|m| m.state == MemberState::Alive);
        let mut wanted: u64 = alive
            .map(|m| {
                let most = m.capacity_bytes - m.capacity_bytes / EASY;
                m.used_bytes.saturating_sub(most)
            })
            .sum();
        let mut candidates: Vec<(u64, u64, String)> = {
            let state = self.state();
            let clean = state
                .files
                .iter()
                .filter(|(_, e)| e.bytes == Bytes::Here && !e.is_dirty);
            clean.map(|(f, e)| (e.used, *f, e.path.clone())).collect()
        };
        candidates.sort_unstable();
        for (_, file, path) in candidates {
            if wanted == 0 {
                break;
            }
            let Some(freed) = self.evict_one(file, &path) else {
                continue;
            };
            wanted = wanted.saturating_sub(freed);
        }
    }

    /// Turns a file into a stub; nothing if it is in use.
    fn evict_one(&self, file: u64, path: &str) -> Option<u64> {
        {
            let mut state = self.state();
            let entry = state.files.get_mut(&file)?;
            if entry.bytes != Bytes::Here || entry.is_dirty || entry.path != path {
                return None;
            }
            entry.bytes = Bytes::Moving;
        }
        self.held(file);
        let outcome = self.empty(file, path);
        self.held(file);
        let mut state = self.state();
        if let Some(entry) = state.files.get_mut(&file) {
            entry.bytes = match outcome {
                Some(_) => Bytes::Behind,
                None => Bytes::Here,
            };
        }
        drop(state);
        self.changed.notify_all();
        outcome
    }

    fn empty(&self, file: u64, path: &str) -> Option<u64> {
        let client = self.client().ok()?;
        let handle = client
            .open(path, &OpenOptions::new().write().unique())
            .ok()?;
        if handle.id().0 != file {
            return None;
        }
        let size = handle.size().ok()?;
        // A file behind that is not as long is not this one: a program beside the job has changed it.
        if size == 0 || fs::metadata(self.behind(path)).ok()?.len() != size {
            return None;
        }
        handle.resize(0).ok()?;
        handle.resize(size).ok()?;
        handle.close().ok()?;
        Some(size)
    }
}

impl Backing for Directory {
    fn is_own(&self, client: ClientId) -> bool {
        self.client.get().is_none_or(|own| own.id() == client)
    }

    fn missing(&self, path: &str) -> Result<(), BackingError> {
        let Some(path) = plain(path) else {
            return Ok(());
        };
        {
            let mut state = self.state();
            if state.coming.contains(&path) {
                while state.coming.contains(&path) {
                    self.changed.wait(&mut state);
                }
                return Ok(());
            }
            state.coming.insert(path.clone());
        }
        let outcome = self.take_over(&path);
        self.state().coming.remove(&path);
        self.changed.notify_all();
        outcome
    }

    fn listing(&self, path: &str) -> Result<(), BackingError> {
        let Some(path) = plain(path) else {
            return Ok(());
        };
        if !self.state().listed.insert(path.clone()) {
            return Ok(());
        }
        let local = self.behind(&path);
        let entries = match fs::read_dir(&local) {
            Ok(entries) => entries,
            Err(e) if is_absence(&e) => return Ok(()),
            Err(e) => return Err(trouble(&local, &e)),
        };
        let client = self.client()?;
        for entry in entries {
            let entry = entry.map_err(|e| trouble(&local, &e))?;
            // Names that are no UTF-8 cannot be asked for.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let below = format!("{}/{name}", path.trim_end_matches('/'));
            match client.attributes(&below) {
                Err(e) if e.status() == Status::NotFound => self.missing(&below)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn opening(&self, file: FileId, path: &str, for_writing: bool) -> Result<(), BackingError> {
        let path = plain(path).unwrap_or_else(|| path.into());
        let mut state = self.state();
        loop {
            if state.coming.contains(&path) {
                self.changed.wait(&mut state);
                continue;
            }
            state.tick += 1;
            let tick = state.tick;
            let entry = state.files.entry(file.0).or_insert_with(|| Entry {
                path: path.clone(),
                bytes: Bytes::Here,
                is_dirty: for_writing,
                used: tick,
                holds: 0,
            });
            if !entry.holds.is_multiple_of(2) {
                self.changed.wait(&mut state);
                continue;
            }
            match entry.bytes {
                Bytes::Here => {
                    entry.used = tick;
                    entry.is_dirty |= for_writing;
                    return Ok(());
                }
                Bytes::Moving => self.changed.wait(&mut state),
                Bytes::Behind => {
                    entry.bytes = Bytes::Moving;
                    let path = entry.path.clone();
                    drop(state);
                    let outcome = self.fetch(&path);
                    state = self.state();
                    if let Some(entry) = state.files.get_mut(&file.0) {
                        entry.bytes = match outcome {
                            Ok(()) => Bytes::Here,
                            Err(_) => Bytes::Behind,
                        };
                    }
                    self.changed.notify_all();
                    outcome?;
                }
            }
        }
    }

    fn holds(&self, file: FileId) -> u64 {
        self.state()
            .files
            .get(&file.0)
            .map_or(0, |entry| entry.holds)
    }

    fn written(&self, file: FileId) {
        let mut state = self.state();
        let is_dirty = state.files.get(&file.0).is_some_and(|e| e.is_dirty);
        if is_dirty && !state.queue.contains(&file.0) {
            state.queue.push_back(file.0);
            self.changed.notify_all();
        }
    }

    fn client_gone(&self) {
        let mut state = self.state();
        let dirty = state.files.iter().filter(|(_, entry)| entry.is_dirty);
        let dirty: Vec<u64> = dirty.map(|(file, _)| *file).collect();
        for file in dirty {
            if !state.queue.contains(&file) {
                state.queue.push_back(file);
            }
        }
        self.changed.notify_all();
    }

    fn removed(&self, path: &str) {
        let Some(path) = plain(path) else { return };
        self.state().files.retain(|_, entry| entry.path != path);
        let local = self.behind(&path);
        // What is not there need not be removed.
        let _ = match fs::symlink_metadata(&local) {
            Ok(found) if found.is_dir() => fs::remove_dir(local),
            _ => fs::remove_file(local),
        };
    }

    fn renamed(&self, from: &str, to: &str) {
        let (Some(from), Some(to)) = (plain(from), plain(to)) else {
            return;
        };
        if from == to {
            return;
        }
        let (local, target) = (self.behind(&from), self.behind(&to));
        if let Some(parent) = target.parent() {
            let _ = fs::create_dir_all(parent);
        }
        let is_behind = local.symlink_metadata().is_ok();
        if !is_behind || fs::rename(&local, &target).is_err() {
            // The old bytes under the new name would be fetched for the new ones.
            let _ = fs::remove_file(&target);
        }
        let mut state = self.state();
        state.files.retain(|_, entry| entry.path != to);
        let below = format!("{from}/");
        for entry in state.files.values_mut() {
            if entry.path == from {
                entry.path.clone_from(&to);
            } else if let Some(rest) = entry.path.strip_prefix(&below) {
                entry.path = format!("{to}/{rest}");
            }
        }
        state.listed.remove(&to);
    }

    fn made_directory(&self, path: &str, mode: u32) {
        if let Some(path) = plain(path) {
            let mut builder = fs::DirBuilder::new();
            // Made again when a file in it is written back.
            let _ = builder
                .recursive(true)
                .mode(mode & 0o777 | 0o700)
                .create(self.behind(&path));
        }
    }

    fn make_room(&self) {
        self.state().is_short = true;
        self.changed.notify_all();
        // Servers tell the manager a little later how much room they have then, and nobody tells us.
        crate::rendezvous::wait(MOMENT);
    }

    fn room(&self, capacity_bytes: u64, used_bytes: u64) {
        let free = capacity_bytes.saturating_sub(used_bytes);
        if capacity_bytes > 0 && free < capacity_bytes / SHORT {
            self.state().is_short = true;
            self.changed.notify_all();
        }
    }
}

/// Writes back and evicts until the end.
fn work(this: &Weak<Directory>) {
    let mut copier = Copier::default();
    loop {
        let Some(directory) = this.upgrade() else {
            return;
        };
        let (next, is_short) = {
            let mut state = directory.state();
            while state.queue.is_empty() && !state.is_short && !state.is_stopping {
                directory.changed.wait(&mut state);
            }
            if state.is_stopping {
                return;
            }
            let next = state.queue.pop_front();
            // Room is made when all that is written back can be given up.
            let is_short = next.is_none() && std::mem::take(&mut state.is_short);
            (next, is_short)
        };
        if let Some(file) = next {
            directory.write_back(file, &mut copier);
        }
        if is_short {
            directory.evict();
        }
    }
}

/// A path with single slashes, from the root on; nothing if it leads elsewhere.
fn plain(path: &str) -> Option<String> {
    let mut plain = String::new();
    for part in path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        if part == ".." || part.contains('\0') {
            return None;
        }
        plain.push('/');
        plain.push_str(part);
    }
    match plain.is_empty() {
        true => Some("/".into()),
        false => Some(plain),
    }
}

fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename)
}

fn trouble(path: &Path, error: &io::Error) -> BackingError {
    let text = format!("the directory behind the job: {}: {error}", path.display());
    (error.into(), text)
}

fn refused(error: client::Error) -> BackingError {
    (error.status(), error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_directory() {
        assert_eq!(plain("a//b/./c"), Some("/a/b/c".into()));
        assert_eq!(plain("/"), Some("/".into()));
        assert_eq!(plain("/a/../../etc"), None);
        let directory = Directory::new(Path::new("/data"));
        assert_eq!(directory.behind("/x/y"), Path::new("/data/x/y"));
    }
}
