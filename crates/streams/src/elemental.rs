//! Elemental functions: called once for each active VP, inside one member, with nothing but the VP's own stream (A-13, L-15).
//!
//! Nothing is exchanged inside. That VPs may be anywhere afterwards is known to all members without a word, since all of them
//! call [`Stream::elemental`]; the next collective operation asks once.

use std::io::{self, Read, Seek, SeekFrom, Write};

use client::Result;

use crate::context::Context;
use crate::independent::Who;
use crate::stream::{At, Stream, Use};

/// The stream of one VP, inside an elemental function. Reads, writes and seeks as a file does.
///
/// `write!` is `fprintf`, [`VpStream::gets`] and [`VpStream::getc`] are those of C.
#[derive(Debug)]
pub struct VpStream<'a> {
    stream: &'a mut Stream,
    who: Who,
}

impl Stream {
    /// Calls an elemental function for every active VP. The first error ends it at this member, and is told to the others with
    /// the next operation that all agree about.
    pub fn elemental(
        &mut self,
        context: &Context,
        mut function: impl FnMut(&mut VpStream<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.check_context(context).map_err(io::Error::from)?;
        self.is_doubtful = true;
        for local in context.active(self.emulation.count()) {
            let who = self.who(local);
            function(&mut VpStream { stream: self, who })?;
        }
        Ok(())
    }
}

impl VpStream<'_> {
    /// The number of the VP, among those of all members.
    pub fn number(&self) -> u64 {
        self.who.number
    }

    /// Its place among the VPs of this member.
    pub fn local(&self) -> usize {
        self.who.local
    }

    fn enter(&mut self, what: Use) -> Result<()> {
        self.stream.check(what)?;
        self.stream.statistics.elemental += 1;
        self.stream.become_each()
    }

    fn keep<T>(&mut self, done: Result<T>) -> io::Result<T> {
        if done.is_err()
            && let Some(vp) = self.stream.vps.get_mut(self.who.local)
        {
            vp.flags.has_failed = true;
        }
        done.map_err(io::Error::from)
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.enter(Use::Write)?;
        let block = self.stream.independent_block(0);
        self.stream.begin_independent(block)?;
        let done = self.stream.write_vp(self.who, bytes);
        self.stream.keep_failure(done)
    }

    fn read_bytes(&mut self, into: &mut [u8]) -> Result<usize> {
        self.enter(Use::Read)?;
        self.stream.read_vp(self.who, into)
    }

    /// The next byte; `None` at the end.
    pub fn getc(&mut self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        let n = self.read(&mut byte)?;
        Ok((n == 1).then_some(byte[0]))
    }

    /// Writes a byte.
    pub fn putc(&mut self, byte: u8) -> io::Result<()> {
        self.write_all(&[byte])
    }

    /// The next line, with its newline if there is one; `None` at the end. At most `most` bytes.
    pub fn gets(&mut self, most: usize) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        while line.len() < most {
            match self.getc()? {
                Some(byte) => line.push(byte),
                None => break,
            }
            if line.last() == Some(&b'\n') {
                break;
            }
        }
        Ok((!line.is_empty()).then_some(line))
    }

    /// Writes a text.
    pub fn puts(&mut self, text: &str) -> io::Result<()> {
        self.write_all(text.as_bytes())
    }

    /// Whether the last read came to the end.
    pub fn is_at_end(&self) -> bool {
        self.stream.is_at_end(self.who.local)
    }
}

impl Read for VpStream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let done = self.read_bytes(into);
        self.keep(done)
    }
}

impl Write for VpStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.write_bytes(bytes);
        self.keep(done).map(|()| bytes.len())
    }

    /// Nothing to do for one VP alone: [`Stream::flush`] is for all.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for VpStream<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if let (SeekFrom::Current(0), At::Uniform { position, .. }) = (to, self.stream.at) {
            return Ok(position);
        }
        let done = self.stream.become_each().and_then(|()| {
            let position = self.stream.target(self.who.local, to)?;
            self.stream.set_vp_position(self.who.local, position);
            Ok(position)
        });
        self.keep(done)
    }
}
