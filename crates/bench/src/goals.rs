//! Owns the goals of the kernels: what the rows should reach, and the plain statement of which
//! do and which do not, with the worst cell of each.
//!
//! `/l2` cells are extras, jobs that fit the second cache and not the first: the goals in cache
//! do not speak of them, the goal everywhere does.

use super::Row;
use super::claims::{self, Claim};

/// A goal: the cells it speaks of, and how far a cell is above it (1 is just met).
struct Goal {
    text: &'static str,
    applies: fn(&Cell) -> bool,
    reached: fn(&Row) -> Option<f64>,
    wanted: f64,
}

/// A row's name, taken apart.
struct Cell<'a> {
    words: Vec<&'a str>,
    b: u64,
}

impl<'a> Cell<'a> {
    fn new(case: &'a str) -> Option<Cell<'a>> {
        let words: Vec<&str> = case.split('/').collect();
        let b = words
            .iter()
            .find_map(|word| word.strip_prefix("b=")?.parse().ok())?;
        Some(Cell { words, b })
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    /// In the first cache, or as near to it as the job can be.
    fn in_cache(&self) -> bool {
        self.has("cache") && !self.has("l2")
    }

    fn transpose_size(&self) -> Option<u64> {
        if !self.has("transpose") {
            return None;
        }
        self.words
            .iter()
            .find_map(|word| word.strip_prefix("N=")?.parse().ok())
    }
}

fn least(row: &Row, names: &[&str]) -> Option<f64> {
    names
        .iter()
        .filter_map(|name| row.ratio(name))
        .min_by(f64::total_cmp)
}

const PACKS: [&str; 2] = ["pack-openmpi", "pack-mpich"];

const GOALS: [Goal; 9] = [
    Goal {
        text: "at least 0.95 of the better of loop and pack, everywhere",
        applies: |_| true,
        reached: |row| least(row, &["loop", PACKS[0], PACKS[1]]),
        wanted: 0.95,
    },
    Goal {
        text: "in cache (without /l2), b < 64: at least 3 x pack",
        applies: |cell| cell.in_cache() && cell.b < 64 && !cell.has("transpose"),
        reached: |row| least(row, &PACKS),
        wanted: 3.0,
    },
    Goal {
        text: "in cache (without /l2), b < 64: at least 1.5 x numpy",
        applies: |cell| cell.in_cache() && cell.b < 64 && !cell.has("transpose"),
        reached: |row| row.ratio("numpy"),
        wanted: 1.5,
    },
    Goal {
        text: "out of cache, b = 8 and 16: at least 1.2 x pack",
        applies: |cell| cell.has("memory") && matches!(cell.b, 8 | 16),
        reached: |row| least(row, &PACKS),
        wanted: 1.2,
    },
    Goal {
        text: "out of cache, b = 8 and 16: at least 1.2 x numpy",
        applies: |cell| cell.has("memory") && matches!(cell.b, 8 | 16),
        reached: |row| row.ratio("numpy"),
        wanted: 1.2,
    },
    Goal {
        text: "in cache (without /l2) and without conflict, b = 4096: at least 0.85 of memcpy",
        applies: |cell| cell.in_cache() && cell.b == 4096 && !cell.has("conflict"),
        reached: |row| row.ratio("memcpy"),
        wanted: 0.85,
    },
    Goal {
        text: "out of cache on huge pages, b = 512: at least 0.6 of memcpy",
        applies: |cell| cell.has("memory") && cell.has("huge") && cell.b == 512,
        reached: |row| row.ratio("memcpy"),
        wanted: 0.6,
    },
    Goal {
        text: "out of cache on huge pages, b >= 4096: at least 0.85 of memcpy",
        applies: |cell| cell.has("memory") && cell.has("huge") && cell.b >= 4096,
        reached: |row| row.ratio("memcpy"),
        wanted: 0.85,
    },
    Goal {
        text: "transposes of bytes, N >= 4096: at least 10 x numpy",
        applies: |cell| cell.b == 1 && cell.transpose_size().is_some_and(|n| n >= 4096),
        reached: |row| row.ratio("numpy"),
        wanted: 10.0,
    },
];

fn judge(goal: &Goal, rows: &[Row]) -> Claim {
    Claim::of(goal.text, goal.wanted, rows, |row| {
        let applies = Cell::new(&row.case).is_some_and(|cell| (goal.applies)(&cell));
        applies.then(|| (goal.reached)(row)).flatten()
    })
}

/// Prints which goals hold in these rows and which do not.
pub(crate) fn print(rows: &[Row]) {
    let claims: Vec<Claim> = GOALS.iter().map(|goal| judge(goal, rows)).collect();
    claims::print(&claims);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(case: &str, ratios: &[(&'static str, f64)]) -> Row {
        Row::new(case, 1.0, "GB/s").ratios(ratios.iter().copied())
    }

    #[test]
    fn a_goal_is_judged_by_its_worst_cell() {
        let rows = [
            row(
                "gather/cols/b=8/cache",
                &[("pack-openmpi", 4.0), ("numpy", 2.0)],
            ),
            row(
                "gather/cols/b=16/cache/conflict",
                &[("pack-openmpi", 2.0), ("pack-mpich", 9.0)],
            ),
            row("gather/cols/b=64/cache", &[("pack-openmpi", 1.0)]),
            row("gather/cols/b=8/cache/l2", &[("pack-openmpi", 1.0)]),
        ];
        let claim = judge(&GOALS[1], &rows);
        let (met, cells, worst) = claim.verdict().expect("cells");
        assert_eq!((met, cells), (1, 2));
        assert_eq!(worst, &("gather/cols/b=16/cache/conflict".to_owned(), 2.0));
        assert!(judge(&GOALS[8], &rows).verdict().is_none());
    }
}
