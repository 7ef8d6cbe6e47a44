//! What the source claims of collective prefetch, as far as a run can show it.
//!
//! Packets that were built ahead are never slower than none, whatever the buffer; what is read while the
//! program computes costs no time when it is asked for; exchanged packets are worth their exchange only when all of
//! a segment is ready. Loading blocks only is useless there where packing dominates the disks: here it does not.

use crate::Row;
use crate::claims::Claim;

/// Figures that the equations reproduce, and how closely: see section 4.4 of the inventory of source 002, which rounds
/// to whole percents (2, and 7 for figure 6.6).
const FIGURES: [(&str, f64); 5] = [
    ("model/fig6.1/", 1.0 / 1.025),
    ("model/fig6.3/", 1.0 / 1.025),
    ("model/fig6.9/", 1.0 / 1.025),
    ("model/fig6.6/", 1.0 / 1.0755),
    ("model/fig6.8/", 0.83),
];

/// Whether the claims hold in these rows.
pub(super) fn judge(rows: &[Row]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (figure, alike) in FIGURES {
        let name = figure.trim_end_matches('/');
        let mut claim = Claim::new(
            &format!("{name}: at least {alike:.3} like the print"),
            alike,
        );
        for row in rows.iter().filter(|row| row.case.starts_with(figure)) {
            let ratio = row.ratio("printed");
            claim.cell(&row.case, ratio.map(|ratio| ratio.min(1.0 / ratio)));
        }
        claims.push(claim);
    }
    let mut ahead = Claim::new("PB-PRE is never slower than NO-PRE", 1.0);
    let mut disk = Claim::new("slow disks: DISK-PRE is never slower than NO-PRE", 1.0);
    let mut whole = Claim::new("all prefetched: PBX-PRE is faster than NO-PRE", 1.0);
    let mut hidden = Claim::new(
        "PB-PRE hides what can be hidden: 0.8 of the predicted gain",
        0.8,
    );
    for row in rows.iter().filter(|row| row.case.starts_with("real/")) {
        let gain = row.ratio("none");
        let predicted = row.columns.get("predicted").and_then(|p| p.as_f64());
        match row.case.rsplit('/').next() {
            Some("PB-PRE") => {
                ahead.cell(&row.case, gain);
                let reached = gain.zip(predicted).map(|(gain, most)| gain / most);
                hidden.cell(&row.case, reached);
            }
            Some("DISK-PRE") => disk.cell(&row.case, gain),
            Some("PBX-PRE") if row.case.contains("/whole/") => whole.cell(&row.case, gain),
            _ => {}
        }
    }
    claims.extend([ahead, disk, whole, hidden]);
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_held_against_what_can_be_hidden() {
        let row = |case: &str, gain: f64, predicted: f64| {
            let row = Row::new(case, 1.0, "MB/s").ratios([("none", gain)]);
            row.column("predicted", predicted)
        };
        let rows = [
            row("real/host/e=8/random/buffer=256KiB/PB-PRE", 1.5, 2.0),
            row("real/host/e=8/whole/buffer=2048KiB/PBX-PRE", 3.0, 4.0),
        ];
        let claims = judge(&rows);
        let found: Vec<_> = claims
            .iter()
            .map(|claim| claim.verdict().map(|(met, all, worst)| (met, all, worst.1)))
            .collect();
        let real = [
            Some((1, 1, 1.5)),
            None,
            Some((1, 1, 3.0)),
            Some((0, 1, 0.75)),
        ];
        assert_eq!(found[FIGURES.len()..], real);
        assert!(found[..FIGURES.len()].iter().all(Option::is_none));
    }
}
