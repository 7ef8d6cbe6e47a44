//! The sockets of a member: who listens, who is connected, what has come, and every wait.
//!
//! Connections are made when there is something to say (`peer`), in the thread that says it. There is no thread here: a
//! thread that waits reads whatever comes for the member. If several wait, one of them polls and the others are woken by it.
//!
//! Invariants
//! - Messages of one member to another arrive in the order in which they were sent.
//! - While a member waits, messages for it are read and kept; parts of collective operations that are longer than
//!   [`EAGER_BYTES`] stay with their sender until they are asked for, so what is kept for a collective operation is bounded.
//! - A stranger that connects is closed, and disturbs nobody.
//! - A wait ends when the member that is waited for ends, and when any member has died: its end is seen here
//!   on connections, those that are waited for are called after a while if there are none, and a [`Watch`] says the rest.
//! - Nothing spins.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};

use super::frame::{self, Head, Kind, Operation};
use super::peer::{Address, Came, Inbound, Listener, Outbound, Stream};
use crate::collective::team::{Drive, Waits, absent, late};
use crate::error::{Error, Result};

/// Parts of collective operations up to this are read before they are asked for.
const EAGER_BYTES: u64 = 64 << 10;
/// And so many of a member.
const EAGER_PARTS: usize = 16;
/// After so long a wait is one for a member that may have died.
const UNEASY: Duration = Duration::from_millis(50);
/// How long what was sent by a member that ended may still be on its way.
const GRACE: Duration = Duration::from_millis(250);
/// Members that are called while any of them is waited for.
const MOST_CALLS: usize = 256;
/// Strangers that may have connected and said nothing.
const MOST_STRANGERS: usize = 256;
/// Frames of one connection that are read before others have their turn.
const FRAMES: usize = 64;
/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// How a member ended that said goodbye.
const LEFT: &str = "has left";
/// And one that did not.
const ENDED: &str = "has ended";

/// A message of another member.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The rank that sent it.
    pub from: usize,
    /// Its tag.
    pub tag: u64,
    /// What was sent.
    pub bytes: Vec<u8>,
}

/// Says when members die that this one is not connected to.
pub(super) trait Watch: Send + fmt::Debug {
    /// Asks, if nothing is asked; what becomes readable with the answer.
    fn ask(&mut self) -> Option<BorrowedFd<'_>>;
    /// Tells that the team is broken: because of what happened here, or because a rank is gone unless it has left. Returns why
    /// the team is broken, if it is.
    fn report(&mut self, failed: &str, gone: Option<usize>) -> Option<Error>;
    /// Takes the answer: why the team is broken, if it is.
    fn hear(&mut self) -> Option<Error>;
    /// Whether this is the process that the member was made in.
    fn is_ours(&self) -> bool;
}

/// What is polled.
#[derive(Clone, Copy, Debug)]
enum Token {
    Listener(usize),
    Watch,
    Inbound(usize),
    Outbound(usize),
    /// A thread of this member has given up.
    Wake,
}

impl Token {
    fn data(self) -> epoll::EventData {
        let (kind, index) = match self {
            Token::Listener(i) => (0, i),
            Token::Watch => (1, 0),
            Token::Inbound(i) => (2, i),
            Token::Outbound(i) => (3, i),
            Token::Wake => (4, 0),
        };
        epoll::EventData::new_u64((kind << 32) | index as u64)
    }

    fn of(data: u64) -> Token {
        let index = data as u32 as usize;
        match data >> 32 {
            0 => Token::Listener(index),
            1 => Token::Watch,
            2 => Token::Inbound(index),
            4 => Token::Wake,
            _ => Token::Outbound(index),
        }
    }
}

