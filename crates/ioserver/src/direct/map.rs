//! `Attach` and `Map`: what a client is given.
//!
//! Bounds: what a request can make the server allocate, list and hand over is limited whatever it
//! says; who asks for more gets a part, and goes by message for the rest or asks again.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};

use serving::Exchange;
use store::{CHUNK, Domain, Location, MAX_LEN, Pins, Segment, Subfile, SubfileId};
use wire::message::direct::{
    AttachAnswer as Answer, Map, MapAnswer, MappedExtent, READ_ONLY, SegmentIs, SubfileEnd,
};
use wire::{MOST_DESCRIPTORS, Rights, Status};

use super::AttachedClient;
use super::ends::HandedEnd;
use super::marks::{HandedExtent, NewMarks};
use super::revoke::Stores;
use crate::access::Fault;
use crate::context::Storage;
use crate::files::{AccessTerms, Files, LocalState};
use crate::owner::Owner;
use crate::refused::Refused;
use crate::sessions::{Session, Who};
use crate::statistics::add;

/// Ranges of one request.
const MOST_RANGES: usize = 4096;
/// Runs of extents in one answer.
const MOST_EXTENTS: usize = 4096;
/// Extents beside what was asked for, unless it is the first map of the file.
const NEIGHBOURS: usize = 16;
/// Bytes that are made for one range, and for one request.
const MADE_OF_RANGE: u64 = 64 << 20;
const MADE_BYTES: u64 = 256 << 20;
/// Asked ranges up to this are read from disk first.
const LOADED_BYTES: u64 = 8 << 20;
/// Bytes of space that was taken for a file and that are handed out at a time.
const TAKEN_BYTES: u64 = 8 << 20;
/// Address space that may wait for a client that does not move, before it gets no map to store with.
const MOST_QUARANTINED: u64 = 1 << 30;

/// The segments that a connection was given, and whether for writing.
#[derive(Default)]
pub(crate) struct GivenSegments(HashMap<u64, (Weak<Segment>, bool)>);

impl GivenSegments {
    /// Those that are closed since.
    fn take_gone(&mut self) -> Vec<u64> {
        let is_gone = |given: &(Weak<Segment>, bool)| given.0.strong_count() == 0;
        let gone = self.0.iter().filter(|(_, given)| is_gone(given));
        let mut gone: Vec<u64> = gone.map(|(&id, _)| id).collect();
        gone.sort_unstable();
        self.0.retain(|_, given| !is_gone(given));
        gone
    }

    /// Whether it has a segment, for writing if that is wanted.
    fn has(&self, id: u64, writes: bool) -> bool {
        self.0.get(&id).is_some_and(|given| given.1 || !writes)
    }
}

/// The user and the process that ask, if it is one with which memory can be shared.
fn asker(session: &Session) -> Result<(u32, u64), Refused> {
    match (session.who, session.process) {
        (Who::Client { user, .. }, Some(pid)) => Ok((user, pid)),
        _ => Err(Refused::new(
            Status::Unsupported,
            "memory is shared with clients over a Unix socket only; go by message",
        )),
    }
}

/// Serves [`Attach`](wire::message::direct::Attach).
pub(crate) fn attach(
    files: &Files,
    session: &mut Session,
    exchange: &mut Exchange,
) -> Result<(), Fault> {
    let (user, pid) = asker(session)?;
    let busy = session.client.begin()?;
    let (attached, table) = files.direct.attach(&session.client, user, pid)?;
    drop(busy);
    let answer = Answer {
        table_bytes: table.len(),
        // Whatever the server does with what comes by message, this is in its memory.
        verifier: files.identity.verifiers.life,
        page_bytes: attached.page.len(),
    };
    let descriptors = [table.descriptor(), attached.page.descriptor()];
    Ok(exchange.answer_with_descriptors(&answer, &descriptors)?)
}

/// Serves [`Map`].
pub(crate) fn map(
    files: &Files,
    owner: &Owner,
    session: &mut Session,
    exchange: &mut Exchange,
    request: &Map,
) -> Result<(), Fault> {
    let (answer, descriptors) = make(files, owner, session, request)?;
    let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(Descriptor::as_fd).collect();
    Ok(exchange.answer_with_descriptors(&answer, &borrowed)?)
}

