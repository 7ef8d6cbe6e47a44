//! Redistribution in memory: the members of a team hold parts of an array, and each gets another part.
//!
//! ```text
//!  member 0   source: its rows     packed in memory  --+                 +--  target: its columns, packed
//!  member 1   source: its rows                        --+-- exchange ----+--  ...
//! ```
//!
//! Parts are views of the array, described and never flattened; no file and no server takes part. What a
//! member gives to another is the meeting of its source with the other's target, in the order of the array, so
//! neither has to send offsets.
//!
//! Invariants
//! - A byte that several hold comes from the lowest rank of them; a byte that nobody holds keeps its value.
//! - A plan is made together and can be run any number of times, together.
//!
//! Members of one host have lanes: bytes are read where they lie if the source is in common memory
//! ([`direct::allocate_common`]), and flow through rings otherwise; see ADR 0035.

use std::sync::atomic::{AtomicU64, Ordering};

use ::direct::{Cargo, CommonBytes, Run, SAID_WORDS, Ticket};
use kernels::{SharedBytes, SharedBytesMut};
use layout::{FileSpan, View};
use parking_lot::{Mutex, MutexGuard};
use plan::exchange::MemberShares;
use wire::{Reader, describe, put_number};

use crate::collective::host_team::apart;
use crate::collective::redistributions::PartMemory;
use crate::collective::team::Team;
use crate::error::{Error, Result};

/// A redistribution that is planned.
///
/// ```
/// use client::{Layout, Redistribution, SharedBytes, SharedBytesMut, Team, View};
/// fn part(text: &str) -> View {
///     let layout: Layout = text.parse().unwrap();
///     let of_array = layout.on_array(&"u8[4,4]".parse().unwrap()).unwrap();
///     View::new(layout::FileOffset(0), 16, of_array.element(0).unwrap()).unwrap()
/// }
/// let team = Team::threads(2);
/// std::thread::scope(|scope| {
///     for member in &team {
///         scope.spawn(move || {
///             let rank = member.rank();
///             let rows = part(&format!("(block, *) onto 2 [{rank}]"));
///             let columns = part(&format!("(*, block) onto 2 [{rank}]"));
///             let plan = Redistribution::new(member, &rows, &columns, 16).unwrap();
///             let mine: Vec<u8> = (0..8).map(|i| rank as u8 * 8 + i).collect();
///             let mut new = vec![0; 8];
///             plan.run(SharedBytes::from_slice(&mine), SharedBytesMut::from_slice(&mut new)).unwrap();
///             let first = rank as u8 * 2;
///             assert_eq!(new, [first, first + 1, first + 4, first + 5, first + 8, first + 9, first + 12, first + 13]);
///         });
///     }
/// });
/// ```
#[derive(Debug)]
pub struct Redistribution {
    /// All members have it, and no other plan of any of them has.
    number: u64,
    team: Team,
    shares: MemberShares,
    source_bytes: u64,
    target_bytes: u64,
    /// What is given, side by side; kept from run to run.
    packed: Mutex<Vec<u8>>,
    /// What came; kept as well.
    came: Mutex<Vec<Vec<u8>>>,
    /// The source of a run in one memory, where others read it.
    moved: Mutex<Option<CommonBytes>>,
}

/// The number of the last plan that this process took part in.
static LAST: AtomicU64 = AtomicU64::new(0);

/// What a ticket says first: that the member is ready for the plan that it names, or that its memory is wrong.
const READY: u64 = 0;
const WRONG: u64 = 1;

