//! Sending a payload by hand: behind its head, in parts, and its seal behind the last of them if it has one.
//!
//! Parts are looked at right before they are sent, so they are read from memory once. Cost of a seal: a copy into the first cache
//! and a checksum.

use std::io;

use kernels::{SharedBytes, send_all, send_all_and};
use serving::Exchange;
use wire::frame::Header;
use wire::seal::Seal;

/// Bytes that are looked at and sent at a time.
const STEP: usize = 256 << 10;

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
        let total: usize = places.iter().map(SharedBytes::len).sum();
        self.left = self.left.saturating_sub(total as u64);
        if total <= STEP {
            for place in places {
                place.each_copy(|bytes| seal.add(bytes));
            }
            let tail = seal.bytes();
            let tail = if self.left == 0 { &tail[..] } else { &[] };
            return send_all_and(exchange.socket(), head, places, tail);
        }
        for place in places {
            let mut at = 0;
            while at < place.len() {
                let end = place.len().min(at + STEP);
                let part = place.range(at..end).expect("inside the place");
                part.each_copy(|bytes| seal.add(bytes));
                send_all(exchange.socket(), std::mem::take(&mut head), &[part])?;
                at = end;
            }
        }
        let tail = seal.bytes();
        let tail = if self.left == 0 { &tail[..] } else { &[] };
        send_all_and(exchange.socket(), head, &[], tail)
    }
}
