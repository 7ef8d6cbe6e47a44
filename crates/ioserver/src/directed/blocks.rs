//! The store's side of a collective access: blocks in the order of the store, one round ahead of the ranks.
//!
//! A read pins the blocks of a round, which loads them from a disk. A write allocates its whole range ahead,
//! in one stretch, then grants round by round and commits what all ranks have filled.
//!
//! Slots are those of the state that the access was planned with, whatever state lets its rounds in: one that does has the
//! same bytes in the same subfiles, but may count other subfiles before them.
//!
//! Left to others: what goes over the network meanwhile (`super::transfer`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use store::{Grant, Pins};
use wire::Status;

use super::distribution::{RoundPart, Walk};
use super::operation::{Memory, Operation, Plan, Round};
use super::prefetch::Ready;
use crate::access::write::overtaken_entry;
use crate::files::{AccessTerms, FileEntry, Files, GatePass, LocalState};
use crate::owner::Owner;
use crate::refused::Refused;
use crate::statistics::add;

/// Part of a range that ranks write, above which all of it is allocated ahead.
const DENSE: u64 = 2;
/// Bytes of a subfile that are allocated ahead, at most.
const AHEAD_BYTES: u64 = 4 << 30;

/// What the store's thread works with.
pub(super) struct Blocks<'a> {
    pub(super) files: &'a Files,
    pub(super) owner: &'a Owner,
    pub(super) entry: &'a Arc<FileEntry>,
    pub(super) operation: &'a Operation,
    pub(super) plan: &'a Plan,
    pub(super) version: &'a [u8],
    pub(super) epoch: u64,
}

