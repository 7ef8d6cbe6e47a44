//! A rank's side of a collective access that servers direct.
//!
//! ```text
//!  rank 0          Lead to every server with bytes of the access    other ranks   Follow, where they have bytes
//!  read            take packets from any server as they come, put them where they belong
//!  write           give each server the packets it wants, when it wants them
//! ```
//!
//! All servers are driven at once and none is waited for alone. Which bytes a packet has, the server says;
//! both sides count the same, and a packet that does not fit is no answer.
//!
//! Invariants
//! - A server that fails or says no ends only its own part here; the others run to their end, since other
//!   ranks take part there. What became of all is told at the end.
//! - Every wait has a limit.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Instant;

use falls::Periodic;
use kernels::{Share, SharedBytes};
use layout::{FileSpan, View};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wire::message::directed::{
    DirectedAnswer, Follow, IN_VIEW, Lead, MORE, Packet, Portion, RankRange, WANT,
};
use wire::message::{self, Bytes, Refusal, Request};
use wire::{ClientId, Place, ServerId, Status};

use crate::access::memory::{Direction, Memory, Run};
use crate::access::phases::{Phases, ServerPhases};
use crate::access::plan::Plan;
use crate::collective::strategy::Collective;
use crate::collective::team::Team;
use crate::collective::{JointAccess, JointOutcome};
use crate::error::{Error, Result, Trouble};
use crate::file::File;
use crate::file::handle::Handle;
use crate::session::lane::Lane;
use crate::transport::pipe::{Cursor, Piece, Pipe, Wait};

/// Longest packet that is believed.
const PACKET_BYTES: u64 = 64 << 20;
/// Between two looks at the time.
const LOOK: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// A collective access as all ranks know it.
pub(crate) struct DirectedAccess<'a> {
    pub(crate) leader: ClientId,
    pub(crate) number: u64,
    pub(crate) direction: Direction,
    pub(crate) by_record: bool,
    pub(crate) block_bytes: u64,
    pub(crate) blocks: u64,
    pub(crate) epoch: u64,
    pub(crate) ranks: &'a [RankRange],
    pub(crate) views: &'a [View],
    /// From the first to the last byte of all ranks.
    pub(crate) hull: Range<u64>,
}

/// What packets are taken from or put into.
pub(crate) trait Ends {
    /// Puts the bytes of a file range that a share has where they belong.
    fn put(&mut self, share: &Share, file: Range<u64>, packed: &[u8]) -> bool;

    /// Puts bytes that are in the order of the view, from one of its bytes on.
    fn put_run(&mut self, _from: u64, _bytes: &[u8]) -> bool {
        false
    }

    /// Packs them.
    fn get(&mut self, share: &Share, file: Range<u64>, packed: &mut [u8]) -> bool;
}

/// The user's memory, from a view byte on.
struct Whole<'a> {
    run: Run<'a>,
    base: u64,
}

impl Ends for Whole<'_> {
    fn put(&mut self, share: &Share, file: Range<u64>, packed: &[u8]) -> bool {
        match &mut self.run {
            Run::Into(memory) => share
                .scatter_left(file, packed, memory.reborrow(), self.base)
                .is_ok(),
            Run::From(_) => false,
        }
    }

    fn put_run(&mut self, from: u64, bytes: &[u8]) -> bool {
        let Run::Into(memory) = &mut self.run else {
            return false;
        };
        let Some(at) = from
            .checked_sub(self.base)
            .and_then(|at| usize::try_from(at).ok())
        else {
            return false;
        };
        let end = at.saturating_add(bytes.len());
        let target = memory.reborrow().range(at..end);
        target
            .map(|target| target.copy_from(bytes.into()))
            .is_some()
    }

    fn get(&mut self, share: &Share, file: Range<u64>, packed: &mut [u8]) -> bool {
        match &self.run {
            Run::From(memory) => share.gather_left(file, *memory, self.base, packed).is_ok(),
            Run::Into(_) => false,
        }
    }
}

