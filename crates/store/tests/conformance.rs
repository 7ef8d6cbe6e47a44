//! Runs the conformance suite against every store: memory, disk on real files, disk on the twin,
//! with ample and with scarce memory.
//!
//! The suite itself is in `store::conformance`, so that stores elsewhere can run it too.

mod harness;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use harness::{KeptHarness, KeptTwinHarness, MemoryHarness, RealHarness, TwinHarness};
use store::conformance::{CHECKS, Harness, identity, pattern, run};
use store::{Directory, FileIo, Grant, UNIT};

#[track_caller]
fn ran_all_but(ran: &[&str], left_out: &[&str]) {
    let expected: Vec<&str> = CHECKS
        .iter()
        .map(|c| c.name)
        .filter(|name| !left_out.contains(name))
        .collect();
    assert_eq!(ran, expected);
}

#[test]
fn memory_store_conforms() {
    let ran = run(|| Box::new(MemoryHarness::new(64 << 20)));
    let durable = [
        "synced_bytes_survive",
        "flushed_bytes_survive",
        "scrub_reads_all_blocks",
    ];
    ran_all_but(&ran, &durable);
}

#[test]
fn memory_store_that_is_killed_and_adopted_conforms() {
    let kills = Arc::new(AtomicU64::new(0));
    let ran = run(|| Box::new(KeptHarness::new(64 << 20, &kills)));
    let durable = [
        "synced_bytes_survive",
        "flushed_bytes_survive",
        "scrub_reads_all_blocks",
    ];
    ran_all_but(&ran, &durable);
    let kills = kills.load(Ordering::Relaxed);
    assert!(kills > 50, "{kills}");
}

#[test]
fn disk_store_that_is_killed_and_adopted_conforms() {
    let kills = Arc::new(AtomicU64::new(0));
    let ran = run(|| Box::new(KeptTwinHarness::new(64 << 20, &kills)));
    ran_all_but(&ran, &[]);
    let kills = kills.load(Ordering::Relaxed);
    assert!(kills > 100, "{kills}");
}

#[test]
fn disk_store_on_real_files_conforms() {
    ran_all_but(&run(|| Box::new(RealHarness::new(64 << 20))), &[]);
}

/// Also where the file system punches no holes, reserves no space, tells no holes and syncs no names.
#[test]
fn disk_store_on_no_more_than_posix_conforms() {
    let on_posix = || {
        let mut harness = RealHarness::of(64 << 20, Directory::lacking_all);
        harness.frees = false;
        harness
    };
    ran_all_but(&run(|| Box::new(on_posix())), &[]);
}

#[test]
fn disk_store_past_the_page_cache_conforms() {
    let direct = |directory: Directory| directory.with_io(FileIo::Direct);
    ran_all_but(&run(|| Box::new(RealHarness::of(64 << 20, direct))), &[]);
}

#[test]
fn disk_store_on_the_twin_conforms() {
    ran_all_but(&run(|| Box::new(TwinHarness::new(64 << 20))), &[]);
}

#[test]
fn disk_store_with_scarce_memory_conforms() {
    // Less than most checks write: everything goes through eviction and write-back. Checks that
    // pin more than that at once cannot run.
    let large = ["pins_outlive_truncation", "grants_apart_show_no_old_bytes"];
    let ran: Vec<&str> = CHECKS
        .iter()
        .filter(|c| !large.contains(&c.name))
        .map(|check| {
            let mut harness: Box<dyn Harness> = Box::new(TwinHarness::new(2 << 20));
            (check.run)(&mut *harness);
            check.name
        })
        .collect();
    ran_all_but(&ran, &large);
}

#[test]
fn memory_apart_is_found_in_pieces_when_there_is_no_large_one() {
    let harness = MemoryHarness::new(128 * UNIT);
    let store = harness.store();
    // Bytes far from each other take a unit each, and leave five: fewer than an extent of eight.
    let full = store.create(&identity(1)).unwrap();
    for i in 0..123 {
        full.write_at(i * 32 * UNIT, b"x").unwrap();
    }
    assert_eq!(store.usage().memory_bytes, 123 * UNIT);
    let subfile = store.create(&identity(2)).unwrap();
    let range = 8 * UNIT + 100..12 * UNIT + 30_000;
    let bytes = pattern(3, (range.end - range.start) as usize, 1);
    let mut grant = Grant::new();
    subfile.grant_apart(range.clone(), &mut grant).unwrap();
    grant.copy_from(&bytes);
    grant.commit().unwrap();
    let mut found = vec![0xff; range.end as usize];
    subfile.read_at(0, &mut found).unwrap();
    let (before, stored) = found.split_at(range.start as usize);
    assert!(before.iter().all(|&b| b == 0));
    assert!(stored == bytes);
    assert_eq!(subfile.allocated().unwrap(), 5 * UNIT);
}
