//! Owns packing and unpacking: the walks of `walk` turned into copies.
//!
//! A [`Redistribution`] is made once per pair of distributions and holds the length of every
//! packet; packing then needs one cursor per packet, and packets of one processor stand in one
//! buffer at the cache-conflict-free stride.

use std::ops::Range;

use super::walk::Walk;
use super::{Distribution, Kind, RedistributeError};
use kernels::{BoundsError, Nest, Program, copy};

use super::stride::{CacheLevel, cache_optimal_stride, gcd};

/// How received packets are put into place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnpackOrder {
    /// All packets first, then the local array in order.
    Synchronous,
    /// Packet by packet in any order, at constant strides.
    Asynchronous,
}

/// The packets of one processor: where each lies, and the buffer if one had to be built.
#[derive(Clone, Debug)]
pub(crate) struct Packets {
    buffer: Option<Vec<u8>>,
    places: Vec<(usize, Range<usize>)>,
    /// What the places were computed for; packing again relies on it.
    made_for: (Redistribution, usize),
}

impl Packets {
    /// Target processor and place of every packet, in the buffer or else in the local array.
    pub(crate) fn places(&self) -> &[(usize, Range<usize>)] {
        &self.places
    }

    /// True if nothing was packed: the packets lie in the local array itself.
    #[cfg(test)]
    pub(crate) fn in_place(&self) -> bool {
        self.buffer.is_none()
    }

    /// The bytes of a packet, given the local array it was made of.
    pub(crate) fn bytes<'a>(&'a self, local: &'a [u8], place: &Range<usize>) -> &'a [u8] {
        &self.buffer.as_deref().unwrap_or(local)[place.clone()]
    }
}

/// A prepared redistribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redistribution {
    elements: u64,
    element_bytes: u64,
    processors: u64,
    from: Distribution,
    to: Distribution,
    kind: Kind,
    back: Kind,
    cache: CacheLevel,
    stride: Option<u64>,
}

impl Redistribution {
    /// Prepares a redistribution by the most special kind.
    pub(crate) fn new(
        elements: u64,
        element_bytes: u64,
        processors: u64,
        from: Distribution,
        to: Distribution,
    ) -> Result<Redistribution, RedistributeError> {
        if processors == 0 || element_bytes == 0 || from.unit() == 0 || to.unit() == 0 {
            return Err(RedistributeError::Zero);
        }
        // Everything the walks compute stays below this product.
        let reach = [from, to].map(|distribution| {
            let round = u128::from(distribution.unit()) * u128::from(processors);
            (u128::from(elements) + round + 1) * u128::from(element_bytes)
        });
        if reach.iter().any(|reach| *reach > i64::MAX as u128) {
            return Err(RedistributeError::TooLarge);
        }
        for distribution in [from, to] {
            if let Distribution::Block(block) = distribution
                && block * processors < elements
            {
                return Err(RedistributeError::BlockTooSmall { block });
            }
        }
        let kind = Kind::of(elements, processors, from, to);
        let back = Kind::of(elements, processors, to, from);
        let cache = CacheLevel::second();
        Ok(Redistribution {
            elements,
            element_bytes,
            processors,
            from,
            to,
            kind,
            back,
            cache,
            stride: None,
        })
    }

    /// This redistribution by GEN in both directions.
    #[cfg(test)]
    pub(crate) fn generic(mut self) -> Redistribution {
        (self.kind, self.back) = (Kind::Gen, Kind::Gen);
        self
    }

    /// This redistribution with packets at this distance, or the length of the longest if that is more,
    /// instead of the conflict-free one: to measure what the rule is worth.
    pub(crate) fn packed_at(mut self, stride: u64) -> Redistribution {
        self.stride = Some(stride);
        self
    }

    /// The kind that packs.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Bytes of a processor's local array before.
    pub(crate) fn source_len(&self, processor: usize) -> usize {
        self.local_bytes(self.from, processor)
    }

