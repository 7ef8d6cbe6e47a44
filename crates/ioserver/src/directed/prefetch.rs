//! Collective read-ahead: the segment that all ranks together will read next, prepared while they compute.
//!
//! After a collective read this server predicts the next one as a whole: the same views and blocks, and for
//! every rank the range that follows, at the distance of the last two. What it does until the request comes is
//! the client's choice ([`Collective`]):
//!
//! ```text
//!  nothing     -
//!  disk        loads the blocks into the store's memory; packets are built when asked for
//!  packets     loads the blocks and builds the packets of the ranks
//!  exchanged   the same, and packets go to the server that sends all of a rank in one message
//! ```
//!
//! When the request comes, the round in hand is finished, what is ready is sent, and the rest goes the usual
//! way. Chapter 6 of source 002.
//!
//! Invariants
//! - Packets in memory are at most `prefetch_bytes`, and at most an eighth of the store's memory.
//! - What was prepared is used for exactly the request that was predicted, with the layout it was prepared with,
//!   and not when anybody wrote into its range since: a write marks it void before it is answered.
//!   Files that clients store into by themselves get the form `disk`.
//! - A wrong prediction costs what was prepared; after two in a row nothing is prepared until the history is
//!   regular again.
//!
//! One thread prepares.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use store::{Piece, Pins};
use wire::FileId;
use wire::message::ahead::Collective;
use wire::message::directed::{Lead, Portion, PortionPart};

use super::distribution::{Compiled, Distribution, RoundPart, Walk};
use crate::access::{Window, piece_range};
use crate::ahead::Wanted;
use crate::context::Context;
use crate::files::{FileEntry, Known, lock};
use crate::statistics::add;

/// Bytes of packets unless the client says otherwise.
const BYTES: u64 = 8 << 20;
/// One part in so many of the store's memory, at most.
const SHARE: u64 = 8;
/// Files whose history is kept.
const FILES: usize = 256;
/// Wrong predictions in a row after which nothing is prepared.
const WRONG: u32 = 2;
/// How long a request waits for the round in hand.
const IN_HAND: Duration = Duration::from_secs(5);

/// The packet of a rank: its portion, and its bytes.
pub(super) struct Packed {
    pub(super) portion: Vec<u8>,
    pub(super) bytes: Vec<u8>,
}

/// A round that is ready to be sent.
pub(super) struct ReadyRound {
    pub(super) parts: Vec<RoundPart>,
    /// By rank.
    pub(super) packets: Vec<Option<Packed>>,
    /// Where the walk stood before it.
    pub(super) walk: Walk,
    bytes: u64,
}

/// What was prepared for a request.
pub(super) struct Ready {
    pub(super) rounds: VecDeque<ReadyRound>,
    /// Where the walk goes on.
    pub(super) walk: Walk,
    watch: Arc<Watch>,
    held: Arc<AtomicU64>,
}

impl Ready {
    /// Whether somebody has written into its range.
    pub(super) fn is_void(&self) -> bool {
        self.watch.is_void()
    }

    /// The next round, whose memory is the caller's now.
    pub(super) fn next(&mut self) -> Option<ReadyRound> {
        let round = self.rounds.pop_front()?;
        self.held.fetch_sub(round.bytes, Ordering::SeqCst);
        Some(round)
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}

/// A range of a file that must not be written while it is watched.
#[derive(Debug)]
pub(crate) struct Watch {
    range: Range<u64>,
    is_void: AtomicBool,
}

impl Watch {
    fn new(range: Range<u64>) -> Watch {
        Watch {
            range,
            is_void: AtomicBool::new(false),
        }
    }

    pub(crate) fn wrote(&self, range: &Range<u64>) {
        if range.start < self.range.end && self.range.start < range.end {
            self.is_void.store(true, Ordering::SeqCst);
        }
    }

