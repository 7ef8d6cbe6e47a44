//! Death of clients and servers at the worst times: while servers are told, while they are asked to
//! fence, while locks are held and waited for.
//!
//! A dead client's thread goes on in these tests, as a process does that was only thought dead.

use std::collections::BTreeSet;
use std::thread;

use control::locks::Mode;
use layout::View;
use wire::{ClientId, ServerId, Status};

use super::atomic::{Client, counter, crowd, waits};
use super::twin::{CELLS, FILE, OTHER, Random, World};
use super::{Asker, asker, until};

fn asked(world: &World, server: u64, what: &str) -> usize {
    let inside = world.lock();
    inside.servers[&ServerId(server)]
        .asked
        .get(what)
        .copied()
        .unwrap_or(0)
}

#[test]
fn seed001_s79_locks_of_the_dead_are_granted_when_all_servers_refuse_it() {
    let world = World::new(2, 41);
    let owner = world.owner(0);
    let mut clients = crowd(&world, &owner, 3);
    let number = clients[0].admit().unwrap().number;
    clients[0].lock(1, 100, Mode::Exclusive).unwrap();
    world.shut(1, "fence");
    thread::scope(|scope| {
        let (first, second) = (&clients[0], &clients[1]);
        let waiting = scope.spawn(|| second.lock(1, 100, Mode::Exclusive));
        until("waiting", || waits(&owner) == 1);
        // A second request of the dying one waits too, and is dropped at once.
        let late = scope.spawn(|| first.lock(2, 100, Mode::Shared));
        until("waiting", || waits(&owner) == 2);
        let died = scope.spawn(|| owner.client_died(ClientId(0)));
        assert_eq!(late.join().unwrap(), Err(Status::Fenced));
        until("the fences", || {
            (0..2).all(|s| asked(&world, s, "fence") == 1)
        });
        assert!(!waiting.is_finished() && !died.is_finished());
        assert_eq!(first.unlock(1), Err(Status::Fenced));
        world.open(1, "fence");
        waiting.join().unwrap().unwrap();
    });
    // Its late messages are refused.
    for server in [ServerId(0), ServerId(1)] {
        let late = world.access(server, ClientId(0), Some(number), &[0], |_| {});
        assert_eq!(late, Err(Status::Fenced));
    }
    assert_eq!(clients[0].admit(), Err(Status::Fenced));
    assert_eq!(counter(&owner, "fences"), 1);
    // Twice dead is dead.
    owner.client_died(ClientId(0));
    assert_eq!(asked(&world, 0, "fence"), 1);
}

#[test]
fn death_while_servers_are_told() {
    // The one who arrives dies, or the one who has the lease.
    for dying in [1, 0] {
        let world = World::new(2, 42);
        let owner = world.owner(0);
        let mut clients: Vec<Client<'_>> = (0..3)
            .map(|id| Client::new(&world, &owner, id, View::whole_file()))
            .collect();
        assert!(!clients[0].admit().unwrap().use_locks);
        world.shut(1, "tell");
        let arrived = thread::scope(|scope| {
            let (first, rest) = clients.split_at_mut(1);
            let (second, third) = rest.split_at_mut(1);
            let arriving = scope.spawn(|| second[0].admit());
            until("telling", || asked(&world, 1, "tell") == 1);
            let died = scope.spawn(|| owner.client_died(ClientId(dying)));
            let next = scope.spawn(|| third[0].admit());
            if dying == 0 {
                died.join().unwrap();
                assert_eq!(first[0].admit(), Err(Status::Fenced));
            }
            until("death", || owner.is_dead(ClientId(dying)));
            assert!(!next.is_finished());
            world.open(1, "tell");
            next.join().unwrap().unwrap();
            arriving.join().unwrap()
        });
        let survivor = 1 - dying as usize;
        assert_eq!(arrived.is_ok(), survivor == 1, "{arrived:?}");
        clients[survivor].write(2 * CELLS, 5).unwrap();
        assert_eq!(clients[2].read(2 * CELLS).unwrap(), BTreeSet::from([5]));
    }
}

