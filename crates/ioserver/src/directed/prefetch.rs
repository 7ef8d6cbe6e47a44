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
//!   and not when a client wrote into its range since: a write marks it void before it is answered.
//!   Files that clients store into by themselves get the form `disk`.
//! - A wrong prediction costs what was prepared; after two in a row nothing is prepared until the history is
//!   regular again.
//!
//! One thread prepares.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use layout::FileSpan;
use parking_lot::{Condvar, Mutex};
use store::{Pins, StoredPiece as Piece};
use wire::message::Bytes;
use wire::message::ahead::{Collective, Confirm, Deposit};
use wire::message::directed::{Lead, Portion, PortionPart};
use wire::{ClientId, FileId, ServerId};

use super::distribution::{CompiledViews, Distribution, RoundPart, Walk};
use super::exchange::{self, Deposits, Homes};
use crate::access::{Window, piece_range, place_of};
use crate::ahead::ReadAheadTerms;
use crate::context::{Cluster, Storage};
use crate::files::{FileEntry, LocalState};
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
pub(super) struct PackedBytes {
    pub(super) portion: Vec<u8>,
    pub(super) bytes: Vec<u8>,
}

/// A round that is ready to be sent.
pub(super) struct ReadyRound {
    pub(super) parts: Vec<RoundPart>,
    /// By rank.
    pub(super) packets: Vec<Option<PackedBytes>>,
    /// Where the walk stood before it.
    walk: Walk,
    /// Ranks whose packets another server has.
    away: Vec<(usize, ServerId)>,
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
    /// Nothing of this server's own: for packets of others.
    fn empty(held: &Arc<AtomicU64>) -> Ready {
        Ready {
            rounds: VecDeque::new(),
            walk: Walk::default(),
            watch: Arc::new(Watch::new(0..0)),
            held: Arc::clone(held),
        }
    }

    /// Whether a client has written into its range.
    fn is_void(&self) -> bool {
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
    known: Arc<LocalState>,
    lead: Lead,
    wanted: ReadAheadTerms,
    watch: Arc<Watch>,
    /// Differs for any two of this server.
    serial: u64,
    is_wanted: AtomicBool,
    state: Mutex<JobState>,
    changed: Condvar,
    /// Servers that keep packets of it, one for each; this one too.
    away: Mutex<Vec<ServerId>>,
    /// Who sends what, if servers exchange packets: found when it is needed first.
    homes: OnceLock<Arc<Homes>>,
}

impl Job {
    fn homes(&self, storage: &Storage) -> &Arc<Homes> {
        let steps = storage.limits.search_steps;
        let find = || {
            Arc::new(exchange::homes(
                &self.known,
                &self.lead,
                storage.identity.server,
                steps,
            ))
        };
        self.homes.get_or_init(find)
    }
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
pub(crate) struct Prefetch {
    cluster: Arc<Cluster>,
    storage: Arc<Storage>,
    compiled: Arc<CompiledViews>,
    files: Mutex<HashMap<FileId, History>>,
    queue: Mutex<(VecDeque<Arc<Job>>, bool)>,
    wake: Condvar,
    /// Bytes of packets in memory.
    held: Arc<AtomicU64>,
    serials: AtomicU64,
    /// Packets of other servers.
    pub(crate) deposits: Deposits,
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
    pub(super) fn new(
        cluster: &Arc<Cluster>,
        storage: &Arc<Storage>,
        compiled: &Arc<CompiledViews>,
    ) -> Self {
        Prefetch {
            cluster: Arc::clone(cluster),
            storage: Arc::clone(storage),
            compiled: Arc::clone(compiled),
            files: Mutex::default(),
            queue: Mutex::default(),
            wake: Condvar::new(),
            held: Arc::default(),
            serials: AtomicU64::new(0),
            deposits: Deposits::default(),
        }
    }

    fn server(&self) -> ServerId {
        self.storage.identity.server
    }

    /// A collective read has ended well here: what comes next is prepared.
    pub(super) fn observe(&self, entry: &Arc<FileEntry>, lead: &Lead, wanted: ReadAheadTerms) {
        let mut files = self.files.lock();
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
            serial: self.serials.fetch_add(1, Ordering::Relaxed),
            is_wanted: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Condvar::new(),
            away: Mutex::default(),
            homes: OnceLock::new(),
        });
        history.next = Some(Arc::clone(&job));
        drop(files);
        add(&self.storage.statistics.prefetches, 1);
        self.queue.lock().0.push_back(job);
        self.wake.notify_one();
    }

