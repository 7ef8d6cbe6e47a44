//! The verbs of atomic mode: entering and leaving it, locking and unlocking.
//!
//! A lock is waited for without limit, as its holder may take his time; while it is, the holder has to be heard of
//! (`ops::leave`). A client whose connection ends, who dies or who gives up waits no longer. Admission waits for servers only, and is refused
//! when they cannot be asked.

use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use control::locks::{Event, Mode, Refusal, Ticket, ViewKey};
use parking_lot::Condvar;
use wire::message::file::AdmitAnswer;
use wire::{HandleId, Status, describe};

use super::file::{State, Wait, lock_refused};
use super::statistics::count;
use super::{Asker, Owner, Refused, refuse};

/// Names that are tried for a view before it is refused: a hash may be taken by another view.
const NAMES: u64 = 8;

/// Refuses new duties of an owner that is giving them up.
fn demand_stays(state: &State) -> Result<(), Refused> {
    match state.handing_over.is_some() {
        true => refuse(
            Status::Busy,
            "another server is about to own the file; repeat later",
        ),
        false => Ok(()),
    }
}

impl Owner {
    /// Enters atomic mode with the view, for [`Admit`](wire::message::file::Admit).
    pub fn admit(&self, asker: &Asker<'_>, handle: HandleId) -> Result<AdmitAnswer, Refused> {
        let file = self.file(asker.file)?;
        let mut description = Vec::new();
        describe::put_view(&mut description, asker.view);
        let name = self.hasher.hash_one(&description);
        let bell = Arc::new(Condvar::new());
        let client = asker.client;
        let who = (client, handle);
        let mut work = Vec::new();
        let mut state = file.enter(self, asker)?;
        demand_stays(&state)?;
        state.demand_room(asker, &self.most_claims)?;
        state.clients.insert(client);
        let id = state.number();
        state.admit_waits.push((who, id, Wait::new(&bell)));
        for attempt in 0..NAMES {
            let event = Event::Admit {
                client,
                handle,
                key: ViewKey(name.wrapping_add(attempt)),
                view: asker.view.clone(),
            };
            match state.lock_event(event, &self.counters, &mut work) {
                Some(Refusal::BadView) if attempt + 1 < NAMES => {}
                Some(refusal) => {
                    state.admit_waits.retain(|(_, i, _)| *i != id);
                    return Err(lock_refused(refusal));
                }
                None => break,
            }
        }
        drop(state);
        self.drive(&file, work);
        let (mut state, outcome) =
            file.wait(file.lock(), &bell, asker, Some(self.patience), |state| {
                let mut waits = state.admit_waits.iter_mut();
                waits.find(|(_, i, _)| *i == id)?.2.outcome.take()
            });
        state.admit_waits.retain(|(_, i, _)| *i != id);
        let mut work = Vec::new();
        if outcome.is_err() && state.admit_waits.iter().all(|(w, _, _)| *w != who) {
            state.lock_event(Event::Leave { client, handle }, &self.counters, &mut work);
        }
        drop(state);
        self.drive(&file, work);
        outcome?
    }

    /// Leaves atomic mode, for [`LeaveAtomic`](wire::message::file::LeaveAtomic).
    pub fn leave_atomic(&self, asker: &Asker<'_>, handle: HandleId) -> Result<(), Refused> {
        let file = self.file(asker.file)?;
        let mut work = Vec::new();
        let event = Event::Leave {
            client: asker.client,
            handle,
        };
        let mut state = file.enter(self, asker)?;
        state.lock_event(event, &self.counters, &mut work);
        drop(state);
        self.drive(&file, work);
        Ok(())
    }

    /// Waits for a range of the view, for [`Lock`](wire::message::file::Lock). A lock whose answer
    /// cannot be sent is released with [`Owner::unlock`].
    pub fn lock(
        &self,
        asker: &Asker<'_>,
        handle: HandleId,
        request: u64,
        range: Range<u64>,
        mode: Mode,
    ) -> Result<(), Refused> {
        if range.start > range.end {
            return refuse(
                Status::InvalidArgument,
                format!(
                    "the range {}..{} ends before it begins",
                    range.start, range.end
                ),
            );
        }
        let file = self.file(asker.file)?;
        let client = asker.client;
        let ticket = Ticket { client, request };
        let bell = Arc::new(Condvar::new());
        let mut work = Vec::new();
        let mut state = file.enter(self, asker)?;
        demand_stays(&state)?;
        if state.lock_waits.contains_key(&ticket) {
            return Err(lock_refused(Refusal::BadTicket));
        }
        state.demand_room(asker, &self.most_claims)?;
        state.lock_waits.insert(ticket, Wait::new(&bell));
        let event = Event::Lock {
            ticket,
            handle,
            range,
            mode,
        };
        if let Some(refusal) = state.lock_event(event, &self.counters, &mut work) {
            state.lock_waits.remove(&ticket);
            return Err(lock_refused(refusal));
        }
        debug_assert!(work.is_empty(), "a lock asks nobody");
        if state
            .lock_waits
            .get(&ticket)
            .is_some_and(|w| w.outcome.is_none())
        {
            count(&self.counters.lock_waits);
        }
        let (mut state, outcome) = file.wait(state, &bell, asker, None, |state| {
            let outcome = state.lock_waits.get_mut(&ticket)?.outcome.take();
            if outcome.is_none() {
                (asker.waits_for)(&state.locks.in_the_way_of(ticket));
            }
            outcome
        });
        state.lock_waits.remove(&ticket);
        if outcome.is_err() {
            state.lock_event(Event::Unlock(ticket), &self.counters, &mut work);
        }
        drop(state);
        self.drive(&file, work);
        outcome?
    }

    /// Releases a lock or waits for it no longer, for [`Unlock`](wire::message::file::Unlock).
    pub fn unlock(&self, asker: &Asker<'_>, request: u64) -> Result<(), Refused> {
        let file = self.file(asker.file)?;
        let ticket = Ticket {
            client: asker.client,
            request,
        };
        let mut work = Vec::new();
        let mut state = file.enter(self, asker)?;
        let refusal = state.lock_event(Event::Unlock(ticket), &self.counters, &mut work);
        if let Some(wait) = state.lock_waits.get_mut(&ticket) {
            wait.end(given_up());
        }
        drop(state);
        self.drive(&file, work);
        refusal.map_or(Ok(()), |refusal| Err(lock_refused(refusal)))
    }
}

/// What a request hears whose lock is no longer waited for.
pub(super) fn given_up() -> Result<(), Refused> {
    refuse(
        Status::InvalidArgument,
        "the lock was given up by another request of its client",
    )
}