/// A descriptor to be sent.
enum Descriptor {
    Writing(Arc<Segment>),
    Reading(OwnedFd),
}

impl Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Descriptor::Writing(segment) => segment.descriptor(),
            Descriptor::Reading(file) => file.as_fd(),
        }
    }
}

fn make(
    files: &Files,
    owner: &Owner,
    session: &mut Session,
    request: &Map,
) -> Result<(MapAnswer, Vec<Descriptor>), Refused> {
    asker(session)?;
    let _busy = session.client.begin()?;
    let client = std::sync::Arc::clone(&session.client);
    let _one = client.mapping.lock();
    let attached = session.client.attached().ok_or_else(|| {
        let text = "attach first, then ask for maps";
        Refused::new(Status::Unsupported, text)
    })?;
    let view = session.client.view(request.view)?;
    let wanted = match request.writes {
        true => Rights::WRITE,
        false => Rights::READ,
    };
    view.demand(request.view, wanted)?;
    check(request)?;
    let (storage, direct) = (&*files.storage, &files.direct);
    direct.sweep();
    // A view that may write and a map that is not for that: the client may use it for both.
    let mut may_store = view.rights.allow(Rights::WRITE) && storage.allows_direct_writes();
    if request.writes && !may_store {
        let text = "the bytes of this server are written by message only";
        return Err(Refused::new(Status::Unsupported, text));
    }
    if may_store && direct.quarantined_by(&attached) > MOST_QUARANTINED {
        return Err(Refused::new(
            Status::QuotaExceeded,
            "too much memory waits for threads of this client that were revoked; go by message",
        ));
    }
    if may_store && let Err(refused) = files.announce(owner, &view.entry) {
        if request.writes {
            return Err(refused);
        }
        may_store = false;
    }
    if request.writes && storage.stored.is_durable() {
        make_exposable(files, request)?;
    }
    // Where bytes are in memory is no access to them.
    let planned = AccessTerms {
        version: &request.version.0,
        epoch: request.epoch,
        ..AccessTerms::default()
    };
    let (_running, known, _) = files.enter(owner, &view.entry, &planned)?;
    check_domain(session.who, &known.domain())?;
    let is_first = direct.is_first_map(view.file, &attached);
    // Before the map has a number: making room may void all maps of the file.
    let ranges = prepare(files, &known, request)?;
    direct.set_scarcity(storage.stored.memory.scarcity());
    let (number, entry, epoch) = direct.register(&view.entry, &attached)?;
    let found = find(storage, &known, request, &ranges, number, is_first)?;
    let subfiles: HashMap<SubfileId, Arc<dyn Subfile>> = subfiles(&known, request).collect();
    let words = match may_store {
        true => {
            let handed = found.iter().map(|(id, location)| HandedEnd {
                id: *id,
                subfile: Arc::clone(&subfiles[id]),
                end: location.offset + location.len,
            });
            direct
                .take_ends(&view.entry, &attached, handed)
                .unwrap_or_default()
        }
        false => HashMap::new(),
    };
    let mut marks = match storage.stored.is_durable() {
        false => vec![0; found.len()],
        true => {
            let asked = asked(&known, request, &ranges)?;
            let handing = found.iter().map(|(id, location)| HandedExtent {
                id: *id,
                subfile: &subfiles[id],
                location,
                is_asked: asked.iter().any(|(of, range)| {
                    let end = location.offset + location.len;
                    of == id && location.offset < range.end && range.start < end
                }),
            });
            let stores = match request.writes {
                true => NewMarks::Within(storage.stored.exposable()),
                false => NewMarks::None,
            };
            direct.mark(view.file, &attached, number, stores, handing)
        }
    };
    for ((id, location), mark) in found.iter().zip(&mut marks) {
        if !words.contains_key(id) {
            *mark = READ_ONLY;
        } else if *mark == 0 {
            subfiles[id].let_store(location.offset, number);
        }
    }
    let found = found.into_iter().zip(marks);
    let mut list: Vec<Part> = found
        .map(|((id, location), mark)| Part {
            id,
            location,
            mark,
            writes: may_store && mark != READ_ONLY,
        })
        .collect();
    let mut stores = Stores::default();
    for part in list.iter().filter(|part| part.writes) {
        let Location { offset, len, .. } = part.location;
        stores.insert(part.id, offset..offset + len);
    }
    if !stores.is_empty() {
        view.entry.stored_directly();
        storage.stored.wrote();
    }
    direct.note(view.file, &attached, stores, subfiles.into_iter());
    let (segments, descriptors) = hand_over(&mut session.given, &mut list)?;
    let extents = merge(&list);
    add(&direct.counters.maps, 1);
    add(&direct.counters.mapped_extents, list.len() as u64);
    let answer = MapAnswer {
        entry,
        epoch,
        step: known.step(),
        number,
        extents,
        ends: ends(&words),
        segments,
        gone: session.given.take_gone(),
    };
    Ok((answer, descriptors))
}

