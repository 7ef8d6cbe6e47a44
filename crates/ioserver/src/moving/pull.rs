//! Fetching bytes of windows into own subfiles of the second piece.
//!
//! Where the bytes are in memory of this server or of one on the same host they are copied once, by the compiled
//! share of both subfiles, from extents to extents. What is elsewhere comes by message, through a buffer. Holes stay
//! holes, and what an earlier attempt may have left in their place is cleared.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use falls::Periodic;
use identity::checksums;
use kernels::{Share, SharedBytes, SharedBytesMut};
use layout::FileOffset;
use store::{Grant, Pins, StoredPiece, Subfile, UNIT};
use wire::ask::{AskError, decode_answer};
use wire::frame::Header;
use wire::link::Link;
use wire::message::access::{Access, Done, READ};
use wire::message::cluster::{Lend, PullWindows};
use wire::seal::SEALED;
use wire::{ServerId, Status, describe};

use super::lend::Lender;
use super::{crash_point, other_round, ranges};
use crate::context::{Cluster, Storage};
use crate::files::{AccessTerms, Files, LocalState, OwnSubfile};
use crate::links::{Links, register_view};
use crate::owner::Owner;
use crate::refused::Refused;
use crate::statistics::add;

/// How often a packet that was damaged on its way is read again.
const MOST_DAMAGES: u32 = 8;
/// Subfile bytes that are granted at a time.
const CHUNK: u64 = 2 << 20;
/// Subfile bytes that all sources fill before the next ones.
const STEP: u64 = 256 << 10;
/// Fewer bytes are not worth another thread, and more threads than this gain nothing.
const WORTH: u64 = 4 << 20;
const MOST_THREADS: usize = 4;
/// The view under which a pulling server registers.
const VIEW: u64 = 1;

/// Shares of subfiles of the first piece with subfiles of the second, kept from round to round.
#[derive(Default)]
pub(super) struct CompiledShares {
    serial: u64,
    shares: HashMap<(u32, u32), Arc<Share>>,
    /// The elements of the first piece, by index.
    elements: HashMap<u32, Arc<Periodic>>,
}

impl CompiledShares {
    fn of(&mut self, known: &LocalState) -> &mut CompiledShares {
        if self.serial != known.serial {
            *self = CompiledShares {
                serial: known.serial,
                ..CompiledShares::default()
            };
        }
        self
    }

    fn element(&mut self, known: &LocalState, source: u32) -> Arc<Periodic> {
        let make = || Arc::new(known.layout().pieces[0].partition.subfile(source as usize));
        Arc::clone(self.elements.entry(source).or_insert_with(make))
    }

    fn share(&mut self, known: &LocalState, source: u32, own: &OwnSubfile) -> Arc<Share> {
        let element = self.element(known, source);
        let make = || Arc::new(Share::new(&element, &own.bytes));
        Arc::clone(self.shares.entry((source, own.index)).or_insert_with(make))
    }
}

/// A run of a subfile of the first piece in memory.
struct Extent<'a> {
    offset: u64,
    bytes: SharedBytes<'a>,
}

impl Extent<'_> {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// What one subfile of the first piece shares with one of the second.
struct Pair<'a> {
    share: Arc<Share>,
    element: Arc<Periodic>,
    from: From<'a>,
}

enum From<'a> {
    /// Ascending; what is missing is a hole.
    Memory(&'a [Extent<'a>]),
    /// A server elsewhere.
    Message(ServerId),
}

/// A subfile of the second piece, and where its bytes come from.
struct Job<'a> {
    own: &'a OwnSubfile,
    subfile: Arc<dyn Subfile>,
    pairs: Vec<Pair<'a>>,
}

impl Job<'_> {
    fn is_in_memory(&self) -> bool {
        let in_memory = |p: &Pair<'_>| matches!(p.from, From::Memory(_));
        self.pairs.iter().all(in_memory)
    }
}

