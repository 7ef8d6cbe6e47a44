//! Collective access: all ranks of a team read or write, each through its view.
//!
//! ```text
//!  independent     every rank for itself, as if alone: no exchange, no barrier
//!  two phases      |-- domain of rank 0 --|-- domain of rank 1 --| ..       one round: at most 4 MiB each
//!    write         give each rank the bytes of its domain, put them together, write the domain
//!    read          read the domain, give each rank its bytes of it
//! ```
//!
//! Whether two phases may pay is decided when the file is opened, views are set or hints are changed
//! together, from what all ranks have said then: with direct access by all ranks they never do, and
//! collective accesses exchange nothing. Only where they may, accesses begin with an exchange of ranges,
//! from which all ranks come to the same answer.
//!
//! Invariants
//! - The bytes are those of independent accesses. Writes are regrouped only where the parts of all ranks
//!   are disjoint and leave no hole.
//! - A rank that cannot take part says so, and all go on independently; one that fails in a phase goes on
//!   exchanging to the end, where all hear of it. Nobody waits for a rank that has failed.
//!
//! Left to others: exchanging (`team`), what either way costs (`advise::collective`).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use advise::collective::{Access, Rates, estimate};
use falls::Meeting;
use kernels::{SharedBytes, SharedBytesMut, Stream};
use layout::View;
use wire::message::Field;
use wire::{DecodeError, Reader, Status, put_number};

use crate::access::{How, file_range};
use crate::error::{Error, Result};
use crate::file::File;
use crate::hints::is_on;
use crate::phases::Phases;
use crate::places::Places;
use crate::session::lock;
use crate::sieve::Strategy;
use crate::team::Team;

/// Longest domain of a rank in one round, unless the hints say otherwise.
const DOMAIN_BYTES: u64 = 4 << 20;

/// Domains end at multiples of this where they are longer.
const DOMAIN_UNIT: u64 = 64 << 10;

/// How a collective access was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// Every rank for itself.
    Independent,
    /// Regrouped among the ranks.
    TwoPhase,
    /// Every rank for itself, in windows of the file.
    Sieving,
}

impl Collective {
    const ALL: [Collective; 3] = [
        Collective::Independent,
        Collective::TwoPhase,
        Collective::Sieving,
    ];

    /// As it is noted: 0 is none.
    pub(crate) fn of(number: u64) -> Option<Collective> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        Collective::ALL.get(index).copied()
    }

    fn number(self) -> u64 {
        self as u64 + 1
    }

    /// In words of hints.
    pub fn word(self) -> &'static str {
        match self {
            Collective::Independent => "independent",
            Collective::TwoPhase => "two_phase",
            Collective::Sieving => "sieving",
        }
    }
}

/// What a handle has counted about collective accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectiveStatistics {
    /// Accesses that every rank did for itself.
    pub independent: u64,
    /// Accesses that were regrouped.
    pub two_phase: u64,
    /// Accesses in windows of the file.
    pub sieved: u64,
    /// Exchanges among the ranks for accesses, barriers included.
    pub exchanges: u64,
    /// Bytes that this rank has given to others.
    pub exchanged_bytes: u64,
    /// Barriers that the hint `collective_barrier` asked for.
    pub barriers: u64,
}

/// What a rank says before collective accesses are decided about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// All its bytes can go directly.
    is_direct: bool,
    /// It talks to servers through one of them.
    is_mapped: bool,
    forced: Option<Strategy>,
    is_barrier: bool,
    /// Longest domain in one round.
    domain_bytes: u64,
}

impl Ready {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        self.is_direct.put(out);
        self.is_mapped.put(out);
        put_number(
            out,
            match self.forced {
                None => 0,
                Some(Strategy::Views) => 1,
                Some(Strategy::TwoPhase) => 2,
                Some(Strategy::Sieving) => 3,
            },
        );
        self.is_barrier.put(out);
        put_number(out, self.domain_bytes);
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> std::result::Result<Ready, DecodeError> {
        Ok(Ready {
            is_direct: Field::read(r)?,
            is_mapped: Field::read(r)?,
            forced: match r.number()? {
                1 => Some(Strategy::Views),
                2 => Some(Strategy::TwoPhase),
                3 => Some(Strategy::Sieving),
                _ => None,
            },
            is_barrier: Field::read(r)?,
            domain_bytes: r.number()?,
        })
    }
}

