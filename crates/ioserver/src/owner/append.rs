//! The verbs of appending: reserving a place behind the end, and saying that it is written.
//!
//! Places are disjoint and behind everything counted. A truncate voids all places of its epoch.

use std::ops::RangeInclusive;

use control::locks::Ticket;
use control::pointers::PointerError;
use wire::message::file::{ReserveAnswer, SizeIs};
use wire::{Rights, Status};

use super::size::{demand_offset, stale};
use super::{Asker, Owner, Refused, refuse};

impl Owner {
    /// Reserves a place, for [`Reserve`](wire::message::file::Reserve).
    pub fn reserve(
        &self,
        asker: &Asker<'_>,
        request: u64,
        len: u64,
    ) -> Result<ReserveAnswer, Refused> {
        asker.demand(Rights::WRITE)?;
        let file = self.file(asker.file)?;
        self.settle_doubt(&file)?;
        self.gather(&file, asker)?;
        let state = file.enter(self, asker)?;
        let (mut state, size) = self.known(&file, state, asker);
        let SizeIs { size, epoch } = size?;
        // The client may have died while it waited for the size.
        if self.is_dead(asker.client) {
            return super::file::fenced(asker.client);
        }
        if state.handing_over.is_some() {
            return refuse(
                Status::Busy,
                "the file is being given another layout; repeat later",
            );
        }
        state.clients.insert(asker.client);
        let ticket = Ticket {
            client: asker.client,
            request,
        };
        if state.appends.reserved(ticket).is_none() {
            state.demand_room(asker, &self.most_claims)?;
        }
        let offset = state.appends.reserve(ticket, len, size);
        state.settle_claims(asker.client);
        let offset = offset.map_err(pointer_refused)?;
        Ok(ReserveAnswer { offset, epoch })
    }

    /// A place is written up to `end`, or given up, for
    /// [`FinishAppend`](wire::message::file::FinishAppend). Saying so twice is no mistake.
    pub fn appended(
        &self,
        asker: &Asker<'_>,
        request: u64,
        epoch: u64,
        end: u64,
    ) -> Result<SizeIs, Refused> {
        asker.demand(Rights::WRITE)?;
        demand_offset("end", end)?;
        let file = self.file(asker.file)?;
        self.settle_doubt(&file)?;
        let mut state = self.enter_in(&file, asker, epoch)?;
        let ticket = Ticket {
            client: asker.client,
            request,
        };
        let mut counts = epoch == state.sizes.epoch();
        if counts {
            let place = state.appends.reserved(ticket);
            let allowed: RangeInclusive<u64> = match &place {
                Some(place) => place.start..=place.end,
                None => 0..=falls::MAX_OFFSET,
            };
            if !allowed.contains(&end) {
                return refuse(
                    Status::InvalidArgument,
                    format!(
                        "end is {end}; the place is {}..{}",
                        allowed.start(),
                        allowed.end()
                    ),
                );
            }
            if place.is_none_or(|place| end > place.start) {
                counts = self.count_write(&mut state, epoch, end);
            }
            state.appends.complete(ticket);
            state.settle_claims(asker.client);
        }
        let size = self.known(&file, state, asker).1;
        if counts { size } else { stale(size?) }
    }
}

/// A refusal of the pointers and places as an answer.
pub(super) fn pointer_refused(error: PointerError) -> Refused {
    Refused::new(error.status(), error.to_string())
}
