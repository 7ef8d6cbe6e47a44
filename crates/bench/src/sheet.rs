//! The sheet of a benchmark: its rows, filtered by name, shown as they come, and kept for the report; and the
//! facts about the machine that belong beside them.
//!
//! Lines for people go to standard output, or to standard error when standard output is for JSON.

use std::fs;

use console::{Error, output};
use serde_json::{Map, Value, json};

use super::flags::Flags;
use super::machine;
use super::report::Row;

/// See the [module](self).
pub(crate) struct Sheet {
    flags: Flags,
    /// What is measured; nothing in a process that only takes part.
    bench: Option<&'static str>,
    machine: Map<String, Value>,
    unit: &'static str,
    has_heading: bool,
    pub(crate) rows: Vec<Row>,
}

impl Sheet {
    /// An empty sheet.
    pub(crate) fn new(flags: Flags) -> Sheet {
        Sheet {
            flags,
            bench: None,
            machine: Map::new(),
            unit: "",
            has_heading: false,
            rows: Vec::new(),
        }
    }

    /// Begins a benchmark of values in one unit; `statistic` is what a row shows of its turns.
    pub(crate) fn begin(
        &mut self,
        bench: &'static str,
        unit: &'static str,
        statistic: impl Into<String>,
    ) {
        self.bench = Some(bench);
        self.machine = machine::facts();
        let statistic = statistic.into();
        if !statistic.is_empty() {
            self.fact("statistic", statistic);
        }
        self.unit(unit);
    }

    /// What else belongs beside the rows.
    pub(crate) fn fact(&mut self, name: &str, value: impl Into<Value>) {
        self.machine.insert(name.to_owned(), value.into());
    }

    /// The unit of the rows that follow.
    pub(crate) fn unit(&mut self, unit: &'static str) {
        self.unit = unit;
        self.has_heading = false;
    }

    /// Whether everything is to be short.
    pub(crate) fn is_quick(&self) -> bool {
        self.flags.quick
    }

    /// Which of so many cases are wanted: the first, and every so many further. All of them, unless it is to be quick
    /// and the user chose none.
    pub(crate) fn step(&self, quickly: usize) -> usize {
        match self.flags.quick && !self.flags.has_filter() {
            true => quickly,
            false => 1,
        }
    }

    /// Whether a case is wanted.
    pub(crate) fn wants(&self, case: &str) -> bool {
        self.flags.wants(case)
    }

    /// Makes, shows and keeps a row, if its case is wanted: a filter saves the measuring too.
    pub(crate) fn add(
        &mut self,
        case: String,
        make: impl FnOnce(String) -> Row,
    ) -> Result<(), Error> {
        match self.wants(&case) {
            true => self.push(make(case)),
            false => Ok(()),
        }
    }

    /// Shows and keeps a row, if it is wanted.
    pub(crate) fn push(&mut self, row: Row) -> Result<(), Error> {
        match self.wants(&row.case) {
            true => self.keep([row]),
            false => Ok(()),
        }
    }

    /// Shows and keeps rows, whatever is wanted.
    pub(crate) fn keep(&mut self, rows: impl IntoIterator<Item = Row>) -> Result<(), Error> {
        for row in rows {
            self.show(&row)?;
            self.rows.push(row);
        }
        Ok(())
    }

    fn show(&mut self, row: &Row) -> Result<(), Error> {
        if !self.has_heading {
            self.has_heading = true;
            self.say(&format!(
                "{:<58} {:>10} {:>7}  ratios (above 1 Pario is better), columns",
                "case", self.unit, "spread"
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
        self.say(&line)
    }

    /// Shows and keeps rows.
    pub(crate) fn extend(&mut self, rows: impl IntoIterator<Item = Row>) -> Result<(), Error> {
        rows.into_iter().try_for_each(|row| self.push(row))
    }

    /// Writes a line for people, or several.
    pub(crate) fn say(&self, text: &str) -> Result<(), Error> {
        if self.flags.is_json_on_stdout() {
            output::note(text);
            return Ok(());
        }
        output::print(&format!("{text}\n"))
    }

    /// Writes the report in its JSON form where asked.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let (Some(bench), Some(path)) = (self.bench, &self.flags.json) else {
            return Ok(());
        };
        let rows: Vec<Value> = self.rows.iter().map(Row::to_json).collect();
        let text = json!({"bench": bench, "machine": self.machine, "rows": rows});
        if self.flags.is_json_on_stdout() {
            return output::print(&format!("{text}\n"));
        }
        let written = fs::write(path, format!("{text}\n"));
        written.map_err(|error| format!("--json: cannot write {}: {error}", path.display()).into())
    }
}

/// A row that a model gives: nothing was measured, so there is no spread. `printed` is what the source prints.
pub(crate) fn modelled(
    case: String,
    value: f64,
    printed: Option<f64>,
    columns: &[(&str, Value)],
) -> Row {
    let mut row = Row::new(case, value, "MB/s");
    for (name, value) in columns {
        row.set(name, value.clone());
    }
    if let Some(printed) = printed {
        row.set("printed", printed);
        row.ratios.push(("printed", value / printed));
    }
    row
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