/// The view of a rank, ready to move its bytes.
#[derive(Debug)]
struct Rank {
    view: View,
    stream: Stream,
    /// Pieces per view byte.
    density: f64,
}

/// What all ranks of a team know about collective accesses, and know to be the same at all of them.
#[derive(Debug)]
pub(crate) struct Agreed {
    is_barrier: bool,
    /// Whether two phases were asked for.
    is_forced: bool,
    /// Longest domain in one round: hints of ranks may differ, all take the least.
    domain_bytes: u64,
    /// Number of the view it was agreed with, at this rank.
    number: u64,
    /// By rank; empty if accesses are independent.
    ranks: Vec<Rank>,
    /// What views of two ranks have in common.
    common: Mutex<HashMap<(usize, usize), Arc<Meeting>>>,
}

impl Agreed {
    pub(crate) fn new(
        team: &Team,
        ready: impl Iterator<Item = Ready> + Clone,
        views: Vec<Option<View>>,
        number: u64,
    ) -> Agreed {
        let forced = ready.clone().next().and_then(|first| first.forced);
        let may_pay = match forced {
            Some(Strategy::Views | Strategy::Sieving) => false,
            Some(Strategy::TwoPhase) => true,
            None => !ready.clone().all(|rank| rank.is_direct),
        };
        let can = team.is_near() && team.size() > 1 && !ready.clone().any(|rank| rank.is_mapped);
        let mut ranks = Vec::new();
        if may_pay && can && views.iter().all(Option::is_some) {
            ranks.extend(views.into_iter().flatten().map(|view| {
                let bytes = view.bytes();
                let pieces = match bytes.is_everything() {
                    true => 0.0,
                    false => bytes.set().run_count() as f64 / bytes.size().max(1) as f64,
                };
                Rank {
                    stream: Stream::new(bytes),
                    density: pieces,
                    view,
                }
            }));
        }
        Agreed {
            is_barrier: ready.clone().any(|rank| rank.is_barrier),
            is_forced: forced == Some(Strategy::TwoPhase),
            domain_bytes: ready
                .map(|rank| rank.domain_bytes)
                .min()
                .unwrap_or(0)
                .max(1),
            number,
            ranks,
            common: Mutex::default(),
        }
    }

    /// Whether two ranks have no byte of a file range in common, as far as that is easily seen.
    fn are_apart(&self, a: usize, b: usize, file: Range<u64>) -> bool {
        if file.is_empty() {
            return true;
        }
        let mut common = lock(&self.common);
        let meeting = common.entry((a, b)).or_insert_with(|| {
            let (a, b) = (self.ranks[a].view.bytes(), self.ranks[b].view.bytes());
            Arc::new(Meeting::new(a, b))
        });
        let meeting = meeting.clone();
        drop(common);
        meeting.is_symbolic() && meeting.count(file) == 0
    }
}

/// See [`CollectiveStatistics`], and what was agreed on.
#[derive(Debug, Default)]
pub(crate) struct Together {
    agreed: Mutex<Option<Arc<Agreed>>>,
    /// By [`Collective::number`], from 0 on.
    done: [AtomicU64; 3],
    exchanges: AtomicU64,
    exchanged_bytes: AtomicU64,
    barriers: AtomicU64,
    memory: Mutex<TwoPhases>,
}

/// Memory of two phases, kept from access to access.
#[derive(Debug, Default)]
struct TwoPhases {
    domain: Vec<u8>,
    sent: Vec<u8>,
    /// What came, by rank.
    got: Vec<Vec<u8>>,
}

impl Together {
    pub(crate) fn keep(&self, agreed: Agreed) -> Arc<Agreed> {
        let agreed = Arc::new(agreed);
        *lock(&self.agreed) = Some(agreed.clone());
        agreed
    }

