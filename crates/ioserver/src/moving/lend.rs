//! Memory that servers of one host lend each other while a file moves.
//!
//! The lender says where its bytes of fenced windows are and hands over descriptors of their segments, once per
//! connection; the borrower maps them and keeps both, so that nothing but the list of extents travels in a
//! steady state. The fence keeps the bytes as they are and pins keep them where they are.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Weak;
use std::sync::atomic::Ordering;

use ::direct::MappedSegment;
use kernels::SharedBytes;
use parking_lot::Mutex;
use serving::Exchange;
use store::{Pins, Segment};
use wire::ask::AskError;
use wire::link::Link;
use wire::message::cluster::{Lend, LendAnswer, LentExtent};
use wire::message::direct::SegmentIs;
use wire::url::Endpoint;
use wire::{MOST_DESCRIPTORS, ServerId, Status};

use super::{other_round, ranges};
use crate::access::Fault;
use crate::context::Cluster;
use crate::files::Files;
use crate::refused::Refused;
use crate::sessions::Session;

/// Connections that are kept per server.
const IDLE: usize = 4;

/// The segments that were lent on a connection.
#[derive(Default)]
pub(crate) struct LentSegments(HashMap<u64, Weak<Segment>>);

/// Serves [`Lend`].
pub(crate) fn lend(
    files: &Files,
    session: &mut Session,
    exchange: &mut Exchange,
    request: &Lend,
) -> Result<(), Fault> {
    let (lent, descriptors) = make(files, session, request)?;
    let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
    Ok(exchange.answer_with_descriptors(&lent, &borrowed)?)
}

fn make(
    files: &Files,
    session: &mut Session,
    r: &Lend,
) -> Result<(LendAnswer, Vec<OwnedFd>), Refused> {
    let storage = &files.storage;
    if session.process.is_none() || !files.direct.is_on() {
        let text = "memory is lent over a Unix socket only, and by servers that share memory";
        return Err(Refused::new(Status::Unsupported, text));
    }
    let entry = files.entry(r.file);
    let is_current = || entry.round.load(Ordering::SeqCst) == r.round && entry.is_fenced();
    let known = files.known(&entry)?;
    if !is_current() || known.step() != r.step || known.layout().pieces.len() != 2 {
        return Err(other_round(r.file));
    }
    let windows = ranges(&r.windows);
    let mut pins = Pins::new();
    let mut lent = LendAnswer {
        extents: Vec::new(),
        segments: Vec::new(),
        gone: Vec::new(),
    };
    let mut descriptors = Vec::new();
    for own in known.of_piece(0).1.iter().filter(|own| !known.stays(own)) {
        known.check_place(own, &files.identity)?;
        let Some(subfile) = known.find(own, &storage.stored)? else {
            continue;
        };
        for window in &windows {
            let part = own.bytes.rank(window.start)..own.bytes.rank(window.end);
            if part.is_empty() {
                continue;
            }
            let found = storage.with_room(|| subfile.locate(part.clone(), &mut pins))?;
            for location in found {
                let segment = &location.segment;
                let id = segment.id();
                let given = &mut session.lent.0;
                if given.get(&id).is_none_or(|weak| weak.strong_count() == 0) {
                    if descriptors.len() == MOST_DESCRIPTORS {
                        let text = "too many segments; go by message";
                        return Err(Refused::new(Status::Unsupported, text));
                    }
                    descriptors.push(segment.read_only_descriptor()?);
                    lent.segments.push(SegmentIs {
                        segment: id,
                        bytes: segment.len(),
                        is_writable: false,
                    });
                    given.insert(id, std::sync::Arc::downgrade(segment));
                }
                push(
                    &mut lent.extents,
                    LentExtent {
                        store: own.store,
                        subfile: own.index,
                        offset: location.offset,
                        len: location.len,
                        segment: id,
                        at: location.segment_offset,
                    },
                );
            }
        }
    }
    let given = &mut session.lent.0;
    let gone = given.iter().filter(|(_, weak)| weak.strong_count() == 0);
    lent.gone = gone.map(|(&id, _)| id).collect();
    given.retain(|_, weak| weak.strong_count() > 0);
    let mut lending = entry.lending.lock();
    if lending.round != r.round || !is_current() {
        return Err(other_round(r.file));
    }
    lending.pins.push(pins);
    Ok((lent, descriptors))
}

