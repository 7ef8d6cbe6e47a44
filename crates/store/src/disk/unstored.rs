//! What of an open subfile only memory has: puts it on record and takes it off again.
//!
//! A subfile is *listed* in the ledger, with its identity and length, while anything of it is on record. The length on record counts then, not that of
//! the data file.
//!
//! Invariants
//! - What a write has made dirty is on record before it is answered, in one batch with the length.
//! - Blocks leave the record when the data file has them and its tables and length say so. The page cache is enough: no record survives the
//!   host either.
//! - A truncation is on record before the data file is cut, and in the data file before it is answered; a hole that was punched is in
//!   the data file. So no cut comes undone by what is adopted.

use std::sync::Arc;

use super::held::{Backing, HeldSubfile, State, Target};
use super::legacy::Legacy;
use crate::blocks::BLOCK;
use crate::error::Result;
use crate::identity::{Identity, MAX_LEN};
use crate::ledger::refuse;

impl State {
    /// Notes that the subfile has something that its data file has not, if so, and writes what was noted.
    pub(super) fn put_on_record(&mut self) {
        let has_extents = self.table.is_on_record();
        let len = self.len;
        if let Some(account) = self.table.account() {
            if has_extents && !account.is_listed() {
                account.note_identity(&self.identity);
                account.note_length(len);
            }
            account.settle();
        }
    }

    /// Puts another length on record, which the data file does not have.
    pub(super) fn put_len_on_record(&mut self, len: u64) {
        if let Some(account) = self.table.account() {
            if !account.is_listed() {
                account.note_identity(&self.identity);
            }
            account.note_length(len);
            account.settle();
        }
    }

    /// Puts note and domain on record, which the data file does not have.
    pub(super) fn put_identity_on_record(&mut self) {
        let len = self.len;
        if let Some(account) = self.table.account() {
            account.note_identity(&self.identity);
            account.note_length(len);
            account.settle();
        }
    }

    /// Blocks have become dirty, and the length is at least `end`: all of it is one batch.
    pub(super) fn record_write(&mut self, end: u64) {
        let is_longer = end > self.len;
        self.len = self.len.max(end);
        let len = self.len;
        if let Some(account) = self.table.account()
            && is_longer
            && account.is_listed()
        {
            account.note_length(len);
        }
        self.put_on_record();
    }

    pub(super) fn raise_len(&mut self, end: u64) {
        if end > self.len {
            self.len = end;
            self.put_len_on_record(end);
        }
    }

    /// The data file has what was written to it, this length and identity, and says so.
    pub(super) fn note_flushed(&mut self, len: u64, identity: &Identity) {
        self.table.note_flushed();
        self.forget_record(len, identity);
        self.table.settle();
    }

    /// Nothing of the subfile is lost with memory, if the data file has this length and identity: takes it off the record.
    pub(super) fn forget_record(&mut self, len: u64, identity: &Identity) {
        let is_current = self.len == len && self.identity == *identity;
        let is_clean = is_current && !self.table.is_on_record();
        if let Some(account) = self.table.account()
            && account.is_listed()
            && is_clean
        {
            account.note_end();
            account.settle();
        }
    }
}

impl HeldSubfile {
    /// Cuts or extends the subfile.
    pub(super) fn truncate(self: &Arc<Self>, len: u64) -> Result<()> {
        let mut backing = self.backing();
        {
            let mut state = self.lock();
            state.check_alive()?;
            // On record first: should the process be killed meanwhile, the next one cuts again.
            state.put_len_on_record(len);
        }
        let done = self.cut(&mut backing, len..MAX_LEN.next_multiple_of(BLOCK));
        let mut state = self.lock();
        if done.is_err() {
            let len = state.len;
            state.put_len_on_record(len);
        } else {
            state.len = len;
            state.stored_end = state.stored_end.min(len.next_multiple_of(BLOCK));
            state.is_owing &= state.table.is_dirty();
        }
        drop(state);
        done?;
        self.flush_cut(&mut backing)
    }

    /// Has the data file say what was cut, where that must survive the process; the ledger says what was written only.
    pub(super) fn flush_cut(&self, backing: &mut Backing) -> Result<()> {
        if self.lock().table.account().is_none() {
            return Ok(());
        }
        let (len, identity) = self.attributes();
        backing.file.set_attributes(len, &identity)?;
        backing.file.flush()?;
        self.lock().note_flushed(len, &identity);
        Ok(())
    }

    /// Takes over what an earlier process had in memory. Its data file is open, and nobody else has the subfile yet.
    pub(super) fn inherit(self: &Arc<Self>, legacy: Legacy) -> Result<()> {
        let core = self.core()?;
        let mut backing = self.backing();
        let len = legacy.entry.len.unwrap_or(0);
        // What a truncation had cut that was on record, and perhaps not in the data file.
        if backing.file.len() > len {
            let old = std::mem::replace(&mut self.lock().len, len);
            self.cut(&mut backing, len..old.next_multiple_of(BLOCK).max(len))?;
            let identity = self.lock().identity.clone();
            self.write_back(&mut backing, u64::MAX, Target::System)?;
            backing.file.set_attributes(len, &identity)?;
            backing.file.flush()?;
        }
        let mut state = self.lock();
        state.len = len;
        state.identity = legacy.entry.identity;
        state.table.set_account(legacy.account);
        for entry in legacy.extents {
            let extent = core.pool.claim(entry.memory)?;
            let range = entry.start..entry.start + extent.len();
            let blocks = entry
                .blocks
                .ok_or_else(|| refuse("has an extent without blocks"))?;
            // Blocks that were loaded to be cut are clean, and older.
            let older: Vec<u64> = state.table.meeting(range).map(|(s, _)| s).collect();
            for start in older {
                state.table.remove(start);
            }
            state.table.put_adopted(entry.start, extent, blocks);
        }
        Ok(())
    }

    /// Clients of the process before have said how far they had stored.
    pub(super) fn end_adoption(&self) {
        let mut state = self.lock();
        let len = state.len;
        state.table.end_adoption(len);
    }
}