impl Redistribution {
    /// Plans it with all members of the team. `len` is the number of bytes of the array, the same for all; views are cut
    /// there.
    pub fn new(team: &Team, source: &View, target: &View, len: u64) -> Result<Redistribution> {
        let mut mine = Vec::new();
        put_number(&mut mine, len);
        put_number(&mut mine, LAST.load(Ordering::Relaxed));
        describe::put_view(&mut mine, source);
        describe::put_view(&mut mine, target);
        let said = team.allgather(&mine)?;
        let mut parts = Vec::with_capacity(said.len());
        let mut number = 0;
        for (rank, bytes) in said.iter().enumerate() {
            let mut r = Reader::new(bytes);
            let part = (|| {
                let len = r.number()?;
                number = number.max(r.number()?);
                let part = (len, describe::view(&mut r)?, describe::view(&mut r)?);
                r.finish()?;
                Ok::<_, wire::DecodeError>(part)
            })();
            let part = part.map_err(|e| {
                Error::argument(
                    "team",
                    format!("rank {rank} said something else than views: {e}"),
                )
            })?;
            if part.0 != len {
                return Err(Error::argument(
                    "len",
                    format!(
                        "{len} here and {} at rank {rank}; give the same at all ranks",
                        part.0
                    ),
                ));
            }
            parts.push(part);
        }
        let members = parts.iter().map(|(_, source, target)| (source, target));
        let number = number.saturating_add(1);
        LAST.fetch_max(number, Ordering::Relaxed);
        Ok(Redistribution {
            number,
            team: team.clone(),
            shares: MemberShares::new(FileSpan::from_raw(0..len), source, target, members),
            source_bytes: source.len_within(len),
            target_bytes: target.len_within(len),
            packed: Mutex::new(Vec::new()),
            came: Mutex::new(Vec::new()),
            moved: Mutex::new(None),
        })
    }

    /// Bytes that this member holds before.
    pub fn source_bytes(&self) -> u64 {
        self.source_bytes
    }

    /// Bytes that it holds after.
    pub fn target_bytes(&self) -> u64 {
        self.target_bytes
    }

    /// Bytes that leave this member.
    pub fn given_bytes(&self) -> u64 {
        let others = (0..self.team.size()).filter(|&rank| rank != self.team.rank());
        others.map(|rank| self.shares.given_bytes(rank)).sum()
    }

    /// Bytes of the array.
    pub(crate) fn array_bytes(&self) -> u64 {
        self.shares.array().raw().end
    }

    /// The number of the plan.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Runs it with all members: `from` is the source, packed in the order of the array, `to` the target.
    pub fn run(&self, from: SharedBytes<'_>, to: SharedBytesMut<'_>) -> Result<()> {
        self.run_with(PartMemory::Between(from, to))
    }

    /// Runs it in one memory, which holds the source before and the target after and is as long as the longer of them.
    pub fn run_in_place(&self, memory: SharedBytesMut<'_>) -> Result<()> {
        self.run_with(PartMemory::InPlace(memory))
    }

    pub(crate) fn run_with(&self, memory: PartMemory<'_>) -> Result<()> {
        if self.team.lanes().is_none() {
            return self.run_known(memory);
        }
        match memory {
            PartMemory::Between(from, to) => {
                let mine = self.check(from.len(), to.len());
                let mut load = self.load(from, to);
                let run = self.begin(&mine, &mut load)?;
                self.carry(run, load)
            }
            PartMemory::InPlace(memory) => self.carry_in_place(memory),
        }
    }

