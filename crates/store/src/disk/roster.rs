//! Which disks belong together: the identity of each, and the list that all of them carry.
//!
//! Every disk of a store has a file `disk` with the store's number, its own number and the list of all disks of the
//! store. So each of them tells when another one is absent, empty or another server's, the first one included. A list
//! may lie in one more directory that is no disk. The list with the highest revision counts.
//!
//! Invariants
//! - A directory that was on the list and has no identity any more is missing; nothing is ever written there.
//! - A directory joins the list, as *new*, before it gets its identity, and is *here* once it has it: wherever that is
//!   interrupted, the next start goes on with it.
//! - A disk leaves the list only when the administrator declares it lost, and stays on it as lost: it never comes back by itself.
//!
//! The bytes are in `docs/formats/disk-store.md`. Reading accepts any bytes.

use std::fmt::Write;
use std::io;
use std::sync::Arc;

use super::device::Disk;
use super::format::crc32c;
use super::set::DiskSpec;
use super::store::random_number;
use crate::error::{Error, Result};

/// Name of the identity of a disk.
pub(crate) const NAME: &str = "disk";
const FRESH: &str = "disk.new";
const MAGIC: &str = "pario-disk";
const VERSION: &str = "1";
/// Most bytes of an identity: some thousand disks.
const MOST_BYTES: usize = 1 << 20;

/// Number of a disk, random, never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DiskId(pub u64);

impl std::fmt::Display for DiskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl std::str::FromStr for DiskId {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<DiskId, String> {
        let is_hex = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u64::from_str_radix(text, 16) {
            Ok(number) if is_hex => Ok(DiskId(number)),
            _ => Err("is no disk; `pario doctor` names them with 16 hexadecimal digits".to_owned()),
        }
    }
}

/// What is known of a disk on the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListedState {
    /// It is to get its identity.
    New,
    /// It has it.
    Here,
    /// The administrator has declared it lost.
    Lost,
}

/// A disk on the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedDisk {
    pub(crate) id: DiskId,
    pub(crate) standing: ListedState,
    /// Where it was last.
    pub(crate) place: String,
}

/// The disks of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Roster {
    /// Number of the store.
    pub(crate) store: u64,
    pub(crate) revision: u64,
    /// Subfiles bound to this start of the server or an earlier one may have been on disks that were lost together
    /// with their records.
    pub(crate) doubt: u64,
    pub(crate) disks: Vec<ListedDisk>,
}

impl Roster {
    /// As it lies on a disk, or beside them all.
    pub(crate) fn encode(&self, own: Option<DiskId>) -> Vec<u8> {
        let mut text = format!("{MAGIC} {VERSION}\nstore {:016x}\n", self.store);
        // Writing to a string does not fail.
        let _ = match own {
            Some(id) => writeln!(text, "disk {id}"),
            None => writeln!(text, "disk none"),
        };
        let _ = writeln!(text, "revision {}\ndoubt {}", self.revision, self.doubt);
        for disk in &self.disks {
            let standing = match disk.standing {
                ListedState::New => "new",
                ListedState::Here => "here",
                ListedState::Lost => "lost",
            };
            let _ = writeln!(text, "{standing} {} {}", disk.id, disk.place);
        }
        let crc = crc32c(text.as_bytes());
        let _ = writeln!(text, "crc {crc:08x}");
        text.into_bytes()
    }

