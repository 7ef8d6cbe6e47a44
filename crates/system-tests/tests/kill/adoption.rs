//! I/O servers in memory, and on disks that write behind, that are killed and started again: their memory is with their keeper, and the next
//! start goes on with it.
//! Nobody notices but for a pause: every acknowledged byte and every size is right, and sync vouches for it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use client::{Client, ConnectOptions, File, Status};
use system_tests::pounding::Turns;
use system_tests::process::stop;
use system_tests::{OpenHow, Random, Service, ServiceOptions, Store, until};

use crate::{create, open, read, rounds, service, some_time, whole};

const MIB: u64 = 1 << 20;

/// What a file has to hold, by what was acknowledged.
struct Model {
    file: File,
    bytes: Vec<u8>,
    tag: u64,
    random: Random,
}

impl Model {
    /// One access of some kind; it has to succeed, and what is read has to be what was written.
    fn step(&mut self) {
        let len = self.bytes.len() as u64;
        self.tag += 1;
        match self.random.below(8) {
            // Grows by a little, or by much.
            0..=2 => {
                let most = if self.tag.is_multiple_of(5) {
                    300_000
                } else {
                    9_000
                };
                let count = 1 + self.random.index(most);
                self.write(len, count);
            }
            3 if len > 0 => {
                let at = self.random.below(len);
                let count = 1 + self.random.index(20_000);
                self.write(at, count);
            }
            4 => {
                let added = whole(len, 1 + self.random.index(5_000), self.tag);
                assert_eq!(
                    self.file.append(&added).expect("append"),
                    len,
                    "place of an append"
                );
                self.bytes.extend_from_slice(&added);
            }
            5 if len > 4 * MIB || self.random.below(8) == 0 => {
                let to = self.random.below(len + 1);
                self.file.resize(to).expect("resize");
                self.bytes.truncate(to as usize);
            }
            // A hole.
            6 if self.random.below(4) == 0 => {
                let at = len + self.random.below(100_000);
                self.bytes.resize(at as usize, 0);
                let count = 1 + self.random.index(3_000);
                self.write(at, count);
            }
            6 if len > 0 => {
                let at = self.random.below(len);
                let end = at + 1 + self.random.below(300_000);
                self.file.punch(at..end).expect("punch");
                self.bytes[at as usize..end.min(len) as usize].fill(0);
            }
            _ if len > 0 => {
                let at = self.random.below(len);
                let count = (1 + self.random.index(50_000)).min((len - at) as usize);
                let at_once = &self.bytes[at as usize..at as usize + count];
                assert!(read(&self.file, at, count) == at_once, "bytes at {at}");
            }
            _ => {}
        }
        if self.tag.is_multiple_of(7) {
            assert_eq!(self.file.size().expect("size"), self.bytes.len() as u64);
        }
        if self.tag.is_multiple_of(31) {
            self.file.sync().expect("nothing is lost");
        }
    }

    fn write(&mut self, at: u64, count: usize) {
        let new = whole(at, count, self.tag);
        assert_eq!(self.file.write_at(at, &new).expect("write"), count);
        let end = at as usize + count;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[at as usize..end].copy_from_slice(&new);
    }

    /// Through another client, too.
    fn verify(&self, client: &Client, path: &str) {
        self.file.sync().expect("nothing is lost");
        for file in [&self.file, &open(client, path)] {
            assert_eq!(
                file.size().expect("size"),
                self.bytes.len() as u64,
                "{path}"
            );
            let found = read(file, 0, self.bytes.len() + 100);
            let wrong = found.iter().zip(&self.bytes).position(|(a, b)| a != b);
            assert_eq!(wrong, None, "{path}: first wrong byte");
            assert_eq!(found.len(), self.bytes.len(), "{path}");
        }
    }
}