    /// What this member gives and takes, if its memory is long enough.
    pub(crate) fn checked_load<'a>(
        &'a self,
        from: SharedBytes<'a>,
        to: SharedBytesMut<'a>,
    ) -> Result<Load<'a>> {
        self.check(from.len(), to.len())?;
        Ok(self.load(from, to))
    }

    fn load<'a>(&'a self, from: SharedBytes<'a>, to: SharedBytesMut<'a>) -> Load<'a> {
        Load {
            shares: &self.shares,
            rank: self.team.rank(),
            from,
            to,
            given: vec![0; self.team.size()],
            taken: vec![0; self.team.size()],
            writes_past: kernels::writes_past(self.shares.all_target_bytes()),
            failure: None,
        }
    }

    /// Runs it by exchanges, which all know to be of this plan.
    pub(crate) fn run_known(&self, memory: PartMemory<'_>) -> Result<()> {
        let rank = self.team.rank();
        let array = self.shares.array().raw();
        match memory {
            PartMemory::Between(from, mut to) => {
                let mine = self.check(from.len(), to.len());
                let came = self.swap(mine, from, Some(rank))?;
                for (other, share) in self.shares.take() {
                    let moved = match other == rank {
                        true => share.copy_left_to_right(array.clone(), from, 0, to.reborrow(), 0),
                        false => share.scatter_right(array.clone(), &came[other], to.reborrow(), 0),
                    };
                    moved.map_err(out_of_bounds)?;
                }
            }
            PartMemory::InPlace(mut memory) => {
                let mine = self.check(memory.len(), memory.len());
                let came = self.swap(mine, memory.as_shared(), None)?;
                for (other, share) in self.shares.take() {
                    share
                        .scatter_right(array.clone(), &came[other], memory.reborrow(), 0)
                        .map_err(out_of_bounds)?;
                }
            }
        }
        Ok(())
    }

    /// Through the lanes, in a run that all members have begun and whose plan they know to be this one.
    pub(crate) fn carry(&self, run: Run<'_>, mut load: Load<'_>) -> Result<()> {
        run.carry(self.number, &mut load).map_err(apart)?;
        load.failure
            .map_or(Ok(()), |error| Err(out_of_bounds(error)))
    }

    /// Begins a run. What is wrong here is said in the ticket, and all fail.
    fn begin(&self, mine: &Result<()>, load: &mut Load<'_>) -> Result<Run<'_>> {
        let Some(lanes) = self.team.lanes() else {
            return Err(Error::argument("team", "has no lanes"));
        };
        let mut said = [0; SAID_WORDS];
        said[0] = match mine {
            Ok(()) => READY,
            Err(_) => WRONG,
        };
        said[1] = self.number;
        let ticket = Ticket::new(said, ::direct::lent_at(load.from.as_ptr()));
        let drive = self.team.drive();
        let run = match mine {
            Ok(()) => lanes.begin_run_early(&ticket, self.number, load, drive),
            Err(_) => lanes.begin_run(&ticket, drive),
        };
        let run = run.map_err(apart)?;
        if let Err(error) = mine {
            return Err(error.clone());
        }
        for (rank, ticket) in run.tickets().iter().enumerate() {
            if ticket.said[0] != READY {
                let text = format!("the memory of rank {rank} is shorter than its part");
                return Err(Error::argument("team", text));
            }
            if !ticket.said[1..].contains(&self.number) {
                let text = format!("rank {rank} runs another plan; all have to run the same");
                return Err(Error::argument("team", text));
            }
        }
        Ok(run)
    }

    /// The source goes to memory that the others read in place, and from there to the target.
    fn carry_in_place(&self, memory: SharedBytesMut<'_>) -> Result<()> {
        let mine = self.check(memory.len(), memory.len());
        let len = self.source_bytes as usize;
        if mine.is_err() {
            let nothing = SharedBytes::from_slice(&[]);
            let mut load = self.load(nothing, memory);
            return self.begin(&mine, &mut load).map(drop);
        }
        let mut moved = self.moved.lock();
        if moved.is_none() {
            *moved = CommonBytes::new(len).ok();
        }
        let mut private = self.packed.lock();
        let copy = match &mut *moved {
            Some(common) => common.bytes_mut(),
            None => {
                private.resize(len, 0);
                SharedBytesMut::from_slice(&mut private[..len])
            }
        };
        let mut copy = copy;
        if let Some(source) = memory.as_shared().range(0..len) {
            copy.reborrow().copy_from(source);
        }
        let mut load = self.load(copy.as_shared(), memory);
        let run = self.begin(&mine, &mut load)?;
        self.carry(run, load)
    }

    /// Gives everybody his bytes and gets those of everybody; nothing to and from `kept`, which is copied without
    /// packing. A member whose buffers are wrong gives another number of bytes than is due, and all fail.
    fn swap(
        &self,
        mine: Result<()>,
        from: SharedBytes<'_>,
        kept: Option<usize>,
    ) -> Result<MutexGuard<'_, Vec<Vec<u8>>>> {
        let is_kept = |rank: usize| Some(rank) == kept;
        let counts: Vec<usize> = (0..self.team.size())
            .map(|rank| match is_kept(rank) {
                true => 0,
                false => self.shares.given_bytes(rank) as usize,
            })
            .collect();
        if let Err(error) = mine {
            // Never as much as is due.
            let wrong = |count: &usize| &[0u8][..usize::from(*count == 0)];
            let wrong: Vec<&[u8]> = counts.iter().map(wrong).collect();
            self.team.exchange(&wrong)?;
            return Err(error);
        }
        let mut packed = self.packed.lock();
        let needed = counts.iter().sum();
        if packed.len() < needed {
            packed.resize(needed, 0);
        }
        let mut parts: Vec<&[u8]> = Vec::with_capacity(counts.len());
        let mut rest = &mut packed[..needed];
        for (share, &count) in self.shares.give().iter().zip(&counts) {
            let (part, behind) = rest.split_at_mut(count);
            rest = behind;
            if count > 0 {
                share
                    .gather_left(self.shares.array().raw(), from, 0, part)
                    .map_err(out_of_bounds)?;
            }
            parts.push(part);
        }
        let mut came = self.came.lock();
        self.team.exchange_into(&parts, &mut came)?;
        for (rank, bytes) in came.iter().enumerate() {
            let expected = match is_kept(rank) {
                true => 0,
                false => self.shares.taken_bytes(rank),
            };
            if bytes.len() as u64 != expected {
                return Err(Error::argument(
                    "team",
                    format!(
                        "rank {rank} gave {} bytes where {expected} are due; its buffers may be short",
                        bytes.len()
                    ),
                ));
            }
        }
        Ok(came)
    }

    fn check(&self, from: usize, to: usize) -> Result<()> {
        for (name, has, needs) in [
            ("from", from, self.source_bytes),
            ("to", to, self.target_bytes),
        ] {
            if (has as u64) < needs {
                return Err(Error::argument(
                    name,
                    format!("has {has} bytes, and this member's part has {needs}"),
                ));
            }
        }
        Ok(())
    }
}

