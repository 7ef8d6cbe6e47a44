//! Punching through a running service: all clients see zeros, the size stays, and space goes back, whichever way others write, in any
//! layout, and while the file moves.

use std::sync::atomic::{AtomicBool, Ordering};

use client::{File, OpenOptions};

use crate::service::{Service, create, pattern};

fn used(service: &Service) -> u64 {
    let all = service.servers.iter().flat_map(|s| s.statistics());
    let memory = all.filter(|c| c.name == "memory_bytes");
    memory.map(|c| c.value).sum()
}

fn open(client: &client::Client) -> File {
    client
        .open("/f", &OpenOptions::new().read().write())
        .unwrap()
}

#[track_caller]
fn check(file: &File, model: &[u8]) {
    assert_eq!(file.size(), Ok(model.len() as u64));
    let mut found = vec![0xee; model.len() + 9];
    assert_eq!(file.read_at(0, &mut found), Ok(model.len()));
    let wrong = found.iter().zip(model).position(|(a, b)| a != b);
    assert_eq!(wrong, None, "first wrong byte");
}

#[test]
fn seed001_s13_punched_bytes_are_zero_for_everybody_and_the_size_stays() {
    for layout in ["striped(1000) over 3", "striped(64KiB) over 2", "whole"] {
        let service = Service::start(3);
        let clients = [service.connect(), service.connect_how(false)];
        let first = create(&clients[0], "/f", "", layout);
        let files = [&first, &open(&clients[1])];
        let mut model = pattern(400_000, 1);
        first.write_at(0, &model).unwrap();
        for (k, range) in [10..20, 4096..200_000, 0..1, 399_990..1 << 50]
            .into_iter()
            .enumerate()
        {
            files[k % 2].punch(range.clone()).unwrap();
            let end = range.end.min(400_000) as usize;
            model[range.start as usize..end].fill(0);
            files.iter().for_each(|file| check(file, &model));
            // Who had mapped it stores into what others read.
            let bytes = pattern(5000, k);
            files[0].write_at(100_000, &bytes).unwrap();
            model[100_000..105_000].copy_from_slice(&bytes);
            files.iter().for_each(|file| check(file, &model));
        }
        // Through a view, too, it is bytes of the file; and of an empty file nothing is cut.
        first.set_view_text("striped(3) over 4 [2]").unwrap();
        first.punch(250_000..260_000).unwrap();
        model[250_000..260_000].fill(0);
        check(files[1], &model);
        let empty = create(&clients[0], "/empty", "", layout);
        empty.punch(0..1 << 30).unwrap();
        assert_eq!(empty.size(), Ok(0));
    }
}

#[test]
fn space_of_what_is_punched_goes_back() {
    let service = Service::start(2);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(1MiB) over 2");
    file.write_at(0, &pattern(16 << 20, 0)).unwrap();
    let (before, here) = (used(&service), file.allocated().unwrap());
    assert!(here >= 16 << 20, "{here} bytes");
    file.punch(4 << 20..12 << 20).unwrap();
    let (after, left) = (used(&service), file.allocated().unwrap());
    assert!(left <= here - (8 << 20), "{here} bytes, then {left}");
    assert!(after + (8 << 20) <= before, "{before} bytes, then {after}");
}

#[test]
fn punching_disturbs_no_access_beside_it_and_holds_while_the_file_moves() {
    const REGION: usize = 200_000;
    let service = Service::start(3);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(4KiB) over 3");
    file.resize(3 * REGION as u64).unwrap();
    let is_over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for t in 0..2 {
            let file = open(&service.connect_how(t == 0));
            scope.spawn(move || {
                let base = (t * REGION) as u64;
                let mut own = vec![0; REGION];
                let mut back = vec![0; REGION];
                let mut round = 0;
                while !is_over.load(Ordering::Relaxed) || round < 30 {
                    let at = round * 7919 % (REGION - 70_000);
                    let bytes = pattern([10, 5000, 70_000][round % 3], round + t);
                    file.write_at(base + at as u64, &bytes).unwrap();
                    own[at..at + bytes.len()].copy_from_slice(&bytes);
                    let hole = round * 104_729 % REGION;
                    let end = (hole + 30_000).min(REGION);
                    file.punch(base + hole as u64..base + end as u64).unwrap();
                    own[hole..end].fill(0);
                    assert_eq!(file.read_at(base, &mut back), Ok(REGION));
                    assert!(back == own, "thread {t}, round {round}");
                    round += 1;
                }
            });
        }
        for layout in ["striped(1000) over 2", "whole", "striped(64KiB) over 3"] {
            client.relayout("/f", layout).unwrap().wait().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(file.size(), Ok(3 * REGION as u64));
}

/// Two atomic handles write and punch the same bytes of all servers: a reader finds one or the other.
#[test]
fn atomic_punch_is_seen_as_a_whole_or_not_at_all() {
    const LEN: usize = 60_000;
    let service = Service::start(3);
    let clients: Vec<_> = (0..3).map(|k| service.connect_how(k % 2 == 0)).collect();
    drop(create(&clients[0], "/f", "", "striped(1000) over 3"));
    let files: Vec<File> = clients.iter().map(open).collect();
    files[0].write_at(0, &[7; LEN]).unwrap();
    for file in &files {
        file.set_atomic(true).unwrap();
    }
    let is_over = &AtomicBool::new(false);
    let [writer, puncher, reader] = &files[..] else {
        unreachable!()
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                writer.write_at(0, &[7; LEN]).unwrap();
            }
        });
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                puncher.punch(0..LEN as u64).unwrap();
            }
        });
        let mut seen = [false; 2];
        let mut back = vec![1; LEN];
        for round in 0..2000 {
            assert_eq!(reader.read_at(0, &mut back), Ok(LEN));
            let mixed = back.iter().position(|b| *b != back[0]);
            assert_eq!(mixed, None, "round {round}: {} then another", back[0]);
            seen[usize::from(back[0] == 7)] = true;
            if round > 100 && seen == [true; 2] {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(seen, [true; 2], "neither came to pass");
    });
}
