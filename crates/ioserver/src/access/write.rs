//! Writing: from the socket into granted extents.
//!
//! A write that was announced gets what it needs first (a buffer, or the space of its first window)
//! and sends its payload after `GO`; everything else is the same. Bytes count from the commit of
//! their window on, so a write that fails in the middle has changed a prefix of its part at most. The seal of a payload is
//! compared before its last window is committed: a damaged write of one window changes nothing, a longer one leaves
//! windows before the last undefined until it is repeated.

use std::sync::Arc;
use std::time::Instant;

use kernels::SharedBytesMut;
use serving::Exchange;
use store::Grant;
use wire::message::access::{ANNOUNCED, AccessAnswer, COUNTED, GROW, GROWS, THROUGH};
use wire::message::file::SizeIs;
use wire::{Rights, Status};

use super::{
    Cursor, Expense, Fault, OpenAccess, PLACES, Part, Stretch, WINDOW, buffer_bytes, nanos,
    piece_range, receive_announced, spend, stretches, windows, wrong_payload,
};
use crate::bounded::Patience;
use crate::buffers::BufferLoan;
use crate::context::Storage;
use crate::files::{FileEntry, Files};
use crate::ops::with_asker;
use crate::owner::Owner;
use crate::refused::Refused;
use crate::sessions::{Connection, Scratch, Session, Who};
use crate::statistics::add;

/// What an announced write has in its hands when it says `GO`.
enum Reservation<'a> {
    Nothing,
    Buffer(BufferLoan<'a>),
    /// The grant of the scratch holds the first window.
    Window,
}

/// Serves a write.
pub(crate) fn serve(
    files: &Files,
    owner: &Owner,
    session: &mut Session,
    exchange: &mut Exchange,
) -> Result<(), Fault> {
    let started = Instant::now();
    let storage = &*files.storage;
    let flags = exchange.header().flags;
    let opened = super::open(files, owner, session, exchange, Rights::WRITE)?;
    let mut spent = Expense::default();
    let result = write(storage, session, exchange, &opened, flags, &mut spent);
    session.scratch.grant.abandon();
    let (epoch, end, bytes) = (opened.epoch, opened.end, opened.bytes);
    let mut flags_back = opened.flags();
    // The owner may wait for a truncate, and that for this access.
    let view = Arc::clone(&opened.view);
    drop(opened);
    result?;
    if flags & GROW != 0 {
        with_asker(owner, session, &view, |owner, asker| {
            owner.grow(asker, epoch, end)
        })?;
    }
    if flags & GROWS != 0 && files.counts_growth(owner, &view.entry) {
        flags_back |= COUNTED;
    }
    storage.statistics.served(true, bytes, spent.rounds);
    let done = AccessAnswer {
        waited_ns: nanos(spent.waited),
        copied_ns: nanos(spent.copied),
        served_ns: nanos(started.elapsed()),
        rounds: spent.rounds,
        verifier: storage.verifier(),
    };
    let out = &mut session.scratch.out;
    done.encode(out);
    Ok(exchange.send(Status::Ok, flags_back, out, &[])?)
}

fn write(
    storage: &Storage,
    session: &mut Session,
    exchange: &mut Exchange,
    opened: &OpenAccess,
    flags: u16,
    spent: &mut Expense,
) -> Result<(), Fault> {
    let (who, connection) = (session.who, &session.connection);
    let Scratch {
        grant,
        parts,
        buffer,
        ..
    } = &mut session.scratch;
    let mut writer = Writer {
        storage,
        who,
        connection,
        opened,
        parts,
        grant,
        spent,
        is_through: flags & THROUGH != 0,
    };
    let mut reserved = Reservation::Nothing;
    if flags & ANNOUNCED != 0 {
        if exchange.payload_left() > 0 {
            return Err(wrong_payload(0, exchange.payload_left()));
        }
        add(&storage.statistics.announced, 1);
        reserved = writer.reserve()?;
        // What was reserved may be what others wait for.
        let _due = connection.waits_for(0);
        receive_announced(exchange)?;
    }
    if exchange.payload_left() != opened.bytes {
        return Err(wrong_payload(opened.bytes, exchange.payload_left()));
    }
    for stretch in stretches(writer.parts) {
        match stretch {
            Stretch::Straight(part, offset) => {
                let is_granted = matches!(reserved, Reservation::Window);
                reserved = Reservation::Nothing;
                writer.straight(exchange, &writer.parts[part], offset, is_granted)?;
            }
            Stretch::Staged(range, bytes) => {
                let lent = match std::mem::replace(&mut reserved, Reservation::Nothing) {
                    Reservation::Buffer(lent) => Some(lent),
                    _ => None,
                };
                writer.staged(exchange, range.start, bytes, buffer, lent)?;
            }
        }
    }
    writer.finish()
}

