//! What one client may have in one file: above it the owner refuses with the option named.
//!
//! Other clients, and what the client has already, are not concerned.

use control::locks::Mode;
use layout::View;
use wire::message::file::PointerMove;
use wire::{HandleId, Status};

use super::super::Refused;
use super::twin::World;
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
