//! What is on the disks when a store opens: names of data files and records of subfiles, compared.
//!
//! | data files | record | what it is |
//! |---|---|---|
//! | one | none, or of this disk | there |
//! | one | of a later copy elsewhere | an older copy: where the later one is, or was |
//! | one, unfinished | none | nothing: it was never synced, and is removed |
//! | none | of a disk that is missing | on that disk |
//! | none | of a disk that is there, or was declared lost | lost |
//! | several | | the latest complete copy; the others go into quarantine |
//! | several of the same age | | a conflict: none of them is served or touched |
//!
//! Invariant: nothing that may hold bytes of a user is removed, whatever is decided; it is renamed into quarantine.
//!
//! Cost: the names of all disks; headers only of data files without a record and of those that are there twice.

use std::collections::BTreeMap;

use super::file::{name_of, read_header};
use super::records::{Fate, Read, Record};
use super::set::DiskSet;
use super::store::parse_name;
use crate::error::Error;
use crate::identity::SubfileId;

/// Where the bytes of a subfile are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// On this disk.
    Disk(usize),
    /// On one that is missing: which of those.
    Missing(usize),
    /// Nowhere: why.
    Lost(String),
    /// Several data files, of which nobody knows which counts.
    Conflict(Vec<usize>),
}

/// What there is of a subfile, for a program that examines a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its bytes are here.
    Here,
    /// They are on a disk that is missing.
    Missing,
    /// They are lost.
    Lost,
    /// Several data files contradict each other.
    Conflict,
}

/// A data file that was put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantinedFile {
    /// Where it is now.
    pub path: String,
}

/// A subfile as it was found.
#[derive(Debug)]
pub(crate) struct FoundSubfile {
    pub(crate) at: At,
    pub(crate) copy: u64,
    pub(crate) is_recorded: bool,
}

/// A data file as its header has it.
struct Header {
    copy: u64,
    /// Something was synced, or it is an original.
    counts: bool,
    is_committed: bool,
}

/// Compares names and records. Data files that are durable and not on record yet are added to the records.
pub(crate) fn find(set: &DiskSet, read: &mut Read) -> BTreeMap<SubfileId, FoundSubfile> {
    let mut places: BTreeMap<SubfileId, Vec<usize>> = BTreeMap::new();
    let mut unread = vec![false; set.len()];
    for (disk, is_unread) in unread.iter_mut().enumerate() {
        let Ok(names) = set.disk(disk).names() else {
            // A client that opens a subfile on record there hears why.
            set.fail(disk);
            *is_unread = true;
            continue;
        };
        for id in names.iter().filter_map(|name| parse_name(name)) {
            places.entry(id).or_default().push(disk);
        }
    }
    // Without any log the directory is of a release that kept none: what was synced there and not closed says so only
    // when it is recovered, which may be after its disk is gone.
    let is_adopted = (0..set.len()).all(|disk| !read.is_sound(disk));
    let mut found = BTreeMap::new();
    for (id, disks) in &places {
        let record = read.records.get(id).filter(|r| r.fate != Fate::Removed);
        if let Some(subfile) = decide(set, *id, disks, record, |disk| read.is_sound(disk)) {
            if !subfile.is_recorded
                && let At::Disk(disk) = subfile.at
                && header(set, disk, *id).is_ok_and(|h| h.is_committed || is_adopted)
            {
                let record = Record {
                    id: *id,
                    disk: set.id(disk),
                    copy: subfile.copy,
                    fate: Fate::Kept,
                };
                read.records.insert(*id, record);
                let is_recorded = true;
                found.insert(
                    *id,
                    FoundSubfile {
                        is_recorded,
                        ..subfile
                    },
                );
                continue;
            }
            found.insert(*id, subfile);
        }
    }
    let gone = read
        .records
        .values()
        .filter(|r| !places.contains_key(&r.id));
    for record in gone.filter(|r| r.fate != Fate::Removed) {
        let at = match at_of(set, record) {
            At::Disk(disk) if unread[disk] => At::Disk(disk),
            At::Disk(disk) if record.fate == Fate::Kept => At::Lost(format!(
                "disk {} in {} had its data file, which is gone",
                record.disk,
                set.disk(disk).label()
            )),
            // Begun and never synced: the power took it.
            At::Disk(_) => continue,
            at => at,
        };
        let subfile = FoundSubfile {
            at,
            copy: record.copy,
            is_recorded: record.fate == Fate::Kept,
        };
        found.insert(record.id, subfile);
    }
    found
}

/// Where a record says that the bytes are.
fn at_of(set: &DiskSet, record: &Record) -> At {
    if let Some(disk) = set.find(record.disk) {
        return At::Disk(disk);
    }
    match set.missing().iter().position(|m| m.id == record.disk) {
        Some(missing) => At::Missing(missing),
        None => At::Lost(format!(
            "they were on disk {}, which was declared lost",
            record.disk
        )),
    }
}

