//! Clients that die while they hold locks, in the middle of a write, or leave a child behind.
//! Their locks and handles are given back, and what they still send is refused.

use std::time::{Duration, Instant};

use client::{OpenOptions, Status};
use system_tests::raw::{Body, Raw, access, version_of};
use system_tests::{OpenHow, ServiceOptions, Store, Transport, until};
use wire::message::file::{Admit, Lock};
use wire::message::session::Role;

use crate::{create, open, read, rounds, service, some_time, whole};

/// Long enough for two servers, in several messages.
const LEN: usize = 1 << 18;

#[test]
fn seed001_s79_dead_holder_of_a_lock_is_fenced_before_the_lock_is_given_on() {
    for store in [Store::Memory, Store::Disk] {
        for wrote_all in [false, true] {
            dead_holder(store, wrote_all);
        }
    }
}

fn dead_holder(store: Store, wrote_all: bool) {
    let options = ServiceOptions::new(2).store(store);
    let mut service = options.transport(Transport::Tcp).start();
    let client = service.client();
    let file = create(&client, "/f", "striped(4KiB) over 2");
    file.write_at(0, &whole(0, LEN, 1)).unwrap();
    let state = file.layout();

    // A client that lives as long as another process.
    let mut body = Body::new();
    let manager = service.meta().endpoint().clone();
    let mut raw = Raw::connect(&manager, Role::NewClient, body.process()).unwrap();
    let role = raw.role();
    let opened = raw.open("/f");
    let connect = |service: &mut system_tests::Service, index: usize| {
        let endpoint = service.io(index).endpoint().clone();
        Raw::connect(&endpoint, role.clone(), body.process()).unwrap()
    };
    let owner = service.index_of(client::ServerId(state.owner.server));
    let mut first = [connect(&mut service, 0), connect(&mut service, 1)];
    for raw in &mut first {
        raw.set_view(1, &opened).unwrap();
    }
    let handle = opened.handle;
    let admitted = first[owner].ask(&Admit { view: 1, handle }).unwrap();
    let lock = Lock {
        view: 1,
        handle,
        request: 7,
        lo: 0,
        hi: LEN as u64,
        is_exclusive: true,
    };
    first[owner].ask(&lock).unwrap();
    let version = version_of(&opened);
    // Every server has half of the range; in file order its blocks are every second one.
    let halves: Vec<Vec<u8>> = crate::subfiles(&file)
        .iter()
        .map(|(view, _)| system_tests::pattern(view, 0, LEN / 2, 2))
        .collect();
    let places = crate::subfiles(&file);
    if wrote_all {
        for (index, raw) in first.iter_mut().enumerate() {
            let mine = places
                .iter()
                .position(|(_, s)| *s == raw.welcome.server.0)
                .unwrap();
            let mut part = access(1, 0, LEN as u64, opened.attributes.epoch, &version);
            part.bytes = LEN as u64 / 2;
            part.number = admitted.number;
            let status = raw.write(&part, &halves[mine]).unwrap();
            assert_eq!(status, Status::Ok, "server {index}");
        }
    }
    let mut late = [connect(&mut service, 0), connect(&mut service, 1)];

    // Somebody waits for the range.
    let mut waiter = service.worker();
    waiter.open(0, "/f", &OpenHow::new("rwa"));
    waiter.send(&format!("tag\t0\t0\t{LEN}\t1\t3"));
    let waiting = client.server_statistics(client::ServerId(state.owner.server));
    assert!(waiting.is_ok());
    body.kill();
    let seen = waiter.answered();
    assert_eq!(seen, if wrote_all { "2" } else { "1" }, "all or nothing");

    // What the dead client still sends is refused, also where it was never busy before.
    for (index, raw) in late.iter_mut().enumerate() {
        let mine = places
            .iter()
            .position(|(_, s)| *s == raw.welcome.server.0)
            .unwrap();
        let mut part = access(1, 0, LEN as u64, opened.attributes.epoch, &version);
        part.bytes = LEN as u64 / 2;
        part.number = admitted.number;
        let status = raw.write(&part, &vec![0xdd; halves[mine].len()]).unwrap();
        assert_eq!(status, Status::Fenced, "server {index}");
        let endpoint = service.io(index).endpoint().clone();
        let again = Raw::connect(&endpoint, role.clone(), body.process()).unwrap_err();
        assert_eq!(again.status(), Status::Fenced);
    }
    let tag = if wrote_all { 2 } else { 1 };
    assert!(
        read(&file, 0, LEN) == whole(0, LEN, tag),
        "late bytes came through"
    );
    // The range is free.
    waiter.fill(0, 0, LEN as u64, 3);
    assert!(read(&file, 0, LEN) == whole(0, LEN, 3));
}

