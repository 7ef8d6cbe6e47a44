//! One connection to one server, after the introduction: frames out, frames in, payloads straight
//! between the socket and the memory they are meant for.
//!
//! Reading goes through a small buffer, so that an answer with a short payload takes one call of the
//! system; the rest of a long payload is received where it belongs. Every step exists in two forms,
//! waiting and not waiting ([`Wait`]); with several servers none is waited for alone.
//!
//! Invariants: a connection that has failed is never used again (its owner drops it); a steady
//! exchange allocates nothing.
//!
//! Left to others: what frames mean, repeating, who is asked.

use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use control::moves::crash_point;
use identity::Keys;
use kernels::{SharedBytes, SharedBytesMut};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use wire::Status;
use wire::ask::{AskError, decode_answer};
use wire::frame::{
    CONTINUED, HEADER_BYTES, Header, MAX_CONTROL_BYTES, MAX_LONG_CONTROL_BYTES, REPEATED,
};
use wire::link::{Link, PeerName};
use wire::message::session::{Credentials, Role, Welcome};
use wire::message::{Refusal, Request};
use wire::seal::{LOOK_BYTES, SEAL_BYTES, SEALED, Seal};
use wire::url::Endpoint;

use crate::error::{Error, Trouble};

/// Bytes read ahead; an answer to a small read fits.
const INBOX_BYTES: usize = 16 << 10;

/// Places handed to the system at once.
const BATCH: usize = 16;

/// Whether a step may wait for the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Until the timeout of the connection.
    Yes,
    /// Not at all.
    No,
}

/// Bytes of a payload: a place in the user's memory or in the packed memory of the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Whether it lies in the user's memory.
    pub(crate) is_direct: bool,
    pub(crate) start: usize,
    pub(crate) len: usize,
}

impl Piece {
    /// What is left of it behind its first bytes.
    pub(crate) fn rest<'a>(
        &self,
        user: SharedBytes<'a>,
        packed: &'a [u8],
        byte: usize,
    ) -> SharedBytes<'a> {
        let memory = match self.is_direct {
            true => user,
            false => SharedBytes::from_slice(packed),
        };
        let rest = memory.range(self.start + byte..self.start + self.len);
        rest.expect("pieces lie in their memory")
    }

    /// The rest of the piece, to be filled.
    pub(crate) fn rest_mut<'a>(
        &self,
        user: SharedBytesMut<'a>,
        packed: &'a mut [u8],
        byte: usize,
    ) -> SharedBytesMut<'a> {
        let memory = match self.is_direct {
            true => user,
            false => SharedBytesMut::from_slice(packed),
        };
        let rest = memory.range(self.start + byte..self.start + self.len);
        rest.expect("pieces lie in their memory")
    }
}

/// Where a transfer through header, control part and pieces stands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    /// 0 is the head, n is piece n - 1.
    pub(crate) place: usize,
    pub(crate) byte: usize,
}

