//! The transfers of one rank: a packet per round, or one per piece of the file.
//!
//! A read sends what the rank has in a round as soon as the round is in memory. A write asks for it as
//! soon as the round is granted, one round ahead, and stores it where it belongs.
//!
//! Invariants
//! - Bytes that lie in one run of the subfile go straight; others through a buffer of the pool, one at a time.
//! - Every packet that was asked for is received, also after a failure, so the connection stays in step.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kernels::{Share, SharedBytes};
use layout::{FileSpan, SubfileSpan};
use serving::Exchange;
use store::{Grant, Pins, StoredPiece as Piece};
use wire::link::LinkError;
use wire::message::Request;
use wire::message::directed::{MORE, Packet, Portion, PortionPart, WANT};
use wire::{FileId, Status};

use super::internal;
use super::operation::{Memory, Operation, Plan, Round, Waiter};
use super::prefetch::PackedBytes;
use crate::access::write::receive_into;
use crate::access::{Fault, Window, piece_range, place_of};
use crate::context::Storage;
use crate::refused::Refused;
use crate::sealed::Payload;
use crate::sessions::{Connection, Sessions, Who};
use crate::statistics::add;

/// Runs from this length on go straight.
const STRAIGHT: u64 = 16 << 10;
/// Places handed to the system at a time.
const PLACES: usize = 64;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// See the [module](self).
pub(super) struct Transfer<'a> {
    pub(super) storage: &'a Storage,
    pub(super) sessions: &'a Sessions,
    pub(super) operation: &'a Operation,
    pub(super) plan: &'a Plan,
    pub(super) rank: usize,
    pub(super) who: Who,
    pub(super) connection: &'a Arc<Connection>,
    pub(super) file: FileId,
    pub(super) out: &'a mut Vec<u8>,
}

/// What a rank has in one part of a round.
struct RankPart {
    /// Position of the part.
    part: usize,
    /// File range.
    file: Range<u64>,
    bytes: u64,
}

