//! One owned file: its machines, its servers, and the requests that wait for it.
//!
//! Everything is behind one mutex. [`State::size_event`] and [`State::lock_event`] are the only ways to
//! the machines; they put answers where the waiting requests find them and return the rest as
//! [`Work`]. A waiting request has an entry here from before its event until it leaves.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use control::locks::{self, LockManager, Ticket};
use control::pointers::{Appends, SharedPointers};
use control::sizes::{self, SizeOwner};
use parking_lot::{Condvar, Mutex, MutexGuard};
use wire::message::file::{AdmitAnswer, SizeIs};
use wire::{ClientId, FileId, HandleId, ServerId, Status, Time};

use super::claims::Claims;
use super::gather::Gatherings;
use super::statistics::{Counters, count};
use super::work::Work;
use super::{Asker, Owner, Refused, refuse};

/// How often a waiting request looks whether its client is still there.
const LOOK: Duration = Duration::from_millis(200);

pub(super) type HandleKey = (ClientId, HandleId);

/// A file and its mutex.
#[derive(Debug)]
pub(super) struct OwnedFile {
    pub(super) id: FileId,
    state: Mutex<State>,
    /// Rung when the file is loaded, its size known, or a report done.
    pub(super) changed: Condvar,
}

/// Whether the file can be asked about.
#[derive(Debug)]
pub(super) enum Phase {
    Loading,
    Ready,
    /// It is no longer, or never was, owned here.
    Over(Refused),
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct Wait<T> {
    pub(super) outcome: Option<Result<T, Refused>>,
    pub(super) bell: Arc<Condvar>,
}

impl<T> Wait<T> {
    pub(super) fn new(bell: &Arc<Condvar>) -> Self {
        Wait {
            outcome: None,
            bell: Arc::clone(bell),
        }
    }

    /// The first outcome counts.
    pub(super) fn end(&mut self, outcome: Result<T, Refused>) {
        self.outcome.get_or_insert(outcome);
        self.bell.notify_all();
    }
}

/// A truncate that waits: for its turn, then for itself.
#[derive(Debug)]
pub(super) struct TruncateWait {
    pub(super) wait: Wait<()>,
    /// It is its turn: the waiting thread asks for the intent.
    pub(super) is_next: bool,
    /// The metadata manager has found that it was done when it came before.
    pub(super) was_done: bool,
    /// What the metadata manager had against it.
    pub(super) refusal: Option<Refused>,
}

/// A server that has bytes of the file.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The starts of it that the layout names.
    pub(super) incarnations: BTreeSet<u64>,
    /// The start of it that the list of members named last.
    pub(super) member: Option<u64>,
    /// Changes whenever it goes or comes back: answers to older questions count for nothing.
    pub(super) spell: u64,
    pub(super) is_gone: bool,
    /// It is there but did not do what the size needs, for this reason; it is asked again.
    pub(super) late: Option<(Status, String)>,
}

/// Everything about a file that changes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// The step of the layout state whose servers these are.
    pub(super) step: u64,
    pub(super) sizes: SizeOwner,
    pub(super) locks: LockManager,
    pub(super) pointers: SharedPointers,
    pub(super) appends: Appends,
    pub(super) servers: BTreeMap<ServerId, Part>,
    /// Clients that may have locks, leases, pointers or places.
    pub(super) clients: BTreeSet<ClientId>,
    /// What they have of what their users may have.
    pub(super) claims: Claims,
    pub(super) lock_waits: HashMap<Ticket, Wait<()>>,
    /// By handle and a number of the wait: several threads may ask for one handle.
    pub(super) admit_waits: Vec<(HandleKey, u64, Wait<AdmitAnswer>)>,
    pub(super) truncate_waits: HashMap<Ticket, TruncateWait>,
    /// Dead clients with reserved places, and the servers that do not refuse them yet.
    pub(super) append_fences: BTreeMap<ClientId, BTreeSet<ServerId>>,
    /// Work that a server did not do; it is there, and is asked again.
    pub(super) again: Vec<Work>,
    /// Whether the intent of this truncate is in the catalogue is not known.
    pub(super) doubt: Option<Ticket>,
    /// All servers have applied the truncate of this epoch, and the catalogue does not know it.
    pub(super) unfinished: Option<u64>,
    /// Counts reports of writes; what the catalogue knows lags behind.
    pub(super) written: u64,
    pub(super) reported: u64,
    pub(super) modified: Time,
    pub(super) is_reporting: bool,
    pub(super) gatherings: Gatherings,
    /// Since when the size is told to the manager, which gives the file another layout; no place is reserved until that is
    /// over, since the next owner would not know it.
    pub(super) handing_over: Option<Instant>,
    /// The `handing_over` whose manager is gone, while the next one has not said who owns the file.
    pub(super) owed_resume: Option<Instant>,
    /// The next owner may know the shared pointers already.
    pub(super) has_told_pointers: bool,
    numbers: u64,
}

