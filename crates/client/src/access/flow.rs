//! The messages of one access to one server: cut, sent, answered, one after the other.
//!
//! ```text
//!  view range   |----- message 0 -----|----- message 1 -----|-- 2 --|
//!  in flight             2 at most; the payload of an announced write goes before the next request
//! ```
//!
//! A flow does what can be done without waiting, or waits in every step, as its caller says. It knows
//! nothing of other flows: `message` drives them and decides which to wait for.
//!
//! Invariants
//! - Answers come in the order of the requests. After a failure nothing new is sent, and what is under
//!   way is still received, so that the connection stays good.
//! - Bytes before `confirmed` are done at this server, whatever happens to the rest.
//! - Memory for packed bytes is kept from access to access.

use std::time::Instant;

use kernels::{Share, SharedBytesMut};
use layout::{FileSpan, ViewOffset};
use wire::Status;
use wire::message::access::{
    ANNOUNCED, Access, COUNTED, DATA, GO, GROW, GROWS, NEWER, READ, THROUGH, WRITE,
};
use wire::message::mapping::Upcoming;
use wire::message::{self, Refusal};

use crate::access::envelope::{Envelope, Head, Routes};
use crate::access::memory::{Direction, Run};
use crate::access::phases::ServerPhases;
use crate::access::plan::Plan;
use crate::access::request::{Attempt, Growth};
use crate::access::work::Lot;
use crate::error::Trouble;
use crate::transport::pipe::{Cursor, Piece, Pipe, Wait};
use plan::access::Part;

/// Longer writes that grow a file tell its owner: that costs little beside their bytes, and then nobody who asks for the size depends on
/// the servers that took them.
const COUNTED_BYTES: u64 = 64 << 10;

/// Runs shorter than this are packed when there are several: a copy is cheaper than a call.
const DIRECT_BYTES: usize = 4096;

/// Several runs of the user's memory that are all this long (but for the first and the last) go without packing.
const LONG_RUN: u64 = 16 << 10;

/// Packed bytes are spread when so many have come: they are still near the processor then.
const NEAR_BYTES: usize = 256 << 10;

/// What all messages of an attempt have in common.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) attempt: Attempt<'a>,
    pub(super) envelope: &'a Envelope,
    /// Limits that hints set; 0 is the server's own.
    pub(super) message_bytes: u64,
    pub(super) rendezvous_bytes: Option<u64>,
    /// Whether writes are answered when their bytes are in the data files.
    pub(super) is_through: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Request,
    AwaitsGo,
    Data,
    AwaitsDone,
    Payload,
}

#[derive(Debug, Default)]
struct Message {
    request: u64,
    lo: u64,
    hi: u64,
    bytes: u64,
    state: State,
    parts: Vec<Part>,
    pieces: Vec<Piece>,
    packed: Vec<u8>,
    /// What is to be spread, ascending by piece.
    spreads: Vec<PackedPart>,
    /// The first of them that is not done.
    spread: usize,
    cursor: Cursor,
    is_announced: bool,
    /// Sent as far as its state says.
    is_sent: bool,
}

/// Bytes of a part that come packed, in a piece of the payload.
#[derive(Clone, Debug)]
struct PackedPart {
    piece: usize,
    part: usize,
    file: (u64, u64),
    /// Where they are in the packed memory.
    start: usize,
    len: usize,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub(super) pipe: usize,
    /// Where the next message begins, in view space.
    next: u64,
    end: u64,
    /// Bytes that are not in a message yet.
    unsent: u64,
    pub(super) confirmed: u64,
    ring: [Message; 2],
    first: usize,
    count: usize,
    /// The verifier of bytes that the server has taken; 0 if it has taken none.
    pub(super) verifier: u64,
    /// Whether the owner of the file counts all bytes that the server has taken, without being told.
    pub(super) is_counted: bool,
    pub(super) failure: Option<Trouble>,
    /// Nothing more is sent, because another server has a newer layout.
    is_halted: bool,
    /// Whether the server has a newer layout, in which the bytes are where they were.
    pub(super) is_newer: bool,
    pub(super) phases: ServerPhases,
    pub(super) gather_ns: u64,
    pub(super) scatter_ns: u64,
    /// What a gateway said.
    pub(super) routes: Routes,
}

