//! The manager against a naive one, over all small interleavings, and with death at every step.
//!
//! The naive rule: locks in order of arrival, each held exactly when no earlier one that is still
//! there has a byte in common with it and one of the two writes.

mod arriving;
mod restarts;

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use layout::FileOffset;
use random::Random;

fn view(displacement: u64, period: u64, set: &str) -> View {
    View::new(FileOffset(displacement), period, set.parse().unwrap()).unwrap()
}

fn random_view(r: &mut Random) -> View {
    let period = 1 + r.below(12);
    let mut segments = Vec::new();
    let mut at = 0;
    while at < period {
        let len = 1 + r.below(3);
        if r.below(2) == 0 && at + len <= period {
            segments.push(falls::Segment::new(at, len).unwrap());
        }
        at += len;
    }
    if segments.is_empty() {
        segments.push(falls::Segment::new(0, 1).unwrap());
    }
    let set = falls::FallsSet::from_segments(&segments).unwrap();
    View::new(FileOffset(r.below(6)), period, set).unwrap()
}

fn bytes(view: &View, range: &Range<u64>) -> BTreeSet<u64> {
    range
        .clone()
        .map(|k| view.bytes().select(k).unwrap())
        .collect()
}

const SERVERS: [ServerId; 2] = [ServerId(0), ServerId(1)];

fn manager() -> LockManager {
    LockManager::new(SERVERS)
}

/// Confirms everything that servers are asked, at once.
fn settle(manager: &mut LockManager, event: Event) -> Vec<Effect> {
    let mut effects = manager.handle(event);
    let mut at = 0;
    while at < effects.len() {
        let events: Vec<Event> = match &effects[at] {
            Effect::Tell { number, servers } => {
                let number = *number;
                servers
                    .iter()
                    .map(|&server| Event::Told { server, number })
                    .collect()
            }
            Effect::Fence { client, servers } => {
                let client = *client;
                servers
                    .iter()
                    .map(|&server| Event::Fenced { server, client })
                    .collect()
            }
            Effect::AskNumber(servers) => servers
                .iter()
                .map(|&server| Event::NumberIs { server, number: 0 })
                .collect(),
            _ => Vec::new(),
        };
        for event in events {
            let more = manager.handle(event);
            effects.extend(more);
        }
        at += 1;
    }
    effects
}

fn admit(client: u64, key: u64, view: &View) -> Event {
    Event::Admit {
        client: ClientId(client),
        handle: HandleId(client),
        key: ViewKey(key),
        view: view.clone(),
    }
}

fn ticket(client: u64, request: u64) -> Ticket {
    Ticket {
        client: ClientId(client),
        request,
    }
}

fn lock(client: u64, request: u64, range: Range<u64>, mode: Mode) -> Event {
    Event::Lock {
        ticket: ticket(client, request),
        handle: HandleId(client),
        range,
        mode,
    }
}

/// Locks as sets of bytes, in order of arrival.
#[derive(Default)]
struct Naive(Vec<(Ticket, BTreeSet<u64>, Mode)>);

impl Naive {
    fn held(&self) -> Vec<Ticket> {
        let mut held = Vec::new();
        for (i, (ticket, bytes, mode)) in self.0.iter().enumerate() {
            let blocked = self.0[..i].iter().any(|(_, other, other_mode)| {
                (*mode == Mode::Exclusive || *other_mode == Mode::Exclusive)
                    && !bytes.is_disjoint(other)
            });
            if !blocked {
                held.push(*ticket);
            }
        }
        held
    }

    fn remove(&mut self, ticket: Ticket) {
        self.0.retain(|(t, _, _)| *t != ticket);
    }
}

