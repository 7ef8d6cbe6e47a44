//! The catalogue as one file: written from a snapshot while the service runs, and made a catalogue again.
//!
//! ```text
//!  pario-backup 1\n | block: what it is | block: rows | ... | block: rows | block: how many rows
//!  block: length, 4 bytes | body | CRC-32C of both, 4 bytes
//! ```
//!
//! The page `docs/formats/backup.md` has every byte.
//!
//! Invariants
//! - A backup is one state of the catalogue, whatever changes meanwhile.
//! - A file that was cut off or damaged is refused before there is a catalogue.
//! - Numbers that were given out after the backup are never given out again: files, starts, incarnations and generations go on far
//!   above those of the backup (`AHEAD`). Otherwise a new file would find the bytes of another one under its number.
//! - A server that was started since the backup has all its bytes still: the incarnation that the catalogue has of it is above all that
//!   it had.
//!
//! Left to others: the key of the cluster, which is in no backup, and what servers have of files that changed since (`pario doctor`).

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use redb::Database;
use wire::message::catalogue::MemberState;
use wire::message::{Bytes, Field};
use wire::seal::{SEAL_BYTES, Seal};
use wire::{LayoutState, Reader, put_number};

use super::any_row::read_row;
use super::record::{
    ANSWER, Body, Counter, Node, counter, decode, key, put_member, put_node, read_member,
    read_node, row_name, set_counter,
};
use super::rewritten::RewritingDisk;
use super::rows::{PAGE, Row, Rows, RowsTransaction, Transaction};
use super::{Catalogue, Snapshot, VERSION, image};
use crate::FileId;
use crate::error::MetaError;

/// Version of the file.
pub const BACKUP_VERSION: u64 = 1;

const MAGIC: &str = "pario-backup ";

/// How far above those of the backup numbers of files and incarnations go on. A service gives out fewer between two backups.
const AHEAD: u64 = 1 << 32;
/// How far above starts of the catalogue go on, which are a part of the numbers of clients.
const STARTS_AHEAD: u64 = 1 << 16;
/// How far above generations, steps and epochs of one file go on.
const CHANGES_AHEAD: u64 = 1 << 24;

/// Bytes of rows in a block, if one row is not more.
pub const BLOCK_BYTES: usize = 512 << 10;
/// No block is longer.
const MOST_BLOCK_BYTES: u32 = 128 << 20;

/// What a backup is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupHead {
    /// Version of the catalogue.
    pub catalogue_version: u64,
    /// When it was made, in seconds since 1970.
    pub at_s: u64,
    /// Files with a name, or still open without one.
    pub files: u64,
    /// Directories, the root included.
    pub directories: u64,
}

/// Why a backup cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// It is something else.
    #[error("this is no backup of a catalogue")]
    NoBackup,
    /// A later release has made it.
    #[error("made by a later release ({what} version {found}, known is {known}); use that release")]
    Newer {
        /// Of what.
        what: &'static str,
        /// Which version it has.
        found: u64,
        /// Which is known.
        known: u64,
    },
    /// Bytes of it are wrong or missing.
    #[error("damaged: {0}; take another copy of it")]
    Damaged(String),
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The catalogue cannot be made.
    #[error(transparent)]
    Catalogue(#[from] MetaError),
}

/// What the first byte of a block says.
const HEAD: u8 = 0;
const ROWS: u8 = 1;
const END: u8 = 2;

impl Snapshot {
    /// Rows behind a key in the order of their keys, some [`BLOCK_BYTES`] of them; none at the end.
    pub fn rows_after(&self, after: Option<&[u8]>) -> Result<Vec<Row>, MetaError> {
        let mut rows = Vec::new();
        let mut bytes = 0;
        let mut last = after.map(<[u8]>::to_vec);
        loop {
            let page = self.rows.scan(&[], last.as_deref(), PAGE / 8)?;
            let is_last = page.len() < PAGE / 8;
            for (key, value) in page {
                bytes += key.len() + value.len();
                if bytes > BLOCK_BYTES && !rows.is_empty() {
                    return Ok(rows);
                }
                last = Some(key.clone());
                rows.push((key, value));
            }
            if is_last {
                return Ok(rows);
            }
        }
    }

    /// What a backup of this state is of, made at a time.
    pub fn backup_head(&self, at_s: u64) -> Result<BackupHead, MetaError> {
        Ok(BackupHead {
            catalogue_version: VERSION,
            at_s,
            files: counter(&self.rows, Counter::Files)?,
            directories: counter(&self.rows, Counter::Directories)?,
        })
    }

    /// When the backup was made, in seconds since 1970, that the catalogue was restored from; 0 if it never was.
    pub fn restored_from_s(&self) -> Result<u64, MetaError> {
        counter(&self.rows, Counter::RestoredFrom)
    }
}

/// Writes a backup.
pub struct BackupWriter<W> {
    out: W,
    rows: u64,
}

