//! Sizes at the owner: growth, truncate, restart, and managers and servers that fail on the way.
//!
//! What is durable is read from the twin's manager, what was cut from its servers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use layout::View;
use wire::message::decode;
use wire::message::file::SizeIs;
use wire::{FileId, HandleId, Rights, SizeState, Status, Time};

use super::super::{Asker, Owner, Refused};
use super::twin::{FILE, Random, ServerFile, World};
use super::{asker, request, until};

const HANDLE: HandleId = HandleId(1);

fn is(size: u64, epoch: u64) -> SizeIs {
    SizeIs { size, epoch }
}

/// A write of a client in an epoch: the bytes at the servers, then the size.
fn write(
    world: &World,
    owner: &Owner,
    client: u64,
    epoch: u64,
    end: u64,
) -> Result<SizeIs, Status> {
    world.on_server(end % 2, |s| {
        let file = s.files.entry(FILE).or_default();
        file.end = file.end.max(end);
    });
    let view = View::whole_file();
    owner
        .grow(&asker(client, &view), epoch, end)
        .map_err(|refused| refused.status)
}

#[test]
fn seed004_s32_set_size_shrinks_and_grows_and_all_clients_agree() {
    let world = World::new(2, 1);
    let owner = world.owner(0);
    let view = View::whole_file();
    assert_eq!(owner.size(&asker(1, &view)).unwrap(), is(0, 0));
    assert_eq!(write(&world, &owner, 1, 0, 100), Ok(is(100, 0)));
    assert_eq!(write(&world, &owner, 2, 0, 40), Ok(is(100, 0)));
    assert_eq!(
        owner
            .truncate(&asker(2, &view), HANDLE, 30, request())
            .unwrap(),
        is(30, 1)
    );
    // What was cut is gone at the servers: it reads as zeros when the file grows again.
    assert!(
        world
            .lock()
            .servers
            .values()
            .all(|s| s.files[&FILE].end <= 30)
    );
    // A write that was overtaken is refused, with what to know.
    let refused = owner.grow(&asker(1, &view), 0, 90).unwrap_err();
    assert_eq!(refused.status, Status::StaleEpoch);
    assert_eq!(
        decode::<SizeIs>(&refused.refusal.detail.0).unwrap(),
        is(30, 1)
    );
    assert_eq!(
        owner
            .truncate(&asker(1, &view), HANDLE, 500, request())
            .unwrap(),
        is(500, 2)
    );
    for client in 1..5 {
        assert_eq!(owner.size(&asker(client, &view)).unwrap(), is(500, 2));
    }
    assert_eq!(world.lock().manager.size.truncate_to, None);
}

#[test]
fn rights_and_arguments_are_checked() {
    let world = World::new(2, 2);
    let owner = world.owner(0);
    let view = View::whole_file();
    let reader = Asker {
        rights: Rights::READ,
        ..asker(1, &view)
    };
    let denied = [
        owner.grow(&reader, 0, 1).unwrap_err().status,
        owner
            .truncate(&reader, HANDLE, 1, request())
            .unwrap_err()
            .status,
        owner.reserve(&reader, 1, 1).unwrap_err().status,
        owner.appended(&reader, 1, 0, 1).unwrap_err().status,
    ];
    assert_eq!(denied, [Status::PermissionDenied; 4]);
    assert_eq!(owner.size(&reader).unwrap(), is(0, 0));
    let far = u64::MAX;
    let all = asker(1, &view);
    assert_eq!(
        owner.grow(&all, 0, far).unwrap_err().status,
        Status::InvalidArgument
    );
    assert_eq!(
        owner
            .truncate(&all, HANDLE, far, request())
            .unwrap_err()
            .status,
        Status::InvalidArgument
    );
    // Not the owner, and no file at all.
    let other = world.owner(1).size(&all).unwrap_err();
    assert_eq!(other.status, Status::StaleLayout);
    assert!(
        other.refusal.text.contains("server 0"),
        "{}",
        other.refusal.text
    );
    let unknown = Asker {
        file: FileId(99),
        ..all
    };
    assert_eq!(owner.size(&unknown).unwrap_err().status, Status::NotFound);
}

