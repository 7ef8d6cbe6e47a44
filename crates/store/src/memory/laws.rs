//! What an adopted memory store holds: at every moment at which the process may be killed, everything that was acknowledged,
//! and of the operation that was running nothing, all, or some of the bytes that it was about to change.

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use random::Random;

use super::MemoryStore;
use crate::conformance::{identity, pattern};
use crate::ledger::twin::KeeperTwin;
use crate::{Aside, Domain, Grant, Ledger, MAX_LEN, Pool, PoolOptions, Store, Subfile, UNIT};

const STAMP: &[u8] = b"test";

fn options() -> PoolOptions {
    PoolOptions {
        keep_warm_bytes: 1 << 20,
        segment_bytes: 4 << 20,
        segments: 64,
        ..PoolOptions::for_limit(32 << 20)
    }
}

fn adopt(twin: &KeeperTwin) -> crate::Result<(MemoryStore, Pool)> {
    let ledger = Ledger::adopt(twin.ledger(), twin.keeping(), STAMP)?;
    let pool = Pool::adopt(options(), ledger.clone(), twin.segments())?;
    let store = MemoryStore::adopt(pool.clone(), ledger)?;
    Ok((store, pool))
}

/// A subfile as it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    bytes: Vec<u8>,
    directory: u64,
    note: Vec<u8>,
}

impl Model {
    fn at(&self, place: usize) -> u8 {
        self.bytes.get(place).copied().unwrap_or(0)
    }
}

/// How much of an operation may be there when the process was killed in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// All or nothing.
    Whole,
    /// Each byte is as it was, or as it should become.
    Bytewise,
}

struct World {
    twin: KeeperTwin,
    store: Arc<MemoryStore>,
    pool: Pool,
    /// By file number; `None`: it was removed, or never made.
    models: [Option<Model>; 3],
    /// What was kept at each moment of the operation that runs.
    snapshots: Arc<Mutex<Vec<KeeperTwin>>>,
    aside: Vec<Aside>,
}

impl World {
    fn new() -> World {
        let twin = KeeperTwin::new();
        let ledger = Ledger::new(twin.keeping(), STAMP).unwrap();
        let snapshots = Arc::new(Mutex::new(Vec::new()));
        let (shots, camera) = (Arc::clone(&snapshots), twin.clone());
        ledger.watch(move || shots.lock().push(camera.copy()));
        let pool = Pool::with_ledger(options(), ledger.clone());
        World {
            twin,
            store: Arc::new(MemoryStore::with_ledger(pool.clone(), ledger)),
            pool,
            models: [None, None, None],
            snapshots,
            aside: Vec::new(),
        }
    }

    fn subfile(&self, k: usize) -> Arc<dyn Subfile> {
        self.store.open(identity(k as u64).id).unwrap()
    }

    /// One operation on one subfile, and how much of it a kill may leave.
    fn step(&mut self, k: usize, random: &mut Random) -> Progress {
        let Some(mut model) = self.models[k].take() else {
            self.store.create(&identity(k as u64)).unwrap();
            self.models[k] = Some(Model::default());
            return Progress::Whole;
        };
        let subfile = self.subfile(k);
        let place = random.index(500_000);
        let most = *random.pick(&[100, 5000, 200_000]);
        let len = 1 + random.index(most);
        let range = place as u64..(place + len) as u64;
        let write = |model: &mut Model, bytes: &[u8]| {
            let end = model.bytes.len().max(place + len);
            model.bytes.resize(end, 0);
            model.bytes[place..place + len].copy_from_slice(bytes);
        };
        let bytes = pattern(place as u64, len, random.below(1000));
        let mut progress = Progress::Whole;
        match random.index(17) {
            0..=3 => {
                subfile.write_at(range.start, &bytes).unwrap();
                write(&mut model, &bytes);
                progress = Progress::Bytewise;
            }
            4 | 5 => {
                let mut grant = Grant::new();
                subfile.grant_apart(range.clone(), &mut grant).unwrap();
                if random.index(4) == 0 {
                    // Another writer is faster with an extent there.
                    subfile.reserve(range.start..range.start + 1).unwrap();
                }
                grant.copy_from(&bytes);
                grant.commit().unwrap();
                write(&mut model, &bytes);
                progress = Progress::Bytewise;
            }
            6 => {
                let mut grant = Grant::new();
                subfile.grant(range, &mut grant).unwrap();
                drop(grant);
            }
            7 | 8 => {
                subfile.truncate(place as u64).unwrap();
                model.bytes.resize(place, 0);
            }
            9 => {
                subfile.punch(range).unwrap();
                let end = (place + len).min(model.bytes.len());
                if place < end {
                    model.bytes[place..end].fill(0);
                }
                progress = Progress::Bytewise;
            }
            10 => {
                subfile.preallocate(range).unwrap();
                let end = model.bytes.len().max(place + len);
                model.bytes.resize(end, 0);
            }
            11 => {
                // A client stores ahead of the length, and then it counts.
                subfile.reserve(range.clone()).unwrap();
                let mapped = subfile.extents(range.clone(), 100, 1).unwrap();
                for location in &mapped {
                    assert!(subfile.let_store(location.offset, 1));
                    let lo = location.offset.max(range.start);
                    let hi = (location.offset + location.len).min(range.end);
                    let part = &bytes[(lo - range.start) as usize..(hi - range.start) as usize];
                    let at = location.segment_offset + lo - location.offset;
                    let segment = location.segment.descriptor();
                    assert_eq!(rustix::io::pwrite(segment, part, at).unwrap(), part.len());
                }
                subfile.stored_to(range.end).unwrap();
                write(&mut model, &bytes);
                progress = Progress::Bytewise;
            }
            12 => {
                subfile.unmap(10);
                subfile.trim();
            }
            13 => {
                model.directory = random.below(3);
                let directory = model.directory;
                let domain = Domain {
                    directory,
                    ..Domain::default()
                };
                subfile.set_domain(domain).unwrap();
            }
            14 => {
                let len = random.index(30);
                model.note = random.bytes(len);
                subfile.set_note(&model.note).unwrap();
            }
            15 => {
                let mut aside = Aside::new();
                subfile.set_aside(0..MAX_LEN, MAX_LEN, &mut aside).unwrap();
                self.aside.push(aside);
                if random.index(2) == 0 {
                    self.aside.remove(0);
                }
            }
            _ => {
                self.store.remove(identity(k as u64).id).unwrap();
                return Progress::Whole;
            }
        }
        self.models[k] = Some(model);
        progress
    }
}

