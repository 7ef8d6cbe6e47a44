//! Atomic mode: the lock manager of one file, at the server that owns the file.
//!
//! A handle in atomic mode is *admitted* with its view. While all admitted views are disjoint nobody
//! needs locks: each handle has a *lease*, a number that travels in its requests. Only an access that
//! goes in more than one message takes a lock even so: servers run or refuse a message as a whole,
//! but a lease may end between two, and the lock keeps those who come then away from half an
//! access. When a view is to
//! be admitted that overlaps another, the number is counted up, all servers of the file are told,
//! and only when they have confirmed (no request with an older number runs there or will run) is the
//! view admitted; from then on every access asks for a lock first. When the overlap is gone and the
//! last lock released, leases come back.
//!
//! A lock is a whole descriptor: a range of the handle's view, shared or exclusive, granted at once
//! or in turn. Reads share, writes exclude, and the queue is first come first served: a writer is not
//! starved by readers that come later, nor a reader by writers. A client that holds a lock does its access
//! and releases it, without waiting for another lock in between. If his number goes stale in the
//! middle he asks to be admitted again and repeats the access under the lock that he has: releasing
//! it first would show half an access.
//!
//! A client that dies is *fenced*: the servers are told to refuse it, and until all have confirmed,
//! what it held stays held. What it waited for is dropped at once. A manager that starts again knows
//! nothing of its former life: it asks the servers for the highest number they were told, tells them
//! the next one, and answers nobody before they have confirmed, so whatever was granted before is
//! void by then. Servers may have forgotten, so every manager of a file also begins above all numbers of those before:
//! an *era* is the upper part of its numbers, and every start of a manager is of a later one. A server that is added later may remember more than the manager has
//! heard of; then all are told a number above that.
//!
//! Invariants
//! - No two conflicting locks are held, counting those of dead clients that are not fenced yet.
//! - No lease is valid at any server while an overlapping view is admitted.
//! - Every event has an answer: nonsense is refused, never a panic. No I/O, no clock: [`Event`] in,
//!   [`Effect`]s out, in the order in which they are to be done.
//!
//! What is left to others: delivering effects, noticing death, and the servers' side (refusing stale
//! numbers and fenced clients, draining before they confirm).

mod conflict;
mod queue;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use falls::Budget;
use layout::View;

use conflict::{Lock, Views};
use queue::Queue;
use wire::{ClientId, HandleId, ServerId};

/// Names a view; equal keys mean equal views.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViewKey(pub u64);

/// Names a lock: a client, and a number that the client does not use twice at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// Whose.
    pub client: ClientId,
    /// Which of his.
    pub request: u64,
}

/// How a lock excludes others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Beside other shared ones: for reading.
    Shared,
    /// Alone: for writing.
    Exclusive,
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Event {
    /// A handle enters atomic mode with a view, or changes its view after its requests are done, or
    /// asks again because a server refused its number.
    Admit {
        /// Whose.
        client: ClientId,
        /// Which handle.
        handle: HandleId,
        /// The view's name.
        key: ViewKey,
        /// The view.
        view: View,
    },
    /// A handle leaves atomic mode; its requests are done.
    Leave {
        /// Whose.
        client: ClientId,
        /// Which handle.
        handle: HandleId,
    },
    /// A handle wants a range of its view.
    Lock {
        /// Under which name.
        ticket: Ticket,
        /// Which handle.
        handle: HandleId,
        /// In view space.
        range: Range<u64>,
        /// How.
        mode: Mode,
    },
    /// A lock is released, or no longer waited for.
    Unlock(Ticket),
    /// A client has gone on purpose, with all its requests done: nothing has to be fenced.
    Left(ClientId),
    /// A client is dead.
    Died(ClientId),
    /// A server refuses this client from now on, and nothing of it runs there.
    Fenced {
        /// The server.
        server: ServerId,
        /// The client.
        client: ClientId,
    },
    /// A server refuses numbers below this from now on, and nothing older runs there.
    Told {
        /// The server.
        server: ServerId,
        /// The number.
        number: u64,
    },
    /// The highest number a server was told, as it says when asked.
    NumberIs {
        /// The server.
        server: ServerId,
        /// The number; 0 if none.
        number: u64,
    },
    /// A server is gone with all that ran there; a later start of it knows no old client.
    ServerGone(ServerId),
    /// A server takes part in the file, or does so again; it is not used before it has confirmed what
    /// it is told, and a client that is dead is fenced there too.
    ServerAdded(ServerId),
}

