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
use crate::collective::redistribute::{Load, Redistribution};
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

/// Gives the memory of a member, for one plan or another.
pub trait GivesMemory {
    /// Memory for this plan; it is asked for again where another plan is run than was most likely.
    fn memory(&mut self, plan: &Redistribution) -> PartMemory<'_>;
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

    /// Redistributes with all members: `memory` gives this one's when a plan is known. If it fails, what the target holds is
    /// not defined.
    pub fn run(
        &self,
        mine: Result<Parts>,
        source: SourcePlace,
        memory: &mut dyn GivesMemory,
    ) -> Result<()> {
        let offers = match &mine {
            Ok(parts) => self.offers(parts),
            Err(_) => Vec::new(),
        };
        let known = match self.team.lanes() {
            Some(lanes) => {
                let mut said = [0; SAID_WORDS];
                for (word, plan) in said[1..].iter_mut().zip(&offers) {
                    *word = plan.number();
                }
                let mut lent = Default::default();
                if let SourcePlace::Apart(address) = source {
                    said[0] = APART;
                    lent = ::direct::lent_at(address);
                }
                let ticket = Ticket::new(said, lent);
                let mut early = self.early(&mine, said[0], &offers, memory);
                let drive = self.team.drive();
                let run = match &mut early {
                    Some((plan, load)) => {
                        lanes.begin_run_early(&ticket, plan.number(), load, drive)
                    }
                    None => lanes.begin_run(&ticket, drive),
                };
                let run = run.map_err(apart)?;
                let mut others = run.tickets().iter();
                if let Some(rank) = others.position(|other| other.said[0] != said[0]) {
                    let text = format!("rank {rank} has its source elsewhere than asked of all");
                    return Err(Error::argument("source", text));
                }
                let found = common(&offers, run.tickets().iter().map(|of| &of.said[1..]));
                if let Some((plan, load)) = early
                    && found
                        .as_ref()
                        .is_some_and(|found| found.number() == plan.number())
                {
                    return plan.carry(run, load);
                }
                if let Some(plan) = found.as_ref().filter(|_| said[0] == APART) {
                    let load = match memory.memory(plan) {
                        PartMemory::Between(from, to) => plan.checked_load(from, to),
                        PartMemory::InPlace(_) => {
                            Err(Error::argument("memory", "is one, but the source is apart"))
                        }
                    };
                    return match load {
                        Ok(load) => plan.carry(run, load),
                        Err(error) => {
                            // The others count on this member already.
                            run.abandon();
                            Err(error)
                        }
                    };
                }
                drop(run);
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
        plan.run_with(memory.memory(&plan))
    }

    /// The newest plan, which is most likely that of all, with its memory. It is begun before the others are heard, so memory that
    /// is long enough for what this member knows has to be long enough for it.
    fn early<'a>(
        &self,
        mine: &Result<Parts>,
        kind: u64,
        offers: &'a [Arc<Redistribution>],
        memory: &'a mut dyn GivesMemory,
    ) -> Option<(&'a Redistribution, Load<'a>)> {
        let len = mine.as_ref().ok()?.len;
        let newest = offers.first()?;
        if kind != APART || newest.array_bytes() != len {
            return None;
        }
        match memory.memory(newest) {
            PartMemory::Between(from, to) => Some((newest, newest.checked_load(from, to).ok()?)),
            PartMemory::InPlace(_) => None,
        }
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
