//! Two phases: ranks regroup bytes among themselves, and each accesses one domain of the file.
//!
//! ```text
//!  two phases      |-- domain of rank 0 --|-- domain of rank 1 --| ..       one round: at most 4 MiB each
//!    write         give each rank the bytes of its domain, put them together, write the domain
//!    read          read the domain, give each rank its bytes of it
//! ```
//!
//! Domains are accessed by each rank for itself, or all of a round by one directed operation: then servers
//! send whole blocks in the order of their stores, and a rank packs for the others what has arrived while
//! the rest is on its way.
//!
//! Invariants: a rank that fails goes on exchanging to the end, where all hear of it; memory is kept from
//! access to access and is bounded by the domain.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Instant;

use kernels::{Share, SharedBytes, SharedBytesMut};
use layout::View;
use wire::Status;
use wire::message::directed::RankRange;

use crate::access::memory::{Direction, Memory};
use crate::access::phases::Phases;
use crate::access::request::Request;
use crate::collective::JointAccess;
use crate::collective::directed::{DirectedAccess, Ends, may_go_alone};
use crate::collective::strategy::Collective;
use crate::collective::team::Team;
use crate::error::{Error, Result};
use crate::file::File;
use crate::session::lane::Lane;

/// Runs of the file from which on a rank packs what has arrived before the rest has.
const EARLY_RUN: u64 = 4096;

/// Memory of two phases, kept from access to access.
#[derive(Debug, Default)]
pub(crate) struct TwoPhases {
    domain: Vec<u8>,
    sent: Vec<u8>,
    /// What came, by rank.
    got: Vec<Vec<u8>>,
}

/// What became of the bytes of one rank, whatever the others did.
enum RankOutcome {
    Moved(usize),
    /// All ranks hear of it at the end.
    Failed(Error),
}

impl RankOutcome {
    fn of(done: Result<()>, moved: usize) -> RankOutcome {
        match done {
            Ok(()) => RankOutcome::Moved(moved),
            Err(error) => RankOutcome::Failed(error),
        }
    }
}

impl File {
    /// What both directions have in common: memory, and the end with all ranks. `rounds` fails only if ranks cannot
    /// be reached.
    fn in_two_phases(
        &self,
        team: &Team,
        regrouped: &JointAccess,
        direction: Direction,
        requested: u64,
        rounds: impl FnOnce(&mut TwoPhases) -> Result<RankOutcome>,
    ) -> Result<usize> {
        let started = Instant::now();
        let note = self.unsynced.last_note();
        let mut memory = std::mem::take(&mut *self.together.memory.lock());
        let ended = rounds(&mut memory);
        *self.together.memory.lock() = memory;
        let mine = ended?;
        // Every rank notes where its bytes are, whichever rank has sent them.
        let written = match direction {
            Direction::Write => self.unsynced.put_since(note),
            Direction::Read => Vec::new(),
        };
        self.together.exchanged(written.len());
        let (moved, said) = match mine {
            RankOutcome::Moved(moved) => (Ok(moved), Ok(written)),
            RankOutcome::Failed(error) => (Err(error.clone()), Err(error)),
        };
        let heard = team.agree(said);
        let moved = moved?;
        for (rank, written) in heard?.iter().enumerate() {
            if regrouped.has_sent(rank, team.rank()) {
                let noted = self.unsynced.take_from(written);
                noted.map_err(|_| other_bytes(rank))?;
            }
        }
        let mut phases = Phases::default();
        phases.end(requested, moved, started);
        self.keep_phases(phases);
        self.count(regrouped.how);
        Ok(moved)
    }

    /// Moves the bytes of a rank through those that access them in long stretches.
    pub(crate) fn access_in_two_phases(
        &self,
        team: &Team,
        regrouped: &JointAccess,
        memory: &mut Memory<'_>,
    ) -> Result<usize> {
        match memory.direction() {
            Direction::Read => self.read_in_two_phases(team, regrouped, memory),
            Direction::Write => self.write_in_two_phases(team, regrouped, memory),
        }
    }

