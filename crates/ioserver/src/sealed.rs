//! Sending a payload by hand: behind its head, in parts, and its seal behind the last of them if it has one.
//!
//! Parts are looked at right before they are sent, so they are read from memory once.

use std::io;

use kernels::{SharedBytes, send_all, send_all_and};
use serving::Exchange;
use wire::frame::Header;
use wire::seal::{LOOK_BYTES, Seal};

/// Most places that are sent together.
const GROUP: usize = 16;

/// The payload of one answer.
#[derive(Debug)]
pub(crate) struct Payload {
    seal: Option<Seal>,
    left: u64,
}

impl Payload {
    /// Of the answer with this header.
    pub(crate) fn new(header: &Header) -> Self {
        Payload {
            seal: header.is_sealed().then(Seal::new),
            left: header.payload_bytes,
        }
    }

    /// Sends the next bytes, behind a head if there is one.
    pub(crate) fn send(
        &mut self,
        exchange: &Exchange,
        mut head: &[&[u8]],
        places: &[SharedBytes<'_>],
    ) -> io::Result<()> {
        let Some(seal) = &mut self.seal else {
            return send_all(exchange.socket(), head, places);
        };
        let mut group = Group::default();
        for &place in places {
            let mut at = 0;
            while at < place.len() {
                let end = place.len().min(at + LOOK_BYTES - group.bytes);
                let part = place.range(at..end).expect("inside the place");
                seal.add(part);
                group.add(part);
                at = end;
                if group.is_full() {
                    self.left = self.left.saturating_sub(group.bytes as u64);
                    let head = std::mem::take(&mut head);
                    group.send(exchange, head, seal, self.left)?;
                }
            }
        }
        if group.count > 0 || !head.is_empty() {
            self.left = self.left.saturating_sub(group.bytes as u64);
            group.send(exchange, head, seal, self.left)?;
        }
        Ok(())
    }
}

/// Places that were looked at and are sent together.
struct Group<'a> {
    places: [SharedBytes<'a>; GROUP],
    count: usize,
    bytes: usize,
}

impl Default for Group<'_> {
    fn default() -> Self {
        Group {
            places: [SharedBytes::from_slice(&[]); GROUP],
            count: 0,
            bytes: 0,
        }
    }
}

impl<'a> Group<'a> {
    fn add(&mut self, part: SharedBytes<'a>) {
        self.places[self.count] = part;
        self.count += 1;
        self.bytes += part.len();
    }

    fn is_full(&self) -> bool {
        self.bytes == LOOK_BYTES || self.count == GROUP
    }

    /// Sends them, with the seal behind them if nothing is left of the payload.
    fn send(
        &mut self,
        exchange: &Exchange,
        head: &[&[u8]],
        seal: &Seal,
        left: u64,
    ) -> io::Result<()> {
        let tail = seal.bytes();
        let tail = if left == 0 { &tail[..] } else { &[] };
        send_all_and(exchange.socket(), head, &self.places[..self.count], tail)?;
        (self.count, self.bytes) = (0, 0);
        Ok(())
    }
}