/// Makes it so that the client may store into what it asks for, or refuses: what clients can store into without asking, and
/// what is dirty, is bounded.
fn make_exposable(files: &Files, request: &Map) -> Result<(), Refused> {
    let storage = &*files.storage;
    let stored = &storage.stored;
    let asked = request.ranges.iter().map(|r| r.end.saturating_sub(r.start));
    let bytes = asked.fold(0, u64::saturating_add).min(MADE_BYTES);
    if stored.is_short_of(bytes) {
        let text = "the disks may not have room for what is stored directly; go by message";
        return Err(Refused::new(Status::NoSpace, text));
    }
    let collect_and_reclaim = || {
        files.direct.collect_all();
        files.direct.reclaim()
    };
    if stored.exposable() < bytes && !stored.expose(&storage.statistics, bytes, collect_and_reclaim)
    {
        let text = "too much waits to be written to the disks; go by message";
        return Err(Refused::new(Status::NoMemory, text));
    }
    Ok(())
}

/// Which subfile each range of a request is about.
fn asked(
    known: &LocalState,
    request: &Map,
    ranges: &[Range<u64>],
) -> Result<Vec<(SubfileId, Range<u64>)>, Refused> {
    let of = request.ranges.iter().zip(ranges);
    of.map(|(asked, range)| {
        let own = known.own_at(asked.store, asked.subfile)?;
        Ok((known.id(own), range.clone()))
    })
    .collect()
}

/// Refuses a user who could reach files of others through the memory of this one. A segment holds many
/// files of one domain, now and later, and a mapping cannot be taken back; so a user who is neither root nor
/// the one of the server gets memory of files that belong to him, and reads others by message.
fn check_domain(who: Who, domain: &Domain) -> Result<(), Refused> {
    let own = rustix::process::geteuid().as_raw();
    match who {
        Who::Client { user, .. } if user != 0 && user != own && user != domain.owner => {
            Err(Refused::new(
                Status::PermissionDenied,
                "the memory of files of other users is not shared; go by message",
            ))
        }
        _ => Ok(()),
    }
}

fn check(request: &Map) -> Result<(), Refused> {
    let refuse = |text: String| Err(Refused::new(Status::InvalidArgument, text));
    if request.ranges.len() > MOST_RANGES {
        return refuse(format!(
            "ranges: {} are too many; at most {MOST_RANGES} are taken",
            request.ranges.len()
        ));
    }
    let wrong = request
        .ranges
        .iter()
        .find(|r| r.start > r.end || r.end > MAX_LEN);
    match wrong {
        Some(r) => refuse(format!(
            "ranges: {}..{} must ascend and end at {MAX_LEN} at most",
            r.start, r.end
        )),
        None => Ok(()),
    }
}

/// An extent that is handed out.
struct Part {
    id: SubfileId,
    location: Location,
    mark: u32,
    /// Whether the client may store into it.
    writes: bool,
}

/// The words of an answer, in an order.
fn ends(words: &HashMap<SubfileId, u32>) -> Vec<SubfileEnd> {
    let mut ends: Vec<SubfileEnd> = words
        .iter()
        .map(|(id, &end)| SubfileEnd {
            store: id.generation,
            subfile: id.index,
            end,
        })
        .collect();
    ends.sort_unstable_by_key(|e| (e.store, e.subfile));
    ends
}

