//! What the accesses of a lane reuse: what each server has of an access, memory for packed bytes, and what the message way
//! keeps for itself.
//!
//! [`Work::spread`] gives every server its [`Lot`] of an access: parts in the order of the access plan. The ways take it
//! from there.

use std::time::Instant;

use layout::FileSpan;
use plan::access::Part;
use wire::{Place, Status};

use crate::access::message::MessageWork;
use crate::access::phases::{Phases, ServerPhases};
use crate::access::plan::Plan;
use crate::error::{Error, Result};

/// What one server has of an access.
#[derive(Debug)]
pub(crate) struct Lot {
    slot: usize,
    pub(crate) place: Place,
    pub(crate) parts: Vec<Part>,
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
    /// Memory for packed bytes.
    pub(crate) packed: Vec<u8>,
    /// The message way's own.
    pub(super) message: MessageWork,
}

impl Work {
    /// What servers have of the access.
    pub(crate) fn lots(&self) -> &[Lot] {
        &self.lots[..self.used]
    }

    /// What servers have of the access, and memory for packed bytes.
    pub(super) fn lots_and_packed(&mut self) -> (&[Lot], &mut Vec<u8>) {
        (&self.lots[..self.used], &mut self.packed)
    }

    /// What servers have of the access, and what the message way makes of it.
    pub(super) fn lots_and_message(&mut self) -> (&mut [Lot], &mut MessageWork) {
        (&mut self.lots[..self.used], &mut self.message)
    }

    /// Spreads an access over the servers that have bytes of it.
    pub(super) fn spread(
        &mut self,
        plan: &Plan,
        len: u64,
        file: FileSpan,
        phases: &mut Phases,
    ) -> Result<()> {
        let started = Instant::now();
        let intersected = phases.intersect_ns;
        let Work { lots, used, .. } = self;
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
        phases.intersect_ns += intersect_ns;
        let spent = started.elapsed().as_nanos() as u64;
        phases.map_ns += spent.saturating_sub(phases.intersect_ns - intersected);
        Ok(())
    }
}
