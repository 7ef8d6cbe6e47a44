//! How servers are used at present: the part of that knowledge which is not durable.
//!
//! Loads come with the reports of servers. What was placed and not written yet is remembered until
//! reports have had time to show it: half of it is forgotten with each.

use std::collections::HashMap;

use advise::distribute::{Choice, Knowledge, ServerKnowledge};
use wire::message::catalogue::{Expectation, Member};
use wire::message::hints::HintOutcome;

use crate::ServerId;

/// Loads and expected bytes of servers.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    servers: HashMap<ServerId, One>,
    hints: HintCounts,
}

/// What became of hints since the catalogue was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintCounts {
    /// Given with new files, or kept above them.
    pub given: u64,
    /// Used to lay them out.
    pub used: u64,
    /// Overridden by stronger ones.
    pub overridden: u64,
    /// Passed over, because they made no sense.
    pub ignored: u64,
}

#[derive(Debug, Default)]
struct One {
    load: u64,
    placed: u64,
}

impl Usage {
    /// Something became of a hint.
    pub(crate) fn hinted(&mut self, outcome: HintOutcome) {
        self.hints.given += 1;
        match outcome {
            HintOutcome::Used => self.hints.used += 1,
            HintOutcome::Overridden => self.hints.overridden += 1,
            HintOutcome::Ignored => self.hints.ignored += 1,
            HintOutcome::Idle | HintOutcome::Unknown => {}
        }
    }

    /// What became of hints.
    pub(crate) fn hints(&self) -> HintCounts {
        self.hints
    }

    /// A server has reported.
    pub(crate) fn reported(&mut self, server: ServerId, load: u64) {
        let one = self.servers.entry(server).or_default();
        // Half of what is new, half of what was: one idle moment says little.
        one.load = one.load / 2 + load / 2;
        one.placed /= 2;
    }

    /// Loads of servers, as last reported.
    pub(crate) fn loads(&self) -> Vec<(ServerId, u64)> {
        let loads = self.servers.iter().map(|(server, one)| (*server, one.load));
        loads.collect()
    }

    /// What is known for a decision about a new file.
    pub(crate) fn knowledge(
        &self,
        candidates: &[Member],
        rotation: u64,
        expected: &Expectation,
    ) -> Knowledge {
        let servers = candidates.iter().map(|m| {
            let used = self.servers.get(&m.server);
            ServerKnowledge {
                server: m.server.0,
                stored: m
                    .used_bytes
                    .saturating_add(used.map_or(0, |one| one.placed)),
                capacity: m.capacity_bytes,
                load: used.map_or(0, |one| one.load),
            }
        });
        Knowledge {
            servers: servers.collect(),
            rotation,
            size: expected.size,
            clients: expected.clients,
            access_bytes: expected.access_bytes,
            near: expected.near.map(|server| server.0),
            ..Knowledge::default()
        }
    }

    /// A file of this size is going to be written where it was chosen.
    pub(crate) fn placed(&mut self, choice: &Choice, size: u64) {
        let striping = &choice.striping;
        let bytes = striping.bytes(0, size.min(falls::MAX_OFFSET));
        for (&server, bytes) in striping.servers().iter().zip(bytes) {
            let one = self.servers.entry(ServerId(server)).or_default();
            one.placed = one.placed.saturating_add(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_creator_expects_is_known_to_the_decision() {
        let expected = Expectation {
            size: Some(1),
            clients: Some(2),
            access_bytes: Some(3),
            near: Some(ServerId(4)),
        };
        let known = Usage::default().knowledge(&[], 5, &expected);
        let sizes = (known.size, known.clients, known.access_bytes);
        assert_eq!(sizes, (Some(1), Some(2), Some(3)));
        assert_eq!((known.near, known.rotation), (Some(4), 5));
    }

    #[test]
    fn loads_of_servers_follow_their_reports_by_half() {
        let mut usage = Usage::default();
        let load = |usage: &mut Usage, reported| {
            usage.reported(ServerId(7), reported);
            usage.loads()
        };
        assert_eq!(load(&mut usage, 80), [(ServerId(7), 40)]);
        assert_eq!(load(&mut usage, 80), [(ServerId(7), 60)]);
        assert_eq!(load(&mut usage, 0), [(ServerId(7), 30)]);
    }
}
