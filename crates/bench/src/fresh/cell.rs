//! The cells of the table: what is written, by whom, and what its cases are called; and what a turn of one gave.
//!
//! Left to others: how a turn is taken (`clients`, `programs`), and what is held against it (`goals`).

use std::collections::BTreeMap;

use clap::ValueEnum;

use crate::site::Store;

/// Which processes have which transfers of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Pattern {
    /// Each process a part of the file, from its begin to its end
    Sequential,
    /// The processes take turns
    Interleaved,
    /// Drawn, and in any order
    Random,
}

impl Pattern {
    /// As it stands in names of cases.
    pub(super) fn word(self) -> &'static str {
        match self {
            Pattern::Sequential => "sequential",
            Pattern::Interleaved => "interleaved",
            Pattern::Random => "random",
        }
    }
}

/// What a write promises when its time ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pledge {
    /// What any write does.
    None,
    /// The bytes are on the disk.
    Sync,
}

impl Pledge {
    /// As programs are told.
    pub(super) fn word(self) -> &'static str {
        match self {
            Pledge::None => "none",
            Pledge::Sync => "sync",
        }
    }
}

/// Whether ready memory of the servers is meant to hold a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Inside,
    Beyond,
}

/// Who takes part in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Pario,
    /// What a program has without Pario.
    Own,
    Memcpy,
}

impl Side {
    /// All, as a turn with this number begins: the first two are first in turn.
    pub(super) fn order(turn: u64) -> [Side; 3] {
        match turn % 2 {
            0 => [Side::Pario, Side::Own, Side::Memcpy],
            _ => [Side::Own, Side::Pario, Side::Memcpy],
        }
    }

    /// As programs are told.
    pub(super) fn word(self) -> &'static str {
        match self {
            Side::Pario => "pario",
            Side::Own => "own",
            Side::Memcpy => "memcpy",
        }
    }
}

/// One cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) store: Store,
    pub(super) pattern: Pattern,
    /// Bytes of a transfer.
    pub(super) transfer: u64,
    pub(super) processes: u64,
    /// Whether accesses are collective.
    pub(super) together: bool,
    pub(super) reach: Reach,
    /// Transfers of each process.
    pub(super) count: u64,
}

/// Bytes from which on transfers are large.
const LARGE: u64 = 64 << 10;

impl Cell {
    /// Bytes of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.count * self.processes * self.transfer
    }

    /// `indep` or `coll`.
    pub(super) fn how(&self) -> &'static str {
        if self.together { "coll" } else { "indep" }
    }

    /// What all its cases begin with.
    pub(super) fn name(&self) -> String {
        format!(
            "{}/{}/t={}/p={}/{}",
            self.store.word(),
            self.pattern.word(),
            self.transfer,
            self.processes,
            self.how()
        )
    }

    /// The case of one of its steps.
    pub(super) fn case(&self, step: &str, op: &str, pledge: Pledge) -> String {
        let sync = match pledge {
            Pledge::None => "",
            Pledge::Sync => "+sync",
        };
        format!("{}/{step}/{op}{sync}", self.name())
    }

    /// The name of the ratio to what a program has without Pario, on the same medium.
    pub(super) fn own(&self) -> &'static str {
        match self.store {
            Store::Memory => "own-tmpfs",
            Store::Disk => "own-ext4",
        }
    }

    /// The column `pool`; stores on disks have none.
    pub(super) fn pool(&self) -> Option<&'static str> {
        match (self.store, self.reach) {
            (Store::Memory, Reach::Inside) => Some("inside"),
            (Store::Memory, Reach::Beyond) => Some("beyond"),
            (Store::Disk, _) => None,
        }
    }

    /// Whether there is a row beyond the pool: of large transfers, as they come in large files.
    pub(super) fn is_beyond_wanted(&self) -> bool {
        self.store == Store::Memory
            && self.pattern == Pattern::Sequential
            && self.transfer >= LARGE
            && self.processes != 2
            && !self.together
    }

    /// Whether it has rows with a sync.
    pub(super) fn is_synced(&self) -> bool {
        self.store == Store::Disk && !self.together
    }

    /// Whether it is one of the few of a quick run.
    pub(super) fn is_glance(&self) -> bool {
        const FEW: [(Pattern, u64, u64, bool); 7] = [
            (Pattern::Sequential, 4096, 1, false),
            (Pattern::Interleaved, 4096, 4, false),
            (Pattern::Interleaved, 47008, 4, false),
            (Pattern::Interleaved, 47008, 4, true),
            (Pattern::Random, 65536, 2, false),
            (Pattern::Sequential, 1 << 20, 1, false),
            (Pattern::Sequential, 1 << 20, 4, false),
        ];
        let this = (self.pattern, self.transfer, self.processes, self.together);
        let is_first_beyond = self.processes == 1 || self.reach == Reach::Inside;
        FEW.contains(&this) && is_first_beyond
    }
}

