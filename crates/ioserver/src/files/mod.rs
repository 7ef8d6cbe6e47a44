//! The files that this server has to do with: what it knows about each, and who may run accesses right now.
//!
//! [`Files`] finds the [`FileEntry`] of a file, keeps what it knows current by asking the metadata manager, and lets
//! accesses in. An access that knows more than this server waits until it has asked; one that knows less is told.
//!
//! | module | owns |
//! |---|---|
//! | `entry` | the gate of one file, composed of the next three |
//! | `version` | which state is known, and how old a request is |
//! | `fences` | ranges that are kept for a move or a client |
//! | `drain` | accesses that run |
//! | `state` | what the metadata manager said about a file, ready for use |
//! | `truncate` | cutting the subfiles of a file, and how far they reach |
//! | `remove` | removing bytes that the metadata manager has no use for |
//!
//! Left to others: the memory that clients of this host share (`direct`), what is done with bytes (`access`).

mod drain;
mod entry;
mod fences;
mod remove;
mod state;
mod truncate;
mod version;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use wire::message::cluster::{Announce, FileState, TakeServer, Tell};
use wire::{FileId, LayoutState, ServerId, Status};

use crate::applied::AppliedTruncates;
use crate::context::{Cluster, Identity, Storage};
use crate::direct::Direct;
use crate::owner::Owner;
use crate::refused::Refused;
use crate::sessions::Sessions;

pub(crate) use entry::{AccessTerms, Admission, Entrance, FileEntry, GatePass};
pub(crate) use fences::MOVE;
pub(crate) use state::{LocalState, OwnSubfile};

/// How often a server announces itself to an owner that asks meanwhile whether it grows.
const ANNOUNCEMENTS: usize = 16;

/// All files that this server has to do with.
pub(crate) struct Files {
    pub(crate) identity: Arc<Identity>,
    pub(crate) sessions: Arc<Sessions>,
    /// Memory that is shared with clients of this host.
    pub(crate) direct: Arc<Direct>,
    /// Truncates that must survive beside the store.
    pub(crate) applied: AppliedTruncates,
    /// How long a client may hold a range that others wait for.
    pub(crate) hold_wait: Duration,
    /// Where their bytes are.
    pub(crate) storage: Arc<Storage>,
    /// Who else is asked about them.
    pub(crate) cluster: Arc<Cluster>,
    entries: Entries,
}

impl Files {
    pub(crate) fn new(
        cluster: &Arc<Cluster>,
        storage: &Arc<Storage>,
        sessions: &Arc<Sessions>,
        direct: Direct,
        applied: AppliedTruncates,
        hold_wait: Duration,
    ) -> Self {
        Files {
            identity: Arc::clone(&storage.identity),
            sessions: Arc::clone(sessions),
            direct: Arc::new(direct),
            applied,
            hold_wait,
            cluster: Arc::clone(cluster),
            storage: Arc::clone(storage),
            entries: Entries::default(),
        }
    }

    /// The gate of a file, made if there is none.
    pub(crate) fn entry(&self, file: FileId) -> Arc<FileEntry> {
        let before = |file| (self.applied.epoch(file), self.identity.incarnation());
        self.entries.entry(file, before)
    }

    /// The gate of a file that was used before.
    pub(crate) fn get(&self, file: FileId) -> Option<Arc<FileEntry>> {
        self.entries.by_file.lock().get(&file).cloned()
    }

    /// All gates.
    pub(crate) fn all(&self) -> Vec<Arc<FileEntry>> {
        self.entries.by_file.lock().values().cloned().collect()
    }

    /// What is known about a file; the metadata manager is asked if nothing is.
    pub(crate) fn known(&self, entry: &Arc<FileEntry>) -> Result<Arc<LocalState>, Refused> {
        match entry.known() {
            Some(known) => Ok(known),
            None => self.refresh(entry),
        }
    }

    /// Asks the metadata manager about a file, and applies a truncate that this server has missed.
    pub(crate) fn refresh(&self, entry: &Arc<FileEntry>) -> Result<Arc<LocalState>, Refused> {
        let before = entry.known().map(|k| k.serial);
        let _one = entry.fetching();
        // The thread that held it before may have learnt what is needed.
        if let Some(known) = entry.known()
            && before.is_none_or(|serial| serial != known.serial)
        {
            return Ok(known);
        }
        self.ask_state(entry)
    }

