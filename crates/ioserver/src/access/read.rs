//! Reading: from pinned extents to the socket.
//!
//! The answer's head leaves together with the first bytes. What can fail is done before that: bytes of
//! a disk are loaded and compared with their checksums first, so a damaged block is a refusal and
//! not the end of the connection. After the head an error can only end the connection.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use kernels::SharedBytes;
use serving::Exchange;
use store::{Pins, StoredPiece as Piece};
use wire::Rights;
use wire::frame::HEADER_BYTES;
use wire::message::access::AccessAnswer;

use super::write::first_window;
use super::{
    Cursor, Expense, Fault, OpenAccess, PLACES, Part, Stretch, WINDOW, buffer_bytes, nanos,
    piece_range, place_of, spend, stretches, windows,
};
use crate::bounded::Patience;
use crate::context::Storage;
use crate::files::Files;
use crate::owner::Owner;
use crate::sealed::Payload;
use crate::sessions::{Connection, Scratch, Session, Who};
use crate::statistics::add;

/// What holes read as.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Serves a read.
pub(crate) fn serve(
    files: &Files,
    owner: &Owner,
    session: &mut Session,
    exchange: &mut Exchange,
) -> Result<(), Fault> {
    let started = Instant::now();
    let storage = &*files.storage;
    let opened = super::open(files, owner, session, exchange, Rights::READ)?;
    exchange.skip_payload().map_err(Fault::Link)?;
    let is_for_server = session.is_server();
    let (who, connection) = (session.who, &session.connection);
    let Scratch {
        pins,
        parts,
        buffer,
        out,
        ..
    } = &mut session.scratch;
    let mut spent = Expense::default();
    let mut reader = Reader {
        storage,
        who,
        connection,
        opened: &opened,
        parts,
        pins,
        spent: &mut spent,
        started,
        is_for_server,
        is_begun: false,
        payload: None,
        out,
    };
    let result = reader.run(exchange, buffer);
    let is_begun = reader.is_begun;
    pins.is_again(false);
    pins.clear();
    let (view, range) = (Arc::clone(&opened.view), opened.range);
    drop(opened);
    match result {
        Ok(()) => {
            if storage.stored.is_durable() {
                storage.ahead.observe(&view, range.start.0, range.end.0);
            }
            Ok(())
        }
        Err(Fault::Refused(refused)) if is_begun => {
            storage.statistics.refused(refused.status);
            Err(io::Error::other(refused.refusal.text).into())
        }
        Err(fault) => Err(fault),
    }
}

/// Packs the bytes of an access that were found to be here, for a gateway, which answers by itself.
pub(crate) fn read_packed(
    storage: &Storage,
    session: &mut Session,
    opened: &OpenAccess,
    spent: &mut Expense,
    packed: &mut [u8],
) -> Result<(), Fault> {
    let (who, connection) = (session.who, &session.connection);
    let Scratch {
        pins, parts, out, ..
    } = &mut session.scratch;
    let mut reader = Reader {
        storage,
        who,
        connection,
        opened,
        parts,
        pins,
        spent,
        started: Instant::now(),
        is_for_server: false,
        is_begun: false,
        payload: None,
        out,
    };
    let mut cursor = Cursor::new(reader.parts, 0);
    reader.gather(&mut cursor, packed)
}

struct Reader<'a> {
    storage: &'a Storage,
    who: Who,
    connection: &'a Arc<Connection>,
    opened: &'a OpenAccess,
    parts: &'a [Part],
    pins: &'a mut Pins,
    spent: &'a mut Expense,
    started: Instant,
    /// Another server has asked.
    is_for_server: bool,
    /// The head of the answer is sent.
    is_begun: bool,
    payload: Option<Payload>,
    out: &'a mut Vec<u8>,
}