fn read(subfile: &dyn Subfile, range: Range<u64>) -> Vec<u8> {
    let mut bytes = vec![0xee; (range.end - range.start) as usize];
    subfile.read_at(range.start, &mut bytes).unwrap();
    bytes
}

/// What a store has of a subfile, with what lies behind its length.
fn found(store: &MemoryStore, k: usize) -> Option<(Model, Vec<u8>)> {
    let subfile = store.open(identity(k as u64).id).ok()?;
    let len = subfile.len();
    let who = subfile.identity();
    let model = Model {
        bytes: read(&*subfile, 0..len),
        directory: who.domain.directory,
        note: who.note,
    };
    Some((model, read(&*subfile, len..len + 300_000)))
}

/// Compares what was adopted with what was before an operation and what should be after it.
fn check(
    twin: &KeeperTwin,
    k: usize,
    before: &[Option<Model>],
    after: &[Option<Model>],
    progress: Progress,
) {
    let (store, pool) = adopt(twin).unwrap();
    store.clear_ahead();
    let mut extents = 0;
    for (n, (before, after)) in before.iter().zip(after).enumerate() {
        let found = found(&store, n);
        if let Some((_, behind)) = &found {
            assert!(behind.iter().all(|&byte| byte == 0), "behind the length");
            let subfile = store.open(identity(n as u64).id).unwrap();
            let list = subfile.extents(0..MAX_LEN, usize::MAX, 1).unwrap();
            extents += list.iter().map(|l| l.len).sum::<u64>();
        }
        let found = found.map(|(model, _)| model);
        if n != k {
            assert!(found == *before, "subfile {n}, nobody touched it");
        } else if found != *before && found != *after {
            assert_eq!(progress, Progress::Bytewise, "neither before nor after");
            let (before, after) = (before.as_ref().unwrap(), after.as_ref().unwrap());
            let found = found.expect("it is there");
            let lens = [before.bytes.len(), after.bytes.len()];
            assert!(lens.contains(&found.bytes.len()), "{lens:?}");
            let is_either = |i: &usize| [before.at(*i), after.at(*i)].contains(&found.at(*i));
            let strange = (0..found.bytes.len()).find(|i| !is_either(i));
            assert_eq!(strange, None, "neither the old byte nor the new one");
        }
    }
    assert_eq!(pool.usage().used_bytes, extents, "memory without an owner");
    let memory: u64 = twin.segments().iter().map(memory_of).sum();
    assert!(memory <= extents, "{memory} of {extents} bytes");
    // What is handed out now shows nothing of what was.
    let fresh = store.create(&identity(77)).unwrap();
    fresh.preallocate(0..UNIT * 20).unwrap();
    let zeros = read(&*fresh, 0..UNIT * 20);
    assert!(zeros.iter().all(|&byte| byte == 0), "old bytes");
}

fn memory_of((_, segment): &(u64, std::os::fd::OwnedFd)) -> u64 {
    rustix::fs::fstat(segment).unwrap().st_blocks as u64 * 512
}