impl OwnedFile {
    pub(super) fn new(id: FileId) -> Self {
        OwnedFile {
            id,
            state: Mutex::new(State {
                phase: Phase::Loading,
                step: 0,
                sizes: SizeOwner::new([]),
                locks: LockManager::new([]),
                pointers: SharedPointers::default(),
                appends: Appends::default(),
                servers: BTreeMap::new(),
                clients: BTreeSet::new(),
                claims: Claims::default(),
                lock_waits: HashMap::new(),
                admit_waits: Vec::new(),
                truncate_waits: HashMap::new(),
                append_fences: BTreeMap::new(),
                again: Vec::new(),
                doubt: None,
                unfinished: None,
                written: 0,
                reported: 0,
                modified: Time(0),
                is_reporting: false,
                gatherings: Gatherings::default(),
                handing_over: None,
                owed_resume: None,
                has_told_pointers: false,
                numbers: 0,
            }),
            changed: Condvar::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Its state, once it is known what that is.
    pub(super) fn wait_loaded(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        let is_loading = |state: &mut State| matches!(state.phase, Phase::Loading);
        serving::waiting(|| self.changed.wait_while(&mut state, is_loading));
        state
    }

    /// The file for a request: it is owned here, and the client is not dead.
    pub(super) fn enter(
        &self,
        owner: &Owner,
        asker: &Asker<'_>,
    ) -> Result<MutexGuard<'_, State>, Refused> {
        let state = self.lock();
        if let Phase::Over(refused) = &state.phase {
            return Err(refused.clone());
        }
        if owner.is_dead(asker.client) {
            return fenced(asker.client);
        }
        Ok(state)
    }

    /// Waits until `look` finds something, the client is gone, or the limit has passed.
    pub(super) fn wait<'a, T>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        bell: &Condvar,
        asker: &Asker<'_>,
        limit: Option<Duration>,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> (MutexGuard<'a, State>, Result<T, Refused>) {
        let begin = Instant::now();
        loop {
            if let Some(found) = look(&mut state) {
                return (state, Ok(found));
            }
            if let Phase::Over(refused) = &state.phase {
                let refused = refused.clone();
                return (state, Err(refused));
            }
            if let Some(refused) = limit.and_then(|_| refused_for_good(&state)) {
                return (state, Err(refused));
            }
            let pause = LOOK.min(limit.unwrap_or(LOOK));
            let timeout = serving::waiting(|| bell.wait_for(&mut state, pause));
            if limit.is_some_and(|limit| begin.elapsed() >= limit) {
                if let Some(found) = look(&mut state) {
                    return (state, Ok(found));
                }
                let refused = held_up(&state);
                return (state, refused);
            }
            if timeout.timed_out() && !(asker.is_connected)() {
                let refused = refuse(
                    Status::Unreachable,
                    "the connection of the client has ended",
                );
                return (state, refused);
            }
        }
    }

    /// The end of this owner for the file; all who wait are told.
    pub(super) fn end(&self, refused: Refused) {
        let mut state = self.lock();
        state.phase = Phase::Over(refused);
        state.ring_all();
        self.changed.notify_all();
    }
}

/// A server whose disk is missing or whose bytes are lost says the same however long a client waits.
fn refused_for_good(state: &State) -> Option<Refused> {
    state.servers.values().find_map(|part| match &part.late {
        Some((status @ (Status::Lost | Status::Io | Status::Corrupt), why)) => {
            Some(Refused::new(*status, why.clone()))
        }
        _ => None,
    })
}

/// Who keeps the size, or the next truncate, from being known, and why.
fn held_up<T>(state: &State) -> Result<T, Refused> {
    let by = state.sizes.held_up_by();
    let again = state.again.iter().flat_map(Work::servers);
    let late = state.servers.iter().filter(|(_, part)| part.late.is_some());
    let late = late.map(|(server, _)| server);
    let servers: BTreeSet<ServerId> = by.iter().chain(again).chain(late).copied().collect();
    if servers.is_empty() {
        return refuse(
            Status::TimedOut,
            "the servers of the file are slow; try again later",
        );
    }
    let why = |server: &ServerId| {
        let late = state.servers.get(server).and_then(|p| p.late.as_ref());
        match late {
            Some((_, why)) => format!("{server} does not do its part ({why})"),
            None => format!("{server} cannot be asked"),
        }
    };
    let list: Vec<String> = servers.iter().map(why).collect();
    refuse(
        Status::Unreachable,
        format!(
            "{}, and the file depends on it; try again when it is back",
            list.join(", ")
        ),
    )
}

pub(super) fn fenced<T>(client: ClientId) -> Result<T, Refused> {
    refuse(
        Status::Fenced,
        format!(
            "{client} was not heard of for longer than its lease and counts as dead: its locks were given to \
             others; open the file again"
        ),
    )
}

/// A refusal of the lock manager as an answer.
pub(super) fn lock_refused(refusal: locks::Refusal) -> Refused {
    let text = match refusal {
        locks::Refusal::Fenced => {
            "the client was not heard of for longer than its lease and counts as dead: its locks were \
             given to others; open the file again"
        }
        locks::Refusal::NotAdmitted => "the handle is not in atomic mode here; ask to be admitted",
        locks::Refusal::BadTicket => {
            "the request number is in use by another lock, or no lock has it; take a fresh one"
        }
        locks::Refusal::BadRange => "the range reaches beyond the largest offset",
        locks::Refusal::BadView => "the view cannot be told from another one; use another view",
    };
    Refused::new(refusal.status(), text)
}

impl State {
    /// A number that was not used before, for tickets that only live here.
    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn size_is(&self) -> Option<SizeIs> {
        self.sizes.size().map(|size| SizeIs {
            size,
            epoch: self.sizes.epoch(),
        })
    }

