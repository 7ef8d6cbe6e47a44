//! Short accesses: runs of the view that lie in one run of shared memory, found again by their offset.
//!
//! ```text
//!  view   0 ......... | run of 2 MiB | run | ...          a hit: lock, find, claim, current?, copy, end, alive?
//! ```
//!
//! A run is learned from an access that turned out to lie in one, and reaches as far as view, subfile and
//! extent do, and as its bytes have one home. Reads go as far in it as the file is known to, writes to its end: they say
//! in the client page how far they store, and reads may go as far from then on. It stays good while its epoch and the step
//! of the layout state do: the size only shrinks by a truncate, which raises the epoch first.
//!
//! Invariants
//! - Whatever changes what an access of the handle means (view, mode, hints, closing) clears the runs
//!   while no other access is under attempt.
//! - `sync` clears them too: only the long way notes which servers have bytes that are not durable.
//! - A hit reads no clock, sends nothing, allocates nothing.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::direct::{MappedSegment, Use};
use falls::MAX_OFFSET;
use kernels::Share;
use parking_lot::RwLock;
use wire::Rights;

use super::attached::Attached;
use super::maps::{Extent, Maps, Piece, pieces};
use super::transfer::LONG;
use crate::access::memory::{self, Direction};
use crate::access::request::Attempt;
use crate::file::handle::Handle;
use crate::session::lane::Lane;

/// Runs that are kept.
const MOST_RUNS: usize = 256;
/// When all are taken, one makes room after so many accesses that found none.
const MISSES_PER_EVICTION: u64 = 64;

/// A run of the view in shared memory.
#[derive(Debug)]
struct Run {
    view: Range<u64>,
    attached: Arc<Attached>,
    entry: u32,
    epoch: u64,
    step: u64,
    segment: Arc<MappedSegment>,
    /// Where the run begins in the segment.
    at: u64,
    mark: u32,
    /// Where it begins in the subfile.
    subfile_at: u64,
    reads: bool,
    /// How far the view is known to have bytes of the file.
    readable_to: AtomicU64,
    /// The word that says how far the subfile is stored into, if it may be.
    end: Option<u32>,
    /// Where the recorder counts bytes of its server.
    recorded_at: usize,
}

/// What a hit came to.
enum Hit {
    /// At the server that the recorder has in this slot.
    Done(usize),
    /// Nothing fits.
    Missed,
    /// Runs are no longer good.
    Void,
    /// They may be used no longer, or not right now, because the file moves.
    Stepped,
}

impl Run {
    /// Whether bytes of the view up to `end` may be moved.
    #[inline]
    fn allows(&self, direction: Direction, end: u64) -> bool {
        match direction {
            Direction::Read => self.reads && end <= self.readable_to.load(Ordering::Relaxed),
            Direction::Write => self.end.is_some() && end <= self.view.end,
        }
    }

