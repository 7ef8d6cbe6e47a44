//! I/O servers that die while clients write.
//! Errors name the server and what is safe; what is called safe is read and compared.

use std::time::{Duration, Instant};

use client::{Client, Error, Status};
use system_tests::{ServiceOptions, Store};

use crate::{
    create, impatient, impatient_client, open, read, rounds, service, some_time, subfiles, whole,
};

const CHUNK: usize = 3 << 18;
/// How long an error may take: a few times what clients are told to wait.
const BOUND: Duration = Duration::from_secs(40);

/// What one of the writing clients has to tell.
struct Told {
    path: String,
    /// Chunks that were written in full.
    full: u64,
    error: Error,
}

impl Told {
    /// Where the write began that failed.
    fn at(&self) -> u64 {
        self.full * CHUNK as u64 % (8 * CHUNK as u64)
    }
}

/// Several clients write until the server dies; what each was told.
fn write_until_killed(
    service: &mut system_tests::Service,
    victims: &[usize],
    round: usize,
    random: &mut system_tests::Random,
) -> Vec<Told> {
    let (url, options) = (service.url(), impatient(service, 2));
    let made = &std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|k| {
                let (url, options) = (url.clone(), options.clone());
                scope.spawn(move || {
                    let client = Client::connect(&url, options).unwrap();
                    let path = format!("/w-{round}-{k}");
                    let file = create(&client, &path, "striped(64KiB) over 3");
                    // Made before the kill: files made after it go to the servers that live.
                    made.wait();
                    for full in 0.. {
                        let at = full * CHUNK as u64;
                        let started = Instant::now();
                        // Over and over the same two chunks once there are enough.
                        let wanted = whole(at % (8 * CHUNK as u64), CHUNK, full);
                        match file.write_at(at % (8 * CHUNK as u64), &wanted) {
                            Ok(n) => assert_eq!(n, CHUNK),
                            Err(error) => {
                                assert!(started.elapsed() < BOUND, "{error}");
                                // A handle with an error is as good as any other.
                                let _ = file.close();
                                return Told { path, full, error };
                            }
                        }
                    }
                    unreachable!()
                })
            })
            .collect();
        made.wait();
        some_time(random, 60_000);
        for &victim in victims {
            service.kill_io(victim);
        }
        writers.into_iter().map(|w| w.join().unwrap()).collect()
    })
}

/// The error names a dead server, and what it calls safe is there at the servers that live.
fn verify(service: &system_tests::Service, told: &Told, dead: &[u64]) {
    let named: Vec<u64> = match &told.error {
        Error::Partial { failures, .. } => failures.iter().map(|f| f.server.0).collect(),
        Error::Unreachable { server, .. } => server.iter().map(|s| s.0).collect(),
        Error::Lost { server } => vec![server.0],
        other => panic!("{other:?}"),
    };
    assert!(!named.is_empty(), "{}", told.error);
    assert!(
        named.iter().all(|s| dead.contains(s)),
        "{dead:?}: {}",
        told.error
    );
    for server in &named {
        let name = client::ServerId(*server).to_string();
        assert!(told.error.to_string().contains(&name), "{}", told.error);
    }
    let Error::Partial { confirmed, .. } = told.error else {
        return;
    };
    let client = impatient_client(service, 2);
    let file = open(&client, &told.path);
    let at = told.at();
    // Each server has its part of a chunk in one message: one that failed has confirmed no byte of it.
    for (view, server) in subfiles(&file) {
        let bytes = view.bytes();
        let first = bytes.select(bytes.rank(at)).expect("a byte of the chunk");
        assert!(
            !named.contains(&server) || at + confirmed <= first,
            "byte {first} of server {server} was not written, at {at}: {}",
            told.error
        );
    }
    if dead.contains(&file.layout().owner.server) {
        // A new handle asks the owner for the size.
        return;
    }
    for (view, server) in subfiles(&file) {
        if dead.contains(&server) {
            continue;
        }
        let bytes = view.bytes();
        let (lo, hi) = (bytes.rank(at), bytes.rank(at + confirmed));
        file.set_view(&view).unwrap();
        let mut have = vec![0; (hi - lo) as usize];
        let n = file.read_at(lo, &mut have).unwrap();
        assert_eq!(n, have.len(), "confirmed bytes beyond the end of the file");
        let expected = system_tests::pattern(&view, lo, n, told.full);
        assert!(
            have == expected,
            "{}: {confirmed} bytes of {at} are not there",
            told.path
        );
    }
}

