//! What the source claims of collective schemes, as far as a run can show it.
//!
//! Figures 5.2 to 5.9 and Table 5.7 say: packets beat single records where records are small; packets of several
//! blocks beat those of one, the more so the dearer messages are; where disks are slower than packing, servers
//! that direct hide it and reach the disks' rate, which regrouping among the ranks cannot; two phases win
//! where servers pack more slowly than disks read, which no server here does.

use crate::Row;
use crate::claims::Claim;

/// Values below this are printed with too few digits to compare.
const DIGITS: f64 = 5.0;

/// A cell of real runs: the name without the scheme, and the rows of all schemes.
struct Cell<'a> {
    name: &'a str,
    rows: Vec<(&'a str, &'a Row)>,
}

impl Cell<'_> {
    fn rate(&self, scheme: &str) -> Option<f64> {
        let row = self.rows.iter().find(|(word, _)| *word == scheme);
        row.map(|(_, row)| row.value)
    }

    /// The rate of one scheme by that of another.
    fn ratio(&self, scheme: &str, other: &str) -> Option<f64> {
        Some(self.rate(scheme)? / self.rate(other)?)
    }

    fn number(&self, prefix: &str) -> Option<f64> {
        let mut words = self.name.split('/');
        words.find_map(|word| word.strip_prefix(prefix)?.parse().ok())
    }

    /// What all disks give together, if that is less than the links and cores here do.
    fn slow_disks(&self) -> Option<f64> {
        let rate = self.number("disk=").filter(|rate| *rate <= 200.0)?;
        Some(rate * self.number("I=")?)
    }

    fn is_far(&self) -> bool {
        self.name.starts_with("real/far/")
    }
}

fn cells(rows: &[Row]) -> Vec<Cell<'_>> {
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for row in rows.iter().filter(|row| row.case.starts_with("real/")) {
        let Some((name, scheme)) = row.case.rsplit_once('/') else {
            continue;
        };
        match cells.last_mut() {
            Some(cell) if cell.name == name => cell.rows.push((scheme, row)),
            _ => cells.push(Cell {
                name,
                rows: vec![(scheme, row)],
            }),
        }
    }
    cells
}

/// Whether the claims hold in these rows.
pub(super) fn judge(rows: &[Row]) -> Vec<Claim> {
    let mut figures = Claim::new(
        "the model gives the printed figures, at least 0.98 alike",
        0.98,
    );
    for row in rows.iter().filter(|row| row.case.starts_with("model/fig")) {
        let is_long = row.value >= DIGITS;
        let alike = row.ratio("printed").map(|ratio| ratio.min(1.0 / ratio));
        figures.cell(&row.case, alike.filter(|_| is_long));
    }
    let mut disks = Claim::new(
        "slow disks, reads: mb_ddio gives 0.9 of what the disks do",
        0.9,
    );
    let mut directed = Claim::new(
        "slow disks: mb_ddio at least as fast as two_phase_ddio",
        1.0,
    );
    let mut regrouped = Claim::new("slow disks: mb_ddio at least as fast as two_phase", 1.0);
    let mut alone = Claim::new("slow disks: mb_ddio at least as fast as independent", 1.0);
    let mut blocks = Claim::new("several blocks a packet, at least 0.95 of one block", 0.95);
    let mut packets = Claim::new("records of 1 KiB: a packet per block beats pieces", 1.0);
    let mut links = Claim::new(
        "links of 1 Gbit/s, memory: mb_ddio gives 0.9 of a link",
        0.9,
    );
    let mut chosen = Claim::new("auto: at least 0.85 of the best scheme", 0.85);
    for cell in cells(rows) {
        let name = cell.name;
        if let Some(most) = cell.slow_disks() {
            if name.contains("/read/") {
                disks.cell(name, cell.rate("mb_ddio").map(|rate| rate / most));
            }
            directed.cell(name, cell.ratio("mb_ddio", "two_phase_ddio"));
            regrouped.cell(name, cell.ratio("mb_ddio", "two_phase"));
            alone.cell(name, cell.ratio("mb_ddio", "independent"));
        }
        blocks.cell(name, cell.ratio("mb_ddio", "pb_ddio"));
        if cell.number("e=") == Some(1024.0) && cell.slow_disks().is_none() {
            packets.cell(name, cell.ratio("pb_ddio", "ddio"));
        }
        if cell.is_far() && name.contains("/memory/") {
            links.cell(name, cell.rate("mb_ddio").map(|rate| rate / 125.0));
        }
        let best = cell.rows.iter().map(|(_, row)| row.value).reduce(f64::max);
        let ratio = cell.rate("auto").zip(best).map(|(auto, best)| auto / best);
        chosen.cell(name, ratio);
    }
    vec![
        figures, disks, directed, regrouped, alone, blocks, packets, links, chosen,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_compared_scheme_by_scheme() {
        let row = |case: &str, value: f64| Row::new(case, value, "MB/s");
        let cell = "real/host/disk=200/read/e=8/P=4/I=2";
        let rows = [
            row(&format!("{cell}/two_phase_ddio"), 300.0),
            row(&format!("{cell}/mb_ddio"), 390.0),
            row("real/host/memory/read/e=1024/P=4/I=1/ddio", 500.0),
            row("real/host/memory/read/e=1024/P=4/I=1/pb_ddio", 400.0),
        ];
        let claims = judge(&rows);
        let found = |n: usize| {
            claims[n]
                .verdict()
                .map(|(met, all, worst)| (met, all, worst.1))
        };
        assert_eq!(found(1), Some((1, 1, 390.0 / 400.0)));
        assert_eq!(found(2), Some((1, 1, 1.3)));
        assert_eq!(found(6), Some((0, 1, 0.8)));
        assert_eq!(found(0), None);
    }
}
