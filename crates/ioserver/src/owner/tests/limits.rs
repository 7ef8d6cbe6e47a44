//! What one client may have in one file, and one user in all files: above it the owner refuses with the option named.
//!
//! Others, and what the client has already, are not concerned.

use control::locks::Mode;
use layout::View;
use wire::message::file::PointerMove;
use wire::{HandleId, Status};

use super::super::{Asker, Refused};
use super::twin::{OTHER, World};
use super::{asker, request};

fn is_refused<T>(result: Result<T, Refused>) {
    let refused = result.err().expect("it is above the limit");
    assert_eq!(refused.status, Status::QuotaExceeded);
    let why = refused.refusal.text;
    assert!(why.contains("--locks"), "{why}");
}

#[test]
fn locks_places_and_pointers_of_a_client_are_counted() {
    let world = World::new(2, 1);
    let owner = world.owner(0).with_most_claims(4);
    let (view, whole) = (View::whole_file(), 0..10);
    let (greedy, other) = (asker(1, &view), asker(2, &view));
    // One of each kind, the fourth a second place.
    owner.admit(&greedy, HandleId(1)).unwrap();
    owner.join_pointer(&greedy, 7, 0).unwrap();
    let kept = request();
    let place = owner.reserve(&greedy, kept, 5).unwrap();
    let lock = request();
    owner
        .lock(&greedy, HandleId(1), lock, whole.clone(), Mode::Shared)
        .unwrap();
    is_refused(owner.admit(&greedy, HandleId(2)));
    is_refused(owner.join_pointer(&greedy, 8, 0));
    is_refused(owner.reserve(&greedy, request(), 5));
    is_refused(owner.lock(&greedy, HandleId(1), request(), whole.clone(), Mode::Shared));
    // What it has goes on: a repeated question, a moved pointer, the end of a lock, which makes room.
    assert_eq!(owner.reserve(&greedy, kept, 5).unwrap(), place);
    owner
        .move_pointer(&greedy, 7, request(), PointerMove::Add, 3)
        .unwrap();
    owner.unlock(&greedy, lock).unwrap();
    owner.reserve(&greedy, request(), 5).unwrap();
    is_refused(owner.reserve(&greedy, request(), 5));
    // Another client is not concerned.
    owner.join_pointer(&other, 7, 0).unwrap();
    owner.reserve(&other, request(), 5).unwrap();
    owner.client_left(greedy.client);
    owner.reserve(&greedy, request(), 5).unwrap();
}

#[test]
fn what_a_user_has_is_counted_over_all_his_clients_and_files() {
    let world = World::new(2, 1);
    let owner = world.owner(0).with_most_claims(4);
    let view = View::whole_file();
    let mine = |client: u64| asker(client, &view);
    let most = 4 * serving::CLIENTS_OF_A_USER as u64;
    // Each client has one of each kind.
    for client in 1..=most / 4 {
        let asker = mine(client);
        owner.admit(&asker, HandleId(1)).unwrap();
        owner
            .lock(&asker, HandleId(1), client, 0..10, Mode::Shared)
            .unwrap();
        owner.join_pointer(&asker, 7, 0).unwrap();
        owner.reserve(&asker, 1000 + client, 5).unwrap();
    }
    // One more client of the user finds no room for anything, in another file either; another user does.
    let late = |number: usize| Asker {
        file: OTHER,
        ..mine(most + number as u64)
    };
    let last = late(0);
    for _ in 0..2 {
        is_refused(owner.admit(&last, HandleId(1)));
        is_refused(owner.join_pointer(&last, 7, 0));
        is_refused(owner.reserve(&last, request(), 5));
    }
    let other = Asker {
        user: 8,
        ..mine(most - 1)
    };
    owner.join_pointer(&other, 7, 0).unwrap();
    // What ends makes room, and no more than there was.
    let mut free = 0;
    let mut freed = |count: usize, what: &str| {
        free += count;
        for number in 0..free {
            let place = owner.reserve(&late(number), request(), 5);
            place.unwrap_or_else(|no| panic!("{what}: {}", no.refusal.text));
        }
        is_refused(owner.reserve(&late(free), request(), 5));
        for number in 0..free {
            owner.client_left(late(number).client);
        }
    };
    freed(0, "nothing");
    owner.unlock(&mine(1), 1).unwrap();
    freed(1, "a lock was released");
    owner.unlock(&mine(1), 1).unwrap_err();
    freed(0, "a lock was released twice");
    owner.leave_atomic(&mine(1), HandleId(1)).unwrap();
    freed(1, "a handle left atomic mode");
    owner.leave_pointer(&mine(1), 7).unwrap();
    owner.leave_pointer(&mine(1), 7).unwrap();
    freed(1, "a pointer was left, twice");
    owner.appended(&mine(1), 1001, 0, 5).unwrap();
    freed(1, "a place was written");
    owner.client_left(mine(2).client);
    freed(4, "a client left");
    owner.client_died(mine(3).client);
    freed(4, "a client died and was fenced");
    owner.truncate(&mine(4), HandleId(1), 0, request()).unwrap();
    freed(most as usize / 4 - 3, "a truncate voided the places");
}