/// Spreads packed bytes of an access whose places were found, for a gateway, which has received them.
pub(crate) fn write_packed(
    storage: &Storage,
    session: &mut Session,
    opened: &OpenAccess,
    spent: &mut Expense,
    (packed, flags): (&[u8], u16),
) -> Result<(), Fault> {
    let (who, connection) = (session.who, &session.connection);
    let Scratch { grant, parts, .. } = &mut session.scratch;
    let mut writer = Writer {
        storage,
        who,
        connection,
        opened,
        parts,
        grant,
        spent,
        is_through: flags & THROUGH != 0,
    };
    let mut cursor = Cursor::new(writer.parts, 0);
    writer.scatter(&mut cursor, packed)?;
    writer.finish()
}

/// A commit that came too late for a truncation.
fn overtaken(error: store::Error, opened: &OpenAccess) -> Fault {
    Fault::Refused(overtaken_entry(error, &opened.view.entry))
}

/// What a commit that came too late for a truncation is refused with, by the gate of the file.
pub(crate) fn overtaken_entry(error: store::Error, entry: &FileEntry) -> Refused {
    match error {
        store::Error::Stale | store::Error::NotFound(_) => {
            let now = SizeIs {
                size: 0,
                epoch: entry.epoch(),
            };
            Refused::with_detail(
                Status::StaleEpoch,
                format!(
                    "{} was cut while this was written; repeat the write",
                    entry.id()
                ),
                &now,
            )
        }
        other => other.into(),
    }
}

struct Writer<'a> {
    storage: &'a Storage,
    who: Who,
    connection: &'a Arc<Connection>,
    opened: &'a OpenAccess,
    parts: &'a [Part],
    grant: &'a mut Grant,
    spent: &'a mut Expense,
    /// Whether the client wants the bytes in the data files before it is answered.
    is_through: bool,
}