#[test]
fn a_server_that_is_gone_is_fenced_and_told_when_it_is_back() {
    let world = World::new(2, 43);
    let owner = world.owner(0);
    owner.members_are(&world.members());
    let mut clients = crowd(&world, &owner, 2);
    let number = clients[1].admit().unwrap().number;
    clients[0].lock(1, 100, Mode::Exclusive).unwrap();
    world.on_server(1, |s| s.is_up = false);
    // Nothing runs at a server that is not there: the lock is free.
    owner.client_died(ClientId(0));
    clients[1].lock(1, 100, Mode::Exclusive).unwrap();
    // It comes back as a new start on its disks, which remembers nothing.
    world.on_server(1, |s| {
        s.is_up = true;
        s.incarnation = 2;
        s.fenced.clear();
        s.files.clear();
    });
    owner.members_are(&world.members());
    let inside = world.lock();
    let server = &inside.servers[&ServerId(1)];
    assert!(server.fenced.contains(&ClientId(0)));
    assert_eq!(server.files[&FILE].told, number);
}

#[test]
fn a_server_that_was_started_again_is_told_before_it_serves() {
    let world = World::new(2, 46);
    let owner = world.owner(0);
    owner.members_are(&world.members());
    let mut clients = crowd(&world, &owner, 2);
    let number = clients[1].admit().unwrap().number;
    clients[0].lock(1, 100, Mode::Exclusive).unwrap();
    owner.client_died(ClientId(0));
    // Server 1 starts again and remembers nothing; no list of members has said so yet.
    world.on_server(1, |s| {
        s.incarnation = 2;
        s.fenced.clear();
        s.files.clear();
    });
    let taken = owner.take_server(FILE, ServerId(1), Some(2)).unwrap();
    assert_eq!((taken.number, taken.fenced), (number, vec![ClientId(0)]));
    // From then on it is told whatever changes, also by the list that comes late.
    let before = asked(&world, 1, "tell");
    assert!(before > 0);
    owner.members_are(&world.members());
    assert_eq!(asked(&world, 1, "tell"), before);
    owner.client_died(ClientId(1));
    assert!(
        world.lock().servers[&ServerId(1)]
            .fenced
            .contains(&ClientId(1))
    );
    // Twice is no mistake.
    let taken = owner.take_server(FILE, ServerId(1), Some(2)).unwrap();
    assert_eq!(taken.fenced, [ClientId(0), ClientId(1)]);
}

#[test]
fn numbers_go_up_when_owner_and_servers_all_start_again() {
    let world = World::new(1, 47);
    let mut last = 0;
    for start in 1..4 {
        world.on_server(0, |s| {
            s.incarnation = start;
            s.files.clear();
        });
        let owner = world.owner(0);
        let taken = owner.take_server(FILE, ServerId(0), Some(start)).unwrap();
        let mut client = Client::new(&world, &owner, 1, View::whole_file());
        let number = client.admit().unwrap().number;
        assert!(number > last, "start {start}: lease {number} after {last}");
        assert_eq!(taken.number, number);
        last = number;
    }
}

