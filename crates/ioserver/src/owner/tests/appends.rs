//! Places behind the end, and shared pointers: disjoint whatever the order, and given back by the
//! dead only when their bytes cannot arrive any more.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;

use layout::View;
use wire::message::file::{PointerMove, ReserveAnswer};
use wire::{ClientId, HandleId, Status};

use super::twin::{Random, World};
use super::{asker, request, until};

#[test]
fn places_are_disjoint_and_behind_everything_counted() {
    for seed in 0..4 {
        let world = World::new(2, seed);
        let owner = world.owner(0);
        let taken = Mutex::new(BTreeSet::new());
        thread::scope(|scope| {
            for client in 0..4 {
                let (owner, taken) = (&owner, &taken);
                scope.spawn(move || {
                    let view = View::whole_file();
                    let who = asker(client, &view);
                    let mut random = Random::new(seed * 9 + client);
                    for request in 0..50 {
                        let len = 1 + random.below(9);
                        let size = owner.size(&who).unwrap().size;
                        let place = owner.reserve(&who, request, len).unwrap();
                        assert!(place.offset >= size);
                        // The answer may get lost; the question has the same one.
                        assert_eq!(owner.reserve(&who, request, len).unwrap(), place);
                        let mut taken = taken.lock().unwrap();
                        for byte in place.offset..place.offset + len {
                            assert!(taken.insert(byte), "seed {seed}: byte {byte} twice");
                        }
                        let mut end = place.offset + len;
                        if random.below(5) == 0 {
                            // It is given up, and another may get it.
                            end = place.offset;
                            let given_up = place.offset..place.offset + len;
                            taken.retain(|b| !given_up.contains(b));
                        }
                        drop(taken);
                        let now = owner.appended(&who, request, place.epoch, end).unwrap();
                        assert!(end == place.offset || now.size >= end);
                        // Saying it twice is no mistake.
                        if end > place.offset {
                            owner.appended(&who, request, place.epoch, end).unwrap();
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn a_truncate_voids_all_places() {
    let world = World::new(2, 31);
    let owner = world.owner(0);
    let view = View::whole_file();
    let who = asker(1, &view);
    owner.grow(&who, 0, 1000).unwrap();
    let old = owner.reserve(&who, 1, 10).unwrap();
    assert_eq!(
        old,
        ReserveAnswer {
            offset: 1000,
            epoch: 0
        }
    );
    assert_eq!(
        owner.appended(&who, 1, 0, 1011).unwrap_err().status,
        Status::InvalidArgument
    );
    assert_eq!(
        owner.appended(&who, 1, 0, 999).unwrap_err().status,
        Status::InvalidArgument
    );
    owner.truncate(&who, HandleId(1), 5, request()).unwrap();
    assert_eq!(
        owner.appended(&who, 1, 0, 1010).unwrap_err().status,
        Status::StaleEpoch
    );
    let new = owner.reserve(&who, 2, 10).unwrap();
    assert_eq!(
        new,
        ReserveAnswer {
            offset: 5,
            epoch: 1
        }
    );
    assert_eq!(
        owner.reserve(&who, 3, u64::MAX).unwrap_err().status,
        Status::InvalidArgument
    );
}

#[test]
fn places_of_the_dead_are_given_back_after_fencing() {
    let world = World::new(2, 32);
    let owner = world.owner(0);
    let view = View::whole_file();
    let (dying, other) = (asker(1, &view), asker(2, &view));
    owner.reserve(&dying, 1, 100).unwrap();
    world.shut(1, "fence");
    thread::scope(|scope| {
        let died = scope.spawn(|| owner.client_died(ClientId(1)));
        until("the fence", || {
            world
                .lock()
                .servers
                .values()
                .all(|s| s.asked.contains_key("fence"))
        });
        assert!(!died.is_finished());
        assert_eq!(
            owner.reserve(&dying, 2, 1).unwrap_err().status,
            Status::Fenced
        );
        // Its bytes may still arrive: nobody gets the place.
        assert_eq!(owner.reserve(&other, 1, 1).unwrap().offset, 100);
        owner.appended(&other, 1, 0, 100).unwrap();
        world.open(1, "fence");
    });
    assert_eq!(owner.reserve(&other, 2, 1).unwrap().offset, 0);
    // Whoever leaves on purpose gives back at once.
    owner.client_left(ClientId(2));
    assert_eq!(owner.reserve(&asker(3, &view), 1, 1).unwrap().offset, 0);
    assert!(world.lock().servers.values().all(|s| s.asked["fence"] == 1));
}

#[test]
fn shared_pointers_hand_out_each_range_once() {
    let world = World::new(1, 33);
    let owner = world.owner(0);
    let taken = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        for client in 0..4 {
            let (owner, taken) = (&owner, &taken);
            scope.spawn(move || {
                let view = View::whole_file();
                let who = asker(client, &view);
                owner.join_pointer(&who, 9, 100).unwrap();
                for request in 1..40 {
                    let add = || owner.move_pointer(&who, 9, request, PointerMove::Add, 3);
                    let start = add().unwrap();
                    assert_eq!(add().unwrap(), start);
                    assert!(taken.lock().unwrap().insert(start));
                }
            });
        }
    });
    let taken = taken.into_inner().unwrap();
    assert!(taken.iter().copied().eq((0..4 * 39).map(|i| 100 + 3 * i)));
    let view = View::whole_file();
    let who = asker(0, &view);
    let step = |request, how, amount| {
        let moved = owner.move_pointer(&who, 9, request, how, amount);
        moved.map_err(|refused| refused.status)
    };
    let end = 100 + 3 * 4 * 39;
    assert_eq!(step(50, PointerMove::To, 7), Ok(end));
    assert_eq!(step(51, PointerMove::Stay, 99), Ok(7));
    assert_eq!(step(52, PointerMove::Stay, 0), Ok(7));
    assert_eq!(
        step(53, PointerMove::To, u64::MAX),
        Err(Status::InvalidArgument)
    );
    // The group ends with its last member: those who left, and those who died.
    for client in 1..3 {
        owner.client_died(ClientId(client));
    }
    owner.leave_pointer(&asker(3, &view), 9).unwrap();
    assert_eq!(step(54, PointerMove::Stay, 0), Ok(7));
    owner.client_left(ClientId(0));
    assert_eq!(step(55, PointerMove::Stay, 0), Err(Status::BadHandle));
    assert_eq!(
        owner.join_pointer(&who, 9, u64::MAX).unwrap_err().status,
        Status::InvalidArgument
    );
}
