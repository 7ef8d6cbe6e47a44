//! Forwarded requests under way: one per foe, sent and answered without waiting for one alone.
//!
//! Foes that wait for each other's gateways would wait for ever if a gateway took them one by one: each
//! holds a buffer for a gateway that listens to another foe. So sockets are polled together and every step
//! takes what is there.
//!
//! Left to others: connections (`foes`), what parts mean (`split`).

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use wire::Status;
use wire::ask::decode_answer;
use wire::frame::{HEADER_BYTES, Header};
use wire::message::access::{Access, AccessAnswer, FORWARDED, WRITE};
use wire::seal::{SEAL_BYTES, SEALED, Seal};

use super::foes::Foe;
use super::split::Route;
use super::{Whose, broken};
use crate::context::Cluster;
use crate::refused::Refused;

/// Without any progress for so long, foes count as gone.
const PATIENCE: Duration = Duration::from_secs(60);

enum State {
    /// So many bytes of frame and payload are sent.
    Sending(usize),
    /// The head of the answer, as far as it is there.
    Head([u8; HEADER_BYTES], usize),
    Control(Header, [u8; HEADER_BYTES], usize),
    Payload(usize),
    /// The seal behind the payload, as far as it is there.
    Seal([u8; SEAL_BYTES], usize),
    /// The next request may go over the connection.
    Done,
    Failed(Refused),
}

/// A request to one foe.
pub(super) struct Forward<'a> {
    route: &'a mut Route,
    is_write: bool,
    foe: Option<Foe>,
    number: u64,
    state: State,
    was_sent: bool,
    verifier: u64,
    /// Of what is sent; empty if it is not sealed.
    tail: Vec<u8>,
    /// Whether the answer is sealed.
    is_sealed: bool,
    refused: Option<Refused>,
}

/// How a request to a foe ended.
pub(super) struct ForwardOutcome {
    /// The start of the foe, and the verifier of what it has taken.
    pub(super) written: Option<(u64, u64)>,
}

fn refused_early(refused: Refused) -> State {
    State::Failed(refused)
}