impl Flow {
    /// Begins with what is still to be done at a server, from view offset `lo` to `hi`.
    pub(super) fn begin(&mut self, lot: &Lot, lo: u64, hi: u64) {
        self.next = lo;
        self.confirmed = lo;
        self.end = hi;
        self.phases = lot.phases();
        self.unsent = self.phases.bytes;
        self.count = 0;
        self.verifier = 0;
        self.is_counted = true;
        self.failure = None;
        self.is_halted = false;
        self.is_newer = false;
        self.gather_ns = 0;
        self.scatter_ns = 0;
        self.routes.clear();
        if self.unsent == 0 {
            self.confirmed = hi;
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.count == 0 && (self.unsent == 0 || self.failure.is_some() || self.is_halted)
    }

    /// Whether its server has turned it away because of the layout.
    pub(super) fn is_stale(&self) -> bool {
        matches!(
            &self.failure,
            Some(Trouble::Refused(Status::StaleLayout, _))
        )
    }

    /// Sends no further request.
    pub(super) fn halt(&mut self) {
        self.is_halted = true;
    }

    /// Whether something could be sent if the connection took it.
    pub(super) fn wants_to_send(&self) -> bool {
        (0..self.count).any(|i| !self.message(i).is_sent) || self.may_issue()
    }

    fn message(&self, i: usize) -> &Message {
        &self.ring[(self.first + i) % 2]
    }

    fn may_issue(&self) -> bool {
        self.unsent > 0
            && self.failure.is_none()
            && !self.is_halted
            && self.count < 2
            && (0..self.count).all(|i| {
                let m = self.message(i);
                m.is_sent && !matches!(m.state, State::AwaitsGo)
            })
    }

    /// Ends it because the connection has failed.
    pub(super) fn fail(&mut self, trouble: Trouble) {
        self.count = 0;
        if self.failure.is_none() {
            self.failure = Some(trouble);
        }
    }

    /// Sends what can be sent of a lot.
    pub(super) fn send(
        &mut self,
        lot: &Lot,
        pipe: &mut Pipe,
        memory: &Run<'_>,
        terms: &Terms<'_>,
        mut number: impl FnMut() -> u64,
        wait: Wait,
    ) -> Result<(), Trouble> {
        loop {
            let pending = (0..self.count).find(|&i| !self.message(i).is_sent);
            match pending {
                Some(i) => {
                    let m = &mut self.ring[(self.first + i) % 2];
                    // The request of an announced write goes without its payload.
                    let has_payload =
                        memory.is_write() && (m.state == State::Data || !m.is_announced);
                    let pieces = if has_payload { &m.pieces[..] } else { &[] };
                    let user = memory.to_send();
                    if !pipe.send(&mut m.cursor, pieces, user, &m.packed, wait)? {
                        return Ok(());
                    }
                    m.is_sent = true;
                    m.state = match m.state {
                        State::Request if m.is_announced => State::AwaitsGo,
                        _ => State::AwaitsDone,
                    };
                }
                None if self.may_issue() => self.issue(lot, pipe, memory, terms, number()),
                None => return Ok(()),
            }
        }
    }

    /// Cuts the next message and prepares it.
    fn issue(
        &mut self,
        lot: &Lot,
        pipe: &mut Pipe,
        memory: &Run<'_>,
        terms: &Terms<'_>,
        number: u64,
    ) {
        let Attempt { plan, seen, lo, .. } = terms.attempt;
        let mut most = pipe.welcome.message_bytes.clamp(4096, 1 << 30);
        if terms.message_bytes > 0 {
            most = most.min(terms.message_bytes);
        }
        let range = ViewOffset(self.next)..ViewOffset(self.end);
        let file = seen.view.file_range(range).expect("inside the access");
        let mut file = FileSpan::from(file);
        let index = (self.first + self.count) % 2;
        let m = &mut self.ring[index];
        m.parts.clear();
        let mut hi = self.end;
        if self.unsent > most {
            file = plan.cut(&lot.parts, file, most);
            hi = seen.view.bytes().rank(file.end.0);
        }
        if self.next == lo && hi == self.end && self.phases.messages == 0 {
            m.parts.extend_from_slice(&lot.parts);
        } else {
            m.parts
                .extend(lot.parts.iter().filter_map(|part| plan.clip(part, file)));
        }
        m.bytes = m.parts.iter().map(|part| part.bytes).sum();
        (m.lo, m.hi, m.request) = (self.next, hi, number);
        m.cursor = Cursor::default();
        m.is_sent = false;
        m.state = State::Request;
        let started = Instant::now();
        m.place(plan, lo, memory);
        if memory.is_write() {
            self.gather_ns += started.elapsed().as_nanos() as u64;
        }
        let rendezvous = terms
            .rendezvous_bytes
            .unwrap_or(pipe.welcome.rendezvous_bytes);
        m.is_announced = memory.is_write() && m.bytes > rendezvous;
        let mut flags = 0;
        if m.is_announced {
            flags |= ANNOUNCED;
        }
        if terms.is_through && memory.is_write() {
            flags |= THROUGH;
        }
        let tells_end = terms.attempt.growth == Growth::AtOwner;
        match terms.attempt.growth {
            Growth::Inside => {}
            Growth::AtOwner => flags |= GROW,
            Growth::Elsewhere if terms.attempt.len <= COUNTED_BYTES => flags |= GROWS,
            Growth::Elsewhere => {}
        }
        let access = Access {
            view: seen.number,
            lo: m.lo,
            hi: m.hi,
            bytes: m.bytes,
            epoch: terms.attempt.epoch,
            number: terms.attempt.how.lease,
            end: if tells_end { file.end.0 } else { 0 },
            version: &plan.version,
        };
        let (kind, payload) = match memory {
            Run::From(_) if m.is_announced => (WRITE, 0),
            Run::From(_) => (WRITE, m.bytes),
            Run::Into(_) => (READ, 0),
        };
        let head = Head {
            kind,
            flags,
            request: number,
            payload_bytes: payload,
        };
        // A write may have moved the end; it is not bounded by the size.
        let size = match terms.attempt.direction {
            Direction::Read => terms.attempt.size,
            Direction::Write => falls::MAX_OFFSET,
        };
        let ends = (hi == self.end).then_some(Upcoming {
            offset: lo,
            size: terms.attempt.len,
        });
        terms.envelope.prepare(pipe, head, access, size, ends);
        self.next = hi;
        self.unsent -= m.bytes;
        self.count += 1;
        self.phases.messages += 1;
    }

    /// Receives what is there, at most one whole answer; whether anything was complete.
    pub(super) fn receive(
        &mut self,
        pipe: &mut Pipe,
        memory: &mut Run<'_>,
        terms: &Terms<'_>,
        wait: Wait,
    ) -> Result<bool, Trouble> {
        let index = self.first % 2;
        if self.count == 0 {
            return Ok(false);
        }
        let m = &mut self.ring[index];
        if m.state != State::Payload {
            let Some(header) = pipe.frame(wait)? else {
                return Ok(false);
            };
            // An answer repeats the kind of the frame it answers.
            let kind = match memory {
                Run::Into(_) => READ,
                Run::From(_) if m.is_announced && m.state == State::AwaitsDone => DATA,
                Run::From(_) => WRITE,
            };
            if header.kind != kind || header.request != m.request {
                return Err(Trouble::Nonsense(format!(
                    "an answer of kind {} to request {} came out of turn",
                    header.kind, header.request
                )));
            }
            if !header.status.is_ok() {
                let refusal: Refusal = message::decode(pipe.control())?;
                if header.payload_bytes != 0 {
                    return Err(Trouble::Nonsense("a refusal with a payload".into()));
                }
                self.pop();
                if self.failure.is_none() {
                    self.failure = Some(Trouble::Refused(header.status, refusal));
                }
                return Ok(true);
            }
            if header.flags & GO != 0 {
                if m.state != State::AwaitsGo || header.payload_bytes != 0 {
                    return Err(Trouble::Nonsense(
                        "a payload was called for that is not due".into(),
                    ));
                }
                m.state = State::Data;
                m.is_sent = false;
                m.cursor = Cursor::default();
                self.phases.messages += 1;
                pipe.prepare(DATA, 0, m.request, m.bytes, |_| {});
                return Ok(true);
            }
            let expected = if memory.is_write() { 0 } else { m.bytes };
            if header.payload_bytes != expected || m.state != State::AwaitsDone {
                return Err(Trouble::Nonsense(format!(
                    "{} bytes came where {expected} were asked for",
                    header.payload_bytes
                )));
            }
            let done = terms.envelope.open(pipe.control(), &mut self.routes)?;
            self.phases.waited_ns += done.waited_ns;
            self.phases.copied_ns += done.copied_ns;
            self.phases.served_ns += done.served_ns;
            if memory.is_write() {
                // All answers come over one connection, so from one start of the server.
                self.verifier = done.verifier;
                self.is_counted &= header.flags & COUNTED != 0;
            }
            self.is_newer |= header.flags & NEWER != 0;
            m.state = State::Payload;
            m.cursor = Cursor::default();
        }
        if let Run::Into(user) = memory {
            while let Some(&piece) = m.pieces.get(m.cursor.place) {
                let target = piece.rest_mut(user.reborrow(), &mut m.packed, m.cursor.byte);
                let n = pipe.payload(target, wait)?;
                if n == 0 && piece.len > m.cursor.byte {
                    return Ok(false);
                }
                m.cursor.byte += n;
                if m.cursor.byte == piece.len {
                    if !piece.is_direct {
                        let started = Instant::now();
                        m.unpack(terms.attempt.plan, terms.attempt.lo, user.reborrow());
                        self.scatter_ns += started.elapsed().as_nanos() as u64;
                    }
                    m.cursor = Cursor {
                        place: m.cursor.place + 1,
                        byte: 0,
                    };
                }
            }
        }
        let hi = m.hi;
        match pipe.compare_seal(wait) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(Trouble::Refused(status, refusal)) => {
                self.pop();
                if self.failure.is_none() {
                    self.failure = Some(Trouble::Refused(status, refusal));
                }
                return Ok(true);
            }
            Err(trouble) => return Err(trouble),
        }
        self.pop();
        if self.failure.is_none() {
            self.confirmed = hi;
            if self.count == 0 && self.unsent == 0 {
                self.confirmed = self.end;
            }
        }
        Ok(true)
    }