/// Random locks and releases; returns how often a client waited.
fn against_naive(seed: u64) -> usize {
    let mut r = Random::new(seed);
    let mut manager = manager();
    let mut naive = Naive::default();
    let views: Vec<View> = (0..5).map(|_| random_view(&mut r)).collect();
    for (client, view) in views.iter().enumerate() {
        settle(&mut manager, admit(client as u64, client as u64, view));
    }
    // One more handle with a view that another has, under the same key.
    settle(&mut manager, admit(5, 0, &views[0]));
    let mut told: BTreeSet<Ticket> = BTreeSet::new();
    let mut waits = 0;
    for request in 0..60 {
        let effects = if r.below(3) > 0 || naive.0.is_empty() {
            let client = r.below(6);
            let view = &views[if client == 5 { 0 } else { client as usize }];
            let start = r.below(20);
            let range = start..start + r.below(9);
            let mode = [Mode::Shared, Mode::Exclusive][r.below(2) as usize];
            naive
                .0
                .push((ticket(client, request), bytes(view, &range), mode));
            settle(&mut manager, lock(client, request, range, mode))
        } else {
            // Held or waiting: a client may also give up.
            let at = r.below(naive.0.len() as u64) as usize;
            let ticket = naive.0[at].0;
            naive.remove(ticket);
            told.remove(&ticket);
            settle(&mut manager, Event::Unlock(ticket))
        };
        for effect in effects {
            if let Effect::Granted(ticket) = effect {
                assert!(told.insert(ticket), "seed {seed}: {ticket:?} granted twice");
            }
        }
        let held: Vec<Ticket> = manager.held().collect();
        assert_eq!(held, naive.held(), "seed {seed}, request {request}");
        assert_eq!(
            told,
            held.into_iter().collect(),
            "seed {seed}: told and held differ"
        );
        waits += manager.waiting().count();
    }
    // Everybody who waits is granted as the others release.
    loop {
        let Some(ticket) = manager.held().next() else {
            break;
        };
        settle(&mut manager, Event::Unlock(ticket));
    }
    assert_eq!(
        manager.waiting().count(),
        0,
        "seed {seed}: somebody waits for nobody"
    );
    waits
}

#[test]
fn agrees_with_the_naive_rule() {
    let waits: usize = (0..400).map(against_naive).sum();
    assert!(waits > 1000, "hardly anybody had to wait");
}

#[test]
fn over_budget_counts_as_conflict() {
    let even = view(0, 16, "{(0,0,2,8)}");
    let odd = view(0, 16, "{(1,1,2,8)}");
    let whole = View::whole_file();
    for (budget, granted) in [(Budget::DEFAULT, true), (Budget(0), false)] {
        let mut m = manager().with_budget(budget);
        for (client, v) in [(0, &even), (1, &odd), (2, &whole)] {
            settle(&mut m, admit(client, client, v));
        }
        settle(&mut m, lock(0, 0, 0..100, Mode::Exclusive));
        let effects = settle(&mut m, lock(1, 0, 0..100, Mode::Exclusive));
        assert_eq!(effects.contains(&Effect::Granted(ticket(1, 0))), granted);
        // Apart in the file is apart, whatever the budget.
        let apart = settle(&mut m, lock(1, 1, 500..600, Mode::Exclusive));
        assert_eq!(apart, [Effect::Granted(ticket(1, 1))]);
        // Nobody is forgotten.
        for t in [ticket(0, 0), ticket(1, 0), ticket(1, 1)] {
            assert!(m.held().any(|held| held == t));
            settle(&mut m, Event::Unlock(t));
        }
    }
}

/// Everybody has the whole file.
fn crowd(count: u64) -> LockManager {
    let mut m = manager();
    for client in 0..count {
        settle(&mut m, admit(client, 0, &View::whole_file()));
    }
    m
}

#[test]
fn seed001_s73_overlapping_reads_run_in_parallel() {
    let mut m = crowd(4);
    for client in 0..4 {
        let effects = settle(&mut m, lock(client, 0, 0..100, Mode::Shared));
        assert_eq!(effects, [Effect::Granted(ticket(client, 0))]);
    }
    assert_eq!(m.held().count(), 4);
}