impl Transfer<'_> {
    fn progress(&self) {
        self.connection.busy_with(self.file);
    }

    fn share(&self, round: &Round, mine: &RankPart) -> &Share {
        let part = &round.parts[mine.part];
        self.plan.distribution.share(self.rank, part.slot)
    }

    fn mine(&self, round: &Round, list: &mut Vec<RankPart>) {
        list.clear();
        let distribution = &self.plan.distribution;
        for (number, part) in round.parts.iter().enumerate() {
            let bytes = distribution.count(self.rank, part);
            if bytes > 0 {
                list.push(RankPart {
                    part: number,
                    file: distribution.range(self.rank, part),
                    bytes,
                });
            }
        }
    }

    /// Cuts what a rank has in a round into packets.
    fn packets(&self, round: &Round, mut list: Vec<RankPart>) -> Vec<Vec<RankPart>> {
        if !self.plan.by_record {
            return match list.is_empty() {
                true => Vec::new(),
                false => vec![list],
            };
        }
        let mut packets = Vec::new();
        for mine in list.drain(..) {
            let own = &self.plan.distribution.known.own[round.parts[mine.part].slot];
            let share = self.share(round, &mine);
            share.each_run(mine.file.clone(), |_, right, len| {
                let start = own.bytes.select(right).expect("a byte of the subfile");
                let last = own
                    .bytes
                    .select(right + len - 1)
                    .expect("a byte of the subfile");
                packets.push(vec![RankPart {
                    part: mine.part,
                    file: start..last + 1,
                    bytes: len,
                }]);
                true
            });
        }
        packets
    }

    /// Writes the control part of a portion; its bytes.
    fn describe(&mut self, round: &Round, packet: &[RankPart]) -> u64 {
        let known = &self.plan.distribution.known;
        let parts = packet.iter().map(|mine| PortionPart {
            subfile: known.own[round.parts[mine.part].slot].index,
            start: mine.file.start,
            end: mine.file.end,
            bytes: mine.bytes,
        });
        let portion = Portion {
            parts: parts.collect(),
        };
        wire::message::encode(&portion, self.out);
        packet.iter().map(|mine| mine.bytes).sum()
    }

    fn count(&self, bytes: u64) {
        self.operation.packets.fetch_add(1, Ordering::Relaxed);
        add(&self.storage.statistics.directed_packets, 1);
        add(&self.storage.statistics.directed_bytes, bytes);
    }

    /// Sends everything of this rank.
    pub(super) fn read(&mut self, exchange: &mut Exchange, who: Waiter<'_>) -> Result<(), Fault> {
        let operation = self.operation;
        let mut list = Vec::new();
        let mut number = 0;
        while let Some(round) = operation.round(self.sessions, who, number)? {
            let sent = operation.rank_step(&self.storage.statistics, || {
                if let Memory::Packets(packets) = &round.memory {
                    if let Some(packet) = &packets[self.rank] {
                        self.send_ready(exchange, packet)?;
                        self.progress();
                    }
                    return Ok(());
                }
                self.mine(&round, &mut list);
                for packet in self.packets(&round, std::mem::take(&mut list)) {
                    self.send(exchange, &round, &packet)?;
                    self.progress();
                }
                Ok::<_, Fault>(())
            });
            drop(round);
            self.through(number, &sent);
            sent?;
            number += 1;
        }
        Ok(())
    }

    /// Sends a packet that was built before it was asked for.
    fn send_ready(&self, exchange: &Exchange, packet: &PackedBytes) -> Result<(), Fault> {
        self.count(packet.bytes.len() as u64);
        let header = exchange.answer_header(MORE, &packet.portion, packet.bytes.len() as u64);
        let head = header.encode(&packet.portion);
        let bytes = SharedBytes::from_slice(&packet.bytes);
        let mut payload = Payload::new(&header);
        Ok(payload.send(exchange, &[&head, &packet.portion], &[bytes])?)
    }

    fn send(
        &mut self,
        exchange: &mut Exchange,
        round: &Round,
        packet: &[RankPart],
    ) -> Result<(), Fault> {
        let Memory::Read(pins) = &round.memory else {
            return Err(wrong_way());
        };
        let bytes = self.describe(round, packet);
        self.count(bytes);
        let header = exchange.answer_header(MORE, self.out, bytes);
        let head = header.encode(self.out);
        let out = std::mem::take(self.out);
        let mut payload = Payload::new(&header);
        let mut to = |head: &[&[u8]], places: &[SharedBytes<'_>]| -> Result<(), Fault> {
            Ok(payload.send(exchange, head, places)?)
        };
        let sent = self.send_packet(&mut to, round, packet, pins, &[&head, &out], bytes);
        *self.out = out;
        sent
    }

    fn send_packet(
        &self,
        to: &mut To<'_>,
        round: &Round,
        packet: &[RankPart],
        pins: &[Pins],
        head: &[&[u8]],
        bytes: u64,
    ) -> Result<(), Fault> {
        if let [mine] = packet
            && (bytes >= STRAIGHT || self.plan.by_record)
            && let Some(run) = self.share(round, mine).right_run(mine.file.clone())
        {
            return send_straight(to, &pins[mine.part], run..run + bytes, head);
        }
        let mut buffer = self.storage.borrow(self.who, self.connection);
        let mut filled = 0;
        let mut is_begun = false;
        let mut flush = |bytes: &[u8]| -> Result<(), Fault> {
            let head = if std::mem::replace(&mut is_begun, true) {
                &[]
            } else {
                head
            };
            let due = self.connection.waits_for(bytes.len() as u64);
            to(head, &[SharedBytes::from_slice(bytes)])?;
            drop(due);
            self.progress();
            Ok(())
        };
        for mine in packet {
            let (part, share) = (&round.parts[mine.part], self.share(round, mine));
            let bytes = &self.plan.distribution.known.own[part.slot].bytes;
            let window = window(part.subfile, mine);
            let pins = &pins[mine.part];
            let nothing = Piece::Hole {
                offset: part.subfile.start.0,
                len: part.subfile.bytes(),
            };
            let nothing = pins.is_empty().then_some(nothing);
            for piece in pins.pieces().chain(nothing) {
                let (offset, len) = place_of(&piece);
                let mut range = piece_range(bytes, &window, offset, len);
                if range.is_empty() {
                    continue;
                }
                let mut left = share.count(range.clone());
                while left > 0 {
                    let n = left.min((buffer.len() - filled) as u64);
                    let end = match n == left {
                        true => range.end,
                        false => share.after(range.clone(), n),
                    };
                    let into = &mut buffer[filled..filled + n as usize];
                    match &piece {
                        Piece::Bytes { offset, bytes } => share
                            .gather_right(range.start..end, *bytes, *offset, into)
                            .map_err(|e| internal(&e))?,
                        Piece::Hole { .. } => into.fill(0),
                    }
                    filled += n as usize;
                    left -= n;
                    range.start = end;
                    if filled == buffer.len() {
                        flush(&buffer[..filled])?;
                        filled = 0;
                    }
                }
            }
        }
        if filled > 0 {
            flush(&buffer[..filled])?;
        }
        Ok(())
    }

    /// This rank is through with a round. A rank that could not do its part says so before the store takes the round for
    /// complete: otherwise one that went away leaves the others with a success and bytes that never came.
    fn through(&self, number: u64, result: &Result<(), Fault>) {
        if let Err(fault) = result {
            let client = self.plan.distribution.ranks[self.rank].client;
            self.operation.fail(match fault {
                Fault::Refused(refused) => refused.clone(),
                Fault::Link(error) => super::gone(client, error),
            });
        }
        self.operation.through(number);
    }

    /// Asks for everything of this rank and stores it.
    pub(super) fn write(&mut self, exchange: &mut Exchange, who: Waiter<'_>) -> Result<(), Fault> {
        let operation = self.operation;
        let mut next = 0;
        // Rounds that were asked for and have not been received.
        let mut asked: std::collections::VecDeque<(u64, Arc<Round>, Vec<Vec<RankPart>>)> =
            Default::default();
        let result = loop {
            let found = match asked.is_empty() {
                true => operation.round(self.sessions, who, next),
                // Packets come in the order in which they were asked for, so all of a round first.
                false if self.plan.by_record => Ok(None),
                false => operation.round_now(next),
            };
            match found {
                Ok(Some(round)) => {
                    let mut list = Vec::new();
                    self.mine(&round, &mut list);
                    let packets = self.packets(&round, list);
                    if let Some(first) = packets.first() {
                        self.want(exchange, &round, first)?;
                    }
                    asked.push_back((next, round, packets));
                    next += 1;
                }
                Ok(None) => match asked.pop_front() {
                    None => break Ok(()),
                    Some((number, round, packets)) => {
                        let stored = operation.rank_step(&self.storage.statistics, || {
                            self.fill(exchange, &round, packets)
                        });
                        drop(round);
                        self.through(number, &stored);
                        match stored {
                            // All of it was received, so what was asked for behind it can be, too.
                            Err(Fault::Refused(r)) if r.status == Status::Damaged => break Err(r),
                            stored => stored?,
                        }
                    }
                },
                Err(refused) => break Err(refused),
            }
        };
        for (_, _, packets) in asked {
            if !packets.is_empty() {
                exchange.receive_next()?;
                exchange.skip_payload()?;
            }
        }
        Ok(result?)
    }

    /// Asks for a packet.
    fn want(
        &mut self,
        exchange: &mut Exchange,
        round: &Round,
        packet: &[RankPart],
    ) -> Result<(), Fault> {
        self.describe(round, packet);
        let out = std::mem::take(self.out);
        let sent = exchange.send(Status::Ok, WANT, &out, &[]);
        *self.out = out;
        if self.plan.by_record {
            // The question is a message of its own here.
            self.count(0);
        }
        Ok(sent?)
    }

    /// Receives what a round wants of this rank; the first packet was asked for.
    fn fill(
        &mut self,
        exchange: &mut Exchange,
        round: &Round,
        packets: Vec<Vec<RankPart>>,
    ) -> Result<(), Fault> {
        for (number, packet) in packets.iter().enumerate() {
            if number > 0 {
                self.want(exchange, round, packet)?;
            }
            exchange.receive_next()?;
            let bytes = packet.iter().map(|mine| mine.bytes).sum();
            if exchange.header().kind != Packet::KIND || exchange.payload_left() != bytes {
                let text = format!(
                    "a packet of {bytes} bytes was wanted, and a frame of kind {} with {} came",
                    exchange.header().kind,
                    exchange.payload_left()
                );
                // Others may be on their way behind it: the connection is out of step.
                return Err(Fault::Link(LinkError::Io(io::Error::other(text))));
            }
            self.count(bytes);
            self.receive(exchange, round, packet, bytes)?;
            self.progress();
        }
        Ok(())
    }

    fn receive(
        &self,
        exchange: &mut Exchange,
        round: &Round,
        packet: &[RankPart],
        bytes: u64,
    ) -> Result<(), Fault> {
        let Memory::Write(grants) = &round.memory else {
            return Err(wrong_way());
        };
        if let [mine] = packet
            && (bytes >= STRAIGHT || self.plan.by_record)
            && let Some(run) = self.share(round, mine).right_run(mine.file.clone())
        {
            return receive_straight(exchange, &grants[mine.part], run..run + bytes);
        }
        let mut buffer = self.storage.borrow(self.who, self.connection);
        let mut there = 0..0;
        for mine in packet {
            let (part, share) = (&round.parts[mine.part], self.share(round, mine));
            let own = &self.plan.distribution.known.own[part.slot].bytes;
            let window = window(part.subfile, mine);
            for (offset, mut bytes) in grants[mine.part].shared_pieces() {
                let mut range = piece_range(own, &window, offset, bytes.len() as u64);
                if range.is_empty() {
                    continue;
                }
                let mut left = share.count(range.clone());
                while left > 0 {
                    if there.is_empty() {
                        let n = exchange.payload_left().min(buffer.len() as u64) as usize;
                        if n == 0 {
                            return Err(wrong_way());
                        }
                        let due = self.connection.waits_for(n as u64);
                        exchange.receive_payload(&mut buffer[..n])?;
                        drop(due);
                        self.progress();
                        there = 0..n;
                    }
                    let n = left.min(there.len() as u64);
                    let end = match n == left {
                        true => range.end,
                        false => share.after(range.clone(), n),
                    };
                    let from = &buffer[there.start..there.start + n as usize];
                    share
                        .scatter_right(range.start..end, from, bytes.reborrow(), offset)
                        .map_err(|e| internal(&e))?;
                    there.start += n as usize;
                    left -= n;
                    range.start = end;
                }
            }
        }
        Ok(())
    }
}

