//! What a move between layouts and servers keeps: bytes that go by message, shared pointers over a change of the
//! owner, and the space that it may take meanwhile.
//!
//! That bytes are right while servers die is looked at with servers in processes of their own.

use std::sync::atomic::{AtomicBool, Ordering};

use client::{MoveOptions, OpenOptions};

use crate::service::{Service, create, pattern};

/// How long a move may take.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

#[test]
fn a_shared_pointer_goes_with_the_owner_and_deals_out_every_place_once() {
    const RECORD: usize = 24;
    let service = Service::start(2);
    let clients = [service.connect(), service.connect_how(false)];
    let options = OpenOptions::new().read().write().create();
    let options = options.shared_pointer(7).layout("whole");
    let files = clients.each_ref().map(|c| c.open("/f", &options).unwrap());
    let is_over = AtomicBool::new(false);
    let (files, is_over) = (&files, &is_over);
    let mut owners = Vec::new();
    let written: u64 = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4u8)
            .map(|t| {
                scope.spawn(move || {
                    let file = &files[usize::from(t) % 2];
                    let mut count = 0u64;
                    while !is_over.load(Ordering::Relaxed) && count < 20_000 {
                        assert_eq!(file.write_shared(&[t + 1; RECORD]).unwrap(), RECORD);
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        let _over = Over(is_over);
        for round in 0..6 {
            let to = service.servers[round % 2].server();
            let moving = clients[0].move_subfiles("/f", &[to], &MoveOptions::default());
            if let Ok(mut moving) = moving {
                let end = std::time::Instant::now() + LIMIT;
                loop {
                    let now = moving.progress().unwrap();
                    if now.state.is_over() {
                        break;
                    }
                    assert!(std::time::Instant::now() < end, "it does not end: {now:?}");
                    std::thread::yield_now();
                }
            }
            let now = clients[0].open("/f", &OpenOptions::new().read()).unwrap();
            owners.push(now.layout().owner.server);
        }
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().map(|w| w.join().unwrap()).sum()
    });
    owners.dedup();
    assert!(owners.len() > 4, "the owner has changed: {owners:?}");
    let size = written as usize * RECORD;
    assert_eq!(files[1].position_shared().unwrap(), size as u64);
    let mut bytes = vec![0; size + 1];
    assert_eq!(files[0].read_at(0, &mut bytes).unwrap(), size);
    for (i, record) in bytes[..size].chunks(RECORD).enumerate() {
        let is_whole = record[0] > 0 && record.iter().all(|b| *b == record[0]);
        assert!(is_whole, "record {i}: {record:?}");
    }
}

/// Threads that write end however the rest ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Bytes that all servers together use, if they used the same a moment later.
fn used(service: &Service) -> Option<u64> {
    let now = || -> Vec<u64> {
        let of = |s: &ioserver::IoServer| {
            let counters = s.statistics();
            let used = counters.iter().find(|c| c.name == "used_bytes");
            used.unwrap().value
        };
        service.servers.iter().map(of).collect()
    };
    let first = now();
    (first == now()).then(|| first.iter().sum())
}

#[test]
fn bytes_that_servers_fetch_by_message_come_to_their_places() {
    const SIZE: u64 = 60_000;
    let service = Service::start_how(3, false);
    let client = service.connect_how(false);
    let layouts = [
        "striped(6) over 6",
        "striped(5000) over 2",
        "(block, cyclic(7)) onto 2x3",
        "striped(11) over 7",
        "whole",
    ];
    let file = create(&client, "/f", "u8[60, 1000]", layouts[0]);
    let bytes = pattern(SIZE as usize, 5);
    file.write_at(0, &bytes).unwrap();
    let mut found = vec![0; SIZE as usize];
    // Windows of all lanes at once, which touch, and many that do not.
    for (window_bytes, lanes) in [(0, 0), (1 << 20, 3), (9_000, 4)] {
        for layout in layouts[1..].iter().chain(&layouts[..1]) {
            let options = MoveOptions {
                window_bytes,
                lanes,
                ..MoveOptions::default()
            };
            let mut moving = client.relayout_with("/f", layout, &options).unwrap();
            let end = std::time::Instant::now() + LIMIT;
            while !moving.progress().unwrap().state.is_over() {
                assert!(std::time::Instant::now() < end, "{layout} does not end");
                std::thread::yield_now();
            }
            assert_eq!(file.read_at(0, &mut found).unwrap(), found.len());
            let wrong = found.iter().zip(&bytes).filter(|(a, b)| a != b).count();
            assert_eq!(wrong, 0, "{layout} with {window_bytes}, {lanes} lanes");
        }
    }
    let fetched = |s: &ioserver::IoServer| {
        let counters = s.statistics();
        let pulled = counters.iter().find(|c| c.name == "pulled_bytes");
        pulled.unwrap().value
    };
    assert!(service.servers.iter().map(fetched).sum::<u64>() > 10 * SIZE);
}

#[test]
fn a_move_in_place_takes_no_more_space_than_its_window_and_a_block_a_subfile() {
    const SIZE: u64 = 72 << 20;
    const BLOCK: u64 = 2 << 20;
    // Of a move in place, which has one lane.
    const WINDOW: u64 = 4 << 20;
    let service = Service::start(3);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(3000) over 3");
    let bytes = pattern(SIZE as usize, 3);
    file.write_at(0, &bytes).unwrap();
    // Slow enough to be seen in any case, until it was; still with whole windows.
    let options = MoveOptions {
        limit_bytes: 4 * WINDOW,
        in_place: true,
        ..MoveOptions::default()
    };
    let layouts = [
        ("striped(70000) over 2", 2),
        ("striped(1MiB) over 3", 3),
        ("striped(3000) over 3", 3),
    ];
    let mut subfiles = 3;
    for (layout, next) in layouts {
        // The lane has begun a block of every subfile of one layout, and has not left one of every subfile of
        // the other.
        let most = SIZE + WINDOW + (subfiles + next) * BLOCK;
        let mut moving = client.relayout_with("/f", layout, &options).unwrap();
        let (mut looks, mut highest) = (0, 0);
        while !moving.progress().unwrap().state.is_over() {
            if let Some(now) = used(&service) {
                assert!(now <= most, "{layout}: {now} bytes of at most {most}");
                highest = highest.max(now);
                looks += 1;
                if looks == 1 {
                    moving.limit(200 << 20).unwrap();
                }
            }
            std::thread::park_timeout(std::time::Duration::from_micros(200));
        }
        assert!(highest >= SIZE, "{layout}: {looks} looks, {highest} bytes");
        // What is left of the layout before is given back with the end.
        let left = used(&service).unwrap();
        assert!(left <= SIZE + next * BLOCK, "{layout}: {left} bytes");
        subfiles = next;
    }
    let mut back = vec![0; SIZE as usize];
    assert_eq!(file.read_at(0, &mut back).unwrap() as u64, SIZE);
    assert!(back == bytes);
}