    /// Bytes of a processor's local array after.
    pub(crate) fn target_len(&self, processor: usize) -> usize {
        self.local_bytes(self.to, processor)
    }

    fn local_bytes(&self, distribution: Distribution, processor: usize) -> usize {
        let count = distribution.local_count(self.elements, self.processors, processor as u64);
        (count * self.element_bytes) as usize
    }

    /// The walk of a processor's local array under one distribution towards another.
    fn walk(&self, from: Distribution, to: Distribution, me: usize) -> Walk<u64> {
        Walk {
            local: from.local_count(self.elements, self.processors, me as u64),
            x: from.unit(),
            y: to.unit(),
            me: me as u64,
            processors: self.processors,
        }
    }

    /// Bytes of every packet of a processor, by target.
    fn packet_lens(&self, me: usize) -> Vec<usize> {
        let mut lens = vec![0; self.processors as usize];
        let walk = self.walk(self.from, self.to, me);
        visit(self.kind, walk, |peer, _, count| {
            lens[peer as usize] += (count * self.element_bytes) as usize
        });
        lens
    }

    /// Bytes of the copies that fill packets: e, e x or e y.
    fn copy_bytes(&self) -> u64 {
        self.element_bytes
            * match self.kind {
                Kind::Kyy => self.to.unit(),
                Kind::Xkx1 | Kind::Xkx2 => self.from.unit(),
                Kind::Bcy | Kind::Cbl | Kind::Gen => 1,
            }
    }

    /// Where a processor's packets go: only those that are not empty, at the stride that keeps
    /// them out of each other's cache blocks.
    pub(crate) fn places(&self, me: usize) -> Vec<(usize, Range<usize>)> {
        if self.kind == Kind::Cbl {
            let mut places = Vec::new();
            let bytes = self.element_bytes;
            self.walk(self.from, self.to, me).cbl(|peer, start, count| {
                places.push((
                    peer as usize,
                    (start * bytes) as usize..((start + count) * bytes) as usize,
                ));
            });
            return places;
        }
        let lens = self.packet_lens(me);
        let built: Vec<(usize, usize)> = lens
            .into_iter()
            .enumerate()
            .filter(|(_, len)| *len > 0)
            .collect();
        let longest = built.iter().map(|(_, len)| *len).max().unwrap_or(0) as u64;
        let optimal = || {
            cache_optimal_stride(longest, built.len() as u64, self.copy_bytes(), self.cache).bytes
        };
        let stride = self
            .stride
            .map_or_else(optimal, |stride| stride.max(longest)) as usize;
        let place = |(slot, (peer, len)): (usize, &(usize, usize))| {
            (*peer, slot * stride..slot * stride + len)
        };
        built.iter().enumerate().map(place).collect()
    }

    /// Packs one processor's local array. Cyclic to Block packs nothing: the packets are places
    /// in the local array.
    pub(crate) fn pack(&self, me: usize, local: &[u8]) -> Result<Packets, RedistributeError> {
        let places = self.places(me);
        if self.kind == Kind::Cbl {
            self.check(me, local.len(), self.source_len(me))?;
            return Ok(Packets {
                buffer: None,
                places,
                made_for: (self.clone(), me),
            });
        }
        let len = places.iter().map(|(_, place)| place.end).max().unwrap_or(0);
        let mut packets = Packets {
            buffer: Some(vec![0; len]),
            places,
            made_for: (self.clone(), me),
        };
        self.pack_again(me, local, &mut packets)?;
        Ok(packets)
    }

