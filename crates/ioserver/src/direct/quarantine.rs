//! Memory that revoked writers may still store into.
//!
//! Extents stay here until every one of these writers has freed its slot or is dead. Their memory is
//! given back as soon as nothing reads it.

use std::sync::Arc;

use store::Aside;

use super::Direct;
use super::attached::AttachedClient;

/// Extents, and those who may store into them.
pub(crate) struct QuarantinedMemory {
    writers: Vec<(Arc<AttachedClient>, Vec<usize>)>,
    aside: Aside,
}

impl QuarantinedMemory {
    pub(super) fn new(writers: Vec<(Arc<AttachedClient>, Vec<usize>)>, aside: Aside) -> Self {
        QuarantinedMemory { writers, aside }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.aside.bytes()
    }

    fn is_of(&self, attached: &Arc<AttachedClient>) -> bool {
        let mut writers = self.writers.iter();
        writers.any(|(writer, _)| Arc::ptr_eq(writer, attached))
    }

    /// Whether no writer can store any more.
    fn is_over(&mut self) -> bool {
        self.writers
            .retain(|(writer, slots)| may_store(writer, slots));
        self.writers.is_empty()
    }
}

/// Whether a revoked writer has not noticed yet.
pub(super) fn may_store(writer: &AttachedClient, slots: &[usize]) -> bool {
    slots.iter().any(|&slot| writer.page.is_revoked(slot)) && !writer.is_dead()
}

impl Direct {
    /// Frees what no writer can store into any more.
    pub(crate) fn sweep(&self) {
        let mut over = Vec::new();
        let mut state = self.state.lock();
        let mut at = 0;
        while let Some(found) = state.quarantine.get_mut(at) {
            if found.is_over() {
                over.push(state.quarantine.swap_remove(at));
            } else {
                found.aside.give_back();
                at += 1;
            }
        }
        drop(state);
        // Freeing memory takes its time.
        drop(over);
    }

    pub(super) fn put_aside(&self, quarantined: QuarantinedMemory) {
        if !quarantined.aside.is_empty() {
            self.state.lock().quarantine.push(quarantined);
        }
    }

    /// Bytes of address space that wait for a client.
    pub(super) fn quarantined_by(&self, attached: &Arc<AttachedClient>) -> u64 {
        let state = self.state.lock();
        let of = state.quarantine.iter().filter(|q| q.is_of(attached));
        of.map(QuarantinedMemory::bytes).sum()
    }
}
