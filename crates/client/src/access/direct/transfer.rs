//! One direct access: are all its bytes mapped, then claim, copy, end, server by server.
//!
//! ```text
//!  access   |---- 8 MiB ----|---- 8 MiB ----|-- rest --|      a claim per chunk and server
//!             A: ready, claim, copy, end, alive?   then B: ...
//! ```
//!
//! Claims are held one at a time. A truncate between two of them sends the whole access the message
//! way, where it takes effect as if issued after: what was copied before is cut off, or written again
//! with the same bytes.
//!
//! A write that grows the file says how far it stores in the client page, inside its claims: the servers find it there, and
//! the owner of the file asks them before it tells the size. Nobody is told.
//!
//! Left to others: which servers and parts (`plan`), what the handle knows of the size (`access`).

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use ::direct::Use;
use control::moves::crash_point;
use kernels::Share;
use layout::FileSpan;
use wire::Place;
use wire::message::Bytes;
use wire::message::direct::{Map, SubfileRange};

use super::attached::Attached;
use super::maps::{Extent, Maps, Miss, Piece, ServerMap, pieces, span};
use crate::access::memory::{Direction, Memory, Run};
use crate::access::phases::Phases;
use crate::access::plan::Plan;
use crate::access::request::{Attempt, Growth, How, Outcome, Way};
use crate::access::work::Lot;
use crate::file::handle::Handle;
use crate::session::lane::Lane;
use plan::access::Part;

/// User bytes that are copied under one claim: a revocation waits no longer than that takes.
const CHUNK: u64 = 8 << 20;
/// Runs of view and extent from which on described memory needs no packet.
const LONG_RUN: u64 = 1 << 10;
/// Bytes of described memory that are packed at a time, and stay in the cache meanwhile.
const PACKET: u64 = 256 << 10;
/// Accesses of so many bytes ask for maps before they move; shorter ones move first.
pub(crate) const LONG: u64 = 64 << 10;
/// Bytes of a subfile from first to last per byte wanted, up to which extents are made for a write.
const SPARSE: u64 = 32;

/// Ranges in one question.
const MOST_RANGES: usize = 4096;

/// The direct way of a request, see the [module](self).
pub(in crate::access) struct Directly(Trial);

/// How far the direct way has got with a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trial {
    Forbidden,
    Untried,
    /// It goes by message, however often.
    Failed,
    Done,
}

impl Directly {
    pub(in crate::access) fn new(handle: &Handle, how: &How, direction: Direction) -> Directly {
        Directly(match handle.may_go_directly(how, direction) {
            true => Trial::Untried,
            false => Trial::Forbidden,
        })
    }

    /// Whether so many bytes of scattered memory need not be packed before.
    pub(in crate::access) fn takes_scattered(&self, len: u64) -> bool {
        self.0 == Trial::Untried && len >= LONG
    }

    /// After a short access that went by message: asks where its bytes are, if it is time to.
    pub(in crate::access) fn ask_afterwards(
        &self,
        handle: &Handle,
        lane: &mut Lane,
        attempt: Attempt<'_>,
    ) {
        if self.0 != Trial::Failed || attempt.len >= LONG || attempt.len == 0 {
            return;
        }
        let misses = &handle.direct.misses;
        let is_due = misses.lock().take_due();
        if is_due && handle.ask_maps(lane, attempt) {
            misses.lock().covered(attempt.miss());
        }
    }
}

impl Way for Directly {
    fn go(
        &mut self,
        handle: &Handle,
        lane: &mut Lane,
        attempt: Attempt<'_>,
        memory: &mut Memory<'_>,
        phases: &mut Phases,
    ) -> crate::error::Result<Outcome> {
        match self.0 {
            Trial::Untried => {}
            Trial::Forbidden => return Ok(Outcome::NotThisWay),
            Trial::Failed | Trial::Done => {
                self.0 = Trial::Failed;
                return Ok(Outcome::NotThisWay);
            }
        }
        let started = Instant::now();
        if !handle.go_directly(lane, attempt, memory) {
            self.0 = Trial::Failed;
            return Ok(Outcome::NotThisWay);
        }
        self.0 = Trial::Done;
        let spent = started.elapsed().as_nanos() as u64;
        match attempt.direction {
            Direction::Write => phases.gather_ns += spent,
            Direction::Read => phases.scatter_ns += spent,
        }
        // Unless earlier parts of the access went by message.
        phases.is_direct |= phases.servers.is_empty();
        phases.add(lane.work.lots().iter().map(Lot::phases));
        Ok(Outcome::Done)
    }

