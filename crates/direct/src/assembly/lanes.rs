//! Lanes of an assembly: bytes that flow from every member to every other at once, through rings that stay in the
//! caches, or that are read where they lie.
//!
//! ```text
//!  member a   fills -> | piece | piece | ..  ring of (a, b), reused | -> empties   member b
//!             lends the memory of its source  ------------------------> copies      member b
//! ```
//!
//! A *run*: every member posts a ticket (what it means to do, and whether its source is lent) and reads those of all;
//! then it drives all its lanes until nothing is left. Who fills or empties a ring raises a counter and the bell of the other
//! member; who finds nothing to do gives the processor away for a moment and then sleeps on its own bell.
//!
//! A member that knows which plan will be run fills its rings *early*, before its ticket, and does its own part before it
//! waits: the member that comes last finds everything there. Where another plan is run after all, both sides of such a lane pass over
//! the rest of the ring.
//!
//! Invariants
//! - Nobody spins, and nobody sleeps while there is a piece that it can fill or empty. Who waits for all is woken by the last.
//! - Bytes that were filled early are read only in a run of the plan that the ticket names.
//! - A piece lies in one run of the ring. Counters only grow; a run begins at a multiple of the ring on both sides, so
//!   nothing has to be said about where it begins.
//! - Tickets alternate between even and odd runs: who posts run n + 2 has seen all of run n + 1, so all have read run n.
//! - A member whose memory was lent leaves the run only when all that read it have said so.
//! - Words that others write choose between waiting and going on, and positions are taken inside the ring.
//!
//! Left to others: what is in the pieces, and what tickets mean (`Cargo`, the client).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kernels::{SharedBytes, SharedBytesMut};
use rustix::thread::futex;

use super::{Apart, Assembly, Drive, MEMBER_BYTES, PAGE_BYTES, Round, members_at};
use crate::commons::{BorrowedMemory, Loan};

/// All rings together.
const RINGS_BYTES: usize = 16 << 20;
/// The longest ring: half of it is a piece, and some pieces fit into the cache of a core.
const RING_BYTES: usize = 1 << 20;
/// Shorter rings are not worth a lane.
const SHORTEST_RING: usize = 16 << 10;
/// From so many bytes on pieces are halves of the ring; shorter transfers are cut finer, so that both sides work.
const LONG_BYTES: u64 = 4 << 20;
/// Pieces of a ring for shorter transfers, and the shortest piece.
const SHORT_PIECES: usize = 8;
const SHORTEST_PIECE: usize = 8 << 10;

/// Words of a member, behind those of steps.
const BELL: usize = 64;
const BELL_SLEEPERS: usize = 68;
/// Bytes of a ticket.
const TICKET_BYTES: usize = 256;
const TICKET_RUN: usize = 0;
const TICKET_SAID: usize = 8;
const TICKET_LENT: usize = TICKET_SAID + 8 * SAID_WORDS;
const TICKET_EARLY: usize = TICKET_LENT + 8 * Loan::WORDS;
const _: () = assert!(TICKET_EARLY + 8 <= TICKET_BYTES);
/// Words that a ticket carries for the caller.
pub const SAID_WORDS: usize = 16;
/// Words of a lane: what its giver writes, and on another line what its taker writes.
const LANE_BYTES: usize = 128;
const FILLED: usize = 0;
const EMPTIED: usize = 64;
const ANSWER: usize = 72;
const READ: usize = 80;
/// Mapped memory of one member that is kept.
const KEPT_BORROWED: usize = 4;
/// How long a member gives the processor away again and again before it sleeps: being woken takes about as long.
const YIELDING: Duration = Duration::from_micros(50);

/// What a member sleeps for, in its `BELL_SLEEPERS`; 0 while it is awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sleep {
    /// Whatever comes.
    Anything = 1,
    /// The tickets of all.
    Tickets,
    /// That all have read what it lends.
    Readers,
}

/// What a member says when a run begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    /// For the caller.
    pub said: [u64; SAID_WORDS],
    /// Where its source lies, if others may read it there.
    pub lent: Loan,
    /// The plan for which its rings are filled already; 0 for none.
    pub(super) early: u64,
}