/// Brings what is asked for into memory; what is missing is made if the client wants to store, and more where it goes on.
/// Returns the ranges, as far as they are answered.
fn prepare(files: &Files, known: &LocalState, request: &Map) -> Result<Vec<Range<u64>>, Refused> {
    let storage = &*files.storage;
    let is_durable = storage.stored.is_durable();
    let most_of_range = match is_durable {
        false => MADE_OF_RANGE,
        // More would push out what others have mapped, and then itself.
        true => MADE_OF_RANGE.min(storage.stored.store().usage().memory_limit_bytes / 4),
    };
    let mut made = 0;
    let mut ranges = Vec::with_capacity(request.ranges.len());
    for asked in &request.ranges {
        let mut range = asked.start..asked.end;
        let own = known.own_at(asked.store, asked.subfile)?;
        known.check_place(own, &storage.identity)?;
        if request.writes && asked.start < asked.end && made < MADE_BYTES {
            let most = most_of_range.min(MADE_BYTES - made);
            let end = asked.end.min(asked.start.saturating_add(most));
            made += end - asked.start;
            // Who waits for room does so by message.
            let subfile = known.make(own, storage)?;
            let ahead = match subfile.is_mappable(asked.start..end) {
                // Space that was taken for the file is handed out in large pieces, as growth is.
                true if end > subfile.len() && !is_durable => {
                    let piece = end..end.saturating_add(TAKEN_BYTES).min(store::MAX_LEN);
                    match subfile.is_mappable(piece.clone()) {
                        true => piece.end,
                        false => end,
                    }
                }
                true => end,
                false => {
                    let usage = storage.stored.store().usage();
                    let room = usage.memory_limit_bytes.saturating_sub(usage.memory_bytes);
                    // What is clean can go; what can be stored into cannot.
                    let room = match is_durable {
                        false => room,
                        true => storage.stored.exposable(),
                    };
                    let windows = &files.direct.windows;
                    windows.ahead(known.id(own), &(asked.start..end), subfile.len(), room)
                }
            };
            subfile.reserve(asked.start..end)?;
            // Apart, so that it goes back by itself.
            if ahead > end && subfile.reserve(end..ahead).is_ok() {
                range.end = range.end.max(ahead);
                // Where memory is scarce it may have pushed out what was asked for.
                if !subfile.is_mappable(asked.start..end) {
                    subfile.reserve(asked.start..end)?;
                }
            }
        } else if is_durable
            && asked.end - asked.start <= LOADED_BYTES
            && let Some(subfile) = known.find(own, &storage.stored)?
        {
            load(&**subfile, &(asked.start..asked.end));
        }
        ranges.push(range);
    }
    Ok(ranges)
}

/// The extents that an answer is about.
fn find(
    storage: &Storage,
    known: &LocalState,
    request: &Map,
    ranges: &[Range<u64>],
    number: u64,
    is_first: bool,
) -> Result<Vec<(SubfileId, Location)>, Refused> {
    let mut list: Vec<(SubfileId, Location)> = Vec::new();
    for (asked, range) in request.ranges.iter().zip(ranges) {
        let own = known.own_at(asked.store, asked.subfile)?;
        let Some(subfile) = known.find(own, &storage.stored)? else {
            continue;
        };
        // Bytes of an earlier protection stay in their segments until they have moved.
        if subfile.identity().domain != known.domain() {
            continue;
        }
        let around = Around {
            subfile: &**subfile,
            room: MOST_EXTENTS.saturating_sub(list.len()),
            number,
        };
        let around = around.find(range.clone(), is_first)?;
        list.extend(around.into_iter().map(|l| (known.id(own), l)));
    }
    list.sort_by_key(|(id, location)| (*id, location.offset));
    list.dedup_by_key(|(id, location)| (*id, location.offset));
    Ok(list)
}

/// The subfiles that a map is about, as far as they exist.
fn subfiles<'a>(
    known: &'a LocalState,
    request: &'a Map,
) -> impl Iterator<Item = (SubfileId, Arc<dyn Subfile>)> + 'a {
    request.ranges.iter().filter_map(|asked| {
        let own = known.own_at(asked.store, asked.subfile).ok()?;
        Some((known.id(own), known.opened(own)?))
    })
}