    /// The servers know, and the owner asks them.
    fn has_told(&self, _: Growth) -> bool {
        true
    }
}

impl Attempt<'_> {
    /// What it is if its bytes are not mapped.
    fn miss(&self) -> Miss {
        match self.len >= LONG {
            true => Miss::Long,
            false if self.grows() => Miss::Growing,
            false => Miss::Short,
        }
    }
}

/// Why copying was not done.
enum Obstacle {
    /// Something is in no extent.
    Unmapped,
    /// Maps of this server are void.
    Void(u64),
    /// Maps are good, but for another step of the layout state: the access learns it by message.
    Stepped,
    /// All slots are in use.
    NoSlot,
}

impl Handle {
    /// Whether accesses of this kind may go directly at all.
    pub(crate) fn may_go_directly(&self, how: &How, direction: Direction) -> bool {
        let settings = &self.settings;
        let is_through = direction.is_write() && settings.writes_through();
        settings.is_direct() && *how == How::default() && !settings.is_sieving() && !is_through
    }

    /// Tries to do the access that is spread over the lots of a lane; whether it is done. If not, it
    /// goes by message.
    fn go_directly(&self, lane: &mut Lane, attempt: Attempt<'_>, memory: &mut Memory<'_>) -> bool {
        let counters = &self.session.open_files.sharing.counters;
        let (lots, packed) = lane.work.lots_and_packed();
        let mut maps = self.maps();
        let mut copied = copy(lots, &maps, attempt, memory, packed);
        if matches!(copied, Err(Obstacle::Unmapped)) {
            drop(maps);
            let miss = attempt.miss();
            let is_time = self.direct.misses.lock().missed(miss);
            if !is_time || !self.ask_maps(lane, attempt) {
                counters.fell_back();
                return false;
            }
            self.direct.misses.lock().covered(miss);
            maps = self.maps();
            let (lots, packed) = lane.work.lots_and_packed();
            copied = copy(lots, &maps, attempt, memory, packed);
        }
        match copied {
            Ok(()) => {}
            Err(Obstacle::Void(server)) => {
                drop(maps);
                Arc::make_mut(&mut *self.direct.maps.lock()).forget(server);
                self.direct.quick.clear();
                counters.revoked();
                counters.fell_back();
                return false;
            }
            Err(Obstacle::Unmapped | Obstacle::NoSlot | Obstacle::Stepped) => {
                counters.fell_back();
                return false;
            }
        }
        match attempt.direction {
            Direction::Write => counters.wrote(attempt.len),
            Direction::Read => counters.read(attempt.len),
        }
        self.learn(lane, &maps, attempt);
        if attempt.is_write() {
            // After the run was learned: see `sync`.
            for lot in lane.work.lots() {
                if let Some(map) = maps.server(lot.place.server) {
                    let attached = &map.attached;
                    self.unsynced
                        .wrote(attached.server, attached.incarnation, attached.verifier);
                }
            }
        }
        true
    }

    fn maps(&self) -> Arc<Maps> {
        self.direct.maps.lock().clone()
    }

    /// Asks the servers of an access where its bytes are, and again while that helps: an answer says a
    /// limited number of places. Whether all of them are known then.
    fn ask_maps(&self, lane: &mut Lane, attempt: Attempt<'_>) -> bool {
        let mut before = u64::MAX;
        loop {
            let mut missing = 0;
            for i in 0..lane.work.lots().len() {
                // Before anything else: most servers that share nothing never will.
                let place = lane.work.lots()[i].place;
                let Some(attached) = self.attach(lane, attempt, place) else {
                    return false;
                };
                let maps = self.maps();
                let Some(ranges) = unmapped(&lane.work.lots()[i], &maps, attempt) else {
                    return false;
                };
                drop(maps);
                if ranges.is_empty() {
                    continue;
                }
                missing += ranges.iter().map(|r| r.end - r.start).sum::<u64>();
                if missing >= before || self.ask_map(&attached, attempt, ranges).is_none() {
                    return false;
                }
            }
            if missing == 0 {
                return true;
            }
            before = missing;
        }
    }