impl Ticket {
    /// With these words, and a source that is there for the others or not.
    pub fn new(said: [u64; SAID_WORDS], lent: Loan) -> Ticket {
        Ticket {
            said,
            lent,
            early: 0,
        }
    }
}

/// What goes through the lanes of a member in a run. Bytes between two members are asked for and handed out in one order.
pub trait Cargo {
    /// Bytes that go to a member through the lane.
    fn given(&self, to: usize) -> u64;
    /// Bytes that come from a member.
    fn taken(&self, from: usize) -> u64;
    /// How many bytes the source of a member has to have to be read in place.
    fn source_bytes(&self, of: usize) -> u64;
    /// Whether what comes has to be stored by descending rank, this member's own among them.
    fn is_ordered(&self) -> bool;
    /// Fills a piece with the next bytes for a member.
    fn fill(&mut self, to: usize, piece: SharedBytesMut<'_>);
    /// Stores a piece with the next bytes of a member.
    fn empty(&mut self, from: usize, piece: SharedBytes<'_>);
    /// Stores all bytes of a member, from its source.
    fn copy_all(&mut self, from: usize, source: SharedBytes<'_>);
    /// Stores what this member has for itself.
    fn copy_own(&mut self);
}

/// Bytes of a ring among so many members; none if they are too many.
pub(super) fn ring_bytes(size: usize) -> usize {
    let lanes = size * size.saturating_sub(1);
    let most = RINGS_BYTES / lanes.max(1);
    match lanes {
        0 => 0,
        _ if most < SHORTEST_RING => 0,
        // A power of two, so that pieces divide it.
        _ => 1 << most.min(RING_BYTES).ilog2(),
    }
}

fn heads_bytes(size: usize) -> usize {
    (size * 2 * TICKET_BYTES + size * size * LANE_BYTES).next_multiple_of(PAGE_BYTES)
}

/// Bytes of all lanes.
pub(super) fn lanes_bytes(size: usize, ring: usize) -> usize {
    match ring {
        0 => 0,
        _ => heads_bytes(size) + size * (size - 1) * ring,
    }
}

fn piece_bytes(ring: usize, bytes: u64) -> usize {
    match bytes >= LONG_BYTES {
        true => ring / 2,
        false => (ring / SHORT_PIECES).max(SHORTEST_PIECE.min(ring / 2)),
    }
}

/// How one lane stands.
#[derive(Clone, Copy, Debug)]
struct Lane {
    way: Way,
    /// The counter where this run begins, where the one before ended, and bytes of this run that are through.
    start: u64,
    before: u64,
    done: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The other has not said how it takes.
    Unknown,
    Ring,
    /// Read in place by the taker.
    InPlace,
    Over,
}

impl Assembly {
    /// Whether it has lanes.
    pub fn has_lanes(&self) -> bool {
        self.ring_bytes > 0
    }

    fn lanes_at(&self) -> usize {
        members_at(self.size) + 2 * self.size * self.slot_bytes
    }

    fn ticket_at(&self, rank: usize, run: u64) -> usize {
        self.lanes_at() + (2 * rank + (run % 2) as usize) * TICKET_BYTES
    }

    fn lane_word(&self, from: usize, to: usize, word: usize) -> &AtomicU64 {
        let lanes = self.lanes_at() + self.size * 2 * TICKET_BYTES;
        self.mapping
            .word(lanes + (from * self.size + to) * LANE_BYTES + word)
    }

    /// The bytes of a ring from a counter on.
    fn piece(&self, from: usize, to: usize, counter: u64, len: usize) -> *mut u8 {
        // The diagonal has no ring.
        let index = from * (self.size - 1) + to - usize::from(to > from);
        let at = (counter % self.ring_bytes as u64) as usize;
        let ring = self.lanes_at() + heads_bytes(self.size) + index * self.ring_bytes;
        assert!(at + len <= self.ring_bytes, "a piece lies in one run");
        self.mapping.address(ring + at, len).as_ptr()
    }

    fn bell(&self, rank: usize) -> &AtomicU32 {
        const { assert!(BELL_SLEEPERS + 4 <= MEMBER_BYTES) };
        self.mapping.half_word(self.member(rank) + BELL)
    }

    fn sleep_of(&self, rank: usize) -> &AtomicU32 {
        self.mapping.half_word(self.member(rank) + BELL_SLEEPERS)
    }

    pub(super) fn ring_bell(&self, rank: usize) {
        self.ring_bell_unless(rank, |_| false);
    }

    /// Raises the bell of a member, and wakes it unless it sleeps for more than this.
    fn ring_bell_unless(&self, rank: usize, sleeps_on: impl FnOnce(u32) -> bool) {
        let bell = self.bell(rank);
        bell.fetch_add(1, Ordering::SeqCst);
        let sleep = self.sleep_of(rank).load(Ordering::SeqCst);
        if sleep != 0 && !sleeps_on(sleep) {
            let _ = futex::wake(bell, futex::Flags::empty(), i32::MAX as u32);
        }
    }

    fn has_posted(&self, rank: usize, run: u64) -> bool {
        let at = self.ticket_at(rank, run);
        self.mapping.word(at + TICKET_RUN).load(Ordering::SeqCst) == run
    }

    /// Says that this member has read what another lends, or has nothing to read there.
    fn say_read(&self, from: usize, run: u64) {
        let read = |by: usize| self.lane_word(from, by, READ);
        read(self.rank).store(run, Ordering::SeqCst);
        let mut others = (0..self.size).filter(|by| *by != from);
        let mut is_last = || others.all(|by| read(by).load(Ordering::SeqCst) == run);
        self.ring_bell_unless(from, |sleep| sleep == Sleep::Readers as u32 && !is_last());
    }

    /// Begins a run: says something, and hears what all say. All members call it, in the same order.
    ///
    /// # Panics
    /// If there are no lanes.
    pub fn begin_run<'a>(&'a self, mine: &Ticket, drive: Drive<'a>) -> Result<Run<'a>, Apart> {
        assert!(self.has_lanes(), "an assembly without lanes");
        self.or_leave(self.enter(mine, None, drive))
    }

    /// Begins a run that most likely is one of this plan, which has not the number 0: fills what it has for the others before
    /// it says anything, and stores its own part, if order does not matter, before it waits.
    ///
    /// # Panics
    /// If there are no lanes, or the number is 0.
    pub fn begin_run_early<'a>(
        &'a self,
        mine: &Ticket,
        plan: u64,
        cargo: &mut dyn Cargo,
        drive: Drive<'a>,
    ) -> Result<Run<'a>, Apart> {
        assert!(self.has_lanes(), "an assembly without lanes");
        assert!(plan != 0, "plans are counted from 1");
        self.or_leave(self.enter(mine, Some((plan, cargo)), drive))
    }

    fn enter<'a>(
        &'a self,
        mine: &Ticket,
        early: Option<(u64, &mut dyn Cargo)>,
        drive: Drive<'a>,
    ) -> Result<Run<'a>, Apart> {
        let round = self.round(drive, None)?;
        let number = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        let mut run = Run {
            assembly: self,
            round,
            number,
            tickets: vec![Ticket::default(); self.size],
            early: None,
            is_settled: false,
        };
        run.tickets[self.rank] = *mine;
        match early {
            None => run.post(),
            Some((plan, cargo)) => {
                let gives = (!mine.lent.is_some()).then(|| run.fill_early(cargo));
                if gives.is_some() {
                    run.tickets[self.rank].early = plan;
                }
                run.post();
                let owns = cargo.is_ordered();
                if !owns {
                    cargo.copy_own();
                }
                run.early = Some(Early { plan, gives, owns });
            }
        }
        run.hear()?;
        Ok(run)
    }

    /// Sleeps until the bell of this member was rung since `seen`, or it is time to look around. A member of `awaited` that
    /// is gone is an error, unless `is_served` says that it did its part.
    fn rest(
        &self,
        round: &mut Round<'_>,
        sleep: Sleep,
        seen: u32,
        awaited: &[usize],
        is_served: impl Fn(usize) -> bool,
    ) -> Result<(), Apart> {
        let looks = round.waiting.is_time_to_look();
        for &rank in awaited {
            let cause = self.cause(rank);
            let cause = cause.or_else(|| (looks && !self.lives(rank)).then_some(Apart::Died(rank)));
            if let Some(cause) = cause {
                return match is_served(rank) {
                    true => Ok(()),
                    false => Err(cause),
                };
            }
        }
        let pause = round.waiting.pause(self.rank)?;
        let bell = self.bell(self.rank);
        let begun = Instant::now();
        while begun.elapsed() < YIELDING {
            rustix::thread::sched_yield();
            if bell.load(Ordering::SeqCst) != seen {
                return Ok(());
            }
        }
        let sleeps = self.sleep_of(self.rank);
        let time = futex::Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(pause.subsec_nanos()),
        };
        sleeps.store(sleep as u32, Ordering::SeqCst);
        let slept = futex::wait(bell, futex::Flags::empty(), seen, Some(&time));
        sleeps.store(0, Ordering::SeqCst);
        if matches!(slept, Err(rustix::io::Errno::TIMEDOUT)) {
            round.waiting.drive();
        }
        Ok(())
    }

    /// Memory that a member lends, mapped once.
    fn borrowed(&self, rank: usize, lent: &Loan) -> Option<Arc<BorrowedMemory>> {
        let mut kept = self.borrowed.lock();
        let of_rank = |key: &(usize, u64)| key.0 == rank;
        if let Some((_, found)) = kept.iter().find(|(key, _)| *key == (rank, lent.id)) {
            return found.clone();
        }
        let pid = self.word(rank, super::PID).load(Ordering::SeqCst);
        let mapped = BorrowedMemory::map(pid, lent).ok().map(Arc::new);
        if kept.iter().filter(|(key, _)| of_rank(key)).count() >= KEPT_BORROWED
            && let Some(oldest) = kept.iter().position(|(key, _)| of_rank(key))
        {
            kept.remove(oldest);
        }
        kept.push(((rank, lent.id), mapped.clone()));
        mapped
    }
}

