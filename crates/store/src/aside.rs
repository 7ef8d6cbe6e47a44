//! Extents that were taken from a client that may still store into them.
//!
//! Their memory is given back at once, and again when they are dropped: what was stored in between is
//! seen by nobody. Their place in the segment is given to nobody before that.
//!
//! Left to others: knowing when nobody can store any more.

use std::sync::Arc;

use crate::pool::Extent;

/// Extents without an owner.
#[derive(Debug, Default)]
pub struct Aside {
    extents: Vec<Arc<Extent>>,
    copied_bytes: u64,
}

impl Aside {
    /// None.
    pub fn new() -> Self {
        Aside::default()
    }

    /// Some that have no memory already.
    pub(crate) fn of(extents: Vec<Arc<Extent>>) -> Self {
        Aside {
            extents,
            copied_bytes: 0,
        }
    }

    /// Bytes of address space that they take.
    pub fn bytes(&self) -> u64 {
        self.extents.iter().map(|e| e.len()).sum()
    }

    /// Bytes that had to be copied to fresh extents.
    pub fn copied_bytes(&self) -> u64 {
        self.copied_bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Gives back memory that was still read from when this was tried last.
    pub fn give_back(&self) {
        for extent in &self.extents {
            // A request that has it pinned reads old bytes, not zeros.
            if Arc::strong_count(extent) == 1 {
                extent.set_aside();
            }
        }
    }

    /// Leaves all of them aside for the process that adopts the ledger, as a killed process would.
    #[cfg(test)]
    pub(crate) fn leave(&self) {
        self.extents.iter().for_each(|extent| extent.leave());
    }

    /// Takes an extent that is in no table any more.
    pub(crate) fn push(&mut self, extent: Arc<Extent>, was_copied: bool) {
        if was_copied {
            self.copied_bytes += extent.len();
        }
        if Arc::strong_count(&extent) == 1 {
            extent.set_aside();
        }
        self.extents.push(extent);
    }
}
