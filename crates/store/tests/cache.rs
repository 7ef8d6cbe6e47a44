//! What a disk store keeps in memory, reads ahead and writes back.
//!
//! Hits and misses are counted by the store itself; that its bytes are right is compared as well.

mod harness;

use harness::{pool, twin_store};
use store::conformance::{identity, pattern};
use store::disk::twin::{Fault, Random, Twin};
use store::{DiskOptions, DiskSpec, DiskStore, LimitedDisk, Pins, Store, Subfile};

/// A store on a twin with so much memory.
fn small_store(limit: u64) -> DiskStore {
    twin_store(&Twin::new(), limit)
}

fn read(subfile: &dyn Subfile, at: u64, len: usize) {
    let mut bytes = vec![0; len];
    subfile.read_at(at, &mut bytes).unwrap();
    assert_eq!(bytes, pattern(at, len, 1), "at {at}");
}

/// A subfile of known content that is on disk only.
fn written(store: &DiskStore, number: u64, len: u64) -> std::sync::Arc<dyn Subfile> {
    let subfile = store.create(&identity(number)).unwrap();
    let step = 1 << 20;
    for at in (0..len).step_by(step) {
        let n = step.min((len - at) as usize);
        subfile.write_at(at, &pattern(at, n, 1)).unwrap();
        subfile.flush().unwrap();
    }
    subfile.sync().unwrap();
    store.evict();
    subfile
}

#[test]
fn a_scan_in_short_pieces_leaves_what_is_used_again_and_again() {
    let store = small_store(8 << 20);
    let hot = written(&store, 1, 4 << 20);
    let long = written(&store, 2, 64 << 20);
    for _ in 0..4 {
        for at in (0..4 << 20).step_by(64 << 10) {
            read(&*hot, at, 64 << 10);
        }
    }
    let before = store.usage().cache;
    for at in (0..64u64 << 20).step_by(16 << 10) {
        read(&*long, at, 16 << 10);
    }
    let scanned = store.usage().cache;
    assert_eq!(scanned.miss_bytes - before.miss_bytes, 64 << 20);
    assert!(scanned.evicted_bytes > before.evicted_bytes + (32 << 20));
    for at in (0..4 << 20).step_by(64 << 10) {
        read(&*hot, at, 64 << 10);
    }
    let after = store.usage().cache;
    assert_eq!(
        after.miss_bytes, scanned.miss_bytes,
        "the scan took nothing of the hot set"
    );
    assert_eq!(after.hit_bytes - scanned.hit_bytes, 4 << 20);
}

#[test]
fn a_loop_longer_than_memory_hits_in_part() {
    let store = small_store(8 << 20);
    let subfile = written(&store, 1, 12 << 20);
    let mut last = store.usage().cache;
    for round in 0..4 {
        for at in (0..12u64 << 20).step_by(256 << 10) {
            read(&*subfile, at, 256 << 10);
        }
        let now = store.usage().cache;
        let hits = now.hit_bytes - last.hit_bytes;
        if round > 1 {
            assert!(hits >= 4 << 20, "round {round}: {hits} bytes");
        }
        last = now;
    }
}

#[test]
fn what_was_read_ahead_is_a_hit_once_and_waste_when_it_goes_unused() {
    let store = small_store(8 << 20);
    let subfile = written(&store, 1, 4 << 20);
    assert_eq!(subfile.read_ahead(0..1 << 20).unwrap(), 1 << 20);
    assert_eq!(subfile.read_ahead(0..1 << 20).unwrap(), 0, "it is there");
    let usage = store.usage().cache;
    assert_eq!(
        (usage.ahead_bytes, usage.waiting_bytes()),
        (1 << 20, 1 << 20)
    );
    assert_eq!((usage.hit_bytes, usage.miss_bytes), (0, 0), "nobody asked");
    read(&*subfile, 0, 512 << 10);
    read(&*subfile, 0, 512 << 10);
    let usage = store.usage().cache;
    assert_eq!(usage.ahead_hit_bytes, 512 << 10, "counted once");
    assert_eq!(usage.miss_bytes, 0);
    // Overwritten: in vain, and the new bytes count.
    let new = vec![7; 256 << 10];
    subfile.write_at(512 << 10, &new).unwrap();
    assert_eq!(store.usage().cache.ahead_wasted_bytes, 256 << 10);
    let mut back = vec![0; 256 << 10];
    subfile.read_at(512 << 10, &mut back).unwrap();
    assert_eq!(back, new);
    // Cut off: in vain.
    subfile.truncate(0).unwrap();
    let usage = store.usage().cache;
    assert_eq!(usage.ahead_wasted_bytes, 512 << 10);
    assert_eq!(usage.waiting_bytes(), 0);
    // Beyond the length there is nothing to read.
    assert_eq!(subfile.read_ahead(0..1 << 30).unwrap(), 0);
}