/// Clients of all kinds work while servers are killed and started again.
fn work_while_killed(service: &mut Service, kills: u64, random: &mut Random) {
    let (url, servers) = (service.url(), service.servers());
    let is_over = &AtomicBool::new(false);
    let seeds: Vec<u64> = (0..4).map(|_| random.below(u64::MAX)).collect();
    let options: Vec<ConnectOptions> = (0..4)
        .map(|k| service.connect_options().with_direct(k % 2 == 0))
        .collect();
    let told = &AtomicU64::new(0);
    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for (k, (seed, options)) in seeds.into_iter().zip(options).enumerate() {
            let url = url.clone();
            workers.push(scope.spawn(move || {
                let client = Client::connect(&url, options).expect("a client");
                let path = format!("/f{k}");
                let mut model = Model {
                    file: create(
                        &client,
                        &path,
                        &format!("striped({}) over {servers}", 4096 << k),
                    ),
                    bytes: Vec::new(),
                    tag: 0,
                    random: Random::new(seed),
                };
                while !is_over.load(Ordering::SeqCst) {
                    model.step();
                }
                model.verify(&client, &path);
                model.file.close().expect("nothing is lost");
                model.tag
            }));
        }
        // One grows a file directly, another asks for its size: what was told is never taken back.
        let grower = create(&service.client(), "/grows", "striped(64KiB) over 2");
        let watching = service.client();
        let watched = open(&watching, "/grows");
        workers.push(scope.spawn(move || {
            let mut len = 0;
            while !is_over.load(Ordering::SeqCst) {
                let count = 10_000 + (len % 7_000);
                grower
                    .write_at(len, &whole(len, count as usize, 9))
                    .expect("write");
                len += count;
                told.store(len, Ordering::SeqCst);
            }
            grower.sync().expect("nothing is lost");
            assert_eq!(grower.size().expect("size"), len);
            len
        }));
        workers.push(scope.spawn(move || {
            let mut last = 0;
            while !is_over.load(Ordering::SeqCst) {
                let least = told.load(Ordering::SeqCst);
                let size = watched.size().expect("size");
                assert!(
                    size >= last.max(least),
                    "{size} after {last}, written {least}"
                );
                last = size;
            }
            last
        }));
        for _ in 0..kills {
            some_time(random, 120_000);
            let victim = random.index(servers);
            service.kill_io(victim);
            some_time(random, 5_000);
            service.start_io(victim);
            if workers.iter().any(|w| w.is_finished()) {
                break;
            }
        }
        is_over.store(true, Ordering::SeqCst);
        let done: Vec<u64> = workers
            .into_iter()
            .map(|w| w.join().expect("a worker"))
            .collect();
        eprintln!("{kills} kills, accesses and sizes: {done:?}");
    });
}

#[test]
fn disk_servers_that_write_behind_and_are_killed_again_and_again_lose_nothing() {
    for mut random in rounds(66, 2) {
        let options = ServiceOptions::new(2).store(Store::Disk);
        // Little memory in some rounds, so that much is written back meanwhile.
        let options = match random.below(2) {
            0 => options,
            _ => options.memory("16MiB"),
        };
        let mut service = options.io_arguments(["--writes", "behind"]).start();
        work_while_killed(&mut service, 12, &mut random);
        let client = service.client();
        for i in 0..2 {
            assert_eq!(service.counter(&client, i, "memory_is_kept"), 1);
        }
    }
}

#[test]
fn memory_servers_that_are_killed_again_and_again_lose_nothing() {
    for mut random in rounds(60, 2) {
        let mut service = service(2, Store::Memory);
        work_while_killed(&mut service, 12, &mut random);
        let client = service.client();
        for i in 0..2 {
            assert_eq!(service.counter(&client, i, "memory_is_kept"), 1);
        }
        crate::assert_clean(&service);
    }
}

#[test]
#[ignore = "long: memory servers are killed two hundred times"]
fn memory_servers_that_are_killed_for_long_lose_nothing() {
    for mut random in rounds(61, 4) {
        let mut service = service(3, Store::Memory);
        work_while_killed(&mut service, 200, &mut random);
        crate::assert_clean(&service);
    }
}

/// The process dies between the steps of an adoption: the next one begins anew, and nothing is lost.
#[test]
fn adoption_that_is_interrupted_is_done_by_the_next_start() {
    for point in [
        "adopt-pool",
        "adopt-store",
        "adopt-revoked",
        "adopt-folded",
        "adopt-cleared",
        "adopt-done",
    ] {
        let mut service = service(1, Store::Memory);
        let client = service.client();
        let file = create(&client, "/f", "striped(64KiB) over 1");
        for at in 0..40 {
            file.write_at(at * 5_000, &whole(at * 5_000, 5_000, 3))
                .unwrap();
        }
        service.kill_io(0);
        let mut command = service.io_command(0);
        let failed = service
            .io(0)
            .try_start(command.env("PARIO_CRASH_AT", point));
        assert!(failed.is_err(), "{point} was not passed");
        service.start_io(0);
        assert_eq!(
            service.counter(&client, 0, "memory_was_adopted"),
            1,
            "{point}"
        );
        assert_eq!(file.size().unwrap(), 200_000, "{point}");
        assert!(read(&file, 0, 200_001) == whole(0, 200_000, 3), "{point}");
        file.write_at(200_000, b"more").unwrap();
        file.sync().unwrap();
    }
}