/// How an operation ended at a rank.
pub(crate) struct DirectedEnd {
    pub(crate) servers: Vec<ServerPhases>,
    /// Packets and their questions.
    pub(crate) packets: u64,
    pub(crate) failures: Vec<(u64, Trouble)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Payload,
    Sending,
    Finished,
}

/// What comes from and goes to one server.
struct Stream {
    place: Place,
    /// What this rank sees of the file.
    view: Periodic,
    pipe: usize,
    request: u64,
    state: State,
    portion: Portion,
    packed: Vec<u8>,
    bytes: usize,
    filled: usize,
    cursor: Cursor,
    sent: u64,
    /// Of what the server has taken.
    verifier: u64,
    /// Bytes of this rank that the server keeps, whichever server sends them.
    expected: u64,
    failure: Option<Trouble>,
    phases: ServerPhases,
}

fn nonsense(text: &str) -> Trouble {
    Trouble::Nonsense(text.into())
}

impl Stream {
    /// Does what can be done without waiting; whether anything was.
    fn step(
        &mut self,
        pipe: &mut Pipe,
        plan: &Plan,
        ends: &mut dyn Ends,
    ) -> std::result::Result<bool, Trouble> {
        match self.state {
            State::Finished => Ok(false),
            State::Head => match pipe.frame(Wait::No)? {
                None => Ok(false),
                Some(header) => {
                    self.head(pipe, header, plan, ends)?;
                    Ok(true)
                }
            },
            State::Payload => {
                let into = &mut self.packed[self.filled..self.bytes];
                let n = pipe.payload(into.into(), Wait::No)?;
                self.filled += n;
                if self.filled < self.bytes {
                    return Ok(n > 0);
                }
                match pipe.compare_seal(Wait::No) {
                    Ok(false) => return Ok(n > 0),
                    Ok(true) => self.put(plan, ends)?,
                    // Others are on their way behind it: they are received, so that the connection stays in step.
                    Err(Trouble::Refused(status, refusal)) => {
                        self.failure = Some(Trouble::Refused(status, refusal));
                    }
                    Err(trouble) => return Err(trouble),
                }
                self.state = State::Head;
                Ok(true)
            }
            State::Sending => {
                let piece = Piece {
                    is_direct: false,
                    start: 0,
                    len: self.bytes,
                };
                let before = self.cursor;
                let nothing = SharedBytes::from_slice(&[]);
                let is_sent =
                    pipe.send(&mut self.cursor, &[piece], nothing, &self.packed, Wait::No)?;
                if is_sent {
                    self.state = State::Head;
                }
                let moved = self.cursor.byte != before.byte || self.cursor.place != before.place;
                Ok(is_sent || moved)
            }
        }
    }

    fn head(
        &mut self,
        pipe: &mut Pipe,
        header: wire::frame::Header,
        plan: &Plan,
        ends: &mut dyn Ends,
    ) -> std::result::Result<(), Trouble> {
        let kinds = [Lead::KIND, Follow::KIND, Packet::KIND];
        if !kinds.contains(&header.kind) || header.request != self.request {
            return Err(nonsense(
                "an answer came out of turn in a collective access",
            ));
        }
        if !header.status.is_ok() {
            let refusal: Refusal = message::decode(pipe.control())?;
            self.failure = Some(Trouble::Refused(header.status, refusal));
            self.state = State::Finished;
            return Ok(());
        }
        if header.flags & (MORE | WANT) == 0 {
            let done: DirectedAnswer = message::decode(pipe.control())?;
            self.phases.served_ns = done.served_ns;
            self.verifier = done.verifier;
            self.state = State::Finished;
            return Ok(());
        }
        self.portion = message::decode(pipe.control())?;
        let mut sum = 0u64;
        for part in &self.portion.parts {
            let counted = match part.subfile {
                _ if part.start >= part.end => None,
                IN_VIEW => Some(self.view.rank(part.end) - self.view.rank(part.start)),
                subfile => (plan.share_at(subfile)).map(|share| share.count(part.start..part.end)),
            };
            if counted != Some(part.bytes) {
                return Err(nonsense(
                    "a server counts other bytes of a rank than the rank",
                ));
            }
            sum = sum.saturating_add(part.bytes);
        }
        if sum == 0 || sum > PACKET_BYTES {
            return Err(nonsense("a packet has no bytes, or too many"));
        }
        self.bytes = sum as usize;
        if self.packed.len() < self.bytes {
            self.packed.resize(self.bytes, 0);
        }
        self.phases.bytes += sum;
        self.phases.messages += 1;
        if header.flags & MORE != 0 {
            if header.payload_bytes != sum {
                return Err(nonsense("a packet is not as long as it says"));
            }
            self.filled = 0;
            self.state = State::Payload;
            return Ok(());
        }
        self.get(plan, ends)?;
        let packet = Packet { number: self.sent };
        self.sent += 1;
        pipe.prepare(Packet::KIND, 0, self.request, sum, |out| {
            message::encode(&packet, out)
        });
        self.cursor = Cursor::default();
        self.state = State::Sending;
        Ok(())
    }

