//! Staging: files and directory trees of this host into the job before it works, and out of it
//! afterwards.
//!
//! `DIR_OR_FILE[:PATH]` names both ends; without PATH it is the name of the local end, at the root.
//! Moving in stops at the first failure, since the job would work on half of its input. Moving out
//! goes on: what can be saved is saved, and the rest is named.

use std::fs;
use std::path::{Path, PathBuf};

use client::{Client, Kind};

use crate::copy::{Copier, cannot};
use crate::error::Error;

/// What is moved in or out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// File or directory of this host.
    pub local: PathBuf,
    /// File or directory of the job.
    pub path: String,
}

/// What was moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StagingTotals {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Watches a transfer.
pub trait Watcher {
    /// So many bytes will be moved, as far as known.
    fn total(&mut self, bytes: u64);
    /// This file is next.
    fn file(&mut self, name: &str);
    /// So many more bytes have been moved.
    fn moved(&mut self, bytes: u64);
}

/// Nobody.
#[derive(Debug)]
pub struct NoWatcher;

impl Watcher for NoWatcher {
    fn total(&mut self, _: u64) {}
    fn file(&mut self, _: &str) {}
    fn moved(&mut self, _: u64) {}
}

impl Stage {
    /// Reads `DIR_OR_FILE[:PATH]`; relative names are taken from the present directory.
    pub fn parse(text: &str) -> Result<Stage, String> {
        let (local, path) = match text.rsplit_once(':') {
            Some((local, path)) if path.starts_with('/') => (local, Some(path.to_owned())),
            Some((_, path)) => {
                return Err(format!(
                    "'{text}': '{path}' is no path of the job; it begins with /, as in data:/data"
                ));
            }
            None => (text, None),
        };
        if local.is_empty() {
            return Err(format!(
                "'{text}' names no file or directory of this host; write DIR_OR_FILE:PATH"
            ));
        }
        let local = std::path::absolute(local).map_err(|e| format!("'{local}': {e}"))?;
        let path = match path {
            Some(path) => path,
            None => {
                let name = local.file_name().and_then(|name| name.to_str());
                let name = name.ok_or_else(|| {
                    format!("'{text}' has no name to go by; write DIR_OR_FILE:PATH")
                })?;
                format!("/{name}")
            }
        };
        Ok(Stage { local, path })
    }

    /// Moves it into the job.
    pub fn move_in(
        &self,
        client: &Client,
        watcher: &mut dyn Watcher,
    ) -> Result<StagingTotals, Error> {
        let found = fs::metadata(&self.local).map_err(|e| cannot("stage in", &self.local, e))?;
        let mut entries = Vec::new();
        match found.is_dir() {
            true => walk_local(&self.local, &self.path, &mut entries, 0)?,
            false => entries.push((self.local.clone(), self.path.clone(), Some(found.len()))),
        }
        watcher.total(entries.iter().filter_map(|entry| entry.2).sum());
        let mut copier = Copier::default();
        let mut moved = StagingTotals::default();
        if let Some((parent, _)) = self.path.trim_end_matches('/').rsplit_once('/')
            && !parent.is_empty()
        {
            client.mkdir_all(parent, None)?;
        }
        for (local, path, size) in entries {
            if size.is_none() {
                client.mkdir_all(&path, None)?;
                continue;
            }
            watcher.file(&path);
            let bytes = copier
                .copy_in(client, &local, &path, &mut |n| watcher.moved(n))
                .map_err(|e| Error::Stage(format!("{} to {path}: {e}", local.display())))?;
            moved.files += 1;
            moved.bytes += bytes;
        }
        Ok(moved)
    }

    /// Moves it out of the job: what was moved, and what could not be.
    pub fn move_out(
        &self,
        client: &Client,
        watcher: &mut dyn Watcher,
    ) -> (StagingTotals, Vec<String>) {
        let mut moved = StagingTotals::default();
        let mut failures = Vec::new();
        let mut entries = Vec::new();
        match client.stat(&self.path) {
            Err(e) => {
                failures.push(format!("{}: {e}", self.path));
                return (moved, failures);
            }
            Ok(found) if found.kind == Kind::Directory => {
                walk_stored(client, &self.path, &self.local, &mut entries, &mut failures);
            }
            Ok(found) => {
                if let Some(parent) = self.local.parent() {
                    entries.push((None, parent.to_owned(), 0));
                }
                entries.push((Some(self.path.clone()), self.local.clone(), found.size));
            }
        }
        watcher.total(entries.iter().map(|entry| entry.2).sum());
        let mut copier = Copier::default();
        for (path, local, _) in entries {
            let Some(path) = path else {
                if let Err(e) = fs::create_dir_all(&local) {
                    failures.push(cannot("make", &local, e).to_string());
                }
                continue;
            };
            watcher.file(&path);
            match copier.copy_out(client, &path, &local, &mut |n| watcher.moved(n)) {
                Ok(bytes) => {
                    moved.files += 1;
                    moved.bytes += bytes;
                }
                Err(e) => failures.push(format!("{path}: {e}")),
            }
        }
        (moved, failures)
    }