/// Brings the extents of a range into memory, as far as there is room.
fn load(subfile: &dyn Subfile, range: &Range<u64>) {
    let start = range.start / CHUNK * CHUNK;
    let end = range.end.next_multiple_of(CHUNK).min(MAX_LEN);
    // What cannot be loaded is not handed out, and a client that reads it by message hears why.
    let _ = subfile.pin(start..end, &mut Pins::new());
}

/// Where the extents of an answer are looked for.
struct Around<'a> {
    subfile: &'a dyn Subfile,
    /// How many may be found.
    room: usize,
    /// The number of the map.
    number: u64,
}

impl Around<'_> {
    /// The extents of a range, and some beside it: all, for the first map of a file.
    fn find(&self, range: Range<u64>, is_first: bool) -> Result<Vec<Location>, Refused> {
        let mut found = match range.is_empty() {
            true => Vec::new(),
            false => self.extents(range.clone(), self.room)?,
        };
        let beside = if is_first { self.room } else { NEIGHBOURS };
        let end = found.last().map_or(range.end, |l| l.offset + l.len);
        let left = self.room.saturating_sub(found.len()).min(beside);
        found.extend(self.extents(end.min(MAX_LEN)..MAX_LEN, left)?);
        if is_first {
            let first = found.first().map_or(range.start, |l| l.offset);
            let left = self.room.saturating_sub(found.len());
            found.extend(self.extents(0..first.min(range.start), left)?);
        }
        Ok(found)
    }

    fn extents(&self, range: Range<u64>, most: usize) -> Result<Vec<Location>, Refused> {
        Ok(self.subfile.extents(range, most, self.number)?)
    }
}

/// Which descriptors go with an answer. Extents in segments for which there is no room are left out.
fn hand_over(
    given: &mut GivenSegments,
    list: &mut Vec<Part>,
) -> Result<(Vec<SegmentIs>, Vec<Descriptor>), Refused> {
    let mut segments: Vec<SegmentIs> = Vec::new();
    let mut descriptors = Vec::new();
    let mut kept = Vec::with_capacity(list.len());
    let mut new: HashMap<u64, (Weak<Segment>, bool)> = HashMap::new();
    let writing = list.iter().filter(|part| part.writes);
    let writing: HashSet<u64> = writing.map(|part| part.location.segment.id()).collect();
    for part in list.drain(..) {
        let segment = &part.location.segment;
        let id = segment.id();
        let writes = writing.contains(&id);
        if !given.has(id, writes) && !new.contains_key(&id) {
            if descriptors.len() == MOST_DESCRIPTORS {
                continue;
            }
            descriptors.push(match writes {
                true => Descriptor::Writing(Arc::clone(segment)),
                false => Descriptor::Reading(segment.read_only_descriptor()?),
            });
            segments.push(SegmentIs {
                segment: id,
                bytes: segment.len(),
                is_writable: writes,
            });
            new.insert(id, (Arc::downgrade(segment), writes));
        }
        kept.push(part);
    }
    given.0.extend(new);
    *list = kept;
    Ok((segments, descriptors))
}

/// Extents that follow each other in subfile and segment become one, unless they have marks.
fn merge(list: &[Part]) -> Vec<MappedExtent> {
    let mut merged: Vec<MappedExtent> = Vec::new();
    for part in list {
        let location = &part.location;
        if let Some(last) = merged.last_mut()
            && (last.store, last.subfile) == (part.id.generation, part.id.index)
            && last.mark == part.mark
            && matches!(part.mark, 0 | READ_ONLY)
            && last.segment == location.segment.id()
            && last.offset + last.len == location.offset
            && last.at + last.len == location.segment_offset
        {
            last.len += location.len;
            continue;
        }
        merged.push(MappedExtent {
            store: part.id.generation,
            subfile: part.id.index,
            offset: location.offset,
            len: location.len,
            segment: location.segment.id(),
            at: location.segment_offset,
            mark: part.mark,
        });
    }
    merged
}

impl crate::sessions::Client {
    /// The page of the client, if it attached.
    fn attached(&self) -> Option<Arc<AttachedClient>> {
        match &*self.attached.lock() {
            super::Attachment::Open(attached, _) => Some(Arc::clone(attached)),
            _ => None,
        }
    }
}
