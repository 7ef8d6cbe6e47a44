//! Numbered statements about disks and memory, as far as a store can show them.
//!
//! What `docs/statements.md` calls statements 45, 46, 48, 49, 79 and 80 of source 004.

mod harness;

use harness::{MemoryHarness, RealHarness, Temporary, TwinHarness, pool, twin_store};
use store::conformance::{Harness, identity, pattern};
use store::disk::twin::{Fault, Loss, Random, Twin};
use store::{
    Advice, Characteristics, Directory, DiskOptions, DiskSpec, DiskStore, Domain, Error, Grant,
    Identity, MemoryStore, Pages, Pool, PoolOptions, Resource, Space, Store, Subfile,
    measure_speed, rank,
};

fn disk(speed_mib: u64, distance: u32, free_gib: u64) -> Characteristics {
    Characteristics {
        speed_bytes_per_s: speed_mib << 20,
        distance,
        space: Space {
            free_bytes: free_gib << 30,
            total_bytes: 1000 << 30,
        },
        has_failed: false,
    }
}

#[test]
fn seed004_s45_ranking_is_deterministic_and_follows_characteristics() {
    let mut disks = vec![disk(100, 0, 500), disk(400, 0, 500), disk(400, 3, 900)];
    let order = rank(&disks, 1);
    assert_eq!(order, [1, 2, 0]);
    for _ in 0..10 {
        assert_eq!(rank(&disks, 1), order);
    }
    disks[1].speed_bytes_per_s = 50 << 20; // slower now
    assert_eq!(rank(&disks, 1), [2, 0, 1]);
    disks[1].speed_bytes_per_s = 400 << 20;
    disks[1].space.free_bytes = 1 << 30; // nearly full now
    assert_eq!(rank(&disks, 1), [2, 0, 1]);
    disks[2].distance = 100; // moved away
    assert_eq!(rank(&disks, 1), [0, 2, 1]);
    disks[0].has_failed = true;
    assert_eq!(rank(&disks, 1), [2, 1]);
    assert_eq!(rank(&disks, 10 << 30), [2], "room for ten GiB");
    // Equal disks fill evenly: the one with more room comes first, then the one named first.
    assert_eq!(rank(&[disk(100, 0, 5), disk(101, 0, 5)], 1), [0, 1]);
    assert_eq!(rank(&[disk(101, 0, 400), disk(100, 0, 500)], 1), [1, 0]);
}

#[test]
fn seed004_s45_order_does_not_depend_on_how_disks_are_named() {
    let mut random = Random::new(1);
    for _ in 0..200 {
        let disks: Vec<Characteristics> = (0..6)
            .map(|k| disk(10 << random.index(8), random.index(4) as u32, 1 + k * 7))
            .collect();
        let order = rank(&disks, 1);
        let turned: Vec<Characteristics> = disks.iter().rev().copied().collect();
        let back: Vec<usize> = rank(&turned, 1).iter().map(|i| 5 - i).collect();
        assert_eq!(order, back, "{disks:?}");
    }
}

#[test]
fn seed004_s45_new_subfiles_go_to_the_best_disk_of_the_moment() {
    let twins = [Twin::new(), Twin::new()];
    let specs = twins.iter().map(|t| DiskSpec::new(t.clone())).collect();
    let store = DiskStore::new(pool(16 << 20), specs, DiskOptions::default()).unwrap();
    store.disks().declare(1, 500 << 20, 0);
    store.create(&identity(1)).unwrap();
    store.disks().declare(1, 10 << 20, 0);
    store.create(&identity(2)).unwrap();
    assert_eq!(store.disk_of(identity(1).id).unwrap(), 1);
    assert_eq!(store.disk_of(identity(2).id).unwrap(), 0);
    // Measuring takes a clock from outside: 4 MiB in two seconds.
    let ticks = std::cell::Cell::new(0);
    let now = || {
        ticks.set(ticks.get() + 2);
        std::time::Duration::from_secs(ticks.get())
    };
    assert_eq!(measure_speed(&twins[0], &now).unwrap(), 2 << 20);
}

