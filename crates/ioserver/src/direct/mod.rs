//! Direct access, the server's side: who shares memory with this server, and how that is taken back.
//!
//! ```text
//!  Attach -> a page per client, the table of the server
//!  Map    -> through the gate of the file: where its bytes are, good for one epoch of its entry
//!  revoke    gate closed -> epoch raised -> claims waited for, then revoked -> memory replaced
//!  collect   ends read -> lengths are raised -> marks taken -> their extents are dirty -> the store writes them as it does
//! ```
//!
//! Invariants
//! - A map is made inside the gate of its file, and an operation that moves bytes closes the gate first. So no
//!   map can come between a revocation and what it was made for.
//! - A client with maps of a file is in the list of the file until its claims were looked at.
//! - Memory that a revoked writer may store into is in the quarantine, not in the file, when the gate
//!   opens again; or the operation fails and the next one finds the same writer.
//! - Extents stay where they are while a client that had them mapped may store into them: a revocation
//!   lets go of them when it is over, and no other of the same file is under way.
//! - Nothing that a client writes into its page is more than a reason to wait a little, once.
//!
//! The state has one lock, and no thread waits for a client while it holds it.
//!
//! Left to others: the words in shared memory (`direct`), extents (`store`), the gate (`files`).

mod attached;
mod ends;
mod former;
mod map;
mod marks;
mod quarantine;
mod revoke;
mod windows;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::direct::ServerTable;
use parking_lot::Mutex;
use serving::{PerUser, Taken};
use store::{Subfile, SubfileId};
use wire::message::session::Counter;
use wire::{FileId, Status};

use crate::files::FileEntry;
use crate::kept::Records;
use crate::refused::Refused;
use crate::sessions::Client;
use crate::statistics::counter;

pub(crate) use map::{GivenSegments, attach, map};

pub(crate) use attached::AttachedClient;
use ends::ClientEnds;
pub(crate) use former::FormerClients;
use marks::ClientMarks;
pub(crate) use quarantine::QuarantinedMemory;
use revoke::{Stores, StuckWriter};
use windows::Windows;

/// Clients that may share memory with a server at a time, half of them of one user. Each costs it two descriptors, two more with a keeper, and a page.
const MOST_CLIENTS: usize = 4096;
/// Files whose entries are tried when all are taken.
const VICTIMS: usize = 64;

/// Whether a client shares memory.
#[derive(Default)]
pub(crate) enum Attachment {
    /// Not yet.
    #[default]
    None,
    /// With this page.
    Open(Arc<AttachedClient>, Taken),
    /// No longer.
    Over,
}

/// What was counted.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) maps: AtomicU64,
    pub(crate) mapped_extents: AtomicU64,
    pub(crate) revocations: AtomicU64,
    pub(crate) claims_waited: AtomicU64,
    pub(crate) claims_revoked: AtomicU64,
    pub(crate) replaced_bytes: AtomicU64,
    pub(crate) marks_taken: AtomicU64,
    pub(crate) marks_set_again: AtomicU64,
}

/// One client with maps of a file.
struct Mapper {
    attached: Arc<AttachedClient>,
    /// The number of its last map.
    last_map: u64,
    /// What it may store into.
    stores: Stores,
}

/// One file with an entry in the table.
struct FileMaps {
    entry: u32,
    /// When it was last mapped; numbers maps too.
    used_at: u64,
    /// What is mapped of it.
    subfiles: HashMap<SubfileId, Arc<dyn Subfile>>,
    /// By the number of their page.
    clients: HashMap<u64, Mapper>,
    /// Revoked writers whose memory could not be replaced yet.
    unsettled: Vec<StuckWriter>,
    /// By the number of their page, of clients that may have stored since their marks were collected.
    marks: HashMap<u64, ClientMarks>,
    /// By the number of their page, of clients that may store.
    ends: HashMap<u64, ClientEnds>,
    /// Revocations that are not over.
    revoking: u32,
    /// Maps with a number below this are void.
    void_before: u64,
}

#[derive(Default)]
struct State {
    files: HashMap<FileId, FileMaps>,
    quarantine: Vec<QuarantinedMemory>,
    uses: u64,
}

/// Counts clients that share memory.
fn sharers(most: usize) -> Arc<PerUser> {
    PerUser::fixed_and_shared("clients that share memory", most)
}

