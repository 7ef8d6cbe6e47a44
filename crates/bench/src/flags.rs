//! Flags that benchmarks have in common: which cases, how long, and where the report goes.
//!
//! A benchmark that has a flag of these takes it from here, so that it means the same everywhere. Left to others: what
//! is measured.

use std::path::{Path, PathBuf};

use clap::Args;

use super::contest::Effort;

/// Flags of all benchmarks.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Flags {
    /// Write the report as JSON to this file; without a file to standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", global = true)]
    pub(crate) json: Option<PathBuf>,

    /// Only cases whose name contains this; several alternatives are separated by commas
    #[arg(long, value_name = "TEXT", global = true)]
    filter: Option<String>,

    /// Fewer and smaller cases, and shorter turns: a look at everything in a minute or so
    #[arg(long, global = true)]
    pub(crate) quick: bool,
}

impl Flags {
    /// Whether a case is wanted.
    pub(crate) fn wants(&self, case: &str) -> bool {
        let Some(filter) = &self.filter else {
            return true;
        };
        filter.split(',').any(|part| case.contains(part))
    }

    /// Whether the user chose cases.
    pub(crate) fn has_filter(&self) -> bool {
        self.filter.is_some()
    }

    /// Whether standard output is for JSON, so that lines for people go aside.
    pub(crate) fn is_json_on_stdout(&self) -> bool {
        self.json.as_deref() == Some(Path::new("-"))
    }
}

/// How often everything is done.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Turns {
    /// Turns per contestant, at least 7
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u64).range(7..))]
    pub(crate) turns: u64,
}

impl Turns {
    /// Turns of one pass each.
    pub(crate) fn effort(self) -> Effort {
        Effort::new(self.turns as usize, 0.0)
    }
}

/// How processes run that access one file, on one host and between hosts.
#[derive(Args, Clone, Debug)]
pub(crate) struct Runs {
    /// Rate of each link between hosts, in Mbit/s
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: u64,

    #[command(flatten)]
    pub(crate) turns: Turns,

    /// Leave out what runs between hosts
    #[arg(long)]
    pub(crate) no_hosts: bool,
}

impl Runs {
    /// What a row shows of its turns.
    pub(crate) fn statistic(&self) -> String {
        let turns = self.turns.turns;
        format!("best of {turns} on one host, median between hosts")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_wanted_by_any_part_of_a_filter() {
        let all = Flags::default();
        assert!(all.wants("gather/cols"));
        let flags = Flags {
            filter: Some("rows,cols".to_owned()),
            ..all
        };
        assert!(flags.wants("gather/cols") && flags.wants("rows") && !flags.wants("gather"));
    }
}
