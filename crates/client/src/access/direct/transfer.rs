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
//! Left to others: which servers and parts (`plan`), growing the file (`access`).

use std::ops::Range;
use std::sync::Arc;

use control::moves::crash_point;
use kernels::Share;
use layout::FileSpan;
use wire::Place;
use wire::message::Bytes;
use wire::message::direct::{Map, SubfileRange};

use super::attached::Attached;
use super::maps::{Extent, Maps, Piece, ServerMap, pieces, span};
use crate::access::memory::{Direction, Memory, Run};
use crate::access::plan::Plan;
use crate::access::work::Lot;
use crate::access::{How, file_range};
use crate::file::handle::Handle;
use crate::file::view::HandleView;
use crate::transport::lane::Lane;
use plan::access::Part;

/// User bytes that are copied under one claim: a revocation waits no longer than that takes.
const CHUNK: u64 = 8 << 20;
/// Runs of view and extent from which on described memory needs no packet.
const LONG_RUN: u64 = 1 << 10;
/// Bytes of described memory that are packed at a time, and stay in the cache meanwhile.
const PACKET: u64 = 256 << 10;
/// Accesses of so many bytes ask for maps before they move; shorter ones move first.
pub(crate) const LONG: u64 = 64 << 10;
/// Writes that grow the file go directly if every server gets so many bytes.
const LONG_GROWTH: u64 = 256 << 10;
/// Bytes of a subfile from first to last per byte wanted, up to which extents are made for a write.
const SPARSE: u64 = 32;

/// Bytes of ranges up to which one question is answered in full.
const WHOLE_QUESTION: u64 = 8 << 20;
/// Ranges in one question.
const MOST_RANGES: usize = 4096;

/// What a direct access is about.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) plan: &'a Arc<Plan>,
    pub(crate) seen: &'a HandleView,
    /// View offset and bytes.
    pub(crate) lo: u64,
    pub(crate) len: u64,
    /// The truncate epoch it was planned with.
    pub(crate) epoch: u64,
    pub(crate) writes: bool,
    /// Whether it ends beyond the known size.
    pub(crate) grows: bool,
}

impl<'a> Way<'a> {
    /// It in parts of so many bytes at most, each with the bytes of the access before it.
    fn parts(self, most: u64) -> impl Iterator<Item = (u64, Way<'a>)> {
        (0..self.len).step_by(most as usize).map(move |done| {
            let part = Way {
                lo: self.lo + done,
                len: (self.len - done).min(most),
                ..self
            };
            (done, part)
        })
    }
}