/// Runs that follow each other in subfile and segment become one.
fn push(list: &mut Vec<LentExtent>, next: LentExtent) {
    if let Some(last) = list.last_mut()
        && (last.store, last.subfile, last.segment) == (next.store, next.subfile, next.segment)
        && last.offset + last.len == next.offset
        && last.at + last.len == next.at
    {
        last.len += next.len;
        return;
    }
    list.push(next);
}

/// A connection on which a server lends, and what it has lent.
pub(super) struct Lender {
    link: Link,
    number: u64,
    out: Vec<u8>,
    incarnation: u64,
    segments: HashMap<u64, MappedSegment>,
    lent: Vec<LentExtent>,
}

impl Lender {
    /// Asks for the bytes of windows; `false` if they go by message.
    pub(super) fn ask(&mut self, lend: &Lend) -> Result<bool, Refused> {
        self.number += 1;
        let lent = match self.link.ask(self.number, lend, &mut self.out) {
            Ok(lent) => lent,
            Err(AskError::Refused(Status::Unsupported | Status::NoMemory | Status::NoSpace, _)) => {
                return Ok(false);
            }
            Err(AskError::Link(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        for gone in &lent.gone {
            self.segments.remove(gone);
        }
        let files = self.link.take_descriptors();
        if files.len() != lent.segments.len() {
            return Ok(false);
        }
        for (file, is) in files.iter().zip(&lent.segments) {
            match MappedSegment::map(file.as_fd(), is.bytes, false) {
                Ok(mapped) => self.segments.insert(is.segment, mapped),
                Err(_) => return Ok(false),
            };
        }
        let is_inside = |e: &LentExtent| {
            let segment = self.segments.get(&e.segment);
            segment.is_some_and(|s| s.holds(e.at, e.len))
        };
        if !lent.extents.iter().all(is_inside) {
            return Ok(false);
        }
        for extent in &lent.extents {
            self.segments[&extent.segment].make_ready(extent.at, extent.len);
        }
        self.lent = lent.extents;
        Ok(true)
    }

    /// What it has lent, ascending within each subfile.
    pub(super) fn each<'a>(&'a self, mut take: impl FnMut(&'a LentExtent, SharedBytes<'a>)) {
        for extent in &self.lent {
            let segment = &self.segments[&extent.segment];
            take(extent, segment.bytes(extent.at, extent.len));
        }
    }
}

/// Connections that wait for the next round, by server.
#[derive(Default)]
pub(crate) struct Lenders(Mutex<HashMap<u64, Vec<Lender>>>);

impl Lenders {
    /// A connection to a member of this host; `None` if its memory cannot be had.
    pub(super) fn take(&self, cluster: &Cluster, server: u64) -> Option<Lender> {
        let member = cluster.member(ServerId(server)).ok()?;
        let mut idle = self.0.lock();
        let list = idle.entry(server).or_default();
        list.retain(|lender| lender.incarnation == member.incarnation);
        if let Some(lender) = list.pop() {
            return Some(lender);
        }
        drop(idle);
        let local = member.local.as_ref();
        let local = local.filter(|l| l.host == identity::local_host());
        let address = local.map_or(&member.address, |l| &l.address);
        let endpoint: Endpoint = address.parse().ok()?;
        if !matches!(endpoint, Endpoint::Unix(_)) {
            return None;
        }
        let (mut link, welcome) = cluster.peers.connect_at(&endpoint).ok()?;
        link.expect_descriptors();
        Some(Lender {
            link,
            number: 1,
            out: Vec::new(),
            incarnation: welcome.incarnation,
            segments: HashMap::new(),
            lent: Vec::new(),
        })
    }

    /// Keeps a connection.
    pub(super) fn give(&self, server: u64, lender: Lender) {
        let mut idle = self.0.lock();
        let list = idle.entry(server).or_default();
        if list.len() < IDLE {
            list.push(lender);
        }
    }
}