impl<W: Write> BackupWriter<W> {
    /// Begins one.
    pub fn new(mut out: W, head: &BackupHead) -> io::Result<BackupWriter<W>> {
        out.write_all(format!("{MAGIC}{BACKUP_VERSION}\n").as_bytes())?;
        let mut body = vec![HEAD];
        for n in [
            head.catalogue_version,
            head.at_s,
            head.files,
            head.directories,
        ] {
            put_number(&mut body, n);
        }
        write_block(&mut out, &body)?;
        Ok(BackupWriter { out, rows: 0 })
    }

    /// Adds rows.
    pub fn rows<'r>(
        &mut self,
        rows: impl IntoIterator<Item = (&'r [u8], &'r [u8])>,
    ) -> io::Result<()> {
        let mut body = vec![ROWS];
        for (key, value) in rows {
            for part in [key, value] {
                put_number(&mut body, part.len() as u64);
                body.extend_from_slice(part);
            }
            self.rows += 1;
        }
        write_block(&mut self.out, &body)
    }

    /// Ends it; how many rows it has.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        let mut body = vec![END];
        put_number(&mut body, self.rows);
        write_block(&mut self.out, &body)?;
        self.out.flush()?;
        Ok((self.out, self.rows))
    }
}

fn write_block(out: &mut impl Write, body: &[u8]) -> io::Result<()> {
    let len = u32::try_from(body.len()).map_err(io::Error::other)?;
    let mut seal = Seal::new();
    seal.add(&len.to_le_bytes()[..]);
    seal.add(body);
    out.write_all(&len.to_le_bytes())?;
    out.write_all(body)?;
    out.write_all(&seal.bytes())
}

fn damaged(what: impl Into<String>) -> BackupError {
    BackupError::Damaged(what.into())
}

/// Reads a backup.
pub struct BackupReader<R> {
    from: R,
    head: BackupHead,
    rows: u64,
    last_key: Option<Vec<u8>>,
}

impl<R: Read> BackupReader<R> {
    /// Reads what it is of.
    pub fn new(mut from: R) -> Result<BackupReader<R>, BackupError> {
        let mut line = Vec::new();
        while line.len() < 64 && line.last() != Some(&b'\n') {
            let mut byte = [0];
            match from.read(&mut byte)? {
                0 => break,
                _ => line.push(byte[0]),
            }
        }
        let line = String::from_utf8(line).map_err(|_| BackupError::NoBackup)?;
        let version = line
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.strip_suffix('\n')?.parse().ok());
        let version = version.ok_or(BackupError::NoBackup)?;
        newer("the file", version, BACKUP_VERSION)?;
        let body = read_block(&mut from)?;
        let mut r = Reader::new(&body);
        let read = |r: &mut Reader<'_>| {
            let tag = r.take(1)?[0];
            let mut next = || r.number();
            let head = BackupHead {
                catalogue_version: next()?,
                at_s: next()?,
                files: next()?,
                directories: next()?,
            };
            Ok::<_, wire::DecodeError>((tag, head))
        };
        let (tag, head) = read(&mut r).map_err(|e| damaged(format!("what it is of: {e}")))?;
        if tag != HEAD {
            return Err(damaged("it does not say what it is of"));
        }
        newer("the catalogue", head.catalogue_version, VERSION)?;
        Ok(BackupReader {
            from,
            head,
            rows: 0,
            last_key: None,
        })
    }

    /// What it is of.
    pub fn head(&self) -> &BackupHead {
        &self.head
    }

    /// The next rows; nothing at the end, which has to be there.
    pub fn next_rows(&mut self) -> Result<Option<Vec<Row>>, BackupError> {
        let body = read_block(&mut self.from)?;
        let mut r = Reader::new(&body);
        let broken = |e: wire::DecodeError| damaged(format!("a block of rows: {e}"));
        match r.take(1).map_err(broken)?[0] {
            ROWS => {}
            END => {
                let said = r.number().map_err(broken)?;
                if said != self.rows {
                    let text = format!("it has {} rows of {said}", self.rows);
                    return Err(damaged(text));
                }
                return Ok(None);
            }
            other => return Err(damaged(format!("a block of kind {other}"))),
        }
        let mut rows = Vec::new();
        while r.left() > 0 {
            let Bytes(key) = Field::read(&mut r).map_err(broken)?;
            let Bytes(value) = Field::read(&mut r).map_err(broken)?;
            if self.last_key.as_ref().is_some_and(|last| *last >= key) {
                return Err(damaged("rows are not in their order"));
            }
            self.last_key = Some(key.clone());
            rows.push((key, value));
        }
        self.rows += rows.len() as u64;
        Ok(Some(rows))
    }
}

fn newer(what: &'static str, found: u64, known: u64) -> Result<(), BackupError> {
    match found > known {
        true => Err(BackupError::Newer { what, found, known }),
        false => Ok(()),
    }
}