impl Cursor {
    fn advance(&mut self, mut bytes: usize, len: impl Fn(usize) -> usize) {
        while bytes > 0 {
            let rest = len(self.place) - self.byte;
            if bytes < rest {
                self.byte += bytes;
                return;
            }
            bytes -= rest;
            self.place += 1;
            self.byte = 0;
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Pipe {
    link: Link,
    pub(crate) address: String,
    pub(crate) welcome: Welcome,
    inbox: Box<[u8]>,
    filled: std::ops::Range<usize>,
    /// The header whose control part is not complete, as it came.
    partial: Option<(Header, [u8; HEADER_BYTES])>,
    control: Vec<u8>,
    control_have: usize,
    /// Bytes of the control part that came in earlier frames of the same message.
    kept: usize,
    payload_left: u64,
    /// Whether payloads are sealed.
    is_sealed: bool,
    /// Of the payload that is received, if it is sealed.
    seal: Option<Seal>,
    /// Of the payload on its way out, and how far it was looked at.
    out_seal: Seal,
    looked: Cursor,
    tail: [u8; SEAL_BYTES],
    has_tail: bool,
    /// Header and control part of the frame on its way out.
    head: Vec<u8>,
    scratch: Vec<u8>,
}

fn broken(error: impl std::fmt::Display) -> Trouble {
    Trouble::Broken(error.to_string())
}

impl Pipe {
    /// Connects and introduces itself.
    pub(crate) fn connect(
        endpoint: &Endpoint,
        role: &Role,
        keys: &Keys,
        connect_timeout: Duration,
        answer_timeout: Duration,
    ) -> Result<Pipe, Trouble> {
        let (link, welcome) = introduce(endpoint, role, keys, connect_timeout, answer_timeout)?;
        Ok(Pipe {
            link,
            address: endpoint.to_string(),
            welcome,
            inbox: vec![0; INBOX_BYTES].into_boxed_slice(),
            filled: 0..0,
            partial: None,
            control: Vec::new(),
            control_have: 0,
            kept: 0,
            payload_left: 0,
            is_sealed: false,
            seal: None,
            out_seal: Seal::new(),
            looked: Cursor::default(),
            tail: [0; SEAL_BYTES],
            has_tail: false,
            head: Vec::with_capacity(256),
            scratch: Vec::with_capacity(256),
        })
    }

    /// Seals payloads if asked to, or, if nothing was asked, over a network.
    pub(crate) fn sealed(mut self, asked: Option<bool>) -> Pipe {
        self.is_sealed = asked.unwrap_or(self.link.is_tcp());
        self
    }

    /// Sets another limit for answers.
    pub(crate) fn limit(&self, timeout: Duration) {
        // A connection that takes no options has failed, which the next step says.
        let _ = self.link.set_timeout(Some(timeout));
    }

    /// Whether the peer is a process of this host, as far as the address says.
    pub(crate) fn is_local(&self) -> bool {
        match self.address.parse() {
            Ok(Endpoint::Unix(_)) => true,
            Ok(Endpoint::Tcp { host, .. }) => {
                host == "localhost"
                    || host
                        .parse::<std::net::IpAddr>()
                        .is_ok_and(|address| address.is_loopback())
            }
            Err(_) => false,
        }
    }

    /// For waiting.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }

    /// Both ends, as far as the connection knows them.
    pub(crate) fn peer(&self) -> std::io::Result<PeerName> {
        self.link.peer()
    }

    /// Whether the peer has neither closed nor said anything unasked.
    pub(crate) fn is_quiet(&self) -> bool {
        let mut byte = [0; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        self.filled.is_empty()
            && matches!(
                rustix::net::recv(self.fd(), &mut byte[..], flags),
                Err(Errno::AGAIN)
            )
    }

    /// Prepares a frame whose control part `put` writes; [`Pipe::send`] sends it.
    pub(crate) fn prepare(
        &mut self,
        kind: u16,
        flags: u16,
        request: u64,
        payload_bytes: u64,
        put: impl FnOnce(&mut Vec<u8>),
    ) {
        self.scratch.clear();
        put(&mut self.scratch);
        let header = Header {
            kind,
            status: Status::Ok,
            flags: match self.is_sealed {
                true => flags | SEALED,
                false => flags,
            },
            request,
            control_bytes: self.scratch.len() as u32,
            payload_bytes,
        };
        self.has_tail = header.is_sealed();
        if self.has_tail {
            self.out_seal = Seal::new();
            self.looked = Cursor { place: 1, byte: 0 };
        }
        self.head.clear();
        let mut rest = &self.scratch[..];
        // Long descriptions go in several frames, one behind the other.
        while rest.len() > MAX_CONTROL_BYTES as usize {
            let (part, behind) = rest.split_at(MAX_CONTROL_BYTES as usize);
            let header = Header {
                flags: flags | CONTINUED,
                control_bytes: MAX_CONTROL_BYTES,
                payload_bytes: 0,
                ..header
            };
            self.head.extend_from_slice(&header.encode(part));
            self.head.extend_from_slice(part);
            rest = behind;
        }
        let header = Header {
            control_bytes: rest.len() as u32,
            ..header
        };
        self.head.extend_from_slice(&header.encode(rest));
        self.head.extend_from_slice(rest);
    }

    /// Sends the prepared frame with its payload from the cursor on; whether all of it is sent.
    pub(crate) fn send(
        &mut self,
        cursor: &mut Cursor,
        pieces: &[Piece],
        user: SharedBytes<'_>,
        packed: &[u8],
        wait: Wait,
    ) -> Result<bool, Trouble> {
        loop {
            if self.has_tail {
                self.look(*cursor, pieces, user, packed);
            }
            let mut batch = [SharedBytes::from_slice(&[]); BATCH];
            let mut count = 0;
            let mut at = *cursor;
            while at.place <= pieces.len() && count < BATCH {
                let mut bytes = match at.place {
                    0 => SharedBytes::from_slice(&self.head[at.byte..]),
                    n => pieces[n - 1].rest(user, packed, at.byte),
                };
                // What was not looked at is not sent yet.
                let is_far = self.has_tail && at.place >= self.looked.place;
                if is_far && at.place > 0 {
                    let n = match at.place == self.looked.place {
                        true => self.looked.byte - at.byte,
                        false => 0,
                    };
                    bytes = bytes.range(0..n).expect("looked at");
                }
                if !bytes.is_empty() {
                    batch[count] = bytes;
                    count += 1;
                }
                if is_far && at.place > 0 {
                    break;
                }
                at.place += 1;
                at.byte = 0;
            }
            if self.has_tail && at.place == pieces.len() + 1 && count < BATCH {
                let tail = SharedBytes::from_slice(&self.tail[at.byte..]);
                if !tail.is_empty() {
                    batch[count] = tail;
                    count += 1;
                }
            }
            if count == 0 {
                return Ok(true);
            }
            match kernels::send_part(self.link.as_fd(), &batch[..count], wait == Wait::Yes) {
                Ok(0) => return Err(broken("the connection takes no more bytes")),
                Ok(n) => {
                    let head = self.head.len();
                    cursor.advance(n, |place| match place {
                        0 => head,
                        n if n > pieces.len() => SEAL_BYTES,
                        n => pieces[n - 1].len,
                    });
                }
                Err(e) => match e.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock if wait == Wait::No => return Ok(false),
                    ErrorKind::WouldBlock => return Err(Trouble::Late),
                    _ => return Err(broken(format!("the connection failed: {e}"))),
                },
            }
        }
    }

    /// Adds the next bytes behind the cursor to the seal, right before they are sent; with the last of them it is
    /// complete.
    fn look(&mut self, sent: Cursor, pieces: &[Piece], user: SharedBytes<'_>, packed: &[u8]) {
        let is_ahead = (self.looked.place, self.looked.byte) > (sent.place.max(1), 0)
            && (self.looked.place, self.looked.byte) > (sent.place, sent.byte);
        if is_ahead || self.looked.place > pieces.len() {
            return;
        }
        let mut left = LOOK_BYTES;
        while let Some(piece) = pieces.get(self.looked.place - 1) {
            let rest = piece.rest(user, packed, self.looked.byte);
            let n = rest.len().min(left);
            let part = rest.range(0..n).expect("inside");
            self.out_seal.add(part);
            left -= n;
            self.looked.byte += n;
            if self.looked.byte < piece.len {
                return;
            }
            self.looked = Cursor {
                place: self.looked.place + 1,
                byte: 0,
            };
        }
        self.tail = self.out_seal.bytes();
    }

    /// Compares the seal of a payload that was received; false if the seal is not there yet. A payload that does not fit
    /// is refused; the connection is in step.
    pub(crate) fn compare_seal(&mut self, wait: Wait) -> Result<bool, Trouble> {
        if self.seal.is_none() {
            return Ok(true);
        }
        while self.filled.len() < SEAL_BYTES {
            if !self.fill(wait)? {
                return Ok(false);
            }
        }
        let start = self.filled.start;
        let came = &self.inbox[start..start + SEAL_BYTES];
        let came = came.try_into().expect("four");
        self.filled.start += SEAL_BYTES;
        match self.seal.take().is_none_or(|seal| seal.fits(came)) {
            true => Ok(true),
            false => Err(Trouble::Refused(
                Status::Damaged,
                Refusal::new(
                    "bytes were damaged on the way from the server: they do not fit their checksum",
                ),
            )),
        }
    }

    /// Reads the next header and control part; `None` if they are not there yet.
    pub(crate) fn frame(&mut self, wait: Wait) -> Result<Option<Header>, Trouble> {
        debug_assert_eq!(self.payload_left, 0, "payloads are received first");
        loop {
            if self.partial.is_none() && self.filled.len() >= HEADER_BYTES {
                let start = self.filled.start;
                let bytes: [u8; HEADER_BYTES] = self.inbox[start..start + HEADER_BYTES]
                    .try_into()
                    .expect("a header");
                self.filled.start += HEADER_BYTES;
                let header = Header::decode(&bytes).map_err(broken)?;
                let len = self.kept + header.control_bytes as usize;
                if len > MAX_LONG_CONTROL_BYTES {
                    return Err(broken("a message is longer than allowed"));
                }
                self.control.resize(len, 0);
                self.control_have = self.kept;
                self.partial = Some((header, bytes));
            }
            if let Some((header, bytes)) = &self.partial {
                let missing = self.control.len() - self.control_have;
                let n = missing.min(self.filled.len());
                self.control[self.control_have..self.control_have + n]
                    .copy_from_slice(&self.inbox[self.filled.start..self.filled.start + n]);
                self.control_have += n;
                self.filled.start += n;
                if n == missing {
                    Header::verify(bytes, &self.control[self.kept..]).map_err(broken)?;
                    let header = *header;
                    self.partial = None;
                    if header.flags & CONTINUED != 0 {
                        self.kept = self.control.len();
                        continue;
                    }
                    self.kept = 0;
                    self.payload_left = header.payload_bytes;
                    self.seal = header.is_sealed().then(Seal::new);
                    return Ok(Some(header));
                }
            }
            if !self.fill(wait)? {
                return Ok(None);
            }
        }
    }

    /// The control part of the frame that came last.
    pub(crate) fn control(&self) -> &[u8] {
        &self.control
    }

    /// Receives the next bytes of the payload where they belong; how many, 0 if none are there yet.
    pub(crate) fn payload(
        &mut self,
        mut into: SharedBytesMut<'_>,
        wait: Wait,
    ) -> Result<usize, Trouble> {
        crash_point("client_in_payload");
        let mut most = (into.len() as u64).min(self.payload_left) as usize;
        if self.seal.is_some() {
            most = most.min(LOOK_BYTES);
        }
        if most == 0 {
            return Ok(0);
        }
        let n = if self.filled.is_empty() {
            let into = into.reborrow().range(0..most).expect("at most all of it");
            // The seal comes with the last bytes, in one call.
            let is_end = self.seal.is_some() && most as u64 == self.payload_left;
            let room = if is_end { SEAL_BYTES } else { 0 };
            let mut inbox = std::mem::take(&mut self.inbox);
            let received = self.receive_payload(into, &mut inbox[..room], wait);
            self.inbox = inbox;
            let n = received?;
            self.filled = 0..n.saturating_sub(most);
            n.min(most)
        } else {
            let n = most.min(self.filled.len());
            let there = &self.inbox[self.filled.start..self.filled.start + n];
            let into = into.reborrow().range(0..n).expect("at most all of it");
            into.copy_from(there.into());
            self.filled.start += n;
            n
        };
        self.payload_left -= n as u64;
        if let Some(seal) = &mut self.seal {
            let there = into.as_shared().range(0..n).expect("at most all of it");
            seal.add(there);
        }
        Ok(n)
    }

    /// Drops what is left of a payload; whether all of it is gone.
    pub(crate) fn skip(&mut self, wait: Wait) -> Result<bool, Trouble> {
        let mut sink = [0; 4096];
        while self.payload_left > 0 {
            if self.payload(sink[..].as_mut().into(), wait)? == 0 {
                return Ok(false);
            }
        }
        self.compare_seal(wait)
    }

    /// Reads ahead; whether anything came.
    fn fill(&mut self, wait: Wait) -> Result<bool, Trouble> {
        if self.filled.is_empty() {
            self.filled = 0..0;
        } else if self.filled.end == self.inbox.len() {
            self.inbox.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
        }
        let mut inbox = std::mem::take(&mut self.inbox);
        let flags = match wait {
            Wait::Yes => RecvFlags::empty(),
            Wait::No => RecvFlags::DONTWAIT,
        };
        let received = self.receive_into(&mut inbox[self.filled.end..], flags, wait);
        self.inbox = inbox;
        let n = received?;
        self.filled.end += n;
        Ok(n > 0)
    }

    fn receive_payload(
        &self,
        into: SharedBytesMut<'_>,
        behind: &mut [u8],
        wait: Wait,
    ) -> Result<usize, Trouble> {
        let mut targets = [into, behind.into()];
        loop {
            let waits = wait == Wait::Yes;
            match kernels::receive_part(self.link.as_fd(), &mut targets, waits) {
                Ok(0) => return Err(broken("the server closed the connection")),
                Ok(n) => return Ok(n),
                Err(e) => match e.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock if wait == Wait::No => return Ok(0),
                    ErrorKind::WouldBlock => return Err(Trouble::Late),
                    _ => return Err(broken(format!("the connection failed: {e}"))),
                },
            }
        }
    }

    fn receive_into(
        &self,
        into: &mut [u8],
        flags: RecvFlags,
        wait: Wait,
    ) -> Result<usize, Trouble> {
        loop {
            match rustix::net::recv(self.link.as_fd(), &mut *into, flags) {
                Ok((0, _)) => return Err(broken("the server closed the connection")),
                Ok((n, _)) => return Ok(n),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if wait == Wait::No => return Ok(0),
                Err(Errno::AGAIN) => return Err(Trouble::Late),
                Err(e) => return Err(broken(format!("the connection failed: {e}"))),
            }
        }
    }

    /// Sends a request; the answer is taken with [`Pipe::answer`].
    pub(crate) fn put<R: Request>(&mut self, number: u64, request: &R) -> Result<(), Trouble> {
        self.put_with(0, number, request)
    }

    fn put_with<R: Request>(
        &mut self,
        flags: u16,
        number: u64,
        request: &R,
    ) -> Result<(), Trouble> {
        self.prepare(R::KIND, flags, number, 0, |out| request.put(out));
        if self.scratch.len() > MAX_LONG_CONTROL_BYTES {
            return Err(Trouble::Final(Error::Refused {
                status: Status::TooLarge,
                text: format!(
                    "the request has {} bytes, at most {MAX_LONG_CONTROL_BYTES} travel",
                    self.scratch.len()
                ),
                server: None,
            }));
        }
        let nothing = SharedBytes::from_slice(&[]);
        self.send(&mut Cursor::default(), &[], nothing, &[], Wait::Yes)?;
        Ok(())
    }

    /// Waits for the answer to a request, which is the next frame.
    pub(crate) fn answer<R: Request>(&mut self, number: u64) -> Result<R::Answer, Trouble> {
        let header = self.frame(Wait::Yes)?.ok_or(Trouble::Late)?;
        self.skip(Wait::Yes)?;
        if header.kind != R::KIND || header.request != number {
            return Err(Trouble::Nonsense(format!(
                "an answer of kind {} came where {} was asked",
                header.kind,
                R::NAME
            )));
        }
        Ok(decode_answer(header.status, &self.control)?)
    }

    /// Asks and waits.
    pub(crate) fn ask<R: Request>(
        &mut self,
        number: u64,
        request: &R,
    ) -> Result<R::Answer, Trouble> {
        self.put(number, request)?;
        self.answer::<R>(number)
    }

    /// Asks once more what was asked before under the same number, over a connection that broke.
    pub(crate) fn ask_again<R: Request>(
        &mut self,
        number: u64,
        request: &R,
    ) -> Result<R::Answer, Trouble> {
        self.put_with(REPEATED, number, request)?;
        self.answer::<R>(number)
    }
}

/// A connection to the server that listens at an endpoint, after the introduction.
pub(crate) fn introduce(
    endpoint: &Endpoint,
    role: &Role,
    keys: &Keys,
    connect_timeout: Duration,
    answer_timeout: Duration,
) -> Result<(Link, Welcome), Trouble> {
    let link = identity::reach(endpoint, keys, connect_timeout).map_err(|e| match e {
        // Nobody is there, however that showed.
        AskError::Link(e) => broken(e),
        other => other.into(),
    })?;
    let own = credentials();
    let met = identity::introduce(link, endpoint, role.clone(), own, keys, connect_timeout)?;
    met.link.set_timeout(Some(answer_timeout)).map_err(broken)?;
    Ok((met.link, met.welcome))
}

/// The user that this process works for; believed only where the kernel cannot say and a secret is known.
fn credentials() -> Credentials {
    let groups = rustix::process::getgroups().unwrap_or_default();
    Credentials {
        user: rustix::process::geteuid().as_raw(),
        group: rustix::process::getegid().as_raw(),
        groups: groups.into_iter().map(|g| g.as_raw()).collect(),
    }
}
