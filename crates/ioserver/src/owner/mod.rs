//! The role of owner: size, locks, shared pointers and appends of the files that this server owns.
//!
//! The machines are in `control`; here they get threads. A request runs in the thread of its
//! connection: it takes the file's mutex, gives the machine an event, and does outside of the mutex
//! what the machine wants from others ([`Cluster`]), feeding the answers back until nothing is left.
//! A request that waits (for a lock, for admission, for a truncate) waits on a bell of its own.
//!
//! ```text
//! request --event--> machine --effects-+--> answers for waiting requests: outcome, bell
//!                       ^              +--> work: ask the manager or servers, without the mutex
//!                       +---- events ------------+
//! ```
//!
//! | file | what |
//! |---|---|
//! | `size`, `truncate`, `report` | size, growth, truncate; what the catalogue is told |
//! | `gather` | asking servers that may have grown a file |
//! | `lock` | atomic mode: admission, locks |
//! | `append`, `pointer` | places behind the end, shared pointers |
//! | `claims` | how much of that clients and users have |
//! | `clients`, `members` | who left or died; which servers are there |
//! | `file`, `work`, `load` | one file and its waiting requests; asking others; the first question |
//!
//! Invariants
//! - No mutex is held while others are asked. Locks are taken in the order table of files, file,
//!   list of members or dead clients, and the table is never held together with a file.
//! - One file's slowness is its own: nothing of one file waits for another.
//! - A client that died gets nothing any more: it is in `dead` before any file hears of it, and each
//!   request looks there under the file's mutex.
//! - No request waits for ever for a server that is not there: what depends on servers that cannot be
//!   asked is refused when the patience is over. Locks wait without limit, for their holders.
//!
//! What is left to others: decoding, rights behind a view number, and noticing death.

mod append;
mod claims;
mod clients;
mod cluster;
mod file;
mod gather;
mod load;
mod lock;
mod members;
mod pointer;
mod report;
mod size;
mod statistics;
#[cfg(test)]
mod tests;
mod truncate;
mod work;

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use layout::View;
use parking_lot::Mutex;
use wire::message::catalogue::Member;
use wire::message::cluster::PointerIs;
use wire::{ClientId, FileId, Rights, ServerId, Status};

use crate::fenced::FencedClients;
use crate::limits::Limits;
pub use crate::refused::Refused;
use claims::MostClaims;
pub use cluster::Cluster;
use file::OwnedFile;
use statistics::Counters;

/// Who asks, as the dispatcher has found out from the number of a registered view.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// The client.
    pub client: ClientId,
    /// Who it works for.
    pub user: u32,
    /// The file of the view.
    pub file: FileId,
    /// What the client may do with it.
    pub rights: Rights,
    /// Whether the capability that says so is over.
    pub has_expired: bool,
    /// The view.
    pub view: &'a View,
    /// Whether the connection is still there; asked now and then by requests that wait.
    pub is_connected: &'a dyn Fn() -> bool,
    /// Told now and then which other clients hold what the request waits for.
    pub waits_for: &'a dyn Fn(&BTreeSet<ClientId>),
}

impl fmt::Debug for Asker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Asker({} for {} of {})",
            self.client, self.rights, self.file
        )
    }
}

impl Asker<'_> {
    fn demand(&self, rights: Rights) -> Result<(), Refused> {
        if !self.rights.allow(rights) {
            return refuse(
                Status::PermissionDenied,
                format!("the view is for {}; this needs {rights}", self.rights),
            );
        }
        if self.has_expired {
            let text = "the capability of the view has expired";
            return refuse(Status::ExpiredCapability, text);
        }
        Ok(())
    }
}

/// A refusal without detail.
fn refuse<T>(status: Status, text: impl Into<String>) -> Result<T, Refused> {
    Err(Refused::new(status, text))
}

/// How long a request waits for servers that cannot be asked, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(10);

/// The owner of files.
pub struct Owner {
    cluster: Arc<dyn Cluster>,
    patience: Duration,
    files: Mutex<HashMap<FileId, Arc<OwnedFile>>>,
    /// Files that this start has owned and let go; their sizes have to be asked for.
    let_go: Mutex<HashSet<FileId>>,
    /// Shared pointers of files that this server is about to own.
    inherited: Mutex<HashMap<FileId, Vec<PointerIs>>>,
    members: Mutex<BTreeMap<ServerId, Member>>,
    dead: Mutex<FencedClients>,
    /// Most locks, places and shared pointers that clients and users have.
    most_claims: MostClaims,
    counters: Counters,
    /// Names views.
    hasher: RandomState,
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner")
            .field("server", &self.cluster.own_server())
            .finish_non_exhaustive()
    }
}

impl Owner {
    /// Owns nothing yet; files are loaded when they are first asked about.
    pub fn new(cluster: Arc<dyn Cluster>) -> Self {
        Owner {
            cluster,
            patience: PATIENCE,
            files: Mutex::default(),
            let_go: Mutex::default(),
            inherited: Mutex::default(),
            members: Mutex::default(),
            dead: Mutex::default(),
            most_claims: MostClaims::new(Limits::default().locks),
            counters: Counters::default(),
            hasher: RandomState::new(),
        }
    }

    /// Sets another limit for requests that wait for servers which cannot be asked.
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets another limit for what a client has in one file; its user has [`serving::CLIENTS_OF_A_USER`] times as much in all.
    pub fn with_most_claims(mut self, most: usize) -> Self {
        self.most_claims = MostClaims::new(most);
        self
    }

    fn is_dead(&self, client: ClientId) -> bool {
        self.dead.lock().contains(client)
    }

    /// All files, as of now.
    fn files(&self) -> Vec<Arc<OwnedFile>> {
        self.files.lock().values().cloned().collect()
    }
}