    fn put(&mut self, plan: &Plan, ends: &mut dyn Ends) -> std::result::Result<(), Trouble> {
        let mut at = 0;
        for part in &self.portion.parts {
            let end = at + part.bytes as usize;
            let packed = &self.packed[at..end];
            let is_put = match part.subfile {
                IN_VIEW => ends.put_run(self.view.rank(part.start), packed),
                subfile => {
                    let share = plan.share_at(subfile).expect("looked at before");
                    ends.put(share, part.start..part.end, packed)
                }
            };
            if !is_put {
                return Err(nonsense("a packet has bytes that were not asked for"));
            }
            at = end;
        }
        Ok(())
    }

    fn get(&mut self, plan: &Plan, ends: &mut dyn Ends) -> std::result::Result<(), Trouble> {
        let mut at = 0;
        for part in &self.portion.parts {
            let Some(share) = plan.share_at(part.subfile) else {
                return Err(nonsense("bytes are wanted of no subfile"));
            };
            let end = at + part.bytes as usize;
            if !ends.get(share, part.start..part.end, &mut self.packed[at..end]) {
                return Err(nonsense("bytes are wanted that are not written"));
            }
            at = end;
        }
        Ok(())
    }
}

impl Handle {
    /// Takes part in a collective access that servers direct. The plan is that of this rank's view.
    pub(crate) fn directed(
        &self,
        lane: &mut Lane,
        operation: &DirectedAccess<'_>,
        rank: usize,
        plan: &Plan,
        ends: &mut dyn Ends,
    ) -> Result<DirectedEnd> {
        let mut streams = self.streams(operation, rank, plan)?;
        let mut message = Vec::new();
        for stream in &mut streams {
            // Connections first: the list of them does not change from here on.
            if let Err(trouble) = self.ready(lane, &self.views.whole, stream.place) {
                stream.failure = Some(trouble);
                stream.state = State::Finished;
            }
        }
        for stream in &mut streams {
            if stream.state == State::Finished {
                continue;
            }
            let server = stream.place.server;
            let Some(index) = lane.find(server) else {
                stream.failure = Some(Trouble::Broken("the connection failed".into()));
                stream.state = State::Finished;
                continue;
            };
            stream.pipe = index;
            stream.request = self.session.number();
            let pipe = lane.pipe(index);
            self.say(operation, rank, plan, &mut message);
            let kind = if rank == 0 { Lead::KIND } else { Follow::KIND };
            pipe.prepare(kind, 0, stream.request, 0, |out| {
                out.clear();
                out.extend_from_slice(&message);
            });
            let nothing = SharedBytes::from_slice(&[]);
            if let Err(trouble) = pipe.send(&mut Cursor::default(), &[], nothing, &[], Wait::Yes) {
                stream.failure = Some(trouble);
                stream.state = State::Finished;
            }
        }
        self.session.count_data(streams.len() as u64);
        self.drive_directed(lane, &mut streams, plan, ends);
        let mut ended = DirectedEnd {
            servers: Vec::with_capacity(streams.len()),
            packets: 0,
            failures: Vec::new(),
        };
        let expected: u64 = streams.iter().map(|stream| stream.expected).sum();
        let received: u64 = streams.iter().map(|stream| stream.phases.bytes).sum();
        let is_good = streams.iter().all(|stream| stream.failure.is_none());
        if let Some(stream) = streams.first_mut()
            && operation.direction == Direction::Read
            && is_good
            && received < expected
        {
            // Servers may send for each other, so it is nobody's in particular.
            stream.failure = Some(nonsense(
                "servers have sent fewer bytes than were asked for",
            ));
        }
        for stream in streams {
            let server = stream.place.server;
            ended.packets += stream.phases.messages;
            ended.servers.push(stream.phases);
            self.session.count_data(stream.sent);
            match stream.failure {
                Some(trouble) => {
                    if !matches!(trouble, Trouble::Refused(..)) {
                        lane.drop_pipe(server);
                    }
                    ended.failures.push((server, trouble));
                }
                None if operation.direction.is_write() => {
                    if let Some(index) = lane.find(server) {
                        let start = lane.pipe(index).welcome.incarnation;
                        self.unsynced.wrote(server, start, stream.verifier);
                    }
                }
                None => {}
            }
        }
        Ok(ended)
    }

