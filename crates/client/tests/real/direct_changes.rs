//! Direct access while bytes move: truncate, regrow, re-layout, protection, threads, death.
//!
//! Threads check what they wrote themselves, some directly and some by message, while somebody else
//! changes where it lies.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use client::{OpenOptions, Status};

use crate::service::{Service, create, pattern};

/// Threads that write and read regions of their own, directly or by message, while `change` runs.
fn under_load(service: &Service, path: &str, change: impl FnOnce()) {
    const REGION: usize = 100_000;
    let is_over = AtomicBool::new(false);
    let is_over = &is_over;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|t| {
                let client = service.connect_how(t < 2);
                let options = OpenOptions::new().read().write();
                let file = client.open(path, &options).unwrap();
                scope.spawn(move || {
                    let mut own = vec![0; REGION];
                    let base = (t * REGION) as u64;
                    let mut round = 0;
                    let mut back = vec![0; REGION];
                    file.read_at(base, &mut own).unwrap();
                    while !is_over.load(Ordering::Relaxed) || round < 50 {
                        let at = round * 7919 % (REGION - 80_000);
                        let len = [10, 4096, 80_000][round % 3];
                        let bytes = pattern(len, round + t);
                        file.write_at(base + at as u64, &bytes).unwrap();
                        own[at..at + len].copy_from_slice(&bytes);
                        if round % 4 == 0 {
                            assert_eq!(file.read_at(base, &mut back), Ok(REGION));
                            assert!(back == own, "thread {t}, round {round}");
                        }
                        round += 1;
                    }
                    file.close().unwrap();
                    client.direct_statistics()
                })
            })
            .collect();
        change();
        is_over.store(true, Ordering::Relaxed);
        for (t, thread) in threads.into_iter().enumerate() {
            let counted = thread.join().unwrap();
            assert_eq!(counted.writes > 0, t < 2, "{counted:?}");
        }
    });
}

#[test]
fn truncates_and_growth_behind_the_load_disturb_nobody() {
    let service = Service::start(2);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(4KiB) over 2");
    file.resize(300_000).unwrap();
    under_load(&service, "/f", || {
        for round in 0..60 {
            file.write_at(400_000, &pattern(700_000, round)).unwrap();
            let mut back = vec![0; 700_000];
            assert_eq!(file.read_at(400_000, &mut back), Ok(700_000));
            assert!(back == pattern(700_000, round));
            file.resize(300_000 + round as u64).unwrap();
            file.resize(1_100_000).unwrap();
            assert_eq!(file.read_at(400_000, &mut back), Ok(700_000));
            assert!(back.iter().all(|b| *b == 0), "regrown bytes are zero");
        }
    });
}

#[test]
fn layouts_and_modes_change_under_load() {
    let service = Service::start(3);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(4KiB) over 3");
    file.resize(300_000).unwrap();
    under_load(&service, "/f", || {
        for layout in [
            "striped(1000) over 2",
            "whole",
            "striped(64KiB) over 3",
            "striped(5000) over 3",
        ] {
            let relayout = client.relayout("/f", layout).unwrap();
            client.chmod("/f", 0o600).unwrap();
            relayout.wait().unwrap();
            client.chmod("/f", 0o644).unwrap();
        }
    });
}

#[test]
fn a_file_that_is_unlinked_and_made_again_is_another_one() {
    let service = Service::start(2);
    let client = service.connect();
    for round in 0..40 {
        let file = create(&client, "/f", "", "striped(4KiB) over 2");
        file.write_at(0, &pattern(100_000, round)).unwrap();
        let mut back = vec![0; 100_000];
        for _ in 0..3 {
            assert_eq!(file.read_at(0, &mut back), Ok(100_000));
            assert!(back == pattern(100_000, round));
        }
        client.unlink("/f").unwrap();
        let next = create(&client, "/f", "", "striped(4KiB) over 2");
        next.resize(100_000).unwrap();
        assert_eq!(next.read_at(0, &mut back), Ok(100_000));
        assert!(back.iter().all(|b| *b == 0), "nothing of the other file");
        assert_eq!(file.read_at(0, &mut back), Ok(100_000));
        assert!(back == pattern(100_000, round), "still there while open");
        file.close().unwrap();
        next.close().unwrap();
        client.unlink("/f").unwrap();
    }
}

#[test]
fn many_threads_share_a_handle() {
    let service = Service::start(2);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(4KiB) over 2");
    file.resize(16 * 40_000).unwrap();
    std::thread::scope(|scope| {
        for t in 0..16 {
            let file = &file;
            scope.spawn(move || {
                let base = t as u64 * 40_000;
                for round in 0..300 {
                    let at = base + (round * 131 % 20_000) as u64;
                    let bytes = pattern([7, 4096, 20_000][round % 3], round + t);
                    file.write_at(at, &bytes).unwrap();
                    let mut back = vec![0; bytes.len()];
                    assert_eq!(file.read_at(at, &mut back), Ok(bytes.len()));
                    assert!(back == bytes);
                }
            });
        }
    });
    let counted = client.direct_statistics();
    assert!(counted.reads > 4000 && counted.writes > 4000, "{counted:?}");
}

#[test]
fn a_server_that_ends_is_noticed_at_once() {
    let mut service = Service::start(1);
    let client = service.connect();
    let file = create(&client, "/f", "", "whole");
    file.write_at(0, &pattern(200_000, 0)).unwrap();
    for _ in 0..3 {
        file.read_at(0, &mut [0; 100]).unwrap();
        file.read_at(0, &mut [0; 100_000]).unwrap();
    }
    assert!(file.last_access().is_direct);
    service.servers.pop().unwrap().stop();
    let read = file.read_at(0, &mut [0; 100]).unwrap_err();
    let written = file.write_at(0, &[0; 100_000]).unwrap_err();
    for error in [read, written] {
        // Not `Unreachable`, which is told only after waiting for the server to come back.
        assert_eq!(error.status(), Status::Lost, "{error}");
    }
    assert_eq!(client.direct_statistics().attached, 0);
}

/// A write that grows the file in extents that were mapped before must be known to its server before
/// the bytes are moved: a move copies what was ever written, no more.
#[test]
fn growth_in_extents_that_are_mapped_survives_a_move() {
    const FIRST: usize = 1200 << 10;
    const PIECE: usize = 272 << 10;
    let service = Service::start(2);
    let (client, other) = (service.connect(), service.connect());
    for round in 0..30 {
        let path = format!("/f{round}");
        let file = create(&client, &path, "", "whole");
        file.write_at(0, &pattern(FIRST, 0)).unwrap();
        let begun = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..3 {
                    let at = FIRST + i * PIECE;
                    begun.store(i + 1, Ordering::SeqCst);
                    file.write_at(at as u64, &pattern(PIECE, at)).unwrap();
                }
            });
            while begun.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            let moved = other.relayout(&path, "striped(64KiB) over 2");
            moved.unwrap().wait().unwrap();
        });
        let len = FIRST + 3 * PIECE;
        let mut back = vec![0; len + 1];
        assert_eq!(file.read_at(0, &mut back), Ok(len), "{round}");
        let wanted = pattern(len, 0);
        let wrong = (0..len).find(|&i| back[i] != wanted[i]);
        assert_eq!(wrong, None, "round {round}");
        client.unlink(&path).unwrap();
    }
}
