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

use kernels::{SharedBytes, SharedBytesMut};
use layout::{FileSpan, View};
use parking_lot::{Mutex, MutexGuard};
use plan::exchange::MemberShares;
use wire::{Reader, describe, put_number};

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
    team: Team,
    shares: MemberShares,
    source_bytes: u64,
    target_bytes: u64,
    /// What is given, side by side; kept from run to run.
    packed: Mutex<Vec<u8>>,
    /// What came; kept as well.
    came: Mutex<Vec<Vec<u8>>>,
}

impl Redistribution {
    /// Plans it with all members of the team. `len` is the number of bytes of the array, the same for all; views are cut
    /// there.
    pub fn new(team: &Team, source: &View, target: &View, len: u64) -> Result<Redistribution> {
        let mut mine = Vec::new();
        put_number(&mut mine, len);
        describe::put_view(&mut mine, source);
        describe::put_view(&mut mine, target);
        let said = team.allgather(&mine)?;
        let mut parts = Vec::with_capacity(said.len());
        for (rank, bytes) in said.iter().enumerate() {
            let mut r = Reader::new(bytes);
            let part = (|| {
                let part = (
                    r.number()?,
                    describe::view(&mut r)?,
                    describe::view(&mut r)?,
                );
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
        Ok(Redistribution {
            team: team.clone(),
            shares: MemberShares::new(FileSpan::from_raw(0..len), source, target, members),
            source_bytes: source.len_within(len),
            target_bytes: target.len_within(len),
            packed: Mutex::new(Vec::new()),
            came: Mutex::new(Vec::new()),
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

    /// Runs it with all members: `from` is the source, packed in the order of the array, `to` the target.
    pub fn run(&self, from: SharedBytes<'_>, to: SharedBytesMut<'_>) -> Result<()> {
        let mine = self.check(from.len(), to.len());
        let mut to = to;
        let rank = self.team.rank();
        let came = self.swap(mine, from, Some(rank))?;
        for (other, share) in self.shares.take() {
            let array = self.shares.array().raw();
            let moved = match other == rank {
                true => share.copy_left_to_right(array, from, 0, to.reborrow(), 0),
                false => share.scatter_right(array, &came[other], to.reborrow(), 0),
            };
            moved.map_err(out_of_bounds)?;
        }
        Ok(())
    }

    /// Runs it in one memory, which holds the source before and the target after and is as long as the longer of them.
    pub fn run_in_place(&self, memory: SharedBytesMut<'_>) -> Result<()> {
        let mut memory = memory;
        let mine = self.check(memory.len(), memory.len());
        let came = self.swap(mine, memory.as_shared(), None)?;
        let array = self.shares.array();
        for (other, share) in self.shares.take() {
            share
                .scatter_right(array.raw(), &came[other], memory.reborrow(), 0)
                .map_err(out_of_bounds)?;
        }
        Ok(())
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

/// The views were measured before, so this is about the memory.
fn out_of_bounds(error: kernels::BoundsError) -> Error {
    Error::argument("memory", error.to_string())
}
