//! Flags that benchmarks have in common: which cases, how often, and where the report goes.
//!
//! A benchmark that has a flag of these takes it from here, so that it means the same everywhere. Left to others: what
//! is measured.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::Report;
use console::{Error, output};

/// Which cases.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Filter {
    /// Only cases whose name contains this; several alternatives are separated by commas
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
}

impl Filter {
    /// Whether a case is wanted.
    pub(crate) fn wants(&self, case: &str) -> bool {
        let Some(filter) = &self.filter else {
            return true;
        };
        filter.split(',').any(|part| case.contains(part))
    }
}

/// How processes run that access one file, on one host and between hosts.
#[derive(Args, Clone, Debug)]
pub(crate) struct Runs {
    /// Rate of each link between hosts, in Mbit/s
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: u64,

    /// Turns per contestant, at least 7
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u64).range(7..))]
    pub(crate) turns: u64,

    /// Leave out what runs between hosts
    #[arg(long)]
    pub(crate) no_hosts: bool,
}

impl Runs {
    /// What a row shows of its turns.
    pub(crate) fn statistic(&self) -> String {
        format!("best of {} on one host, median between hosts", self.turns)
    }
}

/// Where the report goes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReportTo {
    /// Write the report as JSON to this file; without a file to standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

impl ReportTo {
    /// Whether standard output is for JSON, so that tables go aside.
    pub(crate) fn is_on_stdout(&self) -> bool {
        self.json.as_deref() == Some(Path::new("-"))
    }

    /// Writes the JSON form where asked.
    pub(crate) fn write(&self, report: &Report) -> Result<(), Error> {
        let Some(path) = &self.json else {
            return Ok(());
        };
        let text = format!("{}\n", report.to_json());
        if self.is_on_stdout() {
            return output::print(&text);
        }
        let written = fs::write(path, text);
        written.map_err(|error| format!("--json: cannot write {}: {error}", path.display()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_wanted_by_any_part_of_a_filter() {
        let all = Filter::default();
        assert!(all.wants("gather/cols"));
        let filter = Filter {
            filter: Some("rows,cols".to_owned()),
        };
        assert!(filter.wants("gather/cols") && filter.wants("rows") && !filter.wants("gather"));
    }
}