#[test]
fn seed004_s17_client_killed_in_an_atomic_write_holds_nobody_up() {
    for store in [Store::Memory, Store::Disk] {
        let service = service(3, store);
        let client = service.client();
        let file = create(&client, "/f", "striped(16KiB) over 3");
        file.write_at(0, &whole(0, LEN, 1)).unwrap();
        // Bytes beside the range that is fought for.
        file.write_at(LEN as u64, &whole(LEN as u64, LEN, 9))
            .unwrap();
        let mut other = service.worker();
        other.open(0, "/f", &OpenHow::new("rwa"));
        for (round, mut random) in rounds(1, 4).enumerate() {
            let before = 10 + round as u64 * 2;
            other.fill(0, 0, LEN as u64, before);
            let mut victim = service.worker();
            victim.open(0, "/f", &OpenHow::new("rwa"));
            victim.send(&format!("fill\t0\t0\t{LEN}\t{}", before + 1));
            some_time(&mut random, 3000);
            victim.kill();
            let started = Instant::now();
            let mut bytes = vec![0; LEN];
            open(&client, "/f").read_at(0, &mut bytes).unwrap();
            // Atomic, so it waits for the dead client's lock if that has one.
            let all = other.try_ask(&format!("tag\t0\t0\t{LEN}\t{before}\t{}", before + 2));
            assert!(started.elapsed() < Duration::from_secs(30));
            if all.is_err() {
                // Cut in the middle: every byte is old or new.
                let now = read(&file, 0, LEN);
                let (old, new) = (whole(0, LEN, before), whole(0, LEN, before + 1));
                let odd = (0..LEN).find(|&x| now[x] != old[x] && now[x] != new[x]);
                assert_eq!(odd, None, "byte neither old nor new");
            }
            other.fill(0, 0, LEN as u64, before);
            assert_eq!(other.check(0, 0, LEN as u64, before), LEN as u64);
        }
        assert!(read(&file, LEN as u64, LEN) == whole(LEN as u64, LEN, 9));
    }
}

#[test]
fn seed001_s79_child_of_a_dead_client_keeps_neither_locks_nor_handles() {
    for store in [Store::Memory, Store::Disk] {
        let service = service(2, store);
        let client = service.client();
        let file = create(&client, "/f", "striped(4KiB) over 2");
        file.write_at(0, &whole(0, LEN, 1)).unwrap();
        create(&client, "/own", "striped(4KiB) over 2");

        let mut parent = service.worker();
        parent.open(0, "/f", &OpenHow::new("rw"));
        parent.fill(0, LEN as u64, 4096, 5);
        parent.open(1, "/own", &OpenHow::new("rwu"));
        parent.ask(&format!("hold\t/f\t{LEN}"));
        let unique = OpenOptions::new().read();
        let refused = client.open("/own", &unique).unwrap_err();
        assert_eq!(refused.status(), Status::InUse);
        let mut waiter = service.worker();
        waiter.open(0, "/f", &OpenHow::new("rwa"));
        waiter.send(&format!("fill\t0\t0\t{LEN}\t2"));

        // The parent ends; its child has all its sockets.
        let pid = parent.pid();
        let child = parent.ask("fork");
        assert_ne!(child, pid.to_string());
        waiter.answered();
        until("a handle that was the dead client's alone", || {
            client.open("/own", &unique).is_ok()
        });
        for line in [
            "fill\t0\t0\t4\t3",
            "check\t0\t0\t4\t3",
            "size\t0",
            "unlink\t/own",
        ] {
            let error = parent.try_ask(line).unwrap_err();
            assert!(
                error.contains("BadHandle") && error.contains("fork"),
                "{line}: {error}"
            );
        }
        assert!(read(&file, 0, LEN) == whole(0, LEN, 2));
        assert!(read(&file, LEN as u64, 4096) == whole(LEN as u64, 4096, 5));
        client.unlink("/own").unwrap();
    }
}
