//! Accesses to bytes: what reads and writes have in common.
//!
//! The part of this server is its subfiles in ascending index, of each the bytes of the range in
//! ascending file order. Where such bytes lie in one run in the subfile they go straight between
//! socket and extents; otherwise through a staging buffer, in rounds, and between buffer and extents
//! by the compiled share. Consecutive subfiles that go through a buffer fill it together.
//!
//! Invariants
//! - The sum over the subfiles is what the request says, or it is refused before a byte moves. Counting stops above
//!   what the request says, and after as many steps as that pays for ([`bounded`](crate::bounded)).
//! - Little is pinned at a time: a window of a subfile.
//! - What a refused write has sent is dropped, so the connection stays in step.

pub(crate) mod read;
pub(crate) mod write;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use falls::Periodic;
use kernels::Share;
use layout::{FileSpan, SubfileSpan, ViewOffset, ViewSpan};
use serving::Exchange;
use store::StoredPiece as Piece;
use wire::link::LinkError;
use wire::message::access::{Access, DATA, FORWARDED, GO, NEWER};
use wire::{Rights, Status};

use crate::bounded::Search;
use crate::context::Storage;
use crate::files::{AccessTerms, Files, GatePass, LocalState};
use crate::owner::Owner;
use crate::refused::Refused;
use crate::sessions::{Busy, Connection, Session};
use crate::statistics::add;
use crate::views::RegisteredView;
use plan::access::Shares;

/// Subfile bytes that are granted or pinned at a time.
const WINDOW: u64 = 2 << 20;
/// Subfile bytes that are granted or pinned at a time where bytes lie far apart: extents between them shall not be
/// allocated.
const SPARSE_WINDOW: u64 = store::UNIT;
/// Payloads up to this go through a buffer of the connection.
const SMALL: usize = 64 << 10;
/// Of a buffer so much is used at a time where bytes are in memory anyway: what was packed is still near the
/// processor when it is sent, and what was received when it is put in place.
const NEAR: usize = 256 << 10;
/// A run of this length goes straight even if its neighbours do not.
const STRAIGHT: u64 = 16 << 10;
/// Places handed to the system at a time.
const PLACES: usize = 64;

/// The bytes of a request that lie in one subfile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Position in the subfiles that are here.
    slot: usize,
    /// The part of the request's file range that its piece of the layout governs.
    file: FileSpan,
    /// Bytes.
    count: u64,
    /// Where they begin in the subfile, if they lie there in one run.
    run: Option<u64>,
}

/// Why an access ended early.
pub(crate) enum Fault {
    /// The connection is of no further use.
    Link(LinkError),
    /// To be answered.
    Refused(Refused),
}

impl From<LinkError> for Fault {
    fn from(error: LinkError) -> Self {
        match error {
            // The connection is in step: the sender is told, and may send it again.
            LinkError::Damaged => Fault::Refused(Refused::new(
                Status::Damaged,
                "bytes were damaged on the way here: they do not fit their checksum; send them again",
            )),
            error => Fault::Link(error),
        }
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Fault::Link(LinkError::Io(error))
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        Fault::Refused(refused)
    }
}

impl From<store::Error> for Fault {
    fn from(error: store::Error) -> Self {
        Fault::Refused(error.into())
    }
}

impl From<kernels::BoundsError> for Fault {
    fn from(error: kernels::BoundsError) -> Self {
        Fault::Refused(error.into())
    }
}

/// Where a piece of a subfile begins, and its length.
pub(crate) fn place_of(piece: &Piece<'_>) -> (u64, u64) {
    match piece {
        Piece::Bytes { offset, bytes } => (*offset, bytes.len() as u64),
        Piece::Hole { offset, len } => (*offset, *len),
    }
}

/// Tells the sender of an announced write that there is room, and takes the frame that has its bytes.
pub(crate) fn receive_announced(exchange: &mut Exchange) -> Result<(), Fault> {
    exchange.send(Status::Ok, GO, &[], &[])?;
    exchange.receive_next()?;
    if exchange.header().kind != DATA {
        let text = "an announced write is followed by its data";
        return Err(Refused::new(Status::Malformed, text).into());
    }
    Ok(())
}

/// A payload of another length than the request says.
pub(crate) fn wrong_payload(said: u64, sent: u64) -> Fault {
    let text = format!("payload: {sent} bytes were sent where the request says {said}");
    Refused::new(Status::InvalidArgument, text).into()
}

/// What was spent on an access so far.
#[derive(Default)]
pub(crate) struct Expense {
    pub(crate) waited: Duration,
    pub(crate) copied: Duration,
    pub(crate) rounds: u64,
}

/// An access that was let in.
pub(crate) struct OpenAccess {
    _running: GatePass,
    _busy: Busy,
    /// Counts it for the client that another server works for.
    _busy_for: Option<Busy>,
    pub(crate) view: Arc<RegisteredView>,
    pub(crate) known: Arc<LocalState>,
    pub(crate) shares: Arc<Shares>,
    /// View range of the request.
    pub(crate) range: ViewSpan,
    /// File range of the request.
    pub(crate) file: FileSpan,
    pub(crate) bytes: u64,
    pub(crate) epoch: u64,
    pub(crate) end: u64,
    /// There is a newer state than the one it was planned with.
    pub(crate) is_older: bool,
}