#[test]
fn what_the_manager_refuses_the_client_hears() {
    let world = World::new(2, 3);
    let owner = world.owner(0);
    let view = View::whole_file();
    let why = Refused::new(Status::BadHandle, "no such handle");
    world.change(|i| i.manager.refusal = Some(why.clone()));
    let refused = owner
        .truncate(&asker(1, &view), HANDLE, 5, request())
        .unwrap_err();
    assert_eq!(refused, why);
    world.change(|i| i.manager.refusal = None);
    assert_eq!(
        owner
            .truncate(&asker(1, &view), HANDLE, 5, request())
            .unwrap(),
        is(5, 1)
    );
}

#[test]
fn sizes_are_reported_at_release_and_stay_dirty_while_that_fails() {
    let world = World::new(2, 4);
    let owner = world.owner(0);
    let view = View::whole_file();
    write(&world, &owner, 1, 0, 64).unwrap();
    assert_eq!(world.lock().manager.size.size, 0);
    world.change(|i| i.manager.is_up = false);
    assert_eq!(owner.flush_dirty_sizes(), 1);
    assert_eq!(
        owner.release(&asker(1, &view)).unwrap_err().status,
        Status::Unreachable
    );
    world.change(|i| i.manager.is_up = true);
    owner.release(&asker(1, &view)).unwrap();
    let reports = |world: &World| world.lock().manager.asked["report_size"];
    assert_eq!(world.lock().manager.size.size, 64);
    assert!(world.lock().manager.modified > Time(0));
    let before = reports(&world);
    assert_eq!(owner.flush_dirty_sizes(), 0);
    owner.release(&asker(1, &view)).unwrap();
    assert_eq!(reports(&world), before, "nothing new was reported");
    write(&world, &owner, 1, 0, 65).unwrap();
    assert_eq!(owner.flush_dirty_sizes(), 0);
    assert_eq!(world.lock().manager.size.size, 65);
}

#[test]
fn restarted_owner_asks_the_servers_and_applies_a_pending_truncate() {
    let world = World::new(2, 5);
    let view = View::whole_file();
    world.change(|i| {
        i.manager.size = SizeState {
            size: 10,
            epoch: 3,
            truncate_to: Some(10),
        };
        i.manager.layout.owner.incarnation = 0;
    });
    // Server 0 has not applied it, server 1 has, and has grown since.
    world.on_server(0, |s| {
        let file = s.files.entry(FILE).or_default();
        (file.epoch, file.end) = (2, 500);
    });
    world.on_server(1, |s| {
        let file = s.files.entry(FILE).or_default();
        (file.epoch, file.end) = (3, 25);
    });
    let owner = world.owner(0);
    assert_eq!(owner.size(&asker(1, &view)).unwrap(), is(25, 3));
    let inside = world.lock();
    assert_eq!(inside.manager.size.truncate_to, None);
    assert!(inside.servers.values().all(|s| s.files[&FILE].epoch == 3));
}

#[test]
fn an_owner_that_made_the_file_asks_nobody() {
    let world = World::new(3, 6);
    let owner = world.owner(0);
    let view = View::whole_file();
    owner.size(&asker(1, &view)).unwrap();
    assert!(world.lock().servers.values().all(|s| s.asked.is_empty()));
    // Unless it let go of it: then others may have done something.
    let mut layout = world.lock().manager.layout.clone();
    layout.owner.server = 1;
    owner.layout_is(FILE, &layout);
    owner.size(&asker(1, &view)).unwrap();
    assert!(
        world
            .lock()
            .servers
            .values()
            .all(|s| s.asked["ask_end"] == 1)
    );
}