    /// The shared memory of a server that knows the view.
    fn attach(&self, lane: &mut Lane, attempt: Attempt<'_>, place: Place) -> Option<Arc<Attached>> {
        self.ready(lane, attempt.seen, place).ok()?;
        self.session.attached(lane, place)
    }

    fn ask_map(
        &self,
        attached: &Arc<Attached>,
        attempt: Attempt<'_>,
        ranges: Vec<SubfileRange>,
    ) -> Option<()> {
        let request = Map {
            view: attempt.seen.number,
            version: Bytes(attempt.plan.version.clone()),
            epoch: attempt.epoch,
            writes: attempt.is_write(),
            ranges,
        };
        let answer = attached.ask(&self.session, &request)?;
        let mut maps = self.direct.maps.lock();
        Arc::make_mut(&mut *maps).add(attempt.epoch, attached, answer);
        Some(())
    }
}

/// Bytes of an access at one server that are not mapped: of each subfile from the first of them on.
/// `None` if they lie too far apart to be written directly: extents between them would be made.
fn unmapped(lot: &Lot, maps: &Maps, attempt: Attempt<'_>) -> Option<Vec<SubfileRange>> {
    let mut ranges = Vec::new();
    let map = maps.server(lot.place.server);
    let map = map.filter(|_| maps.are_for(attempt.epoch));
    for part in &lot.parts {
        let share = attempt.plan.share(part);
        let Some((span, _)) = span(share, part.file.raw(), part.bytes) else {
            continue;
        };
        let mut start = span.start;
        let mapped = map.and_then(|map| map.subfile(attempt.plan.stored(part)));
        let extents = mapped.map_or(&[][..], |mapped| &mapped.extents);
        let end = mapped.and_then(|mapped| mapped.end);
        let is_mapped = pieces(share, extents, part.file.raw(), part.bytes, |piece| {
            let is_good = piece.is_good_for(attempt.direction, end);
            if is_good {
                start = piece.subfile.end;
            }
            is_good
        });
        if is_mapped {
            continue;
        }
        if attempt.is_write() && (span.end - span.start) / SPARSE > part.bytes {
            return None;
        }
        let (store, subfile) = attempt.plan.stored(part);
        ranges.push(SubfileRange {
            store,
            subfile,
            start,
            end: span.end,
        });
        if ranges.len() == MOST_RANGES {
            break;
        }
    }
    Some(ranges)
}

impl Piece<'_> {
    /// Whether it may be stored into, if that is wanted: it is writable, and there is a word to say how far.
    fn is_good_for(&self, direction: Direction, end: Option<u32>) -> bool {
        direction == Direction::Read || (self.extent.is_writable() && end.is_some())
    }

    /// Its place in the segment.
    fn memory(&self) -> (u64, u64) {
        let start = self.extent.at + (self.subfile.start - self.extent.offset);
        (start, self.subfile.end - self.subfile.start)
    }
}

/// Copies a whole access, chunk by chunk.
fn copy(
    lots: &[Lot],
    maps: &Maps,
    attempt: Attempt<'_>,
    memory: &mut Memory<'_>,
    packet: &mut Vec<u8>,
) -> Result<(), Obstacle> {
    if !maps.are_for(attempt.epoch) {
        return Err(Obstacle::Unmapped);
    }
    let is_run = memory.is_run();
    for (done, chunk) in attempt.parts(CHUNK) {
        let file = (chunk.len < attempt.len).then_some(chunk.file);
        if is_run || lies_in_runs(lots, chunk, file) {
            copy_chunk(lots, maps, chunk, file, attempt.lo, memory)?;
        } else {
            copy_packets(lots, maps, chunk, done, memory, packet)?;
        }
    }
    Ok(())
}

/// Whether view and subfiles meet in long runs; in a file range, if it is not the whole access.
fn lies_in_runs(lots: &[Lot], attempt: Attempt<'_>, file: Option<FileSpan>) -> bool {
    lots.iter().flat_map(|lot| &lot.parts).all(|part| {
        let clipped = file.map_or(Some(*part), |file| attempt.plan.clip(part, file));
        let Some(part) = &clipped else {
            return true;
        };
        let share = attempt.plan.share(part);
        share.left_run(part.file.raw()).is_some() && share.right_run(part.file.raw()).is_some() || {
            let mut first = 0;
            share.each_run(part.file.raw(), |_, _, len| {
                first = len;
                false
            });
            first >= LONG_RUN
        }
    })
}