/// What the threads of a pull share.
struct Filling {
    /// The first chunk that no thread has taken.
    next: AtomicUsize,
    /// So much is fetched that it does not stay in the caches.
    is_large: bool,
    has_cleared: AtomicBool,
}

impl Filling {
    fn cleared(&self, was_something: bool) {
        if was_something {
            self.has_cleared.store(true, Ordering::Relaxed);
        }
    }
}

/// Serves [`PullWindows`].
pub(crate) fn pull_windows(
    files: &Files,
    cluster: &Cluster,
    owner: &Owner,
    r: &PullWindows,
) -> Result<u64, Refused> {
    let entry = files.entry(r.file);
    let mut moving = entry.moving.lock();
    let is_current = || entry.round.load(Ordering::SeqCst) == r.round;
    if !is_current() || !entry.is_fenced() {
        return Err(other_round(r.file));
    }
    let known = files.known(&entry)?;
    if known.step() != r.step || known.layout().pieces.len() != 2 {
        return Err(other_round(r.file));
    }
    // Counted, so that a truncate waits.
    let planned = AccessTerms {
        version: known.version(),
        is_server: true,
        ..AccessTerms::default()
    };
    let (running, known, _) = files.enter(owner, &entry, &planned)?;
    if known.step() != r.step {
        return Err(other_round(r.file));
    }
    crash_point("server_during_pull");
    // Cut where ranges of the first piece touch: of each the servers that have it send subfile after subfile.
    let windows = control::moves::meeting(&ranges(&r.windows), &known.layout().pieces[0].ranges);
    let pull = Pull {
        cluster,
        storage: &files.storage,
        lends: files.direct.is_on(),
        known: &known,
        r,
        windows: &windows,
    };
    let (pulled, has_cleared) = pull.run(moving.compiled.of(&known))?;
    drop(running);
    // A client may have mapped what an earlier attempt had left.
    if has_cleared {
        files.void_maps(&entry)?;
    }
    add(&files.storage.statistics.pulled_bytes, pulled);
    crash_point("server_after_pull");
    Ok(pulled)
}

struct Pull<'a> {
    cluster: &'a Cluster,
    storage: &'a Storage,
    /// Memory of other servers of this host may be used.
    lends: bool,
    known: &'a LocalState,
    r: &'a PullWindows,
    windows: &'a [Range<u64>],
}