impl Blocks<'_> {
    /// Runs to the end, whichever it is.
    pub(super) fn run(&self, ready: Option<Ready>) {
        if let Err(refused) = self.all_rounds(ready) {
            self.operation.fail(refused);
        }
    }

    /// Hands out what was prepared before the request came; where the walk goes on.
    fn prepared(&self, mut ready: Ready) -> Result<Walk, Refused> {
        let (storage, sessions) = (&self.files.storage, &self.files.sessions);
        let (operation, statistics) = (self.operation, &storage.statistics);
        while let Some(next) = ready.next() {
            let is_last = self.entry.is_closed();
            while let Some(oldest) = operation.oldest(sessions, is_last)? {
                operation.store_step(statistics, || self.end(oldest))?;
            }
            let (running, known) = self.enter()?;
            // Who writes into it from now on writes at the same time. Others may rely on what is sent from
            // here, so a layout that has changed since is for all ranks to hear.
            if known.serial != self.plan.distribution.known.serial {
                return Err(Refused::new(
                    Status::Busy,
                    "the file got another layout in the middle of a collective access; repeat it",
                ));
            }
            let bytes = next.packets.iter().flatten();
            let bytes = bytes.map(|packet| packet.bytes.len() as u64).sum();
            add(&statistics.prefetch_hit_bytes, bytes);
            let blocks = next.parts.iter().map(|part| part.blocks).sum();
            add(&statistics.directed_rounds, 1);
            add(&statistics.directed_blocks, blocks);
            operation.blocks.fetch_add(blocks, Ordering::Relaxed);
            let round = Round {
                parts: next.parts,
                memory: Memory::Packets(next.packets),
                _running: running,
            };
            operation.publish(statistics, round);
        }
        Ok(ready.walk.clone())
    }

    fn all_rounds(&self, ready: Option<Ready>) -> Result<(), Refused> {
        let (storage, sessions) = (&self.files.storage, &self.files.sessions);
        let (operation, statistics) = (self.operation, &storage.statistics);
        if self.plan.writes {
            operation.store_step(statistics, || self.allocate())?;
        }
        let mut walk = match ready {
            Some(ready) => self.prepared(ready)?,
            None => Walk::default(),
        };
        let mut parts = Vec::new();
        loop {
            // What closes the gate waits for the rounds in memory, and the next one for it.
            let is_last = self.entry.is_closed();
            while let Some(oldest) = operation.oldest(sessions, is_last)? {
                operation.store_step(statistics, || self.end(oldest))?;
            }
            self.plan.distribution.next_round(&mut walk, &mut parts)?;
            if parts.is_empty() {
                break;
            }
            let round = operation.store_step(statistics, || self.prepare(parts.clone()))?;
            let blocks = round.parts.iter().map(|part| part.blocks).sum();
            add(&statistics.directed_rounds, 1);
            add(&statistics.directed_blocks, blocks);
            operation.blocks.fetch_add(blocks, Ordering::Relaxed);
            operation.publish(statistics, round);
        }
        operation.complete();
        while let Some(oldest) = operation.oldest(sessions, true)? {
            operation.store_step(statistics, || self.end(oldest))?;
        }
        if self.plan.writes {
            storage.stored.wrote();
        }
        operation.done();
        Ok(())
    }

    fn enter(&self) -> Result<(GatePass, Arc<LocalState>), Refused> {
        let planned = AccessTerms {
            version: self.version,
            file: Some(self.plan.distribution.hull()),
            epoch: self.epoch,
            only_reads: !self.plan.writes,
            ..AccessTerms::default()
        };
        let (running, known, _) = self.files.enter(self.owner, self.entry, &planned)?;
        Ok((running, known))
    }

    /// Allocates what is going to be written, in one stretch per subfile.
    fn allocate(&self) -> Result<(), Refused> {
        let (storage, distribution) = (&self.files.storage, &self.plan.distribution);
        let _running = self.enter()?;
        let known = &distribution.known;
        for (slot, range, bytes) in distribution.spans() {
            let own = &known.own[slot];
            known.check_place(own, &storage.identity)?;
            if (range.end - range.start) / DENSE > bytes {
                continue;
            }
            let made = known.make(own, storage);
            // What ranks say that they will write is not written yet, and may never be.
            let range = range.start..range.end.min(range.start.saturating_add(AHEAD_BYTES));
            // Without room for all of it at once there may still be room for one round after the other.
            match made.and_then(|subfile| subfile.preallocate(range)) {
                Ok(()) | Err(store::Error::NoSpace { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn prepare(&self, mut parts: Vec<RoundPart>) -> Result<Round, Refused> {
        let storage = &self.files.storage;
        let (running, _) = self.enter()?;
        let known = &self.plan.distribution.known;
        for part in &parts {
            let own = &known.own[part.slot];
            known.check_place(own, &storage.identity)?;
        }
        let memory = match self.plan.writes {
            false => {
                let pins = parts.iter().map(|part| self.pin(known, part));
                Memory::Read(pins.collect::<Result<_, _>>()?)
            }
            true => {
                let grants = parts.iter_mut().map(|part| self.grant(known, part));
                Memory::Write(grants.collect::<Result<_, _>>()?)
            }
        };
        Ok(Round {
            parts,
            memory,
            _running: running,
        })
    }

    fn pin(&self, known: &LocalState, part: &RoundPart) -> Result<Pins, Refused> {
        let storage = &self.files.storage;
        let mut pins = Pins::new();
        let subfile = known.find(&known.own[part.slot], &storage.stored)?;
        if let Some(subfile) = subfile {
            storage.with_room(|| {
                pins.clear();
                subfile.pin(part.subfile.raw(), &mut pins)
            })?;
        }
        Ok(pins)
    }

    fn grant(&self, known: &LocalState, part: &mut RoundPart) -> Result<Grant, Refused> {
        let storage = &self.files.storage;
        let own = &known.own[part.slot];
        let (span, is_full) = self.plan.distribution.written(part);
        part.subfile = span;
        let mut grant = Grant::new();
        storage.with_room(|| {
            grant.abandon();
            let subfile = known.make(own, storage)?;
            match is_full {
                true => subfile.grant(span.raw(), &mut grant),
                false => subfile.grant_gaps(span.raw(), &mut grant),
            }
        })?;
        Ok(grant)
    }

    /// A round that all ranks are through with.
    fn end(&self, round: Arc<Round>) -> Result<(), Refused> {
        let Some(round) = Arc::into_inner(round) else {
            let text = "a round that has ended is still in use";
            return Err(Refused::new(Status::Internal, text));
        };
        let Memory::Write(grants) = round.memory else {
            return Ok(());
        };
        let known = &self.plan.distribution.known;
        for (mut grant, part) in grants.into_iter().zip(&round.parts) {
            grant
                .commit()
                .map_err(|error| overtaken_entry(error, self.entry))?;
            self.entry.wrote(&part.file.raw());
            if self.files.storage.write_through {
                let stored = &self.files.storage.stored;
                if let Some(subfile) = known.find(&known.own[part.slot], stored)? {
                    subfile.flush()?;
                }
            }
        }
        Ok(())
    }
}
