//! What all benchmarks report: rows, and the one shape in which they are written as JSON.
//!
//! Invariants: a ratio above 1 means that Pario is better; a yardstick that could not run is
//! absent; both sides are warmed alike; a row is the best of at least seven turns.

use serde_json::{Map, Value, json};

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
    /// The ratio against one yardstick, if it ran.
    pub(crate) fn ratio(&self, name: &str) -> Option<f64> {
        self.ratios
            .iter()
            .find(|(yardstick, _)| *yardstick == name)
            .map(|(_, ratio)| *ratio)
    }

    fn to_json(&self) -> Value {
        let ratios: Map<String, Value> = self
            .ratios
            .iter()
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
        if let (Some(first), Value::Object(fields)) = (self.first, &mut row) {
            fields.insert("first".to_owned(), json!(rounded(first)));
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

/// A benchmark's result.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) bench: &'static str,
    pub(crate) machine: Map<String, Value>,
    pub(crate) rows: Vec<Row>,
}

impl Report {
    /// The one shape of all benchmarks.
    pub(crate) fn to_json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(Row::to_json).collect();
        json!({"bench": self.bench, "machine": self.machine, "rows": rows})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_have_the_one_shape() {
        let row = Row {
            case: "gather/cols/b=8/cache".to_owned(),
            value: 12.345_678,
            unit: "GB/s",
            spread: 0.08,
            first: Some(1.9),
            columns: Map::new(),
            ratios: vec![("memcpy", 0.41)],
        };
        let report = Report {
            bench: "kernels",
            machine: Map::new(),
            rows: vec![row],
        };
        let expected = json!({"bench": "kernels", "machine": {}, "rows": [
            {"case": "gather/cols/b=8/cache", "value": 12.35, "unit": "GB/s", "spread": 0.08, "first": 1.9,
             "columns": {}, "ratios": {"memcpy": 0.41}}]});
        assert_eq!(report.to_json(), expected);
    }
}