    /// Why it is no longer current.
    #[cold]
    fn void(&self) -> Hit {
        match self.attached.table.is_good(self.entry, self.epoch) {
            true => Hit::Stepped,
            false => Hit::Void,
        }
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Quick {
    /// Ascending and apart.
    runs: RwLock<Vec<Run>>,
    /// Bytes of the last access of the handle, if it was a hit; 0 if not.
    last_bytes: AtomicU64,
    /// How the last access was done, if it was a collective one; 0 if not.
    last_collective: AtomicU64,
    /// Accesses that found all runs taken.
    misses: AtomicU64,
}

impl Quick {
    /// Forgets all runs, once accesses that use them are done.
    pub(crate) fn clear(&self) {
        self.runs.write().clear();
    }

    /// Bytes of the last access, if it was a hit.
    pub(crate) fn last_bytes(&self) -> u64 {
        self.last_bytes.load(Ordering::Relaxed)
    }

    /// The last access was none.
    pub(crate) fn was_not_last(&self) {
        self.last_bytes.store(0, Ordering::Relaxed);
        self.last_collective.store(0, Ordering::Relaxed);
    }

    /// Notes how the last access was done by a team.
    pub(crate) fn was_collective(&self, how: u64) {
        self.last_collective.store(how, Ordering::Relaxed);
    }

    /// What was noted, if it still is the last access.
    pub(crate) fn last_collective(&self) -> u64 {
        self.last_collective.load(Ordering::Relaxed)
    }

    /// Finds the run of an access and lets `copy` move the bytes in a claim of it.
    #[inline]
    fn hit(
        &self,
        offset: u64,
        len: u64,
        direction: Direction,
        copy: impl FnOnce(&MappedSegment, u64) -> bool,
    ) -> Hit {
        if len == 0 || len >= LONG {
            return Hit::Missed;
        }
        let runs = self.runs.read();
        let next = runs.partition_point(|run| run.view.end <= offset);
        let Some(run) = runs.get(next) else {
            return Hit::Missed;
        };
        let Some(before) = offset.checked_sub(run.view.start) else {
            return Hit::Missed;
        };
        // No overflow: both are offsets of a view.
        let end = offset + len;
        if !run.allows(direction, end) {
            return Hit::Missed;
        }
        let at = run.at + before;
        let Attached { table, page, .. } = &*run.attached;
        // Memory that is no longer the file's is not brought back by touching it.
        let is_current = || table.is_current(run.entry, run.epoch, run.step);
        if !is_current() {
            return run.void();
        }
        let known = run.at..run.at + (run.view.end - run.view.start);
        let use_ = match direction {
            Direction::Read => Use::Load,
            Direction::Write => Use::Store,
        };
        run.segment.prepare_run(at, len, known, use_);
        let Some(claim) = page.claim(run.entry, run.epoch, direction.is_write()) else {
            return Hit::Missed;
        };
        if !is_current() {
            return run.void();
        }
        if let (Direction::Write, Some(word)) = (direction, run.end) {
            if let Some(mark) = run.mark.checked_sub(1) {
                page.mark(mark);
            }
            page.raise_end(word, run.subfile_at + before + len);
        }
        let is_copied = copy(&run.segment, at);
        if !claim.end() || !table.is_alive() {
            return Hit::Void;
        }
        if !is_copied {
            return Hit::Missed;
        }
        if direction.is_write() && run.readable_to.load(Ordering::Relaxed) < end {
            run.readable_to.fetch_max(end, Ordering::Relaxed);
        }
        self.last_bytes.store(len, Ordering::Relaxed);
        self.last_collective.store(0, Ordering::Relaxed);
        Hit::Done(run.recorded_at)
    }

    /// Whether a run holds this offset, good for this kind of access; it is made so if all that it lacked was to know that the
    /// file goes as far as `readable_to` says for a byte of the view.
    fn has(&self, offset: u64, direction: Direction, readable_to: impl Fn() -> u64) -> bool {
        let runs = self.runs.read();
        let next = runs.partition_point(|run| run.view.end <= offset);
        let run = runs.get(next).filter(|run| run.view.start <= offset);
        run.is_some_and(|run| match direction {
            Direction::Write => run.end.is_some(),
            Direction::Read => {
                let known = readable_to().min(run.view.end);
                run.readable_to.fetch_max(known, Ordering::Relaxed);
                run.allows(direction, offset + 1)
            }
        })
    }

    /// Whether there is room, or it is time to make some.
    fn has_room(&self) -> bool {
        let count = self.runs.read().len();
        count < MOST_RUNS
            || self
                .misses
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(MISSES_PER_EVICTION)
    }

    fn keep(&self, run: Run) {
        let mut runs = self.runs.write();
        if runs.capacity() == 0 {
            // Most of many open files have one.
            runs.reserve_exact(1);
        }
        let first = runs.partition_point(|r| r.view.end <= run.view.start);
        let last = runs.partition_point(|r| r.view.start < run.view.end);
        runs.splice(first..last, [run]);
        if runs.len() > MOST_RUNS {
            // Whichever it is, it comes back if it is needed; the new one stays.
            let at = if first == 0 {
                runs.len() - 1
            } else {
                first / 2
            };
            runs.remove(at);
        }
    }
}

impl Handle {
    /// Moves the bytes if they lie in a known run.
    #[inline]
    pub(crate) fn move_quickly(&self, offset: u64, memory: memory::Run<'_>) -> bool {
        if !self.session.is_ours() {
            return false;
        }
        let (len, direction) = (memory.len() as u64, memory.direction());
        let hit = self
            .direct
            .quick
            .hit(offset, len, direction, |segment, at| match memory {
                memory::Run::From(bytes) => segment.store(at, bytes),
                memory::Run::Into(buffer) => segment.load(at, buffer),
            });
        match hit {
            Hit::Done(slot) => {
                self.record_quickly(direction, offset, len, slot);
                let counters = &self.session.open_files.sharing.counters;
                match direction {
                    Direction::Write => {
                        counters.wrote(len);
                        self.void_ahead();
                    }
                    Direction::Read => counters.read(len),
                }
                true
            }
            Hit::Missed => false,
            Hit::Void => self.quick_is_void(),
            Hit::Stepped => self.quick_has_stepped(),
        }
    }

    #[inline]
    fn record_quickly(&self, direction: Direction, offset: u64, len: u64, slot: usize) {
        if !self.recording.is_on() {
            return;
        }
        let writes = direction.is_write();
        self.recording.counters.moved(slot, writes, len);
        if self.recording.counters.record(writes, offset, len) {
            self.hand_over_old();
        }
    }

    #[cold]
    fn quick_has_stepped(&self) -> bool {
        self.direct.quick.clear();
        false
    }

    #[cold]
    fn quick_is_void(&self) -> bool {
        self.session.open_files.sharing.counters.revoked();
        self.direct.quick.clear();
        false
    }

    /// Remembers the run that a direct access turned out to lie in.
    pub(super) fn learn(&self, lane: &Lane, maps: &Maps, attempt: Attempt<'_>) {
        if attempt.len >= LONG || self.check().is_err() {
            return;
        }
        let [lot] = lane.work.lots() else {
            return;
        };
        let [part] = &lot.parts[..] else {
            return;
        };
        let size = self.known.size();
        if size.epoch != attempt.epoch {
            return;
        }
        // What was just moved is there.
        let size = size.size.max(attempt.file.end.0);
        let readable_to = || attempt.seen.view.len_within(size);
        let quick = &self.direct.quick;
        if quick.has(attempt.lo, attempt.direction, readable_to) || !quick.has_room() {
            return;
        }
        let Some(map) = maps.server(lot.place.server) else {
            return;
        };
        let share = attempt.plan.share(part);
        if !is_run(share, part.file.raw()) {
            return;
        }
        let mut found: Option<(&Extent, Range<u64>)> = None;
        let mut count = 0;
        let Some(mapped) = map.subfile(attempt.plan.stored(part)) else {
            return;
        };
        pieces(
            share,
            &mapped.extents,
            part.file.raw(),
            part.bytes,
            |piece: Piece<'_>| {
                count += 1;
                found = Some((piece.extent, piece.file));
                true
            },
        );
        let (Some((extent, file)), 1) = (found, count) else {
            return;
        };
        let subfile = share.meeting().right();
        // As far as the extent goes.
        let start = subfile.select(extent.offset).unwrap_or(file.start);
        let last = subfile.select(extent.offset + extent.len - 1);
        let end = last.map_or(MAX_OFFSET, |last| last + 1);
        let home = attempt.plan.range(part);
        let (start, end) = (start.max(home.start.0), end.min(home.end.0));
        let end = longest(file.end, end, |end| is_run(share, file.start..end));
        let back = longest(0, file.start.saturating_sub(start), |back| {
            is_run(share, file.start - back..end)
        });
        let start = file.start - back;
        let range = start..end;
        let (Some(view), Some(at)) = (
            share.left_run(range.clone()),
            share.right_run(range.clone()),
        ) else {
            return;
        };
        let subfile_at = at;
        let Some(at) = at.checked_sub(extent.offset) else {
            return;
        };
        let bytes = share.count(range);
        if at + bytes > extent.len {
            return;
        }
        self.direct.quick.keep(Run {
            view: view..view + bytes,
            attached: map.attached.clone(),
            entry: map.entry,
            epoch: map.epoch,
            step: attempt.plan.step(),
            segment: extent.segment.clone(),
            at: extent.at + at,
            mark: extent.mark,
            subfile_at,
            reads: self.identity.rights.allow(Rights::READ),
            readable_to: AtomicU64::new(readable_to().clamp(view, view + bytes)),
            // A run that was read is not written through: a write has to be noted for the next sync.
            end: mapped
                .end
                .filter(|_| attempt.is_write() && extent.is_writable() && !self.identity.is_append),
            recorded_at: self.recording.counters.slot(lot.place.server),
        });
        if self.check().is_err() {
            // The handle went bad meanwhile.
            self.direct.quick.clear();
        }
    }
}

/// Whether the bytes of a file range lie in one run on both sides.
fn is_run(share: &Share, file: Range<u64>) -> bool {
    share.left_run(file.clone()).is_some() && share.right_run(file).is_some()
}

/// The largest number from `good` to `most` of which `holds` is true; it is of all smaller ones.
fn longest(good: u64, most: u64, holds: impl Fn(u64) -> bool) -> u64 {
    if most <= good || holds(most) {
        return most.max(good);
    }
    let (mut good, mut bad) = (good, most);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if holds(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}