#[test]
fn seed004_s46_memory_never_exceeds_its_limit() {
    let limit = 3 << 20;
    let pool = pool(limit);
    let store = MemoryStore::new(pool.clone());
    let subfile = store.create(&identity(1)).unwrap();
    let mut random = Random::new(5);
    let mut refused = 0;
    for step in 0..600 {
        let at = random.index(8 << 20) as u64;
        let done = match random.index(4) {
            0 => subfile.truncate(at),
            1 => subfile.punch(at..at + (1 << 20)),
            _ => subfile.write_at(at, &pattern(at, 1 + random.index(600_000), step)),
        };
        if let Err(e) = done {
            let memory = Resource::Memory;
            assert!(
                matches!(e, Error::NoSpace { resource, .. } if resource == memory),
                "{e}"
            );
            assert_eq!(e.advice(), Advice::Later);
            refused += 1;
        }
        let usage = pool.usage();
        assert!(usage.used_bytes + usage.warm_bytes <= limit, "{usage:?}");
        assert_eq!(subfile.allocated().unwrap(), usage.used_bytes);
    }
    assert!(refused > 10, "the limit was hardly met");
    // Waiting requests are served once space is free.
    subfile.truncate(0).unwrap();
    subfile.write_at(0, &pattern(0, 2 << 20, 0)).unwrap();
}

/// Who asks for more than there is gets nothing, and keeps nothing from others.
#[test]
fn seed001_s12_reservation_that_fails_gives_everything_back() {
    let store = MemoryStore::new(pool(4 << 20));
    let subfile = store.create(&identity(1)).unwrap();
    subfile.write_at(70_000, b"kept").unwrap();
    let before = (subfile.allocated().unwrap(), subfile.len());
    let error = subfile.preallocate(0..1 << 40).unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert_eq!((subfile.allocated().unwrap(), subfile.len()), before);
    let other = store.create(&identity(2)).unwrap();
    other.write_at(0, &vec![1; 2 << 20]).unwrap();
    let mut kept = [0; 4];
    subfile.read_at(70_000, &mut kept).unwrap();
    assert_eq!(&kept, b"kept");
}

#[test]
fn seed004_s46_disk_store_works_within_any_limit() {
    for limit in [64 << 10, 128 << 10, 1 << 20] {
        let twin = Twin::new();
        let pool = pool(limit);
        let disks = vec![DiskSpec::new(twin.clone())];
        let store = DiskStore::new(pool.clone(), disks, DiskOptions::default()).unwrap();
        let subfile = store.create(&identity(1)).unwrap();
        // Pieces below the limit; the whole is much larger than it.
        let piece = 40_000;
        for k in 0..60u64 {
            subfile
                .write_at(k * piece, &pattern(k * piece, piece as usize, 1))
                .unwrap();
            assert!(pool.usage().used_bytes <= limit);
        }
        for k in 0..60u64 {
            let mut found = vec![0; piece as usize];
            subfile.read_at(k * piece, &mut found).unwrap();
            assert!(found == pattern(k * piece, piece as usize, 1), "piece {k}");
            assert!(pool.usage().used_bytes + pool.usage().warm_bytes <= limit);
        }
        // What is pinned cannot be evicted: the caller is told to wait, and nothing is lost.
        let mut grants = Vec::new();
        let refused = loop {
            let mut grant = Grant::new();
            let at = grants.len() as u64 * (64 << 10);
            match subfile.grant(at..at + 1, &mut grant) {
                Ok(()) => grants.push(grant),
                Err(e) => break e,
            }
        };
        assert_eq!(refused.advice(), Advice::Later);
        grants.clear();
        subfile.write_at(0, b"again").unwrap();
    }
}

#[test]
fn seed004_s46_memory_is_recycled_inside_its_domain_only() {
    // Of a large page the rest is ready, and comes before what is recycled.
    let pool = Pool::new(PoolOptions {
        pages: Pages::Small,
        ..*pool(8 << 20).options()
    });
    let store = MemoryStore::new(pool.clone());
    let other = Domain {
        owner: 1,
        ..Domain::default()
    };
    let first = store.create(&identity(1)).unwrap();
    first.write_at(0, &pattern(0, 1 << 20, 0)).unwrap();
    let segment = |subfile: &dyn Subfile| {
        let mut pins = store::Pins::new();
        subfile.locate(0..1, &mut pins).unwrap()[0].segment.id()
    };
    let mine = segment(&*first);
    drop(first);
    store.remove(identity(1).id).unwrap();
    let before = pool.usage();
    assert_eq!((before.used_bytes, before.warm_bytes), (0, 1 << 20));
    // Same domain: the warm memory, zeroed.
    let second = store.create(&identity(2)).unwrap();
    second.write_at(0, b"x").unwrap();
    let mut found = vec![1; 65_536];
    second.read_at(0, &mut found).unwrap();
    assert!(found[0] == b'x' && found[1..].iter().all(|&b| b == 0));
    assert_eq!(pool.usage().recycled, before.recycled + 1);
    assert_eq!(segment(&*second), mine);
    // Another domain: other memory.
    let foreign = Identity::new(identity(3).id, other, 7);
    let third = store.create(&foreign).unwrap();
    third.write_at(0, b"x").unwrap();
    assert_ne!(segment(&*third), mine);
    assert_eq!(pool.usage().segments, 2);
    pool.cool();
    assert_eq!(pool.usage().warm_bytes, 0);
    drop(third);
    store.remove(foreign.id).unwrap();
    pool.cool();
    assert_eq!(pool.usage().segments, 1, "an empty segment is closed");
}

