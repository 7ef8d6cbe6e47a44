//! The ends of connections and clients.
//!
//! | what ended | what happens |
//! |---|---|
//! | a connection | its requests wait no longer; what the client holds it keeps |
//! | a client, on purpose | everything it had is released |
//! | a client, otherwise | it is refused here at once and fenced at the servers of its files; what it held is held until they have confirmed |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use control::locks::{Event, Ticket};
use wire::message::cluster::Fence;
use wire::{ClientId, ServerId, Status};

use super::file::{OwnedFile, State, fenced};
use super::lock::given_up;
use super::statistics::count;
use super::work::{Work, ask_all};
use super::{Owner, Refused};

impl Owner {
    /// A connection has ended on which locks with these request numbers were asked for: what still
    /// waits is dropped.
    pub fn connection_ended(&self, client: ClientId, requests: &[u64]) {
        for file in self.files_of(client) {
            let mut work = Vec::new();
            let mut state = file.lock();
            let waiting: BTreeSet<Ticket> = state.locks.waiting().collect();
            for &request in requests {
                let ticket = Ticket { client, request };
                if waiting.contains(&ticket) {
                    state.lock_event(Event::Unlock(ticket), &self.counters, &mut work);
                    if let Some(wait) = state.lock_waits.get_mut(&ticket) {
                        wait.end(given_up());
                    }
                }
            }
            drop(state);
            self.drive(&file, work);
        }
    }

    /// A client has gone on purpose, its requests done: everything is released, nothing fenced.
    pub fn client_left(&self, client: ClientId) {
        for file in self.files_of(client) {
            let mut work = Vec::new();
            let mut state = file.lock();
            state.lock_event(Event::Left(client), &self.counters, &mut work);
            state.pointers.died(client);
            state.appends.fenced(client);
            state.settle_claims(client);
            state.end_waits(client, given_up);
            state.clients.remove(&client);
            drop(state);
            self.drive(&file, work);
        }
    }

    /// A client has died. Returns when the servers of its files refuse it, or could not be asked, so
    /// it is not for a thread that has no time.
    pub fn client_died(&self, client: ClientId) {
        if !self.dead.lock().insert(client) {
            return;
        }
        let mut fences: Vec<(Arc<OwnedFile>, Vec<ServerId>)> = Vec::new();
        for file in self.files_of(client) {
            let (mut work, mut servers) = (Vec::new(), Vec::new());
            {
                let mut state = file.lock();
                let present = state.servers.iter().filter(|(_, p)| !p.is_gone);
                let present: BTreeSet<ServerId> = present.map(|(s, _)| *s).collect();
                state.pointers.died(client);
                state.end_waits(client, || fenced(client));
                state.lock_event(Event::Died(client), &self.counters, &mut work);
                work.retain(|item| match item {
                    Work::Fence {
                        client: who,
                        servers: at,
                    } if *who == client => {
                        servers.clone_from(at);
                        false
                    }
                    _ => true,
                });
                if state.appends.claims(client) > 0 {
                    if servers.is_empty() {
                        count(&self.counters.fences);
                    }
                    servers = present.iter().copied().collect();
                    if present.is_empty() {
                        state.appends.fenced(client);
                        state.settle_claims(client);
                    } else {
                        state.append_fences.insert(client, present);
                    }
                }
                state.clients.remove(&client);
            }
            self.drive(&file, work);
            if !servers.is_empty() {
                fences.push((file, servers));
            }
        }
        self.fence_everywhere(client, &fences);
    }

    /// Fences a client once at each server, for all its files.
    fn fence_everywhere(&self, client: ClientId, fences: &[(Arc<OwnedFile>, Vec<ServerId>)]) {
        let servers: BTreeSet<ServerId> = fences.iter().flat_map(|(_, s)| s).copied().collect();
        let servers: Vec<ServerId> = servers.into_iter().collect();
        let spells: Vec<BTreeMap<ServerId, u64>> = fences
            .iter()
            .map(|(file, _)| {
                let state = file.lock();
                state.servers.iter().map(|(s, p)| (*s, p.spell)).collect()
            })
            .collect();
        let fence = Fence { client };
        let answers = ask_all(&servers, |server| {
            match self.cluster.fence(server, &fence) {
                Err(Refused {
                    status: Status::Unreachable,
                    ..
                }) => self.cluster.fence(server, &fence),
                answer => answer,
            }
        });
        let answers: BTreeMap<ServerId, Result<(), Refused>> =
            servers.into_iter().zip(answers).collect();
        for ((file, servers), spells) in fences.iter().zip(spells) {
            let mut work = Vec::new();
            let mut state = file.lock();
            for &server in servers {
                let now = state.servers.get(&server).map(|p| p.spell);
                if now.is_none() || now != spells.get(&server).copied() {
                    continue; // It went or came back; the lock manager has seen to it.
                }
                match &answers[&server] {
                    Ok(()) => {
                        state.append_fenced(server, client);
                        let event = Event::Fenced { server, client };
                        state.lock_event(event, &self.counters, &mut work);
                    }
                    Err(Refused {
                        status: Status::Unreachable,
                        ..
                    }) => {
                        state.server_gone(server, &self.counters, &mut work);
                    }
                    Err(_) => state.again.push(Work::Fence {
                        client,
                        servers: vec![server],
                    }),
                }
            }
            drop(state);
            self.drive(file, work);
        }
    }

    fn files_of(&self, client: ClientId) -> Vec<Arc<OwnedFile>> {
        let mut files = self.files();
        files.retain(|file| file.lock().clients.contains(&client));
        files
    }
}

impl State {
    /// Ends the waits of a client.
    fn end_waits(&mut self, client: ClientId, outcome: impl Fn() -> Result<(), Refused>) {
        for (ticket, wait) in &mut self.lock_waits {
            if ticket.client == client {
                wait.end(outcome());
            }
        }
        for ((who, _), _, wait) in &mut self.admit_waits {
            if let (true, Err(refused)) = (*who == client, outcome()) {
                wait.end(Err(refused));
            }
        }
    }
}
