//! What the accesses of a lane reuse: what each server has of an access, flows, what is done already, memory for packed
//! bytes.
//!
//! [`Work::spread`] gives every server its [`Lot`] of an access: parts in the order of the access plan, without bytes
//! that were confirmed in an earlier attempt. The ways take it from there; flows are the message way's.

use std::sync::Arc;
use std::time::Instant;

use layout::{FileOffset, FileSpan};
use plan::access::Part;
use wire::{Place, Status};

use crate::access::flow::Flow;
use crate::access::phases::{Phases, ServerPhases};
use crate::access::plan::Plan;
use crate::error::{Error, Result};
use crate::file::view::HandleView;

/// What one server has of an access.
#[derive(Debug)]
pub(crate) struct Lot {
    slot: usize,
    pub(crate) place: Place,
    pub(crate) parts: Vec<Part>,
    /// Where it begins, in view space.
    pub(crate) from: u64,
}

impl Lot {
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    pub(crate) fn phases(&self) -> ServerPhases {
        ServerPhases {
            server: self.place.server,
            bytes: self.bytes(),
            ..ServerPhases::default()
        }
    }
}

/// What accesses of a lane reuse.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Only the first `used` are part of the access.
    lots: Vec<Lot>,
    used: usize,
    /// One for each lot of an access that goes by message.
    pub(super) flows: Vec<Flow>,
    /// What servers have confirmed in an attempt that failed elsewhere: server, view offset.
    pub(super) progress: Vec<(u64, u64)>,
    /// Everything before this view offset is done, at whichever server it was.
    floor: u64,
    /// Memory for packed bytes.
    pub(crate) packed: Vec<u8>,
    pub(super) failed: Vec<usize>,
}

/// What an attempt was planned with: layout, epoch, bytes.
pub(super) type Planned = Option<(Arc<Plan>, u64, u64)>;

impl Work {
    /// What servers have of the access.
    pub(crate) fn lots(&self) -> &[Lot] {
        &self.lots[..self.used]
    }

    /// What servers have of the access, and memory for packed bytes.
    pub(super) fn lots_and_packed(&mut self) -> (&[Lot], &mut Vec<u8>) {
        (&self.lots[..self.used], &mut self.packed)
    }

    /// What servers have of the access, and their flows.
    pub(super) fn lots_and_flows(&mut self) -> (&[Lot], &mut [Flow]) {
        (&self.lots[..self.used], &mut self.flows[..self.used])
    }

    /// Begins a flow for each lot, up to this view offset.
    pub(super) fn begin_flows(&mut self, hi: u64) {
        while self.flows.len() < self.used {
            self.flows.push(Flow::default());
        }
        for (flow, lot) in self.flows.iter_mut().zip(&self.lots[..self.used]) {
            flow.begin(lot, hi);
        }
    }

    pub(super) fn forget_progress(&mut self) {
        self.progress.clear();
        self.floor = 0;
    }

    /// Forgets what servers have confirmed if it may have been cut off. With another layout, what all of them have
    /// confirmed stays done: bytes that move are taken along.
    pub(super) fn replan(
        &mut self,
        planned: &mut Planned,
        plan: &Arc<Plan>,
        epoch: u64,
        bytes: u64,
    ) {
        match planned {
            Some((p, e, b)) if (*e, *b) == (epoch, bytes) => {
                if Arc::ptr_eq(p, plan) {
                    return;
                }
                let done = self
                    .progress
                    .drain(..)
                    .map(|(_, confirmed)| confirmed)
                    .min();
                self.floor = self.floor.max(done.unwrap_or(0));
            }
            _ => self.forget_progress(),
        }
        *planned = Some((plan.clone(), epoch, bytes));
    }

    /// Spreads an access over the servers that have bytes of it; whether there is one only.
    pub(super) fn spread(
        &mut self,
        plan: &Plan,
        seen: &HandleView,
        lo: u64,
        len: u64,
        file: FileSpan,
        phases: &mut Phases,
    ) -> Result<bool> {
        let started = Instant::now();
        let intersected = phases.intersect_ns;
        let Work {
            lots,
            used,
            progress,
            floor,
            ..
        } = self;
        *used = 0;
        let mut found = 0;
        let mut nobody = 0;
        let mut intersect_ns = 0;
        plan.parts(file, &mut intersect_ns, |slot, part| {
            let Some(slot) = slot else {
                nobody += part.bytes;
                return;
            };
            found += part.bytes;
            let known = lots[..*used].iter().position(|lot| lot.slot == slot);
            let i = known.unwrap_or(*used);
            if i == *used {
                let place = plan.places[slot];
                match lots.get_mut(i) {
                    Some(lot) => {
                        (lot.slot, lot.place) = (slot, place);
                        lot.parts.clear();
                    }
                    None => lots.push(Lot {
                        slot,
                        place,
                        parts: Vec::new(),
                        from: lo,
                    }),
                }
                *used += 1;
            }
            lots[i].parts.push(part);
        });
        if found != len {
            let text = match nobody {
                0 => format!("{} bytes lie in no subfile of the file", len - found),
                n => format!("{n} bytes lie in subfiles that no server holds"),
            };
            let status = match nobody {
                0 => Status::InvalidArgument,
                _ => Status::Lost,
            };
            return Err(Error::Refused {
                status,
                text,
                server: None,
            });
        }
        let is_alone = *used == 1;
        let hi = lo + len;
        for lot in &mut lots[..*used] {
            let server = lot.place.server;
            let done = progress.iter().find(|(s, _)| *s == server).map(|p| p.1);
            lot.from = done.unwrap_or(0).max(*floor).clamp(lo, hi);
            if lot.from == hi {
                lot.parts.clear();
            } else if lot.from > lo {
                let start = seen.view.bytes().select(lot.from);
                let start = FileOffset(start.expect("inside the access"));
                let rest = FileSpan::new(start, file.end);
                let left = lot.parts.iter().filter_map(|part| plan.clip(part, rest));
                lot.parts = left.collect();
            }
        }
        phases.intersect_ns += intersect_ns;
        let spent = started.elapsed().as_nanos() as u64;
        phases.map_ns += spent.saturating_sub(phases.intersect_ns - intersected);
        Ok(is_alone)
    }
}
