//! Atomic mode with clients as threads that follow the protocol: admission, locks, leases.
//!
//! The cells of the twin's servers show what locks are for: a writer sets all cells of its view to one
//! value, one after the other and server after server, and a reader that sees two values has seen
//! half a write.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use control::locks::Mode;
use layout::{View, ViewOffset};
use wire::message::file::AdmitAnswer;
use wire::{ClientId, HandleId, ServerId, Status};

use super::super::{Asker, Owner};
use super::twin::{CELLS, Random, World};
use super::{asker, every, until};

/// A client with one handle in atomic mode.
pub(super) struct Client<'a> {
    world: &'a World,
    owner: &'a Owner,
    id: u64,
    view: View,
    admitted: Option<AdmitAnswer>,
    requests: u64,
}

impl<'a> Client<'a> {
    pub(super) fn new(world: &'a World, owner: &'a Owner, id: u64, view: View) -> Self {
        Client {
            world,
            owner,
            id,
            view,
            admitted: None,
            requests: 0,
        }
    }

    pub(super) fn asker(&self) -> Asker<'_> {
        asker(self.id, &self.view)
    }

    fn handle(&self) -> HandleId {
        HandleId(self.id)
    }

    pub(super) fn admit(&mut self) -> Result<AdmitAnswer, Status> {
        let admitted = self.owner.admit(&self.asker(), self.handle());
        let admitted = admitted.map_err(|refused| refused.status)?;
        self.admitted = Some(admitted.clone());
        Ok(admitted)
    }

    pub(super) fn leave(&mut self) {
        self.owner
            .leave_atomic(&self.asker(), self.handle())
            .unwrap();
        self.admitted = None;
    }

    pub(super) fn lock(&self, request: u64, len: u64, mode: Mode) -> Result<(), Status> {
        self.owner
            .lock(&self.asker(), self.handle(), request, 0..len, mode)
            .map_err(|refused| refused.status)
    }

    pub(super) fn unlock(&self, request: u64) -> Result<(), Status> {
        let done = self.owner.unlock(&self.asker(), request);
        done.map_err(|refused| refused.status)
    }

    /// The cells of the first `len` bytes of the view, by server.
    fn cells(&self, len: u64) -> Vec<(ServerId, Vec<usize>)> {
        let mut parts: Vec<(ServerId, Vec<usize>)> = Vec::new();
        for k in 0..len {
            let byte = self.view.view_to_file(ViewOffset(k)).unwrap().0;
            let (server, cell) = (ServerId(byte / CELLS), (byte % CELLS) as usize);
            match parts.last_mut() {
                Some((s, cells)) if *s == server => cells.push(cell),
                _ => parts.push((server, vec![cell])),
            }
        }
        parts
    }

    /// One atomic access, repeated until it went through with a valid lease or lock.
    pub(super) fn access(
        &mut self,
        len: u64,
        mode: Mode,
        mut each: impl FnMut(&mut u64),
        mut begin: impl FnMut(),
    ) -> Result<(), Status> {
        let parts = self.cells(len);
        let mut has_lock = false;
        let done = loop {
            let admitted = match self.admitted.clone() {
                Some(admitted) => admitted,
                None => self.admit()?,
            };
            begin();
            // What was locked stays locked while it is repeated: half of it may be done.
            if !has_lock && (admitted.use_locks || parts.len() > 1) {
                self.requests += 1;
                self.lock(self.requests, len, mode)?;
                has_lock = true;
            }
            let mut done = Ok(());
            for (server, cells) in &parts {
                let client = ClientId(self.id);
                let number = Some(admitted.number);
                done = self.world.access(*server, client, number, cells, &mut each);
                if done.is_err() {
                    break;
                }
            }
            match done {
                Err(Status::StaleLease) => self.admitted = None,
                done => break done,
            }
        };
        if has_lock {
            self.unlock(self.requests)?;
        }
        done
    }

    pub(super) fn write(&mut self, len: u64, value: u64) -> Result<(), Status> {
        self.access(len, Mode::Exclusive, |cell| *cell = value, || {})
    }

    /// The values that the cells have.
    pub(super) fn read(&mut self, len: u64) -> Result<BTreeSet<u64>, Status> {
        let seen = Mutex::new(BTreeSet::new());
        self.access(
            len,
            Mode::Shared,
            |cell| {
                seen.lock().unwrap().insert(*cell);
            },
            || seen.lock().unwrap().clear(),
        )?;
        Ok(seen.into_inner().unwrap())
    }
}