#[test]
fn a_server_that_is_there_but_slow_is_waited_for() {
    let world = World::new(2, 44);
    let owner = world.owner(0);
    let clients = crowd(&world, &owner, 2);
    clients[0].lock(1, 100, Mode::Exclusive).unwrap();
    world.on_server(1, |s| s.is_slow = true);
    owner.client_died(ClientId(0));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| clients[1].lock(1, 100, Mode::Exclusive));
        until("waiting", || waits(&owner) == 1);
        let before = asked(&world, 1, "fence");
        owner.flush_dirty_sizes();
        assert!(asked(&world, 1, "fence") > before);
        assert!(
            !waiting.is_finished(),
            "writes of the dead may still arrive there"
        );
        world.on_server(1, |s| s.is_slow = false);
        owner.flush_dirty_sizes();
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn a_slow_server_of_one_file_does_not_hold_up_another_file() {
    let world = World::new(2, 45);
    let owner = world.owner(0);
    let view = View::whole_file();
    let mut clients: Vec<Client<'_>> = (0..2)
        .map(|id| Client::new(&world, &owner, id, view.clone()))
        .collect();
    clients[0].admit().unwrap();
    world.shut(1, "tell");
    thread::scope(|scope| {
        let (first, second) = clients.split_at_mut(1);
        scope.spawn(|| second[0].admit().unwrap());
        until("telling", || asked(&world, 1, "tell") == 1);
        let other = Asker {
            file: OTHER,
            ..asker(5, &view)
        };
        assert_eq!(owner.size(&other).unwrap().size, 0);
        owner.admit(&other, wire::HandleId(5)).unwrap();
        owner
            .lock(&other, wire::HandleId(5), 1, 0..9, Mode::Exclusive)
            .unwrap();
        assert_eq!(owner.grow(&other, 0, 9).unwrap().size, 9);
        // Of the file itself the size is not held up either.
        assert_eq!(owner.size(&first[0].asker()).unwrap().size, 0);
        world.open(1, "tell");
    });
    assert_eq!(owner.statistics()[0].value, 2);
}

/// Clients that lock, write everything and read it back, some of which are declared dead at any
/// moment and go on for all they can: whoever gets through has been alone.
#[test]
fn no_two_conflicting_grants_whoever_dies() {
    for seed in 0..10 {
        let world = World::new(2, seed);
        let owner = world.owner(0);
        let cells: Vec<usize> = (0..CELLS as usize).collect();
        thread::scope(|scope| {
            let mut workers = Vec::new();
            for id in 0..6 {
                let (world, owner, cells) = (&*world, &owner, &cells);
                workers.push(scope.spawn(move || {
                    let mut client = Client::new(world, owner, id, View::whole_file());
                    for request in 1..30 {
                        let mut round = || -> Result<(), Status> {
                            let number = client.admit()?.number;
                            client.lock(request, 2 * CELLS, Mode::Exclusive)?;
                            let both = [ServerId(0), ServerId(1)];
                            let stamp = id * 1000 + request;
                            for server in both {
                                let write = |cell: &mut u64| *cell = stamp;
                                world.access(server, ClientId(id), Some(number), cells, write)?;
                            }
                            for server in both {
                                let check = |cell: &mut u64| {
                                    assert_eq!(*cell, stamp, "seed {seed}: not alone");
                                };
                                world.access(server, ClientId(id), Some(number), cells, check)?;
                            }
                            client.unlock(request)
                        };
                        match round() {
                            Ok(()) => {}
                            Err(Status::Fenced) => return assert!(id >= 3, "seed {seed}"),
                            // The number went up: the lock is let go and everything repeated.
                            Err(Status::StaleLease) => drop(client.unlock(request)),
                            Err(other) => panic!("seed {seed}: {other}"),
                        }
                    }
                }));
            }
            let mut random = Random::new(seed + 77);
            for id in 3..6 {
                let granted = counter(&owner, "locks_granted") + random.below(20);
                until("some work", || {
                    owner.flush_dirty_sizes();
                    counter(&owner, "locks_granted") >= granted.min(60)
                });
                let is_slow = random.below(3) == 0;
                world.on_server(1, |s| s.is_slow = is_slow);
                owner.client_died(ClientId(id));
                world.on_server(1, |s| s.is_slow = false);
            }
            // Who was slow is asked again, as the server does every second.
            until("the end of the work", || {
                owner.flush_dirty_sizes();
                workers.iter().all(|w| w.is_finished())
            });
        });
    }
}
