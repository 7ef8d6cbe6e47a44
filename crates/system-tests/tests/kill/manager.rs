//! The metadata manager dies, again and again, in a storm of changes of names.
//! What was acknowledged is there, every change is acknowledged and done once, and open files stay open.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use client::OpenOptions;
use system_tests::{OpenHow, Random, Store, Worker, pause, until};

use crate::{assert_clean, create, read, rounds, service, some_time, whole};

const LEN: usize = 1 << 16;

/// What a worker was told about its own directory.
#[derive(Default)]
struct Told {
    /// Names that are there for sure.
    there: BTreeSet<String>,
    /// Names that are not, for sure.
    gone: BTreeSet<String>,
    changes: u64,
}

/// Creates, renames and unlinks at random until told to stop. Every change is answered: one whose answer was lost
/// is asked for again, and done once.
fn storm(
    worker: &mut Worker,
    k: u64,
    random: &mut Random,
    is_over: &AtomicBool,
    made: &AtomicU64,
) -> Told {
    let mut told = Told::default();
    let mut next = 0;
    // However late it gets the processor, it makes some changes and leaves something.
    while !is_over.load(Ordering::Relaxed) || told.changes < 10 || told.there.is_empty() {
        next += 1;
        let fresh = format!("/d{k}/n{next}");
        let some = match told.there.len() {
            0 => None,
            n => told.there.iter().nth(random.index(n)).cloned(),
        };
        let (line, old, new) = match (random.below(4), some) {
            (0, Some(old)) => (format!("unlink\t{old}"), Some(old), None),
            (1, Some(old)) => (format!("rename\t{old}\t{fresh}"), Some(old), Some(fresh)),
            _ => (format!("create\t{fresh}"), None, Some(fresh)),
        };
        let done = worker.try_ask(&line);
        done.unwrap_or_else(|why| panic!("{line}: {why}"));
        told.changes += 1;
        made.fetch_add(1, Ordering::Relaxed);
        if let Some(old) = old {
            told.there.remove(&old);
            told.gone.insert(old);
        }
        told.there.extend(new);
    }
    told
}

#[test]
fn seed004_s13_acknowledged_changes_outlive_the_manager_and_nothing_is_half_made() {
    for store in [Store::Memory, Store::Disk] {
        let mut service = service(2, store);
        let client = service.client();
        for k in 0..4 {
            client.mkdir(&format!("/d{k}"), None).unwrap();
        }
        // A file that is open over all restarts, and bytes that memory servers keep over them.
        let file = create(&client, "/open", "striped(4KiB) over 2");
        file.write_at(0, &whole(0, LEN, 1)).unwrap();
        let mut lives = service.worker();
        lives.open(0, "/open", &OpenHow::new("rw"));
        lives.fill(0, LEN as u64, 1000, 2);
        let places = file.layout();

        for (round, mut random) in rounds(6, 2).enumerate() {
            let (is_over, made) = (AtomicBool::new(false), AtomicU64::new(0));
            let mut workers: Vec<Worker> = (0..4).map(|_| service.worker()).collect();
            let told: Vec<Told> = std::thread::scope(|scope| {
                let storms: Vec<_> = workers
                    .iter_mut()
                    .enumerate()
                    .map(|(k, worker)| {
                        let mut random = Random::new(random.draw());
                        let (is_over, made) = (&is_over, &made);
                        // Other names in every round.
                        let k = (round * 4 + k) as u64;
                        scope.spawn(move || {
                            if k >= 4 {
                                let made = worker.try_ask(&format!("mkdir\t/d{k}"));
                                made.expect("a directory");
                            }
                            storm(worker, k, &mut random, is_over, made)
                        })
                    })
                    .collect();
                for _ in 0..3 {
                    let before = made.load(Ordering::Relaxed);
                    pause(std::time::Duration::from_millis(60));
                    until("changes since the manager was started", || {
                        made.load(Ordering::Relaxed) > before
                            || storms.iter().any(|s| s.is_finished())
                    });
                    some_time(&mut random, 100_000);
                    service.kill_meta();
                    service.start_meta();
                }
                pause(std::time::Duration::from_millis(60));
                is_over.store(true, Ordering::Relaxed);
                storms.into_iter().map(|s| s.join().unwrap()).collect()
            });
            service.wait_for_members(2);
            for (k, told) in told.iter().enumerate() {
                compare(&service, (round * 4 + k) as u64, told);
            }
            // The client that lived through it goes on with what it has open.
            assert!(read(&file, 0, LEN) == whole(0, LEN, 1));
            assert_eq!(lives.check(0, LEN as u64, 1000, 2), 1000);
            let tag = 10 + round as u64;
            lives.fill(0, 2 * LEN as u64, 1000, tag);
            assert_eq!(file.size().unwrap(), 2 * LEN as u64 + 1000);
            file.resize(LEN as u64 + 1000).unwrap();
            file.sync().unwrap();
            let now = client.layout("/open").unwrap();
            assert_eq!(now.state.pieces[0].places, places.pieces[0].places);
            assert!(now.lost.is_empty(), "{:?}", now.lost);
            assert_clean(&service);
        }
        lives.ask("close\t0");
        lives.end();
    }
}

