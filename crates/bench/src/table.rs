//! Rows for people, as they come: to standard output, or to standard error when standard output is
//! for JSON.

use super::Row;
use console::{Error, output};

/// Where lines for people go.
pub(crate) struct Lines {
    /// To standard error, because standard output is for JSON.
    pub(crate) aside: bool,
}

impl Lines {
    /// Writes a line, or several.
    pub(crate) fn write(&self, text: &str) -> Result<(), Error> {
        if self.aside {
            output::note(text);
            return Ok(());
        }
        output::print(&format!("{text}\n"))
    }
}

/// A table that grows by rows.
pub(crate) struct Table {
    lines: Lines,
    unit: &'static str,
    begun: bool,
}

impl Table {
    /// A table of values in one unit; `aside` sends it to standard error.
    pub(crate) fn new(aside: bool, unit: &'static str) -> Table {
        Table {
            lines: Lines { aside },
            unit,
            begun: false,
        }
    }

    /// Writes one row, after the heading if it is the first.
    pub(crate) fn row(&mut self, row: &Row) -> Result<(), Error> {
        if !self.begun {
            self.begun = true;
            let unit = self.unit;
            self.lines.write(&format!(
                "{:<58} {unit:>10} {:>7}  ratios (above 1 Pario is better), columns",
                "case", "spread"
            ))?;
        }
        let mut line = format!(
            "{:<58} {:>10} {:>6.0}% ",
            row.case,
            significant(row.value),
            row.spread * 100.0
        );
        for (name, ratio) in &row.ratios {
            line += &format!(" {name} {ratio:.2}");
        }
        if let Some(first) = row.first {
            line += &format!(" first {}", significant(first));
        }
        for (name, value) in &row.columns {
            line += &format!(" {name}={}", value.to_string().trim_matches('"'));
        }
        self.lines.write(&line)
    }
}

/// Four significant digits without an exponent.
fn significant(value: f64) -> String {
    let digits = match value.abs() {
        x if x >= 1000.0 => 0,
        x if x >= 100.0 => 1,
        x if x >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}