    /// The servers that this rank has to do with.
    fn streams(
        &self,
        operation: &DirectedAccess<'_>,
        rank: usize,
        plan: &Plan,
    ) -> Result<Vec<Stream>> {
        let mine = &operation.ranks[rank];
        let mut here = vec![0u64; plan.places.len()];
        let mut nobody = 0;
        if mine.lo < mine.hi {
            let bytes = operation.views[mine.view as usize].bytes();
            let (first, last) = (bytes.select(mine.lo), bytes.select(mine.hi - 1));
            let (Some(first), Some(last)) = (first, last) else {
                return Err(Error::argument(
                    "offset",
                    "is beyond the largest offset of a file",
                ));
            };
            plan.parts(
                FileSpan::from_raw(first..last + 1),
                &mut 0,
                |slot, part| match slot {
                    Some(slot) => here[slot] += part.bytes,
                    None => nobody += part.bytes,
                },
            );
        }
        let mut takes_part: Vec<bool> = here.iter().map(|bytes| *bytes > 0).collect();
        if rank == 0 {
            let whole = self.views.whole.plan(&plan.state);
            whole.parts(
                FileSpan::from_raw(operation.hull.clone()),
                &mut 0,
                |slot, _| {
                    if let Some(slot) = slot {
                        takes_part[slot] = true;
                    }
                },
            );
        }
        if nobody > 0 {
            return Err(Error::Refused {
                status: Status::Lost,
                text: format!("{nobody} bytes of the access are at no server"),
                server: None,
            });
        }
        let streams = takes_part.iter().enumerate().filter(|(_, takes)| **takes);
        let view = operation.views[mine.view as usize].bytes();
        let streams = streams.map(|(slot, _)| Stream {
            expected: here[slot],
            place: plan.places[slot],
            view: view.clone(),
            pipe: 0,
            request: 0,
            state: State::Head,
            portion: Portion::default(),
            packed: Vec::new(),
            bytes: 0,
            filled: 0,
            cursor: Cursor::default(),
            sent: 0,
            verifier: 0,
            failure: None,
            phases: ServerPhases {
                server: plan.places[slot].server,
                ..ServerPhases::default()
            },
        });
        Ok(streams.collect())
    }

