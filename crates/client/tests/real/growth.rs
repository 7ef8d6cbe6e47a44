//! Files that grow without a report: what one client was told is never taken back, whichever way the bytes went.
//!
//! The model is a plain vector of bytes. Clients store directly or send messages, and each sees at once what any of them
//! has done before.

use std::sync::atomic::{AtomicBool, Ordering};

use client::{File, OpenOptions};
use random::Random;

use crate::service::{Service, create, pattern};

const LAYOUTS: [&str; 4] = [
    "striped(64KiB) over 2",
    "striped(1000) over 3",
    "striped(1MiB) over 1",
    "(cyclic(4096)) onto 3",
];

fn open(client: &client::Client, path: &str) -> File {
    client
        .open(path, &OpenOptions::new().read().write())
        .unwrap()
}

/// One random program: clients that grow, append, truncate, punch, look and close, one after the other.
fn run(service: &Service, seed: u64) {
    let mut random = Random::new(seed);
    let mut below = |n: u64| random.below(n);
    let clients = [
        service.connect(),
        service.connect_how(false),
        service.connect_how(false),
    ];
    let path = format!("/{seed}");
    let layout = LAYOUTS[below(LAYOUTS.len() as u64) as usize];
    let array = match layout.starts_with('(') {
        true => "u8[40000]",
        false => "",
    };
    drop(create(&clients[0], &path, array, layout));
    let mut files: Vec<File> = clients.iter().map(|c| open(c, &path)).collect();
    let mut model: Vec<u8> = Vec::new();
    for step in 0..120 {
        let who = below(3) as usize;
        let what = format!("seed {seed}, step {step}, {layout}, client {who}");
        let file = &files[who];
        let end = model.len() as u64;
        match below(18) {
            // Mostly where the file ends, as programs do that write it from its begin to its end.
            0..=7 => {
                let gap = [0, 0, 0, 1, 70_000][below(5) as usize];
                let len = [1, 100, 4096, 4096, 70_000, 300_000][below(6) as usize];
                // Zeros are bytes like others.
                let bytes = match below(4) {
                    0 => vec![0; len],
                    _ => pattern(len, step),
                };
                file.write_at(end + gap, &bytes).unwrap();
                model.resize((end + gap) as usize, 0);
                model.extend(&bytes);
            }
            8 => {
                let bytes = pattern(1 + below(5000) as usize, step);
                assert_eq!(file.append(&bytes), Ok(end), "{what}");
                model.extend(&bytes);
            }
            9 => {
                let to = below(end + 100_000);
                file.resize(to).unwrap();
                model.resize(to as usize, 0);
            }
            10 => {
                let at = below(end + 1);
                let bytes = pattern(below(20_000) as usize, step);
                file.write_at(at, &bytes).unwrap();
                let stop = at as usize + bytes.len();
                model.resize(model.len().max(stop), 0);
                model[at as usize..stop].copy_from_slice(&bytes);
            }
            11 => {
                let file = std::mem::replace(&mut files[who], open(&clients[who], &path));
                file.close().unwrap();
            }
            12 => file.set_view_text("whole").unwrap(),
            13 => drop(file.sync().unwrap()),
            14 => {
                let (at, len) = (below(end + 10), below(400_000));
                file.punch(at..at + len).unwrap();
                let stop = end.min(at + len) as usize;
                model[(at as usize).min(stop)..stop].fill(0);
            }
            _ => {
                let at = below(end + 10);
                let mut found = vec![0xee; 1 + below(100_000) as usize];
                let n = file.read_at(at, &mut found).unwrap();
                let there = model.get(at as usize..).unwrap_or(&[]);
                let there = &there[..there.len().min(found.len())];
                assert_eq!(n, there.len(), "{what}, at {at} of {end}");
                assert!(found[..n] == *there, "{what}, at {at} of {end}");
            }
        }
        let other = below(3) as usize;
        assert_eq!(
            files[other].size(),
            Ok(model.len() as u64),
            "{what}, asked by {other}"
        );
    }
    let mut all = vec![0xee; model.len() + 1];
    assert_eq!(files[2].read_at(0, &mut all), Ok(model.len()));
    assert!(all[..model.len()] == model, "seed {seed}");
    drop(files);
    let size = clients[1].stat(&path).unwrap().size;
    assert_eq!(
        size,
        model.len() as u64,
        "seed {seed}: what the catalogue has after the close"
    );
}

