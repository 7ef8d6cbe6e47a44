//! Short writes that are collected by a handle far from its servers: few messages, the bytes of a plain file, and no error lost.
//!
//! Handles here send everything by message, but for those that show that near ones collect nothing. What others may see before a sync
//! is left to them.

use client::{Client, File, Hints, OpenOptions};
use random::Random;
use wire::Status;

use crate::service::{Service, create, pattern};

const BLOCK: u64 = 4096;

fn collecting(client: &Client, path: &str, most: &str) -> File {
    let file = client
        .open(path, &OpenOptions::new().read().write())
        .unwrap();
    let hints = Hints::new()
        .with("write_behind", "on")
        .and_then(|hints| hints.with("write_behind_bytes", most));
    file.set_hints(&hints.unwrap()).unwrap();
    file
}

fn open(client: &Client, path: &str) -> File {
    client
        .open(path, &OpenOptions::new().read().write())
        .unwrap()
}

/// Frames that a client sends while it does something.
fn messages(client: &Client, run: impl FnOnce()) -> u64 {
    let (before, _) = client.messages_sent();
    run();
    client.messages_sent().0 - before
}

#[test]
fn short_writes_that_go_on_travel_in_few_messages() {
    let service = Service::start(3);
    let client = service.connect_how(false);
    drop(create(&client, "/f", "", "striped(1MiB) over 3"));
    let file = collecting(&client, "/f", "1048576");
    file.write_at(0, &[1; BLOCK as usize]).unwrap();
    let sent = messages(&client, || {
        for k in 1..1024 {
            file.write_at(k * BLOCK, &[k as u8 | 1; BLOCK as usize])
                .unwrap();
        }
        file.sync().unwrap();
    });
    // 4 MiB in messages of 256 KiB, in two frames each, a question per MiB, and the sync.
    assert!(sent < 80, "{sent} messages for 1023 writes");
    let other = service.connect_how(false);
    let seen = open(&other, "/f");
    assert_eq!(seen.size(), Ok(1024 * BLOCK));
    let mut all = vec![0; 1024 * BLOCK as usize];
    assert_eq!(seen.read_at(0, &mut all), Ok(all.len()));
    let is_right = |(k, block): (usize, &[u8])| block.iter().all(|b| *b == k as u8 | 1);
    assert!(all.chunks(BLOCK as usize).enumerate().all(is_right));
    // Through a view with gaps they go on in the view.
    file.set_view_text("striped(512) over 4 [1]").unwrap();
    let sent = messages(&client, || {
        for k in 0..512 {
            file.write_at(k * 512, &[9; 512]).unwrap();
        }
        file.sync().unwrap();
    });
    assert!(sent < 60, "{sent} messages for 512 writes with gaps");
    assert_eq!(seen.read_at(0, &mut all), Ok(all.len()));
    let of_view = |k: usize| k < 4 * 512 && k % 4 == 1;
    let is_right = |(k, piece): (usize, &[u8])| {
        piece
            .iter()
            .all(|b| *b == if of_view(k) { 9 } else { (k / 8) as u8 | 1 })
    };
    assert!(all.chunks(512).enumerate().all(is_right));
}

#[test]
fn writes_that_go_nowhere_on_cost_what_they_cost_before() {
    let service = Service::start(2);
    let client = service.connect_how(false);
    drop(create(&client, "/f", "", "striped(64KiB) over 2"));
    let plain = open(&client, "/f");
    plain.write_at(0, &pattern(1 << 20, 1)).unwrap();
    let behind = collecting(&client, "/f", "1048576");
    let scattered = |file: &File| {
        // Both servers know the view from then on.
        for at in [10, 70_000] {
            file.write_at(at, &[1]).unwrap();
        }
        messages(&client, || {
            for k in 0..100 {
                file.write_at(k * 7919 % 900_000, &[3; 100]).unwrap();
            }
        })
    };
    assert_eq!(scattered(&behind), scattered(&plain));
    // Where nobody goes on, long writes and atomic ones are not collected either.
    let sent = messages(&client, || {
        for k in 0..4 {
            behind.write_at(k * 100_000, &pattern(100_000, 2)).unwrap();
        }
    });
    assert!(sent >= 4, "{sent}");
    behind.set_atomic(true).unwrap();
    behind.write_at(0, &[7; 10]).unwrap();
    behind.write_at(10, &[8; 10]).unwrap();
    let mut found = [0; 20];
    let other = service.connect_how(false);
    open(&other, "/f").read_at(0, &mut found).unwrap();
    assert_eq!((found[0], found[19]), (7, 8));
}

