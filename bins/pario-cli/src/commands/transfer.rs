//! Moving bytes between stored files and this host: files, pipes, terminals.
//!
//! Both sides work at the same time. A thread has the local side, the caller the service, and a few
//! buffers go round between them; they are kept from file to file. Small files go without the thread.
//!
//! Holes of local files are not sent, and blocks of zeros become holes where a local file is
//! written: neither changes a byte.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use client::File;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::progress::Progress;

/// Bytes that move at a time.
const PIECE: usize = 8 << 20;
/// One at each side, and one between.
const PIECES: usize = 3;
/// Up to this size the other side would be waited for anyway.
const SMALL: u64 = 1 << 20;
/// Runs of zeros of this length are left out of local files.
const HOLE: usize = 64 << 10;

/// Which side failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The file, pipe or terminal.
    Local(io::Error),
    /// The stored file.
    Stored(client::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Local(error)
    }
}

impl From<client::Error> for Trouble {
    fn from(error: client::Error) -> Self {
        Trouble::Stored(error)
    }
}

/// A local side that is read.
pub(crate) trait Source: Send + 'static {
    /// The next bytes: their offset and number; nothing at the end.
    fn next(&mut self, buffer: &mut [u8]) -> io::Result<Option<(u64, usize)>>;

    /// Where it ends, once there is nothing more.
    fn size(&self) -> u64;
}

/// A local side that is written.
pub(crate) trait Sink: Send + 'static {
    /// Takes bytes, in ascending order.
    fn take(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// There are no more.
    fn end(&mut self, size: u64) -> io::Result<()>;
}

/// Reads whatever has only a beginning and an end.
#[derive(Debug)]
pub(crate) struct Stream<R> {
    inner: R,
    at: u64,
}

impl<R> Stream<R> {
    pub(crate) fn new(inner: R) -> Stream<R> {
        Stream { inner, at: 0 }
    }
}

impl<R: Read + Send + 'static> Source for Stream<R> {
    fn next(&mut self, buffer: &mut [u8]) -> io::Result<Option<(u64, usize)>> {
        let len = fill(buffer, |rest, _| self.inner.read(rest))?;
        let offset = self.at;
        self.at += len as u64;
        Ok((len > 0).then_some((offset, len)))
    }

    fn size(&self) -> u64 {
        self.at
    }
}

impl<W: Write + Send + 'static> Sink for Stream<W> {
    fn take(&mut self, _: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_all(bytes)
    }

    fn end(&mut self, _: u64) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Reads until the buffer is full or there is nothing more.