/// A part of a collective operation.
#[derive(Debug)]
struct Part {
    operation: u8,
    round: u64,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct State {
    listeners: Vec<Listener>,
    /// By number of the connection; ranks are found by [`State::of`].
    inbound: Vec<Option<Inbound>>,
    of: HashMap<usize, usize>,
    outbound: HashMap<usize, Outbound>,
    messages: VecDeque<Message>,
    parts: HashMap<usize, VecDeque<Part>>,
    /// The rank whose part is waited for, with memory for it.
    awaited: Option<(usize, Vec<u8>)>,
    /// Ranks from which nothing more comes.
    ended: HashMap<usize, &'static str>,
    /// Ranks that listen no more, since when.
    closed: HashMap<usize, Instant>,
    broken: Option<Error>,
    watch: Option<Box<dyn Watch>>,
    is_watching: bool,
    /// Whether a thread polls.
    is_polling: bool,
    /// Whether the descriptor says that there is something.
    is_raised: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Mesh {
    rank: usize,
    addresses: Vec<Address>,
    secret: [u8; 32],
    timeout: Option<Duration>,
    poll: OwnedFd,
    /// `poll` and `raised`: readable when there may be a message.
    descriptor: OwnedFd,
    raised: OwnedFd,
    /// Readable for good once the member has given up.
    woken: OwnedFd,
    state: Mutex<State>,
    changed: Condvar,
    /// The number of the next collective operation.
    round: Mutex<u64>,
}

pub(super) fn io_error(error: io::Error) -> Error {
    unreachable(format!("the sockets of the team: {error}"))
}

pub(super) fn unreachable(text: String) -> Error {
    Error::Refused {
        status: wire::Status::Unreachable,
        text,
        server: None,
    }
}

impl Mesh {
    /// The member of a rank, which others reach through the listeners.
    pub(super) fn new(
        rank: usize,
        addresses: Vec<Address>,
        secret: [u8; 32],
        listeners: Vec<Listener>,
        watch: Option<Box<dyn Watch>>,
        timeout: Option<Duration>,
    ) -> Result<Mesh> {
        let make = || {
            let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let descriptor = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let raised = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let woken = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let once = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
            epoll::add(&poll, &woken, Token::Wake.data(), once)?;
            for inner in [&poll, &raised] {
                let nothing = epoll::EventData::new_u64(0);
                epoll::add(&descriptor, inner, nothing, epoll::EventFlags::IN)?;
            }
            for (i, listener) in listeners.iter().enumerate() {
                let token = Token::Listener(i).data();
                epoll::add(&poll, listener, token, epoll::EventFlags::IN)?;
            }
            Ok((poll, descriptor, raised, woken))
        };
        let (poll, descriptor, raised, woken) = make().map_err(io_error)?;
        Ok(Mesh {
            rank,
            addresses,
            secret,
            timeout,
            poll,
            descriptor,
            raised,
            woken,
            state: Mutex::new(State {
                listeners,
                inbound: Vec::new(),
                of: HashMap::new(),
                outbound: HashMap::new(),
                messages: VecDeque::new(),
                parts: HashMap::new(),
                awaited: None,
                ended: HashMap::new(),
                closed: HashMap::new(),
                broken: None,
                watch,
                is_watching: false,
                is_polling: false,
                is_raised: false,
            }),
            changed: Condvar::new(),
            round: Mutex::new(0),
        })
    }

    /// Members of one process, by rank.
    pub(crate) fn local(count: usize, timeout: Option<Duration>) -> Result<Vec<Mesh>> {
        let secret = identity::random();
        let made: io::Result<Vec<_>> = (0..count).map(|_| Listener::here()).collect();
        let made = made.map_err(io_error)?;
        let addresses: Vec<_> = made
            .iter()
            .map(|(_, name)| Address::Here(name.clone()))
            .collect();
        let member = |(rank, (listener, _))| {
            Mesh::new(
                rank,
                addresses.clone(),
                secret,
                vec![listener],
                None,
                timeout,
            )
        };
        made.into_iter().enumerate().map(member).collect()
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    pub(crate) fn size(&self) -> usize {
        self.addresses.len()
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state.lock();
        match &state.watch {
            Some(watch) if !watch.is_ours() => Err(Error::Forked),
            _ => Ok(state),
        }
    }

    /// This member goes on no more: its waits end with the error, and the others hear of it when the member ends.
    pub(crate) fn give_up(&self, why: Error) {
        let mut state = self.state.lock();
        state.broken.get_or_insert(why);
        self.signal(&mut state);
        drop(state);
        // It is empty, so there is room.
        let _ = rustix::io::write(&self.woken, &1u64.to_ne_bytes());
    }

    fn check_rank(&self, name: &'static str, rank: usize) -> Result<()> {
        if rank < self.size() {
            return Ok(());
        }
        let text = format!(
            "{rank}, but the team has {}; ranks count from 0",
            self.size()
        );
        Err(Error::argument(name, text))
    }

    /// Sends a message. Returns when it is on its way, which for a long one is when the other member reads it.
    pub(crate) fn send(&self, to: usize, tag: u64, bytes: &[u8], drive: Drive<'_>) -> Result<()> {
        self.check_rank("to", to)?;
        if to == self.rank {
            let mut state = self.lock()?;
            state.messages.push_back(Message {
                from: to,
                tag,
                bytes: bytes.to_vec(),
            });
            self.signal(&mut state);
            return Ok(());
        }
        let mut waits = Waits::new(self.timeout, drive);
        self.put(
            to,
            Kind::Message,
            Operation::None,
            tag,
            &[bytes],
            &mut waits,
        )
    }

    /// Waits for a message of one of some ranks, with a tag, or with any.
    pub(crate) fn receive(
        &self,
        from: Range<usize>,
        tag: Option<u64>,
        drive: Drive<'_>,
    ) -> Result<Message> {
        self.check_rank("from", from.end.saturating_sub(1))?;
        let mut waits = Waits::new(self.timeout, drive);
        let mut state = self.lock()?;
        loop {
            if let Some(message) = self.take(&mut state, &from, tag) {
                return Ok(message);
            }
            if let Some(error) = self.why_not(&mut state, &from) {
                return Err(error);
            }
            self.wait(&mut state, &from, &mut waits)?;
        }
    }

    /// The next message that fits, if it has come. Waits for nobody.
    pub(crate) fn try_receive(
        &self,
        from: Range<usize>,
        tag: Option<u64>,
    ) -> Result<Option<Message>> {
        self.check_rank("from", from.end.saturating_sub(1))?;
        let mut state = self.lock()?;
        if let Some(message) = self.take(&mut state, &from, tag) {
            return Ok(Some(message));
        }
        // A thread that polls sees what has come, and would miss what is taken from under it.
        if !state.is_polling {
            self.watch(&mut state);
            let events = self.poll(Some(Duration::ZERO))?;
            self.handle(&mut state, &events);
        }
        if let Some(message) = self.take(&mut state, &from, tag) {
            return Ok(Some(message));
        }
        self.why_not(&mut state, &from).map_or(Ok(None), Err)
    }

    fn take(&self, state: &mut State, from: &Range<usize>, tag: Option<u64>) -> Option<Message> {
        let fits = |m: &Message| from.contains(&m.from) && tag.is_none_or(|tag| tag == m.tag);
        let at = state.messages.iter().position(fits)?;
        let message = state.messages.remove(at);
        self.signal(state);
        message
    }

    /// Makes the descriptor say whether there is something to take.
    fn signal(&self, state: &mut State) {
        let has_some = !state.messages.is_empty() || state.broken.is_some();
        if has_some != state.is_raised {
            state.is_raised = has_some;
            // It cannot be full, and is not empty where it is read.
            let _ = match has_some {
                true => rustix::io::write(&self.raised, &1u64.to_ne_bytes()).map(drop),
                false => rustix::io::read(&self.raised, &mut [0; 8]).map(drop),
            };
        }
        self.changed.notify_all();
    }

    /// Why members are not to be waited for: the team is broken, or none of them is there.
    fn why_not(&self, state: &mut State, whom: &Range<usize>) -> Option<Error> {
        let is_due = |(rank, since): (&usize, &Instant)| {
            let is_due = since.elapsed() >= GRACE && !state.of.contains_key(rank);
            is_due.then_some(*rank)
        };
        let due: Vec<usize> = state.closed.iter().filter_map(is_due).collect();
        for rank in due {
            state.closed.remove(&rank);
            self.lost(state, rank, ENDED);
            state.ended.entry(rank).or_insert(ENDED);
        }
        if let Some(broken) = &state.broken {
            return Some(broken.clone());
        }
        let mut others = whom.clone().filter(|&rank| rank != self.rank);
        let first = others.next()?;
        let how = state.ended.get(&first)?;
        others
            .all(|rank| state.ended.contains_key(&rank))
            .then(|| absent(first, how))
    }

    /// What the end of a member means: the team is broken, unless the member is known to have left.
    fn lost(&self, state: &mut State, rank: usize, how: &'static str) -> Error {
        let gone = absent(rank, state.ended.get(&rank).unwrap_or(&how));
        let watch = state.watch.as_mut();
        match watch.and_then(|watch| watch.report(&gone.to_string(), Some(rank))) {
            Some(error) => state.broken.get_or_insert(error).clone(),
            None => gone,
        }
    }

    /// Takes part in a collective operation: sends `parts` as one, and waits for the part of another.
    pub(super) fn swap(
        &self,
        (operation, round): (Operation, u64),
        to: Option<(usize, &[&[u8]])>,
        from: Option<usize>,
        memory: Vec<u8>,
        waits: &mut Waits<'_>,
    ) -> Result<Vec<u8>> {
        if let Some(from) = from {
            self.expect(from, memory)?;
        }
        if let Some((to, parts)) = to {
            self.put(to, Kind::Part, operation, round, parts, waits)?;
        }
        let Some(from) = from else {
            return Ok(Vec::new());
        };
        let mut state = self.lock()?;
        loop {
            if let Some(part) = state.parts.get_mut(&from).and_then(VecDeque::pop_front) {
                state.awaited = None;
                if (part.operation, part.round) != (operation as u8, round) {
                    let text = "members are in different collective operations";
                    return Err(Error::argument("team", text));
                }
                return Ok(part.bytes);
            }
            if let Some(error) = self.why_not(&mut state, &(from..from + 1)) {
                return Err(error);
            }
            self.wait(&mut state, &(from..from + 1), waits)?;
        }
    }

    /// Lets the part of a rank come, however long it is.
    fn expect(&self, from: usize, mut memory: Vec<u8>) -> Result<()> {
        let mut state = self.lock()?;
        memory.clear();
        let at = state.of.get(&from).copied();
        if let Some(at) = at
            && let Some(Some(inbound)) = state.inbound.get_mut(at)
            && inbound.is_parked
        {
            inbound.is_parked = false;
            inbound.bytes = memory;
            let flags = epoll::EventFlags::IN;
            let added = epoll::add(
                &self.poll,
                &inbound.stream,
                Token::Inbound(at).data(),
                flags,
            );
            added.map_err(|e| io_error(e.into()))?;
            memory = Vec::new();
        }
        state.awaited = Some((from, memory));
        Ok(())
    }

    /// Calls a function that takes part in collective operations, alone among the threads of this member. What fails there
    /// is over for all members.
    pub(super) fn together<T>(
        &self,
        drive: Drive<'_>,
        run: impl FnOnce(&mut u64, &mut Waits<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut waits = Waits::new(self.timeout, drive);
        let mut round = waits.turn(&self.round);
        let done = run(&mut round, &mut waits);
        if let Err(error) = &done
            && *error != Error::Forked
        {
            let mut state = self.state.lock();
            if state.broken.is_none() {
                state.broken = Some(error.clone());
                if let Some(watch) = &mut state.watch {
                    watch.report(&error.to_string(), None);
                }
                self.signal(&mut state);
            }
        }
        done
    }

    /// Sends a frame, whole.
    fn put(
        &self,
        to: usize,
        kind: Kind,
        operation: Operation,
        tag: u64,
        parts: &[&[u8]],
        waits: &mut Waits<'_>,
    ) -> Result<()> {
        let mut state = self.lock()?;
        // Another thread may be in the middle of one.
        while state.outbound.get(&to).is_some_and(|out| out.is_busy) {
            self.wait(&mut state, &(to..to + 1), waits)?;
        }
        if let Some(broken) = &state.broken {
            return Err(broken.clone());
        }
        if !self.call(&mut state, to) {
            return Err(self.lost(&mut state, to, ENDED));
        }
        let out = state.outbound.get_mut(&to).expect("it was called");
        out.is_busy = true;
        let head = Head::new(kind, operation, tag, parts, &out.stream).encode();
        let mut left: Vec<&[u8]> = vec![&head];
        left.extend(parts.iter().filter(|part| !part.is_empty()));
        let sent = self.pour(&mut state, to, &mut left, waits);
        match (&sent, state.outbound.get_mut(&to)) {
            (Ok(()), Some(out)) => out.is_busy = false,
            // Half a frame is on its way.
            _ => drop(state.outbound.remove(&to)),
        }
        self.changed.notify_all();
        sent
    }

    fn pour(
        &self,
        state: &mut MutexGuard<'_, State>,
        to: usize,
        left: &mut Vec<&[u8]>,
        waits: &mut Waits<'_>,
    ) -> Result<()> {
        while !left.is_empty() {
            let Some(out) = state.outbound.get(&to) else {
                return Err(self.lost(state, to, ENDED));
            };
            let Ok(mut sent) = out.stream.send(&left[..left.len().min(16)]) else {
                self.hung_up(state, to);
                return Err(self.lost(state, to, ENDED));
            };
            if sent == 0 {
                let flags = epoll::EventFlags::OUT | epoll::EventFlags::RDHUP;
                let armed =
                    epoll::modify(&self.poll, &out.stream, Token::Outbound(to).data(), flags);
                armed.map_err(|e| io_error(e.into()))?;
                if let Some(broken) = &state.broken {
                    return Err(broken.clone());
                }
                self.wait(state, &(to..to + 1), waits)?;
                if let Some(broken) = &state.broken {
                    return Err(broken.clone());
                }
            }
            while let Some(first) = left.first_mut()
                && sent > 0
            {
                let n = sent.min(first.len());
                sent -= n;
                *first = &first[n..];
                if first.is_empty() {
                    left.remove(0);
                }
            }
        }
        Ok(())
    }

    /// Makes sure that there is a connection to a member; false if the member listens no more.
    fn call(&self, state: &mut State, to: usize) -> bool {
        if state.outbound.contains_key(&to) {
            return true;
        }
        let called = (|| {
            let stream = Stream::connect(&self.addresses[to], CONNECT)?;
            // New, so there is room.
            let hello = frame::hello(&self.secret, self.rank, to);
            if stream.send(&[&hello])? < hello.len() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let flags = epoll::EventFlags::RDHUP;
            epoll::add(&self.poll, &stream, Token::Outbound(to).data(), flags)?;
            Ok::<_, io::Error>(stream)
        })();
        match called {
            Ok(stream) => {
                let is_busy = false;
                state.outbound.insert(to, Outbound { stream, is_busy });
            }
            Err(_) => {
                state.closed.entry(to).or_insert_with(Instant::now);
            }
        }
        state.outbound.contains_key(&to)
    }

    /// The member at the other end reads no more.
    fn hung_up(&self, state: &mut State, rank: usize) {
        state.outbound.remove(&rank);
        state.closed.entry(rank).or_insert_with(Instant::now);
    }

    /// Waits until something has happened, for some ranks; an error when the time is over.
    fn wait(
        &self,
        state: &mut MutexGuard<'_, State>,
        whom: &Range<usize>,
        waits: &mut Waits<'_>,
    ) -> Result<()> {
        let Some(mut pause) = waits.pause() else {
            let whom = whom.clone().find(|&rank| rank != self.rank);
            return Err(late(
                whom.unwrap_or(self.rank),
                self.timeout.unwrap_or_default(),
            ));
        };
        if !state.is_watching {
            pause = pause.min(UNEASY);
        }
        if !state.closed.is_empty() {
            pause = pause.min(GRACE);
        }
        let is_late = match state.is_polling {
            true => self.changed.wait_for(state, pause).timed_out(),
            false => {
                state.is_polling = true;
                let events = MutexGuard::unlocked(state, || self.poll(Some(pause)));
                state.is_polling = false;
                let events = events.inspect_err(|_| {
                    self.changed.notify_all();
                })?;
                self.handle(state, &events);
                self.changed.notify_all();
                events.is_empty()
            }
        };
        if is_late {
            MutexGuard::unlocked(state, || waits.drive());
            if waits.has_waited(UNEASY) {
                self.look(state, whom);
            }
        }
        Ok(())
    }

    /// Makes sure that the death of those who are waited for is seen.
    fn look(&self, state: &mut State, whom: &Range<usize>) {
        self.watch(state);
        for rank in whom.clone().take(MOST_CALLS) {
            let is_known = state.of.contains_key(&rank)
                || state.closed.contains_key(&rank)
                || state.ended.contains_key(&rank);
            if rank != self.rank && !is_known {
                self.call(state, rank);
            }
        }
    }

    fn watch(&self, state: &mut State) {
        let State {
            watch, is_watching, ..
        } = state;
        if let Some(watch) = watch
            && !*is_watching
        {
            let asked = watch.ask();
            *is_watching = asked.is_some_and(|fd| {
                let flags = epoll::EventFlags::IN;
                match epoll::add(&self.poll, fd, Token::Watch.data(), flags) {
                    Err(rustix::io::Errno::EXIST) => true,
                    added => added.is_ok(),
                }
            });
        }
    }

    fn poll(&self, pause: Option<Duration>) -> Result<Vec<(Token, epoll::EventFlags)>> {
        let mut events = Vec::with_capacity(64);
        let pause = pause.and_then(|pause| Timespec::try_from(pause).ok());
        let buffer = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.poll, buffer, pause.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(io_error(e.into())),
        }
        let found = events.iter().map(|event: &epoll::Event| {
            let (data, flags) = (event.data, event.flags);
            (Token::of(data.u64()), flags)
        });
        Ok(found.collect())
    }

    fn handle(&self, state: &mut State, events: &[(Token, epoll::EventFlags)]) {
        for &(token, flags) in events {
            match token {
                Token::Listener(i) => self.accept(state, i),
                Token::Watch => {
                    state.is_watching = false;
                    let heard = state.watch.as_mut().and_then(|watch| watch.hear());
                    if let Some(error) = heard {
                        state.broken.get_or_insert(error);
                    } else {
                        self.watch(state);
                    }
                }
                Token::Inbound(i) => self.read(state, i),
                // Who waits looks why.
                Token::Wake => {}
                Token::Outbound(rank) => {
                    let over =
                        epoll::EventFlags::HUP | epoll::EventFlags::RDHUP | epoll::EventFlags::ERR;
                    if flags.intersects(over) {
                        self.hung_up(state, rank);
                    } else if let Some(out) = state.outbound.get(&rank) {
                        let (token, flags) = (token.data(), epoll::EventFlags::RDHUP);
                        // Who waits for room is woken, and asks again if there is none.
                        let _ = epoll::modify(&self.poll, &out.stream, token, flags);
                    }
                }
            }
        }
        self.signal(state);
    }

    fn accept(&self, state: &mut State, listener: usize) {
        while let Ok(Some(stream)) = state.listeners[listener].accept() {
            let strangers = state.inbound.iter().enumerate();
            let mut strangers = strangers
                .filter(|(_, c)| c.as_ref().is_some_and(|c| c.from.is_none()))
                .map(|(i, _)| i);
            if let (Some(first), true) = (strangers.next(), strangers.count() >= MOST_STRANGERS) {
                state.inbound[first] = None;
            }
            let free = state.inbound.iter().position(Option::is_none);
            let at = free.unwrap_or(state.inbound.len());
            let flags = epoll::EventFlags::IN;
            if epoll::add(&self.poll, &stream, Token::Inbound(at).data(), flags).is_err() {
                continue;
            }
            if at == state.inbound.len() {
                state.inbound.push(None);
            }
            state.inbound[at] = Some(Inbound::new(stream));
            self.read(state, at);
        }
    }

    /// Reads what a connection has.
    fn read(&self, state: &mut State, at: usize) {
        for _ in 0..FRAMES {
            let Some(inbound) = state.inbound.get_mut(at).and_then(Option::as_mut) else {
                return;
            };
            if inbound.is_parked {
                return;
            }
            let came = match inbound.read() {
                Ok(Some(came)) => came,
                Ok(None) => return,
                Err(error) => {
                    let how = match error.kind() {
                        io::ErrorKind::Other => "has sent what cannot be",
                        _ => ENDED,
                    };
                    return self.ended(state, at, how);
                }
            };
            match came {
                Came::Hello(said) => {
                    let from = frame::caller(&self.secret, &said, self.rank, self.size());
                    match from.filter(|from| !state.of.contains_key(from)) {
                        Some(from) => {
                            inbound.from = Some(from);
                            state.of.insert(from, at);
                        }
                        None => return self.ended(state, at, ""),
                    }
                }
                Came::Head(head) => {
                    let from = inbound.from;
                    let held = from.and_then(|from| state.parts.get(&from));
                    let held = held.map_or(0, VecDeque::len);
                    let awaited = state
                        .awaited
                        .as_mut()
                        .filter(|(rank, _)| Some(*rank) == from);
                    if let (Kind::Part, Some((_, memory))) = (head.kind, awaited) {
                        inbound.bytes = std::mem::take(memory);
                    } else if head.kind == Kind::Part
                        && (head.len > EAGER_BYTES || held >= EAGER_PARTS)
                    {
                        inbound.is_parked = true;
                        // It is asked for later.
                        let _ = epoll::delete(&self.poll, &inbound.stream);
                    }
                }
                Came::Frame(head, bytes) => {
                    let from = inbound.from.expect("it said hello");
                    match head.kind {
                        Kind::Message => state.messages.push_back(Message {
                            from,
                            tag: head.tag,
                            bytes,
                        }),
                        Kind::Part => state.parts.entry(from).or_default().push_back(Part {
                            operation: head.operation,
                            round: head.tag,
                            bytes,
                        }),
                        Kind::Goodbye => {
                            let why = String::from_utf8_lossy(&bytes);
                            if !why.is_empty() && state.broken.is_none() {
                                state.broken = Some(unreachable(why.into_owned()));
                            }
                            return self.ended(state, at, LEFT);
                        }
                    }
                }
            }
        }
    }

    /// Nothing more comes on a connection.
    fn ended(&self, state: &mut State, at: usize, how: &'static str) {
        let Some(inbound) = state.inbound[at].take() else {
            return;
        };
        if let Some(from) = inbound.from {
            state.of.remove(&from);
            if how != LEFT {
                self.lost(state, from, how);
            }
            state.ended.insert(from, how);
        }
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if state.watch.as_ref().is_some_and(|watch| !watch.is_ours()) {
            return;
        }
        let why = state
            .broken
            .as_ref()
            .map(Error::to_string)
            .unwrap_or_default();
        let why = &why.as_bytes()[..why.len().min(frame::REASON_BYTES)];
        for out in state.outbound.values().filter(|out| !out.is_busy) {
            let head = Head::new(Kind::Goodbye, Operation::None, 0, &[why], &out.stream);
            // Where there is no room the end of the connection has to do.
            let _ = out.stream.send(&[&head.encode(), why]);
        }
        // The manager hears that it has left before others see connections end and ask whether it has died.
        drop(state.watch.take());
    }
}