fn read_block(from: &mut impl Read) -> Result<Vec<u8>, BackupError> {
    let cut_off = |e: io::Error| match e.kind() {
        io::ErrorKind::UnexpectedEof => damaged("it ends too early"),
        _ => BackupError::Io(e),
    };
    let mut len = [0; 4];
    from.read_exact(&mut len).map_err(cut_off)?;
    let bytes = u32::from_le_bytes(len);
    if bytes > MOST_BLOCK_BYTES {
        return Err(damaged(format!("a block of {bytes} bytes")));
    }
    let mut body = Vec::new();
    let taken = from.take(u64::from(bytes)).read_to_end(&mut body)?;
    let mut came = [0; SEAL_BYTES];
    if taken < bytes as usize {
        return Err(damaged("it ends too early"));
    }
    from.read_exact(&mut came).map_err(cut_off)?;
    let mut seal = Seal::new();
    seal.add(&len[..]);
    seal.add(&body[..]);
    match seal.fits(came) {
        true => Ok(body),
        false => Err(damaged("a block does not fit its checksum")),
    }
}

/// Makes a catalogue of a backup, in a file that does not exist; it is there when all of it is durable. Answers how many rows it has.
pub fn restore<R: Read>(path: &Path, backup: &mut BackupReader<R>) -> Result<u64, BackupError> {
    let (image, new) = image::Image::open(path)?;
    let Some(new) = new else {
        return Err(MetaError::Exists(path.display().to_string()).into());
    };
    let disk = RewritingDisk::new(image, Arc::new(AtomicBool::new(false)));
    let failed = |e: redb::DatabaseError| BackupError::Catalogue(e.into());
    let db = Database::builder()
        .create_with_backend(disk)
        .map_err(failed)?;
    let transaction = Transaction::begin(&db)?;
    let mut rows = transaction.rows()?;
    while let Some(some) = backup.next_rows()? {
        for (key, value) in some {
            read_row(&key, &value)?;
            // Clients of that time do not come back.
            if key.first() != Some(&ANSWER) {
                rows.put(key, value);
            }
        }
        rows.keep();
        rows.settle()?;
    }
    let (changed, _) = rows.finish()?;
    if !changed {
        return Err(damaged("it has no rows"));
    }
    transaction.end(changed)?;
    let at_s = backup.head.at_s;
    // Brings rows of an earlier version into the present one.
    let mut catalogue = Catalogue::start(db)?;
    catalogue.transact(|batch| {
        batch.one(|b| {
            go_on_above(&mut b.rows)?;
            set_counter(&mut b.rows, Counter::RestoredFrom, at_s.max(1));
            Ok(())
        })
    })??;
    drop(catalogue);
    new.finish()?;
    Ok(backup.rows)
}

/// Lets all numbers go on far above those of the backup.
fn go_on_above(rows: &mut RowsTransaction<'_>) -> Result<(), MetaError> {
    let ahead = [
        (Counter::NextFile, AHEAD),
        (Counter::Starts, STARTS_AHEAD),
        (Counter::NextIncarnation, AHEAD),
    ];
    let last_incarnation = counter(rows, Counter::NextIncarnation)?;
    for (which, more) in ahead {
        let value = counter(rows, which)?;
        set_counter(rows, which, raised(value, more, &key::counter(which))?);
    }
    change_all(rows, &key::members(), |rows, key, value| {
        let mut member = read_member(key, value)?;
        // Above all that it has been given since, and below those that are given from now on.
        member.incarnation = last_incarnation + AHEAD / 2 + member.server.0 % (AHEAD / 2);
        if member.state == MemberState::Alive {
            member.state = MemberState::Dead;
        }
        put_member(rows, &member);
        Ok(())
    })?;
    change_all(rows, &key::nodes(), |rows, key, value| {
        let mut node: Node = read_node(key, value)?;
        if let Body::File(file) = &mut node.body {
            file.next_generation = raised(file.next_generation, CHANGES_AHEAD, key)?;
            // Servers remember truncates by it.
            file.epoch = raised(file.epoch, CHANGES_AHEAD, key)?;
            let number = key::number(key, 0).unwrap_or_default();
            put_node(rows, FileId(number), &node);
        }
        Ok(())
    })?;
    change_all(rows, &key::layouts(), |rows, key, value| {
        let mut state = decode(key, value, LayoutState::read)?;
        // What servers remember of a file is older than this.
        state.step = raised(state.step, CHANGES_AHEAD, key)?;
        let mut out = Vec::new();
        state.put(&mut out);
        rows.put(key.to_vec(), out);
        Ok(())
    })
}

fn raised(value: u64, more: u64, key: &[u8]) -> Result<u64, MetaError> {
    value.checked_add(more).ok_or_else(|| MetaError::Corrupt {
        row: row_name(key),
        why: wire::DecodeError::BadNumber,
    })
}

/// Changes all rows of a kind, page by page.
fn change_all(
    rows: &mut RowsTransaction<'_>,
    prefix: &[u8],
    mut change: impl FnMut(&mut RowsTransaction<'_>, &[u8], &[u8]) -> Result<(), MetaError>,
) -> Result<(), MetaError> {
    let mut after: Option<Vec<u8>> = None;
    loop {
        let page = rows.scan(prefix, after.as_deref(), PAGE)?;
        for (key, value) in &page {
            change(rows, key, value)?;
        }
        rows.keep();
        rows.settle()?;
        match page.into_iter().next_back() {
            Some((key, _)) => after = Some(key),
            None => return Ok(()),
        }
    }
}