    /// A request has come: what was prepared for it, here and elsewhere.
    pub(super) fn take(
        &self,
        entry: &FileEntry,
        known: &LocalState,
        lead: &Lead,
        wanted: ReadAheadTerms,
    ) -> Option<Ready> {
        let leader = lead.ranks.first()?.client;
        let (job, ready) = match self.take_own(entry, known, lead) {
            Some((job, ready)) => (Some(job), ready),
            None => (None, None),
        };
        if wanted.collective != Collective::Exchanged {
            // What was exchanged for an earlier form would keep the buffer from this one, and no server sends it: what
            // lacks it is no good either.
            self.deposits.forget(entry.id());
            let is_all_here = job.is_none_or(|job| job.away.lock().is_empty());
            return ready.filter(|_| is_all_here);
        }
        let ready = match (job, ready) {
            (Some(job), ready) => self.confirm(&job, lead, leader, ready),
            (None, ready) => ready,
        };
        let packets = self.deposits.take(entry.id(), lead, leader);
        if packets.iter().all(Option::is_none) {
            return ready;
        }
        let mut ready = ready.unwrap_or_else(|| Ready::empty(&self.held));
        let whole = packets.iter().flatten().map(|p| p.bytes.len() as u64).sum();
        add(&self.storage.statistics.prefetch_exchanged_bytes, whole);
        let walk = ready
            .rounds
            .front()
            .map_or_else(Walk::default, |r| r.walk.clone());
        ready.rounds.push_front(ReadyRound {
            parts: Vec::new(),
            packets,
            walk,
            away: Vec::new(),
            bytes: 0,
        });
        Some(ready)
    }

    /// Tells the servers that have packets of ours that they are good for this operation, or are not. Those that
    /// cannot send them any more are built again.
    fn confirm(
        &self,
        job: &Job,
        lead: &Lead,
        leader: ClientId,
        mut ready: Option<Ready>,
    ) -> Option<Ready> {
        let mut away: Vec<ServerId> = job.away.lock().clone();
        away.sort_unstable();
        let is_good = ready.is_some();
        let mut refused = Vec::new();
        while let Some(&server) = away.first() {
            let count = away.iter().filter(|s| **s == server).count();
            away.retain(|s| *s != server);
            let request = Confirm {
                file: job.entry.id(),
                key: exchange::key(&job.lead),
                from: self.server(),
                serial: job.serial,
                packets: if is_good { count as u64 } else { 0 },
                leader,
                operation: lead.operation,
            };
            let is_sent = match server == self.server() {
                true => self.deposits.confirm(&request),
                false => matches!(self.cluster.ask_member(server, &request), Ok(true)),
            };
            if !is_sent {
                refused.push(server);
            }
        }
        if let Some(some) = &mut ready
            && !refused.is_empty()
            && !self.rebuild(job, &refused, &mut some.rounds)
        {
            return None;
        }
        ready
    }

    /// Builds packets again that others were to send; whether all could be. If not, no server sends them: the
    /// ranks get everything as ever, and what others do send is sent twice, which is the same bytes.
    fn rebuild(&self, job: &Job, refused: &[ServerId], rounds: &mut VecDeque<ReadyRound>) -> bool {
        let compiled = &*self.compiled;
        let steps = self.storage.limits.search_steps;
        let made = Distribution::new(compiled, &job.known, &job.lead, u64::MAX, steps, None);
        let Ok(distribution) = made else {
            return false;
        };
        for round in rounds {
            for (rank, server) in std::mem::take(&mut round.away) {
                if !refused.contains(&server) {
                    continue;
                }
                let Some(pinned) = pin_all(&self.storage, job, &round.parts) else {
                    return false;
                };
                match pack(&distribution, rank, &round.parts, &pinned) {
                    Some(packet) => round.packets[rank] = packet,
                    None => return false,
                }
            }
        }
        true
    }

