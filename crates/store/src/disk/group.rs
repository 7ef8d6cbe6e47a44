//! The two tables of a group in memory: what is committed, and what this epoch proposes.
//!
//! Rules 1 to 3 of [`super::file`] are applied here, for one block at a time and without I/O: where
//! the next version of a block goes, and what recovery may find there until it has arrived.

use super::format::{GroupBits, Side, Table};

#[derive(Debug)]
pub(super) struct Group {
    pub(super) committed: Table,
    /// Which place holds the committed table; `None` if the group was never committed.
    pub(super) side: Option<Side>,
    pub(super) working: Option<Box<WorkingGroup>>,
}

#[derive(Debug)]
pub(super) struct WorkingGroup {
    pub(super) table: Table,
    /// Blocks whose uncommitted place was used in this epoch.
    pub(super) written: GroupBits,
    /// Blocks whose place may hold neither version: a write failed and was not repeated yet.
    pub(super) uncertain: GroupBits,
    /// The table on disk is older.
    pub(super) stale: bool,
}

impl Group {
    pub(super) fn empty() -> Self {
        Group {
            committed: Table::empty(),
            side: None,
            working: None,
        }
    }

    /// What counts for readers of this process.
    pub(super) fn current(&self) -> &Table {
        self.working.as_ref().map_or(&self.committed, |w| &w.table)
    }

    /// Where an uncommitted table goes.
    pub(super) fn table_side(&self) -> Side {
        self.side.map_or(Side::Zero, Side::other)
    }
}

impl WorkingGroup {
    /// The place a block was given in this epoch, whether or not it was emptied afterwards.
    pub(super) fn place(&self, i: usize, committed: Option<Side>) -> Side {
        debug_assert!(self.written.has(i));
        committed.map_or(Side::Zero, Side::other)
    }
}

/// A working table together with the committed one it started from.
pub(super) struct WorkingOn<'a> {
    pub(super) committed: &'a Table,
    pub(super) working: &'a mut WorkingGroup,
}

impl WorkingOn<'_> {
    pub(super) fn table(&self) -> &Table {
        &self.working.table
    }

    /// A block is about to be written with this checksum: chooses its place and what recovery
    /// accepts there until the bytes have arrived.
    pub(super) fn propose(&mut self, i: usize, crc: u32) {
        let WorkingGroup {
            table,
            written,
            uncertain,
            stale,
        } = &mut *self.working;
        let was_present = table.present.has(i);
        if !written.has(i) {
            let committed = self.committed.present.has(i);
            let side = committed.then(|| self.committed.side(i).other());
            table.set_side(i, side.unwrap_or(Side::Zero));
            table.has_alternate.set(i, false);
            table.emptied.set(i, committed && !was_present);
            written.set(i, true);
        } else if !was_present {
            table.has_alternate.set(i, false);
            table.emptied.set(i, true);
        } else if !uncertain.has(i) {
            table.alternate[i] = table.crc[i];
            table.has_alternate.set(i, true);
        } // else: what arrived last is still the alternate, if there is one
        table.present.set(i, true);
        table.crc[i] = crc;
        uncertain.set(i, true);
        *stale = true;
    }

    pub(super) fn empty(&mut self, i: usize) {
        let table = &mut self.working.table;
        table.present.set(i, false);
        table.has_alternate.set(i, false);
        self.working.uncertain.set(i, false);
        self.working.stale = true;
    }
}
