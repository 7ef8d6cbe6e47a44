//! Which subjects ([`control::stamps`]) a change of rows has, and which an answer about a path depends on.
//!
//! Invariants
//! - A row that an answer was made of is covered by a subject of the answer's [`Trail`], and every change of the row by the
//!   same subject.
//! - An answer whose subjects are not known says so: it has no stamps.

use std::collections::BTreeSet;

use control::stamps::Subject;

use super::record::{ENTRY, LAYOUT, NODE, Node, key, read_node};
use crate::FileId;

/// Slots of what an answer depends on, as its path is followed.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    slots: Vec<u32>,
    /// It depends on something else besides.
    is_incomplete: bool,
}

impl Trail {
    /// The answer depends on this.
    pub(crate) fn saw(&mut self, subject: Subject<'_>) {
        self.slots.push(subject.slot());
    }

    /// The answer depends on something that has no subject.
    pub(crate) fn saw_other(&mut self) {
        self.is_incomplete = true;
    }

    /// All slots so far, or nothing if they are not all.
    pub fn seen(&self) -> Option<&[u32]> {
        (!self.is_incomplete).then_some(&self.slots[..])
    }

    /// All slots, or nothing if they are not all.
    pub fn slots(self) -> Option<Vec<u32>> {
        (!self.is_incomplete).then_some(self.slots)
    }
}

/// Adds the slots of what changes with a row.
pub(super) fn touch(slots: &mut BTreeSet<u32>, key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) {
    let Some(file) = key::number(key, 0).map(FileId) else {
        return;
    };
    match key.first() {
        Some(&NODE) => {
            slots.insert(Subject::Node(file).slot());
            let node = |row: Option<&[u8]>| row.and_then(|row| read_node(key, row).ok());
            if access(node(old)) != access(node(new)) {
                slots.insert(Subject::Access(file).slot());
            }
        }
        Some(&LAYOUT) => {
            slots.insert(Subject::Node(file).slot());
        }
        Some(&ENTRY) => {
            let name = key::name(key, 1).unwrap_or_default();
            slots.insert(Subject::Entry(file, name).slot());
            slots.insert(Subject::Entries(file).slot());
        }
        _ => {}
    }
}

/// What says who may do what.
fn access(node: Option<Node>) -> Option<(u32, u32, u32)> {
    node.map(|node| (node.owner, node.group, node.mode))
}
