//! Servers and the manager die while a file is cut.
//! The size is one of both, and bytes that were cut off never return.

use client::Error;
use system_tests::{Service, Store};

use crate::{create, impatient_client, open, read, rounds, service, some_time, whole};

const OLD: usize = 400_000;
const NEW: usize = 70_001;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Owner,
    Other,
    Manager,
}

fn kill(service: &mut Service, victim: Victim, owner: usize) {
    match victim {
        Victim::Owner => service.kill_io(owner),
        Victim::Other => service.kill_io((owner + 1) % 3),
        Victim::Manager => service.kill_meta(),
    }
}

#[test]
fn cut_that_was_interrupted_is_done_or_not_and_no_old_byte_returns() {
    let victims = [Victim::Owner, Victim::Other, Victim::Manager];
    for store in [Store::Disk, Store::Memory] {
        let mut service = service(3, store);
        for (round, mut random) in rounds(8, 2).enumerate() {
            for victim in victims {
                let path = format!("/{victim:?}-{round}");
                eprintln!("{path} {store:?}");
                let client = impatient_client(&service, 20);
                let file = create(&client, &path, "striped(1000) over 3");
                file.write_at(0, &whole(0, OLD, 3)).unwrap();
                file.sync().unwrap();
                let owner = service.index_of(client::ServerId(file.layout().owner.server));
                let cut = std::thread::scope(|scope| {
                    let cut = scope.spawn(|| file.resize(NEW as u64));
                    some_time(&mut random, 4_000);
                    kill(&mut service, victim, owner);
                    service.start_all();
                    cut.join().unwrap()
                });
                let lived = file.size().unwrap() as usize;
                verify(&service, &path, &cut, lived);
            }
        }
        if store == Store::Disk {
            crate::assert_clean(&service);
        }
        // And all at once, with nobody left who remembers.
        if store == Store::Disk {
            for (round, mut random) in rounds(9, 2).enumerate() {
                let path = format!("/all-{round}");
                let client = impatient_client(&service, 2);
                let file = create(&client, &path, "striped(1000) over 3");
                file.write_at(0, &whole(0, OLD, 3)).unwrap();
                file.sync().unwrap();
                let cut = std::thread::scope(|scope| {
                    let cut = scope.spawn(|| file.resize(NEW as u64));
                    some_time(&mut random, 4_000);
                    service.kill_all();
                    cut.join().unwrap()
                });
                drop((file, client));
                service.start_all();
                let size = open(&service.client(), &path).size().unwrap() as usize;
                verify(&service, &path, &cut, size);
            }
            crate::assert_clean(&service);
        }
    }
}

/// The size is one of both; what was kept is there; what grows again is zero.
#[track_caller]
fn verify(service: &Service, path: &str, cut: &Result<(), Error>, size: usize) {
    let client = service.client();
    let file = open(&client, path);
    assert_eq!(
        file.size().unwrap() as usize,
        size,
        "{path}: two clients differ"
    );
    assert!(size == OLD || size == NEW, "{path}: {size} bytes");
    if cut.is_ok() {
        assert_eq!(size, NEW, "{path}: it was said to be cut");
    }
    assert!(
        read(&file, 0, OLD) == whole(0, size, 3),
        "{path}: bytes below the size"
    );
    file.resize(OLD as u64 + 5000).unwrap();
    let mut expected = whole(0, size, 3);
    expected.resize(OLD + 5000, 0);
    assert!(
        read(&file, 0, OLD + 5000) == expected,
        "{path}: after growing again"
    );
    // By a write too.
    file.resize(NEW as u64).unwrap();
    file.write_at(OLD as u64, b"end").unwrap();
    expected.truncate(NEW);
    expected.resize(OLD, 0);
    expected.extend_from_slice(b"end");
    assert!(
        read(&file, 0, OLD + 5000) == expected,
        "{path}: after a write behind the cut"
    );
    file.close().unwrap();
}
