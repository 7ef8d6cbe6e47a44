//! Registered views: what a number of a client stands for, and what is compiled from it.
//!
//! Equal descriptions of one file share one [`Shares`], whoever registered them: the bytes of a
//! description are its identity. Shares belong to one layout; they are made when an access first
//! touches them and go when the layout goes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use kernels::Share;
use layout::View;
use wire::{ClientId, FileId, Rights};

use crate::ahead::Reading;
use crate::files::{Known, lock};
use crate::gateway::{History, Split};
use crate::seen_uses::{SeenUses, ViewUse};
use crate::set_view::Permit;

/// A view that a client registered.
pub(crate) struct Registered {
    /// Of which file.
    pub file: FileId,
    /// What its capability allows.
    pub rights: Rights,
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
    pub(crate) reading: Reading,
    /// Accesses by message through it, for the profile of the file.
    pub(crate) used: ViewUse,
    client: ClientId,
    seen: Arc<SeenUses>,
    split: Mutex<Option<Arc<Split>>>,
    description: Arc<[u8]>,
    latest: Mutex<Option<Arc<Shares>>>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.used
            .end(&self.seen, self.client, self.file, &self.view);
    }
}

impl std::fmt::Debug for Registered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registered")
            .field("file", &self.file)
            .field("rights", &self.rights)
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}

/// What a view shares with the subfiles that this server has of one layout, in their order.
pub(crate) struct Shares {
    serial: u64,
    list: Box<[OnceLock<Share>]>,
}

impl Shares {
    /// With the subfile at a position of [`Shape::own`](crate::known::Shape::own).
    pub(crate) fn with(&self, view: &View, known: &Known, slot: usize) -> &Share {
        self.list[slot].get_or_init(|| Share::new(view.bytes(), &known.own[slot].bytes))
    }
}

impl Registered {
    pub(crate) fn new(
        entry: Arc<crate::files::FileEntry>,
        view: View,
        description: Arc<[u8]>,
        permit: &Permit,
        client: ClientId,
        seen: Arc<SeenUses>,
    ) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        Registered {
            file: entry.id(),
            rights: permit.rights,
            view,
            entry,
            works_for: permit.works_for,
            capability: permit.capability.as_slice().into(),
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            history: History::default(),
            used: ViewUse::default(),
            client: permit.works_for.unwrap_or(client),
            seen,
            reading: Reading::default(),
            split: Mutex::default(),
            description,
            latest: Mutex::default(),
        }
    }

    /// Bytes that count against the quota of its client.
    pub(crate) fn description_bytes(&self) -> u64 {
        self.description.len() as u64
    }

    /// Its description, as it travels.
    pub(crate) fn description(&self) -> &[u8] {
        &self.description
    }

    /// What it shares with all subfiles of a layout, wherever they are.
    pub(crate) fn split(&self, known: &Known) -> Arc<Split> {
        let mut kept = lock(&self.split);
        if let Some(split) = &*kept
            && (split.serial, split.step) == (known.serial, known.step())
        {
            return Arc::clone(split);
        }
        let split = Arc::new(Split::new(known, kept.as_deref()));
        *kept = Some(Arc::clone(&split));
        split
    }

    /// What it shares with the subfiles of a layout.
    pub(crate) fn shares(&self, known: &Known) -> Arc<Shares> {
        let mut latest = lock(&self.latest);
        if let Some(shares) = &*latest
            && shares.serial == known.serial
        {
            return Arc::clone(shares);
        }
        let shares = shares_of(known, &self.description);
        *latest = Some(Arc::clone(&shares));
        shares
    }
}

/// What a view with this description shares with the subfiles of a layout; made once for all who have it.
pub(crate) fn shares_of(known: &Known, description: &Arc<[u8]>) -> Arc<Shares> {
    let mut all = lock(&known.shares);
    match all.get(description) {
        Some(shares) => Arc::clone(shares),
        None => {
            // Nobody but this table knows a set whose views are gone.
            all.retain(|_, shares| Arc::strong_count(shares) > 1);
            let made = Arc::new(Shares {
                serial: known.serial,
                list: known.own.iter().map(|_| OnceLock::new()).collect(),
            });
            all.insert(Arc::clone(description), Arc::clone(&made));
            made
        }
    }
}
