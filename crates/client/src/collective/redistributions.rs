//! Plans of redistributions, kept with a team: the same parts are planned once.
//!
//! A member knows its own parts only. It offers the numbers of all plans that it keeps for them; the newest that all
//! members offer is the one. Where there is none all plan anew. Where the members have lanes the offers are in the tickets of
//! the run itself and cost nothing; elsewhere they are exchanged first.
//!
//! Invariants
//! - All members come to the same answer: it follows from what all have said.
//! - A member whose arguments are wrong says so, and all fail with its text.

use std::collections::VecDeque;
use std::sync::Arc;

use ::direct::{SAID_WORDS, Ticket};
use kernels::{SharedBytes, SharedBytesMut};
use layout::View;
use parking_lot::Mutex;
use wire::{Reader, put_number};

use crate::collective::host_team::apart;
use crate::collective::redistribute::Redistribution;
use crate::collective::team::Team;
use crate::error::{Error, Result};

/// What a ticket says first of a source that is apart from the target.
const APART: u64 = 1 << 32;

/// Plans that are kept; the oldest goes.
const KEPT: usize = 32;

/// What a member has of an array and wants of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// What it has.
    pub source: View,
    /// What it wants.
    pub target: View,
    /// Bytes of the array as far as it knows; the most of all members counts.
    pub len: u64,
}

/// The memory of a member.
#[derive(Debug)]
pub enum PartMemory<'a> {
    /// From one to another.
    Between(SharedBytes<'a>, SharedBytesMut<'a>),
    /// Source before, target after.
    InPlace(SharedBytesMut<'a>),
}

/// Where the source of a member begins; all members say the same of the two.
#[derive(Clone, Copy, Debug)]
pub enum SourcePlace {
    /// At this address, apart from the target.
    Apart(*const u8),
    /// Where the target will be.
    AsTarget,
}

/// The plans of a team.
#[derive(Debug)]
pub struct Redistributions {
    team: Team,
    kept: Mutex<VecDeque<(Parts, Arc<Redistribution>)>>,
}

impl Redistributions {
    /// None yet.
    pub fn new(team: Team) -> Redistributions {
        Redistributions {
            team,
            kept: Mutex::new(VecDeque::new()),
        }
    }

    /// Redistributes with all members: `memory` gives this one's when the plan is known.
    pub fn run<'m>(
        &self,
        mine: Result<Parts>,
        source: SourcePlace,
        memory: impl FnOnce(&Redistribution) -> PartMemory<'m>,
    ) -> Result<()> {
        let offers = match &mine {
            Ok(parts) => self.offers(parts),
            Err(_) => Vec::new(),
        };
        let known = match self.team.lanes() {
            Some(lanes) => {
                let mut ticket = Ticket::default();
                if let SourcePlace::Apart(address) = source {
                    ticket.said[0] = APART;
                    ticket.lent = ::direct::lent_at(address);
                }
                for (word, plan) in ticket.said[1..].iter_mut().zip(&offers) {
                    *word = plan.number();
                }
                let run = lanes.begin_run(&ticket, self.team.drive()).map_err(apart)?;
                let kind = |other: &Ticket| other.said[0] == ticket.said[0];
                if let Some(rank) = run.tickets().iter().position(|other| !kind(other)) {
                    let text = format!("rank {rank} has its source elsewhere than asked of all");
                    return Err(Error::argument("source", text));
                }
                let said = run.tickets().iter().map(|ticket| &ticket.said[1..]);
                let found = common(&offers, said);
                if let (Some(plan), SourcePlace::Apart(_)) = (&found, source) {
                    return match memory(plan) {
                        PartMemory::Between(from, to) => plan.run_begun(run, from, to),
                        PartMemory::InPlace(_) => {
                            run.abandon();
                            Err(Error::argument("memory", "is one, but the source is apart"))
                        }
                    };
                }
                found
            }
            None => {
                let said = self.team.allgather(&bytes_of(&offers))?;
                let said: Vec<Vec<u64>> = said.iter().map(|bytes| numbers_of(bytes)).collect();
                common(&offers, said.iter().map(|said| &said[..]))
            }
        };
        let plan = match known {
            Some(plan) => plan,
            None => self.plan(mine)?,
        };
        plan.run_with(memory(&plan))
    }

    /// Plans that are kept for these parts, the newest first.
    fn offers(&self, parts: &Parts) -> Vec<Arc<Redistribution>> {
        let kept = self.kept.lock();
        let fitting = kept.iter().rev().filter(|(of, _)| of == parts);
        let plans = fitting.map(|(_, plan)| Arc::clone(plan));
        plans.take(SAID_WORDS - 1).collect()
    }

    /// Plans with all members.
    fn plan(&self, mine: Result<Parts>) -> Result<Arc<Redistribution>> {
        let len = mine.as_ref().map(|parts| parts.len.to_le_bytes().to_vec());
        let said = self.team.agree(len.map_err(Error::clone))?;
        let mine = mine?;
        let lens = said.iter().filter_map(|bytes| bytes[..].try_into().ok());
        let len = lens.map(u64::from_le_bytes).max().unwrap_or(mine.len);
        let plan = Redistribution::new(&self.team, &mine.source, &mine.target, len)?;
        let plan = Arc::new(plan);
        let mut kept = self.kept.lock();
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back((mine, Arc::clone(&plan)));
        Ok(plan)
    }
}

/// The newest plan that all offer.
fn common<'a>(
    offers: &[Arc<Redistribution>],
    said: impl Iterator<Item = &'a [u64]> + Clone,
) -> Option<Arc<Redistribution>> {
    let is_common = |plan: &&Arc<Redistribution>| {
        let number = plan.number();
        said.clone().all(|of_member| of_member.contains(&number))
    };
    let common = offers.iter().filter(is_common);
    common.max_by_key(|plan| plan.number()).cloned()
}

fn bytes_of(offers: &[Arc<Redistribution>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for plan in offers {
        put_number(&mut bytes, plan.number());
    }
    bytes
}

fn numbers_of(bytes: &[u8]) -> Vec<u64> {
    let mut reader = Reader::new(bytes);
    std::iter::from_fn(|| reader.number().ok()).collect()
}