#[test]
fn seed004_s48_all_back_ends_give_identical_bytes() {
    let mut harnesses: Vec<Box<dyn Harness>> = vec![
        Box::new(MemoryHarness::new(32 << 20)),
        Box::new(RealHarness::new(32 << 20)),
        Box::new(RealHarness::new(1 << 20)),
        Box::new(TwinHarness::new(32 << 20)),
        Box::new(TwinHarness::new(1 << 20)),
    ];
    let subfiles: Vec<_> = harnesses
        .iter_mut()
        .map(|h| h.store().create(&identity(1)).unwrap())
        .collect();
    let mut random = Random::new(48);
    for step in 0..150 {
        let at = random.index(3 << 20) as u64;
        let len = random.index(200_000);
        let what = random.index(8);
        let mut first: Option<Vec<u8>> = None;
        for (subfile, harness) in subfiles.iter().zip(&harnesses) {
            match what {
                0 => subfile.punch(at..at + len as u64).unwrap(),
                1 if step % 3 == 0 => subfile.truncate(at).unwrap(),
                2 => subfile.sync().unwrap(),
                3 => harness.evict(),
                _ => subfile.write_at(at, &pattern(at, len, step)).unwrap(),
            }
            let mut found = vec![0; 100_000];
            subfile
                .read_at(at.saturating_sub(50_000), &mut found)
                .unwrap();
            let expected = first.get_or_insert_with(|| found.clone());
            assert!(found == *expected, "step {step}");
            assert_eq!(subfile.len(), subfiles[0].len());
        }
    }
}

#[test]
fn seed004_s49_files_beyond_four_gib_are_sparse_and_right() {
    let harnesses: [Box<dyn Harness>; 3] = [
        Box::new(MemoryHarness::new(32 << 20)),
        Box::new(RealHarness::new(32 << 20)),
        Box::new(TwinHarness::new(32 << 20)),
    ];
    let places = [0, (200 << 20) - 1, (1 << 32) - 3, 5 << 32, (1 << 40) - 7];
    for mut harness in harnesses {
        let subfile = harness.store().create(&identity(1)).unwrap();
        for &at in &places {
            subfile.write_at(at, &pattern(at, 10, 3)).unwrap();
        }
        subfile.sync().unwrap();
        assert_eq!(subfile.len(), (1 << 40) + 3);
        assert!(subfile.allocated().unwrap() < 2 << 20);
        drop(subfile);
        harness.restart();
        let subfile = harness.store().open(identity(1).id).unwrap();
        for &at in &places {
            let mut found = [0; 30];
            let from = at.saturating_sub(10);
            subfile.read_at(from, &mut found).unwrap();
            let mut expected = [0; 30];
            let to = (at - from) as usize;
            expected[to..to + 10].copy_from_slice(&pattern(at, 10, 3));
            assert_eq!(found, expected, "at {at}");
        }
        subfile.truncate((1 << 32) + 1).unwrap();
        subfile.truncate(1 << 33).unwrap();
        let mut found = [9; 10];
        subfile.read_at((1 << 32) - 3, &mut found).unwrap();
        assert_eq!(found[..4], pattern((1 << 32) - 3, 10, 3)[..4]);
        assert_eq!(found[4..], [0; 6]);
    }
}