#[test]
fn size_waits_for_a_server_that_comes_back_and_not_for_ever() {
    let world = World::new(2, 7);
    let view = View::whole_file();
    world.change(|i| i.manager.layout.owner.incarnation = 0);
    world.on_server(1, |s| {
        s.is_up = false;
        s.files.entry(FILE).or_default().end = 77;
    });
    let hasty = world.owner(0).with_patience(Duration::from_millis(1));
    let refused = hasty.size(&asker(1, &view)).unwrap_err();
    assert_eq!(refused.status, Status::Unreachable);
    assert!(
        refused.refusal.text.contains("server 1"),
        "{}",
        refused.refusal.text
    );

    let owner = world.owner(0);
    owner.members_are(&world.members());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| owner.size(&asker(1, &view)));
        until("loading", || owner.statistics()[0].value == 1);
        world.on_server(1, |s| s.is_up = true);
        owner.members_are(&world.members());
        until("the answer", || {
            owner.members_are(&world.members());
            waiting.is_finished()
        });
        assert_eq!(waiting.join().unwrap().unwrap(), is(77, 0));
    });
    // One whose bytes are lost is not waited for.
    world.on_server(1, |s| (s.incarnation, s.kept_since) = (2, 2));
    let owner = world.owner(0);
    owner.members_are(&world.members());
    assert_eq!(owner.size(&asker(1, &view)).unwrap(), is(0, 0));
}

#[test]
fn truncate_fails_and_keeps_its_intent_while_a_server_may_store_what_will_be_cut() {
    let world = World::new(3, 8);
    let owner = world.owner(0).with_patience(Duration::from_millis(1));
    owner.members_are(&world.members());
    let view = View::whole_file();
    write(&world, &owner, 1, 0, 100).unwrap();
    world.on_server(1, |s| {
        s.is_up = false;
        s.files.insert(
            FILE,
            ServerFile {
                end: 99,
                ..ServerFile::default()
            },
        );
    });
    world.on_server(2, |s| s.is_slow = true);
    let refused = owner
        .truncate(&asker(1, &view), HANDLE, 10, request())
        .unwrap_err();
    assert_eq!(refused.status, Status::Unreachable);
    for named in ["server 1", "server 2", "set to 10 all the same"] {
        assert!(
            refused.refusal.text.contains(named),
            "{}",
            refused.refusal.text
        );
    }
    assert_eq!(world.lock().manager.size.truncate_to, Some(10));
    // Server 2 can be reached and has not cut: nobody hears of the new size, nor that a write was counted in it.
    let unknown = owner.size(&asker(2, &view)).unwrap_err();
    assert!(
        unknown.refusal.text.contains("server 2"),
        "{}",
        unknown.refusal.text
    );
    assert_eq!(write(&world, &owner, 2, 1, 30), Err(Status::Unreachable));
    // The next one cannot begin before they have cut; nobody waits for ever.
    let waiting = Asker {
        is_connected: &|| false,
        ..asker(2, &view)
    };
    let refused = owner.truncate(&waiting, HANDLE, 5, request()).unwrap_err();
    assert_eq!(refused.status, Status::Unreachable);
    // The slow one does it when asked again, the other one when it is back.
    world.on_server(2, |s| s.is_slow = false);
    owner.flush_dirty_sizes();
    assert_eq!(
        world.lock().servers[&wire::ServerId(2)].files[&FILE].epoch,
        1
    );
    assert_eq!(world.lock().manager.size.truncate_to, Some(10));
    assert_eq!(owner.size(&asker(2, &view)).unwrap(), is(30, 1));
    world.on_server(1, |s| s.is_up = true);
    owner.server_back(wire::ServerId(1));
    assert_eq!(
        world.lock().servers[&wire::ServerId(1)].files[&FILE].end,
        10
    );
    assert_eq!(world.lock().manager.size.truncate_to, None);
    assert_eq!(
        owner
            .truncate(&asker(1, &view), HANDLE, 5, request())
            .unwrap(),
        is(5, 2)
    );
}