fn fill(
    buffer: &mut [u8],
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match read(&mut buffer[len..], len as u64) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

/// A regular file, whose holes are skipped on reading and made on writing.
#[derive(Debug)]
pub(crate) struct Sparse {
    file: fs::File,
    at: u64,
    /// Where the next hole begins.
    data_end: u64,
}

impl Sparse {
    pub(crate) fn new(file: fs::File) -> Sparse {
        Sparse {
            file,
            at: 0,
            data_end: 0,
        }
    }

    /// Goes to the next data; false if there is none.
    fn find_data(&mut self) -> io::Result<bool> {
        match rustix::fs::seek(&self.file, SeekFrom::Data(self.at)) {
            Ok(data) => {
                self.at = data;
                // There is a hole behind the end at least.
                self.data_end = rustix::fs::seek(&self.file, SeekFrom::Hole(data))?;
                Ok(true)
            }
            Err(Errno::NXIO) => {
                self.at = self.at.max(self.file.metadata()?.len());
                Ok(false)
            }
            // A file system that does not know its holes.
            Err(_) => {
                self.data_end = u64::MAX;
                Ok(true)
            }
        }
    }
}

impl Source for Sparse {
    fn next(&mut self, buffer: &mut [u8]) -> io::Result<Option<(u64, usize)>> {
        if self.at >= self.data_end && !self.find_data()? {
            return Ok(None);
        }
        let room = (self.data_end - self.at).min(buffer.len() as u64) as usize;
        let (file, offset) = (&self.file, self.at);
        let len = fill(&mut buffer[..room], |rest, done| {
            file.read_at(rest, offset + done)
        })?;
        self.at += len as u64;
        Ok((len > 0).then_some((offset, len)))
    }

    fn size(&self) -> u64 {
        self.at
    }
}

impl Sink for Sparse {
    fn take(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut data = 0..0;
        for (k, block) in bytes.chunks(HOLE).enumerate() {
            let start = k * HOLE;
            if !is_zero(block) {
                data.end = start + block.len();
                continue;
            }
            self.file
                .write_all_at(&bytes[data.clone()], offset + data.start as u64)?;
            data = start + block.len()..start + block.len();
        }
        self.file
            .write_all_at(&bytes[data.clone()], offset + data.start as u64)
    }

    fn end(&mut self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }
}

/// Compares every byte with the one before it, which is as quick as comparing memory gets.
fn is_zero(block: &[u8]) -> bool {
    block.first().is_none_or(|&first| first == 0)
        && block[..block.len().max(1) - 1] == block[block.len().min(1)..]
}

/// A buffer and what is in it.
struct Chunk {
    buffer: Vec<u8>,
    offset: u64,
    len: usize,
}

/// Moves files one after another, with the same buffers.
#[derive(Debug, Default)]
pub(crate) struct Mover {
    spare: Vec<Vec<u8>>,
}

impl Mover {
    /// Writes everything into a stored file that is empty; how much it is.
    pub(crate) fn store<S: Source>(
        &mut self,
        mut source: S,
        size: Option<u64>,
        file: &File,
        progress: &mut Progress,
    ) -> Result<u64, Trouble> {
        let before = progress.so_far().0;
        let mut written = 0;
        let mut write = |offset: u64, bytes: &[u8]| {
            write_all(file, offset, bytes)?;
            written = offset + bytes.len() as u64;
            progress.set(before + written);
            Ok::<(), Trouble>(())
        };
        let size = if size.is_some_and(|size| size <= SMALL) {
            let mut buffer = self.buffer();
            while let Some((offset, len)) = source.next(&mut buffer)? {
                write(offset, &buffer[..len])?;
            }
            self.spare.push(buffer);
            source.size()
        } else {
            let (give, take) = channel();
            let (give_back, take_back) = channel();
            for _ in 0..PIECES {
                // The receiver is right here.
                let _ = give_back.send(self.buffer());
            }
            // Not waited for when the service fails: it may read from a terminal.
            let reader = thread::spawn(move || read_ahead(source, &give, &take_back));
            for piece in &take {
                let Chunk {
                    buffer,
                    offset,
                    len,
                } = piece;
                write(offset, &buffer[..len])?;
                if let Err(kept) = give_back.send(buffer) {
                    self.spare.push(kept.0);
                }
            }
            let (source, buffers) = joined(reader)?;
            self.spare.extend(buffers);
            source.size()
        };
        if size > written {
            file.resize(size)?;
            progress.set(before + size);
        }
        Ok(size)
    }

    /// Reads all of a stored file; how much it is.
    pub(crate) fn load<S: Sink>(
        &mut self,
        file: &File,
        size: u64,
        mut sink: S,
        progress: &mut Progress,
    ) -> Result<u64, Trouble> {
        let mut at = 0;
        let mut read = |buffer: &mut [u8]| {
            let len = read_full(file, at, buffer)?;
            let offset = at;
            at += len as u64;
            progress.add(len as u64);
            Ok::<(u64, usize), Trouble>((offset, len))
        };
        if size <= SMALL {
            let mut buffer = self.buffer();
            loop {
                let (offset, len) = read(&mut buffer)?;
                sink.take(offset, &buffer[..len])?;
                if len < buffer.len() {
                    break;
                }
            }
            self.spare.push(buffer);
            sink.end(at)?;
            return Ok(at);
        }
        let (give, take) = channel();
        let (give_back, take_back) = channel();
        for _ in 0..PIECES {
            let _ = give_back.send(self.buffer());
        }
        let writer = thread::spawn(move || write_behind(sink, &take, &give_back));
        // Without buffers the writer has gone, and says why.
        for mut buffer in &take_back {
            let (offset, len) = match read(&mut buffer) {
                Ok(read) => read,
                Err(trouble) => {
                    drop(give);
                    let _ = joined(writer);
                    return Err(trouble);
                }
            };
            let is_last = len < buffer.len();
            if give
                .send(Chunk {
                    buffer,
                    offset,
                    len,
                })
                .is_err()
                || is_last
            {
                break;
            }
        }
        drop(give);
        let mut sink = joined(writer)?;
        self.spare.extend(take_back.try_iter());
        sink.end(at)?;
        Ok(at)
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_else(|| vec![0; PIECE])
    }
}

/// Reads pieces until there are no more, or nobody wants them.
fn read_ahead<S: Source>(
    mut source: S,
    give: &Sender<Chunk>,
    take_back: &Receiver<Vec<u8>>,
) -> io::Result<(S, Vec<Vec<u8>>)> {
    let mut spare = Vec::new();
    for mut buffer in take_back {
        let Some((offset, len)) = source.next(&mut buffer)? else {
            spare.push(buffer);
            break;
        };
        if give
            .send(Chunk {
                buffer,
                offset,
                len,
            })
            .is_err()
        {
            break;
        }
    }
    spare.extend(take_back.try_iter());
    Ok((source, spare))
}

/// Writes pieces until there are no more.
fn write_behind<S: Sink>(
    mut sink: S,
    take: &Receiver<Chunk>,
    give_back: &Sender<Vec<u8>>,
) -> io::Result<S> {
    for piece in take {
        sink.take(piece.offset, &piece.buffer[..piece.len])?;
        // The other side may have read everything by now.
        let _ = give_back.send(piece.buffer);
    }
    Ok(sink)
}

fn joined<T>(thread: thread::JoinHandle<io::Result<T>>) -> io::Result<T> {
    match thread.join() {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn write_all(file: &File, mut offset: u64, mut bytes: &[u8]) -> Result<(), Trouble> {
    while !bytes.is_empty() {
        let written = file.write_at(offset, bytes)?;
        if written == 0 {
            return Err(Trouble::Local(ErrorKind::WriteZero.into()));
        }
        offset += written as u64;
        bytes = &bytes[written..];
    }
    Ok(())
}

fn read_full(file: &File, offset: u64, buffer: &mut [u8]) -> Result<usize, Trouble> {
    let mut len = 0;
    while len < buffer.len() {
        match file.read_at(offset + len as u64, &mut buffer[len..])? {
            0 => break,
            n => len += n,
        }
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_found() {
        assert!(is_zero(&[]) && is_zero(&[0]) && is_zero(&[0; 1000]));
        for at in [0, 1, 500, 999] {
            let mut block = [0; 1000];
            block[at] = 1;
            assert!(!is_zero(&block), "{at}");
        }
        assert!(!is_zero(&[7; 64]));
    }

    fn scratch(name: &str) -> (std::path::PathBuf, fs::File) {
        let name = format!("pario-transfer-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut options = fs::OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path);
        (path, file.expect("a scratch file"))
    }

    #[test]
    fn holes_are_skipped_and_made() {
        let (path, file) = scratch("holes");
        // Data in the middle of a hole, and a hole at the end.
        file.write_all_at(&[7; 100], 3 << 20).expect("written");
        file.set_len((9 << 20) + 5).expect("resized");
        let mut source = Sparse::new(file.try_clone().expect("the same file"));
        let (mut found, mut moved) = (vec![0; (9 << 20) + 5], 0);
        let mut buffer = vec![1; 1 << 16];
        while let Some((offset, len)) = source.next(&mut buffer).expect("read") {
            found[offset as usize..][..len].copy_from_slice(&buffer[..len]);
            moved += len;
        }
        assert_eq!(source.size(), (9 << 20) + 5);
        assert_eq!(found, fs::read(&path).expect("the file"));
        // Where the file system knows holes at all, most of the file is one.
        assert!(moved < 1 << 20 || moved == found.len(), "{moved}");

        let (copy_path, copy) = scratch("copy");
        let mut sink = Sparse::new(copy);
        for (k, part) in found.chunks(1_000_001).enumerate() {
            sink.take(k as u64 * 1_000_001, part).expect("written");
        }
        sink.end(found.len() as u64).expect("ended");
        assert!(fs::read(&copy_path).expect("the copy") == found);
        fs::remove_file(path).expect("removed");
        fs::remove_file(copy_path).expect("removed");
    }
}