    /// Asks about a file even if another thread has just done so: what that one was told may be older than the
    /// change that this is about.
    pub(crate) fn refresh_now(&self, entry: &Arc<FileEntry>) -> Result<Arc<LocalState>, Refused> {
        let _one = entry.fetching();
        self.ask_state(entry)
    }

    fn ask_state(&self, entry: &Arc<FileEntry>) -> Result<Arc<LocalState>, Refused> {
        let file = entry.id();
        let told = self.cluster.ask_manager(&FileState { file })?;
        let size = told.size;
        let before = entry.known();
        let is_void = match &before {
            None => true,
            Some(known) => must_void(known.layout(), &told.layout),
        };
        if is_void {
            self.void_maps(entry)?;
        }
        let known = entry.learn(told, self.identity.server);
        self.direct.show(entry);
        if before.is_none_or(|k| k.domain() != known.domain()) {
            // What cannot be moved now goes by message until it is.
            let _ = self.move_domain(entry, &known);
        }
        match size.truncate_to {
            _ if size.epoch <= entry.epoch() => {}
            Some(to) => self.cut(entry, &known, size.epoch, to)?,
            // All servers that had something to cut have done it.
            None => entry.raise_epoch(size.epoch, size.size),
        }
        Ok(known)
    }

    /// Lets an access in, after learning what is missing.
    pub(crate) fn enter(
        &self,
        owner: &Owner,
        entry: &Arc<FileEntry>,
        planned: &AccessTerms<'_>,
    ) -> Result<Admission, Refused> {
        for _ in 0..3 {
            match entry.enter(planned) {
                Entrance::In(entered) => return Ok(entered),
                Entrance::No(refused) => {
                    let file = planned
                        .file
                        .as_ref()
                        .filter(|_| refused.status == Status::Busy);
                    let ranges = file.map(std::slice::from_ref);
                    let holder = ranges.and_then(|r| entry.slow_holder(r, self.hold_wait));
                    let Some(holder) = holder else {
                        return Err(refused);
                    };
                    self.sessions.disconnect(holder);
                }
                Entrance::Behind => {
                    self.refresh(entry)?;
                }
                Entrance::New => self.be_taken(owner, entry)?,
            }
        }
        Err(Refused::new(
            Status::Busy,
            format!(
                "{}: the metadata manager does not know the state that the request was planned with yet",
                entry.id()
            ),
        ))
    }

    /// Has the owner of a file that moves here, or that an earlier start of this server had bytes of, take this server
    /// among those of the file; learns from it who is fenced and which lease numbers are refused. The owner may be
    /// this server.
    pub(crate) fn be_taken(&self, here: &Owner, entry: &Arc<FileEntry>) -> Result<(), Refused> {
        let known = self.known(entry)?;
        let owner = ServerId(known.owner().server);
        let file = entry.id();
        let start = entry.untold_start(&known);
        let taken = match owner == self.identity.server {
            true => here.take_server(file, owner, start),
            false => {
                let asked = self.cluster.ask_member(owner, &TakeServer { file, start });
                asked.map_err(Refused::from)
            }
        };
        let taken = match taken {
            Ok(taken) => taken,
            // It has another owner by now.
            Err(refused) if refused.status == Status::StaleLayout => {
                entry.forget();
                return Ok(());
            }
            Err(refused) => {
                let text = format!(
                    "{owner} owns {file} and does not know of this server yet: {}; repeat later",
                    refused.refusal.text
                );
                return Err(Refused::new(Status::Busy, text));
            }
        };
        // What runs of them was let in before they were refused; one of them may be who asks.
        let mut runs = false;
        for client in taken.fenced {
            runs |= !self.sessions.refuse(client);
        }
        if runs {
            let text =
                format!("{file}: accesses of clients that were declared dead end first; repeat");
            return Err(Refused::new(Status::Busy, text));
        }
        entry.taken(&known);
        entry.told(taken.number);
        self.direct.show(entry);
        Ok(())
    }

    /// Has the owner of a file know that it may grow here without a report, unless it does. To be called outside the gate of the
    /// file: the owner may wait for that.
    pub(crate) fn announce(&self, here: &Owner, entry: &Arc<FileEntry>) -> Result<(), Refused> {
        for _ in 0..ANNOUNCEMENTS {
            if self.announce_once(here, entry)? {
                return Ok(());
            }
        }
        let text = format!(
            "{}: the owner asks again and again how far it reaches; repeat",
            entry.id()
        );
        Err(Refused::new(Status::Busy, text))
    }