    /// The list and whose copy it is; why not otherwise.
    pub(crate) fn decode(bytes: &[u8]) -> std::result::Result<(Roster, Option<DiskId>), String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "is damaged: no text".to_owned())?;
        let head = text.lines().next().unwrap_or_default();
        match head.split_once(' ') {
            Some((MAGIC, VERSION)) => {}
            Some((MAGIC, version)) => {
                return Err(format!(
                    "has format version {version}; this program reads version {VERSION}"
                ));
            }
            _ => return Err("is damaged: no identity of a disk".to_owned()),
        }
        let damaged = || "is damaged".to_owned();
        let body = text.trim_end_matches('\n');
        let (body, last) = body.rsplit_once('\n').ok_or_else(damaged)?;
        let crc = last.strip_prefix("crc ").ok_or_else(damaged)?;
        let crc = u32::from_str_radix(crc, 16).map_err(|_| damaged())?;
        if crc32c(format!("{body}\n").as_bytes()) != crc {
            return Err("is damaged: its checksum does not match".to_owned());
        }
        let mut lines = body.lines().skip(1);
        let mut value = |name: &str| -> std::result::Result<&str, String> {
            let line = lines.next().ok_or_else(damaged)?;
            let (found, value) = line.split_once(' ').ok_or_else(damaged)?;
            (found == name).then_some(value).ok_or_else(damaged)
        };
        let hex = |text: &str| text.parse::<DiskId>().map_err(|_| damaged());
        let decimal = |text: &str| text.parse::<u64>().map_err(|_| damaged());
        let store = hex(value("store")?)?.0;
        let own = match value("disk")? {
            "none" => None,
            id => Some(hex(id)?),
        };
        let revision = decimal(value("revision")?)?;
        let doubt = decimal(value("doubt")?)?;
        let mut disks = Vec::new();
        for line in lines {
            let (standing, rest) = line.split_once(' ').ok_or_else(damaged)?;
            let (id, place) = rest.split_once(' ').ok_or_else(damaged)?;
            let standing = match standing {
                "new" => ListedState::New,
                "here" => ListedState::Here,
                "lost" => ListedState::Lost,
                _ => return Err(damaged()),
            };
            disks.push(ListedDisk {
                id: hex(id)?,
                standing,
                place: place.to_owned(),
            });
        }
        let roster = Roster {
            store,
            revision,
            doubt,
            disks,
        };
        Ok((roster, own))
    }
}

/// What is in a directory that is to be a disk.
enum DirectoryContent {
    /// No directory, or one that cannot be read.
    Absent(String),
    /// Nothing of a store.
    Empty,
    /// Data files, but no identity.
    Nameless,
    Ours(Roster, DiskId),
}

/// A disk that belongs to the store and is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingDisk {
    /// Its number.
    pub id: DiskId,
    /// Where it was last.
    pub place: String,
    /// What was found there.
    pub why: String,
}

/// Disks that belong together.
#[derive(Debug)]
pub(crate) struct AssembledDisks {
    pub(crate) present: Vec<(DiskSpec, DiskId)>,
    pub(crate) missing: Vec<MissingDisk>,
    pub(crate) lost: Vec<DiskId>,
    pub(crate) roster: Roster,
    /// The list has to be written.
    is_changed: bool,
}

/// Compares the directories that are given with the list. Writes nothing.
pub(crate) fn assemble(
    specs: Vec<DiskSpec>,
    beside: Option<&Arc<dyn Disk>>,
    forget: &[DiskId],
) -> Result<AssembledDisks> {
    let mut seen = Vec::new();
    for spec in specs {
        let what = look(&*spec.disk)?;
        seen.push(Some((spec, what)));
    }
    let listed = match beside {
        Some(disk) => read(&**disk)?.map(|(roster, _)| roster),
        None => None,
    };
    let Some(mut roster) = newest(listed, &seen)? else {
        return begin(seen);
    };
    for id in forget {
        match roster.disks.iter_mut().find(|d| d.id == *id) {
            Some(disk) if has(&seen, *id) => {
                return Err(Error::Disks(format!(
                    "disk {id} is there, in {}; only a disk that is missing can be forgotten",
                    disk.place
                )));
            }
            Some(disk) => disk.standing = ListedState::Lost,
            None => {
                return Err(Error::Disks(format!(
                    "disk {id} does not belong to this server"
                )));
            }
        }
    }
    let before = roster.clone();
    let mut assembled = AssembledDisks {
        present: Vec::new(),
        missing: Vec::new(),
        lost: Vec::new(),
        is_changed: !forget.is_empty(),
        roster: before,
    };
    for disk in &mut roster.disks {
        if disk.standing == ListedState::Lost {
            assembled.lost.push(disk.id);
            continue;
        }
        let mut own = seen
            .iter_mut()
            .filter(|s| matches!(s, Some((_, DirectoryContent::Ours(_, id))) if *id == disk.id));
        let found = own.next().and_then(Option::take);
        if let Some(Some((other, _))) = own.next() {
            return Err(Error::Disks(format!(
                "{} says that it is disk {}, and so does another directory; one is a copy: leave it out",
                other.disk.label(),
                disk.id
            )));
        }
        if let Some((spec, _)) = found {
            assembled.is_changed |= disk.standing == ListedState::New;
            disk.standing = ListedState::Here;
            assembled.is_changed |= disk.place != spec.disk.label();
            disk.place = spec.disk.label();
            assembled.present.push((spec, disk.id));
            continue;
        }
        let is_there = |s: &Option<(DiskSpec, DirectoryContent)>| {
            let is_free = |s: &DirectoryContent| !matches!(s, DirectoryContent::Ours(..));
            s.as_ref()
                .is_some_and(|(spec, what)| spec.disk.label() == disk.place && is_free(what))
        };
        let there = seen.iter_mut().find(|s| is_there(s)).and_then(Option::take);
        let why = match there {
            Some((
                spec,
                DirectoryContent::Empty | DirectoryContent::Nameless | DirectoryContent::Absent(_),
            )) if disk.standing == ListedState::New => {
                assembled.present.push((spec, disk.id));
                assembled.is_changed = true;
                continue;
            }
            Some((_, DirectoryContent::Absent(why))) => why,
            Some((_, DirectoryContent::Empty)) => "the directory is empty".to_owned(),
            Some(_) => "the directory has data files, but not the identity of a disk".to_owned(),
            None => "its directory is not given".to_owned(),
        };
        assembled.missing.push(MissingDisk {
            id: disk.id,
            place: disk.place.clone(),
            why,
        });
    }
    for (spec, what) in seen.into_iter().flatten() {
        let label = spec.disk.label();
        match what {
            DirectoryContent::Empty | DirectoryContent::Absent(_) => {
                let id = DiskId(random_number());
                roster.disks.push(ListedDisk {
                    id,
                    standing: ListedState::New,
                    place: label,
                });
                assembled.present.push((spec, id));
                assembled.is_changed = true;
            }
            DirectoryContent::Nameless => {
                return Err(Error::Disks(format!(
                    "{label} has data files, but does not say which disk it is; leave it out, or restore its file `{NAME}`"
                )));
            }
            DirectoryContent::Ours(_, id) => {
                return Err(Error::Disks(format!(
                    "{label} is disk {id}, which was declared lost; leave it out, or empty it to use it as a new one"
                )));
            }
        }
    }
    if assembled.present.is_empty() {
        let missing: Vec<String> = assembled.missing.iter().map(ToString::to_string).collect();
        return Err(Error::Disks(missing.join("; ")));
    }
    assembled.roster = roster;
    Ok(assembled)
}

