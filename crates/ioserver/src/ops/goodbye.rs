//! `Goodbye`, the end of connections, and the death of clients.
//!
//! | a client | its locks and pointers go |
//! |---|---|
//! | says goodbye | when it does, and with its last connection |
//! | of this host dies | at once: its process is watched |
//! | elsewhere has no connection | after a grace, unless it comes back: a connection may break, and the next one come |
//! | anywhere is silent for its lease, while another one waits for what it holds | when the lease is over |
//!
//! A client that holds something sends a [`Beat`](wire::message::session::Beat) in every quarter of the lease, so one that
//! is silent is stopped, hung or cut off; one that takes its time is not. What counts is that requests come, whatever
//! they ask.
//!
//! A client that died is fenced here before the owner's role gives back what it held.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use serving::{Peer, Watch, this_process};
use wire::ClientId;
use wire::message::session::{Hello, Process};

use super::release;
use crate::files::Files;
use crate::owner::Owner;
use crate::sessions::{Session, Who};

/// Who is watched, how long others may be out of sight, and how long those that are waited for may be silent.
pub(crate) struct Departures {
    watch: Watch,
    host: Process,
    grace: Duration,
    lease: Duration,
}

impl Departures {
    pub(crate) fn new(grace: Duration, lease: Duration) -> std::io::Result<Self> {
        Ok(Departures {
            watch: Watch::start()?,
            host: this_process(),
            grace,
            lease,
        })
    }

    /// Serves [`Beat`](wire::message::session::Beat).
    pub(crate) fn beat(&self) -> u64 {
        u64::try_from((self.lease / 4).as_millis()).unwrap_or(u64::MAX)
    }

    /// For a request that waits for what others hold.
    pub(crate) fn silences<'a>(
        &self,
        files: &'a Arc<Files>,
        owner: &'a Arc<Owner>,
    ) -> Silences<'a> {
        Silences {
            files,
            owner,
            lease: self.lease,
            heard: RefCell::default(),
        }
    }

    /// Watches the process of a client that has come, if it is on this host.
    pub(crate) fn watch(
        &self,
        files: &Arc<Files>,
        owner: &Arc<Owner>,
        session: &Session,
        peer: &Peer,
        hello: &Hello,
    ) {
        let is_here = peer.is_local && hello.process.host == self.host.host;
        let pid = peer
            .pid
            .or((is_here && hello.process.pid != 0).then_some(hello.process.pid));
        let Some(pid) = pid else {
            return;
        };
        let client = session.client.id;
        let (files, owner) = (Arc::downgrade(files), Arc::downgrade(owner));
        let died = move || client_died(files.clone(), owner.clone(), client, None);
        if self.watch.add(client.0, pid, died).is_ok() {
            session.client.is_watched.store(true, Ordering::SeqCst);
        }
    }

    /// A connection has ended.
    pub(crate) fn ended(&self, files: &Arc<Files>, owner: &Arc<Owner>, session: &Session) {
        for hold in &session.holds {
            release(files, hold.file, hold.number);
        }
        let is_last = files.sessions.close(session);
        let Who::Client { client, .. } = session.who else {
            return;
        };
        owner.connection_ended(client, &session.locks);
        if !is_last {
            return;
        }
        // Writers that do not move are left to the next operation that needs the bytes.
        let _ = files.detach(&session.client);
        if session.client.said_goodbye.load(Ordering::SeqCst) {
            self.left(owner, client);
        } else if !session.client.is_watched.load(Ordering::SeqCst) {
            let (files, owner) = (Arc::downgrade(files), Arc::downgrade(owner));
            client_died(files, owner, client, Some(self.grace));
        }
    }

    fn left(&self, owner: &Owner, client: ClientId) {
        self.watch.remove(client.0);
        owner.client_left(client);
    }
}

/// The clients that hold what a request waits for, as long as it waits.
pub(crate) struct Silences<'a> {
    files: &'a Arc<Files>,
    pub(super) owner: &'a Arc<Owner>,
    lease: Duration,
    /// How many requests of each had come, if it was connected, and since when that is so.
    heard: RefCell<BTreeMap<ClientId, (Option<u64>, Instant)>>,
}

impl Silences<'_> {
    /// Declares those dead from whom nothing has come for the lease.
    pub(crate) fn look(&self, holders: &BTreeSet<ClientId>) {
        let mut heard = self.heard.borrow_mut();
        heard.retain(|client, _| holders.contains(client));
        for &client in holders {
            let now = (self.files.sessions.requests_of(client), Instant::now());
            let (requests, since) = heard.entry(client).or_insert(now);
            if *requests != now.0 {
                (*requests, *since) = now;
            } else if since.elapsed() >= self.lease {
                tracing::warn!(client = client.0, "client is silent and others wait for it");
                let (files, owner) = (Arc::downgrade(self.files), Arc::downgrade(self.owner));
                client_died(files, owner, client, None);
                // It takes a moment.
                *since = now.1;
            }
        }
    }
}

/// Serves [`Goodbye`](wire::message::session::Goodbye).
pub(crate) fn goodbye(departures: &Departures, owner: &Owner, session: &Session) {
    session.client.said_goodbye.store(true, Ordering::SeqCst);
    if let Who::Client { client, .. } = session.who {
        departures.left(owner, client);
    }
}

/// A client has died, unless it has a connection when the `grace` is over: it is fenced here, and
/// the owner's role gives back what it held.
fn client_died(files: Weak<Files>, owner: Weak<Owner>, client: ClientId, grace: Option<Duration>) {
    let spawned = thread::Builder::new()
        .name(format!("death of {client}"))
        .spawn(move || {
            if let Some(grace) = grace {
                crate::start::wait(grace);
            }
            let (Some(files), Some(owner)) = (files.upgrade(), owner.upgrade()) else {
                return;
            };
            if grace.is_none() || !files.sessions.is_connected(client) {
                let _ = files.fence(client);
                owner.client_died(client);
            }
        });
    drop(spawned);
}
