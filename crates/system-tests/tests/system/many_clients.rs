//! Many clients at once: coming and going, reading and writing one file and files of their own.
//!
//! Workers are processes; each has several threads where many clients are wanted.

use system_tests::layouts::view_of;
use system_tests::plain_file::assert_bytes;
use system_tests::{PlainFile, ServiceOptions, Store, Transport, pattern};

use crate::{check_whole, create, read_all};

#[test]
fn sixty_four_clients_mix_reads_and_writes() {
    for (store, transport) in [
        (Store::Memory, Transport::Unix),
        (Store::Disk, Transport::Tcp),
    ] {
        let service = ServiceOptions::new(4)
            .store(store)
            .transport(transport)
            .start();
        let client = service.client();
        let (processes, threads, rounds) = (8, 8, 10);
        let file = create(&client, "/shared", None, "striped(1000) over 4");
        file.resize(processes * threads * 4096).expect("resized");
        let mut workers = service.workers(processes as usize);
        workers.all(|w| format!("mix\t/shared\t{threads}\t{rounds}\t{w}"));
        let whole = client::View::whole_file();
        let mut expected = Vec::new();
        for me in 0..processes * threads {
            let tag = me * 1000 + rounds - 1;
            expected.extend(pattern(&whole, me * 4096, 4096, tag));
        }
        assert_bytes(&read_all(&file), &expected, "the last round of everybody");
        let left: Vec<_> = client
            .list("/")
            .expect("names")
            .map(|e| e.expect("a name").name)
            .collect();
        assert_eq!(left, ["shared"], "their own files are gone");
    }
}

#[test]
fn seed001_s77_without_atomic_mode_no_lock_is_taken_and_disjoint_accesses_are_right() {
    let service = ServiceOptions::new(3).start();
    let client = service.client();
    let file = create(&client, "/file", Some("u8[60,60]"), "(block, *) onto 3");
    let mut workers = service.workers(4);
    let before = service.counters(&client, "locks_granted");
    workers.all(|_| "open\t0\t/file\trw\t\t".into());
    let mut model = PlainFile::new();
    for w in 0..4 {
        let view = view_of(
            Some("u8[60,60]"),
            0,
            &format!("(*, cyclic(7)) onto 4 [{w}]"),
        );
        let len = view.len_within(3600) as usize;
        model.write(&view, 0, &pattern(&view, 0, len, 5));
    }
    workers.all(|w| format!("view\t0\t0\tu8[60,60]\t(*, cyclic(7)) onto 4 [{w}]"));
    for _ in 0..10 {
        let len = |w: usize| {
            let view = view_of(
                Some("u8[60,60]"),
                0,
                &format!("(*, cyclic(7)) onto 4 [{w}]"),
            );
            view.len_within(3600)
        };
        workers.all(|w| format!("fill\t0\t0\t{}\t5", len(w)));
    }
    check_whole(&file, model.bytes());
    assert_eq!(service.counters(&client, "locks_granted"), before);
}

#[test]
fn seed001_s78_strided_writers_in_each_others_gaps_lose_nothing() {
    let service = ServiceOptions::new(2).start();
    let client = service.client();
    let file = create(&client, "/file", None, "striped(4KiB) over 2");
    let mut workers = service.workers(4);
    workers.all(|_| "open\t0\t/file\trw\t\t".into());
    workers.all(|w| format!("view\t0\t0\t\tfalls{{({w},{w})}} period 4"));
    let whole = client::View::whole_file();
    for tag in 1..20 {
        // Byte by byte beside each other: a window that is read and written back would undo others.
        workers.all(|_| format!("fill\t0\t0\t20000\t{tag}"));
        check_whole(&file, &pattern(&whole, 0, 80_000, tag));
    }
}

#[test]
fn seed004_s15_clients_come_and_go_and_those_who_stay_go_on() {
    let service = ServiceOptions::new(2).start();
    let client = service.client();
    let file = create(&client, "/file", None, "striped(100) over 2");
    let whole = client::View::whole_file();
    file.write_at(0, &pattern(&whole, 0, 1000, 1))
        .expect("written");
    let mut stays = service.worker();
    stays.open(0, "/file", &system_tests::OpenHow::new("rw"));
    for round in 0..6 {
        let mut comes = service.workers(3);
        comes.all(|_| "open\t0\t/file\trw\t\t".into());
        comes.all(|_| "check\t0\t0\t1000\t1".into());
        comes.all(|w| format!("open\t1\t/own-{round}-{w}\trwcd\t\t"));
        comes.all(|w| format!("fill\t1\t0\t500\t{w}"));
        // Some say goodbye, some die; the rest is not disturbed.
        comes.one(0).ask("close\t0");
        comes.one(1).kill();
        drop(comes);
        assert_eq!(stays.check(0, 0, 1000, 1), 1000);
        stays.fill(0, 1000, 10, round);
    }
    system_tests::until("files of those who went", || {
        client.counts().expect("counts").files == 1
    });
    stays.end();
    assert_eq!(read_all(&file).len(), 1010);
}