    /// Packs into packets made before by [`Redistribution::pack`] for the same processor.
    pub(crate) fn pack_again(
        &self,
        me: usize,
        local: &[u8],
        packets: &mut Packets,
    ) -> Result<(), RedistributeError> {
        self.check(me, local.len(), self.source_len(me))?;
        let Some(buffer) = &mut packets.buffer else {
            return Ok(());
        };
        if packets.made_for.0 != *self || packets.made_for.1 != me {
            return Err(RedistributeError::Shape { processor: me });
        }
        let mut cursors = vec![0; self.processors as usize];
        for (peer, place) in &packets.places {
            cursors[*peer] = place.start;
        }
        let walk = self.walk(self.from, self.to, me);
        let pack = match self.copy_bytes() {
            1 => pack_runs::<1>,
            2 => pack_runs::<2>,
            4 => pack_runs::<4>,
            8 => pack_runs::<8>,
            16 => pack_runs::<16>,
            32 => pack_runs::<32>,
            64 => pack_runs::<64>,
            _ => pack_runs::<0>,
        };
        pack(
            self.kind,
            walk,
            self.element_bytes,
            &mut cursors,
            local,
            buffer,
        );
        Ok(())
    }

    fn check(&self, me: usize, len: usize, expected: usize) -> Result<(), RedistributeError> {
        if (me as u64) < self.processors && len == expected {
            return Ok(());
        }
        Err(RedistributeError::Shape { processor: me })
    }

    /// Puts received packets into a processor's new local array: `received[p]` came from
    /// processor p, empty if none did.
    pub(crate) fn unpack(
        &self,
        me: usize,
        received: &[&[u8]],
        local: &mut [u8],
        unpacking: UnpackOrder,
    ) -> Result<(), RedistributeError> {
        self.check(me, local.len(), self.target_len(me))?;
        match unpacking {
            UnpackOrder::Synchronous => self.unpack_in_order(me, received, local),
            UnpackOrder::Asynchronous => {
                for (peer, program) in self.placements(me).iter().enumerate() {
                    self.unpack_packet(program, received.get(peer).copied().unwrap_or(&[]), local)
                        .map_err(|_| RedistributeError::Shape { processor: peer })?;
                }
                Ok(())
            }
        }
    }

    fn unpack_in_order(
        &self,
        me: usize,
        received: &[&[u8]],
        local: &mut [u8],
    ) -> Result<(), RedistributeError> {
        let walk = self.walk(self.to, self.from, me);
        let mut lens = vec![0; self.processors as usize];
        visit(self.back, walk, |peer, _, count| {
            lens[peer as usize] += (count * self.element_bytes) as usize
        });
        for (peer, len) in lens.iter().enumerate() {
            if received.get(peer).map_or(0, |packet| packet.len()) != *len {
                return Err(RedistributeError::Shape { processor: peer });
            }
        }
        let mut cursors = vec![0; self.processors as usize];
        let bytes = self.element_bytes;
        visit(self.back, walk, |peer, start, count| {
            let (peer, len) = (peer as usize, (count * bytes) as usize);
            let (from, to) = (cursors[peer], (start * bytes) as usize);
            local[to..to + len].copy_from_slice(&received[peer][from..from + len]);
            cursors[peer] += len;
        });
        Ok(())
    }

    /// Where the packet of every peer goes in a processor's new local array: computed once, then
    /// packets may arrive in any order. The places repeat with the period lcm(x, y).
    pub(crate) fn placements(&self, me: usize) -> Vec<Program> {
        let walk = self.walk(self.to, self.from, me);
        let (x, y) = (self.to.unit(), self.from.unit());
        let period = (x / gcd(x, y)).saturating_mul(y).min(walk.local.max(1));
        let (periods, rest) = (walk.local / period, walk.local % period);
        // Runs of one whole period and of the incomplete one, by peer.
        let runs = |local: u64| {
            let mut runs: Vec<Vec<(u64, u64)>> = vec![Vec::new(); self.processors as usize];
            visit(self.back, Walk { local, ..walk }, |peer, start, count| {
                let list = &mut runs[peer as usize];
                match list.last_mut() {
                    Some(last) if last.0 + last.1 == start => last.1 += count,
                    _ => list.push((start, count)),
                }
            });
            runs
        };
        let (whole, part) = (runs(period), runs(rest));
        let bytes = self.element_bytes;
        let place = |packet: u64, start: u64, count: u64| {
            Nest::block(
                (packet * bytes) as i64,
                (start * bytes) as i64,
                count * bytes,
            )
            .expect("bounded when prepared")
        };
        whole
            .iter()
            .zip(&part)
            .map(|(whole, part)| {
                let mut nests = Vec::new();
                let mut packet = 0;
                let mut list = Vec::new();
                for (start, count) in whole {
                    list.push(place(packet, *start, *count));
                    packet += count;
                }
                if !list.is_empty() && periods > 0 {
                    let (step, stride) = ((packet * bytes) as i64, (period * bytes) as i64);
                    nests.push(
                        Nest::nested(0, 0, periods, step, stride, list)
                            .expect("bounded when prepared"),
                    );
                }
                let mut packet = packet * periods;
                for (start, count) in part {
                    nests.push(place(packet, periods * period + start, *count));
                    packet += count;
                }
                Program::compile(&nests)
            })
            .collect()
    }