    fn write_in_two_phases(
        &self,
        team: &Team,
        regrouped: &JointAccess,
        memory: &Memory<'_>,
    ) -> Result<usize> {
        let requested = memory.len();
        self.in_two_phases(team, regrouped, Direction::Write, requested, |own| {
            let rank = team.rank();
            let offset = regrouped.wanted[rank].offset;
            let mut failed: Result<()> = Ok(());
            for round in 0..regrouped.rounds() {
                let ranges: Vec<Range<u64>> = (0..team.size())
                    .map(|to| regrouped.positions(rank, &regrouped.domain(round, to)))
                    .collect();
                let first = ranges.first().map_or(0, |r| r.start);
                let last = ranges.last().map_or(0, |r| r.end);
                // Domains ascend, so what goes to them is one range of the access.
                let packed = grown(&mut own.sent, last - first);
                memory.pack(first - offset, (&mut *packed).into());
                let parts: Vec<&[u8]> = ranges
                    .iter()
                    .map(|r| &packed[(r.start - first) as usize..(r.end - first) as usize])
                    .collect();
                self.together.exchanged(packed.len());
                team.exchange_into(&parts, &mut own.got)?;
                // Where servers direct, all ranks have to come.
                if failed.is_ok() || regrouped.how == Collective::TwoPhaseDdio {
                    let TwoPhases { domain, got, .. } = own;
                    let written = self.write_domain(regrouped, round, rank, got, domain);
                    failed = failed.and(written);
                }
            }
            Ok(RankOutcome::of(failed, memory.len() as usize))
        })
    }

    /// Puts a domain together and writes it.
    fn write_domain(
        &self,
        regrouped: &JointAccess,
        round: u64,
        rank: usize,
        got: &[Vec<u8>],
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        let domain = regrouped.domain(round, rank);
        let is_directed = regrouped.how == Collective::TwoPhaseDdio;
        if domain.is_empty() && !is_directed {
            return Ok(());
        }
        let bytes = grown(buffer, domain.end - domain.start);
        let mut put = Ok(());
        for (from, part) in got.iter().enumerate() {
            let positions = regrouped.positions(from, &domain);
            let stream = &regrouped.agreed.ranks[from].stream;
            if positions.end - positions.start != part.len() as u64
                || stream
                    .scatter(positions, part, (&mut *bytes).into(), domain.start)
                    .is_err()
            {
                put = Err(other_bytes(from));
            }
        }
        let _gate = self.beside();
        let whole = self.views.whole.clone();
        self.session.with_lane(|lane| {
            let is_done = is_directed && {
                let mut ends = Domain {
                    bytes: &mut *bytes,
                    start: domain.start,
                    early: None,
                };
                self.domain_directed(lane, regrouped, round, rank, Direction::Write, &mut ends)?
            };
            put?;
            if is_done || domain.is_empty() {
                return Ok(());
            }
            let memory = Memory::of(&*bytes);
            let request = Request::of(&whole, domain.start, memory);
            self.access(lane, request).map(drop)
        })
    }

    fn read_in_two_phases(
        &self,
        team: &Team,
        regrouped: &JointAccess,
        memory: &mut Memory<'_>,
    ) -> Result<usize> {
        let requested = memory.len();
        self.in_two_phases(team, regrouped, Direction::Read, requested, |own| {
            let rank = team.rank();
            let offset = regrouped.wanted[rank].offset;
            let mut failed: Result<()> = Ok(());
            let mut done = 0;
            // Once the file has ended, nothing more comes.
            let mut has_ended = false;
            for round in 0..regrouped.rounds() {
                let packed = self.read_and_pack(regrouped, round, rank, own);
                let ends = match packed {
                    Ok(ends) => ends,
                    Err(error) => {
                        failed = failed.and(Err(error));
                        vec![0..0; team.size()]
                    }
                };
                let parts: Vec<&[u8]> = ends.iter().map(|range| &own.sent[range.clone()]).collect();
                self.together
                    .exchanged(parts.iter().map(|part| part.len()).sum());
                team.exchange_into(&parts, &mut own.got)?;
                for (from, part) in own.got.iter().enumerate() {
                    let positions = regrouped.positions(rank, &regrouped.domain(round, from));
                    let want = positions.end - positions.start;
                    if part.len() as u64 > want {
                        failed = Err(other_bytes(from));
                        continue;
                    }
                    if has_ended || part.is_empty() {
                        has_ended |= want > 0;
                        continue;
                    }
                    let at = positions.start - offset;
                    memory.unpack(at, part[..].into());
                    done += part.len();
                    has_ended = (part.len() as u64) < want;
                }
            }
            Ok(RankOutcome::of(failed, done))
        })
    }

