//! Programs of workers that copy for as long as a test wants, so that a fault meets them in mid-copy.
//!
//! ```text
//!  pound     one range, over and over        nearly always inside a claim
//!  storm     records of one path, as they come and go; every record read says where it belongs
//!  shake     what makes them come and go: shrink, grow, unlink, create
//! ```
//!
//! They end when a file (of the file system) exists that the test makes. It is looked for before
//! every access, so a test that makes it while the worker is stopped knows which access is the last.
//! Beside it `pound` says whether it copies directly at present ([`Turns`]) and how often it has
//! ([`rounds_of`]), and `storm` what went directly ([`Gone`]). A test that wants something of a worker waits for
//! that: however long it pounds, a worker may not have had the processor.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use client::{Client, Error, File, OpenOptions, Status, View};

use crate::seed::{Random, pattern};

/// Bytes of one record of [`storm`].
pub const RECORD: usize = 16;
/// First byte of every record.
const MAGIC: u8 = 0xa5;

/// What a pounding was like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pounded {
    /// Accesses that returned.
    pub rounds: u64,
    /// After reads: the tag that all bytes of the last one have, if there is one.
    pub tag: Option<u64>,
}

/// How often a pounding has changed between accesses by message, with which it begins, and direct ones.
/// An odd number: the last access was direct.
#[derive(Debug)]
pub struct Turns {
    path: PathBuf,
    count: u64,
}

impl Turns {
    fn new(stop: &Path) -> Turns {
        Turns {
            path: Turns::path(stop),
            count: 0,
        }
    }

    fn path(stop: &Path) -> PathBuf {
        stop.with_extension("turns")
    }

    fn look(&mut self, file: &File) {
        if file.last_access().is_direct != self.count.is_multiple_of(2) {
            return;
        }
        self.count += 1;
        std::fs::write(&self.path, self.count.to_string()).expect("a place to say it");
    }

    /// What the pounding that ends with a file has said; 0 before it said anything.
    pub fn of(stop: &Path) -> u64 {
        let said = std::fs::read_to_string(Turns::path(stop)).unwrap_or_default();
        said.parse().unwrap_or(0)
    }
}

/// What a pounding tells about its rounds; every worker has a file of its own.
#[derive(Debug)]
struct Rounds {
    file: std::fs::File,
    count: u64,
}

impl Rounds {
    fn path(stop: &Path, pid: u32) -> PathBuf {
        stop.with_extension(format!("rounds-{pid}"))
    }

    fn new(stop: &Path) -> Rounds {
        let path = Rounds::path(stop, std::process::id());
        let file = std::fs::File::create(path).expect("a place to say it");
        Rounds { file, count: 0 }
    }

    fn one_more(&mut self) {
        self.count += 1;
        // Cheap beside an access: one call, and no name is looked up.
        let told = self.file.write_all_at(&self.count.to_le_bytes(), 0);
        told.expect("a place to say it");
    }
}

/// Accesses that have returned in the pounding of a process that ends with a file.
pub fn rounds_of(stop: &Path, pid: u32) -> u64 {
    let said = std::fs::read(Rounds::path(stop, pid)).unwrap_or_default();
    said.try_into().map_or(0, u64::from_le_bytes)
}

/// Writes the pattern of a tag to a range of the whole file until told to stop.
pub fn pound_writes(
    file: &File,
    offset: u64,
    len: usize,
    tag: u64,
    stop: &Path,
) -> Result<Pounded, Error> {
    let bytes = pattern(&View::whole_file(), offset, len, tag);
    let (mut rounds, mut turns) = (Rounds::new(stop), Turns::new(stop));
    while !stop.exists() {
        file.write_at(offset, &bytes)?;
        turns.look(file);
        rounds.one_more();
    }
    Ok(Pounded {
        rounds: rounds.count,
        tag: None,
    })
}

/// Reads a range of the whole file until told to stop; of the last read it is said which of the tags
/// below `tags` its bytes have.
pub fn pound_reads(
    file: &File,
    offset: u64,
    len: usize,
    tags: u64,
    stop: &Path,
) -> Result<Pounded, Error> {
    let mut bytes = vec![0; len];
    let (mut rounds, mut n, mut turns) = (Rounds::new(stop), 0, Turns::new(stop));
    while !stop.exists() {
        n = file.read_at(offset, &mut bytes)?;
        turns.look(file);
        rounds.one_more();
    }
    let whole = View::whole_file();
    let is_tag = |tag: &u64| n == len && pattern(&whole, offset, len, *tag) == bytes;
    Ok(Pounded {
        rounds: rounds.count,
        tag: (0..tags).find(is_tag),
    })
}

/// Records that say to which file and place they belong, and who wrote them. One byte names the
/// writer, so a record that two writers stored at once is one of theirs, whichever bytes came first.
pub fn records(file: u64, offset: u64, len: usize, writer: u8) -> Vec<u8> {
    let record = RECORD as u64;
    assert!(offset.is_multiple_of(record) && len.is_multiple_of(RECORD));
    (0..len as u64 / record)
        .flat_map(|i| {
            let place = (offset / record + i).to_le_bytes();
            let file = file.to_le_bytes();
            let mut bytes = [MAGIC; RECORD];
            bytes[1..8].copy_from_slice(&file[..7]);
            bytes[8..15].copy_from_slice(&place[..7]);
            bytes[15] = writer;
            bytes
        })
        .collect()
}

