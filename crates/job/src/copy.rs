//! Moving the bytes of one file between the job and this host.
//!
//! Holes of local files are not sent, and long runs of zeros become holes where a local file is written.
//! A local file that is replaced is replaced when all bytes have come, and not before.

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use client::{Client, File, OpenOptions};
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::error::Error;

/// Bytes that move at a time.
const PIECE: usize = 4 << 20;
/// Runs of zeros of this length are left out of local files.
const HOLE: usize = 64 << 10;

/// Moves files one after another, with the same buffer.
#[derive(Debug, Default)]
pub(crate) struct Copier {
    buffer: Vec<u8>,
}

impl Copier {
    fn buffer(&mut self) -> &mut [u8] {
        if self.buffer.is_empty() {
            self.buffer.resize(PIECE, 0);
        }
        &mut self.buffer
    }

    /// Stores a local file; `moved` hears of every piece. How many bytes it has.
    pub(crate) fn copy_in(
        &mut self,
        client: &Client,
        local: &Path,
        path: &str,
        moved: &mut dyn FnMut(u64),
    ) -> Result<u64, Error> {
        let source = fs::File::open(local).map_err(|e| cannot("read", local, e))?;
        let mode = source
            .metadata()
            .map_or(0o644, |found| found.permissions().mode() & 0o777);
        let options = OpenOptions::new().write().create().mode(mode);
        let file = client.open(path, &options)?;
        let outcome = self.fill(&file, &source, local, moved);
        let closed = file.close().map_err(Error::from);
        let outcome = outcome.and_then(|size| closed.map(|()| size));
        if outcome.is_err() && file.is_new() {
            // Half a file under a good name would be taken for a whole one.
            let _ = client.unlink(path);
        }
        outcome
    }

    /// Writes all of a local file into a stored one, which then has its size.
    pub(crate) fn fill(
        &mut self,
        file: &File,
        source: &fs::File,
        local: &Path,
        moved: &mut dyn FnMut(u64),
    ) -> Result<u64, Error> {
        let size = source
            .metadata()
            .map_err(|e| cannot("read", local, e))?
            .len();
        file.resize(0)?;
        let mut at = 0;
        while let Some(data) = next_data(source, at, size).map_err(|e| cannot("read", local, e))? {
            at = data.start;
            while at < data.end {
                let buffer = self.buffer();
                let want = (data.end - at).min(buffer.len() as u64) as usize;
                let got = read_at(source, &mut buffer[..want], at)
                    .map_err(|e| cannot("read", local, e))?;
                if got == 0 {
                    break;
                }
                write_all(file, at, &buffer[..got])?;
                at += got as u64;
                moved(got as u64);
            }
            if at < data.end {
                break;
            }
        }
        let size = source.metadata().map_or(size, |found| found.len()).max(at);
        file.resize(size)?;
        Ok(size)
    }

    /// Fetches a stored file; what is there is replaced when all has come.
    pub(crate) fn copy_out(
        &mut self,
        client: &Client,
        path: &str,
        local: &Path,
        moved: &mut dyn FnMut(u64),
    ) -> Result<u64, Error> {
        let file = client.open(path, &OpenOptions::new().read())?;
        let mode = client
            .attributes(path)
            .map_or(0o644, |found| found.mode & 0o777);
        let begun = beside(local);
        let target = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(mode | 0o200)
            .open(&begun)
            .map_err(|e| cannot("write", local, e))?;
        let outcome = self.drain(&file, &target, local, moved).and_then(|size| {
            let permissions = fs::Permissions::from_mode(mode);
            // Durable before it takes the place of what is there: what the job leaves outlives its host.
            target
                .set_permissions(permissions)
                .and_then(|()| target.sync_all())
                .and_then(|()| fs::rename(&begun, local))
                .and_then(|()| lockfile::sync_name(local))
                .map_err(|e| cannot("write", local, e))?;
            Ok(size)
        });
        if outcome.is_err() {
            // It has a part only, which nobody asked for.
            let _ = fs::remove_file(&begun);
        }
        outcome
    }

    fn drain(
        &mut self,
        file: &File,
        target: &fs::File,
        local: &Path,
        moved: &mut dyn FnMut(u64),
    ) -> Result<u64, Error> {
        let mut at = 0;
        loop {
            let buffer = self.buffer();
            let got = file.read_at(at, buffer)?;
            if got == 0 {
                break;
            }
            write_with_holes(target, &buffer[..got], at).map_err(|e| cannot("write", local, e))?;
            at += got as u64;
            moved(got as u64);
        }
        target.set_len(at).map_err(|e| cannot("write", local, e))?;
        Ok(at)
    }
}

/// The next data of a sparse file.
fn next_data(file: &fs::File, at: u64, size: u64) -> io::Result<Option<std::ops::Range<u64>>> {
    if at >= size {
        return Ok(None);
    }
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(start) => {
            let end = rustix::fs::seek(file, SeekFrom::Hole(start))?;
            Ok(Some(start..end.min(size).max(start)).filter(|data| !data.is_empty()))
        }
        Err(Errno::NXIO) => Ok(None),
        // A file system that does not know its holes.
        Err(_) => Ok(Some(at..size)),
    }
}

fn read_at(file: &fs::File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match file.read_at(&mut buffer[len..], at + len as u64) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(len)
}

fn write_all(file: &File, mut at: u64, mut bytes: &[u8]) -> Result<(), Error> {
    while !bytes.is_empty() {
        let written = file.write_at(at, bytes)?;
        at += written as u64;
        bytes = &bytes[written..];
    }
    Ok(())
}

fn write_with_holes(file: &fs::File, bytes: &[u8], at: u64) -> io::Result<()> {
    let mut start = 0;
    for (k, block) in bytes.chunks(HOLE).enumerate() {
        if block.len() == HOLE && block.iter().all(|&b| b == 0) {
            let here = k * HOLE;
            file.write_all_at(&bytes[start..here], at + start as u64)?;
            start = here + HOLE;
        }
    }
    file.write_all_at(&bytes[start..], at + start as u64)
}

/// A name in the same directory for a file that is not complete; links are followed.
fn beside(target: &Path) -> PathBuf {
    let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".part-{}", std::process::id()));
    target.with_file_name(name)
}

pub(crate) fn cannot(what: &str, path: &Path, error: io::Error) -> Error {
    Error::Stage(format!("cannot {what} {}: {error}", path.display()))
}
