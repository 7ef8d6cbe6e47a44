//! Flushing and closing: what all VPs have written becomes what the file has, in one step, durably (X-08, G-19).
//!
//! ```text
//!  buffers, blocks, entries  ->  records of changed pages, to their other home  ->  sync  ->  root  ->  all know
//!              members, each its own          each its own VPs                 each      rank 0
//! ```
//!
//! Invariants
//! - Until the root is replaced the file has the streams of the flush before; nothing that its root counts was touched, except by
//!   writes into the middle of streams, which are where they belong as soon as they left memory.
//! - A root is kept only after every member said that its bytes are durable.
//!
//! Cost: a look at the state of every VP of the member, records of the pages that changed, and three exchanges.

use std::ops::Range;

use client::{Result, SyncReport};

use crate::agreement::{self, Regularity, another_call};
use crate::root::{IndependentRoot, RECORD_BYTES, Root};
use crate::stream::{At, Stream};

/// Neighbouring numbers as ranges; they ascend.
pub(crate) fn runs(numbers: &[u64]) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(last) if last.end == *number => last.end += 1,
            _ => runs.push(*number..*number + 1),
        }
    }
    runs
}

impl Stream {
    /// Makes everything that was written so far what the file has, and durable as far as its store is.
    ///
    /// All members call it.
    pub fn flush(&mut self) -> Result<SyncReport> {
        if !self.options.access.can_write() {
            agreement::tell(&self.team, Ok(Vec::new()))?;
            return Ok(SyncReport { is_durable: true });
        }
        let regularity = match self.at {
            At::Each => Regularity::Independent,
            At::Uniform { .. } => Regularity::Regular,
        };
        self.agree(Ok((regularity, 0)))?;
        let stored = self.store_blocks();
        let changed = stored.map(|()| self.changed());
        let told = agreement::tell(&self.team, changed)?;
        let next = self.next_root(&told)?;
        let mine = self.store_records(&next).and_then(|()| self.sync());
        let done = agreement::tell(
            &self.team,
            mine.map(|report| vec![report.is_durable.into()]),
        )?;
        if next != self.root || self.is_plain {
            let kept = match self.team.rank() {
                0 => next.keep(&self.client, &self.path),
                _ => Ok(()),
            };
            agreement::tell(&self.team, kept.map(|()| Vec::new()))?;
            self.statistics.commits += 1;
            self.is_plain = false;
        }
        self.root = next;
        if let (Some(ib), Some(root)) = (&mut self.ib, &self.root.ib) {
            ib.root = root.clone();
        }
        for vp in &mut self.vps {
            vp.take_changed();
        }
        let is_durable = done.iter().all(|bytes| bytes == &[1]);
        Ok(SyncReport { is_durable })
    }

    /// Flushes and closes; with an error if anything that was written may not be in the file.
    ///
    /// All members call it. The file is closed in any case.
    pub fn close(mut self) -> Result<()> {
        let flushed = match &self.failure {
            // The others hear of it, since they agree first.
            Some(_) if self.options.access.can_write() => {
                self.agree(Ok((Regularity::Regular, 0))).map(drop)
            }
            Some(error) => Err(error.clone()),
            None if self.options.access.can_write() => self.flush().map(drop),
            None => Ok(()),
        };
        let closed = self.raw.close().and(self.shaped.close());
        flushed.and(closed)
    }

    /// Hands over everything that is only in memory, but for records.
    fn store_blocks(&mut self) -> Result<()> {
        self.put_buffers()?;
        for local in 0..self.vps.len() {
            if !self.vps[local].has_unwritten() {
                continue;
            }
            let who = self.who(local);
            let Stream {
                vps,
                ib,
                pages,
                raw,
                ..
            } = self;
            if let Some(ib) = ib {
                ib.settle(raw, pages, who, &mut vps[local])?;
            }
        }
        self.pages.write_all(&self.raw)
    }

    /// Which pages of records have to be written, as far as this member knows, and how many superblocks there are.
    fn changed(&self) -> Vec<u8> {
        let Some(ib) = &self.ib else {
            return Vec::new();
        };
        let vps = self.all_vps();
        let page = IndependentRoot::page_vps(vps);
        let mut out = ib.highest.to_le_bytes().to_vec();
        out.resize(8 + ib.root.homes.len(), 0);
        let mut local = 0;
        while local < self.vps.len() {
            let (first, count) = self.emulation.run(local);
            for at in (0..count).filter(|at| self.vps[local + at].is_changed()) {
                out[8 + ((first + at as u64) / page) as usize] = 1;
            }
            local += count;
        }
        out
    }

    /// The root as it will be, from what all members said about their pages.
    fn next_root(&self, told: &[Vec<u8>]) -> Result<Root> {
        let mut next = Root {
            nb: self.nb,
            cb: self.cb,
            ..self.root.clone()
        };
        let Some(ib) = &self.ib else {
            return match told.iter().all(|bytes| bytes.is_empty()) {
                true => Ok(next),
                false => Err(another_call()),
            };
        };
        let mut root = ib.root.clone();
        for bytes in told {
            let (highest, pages) = bytes.split_first_chunk::<8>().ok_or_else(another_call)?;
            if pages.len() != root.homes.len() {
                return Err(another_call());
            }
            root.superblocks = root.superblocks.max(u64::from_le_bytes(*highest));
        }
        for (page, home) in root.homes.iter_mut().enumerate() {
            if told.iter().any(|bytes| bytes[8 + page] != 0) {
                *home = home.other();
            }
        }
        next.ib = Some(root);
        Ok(next)
    }

    /// Writes the records of this member's VPs on all pages that get another home.
    fn store_records(&mut self, next: &Root) -> Result<()> {
        let (Some(ib), Some(root)) = (&self.ib, &next.ib) else {
            return Ok(());
        };
        let vps = self.all_vps();
        let page = IndependentRoot::page_vps(vps);
        for home in [crate::root::PageHome::First, crate::root::PageHome::Second] {
            let both = ib.root.homes.iter().zip(&root.homes).enumerate();
            let pages: Vec<u64> = both
                .filter(|(_, (old, new))| old != new && **new == home)
                .map(|(n, _)| n as u64)
                .collect();
            if pages.is_empty() {
                continue;
            }
            let view = self.emulation.view(root.table(vps, home), RECORD_BYTES)?;
            self.through(&view, |file| {
                for range in runs(&pages) {
                    let first = self.emulation.below(range.start * page);
                    let last = self.emulation.below(range.end * page);
                    let mut records = vec![0; (last - first) * RECORD_BYTES as usize];
                    let of_vps = records.chunks_exact_mut(RECORD_BYTES as usize);
                    for (local, record) in (first..last).zip(of_vps) {
                        ib.put_record(self.who(local), &self.vps[local], record);
                    }
                    if first < last {
                        file.write_at(first as u64 * RECORD_BYTES, &records)?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<SyncReport> {
        let shaped = self.shaped.sync();
        let raw = self.raw.sync()?;
        let shaped = shaped?;
        Ok(SyncReport {
            is_durable: shaped.is_durable && raw.is_durable,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_make_runs() {
        assert_eq!(runs(&[]), []);
        assert_eq!(runs(&[1, 2, 4, 5, 6, 9]), [1..3, 4..7, 9..10]);
    }
}
