//! What the metadata manager has counted since it started.
//!
//! Requests by kind; the rest is asked of those who know it when a client wants to see it.

use std::sync::atomic::{AtomicU64, Ordering};

use wire::message::KINDS;
use wire::message::session::Counter;

use crate::committer::Refused;
use crate::manager::Manager;

/// Kinds are below this.
const MOST_KINDS: usize = 256;

/// Requests by kind.
#[derive(Debug)]
pub(crate) struct Requests([AtomicU64; MOST_KINDS]);

impl Default for Requests {
    fn default() -> Self {
        Requests(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Requests {
    /// One more of a kind.
    pub(crate) fn count(&self, kind: u16) {
        if let Some(counter) = self.0.get(usize::from(kind)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Manager {
    /// All counters.
    pub(crate) fn statistics(&self) -> Result<Vec<Counter>, Refused> {
        let counts = self.committer.counts();
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let catalogue = self.snapshot()?.counts()?;
        let not_heard = self.stamps.as_ref().map_or(0, |s| of(&s.not_heard));
        let mut list: Vec<(String, u64)> = [
            ("starts", self.starts),
            ("uptime_seconds", self.since.elapsed().as_secs()),
            ("commits", of(&counts.commits)),
            ("operations", of(&counts.operations)),
            ("most_operations_at_once", of(&counts.most_operations)),
            ("clients", self.clients.len() as u64),
            ("handles", of(&counts.handles)),
            ("is_recovering", of(&counts.recovering)),
            ("members_alive", self.members.len() as u64),
            ("moves", self.moves.len() as u64),
            ("files", catalogue.files),
            ("directories", catalogue.directories),
            ("removals", catalogue.removals),
            ("trees", catalogue.trees),
            ("tree_names", catalogue.tree_names),
            ("tree_directories", catalogue.tree_directories),
            ("changes_not_heard", not_heard),
            ("looks_again", of(&self.looks_again)),
            ("audited", of(&self.noted)),
            ("hints_given", of(&counts.hints[0])),
            ("hints_used", of(&counts.hints[1])),
            ("hints_overridden", of(&counts.hints[2])),
            ("hints_ignored", of(&counts.hints[3])),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        for kind in KINDS {
            let value = self.requests.0.get(usize::from(kind.number)).map_or(0, of);
            if value > 0 {
                list.push((format!("requests_{}", in_lower_case(kind.name)), value));
            }
        }
        let counter = |(name, value)| Counter { name, value };
        Ok(list.into_iter().map(counter).collect())
    }
}

/// `BeginTruncate` is `begin_truncate`.
fn in_lower_case(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}