    fn ring_all(&self) {
        let locks = self.lock_waits.values().map(|w| &w.bell);
        let admits = self.admit_waits.iter().map(|(_, _, w)| &w.bell);
        let truncates = self.truncate_waits.values().map(|w| &w.wait.bell);
        for bell in locks.chain(admits).chain(truncates) {
            bell.notify_all();
        }
    }

    /// Gives the size an event.
    pub(super) fn size_event(&mut self, event: sizes::Event, work: &mut Vec<Work>) {
        use sizes::Effect;
        let epoch = self.sizes.epoch();
        let effects = self.sizes.handle(event);
        if self.sizes.epoch() != epoch {
            // Places of an earlier epoch are void, as everything written there is.
            self.appends = Appends::default();
            self.settle_all_claims();
            self.append_fences.clear();
        }
        for effect in effects {
            match effect {
                // Writes are counted without an event, and no client caches sizes beside this server.
                Effect::Counted(_) | Effect::TooOld { .. } | Effect::Hint(_) => {}
                Effect::Intend { ticket, .. } => {
                    if let Some(found) = self.truncate_waits.get_mut(&ticket) {
                        found.is_next = true;
                        found.wait.bell.notify_all();
                    } else {
                        self.size_event(sizes::Event::IntentRefused, work);
                    }
                }
                Effect::Apply { epoch, to, servers } => {
                    work.push(Work::Apply { epoch, to, servers });
                }
                Effect::Finish { epoch } => {
                    self.unfinished = Some(epoch);
                    work.push(Work::Finish { epoch });
                }
                Effect::Truncated(ticket) => {
                    if let Some(found) = self.truncate_waits.get_mut(&ticket) {
                        found.wait.end(Ok(()));
                    }
                }
                Effect::NotTruncated(ticket) => {
                    if let Some(found) = self.truncate_waits.get_mut(&ticket) {
                        let withdrawn = || Refused::new(Status::Busy, "the truncate was withdrawn");
                        let outcome = match found.was_done {
                            true => Ok(()),
                            false => Err(found.refusal.take().unwrap_or_else(withdrawn)),
                        };
                        found.wait.end(outcome);
                    }
                }
                Effect::AskEnds(servers) => work.push(Work::AskEnds(servers)),
                Effect::Behind(server) => work.push(Work::Learn(server)),
            }
        }
    }

