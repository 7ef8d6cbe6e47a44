//! Fetching bytes of windows into own subfiles of the second piece.
//!
//! To the plan an own subfile is a view, and a window an access through it: its parts are what the subfiles of the first
//! piece have of it, in the order in which servers send them. Where the bytes are in memory of this server or of one on the
//! same host they are copied once, by the share of both subfiles, from extents to extents. What is elsewhere comes by
//! message, through a buffer. Holes stay holes, and what an earlier attempt may have left in their place is cleared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use falls::Periodic;
use identity::checksums;
use kernels::{Share, SharedBytes, SharedBytesMut};
use layout::{FileSpan, SubfileOffset, SubfileSpan};
use plan::access::{AccessPlan, Part};
use store::{Grant, Pins, StoredPiece, Subfile, UNIT};
use wire::ask::{AskError, decode_answer};
use wire::frame::Header;
use wire::link::Link;
use wire::message::access::{Access, AccessAnswer, READ};
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

/// A run of a subfile of the first piece in memory.
struct Extent<'a> {
    offset: SubfileOffset,
    bytes: SharedBytes<'a>,
}

impl Extent<'_> {
    fn end(&self) -> SubfileOffset {
        SubfileOffset(self.offset.0 + self.bytes.len() as u64)
    }
}

/// Extents by subfile of the first piece, ascending; what is missing is a hole. Subfiles that are not here are elsewhere.
type Extents<'a> = BTreeMap<usize, Vec<Extent<'a>>>;

/// A subfile of the second piece, and where its bytes come from.
struct Target<'a> {
    own: &'a OwnSubfile,
    plan: AccessPlan,
    /// The windows that have bytes of it, each with its parts.
    windows: Vec<(FileSpan, Vec<Part>)>,
}

impl Target<'_> {
    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.windows.iter().flat_map(|(_, parts)| parts)
    }
}

/// A [`Target`] that is being filled.
struct Job<'a> {
    target: &'a Target<'a>,
    subfile: &'a Arc<dyn Subfile>,
    extents: &'a Extents<'a>,
}

impl Job<'_> {
    fn is_in_memory(&self) -> bool {
        let mut parts = self.target.parts();
        parts.all(|part| self.extents.contains_key(&part.home.subfile))
    }

    /// Where a part is in memory of this host.
    fn extents(&self, part: &Part) -> Option<&[Extent<'_>]> {
        self.extents.get(&part.home.subfile).map(|list| &list[..])
    }

    /// The extents that have bytes of a part, each with its part of it.
    fn each_meeting(
        &self,
        part: &Part,
        mut take: impl FnMut(&Share, &Part, &Extent<'_>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let Some(extents) = self.extents(part) else {
            return Ok(());
        };
        let share = self.target.plan.share(part);
        let source = share.meeting().right();
        let (file, wanted) = (part.file.raw(), subfile_span(source, part.file));
        let first = extents.partition_point(|e| e.end() <= wanted.start);
        for extent in extents[first..]
            .iter()
            .take_while(|e| e.offset < wanted.end)
        {
            let start = match extent.offset <= wanted.start {
                true => file.start,
                false => source.select(extent.offset.0).unwrap_or(file.end),
            };
            let end = match extent.end() >= wanted.end {
                true => file.end,
                false => source.select(extent.end().0).unwrap_or(file.end),
            };
            // What lies in one extent has been counted.
            let met = FileSpan::from_raw(start..end);
            if let Some(met) = self.target.plan.clip(part, met) {
                take(share, &met, extent)?;
            }
        }
        Ok(())
    }
}

/// What the threads of a pull share.
struct PullProgress {
    /// The first chunk that no thread has taken.
    next: AtomicUsize,
    /// So much is fetched that it does not stay in the caches.
    is_large: bool,
    has_cleared: AtomicBool,
}

impl PullProgress {
    fn cleared(&self, was_something: bool) {
        if was_something {
            self.has_cleared.store(true, Ordering::Relaxed);
        }
    }
}

/// Serves [`PullWindows`].
pub(crate) fn pull_windows(files: &Files, owner: &Owner, r: &PullWindows) -> Result<u64, Refused> {
    let entry = files.entry(r.file);
    let _moving = entry.moving.lock();
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
    let windows: Vec<FileSpan> = windows.into_iter().map(FileSpan::from_raw).collect();
    let pull = Pull {
        cluster: &files.cluster,
        storage: &files.storage,
        lends: files.direct.is_on(),
        known: &known,
        r,
        windows: &windows,
    };
    let (pulled, has_cleared) = pull.run()?;
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
    windows: &'a [FileSpan],
}