/// Everybody admitted with the whole file.
pub(super) fn crowd<'a>(world: &'a World, owner: &'a Owner, count: u64) -> Vec<Client<'a>> {
    let whole = (0..count).map(|id| Client::new(world, owner, id, View::whole_file()));
    let mut clients: Vec<Client<'a>> = whole.collect();
    for client in &mut clients {
        client.admit().unwrap();
    }
    clients
}

/// How many requests have had to wait for their locks so far.
pub(super) fn waits(owner: &Owner) -> u64 {
    counter(owner, "lock_waits")
}

pub(super) fn counter(owner: &Owner, name: &str) -> u64 {
    let statistics = owner.statistics();
    statistics.iter().find(|c| c.name == name).unwrap().value
}

#[test]
fn seed001_s73_overlapping_reads_hold_their_locks_together() {
    let world = World::new(2, 21);
    let owner = world.owner(0);
    let clients = crowd(&world, &owner, 4);
    for client in &clients {
        client.lock(1, 100, Mode::Shared).unwrap();
    }
    assert_eq!(waits(&owner), 0);
    for client in &clients {
        client.unlock(1).unwrap();
    }
}

#[test]
fn seed001_s74_atomic_readers_see_all_or_nothing_across_servers() {
    for seed in 0..6 {
        let world = World::new(2, seed);
        let owner = world.owner(0);
        let (len, values) = (2 * CELLS, AtomicU64::new(0));
        thread::scope(|scope| {
            for id in 0..5 {
                let (world, owner, values) = (&*world, &owner, &values);
                scope.spawn(move || {
                    let mut random = Random::new(seed * 100 + id);
                    let mut client = Client::new(world, owner, id, View::whole_file());
                    for _ in 0..40 {
                        match random.below(5) {
                            // Alone for a while, there are leases again.
                            0 => client.leave(),
                            1 | 2 => {
                                let value = values.fetch_add(1, Ordering::Relaxed);
                                client.write(len, value).unwrap();
                            }
                            _ => {
                                let seen = client.read(len).unwrap();
                                assert_eq!(seen.len(), 1, "seed {seed}: half a write was seen");
                            }
                        }
                    }
                    client.leave();
                });
            }
        });
        assert!(counter(&owner, "leases") > 0);
    }
}

#[test]
fn seed001_s75_the_end_of_a_write_wakes_all_readers_and_of_the_reads_the_writer() {
    let world = World::new(2, 23);
    let owner = world.owner(0);
    let clients = crowd(&world, &owner, 5);
    let held = AtomicUsize::new(0);
    thread::scope(|scope| {
        clients[0].lock(1, 100, Mode::Exclusive).unwrap();
        for (n, client) in (1..).zip(&clients[1..4]) {
            let held = &held;
            scope.spawn(move || {
                client.lock(1, 50, Mode::Shared).unwrap();
                held.fetch_add(1, Ordering::SeqCst);
            });
            until("waiting", || waits(&owner) == n);
        }
        let writer = scope.spawn(|| clients[4].lock(1, 100, Mode::Exclusive).unwrap());
        until("waiting", || waits(&owner) == 4);
        assert_eq!(held.load(Ordering::SeqCst), 0);
        clients[0].unlock(1).unwrap();
        until("all readers", || held.load(Ordering::SeqCst) == 3);
        assert!(!writer.is_finished());
        for client in &clients[1..4] {
            assert!(!writer.is_finished());
            client.unlock(1).unwrap();
        }
        writer.join().unwrap();
    });
}