impl Pull<'_> {
    fn run(&self, compiled: &mut CompiledShares) -> Result<(u64, bool), Refused> {
        let targets: Vec<&OwnSubfile> = self.targets();
        if targets.is_empty() {
            return Ok((0, false));
        }
        let servers = self.sources();
        // Whose memory can be had is asked for all at once.
        let mut lenders: BTreeMap<u64, Lender> = BTreeMap::new();
        let mut pins: BTreeMap<u32, Pins> = BTreeMap::new();
        let own_server = self.storage.identity.server.0;
        for (&server, subfiles) in &servers {
            if server == own_server {
                for &index in subfiles {
                    pins.insert(index, self.pin_own(index)?);
                }
            } else if self.lends
                && let Some(mut lender) = self.cluster.lenders.take(self.cluster, server)
            {
                let lend = Lend {
                    file: self.r.file,
                    round: self.r.round,
                    step: self.r.step,
                    windows: self.r.windows.clone(),
                };
                if lender.ask(&lend)? {
                    lenders.insert(server, lender);
                }
            }
        }
        let mut extents: BTreeMap<u32, Vec<Extent<'_>>> = BTreeMap::new();
        for (&index, pins) in &pins {
            extents.insert(index, pieces_of(pins));
        }
        for (server, lender) in &lenders {
            for &index in &servers[server] {
                extents.insert(index, Vec::new());
            }
            lender.each(|lent, bytes| {
                if let Some(list) = extents.get_mut(&lent.subfile) {
                    list.push(Extent {
                        offset: lent.offset,
                        bytes,
                    });
                }
            });
        }
        let mut jobs = Vec::new();
        for own in targets {
            self.known.check_place(own, &self.storage.identity)?;
            let mut pairs = Vec::new();
            for (server, subfiles) in &servers {
                for &index in subfiles {
                    let share = compiled.share(self.known, index, own);
                    if self.windows.iter().all(|w| share.count(w.clone()) == 0) {
                        continue;
                    }
                    pairs.push(Pair {
                        share,
                        element: compiled.element(self.known, index),
                        from: match extents.get(&index) {
                            Some(list) => From::Memory(list),
                            None => From::Message(ServerId(*server)),
                        },
                    });
                }
            }
            let subfile = self.known.make(own, self.storage)?;
            jobs.push(Job {
                own,
                subfile: Arc::clone(subfile),
                pairs,
            });
        }
        let (sum, has_cleared) = self.fill(&jobs)?;
        drop(jobs);
        drop(extents);
        for (server, lender) in lenders {
            self.cluster.lenders.give(server, lender);
        }
        self.storage.stored.wrote();
        Ok((sum, has_cleared))
    }

    /// Own subfiles of the second piece that get bytes.
    fn targets(&self) -> Vec<&OwnSubfile> {
        let own = self.known.of_piece(1).1.iter();
        let own = own.filter(|own| !self.known.stays(own));
        own.filter(|own| {
            self.windows
                .iter()
                .any(|w| own.bytes.rank(w.start) < own.bytes.rank(w.end))
        })
        .collect()
    }

    /// The subfiles of the first piece that have bytes in the windows, by server.
    fn sources(&self) -> BTreeMap<u64, Vec<u32>> {
        let piece = &self.known.layout().pieces[0];
        let target = &self.known.layout().pieces[1];
        let mut found: Vec<usize> = Vec::new();
        for window in self.windows {
            let range = FileOffset(window.start)..FileOffset(window.end);
            piece
                .partition
                .visit_meeting(range, |index| found.push(index));
        }
        found.sort_unstable();
        found.dedup();
        let mut servers: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for index in found {
            if !control::moves::stays(piece, target, index) {
                let server = piece.places[index][0].server;
                servers.entry(server).or_default().push(index as u32);
            }
        }
        servers
    }

    /// Own bytes of the first piece.
    fn pin_own(&self, index: u32) -> Result<Pins, Refused> {
        let (known, storage) = (self.known, self.storage);
        let mut pins = Pins::new();
        let own = known.of_piece(0).1.iter().find(|own| own.index == index);
        let Some(own) = own else {
            return Ok(pins);
        };
        known.check_place(own, &storage.identity)?;
        let Some(subfile) = known.find(own, &storage.stored)? else {
            return Ok(pins);
        };
        for window in self.windows {
            let part = own.bytes.rank(window.start)..own.bytes.rank(window.end);
            if !part.is_empty() {
                storage.with_room(|| subfile.pin(part.clone(), &mut pins))?;
            }
        }
        Ok(pins)
    }

    /// All bytes of the windows that belong to subfiles of this server; how many, and whether something had been
    /// there that is zero now.
    fn fill(&self, jobs: &[Job<'_>]) -> Result<(u64, bool), Refused> {
        let mut parts: Vec<(&Job<'_>, Range<u64>)> = Vec::new();
        let mut sum = 0;
        for job in jobs {
            let own = job.own;
            for window in self.windows {
                let part = own.bytes.rank(window.start)..own.bytes.rank(window.end);
                let most = match job.is_in_memory() {
                    true => CHUNK,
                    false => CHUNK.min(self.storage.message_bytes),
                };
                sum += part.end - part.start;
                parts.extend(chunks(part, most).map(|chunk| (job, chunk)));
            }
        }
        let filling = Filling {
            next: AtomicUsize::new(0),
            is_large: kernels::writes_past(sum),
            has_cleared: AtomicBool::new(false),
        };
        let work = || -> Result<(), Refused> {
            let mut grant = Grant::new();
            while let Some((job, chunk)) = parts.get(filling.next.fetch_add(1, Ordering::Relaxed)) {
                let filled = self.fill_chunk(job, chunk.clone(), &mut grant, &filling);
                if filled.is_err() {
                    // The others need not go on.
                    filling.next.store(parts.len(), Ordering::Relaxed);
                }
                filled?;
            }
            Ok(())
        };
        let threads = match sum >= WORTH && jobs.iter().all(Job::is_in_memory) {
            true => self.threads(),
            false => 1,
        };
        std::thread::scope(|scope| {
            let start = |_| {
                let name = "pull".to_owned();
                let builder = std::thread::Builder::new().name(name);
                // One that cannot be had is not missed.
                builder.spawn_scoped(scope, work).ok()
            };
            let helpers: Vec<_> = (1..threads).filter_map(start).collect();
            let own = work();
            let panicked = |_| {
                Err(Refused::new(
                    Status::Internal,
                    "a thread of a pull panicked",
                ))
            };
            let theirs = helpers
                .into_iter()
                .map(|helper| helper.join().unwrap_or_else(panicked));
            theirs.fold(own, Result::and)
        })?;
        if self.storage.stored.is_durable() {
            jobs.iter().try_for_each(|job| job.subfile.sync())?;
        }
        Ok((sum, filling.has_cleared.into_inner()))
    }

    /// Threads that this server may use: processors are shared with the servers of this host that fetch too. Twice
    /// their number, because threads that are woken together may begin on one processor while another idles.
    fn threads(&self) -> usize {
        let target = &self.known.layout().pieces[1];
        let mut servers: Vec<u64> = target.places.iter().flatten().map(|p| p.server).collect();
        servers.sort_unstable();
        servers.dedup();
        let host = identity::local_host();
        let is_here = |server: &u64| {
            *server == self.storage.identity.server.0
                || self
                    .cluster
                    .member(ServerId(*server))
                    .is_ok_and(|m| m.local.as_ref().is_some_and(|l| l.host == host))
        };
        let here = servers.iter().filter(|s| is_here(s)).count().max(1);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        (2 * processors / here).clamp(1, processors.min(MOST_THREADS))
    }

    fn fill_chunk(
        &self,
        job: &Job<'_>,
        chunk: Range<u64>,
        grant: &mut Grant,
        filling: &Filling,
    ) -> Result<(), Refused> {
        let (own, pairs) = (job.own, &job.pairs[..]);
        let subfile = &*job.subfile;
        let file = file_range(&own.bytes, &chunk)?;
        if pairs
            .iter()
            .any(|p| matches!(p.from, From::Message(_)) && p.share.count(file.clone()) > 0)
        {
            return self.fill_through_buffer(job, chunk, filling);
        }
        let mut covered = 0;
        for pair in pairs {
            each_meeting(pair, &file, |part, _| {
                covered += pair.share.count(part);
                Ok(())
            })?;
        }
        if covered == chunk.end - chunk.start {
            self.storage.with_room(|| {
                grant.abandon();
                subfile.grant_apart(chunk.clone(), grant)
            })?;
            self.copy(job, grant, filling)?;
            return Ok(grant.commit()?);
        }
        filling.cleared(clear(subfile, &chunk)?);
        if covered == 0 {
            return Ok(());
        }
        if chunk.end - chunk.start > UNIT {
            for part in chunks(chunk, UNIT) {
                self.fill_chunk(job, part, grant, filling)?;
            }
            return Ok(());
        }
        self.storage.with_room(|| {
            grant.abandon();
            subfile.grant_gaps(chunk.clone(), grant)
        })?;
        self.copy(job, grant, filling)?;
        Ok(grant.commit()?)
    }

    fn copy(&self, job: &Job<'_>, grant: &mut Grant, filling: &Filling) -> Result<(), Refused> {
        for (offset, mut bytes) in grant.pieces() {
            let piece = offset..offset + bytes.len() as u64;
            // What several sources fill in turns stays in the cache meanwhile.
            for step in chunks(piece, STEP) {
                let file = file_range(&job.own.bytes, &step)?;
                for pair in &job.pairs {
                    each_meeting(pair, &file, |part, extent| {
                        let copy = match filling.is_large {
                            true => Share::stream_left_to_right,
                            false => Share::copy_left_to_right,
                        };
                        let (source, target) = (extent.bytes, bytes.reborrow());
                        copy(&pair.share, part, source, extent.offset, target, offset)
                            .map_err(Refused::from)
                    })?;
                }
            }
        }
        Ok(())
    }

    fn fill_through_buffer(
        &self,
        job: &Job<'_>,
        chunk: Range<u64>,
        filling: &Filling,
    ) -> Result<(), Refused> {
        let (own, pairs) = (job.own, &job.pairs[..]);
        let subfile = &*job.subfile;
        let file = file_range(&own.bytes, &chunk)?;
        let mut buffer = vec![0; (chunk.end - chunk.start) as usize];
        let mut asked: BTreeMap<ServerId, Vec<&Share>> = BTreeMap::new();
        for pair in pairs {
            match &pair.from {
                From::Memory(_) => each_meeting(pair, &file, |part, extent| {
                    let target = SharedBytesMut::from_slice(&mut buffer);
                    pair.share
                        .copy_left_to_right(part, extent.bytes, extent.offset, target, chunk.start)
                        .map_err(Refused::from)
                })?,
                // In ascending index, as the other side has them.
                From::Message(server) => asked.entry(*server).or_default().push(&pair.share),
            }
        }
        for (server, shares) in asked {
            self.fetch(server, &shares, own, &chunk, &file, &mut buffer)?;
        }
        filling.cleared(clear(subfile, &chunk)?);
        let mut offset = chunk.start;
        for part in buffer.chunks(UNIT as usize) {
            if part.iter().any(|&b| b != 0) {
                self.storage.with_room(|| subfile.write_at(offset, part))?;
            }
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Reads what a server elsewhere has of a range of an own subfile.
    fn fetch(
        &self,
        server: ServerId,
        shares: &[&Share],
        own: &OwnSubfile,
        chunk: &Range<u64>,
        file: &Range<u64>,
        buffer: &mut [u8],
    ) -> Result<(), Refused> {
        let bytes: u64 = shares.iter().map(|s| s.count(file.clone())).sum();
        if bytes == 0 {
            return Ok(());
        }
        let links: Arc<Links> = self.cluster.peers.to(&self.cluster.member(server)?)?;
        let access = Access {
            view: VIEW,
            lo: chunk.start,
            hi: chunk.end,
            bytes,
            epoch: 0,
            number: 0,
            end: 0,
            version: self.known.version(),
        };
        let mut packet = Vec::new();
        let mut damages = 0;
        loop {
            let read = links.with(|link, number, out| {
                read_once(link, number, out, self.r, &own.bytes, &access, &mut packet)
            });
            let mut refused = match read {
                Ok(()) => break,
                Err(e) => Refused::from(e),
            };
            // A bit has turned on the way: it is read again, and whoever began the move hears nothing of it.
            if refused.status == Status::Damaged && damages < MOST_DAMAGES {
                damages += 1;
                continue;
            }
            refused.refusal.text = format!("{server}: {}", refused.refusal.text);
            return Err(refused);
        }
        add(&self.cluster.peers.asked, 2);
        let mut packed = &packet[..];
        for share in shares {
            let n = share.count(file.clone()) as usize;
            let (these, rest) = packed.split_at(n);
            let target = SharedBytesMut::from_slice(&mut *buffer);
            share.scatter_right(file.clone(), these, target, chunk.start)?;
            packed = rest;
        }
        Ok(())
    }
}

fn pieces_of(pins: &Pins) -> Vec<Extent<'_>> {
    pins.pieces()
        .filter_map(|piece| match piece {
            StoredPiece::Bytes { offset, bytes } => Some(Extent { offset, bytes }),
            StoredPiece::Hole { .. } => None,
        })
        .collect()
}

/// Cuts a range at multiples of `step`.
fn chunks(range: Range<u64>, step: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let end = ((at / step + 1) * step).min(range.end);
        let part = at..end;
        at = end;
        (!part.is_empty()).then_some(part)
    })
}