#[test]
fn what_is_held_what_waits_and_who_is_in_the_way_are_told_apart() {
    let mut m = crowd(3);
    for client in 0..3 {
        m.handle(lock(client, 1, 0..10, Mode::Exclusive));
    }
    assert!(m.held().eq([ticket(0, 1)]));
    assert!(m.waiting().eq([ticket(1, 1), ticket(2, 1)]));
    let before_the_last = [ClientId(0), ClientId(1)];
    assert!(m.in_the_way_of(ticket(0, 1)).is_empty());
    let in_the_way = m.in_the_way_of(ticket(2, 1));
    assert!(!in_the_way.is_empty() && in_the_way.iter().all(|c| before_the_last.contains(c)));
    m.handle(Event::Unlock(ticket(0, 1)));
    assert!(m.held().eq([ticket(1, 1)]));
    assert!(m.waiting().eq([ticket(2, 1)]));
}

#[test]
fn seed001_s75_ends_of_writes_and_reads_wake_all_that_can_run() {
    let mut m = crowd(6);
    settle(&mut m, lock(0, 0, 0..100, Mode::Exclusive));
    for (client, mode) in [(1, Mode::Shared), (2, Mode::Shared), (3, Mode::Exclusive)] {
        assert_eq!(settle(&mut m, lock(client, 0, 0..50, mode)), []);
    }
    assert_eq!(settle(&mut m, lock(4, 0, 60..70, Mode::Exclusive)), []);
    // The end of a write wakes both readers and the writer elsewhere.
    assert_eq!(
        settle(&mut m, Event::Unlock(ticket(0, 0))),
        [1, 2, 4].map(|c| Effect::Granted(ticket(c, 0)))
    );
    // The end of the last read wakes the writer.
    assert_eq!(settle(&mut m, Event::Unlock(ticket(2, 0))), []);
    let woken = settle(&mut m, Event::Unlock(ticket(1, 0)));
    assert_eq!(woken, [Effect::Granted(ticket(3, 0))]);
}

#[test]
fn seed001_s76_writers_are_not_starved() {
    let mut m = crowd(3);
    settle(&mut m, lock(0, 0, 0..10, Mode::Shared));
    assert_eq!(settle(&mut m, lock(1, 0, 0..10, Mode::Exclusive)), []);
    // Readers that come later wait behind the writer, however many they are.
    for request in 0..50 {
        assert_eq!(settle(&mut m, lock(2, request, 0..10, Mode::Shared)), []);
    }
    let woken = settle(&mut m, Event::Unlock(ticket(0, 0)));
    assert_eq!(woken, [Effect::Granted(ticket(1, 0))]);
    let woken = settle(&mut m, Event::Unlock(ticket(1, 0)));
    assert_eq!(woken.len(), 50);
}

#[test]
fn seed001_s79_locks_of_a_dead_client_are_released_after_fencing() {
    let mut m = crowd(4);
    settle(&mut m, lock(0, 0, 0..10, Mode::Exclusive));
    settle(&mut m, lock(0, 1, 5..20, Mode::Exclusive));
    settle(&mut m, lock(1, 0, 0..10, Mode::Exclusive));
    settle(&mut m, lock(2, 0, 15..30, Mode::Shared));
    // What it waited for goes at once, what it held when all servers refuse it.
    let effects = m.handle(Event::Died(ClientId(0)));
    let fence = Effect::Fence {
        client: ClientId(0),
        servers: SERVERS.to_vec(),
    };
    assert_eq!(effects, [Effect::Granted(ticket(2, 0)), fence]);
    let fenced = |server| Event::Fenced {
        server,
        client: ClientId(0),
    };
    assert_eq!(m.handle(fenced(SERVERS[0])), []);
    assert_eq!(m.handle(fenced(SERVERS[0])), []);
    assert_eq!(
        m.handle(fenced(SERVERS[1])),
        [Effect::Granted(ticket(1, 0))]
    );
    // It is not believed any more.
    let late = settle(&mut m, lock(0, 2, 0..1, Mode::Shared));
    assert_eq!(late, [Effect::Refused(ticket(0, 2), Refusal::Fenced)]);
    assert_eq!(m.handle(Event::Died(ClientId(0))), []);
}