    /// Whether the owner knows.
    fn announce_once(&self, here: &Owner, entry: &Arc<FileEntry>) -> Result<bool, Refused> {
        let known = self.known(entry)?;
        let (file, owner) = (entry.id(), known.owner());
        let Some(begun) = entry.begin_announcement(owner) else {
            return Ok(true);
        };
        let server = ServerId(owner.server);
        let announced = match server == self.identity.server {
            true => here.announced(file, server),
            false => {
                let asked = self.cluster.ask_member(server, &Announce { file });
                asked.map_err(Refused::from)
            }
        };
        match announced {
            Ok(()) => Ok(entry.end_announcement(owner, begun)),
            Err(refused) => {
                if refused.status == Status::StaleLayout {
                    // It has another owner by now.
                    entry.forget();
                }
                let text = format!(
                    "{server} owns {file} and does not know that it grows here: {}; repeat",
                    refused.refusal.text
                );
                Err(Refused::new(Status::Busy, text))
            }
        }
    }

    /// Bytes were written behind the end of a file, by message; whether its owner asks here before it tells a size, so that nobody
    /// has to report them. To be called after they count in the lengths of subfiles, and outside the gate of the file.
    pub(crate) fn counts_growth(&self, here: &Owner, entry: &Arc<FileEntry>) -> bool {
        entry.grew();
        // The lengths were raised before: an owner that is told now, or was told and has not been told the contrary
        // since, finds them when it asks.
        self.announce(here, entry).is_ok()
    }

    /// What ends the connections that keep a drain waiting.
    pub(crate) fn hurry(&self) -> impl Fn(FileId) + '_ {
        |file| self.sessions.hurry(file)
    }

    /// Serves [`Tell`]: refuses lower lease numbers of a file.
    pub(crate) fn tell(&self, request: &Tell) -> Result<(), Refused> {
        self.entry(request.file).tell(request.number, &self.hurry())
    }
}

/// Whether maps of a file are void in a newer state: where bytes come back to a subfile whose space was given
/// back meanwhile, and where nothing is stored as it was.
fn must_void(older: &LayoutState, newer: &LayoutState) -> bool {
    let stores = |state: &LayoutState| -> Vec<u64> {
        let pieces = state.pieces.iter();
        pieces.flat_map(|p| p.stores.iter().copied()).collect()
    };
    let now = stores(newer);
    let comes_back = control::moves::is_cancelled(newer) && !control::moves::is_cancelled(older);
    comes_back || !stores(older).iter().any(|store| now.contains(store))
}

/// The gates by file. Those of files that are not in use and that say nothing which a new one would not say are
/// forgotten when there are many, so their number is bounded by what clients have registered.
#[derive(Default)]
struct Entries {
    by_file: Mutex<HashMap<FileId, Arc<FileEntry>>>,
    /// How many there may be before it is looked which are needed.
    look_at: AtomicUsize,
}

/// Gates that are kept whether they are needed or not.
const KEPT_GATES: usize = 1 << 14;

impl Entries {
    /// The gate of a file, made if there is none; `before` says what was applied at earlier starts, and which start
    /// this is.
    fn entry(&self, file: FileId, before: impl Fn(FileId) -> (u64, u64)) -> Arc<FileEntry> {
        let mut entries = self.by_file.lock();
        if let Some(entry) = entries.get(&file) {
            return Arc::clone(entry);
        }
        if entries.len() >= self.look_at.load(Ordering::Relaxed).max(KEPT_GATES) {
            entries.retain(|id, entry| {
                Arc::strong_count(entry) > 1 || !entry.is_like_new(before(*id).0)
            });
            // So that looking costs each newcomer a constant.
            self.look_at.store(2 * entries.len(), Ordering::Relaxed);
        }
        let (epoch, start) = before(file);
        let made = Arc::new(FileEntry::new(file, epoch, start));
        entries.insert(file, Arc::clone(&made));
        made
    }

    /// Forgets a file that nothing here uses any more.
    fn drop_unused(&self, file: FileId) {
        let mut entries = self.by_file.lock();
        if entries
            .get(&file)
            .is_some_and(|e| Arc::strong_count(e) == 1)
        {
            entries.remove(&file);
        }
    }
}

#[cfg(test)]
mod tests;