fn window(subfile: SubfileSpan, mine: &RankPart) -> Window {
    Window {
        file: FileSpan::from_raw(mine.file.clone()),
        subfile,
        count: mine.bytes,
    }
}

/// Sends the next bytes of a packet, behind a head if there is one.
type To<'a> = dyn FnMut(&[&[u8]], &[SharedBytes<'_>]) -> Result<(), Fault> + 'a;

fn wrong_way() -> Fault {
    Fault::Refused(Refused::new(
        Status::Internal,
        "a round has memory for the other direction",
    ))
}

/// Sends a range of a subfile from where it is.
fn send_straight(
    to: &mut To<'_>,
    pins: &Pins,
    range: Range<u64>,
    head: &[&[u8]],
) -> Result<(), Fault> {
    let mut places = [SharedBytes::from_slice(&[]); PLACES];
    let mut filled = 0;
    let mut head = head;
    let nothing = Piece::Hole {
        offset: range.start,
        len: range.end - range.start,
    };
    let nothing = pins.is_empty().then_some(nothing);
    for piece in pins.pieces().chain(nothing) {
        let (offset, len) = place_of(&piece);
        let part = offset.max(range.start)..(offset + len).min(range.end);
        let mut at = part.start;
        while at < part.end {
            let place = match &piece {
                Piece::Bytes { bytes, .. } => bytes
                    .range((at - offset) as usize..(part.end - offset) as usize)
                    .expect("inside the piece"),
                Piece::Hole { .. } => {
                    let n = (part.end - at).min(ZEROS.len() as u64);
                    SharedBytes::from_slice(&ZEROS[..n as usize])
                }
            };
            at += place.len() as u64;
            places[filled] = place;
            filled += 1;
            if filled == PLACES {
                to(std::mem::take(&mut head), &places)?;
                filled = 0;
            }
        }
    }
    to(head, &places[..filled])
}

/// Receives a range of a subfile where it belongs.
fn receive_straight(
    exchange: &mut Exchange,
    grant: &Grant,
    range: Range<u64>,
) -> Result<(), Fault> {
    let places = grant.shared_pieces().filter_map(|(offset, bytes)| {
        let end = offset + bytes.len() as u64;
        let part = offset.max(range.start)..end.min(range.end);
        (!part.is_empty()).then(|| {
            let place = (part.start - offset) as usize..(part.end - offset) as usize;
            bytes.range(place).expect("inside the piece")
        })
    });
    receive_into(exchange, places)
}