#[test]
fn server_that_dies_counts_as_fenced() {
    let mut m = crowd(2);
    settle(&mut m, lock(0, 0, 0..10, Mode::Exclusive));
    settle(&mut m, lock(1, 0, 0..10, Mode::Exclusive));
    m.handle(Event::Died(ClientId(0)));
    assert_eq!(m.handle(Event::ServerGone(SERVERS[0])), []);
    let woken = m.handle(Event::ServerGone(SERVERS[1]));
    assert_eq!(woken[0], Effect::Granted(ticket(1, 0)));
}

#[test]
fn nonsense_is_refused() {
    let mut m = crowd(2);
    let refused = |t, why| vec![Effect::Refused(t, why)];
    assert_eq!(
        m.handle(lock(7, 0, 0..1, Mode::Shared)),
        refused(ticket(7, 0), Refusal::NotAdmitted)
    );
    assert_eq!(
        m.handle(lock(0, 0, 0..u64::MAX, Mode::Shared)),
        refused(ticket(0, 0), Refusal::BadRange)
    );
    m.handle(lock(0, 0, 0..1, Mode::Shared));
    assert_eq!(
        m.handle(lock(0, 0, 0..1, Mode::Shared)),
        refused(ticket(0, 0), Refusal::BadTicket)
    );
    assert_eq!(
        m.handle(Event::Unlock(ticket(1, 9))),
        refused(ticket(1, 9), Refusal::BadTicket)
    );
    assert_eq!(
        m.handle(admit(1, 0, &view(3, 5, "{(0,1)}"))),
        [Effect::AdmissionRefused(
            ClientId(1),
            HandleId(1),
            Refusal::BadView
        )]
    );
    // An empty range is held and excludes nobody.
    assert_eq!(
        m.handle(lock(1, 1, 4..4, Mode::Exclusive)),
        [Effect::Granted(ticket(1, 1))]
    );
    for event in [
        Event::Fenced {
            server: ServerId(9),
            client: ClientId(9),
        },
        Event::Told {
            server: ServerId(9),
            number: 99,
        },
        Event::NumberIs {
            server: ServerId(9),
            number: 99,
        },
        Event::ServerGone(ServerId(9)),
        Event::Died(ClientId(9)),
        Event::Leave {
            client: ClientId(9),
            handle: HandleId(9),
        },
    ] {
        assert_eq!(m.handle(event.clone()), [], "{event:?}");
    }
}

/// What one client does, step by step: lock, unlock, lock, unlock.
type Script = [(Range<u64>, Mode); 2];

/// All interleavings of three clients, with any of them dying anywhere (at most one), and the
/// servers' confirmations coming at any time.
///
/// A state is who is how far, who is dead, which servers have confirmed, what is held and what waits
/// in which order; what happens from there does not depend on the way to it, so each is visited once.
struct Explore {
    scripts: [Script; 3],
    seen: BTreeSet<(State, [Vec<Ticket>; 2])>,
    ends: usize,
    deaths: usize,
}

/// Steps done, who is dead, servers that have confirmed.
type State = ([usize; 3], Option<u64>, Vec<ServerId>);

impl Explore {
    fn replay(&self, events: &[Event]) -> (LockManager, Vec<Effect>) {
        let mut m = LockManager::new(SERVERS);
        for client in 0..3 {
            settle(&mut m, admit(client, 0, &View::whole_file()));
        }
        let mut effects = Vec::new();
        for event in events {
            effects.extend(m.handle(event.clone()));
        }
        (m, effects)
    }