/// A run that all members have begun.
#[derive(Debug)]
pub struct Run<'a> {
    assembly: &'a Assembly,
    round: Round<'a>,
    number: u64,
    tickets: Vec<Ticket>,
    /// What was done before all were heard.
    early: Option<Early>,
    /// Whether it is decided what becomes of bytes that were filled early.
    is_settled: bool,
}

/// What a member did for a plan before it knew that all run it.
#[derive(Debug)]
struct Early {
    plan: u64,
    /// The lanes that it fills; none if its source is lent.
    gives: Option<Vec<Lane>>,
    /// Whether its own part is still to be stored.
    owns: bool,
}

impl Run<'_> {
    /// Posts this member's ticket.
    fn post(&self) {
        let assembly = self.assembly;
        let mine = &self.tickets[assembly.rank];
        let at = assembly.ticket_at(assembly.rank, self.number);
        let put = |word: usize, value: u64| {
            let word = assembly.mapping.word(at + word);
            word.store(value, Ordering::Relaxed);
        };
        for (i, word) in mine.said.iter().enumerate() {
            put(TICKET_SAID + 8 * i, *word);
        }
        for (i, word) in mine.lent.words().into_iter().enumerate() {
            put(TICKET_LENT + 8 * i, word);
        }
        put(TICKET_EARLY, mine.early);
        let posted = assembly.mapping.word(at + TICKET_RUN);
        posted.store(self.number, Ordering::SeqCst);
        let mut all = 0..assembly.size;
        let is_last = all.all(|rank| assembly.has_posted(rank, self.number));
        for rank in self.others() {
            assembly.ring_bell_unless(rank, |sleep| sleep == Sleep::Tickets as u32 && !is_last);
        }
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let rank = self.assembly.rank;
        (0..self.assembly.size).filter(move |other| *other != rank)
    }

    /// Waits for the tickets of all.
    fn hear(&mut self) -> Result<(), Apart> {
        let (assembly, number) = (self.assembly, self.number);
        for rank in self.others() {
            let is_posted = || assembly.has_posted(rank, number);
            loop {
                let seen = assembly.bell(assembly.rank).load(Ordering::SeqCst);
                if is_posted() {
                    break;
                }
                let round = &mut self.round;
                assembly.rest(round, Sleep::Tickets, seen, &[rank], |_| is_posted())?;
            }
            let at = assembly.ticket_at(rank, number);
            let of = |word: usize| assembly.mapping.word(at + word).load(Ordering::Relaxed);
            self.tickets[rank] = Ticket {
                said: std::array::from_fn(|i| of(TICKET_SAID + 8 * i)),
                lent: Loan::of_words(std::array::from_fn(|i| of(TICKET_LENT + 8 * i))),
                early: of(TICKET_EARLY),
            };
        }
        Ok(())
    }

    /// Fills the rings as far as there is room, and tells nobody.
    fn fill_early(&self, cargo: &mut dyn Cargo) -> Vec<Lane> {
        let mut gives: Vec<Lane> = (0..self.assembly.size)
            .map(|to| self.giving(to, cargo))
            .collect();
        for to in self.others() {
            while self.fill_piece(to, &mut gives[to], cargo) {}
        }
        gives
    }

    /// What was filled early is for the run of a plan; where that is not the one that is run now, or none is, the ring is passed over
    /// to its end. All members come to the same.
    fn settle(&mut self, run: Option<u64>) {
        if std::mem::replace(&mut self.is_settled, true) {
            return;
        }
        let assembly = self.assembly;
        let (rank, ring) = (assembly.rank, assembly.ring_bytes as u64);
        let passes = |ticket: &Ticket| ticket.early != 0 && Some(ticket.early) != run;
        for from in self.others().filter(|from| passes(&self.tickets[*from])) {
            let emptied = assembly.lane_word(from, rank, EMPTIED);
            let start = emptied.load(Ordering::SeqCst).next_multiple_of(ring);
            emptied.store(start.saturating_add(ring), Ordering::SeqCst);
            assembly.ring_bell(from);
        }
        let is_passed = passes(&self.tickets[rank]);
        if self
            .early
            .as_ref()
            .is_some_and(|early| Some(early.plan) != run)
            && let Some(early) = self.early.take()
            && is_passed
        {
            for (to, lane) in early.gives.iter().flatten().enumerate() {
                let filled = assembly.lane_word(rank, to, FILLED);
                filled.store(lane.start + ring, Ordering::SeqCst);
            }
        }
    }

    /// What the members said, by rank.
    pub fn tickets(&self) -> &[Ticket] {
        &self.tickets
    }

    /// Takes part in nothing any more: this member cannot do what it said. All others fail.
    pub fn abandon(self) {
        let assembly = self.assembly;
        drop(self);
        assembly.leave(super::GAVE_UP + assembly.rank as u64);
    }

    /// Moves everything that the members have for each other by a plan. All do so, or none. If the run was begun early for this
    /// plan it is the same cargo.
    pub fn carry(mut self, plan: u64, cargo: &mut dyn Cargo) -> Result<(), Apart> {
        let assembly = self.assembly;
        self.settle(Some(plan));
        let carried = self.drive_lanes(cargo);
        drop(self);
        assembly.or_leave(carried)
    }

    fn drive_lanes(&mut self, cargo: &mut dyn Cargo) -> Result<(), Apart> {
        let (rank, size) = (self.assembly.rank, self.assembly.size);
        let (early, mut owns) = match self.early.take() {
            Some(early) => (early.gives, early.owns),
            None => (None, true),
        };
        let mut gives: Vec<Lane> = match early {
            Some(gives) => gives,
            None => (0..size).map(|to| self.giving(to, cargo)).collect(),
        };
        let mut takes: Vec<Lane> = (0..size).map(|from| self.taking(from, cargo)).collect();
        loop {
            let seen = self.assembly.bell(rank).load(Ordering::SeqCst);
            let mut has_moved = false;
            for step in 1..size {
                let to = (rank + step) % size;
                has_moved |= self.give(to, &mut gives[to], cargo);
                if !cargo.is_ordered() {
                    let from = (rank + size - step) % size;
                    has_moved |= self.take(from, &mut takes[from], cargo);
                }
            }
            if cargo.is_ordered() {
                has_moved |= self.take_in_order(&mut owns, &mut takes, cargo);
            } else if owns {
                // By now the others have pieces to empty.
                owns = false;
                has_moved = true;
                cargo.copy_own();
            }
            let is_open =
                |other: &usize| gives[*other].way != Way::Over || takes[*other].way != Way::Over;
            let awaited: Vec<usize> = (0..size).filter(is_open).collect();
            if awaited.is_empty() && !owns {
                return Ok(());
            }
            if has_moved {
                continue;
            }
            let (assembly, number) = (self.assembly, self.number);
            // A member that is gone may have done its part before.
            let is_served = |other: usize| {
                let word = |from, to, word| assembly.lane_word(from, to, word);
                let has_read = word(rank, other, READ).load(Ordering::SeqCst) == number;
                let Lane {
                    way, start, bytes, ..
                } = takes[other];
                let filled = word(other, rank, FILLED).load(Ordering::SeqCst);
                (gives[other].way == Way::Over || has_read)
                    && (way == Way::Over || filled >= start + bytes)
            };
            let only_lends = (0..size).all(|other| {
                takes[other].way == Way::Over
                    && matches!(gives[other].way, Way::Over | Way::InPlace)
            });
            let sleep = match only_lends {
                true => Sleep::Readers,
                false => Sleep::Anything,
            };
            assembly.rest(&mut self.round, sleep, seen, &awaited, is_served)?;
        }
    }

    fn lane(&self, word: &AtomicU64, way: Way, bytes: u64) -> Lane {
        let before = word.load(Ordering::SeqCst);
        Lane {
            way: if bytes == 0 { Way::Over } else { way },
            start: before.next_multiple_of(self.assembly.ring_bytes as u64),
            before,
            done: 0,
            bytes,
        }
    }

    fn giving(&self, to: usize, cargo: &dyn Cargo) -> Lane {
        let assembly = self.assembly;
        let way = match self.tickets[assembly.rank].lent.is_some() {
            true => Way::Unknown,
            false => Way::Ring,
        };
        let bytes = match to == assembly.rank {
            true => 0,
            false => cargo.given(to),
        };
        self.lane(assembly.lane_word(assembly.rank, to, FILLED), way, bytes)
    }

    /// How bytes of a member are taken; it is told, if it waits for that.
    fn taking(&self, from: usize, cargo: &dyn Cargo) -> Lane {
        let assembly = self.assembly;
        let bytes = match from == assembly.rank {
            true => 0,
            false => cargo.taken(from),
        };
        let lent = &self.tickets[from].lent;
        let mut way = Way::Ring;
        if bytes > 0 && lent.is_some() {
            let has_room = lent.at.checked_add(cargo.source_bytes(from));
            let reads = has_room.is_some_and(|end| end <= lent.len)
                && assembly.borrowed(from, lent).is_some();
            if reads {
                way = Way::InPlace;
            }
            let answer = self.number << 1 | u64::from(reads);
            assembly
                .lane_word(from, assembly.rank, ANSWER)
                .store(answer, Ordering::SeqCst);
            assembly.ring_bell(from);
        } else if lent.is_some() && from != assembly.rank {
            assembly.say_read(from, self.number);
        }
        self.lane(assembly.lane_word(from, assembly.rank, EMPTIED), way, bytes)
    }

    /// Fills pieces as long as there is room; whether there was.
    fn give(&self, to: usize, lane: &mut Lane, cargo: &mut dyn Cargo) -> bool {
        let assembly = self.assembly;
        let rank = assembly.rank;
        if lane.way == Way::Unknown {
            let answer = assembly.lane_word(rank, to, ANSWER).load(Ordering::SeqCst);
            if answer >> 1 != self.number {
                return false;
            }
            lane.way = match answer & 1 {
                1 => Way::InPlace,
                _ => Way::Ring,
            };
        }
        if lane.way == Way::InPlace {
            let is_read = assembly.lane_word(rank, to, READ).load(Ordering::SeqCst) == self.number;
            if is_read {
                lane.way = Way::Over;
            }
            return is_read;
        }
        let mut has_moved = false;
        while self.fill_piece(to, lane, cargo) {
            has_moved = true;
            assembly.ring_bell(to);
        }
        has_moved
    }

    /// Fills the next piece, if there is one and room for it.
    fn fill_piece(&self, to: usize, lane: &mut Lane, cargo: &mut dyn Cargo) -> bool {
        if lane.way != Way::Ring {
            return false;
        }
        let assembly = self.assembly;
        let rank = assembly.rank;
        let ring = assembly.ring_bytes as u64;
        let piece = piece_bytes(assembly.ring_bytes, lane.bytes) as u64;
        let emptied = assembly.lane_word(rank, to, EMPTIED).load(Ordering::SeqCst);
        // What the run before left behind the last piece is free as well.
        let emptied = match emptied >= lane.before {
            true => emptied.max(lane.start),
            false => emptied,
        };
        let len = piece.min(lane.bytes - lane.done);
        let at = lane.start + lane.done;
        if at + len > emptied.saturating_add(ring) {
            return false;
        }
        let memory = assembly.piece(rank, to, at, len as usize);
        // SAFETY: inside the ring, and the taker does not read it before it is said to be filled.
        cargo.fill(to, unsafe { SharedBytesMut::new(memory, len as usize) });
        lane.done += len;
        assembly
            .lane_word(rank, to, FILLED)
            .store(at + len, Ordering::SeqCst);
        if lane.done == lane.bytes {
            lane.way = Way::Over;
        }
        true
    }

    /// Empties pieces as long as there are any, or reads all in place; whether there was something.
    fn take(&self, from: usize, lane: &mut Lane, cargo: &mut dyn Cargo) -> bool {
        let assembly = self.assembly;
        let rank = assembly.rank;
        if lane.way == Way::InPlace {
            let lent = &self.tickets[from].lent;
            if let Some(memory) = assembly.borrowed(from, lent) {
                cargo.copy_all(from, memory.bytes(lent.at));
            }
            assembly.say_read(from, self.number);
            lane.way = Way::Over;
            return true;
        }
        let piece = piece_bytes(assembly.ring_bytes, lane.bytes) as u64;
        let mut has_moved = false;
        while lane.way == Way::Ring {
            let len = piece.min(lane.bytes - lane.done);
            let at = lane.start + lane.done;
            let filled = assembly
                .lane_word(from, rank, FILLED)
                .load(Ordering::SeqCst);
            if filled < at + len {
                break;
            }
            let memory = assembly.piece(from, rank, at, len as usize);
            // SAFETY: inside the ring; what its giver does to it changes the bytes that are copied and nothing else.
            cargo.empty(from, unsafe { SharedBytes::new(memory, len as usize) });
            lane.done += len;
            has_moved = true;
            assembly
                .lane_word(from, rank, EMPTIED)
                .store(at + len, Ordering::SeqCst);
            if lane.done == lane.bytes {
                lane.way = Way::Over;
            }
            assembly.ring_bell(from);
        }
        has_moved
    }

    /// Takes from the highest rank that has something left, this member's own among them.
    fn take_in_order(&self, owns: &mut bool, takes: &mut [Lane], cargo: &mut dyn Cargo) -> bool {
        let rank = self.assembly.rank;
        let mut has_moved = false;
        for from in (0..takes.len()).rev() {
            if from == rank {
                if std::mem::take(owns) {
                    cargo.copy_own();
                    has_moved = true;
                }
                continue;
            }
            has_moved |= self.take(from, &mut takes[from], cargo);
            if takes[from].way != Way::Over {
                break;
            }
        }
        has_moved
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.settle(None);
    }
}
