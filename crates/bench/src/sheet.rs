//! Rows of a benchmark that several groups of cases add to: filtered by name, shown as they come, kept for
//! the report.
//!
//! A row is made only if its case is wanted, so a filter saves the measuring too.

use serde_json::{Map, Value};

use super::Row;
use super::flags::Filter;
use super::table::Table;
use console::Error;

/// Rows so far.
pub(crate) struct Sheet {
    filter: Filter,
    table: Table,
    pub(crate) rows: Vec<Row>,
}

impl Sheet {
    /// An empty sheet of values in one unit; `aside` sends the table to standard error.
    pub(crate) fn new(filter: Filter, aside: bool, unit: &'static str) -> Sheet {
        Sheet {
            filter,
            table: Table::new(aside, unit),
            rows: Vec::new(),
        }
    }

    /// Whether a case is wanted.
    pub(crate) fn wants(&self, case: &str) -> bool {
        self.filter.wants(case)
    }

    /// Makes, shows and keeps a row, if its case is wanted.
    pub(crate) fn add(
        &mut self,
        case: String,
        make: impl FnOnce(String) -> Row,
    ) -> Result<(), Error> {
        if !self.wants(&case) {
            return Ok(());
        }
        let row = make(case);
        self.table.row(&row)?;
        self.rows.push(row);
        Ok(())
    }
}

/// A row that a model gives: nothing was measured, so there is no spread. `printed` is what the source prints.
pub(crate) fn modelled(
    case: String,
    value: f64,
    printed: Option<f64>,
    columns: &[(&str, Value)],
) -> Row {
    let mut map = Map::new();
    for (name, value) in columns {
        map.insert((*name).to_owned(), value.clone());
    }
    if let Some(printed) = printed {
        map.insert("printed".to_owned(), Value::from(printed));
    }
    Row {
        case,
        value,
        unit: "MB/s",
        spread: 0.0,
        first: None,
        columns: map,
        ratios: printed
            .map(|p| ("printed", value / p))
            .into_iter()
            .collect(),
    }
}