    fn pop(&mut self) {
        self.first = (self.first + 1) % 2;
        self.count -= 1;
    }
}

impl Message {
    /// Says where each byte of the payload lies, and packs those that are scattered. What is read in short runs comes
    /// in steps that use the same packed memory one after the other.
    fn place(&mut self, plan: &Plan, base: u64, memory: &Run<'_>) {
        self.pieces.clear();
        self.spreads.clear();
        self.spread = 0;
        // Where the next packed bytes go.
        let mut filled = 0;
        for (number, part) in self.parts.iter().enumerate() {
            let share = plan.share(part);
            let len = part.bytes as usize;
            let run = share
                .left_run(part.file.raw())
                .filter(|_| len >= DIRECT_BYTES || self.parts.len() == 1);
            if let Some(at) = run {
                add_direct(&mut self.pieces, (at - base) as usize, len);
                continue;
            }
            if len as u64 >= 2 * LONG_RUN && add_runs(&mut self.pieces, share, part, base) {
                continue;
            }
            if let Run::From(user) = memory {
                if self.packed.len() < filled + len {
                    self.packed.resize(filled + len, 0);
                }
                share
                    .gather_left(
                        part.file.raw(),
                        *user,
                        base,
                        &mut self.packed[filled..filled + len],
                    )
                    .expect("the part lies in the access");
                add_packed(&mut self.pieces, filled, len);
                filled += len;
                continue;
            }
            let mut file = part.file.raw();
            let mut left = len;
            while left > 0 {
                if filled == NEAR_BYTES || self.pieces.last().is_none_or(|p| p.is_direct) {
                    filled = 0;
                }
                let n = left.min(NEAR_BYTES - filled);
                let end = match n == left {
                    true => file.end,
                    false => share.after(file.clone(), n as u64),
                };
                add_packed(&mut self.pieces, filled, n);
                self.spreads.push(PackedPart {
                    piece: self.pieces.len() - 1,
                    part: number,
                    file: (file.start, end),
                    start: filled,
                    len: n,
                });
                file.start = end;
                filled += n;
                left -= n;
                if self.packed.len() < filled {
                    self.packed.resize(filled, 0);
                }
            }
        }
    }

