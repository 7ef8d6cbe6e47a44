//! Who has what open: the part of the catalogue that is not durable.
//!
//! Opening a file writes nothing, so it costs no disk. After a restart clients that lived on open
//! their handles again; until the server says that this time is over the table is known to be
//! incomplete, and a client that needs to know that nobody uses a file is told to come back.
//!
//! Numbers carry the start of the catalogue in their upper bits, so a handle of an earlier life is
//! never taken for one of this.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use control::settled::{Farewell, SettledSizes};
use control::stamps::Subject;
use parking_lot::Mutex;

use crate::error::MetaError;
use crate::{ClientId, FileId, HandleId, Rights};

/// Bits of a handle's number that count within one start.
const COUNT_BITS: u32 = 40;

/// One opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) client: ClientId,
    pub(crate) user: u32,
    pub(crate) file: FileId,
    pub(crate) rights: Rights,
    /// Nobody else may have the file open, except with the same number, unless it is 0.
    pub(crate) unique: Option<u64>,
}

/// How many files may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenLimits {
    /// By one client.
    pub client: usize,
    /// By all clients of a user.
    pub user: usize,
}

/// All openings.
#[derive(Debug)]
pub(crate) struct Handles {
    pub(crate) limits: OpenLimits,
    next: u64,
    /// Clients of the start before may not be back yet.
    pub(crate) recovering: bool,
    open: HashMap<HandleId, Handle>,
    by_client: HashMap<ClientId, BTreeSet<HandleId>>,
    by_file: HashMap<FileId, BTreeSet<HandleId>>,
    by_user: HashMap<u32, usize>,
    /// How to take back what was changed since the last mark, the latest at the end.
    undo: Vec<Undo>,
    /// Slots of files that were opened for writing since this was last asked: what was told of their sizes may be wrong.
    touched: Vec<u32>,
    /// Told of every handle for writing, before its client hears of it.
    pub(crate) settled: Arc<Mutex<SettledSizes>>,
}

/// One change, to be taken back.
#[derive(Clone, Copy, Debug)]
enum Undo {
    Added(HandleId),
    Removed(HandleId, Handle),
    Recovered,
}

impl Handles {
    pub(crate) fn new(start: u64, recovering: bool, settled: SettledSizes) -> Self {
        Handles {
            limits: OpenLimits {
                client: usize::MAX,
                user: usize::MAX,
            },
            next: start << COUNT_BITS,
            recovering,
            open: HashMap::new(),
            by_client: HashMap::new(),
            by_file: HashMap::new(),
            by_user: HashMap::new(),
            undo: Vec::new(),
            touched: Vec::new(),
            settled: Arc::new(Mutex::new(settled)),
        }
    }

    /// What is changed from here on can be taken back.
    pub(crate) fn mark(&mut self) {
        self.undo.clear();
    }

    /// Takes back what was changed since the mark.
    pub(crate) fn take_back(&mut self) {
        while let Some(change) = self.undo.pop() {
            match change {
                Undo::Added(id) => {
                    self.take(id, Farewell::InDoubt);
                }
                Undo::Removed(id, handle) => self.put(id, handle),
                Undo::Recovered => self.recovering = true,
            }
        }
    }

    /// Slots of files that were opened for writing since this was last asked.
    pub(crate) fn take_touched(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.touched)
    }

    /// A client that is not back by now is not coming.
    pub(crate) fn end_recovery(&mut self) {
        if self.recovering {
            self.recovering = false;
            self.undo.push(Undo::Recovered);
        }
    }

    /// One more, unless its client or user has as many as he may.
    pub(crate) fn add(&mut self, handle: Handle) -> Result<HandleId, MetaError> {
        let (client, user) = (handle.client, handle.user);
        let of_client = self.by_client.get(&client).map_or(0, BTreeSet::len);
        let of_user = self.by_user.get(&user).copied().unwrap_or_default();
        let too_many = |who, open| Err(MetaError::TooManyOpen { who, open });
        if of_client >= self.limits.client {
            return too_many(client.to_string(), of_client);
        }
        if of_user >= self.limits.user {
            return too_many(format!("user {user}"), of_user);
        }
        let id = HandleId(self.next);
        self.next += 1;
        self.put(id, handle);
        self.undo.push(Undo::Added(id));
        Ok(id)
    }

    fn put(&mut self, id: HandleId, handle: Handle) {
        if handle.rights.allow(Rights::WRITE) {
            self.settled.lock().opened(handle.file);
            self.touched.push(Subject::Node(handle.file).slot());
        }
        self.open.insert(id, handle);
        *self.by_user.entry(handle.user).or_default() += 1;
        self.by_client.entry(handle.client).or_default().insert(id);
        self.by_file.entry(handle.file).or_default().insert(id);
    }

    /// The handle, if this client has it.
    pub(crate) fn get(&self, client: ClientId, id: HandleId) -> Option<Handle> {
        self.open.get(&id).copied().filter(|h| h.client == client)
    }

    pub(crate) fn remove(&mut self, id: HandleId, how: Farewell) {
        if let Some(handle) = self.take(id, how) {
            self.undo.push(Undo::Removed(id, handle));
        }
    }

    fn take(&mut self, id: HandleId, how: Farewell) -> Option<Handle> {
        let handle = self.open.remove(&id)?;
        if handle.rights.allow(Rights::WRITE) {
            self.settled.lock().closed(handle.file, how);
        }
        if let Some(set) = self.by_client.get_mut(&handle.client) {
            set.remove(&id);
            if set.is_empty() {
                self.by_client.remove(&handle.client);
            }
        }
        if let Some(count) = self.by_user.get_mut(&handle.user) {
            *count -= 1;
            if *count == 0 {
                self.by_user.remove(&handle.user);
            }
        }
        if let Some(set) = self.by_file.get_mut(&handle.file) {
            set.remove(&id);
            if set.is_empty() {
                self.by_file.remove(&handle.file);
            }
        }
        Some(handle)
    }

    /// The handles of a client, oldest first.
    pub(crate) fn of_client(&self, client: ClientId) -> Vec<HandleId> {
        self.by_client
            .get(&client)
            .map_or(Vec::new(), |set| set.iter().copied().collect())
    }

    /// The openings of a file.
    pub(crate) fn of_file(&self, file: FileId) -> impl Iterator<Item = (HandleId, Handle)> + '_ {
        self.by_file
            .get(&file)
            .into_iter()
            .flatten()
            .map(|id| (*id, self.open[id]))
    }

    /// Whether a client has the file open, or may have it.
    pub(crate) fn may_be_open(&self, file: FileId) -> bool {
        self.recovering || self.by_file.contains_key(&file)
    }

    pub(crate) fn is_open(&self, file: FileId) -> bool {
        self.by_file.contains_key(&file)
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
}