/// Kills the process before and after each batch of random programs.
#[test]
fn a_kill_at_any_batch_leaves_everything_acknowledged() {
    let mut moments = 0;
    for seed in 1..=3 {
        let mut random = Random::new(seed);
        let mut world = World::new();
        for step in 0..70 {
            world.snapshots.lock().clear();
            let before = world.models.clone();
            let k = random.index(before.len());
            let progress = world.step(k, &mut random);
            let mut snapshots = std::mem::take(&mut *world.snapshots.lock());
            // Acknowledged: all of it must be there.
            let last = world.twin.copy();
            eprintln!("seed {seed} step {step} subfile {k}"); // shown only when the test fails
            check(&last, k, &world.models, &world.models, Progress::Whole);
            // Of many batches (a change of domain) some are enough.
            while snapshots.len() > 12 {
                snapshots.remove(random.index(snapshots.len()));
            }
            for twin in &snapshots {
                check(twin, k, &before, &world.models, progress);
                moments += 1;
            }
        }
        assert!(world.pool.usage().used_bytes > 0);
    }
    assert!(moments > 300, "{moments}");
}

/// Programs go on after each adoption, which is what servers do that are killed again and again.
#[test]
fn lives_follow_each_other() {
    for seed in 1..=6 {
        let mut random = Random::new(100 + seed);
        let mut world = World::new();
        for _ in 0..8 {
            for _ in 0..30 {
                let k = random.index(world.models.len());
                world.step(k, &mut random);
                world.snapshots.lock().clear();
            }
            // Dropped as it is: the memory belongs to the ledger. What is aside stays aside.
            let aside: u64 = world.aside.iter().map(Aside::bytes).sum();
            world.aside.iter().for_each(|aside| aside.leave());
            let (store, pool) = adopt(&world.twin).unwrap();
            world.aside = vec![pool.take_aside()];
            assert_eq!(world.aside[0].bytes(), aside);
            assert_eq!(pool.usage().aside_bytes, aside);
            (world.store, world.pool) = (Arc::new(store), pool);
            for k in 0..world.models.len() {
                let found = found(&world.store, k).map(|(model, _)| model);
                assert!(found == world.models[k], "seed {seed} subfile {k}");
            }
        }
    }
}

#[test]
fn what_does_not_fit_together_is_not_adopted() {
    let mut world = World::new();
    let mut random = Random::new(3);
    (0..20).for_each(|_| {
        world.step(0, &mut random);
    });
    world.store.create(&identity(9)).unwrap();
    let subfile = world.store.open(identity(9).id).unwrap();
    subfile.write_at(0, b"here").unwrap();
    assert!(adopt(&world.twin.copy()).is_ok());
    let refused = |twin: &KeeperTwin| adopt(twin).unwrap_err().to_string();
    // A segment that is not there, or that is another.
    let twin = world.twin.copy();
    let name = twin.names().into_iter().find(|n| n.starts_with("segment"));
    crate::Keeping::forget(&twin, &name.unwrap());
    assert!(refused(&twin).contains("not kept"));
    // An extent twice, of another subfile, of a place that is none, of an unknown subfile or segment.
    let entry = {
        let ledger = Ledger::adopt(world.twin.ledger(), world.twin.keeping(), STAMP).unwrap();
        *ledger.extents().unwrap().last().unwrap()
    };
    let memory = entry.memory;
    let with = |change: &dyn Fn(&mut crate::Batch)| {
        let twin = world.twin.copy();
        let ledger = Ledger::adopt(twin.ledger(), twin.keeping(), STAMP).unwrap();
        let mut batch = crate::Batch::new();
        change(&mut batch);
        ledger.write(&batch);
        refused(&twin)
    };
    let (number, far) = (entry.subfile, 1 << 40);
    let twice = with(&|batch| batch.set_extent(number, far, memory));
    assert!(twice.contains("two owners"), "{twice}");
    let unknown = with(&|batch| {
        batch.remove_extent(number, entry.start);
        batch.set_extent(number + 1, far, memory);
    });
    assert!(unknown.contains("unknown subfile"), "{unknown}");
    let behind = with(&|batch| {
        let at = 1 << 30;
        batch.set_extent(number, far, crate::ledger::entries::Memory { at, ..memory });
    });
    assert!(behind.contains("behind its segment"), "{behind}");
    let segment = 1 << 30;
    let elsewhere = crate::ledger::entries::Memory { segment, ..memory };
    let foreign = with(&|batch| batch.set_extent(number, far, elsewhere));
    assert!(foreign.contains("unknown segment"), "{foreign}");
    let aside = with(&|batch| batch.set_aside(memory));
    assert!(aside.contains("two owners"), "{aside}");
}

#[test]
fn an_overwrite_in_place_writes_nothing_to_the_ledger() {
    let world = World::new();
    let subfile = world.store.create(&identity(1)).unwrap();
    subfile.write_at(0, &[1; 100_000]).unwrap();
    world.snapshots.lock().clear();
    subfile.write_at(500, &[2; 90_000]).unwrap();
    subfile.stored_to(10).unwrap();
    subfile.reserve(0..100_000).unwrap();
    assert_eq!(world.snapshots.lock().len(), 0);
    // Growing inside an extent is one batch.
    subfile.write_at(100_000, b"grown").unwrap();
    assert_eq!(
        world.snapshots.lock().len(),
        2,
        "before and after it counts"
    );
}