    fn visit(&mut self, events: &mut Vec<Event>, steps: [usize; 3], dead: Option<u64>) {
        let (m, effects) = self.replay(events);
        let waiting: Vec<Ticket> = m.waiting().collect();
        let mut confirmed: Vec<ServerId> = events
            .iter()
            .filter_map(|e| match e {
                Event::Fenced { server, .. } => Some(*server),
                _ => None,
            })
            .collect();
        confirmed.sort_unstable();
        let mut holders: Vec<Ticket> = m.held().collect();
        holders.sort_unstable();
        if !self
            .seen
            .insert(((steps, dead, confirmed), [holders, waiting]))
        {
            return;
        }
        let held: BTreeSet<Ticket> = m.held().collect();
        self.check_held(
            &held
                .union(&ghosts(events, &effects, dead))
                .copied()
                .collect(),
        );
        let mut next = Vec::new();
        for (client, &step) in steps.iter().enumerate() {
            let client = client as u64;
            if dead == Some(client) || step == 4 {
                continue;
            }
            let t = ticket(client, step as u64 / 2);
            if step % 2 == 0 {
                let (range, mode) = self.scripts[client as usize][step / 2].clone();
                next.push((
                    lock(client, step as u64 / 2, range, mode),
                    Some(client),
                    dead,
                ));
            } else if effects.contains(&Effect::Granted(t)) {
                assert!(held.contains(&t), "told, but not held");
                next.push((Event::Unlock(t), Some(client), dead));
            }
            if dead.is_none() {
                next.push((Event::Died(ClientId(client)), None, Some(client)));
            }
        }
        if let Some(client) = dead {
            let client = ClientId(client);
            let asked = effects.iter().any(|e| matches!(e, Effect::Fence { .. }));
            for server in SERVERS {
                let given = events
                    .iter()
                    .any(|e| matches!(e, Event::Fenced { server: s, .. } if *s == server));
                if asked && !given {
                    next.push((Event::Fenced { server, client }, None, dead));
                }
            }
        }
        if next.is_empty() {
            // Nobody can move: then everybody alive is done.
            for (client, &step) in steps.iter().enumerate() {
                assert!(
                    dead == Some(client as u64) || step == 4,
                    "client {client} is stuck"
                );
            }
            assert!(held.is_empty(), "held by nobody alive: {held:?}");
            self.ends += 1;
            self.deaths += usize::from(dead.is_some());
            return;
        }
        for (event, mover, dead) in next {
            let mut steps = steps;
            if let Some(client) = mover {
                steps[client as usize] += 1;
            }
            events.push(event);
            self.visit(events, steps, dead);
            events.pop();
        }
    }

    fn check_held(&self, held: &BTreeSet<Ticket>) {
        let of = |t: &Ticket| &self.scripts[t.client.0 as usize][t.request as usize];
        for a in held {
            for b in held.iter().filter(|b| *b > a) {
                let ((ra, ma), (rb, mb)) = (of(a), of(b));
                let meet = ra.start < rb.end && rb.start < ra.end;
                let exclusive = *ma == Mode::Exclusive || *mb == Mode::Exclusive;
                assert!(!(meet && exclusive), "{a:?} and {b:?} are both held");
            }
        }
    }
}

/// What a dead client was granted and can still use, because not all servers refuse it yet.
fn ghosts(events: &[Event], effects: &[Effect], dead: Option<u64>) -> BTreeSet<Ticket> {
    let confirmed = events
        .iter()
        .filter(|e| matches!(e, Event::Fenced { .. }))
        .count();
    if confirmed == SERVERS.len() {
        return BTreeSet::new();
    }
    let granted = effects.iter().filter_map(|e| match e {
        Effect::Granted(t) if Some(t.client.0) == dead => Some(*t),
        _ => None,
    });
    let unlocked = |t: &Ticket| {
        events
            .iter()
            .any(|e| matches!(e, Event::Unlock(u) if u == t))
    };
    granted.filter(|t| !unlocked(t)).collect()
}

#[test]
fn all_small_interleavings_with_death_anywhere() {
    let (mut states, mut ends, mut deaths) = (0, 0, 0);
    let mut r = Random::new(7);
    for _ in 0..60 {
        let mut part = || {
            let start = r.below(4);
            let mode = [Mode::Shared, Mode::Exclusive][r.below(2) as usize];
            (start..start + 1 + r.below(4), mode)
        };
        let mut explore = Explore {
            scripts: std::array::from_fn(|_| std::array::from_fn(|_| part())),
            seen: BTreeSet::new(),
            ends: 0,
            deaths: 0,
        };
        explore.visit(&mut Vec::new(), [0; 3], None);
        states += explore.seen.len();
        ends += explore.ends;
        deaths += explore.deaths;
    }
    // All done, or dead before any of the four steps of any of the three.
    assert_eq!((ends, deaths), (60 * 13, 60 * 12));
    assert!(states > 50_000, "{states} states");
}