/// One random program. A client that collects syncs before another one looks, as programs do that run on MPI-IO.
fn run(service: &Service, seed: u64) {
    let mut random = Random::new(seed);
    let mut below = |n: u64| random.below(n);
    let clients = [
        service.connect_how(false),
        service.connect(),
        service.connect_how(false),
    ];
    let path = format!("/{seed}");
    let layouts = ["striped(64KiB) over 2", "striped(1000) over 3"];
    let layout = layouts[below(2) as usize];
    drop(create(&clients[0], &path, "", layout));
    let most = ["1", "5000", "100000"][below(3) as usize];
    // Two handles of one client, and others.
    let open_all = |who: usize| match who {
        0 | 1 => collecting(&clients[0], &path, most),
        other => open(&clients[other - 1], &path),
    };
    let mut files: Vec<File> = (0..4).map(open_all).collect();
    let mut model: Vec<u8> = Vec::new();
    let (mut next, mut last) = (0, 0);
    for step in 0..150 {
        let what = format!("seed {seed}, step {step}, {layout}, {most}");
        let who = if below(5) > 0 {
            last
        } else {
            below(4) as usize
        };
        if last < 2 && who >= 2 {
            files[0].sync().unwrap();
            files[1].sync().unwrap();
        }
        last = who;
        let file = &files[who];
        let end = model.len() as u64;
        match below(16) {
            0..=9 => {
                let at = match below(6) {
                    0 => below(end + 1),
                    1 => end,
                    // Into what was written just before.
                    2 => next - next.min(below(50)),
                    _ => next,
                };
                let len = [1, 10, 100, 999, 4096, 70_000][below(6) as usize];
                let bytes = pattern(len, step);
                assert_eq!(file.write_at(at, &bytes), Ok(len), "{what}");
                next = at + len as u64;
                model.resize(model.len().max(next as usize), 0);
                model[at as usize..next as usize].copy_from_slice(&bytes);
            }
            10 => {
                let bytes = pattern(1 + below(3000) as usize, step);
                assert_eq!(file.append(&bytes), Ok(end), "{what}");
                model.extend(&bytes);
            }
            11 => {
                let to = below(end + 10_000);
                file.resize(to).unwrap();
                model.resize(to as usize, 0);
            }
            12 => assert_eq!(file.size(), Ok(end), "{what}, client {who}"),
            13 => {
                let file = std::mem::replace(&mut files[who], open_all(who));
                file.close().unwrap();
            }
            _ => {
                let at = below(end + 10);
                let mut found = vec![0xee; 1 + below(100_000) as usize];
                let n = file.read_at(at, &mut found).unwrap();
                let there = model.get(at as usize..).unwrap_or(&[]);
                let there = &there[..there.len().min(found.len())];
                assert_eq!(n, there.len(), "{what}, at {at} of {end}, client {who}");
                assert!(found[..n] == *there, "{what}, at {at}, client {who}");
            }
        }
    }
    files.truncate(2);
    drop(files);
    let seen = open(&clients[2], &path);
    let mut all = vec![0xee; model.len() + 1];
    assert_eq!(seen.read_at(0, &mut all), Ok(model.len()), "seed {seed}");
    assert!(all[..model.len()] == model, "seed {seed}");
}

#[test]
fn collected_writes_are_those_of_a_plain_file_to_all_who_look_after_a_sync() {
    let service = Service::start(3);
    let first = random::seed();
    for seed in first..first + 16 {
        run(&service, seed);
    }
}

/// Collects four blocks of which none was sent.
fn collect(file: &File) {
    for k in 0..5 {
        file.write_at(k * BLOCK, &[5; BLOCK as usize]).unwrap();
    }
}

#[test]
fn bytes_that_were_collected_before_a_truncate_are_an_error_and_do_not_come_back() {
    let service = Service::start(2);
    let (client, other) = (service.connect_how(false), service.connect_how(false));
    drop(create(&client, "/f", "", "striped(4096) over 2"));
    let seen = open(&other, "/f");
    for how in ["sync", "close", "write"] {
        let file = collecting(&client, "/f", "1048576");
        collect(&file);
        seen.resize(100).unwrap();
        let told = match how {
            "sync" => file.sync().map(drop),
            "close" => file.close(),
            // A read looks past it, the next write hears of it.
            _ => {
                let mut found = [0; 200];
                assert_eq!(file.read_at(0, &mut found), Ok(100));
                file.write_at(0, &[1]).map(drop)
            }
        };
        assert_eq!(told.unwrap_err().status(), Status::StaleEpoch, "{how}");
        assert_eq!(seen.size(), Ok(100), "{how}");
        if how != "close" {
            // It was told once, and the handle is as good as new.
            collect(&file);
            file.sync().unwrap();
            assert_eq!(seen.size(), Ok(5 * BLOCK), "{how}");
            file.close().unwrap();
        }
    }
}

#[test]
fn memory_that_is_exhausted_is_told_at_the_latest_when_the_file_is_closed() {
    let service = Service::start(1);
    let client = service.connect_how(false);
    drop(create(&client, "/f", "", "striped(64KiB) over 1"));
    let file = collecting(&client, "/f", "4194304");
    let limit = 64 << 20;
    let mut taken = 0;
    let written = (0..limit / BLOCK + 2000).try_for_each(|k| {
        taken = k * BLOCK;
        file.write_at(k * BLOCK, &[5; BLOCK as usize]).map(drop)
    });
    let told = written.and_then(|()| file.close());
    assert_eq!(told.unwrap_err().status(), Status::NoMemory);
    assert!(taken >= limit, "told after {taken} bytes");
    drop(file);
    let size = client.stat("/f").unwrap().size;
    assert!((limit / 2..=taken).contains(&size), "{size} of {taken}");
}

#[test]
fn a_handle_near_its_servers_collects_nothing() {
    let service = Service::start(1);
    let client = service.connect();
    drop(create(&client, "/f", "", "striped(1MiB) over 1"));
    let file = collecting(&client, "/f", "1048576");
    for k in 0..500 {
        file.write_at(k * BLOCK, &[7; BLOCK as usize]).unwrap();
    }
    let direct = client.direct_statistics();
    assert!(direct.writes > 400, "{direct:?}");
}