impl<'a> Forward<'a> {
    /// Finds a connection and writes the frame; nothing is sent yet.
    pub(super) fn begin(whose: &Whose<'_>, kind: u16, route: &'a mut Route) -> Forward<'a> {
        let (cluster, view, access) = (whose.cluster, whose.view, whose.access);
        let is_write = kind == WRITE;
        let mut forward = Forward {
            route,
            is_write,
            foe: None,
            number: 0,
            state: State::Sending(0),
            was_sent: false,
            verifier: 0,
            tail: Vec::new(),
            is_sealed: false,
            refused: None,
        };
        if !is_write {
            forward.route.room();
        }
        match cluster.foes.take(cluster, forward.route.server, view) {
            Ok((mut foe, view)) => {
                let part = Access {
                    view,
                    bytes: forward.route.bytes,
                    end: 0,
                    ..*access
                };
                forward.number = foe.number();
                let mut control = std::mem::take(&mut foe.control);
                part.encode(&mut control);
                let header = Header {
                    kind,
                    status: Status::Ok,
                    flags: match foe.is_sealed {
                        true => FORWARDED | SEALED | whose.flags,
                        false => FORWARDED | whose.flags,
                    },
                    request: forward.number,
                    control_bytes: control.len() as u32,
                    payload_bytes: if is_write { part.bytes } else { 0 },
                };
                foe.out.clear();
                foe.out.extend_from_slice(&header.encode(&control));
                foe.out.extend_from_slice(&control);
                foe.control = control;
                if header.is_sealed() {
                    let mut seal = Seal::new();
                    seal.add(forward.route.packet());
                    forward.tail.extend_from_slice(&seal.bytes());
                }
                forward.foe = Some(foe);
            }
            Err(error) => forward.state = refused_early(error.into()),
        }
        forward
    }

    pub(super) fn server(&self) -> u64 {
        self.route.server
    }

    pub(super) fn bytes(&self) -> u64 {
        self.route.bytes
    }

    /// Whether anything of it was sent.
    pub(super) fn was_sent(&self) -> bool {
        self.was_sent
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Done | State::Failed(_))
    }

    /// Does what can be done without waiting; whether there was anything.
    fn step(&mut self) -> bool {
        let mut progress = false;
        loop {
            match self.step_once() {
                Ok(true) => progress = true,
                Ok(false) => return progress,
                Err(refused) => {
                    self.foe = None;
                    self.state = State::Failed(refused);
                    return true;
                }
            }
            if self.is_over() {
                return true;
            }
        }
    }

    fn step_once(&mut self) -> Result<bool, Refused> {
        let Some(foe) = &mut self.foe else {
            return Ok(false);
        };
        let kind_of_payload = self.is_write;
        match &mut self.state {
            State::Sending(sent) => {
                let head = foe.out.len();
                let payload = if kind_of_payload {
                    self.route.packet()
                } else {
                    &[]
                };
                let rest = match *sent {
                    at if at < head => &foe.out[at..],
                    at if at < head + payload.len() => &payload[at - head..],
                    at => &self.tail[at - head - payload.len()..],
                };
                let n = sent_now(&foe.link, rest)?;
                self.was_sent |= n > 0;
                *sent += n;
                if *sent == head + payload.len() + self.tail.len() {
                    self.state = State::Head([0; HEADER_BYTES], 0);
                    return Ok(true);
                }
                Ok(n > 0)
            }
            State::Head(bytes, filled) => {
                let n = received_now(&foe.link, &mut bytes[*filled..])?;
                *filled += n;
                if *filled == HEADER_BYTES {
                    let bytes = *bytes;
                    let header = Header::decode(&bytes).map_err(nonsense)?;
                    foe.control.resize(header.control_bytes as usize, 0);
                    self.state = State::Control(header, bytes, 0);
                    return Ok(true);
                }
                Ok(n > 0)
            }
            State::Control(header, bytes, filled) => {
                if *filled < foe.control.len() {
                    let n = received_now(&foe.link, &mut foe.control[*filled..])?;
                    *filled += n;
                    if *filled < foe.control.len() {
                        return Ok(n > 0);
                    }
                }
                let (header, bytes) = (*header, *bytes);
                Header::verify(&bytes, &foe.control).map_err(nonsense)?;
                self.answered(&header)?;
                Ok(true)
            }
            State::Payload(filled) => {
                let target = self.route.room();
                let n = received_now(&foe.link, &mut target[*filled..])?;
                *filled += n;
                if *filled == target.len() {
                    self.state = match self.is_sealed {
                        true => State::Seal([0; SEAL_BYTES], 0),
                        false => State::Done,
                    };
                    return Ok(true);
                }
                Ok(n > 0)
            }
            State::Seal(came, filled) => {
                let n = received_now(&foe.link, &mut came[*filled..])?;
                *filled += n;
                if *filled == SEAL_BYTES {
                    let mut seal = Seal::new();
                    seal.add(&*self.route.room());
                    if !seal.fits(*came) {
                        let text = "bytes were damaged on the way between servers; ask again";
                        self.refused = Some(Refused::new(Status::Damaged, text));
                    }
                    self.state = State::Done;
                }
                Ok(n > 0)
            }
            State::Done | State::Failed(_) => Ok(false),
        }
    }

    fn answered(&mut self, header: &Header) -> Result<(), Refused> {
        let control = self.foe.as_ref().map_or(&[][..], |foe| &foe.control);
        if header.request != self.number {
            return Err(nonsense("an answer came out of turn"));
        }
        if !header.status.is_ok() {
            let refused = match decode_answer::<()>(header.status, control) {
                Err(error) => Refused::from(error),
                Ok(()) => nonsense("a refusal without a reason"),
            };
            if header.payload_bytes > 0 || refused.status == Status::UnknownView {
                // Of a start before this one, or not to be trusted: a fresh connection is right.
                return Err(Refused::new(Status::Busy, refused.refusal.text));
            }
            self.refused = Some(refused);
            self.state = State::Done;
            return Ok(());
        }
        let done = AccessAnswer::decode(control).map_err(nonsense)?;
        let expected = match self.is_write {
            true => 0,
            false => self.route.bytes,
        };
        if header.payload_bytes != expected {
            return Err(nonsense("another number of bytes came than was asked for"));
        }
        self.verifier = done.verifier;
        self.is_sealed = header.is_sealed();
        self.state = match self.is_write {
            true => State::Done,
            false => State::Payload(0),
        };
        Ok(())
    }

    /// Gives the connection back and says how it ended.
    pub(super) fn end(mut self, cluster: &Cluster) -> Result<ForwardOutcome, Refused> {
        if let State::Failed(refused) = self.state {
            return Err(refused);
        }
        let start = self.foe.as_ref().map(|foe| foe.incarnation);
        if let Some(foe) = self.foe.take() {
            cluster.foes.give(self.route.server, foe);
        }
        match self.refused {
            Some(refused) => Err(refused),
            None => Ok(ForwardOutcome {
                written: start
                    .filter(|_| self.is_write)
                    .map(|start| (start, self.verifier)),
            }),
        }
    }
}