impl Part {
    fn file(&self) -> Range<u64> {
        self.file.raw()
    }
}

impl OpenAccess {
    /// Flags that every answer to it has.
    pub(crate) fn flags(&self) -> u16 {
        if self.is_older { NEWER } else { 0 }
    }

    fn share(&self, part: &Part) -> &Share {
        self.known.share(&self.shares, part.slot)
    }

    fn subfile_bytes(&self, part: &Part) -> &Periodic {
        &self.known.own[part.slot].bytes
    }
}

/// Checks a request and lets it in.
pub(crate) fn open(
    files: &Files,
    owner: &Owner,
    session: &mut Session,
    exchange: &Exchange,
    rights: Rights,
) -> Result<OpenAccess, Refused> {
    let access = Access::decode(exchange.control())?;
    let flags = exchange.header().flags;
    let opened = admit(files, owner, session, &access, rights, flags)?;
    let (connection, parts) = (&session.connection, &mut session.scratch.parts);
    find_parts(&files.storage, connection, &opened, parts)?;
    Ok(opened)
}

/// Checks a request and lets it in; its parts are found later.
pub(crate) fn admit(
    files: &Files,
    owner: &Owner,
    session: &Session,
    access: &Access<'_>,
    rights: Rights,
    flags: u16,
) -> Result<OpenAccess, Refused> {
    let storage = &*files.storage;
    let busy = session.client.begin()?;
    let view = session.client.view(access.view)?;
    let is_forwarded = flags & FORWARDED != 0;
    let busy_for = match (is_forwarded, session.is_server(), view.works_for) {
        (false, _, None) => None,
        (true, true, Some(client)) => {
            add(&storage.statistics.forwarded, 1);
            add(&storage.statistics.forwarded_bytes, access.bytes);
            Some(files.sessions.begin_for(client)?)
        }
        (true, false, _) => {
            let text = "only servers forward requests";
            return Err(Refused::new(Status::PermissionDenied, text));
        }
        (true, true, None) | (false, _, Some(_)) => {
            return Err(Refused::new(
                Status::PermissionDenied,
                "a request is forwarded through a view of the client that it is for, and nothing else \
                 goes through such a view",
            ));
        }
    };
    view.demand(access.view, rights)?;
    if access.bytes > storage.message_bytes {
        let text = format!(
            "{} bytes in one message; at most {} are taken",
            access.bytes, storage.message_bytes
        );
        return Err(Refused::new(Status::TooLarge, text));
    }
    let range = ViewOffset(access.lo)..ViewOffset(access.hi);
    let Some(file) = view.view.file_range(range) else {
        let text = format!(
            "range {}..{} has no bytes in view {}",
            access.lo, access.hi, access.view
        );
        return Err(Refused::new(Status::InvalidArgument, text));
    };
    let planned = AccessTerms {
        version: access.version,
        file: Some(file.start.0..file.end.0),
        holder: crate::ops::holder(session, view.file),
        works_for: view.works_for.filter(|_| is_forwarded),
        epoch: access.epoch,
        number: access.number,
        is_server: session.is_server() && !is_forwarded,
        only_reads: !rights.allow(Rights::WRITE),
    };
    session.connection.busy_with(view.file);
    let (running, known, is_older) = files.enter(owner, &view.entry, &planned)?;
    let shares = view.shares(&known);
    if !planned.is_server {
        let writes = rights.allow(Rights::WRITE);
        view.used
            .record(writes, access.lo, access.bytes, files.identity.server);
    }
    Ok(OpenAccess {
        _running: running,
        _busy: busy,
        _busy_for: busy_for,
        view,
        known,
        shares,
        range: ViewSpan::from_raw(access.lo..access.hi),
        file: file.into(),
        bytes: access.bytes,
        epoch: access.epoch,
        end: access.end,
        is_older,
    })
}

/// What of the request lies in which subfile here.
pub(crate) fn find_parts(
    storage: &Storage,
    connection: &Connection,
    opened: &OpenAccess,
    parts: &mut Vec<Part>,
) -> Result<(), Refused> {
    parts.clear();
    let known = &opened.known;
    let mut sum = 0u64;
    let described = opened.view.description_bytes();
    let base = storage.limits.search_steps;
    let mut searching = Search::new(base, opened.bytes, described, Some(connection));
    known.try_visit_own(opened.file, |slot, file| {
        let share = known.share(&opened.shares, slot);
        let count = searching.count(share, file.raw(), opened.bytes - sum)?;
        if count > opened.bytes - sum {
            let text = format!(
                "bytes: the request says {}, but more of its range are here",
                opened.bytes
            );
            return Err(Refused::new(Status::InvalidArgument, text));
        }
        if count > 0 {
            sum += count;
            parts.push(Part {
                slot,
                file,
                count,
                run: share.right_run(file.raw()),
            });
        }
        Ok(())
    })?;
    for part in parts.iter() {
        let own = &known.own[part.slot];
        known.check_place(own, &storage.identity)?;
    }
    if sum != opened.bytes {
        let text = format!(
            "bytes: the request says {}, but {sum} bytes of its range are here",
            opened.bytes
        );
        return Err(Refused::new(Status::InvalidArgument, text));
    }
    Ok(())
}