    fn exchanged(&self, bytes: usize) {
        self.exchanges.fetch_add(1, Ordering::Relaxed);
        self.exchanged_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// What a rank is about to access, in view bytes.
struct Wanted {
    /// Whether it can be regrouped as far as this rank is concerned.
    can: bool,
    writes: bool,
    offset: u64,
    len: u64,
}

impl Wanted {
    fn put(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        self.can.put(&mut out);
        self.writes.put(&mut out);
        put_number(&mut out, self.offset);
        put_number(&mut out, self.len);
        out
    }

    fn read(bytes: &[u8]) -> Result<Wanted> {
        let mut r = Reader::new(bytes);
        let wanted = (|| {
            let wanted = Wanted {
                can: Field::read(&mut r)?,
                writes: Field::read(&mut r)?,
                offset: r.number()?,
                len: r.number()?,
            };
            r.finish()?;
            Ok::<_, DecodeError>(wanted)
        })();
        wanted.map_err(|e| {
            let text = format!("a member does something else than a collective access: {e}");
            Error::argument("team", text)
        })
    }
}

/// An access in two phases, the same at all ranks.
struct Regrouped {
    agreed: Arc<Agreed>,
    wanted: Vec<Wanted>,
    /// File bytes from the first to the last of all ranks.
    hull: Range<u64>,
    /// Bytes of a domain.
    domain: u64,
}

impl Regrouped {
    fn rounds(&self) -> u64 {
        let width = self.domain * self.wanted.len() as u64;
        (self.hull.end - self.hull.start).div_ceil(width)
    }

    /// The file range of a rank in a round.
    fn domain(&self, round: u64, rank: usize) -> Range<u64> {
        let number = round * self.wanted.len() as u64 + rank as u64;
        let start = self.hull.start + number.saturating_mul(self.domain);
        let start = start.min(self.hull.end);
        start..start.saturating_add(self.domain).min(self.hull.end)
    }

    /// View bytes of a rank's access in a file range.
    fn positions(&self, rank: usize, file: &Range<u64>) -> Range<u64> {
        let Wanted { offset, len, .. } = self.wanted[rank];
        let bytes = self.agreed.ranks[rank].view.bytes();
        let clip = |x| bytes.rank(x).clamp(offset, offset + len);
        clip(file.start)..clip(file.end)
    }
}

impl File {
    /// What this rank says about collective accesses.
    pub(crate) fn ready(&self) -> Ready {
        let hints = self.hints();
        Ready {
            is_direct: self.is_near_all_servers(),
            is_mapped: self.open.gateway.is_some(),
            forced: self.open.forced(),
            is_barrier: hints.get("collective_barrier").and_then(is_on) == Some(true),
            domain_bytes: hints.number("cb_buffer_size").unwrap_or(DOMAIN_BYTES),
        }
    }

    /// Whether all servers of the file share their memory with this client.
    fn is_near_all_servers(&self) -> bool {
        let open = &self.open;
        if !open.is_direct() {
            return false;
        }
        let plan = open.whole.plan(&open.state());
        let near = open.session.with_lane(|lane| {
            Ok(plan.places.iter().all(|place| {
                open.session.server_pipe(lane, *place).is_ok()
                    && open.session.attached(lane, *place).is_some()
            }))
        });
        near.unwrap_or(false)
    }

    /// Whether collective accesses of this handle wait for the other ranks. They do not where the team has
    /// agreed that each goes for itself, without a barrier. Sends nothing; the same at all ranks.
    pub fn is_exchanging(&self) -> bool {
        let agreed = lock(&self.open.together.agreed);
        agreed
            .as_ref()
            .is_none_or(|agreed| agreed.is_barrier || !agreed.ranks.is_empty())
    }

    /// What this handle has counted about collective accesses.
    pub fn collective_statistics(&self) -> CollectiveStatistics {
        let together = &self.open.together;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CollectiveStatistics {
            independent: of(&together.done[0]),
            two_phase: of(&together.done[1]),
            sieved: of(&together.done[2]),
            exchanges: of(&together.exchanges),
            exchanged_bytes: of(&together.exchanged_bytes),
            barriers: of(&together.barriers),
        }
    }

    /// Writes from described memory while all other ranks of the team write, each at an offset of its own
    /// view. See [`File::write_at_memory`].
    ///
    /// All ranks call it, whatever they have to write. Handles were opened by the members of this team,
    /// one each.
    pub fn write_at_all(
        &self,
        team: &Team,
        offset: u64,
        memory: SharedBytes<'_>,
        origin: usize,
        places: &Places,
    ) -> Result<usize> {
        let agreed = self.agreed(team)?;
        let regrouped = match agreed.ranks.is_empty() {
            true => None,
            false => {
                let is_good = places.check(memory.len(), origin).is_ok();
                self.regroup(team, agreed.clone(), offset, places.size(), true, is_good)?
            }
        };
        let done = match regrouped {
            None => self.write_at_memory(offset, memory, origin, places),
            Some(regrouped) => {
                return self.write_in_two_phases(team, &regrouped, memory, origin, places);
            }
        };
        self.end_independent(team, &agreed, done)
    }

    /// Reads into described memory while all other ranks of the team read, each at an offset of its own
    /// view. See [`File::read_at_memory`].
    pub fn read_at_all(
        &self,
        team: &Team,
        offset: u64,
        memory: SharedBytesMut<'_>,
        origin: usize,
        places: &Places,
    ) -> Result<usize> {
        let agreed = self.agreed(team)?;
        let regrouped = match agreed.ranks.is_empty() {
            true => None,
            false => {
                let is_good = places.check(memory.len(), origin).is_ok() && !places.has_overlap();
                self.regroup(team, agreed.clone(), offset, places.size(), false, is_good)?
            }
        };
        let done = match regrouped {
            None => self.read_at_memory(offset, memory, origin, places),
            Some(regrouped) => {
                return self.read_in_two_phases(team, &regrouped, memory, origin, places);
            }
        };
        self.end_independent(team, &agreed, done)
    }

    /// What the team has agreed on; it does so now if it has not yet.
    fn agreed(&self, team: &Team) -> Result<Arc<Agreed>> {
        let agreed = lock(&self.open.together.agreed).clone();
        match agreed {
            Some(agreed) => Ok(agreed),
            None => self.agree_again(team, Ok(())),
        }
    }

    fn end_independent(&self, team: &Team, agreed: &Agreed, done: Result<usize>) -> Result<usize> {
        let how = match self.strategy() {
            Strategy::Sieving => Collective::Sieving,
            Strategy::Views | Strategy::TwoPhase => Collective::Independent,
        };
        self.count(how);
        if !agreed.is_barrier {
            return done;
        }
        let together = &self.open.together;
        together.barriers.fetch_add(1, Ordering::Relaxed);
        together.exchanged(0);
        let met = team.barrier();
        let done = done?;
        met.map(|()| done)
    }

    fn count(&self, how: Collective) {
        let index = how.number() as usize - 1;
        self.open.together.done[index].fetch_add(1, Ordering::Relaxed);
        self.open.quick.was_collective(how.number());
    }

    /// Tells what this rank wants, hears the others, and decides with them: `None` if every rank goes for
    /// itself.
    fn regroup(
        &self,
        team: &Team,
        agreed: Arc<Agreed>,
        offset: u64,
        len: u64,
        writes: bool,
        is_good: bool,
    ) -> Result<Option<Regrouped>> {
        let right = match writes {
            true => wire::Rights::WRITE,
            false => wire::Rights::READ,
        };
        let seen = self.open.current();
        let can = is_good
            && self.open.check_right(right).is_ok()
            && !self.is_atomic()
            && !(writes && self.open.is_append)
            && seen.number == agreed.number
            && (len == 0 || file_range(&seen, offset, len).is_ok());
        let mine = Wanted {
            can,
            writes,
            offset,
            len,
        };
        let bytes = mine.put();
        self.open.together.exchanged(bytes.len());
        let all = team.agree(Ok(bytes))?;
        let wanted: Vec<Wanted> = all.iter().map(|b| Wanted::read(b)).collect::<Result<_>>()?;
        if wanted.iter().any(|w| !w.can || w.writes != writes) || wanted.len() != agreed.ranks.len()
        {
            return Ok(None);
        }
        let files: Vec<Range<u64>> = wanted
            .iter()
            .zip(&agreed.ranks)
            .map(|(wanted, rank)| match wanted.len {
                0 => 0..0,
                len => {
                    let bytes = rank.view.bytes();
                    let first = bytes.select(wanted.offset).unwrap_or(0);
                    let last = bytes.select(wanted.offset.saturating_add(len - 1));
                    first..last.map_or(0, |last| last + 1)
                }
            })
            .collect();
        let used = || files.iter().filter(|file| !file.is_empty());
        let hull =
            used().map(|f| f.start).min().unwrap_or(0)..used().map(|f| f.end).max().unwrap_or(0);
        let bytes = wanted
            .iter()
            .fold(0u64, |sum, wanted| sum.saturating_add(wanted.len));
        if hull.is_empty() {
            return Ok(None);
        }
        let span = hull.end - hull.start;
        let pieces = wanted.iter().zip(&agreed.ranks);
        let pieces = pieces.map(|(wanted, rank)| wanted.len as f64 * rank.density + 1.0);
        let access = Access {
            ranks: wanted.len() as u64,
            bytes,
            span,
            pieces: pieces.sum::<f64>() as u64,
        };
        let pays = agreed.is_forced || estimate(&access, &Rates::HOST).two_phase_pays();
        let is_whole = || {
            bytes == span
                && (0..files.len()).all(|a| {
                    (a + 1..files.len()).all(|b| {
                        let both =
                            files[a].start.max(files[b].start)..files[a].end.min(files[b].end);
                        agreed.are_apart(a, b, both)
                    })
                })
        };
        if !pays || (writes && !is_whole()) {
            return Ok(None);
        }
        let mut domain = span.div_ceil(wanted.len() as u64);
        if domain > DOMAIN_UNIT {
            domain = domain.next_multiple_of(DOMAIN_UNIT);
        }
        Ok(Some(Regrouped {
            domain: domain.min(agreed.domain_bytes),
            agreed,
            wanted,
            hull,
        }))
    }

    fn write_in_two_phases(
        &self,
        team: &Team,
        regrouped: &Regrouped,
        memory: SharedBytes<'_>,
        origin: usize,
        places: &Places,
    ) -> Result<usize> {
        let started = Instant::now();
        let rank = team.rank();
        let offset = regrouped.wanted[rank].offset;
        let TwoPhases {
            domain: mut buffer,
            mut sent,
            mut got,
        } = std::mem::take(&mut *lock(&self.open.together.memory));
        let mut failed: Result<()> = Ok(());
        let mut moved = Ok(());
        for round in 0..regrouped.rounds() {
            let ranges: Vec<Range<u64>> = (0..team.size())
                .map(|to| regrouped.positions(rank, &regrouped.domain(round, to)))
                .collect();
            let first = ranges.first().map_or(0, |r| r.start);
            let last = ranges.last().map_or(0, |r| r.end);
            grow(&mut sent, last - first);
            // Domains ascend, so what goes to them is one range of the access.
            let packed = &mut sent[..(last - first) as usize];
            places.gather(memory, origin, first - offset, packed.into());
            let packed = &sent[..(last - first) as usize];
            let parts: Vec<&[u8]> = ranges
                .iter()
                .map(|r| &packed[(r.start - first) as usize..(r.end - first) as usize])
                .collect();
            self.open.together.exchanged(packed.len());
            match team.exchange_into(&parts, &mut got) {
                Ok(()) => {
                    if failed.is_ok() {
                        failed = self.write_domain(regrouped, round, rank, &got, &mut buffer);
                    }
                }
                Err(error) => {
                    moved = Err(error);
                    break;
                }
            }
        }
        *lock(&self.open.together.memory) = TwoPhases {
            domain: buffer,
            sent,
            got,
        };
        moved?;
        self.end_two_phases(
            team,
            failed.map(|()| places.size() as usize),
            places,
            started,
        )
    }

    /// Puts a domain together and writes it.
    fn write_domain(
        &self,
        regrouped: &Regrouped,
        round: u64,
        rank: usize,
        got: &[Vec<u8>],
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        let domain = regrouped.domain(round, rank);
        if domain.is_empty() {
            return Ok(());
        }
        grow(buffer, domain.end - domain.start);
        let bytes = &mut buffer[..(domain.end - domain.start) as usize];
        for (from, part) in got.iter().enumerate() {
            let positions = regrouped.positions(from, &domain);
            if positions.end - positions.start != part.len() as u64 {
                return Err(other_bytes(from));
            }
            let stream = &regrouped.agreed.ranks[from].stream;
            stream
                .scatter(positions, part, (&mut *bytes).into(), domain.start)
                .map_err(|_| other_bytes(from))?;
        }
        let _gate = self.beside();
        let whole = self.open.whole.clone();
        self.open.session.with_lane(|lane| {
            let how = How::default();
            self.open
                .write_range(lane, &whole, domain.start, bytes, how)
        })?;
        Ok(())
    }

    fn read_in_two_phases(
        &self,
        team: &Team,
        regrouped: &Regrouped,
        mut memory: SharedBytesMut<'_>,
        origin: usize,
        places: &Places,
    ) -> Result<usize> {
        let started = Instant::now();
        let rank = team.rank();
        let offset = regrouped.wanted[rank].offset;
        let TwoPhases {
            domain: mut buffer,
            mut sent,
            mut got,
        } = std::mem::take(&mut *lock(&self.open.together.memory));
        let mut failed: Result<()> = Ok(());
        let mut done = 0;
        let mut moved = Ok(());
        // Once the file has ended, nothing more comes.
        let mut has_ended = false;
        for round in 0..regrouped.rounds() {
            let read = self.read_domain(regrouped, round, rank, &mut buffer);
            let found = read.unwrap_or_else(|error| {
                if failed.is_ok() {
                    failed = Err(error);
                }
                0
            });
            let domain = regrouped.domain(round, rank);
            let there = domain.start..domain.start + found;
            let mut ends = Vec::with_capacity(team.size());
            let mut at = 0;
            for to in 0..team.size() {
                let positions = regrouped.positions(to, &there);
                let end = at + (positions.end - positions.start) as usize;
                grow(&mut sent, end as u64);
                let source = SharedBytes::from_slice(&buffer[..found as usize]);
                let stream = &regrouped.agreed.ranks[to].stream;
                let packed = &mut sent[at..end];
                if stream
                    .gather(positions, source, domain.start, packed)
                    .is_err()
                {
                    failed = failed.and(Err(other_bytes(to)));
                }
                ends.push(at..end);
                at = end;
            }
            let parts: Vec<&[u8]> = ends.iter().map(|range| &sent[range.clone()]).collect();
            self.open.together.exchanged(at);
            if let Err(error) = team.exchange_into(&parts, &mut got) {
                moved = Err(error);
                break;
            }
            for (from, part) in got.iter().enumerate() {
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
                places.scatter(part[..].into(), memory.reborrow(), origin, at);
                done += part.len();
                has_ended = (part.len() as u64) < want;
            }
        }
        *lock(&self.open.together.memory) = TwoPhases {
            domain: buffer,
            sent,
            got,
        };
        moved?;
        self.end_two_phases(team, failed.map(|()| done), places, started)
    }

    /// Reads a domain; how many bytes of it are in the file.
    fn read_domain(
        &self,
        regrouped: &Regrouped,
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
        grow(buffer, domain.end - domain.start);
        let into = &mut buffer[..(domain.end - domain.start) as usize];
        let _gate = self.beside();
        let whole = self.open.whole.clone();
        let found = self.open.session.with_lane(|lane| {
            let how = How::default();
            self.open.read_range(lane, &whole, domain.start, into, how)
        })?;
        Ok(found as u64)
    }

    /// Hears how it went at the others.
    fn end_two_phases(
        &self,
        team: &Team,
        mine: Result<usize>,
        places: &Places,
        started: Instant,
    ) -> Result<usize> {
        self.open.together.exchanged(0);
        let said = match &mine {
            Ok(_) => Ok(Vec::new()),
            Err(error) => Err(error.clone()),
        };
        let heard = team.agree(said);
        let moved = mine?;
        heard?;
        self.open.keep_phases(Phases {
            requested: places.size(),
            moved: moved as u64,
            is_end_of_file: (moved as u64) < places.size(),
            total_ns: started.elapsed().as_nanos() as u64,
            ..Phases::default()
        });
        self.count(Collective::TwoPhase);
        Ok(moved)
    }
}

fn grow(buffer: &mut Vec<u8>, len: u64) {
    if (buffer.len() as u64) < len {
        buffer.resize(len as usize, 0);
    }
}

fn other_bytes(rank: usize) -> Error {
    Error::Refused {
        status: Status::InvalidArgument,
        text: format!("rank {rank} of the team gave other bytes than were agreed on"),
        server: None,
    }
}