impl Event {
    /// The one client whose locks and handles it may add to or end; what concerns servers may end those of any.
    pub fn client(&self) -> Option<ClientId> {
        match *self {
            Event::Admit { client, .. } | Event::Leave { client, .. } => Some(client),
            Event::Lock { ticket, .. } | Event::Unlock(ticket) => Some(ticket.client),
            Event::Left(client) | Event::Died(client) | Event::Fenced { client, .. } => {
                Some(client)
            }
            Event::Told { .. }
            | Event::NumberIs { .. }
            | Event::ServerGone(_)
            | Event::ServerAdded(_) => None,
        }
    }
}

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The client was declared dead.
    Fenced,
    /// The handle is not in atomic mode.
    NotAdmitted,
    /// The ticket is in use, or is not.
    BadTicket,
    /// The range reaches beyond the largest offset.
    BadRange,
    /// The key stands for another view.
    BadView,
}

impl Refusal {
    /// The status with which to answer.
    pub fn status(self) -> wire::Status {
        match self {
            Refusal::Fenced => wire::Status::Fenced,
            // A manager that was restarted knows no handle: each asks to be admitted again.
            Refusal::NotAdmitted => wire::Status::StaleLease,
            Refusal::BadTicket | Refusal::BadRange | Refusal::BadView => {
                wire::Status::InvalidArgument
            }
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A lock is held.
    Granted(Ticket),
    /// A lock is refused.
    Refused(Ticket, Refusal),
    /// A handle is not admitted.
    AdmissionRefused(ClientId, HandleId, Refusal),
    /// A handle may work without locks; its requests carry the number.
    Lease {
        /// Whose.
        client: ClientId,
        /// Which handle.
        handle: HandleId,
        /// The number.
        number: u64,
    },
    /// A handle asks for a lock before each access; its requests carry the number.
    UseLocks {
        /// Whose.
        client: ClientId,
        /// Which handle.
        handle: HandleId,
        /// The number.
        number: u64,
    },
    /// Servers are to refuse a client; each answers with [`Event::Fenced`].
    Fence {
        /// The client.
        client: ClientId,
        /// The servers.
        servers: Vec<ServerId>,
    },
    /// Servers are to refuse lower numbers; each answers with [`Event::Told`].
    Tell {
        /// The number.
        number: u64,
        /// The servers.
        servers: Vec<ServerId>,
    },
    /// Servers are to say their number; each answers with [`Event::NumberIs`].
    AskNumber(Vec<ServerId>),
}

/// What the manager is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Finding the highest number of a former life.
    Asking {
        left: BTreeSet<ServerId>,
        highest: u64,
    },
    /// Waiting until all servers refuse lower numbers; then leases, or locks.
    Telling {
        left: BTreeSet<ServerId>,
        then_locks: bool,
    },
    /// All admitted views are disjoint.
    Leasing,
    /// Every access takes a lock.
    Locking,
}

type HandleKey = (ClientId, HandleId);

/// Where the era begins in a number; nobody counts as far within one.
const ERA_SHIFT: u32 = 24;
/// Bits of the start of a server in an era.
const START_BITS: u32 = 20;
/// The number of the first leases; 0 in a request means that its handle is not in atomic mode.
const FIRST: u64 = 1;

/// The era of a manager: of a later step of the layout state if the one before ran on another server, of a later
/// start if on the same.
pub fn era(step: u64, start: u64) -> u64 {
    let most_steps = (1 << (u64::BITS - ERA_SHIFT - START_BITS)) - 1;
    let most_starts = (1 << START_BITS) - 1;
    step.min(most_steps) << START_BITS | start.min(most_starts)
}

/// The lock manager of a file.
#[derive(Debug)]
pub struct LockManager {
    servers: BTreeSet<ServerId>,
    phase: Phase,
    number: u64,
    views: Views,
    admitted: BTreeMap<HandleKey, ViewKey>,
    /// Handles that wait for admission, in order; their views are in use.
    arriving: VecDeque<(HandleKey, ViewKey)>,
    /// Pairs of admitted handles whose views overlap.
    overlaps: usize,
    queue: Queue,
    /// Dead clients, and the servers that have not confirmed yet.
    fencing: BTreeMap<ClientId, BTreeSet<ServerId>>,
    /// Clients that were declared dead; numbers of clients are not used again.
    dead: BTreeSet<ClientId>,
}

impl LockManager {
    /// For a file that never had one.
    pub fn new(servers: impl IntoIterator<Item = ServerId>) -> Self {
        LockManager {
            servers: servers.into_iter().collect(),
            phase: Phase::Leasing,
            number: FIRST,
            views: Views::new(None),
            admitted: BTreeMap::new(),
            arriving: VecDeque::new(),
            overlaps: 0,
            queue: Queue::default(),
            fencing: BTreeMap::new(),
            dead: BTreeSet::new(),
        }
    }

