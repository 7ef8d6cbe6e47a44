//! The beginning and the end of an owner's duties: servers that are new, states that come late, other owners.
//!
//! What is known of a file belongs to one uninterrupted time as its owner.

use std::sync::{Arc, Barrier};

use layout::View;
use wire::message::cluster::{PointerIs, PointerMember};
use wire::message::file::{PointerMove, SizeIs};
use wire::{HandleId, LayoutState, SizeState, Status};

use super::super::Refused;
use super::twin::{FILE, World};
use super::{asker, request};

const HANDLE: HandleId = HandleId(1);

/// The layout of the world without its last server, and with it.
fn before_and_after(world: &World) -> (LayoutState, LayoutState) {
    let after = world.lock().manager.layout.clone();
    let mut before = after.clone();
    let places = &mut before.pieces[0].places;
    let first = places[0].clone();
    *places.last_mut().expect("a server") = first;
    let mut after = after;
    after.step = before.step + 1;
    (before, after)
}

#[test]
fn a_server_that_is_new_is_cut_too() {
    let world = World::new(2, 21);
    let (before, after) = before_and_after(&world);
    world.change(|i| i.manager.layout = before);
    let owner = world.owner(0);
    let view = View::whole_file();
    owner.size(&asker(1, &view)).unwrap();
    // The file gets to server 1, which has the owner take it before it serves.
    world.change(|i| i.manager.layout = after);
    owner.take_server(FILE, wire::ServerId(1), None).unwrap();
    world.on_server(1, |s| s.files.entry(FILE).or_default().end = 90);
    owner.grow(&asker(1, &view), 0, 90).unwrap();
    owner
        .truncate(&asker(1, &view), HANDLE, 10, request())
        .unwrap();
    assert_eq!(
        world.lock().servers.values().last().unwrap().files[&FILE].end,
        10
    );
}

#[test]
fn a_state_that_comes_late_takes_no_server_away() {
    let world = World::new(2, 22);
    let (before, after) = before_and_after(&world);
    world.change(|i| i.manager.layout = after.clone());
    let owner = world.owner(0);
    let view = View::whole_file();
    owner.size(&asker(1, &view)).unwrap();
    owner.layout_is(FILE, &before);
    owner
        .truncate(&asker(1, &view), HANDLE, 10, request())
        .unwrap();
    let inside = world.lock();
    assert!(inside.servers.values().all(|s| s.files[&FILE].epoch == 1));
}

#[test]
fn whoever_owns_a_file_once_more_begins_anew() {
    let world = World::new(2, 23);
    let owner = world.owner(0);
    let view = View::whole_file();
    owner.grow(&asker(1, &view), 0, 50).unwrap();
    // Server 1 has owned it meanwhile; nobody came to say so, or to say that the file comes back.
    world.change(|i| {
        i.manager.layout.step = 9;
        i.manager.size = SizeState {
            size: 20,
            epoch: 4,
            truncate_to: None,
        };
    });
    for server in 0..2 {
        world.on_server(server, |s| {
            let file = s.files.entry(FILE).or_default();
            (file.epoch, file.end) = (4, 20);
        });
    }
    owner.take_pointers(FILE, Vec::new());
    let now = owner.size(&asker(1, &view)).unwrap();
    assert_eq!(now, SizeIs { size: 20, epoch: 4 });
}

#[test]
fn an_owner_that_is_refused_as_such_lets_go() {
    let world = World::new(2, 24);
    let owner = world.owner(0);
    let view = View::whole_file();
    owner.grow(&asker(1, &view), 0, 50).unwrap();
    let mut layout = world.lock().manager.layout.clone();
    layout.owner.server = 1;
    layout.step += 1;
    world.change(|i| {
        let text = "another server owns it";
        let refused = Refused::with_detail(Status::StaleLayout, text, &layout);
        i.manager.refusal = Some(refused);
        i.manager.layout = layout;
    });
    let refused = owner
        .truncate(&asker(1, &view), HANDLE, 10, request())
        .unwrap_err();
    assert_eq!(refused.status, Status::StaleLayout);
    // Whoever asks is told where to ask, with the state that says so.
    let refused = owner.size(&asker(1, &view)).unwrap_err();
    assert_eq!(refused.status, Status::StaleLayout);
    assert!(!refused.refusal.detail.0.is_empty());
}