#[test]
fn seed001_s31_memory_server_killed_in_writes_is_named_and_its_bytes_are_lost_not_zero() {
    for (round, mut random) in rounds(2, 2).enumerate() {
        let mut service = service(3, Store::Memory);
        let victim = random.index(3);
        let dead = service.server_id(victim);
        let lived = service.client();
        let kept = create(&lived, "/kept", "striped(4KiB) over 3");
        kept.write_at(0, &whole(0, 90_000, 4)).unwrap();
        let told = write_until_killed(&mut service, &[victim], round, &mut random);
        // Before it is back: others are served.
        for told in &told {
            eprintln!("{}", told.error);
            verify(&service, told, &[dead.0]);
        }
        // With its keeper, as when its host dies; otherwise it would have its bytes again.
        service.kill_keeper(victim);
        service.start_io(victim);
        service.wait_for_members(3);
        // As the same server without its bytes: lost, not zeros, for old handles and new ones.
        let fresh = impatient_client(&service, 5);
        for (how, file) in [("old", kept), ("new", open(&fresh, "/kept"))] {
            let mut some = vec![0; 90_000];
            let error = file.read_at(0, &mut some).unwrap_err();
            assert_eq!(error.status(), Status::Lost, "{how}: {error}");
            assert!(error.to_string().contains(&dead.to_string()), "{error}");
            for (view, server) in subfiles(&file) {
                file.set_view(&view).unwrap();
                let mut part = vec![0; 20_000];
                match file.read_at(0, &mut part) {
                    Ok(n) => {
                        assert_ne!(server, dead.0, "{how}: lost bytes were read");
                        assert_eq!(n, 20_000);
                        assert!(part == system_tests::pattern(&view, 0, n, 4));
                    }
                    Err(error) => {
                        assert_eq!(server, dead.0, "{how}: {error}");
                        assert_eq!(error.status(), Status::Lost, "{how}: {error}");
                    }
                }
            }
        }
        // New files are complete, and the old ones can go.
        let file = create(&fresh, "/new", "striped(4KiB) over 3");
        file.write_at(0, &whole(0, 100_000, 8)).unwrap();
        assert!(read(&file, 0, 100_000) == whole(0, 100_000, 8));
        fresh.unlink("/kept").unwrap();
        file.close().unwrap();
        fresh.unlink("/new").unwrap();
        for told in &told {
            fresh.unlink(&told.path).unwrap();
        }
        drop((fresh, lived));
        service.wait_for_nothing();
    }
}

#[test]
fn seed001_s31_two_servers_killed_in_writes_leave_a_confirmed_prefix_that_is_true() {
    for (round, mut random) in rounds(3, 2).enumerate() {
        let mut service = service(3, Store::Memory);
        let spared = random.index(3);
        let victims: Vec<usize> = (0..3).filter(|&i| i != spared).collect();
        let dead: Vec<u64> = victims.iter().map(|&i| service.server_id(i).0).collect();
        for told in write_until_killed(&mut service, &victims, round, &mut random) {
            eprintln!("{}", told.error);
            verify(&service, &told, &dead);
        }
    }
}