/// Servers, clients and manager with messages under way, delivered in any order per pair.
struct World {
    manager: LockManager,
    views: Vec<View>,
    /// What each server refuses: numbers below, and clients.
    floors: BTreeMap<ServerId, u64>,
    fenced: BTreeMap<ServerId, BTreeSet<ClientId>>,
    /// What each client believes: the number, and whether it needs locks.
    beliefs: BTreeMap<u64, (u64, bool)>,
    held: BTreeSet<Ticket>,
    to_clients: Vec<(u64, Effect)>,
    to_servers: Vec<(ServerId, Effect)>,
    dead: BTreeSet<u64>,
}

impl World {
    fn new(views: Vec<View>) -> Self {
        World {
            manager: manager(),
            views,
            floors: SERVERS.map(|s| (s, 0)).into(),
            fenced: SERVERS.map(|s| (s, BTreeSet::new())).into(),
            beliefs: BTreeMap::new(),
            held: BTreeSet::new(),
            to_clients: Vec::new(),
            to_servers: Vec::new(),
            dead: BTreeSet::new(),
        }
    }

    fn event(&mut self, event: Event) {
        let effects = self.manager.handle(event);
        self.send(effects);
    }

    fn send(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match &effect {
                Effect::Lease { client, .. }
                | Effect::UseLocks { client, .. }
                | Effect::AdmissionRefused(client, ..) => self.to_clients.push((client.0, effect)),
                Effect::Granted(t) | Effect::Refused(t, _) => {
                    self.to_clients.push((t.client.0, effect));
                }
                Effect::Fence { servers, .. }
                | Effect::Tell { servers, .. }
                | Effect::AskNumber(servers) => {
                    for server in servers.clone() {
                        self.to_servers.push((server, effect.clone()));
                    }
                }
            }
        }
    }

    fn deliver_to_server(&mut self, at: usize) {
        let (server, effect) = self.to_servers.remove(at);
        let event = match effect {
            Effect::Tell { number, .. } => {
                let floor = self.floors.get_mut(&server).unwrap();
                *floor = number.max(*floor);
                Event::Told { server, number }
            }
            Effect::Fence { client, .. } => {
                self.fenced.get_mut(&server).unwrap().insert(client);
                Event::Fenced { server, client }
            }
            _ => Event::NumberIs {
                server,
                number: self.floors[&server],
            },
        };
        self.event(event);
    }

    fn deliver_to_client(&mut self, at: usize) {
        let (client, effect) = self.to_clients.remove(at);
        match effect {
            Effect::Lease { number, .. } => drop(self.beliefs.insert(client, (number, false))),
            Effect::UseLocks { number, .. } => drop(self.beliefs.insert(client, (number, true))),
            Effect::Granted(t) => drop(self.held.insert(t)),
            Effect::Refused(t, _) => drop(self.held.remove(&t)),
            _ => {}
        }
    }

    /// Whether a message of this client would be served by a server now.
    fn can_access(&self, client: u64, server: ServerId) -> bool {
        let Some(&(number, needs_lock)) = self.beliefs.get(&client) else {
            return false;
        };
        let holds = self.held.iter().any(|t| t.client.0 == client);
        number >= self.floors[&server]
            && !self.fenced[&server].contains(&ClientId(client))
            && (holds || !needs_lock)
    }

    /// Two clients whose views overlap never both get through at a server. Locks here are of the
    /// whole view, exclusive, so a lock is as good as a lease.
    fn check(&self, seed: u64) {
        for a in 0..self.views.len() as u64 {
            for b in 0..a {
                let (va, vb) = (&self.views[a as usize], &self.views[b as usize]);
                if falls::Meeting::new(va.bytes(), vb.bytes()).is_empty() {
                    continue;
                }
                for server in SERVERS {
                    assert!(
                        !(self.can_access(a, server) && self.can_access(b, server)),
                        "seed {seed}: clients {a} and {b} both write at {server}"
                    );
                }
            }
        }
    }
}