#[test]
fn an_owner_goes_on_when_the_manager_that_asked_it_to_hand_over_is_gone() {
    let world = World::new(2, 25);
    let owner = world.owner(0);
    let view = View::whole_file();
    owner.size_to_hand_over(FILE).unwrap();
    let busy = owner.reserve(&asker(1, &view), 1, 8).unwrap_err();
    assert_eq!(busy.status, Status::Busy);
    let [(file, since)] = owner.handing_over()[..] else {
        panic!("one file is handed over");
    };
    // Handed over once more meanwhile: that is not over.
    owner.size_to_hand_over(FILE).unwrap();
    owner.resume(file, since).unwrap();
    assert_eq!(
        owner.reserve(&asker(1, &view), 1, 8).unwrap_err().status,
        Status::Busy
    );
    let since = owner.handing_over()[0].1;
    owner.resume(file, since).unwrap();
    owner.reserve(&asker(1, &view), 1, 8).unwrap();
}

#[test]
fn an_owner_whose_manager_did_not_answer_goes_on_at_the_next_look() {
    let world = World::new(2, 27);
    let owner = world.owner(0);
    let view = View::whole_file();
    owner.size_to_hand_over(FILE).unwrap();
    let since = owner.handing_over()[0].1;
    world.change(|i| i.manager.is_up = false);
    assert_eq!(
        owner.resume(FILE, since).unwrap_err().status,
        Status::Unreachable
    );
    owner.flush_dirty_sizes();
    assert_eq!(owner.handing_over(), [(FILE, since)]);
    world.change(|i| i.manager.is_up = true);
    owner.flush_dirty_sizes();
    owner.reserve(&asker(1, &view), 1, 8).unwrap();
    // The next manager has it handed over once more: that is not over.
    owner.size_to_hand_over(FILE).unwrap();
    owner.flush_dirty_sizes();
    let busy = owner.reserve(&asker(1, &view), 2, 8).unwrap_err();
    assert_eq!(busy.status, Status::Busy);
}

#[test]
fn a_write_of_an_epoch_that_the_owner_has_not_heard_of_counts() {
    let world = World::new(2, 26);
    let owner = world.owner(0);
    let view = View::whole_file();
    owner.grow(&asker(1, &view), 0, 50).unwrap();
    // The truncate is durable, and its answer on the way.
    world.change(|i| {
        i.manager.size = SizeState {
            size: 5,
            epoch: 1,
            truncate_to: Some(5),
        };
    });
    let now = owner.grow(&asker(2, &view), 1, 30).unwrap();
    assert_eq!(now, SizeIs { size: 30, epoch: 1 });
    let refused = owner.grow(&asker(2, &view), 7, 30).unwrap_err();
    assert_eq!(refused.status, Status::InvalidArgument);
}

#[test]
fn a_look_at_a_file_that_was_begun_before_it_came_takes_nothing_that_came_with_it() {
    let world = World::new(2, 27);
    let owner = world.owner(0);
    let view = View::whole_file();
    let who = asker(1, &view);
    let way = Arc::new(Barrier::new(2));
    world.change(|i| i.manager.slow_answer = Some(Arc::clone(&way)));
    std::thread::scope(|scope| {
        let late = scope.spawn(|| owner.size(&asker(2, &view)));
        way.wait();
        // The manager has answered the question; the file goes to another server, and comes back.
        let member = PointerMember {
            client: who.client,
            request: 0,
            answer: 0,
        };
        let told = PointerIs {
            group: 9,
            position: 300,
            members: vec![member],
        };
        owner.take_pointers(FILE, vec![told]);
        way.wait();
        let refused = late.join().unwrap().unwrap_err();
        assert_eq!(refused.status, Status::Busy);
    });
    let stands = owner.move_pointer(&who, 9, 1, PointerMove::Stay, 0);
    assert_eq!(stands, Ok(300));
}