/// The directory is what was acknowledged, no more and no less.
#[track_caller]
fn compare(service: &system_tests::Service, k: u64, told: &Told) {
    let client = service.client();
    let listed = client.list(&format!("/d{k}")).unwrap();
    let names: BTreeMap<String, _> = listed
        .map(|entry| {
            let entry = entry.unwrap();
            (format!("/d{k}/{}", entry.name), entry)
        })
        .collect();
    for name in &told.there {
        assert!(
            names.contains_key(name),
            "{name} was acknowledged and is gone"
        );
    }
    for name in &told.gone {
        assert!(!names.contains_key(name), "{name} was removed and is back");
    }
    for name in names.keys() {
        let is_known = told.there.contains(name);
        assert!(is_known, "{name} is there and nobody made it");
        // Nothing is half made: whatever has a name is a file that works.
        client.stat(name).unwrap();
    }
    let some = names.keys().next().expect("a storm leaves something");
    let file = crate::open(&client, some);
    file.write_at(0, b"works").unwrap();
    assert_eq!(read(&file, 0, 9), b"works");
}

/// A client that computes for long notices late that the manager was started again.
#[test]
fn client_that_comes_back_late_goes_on_with_its_open_files() {
    let mut service = service(2, Store::Memory);
    let client = service.client();
    let file = create(&client, "/open", "striped(4KiB) over 2");
    file.write_at(0, &whole(0, LEN, 1)).unwrap();
    let gone = create(&client, "/gone", "striped(4KiB) over 2");
    gone.write_at(0, &whole(0, LEN, 1)).unwrap();
    client.unlink("/gone").unwrap();
    service.kill_meta();
    service.start_meta();
    service.wait_for_members(2);
    // Nobody has asked for what has no name any more, so it goes.
    let other = service.client();
    until("the end of unlinked files", || {
        other.counts().unwrap().files == 1
    });
    file.resize(1000).unwrap();
    file.write_at(1000, &whole(1000, 1000, 2)).unwrap();
    assert_eq!(file.size().unwrap(), 2000);
    other
        .relayout("/open", "striped(1000) over 2")
        .unwrap()
        .wait()
        .unwrap();
    assert!(read(&file, 1000, 9000) == whole(1000, 1000, 2));
    let error = gone.resize(5).unwrap_err();
    assert!(!error.to_string().is_empty());
    // What is gone can be let go; a server may have to say that it is.
    if let Err(error) = gone.close() {
        assert_eq!(error.status(), client::Status::NotFound, "{error}");
    }
    file.close().unwrap();
    other.unlink("/open").unwrap();
    drop((file, gone, client));
    until("the end of all files", || {
        other.counts().unwrap().files == 0
    });
    service.wait_for_nothing();
}

/// The manager dies when a change is durable and before it is answered, for every kind of change.
#[test]
fn changes_are_done_once_when_the_manager_dies_before_it_answers() {
    let mut service = service(1, Store::Disk);
    let client = service.client();
    client.mkdir("/d", None).unwrap();
    let exclusive = || OpenOptions::new().read().write().create().exclusive();
    type Change<'a> = (&'a str, &'a (dyn Fn() -> Result<(), client::Error> + Sync));
    let changes: [Change<'_>; 8] = [
        ("mkdir", &|| client.mkdir("/d/e", None)),
        ("create", &|| {
            client
                .create("/d/f", &exclusive())
                .map(|is_new| assert!(is_new))
        }),
        ("rename", &|| client.rename("/d/f", "/d/g")),
        ("chmod", &|| client.chmod("/d/g", 0o640)),
        ("set_layout", &|| {
            let layout = Some("striped(64) over 1".into());
            let array = None;
            client.set_layout("/d/g", client::LayoutSpec { array, layout })
        }),
        ("unlink", &|| client.unlink("/d/g")),
        ("rmdir", &|| client.rmdir("/d/e")),
        ("open", &|| client.open("/d/h", &exclusive()).map(drop)),
    ];
    for (name, change) in changes {
        service.kill_meta();
        service.start_meta_with("PARIO_CRASH_AT", "manager_after_commit");
        service.wait_for_members(1);
        std::thread::scope(|scope| {
            let changing = scope.spawn(change);
            until("the manager has died", || !service.meta().is_running());
            service.start_meta();
            let done = changing.join().unwrap();
            done.unwrap_or_else(|e| panic!("{name}: {e}"));
        });
    }
    let names: Vec<String> = client
        .list("/d")
        .unwrap()
        .map(|e| e.unwrap().name)
        .collect();
    assert_eq!(names, ["h"]);
    assert_clean(&service);
}

/// A bug that one request meets in its transaction is that request's misfortune.
#[test]
fn a_bug_in_one_change_ends_neither_the_manager_nor_other_changes() {
    let mut service = service(1, Store::Disk);
    service.kill_meta();
    service.start_meta_with("PARIO_PANIC_AT", "commit:3");
    service.wait_for_members(1);
    let client = service.client();
    let done: Vec<bool> = (0..6)
        .map(|n| match client.mkdir(&format!("/d{n}"), None) {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.status(), client::Status::Internal, "{error}");
                false
            }
        })
        .collect();
    assert_eq!(done.iter().filter(|done| !**done).count(), 1, "{done:?}");
    assert!(service.meta().is_running());
    for (n, done) in done.iter().enumerate() {
        assert_eq!(client.stat(&format!("/d{n}")).is_ok(), *done, "/d{n}");
    }
    assert_clean(&service);
    service.kill_meta();
    service.start_meta();
    service.wait_for_members(1);
    assert_clean(&service);
}
