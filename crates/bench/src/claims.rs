//! What a benchmark is held to: a goal or a claim of a source, the cells it speaks of, and the plain statement
//! whether it holds in all of them, with the worst one.
//!
//! Left to others: which cells a goal speaks of, and what is compared.

use super::report::Row;

/// One goal and what was reached in its cells.
pub(crate) struct Claim {
    text: String,
    wanted: f64,
    cells: Vec<(String, f64)>,
}

impl Claim {
    /// A goal that a cell meets if it reaches at least `wanted`.
    pub(crate) fn new(text: &str, wanted: f64) -> Claim {
        Claim {
            text: text.to_owned(),
            wanted,
            cells: Vec::new(),
        }
    }

    /// A claim with cells: what every row has reached that the goal speaks of.
    pub(crate) fn of(
        text: &str,
        wanted: f64,
        rows: &[Row],
        reached: impl Fn(&Row) -> Option<f64>,
    ) -> Claim {
        let mut claim = Claim::new(text, wanted);
        for row in rows {
            claim.cell(&row.case, reached(row));
        }
        claim
    }

    /// A cell, if both of what is compared were measured.
    pub(crate) fn cell(&mut self, case: &str, reached: Option<f64>) {
        if let Some(reached) = reached {
            self.cells.push((case.to_owned(), reached));
        }
    }

    /// Cells that meet it, all cells, and the worst; `None` if nothing was measured.
    pub(crate) fn verdict(&self) -> Option<(usize, usize, &(String, f64))> {
        let worst = self.cells.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let met = self.cells.iter().filter(|cell| cell.1 >= self.wanted);
        Some((met.count(), self.cells.len(), worst))
    }

    fn line(&self) -> String {
        match self.verdict() {
            None => format!("  not measured  {}", self.text),
            Some((met, cells, (case, reached))) => {
                let verdict = if met == cells { "met" } else { "NOT MET" };
                let text = &self.text;
                format!(
                    "  {verdict:<12}  {text}: {met} of {cells} cells, worst {reached:.2} in {case}"
                )
            }
        }
    }
}

/// Prints which hold and which do not.
pub(crate) fn print(claims: &[Claim]) {
    eprintln!("\ngoals");
    for claim in claims {
        eprintln!("{}", claim.line());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_judged_by_its_worst_cell() {
        let mut claim = Claim::new("at least twice as fast", 2.0);
        assert_eq!(claim.line(), "  not measured  at least twice as fast");
        claim.cell("a", Some(3.0));
        claim.cell("b", None);
        assert!(claim.line().starts_with("  met "), "{}", claim.line());
        claim.cell("c", Some(1.5));
        let text = "at least twice as fast: 1 of 2 cells, worst 1.50 in c";
        assert_eq!(claim.line(), format!("  NOT MET       {text}"));
    }
}
