//! Registered views: what a number of a client stands for, and what is compiled from it.
//!
//! Equal descriptions of one file have one [`Shares`] in common, whichever clients registered them: the bytes of a
//! description are its identity. Shares belong to one layout; they are compiled when an access first touches them
//! and go when the layout goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use layout::View;
use parking_lot::Mutex;
use plan::access::{AccessPlan, Shares};
use wire::{ClientId, FileId, Rights, Status};

use crate::ahead::ReadHistory;
use crate::context::now_ms;
use crate::files::LocalState;
use crate::gateway::History;
use crate::ops::Permit;
use crate::refused::Refused;
use crate::seen_uses::{SeenUses, ViewUse};
use crate::taken_space::TakenSpace;

/// A view that a client registered.
pub(crate) struct RegisteredView {
    /// Of which file.
    pub file: FileId,
    /// What its capability allows.
    pub rights: Rights,
    /// Until when it does, in milliseconds since 1970.
    expires_ms: u64,
    /// The view.
    pub view: View,
    pub(crate) entry: Arc<crate::files::FileEntry>,
    /// The client that the server which registered it works for.
    pub(crate) works_for: Option<ClientId>,
    /// What it was registered with, to be shown to other servers.
    pub(crate) capability: Box<[u8]>,
    /// Differs for any two of a process.
    pub(crate) serial: u64,
    /// What its client accessed through it.
    pub(crate) history: History,
    /// What it is read for, and what comes next.
    pub(crate) reading: ReadHistory,
    /// Accesses by message through it, for the profile of the file.
    pub(crate) used: ViewUse,
    /// What was taken for the file with it.
    pub(crate) space: Mutex<Option<TakenSpace>>,
    client: ClientId,
    seen: Arc<SeenUses>,
    description: Arc<[u8]>,
    /// With the serial of the layout they belong to.
    latest: Mutex<Option<(u64, Arc<Shares>)>>,
}

impl Drop for RegisteredView {
    fn drop(&mut self) {
        self.used
            .end(&self.seen, self.client, self.file, &self.view);
    }
}

impl RegisteredView {
    pub(crate) fn new(
        entry: Arc<crate::files::FileEntry>,
        view: View,
        description: Arc<[u8]>,
        permit: &Permit,
        client: ClientId,
        seen: Arc<SeenUses>,
    ) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        RegisteredView {
            file: entry.id(),
            rights: permit.rights,
            expires_ms: permit.expires_ms,
            view,
            entry,
            works_for: permit.works_for,
            capability: permit.capability.as_slice().into(),
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            history: History::default(),
            used: ViewUse::default(),
            space: Mutex::default(),
            client: permit.works_for.unwrap_or(client),
            seen,
            reading: ReadHistory::default(),
            description,
            latest: Mutex::default(),
        }
    }

    /// Refuses what the capability of the view does not allow, or does not allow any more: a client that may still do it
    /// gets another capability from the metadata manager and registers the view again.
    pub(crate) fn demand(&self, number: u64, rights: Rights) -> Result<(), Refused> {
        if !self.rights.allow(rights) {
            let text = format!("view {number} allows {}, not {rights}", self.rights);
            return Err(Refused::new(Status::PermissionDenied, text));
        }
        if self.has_expired() {
            let text = format!("the capability of view {number} has expired");
            return Err(Refused::new(Status::ExpiredCapability, text));
        }
        Ok(())
    }

    /// Whether its capability allows nothing any more.
    pub(crate) fn has_expired(&self) -> bool {
        now_ms() > self.expires_ms
    }

    /// Bytes that count against the quota of its client.
    pub(crate) fn description_bytes(&self) -> u64 {
        self.description.len() as u64
    }

    /// Its description, as it travels.
    pub(crate) fn description(&self) -> &[u8] {
        &self.description
    }

    /// What it shares with the subfiles of a layout.
    pub(crate) fn shares(&self, known: &LocalState) -> Arc<Shares> {
        let mut latest = self.latest.lock();
        if let Some((serial, shares)) = &*latest
            && *serial == known.serial
        {
            return Arc::clone(shares);
        }
        let shares = shares_of(known, &self.view, &self.description);
        *latest = Some((known.serial, Arc::clone(&shares)));
        shares
    }

    /// Which bytes of it lie where, at whatever server.
    pub(crate) fn plan(&self, known: &LocalState) -> AccessPlan {
        AccessPlan::new(known.pieces().clone(), self.shares(known))
    }
}

/// What a view with this description shares with the subfiles of a layout; made once for all who have it.
pub(crate) fn shares_of(known: &LocalState, view: &View, description: &Arc<[u8]>) -> Arc<Shares> {
    let mut all = known.shares.lock();
    match all.get(description) {
        Some(shares) => Arc::clone(shares),
        None => {
            // Only this table knows a set whose views are gone.
            all.retain(|_, shares| Arc::strong_count(shares) > 1);
            let made = Arc::new(Shares::new(view.bytes(), known.pieces(), None));
            all.insert(Arc::clone(description), Arc::clone(&made));
            made
        }
    }
}
