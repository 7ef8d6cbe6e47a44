//! Setting the size: the intent at the metadata manager, then the cut at all servers of the file.
//!
//! A truncate waits for its turn; the thread that waits then does all of it: it asks for the intent,
//! lets the servers cut, and says that it is finished. So a stream of truncates does not keep the
//! thread of one client busy with those of others.
//!
//! If the manager's answer to the intent is lost, whether it was recorded is *in doubt*. Until the
//! manager says so, nothing that depends on the size is answered: a write that was counted in
//! between could be cut off by an intent that is not known here.

use std::sync::Arc;

use control::locks::Ticket;
use control::sizes::Event;
use parking_lot::Condvar;
use wire::message::cluster::BeginTruncate;
use wire::message::file::SizeIs;
use wire::{HandleId, Rights, Status};

use super::file::{OwnedFile, TruncateWait, Wait};
use super::size::demand_offset;
use super::statistics::count;
use super::{Asker, Owner, Refused};

/// Whether a failure leaves open if the manager has done it.
fn is_doubtful(status: Status) -> bool {
    matches!(
        status,
        Status::Unreachable | Status::TimedOut | Status::Malformed | Status::Internal
    )
}

impl Owner {
    /// Sets the size, for [`Truncate`](wire::message::file::Truncate). Returns when all servers have cut whose clients
    /// may store bytes that are to be cut off; a server whose start is over cuts before it serves again. One that may
    /// live and cannot be asked makes this fail, and the intent stays: it cuts when it is back. A request that comes twice
    /// cuts once; the answer to the second has the size that the file has then.
    pub fn truncate(
        &self,
        asker: &Asker<'_>,
        handle: HandleId,
        to: u64,
        request: u64,
    ) -> Result<SizeIs, Refused> {
        asker.demand(Rights::WRITE)?;
        demand_offset("size", to)?;
        let file = self.file(asker.file)?;
        self.settle_doubt(&file)?;
        let bell = Arc::new(Condvar::new());
        let mut work = Vec::new();
        let mut state = file.enter(self, asker)?;
        let client = asker.client;
        let ticket = Ticket {
            client,
            request: state.number(),
        };
        let wait = TruncateWait {
            wait: Wait::new(&bell),
            is_next: false,
            was_done: false,
            refusal: None,
        };
        state.truncate_waits.insert(ticket, wait);
        state.size_event(Event::Truncate { ticket, to }, &mut work);
        let is_next = |found: &TruncateWait| found.is_next || found.wait.outcome.is_some();
        let (mut state, turn) = loop {
            let limit = Some(self.patience);
            let (s, turn) = file.wait(state, &bell, asker, limit, |s| {
                s.truncate_waits
                    .get(&ticket)
                    .is_none_or(is_next)
                    .then_some(())
            });
            state = s;
            match &turn {
                // Others are at work: only those who are not there end the patience.
                Err(Refused {
                    status: Status::TimedOut,
                    ..
                }) => {}
                _ => break (state, turn),
            }
        };
        if let Err(refused) = turn {
            state.size_event(Event::Withdrawn(ticket), &mut work);
            state.truncate_waits.remove(&ticket);
            drop(state);
            self.drive(&file, work);
            return Err(refused);
        }
        let must_intend = state.truncate_waits.get(&ticket).is_some_and(|w| w.is_next);
        drop(state);
        if must_intend {
            let client = ticket.client;
            let begin = BeginTruncate {
                client,
                handle,
                to,
                request,
            };
            self.intend(&file, ticket, &begin);
        }
        // A server that went and came back meanwhile is asked by the thread that noticed.
        let limit = Some(self.patience);
        let (mut state, outcome) = file.wait(file.lock(), &bell, asker, limit, |s| {
            let found = s.truncate_waits.get_mut(&ticket)?;
            found.wait.outcome.take()
        });
        state.truncate_waits.remove(&ticket);
        if let Err(mut refused) = outcome {
            state.size_event(Event::Withdrawn(ticket), &mut work);
            if matches!(refused.status, Status::Unreachable | Status::TimedOut) {
                refused.refusal.text = format!(
                    "{}; the size is set to {to} all the same, and bytes there are cut off when it can be asked",
                    refused.refusal.text
                );
            }
            return Err(refused);
        }
        outcome??;
        count(&self.counters.truncates);
        self.known(&file, state, asker).1
    }

    /// Asks for the intent of a truncate whose turn it is, and does what follows.
    fn intend(&self, file: &OwnedFile, ticket: Ticket, begin: &BeginTruncate) {
        let (unfinished, epoch) = {
            let state = file.lock();
            (state.unfinished, state.sizes.epoch())
        };
        if let Some(epoch) = unfinished {
            // Otherwise the manager would say that one is under way; if this fails, so will that.
            let _ = self.finish(file, epoch);
        }
        let begun = self.cluster.begin_truncate(begin);
        self.heed(file.id, &begun);
        let decided = match begun {
            Ok(state) if state.epoch > epoch => Ok(Some(state.epoch)),
            // It came before, and was done: its turn came after all that were under way.
            Ok(_) => Ok(None),
            Err(refused) if is_doubtful(refused.status) => match self.cluster.file_state(file.id) {
                Ok(found) if found.size.epoch > epoch => Ok(Some(found.size.epoch)),
                Ok(_) => Err(refused),
                Err(_) => {
                    let mut state = file.lock();
                    state.doubt = Some(ticket);
                    if let Some(found) = state.truncate_waits.get_mut(&ticket) {
                        found.wait.end(Err(refused));
                    }
                    return;
                }
            },
            Err(refused) => Err(refused),
        };
        let mut work = Vec::new();
        {
            let mut state = file.lock();
            let event = match decided {
                Ok(Some(epoch)) => Event::Intended { epoch },
                Ok(None) => {
                    if let Some(found) = state.truncate_waits.get_mut(&ticket) {
                        found.was_done = true;
                    }
                    Event::IntentRefused
                }
                Err(refused) => {
                    if let Some(found) = state.truncate_waits.get_mut(&ticket) {
                        found.refusal = Some(refused);
                    }
                    Event::IntentRefused
                }
            };
            state.size_event(event, &mut work);
        }
        self.drive(file, work);
    }

    /// Finds out whether an intent whose answer was lost is in the catalogue.
    pub(super) fn settle_doubt(&self, file: &OwnedFile) -> Result<(), Refused> {
        let (ticket, epoch) = {
            let state = file.lock();
            match state.doubt {
                Some(ticket) => (ticket, state.sizes.epoch()),
                None => return Ok(()),
            }
        };
        let found = self.cluster.file_state(file.id)?.size;
        let mut work = Vec::new();
        {
            let mut state = file.lock();
            if state.doubt != Some(ticket) {
                return Ok(());
            }
            state.doubt = None;
            let event = if found.epoch > epoch {
                Event::Intended { epoch: found.epoch }
            } else {
                Event::IntentRefused
            };
            state.size_event(event, &mut work);
        }
        self.drive(file, work);
        Ok(())
    }
}
