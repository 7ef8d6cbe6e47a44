//! `pario doctor --rebuild`: files out of the stores of a service whose catalogue is lost, into another service.
//!
//! ```text
//!  data files of the old servers   header: which file, which subfile, owner, mode
//!                                  note:   path, array, layout, as they were when the subfile was made
//!          |  subfile by subfile, through the view that the layout gives it
//!          v
//!  PATH.rebuilding at the new service  -- all of it written -->  PATH
//! ```
//!
//! Invariants
//! - Nothing of the old stores is changed but what opening a store changes: it recovers what was not closed.
//! - A path of the new service has a whole file or none. What is there already is left alone, so a run that was cut short is run
//!   again.
//! - A file whose subfiles contradict each other (a move that was under way) is told and not rebuilt.
//!
//! What no data file knows does not come back: empty files and directories, names that were given after the first byte was
//! written, hints, profiles, views, and holes at the end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use client::{Client, File, Layout, OpenOptions, Status, View};
use layout::{ArrayType, FileOffset};
use metaserver::note::Note;
use serde_json::json;
use store::{Directory, Disk, DiskOptions, DiskSpec, DiskStore, Domain, Pool, PoolOptions, Store};

use super::connection;
use super::doctor::Arguments;
use super::names::shown;
use super::output::{self, counted};
use super::{Error, ReportedFailure};

/// Memory of each old store.
const MEMORY_BYTES: u64 = 64 << 20;
/// Bytes that are copied at a time.
const PIECE: usize = 1 << 20;
/// What a file is called until it is whole.
const UNFINISHED: &str = ".rebuilding";

/// A subfile that an old store has.
struct FoundSubfile {
    store: usize,
    id: store::SubfileId,
    domain: Domain,
    note: Note,
}

impl FoundSubfile {
    /// Array and layout of the file when it was made.
    fn cut(&self) -> (Option<&str>, Option<&str>) {
        let layout = self.note.layout_of(self.id.generation);
        (self.note.array.as_deref(), layout)
    }
}

/// What became of the files.
#[derive(Default)]
struct Tally {
    files: u64,
    bytes: u64,
    already_there: u64,
    /// What could not be rebuilt, and why.
    failed: Vec<String>,
}

/// Rebuilds what the stores have, each given as its directories with commas between them.
pub(super) fn run(arguments: &Arguments) -> Result<(), Error> {
    let client = connection::connect_to_existing()?;
    let stores = arguments.from.iter().map(|dirs| open(dirs));
    let stores = stores.collect::<Result<Vec<DiskStore>, Error>>()?;
    let mut tally = Tally::default();
    let mut files: BTreeMap<u64, Vec<FoundSubfile>> = BTreeMap::new();
    for (number, store) in stores.iter().enumerate() {
        for scanned in store.scan() {
            let note = |note: &[u8]| Note::decode(note).map_err(|e| e.to_string());
            let found = scanned.content.map_err(|e| e.to_string());
            match found.and_then(|(identity, _)| Ok((note(&identity.note)?, identity))) {
                Ok((note, identity)) => {
                    let found = FoundSubfile {
                        store: number,
                        id: identity.id,
                        domain: identity.domain,
                        note,
                    };
                    files.entry(identity.id.file).or_default().push(found);
                }
                Err(why) => tally.failed.push(format!("{}: {why}", scanned.name)),
            }
        }
    }
    for (file, found) in &files {
        if let Err(why) = rebuild(&client, &stores, found, &mut tally) {
            let path = shown(&found[0].note.path);
            tally.failed.push(format!("file {file:x}, {path}: {why}"));
        }
    }
    tally.tell(arguments)
}

impl Tally {
    fn tell(&self, arguments: &Arguments) -> Result<(), Error> {
        if arguments.json {
            let facts = json!({
                "files": self.files, "bytes": self.bytes, "already_there": self.already_there, "failed": self.failed,
            });
            output::print(&format!("{facts:#}\n"))?;
        } else {
            let mut text = format!(
                "{} rebuilt, {} bytes; {} there already\n",
                counted(self.files, "file", "files"),
                self.bytes,
                counted(self.already_there, "was", "were"),
            );
            for failed in &self.failed {
                text += &format!("not rebuilt: {failed}\n");
            }
            output::print(&text)?;
        }
        match self.failed.is_empty() {
            true => Ok(()),
            false => Err(ReportedFailure.into()),
        }
    }
}

/// The store in the directories of one server.
fn open(dirs: &str) -> Result<DiskStore, Error> {
    let paths: Vec<PathBuf> = dirs.split(',').map(PathBuf::from).collect();
    let disk = |path: &PathBuf| {
        let failed = |e: std::io::Error| Error::from(format!("{}: {e}", path.display()));
        let directory = Directory::at(path).map_err(failed)?;
        // Opening an empty directory would make a store of it.
        let names = directory.names().map_err(failed)?;
        match names.iter().any(|name| name.ends_with(".sub")) {
            true => Ok(DiskSpec::new(directory)),
            false => Err(Error::from(format!(
                "{} has no data files; name the directories of an I/O server, as in DIR/io-0",
                path.display()
            ))),
        }
    };
    let disks = paths.iter().map(disk).collect::<Result<Vec<_>, Error>>()?;
    let pool = Pool::new(PoolOptions::for_limit(MEMORY_BYTES));
    DiskStore::new(pool, disks, DiskOptions::default())
        .map_err(|e| format!("{dirs}: {e}; end its server first").into())
}

