//! Past the page cache: `O_DIRECT`, where whole blocks go straight between memory and the device.
//!
//! The device wants offsets, lengths and addresses that are multiples of its block. Data files have only whole blocks of 4 KiB, at
//! multiples of that; memory that lies elsewhere is copied through a piece that does not. What is shorter goes through the page
//! cache, which the kernel keeps in step.
//!
//! Whether it pays is a question of the disk: [`compare`] measures, and what it finds is kept in the directory, for every server that
//! uses it later ([`kept`]).

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::device::{Directory, Disk, FileIo};
use crate::blocks::BLOCK;

/// Longest piece that is copied on its way.
const PIECE: usize = 1 << 20;

/// What says in a directory how its bytes go.
const KEPT: &str = "direct-io";

/// The way past the page cache.
#[derive(Debug)]
pub(super) struct DirectIo(File);

/// Memory at a multiple of a block.
struct AlignedPiece {
    memory: Vec<u8>,
    begin: usize,
    len: usize,
}

impl AlignedPiece {
    fn new(len: usize) -> AlignedPiece {
        let memory = vec![0; len + BLOCK as usize];
        let address = memory.as_ptr() as usize;
        let begin = address.next_multiple_of(BLOCK as usize) - address;
        AlignedPiece { memory, begin, len }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + self.len]
    }
}

fn is_whole(offset: u64, len: usize) -> bool {
    len > 0 && offset.is_multiple_of(BLOCK) && (len as u64).is_multiple_of(BLOCK)
}

fn is_aligned(bytes: &[u8]) -> bool {
    (bytes.as_ptr() as usize).is_multiple_of(BLOCK as usize)
}

/// Nothing where the device wants other blocks; then the page cache is there.
fn unless_odd(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(n) => Ok(Some(n)),
        Err(e) if Errno::from_io_error(&e) == Some(Errno::INVAL) => Ok(None),
        Err(e) => Err(e),
    }
}

impl DirectIo {
    /// Opens a file; nothing if its file system has no such way.
    pub(super) fn open(path: &Path) -> io::Result<Option<DirectIo>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options.custom_flags(OFlags::DIRECT.bits().cast_signed());
        match options.open(path) {
            Ok(file) => Ok(Some(DirectIo(file))),
            Err(e) => match Errno::from_io_error(&e) {
                Some(Errno::INVAL | Errno::OPNOTSUPP) => Ok(None),
                _ => Err(e),
            },
        }
    }

    /// Reads whole blocks; nothing if these are none.
    pub(super) fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<Option<usize>> {
        if !is_whole(offset, target.len()) {
            return Ok(None);
        }
        if is_aligned(target) {
            return unless_odd(self.0.read_at(target, offset));
        }
        let mut piece = AlignedPiece::new(target.len().min(PIECE));
        let read = unless_odd(self.0.read_at(piece.bytes(), offset))?;
        if let Some(n) = read {
            target[..n].copy_from_slice(&piece.bytes()[..n]);
        }
        Ok(read)
    }

    /// Writes whole blocks; nothing if these are none.
    pub(super) fn write_at(&self, offset: u64, source: &[u8]) -> io::Result<Option<usize>> {
        if !is_whole(offset, source.len()) {
            return Ok(None);
        }
        if is_aligned(source) {
            return unless_odd(self.0.write_at(source, offset));
        }
        let len = source.len().min(PIECE);
        let mut piece = AlignedPiece::new(len);
        piece.bytes().copy_from_slice(&source[..len]);
        unless_odd(self.0.write_at(piece.bytes(), offset))
    }
}

/// Bytes per second of the two ways, in one directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRates {
    /// Written and durable, through the page cache.
    pub buffered_write: u64,
    /// Read through the page cache, which had none of it.
    pub buffered_read: u64,
    /// Written and durable, past it; 0 where the file system knows no such way.
    pub direct_write: u64,
    /// Read past it.
    pub direct_read: u64,
}