    /// Gives the lock manager an event; what it has against it, if anything.
    pub(super) fn lock_event(
        &mut self,
        event: locks::Event,
        counters: &Counters,
        work: &mut Vec<Work>,
    ) -> Option<locks::Refusal> {
        use locks::Effect;
        let mut refusal = None;
        let concerned = event.client();
        for effect in self.locks.handle(event) {
            match effect {
                Effect::Granted(ticket) => {
                    count(&counters.locks_granted);
                    if let Some(wait) = self.lock_waits.get_mut(&ticket) {
                        wait.end(Ok(()));
                    }
                }
                Effect::Refused(_, why) | Effect::AdmissionRefused(_, _, why) => {
                    refusal = Some(why);
                }
                Effect::Lease {
                    client,
                    handle,
                    number,
                } => {
                    count(&counters.leases);
                    self.admitted((client, handle), number, false);
                }
                Effect::UseLocks {
                    client,
                    handle,
                    number,
                } => self.admitted((client, handle), number, true),
                Effect::Fence { client, servers } => {
                    count(&counters.fences);
                    work.push(Work::Fence { client, servers });
                }
                Effect::Tell { number, servers } => work.push(Work::Tell { number, servers }),
                Effect::AskNumber(servers) => work.push(Work::AskNumber(servers)),
            }
        }
        match concerned {
            Some(client) => self.settle_claims(client),
            None => self.settle_all_claims(),
        }
        refusal
    }

    fn admitted(&mut self, who: HandleKey, number: u64, use_locks: bool) {
        for (_, _, wait) in self.admit_waits.iter_mut().filter(|(w, _, _)| *w == who) {
            wait.end(Ok(AdmitAnswer { number, use_locks }));
        }
    }

    /// A server refuses a dead client, or is gone: nothing of it arrives there any more.
    pub(super) fn append_fenced(&mut self, server: ServerId, client: ClientId) {
        if let Some(left) = self.append_fences.get_mut(&client) {
            left.remove(&server);
            if left.is_empty() {
                self.append_fences.remove(&client);
                self.appends.fenced(client);
                self.settle_claims(client);
            }
        }
    }

    /// A server is gone, and everything that ran there.
    pub(super) fn server_gone(
        &mut self,
        server: ServerId,
        counters: &Counters,
        work: &mut Vec<Work>,
    ) {
        let Some(part) = self.servers.get_mut(&server) else {
            return;
        };
        part.spell += 1;
        part.is_gone = true;
        part.late = None;
        self.forget_work(server);
        self.size_event(sizes::Event::ServerGone(server), work);
        self.lock_event(locks::Event::ServerGone(server), counters, work);
        let clients: Vec<ClientId> = self.append_fences.keys().copied().collect();
        for client in clients {
            self.append_fenced(server, client);
        }
    }

    /// A server is back with the bytes it had: it is told what it may have missed.
    pub(super) fn server_back(
        &mut self,
        server: ServerId,
        counters: &Counters,
        work: &mut Vec<Work>,
    ) {
        let Some(part) = self.servers.get_mut(&server).filter(|p| p.is_gone) else {
            return;
        };
        part.spell += 1;
        part.is_gone = false;
        for left in self.append_fences.values_mut() {
            left.insert(server);
        }
        self.size_event(sizes::Event::ServerBack(server), work);
        self.lock_event(locks::Event::ServerAdded(server), counters, work);
    }

    /// A server has nothing of the file any more.
    pub(super) fn server_lost(
        &mut self,
        server: ServerId,
        counters: &Counters,
        work: &mut Vec<Work>,
    ) {
        self.server_gone(server, counters, work);
        if self.servers.remove(&server).is_some() {
            self.size_event(sizes::Event::ServerLost(server), work);
        }
    }

    fn forget_work(&mut self, server: ServerId) {
        for work in &mut self.again {
            work.forget(server);
        }
        self.again.retain(|work| !work.servers().is_empty());
    }
}