    fn take_own(
        &self,
        entry: &FileEntry,
        known: &LocalState,
        lead: &Lead,
    ) -> Option<(Arc<Job>, Option<Ready>)> {
        let job = {
            let mut files = self.files.lock();
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
        let mut state = job.state.lock();
        while state.is_begun && !state.is_over {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            job.changed.wait_for(&mut state, left);
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
        let statistics = &self.storage.statistics;
        if !is_same(&job.lead, lead) {
            add(&statistics.prefetches_wrong, 1);
            return Some((job, None));
        }
        if ready.is_void() || job.known.serial != known.serial || entry.was_stored_directly() {
            add(&statistics.prefetches_void, 1);
            return Some((job, None));
        }
        let ready = (is_over && !ready.rounds.is_empty()).then_some(ready);
        Some((job, ready))
    }

    /// Prepares until [`Prefetch::stop`].
    pub(crate) fn run(&self) {
        loop {
            let job = {
                let mut queue = self.queue.lock();
                loop {
                    if queue.1 {
                        return;
                    }
                    match queue.0.pop_front() {
                        Some(job) => break job,
                        None => {
                            self.wake.wait(&mut queue);
                        }
                    }
                }
            };
            if std::mem::replace(&mut job.state.lock().is_begun, true) {
                continue;
            }
            self.prepare(&job);
            job.state.lock().is_over = true;
            job.changed.notify_all();
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.queue.lock().1 = true;
        self.wake.notify_all();
        for history in self.files.lock().values() {
            if let Some(job) = &history.next {
                job.is_wanted.store(true, Ordering::SeqCst);
            }
        }
    }

    /// Another server deposits a packet here; whether it is kept.
    pub(crate) fn deposit(&self, request: &Deposit) -> bool {
        // The same read, and the limit that the client of the file gave, as far as that is known here.
        let job = {
            let files = self.files.lock();
            let next = files.get(&request.file).and_then(|h| h.next.as_ref());
            next.cloned()
        };
        match job {
            Some(job) if exchange::key(&job.lead) == request.key => self.keep(&job, request),
            _ => false,
        }
    }

    /// Keeps a packet of a rank whose server this is; whether there is room for it.
    fn keep(&self, job: &Job, request: &Deposit) -> bool {
        let most = most_bytes(&self.storage, job.wanted.bytes);
        let homes = job.homes(&self.storage);
        self.deposits.deposit(
            &self.storage.statistics,
            &self.held,
            request,
            &job.lead,
            homes,
            most,
        )
    }

    /// Deposits packets of a round at the servers of their ranks; those that were kept there.
    fn send_away(&self, job: &Job, packets: &mut [Option<PackedBytes>]) -> Vec<(usize, ServerId)> {
        let homes = job.homes(&self.storage);
        let key = exchange::key(&job.lead);
        let mut away = Vec::new();
        for (rank, home) in homes.of.iter().enumerate() {
            let (Some(home), Some(packet)) = (*home, packets[rank].take()) else {
                continue;
            };
            if packet.bytes.len() > exchange::MOST_PACKET {
                packets[rank] = Some(packet);
                continue;
            }
            let bytes = packet.bytes.len() as u64;
            let request = Deposit {
                file: job.entry.id(),
                key,
                from: self.server(),
                serial: job.serial,
                rank: rank as u64,
                portion: Bytes(packet.portion),
                bytes: Bytes(packet.bytes),
            };
            let is_kept = match home == self.server() {
                true => {
                    // It is counted there from now on.
                    self.held.fetch_sub(bytes, Ordering::SeqCst);
                    let is_kept = self.keep(job, &request);
                    self.held.fetch_add(bytes, Ordering::SeqCst);
                    is_kept
                }
                false => matches!(self.cluster.ask_member(home, &request), Ok(true)),
            };
            match is_kept {
                true => {
                    away.push((rank, home));
                    job.away.lock().push(home);
                }
                false => {
                    packets[rank] = Some(PackedBytes {
                        portion: request.portion.0,
                        bytes: request.bytes.0,
                    });
                }
            }
        }
        away
    }

    fn prepare(&self, job: &Job) {
        let most = most_bytes(&self.storage, job.wanted.bytes);
        let compiled = &*self.compiled;
        let steps = self.storage.limits.search_steps;
        let made = Distribution::new(compiled, &job.known, &job.lead, most, steps, None);
        let Ok(distribution) = made else {
            return;
        };
        let builds = job.wanted.collective != Collective::Disk
            && !job.lead.by_record
            && !job.entry.was_stored_directly();
        let exchanges = builds && job.wanted.collective == Collective::Exchanged;
        let mut walk = Walk::default();
        let mut parts = Vec::new();
        let mut loaded = 0;
        loop {
            let is_over = job.is_wanted.load(Ordering::SeqCst) || job.watch.is_void();
            let before = walk.clone();
            let found = distribution.next_round(&mut walk, &mut parts);
            if is_over
                || found.is_err()
                || parts.is_empty()
                || !is_inside(&self.storage, job, &parts)
            {
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
                loaded += parts.iter().map(|p| p.subfile.bytes()).sum::<u64>();
                if loaded > most || !load(&self.storage, job, &parts) {
                    return;
                }
                continue;
            }
            let held = self.held.fetch_add(bytes, Ordering::SeqCst) + bytes;
            let held = held + self.deposits.bytes();
            let packets = match held <= most {
                true => pack_all(&self.storage, &distribution, job, &parts),
                false => None,
            };
            let Some(mut packets) = packets else {
                self.held.fetch_sub(bytes, Ordering::SeqCst);
                return;
            };
            let away = match exchanges {
                true => self.send_away(job, &mut packets),
                false => Vec::new(),
            };
            let left: u64 = packets.iter().flatten().map(|p| p.bytes.len() as u64).sum();
            self.held.fetch_sub(bytes - left, Ordering::SeqCst);
            let statistics = &self.storage.statistics;
            statistics
                .prefetch_most_bytes
                .fetch_max(held, Ordering::Relaxed);
            add(&statistics.prefetched_bytes, bytes);
            let mut state = job.state.lock();
            if state.is_over {
                // The request has gone on without it.
                self.held.fetch_sub(left, Ordering::SeqCst);
                return;
            }
            state.rounds.push_back(ReadyRound {
                parts: parts.clone(),
                packets,
                walk: before,
                away,
                bytes: left,
            });
            state.walk = walk.clone();
        }
    }
}

/// Bytes of packets that a server holds at most.
fn most_bytes(storage: &Storage, wanted: u64) -> u64 {
    let limit = storage.stored.store().usage().memory_limit_bytes / SHARE;
    match wanted {
        0 => BYTES.min(limit),
        bytes => bytes.min(limit),
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
fn is_inside(storage: &Storage, job: &Job, parts: &[RoundPart]) -> bool {
    parts.iter().any(|part| {
        let own = &job.known.own[part.slot];
        match job.known.find(own, &storage.stored) {
            Ok(Some(subfile)) => {
                part.subfile.start.0 < subfile.len() || job.entry.was_stored_directly()
            }
            _ => false,
        }
    })
}

/// Loads the blocks of a round; whether all of them could be.
fn load(storage: &Storage, job: &Job, parts: &[RoundPart]) -> bool {
    parts.iter().all(|part| {
        let own = &job.known.own[part.slot];
        match job.known.find(own, &storage.stored) {
            Ok(Some(subfile)) => subfile.read_ahead(part.subfile.raw()).is_ok(),
            Ok(None) => true,
            Err(_) => false,
        }
    })
}

/// Reads a round and builds the packets of all ranks.
fn pack_all(
    storage: &Storage,
    distribution: &Distribution,
    job: &Job,
    parts: &[RoundPart],
) -> Option<Vec<Option<PackedBytes>>> {
    let pinned = pin_all(storage, job, parts)?;
    (0..distribution.ranks.len())
        .map(|rank| pack(distribution, rank, parts, &pinned))
        .collect()
}

fn pin_all(storage: &Storage, job: &Job, parts: &[RoundPart]) -> Option<Vec<Pins>> {
    let mut pinned = Vec::with_capacity(parts.len());
    for part in parts {
        let mut pins = Pins::new();
        let own = &job.known.own[part.slot];
        if let Some(subfile) = job.known.find(own, &storage.stored).ok()? {
            subfile.pin(part.subfile.raw(), &mut pins).ok()?;
        }
        pinned.push(pins);
    }
    Some(pinned)
}

/// The packet of a rank; `None` outside if it cannot be built, inside if it has no bytes.
fn pack(
    distribution: &Distribution,
    rank: usize,
    parts: &[RoundPart],
    pinned: &[Pins],
) -> Option<Option<PackedBytes>> {
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
            file: FileSpan::from_raw(file),
            subfile: part.subfile,
            count: bytes,
        };
        for piece in pins.pieces() {
            let (offset, len) = place_of(&piece);
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
    Some(Some(PackedBytes {
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