    /// Reads the domain of a round and packs it for all ranks; where in `sent` what goes to each is.
    fn read_and_pack(
        &self,
        regrouped: &JointAccess,
        round: u64,
        rank: usize,
        own: &mut TwoPhases,
    ) -> Result<Vec<Range<usize>>> {
        let TwoPhases { domain, sent, .. } = own;
        let wanted = regrouped.domain(round, rank);
        // What goes to whom of a part of the domain that is in the file.
        let places = |there: &Range<u64>| -> Vec<Range<usize>> {
            let mut at = 0;
            let place = |to: usize| {
                let positions = regrouped.positions(to, there);
                let start = at;
                at += (positions.end - positions.start) as usize;
                start..at
            };
            (0..regrouped.wanted.len()).map(place).collect()
        };
        // All of it is, if servers direct: they know.
        let all = places(&wanted);
        let sent = grown(sent, all.last().map_or(0, |last| last.end as u64));
        let (found, is_packed) = match regrouped.how {
            Collective::TwoPhaseDdio => {
                self.read_domain_directed(regrouped, round, rank, domain, sent, &all)?
            }
            _ => (self.read_domain(regrouped, round, rank, domain)?, false),
        };
        if is_packed {
            return Ok(all);
        }
        let there = wanted.start..wanted.start + found;
        let ends = places(&there);
        for (to, range) in ends.iter().enumerate() {
            let source = SharedBytes::from_slice(&domain[..found as usize]);
            let stream = &regrouped.agreed.ranks[to].stream;
            let positions = regrouped.positions(to, &there);
            let packed = &mut sent[range.clone()];
            stream
                .gather(positions, source, wanted.start, packed)
                .map_err(|_| other_bytes(to))?;
        }
        Ok(ends)
    }

    /// Reads a domain; how many bytes of it are in the file.
    fn read_domain(
        &self,
        regrouped: &JointAccess,
        round: u64,
        rank: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<u64> {
        let domain = regrouped.domain(round, rank);
        let is_wanted =
            (0..regrouped.wanted.len()).any(|to| !regrouped.positions(to, &domain).is_empty());
        if !is_wanted {
            return Ok(0);
        }
        let into = grown(buffer, domain.end - domain.start);
        let _gate = self.beside();
        let whole = self.views.whole.clone();
        let found = self.session.with_lane(|lane| {
            let request = Request::of(&whole, domain.start, Memory::of(into));
            self.access(lane, request)
        })?;
        Ok(found as u64)
    }

    /// Has servers direct the domains of a round; whether they did. If not, each rank accesses its own.
    fn domain_directed(
        &self,
        lane: &mut Lane,
        regrouped: &JointAccess,
        round: u64,
        rank: usize,
        direction: Direction,
        ends: &mut dyn Ends,
    ) -> Result<bool> {
        let domains: Vec<Range<u64>> = (0..regrouped.wanted.len())
            .map(|to| regrouped.domain(round, to))
            .collect();
        let ranks: Vec<RankRange> = domains
            .iter()
            .zip(&regrouped.wanted)
            .map(|(domain, wanted)| RankRange {
                client: wanted.client,
                view: 0,
                lo: domain.start,
                hi: domain.end,
            })
            .collect();
        let start = domains[0].start;
        let end = domains.iter().map(|domain| domain.end).max().unwrap_or(0);
        let operation = DirectedAccess {
            leader: regrouped.wanted[0].client,
            // Numbers of single accesses are far below.
            number: regrouped.wanted[0].number << 24 | round,
            direction,
            by_record: false,
            block_bytes: regrouped.agreed.block_bytes,
            blocks: regrouped.blocks,
            epoch: regrouped.epoch,
            ranks: &ranks,
            views: &[View::whole_file()],
            hull: start..end,
        };
        let plan = self.views.whole.plan(&self.known.state());
        let ended = self.directed(lane, &operation, rank, &plan, ends)?;
        let together = &self.together;
        together.packets.fetch_add(ended.packets, Ordering::Relaxed);
        if !ended.failures.is_empty() {
            if may_go_alone(&ended.failures) {
                return Ok(false);
            }
            let error = self.directed_error(ended.failures);
            return Err(error.expect("there is one"));
        }
        let end = domains[rank].end;
        if direction.is_write() && !domains[rank].is_empty() && end > self.known.size().size {
            let whole = self.views.whole.clone();
            if !self.grow(lane, &whole, regrouped.epoch, end)? {
                return Ok(false);
            }
            self.known.grown(regrouped.epoch, end);
        }
        Ok(true)
    }

    /// Reads a domain as servers direct it, and packs what has arrived for the others meanwhile: how many
    /// bytes of it are in the file, and whether all is packed.
    fn read_domain_directed(
        &self,
        regrouped: &JointAccess,
        round: u64,
        rank: usize,
        buffer: &mut Vec<u8>,
        sent: &mut [u8],
        to: &[Range<usize>],
    ) -> Result<(u64, bool)> {
        let domain = regrouped.domain(round, rank);
        let len = domain.end - domain.start;
        let mut ends = Domain {
            bytes: grown(buffer, len),
            start: domain.start,
            early: Some(Early {
                regrouped,
                domain: domain.clone(),
                sent,
                to,
                packed: 0,
            }),
        };
        let _gate = self.beside();
        let is_done = self.session.with_lane(|lane| {
            self.domain_directed(lane, regrouped, round, rank, Direction::Read, &mut ends)
        })?;
        if !is_done {
            return Ok((self.read_domain(regrouped, round, rank, buffer)?, false));
        }
        let early = ends.early.expect("just made");
        let together = &self.together;
        together
            .packed_early
            .fetch_add(early.packed, Ordering::Relaxed);
        let wanted = to.last().map_or(0, |range| range.end) as u64;
        Ok((len, early.packed == wanted))
    }
}

/// What a rank packs for the others while its domain arrives.
struct Early<'a> {
    regrouped: &'a JointAccess,
    domain: Range<u64>,
    sent: &'a mut [u8],
    /// By rank, where its bytes go.
    to: &'a [Range<usize>],
    packed: u64,
}