#[test]
fn overlapping_clients_never_both_get_through() {
    let (mut leases, mut grants, mut restarts) = (0, 0, 0);
    for seed in 0..300 {
        let mut r = Random::new(seed);
        let mut w = World::new(vec![
            view(0, 4, "{(0,0)}"),
            view(0, 4, "{(1,1)}"),
            view(0, 4, "{(2,3)}"),
            view(0, 4, "{(0,1)}"),
        ]);
        let mut request = 0;
        for _ in 0..250 {
            let client = r.below(4);
            let believes = w.beliefs.get(&client).copied();
            match r.below(20) {
                0..=3 if !w.dead.contains(&client) && believes.is_none() => {
                    let view = w.views[client as usize].clone();
                    w.event(admit(client, client, &view));
                }
                4 if !w.dead.contains(&client) && !w.held.iter().any(|t| t.client.0 == client) => {
                    // It forgets first, and messages under way to it are void.
                    w.beliefs.remove(&client);
                    w.to_clients.retain(|(c, _)| *c != client);
                    for t in w.manager.queue.of_client(ClientId(client)) {
                        w.event(Event::Unlock(t.0));
                    }
                    w.to_clients.retain(|(c, _)| *c != client);
                    w.event(Event::Leave {
                        client: ClientId(client),
                        handle: HandleId(client),
                    });
                }
                5..=7 if believes.is_some_and(|(_, locks)| locks) && !w.dead.contains(&client) => {
                    request += 1;
                    w.event(lock(client, request, 0..100, Mode::Exclusive));
                }
                8..=9 => {
                    let mine = w.held.iter().find(|t| t.client.0 == client).copied();
                    if let Some(t) = mine.filter(|_| !w.dead.contains(&client)) {
                        w.held.remove(&t);
                        w.event(Event::Unlock(t));
                    }
                }
                // It stops, but what it has sent may still arrive: its beliefs stay.
                10 if seed % 3 == 0 && w.dead.insert(client) => {
                    w.event(Event::Died(ClientId(client)))
                }
                11 if seed % 5 == 0 && restarts < 200 => {
                    restarts += 1;
                    let (manager, effects) = LockManager::restarted(SERVERS, 0);
                    w.manager = manager;
                    w.to_servers.clear();
                    w.to_clients.clear();
                    // Clients notice, except that what they have sent is still under way.
                    for (client, belief) in &mut w.beliefs {
                        if !w.dead.contains(client) && r.below(2) == 0 {
                            belief.1 = true;
                        }
                    }
                    w.send(effects);
                }
                _ if !w.to_servers.is_empty() && r.below(2) == 0 => {
                    let at = r.below(w.to_servers.len() as u64) as usize;
                    // Fences are slow, so that much happens while they are under way.
                    let slow = matches!(w.to_servers[at].1, Effect::Fence { .. });
                    if !slow || r.below(10) == 0 {
                        w.deliver_to_server(at);
                    }
                }
                _ => {
                    // In order per client.
                    if let Some(at) = w.to_clients.iter().position(|(c, _)| *c == client) {
                        match w.to_clients[at].1 {
                            Effect::Lease { .. } => leases += 1,
                            Effect::Granted(_) => grants += 1,
                            _ => {}
                        }
                        w.deliver_to_client(at);
                    }
                }
            }
            w.check(seed);
        }
    }
    assert!(
        leases > 300 && grants > 300 && restarts > 50,
        "{leases} {grants} {restarts}"
    );
}