    fn say(&self, operation: &DirectedAccess<'_>, rank: usize, plan: &Plan, out: &mut Vec<u8>) {
        let view = self.views.whole.number;
        match rank {
            0 => message::encode(
                &Lead {
                    view,
                    operation: operation.number,
                    writes: operation.direction.is_write(),
                    by_record: operation.by_record,
                    block_bytes: operation.block_bytes,
                    blocks: operation.blocks,
                    epoch: operation.epoch,
                    version: Bytes(plan.version.clone()),
                    ranks: operation.ranks.to_vec(),
                    views: operation.views.to_vec(),
                },
                out,
            ),
            _ => message::encode(
                &Follow {
                    view,
                    leader: operation.leader,
                    operation: operation.number,
                    rank: rank as u64,
                },
                out,
            ),
        }
    }

    fn drive_directed(
        &self,
        lane: &mut Lane,
        streams: &mut [Stream],
        plan: &Plan,
        ends: &mut dyn Ends,
    ) {
        let patience = self.session.options.answer_timeout;
        let mut moved_at = Instant::now();
        loop {
            let mut has_moved = false;
            for stream in streams.iter_mut() {
                while stream.state != State::Finished {
                    let pipe = lane.pipe(stream.pipe);
                    match stream.step(pipe, plan, ends) {
                        Ok(true) => has_moved = true,
                        Ok(false) => break,
                        Err(trouble) => {
                            stream.failure = Some(trouble);
                            stream.state = State::Finished;
                        }
                    }
                }
            }
            let mut waiting = streams.iter().filter(|s| s.state != State::Finished);
            if waiting.next().is_none() {
                return;
            }
            if has_moved {
                moved_at = Instant::now();
                continue;
            }
            if moved_at.elapsed() > patience {
                for stream in streams.iter_mut().filter(|s| s.state != State::Finished) {
                    stream.failure = Some(Trouble::Late);
                    stream.state = State::Finished;
                }
                return;
            }
            let waiting = streams.iter().filter(|s| s.state != State::Finished);
            let mut list: Vec<PollFd<'_>> = waiting
                .map(|stream| {
                    let flags = match stream.state {
                        State::Sending => PollFlags::OUT,
                        _ => PollFlags::IN,
                    };
                    PollFd::from_borrowed_fd(lane.servers[stream.pipe].1.fd(), flags)
                })
                .collect();
            // Whatever it says, everybody is looked at again.
            let _ = poll(&mut list, Some(&LOOK));
        }
    }

    /// The error of a rank whose operation failed somewhere.
    pub(crate) fn directed_error(&self, failures: Vec<(u64, Trouble)>) -> Option<Error> {
        let (server, trouble) = failures.into_iter().next()?;
        let address = self.session.address(server);
        Some(trouble.into_error(Some(ServerId(server)), &address))
    }
}

/// What a rank says at the end.
const DONE: u8 = 0;
const GO_ALONE: u8 = 1;

impl File {
    /// Moves the bytes of this rank as servers direct it.
    pub(crate) fn access_directed(
        &self,
        team: &Team,
        grouped: &JointAccess,
        memory: &mut Memory<'_>,
    ) -> Result<JointOutcome> {
        let started = Instant::now();
        let (requested, direction) = (memory.len(), memory.direction());
        let mine = &grouped.wanted[team.rank()];
        let mut part = memory.first(mine.len);
        let mut packed = match part.is_run() {
            true => Vec::new(),
            false => vec![0; mine.len as usize],
        };
        part.pack(0, packed[..].as_mut().into());
        let run = match (part.run(), direction) {
            (Some(run), _) => run,
            (None, Direction::Write) => packed[..].as_ref().into(),
            (None, Direction::Read) => packed[..].as_mut().into(),
        };
        let base = mine.offset;
        let ended = self.run_directed(team, grouped, direction, &mut Whole { run, base });
        let done = self.end_directed(team, grouped, ended, requested, mine.len, started)?;
        if !packed.is_empty() && matches!(done, JointOutcome::Moved(_)) {
            part.unpack(0, packed[..].into());
        }
        Ok(done)
    }