#[test]
fn growth_by_any_way_is_that_of_a_plain_file() {
    let service = Service::start(3);
    let first = random::seed();
    for seed in first..first + 12 {
        run(&service, seed);
    }
}

#[test]
fn sizes_never_fall_while_clients_deal_out_a_file_among_them() {
    const BLOCK: u64 = 4096;
    const BLOCKS: u64 = 2000;
    let service = Service::start(2);
    let watcher = service.connect_how(false);
    let seen = create(&watcher, "/f", "", "striped(64KiB) over 2");
    let is_over = AtomicBool::new(false);
    let messages = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|rank| {
                let client = service.connect();
                scope.spawn(move || {
                    let file = open(&client, "/f");
                    for k in (rank..BLOCKS).step_by(4) {
                        let bytes = [k as u8 | 1; BLOCK as usize];
                        file.write_at(k * BLOCK, &bytes).unwrap();
                        // What this client has written it reads back, and is told.
                        if k % 61 == 0 {
                            assert!(file.size().unwrap() >= (k + 1) * BLOCK);
                        }
                    }
                    let direct = client.direct_statistics();
                    file.close().unwrap();
                    direct.writes
                })
            })
            .collect();
        let watching = scope.spawn(|| {
            let mut last = 0;
            while !is_over.load(Ordering::SeqCst) {
                let now = seen.size().unwrap();
                assert!(now >= last, "{now} after {last}");
                last = now;
            }
        });
        let direct: u64 = writers.into_iter().map(|w| w.join().unwrap()).sum();
        is_over.store(true, Ordering::SeqCst);
        watching.join().unwrap();
        direct
    });
    assert!(
        messages > BLOCKS * 9 / 10,
        "{messages} of {BLOCKS} writes went directly"
    );
    assert_eq!(seen.size(), Ok(BLOCKS * BLOCK));
    let mut all = vec![0; (BLOCKS * BLOCK) as usize];
    assert_eq!(seen.read_at(0, &mut all), Ok(all.len()));
    let is_right = |(k, block): (usize, &[u8])| block.iter().all(|b| *b == k as u8 | 1);
    assert!(all.chunks(BLOCK as usize).enumerate().all(is_right));
}

#[test]
fn space_ahead_goes_back_when_a_file_is_closed() {
    let service = Service::start(1);
    let client = service.connect();
    let allocated = || {
        let counters = service.servers[0].statistics();
        let found = counters.iter().find(|c| c.name == "memory_bytes");
        found.expect("a counter").value
    };
    let file = create(&client, "/f", "", "striped(1MiB) over 1");
    for k in 0..1100 {
        file.write_at(k * 4096, &[7; 4096]).unwrap();
    }
    assert!(client.direct_statistics().writes > 1000);
    let open = allocated();
    file.close().unwrap();
    let closed = allocated();
    assert!(
        closed < open,
        "{closed} bytes after the close, {open} before"
    );
    assert!(closed <= 6 << 20, "{closed} bytes for 4.3 MiB");
    assert_eq!(client.stat("/f").unwrap().size, 1100 * 4096);
}

#[test]
fn writes_by_message_tell_nobody_that_they_grow() {
    const BLOCK: u64 = 4096;
    const BLOCKS: u64 = 300;
    let service = Service::start(3);
    let client = service.connect_how(false);
    let watcher = service.connect_how(false);
    let file = create(&client, "/f", "", "striped(4096) over 3");
    let seen = open(&watcher, "/f");
    // All servers know the view by then, and one block in three is at the owner of the file.
    for k in 0..3 {
        file.write_at(k * BLOCK, &[7; BLOCK as usize]).unwrap();
    }
    let (before, _) = client.messages_sent();
    for k in 3..BLOCKS {
        file.write_at(k * BLOCK, &[7; BLOCK as usize]).unwrap();
        if k % 10 == 0 {
            assert_eq!(seen.size(), Ok((k + 1) * BLOCK));
        }
    }
    let (after, _) = client.messages_sent();
    assert_eq!(after - before, BLOCKS - 3, "a message for each write");
    // A size that was asked for often does not make the servers forget that they grow.
    let asked = |server: &ioserver::IoServer| {
        let counters = server.statistics();
        let found = counters.iter().find(|c| c.name == "announcements");
        found.expect("a counter").value
    };
    let asked: u64 = service.servers.iter().map(asked).sum();
    assert!(asked <= 20, "{asked} announcements");
    assert_eq!(seen.size(), Ok(BLOCKS * BLOCK));
}