/// Copies a chunk of described memory packet by packet; it begins `before` bytes into the access.
fn copy_packets(
    lots: &[Lot],
    maps: &Maps,
    attempt: Attempt<'_>,
    before: u64,
    memory: &mut Memory<'_>,
    packet: &mut Vec<u8>,
) -> Result<(), Obstacle> {
    if (packet.len() as u64) < PACKET {
        packet.resize(PACKET as usize, 0);
    }
    for (done, part) in attempt.parts(PACKET) {
        let packed = &mut packet[..part.len as usize];
        let (from, file) = (before + done, Some(part.file));
        match memory.direction() {
            Direction::Write => {
                memory.pack(from, (&mut *packed).into());
                copy_chunk(lots, maps, part, file, part.lo, &mut Memory::of(&*packed))?;
            }
            Direction::Read => {
                let run = &mut Memory::of(&mut *packed);
                copy_chunk(lots, maps, part, file, part.lo, run)?;
                memory.unpack(from, (&*packed).into());
            }
        }
    }
    Ok(())
}

/// Copies a chunk of an access: a file range, or all of it. The memory begins with view byte `base`.
fn copy_chunk(
    lots: &[Lot],
    maps: &Maps,
    attempt: Attempt<'_>,
    chunk: Option<FileSpan>,
    base: u64,
    memory: &mut Memory<'_>,
) -> Result<(), Obstacle> {
    for lot in lots {
        let Some(map) = maps.server(lot.place.server) else {
            return Err(Obstacle::Unmapped);
        };
        let turn = Turn {
            plan: attempt.plan,
            parts: &lot.parts,
            chunk,
            map,
            base,
        };
        turn.copy(memory)?;
    }
    Ok(())
}

/// The bytes of a file range, if they are one run on both sides: where it begins on each, and its bytes.
fn run_of(share: &Share, file: Range<u64>) -> Option<(u64, u64, u64)> {
    let (left, right) = (
        share.left_run(file.clone())?,
        share.right_run(file.clone())?,
    );
    Some((left, right, share.count(file))).filter(|(_, _, count)| *count > 0)
}

/// Hands out the runs of a file range: where each begins on either side, and its bytes.
fn each_run(share: &Share, file: Range<u64>, mut take: impl FnMut(u64, u64, u64)) {
    if share.count(file.clone()) == 0 {
        // An extent between two bytes of the access.
        return;
    }
    if let Some((left, right, count)) = run_of(share, file.clone()) {
        return take(left, right, count);
    }
    share.each_run(file, |left, right, len| {
        take(left, right, len);
        true
    });
}

/// What is copied under one claim.
struct Turn<'a> {
    plan: &'a Plan,
    parts: &'a [Part],
    /// The file range of the chunk; nothing if it is the whole access.
    chunk: Option<FileSpan>,
    map: &'a ServerMap,
    /// View offset of the first byte of the user's memory.
    base: u64,
}