impl Reader<'_> {
    fn run(&mut self, exchange: &mut Exchange, small: &mut Vec<u8>) -> Result<(), Fault> {
        let parts = self.parts;
        for stretch in stretches(parts) {
            if let Stretch::Staged(_, bytes) = stretch {
                let size = buffer_bytes(self.storage, bytes).0 as u64;
                self.spent.rounds += bytes.div_ceil(size);
            }
        }
        let is_in_steps = parts.len() > 1 || self.spent.rounds > 1;
        if is_in_steps && self.storage.stored.is_durable() {
            self.load()?;
        }
        for stretch in stretches(parts) {
            match stretch {
                Stretch::Straight(part, offset) => self.straight(exchange, &parts[part], offset)?,
                Stretch::Staged(range, bytes) => {
                    self.staged(exchange, range.start, bytes, small)?
                }
            }
        }
        Ok(())
    }

    /// Brings everything into memory once, which verifies it.
    fn load(&mut self) -> Result<(), Fault> {
        let mut patience = Patience::new(self.connection);
        for part in self.parts {
            let own = &self.opened.known.own[part.slot];
            let Some(subfile) = self.opened.known.find(own, &self.storage.stored)? else {
                continue;
            };
            let (share, bytes) = (self.opened.share(part), self.opened.subfile_bytes(part));
            for window in windows(share, bytes, part.file(), part.count, WINDOW) {
                patience.window()?;
                self.pins.clear();
                self.storage
                    .with_room(|| subfile.pin(window.subfile.raw(), self.pins))?;
            }
            self.pins.clear();
        }
        // What follows for this access is no use of its own.
        self.pins.is_again(true);
        Ok(())
    }

    fn progress(&self) {
        self.connection.busy_with(self.opened.view.file);
    }

    /// Sends places, the first time behind the head of the answer.
    fn send(&mut self, exchange: &Exchange, places: &[SharedBytes<'_>]) -> Result<(), Fault> {
        self.is_begun = true;
        if let Some(payload) = &mut self.payload {
            return Ok(payload.send(exchange, &[], places)?);
        }
        // A client that has its bytes finds the read counted.
        let statistics = &self.storage.statistics;
        statistics.served(false, self.opened.bytes, self.spent.rounds);
        if self.is_for_server {
            add(&statistics.server_bytes, self.opened.bytes);
        }
        let done = AccessAnswer {
            waited_ns: nanos(self.spent.waited),
            copied_ns: nanos(self.spent.copied),
            served_ns: nanos(self.started.elapsed()),
            rounds: self.spent.rounds,
            verifier: 0,
        };
        done.encode(self.out);
        let header = exchange.answer_header(self.opened.flags(), self.out, self.opened.bytes);
        let head: [u8; HEADER_BYTES] = header.encode(self.out);
        let payload = self.payload.insert(Payload::new(&header));
        Ok(payload.send(exchange, &[&head, self.out], places)?)
    }

    /// From the extents to the socket.
    fn straight(&mut self, exchange: &Exchange, part: &Part, offset: u64) -> Result<(), Fault> {
        let (storage, known) = (self.storage, &self.opened.known);
        let own = &known.own[part.slot];
        let Some(subfile) = known.find(own, &storage.stored)? else {
            return self.zeros(exchange, part.count);
        };
        let end = offset + part.count;
        // All of it at once if memory allows: then nothing can fail behind the head.
        self.pins.clear();
        if subfile.pin(offset..end, self.pins).is_ok() {
            return self.send_pins(exchange);
        }
        let mut at = offset;
        while at < end {
            let stop = first_window(at, end - at, WINDOW);
            self.pins.clear();
            let start = Instant::now();
            storage.with_room(|| {
                self.pins.clear();
                subfile.pin(at..stop, self.pins)
            })?;
            spend(&mut self.spent.waited, start);
            self.send_pins(exchange)?;
            self.progress();
            at = stop;
        }
        Ok(())
    }

    fn zeros(&mut self, exchange: &Exchange, mut count: u64) -> Result<(), Fault> {
        while count > 0 {
            let n = count.min(ZEROS.len() as u64);
            self.send(exchange, &[SharedBytes::from_slice(&ZEROS[..n as usize])])?;
            count -= n;
        }
        Ok(())
    }

    fn send_pins(&mut self, exchange: &Exchange) -> Result<(), Fault> {
        let pins = std::mem::take(self.pins);
        let result = self.send_pieces(exchange, &pins);
        *self.pins = pins;
        self.pins.clear();
        result
    }

    fn send_pieces(&mut self, exchange: &Exchange, pins: &Pins) -> Result<(), Fault> {
        let mut places = [SharedBytes::from_slice(&[]); PLACES];
        let mut filled = 0;
        for piece in pins.pieces() {
            let (mut left, bytes) = match piece {
                Piece::Bytes { bytes, .. } => (bytes.len() as u64, Some(bytes)),
                Piece::Hole { len, .. } => (len, None),
            };
            while left > 0 {
                let place = match bytes {
                    Some(bytes) => bytes,
                    None => {
                        SharedBytes::from_slice(&ZEROS[..left.min(ZEROS.len() as u64) as usize])
                    }
                };
                left -= place.len() as u64;
                places[filled] = place;
                filled += 1;
                if filled == PLACES {
                    self.send_pinned(exchange, &places)?;
                    self.progress();
                    filled = 0;
                }
            }
        }
        if filled > 0 {
            self.send_pinned(exchange, &places[..filled])?;
        }
        Ok(())
    }

    /// Sends places that stay in memory until the peer has taken them.
    fn send_pinned(
        &mut self,
        exchange: &Exchange,
        places: &[SharedBytes<'_>],
    ) -> Result<(), Fault> {
        let bytes = places.iter().map(|place| place.len() as u64).sum();
        let connection = self.connection;
        let _due = connection.waits_for(bytes);
        self.send(exchange, places)
    }

    /// From the extents through buffers to the socket.
    fn staged(
        &mut self,
        exchange: &Exchange,
        first: usize,
        bytes: u64,
        small: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let (size, is_small) = buffer_bytes(self.storage, bytes);
        let mut cursor = Cursor::new(self.parts, first);
        let mut left = bytes;
        while left > 0 {
            let n = left.min(size as u64) as usize;
            if is_small {
                if small.len() < n {
                    small.resize(n, 0);
                }
                self.gather(&mut cursor, &mut small[..n])?;
                self.send(exchange, &[SharedBytes::from_slice(&small[..n])])?;
            } else {
                let start = Instant::now();
                let mut lent = self.storage.borrow(self.who, self.connection);
                spend(&mut self.spent.waited, start);
                self.gather(&mut cursor, &mut lent[..n])?;
                let due = self.connection.waits_for(n as u64);
                self.send(exchange, &[SharedBytes::from_slice(&lent[..n])])?;
                drop((due, lent));
                self.progress();
            }
            left -= n as u64;
        }
        Ok(())
    }

    /// Packs bytes of the subfiles, from the cursor on.
    fn gather(&mut self, cursor: &mut Cursor, mut packed: &mut [u8]) -> Result<(), Fault> {
        let start = Instant::now();
        while !packed.is_empty() {
            let (part, file, n) = cursor.take(self.opened, self.parts, packed.len() as u64);
            let (these, rest) = packed.split_at_mut(n as usize);
            self.gather_part(&part, file, these)?;
            packed = rest;
        }
        spend(&mut self.spent.copied, start);
        Ok(())
    }

    fn gather_part(
        &mut self,
        part: &Part,
        file: std::ops::Range<u64>,
        mut packed: &mut [u8],
    ) -> Result<(), Fault> {
        let opened = self.opened;
        let own = &opened.known.own[part.slot];
        let Some(stored) = opened.known.find(own, &self.storage.stored)? else {
            packed.fill(0);
            return Ok(());
        };
        let (share, subfile) = (opened.share(part), opened.subfile_bytes(part));
        let mut patience = Patience::new(self.connection);
        for window in windows(share, subfile, file, packed.len() as u64, WINDOW) {
            patience.window()?;
            self.storage.with_room(|| {
                self.pins.clear();
                stored.pin(window.subfile.raw(), self.pins)
            })?;
            for piece in self.pins.pieces() {
                let (offset, len) = place_of(&piece);
                let range = piece_range(subfile, &window, offset, len);
                let n = share.count(range.clone()) as usize;
                let middle = n.min(packed.len());
                let (these, rest) = packed.split_at_mut(middle);
                match piece {
                    Piece::Bytes { offset, bytes } => {
                        share.gather_right(range, bytes, offset, these)?
                    }
                    Piece::Hole { .. } => these.fill(0),
                }
                packed = rest;
            }
            self.pins.clear();
        }
        Ok(())
    }
}
