//! Reading ahead at a disk server: what is predicted or announced is in memory before it is asked for, and no
//! answer is ever another one for it.

use layout::View;
use store::{Directory, DiskOptions, DiskSpec, DiskStore, Pool, PoolOptions, Store};
use wire::message::ahead::{Collective, ReadAhead};
use wire::message::mapping::Upcoming;

use crate::rig::{Client, File, Rig, pattern, request_number};
use crate::write_behind::read;

const STEP: u64 = 64 << 10;

/// A file of so many steps that is on the server's disk and not in its memory.
fn cold(memory: u64, steps: u64) -> (Rig, Client, File, Vec<u8>) {
    let mut rig = Rig::on_disk(memory, true);
    let mut client = rig.client();
    let file = client.open("/f", None, None);
    let view = View::whole_file();
    client.set_view(&file, 1, &view);
    let bytes = pattern(steps * STEP, 3);
    for (k, part) in bytes.chunks(1 << 20).enumerate() {
        let lo = (k as u64) << 20;
        let access = file.access(1, lo, lo + part.len() as u64, part.len() as u64);
        client
            .write_at(file.state.owner.server, access, &file, part)
            .unwrap();
    }
    // A server that comes back has an empty memory.
    rig.servers[0].take().unwrap().stop();
    let dir = rig.dir.path().join("disk-0");
    let server = rig.start_server(0, |o| {
        o.store = ioserver::StoreOptions::Disk {
            dirs: vec![dir.clone()],
            memory_limit_bytes: memory,
        };
    });
    rig.servers[0] = Some(server);
    let mut client = rig.client();
    let file = client.open("/f", None, None);
    client.set_view(&file, 1, &view);
    (rig, client, file, bytes)
}

/// Waits until a counter has reached a value.
fn until(rig: &Rig, name: &str, least: u64) {
    let (never, condition) = (std::sync::Mutex::new(()), std::sync::Condvar::new());
    for _ in 0..6000 {
        if rig.count(0, name) >= least {
            return;
        }
        let guard = never.lock().unwrap();
        let pause = std::time::Duration::from_millis(5);
        drop(condition.wait_timeout(guard, pause).unwrap());
    }
    panic!("{name} is {} and not {least}", rig.count(0, name));
}

fn check(client: &mut Client, file: &File, expected: &[u8], at: u64, len: u64) {
    let mut bytes = vec![0; len as usize];
    read(client, file, at, &mut bytes);
    let range = at as usize..(at + len) as usize;
    assert!(bytes == expected[range], "at {at}");
}

fn say(client: &mut Client, file: &File, depth: u64, upcoming: Option<Upcoming>) {
    let request = ReadAhead {
        view: 1,
        depth,
        upcoming,
        collective: Collective::Nothing,
        bytes: 0,
    };
    client.ask(file.state.owner.server, &request).unwrap();
}

#[test]
fn sequential_and_strided_and_reverse_readers_find_what_they_want_in_memory() {
    let (rig, mut client, file, bytes) = cold(32 << 20, 256);
    for k in 0..4 {
        check(&mut client, &file, &bytes, k * STEP, STEP);
    }
    until(&rig, "ahead_bytes", 4 * STEP);
    for k in 4..60 {
        check(&mut client, &file, &bytes, k * STEP, STEP);
    }
    let hits = rig.count(0, "ahead_hit_bytes");
    assert!(hits >= 4 * STEP, "{hits}");
    // Every third piece, in 4 KiB accesses, then backwards.
    let before = rig.count(0, "ahead_loads");
    for k in 0..12 {
        check(&mut client, &file, &bytes, (100 + 3 * k) * STEP, 4096);
    }
    until(&rig, "ahead_loads", before + 1);
    let before = rig.count(0, "ahead_loads");
    for k in 0..12 {
        check(&mut client, &file, &bytes, (250 - 2 * k) * STEP, STEP);
    }
    until(&rig, "ahead_loads", before + 1);
}

