//! What the ledger has about one subfile, and the changes of it that are not written yet.
//!
//! An operation on a subfile notes what it changes, under the lock of the subfile, and *settles* before it lets go of that: all
//! that it has noted is one batch. Extents that it took out are held until then, so that their memory goes to nobody else
//! before the ledger says that they are gone.
//!
//! Cost: an operation that changes nothing that the ledger has writes nothing.

use std::sync::Arc;

use super::entries::{Memory, StoreKind};
use super::{Batch, Ledger};
use crate::blocks::Blocks;
use crate::identity::Identity;
use crate::pool::Extent;

/// The part of the ledger that belongs to one subfile.
#[derive(Debug)]
pub(crate) struct Account {
    ledger: Ledger,
    kind: StoreKind,
    number: u64,
    batch: Batch,
    /// Extents that are in the ledger as long as the batch is not written.
    gone: Vec<Arc<Extent>>,
    /// The subfile itself is in the ledger, or noted.
    is_listed: bool,
}

impl Account {
    pub(crate) fn new(ledger: Ledger, kind: StoreKind, number: u64) -> Account {
        Account {
            ledger,
            kind,
            number,
            batch: Batch::new(),
            gone: Vec::new(),
            is_listed: false,
        }
    }

    /// One that an earlier process has written.
    pub(crate) fn adopted(ledger: Ledger, kind: StoreKind, number: u64) -> Account {
        Account {
            is_listed: true,
            ..Account::new(ledger, kind, number)
        }
    }

    /// Whether the ledger has the subfile.
    pub(crate) fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Whether extents are in the ledger as such, and not only blocks that have to be written back.
    pub(crate) fn has_all_extents(&self) -> bool {
        self.kind == StoreKind::Memory
    }

    pub(crate) fn note_identity(&mut self, identity: &Identity) {
        self.is_listed = true;
        self.batch.set_subfile(self.number, self.kind, identity);
    }

    pub(crate) fn note_length(&mut self, len: u64) {
        self.batch.set_length(self.number, len);
    }

    /// The subfile is gone, or nothing of it has to be found again.
    pub(crate) fn note_end(&mut self) {
        self.is_listed = false;
        self.batch.remove_subfile(self.number);
    }

    /// A place has an extent, also in the stead of another.
    pub(crate) fn note_extent(&mut self, start: u64, extent: &Extent) {
        let memory = Memory::of(extent);
        self.batch.set_extent(self.number, start, memory);
    }

    /// Blocks of an extent count that a disk does not have.
    pub(crate) fn note_blocks(&mut self, start: u64, extent: &Extent, blocks: &Blocks) {
        let memory = Memory::of(extent);
        self.batch.set_blocks(self.number, start, memory, blocks);
    }

    /// A place has none any more.
    pub(crate) fn note_gone(&mut self, start: u64) {
        self.batch.remove_extent(self.number, start);
    }

    /// A client may store into an extent that is taken out.
    pub(crate) fn note_aside(&mut self, extent: &Extent) {
        self.batch.set_aside(Memory::of(extent));
    }

    /// Holds an extent until what was noted is written.
    pub(crate) fn hold(&mut self, extent: &Arc<Extent>) {
        self.gone.push(Arc::clone(extent));
    }

    /// Writes what was noted, and lets go of what is gone.
    pub(crate) fn settle(&mut self) {
        if !self.batch.is_empty() {
            self.ledger.write(&self.batch);
            self.batch.clear();
        }
        self.gone.clear();
    }
}