impl Pull<'_> {
    fn run(&self) -> Result<(u64, bool), Refused> {
        let targets: Vec<Target<'_>> = self.targets();
        if targets.is_empty() {
            return Ok((0, false));
        }
        let mut servers: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
        for part in targets.iter().flat_map(Target::parts) {
            let of_server = servers.entry(self.server_of(part).0).or_default();
            of_server.insert(part.home.subfile);
        }
        // Whose memory can be had is asked for all at once.
        let mut lenders: BTreeMap<u64, Lender> = BTreeMap::new();
        let mut pins: BTreeMap<usize, Pins> = BTreeMap::new();
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
        let mut extents: Extents<'_> = BTreeMap::new();
        for (&index, pins) in &pins {
            extents.insert(index, pieces_of(pins));
        }
        for (server, lender) in &lenders {
            for &index in &servers[server] {
                extents.insert(index, Vec::new());
            }
            lender.each(|lent, bytes| {
                if let Some(list) = extents.get_mut(&(lent.subfile as usize)) {
                    list.push(Extent {
                        offset: SubfileOffset(lent.offset),
                        bytes,
                    });
                }
            });
        }
        let mut jobs = Vec::new();
        for target in &targets {
            self.known.check_place(target.own, &self.storage.identity)?;
            jobs.push(Job {
                target,
                subfile: self.known.make(target.own, self.storage)?,
                extents: &extents,
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
    fn targets(&self) -> Vec<Target<'_>> {
        let own = self.known.of_piece(1).1.iter();
        let own = own.filter(|own| !self.known.stays(own));
        let targets = own.map(|own| {
            let plan = self.known.plan_into(own);
            let windows = self.windows.iter().filter_map(|window| {
                let mut parts = Vec::new();
                plan.parts(*window, |part| parts.push(part));
                (!parts.is_empty()).then_some((*window, parts))
            });
            let windows = windows.collect();
            Target { own, plan, windows }
        });
        targets.filter(|t| !t.windows.is_empty()).collect()
    }

    /// The server that has a part.
    fn server_of(&self, part: &Part) -> ServerId {
        let piece = &self.known.layout().pieces[part.home.piece];
        ServerId(piece.places[part.home.subfile][0].server)
    }

    /// Own bytes of the first piece.
    fn pin_own(&self, index: usize) -> Result<Pins, Refused> {
        let (known, storage) = (self.known, self.storage);
        let mut pins = Pins::new();
        let own = known
            .of_piece(0)
            .1
            .iter()
            .find(|own| own.index as usize == index);
        let Some(own) = own else {
            return Ok(pins);
        };
        known.check_place(own, &storage.identity)?;
        let Some(subfile) = known.find(own, &storage.stored)? else {
            return Ok(pins);
        };
        for window in self.windows {
            let part = subfile_span(&own.bytes, *window);
            if !part.is_empty() {
                storage.with_room(|| subfile.pin(part.raw(), &mut pins))?;
            }
        }
        Ok(pins)
    }

    /// All bytes of the windows that belong to subfiles of this server; how many, and whether something had been
    /// there that is zero now.
    fn fill(&self, jobs: &[Job<'_>]) -> Result<(u64, bool), Refused> {
        let mut all: Vec<(&Job<'_>, &[Part], SubfileSpan)> = Vec::new();
        let mut sum = 0;
        for job in jobs {
            let most = match job.is_in_memory() {
                true => CHUNK,
                false => CHUNK.min(self.storage.message_bytes),
            };
            for (window, parts) in &job.target.windows {
                let span = subfile_span(&job.target.own.bytes, *window);
                sum += span.bytes();
                all.extend(chunks(span, most).map(|chunk| (job, &parts[..], chunk)));
            }
        }
        let filling = PullProgress {
            next: AtomicUsize::new(0),
            is_large: kernels::writes_past(sum),
            has_cleared: AtomicBool::new(false),
        };
        let work = || -> Result<(), Refused> {
            let mut grant = Grant::new();
            let next = || all.get(filling.next.fetch_add(1, Ordering::Relaxed));
            while let Some((job, parts, chunk)) = next() {
                let filled = self.fill_chunk(job, parts, *chunk, &mut grant, &filling);
                if filled.is_err() {
                    // The others need not go on.
                    filling.next.store(all.len(), Ordering::Relaxed);
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
        parts: &[Part],
        chunk: SubfileSpan,
        grant: &mut Grant,
        filling: &PullProgress,
    ) -> Result<(), Refused> {
        let subfile = &**job.subfile;
        let file = file_span(&job.target.own.bytes, chunk)?;
        let clip = |part: &Part| job.target.plan.clip(part, file);
        let parts: Vec<Part> = parts.iter().filter_map(clip).collect();
        if parts.iter().any(|part| job.extents(part).is_none()) {
            return self.fill_through_buffer(job, &parts, chunk, filling);
        }
        let mut covered = 0;
        for part in &parts {
            job.each_meeting(part, |_, met, _| {
                covered += met.bytes;
                Ok(())
            })?;
        }
        if covered == chunk.bytes() {
            self.storage.with_room(|| {
                grant.abandon();
                subfile.grant_apart(chunk.raw(), grant)
            })?;
            copy(job, &parts, grant, filling)?;
            return Ok(grant.commit()?);
        }
        filling.cleared(clear(subfile, chunk)?);
        if covered == 0 {
            return Ok(());
        }
        if chunk.bytes() > UNIT {
            for unit in chunks(chunk, UNIT) {
                self.fill_chunk(job, &parts, unit, grant, filling)?;
            }
            return Ok(());
        }
        self.storage.with_room(|| {
            grant.abandon();
            subfile.grant_gaps(chunk.raw(), grant)
        })?;
        copy(job, &parts, grant, filling)?;
        Ok(grant.commit()?)
    }

    fn fill_through_buffer(
        &self,
        job: &Job<'_>,
        parts: &[Part],
        chunk: SubfileSpan,
        filling: &PullProgress,
    ) -> Result<(), Refused> {
        let subfile = &**job.subfile;
        let mut buffer = vec![0; chunk.bytes() as usize];
        let mut asked: BTreeMap<ServerId, Vec<Part>> = BTreeMap::new();
        for part in parts {
            if job.extents(part).is_none() {
                asked.entry(self.server_of(part)).or_default().push(*part);
            }
            job.each_meeting(part, |share, met, extent| {
                let target = SharedBytesMut::from_slice(&mut buffer);
                let (source, base) = (extent.bytes, extent.offset.0);
                share
                    .copy_right_to_left(met.file.raw(), source, base, target, chunk.start.0)
                    .map_err(Refused::from)
            })?;
        }
        for (server, parts) in asked {
            self.fetch(server, job.target, &parts, chunk, &mut buffer)?;
        }
        filling.cleared(clear(subfile, chunk)?);
        let mut offset = chunk.start.0;
        for unit in buffer.chunks(UNIT as usize) {
            if unit.iter().any(|&b| b != 0) {
                self.storage.with_room(|| subfile.write_at(offset, unit))?;
            }
            offset += unit.len() as u64;
        }
        Ok(())
    }

    /// Reads the parts that a server elsewhere has of a chunk: one access through the view that the own subfile is.
    fn fetch(
        &self,
        server: ServerId,
        target: &Target<'_>,
        parts: &[Part],
        chunk: SubfileSpan,
        buffer: &mut [u8],
    ) -> Result<(), Refused> {
        let links: Arc<Links> = self.cluster.peers.to(&self.cluster.member(server)?)?;
        let view = &target.own.bytes;
        let access = Access {
            view: VIEW,
            lo: chunk.start.0,
            hi: chunk.end.0,
            bytes: parts.iter().map(|part| part.bytes).sum(),
            epoch: 0,
            number: 0,
            end: 0,
            version: self.known.version(),
        };
        let mut packet = Vec::new();
        let mut damages = 0;
        loop {
            let read = links.with(|link, number, out| {
                read_once(link, number, out, self.r, view, &access, &mut packet)
            });
            let mut refused = match read {
                Ok(()) => break,
                Err(e) => Refused::from(e),
            };
            // A bit has turned on the way: it is read again, and the coordinator of the move hears nothing of it.
            if refused.status == Status::Damaged && damages < MOST_DAMAGES {
                damages += 1;
                continue;
            }
            refused.refusal.text = format!("{server}: {}", refused.refusal.text);
            return Err(refused);
        }
        add(&self.cluster.peers.asked, 2);
        let mut packed = &packet[..];
        for part in parts {
            let (these, rest) = packed.split_at(part.bytes as usize);
            let memory = SharedBytesMut::from_slice(&mut *buffer);
            let share = target.plan.share(part);
            share.scatter_left(part.file.raw(), these, memory, chunk.start.0)?;
            packed = rest;
        }
        Ok(())
    }
}

fn copy(
    job: &Job<'_>,
    parts: &[Part],
    grant: &mut Grant,
    filling: &PullProgress,
) -> Result<(), Refused> {
    let plan = &job.target.plan;
    for (offset, mut bytes) in grant.pieces() {
        let piece = SubfileSpan::from_raw(offset..offset + bytes.len() as u64);
        // What several sources fill in turns stays in the cache meanwhile.
        for step in chunks(piece, STEP) {
            let file = file_span(&job.target.own.bytes, step)?;
            for part in parts.iter().filter_map(|part| plan.clip(part, file)) {
                job.each_meeting(&part, |share, met, extent| {
                    let copy = match filling.is_large {
                        true => Share::stream_right_to_left,
                        false => Share::copy_right_to_left,
                    };
                    let (source, base) = (extent.bytes, extent.offset.0);
                    copy(
                        share,
                        met.file.raw(),
                        source,
                        base,
                        bytes.reborrow(),
                        offset,
                    )
                    .map_err(Refused::from)
                })?;
            }
        }
    }
    Ok(())
}

fn pieces_of(pins: &Pins) -> Vec<Extent<'_>> {
    pins.pieces()
        .filter_map(|piece| match piece {
            StoredPiece::Bytes { offset, bytes } => Some(Extent {
                offset: SubfileOffset(offset),
                bytes,
            }),
            StoredPiece::Hole { .. } => None,
        })
        .collect()
}

/// Cuts a span at multiples of `step`.
fn chunks(span: SubfileSpan, step: u64) -> impl Iterator<Item = SubfileSpan> {
    let mut at = span.start;
    std::iter::from_fn(move || {
        let end = SubfileOffset((at.0 / step + 1) * step).min(span.end);
        let part = SubfileSpan::new(at, end);
        at = end;
        (!part.is_empty()).then_some(part)
    })
}

/// The bytes of a subfile in a span of the file.
fn subfile_span(bytes: &Periodic, file: FileSpan) -> SubfileSpan {
    SubfileSpan::from_raw(bytes.rank(file.start.0)..bytes.rank(file.end.0))
}

/// From the first to the last file byte of a span of a subfile.
fn file_span(bytes: &Periodic, span: SubfileSpan) -> Result<FileSpan, Refused> {
    let first = bytes.select(span.start.0);
    let last = bytes.select(span.end.0 - 1);
    match (first, last) {
        (Some(first), Some(last)) => Ok(FileSpan::from_raw(first..last + 1)),
        _ => Err(Refused::new(
            Status::Internal,
            "a subfile reaches beyond 2^63",
        )),
    }
}

/// Makes a span zero; whether it was anything else.
fn clear(subfile: &dyn Subfile, span: SubfileSpan) -> Result<bool, Refused> {
    let mut pins = Pins::new();
    let mut bytes = [0; 4096];
    for part in chunks(span, UNIT) {
        pins.clear();
        subfile.pin(part.raw(), &mut pins)?;
        let has_memory = pins
            .pieces()
            .any(|piece| matches!(piece, StoredPiece::Bytes { .. }));
        pins.clear();
        if !has_memory {
            continue;
        }
        for few in chunks(part, bytes.len() as u64) {
            let bytes = &mut bytes[..few.bytes() as usize];
            subfile.read_at(few.start.0, bytes)?;
            if bytes.iter().any(|&b| b != 0) {
                subfile.punch(span.raw())?;
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
    AccessAnswer::decode(control).map_err(AskError::Answer)?;
    if header.payload_bytes != access.bytes || header.kind != READ {
        return Err(AskError::Answer(wire::DecodeError::BadNumber));
    }
    packet.resize(access.bytes as usize, 0);
    Ok(link.receive_sealed(&header, packet)?)
}