/// What cannot be adopted twice is given up: the server starts empty, and those who wrote hear of it.
#[test]
fn memory_that_kills_those_who_adopt_it_is_given_up_and_lost() {
    let mut service = service(1, Store::Memory);
    let client = service.client();
    let file = create(&client, "/f", "striped(64KiB) over 1");
    file.write_at(0, &whole(0, 50_000, 3)).unwrap();
    service.kill_io(0);
    for _ in 0..2 {
        let mut command = service.io_command(0);
        let failed = service
            .io(0)
            .try_start(command.env("PARIO_CRASH_AT", "adopt-revoked"));
        assert!(failed.is_err());
    }
    let mut command = service.io_command(0);
    let started = service
        .io(0)
        .try_start(command.env("PARIO_CRASH_AT", "adopt-revoked"));
    started.expect("it does not adopt again");
    assert_eq!(service.counter(&client, 0, "memory_was_given_up"), 1);
    assert_eq!(file.sync().unwrap_err().status(), Status::Lost);
    let error = file.read_at(0, &mut [0; 100]).unwrap_err();
    assert_eq!(error.status(), Status::Lost, "{error}");
    // And the one after that has the new memory.
    let again = create(&client, "/g", "striped(64KiB) over 1");
    again.write_at(0, &whole(0, 50_000, 4)).unwrap();
    service.kill_io(0);
    service.start_io(0);
    assert!(read(&again, 0, 50_000) == whole(0, 50_000, 4));
    again.sync().unwrap();
}

/// A client is stopped in the middle of a direct write and goes on after its server was killed and has adopted its memory: what it
/// stores late is in no file, and its write is done once, by message.
#[test]
fn stopped_client_that_stores_after_an_adoption_spoils_nothing() {
    if !ServiceOptions::new(1).direct {
        return;
    }
    let (size, at, len) = (6 * MIB, MIB, 4 * MIB);
    for mut random in rounds(62, 3) {
        let mut service = ServiceOptions::new(1).start();
        let client = service.client();
        let new = OpenHow::new("rwcx").layout(Some("striped(64KiB) over 1"));
        let mut other = service.worker();
        other.open(0, "/f", &new);
        let mut victim = service.worker();
        victim.open(0, "/f", &OpenHow::new("rw"));
        let (mut tries, mut turns) = (0, 0);
        let end = service.dir().join("end");
        other.fill(0, 0, size, 1);
        victim.send(&format!("pound\t0\tw\t{at}\t{len}\t2\t{}", end.display()));
        let stopped = loop {
            tries += 1;
            assert!(tries < 100, "never met in the middle of a write");
            // Directly again, since the last start.
            until("direct writes", || {
                let now = Turns::of(&end);
                now % 2 == 1 && now > turns
            });
            turns = Turns::of(&end);
            some_time(&mut random, 10_000);
            let stopped = stop(victim.pid());
            service.kill_io(0);
            service.start_io(0);
            // It still may store into what was taken from it.
            if service.counter(&client, 0, "direct_quarantined_bytes") > 0 {
                break stopped;
            }
        };
        eprintln!("met at try {tries}");
        other.fill(0, 0, size, 3);
        other.open(1, "/g", &new);
        other.fill(1, 0, size, 3);
        std::fs::write(&end, b"").unwrap();
        drop(stopped);
        victim.answered();
        assert_eq!(other.check(0, 0, at, 3), at);
        assert_eq!(
            other.check(0, at, len, 2),
            len,
            "the interrupted write counts as issued late"
        );
        let rest = size - at - len;
        assert_eq!(other.check(0, at + len, rest, 3), rest);
        assert_eq!(other.check(1, 0, size, 3), size, "memory of others");
        until("nothing waits for the client", || {
            service.counter(&client, 0, "direct_quarantined_bytes") == 0
        });
    }
}

/// The keeper dies too, or first: without it memory goes with its server, and that is told.
#[test]
fn memory_is_lost_with_its_keeper_and_kept_by_the_next_one() {
    let mut service = service(1, Store::Memory);
    let client = service.client();
    let file = create(&client, "/f", "striped(64KiB) over 1");
    file.write_at(0, &whole(0, 50_000, 3)).unwrap();
    // The server notices, and gives everything to another.
    let first = service.keeper(0).expect("a keeper").process;
    service.kill_keeper(0);
    until("another keeper", || {
        service
            .keeper(0)
            .is_some_and(|k| k.process != first && k.descriptors > 1)
    });
    until("it is said", || {
        service.counter(&client, 0, "memory_is_kept") == 1
    });
    service.kill_io(0);
    service.start_io(0);
    assert!(read(&file, 0, 50_000) == whole(0, 50_000, 3));
    file.sync().unwrap();
    // Both at once.
    service.kill_io_with_keeper(0);
    service.start_io(0);
    let error = file.read_at(0, &mut [0; 100]).unwrap_err();
    assert_eq!(error.status(), Status::Lost, "{error}");
}

/// An orderly end leaves no keeper.
#[test]
fn server_that_ends_in_order_leaves_no_keeper() {
    let mut service = service(2, Store::Memory);
    assert!(service.keeper(0).is_some());
    service.io(0).end();
    assert!(service.keeper(0).is_none());
    service.kill_io(1);
    let left = service.keeper(1).expect("it waits for the next start");
    assert_eq!(left.serves, None);
}