impl Turn<'_> {
    fn copy(&self, memory: &mut Memory<'_>) -> Result<(), Obstacle> {
        let direction = memory.direction();
        let Attached {
            server,
            table,
            page,
            ..
        } = &*self.map.attached;
        let (entry, epoch) = (self.map.entry, self.map.epoch);
        let is_current = || table.is_current(entry, epoch, self.plan.step());
        let void = || match table.is_good(entry, epoch) {
            true => Err(Obstacle::Stepped),
            false => Err(Obstacle::Void(*server)),
        };
        // Memory that is no longer the file's is not brought back by touching it.
        if !is_current() {
            return void();
        }
        let is_run = memory.is_run();
        let use_ = match direction {
            Direction::Write => Use::Store,
            Direction::Read => Use::Load,
        };
        let is_mapped = self.each(|share, end, piece| {
            let (at, len) = piece.memory();
            let is_good = piece.is_good_for(direction, end);
            let Extent { segment, .. } = piece.extent;
            let known = piece.extent.at..piece.extent.at + piece.extent.len;
            match is_good {
                true if is_run && run_of(share, piece.file.clone()).is_some() => {
                    segment.prepare_run(at, len, known, use_);
                }
                true => segment.make_ready_within(at, len, known),
                false => {}
            }
            is_good
        });
        if !is_mapped {
            return Err(Obstacle::Unmapped);
        }
        let Some(claim) = page.claim(entry, epoch, direction.is_write()) else {
            return Err(Obstacle::NoSlot);
        };
        if !is_current() {
            return void();
        }
        let is_copied = self.each(|share, end, piece| self.copy_piece(share, end, &piece, memory));
        if direction.is_write() {
            crash_point("client_in_copy");
        }
        let counts = claim.end();
        match counts && is_copied && table.is_alive() {
            true => Ok(()),
            false => Err(Obstacle::Void(*server)),
        }
    }

    fn copy_piece(
        &self,
        share: &Share,
        end: Option<u32>,
        piece: &Piece<'_>,
        memory: &mut Memory<'_>,
    ) -> bool {
        let Extent { segment, mark, .. } = piece.extent;
        let (at, len) = piece.memory();
        let (file, offset) = (piece.file.clone(), piece.subfile.start);
        if memory.direction().is_write() {
            let page = &self.map.attached.page;
            if let Some(mark) = mark.checked_sub(1) {
                page.mark(mark);
            }
            if let Some(end) = end {
                page.raise_end(end, piece.subfile.end);
            }
        }
        let copied = match memory.run() {
            Some(Run::From(user)) => {
                if let Some((left, right, count)) = run_of(share, file.clone()) {
                    let from = (left - self.base) as usize;
                    let source = user.range(from..from + count as usize);
                    let at = at + (right - offset);
                    return source.is_some_and(|source| segment.store(at, source));
                }
                let target = segment.bytes_mut(at, len);
                share.copy_left_to_right(file, user, self.base, target, offset)
            }
            Some(Run::Into(user)) => {
                if let Some((left, right, count)) = run_of(share, file.clone()) {
                    let from = (left - self.base) as usize;
                    let target = user.range(from..from + count as usize);
                    let at = at + (right - offset);
                    return target.is_some_and(|target| segment.load(at, target));
                }
                let source = segment.bytes(at, len);
                share.copy_right_to_left(file, source, offset, user, self.base)
            }
            None => {
                each_run(share, file, |left, right, n| {
                    let (at, from) = (at + (right - offset), left - self.base);
                    match memory.direction() {
                        Direction::Write => memory.pack(from, segment.bytes_mut(at, n)),
                        Direction::Read => memory.unpack(from, segment.bytes(at, n)),
                    }
                });
                Ok(())
            }
        };
        debug_assert!(copied.is_ok(), "{copied:?}");
        copied.is_ok()
    }

    /// Hands out all pieces, with the word that says how far their subfile is stored into; false if bytes lie in none, or
    /// `take` says no.
    fn each<'a>(&'a self, mut take: impl FnMut(&Share, Option<u32>, Piece<'a>) -> bool) -> bool {
        self.parts.iter().all(|part| {
            let clipped = self
                .chunk
                .map_or(Some(*part), |chunk| self.plan.clip(part, chunk));
            let Some(part) = &clipped else {
                return true;
            };
            let share = self.plan.share(part);
            let mapped = self.map.subfile(self.plan.stored(part));
            let extents = mapped.map_or(&[][..], |mapped| &mapped.extents);
            let end = mapped.and_then(|mapped| mapped.end);
            pieces(share, extents, part.file.raw(), part.bytes, |piece| {
                take(share, end, piece)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use falls::Periodic;

    use super::*;

    #[test]
    fn an_extent_between_two_bytes_of_an_access_has_no_run() {
        let view = Periodic::new(0, 100, "{(0,9)}".parse().unwrap()).unwrap();
        let share = Share::new(&view, &Periodic::everything());
        let runs = |file| {
            let mut runs = Vec::new();
            each_run(&share, file, |left, right, len| {
                runs.push((left, right, len))
            });
            runs
        };
        assert_eq!(runs(0..10), [(0, 0, 10)]);
        assert_eq!(runs(20..40), []);
        assert_eq!(runs(0..110), [(0, 0, 10), (10, 100, 10)]);
    }
}