impl IoRates {
    /// Whether the way past the page cache pays: bytes are durable a tenth sooner, and reading loses no more than a tenth.
    pub fn pays(&self) -> FileIo {
        let is_faster = self.direct_write / 11 > self.buffered_write / 10;
        let is_as_good = self.direct_read / 9 >= self.buffered_read / 10;
        match is_faster && is_as_good {
            true => FileIo::Direct,
            false => FileIo::Buffered,
        }
    }
}

/// Writes and reads a file both ways, in turn, and takes the best of each. `now` is a clock.
pub fn compare(path: &Path, bytes: usize, now: &dyn Fn() -> Duration) -> io::Result<IoRates> {
    const PASSES: usize = 5;
    const PROBE: &str = "probe-direct-io";
    let mut rates = IoRates {
        buffered_write: 0,
        buffered_read: 0,
        direct_write: 0,
        direct_read: 0,
    };
    let bytes = bytes.next_multiple_of(PIECE);
    let data = {
        let mut data = AlignedPiece::new(PIECE);
        let fill = data.bytes().iter_mut().enumerate();
        fill.for_each(|(i, byte)| *byte = (i * 31 % 251) as u8);
        data
    };
    let rate = |took: Duration| {
        let rate = bytes as u128 * 1_000_000_000 / took.as_nanos().max(1);
        u64::try_from(rate).unwrap_or(u64::MAX)
    };
    for _ in 0..PASSES {
        for io in [FileIo::Buffered, FileIo::Direct] {
            let directory = Directory::at(path)?.with_io(io);
            let _ = directory.remove(PROBE);
            let made = directory.create(PROBE)?;
            let has_direct = DirectIo::open(&path.join(PROBE))?.is_some();
            if io == FileIo::Direct && !has_direct {
                continue;
            }
            let pieces = || (0..bytes / PIECE).map(|n| (n * PIECE) as u64);
            let source = &data.memory[data.begin..data.begin + PIECE];
            let began = now();
            for at in pieces() {
                let mut done = 0;
                while done < PIECE {
                    done += made.write_at(at + done as u64, &source[done..])?;
                }
            }
            made.sync()?;
            let wrote = rate(now().saturating_sub(began));
            // The page cache lets go of what is durable.
            let whole = File::open(path.join(PROBE))?;
            rustix::fs::fadvise(whole.as_fd(), 0, None, rustix::fs::Advice::DontNeed)?;
            let mut target = AlignedPiece::new(PIECE);
            let began = now();
            for at in pieces() {
                let mut done = 0;
                while done < PIECE {
                    match made.read_at(at + done as u64, &mut target.bytes()[done..])? {
                        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                        n => done += n,
                    }
                }
            }
            let read = rate(now().saturating_sub(began));
            let (write_best, read_best) = match io {
                FileIo::Buffered => (&mut rates.buffered_write, &mut rates.buffered_read),
                FileIo::Direct => (&mut rates.direct_write, &mut rates.direct_read),
            };
            *write_best = wrote.max(*write_best);
            *read_best = read.max(*read_best);
        }
    }
    Directory::at(path)?.remove(PROBE)?;
    Ok(rates)
}

/// Keeps in a directory how its bytes are to go.
pub fn keep(path: &Path, io: FileIo) -> io::Result<()> {
    let word = match io {
        FileIo::Buffered => "buffered",
        FileIo::Direct => "direct",
    };
    let aside = path.join("direct-io.new");
    let mut file = File::create(&aside)?;
    writeln!(file, "{word}")?;
    file.sync_all()?;
    std::fs::rename(aside, path.join(KEPT))?;
    Directory::at(path)?.sync_names()
}

/// What was kept; through the page cache where nothing was.
pub fn kept(path: &Path) -> io::Result<FileIo> {
    let mut said = String::new();
    match File::open(path.join(KEPT)) {
        Ok(file) => {
            file.take(64).read_to_string(&mut said)?;
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(FileIo::Buffered),
        Err(e) => return Err(e),
    }
    match said.trim() {
        "direct" => Ok(FileIo::Direct),
        "buffered" => Ok(FileIo::Buffered),
        other => {
            let text = format!("{KEPT} says '{other}'; it is 'direct' or 'buffered'");
            Err(io::Error::new(io::ErrorKind::InvalidData, text))
        }
    }
}