#[test]
fn leases_end_before_an_overlapping_view_is_admitted() {
    let mut m = manager();
    let lease = |c: u64, number| Effect::Lease {
        client: ClientId(c),
        handle: HandleId(c),
        number,
    };
    let use_locks = |c: u64, number| Effect::UseLocks {
        client: ClientId(c),
        handle: HandleId(c),
        number,
    };
    let left = view(0, 2, "{(0,0)}");
    let right = view(0, 2, "{(1,1)}");
    assert_eq!(m.handle(admit(0, 0, &left)), [lease(0, 1)]);
    assert_eq!(m.handle(admit(1, 1, &right)), [lease(1, 1)]);
    let tell = Effect::Tell {
        number: 2,
        servers: SERVERS.to_vec(),
    };
    assert_eq!(m.handle(admit(2, 2, &View::whole_file())), [tell]);
    let told = |server, number| Event::Told { server, number };
    assert_eq!(m.handle(told(SERVERS[0], 2)), []);
    assert_eq!(m.handle(told(SERVERS[1], 1)), []); // an old confirmation
    // A disjoint one that comes meanwhile waits its turn.
    assert_eq!(m.handle(admit(3, 0, &left)), []);
    let all: Vec<Effect> = (0..4).map(|c| use_locks(c, 2)).collect();
    assert_eq!(m.handle(told(SERVERS[1], 2)), all);
    // Locks work; when the overlap and the last lock are gone, leases come back.
    let granted = m.handle(lock(2, 0, 0..10, Mode::Exclusive));
    assert_eq!(granted, [Effect::Granted(ticket(2, 0))]);
    let leave = |c| Event::Leave {
        client: ClientId(c),
        handle: HandleId(c),
    };
    assert_eq!(m.handle(leave(2)), []);
    assert_eq!(m.handle(leave(3)), []);
    let back = m.handle(Event::Unlock(ticket(2, 0)));
    assert_eq!(back, [lease(0, 2), lease(1, 2)]);
    // A client that asks again is told again.
    assert_eq!(m.handle(admit(0, 0, &left)), [lease(0, 2)]);
}

#[test]
fn manager_of_a_file_without_servers_answers_at_once() {
    let (mut m, _) = LockManager::restarted([], 0);
    assert_eq!(m.number(), 2, "leases of the first life are void");
    assert_eq!(m.handle(admit(0, 0, &View::whole_file())).len(), 1);
    let effects = m.handle(admit(1, 0, &View::whole_file()));
    let told = effects
        .iter()
        .filter(|e| matches!(e, Effect::UseLocks { .. }))
        .count();
    assert_eq!(told, 2);
}

#[test]
fn whoever_leaves_on_purpose_lets_go_without_fences() {
    let mut m = crowd(3);
    settle(&mut m, lock(0, 0, 0..10, Mode::Exclusive));
    settle(&mut m, lock(0, 1, 0..10, Mode::Exclusive));
    settle(&mut m, lock(1, 0, 0..10, Mode::Exclusive));
    let effects = settle(&mut m, Event::Left(ClientId(0)));
    assert_eq!(effects, [Effect::Granted(ticket(1, 0))]);
    let refused = Effect::Refused(ticket(0, 2), Refusal::NotAdmitted);
    assert_eq!(settle(&mut m, lock(0, 2, 0..1, Mode::Shared)), [refused]);
    settle(&mut m, Event::Left(ClientId(2)));
    settle(&mut m, Event::Unlock(ticket(1, 0)));
    let effects = settle(&mut m, admit(1, 0, &View::whole_file()));
    assert!(matches!(effects[..], [Effect::Lease { .. }]), "{effects:?}");
}

#[test]
fn a_server_that_comes_back_refuses_those_who_died_meanwhile() {
    let mut m = crowd(2);
    settle(&mut m, lock(0, 0, 0..10, Mode::Exclusive));
    settle(&mut m, Event::ServerGone(SERVERS[1]));
    settle(&mut m, Event::Died(ClientId(0)));
    assert_eq!(m.held().count(), 0);
    let effects = m.handle(Event::ServerAdded(SERVERS[1]));
    assert!(matches!(effects[0], Effect::Fence { client, .. } if client == ClientId(0)));
}
