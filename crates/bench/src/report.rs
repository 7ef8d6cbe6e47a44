//! What all benchmarks report: rows, and the one shape in which they are written as JSON.
//!
//! Invariants: a ratio above 1 means that Pario is better; a yardstick that could not run is
//! absent; both sides are warmed alike; a row is the best of at least seven turns.
use serde_json::{Map, Value, json};

use super::contest::Outcome;

/// One measured case.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Slash-separated words, most general first.
    pub(crate) case: String,
    /// Best of the repetitions.
    pub(crate) value: f64,
    /// Unit of `value` and `first`.
    pub(crate) unit: &'static str,
    /// How far the median time lies above the best, relative to the best.
    pub(crate) spread: f64,
    /// First pass of a fresh process, where measured.
    pub(crate) first: Option<f64>,
    /// Whatever else belongs to the row.
    pub(crate) columns: Map<String, Value>,
    /// Pario against each yardstick; above 1 Pario is better.
    pub(crate) ratios: Vec<(&'static str, f64)>,
}

impl Row {
    /// A value and nothing beside it.
    pub(crate) fn new(case: impl Into<String>, value: f64, unit: &'static str) -> Row {
        Row {
            case: case.into(),
            value,
            unit,
            spread: 0.0,
            first: None,
            columns: Map::new(),
            ratios: Vec::new(),
        }
    }

    /// The rate of so many bytes at best, in GB/s.
    pub(crate) fn rate(case: impl Into<String>, bytes: u64, outcome: Outcome) -> Row {
        let row = Row::new(case, bytes as f64 / outcome.best, "GB/s");
        row.spread(outcome.spread())
    }

    /// With how far its repetitions differ.
    pub(crate) fn spread(self, spread: f64) -> Row {
        Row { spread, ..self }
    }

    /// With what a fresh process reached.
    pub(crate) fn first(self, first: Option<f64>) -> Row {
        Row { first, ..self }
    }

    /// With ratios.
    pub(crate) fn ratios(self, ratios: impl IntoIterator<Item = (&'static str, f64)>) -> Row {
        Row {
            ratios: ratios.into_iter().collect(),
            ..self
        }
    }

    /// With one column more.
    pub(crate) fn column(mut self, name: &str, value: impl Into<Value>) -> Row {
        self.set(name, value);
        self
    }

    /// One column more.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.columns.insert(name.to_owned(), value.into());
    }

    /// The ratio against one yardstick, if it ran.
    pub(crate) fn ratio(&self, name: &str) -> Option<f64> {
        let found = self.ratios.iter().find(|ratio| ratio.0 == name);
        found.map(|ratio| ratio.1)
    }

    /// The one shape of all rows.
    pub(crate) fn to_json(&self) -> Value {
        let ratios = self.ratios.iter();
        let ratios: Map<String, Value> = ratios
            .map(|(name, ratio)| ((*name).to_owned(), json!(rounded(*ratio))))
            .collect();
        let mut row = json!({
            "case": self.case,
            "value": rounded(self.value),
            "unit": self.unit,
            "spread": rounded(self.spread),
            "columns": self.columns,
            "ratios": ratios,
        });
        if let Some(first) = self.first {
            row["first"] = json!(rounded(first));
        }
        row
    }
}

/// Four significant digits: more would pretend.
pub(crate) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// So many digits behind the point.
pub(crate) fn digits(value: f64, count: i32) -> f64 {
    let scale = 10f64.powi(count);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_one_shape() {
        let row = Row::new("gather/cols/b=8/cache", 12.345_678, "GB/s")
            .spread(0.08)
            .first(Some(1.9))
            .ratios([("memcpy", 0.41)]);
        let expected = json!({"case": "gather/cols/b=8/cache", "value": 12.35, "unit": "GB/s", "spread": 0.08,
                              "first": 1.9, "columns": {}, "ratios": {"memcpy": 0.41}});
        assert_eq!(row.to_json(), expected);
    }
}