#[test]
fn truncate_ends_when_the_start_that_could_not_be_asked_is_over() {
    let world = World::new(2, 12);
    let owner = world.owner(0);
    owner.members_are(&world.members());
    let view = View::whole_file();
    write(&world, &owner, 1, 0, 100).unwrap();
    world.on_server(1, |s| s.is_up = false);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| owner.truncate(&asker(1, &view), HANDLE, 10, request()));
        until("the intent", || {
            world.lock().manager.size.truncate_to == Some(10)
        });
        // Dead as far as the manager knows: it may be cut off, and its clients store there.
        owner.members_are(&world.members());
        assert!(!waiting.is_finished());
        // A new start was seen, and has gone again before it could be asked.
        world.on_server(1, |s| s.incarnation = 2);
        owner.members_are(&world.members());
        assert_eq!(waiting.join().unwrap().unwrap(), is(10, 1));
    });
    assert_eq!(world.lock().manager.size.truncate_to, Some(10));
    world.on_server(1, |s| s.is_up = true);
    owner.members_are(&world.members());
    assert_eq!(world.lock().manager.size.truncate_to, None);
}

#[test]
fn nobody_hears_of_a_size_before_servers_have_cut() {
    let world = World::new(2, 13);
    let owner = world.owner(0);
    let view = View::whole_file();
    write(&world, &owner, 1, 0, 100).unwrap();
    world.shut(1, "apply");
    thread::scope(|scope| {
        let cutting = scope.spawn(|| owner.truncate(&asker(1, &view), HANDLE, 10, request()));
        until("the cut", || {
            let inside = world.lock();
            inside.servers[&wire::ServerId(1)]
                .asked
                .contains_key("apply")
        });
        // It is answered after the last server has cut, or not at all.
        assert_eq!(owner.size_now(FILE).unwrap_err().status, Status::Busy);
        let asking = scope.spawn(|| {
            let size = owner.size(&asker(2, &view));
            (
                size,
                world.lock().servers[&wire::ServerId(1)].files[&FILE].epoch,
            )
        });
        world.open(1, "apply");
        let (size, epoch) = asking.join().unwrap();
        assert_eq!((size.unwrap(), epoch), (is(10, 1), 1));
        assert_eq!(cutting.join().unwrap().unwrap(), is(10, 1));
    });
}

#[test]
fn an_intent_whose_answer_was_lost_holds_everything_up_until_it_is_known() {
    let world = World::new(2, 9);
    let owner = world.owner(0);
    let view = View::whole_file();
    write(&world, &owner, 1, 0, 100).unwrap();
    // The answer to the intent is lost, but the manager can be asked: it was recorded.
    world.change(|i| i.manager.lost_answers = 1);
    assert_eq!(
        owner
            .truncate(&asker(1, &view), HANDLE, 10, request())
            .unwrap(),
        is(10, 1)
    );
    // Now the manager is gone after that: nobody knows.
    write(&world, &owner, 1, 1, 50).unwrap();
    world.change(|i| i.manager.lost_answers = 2);
    let refused = owner
        .truncate(&asker(1, &view), HANDLE, 20, request())
        .unwrap_err();
    assert_eq!(refused.status, Status::Unreachable);
    assert_eq!(write(&world, &owner, 1, 1, 60), Err(Status::Unreachable));
    assert_eq!(
        owner.size(&asker(2, &view)).unwrap_err().status,
        Status::Unreachable
    );
    world.change(|i| (i.manager.lost_answers, i.manager.is_up) = (0, true));
    assert_eq!(write(&world, &owner, 1, 1, 60), Err(Status::StaleEpoch));
    assert_eq!(owner.size(&asker(2, &view)).unwrap(), is(20, 2));
    assert_eq!(world.lock().manager.size.truncate_to, None);
}