/// From the first to the last file byte of a range of a subfile.
fn file_range(bytes: &Periodic, range: &Range<u64>) -> Result<Range<u64>, Refused> {
    let first = bytes.select(range.start);
    let last = bytes.select(range.end - 1);
    match (first, last) {
        (Some(first), Some(last)) => Ok(first..last + 1),
        _ => Err(Refused::new(
            Status::Internal,
            "a subfile reaches beyond 2^63",
        )),
    }
}

/// The extents of a pair that have bytes of a file range, with the part of it that lies in each.
fn each_meeting(
    pair: &Pair<'_>,
    file: &Range<u64>,
    mut take: impl FnMut(Range<u64>, &Extent<'_>) -> Result<(), Refused>,
) -> Result<(), Refused> {
    let From::Memory(extents) = pair.from else {
        return Ok(());
    };
    let wanted = pair.element.rank(file.start)..pair.element.rank(file.end);
    if wanted.is_empty() {
        return Ok(());
    }
    let first = extents.partition_point(|e| e.end() <= wanted.start);
    for extent in &extents[first..] {
        if extent.offset >= wanted.end {
            break;
        }
        let start = match extent.offset <= wanted.start {
            true => file.start,
            false => pair.element.select(extent.offset).unwrap_or(file.end),
        };
        let end = match extent.end() >= wanted.end {
            true => file.end,
            false => pair.element.select(extent.end()).unwrap_or(file.end),
        };
        let part = start.max(file.start)..end.min(file.end);
        if !part.is_empty() && pair.share.count(part.clone()) > 0 {
            take(part, extent)?;
        }
    }
    Ok(())
}

/// Makes a range zero; whether it was anything else.
fn clear(subfile: &dyn Subfile, range: &Range<u64>) -> Result<bool, Refused> {
    let mut pins = Pins::new();
    let mut bytes = [0; 4096];
    for part in chunks(range.clone(), UNIT) {
        pins.clear();
        subfile.pin(part.clone(), &mut pins)?;
        let has_memory = pins
            .pieces()
            .any(|piece| matches!(piece, StoredPiece::Bytes { .. }));
        pins.clear();
        if !has_memory {
            continue;
        }
        for few in chunks(part, bytes.len() as u64) {
            let bytes = &mut bytes[..(few.end - few.start) as usize];
            subfile.read_at(few.start, bytes)?;
            if bytes.iter().any(|&b| b != 0) {
                subfile.punch(range.clone())?;
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Registers the view and reads through it, on one connection.
fn read_once(
    link: &mut Link,
    number: u64,
    out: &mut Vec<u8>,
    r: &PullWindows,
    view: &Periodic,
    access: &Access<'_>,
    packet: &mut Vec<u8>,
) -> Result<(), AskError> {
    let mut description = Vec::new();
    describe::put_periodic(&mut description, view);
    register_view(link, || number, out, VIEW, r.file, &[], &description)?;
    access.encode(out);
    let header = Header {
        kind: READ,
        status: Status::Ok,
        flags: match checksums().unwrap_or(link.is_tcp()) {
            true => SEALED,
            false => 0,
        },
        request: number,
        control_bytes: 0,
        payload_bytes: 0,
    };
    link.send(header, out, &[])?;
    let (header, control) = link.receive()?;
    if !header.status.is_ok() {
        return decode_answer::<()>(header.status, control);
    }
    Done::decode(control).map_err(AskError::Answer)?;
    if header.payload_bytes != access.bytes || header.kind != READ {
        return Err(AskError::Answer(wire::DecodeError::BadNumber));
    }
    packet.resize(access.bytes as usize, 0);
    Ok(link.receive_sealed(&header, packet)?)
}