    /// Puts one packet into place.
    pub(crate) fn unpack_packet(
        &self,
        placement: &Program,
        packet: &[u8],
        local: &mut [u8],
    ) -> Result<(), BoundsError> {
        copy(placement, packet, local)
    }

    /// The whole redistribution: `locals[p]` is processor p's array before, the result the
    /// arrays after. All processors are played by this thread.
    pub(crate) fn run(
        &self,
        locals: &[Vec<u8>],
        unpacking: UnpackOrder,
    ) -> Result<Vec<Vec<u8>>, RedistributeError> {
        let processors = self.processors as usize;
        if locals.len() != processors {
            return Err(RedistributeError::Shape {
                processor: locals.len().min(processors),
            });
        }
        let packets: Result<Vec<Packets>, _> = locals
            .iter()
            .enumerate()
            .map(|(me, local)| self.pack(me, local))
            .collect();
        let packets = packets?;
        let mut result = Vec::with_capacity(processors);
        for me in 0..processors {
            let mut received: Vec<&[u8]> = vec![&[]; processors];
            for (peer, list) in packets.iter().enumerate() {
                for (_, place) in list.places.iter().filter(|(target, _)| *target == me) {
                    received[peer] = list.bytes(&locals[peer], place);
                }
            }
            let mut local = vec![0; self.target_len(me)];
            self.unpack(me, &received, &mut local, unpacking)?;
            result.push(local);
        }
        Ok(result)
    }
}

/// Runs the walk of a kind.
#[inline(always)]
fn visit(kind: Kind, walk: Walk<u64>, visit: impl FnMut(u64, u64, u64)) {
    match kind {
        Kind::Kyy => walk.kyy(visit),
        Kind::Xkx1 => walk.xkx_1(visit),
        Kind::Xkx2 => walk.xkx_2(visit),
        Kind::Bcy => walk.bcy(visit),
        Kind::Cbl => walk.cbl(visit),
        Kind::Gen => walk.generic(visit),
    }
}

/// Copies the runs of a walk to the packets' cursors; runs of exactly B bytes, which all but the
/// last are, by a copy of that size. B = 0 stands for no particular size.
#[inline(never)]
fn pack_runs<const B: usize>(
    kind: Kind,
    walk: Walk<u64>,
    bytes: u64,
    cursors: &mut [usize],
    source: &[u8],
    target: &mut [u8],
) {
    visit(kind, walk, |peer, start, count| {
        let cursor = &mut cursors[peer as usize];
        let (start, len) = ((start * bytes) as usize, (count * bytes) as usize);
        let (from, to) = (
            &source[start..start + len],
            &mut target[*cursor..*cursor + len],
        );
        match (from.first_chunk::<B>(), to.first_chunk_mut::<B>()) {
            (Some(from), Some(to)) if B > 0 && len == B => *to = *from,
            _ => to.copy_from_slice(from),
        }
        *cursor += len;
    });
}