fn nonsense(why: impl std::fmt::Display) -> Refused {
    Refused::new(Status::Unreachable, format!("its answer is none: {why}"))
}

/// Sends what the socket takes now.
fn sent_now(link: &wire::link::Link, bytes: &[u8]) -> Result<usize, Refused> {
    if bytes.is_empty() {
        return Ok(0);
    }
    loop {
        match send(
            link.as_fd(),
            bytes,
            SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
        ) {
            Ok(n) => return Ok(n),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(0),
            Err(e) => return Err(broken(&wire::link::LinkError::Io(e.into()))),
        }
    }
}

/// Receives what is there now.
fn received_now(link: &wire::link::Link, into: &mut [u8]) -> Result<usize, Refused> {
    if into.is_empty() {
        return Ok(0);
    }
    loop {
        match recv(link.as_fd(), &mut *into, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(broken(&wire::link::LinkError::Closed)),
            Ok((n, _)) => return Ok(n),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(0),
            Err(e) => return Err(broken(&wire::link::LinkError::Io(e.into()))),
        }
    }
}

/// Sends what can be sent before anything else is done.
pub(super) fn push_all(forwards: &mut [Forward<'_>]) {
    for forward in forwards.iter_mut() {
        forward.step();
    }
}

/// Runs all of them to their ends.
pub(super) fn drive(forwards: &mut [Forward<'_>]) {
    let time = Timespec {
        tv_sec: PATIENCE.as_secs() as i64,
        tv_nsec: 0,
    };
    loop {
        for forward in forwards.iter_mut().filter(|f| !f.is_over()) {
            forward.step();
        }
        let waiting = || forwards.iter().filter(|f| !f.is_over());
        let mut list: Vec<PollFd<'_>> = waiting()
            .filter_map(|forward| {
                let events = match forward.state {
                    State::Sending(_) => PollFlags::OUT | PollFlags::IN,
                    _ => PollFlags::IN,
                };
                let foe = forward.foe.as_ref()?;
                Some(PollFd::from_borrowed_fd(foe.link.as_fd(), events))
            })
            .collect();
        if list.is_empty() {
            return;
        }
        match poll(&mut list, Some(&time)) {
            Ok(0) => {
                drop(list);
                for forward in forwards.iter_mut().filter(|f| !f.is_over()) {
                    forward.foe = None;
                    let text = format!("no answer within {} s", PATIENCE.as_secs());
                    forward.state = State::Failed(Refused::new(Status::TimedOut, text));
                }
                return;
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => {
                drop(list);
                for forward in forwards.iter_mut().filter(|f| !f.is_over()) {
                    forward.foe = None;
                    forward.state = State::Failed(broken(&wire::link::LinkError::Io(e.into())));
                }
                return;
            }
        }
    }
}