/// What a server shares with clients of its host.
pub(crate) struct Direct {
    is_on: bool,
    /// How long claims are waited for before they are revoked.
    claim_wait: Duration,
    table: OnceLock<Option<ServerTable>>,
    state: Mutex<State>,
    /// Those that have a page.
    clients: Arc<PerUser>,
    windows: Windows,
    /// What the next start has to know.
    records: Records,
    pub(crate) counters: Counters,
}

impl Direct {
    pub(crate) fn new(is_on: bool, claim_wait: Duration) -> Self {
        Direct {
            is_on,
            claim_wait,
            table: OnceLock::new(),
            state: Mutex::default(),
            clients: sharers(MOST_CLIENTS),
            windows: Windows::default(),
            records: Records::default(),
            counters: Counters::default(),
        }
    }

    /// With records for the next start, and what is left of clients of the process before, whose pages have lower numbers than
    /// this.
    pub(crate) fn with_records(
        mut self,
        records: Records,
        quarantined: Option<QuarantinedMemory>,
        next_page: u64,
    ) -> Self {
        self.records = records;
        let state = self.state.get_mut();
        state.uses = next_page;
        state.quarantine.extend(quarantined);
        self
    }

    /// The table, made for the first client that attaches; nothing if the system or the keeper refuses.
    fn make_table(&self) -> Option<ServerTable> {
        let table = ServerTable::new().ok()?;
        self.records.keep_table(&table).ok()?;
        Some(table)
    }

    /// Whether memory is shared at all.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// The table, if a client ever attached.
    fn table(&self) -> Option<&ServerTable> {
        self.table.get()?.as_ref()
    }

    /// Says how often memory was not ready, for those who get it with an answer.
    fn set_scarcity(&self, count: u64) {
        if let Some(table) = self.table() {
            table.set_scarcity(count);
        }
    }

    /// The page of a client, made if it has none, and the table.
    fn attach(
        &self,
        client: &Client,
        user: u32,
        pid: u64,
    ) -> Result<(Arc<AttachedClient>, &ServerTable), Refused> {
        let off = || {
            let text = "this server shares no memory; go by message";
            Refused::new(Status::Unsupported, text)
        };
        if !self.is_on {
            return Err(off());
        }
        let table = self.table.get_or_init(|| self.make_table());
        let table = table.as_ref().ok_or_else(off)?;
        let mut found = client.attached.lock();
        match &*found {
            Attachment::Open(attached, _) => return Ok((Arc::clone(attached), table)),
            Attachment::Over => return Err(off()),
            Attachment::None => {}
        }
        let taken = self.clients.take(user).map_err(|(status, refusal)| {
            Refused::new(status, format!("{}; go by message", refusal.text))
        })?;
        let mut state = self.state.lock();
        state.uses += 1;
        let attached = Arc::new(AttachedClient::new(state.uses, pid, self.records.clone())?);
        *found = Attachment::Open(Arc::clone(&attached), taken);
        Ok((attached, table))
    }

    /// The client gets no further page, and the one it has counts no longer.
    fn close(&self, client: &Client) -> Option<Arc<AttachedClient>> {
        let before = std::mem::replace(&mut *client.attached.lock(), Attachment::Over);
        match before {
            Attachment::Open(attached, taken) => {
                // Another client may have its place from now on.
                drop(taken);
                Some(attached)
            }
            _ => None,
        }
    }

    /// Whether a client has no map of a file that is still good.
    fn is_first_map(&self, file: FileId, attached: &AttachedClient) -> bool {
        let state = self.state.lock();
        let maps = state.files.get(&file);
        maps.is_none_or(|maps| !maps.clients.contains_key(&attached.number))
    }

    /// Notes that a client gets a map of a file: the number of the map, and entry and epoch that it is good for.
    fn register(
        &self,
        of: &FileEntry,
        attached: &Arc<AttachedClient>,
    ) -> Result<(u64, u32, u64), Refused> {
        let file = of.id();
        let none = || {
            let text = "no entry of the control table is free; go by message";
            Refused::new(Status::QuotaExceeded, text)
        };
        let table = self.table().ok_or_else(none)?;
        let mut state = self.state.lock();
        let state = &mut *state;
        state.uses += 1;
        if !state.files.contains_key(&file) {
            let entry = match table.take() {
                Some(entry) => entry,
                None => {
                    self.give_up_some(table, state);
                    table.take().ok_or_else(none)?
                }
            };
            let maps = FileMaps {
                entry,
                used_at: 0,
                subfiles: HashMap::new(),
                clients: HashMap::new(),
                unsettled: Vec::new(),
                marks: HashMap::new(),
                ends: HashMap::new(),
                revoking: 0,
                void_before: 0,
            };
            state.files.insert(file, maps);
            self.records.takes_entry(entry, file);
        }
        let maps = state.files.get_mut(&file).expect("made above");
        maps.used_at = state.uses;
        // Under the lock: what changes the word of the file comes here afterwards, or has come before.
        table.set_fence(maps.entry, of.word());
        let mapper = maps
            .clients
            .entry(attached.number)
            .or_insert_with(|| Mapper {
                attached: Arc::clone(attached),
                last_map: 0,
                stores: Stores::default(),
            });
        mapper.last_map = state.uses;
        Ok((maps.used_at, maps.entry, table.epoch(maps.entry)))
    }