/// The memory of a domain.
struct Domain<'a> {
    bytes: &'a mut [u8],
    /// File offset of its first byte.
    start: u64,
    early: Option<Early<'a>>,
}

impl Ends for Domain<'_> {
    fn put(&mut self, share: &Share, file: Range<u64>, packed: &[u8]) -> bool {
        let into = SharedBytesMut::from_slice(self.bytes);
        if share
            .scatter_left(file.clone(), packed, into, self.start)
            .is_err()
        {
            return false;
        }
        let Some(early) = &mut self.early else {
            return true;
        };
        let mut runs: Vec<Range<u64>> = Vec::new();
        share.each_run(file, |left, _, len| {
            match runs.last_mut() {
                // Pieces that touch are one.
                Some(last) if last.end == left => last.end += len,
                _ => runs.push(left..left + len),
            }
            true
        });
        // Short runs are packed when all is there, by fewer and longer steps.
        let is_long = packed.len() as u64 / runs.len().max(1) as u64 >= EARLY_RUN;
        let mut runs = runs.iter();
        runs.len() > 1 && !is_long || runs.all(|run| early.pack(run, self.bytes, self.start))
    }

    fn get(&mut self, share: &Share, file: Range<u64>, packed: &mut [u8]) -> bool {
        let from = SharedBytes::from_slice(self.bytes);
        share.gather_left(file, from, self.start, packed).is_ok()
    }
}

impl Early<'_> {
    /// Packs a run of the file that has arrived.
    fn pack(&mut self, run: &Range<u64>, bytes: &[u8], start: u64) -> bool {
        let source = SharedBytes::from_slice(bytes);
        for (rank, to) in self.to.iter().enumerate() {
            let positions = self.regrouped.positions(rank, run);
            let n = (positions.end - positions.start) as usize;
            if n == 0 {
                continue;
            }
            let first = self.regrouped.positions(rank, &self.domain).start;
            let at = to.start + (positions.start - first) as usize;
            let Some(packed) = self.sent.get_mut(at..at + n) else {
                return false;
            };
            let stream = &self.regrouped.agreed.ranks[rank].stream;
            if stream.gather(positions, source, start, packed).is_err() {
                return false;
            }
            self.packed += n as u64;
        }
        true
    }
}

/// The first `len` bytes of memory that is kept.
fn grown(buffer: &mut Vec<u8>, len: u64) -> &mut [u8] {
    if (buffer.len() as u64) < len {
        buffer.resize(len as usize, 0);
    }
    &mut buffer[..len as usize]
}

fn other_bytes(rank: usize) -> Error {
    Error::Refused {
        status: Status::InvalidArgument,
        text: format!("rank {rank} of the team gave other bytes than were agreed on"),
        server: None,
    }
}