    fn run_directed(
        &self,
        team: &Team,
        grouped: &JointAccess,
        direction: Direction,
        ends: &mut dyn Ends,
    ) -> Result<DirectedEnd> {
        let wanted = grouped.wanted.iter().enumerate();
        let ranks: Vec<RankRange> = wanted
            .map(|(number, wanted)| RankRange {
                client: wanted.client,
                view: number as u32,
                lo: wanted.offset,
                hi: wanted.offset + wanted.len,
            })
            .collect();
        let views: Vec<View> = match team.rank() {
            0 => grouped
                .agreed
                .ranks
                .iter()
                .map(|r| r.view.clone())
                .collect(),
            rank => {
                // Only its own is looked at.
                let mut views = vec![View::whole_file(); grouped.agreed.ranks.len()];
                views[rank] = grouped.agreed.ranks[rank].view.clone();
                views
            }
        };
        let operation = DirectedAccess {
            leader: grouped.wanted[0].client,
            number: grouped.wanted[0].number << 24,
            direction,
            by_record: grouped.how == Collective::Ddio,
            block_bytes: grouped.agreed.block_bytes,
            blocks: grouped.blocks,
            epoch: grouped.epoch,
            ranks: &ranks,
            views: &views,
            hull: grouped.domains.hull().raw(),
        };
        let _gate = self.beside();
        self.session.with_lane(|lane| {
            let plan = self.views.current().plan(&self.known.state());
            let mut ended = self.directed(lane, &operation, team.rank(), &plan, ends)?;
            let (epoch, end) = (grouped.epoch, grouped.domains.hull().end.0);
            let must_grow =
                direction.is_write() && ended.failures.is_empty() && end > self.known.size().size;
            // Rank 0 hears of the end when all bytes of all ranks are stored.
            if must_grow && team.rank() == 0 && !self.grow(lane, &self.views.whole, epoch, end)? {
                let cut = Refusal::new("the file was cut while it was written");
                let owner = self.known.state().owner.server;
                let cut = Trouble::Refused(Status::StaleEpoch, cut);
                ended.failures.push((owner, cut));
            } else if must_grow {
                self.known.grown(epoch, end);
            }
            Ok(ended)
        })
    }

    /// Hears how it went at the others.
    fn end_directed(
        &self,
        team: &Team,
        grouped: &JointAccess,
        ended: Result<DirectedEnd>,
        requested: u64,
        moved: u64,
        started: Instant,
    ) -> Result<JointOutcome> {
        let together = &self.together;
        together.exchanged(0);
        let mut servers = Vec::new();
        let mine = ended.and_then(|ended| {
            servers = ended.servers;
            together.packets.fetch_add(ended.packets, Ordering::Relaxed);
            match may_go_alone(&ended.failures) {
                true if ended.failures.is_empty() => Ok(DONE),
                true => Ok(GO_ALONE),
                false => Err(self.directed_error(ended.failures).expect("there is one")),
            }
        });
        let said = mine.clone().map(|code| vec![code]);
        let heard = team.agree(said);
        mine?;
        let heard = heard?;
        if heard.iter().any(|code| code.first() != Some(&DONE)) {
            together.refused();
            return Ok(JointOutcome::Declined);
        }
        self.keep_phases(Phases {
            requested,
            moved,
            is_end_of_file: moved < requested,
            send_to_last_answer_ns: started.elapsed().as_nanos() as u64,
            total_ns: started.elapsed().as_nanos() as u64,
            servers,
            ..Phases::default()
        });
        self.count(grouped.how);
        Ok(JointOutcome::Moved(moved as usize))
    }
}

/// Whether independent accesses can do what servers did not direct, and repair what was wrong.
pub(crate) fn may_go_alone(failures: &[(u64, Trouble)]) -> bool {
    failures.iter().all(|(_, trouble)| match trouble {
        Trouble::Refused(status, _) => matches!(
            status,
            Status::StaleLayout
                | Status::StaleEpoch
                | Status::Busy
                | Status::UnknownView
                | Status::Unsupported
                | Status::NoMemory
                | Status::WrongIncarnation
                | Status::TooLarge
                | Status::PermissionDenied
                | Status::ExpiredCapability
                | Status::Damaged
        ),
        _ => false,
    })
}