/// Why copying was not done.
enum NotCopied {
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
    pub(crate) fn may_go_directly(&self, how: &How) -> bool {
        self.is_direct()
            && *how == How::default()
            && !self
                .settings
                .is_sieving
                .load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Tries to do the access that is spread over the lots of a lane; whether it is done. If not, it
    /// goes by message.
    pub(crate) fn go_directly(
        &self,
        lane: &mut Lane,
        way: Way<'_>,
        memory: &mut Memory<'_>,
    ) -> bool {
        let counters = &self.session.sharing.counters;
        let (lots, packed) = lane.work.lots_and_packed();
        let is_long_growth = || lots.iter().all(|lot| lot.bytes() >= LONG_GROWTH);
        if way.grows && !is_long_growth() {
            return false;
        }
        let mut maps = self.maps();
        let mut copied = match way.grows {
            // The servers have to know how far it reaches before there is anything to be moved.
            true => Err(NotCopied::Unmapped),
            false => copy(lots, &maps, way, memory, packed),
        };
        if matches!(copied, Err(NotCopied::Unmapped)) {
            drop(maps);
            let is_long = way.len >= LONG;
            let is_time = {
                let mut misses = self.direct.misses.lock();
                misses.missed(is_long);
                is_long && misses.take_due()
            };
            if !is_time || !self.ask_maps(lane, way) {
                counters.fell_back();
                return false;
            }
            self.direct.misses.lock().covered();
            maps = self.maps();
            let (lots, packed) = lane.work.lots_and_packed();
            copied = copy(lots, &maps, way, memory, packed);
        }
        match copied {
            Ok(()) => {}
            Err(NotCopied::Void(server)) => {
                drop(maps);
                Arc::make_mut(&mut *self.direct.maps.lock()).forget(server);
                self.direct.quick.clear();
                counters.revoked();
                counters.fell_back();
                return false;
            }
            Err(NotCopied::Unmapped | NotCopied::NoSlot | NotCopied::Stepped) => {
                counters.fell_back();
                return false;
            }
        }
        match way.writes {
            true => counters.wrote(way.len),
            false => counters.read(way.len),
        }
        self.learn(lane, &maps, way);
        if way.writes {
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

    /// After a short access that went by message: asks where its bytes are, if it is time to.
    pub(crate) fn ask_afterwards(&self, lane: &mut Lane, way: Way<'_>) {
        if way.grows || way.len >= LONG || way.len == 0 {
            return;
        }
        if self.direct.misses.lock().take_due() && self.ask_maps(lane, way) {
            self.direct.misses.lock().covered();
        }
    }

    fn maps(&self) -> Arc<Maps> {
        self.direct.maps.lock().clone()
    }

    /// Asks the servers of an access where its bytes are, and again while that helps: an answer says a
    /// limited number of places. Whether all of them are known then.
    fn ask_maps(&self, lane: &mut Lane, way: Way<'_>) -> bool {
        let mut before = u64::MAX;
        // Whether all was asked for to its end in one question, which counts it.
        let mut is_told = true;
        loop {
            let mut missing = 0;
            for i in 0..lane.work.lots().len() {
                let maps = self.maps();
                let lot = &lane.work.lots()[i];
                let Some(ranges) = unmapped(lot, &maps, way) else {
                    return false;
                };
                drop(maps);
                let wanted = ranges.iter().map(|r| r.end - r.start).sum::<u64>();
                if before == u64::MAX {
                    is_told &= ranges.len() == lot.parts.len() && wanted <= WHOLE_QUESTION;
                }
                if ranges.is_empty() {
                    continue;
                }
                missing += wanted;
                let place = lot.place;
                if missing >= before || self.ask_map(lane, way, place, ranges).is_none() {
                    return false;
                }
            }
            if missing == 0 {
                return !way.grows || self.tell_ends(lane, way, is_told);
            }
            before = missing;
        }
    }

    /// Lets servers whose bytes of a write that grows the file are mapped already count them.
    fn tell_ends(&self, lane: &mut Lane, way: Way<'_>, is_told: bool) -> bool {
        is_told
            || (0..lane.work.lots().len()).all(|i| {
                let lot = &lane.work.lots()[i];
                let place = lot.place;
                let ends = lot.parts.iter().filter_map(|part| {
                    let (span, _) = span(way.plan.share(part), part.file.raw(), part.bytes)?;
                    let (store, subfile) = way.plan.stored(part);
                    Some(SubfileRange {
                        store,
                        subfile,
                        start: span.end - 1,
                        end: span.end,
                    })
                });
                let ends: Vec<SubfileRange> = ends.collect();
                ends.len() <= MOST_RANGES && self.ask_map(lane, way, place, ends).is_some()
            })
    }

    fn ask_map(
        &self,
        lane: &mut Lane,
        way: Way<'_>,
        place: Place,
        ranges: Vec<SubfileRange>,
    ) -> Option<()> {
        self.ready(lane, way.seen, place).ok()?;
        let attached = self.session.attached(lane, place)?;
        let request = Map {
            view: way.seen.number,
            version: Bytes(way.plan.version.clone()),
            epoch: way.epoch,
            writes: way.writes,
            ranges,
        };
        let answer = attached.ask(&self.session, &request)?;
        let mut maps = self.direct.maps.lock();
        Arc::make_mut(&mut *maps).add(way.epoch, &attached, answer);
        Some(())
    }
}

/// Bytes of an access at one server that are not mapped: of each subfile from the first of them on.
/// `None` if they lie too far apart to be written directly: extents between them would be made.
fn unmapped(lot: &Lot, maps: &Maps, way: Way<'_>) -> Option<Vec<SubfileRange>> {
    let mut ranges = Vec::new();
    let map = maps.server(lot.place.server);
    let map = map.filter(|_| maps.are_for(way.epoch));
    for part in &lot.parts {
        let share = way.plan.share(part);
        let Some((span, _)) = span(share, part.file.raw(), part.bytes) else {
            continue;
        };
        let mut start = span.start;
        let extents = map.map_or(&[][..], |map| map.extents(way.plan.stored(part)));
        let is_mapped = pieces(share, extents, part.file.raw(), part.bytes, |piece| {
            let is_good = piece.is_good_for(way.writes);
            if is_good {
                start = piece.subfile.end;
            }
            is_good
        });
        if is_mapped {
            continue;
        }
        if way.writes && (span.end - span.start) / SPARSE > part.bytes {
            return None;
        }
        let (store, subfile) = way.plan.stored(part);
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
    /// Whether it may be stored into, if that is wanted.
    fn is_good_for(&self, writes: bool) -> bool {
        !writes || self.extent.is_writable()
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
    way: Way<'_>,
    memory: &mut Memory<'_>,
    packet: &mut Vec<u8>,
) -> Result<(), NotCopied> {
    if !maps.are_for(way.epoch) {
        return Err(NotCopied::Unmapped);
    }
    let is_run = memory.is_run();
    for (done, chunk) in way.parts(CHUNK) {
        let is_whole = chunk.len == way.len;
        if !is_run && !lies_in_runs(lots, chunk, is_whole) {
            copy_packets(lots, maps, chunk, done, memory, packet)?;
            continue;
        }
        let mut side = match memory.run() {
            Some(run) => Side::Run(run),
            None => Side::Places(memory.first(way.len)),
        };
        copy_chunk(lots, maps, chunk, is_whole, way.lo, &mut side)?;
    }
    Ok(())
}

/// Whether view and subfiles meet in long runs.
fn lies_in_runs(lots: &[Lot], way: Way<'_>, is_whole: bool) -> bool {
    let file = match is_whole {
        true => None,
        false => file_range(way.seen, way.lo, way.len).ok(),
    };
    lots.iter().flat_map(|lot| &lot.parts).all(|part| {
        let clipped = file.map_or(Some(*part), |file| way.plan.clip(part, file));
        let Some(part) = &clipped else {
            return true;
        };
        let share = way.plan.share(part);
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
    way: Way<'_>,
    before: u64,
    memory: &mut Memory<'_>,
    packet: &mut Vec<u8>,
) -> Result<(), NotCopied> {
    if (packet.len() as u64) < PACKET {
        packet.resize(PACKET as usize, 0);
    }
    for (done, part) in way.parts(PACKET) {
        let packed = &mut packet[..part.len as usize];
        let from = before + done;
        match memory.direction() {
            Direction::Write => {
                memory.pack(from, (&mut *packed).into());
                let side = &mut Side::Run((&*packed).into());
                copy_chunk(lots, maps, part, false, part.lo, side)?;
            }
            Direction::Read => {
                let side = &mut Side::Run((&mut *packed).into());
                copy_chunk(lots, maps, part, false, part.lo, side)?;
                memory.unpack(from, (&*packed).into());
            }
        }
    }
    Ok(())
}

/// Copies a chunk of an access. The memory begins with view byte `base`.
fn copy_chunk(
    lots: &[Lot],
    maps: &Maps,
    way: Way<'_>,
    is_whole: bool,
    base: u64,
    side: &mut Side<'_>,
) -> Result<(), NotCopied> {
    let chunk = match is_whole {
        true => None,
        false => {
            let file = file_range(way.seen, way.lo, way.len);
            Some(file.map_err(|_| NotCopied::Unmapped)?)
        }
    };
    for lot in lots {
        let Some(map) = maps.server(lot.place.server) else {
            return Err(NotCopied::Unmapped);
        };
        let turn = Turn {
            plan: way.plan,
            parts: &lot.parts,
            chunk,
            map,
            base,
        };
        turn.copy(side)?;
    }
    Ok(())
}

/// Memory of the user: one run or a packet of it, or scattered.
enum Side<'a> {
    Run(Run<'a>),
    Places(Memory<'a>),
}

impl Side<'_> {
    fn is_write(&self) -> bool {
        match self {
            Side::Run(run) => run.is_write(),
            Side::Places(memory) => memory.direction().is_write(),
        }
    }
}

/// Hands out the runs of a file range: where each begins on either side, and its bytes.
fn each_run(share: &Share, file: Range<u64>, mut take: impl FnMut(u64, u64, u64)) {
    let count = share.count(file.clone());
    if count == 0 {
        // An extent between two bytes of the access.
        return;
    }
    if let (Some(left), Some(right)) = (share.left_run(file.clone()), share.right_run(file.clone()))
    {
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
    fn copy(&self, memory: &mut Side<'_>) -> Result<(), NotCopied> {
        let writes = memory.is_write();
        let Attached {
            server,
            table,
            page,
            ..
        } = &*self.map.attached;
        let (entry, epoch) = (self.map.entry, self.map.epoch);
        let is_current = || table.is_current(entry, epoch, self.plan.step());
        let void = || match table.is_good(entry, epoch) {
            true => Err(NotCopied::Stepped),
            false => Err(NotCopied::Void(*server)),
        };
        // Memory that is no longer the file's is not brought back by touching it.
        if !is_current() {
            return void();
        }
        let is_mapped = self.each(|_, piece| {
            let (at, len) = piece.memory();
            let is_good = piece.is_good_for(writes);
            if is_good {
                piece.extent.segment.make_ready(at, len);
            }
            is_good
        });
        if !is_mapped {
            return Err(NotCopied::Unmapped);
        }
        let Some(claim) = page.claim(entry, epoch, writes) else {
            return Err(NotCopied::NoSlot);
        };
        if !is_current() {
            return void();
        }
        let is_copied = self.each(|share, piece| self.copy_piece(share, &piece, memory));
        if writes {
            crash_point("client_in_copy");
        }
        let counts = claim.end();
        match counts && is_copied && table.is_alive() {
            true => Ok(()),
            false => Err(NotCopied::Void(*server)),
        }
    }

    fn copy_piece(&self, share: &Share, piece: &Piece<'_>, memory: &mut Side<'_>) -> bool {
        let Extent { segment, mark, .. } = piece.extent;
        let (at, len) = piece.memory();
        let (file, offset) = (piece.file.clone(), piece.subfile.start);
        if let (true, Some(mark)) = (memory.is_write(), mark.checked_sub(1)) {
            self.map.attached.page.mark(mark);
        }
        let copied = match memory {
            Side::Run(Run::From(user)) => {
                let target = segment.bytes_mut(at, len);
                share.copy_left_to_right(file, *user, self.base, target, offset)
            }
            Side::Run(Run::Into(user)) => {
                let source = segment.bytes(at, len);
                let target = user.reborrow();
                share.copy_right_to_left(file, source, offset, target, self.base)
            }
            Side::Places(user) => {
                each_run(share, file, |left, right, n| {
                    let (at, from) = (at + (right - offset), left - self.base);
                    match user.direction() {
                        Direction::Write => user.pack(from, segment.bytes_mut(at, n)),
                        Direction::Read => user.unpack(from, segment.bytes(at, n)),
                    }
                });
                Ok(())
            }
        };
        debug_assert!(copied.is_ok(), "{copied:?}");
        copied.is_ok()
    }

    /// Hands out all pieces; false if bytes lie in none, or `take` says no.
    fn each<'a>(&'a self, mut take: impl FnMut(&Share, Piece<'a>) -> bool) -> bool {
        self.parts.iter().all(|part| {
            let clipped = self
                .chunk
                .map_or(Some(*part), |chunk| self.plan.clip(part, chunk));
            let Some(part) = &clipped else {
                return true;
            };
            let share = self.plan.share(part);
            let extents = self.map.extents(self.plan.stored(part));
            pieces(share, extents, part.file.raw(), part.bytes, |piece| {
                take(share, piece)
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