    /// Whether a path of the job is among what is moved.
    pub(crate) fn covers(&self, path: &str) -> bool {
        let own = self.path.trim_end_matches('/');
        path.strip_prefix(own)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Directories may be so deep, links included.
const DEEPEST: usize = 200;

type LocalEntry = (PathBuf, String, Option<u64>);

/// Files with their sizes and directories without, each before what is in it.
fn walk_local(
    local: &Path,
    path: &str,
    entries: &mut Vec<LocalEntry>,
    depth: usize,
) -> Result<(), Error> {
    if depth > DEEPEST {
        let text = format!("{} is too deep: a link leads back up", local.display());
        return Err(Error::Stage(text));
    }
    if path != "/" {
        entries.push((local.to_owned(), path.to_owned(), None));
    }
    let failed = |e| cannot("read", local, e);
    let mut found: Vec<_> = fs::read_dir(local)
        .map_err(failed)?
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    found.sort_by_key(fs::DirEntry::file_name);
    for entry in found {
        let name = entry.file_name();
        let below = entry.path();
        let name = name.to_str().ok_or_else(|| {
            Error::Stage(format!(
                "{} has a name that is no UTF-8, which the job cannot keep; rename it",
                below.display()
            ))
        })?;
        let target = format!("{}/{name}", path.trim_end_matches('/'));
        let kind = fs::metadata(&below).map_err(|e| cannot("read", &below, e))?;
        if kind.is_dir() {
            walk_local(&below, &target, entries, depth + 1)?;
        } else if kind.is_file() {
            entries.push((below, target, Some(kind.len())));
        } else {
            return Err(Error::Stage(format!(
                "{} is no file and no directory; leave it out",
                below.display()
            )));
        }
    }
    Ok(())
}

type StoredEntry = (Option<String>, PathBuf, u64);

fn walk_stored(
    client: &Client,
    path: &str,
    local: &Path,
    entries: &mut Vec<StoredEntry>,
    failures: &mut Vec<String>,
) {
    entries.push((None, local.to_owned(), 0));
    let listed = match client.list_with_attributes(path) {
        Ok(listed) => listed,
        Err(e) => return failures.push(format!("{path}: {e}")),
    };
    for entry in listed {
        let entry = match entry {
            Ok(entry) => entry,
            Err(e) => return failures.push(format!("{path}: {e}")),
        };
        let below = format!("{}/{}", path.trim_end_matches('/'), entry.name);
        if entry.name == "." || entry.name == ".." || entry.name.contains(['/', '\0']) {
            failures.push(format!("{below}: cannot be a name on this host"));
            continue;
        }
        let target = local.join(&entry.name);
        match entry.kind {
            Kind::Directory => walk_stored(client, &below, &target, entries, failures),
            Kind::File => {
                let size = entry.attributes.map_or(0, |found| found.size);
                entries.push((Some(below), target, size));
            }
        }
    }
}

/// All files of the job with something in them.
pub(crate) fn all_files(client: &Client) -> Vec<(String, u64)> {
    let mut entries = Vec::new();
    // What cannot be listed cannot be named.
    walk_stored(client, "/", Path::new("/"), &mut entries, &mut Vec::new());
    let files = entries
        .into_iter()
        .filter_map(|(path, _, size)| Some((path?, size)));
    files.filter(|(_, size)| *size > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_named() {
        let parse = |text| Stage::parse(text).map(|s| (s.local.display().to_string(), s.path));
        let here = std::env::current_dir().unwrap();
        let local = here.join("data").display().to_string();
        assert_eq!(parse("data"), Ok((local.clone(), "/data".into())));
        assert_eq!(parse("data:/in/x"), Ok((local, "/in/x".into())));
        assert_eq!(parse("/a/b:/"), Ok(("/a/b".into(), "/".into())));
        for (text, word) in [
            ("a:b", "begins with /"),
            (":/x", "names no file"),
            ("/", "no name"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn what_is_staged_out_is_covered() {
        let stage = Stage::parse("/x:/results").unwrap();
        assert!(stage.covers("/results") && stage.covers("/results/a"));
        assert!(!stage.covers("/results2") && !stage.covers("/a"));
        assert!(Stage::parse("/x:/").unwrap().covers("/a/b"));
    }
}