/// The first record with a byte that belongs elsewhere, or to nobody. Zeros are what nobody wrote, and a
/// record that is read while it is stored may be there in part.
pub fn foreign(file: u64, offset: u64, bytes: &[u8], writers: u8) -> Option<String> {
    let whole = bytes.len() / RECORD * RECORD;
    let expected = records(file, offset, whole, 0);
    let pairs = bytes
        .chunks_exact(RECORD)
        .zip(expected.chunks_exact(RECORD));
    pairs.enumerate().find_map(|(i, (is, should))| {
        let mut bytes = is[..15].iter().zip(should);
        let is_good = bytes.all(|(a, b)| *a == 0 || a == b) && is[15] < writers;
        (!is_good).then(|| {
            let at = offset + (i * RECORD) as u64;
            format!("byte {at} of file {file}: {is:02x?}, not {should:02x?}")
        })
    })
}

/// What a storm was like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stormed {
    /// Accesses that returned bytes.
    pub accesses: u64,
    /// How often the path was opened.
    pub opened: u64,
    /// What went wrong by status, as it may while others take the file away.
    pub refused: BTreeMap<String, u64>,
}

/// What of a storm went directly so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Accesses that a change of the file has made void.
    pub revoked: u64,
}

impl Gone {
    fn path(stop: &Path, me: u8) -> PathBuf {
        stop.with_extension(format!("gone-{me}"))
    }

    fn say(client: &Client, stop: &Path, me: u8) {
        let counted = client.direct_statistics();
        let numbers = [counted.reads, counted.writes, counted.revoked];
        let path = Gone::path(stop, me);
        // Whole, whoever reads it.
        let new = path.with_extension(format!("new-{me}"));
        let said = std::fs::write(&new, numbers.map(|n| n.to_string()).join(" "));
        said.and_then(|()| std::fs::rename(&new, &path))
            .expect("a place to say it");
    }

    /// What the storm of a writer that ends with a file has said; nothing before it said anything.
    pub fn of(stop: &Path, me: u8) -> Gone {
        let said = std::fs::read_to_string(Gone::path(stop, me)).unwrap_or_default();
        let mut numbers = said.split(' ').map(|n| n.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        Gone {
            reads: next(),
            writes: next(),
            revoked: next(),
        }
    }
}

/// Writes and reads records of whatever file a path names, until told to stop or a record is wrong.
pub fn storm(
    client: &Client,
    path: &str,
    me: u8,
    writers: u8,
    most: u64,
    stop: &Path,
) -> Result<Stormed, Box<dyn std::error::Error + Send + Sync>> {
    let mut random = Random::of_run(700 + u64::from(me));
    let mut told = Stormed::default();
    let rw = OpenOptions::new().read().write().create();
    let mut buffer = vec![0; 1 << 20];
    while !stop.exists() {
        let file = client.open(path, &rw)?;
        told.opened += 1;
        for _ in 0..20 {
            // Short ones and long ones, since they take different ways.
            let len = match random.below(3) {
                0 => random.within(1..256) as usize * RECORD,
                _ => random.within(1..(1 << 20) / RECORD as u64) as usize * RECORD,
            };
            let offset = random.below(most / RECORD as u64) * RECORD as u64;
            let done = match random.below(2) {
                0 => file.write_at(offset, &records(file.id().0, offset, len, me)),
                _ => {
                    let read = file.read_at(offset, &mut buffer[..len]);
                    if let Ok(n) = read
                        && let Some(wrong) = foreign(file.id().0, offset, &buffer[..n], writers)
                    {
                        return Err(wrong.into());
                    }
                    read
                }
            };
            match done {
                Ok(_) => told.accesses += 1,
                Err(error) => {
                    let status = error.status();
                    // The file was taken away under its handle: it is opened again.
                    if status != Status::NotFound {
                        return Err(error.into());
                    }
                    *told.refused.entry(format!("{status:?}")).or_default() += 1;
                    break;
                }
            }
        }
        let _ = file.close();
        Gone::say(client, stop, me);
    }
    Ok(told)
}

/// Shrinks, grows, unlinks and creates a path until told to stop; how often it did anything.
pub fn shake(
    client: &Client,
    path: &str,
    layouts: &[&str],
    most: u64,
    stop: &Path,
) -> Result<u64, Error> {
    let mut random = Random::of_run(799);
    let rw = OpenOptions::new().read().write().create();
    let mut done = 0;
    while !stop.exists() {
        done += 1;
        let size = random.below(most / RECORD as u64) * RECORD as u64;
        let layout = layouts[random.index(layouts.len())];
        match random.below(8) {
            0 => match client.unlink(path) {
                Err(error) if error.status() != Status::NotFound => return Err(error),
                _ => drop(client.open(path, &rw.clone().layout(layout))?),
            },
            _ => client.open(path, &rw)?.resize(size)?,
        }
    }
    Ok(done)
}

/// Bytes that say a number, over and over.
pub fn numbered(number: u64, len: usize) -> Vec<u8> {
    number.to_le_bytes().into_iter().cycle().take(len).collect()
}

/// Opens `0 .. count` in a directory and reads the first `len` bytes of each, which say its number, twice;
/// whether every second time was direct.
pub fn open_many(
    client: &Client,
    dir: &str,
    count: u64,
    len: usize,
) -> Result<(Vec<File>, bool), Box<dyn std::error::Error + Send + Sync>> {
    let rw = OpenOptions::new().read().write();
    let (mut files, mut is_direct) = (Vec::new(), true);
    let mut bytes = vec![0; len];
    for number in 0..count {
        let file = client.open(&format!("{dir}/{number}"), &rw)?;
        let expected = numbered(number, len);
        for _ in 0..2 {
            bytes.fill(0);
            file.read_at(0, &mut bytes)?;
            if bytes != expected {
                return Err(format!("{dir}/{number}: not what was written").into());
            }
        }
        is_direct &= file.last_access().is_direct;
        files.push(file);
    }
    Ok((files, is_direct))
}
