//! Servers that do not answer hold up nobody but those who need them.
//!
//! A server is stopped with SIGSTOP and goes on with SIGCONT, so that waiting is certain.

use client::{ServerId, View};
use system_tests::plain_file::assert_bytes;
use system_tests::{ServiceOptions, pattern};

use crate::{create, open};

#[test]
fn seed001_s06_every_server_serves_every_client_and_every_file() {
    let service = ServiceOptions::new(3).start();
    let clients: Vec<_> = (0..3).map(|_| service.client()).collect();
    let ids: Vec<u64> = (0..3).map(|i| service.server_id(i).0).collect();
    for (number, client) in clients.iter().enumerate() {
        for id in &ids {
            // A file on one server alone, written by one client and read by all.
            let path = format!("/file-{number}-{id}");
            let file = create(client, &path, None, &format!("striped(10) over [{id}]"));
            let bytes = pattern(&View::whole_file(), 0, 100, *id);
            file.write_at(0, &bytes).expect("written");
            assert_eq!(file.layout().owner.server, *id, "it owns the file, too");
            for reader in &clients {
                assert_bytes(&crate::read_all(&open(reader, &path)), &bytes, &path);
            }
        }
    }
}

#[test]
fn seed001_s07_clients_at_different_servers_do_not_wait_for_each_other() {
    let mut service = ServiceOptions::new(2).start();
    let (slow, quick) = (service.client(), service.client());
    let ids: Vec<ServerId> = (0..2).map(|i| service.server_id(i)).collect();
    let on = |client, path: &str, id: ServerId| {
        create(client, path, None, &format!("striped(10) over [{}]", id.0))
    };
    let (waits, goes) = (on(&slow, "/waits", ids[0]), on(&quick, "/goes", ids[1]));
    waits.write_at(0, &[1; 100]).expect("written");
    goes.write_at(0, &[2; 100]).expect("written");
    let paused = service.io(0).pause();
    let request = waits.read_at_nonblocking(0, vec![0; 100]);
    for round in 0..50 {
        goes.write_at(round, &[3; 10]).expect("written");
        goes.read_at(0, &mut [0; 100]).expect("read");
    }
    assert!(!request.test(), "its server does not run");
    drop(paused);
    let (n, bytes) = request.wait();
    assert_eq!((n.expect("read"), bytes.as_ref()), (100, &[1; 100][..]));
}

#[test]
fn seed001_s08_servers_that_need_each_other_serve_on_and_do_not_deadlock() {
    // Every server pulls from every other at once, while clients truncate, append and read.
    let service = ServiceOptions::new(4).start();
    let client = service.client();
    let whole = View::whole_file();
    let bytes = pattern(&whole, 0, 100_000, 8);
    let paths: Vec<String> = (0..8).map(|i| format!("/file-{i}")).collect();
    for path in &paths {
        let file = create(&client, path, None, "striped(10) over 4");
        file.write_at(0, &bytes).expect("written");
    }
    std::thread::scope(|scope| {
        for path in &paths {
            let service = &service;
            scope.spawn(move || {
                let client = service.client();
                for layout in ["striped(7) over 4 from 1", "striped(13) over 4 from 3"] {
                    let moved = client.relayout(path, layout).expect("begun");
                    moved.wait().expect("moved");
                }
            });
            let bytes = &bytes;
            scope.spawn(move || {
                let client = service.client();
                let file = open(&client, path);
                let mut found = vec![0; 1000];
                for round in 0..30 {
                    let at = round * 3000;
                    file.read_at(at, &mut found).expect("read");
                    assert_bytes(&found, &bytes[at as usize..at as usize + 1000], path);
                    file.append(&[1; 10]).expect("appended");
                }
                file.resize(100_000).expect("resized");
            });
        }
    });
    for path in &paths {
        assert_bytes(&crate::read_all(&open(&client, path)), &bytes, path);
    }
}