    /// Spreads what was received packed in the piece of the cursor.
    fn unpack(&mut self, plan: &Plan, base: u64, mut user: SharedBytesMut<'_>) {
        while let Some(spread) = self.spreads.get(self.spread)
            && spread.piece == self.cursor.place
        {
            plan.share(&self.parts[spread.part])
                .scatter_left(
                    spread.file.0..spread.file.1,
                    &self.packed[spread.start..spread.start + spread.len],
                    user.reborrow(),
                    base,
                )
                .expect("the part lies in the access");
            self.spread += 1;
        }
    }
}

/// Adds bytes of the user's memory to a payload.
fn add_direct(pieces: &mut Vec<Piece>, start: usize, len: usize) {
    match pieces.last_mut() {
        Some(last) if last.is_direct && last.start + last.len == start => last.len += len,
        _ => pieces.push(Piece {
            is_direct: true,
            start,
            len,
        }),
    }
}

/// Adds packed bytes to a payload; those at the beginning of the packed memory begin a new piece.
fn add_packed(pieces: &mut Vec<Piece>, start: usize, len: usize) {
    match pieces.last_mut() {
        Some(last) if !last.is_direct && start > 0 => last.len += len,
        _ => pieces.push(Piece {
            is_direct: false,
            start,
            len,
        }),
    }
}

/// Adds a part run by run, if its runs in the user's memory are long; whether they are. Otherwise nothing is added.
fn add_runs(pieces: &mut Vec<Piece>, share: &Share, part: &Part, base: u64) -> bool {
    let before = (pieces.len(), pieces.last().copied());
    let mut left = part.bytes;
    let mut runs = 0u64;
    share.each_left_run(part.file.raw(), |at, len| {
        // The first and the last may have been cut.
        if len < LONG_RUN && runs > 0 && len < left {
            return false;
        }
        runs += 1;
        left -= len;
        add_direct(pieces, (at - base) as usize, len as usize);
        true
    });
    if left == 0 {
        return true;
    }
    pieces.truncate(before.0);
    if let (Some(last), Some(kept)) = (pieces.last_mut(), before.1) {
        *last = kept;
    }
    false
}
