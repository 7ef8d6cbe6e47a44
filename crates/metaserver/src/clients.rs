//! Which clients are there, and what happens when one goes.
//!
//! A client on this host lives as long as its process, which is watched: connections that were lost or
//! inherited by a child say nothing. A client elsewhere lives as long as it has a connection, and
//! a short while longer, so that it can connect again. Either may say goodbye before.
//!
//! A client that is not in the table is dead: work for it that comes late is refused in its
//! transaction, after which its handles are released. So nothing is opened for the dead.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use wire::{ClientId, ServerId};

use crate::manager::Manager;

#[derive(Debug, Default)]
struct Client {
    connections: usize,
    is_watched: bool,
    /// Counts how often it connected; tells whether it came back.
    arrivals: u64,
    /// The server that it begins with.
    buddy: Option<ServerId>,
}

/// The clients that are alive.
#[derive(Debug, Default)]
pub(crate) struct Clients(Mutex<HashMap<ClientId, Client>>);

impl Clients {
    fn lock(&self) -> MutexGuard<'_, HashMap<ClientId, Client>> {
        self.0.lock()
    }

    /// Whether it is alive.
    pub(crate) fn has(&self, client: ClientId) -> bool {
        self.lock().contains_key(&client)
    }

    /// The buddy of a client.
    pub(crate) fn buddy(&self, client: ClientId) -> Option<ServerId> {
        self.lock().get(&client)?.buddy
    }

    /// Gives a client its buddy; one that is gone gets none.
    pub(crate) fn set_buddy(&self, client: ClientId, server: ServerId) {
        if let Some(entry) = self.lock().get_mut(&client) {
            entry.buddy = Some(server);
        }
    }

    /// How many other clients have each server as their buddy.
    pub(crate) fn buddies(&self, except: ClientId) -> HashMap<ServerId, u64> {
        let mut count = HashMap::new();
        for (client, entry) in self.lock().iter() {
            if let Some(server) = entry.buddy.filter(|_| *client != except) {
                *count.entry(server).or_default() += 1;
            }
        }
        count
    }

    /// How many are alive.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}

impl Manager {
    /// A client has a connection more. `pid` is its process, if that is on this host.
    pub(crate) fn client_connected(&self, client: ClientId, pid: Option<u64>) {
        let watch_now = {
            let mut clients = self.clients.lock();
            let entry = clients.entry(client).or_default();
            entry.connections += 1;
            entry.arrivals += 1;
            if entry.arrivals == 1 {
                tracing::info!(client = client.0, pid, "client came");
            }
            let watch_now = pid.filter(|_| !entry.is_watched);
            entry.is_watched |= watch_now.is_some();
            watch_now
        };
        let Some(pid) = watch_now else { return };
        // Outside the lock: a process that is dead already is reported inside the call.
        let this = self.this();
        let watched = self.watch.add(client.0, pid, move || {
            if let Some(manager) = this.upgrade() {
                manager.client_gone(client);
            }
        });
        if watched.is_err()
            && let Some(entry) = self.clients.lock().get_mut(&client)
        {
            entry.is_watched = false;
        }
    }

    /// A client has a connection less.
    pub(crate) fn client_disconnected(&self, client: ClientId) {
        let arrivals = {
            let mut clients = self.clients.lock();
            let Some(entry) = clients.get_mut(&client) else {
                return;
            };
            entry.connections = entry.connections.saturating_sub(1);
            if entry.connections > 0 || entry.is_watched {
                return;
            }
            entry.arrivals
        };
        let this = self.this();
        self.timer.after(self.client_grace, move || {
            let Some(manager) = this.upgrade() else {
                return;
            };
            let is_back = manager
                .clients
                .lock()
                .get(&client)
                .is_none_or(|entry| entry.arrivals != arrivals);
            if !is_back {
                manager.client_gone(client);
            }
        });
    }

    /// A client has died or said goodbye: everything it has open is closed.
    pub(crate) fn client_gone(&self, client: ClientId) {
        if self.clients.lock().remove(&client).is_none() {
            return;
        }
        tracing::info!(client = client.0, "client went");
        self.watch.remove(client.0);
        self.teams.client_gone(client);
        self.profile_client_gone(client);
        // A store that failed has told the clients that wait; the handles are gone with it.
        let _ = self.committer.run(move |batch| Ok(batch.release(client)?));
        if let Some(backing) = &self.backing {
            backing.client_gone();
        }
    }
}