fn has(seen: &[Option<(DiskSpec, DirectoryContent)>], id: DiskId) -> bool {
    let is_it = |s: &Option<(DiskSpec, DirectoryContent)>| matches!(s, Some((_, DirectoryContent::Ours(_, own))) if *own == id);
    seen.iter().any(is_it)
}

/// The list that counts; `None` if nobody has one. Refuses disks of different stores.
fn newest(
    listed: Option<Roster>,
    seen: &[Option<(DiskSpec, DirectoryContent)>],
) -> Result<Option<Roster>> {
    let mut newest = listed;
    let mut whose = "this server".to_owned();
    for (spec, what) in seen.iter().flatten() {
        let DirectoryContent::Ours(roster, id) = what else {
            continue;
        };
        let label = spec.disk.label();
        match &newest {
            Some(best) if best.store != roster.store => {
                let expected = best.disks.iter().find(|d| d.place == label);
                let expected = match expected {
                    Some(disk) => format!("disk {} is expected there", disk.id),
                    None => "no disk is expected there".to_owned(),
                };
                return Err(Error::Disks(format!(
                    "{label} is disk {id} of another server (store {:016x}), {whose} has store {:016x}; {expected}: \
                     mount the right one, or leave this one out",
                    roster.store, best.store
                )));
            }
            Some(best) if best.revision >= roster.revision => {}
            _ => {
                newest = Some(roster.clone());
                whose = format!("that of {label}");
            }
        }
    }
    Ok(newest)
}

/// A store that has no list yet: a new one, or one of the version before lists.
fn begin(seen: Vec<Option<(DiskSpec, DirectoryContent)>>) -> Result<AssembledDisks> {
    let mut assembled = AssembledDisks {
        present: Vec::new(),
        missing: Vec::new(),
        lost: Vec::new(),
        roster: Roster {
            store: random_number(),
            revision: 0,
            doubt: 0,
            disks: Vec::new(),
        },
        is_changed: true,
    };
    for (spec, _) in seen.into_iter().flatten() {
        let id = DiskId(random_number());
        assembled.roster.disks.push(ListedDisk {
            id,
            standing: ListedState::New,
            place: spec.disk.label(),
        });
        assembled.present.push((spec, id));
    }
    Ok(assembled)
}

impl AssembledDisks {
    /// Whether there was no list until now.
    pub(crate) fn is_begun(&self) -> bool {
        self.roster.revision == 0
    }