    fn is_void(&self) -> bool {
        self.is_void.load(Ordering::SeqCst)
    }
}

/// The preparation of one request.
struct Job {
    entry: Arc<FileEntry>,
    known: Arc<Known>,
    lead: Lead,
    wanted: Wanted,
    watch: Arc<Watch>,
    is_wanted: AtomicBool,
    state: Mutex<JobState>,
    changed: Condvar,
}

#[derive(Default)]
struct JobState {
    is_begun: bool,
    is_over: bool,
    rounds: VecDeque<ReadyRound>,
    walk: Walk,
}

/// What one file was read for.
#[derive(Default)]
struct History {
    last: Option<Lead>,
    before: Option<Lead>,
    next: Option<Arc<Job>>,
    /// What would have been prepared.
    predicted: Option<Lead>,
    wrong: u32,
}

/// All of it at this server.
#[derive(Default)]
pub(crate) struct Prefetch {
    files: Mutex<HashMap<FileId, History>>,
    queue: Mutex<(VecDeque<Arc<Job>>, bool)>,
    wake: Condvar,
    /// Bytes of packets in memory.
    held: Arc<AtomicU64>,
}

/// Whether two requests read the same.
fn is_same(a: &Lead, b: &Lead) -> bool {
    let ranks = |lead: &Lead| -> Vec<(u32, u64, u64)> {
        lead.ranks.iter().map(|r| (r.view, r.lo, r.hi)).collect()
    };
    is_alike(a, b) && ranks(a) == ranks(b)
}

/// Whether they differ in ranges only.
fn is_alike(a: &Lead, b: &Lead) -> bool {
    (a.block_bytes, a.blocks, a.by_record) == (b.block_bytes, b.blocks, b.by_record)
        && a.ranks.len() == b.ranks.len()
        && a.views == b.views
}

/// What follows from the last two requests: the next segment as a whole.
fn predict(last: &Lead, before: Option<&Lead>) -> Option<Lead> {
    let before = before.filter(|before| is_alike(before, last));
    let mut next = last.clone();
    for (i, rank) in next.ranks.iter_mut().enumerate() {
        let len = rank.hi - rank.lo;
        if len == 0 {
            continue;
        }
        let step = match before.map(|b| b.ranks[i]) {
            Some(then) if then.hi - then.lo == len => i128::from(rank.lo) - i128::from(then.lo),
            _ => i128::from(len),
        };
        if step == 0 {
            // The same again: there is nothing to see ahead.
            return None;
        }
        rank.lo = u64::try_from(i128::from(rank.lo) + step).ok()?;
        rank.hi = rank.lo.checked_add(len)?;
        if rank.hi > falls::MAX_OFFSET {
            return None;
        }
    }
    Some(next)
}

impl Prefetch {
    /// A collective read has ended well here: what comes next is prepared.
    pub(super) fn observe(
        &self,
        context: &Context,
        entry: &Arc<FileEntry>,
        lead: &Lead,
        wanted: Wanted,
    ) {
        let mut files = lock(&self.files);
        if files.len() >= FILES && !files.contains_key(&entry.id()) {
            files.retain(|_, history| history.next.is_some());
            if files.len() >= FILES {
                return;
            }
        }
        let history = files.entry(entry.id()).or_default();
        history.before = history.last.replace(lead.clone());
        let last = history.last.as_ref().expect("just put");
        history.predicted = predict(last, history.before.as_ref());
        let next = history.predicted.clone();
        if history.wrong >= WRONG || wanted.collective == Collective::Nothing {
            return;
        }
        let (Some(next), Some(known)) = (next, entry.known()) else {
            return;
        };
        let Some(hull) = hull(&next) else { return };
        let watch = Arc::new(Watch::new(hull));
        entry.watch(&watch);
        let job = Arc::new(Job {
            entry: Arc::clone(entry),
            known,
            lead: next,
            wanted,
            watch,
            is_wanted: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        history.next = Some(Arc::clone(&job));
        drop(files);
        add(&context.statistics.prefetches, 1);
        lock(&self.queue).0.push_back(job);
        self.wake.notify_one();
    }

    /// A request has come: what was prepared for it, if it is the one that was predicted.
    pub(super) fn take(
        &self,
        context: &Context,
        entry: &FileEntry,
        known: &Known,
        lead: &Lead,
    ) -> Option<Ready> {
        let job = {
            let mut files = lock(&self.files);
            let history = files.get_mut(&entry.id())?;
            if let Some(predicted) = history.predicted.take() {
                match is_same(&predicted, lead) {
                    true => history.wrong = 0,
                    false => history.wrong += 1,
                }
            }
            history.next.take()?
        };
        // The round in hand is finished, and no other begun.
        job.is_wanted.store(true, Ordering::SeqCst);
        let deadline = Instant::now() + IN_HAND;
        let mut state = lock(&job.state);
        while state.is_begun && !state.is_over {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = job.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let rounds = std::mem::take(&mut state.rounds);
        let ready = Ready {
            rounds,
            walk: state.walk.clone(),
            watch: Arc::clone(&job.watch),
            held: Arc::clone(&self.held),
        };
        let is_over = state.is_over;
        state.is_over = true;
        drop(state);
        let statistics = &context.statistics;
        if !is_same(&job.lead, lead) {
            add(&statistics.prefetches_wrong, 1);
            return None;
        }
        if ready.is_void() || job.known.serial != known.serial || entry.was_stored_directly() {
            add(&statistics.prefetches_void, 1);
            return None;
        }
        (is_over && !ready.rounds.is_empty()).then_some(ready)
    }

    /// Prepares until [`Prefetch::stop`].
    pub(crate) fn run(&self, context: &Context) {
        loop {
            let job = {
                let mut queue = lock(&self.queue);
                loop {
                    if queue.1 {
                        return;
                    }
                    match queue.0.pop_front() {
                        Some(job) => break job,
                        None => {
                            queue = self
                                .wake
                                .wait(queue)
                                .unwrap_or_else(PoisonError::into_inner);
                        }
                    }
                }
            };
            if std::mem::replace(&mut lock(&job.state).is_begun, true) {
                continue;
            }
            self.prepare(context, &job);
            lock(&job.state).is_over = true;
            job.changed.notify_all();
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        lock(&self.queue).1 = true;
        self.wake.notify_all();
        for history in lock(&self.files).values() {
            if let Some(job) = &history.next {
                job.is_wanted.store(true, Ordering::SeqCst);
            }
        }
    }

    fn prepare(&self, context: &Context, job: &Job) {
        let limit = context.stored.store().usage().memory_limit_bytes / SHARE;
        let most = match job.wanted.bytes {
            0 => BYTES.min(limit),
            bytes => bytes.min(limit),
        };
        let compiled: &Compiled = &context.operations.compiled;
        let Ok(distribution) = Distribution::new(compiled, &job.known, &job.lead, most) else {
            return;
        };
        let builds = job.wanted.collective != Collective::Disk
            && !job.lead.by_record
            && !job.entry.was_stored_directly();
        let mut walk = Walk::default();
        let mut parts = Vec::new();
        let mut loaded = 0;
        loop {
            let is_over = job.is_wanted.load(Ordering::SeqCst) || job.watch.is_void();
            let before = walk.clone();
            distribution.next_round(&mut walk, &mut parts);
            if is_over || parts.is_empty() || !is_inside(context, job, &parts) {
                return;
            }
            let bytes: u64 = (0..distribution.ranks.len())
                .map(|rank| {
                    parts
                        .iter()
                        .map(|p| distribution.count(rank, p))
                        .sum::<u64>()
                })
                .sum();
            if !builds {
                loaded += parts
                    .iter()
                    .map(|p| p.subfile.end - p.subfile.start)
                    .sum::<u64>();
                if loaded > most || !load(context, job, &parts) {
                    return;
                }
                continue;
            }
            let held = self.held.fetch_add(bytes, Ordering::SeqCst) + bytes;
            let packets = match held <= most {
                true => pack_all(context, &distribution, job, &parts),
                false => None,
            };
            let Some(packets) = packets else {
                self.held.fetch_sub(bytes, Ordering::SeqCst);
                return;
            };
            let statistics = &context.statistics;
            statistics
                .prefetch_most_bytes
                .fetch_max(held, Ordering::Relaxed);
            add(&statistics.prefetched_bytes, bytes);
            let mut state = lock(&job.state);
            if state.is_over {
                // Nobody waits for it any more.
                self.held.fetch_sub(bytes, Ordering::SeqCst);
                return;
            }
            state.rounds.push_back(ReadyRound {
                parts: parts.clone(),
                packets,
                walk: before,
                bytes,
            });
            state.walk = walk.clone();
        }
    }
}

/// From the first to the last file byte of a request.
fn hull(lead: &Lead) -> Option<Range<u64>> {
    let mut hull: Option<Range<u64>> = None;
    for rank in lead.ranks.iter().filter(|rank| rank.lo < rank.hi) {
        let view = lead.views.get(rank.view as usize)?;
        let range = layout::ViewOffset(rank.lo)..layout::ViewOffset(rank.hi);
        let file = view.file_range(range)?;
        hull = Some(match hull {
            None => file.start.0..file.end.0,
            Some(hull) => hull.start.min(file.start.0)..hull.end.max(file.end.0),
        });
    }
    hull
}

/// Whether anything of a round was ever written here.
fn is_inside(context: &Context, job: &Job, parts: &[RoundPart]) -> bool {
    parts.iter().any(|part| {
        let own = &job.known.own[part.slot];
        match job.known.find(own, &context.stored) {
            Ok(Some(subfile)) => {
                part.subfile.start < subfile.len() || job.entry.was_stored_directly()
            }
            _ => false,
        }
    })
}

/// Loads the blocks of a round; whether all of them could be.
fn load(context: &Context, job: &Job, parts: &[RoundPart]) -> bool {
    parts.iter().all(|part| {
        let own = &job.known.own[part.slot];
        match job.known.find(own, &context.stored) {
            Ok(Some(subfile)) => subfile.read_ahead(part.subfile.clone()).is_ok(),
            _ => true,
        }
    })
}

/// Reads a round and builds the packets of all ranks.
fn pack_all(
    context: &Context,
    distribution: &Distribution,
    job: &Job,
    parts: &[RoundPart],
) -> Option<Vec<Option<Packed>>> {
    let mut pinned = Vec::with_capacity(parts.len());
    for part in parts {
        let mut pins = Pins::new();
        let own = &job.known.own[part.slot];
        if let Some(subfile) = job.known.find(own, &context.stored).ok()? {
            subfile.pin(part.subfile.clone(), &mut pins).ok()?;
        }
        pinned.push(pins);
    }
    (0..distribution.ranks.len())
        .map(|rank| pack(distribution, rank, parts, &pinned))
        .collect()
}

/// The packet of a rank; `None` outside if it cannot be built, inside if it has no bytes.
fn pack(
    distribution: &Distribution,
    rank: usize,
    parts: &[RoundPart],
    pinned: &[Pins],
) -> Option<Option<Packed>> {
    let mut portion = Portion::default();
    let mut packed = Vec::new();
    for (part, pins) in parts.iter().zip(pinned) {
        let bytes = distribution.count(rank, part);
        if bytes == 0 {
            continue;
        }
        let own = &distribution.known.own[part.slot];
        let share = distribution.share(rank, part.slot);
        let file = distribution.range(rank, part);
        portion.parts.push(PortionPart {
            subfile: own.index,
            start: file.start,
            end: file.end,
            bytes,
        });
        let from = packed.len();
        packed.resize(from + bytes as usize, 0);
        let mut rest = &mut packed[from..];
        let window = Window {
            file,
            subfile: part.subfile.clone(),
            count: bytes,
        };
        for piece in pins.pieces() {
            let (offset, len) = match &piece {
                Piece::Bytes { offset, bytes } => (*offset, bytes.len() as u64),
                Piece::Hole { offset, len } => (*offset, *len),
            };
            let range = piece_range(&own.bytes, &window, offset, len);
            if range.is_empty() {
                continue;
            }
            let n = share.count(range.clone()) as usize;
            let (these, others) = rest.split_at_mut(n.min(rest.len()));
            if let Piece::Bytes { offset, bytes } = piece {
                share.gather_right(range, bytes, offset, these).ok()?;
            }
            rest = others;
        }
    }
    if packed.is_empty() {
        return Some(None);
    }
    let mut control = Vec::new();
    wire::message::encode(&portion, &mut control);
    Some(Some(Packed {
        portion: control,
        bytes: packed,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use layout::View;
    use wire::ClientId;
    use wire::message::Bytes;
    use wire::message::directed::RankRange;

    fn lead(ranges: &[(u64, u64)]) -> Lead {
        let ranks = ranges.iter().map(|(lo, hi)| RankRange {
            client: ClientId(1),
            view: 0,
            lo: *lo,
            hi: *hi,
        });
        Lead {
            view: 1,
            operation: 1,
            writes: false,
            by_record: false,
            block_bytes: 8192,
            blocks: 16,
            epoch: 0,
            version: Bytes::default(),
            ranks: ranks.collect(),
            views: vec![View::whole_file()],
        }
    }

    fn ranges(lead: &Lead) -> Vec<(u64, u64)> {
        lead.ranks.iter().map(|r| (r.lo, r.hi)).collect()
    }

    #[test]
    fn seed002_s74_the_next_segment_follows_from_the_history() {
        // One operation: the segment behind it. A rank without bytes stays without.
        let first = lead(&[(0, 10), (10, 30), (5, 5)]);
        let next = predict(&first, None).unwrap();
        assert_eq!(ranges(&next), [(10, 20), (30, 50), (5, 5)]);
        // Two: the distance between them, forwards and backwards.
        let second = lead(&[(100, 110), (110, 130), (5, 5)]);
        let next = predict(&second, Some(&first)).unwrap();
        assert_eq!(ranges(&next), [(200, 210), (210, 230), (5, 5)]);
        let back = predict(&first, Some(&second));
        assert_eq!(back, None, "before the beginning");
        // Another length: the segment behind it; the same again: nothing.
        let longer = lead(&[(100, 120), (120, 130), (5, 5)]);
        let next = predict(&longer, Some(&first)).unwrap();
        assert_eq!(ranges(&next), [(120, 140), (130, 140), (5, 5)]);
        assert_eq!(predict(&first, Some(&first)), None);
        let far = lead(&[(falls::MAX_OFFSET - 10, falls::MAX_OFFSET)]);
        assert_eq!(predict(&far, None), None);
    }

    #[test]
    fn a_watch_hears_of_writes_into_its_range_only() {
        let watch = Watch::new(10..20);
        watch.wrote(&(0..10));
        watch.wrote(&(20..30));
        assert!(!watch.is_void());
        watch.wrote(&(19..21));
        assert!(watch.is_void());
    }
}
