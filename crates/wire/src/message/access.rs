//! Reading and writing bytes: the hot path.
//!
//! ```text
//! write, short    client  Write + payload  ------>  server     ------>  AccessAnswer
//! write, long     client  Write (announced) ----->  server     ------>  Write, flag GO
//!                 client  Data + payload   ------>  server     ------>  AccessAnswer
//! read            client  Read             ------>  server     ------>  AccessAnswer + payload
//! ```
//!
//! A request names a registered view and a range in view space, which no change of the layout alters.
//! Both sides derive from it which bytes lie at this server: of every piece of the layout state in turn,
//! of every range of the piece in turn, for every subfile that this server holds, in ascending order of the
//! subfile's index, the bytes of the request that lie in the range and in the subfile, in ascending file order. The
//! payload is exactly that, so it needs no list. A range that holds no byte here is never asked for.
//!
//! The answer that says [`GO`] and the frame of [`DATA`] have empty control parts.
//!
//! With the flag [`WHOLE`] a request is not a part but all of it, and the server that gets it is a
//! gateway: see [`super::mapping`].
//!
//! Decoding borrows from the frame and allocates nothing.

use crate::StateVersion;
use crate::reader::{DecodeError, Reader, put_number};

/// Kind of a read.
pub const READ: u16 = 0x90;
/// Kind of a write.
pub const WRITE: u16 = 0x91;
/// Kind of the payload that follows an announced write.
pub const DATA: u16 = 0x92;

/// Flag of a write: the payload follows in a [`DATA`] frame after the server said [`GO`].
pub const ANNOUNCED: u16 = 1;
/// Flag of an answer: send the payload now.
pub const GO: u16 = 1;
/// Flag of an answer: the server has a newer state of the layout, in which every byte of the request is where
/// it was; the client that asked may want to learn it.
pub const NEWER: u16 = 4;
/// Flag of a write to the owner: it ends at [`Access::end`] and the size grows with it.
pub const GROW: u16 = 2;
/// Flag of a write that ends behind the end of the file as its client knows it: the server has the owner of the file know
/// that the file grows here, if it does not know yet, and says [`COUNTED`].
pub const GROWS: u16 = 8;
/// Flag of an answer to a write with [`GROWS`]: the owner asks this server before it tells a size, so nobody has to be told of
/// the bytes that were written here. Without it the client tells the owner.
pub const COUNTED: u16 = 8;
/// Flag of a write: it is answered when its bytes are in the data files of the servers, also by servers that answer others when
/// the bytes are in memory.
pub const THROUGH: u16 = 64;
/// Flag of a request of a client: all bytes of the range, wherever they lie, in view order. The control
/// part is a [`Whole`](super::mapping::Whole), that of the answer a [`WholeAnswer`](super::mapping::WholeAnswer).
pub const WHOLE: u16 = 16;
/// Flag of a request of a server for a client: it was split already and is served here or refused.
pub const FORWARDED: u16 = 32;

/// A read or write at one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access<'a> {
    /// The registered view.
    pub view: u64,
    /// First byte, in view space.
    pub lo: u64,
    /// One past the last byte, in view space.
    pub hi: u64,
    /// Bytes of the range that lie at this server.
    pub bytes: u64,
    /// The truncate epoch the client knows.
    pub epoch: u64,
    /// The lease of an atomic handle; 0 for all others.
    pub number: u64,
    /// One past the last byte of the whole write in file space, when the flag [`GROW`] is set.
    pub end: u64,
    /// The encoded version of the layout state it was planned with
    /// ([`crate::StateVersion::put`]).
    pub version: &'a [u8],
}

/// How an access went at one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessAnswer {
    /// Nanoseconds it waited for buffers, memory and its turn.
    pub waited_ns: u64,
    /// Nanoseconds spent gathering or scattering.
    pub copied_ns: u64,
    /// Nanoseconds from the arrival of the request to the answer.
    pub served_ns: u64,
    /// Times a buffer was filled; 0 when bytes went straight to or from their place.
    pub rounds: u64,
    /// What bytes that were written live and die with until they are synced
    /// ([`Verifiers`](super::file::Verifiers)); 0 for a read.
    pub verifier: u64,
}

impl<'a> Access<'a> {
    /// Replaces `out` by the request.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        self.put(out);
    }

    /// Appends the request.
    pub fn put(&self, out: &mut Vec<u8>) {
        for n in [
            self.view,
            self.lo,
            self.hi,
            self.bytes,
            self.epoch,
            self.number,
            self.end,
        ] {
            put_number(out, n);
        }
        out.extend_from_slice(self.version);
    }

    /// Reads a request.
    pub fn decode(control: &'a [u8]) -> Result<Self, DecodeError> {
        Access::read(&mut Reader::new(control))
    }

    /// Reads a request to the end.
    pub fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut next = || r.number();
        let (view, lo, hi) = (next()?, next()?, next()?);
        let (bytes, epoch, number, end) = (next()?, next()?, next()?, next()?);
        if lo >= hi || hi > falls::MAX_OFFSET || bytes == 0 || bytes > hi - lo {
            return Err(DecodeError::BadNumber);
        }
        // A request is whole or refused, like every other; whose version it is, is the server's affair.
        let mut rest = r.clone();
        StateVersion::skip(&mut rest)?;
        rest.finish()?;
        let left = r.left();
        Ok(Access {
            view,
            lo,
            hi,
            bytes,
            epoch,
            number,
            end,
            version: r.take(left)?,
        })
    }
}

impl AccessAnswer {
    /// Replaces `out` by the answer.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        self.put(out);
    }

    /// Appends the answer.
    pub fn put(&self, out: &mut Vec<u8>) {
        for n in [
            self.waited_ns,
            self.copied_ns,
            self.served_ns,
            self.rounds,
            self.verifier,
        ] {
            put_number(out, n);
        }
    }

    /// Reads an answer.
    pub fn decode(control: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(control);
        let done = AccessAnswer::read(&mut r)?;
        r.finish()?;
        Ok(done)
    }

    /// Reads an answer that something follows.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(AccessAnswer {
            waited_ns: r.number()?,
            copied_ns: r.number()?,
            served_ns: r.number()?,
            rounds: r.number()?,
            verifier: r.number()?,
        })
    }
}