    /// For a file whose manager is gone; see [`era`].
    pub fn restarted(servers: impl IntoIterator<Item = ServerId>, era: u64) -> (Self, Vec<Effect>) {
        let mut manager = LockManager::new(servers);
        manager.phase = Phase::Asking {
            left: manager.servers.clone(),
            highest: era.min(u64::MAX >> ERA_SHIFT) << ERA_SHIFT,
        };
        let mut effects = vec![Effect::AskNumber(manager.server_list())];
        manager.proceed(&mut effects);
        (manager, effects)
    }

    /// Locks with another budget for the symbolic test; `Budget(0)` makes every overlap of spans
    /// a conflict unless the views are equal.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.views = Views::new(Some(budget));
        self
    }

    /// What is held, in order of arrival; what dead clients hold included, until they are fenced.
    pub fn held(&self) -> impl Iterator<Item = Ticket> + '_ {
        self.queue.held()
    }

    /// What waits, in order of arrival.
    pub fn waiting(&self) -> impl Iterator<Item = Ticket> + '_ {
        self.queue.waiting()
    }

    /// Other clients that hold what a lock waits for.
    pub fn in_the_way_of(&self, ticket: Ticket) -> BTreeSet<ClientId> {
        let clients = self.queue.in_the_way_of(ticket).map(|held| held.client);
        clients.filter(|client| *client != ticket.client).collect()
    }

    /// Handles that a client has admitted, or waits to have, and locks that it holds or waits for.
    pub fn claims(&self, client: ClientId) -> usize {
        let handles = (client, HandleId(0))..=(client, HandleId(u64::MAX));
        let arriving = self.arriving.iter().filter(|((who, _), _)| *who == client);
        self.admitted.range(handles).count() + arriving.count() + self.queue.of_client(client).len()
    }

    /// The number that valid requests carry at least.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What a server has to know before it serves: the number, and clients that were declared dead. `None` while the
    /// numbers of a former life are being found out.
    pub fn told(&self) -> Option<(u64, Vec<ClientId>)> {
        match self.phase {
            Phase::Asking { .. } => None,
            _ => Some((self.number, self.dead.iter().copied().collect())),
        }
    }

    /// Takes an event and says what is to be done.
    pub fn handle(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Admit {
                client,
                handle,
                key,
                view,
            } => self.admit((client, handle), key, &view, &mut effects),
            // What a dead client has admitted stays until it is fenced.
            Event::Leave { client, .. } if self.dead.contains(&client) => {}
            Event::Leave { client, handle } => self.leave((client, handle)),
            Event::Lock {
                ticket,
                handle,
                range,
                mode,
            } => self.lock(ticket, handle, range, mode, &mut effects),
            Event::Unlock(ticket) => self.unlock(ticket, &mut effects),
            Event::Left(client) if self.dead.contains(&client) => {}
            Event::Left(client) => self.let_go(client, &mut effects),
            Event::Died(client) => self.died(client, &mut effects),
            Event::Fenced { server, client } => {
                if let Some(left) = self.fencing.get_mut(&client) {
                    left.remove(&server);
                }
            }
            Event::Told { server, number } => {
                if let Phase::Telling { left, .. } = &mut self.phase
                    && number >= self.number
                {
                    left.remove(&server);
                }
            }
            Event::NumberIs { server, number } => self.number_is(server, number, &mut effects),
            Event::ServerGone(server) => self.server_gone(server),
            Event::ServerAdded(server) => self.server_added(server, &mut effects),
        }
        self.proceed(&mut effects);
        effects
    }

    fn number_is(&mut self, server: ServerId, number: u64, effects: &mut Vec<Effect>) {
        if !self.servers.contains(&server) {
            return;
        }
        let then_locks = match &mut self.phase {
            Phase::Asking { left, highest } => {
                if left.remove(&server) {
                    *highest = number.max(*highest);
                }
                return;
            }
            Phase::Telling { then_locks, .. } => *then_locks,
            Phase::Leasing => false,
            Phase::Locking => true,
        };
        if number > self.number {
            self.number = number.saturating_add(1);
            self.tell_servers(then_locks, effects);
        } else {
            effects.push(Effect::Tell {
                number: self.number,
                servers: vec![server],
            });
        }
    }

    fn server_list(&self) -> Vec<ServerId> {
        self.servers.iter().copied().collect()
    }

    fn admit(&mut self, who: HandleKey, key: ViewKey, view: &View, effects: &mut Vec<Effect>) {
        if self.dead.contains(&who.0) {
            effects.push(Effect::AdmissionRefused(who.0, who.1, Refusal::Fenced));
            return;
        }
        if !self.views.acquire(key, view) {
            effects.push(Effect::AdmissionRefused(who.0, who.1, Refusal::BadView));
            return;
        }
        if self.admitted.get(&who) == Some(&key) {
            self.views.release(key);
            self.tell_handle(who, effects);
            return;
        }
        self.leave(who);
        self.arriving.push_back((who, key));
    }

    fn leave(&mut self, who: HandleKey) {
        let waits_at = self.arriving.iter().position(|(w, _)| *w == who);
        if let Some((_, key)) = waits_at.and_then(|at| self.arriving.remove(at)) {
            self.views.release(key);
        }
        if let Some(key) = self.admitted.remove(&who) {
            self.overlaps -= self.overlaps_of(key);
            self.views.release(key);
        }
    }

    /// With how many admitted handles a view overlaps.
    fn overlaps_of(&mut self, key: ViewKey) -> usize {
        let views = &mut self.views;
        self.admitted
            .values()
            .filter(|&&other| views.overlap(key, other))
            .count()
    }

    /// Says how an admitted handle works at present.
    fn tell_handle(&self, (client, handle): HandleKey, effects: &mut Vec<Effect>) {
        let number = self.number;
        effects.push(match self.phase {
            Phase::Leasing => Effect::Lease {
                client,
                handle,
                number,
            },
            // While servers are being told, a client that asks again is told to use locks already.
            _ => Effect::UseLocks {
                client,
                handle,
                number,
            },
        });
    }

    fn lock(
        &mut self,
        ticket: Ticket,
        handle: HandleId,
        range: Range<u64>,
        mode: Mode,
        effects: &mut Vec<Effect>,
    ) {
        let refusal = if self.dead.contains(&ticket.client) {
            Refusal::Fenced
        } else if self.queue.contains(ticket) {
            Refusal::BadTicket
        } else if let Some(&view) = self.admitted.get(&(ticket.client, handle)) {
            if let Some(span) = self.views.span(view, &range) {
                self.views.acquire_known(view);
                let lock = Lock {
                    ticket,
                    view,
                    range,
                    span,
                    mode,
                };
                let views = &mut self.views;
                if self.queue.add(lock, |a, b| views.conflict(a, b)) {
                    effects.push(Effect::Granted(ticket));
                }
                return;
            }
            Refusal::BadRange
        } else {
            Refusal::NotAdmitted
        };
        effects.push(Effect::Refused(ticket, refusal));
    }

    fn unlock(&mut self, ticket: Ticket, effects: &mut Vec<Effect>) {
        if self.dead.contains(&ticket.client) {
            effects.push(Effect::Refused(ticket, Refusal::Fenced));
        } else if !self.remove_lock(ticket, effects) {
            effects.push(Effect::Refused(ticket, Refusal::BadTicket));
        }
    }

    fn remove_lock(&mut self, ticket: Ticket, effects: &mut Vec<Effect>) -> bool {
        let Some((lock, granted)) = self.queue.remove(ticket) else {
            return false;
        };
        self.views.release(lock.view);
        effects.extend(granted.into_iter().map(Effect::Granted));
        true
    }

    fn died(&mut self, client: ClientId, effects: &mut Vec<Effect>) {
        if !self.dead.insert(client) {
            return;
        }
        let mut holds = self.admitted.keys().any(|(c, _)| *c == client);
        for (ticket, held) in self.queue.of_client(client) {
            // One that is granted by dropping another just now was never told to anybody.
            if held {
                holds = true;
            } else {
                self.remove_lock(ticket, effects);
            }
        }
        effects.retain(|e| !matches!(e, Effect::Granted(t) if t.client == client));
        let arriving: Vec<HandleKey> = self.arriving.iter().map(|(who, _)| *who).collect();
        for who in arriving.into_iter().filter(|(c, _)| *c == client) {
            if !self.admitted.contains_key(&who) {
                self.leave(who);
            }
        }
        if holds {
            self.fencing.insert(client, self.servers.clone());
            effects.push(Effect::Fence {
                client,
                servers: self.server_list(),
            });
        }
    }

    fn server_gone(&mut self, server: ServerId) {
        self.servers.remove(&server);
        for left in self.fencing.values_mut() {
            left.remove(&server);
        }
        if let Phase::Asking { left, .. } | Phase::Telling { left, .. } = &mut self.phase {
            left.remove(&server);
        }
    }

    fn server_added(&mut self, server: ServerId, effects: &mut Vec<Effect>) {
        if !self.servers.insert(server) {
            return;
        }
        // Also those that all others refuse by now: this one may have missed it.
        for &client in &self.dead {
            if let Some(left) = self.fencing.get_mut(&client) {
                left.insert(server);
            }
            effects.push(Effect::Fence {
                client,
                servers: vec![server],
            });
        }
        if let Phase::Asking { left, .. } | Phase::Telling { left, .. } = &mut self.phase {
            left.insert(server);
        }
        effects.push(Effect::AskNumber(vec![server]));
    }

    /// Does everything that has become possible.
    fn proceed(&mut self, effects: &mut Vec<Effect>) {
        self.finish_fences(effects);
        loop {
            match &self.phase {
                Phase::Asking { left, highest } => {
                    if !left.is_empty() {
                        return;
                    }
                    // The first number is used without telling anybody.
                    self.number = highest.max(&FIRST) + 1;
                    self.tell_servers(false, effects);
                }
                Phase::Telling { left, then_locks } => {
                    if !left.is_empty() {
                        return;
                    }
                    if *then_locks {
                        self.phase = Phase::Locking;
                        self.tell_all_handles(effects);
                    } else {
                        self.phase = Phase::Leasing;
                    }
                }
                Phase::Leasing => {
                    let Some(&(_, key)) = self.arriving.front() else {
                        return;
                    };
                    if self.overlaps_of(key) > 0 {
                        self.number += 1;
                        self.tell_servers(true, effects);
                    } else {
                        self.admit_first(effects);
                    }
                }
                Phase::Locking => {
                    if !self.arriving.is_empty() {
                        self.admit_first(effects);
                    } else if self.overlaps == 0 && self.queue.is_empty() {
                        self.phase = Phase::Leasing;
                        self.tell_all_handles(effects);
                    } else {
                        return;
                    }
                }
            }
        }
    }

    /// Lets go of what fenced clients held.
    fn finish_fences(&mut self, effects: &mut Vec<Effect>) {
        let done: Vec<ClientId> = self
            .fencing
            .iter()
            .filter(|(_, left)| left.is_empty())
            .map(|(client, _)| *client)
            .collect();
        for client in done {
            self.fencing.remove(&client);
            self.let_go(client, effects);
        }
        let dead = &self.dead;
        effects.retain(|e| !matches!(e, Effect::Granted(t) if dead.contains(&t.client)));
    }

    /// Drops everything that a client has and waits for.
    fn let_go(&mut self, client: ClientId, effects: &mut Vec<Effect>) {
        for (ticket, _) in self.queue.of_client(client) {
            self.remove_lock(ticket, effects);
        }
        effects.retain(|e| !matches!(e, Effect::Granted(t) if t.client == client));
        let admitted = self.admitted.keys().copied();
        let handles: Vec<HandleKey> = admitted
            .chain(self.arriving.iter().map(|(who, _)| *who))
            .filter(|(c, _)| *c == client)
            .collect();
        for who in handles {
            self.leave(who);
        }
    }

    fn tell_servers(&mut self, then_locks: bool, effects: &mut Vec<Effect>) {
        self.phase = Phase::Telling {
            left: self.servers.clone(),
            then_locks,
        };
        effects.push(Effect::Tell {
            number: self.number,
            servers: self.server_list(),
        });
    }

    fn tell_all_handles(&self, effects: &mut Vec<Effect>) {
        for &who in self.admitted.keys() {
            if !self.dead.contains(&who.0) {
                self.tell_handle(who, effects);
            }
        }
    }

    fn admit_first(&mut self, effects: &mut Vec<Effect>) {
        if let Some((who, key)) = self.arriving.pop_front() {
            self.overlaps += self.overlaps_of(key);
            self.admitted.insert(who, key);
            self.tell_handle(who, effects);
        }
    }
}