#[test]
fn a_view_that_wants_none_gets_none_and_a_named_range_is_loaded() {
    let (rig, mut client, file, bytes) = cold(32 << 20, 128);
    say(&mut client, &file, 0, None);
    for k in 0..40 {
        check(&mut client, &file, &bytes, k * STEP, STEP);
    }
    assert_eq!(rig.count(0, "ahead_bytes"), 0);
    let upcoming = Upcoming {
        offset: 80 * STEP,
        size: 16 * STEP,
    };
    say(&mut client, &file, 0, Some(upcoming));
    until(&rig, "ahead_bytes", 16 * STEP);
    let misses = rig.count(0, "cache_miss_bytes");
    check(&mut client, &file, &bytes, 80 * STEP, 16 * STEP);
    assert_eq!(rig.count(0, "cache_miss_bytes"), misses, "all was there");
    assert_eq!(rig.count(0, "ahead_hit_bytes"), 16 * STEP);
    // What is not there, or lies in a file that is shorter, does no harm.
    for (offset, size) in [(1 << 50, 1 << 40), (0, u64::MAX), (u64::MAX, 7)] {
        let upcoming = Upcoming { offset, size };
        say(&mut client, &file, 0, Some(upcoming));
    }
    check(&mut client, &file, &bytes, 0, STEP);
}

#[test]
fn seed004_s46_reading_ahead_stays_within_its_share_of_memory() {
    let memory = 8 << 20;
    let (rig, mut client, file, bytes) = cold(memory, 512);
    let upcoming = Upcoming {
        offset: 0,
        size: 512 * STEP,
    };
    say(&mut client, &file, u64::MAX, Some(upcoming));
    until(&rig, "ahead_dropped", 1);
    let waiting = rig.count(0, "ahead_bytes");
    assert!(waiting <= memory / 8 + (2 << 20), "{waiting} bytes wait");
    assert!(rig.count(0, "memory_bytes") <= memory);
    for k in 0..512 {
        check(&mut client, &file, &bytes, k * STEP, STEP);
        assert!(rig.count(0, "memory_bytes") <= memory);
    }
}

/// Hints that lie and writers in between: every byte as without any of it.
#[test]
fn seed004_s42_lies_about_what_comes_next_change_no_byte() {
    let (rig, mut client, mut file, mut bytes) = cold(4 << 20, 128);
    let mut other = rig.client();
    let mut theirs = other.open("/f", None, None);
    other.set_view(&theirs, 1, &View::whole_file());
    let mut x = 99u64;
    let mut random = |n: u64| {
        x = x
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (x >> 33) % n
    };
    let owner = file.state.owner.server;
    let mut at = 0;
    for round in 0..600u64 {
        match random(8) {
            0 => {
                let upcoming = Upcoming {
                    offset: random(200) * STEP,
                    size: random(64) * STEP,
                };
                say(
                    &mut client,
                    &file,
                    [0, 1, 9, u64::MAX][random(4) as usize],
                    Some(upcoming),
                );
            }
            1 | 2 => {
                let lo = random(127) * STEP + random(STEP);
                let part = pattern(1 + random(STEP), round);
                let len = part.len() as u64;
                let access = theirs.access(1, lo, lo + len, len);
                other.write_at(owner, access, &theirs, &part).unwrap();
                bytes[lo as usize..(lo + len) as usize].copy_from_slice(&part);
            }
            3 => at = random(120),
            _ => {
                check(
                    &mut client,
                    &file,
                    &bytes,
                    at % 120 * STEP,
                    STEP * (1 + random(3)),
                );
                at += 1;
            }
        }
        if round == 300 {
            // Cut in the middle, and grown again with zeros.
            let cut = wire::message::file::Truncate {
                view: 1,
                handle: theirs.opened.handle,
                to: 50 * STEP + 11,
                request: request_number(),
            };
            let now = other.ask(owner, &cut).unwrap();
            let whole = wire::message::file::Grow {
                view: 1,
                epoch: now.epoch,
                end: 128 * STEP,
            };
            other.ask(owner, &whole).unwrap();
            (file.epoch, theirs.epoch) = (now.epoch, now.epoch);
            bytes[(50 * STEP + 11) as usize..].fill(0);
        }
    }
    assert!(
        rig.count(0, "ahead_bytes") > 0,
        "nothing was ever read ahead"
    );
    for k in 0..128 {
        check(&mut client, &file, &bytes, k * STEP, STEP);
    }
    // The store itself agrees.
    let image = rig.dir.path().join("disk-0");
    drop((client, other));
    let mut rig = rig;
    rig.servers[0].take().unwrap().stop();
    let disk = DiskSpec::new(Directory::new(image).unwrap());
    let pool = Pool::new(PoolOptions::default());
    let store = DiskStore::new(pool, vec![disk], DiskOptions::default()).unwrap();
    let found = store.list().unwrap();
    let subfile = store.open(found[0].id).unwrap();
    let mut back = vec![0; bytes.len()];
    subfile.read_at(0, &mut back).unwrap();
    assert!(back == bytes);
}