    /// Tells direct clients of a file with which step they may use their maps, or that they may not.
    pub(crate) fn show(&self, of: &FileEntry) {
        let Some(table) = self.table() else {
            return;
        };
        let state = self.state.lock();
        if let Some(maps) = state.files.get(&of.id()) {
            table.set_fence(maps.entry, of.word());
        }
    }

    /// Notes what is in a map of a file. If it was revoked since it was registered, it is void and what
    /// is in it of no interest.
    fn note(
        &self,
        file: FileId,
        attached: &AttachedClient,
        stores: Stores,
        subfiles: impl Iterator<Item = (SubfileId, Arc<dyn Subfile>)>,
    ) {
        let mut state = self.state.lock();
        let Some(maps) = state.files.get_mut(&file) else {
            return;
        };
        maps.subfiles.extend(subfiles);
        if let Some(mapper) = maps.clients.get_mut(&attached.number) {
            mapper.stores.add(stores);
        }
    }

    /// Files that a client has maps of.
    fn files_of(&self, attached: &AttachedClient) -> Vec<FileId> {
        let state = self.state.lock();
        let of = state.files.iter();
        of.filter(|(_, maps)| maps.clients.contains_key(&attached.number))
            .map(|(file, _)| *file)
            .collect()
    }

    /// Whether a client has maps of a file, or may still store into it.
    fn has_maps(&self, file: FileId) -> bool {
        let state = self.state.lock();
        let maps = state.files.get(&file);
        maps.is_some_and(|maps| !maps.clients.is_empty() || !maps.unsettled.is_empty())
    }

    /// Whether a client shares memory.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.state.lock().files.is_empty()
    }

    /// A file is no more; its maps were revoked.
    pub(crate) fn forget(&self, file: FileId) {
        let Some(table) = self.table() else {
            return;
        };
        let mut state = self.state.lock();
        let is_done = |maps: &FileMaps| {
            maps.clients.is_empty() && maps.unsettled.is_empty() && maps.revoking == 0
        };
        if state.files.get(&file).is_some_and(is_done)
            && let Some(mut maps) = state.files.remove(&file)
        {
            self.records.gives_entry(maps.entry);
            table.give(maps.entry);
            self.windows.forget(maps.subfiles.keys());
            maps.free_words();
        }
    }

    /// Counters and what there is at the moment.
    pub(crate) fn statistics(&self) -> Vec<Counter> {
        self.sweep();
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        let state = self.state.lock();
        let aside: u64 = state.quarantine.iter().map(QuarantinedMemory::bytes).sum();
        let marked: u64 = state.files.values().map(FileMaps::marked).sum();
        vec![
            counter("direct_clients", self.clients.in_all() as u64),
            counter("direct_entries", state.files.len() as u64),
            counter("direct_quarantined_bytes", aside),
            counter("direct_maps", of(&counters.maps)),
            counter("direct_mapped_extents", of(&counters.mapped_extents)),
            counter("direct_revocations", of(&counters.revocations)),
            counter("direct_claims_waited", of(&counters.claims_waited)),
            counter("direct_claims_revoked", of(&counters.claims_revoked)),
            counter("direct_replaced_bytes", of(&counters.replaced_bytes)),
            counter("direct_marked_extents", marked),
            counter("direct_marks_taken", of(&counters.marks_taken)),
            counter("direct_marks_set_again", of(&counters.marks_set_again)),
        ]
    }
}