#[test]
fn reading_ahead_takes_no_memory_that_others_need_more() {
    let limit = 8 << 20;
    let pool = pool(limit);
    let twin = Twin::new();
    let specs = vec![DiskSpec::new(twin)];
    let store = DiskStore::new(pool.clone(), specs, DiskOptions::default()).unwrap();
    let hot = written(&store, 1, 6 << 20);
    let long = written(&store, 2, 32 << 20);
    let dirty = store.create(&identity(3)).unwrap();
    for _ in 0..3 {
        for at in (0..6 << 20).step_by(64 << 10) {
            read(&*hot, at, 64 << 10);
        }
    }
    dirty.write_at(0, &pattern(0, 1 << 20, 1)).unwrap();
    let mut pins = Pins::new();
    hot.pin(0..64 << 10, &mut pins).unwrap();
    let before = store.usage();
    let read_bytes = long.read_ahead(0..32 << 20).unwrap();
    assert!(read_bytes < 2 << 20, "{read_bytes} bytes in a full memory");
    let usage = pool.usage();
    assert!(usage.used_bytes + usage.warm_bytes <= limit, "{usage:?}");
    let after = store.usage();
    assert_eq!(
        after.dirty_bytes, before.dirty_bytes,
        "nothing written back"
    );
    for at in (0..6 << 20).step_by(64 << 10) {
        read(&*hot, at, 64 << 10);
    }
    assert_eq!(after.cache.miss_bytes, store.usage().cache.miss_bytes);
}

#[test]
fn a_part_of_memory_is_for_reading_ahead_whatever_is_in_it() {
    let store = small_store(16 << 20);
    let hot = written(&store, 1, 16 << 20);
    let long = written(&store, 2, 32 << 20);
    for _ in 0..3 {
        for at in (0..16 << 20).step_by(64 << 10) {
            read(&*hot, at, 64 << 10);
        }
    }
    let evicted = || store.usage().cache.evicted_bytes;
    let before = evicted();
    assert_eq!(long.read_ahead(0..2 << 20).unwrap(), 2 << 20, "an eighth");
    assert!(evicted() - before <= 4 << 20, "and no more goes for it");
    assert_eq!(
        long.read_ahead(2 << 20..32 << 20).unwrap(),
        0,
        "enough waits"
    );
    let waiting = store.usage().cache.waiting_bytes();
    assert_eq!(waiting, 2 << 20);
    // What was asked for makes room for what comes next.
    for segment in 1..8 {
        let at = (segment - 1) * (2 << 20);
        let before = store.usage().cache.miss_bytes;
        read(&*long, at, 2 << 20);
        assert_eq!(store.usage().cache.miss_bytes, before, "segment {segment}");
        let next = at + (2 << 20)..at + (4 << 20);
        assert_eq!(long.read_ahead(next).unwrap(), 2 << 20, "{segment}");
    }
    // Seven segments came and went; the hot set gave an extent for those that wait, and one for those in use.
    let gone = evicted() - before;
    assert!(gone <= (14 + 4) << 20, "{gone} bytes went");
}