impl<'a> Writer<'a> {
    /// Takes what the first stretch needs.
    fn reserve(&mut self) -> Result<Reservation<'a>, Fault> {
        match stretches(self.parts).next() {
            Some(Stretch::Straight(part, offset)) => {
                let part = self.parts[part];
                let end = first_window(offset, part.count, WINDOW);
                // A window that is too large is tried again in smaller ones later.
                match self.take(&part, offset..end, true) {
                    Ok(()) => Ok(Reservation::Window),
                    Err(Fault::Refused(r)) if r.status == Status::NoMemory => {
                        self.take(
                            &part,
                            offset..first_window(offset, part.count, store::UNIT),
                            true,
                        )?;
                        self.grant.abandon();
                        Ok(Reservation::Nothing)
                    }
                    Err(fault) => Err(fault),
                }
            }
            Some(Stretch::Staged(_, bytes)) => match buffer_bytes(self.storage, bytes) {
                (_, true) => Ok(Reservation::Nothing),
                (_, false) => Ok(Reservation::Buffer(self.borrow())),
            },
            None => Ok(Reservation::Nothing),
        }
    }

    /// Lets everything that was written be kept.
    fn finish(&mut self) -> Result<(), Fault> {
        let (storage, known) = (self.storage, &self.opened.known);
        storage.stored.wrote();
        self.opened.view.entry.wrote(&self.opened.file.raw());
        if storage.write_through || self.is_through || storage.stored.is_short_of(0) {
            for part in self.parts.iter() {
                if let Some(subfile) = known.find(&known.own[part.slot], &storage.stored)? {
                    subfile.flush()?;
                }
            }
        } else {
            storage.stored.help(&storage.statistics, self.opened.bytes);
        }
        Ok(())
    }

    fn borrow(&mut self) -> BufferLoan<'a> {
        let start = Instant::now();
        let lent = self.storage.borrow(self.who, self.connection);
        spend(&mut self.spent.waited, start);
        lent
    }

    fn progress(&self) {
        self.connection.busy_with(self.opened.view.file);
    }

    /// Grants a range of a subfile, waiting a little for room.
    fn take(
        &mut self,
        part: &Part,
        range: std::ops::Range<u64>,
        is_full: bool,
    ) -> Result<(), Fault> {
        let (storage, known) = (self.storage, &self.opened.known);
        let own = &known.own[part.slot];
        let grant = &mut *self.grant;
        let mut try_once = || {
            grant.abandon();
            let subfile = known.make(own, storage)?;
            if is_full {
                subfile.grant(range.clone(), grant)
            } else {
                subfile.grant_gaps(range.clone(), grant)
            }
        };
        match try_once() {
            Err(store::Error::NoSpace { .. }) => {
                let start = Instant::now();
                let done = storage.with_room(try_once);
                spend(&mut self.spent.waited, start);
                done.map_err(Fault::from)
            }
            done => done.map_err(|e| overtaken(e, self.opened)),
        }
    }

    /// From the socket into the extents.
    fn straight(
        &mut self,
        exchange: &mut Exchange,
        part: &Part,
        offset: u64,
        mut is_granted: bool,
    ) -> Result<(), Fault> {
        let end = offset + part.count;
        let mut at = offset;
        let mut window = WINDOW;
        while at < end {
            let mut stop = first_window(at, end - at, window);
            if !std::mem::take(&mut is_granted) {
                match self.take(part, at..stop, true) {
                    Err(Fault::Refused(r))
                        if r.status == Status::NoMemory && window > store::UNIT =>
                    {
                        window = store::UNIT;
                        stop = first_window(at, end - at, window);
                        self.take(part, at..stop, true)?;
                    }
                    done => done?,
                }
            }
            // What is granted stays in memory until the peer has sent it.
            let due = self.connection.waits_for(stop - at);
            receive(exchange, self.grant)?;
            drop(due);
            self.grant.commit().map_err(|e| overtaken(e, self.opened))?;
            at = stop;
            if at < end {
                self.progress();
            }
        }
        Ok(())
    }

    /// From the socket through buffers into the extents.
    fn staged(
        &mut self,
        exchange: &mut Exchange,
        first: usize,
        bytes: u64,
        small: &mut Vec<u8>,
        mut lent: Option<BufferLoan<'a>>,
    ) -> Result<(), Fault> {
        let (size, is_small) = buffer_bytes(self.storage, bytes);
        let mut cursor = Cursor::new(self.parts, first);
        let mut left = bytes;
        while left > 0 {
            let n = left.min(size as u64) as usize;
            self.spent.rounds += 1;
            if is_small {
                if small.len() < n {
                    small.resize(n, 0);
                }
                exchange.receive_payload(&mut small[..n])?;
                self.scatter(&mut cursor, &small[..n])?;
            } else {
                let mut buffer = match lent.take() {
                    Some(lent) => lent,
                    None => self.borrow(),
                };
                let due = self.connection.waits_for(n as u64);
                exchange.receive_payload(&mut buffer[..n])?;
                drop(due);
                self.scatter(&mut cursor, &buffer[..n])?;
            }
            left -= n as u64;
            if left > 0 {
                self.progress();
            }
        }
        Ok(())
    }

    /// Spreads packed bytes over the subfiles, from the cursor on.
    fn scatter(&mut self, cursor: &mut Cursor, mut packed: &[u8]) -> Result<(), Fault> {
        let start = Instant::now();
        let waited = self.spent.waited;
        while !packed.is_empty() {
            let (part, file, n) = cursor.take(self.opened, self.parts, packed.len() as u64);
            let (these, rest) = packed.split_at(n as usize);
            self.scatter_part(&part, file, these)?;
            packed = rest;
        }
        self.spent.copied += start
            .elapsed()
            .saturating_sub(self.spent.waited.saturating_sub(waited));
        Ok(())
    }

    fn scatter_part(
        &mut self,
        part: &Part,
        file: std::ops::Range<u64>,
        mut packed: &[u8],
    ) -> Result<(), Fault> {
        let opened = self.opened;
        let (share, subfile) = (opened.share(part), opened.subfile_bytes(part));
        let mut patience = Patience::new(self.connection);
        for window in windows(share, subfile, file, packed.len() as u64, WINDOW) {
            patience.window()?;
            let is_full = window.count == window.subfile.bytes();
            self.take(part, window.subfile.raw(), is_full)?;
            for (offset, bytes) in self.grant.pieces() {
                let range = piece_range(subfile, &window, offset, bytes.len() as u64);
                let n = share.count(range.clone()) as usize;
                let (these, rest) = packed.split_at(n.min(packed.len()));
                share.scatter_right(range, these, bytes, offset)?;
                packed = rest;
            }
            self.grant.commit().map_err(|e| overtaken(e, opened))?;
        }
        Ok(())
    }
}

/// End of the first window of a range.
pub(super) fn first_window(at: u64, len: u64, window: u64) -> u64 {
    ((at / window + 1) * window).min(at + len)
}

/// Fills what is granted from the socket.
fn receive(exchange: &mut Exchange, grant: &mut Grant) -> Result<(), Fault> {
    receive_into(exchange, grant.pieces().map(|(_, bytes)| bytes))
}

/// Fills places from the socket, in this order.
pub(crate) fn receive_into<'a>(
    exchange: &mut Exchange,
    places: impl Iterator<Item = SharedBytesMut<'a>>,
) -> Result<(), Fault> {
    let mut targets: [SharedBytesMut<'_>; PLACES] =
        std::array::from_fn(|_| SharedBytesMut::from_slice(&mut []));
    let mut filled = 0;
    let mut fill = |targets: &mut [SharedBytesMut<'_>]| -> Result<(), Fault> {
        Ok(exchange.receive_places(targets)?)
    };
    for place in places {
        targets[filled] = place;
        filled += 1;
        if filled == PLACES {
            fill(&mut targets)?;
            filled = 0;
        }
    }
    fill(&mut targets[..filled])
}