/// What one or several data files of a subfile mean; `None` if they are nothing.
fn decide(
    set: &DiskSet,
    id: SubfileId,
    disks: &[usize],
    record: Option<&Record>,
    is_logged: impl Fn(usize) -> bool,
) -> Option<FoundSubfile> {
    let here = |disk: usize, copy: u64| {
        let is_recorded = record.is_some_and(|r| r.fate == Fate::Kept && r.disk == set.id(disk));
        FoundSubfile {
            at: At::Disk(disk),
            copy,
            is_recorded,
        }
    };
    if let [disk] = *disks {
        return match record {
            Some(record) if record.disk == set.id(disk) => Some(here(disk, record.copy)),
            None => match header(set, disk, id) {
                Err(Error::Unfinished { .. }) => {
                    clear_away(set, disk, id, is_logged(disk)).then(|| here(disk, 0))
                }
                Ok(header) => Some(here(disk, header.copy)),
                // A client that opens it hears what is wrong with it.
                Err(_) => Some(here(disk, 0)),
            },
            Some(record) => Some(against(set, id, disk, record, here)),
        };
    }
    let mut versions: Vec<(Option<u64>, usize)> = disks
        .iter()
        .map(|&disk| match header(set, disk, id) {
            Ok(h) => (h.counts.then_some(h.copy), disk),
            Err(_) => (None, disk),
        })
        .collect();
    versions.sort_unstable();
    let conflict = FoundSubfile {
        at: At::Conflict(disks.to_vec()),
        copy: record.map_or(0, |r| r.copy),
        is_recorded: record.is_some(),
    };
    let [rest @ .., (best, winner)] = &versions[..] else {
        return None;
    };
    let Some(best) = *best else {
        return Some(conflict);
    };
    if rest.iter().any(|(version, _)| *version == Some(best)) {
        return Some(conflict);
    }
    if let Some(record) = record.filter(|r| r.copy > best && r.fate == Fate::Kept) {
        // All of them are older than one that was durable.
        return Some(against(set, id, *winner, record, here));
    }
    for (_, loser) in rest {
        // What cannot be put aside is found again by the next start.
        let _ = set.disk(*loser).quarantine(&name_of(id));
    }
    Some(here(*winner, best))
}

/// A data file on a disk, and a record of another one.
fn against(
    set: &DiskSet,
    id: SubfileId,
    disk: usize,
    record: &Record,
    here: impl Fn(usize, u64) -> FoundSubfile,
) -> FoundSubfile {
    let copy = match header(set, disk, id) {
        Ok(h) if h.counts => Some(h.copy),
        _ => None,
    };
    let at = at_of(set, record);
    let is_newer = match (&at, copy) {
        (_, None) => false,
        // The same, put here by hand.
        (At::Disk(_), Some(copy)) => copy >= record.copy,
        (_, Some(copy)) => copy > record.copy,
    };
    match (is_newer, at, copy) {
        (true, _, Some(copy)) => here(disk, copy),
        (_, At::Disk(other), _) => FoundSubfile {
            at: At::Lost(format!(
                "disk {} in {} had its data file, which is gone; {} in {} is older",
                record.disk,
                set.disk(other).label(),
                name_of(id),
                set.disk(disk).label()
            )),
            copy: record.copy,
            is_recorded: true,
        },
        (_, at, _) => FoundSubfile {
            at,
            copy: record.copy,
            is_recorded: true,
        },
    }
}

fn header(set: &DiskSet, disk: usize, id: SubfileId) -> Result<Header, Error> {
    let name = name_of(id);
    let file = set.disk(disk).open(&name);
    let file = file.map_err(|e| Error::io("opening a data file", e, 0))?;
    let (header, _) = read_header(&name, &*file)?;
    Ok(Header {
        copy: header.copy,
        counts: header.copy == 0 || header.committed > 0,
        is_committed: header.committed > 0,
    })
}

/// Deals with a data file that has no header and no record: the server that began it died. Where records are kept it was
/// never synced, and is removed; in a directory of the time before, one with anything in it is put aside. Says
/// whether it is still there.
pub(crate) fn clear_away(set: &DiskSet, disk: usize, id: SubfileId, is_logged: bool) -> bool {
    let (disk, name) = (set.disk(disk), name_of(id));
    let is_empty = || {
        let data = disk.open(&name).and_then(|file| file.next_data(0));
        data.is_ok_and(|data| data.is_none())
    };
    let done = match is_logged || is_empty() {
        true => disk.remove(&name),
        false => disk.quarantine(&name).map(drop),
    };
    done.is_err()
}