/// A run of parts that move in the same way.
pub(crate) enum Stretch {
    /// One part, straight, from this subfile offset on.
    Straight(usize, u64),
    /// These parts through a buffer, so many bytes in all.
    Staged(Range<usize>, u64),
}

/// Cuts the parts of a request into stretches.
pub(crate) fn stretches(parts: &[Part]) -> impl Iterator<Item = Stretch> + '_ {
    let straight = move |part: &Part| {
        part.run
            .filter(|_| parts.len() == 1 || part.count >= STRAIGHT)
    };
    let mut at = 0;
    std::iter::from_fn(move || {
        let first = parts.get(at)?;
        if let Some(offset) = straight(first) {
            at += 1;
            return Some(Stretch::Straight(at - 1, offset));
        }
        let start = at;
        let mut bytes = 0;
        while let Some(part) = parts.get(at)
            && straight(part).is_none()
        {
            bytes += part.count;
            at += 1;
        }
        Some(Stretch::Staged(start..at, bytes))
    })
}

/// Bytes of the buffer that a staged stretch goes through.
pub(crate) fn buffer_bytes(storage: &Storage, stretch_bytes: u64) -> (usize, bool) {
    let own = SMALL.min(storage.buffers.buffer_bytes());
    let all = storage.buffers.buffer_bytes();
    if stretch_bytes <= own as u64 {
        (own, true)
    } else if storage.stored.is_durable() {
        (all, false)
    } else {
        (all.min(NEAR), false)
    }
}

/// Where a staged stretch stands: the part, and the next file byte of it.
pub(crate) struct Cursor {
    part: usize,
    left: u64,
    file: u64,
}

impl Cursor {
    /// At the beginning of a stretch.
    pub(crate) fn new(parts: &[Part], first: usize) -> Cursor {
        Cursor {
            part: first,
            left: parts[first].count,
            file: parts[first].file.start.0,
        }
    }

    /// The next up to `bytes` bytes, of one part: the part, its file range, and how many.
    pub(crate) fn take(
        &mut self,
        opened: &OpenAccess,
        parts: &[Part],
        bytes: u64,
    ) -> (Part, Range<u64>, u64) {
        if self.left == 0 {
            *self = Cursor::new(parts, self.part + 1);
        }
        let part = parts[self.part];
        let n = bytes.min(self.left);
        let end = if n == self.left {
            part.file.end.0
        } else {
            opened.share(&part).after(self.file..part.file.end.0, n)
        };
        let range = self.file..end;
        self.file = end;
        self.left -= n;
        (part, range, n)
    }
}

/// One window of a subfile that holds bytes of a range.
pub(crate) struct Window {
    /// File range, from its first byte on.
    pub(crate) file: FileSpan,
    /// Subfile range from the first to the last of them.
    pub(crate) subfile: SubfileSpan,
    /// How many there are.
    pub(crate) count: u64,
}

/// The windows of a file range that holds `count` bytes of a share, ascending.
pub(crate) fn windows<'a>(
    share: &'a Share,
    subfile: &'a Periodic,
    file: Range<u64>,
    count: u64,
    most: u64,
) -> impl Iterator<Item = Window> + 'a {
    let mut left = count;
    let mut at = file.start;
    let span = subfile.rank(file.end) - subfile.rank(file.start);
    let window = if span / 32 > count {
        SPARSE_WINDOW
    } else {
        most
    };
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let first = share.first(at..file.end)?;
        let start = subfile.rank(first);
        let border = (start / window + 1) * window;
        let stop = subfile.select(border).map_or(file.end, |x| x.min(file.end));
        let n = share.count(first..stop);
        let end = share.after(first..stop, n);
        left = left.saturating_sub(n);
        at = end;
        Some(Window {
            file: FileSpan::from_raw(first..end),
            subfile: SubfileSpan::from_raw(start..subfile.rank(end)),
            count: n,
        })
    })
}

/// The file range of a piece of a subfile, inside a window.
pub(crate) fn piece_range(
    subfile: &Periodic,
    window: &Window,
    offset: u64,
    len: u64,
) -> Range<u64> {
    let file = window.file.raw();
    let start = subfile.select(offset).unwrap_or(file.end);
    let last = subfile.select(offset + len - 1);
    let end = last.map_or(file.end, |x| x + 1);
    start.max(file.start)..end.min(file.end)
}

/// Nanoseconds, for an answer.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Adds the time since `start` to `total`.
pub(crate) fn spend(total: &mut Duration, start: Instant) {
    *total += start.elapsed();
}
