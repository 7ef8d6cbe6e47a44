//! Stamps: when what was told about names and attributes was last changed, so that a client knows without asking that it is
//! still so.
//!
//! Everything that an answer about a path depends on is a [`Subject`]; subjects share a fixed number of *slots* by a hash. The
//! slot of a subject has the number of the last commit that changed a subject of the slot:
//!
//! ```text
//!  commit 8 begins    slot: 8 * 2 - 1    nobody believes what he was told before, nobody is told more than once
//!  it is durable      slot: 8 * 2        answers from states that have commit 8 can be believed for as long as this stands
//! ```
//!
//! An answer comes with the slots of its subjects and what stood in them; the client believes it again as long as all of
//! them are the same. Two subjects in one slot cost a question that was not needed, never a wrong answer.
//!
//! Invariants
//! - A slot is odd from before a change can be seen until after it can: a client that compares in between asks.
//! - A stamp is given out only if it is from before the state that was read: nothing of its slot has changed since.
//!
//! Left to others: which subjects a change and an answer have (`meta`), the memory of the slots (`direct`).

use wire::FileId;

/// How many slots there are.
pub const SLOTS: u32 = 1 << 16;

/// Something that an answer about a path depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'s> {
    /// All attributes of a file or directory, its layout, and whether it can be told without asking an I/O server.
    Node(FileId),
    /// Who may do what with a file or directory.
    Access(FileId),
    /// What has a name in a directory, if anything has it.
    Entry(FileId, &'s str),
    /// Which names there are in a directory.
    Entries(FileId),
}

impl Subject<'_> {
    /// Its slot.
    pub fn slot(&self) -> u32 {
        let (kind, file, name) = match self {
            Subject::Node(file) => (1u64, file, ""),
            Subject::Access(file) => (2, file, ""),
            Subject::Entry(directory, name) => (3, directory, *name),
            Subject::Entries(directory) => (4, directory, ""),
        };
        // FNV-1a over the name, then a mix of all bits (the finaliser of SplitMix64).
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ kind;
        for byte in name.as_bytes() {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash = (hash ^ file.0).wrapping_add(0x9e37_79b9_7f4a_7c15 ^ kind << 56);
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((hash ^ hash >> 31) % u64::from(SLOTS)) as u32
    }
}

/// Keeps the slots. One commit is under way at a time.
pub trait StampKeeper: Send + Sync + std::fmt::Debug {
    /// A commit that changes these slots is about to be seen; its number is one above the last.
    fn begin(&self, slots: &[u32]);

    /// It can be seen by everybody who reads from now on.
    fn end(&self, slots: &[u32]);
}

/// What stands in a slot while commit `number`, 1 or above, is about to be seen: less than after it, so that one who is told this
/// believes what he is given after it.
pub fn changing(number: u64) -> u64 {
    changed(number) - 1
}

/// What stands in a slot after it.
pub fn changed(number: u64) -> u64 {
    number << 1
}

/// Whether what stands in a slot says that a state from after commit `number` has all changes of it.
pub fn is_before(stamp: u64, number: u64) -> bool {
    stamp <= changed(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_in_change_is_before_no_state_but_that_of_the_commit() {
        assert!(is_before(changed(7), 7) && is_before(changed(6), 7) && is_before(0, 0));
        assert!(!is_before(changed(8), 7) && !is_before(changing(8), 7));
        assert!(!is_before(changing(8), 7) && is_before(changing(7), 8));
    }

    #[test]
    fn subjects_are_spread_over_the_slots() {
        let mut used = vec![0u32; SLOTS as usize];
        for number in 0..u64::from(SLOTS) / 8 {
            let name = format!("f{number:06}");
            let file = FileId(number);
            for subject in [
                Subject::Node(file),
                Subject::Access(file),
                Subject::Entry(FileId(1), &name),
                Subject::Entries(file),
            ] {
                used[subject.slot() as usize] += 1;
            }
        }
        // Half as many subjects as slots: four in ten slots have one, as many as chance gives.
        let taken = used.iter().filter(|count| **count > 0).count();
        assert!(taken > SLOTS as usize * 38 / 100, "{taken}");
        assert!(used.iter().all(|count| *count < 10));
    }
}
