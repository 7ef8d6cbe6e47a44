//! What streams are to reach, and whether they do.
//!
//! Left to others: how a goal is judged and printed (`claims`).

use crate::Row;
use crate::claims::{Claim, print as print_claims};

/// A goal: cells whose names have all of these words, the ratio that is looked at, and what it should be.
struct Goal {
    text: &'static str,
    words: &'static [&'static str],
    ratio: &'static str,
    wanted: f64,
}

const GOALS: [Goal; 10] = [
    Goal {
        text: "CB at least 0.95 of NB",
        words: &["fig3.", "CB"],
        ratio: "NB",
        wanted: 0.95,
    },
    Goal {
        text: "IB with close at least 0.8 of NB on writes, on disks",
        words: &["fig3.7/disk", "IB"],
        ratio: "NB",
        wanted: 0.8,
    },
    Goal {
        text: "IB at least 0.7 of NB on reads, on disks",
        words: &["fig3.10/disk", "IB"],
        ratio: "NB",
        wanted: 0.7,
    },
    Goal {
        text: "IB at least 0.5 of NB in memory",
        words: &["/memory/", "IB"],
        ratio: "NB",
        wanted: 0.5,
    },
    Goal {
        text: "IB under another distribution at least 0.5 of IB under the same",
        words: &["fig3.10", "IB-other"],
        ratio: "IB",
        wanted: 0.5,
    },
    Goal {
        text: "finding the mode costs at most 4 percent",
        words: &["fig3.", "NB-masked"],
        ratio: "NB",
        wanted: 0.96,
    },
    Goal {
        text: "at least 3 times a loop over elements",
        words: &["rejected", "B-01"],
        ratio: "NB",
        wanted: 3.0,
    },
    Goal {
        text: "at least 3 times one stream with a local view",
        words: &["rejected", "B-03"],
        ratio: "NB",
        wanted: 3.0,
    },
    Goal {
        text: "at least 3 times a file of each VP",
        words: &["rejected", "B-05"],
        ratio: "NB",
        wanted: 3.0,
    },
    Goal {
        text: "within 5 percent of one stream with a global view",
        words: &["rejected", "B-02"],
        ratio: "NB",
        wanted: 0.95,
    },
];

fn judge(goal: &Goal, rows: &[Row]) -> Claim {
    Claim::of(goal.text, goal.wanted, rows, |row| {
        let (last, rest) = goal.words.split_last()?;
        let applies = row.case.rsplit('/').next() == Some(last)
            && rest.iter().all(|word| row.case.contains(word));
        applies.then(|| row.ratio(goal.ratio)).flatten()
    })
}

/// Prints which goals hold in these rows.
pub(super) fn print(rows: &[Row]) {
    let claims: Vec<Claim> = GOALS.iter().map(|goal| judge(goal, rows)).collect();
    print_claims(&claims);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_speak_of_their_cells() {
        let row = |case: &str, ratio: f64| Row::new(case, 1.0, "MB/s").ratios([("NB", ratio)]);
        let rows = [
            row("fig3.7/disk/write/c=8/s=1/IB", 0.9),
            row("fig3.7/memory/write/c=8/s=1/IB", 0.6),
            row("fig3.10/disk/read/c=8/s=1/IB-other", 0.1),
        ];
        let worst = |at: usize| judge(&GOALS[at], &rows).verdict().map(|(_, n, w)| (n, w.1));
        assert_eq!(worst(1), Some((1, 0.9)));
        assert_eq!(worst(3), Some((1, 0.6)));
        assert_eq!(worst(0), None);
    }
}