/// What one member gives and takes in a run.
#[derive(Debug)]
pub(crate) struct Load<'a> {
    shares: &'a MemberShares,
    rank: usize,
    from: SharedBytes<'a>,
    to: SharedBytesMut<'a>,
    /// How far the array is given and taken, by rank.
    given: Vec<u64>,
    taken: Vec<u64>,
    /// Whether targets are so long that they leave the caches anyway; short runs are collected there all the same.
    writes_past: bool,
    failure: Option<kernels::BoundsError>,
}

impl Load<'_> {
    /// The range of the array with the next bytes of a share.
    fn next(
        share: &kernels::Share,
        done: &mut u64,
        end: u64,
        bytes: usize,
    ) -> std::ops::Range<u64> {
        let next = share.after(*done..end, bytes as u64);
        let range = *done..next;
        *done = next;
        range
    }

    fn note(&mut self, moved: std::result::Result<(), kernels::BoundsError>) {
        if let Err(error) = moved {
            self.failure.get_or_insert(error);
        }
    }
}

impl Cargo for Load<'_> {
    fn given(&self, to: usize) -> u64 {
        self.shares.given_bytes(to)
    }

    fn taken(&self, from: usize) -> u64 {
        self.shares.taken_bytes(from)
    }

    fn source_bytes(&self, of: usize) -> u64 {
        self.shares.source_bytes(of)
    }

    fn is_ordered(&self) -> bool {
        self.shares.is_ordered()
    }

    fn fill(&mut self, to: usize, piece: SharedBytesMut<'_>) {
        let share = &self.shares.give()[to];
        let end = self.shares.array().raw().end;
        let range = Load::next(share, &mut self.given[to], end, piece.len());
        let moved = share.gather_left_shared(range, self.from, 0, piece);
        self.note(moved);
    }

    fn empty(&mut self, from: usize, piece: SharedBytes<'_>) {
        let share = self.shares.taken(from);
        let end = self.shares.array().raw().end;
        let range = Load::next(share, &mut self.taken[from], end, piece.len());
        let to = self.to.reborrow();
        let moved = share.scatter_right_shared(range, piece, to, 0);
        self.note(moved);
    }

    fn copy_all(&mut self, from: usize, source: SharedBytes<'_>) {
        let share = self.shares.taken(from);
        let array = self.shares.array().raw();
        let to = self.to.reborrow();
        let moved = match self.writes_past && self.shares.has_long_runs(from) {
            true => share.stream_left_to_right(array, source, 0, to, 0),
            false => share.copy_left_to_right(array, source, 0, to, 0),
        };
        self.note(moved);
    }

    fn copy_own(&mut self) {
        self.copy_all(self.rank, self.from);
    }
}

/// The views were measured before, so this is about the memory.
fn out_of_bounds(error: kernels::BoundsError) -> Error {
    Error::argument("memory", error.to_string())
}