/// The steps that are timed, and what is done in them.
pub(super) fn cases(pledge: Pledge) -> &'static [(&'static str, &'static str)] {
    match pledge {
        Pledge::None => &[
            ("new", "write"),
            ("new", "read"),
            ("again", "write"),
            ("again", "read"),
            ("reopened", "read"),
            ("reopened", "write"),
        ],
        Pledge::Sync => &[("new", "write"), ("again", "write")],
    }
}

/// What one turn gave: seconds by side, step and operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn(BTreeMap<(Side, String, String), f64>);

impl Turn {
    /// One step more.
    pub(super) fn set(&mut self, side: Side, step: &str, op: &str, seconds: f64) {
        let key = (side, step.to_owned(), op.to_owned());
        self.0.insert(key, seconds);
    }

    /// Seconds of a step, if it was timed.
    pub(super) fn get(&self, side: Side, step: &str, op: &str) -> Option<f64> {
        let key = (side, step.to_owned(), op.to_owned());
        self.0.get(&key).copied().filter(|seconds| *seconds > 0.0)
    }

    /// What a program printed.
    pub(super) fn parse(text: &str) -> Turn {
        let mut turn = Turn::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [side, step, op, seconds] = words.as_slice() else {
                continue;
            };
            let side = Side::order(0).into_iter().find(|s| s.word() == *side);
            if let (Some(side), Ok(seconds)) = (side, seconds.parse()) {
                turn.set(side, step, op, seconds);
            }
        }
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell() -> Cell {
        Cell {
            store: Store::Disk,
            pattern: Pattern::Interleaved,
            transfer: 47008,
            processes: 4,
            together: false,
            reach: Reach::Inside,
            count: 10,
        }
    }

    #[test]
    fn cases_are_named_from_the_general_to_the_special() {
        let cell = cell();
        let name = "disk/interleaved/t=47008/p=4/indep";
        assert_eq!(
            cell.case("new", "write", Pledge::None),
            format!("{name}/new/write")
        );
        assert_eq!(
            cell.case("again", "write", Pledge::Sync),
            format!("{name}/again/write+sync")
        );
        assert_eq!(cell.bytes(), 4 * 10 * 47008);
        assert!(cell.is_glance() && cell.is_synced() && cell.pool().is_none());
        assert!(!cell.is_beyond_wanted());
    }

    #[test]
    fn what_a_program_prints_is_read_and_other_lines_are_left_out() {
        let turn = Turn::parse(
            "pario new write 0.5\nown new write 0.25\nwarning: a b c\npario close - 0.001\n",
        );
        assert_eq!(turn.get(Side::Pario, "new", "write"), Some(0.5));
        assert_eq!(turn.get(Side::Own, "new", "write"), Some(0.25));
        assert_eq!(turn.get(Side::Pario, "close", "-"), Some(0.001));
        assert_eq!(turn.get(Side::Memcpy, "again", "write"), None);
    }
}
