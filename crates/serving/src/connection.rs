//! One request on one connection: its control part, its payload, its answer.
//!
//! An [`Exchange`] lives as long as its connection and reuses its buffers.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use kernels::{SharedBytesMut, receive_after};
use wire::frame::{Header, MAX_CONTROL_BYTES};
use wire::link::{Link, LinkError};
use wire::message::{self, Field, Refusal, Request};
use wire::seal::{LOOK_BYTES, SEAL_BYTES, SEALED, Seal};
use wire::{DecodeError, Status};

use crate::limits::{PerUser, Taken};
use crate::seldom::Seldom;

/// Read ahead: a request with 4 KiB of payload fits, and copying it costs less than a second call.
const AHEAD_BYTES: usize = 8 << 10;

/// What a control part takes without being counted.
const PART_BYTES: usize = MAX_CONTROL_BYTES as usize;

/// Before there is a request, and when what came could not be read.
const NO_REQUEST: Header = Header {
    kind: 0,
    status: Status::Ok,
    flags: 0,
    request: 0,
    control_bytes: 0,
    payload_bytes: 0,
};

/// How a handler ended; an error closes the connection.
pub type Outcome = Result<(), LinkError>;

/// A request that was received, and the way to answer it.
///
/// The payload, if there is one, is still in the socket, or was read ahead. What the handler does not receive of it is
/// dropped when it answers, or before the next request.
#[derive(Debug)]
pub struct Exchange {
    pub(crate) link: Link,
    pub(crate) header: Header,
    pub(crate) control: Vec<u8>,
    pub(crate) out: Vec<u8>,
    pub(crate) payload_left: u64,
    /// Of what was received of a payload that is sealed.
    seal: Option<Seal>,
    /// Where long messages are counted, and for which user; those of servers are not.
    pub(crate) pool: Option<(Arc<PerUser>, u32)>,
    /// What the request takes of it.
    taken: Option<Taken>,
}

impl Exchange {
    pub(crate) fn new(mut link: Link) -> Self {
        link.read_ahead(AHEAD_BYTES);
        Exchange {
            link,
            header: NO_REQUEST,
            control: Vec::new(),
            out: Vec::new(),
            payload_left: 0,
            seal: None,
            pool: None,
            taken: None,
        }
    }

    /// Waits for the next request. A long one for which there is no room is refused here.
    pub(crate) fn next(&mut self) -> Outcome {
        loop {
            self.skip_payload()?;
            self.header = NO_REQUEST;
            for kept in [&mut self.control, &mut self.out] {
                if kept.capacity() >= 2 * PART_BYTES {
                    // Of a long message, which is rare: a connection does not keep its memory.
                    *kept = Vec::new();
                }
            }
            self.taken = None;
            let (pool, taken) = (&self.pool, &mut self.taken);
            let mut refused = None;
            let (header, control) = self.link.receive_if(|| {
                let Some((pool, user)) = pool else {
                    return true;
                };
                let grown = match &mut *taken {
                    Some(taken) => taken.grow(PART_BYTES),
                    None => pool
                        .take_many(*user, PART_BYTES)
                        .map(|first| *taken = Some(first)),
                };
                grown.map_err(|no| refused = Some(no)).is_ok()
            })?;
            let is_long = control.len() > PART_BYTES;
            if !is_long {
                self.control.clear();
                self.control.extend_from_slice(control);
            }
            self.header = header;
            self.payload_left = header.payload_bytes;
            self.seal = header.is_sealed().then(Seal::new);
            match refused {
                None => {
                    if is_long {
                        self.control = self.link.take_control();
                    }
                    return Ok(());
                }
                Some((status, refusal)) => self.refuse(status, &refusal)?,
            }
        }
    }

    /// Waits for the next request, but not longer than `patience` until all of it is there.
    pub(crate) fn next_within(&mut self, patience: Duration) -> Outcome {
        self.header = NO_REQUEST;
        let (header, control) = self.link.receive_within(patience)?;
        self.control.clear();
        self.control.extend_from_slice(control);
        self.header = header;
        Ok(())
    }