#[test]
fn seed004_s79_failed_disk_takes_no_new_subfiles_and_gives_no_wrong_bytes() {
    let twins = [Twin::new(), Twin::new()];
    let specs = twins.iter().map(|t| DiskSpec::new(t.clone())).collect();
    let store = DiskStore::new(pool(16 << 20), specs, DiskOptions::default()).unwrap();
    store.disks().declare(0, 900 << 20, 0);
    let subfile = store.create(&identity(1)).unwrap();
    assert_eq!(store.disk_of(identity(1).id).unwrap(), 0);
    let bytes = pattern(0, 100_000, 1);
    subfile.write_at(0, &bytes).unwrap();
    subfile.sync().unwrap();
    // A hint is enough.
    store.disks().fail(0);
    store.create(&identity(2)).unwrap();
    assert_eq!(store.disk_of(identity(2).id).unwrap(), 1);
    // What is there is still readable.
    store.evict();
    let mut found = vec![0; 100_000];
    subfile.read_at(0, &mut found).unwrap();
    assert!(found == bytes);
    // A real failure: errors, and no new subfile goes there.
    store.disks().restore(0);
    twins[0].plan(1, Fault::Broken);
    store.evict();
    let refused = subfile.read_at(0, &mut found).unwrap_err();
    assert!(matches!(refused, Error::Io { .. }), "{refused}");
    subfile.write_at(0, &pattern(0, 8192, 2)).unwrap();
    assert!(subfile.sync().is_err());
    store.create(&identity(3)).unwrap();
    assert_eq!(store.disk_of(identity(3).id).unwrap(), 1);
    // The accepted bytes are not dropped: the disk comes back and takes them.
    twins[0].mend();
    subfile.sync().unwrap();
    subfile.read_at(0, &mut found).unwrap();
    assert!(found[..8192] == pattern(0, 8192, 2) && found[8192..] == bytes[8192..]);
}

#[test]
fn seed004_s80_full_disk_places_elsewhere_and_loses_nothing() {
    let twins = [Twin::new(), Twin::new()];
    let specs = twins.iter().map(|t| DiskSpec::new(t.clone())).collect();
    let store = DiskStore::new(pool(16 << 20), specs, DiskOptions::default()).unwrap();
    store.disks().declare(0, 900 << 20, 0);
    let subfile = store.create(&identity(1)).unwrap();
    assert_eq!(store.disk_of(identity(1).id).unwrap(), 0);
    twins[0].set_capacity(Some(1 << 20));
    let mut expected = pattern(0, 500_000, 1);
    subfile.write_at(0, &expected).unwrap();
    subfile.sync().unwrap();
    // It outgrows its disk, in the middle of a write-back, and moves.
    expected.extend(pattern(500_000, 2_000_000, 2));
    expected[..300_000].copy_from_slice(&pattern(0, 300_000, 3));
    subfile.write_at(0, &expected).unwrap();
    subfile.sync().unwrap();
    assert_eq!(store.disk_of(identity(1).id).unwrap(), 1);
    // New ones are placed where there is room.
    twins[0].set_capacity(Some(4096));
    store.create(&identity(2)).unwrap();
    assert_eq!(store.disk_of(identity(2).id).unwrap(), 1);
    // Everything full: a typed error, and what was synced stays.
    twins[1].set_capacity(Some(3 << 20));
    subfile
        .write_at(3_000_000, &pattern(0, 3_000_000, 4))
        .unwrap();
    let refused = subfile.sync().unwrap_err();
    let disk = Resource::Disk;
    assert!(
        matches!(refused, Error::NoSpace { resource, .. } if resource == disk),
        "{refused}"
    );
    assert_eq!(refused.advice(), Advice::Later);
    drop((subfile, store));
    twins.iter().for_each(|t| t.restart(Loss::Everything));
    let specs = twins.iter().map(|t| DiskSpec::new(t.clone())).collect();
    let store = DiskStore::new(pool(16 << 20), specs, DiskOptions::default()).unwrap();
    let subfile = store.open(identity(1).id).unwrap();
    let mut found = vec![0; expected.len()];
    subfile.read_at(0, &mut found).unwrap();
    assert!(found == expected);
}

#[test]
fn seed004_s80_interrupted_move_leaves_one_right_copy() {
    for n in 1.. {
        let twins = [Twin::new(), Twin::new()];
        let open = || {
            let specs = twins.iter().map(|t| DiskSpec::new(t.clone())).collect();
            DiskStore::new(pool(16 << 20), specs, DiskOptions::default()).unwrap()
        };
        let store = open();
        store.disks().declare(0, 900 << 20, 0);
        let subfile = store.create(&identity(1)).unwrap();
        let expected = pattern(0, 60_000, 1);
        subfile.write_at(0, &expected).unwrap();
        subfile.sync().unwrap();
        twins[0].set_capacity(Some(1));
        let before = twins[1].operations();
        twins[1].plan(n, Fault::PowerCut);
        subfile.write_at(100_000, &pattern(0, 60_000, 2)).unwrap();
        let moved = subfile.sync().is_ok();
        let is_complete = twins[1].operations() - before < n;
        drop((subfile, store));
        for loss in [Loss::Nothing, Loss::Everything, Loss::Random(n)] {
            let forks = [twins[0].fork(), twins[1].fork()];
            forks.iter().for_each(|t| t.restart(loss));
            let specs = forks.iter().map(|t| DiskSpec::new(t.clone())).collect();
            let store = DiskStore::new(pool(16 << 20), specs, DiskOptions::default()).unwrap();
            let subfile = store.open(identity(1).id).unwrap();
            let mut found = vec![0; 60_000];
            subfile.read_at(0, &mut found).unwrap();
            assert!(found == expected, "operation {n}, {loss:?}");
            if moved {
                subfile.read_at(100_000, &mut found).unwrap();
                assert!(found == pattern(0, 60_000, 2), "operation {n}, {loss:?}");
            }
            assert_eq!(store.list().unwrap().len(), 1);
        }
        if is_complete {
            assert!(moved);
            break;
        }
    }
}

