//! `Goodbye`, the end of connections, and the death of clients.
//!
//! | a client | its locks and pointers go |
//! |---|---|
//! | says goodbye | when it does, and with its last connection |
//! | of this host dies | at once: its process is watched |
//! | elsewhere has no connection | after a grace, unless it comes back: a connection may break, and the next one come |
//!
//! A client that died is fenced here before the owner's role gives back what it held.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use serving::{Peer, Watch, this_process};
use wire::ClientId;
use wire::message::session::{Hello, Process};

use super::release;
use crate::files::Files;
use crate::owner::Owner;
use crate::sessions::{Session, Who};

/// Who is watched, and how long others may be out of sight.
pub(crate) struct Departures {
    watch: Watch,
    host: Process,
    grace: Duration,
}

impl Departures {
    pub(crate) fn new(grace: Duration) -> std::io::Result<Self> {
        Ok(Departures {
            watch: Watch::start()?,
            host: this_process(),
            grace,
        })
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