#[test]
fn seed001_s76_a_writer_waits_only_for_those_who_came_before() {
    let world = World::new(2, 24);
    let owner = world.owner(0);
    let clients = crowd(&world, &owner, 3);
    thread::scope(|scope| {
        clients[0].lock(1, 100, Mode::Shared).unwrap();
        let writer = scope.spawn(|| clients[1].lock(1, 100, Mode::Exclusive).unwrap());
        until("waiting", || waits(&owner) == 1);
        // Readers that come later do not overtake it, although they could share with the first.
        let reader = scope.spawn(|| clients[2].lock(1, 100, Mode::Shared).unwrap());
        until("waiting", || waits(&owner) == 2);
        clients[0].unlock(1).unwrap();
        writer.join().unwrap();
        assert!(!reader.is_finished());
        clients[1].unlock(1).unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn seed001_s77_disjoint_accesses_are_right_without_locks() {
    let world = World::new(2, 25);
    let owner = world.owner(0);
    thread::scope(|scope| {
        // Handles that are not in atomic mode never come to the owner.
        for id in 0..2 {
            let world = &*world;
            scope.spawn(move || {
                for value in 0..50 {
                    let cells: Vec<usize> = (0..4).map(|i| 2 * i + id).collect();
                    for server in [ServerId(0), ServerId(1)] {
                        let write = |cell: &mut u64| *cell = value * 2 + id as u64;
                        world
                            .access(server, ClientId(id as u64), None, &cells, write)
                            .unwrap();
                    }
                }
            });
        }
    });
    let inside = world.lock();
    for server in inside.servers.values() {
        for (at, cell) in server.files[&super::FILE].cells.iter().enumerate() {
            assert_eq!(*cell, 49 * 2 + at as u64 % 2);
        }
        assert!(server.asked.is_empty());
    }
    drop(inside);
    assert_eq!(counter(&owner, "locks_granted"), 0);
}

/// Nothing reads bytes to write them back: servers scatter exactly the bytes of the view, so a
/// write with gaps needs no lock on what is in the gaps.
#[test]
fn seed001_s78_writes_with_gaps_leave_the_gaps_to_others() {
    let world = World::new(2, 26);
    let owner = world.owner(0);
    thread::scope(|scope| {
        for id in 0..2 {
            let (world, owner) = (&*world, &owner);
            scope.spawn(move || {
                let mut client = Client::new(world, owner, id, every(id, 2));
                for round in 0..40 {
                    let value = round * 2 + id;
                    client.write(CELLS, value).unwrap();
                    assert_eq!(client.read(CELLS).unwrap(), BTreeSet::from([value]));
                }
            });
        }
    });
    assert_eq!(waits(&owner), 0, "views without a common byte never wait");
}

#[test]
fn overlapping_views_move_between_leases_and_locks_and_never_meet() {
    for seed in 0..8 {
        let world = World::new(2, seed);
        let owner = world.owner(0);
        // Who is inside a critical access to the cells of server 0: writers alone.
        let (readers, writers) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let all = std::sync::Barrier::new(4);
        thread::scope(|scope| {
            for id in 0..4 {
                let (world, owner) = (&*world, &owner);
                let (readers, writers, all) = (&readers, &writers, &all);
                scope.spawn(move || {
                    let mut random = Random::new(seed * 7 + id);
                    // Two overlap with everything, two are disjoint.
                    let view = [
                        View::whole_file(),
                        every(0, 2),
                        every(1, 2),
                        View::whole_file(),
                    ];
                    let mut client = Client::new(world, owner, id, view[id as usize].clone());
                    let excludes = id == 0 || id == 3;
                    // They meet at least once, however slowly they start.
                    client.admit().unwrap();
                    all.wait();
                    client.write(CELLS / 2, id).unwrap();
                    all.wait();
                    for step in 0..60 {
                        if random.below(4) == 0 {
                            client.leave();
                        }
                        let len = CELLS / if excludes { 1 } else { 2 };
                        if excludes && random.below(2) == 0 {
                            let enter = |_: &mut u64| {
                                writers.fetch_add(1, Ordering::SeqCst);
                                assert_eq!(writers.load(Ordering::SeqCst), 1, "seed {seed}");
                                assert_eq!(readers.load(Ordering::SeqCst), 0, "seed {seed}");
                                writers.fetch_sub(1, Ordering::SeqCst);
                            };
                            client.access(len, Mode::Exclusive, enter, || {}).unwrap();
                            client.write(len, step).unwrap();
                        } else if excludes {
                            let seen = client.read(len).unwrap();
                            let own = |set: &BTreeSet<u64>| set.len();
                            assert!(own(&seen) <= 3, "seed {seed}: {seen:?}");
                        } else {
                            client.write(len, 1000 + id).unwrap();
                            let seen = client.read(len).unwrap();
                            assert_eq!(seen.len(), 1, "seed {seed}: {seen:?}");
                        }
                    }
                    client.leave();
                });
            }
        });
        assert!(counter(&owner, "leases") > 0 && counter(&owner, "locks_granted") > 0);
    }
}

#[test]
fn whoever_gives_up_or_loses_its_connection_waits_no_longer() {
    let world = World::new(2, 27);
    let owner = world.owner(0);
    let clients = crowd(&world, &owner, 4);
    clients[0].lock(1, 10, Mode::Exclusive).unwrap();
    thread::scope(|scope| {
        // The connection ends while it waits.
        let waiting = scope.spawn(|| {
            let gone = Asker {
                is_connected: &|| false,
                ..clients[1].asker()
            };
            owner.lock(&gone, HandleId(1), 5, 0..10, Mode::Exclusive)
        });
        assert_eq!(
            waiting.join().unwrap().unwrap_err().status,
            Status::Unreachable
        );
        // Another connection of the client says so.
        let waiting = scope.spawn(|| clients[1].lock(6, 10, Mode::Exclusive));
        until("waiting", || waits(&owner) == 2);
        assert_eq!(
            clients[1].lock(6, 10, Mode::Shared),
            Err(Status::InvalidArgument)
        );
        clients[1].unlock(6).unwrap();
        assert_eq!(waiting.join().unwrap(), Err(Status::InvalidArgument));
        // The dispatcher says so; what is held stays.
        let waiting = scope.spawn(|| clients[1].lock(7, 10, Mode::Exclusive));
        until("waiting", || waits(&owner) == 3);
        owner.connection_ended(ClientId(0), &[1]);
        owner.connection_ended(ClientId(1), &[3, 7]);
        assert_eq!(waiting.join().unwrap(), Err(Status::InvalidArgument));
        let waiting = scope.spawn(|| clients[2].lock(1, 10, Mode::Exclusive));
        until("waiting", || waits(&owner) == 4);
        // The holder goes on purpose: nobody is fenced.
        owner.client_left(ClientId(0));
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(counter(&owner, "fences"), 0);
    assert_eq!(clients[0].unlock(1), Err(Status::InvalidArgument));
    assert_eq!(clients[0].lock(2, 1, Mode::Shared), Err(Status::StaleLease));
}

#[test]
fn a_lock_that_waits_says_which_other_clients_hold_it() {
    let world = World::new(2, 29);
    let owner = world.owner(0);
    let clients = crowd(&world, &owner, 4);
    for (client, request) in [(0, 1), (1, 1), (2, 1)] {
        clients[client].lock(request, 10, Mode::Shared).unwrap();
    }
    let told = std::sync::Mutex::new(Vec::new());
    thread::scope(|scope| {
        // One that waits itself is in nobody's way, and none is in his own.
        let waiting = scope.spawn(|| clients[3].lock(1, 10, Mode::Exclusive));
        until("waiting", || waits(&owner) == 1);
        let also = scope.spawn(|| {
            let asker = Asker {
                waits_for: &|holders| told.lock().unwrap().push(holders.clone()),
                ..clients[2].asker()
            };
            owner.lock(&asker, HandleId(2), 5, 0..10, Mode::Exclusive)
        });
        until("told", || !told.lock().unwrap().is_empty());
        for client in &clients[..3] {
            client.unlock(1).unwrap();
        }
        waiting.join().unwrap().unwrap();
        clients[3].unlock(1).unwrap();
        also.join().unwrap().unwrap();
    });
    let told = told.into_inner().unwrap();
    assert_eq!(told[0], [ClientId(0), ClientId(1)].into());
}

#[test]
#[expect(clippy::reversed_empty_ranges)]
fn nonsense_is_refused() {
    let world = World::new(1, 28);
    let owner = world.owner(0);
    let whole = View::whole_file();
    let lock = |range| owner.lock(&asker(1, &whole), HandleId(1), 1, range, Mode::Shared);
    assert_eq!(lock(5..4).unwrap_err().status, Status::InvalidArgument);
    assert_eq!(lock(0..4).unwrap_err().status, Status::StaleLease);
    owner.admit(&asker(1, &whole), HandleId(1)).unwrap();
    assert_eq!(
        lock(0..u64::MAX).unwrap_err().status,
        Status::InvalidArgument
    );
    lock(0..4).unwrap();
    assert_eq!(lock(0..4).unwrap_err().status, Status::InvalidArgument);
}

#[test]
fn restarted_owner_voids_the_leases_of_its_former_life() {
    let world = World::new(2, 29);
    let first = world.owner(0);
    let mut old = Client::new(&world, &first, 1, View::whole_file());
    let lease = old.admit().unwrap();
    assert!(
        !lease.use_locks && lease.number > 0,
        "0 is for handles without atomic mode"
    );
    world.on_server(0, |s| s.incarnation = 2);
    let second = world.owner(0);
    let mut new = Client::new(&world, &second, 2, View::whole_file());
    let next = new.admit().unwrap();
    assert!(next.number > lease.number);
    let stale = world.access(ServerId(1), ClientId(1), Some(lease.number), &[0], |_| {});
    assert_eq!(stale, Err(Status::StaleLease));
    new.write(2 * CELLS, 3).unwrap();
}