#[test]
fn seed001_s31_disk_server_killed_in_writes_is_named_and_all_goes_on_when_it_is_back() {
    for (round, mut random) in rounds(4, 2).enumerate() {
        let mut service = service(3, Store::Disk);
        let victim = random.index(3);
        let dead = service.server_id(victim);
        let lived = service.client();
        let kept = create(&lived, "/kept", "striped(4KiB) over 3");
        kept.write_at(0, &whole(0, 90_000, 4)).unwrap();
        kept.sync().unwrap();
        let told = write_until_killed(&mut service, &[victim], round, &mut random);
        for told in &told {
            eprintln!("{}", told.error);
            verify(&service, told, &[dead.0]);
        }
        service.start_io(victim);
        assert!(
            read(&kept, 0, 90_000) == whole(0, 90_000, 4),
            "synced bytes"
        );
        for told in &told {
            let file = open(&lived, &told.path);
            // What was called safe is, also at the server that died: it answers when bytes are safe from its own death.
            if let Error::Partial { confirmed, .. } = told.error {
                let (at, safe) = (told.at(), confirmed as usize);
                assert!(
                    read(&file, at, safe) == whole(at, safe, told.full),
                    "{}: {safe} bytes at {at} are not there",
                    told.path
                );
            }
            file.write_at(0, &whole(0, CHUNK, 77)).unwrap();
            file.sync().unwrap();
            assert!(read(&file, 0, CHUNK) == whole(0, CHUNK, 77));
        }
        crate::assert_clean(&service);
    }
}

/// A client that waits long enough does not notice a short absence: what was acknowledged outlives the server.
#[test]
fn disk_server_that_comes_back_in_time_is_waited_for() {
    for mut random in rounds(5, 3) {
        let mut service = service(2, Store::Disk);
        let client = service.client();
        let file = create(&client, "/f", "striped(64KiB) over 2");
        file.write_at(0, &whole(0, CHUNK, 1)).unwrap();
        file.sync().unwrap();
        let victim = random.index(2);
        let written = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut written = 0;
                for tag in 2..12 {
                    file.write_at(0, &whole(0, CHUNK, tag)).unwrap();
                    written = tag;
                }
                written
            });
            some_time(&mut random, 8_000);
            service.kill_io(victim);
            service.start_io(victim);
            writer.join().unwrap()
        });
        // What was acknowledged was in the page cache, which no process takes along: nothing of it is lost.
        assert!(file.sync().unwrap().is_durable);
        assert!(read(&file, 0, CHUNK) == whole(0, CHUNK, written));
        service.kill_all();
        service.start_all();
        let client = service.client();
        assert!(read(&open(&client, "/f"), 0, CHUNK) == whole(0, CHUNK, written));
    }
}

/// A sync without a write after the restart: a disk server answers a write when its bytes are safe from its own death,
/// also one of a client that copies directly where it may. So nothing is lost with a process, and a sync vouches for it.
#[test]
fn sync_vouches_for_exactly_what_outlived_a_server() {
    for direct in [false, true] {
        let mut service = ServiceOptions::new(1).disk().direct(direct).start();
        let client = service.client();
        let file = create(&client, "/f", "striped(64KiB) over 1");
        file.write_at(0, &whole(0, 4096, 1)).unwrap();
        file.sync().unwrap();
        file.write_at(0, &whole(0, 4096, 2)).unwrap();
        service.kill_io(0);
        service.start_io(0);
        let now = read(&file, 0, 4096);
        assert!(
            now == whole(0, 4096, 2),
            "acknowledged bytes died with a process, direct {direct}"
        );
        assert!(file.sync().unwrap().is_durable, "direct {direct}");
        // All of them, beyond the death of everything.
        service.kill_all();
        service.start_all();
        let client = service.client();
        let file = open(&client, "/f");
        assert!(
            read(&file, 0, 4096) == whole(0, 4096, 2),
            "sync vouched for bytes that are gone, direct {direct}"
        );
        file.write_at(0, &whole(0, 4096, 3)).unwrap();
        assert!(file.sync().unwrap().is_durable);
        assert!(read(&file, 0, 4096) == whole(0, 4096, 3));
    }
}
