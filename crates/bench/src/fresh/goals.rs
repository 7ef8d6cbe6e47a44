//! What new files are held to: no slower than without Pario.
//!
//! The bounds are those that the page on benchmarks names. Left to others: measuring (`cell`), and printing what was missed.

use crate::claims::Claim;
use crate::report::Row;

/// Judges the rows.
pub(super) fn judge(rows: &[Row]) -> Vec<Claim> {
    let large = |row: &Row| {
        let transfer = row.case.split('/').find_map(|word| word.strip_prefix("t="));
        let bytes = transfer.and_then(|text| text.parse::<u64>().ok());
        bytes.is_some_and(|bytes| bytes >= 64 << 10)
    };
    let is = |row: &Row, store: &str, case: &str| {
        row.case.starts_with(store) && row.case.ends_with(case)
    };
    let pool = |row: &Row, word: &str| row.columns.get("pool").is_some_and(|found| found == word);
    vec![
        Claim::of("memory, new files: as fast as tmpfs", 1.0, rows, |row| {
            let of_it = is(row, "memory/", "/new/write") && pool(row, "inside");
            row.ratio("own-tmpfs").filter(|_| of_it)
        }),
        Claim::of(
            "and from 64 KiB on 1.5 times while ready memory lasts",
            1.5,
            rows,
            |row| {
                let of_it = is(row, "memory/", "/new/write") && pool(row, "inside") && large(row);
                row.ratio("own-tmpfs").filter(|_| of_it)
            },
        ),
        Claim::of("and 0.95 beyond it", 0.95, rows, |row| {
            let of_it = is(row, "memory/", "/new/write") && pool(row, "beyond");
            row.ratio("own-tmpfs").filter(|_| of_it)
        }),
        Claim::of(
            "memory, read and written again: as fast as tmpfs",
            1.0,
            rows,
            |row| {
                let of_it = row.case.starts_with("memory/") && !row.case.ends_with("/new/write");
                row.ratio("own-tmpfs").filter(|_| of_it)
            },
        ),
        Claim::of("disk, not synced: 0.8 of ext4", 0.8, rows, |row| {
            let of_it = row.case.starts_with("disk/") && !row.case.ends_with("+sync");
            row.ratio("own-ext4").filter(|_| of_it)
        }),
        Claim::of("disk, written and synced: 0.9 of ext4", 0.9, rows, |row| {
            row.ratio("own-ext4").filter(|_| is(row, "disk/", "+sync"))
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_goal_speaks_of_its_own_rows() {
        let row = |case: &str, ratio: (&'static str, f64), pool: &str| {
            Row::new(case, 1.0, "GB/s")
                .ratios([ratio])
                .column("pool", pool)
        };
        let rows = [
            row(
                "memory/sequential/t=4096/p=1/indep/new/write",
                ("own-tmpfs", 1.1),
                "inside",
            ),
            row(
                "memory/sequential/t=65536/p=1/indep/new/write",
                ("own-tmpfs", 1.2),
                "inside",
            ),
            row(
                "memory/sequential/t=65536/p=1/indep/new/write",
                ("own-tmpfs", 0.96),
                "beyond",
            ),
            row(
                "memory/sequential/t=65536/p=1/indep/new/read",
                ("own-tmpfs", 0.5),
                "inside",
            ),
            row(
                "disk/sequential/t=65536/p=1/indep/new/write",
                ("own-ext4", 0.7),
                "",
            ),
            row(
                "disk/sequential/t=65536/p=1/indep/new/write+sync",
                ("own-ext4", 0.92),
                "",
            ),
        ];
        let verdicts: Vec<(usize, usize)> = judge(&rows)
            .iter()
            .map(|claim| claim.verdict().map_or((0, 0), |(met, all, _)| (met, all)))
            .collect();
        assert_eq!(verdicts, [(2, 2), (0, 1), (1, 1), (0, 1), (0, 1), (1, 1)]);
    }
}