/// How a file was cut, by what all of its subfiles say.
fn cut(found: &[FoundSubfile]) -> Result<layout::AppliedLayout, String> {
    let first = &found[0];
    if found.iter().any(|other| other.cut() != first.cut()) {
        return Err("its subfiles belong to several layouts: it was being moved".into());
    }
    let mut indices: Vec<u32> = found.iter().map(|found| found.id.index).collect();
    indices.sort_unstable();
    if indices.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("several data files say that they are the same subfile".into());
    }
    let (array, text) = first.cut();
    let text = text.ok_or("its layout is not on record")?;
    let layout: Layout = text.parse().map_err(|e| format!("layout: {e}"))?;
    let applied = match array {
        Some(array) => {
            let array: ArrayType = array.parse().map_err(|e| format!("array: {e}"))?;
            layout.on_array(&array)
        }
        None => layout.on_bytes(),
    };
    applied.map_err(|e| e.to_string())
}

/// Rebuilds one file.
fn rebuild(
    client: &Client,
    stores: &[DiskStore],
    found: &[FoundSubfile],
    tally: &mut Tally,
) -> Result<(), String> {
    let said = |e: client::Error| e.to_string();
    let applied = cut(found)?;
    let note = &found[0].note;
    if !note.path.starts_with('/') {
        return Err("its path is not on record".into());
    }
    if client.attributes(&note.path).is_ok() {
        tally.already_there += 1;
        return Ok(());
    }
    if let Some(above) = Path::new(&note.path).parent().and_then(Path::to_str) {
        client.mkdir_all(above, None).map_err(said)?;
    }
    let unfinished = format!("{}{UNFINISHED}", note.path);
    match client.unlink(&unfinished) {
        Err(e) if e.status() != Status::NotFound => return Err(said(e)),
        _ => {}
    }
    let file = create(client, &unfinished, &found[0]).map_err(said)?;
    let (mut bytes, mut end) = (0, 0);
    for found in found {
        let index = u64::from(found.id.index);
        let set = applied.element(index).map_err(|e| e.to_string())?;
        let view = View::new(FileOffset(0), applied.period(), set).map_err(|e| e.to_string())?;
        file.set_view(&view).map_err(said)?;
        let len = copy(&stores[found.store], found, &file)?;
        bytes += len;
        // Where its last byte lies; holes behind it are not known.
        if let Some(at) = len
            .checked_sub(1)
            .and_then(|last| view.bytes().select(last))
        {
            end = end.max(at + 1);
        }
    }
    if file.size().map_err(said)? < end {
        file.resize(end).map_err(said)?;
    }
    file.sync().map_err(said)?;
    file.close().map_err(said)?;
    let domain = found[0].domain;
    client
        .chmod(&unfinished, domain.mode & 0o7777)
        .map_err(said)?;
    // Only root gives files away.
    let _ = client.chown(&unfinished, Some(domain.owner), Some(domain.group));
    client.rename(&unfinished, &note.path).map_err(said)?;
    tally.files += 1;
    tally.bytes += bytes;
    Ok(())
}

/// A new file with the array and, where the new service can, the layout of the old one.
fn create(client: &Client, path: &str, first: &FoundSubfile) -> client::Result<File> {
    let (array, layout) = first.cut();
    let mut plain = OpenOptions::new().read().write().exclusive();
    if let Some(array) = array {
        plain = plain.array(array);
    }
    let laid_out = plain.clone().layout(layout.unwrap_or(""));
    match client.open(path, &laid_out) {
        // It names servers that are not there.
        Err(e) if matches!(e.status(), Status::InvalidArgument | Status::NotFound) => {
            client.open(path, &plain)
        }
        opened => opened,
    }
}

/// Copies a subfile through the view of the file that it is; how long it is. Pieces of zeros stay holes.
fn copy(store: &DiskStore, found: &FoundSubfile, file: &File) -> Result<u64, String> {
    let subfile = store.open(found.id).map_err(|e| e.to_string())?;
    let len = subfile.len();
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    while at < len {
        let count = usize::try_from(len - at).map_or(PIECE, |left| left.min(PIECE));
        let piece = &mut piece[..count];
        subfile.read_at(at, piece).map_err(|e| e.to_string())?;
        if piece.iter().any(|&byte| byte != 0) {
            let mut written = 0;
            while written < count {
                let n = file.write_at(at + written as u64, &piece[written..]);
                written += n.map_err(|e| e.to_string())?;
            }
        }
        at += count as u64;
    }
    Ok(len)
}