#[test]
fn directory_can_be_rebuilt_from_the_stores() {
    let directory = Temporary::new();
    let open = || {
        let disks = ["a", "b"].map(|d| DiskSpec::new(Directory::new(directory.0.join(d)).unwrap()));
        DiskStore::new(pool(16 << 20), disks.into(), DiskOptions::default()).unwrap()
    };
    let store = open();
    let mut made = Vec::new();
    for file in 1..=5 {
        let mut identity = identity(file);
        identity.domain.directory = 40 + file;
        identity.note = format!("/data/{file} (block, *) onto 4").into_bytes();
        let subfile = store.create(&identity).unwrap();
        subfile.write_at(file * 10, b"x").unwrap();
        subfile.sync().unwrap();
        made.push((identity, file * 10 + 1));
    }
    drop(store);
    std::fs::write(directory.0.join("a").join("stray.sub"), b"not a header").unwrap();
    let store = open();
    let mut found: Vec<_> = Vec::new();
    let mut refused = Vec::new();
    for file in store.scan() {
        match file.content {
            Ok(content) => found.push(content),
            Err(e) => refused.push(format!("{e}")),
        }
    }
    found.sort_by_key(|(identity, _)| identity.id);
    assert_eq!(found, made);
    assert_eq!(refused, ["stray.sub: both headers are damaged"]);
}

#[test]
fn a_data_file_whose_creation_was_never_finished_is_none() {
    let directory = Temporary::new();
    let open = || {
        let disk = DiskSpec::new(Directory::new(directory.0.join("a")).unwrap());
        DiskStore::new(pool(16 << 20), vec![disk], DiskOptions::default()).unwrap()
    };
    let store = open();
    let (whole, begun, swept) = (identity(1), identity(2), identity(3));
    store.create(&whole).unwrap().write_at(0, b"abc").unwrap();
    store.close().unwrap();
    drop(store);
    // As they are found when the server that created them has died between the name and the header.
    let names = |store: &DiskStore| -> Vec<String> {
        let mut names: Vec<String> = store.scan().into_iter().map(|f| f.name).collect();
        names.sort();
        names
    };
    let shell = |name: &str| {
        let file = std::fs::File::create(directory.0.join("a").join(name)).unwrap();
        file.set_len(8192).unwrap();
    };
    shell("0000000000000002-1-0.sub");
    shell("0000000000000003-1-0.sub");
    let store = open();
    assert_eq!(
        names(&store),
        ["0000000000000001-1-0.sub"],
        "shells are removed"
    );
    for id in [begun.id, swept.id] {
        assert!(matches!(store.open(id), Err(Error::NotFound(found)) if found == id));
    }
    store.create(&begun).unwrap().write_at(0, b"new").unwrap();
    let mut found = [0; 3];
    for (id, bytes) in [(whole.id, b"abc"), (begun.id, b"new")] {
        store.open(id).unwrap().read_at(0, &mut found).unwrap();
        assert_eq!(&found, bytes);
    }
    store.close().unwrap();
    drop(store);
    // One that was synced once is not unfinished, whatever its header looks like: its bytes are lost, and said to be.
    shell("0000000000000001-1-0.sub");
    let store = open();
    let refused = store.open(whole.id).map(drop).unwrap_err();
    assert!(matches!(refused, Error::Unfinished { .. }), "{refused}");
    assert!(matches!(store.create(&whole), Err(Error::Exists(_))));
    assert_eq!(names(&store).len(), 2, "and stays");
}

#[test]
fn many_subfiles_need_few_descriptors() {
    let twin = Twin::new();
    let store = twin_store(&twin, 64 << 20);
    for file in 0..600 {
        let subfile = store.create(&identity(file)).unwrap();
        subfile.write_at(file, b"abc").unwrap();
        subfile.sync().unwrap();
    }
    for file in 0..600 {
        let subfile = store.open(identity(file).id).unwrap();
        let mut found = [0; 3];
        subfile.read_at(file, &mut found).unwrap();
        assert_eq!(&found, b"abc");
    }
    assert_eq!(store.list().unwrap().len(), 600);
}