    /// Whether a disk gets its identity only now.
    pub(crate) fn is_new(&self, id: DiskId) -> bool {
        let mut disks = self.roster.disks.iter();
        disks.any(|d| d.id == id && d.standing == ListedState::New)
    }

    /// Makes directories that are to be used and do not exist yet.
    pub(crate) fn make(&self) -> Result<()> {
        for (spec, _) in &self.present {
            let made = spec.disk.make();
            made.map_err(|e| Error::Disks(format!("{}: {e}", spec.disk.label())))?;
        }
        Ok(())
    }

    /// Writes the list on all disks, if it has changed or one of them has another: with those that are new first, then
    /// without.
    pub(crate) fn write(&mut self, beside: Option<&Arc<dyn Disk>>) -> Result<()> {
        let is_new = |d: &ListedDisk| d.standing == ListedState::New;
        let mut rounds = 1;
        if self.roster.disks.iter().any(is_new) && self.present.len() > 1 {
            rounds = 2;
        }
        for round in 1..=rounds {
            if self.is_changed {
                self.roster.revision += 1;
            }
            if round == rounds {
                let news = self.roster.disks.iter_mut().filter(|d| is_new(d));
                news.for_each(|d| d.standing = ListedState::Here);
            }
            // Those that have their identity first: a new one is on the list before it gets its own.
            let mut order: Vec<&(DiskSpec, DiskId)> = self.present.iter().collect();
            order.sort_by_key(|(spec, _)| !matches!(read(&*spec.disk), Ok(Some(_))));
            if let Some(disk) = beside {
                replace(&**disk, &self.roster, None)?;
            }
            for (spec, id) in order {
                replace(&*spec.disk, &self.roster, Some(*id))?;
            }
        }
        self.is_changed = false;
        Ok(())
    }
}

impl std::fmt::Display for MissingDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "disk {} of this server is missing in {}: {}; mount it and start the server again, or declare it lost \
             with --forget-disk {}",
            self.id, self.place, self.why, self.id
        )
    }
}

fn look(disk: &dyn Disk) -> Result<DirectoryContent> {
    let names = match disk.names() {
        Ok(names) => names,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Ok(DirectoryContent::Absent(
                "there is no such directory".to_owned(),
            ));
        }
        Err(e) => return Ok(DirectoryContent::Absent(e.to_string())),
    };
    match read(disk)? {
        Some((roster, Some(id))) => Ok(DirectoryContent::Ours(roster, id)),
        Some((_, None)) => Err(Error::Disks(format!(
            "{}: is a list of disks and no disk",
            disk.label()
        ))),
        None if names.iter().any(|n| n.ends_with(".sub")) => Ok(DirectoryContent::Nameless),
        None => Ok(DirectoryContent::Empty),
    }
}

/// What the file of a disk says; `None` if there is none.
fn read(disk: &dyn Disk) -> Result<Option<(Roster, Option<DiskId>)>> {
    let failed = |why: String| Error::Disks(format!("{}: its file `{NAME}` {why}", disk.label()));
    let file = match disk.open(NAME) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(format!("cannot be read: {e}"))),
    };
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let read = file.read_at(bytes.len() as u64, &mut part);
        match read.map_err(|e| failed(format!("cannot be read: {e}")))? {
            0 => break,
            n => bytes.extend_from_slice(&part[..n]),
        }
        if bytes.len() > MOST_BYTES {
            return Err(failed("is damaged: too long".to_owned()));
        }
    }
    // Disks in memory have whole pages.
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    Roster::decode(&bytes).map(Some).map_err(failed)
}

/// Written aside and renamed: a crash leaves the old one or the new one. One that is the same is left alone.
fn replace(disk: &dyn Disk, roster: &Roster, own: Option<DiskId>) -> Result<()> {
    let failed = |e: io::Error| {
        Error::Disks(format!(
            "{}: its file `{NAME}` cannot be written: {e}",
            disk.label()
        ))
    };
    if matches!(read(disk), Ok(Some((found, id))) if found == *roster && id == own) {
        return Ok(());
    }
    replace_file(disk, (FRESH, NAME), &roster.encode(own)).map_err(failed)
}

/// Writes a file under a first name, makes it durable, and gives it its own name, durably.
pub(crate) fn replace_file(disk: &dyn Disk, names: (&str, &str), bytes: &[u8]) -> io::Result<()> {
    match disk.remove(names.0) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let file = disk.create(names.0)?;
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(done as u64, &bytes[done..])? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            n => done += n,
        }
    }
    file.sync()?;
    disk.rename(names.0, names.1)?;
    disk.sync_names()
}