    /// The header of the request.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Its control part.
    pub fn control(&self) -> &[u8] {
        &self.control
    }

    /// Its control part as a request.
    pub fn request<R: Request>(&self) -> Result<R, DecodeError> {
        message::decode(&self.control)
    }

    /// Bytes of the payload that were not received yet.
    pub fn payload_left(&self) -> u64 {
        self.payload_left
    }

    /// Receives the next bytes of the payload where they belong. With the last of them its seal is compared;
    /// [`LinkError::Damaged`] leaves the connection in step.
    pub fn receive_payload(&mut self, into: &mut [u8]) -> Outcome {
        assert!(into.len() as u64 <= self.payload_left, "beyond the payload");
        match &mut self.seal {
            None => self.link.receive_payload(into)?,
            Some(seal) => {
                for part in into.chunks_mut(LOOK_BYTES) {
                    self.link.receive_payload(part)?;
                    seal.add(&*part);
                }
            }
        }
        self.payload_left -= into.len() as u64;
        self.compare_seal()
    }

    fn compare_seal(&mut self) -> Outcome {
        if self.payload_left > 0 {
            return Ok(());
        }
        let Some(seal) = self.seal.take() else {
            return Ok(());
        };
        let mut came = [0; SEAL_BYTES];
        self.link.receive_payload(&mut came)?;
        compare(&seal, came)
    }

    /// The socket, for a handler that sends by itself.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }

    /// [`Exchange::receive_payload`] into memory that others may be writing, from place to place.
    pub fn receive_places(&mut self, places: &mut [SharedBytesMut<'_>]) -> Outcome {
        let bytes: u64 = places.iter().map(|place| place.len() as u64).sum();
        assert!(bytes <= self.payload_left, "beyond the payload");
        self.payload_left -= bytes;
        let Some(mut seal) = self.seal.take() else {
            return self.fill(places, &mut []);
        };
        if self.payload_left > 0 {
            self.fill_and_look(places, &mut seal, &mut [])?;
            self.seal = Some(seal);
            return Ok(());
        }
        let mut came = [0; SEAL_BYTES];
        self.fill_and_look(places, &mut seal, &mut came)?;
        compare(&seal, came)
    }

    /// From what was read ahead, then from the socket.
    fn fill(&mut self, places: &mut [SharedBytesMut<'_>], tail: &mut [u8]) -> Outcome {
        let taken = receive_after(self.link.as_fd(), self.link.ahead(), places, tail)?;
        self.link.take_ahead(taken);
        Ok(())
    }

    /// Looks at bytes right after they have come: many small places at once, a large one part by part. The tail comes with
    /// the last of them.
    fn fill_and_look(
        &mut self,
        mut places: &mut [SharedBytesMut<'_>],
        seal: &mut Seal,
        tail: &mut [u8],
    ) -> Outcome {
        while !places.is_empty() {
            let mut bytes = 0;
            let near = |place: &&SharedBytesMut<'_>| {
                bytes += place.len();
                bytes <= LOOK_BYTES
            };
            let count = places.iter().take_while(near).count();
            let (some, rest) = places.split_at_mut(count.max(1));
            places = rest;
            let is_last = places.is_empty();
            if count > 0 {
                self.fill(some, if is_last { &mut *tail } else { &mut [] })?;
                some.iter().for_each(|place| seal.add(place.as_shared()));
                continue;
            }
            let large = &mut some[0];
            let mut at = 0;
            while at < large.len() {
                let end = large.len().min(at + LOOK_BYTES);
                let is_end = is_last && end == large.len();
                let part = large.reborrow().range(at..end);
                let mut part = [part.expect("inside the place")];
                self.fill(&mut part, if is_end { &mut *tail } else { &mut [] })?;
                seal.add(part[0].as_shared());
                at = end;
            }
        }
        Ok(())
    }

    /// Drops what is left of the payload.
    pub fn skip_payload(&mut self) -> Outcome {
        let mut left = std::mem::take(&mut self.payload_left);
        if self.seal.take().is_some() {
            left += SEAL_BYTES as u64;
        }
        self.link.skip_payload(left)
    }

    /// Waits for a further frame of this exchange (the data of an announced write), which takes
    /// the place of the request.
    pub fn receive_next(&mut self) -> Outcome {
        self.next()
    }

    /// Answers that it is done.
    pub fn answer<A: Field>(&mut self, answer: &A) -> Outcome {
        let mut out = std::mem::take(&mut self.out);
        message::encode(answer, &mut out);
        let sent = self.send(Status::Ok, 0, &out, &[]);
        self.out = out;
        sent
    }

    /// Answers that it is done, with descriptors, which need a Unix socket.
    pub fn answer_with_descriptors<A: Field>(
        &mut self,
        answer: &A,
        descriptors: &[BorrowedFd<'_>],
    ) -> Outcome {
        self.skip_payload()?;
        let mut out = std::mem::take(&mut self.out);
        message::encode(answer, &mut out);
        let header = Header {
            status: Status::Ok,
            flags: 0,
            ..self.header
        };
        let sent = self.link.send_with_descriptors(header, &out, descriptors);
        self.out = out;
        sent
    }

    /// Answers that it is not done, and why.
    pub fn refuse(&mut self, status: Status, refusal: &Refusal) -> Outcome {
        let (kind, request) = (self.header.kind, self.header.request);
        static LIMITS_MET: Seldom = Seldom::new();
        match status {
            Status::QuotaExceeded => {
                if let Some(left_out) = LIMITS_MET.line() {
                    tracing::warn!(kind, request, why = refusal.text, left_out, "limit met");
                }
            }
            status => {
                tracing::debug!(kind, request, %status, why = refusal.text, "request refused")
            }
        }
        let mut out = std::mem::take(&mut self.out);
        message::encode(refusal, &mut out);
        let sent = self.send(status, 0, &out, &[]);
        self.out = out;
        sent
    }

    /// Answers with a control part and a payload of its own making.
    pub fn send(
        &mut self,
        status: Status,
        flags: u16,
        control: &[u8],
        payload: &[&[u8]],
    ) -> Outcome {
        self.skip_payload()?;
        let mut _taken = None;
        if let Some((pool, user)) = self.pool.as_ref().filter(|_| control.len() > PART_BYTES) {
            match pool.take_many(*user, control.len() - PART_BYTES) {
                Ok(taken) => _taken = Some(taken),
                Err((status, refusal)) => return self.refuse(status, &refusal),
            }
        }
        let header = Header {
            status,
            flags: flags | self.header.flags & SEALED,
            ..self.header
        };
        self.link.send(header, control, payload)
    }

    /// The encoded header of an answer whose payload the handler sends by itself through
    /// [`Exchange::socket`], right behind header and control part, and its seal behind it if the header says so.
    pub fn answer_header(&self, flags: u16, control: &[u8], payload_bytes: u64) -> Header {
        Header {
            status: Status::Ok,
            flags: flags | self.header.flags & SEALED,
            control_bytes: control.len() as u32,
            payload_bytes,
            ..self.header
        }
    }
}

/// Whether a payload fits the seal that came behind it.
fn compare(seal: &Seal, came: [u8; SEAL_BYTES]) -> Outcome {
    match seal.fits(came) {
        true => Ok(()),
        false => Err(LinkError::Damaged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::link::Listener;
    use wire::message::catalogue::Counts;
    use wire::message::session::Ping;
    use wire::url::Endpoint;

    /// An exchange with a client that sends these bytes and goes.
    fn with_client(send: impl FnOnce(Link) + Send + 'static) -> Exchange {
        let endpoint = Endpoint::Tcp {
            host: "127.0.0.1".into(),
            port: 0,
        };
        let listener = Listener::bind(&endpoint).unwrap();
        let endpoint = listener.endpoint().unwrap();
        std::thread::spawn(move || {
            send(Link::connect(&endpoint, Duration::from_secs(20)).unwrap());
        });
        Exchange::new(listener.accept().unwrap())
    }

    #[test]
    fn sealed_payload_comes_into_any_places_and_damage_is_noticed() {
        // Small ones together, large ones in parts, empty ones between, and the end of a payload in the middle of them.
        let cuts: &[&[usize]] = &[
            &[1],
            &[10, 0, 5000],
            &[LOOK_BYTES, 1, LOOK_BYTES - 1],
            &[100, 3 * LOOK_BYTES + 7, 0, 4096],
        ];
        for &lens in cuts {
            let total: usize = lens.iter().sum();
            let payload: Vec<u8> = (0..total).map(|i| (i * 31 % 251) as u8).collect();
            let sent = payload.clone();
            let mut exchange = with_client(move |mut link| {
                let sealed = |request| Header {
                    kind: 1,
                    flags: SEALED,
                    request,
                    ..NO_REQUEST
                };
                for request in 0..2 {
                    link.send(sealed(request), &[], &[&sent]).unwrap();
                }
                // The same with another byte, under the seal of the first.
                let header = Header {
                    payload_bytes: sent.len() as u64,
                    ..sealed(2)
                };
                let mut frame = header.encode(&[]).to_vec();
                frame.extend(&sent);
                let mut seal = Seal::new();
                seal.add(&sent[..]);
                frame.extend(seal.bytes());
                let last = frame.len() - SEAL_BYTES - 1;
                frame[last] ^= 1;
                kernels::send_all(link.as_fd(), &[&frame], &[]).unwrap();
                link.send(sealed(3), &[], &[]).unwrap();
            });
            let mut memory = vec![0; total];
            let mut receive = |exchange: &mut Exchange, by_places: bool| {
                exchange.next().unwrap();
                if !by_places {
                    let (first, rest) = memory.split_at_mut(total / 2);
                    exchange.receive_payload(first)?;
                    return exchange.receive_payload(rest);
                }
                let mut rest = &mut memory[..];
                let mut places: Vec<SharedBytesMut<'_>> = Vec::new();
                for &len in lens {
                    let (place, behind) = rest.split_at_mut(len);
                    places.push(place.into());
                    rest = behind;
                }
                let (first, second) = places.split_at_mut(lens.len() / 2);
                exchange.receive_places(first)?;
                exchange.receive_places(second)
            };
            receive(&mut exchange, true).unwrap();
            receive(&mut exchange, false).unwrap();
            let damaged = receive(&mut exchange, true);
            assert!(matches!(damaged, Err(LinkError::Damaged)), "{damaged:?}");
            memory[total - 1] ^= 1;
            assert!(memory == payload);
            exchange.next().unwrap();
            assert_eq!(exchange.header().request, 3, "the connection is in step");
        }
    }

    #[test]
    fn a_steady_exchange_allocates_nothing() {
        let endpoint = Endpoint::Tcp {
            host: "127.0.0.1".into(),
            port: 0,
        };
        let listener = Listener::bind(&endpoint).unwrap();
        let endpoint = listener.endpoint().unwrap();
        let wait = Duration::from_secs(20);
        let client = std::thread::spawn(move || {
            let mut link = Link::connect(&endpoint, wait).unwrap();
            let mut control = Vec::new();
            message::encode(&Ping {}, &mut control);
            for request in 0..110 {
                let header = Header {
                    kind: Ping::KIND,
                    request,
                    ..NO_REQUEST
                };
                link.send(header, &control, &[&[7; 3000]]).unwrap();
                let (answer, _) = link.receive().unwrap();
                assert_eq!(answer.request, request);
            }
        });
        let mut exchange = Exchange::new(listener.accept().unwrap());
        let answer = Counts {
            files: 1,
            directories: 2,
            removals: u64::MAX,
            restored_from_s: 0,
            trees: 0,
            tree_names: 0,
            tree_directories: 0,
        };
        let mut serve = |times: u32| {
            for _ in 0..times {
                exchange.next().unwrap();
                exchange.request::<Ping>().unwrap();
                exchange.receive_payload(&mut [0; 1000]).unwrap();
                assert_eq!(exchange.payload_left(), 2000);
                exchange.answer(&answer).unwrap();
            }
        };
        serve(10);
        let seen = allocation_counter::measure(|| serve(100));
        assert_eq!(seen.count_total, 0);
        client.join().unwrap();
    }
}