#[test]
fn an_epoch_that_began_elsewhere_is_taken_over_at_the_next_report() {
    let world = World::new(2, 10);
    let owner = world.owner(0);
    let view = View::whole_file();
    write(&world, &owner, 1, 0, 100).unwrap();
    world.change(|i| {
        i.manager.size = SizeState {
            size: 3,
            epoch: 1,
            truncate_to: Some(3),
        };
    });
    owner.release(&asker(1, &view)).unwrap();
    assert_eq!(owner.size(&asker(1, &view)).unwrap(), is(3, 1));
    let inside = world.lock();
    assert!(inside.servers.values().all(|s| s.files[&FILE].epoch == 1));
    assert_eq!(inside.manager.size.truncate_to, None);
}

#[test]
fn a_file_that_is_handed_over_counts_what_nobody_came_to_report() {
    let world = World::new(2, 11);
    let owner = world.owner(0);
    write(&world, &owner, 1, 0, 10).unwrap();
    world.on_server(1, |s| s.files.entry(FILE).or_default().end = 44);
    assert_eq!(owner.size_to_hand_over(FILE).unwrap(), is(44, 0));
    owner.removed(FILE);
    assert_eq!(owner.statistics()[0].value, 0);
}

/// Clients that write and truncate at random, a manager that loses answers, servers that come and go:
/// the size is at least every counted write of its epoch, and in the end everything agrees.
#[test]
fn counted_writes_are_in_the_size_whatever_fails() {
    for seed in 0..12 {
        let world = World::new(3, seed);
        let owner = world.owner(0);
        let workers = AtomicUsize::new(3);
        let workers = &workers;
        thread::scope(|scope| {
            for client in 1..4 {
                let (world, owner) = (&world, &owner);
                scope.spawn(move || {
                    let view = View::whole_file();
                    let mut random = Random::new(seed * 10 + client);
                    for _ in 0..60 {
                        let who = asker(client, &view);
                        if random.below(6) == 0 {
                            // Refused while a manager is away, which it is for a while.
                            let _ = owner.truncate(&who, HANDLE, random.below(50), request());
                            continue;
                        }
                        let Ok(now) = owner.size(&who) else { continue };
                        let end = random.below(100);
                        match write(world, owner, client, now.epoch, end) {
                            Ok(size) => assert!(size.epoch > now.epoch || size.size >= end),
                            Err(Status::StaleEpoch | Status::Unreachable) => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                    workers.fetch_sub(1, Ordering::SeqCst);
                });
            }
            let (world, owner) = (&world, &owner);
            scope.spawn(move || {
                let mut random = Random::new(seed + 1000);
                for _ in 0..40 {
                    let server = 1 + random.below(2);
                    match random.below(4) {
                        0 => world.on_server(server, |s| s.is_up = false),
                        1 => world.on_server(server, |s| s.is_up = true),
                        2 => world.change(|i| i.manager.lost_answers = 1),
                        _ => {
                            world.change(|i| i.manager.is_up = true);
                            owner.flush_dirty_sizes();
                        }
                    }
                    owner.members_are(&world.members());
                    thread::yield_now();
                }
                for server in 0..3 {
                    world.on_server(server, |s| s.is_up = true);
                }
                world.change(|i| (i.manager.is_up, i.manager.lost_answers) = (true, 0));
                // Lists of members keep coming, and so does the flush.
                until("the end of the work", || {
                    owner.members_are(&world.members());
                    owner.flush_dirty_sizes();
                    workers.load(Ordering::SeqCst) == 0
                });
            });
        });
        owner.members_are(&world.members());
        owner.flush_dirty_sizes();
        assert_eq!(owner.flush_dirty_sizes(), 0, "seed {seed}");
        let view = View::whole_file();
        let size = owner.size(&asker(1, &view)).unwrap();
        let inside = world.lock();
        let durable = inside.manager.size;
        assert_eq!(
            (durable.size, durable.epoch),
            (size.size, size.epoch),
            "seed {seed}"
        );
        assert_eq!(durable.truncate_to, None, "seed {seed}");
        if size.epoch > 0 {
            let epochs = inside.servers.values().map(|s| s.files[&FILE].epoch);
            assert!(epochs.into_iter().all(|e| e == size.epoch), "seed {seed}");
        }
    }
}