impl Direct {
    /// Frees entries of files that were mapped longest ago and that no client copies at the moment. Nothing
    /// of them moves, so no client has to be waited for.
    fn give_up_some(&self, table: &ServerTable, state: &mut State) {
        let mut oldest: Vec<(u64, FileId)> = state
            .files
            .iter()
            .filter(|(_, maps)| maps.unsettled.is_empty() && maps.revoking == 0)
            .map(|(file, maps)| (maps.used_at, *file))
            .collect();
        oldest.sort_unstable();
        for (_, file) in oldest.into_iter().take(VICTIMS) {
            let maps = &state.files[&file];
            let epoch = table.raise(maps.entry);
            let is_busy = maps.clients.values().any(|mapper| {
                let page = &mapper.attached.page;
                page.active(maps.entry, epoch).next().is_some()
            });
            if !is_busy && let Some(mut maps) = state.files.remove(&file) {
                self.records.gives_entry(maps.entry);
                table.give(maps.entry);
                maps.collect();
                maps.clients.clear();
                self.let_go(&mut maps);
            }
        }
    }

    /// No client has maps of a file any more, and none is waited for: its extents may be evicted, and what lies ahead of them
    /// goes back.
    fn let_go(&self, maps: &mut FileMaps) {
        for subfile in maps.subfiles.values() {
            subfile.unmap(u64::MAX);
            subfile.trim();
        }
        self.windows.forget(maps.subfiles.keys());
        maps.subfiles.clear();
        maps.free_words();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::direct::{ClientPage, ENTRIES};
    use wire::ClientId;

    use crate::limits::Limits;
    use crate::sessions::{Sessions, Who};

    #[test]
    fn half_of_those_who_share_memory_are_of_one_user() {
        let mut direct = Direct::new(true, Duration::from_secs(60));
        direct.clients = sharers(4);
        let sessions = Sessions::default();
        let pid = u64::from(std::process::id());
        let client = |client: u64, user| {
            let client = ClientId(client);
            let who = Who::Client { client, user };
            let session = sessions.open(who, &Limits::default()).unwrap().0;
            Arc::clone(&session.client)
        };
        let is_refused = |client: &Client, user: u32, who: &str| {
            let refused = direct.attach(client, user, pid).map(drop).unwrap_err();
            assert_eq!(refused.status, Status::QuotaExceeded);
            let text = &refused.refusal.text;
            assert!(
                text.contains(who) && text.contains("go by message"),
                "{text}"
            );
        };
        let of_one: Vec<_> = (1..=3).map(|number| client(number, 1)).collect();
        direct.attach(&of_one[0], 1, pid).unwrap();
        direct.attach(&of_one[1], 1, pid).unwrap();
        // Asking again takes nothing.
        direct.attach(&of_one[1], 1, pid).unwrap();
        is_refused(&of_one[2], 1, "user 1 has 2");
        let others = [client(4, 2), client(5, 2), client(6, 3)];
        direct.attach(&others[0], 2, pid).unwrap();
        direct.attach(&others[1], 2, pid).unwrap();
        is_refused(&others[2], 3, "all users have 4");
        direct.close(&of_one[0]);
        direct.attach(&others[2], 3, pid).unwrap();
        is_refused(&of_one[2], 1, "all users have 4");
        direct.close(&others[0]);
        direct.attach(&of_one[2], 1, pid).unwrap();
    }

    #[test]
    fn entries_of_files_that_nobody_copies_are_used_again() {
        let direct = Direct::new(true, Duration::from_secs(60));
        let pid = u64::from(std::process::id());
        let attached = Arc::new(AttachedClient::new(1, pid, Records::default()).unwrap());
        let page = ClientPage::map(attached.page.descriptor(), attached.page.len()).unwrap();
        let table = direct.table.get_or_init(|| ServerTable::new().ok());
        let table = table.as_ref().unwrap();
        let register = |file: u64| {
            let (_, entry, epoch) = direct
                .register(&FileEntry::new(FileId(file), 0, 1), &attached)
                .unwrap();
            (entry, epoch)
        };
        let first: Vec<(u32, u64)> = (0..3).map(&register).collect();
        for file in 3..u64::from(ENTRIES) {
            register(file);
        }
        // The first file is in use, the second one is not.
        let claim = page.claim(first[0].0, first[0].1, false).unwrap();
        let next = register(u64::MAX);
        assert!(next.0 != first[0].0 && next.1 > 1);
        assert!(claim.end(), "nobody took it back");
        let state = direct.state.lock();
        assert!(state.files.contains_key(&FileId(0)));
        assert!(!state.files.contains_key(&FileId(1)));
        assert_ne!(table.epoch(first[1].0), first[1].1, "maps of it are void");
        assert!(state.files.len() <= ENTRIES as usize);
    }
}