/// Random reads, writes, cuts, read-ahead and eviction against plain bytes.
#[test]
fn reading_ahead_between_all_other_calls_changes_no_byte() {
    for seed in 0..6 {
        let store = small_store(2 << 20);
        let subfile = store.create(&identity(1)).unwrap();
        let mut random = Random::new(seed + 77);
        let size = 6usize << 20;
        let mut expected = vec![0u8; size];
        for step in 0..400u64 {
            let at = random.index(size - 1);
            let len = 1 + random.index(300_000).min(size - at - 1);
            match random.index(10) {
                0..=2 => {
                    let bytes = pattern(step, len, step + 2);
                    subfile.write_at(at as u64, &bytes).unwrap();
                    expected[at..at + len].copy_from_slice(&bytes);
                }
                3..=5 => {
                    subfile.read_ahead(at as u64..(at + len) as u64).unwrap();
                }
                6 => {
                    if random.index(8) == 0 {
                        subfile.truncate(at as u64).unwrap();
                        expected[at..].fill(0);
                    } else {
                        subfile.punch(at as u64..(at + len) as u64).unwrap();
                        expected[at..at + len].fill(0);
                    }
                }
                7 => {
                    store.write_back(random.index(1 << 20) as u64).unwrap();
                    store.evict();
                }
                _ => {
                    let mut back = vec![1; len];
                    subfile.read_at(at as u64, &mut back).unwrap();
                    assert!(back == expected[at..at + len], "seed {seed} step {step}");
                }
            }
        }
        assert!(store.usage().cache.ahead_bytes > 0);
        let mut back = vec![1; size];
        subfile.read_at(0, &mut back).unwrap();
        assert!(back == expected, "seed {seed}");
    }
}

#[test]
fn write_back_goes_round_and_keeps_count_of_what_is_dirty() {
    let store = small_store(16 << 20);
    let all: Vec<_> = (1..=4)
        .map(|n| store.create(&identity(n)).unwrap())
        .collect();
    for subfile in &all {
        subfile.write_at(0, &pattern(0, 1 << 20, 1)).unwrap();
    }
    assert_eq!(store.usage().dirty_bytes, 4 << 20);
    // The first is written again and again; the others get their turn all the same.
    for _ in 0..4 {
        assert_eq!(store.write_back(1 << 20).unwrap(), 1 << 20);
        all[0].write_at(0, &pattern(0, 1 << 20, 1)).unwrap();
    }
    assert_eq!(store.usage().dirty_bytes, 1 << 20, "only what came since");
    assert_eq!(store.usage().cache.written_bytes, 4 << 20);
    all[0].truncate(0).unwrap();
    assert_eq!(store.usage().dirty_bytes, 0);
}

#[test]
fn a_failed_write_back_is_not_forgotten_and_reported_by_sync() {
    let twin = Twin::new();
    let store = twin_store(&twin, 16 << 20);
    let subfile = store.create(&identity(1)).unwrap();
    subfile.write_at(0, &pattern(0, 1 << 20, 1)).unwrap();
    twin.plan(1, Fault::Error);
    assert!(store.write_back(u64::MAX).is_err());
    assert_eq!(store.usage().dirty_bytes, 1 << 20, "still to be written");
    twin.plan(1, Fault::Error);
    assert!(subfile.sync().is_err(), "told to who asks");
    read(&*subfile, 0, 1 << 20);
    twin.mend();
    subfile.sync().unwrap();
    store.evict();
    read(&*subfile, 0, 1 << 20);
}

#[test]
fn whoever_needs_room_waits_for_what_others_write_back() {
    let twin = std::sync::Arc::new(Twin::new());
    // So slow that a write-back of all there is takes a while.
    let disk = LimitedDisk::new(twin, 8 << 20);
    let store = DiskStore::new(
        pool(1 << 20),
        vec![DiskSpec::new(disk)],
        DiskOptions::default(),
    );
    let store = store.unwrap();
    let first = store.create(&identity(1)).unwrap();
    let second = store.create(&identity(2)).unwrap();
    for _ in 0..3 {
        first.write_at(0, &pattern(0, 1 << 20, 1)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| store.write_back(u64::MAX).unwrap());
            // All of it is on its way: it can be evicted neither now nor by another write-back.
            while store.dirty_bytes() > 0 {
                std::thread::yield_now();
            }
            second.write_at(0, &[7; 100]).unwrap();
        });
        read(&*first, 0, 1 << 20);
        second.sync().unwrap();
        store.evict();
    }
}
