//! Collective operations over the sockets of the members.
//!
//! | operation | how | messages of a member |
//! |---|---|---|
//! | all-gather | what is known doubles: in step k the bytes of 2^k members come from the one 2^k ranks on | log2 of the size |
//! | exchange | in step k to the member k ranks on, from the one k ranks back | one for every other |
//! | broadcast | a binomial tree from the root | at most log2 of the size |
//! | gather | straight to the root | one |
//!
//! Invariants
//! - One part goes from one member to another in an operation; so parts need no number but that of the operation.
//! - Long parts are sent while another comes, and read only when it is their turn: a member holds what it gives, what it gets,
//!   and what the kernel buffers.

use super::frame::Operation;
use super::mesh::Mesh;
use crate::collective::team::{Drive, Exchange, Waits};
use crate::error::{Error, Result};

impl Mesh {
    /// Runs a collective operation under the next number.
    fn operation<T>(
        &self,
        operation: Operation,
        drive: Drive<'_>,
        run: impl FnOnce((Operation, u64), &mut Waits<'_>) -> Result<T>,
    ) -> Result<T> {
        self.together(drive, |round, waits| {
            *round += 1;
            run((operation, *round), waits)
        })
    }

    fn rank_on(&self, from: usize, by: usize) -> usize {
        (from + by) % self.size()
    }
}

/// The blocks of a part that has their lengths in front.
fn blocks(bytes: &[u8], count: usize) -> Option<Vec<&[u8]>> {
    let (lens, mut rest) = bytes.split_at_checked(8 * count)?;
    let mut blocks = Vec::with_capacity(count);
    for len in lens.as_chunks::<8>().0 {
        let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
        let (block, behind) = rest.split_at_checked(len)?;
        blocks.push(block);
        rest = behind;
    }
    rest.is_empty().then_some(blocks)
}

impl Exchange for Mesh {
    fn rank(&self) -> usize {
        Mesh::rank(self)
    }

    fn size(&self) -> usize {
        Mesh::size(self)
    }

    fn allgather(&self, bytes: &[u8], drive: Drive<'_>) -> Result<Vec<Vec<u8>>> {
        let (rank, size) = (Mesh::rank(self), Mesh::size(self));
        self.operation(Operation::Allgather, drive, |operation, waits| {
            // From this rank on.
            let mut known = vec![bytes.to_vec()];
            while known.len() < size {
                let step = known.len();
                let count = step.min(size - step);
                let lens = known[..count]
                    .iter()
                    .flat_map(|b| (b.len() as u64).to_le_bytes());
                let lens: Vec<u8> = lens.collect();
                let mut parts: Vec<&[u8]> = vec![&lens];
                parts.extend(known[..count].iter().map(|block| &block[..]));
                let to = (self.rank_on(rank, size - step), &parts[..]);
                let from = Some(self.rank_on(rank, step));
                let came = self.swap(operation, Some(to), from, Vec::new(), waits)?;
                let came = blocks(&came, count)
                    .ok_or_else(|| Error::argument("team", "a member gave something else"))?;
                known.extend(came.into_iter().map(<[u8]>::to_vec));
            }
            known.rotate_right(rank);
            Ok(known)
        })
    }

    fn exchange(&self, parts: &[&[u8]], drive: Drive<'_>) -> Result<Vec<Vec<u8>>> {
        let mut got = Vec::new();
        self.exchange_into(parts, &mut got, drive)?;
        Ok(got)
    }

    fn exchange_into(
        &self,
        parts: &[&[u8]],
        got: &mut Vec<Vec<u8>>,
        drive: Drive<'_>,
    ) -> Result<()> {
        let (rank, size) = (Mesh::rank(self), Mesh::size(self));
        got.resize_with(size, Vec::new);
        got[rank].clear();
        got[rank].extend_from_slice(parts[rank]);
        self.operation(Operation::Exchange, drive, |operation, waits| {
            for step in 1..size {
                let to = self.rank_on(rank, step);
                let from = self.rank_on(rank, size - step);
                let memory = std::mem::take(&mut got[from]);
                let to = Some((to, &parts[to..=to]));
                got[from] = self.swap(operation, to, Some(from), memory, waits)?;
            }
            Ok(())
        })
    }

    fn broadcast(&self, root: usize, bytes: &[u8], drive: Drive<'_>) -> Result<Vec<u8>> {
        let (rank, size) = (Mesh::rank(self), Mesh::size(self));
        let place = (rank + size - root) % size;
        self.operation(Operation::Broadcast, drive, |operation, waits| {
            // The lowest bit of its place says who tells a member, and the bits below whom it tells.
            let below = match place {
                0 => size.next_power_of_two(),
                place => 1 << place.trailing_zeros(),
            };
            let bytes = match place {
                0 => bytes.to_vec(),
                place => {
                    let from = self.rank_on(root, place - below);
                    self.swap(operation, None, Some(from), Vec::new(), waits)?
                }
            };
            let mut bit = below / 2;
            while bit > 0 {
                if place + bit < size {
                    let to = self.rank_on(root, place + bit);
                    self.swap(operation, Some((to, &[&bytes])), None, Vec::new(), waits)?;
                }
                bit /= 2;
            }
            Ok(bytes)
        })
    }

    fn gather(&self, root: usize, bytes: &[u8], drive: Drive<'_>) -> Result<Option<Vec<Vec<u8>>>> {
        let (rank, size) = (Mesh::rank(self), Mesh::size(self));
        self.operation(Operation::Gather, drive, |operation, waits| {
            if rank != root {
                self.swap(operation, Some((root, &[bytes])), None, Vec::new(), waits)?;
                return Ok(None);
            }
            let take = |from: usize| match from == rank {
                true => Ok(bytes.to_vec()),
                false => self.swap(operation, None, Some(from), Vec::new(), waits),
            };
            (0..size).map(take).collect::<Result<_>>().map(Some)
        })
    }
}
